"""Count what the sums of an average pooling are divided by."""

import math

import numpy as np

from .._planning.geometry import AdaptiveAxis

# Divisors of rows whose reciprocals are kept (average.pxi repeats it), and of columns.
MOST_DIVISORS = 16
MOST_RECIPROCALS = 1 << 16


def most_divisor(plan):
    """Return a number that no divisor exceeds."""
    if plan.divisor is not None:
        return plan.divisor
    return math.prod(axis.kernel for axis in plan.axes)


def counts_of(axis, places):
    """Return the counts of an axis' outputs as doubles. One output, or equal ones, have one count.

    `places` are those that count, or None.
    """
    if isinstance(axis, AdaptiveAxis):
        least, rest = divmod(axis.of_size, axis.of_output)
        ends = (axis.first + np.arange(axis.output + 1)) * rest
        stops = -(-ends[1:] // axis.of_output)
        counts = (least + stops - ends[:-1] // axis.of_output).astype(np.float64)
        return float(counts[0]) if axis.output == 1 else counts
    stop = axis.span(axis.output) - axis.begin
    if places is None or (places[0] <= -axis.begin and stop <= places[1]):
        return float(axis.kernel)
    # Beyond the windows nothing counts, so the places can be numbers that NumPy holds. Most
    # windows are inside, where all taps count.
    low, high = max(places[0], -axis.begin), min(places[1], stop)
    first = min(axis.output, max(0, -(-(low + axis.begin) // axis.stride)))
    last = min(axis.output, (high + axis.begin - axis.extent) // axis.stride + 1)
    counts = np.full(axis.output, float(axis.kernel))
    for some in slice(0, first), slice(max(first, last), axis.output):
        starts = np.arange(some.start, some.stop) * axis.stride - axis.begin
        lo, hi = (-((starts - place) // axis.dilation) for place in (low, high))
        counts[some] = np.maximum(np.minimum(hi, axis.kernel) - np.maximum(lo, 0), 0)
    return float(counts[0]) if axis.output == 1 else counts


def divisors(plan, counts):
    """Return the different products of counts of all axes but columns."""
    if plan.result_dtype in ("float64", "int64", "uint64", "bool"):
        return ()
    if plan.divisor is not None:
        return (float(plan.divisor),)
    *others, cols = counts
    products = {1.0 if isinstance(cols, np.ndarray) else cols}
    for axis in others:
        values = np.unique(axis).tolist() if isinstance(axis, np.ndarray) else [axis]
        products = {product * value for product in products for value in values}
        if len(products) > MOST_DIVISORS:
            return ()
    if isinstance(cols, np.ndarray) and len(cols) * len(products) > MOST_RECIPROCALS:
        return ()
    return tuple(products)
