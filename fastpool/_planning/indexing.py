"""Resolve what an index counts: the rules as given, and the index stride of each axis."""

import math
import operator

from . import arguments
from .geometry import along


def index_rules(shape, order, storage_order, index_axis, index_layout):
    """Return storage_order, index_axis and index_layout as plans hold them."""
    storage_order = arguments.storage_order(storage_order)
    index_axis = arguments.index_axis(index_axis, len(shape))
    index_layout = arguments.index_layout(index_layout, order)
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


def check_index_size(shape, order, index_axis, index_layout):
    if index_layout == "NCHW" and order.channels_last:
        shape = list(shape)
        shape.insert(order.spatial[0], shape.pop(order.channel_axis))
    largest = math.prod(shape[index_axis:]) - 1
    if largest >= 2**31:
        raise ValueError(f"index_dtype: int32 cannot hold the largest index, {largest}")


def index_strides(plan):
    """Return what one element along batch, channel and each spatial axis adds to an index."""
    _, channels, *sizes = along(plan, plan.index_shape, 1)
    row_major = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    plane = math.prod(sizes)
    if plan.index_layout == "NHWC":
        spatial = [stride * channels for stride in row_major]
        strides = [plane * channels, *spatial, 1]
        order = ["N", *range(len(sizes)), "C"]
    else:
        spatial = row_major
        if plan.storage_order:
            spatial = [math.prod(sizes[:i]) for i in range(len(sizes))]
        strides = [plane * channels, plane, *spatial]
        order = ["N", "C", *range(len(sizes))]
    # index_axis counts the axes that the layout has
    absent = {"N": plan.batch_axis < 0, "C": plan.channel_axis < 0}
    dropped = set([axis for axis in order if not absent.get(axis)][: plan.index_axis])
    by_axis = {a: 0 if a in dropped else s for a, s in zip(order, strides, strict=True)}
    return by_axis["N"], by_axis["C"], *(by_axis[i] for i in range(len(sizes)))


def index_base(plan, strides):
    """Return the index of the input's first element: 0, unless the plan is that of a tile."""
    return sum(map(operator.mul, along(plan, plan.index_origin, 0), strides))


def is_linear(strides, sizes):
    """Is an index a base plus a multiple of the row-major position?"""
    scale = strides[-1]
    row_major = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    return all(
        size == 1 or stride == place * scale
        for stride, place, size in zip(strides[2:], row_major, sizes, strict=True)
    )
