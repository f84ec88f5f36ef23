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
def global_avg_pool(x: NDArray[_T]) -> NDArray[_T]: ...
@overload
def global_avg_pool(x: _DaskArray) -> _DaskArray: ...
@overload
def global_avg_pool(
    x: t.Array, dtype: type[_T] | np.dtype[_T], out: NDArray[_T] | None = None
) -> NDArray[_T]: ...
@overload
def global_avg_pool(x: t.Array) -> NDArray[Any]: ...
@overload
def global_avg_pool(x: t.Array, out: _Out) -> _Out: ...
@overload
def global_lp_pool(x: NDArray[_T]) -> NDArray[_T]: ...
@overload
def global_lp_pool(x: _DaskArray) -> _DaskArray: ...
@overload
def global_lp_pool(x: t.Array) -> NDArray[Any]: ...
@overload
def global_lp_pool(x: t.Array, out: _Out) -> _Out: ...
@overload
def global_max_pool(
    x: NDArray[_T], return_indices: Literal[False] | None = False, out_indices: None = None
) -> NDArray[_T]: ...
@overload
def global_max_pool(
    x: NDArray[_T],
    return_indices: Literal[True],
    index_dtype: t.Int32,
    out_indices: NDArray[np.int32] | None = None,
) -> tuple[NDArray[_T], NDArray[np.int32]]: ...
@overload
def global_max_pool(
    x: NDArray[_T],
    return_indices: Literal[True],
    index_dtype: t.Int64 | None = "int64",
    out_indices: NDArray[np.int64] | None = None,
) -> tuple[NDArray[_T], NDArray[np.int64]]: ...
@overload
def global_max_pool(x: _DaskArray, return_indices: Literal[False] | None = False) -> _DaskArray: ...
@overload
def global_max_pool(
    x: _DaskArray, return_indices: Literal[True]
) -> tuple[_DaskArray, _DaskArray]: ...
@overload
def global_max_pool(
    x: _DaskArray, return_indices: bool | None
) -> _DaskArray | tuple[_DaskArray, _DaskArray]: ...
@overload
def global_max_pool(
    x: t.Array, return_indices: Literal[False] | None = False, out_indices: None = None
) -> NDArray[Any]: ...
@overload
def global_max_pool(
    x: t.Array, return_indices: Literal[True]
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def global_max_pool(
    x: t.Array,
    *,
    return_indices: Literal[False] | None = False,
    out: _Out,
    out_indices: None = None,
) -> _Out: ...
@overload
def global_max_pool(
    x: t.Array, return_indices: Literal[True], out: _Out, out_indices: _OutIndices
) -> tuple[_Out, _OutIndices]: ...
@overload
def global_max_pool(
    x: t.Array, return_indices: bool | None
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def adaptive_avg_pool(x: NDArray[_T]) -> NDArray[_T]: ...
@overload
def adaptive_avg_pool(x: _DataArray) -> _DataArray: ...
@overload
def adaptive_avg_pool(x: _DaskArray) -> _DaskArray: ...
@overload
def adaptive_avg_pool(
    x: t.Array, dtype: type[_T] | np.dtype[_T], out: NDArray[_T] | None = None
) -> NDArray[_T]: ...
@overload
def adaptive_avg_pool(x: t.Array) -> NDArray[Any]: ...
@overload
def adaptive_avg_pool(x: t.Array, out: _Out) -> _Out: ...
@overload
def adaptive_max_pool(
    x: NDArray[_T], return_indices: Literal[False] | None = False, out_indices: None = None
) -> NDArray[_T]: ...
@overload
def adaptive_max_pool(
    x: NDArray[_T],
    return_indices: Literal[True],
    index_dtype: t.Int32,
    out_indices: NDArray[np.int32] | None = None,
) -> tuple[NDArray[_T], NDArray[np.int32]]: ...
@overload
def adaptive_max_pool(
    x: NDArray[_T],
    return_indices: Literal[True],
    index_dtype: t.Int64 | None = "int64",
    out_indices: NDArray[np.int64] | None = None,
) -> tuple[NDArray[_T], NDArray[np.int64]]: ...
@overload
def adaptive_max_pool(
    x: _DataArray, return_indices: Literal[False] | None = False
) -> _DataArray: ...
@overload
def adaptive_max_pool(
    x: _DataArray, return_indices: Literal[True]
) -> tuple[_DataArray, _DataArray]: ...
@overload
def adaptive_max_pool(
    x: _DataArray, return_indices: bool | None
) -> _DataArray | tuple[_DataArray, _DataArray]: ...
@overload
def adaptive_max_pool(
    x: _DaskArray, return_indices: Literal[False] | None = False
) -> _DaskArray: ...
@overload
def adaptive_max_pool(
    x: _DaskArray, return_indices: Literal[True]
) -> tuple[_DaskArray, _DaskArray]: ...
@overload
def adaptive_max_pool(
    x: _DaskArray, return_indices: bool | None
) -> _DaskArray | tuple[_DaskArray, _DaskArray]: ...
@overload
def adaptive_max_pool(
    x: t.Array, return_indices: Literal[False] | None = False, out_indices: None = None
) -> NDArray[Any]: ...
@overload
def adaptive_max_pool(
    x: t.Array, return_indices: Literal[True]
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def adaptive_max_pool(
    x: t.Array,
    *,
    return_indices: Literal[False] | None = False,
    out: _Out,
    out_indices: None = None,
) -> _Out: ...
@overload
def adaptive_max_pool(
    x: t.Array, return_indices: Literal[True], out: _Out, out_indices: _OutIndices
) -> tuple[_Out, _OutIndices]: ...
@overload
def adaptive_max_pool(
    x: t.Array, return_indices: bool | None
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...
def plan_global_avg_pool(input_shape: t.Counts) -> AvgPoolPlan: ...
def plan_global_lp_pool(input_shape: t.Counts) -> LpPoolPlan: ...
@overload
def plan_global_max_pool(
    input_shape: t.Counts, return_indices: Literal[False] | None = False
) -> MaxPoolPlan[Literal[False]]: ...
@overload
def plan_global_max_pool(
    input_shape: t.Counts, return_indices: Literal[True]
) -> MaxPoolPlan[Literal[True]]: ...
@overload
def plan_global_max_pool(
    input_shape: t.Counts, return_indices: bool | None
) -> MaxPoolPlan[bool]: ...
def plan_adaptive_avg_pool(input_shape: t.Counts) -> AvgPoolPlan: ...
@overload
def plan_adaptive_max_pool(
    input_shape: t.Counts, return_indices: Literal[False] | None = False
) -> MaxPoolPlan[Literal[False]]: ...
@overload
def plan_adaptive_max_pool(
    input_shape: t.Counts, return_indices: Literal[True]
) -> MaxPoolPlan[Literal[True]]: ...
@overload
def plan_adaptive_max_pool(
    input_shape: t.Counts, return_indices: bool | None
) -> MaxPoolPlan[bool]: ...
