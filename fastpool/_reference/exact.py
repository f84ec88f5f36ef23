"""Exact numbers: the elements of an array as integers, and one rounding to an element type."""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from .._planning.dtypes import is_float


class Format(NamedTuple):
    """A float type: the digits of its significands, and the exponents of 2.

    The least positive number is ``2**least``. All numbers are below ``2**most``.
    """

    digits: int
    least: int
    most: int


FORMATS = {
    "float16": Format(11, -24, 16),
    "bfloat16": Format(8, -133, 128),
    "float32": Format(24, -149, 128),
    "float64": Format(53, -1074, 1024),
}

# How a Fraction becomes an integer.
ROUNDINGS = {
    "half_even": round,
    "half_away": lambda value: math.trunc(value + Fraction(1 if value > 0 else -1, 2)),
    "trunc": math.trunc,
    "floor": math.floor,
}


class Numbers:
    """The elements of an array: ``integers * 2**exponent``, where they are finite numbers.

    Parameters
    ----------
    planes : ndarray
    dtype : str
        The canonical name of its element type.
    nan : {"propagate", "ignore"}

    Attributes
    ----------
    integers : ndarray of object
        Python integers; 0 for infinities and NaN.
    exponent : int
    special : ndarray of float64
        Infinities, NaN that propagates, else 0: the sum is what a sum with such elements is, or 0.
    ignored : ndarray of bool
        NaN that is ignored.
    """

    def __init__(self, planes, dtype, nan):
        if not is_float(dtype):
            self.integers = planes.astype(object) + 0  # + 0: True counts as 1
            self.exponent = 0
            self.special = np.zeros(planes.shape)
            self.ignored = np.zeros(planes.shape, bool)
            return
        with np.errstate(invalid="ignore"):  # signalling NaN
            values = planes.astype(np.float64)
        finite = np.isfinite(values)
        self.ignored = np.isnan(values) & (nan == "ignore")
        self.special = np.where(finite | self.ignored, 0, values)
        significands, exponents = np.frexp(np.where(finite, values, 0))
        least = exponents.min(initial=FORMATS["float64"].most, where=significands != 0)
        integers = np.ldexp(significands, 53).astype(np.int64).astype(object)
        self.integers = integers << np.maximum(exponents - least, 0).astype(object)
        self.exponent = int(least) - 53


def rounded(value, exponent, dtype, rounding="half_even"):
    """Return the number of a type next to ``value * 2**exponent``.

    Parameters
    ----------
    value : Fraction
    exponent : int
        0 for an integer type.
    dtype : str
        Floats are rounded to nearest, ties to even, with gradual underflow; what is too large is
        infinite. Integers beyond the type's range become its end.
    rounding : str
        How integers are rounded, a name in ROUNDINGS.

    Returns
    -------
    float or int
    """
    if not is_float(dtype):
        least, most = limits(dtype)
        return min(max(ROUNDINGS[rounding](value), least), most)
    if not value:
        return 0.0
    digits, least, most = FORMATS[dtype]
    size = value.numerator.bit_length() - value.denominator.bit_length()
    # The exponent of the last digit: abs(value) is between 2**(size - 1) and 2**(size + 1).
    last = max(size - digits, least - exponent)
    significand = value / Fraction(2) ** last
    if abs(significand) >= 2**digits:
        last += 1
        significand /= 2
    significand = round(significand)
    last += exponent
    if significand.bit_length() + last > most:
        return math.copysign(math.inf, significand)
    return math.ldexp(significand, last)


def limits(dtype):
    """Return the least and the greatest integer of an integer type or bool."""
    if dtype == "bool":
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)
