"""Global and adaptive pooling of DataArrays: windows that follow from the extents."""

from collections.abc import Hashable, Iterable

from .._api.adaptive import plan_adaptive_avg_pool, plan_adaptive_max_pool
from .._api.minimum import plan_adaptive_min_pool
from .._planning import arguments
from .._planning.values import shown
from ._dims import Axes, check, pooled


def global_avg_pool(
    x,
    dims,
    *,
    keepdims=True,
    dtype=None,
    rounding="half_even",
    numerics="pairwise",
    nan="propagate",
    num_threads=None,
):
    """Take the mean of all elements along some dimensions of a DataArray.

    Parameters
    ----------
    x : xarray.DataArray
        Input, of a type that :func:`fastpool.avg_pool` takes, in memory or in dask's chunks. Chunks
        along `dims` are merged.
    dims : hashable or iterable of hashable
        One dimension or several.
    keepdims : bool
        Whether these dimensions stay, with one element each and the coordinates of their centres.
        Otherwise their coordinates go too.
    dtype, rounding, numerics, nan, num_threads
        As in :func:`avg_pool`.

    Returns
    -------
    y : xarray.DataArray
        The means, with the name and attributes of `x`.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.global_avg_pool`. Also for a dimension that `x` lacks.

    Examples
    --------
    >>> import numpy as np, xarray
    >>> import fastpool.xarray
    >>> x = xarray.DataArray(np.arange(6.0).reshape(2, 3), dims=["band", "lon"])
    >>> fastpool.xarray.global_avg_pool(x, "lon", keepdims=False)
    <xarray.DataArray (band: 2)> Size: 16B
    array([1., 4.])
    Dimensions without coordinates: band
    """
    check(x, "x")
    keepdims = arguments.keepdims(keepdims)
    values = {"dtype": dtype, "rounding": rounding, "numerics": numerics, "nan": nan}
    y = adaptive_avg_pool(x, ones(x, dims), **values, num_threads=num_threads)
    return y if keepdims else without(y, dims)


def global_max_pool(
    x,
    dims,
    *,
    keepdims=True,
    nan="propagate",
    return_indices=False,
    index_dtype="int64",
    num_threads=None,
):
    """Take the maximum of all elements along some dimensions of a DataArray.

    Parameters
    ----------
    x, dims, keepdims
        As in :func:`global_avg_pool`.
    nan, return_indices, index_dtype, num_threads
        As in :func:`max_pool`.

    Returns
    -------
    y : xarray.DataArray
        The maxima, with the name and attributes of `x`.
    indices : xarray.DataArray
        Only with `return_indices`: positions, as :func:`max_pool` gives them.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.global_max_pool`. Also for a dimension that `x` lacks.

    Examples
    --------
    >>> import xarray
    >>> import fastpool.xarray
    >>> x = xarray.DataArray([[3, 1, 4], [1, 5, 9]], {"lon": [10, 20, 30]}, ["band", "lon"])
    >>> y, indices = fastpool.xarray.global_max_pool(x, "lon", return_indices=True)
    >>> fastpool.xarray.labels(indices, x, "lon").values
    array([[30],
           [30]])
    """
    return _global(adaptive_max_pool, **locals())


def global_min_pool(
    x,
    dims,
    *,
    keepdims=True,
    nan="propagate",
    return_indices=False,
    index_dtype="int64",
    num_threads=None,
):
    """Take the minimum of all elements along some dimensions of a DataArray.

    Parameters, results and errors are those of :func:`global_max_pool`.

    Examples
    --------
    >>> import xarray
    >>> import fastpool.xarray
    >>> x = xarray.DataArray([[3, 1, 4], [1, 5, 9]], {"lon": [10, 20, 30]}, ["band", "lon"])
    >>> y, indices = fastpool.xarray.global_min_pool(x, "lon", return_indices=True)
    >>> fastpool.xarray.labels(indices, x, "lon").values
    array([[20],
           [10]])
    """
    return _global(adaptive_min_pool, **locals())


def _global(adaptive, x, dims, keepdims, **attributes):
    """Return what an adaptive pooling gives for one window along some dimensions."""
    check(x, "x")
    keepdims = arguments.keepdims(keepdims)
    results = adaptive(x, ones(x, dims), **attributes)
    if keepdims:
        return results
    if isinstance(results, tuple):
        return tuple(without(result, dims) for result in results)
    return without(results, dims)


def adaptive_avg_pool(
    x,
    output_size,
    *,
    dtype=None,
    rounding="half_even",
    numerics="pairwise",
    nan="propagate",
    num_threads=None,
):
    """Divide dimensions of a DataArray into a number of windows and take their means.

    Parameters
    ----------
    x : xarray.DataArray
        Input, of a type that :func:`fastpool.avg_pool` takes, in memory or in dask's chunks.
    output_size : mapping of dimension to int
        The number of windows along the dimensions that are pooled.
    dtype, rounding, numerics, nan, num_threads
        As in :func:`avg_pool`.

    Returns
    -------
    y : xarray.DataArray
        The means, with the name, dimensions and attributes of `x`, and the coordinates that
        :func:`max_pool` gives.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.adaptive_avg_pool`. Also for a dimension that `x` lacks.

    Examples
    --------
    >>> import numpy as np, xarray
    >>> import fastpool.xarray
    >>> x = xarray.DataArray(np.arange(7.0), {"time": np.arange(10, 80, 10)})
    >>> fastpool.xarray.adaptive_avg_pool(x, {"time": 3})
    <xarray.DataArray (time: 3)> Size: 24B
    array([1., 3., 5.])
    Coordinates:
      * time     (time) int64 24B 20 40 60
    """
    check(x, "x")
    axes = Axes(x, output_size, "output_size")
    attributes = {
        "output_size": axes.values(output_size, "output_size", None),
        "rounding": rounding,
        "numerics": numerics,
        "nan": nan,
        "num_threads": num_threads,
        "layout": axes.layout,
    }
    plan = axes.planned(plan_adaptive_avg_pool, x, {"result_dtype": dtype, **attributes})
    return pooled("adaptive_avg_pool", x, axes, plan, {"dtype": dtype, **attributes})


def adaptive_max_pool(
    x,
    output_size,
    *,
    nan="propagate",
    return_indices=False,
    index_dtype="int64",
    num_threads=None,
):
    """Divide dimensions of a DataArray into a number of windows and take their maxima.

    Parameters
    ----------
    x, output_size
        As in :func:`adaptive_avg_pool`, of a type that :func:`fastpool.max_pool` takes.
    nan, return_indices, index_dtype, num_threads
        As in :func:`max_pool`.

    Returns
    -------
    y : xarray.DataArray
        The maxima, with the name, dimensions and attributes of `x`, and the coordinates that
        :func:`max_pool` gives.
    indices : xarray.DataArray
        Only with `return_indices`: positions, as :func:`max_pool` gives them.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.adaptive_max_pool`. Also for a dimension that `x` lacks.

    Examples
    --------
    >>> import xarray
    >>> import fastpool.xarray
    >>> x = xarray.DataArray([3, 1, 4, 1], dims="lon")
    >>> fastpool.xarray.adaptive_max_pool(x, {"lon": 2}).values
    array([3, 4])
    """
    return _extrema("adaptive_max_pool", plan_adaptive_max_pool, **locals())


def adaptive_min_pool(
    x,
    output_size,
    *,
    nan="propagate",
    return_indices=False,
    index_dtype="int64",
    num_threads=None,
):
    """Divide dimensions of a DataArray into a number of windows and take their minima.

    Parameters, results and errors are those of :func:`adaptive_max_pool`.

    Examples
    --------
    >>> import xarray
    >>> import fastpool.xarray
    >>> x = xarray.DataArray([3, 1, 4, 2], dims="lon")
    >>> fastpool.xarray.adaptive_min_pool(x, {"lon": 2}).values
    array([1, 2])
    """
    return _extrema("adaptive_min_pool", plan_adaptive_min_pool, **locals())


def _extrema(function, plan_of, x, output_size, **attributes):
    """Return the maxima or minima of some windows, and indices if asked for."""
    check(x, "x")
    axes = Axes(x, output_size, "output_size")
    attributes |= {
        "output_size": axes.values(output_size, "output_size", None),
        "layout": axes.layout,
        "index_layout": axes.layout,
    }
    plan = axes.planned(plan_of, x, attributes)
    return pooled(function, x, axes, plan, attributes)


def _listed(dims):
    """Return dimensions, given as one or as several, in a list."""
    several = isinstance(dims, Iterable) and not isinstance(dims, str)
    return list(dims) if several else [dims]


def ones(x, dims):
    """Return the output size of a global pooling. It has one window along each of `dims`."""
    named = _listed(dims)
    if not named or not all(isinstance(dim, Hashable) for dim in named):
        raise TypeError(f"dims: expected one dimension or several of {x.dims}, got {shown(dims)}")
    for dim in named:
        if dim not in x.dims:
            raise ValueError(f"dims: expected dimensions among {x.dims}, got {dim!r}")
        if x.sizes[dim] == 0:
            raise ValueError(f"x: expected at least one element along dimension {dim!r}, got none")
    return dict.fromkeys(named, 1)


def without(result, dims):
    """Return a result without dimensions of one element, and without their coordinates."""
    dims = _listed(dims)
    gone = [name for name, coord in result.coords.items() if {*dims} & {*coord.dims}]
    return result.drop_vars(gone).squeeze(dims)
