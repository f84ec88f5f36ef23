"""The types of reductions of blocks."""

from typing import Any, Literal, SupportsIndex, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray
from typing_extensions import TypeVar

from .. import typing as t

_Out = TypeVar("_Out", bound=t.Output)
_DaskArray = TypeVar("_DaskArray", bound=t.DaskArray)

@overload
def block_reduce(x: _DaskArray, return_counts: Literal[False] = False) -> _DaskArray: ...
@overload
def block_reduce(x: _DaskArray, return_counts: Literal[True]) -> tuple[_DaskArray, _DaskArray]: ...
@overload
def block_reduce(
    x: t.Array, return_counts: Literal[False] = False, out: None = None
) -> NDArray[Any]: ...
@overload
def block_reduce(
    x: t.Array, return_counts: Literal[True], out: None = None
) -> tuple[NDArray[Any], NDArray[np.int64]]: ...
@overload
def block_reduce(x: t.Array, return_counts: Literal[False] = False, *, out: _Out) -> _Out: ...
@overload
def pyramid(x: _DaskArray) -> list[_DaskArray]: ...
@overload
def pyramid(x: t.Array) -> list[NDArray[Any]]: ...
