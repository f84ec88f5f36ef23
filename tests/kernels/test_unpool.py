"""Unpooling zeroes every other element, writes each value once, and refuses bad indices."""

import contextlib
import itertools
import subprocess
import sys
import threading

import numpy as np
import pytest

import cases
import fastpool
import limits
from fastpool import _reference

LAYOUTS = ["NCHW", "NHWC"]


def own_plane_indices(shape, layout, size, rng, dtype, order="any"):
    """Indices that stay in their own planes: rising as a pooling's, in any order, or repeated."""
    batch, channels = shape[0], shape[1 if layout == "NCHW" else -1]
    count = int(np.prod(shape)) // max(1, batch * channels)
    planes = np.empty((batch * channels, count), dtype)
    for plane in range(batch * channels):
        places = rng.choice(size, count, replace=order == "repeated")
        planes[plane] = plane * size + (np.sort(places) if order == "rising" else places)
    if layout == "NHWC":
        planes = planes.reshape(batch, channels, count).swapaxes(1, 2)
    return planes.reshape(shape)


def unpool_all_ways(x, indices, output_shape, layout, counts=(1, 2, 3, 8)):
    attributes = {"output_shape": output_shape, "layout": layout}
    expected = _reference.max_unpool(x, indices, 1, **attributes)
    for count in counts:
        out = cases.values(output_shape, x.dtype.name, "bits", 0)
        fastpool.max_unpool(x, indices, 1, **attributes, out=out, num_threads=count)
        cases.assert_same(out, expected, f"{count} threads")


@pytest.mark.parametrize("order", ["rising", "any", "repeated"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["uint8", "float16", "float32", "int64"])
def test_indices_in_any_order(name, layout, order, isa):
    """Values come in groups of 64, elements are zeroed in lines of 64 bytes."""
    rng = np.random.default_rng(0)
    for width in (1, 2, 63, 64, 65, 127, 128, 129, 200):
        shape = cases.array_shape(layout, 2, 3, (1, width))
        for extent in (1, 3):
            output_shape = cases.array_shape(layout, 2, 3, (extent, width + 1))
            size = extent * (width + 1)
            x = cases.values(shape, name, "bits", width)
            for dtype in (np.int64, np.int32):
                indices = own_plane_indices(shape, layout, size, rng, dtype, order)
                unpool_all_ways(x, indices, output_shape, layout, (1, 2))


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("channels", [1, 15, 16, 17, 31, 33, 63, 64, 65, 70, 128, 130])
def test_channels_last_on_threads(batch, channels, isa):
    """Up to 64 channels, several pixels are taken together; else one, 64 channels at a time."""
    rng = np.random.default_rng(channels)
    x = cases.values((batch, 5, 7, channels), "float32", "bits", 0)
    for order in ("rising", "repeated"):
        indices = own_plane_indices(x.shape, "NHWC", 9 * 11, rng, np.int64, order)
        unpool_all_ways(x, indices, (batch, 9, 11, channels), "NHWC")


@pytest.mark.parametrize("channels", [16, 33, 64, 65, 130])
def test_channels_last_stay_between_the_pages(channels, isa, guarded_memory):
    memories = {key: guarded_memory(65536) for key in ("x", "y", "indices")}
    rng = np.random.default_rng(0)
    for name in ("uint8", "float32"):
        values = cases.values((1, 3, 5, channels), name, "bits", 0)
        chosen = own_plane_indices(values.shape, "NHWC", 6 * 9, rng, np.int64, "repeated")
        for at in ("end", "start"):
            x = memories["x"].array(values.shape, values.dtype, at)
            indices = memories["indices"].array(values.shape, np.int64, at)
            x[...], indices[...] = values, chosen
            y = memories["y"].array((1, 6, 9, channels), values.dtype, at)
            for count in (1, 3):
                attributes = {"output_shape": y.shape, "layout": "NHWC"}
                fastpool.max_unpool(x, indices, 1, **attributes, out=y, num_threads=count)
                cases.assert_same(y, _reference.max_unpool(values, chosen, 1, **attributes))
                for memory in memories.values():
                    memory.check()


@pytest.mark.parametrize("order", ["rising", "any", "shared"])
@pytest.mark.parametrize("index_dtype", [np.int64, np.int32])
@pytest.mark.parametrize(("batch", "channels"), [(1, 1), (2, 1), (1, 3), (2, 17)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_threads_take_bands_of_few_planes(
    layout, batch, channels, index_dtype, order, isa, guarded_memory
):
    """A band has at least 4096 values. With any order, or shared elements, there are none."""
    shape, output_shape = (
        cases.array_shape(layout, batch, channels, n) for n in ((131, 128), (131, 131))
    )
    size = 131 * 131
    values, rng = cases.values(shape, "uint8", "bits", 0), np.random.default_rng(0)
    chosen = own_plane_indices(
        shape, layout, size, rng, index_dtype, "any" if order == "any" else "rising"
    )
    if order == "shared":  # the middle two rows, where the bands of two threads meet
        rows = (slice(None),) * (2 if layout == "NCHW" else 1)
        chosen[(*rows, 65)] = chosen[(*rows, 64)]
    memories = {
        "x": guarded_memory(values.nbytes + 4096),
        "y": guarded_memory(int(np.prod(output_shape)) + 4096),
        "indices": guarded_memory(chosen.nbytes + 4096),
    }
    attributes = {"output_shape": output_shape, "layout": layout}
    expected = _reference.max_unpool(values, chosen, 1, **attributes)
    for at, threads in itertools.product(("end", "start"), (1, 2, 3, 8)):
        x = memories["x"].array(shape, values.dtype, at)
        indices = memories["indices"].array(shape, index_dtype, at)
        y = memories["y"].array(output_shape, values.dtype, at)
        x[...], indices[...], y[...] = values, chosen, 1
        attributes["num_threads"] = threads
        fastpool.max_unpool(x, indices, 1, **attributes, out=y)
        cases.assert_same(y, expected, f"{threads} threads")
        for place in (0, x.size // 2, x.size - 1):
            for value in (-1, batch * channels * size):
                indices.reshape(-1)[place] = value
                with pytest.raises(ValueError, match=rf"^indices.*: {value} is outside"):
                    fastpool.max_unpool(x, indices, 1, **attributes, out=y)
            indices[...] = chosen
        cases.assert_same(y, expected, f"{threads} threads")
        for memory in memories.values():
            memory.check()


@pytest.mark.parametrize("sizes", [(9000,), (1, 9000), (1, 90, 100), (3, 60, 50), (1, 1, 8200)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_bands_of_signals_and_volumes(layout, sizes, isa):
    """Bands are some neighbouring values, rows or slices: of the first axis of more than one."""
    shape = cases.array_shape(layout, 1, 2, sizes)
    output_shape = cases.array_shape(layout, 1, 2, (*sizes[:-1], 2 * sizes[-1]))
    x, size = cases.values(shape, "int16", "bits", 0), 2 * int(np.prod(sizes))
    for order in ("rising", "any"):
        rng = np.random.default_rng(0)
        indices = own_plane_indices(shape, layout, size, rng, np.int64, order)
        unpool_all_ways(x, indices, output_shape, layout)


@pytest.mark.parametrize("order", ["rising", "repeated", "anywhere"])
@pytest.mark.parametrize("index_axis", [1, 2])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_indices_count_within_a_batch_or_a_plane(layout, index_axis, order, isa):
    """As those of the whole array do, less where their numbering begins."""
    shape, output_shape = (cases.array_shape(layout, 3, 18, sizes) for sizes in ((5, 7), (9, 11)))
    x = cases.values(shape, "float32", "bits", 0)
    rng = np.random.default_rng(0)
    size = 9 * 11 * (18 if index_axis == 1 else 1)
    if order == "anywhere":
        indices = rng.integers(0, size, shape)
    else:
        indices = own_plane_indices(shape, layout, 9 * 11, rng, np.int64, order) % size
    attributes = {"output_shape": output_shape, "layout": layout}
    expected = _reference.max_unpool(x, indices, 1, index_axis=index_axis, **attributes)
    planes = np.arange(3 * 18).reshape(cases.array_shape("NCHW", 3, 18, (1, 1))) * 9 * 11
    planes = planes if layout == "NCHW" else np.moveaxis(planes, 1, -1)
    everywhere = indices + planes // size * size
    cases.assert_same(expected, _reference.max_unpool(x, everywhere, 1, **attributes))
    for count in (1, 2, 5):
        out = cases.values(output_shape, "float32", "bits", 1)
        attributes["num_threads"] = count
        fastpool.max_unpool(x, indices, 1, index_axis=index_axis - 4, out=out, **attributes)
        cases.assert_same(out, expected, f"{count} threads")
        for value in (-1, size):
            wrong = indices.copy()
            wrong[-1, -1, -1, -1] = value
            with pytest.raises(ValueError, match=rf"^indices.*: {value} is outside \[0, {size}\)"):
                fastpool.max_unpool(x, wrong, 1, index_axis=index_axis, out=out, **attributes)
        cases.assert_same(out, expected, f"{count} threads")


@pytest.mark.parametrize("index_axis", [0, 1, 2])
@pytest.mark.parametrize(("layout", "channels"), [("NCHW", 18), ("NHWC", 3), ("NHWC", 7)])
@pytest.mark.parametrize("name", ["uint8", "float32"])
def test_planes_and_pixels_that_are_taken_together(
    name, layout, channels, index_axis, isa, guarded_memory
):
    """Up to 64 values at a time: of planes of other batches too, and the last ones are fewer."""
    memories = {key: guarded_memory(65536) for key in ("x", "y", "indices")}
    shape, output_shape = (cases.array_shape(layout, 3, channels, n) for n in ((2, 2), (4, 5)))
    values, rng = cases.values(shape, name, "bits", 0), np.random.default_rng(0)
    size = 4 * 5 * (1, channels, 3 * channels)[2 - index_axis]
    for index_dtype, order in itertools.product(("int64", "int32"), ("rising", "repeated")):
        chosen = own_plane_indices(shape, layout, 4 * 5, rng, index_dtype, order) % size
        attributes = {"output_shape": output_shape, "layout": layout, "index_axis": index_axis}
        expected = _reference.max_unpool(values, chosen, 1, **attributes)
        for at, threads in itertools.product(("end", "start"), (1, 2)):
            x = memories["x"].array(shape, values.dtype, at)
            indices = memories["indices"].array(shape, index_dtype, at)
            y = memories["y"].array(output_shape, values.dtype, at)
            x[...], indices[...] = values, chosen
            fastpool.max_unpool(x, indices, 1, **attributes, out=y, num_threads=threads)
            cases.assert_same(y, expected)
            for place, value in itertools.product(range(0, x.size, 11), (-1, size)):
                indices.reshape(-1)[place] = value
                with pytest.raises(ValueError, match=rf"^indices.*: {value} is outside"):
                    fastpool.max_unpool(x, indices, 1, **attributes, out=y, num_threads=threads)
                indices[...] = chosen
            cases.assert_same(y, expected)
            for memory in memories.values():
                memory.check()


OUTSIDE = {
    "int64": [-1, 2 * 20 * 63, 2 * 20 * 63 + 1, -(2**63), 2**63 - 1, -(2**62), 2**32, 2**31],
    "int32": [-1, 2 * 20 * 63, -(2**31), 2**31 - 1],
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", OUTSIDE)
def test_an_index_outside_leaves_the_output_alone(dtype, layout, threads, isa):
    x = cases.values(cases.array_shape(layout, 2, 20, (7, 9)), "float32", "bits", 0)
    rng = np.random.default_rng(0)
    good = own_plane_indices(x.shape, layout, 63, rng, dtype)
    out = cases.values(x.shape, "float32", "bits", 1)
    before = out.tobytes()
    attributes = {"layout": layout, "num_threads": threads}
    for place in (0, 64, x.size // 2, x.size - 1):
        for value in OUTSIDE[dtype]:
            indices = good.copy()
            indices.reshape(-1)[place] = value
            with pytest.raises(ValueError, match="^indices"):
                fastpool.max_unpool(x, indices, 1, **attributes, out=out)
            assert out.tobytes() == before
    with pytest.raises(ValueError, match="^indices"):
        fastpool.max_unpool(x, indices, 1, **attributes)
    # One index in another plane is legal, and then values go in the order of the whole array.
    for place, value in ((0, good.max()), (x.size - 1, 0)):
        indices = good.copy()
        indices.reshape(-1)[place] = value
        unpool_all_ways(x, indices, x.shape, layout)


# -------------------------------------------------------------- indices that change during the call

# The result and the indices are mappings of one file, and the values that are stored become the
# next indices. Addresses do not tell.
ONE_FILE = """
import tempfile
import numpy as np
import fastpool
from fastpool._running import builds as running

layout, dtype, threads = {layout!r}, {dtype!r}, {threads}
# From the memory of an index to where its value goes: the next chunk of a plane, the next pixel.
ahead = 64 if layout == "NCHW" else 3
indices = np.arange(1920).reshape(2, 3, 8, 40)
if layout == "NHWC":
    indices = np.moveaxis(indices, 1, -1)
refused = 0
for build in running.builds():
    for huge in (2**41 if dtype == "int64" else 2**31 - 1, np.iinfo(dtype).min, -(2**30)):
        with running.using(build), tempfile.NamedTemporaryFile() as file:
            itemsize = np.dtype(dtype).itemsize
            file.truncate((indices.size + ahead) * itemsize)
            z, out = (
                np.asarray(np.memmap(file.name, dtype, "r+", offset * itemsize, indices.shape))
                for offset in (0, ahead)
            )
            z[...] = indices
            x = np.full(indices.shape, huge, dtype)
            try:
                fastpool.max_unpool(x, z, 1, layout=layout, out=out, num_threads=threads)
            except ValueError as error:
                assert str(error).startswith("indices"), error
                refused += 1
print(refused)
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_out_and_indices_in_one_file(layout, dtype, threads):
    """Nothing outside of the result is written: it was, at addresses that the values chose."""
    code = ONE_FILE.format(layout=layout, dtype=dtype, threads=threads)
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=limits.HANG
    )
    assert process.returncode == 0, process.stderr
    assert int(process.stdout) == 3 * len(cases.BUILDS)


def test_indices_that_another_thread_changes(isa):
    """Whatever it writes there: a result, or a ValueError."""
    rng = np.random.default_rng(0)
    good = np.arange(40_000).reshape(1, 4, 100, 100)
    x = cases.values(good.shape, "float32", "bits", 1)
    for layout in ("NCHW", "NHWC"):
        z = good.copy() if layout == "NCHW" else np.moveaxis(good, 1, -1).copy()
        values = x if layout == "NCHW" else np.moveaxis(x, 1, -1).copy()
        flat, done = z.reshape(-1), threading.Event()

        def change(flat=flat, done=done):
            while not done.is_set():
                place = int(rng.integers(flat.size))
                before = flat[place]
                flat[place] = rng.choice([-1, 2**62, -(2**63), 40_000])
                flat[place] = before

        changing = threading.Thread(target=change)
        changing.start()
        try:
            for _ in range(100):
                with contextlib.suppress(ValueError):
                    fastpool.max_unpool(values, z, 1, layout=layout, num_threads=1)
        finally:
            done.set()
            changing.join()


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
def test_any_number_of_empty_planes_takes_no_time(isa, layout, index_dtype):
    shape = (2**40, 1, 0, 1)
    x, indices = np.empty(shape, "float32"), np.empty(shape, index_dtype)
    attributes = {"layout": layout, "index_space": "output"}
    y = fastpool.max_unpool(x, indices, 1, output_shape=shape, **attributes)
    assert y.shape == shape


@pytest.mark.parametrize("name", ["uint8", "float32", "float64"])
def test_a_plan_takes_arrays_of_any_type(name):
    plan = fastpool.plan_max_unpool((2, 3, 4, 5), 2, strides=2, output_shape=(2, 3, 9, 10))
    x = cases.values((2, 3, 4, 5), name, "bits", 0)
    indices = own_plane_indices(x.shape, "NCHW", 90, np.random.default_rng(0), "int32")
    attributes = {"strides": 2, "output_shape": plan.output_shape}
    expected = _reference.max_unpool(x, indices, 2, **attributes)
    out = np.ones(plan.output_shape, x.dtype)
    assert plan(x, indices, out=out) is out
    cases.assert_same(out, expected, "out=")
    cases.assert_same(plan(x, indices), expected, "no out")
    with pytest.raises(ValueError, match=r"x: expected shape \(2, 3, 4, 5\), got \(2, 3, 4, 4\)"):
        plan(x[..., :4], indices[..., :4])
