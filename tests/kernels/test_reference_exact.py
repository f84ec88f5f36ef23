"""The slow twin's one rounding, Lp norms and quantised averages are right."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

import cases
from fastpool import _reference
from fastpool._reference.exact import FORMATS, rounded

NAN, INF = math.nan, math.inf


def norm(x, kernel_shape, *p, dtype="float32", **attributes):
    """Norms along a row, as a list."""
    x = np.asarray(x, cases.dtype(dtype))
    y = _reference.lp_pool(x, kernel_shape, *p, layout="W", **attributes)
    assert y.dtype == x.dtype
    return y.tolist()


def single(*values):
    """What float32 makes of numbers."""
    return np.float32(values).tolist()


def same(found, expected):
    np.testing.assert_array_equal(np.array(found, float), np.array(expected, float))


# ------------------------------------------------------------------------------------- one rounding


@pytest.mark.parametrize("dtype", cases.FLOAT_NAMES)
def test_rounding(dtype):
    """The result is the nearest number, or the even one of two."""
    rng = random.Random(dtype)
    digits, least, most = FORMATS[dtype]
    unsigned = f"u{cases.dtype(dtype).itemsize}"
    for _ in range(3000):
        exponent = rng.choice([least - 3, least, least + digits, 0, most - digits - 2])
        numerator = rng.getrandbits(rng.choice([3, digits, digits + 1, digits + 2, 4 * digits]))
        value = Fraction(numerator, rng.choice([1, 2, 3, 4, 7, 1000, 2**digits]))
        y = np.array(rounded(value, exponent, dtype)).astype(cases.dtype(dtype))
        assert rounded(-value, exponent, dtype) == -float(y)
        exact = value * Fraction(2) ** exponent
        if math.isinf(y):
            assert exact >= (2 - Fraction(1, 2**digits)) * Fraction(2) ** (most - 1)
            continue
        assert float(y) == rounded(value, exponent, dtype)  # it is a number of the type
        bits = int(y.view(unsigned))
        error = abs(Fraction(float(y)) - exact)
        for other in {max(bits - 1, 0), bits + 1} - {bits}:
            near = float(np.array(other, unsigned).view(y.dtype))
            if math.isinf(near):
                near = Fraction(2) ** most
            distance = abs(Fraction(near) - exact)
            assert error < distance or (error == distance and bits % 2 == 0)


# -------------------------------------------------------------------------------------------- norms


def test_norms():
    assert norm([3, -4, 0], 2) == [5, 4]
    assert norm([3, -4, 0], 2, 1) == [7, 4]
    assert norm([3, -4, 0], 2, INF) == [4, 4]
    assert norm([-1, -8], 2, 3, dtype="float64") == [513 ** (1 / 3)]
    assert norm([4, 9], 2, 0.5) == [25]
    assert norm([-3, 4], 2, pads=2) == [0, 3, 5, 4, 0]  # nothing is divided
    for p in (1, 2, 3, INF):
        assert norm([0, 0], 2, p) == [0]
    x = np.array([[3, 0], [0, -4]], np.float32)
    assert _reference.global_lp_pool(x, layout="HW").tolist() == [[5]]
    assert _reference.global_lp_pool(x, 1, layout="HW", keepdims=False) == 7


def test_norms_do_not_overflow_inside():
    for p in (2, 2.0, np.float32(2)):
        assert norm([1e20, 1e20], 2, p) == single(math.sqrt(2) * 1e20)
        assert norm([1e-25, 1e-25], 2, p) == single(math.sqrt(2) * float(np.float32(1e-25)))
    assert norm([3e38, 3e38], 2) == [INF]  # the norm itself is too large
    for p, factor in ((3, 2 ** (1 / 3)), (1e9, 1), (1e300, 1)):
        (y,) = norm([1e30, 1e30], 2, p)
        assert abs(y / 1e30 - factor) < 1e-6
    assert norm([1, 1], 2, 1e-300) == [INF] and norm([1, 0], 2, 1e-300) == [1]


@pytest.mark.parametrize("dtype", cases.FLOAT_NAMES)
def test_the_square_root_is_rounded_once(dtype):
    rng = np.random.default_rng(0)
    kind = cases.dtype(dtype)
    least = float(kind.type(2.0 ** FORMATS[dtype].least))
    for scale in (1, least * 8, least * 2.0 ** (FORMATS[dtype].digits + 3)):
        x = (rng.standard_normal((40, 3)) * scale).astype(kind)
        y = _reference.lp_pool(x, (1, 3), layout="HW")[:, 0]
        for taps, found in zip(x, y, strict=True):
            squares = sum(Fraction(float(tap)) ** 2 for tap in taps)
            bits = int(found.view(f"u{kind.itemsize}"))
            near = np.array([max(bits - 1, 0), bits, bits + 1], f"u{kind.itemsize}").view(kind)
            low, middle, high = (Fraction(float(value)) for value in near)
            assert ((low + middle) / 2) ** 2 <= squares <= ((middle + high) / 2) ** 2


def test_a_root_just_above_a_tie():
    nine = [2**23 + 3] * 9  # their norm is odd, and has 25 bits
    assert norm([*nine, 0], 10) == [25165832]
    assert norm([*nine, 1e-10], 10) == [25165834]


def test_windows_with_fewer_taps():
    """torch and onnx.reference give 1.414 for 1 element of 2 taps."""
    ceil = {"strides": 2, "ceil_mode": True}
    assert norm([0, 0, 1], 2, **ceil) == [0, 1]
    assert norm([0, 0, 1], 2, **ceil, partial="scale") == single(0, math.sqrt(2))
    assert norm([0, 0, 1], 2, 1, **ceil, partial="scale") == [0, 2]
    assert norm([0, 0, 1], 2, INF, **ceil, partial="scale") == [0, 1]
    assert norm([0, 0, 1], 2, 0.5, **ceil, partial="scale") == [0, 4]
    assert norm([3], 2, pads=1, partial="scale") == [3, 3]  # padding counts as taps
    ignored = {**ceil, "partial": "scale", "nan": "ignore"}
    assert norm([NAN, 2, 1], 2, **ignored) == single(2, math.sqrt(2))


def test_special_values_of_norms():
    for p in (1, 2, 3, INF):
        same(norm([INF, -INF, 1, NAN], 2, p), [INF, INF, NAN])
        same(norm([NAN, NAN, 1, -INF], 2, p, nan="ignore"), [NAN, 1, INF])
        same(norm([1], 1, p, pads=(0, 1)), [1, 0])
    for dtype in ("int8", "bool"):
        with pytest.raises(TypeError, match="^x: expected floats"):
            norm([1], 1, dtype=dtype)
    for p in (0, -1, NAN):
        with pytest.raises(ValueError, match="^p: "):
            norm([1], 1, p)


# ---------------------------------------------------------------------------------------- quantised


def quantised(x, kernel_shape, x_zero=0, y_zero=0, scales=(1, 1), dtype="uint8", **attributes):
    x = np.array(x, dtype)
    given = [scales[0], np.array(x_zero, dtype), scales[1], np.array([y_zero], dtype)]
    attributes.setdefault("layout", "W")
    y = _reference.qlinear_average_pool(x, *given, kernel_shape, **attributes)
    assert y.dtype == x.dtype
    return y.tolist()


def test_the_zero_point_is_added_after_rounding():
    """onnxruntime's AveragePool rounds the sum: 2 2 4 4. Its QuantizeLinear agrees with us."""
    x = [0, 1, 1, 2, 2, 3, 3, 4]
    assert quantised(x, 2, strides=2, y_zero=1) == [1, 3, 3, 5]
    assert quantised([v + 1 for v in x], 2, strides=2, x_zero=1) == [0, 2, 2, 4]


def test_padding_of_quantised_data_is_the_zero_point():
    attributes = {"strides": 2, "pads": 1, "ceil_mode": True, "x_zero": 10, "y_zero": 10}
    x = [70] * 4
    assert quantised(x, 3, **attributes) == [70, 70, 70]
    assert quantised(x, 3, **attributes, count_include_pad=True) == [50, 70, 40]
    assert quantised(x, 3, **attributes, count_include_pad=True, beyond="count") == [50, 70, 30]
    assert quantised([9], 1, pads=(2, 2), y_zero=7) == [7, 7, 16, 7, 7]


def test_scales():
    assert quantised([3, 4], 2, scales=(0.5, 0.25)) == [7]
    assert quantised([3, 4], 2, scales=(0.1, 0.1)) == [4]
    assert quantised([255], 1, scales=(2, 1)) == [255]
    assert quantised([-128, 127], 1, scales=(8, 1), dtype="int8", y_zero=-3) == [-128, 127]
    # 0.1 is the number that float32 holds, above 1/10: 2.5 times it over 0.5 is above a half.
    assert quantised([2, 3], 2, scales=(np.float32(0.1), 0.5)) == [1]
    x, none = np.array([4, 5], np.uint8), None
    assert _reference.qlinear_average_pool(x, 1, none, 1, none, 2, layout="W") == [4]
    for scale in (0, -1.0, NAN, INF, 1e-60, 1e60):
        for scales in ((scale, 1), (1, scale)):
            with pytest.raises(ValueError, match="^[xy]_scale: "):
                quantised([1], 1, scales=scales)
    for points in ((np.int8(1), none), (none, np.int32(1))):
        with pytest.raises(TypeError, match="^[xy]_zero_point: "):
            _reference.qlinear_average_pool(x, 1, points[0], 1, points[1], 2, layout="W")
    with pytest.raises(TypeError, match="^x: "):
        quantised([1], 1, dtype="int16")
