"""Pool windows that repeat once, and repeat their results.

Along an axis of n elements, adaptive windows of more than n outputs hold one element, or two
neighbours. An adaptive pooling to 2 * n - 1 outputs has each of these windows once, in the order of
their first elements, so every output of the larger pooling is one of them.

Windows of an average that are mostly on padding repeat, too. Of n elements and k taps, k at most n,
there are n + k - 1 windows, and empty ones before and after these. More taps change nothing.

Without this, time would grow with the outputs along one axis times the elements along another.
"""

import math

import numpy as np

from .._planning.average_pool import AvgPool
from .._planning.dtypes import is_float
from .._planning.geometry import AdaptiveAxis, Axis
from .._planning.plan_checks import resolved, state_of
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
        divisor = _divisor(plan)
        if divisor != 0:
            axes = tuple(map(_padded, axes))
            places = tuple((0, axis.size) for axis in axes)
            changes = dict(count_include_pad=False, beyond="drop", counted=places, divisor=divisor)
    axes = tuple(map(_adaptive, axes))
    if axes == plan.axes:
        return None
    shape = list(plan.output_shape)
    for place, axis in zip(plan.spatial, axes, strict=True):
        shape[place] = axis.output
    changes.update(axes=axes, output_shape=tuple(shape), given=None)
    return resolved(type(plan), {**state_of(plan), **changes})


def _divisor(plan):
    """Return the divisor of all windows, None if it is the number of elements, 0 if it varies."""
    if plan.divisor is not None or not plan.count_include_pad:
        return plan.divisor
    if plan.nan == "ignore" and is_float(plan.dtype):
        return 0
    counts = list(map(counts_of, plan.axes, plan.counted or (None,) * len(plan.axes)))
    return int(math.prod(counts)) if all(isinstance(count, float) for count in counts) else 0


def _adaptive(axis):
    """Return an axis that has each window of an adaptive one once, or the axis if it has few."""
    if not isinstance(axis, AdaptiveAxis) or axis.output < 2 * LEAST * axis.size or not axis.size:
        return axis
    outputs = 2 * axis.size - 1
    return AdaptiveAxis(axis.size, outputs, axis.size, outputs)


def _padded(axis):
    """Return an axis that has each window of a padded one once, or the axis if it has few."""
    taps = min(axis.kernel, axis.size)
    outputs = axis.size + taps + 1
    is_dilated = axis.dilation > 1 and axis.kernel > 1
    if isinstance(axis, AdaptiveAxis) or is_dilated or axis.output < LEAST * outputs or not taps:
        return axis
    return Axis(axis.size, outputs, taps, 1, 1, taps, taps)


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
    # A window that begins before the elements ends where one of fewer taps does.
    first = np.where(first > 0, first, np.minimum(first + axis.kernel - few.kernel, 0))
    return np.clip(first, -few.kernel, few.size) + few.kernel


def _adaptive_windows(axis, few, start, stop):
    """Return the place of each output's window among all windows."""
    # Python's integers find the first edge; from there on, numbers of 64 bits are large enough.
    edge, rest = divmod((axis.first + start) * axis.of_size, axis.of_output)
    edge -= axis.first * axis.of_size // axis.of_output
    rests = rest + np.arange(stop - start + 1) * axis.of_size
    edges, rests = edge + rests // axis.of_output, rests % axis.of_output
    firsts, stops = edges[:-1], edges[1:] + (rests[1:] > 0)
    return firsts + stops - 1  # twice the first element, and 1 if the window has two
