"""Average pooling: each call finds or makes its plan and runs it."""

from numpy import ndarray

from .._planning.words import explicit, unexpected
from .._plans import make_avg_plan
from .._running.interop import as_array, routed
from .._running.plan_cache import PlanCache, call_key

_plans = PlanCache(make_avg_plan)


@explicit
def avg_pool(
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
    count_include_pad=False,
    beyond="drop",
    divisor=None,
    dtype=None,
    rounding="half_even",
    numerics="pairwise",
    nan="propagate",
    layout="NCHW",
    activation=None,
    activation_params=(),
    out=None,
    num_threads=None,
    **unknown,
):
    """Take the mean of every window of an array.

    Along each spatial axis output ``o`` is made of the elements ``o * stride - pad_begin + t *
    dilation`` with ``0 <= t < kernel``. Their sum is divided by how many there are, or by what
    `count_include_pad` and `divisor` say. `numerics` names the order in which floats are added.

    Parameters
    ----------
    x : array_like
        Input with the axes of `layout`: float16, bfloat16 (of the package ml_dtypes), float32,
        float64, any integer type or bool. Bools count as 0 and 1. Arrays are taken as
        :func:`max_pool` takes them.
    kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule
        The windows, as in :func:`max_pool`. Padding is worth 0.
    border, border_value
        The values of padding, as in :func:`max_pool`. With any border but "ignore" padding counts
        for the divisor, and `count_include_pad` is not to be given.
    count_include_pad : bool
        Whether taps on padding count for the divisor, as elements do.
    beyond : {"drop", "count"}
        With `ceil_mode` and `count_include_pad`, taps past the padding at the end do not count
        ("drop"), or every window is divided by all of its taps ("count").
    divisor : int, optional
        What every sum is divided by, whatever the window holds: any int but 0. 1 gives sums.
    dtype : dtype_like, optional
        Type of the result, by default that of `x`. Integers and bool become float32, float64 or any
        integer type that holds every possible result, and floats become wider floats. Means of
        integers are rounded once to that type.
    rounding : {"half_even", "half_away", "trunc", "floor"}
        How quotients become integers: to the nearest, with halves to the even one or away from
        zero; toward zero; or down. Floats are always rounded to the nearest, halves to even.
    numerics : {"pairwise", "exact", "sequential"}
        "pairwise", the default: floats are added by a tree, axis by axis, in float32 (float64 for
        float64 and for a result of float64). The error grows with the logarithm of the window.
        "exact": the true mean, rounded once. "sequential": floats are added in row-major order, in
        float32 (float64 for float64): the bits of torch, oneDNN, OpenVINO and onnxruntime from
        opset 19 on.
        Sums of integers are exact in any case.
    nan : {"propagate", "ignore"}
        "propagate": a window with a NaN gives NaN. "ignore": a NaN is neither summed nor counted,
        and a window of NaN alone gives NaN.
    layout : str
        The axes of `x` and of the result, as in :func:`max_pool`.
    activation, activation_params
        Applied to the means, as in :func:`max_pool`.
    out : ndarray, optional
        Array for the means, of their exact shape and type. It is writeable and shares no memory
        with `x`. It may be a tensor or another object whose memory can be written. It is returned.
    num_threads : int, optional
        As in :func:`max_pool`. The result does not depend on it.

    Returns
    -------
    y : ndarray
        The means, of the type `dtype`, and of the shape of `x` with other spatial extents.

    Raises
    ------
    TypeError
        An argument is of the wrong kind, `dtype` is a float narrower than the type of `x`, or an
        array is not in the memory of the CPU.
    ValueError
        An argument has a wrong value, a window is larger than the padded input, `dtype` does not
        hold every possible result, or the result is larger than any memory.

    See Also
    --------
    plan_avg_pool : Prepare the work once for many arrays.
    global_avg_pool : Take the mean of all spatial axes.
    adaptive_avg_pool : Divide each spatial axis into a given number of windows.

    Notes
    -----
    This is ONNX AveragePool 1 to 22, also in the domain com.ms.internal.nhwc (``layout="NHWC"`` and
    `activation`), OpenVINO AvgPool-1, -14 and -16, torch's avg_pool and TensorFlow Lite's
    AVERAGE_POOL_2D. If these disagree:

    - a window that holds no element gives 0;
    - a window that reaches past the padding at the end is divided without that part, as in ONNX
      and torch; OpenVINO counts it, which is `beyond` "count";
    - `ceil_rule`, "VALID" and "SAME_*" are those of :func:`max_pool`, and a stride larger than the
      window never crops.

    All layouts, threads, processors and ways of cutting the work give the same bits. With
    `numerics` "exact" no intermediate rounding, overflow or underflow shows. Then, unless padding
    counts or a `divisor` is given, the mean of equal values is that value, and a mean lies between
    the least and the greatest element of its window. Sums in pairs are rounded, and may overflow
    where the mean would not.

    NaN, and infinities of both signs, give NaN. The sign of a zero and the sign and payload of a
    NaN are not defined. int64 and uint64 results saturate, which needs a `divisor`.

    Plans of recent geometries are cached, so that repeated calls do not plan again.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> fastpool.avg_pool(x, 2, strides=2)
    array([[[[ 2.5,  4.5],
             [10.5, 12.5]]]], dtype=float32)

    Padding counts, or it does not:

    >>> row = np.array([3.0, 6.0, 9.0])
    >>> fastpool.avg_pool(row, 3, pads=1, layout="W")
    array([4.5, 6. , 7.5])
    >>> fastpool.avg_pool(row, 3, pads=1, layout="W", count_include_pad=True)
    array([3., 6., 5.])
    >>> fastpool.avg_pool(row, 3, pads=1, layout="W", border="nearest")
    array([4., 6., 8.])

    Sums of bytes, in a type that holds them:

    >>> data = np.array([200, 100, 7], np.uint8)
    >>> fastpool.avg_pool(data, 2, layout="W", divisor=1, dtype="int32")
    array([300, 107], dtype=int32)
    """
    if unknown or more:
        raise unexpected(avg_pool, unknown, more)
    if type(x) is not ndarray:
        results = routed(avg_pool, x, locals())
        if results is not None:
            return results
        x = as_array(x, "x")
    arguments = (
        kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule, count_include_pad,
        beyond, divisor, dtype, rounding, numerics, nan, layout, activation, activation_params,
        num_threads, border, border_value,
    )  # fmt: skip
    found = _plans.quick.get(call_key(x, arguments))
    plan = _plans.find(x, arguments) if found is None else found[0]
    return plan(x, out)


@explicit
def plan_avg_pool(
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
    count_include_pad=False,
    beyond="drop",
    divisor=None,
    result_dtype=None,
    rounding="half_even",
    numerics="pairwise",
    nan="propagate",
    layout="NCHW",
    activation=None,
    activation_params=(),
    num_threads=None,
    **unknown,
):
    """Prepare an average pooling for any number of arrays of one shape and type.

    Parameters
    ----------
    input_shape : sequence of int
        Shape of the arrays, with the axes of `layout`.
    dtype : dtype_like
        Type of their elements. "bfloat16" needs no ml_dtypes.
    result_dtype : dtype_like, optional
        Type of the result: `dtype` of :func:`avg_pool`.
    kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule, border, \
border_value, count_include_pad, beyond, divisor, rounding, numerics, nan, layout, activation, \
activation_params, num_threads
        As in :func:`avg_pool`.

    Returns
    -------
    plan : AvgPoolPlan
        ``plan(x, out=None)`` returns what :func:`avg_pool` returns, without checking attributes
        again. A plan is immutable, hashable and picklable, and threads may share it.

    Raises
    ------
    TypeError
        An argument is of the wrong kind.
    ValueError
        An argument has a wrong value, a window is larger than the padded input, the result type
        does not hold every possible result, or an array is larger than any memory.

    See Also
    --------
    avg_pool : Plan and pool in one call; it documents the rules and their sources.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> plan = fastpool.plan_avg_pool((1, 96, 56, 56), "float32", 3, pads=1)
    >>> plan.output_shape
    (1, 96, 56, 56)
    >>> y = np.empty(plan.output_shape, np.float32)
    >>> plan(np.ones(plan.input_shape, np.float32), out=y) is y
    True
    """
    if unknown or more:
        raise unexpected(plan_avg_pool, unknown, more)
    return make_avg_plan(
        input_shape, dtype, kernel_shape, strides=strides, pads=pads, dilations=dilations,
        auto_pad=auto_pad, ceil_mode=ceil_mode, ceil_rule=ceil_rule,
        count_include_pad=count_include_pad, beyond=beyond, divisor=divisor,
        result_dtype=result_dtype, rounding=rounding, numerics=numerics, nan=nan, layout=layout,
        activation=activation, activation_params=activation_params, num_threads=num_threads,
        border=border, border_value=border_value, name="result_dtype",
    )  # fmt: skip
