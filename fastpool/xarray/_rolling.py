"""Statistics of the windows that end at every element, or have it at their centre."""

from functools import partial
from math import prod

import numpy as np

from .._api.average import avg_pool
from .._api.maximum import max_pool
from .._api.minimum import min_pool
from .._planning import arguments
from .._planning.dtypes import is_float
from .._planning.values import as_count, flag
from ._labelled import Labelled, kept


def rolling(obj, dim=None, *, min_periods=None, center=False, **windows):
    """Prepare statistics of the windows that end at every element of an xarray object.

    Parameters
    ----------
    obj : xarray.DataArray or xarray.Dataset
        Input, in memory or in dask's chunks. Variables of a Dataset without any of the dimensions
        stay as they are.
    dim : mapping of dimension to int, optional
        Elements of the window along each dimension. It may exceed the extent.
    min_periods : int, optional
        A window with fewer elements that are not NaN gives NaN. By default all elements of the
        window are needed: along several dimensions, the product.
    center : bool or mapping of dimension to bool
        Whether a window of k begins k // 2 elements before its element. Otherwise it ends at it.
    **windows : int
        `dim` in another form: the dimensions as keywords.

    Returns
    -------
    rolling : Rolling
        Its methods `max`, `min`, `mean`, `sum` and `count` return an object of the kind, shape,
        coordinates and name of `obj`.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong kind or has a wrong value, a dimension is unknown, or a variable
        with one of the dimensions does not hold numbers or bool.

    Notes
    -----
    This is ``obj.rolling(...)`` of xarray. NaN is ignored, as far as `min_periods` allows. Results
    have the type of the elements if those are floats. Other results are float64, and so are counts.

    Examples
    --------
    >>> import xarray
    >>> import fastpool.xarray
    >>> x = xarray.DataArray([3.0, 1.0, float("nan"), 2.0, 4.0], dims="time")
    >>> fastpool.xarray.rolling(x, time=2).max().values
    array([nan,  3., nan, nan,  4.])
    >>> fastpool.xarray.rolling(x, time=3, min_periods=2, center=True).mean().values
    array([2. , 2. , 1.5, 3. , 3. ])
    """
    return Rolling(obj, dim, windows, min_periods, center)


class Rolling(Labelled):
    """Windows at every element, as :func:`rolling` prepares them.

    Methods take `keep_attrs`: whether attributes stay. None, the default, is what the option of
    xarray says. `numerics` is the order in which floats are added, as in :func:`fastpool.avg_pool`.
    """

    def __init__(self, obj, dim, windows, min_periods, center):
        super().__init__(obj, dim, windows)
        self._center = self._per_dimension(center, "center", flag)
        self._min_periods = None
        if min_periods is not None:
            self._min_periods = as_count(min_periods, "min_periods", 1)
            for label, variable in self._pooled():
                taps = self._taps(variable)
                if self._min_periods > taps:
                    raise ValueError(
                        f"min_periods: expected at most {taps}, the elements of a window of "
                        f"{label}, got {min_periods}"
                    )

    def max(self, *, keep_attrs=None):
        """Return the maximum of every window."""
        return self._rolled("max", keep_attrs)

    def min(self, *, keep_attrs=None):
        """Return the minimum of every window."""
        return self._rolled("min", keep_attrs)

    def mean(self, *, numerics="pairwise", keep_attrs=None):
        """Return the mean of every window."""
        return self._rolled("mean", keep_attrs, arguments.numerics(numerics))

    def sum(self, *, numerics="pairwise", keep_attrs=None):
        """Return the sum of every window."""
        return self._rolled("sum", keep_attrs, arguments.numerics(numerics))

    def count(self, *, keep_attrs=None):
        """Return how many elements of every window are not NaN; NaN for less than `min_periods`."""
        return self._rolled("count", keep_attrs)

    def _taps(self, variable):
        return prod(self._windows.get(dim, 1) for dim in variable.dims)

    def _rolled(self, func, keep_attrs, numerics=None):
        def function(variable):
            least = self._min_periods or self._taps(variable)
            reaches = self._reaches(variable)
            roll = partial(_rolled, reaches=reaches, func=func, least=least, numerics=numerics)
            x = variable.data
            if variable.chunks is None:
                return roll(x)
            from dask.array import map_overlap

            meta = np.empty((0,) * x.ndim, _result_dtype(x, func))
            return map_overlap(roll, x, depth=reaches, boundary="none", meta=meta)

        return self._assembled(function, lambda _: self._obj.coords, kept(keep_attrs))

    def _reaches(self, variable):
        """Return by axis how far windows reach before their element and after it.

        Nothing reaches further than from one end of the array to the other.
        """
        reaches = {}
        for axis, dim in enumerate(variable.dims):
            if dim in self._windows:
                window = self._windows[dim]
                before = window // 2 if self._center[dim] else window - 1
                most = max(variable.shape[axis] - 1, 0)
                reaches[axis] = min(before, most), min(window - 1 - before, most)
        return reaches


def _result_dtype(x, func):
    floats = func != "count" and is_float(arguments.dtype_name(x.dtype))
    return x.dtype.newbyteorder("=") if floats else np.dtype(np.float64)


def _rolled(x, reaches, func, least, numerics):
    """Return the statistic of the windows of an array, NaN for fewer than `least` elements."""
    dtype = _result_dtype(x, func)
    taps = prod(before + after + 1 for before, after in reaches.values())
    if least > taps or not x.size:
        return np.full(x.shape, np.nan, dtype)
    counts = None
    if func == "count" or 1 < least < taps:
        counts = _counts(x, reaches, taps)
    # If all elements are needed, a NaN makes the window NaN.
    nan = "propagate" if least == taps else "ignore"
    if func == "count":
        y = np.broadcast_to(counts, x.shape).astype(dtype)
    elif func in ("max", "min"):
        pool = max_pool if func == "max" else min_pool
        y = _pooled(pool, x, reaches, nan=nan).astype(dtype, copy=False)
    else:
        divisor = 1 if func == "sum" else None
        y = _pooled(avg_pool, x, reaches, nan=nan, dtype=dtype, divisor=divisor, numerics=numerics)
    if counts is not None:
        np.copyto(y, np.nan, where=counts < least)
    elif least == taps:
        for axis, (before, after) in reaches.items():
            along = np.moveaxis(y, axis, 0)
            along[:before] = along[len(along) - after :] = np.nan
    return y


def _counts(x, reaches, taps):
    """Return how many elements of each window are not NaN, in a shape that broadcasts."""
    if is_float(arguments.dtype_name(x.dtype)):
        there = ~np.isnan(x)
        if not there.all():
            dtype = np.min_scalar_type(taps)
            return _pooled(avg_pool, there, reaches, divisor=1, dtype=dtype)
    counts = np.ones((1,) * x.ndim, np.int64)
    for axis, (before, after) in reaches.items():
        at, last = np.arange(x.shape[axis]), x.shape[axis] - 1
        along = np.minimum(at + after, last) - np.maximum(at - before, 0) + 1
        counts = counts * along.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return counts


def _pooled(function, x, reaches, **attributes):
    """Pool the windows at every element of an array."""
    # Channels last are faster than a last spatial axis with windows of one element.
    last = x.ndim - 1 not in reaches
    outer = (0,) if last else (0, 0)
    pairs = [reaches.get(axis, (0, 0)) for axis in range(x.ndim - last)]
    return function(
        x[(np.newaxis,) * len(outer)],
        [before + after + 1 for before, after in pairs],
        pads=[before for before, _ in pairs] + [after for _, after in pairs],
        layout="NHWC" if last else "NCHW",
        **attributes,
    )[outer]
