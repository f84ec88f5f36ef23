"""The passes of sums are right at their edges: of vectors, types, blocks and interleaved planes."""

import itertools
import random

import numpy as np
import pytest

import cases
import fastpool
from codes import means
from fastpool import _reference
from fastpool._planning.dtypes import is_float
from fastpool._planning.geometry import Axis
from fastpool._running import averages, pass_sizes
from fastpool._running import builds as running
from fastpool._running.divisor_counts import MOST_DIVISORS, MOST_RECIPROCALS, counts_of

EXACT = {"numerics": "exact"}


def numerics_of(dtype, *names):
    """The names of orders of additions, or one that stands for all of them."""
    return names if is_float(np.dtype(dtype).name) else names[:1]


def assert_as_the_twin(x, kernel, attributes):
    """With exact sums, and in pairs, unless the attributes say how."""
    for numerics in numerics_of(x.dtype, "exact", "pairwise"):
        given = {"numerics": numerics, **attributes}
        expected = _reference.avg_pool(x, kernel, **given)
        others = {name: value for name, value in given.items() if name != "dtype"}
        others["result_dtype"] = given.get("dtype")
        for build, threads in itertools.product(cases.BUILDS, (1, 3)):
            with running.using(build):
                plan = fastpool.plan_avg_pool(
                    x.shape, x.dtype, kernel, num_threads=threads, **others
                )
                y = plan(x)
            cases.assert_same(y, expected, f"{build} {x.shape} {x.dtype} {kernel} {given}")
        if "numerics" in attributes:
            return


# Results around one, two and four vectors of every build: 2 to 16 sums.
WIDTHS = [1, 3, 4, 8, 9, 16, 17, 33]
SMALL = [((3, 3), 1), ((3, 3), 2), ((2, 2), 1), ((2, 2), 2), ((3, 2), 1), ((1, 3), 1), ((2, 5), 2)]


BYTE_WINDOWS = [*SMALL, ((15, 17), 1), ((9, 28), 3), ((17, 2), 1), ((2, 8), 2)]


@pytest.mark.parametrize(("kernel", "stride"), BYTE_WINDOWS)
def test_the_oracle_of_bytes(kernel, stride):
    for dtype, pads in (("int8", (0, 1, 1, 0)), ("uint8", (1, 0, 0, 1))):
        x = cases.values((2, 20, 30), dtype, "bits", stride)
        attributes = {"strides": stride, "pads": pads}
        expected = _reference.avg_pool(x, kernel, layout="CHW", **attributes)
        cases.assert_same(means(x, kernel, **attributes), expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize(("kernel", "stride"), BYTE_WINDOWS)
def test_edges_of_bytes(dtype, layout, kernel, stride):
    """The least and the greatest sums, around vectors; padding."""
    info = np.iinfo(dtype)
    for width, channels in itertools.product((30, 33, 64, 67), (1, 3, 8, 33)):
        rng = np.random.default_rng(width)
        shape = channels, 20, width
        attributes = {"strides": stride, "pads": rng.integers(0, 2, 4).tolist()}
        pairs = []
        for x in (
            np.full(shape, info.min, dtype),
            np.full(shape, info.max, dtype),
            rng.integers(info.min, info.max, shape, dtype, endpoint=True),
        ):
            pair = x, means(x, kernel, **attributes)
            if layout == "HWC":
                pair = [np.ascontiguousarray(np.moveaxis(array, 0, -1)) for array in pair]
            pairs.append(pair)
        for build, threads in itertools.product(cases.BUILDS, (1, 3)):
            with running.using(build):
                plan = fastpool.plan_avg_pool(
                    pairs[0][0].shape,
                    dtype,
                    kernel,
                    num_threads=threads,
                    layout=layout,
                    **attributes,
                )
                for x, expected in pairs:
                    cases.assert_same(plan(x), expected, f"{build} {shape} {attributes} {x.max()}")


NARROW = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16"]


def mixed(shape, dtype, seed):
    """Numbers whose magnitudes grow and fall from row to row."""
    rng = np.random.default_rng(seed)
    dtype = cases.dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        shifts = rng.integers(0, info.bits, (shape[0], *[1] * (len(shape) - 1)))
        return values >> shifts.astype(dtype)
    scales = 2.0 ** rng.integers(-14, 15, (shape[0], *[1] * (len(shape) - 1)))
    return (rng.standard_normal(shape) * scales).astype(dtype)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(("kernel", "stride"), [((3, 3), 1), ((2, 2), 2), ((9, 3), 1), ((1, 5), 3)])
def test_edges_of_narrow_types(dtype, kernel, stride):
    """The greatest sums, and magnitudes that change."""
    result = {"dtype": "int32"} if dtype.endswith("int8") else {}  # (else sums are floats)
    for layout, size, channels in (
        ("HWC", 33, 1),
        ("HWC", 15, 3),
        ("HWC", 9, 17),
        ("HWC", 7, 32),
        ("CHW", 40, 2),
    ):
        shape = (40, size, channels) if layout == "HWC" else (channels, 40, size)
        pads = np.random.default_rng(size).integers(0, 2, 4).tolist()
        attributes = {"strides": stride, "pads": pads, "layout": layout, **result}
        assert_as_the_twin(mixed(shape, dtype, size), kernel, attributes)
        kind = "rare" if is_float(dtype) else "normal"
        assert_as_the_twin(cases.summands(shape, dtype, kind, size), kernel, attributes)


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("dtype", cases.DTYPE_NAMES)
def test_blocks_of_a_few_rows(dtype, layout, monkeypatch):
    """Nothing is kept from one block of rows to the next."""
    monkeypatch.setattr(pass_sizes, "PASS_BYTES", 1000)
    shape = (43, 11, 3) if layout == "HWC" else (3, 43, 11)
    x = cases.summands(shape, dtype, "normal", 7)
    for kernel, stride in (((7, 1), 1), ((6, 2), 1), ((9, 3), 2), ((3, 3), 1), ((2, 2), 2)):
        assert_as_the_twin(x, kernel, {"strides": stride, "layout": layout})


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "bfloat16"])
def test_narrow_types_of_many_axes_and_gaps(dtype):
    """Slabs, padding along each axis, views, and windows that differ in length."""
    for shape, layout in (((5, 9, 20, 4), "DHWC"), ((2, 5, 6, 35), "CDHW")):
        wide = mixed(tuple(size + 3 for size in shape), dtype, 1)
        view = wide[tuple(slice(1, 1 + size) for size in shape)]
        for x in (np.ascontiguousarray(view), view, view[:, ::-1]):
            for kernel, pads in (((2, 2, 3), 1), ((1, 4, 2), (0, 3, 1, 0, 2, 0))):
                result = {"dtype": "float32"} if dtype == "uint8" else {}
                assert_as_the_twin(x, kernel, {"pads": pads, "layout": layout, **result})
            for numerics in numerics_of(x.dtype, "exact", "pairwise"):
                given = {"layout": layout, "numerics": numerics}
                expected = _reference.adaptive_avg_pool(x, (2, 3, 4), **given)
                for build in cases.BUILDS:
                    with running.using(build):
                        y = fastpool.adaptive_avg_pool(x, (2, 3, 4), num_threads=1, **given)
                    cases.assert_same(y, expected, f"{build} {given}")


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_near_the_middle_of_results(dtype, layout):
    """Quotients next to middles: sums of 31 bits, under divisors of few bits and of many."""
    rng = np.random.default_rng(3)
    kind = cases.dtype(dtype)
    for divisor in (2, 3, 7, 2047, 2049, 2**20, 3 * 2**20):
        x = rng.integers(1, 2**15, (16, 16, 4), np.uint16)
        x[rng.random(x.shape) < 0.5] &= 0xFFC0
        x = np.minimum(x, 0x7000 if dtype == "float16" else 0x4200).view(kind)
        x = np.where(rng.random(x.shape) < 0.5, -x, x)
        assert_as_the_twin(x, (2, 2), {"divisor": divisor, "layout": layout})
        assert_as_the_twin(x, (2, 2), {"strides": 2, "layout": layout})


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("layout", ["HW", "HWC"])
@pytest.mark.parametrize(
    ("rows", "kernel", "attributes"),
    [
        (40, 8, {"dilations": (2, 1)}),
        (60, 16, {"dilations": (3, 1), "pads": (20, 0, 31, 0)}),
        (40, 9, {"strides": (2, 1), "pads": (8, 0, 3, 0)}),
        (140, 128, {"pads": (127, 0, 0, 0)}),
        (150, 129, {"pads": (128, 0, 0, 0)}),
        (150, 129, {"pads": (0, 0, 128, 0), "count_include_pad": True}),
        (300, 300, {}),
        (300, 300, {"pads": (1, 0, 0, 0)}),
    ],
)
def test_tall_windows_of_small_integers(dtype, layout, rows, kernel, attributes):
    """Rows enter and leave sums of 16 bits, which hold 128 rows of the largest bytes."""
    shape = (rows, 5) if layout == "HW" else (rows, 2, 3)
    extremes = np.iinfo(dtype)
    for x in (
        np.full(shape, extremes.max, dtype),
        np.full(shape, extremes.min, dtype),
        np.random.default_rng(rows).integers(extremes.min, extremes.max, shape, dtype, True),
    ):
        for result in ({}, {"dtype": "float32"}):
            assert_as_the_twin(x, (kernel, 1), {"layout": layout, **attributes, **result})


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    "kernel", [(2, 1), (2, 2), (3, 3), (5, 3), (2, 8), (1, 9), (15, 17), (16, 16), (2, 64), (3, 65)]
)
def test_dense_windows_of_bytes(dtype, kernel):
    """Sums of 16 bits along rows too: 255 taps and more, around the lengths of vectors."""
    info, pads = np.iinfo(dtype), tuple(n // 2 for n in kernel) * 2
    for width, layout in ((9, "HW"), (140, "HW"), (3, "HWC"), (40, "HWC")):
        shape = (18, width + kernel[1]) + (() if layout == "HW" else (3,))
        x = np.random.default_rng(width).integers(info.min, info.max, shape, dtype, endpoint=True)
        x[:9] = info.max if width == 140 else info.min
        for rounding in ("half_even", "half_away", "trunc", "floor"):
            assert_as_the_twin(x, kernel, {"layout": layout, "rounding": rounding, "pads": pads})
        for attributes in (
            {"strides": 2, "count_include_pad": True, "pads": pads},
            {"dilations": (1, 2), "pads": (0, kernel[1], 0, kernel[1])},
            {"divisor": 3 * kernel[0] * kernel[1]},
        ):
            assert_as_the_twin(x, kernel, {"layout": layout, **attributes})


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_whole_planes_of_bytes(dtype, layout):
    """The least and the greatest sums, around the lengths of vectors."""
    info = np.iinfo(dtype)
    for height, width in ((1, 1), (3, 5), (1, 63), (1, 64), (5, 13), (1, 129), (16, 17), (40, 33)):
        shape = (2, 3, height, width) if layout == "NCHW" else (2, height, width, 3)
        rng = np.random.default_rng(width)
        for x in (
            np.full(shape, info.min, dtype),
            np.full(shape, info.max, dtype),
            rng.integers(info.min, info.max, shape, dtype, endpoint=True),
        ):
            assert_as_the_twin(x, (height, width), {"layout": layout})


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
    for kernel, becomes in (((3, 1, 1), True), ((3, 2, 1), False), ((2, 3, 1), False)):
        plan = fastpool.plan_avg_pool(x.shape, x.dtype, kernel)
        axes = plan._prepared_for(x.dtype).work.spatial_axes
        assert axes == ((3, 2, 4) if becomes else (2, 3, 4)), "the leading axis becomes the rows"
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


# Planes that are interleaved: channels (one group, parts of groups), plane, window, attributes.
INTERLEAVED = [
    ((16, 5, 5), (3, 3), {"pads": 1}),
    ((9, 7, 6), (2, 3), {"strides": 2, "pads": (1, 0, 0, 1)}),
    ((40, 6, 3), (2, 2), {"strides": 2, "ceil_mode": True}),
    ((24, 9, 8), (5, 7), {"strides": 3, "count_include_pad": True}),
    ((17, 5, 9), (5, 9), {}),
    ((33, 9, 4), (3, 2), {"dilations": 2, "pads": 2}),
    ((16, 3, 5, 4), (2, 3, 2), {"strides": (2, 1, 1), "pads": 1}),
    ((20, 31), (4,), {"strides": 3}),
]


def test_scratch_of_interleaved_planes_is_bounded():
    """Of tall results of small planes, by padding or by windows that repeat."""
    padded = fastpool.plan_avg_pool(
        (1, 8, 1, 4), "float32", (2, 1), pads=(2**18, 0, 2**18, 0), **EXACT
    )
    assert cases.is_interleaved(padded)
    parts = fastpool.plan_adaptive_avg_pool((1, 8, 4, 4), "float32", (2**18, 4), **EXACT)
    for plan in (padded, parts):
        prepared = plan._prepared_for(np.dtype("float32"))
        assert (prepared.once or prepared).pooling.scratch_bytes < 4 << 20
    x = cases.summands((1, 8, 1, 4), "float32", "normal", 4)
    expected = np.zeros(padded.output_shape, np.float32)
    expected[:, :, 2**18 - 1 : 2**18 + 1] = x
    cases.assert_same(padded(x), expected)


@pytest.mark.parametrize(("shape", "kernel", "attributes"), INTERLEAVED)
@pytest.mark.parametrize("dtype", cases.DTYPE_NAMES)
def test_interleaved_planes(dtype, shape, kernel, attributes, monkeypatch):
    """Contiguous arrays, rows and planes with gaps, one tile or several, in all numerics."""
    attributes = attributes | {"layout": "C" + "DHW"[4 - len(shape) :]}
    wider = *(2 * n for n in shape[:-1]), shape[-1]
    every = tuple(slice(None, None, 2) for _ in shape[:-1])
    for numerics in numerics_of(cases.dtype(dtype), "exact", "sequential", "pairwise"):
        attributes["numerics"] = numerics
        for nbytes in (averages.INTERLEAVED_BYTES, 4096):
            monkeypatch.setattr(averages, "INTERLEAVED_BYTES", nbytes)
            for kind in ("quarters", "rare"):
                x = cases.summands(shape, dtype, kind, 1)
                spread = np.zeros(wider, x.dtype)
                spread[every] = x
                assert_as_the_twin(x, kernel, attributes)
                assert_as_the_twin(spread[every], kernel, attributes)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("columns", [1, 31, 64, 65, 160])
def test_means_of_planes_of_bytes_with_gaps(dtype, columns):
    """Columns, rows, slabs and planes apart, some from the last to the first, one many times."""
    x = cases.values((3, 4, 5, 6, 2 * columns), dtype, "bits", columns)
    whole = np.ascontiguousarray(x[..., :columns])
    ends = np.where(np.arange(columns) % 3, -128, 127).astype(np.int8).view(dtype)
    for view in (
        *(x[..., :columns], x[:, :, ::2, :, :columns], x[:, ::3, :, ::-1, 1 : 1 + columns]),
        *(x[:, :, :, 3, None, :columns], x[:, :, 2, None, ::5, -columns:], x[..., ::2]),
        *(whole[:, :, ::2], whole[:, :, ::-1], np.broadcast_to(whole[:, :, :1], whole.shape)),
        np.broadcast_to(ends, whole.shape),
    ):
        assert_as_the_twin(view, view.shape[2:], {"layout": "NCDHW"})
        plane = view[:, :, 1 % view.shape[2]]
        assert_as_the_twin(plane, plane.shape[2:], {"layout": "NCHW"})
        one = {"layout": "NHWC"}
        assert_as_the_twin(view[:, :1, 0].transpose(0, 2, 3, 1), plane.shape[2:], one)
    # Windows that take less than all elements, or more.
    rows, cols = x.shape[3] - 1, columns
    assert_as_the_twin(x[:, :, 0, :, :columns], (rows, cols), {"strides": 2})
    padded = {"pads": (1, 0, 0, 0, 0, 0), "layout": "NCDHW"}
    assert_as_the_twin(x[..., :columns], (6, 6, columns), padded)
    if columns > 1:
        assert_as_the_twin(x[:, :, 0, :, :columns], (6, columns - 1), {"strides": 2})


def test_the_last_channels_fill_vectors(monkeypatch):
    """Channels whose parts of up to 512 would leave 7 for the last: fewer than avx512 adds."""
    monkeypatch.setattr(averages, "PIXEL_ELEMENTS", 512)
    x = cases.summands((1, 4, 1, 258_567), "int32", "finite", 3)
    window = {"kernel_shape": (2, 1), "strides": (2, 1), "layout": "NHWC"}
    plan = fastpool.plan_avg_pool(x.shape, x.dtype, **window, result_dtype="float64")
    assert plan._prepared_for(x.dtype).work.tile[2] <= 512
    expected = [x[:, i : i + 2].mean(1) for i in (0, 2)]
    cases.assert_same(plan(x), np.stack(expected, 1))


def test_interleaved_batches():
    """Batches whose planes are not evenly spaced, and results that are not contiguous."""
    x = cases.summands((3, 2, 20, 6, 5), "float32", "finite", 2)[:, 1]
    plan = fastpool.plan_avg_pool(x.shape, x.dtype, 3, strides=2, **EXACT)
    assert cases.is_interleaved(plan)
    expected = _reference.avg_pool(x, 3, strides=2, **EXACT)
    assert_as_the_twin(x, (3, 3), {"strides": 2})
    for order in itertools.permutations(range(4)):
        out = np.zeros([2 * expected.shape[i] for i in order], x.dtype)
        into = out[::2, ::2, ::2, ::2].transpose(np.argsort(order))
        plan(x, out=into)
        cases.assert_same(into, expected, str(order))
        assert np.count_nonzero(out) <= np.count_nonzero(expected), "nothing else is written"


@pytest.mark.parametrize(("batch", "channels"), [(4, 8), (2, 9), (3, 17), (2, 33), (2, 16)])
def test_interleaved_results_with_gaps(batch, channels):
    """Planes of a group that belong to two batches, between which the result has a gap."""
    x = cases.summands((batch, channels, 4, 4), "float32", "finite", 2)
    out = np.zeros((batch, channels + 1, 2, 2), x.dtype)
    expected = _reference.avg_pool(x, 2, strides=2, **EXACT)
    for build in cases.BUILDS:
        with running.using(build):
            plan = fastpool.plan_avg_pool(x.shape, x.dtype, 2, strides=2, **EXACT)
            assert cases.is_interleaved(plan)
            plan(x, out=out[:, :channels])
        cases.assert_same(out[:, :channels], expected, build)
        assert not out[:, channels].any(), "nothing else is written"


@pytest.mark.parametrize(("dtype", "rows"), [("uint8", 92), ("int16", 64), ("float32", 46)])
def test_interleaved_planes_of_the_last_task(dtype, rows):
    """They are pooled with planes of the task before, if these are evenly spaced."""
    x = cases.summands((3, 13, rows, rows), dtype, "finite", 2)
    window = {"kernel_shape": 5, "strides": 3, "pads": 2}
    plan = fastpool.plan_avg_pool((1, 37, rows, rows), x.dtype, **window)
    assert cases.is_interleaved(plan)
    assert plan._prepared_for(x.dtype).work.tile[3] == 16
    given = {"strides": 3, "pads": 2}
    assert_as_the_twin(x.reshape(1, 39, rows, rows)[:, :37], (5, 5), given)
    assert_as_the_twin(x[:, :12], (5, 5), given)


@pytest.mark.parametrize("numerics", ["exact", "sequential", "pairwise"])
@pytest.mark.parametrize("output_size", [(0, 3), (3, 0), (0, 0)])
def test_many_planes_without_outputs(output_size, numerics):
    x = np.ones((2, 16, 5, 5), np.float32)
    y = fastpool.adaptive_avg_pool(x, output_size, numerics=numerics)
    assert y.shape == (2, 16, *output_size)


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
