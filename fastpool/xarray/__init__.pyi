"""The types of fastpool.xarray."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Literal, SupportsIndex, overload

from numpy.typing import DTypeLike
from xarray import DataArray

from .. import typing as t

__all__ = [
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "avg_pool",
    "global_avg_pool",
    "global_lp_pool",
    "global_max_pool",
    "labels",
    "lp_pool",
    "max_pool",
    "max_unpool",
]

@overload
def max_pool(
    x: DataArray,
    kernel_shape: Mapping[Any, SupportsIndex],
    *,
    strides: t.StridesByDimension | None = 1,
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
    strides: t.StridesByDimension | None = 1,
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
    strides: t.StridesByDimension | None = 1,
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
def avg_pool(
    x: DataArray,
    kernel_shape: Mapping[Any, SupportsIndex],
    *,
    strides: t.StridesByDimension | None = 1,
    pads: t.PadsByDimension | None = 0,
    dilations: t.ByDimension | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    ceil_rule: t.CeilRule = "clip",
    count_include_pad: t.CountIncludePad = False,
    beyond: t.Beyond = "drop",
    divisor: SupportsIndex | None = None,
    dtype: DTypeLike | None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    num_threads: SupportsIndex | None = None,
) -> DataArray: ...
def global_avg_pool(
    x: DataArray,
    dims: Hashable | Iterable[Hashable],
    *,
    keepdims: t.KeepDims = True,
    dtype: DTypeLike | None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    num_threads: SupportsIndex | None = None,
) -> DataArray: ...
def lp_pool(
    x: DataArray,
    kernel_shape: Mapping[Any, SupportsIndex],
    p: float | None = 2,
    *,
    strides: t.StridesByDimension | None = 1,
    pads: t.PadsByDimension | None = 0,
    dilations: t.ByDimension | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    ceil_rule: t.CeilRule = "clip",
    partial: t.Partial = "sum",
    nan: t.Nan = "propagate",
    num_threads: SupportsIndex | None = None,
) -> DataArray: ...
def global_lp_pool(
    x: DataArray,
    dims: Hashable | Iterable[Hashable],
    p: float | None = 2,
    *,
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    num_threads: SupportsIndex | None = None,
) -> DataArray: ...
@overload
def global_max_pool(
    x: DataArray,
    dims: Hashable | Iterable[Hashable],
    *,
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    return_indices: Literal[False] | None = False,
    index_dtype: DTypeLike | None = "int64",
    num_threads: SupportsIndex | None = None,
) -> DataArray: ...
@overload
def global_max_pool(
    x: DataArray,
    dims: Hashable | Iterable[Hashable],
    *,
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    return_indices: Literal[True],
    index_dtype: DTypeLike | None = "int64",
    num_threads: SupportsIndex | None = None,
) -> tuple[DataArray, DataArray]: ...
@overload
def global_max_pool(
    x: DataArray,
    dims: Hashable | Iterable[Hashable],
    *,
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    return_indices: bool | None,
    index_dtype: DTypeLike | None = "int64",
    num_threads: SupportsIndex | None = None,
) -> DataArray | tuple[DataArray, DataArray]: ...
def adaptive_avg_pool(
    x: DataArray,
    output_size: Mapping[Any, SupportsIndex | None],
    *,
    dtype: DTypeLike | None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    num_threads: SupportsIndex | None = None,
) -> DataArray: ...
@overload
def adaptive_max_pool(
    x: DataArray,
    output_size: Mapping[Any, SupportsIndex | None],
    *,
    nan: t.Nan = "propagate",
    return_indices: Literal[False] | None = False,
    index_dtype: DTypeLike | None = "int64",
    num_threads: SupportsIndex | None = None,
) -> DataArray: ...
@overload
def adaptive_max_pool(
    x: DataArray,
    output_size: Mapping[Any, SupportsIndex | None],
    *,
    nan: t.Nan = "propagate",
    return_indices: Literal[True],
    index_dtype: DTypeLike | None = "int64",
    num_threads: SupportsIndex | None = None,
) -> tuple[DataArray, DataArray]: ...
@overload
def adaptive_max_pool(
    x: DataArray,
    output_size: Mapping[Any, SupportsIndex | None],
    *,
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
    strides: t.StridesByDimension | None = 1,
    pads: t.PadsByDimension | None = 0,
    like: DataArray | None = None,
    num_threads: SupportsIndex | None = None,
) -> DataArray: ...
def labels(indices: DataArray, x: DataArray, dim: Hashable) -> DataArray: ...
