"""Choose how blocks are reduced: by the poolings, or by the kernels of blocks.

Maxima, minima, means and sums of whole arrays are poolings with ``strides=kernel_shape``. If some
elements are missing, rows of blocks are folded if they may be. Else a copy is pooled that has NaN,
or the lowest number, in their places. So the order of additions is that of the poolings. All else
is what the kernels of blocks are for.
"""

import dataclasses
import math

import numpy as np

from .._planning.dtypes import ELEMENT_TYPES, ITEMSIZE, is_float
from .._planning.values import MOST
from .._running.blocks import fill, fill_rule, folds, reduce_by_kernels
from .average import avg_pool
from .maximum import max_pool
from .minimum import min_pool

# Elements with missing ones are copied in slabs of blocks, which fit the second-level cache.
SLAB_BYTES = 1 << 20
_ROUNDED = {"half_even": np.rint, "trunc": np.trunc, "floor": np.floor}


def reduce_into(plan, x, where, y, counts):
    """Reduce `x` into `y`, and count the elements that are there; `y` is not empty."""
    x = x[plan.kept]
    if where is not None:
        where = where[plan.kept]
        if plan.function in ("max", "min", "mean", "sum") and where.strides[-1] != 1:
            where = np.ascontiguousarray(where)
    folded = folds(plan, tuple(map(min, plan.blocks, x.shape)), x, where, y, counts)
    skips = where is not None or plan.nodata is not None or plan.need > 1
    # A pooling gives NaN for a sum of nothing, where a block gives 0. Its means that leave NaN out
    # take twice the time of folded ones.
    without_nans = plan.function == "sum" or (folded and plan.function == "mean")
    skips = skips or (plan.ignores_nan and without_nans)
    if plan.function in ("max", "min", "mean", "sum") and not skips and not _is_long(plan):
        _pool(plan, x, y)
        if counts is not None:
            _count(plan, x, where, counts)
        return
    if folded and is_float(plan.dtype) and plan.function in ("mean", "sum"):
        for axis, (extent, block) in enumerate(zip(x.shape, plan.blocks, strict=True)):
            rest = extent % block
            if rest < extent and (rest if axis == x.ndim - 1 else rest & (rest - 1)):
                _reduce_parts(plan, axis, extent // block, x, where, y, counts)
                return
    if not folded and (kind := _kind(plan)) is not None:
        if _is_long(plan):
            raise ValueError(
                f"block_size: expected at most {MOST // 2} elements along an axis for the "
                f"{plan.function} of floats, got {max(map(min, plan.blocks, plan.taken))}"
            )
        _reduce_slabs(plan, kind, x, where, y, counts)
    else:
        reduce_by_kernels(plan, x, where, y, counts)


def _reduce_parts(plan, axis, count, x, where, y, counts):
    """Reduce the full blocks along an axis, and then the last ones."""
    before, stop = (slice(None),) * axis, count * plan.blocks[axis]
    for to, of in ((slice(count), slice(stop)), (slice(count, None), slice(stop, None))):
        to, of = (*before, to), (*before, of)
        parts = zip((x, where, y, counts), (of, of, to, to), strict=True)
        reduce_into(plan, *(None if a is None else a[part] for a, part in parts))


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


def _kind(plan):
    """Return the type in which elements are pooled of which some are missing, or None.

    Integers become floats: their sums are exact, and their means so near to those of the integers
    that they are rounded to the same numbers.
    """
    if is_float(plan.dtype) and plan.function in ("mean", "sum"):
        return plan.dtype
    if plan.dtype == "bool" or _is_long(plan) or not plan.need:
        return None
    if plan.function in ("max", "min"):
        return plan.dtype
    if plan.function != "mean" or plan.result_dtype != plan.dtype or plan.rounding not in _ROUNDED:
        return None
    nbytes, taps = ITEMSIZE[plan.dtype], math.prod(map(min, plan.blocks, plan.taken))
    return "float32" if nbytes <= 2 and taps <= 1 << 7 else None


def _reduce_slabs(plan, kind, x, where, y, counts):
    """Pool copies of slabs. NaN, or the lowest number, is what is missing."""
    adds, filler, large = plan.function in ("mean", "sum"), math.nan, None
    if adds:  # (sums of smaller ones are finite)
        large = {"float16": 2.0**15, "float64": 2.0**512}.get(kind, 2.0**64)
    elif not plan.ignores_nan:
        filler = getattr(ELEMENT_TYPES[kind], "lowest" if plan.function == "max" else "highest")
    part = dataclasses.replace(plan, dtype=kind, ignores_nan=filler != filler)
    if kind != plan.dtype:
        part = dataclasses.replace(part, result_dtype=kind, rounding="half_even")
    extents = zip(x.shape, plan.blocks, strict=True)
    of_blocks = [x.size // n * min(n, k) * ITEMSIZE[kind] for n, k in extents]  # of one each, bytes
    fitting = (axis for axis, nbytes in enumerate(of_blocks) if nbytes <= SLAB_BYTES)
    axis = next(fitting, of_blocks.index(min(of_blocks)))
    block, slab = min(plan.blocks[axis], x.shape[axis]), max(1, SLAB_BYTES // of_blocks[axis])
    native, before = x.dtype.newbyteorder("="), (slice(None),) * axis
    # (One copy for all: memory that is new takes as long as the pooling.)
    size = x.size // x.shape[axis] * min(slab * block, x.shape[axis])
    copy = np.empty(size, native if kind == plan.dtype else kind)
    rule = fill_rule(plan, kind, copy.dtype, filler, large)
    for start in range(0, y.shape[axis], slab):
        at = (*before, slice(start, start + slab))
        read = (*before, slice(start * block, (start + slab) * block))
        of_x = np.require(x[read], native, "CA")
        of_where = None if where is None else np.ascontiguousarray(where[read])
        to = copy[: of_x.size].reshape(of_x.shape)
        wild = fill(plan, rule, of_x, of_where, to)
        with np.errstate(all="ignore"):  # signalling NaN
            _reduce_slab(
                plan, part, filler, wild, of_x, of_where, to, y[at],
                None if counts is None else counts[at],
            )  # fmt: skip


def _reduce_slab(plan, part, filler, wild, x, where, copy, y, counts):
    pooled = y if part.dtype == plan.dtype else np.empty(y.shape, part.dtype)
    _pool(part, copy, pooled)
    if filler == plan.missing and plan.need == 1 and counts is None:
        return
    flags = None
    if plan.function in ("mean", "sum") and wild and not plan.ignores_nan and np.isnan(x.min()):
        spoiled = np.isnan(x)
        if where is not None:
            spoiled &= where
        flags = np.empty(y.shape, bool)
        _pool(dataclasses.replace(part, dtype="bool", function="max"), spoiled, flags)
    lost = np.isnan(pooled) if part.ignores_nan else pooled == filler
    if pooled is not y:
        y[...] = _ROUNDED[plan.rounding](pooled)
    # (If an element is wild, it may be what a pooling of nothing gives.)
    if counts is None and (plan.need > 1 or flags is not None or (wild and lost.any())):
        counts = np.empty(y.shape, np.int64)
    if counts is not None:
        _count(plan, x, where, counts)
        lost = counts < max(1, plan.need)
    y[lost] = plan.missing if plan.need else 0
    if flags is not None:
        y[flags & (counts >= plan.need)] = np.nan
