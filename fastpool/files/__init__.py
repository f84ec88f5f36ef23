"""Pool arrays in .npy files that need not fit into memory, and write pyramids of any files.

Input and output are mapped tile by tile. A tile's pages are released with its mapping, so never
more pages are resident than one tile has.
"""

import os
from contextlib import ExitStack
from functools import partial
from math import prod

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
from .._planning.parts import grid
from .._planning.values import as_count, shown
from .._planning.words import refuse_unknown
from ._npy import existing, new
from ._pyramid import MAX_BYTES, pyramid
from ._replacing import apart as apart
from ._replacing import open_regular as open_regular
from ._replacing import replacing

__all__ = [
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "adaptive_min_pool",
    "avg_pool",
    "global_avg_pool",
    "global_lp_pool",
    "global_max_pool",
    "global_min_pool",
    "lp_pool",
    "max_pool",
    "min_pool",
    "pyramid",
]

# The element types that some plans take. Others take all.
_ELEMENTS = dict.fromkeys((plan_lp_pool, plan_global_lp_pool), FLOATS)


def max_pool(
    source,
    target,
    kernel_shape,
    *,
    indices=None,
    max_bytes=MAX_BYTES,
    progress=None,
    **attributes,
):
    """Pool the array in one .npy file into another .npy file.

    Parameters
    ----------
    source : str or os.PathLike
        File with the input. It is never written.
    target : str or os.PathLike
        File for the maxima. An existing file is replaced when everything is done, by a file with
        its owner, group and permissions. After an error it is unchanged. It may be `source`. A
        symbolic link stays, and the file that it names is replaced.
    kernel_shape : int or sequence of int
        Taps of the window along each spatial axis, at least 1.
    indices : str or os.PathLike, optional
        File for the index of each maximum. Either both it and `target` are replaced, or neither.
    max_bytes : int
        Memory for a tile: its input and its results. Only a single window can exceed it, and input
        that must be copied (of the other byte order, or in Fortran order) can take up to twice as
        much.
    progress : callable, optional
        Called with the number of outputs done and the number of all, first and after each tile.
    **attributes
        Those of :func:`fastpool.max_pool`, except `return_indices`, `out` and `out_indices`.

    Returns
    -------
    plan : MaxPoolPlan
        The plan of the whole array. Its `output_shape` is the shape of the written array.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.max_pool`. Also if `source` holds no array, if `target` and `indices` are
        names of one file, or if one of them is a folder, a pipe, a socket or a device.
    OSError
        A file cannot be read or written, or there is no room for the results. Room is checked
        before anything is computed.

    See Also
    --------
    fastpool.max_pool : Pool arrays in memory.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import fastpool.files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.arange(24).reshape(4, 6))
    ...     plan = fastpool.files.max_pool(
    ...         f"{folder}/x.npy", f"{folder}/y.npy", 2, strides=2, layout="HW", max_bytes=100
    ...     )
    ...     np.load(f"{folder}/y.npy")
    array([[ 7,  9, 11],
           [19, 21, 23]])
    """
    planned = _with_indices(max_pool, plan_max_pool, indices, attributes, kernel_shape=kernel_shape)
    return _pool(planned, source, target, indices, max_bytes, progress)


def min_pool(
    source,
    target,
    kernel_shape,
    *,
    indices=None,
    max_bytes=MAX_BYTES,
    progress=None,
    **attributes,
):
    """Take the minimum of every window of the array in one .npy file into another .npy file.

    Parameters
    ----------
    source, target, kernel_shape, indices, max_bytes, progress, **attributes
        As in :func:`max_pool`. `target` gets the minima, and `indices` the index of each.

    Returns
    -------
    plan : MinPoolPlan
        The plan of the whole array. Its `output_shape` is the shape of the written array.

    Raises
    ------
    TypeError, ValueError, OSError
        As :func:`max_pool`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import fastpool.files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = f"{folder}/x.npy", f"{folder}/y.npy"
    ...     np.save(names[0], np.arange(24).reshape(4, 6))
    ...     plan = fastpool.files.min_pool(*names, 2, strides=2, layout="HW")
    ...     np.load(names[1])
    array([[ 0,  2,  4],
           [12, 14, 16]])
    """
    planned = _with_indices(min_pool, plan_min_pool, indices, attributes, kernel_shape=kernel_shape)
    return _pool(planned, source, target, indices, max_bytes, progress)


def avg_pool(
    source,
    target,
    kernel_shape,
    *,
    dtype=None,
    max_bytes=MAX_BYTES,
    progress=None,
    **attributes,
):
    """Take the mean of every window of the array in one .npy file into another .npy file.

    Parameters
    ----------
    source, target, max_bytes, progress
        As in :func:`max_pool`.
    kernel_shape : int or sequence of int
        Taps of the window along each spatial axis, at least 1.
    dtype : dtype_like, optional
        Type of the result, by default that of the input.
    **attributes
        Those of :func:`fastpool.avg_pool`, except `out`.

    Returns
    -------
    plan : AvgPoolPlan
        The plan of the whole array. Its `output_shape` is the shape of the written array.

    Raises
    ------
    TypeError, ValueError, OSError
        As :func:`fastpool.avg_pool` and :func:`max_pool`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import fastpool.files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.arange(24.0).reshape(4, 6))
    ...     plan = fastpool.files.avg_pool(
    ...         f"{folder}/x.npy", f"{folder}/y.npy", 2, strides=2, layout="HW", max_bytes=100
    ...     )
    ...     np.load(f"{folder}/y.npy")
    array([[ 3.5,  5.5,  7.5],
           [15.5, 17.5, 19.5]])
    """
    given = {"kernel_shape": kernel_shape, "result_dtype": dtype}
    planned = _planned(avg_pool, plan_avg_pool, attributes, **given)
    return _pool(planned, source, target, None, max_bytes, progress)


def global_avg_pool(
    source,
    target,
    *,
    keepdims=True,
    dtype=None,
    max_bytes=MAX_BYTES,
    progress=None,
    **attributes,
):
    """Take the mean of all spatial axes of the array in one .npy file into another .npy file.

    Parameters
    ----------
    source, target, max_bytes, progress
        As in :func:`max_pool`. One window is a whole plane, and can exceed `max_bytes`.
    keepdims, dtype, **attributes
        Those of :func:`fastpool.global_avg_pool`, except `out`.

    Returns
    -------
    plan : AvgPoolPlan
        The plan of the whole array.

    Raises
    ------
    TypeError, ValueError, OSError
        As :func:`fastpool.global_avg_pool` and :func:`max_pool`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import fastpool.files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.arange(24.0).reshape(2, 3, 4))
    ...     names = f"{folder}/x.npy", f"{folder}/y.npy"
    ...     plan = fastpool.files.global_avg_pool(*names, layout="CHW", keepdims=False)
    ...     np.load(f"{folder}/y.npy")
    array([ 5.5, 17.5])
    """
    planned = _planned(global_avg_pool, plan_global_avg_pool, attributes, result_dtype=dtype)
    return _pool(planned, source, target, None, max_bytes, progress, keepdims)


def lp_pool(source, target, kernel_shape, p=2, *, max_bytes=MAX_BYTES, progress=None, **attributes):
    """Take the Lp norm of every window of the array in one .npy file into another .npy file.

    Parameters
    ----------
    source, target, max_bytes, progress
        As in :func:`max_pool`.
    kernel_shape : int or sequence of int
        Taps of the window along each spatial axis, at least 1.
    p, **attributes
        Those of :func:`fastpool.lp_pool`, except `out`.

    Returns
    -------
    plan : LpPoolPlan
        The plan of the whole array. Its `output_shape` is the shape of the written array.

    Raises
    ------
    TypeError, ValueError, OSError
        As :func:`fastpool.lp_pool` and :func:`max_pool`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import fastpool.files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.array([3.0, 4.0, -12.0, 5.0]))
    ...     names = f"{folder}/x.npy", f"{folder}/y.npy"
    ...     plan = fastpool.files.lp_pool(*names, 2, strides=2, layout="W")
    ...     np.load(f"{folder}/y.npy")
    array([ 5., 13.])
    """
    planned = _planned(lp_pool, plan_lp_pool, attributes, kernel_shape=kernel_shape, p=p)
    return _pool(planned, source, target, None, max_bytes, progress)


def global_lp_pool(
    source, target, p=2, *, keepdims=True, max_bytes=MAX_BYTES, progress=None, **attributes
):
    """Take the Lp norm of all spatial axes of the array in one .npy file into another .npy file.

    Parameters
    ----------
    source, target, max_bytes, progress
        As in :func:`max_pool`. One window is a whole plane, and can exceed `max_bytes`.
    p, keepdims, **attributes
        Those of :func:`fastpool.global_lp_pool`, except `out`.

    Returns
    -------
    plan : LpPoolPlan
        The plan of the whole array.

    Raises
    ------
    TypeError, ValueError, OSError
        As :func:`fastpool.global_lp_pool` and :func:`max_pool`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import fastpool.files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = f"{folder}/x.npy", f"{folder}/y.npy"
    ...     np.save(names[0], np.array([[3.0, 0.0], [0.0, 4.0]]))
    ...     plan = fastpool.files.global_lp_pool(*names, layout="HW")
    ...     np.load(names[1])
    array([[5.]])
    """
    planned = _planned(global_lp_pool, plan_global_lp_pool, attributes, p=p)
    return _pool(planned, source, target, None, max_bytes, progress, keepdims)


def global_max_pool(
    source,
    target,
    *,
    keepdims=True,
    indices=None,
    max_bytes=MAX_BYTES,
    progress=None,
    **attributes,
):
    """Take the maximum of all spatial axes of the array in one .npy file into another .npy file.

    Parameters
    ----------
    source, target, indices, max_bytes, progress
        As in :func:`max_pool`. One window is a whole plane, and can exceed `max_bytes`.
    keepdims, **attributes
        Those of :func:`fastpool.global_max_pool`, except `return_indices`, `out` and `out_indices`.

    Returns
    -------
    plan : MaxPoolPlan
        The plan of the whole array.

    Raises
    ------
    TypeError, ValueError, OSError
        As :func:`fastpool.global_max_pool` and :func:`max_pool`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import fastpool.files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = f"{folder}/x.npy", f"{folder}/y.npy"
    ...     np.save(names[0], np.arange(24).reshape(2, 3, 4))
    ...     plan = fastpool.files.global_max_pool(*names, layout="CHW", keepdims=False)
    ...     np.load(names[1])
    array([11, 23])
    """
    planned = _with_indices(global_max_pool, plan_global_max_pool, indices, attributes)
    return _pool(planned, source, target, indices, max_bytes, progress, keepdims)


def global_min_pool(
    source,
    target,
    *,
    keepdims=True,
    indices=None,
    max_bytes=MAX_BYTES,
    progress=None,
    **attributes,
):
    """Take the minimum of all spatial axes of the array in one .npy file into another .npy file.

    Parameters and errors are those of :func:`global_max_pool`. Returns the `MinPoolPlan` of the
    whole array.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import fastpool.files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = f"{folder}/x.npy", f"{folder}/y.npy"
    ...     np.save(names[0], np.arange(24).reshape(2, 3, 4))
    ...     plan = fastpool.files.global_min_pool(*names, layout="CHW", keepdims=False)
    ...     np.load(names[1])
    array([ 0, 12])
    """
    planned = _with_indices(global_min_pool, plan_global_min_pool, indices, attributes)
    return _pool(planned, source, target, indices, max_bytes, progress, keepdims)


def adaptive_avg_pool(
    source,
    target,
    output_size,
    *,
    dtype=None,
    max_bytes=MAX_BYTES,
    progress=None,
    **attributes,
):
    """Take the means of a given number of windows along each spatial axis, from file to file.

    Parameters
    ----------
    source, target, max_bytes, progress
        As in :func:`max_pool`.
    output_size, dtype, **attributes
        Those of :func:`fastpool.adaptive_avg_pool`, except `out`.

    Returns
    -------
    plan : AvgPoolPlan
        The plan of the whole array. Its `output_shape` is the shape of the written array.

    Raises
    ------
    TypeError, ValueError, OSError
        As :func:`fastpool.adaptive_avg_pool` and :func:`max_pool`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import fastpool.files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = f"{folder}/x.npy", f"{folder}/y.npy"
    ...     np.save(names[0], np.arange(24.0).reshape(4, 6))
    ...     plan = fastpool.files.adaptive_avg_pool(*names, 2, layout="HW")
    ...     np.load(names[1])
    array([[ 4.,  7.],
           [16., 19.]])
    """
    given = {"output_size": output_size, "result_dtype": dtype}
    planned = _planned(adaptive_avg_pool, plan_adaptive_avg_pool, attributes, **given)
    return _pool(planned, source, target, None, max_bytes, progress)


def adaptive_max_pool(
    source,
    target,
    output_size,
    *,
    indices=None,
    max_bytes=MAX_BYTES,
    progress=None,
    **attributes,
):
    """Take the maxima of a given number of windows along each spatial axis, from file to file.

    Parameters
    ----------
    source, target, indices, max_bytes, progress
        As in :func:`max_pool`.
    output_size, **attributes
        Those of :func:`fastpool.adaptive_max_pool`, except `return_indices`, `out` and
        `out_indices`.

    Returns
    -------
    plan : MaxPoolPlan
        The plan of the whole array. Its `output_shape` is the shape of the written array.

    Raises
    ------
    TypeError, ValueError, OSError
        As :func:`fastpool.adaptive_max_pool` and :func:`max_pool`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import fastpool.files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = f"{folder}/x.npy", f"{folder}/y.npy"
    ...     np.save(names[0], np.arange(24).reshape(4, 6))
    ...     plan = fastpool.files.adaptive_max_pool(*names, 2, layout="HW")
    ...     np.load(names[1])
    array([[ 8, 11],
           [20, 23]])
    """
    planner = adaptive_max_pool, plan_adaptive_max_pool
    planned = _with_indices(*planner, indices, attributes, output_size=output_size)
    return _pool(planned, source, target, indices, max_bytes, progress)


def adaptive_min_pool(
    source,
    target,
    output_size,
    *,
    indices=None,
    max_bytes=MAX_BYTES,
    progress=None,
    **attributes,
):
    """Take the minima of a given number of windows along each spatial axis, from file to file.

    Parameters and errors are those of :func:`adaptive_max_pool`. Returns the `MinPoolPlan` of the
    whole array.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import fastpool.files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = f"{folder}/x.npy", f"{folder}/y.npy"
    ...     np.save(names[0], np.arange(24).reshape(4, 6))
    ...     plan = fastpool.files.adaptive_min_pool(*names, 2, layout="HW")
    ...     np.load(names[1])
    array([[ 0,  3],
           [12, 15]])
    """
    planner = adaptive_min_pool, plan_adaptive_min_pool
    planned = _with_indices(*planner, indices, attributes, output_size=output_size)
    return _pool(planned, source, target, indices, max_bytes, progress)


def _with_indices(function, plan_of, indices, attributes, **given):
    """Return a function that plans a pooling with indices, if there is a file for them."""
    return _planned(function, plan_of, attributes, return_indices=indices is not None, **given)


def _planned(function, plan_of, attributes, **given):
    """Return a function that plans a pooling; refuse words that `function` does not take."""
    refuse_unknown(function, plan_of, attributes, given)
    return partial(plan_of, **given, **attributes)


def _pool(planned, source, target, indices, max_bytes, progress, keepdims=True):
    """Run the plan that `planned` returns for the shape and type of the array in `source`.

    Return it. Without `keepdims` the spatial axes, of one element each, are not in the results.
    """
    max_bytes = as_count(max_bytes, "max_bytes")
    for name, path in (("source", source), ("target", target)):
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"{name}: expected a str or os.PathLike, got {shown(path)}")
    if not isinstance(indices, (str, os.PathLike, type(None))):
        raise TypeError(f"indices: expected a str, os.PathLike or None, got {shown(indices)}")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress: expected a callable or None, got {shown(progress)}")
    keepdims = arguments.keepdims(keepdims)
    with ExitStack() as stack:
        x = stack.enter_context(existing(source))
        allowed = _ELEMENTS.get(planned.func, DTYPES)
        dtype = arguments.dtype_name(x.dtype, "source", allowed)
        try:
            plan = planned(x.shape, dtype)
        except (TypeError, ValueError) as error:  # here, `dtype` is the type of the result
            raise type(error)(str(error).removeprefix("result_")) from None
        gone = () if keepdims else plan.spatial
        shape = [extent for axis, extent in enumerate(plan.output_shape) if axis not in gone]
        paths = stack.enter_context(replacing(target=target, indices=indices))
        results = [
            stack.enter_context(new(path, plan.output_shape, dtype, tuple(shape)))
            for path, dtype in zip(paths.values(), plan.result_dtypes(x.dtype), strict=True)
        ]
        done, every = 0, prod(plan.output_shape)
        for outputs in grid(plan, max_bytes, reverse=x.order == "F"):
            if progress is not None:
                progress(done, every)
            tile = plan.tile(outputs)
            tile.plan(x.mapped()[tile.read], *(result.mapped()[outputs] for result in results))
            done += prod(tile.plan.output_shape)
        if progress is not None:
            progress(done, every)
    return plan
