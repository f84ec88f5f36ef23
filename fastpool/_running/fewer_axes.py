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
from .tiles import GROUP_COLUMNS, INTERLEAVED

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
# Taps of their windows along an axis, at most (rows of long windows are added in more time), and
# bytes of volumes whose maxima are not taken so if they are interleaved (uint8 2x2x8 3.3 -> 15 us).
MOST_TAPS, SMALL_VOLUME = 16, 256
# Columns of a plane that is made of signals, at most, and how much less time makes it worth while.
MOST_COLUMNS, ENOUGH = 1024, 0.8


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
    if several and not plan.channels_last:
        fewer = _in_row(plan)
    if several and not fewer:
        fewer = _in_long_rows(plan, work_of_maxima)
    if fewer or plan.channels_last:
        return fewer or FewerAxes(plan)
    if isinstance(plan, AvgPool) and (len(plan.axes) < 2 or plan.axes[-2].kernel == 1):
        fewer = _in_tall_planes(plan, several)
    if not fewer and len(plan.axes) > 2:
        fewer = _in_planes(plan, several, work_of_maxima)
    return fewer or FewerAxes(plan)


def _in_tall_planes(plan, several):
    """Take means along rows as those of planes of more rows: 0.55 of the time (900 random signals).

    A group of interleaved planes takes as long as its columns and GROUP_COLUMNS more.
    """
    *outer, cols = plan.axes
    lengths = plan.input_shape[:-1]
    joined = [i for i, size in enumerate(lengths) if size > 1]
    if isinstance(cols, AdaptiveAxis) or cols.output < 2 or 0 in plan.input_shape or not joined:
        return None
    if not all([axis.kernel == 1 and _is_tiled(axis) for axis in outer]):
        return None
    if len(joined) > 1 and not several:
        return None
    count, own = math.prod(lengths), outer[-1].size if outer else 1

    def cost(rows):
        return -(-count // rows // INTERLEAVED) * (GROUP_COLUMNS + rows * cols.size)

    more = range(own + 1, min(count, MOST_COLUMNS // cols.size) + 1)
    rows = min([n for n in more if count % n == 0], key=cost, default=own)
    if cost(rows) > ENOUGH * cost(own):
        return None
    axes = Axis(rows, rows, 1, 1, 1, 0, 0), cols
    fields = {"counted": plan.counted and ((0, rows), plan.counted[-1])}
    tall = _with_axes(plan, 1, count // rows, axes, fields)
    last = joined[-1]  # (planes and their rows are parts of it)
    return FewerAxes(tall, (-1, last, last, len(lengths)), last + 1 if len(joined) > 1 else 0)


def _in_long_rows(plan, work_of_maxima):
    """Take the last axes as one, if windows take them element by element.

    Windows along time (3x1x1) take 0.42 of the time (1,500 random layers; AVX2 0.47).
    """
    last = [*takewhile(lambda axis: axis.kernel == 1 and _is_tiled(axis), plan.axes[:0:-1])]
    long = [axis.size for axis in last if axis.size > 1]
    pixel = plan.channels * ITEMSIZE[plan.dtype]
    if len(long) < 2 or (plan.channels_last and long[0] * pixel > SHORT_ROW):
        return None
    kept, size, fields = plan.axes[: -len(last)], math.prod(long), {}
    if max([axis.kernel for axis in kept]) not in range(2, MOST_TAPS + 1):
        return None
    if any([axis.extent > max(1, axis.size) or axis.begin > axis.size for axis in kept]):
        return None  # (of hardly any elements)
    nbytes = math.prod([axis.size for axis in kept]) * size * ITEMSIZE[plan.dtype]
    values = work_of_maxima and not plan.return_indices
    if values and nbytes <= SMALL_VOLUME and work_of_maxima().inner:
        return None
    if isinstance(plan, AvgPool):
        fields["counted"] = plan.counted and (*plan.counted[: len(kept)], (0, size))
    elif plan.return_indices:
        if plan.index_axis or plan.storage_order or plan.index_shape != plan.input_shape:
            return None
    axes = *kept, Axis(size, size, 1, 1, 1, 0, 0)
    rows = _with_axes(plan, plan.batch, plan.channels, axes, fields)
    columns = [i for i in plan.spatial if plan.input_shape[i] > 1][-1]
    places = [plan.batch_axis, *plan.spatial[: len(kept)], columns]
    places.insert(len(places) if plan.channels_last else 1, plan.channel_axis)
    return FewerAxes(rows, tuple(places), len(plan.input_shape))


def _in_row(plan):
    """Take windows of a few consecutive elements, next to one another, as those of one row.

    Small planes leave most of a vector empty: global means of 1024x2x2 uint8 6.4 -> 0.6 us.
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
    return FewerAxes(_with_axes(plan, 1, 1, axes, fields), (-1, -1, rank - 1), rank)


def _is_tiled(axis):
    """Are the windows of an axis next to one another, without gaps, and take all of it?"""
    if isinstance(axis, AdaptiveAxis):
        return False
    size, output, kernel, stride, dilation, begin, _ = axis
    near = stride == kernel or output == 1
    return size == output * kernel and begin == 0 and near and (dilation == 1 or kernel == 1)


def _in_planes(plan, several, work_of_maxima):
    """Take axes before the rows as channels, if windows take them element by element.

    A tile has several planes of channels, but only one of volumes: 1x64x16x14x14 uint8 1x3x3 at a
    stride of 2 82 -> 20 us. Of more than two axes before the rows, all but the last are joined.
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
    fields = {}
    if isinstance(plan, AvgPool):
        fields["counted"] = plan.counted and plan.counted[len(axes) :]
    elif plan.return_indices:
        dropped = plan.index_axis
        some = len({i < dropped for i in joined}) > 1  # (of axes that are joined)
        if some or plan.storage_order or plan.index_shape != plan.input_shape:
            return None
        fields["index_axis"] = (dropped > batch) + (dropped > channel) + max(0, dropped - start)
    count = math.prod([plan.input_shape[i] for i in joined])
    planes = _with_axes(plan, count, channels, plan.axes[len(axes) :], fields)
    count = batch + 1 if len(joined) > 1 else 0
    return FewerAxes(planes, (batch, channel, *plan.spatial[len(axes) :]), count)


def _with_axes(plan, batch, channels, axes, fields):
    """Return a plan of an array with batch and channels, with other axes and fields."""
    shapes = [axis.size for axis in axes], [axis.output for axis in axes]
    if plan.channels_last:
        shapes = [(batch, *sizes, channels) for sizes in shapes]
    else:
        shapes = [(batch, channels, *sizes) for sizes in shapes]
    if not isinstance(plan, AvgPool) and plan.return_indices:
        fields |= {"index_shape": shapes[0], "index_origin": (0,) * len(shapes[0])}
    return changed(
        plan,
        {
            "layout": "NHWC" if plan.channels_last else "NCHW",
            "input_shape": shapes[0],
            "output_shape": shapes[1],
            "batch": batch,
            "channels": channels,
            "axes": axes,
            "given": None,
            **fields,
        },
    )
