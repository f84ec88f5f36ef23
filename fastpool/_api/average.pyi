"""The types of average pooling."""

from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray
from typing_extensions import TypeVar

from .. import typing as t
from .._plans import AvgPoolPlan

_T = TypeVar("_T", bound=np.generic)
# An output that is no NumPy array.
_Out = TypeVar("_Out", bound=t.Output)
_DataArray = TypeVar("_DataArray", bound=t.DataArray)
_DaskArray = TypeVar("_DaskArray", bound=t.DaskArray)

@overload
def avg_pool(
    x: NDArray[_T],
    kernel_shape: t.Ints,
    *,
    strides: t.Strides | None = 1,
    pads: t.Ints | None = 0,
    dilations: t.Ints | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    ceil_rule: t.CeilRule = "clip",
    count_include_pad: t.CountIncludePad = False,
    beyond: t.Beyond = "drop",
    divisor: SupportsIndex | None = None,
    dtype: None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    layout: t.Layout = "NCHW",
    activation: t.Activation = None,
    activation_params: Sequence[float] | None = (),
    out: NDArray[_T] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_T]: ...
@overload
def avg_pool(
    x: _DataArray,
    kernel_shape: Mapping[Any, SupportsIndex],
    *,
    strides: t.StridesByDimension | None = 1,
    pads: t.PadsByDimension | None = 0,
    dilations: t.ByDimension | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    ceil_rule: t.CeilRule = "clip",
    count_include_pad: t.CountIncludePad = False,
    beyond: t.Beyond = "drop",
    divisor: SupportsIndex | None = None,
    dtype: DTypeLike | None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    num_threads: SupportsIndex | None = None,
) -> _DataArray: ...
@overload
def avg_pool(
    x: _DaskArray,
    kernel_shape: t.Ints,
    *,
    strides: t.Strides | None = 1,
    pads: t.Ints | None = 0,
    dilations: t.Ints | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    ceil_rule: t.CeilRule = "clip",
    count_include_pad: t.CountIncludePad = False,
    beyond: t.Beyond = "drop",
    divisor: SupportsIndex | None = None,
    dtype: DTypeLike | None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    layout: t.Layout = "NCHW",
    activation: t.Activation = None,
    activation_params: Sequence[float] | None = (),
    num_threads: SupportsIndex | None = None,
) -> _DaskArray: ...
@overload
def avg_pool(
    x: t.Array,
    kernel_shape: t.Ints,
    *,
    strides: t.Strides | None = 1,
    pads: t.Ints | None = 0,
    dilations: t.Ints | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    ceil_rule: t.CeilRule = "clip",
    count_include_pad: t.CountIncludePad = False,
    beyond: t.Beyond = "drop",
    divisor: SupportsIndex | None = None,
    dtype: type[_T] | np.dtype[_T],
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    layout: t.Layout = "NCHW",
    activation: t.Activation = None,
    activation_params: Sequence[float] | None = (),
    out: NDArray[_T] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[_T]: ...
@overload
def avg_pool(
    x: t.Array,
    kernel_shape: t.Ints,
    *,
    strides: t.Strides | None = 1,
    pads: t.Ints | None = 0,
    dilations: t.Ints | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    ceil_rule: t.CeilRule = "clip",
    count_include_pad: t.CountIncludePad = False,
    beyond: t.Beyond = "drop",
    divisor: SupportsIndex | None = None,
    dtype: DTypeLike | None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    layout: t.Layout = "NCHW",
    activation: t.Activation = None,
    activation_params: Sequence[float] | None = (),
    out: NDArray[Any] | None = None,
    num_threads: SupportsIndex | None = None,
) -> NDArray[Any]: ...
@overload
def avg_pool(
    x: t.Array,
    kernel_shape: t.Ints,
    *,
    strides: t.Strides | None = 1,
    pads: t.Ints | None = 0,
    dilations: t.Ints | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    ceil_rule: t.CeilRule = "clip",
    count_include_pad: t.CountIncludePad = False,
    beyond: t.Beyond = "drop",
    divisor: SupportsIndex | None = None,
    dtype: DTypeLike | None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    layout: t.Layout = "NCHW",
    activation: t.Activation = None,
    activation_params: Sequence[float] | None = (),
    out: _Out,
    num_threads: SupportsIndex | None = None,
) -> _Out: ...
def plan_avg_pool(
    input_shape: t.Counts,
    dtype: DTypeLike,
    kernel_shape: t.Ints,
    *,
    strides: t.Strides | None = 1,
    pads: t.Ints | None = 0,
    dilations: t.Ints | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    ceil_rule: t.CeilRule = "clip",
    count_include_pad: t.CountIncludePad = False,
    beyond: t.Beyond = "drop",
    divisor: SupportsIndex | None = None,
    result_dtype: DTypeLike | None = None,
    rounding: t.Rounding = "half_even",
    numerics: t.Numerics = "exact",
    nan: t.Nan = "propagate",
    layout: t.Layout = "NCHW",
    activation: t.Activation = None,
    activation_params: Sequence[float] | None = (),
    num_threads: SupportsIndex | None = None,
) -> AvgPoolPlan: ...
