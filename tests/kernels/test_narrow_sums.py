"""Sums of types of 8 and 16 bits are right: edges of vectors, blocks, tall and whole planes."""

import itertools

import numpy as np
import pytest

import cases
import fastpool
from average_cases import SMALL, assert_as_the_twin, numerics_of
from codes import means
from fastpool import _reference
from fastpool._planning.dtypes import is_float
from fastpool._running import builds as running
from fastpool._running import pass_sizes

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
