"""Average windows whose numbers compiled code cannot hold, in plain Python integers.

The cost grows with the input and the output. It depends neither on the taps of a window nor on the
padding. `averages.is_huge` says which plans come here.
"""

from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np

from .._planning.average_pool import AvgPool, count, resolve, rounded
from .._planning.dtypes import ITEMSIZE, is_float, limits
from .outputs import contiguous
from .prepare import PreparedAverage


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

    If the elements are integers, the masks are False.
    """

    integers: np.ndarray
    exponent: int
    nan: np.ndarray = np.False_
    high: np.ndarray = np.False_  # infinity
    low: np.ndarray = np.False_  # -infinity


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
    taps = list(map(_real_taps, plan.axes))
    if not is_float(plan.result_dtype):
        y[...] = _integer_means(plan, taps, x)
        return
    in_order = plan.numerics == "sequential" and is_float(plan.dtype)
    target = FORMATS[plan.result_dtype]
    y.view(target.word)[...] = (_means_in_order if in_order else _means)(plan, taps, x, target)


def quantize_huge(plan, quantization, x, y):
    """Write quantised means: those of :func:`average_huge` as elements of another scale.

    `quantization` is a `quantized.Quantization`. The plan is one of integers.
    """
    step, x_zero_point, y_zero_point, _ = quantization
    elements = contiguous(x).astype(object) - x_zero_point
    taps = list(map(_real_taps, plan.axes))
    y[...] = _rounded_means(plan, taps, elements, lambda mean: round(mean * step) + y_zero_point)


# ------------------------------------------------------------------------------------------- means


def _integer_means(plan, taps, x):
    """Return the means of integers in an integer type, beyond whose ends they saturate."""
    integers = _numbers(x, plan.dtype).integers
    return _rounded_means(plan, taps, integers, lambda mean: rounded(mean, plan.rounding))


def _rounded_means(plan, taps, integers, finish):
    """Return what `finish` makes of each mean, an exact fraction; it saturates."""
    totals = _box_sums(plan, taps, integers)
    divisors, _ = _divisors(plan, taps, np.False_)
    least, most = limits(plan.result_dtype)
    means = [
        min(max(finish(Fraction(total, divisor or 1)), least), most)  # (no elements: a total of 0)
        for total, divisor in _pairs(totals, divisors)
    ]
    return np.array(means, plan.result_dtype).reshape(totals.shape)


def _means(plan, taps, x, target):
    """Return the patterns of the means in a float type."""
    numbers = _numbers(x, plan.dtype)
    divisors, hidden = _divisors(plan, taps, numbers.nan)
    totals = _box_sums(plan, taps, numbers.integers)
    nan, high, low = (_holds(plan, taps, mask) for mask in (numbers.nan, numbers.high, numbers.low))
    nan = hidden if plan.nan == "ignore" else nan
    return _quotients(Numbers(totals, numbers.exponent, nan, high, low), divisors, target)


def _means_in_order(plan, taps, x, target):
    """Return the patterns of means whose sums are rounded after each tap, in row-major order.

    Sums and quotients are of float64 if the elements are, else of float32.
    """
    accumulator = "float64" if plan.dtype == "float64" else "float32"
    with np.errstate(invalid="ignore"):  # signalling NaN
        values = x.astype(accumulator)
    nan = np.isnan(values)
    if plan.nan == "ignore":
        values[nan] = -0.0
    divisors, hidden = _divisors(plan, taps, nan)
    totals = _numbers(_sums_in_order(plan, taps, values), accumulator)
    of = FORMATS[accumulator]
    patterns = [_pattern(divisor, 1, 0, of) for divisor in divisors.flat]
    patterns = np.array(patterns, of.word).reshape(divisors.shape)
    divisors = _numbers(patterns.view(accumulator), accumulator)
    infinite = divisors.high | divisors.low
    totals = totals._replace(
        integers=np.where(infinite, 0, totals.integers),
        exponent=totals.exponent - divisors.exponent,
        nan=totals.nan | hidden | infinite & (totals.high | totals.low),
    )
    means = _quotients(totals, divisors.integers, of).view(accumulator)
    return _quotients(_numbers(means, accumulator), np.array(1, object), target)


def _sums_in_order(plan, taps, values):
    """Return the sums of the real taps of each window, rounded after each tap.

    Each step adds one tap of every window. It does so by compiled code, which no flag of the thread
    changes. Where a window has no tap more, -0.0 is added, which changes no number.
    """
    margins = [(0, int(place in plan.spatial)) for place in range(values.ndim)]
    padded = np.pad(values, margins, constant_values=-0.0)
    terms = np.full((2, *plan.output_shape), -0.0, values.dtype)  # the sums, and what to add
    pairs = terms.reshape(2, -1)
    rules = {"divisor": 1, "numerics": "sequential", "layout": "HW", "num_threads": 1}
    add = PreparedAverage(AvgPool(**resolve(pairs.shape, values.dtype, (2, 1), **rules))).run
    places = [np.arange(extent) for extent in values.shape]
    for tap in product(*(range(along.counts.max()) for along in taps)):
        for place, along, t in zip(plan.spatial, taps, tap, strict=True):
            at = along.first + t * along.lag
            places[place] = np.where(t < along.counts, at, along.size)
        terms[1] = padded[np.ix_(*places)]
        pairs[:1] = add(pairs, None)
    return terms[0]


def _quotients(totals, divisors, target):
    """Return the patterns of totals, which are `Numbers`, over divisors of one sign."""
    means = [_pattern(*pair, totals.exponent, target) for pair in _pairs(totals.integers, divisors)]
    means = np.array(means, target.word).reshape(totals.integers.shape)
    high, low = (totals.high, totals.low)[:: -1 if divisors.flat[0] < 0 else 1]
    means[high] = target.infinity
    means[low] = target.sign | target.infinity
    means[totals.nan | high & low] = target.infinity + 1
    return means


def _pairs(totals, divisors):
    return zip(totals.flat, np.broadcast_to(divisors, totals.shape).flat, strict=True)


# ------------------------------------------------------------------------------- taps and divisors


def _real_taps(axis):
    """Return the `Taps` of an axis."""
    counts = _counts(axis, (0, axis.size))
    first = [axis.window(output)[0] for output in range(axis.output)]
    first = [
        0 if not taps else start if start >= 0 else start % axis.dilation
        for start, taps in zip(first, counts, strict=True)
    ]
    lag = min(axis.dilation, max(1, axis.size))
    return Taps(axis.size, lag, np.array(first, np.int64), np.array(counts, np.int64))


def _counts(axis, places):
    """Return how many taps of each output lie in `places`, as `average_pool.count` does."""
    return [count(axis, places, output) for output in range(axis.output)]


def _divisors(plan, taps, nan):
    """Return the divisors of all windows, and a mask of those whose elements are all ignored.

    `nan` is the mask of NaN. The divisors are Python integers in an array that broadcasts to the
    output's shape. A divisor may be 0 where a window has no elements, or none but ignored ones.
    """
    if plan.divisor is not None:
        divisors = np.full((1,) * len(plan.output_shape), plan.divisor, object)
    else:
        divisors = _outer(plan, map(_counts, plan.axes, plan.counted or [None] * len(plan.axes)))
    if plan.nan != "ignore" or not nan.any():
        return divisors, np.False_
    ignored = _box_sums(plan, taps, nan.astype(np.int64))
    hidden = (ignored > 0) & (ignored == _real_counts(plan, taps))
    return divisors - ignored if plan.divisor is None else divisors, hidden


def _real_counts(plan, taps):
    return _outer(plan, (along.counts for along in taps))


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
    shape = *values.shape[:-1], 1 + -(-size // lag), lag
    prefixes = np.zeros((*shape[:-2], shape[-2] * lag), values.dtype)
    prefixes[..., lag : lag + size] = values
    blocks = prefixes.reshape(shape)
    np.add.accumulate(blocks, axis=-2, out=blocks)
    return prefixes[..., first + counts * lag] - prefixes[..., first]


def _holds(plan, taps, mask):
    """Return which windows hold an element of a mask; False if none does."""
    return _box_sums(plan, taps, mask.astype(np.int64)) > 0 if mask.any() else np.False_


# ----------------------------------------------------------------------------------------- numbers


def _numbers(x, name):
    """Return the `Numbers` of an array. Elements that are no numbers count as 0."""
    if not is_float(name):
        return Numbers(x.astype(object) + 0, 0)  # + 0: True counts as 1
    # Only integers are used, because flags of the thread can make subnormal floats 0.
    digits, least, infinity, sign, word = FORMATS[name]
    patterns = x.view(word)
    magnitudes = (patterns & word.type(sign - 1)).astype(np.int64)
    negative = patterns >= sign
    exponents = np.maximum((magnitudes >> (digits - 1)) - 1, 0)
    significands = magnitudes - (exponents << (digits - 1))
    significands[magnitudes >= infinity] = 0
    lowest = exponents.min(initial=2**11, where=significands != 0)
    integers = np.where(negative, -significands, significands).astype(object)
    integers <<= np.maximum(exponents - lowest, 0).astype(object)
    infinite = magnitudes == infinity
    special = magnitudes > infinity, infinite & ~negative, infinite & negative
    return Numbers(integers, least + int(lowest), *special)


def _pattern(total, divisor, exponent, target):
    """Return the pattern of the float next to ``total / divisor * 2**exponent``.

    Halves go to the even one. A total of 0 gives 0, whatever the divisor.
    """
    if not total:
        return 0
    digits, least, infinity, sign, _ = target
    sign *= (total < 0) != (divisor < 0)
    total, divisor = abs(total), abs(divisor)
    # The quotient has at least two digits too many. Its last digit is 1 if there is a rest.
    last = max(total.bit_length() - divisor.bit_length() - digits, least - exponent) - 2
    quotient, rest = divmod(total << max(-last, 0), divisor << max(last, 0))
    quotient |= rest > 0
    surplus = max(quotient.bit_length() - digits, 2)
    odd = quotient >> surplus & 1
    significand = (quotient + (1 << (surplus - 1)) - 1 + odd) >> surplus
    # Above the least exponent, the leading digit of the significand adds 1 to the exponent.
    scale = last + surplus + exponent - least
    return sign | min((scale << (digits - 1)) + significand, infinity)
