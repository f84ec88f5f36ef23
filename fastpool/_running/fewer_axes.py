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
# Taps of a window along an axis, at most, for the last axes to be joined. Maxima of volumes of at
# most SMALL_VOLUME bytes are not joined if these are interleaved (uint8 2x2x8 3.3 -> 15 us).
MOST_TAPS, SMALL_VOLUME = 16, 256
# Bytes of a plane or volume whose columns become channels, at least (5x433x4x2 float16 3x1 7 -> 83
# us), of the slabs of a volume, at least (39x31x4x3 float32 2x4x1 9 -> 44; a third of maxima that
# are not interleaved), and of rows under windows along rows, at most (0.55; longer ones 0.97).
PLANE_OF_PIXELS, SLAB_OF_PIXELS, ROW_OF_PIXELS = 1 << 10, 384, 64


class FewerAxes(NamedTuple):
    """A plan that gives the results of another one, and where its axes are in the other's arrays.

    Arrays must have the `joined` first axes evenly spaced, as if they were one. Without `axes`, it
    is that plan.
    """

    plan: object
    axes: tuple = ()
    joined: int = 0

    def in_arrays_of(self, whole):
        """Return this, which takes the plan of `whole`, for the arrays of `whole`."""
        if not whole.axes:
            return self
        axes = *whole.axes, -1
        sizes = whole.plan.input_shape[: self.joined]
        several = [at for at, size in zip(whole.axes, sizes, strict=False) if size > 1]
        joined = max(several, default=-1) + 1
        return self._replace(axes=tuple([axes[axis] for axis in self.axes]), joined=joined)

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


def without_single_axes(plan, several):
    """Return the `FewerAxes` of a plan without the axes of one element, or the plan itself.

    Columns of one element leave most of a vector empty: maxima of float32 64x3000x1 3x1, AVX2,
    1950 -> 40 us. Arrays for a plan that has not `several` works may have gaps after these axes.
    """
    axes, fields = plan.axes, {}
    kept = [i for i, axis in enumerate(axes) if axis.size != 1 or not _is_taken_singly(axis)]
    single = len(kept) < len(axes) or (plan.channels_last and plan.channels == 1)
    if not several or not single or _counts_otherwise(plan):
        return FewerAxes(plan)
    kept = kept or [len(axes) - 1]
    if isinstance(plan, AvgPool):
        fields["counted"] = plan.counted and tuple([plan.counted[i] for i in kept])
    axes = tuple([axes[i] for i in kept])
    fewer = _with_axes(plan, plan.batch, plan.channels, axes, fields)
    return FewerAxes(fewer, _places(plan, [plan.spatial[i] for i in kept]))


def with_fewer_axes(whole, several, work_of_maxima=None):
    """Return the first `FewerAxes` that takes the plan of `whole`, or `whole` itself.

    Axes are joined only if it may have `several` works, as arrays may need the plan as it is.
    `work_of_maxima` returns the `Work` of that.
    """
    plan, fewer = whole.plan, None
    if several:
        fewer = _in_row(plan)
        if not fewer and _is_taken_singly(plan.axes[-1]):
            fewer = _in_long_rows(plan, work_of_maxima) or _in_pixels(plan, work_of_maxima)
    if not fewer and len(plan.axes) > 2:
        fewer = _in_planes(plan, several, work_of_maxima)
    return fewer.in_arrays_of(whole) if fewer else whole


def _in_long_rows(plan, work_of_maxima):
    """Take the last axes as one, if windows take them element by element.

    Windows along time (3x1x1) take 0.42 of the time (1,500 random layers; AVX2 0.47).
    """
    last = [*takewhile(_is_taken_singly, plan.axes[:0:-1])]
    long = [axis.size for axis in last if axis.size > 1]
    if len(long) < 2:
        return None
    kept, size, fields = plan.axes[: -len(last)], math.prod(long), {}
    if max([axis.kernel for axis in kept]) not in range(2, MOST_TAPS + 1):
        return None
    if any([axis.extent > max(1, axis.size) or axis.begin > axis.size for axis in kept]):
        return None  # (most taps are padding)
    nbytes = math.prod([axis.size for axis in kept]) * size * ITEMSIZE[plan.dtype]
    values = work_of_maxima and not plan.return_indices
    if values and nbytes <= SMALL_VOLUME and work_of_maxima().inner:
        return None
    if isinstance(plan, AvgPool):
        fields["counted"] = plan.counted and (*plan.counted[: len(kept)], (0, size))
    elif _counts_otherwise(plan):
        return None
    axes = *kept, Axis(size, size, 1, 1, 1, 0, 0)
    rows = _with_axes(plan, plan.batch, plan.channels, axes, fields)
    columns = [i for i in plan.spatial if plan.input_shape[i] > 1][-1]
    places = _places(plan, [*plan.spatial[: len(kept)], columns])
    return FewerAxes(rows, places, len(plan.input_shape))


def _in_pixels(plan, work_of_maxima):
    """Take the columns of planes as channels that are last, if windows take them one by one.

    Windows along rows (3x1) take 0.7 of the time, those over slabs and rows (3x3x1) 0.5 (4,000
    random layers, AVX-512; AVX2 0.65 and 0.5).
    """
    *axes, cols = plan.axes
    means, row = isinstance(plan, AvgPool), cols.size * ITEMSIZE[plan.dtype]
    outer = [*takewhile(_is_taken_singly, axes)]
    start = plan.spatial[0] + len(outer)
    axes = axes[len(outer) :]
    if not axes or plan.channels_last or _is_taken_singly(axes[-1]):
        return None
    if any([isinstance(axis, AdaptiveAxis) for axis in axes]):
        return None
    if math.prod(plan.input_shape[start:-1]) * row < PLANE_OF_PIXELS:
        return None
    slab = axes[-1].size * row
    if slab < SLAB_OF_PIXELS and len(axes) > 1:
        if means or slab < SLAB_OF_PIXELS // 3 or work_of_maxima().inner:
            return None
    indices, fields = not means and plan.return_indices, {}
    if len(axes) == 1 and (axes[0].output == 1 or (means and axes[0].stride > 1)):
        return None
    if len(axes) == 1 and not (means or indices or row < ROW_OF_PIXELS or work_of_maxima().keyed):
        return None
    if means:
        fields["counted"] = plan.counted and plan.counted[len(outer) : -1]
    elif indices:
        if _counts_otherwise(plan, (0, start)):
            return None
        fields["index_axis"] = int(plan.index_axis > 0)
    joined = [i for i in range(start) if plan.input_shape[i] != 1]
    batch = joined[-1] if joined else -1
    fields["layout"] = "NHWC"
    count = math.prod(plan.input_shape[:start])
    pixels = _with_axes(plan, count, cols.size, tuple(axes), fields)
    places = batch, *range(start, len(plan.input_shape))
    return FewerAxes(pixels, places, batch + 1 if len(joined) > 1 else 0)


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
    if (taps * itemsize > most and taps != 4) or 0 in plan.output_shape or plan.channels_last:
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


def _is_taken_singly(axis):
    """Do windows take the elements of an axis one by one?"""
    return axis.kernel == 1 and _is_tiled(axis)


def _counts_otherwise(plan, axes=(0,)):
    """Do indices count otherwise than the elements of the array, from one of `axes` on?"""
    if isinstance(plan, AvgPool) or not plan.return_indices:
        return False
    whole = plan.index_shape == plan.input_shape
    return plan.index_axis not in axes or plan.storage_order or not whole


def _places(plan, spatial):
    """Return where the axes of a plan, of these spatial ones, are in its arrays."""
    last = plan.channels_last and plan.channels > 1
    places = [plan.batch_axis, *spatial]
    places.insert(len(places) if last else 1, plan.channel_axis)
    return tuple(places)


def _in_planes(plan, several, work_of_maxima):
    """Take axes before the rows as channels, if windows take them element by element.

    A tile has several planes of channels, but only one of volumes: 1x64x16x14x14 uint8 1x3x3 at a
    stride of 2 82 -> 20 us. Of more than two axes before the rows, all but the last are joined.
    """
    axes = [*takewhile(_is_taken_singly, plan.axes[:-2])]
    if not axes or plan.channels_last:
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
    last = fields.get("layout") == "NHWC" or (plan.channels_last and channels > 1)
    if last:
        shapes = [(batch, *sizes, channels) for sizes in shapes]
    else:
        shapes = [(batch, channels, *sizes) for sizes in shapes]
    layout = "NHWC" if last else "NCHW"
    if not isinstance(plan, AvgPool) and plan.return_indices:
        fields |= {"index_shape": shapes[0], "index_origin": (0,) * len(shapes[0])}
        if last != plan.channels_last:  # (so that indices count elements in their order in memory)
            fields["index_layout"] = layout
    return changed(
        plan,
        {
            "layout": layout,
            "channels_last": last,
            "input_shape": shapes[0],
            "output_shape": shapes[1],
            "batch": batch,
            "channels": channels,
            "axes": axes,
            "given": None,
            **fields,
        },
    )
