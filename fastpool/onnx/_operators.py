"""Run ONNX's MaxPool and MaxUnpool on NumPy arrays, by ONNX's attribute names and defaults.

The functions translate into plans of :func:`fastpool.max_pool` and :func:`fastpool.max_unpool`. The
onnx package is never imported. Attributes have the form that they have in a model: lists with one
value per spatial axis (``pads``: all begins, then ends), integers for flags, text as ``str`` or
``bytes``. None means that an attribute is absent. ``layout="NHWC"`` is the domain
com.ms.internal.nhwc.
"""

from math import prod

from .._planning import arguments
from .._planning.operators import counts, pads_rule, spatial_rank
from .._planning.values import as_int
from .._plans import make_plan, make_unpool_plan
from .._running.activation import prepared_activation
from .._running.interop import as_array, as_output, bump_versions
from .._running.plan_cache import PlanCache

__all__ = ["max_pool", "max_unpool"]


def max_pool(
    x,
    *,
    kernel_shape,
    strides=None,
    pads=None,
    dilations=None,
    auto_pad="NOTSET",
    ceil_mode=0,
    storage_order=0,
    activation=None,
    activation_params=(),
    n_outputs=1,
    layout="NCHW",
    nan="propagate",
    ceil_rule="clip",
    index_layout="NCHW",
    pads_with_auto_pad="error",
    out=None,
    out_indices=None,
    num_threads=None,
):
    """Run ONNX's MaxPool (any opset).

    Parameters
    ----------
    x : array_like
        Input with batch, channels and at least one spatial axis.
    kernel_shape, strides, dilations : sequence of int
        One value per spatial axis. `strides` and `dilations` default to ones.
    pads : sequence of int, optional
        Two values per spatial axis: all begins, then all ends. Zeros by default.
    auto_pad : {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}
        The source of padding. "" means "NOTSET".
    ceil_mode : {0, 1}
        Whether the output extent is rounded up.
    storage_order : {0, 1}
        Whether the indices count each plane row by row (0) or column by column (1).
    activation : str, optional
        Applied to the pooled values; indices are not affected. An attribute of
        com.ms.internal.nhwc.
    activation_params : sequence of float
        The parameters of `activation`.
    n_outputs : {1, 2}
        How many outputs the node has: Y, or Y and Indices.
    layout, nan, ceil_rule, index_layout, out, out_indices, num_threads
        As in :func:`fastpool.max_pool`. `layout` has both batch and channels.
    pads_with_auto_pad : {"error", "ignore"}
        What to do with `pads` if `auto_pad` is not "NOTSET". The standard forbids the two together,
        so with "error" any pad but 0 is an error. onnxruntime ignores them.

    Returns
    -------
    y : ndarray
        The maxima, in `layout`.
    indices : ndarray of int64
        Only with ``n_outputs=2``: offsets into N x C x D1 x ... x Dn, in the shape of `y`, and -1
        for a window that holds no element.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.onnx
    >>> x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> fastpool.onnx.max_pool(x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    array([[[[11., 12.],
             [15., 16.]]]], dtype=float32)
    """
    x = as_array(x, "x")
    arguments = (
        kernel_shape,
        strides,
        pads,
        dilations,
        auto_pad,
        ceil_mode,
        storage_order,
        activation,
        activation_params,
        n_outputs,
        layout,
        nan,
        ceil_rule,
        index_layout,
        pads_with_auto_pad,
        num_threads,
    )
    return _pool_plans.find(x, arguments)(x, out, out_indices)


def max_unpool(
    x,
    indices,
    output_shape=None,
    *,
    kernel_shape,
    strides=None,
    pads=None,
    activation=None,
    activation_params=(),
    layout="NCHW",
    index_space="inferred",
    index_layout="NCHW",
    out=None,
    num_threads=None,
):
    """Run ONNX's MaxUnpool (any opset).

    Parameters
    ----------
    x : array_like
        Input with batch, channels and at least one spatial axis: the values to place.
    indices : array_like of int64 or int32
        Where to place them, in the shape of `x`: offsets as MaxPool returns them.
    output_shape : sequence of int, optional
        Shape of the result, in `layout`. By default every spatial axis has the inferred extent
        ``(size - 1) * stride + kernel - begin - end``.
    kernel_shape, strides : sequence of int
        One value per spatial axis. `strides` defaults to ones.
    pads : sequence of int, optional
        Two values per spatial axis: all begins, then all ends. Zeros by default.
    activation : str, optional
        Applied to the whole result, the zeros included. An attribute of com.ms.internal.nhwc.
    activation_params : sequence of float
        The parameters of `activation`.
    index_space : {"inferred", "output"}
        What the indices count in if `output_shape` is larger than the inferred shape. The example
        and the tests of the standard count in the inferred block and put that at the origin.
        onnxruntime and torch count in the result.
    layout, index_layout, out, num_threads
        As in :func:`fastpool.max_unpool`. `layout` has both batch and channels.

    Returns
    -------
    y : ndarray
        The result, zero except for the placed values. If an index is repeated, the last value of
        `x` in N x C x D1 x ... x Dn order stays.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.onnx
    >>> x = np.array([[[[1, 2], [3, 4]]]], dtype=np.float32)
    >>> indices = np.array([[[[5, 7], [13, 15]]]])
    >>> fastpool.onnx.max_unpool(x, indices, kernel_shape=[2, 2], strides=[2, 2])
    array([[[[0., 0., 0., 0.],
             [0., 1., 0., 2.],
             [0., 0., 0., 0.],
             [0., 3., 0., 4.]]]], dtype=float32)
    """
    x = as_array(x, "x")
    arguments = (
        kernel_shape,
        strides,
        pads,
        output_shape,
        activation,
        activation_params,
        layout,
        index_space,
        index_layout,
        num_threads,
    )
    plan, activation, activation_params = _unpool_plans.find(x, arguments)
    if activation is None:
        return plan(x, indices, out)
    into = None if out is None else as_output(out, "out")
    size, native = prod(plan.output_shape), x.dtype.newbyteorder("=")
    activate = prepared_activation(activation, activation_params, native, size)
    y = plan(x, indices, into)
    activate(y)
    if out is None:
        return y
    bump_versions(out)
    return out


def plan_max_pool(
    shape,
    dtype,
    kernel_shape,
    strides,
    pads,
    dilations,
    auto_pad,
    ceil_mode,
    storage_order,
    activation,
    activation_params,
    n_outputs,
    layout,
    nan,
    ceil_rule,
    index_layout,
    pads_with_auto_pad,
    num_threads,
):
    n = spatial_rank(shape, layout)
    if as_int(n_outputs, "n_outputs") not in (1, 2):
        raise ValueError(f"n_outputs: expected 1 (Y) or 2 (Y and Indices), got {n_outputs}")
    windows = kernel_shape, strides, pads, dilations, auto_pad, pads_with_auto_pad
    return make_plan(
        shape,
        dtype,
        **window_attributes(n, *windows),
        ceil_mode=ceil_mode,
        ceil_rule=ceil_rule,
        layout=layout,
        nan=nan,
        activation=text(activation),
        activation_params=activation_params,
        return_indices=n_outputs == 2,
        storage_order=storage_order,
        index_layout=index_layout,
        num_threads=num_threads,
    )


def plan_max_unpool(
    shape,
    dtype,
    kernel_shape,
    strides,
    pads,
    output_shape,
    activation,
    activation_params,
    layout,
    index_space,
    index_layout,
    num_threads,
):
    n = spatial_rank(shape, layout)
    name = arguments.dtype_name(dtype, "x")
    # Check it before the call, which writes into `out`.
    activation = arguments.activation(text(activation), activation_params, name)
    plan = make_unpool_plan(
        shape,
        counts(kernel_shape, "kernel_shape", n, 1, required=True),
        strides=counts(strides, "strides", n, 1),
        pads=counts(pads, "pads", 2 * n, 0),
        output_shape=output_shape,
        layout=layout,
        index_space=index_space,
        index_layout=index_layout,
        num_threads=num_threads,
    )
    return plan, *activation


def window_attributes(n, kernel_shape, strides, pads, dilations, auto_pad, pads_with_auto_pad):
    """Return the attributes of windows over `n` axes, as a dict of arguments of a native plan."""
    kernel_shape = counts(kernel_shape, "kernel_shape", n, 1, required=True)
    auto_pad = text(auto_pad)
    on_pads = pads_rule(pads_with_auto_pad)
    if on_pads == "ignore" and auto_pad not in (None, "", "NOTSET"):
        pads = None
    return {
        "kernel_shape": kernel_shape,
        "strides": counts(strides, "strides", n, 1),
        "pads": counts(pads, "pads", 2 * n, 0),
        "dilations": counts(dilations, "dilations", n, 1),
        "auto_pad": auto_pad,
    }


def text(value):
    """Return a text attribute as str; onnx.helper.get_attribute_value gives bytes."""
    # No legal value has 100 bytes, and the time to decode grows with the square of the length.
    return value[:100].decode(errors="backslashreplace") if isinstance(value, bytes) else value


_pool_plans = PlanCache(plan_max_pool)
_unpool_plans = PlanCache(plan_max_unpool)
