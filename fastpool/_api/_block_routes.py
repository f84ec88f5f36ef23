"""Choose how blocks are reduced: by the poolings, or by the kernels of blocks.

Maxima, minima, means and sums of whole arrays are poolings with ``strides=kernel_shape``. Means and
sums of floats some of which are missing are poolings that ignore NaN: their order of additions is
that of the poolings. All else is what the kernels of blocks are for.
"""

import dataclasses
import math

import numpy as np

from .._planning.dtypes import is_float
from .._planning.values import MOST
from .._running.blocks import bits_of, reduce_by_kernels
from .average import avg_pool
from .maximum import max_pool
from .minimum import min_pool

# Elements with missing ones are copied in slabs of blocks, which fit the second-level cache.
SLAB_BYTES = 1 << 20


def reduce_into(plan, x, where, y, counts):
    """Reduce `x` into `y`, and count the elements that are there; `y` is not empty."""
    x = x[plan.kept]
    where = None if where is None else where[plan.kept]
    skips = where is not None or plan.nodata is not None or plan.need > 1
    # A pooling gives NaN for a sum of nothing, where a block gives 0.
    skips = skips or (plan.ignores_nan and plan.function == "sum")
    if plan.function in ("max", "min", "mean", "sum") and not skips and not _is_long(plan):
        _pool(plan, x, y)
        if counts is not None:
            _count(plan, x, where, counts)
    elif plan.function in ("mean", "sum") and is_float(plan.dtype):
        if _is_long(plan):
            raise ValueError(
                f"block_size: expected at most {MOST // 2} elements along an axis for the "
                f"{plan.function} of floats, got {max(map(min, plan.blocks, plan.taken))}"
            )
        _reduce_slabs(plan, x, where, y, counts)
    else:
        reduce_by_kernels(plan, x, where, y, counts)


def _is_long(plan):
    """Has a block more elements along an axis than a window may have?"""
    return max(map(min, plan.blocks, plan.taken)) > MOST // 2


def _count(plan, x, where, counts):
    count = dataclasses.replace(
        plan, function="count", result_dtype="int64", rounding="half_even", need=0, missing=None
    )
    reduce_by_kernels(count, x, where, counts, None)


def _pool(plan, x, y):
    """Pool the blocks of x into y, as windows.

    Axes that stay as they are become batch and channels. Axes of one element are left out, so that
    64 axes have room for these two.
    """
    axes = [axis for axis in range(x.ndim) if x.shape[axis] > 1] or [0]
    reduced = [axis for axis in axes if plan.blocks[axis] > 1] or axes[-1:]
    first, stop = reduced[0], reduced[-1] + 1
    axes = [axis for axis in axes if first <= axis < stop]
    windows = (_window(x.shape[axis], plan.blocks[axis]) for axis in axes)
    kernel, pads = zip(*windows, strict=True)
    lead, channels = math.prod(x.shape[:first]), math.prod(x.shape[stop:])
    before, after = ((lead,), (channels,)) if channels > 1 else ((lead, 1), ())
    options = {
        "strides": kernel, "pads": (0,) * len(kernel) + pads, "ceil_mode": True,
        "layout": "NHWC" if after else "NCHW", "num_threads": plan.num_threads,
        "nan": "ignore" if plan.ignores_nan else "propagate",
    }  # fmt: skip
    x = x.reshape(*before, *(x.shape[axis] for axis in axes), *after)
    if y.flags.c_contiguous:
        options["out"] = y.reshape(*before, *(y.shape[axis] for axis in axes), *after)
    if plan.function in ("max", "min"):
        pooled = (max_pool if plan.function == "max" else min_pool)(x, kernel, **options)
    else:
        pooled = avg_pool(
            x, kernel, dtype=plan.result_dtype, rounding=plan.rounding,
            divisor=1 if plan.function == "sum" else None, numerics=plan.numerics, **options,
        )  # fmt: skip
    if "out" not in options:
        y[...] = pooled.reshape(y.shape)


def _window(extent, block):
    """Return the window and the padding at its end for blocks of an axis.

    If a block is twice as long as its axis, its tree of additions has nothing in one half.
    """
    while extent <= block // 2:
        block //= 2
    return block, max(0, block - extent)


def _reduce_slabs(plan, x, where, y, counts):
    """Add floats of which some may be missing, slab by slab along the first axis."""
    block = min(plan.blocks[0], x.shape[0])
    slab = max(1, SLAB_BYTES // max(1, x.nbytes // x.shape[0] * block))
    part = dataclasses.replace(plan, ignores_nan=True)
    for start in range(0, y.shape[0], slab):
        at, read = slice(start, start + slab), slice(start * block, (start + slab) * block)
        with np.errstate(all="ignore"):  # signalling NaN
            _reduce_slab(
                plan, part, x[read], None if where is None else where[read], y[at],
                None if counts is None else counts[at],
            )  # fmt: skip


def _reduce_slab(plan, part, x, where, y, counts):
    x = x.astype(x.dtype.newbyteorder("="), copy=False)
    there = where
    if plan.nodata is not None:
        there = _differs(x, plan.nodata)
        if where is not None:
            there &= where
    values = x
    if there is not None:
        # Set all bits, which makes a NaN, where nothing is there: three times as fast as np.where.
        lost = np.negative((there.view(np.int8) == 0).view(np.int8))
        values = np.bitwise_or(x.view(f"i{x.itemsize}"), lost).view(x.dtype)
    _pool(part, values, y)
    flags = None
    if not plan.ignores_nan and np.isnan(x.min()):
        spoiled = np.isnan(x)
        if there is not None:
            spoiled &= there
        flags = np.empty(y.shape, bool)
        _pool(dataclasses.replace(part, dtype="bool", function="max"), spoiled, flags)
    # A pooling gives NaN if all is missing.
    if counts is None and (plan.need > 1 or flags is not None or np.isnan(y).any()):
        counts = np.empty(y.shape, np.int64)
    if counts is not None:
        _count(plan, x, where, counts)
        y[counts < max(1, plan.need)] = plan.missing if plan.need else 0
    if flags is not None:
        y[flags if counts is None else flags & (counts >= plan.need)] = np.nan


def _differs(x, nodata):
    """Return where floats are not equal to a number, also if the caller flushes subnormals."""
    integers = x.view(f"i{x.itemsize}")
    bits = integers.dtype.type(bits_of(nodata, x.dtype))
    return (integers << 1) != 0 if nodata == 0 else integers != bits
