"""Pool and unpool dask arrays, with the results of the array in one piece.

Every chunk owns the windows that start in it. The parts of later chunks that they cover are cut out
on the workers that hold them and sent. Everything in the chunk itself is pooled in place, so a
block costs little more than a call on an array of its size. Each block is computed on one thread,
because dask runs several blocks at once.
"""

from .._api.adaptive import (
    plan_adaptive_avg_pool,
    plan_adaptive_max_pool,
    plan_global_avg_pool,
    plan_global_lp_pool,
    plan_global_max_pool,
)
from .._api.average import plan_avg_pool
from .._api.lp import plan_lp_pool
from .._api.maximum import plan_max_pool
from .._api.minimum import plan_adaptive_min_pool, plan_global_min_pool, plan_min_pool
from .._planning import arguments
from .._planning.dtypes import DTYPES, FLOATS
from .._planning.max_unpool import check_indices
from .._planning.parts import check_has_parts
from .._planning.words import refuse_unknown
from .._plans import make_unpool_plan

try:
    import dask.array as da
except ModuleNotFoundError as missing:
    if missing.name.partition(".")[0] != "dask":
        raise
    raise ImportError('fastpool.dask needs dask: pip install "fastpool[dask]"') from None

from ._graphs import pooled, reduced, unpooled
from ._reductions import block_reduce, check, pyramid

__all__ = [
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "adaptive_min_pool",
    "avg_pool",
    "block_reduce",
    "global_avg_pool",
    "global_lp_pool",
    "global_max_pool",
    "global_min_pool",
    "lp_pool",
    "max_pool",
    "max_unpool",
    "min_pool",
    "pyramid",
]

# The element types that some plans take. Others take all.
_ELEMENTS = dict.fromkeys((plan_lp_pool, plan_global_lp_pool), FLOATS)


def max_pool(x, kernel_shape, *, num_threads=1, **attributes):
    """Take the maximum of every window of a dask array.

    Parameters
    ----------
    x : dask.array.Array
        Input, in any chunks. Along an axis with chunks smaller than a window, some are merged.
    kernel_shape : int or sequence of int
        Taps of the window along each spatial axis, at least 1.
    num_threads : int
        The number of threads for a block, at least 1.
    **attributes
        Those of :func:`fastpool.max_pool`, except `out` and `out_indices`.

    Returns
    -------
    y : dask.array.Array
        The maxima. Each chunk holds those of the windows that start in one chunk of `x`.
    indices : dask.array.Array
        Only with ``return_indices=True``: indices into the whole array, not into its chunks.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.max_pool`, before anything is computed. Also if `x` is no dask array, or
        the sizes of its chunks are unknown.

    See Also
    --------
    fastpool.max_pool : Pool arrays in memory.

    Notes
    -----
    The graph has one task for each block of the result, plus at most ``2**axes - 1`` that cut what
    the block needs out of the chunks after its own. There are none if windows end with their
    chunks. With indices there are two more for each block.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import fastpool.dask
    >>> x = da.from_array(np.arange(100).reshape(10, 10), chunks=(4, 7))
    >>> y, indices = fastpool.dask.max_pool(x, 3, strides=2, layout="HW", return_indices=True)
    >>> y.chunks
    ((2, 2), (4,))
    >>> indices[-1].compute()
    array([82, 84, 86, 88])
    """
    given = {"kernel_shape": kernel_shape, "num_threads": num_threads}
    plan = _planned(max_pool, plan_max_pool, x, attributes, **given)
    return pooled("max_pool", x, plan)


def avg_pool(x, kernel_shape, *, dtype=None, num_threads=1, **attributes):
    """Take the mean of every window of a dask array.

    Parameters
    ----------
    x : dask.array.Array
        Input, in any chunks.
    kernel_shape : int or sequence of int
        Taps of the window along each spatial axis, at least 1.
    dtype : dtype_like, optional
        Type of the result, by default that of `x`.
    num_threads : int
        The number of threads for a block, at least 1.
    **attributes
        Those of :func:`fastpool.avg_pool`, except `out`.

    Returns
    -------
    y : dask.array.Array
        The means, with the bits that the array in one piece would give.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.avg_pool` and :func:`max_pool`, before anything is computed.

    See Also
    --------
    fastpool.avg_pool : Pool arrays in memory; it documents the rules and their sources.
    max_pool : It describes chunks and graph.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import fastpool.dask
    >>> x = da.from_array(np.arange(10.0), chunks=4)
    >>> fastpool.dask.avg_pool(x, 3, strides=3, pads=1, layout="W").compute()
    array([0.5, 3. , 6. , 8.5])
    """
    given = {"kernel_shape": kernel_shape, "result_dtype": dtype, "num_threads": num_threads}
    plan = _planned(avg_pool, plan_avg_pool, x, attributes, **given)
    return pooled("avg_pool", x, plan)


def global_avg_pool(x, *, keepdims=True, dtype=None, num_threads=1, **attributes):
    """Take the mean of all spatial axes of a dask array.

    Parameters
    ----------
    x : dask.array.Array
        Input, in any chunks. Chunks along the spatial axes are merged, so memory must hold all
        elements of one chunk's batches and channels.
    keepdims, dtype, **attributes
        Those of :func:`fastpool.global_avg_pool`, except `out`.
    num_threads : int
        The number of threads for a block, at least 1.

    Returns
    -------
    y : dask.array.Array
        The means, with the bits that the array in one piece would give.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.global_avg_pool` and :func:`max_pool`, before anything is computed.

    Examples
    --------
    >>> import dask.array as da
    >>> import fastpool.dask
    >>> x = da.arange(24, chunks=5).reshape(2, 3, 4)
    >>> fastpool.dask.global_avg_pool(x, layout="CHW", keepdims=False, dtype="float64").compute()
    array([ 5.5, 17.5])
    """
    given = {"result_dtype": dtype, "num_threads": num_threads}
    plan = _planned(global_avg_pool, plan_global_avg_pool, x, attributes, **given)
    return reduced("global_avg_pool", x, plan, keepdims)


def lp_pool(x, kernel_shape, p=2, *, num_threads=1, **attributes):
    """Take the Lp norm of every window of a dask array.

    Parameters
    ----------
    x : dask.array.Array
        Input, in any chunks.
    kernel_shape : int or sequence of int
        Taps of the window along each spatial axis, at least 1.
    p : float
        The order of the norm, above 0.
    num_threads : int
        The number of threads for a block, at least 1.
    **attributes
        Those of :func:`fastpool.lp_pool`, except `out`.

    Returns
    -------
    y : dask.array.Array
        The norms, with the bits that the array in one piece would give.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.lp_pool` and :func:`max_pool`, before anything is computed.

    Examples
    --------
    >>> import dask.array as da
    >>> import fastpool.dask
    >>> x = da.from_array([3.0, 4.0, -12.0, 5.0], chunks=3)
    >>> fastpool.dask.lp_pool(x, 2, strides=2, layout="W").compute()
    array([ 5., 13.])
    """
    given = {"kernel_shape": kernel_shape, "p": p, "num_threads": num_threads}
    plan = _planned(lp_pool, plan_lp_pool, x, attributes, **given)
    return pooled("lp_pool", x, plan)


def global_lp_pool(x, p=2, *, keepdims=True, num_threads=1, **attributes):
    """Take the Lp norm of all spatial axes of a dask array.

    Parameters
    ----------
    x : dask.array.Array
        Input, in chunks as for :func:`global_avg_pool`.
    p, keepdims, **attributes
        Those of :func:`fastpool.global_lp_pool`, except `out`.
    num_threads : int
        The number of threads for a block, at least 1.

    Returns
    -------
    y : dask.array.Array
        The norms.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.global_lp_pool` and :func:`max_pool`, before anything is computed.

    Examples
    --------
    >>> import dask.array as da
    >>> import fastpool.dask
    >>> x = da.from_array([[3.0, -4.0], [8.0, 15.0]], chunks=1)
    >>> fastpool.dask.global_lp_pool(x, layout="CW", keepdims=False).compute()
    array([ 5., 17.])
    """
    given = {"p": p, "num_threads": num_threads}
    plan = _planned(global_lp_pool, plan_global_lp_pool, x, attributes, **given)
    return reduced("global_lp_pool", x, plan, keepdims)


def global_max_pool(x, *, keepdims=True, num_threads=1, **attributes):
    """Take the maximum of all spatial axes of a dask array.

    Parameters
    ----------
    x : dask.array.Array
        Input, in chunks as for :func:`global_avg_pool`.
    keepdims, **attributes
        Those of :func:`fastpool.global_max_pool`, except `out` and `out_indices`.
    num_threads : int
        The number of threads for a block, at least 1.

    Returns
    -------
    y : dask.array.Array
        The maxima.
    indices : dask.array.Array
        Only with ``return_indices=True``: indices into the whole array.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.global_max_pool` and :func:`max_pool`, before anything is computed.

    Examples
    --------
    >>> import dask.array as da
    >>> import fastpool.dask
    >>> x = da.arange(24, chunks=5).reshape(2, 3, 4)
    >>> fastpool.dask.global_max_pool(x, layout="CHW", keepdims=False).compute()
    array([11, 23])
    """
    plan = _planned(global_max_pool, plan_global_max_pool, x, attributes, num_threads=num_threads)
    return reduced("global_max_pool", x, plan, keepdims)


def adaptive_avg_pool(x, output_size, *, dtype=None, num_threads=1, **attributes):
    """Divide each spatial axis of a dask array into a number of windows and take their means.

    Parameters
    ----------
    x : dask.array.Array
        Input, in any chunks.
    output_size : int or sequence of (int or None)
        Windows along every spatial axis, or along each. None is the extent of that axis.
    dtype, **attributes
        Those of :func:`fastpool.adaptive_avg_pool`, except `out`.
    num_threads : int
        The number of threads for a block, at least 1.

    Returns
    -------
    y : dask.array.Array
        The means. Each chunk holds those of the windows that start in one chunk of `x`.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.adaptive_avg_pool` and :func:`max_pool`, before anything is computed.

    Examples
    --------
    >>> import dask.array as da
    >>> import fastpool.dask
    >>> fastpool.dask.adaptive_avg_pool(da.arange(7.0, chunks=4), 3, layout="W").compute()
    array([1., 3., 5.])
    """
    given = {"output_size": output_size, "result_dtype": dtype, "num_threads": num_threads}
    plan = _planned(adaptive_avg_pool, plan_adaptive_avg_pool, x, attributes, **given)
    return pooled("adaptive_avg_pool", x, plan)


def adaptive_max_pool(x, output_size, *, num_threads=1, **attributes):
    """Divide each spatial axis of a dask array into a number of windows and take their maxima.

    Parameters
    ----------
    x : dask.array.Array
        Input, in any chunks.
    output_size : int or sequence of (int or None)
        Windows along every spatial axis, or along each. None is the extent of that axis.
    num_threads : int
        The number of threads for a block, at least 1.
    **attributes
        Those of :func:`fastpool.adaptive_max_pool`, except `out` and `out_indices`.

    Returns
    -------
    y : dask.array.Array
        The maxima. Each chunk holds those of the windows that start in one chunk of `x`.
    indices : dask.array.Array
        Only with ``return_indices=True``: indices into the whole array.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.adaptive_max_pool` and :func:`max_pool`, before anything is computed.

    Examples
    --------
    >>> import dask.array as da
    >>> import fastpool.dask
    >>> fastpool.dask.adaptive_max_pool(da.arange(8, chunks=3), 2, layout="W").compute()
    array([3, 7])
    """
    given = {"output_size": output_size, "num_threads": num_threads}
    plan = _planned(adaptive_max_pool, plan_adaptive_max_pool, x, attributes, **given)
    return pooled("adaptive_max_pool", x, plan)


def min_pool(x, kernel_shape, *, num_threads=1, **attributes):
    """Take the minimum of every window of a dask array.

    Parameters
    ----------
    x, kernel_shape, num_threads, **attributes
        As in :func:`max_pool`.

    Returns
    -------
    y : dask.array.Array
        The minima. Each chunk holds those of the windows that start in one chunk of `x`.
    indices : dask.array.Array
        Only with ``return_indices=True``: indices into the whole array, not into its chunks.

    Raises
    ------
    TypeError, ValueError
        As :func:`max_pool`, before anything is computed.

    Examples
    --------
    >>> import dask.array as da
    >>> import fastpool.dask
    >>> fastpool.dask.min_pool(da.arange(8, chunks=3), 3, strides=2, layout="W").compute()
    array([0, 2, 4])
    """
    given = {"kernel_shape": kernel_shape, "num_threads": num_threads}
    plan = _planned(min_pool, plan_min_pool, x, attributes, **given)
    return pooled("min_pool", x, plan)


def global_min_pool(x, *, keepdims=True, num_threads=1, **attributes):
    """Take the minimum of all spatial axes of a dask array.

    Parameters, results and errors are those of :func:`global_max_pool`.

    Examples
    --------
    >>> import dask.array as da
    >>> import fastpool.dask
    >>> x = da.arange(24, chunks=5).reshape(2, 3, 4)
    >>> fastpool.dask.global_min_pool(x, layout="CHW", keepdims=False).compute()
    array([ 0, 12])
    """
    plan = _planned(global_min_pool, plan_global_min_pool, x, attributes, num_threads=num_threads)
    return reduced("global_min_pool", x, plan, keepdims)


def adaptive_min_pool(x, output_size, *, num_threads=1, **attributes):
    """Divide each spatial axis of a dask array into a number of windows and take their minima.

    Parameters, results and errors are those of :func:`adaptive_max_pool`.

    Examples
    --------
    >>> import dask.array as da
    >>> import fastpool.dask
    >>> fastpool.dask.adaptive_min_pool(da.arange(8, chunks=3), 2, layout="W").compute()
    array([0, 4])
    """
    given = {"output_size": output_size, "num_threads": num_threads}
    plan = _planned(adaptive_min_pool, plan_adaptive_min_pool, x, attributes, **given)
    return pooled("adaptive_min_pool", x, plan)


def max_unpool(x, indices, kernel_shape, *, num_threads=1, **attributes):
    """Put maxima back where they were in a dask array; everything else is zero.

    Parameters
    ----------
    x : dask.array.Array
        The values, in any chunks.
    indices : array_like of int64 or int32
        The place of each value, as in :func:`fastpool.max_unpool`. Along an axis in several chunks
        it must be in the window of its value, which `kernel_shape`, `strides` and `pads` define.
        Along an axis in one chunk it may be anywhere.
    kernel_shape : int or sequence of int
        That of the pooling. For a pooling with `dilations`, the extent that a window covers.
    num_threads : int
        The number of threads for a block, at least 1.
    **attributes
        Those of :func:`fastpool.max_unpool`, except `out`.

    Returns
    -------
    y : dask.array.Array
        The result. Each chunk goes from the first window of one chunk of `x` to that of the next.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.max_unpool`. Bad indices, also places outside a value's window, raise
        when they are computed.

    See Also
    --------
    fastpool.max_unpool : Unpool arrays in memory.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import fastpool.dask
    >>> x = da.from_array(np.arange(36).reshape(6, 6) % 7, chunks=3)
    >>> y, indices = fastpool.dask.max_pool(x, 2, strides=2, layout="HW", return_indices=True)
    >>> fastpool.dask.max_unpool(y, indices, 2, strides=2, layout="HW")[:2].compute()
    array([[0, 0, 0, 3, 0, 5],
           [6, 0, 0, 0, 0, 0]])
    """
    check(x, "x")
    if indices is None:  # dask would make an array of it
        raise TypeError("indices: expected an array, got None")
    if not isinstance(indices, da.Array):
        indices = da.from_array(indices, x.chunks)
    check(indices, "indices")
    check_indices(indices, x.shape)
    plan = make_unpool_plan(x.shape, kernel_shape, num_threads=num_threads, **attributes)
    return unpooled(x, indices, plan)


def _planned(function, make, x, attributes, num_threads, **given):
    """Return the plan that `make` returns for the array in one piece.

    `given` are arguments of `function`. Refuse `attributes` that it does not take.
    """
    check(x, "x")
    given["num_threads"] = 1 if num_threads is None else num_threads
    refuse_unknown(function, make, attributes, given)
    dtype = arguments.dtype_name(x.dtype, "x", _ELEMENTS.get(make, DTYPES))
    try:
        plan = make(x.shape, dtype, **given, **attributes)
    except (TypeError, ValueError) as error:  # here, `dtype` is the type of the result
        raise type(error)(str(error).removeprefix("result_")) from None
    check_has_parts(plan)
    return plan
