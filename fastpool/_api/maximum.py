"""Max pooling and max unpooling: each call finds or makes its plan and runs it."""

from numpy import ndarray

from .._planning import arguments
from .._planning.words import explicit, unexpected
from .._plans import make_plan, make_unpool_plan
from .._running.interop import as_array, routed
from .._running.plan_cache import PlanCache, call_key

_pool_plans = PlanCache(make_plan)
_unpool_plans = PlanCache(lambda shape, dtype, *attributes: make_unpool_plan(shape, *attributes))


@explicit
def max_pool(
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
    """Take the maximum of every window of an array.

    Along each spatial axis output ``o`` is the maximum of the elements ``o * stride - pad_begin +
    t * dilation`` with ``0 <= t < kernel``. Elements outside the array are left out. Attributes
    have the names and meanings of ONNX. One int means all spatial axes, None the default.

    Parameters
    ----------
    x : array_like
        Input with the axes of `layout`: float16, bfloat16 (of the package ml_dtypes), float32,
        float64, any integer type or bool. It may have any strides. It is never written, and not
        copied if its last axis is contiguous. Tensors and arrays of other libraries (DLPack,
        ``__array__``, the buffer protocol) are read in place. A dask array goes to `fastpool.dask`,
        a DataArray to `fastpool.xarray`.
    kernel_shape : int or sequence of int
        Taps of the window along each spatial axis, at least 1.
    strides : int, sequence of int or "window"
        Elements from one window to the next, at least 1. "window" is `kernel_shape`: windows next
        to each other.
    pads : int or sequence of int
        Padding, which never wins the maximum: one int for all sides, one per spatial axis for both
        of its sides, or all begins and then all ends. It may be larger than the window.
    dilations : int or sequence of int
        Elements from one tap of a window to the next, at least 1.
    auto_pad : {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}
        "NOTSET" uses `pads`; the others allow none. "VALID" does not pad. "SAME_UPPER" and
        "SAME_LOWER" pad for ``ceil(size / stride)`` outputs, with an odd unit at the end or at the
        beginning.
    ceil_mode : bool
        Whether the number of windows is rounded up, not down. If the window exceeds the padded
        input by less than the stride, that makes one window of what is there. It does not affect
        "SAME_*".
    ceil_rule : {"clip", "keep"}
        With `ceil_mode`, a last window that starts in the padding at the end or past it is dropped
        ("clip") or kept ("keep").
    border : {"ignore", "reflect", "mirror", "nearest", "wrap", "constant"}
        The values of padding, by SciPy's names. "ignore": none. The others continue an array
        abcd at both sides: "reflect" with dcba, "mirror" with dcb and cba, "nearest" with aaa and
        ddd, "wrap" with bcd and abc, "constant" with `border_value`. Padding wider than the array
        repeats the pattern. Taps past the padding, which `ceil_mode` may add, are left out.
    border_value : number, optional
        The constant of "constant", by default 0. An integer type holds it, floats round it.
    layout : str
        The axes of `x` and of the results: "W", "HW" or "DHW", before it an optional "N" for the
        batch, and before or after it an optional "C" for the channels. "NCHW" and "NHWC" also mean
        channels first and channels last with any number of spatial axes. A photograph, of shape
        (height, width, 3), is "HWC": as "NCHW" it is pooled along its colours.
    nan : {"propagate", "ignore"}
        "propagate": a window with a NaN gives NaN. "ignore": only a window of NaN alone does.
    activation : {"Relu", "Clip", "LeakyRelu", "HardSigmoid", "Tanh", "Sigmoid", "Silu"}, optional
        Applied to the maxima, in float32 or wider. Indices are not affected. Integers allow "Relu"
        and "Clip", bool allows none.
    activation_params : sequence of float
        "Clip": minimum and maximum; "Relu": none, or minimum and maximum; "LeakyRelu": alpha;
        "HardSigmoid": alpha and beta of ``clip(alpha * x + beta, 0, 1)``; none for the others.
    return_indices : bool
        Whether to return the index of each maximum too.
    storage_order : {0, 1}
        Whether indices count planes row by row, or column by column (the first spatial axis
        fastest). Nothing else depends on it.
    index_axis : int
        Indices count within the axes from this one on: 0 for the whole array, 2 for each plane of
        an "NCHW" array. Negative values count from the last axis.
    index_dtype : {"int64", "int32"}
        Type of the indices, or anything that NumPy reads as one of these.
    index_layout : {"NCHW", "NHWC"}
        If the channels come last, indices count in the array as if they came first ("NCHW") or in
        the array as it is ("NHWC").
    out : ndarray, optional
        Array for the maxima, of their exact shape and type. It is writeable and shares no memory
        with `x`. It may be a tensor or another object whose memory can be written. It is returned.
    out_indices : ndarray, optional
        Array for the indices, under the rules of `out`.
    num_threads : int, optional
        The number of threads, at least 1; more than 256 count as 256. By default it is
        FASTPOOL_NUM_THREADS, or one for each processor that this thread may use, and fewer for
        small work or on a busy machine. A call that moves less than 128 KiB takes one.
        `plan.explain()` says how many, and why.

    Returns
    -------
    y : ndarray
        The maxima, of the type of `x`, and of its shape with other spatial extents.
    indices : ndarray
        Only if `return_indices`: the indices, of the shape of `y`. If a maximum occurs more than
        once in its window, the index is that of the first in row-major order, in every layout. A
        tap in padding has the index of the element that stands there, and a constant has -1.

    Raises
    ------
    TypeError
        An argument is of the wrong kind, or an array is not in the memory of the CPU.
    ValueError
        An argument has a wrong value, or a window is larger than the padded input, or the result
        is larger than any memory.

    See Also
    --------
    plan_max_pool : Prepare the work once for many arrays.
    max_unpool : Put maxima back where they were.

    Notes
    -----
    This is ONNX MaxPool-11 with the types of versions 12 and 22, MaxPool-11 of the domain
    com.ms.internal.nhwc (``layout="NHWC"`` and `activation`), and OpenVINO MaxPool-1 and -8. If
    these disagree:

    - a window that holds no element gives -inf, the lowest integer, or False, and index -1;
    - `ceil_rule` "clip" is ONNX's since version 22, "keep" is OpenVINO's "ceil"; "VALID" follows
      `ceil_mode` (OpenVINO's example 5, not ONNX's formula);
    - "SAME_*" counts the dilation and never crops;
    - indices of channels-last arrays are those of the channels-first array unless `index_layout`
      says otherwise; `index_axis` is OpenVINO's axis; `storage_order` keeps the planes in order (it
      is not Fortran order of the whole array).

    Results are exact in every type. -0.0 and 0.0 are equal: an index names the first of them. The
    sign of a zero among the maxima is not defined, nor are the sign and payload of a NaN.

    Plans of recent geometries are cached, so that repeated calls do not plan again.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> x = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
    >>> fastpool.max_pool(x, 2, strides="window")
    array([[[[ 6.,  8.],
             [16., 18.]]]], dtype=float32)

    With padding at both sides, and the index of every maximum:

    >>> y, indices = fastpool.max_pool(x, 3, strides=2, pads=1, return_indices=True)
    >>> indices
    array([[[[ 6,  8,  9],
             [16, 18, 19],
             [21, 23, 24]]]])

    One row, with padding at its end only:

    >>> fastpool.max_pool(np.array([3, 1, 4, 1, 5]), 3, pads=(0, 2), layout="W")
    array([4, 4, 5, 5, 5])
    >>> fastpool.max_pool(np.array([3, 1, 4, 1, 5]), 3, pads=(2, 0), layout="W", border="wrap")
    array([5, 5, 4, 4, 5])
    """
    if unknown or more:
        raise unexpected(max_pool, unknown, more)
    if type(x) is not ndarray:
        results = routed(max_pool, x, locals())
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
def plan_max_pool(
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
    """Prepare a max pooling for any number of arrays of one shape and type.

    Parameters
    ----------
    input_shape : sequence of int
        Shape of the arrays, with the axes of `layout`.
    dtype : dtype_like
        Type of their elements. "bfloat16" needs no ml_dtypes.
    kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule, border, border_value, \
layout, nan, activation, activation_params, return_indices, storage_order, index_axis, \
index_dtype, index_layout, num_threads
        As in :func:`max_pool`.

    Returns
    -------
    plan : MaxPoolPlan
        ``plan(x, out=None, out_indices=None)`` returns what :func:`max_pool` returns, without
        checking attributes again. `output_shape`, `pads` and other attributes hold the resolved
        values. A plan is immutable, hashable and picklable, and threads may share it.

    Raises
    ------
    TypeError
        An argument is of the wrong kind.
    ValueError
        An argument has a wrong value, or a window is larger than the padded input, or the input or
        the result is larger than any memory.

    See Also
    --------
    max_pool : Plan and pool in one call.

    Notes
    -----
    :func:`max_pool` documents the rules and their sources. `pads` of the plan are those with which
    rounding down gives its output.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> plan = fastpool.plan_max_pool(
    ...     (1, 64, 112, 112), "float32", 3, strides=2, auto_pad="SAME_UPPER"
    ... )
    >>> plan.output_shape, plan.pads
    ((1, 64, 56, 56), (0, 0, 1, 1))
    >>> y = np.empty(plan.output_shape, np.float32)
    >>> plan(np.zeros(plan.input_shape, np.float32), out=y) is y
    True
    """
    if unknown or more:
        raise unexpected(plan_max_pool, unknown, more)
    return make_plan(
        input_shape, dtype, kernel_shape, strides=strides, pads=pads, dilations=dilations,
        auto_pad=auto_pad, ceil_mode=ceil_mode, ceil_rule=ceil_rule, layout=layout, nan=nan,
        activation=activation, activation_params=activation_params, return_indices=return_indices,
        storage_order=storage_order, index_axis=index_axis, index_dtype=index_dtype,
        index_layout=index_layout, num_threads=num_threads, border=border,
        border_value=border_value,
    )  # fmt: skip


@explicit
def max_unpool(
    x,
    indices,
    kernel_shape,
    *more,
    strides=1,
    pads=0,
    output_shape=None,
    layout="NCHW",
    index_space="output",
    index_axis=0,
    index_layout="NCHW",
    out=None,
    num_threads=None,
    **unknown,
):
    """Put maxima back where they were; everything else is zero.

    Along each spatial axis the result has ``(size - 1) * stride + kernel - pad_begin - pad_end``
    elements (the inferred extent), unless `output_shape` says otherwise.

    Parameters
    ----------
    x : array_like
        The values, of any type that :func:`max_pool` takes, with the axes of `layout`.
    indices : array_like of int64 or int32
        The place of each value, in the shape of `x`: offsets as :func:`max_pool` returns them with
        `storage_order` 0.
    kernel_shape, strides, pads : int or sequence of int
        Those of the pooling. Forms, also "window", and defaults are those of :func:`max_pool`.
    output_shape : sequence of int, optional
        Shape of the result, with all axes in the order of `layout`. Inputs of several extents pool
        to one output extent; this says which it was.
    layout : str
        The axes of `x`, `indices` and the result, as in :func:`max_pool`.
    index_space : {"output", "inferred"}
        What indices count in if `output_shape` differs from the inferred shape. "output" is the
        result, so that a pooling's indices restore its input. "inferred" is a block of the inferred
        shape, which is put at the origin of the result and must fit there. With "output", `pads`
        have no effect if `output_shape` is given.
    index_axis : int
        As in :func:`max_pool`: indices count within the axes from this one on. The largest value is
        the first spatial axis, for indices that count in each plane.
    index_layout : {"NCHW", "NHWC"}
        As in :func:`max_pool`.
    out : ndarray, optional
        Array for the result, of its exact shape and type. It is writeable and shares no memory with
        `x` and `indices`.
    num_threads : int, optional
        As in :func:`max_pool`, though its plan has no `explain`.

    Returns
    -------
    y : ndarray
        The result, of the type of `x`. If an index occurs more than once, the last of its values in
        the order of the channels-first `x` stays, for every layout and number of threads.

    Raises
    ------
    TypeError
        An argument is of the wrong kind.
    ValueError
        An argument has a wrong value, or an index is negative or not below the number of elements
        that it counts in. Nothing has been written then.

    See Also
    --------
    max_pool : Undone by this function, with ``return_indices=True``.
    plan_max_unpool : Prepare the arguments once, for many arrays of one shape.

    Notes
    -----
    This is ONNX MaxUnpool-9, also in the domain com.ms.internal.nhwc. Its text and onnxruntime
    count indices in the result, its example in the inferred block. `index_space` chooses;
    :func:`fastpool.onnx.max_unpool` defaults to "inferred", as in the example.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> x = np.array([[1, 3, 2, 4], [5, 6, 8, 7]])
    >>> y, indices = fastpool.max_pool(x, 2, strides="window", layout="HW", return_indices=True)
    >>> fastpool.max_unpool(y, indices, 2, strides="window", layout="HW")
    array([[0, 0, 0, 0],
           [0, 6, 8, 0]])
    """
    if unknown or more:
        raise unexpected(max_unpool, unknown, more)
    if type(x) is not ndarray:
        results = routed(max_unpool, x, locals())
        if results is not None:
            return results
        x = as_array(x, "x")
    attributes = (
        kernel_shape, strides, pads, output_shape, layout, index_space, index_axis, index_layout,
        num_threads,
    )  # fmt: skip
    found = _unpool_plans.quick.get(call_key(x, attributes))
    plan = _unpool_plans.find(x, attributes) if found is None else found[0]
    return plan(x, indices, out)


@explicit
def plan_max_unpool(
    input_shape,
    kernel_shape,
    *more,
    strides=1,
    pads=0,
    output_shape=None,
    layout="NCHW",
    index_space="output",
    index_axis=0,
    index_layout="NCHW",
    num_threads=None,
    **unknown,
):
    """Prepare a max unpooling for any number of arrays of one shape.

    Parameters
    ----------
    input_shape : sequence of int
        Shape of the values and of their indices, with the axes of `layout`.
    kernel_shape, strides, pads, output_shape, layout, index_space, index_axis, index_layout, \
num_threads
        As in :func:`max_unpool`.

    Returns
    -------
    plan : UnpoolPlan
        ``plan(x, indices, out=None)`` returns what :func:`max_unpool` returns, without checking
        attributes again. `output_shape` and other attributes hold the resolved values. A plan is
        immutable, hashable and picklable, and threads may share it.

    Raises
    ------
    TypeError
        An argument is of the wrong kind.
    ValueError
        An argument has a wrong value.

    See Also
    --------
    max_unpool : Plan and unpool in one call, with the rules and their sources.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> plan = fastpool.plan_max_unpool((1, 2), 2, strides=2, layout="HW")
    >>> plan.output_shape
    (2, 4)
    >>> plan(np.array([[6, 8]]), np.array([[5, 6]]))
    array([[0, 0, 0, 0],
           [0, 6, 8, 0]])
    """
    if unknown or more:
        raise unexpected(plan_max_unpool, unknown, more)
    return make_unpool_plan(
        arguments.input_shape(input_shape),
        kernel_shape,
        strides,
        pads,
        output_shape,
        layout,
        index_space,
        index_axis,
        index_layout,
        num_threads,
    )
