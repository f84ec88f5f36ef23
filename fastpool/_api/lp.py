"""Lp pooling: each call finds or makes its plan and runs it."""

from numpy import ndarray

from .._planning.dtypes import FLOATS
from .._planning.words import explicit, unexpected
from .._plans import make_lp_plan
from .._running.interop import as_array, routed
from .._running.plan_cache import PlanCache, call_key

_plans = PlanCache(make_lp_plan, FLOATS)


@explicit
def lp_pool(
    x,
    kernel_shape,
    p=2,
    *more,
    strides=1,
    pads=0,
    dilations=1,
    auto_pad="NOTSET",
    ceil_mode=False,
    ceil_rule="clip",
    partial="sum",
    nan="propagate",
    layout="NCHW",
    out=None,
    num_threads=None,
    **unknown,
):
    """Take the Lp norm of every window of an array.

    Along each spatial axis output ``o`` is made of the elements ``o * stride - pad_begin + t *
    dilation`` with ``0 <= t < kernel``. The result is ``sum(abs(element) ** p) ** (1 / p)``.

    Parameters
    ----------
    x : array_like
        Input with the axes of `layout`: float16, bfloat16 (of the package ml_dtypes), float32 or
        float64. Arrays are taken as :func:`max_pool` takes them.
    kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule
        The windows, as in :func:`max_pool`. Padding adds nothing.
    p : float
        The order of the norm, any number above 0. 1 gives sums of magnitudes, 2 the Euclidean norm,
        and infinity the greatest magnitude.
    partial : {"sum", "scale"}
        With `ceil_mode`, a window may reach past the padding at the end. "sum": it has fewer taps.
        "scale": its sum is multiplied by the taps of the window over those on elements and padding.
    nan : {"propagate", "ignore"}
        "propagate": a window with a NaN gives NaN. "ignore": a NaN adds nothing, and a window of
        NaN alone gives NaN.
    layout : str
        The axes of `x` and of the result, as in :func:`max_pool`.
    out : ndarray, optional
        Array for the norms, of their exact shape and type. It is writeable and shares no memory
        with `x`. It may be a tensor or another object whose memory can be written. It is returned.
    num_threads : int, optional
        As in :func:`max_pool`. The result does not depend on it.

    Returns
    -------
    y : ndarray
        The norms, of the type of `x`, and of its shape with other spatial extents.

    Raises
    ------
    TypeError
        An argument is of the wrong kind, or an array holds no floats or is not in the memory of the
        CPU.
    ValueError
        An argument has a wrong value, a window is larger than the padded input, or the result is
        larger than any memory.

    See Also
    --------
    plan_lp_pool : Prepare the work once for many arrays.
    global_lp_pool : Take the norm of all spatial axes.

    Notes
    -----
    This is ONNX LpPool 1 to 22, also in the domain com.ms.internal.nhwc (``layout="NHWC"``), and
    torch's lp_pool of numbers that are not negative. If these disagree:

    - torch adds ``element ** p``, so a sum of p 1 has a sign, and p 3 gives NaN if it is negative;
    - torch and ONNX's reference evaluator do what `partial` "scale" does, onnxruntime "sum";
    - a window that holds no element gives 0.

    Nothing overflows or underflows inside: the norm of 1e20 and 1e20 is 1.4142e20 in float32. For p
    of 1 and infinity, and of 2 except in float64, the result is the true norm, rounded once. Others
    are within 1 ulp of it, float64 within 5, if the calling thread has the default rounding mode
    and keeps subnormal numbers. All layouts, threads and ways of cutting the work give the same
    bits. Infinities give infinity. The sign and payload of a NaN are not defined.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> x = np.array([3, 4, -12, 5, 0], np.float32)
    >>> fastpool.lp_pool(x, 2, layout="W")
    array([ 5.      , 12.649111, 13.      ,  5.      ], dtype=float32)
    >>> fastpool.lp_pool(x, 2, 1, layout="W")
    array([ 7., 16., 17.,  5.], dtype=float32)
    """
    if unknown or more:
        raise unexpected(lp_pool, unknown, more)
    if type(x) is not ndarray:
        results = routed(lp_pool, x, locals())
        if results is not None:
            return results
        x = as_array(x, "x")
    arguments = (
        kernel_shape, p, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule, partial, nan,
        layout, num_threads,
    )  # fmt: skip
    found = _plans.quick.get(call_key(x, arguments))
    plan = _plans.find(x, arguments) if found is None else found[0]
    return plan(x, out)


@explicit
def plan_lp_pool(
    input_shape,
    dtype,
    kernel_shape,
    p=2,
    *more,
    strides=1,
    pads=0,
    dilations=1,
    auto_pad="NOTSET",
    ceil_mode=False,
    ceil_rule="clip",
    partial="sum",
    nan="propagate",
    layout="NCHW",
    num_threads=None,
    **unknown,
):
    """Prepare an Lp pooling for any number of arrays of one shape and type.

    Parameters
    ----------
    input_shape : sequence of int
        Shape of the arrays, with the axes of `layout`.
    dtype : dtype_like
        Type of their elements. "bfloat16" needs no ml_dtypes.
    kernel_shape, p, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule, partial, nan, \
layout, num_threads
        As in :func:`lp_pool`.

    Returns
    -------
    plan : LpPoolPlan
        ``plan(x, out=None)`` returns what :func:`lp_pool` returns, without checking attributes
        again. A plan is immutable, hashable and picklable, and threads may share it.

    Raises
    ------
    TypeError
        An argument is of the wrong kind, or the type is not one of floats.
    ValueError
        An argument has a wrong value, a window is larger than the padded input, or an array is
        larger than any memory.

    See Also
    --------
    lp_pool : Plan and pool in one call; it documents the rules and their sources.

    Examples
    --------
    >>> import fastpool
    >>> plan = fastpool.plan_lp_pool((1, 96, 56, 56), "float32", 3, strides=2, pads=1)
    >>> plan.output_shape
    (1, 96, 28, 28)
    """
    if unknown or more:
        raise unexpected(plan_lp_pool, unknown, more)
    return make_lp_plan(
        input_shape, dtype, kernel_shape, p, strides=strides, pads=pads, dilations=dilations,
        auto_pad=auto_pad, ceil_mode=ceil_mode, ceil_rule=ceil_rule, partial=partial, nan=nan,
        layout=layout, num_threads=num_threads,
    )  # fmt: skip
