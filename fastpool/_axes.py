"""The axes of a pooling: extents, padding and rounding, and the rules of its indices.

Everything is a Python int, so that no sum or product wraps, whatever the attributes.
"""

import math
from typing import NamedTuple

from . import _arguments

# No memory holds more elements or bytes; indices and byte offsets below it fit an int64.
LARGEST = 2**62


class Axis(NamedTuple):
    """One pooled axis: output o covers elements ``o * stride - begin + t * dilation``, t < kernel.

    `end` is the padding at the end that a floor rounding needs for the same output.
    """

    size: int
    output: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int


class Given(NamedTuple):
    """The attributes of which a plan's axes hold only what came of them."""

    pads: tuple
    auto_pad: str
    ceil_mode: bool
    ceil_rule: str


def extent_at(shape, axis):
    return 1 if axis < 0 else shape[axis]


def replaced(shape, order, extents):
    """`shape` with other spatial extents."""
    shape = list(shape)
    for axis, extent in zip(order.spatial, extents, strict=True):
        shape[axis] = extent
    return tuple(shape)


def pooled_axes(
    shape, order, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule
):
    count = len(order.spatial)
    kernels = _arguments.kernel_shape(kernel_shape, count)
    strides = _arguments.strides(strides, count)
    dilations = _arguments.dilations(dilations, count)
    pads = _arguments.pads(pads, count)
    auto_pad = _arguments.auto_pad(auto_pad)
    ceil_mode = _arguments.ceil_mode(ceil_mode)
    ceil_rule = _arguments.ceil_rule(ceil_rule)
    if auto_pad != "NOTSET" and any(pads):
        raise ValueError(f'pads: expected none beside auto_pad "{auto_pad}", got {pads}')
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
    """One output per `stride` elements begun, and the padding for that; an odd unit at one side."""
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


def index_rules(shape, order, storage_order, index_axis, index_layout):
    storage_order = _arguments.storage_order(storage_order)
    index_axis = _arguments.index_axis(index_axis, len(shape))
    index_layout = _arguments.index_layout(index_layout, order)
    if storage_order:
        if index_layout == "NHWC":
            raise ValueError(
                'storage_order: 1 counts within planes and cannot go with index_layout "NHWC"'
            )
        # As if channels came first, the plane starts where its first axis is.
        plane = (order.batch_axis >= 0) + (order.channel_axis >= 0)
        if index_axis > plane:
            raise ValueError(
                f"index_axis: {index_axis} is inside the plane, which storage_order 1 numbers "
                f"column by column; expected at most {plane}"
            )
    return storage_order, index_axis, index_layout


def check_size(name, shape, itemsize):
    if math.prod(extent or 1 for extent in shape) * itemsize > LARGEST:  # as NumPy counts
        raise ValueError(f"{name}: {shape} of {itemsize}-byte elements is more than 2**62 bytes")


def check_index_size(shape, order, index_axis, index_layout):
    if index_layout == "NCHW" and order.channels_last:
        shape = list(shape)
        shape.insert(order.spatial[0], shape.pop(order.channel_axis))
    largest = math.prod(shape[index_axis:]) - 1
    if largest >= 2**31:
        raise ValueError(f"index_dtype: int32 cannot hold the largest index, {largest}")
