"""Windows by dimension over a DataArray, or over the variables of a Dataset."""

from collections.abc import Mapping

import xarray

from .._planning import arguments
from .._planning.values import as_count, flag, shown


class Labelled:
    """A DataArray or Dataset, and how many elements a window has along some of its dimensions."""

    def __init__(self, obj, dim, windows):
        if not isinstance(obj, (xarray.DataArray, xarray.Dataset)):
            raise TypeError(
                f"obj: expected an xarray.DataArray or xarray.Dataset, got {type(obj).__name__}"
            )
        if dim is not None and windows:
            raise ValueError("dim: expected None if windows are given by name")
        named = windows if dim is None else dim
        if not isinstance(named, Mapping) or not named:
            raise TypeError(
                f"dim: expected a mapping from dimensions to ints, "
                f'like {{"lat": 2, "lon": 2}}, got {shown(named)}'
            )
        self._obj = obj
        self._check_dims(named, "dim")
        self._windows = {dim: as_count(window, f"dim[{dim!r}]", 1) for dim, window in named.items()}
        for label, variable in self._pooled():
            arguments.dtype_name(variable.dtype, label)

    def __repr__(self):
        windows = ", ".join(f"{dim}: {window}" for dim, window in self._windows.items())
        return f"<fastpool.xarray.{type(self).__name__} of {windows}>"

    def _check_dims(self, mapping, name):
        for dim in mapping:
            if dim not in self._obj.dims:
                dims = tuple(self._obj.dims)
                raise ValueError(f"{name}: expected dimensions among {dims}, got {dim!r}")

    def _per_dimension(self, value, name, read):
        """Return one value per window, from one for all or from a mapping, each read by `read`.

        Dimensions that a mapping lacks have None.
        """
        if not isinstance(value, Mapping):
            return {dim: read(value, name) for dim in self._windows}
        self._check_dims(value, name)
        return {dim: read(value.get(dim), f"{name}[{dim!r}]") for dim in self._windows}

    def _variables(self):
        if isinstance(self._obj, xarray.DataArray):
            return {"obj": self._obj.variable}
        return {f"obj[{key!r}]": v.variable for key, v in self._obj.data_vars.items()}

    def _pooled(self):
        """Return the variables that have windows, each with its name in errors."""
        return [
            (label, variable)
            for label, variable in self._variables().items()
            if self._windows.keys() & {*variable.dims}
        ]

    def _assembled(self, function, coords_of, keep_attrs):
        """Return the object with new data for variables that have windows, and new coordinates.

        `function` returns the data of a variable, and `coords_of` the coordinates. It gets the new
        variable of a DataArray, and None for a Dataset.
        """
        results = []
        for variable in self._variables().values():
            result = variable.copy(deep=False)
            if self._windows.keys() & {*variable.dims}:
                result = xarray.Variable(variable.dims, function(variable), variable.attrs)
            results.append(result if keep_attrs else result._replace(attrs={}))
        obj = self._obj
        if isinstance(obj, xarray.Dataset):
            data = dict(zip(obj.data_vars, results, strict=True))
            return xarray.Dataset(data, coords_of(None), obj.attrs if keep_attrs else {})
        [result] = results
        return xarray.DataArray(result, coords_of(result), obj.dims).rename(obj.name)


def kept(keep_attrs):
    """Return whether attributes stay, as they do unless the option of xarray says otherwise."""
    if keep_attrs is None:
        keep_attrs = xarray.get_options()["keep_attrs"]
    return True if keep_attrs == "default" else flag(keep_attrs, "keep_attrs")
