"""Statistics of blocks, with the names, attributes and coordinates that xarray's coarsen gives."""

from collections.abc import Mapping

import numpy as np

from .._api.blocks import block_reduce
from .._planning import arguments
from .._planning.dtypes import is_float
from .._planning.values import as_count, choice, flag
from ._labelled import Labelled, kept

# The words of xarray for the rest of a dimension, and of block_reduce.
_EDGES = {"exact": "exact", "trim": "trim", "pad": "keep"}


def coarsen(obj, dim=None, *, boundary="exact", side="left", coord_func="mean", **windows):
    """Prepare statistics of the blocks of an xarray object.

    Parameters
    ----------
    obj : xarray.DataArray or xarray.Dataset
        Input, in memory or in dask's chunks. Variables of a Dataset without any of the dimensions
        stay as they are.
    dim : mapping of dimension to int, optional
        Elements of a block along each dimension.
    boundary : {"exact", "trim", "pad"} or mapping of dimension to one of these
        What becomes of the rest if blocks do not divide a dimension: an error; it is left out; or
        it is a block of fewer elements.
    side : {"left", "right"} or mapping of dimension to one of these
        The end of a dimension where blocks begin. The rest is at the other end.
    coord_func : str, callable or mapping of coordinate to one of these
        What makes the coordinates of blocks out of those of elements, as in ``obj.coarsen``.
    **windows : int
        `dim` in another form: the dimensions as keywords.

    Returns
    -------
    coarsen : Coarsen
        Its methods `max`, `min`, `mean`, `sum`, `std`, `var`, `median` and `count` return an object
        of the kind of `obj`, with one element for each block.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong kind or has a wrong value, a dimension is unknown or not
        divisible, or a variable with one of the dimensions does not hold numbers or bool.

    See Also
    --------
    fastpool.block_reduce : Reduce the blocks of an array; it documents the rules.

    Notes
    -----
    This is ``obj.coarsen(...)`` of xarray, which computes the coordinates. Floats keep their type.
    Means and medians of integers, their deviations and variances are float64, and their sums int64
    or uint64, whatever `boundary` is. A block of fewer elements has no padding: it does not become
    NaN with ``skipna=False``.

    Examples
    --------
    >>> import xarray
    >>> import fastpool.xarray
    >>> x = xarray.DataArray([3.0, 1, 2, 6], {"lon": [0, 1, 2, 3]}, name="height")
    >>> fastpool.xarray.coarsen(x, lon=2).mean()
    <xarray.DataArray 'height' (lon: 2)> Size: 16B
    array([2., 4.])
    Coordinates:
      * lon      (lon) float64 16B 0.5 2.5
    >>> fastpool.xarray.coarsen(x, lon=3, boundary="pad", side="right").max().values
    array([3., 6.])
    """
    return Coarsen(obj, dim, windows, boundary, side, coord_func)


class Coarsen(Labelled):
    """Blocks of an object, as :func:`coarsen` prepares them.

    Methods take `skipna`: None and True ignore NaN, and with False it propagates. A block with
    fewer than `min_count` elements that are there gives NaN. `keep_attrs` says whether attributes
    stay; None, the default, is what the option of xarray says. `numerics` and `ddof` are those of
    :func:`fastpool.block_reduce`.
    """

    def __init__(self, obj, dim, windows, boundary, side, coord_func):
        super().__init__(obj, dim, windows)

        def one_of(*allowed):
            return lambda value, name: choice(value, name, allowed)

        self._boundary = self._per_dimension(boundary, "boundary", one_of(*_EDGES))
        self._side = self._per_dimension(side, "side", one_of("left", "right"))
        for dim, window in self._windows.items():
            if self._boundary[dim] == "exact" and obj.sizes[dim] % window:
                raise ValueError(
                    f'boundary: "exact" needs a dimension {dim!r} that blocks of {window} divide, '
                    f'got {obj.sizes[dim]} elements; "trim" and "pad" take any number'
                )
        if isinstance(coord_func, Mapping):  # xarray adds entries to it
            coord_func = dict(coord_func)
        # It finds the function of each coordinate.
        self._theirs = obj.coarsen(self._windows, coord_func=coord_func)

    def max(self, *, skipna=None, min_count=None, keep_attrs=None):
        """Return the maximum of every block."""
        return self._reduced("max", skipna, keep_attrs, min_count=min_count)

    def min(self, *, skipna=None, min_count=None, keep_attrs=None):
        """Return the minimum of every block."""
        return self._reduced("min", skipna, keep_attrs, min_count=min_count)

    def mean(self, *, skipna=None, min_count=None, numerics="pairwise", keep_attrs=None):
        """Return the mean of every block."""
        values = {"min_count": min_count, "numerics": numerics}
        return self._reduced("mean", skipna, keep_attrs, **values)

    def sum(self, *, skipna=None, min_count=None, numerics="pairwise", keep_attrs=None):
        """Return the sum of every block; 0 if no element is there."""
        values = {"min_count": min_count, "numerics": numerics}
        return self._reduced("sum", skipna, keep_attrs, **values)

    def std(self, *, skipna=None, min_count=None, ddof=0, keep_attrs=None):
        """Return the standard deviation of every block; NaN for no more than `ddof` elements."""
        return self._reduced("std", skipna, keep_attrs, min_count=min_count, ddof=ddof)

    def var(self, *, skipna=None, min_count=None, ddof=0, keep_attrs=None):
        """Return the variance of every block; NaN for no more than `ddof` elements."""
        return self._reduced("var", skipna, keep_attrs, min_count=min_count, ddof=ddof)

    def median(self, *, skipna=None, min_count=None, keep_attrs=None):
        """Return the median of every block."""
        return self._reduced("median", skipna, keep_attrs, min_count=min_count)

    def count(self, *, keep_attrs=None):
        """Return how many elements of every block are not NaN."""
        return self._reduced("count", None, keep_attrs)

    def _reduced(self, func, skipna, keep_attrs, **attributes):
        ignored = skipna is None or flag(skipna, "skipna")
        attributes["nan"] = "ignore" if ignored else "propagate"
        keep_attrs = kept(keep_attrs)

        def function(variable):
            reduce = block_reduce
            if variable.chunks is not None:
                from ..dask import block_reduce as reduce
            values = dict(attributes)
            integers = not is_float(arguments.dtype_name(variable.dtype))
            if func in ("mean", "median") and integers:
                values["dtype"] = "float64"
            elif integers and func in ("max", "min", "sum"):
                need = attributes["min_count"]
                if need is not None and as_count(need, "min_count") > 1:
                    raise ValueError(
                        f"min_count: no {variable.dtype} stands for a missing result; convert obj "
                        'by astype("float32") first'
                    )
            return self._blocks(variable, lambda *call: reduce(*call, func, **values))

        return self._assembled(
            function, lambda reduced: self._coords(reduced, keep_attrs), keep_attrs
        )

    def _blocks(self, variable, reduce):
        """Return what `reduce` returns for a variable's data, with blocks from the left or right.

        It gets an array and the sizes of blocks.
        """
        x = variable.data
        sizes = [self._windows.get(dim, 1) for dim in variable.dims]
        first = {}  # by axis, the elements of a block before all others
        for axis, dim in enumerate(variable.dims):
            rest = x.shape[axis] % sizes[axis]
            if not rest or self._boundary[dim] == "exact":
                continue
            cut = slice(rest, None) if self._side[dim] == "right" else slice(-rest)
            if self._boundary[dim] == "trim":
                x = x[(slice(None),) * axis + (cut,)]
            elif self._side[dim] == "right":
                first[axis] = rest
        return _joined(x, sizes, reduce, first)

    def _coords(self, reduced, keep_attrs):
        """Return the coordinates as xarray's coarsen makes them."""
        obj, found = self._obj, {}
        for name, coord in obj.coords.items():
            if reduced is not None and name == obj.name:
                found[name] = reduced
            elif reduced is not None and not self._windows.keys() & {*coord.dims}:
                found[name] = coord
            else:
                function = self._theirs.coord_func[name]
                try:
                    found[name] = coord.variable.coarsen(
                        self._windows, function, self._boundary, self._side, keep_attrs
                    )
                except (NameError, TypeError, ValueError) as error:
                    kind = TypeError if isinstance(error, TypeError) else ValueError
                    raise kind(f"coord_func: of the coordinate {name!r}: {error}") from error
        return found


def _joined(x, sizes, reduce, first):
    """Reduce blocks, and along the axes of `first` a smaller one before them."""
    if not first:
        return reduce(x, sizes)
    (axis, rest), *more = first.items()
    before = (slice(None),) * axis
    parts = [
        _joined(x[(*before, cut)], sizes, reduce, dict(more))
        for cut in (slice(rest), slice(rest, None))
    ]
    if isinstance(x, np.ndarray):
        return np.concatenate(parts, axis)
    from dask.array import concatenate

    return concatenate(parts, axis)
