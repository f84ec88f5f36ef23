"""Windows with indices that are pooled as composites, and one window over pixels: the slow twin's.

Composites are made of tiles, so their places are tested where tiles end, where 16 bits end, and in
every index that rules can ask for.
"""

import functools
import itertools
import random

import numpy as np
import pytest

import cases
import fastpool
from codes import tables
from fastpool import _reference
from fastpool._planning.dtypes import ITEMSIZE
from fastpool._running import composites, planes, strategies, work
from fastpool._running.instruction_sets import Build
from fastpool._running.work import make_work, narrower, problem_of

INDEXING = [
    {},
    {"index_dtype": "int32"},
    {"storage_order": 1},
    {"index_axis": 1, "index_dtype": "int32"},
]
OTHERS = "-one_window,-planes_as_pixels,-taps,-whole_plane"
NAMES = [name for name in cases.DTYPE_NAMES if ITEMSIZE[name] < 8]


def check(plan, x, attributes, outs=()):
    """Compare a call with the slow twin, into given arrays if there are any."""
    want = _reference.max_pool(x, plan.kernel_shape, **attributes)
    got = plan(x, **dict(zip(("out", "out_indices"), outs, strict=False)))
    if not attributes.get("return_indices"):
        got, want = (got,), (want,)
    for one, two in zip(got, want, strict=True):
        cases.assert_same(one, two, f"{x.shape}, {plan.kernel_shape}, {attributes}")


def planned(monkeypatch, shape, dtype, kernel, **attributes):
    """Return a plan that has run by composites, unless a window has no element."""
    monkeypatch.setenv("FASTPOOL_STRATEGY", OTHERS)
    plan = fastpool.plan_max_pool(shape, dtype, kernel, **attributes)
    plan(np.zeros(shape, dtype))
    monkeypatch.delenv("FASTPOOL_STRATEGY")
    return plan


def windows(rng, rank):
    """Return sizes, kernel and attributes that composites take, channels first or few of them."""
    sizes = [rng.randint(1, {1: 200, 2: 40, 3: 12}[rank]) for _ in range(rank)]
    axes = []
    for size in sizes:
        kernel, dilation = rng.choice([1, 2, 3, 9, 13, size]), rng.choice([1, 1, 2])
        dilation = 1 if rank == 3 and not axes else dilation
        begin, end = rng.randint(0, kernel), rng.randint(0, 4)
        end += max(0, (kernel - 1) * dilation + 1 - size - begin - end)
        axes.append((kernel, rng.choice([1, 2, 3, 4, 5, kernel]), dilation, begin, end))
    kernels, strides, dilations, begins, ends = zip(*axes, strict=True)
    return sizes, kernels, {"strides": strides, "dilations": dilations, "pads": begins + ends}


def drawn(rng, name, seed):
    """Return an array, a kernel and attributes."""
    rank = rng.choice([1, 2, 2, 2, 3])
    sizes, kernel, attributes = windows(rng, rank)
    layout = rng.choice(cases.layouts(rank)[:2])
    shape = cases.array_shape(layout, rng.choice([1, 2]), rng.choice([1, 2, 3, 7, 16]), sizes)
    attributes |= {"layout": layout, "nan": rng.choice(["propagate", "ignore"])}
    attributes |= {"return_indices": True} | INDEXING[seed % 4]
    return cases.values(shape, name, rng.choice(cases.VALUE_KINDS), seed), kernel, attributes


@pytest.mark.parametrize("name", NAMES)
def test_any_window(name, isa, monkeypatch):
    rng, taken = random.Random(name), 0
    for seed in range(25):
        x, kernel, attributes = drawn(rng, name, seed)
        more = {"num_threads": rng.choice([1, 3]), **attributes}
        plan = planned(monkeypatch, x.shape, x.dtype, kernel, **more)
        taken += plan._prepared.pooling.strategy == "composites"
        check(plan, x, attributes)
        wider = np.zeros((*x.shape[:-1], x.shape[-1] + 3), x.dtype)
        part = wider[..., 1:-2][:, ::-1]
        part[...] = x
        check(plan, part, attributes)
    assert taken > 12


@pytest.mark.parametrize("name", ["uint8", "float16", "int16", "float32"])
def test_nothing_beyond_the_pages_is_touched(name, isa, guarded_memory, monkeypatch):
    memories, rng = [guarded_memory(1 << 20) for _ in "xyz"], random.Random(name)
    for seed, at in itertools.product(range(10), ("end", "start")):
        values, kernel, attributes = drawn(rng, name, seed)
        attributes |= {"num_threads": 1}
        plan = planned(monkeypatch, values.shape, values.dtype, kernel, **attributes)
        del attributes["num_threads"]
        x = memories[0].array(values.shape, values.dtype, at)
        x[...] = values
        dtypes = values.dtype, np.dtype(attributes.get("index_dtype", "int64"))
        outs = [
            memory.array(plan.output_shape, dtype, at)
            for memory, dtype in zip(memories[1:], dtypes, strict=True)
        ]
        check(plan, x, attributes, outs)
        memories[1].check()
        memories[2].check()


# Planes of several tiles, and places around those that 16 bits hold.
LARGE = [
    ((1, 1, 1, 65535), (1, 9), {"strides": (1, 3)}),
    ((1, 1, 1, 65539), (1, 9), {"strides": (1, 3), "pads": (0, 4, 0, 4)}),
    ((1, 2, 300, 301), (11, 12), {"strides": (2, 3), "pads": 5}),
    ((1, 1, 255, 257), (255, 256), {}),
    ((1, 1, 257, 257), (256, 255), {"pads": (3, 4, 5, 6)}),
    ((1, 1, 4, 20011), (3, 40), {"strides": (1, 40), "pads": (2, 3, 0, 1)}),
    ((1, 1, 9, 90, 91), (5, 6, 7), {"strides": (2, 5, 6), "pads": (2, 1, 0) * 2}),
    ((1, 200, 300, 3), (9, 9), {"pads": 4, "layout": "NHWC"}),
    ((1, 33, 34, 40), (20, 21), {"strides": 3, "layout": "NHWC", "index_layout": "NHWC"}),
    ((1, 1, 40, 41), (9, 9), {"pads": (400, 500, 400, 500), "strides": 7}),  # without elements
]


@functools.cache
def large(seed):
    """Return three codes in many places, and the greatest of every window with its place."""
    shape, kernel, attributes = LARGE[seed]
    attributes = {"return_indices": True, "layout": cases.layouts(len(kernel))[0], **attributes}
    codes = np.random.default_rng(seed).choice(np.array([0, 30, 59], np.int8), shape)
    greatest, places = _reference.max_pool(codes, kernel, **attributes)
    return kernel, attributes, codes, np.where(places < 0, -1, greatest), places


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("name", ["uint8", "float16", "int32"])
def test_several_tiles(name, num_threads, isa, monkeypatch):
    values, _ = tables(name)[0]
    for kernel, attributes, codes, *expected in map(large, range(len(LARGE))):
        plan = planned(
            monkeypatch, codes.shape, values.dtype, kernel, num_threads=num_threads, **attributes
        )
        y, indices = plan(values[codes])
        what = f"{codes.shape}, {kernel}, {attributes}"
        cases.assert_same(y, values[expected[0]], what)
        cases.assert_same(indices, expected[1], what)
        assert plan._prepared.pooling.strategy in ("composites", "running_maxima"), what


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_a_nan_at_every_element(name, isa, monkeypatch):
    for shape, layout in (((1, 2, 7, 19), "NCHW"), ((1, 6, 7, 3), "NHWC")):
        base = cases.values(shape, name, "ties", 1)
        base[base != base] = 0
        for nan in ("propagate", "ignore"):
            attributes = {"layout": layout, "nan": nan, "return_indices": True, "strides": 3}
            plan = planned(monkeypatch, shape, base.dtype, (4, 4), num_threads=1, **attributes)
            for place in range(base.size):
                x = base.copy()
                x.flat[place] = np.nan
                check(plan, x, attributes)
            assert plan._prepared.pooling.strategy == "composites"


WHOLE = [
    ((2, 9, 9, 13), (9, 9)),
    ((1, 5, 30, 2), (5, 30)),
    ((1, 40, 41, 3), (40, 41)),
    ((3, 8, 9, 700), (8, 9)),
    ((1, 5, 4, 7, 32), (5, 4, 7)),
    ((1, 5000, 5), (5000,)),
]


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_one_window_over_pixels(name, isa, guarded_memory, monkeypatch):
    """Chosen wherever it can pool, also where other strategies take less time."""

    def whole_pixels(work, build):
        chosen = work.strategy == "whole_pixels"
        return None if chosen else planes.against_one_window(work, 16) or planes.in_one_window(work)

    monkeypatch.setattr(work, "IMAGE_BYTES", 0)  # (images of a batch would be one)
    _, *others = strategies.STRATEGIES[False, True]
    monkeypatch.setitem(strategies.STRATEGIES, (False, True), (whole_pixels, *others))
    memories, rng = [guarded_memory(1 << 20) for _ in "xy"], random.Random(name)
    for seed, (shape, kernel) in enumerate(WHOLE):
        layout = cases.layouts(len(kernel))[1]
        values = cases.values(shape, name, rng.choice(cases.VALUE_KINDS), seed)
        if values.nbytes > 1 << 20:
            continue
        attributes = {"layout": layout, "nan": ("propagate", "ignore")[seed % 2]}
        plan = fastpool.plan_max_pool(shape, values.dtype, kernel, num_threads=2, **attributes)
        for at in ("end", "start"):
            x, y = (
                memory.array(part, values.dtype, at)
                for memory, part in zip(memories, (shape, plan.output_shape), strict=True)
            )
            x[...] = values
            check(plan, x, attributes, [y])
            memories[1].check()
        wider = np.zeros((*shape[:-1], shape[-1] + 2), values.dtype)
        part = wider[..., 1:-1][:, ::-1]
        part[...] = values
        check(plan, part, attributes)
        assert plan._prepared.pooling.strategy == "whole_pixels"


@pytest.mark.parametrize(
    ("shape", "dtype", "kernel", "attributes"),
    [
        ((600, 600), "uint8", (240, 240), {}),
        ((700, 700), "float16", (200, 200), {}),
        ((3000, 100), "int16", (600, 90), {}),
        ((44, 5423), "float16", (9, 2), {"dilations": (1, 5050), "strides": (3, 2)}),
        ((20, 11839, 2), "uint8", (9, 3), {"dilations": (1, 3573), "strides": 2}),
    ],
)
def test_tiles_share_few_elements(shape, dtype, kernel, attributes, monkeypatch):
    """Tiles small enough for places of 16 bits would have one output, and share all elements."""
    attributes = {"layout": "HWC"[: len(shape)], "return_indices": True, **attributes}
    plan = fastpool.plan_max_pool(shape, dtype, kernel, **attributes)
    work = plan._prepared_for(np.dtype(dtype)).work
    under = 1
    for window, outputs in zip(work.windows, work.tile[:2], strict=True):
        under *= -(-window.out // outputs) * min(window.span(outputs), window.size)
    assert work.axes or under < 10 * shape[0] * shape[1]
    x = cases.values(shape, dtype, cases.VALUE_KINDS[0], 5)
    monkeypatch.setenv("FASTPOOL_STRATEGY", "-composites")
    for one, two in zip(plan(x), fastpool.max_pool(x, kernel, **attributes), strict=True):
        cases.assert_same(one, two)


@pytest.mark.parametrize("places", sorted(composites.MOST_PLACES.values()))
def test_quotients_of_places_are_exact(places):
    """As the kernels make them, in float32: the first and the last column of every row."""
    for cols in [*range(1, 40), *range(40, 4000, 97), 2**16 - 1, 2**20 + 1, places]:
        rows = np.arange(places // cols)
        for col in (0, cols - 1):
            place = (rows * cols + col).astype(np.float32) + np.float32(0.5)
            assert np.array_equal((place * np.float32(1 / cols)).astype(np.int64), rows), cols


def test_windows_too_long_for_tiles(isa):
    """Windows of 35,241 taps, mostly on padding: running maxima in place of tiles left scratch."""
    x = np.random.default_rng(0).integers(-9, 9, 7048).astype(np.int32)
    attributes = {"layout": "W", "strides": 7048, "pads": (34095, 37306), "return_indices": True}
    y, z = fastpool.max_pool(x, 35241, **attributes)
    lowest = np.iinfo(np.int32).min
    for o, start in enumerate(range(-34095, 7 * 7048 - 34095, 7048)):
        window = x[max(0, start) : max(0, start + 35241)]
        assert y[o] == (window.max() if window.size else lowest)
        assert z[o] == (max(0, start) + window.argmax() if window.size else -1)


@pytest.mark.parametrize(
    ("shape", "dtype", "kernel", "attributes"),
    [
        ((47, 300), "float16", 235, {"strides": 47, "dilations": 2, "pads": (234, 435)}),
        (
            *((86, 31, 10, 2), "int32", (172, 3, 5)),
            {"strides": (1, 1, 1), "dilations": (1, 5, 1), "pads": (86, 1, 1, 86, 0, 0)},
        ),
    ],
)
def test_smaller_tiles_are_left_for_running_maxima(shape, dtype, kernel, attributes):
    """Pairs would take the tiles and keys of composites, which are too narrow for their places."""
    layout = {2: "WC", 4: "DHWC"}[len(shape)]
    attributes = {"layout": layout, "return_indices": True, **attributes}
    work = make_work(problem_of(fastpool.plan_max_pool(shape, dtype, kernel, **attributes)))
    names = []
    while work is not None:
        work = strategies.decide(work, Build(32, masks=False))
        names.append(work.strategy)
        assert work.composed == (work.strategy == "composites")
        work = narrower(work)
    assert names[0] == "composites" and names[-1] == "running_maxima"
