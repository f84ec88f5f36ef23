"""Averages of windows, pads and divisors of any size: exact, and at a cost that ignores padding."""

import math
import random
import time
from dataclasses import replace

import numpy as np
import pytest

import cases
import fastpool
from fastpool import _reference
from fastpool._planning.dtypes import is_float
from fastpool._running.averages import is_huge
from fastpool._running.huge import average_huge

KERNELS = [1, 2, 3, 2**31, 2**55, 2**60 + 1]
DILATIONS = [1, 1, 2, 3, 2**40, 2**60 - 1]
STRIDES = [1, 1, 2, 2**33, 2**59 + 1]
DIVISORS = [2**51, 2**51 + 1, 2**53 + 1, 2**64 - 1, 3 * 2**70, 10**40, 2**149, 2**1000]
ROUNDINGS = ["half_even", "half_away", "trunc", "floor"]


def drawn_axis(rng, size):
    """The kernel, stride, dilation and pads of an axis of at most a few outputs."""
    small = rng.random() < 0.3
    kernel = rng.randint(1, 4) if small else rng.choice([*KERNELS, 2**300])
    dilation = rng.randint(1, 3) if small or rng.random() < 0.5 else rng.choice(DILATIONS)
    stride = rng.randint(1, 3) if small else rng.choice([*STRIDES, 2**300])
    extent = (kernel - 1) * dilation + 1
    total = (rng.randint(1, 5) - 1) * stride + extent + rng.randint(0, stride - 1)
    pad = max(0, total - size)
    begins = [0, pad, pad // 2, extent - 1, extent // 2, stride, stride + size, extent - size]
    begin = min(pad, max(0, rng.choice(begins) + rng.randint(-2, 2)))
    return kernel, stride, dilation, begin, pad - begin


def drawn(rng, dtype):
    """A shape, a kernel and attributes."""
    rank = rng.choice([1, 1, 2, 2, 3])
    sizes = [rng.randint(1, 12 // rank) for _ in range(rank)]
    layout = rng.choice(cases.layouts(rank))
    shape = cases.array_shape(layout, rng.randint(1, 2), rng.randint(1, 3), sizes)
    axes = [drawn_axis(rng, size) for size in sizes]
    kernel, strides, dilations, begins, ends = zip(*axes, strict=True)
    divisor = rng.choice([None, None, rng.choice([-1, 1]) * rng.choice(DIVISORS)])
    # Negative quotients do not fit into an unsigned type; nothing is refused for int64.
    own = is_float(dtype) or divisor is None or divisor > 0
    results = [None] * own + ["float64"] * (dtype != "float64")
    results += [] if is_float(dtype) else ["int64", "float32"]
    result = rng.choice(results)
    integers = not is_float(result or dtype)
    attributes = {
        "strides": strides,
        "dilations": dilations,
        "pads": begins + ends,
        "ceil_mode": rng.random() < 0.4,
        "ceil_rule": rng.choice(["clip", "keep"]),
        "count_include_pad": rng.random() < 0.6,
        "beyond": rng.choice(["drop", "count"]),
        "divisor": divisor,
        "rounding": rng.choice(ROUNDINGS) if integers else "half_even",
        "nan": rng.choice(["propagate", "ignore"]),
        "numerics": rng.choice(["exact", "exact", "sequential"]),
        "layout": layout,
    }
    return shape, kernel, result, attributes


def directly(plan, x, result=None):
    """What `average_huge` computes, whether or not the plan is huge."""
    y = np.empty(plan.output_shape, x.dtype.newbyteorder("=") if result is None else result)
    average_huge(plan, x, y)
    return y


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_random_geometries(name):
    rng = random.Random(name)
    huge = 0
    for seed in range(150):
        shape, kernel, result, attributes = drawn(rng, name)
        x = cases.values(shape, name, rng.choice(cases.VALUE_KINDS), seed)
        x = cases.arranged(x, rng.choice(cases.ARRANGEMENTS))
        plan = fastpool.plan_avg_pool(shape, x.dtype, kernel, result_dtype=result, **attributes)
        expected = _reference.avg_pool(x, kernel, dtype=result, **attributes)
        cases.assert_same(directly(plan, x, result), expected, f"{seed}: {plan}")
        if is_huge(plan):
            huge += 1
            cases.assert_same(plan(x), expected, f"{seed}: {plan}")
            out = np.zeros((*expected.shape, 2), expected.dtype)[..., 1]
            assert plan(x, out) is out
            cases.assert_same(out, expected, f"{seed}, out=: {plan}")
    assert huge > 75


@pytest.mark.parametrize("name", cases.FLOAT_NAMES)
def test_numbers_of_all_exponents(name):
    """Sums of finite numbers far apart, over divisors that make results of any magnitude."""
    rng, random_x = random.Random(name), np.random.default_rng(1)
    for seed in range(60):
        x = cases.values((3, 7), name, "bits", seed)
        with np.errstate(invalid="ignore"):
            x[~np.isfinite(x)] = 1
        if seed % 2:
            x = random_x.standard_normal((3, 7)).astype(x.dtype)
        divisor = rng.choice([1, -3, 2**51 + 1, *(rng.getrandbits(rng.randint(2, 1024)) or 1,) * 3])
        for result in (None, *(() if name == "float64" else ("float64",))):
            attributes = {"divisor": divisor, "pads": (2**60, 2**60), "strides": 2, "layout": "NW"}
            kernel = 2**61
            plan = fastpool.plan_avg_pool(
                x.shape, x.dtype, kernel, result_dtype=result, **attributes
            )
            assert is_huge(plan)
            expected = _reference.avg_pool(x, kernel, dtype=result, **attributes)
            cases.assert_same(plan(x), expected, f"{seed}: {plan}")


@pytest.mark.parametrize("name", ["float32", "float64", "int16"])
def test_tiles(name):
    rng = random.Random(name)
    for seed in range(40):
        shape, kernel, result, attributes = drawn(rng, name)
        x = cases.values(shape, name, rng.choice(cases.VALUE_KINDS), seed)
        plan = fastpool.plan_avg_pool(shape, name, kernel, result_dtype=result, **attributes)
        whole = _reference.avg_pool(x, kernel, dtype=result, **attributes)
        for _ in range(4):
            ends = [sorted((rng.randint(0, n), rng.randint(0, n))) for n in whole.shape]
            outputs = tuple(slice(*pair) for pair in ends)
            part, read, write = plan.tile(outputs)
            cases.assert_same(part(x[read]), whole[write], f"{plan} {outputs}")


@pytest.mark.parametrize("name", ["float16", "float64", "uint8"])
@pytest.mark.parametrize("numerics", ["exact", "sequential"])
def test_adaptive_axes(numerics, name):
    for seed, (layout, shape, size) in enumerate(
        [("HW", (5, 7), (3, 4)), ("NHWC", (2, 6, 5, 3), (7, 2)), ("CW", (2, 9), 4)]
    ):
        attributes = {
            "layout": layout,
            "numerics": numerics,
            "nan": ("ignore", "propagate")[seed % 2],
        }
        x = cases.values(shape, name, "special", seed)
        plan = fastpool.plan_adaptive_avg_pool(shape, name, size, **attributes)
        cases.assert_same(directly(plan, x), _reference.adaptive_avg_pool(x, size, **attributes))


@pytest.mark.parametrize("numerics", ["exact", "sequential"])
def test_an_adaptive_axis_next_to_a_huge_one(numerics):
    """Plans of tiles may have axes of both kinds, without padding next to an adaptive one."""
    x = cases.values((2, 5, 7), "float32", "bits", 3)
    regular = fastpool.plan_avg_pool(x.shape, x.dtype, (3, 1), strides=(2**60, 1), layout="CHW")
    irregular = fastpool.plan_adaptive_avg_pool(x.shape, x.dtype, (5, 3), layout="CHW")
    plan = replace(
        regular,
        axes=(regular.axes[0]._replace(end=0), irregular.axes[1]),
        output_shape=(2, 1, 3),
        numerics=numerics,
        given=None,
    )
    assert is_huge(plan)
    expected = _reference.adaptive_avg_pool(x[:, :3], (1, 3), layout="CHW", numerics=numerics)
    cases.assert_same(plan(x), expected)


# ----------------------------------------------------------------------------------------- by hand


def average(x, dtype, divisor, **attributes):
    """The sum of all elements over a divisor."""
    x = np.array(x, cases.dtype(dtype))
    return fastpool.avg_pool(x, len(x), divisor=divisor, layout="W", **attributes)[0]


def test_halves_of_integers():
    big = 2**60
    for sum_of, expected in {1: (0, 1, 0, 0), 3: (2, 2, 1, 1), -1: (0, -1, 0, -1)}.items():
        x = [sum_of * big // 2 - 5, 5]
        for rounding, mean in zip(ROUNDINGS, expected, strict=True):
            assert average(x, "int64", big, rounding=rounding) == mean
            assert average(x, "int64", -big, rounding=rounding) == (
                -mean if rounding != "floor" else math.floor(-sum_of / 2)
            )
    assert average([2**59 + 1, 0], "int64", big) == 1
    assert average([2**59 - 1, 0], "int64", big) == 0


def test_integers_saturate():
    pads = {"pads": (2**60, 2**60), "layout": "W"}
    for name in ("int64", "uint64"):
        info = np.iinfo(name)
        x = np.array([info.max, info.max], name)
        assert fastpool.avg_pool(x, 2**60, divisor=1, strides=2**62, **pads)[0] == 0
        attributes = {"strides": 2**60, **pads}
        assert fastpool.avg_pool(x, 2**60, divisor=1, **attributes)[1] == info.max
        assert fastpool.avg_pool(x, 2**60, divisor=-1, **attributes)[1] == info.min


def test_halves_of_floats():
    ulp = 2.0**-149
    big = 2**60
    even = float(np.float32(2**24 / big))
    assert average([2**24, 1], "float32", big) == even
    assert average([2**24, 1, 2.0**-100], "float32", big) > even
    assert average([2**24, 3], "float32", -big) == -(2**24 + 4) / big
    for sum_of, divisor, mean in (
        (1, 2**150, 0),
        (1, 2**150 - 1, ulp),
        (1, 2**150 + 1, 0),
        (3, 2**150, 2 * ulp),
        (5, -(2**150), -2 * ulp),
        (2**24 - 1, 2**150, 2.0**-126),  # half of an ulp below the least normal number
    ):
        assert average([sum_of], "float32", divisor) == mean
    assert average([2.0**1000] * 4, "float64", 2**1002) == 1
    assert average([2.0**-100], "float64", 2**975) == 0
    assert average([2.0**-100], "float64", 2**975 - 1) == 2.0**-1074


def test_overflow_by_a_small_divisor():
    x = np.array([3e38, 3e38], np.float32)
    attributes = {"strides": 2**60, "pads": (2**60, 2**60), "layout": "W"}
    assert fastpool.avg_pool(x, 2**60, divisor=1, **attributes).tolist() == [0, np.inf]
    assert fastpool.avg_pool(x, 2**60, divisor=-1, **attributes).tolist() == [0, -np.inf]
    assert fastpool.avg_pool(x, 2**60, divisor=-2, **attributes)[1] == -x[0]


@pytest.mark.parametrize("numerics", ["exact", "sequential"])
def test_special_values(numerics):
    nan, inf = np.nan, np.inf
    for x, mean in (([inf, 1], -inf), ([-inf, 1], inf), ([inf, -inf], nan), ([nan, inf], nan)):
        y = average(x, "float32", -(2**60), numerics=numerics)
        np.testing.assert_array_equal(y, mean)
    for x, mean in (([nan, 2.0**60], 1), ([nan, nan], nan), ([nan, -inf], -inf)):
        y = average(x, "float32", 2**60, nan="ignore", numerics=numerics)
        np.testing.assert_array_equal(y, mean)


def test_ignored_nan_do_not_count_among_the_padding():
    x = np.array([np.nan, 2.0**60 - 1], np.float64)
    attributes = {"pads": (0, 2**60 - 2), "count_include_pad": True, "layout": "W"}
    assert fastpool.avg_pool(x, 2**60, nan="ignore", **attributes)[0] == x[1] / (2**60 - 1)
    assert np.isnan(fastpool.avg_pool(x, 2**60, **attributes)[0])


# ------------------------------------------------------------------------------- time in proportion

MANY = 100_000


def test_a_hundred_thousand_outputs():
    x = np.random.default_rng(0).standard_normal(MANY)
    for attributes in (
        {"pads": (2**54, 2**54 - 1), "count_include_pad": True},
        {"pads": (2**55 - 1, 0), "nan": "ignore"},
    ):
        plan = fastpool.plan_avg_pool((MANY,), "float64", 2**55, layout="W", **attributes)
        assert plan.output_shape == (MANY,)
        start = time.process_time()
        y = plan(x)
        assert time.process_time() - start < 10
        assert y[-1] == math.fsum(x) / (2**55 if plan.count_include_pad else MANY)


def test_a_row_becomes_a_column():
    """No array between is larger than the input and the output."""
    for shape in ((1, 20_000), (20_000, 1)):
        kernel = [2**31 if extent == 1 else extent for extent in shape]
        begins, ends = ([n * (extent == 1) for extent in shape] for n in (2**31 + 9999, 10_000))
        pads = (*begins, *ends)
        plan = fastpool.plan_avg_pool(shape, "int64", kernel, pads=pads, layout="HW")
        x = np.arange(20_000).reshape(shape)
        with cases.bounds():
            y = plan(x)
        assert y.size > 20_000 and {*y.flat} == {0, 10_000}
