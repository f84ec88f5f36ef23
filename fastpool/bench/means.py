"""Compute the right answer of a workload of averages in NumPy alone, and how far peers may be off.

Floats are added in pairs, in turn or, for the kind "exact", as 64-bit integers:
`workloads.make_arrays` makes them multiples of a unit.
"""

from fractions import Fraction
from math import prod

import numpy as np

from .workloads import QUANTIZED, UNIT


def expected(workload, x):
    """Return the means as fastpool computes them."""
    counts = divisors(workload)
    if workload.kind == "qlinear":
        return requantized(workload, x, counts)
    if x.dtype.kind in "iu":
        return quotients(sums(workload, x.astype(np.int64)), counts).astype(x.dtype)
    if workload.kind == "exact":
        return rounded_once(workload, x, counts)
    accumulator = np.float64 if workload.dtype == "float64" else np.float32
    add = added_in_turn if workload.kind == "sequential" else added_in_pairs
    return (add(workload, x.astype(accumulator)) / counts.astype(accumulator)).astype(x.dtype)


def rounded_once(workload, x, counts):
    """Return the true means of floats, each rounded once to their type."""
    units = x.astype(np.float64) / UNIT
    whole = np.rint(units)
    total = sums(workload, whole.astype(np.int64))
    if workload.dtype != "float64":
        # Exact numbers below 2**53. Their quotient cannot be so close to the middle of two numbers
        # of a shorter type that it is first rounded to there.
        return (total / (counts / UNIT)).astype(x.dtype)
    rest = sums(workload, ((units - whole) / UNIT).astype(np.int64))
    one = int(1 / UNIT)
    # Python divides integers of any size and rounds once.
    numerators = total.astype(object) * one + rest
    return (numerators / (counts.astype(object) * one**2)).astype(np.float64)


def added_in_turn(workload, x):
    """Return sums of floats that are added tap by tap in the order of memory."""
    begins, ends = workload.full_pads
    padding = [(0, 0)] * x.ndim
    for axis, begin, end in zip(workload.spatial_axes, begins, ends, strict=True):
        padding[axis] = begin, max(0, end)
    x = np.pad(x, padding)  # adding 0 changes no sum
    before = (slice(None),) * workload.spatial_axes[0]
    reaches = [*zip(workload.output_sizes, workload.strides, strict=True)]
    y = np.zeros(workload.output_shape, x.dtype)
    for taps in np.ndindex(*workload.kernel_shape):
        places = zip(taps, reaches, strict=True)
        taken = (slice(tap, tap + (outputs - 1) * s + 1, s) for tap, (outputs, s) in places)
        y += x[(*before, *taken)]
    return y


def added_in_pairs(workload, x):
    """Return sums of floats that are added by trees along one axis after another."""
    n = len(workload.sizes)
    begins = [0] * n if workload.output_size else workload.full_pads[0]
    strides = [0] * n if workload.output_size else workload.strides
    kernels = workload.kernel_shape or [0] * n
    axes = zip(workload.spatial_axes, spans(workload), begins, strides, kernels, strict=True)
    for axis, (starts, stops, _), begin, stride, kernel in axes:
        x = np.moveaxis(x, axis, 0)
        first, taps = starts, stops - starts  # of adaptive windows
        if kernel:
            first = np.arange(len(starts)) * stride - begin
            taps = np.full(len(starts), kernel)
        y = np.empty((len(first), *x.shape[1:]), x.dtype)
        for count in np.unique(taps):
            y[taps == count] = tree(x, first[taps == count], int(count))
        x = np.moveaxis(y, 0, axis)
    return x


def tree(x, first, taps):
    """Add `taps` elements from each of `first` on: two halves by trees of their own, then the rest.

    Elements outside are zeros.
    """
    if taps == 1:
        inside = (first >= 0) & (first < len(x))
        elements = x[first.clip(0, len(x) - 1)]
        elements[~inside] = 0
        return elements
    half = taps // 2
    total = tree(x, first, half) + tree(x, first + half, half)
    return total + tree(x, first + taps - 1, 1) if taps % 2 else total


def requantized(workload, x, counts):
    """Return the means of quantized numbers, in the scale of the result."""
    x_scale, x_zero, y_scale, y_zero = QUANTIZED[workload.dtype]
    step = Fraction(float(np.float32(x_scale))) / Fraction(float(np.float32(y_scale)))
    total = sums(workload, x.astype(np.int64) - x_zero) * step.numerator
    y = quotients(total, counts * step.denominator) + y_zero
    limits = np.iinfo(x.dtype)
    return np.clip(y, limits.min, limits.max).astype(x.dtype)


def quotients(numerators, denominators):
    """Return quotients of integers, rounded to the nearest integer, halves to the even one."""
    lower, rest = np.divmod(numerators, denominators)
    return lower + ((2 * rest > denominators) | ((2 * rest == denominators) & (lower % 2 == 1)))


def sums(workload, x):
    """Return the sums of integers over the windows, as differences of running sums."""
    for axis, (starts, stops, _) in zip(workload.spatial_axes, spans(workload), strict=True):
        padding = [(int(other == axis), 0) for other in range(x.ndim)]
        running = np.pad(np.cumsum(x, axis), padding)
        x = running.take(stops, axis) - running.take(starts, axis)
    return x


def divisors(workload):
    """Return by how much the sums are divided, to broadcast."""
    counts = np.ones((), np.int64)
    for _, _, along in spans(workload):
        counts = np.multiply.outer(counts, along)
    return counts[..., None] if workload.channels_last else counts


def spans(workload):
    """Return (starts, stops, counts) of the windows along each axis: real taps, and all counted."""
    ranges = zip(workload.sizes, workload.output_sizes, strict=True)
    if workload.output_size:
        places = [(np.arange(o), o, size) for size, o in ranges]
        both = [(at * size // o, -(-(at + 1) * size // o)) for at, o, size in places]
        return [(starts, stops, stops - starts) for starts, stops in both]
    begins, ends = workload.full_pads
    if workload.auto_pad == "NOTSET":
        ends = workload.pads[len(begins) :]
    found = []
    axes = zip(ranges, begins, ends, workload.kernel_shape, workload.strides, strict=True)
    for (size, outputs), begin, end, kernel, stride in axes:
        first = np.arange(outputs) * stride - begin
        starts, stops = np.maximum(first, 0), np.minimum(first + kernel, size)
        counted = np.minimum(first + kernel, size + end) - first
        found.append((starts, stops, counted if workload.count_include_pad else stops - starts))
    return found


def allowed(workload, x):
    """Return the difference that a peer's numbers may have: (part of the right one, absolute).

    Integers may be rounded either way. Floats may be off by their last digit, and by the errors of
    adding in float32, or float64.
    """
    if workload.op == "max":
        return 0, 0
    if x.dtype.kind in "iu":
        return 0, 1
    digits = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}[workload.dtype]
    taps = prod(int(max(stops - starts)) for starts, stops, _ in spans(workload))
    error = 2.0 ** -max(digits, 23)
    return 2.0**-digits, taps * error * float(abs(x.astype(np.float64)).max())
