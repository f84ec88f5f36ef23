"""Run calls that the fast path declines: a plan's first call, copies, activations."""

import numpy as np

from .activation import prepared_activation
from .interop import as_array, bump_versions
from .outputs import check_output, element_type, is_ready, outputs, own, readable
from .repeats import repeat

# Bytes of an array, at most, that is copied before anything else is checked.
MOST_COPIED = 1 << 20


def input_of(plan, x):
    """Return an array of a plan's shape and type over the memory of `x`."""
    x = own(as_array(x, "x"))
    if element_type(x) != plan.dtype:
        raise TypeError(f"x: expected dtype {plan.dtype}, got {x.dtype}")
    if x.shape != plan.input_shape:
        raise ValueError(f"x: expected shape {plan.input_shape}, got {x.shape}")
    return x


def run_on_copy(plan, x, *into):
    """Run compiled code on a copy of a small `x` if only that is missing, else return None.

    Checking arrays with care takes longer than small ones: 8x112x1x1 of wider rows 18 -> 2 us.
    """
    prepared = vars(plan).get("_prepared")
    if prepared is None or prepared.pooling is None or plan.activation or not prepared.fits(plan):
        return None  # (compiled code does not run)
    if type(x) is not np.ndarray or x.nbytes > MOST_COPIED or x.shape != plan.input_shape:
        return None
    unit = prepared.contiguous_axis
    if x.dtype != prepared.pooling.dtype or is_ready(x, unit):
        return None
    for y in into:
        if y is not None and (type(y) is not np.ndarray or y.shape != plan.output_shape):
            return None
        if y is not None and (not is_ready(y, unit) or np.may_share_memory(x, y)):
            return None
    return plan._run(x.copy(), *into)


def max_pool(plan, x, out, out_indices):
    """Run a plan of maxima or minima at its first call, or on arrays that `_run` did not take.

    Every array is checked before anything is written.
    """
    if (results := run_on_copy(plan, x, out, out_indices)) is not None:
        return results
    x = input_of(plan, x)
    prepared = plan._prepared_for(x.dtype)
    plan = prepared.plan
    into = outputs(out=out, out_indices=out_indices)
    results = prepared.run(x, *into)
    if results is None:
        results = pool_with_care(prepared, x, *into)
    bump_versions(out, out_indices)
    if not plan.return_indices:
        return results if out is None else out
    y, z = results
    return y if out is None else out, z if out_indices is None else out_indices


def pool_with_care(prepared, x, out, out_indices):
    """Pool a checked array, with copies if need be; check the output arrays, or make them."""
    plan, native = prepared.plan, x.dtype.newbyteorder("=")
    if out is not None:
        check_output("out", out, plan.output_shape, native, {"x": x})
    if out_indices is not None:
        if not plan.return_indices:
            raise ValueError("out_indices: expected None without return_indices=True, got an array")
        others = {"x": x} if out is None else {"x": x, "out": out}
        check_output(
            "out_indices", out_indices, plan.output_shape, np.dtype(plan.index_dtype), others
        )
    if prepared.once is not None:
        return _repeated(prepared, pool_with_care, x, out, out_indices)
    y = np.empty(plan.output_shape, native) if out is None else out
    z = out_indices
    if z is None and plan.return_indices:
        z = np.empty(plan.output_shape, plan.index_dtype)
    activate = prepared_activation(plan.activation, plan.activation_params, native, y.size)
    if y.size and prepared.bordered:
        prepared.bordered.run(pool_with_care, x, y, z)
    elif y.size:
        run_with_copies(prepared, prepared.pooling.pool_apart, x, y, z)
    activate(y)
    return (y, z) if plan.return_indices else y


def _repeated(prepared, pool, x, *into):
    """Pool windows that repeat once, by a function of this module; return all results.

    The checked output arrays are written when there are no more allocations that may fail.
    """
    nothing = (None,) * len(into)
    results = pool(prepared.once, x, *nothing)
    several = isinstance(results, tuple)
    made = []
    for pooled, array in zip(results if several else (results,), into, strict=False):
        y = np.empty(prepared.plan.output_shape, pooled.dtype)
        if y.size:
            repeat(prepared.plan, prepared.once.plan, pooled, y)
        made.append((y, array))
    for y, array in made:
        if array is not None:
            array[...] = y
    made = tuple(y if array is None else array for y, array in made)
    return made if several else made[0]


def run_with_copies(prepared, pool, x, y, z=None):
    """Run on arrays that do not overlap. Copy those that kernels cannot use in place.

    `pool` is a function of the compiled pooling, which takes arrays as they are.
    """
    plan, pooling, unit = prepared.plan, prepared.pooling, prepared.contiguous_axis
    given = [y] if z is None else [y, z]
    into = [a if is_ready(a, unit) else np.empty(a.shape, a.dtype) for a in given]
    plain = readable(x, unit).view(pooling.dtype), into[0].view(pooling.result_dtype, np.ndarray)
    places = None if z is None else into[1].view(plan.index_dtype, np.ndarray)
    if not pool(*plain, places, prepared.threads_now()):
        raise AssertionError(
            f"fastpool: the kernels refused the arrays of {plan}; please report this"
        )
    for array, made in zip(given, into, strict=True):
        if made is not array:
            array[...] = made


def avg_pool(plan, x, out):
    """Run an `AvgPoolPlan` at its first call, or on arrays that its `_run` did not take.

    Every array is checked before anything is written.
    """
    if (y := run_on_copy(plan, x, out)) is not None:
        return y
    x = input_of(plan, x)
    prepared = plan._prepared_for(x.dtype)
    plan = prepared.plan
    (into,) = outputs(out=out)
    y = prepared.run(x, into)
    if y is None:
        y = average_with_care(prepared, x, into)
    bump_versions(out)
    return y if out is None else out


def average_with_care(prepared, x, out):
    """Average a checked array, with copies if need be; check the output array, or make it."""
    plan = prepared.plan
    (dtype,) = plan.result_dtypes(x.dtype)
    if out is not None:
        check_output("out", out, plan.output_shape, dtype, {"x": x})
    if prepared.once is not None:
        return _repeated(prepared, average_with_care, x, out)
    y = np.empty(plan.output_shape, dtype) if out is None else out
    activate = prepared_activation(plan.activation, plan.activation_params, dtype, y.size)
    if y.size and prepared.bordered:
        prepared.bordered.run(average_with_care, x, y)
    elif y.size:
        run_with_copies(prepared, prepared.pooling.pool_apart, x, y)
    activate(y)
    return y
