"""Lp pooling of DataArrays: over windows, and of whole dimensions."""

from .._api.lp import plan_lp_pool
from .._planning import arguments
from .._planning.dtypes import FLOATS
from ._adaptive import ones, without
from ._dims import Axes, check, pooled


def lp_pool(
    x,
    kernel_shape,
    p=2,
    *,
    strides=1,
    pads=0,
    dilations=1,
    auto_pad="NOTSET",
    ceil_mode=False,
    ceil_rule="clip",
    partial="sum",
    nan="propagate",
    num_threads=None,
):
    """Take the Lp norm of every window of a DataArray.

    Parameters
    ----------
    x : xarray.DataArray
        Input, of a type that :func:`fastpool.lp_pool` takes, in memory or in dask's chunks.
    kernel_shape, strides, pads, dilations
        The windows, by dimension, as in :func:`max_pool`.
    p, auto_pad, ceil_mode, ceil_rule, partial, nan, num_threads
        As in :func:`fastpool.lp_pool`. For dask's chunks `num_threads` is that of
        :func:`fastpool.dask.lp_pool`.

    Returns
    -------
    y : xarray.DataArray
        The norms, with the name, dimensions and attributes of `x`, and the coordinates that
        :func:`max_pool` gives.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.lp_pool`. Also for a dimension that `x` lacks.

    Examples
    --------
    >>> import xarray
    >>> import fastpool.xarray
    >>> x = xarray.DataArray([3.0, 4, -12, 5], dims="time")
    >>> fastpool.xarray.lp_pool(x, {"time": 2}, strides=2).values
    array([ 5., 13.])
    """
    check(x, "x")
    axes = Axes(x, kernel_shape, "kernel_shape")
    attributes = {
        "kernel_shape": axes.values(kernel_shape, "kernel_shape", 1),
        "p": p,
        "strides": axes.values(strides, "strides", 1),
        "pads": axes.pads(pads),
        "dilations": axes.values(dilations, "dilations", 1),
        "auto_pad": auto_pad,
        "ceil_mode": ceil_mode,
        "ceil_rule": ceil_rule,
        "partial": partial,
        "nan": nan,
        "num_threads": num_threads,
        "layout": axes.layout,
    }
    plan = axes.planned(plan_lp_pool, x, attributes, FLOATS)
    return pooled("lp_pool", x, axes, plan, attributes)


def global_lp_pool(x, dims, p=2, *, keepdims=True, nan="propagate", num_threads=None):
    """Take the Lp norm of all elements along some dimensions of a DataArray.

    Parameters
    ----------
    x, dims, keepdims
        As in :func:`global_avg_pool`, of a type that :func:`fastpool.lp_pool` takes.
    p, nan, num_threads
        As in :func:`lp_pool`.

    Returns
    -------
    y : xarray.DataArray
        The norms, with the name and attributes of `x`.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.global_lp_pool`. Also for a dimension that `x` lacks.

    Examples
    --------
    >>> import xarray
    >>> import fastpool.xarray
    >>> x = xarray.DataArray([[3.0, -4.0], [8.0, 15.0]], dims=["band", "time"])
    >>> fastpool.xarray.global_lp_pool(x, "time", keepdims=False).values
    array([ 5., 17.])
    """
    check(x, "x")
    keepdims = arguments.keepdims(keepdims)
    window = {dim: x.sizes[dim] for dim in ones(x, dims)}
    y = lp_pool(x, window, p, nan=nan, num_threads=num_threads)
    return y if keepdims else without(y, dims)
