"""Pool windows that repeat once: those of adaptive pooling with more outputs than elements.

Along an axis of n elements, windows of more than n outputs hold one element, or two neighbours. An
adaptive pooling to 2 * n - 1 outputs has each of these windows once, in the order of their first
elements, so every output of the larger pooling is one of them. Without this, time would grow with
the outputs along one axis times the elements along another.
"""

from dataclasses import replace

import numpy as np

from .._planning.geometry import AdaptiveAxis

# Outputs per element from which on pooling once takes less time.
LEAST = 4
# Outputs along an axis whose windows are found at a time: the memory for that is bounded.
BLOCK = 1 << 16


def once(plan):
    """Return a plan with each window once along axes of many outputs; None if it has no such axis.

    `plan` is a `MaxPool` or an `AvgPool`.
    """
    axes = tuple(_with_each_window(axis) if _repeats(axis) else axis for axis in plan.axes)
    if axes == plan.axes:
        return None
    shape = list(plan.output_shape)
    for place, axis in zip(plan.spatial, axes, strict=True):
        shape[place] = axis.output
    return replace(plan, axes=axes, output_shape=tuple(shape), given=None)


def _repeats(axis):
    return isinstance(axis, AdaptiveAxis) and axis.output >= LEAST * axis.size


def _with_each_window(axis):
    outputs = 2 * axis.size - 1
    return AdaptiveAxis(axis.size, outputs, axis.size, outputs)


def repeat(plan, pooled, y):
    """Write into `y`, for each output of `plan`, the result of its window among those `pooled`.

    `pooled` are the results of ``once(plan)``.
    """
    repeated = [
        (place, axis) for place, axis in zip(plan.spatial, plan.axes, strict=True) if _repeats(axis)
    ]
    for place, axis in repeated[:-1]:
        shape = list(pooled.shape)
        shape[place] = axis.output
        wider = np.empty(shape, pooled.dtype)
        _repeat_along(place, axis, pooled, wider)
        pooled = wider
    _repeat_along(*repeated[-1], pooled, y)


def _repeat_along(place, axis, pooled, y):
    before = (slice(None),) * place
    for start in range(0, axis.output, BLOCK):
        stop = min(start + BLOCK, axis.output)
        y[(*before, slice(start, stop))] = pooled.take(_windows(axis, start, stop), axis=place)


def _windows(axis, start, stop):
    """Return the place of each output's window among all windows."""
    # Python's integers find the first edge; from there on, numbers of 64 bits are large enough.
    edge, rest = divmod((axis.first + start) * axis.of_size, axis.of_output)
    edge -= axis.first * axis.of_size // axis.of_output
    rests = rest + np.arange(stop - start + 1) * axis.of_size
    edges, rests = edge + rests // axis.of_output, rests % axis.of_output
    firsts, stops = edges[:-1], edges[1:] + (rests[1:] > 0)
    return firsts + stops - 1  # twice the first element, and 1 if the window has two
