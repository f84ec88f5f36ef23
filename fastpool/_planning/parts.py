"""Split a pooling into parts: find the input that some outputs need, and make the plan for it.

Rounding and automatic padding are resolved for the whole pooling. Along an axis, the windows
``[first, stop)`` then cover elements ``first * stride - begin`` up to ``(stop - 1) * stride - begin
+ extent``. A part reads those that exist, and the missing ones at either side become its padding.
Indices count in the whole input: the plan of a part stores where the part begins.
"""

from bisect import bisect_right
from dataclasses import replace
from itertools import accumulate, product
from math import prod
from typing import Any, NamedTuple

from .dtypes import ITEMSIZE
from .geometry import AdaptiveAxis, Axis, along
from .values import shown


class Tile(NamedTuple):
    """Part of a pooling: ``plan(x[read])`` is ``y[write]``."""

    plan: Any
    read: tuple
    write: tuple


def tile(plan, outputs):
    """Return the `Tile` of a plan that gives the slices `outputs` of its output."""
    check_has_parts(plan)
    bounds = _bounds(outputs, plan.output_shape)
    parts = dict(zip(plan.spatial, plan.axes, strict=True))
    read, axes = list(bounds), []
    for place in plan.spatial:
        read[place], axis = part(parts[place], *bounds[place])
        axes.append(axis)
    shape = tuple(stop - start for start, stop in read)
    batch, channels, *_ = along(plan, shape, 1)
    smaller = replace(
        plan,
        input_shape=shape,
        output_shape=tuple(stop - start for start, stop in bounds),
        axes=tuple(axes),
        batch=batch,
        channels=channels,
        given=None,
        **plan.in_part(read),
    )
    return Tile(smaller, *(tuple(slice(*ends) for ends in box) for box in (read, bounds)))


def check_has_parts(plan):
    """Raise ValueError if a plan has a border: its padding may hold elements from anywhere."""
    if getattr(plan, "borders", ()):
        raise ValueError(
            f'border: expected "ignore" for a pooling in parts (tiles, chunks, files), got '
            f"{shown(plan.border)}; pad x, and pool without pads"
        )


def part(axis, first, stop):
    """Return the elements that outputs `first` to `stop` of an axis take, and their `Axis`."""
    if first == stop:
        return (0, 0), Axis(0, 0, axis.kernel, max(1, axis.stride), axis.dilation, 0, 0)
    if isinstance(axis, AdaptiveAxis):
        low, high = axis.window(first)[0], axis.window(stop - 1)[1]
        place = axis.first + first
        return (low, high), axis._replace(size=high - low, output=stop - first, first=place)
    start = first * axis.stride - axis.begin
    end = (stop - 1) * axis.stride - axis.begin + axis.extent
    low = min(max(start, 0), axis.size)
    high = max(low, min(end, axis.size))
    begin = low - start if low < high else end - start  # if all is padding, it is at the beginning
    pads = {"begin": begin, "end": (end - start) - begin - (high - low)}
    return (low, high), axis._replace(size=high - low, output=stop - first, **pads)


def owned(axis, chunks):
    """Return where the outputs of each chunk end, given the sizes of the chunks of an `Axis`.

    An output belongs to the chunk in which its window starts. Windows that start before the first
    chunk belong to the first one, and windows that start past the last chunk to the last one.
    """
    ends = accumulate(chunks[:-1])
    return [axis.starting_before(end) for end in ends] + [axis.output]


def grid(plan, max_bytes, reverse=False):
    """Yield slices of the output in memory order, each at most `max_bytes` with its input.

    Axes are cut from the first one on (with `reverse`, from the last one), and no further than
    needed, so that neighbours in memory stay together.
    """
    order = _order(plan, reverse)
    counts = box_extents(plan, max_bytes, reverse)
    cuts = [
        [slice(i, min(i + n, extent)) for i in range(0, extent, n)]
        for n, extent in zip(counts, plan.output_shape, strict=True)
    ]
    for box in product(*(cuts[place] for place in order)):
        yield box[::-1] if reverse else box


def box_extents(plan, max_bytes, reverse=False):
    """Return how many outputs the largest box of a `grid` has along each axis, at least 1."""
    order = _order(plan, reverse)
    counts = [max(1, extent) for extent in plan.output_shape]
    for place in order:
        # Take as many outputs along this axis as fit. If none do, take one and cut the next axis.
        sizes = range(1, counts[place] + 1)
        fitting = bisect_right(
            sizes, max_bytes, key=lambda n: _bytes(plan, {**dict(enumerate(counts)), place: n})
        )
        counts[place] = max(1, fitting)
        if fitting:
            break
    return counts


def window_bytes(plan):
    """Return an upper bound of the bytes that a tile of one output reads and writes."""
    return _bytes(plan, dict.fromkeys(range(len(plan.output_shape)), 1))


def _order(plan, reverse):
    order = range(len(plan.output_shape))
    return order[::-1] if reverse else order


def _bytes(plan, counts):
    """Return an upper bound of the bytes that a tile with `counts` outputs reads and writes."""
    read = dict(counts)
    for place, axis in zip(plan.spatial, plan.axes, strict=True):
        read[place] = min(axis.size, axis.span(counts[place]))
    return prod(read.values()) * ITEMSIZE[plan.dtype] + prod(counts.values()) * plan.output_bytes


def _bounds(outputs, shape):
    if not isinstance(outputs, tuple):
        outputs = (outputs,)
    if len(outputs) > len(shape):
        raise ValueError(f"outputs: expected at most {len(shape)} slices, got {len(outputs)}")
    bounds = [(0, extent) for extent in shape]
    for i, (chosen, extent) in enumerate(zip(outputs, shape, strict=False)):
        if not isinstance(chosen, slice):
            raise TypeError(f"outputs[{i}]: expected a slice, got {shown(chosen)}")
        start, stop, step = chosen.indices(extent)
        if step != 1:
            raise ValueError(f"outputs[{i}]: expected a step of 1, got {step}")
        bounds[i] = start, max(start, stop)
    return bounds
