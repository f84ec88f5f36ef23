"""Means of floats have the same bits by every way to them: one hash for each geometry.

Builds, one and two threads, layouts, strides, tiles, chunks, files, front ends and C are compared
with the slow twin. Front ends whose package is missing are left out. Each test prints its row of a
table, a hash and how many results have it: pytest -s tests/process/test_same_bits.py
"""

import hashlib
import importlib
import itertools
from collections import Counter
from importlib.util import find_spec

import numpy as np
import pytest

import cases
import fastpool
from callers import COMPILER, assert_pooled, pooled
from fastpool import _reference
from fastpool._running import builds as running

# name -> (function, shape, its argument, attributes), channels first.
GEOMETRIES = {
    "2x2 s2": ("avg_pool", (2, 16, 28, 30), 2, {"strides": 2}),
    "3x3 p1": ("avg_pool", (1, 12, 28, 33), 3, {"pads": 1}),
    "3x3 p1 include": ("avg_pool", (1, 5, 19, 23), 3, {"pads": 1, "count_include_pad": True}),
    "3x3 s2 p1 ceil": ("avg_pool", (2, 3, 20, 22), 3, {"strides": 2, "pads": 1, "ceil_mode": True}),
    "5x3 s3x1": ("avg_pool", (1, 8, 31, 37), (5, 3), {"strides": (3, 1)}),
    "7x7 s7": ("avg_pool", (2, 17, 28, 28), 7, {"strides": 7}),
    "1x9": ("avg_pool", (1, 3, 9, 200), (1, 9), {}),
    "31x1": ("avg_pool", (1, 3, 64, 21), (31, 1), {"strides": (2, 1)}),
    "15x15 p7": ("avg_pool", (1, 4, 40, 50), 15, {"pads": 7}),
    "65x65": ("avg_pool", (1, 2, 70, 77), 65, {}),
    "uneven pads": ("avg_pool", (1, 6, 15, 18), (4, 6), {"pads": (0, 2, 3, 1)}),
    "dilated": ("avg_pool", (1, 6, 25, 28), 3, {"dilations": (2, 3), "pads": 2}),
    "divisor": ("avg_pool", (2, 4, 12, 15), 3, {"divisor": 7}),
    "same": ("avg_pool", (1, 7, 14, 17), (3, 4), {"auto_pad": "SAME_UPPER", "strides": 2}),
    "signal": ("avg_pool", (2, 3, 500), 100, {}),
    "volume": ("avg_pool", (1, 5, 9, 12, 14), (2, 3, 4), {"strides": 2, "pads": 1}),
    "global 7x7": ("global_avg_pool", (2, 40, 7, 7), None, {}),
    "global 56x61": ("global_avg_pool", (1, 9, 56, 61), None, {}),
    "adaptive 6x5": ("adaptive_avg_pool", (1, 9, 20, 23), (6, 5), {}),
    "adaptive 30x3": ("adaptive_avg_pool", (2, 4, 11, 13), (30, 3), {}),
}
# Which of the other element types a geometry is pooled in too, by its number.
TYPES = [name for name in cases.FLOAT_NAMES if name != "float32"]
CASES = [(name, "float32") for name in GEOMETRIES]
CASES += [(name, dtype) for name, dtype in zip(GEOMETRIES, itertools.cycle(TYPES), strict=False)]


def channels_last(array):
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


def channels_first(array):
    return np.moveaxis(array, -1, 1)


def module(name):
    """Return a front end, or None without its package."""
    try:
        return importlib.import_module(f"fastpool.{name}")
    except ImportError:
        return None


def planned(function, shape, dtype, argument, attributes):
    make = getattr(fastpool, f"plan_{function}")
    given = () if argument is None else (argument,)
    return make(shape, dtype, *given, **attributes)


def by_tiles(plan, x):
    """Pool two parts along each axis."""
    y = np.empty(plan.output_shape, x.dtype)
    parts = [[slice(0, n // 2), slice(n // 2, n)] for n in y.shape]
    for part in itertools.product(*parts):
        if all(axis.stop > axis.start for axis in part):
            tile, read, write = plan.tile(part)
            y[write] = tile(x[read])
    return y


def ways_on_arrays(x, function, argument, attributes):
    """Yield (way, means) on this build."""
    given = () if argument is None else (argument,)
    pool = getattr(fastpool, function)
    for threads in (1, 2):
        some = {**attributes, "num_threads": threads}
        yield "NCHW", pool(x, *given, **some)
        y = pool(channels_last(x), *given, **some, layout="NHWC")
        yield "NHWC", channels_first(y)
        for how in ("rows", "planes", "negative", "stepped"):
            yield "strided", pool(cases.arranged(x, how), *given, **some)
    plan = planned(function, x.shape, x.dtype, argument, attributes)
    yield "tiles", by_tiles(plan, x)
    x = channels_last(x)
    plan = planned(function, x.shape, x.dtype, argument, {**attributes, "layout": "NHWC"})
    yield "tiles", channels_first(by_tiles(plan, x))


def by_dask(x, function, argument, attributes):
    if front_end := module("dask"):
        import dask.array

        given = () if argument is None else (argument,)
        for chunks in (5, (1, 3, *(7 for _ in x.shape[2:]))):
            array = dask.array.from_array(x, chunks=chunks)
            y = getattr(front_end, function)(array, *given, **attributes)
            yield "dask", y.compute(scheduler="sync")


def by_files(x, function, argument, attributes, folder):
    given = () if argument is None else (argument,)
    if x.dtype.kind == "V":  # bfloat16, which .npy files have no name for
        return
    np.save(folder / "x.npy", x)
    pool = getattr(module("files"), function)
    pool(folder / "x.npy", folder / "y.npy", *given, **attributes, max_bytes=1 << 14)
    yield "files", np.load(folder / "y.npy")


def by_torch(x, function, argument, attributes):
    front_end = module("torch")
    pads = attributes.get("pads", 0)
    known = {"strides", "pads", "ceil_mode", "count_include_pad", "divisor"}
    if front_end is None or not isinstance(pads, int) or set(attributes) - known:
        return
    import torch

    rank = x.ndim - 2
    tensor = torch.from_dlpack(x) if x.dtype.kind != "V" else torch.from_numpy(x.view(np.int16))
    tensor = tensor if x.dtype.kind != "V" else tensor.view(torch.bfloat16)
    if function == "avg_pool":
        rest = [attributes.get(name, usual) for name, usual in (("strides", 1), ("pads", 0))]
        rest += [attributes.get("ceil_mode", False), attributes.get("count_include_pad", False)]
        pool, more = getattr(front_end, f"avg_pool{rank}d"), [argument, *rest]
        if rank > 1:
            more.append(attributes.get("divisor"))
        elif "divisor" in attributes:
            return
    else:
        pool, more = getattr(front_end, f"adaptive_avg_pool{rank}d"), [argument or 1]
    formats = [torch.contiguous_format]
    if rank > 1:
        formats.append(torch.channels_last if rank == 2 else torch.channels_last_3d)
    for format in formats:
        y = pool(tensor.contiguous(memory_format=format), *more).contiguous()
        y = y.view(torch.int16).numpy().view(x.dtype) if x.dtype.kind == "V" else y.numpy()
        yield "torch", y


def each(value, rank):
    """Return a value per axis."""
    return list(value) if isinstance(value, tuple) else [value] * rank


def by_onnx(x, function, argument, attributes):
    front_end, rank = module("onnx"), x.ndim - 2
    if front_end is None or "divisor" in attributes or function == "adaptive_avg_pool":
        return
    if function == "global_avg_pool":
        yield "onnx", front_end.global_average_pool(x)
        return
    lengths = {"strides": rank, "dilations": rank, "pads": 2 * rank}
    window = {
        name: each(value, lengths[name]) if name in lengths else value
        for name, value in attributes.items()
    }
    yield "onnx", front_end.average_pool(x, kernel_shape=each(argument, rank), **window)


def by_openvino(x, function, argument, attributes):
    front_end, rank = module("openvino"), x.ndim - 2
    if front_end is None or {"divisor", "auto_pad"} & set(attributes) or rank > 3:
        return
    if function != "avg_pool":
        yield "openvino", front_end.adaptive_avg_pool(x, argument or [1] * rank)
        return
    pads = each(attributes.get("pads", 0), 2 * rank)
    window = {
        "kernel": each(argument, rank),
        "strides": each(attributes.get("strides", 1), rank),
        "dilations": each(attributes.get("dilations", 1), rank),
        "pads_begin": pads[:rank],
        "pads_end": pads[rank:],
        "exclude_pad": not attributes.get("count_include_pad"),
        "rounding_type": "ceil_torch" if attributes.get("ceil_mode") else "floor",
    }
    yield "openvino", front_end.avg_pool(x, **window)


def by_c(x, function, argument, attributes, driver):
    """A plan whose attributes are all NULL or 0 but for those given, and one made in Python."""
    rank = x.ndim - 2
    given = {"input_shape": x.shape, "dtype": x.dtype.name, **attributes}
    if function == "avg_pool":
        given["kernel_shape"] = tuple(each(argument, rank))
    else:
        given["output_size"] = argument or (1,) * rank
    lengths = {"strides": rank, "dilations": rank, "pads": 2 * rank}
    for name in set(lengths) & set(given):
        given[name] = tuple(each(given[name], lengths[name]))
    plan = planned(function, x.shape, x.dtype, argument, attributes)
    for threads in (1, 2):
        code, y, _ = pooled(
            driver, plan, x, threads, compiled=driver.AveragePlan("avg_pool", **given)
        )
        assert code == 0
        yield "C", y
    assert_pooled(pooled(driver, plan, x), y)


def hashed(y):
    """Return a short hash of the bits; -0.0 counts as 0.0."""
    return hashlib.blake2b((np.ascontiguousarray(y) + 0).tobytes(), digest_size=4).hexdigest()


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=":".join)
def test_one_hash(name, dtype, tmp_path, request):
    function, shape, argument, attributes = GEOMETRIES[name]
    x = cases.summands(shape, dtype, "normal", 3)
    case = x, function, argument, attributes
    given = () if argument is None else (argument,)
    found = [("twin", getattr(_reference, function)(x, *given, **attributes, numerics="pairwise"))]
    for build in cases.BUILDS:
        with running.using(build):
            found += ways_on_arrays(*case)
    for way in (by_dask, by_torch, by_onnx, by_openvino):
        found += way(*case)
    found += by_files(*case, tmp_path)
    if COMPILER and find_spec("Cython") and find_spec("setuptools"):
        found += by_c(*case, request.getfixturevalue("driver"))
    counts = Counter((hashed(y), way) for way, y in found)
    rows = {bits: [] for bits, _ in counts}
    for (bits, way), count in counts.items():
        rows[bits].append(f"{way} {count}")
    for bits, ways in rows.items():
        print(f"\n{name:15} {dtype:8} {bits}  {', '.join(ways)}")
    assert len(rows) == 1
