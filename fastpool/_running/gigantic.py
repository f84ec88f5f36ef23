"""Pool with windows whose positions in the padded input, nearly all padding, exceed an address."""

import numpy as np

from .._planning.dtypes import lowest
from .passes import FAR, trimmed


def is_gigantic(window):
    """Do positions in the padded input exceed an address?"""
    if window.places:
        return False
    return window.span(window.out) + abs(window.begin) + window.size > FAR


def live(axis):
    """Return (start, stop): an axis's outputs from the first to the last with an element."""
    start = max(0, -(-(axis.begin - axis.extent + 1) // axis.stride))
    return start, max(start, min(axis.output, -(-(axis.size + axis.begin) // axis.stride)))


def every_end(axis):
    """Return the axis from whose outputs the results of windows longer than the input are taken.

    Of the elements a dilation apart, its outputs hold the first n and the last n, for every n.
    """
    taps = max(1, -(-axis.size // axis.dilation))
    reach = (taps - 1) * axis.dilation
    return axis._replace(
        output=axis.size + reach,
        kernel=taps,
        stride=1,
        dilation=axis.dilation if taps > 1 else 1,
        begin=reach,
        end=reach,
    )


def gathered(axis, ends):
    """Return for each output that of `every_end` with the elements of its window; -1 for none.

    Windows are longer than the input, so none begins and ends inside it.
    """
    places = []
    for output in range(axis.output):
        first = output * axis.stride - axis.begin
        last = first + axis.extent - 1
        low = first if first >= 0 else first % axis.dilation
        if low >= axis.size or last < low:
            places.append(-1)
        else:
            places.append(low + ends.begin if last >= axis.size else last)
    return places


def pool_gigantic(plan, axes, y, z, pool_axes):
    """Pool along the first axis with gigantic windows, once per part of the input that they hold.

    ``pool_axes(axes, y, z)`` pools the input with `axes` in place of the plan's.
    """
    y[...] = lowest(plan.dtype)
    if z is not None:
        z[...] = -1
    i = next(i for i, axis in enumerate(axes) if is_gigantic(trimmed(axis)))
    axis, before = axes[i], (slice(None),) * plan.spatial[i]

    def pool(other, y, z):
        pool_axes((*axes[:i], other, *axes[i + 1 :]), y, z)

    start, stop = live(axis)
    begin = axis.begin - start * axis.stride
    axis = axis._replace(output=stop - start, begin=begin)
    if not is_gigantic(trimmed(axis)):
        part = *before, slice(start, stop)
        pool(axis, y[part], None if z is None else z[part])
        return
    ends = every_end(axis)
    places = np.array(gathered(axis, ends), np.int64)
    chosen = places >= 0
    part, places = (*before, start + np.flatnonzero(chosen)), places[chosen]
    shape = *y.shape[: len(before)], ends.output, *y.shape[len(before) + 1 :]
    pooled = np.empty(shape, y.dtype)
    found = None if z is None else np.empty(shape, z.dtype)
    pool(ends, pooled, found)
    y[part] = pooled.take(places, axis=len(before))
    if z is not None:
        z[part] = found.take(places, axis=len(before))
