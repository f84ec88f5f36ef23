"""Reductions of blocks, and pyramids of them."""

import numpy as np

from .._planning.arguments import dtype_name
from .._planning.values import flag
from .._planning.words import explicit, unexpected
from .._running import builds
from .._running.interop import as_array, bump_versions, routed
from .._running.outputs import check_output, outputs, own
from .._running.plan_cache import PlanCache


@explicit
def block_reduce(
    x,
    block_size,
    func,
    *more,
    edge="keep",
    dtype=None,
    rounding="half_even",
    ddof=0,
    numerics="pairwise",
    nan="propagate",
    nodata=None,
    where=None,
    min_count=None,
    return_counts=False,
    out=None,
    num_threads=None,
    **unknown,
):
    """Reduce each block of an array to one number.

    Block i of an axis covers the elements from ``i * k`` up to ``(i + 1) * k``, as far as the array
    goes.

    Parameters
    ----------
    x : array_like
        Array of at least one axis: float16, bfloat16 (of the package ml_dtypes), float32, float64,
        any integer type or bool.
    block_size : int or sequence of int
        Elements of a block along each axis: one int for all axes, or one per axis. 1 leaves an axis
        as it is.
    func : {"max", "min", "mean", "sum", "mode", "median", "std", "var", "count"}
        "mode" is the value that most elements have, and the smallest of several. It takes integers
        and bool: labels. "count" counts the elements that are there.
    edge : {"keep", "trim", "exact"}
        If the last block of an axis is not full, reduce what is there; leave it out; or raise
        ValueError.
    dtype : dtype_like, optional
        Type of the result. By default maxima, minima, modes, means and medians have the type of
        `x`. So have all results of floats. Sums of integers are int64 or uint64, "std" and "var" of
        integers float64, counts int64. Means, medians and sums of integers may be float32, float64
        or any integer type that holds every possible result; all but maxima, minima, modes and
        counts may be wider floats; "std" and "var" of integers may be float32.
    rounding : {"half_even", "half_away", "trunc", "floor"}
        How means and medians of integers become integers, as in :func:`avg_pool`.
    ddof : int
        "std" and "var" divide by the number of elements less `ddof`. If that is not above 0, the
        result is NaN.
    numerics : {"pairwise", "exact", "sequential"}
        The order in which means and sums add floats, as in :func:`avg_pool`.
    nan : {"propagate", "ignore"}
        A block with a NaN gives NaN, or NaN is missing.
    nodata : number, optional
        Elements of this value are missing. It also stands for a missing result, if that has the
        type of `x` or is an integer.
    where : array_like of bool, optional
        Elements where this is False are missing. It is broadcast to the shape of `x`.
    min_count : int, optional
        A block of fewer elements that are not missing gives a missing result: by default 1, and 0
        for "sum".
    return_counts : bool
        Whether to return the number of elements of each block that are not missing too.
    out : ndarray, optional
        Array for the result, of its exact shape and type, that shares no memory with the input. It
        is returned. It cannot be given together with `return_counts`.
    num_threads : int, optional
        As in :func:`max_pool`. The result does not depend on it.

    Returns
    -------
    y : ndarray
        The results. A missing one is `nodata`; it is NaN if there is none, or if integers become
        floats.
    counts : ndarray of int64
        Only if `return_counts`.

    Raises
    ------
    TypeError
        An argument is of the wrong kind, or `func` is "mode" for floats.
    ValueError
        An argument has a wrong value, or results of integers may be missing without a `nodata`.

    See Also
    --------
    pyramid : Several levels at once.
    max_pool, avg_pool : Windows that overlap.

    Notes
    -----
    Means and sums of floats follow `numerics`: by default a fixed tree of float additions over the
    taps of a full block. Integers are exact. Sums beyond 64 bits saturate. Variances of integers to
    16 bits are exact and rounded once; those of other types are computed in float64 by the
    corrected two-pass formula. An average of two middle elements is rounded once.

    The result does not depend on strides, threads or processors. Missing elements are not compared,
    added or counted, and means are divided by how many there are.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> labels = np.array([[7, 7, 0, 4], [7, 2, 0, 9]], np.uint16)
    >>> fastpool.block_reduce(labels, 2, "mode")
    array([[7, 0]], dtype=uint16)
    >>> fastpool.block_reduce(labels, 2, "mode", nodata=0)  # background does not count
    array([[7, 4]], dtype=uint16)

    The last block holds two elements, and one of them is missing:

    >>> heights = np.array([1.0, 2.0, 3.0, -9999.0])
    >>> fastpool.block_reduce(heights, 2, "mean", nodata=-9999, return_counts=True)
    (array([1.5, 3. ]), array([2, 1]))
    """
    if unknown or more:
        raise unexpected(block_reduce, unknown, more)
    results = routed(block_reduce, x, locals()) if type(x) is not np.ndarray else None
    if results is not None:
        return results
    x = _input(x)
    reduction = _plans.find(x, (
        block_size, func, edge, dtype, rounding, ddof, numerics, nan, nodata, where is not None,
        min_count, num_threads,
    ))  # fmt: skip
    plan, where = reduction.plan, _mask(where, x.shape)
    return_counts = flag(return_counts, "return_counts")
    (into,) = outputs(out=out)
    native = plan.result_dtype_of(x.dtype)
    if into is not None:
        if return_counts:
            raise ValueError("out: given together with return_counts")
        others = {"x": x} if where is None else {"x": x, "where": where}
        check_output("out", into, plan.output_shape, native, others)
    order = "F" if x.flags.fnc else "C"
    y = np.empty(plan.output_shape, native, order) if into is None else into
    counts = np.empty(plan.output_shape, np.int64, order) if return_counts else None
    if y.size:
        reduction(x, where, y, counts)
    if out is not None:
        bump_versions(out)
        return out
    return (y, counts) if return_counts else y


def _input(x):
    if issubclass(type(x), np.ma.MaskedArray):
        raise TypeError("x: a masked array's mask would be ignored; give x.data with where=~x.mask")
    return own(as_array(x, "x"))


def _make_plan(shape, dtype, block_size, func, *values):
    from .._planning.blocks import resolve  # here, so that importing fastpool stays fast
    from ._block_routes import Reduction

    options = dict(zip(resolve.__kwdefaults__, values, strict=True))
    with builds.usual_floats():  # (`nodata` is rounded to the type of x)
        plan = resolve(shape, dtype_name(dtype), block_size, func, **options)
    return Reduction(plan, options["masked"])


_plans = PlanCache(_make_plan)


def _mask(where, shape):
    """Return `where` as an array of bool of a shape, or None."""
    if where is None:
        return None
    from .._planning.blocks import check_mask

    where = as_array(where, "where")
    check_mask(where, shape)
    return where if where.shape == shape else np.broadcast_to(where, shape)


@explicit
def pyramid(
    x,
    levels,
    factor=2,
    func="mean",
    *more,
    edge="keep",
    dtype=None,
    rounding="half_even",
    ddof=0,
    numerics="pairwise",
    nan="propagate",
    nodata=None,
    where=None,
    min_count=None,
    num_threads=None,
    **unknown,
):
    """Reduce an array to several levels, each from the array itself.

    Level l is ``block_reduce(x, factor**l, func)``. So nothing is rounded twice, labels are the
    most frequent ones of level 0, and partial blocks have their own weight.

    Parameters
    ----------
    x : array_like
        Level 0, as in :func:`block_reduce`.
    levels : int
        Number of reduced levels, 1 to 64.
    factor : int or sequence of int
        Factor from level to level, for all axes or per axis. 1 leaves an axis as it is: (2, 2, 1)
        keeps the channels of an image.
    func : str
        As in :func:`block_reduce`.
    edge, dtype, rounding, ddof, numerics, nan, nodata, where, min_count, num_threads
        As in :func:`block_reduce`.

    Returns
    -------
    reduced : list of ndarray
        The levels from 1 on.

    Raises
    ------
    TypeError, ValueError
        As :func:`block_reduce`.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> image = np.arange(64, dtype=np.uint8).reshape(8, 8)
    >>> [level.shape for level in fastpool.pyramid(image, 3)]
    [(4, 4), (2, 2), (1, 1)]
    """
    if unknown or more:
        raise unexpected(pyramid, unknown, more)
    results = routed(pyramid, x, locals()) if type(x) is not np.ndarray else None
    if results is not None:
        return results
    from .._planning import blocks  # here, so that importing fastpool stays fast
    from .._running.blocks import reduce_levels

    x = _input(x)
    options = {
        "edge": edge, "dtype": dtype, "rounding": rounding, "ddof": ddof, "numerics": numerics,
        "nan": nan, "nodata": nodata, "where": where, "min_count": min_count,
        "num_threads": num_threads,
    }  # fmt: skip
    sizes, reduced = blocks.levels(levels, factor, x.shape), []
    if func == "mode" and len(sizes) > 1:
        values = {**options, "where": where is not None}.values()
        plans = [_plans.find(x, (block_size, func, *values)).plan for block_size in sizes]
        reduced = reduce_levels(plans, x, _mask(where, x.shape))
    sizes = sizes[len(reduced) :]
    return reduced + [block_reduce(x, block_size, func, **options) for block_size in sizes]
