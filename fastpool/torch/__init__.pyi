"""The types of fastpool.torch."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, overload

from torch import Tensor, nn

__all__ = [
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "Replaced",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "replace_pooling",
]

_Ints: TypeAlias = int | list[int] | tuple[int, ...]

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
    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]: ...

class MaxPool2d(nn.MaxPool2d):
    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]: ...

class MaxPool3d(nn.MaxPool3d):
    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]: ...

class MaxUnpool1d(nn.MaxUnpool1d):
    def forward(
        self,
        input: Tensor,
        indices: Tensor,
        output_size: list[int] | tuple[int, ...] | None = None,
    ) -> Tensor: ...

class MaxUnpool2d(nn.MaxUnpool2d):
    def forward(
        self,
        input: Tensor,
        indices: Tensor,
        output_size: list[int] | tuple[int, ...] | None = None,
    ) -> Tensor: ...

class MaxUnpool3d(nn.MaxUnpool3d):
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

def replace_pooling(model: nn.Module) -> Replaced: ...
