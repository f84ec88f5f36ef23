"""The types of fastpool.xarray."""

from collections.abc import Hashable, Mapping
from typing import Any, Literal, SupportsIndex, overload

from numpy.typing import DTypeLike
from xarray import DataArray

from . import _typing as t

__all__ = ["labels", "max_pool", "max_unpool"]

@overload
def max_pool(
    x: DataArray,
    kernel_shape: Mapping[Any, SupportsIndex],
    *,
    strides: t.ByDimension | None = 1,
    pads: t.PadsByDimension | None = 0,
    dilations: t.ByDimension | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    ceil_rule: t.CeilRule = "clip",
    nan: t.Nan = "propagate",
    return_indices: Literal[False] | None = False,
    index_dtype: DTypeLike | None = "int64",
    num_threads: SupportsIndex | None = None,
) -> DataArray: ...
@overload
def max_pool(
    x: DataArray,
    kernel_shape: Mapping[Any, SupportsIndex],
    *,
    strides: t.ByDimension | None = 1,
    pads: t.PadsByDimension | None = 0,
    dilations: t.ByDimension | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    ceil_rule: t.CeilRule = "clip",
    nan: t.Nan = "propagate",
    return_indices: Literal[True],
    index_dtype: DTypeLike | None = "int64",
    num_threads: SupportsIndex | None = None,
) -> tuple[DataArray, DataArray]: ...
@overload
def max_pool(
    x: DataArray,
    kernel_shape: Mapping[Any, SupportsIndex],
    *,
    strides: t.ByDimension | None = 1,
    pads: t.PadsByDimension | None = 0,
    dilations: t.ByDimension | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    ceil_rule: t.CeilRule = "clip",
    nan: t.Nan = "propagate",
    return_indices: bool | None,
    index_dtype: DTypeLike | None = "int64",
    num_threads: SupportsIndex | None = None,
) -> DataArray | tuple[DataArray, DataArray]: ...
def max_unpool(
    x: DataArray,
    indices: DataArray,
    kernel_shape: Mapping[Any, SupportsIndex],
    *,
    strides: t.ByDimension | None = 1,
    pads: t.PadsByDimension | None = 0,
    like: DataArray | None = None,
    num_threads: SupportsIndex | None = None,
) -> DataArray: ...
def labels(indices: DataArray, x: DataArray, dim: Hashable) -> DataArray: ...
