"""The types of fastpool.torch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, overload

from torch import Tensor, nn

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "Replaced",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "replace_pooling",
    "restore_pooling",
]

_Ints: TypeAlias = int | list[int] | tuple[int, ...]
_Sizes: TypeAlias = int | list[int | None] | tuple[int | None, ...] | None
_Numerics: TypeAlias = Literal["exact", "sequential"]
_Select: TypeAlias = Literal["all", "faster"]

@overload
def max_pool1d(
    input: Tensor,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool1d(
    input: Tensor,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool1d(
    input: Tensor,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    ceil_mode: bool = False,
    *,
    return_indices: bool,
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    ceil_mode: bool = False,
    *,
    return_indices: bool,
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def max_pool3d(
    input: Tensor,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool3d(
    input: Tensor,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool3d(
    input: Tensor,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    padding: _Ints = 0,
    dilation: _Ints = 1,
    ceil_mode: bool = False,
    *,
    return_indices: bool,
) -> Tensor | tuple[Tensor, Tensor]: ...
def avg_pool1d(
    input: Tensor,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    padding: _Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    *,
    numerics: _Numerics = "exact",
) -> Tensor: ...
def avg_pool2d(
    input: Tensor,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    padding: _Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    numerics: _Numerics = "exact",
) -> Tensor: ...
def avg_pool3d(
    input: Tensor,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    padding: _Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    numerics: _Numerics = "exact",
) -> Tensor: ...
def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor: ...
def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor: ...
def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor: ...
def adaptive_avg_pool1d(
    input: Tensor, output_size: _Sizes, *, numerics: _Numerics = "exact"
) -> Tensor: ...
def adaptive_avg_pool2d(
    input: Tensor, output_size: _Sizes, *, numerics: _Numerics = "exact"
) -> Tensor: ...
def adaptive_avg_pool3d(
    input: Tensor, output_size: _Sizes, *, numerics: _Numerics = "exact"
) -> Tensor: ...
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: _Sizes, return_indices: Literal[False] = False
) -> Tensor: ...
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: _Sizes, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: _Sizes, return_indices: bool
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: _Sizes, return_indices: Literal[False] = False
) -> Tensor: ...
@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: _Sizes, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: _Sizes, return_indices: bool
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: _Sizes, return_indices: Literal[False] = False
) -> Tensor: ...
@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: _Sizes, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: _Sizes, return_indices: bool
) -> Tensor | tuple[Tensor, Tensor]: ...
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    padding: _Ints = 0,
    output_size: list[int] | tuple[int, ...] | None = None,
) -> Tensor: ...
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    padding: _Ints = 0,
    output_size: list[int] | tuple[int, ...] | None = None,
) -> Tensor: ...
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: _Ints,
    stride: _Ints | None = None,
    padding: _Ints = 0,
    output_size: list[int] | tuple[int, ...] | None = None,
) -> Tensor: ...

class MaxPool1d(nn.MaxPool1d):
    select: _Select
    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]: ...

class MaxPool2d(nn.MaxPool2d):
    select: _Select
    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]: ...

class MaxPool3d(nn.MaxPool3d):
    select: _Select
    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]: ...

class AvgPool1d(nn.AvgPool1d):
    select: _Select
    numerics: _Numerics
    def forward(self, input: Tensor) -> Tensor: ...

class AvgPool2d(nn.AvgPool2d):
    select: _Select
    numerics: _Numerics
    def forward(self, input: Tensor) -> Tensor: ...

class AvgPool3d(nn.AvgPool3d):
    select: _Select
    numerics: _Numerics
    def forward(self, input: Tensor) -> Tensor: ...

class LPPool1d(nn.LPPool1d):
    select: _Select
    def forward(self, input: Tensor) -> Tensor: ...

class LPPool2d(nn.LPPool2d):
    select: _Select
    def forward(self, input: Tensor) -> Tensor: ...

class LPPool3d(nn.LPPool3d):
    select: _Select
    def forward(self, input: Tensor) -> Tensor: ...

class AdaptiveAvgPool1d(nn.AdaptiveAvgPool1d):
    select: _Select
    numerics: _Numerics
    def forward(self, input: Tensor) -> Tensor: ...

class AdaptiveAvgPool2d(nn.AdaptiveAvgPool2d):
    select: _Select
    numerics: _Numerics
    def forward(self, input: Tensor) -> Tensor: ...

class AdaptiveAvgPool3d(nn.AdaptiveAvgPool3d):
    select: _Select
    numerics: _Numerics
    def forward(self, input: Tensor) -> Tensor: ...

class AdaptiveMaxPool1d(nn.AdaptiveMaxPool1d):
    select: _Select
    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]: ...

class AdaptiveMaxPool2d(nn.AdaptiveMaxPool2d):
    select: _Select
    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]: ...

class AdaptiveMaxPool3d(nn.AdaptiveMaxPool3d):
    select: _Select
    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]: ...

class MaxUnpool1d(nn.MaxUnpool1d):
    select: _Select
    def forward(
        self,
        input: Tensor,
        indices: Tensor,
        output_size: list[int] | tuple[int, ...] | None = None,
    ) -> Tensor: ...

class MaxUnpool2d(nn.MaxUnpool2d):
    select: _Select
    def forward(
        self,
        input: Tensor,
        indices: Tensor,
        output_size: list[int] | tuple[int, ...] | None = None,
    ) -> Tensor: ...

class MaxUnpool3d(nn.MaxUnpool3d):
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
    *,
    select: Literal["faster", "all", "none", None] | Callable[[nn.Module], object] = "faster",
) -> Replaced: ...
def restore_pooling(model: nn.Module) -> Replaced: ...
