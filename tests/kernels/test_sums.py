"""The passes of sums are right at their edges: of vectors, rows, pixels, divisors and scratch."""

import itertools
import random

import numpy as np
import pytest

import cases
import fastpool
import limits
from average_cases import SMALL, assert_as_the_twin, numerics_of
from fastpool import _reference
from fastpool._planning.dtypes import is_float
from fastpool._planning.geometry import Axis
from fastpool._running import averages
from fastpool._running import builds as running
from fastpool._running.divisor_counts import MOST_DIVISORS, MOST_RECIPROCALS, counts_of

EXACT = {"numerics": "exact"}

# Results around one, two and four vectors of every build: 2 to 16 sums.
WIDTHS = [1, 3, 4, 8, 9, 16, 17, 33]


@pytest.mark.parametrize(("kernel", "stride"), SMALL)
@pytest.mark.parametrize("dtype", cases.DTYPE_NAMES)
def test_edges_of_rows(dtype, kernel, stride):
    """Rows of every width, padded on no side, one or both, that end in a part of a window."""
    for width, pads in itertools.product(WIDTHS, [(0, 0, 0, 0), (1, 1, 1, 1), (0, 0, 0, 1)]):
        for layout, channels in (("CHW", 3), ("HWC", 2)):
            shape = (channels, 6, width) if layout == "CHW" else (6, width, channels)
            if width + pads[1] + pads[3] < kernel[1]:
                continue
            x = cases.summands(shape, dtype, "rare", width)
            for numerics in numerics_of(x.dtype, "exact", "sequential", "pairwise"):
                attributes = {
                    **{"strides": stride, "pads": pads, "ceil_mode": True, "layout": layout},
                    "numerics": numerics,
                }
                expected = _reference.avg_pool(x, kernel, **attributes)
                for build in cases.BUILDS:
                    with running.using(build):
                        y = fastpool.avg_pool(x, kernel, num_threads=1, **attributes)
                    cases.assert_same(y, expected, f"{build} {shape} {attributes}")


@pytest.mark.parametrize(("kernel", "stride"), [(2, 1), (3, 1), (5, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gaps_between_rows_are_not_written(dtype, kernel, stride, isa):
    """Of squares, whose vectors are stored over the end of a row if the next one follows."""
    for outputs in (*range(7, 20), 33):
        size = (outputs - 1) * stride + kernel
        x = cases.summands((3, 9, size), dtype, "finite", outputs)
        expected = _reference.avg_pool(x, kernel, strides=stride, layout="CHW")
        out = np.full((*expected.shape[:2], outputs + 3), 7, dtype)
        fastpool.avg_pool(x, kernel, strides=stride, layout="CHW", out=out[:, :, :outputs])
        cases.assert_same(out[:, :, :outputs], expected, f"{outputs} outputs")
        assert (out[:, :, outputs:] == 7).all(), f"nothing else is written, {outputs} outputs"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", [1, 2, 5, 7, 8])
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
def test_windows_of_one_column(dtype, kernel, layout):
    """Rows are added to results without a band, but for those over padding."""
    edges = {"pads": (kernel // 2, 0, (kernel - 1) // 2, 0)}
    counted = {"count_include_pad": True}
    for columns in (1, 5, 19, 64):
        shape = (2, 23, columns) if layout == "CHW" else (23, columns, 2)
        x = cases.summands(shape, dtype, "finite", kernel)
        wild = cases.values(shape, dtype, "bits", columns)
        gaps = np.stack([x] * 3, -2)[..., 1, :]
        given = {"strides": (1 + columns % 2, 1), "layout": layout, "numerics": "pairwise"}
        for view in (x, wild, gaps, x[::-1], np.asfortranarray(x)):
            for more in ({}, edges, edges | counted, {"dilations": (3, 1)}, {"nan": "ignore"}):
                assert_as_the_twin(view, (kernel, 1), given | more)
        sides = [{"pads": (0, 1, 0, 0)}, {"pads": (0, 0, 0, 1)}] if kernel > 1 else []
        for more in (*sides, {"strides": 2}, {"numerics": "sequential"}):
            assert_as_the_twin(x, (kernel, 1), given | more)
        expected = _reference.avg_pool(x, (kernel, 1), **given)
        out = np.full([*expected.shape[:-2], expected.shape[-2] + 3, expected.shape[-1]], 7, dtype)
        fastpool.avg_pool(x, (kernel, 1), out=out[..., 3:, :], **given)
        cases.assert_same(out[..., 3:, :], expected)
        assert (out[..., :3, :] == 7).all(), "nothing else is written"


def test_windows_of_one_column_in_tiles():
    """Tiles that begin inside a plane, leading axes, and means of another type."""
    pads = {"pads": (2, 0, 2, 0), "numerics": "pairwise"}
    x = cases.summands((1, 600, 300), "float32", "finite", 1)
    plan = fastpool.plan_avg_pool(x.shape, x.dtype, (5, 1), layout="CHW", **pads)
    assert plan._prepared_for(x.dtype).work.tile[0] < 600
    assert_as_the_twin(x, (5, 1), {"layout": "CHW", **pads})
    x = cases.summands((1, 2, 8, 20, 60), "float32", "finite", 2)
    for kernel in ((3, 1, 1), (3, 2, 1), (2, 3, 1)):
        for numerics in ("pairwise", "sequential"):
            assert_as_the_twin(x, kernel, {"layout": "NCDHW", "numerics": numerics})
    for dtype, result in (("float16", "float32"), ("float32", "float64")):
        x = cases.summands((2, 23, 19), dtype, "finite", 3)
        given = {"dtype": result, "layout": "CHW", "numerics": "pairwise"}
        assert_as_the_twin(x, (5, 1), given)


@pytest.mark.parametrize("dtype", cases.DTYPE_NAMES)
@pytest.mark.parametrize(("kernel", "pads"), [(3, (1, 1)), (9, (8, 0))])
def test_long_rows_over_padding(dtype, kernel, pads):
    """Columns that padding does not cut have one divisor: a tile is pooled in three parts."""
    for shape, layout in (((2, 900), "CW"), ((1, 4700), "CW"), ((900, 2), "WC")):
        x = cases.summands(shape, dtype, "finite", kernel)
        given = {"pads": pads, "layout": layout}
        assert_as_the_twin(x, kernel, given)
        if x.size < 2000:
            given |= {"strides": 2, "ceil_mode": True}
            for more in (
                {"numerics": "sequential"},
                {"count_include_pad": True},
                {"nan": "ignore"},
            ):
                assert_as_the_twin(x, kernel, given | more)
    x = cases.summands((2, 3, 900), dtype, "finite", kernel)
    assert_as_the_twin(x, (2, kernel), {"pads": (1, pads[0], 0, pads[1]), "layout": "CHW"})


def test_long_quantised_rows_over_padding():
    x = cases.values((1, 1, 900), "int8", "bits", 1)
    for counted in (False, True):
        given = {"kernel_shape": (3,), "pads": (1, 1), "count_include_pad": counted}
        scales = 0.5, 3, 0.25, -2
        y = fastpool.onnx.qlinear_average_pool(x, *scales, **given)
        for i in (0, 1, 450, 898, 899):
            part = x[:, :, max(0, i - 2) : i + 3]
            alone = fastpool.onnx.qlinear_average_pool(part, *scales, **given)
            assert y[0, 0, i] == alone[0, 0, min(i, 2)]


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "float16", "float32"])
def test_rows_with_more_columns_than_reciprocals(dtype):
    """Few divisors have one reciprocal each, not one for each column."""
    columns = MOST_RECIPROCALS + 9
    for kernel, pads in ((3, 1), (16, 15), (17, 16)):
        for rows, below in ((1, 0), (3, 1)):
            x = cases.summands((1, rows, columns), dtype, "finite", 1)
            given = {"layout": "CHW", **EXACT}
            window = (rows, kernel)
            padded = given | {"pads": (below, pads, 0, 0)}
            plan = fastpool.plan_avg_pool(x.shape, x.dtype, window, **padded)
            work = plan._prepared_for(x.dtype).work
            assert work.by_value
            products = itertools.product(
                range(rows - below, rows + 1), range(kernel - pads, kernel + 1)
            )
            expected = {row * column for row, column in products}
            assert set(work.divisors) == (expected if len(expected) <= MOST_DIVISORS else set())
            y = plan(x)
            # The ends as those of short rows, and the rest as windows without padding.
            short = fastpool.avg_pool(x[..., : 2 * kernel], window, **padded)
            cases.assert_same(y[..., : kernel + 1], short[..., : kernel + 1])
            inner = fastpool.avg_pool(x, window, **(given | {"pads": (below, 0, 0, 0)}))
            cases.assert_same(y[..., pads:], inner)
            pixels = np.stack([x[0], x[0][:, ::-1]], -1)
            out = np.zeros((*y.shape[1:], 3), y.dtype)[..., :2]
            fastpool.avg_pool(pixels, window, out=out, **(padded | {"layout": "HWC"}))
            cases.assert_same(out[..., 0], y[0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("stride", range(2, 11))
def test_rows_that_are_split(dtype, stride):
    """Elements a stride apart become neighbours: few and many, all of them or some."""
    for width, taps in itertools.product((7, 64, 67), (1, 3, 9)):
        x = cases.summands((2, 3, width), dtype, "finite", width)
        for pads in ((0, 0, 0, 0), (0, min(taps - 1, 2), 0, taps - 1)):
            attributes = {"strides": (1, stride), "pads": pads, "layout": "CHW"}
            if taps <= width:
                assert_as_the_twin(x, (2, taps), attributes | {"numerics": "sequential"})
                assert_as_the_twin(x, (2, taps), attributes)


@pytest.mark.parametrize("kind", ["finite", "quarters", "rare"])
def test_doubles_of_all_digits(kind):
    """Of rows, slabs and pixels, and sums that decide nothing."""
    for shape, layout in (
        ((3, 5, 6, 19), "CDHW"),
        ((5, 6, 9, 3), "DHWC"),
        ((5, 6, 4, 17), "DHWC"),
        ((2, 1, 1, 1), "CDHW"),
    ):
        x = cases.summands(shape, "float64", kind, 1)
        for digits in (x, x / 3):
            for kernel, strides in (((2, 2, 2), 2), ((3, 1, 3), 1), ((1, 1, 5), 2)):
                sizes = shape[1:] if layout == "CDHW" else shape[:3]
                kernel = tuple(map(min, kernel, sizes))
                assert_as_the_twin(digits, kernel, {"strides": strides, "layout": layout})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("numerics", ["exact", "sequential", "pairwise"])
def test_parts_of_pixels(dtype, numerics):
    """Tiles of some channels, and views: pixels with gaps, reversed, or one that is repeated."""
    for channels, part in ((600, slice(None)), (80, slice(5, 77)), (40, slice(1, 8))):
        wide = cases.summands((3, 4, channels), dtype, "normal", channels)
        for kernel, attributes in (
            ((3, 3), {"pads": 1}),
            ((2, 2), {"strides": 2}),
            ((3, 2), {"strides": (1, 2), "pads": (2, 0, 0, 1)}),
        ):
            attributes = attributes | {"layout": "HWC", "numerics": numerics}
            assert_as_the_twin(wide[:, :, part], kernel, attributes)
            assert_as_the_twin(wide[:, ::-1, part], kernel, attributes)
            repeated = np.broadcast_to(wide[:, 1:2, part], wide[:, :, part].shape)
            assert_as_the_twin(repeated, kernel, attributes)


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16"])
def test_divisors_of_one_output(dtype):
    """Along an axis with one output, the number that counts is that of this output."""
    for layout, shape in (("NHWC", (1, 3, 5, 17)), ("NCHW", (1, 17, 3, 5)), ("NHWC", (2, 2, 3, 3))):
        x = cases.summands(shape, dtype, "rare", 0)
        attributes = {"layout": layout, "strides": (2, 5), "auto_pad": "SAME_LOWER"}
        assert_as_the_twin(x, (5, 9), attributes)
        assert_as_the_twin(x, (5, 5), {"layout": layout, "pads": (3, 2, 0, 0), "strides": (1, 2)})


def test_counts_along_an_axis():
    """What counts may end inside or far outside of the windows; most outputs need no arithmetic."""
    rng = random.Random(0)
    for _ in range(2000):
        kernel, stride, dilation = (rng.randint(1, most) for most in (6, 5, 4))
        begin, outputs = rng.randint(-3, 9), rng.randint(1, 9)
        axis = Axis(9, outputs, kernel, stride, dilation, begin, 0)
        places = rng.choice([-begin, 0, -(2**70)]), rng.choice([9, rng.randint(0, 30), 2**70])
        taps = [[o * stride - begin + t * dilation for t in range(kernel)] for o in range(outputs)]
        expected = [sum(places[0] <= tap < places[1] for tap in of_output) for of_output in taps]
        counts = counts_of(axis, places)
        if isinstance(counts, float):
            assert {counts} == {*expected}, axis
            continue
        assert {*counts.values} == {*expected}, axis
        assert {*expected[slice(*counts.inner)]} <= {kernel}, axis
    long = Axis(2**40, 2**40, 3, 1, 1, 1, 1)
    with cases.bounds():
        counts = counts_of(long, (0, 2**40))
    assert counts.inner == (1, 2**40 - 1) and sorted(counts.values) == [2, 3]
    assert counts_of(Axis(2000, 2000, 999, 1, 1, 499, 499), (0, 2000)).values == ()


@pytest.mark.parametrize("divisor", [1, 2, 3, 6, 9, 2**14 - 1, 2**14 + 1, 2**30, -3])
@pytest.mark.parametrize("dtype", cases.DTYPE_NAMES)
def test_ties_under_divisors(dtype, divisor):
    """Quotients in the middle of two results, and next to it."""
    if divisor < 0 and dtype.startswith(("u", "b")):
        return
    x = cases.summands((2, 5, 21), dtype, "quarters", abs(divisor))
    if not is_float(dtype):  # sums must fit
        x = (x % np.array(2, x.dtype)).astype(x.dtype) if dtype != "bool" else x
    for numerics in numerics_of(x.dtype, "exact", "pairwise"):
        given = {"layout": "CHW", "divisor": divisor, "numerics": numerics}
        try:
            expected = _reference.avg_pool(x, (2, 3), **given)
        except ValueError:
            return  # the type does not hold such means
        for build in cases.BUILDS:
            with running.using(build):
                y = fastpool.avg_pool(x, (2, 3), **given)
            cases.assert_same(y, expected, f"{build} {given}")


@pytest.mark.parametrize("numerics", ["exact", "sequential", "pairwise"])
def test_scratch_of_windows_with_gaps_is_bounded(numerics):
    for kernel, attributes in [((3, 3), {"dilations": (1, 1000)}), ((8, 8), {"strides": 8})]:
        plan = fastpool.plan_avg_pool(
            (1, 2, 64, 20_000), "float16", kernel, numerics=numerics, **attributes
        )
        assert plan._prepared_for(np.dtype("float16")).pooling.scratch_bytes < 4 << 20


@pytest.mark.parametrize("numerics", ["exact", "pairwise"])
@pytest.mark.parametrize(
    ("dtype", "shape", "kernel", "layout"),
    [
        ("float32", (8, 5), (2,), "CW"),
        ("int16", (5, 3, 40), (3,), "NCW"),
        ("int32", (2, 16, 16, 8, 8), (5, 40, 2), "NCDHW"),
        ("float64", (16, 8, 1), (3,), "NWC"),
        ("float32", (8, 3, 5, 40), (2, 40), "NHWC"),
        ("bool", (3, 16, 2), (5,), "NCW"),
    ],
)
def test_scratch_of_windows_far_apart_is_bounded(dtype, shape, kernel, layout, numerics):
    """Of outputs that see only padding between them, however many elements that is."""
    *others, col = kernel
    for stride in (10**4, 2**28):
        attributes = {
            "strides": (*others, stride),
            "pads": (*(0 for _ in others), 2 * stride, *others, 3 * stride + col),
            "count_include_pad": True,
            "layout": layout,
            "numerics": numerics,
        }
        plan = fastpool.plan_avg_pool(shape, dtype, kernel, **attributes)
        assert plan._prepared_for(np.dtype(dtype)).pooling.scratch_bytes < 4 << 20
        x = cases.summands(shape, dtype, "normal", 3)
        cases.assert_same(plan(x), _reference.avg_pool(x, kernel, **attributes))


@pytest.mark.parametrize("numerics", ["pairwise", "exact"])
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "float32", "float64"])
def test_long_windows_over_channels_take_no_seconds(dtype, numerics, isa):
    """A few channels are pooled at a time, down to one: 110000x3 k90000 took 47 s.

    Of few windows over each column, and of many rows, rows are added.
    """
    rng = np.random.default_rng(7)
    for shape, kernel, attributes in [
        ((1, 6000, 64), 5000, {}),
        ((2, 90_000, 3), 70_000, {"pads": 30_000}),
        ((1, 70_000, 5), 64_247, {"strides": 3}),
        ((1, 20_000, 20), 9000, {"dilations": 2}),
        ((1, 40_000, 17), 30_000, {"strides": 2000, "pads": 15_000}),
        ((3, 0, 3), 5000, {"pads": 5000}),
    ]:
        x = (rng.standard_normal(shape) * 50).astype(dtype)
        attributes |= {"numerics": numerics, "num_threads": 1}
        with limits.quick(2):
            y = fastpool.avg_pool(x, kernel, layout="NWC", **attributes)
        first = np.ascontiguousarray(np.moveaxis(x, 1, 2))
        expected = fastpool.avg_pool(first, kernel, layout="NCW", **attributes)
        cases.assert_same(np.ascontiguousarray(np.moveaxis(y, 1, 2)), expected)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_tall_windows_of_converted_rows_take_no_seconds(dtype, isa):
    """Tiles are so narrow that rows are converted once: 20000x200 k9000x3 took 28 s."""
    x = (np.random.default_rng(8).standard_normal((1, 1, 12_000, 120)) * 50).astype(dtype)
    attributes = {"numerics": "exact", "num_threads": 1}
    with limits.quick(3):
        y = fastpool.avg_pool(x, (8000, 3), **attributes)
    some = fastpool.avg_pool(x[..., 50:70].copy(), (8000, 3), **attributes)
    cases.assert_same(y[..., 50:68].copy(), some)


def test_tall_windows_over_one_column_take_no_seconds(isa):
    """Rows are converted once, though they take 8 MiB in lines: 300000x1 k150000x2 s4 took 62 s."""
    x = cases.values((1, 1, 270_000, 1), "uint8", "bits", 0)
    with limits.quick(2):
        y = fastpool.avg_pool(x, (132_000, 2), strides=(16, 1), pads=(4, 1, 4, 0), num_threads=1)
    row = fastpool.avg_pool(
        x.reshape(1, 1, 1, -1), (2, 132_000), strides=(1, 16), pads=(1, 4, 0, 4)
    )
    cases.assert_same(y.reshape(-1), row.reshape(-1))


def test_the_last_channels_fill_vectors(monkeypatch):
    """Channels whose parts of up to 512 would leave 7 for the last: fewer than avx512 adds."""
    monkeypatch.setattr(averages, "PIXEL_ELEMENTS", 512)
    x = cases.summands((1, 4, 1, 258_567), "int32", "finite", 3)
    window = {"kernel_shape": (2, 1), "strides": (2, 1), "layout": "NHWC"}
    plan = fastpool.plan_avg_pool(x.shape, x.dtype, **window, result_dtype="float64")
    assert plan._prepared_for(x.dtype).work.tile[2] <= 512
    expected = [x[:, i : i + 2].mean(1) for i in (0, 2)]
    cases.assert_same(plan(x), np.stack(expected, 1))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_the_last_channels_in_order(name, stride, isa, monkeypatch):
    """Fewer than the other parts have, they become lines first: 8 of 70, or 11 of 14,155."""
    for limit, shape in ((16, (49, 70)), (1 << 15, (40, 14_155)), (16, (49, 101))):
        monkeypatch.setattr(averages, "PIXEL_ELEMENTS", limit)
        x = cases.summands(shape, name, "normal", 3)
        window = {"kernel_shape": 4, "strides": stride, "layout": "WC", "numerics": "sequential"}
        plan = fastpool.plan_avg_pool(x.shape, name, num_threads=1, **window)
        cases.assert_same(plan(x), _reference.avg_pool(x, **window))


@pytest.mark.parametrize("build", cases.BUILDS)
def test_padding_alone_after_nan(build):
    """What another call had left in scratch is not read."""
    nan = np.full((1, 40, 200, 17), np.nan)
    x = np.ones((1, 6, 2, 17), np.int64)
    attributes = {
        "strides": (138, 165),
        "pads": (38, 330, 900, 18777),
        "dilations": (18, 120),
        "ceil_mode": True,
        "ceil_rule": "keep",
        "layout": "NHWC",
    }
    with running.using(build):
        for kernel in ((1, 15), (5, 50), (20, 9)):
            fastpool.avg_pool(nan, kernel, layout="NHWC", num_threads=1, **EXACT)
            y = fastpool.avg_pool(x, (6, 150), dtype="float64", num_threads=2, **attributes)
            assert not y.any(), kernel
