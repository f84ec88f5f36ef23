"""The types of fastpool.openvino."""

import os
from dataclasses import dataclass
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias, overload, type_check_only
from xml.etree.ElementTree import Element

import numpy as np
import openvino
from numpy.typing import NDArray
from typing_extensions import TypeVar

from .. import _typing as t

__all__ = ["MaxPoolLayer", "max_pool", "read_layer", "read_layers"]

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
_IndexElementType: TypeAlias = Literal["i64", "i32", None]

@overload
def max_pool(
    x: NDArray[_T],
    *,
    version: Literal[1],
    strides: t.Counts,
    pads_begin: t.Counts | None = None,
    pads_end: t.Counts | None = None,
    kernel: t.Counts,
    rounding_type: _RoundingType = "floor",
    auto_pad: _AutoPad = "explicit",
    dilations: None = None,
    index_element_type: None = None,
    axis: None = None,
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    ceil_rule: t.CeilRule = None,
    index_layout: t.IndexLayout = "NCHW",
    out: NDArray[_T] | None = None,
    out_indices: None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_T]: ...
@overload
def max_pool(
    x: NDArray[_T],
    *,
    version: Literal[8, 14] = 8,
    strides: t.Counts,
    pads_begin: t.Counts | None = None,
    pads_end: t.Counts | None = None,
    kernel: t.Counts,
    rounding_type: _RoundingType = "floor",
    auto_pad: _AutoPad = "explicit",
    dilations: t.Counts | None = None,
    index_element_type: Literal["i32"],
    axis: SupportsIndex | None = None,
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    ceil_rule: t.CeilRule = None,
    index_layout: t.IndexLayout = "NCHW",
    out: NDArray[_T] | None = None,
    out_indices: NDArray[np.int32] | None = None,
    num_threads: SupportsIndex | None = None,
) -> tuple[NDArray[_T], NDArray[np.int32]]: ...
@overload
def max_pool(
    x: NDArray[_T],
    *,
    version: Literal[8, 14] = 8,
    strides: t.Counts,
    pads_begin: t.Counts | None = None,
    pads_end: t.Counts | None = None,
    kernel: t.Counts,
    rounding_type: _RoundingType = "floor",
    auto_pad: _AutoPad = "explicit",
    dilations: t.Counts | None = None,
    index_element_type: Literal["i64"] | None = None,
    axis: SupportsIndex | None = None,
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    ceil_rule: t.CeilRule = None,
    index_layout: t.IndexLayout = "NCHW",
    out: NDArray[_T] | None = None,
    out_indices: NDArray[np.int64] | None = None,
    num_threads: SupportsIndex | None = None,
) -> tuple[NDArray[_T], NDArray[np.int64]]: ...
@overload
def max_pool(
    x: t.Array,
    *,
    version: Literal[1],
    strides: t.Counts,
    pads_begin: t.Counts | None = None,
    pads_end: t.Counts | None = None,
    kernel: t.Counts,
    rounding_type: _RoundingType = "floor",
    auto_pad: _AutoPad = "explicit",
    dilations: None = None,
    index_element_type: None = None,
    axis: None = None,
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    ceil_rule: t.CeilRule = None,
    index_layout: t.IndexLayout = "NCHW",
    out: NDArray[Any] | None = None,
    out_indices: None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[Any]: ...
@overload
def max_pool(
    x: t.Array,
    *,
    version: Literal[8, 14] = 8,
    strides: t.Counts,
    pads_begin: t.Counts | None = None,
    pads_end: t.Counts | None = None,
    kernel: t.Counts,
    rounding_type: _RoundingType = "floor",
    auto_pad: _AutoPad = "explicit",
    dilations: t.Counts | None = None,
    index_element_type: _IndexElementType = None,
    axis: SupportsIndex | None = None,
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    ceil_rule: t.CeilRule = None,
    index_layout: t.IndexLayout = "NCHW",
    out: NDArray[Any] | None = None,
    out_indices: NDArray[Any] | None = None,
    num_threads: SupportsIndex | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...

# (not known which version, or memory of another kind to be written)
@overload
def max_pool(
    x: t.Array,
    *,
    version: SupportsIndex = 8,
    strides: t.Counts,
    pads_begin: t.Counts | None = None,
    pads_end: t.Counts | None = None,
    kernel: t.Counts,
    rounding_type: _RoundingType = "floor",
    auto_pad: _AutoPad = "explicit",
    dilations: t.Counts | None = None,
    index_element_type: _IndexElementType = None,
    axis: SupportsIndex | None = None,
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    ceil_rule: t.CeilRule = None,
    index_layout: t.IndexLayout = "NCHW",
    out: t.Output | None = None,
    out_indices: t.Output | None = None,
    num_threads: SupportsIndex | None = None,
) -> Any: ...

@dataclass(frozen=True)
class MaxPoolLayer:
    name: str | None
    version: int
    attributes: dict[str, Any]
    input_dims: tuple[tuple[int, ...], ...]
    output_dims: tuple[tuple[int, ...], ...]
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

@type_check_only
class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...

def read_layer(layer: str | Element) -> MaxPoolLayer: ...
def read_layers(file: str | os.PathLike[str] | _Readable) -> list[MaxPoolLayer]: ...

class MaxPool(openvino.Op):
    class_type_info: openvino.DiscreteTypeInfo
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
    @staticmethod
    def get_type_info() -> openvino.DiscreteTypeInfo: ...
    def clone_with_new_inputs(self, inputs: list[openvino.Output]) -> MaxPool: ...
    def visit_attributes(self, visitor: openvino.AttributeVisitor) -> bool: ...
    def validate_and_infer_types(self) -> None: ...
    def has_evaluate(self) -> bool: ...
    def evaluate(self, outputs: list[openvino.Tensor], inputs: list[openvino.Tensor]) -> bool: ...

def replace_pooling(
    model: openvino.Model, *, nan: t.Nan = "propagate", layout: Literal["NCHW", "NHWC", None] = None
) -> list[MaxPoolLayer]: ...
