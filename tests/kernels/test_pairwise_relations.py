"""What follows from one order of additions: relations of means, and how far they may be off."""

import functools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

import cases
import fastpool
from fastpool import _reference

FLOATS = cases.FLOAT_NAMES


def depth(n):
    """The additions after each other in the tree of n taps."""
    return 0 if n == 1 else depth(n // 2) + 1 + n % 2


def drawn(rng):
    """The shape of an array with its channels first, and a function that pools such an array."""
    rank = rng.choice([1, 2, 2, 3])
    sizes = [rng.randint(1, {1: 90, 2: 30, 3: 9}[rank]) for _ in range(rank)]
    shape, kind = (2, rng.choice([1, 3, 17]), *sizes), rng.random()
    if kind < 0.2:
        return shape, fastpool.global_avg_pool
    if kind < 0.4:
        numbers = [rng.choice([1, 2, n, 2 * n]) for n in sizes]
        return shape, functools.partial(fastpool.adaptive_avg_pool, output_size=numbers)
    kernel = [rng.randint(1, min(n, 20)) for n in sizes]
    attributes = {
        "kernel_shape": kernel,
        "strides": [rng.choice([1, 1, 2, 5]) for _ in sizes],
        "pads": 2 * [rng.choice([0, 0, k // 2, k + 1]) for k in kernel],
        "count_include_pad": rng.random() < 0.5,
        "divisor": rng.choice([None, None, 3, -5]),
    }
    return shape, functools.partial(fastpool.avg_pool, **attributes)


def calls(count, seed):
    """Shapes, functions and a seed for values."""
    rng = random.Random(seed)
    for number in range(count):
        yield *drawn(rng), number


@pytest.mark.parametrize("name", FLOATS)
def test_negated_elements_have_negated_means(name, isa):
    rng = random.Random(name)
    for shape, pool, seed in calls(40, name):
        kind = rng.choice([*cases.SUM_KINDS, "special", "bits"])
        x = cases.summands(shape, name, kind, seed)
        with np.errstate(all="ignore"):
            cases.assert_same(pool(-x), -pool(x), f"{shape} {pool}")


@pytest.mark.parametrize("name", FLOATS)
def test_scaled_elements_have_scaled_means(name, isa):
    rng = random.Random(name)
    wide = {"float16": "float32"}.get(name)  # where no mean is subnormal
    for shape, pool, seed in calls(40, name):
        x = cases.summands(shape, name, "quarters" if wide else "normal", seed)
        factor = 2.0 ** rng.choice([-40, -3, 1, 60] if wide is None else [-3, 1, 7])
        scaled = x * x.dtype.type(factor)
        y = pool(x, dtype=wide)
        cases.assert_same(pool(scaled, dtype=wide), y * y.dtype.type(factor), f"{shape} {pool}")


@pytest.mark.parametrize("result", [None, "float64"])
@pytest.mark.parametrize("name", FLOATS)
def test_means_of_sums_without_rounding_are_exact(name, result, isa):
    """A sum of up to 2000 quarters has at most 16 bits."""
    for shape, pool, seed in calls(40, name):
        x = cases.summands(shape, name, "quarters", seed)
        expected = pool(x, dtype=result, numerics="exact")
        cases.assert_same(pool(x, dtype=result), expected, f"{shape} {pool}")


@pytest.mark.parametrize("name", FLOATS)
def test_the_mean_of_a_power_of_two_of_equal_values_is_the_value(name, isa):
    """The least and the greatest that has a sum, and others of any exponent."""
    bits = cases.summands((1000,), name, "finite", 1)
    shapes = [(1, 1), (2, 2), (4, 1), (1, 32), (8, 16), (32, 64)]
    for number, value in enumerate(np.append(bits[:60], cases.special_floats(name))):
        kernel = shapes[number % len(shapes)]
        wide = "float64" if name == "float64" else "float32"
        with np.errstate(all="ignore"):
            if not np.isfinite(np.asarray(value).astype(wide) * np.dtype(wide).type(2048)):
                continue
        x = np.full((2, 3, 34, 66), value, cases.dtype(name))
        y = fastpool.avg_pool(x, kernel, strides=(3, 1))
        cases.assert_same(y, np.full_like(y, value), f"{kernel} of {value!r}")
        whole = fastpool.adaptive_avg_pool(x[:, :, :32, :64], (2, 8))
        cases.assert_same(whole, np.full_like(whole, value), f"16x8 of {value!r}")


@pytest.mark.parametrize("name", FLOATS)
def test_the_error_is_within_its_bound(name, isa):
    """Computed in rational numbers, with half a unit of the result's last place in addition."""
    digits = 53 if name == "float64" else 24
    of_result = {"float16": 11, "bfloat16": 8}.get(name)
    least = {"float16": -25, "bfloat16": -134}.get(name, 0)
    for shape, kernel, attributes in (
        ((1, 1, 9, 12), (3, 3), {"pads": 1}),
        ((1, 1, 9, 12), (3, 3), {"pads": 1, "count_include_pad": True, "divisor": -2}),
        ((1, 2, 40, 10), (33, 7), {"strides": (5, 2)}),
        ((1, 1, 3, 200), (1, 65), {"strides": 9}),
        ((1, 2, 64, 63), (64, 63), {}),
    ):
        depths = sum(map(depth, kernel))
        for kind in ("normal", "quarters", "powers"):
            x = cases.summands(shape, name, kind, 5)
            x = np.where(abs(x.astype(np.float64)) > 1e30, x.dtype.type(1), x).astype(x.dtype)
            y = fastpool.avg_pool(x, kernel, **attributes)
            numbers = _reference.exact.Numbers(x, name, "propagate")
            for place, mean in np.ndenumerate(y):
                total, sizes, divisor = sums(numbers, place, kernel, attributes)
                error = abs(Fraction(float(mean)) - total / divisor)
                allowed = Fraction(depths + 1, 2**digits) * sizes / abs(divisor)
                if of_result:
                    _, exponent = math.frexp(abs(float(mean)) + float(allowed))
                    allowed += Fraction(2) ** max(exponent - of_result - 1, least)
                assert error <= allowed, (place, mean, error, allowed)


def sums(numbers, place, kernel, attributes):
    """Return the true sum of a window, that of its magnitudes, and the divisor."""
    pad, strides = attributes.get("pads", 0), attributes.get("strides", 1)
    strides = strides if isinstance(strides, tuple) else (strides,) * 2
    box = []
    for out, k, stride in zip(place[2:], kernel, strides, strict=True):
        first = out * stride - pad
        box.append(slice(max(0, first), first + k))
    taps = numbers.integers[(*place[:2], *box)].ravel().tolist()
    scale = Fraction(2) ** numbers.exponent
    divisor = attributes.get("divisor") or len(taps)
    return sum(taps) * scale, sum(map(abs, taps)) * scale, divisor
