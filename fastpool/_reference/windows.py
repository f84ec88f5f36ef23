"""The windows of any pooling, and the one loop over them."""

import math
from itertools import product
from typing import NamedTuple

import numpy as np

from .._planning import arguments


class Taps(NamedTuple):
    """The taps of one window along one axis.

    `elements` are those of the input, `before` counts the taps before them. `declared` counts
    elements and padding. `full` counts all taps, also those beyond the padding at the end.
    """

    elements: range
    before: int
    declared: int
    full: int


class Window(NamedTuple):
    """One window: a slice of the input and `Taps` per spatial axis, and the products of counts."""

    box: tuple
    taps: tuple
    real: int
    declared: int
    full: int

    def of(self, planes):
        """Return the elements of the window, as (batch, channels, taps in row-major order)."""
        return planes[:, :, *self.box].reshape(*planes.shape[:2], self.real)


def walk(axes):
    """Yield the position and the `Window` of each output.

    `axes` are the `Taps` of each output along each spatial axis.
    """
    for output in product(*(range(len(axis)) for axis in axes)):
        taps = [axis[o] for axis, o in zip(axes, output, strict=True)]
        ranges, _, declared, full = zip(*taps, strict=True)
        box = tuple(slice(r.start, r.stop, r.step) for r in ranges)
        counts = math.prod(map(len, ranges)), math.prod(declared), math.prod(full)
        yield output, Window(box, tuple(taps), *counts)


def reduced(planes, axes, dtype, empty, reduce):
    """Return ``reduce(window)`` of each window that has elements, and `empty` for the others.

    `reduce` returns one value per batch and channel.
    """
    y = np.full((*planes.shape[:2], *map(len, axes)), empty, dtype)
    for output, window in walk(axes):
        if window.real:
            y[:, :, *output] = reduce(window)
    return y


# ------------------------------------------------------------------------------------- geometry


def pooled(sizes, attributes):
    """Return the `Taps` of every output along each axis, for `geometry.Attributes`."""
    return [
        [_taps(o, size, *window, begin, end) for o in range(outputs)]
        for size, window, begin, end, outputs in _windows(sizes, attributes)
    ]


def bordered(sizes, attributes, border):
    """Return the `Taps` of every output, and the element at each place, along each axis.

    Places are the elements and the padding around them. Taps count in these. The element is -1
    where the constant stands.
    """
    axes, places = [], []
    for size, window, begin, end, outputs in _windows(sizes, attributes):
        whole = begin + size + end
        if border != "constant" and not size and whole:
            raise ValueError(f"x: no element for border {border} in spatial extents {sizes}")
        axes.append([_taps(o, whole, *window, 0, 0) for o in range(outputs)])
        places.append([element_at(place, size, border) for place in range(-begin, size + end)])
    return axes, places


def element_at(place, size, border):
    """Return the element that stands at a place of an axis, or -1 for the constant."""
    if 0 <= place < size:
        return place
    if border == "constant":
        return -1
    if border == "wrap":
        return place % size
    if border == "nearest":
        return 0 if place < 0 else size - 1
    # There and back again: "reflect" has the last element twice, "mirror" has it once.
    forth = list(range(size))
    pattern = forth + (forth[::-1] if border == "reflect" else forth[-2:0:-1])
    return pattern[place % len(pattern)]


def continued(planes, places, constant):
    """Return planes with their padding, of the element at each place of each axis."""
    for axis, elements in enumerate(places, 2):
        elements = np.array(elements, int)
        shape = list(planes.shape)
        shape[axis] = len(elements)
        longer = np.full(shape, constant or 0, planes.dtype)
        inside = (slice(None),) * axis
        longer[*inside, elements >= 0] = planes[*inside, elements[elements >= 0]]
        planes = longer
    return planes


def _windows(sizes, attributes):
    """Yield size, (kernel, stride, dilation), padding at both ends and outputs of each axis."""
    n = len(sizes)
    kernels, strides, pads, dilations, auto_pad, *rounding = attributes.checked(sizes)
    if auto_pad != "NOTSET" and any(pads):
        raise ValueError(f"pads {pads} with auto_pad {auto_pad}")
    for i, size in enumerate(sizes):
        window = kernels[i], strides[i], dilations[i]
        if auto_pad.startswith("SAME"):
            begin, end, outputs = same(size, *window, auto_pad)
        else:
            begin, end = pads[i], pads[n + i]
            outputs = output_count(size, *window, begin, end, *rounding)
        yield size, window, begin, end, outputs


def adaptive(sizes, output_size):
    """Return the `Taps` of every output along each axis, for a given number of outputs."""
    axes = []
    for size, outputs in zip(sizes, arguments.output_size(output_size, sizes), strict=True):
        ranges = (range(o * size // outputs, -(-(o + 1) * size // outputs)) for o in range(outputs))
        axes.append([Taps(r, 0, len(r), len(r)) for r in ranges])
    return axes


def whole(sizes):
    """Return the `Taps` of one window over all elements, along each axis."""
    if 0 in sizes:
        raise ValueError(f"x: spatial extents {sizes} hold no elements")
    return [[Taps(range(size), 0, size, size)] for size in sizes]


def same(size, kernel, stride, dilation, auto_pad):
    """Return (padding at the beginning, padding at the end, outputs)."""
    outputs = -(-size // stride)
    total = max(0, (outputs - 1) * stride + (kernel - 1) * dilation + 1 - size)
    begin = (total + (auto_pad == "SAME_LOWER")) // 2
    return begin, total - begin, outputs


def output_count(size, kernel, stride, dilation, begin, end, ceil_mode, ceil_rule):
    room = size + begin + end - ((kernel - 1) * dilation + 1)
    # Rounding up adds a window, even if none fits. Its taps past the padding do not exist.
    steps, rest = divmod(room, stride)
    if ceil_mode and rest:
        steps += 1
    if ceil_mode and ceil_rule == "clip" and steps * stride >= size + begin:
        steps -= 1
    if steps < 0:
        raise ValueError(f"kernel_shape: no window of {kernel} taps in {size} + {begin} + {end}")
    return steps + 1


def _taps(output, size, kernel, stride, dilation, begin, end):
    """Return the taps of a window along one axis, without looping over padding of any size."""
    start = output * stride - begin
    skipped = 0 if start >= 0 else -(start // dilation)

    def before(place):
        return max(0, min(kernel, -((start - place) // dilation)))

    taken = max(skipped, before(size))
    elements = range(start + skipped * dilation, start + taken * dilation, dilation)
    return Taps(elements, skipped, before(size + end), kernel)


# --------------------------------------------------------------------------------------- arrays


def axes_of(order):
    """Return the positions of batch, channels and the spatial axes; -1 for an absent one."""
    return [order.batch_axis, order.channel_axis, *order.spatial]


def sizes_of(array, order):
    """Return the spatial extents of an array."""
    return [array.shape[axis] for axis in order.spatial]


def planes_of(array, order):
    """Return the array as (batch, channels, spatial axes...) in native byte order."""
    axes = axes_of(order)
    array = array.astype(array.dtype.newbyteorder("="))
    array = array.transpose([axis for axis in axes if axis >= 0])
    return np.expand_dims(array, [i for i, axis in enumerate(axes) if axis < 0])


def arranged(planes, order):
    """Undo what `planes_of` does."""
    axes = axes_of(order)
    array = planes[tuple(0 if axis < 0 else slice(None) for axis in axes)]
    back = np.argsort([axis for axis in axes if axis >= 0])
    return np.ascontiguousarray(array.transpose(back))


def without_axes(array, order, keepdims):
    """Return a global result, without its spatial axes unless `keepdims`."""
    return array if arguments.keepdims(keepdims) else array.squeeze(order.spatial)
