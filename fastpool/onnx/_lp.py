"""Run ONNX's LpPool and GlobalLpPool on NumPy arrays, by ONNX's attribute names and defaults."""

from .._planning.dtypes import FLOATS
from .._planning.operators import spatial_rank
from .._plans import make_global_lp_plan, make_lp_plan
from .._running.interop import as_array
from .._running.plan_cache import PlanCache
from ._operators import window_attributes

__all__ = ["global_lp_pool", "lp_pool"]


def lp_pool(
    x,
    *,
    kernel_shape,
    p=2,
    strides=None,
    pads=None,
    dilations=None,
    auto_pad="NOTSET",
    ceil_mode=0,
    layout="NCHW",
    nan="propagate",
    partial="sum",
    ceil_rule="clip",
    pads_with_auto_pad="error",
    out=None,
    num_threads=None,
):
    """Run ONNX's LpPool (any opset).

    Parameters
    ----------
    x : array_like
        Input with batch, channels and at least one spatial axis, of any type of
        :func:`fastpool.lp_pool`.
    kernel_shape, strides, dilations : sequence of int
        One value per spatial axis. `strides` and `dilations` default to ones.
    p : float
        The order of the norm, above 0. In a model it is an integer, but a float in opset 1.
    pads : sequence of int, optional
        Two values per spatial axis: all begins, then all ends. Zeros by default.
    auto_pad : {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}
        The source of padding. "" means "NOTSET".
    ceil_mode : {0, 1}
        Whether the output extent is rounded up.
    layout, nan, partial, ceil_rule, out, num_threads
        As in :func:`fastpool.lp_pool`. `layout` has both batch and channels.
    pads_with_auto_pad : {"error", "ignore"}
        As in :func:`fastpool.onnx.max_pool`.

    Returns
    -------
    y : ndarray
        The norms, in `layout` and of the type of `x`.

    Raises
    ------
    TypeError
        An argument is of the wrong kind, or `x` holds no floats.
    ValueError
        An argument has a wrong value, or a window is larger than the padded input.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.onnx
    >>> x = np.array([[[3, 4, -12, 5]]], dtype=np.float32)
    >>> fastpool.onnx.lp_pool(x, kernel_shape=[2], strides=[2])
    array([[[ 5., 13.]]], dtype=float32)
    """
    x = as_array(x, "x")
    windows = kernel_shape, strides, pads, dilations, auto_pad, pads_with_auto_pad
    values = p, ceil_mode, ceil_rule, partial, nan, layout, num_threads
    return _plans.find(x, (*windows, *values))(x, out)


def global_lp_pool(x, *, p=2, layout="NCHW", nan="propagate", out=None, num_threads=None):
    """Run ONNX's GlobalLpPool (any opset): the norm of all spatial axes, which stay.

    Parameters
    ----------
    x : array_like
        Input with batch, channels and at least one spatial axis.
    p, layout, nan, out, num_threads
        As in :func:`fastpool.global_lp_pool`. `layout` has both batch and channels.

    Returns
    -------
    y : ndarray
        The norms, of the type of `x`, with one element along each spatial axis.

    Raises
    ------
    TypeError
        An argument is of the wrong kind, or `x` holds no floats.
    ValueError
        An argument has a wrong value, or a spatial axis has no elements.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.onnx
    >>> fastpool.onnx.global_lp_pool(np.array([[[3.0, 4.0], [-8.0, 15.0]]]))
    array([[[ 5.],
            [17.]]])
    """
    x = as_array(x, "x")
    return _global_plans.find(x, (p, layout, nan, num_threads))(x, out)


def plan_lp_pool(
    shape,
    dtype,
    kernel_shape,
    strides,
    pads,
    dilations,
    auto_pad,
    pads_with_auto_pad,
    p,
    ceil_mode,
    ceil_rule,
    partial,
    nan,
    layout,
    num_threads,
):
    n = spatial_rank(shape, layout)
    windows = kernel_shape, strides, pads, dilations, auto_pad, pads_with_auto_pad
    return make_lp_plan(
        shape,
        dtype,
        **window_attributes(n, *windows),
        p=p,
        ceil_mode=ceil_mode,
        ceil_rule=ceil_rule,
        partial=partial,
        nan=nan,
        layout=layout,
        num_threads=num_threads,
    )


def plan_global_lp_pool(shape, dtype, p, layout, nan, num_threads):
    spatial_rank(shape, layout)
    return make_global_lp_plan(shape, dtype, p, layout, nan, num_threads)


_plans = PlanCache(plan_lp_pool, FLOATS)
_global_plans = PlanCache(plan_global_lp_pool, FLOATS)
