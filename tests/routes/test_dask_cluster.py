"""A cluster of two processes pools right, in little memory, and survives a lost worker.

FASTPOOL_CLUSTER_CASES sets how many chunkings and geometries are compared.
"""

import os
import re
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import cases
import fastpool
import limits

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

import dask.array as da  # noqa: E402

import fastpool.dask  # noqa: E402
import fastpool.files  # noqa: E402

CASES = int(os.environ.get("FASTPOOL_CLUSTER_CASES", 40))
MEMORY_LIMIT = 512 << 20  # of a worker, of which Python and its packages take a third


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with (
        # Whoever connects waits until the other side has its turn. Workers may ask a lost one for
        # its results that long, but they seldom do: most often they are told before.
        dask.config.set({"distributed.comm.timeouts.connect": "60s"}),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            memory_limit=MEMORY_LIMIT,
            dashboard_address=":0",
            local_directory=str(tmp_path_factory.mktemp("workers")),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def random_axis(rng):
    """(size, kernel, stride, dilation, begin, end) with at least one window."""
    kernel, stride, dilation = rng.integers(1, [6, 5, 4])
    extent = (kernel - 1) * dilation + 1
    begin, end = rng.integers(0, extent + 2, 2)
    return max(1, extent - begin - end) + rng.integers(30), kernel, stride, dilation, begin, end


def random_chunks(rng, size):
    cuts = np.sort(rng.integers(0, size + 1, rng.integers(2 if size < 5 else 3)))
    return tuple(np.diff([0, *cuts, size]).tolist())


def random_case(rng):
    """(array, chunks, attributes) of a pooling with indices."""
    layout = rng.choice(cases.layouts(int(rng.integers(1, 4))))
    rank = len(layout.strip("NC")) if layout not in ("NCHW", "NHWC") else 2
    axes = np.array([random_axis(rng) for _ in range(rank)])
    sizes, kernels, strides, dilations, begins, ends = axes.T.tolist()
    shape = cases.array_shape(layout, *rng.integers(1, 5, 2).tolist(), sizes)
    auto_pad = rng.choice(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER"])
    storage_order = int(rng.integers(2))
    attributes = {
        "kernel_shape": kernels,
        "strides": strides,
        "dilations": dilations,
        "pads": begins + ends if auto_pad == "NOTSET" else 0,
        "auto_pad": str(auto_pad),
        "ceil_mode": bool(rng.integers(2)),
        "ceil_rule": str(rng.choice(["clip", "keep"])),
        "layout": str(layout),
        "storage_order": storage_order,
        "index_axis": int(rng.integers(cases.first_spatial_axis(layout) + 1)),
        "index_dtype": str(rng.choice(["int64", "int32"])),
        "return_indices": True,
    }
    kind, name = rng.choice(cases.VALUE_KINDS), rng.choice(["float32", "uint8", "float16", "int64"])
    x = cases.values(shape, name, kind, int(rng.integers(1000)))
    return x, tuple(random_chunks(rng, size) for size in shape), attributes


def test_random_chunkings(client):
    """Values and indices; all configurations are one submission."""
    rng = np.random.default_rng(5)
    configurations = [random_case(rng) for _ in range(CASES)]
    lazy = [
        fastpool.dask.max_pool(da.from_array(x, chunks), **attributes)
        for x, chunks, attributes in configurations
    ]
    persisted = dask.persist(*lazy)
    distributed.wait(persisted, limits.HANG)
    assert len({worker for workers in client.who_has().values() for worker in workers}) == 2
    for (x, chunks, attributes), got in zip(configurations, dask.compute(*persisted), strict=True):
        expected = fastpool.max_pool(x, **attributes)
        for result, want in zip(got, expected, strict=True):
            cases.assert_same(result, want, f"{x.dtype} {x.shape} in {chunks}, {attributes}")


def pattern(block_info):
    """A block of a large array that is never anywhere in one piece."""
    (rows, columns) = block_info[None]["array-location"]
    rows, columns = np.arange(*rows), np.arange(*columns)
    return (rows**2 % 251).astype(np.uint8)[:, None] ^ (7 * columns % 241).astype(np.uint8)


def large(rows, columns, chunk):
    chunks = da.core.normalize_chunks(chunk, (rows, columns), dtype=np.uint8)
    return da.map_blocks(pattern, chunks=chunks, meta=np.empty((0, 0), np.uint8))


def resident(name):
    """Bytes resident now, "VmRSS", or at most so far, "VmHWM"."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{name}:\s+(\d+) kB", status)[1]) << 10


# Workers need not be able to import the tests: what they run of them is sent.
pattern.__module__ = resident.__module__ = "__main__"


def test_four_times_the_memory(client):
    columns = 1 << 14
    rows = -(-4 * 2 * MEMORY_LIMIT // columns)
    x = large(rows, columns, (2000, columns))
    assert x.nbytes >= 4 * 2 * MEMORY_LIMIT  # of both workers together
    attributes = {"kernel_shape": 10, "strides": 8, "layout": "HW"}
    before = client.run(resident, "VmRSS") if sys.platform == "linux" else {}
    y = client.compute(fastpool.dask.max_pool(x, **attributes)).result(limits.HANG)
    for first in (0, 370, len(y) - 5):  # what the whole result is made of
        strip = 8 * first, 8 * (first + 4) + 10
        part = pattern({None: {"array-location": [strip, (0, columns)]}})
        cases.assert_same(y[first : first + 5], fastpool.max_pool(part, **attributes))
    if before:
        peaks = client.run(resident, "VmHWM")
        added = [peaks[worker] - before[worker] for worker in before]
        assert max(added) < MEMORY_LIMIT * 3 // 4, added


def test_pyramids_in_files(client, tmp_path):
    """Both workers write chunks of each level, of an array that no process holds in one piece."""
    zarr = pytest.importorskip("zarr")
    x = large(900, 700, (130, 90))
    fastpool.files.pyramid(x, tmp_path / "y.zarr", 3, axes="yx", chunks=64)
    image = zarr.open_group(tmp_path / "y.zarr", mode="r")
    whole = x.compute()
    for level, want in enumerate([whole, *fastpool.pyramid(whole, 3)]):
        cases.assert_same(image[str(level)][:], want)
    assert cases.names(tmp_path) == ["y.zarr"]


def test_a_worker_is_lost(client):
    """Killed when it has some of the results: these are computed again."""
    x = large(600, 630, 110)
    attributes = {"kernel_shape": 7, "strides": 3, "layout": "HW", "return_indices": True}
    y, indices = client.persist(fastpool.dask.max_pool(x, **attributes))
    futures = distributed.futures_of([y, indices])
    for number, _ in enumerate(distributed.as_completed(futures, timeout=limits.HANG)):
        if number == len(futures) // 2:
            break
    victim, process = next(iter(client.run(os.getpid).items()))
    assert any(victim in workers for workers in client.who_has(futures).values())
    os.kill(process, signal.SIGKILL)
    whole = pattern({None: {"array-location": [(0, 600), (0, 630)]}})
    results = [future.result(limits.HANG) for future in client.compute([y, indices])]
    for got, want in zip(results, fastpool.max_pool(whole, **attributes), strict=True):
        cases.assert_same(got, want)


def test_the_example_of_the_page(client, capsys, monkeypatch):
    """The last test, on a few rows: it closes the cluster that it is given."""
    page = (Path(__file__).parents[2] / "docs" / "dask.md").read_text()
    (code,) = re.findall(r"```python\n(import .*?)```", page, re.DOTALL)
    assert "(262_144, " in code
    monkeypatch.setattr("dask.distributed.LocalCluster", lambda **options: client.cluster)
    exec(code.replace("(262_144, ", "(4_096, "), {"__name__": "__main__"})
    assert re.search(r"\(512, 2048\) 25\d\.\d+\n$", capsys.readouterr().out)
