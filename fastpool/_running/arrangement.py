"""Arrange a plan as one of fewer axes, if the kernels take less time then.

The other plan has the same windows over the same memory, in the same order.
"""

import math
from typing import NamedTuple

from .._planning.average_pool import AvgPool
from .._planning.dtypes import ITEMSIZE, is_float
from .._planning.geometry import AdaptiveAxis, Axis
from .._planning.plan_checks import resolved, state_of

# Bytes of a window that becomes one of a row, at most, also if its additions are in order.
ROW_WINDOW, ROW_WINDOW_IN_ORDER = 16, 64
# Bytes of the rows that several such windows come from, at most: of signals and maxima, and if taps
# are a power of two, of means and maxima. (Short rows of images are interleaved for other means.)
SHORT_ROW, ROW_OF_MEANS, ROW_OF_MAXIMA = 64, 128, 256
# Bytes of a plane of joined axes, at most: of larger ones the gain is less than a copy of an array
# that cannot be joined.
JOINED_PLANE = 4 << 10


class Arrangement(NamedTuple):
    """A plan that gives the results of another one, and where its axes are in the other's arrays.

    Arrays must have the `joined` first axes evenly spaced, as if they were one. Without `axes`, it
    is that plan.
    """

    plan: object
    axes: tuple = ()
    joined: int = 0

    def placed(self, work, plan):
        """Return a work of `self.plan` with the shapes and axes of the arrays of `plan`."""
        if not self.axes:
            return work
        places = *self.axes, -1  # (-1 is an axis that does not exist)
        return work._replace(
            input_shape=plan.input_shape,
            output_shape=plan.output_shape,
            batch_axis=places[work.batch_axis],
            channel_axis=places[work.channel_axis],
            spatial_axes=tuple([places[axis] for axis in work.spatial_axes]),
            joined=self.joined,
        )


def arranged(plan, copies, work_of_maxima=None):
    """Return the `Arrangement` of a plan that takes the least time.

    `copies` says whether arrays are copied that kernels cannot use as they are. `work_of_maxima`
    returns the `Work` of the plan as it is.
    """
    if plan.channels_last:
        return Arrangement(plan)
    row = _in_row(plan) if copies else None
    planes = _in_planes(plan, copies, work_of_maxima) if len(plan.axes) > 2 else None
    return row or planes or Arrangement(plan)


def _in_row(plan):
    """Arrange windows of a few consecutive elements, next to one another, as those of one row.

    Rows and planes of a few elements leave most of a vector empty: global means of 1024x2x2 uint8
    6.4 -> 0.6 us, maxima of 256x32 float32 k2 s2 half the time, 1.8 times as fast in all (2,900
    random layers).
    """
    kernels, itemsize, most = [axis.kernel for axis in plan.axes], ITEMSIZE[plan.dtype], ROW_WINDOW
    taps, means = math.prod(kernels), isinstance(plan, AvgPool)
    if means and is_float(plan.dtype):
        if plan.numerics == "pairwise" and max(kernels) < taps:
            return None  # (columns are added before rows)
        if plan.numerics == "sequential":
            most = ROW_WINDOW_IN_ORDER
    elif not means and plan.return_indices:
        return None
    if taps < 2 or (taps * itemsize > most and taps != 4) or 0 in plan.output_shape:
        return None
    several, row = False, itemsize
    for axis in reversed(plan.axes):
        if not _is_tiled(axis) or (several and axis.kernel > 1):
            return None  # (outside of an axis of several windows, windows take one element each)
        row *= 1 if several else axis.size
        several |= axis.output > 1
    most = ROW_OF_MEANS if means else ROW_OF_MAXIMA
    if taps & taps - 1:
        most = 0 if means and len(plan.axes) > 1 else SHORT_ROW
    if several and row > most:
        return None
    outputs, rank = math.prod(plan.output_shape), len(plan.input_shape)
    size = outputs * taps
    fields = state_of(plan)
    if means:
        fields["counted"] = plan.counted and ((0, size),)
    axes = (Axis(size, outputs, taps, taps, 1, 0, 0),)
    return Arrangement(_changed(plan, fields, "W", (size,), (outputs,), axes), (rank - 1,), rank)


def _is_tiled(axis):
    """Are the windows of an axis next to one another, without gaps, and take all of it?"""
    if isinstance(axis, AdaptiveAxis):
        return False
    size, output, kernel, stride, dilation, begin, _ = axis
    near = stride == kernel or output == 1
    return size == output * kernel and begin == 0 and near and (dilation == 1 or kernel == 1)


def _in_planes(plan, copies, work_of_maxima):
    """Arrange axes before the rows, if windows take them element by element, as channels.

    A tile has several planes of channels, but those of volumes one each: 1x64x16x14x14 uint8 k1x3x3
    s1x2x2 196 -> 36 us, with indices int16 3x28x14x67x5 k1x3x3 819 -> 68. Two axes of planes may
    lie anywhere. Of more, all but the last are joined.
    """
    leads, first = 0, plan.spatial[0]
    for axis in plan.axes[:-2]:
        if axis.kernel > 1 or not _is_tiled(axis):
            break
        leads += 1
    start = first + leads
    if not leads:
        return None
    if max(plan.input_shape[first:start]) > 1:
        # (The axis before planes of one row or column is better their rows, and volumes that are
        # interleaved take as long as their planes, or half of it.)
        if min(plan.input_shape[start:]) == 1:
            return None
        work = work_of_maxima and work_of_maxima()
        if work and work.inner and not work.composed:
            return None
    places = [i for i in range(start) if plan.input_shape[i] != 1]
    channel = places.pop() if places else -1
    plane_bytes = math.prod(plan.input_shape[start:]) * ITEMSIZE[plan.dtype]
    if len(places) > 1 and (not copies or plane_bytes > JOINED_PLANE):
        return None
    batch = math.prod([plan.input_shape[i] for i in places])
    channels = plan.input_shape[channel] if channel >= 0 else 1
    input_shape = batch, channels, *plan.input_shape[start:]
    output_shape = batch, channels, *plan.output_shape[start:]
    fields = state_of(plan)
    if isinstance(plan, AvgPool):
        fields["counted"] = plan.counted and plan.counted[leads:]
    elif plan.return_indices:
        axis = plan.index_axis
        if len({i < axis for i in places}) > 1 or plan.index_shape != plan.input_shape:
            return None  # (they count within joined axes, or in the whole of a tile)
        if plan.storage_order:
            return None
        counted = (not places or axis > places[-1]) + (axis > channel) + max(0, axis - start)
        fields["index_axis"] = counted
        fields.update(index_shape=input_shape, index_origin=(0,) * len(input_shape))
    axes = places[-1] if places else -1, channel, *plan.spatial[leads:]
    joined = places[-1] + 1 if len(places) > 1 else 0
    planes = _changed(plan, fields, "NCHW", input_shape, output_shape, plan.axes[leads:])
    return Arrangement(planes, axes, joined)


def _changed(plan, fields, layout, input_shape, output_shape, axes):
    """Return a plan of other fields and axes."""
    batch, channels = input_shape[:2] if layout == "NCHW" else (1, 1)
    fields.update(
        layout=layout,
        input_shape=input_shape,
        output_shape=output_shape,
        batch=batch,
        channels=channels,
        axes=axes,
        given=None,
    )
    return resolved(type(plan), fields)
