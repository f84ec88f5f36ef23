"""Quantised averages are exact: every result is the true mean, rounded once, as the slow twin's."""

import functools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from cases import assert_same, bounds
from fastpool import _reference
from fastpool.onnx import qlinear_average_pool, qlinear_global_average_pool

X = np.random.default_rng(0).integers(0, 256, (2, 3, 5, 4), np.uint8)
WINDOW = {"kernel_shape": [2, 2]}


def test_a_zero_point_is_added_after_rounding():
    """Means 0.5 1.5 2.5 3.5: onnxruntime's QLinearAveragePool gives 2 2 4 4."""
    x = np.array([[[0, 1, 2, 3, 4]]], np.uint8) + np.uint8(1)
    got = qlinear_average_pool(x, 1.0, 1, 1.0, 1, kernel_shape=[2])
    assert got.tolist() == [[[1, 3, 3, 5]]]


def test_padding_is_worth_zero():
    """The real 0, which is the zero point."""
    x = np.array([[[110, 120]]], np.uint8)
    pads = {"kernel_shape": [2], "pads": [1, 1]}
    for include, expected in ((0, [110, 115, 120]), (1, [105, 115, 110])):
        got = qlinear_average_pool(x, 0.5, 100, 0.5, 100, **pads, count_include_pad=include)
        assert got.tolist() == [[expected]]


def test_divisors_of_windows_that_reach_beyond():
    x = np.full((1, 1, 4), 60, np.uint8)
    attributes = {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}
    attributes |= {"ceil_mode": 1, "count_include_pad": 1}
    for beyond, last in (("drop", 30), ("count", 20)):
        got = qlinear_average_pool(x, 1.0, 0, 1.0, 0, **attributes, beyond=beyond)
        assert got.tolist() == [[[40, 60, last]]]


def test_windows_without_elements_are_zero():
    """Which is the zero point of the result."""
    x = np.full((1, 1, 1), 7, np.uint8)
    for include in (0, 1):
        attributes = {"kernel_shape": [1], "pads": [2, 1], "count_include_pad": include}
        got = qlinear_average_pool(x, 1.0, 3, 1.0, 9, **attributes)
        assert got.tolist() == [[[9, 9, 13, 9]]]


def test_results_saturate():
    x = np.array([[[-128, 0, 127]]], np.int8)
    got = qlinear_average_pool(x, 100.0, 0, 0.5, 5, kernel_shape=[1])
    assert got.tolist() == [[[-128, 5, 127]]]
    for scales in ((3e38, 1e-45), (np.float32(3e38), np.float32(1e-45))):
        got = qlinear_average_pool(x, scales[0], 0, scales[1], 5, kernel_shape=[1])
        assert got.tolist() == [[[-128, 5, 127]]]
    got = qlinear_average_pool(x, 1e-45, 0, 3e38, 5, kernel_shape=[1])
    assert got.tolist() == [[[5, 5, 5]]]


def random_case(seed):
    """A pooling with ties, near ties and saturation: (x, quantisation, native attributes)."""
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    dtype, n = choose.choice(["uint8", "int8"]), choose.choice([1, 2, 2, 3])
    info = np.iinfo(dtype)
    shape = (2, 2, *(choose.randint(1, 7) for _ in range(n)))
    x = rng.integers(info.min, info.max + 1, shape, dtype)
    quantisation = (
        np.float32(choose.choice([1, 0.5, 0.1, 0.37, 1e-30, 3e38, 1e-45])),
        choose.randint(info.min, info.max),
        np.float32(choose.choice([1, 0.5, 0.25, 0.1, 0.37, 1e-30, 3e38])),
        choose.randint(info.min, info.max),
    )
    attributes = {
        "strides": [choose.randint(1, 3) for _ in range(n)],
        "ceil_mode": choose.randint(0, 1),
        "count_include_pad": choose.randint(0, 1),
        "beyond": choose.choice(["drop", "count"]),
        "ceil_rule": choose.choice(["clip", "keep"]),
    }
    if choose.random() < 0.7:
        attributes["pads"] = [choose.randint(0, 3) for _ in range(2 * n)]
    else:
        attributes["auto_pad"] = choose.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    window = [choose.randint(1, min(4, size)) for size in shape[2:]]
    return x, quantisation, window, attributes


@pytest.mark.parametrize("seed", range(150))
def test_against_the_slow_twin(seed):
    x, quantisation, window, attributes = random_case(seed)
    expected = _reference.qlinear_average_pool(x, *quantisation, window, **attributes)
    got = qlinear_average_pool(x, *quantisation, kernel_shape=window, **attributes)
    assert_same(got, expected)
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    got = qlinear_average_pool(
        last, *quantisation, kernel_shape=window, **attributes, channels_last=1
    )
    assert_same(got, np.moveaxis(expected, 1, -1))
    expected = _reference.qlinear_average_pool(x, *quantisation, x.shape[2:])
    assert_same(qlinear_global_average_pool(x, *quantisation), expected)
    got = qlinear_global_average_pool(last, *quantisation, channels_last=1)
    assert_same(got, np.moveaxis(expected, 1, -1))


def test_large_windows():
    x = np.random.default_rng(1).integers(0, 256, (1, 2, 20, 20), np.uint8)
    quantisation = 0.1, 128, 0.02, 3
    for attributes in ({}, {"pads": [2, 0, 1, 0], "count_include_pad": 1}):
        got = qlinear_average_pool(x, *quantisation, kernel_shape=[18, 19], **attributes)
        expected = _reference.qlinear_average_pool(x, *quantisation, [18, 19], **attributes)
        assert_same(got, expected)


def with_totals(totals, taps):
    """Return a channel of `taps` elements for each total."""
    places = np.arange(taps)
    return np.array([[total // taps + (places < total % taps) for total in totals]], np.uint8)


@pytest.mark.parametrize("taps", [8, 250, 251, 300])
@pytest.mark.parametrize("zero_point", [0, 7])
def test_halves_and_their_neighbours(taps, zero_point):
    """Of all sums next to a change of the mean."""
    for step in (1, 0.5, 0.25, 3):
        changes = [int((2 * k + 1) * taps / (2 * step)) for k in range(int(255 * step))]
        totals = [t + near for t in changes for near in (-1, 0, 1) if 0 <= t + near <= 255 * taps]
        got = qlinear_global_average_pool(with_totals(totals, taps), step, 0, 1.0, zero_point)
        expected = [
            min(255, round(Fraction(t, taps) * int(4 * step) / 4) + zero_point) for t in totals
        ]
        assert got.ravel().tolist() == expected


@pytest.mark.parametrize("taps", [201, 301])
def test_close_to_a_half(taps):
    """Means odd / 2 + by / (2 * taps * y_scale)."""
    choose = random.Random(taps)
    tried = 0
    while tried < 50:
        total, odd = choose.randint(1000, 255 * taps), choose.randrange(1, 500, 2)
        by, halves = choose.choice([-1, 1]), odd * taps
        if math.gcd(2 * total, halves) > 1:
            continue
        # Solve 2 * total * x_scale - halves * y_scale = by by the largest integers of 24 bits.
        x_scale = by * pow(2 * total, -1, halves) % halves
        y_scale = (2 * total * x_scale - by) // halves
        turns = min((2**24 - x_scale) // halves, (2**24 - y_scale) // (2 * total))
        x_scale, y_scale = x_scale + turns * halves, y_scale + turns * 2 * total
        if not 2**22 < y_scale < 2**24:
            continue
        tried += 1
        mean = Fraction(total * x_scale, taps * y_scale)
        assert 0 < abs(mean - Fraction(odd, 2)) < 2.0**-30
        x = with_totals([total], taps)
        got = qlinear_global_average_pool(x, float(x_scale), 0, float(y_scale), 0)
        assert got.item() == min(255, round(mean))


@pytest.mark.parametrize("include", [0, 1])
def test_time_of_many_divisors(include):
    """It grows with the outputs, although the windows have 200 counts along each axis."""
    x = np.random.default_rng(2).integers(0, 256, (1, 1, 200, 200), np.uint8)
    attributes = {"kernel_shape": [200, 200], "pads": [199] * 4, "count_include_pad": include}
    with bounds():
        got = qlinear_average_pool(x, 3.0, 5, 7.0, 9, **attributes)
    taps = np.tri(399, 200, dtype=np.int64) - np.tri(399, 200, -200, dtype=np.int64)
    sums = taps @ (x.astype(np.int64) - 5) @ taps.T
    counts = taps.sum(1)
    divisors = 200**2 if include else np.multiply.outer(counts, counts)
    lower, rest = np.divmod(3 * sums, 7 * divisors)
    twice = 2 * rest - 7 * divisors
    expected = lower + ((twice > 0) | ((twice == 0) & (lower % 2 == 1))) + 9
    assert_same(got, np.clip(expected, 0, 255).astype(np.uint8))


@pytest.mark.parametrize("extent", [32, 2**26])
def test_many_halves(extent):
    """Integers of 128 bits decide them where divisors are large."""
    totals = np.arange(-400, 401)
    x = np.zeros((1, totals.size, 32, 32), np.int8)
    x[0, :, :4, 0] = with_totals(totals + 400, 4)[0].astype(np.int16) - 100
    pads = [extent - 32, extent - 32, 0, 0]
    attributes = {"kernel_shape": [extent] * 2, "pads": pads, "count_include_pad": 1}
    got = qlinear_average_pool(x, extent**2 / 2.0, 0, 1.0, 0, **attributes)
    assert got.ravel().tolist() == [min(127, max(-128, round(t / 2))) for t in totals.tolist()]


def test_windows_and_padding_at_the_limits():
    """Divisors are exact; nothing loops over padding."""
    x, most = np.array([[[255]]], np.uint8), 2**31 - 1
    attributes = {"kernel_shape": [most], "pads": [most, most - 1], "strides": [most]}
    with bounds():
        got = qlinear_average_pool(x, 1.0, 0, 1.0, 7, **attributes)
        assert got.tolist() == [[[7, 255]]]
        got = qlinear_average_pool(x, 1.0, 0, 1.0, 7, **attributes, count_include_pad=1)
        assert got.tolist() == [[[7, 7]]]
    attributes = {"kernel_shape": [2**30], "pads": [2**30 - 1, 0], "count_include_pad": 1}
    got = qlinear_average_pool(x, 2.0**30, 0, 1.0, 1, **attributes)
    assert got.tolist() == [[[255]]]
    got = qlinear_average_pool(x, 2.0**23, 0, 1.0, 1, **attributes)
    assert got.tolist() == [[[3]]]  # 255 / 128, and 1


@pytest.mark.parametrize("channels", [2, 16, 17])
@pytest.mark.parametrize("last", [0, 1])
def test_neighbours_whose_divisors_are_nearly_equal(channels, last, isa):
    """Their factors differ in the low part alone."""
    x = np.zeros((1, 1, 4, channels), np.uint8)
    x[0, 0, 2] = 1
    x = x if last else np.ascontiguousarray(np.moveaxis(x, -1, 1))
    attributes = {"kernel_shape": (1, 2**24), "strides": (1, 2), "pads": (0, 2**24 - 4, 0, 1)}
    attributes |= {"ceil_mode": 1, "count_include_pad": 1, "beyond": "drop"}
    got = qlinear_average_pool(x, 2.0**23, 0, 1.0, 0, **attributes, channels_last=last)
    axis = 2 if last else 3
    assert np.moveaxis(got, axis, 0).reshape(got.shape[axis], -1).any(1).tolist() == [0, 1]


@pytest.mark.parametrize("pool", [qlinear_average_pool, qlinear_global_average_pool])
def test_scales_and_zero_points_may_be_arrays(pool):
    """As they are in models; and absent zero points are 0."""
    more = WINDOW if pool is qlinear_average_pool else {}
    expected = pool(X, 0.1, 3, 0.3, 0, **more)
    scale, result = np.array(0.1, np.float32), np.array([0.3], np.float32)
    assert_same(pool(X, scale, np.array([3], np.uint8), result, np.uint8(0), **more), expected)
    assert_same(pool(X, np.float32(0.1), np.array(3, np.uint8), result, None, **more), expected)
    assert_same(pool(X, scale, 3, result, **more), expected)
    assert_same(pool(X, 0.1, None, 0.3, **more), pool(X, 0.1, 0, 0.3, 0, **more))


@pytest.mark.parametrize("pool", [qlinear_average_pool, qlinear_global_average_pool])
@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"x": X.astype(np.int16)}, TypeError, "x: expected uint8 or int8, got int16"),
        ({"x": X.astype(np.float32)}, TypeError, "x: expected uint8 or int8"),
        ({"x": X[0, 0]}, ValueError, "at least one spatial axis"),
        ({"x_scale": 0.0}, ValueError, "x_scale: expected a finite float32 above 0"),
        ({"x_scale": -1.0}, ValueError, "x_scale"),
        ({"x_scale": np.nan}, ValueError, "x_scale"),
        ({"y_scale": np.inf}, ValueError, "y_scale"),
        ({"y_scale": 1e39}, ValueError, "y_scale"),
        ({"y_scale": 1e-46}, ValueError, "y_scale"),
        ({"y_scale": None}, TypeError, "y_scale"),
        ({"y_scale": "1"}, TypeError, "y_scale"),
        ({"y_scale": np.ones(2, np.float32)}, ValueError, "y_scale: expected one number"),
        ({"x_zero_point": 256}, ValueError, "x_zero_point"),
        ({"x_zero_point": -1}, ValueError, "x_zero_point"),
        ({"x_zero_point": 1.0}, TypeError, "x_zero_point"),
        ({"y_zero_point": np.int8(1)}, TypeError, "y_zero_point: expected uint8"),
        ({"y_zero_point": np.zeros(3, np.uint8)}, ValueError, "y_zero_point"),
        ({"channels_last": 2}, ValueError, "channels_last"),
        ({"channels_last": "1"}, TypeError, "channels_last"),
        ({"num_threads": 0}, ValueError, "num_threads"),
        ({"dilations": [1, 1]}, TypeError, "dilations"),
    ],
)
def test_bad_arguments(pool, change, error, match):
    usual = {"x": X, "x_scale": 1.0, "x_zero_point": 0, "y_scale": 1.0, "y_zero_point": 0}
    if pool is qlinear_average_pool:
        usual |= WINDOW
    with pytest.raises(error, match=match):
        pool(**(usual | change))


@pytest.mark.parametrize(
    ("attributes", "error", "match"),
    [
        ({"kernel_shape": [2]}, ValueError, "kernel_shape"),
        ({"kernel_shape": None}, TypeError, "kernel_shape"),
        ({"kernel_shape": [6, 2]}, ValueError, "kernel_shape"),
        ({"strides": [0, 1]}, ValueError, "strides"),
        ({"pads": [1, 1]}, ValueError, "pads"),
        ({"pads": [1, 0, 0, 0], "auto_pad": "VALID"}, ValueError, "pads"),
        ({"auto_pad": "SAME"}, ValueError, "auto_pad"),
        ({"ceil_mode": 2}, ValueError, "ceil_mode"),
        ({"count_include_pad": 2}, ValueError, "count_include_pad"),
        ({"beyond": 1}, TypeError, "beyond"),
    ],
)
def test_bad_attributes(attributes, error, match):
    with pytest.raises(error, match=match):
        qlinear_average_pool(X, 1.0, 0, 1.0, 0, **(WINDOW | attributes))


@pytest.mark.parametrize("pool", [qlinear_average_pool, qlinear_global_average_pool])
def test_outputs(pool):
    more = WINDOW if pool is qlinear_average_pool else {}
    values = 0.1, 3, 0.05, 4
    expected = pool(X, *values, **more)
    out = np.zeros((*expected.shape[:-1], 2 * expected.shape[-1]), np.uint8)[..., ::2]
    assert pool(X, *values, **more, out=out) is out
    assert_same(out, expected)
    for wrong, error in (
        (np.zeros(expected.shape, np.int8), TypeError),
        (np.zeros((1, 1), np.uint8), ValueError),
        (np.broadcast_to(np.uint8(0), expected.shape), ValueError),
        (X[tuple(map(slice, expected.shape))], ValueError),
        ("out", TypeError),
    ):
        with pytest.raises(error, match="out"):
            pool(X, *values, **more, out=wrong)


def test_no_elements():
    for shape in ((0, 3, 4, 4), (2, 0, 4, 4)):
        x = np.zeros(shape, np.int8)
        assert qlinear_average_pool(x, 1.0, 0, 1.0, 0, **WINDOW).shape == (*shape[:2], 3, 3)
        assert qlinear_global_average_pool(x, 1.0, 0, 1.0, 0).shape == (*shape[:2], 1, 1)
    with bounds():  # nothing is counted for results that are not there
        x = np.zeros((0, 1, 2**40), np.int8)
        got = qlinear_average_pool(x, 1.0, 0, 1.0, 0, kernel_shape=[3], pads=[1, 1])
    assert got.shape == (0, 1, 2**40)
    with pytest.raises(ValueError, match="at least one element along each spatial axis"):
        qlinear_global_average_pool(np.zeros((1, 1, 0), np.int8), 1.0, 0, 1.0, 0)


@functools.cache
def trials(dtype):
    """Return calls by floats and doubles, of one divisor and of many, sure of middles and not.

    Each is an array, its quantisation, the window, attributes, and the result of the slow twin.
    """
    rng = np.random.default_rng(5)
    info = np.iinfo(dtype)
    calls = []
    for trial in range(60):
        size = (int(rng.integers(1, 24)), int(rng.integers(1, 40)))
        channels, window = (
            int(rng.choice([1, 3, 17, 40])),
            [int(rng.integers(1, n + 1)) for n in size],
        )
        window = window if trial % 4 else [*size]
        x = rng.integers(info.min, info.max, (2, channels, *size), dtype, endpoint=True)
        steps = (
            (0.5, 0.5),
            (0.02, 0.015),
            (1, 64),
            (2.0**-20, 3 * 2.0**-15),
            (1e-6, 1e-3),
            (7, 0.3),
        )
        x_scale, y_scale = steps[trial % len(steps)]
        zeros = rng.integers(info.min, info.max, 2, endpoint=True).tolist()
        values = np.float32(x_scale), zeros[0], np.float32(y_scale), zeros[1]
        attributes = {
            "strides": [int(rng.integers(1, 4)), int(rng.integers(1, 4))],
            "pads": [int(rng.integers(0, k)) for k in window] * 2,
            "ceil_mode": trial % 2,
            "count_include_pad": trial % 3 % 2,
        }
        expected = _reference.qlinear_average_pool(x, *values, window, **attributes)
        calls.append((x, values, window, attributes, expected))
    return calls


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_every_build(dtype, layout, isa):
    for x, values, window, attributes, expected in trials(dtype):
        last = layout == "NHWC"
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1)) if last else x
        expected = np.moveaxis(expected, 1, -1) if last else expected
        out = np.empty((*expected.shape[:-1], expected.shape[-1] + 3), dtype)[..., :-3]
        for threads, into in ((1, None), (3, out)):
            got = qlinear_average_pool(
                x,
                *values,
                kernel_shape=window,
                **attributes,
                channels_last=int(last),
                num_threads=threads,
                out=into,
            )
            assert_same(got, expected)
