"""Min pooling over windows, over all spatial axes, and adaptive: the counterparts of maxima."""

from numpy import ndarray

from .. import _plans
from .._planning.words import explicit, unexpected
from .._running.interop import as_array, routed
from .._running.plan_cache import PlanCache, call_key
from .adaptive import _reduced

_pool_plans = PlanCache(_plans.make_min_plan)
_global_plans = PlanCache(_plans.make_global_min_plan)
_adaptive_plans = PlanCache(_plans.make_adaptive_min_plan)


@explicit
def min_pool(
    x,
    kernel_shape,
    *more,
    strides=1,
    pads=0,
    dilations=1,
    auto_pad="NOTSET",
    ceil_mode=False,
    ceil_rule="clip",
    border="ignore",
    border_value=None,
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
    **unknown,
):
    """Take the minimum of every window of an array.

    Windows and their elements are those of :func:`max_pool`, and so are all arguments. Padding
    never wins the minimum, unless `border` says what stands there. A photograph, of shape (height,
    width, 3), is ``layout="HWC"``.

    Parameters
    ----------
    x : array_like
        Input with the axes of `layout`, of any type that :func:`max_pool` takes.
    kernel_shape : int or sequence of int
        Taps of the window along each spatial axis, at least 1.
    strides, pads, dilations, auto_pad, ceil_mode, ceil_rule, border, border_value, layout, nan, \
activation, activation_params, return_indices, storage_order, index_axis, index_dtype, \
index_layout, num_threads
        As in :func:`max_pool`.
    out : ndarray, optional
        Array for the minima, under the rules of :func:`max_pool`.
    out_indices : ndarray, optional
        Array for the indices, under the rules of `out`.

    Returns
    -------
    y : ndarray
        The minima, of the type of `x`, and of its shape with other spatial extents.
    indices : ndarray
        Only if `return_indices`: the indices, of the shape of `y`. If a minimum occurs more than
        once in its window, the index is that of the first in row-major order, in every layout.

    Raises
    ------
    TypeError, ValueError
        As :func:`max_pool`.

    See Also
    --------
    plan_min_pool : Prepare the work once for many arrays.
    max_pool : It documents the arguments and the rules.

    Notes
    -----
    Before an activation, the minima are ``-max_pool(-x)`` for floats and ``~max_pool(~x)`` for
    integers and bool: the same elements win, NaN too, at the same indices. A window that holds no
    element gives inf, the greatest integer, or True, and index -1. The sign of a zero is not
    defined. :func:`max_unpool` puts minima back where they were, too.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> x = np.array([[5, 3, 8, 1], [4, 7, 6, 2]], dtype=np.uint8)
    >>> fastpool.min_pool(x, 2, strides="window", layout="HW")
    array([[3, 1]], dtype=uint8)

    An erosion of a binary image by a square of 3 x 3, in which the edge takes no part:

    >>> image = np.ones((3, 5), bool)
    >>> image[1, 4] = False
    >>> fastpool.min_pool(image, 3, pads=1, layout="HW").astype(int)
    array([[1, 1, 1, 0, 0],
           [1, 1, 1, 0, 0],
           [1, 1, 1, 0, 0]])
    """
    if unknown or more:
        raise unexpected(min_pool, unknown, more)
    if type(x) is not ndarray:
        results = routed(min_pool, x, locals())
        if results is not None:
            return results
        x = as_array(x, "x")
    arguments = (
        kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule, layout, nan,
        activation, activation_params, return_indices, storage_order, index_axis, index_dtype,
        index_layout, num_threads, border, border_value,
    )  # fmt: skip
    found = _pool_plans.quick.get(call_key(x, arguments))
    plan = _pool_plans.find(x, arguments) if found is None else found[0]
    return plan(x, out, out_indices)


@explicit
def plan_min_pool(
    input_shape,
    dtype,
    kernel_shape,
    *more,
    strides=1,
    pads=0,
    dilations=1,
    auto_pad="NOTSET",
    ceil_mode=False,
    ceil_rule="clip",
    border="ignore",
    border_value=None,
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
    **unknown,
):
    """Return the `MinPoolPlan` of :func:`min_pool` for arrays of one shape and type.

    The arguments are those of :func:`plan_max_pool`, with its errors.

    Examples
    --------
    >>> import fastpool
    >>> fastpool.plan_min_pool((1, 64, 112, 112), "float32", 3, strides=2, pads=1).output_shape
    (1, 64, 56, 56)
    """
    if unknown or more:
        raise unexpected(plan_min_pool, unknown, more)
    return _plans.make_min_plan(
        input_shape, dtype, kernel_shape, strides=strides, pads=pads, dilations=dilations,
        auto_pad=auto_pad, ceil_mode=ceil_mode, ceil_rule=ceil_rule, layout=layout, nan=nan,
        activation=activation, activation_params=activation_params, return_indices=return_indices,
        storage_order=storage_order, index_axis=index_axis, index_dtype=index_dtype,
        index_layout=index_layout, num_threads=num_threads, border=border,
        border_value=border_value,
    )  # fmt: skip


@explicit
def global_min_pool(
    x,
    *more,
    layout="NCHW",
    keepdims=True,
    nan="propagate",
    return_indices=False,
    index_axis=0,
    index_dtype="int64",
    index_layout="NCHW",
    out=None,
    out_indices=None,
    num_threads=None,
    **unknown,
):
    """Take the minimum of all spatial axes.

    Parameters
    ----------
    x : array_like
        Input with the axes of `layout`, of any type that :func:`max_pool` takes.
    layout, keepdims, nan, return_indices, index_axis, index_dtype, index_layout, out, \
out_indices, num_threads
        As in :func:`global_max_pool`.

    Returns
    -------
    y : ndarray
        The minima, of the type of `x`.
    indices : ndarray
        Only if `return_indices`: the indices, as :func:`min_pool` gives them.

    Raises
    ------
    TypeError, ValueError
        As :func:`global_max_pool`.

    See Also
    --------
    plan_global_min_pool : Prepare the work once for many arrays.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> x = np.array([[[3, 1], [4, 1]], [[5, 9], [2, 6]]])
    >>> fastpool.global_min_pool(x, layout="CHW", keepdims=False, return_indices=True)
    (array([1, 2]), array([1, 6]))
    """
    if unknown or more:
        raise unexpected(global_min_pool, unknown, more)
    if type(x) is not ndarray:
        results = routed(global_min_pool, x, locals())
        if results is not None:
            return results
        x = as_array(x, "x")
    values = layout, nan, return_indices, index_axis, index_dtype, index_layout, num_threads
    found = _global_plans.quick.get(call_key(x, values))
    plan = _global_plans.find(x, values) if found is None else found[0]
    return _reduced(plan, x, keepdims, out, out_indices)


@explicit
def plan_global_min_pool(
    input_shape,
    dtype,
    *more,
    layout="NCHW",
    nan="propagate",
    return_indices=False,
    index_axis=0,
    index_dtype="int64",
    index_layout="NCHW",
    num_threads=None,
    **unknown,
):
    """Return the `MinPoolPlan` of :func:`global_min_pool` for arrays of one shape and type.

    The arguments are those of :func:`plan_global_max_pool`, with its errors.

    Examples
    --------
    >>> import fastpool
    >>> fastpool.plan_global_min_pool((1, 2048, 7, 7), "float32").output_shape
    (1, 2048, 1, 1)
    """
    if unknown or more:
        raise unexpected(plan_global_min_pool, unknown, more)
    indices = return_indices, index_axis, index_dtype, index_layout
    return _plans.make_global_min_plan(input_shape, dtype, layout, nan, *indices, num_threads)


@explicit
def adaptive_min_pool(
    x,
    output_size,
    *more,
    layout="NCHW",
    nan="propagate",
    return_indices=False,
    index_axis=0,
    index_dtype="int64",
    index_layout="NCHW",
    out=None,
    out_indices=None,
    num_threads=None,
    **unknown,
):
    """Divide each spatial axis into a number of windows and take their minima.

    The windows are those of :func:`adaptive_avg_pool`.

    Parameters
    ----------
    x : array_like
        Input with the axes of `layout`, of any type that :func:`max_pool` takes.
    output_size : int or sequence of (int or None)
        Windows along every spatial axis, or along each. None is the extent of that axis.
    layout, nan, return_indices, index_axis, index_dtype, index_layout, out, out_indices, \
num_threads
        As in :func:`adaptive_max_pool`.

    Returns
    -------
    y : ndarray
        The minima, of the type of `x`.
    indices : ndarray
        Only if `return_indices`: the indices, as :func:`min_pool` gives them.

    Raises
    ------
    TypeError, ValueError
        As :func:`adaptive_max_pool`.

    See Also
    --------
    plan_adaptive_min_pool : Prepare the work once for many arrays.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> x = np.array([2, 7, 1, 8, 2, 8, 1])
    >>> fastpool.adaptive_min_pool(x, 3, layout="W", return_indices=True)
    (array([1, 1, 1]), array([2, 2, 6]))
    """
    if unknown or more:
        raise unexpected(adaptive_min_pool, unknown, more)
    if type(x) is not ndarray:
        results = routed(adaptive_min_pool, x, locals())
        if results is not None:
            return results
        x = as_array(x, "x")
    indices = return_indices, index_axis, index_dtype, index_layout
    values = output_size, layout, nan, *indices, num_threads
    found = _adaptive_plans.quick.get(call_key(x, values))
    plan = _adaptive_plans.find(x, values) if found is None else found[0]
    return plan(x, out, out_indices)


@explicit
def plan_adaptive_min_pool(
    input_shape,
    dtype,
    output_size,
    *more,
    layout="NCHW",
    nan="propagate",
    return_indices=False,
    index_axis=0,
    index_dtype="int64",
    index_layout="NCHW",
    num_threads=None,
    **unknown,
):
    """Return the `MinPoolPlan` of :func:`adaptive_min_pool` for arrays of one shape and type.

    The arguments are those of :func:`plan_adaptive_max_pool`, with its errors.

    Examples
    --------
    >>> import fastpool
    >>> fastpool.plan_adaptive_min_pool((1, 512, 60, 60), "float32", (1, None)).output_shape
    (1, 512, 1, 60)
    """
    if unknown or more:
        raise unexpected(plan_adaptive_min_pool, unknown, more)
    values = layout, nan, return_indices, index_axis, index_dtype, index_layout, num_threads
    return _plans.make_adaptive_min_plan(input_shape, dtype, output_size, *values)
