"""Reduce blocks by compiled code, region by region.

A region is a part of the result whose blocks have one shape: the inside, or the last, partial
blocks along some axes. Compiled code sees no edges.
"""

import sys
from itertools import product
from math import prod

import numpy as np

from .._planning.arguments import ROUNDINGS
from .._planning.blocks import FUNCTIONS, Blocks
from .._planning.dtypes import CODES, ITEMSIZE, is_float
from . import builds, threads

# Results of these types are computed as float64, and rounded by NumPy.
_NARROW = "float16", "bfloat16"
_ROUNDED = "median", "var", "std"
# Of blocks that are folded: their elements fit int8_t, two limits of block_neighbours.h, and rows
# of outputs are vectors.
_MOST_ELEMENTS, _MOST_WIDTH, _MOST_ODD, _SHORTEST_ROW = 127, 56, 7, 64
# Of kernels/blocks/levels.pxi: its limits, the blocks of a row, the fewest, elements of a tile.
_MOST_LEVELS, _MOST_TAPS, _ROW, _FEWEST, _TILE = 16, 64, 128, 32, 1 << 20


def reduce_by_kernels(plan: Blocks, x, where, y, counts, otherwise=None):
    """Reduce `x` into `y`, and count the elements of each block that are there.

    `where` has the shape of x, and `counts` that of y, or they are None. x covers whole blocks but
    for the last ones along an axis (`Blocks.kept`). `otherwise` is what reduces all, with these
    arguments, if the inside is not folded; and other regions, if floats are added.
    """
    into, result = y, plan.result_dtype
    if result in _NARROW and plan.function in _ROUNDED:
        into, result = np.empty(y.shape, np.float64), "float64"
    elif not y.flags.aligned:
        into = np.empty(y.shape, y.dtype)
    x = _usable(x)
    kernels, work = builds.active(), x.nbytes + y.nbytes
    rule = _rule(plan, x.dtype, into.dtype, result)
    count = threads.effective_threads(plan.num_threads, work, kernels.max_threads)
    by_default = threads.rule(plan.num_threads, work)
    adds_floats = is_float(plan.dtype) and plan.function in ("mean", "sum")
    # (Columns and lists take elements in the order of memory; a pooling would copy them.)
    if not adds_floats and x.strides[-1] != x.itemsize:
        otherwise = None
    for at, read, block in _regions(plan, x.shape):
        views = zip((x, where, into, counts), (read, read, at, at), strict=True)
        arrays = [None if a is None else a[part] for a, part in views]
        sums = _fold(plan, block, *arrays)
        if sums is None and otherwise is not None:
            if not any(part.start for part in at):
                otherwise(plan, x, where, into, counts)
                break
            if adds_floats:
                otherwise(plan, *arrays)
                continue
        region = _in_order_of_memory(plan, block, sums is not None, *arrays)
        kernels.reduce_blocks(rule, *region, sums, count, by_default)
    if into is not y:
        with np.errstate(over="ignore", invalid="ignore"):
            y[...] = into


def reduce_levels(plans, x, where):
    """Return the modes of the first levels of a pyramid: as many as are reduced in one go.

    `plans` are those of all levels. They are reduced so if blocks of the first one are small, and
    many are in a row of memory.
    """
    x = _usable(x)
    axes = [axis for axis in _order_of_memory(x) if x.shape[axis] > 1]
    extents = [x.shape[axis] for axis in axes]
    size = [min(plans[0].blocks[axis], x.shape[axis]) for axis in axes]
    if not axes or prod(size) > _MOST_TAPS or plans[0].output_shape[axes[-1]] < _FEWEST:
        return []
    kernels = builds.active()
    count = threads.effective_threads(plans[0].num_threads, x.nbytes, kernels.max_threads)
    tile, levels, results, ones = [], [], [], [1] * len(axes)
    for plan in plans[:_MOST_LEVELS]:
        if results:  # (a block that has all of an axis does not grow)
            blocks = zip(size, extents, axes, strict=True)
            size = [k if k >= n else plan.blocks[axis] for k, n, axis in blocks]
        if prod(size) <= _MOST_TAPS:
            row = _ROW * size[-1]
        longer = [*size[:-1], -(-row // size[-1]) * size[-1]]
        of_tile = prod(map(min, longer, extents))
        if of_tile > min(_TILE, x.size // count) or 0 in plan.output_shape:
            break  # (each thread has a tile)
        tile = longer
        result, order = plan.result_dtype_of(x.dtype), "F" if x.flags.fnc else "C"
        results.append(np.empty(plan.output_shape, result, order))
        shape = [plan.output_shape[axis] for axis in axes]
        levels.append((size, shape, _operand(results[-1], axes, ones)))
    if results:
        rule = _rule(plan, x.dtype, x.dtype, plan.dtype)
        operands = (_operand(a, axes, levels[0][0], axes) for a in (x, where))
        by_default = threads.rule(plan.num_threads, x.nbytes)
        kernels.reduce_levels(rule, [(tile, extents, None), *levels], *operands, count, by_default)
    return results


def _usable(x):
    native = x.flags.aligned and x.dtype.isnative
    return x if native else x.astype(x.dtype.newbyteorder("="))


def _rule(plan, dtype, into, result):
    """Return the fields of block_rule_t but the last one (kernels/vectors/block_types.h)."""
    nodata = 0 if plan.nodata is None else bits_of(plan.nodata, dtype)
    missing = 0 if plan.missing is None else bits_of(plan.missing, into)
    return (
        CODES[plan.dtype], FUNCTIONS.index(plan.function), CODES[result],
        ROUNDINGS.index(plan.rounding), plan.ignores_nan, plan.nodata is not None, nodata, missing,
        min(plan.need, 2**62), plan.ddof,
    )  # fmt: skip


def fill_rule(plan: Blocks, dtype, filler, large):
    """Return how elements are copied, with a filler for those that are missing.

    `large` is None, or the largest magnitude that is not wild.
    """
    most = 2 ** (8 * dtype.itemsize - 1) - 1
    return (
        CODES[plan.dtype], plan.nodata is not None,
        0 if plan.nodata is None else bits_of(plan.nodata, dtype),
        is_float(plan.dtype) and plan.nodata == 0, bits_of(filler, dtype),
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


def _fold(plan: Blocks, block, x, where, y, counts):
    """Return how rows of a region are added, if it can be folded, or None.

    That is: whole vectors of its rows are combined, and then neighbours. Rows are contiguous. Of
    the sums that wait, entry t of the bytes is how many are added to row t.
    """
    sizes = ITEMSIZE[plan.dtype], 1, ITEMSIZE[plan.result_dtype], 8
    arrays = zip((x, where, y, counts), sizes, strict=True)
    width, elements = block[-1], prod(block)
    if (
        (width > _MOST_WIDTH or elements > _MOST_ELEMENTS or elements // width > _MOST_TAPS)
        or x.shape[-1] // width < _SHORTEST_ROW
        or any(a is not None and a.strides[-1] != size for a, size in arrays)
        or not _has_fold(plan, width)
    ):
        return None
    sums = [0]
    for size, taken in zip(plan.blocks[:-1], block[:-1], strict=True):
        sums = [n for last in _sums(size, taken) for n in (*sums[:-1], sums[-1] + last)]
    return bytes(sums)


def _has_fold(plan, width):
    same, adds = plan.result_dtype == plan.dtype, plan.function in ("mean", "sum")
    small = ITEMSIZE[plan.dtype] <= 2
    if width // (width & -width) > _MOST_ODD:
        return False
    if plan.function in ("max", "min") or plan.dtype == "bool":
        return plan.dtype != "bool"
    if is_float(plan.dtype):
        return adds and same and not small and plan.numerics == "pairwise"
    if plan.result_dtype == "uint64" and plan.dtype.startswith("int"):
        return False  # (sums below 0 saturate)
    longest = plan.result_dtype in ("int64", "uint64")
    return adds and small and (same if plan.function == "mean" else longest)


def _sums(size, taken):
    """Return, for each of the first taps of an axis, how many sums its tree adds to it."""
    if size == 1:
        return [0]
    first = size - 1 if size % 2 else size // 2
    if taken <= first:
        return _sums(first, taken)
    *sums, last = _sums(first, first) + _sums(size - first, taken - first)
    return [*sums, last + 1]


def _order_of_memory(x):
    """Return the axes of an array, the fastest one last. Those of stride 0 come first."""
    return sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]) or -sys.maxsize)


def _in_order_of_memory(plan, block, folded, x, where, y, counts):
    """Return shape, taps and operands of a region for `reduce_blocks`.

    Outputs and taps go through memory in its order. Taps that are added as floats do not: their
    order is that of the axes, so that results do not depend on strides. Rows that are folded are
    added along the first axis first.
    """
    order = list(range(x.ndim)) if folded else _order_of_memory(x)
    outputs = [axis for axis in order if y.shape[axis] > 1] or [0]
    if folded:
        order = [*reversed(order[:-1]), order[-1]]
    elif plan.function in ("var", "std"):
        order = range(x.ndim)
    last = x.ndim - 1 if folded else None  # (rows have it)
    taps = [axis for axis in order if block[axis] > 1 or axis == last] or [0]
    factors, ones = [block[axis] for axis in outputs], [1] * len(outputs)
    read = [_operand(a, outputs, factors, taps) for a in (x, where)]
    written = [_operand(a, outputs, ones) for a in (y, counts)]
    return [y.shape[axis] for axis in outputs], [block[axis] for axis in taps], (*read, *written)


def _operand(array, axes, factors, taps=None):
    """Return an array, its steps from block to block, and from element to element if it is read."""
    if array is None:
        return None
    steps = [array.strides[axis] * k for axis, k in zip(axes, factors, strict=True)]
    taps = taps and [array.strides[axis] for axis in taps]
    return array.view(f"u{array.itemsize}"), steps, taps
