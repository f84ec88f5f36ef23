"""The slow twin's averages are right: loops over taps, and every rule worked by hand."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

import cases
from fastpool import _reference

NAN, INF = math.nan, math.inf
FLT_MAX = float(np.finfo(np.float32).max)


def arranged(x, dtype=None):
    """An array, and the layout of rows, planes and volumes."""
    x = np.asarray(x, None if dtype is None else cases.dtype(dtype))
    return x, "DHW"[-x.ndim :]


def average(x, kernel_shape, dtype="float32", result=None, **attributes):
    """Averages as nested lists; rows, planes and volumes without batch and channels."""
    x, layout = arranged(x, dtype)
    y = _reference.avg_pool(x, kernel_shape, dtype=result, layout=layout, **attributes)
    assert y.dtype == (x.dtype if result is None else result)
    return y.tolist()


def single(*values):
    """What float32 makes of numbers."""
    return np.float32(values).tolist()


EXACT = {"numerics": "exact"}


def same(found, expected):
    np.testing.assert_array_equal(np.array(found, float), np.array(expected, float))


# --------------------------------------------------------------------------------------- tap by tap


def taps_of(size, kernel, stride, dilation, begin, end, rounding):
    """The taps of each output along one axis: the element, "pad" or "beyond"."""
    extent = (kernel - 1) * dilation + 1
    starts = [s for s in range(-begin, size + end, stride) if s + extent <= size + end]
    if rounding != "floor" and starts[-1] + extent < size + end:
        starts.append(starts[-1] + stride)
    if rounding == "clip" and starts[-1] >= size:
        starts.pop()
    for start in starts:
        places = range(start, start + extent, dilation)
        yield [p if 0 <= p < size else "pad" if p < size + end else "beyond" for p in places]


def drawn(seed):
    """(extents, one tuple per axis as `taps_of` takes them, rounding, attributes)."""
    rng = random.Random(seed)
    axes, rank = [], rng.choice([1, 1, 2, 2, 3])
    while len(axes) < rank:
        kernel, stride, dilation = rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 3)
        axis = rng.randint(1, 5), kernel, stride, dilation, rng.randint(0, 4), rng.randint(0, 4)
        if axis[0] + axis[4] + axis[5] > (kernel - 1) * dilation:
            axes.append(axis)
    sizes, kernels, strides, dilations, begins, ends = zip(*axes, strict=True)
    rounding = rng.choice(["floor", "clip", "keep"])
    attributes = {
        "strides": strides,
        "pads": begins + ends,
        "dilations": dilations,
        "ceil_mode": rounding != "floor",
        "ceil_rule": "keep" if rounding == "keep" else "clip",
    }
    return sizes, axes, rounding, kernels, attributes


@pytest.mark.parametrize("seed", range(150))
def test_small_geometries_tap_by_tap(seed):
    sizes, axes, rounding, kernels, attributes = drawn(seed)
    rng = np.random.default_rng(seed)
    x = rng.integers(-9, 9, (2, 3, *sizes)).astype(rng.choice(["float64", "int8", "int64"]))
    found = {}
    choices = {
        "exclude": {},
        "drop": {"count_include_pad": True},
        "count": {"count_include_pad": True, "beyond": "count"},
        "fixed": {"count_include_pad": True, "divisor": -3},
    }
    for name, more in choices.items():
        y = _reference.avg_pool(x, kernels, **attributes, **more, dtype="float64")
        last = np.moveaxis(x, 1, -1)
        more = {**attributes, **more, "dtype": "float64", "layout": "NHWC"}
        same(np.moveaxis(_reference.avg_pool(last, kernels, **more), -1, 1), y)
        found[name] = y
    lists = [list(taps_of(*axis, rounding)) for axis in axes]
    assert found["drop"].shape[2:] == tuple(map(len, lists))
    for output in itertools.product(*(range(len(taps)) for taps in lists)):
        window = list(itertools.product(*(taps[o] for taps, o in zip(lists, output, strict=True))))
        real = [place for place in window if not {"pad", "beyond"} & {*place}]
        counts = {"exclude": len(real), "count": len(window), "fixed": -3}
        counts["drop"] = len([place for place in window if "beyond" not in place])
        for plane in np.ndindex(2, 3):
            total = sum(int(x[plane + place]) for place in real)
            for name, count in counts.items():
                mean = float(Fraction(total, count)) if real else 0
                assert found[name][plane + output] == mean


# ------------------------------------------------------------------------------------------ divisor


def test_without_padding_all_taps_count():
    assert average([[1, 2, 3], [4, 5, 6]], 2) == [[3, 4]]
    assert average(range(6), 3, strides=3) == [1, 4]


WITH_CEIL = {"strides": 2, "pads": (1, 1), "ceil_mode": True}


def test_the_table_of_divisors():
    ones = np.ones(4)
    assert average(ones, 3, **WITH_CEIL) == [1, 1, 1]
    assert average(ones, 3, **WITH_CEIL, beyond="count") == [1, 1, 1]
    assert average(ones, 3, **WITH_CEIL, count_include_pad=True) == single(2 / 3, 1, 1 / 2)
    counted = average(ones, 3, **WITH_CEIL, count_include_pad=1, beyond="count")
    assert counted == single(2 / 3, 1, 1 / 3)
    assert average(ones, 3, **WITH_CEIL, count_include_pad=True, divisor=4) == [0.5, 0.75, 0.25]


def test_beyond_in_two_axes():
    planes = {"strides": 2, "pads": (1, 0, 0, 0), "ceil_mode": True, "count_include_pad": True}
    assert average(np.ones((3, 3)), (4, 2), **planes) == [[0.75, 0.75]]
    assert average(np.ones((3, 3)), (4, 2), **planes, beyond="count") == [[0.75, 0.375]]


def test_beyond_without_padding():
    """onnx.reference has 0.75 for 1."""
    ceil = {"strides": 2, "ceil_mode": True, "count_include_pad": True}
    assert average(np.ones((4, 4)), 3, **ceil) == [[1, 1], [1, 1]]


def test_a_divisor_of_ones_own():
    assert average([1, 2, 3], 2, divisor=1) == [3, 5]
    assert average([1, 2, 3], 2, divisor=-2) == [-1.5, -2.5]
    padded = {"pads": 1, "count_include_pad": True}
    assert average([1, 2, 3], 2, **padded, divisor=4) == [0.25, 0.75, 1.25, 0.75]
    assert average([2.0**-149], 1, divisor=3) == average([2.0**-149], 1, divisor=-3) == [0]


def test_an_empty_window_is_zero():
    """Left of the input, right of it, and between two taps."""
    far = {"pads": (3, 4)}
    for dtype in cases.DTYPE_NAMES:
        for more in ({}, {"count_include_pad": True}, {"divisor": 7}):
            y = average([True], 2, dtype, **far, **more)
            assert [y[i] for i in (0, 1, 4, 5, 6)] == [0] * 5
    assert average([1, 2], 2, dilations=3, pads=2) == [2, 0, 1]
    assert average([1, NAN], 2, pads=(0, 3), divisor=-2)[2:] == [0, 0]


def test_the_last_window_of_ceil():
    """It starts in the padding at the end: it is dropped, or kept and empty."""
    attributes = {"strides": 3, "pads": (0, 2), "ceil_mode": True}
    for include in (False, True):
        more = {**attributes, "count_include_pad": include}
        assert average([2, 2, 2], 2, **more) == [2]
        assert average([2, 2, 2], 2, **more, ceil_rule="keep") == [2, 0]


# ------------------------------------------------------------------------------------------ padding


def test_ceil_moves_no_window():
    assert average(range(7), 3, strides=3, ceil_mode=True) == [1, 4, 6]


def test_same_with_a_stride_above_the_window():
    for auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        assert average(range(1, 8), 1, strides=4, auto_pad=auto_pad) == [1, 5]


def test_same_counts_the_pads_in_force():
    x = [1, 2, 3, 4]
    upper = {"auto_pad": "SAME_UPPER", "strides": 2}
    lower = {"auto_pad": "SAME_LOWER", "strides": 2}
    assert average(x, 3, **upper) == [2, 3.5]
    assert average(x, 3, **upper, count_include_pad=True) == single(2, 7 / 3)
    assert average(x, 3, **lower, count_include_pad=True, beyond="count") == single(1, 3)
    dilated = {"dilations": 2, "auto_pad": "SAME_UPPER"}
    assert average(x, 2, **dilated) == [2, 2, 3, 3]
    assert average(x, 2, **dilated, count_include_pad=True) == [1, 2, 3, 1.5]
    assert average(np.ones((32, 32)), 2, **upper) == np.ones((16, 16)).tolist()


def test_auto_pad_with_ceil():
    assert average(range(5), 2, strides=2, auto_pad="VALID", ceil_mode=True) == [0.5, 2.5, 4]
    assert average(range(5), 2, strides=2, auto_pad="SAME_UPPER", ceil_mode=True) == [0.5, 2.5, 4]


def test_pads_as_large_as_the_window():
    assert average([3, 5], 2, pads=2) == [0, 3, 4, 5, 0]
    assert average([3, 5], 2, pads=2, count_include_pad=True) == [0, 1.5, 4, 2.5, 0]


def test_endless_padding_is_counted_and_not_walked_over():
    n = 10**9
    attributes = {"strides": n, "pads": (n, n), "count_include_pad": True}
    exact = average([3.0], 2 * n + 1, "float64", **attributes, **EXACT)
    assert exact == [float(Fraction(3, 2 * n + 1))]
    for numerics in ("sequential", "pairwise"):
        (y,) = average([3.0], 2 * n + 1, "float64", **attributes, numerics=numerics)
        assert y == 3 / float(2 * n + 1)
    # A divisor that float32 does not hold.
    size = 2**24 + 1
    attributes = {"pads": (0, size - 1), "count_include_pad": True}
    assert average([2.0**54], size, "float32", **attributes, **EXACT) == [2**30 - 2**6]
    for numerics in ("sequential", "pairwise"):
        assert average([2.0**54], size, "float32", **attributes, numerics=numerics) == [2**30]


# ------------------------------------------------------------------------------------- one rounding


@pytest.mark.parametrize("dtype", cases.FLOAT_NAMES)
@pytest.mark.parametrize("seed", range(20))
def test_properties_of_means(dtype, seed):
    rng = np.random.default_rng(seed)
    kind = cases.dtype(dtype)
    spread = 2.0 ** rng.integers(-6, 6, (2, 3, 5, 6))
    x = (rng.standard_normal(spread.shape) * spread).astype(kind)
    window = {"strides": 2, "pads": 1, "ceil_mode": True, **EXACT}
    for numerics in ("pairwise", "sequential", "exact"):
        window["numerics"] = numerics
        y = _reference.avg_pool(x, 3, **window)
        same(_reference.avg_pool(-x, 3, **window), -y)
    largest = {name: window[name] for name in ("strides", "pads", "ceil_mode")}
    assert y.dtype == kind
    same(_reference.avg_pool(x * kind.type(4), 3, **window), y * kind.type(4))
    wide = np.float64
    assert (y.astype(wide) <= _reference.max_pool(x, 3, **largest).astype(wide)).all()
    assert (y.astype(wide) >= -_reference.max_pool(-x, 3, **largest).astype(wide)).all()
    for value in (*x.ravel()[:5], kind.type(0.1), -np.abs(x).max()):
        constant = np.full_like(x, value)
        assert (_reference.avg_pool(constant, 3, **window) == value).all()
    # Means of 4 elements with few digits are exact in float64.
    few = np.round(x.astype(wide), 1).astype(np.float32)
    means = _reference.avg_pool(few.astype(wide), 2, **EXACT)
    same(_reference.avg_pool(few, 2, **EXACT), means.astype(np.float32))
    same(_reference.avg_pool(few, 2, dtype="float64", **EXACT), means)


@pytest.mark.parametrize("dtype", cases.DTYPE_NAMES)
def test_zeros(dtype):
    for numerics in ("exact", "sequential", "pairwise"):
        assert average([0, 0, 0], 2, dtype, numerics=numerics) == [0, 0]


def test_nothing_overflows_or_underflows_inside():
    def exact(*arguments, **attributes):
        return average(*arguments, **attributes, **EXACT)

    assert exact([3e38] * 4, 4) == single(3e38)
    assert exact([FLT_MAX, FLT_MAX, -FLT_MAX], 3) == single(FLT_MAX / 3)
    assert exact([1.7e308] * 4, 4, "float64") == [1.7e308]
    assert exact([1e30, 1, -1e30], 3) == single(1 / 3)
    assert exact([5e-324, 5e-324], 2, "float64") == [5e-324]
    assert exact([5e-324, 0], 2, "float64") == [0]  # half of the least number: a tie, to even
    assert exact([1.5e-323, 0], 2, "float64") == [1e-323]
    assert exact([FLT_MAX] * 2, 2, divisor=1) == [INF]
    assert exact([-FLT_MAX] * 2, 2, divisor=1) == [-INF]
    assert exact([FLT_MAX] * 2, 2, divisor=1, result="float64") == [2 * FLT_MAX]
    # Sums in pairs overflow.
    assert average([3e38] * 4, 4) == [INF]
    assert average([5e-324, 5e-324], 2, "float64") == [5e-324]


@pytest.mark.parametrize("dtype", cases.FLOAT_NAMES)
def test_the_mean_of_many_ones(dtype):
    """Sums in float16 and bfloat16 gave 0.25, 0.125, 0.0156 and NaN."""
    for count in (1024, 16384, 70000):
        assert average(np.ones(count), count, dtype) == [1]
    x = np.ones((1, 1, 4, 64, 64)).astype(cases.dtype(dtype))
    assert _reference.adaptive_avg_pool(x, 1) == _reference.global_avg_pool(x) == 1


# ----------------------------------------------------------------------------------- special values


@pytest.mark.parametrize("numerics", ["exact", "sequential", "pairwise"])
def test_special_values(numerics):
    def mean(*x, **more):
        return average(x, len(x), numerics=numerics, **more)

    for more in ({}, {"count_include_pad": True, "divisor": 3}):
        same(mean(1, INF, **more), [INF])
        same(mean(-INF, 1, -INF, **more), [-INF])
        same(mean(INF, 1, -INF, **more), [NAN])
        same(mean(NAN, INF, 1, **more), [NAN])
    same(mean(1, INF, divisor=-3), [-INF])
    same(mean(-INF, 1, divisor=-3), [INF])
    same(average([NAN, 1, 2, 3], 2, numerics=numerics), [NAN, 1.5, 2.5])  # it leaves the window


@pytest.mark.parametrize("numerics", ["exact", "sequential", "pairwise"])
def test_ignored_nan(numerics):
    ignore = {"nan": "ignore", "numerics": numerics}
    include = {**ignore, "pads": (1, 0), "count_include_pad": True}
    x = [NAN, 3, 6]
    same(average(x, 2, **ignore), [3, 4.5])
    same(average(x, 3, **include), [1.5, 4.5])  # padding and an element; two elements
    same(average([3, NAN, 6], 3, **include), [1.5, 4.5])
    same(average([NAN, NAN, 6], 2, **ignore), [NAN, 6])
    same(average([NAN, NAN, 6], 2, **include), [NAN, NAN, 6])
    same(average(x, 2, **ignore, divisor=4), [0.75, 2.25])
    same(average([NAN, NAN, 6], 2, **ignore, divisor=4), [NAN, 1.5])
    same(average([NAN, INF, 6, -INF], 2, **ignore), [INF, INF, -INF])
    ceil = {**ignore, "ceil_mode": True, "strides": 2, "count_include_pad": True}
    same(average([1, 2, 3, NAN], 3, **ceil, beyond="count"), [2, 1.5])
    same(average([1, 2, 3, NAN], 3, **ceil), [2, 3])


# --------------------------------------------------------------------------------------- sequential


def test_sequential_sums():
    large = 2**24
    sequential = {"numerics": "sequential"}
    assert average([large, 1, 1], 3, divisor=1, **EXACT) == [large + 2]
    assert average([large, 1, 1], 3, divisor=1) == [large]  # (large + 1) + 1 in pairs
    assert average([large, 0, 1, 1], 4, divisor=1) == [large + 2]
    assert average([large, 1, 1], 3, divisor=1, **sequential) == [large]
    assert average([1, 1, large], 3, divisor=1, **sequential) == [large + 2]
    assert average([3e38] * 4, 4, **sequential) == [INF]
    assert average([2**53, 1, 1], 3, "float64", divisor=1, **sequential) == [2**53]
    # The sum is in float32, not in float16.
    assert average([2048, 1, 1, 1], 4, "float16", divisor=4, **sequential) == [513]
    # Row-major in the order of the spatial axes.
    x = [[large, 1], [-large, 1]]
    assert average(x, 2, divisor=1, **sequential) == [[1]]
    assert average(np.transpose(x), 2, divisor=1, **sequential) == [[2]]
    # The quotient is a float32, whatever the result.
    assert average([1, 0, 0], 3, result="float64", **sequential) == single(1 / 3)
    assert average([1, 0, 0], 3, result="float64", **EXACT) == [1 / 3]
    assert average([1, 0, 0], 3, result="float64") == [1 / 3]
    # The divisor is a float32: 2**24 + 1 becomes 2**24.
    assert average([1], 1, divisor=large + 1, **sequential) == [2**-24]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_sequential_sums_of_any_window(layout):
    x = np.random.default_rng(0).standard_normal((2, 6, 7, 3)).astype(np.float32)
    axes = (1, 2) if layout == "NHWC" else (2, 3)
    rows = np.moveaxis(x, axes, (-2, -1)).reshape(-1, math.prod(x.shape[a] for a in axes))
    totals = np.add.accumulate(rows, axis=1)[:, -1]
    y = _reference.global_avg_pool(x, layout=layout, keepdims=False, numerics="sequential")
    same(y.ravel(), totals / np.float32(rows.shape[1]))
    adaptive = _reference.adaptive_avg_pool(x, 1, layout=layout, numerics="sequential")
    same(adaptive.ravel(), y.ravel())


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_sequential_is_torch(dtype, seed):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(seed)
    size, kernel, strides = rng.integers(5, 10, 2), rng.integers(1, 5, 2), rng.integers(1, 4, 2)
    pads = [int(rng.integers(0, k // 2 + 1)) for k in kernel]
    x = rng.standard_normal((2, 3, *size)) * 10.0 ** rng.integers(-3, 4, (2, 3, *size))
    x = torch.tensor(x).to(getattr(torch, dtype))
    ceil_mode, include = map(bool, rng.integers(0, 2, 2))
    divisor = [None, None, 3, -7][seed % 4]
    expected = torch.nn.functional.avg_pool2d(
        x, kernel.tolist(), strides.tolist(), pads, ceil_mode, include, divisor
    )
    y = _reference.avg_pool(
        x.double().numpy().astype(cases.dtype(dtype)),
        kernel,
        strides=strides,
        pads=pads,
        ceil_mode=ceil_mode,
        count_include_pad=include,
        divisor=divisor,
        numerics="sequential",
    )
    same(y, expected.double().numpy())


# ---------------------------------------------------------------------------------- integers, types


@pytest.mark.parametrize("dtype", cases.INTEGER_NAMES)
def test_integer_sums_are_exact(dtype):
    info = np.iinfo(dtype)
    for value in (info.min, info.max):
        assert average([value] * 9, 9, dtype) == [value]
        assert average([value] * 9, 9, dtype, numerics="sequential") == [value]
    assert average([info.max, info.max - 1, info.max], 3, dtype) == [info.max]
    assert average([info.max, info.max - 1], 2, dtype, rounding="floor") == [info.max - 1]


def test_padding_of_integers_is_zero():
    assert average([70] * 4, 3, "uint8", strides=2, pads=1, count_include_pad=True) == [47, 70]


def test_integer_means_that_others_get_wrong():
    assert average([2**31 - 1] * 2, 2, "int32") == [2**31 - 1]
    assert average([2**62] * 2, 2, "int64") == [2**62]
    for dtype in ("uint8", "int8"):
        assert average([[100] * 7] * 7, 7, dtype) == [[100]]
        x = np.full((1, 2, 7, 7), 100, dtype)
        assert (_reference.global_avg_pool(x) == 100).all()
    assert average([32767] * 65537, 65537, "int16") == [32767]
    assert average([[12345] * 17] * 17, 17, "int16") == [[12345]]
    assert average([[1, 0], [0, 0]], 2, "uint8") == [[0]]  # OpenCV 5.0 rounds it up


ROUNDED = {
    "half_even": [-2, -2, -1, 0, 0, 0, 1, 2, 2],
    "half_away": [-3, -2, -1, -1, 0, 1, 1, 2, 3],
    "trunc": [-2, -1, -1, 0, 0, 0, 1, 1, 2],
    "floor": [-3, -2, -1, -1, 0, 0, 1, 1, 2],
}


@pytest.mark.parametrize("rounding", ROUNDED)
def test_roundings(rounding):
    sums = [-5, -3, -2, -1, 0, 1, 2, 3, 5]
    for dtype in ("int8", "int64"):
        for divisor, factor in ((2, 1), (-2, -1)):
            x = np.multiply(sums, factor)
            assert average(x, 1, dtype, divisor=divisor, rounding=rounding) == ROUNDED[rounding]
    thirds = {"half_even": [-2, 2], "half_away": [-2, 2], "trunc": [-1, 1], "floor": [-2, 1]}
    x = [-5, 5]
    assert average(x, 1, "int16", divisor=3, rounding=rounding) == thirds[rounding]


def test_bool():
    x = [True, False, True, True, False, False]
    assert average(x, 2, "bool", strides=2) == [False, True, False]
    assert average(x, 2, "bool", strides=2, rounding="half_away") == [True, True, False]
    assert average(x, 3, "bool", strides=3) == [True, False]
    assert average(x, 3, "bool", strides=3, rounding="trunc") == [False, False]
    assert average(x, 2, "bool", strides=2, result="float32") == [0.5, 1, 0]
    assert average(x, 6, "bool", result="int8", divisor=1) == [3]
    with pytest.raises(ValueError, match="dtype: bool cannot hold 2"):
        average(x, 2, "bool", divisor=1)


def test_result_types():
    large = 2**53 + 1
    assert average([large, large], 2, "int64", "float64") == [2**53]
    assert average([1, 2], 2, "uint8", "float64") == average([1, 2], 2, "uint8", "float32") == [1.5]
    assert average([2**25 + 3, 2**25 + 3], 2, "int32", "float32") == [2**25 + 4]
    assert average([200, 100], 2, "uint8", "int32", divisor=1) == [300]
    assert average([1, 2], 2, "float16", "float64") == [1.5]
    third = average([1, 0, 0], 3, "float16", "float32")
    assert third == single(1 / 3)
    refused = {
        "float64": ("float32", "float16", "int64", "bool"),
        "float32": ("float16", "int8"),
        "float16": ("bfloat16", "uint64"),
        "int8": ("float16", "bool", "complex64"),
        "bool": ("float16", "bfloat16"),
    }
    for dtype, results in refused.items():
        for result in results:
            with pytest.raises(TypeError, match="^dtype: "):
                average([1], 1, dtype, result)


def test_integer_results_hold_every_input():
    for dtype, result, kernel, more in (
        ("uint8", None, 2, {"divisor": 1}),
        ("uint8", None, 1, {"divisor": -1}),
        ("int8", None, 1, {"divisor": -1}),
        ("uint8", "int8", 1, {}),
        ("int8", "uint8", 1, {}),
        ("int64", "int32", 3, {}),
        ("uint64", "uint32", 3, {"divisor": 2**31 - 1}),
    ):
        with pytest.raises(ValueError, match=f"^dtype: {result or dtype} cannot hold"):
            average([0] * 3, kernel, dtype, result, **more)
    assert average([255, 255], 2, "uint8", divisor=2) == [255]
    assert average([200], 1, "uint8", "int8", divisor=3) == [67]
    # Padding may be at least half of every window.
    padded = {"pads": 1, "count_include_pad": True}
    assert average([200], 2, "uint8", "int8", **padded, rounding="floor") == [100, 100]
    with pytest.raises(ValueError, match="^dtype: int8 cannot hold 128"):
        average([200], 2, "uint8", "int8", **padded)
    # 255 / -600 is 0, but not rounded down.
    assert average([255], 1, "uint8", divisor=-600) == [0]
    with pytest.raises(ValueError, match="^dtype: uint8 cannot hold -1"):
        average([0], 1, "uint8", divisor=-600, rounding="floor")


def test_64_bits_saturate():
    low, high = -(2**63), 2**63 - 1
    assert average([high] * 2, 2, "int64", divisor=1) == [high]
    assert average([low] * 2, 2, "int64", divisor=1) == [low]
    assert average([low], 1, "int64", divisor=-1) == [high]
    assert average([low, -1, 5], 1, "int64", "uint64") == [0, 0, 5]
    assert average([2**64 - 1], 1, "uint64", "int64") == [high]
    assert average([2**64 - 1] * 2, 2, "uint64", divisor=1) == [2**64 - 1]
    assert average([3], 1, "uint64", divisor=-1) == [0]


def test_activations():
    assert average([-3, 1, 3], 2, activation="Relu") == [0, 2]
    assert average([-3, 1], 1, "int8", activation="Clip", activation_params=(-2.5, 9)) == [-2, 1]
    # In the type of the result.
    half = average([1, 0], 2, "uint8", "float32", activation="LeakyRelu", activation_params=[1])
    assert half == [0.5]
    with pytest.raises(TypeError, match="^activation: "):
        average([1, 0], 2, "uint8", activation="Tanh")
