"""Compute the right answer of a workload in NumPy alone."""

from itertools import product

import numpy as np

from .._planning.dtypes import lowest
from . import means


def expected(workload, arrays):
    """Return the answer of a workload: maxima, maxima and indices, the unpooled array, or means.

    Indices count in the whole channels-first array.
    """
    if workload.kind == "unpool":
        return (unpooled(workload, *arrays),)
    (x,) = arrays
    if workload.op == "avg":
        return (means.expected(workload, x),)
    if workload.kind == "indices":
        return maxima_and_indices(workload, x)
    return (Sliced(workload, x.dtype, np.maximum, lowest(x.dtype.name))(x),)


def difference(got, want, allowed=(0, 0)):
    """Return the first difference of two tuples of arrays, "" if there is none; NaN equals NaN.

    `allowed` is the difference that numbers may have, (part of the right number, absolute).
    """
    if len(got) != len(want):
        return f"{len(got)} results instead of {len(want)}"
    found = map(array_difference, ("result", "indices"), got, want, (allowed, (0, 0)))
    return next(filter(None, found), "")


def array_difference(name, got, want, allowed=(0, 0)):
    """Return the first difference of two arrays, "" if there is none; NaN equals NaN."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{name}: {got.dtype} {got.shape} instead of {want.dtype} {want.shape}"
    wrong = (got != want) & ((got == got) | (want == want))
    if any(allowed):
        part, absolute = allowed
        numbers = want.astype(np.float64)
        wrong &= ~(abs(got.astype(np.float64) - numbers) <= part * abs(numbers) + absolute)
    wrong = np.argwhere(wrong)
    if not len(wrong):
        return ""
    at = tuple(map(int, wrong[0]))
    counts = f"{len(wrong)} of {got.size} differ"
    return f"{name}: {counts}, first at {at}: {got[at]} instead of {want[at]}"


class Sliced:
    """Combine shifted slices, one spatial axis after the other, in reused buffers.

    `combine` is NumPy's maximum or add, and `start` what its results start from.
    """

    def __init__(self, workload, dtype, combine, start):
        self.combine, self.start = combine, start
        self.steps = []
        shape = list(workload.shape)
        for axis, taps in zip(workload.spatial_axes, slices(workload), strict=True):
            shape[axis] = workload.output_sizes[axis - workload.spatial_axes[0]]
            y = np.empty(shape, dtype)
            before = (slice(None),) * axis
            self.steps.append((y, [(y[*before, into], (*before, taken)) for into, taken in taps]))

    def __call__(self, x):
        for y, taps in self.steps:
            y.fill(self.start)
            for into, taken in taps:
                self.combine(into, x[taken], out=into)
            x = y
        return x


def maxima_and_indices(workload, x):
    """Pool tap after tap in row-major order; a later tap wins only where it is larger."""
    numbers = whole_indices(workload, np.arange(np.prod(workload.sizes)).reshape(workload.sizes))
    y = np.zeros(workload.output_shape, x.dtype)
    indices = np.full(y.shape, -1)
    before = (slice(None),) * workload.spatial_axes[0]
    for taps in product(*slices(workload)):
        into, taken = ((*before, *slices) for slices in zip(*taps, strict=True))
        better = (indices[into] < 0) | (x[taken] > y[into])
        np.copyto(y[into], x[taken], where=better)
        np.copyto(indices[into], numbers[taken], where=better)
    return y, indices


def unpooled(workload, values, indices):
    """Return the values at their indices, and zeros elsewhere."""
    y = np.zeros(workload.shape, values.dtype)
    flat = memory_offsets(workload, indices).ravel()
    y.reshape(-1)[flat] = values.ravel()
    return y


def whole_indices(workload, indices):
    """Turn indices inside planes into indices of the whole channels-first array.

    `indices` has the workload's layout, or only the spatial axes.
    """
    if indices.ndim == len(workload.sizes):
        indices = indices[..., None] if workload.channels_last else indices
    return indices + plane_starts(workload)


def plane_starts(workload):
    """Return the index of every plane's first element in the channels-first array, to broadcast."""
    planes = np.arange(workload.shape[0] * workload.channels) * np.prod(workload.sizes)
    planes = planes.reshape(workload.shape[0], workload.channels, *(1 for _ in workload.sizes))
    return np.moveaxis(planes, 1, -1) if workload.channels_last else planes


def memory_offsets(workload, indices):
    """Turn indices of the channels-first array into offsets in the array as it is."""
    if not workload.channels_last:
        return indices
    plane = np.prod(workload.sizes)
    rest, pixel = np.divmod(indices, plane)
    batch, channel = np.divmod(rest, workload.channels)
    return (batch * plane + pixel) * workload.channels + channel


def slices(workload):
    """Return, per spatial axis and tap, the slices (of outputs, of elements) that it connects."""
    begins, _ = workload.full_pads
    axes = zip(
        *(workload.sizes, workload.output_sizes, begins),
        *(workload.kernel_shape, workload.strides, workload.dilations),
        strict=True,
    )
    return [list(_axis_taps(*axis)) for axis in axes]


def _axis_taps(size, outputs, begin, kernel, stride, dilation):
    for tap in range(kernel):
        start = tap * dilation - begin
        first = max(0, -(start // stride))  # windows first..last have this tap in the array
        last = min(outputs - 1, (size - 1 - start) // stride)
        if first <= last:
            taken = slice(first * stride + start, last * stride + start + 1, stride)
            yield slice(first, last + 1), taken
