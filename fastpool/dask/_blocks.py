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
from .._planning.arguments import shown


def block_reduce(x, block_size, func, *, num_threads=1, **attributes):
    """Reduce every block of a dask array to one element.

    Parameters
    ----------
    x : dask.array.Array
        Input, in any chunks. Along axes with blocks of more than one element, chunks are cut anew
        where blocks end.
    block_size : int or sequence of int
        Elements of a block along every axis, or along each.
    func : str
        The statistic, as in :func:`fastpool.block_reduce`.
    num_threads : int
        The number of threads for a chunk, at least 1.
    **attributes
        Those of :func:`fastpool.block_reduce`, except `out`. `where` may be a dask array.

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
    where = attributes.pop("where", None)
    attributes["num_threads"] = 1 if num_threads is None else num_threads
    # An array without elements finds bad arguments, and the types of results.
    metas = blocks.block_reduce(
        np.empty((0,) * x.ndim, x.dtype),
        block_size,
        func,
        where=None if where is None else np.empty((0,) * x.ndim, _mask_dtype(where)),
        **attributes,
    )
    sizes = list(block_size) if arguments.is_sequence(block_size) else [block_size] * x.ndim
    sizes = [operator.index(size) for size in sizes]
    if where is not None:
        try:
            where = da.broadcast_to(where, x.shape)
        except ValueError:
            raise ValueError(
                f"where: expected a shape that broadcasts to {x.shape}, got {where.shape}"
            ) from None
    edge = attributes.get("edge")
    for axis, size in enumerate(sizes):
        rest = x.shape[axis] % size
        if rest and edge == "exact":
            raise ValueError(
                f"block_size[{axis}]: {size} does not divide the extent {x.shape[axis]} of x, and "
                f'edge is "exact"'
            )
        if rest and edge == "trim":
            cut = (*[slice(None)] * axis, slice(x.shape[axis] - rest))
            x, where = x[cut], None if where is None else where[cut]
    chunks = tuple(map(_whole_blocks, x.chunks, sizes))
    x = x.rechunk(chunks)
    masks = () if where is None else (where.rechunk(chunks),)
    outputs = tuple(
        tuple(-(-length // size) for length in lengths)
        for lengths, size in zip(chunks, sizes, strict=True)
    )
    both = isinstance(metas, tuple)
    reduce = partial(_chunk, block_size=sizes, func=func, **attributes)
    y = da.map_blocks(reduce, x, *masks, chunks=outputs, meta=metas[0] if both else metas)
    if not both:
        return y
    return tuple(y.map_blocks(operator.getitem, i, meta=meta) for i, meta in enumerate(metas))


def pyramid(x, levels, factor=2, func="mean", *, num_threads=1, **attributes):
    """Reduce a dask array to smaller and smaller levels, each from `x` itself.

    Parameters
    ----------
    x : dask.array.Array
        Input, in any chunks.
    levels : int
        The number of levels, 1 to 64, without `x`.
    factor : int or sequence of int
        Level l has blocks of ``factor ** l`` elements, along every axis or along each.
    func, num_threads, **attributes
        As in :func:`block_reduce`, except `return_counts`.

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
    levels = arguments.as_count(levels, "levels", 1, most=64)
    if arguments.is_sequence(factor):
        expected = f"an int or {x.ndim} ints, one per axis"
        factors = arguments.as_counts(factor, "factor", 1, (x.ndim,), expected)
    else:
        expected = "an int or a sequence of ints"
        factors = (arguments.as_count(factor, "factor", 1, expected),) * x.ndim
    if set(factors) == {1}:
        raise ValueError(f"factor: expected more than 1 along an axis, got {shown(factor)}")
    if "return_counts" in attributes:
        raise TypeError("pyramid() got an unexpected keyword argument 'return_counts'")
    return [
        block_reduce(x, [f**level for f in factors], func, num_threads=num_threads, **attributes)
        for level in range(1, levels + 1)
    ]


def check(x, name):
    """Raise an error if `x` is no dask array, or has chunks of unknown sizes."""
    if not isinstance(x, da.Array):
        raise TypeError(f"{name}: expected a dask.array.Array, got {type(x).__name__}")
    if any(map(isnan, x.shape)):
        raise ValueError(
            f"{name}: sizes of chunks are unknown, {x.chunks}; its compute_chunk_sizes() finds them"
        )


def _mask_dtype(where):
    """Return the type of the elements of `where`, which is a NumPy array or one of dask."""
    if not isinstance(where, (np.ndarray, np.bool_, da.Array)):
        raise TypeError(
            f"where: expected an array of bool of NumPy or dask, got {type(where).__name__}"
        )
    return where.dtype


def _whole_blocks(lengths, size):
    """Return chunks that end with a block: each reaches to the end of a block that it began."""
    if size == 1:
        return lengths
    extent = sum(lengths)
    ends = {min(-(-end // size) * size, extent) for end in accumulate(lengths)}
    return tuple(stop - start for start, stop in pairwise(sorted({0, *ends}))) or (0,)


def _chunk(x, where=None, **attributes):
    return blocks.block_reduce(x, where=where, **attributes)
