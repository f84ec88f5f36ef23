"""The types of plans."""

from dataclasses import dataclass
from types import GenericAlias
from typing import Any, Generic, Literal, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeVar

from .. import typing as t
from .base import AdaptiveAxis, Axis, Border, Given, GivenSize, _WindowPlan

_T = TypeVar("_T", bound=np.generic)
_Out = TypeVar("_Out", bound=t.Output)
_OutIndices = TypeVar("_OutIndices", bound=t.Output)
# Whether the plan returns indices: Literal[True] or Literal[False] if that is known.
_WithIndices = TypeVar("_WithIndices", bound=bool, default=bool, covariant=True)

@dataclass(frozen=True, repr=False)
class MxxPoolPlan(_WindowPlan, Generic[_WithIndices]):
    axes: tuple[Axis | AdaptiveAxis, ...]
    borders: tuple[Border, ...]
    activation_params: tuple[float, ...]
    return_indices: _WithIndices
    def __class_getitem__(cls, item: Any, /) -> GenericAlias: ...
    def __post_init__(self) -> None: ...
    @overload
    def __call__(
        self: MxxPoolPlan[Literal[False]],
        x: NDArray[_T],
        out: NDArray[_T] | None = None,
        out_indices: None = None,
    ) -> NDArray[_T]: ...
    @overload
    def __call__(
        self: MxxPoolPlan[Literal[False]],
        x: t.Array,
        out: NDArray[Any] | None = None,
        out_indices: None = None,
    ) -> NDArray[Any]: ...
    @overload
    def __call__(
        self: MxxPoolPlan[Literal[False]],
        x: t.Array,
        out: _Out,
        out_indices: None = None,
    ) -> _Out: ...
    @overload
    def __call__(
        self: MxxPoolPlan[Literal[True]],
        x: NDArray[_T],
        out: NDArray[_T] | None = None,
        out_indices: NDArray[Any] | None = None,
    ) -> tuple[NDArray[_T], NDArray[Any]]: ...
    @overload
    def __call__(
        self: MxxPoolPlan[Literal[True]],
        x: t.Array,
        out: NDArray[Any] | None = None,
        out_indices: NDArray[Any] | None = None,
    ) -> tuple[NDArray[Any], NDArray[Any]]: ...
    @overload
    def __call__(
        self: MxxPoolPlan[Literal[True]],
        x: t.Array,
        out: _Out,
        out_indices: _OutIndices,
    ) -> tuple[_Out, _OutIndices]: ...
    @overload
    def __call__(
        self,
        x: t.Array,
        out: NDArray[Any] | None = None,
        out_indices: NDArray[Any] | None = None,
    ) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]: ...

@dataclass(frozen=True, repr=False)
class AvgPoolPlan(_WindowPlan):
    axes: tuple[Axis | AdaptiveAxis, ...]
    borders: tuple[Border, ...]
    counted: tuple[tuple[int, int], ...] | None
    activation_params: tuple[float, ...]
    def __post_init__(self) -> None: ...
    @overload
    def __call__(self, x: t.Array, out: NDArray[_T]) -> NDArray[_T]: ...
    @overload
    def __call__(self, x: t.Array, out: None = None) -> NDArray[Any]: ...
    @overload
    def __call__(self, x: t.Array, out: _Out) -> _Out: ...

@dataclass(frozen=True, repr=False)
class LpPoolPlan(_WindowPlan):
    axes: tuple[Axis, ...]
    counted: tuple[tuple[int, int], ...] | None
    def __post_init__(self) -> None: ...
    @overload
    def __call__(self, x: NDArray[_T], out: NDArray[_T] | None = None) -> NDArray[_T]: ...
    @overload
    def __call__(self, x: t.Array, out: NDArray[Any] | None = None) -> NDArray[Any]: ...
    @overload
    def __call__(self, x: t.Array, out: _Out) -> _Out: ...

@dataclass(frozen=True)
class UnpoolPlan:
    windows: tuple[tuple[int, int, int], ...]
    def __post_init__(self) -> None: ...
    @property
    def index_planes(self) -> int: ...
    @overload
    def __call__(
        self, x: NDArray[_T], indices: t.Array, out: NDArray[_T] | None = None
    ) -> NDArray[_T]: ...
    @overload
    def __call__(
        self, x: t.Array, indices: t.Array, out: NDArray[Any] | None = None
    ) -> NDArray[Any]: ...
    @overload
    def __call__(self, x: t.Array, indices: t.Array, out: _Out) -> _Out: ...
