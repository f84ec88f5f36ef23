"""The types of Lp pooling."""

from collections.abc import Mapping
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray
from typing_extensions import TypeVar

from .. import typing as t
from .._plans import LpPoolPlan

_T = TypeVar("_T", bound=np.generic)
# An output that is no NumPy array.
_Out = TypeVar("_Out", bound=t.Output)
_DataArray = TypeVar("_DataArray", bound=t.DataArray)
_DaskArray = TypeVar("_DaskArray", bound=t.DaskArray)

@overload
def lp_pool(x: NDArray[_T]) -> NDArray[_T]: ...
@overload
def lp_pool(x: _DataArray) -> _DataArray: ...
@overload
def lp_pool(x: _DaskArray) -> _DaskArray: ...
@overload
def lp_pool(x: t.Array) -> NDArray[Any]: ...
@overload
def lp_pool(x: t.Array, out: _Out) -> _Out: ...
def plan_lp_pool(input_shape: t.Counts) -> LpPoolPlan: ...
