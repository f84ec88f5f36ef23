"""Average windows whose numbers compiled code cannot hold, in plain Python integers.

The cost grows with the input and the output. It depends neither on the taps of a window nor on the
padding. `averages.is_huge` says which plans come here.
"""

from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np

from .._planning.average_pool import count, rounded
from .._planning.dtypes import ITEMSIZE, is_float, limits
from .outputs import contiguous


class Taps(NamedTuple):
    """The real taps of each output along one axis: elements `first`, first + `lag`, ...

    `first` and `counts` are arrays of int64. The first element of a window without real taps is 0.
    """

    size: int
    lag: int
    first: np.ndarray
    counts: np.ndarray


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


class Numbers(NamedTuple):
    """The elements of an array: ``integers * 2**exponent``, and masks of those that are no numbers.

    The masks, of NaN, infinity and -infinity, are None if the elements are integers.
    """

    integers: np.ndarray
    exponent: int
    special: tuple = (None, None, None)


def average_huge(plan, x, y):
    """Write the averages of `x` into `y`, by a plan whose windows may be of any size.

    Nothing is written before all results are known.

    Parameters
    ----------
    plan : AvgPool
        With at least one output.
    x : ndarray
        Of the plan's input shape and element type, in any memory layout and byte order.
    y : ndarray
        Of the plan's output shape and result type, in native byte order.

    Raises
    ------
    MemoryError
        If there is no memory for the elements as Python integers.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpool._planning.average_pool import AvgPool, resolve
    >>> plan = AvgPool(**resolve((2,), "int8", 2, divisor=-(2**60), layout="W", rounding="floor"))
    >>> y = np.empty(1, np.int8)
    >>> average_huge(plan, np.array([3, 4], np.int8), y)
    >>> y
    array([-1], dtype=int8)
    """
    x = contiguous(x)
    taps = [_real_taps(axis) for axis in plan.axes]
    if not is_float(plan.dtype):
        numbers = Numbers(x.astype(object) + 0, 0)  # + 0: True counts as 1
    else:
        numbers = _decoded(x, FORMATS[plan.dtype])
    divisors, hidden = _divisors(plan, taps, numbers.special[0])
    if is_float(plan.dtype) and plan.numerics == "sequential":
        _average_in_order(plan, x, taps, divisors, hidden, y)
        return
    totals = _box_sums(plan, taps, numbers.integers)
    pairs = zip(totals.flat, np.broadcast_to(divisors, y.shape).flat, strict=True)
    if not is_float(plan.result_dtype):
        means = [_integer(*pair, plan.result_dtype, plan.rounding) for pair in pairs]
        y[...] = np.array(means, y.dtype).reshape(y.shape)
        return
    result = FORMATS[plan.result_dtype]
    means = [_pattern(*pair, numbers.exponent, result) for pair in pairs]
    patterns = np.array(means, result.word).reshape(y.shape)
    if is_float(plan.dtype):
        _mark_special(plan, taps, numbers.special, result, patterns)
        patterns[hidden] = result.infinity + 1
    y.view(result.word)[...] = patterns


# ------------------------------------------------------------------------------- taps and divisors


def _real_taps(axis):
    """Return the `Taps` of an axis."""
    outputs = range(axis.output)
    counts = [count(axis, (0, axis.size), output) for output in outputs]
    starts = [axis.window(output)[0] for output in outputs]
    pairs = zip(starts, counts, strict=True)
    first = [
        0 if not taps else start if start >= 0 else start % axis.dilation for start, taps in pairs
    ]
    lag = min(axis.dilation, max(1, axis.size))
    return Taps(axis.size, lag, np.array(first, np.int64), np.array(counts, np.int64))


def _divisors(plan, taps, nan):
    """Return the divisors of all windows, and where all real taps are NaN that is ignored.

    `nan` is the mask of NaN. The divisors are Python integers, in an array that broadcasts to the
    output's shape. Only windows without real taps, or of ignored NaN alone, may have a divisor of
    0.
    """
    if plan.divisor is None:
        places = plan.counted or (None,) * len(plan.axes)
        divisors = _outer(
            plan,
            (
                [count(axis, at, output) for output in range(axis.output)]
                for axis, at in zip(plan.axes, places, strict=True)
            ),
        )
    else:
        divisors = _outer(plan, ([plan.divisor], *([1] for _ in plan.axes[1:])))
    if nan is None or plan.nan != "ignore" or not nan.any():
        return divisors, np.zeros(plan.output_shape, bool)
    ignored = _box_sums(plan, taps, nan.astype(np.int64))
    hidden = (ignored > 0) & (ignored == _outer(plan, (along.counts for along in taps)))
    return divisors - ignored if plan.divisor is None else divisors, hidden


def _outer(plan, numbers):
    """Return the products of one list of numbers per spatial axis, in as many axes as arrays have.

    They are Python integers.
    """
    rank = len(plan.output_shape)
    products = np.ones((1,) * rank, object)
    for place, along in zip(plan.spatial, numbers, strict=True):
        shape = [1] * rank
        shape[place] = -1
        products = products * np.array(along, object).reshape(shape)
    return products


# -------------------------------------------------------------------------------------------- sums


def _box_sums(plan, taps, values):
    """Return the sum of the real taps of each window, for an array of ints."""
    # Axes that shrink the most come first, so no array between is larger than input or output.
    order = sorted(zip(plan.spatial, taps, strict=True), key=lambda pair: _growth(pair[1]))
    for place, along in order:
        values = np.moveaxis(_sums(np.moveaxis(values, place, -1), along), -1, place)
    return values


def _growth(taps):
    return len(taps.counts) / max(1, taps.size)


def _sums(values, taps):
    """Return the sums along the last axis, as differences of sums of elements a lag apart."""
    size, lag, first, counts = taps
    blocks = 1 + -(-size // lag)
    prefixes = np.zeros((*values.shape[:-1], blocks * lag), values.dtype)
    prefixes[..., lag : lag + size] = values
    of_lag = prefixes.reshape(*values.shape[:-1], blocks, lag)
    np.add.accumulate(of_lag, axis=-2, out=of_lag)
    return prefixes[..., first + counts * lag] - prefixes[..., first]


def _average_in_order(plan, x, taps, divisors, hidden, y):
    """Write averages whose sums are rounded after each tap, in row-major order, into `y`.

    Each step adds one tap of every window.
    """
    accumulator = "float64" if plan.dtype == "float64" else "float32"
    by = FORMATS[accumulator]
    divisors = np.array(
        [_pattern(divisor, 1, 0, by) for divisor in divisors.flat], by.word
    ).reshape(divisors.shape)
    with np.errstate(all="ignore"):
        values = x.astype(accumulator)
        if plan.nan == "ignore":
            values[np.isnan(values)] = -0.0  # adding it to any number changes nothing
        margins = [(0, int(place in plan.spatial)) for place in range(x.ndim)]
        values = np.pad(values, margins, constant_values=-0.0)
        sums = np.full(plan.output_shape, -0.0, accumulator)
        places = [np.arange(extent) for extent in x.shape]
        for tap in product(*(range(along.counts.max()) for along in taps)):
            for place, along, t in zip(plan.spatial, taps, tap, strict=True):
                at = along.first + t * along.lag
                places[place] = np.where(t < along.counts, at, along.size)
            sums += values[np.ix_(*places)]
        means = sums / divisors.view(accumulator)
        empty = _outer(plan, (along.counts for along in taps)) == 0
        means[np.broadcast_to(empty, means.shape)] = 0
        means[hidden] = np.nan
        y[...] = means


# ----------------------------------------------------------------------------------------- numbers


def _decoded(x, of):
    """Return the `Numbers` of an array of floats; those that are no numbers count as 0."""
    patterns = x.view(of.word)
    magnitudes = (patterns & of.word.type(of.sign - 1)).astype(np.int64)
    negative = patterns >= of.sign
    finite = magnitudes < of.infinity
    exponents = np.maximum((magnitudes >> (of.digits - 1)) - 1, 0)
    significands = np.where(finite, magnitudes - (exponents << (of.digits - 1)), 0)
    least = exponents.min(initial=2**11, where=significands != 0)
    integers = np.where(negative, -significands, significands).astype(object)
    integers <<= np.maximum(exponents - least, 0).astype(object)
    infinite = magnitudes == of.infinity
    special = magnitudes > of.infinity, infinite & ~negative, infinite & negative
    return Numbers(integers, of.least + int(least), special)


def _pattern(total, divisor, exponent, of):
    """Return the pattern of the float next to ``total / divisor * 2**exponent``.

    Halves go to the even one. A total of 0 gives 0, whatever the divisor.
    """
    if not total:
        return 0
    sign = of.sign if (total < 0) != (divisor < 0) else 0
    total, divisor = abs(total), abs(divisor)
    # Two digits more than there may be, of which the last is 1 if anything is left.
    last = total.bit_length() - divisor.bit_length() - of.digits
    last = max(last, of.least - exponent) - 2
    quotient, rest = divmod(total << max(-last, 0), divisor << max(last, 0))
    quotient |= rest > 0
    more = max(quotient.bit_length() - of.digits, 2)
    significand = (quotient + (1 << (more - 1)) - 1 + (quotient >> more & 1)) >> more
    # Above the least exponent, the leading digit of the significand adds 1 to the exponent.
    scale = last + more + exponent - of.least
    return sign | min((scale << (of.digits - 1)) + significand, of.infinity)


def _integer(total, divisor, name, rounding):
    """Return the integer of a type next to ``total / divisor``."""
    if not total:
        return 0
    least, most = limits(name)
    return min(max(rounded(Fraction(total, divisor), rounding), least), most)


def _mark_special(plan, taps, special, of, patterns):
    """Write the patterns of windows with NaN or infinities into `patterns`."""
    nan, high, low = (
        _box_sums(plan, taps, mask.astype(np.int64)) > 0 if mask.any() else False
        for mask in special
    )
    if plan.divisor is not None and plan.divisor < 0:
        high, low = low, high
    patterns[high] = of.infinity
    patterns[low] = of.sign | of.infinity
    patterns[np.logical_and(high, low)] = of.infinity + 1
    if plan.nan != "ignore":
        patterns[nan] = of.infinity + 1
