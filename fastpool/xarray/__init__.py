"""Pool and unpool xarray DataArrays: dimensions by name, coordinates kept.

Every dimension is a spatial axis. Those that are not pooled have a window of one element. So no
array is transposed, and indices count in the array as it is.
"""

import math

from .._api.average import plan_avg_pool
from .._api.maximum import max_unpool as _max_unpool
from .._api.maximum import plan_max_pool
from .._api.minimum import plan_min_pool
from .._planning.values import shown

try:
    import xarray
except ModuleNotFoundError as missing:
    if missing.name != "xarray":
        raise
    raise ImportError('fastpool.xarray needs xarray: pip install "fastpool[xarray]"') from None

from ._adaptive import (
    adaptive_avg_pool,
    adaptive_max_pool,
    adaptive_min_pool,
    global_avg_pool,
    global_max_pool,
    global_min_pool,
)
from ._coarsen import Coarsen, coarsen
from ._dims import Axes, check, pooled
from ._lp import global_lp_pool, lp_pool
from ._rolling import Rolling, rolling

__all__ = [
    "Coarsen",
    "Rolling",
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "adaptive_min_pool",
    "avg_pool",
    "coarsen",
    "global_avg_pool",
    "global_lp_pool",
    "global_max_pool",
    "global_min_pool",
    "labels",
    "lp_pool",
    "max_pool",
    "max_unpool",
    "min_pool",
    "rolling",
]


def max_pool(
    x,
    kernel_shape,
    *,
    strides=1,
    pads=0,
    dilations=1,
    auto_pad="NOTSET",
    ceil_mode=False,
    ceil_rule="clip",
    border="ignore",
    border_value=None,
    nan="propagate",
    return_indices=False,
    index_dtype="int64",
    num_threads=None,
):
    """Take the maximum of every window of a DataArray.

    Parameters
    ----------
    x : xarray.DataArray
        Input, of a type that :func:`fastpool.max_pool` takes, in memory or in dask's chunks.
    kernel_shape : mapping of dimension to int
        Taps of the window along the dimensions that are pooled.
    strides, dilations : int or mapping of dimension to int
        One int for all pooled dimensions, or a mapping; dimensions that it lacks have 1. `strides`
        may be "window": those of `kernel_shape`.
    pads : int or mapping of dimension to int or (int, int)
        Padding of both sides, or at the beginning and at the end. Dimensions that a mapping lacks
        have 0.
    auto_pad, ceil_mode, ceil_rule, border, border_value, nan, return_indices, index_dtype, \
num_threads
        As in :func:`fastpool.max_pool`. For dask's chunks `num_threads` is that of
        :func:`fastpool.dask.max_pool`.

    Returns
    -------
    y : xarray.DataArray
        The maxima, with the name, dimensions, attributes and coordinates of `x`.
    indices : xarray.DataArray
        Only with `return_indices`: the position of each maximum in ``x.data``, read as one
        row-major array; -1 for a window without elements. :func:`labels` turns them into
        coordinates.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.max_pool`. Also for a dimension that `x` lacks.

    Notes
    -----
    A coordinate along a pooled dimension gets its value at the centre of the window. If the centre
    is between two elements, the value is halfway between theirs, and integers become floats.
    Centres outside the array get the value of its first or last element. Values without a middle
    (text, objects, bool, those of a MultiIndex) are taken from the element before the centre. Other
    coordinates and all attributes stay.

    Examples
    --------
    >>> import xarray
    >>> import fastpool.xarray
    >>> x = xarray.DataArray(
    ...     [[1, 3, 2, 4], [5, 6, 8, 7]], {"lat": [50, 52], "lon": [0, 1, 2, 3]}, name="height"
    ... )
    >>> fastpool.xarray.max_pool(x, {"lat": 2, "lon": 2}, strides="window")
    <xarray.DataArray 'height' (lat: 1, lon: 2)> Size: 16B
    array([[6, 8]])
    Coordinates:
      * lat      (lat) float64 8B 51.0
      * lon      (lon) float64 16B 0.5 2.5
    """
    return _extrema("max_pool", plan_max_pool, **locals())


def min_pool(
    x,
    kernel_shape,
    *,
    strides=1,
    pads=0,
    dilations=1,
    auto_pad="NOTSET",
    ceil_mode=False,
    ceil_rule="clip",
    border="ignore",
    border_value=None,
    nan="propagate",
    return_indices=False,
    index_dtype="int64",
    num_threads=None,
):
    """Take the minimum of every window of a DataArray.

    Parameters
    ----------
    x, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule, border, \
border_value, nan, return_indices, index_dtype, num_threads
        As in :func:`max_pool`.

    Returns
    -------
    y : xarray.DataArray
        The minima, with the name, dimensions, attributes and coordinates that :func:`max_pool`
        gives.
    indices : xarray.DataArray
        Only with `return_indices`: positions, as :func:`max_pool` gives them.

    Raises
    ------
    TypeError, ValueError
        As :func:`max_pool`.

    Examples
    --------
    >>> import xarray
    >>> import fastpool.xarray
    >>> x = xarray.DataArray([3.0, 1.0, 2.0, float("nan")], {"lon": [0, 1, 2, 3]})
    >>> fastpool.xarray.min_pool(x, {"lon": 2}, strides="window", nan="ignore").values
    array([1., 2.])
    """
    return _extrema("min_pool", plan_min_pool, **locals())


def _extrema(function, plan_of, x, kernel_shape, **attributes):
    """Return the maxima or minima, and indices if asked for, of a DataArray's windows."""
    check(x, "x")
    axes = Axes(x, kernel_shape, "kernel_shape")
    attributes = {
        **attributes,
        "kernel_shape": axes.values(kernel_shape, "kernel_shape", 1),
        "strides": axes.values(attributes["strides"], "strides", 1),
        "pads": axes.pads(attributes["pads"]),
        "dilations": axes.values(attributes["dilations"], "dilations", 1),
        "layout": axes.layout,
        "index_layout": axes.layout,
    }
    plan = axes.planned(plan_of, x, attributes)
    return pooled(function, x, axes, plan, attributes)


def avg_pool(
    x,
    kernel_shape,
    *,
    strides=1,
    pads=0,
    dilations=1,
    auto_pad="NOTSET",
    ceil_mode=False,
    ceil_rule="clip",
    border="ignore",
    border_value=None,
    count_include_pad=False,
    beyond="drop",
    divisor=None,
    dtype=None,
    rounding="half_even",
    numerics="pairwise",
    nan="propagate",
    num_threads=None,
):
    """Take the mean of every window of a DataArray.

    Parameters
    ----------
    x : xarray.DataArray
        Input, of a type that :func:`fastpool.avg_pool` takes, in memory or in dask's chunks.
    kernel_shape, strides, pads, dilations
        The windows, by dimension, as in :func:`max_pool`.
    auto_pad, ceil_mode, ceil_rule, border, border_value, count_include_pad, beyond, divisor, \
dtype, rounding, numerics, nan, num_threads
        As in :func:`fastpool.avg_pool`. For dask's chunks `num_threads` is that of
        :func:`fastpool.dask.avg_pool`.

    Returns
    -------
    y : xarray.DataArray
        The means, with the name, dimensions and attributes of `x`, and the coordinates that
        :func:`max_pool` gives.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.avg_pool`. Also for a dimension that `x` lacks.

    Examples
    --------
    >>> import xarray
    >>> import fastpool.xarray
    >>> x = xarray.DataArray([1.0, 3, 2, 6], {"lon": [0, 1, 2, 3]}, name="height")
    >>> fastpool.xarray.avg_pool(x, {"lon": 2}, strides=2)
    <xarray.DataArray 'height' (lon: 2)> Size: 16B
    array([2., 4.])
    Coordinates:
      * lon      (lon) float64 16B 0.5 2.5
    """
    check(x, "x")
    axes = Axes(x, kernel_shape, "kernel_shape")
    attributes = {
        "kernel_shape": axes.values(kernel_shape, "kernel_shape", 1),
        "strides": axes.values(strides, "strides", 1),
        "pads": axes.pads(pads),
        "dilations": axes.values(dilations, "dilations", 1),
        "auto_pad": auto_pad,
        "ceil_mode": ceil_mode,
        "ceil_rule": ceil_rule,
        "border": border,
        "border_value": border_value,
        "count_include_pad": count_include_pad,
        "beyond": beyond,
        "divisor": divisor,
        "rounding": rounding,
        "numerics": numerics,
        "nan": nan,
        "num_threads": num_threads,
        "layout": axes.layout,
    }
    plan = axes.planned(plan_avg_pool, x, {"result_dtype": dtype, **attributes})
    return pooled("avg_pool", x, axes, plan, {"dtype": dtype, **attributes})


def max_unpool(x, indices, kernel_shape, *, strides=1, pads=0, like=None, num_threads=None):
    """Put maxima back where they were; everything else is zero.

    Parameters
    ----------
    x : xarray.DataArray
        The values.
    indices : xarray.DataArray of int64 or int32
        The position of each value, as :func:`max_pool` returns it.
    kernel_shape, strides, pads
        Those of the pooling, as in :func:`max_pool`.
    like : xarray.DataArray, optional
        The array that was pooled. The result gets its extents and its coordinates. Without it the
        extents are inferred from the window, and pooled dimensions have no coordinates.
    num_threads : int, optional
        As in :func:`max_pool`.

    Returns
    -------
    y : xarray.DataArray
        The result, with the name, dimensions and attributes of `x`.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.max_unpool`. Also for dimensions that differ.

    Examples
    --------
    >>> import xarray
    >>> import fastpool.xarray
    >>> x = xarray.DataArray([[1, 3, 2], [5, 6, 8]], {"y": [10, 20], "x": [1, 2, 3]})
    >>> y, indices = fastpool.xarray.max_pool(x, {"x": 2}, return_indices=True)
    >>> fastpool.xarray.max_unpool(y, indices, {"x": 2}, like=x)
    <xarray.DataArray (y: 2, x: 3)> Size: 48B
    array([[0, 3, 0],
           [0, 6, 8]])
    Coordinates:
      * y        (y) int64 16B 10 20
      * x        (x) int64 24B 1 2 3
    """
    check(x, "x")
    check(indices, "indices", x.dims)
    axes = Axes(x, kernel_shape, "kernel_shape")
    attributes = {
        "kernel_shape": axes.values(kernel_shape, "kernel_shape", 1),
        "strides": axes.values(strides, "strides", 1),
        "pads": axes.pads(pads),
        "num_threads": num_threads,
        "layout": axes.layout,
        "index_layout": axes.layout,
    }
    coords = x.drop_vars([c for c, v in x.coords.items() if {*axes.pooled} & {*v.dims}]).coords
    if like is not None:
        check(like, "like", x.dims)
        attributes["output_shape"] = axes.data(like).shape
        coords = like.coords
    unpool = _max_unpool
    if x.chunks is not None:
        from ..dask import max_unpool as unpool
    with axes.naming_dimensions():
        data = unpool(axes.data(x), axes.data(indices), **attributes)
    return axes.wrap(data, coords, x.name, x.attrs)


def labels(indices, x, dim):
    """Return the coordinates of maxima along one dimension.

    Parameters
    ----------
    indices : xarray.DataArray
        As :func:`max_pool` returns them.
    x : xarray.DataArray
        The array that was pooled.
    dim : hashable
        The dimension.

    Returns
    -------
    labels : xarray.DataArray
        The values of the coordinate `dim` of `x`, or positions if it has none, in the shape of
        `indices`. Their name is `dim`, as for ``x.idxmax(dim)``.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong kind, or an index is outside `x`. The index of a window without
        elements, -1, is outside: it has no label.

    Examples
    --------
    >>> import xarray
    >>> import fastpool.xarray
    >>> x = xarray.DataArray([3, 1, 4, 1, 5, 9], {"time": [10, 20, 30, 40, 50, 60]})
    >>> y, indices = fastpool.xarray.max_pool(x, {"time": 3}, strides=3, return_indices=True)
    >>> fastpool.xarray.labels(indices, x, "time").values
    array([30, 60])
    """
    check(x, "x")
    check(indices, "indices", x.dims)
    if dim not in x.dims:
        raise ValueError(f"dim: expected one of {x.dims}, got {shown(dim)}")
    if indices.dtype.kind != "i":
        raise TypeError(f"indices: expected integers, got {indices.dtype}")
    coord = x[dim]
    axis = x.get_axis_num(dim)
    found = xarray.apply_ufunc(
        _labels,
        indices,
        kwargs={"size": x.size, "step": math.prod(x.shape[axis + 1 :]), "values": coord.values},
        dask="parallelized",
        output_dtypes=[coord.dtype],
    )
    return found.rename(dim).assign_attrs(coord.attrs)


def _labels(indices, size, step, values):
    if indices.size and not 0 <= indices.min() <= indices.max() < size:
        raise ValueError(f"indices: expected values in [0, {size}), the elements of x")
    return values[indices // step % len(values)]
