"""The types of average pooling."""

from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray
from typing_extensions import TypeVar

from .. import typing as t
from .._plans import AvgPoolPlan

_T = TypeVar("_T", bound=np.generic)
# An output that is no NumPy array.
_Out = TypeVar("_Out", bound=t.Output)
_DataArray = TypeVar("_DataArray", bound=t.DataArray)
_DaskArray = TypeVar("_DaskArray", bound=t.DaskArray)

@overload
def avg_pool(x: NDArray[_T]) -> NDArray[_T]: ...
@overload
def avg_pool(x: _DataArray) -> _DataArray: ...
@overload
def avg_pool(x: _DaskArray) -> _DaskArray: ...
@overload
def avg_pool(
    x: t.Array, dtype: type[_T] | np.dtype[_T], out: NDArray[_T] | None = None
) -> NDArray[_T]: ...
@overload
def avg_pool(x: t.Array) -> NDArray[Any]: ...
@overload
def avg_pool(x: t.Array, out: _Out) -> _Out: ...
def plan_avg_pool(input_shape: t.Counts) -> AvgPoolPlan: ...
