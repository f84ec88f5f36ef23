"""Windows of any length give the right results, in time and scratch proportional to the arrays."""

import math
import random

import numpy as np
import pytest

import cases
import fastpool
import limits
from fastpool import _reference
from fastpool._running import prepare, running_maxima
from fastpool._running.work import make_work, problem_of

MIB = 1 << 20


def plan_of(shape, dtype, kernel, **attributes):
    return fastpool.plan_max_pool(shape, cases.dtype(dtype), kernel, **attributes)


def form_of(plan):
    """The way that a plan takes, without running it."""
    return prepare.PreparedPool(plan, np.dtype(plan.dtype)).pooling.strategy


# --------------------------------------------------------------------------- against the slow twin


def drawn_case(rng):
    """A geometry with windows, strides and pads on both sides of the input's extents."""
    rank = rng.choice([1, 2, 2, 3, 4])
    most = {1: 60, 2: 14, 3: 7, 4: 4}[rank]
    sizes = [rng.randint(1, most) for _ in range(rank)]
    layout = rng.choice(cases.layouts(rank)) if rank < 4 else rng.choice(["NCHW", "NHWC"])
    axes = []
    for size in sizes:
        kernel = rng.choice([1, 2, 3, rng.randint(1, 2 * most)])
        dilation = rng.choice([1, 1, 2, rng.randint(1, most)])
        begin, end = (rng.choice([0, 0, rng.randint(0, 2 * most)]) for _ in range(2))
        end += max(0, (kernel - 1) * dilation + 1 - size - begin - end)
        axes.append((kernel, rng.choice([1, 1, 2, rng.randint(1, most)]), dilation, begin, end))
    kernels, strides, dilations, begins, ends = zip(*axes, strict=True)
    physical = layout.endswith("C") and rng.random() < 0.5
    attributes = {
        "strides": strides,
        "dilations": dilations,
        "pads": begins + ends,
        "layout": layout,
        "nan": rng.choice(["propagate", "ignore"]),
        "index_layout": "NHWC" if physical else "NCHW",
        "index_dtype": rng.choice(["int64", "int32"]),
        "storage_order": 0 if physical else rng.randint(0, 1),
    }
    shape = cases.array_shape(layout, rng.choice([1, 2]), rng.choice([1, 2, 3, 19]), sizes)
    return shape, rng.choice(cases.DTYPE_NAMES), kernels, attributes


@pytest.mark.parametrize("pairs", [0, 1, 64, 300, 2000, running_maxima.SCRATCH_PAIRS])
def test_every_geometry_by_running_maxima(pairs, isa, monkeypatch):
    """Also with scratch for few pairs: tiles of one output, kept suffixes, queues."""
    monkeypatch.setenv("FASTPOOL_STRATEGY", "-planes_as_pixels,-one_window")
    monkeypatch.setattr(running_maxima, "pays", lambda work: True)
    monkeypatch.setattr(running_maxima, "SCRATCH_PAIRS", pairs)
    monkeypatch.setattr(running_maxima, "SHORT", 64 if pairs == running_maxima.SCRATCH_PAIRS else 0)
    rng = random.Random(pairs)
    for seed in range(60):
        shape, dtype, kernel, attributes = drawn_case(rng)
        x = cases.values(shape, dtype, rng.choice(cases.VALUE_KINDS), seed)
        y, z = _reference.max_pool(x, kernel, return_indices=True, **attributes)
        for indices in (False, True):
            plan = plan_of(
                shape,
                dtype,
                kernel,
                return_indices=indices,
                num_threads=1 + seed % 2,
                **attributes,
            )
            results = plan(x) if indices else (plan(x),)
            assert plan._prepared.pooling.strategy == "running_maxima"
            what = f"{seed}: {dtype} {shape}, kernel {kernel}, {attributes}"
            for got, expected in zip(results, (y, z), strict=False):
                cases.assert_same(got, expected, what)


@pytest.mark.parametrize("dilation", [1, 3])
@pytest.mark.parametrize("stride", [1, 4])
def test_long_rows_against_accumulated_maxima(stride, dilation, isa):
    """Windows far longer than the row hold a prefix, a suffix or all of it."""
    x = cases.values((3, 4000), "float32", "ties", 1)
    taps = 70_000
    pads = (taps - 1) * dilation
    plan = plan_of(
        x.shape,
        "float32",
        taps,
        strides=stride,
        dilations=dilation,
        pads=pads,
        layout="NW",
        return_indices=True,
    )
    y, z = plan(x)
    assert plan._prepared.pooling.strategy == "running_maxima"
    for o in [*range(0, y.shape[1], 997), 1, 2, y.shape[1] - 1]:
        start = o * stride - pads
        first = max(start, start % dilation)
        window = x[:, first : start + taps * dilation : dilation]
        best = window.argmax(axis=1)
        cases.assert_same(y[:, o], window[np.arange(3), best], f"output {o}")
        assert (z[:, o] == np.arange(3) * 4000 + first + best * dilation).all()


# ------------------------------------------------------------------------------- time in proportion

# (shape, dtype, kernel, attributes): calls that took seconds to minutes, on inputs of at most 1 MB.
CLIFFS = {
    "a row": ((20_000,), "float32", 80_001, {"pads": 80_000}),
    "a row with indices": (
        (20_000,),
        "float32",
        80_001,
        {"pads": 80_000, "return_indices": True},
    ),
    "short with indices": (
        (6000,),
        "float32",
        70_000,
        {"pads": 69_999, "return_indices": True},
    ),
    "half of a long row": ((1 << 20,), "uint8", 1 << 19, {}),
    "half of a long column": ((1 << 18, 1), "float32", (1 << 17, 1), {"return_indices": True}),
    "few columns": ((1 << 17, 2), "float32", (65_537, 1), {"return_indices": True}),
    "dilated": ((1 << 18,), "float32", 1 << 17, {"dilations": 2, "return_indices": True}),
    "a leading axis": ((1, 1 << 18, 1, 1), "float32", (100_000, 1, 1), {"return_indices": True}),
    "leading windows": ((1, 8000, 5, 6), "float32", (4000, 2, 2), {"return_indices": True}),
    "rows of padding": (
        *((1, 40, 913, 1, 1), "float64", (1000, 1, 1)),
        {"pads": (0, 0, 0, 95, 1239, 0), "return_indices": True},
    ),
    "many leading axes": ((1, 1, *(2,) * 18), "float32", 2, {"pads": (0, 1) * 9 + (0,) * 18}),
    "padding between": ((1, 1, 1000), "float32", (1, 300_000), {"pads": (900, 299_999, 0, 0)}),
    "planes of one element": ((1 << 18, 1, 1), "float32", (1, 60_000), {"pads": (0, 30_000)}),
    "strides over nothing": ((1 << 18,), "float32", 3, {"strides": 1 << 20, "pads": 1 << 30}),
    "the longest window": (
        (30_000,),
        "float32",
        2**31 - 1,
        {"pads": 2**31 - 1, "strides": 2**20 + 1},
    ),
    "the widest window": (
        (16_000,),
        "float32",
        16_000,
        {"dilations": 134_000, "strides": 134_001, "pads": 15_999 * 67_000, "return_indices": True},
    ),
    "the longest stride": (
        (30_000,),
        "float32",
        2**17,
        {"dilations": 9999, "strides": 2**31 - 1, "pads": 2**17 * 5000},
    ),
    "jumping over the input": (
        (1000,),
        "float32",
        1 << 21,
        {"dilations": 1001, "pads": (1 << 21) * 1001 // 2},
    ),
}


@pytest.mark.parametrize("name", CLIFFS)
def test_no_geometry_takes_seconds(name, isa):
    """At most a second on one thread; a machine may be five times slower."""
    shape, dtype, kernel, attributes = CLIFFS[name]
    layout = {1: "W", 2: "HW", 3: "CHW", 4: "CDHW"}.get(len(shape), "NCHW")
    plan = plan_of(shape, dtype, kernel, layout=layout, num_threads=1, **attributes)
    x = cases.values(shape, dtype, "ties", 0)
    with limits.quick(5):
        plan(x)


@pytest.mark.parametrize("numerics", ["exact", "pairwise"])
@pytest.mark.parametrize("name", CLIFFS)
def test_no_mean_takes_seconds(name, numerics):
    """Also by digits, of elements of all exponents."""
    shape, dtype, kernel, attributes = CLIFFS[name]
    attributes = {k: v for k, v in attributes.items() if k != "return_indices"}
    layout = {1: "W", 2: "HW", 3: "CHW", 4: "CDHW"}.get(len(shape), "NCHW")
    more = {"layout": layout, "num_threads": 1, "numerics": numerics}
    plan = fastpool.plan_avg_pool(shape, dtype, kernel, **more, **attributes)
    x = cases.summands(shape, dtype, "finite", 0)
    with limits.quick(6):
        plan(x)


def test_places_at_the_limits():
    x = np.arange(10, dtype=np.int16)
    most = 2**31 - 1
    for number, attributes in (
        (3, {"strides": most, "pads": most}),
        (5, {"strides": most, "dilations": 2**29, "pads": most}),
        (3, {"strides": 2**29, "dilations": 2**30 - 1, "pads": most}),
        (most, {"strides": 7, "dilations": most, "auto_pad": "SAME_UPPER"}),
    ):
        attributes = {"return_indices": True, "layout": "W"} | attributes
        expected = _reference.max_pool(x, number, **attributes)
        results = fastpool.max_pool(x, number, **attributes)
        for got, wanted in zip(results, expected, strict=True):
            cases.assert_same(got, wanted, str(attributes))


# --------------------------------------------------------------------------------- bounded scratch


def drawn_shape(rng, elements):
    """Return (shape, layout, sizes) of about `elements` elements, often all on one axis."""
    rank = rng.choice([1, 2, 2, 2, 3])
    weights = [rng.random() ** rng.choice([1, 4, 30]) for _ in range(rank + 2)]
    extents = [max(1, int(elements ** (w / sum(weights)))) for w in weights]
    extents[rng.randrange(len(extents))] *= max(1, elements // math.prod(extents))
    layout = rng.choice(["NC", "N"]) + {1: "W", 2: "HW", 3: "DHW"}[rank]
    layout = layout if rng.random() < 0.6 or layout[1] != "C" else "N" + layout[2:] + "C"
    batch, channels, *sizes = extents
    return cases.array_shape(layout, batch, channels, sizes), layout, sizes


def test_scratch_is_bounded_for_any_geometry(isa):
    """Per thread, of inputs of 64 MB: global, long, small windows, with and without indices."""
    rng = random.Random(5)
    seen = set()
    for _ in range(500):
        dtype = rng.choice(["float32", "uint8", "float16", "float64", "int32"])
        shape, layout, sizes = drawn_shape(rng, 64 * MIB // cases.dtype(dtype).itemsize)
        kernel = [min(n, rng.choice([1, 2, 3, 9, 64, n, n // 2 + 1, n // 7 + 1])) for n in sizes]
        strides = [rng.choice([1, 2, k]) for k in kernel]
        plan = plan_of(
            shape,
            dtype,
            kernel,
            strides=strides,
            layout=layout,
            nan=rng.choice(["propagate", "ignore"]),
            return_indices=rng.random() < 0.5,
        )
        pooling = prepare.PreparedPool(plan, np.dtype(dtype)).pooling
        seen.add(pooling.strategy)
        assert pooling.scratch_bytes <= 2 * MIB, (plan, pooling.strategy)
    assert {"running_maxima", "bands", "taps"} <= seen


def test_a_tall_narrow_plane_needs_no_copy_of_itself(isa):
    """Global pooling over time had scratch of 16 times the input, as rows of whole vectors."""
    for shape, layout in (((1, 10**7, 1), "CHW"), ((1, 10**7, 2), "CHW"), ((10**7, 3), "HW")):
        for dtype in ("float32", "float16"):
            kernel = tuple(shape[-2:])
            plan = plan_of(shape, dtype, kernel, layout=layout)
            assert prepare.PreparedPool(plan, np.dtype(dtype)).pooling.scratch_bytes <= 2 * MIB


def test_a_column_of_a_wider_plane():
    """A plane of one column may have any distance from one row to the next."""
    wide = cases.values((2, 3, 1000, 5), "float32", "special", 3)
    for kernel in ((3, 1), (900, 1)):
        plan = plan_of((2, 3, 1000, 1), "float32", kernel, strides=(2, 1), return_indices=True)
        plan(np.zeros(plan.input_shape, np.float32))
        x, y = wide[..., 2:3], np.zeros((*plan.output_shape[:3], 2), np.float32)[..., :1]
        z = np.zeros(plan.output_shape, np.int64)
        plan(x, y, z)
        for got, expected in zip((y, z), plan(x.copy()), strict=True):
            cases.assert_same(got, expected, str(kernel))


def test_usual_layers_keep_their_ways():
    """Running maxima are for what no other way takes in proportion."""
    for kernel, sizes in ((3, (112, 112)), (13, (20, 20)), (63, (260, 260)), (7, (7, 7))):
        for layout in ("NCHW", "NHWC"):
            for indices in (False, True):
                shape = cases.array_shape(layout, 1, 64, sizes)
                plan = plan_of(
                    shape,
                    "float32",
                    kernel,
                    layout=layout,
                    return_indices=indices,
                    pads=kernel // 2,
                )
                assert form_of(plan) != "running_maxima"
                work = make_work(problem_of(plan))
                assert not work.wide and not running_maxima.pays(work)


@pytest.mark.parametrize("shape", [(8, 1, 0, 3), (8, 1, 3, 0), (2, 0, 3, 3), (0, 3, 3, 3)])
def test_no_elements_at_all(shape, isa):
    """NumPy gives such an array strides of 0; its windows are of padding alone."""
    x = np.zeros(shape, np.float32)
    most = 2**31 - 1
    for kernel in (2, (2, most)):
        attributes = {"strides": most, "pads": (1, 1, 1, most)}
        for indices in (False, True):
            plan = plan_of(shape, "float32", kernel, return_indices=indices, **attributes)
            results = plan(x) if indices else (plan(x),)
            y, z = _reference.max_pool(x, kernel, return_indices=True, **attributes)
            for got, expected in zip(results, (y, z), strict=False):
                cases.assert_same(got, expected, f"{kernel}")


WIDE = {
    "scratch of a chain": (2**28, 7, 13),
    "a stride times a dilation": (2**22, 256, 13),
    "a stride of nothing": (28_799, 74_565, 13),
    "short windows": (2**30 - 1, 2, 5),
}


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["int32", "float32", "uint8"])
@pytest.mark.parametrize("name", WIDE)
def test_products_of_large_numbers(name, dtype, axis, isa):
    """Products of strides, dilations and bytes wrapped: writes past scratch, or no end."""
    dilation, taps, size = WIDE[name]
    stride = taps * dilation - 1
    wide = taps + 1, stride, dilation, (stride - 1, taps * dilation)
    plain = 1, 1, 1, (0, 0)
    kernels, strides, dilations, pads = zip(*((wide, plain)[:: 1 - 2 * axis]), strict=True)
    shape = (size, 3)[:: 1 - 2 * axis]
    attributes = {
        "strides": strides,
        "dilations": dilations,
        "pads": (*(begin for begin, _ in pads), *(end for _, end in pads)),
        "layout": "HW",
    }
    x = cases.values(shape, dtype, "special", 4)
    y, z = _reference.max_pool(x, kernels, return_indices=True, **attributes)
    for indices in (False, True):
        plan = plan_of(shape, dtype, kernels, return_indices=indices, **attributes)
        results = plan(x) if indices else (plan(x),)
        for got, expected in zip(results, (y, z), strict=False):
            cases.assert_same(got, expected, name)


def test_plans_of_any_width_are_explained_at_once():
    for width in (2**33, 2**40, 2**55):
        for indices in (False, True):
            plan = plan_of((1, 1, 8, width), "uint8", 3, pads=1, return_indices=indices)
            with limits.quick(5):
                assert "uint8" in plan.explain()


def test_scratch_of_many_axes_and_channels(isa):
    for rank in (4, 10, 30, 62):
        shape = (1, *(1,) * rank, 8192)
        for indices in (False, True):
            plan = plan_of(
                shape,
                "uint8",
                2,
                dilations=3,
                pads=(1,) * rank + (2,) * rank,
                layout="NHWC",
                return_indices=indices,
            )
            assert prepare.PreparedPool(plan, np.dtype("uint8")).pooling.scratch_bytes <= 2 * MIB
