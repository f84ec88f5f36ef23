"""The types of fastpool.onnx."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import (
    Any,
    Literal,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    Unpack,
    overload,
    type_check_only,
)

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto
from onnx.backend.base import Backend as _BaseBackend
from onnx.backend.base import BackendRep
from onnx.reference.op_run import OpRun
from typing_extensions import TypeVar

from .. import typing as t

__all__ = [
    "average_pool",
    "global_average_pool",
    "global_lp_pool",
    "global_max_pool",
    "lp_pool",
    "max_pool",
    "max_unpool",
    "qlinear_average_pool",
    "qlinear_global_average_pool",
]

_T = TypeVar("_T", bound=np.generic)
_Byte = TypeVar("_Byte", np.uint8, np.int8)
_ChannelsLast: TypeAlias = bool | Literal[0, 1] | None
_Scale: TypeAlias = float | np.floating[Any] | NDArray[Any]
_ZeroPoint: TypeAlias = SupportsIndex | NDArray[Any] | None
_OnPads: TypeAlias = Literal["error", "ignore", None]
_Model: TypeAlias = ModelProto | str | os.PathLike[str] | bytes

@overload
def max_pool(
    x: NDArray[_T],
    *,
    kernel_shape: t.Counts,
    strides: t.Counts | None = None,
    pads: t.Counts | None = None,
    dilations: t.Counts | None = None,
    auto_pad: t.AutoPad | bytes = "NOTSET",
    ceil_mode: t.CeilMode = 0,
    storage_order: t.StorageOrder = 0,
    activation: t.Activation | bytes = None,
    activation_params: Sequence[float] | None = (),
    n_outputs: Literal[1] = 1,
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    ceil_rule: t.CeilRule = "clip",
    index_layout: t.IndexLayout = "NCHW",
    pads_with_auto_pad: _OnPads = "error",
    out: NDArray[_T] | None = None,
    out_indices: None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_T]: ...
@overload
def max_pool(
    x: NDArray[_T],
    *,
    kernel_shape: t.Counts,
    strides: t.Counts | None = None,
    pads: t.Counts | None = None,
    dilations: t.Counts | None = None,
    auto_pad: t.AutoPad | bytes = "NOTSET",
    ceil_mode: t.CeilMode = 0,
    storage_order: t.StorageOrder = 0,
    activation: t.Activation | bytes = None,
    activation_params: Sequence[float] | None = (),
    n_outputs: Literal[2],
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    ceil_rule: t.CeilRule = "clip",
    index_layout: t.IndexLayout = "NCHW",
    pads_with_auto_pad: _OnPads = "error",
    out: NDArray[_T] | None = None,
    out_indices: NDArray[np.int64] | None = None,
    num_threads: SupportsIndex | None = None,
) -> tuple[NDArray[_T], NDArray[np.int64]]: ...
@overload
def max_pool(
    x: t.Array,
    *,
    kernel_shape: t.Counts,
    strides: t.Counts | None = None,
    pads: t.Counts | None = None,
    dilations: t.Counts | None = None,
    auto_pad: t.AutoPad | bytes = "NOTSET",
    ceil_mode: t.CeilMode = 0,
    storage_order: t.StorageOrder = 0,
    activation: t.Activation | bytes = None,
    activation_params: Sequence[float] | None = (),
    n_outputs: Literal[1] = 1,
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    ceil_rule: t.CeilRule = "clip",
    index_layout: t.IndexLayout = "NCHW",
    pads_with_auto_pad: _OnPads = "error",
    out: NDArray[Any] | None = None,
    out_indices: None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[Any]: ...
@overload
def max_pool(
    x: t.Array,
    *,
    kernel_shape: t.Counts,
    strides: t.Counts | None = None,
    pads: t.Counts | None = None,
    dilations: t.Counts | None = None,
    auto_pad: t.AutoPad | bytes = "NOTSET",
    ceil_mode: t.CeilMode = 0,
    storage_order: t.StorageOrder = 0,
    activation: t.Activation | bytes = None,
    activation_params: Sequence[float] | None = (),
    n_outputs: Literal[2],
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    ceil_rule: t.CeilRule = "clip",
    index_layout: t.IndexLayout = "NCHW",
    pads_with_auto_pad: _OnPads = "error",
    out: NDArray[Any] | None = None,
    out_indices: NDArray[np.int64] | None = None,
    num_threads: SupportsIndex | None = None,
) -> tuple[NDArray[Any], NDArray[np.int64]]: ...

# (not known how many, or memory of another kind to be written)
@overload
def max_pool(
    x: t.Array,
    *,
    kernel_shape: t.Counts,
    strides: t.Counts | None = None,
    pads: t.Counts | None = None,
    dilations: t.Counts | None = None,
    auto_pad: t.AutoPad | bytes = "NOTSET",
    ceil_mode: t.CeilMode = 0,
    storage_order: t.StorageOrder = 0,
    activation: t.Activation | bytes = None,
    activation_params: Sequence[float] | None = (),
    n_outputs: SupportsIndex = 1,
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    ceil_rule: t.CeilRule = "clip",
    index_layout: t.IndexLayout = "NCHW",
    pads_with_auto_pad: _OnPads = "error",
    out: t.Output | None = None,
    out_indices: t.Output | None = None,
    num_threads: SupportsIndex | None = None,
) -> Any: ...
@overload
def max_unpool(
    x: NDArray[_T],
    indices: t.Array,
    output_shape: t.Counts | None = None,
    *,
    kernel_shape: t.Counts,
    strides: t.Counts | None = None,
    pads: t.Counts | None = None,
    activation: t.Activation | bytes = None,
    activation_params: Sequence[float] | None = (),
    layout: t.BatchLayout = "NCHW",
    index_space: t.IndexSpace = "inferred",
    index_layout: t.IndexLayout = "NCHW",
    out: NDArray[_T] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_T]: ...
@overload
def max_unpool(
    x: t.Array,
    indices: t.Array,
    output_shape: t.Counts | None = None,
    *,
    kernel_shape: t.Counts,
    strides: t.Counts | None = None,
    pads: t.Counts | None = None,
    activation: t.Activation | bytes = None,
    activation_params: Sequence[float] | None = (),
    layout: t.BatchLayout = "NCHW",
    index_space: t.IndexSpace = "inferred",
    index_layout: t.IndexLayout = "NCHW",
    out: t.Output | None = None,
    num_threads: SupportsIndex | None = None,
) -> Any: ...
@overload
def average_pool(
    x: NDArray[_T],
    *,
    kernel_shape: t.Counts,
    strides: t.Counts | None = None,
    pads: t.Counts | None = None,
    dilations: t.Counts | None = None,
    auto_pad: t.AutoPad | bytes = "NOTSET",
    ceil_mode: t.CeilMode = 0,
    count_include_pad: t.CountIncludePad = 0,
    activation: t.Activation | bytes = None,
    activation_params: Sequence[float] | None = (),
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    numerics: t.Numerics = "exact",
    beyond: t.Beyond = "drop",
    ceil_rule: t.CeilRule = "clip",
    pads_with_auto_pad: _OnPads = "error",
    out: NDArray[_T] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_T]: ...
@overload
def average_pool(
    x: t.Array,
    *,
    kernel_shape: t.Counts,
    strides: t.Counts | None = None,
    pads: t.Counts | None = None,
    dilations: t.Counts | None = None,
    auto_pad: t.AutoPad | bytes = "NOTSET",
    ceil_mode: t.CeilMode = 0,
    count_include_pad: t.CountIncludePad = 0,
    activation: t.Activation | bytes = None,
    activation_params: Sequence[float] | None = (),
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    numerics: t.Numerics = "exact",
    beyond: t.Beyond = "drop",
    ceil_rule: t.CeilRule = "clip",
    pads_with_auto_pad: _OnPads = "error",
    out: t.Output | None = None,
    num_threads: SupportsIndex | None = None,
) -> Any: ...
@overload
def global_average_pool(
    x: NDArray[_T],
    *,
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    numerics: t.Numerics = "exact",
    out: NDArray[_T] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_T]: ...
@overload
def global_average_pool(
    x: t.Array,
    *,
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    numerics: t.Numerics = "exact",
    out: t.Output | None = None,
    num_threads: SupportsIndex | None = None,
) -> Any: ...
@overload
def global_max_pool(
    x: NDArray[_T],
    *,
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    out: NDArray[_T] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_T]: ...
@overload
def global_max_pool(
    x: t.Array,
    *,
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    out: t.Output | None = None,
    num_threads: SupportsIndex | None = None,
) -> Any: ...
@overload
def lp_pool(
    x: NDArray[_T],
    *,
    kernel_shape: t.Counts,
    p: float | None = 2,
    strides: t.Counts | None = None,
    pads: t.Counts | None = None,
    dilations: t.Counts | None = None,
    auto_pad: t.AutoPad | bytes = "NOTSET",
    ceil_mode: t.CeilMode = 0,
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    partial: t.Partial = "sum",
    ceil_rule: t.CeilRule = "clip",
    pads_with_auto_pad: _OnPads = "error",
    out: NDArray[_T] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_T]: ...
@overload
def lp_pool(
    x: t.Array,
    *,
    kernel_shape: t.Counts,
    p: float | None = 2,
    strides: t.Counts | None = None,
    pads: t.Counts | None = None,
    dilations: t.Counts | None = None,
    auto_pad: t.AutoPad | bytes = "NOTSET",
    ceil_mode: t.CeilMode = 0,
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    partial: t.Partial = "sum",
    ceil_rule: t.CeilRule = "clip",
    pads_with_auto_pad: _OnPads = "error",
    out: t.Output | None = None,
    num_threads: SupportsIndex | None = None,
) -> Any: ...
@overload
def global_lp_pool(
    x: NDArray[_T],
    *,
    p: float | None = 2,
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    out: NDArray[_T] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_T]: ...
@overload
def global_lp_pool(
    x: t.Array,
    *,
    p: float | None = 2,
    layout: t.BatchLayout = "NCHW",
    nan: t.Nan = "propagate",
    out: t.Output | None = None,
    num_threads: SupportsIndex | None = None,
) -> Any: ...
@overload
def qlinear_average_pool(
    x: NDArray[_Byte],
    x_scale: _Scale,
    x_zero_point: _ZeroPoint,
    y_scale: _Scale,
    y_zero_point: _ZeroPoint = None,
    *,
    kernel_shape: t.Counts,
    strides: t.Counts | None = None,
    pads: t.Counts | None = None,
    auto_pad: t.AutoPad | bytes = "NOTSET",
    ceil_mode: t.CeilMode = 0,
    count_include_pad: t.CountIncludePad = 0,
    channels_last: _ChannelsLast = 0,
    beyond: t.Beyond = "drop",
    ceil_rule: t.CeilRule = "clip",
    pads_with_auto_pad: _OnPads = "error",
    out: NDArray[_Byte] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_Byte]: ...
@overload
def qlinear_average_pool(
    x: t.Array,
    x_scale: _Scale,
    x_zero_point: _ZeroPoint,
    y_scale: _Scale,
    y_zero_point: _ZeroPoint = None,
    *,
    kernel_shape: t.Counts,
    strides: t.Counts | None = None,
    pads: t.Counts | None = None,
    auto_pad: t.AutoPad | bytes = "NOTSET",
    ceil_mode: t.CeilMode = 0,
    count_include_pad: t.CountIncludePad = 0,
    channels_last: _ChannelsLast = 0,
    beyond: t.Beyond = "drop",
    ceil_rule: t.CeilRule = "clip",
    pads_with_auto_pad: _OnPads = "error",
    out: t.Output | None = None,
    num_threads: SupportsIndex | None = None,
) -> Any: ...
@overload
def qlinear_global_average_pool(
    x: NDArray[_Byte],
    x_scale: _Scale,
    x_zero_point: _ZeroPoint,
    y_scale: _Scale,
    y_zero_point: _ZeroPoint = None,
    *,
    channels_last: _ChannelsLast = 0,
    out: NDArray[_Byte] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_Byte]: ...
@overload
def qlinear_global_average_pool(
    x: t.Array,
    x_scale: _Scale,
    x_zero_point: _ZeroPoint,
    y_scale: _Scale,
    y_zero_point: _ZeroPoint = None,
    *,
    channels_last: _ChannelsLast = 0,
    out: t.Output | None = None,
    num_threads: SupportsIndex | None = None,
) -> Any: ...

ops: list[type[OpRun]]

@type_check_only
class _Rules(TypedDict, total=False):
    nan: t.Nan
    ceil_rule: t.CeilRule
    pads_with_auto_pad: _OnPads
    index_space: t.IndexSpace
    numerics: t.Numerics
    partial: t.Partial
    beyond: t.Beyond
    num_threads: SupportsIndex | None

class Backend(_BaseBackend):
    # (a base class that takes any keyword)
    @classmethod
    def prepare(  # type: ignore[override]
        cls, model: _Model, device: str = "CPU", **rules: Unpack[_Rules]
    ) -> BackendRep: ...
    @classmethod
    def run_model(  # type: ignore[override]
        cls, model: _Model, inputs: Sequence[t.Array], device: str = "CPU", **rules: Unpack[_Rules]
    ) -> tuple[NDArray[Any], ...]: ...
    @classmethod
    def run_node(  # type: ignore[override]
        cls,
        node: NodeProto,
        inputs: Sequence[t.Array | None],
        device: str = "CPU",
        outputs_info: object = None,
        opset_version: int | None = None,
        **rules: Unpack[_Rules],
    ) -> tuple[NDArray[Any], ...]: ...
    @classmethod
    def is_compatible(  # type: ignore[override]
        cls, model: _Model, device: str = "CPU", **rules: Unpack[_Rules]
    ) -> bool: ...
    @classmethod
    def supports_device(cls, device: str) -> bool: ...

@type_check_only
class _Value:
    name: str
    type: str
    shape: list[int | str | None] | None

class InferenceSession:
    pooling_nodes: list[NodeProto]
    def __init__(
        self,
        model: _Model,
        sess_options: onnxruntime.SessionOptions | None = None,
        providers: Sequence[str | tuple[str, dict[str, Any]]] = ("CPUExecutionProvider",),
        *,
        select: Literal["faster", "all", "none", None] | Callable[[NodeProto], object] = "faster",
        **rules: Unpack[_Rules],
    ) -> None: ...
    def explain(self) -> str: ...
    def get_inputs(self) -> list[_Value]: ...
    def get_outputs(self) -> list[_Value]: ...
    def get_providers(self) -> list[str]: ...
    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, t.Array],
        run_options: onnxruntime.RunOptions | None = None,
    ) -> list[NDArray[Any]]: ...
