"""Adaptive and global maxima: windows that differ in length, and one window over a plane.

Expected results are the slow twin's. Plans, tiles and guard pages are here too, because no other
test has irregular axes.
"""

import math
import pickle
import random
import sys
from dataclasses import replace

import numpy as np
import pytest

import cases
import fastpool
import limits
from fastpool import _reference
from fastpool._planning.geometry import AdaptiveAxis, Axis
from fastpool._running import strategies


def check(x, output_size, what="", **attributes):
    """Compare a call on one and on three threads with the slow twin."""
    expected = _reference.adaptive_max_pool(x, output_size, **attributes)
    for threads in (1, 3):
        got = fastpool.adaptive_max_pool(x, output_size, num_threads=threads, **attributes)
        assert_all_same(got, expected, f"{x.shape} {output_size} {attributes} {what}")


def assert_all_same(got, expected, what=""):
    if not isinstance(expected, tuple):
        got, expected = (got,), (expected,)
    for one, two in zip(got, expected, strict=True):
        cases.assert_same(one, two, what)


def index_rules(rng, layout):
    """Rules of indices that a layout allows."""
    return {
        "return_indices": True,
        "index_axis": rng.randint(0, ("N" in layout) + ("C" in layout)),
        "index_dtype": rng.choice(["int32", "int64"]),
        "index_layout": rng.choice(["NCHW", "NHWC"]) if layout.endswith("C") else "NCHW",
    }


MOST = {1: 200, 2: 40, 3: 12, 4: 6}  # spatial axes -> extent


def drawn(rng):
    """A shape, an output size and attributes."""
    rank = rng.choice([1, 2, 2, 2, 3, 3, 4])
    sizes = [rng.randint(1, MOST[rank]) for _ in range(rank)]
    outs = [rng.randint(rng.random() > 0.1, rng.choice([s, s, 2 * s + 3])) for s in sizes]
    layout = rng.choice(cases.layouts(rank))
    channels = rng.choice([1, 2, 3, 5, 16, 33, 70])
    shape = cases.array_shape(layout, rng.choice([0, 1, 2, 3]), channels, sizes)
    attributes = {"layout": layout, "nan": rng.choice(["propagate", "ignore"])}
    if rng.random() < 0.5:
        attributes |= index_rules(rng, layout)
    return shape, outs, attributes


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_random_output_sizes(name, isa):
    rng = random.Random(name)
    for seed in range(60):
        shape, outs, attributes = drawn(rng)
        x = cases.values(shape, name, rng.choice(cases.VALUE_KINDS), seed)
        how = rng.choice(cases.ARRANGEMENTS) if math.prod(shape) else "contiguous"
        check(cases.arranged(x, how), outs, how, **attributes)


# Rows that are cut into groups of outputs, and windows that are folded.
LONG = [
    ("W", (30001,), 4),
    ("W", (30001,), 2000),
    ("WC", (9001, 3), 7),
    ("WC", (700, 50), 3),
    ("HW", (150, 700), 2),
    ("HW", (3, 9000), (2, 700)),
    ("HW", (9000, 3), (4, 2)),
    ("HWC", (70, 9, 1100), (4, 2)),
    ("NHWC", (2, 131, 130, 2), 3),
    ("CDHW", (2, 67, 5, 5), (2, 3, 2)),
    ("DHW", (3, 5, 4001), (2, 3, 7)),
]


@pytest.mark.parametrize("name", ["uint8", "float16", "float32", "float64", "uint64"])
@pytest.mark.parametrize(("layout", "shape", "output_size"), LONG, ids=str)
def test_long_windows(layout, shape, output_size, name, isa):
    for seed, kind in enumerate(["bits", "ties", "lowest"]):
        x = cases.values(shape, name, kind, seed)
        for indices in (False, True):
            check(x, output_size, kind, layout=layout, return_indices=indices)


def test_a_nan_anywhere(isa):
    for output_size in ((3, 2), (6, 9), (4, 7)):
        for at in range(5 * 7):
            x = np.arange(35, dtype=np.float32).reshape(1, 1, 5, 7)
            x.flat[at] = np.nan
            for nan in ("propagate", "ignore"):
                check(x, output_size, f"nan at {at}", nan=nan, return_indices=True)
                check(x, output_size, f"nan at {at}", nan=nan)


@pytest.mark.parametrize("name", ["uint8", "float16", "float32", "int64"])
@pytest.mark.parametrize("indices", [False, True])
def test_nothing_beyond_the_pages_is_touched(indices, name, isa, guarded_memory):
    memories = [guarded_memory(1 << 19) for _ in "xyz"]
    rng = random.Random(name)
    for seed in range(60):
        shape, outs, attributes = drawn(rng)
        values = cases.values(shape, name, rng.choice(["ties", "special"]), seed)
        attributes |= {"return_indices": True, "index_dtype": rng.choice(["int32", "int64"])}
        y, z = _reference.adaptive_max_pool(values, outs, **attributes)
        if max(y.size, values.size) > 1 << 16:
            continue
        for at in ("end", "start"):
            arrays = [
                memory.array(array.shape, array.dtype, at)
                for memory, array in zip(memories, (values, y, z), strict=True)
            ]
            arrays[0][...] = values
            attributes["return_indices"] = indices
            into = dict(zip(("out", "out_indices"), arrays[1 : 2 + indices], strict=False))
            fastpool.adaptive_max_pool(arrays[0], outs, **into, **attributes)
            for got, expected in zip(into.values(), (y, z), strict=False):
                cases.assert_same(got, expected, f"{shape} {outs} {attributes} {at}")
            for memory in memories:
                memory.check()


def test_outputs_with_gaps(isa):
    x = cases.values((2, 3, 13, 11), "float32", "special", 1)
    for layout in ("NCHW", "NHWC"):
        expected = _reference.adaptive_max_pool(x, (5, 4), layout=layout, return_indices=True)
        into = [np.zeros([2 * n for n in array.shape], array.dtype) for array in expected]
        into = [array[tuple(slice(n) for n in expected[0].shape)] for array in into]
        fastpool.adaptive_max_pool(
            x, (5, 4), layout=layout, return_indices=True, out=into[0], out_indices=into[1]
        )
        assert_all_same(tuple(into), expected, layout)


def test_output_sizes_that_divide_the_input(isa):
    """Such windows are regular: one stride, one length."""
    x = cases.values((2, 3, 12, 15), "float32", "special", 0)
    for indices in (False, True):
        expected = fastpool.max_pool(x, (3, 5), strides=(3, 5), return_indices=indices)
        got = fastpool.adaptive_max_pool(x, (4, 3), return_indices=indices)
        assert_all_same(got, expected)
        expected = fastpool.global_max_pool(x, return_indices=indices)
        assert_all_same(fastpool.adaptive_max_pool(x, 1, return_indices=indices), expected)
    cases.assert_same(fastpool.adaptive_max_pool(x, (None, None)), x)
    plan = fastpool.plan_adaptive_max_pool(x.shape, "float32", (4, 3))
    plan(x)
    assert plan._prepared.pooling.strategy != "irregular"


# ------------------------------------------------------------------------------------------- plans


def test_tiles_of_plans(isa):
    rng = random.Random(5)
    for seed in range(40):
        shape, outs, attributes = drawn(rng)
        x = cases.values(shape, "int32", "ties", seed)
        plan = fastpool.plan_adaptive_max_pool(shape, "int32", outs, **attributes)
        expected = _reference.adaptive_max_pool(x, outs, **attributes)
        ends = [sorted(rng.randint(0, n) for _ in "ab") for n in plan.output_shape]
        part = plan.tile(tuple(slice(*pair) for pair in ends))
        got = part.plan(x[part.read])
        whole = expected if isinstance(expected, tuple) else (expected,)
        for one, two in zip(got if plan.return_indices else (got,), whole, strict=True):
            cases.assert_same(one, np.ascontiguousarray(two[part.write]), f"{shape} {outs} {ends}")


def test_plans_travel():
    x = cases.values((1, 2, 7, 10), "float32", "ties", 0)
    plan = fastpool.plan_adaptive_max_pool(x.shape, "float32", 3, return_indices=True)
    for same in (pickle.loads(pickle.dumps(plan)), replace(plan)):
        assert same == plan
        assert_all_same(same(x), plan(x))
    tile = plan.tile((slice(None), slice(None), slice(1, 3))).plan
    assert pickle.loads(pickle.dumps(tile)) == tile


def test_axes_that_no_kernel_takes_are_refused():
    plan = fastpool.plan_adaptive_max_pool((7, 10), "float32", 3, layout="HW")
    padded = Axis(7, 3, 3, 3, 1, 1, 1)
    with pytest.raises(ValueError, match="padding or a dilation next to an irregular axis"):
        replace(plan, axes=(padded, plan.axes[1]), given=None)
    with pytest.raises(ValueError, match="is no axis"):
        replace(plan, axes=(AdaptiveAxis(7, 3, 8, 3), plan.axes[1]), given=None)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is Linux's")
def test_output_sizes_beyond_memory():
    x = np.zeros((1, 1, 7), np.uint8)
    for power in (40, 57, 58, 60, 61):
        with cases.bounds(), pytest.raises(MemoryError):
            fastpool.adaptive_max_pool(x, 2**power)
    with cases.bounds(), pytest.raises(ValueError, match="output"):
        fastpool.adaptive_max_pool(x, 2**62 + 1)


def test_the_strategy(isa):
    for layout, indices in ((a, b) for a in ("NCHW", "NHWC") for b in (False, True)):
        shape = cases.array_shape(layout, 1, 4, (7, 6))
        more = {"layout": layout, "return_indices": indices}
        plan = fastpool.plan_adaptive_max_pool(shape, "float32", (7, 4), **more)
        plan(np.zeros(shape, np.float32))
        work = plan._prepared.work
        assert work.strategy == "irregular"
        others = [f.__name__ for f in strategies.STRATEGIES[indices, layout == "NHWC"]]
        assert [name for name, _ in work.declined] == others[:-1]
        assert {reason for _, reason in work.declined} == {
            "the windows of an axis differ in length"
        }


# ------------------------------------------------------------------------------------------ global


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_global_maxima(name, isa):
    rng = random.Random(name)
    for seed in range(25):
        rank = rng.choice([1, 2, 3, 4])
        layout = rng.choice(cases.layouts(rank))
        sizes = [rng.randint(1, MOST[rank]) for _ in range(rank)]
        shape = cases.array_shape(layout, rng.choice([0, 1, 3]), rng.choice([0, 1, 3, 40]), sizes)
        x = cases.values(shape, name, rng.choice(cases.VALUE_KINDS), seed)
        more = {"layout": layout, "nan": rng.choice(["propagate", "ignore"])}
        if rng.random() < 0.5:
            more |= index_rules(rng, layout)
        for keepdims in (True, False):
            expected = _reference.global_max_pool(x, keepdims=keepdims, **more)
            if not isinstance(expected, tuple):
                expected = (expected,)
            names = ("out", "out_indices")[: len(expected)]
            into = {key: np.empty_like(array) for key, array in zip(names, expected, strict=True)}
            for given in ({}, into):
                got = fastpool.global_max_pool(x, keepdims=keepdims, **more, **given)
                got = got if isinstance(got, tuple) else (got,)
                assert all(a is b for a, b in zip(got, given.values(), strict=False))
                assert_all_same(got, expected, f"{shape} {more} keepdims {keepdims}")


def test_bad_global_pooling():
    with pytest.raises(ValueError, match="x: expected at least one element along each spatial"):
        fastpool.global_max_pool(np.zeros((1, 2, 0, 3), np.float32))
    with pytest.raises(ValueError, match="output_size: expected 0 for an axis without elements"):
        fastpool.adaptive_max_pool(np.zeros((1, 2, 0, 3), np.float32), 2)
    x = np.zeros((2, 3, 4, 4), np.float32)
    with pytest.raises(ValueError, match=r"out: expected shape \(2, 3\), got \(2, 3, 1, 1\)"):
        fastpool.global_max_pool(x, keepdims=False, out=np.zeros((2, 3, 1, 1), np.float32))
    with pytest.raises(ValueError, match=r"out: expected shape \(2, 3, 1, 1\), got \(2, 3\)"):
        fastpool.global_max_pool(x, out=np.zeros((2, 3), np.float32))
    with pytest.raises(TypeError, match="out_indices: expected dtype int64"):
        out = np.zeros((2, 3), np.int32)
        fastpool.global_max_pool(x, keepdims=False, return_indices=True, out_indices=out)
    with pytest.raises(ValueError, match="out_indices: expected None without return_indices=True"):
        fastpool.global_max_pool(x, keepdims=False, out_indices=np.zeros((2, 3), np.int64))


REPEATED = [
    ((3,), (100,), "W"),
    ((1, 7), (50, 3), "HW"),
    ((2, 5, 1, 9), (3, 40, 11), "CDHW"),
    ((2, 1, 4, 3), (9, 17), "NHWC"),
    ((2, 0, 4, 3), (9, 17), "NCHW"),
]


@pytest.mark.parametrize("name", ["float32", "uint8"])
def test_no_windows_next_to_windows_that_repeat(name, isa):
    for sizes in [(0, 9), (9, 0), (0, 0)]:
        check(cases.values((1, 1), name, "special", 3), sizes, layout="HW", return_indices=True)
        y = fastpool.adaptive_avg_pool(np.ones((1, 1), np.float32), sizes, layout="HW")
        assert y.shape == sizes


@pytest.mark.parametrize(("shape", "sizes", "layout"), REPEATED, ids=str)
@pytest.mark.parametrize("name", ["float32", "float16", "uint8", "int64"])
def test_windows_that_repeat_are_pooled_once(name, shape, sizes, layout, isa):
    """Of whole poolings and of parts; into arrays of any strides, or with nothing written."""
    x = cases.values(shape, name, "special", 3)
    for function, more in (
        ("adaptive_max_pool", {}),
        ("adaptive_avg_pool", {"numerics": "pairwise"}),
        ("adaptive_avg_pool", {"numerics": "exact"}),
    ):
        expected = getattr(_reference, function)(x, sizes, layout=layout, **more)
        cases.assert_same(getattr(fastpool, function)(x, sizes, layout=layout, **more), expected)
    check(x, sizes, layout=layout, return_indices=True)
    plan = fastpool.plan_adaptive_max_pool(shape, name, sizes, layout=layout, return_indices=True)
    y, z = plan(x)
    assert "windows that repeat are pooled once" in plan.explain().replace("\n          ", " ")
    out, places = np.zeros((*y.shape, 2), y.dtype)[..., 1], np.zeros((*z.shape, 3), z.dtype)[..., 1]
    assert plan(x, out, places)[0] is out
    cases.assert_same(out, y)
    cases.assert_same(places, z)
    ends = [(n // 3, n - n // 4) for n in y.shape]
    part, read, write = plan.tile(tuple(slice(*pair) for pair in ends))
    for got, whole in zip(part(x[read]), (y, z), strict=True):
        cases.assert_same(got, whole[write])
    with pytest.raises(ValueError, match="^out_indices: "):
        plan(x, out, places[..., :1])


def test_time_of_many_outputs_over_long_windows():
    """The windows of one axis were pooled anew for each output of another: 83 s."""
    x = np.ones((1, 2, 250_000, 1, 1), np.float32)
    with limits.quick(3):
        assert (fastpool.adaptive_max_pool(x, (4, 10_000, 4)) == 1).all()
    for numerics in ("pairwise", "exact"):
        with limits.quick(3):
            y = fastpool.adaptive_avg_pool(x, (4, 10_000, 4), numerics=numerics)
        assert (y == 1).all()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "float32", "float64"])
def test_outputs_next_to_one_another_along_any_axis(dtype, isa):
    """Planes of one window each are divided as one row, by the divisor of their windows."""
    for shape, sizes in [
        ((1, 3, 2, 3, 2, 2), (2, 4, 1, 1)),
        ((1, 8, 3, 2, 2), (4, 1, 1)),
        ((2, 9, 4, 3, 2, 1), (4, 2, 1, 1)),
        ((20, 3, 7, 2), (2, 1)),
    ]:
        x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        expected = _reference.adaptive_avg_pool(x, sizes)
        for axis in range(x.ndim):
            out = np.moveaxis(np.empty_like(np.moveaxis(expected, axis, -1), order="C"), -1, axis)
            cases.assert_same(fastpool.adaptive_avg_pool(x, sizes, out=out).copy(), expected)
