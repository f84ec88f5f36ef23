"""The types of plans."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import GenericAlias
from typing import Any, Generic, Literal, NamedTuple, Self, overload, type_check_only

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from typing_extensions import TypeVar

from .. import typing as t
from .._planning.parts import Tile

_T = TypeVar("_T", bound=np.generic)
_Out = TypeVar("_Out", bound=t.Output)
_OutIndices = TypeVar("_OutIndices", bound=t.Output)
# Whether the plan returns indices: Literal[True] or Literal[False] if that is known.
_WithIndices = TypeVar("_WithIndices", bound=bool, default=bool, covariant=True)

class Given(NamedTuple):
    pads: tuple[int, ...]

class GivenSize(NamedTuple):
    output_size: tuple[int, ...]

class Border(NamedTuple):
    mode: str

class Axis(NamedTuple):
    @property
    def extent(self) -> int: ...
    def span(self, outputs: int) -> int: ...
    def starting_before(self, place: int) -> int: ...
    def ending_by(self, place: int) -> int: ...
    def window(self, output: int) -> tuple[int, int]: ...

class AdaptiveAxis(NamedTuple):
    @property
    def kernel(self) -> int: ...
    @property
    def stride(self) -> int: ...
    @property
    def dilation(self) -> int: ...
    @property
    def begin(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def extent(self) -> int: ...
    def span(self, outputs: int) -> int: ...
    def starting_before(self, place: int) -> int: ...
    def ending_by(self, place: int) -> int: ...
    def window(self, output: int) -> tuple[int, int]: ...
    def checked(self) -> AdaptiveAxis: ...

@type_check_only
class _Pooled:
    """Properties of all plans of poolings over windows."""

    @property
    def kernel_shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dilations(self) -> tuple[int, ...]: ...
    @property
    def pads(self) -> tuple[int, ...]: ...
    @property
    def border(self) -> str | tuple[str, ...]: ...
    @property
    def border_value(self) -> float | None: ...
    @property
    def batch_axis(self) -> int: ...
    @property
    def channel_axis(self) -> int: ...
    @property
    def spatial(self) -> tuple[int, ...]: ...

class _WindowPlan(_Pooled):
    def explain(self, *, verbose: bool = False) -> str: ...
    def draw(
        self,
        *,
        axes: str | Sequence[str] | None = None,
        title: str | None = None,
        width: float | None = None,
    ) -> Figure: ...
    def _repr_html_(self) -> str | None: ...
    def tile(self, outputs: tuple[slice, ...]) -> Tile[Self]: ...

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
