"""The types of Lp pooling."""

from collections.abc import Mapping
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray
from typing_extensions import TypeVar

from .. import typing as t
from .._plans import LpPoolPlan

_T = TypeVar("_T", bound=np.generic)
# An output that is no NumPy array.
_Out = TypeVar("_Out", bound=t.Output)
_DataArray = TypeVar("_DataArray", bound=t.DataArray)
_DaskArray = TypeVar("_DaskArray", bound=t.DaskArray)

@overload
def lp_pool(
    x: NDArray[_T],
    kernel_shape: t.Ints,
    p: float | None = 2,
    *,
    strides: t.Strides | None = 1,
    pads: t.Ints | None = 0,
    dilations: t.Ints | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    ceil_rule: t.CeilRule = "clip",
    partial: t.Partial = "sum",
    nan: t.Nan = "propagate",
    layout: t.Layout = "NCHW",
    out: NDArray[_T] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_T]: ...
@overload
def lp_pool(
    x: _DataArray,
    kernel_shape: Mapping[Any, SupportsIndex],
    p: float | None = 2,
    *,
    strides: t.StridesByDimension | None = 1,
    pads: t.PadsByDimension | None = 0,
    dilations: t.ByDimension | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    ceil_rule: t.CeilRule = "clip",
    partial: t.Partial = "sum",
    nan: t.Nan = "propagate",
    num_threads: SupportsIndex | None = None,
) -> _DataArray: ...
@overload
def lp_pool(
    x: _DaskArray,
    kernel_shape: t.Ints,
    p: float | None = 2,
    *,
    strides: t.Strides | None = 1,
    pads: t.Ints | None = 0,
    dilations: t.Ints | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    ceil_rule: t.CeilRule = "clip",
    partial: t.Partial = "sum",
    nan: t.Nan = "propagate",
    layout: t.Layout = "NCHW",
    num_threads: SupportsIndex | None = None,
) -> _DaskArray: ...
@overload
def lp_pool(
    x: t.Array,
    kernel_shape: t.Ints,
    p: float | None = 2,
    *,
    strides: t.Strides | None = 1,
    pads: t.Ints | None = 0,
    dilations: t.Ints | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    ceil_rule: t.CeilRule = "clip",
    partial: t.Partial = "sum",
    nan: t.Nan = "propagate",
    layout: t.Layout = "NCHW",
    out: NDArray[Any] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[Any]: ...
@overload
def lp_pool(
    x: t.Array,
    kernel_shape: t.Ints,
    p: float | None = 2,
    *,
    strides: t.Strides | None = 1,
    pads: t.Ints | None = 0,
    dilations: t.Ints | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    ceil_rule: t.CeilRule = "clip",
    partial: t.Partial = "sum",
    nan: t.Nan = "propagate",
    layout: t.Layout = "NCHW",
    out: _Out,
    num_threads: SupportsIndex | None = None,
) -> _Out: ...
def plan_lp_pool(
    input_shape: t.Counts,
    dtype: DTypeLike,
    kernel_shape: t.Ints,
    p: float | None = 2,
    *,
    strides: t.Strides | None = 1,
    pads: t.Ints | None = 0,
    dilations: t.Ints | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    ceil_rule: t.CeilRule = "clip",
    partial: t.Partial = "sum",
    nan: t.Nan = "propagate",
    layout: t.Layout = "NCHW",
    num_threads: SupportsIndex | None = None,
) -> LpPoolPlan: ...
