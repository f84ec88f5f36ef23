"""Count what the sums of an average pooling are divided by."""

import math
from typing import NamedTuple

from .._planning.average_pool import count
from .._planning.geometry import AdaptiveAxis

# Divisors of rows whose reciprocals are kept (average.pxi repeats it), and reciprocals in all.
MOST_DIVISORS = 16
MOST_RECIPROCALS = 1 << 16
# Outputs at both ends of an axis whose counts are looked at one by one.
MOST_ENDS = 256


class Counts(NamedTuple):
    """The counts of an axis whose outputs do not all have one: compiled code computes each.

    An output counts its taps between two places: ``taps`` are kernel, stride, dilation and begin.
    The outputs inside have all of them. An irregular axis counts the elements of its windows.
    `values` are the different counts, or () if many outputs are at the ends.
    """

    taps: tuple
    places: tuple  # (first, stop)
    inner: tuple  # (first, stop)
    values: tuple


def most_divisor(plan):
    """Return a number that no divisor exceeds."""
    if plan.divisor is not None:
        return plan.divisor
    return math.prod(axis.kernel for axis in plan.axes)


def counts_of(axis, places):
    """Return the counts of an axis' outputs: one float if they are equal, else `Counts`.

    `places` are those that count, or None.
    """
    dilation = axis.dilation if axis.kernel > 1 else 1
    taps = axis.kernel, axis.stride, dilation, axis.begin
    if isinstance(axis, AdaptiveAxis):
        if axis.output == 1:
            return float(count(axis, None, 0))
        longest = axis.kernel
        shortest = axis.of_size // axis.of_output + 1  # (an irregular axis has a remainder)
        if shortest == longest:
            return float(longest)
        return Counts(taps, (0, axis.size), (0, 0), (shortest, longest))
    if places is None or axis.output == 0:
        return float(axis.kernel)
    # Nothing counts beyond the windows. So numbers stay within those of the axis.
    stop = axis.span(axis.output) - axis.begin
    places = max(places[0], -axis.begin), min(places[1], stop)
    first = axis.starting_before(places[0])
    last = max(first, axis.ending_by(places[1]))
    ends = axis.output - (last - first)
    if axis.output == 1 or not ends:
        return float(count(axis, places, 0))
    if ends > MOST_ENDS:
        return Counts(taps, places, (first, last), ())
    outputs = [*range(first), *range(last, axis.output)]
    values = {count(axis, places, output) for output in outputs}
    if last > first:
        values.add(axis.kernel)
    if len(values) == 1:
        return float(*values)
    return Counts(taps, places, (first, last), tuple(values))


def divisors(plan, counts, columns):
    """Return the different products of counts of all axes but the last; () if they are too many.

    `columns` are the outputs along the last axis, each of which has a reciprocal per product. Rows
    that are too long have one per divisor: then return the products of all axes, and True.
    """
    if plan.result_dtype in ("float64", "int64", "uint64", "bool"):
        return (), False
    if plan.divisor is not None:
        return (float(plan.divisor),), False
    *others, cols = counts
    products = {cols if isinstance(cols, float) else 1.0}
    for axis in others:
        values = (axis,) if isinstance(axis, float) else axis.values
        products = {product * value for product in products for value in values}
        if not 0 < len(products) <= MOST_DIVISORS:
            return (), False
    by_value = not isinstance(cols, float) and columns * len(products) > MOST_RECIPROCALS
    if by_value:  # (windows of several lengths take turns: each column would take a call)
        values = cols.values if cols.inner[1] else ()
        products = {product * value for product in products for value in values}
    return (tuple(products) if len(products) <= MOST_DIVISORS else ()), by_value
