"""Reduce blocks by compiled code, region by region.

A region is a part of the result whose blocks have one shape: the inside, or the last, partial
blocks along some axes. Compiled code sees no edges.
"""

import math
import sys
from itertools import product

import numpy as np

from .._planning.arguments import ROUNDINGS
from .._planning.blocks import FUNCTIONS, Blocks
from .._planning.dtypes import CODES, ITEMSIZE, is_float
from . import builds, threads

# Results of these types are computed as float64, and rounded by NumPy.
_NARROW = "float16", "bfloat16"
_ROUNDED = "median", "var", "std"
# Of blocks that are folded: their elements fit int8_t, and rows of outputs are vectors.
MOST_FOLDED, SHORTEST_FOLDED = 127, 64


def reduce_by_kernels(plan: Blocks, x, where, y, counts):
    """Reduce `x` into `y`, and count the elements of each block that are there.

    `where` has the shape of x, and `counts` that of y, or they are None. x covers whole blocks but
    for the last ones along an axis (`Blocks.kept`).
    """
    into, result = y, plan.result_dtype
    if result in _NARROW and plan.function in _ROUNDED:
        into, result = np.empty(y.shape, np.float64), "float64"
    elif not y.flags.aligned:
        into = np.empty(y.shape, y.dtype)
    if not (x.flags.aligned and x.dtype.isnative):
        x = x.astype(x.dtype.newbyteorder("="))
    kernels, work = builds.active(), x.nbytes + y.nbytes
    nodata = 0 if plan.nodata is None else bits_of(plan.nodata, x.dtype)
    missing = 0 if plan.missing is None else bits_of(plan.missing, into.dtype)
    rule = (
        CODES[plan.dtype], FUNCTIONS.index(plan.function), CODES[result],
        ROUNDINGS.index(plan.rounding), plan.ignores_nan, plan.nodata is not None, nodata, missing,
        min(plan.need, 2**62), plan.ddof,
    )  # fmt: skip
    count = threads.effective_threads(plan.num_threads, work, kernels.max_threads)
    by_default = threads.rule(plan.num_threads, work)
    for at, read, block in _regions(plan, x.shape):
        views = zip((x, where, into, counts), (read, read, at, at), strict=True)
        arrays = [None if a is None else a[part].view(f"u{a.itemsize}") for a, part in views]
        folded = folds(plan, block, *arrays)
        region = _in_order_of_memory(plan, block, folded, *arrays)
        kernels.reduce_blocks(rule, *region, folded, count, by_default)
    if into is not y:
        with np.errstate(over="ignore", invalid="ignore"):
            y[...] = into


def fill_rule(plan: Blocks, kind, dtype, filler, large):
    """Return how elements become those of a type, with a filler for those that are missing.

    `large` is None, or the largest magnitude that is not wild.
    """
    most = 2 ** (8 * dtype.itemsize - 1) - 1
    return (
        CODES[plan.dtype], CODES[kind], plan.nodata is not None,
        0 if plan.nodata is None else bits_of(plan.nodata, dtype),
        is_float(kind) and plan.nodata == 0, bits_of(filler, dtype),
        most if large is None else bits_of(large, dtype),
        bits_of(np.inf, dtype) if plan.ignores_nan else most,
    )  # fmt: skip


def fill(plan: Blocks, rule, x, where, to):
    """Fill a copy of elements by a rule. All arrays are contiguous.

    Return whether an element that is there is wild: a NaN, large, or equal to the filler.
    """
    kernels, work = builds.active(), x.nbytes + to.nbytes
    arrays = (None if a is None else a.view(f"u{a.itemsize}") for a in (x, where, to))
    count = threads.effective_threads(plan.num_threads, work, kernels.max_threads)
    return kernels.filled(rule, *arrays, count, threads.rule(plan.num_threads, work))


def bits_of(value, dtype):
    """Return the bits of a number as an element, as a signed int."""
    return int.from_bytes(np.array(value).astype(dtype).tobytes(), sys.byteorder, signed=True)


def _regions(plan, shape):
    """Yield (slices of the result, slices of the input, block) of each region."""
    axes = []
    for extent, block in zip(shape, plan.blocks, strict=True):
        block = min(block, extent)  # (extents are not 0 here)
        full = extent // block
        parts = [(slice(full), slice(full * block), block)]
        if extent % block:
            parts.append((slice(full, None), slice(full * block, None), extent % block))
        axes.append(parts)
    for parts in product(*axes):
        yield tuple(zip(*parts, strict=True))


def folds(plan: Blocks, block, x, where, y, counts):
    """Can a region be folded: whole vectors of its rows, and then neighbours?

    Rows are contiguous then, and the trees of floats have no odd taps.
    """
    sizes = ITEMSIZE[plan.dtype], 1, ITEMSIZE[plan.result_dtype], 8
    arrays = zip((x, where, y, counts), sizes, strict=True)
    if (
        block[-1] not in (2, 4, 8)
        or math.prod(block) > MOST_FOLDED
        or x.shape[-1] // block[-1] < SHORTEST_FOLDED
        or any(a is not None and a.strides[-1] != size for a, size in arrays)
    ):
        return False
    same, adds = plan.result_dtype == plan.dtype, plan.function in ("mean", "sum")
    if plan.function in ("max", "min") or plan.dtype == "bool":
        return plan.dtype != "bool"
    if is_float(plan.dtype):
        halves = all(k & (k - 1) == 0 for k in (*plan.blocks, *block))
        return adds and same and sizes[0] >= 4 and plan.numerics == "pairwise" and halves
    longest = plan.result_dtype in ("int64", "uint64")
    return adds and sizes[0] <= 2 and (same if plan.function == "mean" else longest)


def _in_order_of_memory(plan, block, folded, x, where, y, counts):
    """Return shape, taps and operands of a region for `reduce_blocks`.

    Outputs and taps go through memory in its order. Taps that are added as floats do not: their
    order is that of the axes, so that results do not depend on strides. Rows that are folded are
    added along the first axis first.
    """
    order = range(x.ndim)
    if not folded:  # (Axes of stride 0 come first.)
        order = sorted(order, key=lambda axis: -abs(x.strides[axis]) or -sys.maxsize)
    outputs = [axis for axis in order if y.shape[axis] > 1] or [0]
    if folded:
        order = [*reversed(order[:-1]), order[-1]]
    elif plan.function in ("var", "std"):
        order = range(x.ndim)
    taps = [axis for axis in order if block[axis] > 1] or [0]

    def operand(array, reads):
        if array is None:
            return None
        factors = block if reads else (1,) * x.ndim
        steps = [array.strides[axis] * factors[axis] for axis in outputs]
        return array, steps, [array.strides[axis] for axis in taps] if reads else None

    return (
        [y.shape[axis] for axis in outputs],
        [block[axis] for axis in taps],
        (operand(x, True), operand(where, True), operand(y, False), operand(counts, False)),
    )
