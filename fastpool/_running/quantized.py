"""Average quantised elements: from the sums of windows to quantised means, exactly.

A window with the sum S of its n elements and the divisor D has the total T = S - n * zero point,
and the quantised mean RN(T * step / D) + zero point of the result, where the step is the quotient
of the scales. A double decides it, unless that is close to a half: then Python's integers do. If a
plan has few pairs of n and D, a table holds the means of all sums.
"""

from fractions import Fraction
from functools import lru_cache
from itertools import groupby
from math import prod
from typing import NamedTuple

import numpy as np

from .._planning.average_pool import count
from .._planning.dtypes import limits
from .interop import bump_versions
from .outputs import check_output, outputs, own

# Bytes of a table, which the second level of any cache holds, and how many tables are kept.
_LONGEST_TABLE = 2**16
_MOST_TABLES = 64

# Limit for the error of a mean as a double. Only those below 2**9 count, because others saturate.
# A mean comes from fewer than 200 roundings: of T, of the step, of 1 / D along each of at most 64
# axes, and of their products. Each changes it by at most 2**-44. So does adding the zero point. If
# a product is too small for a double, so is the mean.
_ERROR = 2.0**-30

# Numerators and denominators whose quotients, rounded, are computed in 64 bits.
_MOST_IN_64 = 2**62


class Quantization(NamedTuple):
    """What the elements of input and result stand for: scale * (element - zero point)."""

    x_scale: float
    x_zero_point: int
    y_scale: float
    y_zero_point: int


class QuantizedAverage:
    """An average pooling of quantised elements, ready to run on arrays of one shape and type."""

    def __init__(self, plan):
        """Set up.

        Parameters
        ----------
        plan : AvgPoolPlan
            One that adds the elements of each window: of uint8 or int8, with a `divisor` of 1, and
            without dilation.
        """
        self._plan = plan
        self._dtype = np.dtype(plan.dtype)
        self._windows = None

    def __call__(self, x, quantization, out=None):
        """Return the quantised means of an array of the plan's shape and type.

        `out` is as in `fastpool.avg_pool`, an array of that type and of the plan's output shape.
        """
        x = own(x)
        (into,) = outputs(out=out)
        if into is not None:
            check_output("out", into, self._plan.output_shape, self._dtype, {"x": x})
        sums = self._plan(x)
        if into is None:
            into = np.empty(sums.shape, self._dtype)
        if sums.size:
            if self._windows is None:  # not before the sums had memory: there is a count per output
                self._windows = _Windows(self._plan)
            self._windows.quantize(sums, quantization, into)
        bump_versions(out)
        return into if out is None else out


class _Windows:
    """How many elements the windows of a plan have, and what their totals are divided by."""

    def __init__(self, plan):
        self._dtype = plan.dtype
        places = plan.counted or (None,) * len(plan.axes)
        runs = [_runs(*axis) for axis in zip(plan.axes, places, strict=True)]
        # The pair of most outputs comes first, so that their sums are places in the table as is.
        by_length = (sorted(axis, key=lambda run: -run[1]) for axis in runs)
        pairs = tuple(tuple(dict.fromkeys(pair for pair, _ in axis)) for axis in by_length)
        taps = prod(max(elements for elements, _ in of_axis) for of_axis in pairs)
        width = 255 * taps + 1
        if width * prod(map(len, pairs)) > _LONGEST_TABLE:
            ndim = len(plan.output_shape)
            self._axes = [_along(*axis, ndim) for axis in zip(runs, plan.spatial, strict=True)]
            return
        self._axes, self._pairs, self._taps = None, pairs, taps
        # Where other pairs begin in the table: (index of sums, what is added to them).
        self._offsets = []
        for place, axis, of_axis in [*zip(plan.spatial, runs, pairs, strict=True)][::-1]:
            stop = 0
            for pair, length in axis:
                start, stop = stop, stop + length
                if pair != of_axis[0]:
                    region = *[slice(None)] * place, slice(start, stop)
                    self._offsets.append((region, of_axis.index(pair) * width))
            width *= len(of_axis)

    def quantize(self, sums, quantization, y):
        """Write the quantised means of the windows with these sums. Overwrite the sums."""
        if self._axes:
            y[...] = _means(sums, self._axes, quantization, self._dtype)
            return
        for region, offset in self._offsets:
            sums[region] += offset
        table = _table(self._pairs, self._taps, quantization, self._dtype)
        table.take(sums, None, y, "wrap")  # sums below 0 count from the end


def _runs(axis, counted):
    """Return [((elements, divisor), how many neighbouring outputs have them), ...] of an axis."""

    def pair(output):
        # A window without elements has a total of 0: any divisor will do.
        return count(axis, (0, axis.size), output), count(axis, counted, output) or 1

    # All taps of the outputs from `first` up to `stop` are elements.
    first = min(-(-axis.begin // axis.stride), axis.output)
    stop = (axis.size + axis.begin - axis.kernel) // axis.stride + 1
    stop = max(first, min(axis.output, stop))
    edges = range(first), range(stop, axis.output)
    before, after = ([(p, len([*same])) for p, same in groupby(map(pair, edge))] for edge in edges)
    inside = [((axis.kernel, axis.kernel), stop - first)] if first < stop else []
    return before + inside + after


def _along(runs, place, ndim):
    """Return elements, quotients 1 / divisor and divisors of the outputs along one axis of many."""
    pairs, lengths = zip(*runs, strict=True)
    elements, divisors = (np.array(column, object) for column in zip(*pairs, strict=True))
    columns = elements.astype(np.int64), (1 / divisors).astype(np.float64), divisors
    shape = [1] * ndim
    shape[place] = -1
    return [column.repeat(lengths).reshape(shape) for column in columns]


@lru_cache(_MOST_TABLES)
def _table(pairs, taps, quantization, dtype):
    """Return the quantised means of all sums of up to `taps` taps, for each choice of pairs."""
    ndim = len(pairs) + 1
    axes = [_along([(pair, 1) for pair in of_axis], i, ndim) for i, of_axis in enumerate(pairs)]
    least, most = (taps * limit for limit in limits(dtype))
    means = _means(np.arange(least, most + 1), axes, quantization, dtype)
    return np.roll(means.astype(dtype).ravel(), least)


def _means(sums, axes, quantization, dtype):
    """Return quantised means as doubles; `axes` has what `_along` returns for each axis."""
    elements, quotients, divisors = zip(*axes, strict=True)
    step = Fraction(quantization.x_scale) / Fraction(quantization.y_scale)
    totals = sums - prod(elements) * quantization.x_zero_point
    means = totals * (float(step) * prod(quotients))
    means += quantization.y_zero_point
    means.clip(*limits(dtype), out=means)
    rounded = np.rint(means)
    means -= rounded
    unsure = np.flatnonzero(np.abs(means, out=means) > 0.5 - _ERROR)
    if unsure.size:
        divisor = prod(np.broadcast_to(along, means.shape).flat[unsure] for along in divisors)
        numerators = totals.flat[unsure]
        most = max(int(np.abs(numerators).max()), 1) * step.numerator
        most = max(most, int(divisor.max()) * step.denominator)
        integers = np.int64 if most < _MOST_IN_64 else object  # (Python's take 20 times as long)
        numerators = numerators.astype(integers) * step.numerator
        exact = _quotients(numerators, divisor.astype(integers) * step.denominator)
        rounded.flat[unsure] = exact + quantization.y_zero_point
    return rounded


def _quotients(numerators, denominators):
    """Return quotients of arrays of integers, rounded to nearest, halves to even."""
    lower = numerators // denominators
    twice = 2 * (numerators - lower * denominators)
    return lower + ((twice > denominators) | ((twice == denominators) & (lower % 2 == 1)))
