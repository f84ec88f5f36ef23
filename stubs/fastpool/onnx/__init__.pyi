"""The types of fastpool.onnx."""

import os
from collections.abc import Sequence
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

_T = TypeVar("_T", bound=np.generic)
_Byte = TypeVar("_Byte", np.uint8, np.int8)
_ChannelsLast: TypeAlias = bool | Literal[0, 1] | None
_Scale: TypeAlias = float | np.floating[Any] | NDArray[Any]
_ZeroPoint: TypeAlias = SupportsIndex | NDArray[Any] | None
_OnPads: TypeAlias = Literal["error", "ignore", None]
_Model: TypeAlias = ModelProto | str | os.PathLike[str] | bytes

@overload
def max_pool(
    x: NDArray[_T], n_outputs: Literal[1] = 1, out_indices: None = None
) -> NDArray[_T]: ...
@overload
def max_pool(
    x: NDArray[_T], n_outputs: Literal[2], out_indices: NDArray[np.int64] | None = None
) -> tuple[NDArray[_T], NDArray[np.int64]]: ...
@overload
def max_pool(x: t.Array, n_outputs: Literal[1] = 1, out_indices: None = None) -> NDArray[Any]: ...
@overload
def max_pool(
    x: t.Array, n_outputs: Literal[2], out_indices: NDArray[np.int64] | None = None
) -> tuple[NDArray[Any], NDArray[np.int64]]: ...

# (not known how many, or memory of another kind to be written)
@overload
def max_pool(
    x: t.Array,
    n_outputs: SupportsIndex = 1,
    out: t.Output | None = None,
    out_indices: t.Output | None = None,
) -> Any: ...
@overload
def max_unpool(x: NDArray[_T]) -> NDArray[_T]: ...
@overload
def max_unpool(x: t.Array, out: t.Output | None = None) -> Any: ...
@overload
def average_pool(x: NDArray[_T]) -> NDArray[_T]: ...
@overload
def average_pool(x: t.Array, out: t.Output | None = None) -> Any: ...
@overload
def global_average_pool(x: NDArray[_T]) -> NDArray[_T]: ...
@overload
def global_average_pool(x: t.Array, out: t.Output | None = None) -> Any: ...
@overload
def global_max_pool(x: NDArray[_T]) -> NDArray[_T]: ...
@overload
def global_max_pool(x: t.Array, out: t.Output | None = None) -> Any: ...
@overload
def lp_pool(x: NDArray[_T]) -> NDArray[_T]: ...
@overload
def lp_pool(x: t.Array, out: t.Output | None = None) -> Any: ...
@overload
def global_lp_pool(x: NDArray[_T]) -> NDArray[_T]: ...
@overload
def global_lp_pool(x: t.Array, out: t.Output | None = None) -> Any: ...
@overload
def qlinear_average_pool(x: NDArray[_Byte]) -> NDArray[_Byte]: ...
@overload
def qlinear_average_pool(x: t.Array, out: t.Output | None = None) -> Any: ...
@overload
def qlinear_global_average_pool(x: NDArray[_Byte]) -> NDArray[_Byte]: ...
@overload
def qlinear_global_average_pool(x: t.Array, out: t.Output | None = None) -> Any: ...

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

def library() -> str: ...
def explain(model: _Model) -> str: ...

class InferenceSession(onnxruntime.InferenceSession):  # type: ignore[misc]
    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes,
        sess_options: onnxruntime.SessionOptions | None = None,
        providers: Sequence[str | tuple[str, dict[str, Any]]] | None = None,
        provider_options: Sequence[dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> None: ...
