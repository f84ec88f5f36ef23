"""Reduce the blocks of dask arrays, with the results of the array in one piece.

Chunks are cut anew where blocks end. Then every chunk is reduced alone.
"""

import operator
from functools import partial
from itertools import accumulate, pairwise
from math import isnan

import dask.array as da
import numpy as np

from .._api import blocks
from .._planning import arguments
from .._planning.blocks import check_mask, resolve
from .._planning.blocks import levels as block_sizes


def block_reduce(
    x,
    block_size,
    func,
    *,
    edge="keep",
    dtype=None,
    rounding="half_even",
    ddof=0,
    numerics="pairwise",
    nan="propagate",
    nodata=None,
    where=None,
    min_count=None,
    return_counts=False,
    num_threads=1,
):
    """Reduce every block of a dask array to one element.

    Parameters
    ----------
    x : dask.array.Array
        Input, in any chunks. Along axes with blocks of more than one element, chunks are cut anew
        where blocks end.
    where : numpy.ndarray or dask.array.Array of bool, optional
        Elements where this is False are missing. It is broadcast to the shape of `x`.
    block_size, func, edge, dtype, rounding, ddof, numerics, nan, nodata, min_count, return_counts
        As in :func:`fastpool.block_reduce`.
    num_threads : int
        The number of threads for a chunk, at least 1.

    Returns
    -------
    y : dask.array.Array
        The results. Each chunk holds those of one chunk of `x`, cut anew.
    counts : dask.array.Array
        Only with ``return_counts=True``: how many elements of each block are there.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.block_reduce`, before anything is computed. Also if `x` is no dask array,
        or the sizes of its chunks are unknown.

    See Also
    --------
    fastpool.block_reduce : Reduce arrays in memory; it documents the rules.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import fastpool.dask
    >>> x = da.from_array(np.arange(36).reshape(6, 6), chunks=(4, 5))
    >>> y = fastpool.dask.block_reduce(x, 3, "max")
    >>> y.chunks
    ((2,), (2,))
    >>> y.compute()
    array([[14, 17],
           [32, 35]])
    """
    check(x, "x")
    num_threads = 1 if num_threads is None else num_threads
    options = {
        "rounding": rounding, "ddof": ddof, "numerics": numerics, "nan": nan, "nodata": nodata,
        "min_count": min_count, "num_threads": num_threads,
    }  # fmt: skip
    plan = resolve(
        x.shape, arguments.dtype_name(x.dtype, "x"), block_size, func, edge=edge,
        result_dtype=dtype, masked=where is not None, **options,
    )  # fmt: skip
    chunks = [
        whole_blocks(lengths, size, taken)
        for lengths, size, taken in zip(x.chunks, plan.blocks, plan.taken, strict=True)
    ]
    arrays = [x] if where is None else [x, _mask(where, x.shape)]
    arrays = [array[plan.kept].rechunk(chunks) for array in arrays]
    counts = tuple(
        tuple(-(-length // size) for length in lengths)
        for lengths, size in zip(chunks, plan.blocks, strict=True)
    )
    kinds = plan.result_dtype_of(x.dtype), np.int64
    metas = [np.empty((0,) * x.ndim, kind) for kind in kinds]
    reduce = partial(
        _chunk, block_size=plan.blocks, func=func, dtype=dtype, return_counts=return_counts,
        **options,
    )  # fmt: skip
    y = da.map_blocks(reduce, *arrays, chunks=counts, meta=metas[0])
    if not return_counts:
        return y
    return tuple(y.map_blocks(operator.getitem, i, meta=meta) for i, meta in enumerate(metas))


def pyramid(
    x,
    levels,
    factor=2,
    func="mean",
    *,
    edge="keep",
    dtype=None,
    rounding="half_even",
    ddof=0,
    numerics="pairwise",
    nan="propagate",
    nodata=None,
    where=None,
    min_count=None,
    num_threads=1,
):
    """Reduce a dask array to smaller and smaller levels, each from `x` itself.

    Parameters
    ----------
    x : dask.array.Array
        Input, in any chunks.
    levels : int
        The number of levels, 1 to 64, without `x`.
    factor : int or sequence of int
        Level l has blocks of ``factor ** l`` elements, along every axis or along each.
    func, edge, dtype, rounding, ddof, numerics, nan, nodata, where, min_count, num_threads
        As in :func:`block_reduce`.

    Returns
    -------
    levels : list of dask.array.Array
        The levels. Compute them together, as ``dask.compute(*levels)``, to make each chunk of `x`
        only once.

    Raises
    ------
    TypeError, ValueError
        As :func:`block_reduce`.

    Examples
    --------
    >>> import dask.array as da
    >>> import fastpool.dask
    >>> x = da.arange(10, chunks=4, dtype="float32")
    >>> [level.compute().tolist() for level in fastpool.dask.pyramid(x, 2)]
    [[0.5, 2.5, 4.5, 6.5, 8.5], [1.5, 5.5, 8.5]]
    """
    check(x, "x")
    options = {
        "edge": edge, "dtype": dtype, "rounding": rounding, "ddof": ddof, "numerics": numerics,
        "nan": nan, "nodata": nodata, "where": where, "min_count": min_count,
        "num_threads": num_threads,
    }  # fmt: skip
    sizes = block_sizes(levels, factor, x.shape)
    return [block_reduce(x, block_size, func, **options) for block_size in sizes]


def check(x, name):
    """Raise an error if `x` is no dask array, or has chunks of unknown sizes."""
    if not isinstance(x, da.Array):
        raise TypeError(f"{name}: expected a dask.array.Array, got {type(x).__name__}")
    if any(map(isnan, x.shape)):
        raise ValueError(
            f"{name}: sizes of chunks are unknown, {x.chunks}; its compute_chunk_sizes() finds them"
        )


def _mask(where, shape):
    """Return `where` as a dask array of bool of a shape."""
    where = where if isinstance(where, da.Array) else np.asarray(where)
    check_mask(where, shape)
    # dask 2026.8 does not broadcast empty chunks, or to an array without elements.
    if 0 in shape:
        return da.zeros(shape, dtype=bool)
    if isinstance(where, da.Array):
        where = where.rechunk({axis: 1 for axis, size in enumerate(where.shape) if size == 1})
    return da.broadcast_to(where, shape)


def whole_blocks(lengths, size, taken):
    """Return chunks up to `taken` that end with a block: each takes all of a block it begins."""
    if size == 1:
        return lengths
    ends = {min(-(-end // size) * size, taken) for end in accumulate(lengths)}
    return tuple(stop - start for start, stop in pairwise(sorted({0, *ends}))) or (0,)


def _chunk(x, where=None, **attributes):
    return blocks.block_reduce(x, where=where, **attributes)
