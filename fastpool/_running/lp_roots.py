"""Roots of sums of powers, and their rounding to narrower types, in arithmetic of float64."""

from typing import NamedTuple

import numpy as np

from .._planning.average_pool import AvgPool, resolve
from .._planning.dtypes import ITEMSIZE
from .._planning.plan_checks import resolved
from . import builds
from . import double_double as dd
from .activation import BLOCK
from .forks import remember
from .prepare import PreparedAverage

# How many ulp of float64 a root may be off: far more than it is.
_ULPS = 64
# Norms by a greater p are maxima. By a smaller p, they are infinite if a window has two elements
# that are not 0. Within these limits, products with p and quotients by p do not overflow.
_LEAST_P, _GREATEST_P = 2.0**-900, 2.0**100
# Sums of powers in float64 that have all their digits: smaller powers, which may lack some of
# theirs, are less than 2**-100 of the sum.
LEAST_SUM, MOST_SUM = 2.0**-800, 2.0**900
# Powers of e by a smaller exponent are 0 next to 1, and by a greater one infinite.
_LEAST_EXPONENT, _MOST_EXPONENT = -700.0, 3000.0
# Up to this p, if it is an integer, powers are products.
_MOST_PRODUCTS = 64


class Format(NamedTuple):
    """A float type: digits of its significands, and what its patterns of bits mean.

    The least positive number is ``2**least``. `infinity` is the pattern of infinity, and `sign` the
    bit of negative numbers. `word` is the unsigned integer type that holds a pattern.
    """

    digits: int
    least: int
    infinity: int
    sign: int
    word: np.dtype


def _format(name, digits):
    nbytes = ITEMSIZE[name]
    field = 8 * nbytes - digits  # bits of the exponent
    infinity = (2**field - 1) << (digits - 1)
    least = 3 - digits - 2 ** (field - 1)
    return Format(digits, least, infinity, 2 ** (8 * nbytes - 1), np.dtype(f"uint{8 * nbytes}"))


_DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
FORMATS = {name: _format(name, digits) for name, digits in _DIGITS.items()}


def as_float64(magnitudes, name):
    """Return magnitudes as float64."""
    if name == "bfloat16":
        magnitudes = (magnitudes.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return magnitudes.astype(np.float64)


def nan_of(target):
    """Return the bits of a quiet NaN of a `Format`."""
    return target.infinity + (1 << (target.digits - 2))


def nearest(values, target):
    """Return the bits of magnitudes of float64 in a narrower type, and which are sure to be right.

    Those of middles of two numbers, and next to one, are not.
    """
    if target.word == np.uint32:  # others take NumPy longer than integers do
        low, high = (
            (values * (1 + ulps * 2.0**-52)).astype(np.float32).view(np.uint32)
            for ulps in (-_ULPS, _ULPS)
        )
        return low, low == high
    dropped, bits = 53 - target.digits, values.view(np.int64)
    half, bias = 1 << (dropped - 1), 2 - target.digits - target.least
    is_sure = abs((bits & (2 * half - 1)) - half) > _ULPS
    is_sure &= (bits >> 52 > 1024 - bias) & (bits >> 52 < 1022 + bias)
    words = ((bits + half) >> dropped) - ((1023 - bias) << (target.digits - 1))
    return words.astype(target.word), is_sure


class Rounding:
    """How magnitudes of float64 are rounded to a narrower type: down or up, to the nearest.

    Attributes
    ----------
    lower, exponents : ndarray of int64
        The results if rounded down are ``lower * 2**exponents``.
    is_up : ndarray of bool
        Whether the results are the next numbers.
    is_near : ndarray of bool
        Whether a magnitude is so close to the middle of two numbers that `is_up` may be wrong.
    """

    def __init__(self, values, target):
        """`target` is the `Format` of the narrower type."""
        self._target = target
        bits = values.view(np.int64)
        self._infinite, self._nan, zero = np.isinf(values), np.isnan(values), values == 0
        # A value is significand * 2**power.
        power = (bits >> 52) - 1075
        significand = bits & (2**52 - 1) | 2**52
        dropped = np.maximum(53 - target.digits, target.least - power)
        self.lower, self.exponents = significand >> dropped, power + dropped
        rest, half = significand & ((1 << dropped) - 1), 1 << (dropped - 1)
        self.is_up = (rest > half) | (rest == half) & (self.lower & 1 == 1)
        numbers = ~(self._infinite | self._nan | zero)
        self.is_near = (abs(rest - half) <= _ULPS) & numbers
        self._zero = zero

    def patterns(self):
        """Return the bits of the results."""
        target = self._target
        scale = self.exponents - target.least << (target.digits - 1)
        patterns = np.minimum(scale + self.lower + self.is_up, target.infinity)
        patterns[self._zero] = 0
        patterns[self._infinite] = target.infinity
        patterns[self._nan] = nan_of(target)
        return patterns.astype(target.word)


def narrow_norms(taps, greatest, p, scale):
    """Return the norms of rows of numbers of a narrow type, in float64.

    Parameters
    ----------
    taps : ndarray of float64
        One row per window, without NaN and infinities.
    greatest : ndarray of float64
        The greatest of each row, above 0.
    p : float
    scale : tuple
        What sums are multiplied by: the sum of two numbers, or of two arrays.
    """
    sums = row_sums((taps / greatest[:, np.newaxis]) ** p)
    return greatest * (sums * scale[0]) ** (1 / p)


def norms(taps, greatest, p, scale):
    """Return the norms of rows of float64 within 1 ulp. Arguments are those of `narrow_norms`."""
    zero, greatest = taps == 0, greatest[:, np.newaxis]
    high, low = dd.logarithm((greatest, 0.0))
    logarithms = dd.logarithm((np.where(zero, greatest, taps), 0.0))
    terms = _exponentials(dd.add(logarithms, (-high, -low)), p)
    terms = np.concatenate([np.where(zero, 0.0, part) for part in terms], axis=1)
    high = row_sums(terms)
    low = row_sums(np.concatenate((terms, -high[:, np.newaxis]), axis=1))
    root, power = _root(dd.multiply((high, low), scale), p)
    significand, own_power = np.frexp(greatest[:, 0])
    high, low = dd.multiply(root, (significand, 0.0))
    return np.ldexp(high + low, power + own_power)


def are_products(p):
    """Are powers by p computed by multiplications alone?"""
    return p == int(p) <= _MOST_PRODUCTS


def product(values, p):
    """Return powers by an integer p, within (p - 1) / 2 ulp."""
    result = values if p & 1 else None
    while p := p >> 1:
        values = values * values
        if p & 1:
            result = values if result is None else result * values
    return result


def root(total, p):
    """Return roots of numbers by an integer p, within 2 ulp."""
    if p == 2:
        return np.sqrt(total)
    result = total ** (1 / p)
    # By a step of Newton's: 1 / p was rounded, which great and small numbers multiply.
    return result - result * (product(result, p) / total - 1) / p


def powers(values, p):
    """Return the powers of magnitudes of float64, as the sums of two arrays in one.

    Powers below 2**-900 have fewer digits, or none. None but 0 is below 2**-1010.
    """
    results = np.empty((2, values.size))
    flat = values.reshape(-1)
    for first in range(0, flat.size, BLOCK):
        block = slice(first, first + BLOCK)
        results[:, block] = _powers_of(flat[block], p)
    return results.reshape(2, *values.shape)


def _powers_of(values, p):
    positive = (values > 0) & np.isfinite(values)
    logarithms = dd.logarithm((np.where(positive, values, 1.0), 0.0))
    high, low = _exponentials(logarithms, p)
    high = np.where(positive, high, values)
    return high, np.where(np.isfinite(high) & (high > 0), low, 0.0)


def roots(total, p):
    """Return the root of a number in two doubles, as float64."""
    (high, low), power = _root(total, p)
    return np.ldexp(high + low, power)


def _exponentials(logarithms, p):
    """Return e to the power of p times numbers, in two doubles."""
    high, low = dd.multiply(logarithms, (_within_limits(p), 0.0))
    parts, power = dd.exponential(_limited(high, low))
    return [np.ldexp(part, power) for part in parts]


def _root(total, p):
    """Return the root of a number, and the power of 2 that it is to be multiplied by."""
    return dd.exponential(_limited(*dd.divide(dd.logarithm(total), _within_limits(p))))


def _within_limits(p):
    return min(max(p, _LEAST_P), _GREATEST_P)


def _limited(high, low):
    """Return exponents of e within the limits past which powers are 0 next to 1, or infinite."""
    limited = np.clip(high, _LEAST_EXPONENT, _MOST_EXPONENT)
    return limited, np.where(limited == high, low, 0.0)


def row_sums(terms):
    """Return the exact sum of each row, rounded once. It does not depend on the order."""
    return _summing(*terms.shape, builds.active_name()).run(terms, None)[:, 0]


@remember(16)
def _summing(rows, columns, build):
    """Return what adds up the rows of an array; it belongs to one build."""
    attributes = {"divisor": 1, "numerics": "exact", "layout": "NW", "num_threads": 1}
    fields = resolve((rows, columns), "float64", columns, **attributes)
    return PreparedAverage(resolved(AvgPool, fields))
