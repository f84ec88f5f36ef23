"""Statistics of blocks, and pyramids of them: one block at a time."""

import math
from collections import Counter
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from .._planning import arguments
from .._planning.dtypes import ELEMENT_TYPES, ITEMSIZE, is_float
from .._planning.values import is_sequence
from .average import _tree
from .exact import Numbers, rounded
from .lp import _square_root


class Request(NamedTuple):
    """What is asked for: a statistic of elements of a type, and how it is computed.

    `block_size` has the number of taps of a full block along each axis.
    """

    func: str
    dtype: str
    result: str
    block_size: tuple
    rounding: str
    ddof: int
    numerics: str


class Block(NamedTuple):
    """One block of an array.

    `elements` are those in the array, and `there` says which of them are not missing. `integers`
    and `special` are those of `Numbers`, and only of elements that are there.
    """

    elements: np.ndarray
    there: np.ndarray
    integers: np.ndarray
    special: np.ndarray
    exponent: int

    @property
    def count(self):
        return int(self.there.sum())


def block_reduce(
    x,
    block_size,
    func,
    *,
    edge="keep",
    dtype=None,
    rounding="half_even",
    ddof=0,
    numerics="pairwise",
    nan="propagate",
    nodata=None,
    where=None,
    min_count=None,
    return_counts=False,
):
    """Reduce as `fastpool.block_reduce` does. Arguments are not checked.

    Variances and standard deviations are exact and rounded once, with one exception. Of bool and
    integers to 16 bits, the standard deviation is the float64 root of the float64 variance.

    What the specification leaves open:

    - A block that has enough elements but no more than `ddof` gives NaN, with `nodata` too.
    - A missing result of floats in a wider type is `nodata` as the type of the elements has it.
    - Where all elements are missing, a sum is 0 unless `min_count` is given. It needs no `nodata`.
    - A floating result of integers is NaN where it is missing, so it needs no `nodata` either.
    """
    x = np.asarray(x)
    name = arguments.dtype_name(x.dtype)
    x = x.astype(x.dtype.newbyteorder("="))
    block_size = _per_axis(block_size, x.ndim)
    result = _result_dtype(func, name, dtype)
    request = Request(func, name, result, block_size, rounding, ddof, numerics)
    nodata = None if nodata is None else _number(nodata, name)
    there = _there(x, name, nan, nodata, where)
    if min_count is None:
        min_count = 0 if func in ("sum", "count") else 1
    absent = _absent(name, result, nodata)
    numbers = Numbers(x, name, "propagate")

    shape = _extents(x.shape, block_size, edge)
    y = np.zeros(shape, x.dtype if result == name else result)
    counts = np.zeros(shape, np.int64)
    with np.errstate(all="ignore"):  # signalling NaN, overflow of sums and of the result type
        for position in np.ndindex(shape):
            box = tuple(
                slice(place * taps, min((place + 1) * taps, extent))
                for place, taps, extent in zip(position, block_size, x.shape, strict=True)
            )
            taken = there[box]
            block = Block(
                x[box],
                taken,
                numbers.integers[box][taken],
                numbers.special[box][taken],
                numbers.exponent,
            )
            counts[position] = block.count
            y[position] = absent if block.count < min_count else _STATISTICS[func](block, request)
    return (y, counts) if return_counts else y


def pyramid(x, levels, factor=2, func="mean", **attributes):
    """Return the levels that `fastpool.pyramid` returns. Each is reduced from `x`."""
    x = np.asarray(x)
    factors = _per_axis(factor, x.ndim)
    return [
        block_reduce(x, tuple(taps**level for taps in factors), func, **attributes)
        for level in range(1, levels + 1)
    ]


# --------------------------------------------------------------------------------------- arguments


def _per_axis(value, rank):
    """Return one integer for every axis."""
    if is_sequence(value):
        return tuple(map(int, value))
    return (int(value),) * rank


def _extents(sizes, block_size, edge):
    """Return the number of blocks along each axis."""
    if edge == "trim":
        return tuple(size // taps for size, taps in zip(sizes, block_size, strict=True))
    return tuple(-(-size // taps) for size, taps in zip(sizes, block_size, strict=True))


def _result_dtype(func, name, dtype):
    if func == "count":
        return "int64"
    if dtype is not None:
        return arguments.dtype_name(dtype)
    if func == "sum" and not is_float(name):
        return "uint64" if ELEMENT_TYPES[name].kind == "unsigned" else "int64"
    if func in ("std", "var") and not is_float(name):
        return "float64"
    return name


def _number(nodata, name):
    """Return `nodata` as a Python number that the type holds."""
    if isinstance(nodata, np.generic):
        nodata = nodata.item() if nodata.dtype.kind in "biu" else float(nodata)
    if not is_float(name):
        return int(nodata)
    if isinstance(nodata, float) and not math.isfinite(nodata):
        return nodata
    return rounded(Fraction(nodata), 0, name)


def _there(x, name, nan, nodata, where):
    """Return which elements are not missing."""
    there = np.ones(x.shape, bool)
    if where is not None:
        there &= np.asarray(where)
    if is_float(name):
        with np.errstate(invalid="ignore"):  # signalling NaN
            x = x.astype(np.float64)
        if nan == "ignore" or (nodata is not None and math.isnan(nodata)):
            there &= ~np.isnan(x)
    if nodata is not None:
        there &= x != nodata
    return there


def _absent(name, result, nodata):
    """Return what a missing result is. An integer without `nodata` cannot be missing."""
    if is_float(result) and (nodata is None or not is_float(name)):
        return np.nan
    return 0 if nodata is None else nodata


# -------------------------------------------------------------------------------------- statistics


def _values(block, request):
    """Return the elements that are there as Python numbers, which hold every element type."""
    values = block.elements[block.there]
    return (values.astype(np.float64) if is_float(request.dtype) else values).tolist()


def _has_nan(block):
    return bool(np.isnan(block.special).any())


def _maximum(block, request):
    return math.nan if _has_nan(block) else max(_values(block, request))


def _minimum(block, request):
    return math.nan if _has_nan(block) else min(_values(block, request))


def _mode(block, request):
    """Return the most frequent value, and of several the smallest."""
    counts = Counter(_values(block, request))
    return min(counts, key=lambda value: (-counts[value], value))


def _count(block, request):
    return block.count


def _median(block, request):
    """Return the middle element, or the mean of the two middle ones, rounded once."""
    if _has_nan(block):
        return math.nan
    values = sorted(_values(block, request))
    low, high = values[(len(values) - 1) // 2], values[len(values) // 2]
    if math.inf in (abs(low), abs(high)):
        return low + high  # NaN of two infinities that differ
    return rounded((Fraction(low) + Fraction(high)) / 2, 0, request.result, request.rounding)


def _sum(block, request):
    return _quotient(block, request, 1)


def _mean(block, request):
    return _quotient(block, request, block.count)


def _quotient(block, request, divisor):
    """Return the sum of a block over a divisor."""
    if is_float(request.dtype) and request.numerics != "exact":
        pairs = request.numerics == "pairwise"
        types = (request.dtype, request.result) if pairs else (request.dtype,)
        wide = "float64" if "float64" in types else "float32"
        total = _sum_in_floats(block, request.block_size if pairs else (), np.dtype(wide))
        return total / total.dtype.type(rounded(Fraction(divisor), 0, wide))
    special = block.special.sum()
    if special:
        return special
    total = Fraction(int(block.integers.sum()), divisor)
    return rounded(total, block.exponent, request.result, request.rounding)


def _sum_in_floats(block, block_size, accumulator):
    """Add the taps along the first axis by `_tree`, then the sums along the next one.

    Without a `block_size`, add the elements in row-major order.
    """
    totals = block.elements.astype(accumulator)
    totals[~block.there] = -0.0  # adding it to any number changes nothing
    for taps in block_size:
        totals = _tree(totals, 0, taps)
    return totals if block_size else np.add.accumulate(totals.ravel())[-1]


def _variance(block, request):
    variance = _exact_variance(block, request.ddof)
    return math.nan if variance is None else rounded(variance, 2 * block.exponent, request.result)


def _deviation(block, request):
    variance = _exact_variance(block, request.ddof)
    if variance is None:
        return math.nan
    if not is_float(request.dtype) and ITEMSIZE[request.dtype] <= 2:
        return math.sqrt(rounded(variance, 0, "float64"))
    # (of 0, the digits cannot be counted)
    root = _square_root(variance) if variance else Fraction(0)
    return rounded(root, block.exponent, request.result)


def _exact_variance(block, ddof):
    """Return the variance of `block.integers`, or None if there is none or it is no number."""
    count = block.count
    if count <= ddof or block.special.any():
        return None
    total = int(block.integers.sum())
    squares = int((block.integers * block.integers).sum())
    return Fraction(count * squares - total * total, count * (count - ddof))


_STATISTICS = {
    "max": _maximum,
    "min": _minimum,
    "mean": _mean,
    "sum": _sum,
    "mode": _mode,
    "median": _median,
    "std": _deviation,
    "var": _variance,
    "count": _count,
}
