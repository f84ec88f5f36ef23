"""The public functions: what they mean, and one step to a plan."""

import functools

import numpy as np

from . import _dispatch
from ._plan import make_plan, make_unpool_plan

# Geometries whose plans are kept between calls of max_pool.
KEPT_PLANS = 1024

_INT = {int}


@functools.lru_cache(KEPT_PLANS, typed=True)  # typed: 2.0 must not find the plan of 2
def _kept_plan(shape, dtype, kernel_shape, strides, pads, dilations, names, *values):
    return make_plan(
        shape,
        dtype,
        kernel_shape,
        strides=strides,
        pads=pads,
        dilations=dilations,
        **dict(zip(names, values, strict=True)),
    )


_NAMES = (
    *("auto_pad", "ceil_mode", "ceil_rule", "layout", "nan", "activation", "activation_params"),
    *("return_indices", "storage_order", "index_axis", "index_dtype", "index_layout"),
    "num_threads",
)


def _frozen(value):
    """A sequence as the tuple that a cache can hold; integers and None as they are."""
    if type(value) is int or value is None:
        return value
    value = tuple(value)
    if {*map(type, value)} != _INT:
        raise TypeError
    return value


def _plan(shape, dtype, kernel_shape, strides, pads, dilations, *values):
    """The plan for one call: kept, where all attributes are of the plainest types."""
    try:
        return _kept_plan(
            *(shape, dtype, _frozen(kernel_shape), _frozen(strides), _frozen(pads)),
            *(_frozen(dilations), _NAMES, *values),
        )
    except TypeError:
        # Not plain (numpy integers, lists of floats, ...): resolved anew, or refused with its name.
        return make_plan(
            shape,
            dtype,
            kernel_shape,
            strides=strides,
            pads=pads,
            dilations=dilations,
            **dict(zip(_NAMES, values, strict=True)),
        )


def max_pool(
    x,
    kernel_shape,
    *,
    strides=1,
    pads=0,
    dilations=1,
    auto_pad="NOTSET",
    ceil_mode=False,
    ceil_rule="clip",
    layout="NCHW",
    nan="propagate",
    activation=None,
    activation_params=(),
    return_indices=False,
    storage_order=0,
    index_axis=0,
    index_dtype="int64",
    index_layout="NCHW",
    out=None,
    out_indices=None,
    num_threads=None,
):
    """Maximum over sliding windows.

    Attributes have ONNX's names and meaning; one integer stands for every spatial axis, and None for
    the default.

    Parameters
    ----------
    x : array_like
        float16, bfloat16 (of ml_dtypes), float32, float64, any integer dtype, or bool; the shape is
        read by `layout`. Any strides; never written; not copied if its last axis is contiguous.
    kernel_shape : int or sequence of int
        Taps of the window per spatial axis.
    strides, dilations : int or sequence of int
        Distance of neighbouring windows, and of neighbouring taps.
    pads : int or sequence of int
        Padding, which is never chosen: one number, one per spatial axis (both sides), or all begins
        and then all ends. Any size.
    auto_pad : {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}
        SAME gives ``ceil(size / stride)`` outputs; an odd unit of padding goes to the end (UPPER) or
        the beginning (LOWER).
    ceil_mode : bool
        Round the number of windows up.
    ceil_rule : {"clip", "keep"}
        With `ceil_mode`: drop a last window that would start in the end padding or past it, or keep it.
    layout : str
        The axes: "W", "HW" or "DHW", with an optional "N" in front and an optional "C" before or
        behind. "NCHW" and "NHWC" also stand for channels first and last at any number of spatial axes.
    nan : {"propagate", "ignore"}
        A window with a NaN gives NaN; or NaN counts only where there is nothing else.
    activation : str, optional
        Applied to the values: Relu, Clip, LeakyRelu, HardSigmoid, Tanh, Sigmoid or Silu.
    activation_params : sequence of float
    return_indices : bool
        Also return where each value was found: the first place in row-major order; -1 for a window
        without elements.
    storage_order : {0, 1}
        1: indices count column major inside a plane. Affects nothing else.
    index_axis : int
        Indices are modulo ``prod(shape[index_axis:])``; 0 counts through the whole array, 2 per plane.
    index_dtype : {"int64", "int32"}
    index_layout : {"NCHW", "NHWC"}
        The order of axes that indices count in. "NCHW" holds in channels-last layouts too; "NHWC" counts
        in the channels-last array as it lies in memory.
    out, out_indices : ndarray, optional
        Where to put the results: exact shape and dtype, writeable, sharing no memory with `x`.
    num_threads : int, optional
        At most this many threads; the default uses the processors at hand where that pays.

    Returns
    -------
    y : ndarray
        Of x's dtype. A window without elements gives -inf, the type's minimum, or False.
    indices : ndarray
        With `return_indices`; of y's shape.

    Raises
    ------
    TypeError
        An argument of the wrong kind.
    ValueError
        A value that cannot be: the message names the argument, what was got and what is allowed.

    Notes
    -----
    Defined by ONNX MaxPool-11 (and 12, 22), its channels-last form in com.ms.internal.nhwc, and OpenVINO
    MaxPool-1 and -8. Where they or the runtimes disagree, the README says which rule holds. Of two equal
    values the first wins; -0.0 equals +0.0, and the sign of a zero and the payload of a NaN are free.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> x = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
    >>> fastpool.max_pool(x, 2, strides=2)
    array([[[[ 6.,  8.],
             [16., 18.]]]], dtype=float32)
    >>> y, indices = fastpool.max_pool(x, 3, strides=2, pads=1, return_indices=True)
    >>> indices
    array([[[[ 6,  8,  9],
             [16, 18, 19],
             [21, 23, 24]]]])
    """
    if type(x) is not np.ndarray:
        x = _dispatch.as_array(x, "x")
    plan = _plan(
        *(x.shape, x.dtype, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode),
        *(ceil_rule, layout, nan, activation, activation_params, return_indices, storage_order),
        *(index_axis, index_dtype, index_layout, num_threads),
    )
    return _dispatch.execute_max_pool(plan, x, out, out_indices)


def plan_max_pool(
    input_shape,
    dtype,
    kernel_shape,
    *,
    strides=1,
    pads=0,
    dilations=1,
    auto_pad="NOTSET",
    ceil_mode=False,
    ceil_rule="clip",
    layout="NCHW",
    nan="propagate",
    activation=None,
    activation_params=(),
    return_indices=False,
    storage_order=0,
    index_axis=0,
    index_dtype="int64",
    index_layout="NCHW",
    num_threads=None,
):
    """Resolve a max pooling once, for many calls.

    Parameters
    ----------
    input_shape : sequence of int
    dtype : dtype_like
    kernel_shape, strides, ... :
        As for `max_pool`.

    Returns
    -------
    plan : MaxPoolPlan
        ``plan(x, out=None, out_indices=None)`` pools; ``plan.output_shape``, ``plan.pads`` and the other
        attributes tell what was resolved. It may be used from several threads, hashed and pickled.

    Raises
    ------
    TypeError, ValueError
        As `max_pool` does.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> plan = fastpool.plan_max_pool((1, 64, 112, 112), "float32", 3, strides=2, auto_pad="SAME_UPPER")
    >>> plan.output_shape, plan.pads
    ((1, 64, 56, 56), (0, 0, 1, 1))
    >>> y = np.empty(plan.output_shape, np.float32)
    >>> plan(np.zeros(plan.input_shape, np.float32), out=y) is y
    True
    """
    return make_plan(
        input_shape,
        dtype,
        kernel_shape,
        strides=strides,
        pads=pads,
        dilations=dilations,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        ceil_rule=ceil_rule,
        layout=layout,
        nan=nan,
        activation=activation,
        activation_params=activation_params,
        return_indices=return_indices,
        storage_order=storage_order,
        index_axis=index_axis,
        index_dtype=index_dtype,
        index_layout=index_layout,
        num_threads=num_threads,
    )


def max_unpool(
    x,
    indices,
    kernel_shape,
    *,
    strides=1,
    pads=0,
    output_shape=None,
    layout="NCHW",
    index_space="output",
    index_layout="NCHW",
    out=None,
    num_threads=None,
):
    """Put values back where max pooling found them; everything else is 0.

    Parameters
    ----------
    x : array_like
        Values, of any dtype that `max_pool` takes; the shape is read by `layout`.
    indices : array_like of int64 or int32
        Of x's shape: flat positions in the result, counted over all its axes.
    kernel_shape, strides, pads : int or sequence of int
        Of the pooling that is undone. The spatial extents are inferred from them:
        ``(size - 1) * stride + kernel - pad_begin - pad_end``.
    output_shape : sequence of int, optional
        The whole shape of the result, in the order of `layout`, where the inferred one is not what was
        pooled.
    layout : str
        As for `max_pool`.
    index_space : {"output", "inferred"}
        What `indices` count in: the result (a pooling's own indices restore its input), or a block of the
        inferred extents that is put at the origin of the result (the example of ONNX MaxUnpool-9).
    index_layout : {"NCHW", "NHWC"}
        As for `max_pool`.
    out : ndarray, optional
        Where to put the result.
    num_threads : int, optional

    Returns
    -------
    y : ndarray
        Of x's dtype. Of several values with one index the last in row-major (channels-first) order stays.

    Raises
    ------
    TypeError, ValueError
        Wrong arguments; an index below 0 or beyond the result, in which case nothing is written.

    Notes
    -----
    Defined by ONNX MaxUnpool-9 and its channels-last form in com.ms.internal.nhwc.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> x = np.array([[[[1, 2], [3, 4]]]], np.float32)
    >>> indices = np.array([[[[5, 7], [13, 15]]]])
    >>> fastpool.max_unpool(x, indices, 2, strides=2)[0, 0]
    array([[0., 0., 0., 0.],
           [0., 1., 0., 2.],
           [0., 0., 0., 0.],
           [0., 3., 0., 4.]], dtype=float32)
    """
    if type(x) is not np.ndarray:
        x = _dispatch.as_array(x, "x")
    plan = make_unpool_plan(
        x.shape, kernel_shape, strides, pads, output_shape, layout, index_space, index_layout
    )
    return _dispatch.execute_max_unpool(plan, x, _dispatch.as_array(indices, "indices"), out, num_threads)
