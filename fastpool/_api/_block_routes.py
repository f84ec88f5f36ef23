"""Choose how blocks are reduced: by the poolings, or by the kernels of blocks.

Maxima, minima, means and sums of whole arrays are poolings with ``strides=kernel_shape``. If some
elements are missing, rows of blocks are folded if they may be. Else a copy is pooled that has NaN,
or the lowest number, in their places. So the order of additions is that of the poolings. All else
is what the kernels of blocks are for.
"""

import dataclasses
import math

import numpy as np

from .._planning.blocks import Blocks
from .._planning.dtypes import ELEMENT_TYPES, ITEMSIZE, is_float
from .._planning.values import MOST
from .._plans import make_avg_plan, make_min_plan, make_plan
from .._running import builds
from .._running.blocks import fill, fill_rule, reduce_by_kernels
from .._running.plan_cache import PlanCache

# Elements with missing ones are copied in slabs of blocks, which fit the second-level cache.
SLAB_BYTES = 1 << 20
_POOLED = "max", "min", "mean", "sum"


class Reduction:
    """A block reduction of one shape and type, ready to run. `masked`: there is a `where`."""

    def __init__(self, plan, masked):
        self.plan = plan
        skips = masked or plan.nodata is not None or plan.need > 1
        # (A pooling gives NaN for a sum of nothing, where a block gives 0.)
        skips = skips or (plan.ignores_nan and plan.function == "sum")
        pools = plan.function in _POOLED and not skips and not _is_long(plan)
        self._otherwise = _pool if pools else None
        if not pools and _has_slabs(plan):
            self._otherwise = _reduce_slabs
        # Poolings skip NaN in small floats faster than folds do: 2/3 of the time, AVX2.
        small = plan.function in ("max", "min") and ITEMSIZE[plan.dtype] <= 4
        self._pools = pools and (small or not plan.ignores_nan)
        self._pooling = None  # of all, once it is known
        self._transposed = None if plan.has_order else plan.transposed()

    def __call__(self, x, where, y, counts):
        """Reduce `x` into `y`, and count the elements that are there; `y` is not empty."""
        plan = self.plan
        if x.flags.fnc and self._transposed is not None:  # (2048x2048 uint8 2x2: 52 -> 0.2 ms)
            if isinstance(self._transposed, Blocks):
                self._transposed = Reduction(self._transposed, where is not None)
            self._transposed(*(a if a is None else a.T for a in (x, where, y, counts)))
            return
        if plan.taken != x.shape:
            x, where = x[plan.kept], None if where is None else where[plan.kept]
        if self._pools:
            if self._pooling is None:
                self._pooling = _pooling(plan, x, y)
            return _pool(plan, x, where, y, counts, self._pooling)
        if where is not None and where.strides[-1] != 1 and plan.function in _POOLED:
            where = np.ascontiguousarray(where)
        with builds.usual_floats():
            reduce_by_kernels(plan, x, where, y, counts, self._otherwise)


def _is_long(plan):
    """Has a block more elements along an axis than a window may have?"""
    return max(map(min, plan.blocks, plan.taken)) > MOST // 2


def _count(plan, x, where, counts):
    count = dataclasses.replace(
        plan, function="count", result_dtype="int64", rounding="half_even", need=0, missing=None
    )
    reduce_by_kernels(count, x, where, counts, None)


def _pool(plan, x, where, y, counts, pooling=None):
    """Pool the blocks of x into y, as windows, and count their elements if `counts` is given."""
    if counts is not None:
        _count(plan, x, where, counts)
    pool, of_x, of_y = pooling or _pooling(plan, x, y)
    into = y.reshape(of_y) if y.flags.c_contiguous else None
    pooled = pool(x.reshape(of_x), into)
    if into is None:
        y[...] = pooled.reshape(y.shape)


def _pooling(plan, x, y):
    """Return a plan that pools blocks as windows, and the shapes of its input and output.

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
    of_x, of_y = ((*before, *(a.shape[axis] for axis in axes), *after) for a in (x, y))
    arguments = (
        plan.function, kernel, (0,) * len(kernel) + pads, "NHWC" if after else "NCHW",
        "ignore" if plan.ignores_nan else "propagate", plan.num_threads, plan.result_dtype,
        plan.rounding, plan.numerics,
    )  # fmt: skip
    return _poolings.find(x.reshape(of_x), arguments), of_x, of_y


def _make_pooling(shape, dtype, function, kernel, pads, layout, nan, num_threads, *means):
    options = {
        "strides": kernel, "pads": pads, "ceil_mode": True, "layout": layout, "nan": nan,
        "num_threads": num_threads,
    }  # fmt: skip
    if function in ("max", "min"):
        make = make_plan if function == "max" else make_min_plan
        return make(shape, dtype, kernel, **options)
    options.update(zip(("result_dtype", "rounding", "numerics"), means, strict=True))
    divisor = 1 if function == "sum" else None
    return make_avg_plan(shape, dtype, kernel, divisor=divisor, **options)


_poolings = PlanCache(_make_pooling)


def _window(extent, block):
    """Return the window and the padding at its end for blocks of an axis.

    If a block is twice as long as its axis, its tree of additions has nothing in one half.
    """
    while extent <= block // 2:
        block //= 2
    return block, max(0, block - extent)


def _has_slabs(plan):
    """Are copies pooled if some elements are missing, where blocks are not folded?"""
    if is_float(plan.dtype) and plan.function in ("mean", "sum"):
        return True
    extremes = plan.function in ("max", "min") and plan.dtype != "bool"
    return extremes and plan.need and not _is_long(plan)


def _reduce_slabs(plan, x, where, y, counts):
    """Pool copies of slabs. NaN, or the lowest number, is what is missing."""
    if _is_long(plan):
        raise ValueError(
            f"block_size: expected at most {MOST // 2} elements along an axis for the "
            f"{plan.function} of floats, got {max(map(min, plan.blocks, plan.taken))}"
        )
    filler, large, itemsize = math.nan, None, ITEMSIZE[plan.dtype]
    if plan.function in ("mean", "sum"):  # (sums of smaller ones are finite)
        large = {"float16": 2.0**15, "float64": 2.0**512}.get(plan.dtype, 2.0**64)
    elif not plan.ignores_nan:
        lowest = "lowest" if plan.function == "max" else "highest"
        filler = getattr(ELEMENT_TYPES[plan.dtype], lowest)
    part = dataclasses.replace(plan, ignores_nan=filler != filler)
    extents = zip(x.shape, plan.blocks, strict=True)
    of_blocks = [x.size // n * min(n, k) * itemsize for n, k in extents]  # of one each, bytes
    fitting = (axis for axis, nbytes in enumerate(of_blocks) if nbytes <= SLAB_BYTES)
    axis = next(fitting, of_blocks.index(min(of_blocks)))
    block, slab = min(plan.blocks[axis], x.shape[axis]), max(1, SLAB_BYTES // of_blocks[axis])
    native, before = x.dtype.newbyteorder("="), (slice(None),) * axis
    # (One copy for all: memory that is new takes as long as the pooling.)
    size = x.size // x.shape[axis] * min(slab * block, x.shape[axis])
    copy = np.empty(size, native)
    rule = fill_rule(plan, native, filler, large)
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
    _pool(part, copy, None, y, None)
    if filler == plan.missing and plan.need == 1 and counts is None:
        return
    flags = None
    if plan.function in ("mean", "sum") and wild and not plan.ignores_nan and np.isnan(x.min()):
        spoiled = np.isnan(x)
        if where is not None:
            spoiled &= where
        flags = np.empty(y.shape, bool)
        _pool(dataclasses.replace(part, dtype="bool", function="max"), spoiled, None, flags, None)
    lost = np.isnan(y) if part.ignores_nan else y == filler
    # (If an element is wild, it may be what a pooling of nothing gives.)
    if counts is None and (plan.need > 1 or flags is not None or (wild and lost.any())):
        counts = np.empty(y.shape, np.int64)
    if counts is not None:
        _count(plan, x, where, counts)
        lost = counts < max(1, plan.need)
    y[lost] = plan.missing if plan.need else 0
    if flags is not None:
        y[flags & (counts >= plan.need)] = np.nan
