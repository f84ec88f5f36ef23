"""Take a plan as one of fewer axes, if the kernels need less time then.

The other plan has the same windows over the same memory, in the same order.
"""

import math
from itertools import takewhile
from typing import NamedTuple

from .._planning.average_pool import AvgPool
from .._planning.dtypes import ITEMSIZE, is_float
from .._planning.geometry import AdaptiveAxis, Axis
from .._planning.plan_checks import changed

# Bytes of a window that becomes one of a row, at most, but for 4 taps: float64 2048x3x3 1.7 times.
ROW_WINDOW = 16
# ROW_WINDOW of means with numerics="sequential": float64 2048x2x4 takes half of the time.
ROW_WINDOW_IN_ORDER = 64
# Bytes of rows of several windows that become one row, at most: float16 256x96 k3 s3 1.2 times.
ROW_OF_WINDOWS = 64
# ROW_OF_WINDOWS if taps are a power of two: uint8 k2 s2 maxima of 256x256 take 0.2 of the time.
ROW_OF_MEANS, ROW_OF_MAXIMA = 128, 256
# Bytes of rows of pixels that become one row, at most: longer ones of means take 1.1 times as long.
SHORT_ROW = 1 << 10


class FewerAxes(NamedTuple):
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
        axes = *self.axes, -1  # (-1 is an axis that does not exist)
        return work._replace(
            input_shape=plan.input_shape,
            output_shape=plan.output_shape,
            batch_axis=axes[work.batch_axis],
            channel_axis=axes[work.channel_axis],
            spatial_axes=tuple([axes[axis] for axis in work.spatial_axes]),
            joined=self.joined,
        )


def with_fewer_axes(plan, several, work_of_maxima=None):
    """Return the `FewerAxes` of a plan that take the least time.

    Axes are joined only if it may have `several` works, as arrays may need the plan as it is.
    `work_of_maxima` returns the `Work` of that.
    """
    fewer = None
    if several:
        fewer = (not plan.channels_last and _in_row(plan)) or _in_long_rows(plan)
    if not fewer and len(plan.axes) > 2 and not plan.channels_last:
        fewer = _in_planes(plan, several, work_of_maxima)
    return fewer or FewerAxes(plan)


def _in_long_rows(plan):
    """Take the last axes as one, if windows take them element by element.

    Windows along time (3x1x1) take 0.42 of the time (1,500 random layers; AVX2 0.47).
    """

    def array_of(batch, channels, spatial):
        return (batch, *spatial, channels) if plan.channels_last else (batch, channels, *spatial)

    last = [*takewhile(lambda axis: axis.kernel == 1 and _is_tiled(axis), plan.axes[:0:-1])]
    long = [axis.size for axis in last if axis.size > 1]
    pixel = plan.channels * ITEMSIZE[plan.dtype]
    if len(long) < 2 or (plan.channels_last and long[0] * pixel > SHORT_ROW):
        return None
    kept, size, fields = plan.axes[: -len(last)], math.prod(long), {}
    sizes = array_of(plan.batch, plan.channels, [*[axis.size for axis in kept], size])
    outputs = array_of(plan.batch, plan.channels, [*[axis.output for axis in kept], size])
    if isinstance(plan, AvgPool):
        fields["counted"] = plan.counted and (*plan.counted[: len(kept)], (0, size))
    elif plan.return_indices:
        if plan.index_axis or plan.storage_order or plan.index_shape != plan.input_shape:
            return None
        fields["index_shape"], fields["index_origin"] = sizes, (0,) * len(sizes)
    columns = [i for i in plan.spatial if plan.input_shape[i] > 1][-1]
    places = array_of(plan.batch_axis, plan.channel_axis, [*plan.spatial[: len(kept)], columns])
    row = Axis(size, size, 1, 1, 1, 0, 0)
    plan_of_rows = _of_planes(plan, sizes, outputs, (*kept, row), fields)
    return FewerAxes(plan_of_rows, places, len(plan.input_shape))


def _in_row(plan):
    """Take windows of a few consecutive elements, next to one another, as those of one row.

    Rows and planes of a few elements leave most of a vector empty: global means of 1024x2x2 uint8
    6.4 -> 0.6 us, maxima of 256x32 float32 k2 s2 half of the time.
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
    if (taps * itemsize > most and taps != 4) or 0 in plan.output_shape:
        return None
    several, row = False, itemsize
    for axis in reversed(plan.axes):
        if not _is_tiled(axis) or (several and axis.kernel > 1):
            return None  # (outside of an axis of several windows, windows take one element each)
        row *= 1 if several else axis.size
        several |= axis.output > 1
    longest = ROW_OF_MEANS if means else ROW_OF_MAXIMA
    if taps & taps - 1:  # (short rows of images are interleaved for means)
        longest = 0 if means and len(plan.axes) > 1 else ROW_OF_WINDOWS
    if row > longest if several else taps == 1:
        return None
    outputs, rank = math.prod(plan.output_shape), len(plan.input_shape)
    size, fields = outputs * taps, {"counted": None} if means else {}
    axes = (Axis(size, outputs, taps, taps, 1, 0, 0),)
    plan = _of_planes(plan, (1, 1, size), (1, 1, outputs), axes, fields)
    return FewerAxes(plan, (-1, -1, rank - 1), rank)


def _is_tiled(axis):
    """Are the windows of an axis next to one another, without gaps, and take all of it?"""
    if isinstance(axis, AdaptiveAxis):
        return False
    size, output, kernel, stride, dilation, begin, _ = axis
    near = stride == kernel or output == 1
    return size == output * kernel and begin == 0 and near and (dilation == 1 or kernel == 1)


def _in_planes(plan, several, work_of_maxima):
    """Take axes before the rows as channels, if windows take them element by element.

    A tile has several planes of channels, but those of volumes one each: 1x64x16x14x14 uint8 k1x3x3
    s1x2x2 82 -> 20 us, with indices int16 3x28x14x67x5 k1x3x3 779 -> 67. Two axes of more than one
    element are batch and channels, wherever they lie. Of more, all but the last are joined.
    """
    axes = [*takewhile(lambda axis: axis.kernel == 1 and _is_tiled(axis), plan.axes[:-2])]
    if not axes:
        return None
    start = plan.spatial[0] + len(axes)
    if any([axis.size > 1 for axis in axes]):
        if min(plan.input_shape[start:]) == 1:
            return None  # (the last of these axes becomes the rows: means of 2x640x101x2x1 1/4)
        work = work_of_maxima and work_of_maxima()
        if work and work.inner and not work.composed:
            return None  # (volumes are interleaved: maxima of 1263x3x2x4 10 us, as planes 74)
    joined = [i for i in range(start) if plan.input_shape[i] != 1]
    channel = joined.pop() if joined else -1
    batch = joined[-1] if joined else -1
    if len(joined) > 1 and not several:
        return None
    channels = plan.input_shape[channel] if channel >= 0 else 1
    extents = math.prod([plan.input_shape[i] for i in joined]), channels
    input_shape = *extents, *plan.input_shape[start:]
    fields = {}
    if isinstance(plan, AvgPool):
        fields["counted"] = plan.counted and plan.counted[len(axes) :]
    elif plan.return_indices:
        dropped = plan.index_axis
        some = len({i < dropped for i in joined}) > 1  # (of axes that are joined)
        if some or plan.storage_order or plan.index_shape != plan.input_shape:
            return None
        fields["index_axis"] = (dropped > batch) + (dropped > channel) + max(0, dropped - start)
        fields["index_shape"], fields["index_origin"] = input_shape, (0,) * len(input_shape)
    output_shape = *extents, *plan.output_shape[start:]
    planes = _of_planes(plan, input_shape, output_shape, plan.axes[len(axes) :], fields)
    count = batch + 1 if len(joined) > 1 else 0
    return FewerAxes(planes, (batch, channel, *plan.spatial[len(axes) :]), count)


def _of_planes(plan, input_shape, output_shape, axes, fields):
    """Return a plan of an array with batch and channels, with other axes and fields."""
    return changed(
        plan,
        {
            "layout": "NHWC" if plan.channels_last else "NCHW",
            "input_shape": input_shape,
            "output_shape": output_shape,
            "batch": input_shape[0],
            "channels": input_shape[-1 if plan.channels_last else 1],
            "axes": axes,
            "given": None,
            **fields,
        },
    )
