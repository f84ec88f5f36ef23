"""OpenVINO's poolings as functions. Each call finds or makes the plan of a native function."""

from .._plans import make_adaptive_avg_plan, make_adaptive_max_plan, make_avg_plan, make_plan
from .._running.interop import as_array
from .._running.plan_cache import PlanCache
from ._attributes import (
    avg_pool_attributes,
    index_dtype,
    max_pool_attributes,
    rank_of,
    windows_plan,
)


def max_pool(
    x,
    *,
    version=8,
    strides,
    pads_begin=None,
    pads_end=None,
    kernel,
    rounding_type="floor",
    auto_pad="explicit",
    dilations=None,
    index_element_type=None,
    axis=None,
    layout="NCHW",
    nan="propagate",
    ceil_rule=None,
    index_layout="NCHW",
    out=None,
    out_indices=None,
    num_threads=None,
):
    """Run OpenVINO's MaxPool.

    Parameters
    ----------
    x : array_like
        Input of rank 3, 4 or 5: batch, channels and one to three spatial axes.
    version : {1, 8, 14}
        Version of the operation. 1 has one output and neither dilations nor index attributes; 14
        adds "ceil_torch".
    strides, kernel, dilations : sequence of int
        One value per spatial axis. `dilations` defaults to ones.
    pads_begin, pads_end : sequence of int
        One value per spatial axis. Required with ``auto_pad="explicit"`` and ignored otherwise.
    rounding_type : {"floor", "ceil", "ceil_torch"}
        How the output extent is rounded. "ceil" keeps a last window that starts in the padding at
        the end or past it, "ceil_torch" drops it. If the window exceeds the padded input by less
        than the stride, "ceil_torch" makes one window of what is there; OpenVINO refuses it, and so
        do "floor" and "ceil". It does not affect same_upper and same_lower.
    auto_pad : {"explicit", "same_upper", "same_lower", "valid"}
        The source of padding. This and `rounding_type` may be written in any case.
    index_element_type : {"i64", "i32"}, optional
        Type of the indices, "i64" by default.
    axis : int, optional
        The indices count within the axes from this one on. In [-R, R - 1], 0 by default.
    ceil_rule : {"keep", "clip"}, optional
        What "ceil" does with that last window, "keep" by default.
    layout, nan, index_layout, out, out_indices, num_threads
        As in :func:`fastpool.max_pool`. `layout` has both batch and channels. In every layout,
        `axis` means the axes in N x C x spatial order.

    Returns
    -------
    y : ndarray
        The maxima, in `layout`.
    indices : ndarray
        Not with version 1: the indices in the shape of `y`, -1 for a window that holds no element.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.openvino
    >>> x = np.array([[[-1, 2, 3, 5, -7, 9, 1]]])
    >>> fastpool.openvino.max_pool(x, strides=[1], kernel=[3], auto_pad="valid")
    (array([[[3, 5, 5, 9, 9]]]), array([[[2, 3, 3, 5, 5]]]))
    """
    x = as_array(x, "x")
    arguments = (
        version,
        strides,
        pads_begin,
        pads_end,
        kernel,
        rounding_type,
        auto_pad,
        dilations,
        index_element_type,
        axis,
        ceil_rule,
        layout,
        nan,
        index_layout,
        num_threads,
    )
    return _max_plans.find(x, arguments)(x, out, out_indices)


def _plan_max_pool(shape, dtype, version, *arguments):
    *own, ceil_rule, layout, nan, index_layout, num_threads = arguments
    attributes = max_pool_attributes(rank_of(shape, layout), version, *own)
    if ceil_rule is not None:
        attributes["ceil_rule"] = ceil_rule
    return windows_plan(
        make_plan,
        shape,
        dtype,
        version,
        **attributes,
        layout=layout,
        nan=nan,
        index_layout=index_layout,
        num_threads=num_threads,
    )


def avg_pool(
    x,
    *,
    version=16,
    strides,
    pads_begin=None,
    pads_end=None,
    kernel,
    exclude_pad,
    rounding_type="floor",
    auto_pad="explicit",
    dilations=None,
    beyond=None,
    numerics="pairwise",
    layout="NCHW",
    nan="propagate",
    ceil_rule=None,
    out=None,
    num_threads=None,
):
    """Run OpenVINO's AvgPool.

    Parameters
    ----------
    x : array_like
        Input of rank 3, 4 or 5: batch, channels and one to three spatial axes.
    version : {1, 14, 16}
        Version of the operation. 14 adds "ceil_torch", and 16 dilations.
    strides, kernel, dilations : sequence of int
        One value per spatial axis. `dilations` defaults to ones.
    pads_begin, pads_end : sequence of int
        One value per spatial axis. Required with ``auto_pad="explicit"`` and ignored otherwise.
    exclude_pad : bool
        Whether the mean is that of the elements alone. If not, padding counts as zeros.
    rounding_type : {"floor", "ceil", "ceil_torch"}
        How the output extent is rounded. "ceil" keeps a last window that starts in the padding at
        the end or past it, "ceil_torch" drops it. If the window exceeds the padded input by less
        than the stride, "ceil_torch" makes one window of what is there; OpenVINO refuses it, and so
        do "floor" and "ceil". It does not affect same_upper and same_lower.
    auto_pad : {"explicit", "same_upper", "same_lower", "valid"}
        The source of padding. This and `rounding_type` may be written in any case.
    beyond : {"count", "drop"}, optional
        Without `exclude_pad`, whether the part of a rounded-up window that is past the padding at
        the end counts as zeros, too. By default as in OpenVINO's program: "count" if any pad of any
        axis is not 0, else "drop". Pads that `auto_pad` ignores are no pads.
    ceil_rule : {"keep", "clip"}, optional
        What "ceil" does with that last window, "keep" by default.
    numerics : {"pairwise", "exact", "sequential"}
        As in :func:`fastpool.avg_pool`. "sequential" gives the bits of OpenVINO's float32.
    layout, nan, out, num_threads
        As in :func:`fastpool.avg_pool`. `layout` has both batch and channels.

    Returns
    -------
    y : ndarray
        The means, in `layout`, of the type of `x`. A window that holds no element gives 0. Integers
        are rounded to the nearest, halves to the even one.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.openvino
    >>> x = np.array([[[3.0, 5.0, 4.0]]])
    >>> window = {"kernel": [2], "strides": [2], "pads_begin": [1], "pads_end": [0]}
    >>> fastpool.openvino.avg_pool(x, **window, exclude_pad=True)
    array([[[3. , 4.5]]])
    >>> fastpool.openvino.avg_pool(x, **window, exclude_pad=False)
    array([[[1.5, 4.5]]])
    """
    x = as_array(x, "x")
    arguments = (
        version,
        strides,
        pads_begin,
        pads_end,
        kernel,
        exclude_pad,
        rounding_type,
        auto_pad,
        dilations,
        beyond,
        ceil_rule,
        layout,
        numerics,
        nan,
        num_threads,
    )
    return _avg_plans.find(x, arguments)(x, out)


def _plan_avg_pool(shape, dtype, version, *arguments):
    *own, ceil_rule, layout, numerics, nan, num_threads = arguments
    attributes = avg_pool_attributes(rank_of(shape, layout), version, *own)
    if ceil_rule is not None:
        attributes["ceil_rule"] = ceil_rule
    return windows_plan(
        make_avg_plan,
        shape,
        dtype,
        version,
        **attributes,
        layout=layout,
        numerics=numerics,
        nan=nan,
        num_threads=num_threads,
    )


def adaptive_avg_pool(
    x,
    output_size,
    *,
    numerics="pairwise",
    layout="NCHW",
    nan="propagate",
    out=None,
    num_threads=None,
):
    """Run OpenVINO's AdaptiveAvgPool-8.

    Parameters
    ----------
    x : array_like
        Input of rank 3, 4 or 5: batch, channels and one to three spatial axes.
    output_size : int or sequence of (int or None)
        The operation's second input, one value per spatial axis. As in
        :func:`fastpool.adaptive_avg_pool`, it may be an int for all axes, and None is the extent of
        an axis.
    numerics, layout, nan, out, num_threads
        As in :func:`fastpool.avg_pool`. `layout` has both batch and channels. OpenVINO adds the
        elements in an order of its own, so that no `numerics` has its bits.

    Returns
    -------
    y : ndarray
        The means, in `layout`, of the type of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.openvino
    >>> fastpool.openvino.adaptive_avg_pool(np.array([[[1.0, 2.0, 6.0]]]), [2])
    array([[[1.5, 4. ]]])
    """
    x = as_array(x, "x")
    arguments = output_size, layout, numerics, nan, num_threads
    return _adaptive_avg_plans.find(x, arguments)(x, out)


def _plan_adaptive_avg_pool(shape, dtype, output_size, layout, numerics, nan, num_threads):
    rank_of(shape, layout)
    values = None, None, numerics, nan, num_threads
    return make_adaptive_avg_plan(shape, dtype, output_size, layout, *values)


def adaptive_max_pool(
    x,
    output_size,
    *,
    index_element_type="i64",
    layout="NCHW",
    nan="propagate",
    index_layout="NCHW",
    out=None,
    out_indices=None,
    num_threads=None,
):
    """Run OpenVINO's AdaptiveMaxPool-8.

    Parameters
    ----------
    x : array_like
        Input of rank 3, 4 or 5: batch, channels and one to three spatial axes.
    output_size : int or sequence of (int or None)
        The operation's second input, as in :func:`adaptive_avg_pool`.
    index_element_type : {"i64", "i32"}
        Type of the indices.
    layout, nan, index_layout, out, out_indices, num_threads
        As in :func:`fastpool.max_pool`. `layout` has both batch and channels.

    Returns
    -------
    y : ndarray
        The maxima, in `layout`.
    indices : ndarray
        Where they are, in the shape of `y`. They count in each plane: all spatial axes of one
        channel.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.openvino
    >>> fastpool.openvino.adaptive_max_pool(np.array([[[1, 5, 2, 4], [7, 8, 9, 6]]]), [2])
    (array([[[5, 4],
            [8, 9]]]), array([[[1, 3],
            [1, 2]]]))
    """
    x = as_array(x, "x")
    arguments = output_size, index_element_type, layout, nan, index_layout, num_threads
    return _adaptive_max_plans.find(x, arguments)(x, out, out_indices)


def _plan_adaptive_max_pool(shape, dtype, output_size, element_type, layout, nan, *values):
    index_layout, num_threads = values
    rank_of(shape, layout)
    indices = True, 2, index_dtype(element_type), index_layout
    return make_adaptive_max_plan(shape, dtype, output_size, layout, nan, *indices, num_threads)


_max_plans = PlanCache(_plan_max_pool)
_avg_plans = PlanCache(_plan_avg_pool)
_adaptive_avg_plans = PlanCache(_plan_adaptive_avg_pool)
_adaptive_max_plans = PlanCache(_plan_adaptive_max_pool)
