"""Exponentials and logarithms with 70 correct bits, of numbers that are sums of two doubles.

Such a number is a tuple of two arrays: the low one holds less than an ulp of the high one. Sums and
products of doubles are exact in two doubles (Knuth, Dekker) unless they overflow or underflow.
"""

import numpy as np

# ln 2 in three doubles. The first two have 32 bits, so their products with exponents are exact.
_LN2 = tuple(map(float.fromhex, ("0x1.62e42feep-1", "0x1.a39ef356p-33", "0x1.93c7673007e5fp-65")))
_SIXTH = 1 / 6, 2.0**-57 * 4 / 3
# Factor that moves the upper half of a double's digits to the left of its first digit.
_HALF = 2.0**27 + 1
# The argument of the series is divided by 2**_SQUARINGS, which as many squarings undo.
_SQUARINGS = 4


def exact_sum(a, b):
    """Return the sum of two arrays of doubles, exactly."""
    high = a + b
    part = high - a
    return high, (a - (high - part)) + (b - part)


def exact_product(a, b):
    """Return the product of two arrays of doubles, exactly."""
    high = a * b
    a0, a1 = _halves(a)
    b0, b1 = _halves(b)
    return high, ((a0 * b0 - high) + a0 * b1 + a1 * b0) + a1 * b1


def _halves(a):
    moved = a * _HALF
    upper = moved - (moved - a)
    return upper, a - upper


def add(a, b):
    """Return the sum of two numbers."""
    high, low = exact_sum(a[0], b[0])
    return exact_sum(high, low + (a[1] + b[1]))


def multiply(a, b):
    """Return the product of two numbers."""
    high, low = exact_product(a[0], b[0])
    return exact_sum(high, low + (a[0] * b[1] + a[1] * b[0]))


def divide(a, divisor):
    """Return a number divided by a double."""
    quotient = a[0] / divisor
    high, low = exact_product(quotient, divisor)
    return exact_sum(quotient, ((a[0] - high) - low + a[1]) / divisor)


def exponential(a):
    """Return a number between 0.7 and 1.5, and the power of 2 that makes it e to the power a."""
    power = np.rint(a[0] / _LN2[0])
    first, second, third = _LN2
    high, low = exact_sum(a[0] - power * first, -power * second)
    high, low = exact_sum(high, low + (a[1] - power * third))
    x = high / 2**_SQUARINGS, low / 2**_SQUARINGS
    # e**x - 1 by its series. Terms from x**4 on need no low part.
    tail = np.zeros_like(high)
    for factorial in (3628800, 362880, 40320, 5040, 720, 120, 24):
        tail = (tail + 1 / factorial) * x[0]
    sixth, rest = exact_sum(tail, _SIXTH[0])
    y = add(multiply(x, (sixth, rest + _SIXTH[1])), (0.5, 0.0))
    y = multiply(x, add(multiply(x, y), (1.0, 0.0)))
    for _ in range(_SQUARINGS):
        y = add((2 * y[0], 2 * y[1]), multiply(y, y))
    return add(y, (1.0, 0.0)), power.astype(np.int64)


def logarithm(a):
    """Return the natural logarithm of a positive number."""
    significand, power = np.frexp(a[0])
    # One step of Newton's method from the logarithm of a double.
    start = np.log(significand)
    (high, low), doublings = exponential((-start, 0.0))
    scale = np.exp2(doublings.astype(float))
    product, rest = exact_product(significand, high * scale)
    step = (product - 1) + (rest + significand * low * scale)
    return add(times_log_2(power), exact_sum(start, step + a[1] / a[0]))


def times_log_2(power):
    """Return an array of integers below 2**20, times the logarithm of 2."""
    first, second, third = _LN2
    high, low = exact_sum(power * first, power * second)
    return high, low + power * third
