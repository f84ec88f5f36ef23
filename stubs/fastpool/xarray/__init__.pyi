"""The types of fastpool.xarray."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Generic, Literal, SupportsIndex, TypeAlias, TypeVar, overload

from numpy.typing import DTypeLike
from xarray import DataArray, Dataset

from .. import typing as t

_Object = TypeVar("_Object", DataArray, Dataset)
_Boundary: TypeAlias = Literal["exact", "trim", "pad"]
_Side: TypeAlias = Literal["left", "right"]
_Windows: TypeAlias = Mapping[Any, SupportsIndex] | None
_CoordFunc: TypeAlias = str | Callable[..., Any]

@overload
def mxx_pool(return_indices: Literal[False] | None = False) -> DataArray: ...
@overload
def mxx_pool(return_indices: Literal[True]) -> tuple[DataArray, DataArray]: ...
@overload
def mxx_pool(return_indices: bool | None) -> DataArray | tuple[DataArray, DataArray]: ...
def avg_pool() -> DataArray: ...
def global_avg_pool() -> DataArray: ...
def lp_pool() -> DataArray: ...
def global_lp_pool() -> DataArray: ...
@overload
def global_mxx_pool(return_indices: Literal[False] | None = False) -> DataArray: ...
@overload
def global_mxx_pool(return_indices: Literal[True]) -> tuple[DataArray, DataArray]: ...
@overload
def global_mxx_pool(return_indices: bool | None) -> DataArray | tuple[DataArray, DataArray]: ...
def adaptive_avg_pool() -> DataArray: ...
@overload
def adaptive_mxx_pool(return_indices: Literal[False] | None = False) -> DataArray: ...
@overload
def adaptive_mxx_pool(return_indices: Literal[True]) -> tuple[DataArray, DataArray]: ...
@overload
def adaptive_mxx_pool(return_indices: bool | None) -> DataArray | tuple[DataArray, DataArray]: ...
def max_unpool(like: DataArray | None = None) -> DataArray: ...
def labels(dim: Hashable) -> DataArray: ...
def coarsen(
    obj: _Object,
    dim: _Windows = None,
    *,
    boundary: _Boundary | Mapping[Any, _Boundary] = "exact",
    side: _Side | Mapping[Any, _Side] = "left",
    coord_func: _CoordFunc | Mapping[Any, _CoordFunc] = "mean",
    **windows: SupportsIndex,
) -> Coarsen[_Object]: ...
def rolling(
    obj: _Object,
    dim: _Windows = None,
    *,
    min_periods: SupportsIndex | None = None,
    center: bool | Mapping[Any, bool] = False,
    **windows: SupportsIndex,
) -> Rolling[_Object]: ...

class Coarsen(Generic[_Object]):
    def __init__(
        self,
        obj: _Object,
        dim: _Windows,
        windows: Mapping[str, SupportsIndex],
        boundary: _Boundary | Mapping[Any, _Boundary],
        side: _Side | Mapping[Any, _Side],
        coord_func: _CoordFunc | Mapping[Any, _CoordFunc],
    ) -> None: ...
    def max(
        self,
        *,
        skipna: bool | None = None,
        min_count: SupportsIndex | None = None,
        keep_attrs: bool | None = None,
    ) -> _Object: ...
    def min(
        self,
        *,
        skipna: bool | None = None,
        min_count: SupportsIndex | None = None,
        keep_attrs: bool | None = None,
    ) -> _Object: ...
    def mean(
        self,
        *,
        skipna: bool | None = None,
        min_count: SupportsIndex | None = None,
        numerics: t.Numerics = "pairwise",
        keep_attrs: bool | None = None,
    ) -> _Object: ...
    def sum(
        self,
        *,
        skipna: bool | None = None,
        min_count: SupportsIndex | None = None,
        numerics: t.Numerics = "pairwise",
        keep_attrs: bool | None = None,
    ) -> _Object: ...
    def std(
        self,
        *,
        skipna: bool | None = None,
        min_count: SupportsIndex | None = None,
        ddof: SupportsIndex = 0,
        keep_attrs: bool | None = None,
    ) -> _Object: ...
    def var(
        self,
        *,
        skipna: bool | None = None,
        min_count: SupportsIndex | None = None,
        ddof: SupportsIndex = 0,
        keep_attrs: bool | None = None,
    ) -> _Object: ...
    def median(
        self,
        *,
        skipna: bool | None = None,
        min_count: SupportsIndex | None = None,
        keep_attrs: bool | None = None,
    ) -> _Object: ...
    def count(self, *, keep_attrs: bool | None = None) -> _Object: ...

class Rolling(Generic[_Object]):
    def __init__(
        self,
        obj: _Object,
        dim: _Windows,
        windows: Mapping[str, SupportsIndex],
        min_periods: SupportsIndex | None,
        center: bool | Mapping[Any, bool],
    ) -> None: ...
    def max(self, *, keep_attrs: bool | None = None) -> _Object: ...
    def min(self, *, keep_attrs: bool | None = None) -> _Object: ...
    def mean(
        self, *, numerics: t.Numerics = "pairwise", keep_attrs: bool | None = None
    ) -> _Object: ...
    def sum(
        self, *, numerics: t.Numerics = "pairwise", keep_attrs: bool | None = None
    ) -> _Object: ...
    def count(self, *, keep_attrs: bool | None = None) -> _Object: ...
