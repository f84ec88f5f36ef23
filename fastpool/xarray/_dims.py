"""Pool the axes of an array under the names of its dimensions; centre its coordinates."""

import re
from collections.abc import Mapping
from contextlib import contextmanager

import numpy as np
import xarray

from .._planning.arguments import dtype_name
from .._planning.dtypes import DTYPES
from .._planning.geometry import layout
from .._planning.values import shown

# The beginning of an error about one value of a list with values per spatial axis.
_POSITION = r"(?P<name>kernel_shape|strides|pads|dilations|output_size)\[(?P<position>\d+)\]"


class Axes:
    """The dimensions of a DataArray as axes of an array for fastpool."""

    def __init__(self, x, named, name):
        """Pool the dimensions that the mapping `named` has; `name` is that of the argument."""
        if not isinstance(named, Mapping) or not named:
            raise TypeError(
                f"{name}: expected a mapping from dimensions to ints, "
                f'like {{"lat": 2, "lon": 2}}, got {shown(named)}'
            )
        self._dims = self.pooled = x.dims
        self._check_dims(named, name)
        self.pooled = tuple(dim for dim in x.dims if dim in named)
        # Channels last are faster than a last spatial axis with windows of one element.
        last = x.dims[-1] not in self.pooled
        self.spatial = x.dims[:-1] if last else x.dims
        self._outer = (0,) if last else (0, 0)
        self.layout = "NHWC" if last else "NCHW"

    def _check_dims(self, mapping, name):
        for dim in mapping:
            if dim not in self.pooled:
                raise ValueError(f"{name}: expected dimensions among {self.pooled}, got {dim!r}")

    def values(self, value, name, default):
        """Return one value per spatial axis, from one for all pooled axes or from a mapping.

        Text is returned as it is.
        """
        if value is None:
            return [default] * len(self.spatial)
        if isinstance(value, str):  # the word "window", or an error
            return value
        if not isinstance(value, Mapping):
            value = dict.fromkeys(self.pooled, value)
        self._check_dims(value, name)
        return [value.get(dim, default) for dim in self.spatial]

    def pads(self, value):
        """Return all begins, then all ends."""
        values = self.values(value, "pads", 0)
        if isinstance(values, str):
            return values
        pairs = [
            pad if isinstance(pad, (tuple, list)) and len(pad) == 2 else (pad, pad)
            for pad in values
        ]
        return [begin for begin, _ in pairs] + [end for _, end in pairs]

    def data(self, x):
        return x.data[(np.newaxis,) * len(self._outer)]

    def planned(self, make, x, attributes, allowed=DTYPES):
        """Return the plan that `make` returns for ``data(x)``, of an element type in `allowed`."""
        dtype = dtype_name(x.dtype, "x", allowed)
        with self.naming_dimensions():
            return make((1,) * len(self._outer) + x.shape, dtype, **attributes)

    @contextmanager
    def naming_dimensions(self):
        """Name the dimensions in errors about an axis of a layout, or a position in a list."""
        try:
            yield
        except (TypeError, ValueError) as error:
            raise type(error)(self._with_dimensions(str(error))) from None

    def _with_dimensions(self, text):
        count = len(self.spatial)
        letters = layout(self.layout, (1,) * (2 + count)).spatial_names
        dims = dict(zip(letters, self.spatial, strict=True))
        axis = rf"\baxis ({'|'.join(letters)})\b"
        text = re.sub(axis, lambda found: f"dimension {dims[found[1]]!r}", text)
        found = re.match(_POSITION, text)
        if found is None:
            return text.removeprefix("result_")  # here, `dtype` is the type of the result
        # In `pads` all begins come before all ends.
        dim = self.spatial[int(found["position"]) % count]
        return f"{found['name']}[{dim!r}]{text[found.end() :]}"

    def wrap(self, data, coords, name, attrs):
        # Rename it afterwards: for None, DataArray would use the name of a dask array.
        return xarray.DataArray(data[self._outer], coords, self._dims, attrs=attrs).rename(name)


def pooled(function, x, axes, plan, attributes):
    """Return the results of a plan with their coordinates: an array, or a tuple of two.

    Chunks are pooled by a function of `fastpool.dask` with the same attributes.
    """
    if x.chunks is None:
        results = plan(axes.data(x))
    else:
        from .. import dask

        results = getattr(dask, function)(axes.data(x), **attributes)
    windows = dict(zip(axes.spatial, plan.axes, strict=True))
    coords = _centred(x.coords, {dim: windows[dim] for dim in axes.pooled})
    if not isinstance(results, tuple):
        return axes.wrap(results, coords, x.name, x.attrs)
    y, indices = results
    return (
        axes.wrap(y, coords, x.name, x.attrs),
        axes.wrap(indices, coords, "indices", {}),
    )


def _centred(coords, windows):
    """Return the coordinates at the centres of `windows`, axes of a plan by dimension."""
    before, after = {}, {}
    for dim, axis in windows.items():
        if axis.size == 0 and axis.output and any(dim in coord.dims for coord in coords.values()):
            raise ValueError(f"x: dimension {dim!r} has no elements to give windows coordinates")
        # Count in halves of an element, from the middle of the first one.
        first, stop = axis.window(np.arange(axis.output))
        centres = (first + stop - 1).clip(0, 2 * (axis.size - 1))
        before[dim] = centres // 2
        if (centres % 2).any():
            after[dim] = (centres + 1) // 2
    found = {}
    for name, coord in coords.items():
        index = coords.xindexes.get(name)
        if index is None or type(index) is xarray.indexes.PandasIndex:
            found[name] = _variable_at(coord.variable.to_base_variable(), before, after)
    if len(found) < len(coords):  # a MultiIndex is indexed together with its levels
        return coords.to_dataset().isel(before, missing_dims="ignore").assign_coords(found).coords
    return found


def _variable_at(variable, before, after):
    has_middle = variable.dtype.kind in "iufcmM"
    for dim in variable.dims:
        if dim in before:
            low = variable.isel({dim: before[dim]})
            if has_middle and dim in after:
                high = variable.isel({dim: after[dim]})
                low.data = _middle(low.data, high.data)
            variable = low
    return variable


def _middle(low, high):
    if low.dtype.kind in "iu":
        low, high = low.astype(float), high.astype(float)
    return low + (high - low) / 2


def check(x, name, dims=None):
    if not isinstance(x, xarray.DataArray):
        hint = ""
        if isinstance(x, xarray.Dataset):
            hint = "; its map() pools every variable"
        raise TypeError(f"{name}: expected an xarray.DataArray, got {type(x).__name__}{hint}")
    if dims is not None and x.dims != dims:
        raise ValueError(f"{name}: expected dimensions {dims}, got {x.dims}")
