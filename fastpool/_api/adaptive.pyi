"""The types of global and adaptive pooling."""

from collections.abc import Mapping
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray
from typing_extensions import TypeVar

from .. import typing as t
from .._plans import AvgPoolPlan, LpPoolPlan, MaxPoolPlan

_T = TypeVar("_T", bound=np.generic)
# An output that is no NumPy array.
_Out = TypeVar("_Out", bound=t.Output)
_OutIndices = TypeVar("_OutIndices", bound=t.Output)
_DataArray = TypeVar("_DataArray", bound=t.DataArray)
_DaskArray = TypeVar("_DaskArray", bound=t.DaskArray)

@overload
def global_avg_pool(
    x: NDArray[_T],
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    dtype: None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    out: NDArray[_T] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_T]: ...
@overload
def global_avg_pool(
    x: _DaskArray,
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    dtype: DTypeLike | None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    num_threads: SupportsIndex | None = None,
) -> _DaskArray: ...
@overload
def global_avg_pool(
    x: t.Array,
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    dtype: type[_T] | np.dtype[_T],
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    out: NDArray[_T] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_T]: ...
@overload
def global_avg_pool(
    x: t.Array,
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    dtype: DTypeLike | None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    out: NDArray[Any] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[Any]: ...
@overload
def global_avg_pool(
    x: t.Array,
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    dtype: DTypeLike | None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    out: _Out,
    num_threads: SupportsIndex | None = None,
) -> _Out: ...
@overload
def global_lp_pool(
    x: NDArray[_T],
    p: float | None = 2,
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    out: NDArray[_T] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_T]: ...
@overload
def global_lp_pool(
    x: _DaskArray,
    p: float | None = 2,
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    num_threads: SupportsIndex | None = None,
) -> _DaskArray: ...
@overload
def global_lp_pool(
    x: t.Array,
    p: float | None = 2,
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    out: NDArray[Any] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[Any]: ...
@overload
def global_lp_pool(
    x: t.Array,
    p: float | None = 2,
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    out: _Out,
    num_threads: SupportsIndex | None = None,
) -> _Out: ...
@overload
def global_max_pool(
    x: NDArray[_T],
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    return_indices: Literal[False] | None = False,
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    out: NDArray[_T] | None = None,
    out_indices: None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_T]: ...
@overload
def global_max_pool(
    x: NDArray[_T],
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    return_indices: Literal[True],
    index_axis: SupportsIndex | None = 0,
    index_dtype: t.Int32,
    index_layout: t.IndexLayout = "NCHW",
    out: NDArray[_T] | None = None,
    out_indices: NDArray[np.int32] | None = None,
    num_threads: SupportsIndex | None = None,
) -> tuple[NDArray[_T], NDArray[np.int32]]: ...
@overload
def global_max_pool(
    x: NDArray[_T],
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    return_indices: Literal[True],
    index_axis: SupportsIndex | None = 0,
    index_dtype: t.Int64 | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    out: NDArray[_T] | None = None,
    out_indices: NDArray[np.int64] | None = None,
    num_threads: SupportsIndex | None = None,
) -> tuple[NDArray[_T], NDArray[np.int64]]: ...
@overload
def global_max_pool(
    x: _DaskArray,
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    return_indices: Literal[False] | None = False,
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    num_threads: SupportsIndex | None = None,
) -> _DaskArray: ...
@overload
def global_max_pool(
    x: _DaskArray,
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    return_indices: Literal[True],
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    num_threads: SupportsIndex | None = None,
) -> tuple[_DaskArray, _DaskArray]: ...
@overload
def global_max_pool(
    x: _DaskArray,
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    return_indices: bool | None,
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    num_threads: SupportsIndex | None = None,
) -> _DaskArray | tuple[_DaskArray, _DaskArray]: ...
@overload
def global_max_pool(
    x: t.Array,
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    return_indices: Literal[False] | None = False,
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    out: NDArray[Any] | None = None,
    out_indices: None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[Any]: ...
@overload
def global_max_pool(
    x: t.Array,
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    return_indices: Literal[True],
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    out: NDArray[Any] | None = None,
    out_indices: NDArray[Any] | None = None,
    num_threads: SupportsIndex | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def global_max_pool(
    x: t.Array,
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    return_indices: Literal[False] | None = False,
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    out: _Out,
    out_indices: None = None,
    num_threads: SupportsIndex | None = None,
) -> _Out: ...
@overload
def global_max_pool(
    x: t.Array,
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    return_indices: Literal[True],
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    out: _Out,
    out_indices: _OutIndices,
    num_threads: SupportsIndex | None = None,
) -> tuple[_Out, _OutIndices]: ...
@overload
def global_max_pool(
    x: t.Array,
    *,
    layout: t.Layout = "NCHW",
    keepdims: t.KeepDims = True,
    nan: t.Nan = "propagate",
    return_indices: bool | None,
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    out: NDArray[Any] | None = None,
    out_indices: NDArray[Any] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def adaptive_avg_pool(
    x: NDArray[_T],
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    dtype: None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    out: NDArray[_T] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_T]: ...
@overload
def adaptive_avg_pool(
    x: _DataArray,
    output_size: Mapping[Any, SupportsIndex | None],
    *,
    dtype: DTypeLike | None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    num_threads: SupportsIndex | None = None,
) -> _DataArray: ...
@overload
def adaptive_avg_pool(
    x: _DaskArray,
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    dtype: DTypeLike | None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    num_threads: SupportsIndex | None = None,
) -> _DaskArray: ...
@overload
def adaptive_avg_pool(
    x: t.Array,
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    dtype: type[_T] | np.dtype[_T],
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    out: NDArray[_T] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_T]: ...
@overload
def adaptive_avg_pool(
    x: t.Array,
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    dtype: DTypeLike | None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    out: NDArray[Any] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[Any]: ...
@overload
def adaptive_avg_pool(
    x: t.Array,
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    dtype: DTypeLike | None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    out: _Out,
    num_threads: SupportsIndex | None = None,
) -> _Out: ...
@overload
def adaptive_max_pool(
    x: NDArray[_T],
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    nan: t.Nan = "propagate",
    return_indices: Literal[False] | None = False,
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    out: NDArray[_T] | None = None,
    out_indices: None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_T]: ...
@overload
def adaptive_max_pool(
    x: NDArray[_T],
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    nan: t.Nan = "propagate",
    return_indices: Literal[True],
    index_axis: SupportsIndex | None = 0,
    index_dtype: t.Int32,
    index_layout: t.IndexLayout = "NCHW",
    out: NDArray[_T] | None = None,
    out_indices: NDArray[np.int32] | None = None,
    num_threads: SupportsIndex | None = None,
) -> tuple[NDArray[_T], NDArray[np.int32]]: ...
@overload
def adaptive_max_pool(
    x: NDArray[_T],
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    nan: t.Nan = "propagate",
    return_indices: Literal[True],
    index_axis: SupportsIndex | None = 0,
    index_dtype: t.Int64 | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    out: NDArray[_T] | None = None,
    out_indices: NDArray[np.int64] | None = None,
    num_threads: SupportsIndex | None = None,
) -> tuple[NDArray[_T], NDArray[np.int64]]: ...
@overload
def adaptive_max_pool(
    x: _DataArray,
    output_size: Mapping[Any, SupportsIndex | None],
    *,
    nan: t.Nan = "propagate",
    return_indices: Literal[False] | None = False,
    index_dtype: DTypeLike | None = "int64",
    num_threads: SupportsIndex | None = None,
) -> _DataArray: ...
@overload
def adaptive_max_pool(
    x: _DataArray,
    output_size: Mapping[Any, SupportsIndex | None],
    *,
    nan: t.Nan = "propagate",
    return_indices: Literal[True],
    index_dtype: DTypeLike | None = "int64",
    num_threads: SupportsIndex | None = None,
) -> tuple[_DataArray, _DataArray]: ...
@overload
def adaptive_max_pool(
    x: _DataArray,
    output_size: Mapping[Any, SupportsIndex | None],
    *,
    nan: t.Nan = "propagate",
    return_indices: bool | None,
    index_dtype: DTypeLike | None = "int64",
    num_threads: SupportsIndex | None = None,
) -> _DataArray | tuple[_DataArray, _DataArray]: ...
@overload
def adaptive_max_pool(
    x: _DaskArray,
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    nan: t.Nan = "propagate",
    return_indices: Literal[False] | None = False,
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    num_threads: SupportsIndex | None = None,
) -> _DaskArray: ...
@overload
def adaptive_max_pool(
    x: _DaskArray,
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    nan: t.Nan = "propagate",
    return_indices: Literal[True],
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    num_threads: SupportsIndex | None = None,
) -> tuple[_DaskArray, _DaskArray]: ...
@overload
def adaptive_max_pool(
    x: _DaskArray,
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    nan: t.Nan = "propagate",
    return_indices: bool | None,
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    num_threads: SupportsIndex | None = None,
) -> _DaskArray | tuple[_DaskArray, _DaskArray]: ...
@overload
def adaptive_max_pool(
    x: t.Array,
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    nan: t.Nan = "propagate",
    return_indices: Literal[False] | None = False,
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    out: NDArray[Any] | None = None,
    out_indices: None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[Any]: ...
@overload
def adaptive_max_pool(
    x: t.Array,
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    nan: t.Nan = "propagate",
    return_indices: Literal[True],
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    out: NDArray[Any] | None = None,
    out_indices: NDArray[Any] | None = None,
    num_threads: SupportsIndex | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def adaptive_max_pool(
    x: t.Array,
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    nan: t.Nan = "propagate",
    return_indices: Literal[False] | None = False,
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    out: _Out,
    out_indices: None = None,
    num_threads: SupportsIndex | None = None,
) -> _Out: ...
@overload
def adaptive_max_pool(
    x: t.Array,
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    nan: t.Nan = "propagate",
    return_indices: Literal[True],
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    out: _Out,
    out_indices: _OutIndices,
    num_threads: SupportsIndex | None = None,
) -> tuple[_Out, _OutIndices]: ...
@overload
def adaptive_max_pool(
    x: t.Array,
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    nan: t.Nan = "propagate",
    return_indices: bool | None,
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    out: NDArray[Any] | None = None,
    out_indices: NDArray[Any] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def plan_global_avg_pool(
    input_shape: t.Counts,
    dtype: DTypeLike,
    *,
    layout: t.Layout = "NCHW",
    result_dtype: DTypeLike | None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    num_threads: SupportsIndex | None = None,
) -> AvgPoolPlan: ...
def plan_global_lp_pool(
    input_shape: t.Counts,
    dtype: DTypeLike,
    p: float | None = 2,
    *,
    layout: t.Layout = "NCHW",
    nan: t.Nan = "propagate",
    num_threads: SupportsIndex | None = None,
) -> LpPoolPlan: ...
@overload
def plan_global_max_pool(
    input_shape: t.Counts,
    dtype: DTypeLike,
    *,
    layout: t.Layout = "NCHW",
    nan: t.Nan = "propagate",
    return_indices: Literal[False] | None = False,
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    num_threads: SupportsIndex | None = None,
) -> MaxPoolPlan[Literal[False]]: ...
@overload
def plan_global_max_pool(
    input_shape: t.Counts,
    dtype: DTypeLike,
    *,
    layout: t.Layout = "NCHW",
    nan: t.Nan = "propagate",
    return_indices: Literal[True],
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    num_threads: SupportsIndex | None = None,
) -> MaxPoolPlan[Literal[True]]: ...
@overload
def plan_global_max_pool(
    input_shape: t.Counts,
    dtype: DTypeLike,
    *,
    layout: t.Layout = "NCHW",
    nan: t.Nan = "propagate",
    return_indices: bool | None,
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    num_threads: SupportsIndex | None = None,
) -> MaxPoolPlan[bool]: ...
def plan_adaptive_avg_pool(
    input_shape: t.Counts,
    dtype: DTypeLike,
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    result_dtype: DTypeLike | None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    num_threads: SupportsIndex | None = None,
) -> AvgPoolPlan: ...
@overload
def plan_adaptive_max_pool(
    input_shape: t.Counts,
    dtype: DTypeLike,
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    nan: t.Nan = "propagate",
    return_indices: Literal[False] | None = False,
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    num_threads: SupportsIndex | None = None,
) -> MaxPoolPlan[Literal[False]]: ...
@overload
def plan_adaptive_max_pool(
    input_shape: t.Counts,
    dtype: DTypeLike,
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    nan: t.Nan = "propagate",
    return_indices: Literal[True],
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    num_threads: SupportsIndex | None = None,
) -> MaxPoolPlan[Literal[True]]: ...
@overload
def plan_adaptive_max_pool(
    input_shape: t.Counts,
    dtype: DTypeLike,
    output_size: t.OutputSize,
    *,
    layout: t.Layout = "NCHW",
    nan: t.Nan = "propagate",
    return_indices: bool | None,
    index_axis: SupportsIndex | None = 0,
    index_dtype: DTypeLike | None = "int64",
    index_layout: t.IndexLayout = "NCHW",
    num_threads: SupportsIndex | None = None,
) -> MaxPoolPlan[bool]: ...
