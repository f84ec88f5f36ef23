"""Kernels touch nothing outside their arrays: guard pages are on every side of each array.

Pooling of values alone is in test_strategy_results.py, widths from 1 to 130 are in test_edges.py.
Here are indices, channels last, long windows, leading axes and unpooling, and arrays with gaps
between rows whose last row ends at a page. Averages of every type and way are here too.
"""

import random

import numpy as np
import pytest

import cases
import fastpool
from fastpool import _reference
from fastpool._running import builds as running
from fastpool._running import running_maxima

# By width: layout, channels, sizes, window, attributes. The path has these words, and none of the
# others below.
PATHS = {
    "": lambda w: ("CHW", 3, (7, w), (3, 1), {"strides": 3}),
    "stride 2": lambda w: ("CHW", 2, (7, 2 * w + 1), (3, 3), {"strides": 2, "pads": 1}),
    "strides apart": lambda w: ("CHW", 2, (4, 2 * w), (2, 2), {"strides": 2}),
    "dilated": lambda w: ("CHW", 2, (6, w + 4), (2, 3), {"dilations": (3, 2), "pads": (1, 0)}),
    "dilated, beyond": lambda w: (
        *("CHW", 2, (3, w), (2, 1)),
        {"dilations": (2, 1), "pads": (0, 0, 90, 0)},
    ),
    "long rows": lambda w: ("CHW", 2, (60, w + 1), (31, 2), {"pads": (7, 0)}),
    "long columns": lambda w: ("CHW", 2, (2, 30 + w), (2, 31), {"pads": (0, 7)}),
    "long rows, long columns": lambda w: ("CHW", 1, (40, 19 + w), (20, 20), {}),
    "leading axes": lambda w: ("CDHW", 2, (3, 4, w), (2, 3, 1), {"strides": (1, 1, 2)}),
    "leading axes, long rows": lambda w: ("CDHW", 2, (3, 30, w + 1), (2, 20, 2), {}),
    "channels last, of columns": lambda w: (
        *("CDHW", 2, (3, 140, w + 2), (2, 20, 1)),
        {},
    ),
    "channels last, direct": lambda w: ("NHWC", 20 + w, (4, 4), (2, 2), {"strides": 2}),
    "channels last, pixels as row": lambda w: ("HWC", 2, (5, w + 2), (3, 3), {"pads": (1, 0)}),
    "channels last": lambda w: ("HWC", 20 + w, (7, 9), (3, 5), {"pads": 1}),
    "channels last, long rows": lambda w: ("HWC", 20 + w, (33, 3), (21, 1), {"pads": (9, 0)}),
    "channels last, long columns": lambda w: ("HWC", 20 + w, (3, 33), (2, 21), {}),
    "channels last, leading axes": lambda w: ("DHWC", 20 + w, (3, 7, 9), (2, 3, 5), {"pads": 1}),
    "running_maxima": lambda w: ("CHW", 2, (9, w), (4, 3), {"strides": (1, 2), "pads": (5, 9)}),
    "running_maxima, leading axes": lambda w: (
        "CDHW",
        2,
        (3, 4, w),
        (2, 2, 3),
        {"pads": (0, 1, 9)},
    ),
    "channels last, running_maxima": lambda w: (
        "HWC",
        20 + w,
        (9, 4),
        (2, 3),
        {"dilations": (5, 1)},
    ),
}
WORDS = (
    "running_maxima",
    "channels last",
    "direct",
    "pixels as row",
    "leading axes",
    "long rows",
)
DTYPES = [("uint8", "propagate", "max"), ("float16", "propagate", "max")]
DTYPES += [("float32", "propagate", "max"), ("float32", "ignore", "max")]
DTYPES += [("float64", "propagate", "max"), ("int64", "propagate", "max")]
# Minima that are taken as they are, and those that are maxima of keys, of 8 bits too.
DTYPES += [("uint8", "propagate", "min"), ("float32", "propagate", "min")]
DTYPES += [("uint16", "propagate", "min"), ("float64", "propagate", "min")]
DTYPES += [("int8", "propagate", "min"), ("int16", "propagate", "min")]
DTYPES += [("float16", "propagate", "min"), ("float32", "ignore", "min")]


def widths(isa, name):
    n = max(2, running.builds()[isa].VECTOR_BYTES // cases.dtype(name).itemsize)
    return sorted({1, 2, 3, n - 1, n, n + 1, 2 * n + 1})


def at_a_page(memory, shape, dtype, at, gaps):
    """An array at a guard page, with `gaps` between its rows."""
    if not gaps:
        return memory.array(shape, dtype, at)
    wider = memory.array((*shape[:-2], shape[-2] + 1, shape[-1]), dtype, at)
    return wider[..., 1:, :] if at == "end" else wider[..., :-1, :]


@pytest.mark.parametrize(("name", "nan", "op"), DTYPES)
@pytest.mark.parametrize("path", PATHS)
def test_nothing_beyond_the_pages_is_touched(path, name, nan, op, isa, guarded_memory, monkeypatch):
    if "running_maxima" in path:
        monkeypatch.setattr(running_maxima, "pays", lambda work: True)
    memories = [guarded_memory(1 << 19) for _ in "xyz"]
    for i, width in enumerate(widths(isa, name)):
        layout, channels, sizes, kernel, attributes = PATHS[path](width)
        shape = cases.array_shape(layout, 2, channels, sizes)
        values = cases.values(shape, name, "ties" if i % 2 else "special", width)
        more = {"layout": layout, "nan": nan, "index_dtype": ("int64", "int32")[i % 2]}
        more.update(attributes)
        twin, make = getattr(_reference, f"{op}_pool"), getattr(fastpool, f"plan_{op}_pool")
        y, z = twin(values, kernel, return_indices=True, **more)
        for indices in (False, True):
            plan = make(
                shape, values.dtype, kernel, return_indices=indices, num_threads=1 + i % 2, **more
            )
            for at in ("end", "start"):
                for gaps in (False, True):
                    x, out, places = (
                        at_a_page(memory, array.shape, array.dtype, at, gaps)
                        for memory, array in zip(memories, (values, y, z), strict=True)
                    )
                    x[...] = values
                    plan(x, out, places if indices else None)
                    cases.assert_same(out, y, f"width {width}, {at}")
                    if indices:
                        cases.assert_same(places, z, f"width {width}, {at}, indices")
                    assert x.tobytes() == values.tobytes()
                    for memory in memories:
                        memory.check()
            if width > 3:  # (one element wide, an axis may have no window worth the name)
                assert_path(plan, path, indices)


def assert_path(plan, path, indices):
    found = cases.kernel_path(plan).split(", ")
    expected = {word for word in WORDS if word in path.split(", ")}
    if indices:
        expected -= {"pixels as row"}
        found = [word for word in found if word != "direct" or "direct" in expected]
    assert {word for word in WORDS if word in found} == expected, cases.kernel_path(plan)


@pytest.mark.parametrize("kind", ["own planes", "anywhere"])
@pytest.mark.parametrize(
    ("layout", "index_layout"), [("NCHW", "NCHW"), ("NHWC", "NCHW"), ("NHWC", "NHWC")]
)
@pytest.mark.parametrize("name", ["uint8", "float16", "float32", "float64"])
def test_unpooling(name, layout, index_layout, kind, isa, guarded_memory):
    memories = [guarded_memory(1 << 19) for _ in "xyz"]
    rng = np.random.default_rng(0)
    for i, width in enumerate(widths(isa, name)):
        shape = cases.array_shape(layout, 2, 17, (2, width))
        larger = cases.array_shape(layout, 2, 17, (3, width + 1))
        values = cases.values(shape, name, "bits", width)
        if kind == "own planes":
            sparse = cases.values(larger, name, "bits", width)
            _, chosen = _reference.max_pool(
                sparse, 2, layout=layout, return_indices=True, index_layout=index_layout
            )
        else:
            chosen = rng.integers(0, np.prod(larger), shape)
            chosen.reshape(-1)[[0, -1]] = 0, np.prod(larger) - 1
        chosen = chosen.astype(("int64", "int32")[i % 2])
        attributes = {"output_shape": larger, "layout": layout, "index_layout": index_layout}
        expected = _reference.max_unpool(values, chosen, 1, **attributes)
        for at in ("end", "start"):
            x, y, z = (
                memory.array(array.shape, array.dtype, at)
                for memory, array in zip(memories, (values, expected, chosen), strict=True)
            )
            x[...], z[...] = values, chosen
            for threads in (1, 3):
                y[...] = 1
                fastpool.max_unpool(x, z, 1, out=y, num_threads=threads, **attributes)
                cases.assert_same(y, expected, f"width {width}, {at}")
                for memory in memories:
                    memory.check()


# ---------------------------------------------------------------------------------------- averages

# The paths of maxima, which differ in their axes, and windows of unequal lengths and whole planes.
AVERAGES = {path: ("avg_pool", PATHS[path]) for path in PATHS}
AVERAGES |= {
    "carried": ("avg_pool", lambda w: ("CHW", 2, (30, w + 12), (9, 12), {"pads": 4})),
    "carried, dilated": (
        "avg_pool",
        lambda w: ("HWC", 3, (25, 2 * w), (9, w), {"dilations": 2, "pads": (0, w)}),
    ),
    "whole planes": ("avg_pool", lambda w: ("CHW", 5, (3, w), (3, w), {})),
    "whole planes, channels last": ("avg_pool", lambda w: ("HWC", w, (3, 4), (3, 4), {})),
    "parts": ("adaptive_avg_pool", lambda w: ("CHW", 3, (7, w + 3), (3, 4), {})),
    "parts, channels last": ("adaptive_avg_pool", lambda w: ("HWC", w, (7, 9), (4, 5), {})),
    "parts, more than elements": ("adaptive_avg_pool", lambda w: ("CW", 3, (w,), (w + 2,), {})),
}
# Around the lanes of every vector: sums and many results have 8 bytes, or 4.
LANES = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33]
RESULTS = {"float32": [None, "float64"], "float64": [None]}


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
@pytest.mark.parametrize("path", AVERAGES)
def test_averages_touch_nothing_beyond_the_pages(path, name, guarded_memory):
    memories = [guarded_memory(1 << 19) for _ in "xy"]
    function, drawn = AVERAGES[path]
    rng = random.Random(f"{path}/{name}")
    for width, kind in zip(rng.sample(LANES, 2), ("quarters", "finite"), strict=True):
        layout, channels, sizes, window, attributes = drawn(width)
        shape = cases.array_shape(layout, 2, channels, sizes)
        values = cases.summands(shape, name, kind, width)
        numerics = rng.choice(["exact", "sequential", "pairwise"])
        result = rng.choice(RESULTS.get(name, [None, "float32", "float64"]))
        given = {**attributes, "layout": layout, "numerics": numerics}
        y = getattr(_reference, function)(values, window, dtype=result, **given)
        for build, threads in zip(cases.BUILDS, (1, 2, 1), strict=False):
            with running.using(build):
                make = getattr(fastpool, f"plan_{function}")
                given |= {"num_threads": threads, "result_dtype": result}
                plan = make(shape, values.dtype, window, **given)
                for at, gaps in (("end", False), ("start", False), ("end", True), ("start", True)):
                    x, out = (
                        at_a_page(memory, array.shape, array.dtype, at, gaps)
                        for memory, array in zip(memories, (values, y), strict=True)
                    )
                    x[...] = values
                    plan(x, out)
                    cases.assert_same(out, y, f"{build}, width {width}, {at}, {given}")
                    assert x.tobytes() == values.tobytes()
                    for memory in memories:
                        memory.check()


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("width", [1, 7, 10, 100, 127, 129, 1000])
def test_rows_of_one_window_are_read_in_place(width, name, guarded_memory):
    """Signals as far apart as rows of sums are in scratch, where a vector may be read after one."""
    base = guarded_memory(1 << 19).array((1, 40, width + 64), name, "end")
    base[...] = cases.summands(base.shape, name, "finite", width)
    x = base[..., 64:]
    expected = _reference.global_avg_pool(x, layout="NCW")
    for build in cases.BUILDS:
        with running.using(build):
            y = fastpool.global_avg_pool(x, layout="NCW", num_threads=1)
        cases.assert_same(y, expected, build)


@pytest.mark.parametrize("func", ["max", "mode", "median", "mean", "std", "count"])
@pytest.mark.parametrize("name", ["uint8", "int16", "float32", "int64"])
def test_blocks_touch_nothing_beyond_the_pages(func, name, isa, guarded_memory):
    if func == "mode" and name == "float32":
        pytest.skip("floats have no mode")
    memories = [guarded_memory(1 << 19) for _ in "xyw"]
    for width in (1, 31, 63, 64, 65, 130):
        for block in ((2, 2), (1, 4), (3, 3), (9, 8), (1, 1)):
            shape = 2 * block[0] + 1, width * block[1]
            values = cases.values(shape, name, "ties", width)
            where = np.random.default_rng(width).random(shape) < 0.8
            more = {"nodata": 1, "num_threads": 1 + width % 2}
            expected = _reference.block_reduce(values, block, func, nodata=1, where=where)
            for at in ("end", "start"):
                x, out, mask = (
                    memory.array(array.shape, array.dtype, at)
                    for memory, array in zip(memories, (values, expected, where), strict=True)
                )
                x[...], mask[...] = values, where
                fastpool.block_reduce(x, block, func, where=mask, out=out, **more)
                if func == "std":
                    np.testing.assert_allclose(out, expected, rtol=1e-6)
                else:
                    cases.assert_same(out, expected, f"{block}, width {width}, {at}")
                for memory in memories:
                    memory.check()
