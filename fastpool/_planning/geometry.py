"""Find the axes of an array; resolve padding, rounding and the output extent of spatial axes.

All numbers are Python ints, so no sum or product wraps.
"""

import math
from typing import NamedTuple

from . import arguments
from .arguments import shown

# Limit for elements and bytes of an array: indices and byte offsets below it fit into an int64.
LARGEST = 2**62

_SPATIAL_NAMES = {1: "W", 2: "HW", 3: "DHW"}

# name -> (has a batch axis, channels "first" or "last" or None, spatial axes)
_LAYOUTS = {
    batch + name: (bool(batch), channels, len(spatial))
    for batch in ("N", "")
    for spatial in _SPATIAL_NAMES.values()
    for channels, name in (("first", "C" + spatial), ("last", spatial + "C"), (None, spatial))
}


class Layout(NamedTuple):
    """Positions of the axes in an array; -1 for a batch or channel axis that it lacks."""

    name: str
    batch_axis: int
    channel_axis: int
    spatial: tuple
    channels_last: bool
    spatial_names: tuple


def layout(value, shape):
    """Return the `Layout` called `value` for an array of this shape.

    "NCHW" and "NHWC" also mean channels first and channels last with any number of spatial axes. Up
    to three spatial axes, the result has the exact name.
    """
    value = "NCHW" if value is None else value
    if not isinstance(value, str):
        raise TypeError(f"layout: expected a str, got {shown(value)}")
    value = arguments.plain_text(value)
    if value not in _LAYOUTS:
        raise ValueError(
            f'layout: expected [N][C] and then "W", "HW" or "DHW", or the C last, '
            f"got {shown(value)}"
        )
    batch, channels, count = _LAYOUTS[value]
    rank = len(shape)
    if value in ("NCHW", "NHWC"):
        count = rank - 2
        if count < 1:
            raise ValueError(
                f'layout: "{value}" needs batch, channels and at least one spatial axis, '
                f"got an input of shape {shape}"
            )
    elif rank != len(value):
        raise ValueError(
            f'layout: "{value}" names {len(value)} axes, the input of shape {shape} has {rank}'
        )
    first = batch + (channels == "first")
    if count in _SPATIAL_NAMES:
        spatial_names = _SPATIAL_NAMES[count]
        letters = {"first": "C" + spatial_names, "last": spatial_names + "C", None: spatial_names}
        value = "N" * batch + letters[channels]
    else:
        spatial_names = (f"D{i + 1}" for i in range(count))
    return Layout(
        name=value,
        batch_axis=0 if batch else -1,
        channel_axis={"first": first - 1, "last": rank - 1, None: -1}[channels],
        spatial=tuple(range(first, first + count)),
        channels_last=channels == "last",
        spatial_names=tuple(spatial_names),
    )


# ------------------------------------------------------------------------------------------ axes


class Axis(NamedTuple):
    """One pooled axis: output o covers elements ``o * stride - begin + t * dilation``, t < kernel.

    `end` is the padding at the end with which rounding down gives `output`.
    """

    size: int
    output: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int


class Given(NamedTuple):
    """Attributes as the caller gave them; a plan's axes hold only what they resolve to."""

    pads: tuple
    auto_pad: str
    ceil_mode: bool
    ceil_rule: str


def extent_at(shape, axis):
    return 1 if axis < 0 else shape[axis]


def along(plan, values, absent):
    """Return the values of batch, channels and the spatial axes, from one value per array axis."""
    places = plan.batch_axis, plan.channel_axis, *plan.spatial
    return [absent if place < 0 else values[place] for place in places]


def replaced(shape, order, extents):
    """Return `shape` with other spatial extents."""
    shape = list(shape)
    for axis, extent in zip(order.spatial, extents, strict=True):
        shape[axis] = extent
    return tuple(shape)


def pooled_axes(
    shape, order, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule
):
    """Return the `Axis` of each spatial axis, and the `Given` from which they were resolved."""
    count = len(order.spatial)
    kernels = arguments.kernel_shape(kernel_shape, count)
    strides = arguments.strides(strides, count)
    dilations = arguments.dilations(dilations, count)
    pads = arguments.pads(pads, count)
    auto_pad = arguments.auto_pad(auto_pad)
    ceil_mode = arguments.ceil_mode(ceil_mode)
    ceil_rule = arguments.ceil_rule(ceil_rule)
    if auto_pad != "NOTSET" and any(pads):
        raise ValueError(f'pads: expected none with auto_pad "{auto_pad}", got {pads}')
    axes = []
    for i, position in enumerate(order.spatial):
        window = shape[position], kernels[i], strides[i], dilations[i]
        if auto_pad.startswith("SAME"):
            axes.append(_same_axis(*window, lower=auto_pad == "SAME_LOWER"))
        else:
            where = f"kernel_shape[{i}]", order.spatial_names[i]
            begin, end = pads[i], pads[count + i]
            axes.append(padded_axis(*window, begin, end, ceil_mode, ceil_rule, *where))
    return tuple(axes), Given(pads, auto_pad, ceil_mode, ceil_rule)


def _same_axis(size, kernel, stride, dilation, lower):
    """Return ceil(size / stride) outputs and the padding for them, an odd unit at one side."""
    output = -(-size // stride)
    extent = (kernel - 1) * dilation + 1
    total = max((output - 1) * stride + extent - size, 0) if output else 0
    begin = (total + 1) // 2 if lower else total // 2
    return Axis(size, output, kernel, stride, dilation, begin, total - begin)


def padded_axis(
    size, kernel, stride, dilation, begin, end, ceil_mode, ceil_rule, argument, axis_name
):
    extent = (kernel - 1) * dilation + 1
    room = size + begin + end - extent
    if room < 0:
        raise ValueError(
            f"{argument}: window ({kernel} - 1) * {dilation} + 1 = {extent} exceeds the padded "
            f"input {size} + {begin} + {end} = {size + begin + end} of axis {axis_name}"
        )
    output = floor_output = room // stride + 1
    if ceil_mode:
        output = -(-room // stride) + 1
        # A last window that would start in the padding at the end, or past it, is dropped.
        if ceil_rule == "clip" and (output - 1) * stride >= size + begin:
            output -= 1
    if output != floor_output:
        end = max((output - 1) * stride + extent - size - begin, 0)
    return Axis(size, output, kernel, stride, dilation, begin, end)


def check_size(name, shape, itemsize):
    if math.prod(extent or 1 for extent in shape) * itemsize > LARGEST:  # as NumPy counts
        raise ValueError(f"{name}: {shape} of {itemsize}-byte elements is more than 2**62 bytes")
