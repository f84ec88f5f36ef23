"""Global and adaptive pooling: windows that follow from the extents of the input."""

from numpy import expand_dims, ndarray

from .. import _plans
from .._planning import arguments
from .._planning.dtypes import FLOATS
from .._planning.words import explicit, unexpected
from .._running.interop import as_array, as_output, bump_versions, routed
from .._running.plan_cache import PlanCache, call_key

_global_avg_plans = PlanCache(_plans.make_global_avg_plan)
_global_lp_plans = PlanCache(_plans.make_global_lp_plan, FLOATS)
_global_max_plans = PlanCache(_plans.make_global_max_plan)
_adaptive_avg_plans = PlanCache(_plans.make_adaptive_avg_plan)
_adaptive_max_plans = PlanCache(_plans.make_adaptive_max_plan)


@explicit
def global_avg_pool(
    x,
    *more,
    layout="NCHW",
    keepdims=True,
    dtype=None,
    rounding="half_even",
    numerics="pairwise",
    nan="propagate",
    out=None,
    num_threads=None,
    **unknown,
):
    """Take the mean of all spatial axes.

    Parameters
    ----------
    x : array_like
        Input with the axes of `layout`, of any type that :func:`avg_pool` takes.
    layout : str
        The axes of `x`, as in :func:`max_pool`: at least one spatial axis.
    keepdims : bool
        Whether the spatial axes stay, with one element each.
    dtype, rounding, numerics, nan, num_threads
        As in :func:`avg_pool`.
    out : ndarray, optional
        Array for the means, under the rules of :func:`avg_pool`.

    Returns
    -------
    y : ndarray
        The means, of the type `dtype`.

    Raises
    ------
    TypeError
        An argument is of the wrong kind.
    ValueError
        An argument has a wrong value, or a spatial axis has no elements.

    See Also
    --------
    avg_pool : Equal to this function if the window is as large as the input.
    plan_global_avg_pool : Prepare the work once for many arrays.

    Notes
    -----
    This is ONNX GlobalAveragePool, also in the domain com.ms.internal.nhwc, and ReduceMean over the
    spatial axes, for any number of them.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> x = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    >>> fastpool.global_avg_pool(x, keepdims=False)
    array([[1.5, 5.5]], dtype=float32)
    """
    if unknown or more:
        raise unexpected(global_avg_pool, unknown, more)
    if type(x) is not ndarray:
        results = routed(global_avg_pool, x, locals())
        if results is not None:
            return results
        x = as_array(x, "x")
    values = layout, dtype, rounding, numerics, nan, num_threads
    found = _global_avg_plans.quick.get(call_key(x, values))
    plan = _global_avg_plans.find(x, values) if found is None else found[0]
    return _reduced(plan, x, keepdims, out)


@explicit
def global_lp_pool(
    x,
    p=2,
    *more,
    layout="NCHW",
    keepdims=True,
    nan="propagate",
    out=None,
    num_threads=None,
    **unknown,
):
    """Take the Lp norm of all spatial axes.

    Parameters
    ----------
    x : array_like
        Input with the axes of `layout`, of any type that :func:`lp_pool` takes.
    p : float
        The order of the norm, any number above 0, which may be infinite.
    layout : str
        The axes of `x`, as in :func:`max_pool`: at least one spatial axis.
    keepdims : bool
        Whether the spatial axes stay, with one element each.
    nan, num_threads
        As in :func:`lp_pool`.
    out : ndarray, optional
        Array for the norms, under the rules of :func:`lp_pool`.

    Returns
    -------
    y : ndarray
        The norms, of the type of `x`.

    Raises
    ------
    TypeError
        An argument is of the wrong kind, or `x` holds no floats.
    ValueError
        An argument has a wrong value, or a spatial axis has no elements.

    See Also
    --------
    lp_pool : Equal to this function if the window is as large as the input.
    plan_global_lp_pool : Prepare the work once for many arrays.

    Notes
    -----
    This is ONNX GlobalLpPool, also in the domain com.ms.internal.nhwc, for any number of axes.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> x = np.array([[[1, 5, 5], [-5, 2, 1]]], dtype=np.float32)
    >>> fastpool.global_lp_pool(x, layout="CHW", keepdims=False)
    array([9.], dtype=float32)
    """
    if unknown or more:
        raise unexpected(global_lp_pool, unknown, more)
    if type(x) is not ndarray:
        results = routed(global_lp_pool, x, locals())
        if results is not None:
            return results
        x = as_array(x, "x")
    values = p, layout, nan, num_threads
    found = _global_lp_plans.quick.get(call_key(x, values))
    plan = _global_lp_plans.find(x, values) if found is None else found[0]
    return _reduced(plan, x, keepdims, out)


@explicit
def global_max_pool(
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
    """Take the maximum of all spatial axes.

    Parameters
    ----------
    x : array_like
        Input with the axes of `layout`, of any type that :func:`max_pool` takes.
    layout : str
        The axes of `x`, as in :func:`max_pool`: at least one spatial axis.
    keepdims : bool
        Whether the spatial axes stay, with one element each.
    nan, return_indices, index_axis, index_dtype, index_layout, num_threads
        As in :func:`max_pool`.
    out, out_indices : ndarray, optional
        Arrays for the results, under the rules of :func:`max_pool`.

    Returns
    -------
    y : ndarray
        The maxima, of the type of `x`.
    indices : ndarray
        Only if `return_indices`: the indices, as :func:`max_pool` gives them.

    Raises
    ------
    TypeError
        An argument is of the wrong kind.
    ValueError
        An argument has a wrong value, or a spatial axis has no elements.

    Notes
    -----
    This is ONNX GlobalMaxPool, also in the domain com.ms.internal.nhwc, and ReduceMax over the
    spatial axes, for any number of them.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> x = np.array([[[3, 1], [4, 1]], [[5, 9], [2, 6]]])
    >>> fastpool.global_max_pool(x, layout="CHW", keepdims=False, return_indices=True)
    (array([4, 9]), array([2, 5]))
    """
    if unknown or more:
        raise unexpected(global_max_pool, unknown, more)
    if type(x) is not ndarray:
        results = routed(global_max_pool, x, locals())
        if results is not None:
            return results
        x = as_array(x, "x")
    values = layout, nan, return_indices, index_axis, index_dtype, index_layout, num_threads
    found = _global_max_plans.quick.get(call_key(x, values))
    plan = _global_max_plans.find(x, values) if found is None else found[0]
    return _reduced(plan, x, keepdims, out, out_indices)


@explicit
def adaptive_avg_pool(
    x,
    output_size,
    *more,
    layout="NCHW",
    dtype=None,
    rounding="half_even",
    numerics="pairwise",
    nan="propagate",
    out=None,
    num_threads=None,
    **unknown,
):
    """Divide each spatial axis into a number of windows and take their means.

    Output ``i`` of ``O`` along an axis of ``H`` elements covers those from ``floor(i * H / O)`` up
    to, and without, ``ceil((i + 1) * H / O)``. Windows may overlap. If there are at least twice as
    many as elements, some repeat.

    Parameters
    ----------
    x : array_like
        Input with the axes of `layout`, of any type that :func:`avg_pool` takes.
    output_size : int or sequence of (int or None)
        Windows along every spatial axis, or along each. None is the extent of that axis.
    layout : str
        The axes of `x`, as in :func:`max_pool`.
    dtype, rounding, numerics, nan, out, num_threads
        As in :func:`avg_pool`.

    Returns
    -------
    y : ndarray
        The means, of the type `dtype`.

    Raises
    ------
    TypeError
        An argument is of the wrong kind.
    ValueError
        An argument has a wrong value, or an axis without elements gets windows.

    See Also
    --------
    plan_adaptive_avg_pool : Prepare the work once for many arrays.
    avg_pool : Take windows of a given size; it documents how means are rounded.

    Notes
    -----
    This is OpenVINO AdaptiveAvgPool-8 and torch's adaptive_avg_pool, for any number of axes.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> fastpool.adaptive_avg_pool(np.arange(7.0), 3, layout="W")
    array([1., 3., 5.])
    """
    if unknown or more:
        raise unexpected(adaptive_avg_pool, unknown, more)
    if type(x) is not ndarray:
        results = routed(adaptive_avg_pool, x, locals())
        if results is not None:
            return results
        x = as_array(x, "x")
    values = output_size, layout, dtype, rounding, numerics, nan, num_threads
    found = _adaptive_avg_plans.quick.get(call_key(x, values))
    plan = _adaptive_avg_plans.find(x, values) if found is None else found[0]
    return plan(x, out)


@explicit
def adaptive_max_pool(
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
    """Divide each spatial axis into a number of windows and take their maxima.

    The windows are those of :func:`adaptive_avg_pool`.

    Parameters
    ----------
    x : array_like
        Input with the axes of `layout`, of any type that :func:`max_pool` takes.
    output_size : int or sequence of (int or None)
        Windows along every spatial axis, or along each. None is the extent of that axis.
    layout : str
        The axes of `x`, as in :func:`max_pool`.
    nan, return_indices, index_axis, index_dtype, index_layout, out, out_indices, num_threads
        As in :func:`max_pool`.

    Returns
    -------
    y : ndarray
        The maxima, of the type of `x`.
    indices : ndarray
        Only if `return_indices`: the indices, as :func:`max_pool` gives them.

    Raises
    ------
    TypeError
        An argument is of the wrong kind.
    ValueError
        An argument has a wrong value, or an axis without elements gets windows.

    Notes
    -----
    This is OpenVINO AdaptiveMaxPool-8 and torch's adaptive_max_pool, for any number of axes. Their
    indices count in each plane: ``index_axis=2`` of an "NCHW" array.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> x = np.array([2, 7, 1, 8, 2, 8, 1])
    >>> fastpool.adaptive_max_pool(x, 3, layout="W", return_indices=True)
    (array([7, 8, 8]), array([1, 3, 5]))
    """
    if unknown or more:
        raise unexpected(adaptive_max_pool, unknown, more)
    if type(x) is not ndarray:
        results = routed(adaptive_max_pool, x, locals())
        if results is not None:
            return results
        x = as_array(x, "x")
    indices = return_indices, index_axis, index_dtype, index_layout
    values = output_size, layout, nan, *indices, num_threads
    found = _adaptive_max_plans.quick.get(call_key(x, values))
    plan = _adaptive_max_plans.find(x, values) if found is None else found[0]
    return plan(x, out, out_indices)


def _reduced(plan, x, keepdims, *outputs):
    """Run a plan whose results have one element along each spatial axis, and may lose these."""
    if arguments.keepdims(keepdims):
        return plan(x, *outputs)
    names = "out", "out_indices"
    given = [_with_axes(plan, *pair) for pair in zip(outputs, names, strict=False)]
    results = plan(x, *given)
    bump_versions(*outputs)
    if not isinstance(results, tuple):
        return results.squeeze(plan.spatial) if outputs[0] is None else outputs[0]
    return tuple(
        result.squeeze(plan.spatial) if out is None else out
        for result, out in zip(results, outputs, strict=True)
    )


def _with_axes(plan, out, name):
    """Return a view of an output array with the spatial axes that it lacks."""
    if out is None:
        return None
    array = as_output(out, name)
    shape = tuple(
        extent for axis, extent in enumerate(plan.output_shape) if axis not in plan.spatial
    )
    if array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
    return expand_dims(array, plan.spatial)


@explicit
def plan_global_avg_pool(
    input_shape,
    dtype,
    *more,
    layout="NCHW",
    result_dtype=None,
    rounding="half_even",
    numerics="pairwise",
    nan="propagate",
    num_threads=None,
    **unknown,
):
    """Return the `AvgPoolPlan` of :func:`global_avg_pool` for arrays of one shape and type.

    `result_dtype` is the argument `dtype` of that function. Other arguments are those of that
    function, with its errors. The spatial axes of the results stay, with one element each.

    Examples
    --------
    >>> import fastpool
    >>> fastpool.plan_global_avg_pool((1, 2048, 7, 7), "float32").output_shape
    (1, 2048, 1, 1)
    """
    if unknown or more:
        raise unexpected(plan_global_avg_pool, unknown, more)
    values = layout, result_dtype, rounding, numerics, nan, num_threads
    return _plans.make_global_avg_plan(input_shape, dtype, *values, name="result_dtype")


@explicit
def plan_global_lp_pool(
    input_shape,
    dtype,
    p=2,
    *more,
    layout="NCHW",
    nan="propagate",
    num_threads=None,
    **unknown,
):
    """Return the `LpPoolPlan` of :func:`global_lp_pool` for arrays of one shape and type.

    Other arguments are those of that function, with its errors. The spatial axes of the results
    stay, with one element each.

    Examples
    --------
    >>> import fastpool
    >>> fastpool.plan_global_lp_pool((1, 2048, 7, 7), "float32").output_shape
    (1, 2048, 1, 1)
    """
    if unknown or more:
        raise unexpected(plan_global_lp_pool, unknown, more)
    return _plans.make_global_lp_plan(input_shape, dtype, p, layout, nan, num_threads)


@explicit
def plan_global_max_pool(
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
    """Return the `MaxPoolPlan` of :func:`global_max_pool` for arrays of one shape and type.

    Other arguments are those of that function, with its errors. The spatial axes of the results
    stay, with one element each.

    Examples
    --------
    >>> import fastpool
    >>> fastpool.plan_global_max_pool((1, 2048, 7, 7), "float32").output_shape
    (1, 2048, 1, 1)
    """
    if unknown or more:
        raise unexpected(plan_global_max_pool, unknown, more)
    indices = return_indices, index_axis, index_dtype, index_layout
    return _plans.make_global_max_plan(input_shape, dtype, layout, nan, *indices, num_threads)


@explicit
def plan_adaptive_avg_pool(
    input_shape,
    dtype,
    output_size,
    *more,
    layout="NCHW",
    result_dtype=None,
    rounding="half_even",
    numerics="pairwise",
    nan="propagate",
    num_threads=None,
    **unknown,
):
    """Return the `AvgPoolPlan` of :func:`adaptive_avg_pool` for arrays of one shape and type.

    `result_dtype` is the argument `dtype` of that function. Other arguments are those of that
    function, with its errors.

    Examples
    --------
    >>> import fastpool
    >>> fastpool.plan_adaptive_avg_pool((1, 512, 60, 60), "float32", 6).output_shape
    (1, 512, 6, 6)
    """
    if unknown or more:
        raise unexpected(plan_adaptive_avg_pool, unknown, more)
    values = output_size, layout, result_dtype, rounding, numerics, nan, num_threads
    return _plans.make_adaptive_avg_plan(input_shape, dtype, *values, name="result_dtype")


@explicit
def plan_adaptive_max_pool(
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
    """Return the `MaxPoolPlan` of :func:`adaptive_max_pool` for arrays of one shape and type.

    Other arguments are those of that function, with its errors.

    Examples
    --------
    >>> import fastpool
    >>> fastpool.plan_adaptive_max_pool((1, 512, 60, 60), "float32", (1, None)).output_shape
    (1, 512, 1, 60)
    """
    if unknown or more:
        raise unexpected(plan_adaptive_max_pool, unknown, more)
    values = layout, nan, return_indices, index_axis, index_dtype, index_layout, num_threads
    return _plans.make_adaptive_max_plan(input_shape, dtype, output_size, *values)
