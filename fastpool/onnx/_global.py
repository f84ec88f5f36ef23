"""Run ONNX's poolings of all spatial axes: the global operators, and reductions that equal them."""

from .._planning import arguments
from .._planning.dtypes import is_float
from .._planning.operators import spatial_rank
from .._planning.values import as_counts, flag, shown
from .._plans import make_global_avg_plan, make_global_max_plan
from .._running.interop import as_array
from .._running.plan_cache import PlanCache

__all__ = ["global_average_pool", "global_max_pool"]


def global_average_pool(
    x,
    *,
    layout="NCHW",
    nan="propagate",
    numerics="pairwise",
    out=None,
    num_threads=None,
):
    """Run ONNX's GlobalAveragePool (any opset): the mean of all spatial axes, which stay.

    Parameters
    ----------
    x : array_like
        Input with batch, channels and at least one spatial axis.
    layout, nan, numerics, out, num_threads
        As in :func:`fastpool.global_avg_pool`. `layout` has both batch and channels.

    Returns
    -------
    y : ndarray
        The means, of the type of `x`, with one element along each spatial axis.

    Raises
    ------
    TypeError
        An argument is of the wrong kind.
    ValueError
        An argument has a wrong value, or a spatial axis has no elements.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.onnx
    >>> fastpool.onnx.global_average_pool(np.array([[[1.0, 2.0], [3.0, 5.0]]]))
    array([[[1.5],
            [4. ]]])
    """
    x = as_array(x, "x")
    return _average_plans.find(x, (layout, "half_even", numerics, nan, num_threads))(x, out)


def global_max_pool(x, *, layout="NCHW", nan="propagate", out=None, num_threads=None):
    """Run ONNX's GlobalMaxPool (any opset): the maximum of all spatial axes, which stay.

    Parameters
    ----------
    x : array_like
        Input with batch, channels and at least one spatial axis.
    layout, nan, out, num_threads
        As in :func:`fastpool.global_max_pool`. `layout` has both batch and channels.

    Returns
    -------
    y : ndarray
        The maxima, of the type of `x`, with one element along each spatial axis.

    Raises
    ------
    TypeError
        An argument is of the wrong kind.
    ValueError
        An argument has a wrong value, or a spatial axis has no elements.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.onnx
    >>> fastpool.onnx.global_max_pool(np.array([[[1, 2], [5, 3]]]))
    array([[[2],
            [5]]])
    """
    x = as_array(x, "x")
    return _max_plans.find(x, (layout, nan, num_threads))(x, out)


def reduce_mean(
    x,
    axes=None,
    *,
    keepdims=1,
    noop_with_empty_axes=0,
    nan="propagate",
    numerics="pairwise",
    num_threads=None,
):
    """Run ONNX's ReduceMean over exactly the spatial axes; for any others, raise ValueError.

    `axes` are an attribute or, from opset 18 on, an input. Integers are rounded toward zero, as
    onnxruntime and the reference evaluator of onnx do.
    """
    x = as_array(x, "x")
    _check_axes(axes, x.ndim)
    rounding = "half_even" if is_float(arguments.dtype_name(x.dtype, "x")) else "trunc"
    plan = _average_plans.find(x, ("NCHW", rounding, numerics, nan, num_threads))
    return _reduced(plan(x), keepdims)


def reduce_max(
    x, axes=None, *, keepdims=1, noop_with_empty_axes=0, nan="propagate", num_threads=None
):
    """Run ONNX's ReduceMax over exactly the spatial axes; for any others, raise ValueError."""
    x = as_array(x, "x")
    _check_axes(axes, x.ndim)
    return _reduced(_max_plans.find(x, ("NCHW", nan, num_threads))(x), keepdims)


def are_spatial(axes, rank):
    """Are these exactly the spatial axes of an input with batch, channels and some of them?

    Without axes, a reduction is over all of them or, as `noop_with_empty_axes` says, over none.
    """
    return rank > 2 and sorted(a + rank * (a < 0) for a in axes or ()) == [*range(2, rank)]


def _check_axes(axes, rank):
    if axes is not None:
        axes = as_counts(axes, "axes", -rank)
    if not are_spatial(axes, rank):
        expected = f"the spatial axes {[*range(2, rank)]}" if rank > 2 else "an x with spatial axes"
        raise ValueError(
            f"axes: expected {expected}, got {shown(axes)}; "
            "fastpool.onnx.InferenceSession runs other reductions with onnxruntime"
        )


def _reduced(y, keepdims):
    return y if flag(keepdims, "keepdims") else y.reshape(y.shape[:2])


def plan_global_average(shape, dtype, layout, rounding, numerics, nan, num_threads):
    spatial_rank(shape, layout)
    return make_global_avg_plan(shape, dtype, layout, None, rounding, numerics, nan, num_threads)


def plan_global_max(shape, dtype, layout, nan, num_threads):
    spatial_rank(shape, layout)
    without_indices = False, None, None, None
    return make_global_max_plan(shape, dtype, layout, nan, *without_indices, num_threads)


_average_plans = PlanCache(plan_global_average)
_max_plans = PlanCache(plan_global_max)
