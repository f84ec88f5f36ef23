"""The types of fastpool.torch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, overload

from torch import Tensor, nn

_Ints: TypeAlias = int | list[int] | tuple[int, ...]
_Sizes: TypeAlias = int | list[int | None] | tuple[int | None, ...] | None
_Numerics: TypeAlias = Literal["pairwise", "exact", "sequential"]
_Select: TypeAlias = Literal["all", "faster"]

@overload
def max_poolNd(return_indices: Literal[False] = False) -> Tensor: ...
@overload
def max_poolNd(*, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def max_poolNd(*, return_indices: bool) -> Tensor | tuple[Tensor, Tensor]: ...
def avg_poolNd() -> Tensor: ...
def lp_poolNd() -> Tensor: ...
def adaptive_avg_poolNd() -> Tensor: ...
@overload
def adaptive_max_poolNd(return_indices: Literal[False] = False) -> Tensor: ...
@overload
def adaptive_max_poolNd(return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_poolNd(return_indices: bool) -> Tensor | tuple[Tensor, Tensor]: ...
def max_unpoolNd(output_size: list[int] | tuple[int, ...] | None = None) -> Tensor: ...

class MaxPoolNd(nn.MaxPoolNd):
    select: _Select
    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]: ...

class AvgPoolNd(nn.AvgPoolNd):
    select: _Select
    numerics: _Numerics
    def forward(self, input: Tensor) -> Tensor: ...

class LPPoolNd(nn.LPPoolNd):
    select: _Select
    def forward(self, input: Tensor) -> Tensor: ...

class AdaptiveAvgPoolNd(nn.AdaptiveAvgPoolNd):
    select: _Select
    numerics: _Numerics
    def forward(self, input: Tensor) -> Tensor: ...

class AdaptiveMaxPoolNd(nn.AdaptiveMaxPoolNd):
    select: _Select
    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]: ...

class MaxUnpoolNd(nn.MaxUnpoolNd):
    select: _Select
    def forward(
        self,
        input: Tensor,
        indices: Tensor,
        output_size: list[int] | tuple[int, ...] | None = None,
    ) -> Tensor: ...

@dataclass(frozen=True)
class Replaced:
    swapped: dict[str, str]
    left: dict[str, str]
    def explain(self) -> str: ...

def replace_pooling(
    model: nn.Module,
    select: Literal["faster", "all", "none", None] | Callable[[nn.Module], object] = "faster",
) -> Replaced: ...
def restore_pooling(model: nn.Module) -> Replaced: ...
