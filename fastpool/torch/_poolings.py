"""The table of poolings: the operators of each, their attributes, and their plans."""

from .._planning.arguments import dtype_name
from .._planning.dtypes import FLOATS, is_float
from .._plans import (
    make_adaptive_avg_plan,
    make_adaptive_max_plan,
    make_avg_plan,
    make_lp_plan,
    make_plan,
)
from . import _windows
from ._ops import Pooling


def _max_plan(shape, dtype, layout, sizes, outputs, attributes, return_indices):
    kernel_size, stride, padding, dilation, ceil_mode = attributes
    return make_plan(
        shape,
        dtype,
        kernel_size,
        strides=stride,
        pads=padding,
        dilations=dilation,
        ceil_mode=ceil_mode,
        layout=layout,
        return_indices=return_indices,
        index_axis=-len(sizes),
    )


def _average_plan(shape, dtype, layout, sizes, outputs, attributes, return_indices):
    kernel_size, stride, padding, ceil_mode, count_include_pad, divisor, numerics = attributes
    try:
        return make_avg_plan(
            shape,
            dtype,
            kernel_size,
            strides=stride,
            pads=padding,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
            divisor=divisor,
            rounding=_rounding(dtype),
            numerics=numerics,
            layout=layout,
        )
    except ValueError as error:
        # The type of the result is that of the input. Only the divisor may make it too small.
        raise ValueError(str(error).replace("dtype:", "divisor_override:", 1)) from None


def _lp_plan(shape, dtype, layout, sizes, outputs, attributes, return_indices):
    kernel_size, stride, ceil_mode, norm_type = attributes
    return make_lp_plan(
        shape,
        dtype,
        kernel_size,
        norm_type,
        strides=stride,
        ceil_mode=ceil_mode,
        partial="scale",
        layout=layout,
    )


def _adaptive_max_plan(shape, dtype, layout, sizes, outputs, attributes, return_indices):
    indices = return_indices, -len(sizes), None, None
    return make_adaptive_max_plan(shape, dtype, outputs, layout, None, *indices, None)


def _adaptive_average_plan(shape, dtype, layout, sizes, outputs, attributes, return_indices):
    _, numerics = attributes
    values = None, _rounding(dtype), numerics, None, None
    return make_adaptive_avg_plan(shape, dtype, outputs, layout, *values)


def _rounding(dtype):
    """Return how means become integers, as torch's integer division does."""
    return "half_even" if is_float(dtype_name(dtype)) else "trunc"


_WINDOWS = "SymInt[] kernel_size, SymInt[] stride, SymInt[] padding"

max_pool = Pooling(
    "max_pool",
    f"{_WINDOWS}, SymInt[] dilation, bool ceil_mode",
    _windows.max_windows,
    _max_plan,
    has_indices=True,
)
avg_pool = Pooling(
    "avg_pool",
    f"{_WINDOWS}, bool ceil_mode, bool count_include_pad, int? divisor_override, str numerics",
    _windows.average_windows,
    _average_plan,
)
lp_pool = Pooling(
    "lp_pool",
    "SymInt[] kernel_size, SymInt[] stride, bool ceil_mode, float norm_type",
    _windows.lp_windows,
    _lp_plan,
    types=FLOATS,
)
adaptive_max_pool = Pooling(
    "adaptive_max_pool",
    "SymInt[] output_size",
    _windows.adaptive_windows,
    _adaptive_max_plan,
    has_indices=True,
)
adaptive_avg_pool = Pooling(
    "adaptive_avg_pool",
    "SymInt[] output_size, str numerics",
    _windows.adaptive_average_windows,
    _adaptive_average_plan,
)
