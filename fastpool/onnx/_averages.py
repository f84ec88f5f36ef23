"""Run ONNX's AveragePool, and ONNX Runtime's on quantised elements, by their attributes.

Attributes have the form that :mod:`fastpool.onnx` describes. The functions translate into plans of
:func:`fastpool.avg_pool`; for quantised elements such a plan adds the elements of each window.
"""

from numbers import Number

import numpy as np

from .._planning import arguments, geometry
from .._planning.dtypes import known_name
from .._planning.operators import spatial_rank
from .._planning.values import flag
from .._plans import make_avg_plan
from .._running.forks import remember
from .._running.interop import as_array
from .._running.plan_cache import PlanCache
from .._running.quantized import QuantizedAverage, quantization
from ._operators import text, window_attributes

__all__ = ["average_pool", "qlinear_average_pool", "qlinear_global_average_pool"]

_SCALES = ("x_scale", "x_zero_point", "y_scale", "y_zero_point")
# Types of most scales and zero points.
_NUMBERS = (float, int, type(None))


def average_pool(
    x,
    *,
    kernel_shape,
    strides=None,
    pads=None,
    dilations=None,
    auto_pad="NOTSET",
    ceil_mode=0,
    count_include_pad=0,
    activation=None,
    activation_params=(),
    layout="NCHW",
    nan="propagate",
    numerics="pairwise",
    beyond="drop",
    ceil_rule="clip",
    pads_with_auto_pad="error",
    out=None,
    num_threads=None,
):
    """Run ONNX's AveragePool (any opset).

    Parameters
    ----------
    x : array_like
        Input with batch, channels and at least one spatial axis, of any type of
        :func:`fastpool.avg_pool`.
    kernel_shape, strides, dilations : sequence of int
        One value per spatial axis. `strides` and `dilations` default to ones.
    pads : sequence of int, optional
        Two values per spatial axis: all begins, then all ends. Zeros by default.
    auto_pad : {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}
        The source of padding. "" means "NOTSET".
    ceil_mode : {0, 1}
        Whether the output extent is rounded up.
    count_include_pad : {0, 1}
        Whether padding counts for the divisor, as elements do.
    activation : str, optional
        Applied to the means. An attribute of com.ms.internal.nhwc.
    activation_params : sequence of float
        The parameters of `activation`.
    layout, nan, numerics, beyond, ceil_rule, out, num_threads
        As in :func:`fastpool.avg_pool`. `layout` has both batch and channels.
    pads_with_auto_pad : {"error", "ignore"}
        As in :func:`fastpool.onnx.max_pool`.

    Returns
    -------
    y : ndarray
        The means, in `layout` and of the type of `x`.

    Raises
    ------
    TypeError
        An argument is of the wrong kind.
    ValueError
        An argument has a wrong value, or a window is larger than the padded input.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.onnx
    >>> x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> fastpool.onnx.average_pool(x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    array([[[[ 6. ,  7.5],
             [12. , 13.5]]]], dtype=float32)
    """
    x = as_array(x, "x")
    values = (
        kernel_shape,
        strides,
        pads,
        dilations,
        auto_pad,
        ceil_mode,
        count_include_pad,
        activation,
        activation_params,
        layout,
        nan,
        numerics,
        beyond,
        ceil_rule,
        pads_with_auto_pad,
        num_threads,
    )
    return _average_plans.find(x, values)(x, out)


def qlinear_average_pool(
    x,
    x_scale,
    x_zero_point,
    y_scale,
    y_zero_point=None,
    *,
    kernel_shape,
    strides=None,
    pads=None,
    auto_pad="NOTSET",
    ceil_mode=0,
    count_include_pad=0,
    channels_last=0,
    beyond="drop",
    ceil_rule="clip",
    pads_with_auto_pad="error",
    out=None,
    num_threads=None,
):
    """Run QLinearAveragePool of com.microsoft, or with `channels_last` of com.ms.internal.nhwc.

    An element ``q`` stands for the number ``scale * (q - zero_point)``. The true mean of these is
    divided by `y_scale` and rounded once, halves to even; then `y_zero_point` is added. Values
    outside of the type become its least or greatest value.

    Parameters
    ----------
    x : array_like of uint8 or int8
        Input with batch, channels and at least one spatial axis.
    x_scale, y_scale : float, or array of one float
        Above 0 and finite, rounded to float32.
    x_zero_point, y_zero_point : int, or array of one element of the type of `x`, optional
        What stands for 0: 0 by default. Padding is worth 0.
    kernel_shape, strides, pads, auto_pad, ceil_mode, count_include_pad
        As in :func:`fastpool.onnx.average_pool`.
    channels_last : {0, 1}
        Whether `x` and the result have the channels last.
    beyond, ceil_rule, num_threads
        As in :func:`fastpool.avg_pool`.
    pads_with_auto_pad : {"error", "ignore"}
        As in :func:`fastpool.onnx.max_pool`.
    out : ndarray, optional
        Array for the result, under the rules of :func:`fastpool.avg_pool`.

    Returns
    -------
    y : ndarray
        The quantised means, of the type of `x`.

    Raises
    ------
    TypeError
        An argument is of the wrong kind, `x` has another type, or a zero point has not that of `x`.
    ValueError
        An argument has a wrong value, or a window is larger than the padded input.

    Notes
    -----
    The standard for the operator is the program ONNX Runtime; the rounding is that of ONNX's
    QuantizeLinear. ONNX Runtime adds the zero point before it rounds, and computes in float32, so
    its results differ by one step in ties and near them. With `ceil_mode` and `count_include_pad`
    it follows ``beyond="count"``.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.onnx
    >>> x = np.array([[[130, 131, 140, 255]]], dtype=np.uint8)
    >>> fastpool.onnx.qlinear_average_pool(
    ...     x, 0.5, 128, 0.25, 100, kernel_shape=[2], strides=[2]
    ... )
    array([[[105, 239]]], dtype=uint8)
    """
    x = _quantised(x)
    scales = _quantization(x, x_scale, x_zero_point, y_scale, y_zero_point)
    values = (
        kernel_shape,
        strides,
        pads,
        auto_pad,
        ceil_mode,
        count_include_pad,
        channels_last,
        beyond,
        ceil_rule,
        pads_with_auto_pad,
        num_threads,
    )
    return _qlinear_plans.find(x, values)(x, scales, out)


def qlinear_global_average_pool(
    x,
    x_scale,
    x_zero_point,
    y_scale,
    y_zero_point=None,
    *,
    channels_last=0,
    out=None,
    num_threads=None,
):
    """Run QLinearGlobalAveragePool of com.microsoft: the mean of all spatial axes, which stay.

    Parameters
    ----------
    x, x_scale, x_zero_point, y_scale, y_zero_point, channels_last, out, num_threads
        As in :func:`fastpool.onnx.qlinear_average_pool`, which has the rules and the errors.

    Returns
    -------
    y : ndarray
        The quantised means, of the type of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.onnx
    >>> x = np.array([[[1, 2, 3, 5]]], dtype=np.int8)
    >>> fastpool.onnx.qlinear_global_average_pool(x, 1.0, 0, 0.5, -10)
    array([[[-4]]], dtype=int8)
    """
    x = _quantised(x)
    scales = _quantization(x, x_scale, x_zero_point, y_scale, y_zero_point)
    return _qlinear_global_plans.find(x, (channels_last, num_threads))(x, scales, out)


def _quantised(x):
    x = as_array(x, "x")
    if known_name(x.dtype) not in ("uint8", "int8"):
        got = arguments.dtype_name(x.dtype, "x")
        raise TypeError(f"x: expected uint8 or int8, got {got}")
    return x


def _quantization(x, *values):
    """Return the scales and zero points of arrays like `x`, each a number or an array of one."""
    return checked_quantization(known_name(x.dtype), *map(_number, values, _SCALES))


@remember(256)
def checked_quantization(dtype, x_scale, x_zero_point, y_scale, y_zero_point):
    return quantization(
        arguments.scale(x_scale, "x_scale"),
        arguments.zero_point(x_zero_point, "x_zero_point", dtype),
        arguments.scale(y_scale, "y_scale"),
        arguments.zero_point(y_zero_point, "y_zero_point", dtype),
    )


def _number(value, name):
    """Return a number as it is, and the element of any library's array of one."""
    if type(value) in _NUMBERS or isinstance(value, (Number, np.generic)):
        return value
    return arguments.element(as_array(value, name), name)


def plan_average_pool(
    shape,
    dtype,
    kernel_shape,
    strides,
    pads,
    dilations,
    auto_pad,
    ceil_mode,
    count_include_pad,
    activation,
    activation_params,
    layout,
    nan,
    numerics,
    beyond,
    ceil_rule,
    pads_with_auto_pad,
    num_threads,
):
    n = spatial_rank(shape, layout)
    windows = kernel_shape, strides, pads, dilations, auto_pad, pads_with_auto_pad
    return make_avg_plan(
        shape,
        dtype,
        **window_attributes(n, *windows),
        ceil_mode=ceil_mode,
        ceil_rule=ceil_rule,
        count_include_pad=count_include_pad,
        beyond=beyond,
        numerics=numerics,
        nan=nan,
        layout=layout,
        activation=text(activation),
        activation_params=activation_params,
        num_threads=num_threads,
    )


def _plan_qlinear_average_pool(
    shape,
    dtype,
    kernel_shape,
    strides,
    pads,
    auto_pad,
    ceil_mode,
    count_include_pad,
    channels_last,
    beyond,
    ceil_rule,
    pads_with_auto_pad,
    num_threads,
):
    layout = _layout(channels_last)
    n = spatial_rank(shape, layout)
    windows = kernel_shape, strides, pads, None, auto_pad, pads_with_auto_pad
    return _quantized_average(
        shape,
        dtype,
        **window_attributes(n, *windows),
        ceil_mode=ceil_mode,
        ceil_rule=ceil_rule,
        count_include_pad=count_include_pad,
        beyond=beyond,
        layout=layout,
        num_threads=num_threads,
    )


def _plan_qlinear_global_average_pool(shape, dtype, channels_last, num_threads):
    layout = _layout(channels_last)
    window = geometry.whole_window(shape, geometry.layout(layout, shape))
    return _quantized_average(shape, dtype, window, layout=layout, num_threads=num_threads)


def _layout(channels_last):
    return "NHWC" if flag(channels_last, "channels_last") else "NCHW"


def _quantized_average(shape, dtype, kernel_shape, **attributes):
    return QuantizedAverage(make_avg_plan(shape, dtype, kernel_shape, **attributes))


_average_plans = PlanCache(plan_average_pool)
_qlinear_plans = PlanCache(_plan_qlinear_average_pool)
_qlinear_global_plans = PlanCache(_plan_qlinear_global_average_pool)
