"""Pool windows that repeat once, and repeat their results.

Along an axis of n elements, adaptive windows of more than n outputs hold one element, or two
neighbours. An adaptive pooling to 2 * n - 1 outputs has each of these windows once, in the order of
their first elements, so every output of the larger pooling is one of them.

Windows of an average that are mostly on padding repeat, too. Of n elements and an extent of e there
are n + e - 1 windows, and empty ones before and after these. Taps that n elements have no room for
add none, unless padding counts and NaN do not, or sums are in pairs.

Without this, time would grow with the outputs along one axis times the elements along another.
"""

import math

import numpy as np

from .._planning.average_pool import AvgPool
from .._planning.dtypes import is_float
from .._planning.geometry import AdaptiveAxis, Axis
from .._planning.plan_checks import changed
from .divisor_counts import counts_of

# Outputs per window from which on pooling once takes less time.
LEAST = 2
# Outputs along an axis whose windows are found at a time: the memory for that is bounded.
BLOCK = 1 << 16


def once(plan):
    """Return a plan with each window once along axes of many outputs; None if it has no such axis.

    `plan` is a `MaxPool` or an `AvgPool`.
    """
    axes, changes = plan.axes, {}
    if isinstance(plan, AvgPool):
        changes = _rule(plan)
        if changes is not None:
            # The order of additions in pairs depends on taps that are not there.
            in_pairs = plan.numerics == "pairwise" and is_float(plan.dtype)
            keeps_taps = in_pairs or changes["count_include_pad"]
            axes = tuple(_padded(axis, keeps_taps) for axis in axes)
    axes = tuple(map(_adaptive, axes))
    if axes == plan.axes:
        return None
    shape = list(plan.output_shape)
    for place, axis in zip(plan.spatial, axes, strict=True):
        shape[place] = axis.output
    changes.update(axes=axes, output_shape=tuple(shape), given=None)
    return changed(plan, changes)


def _rule(plan):
    """Return fields that divide alike windows of the same elements; None if they differ."""
    divisor = plan.divisor
    if divisor is None and plan.count_include_pad:
        counts = list(map(counts_of, plan.axes, plan.counted or (None,) * len(plan.axes)))
        if not all(isinstance(count, float) for count in counts):
            return None
        if plan.nan == "ignore" and is_float(plan.dtype):
            if counts != [axis.kernel for axis in plan.axes]:
                return None
            return {"count_include_pad": True, "beyond": "count", "counted": None}
        divisor = int(math.prod(counts))
    places = tuple((0, axis.size) for axis in plan.axes)
    return {"count_include_pad": False, "beyond": "drop", "counted": places, "divisor": divisor}


def _adaptive(axis):
    """Return an axis that has each window of an adaptive one once, or the axis if it has few."""
    if not isinstance(axis, AdaptiveAxis) or axis.output < 2 * LEAST * axis.size or not axis.size:
        return axis
    outputs = 2 * axis.size - 1
    return AdaptiveAxis(axis.size, outputs, axis.size, outputs)


def _padded(axis, keeps_taps):
    """Return an axis that has each window of a padded one once, or the axis if it has few."""
    if isinstance(axis, AdaptiveAxis) or not axis.size:
        return axis
    taps = axis.kernel if keeps_taps else min(axis.kernel, -(-axis.size // axis.dilation))
    dilation = axis.dilation if taps > 1 else 1
    extent = (taps - 1) * dilation + 1
    outputs = axis.size + extent + 1
    if axis.output < LEAST * outputs:
        return axis
    return Axis(axis.size, outputs, taps, 1, dilation, extent, extent)


def repeat(plan, each, pooled, y):
    """Write into `y`, for each output of `plan`, the result of its window among those `pooled`.

    `pooled` are the results of `each`, which is ``once(plan)``.
    """
    axes = zip(plan.spatial, plan.axes, each.axes, strict=True)
    repeated = [(place, axis, few) for place, axis, few in axes if axis != few]
    for place, axis, few in repeated[:-1]:
        shape = list(pooled.shape)
        shape[place] = axis.output
        wider = np.empty(shape, pooled.dtype)
        _repeat_along(place, axis, few, pooled, wider)
        pooled = wider
    _repeat_along(*repeated[-1], pooled, y)


def _repeat_along(place, axis, few, pooled, y):
    windows = _adaptive_windows if isinstance(axis, AdaptiveAxis) else _padded_windows
    before = (slice(None),) * place
    for start in range(0, axis.output, BLOCK):
        stop = min(start + BLOCK, axis.output)
        y[(*before, slice(start, stop))] = pooled.take(windows(axis, few, start, stop), axis=place)


def _padded_windows(axis, few, start, stop):
    """Return the place of each output's window among all windows."""
    first = np.arange(start, stop) * axis.stride - axis.begin
    # A window that begins before the elements may have more taps than they take. It has the
    # elements of one of fewer taps that begins later: both end alike, or both have all.
    later = first + (axis.kernel - few.kernel) * axis.dilation
    first = np.where(first > 0, first, np.minimum(later, first % axis.dilation))
    return np.clip(first, -few.begin, few.size) + few.begin


def _adaptive_windows(axis, few, start, stop):
    """Return the place of each output's window among all windows."""
    # Python's integers find the first edge; from there on, numbers of 64 bits are large enough.
    edge, rest = divmod((axis.first + start) * axis.of_size, axis.of_output)
    edge -= axis.first * axis.of_size // axis.of_output
    rests = rest + np.arange(stop - start + 1) * axis.of_size
    edges, rests = edge + rests // axis.of_output, rests % axis.of_output
    firsts, stops = edges[:-1], edges[1:] + (rests[1:] > 0)
    return firsts + stops - 1  # twice the first element, and 1 if the window has two
