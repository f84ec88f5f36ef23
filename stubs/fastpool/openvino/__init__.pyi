"""The types of fastpool.openvino."""

# OpenVINO's own stubs are those of C++, which no class in Python has the signatures of.
# pyright: reportIncompatibleMethodOverride=false

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import (
    Any,
    Literal,
    Protocol,
    Self,
    SupportsIndex,
    TypeAlias,
    overload,
    type_check_only,
)
from xml.etree.ElementTree import Element

import numpy as np
import openvino
from numpy.typing import NDArray
from typing_extensions import TypeVar

from .. import typing as t

_T = TypeVar("_T", bound=np.generic)

_RoundingType: TypeAlias = Literal[
    "floor", "ceil", "ceil_torch", "FLOOR", "CEIL", "CEIL_TORCH", None
]
_AutoPad: TypeAlias = Literal[
    "explicit",
    "same_upper",
    "same_lower",
    "valid",
    "EXPLICIT",
    "SAME_UPPER",
    "SAME_LOWER",
    "VALID",
    None,
]
_ExcludePad: TypeAlias = bool | Literal[0, 1]
_IndexElementType: TypeAlias = Literal["i64", "i32", None]

@overload
def max_pool(
    x: NDArray[_T],
    version: Literal[1],
    dilations: None = None,
    index_element_type: None = None,
    axis: None = None,
    out_indices: None = None,
) -> NDArray[_T]: ...
@overload
def max_pool(
    x: NDArray[_T],
    *,
    version: Literal[8, 14] = 8,
    index_element_type: Literal["i32"],
    out_indices: NDArray[np.int32] | None = None,
) -> tuple[NDArray[_T], NDArray[np.int32]]: ...
@overload
def max_pool(
    x: NDArray[_T],
    version: Literal[8, 14] = 8,
    index_element_type: Literal["i64"] | None = None,
    out_indices: NDArray[np.int64] | None = None,
) -> tuple[NDArray[_T], NDArray[np.int64]]: ...
@overload
def max_pool(
    x: t.Array,
    version: Literal[1],
    dilations: None = None,
    index_element_type: None = None,
    axis: None = None,
    out_indices: None = None,
) -> NDArray[Any]: ...
@overload
def max_pool(x: t.Array, version: Literal[8, 14] = 8) -> tuple[NDArray[Any], NDArray[Any]]: ...

# (not known which version, or memory of another kind to be written)
@overload
def max_pool(
    x: t.Array, out: t.Output | None = None, out_indices: t.Output | None = None
) -> Any: ...
@overload
def avg_pool(x: NDArray[_T]) -> NDArray[_T]: ...
@overload
def avg_pool(x: t.Array) -> NDArray[Any]: ...

# (memory of another kind to be written)
@overload
def avg_pool(x: t.Array, out: t.Output | None = None) -> Any: ...
@overload
def adaptive_avg_pool(x: NDArray[_T]) -> NDArray[_T]: ...
@overload
def adaptive_avg_pool(x: t.Array) -> NDArray[Any]: ...
@overload
def adaptive_avg_pool(x: t.Array, out: t.Output | None = None) -> Any: ...
@overload
def adaptive_max_pool(
    x: NDArray[_T],
    index_element_type: Literal["i64"] | None = "i64",
    out_indices: NDArray[np.int64] | None = None,
) -> tuple[NDArray[_T], NDArray[np.int64]]: ...
@overload
def adaptive_max_pool(
    x: NDArray[_T], index_element_type: Literal["i32"], out_indices: NDArray[np.int32] | None = None
) -> tuple[NDArray[_T], NDArray[np.int32]]: ...
@overload
def adaptive_max_pool(x: t.Array) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def adaptive_max_pool(
    x: t.Array, out: t.Output | None = None, out_indices: t.Output | None = None
) -> Any: ...

@dataclass(frozen=True)
class _Layer:
    name: str | None
    version: int
    attributes: dict[str, Any]
    input_dims: tuple[tuple[int, ...], ...]
    output_dims: tuple[tuple[int, ...], ...]

class MaxPoolLayer(_Layer):
    def __call__(
        self,
        x: t.Array,
        *,
        layout: t.BatchLayout = "NCHW",
        nan: t.Nan = "propagate",
        ceil_rule: t.CeilRule = None,
        index_layout: t.IndexLayout = "NCHW",
        out: t.Output | None = None,
        out_indices: t.Output | None = None,
        num_threads: SupportsIndex | None = None,
    ) -> Any: ...

class AvgPoolLayer(_Layer):
    def __call__(
        self,
        x: t.Array,
        *,
        beyond: t.Beyond = None,
        numerics: t.Numerics = "pairwise",
        layout: t.BatchLayout = "NCHW",
        nan: t.Nan = "propagate",
        ceil_rule: t.CeilRule = None,
        out: t.Output | None = None,
        num_threads: SupportsIndex | None = None,
    ) -> Any: ...

class AdaptiveAvgPoolLayer(_Layer):
    def __call__(
        self,
        x: t.Array,
        *,
        output_size: t.OutputSize = None,
        numerics: t.Numerics = "pairwise",
        layout: t.BatchLayout = "NCHW",
        nan: t.Nan = "propagate",
        out: t.Output | None = None,
        num_threads: SupportsIndex | None = None,
    ) -> Any: ...

class AdaptiveMaxPoolLayer(_Layer):
    def __call__(
        self,
        x: t.Array,
        *,
        output_size: t.OutputSize = None,
        layout: t.BatchLayout = "NCHW",
        nan: t.Nan = "propagate",
        index_layout: t.IndexLayout = "NCHW",
        out: t.Output | None = None,
        out_indices: t.Output | None = None,
        num_threads: SupportsIndex | None = None,
    ) -> Any: ...

_AnyLayer: TypeAlias = MaxPoolLayer | AvgPoolLayer | AdaptiveAvgPoolLayer | AdaptiveMaxPoolLayer

@type_check_only
class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...

def read_layer(layer: str | Element) -> _AnyLayer: ...
def read_layers(file: str | os.PathLike[str] | _Readable) -> list[_AnyLayer]: ...

@type_check_only
class _Pooling(openvino.Op):
    class_type_info: openvino.DiscreteTypeInfo
    @classmethod
    def get_type_info(cls) -> openvino.DiscreteTypeInfo: ...
    def clone_with_new_inputs(self, inputs: list[openvino.Output]) -> Self: ...
    def visit_attributes(self, visitor: Any) -> bool: ...
    def validate_and_infer_types(self) -> None: ...
    def has_evaluate(self) -> bool: ...
    def evaluate(self, outputs: list[openvino.Tensor], inputs: list[openvino.Tensor]) -> bool: ...

class MaxPool(_Pooling):
    def __init__(
        self,
        x: openvino.Node | openvino.Output | None = None,
        *,
        kernel: t.Counts | None = None,
        strides: t.Counts | None = None,
        pads_begin: t.Counts | None = None,
        pads_end: t.Counts | None = None,
        rounding_type: _RoundingType = "floor",
        auto_pad: _AutoPad = "explicit",
        dilations: t.Counts | None = None,
        index_element_type: Literal["i64", "i32"] = "i64",
        axis: SupportsIndex | None = 0,
        nan: t.Nan = "propagate",
        layout: Literal["NCHW", "NHWC", None] = "NCHW",
        return_indices: bool | None = True,
    ) -> None: ...

class AvgPool(_Pooling):
    def __init__(
        self,
        x: openvino.Node | openvino.Output | None = None,
        *,
        kernel: t.Counts | None = None,
        strides: t.Counts | None = None,
        pads_begin: t.Counts | None = None,
        pads_end: t.Counts | None = None,
        exclude_pad: _ExcludePad | None = None,
        rounding_type: _RoundingType = "floor",
        auto_pad: _AutoPad = "explicit",
        dilations: t.Counts | None = None,
        beyond: t.Beyond = None,
        numerics: t.Numerics = "pairwise",
        nan: t.Nan = "propagate",
        layout: Literal["NCHW", "NHWC", None] = "NCHW",
    ) -> None: ...

class AdaptiveAvgPool(_Pooling):
    def __init__(
        self,
        x: openvino.Node | openvino.Output | None = None,
        output_size: openvino.Node | openvino.Output | t.Counts | None = None,
        *,
        numerics: t.Numerics = "pairwise",
        nan: t.Nan = "propagate",
        layout: Literal["NCHW", "NHWC", None] = "NCHW",
    ) -> None: ...

class AdaptiveMaxPool(_Pooling):
    def __init__(
        self,
        x: openvino.Node | openvino.Output | None = None,
        output_size: openvino.Node | openvino.Output | t.Counts | None = None,
        *,
        index_element_type: Literal["i64", "i32"] = "i64",
        nan: t.Nan = "propagate",
        layout: Literal["NCHW", "NHWC", None] = "NCHW",
        return_indices: bool | None = True,
    ) -> None: ...

class Replaced(list[_AnyLayer]):
    left: dict[str, str]
    def __init__(self) -> None: ...
    def explain(self) -> str: ...

def replace_pooling(
    model: openvino.Model,
    *,
    nan: t.Nan = None,
    numerics: t.Numerics = None,
    layout: Literal["NCHW", "NHWC", None] = None,
    select: Literal["faster", "all", "none", None] | Callable[[openvino.Node], object] = "faster",
) -> Replaced: ...
