"""Run unpooling calls that the fast path declines: a plan's first call, copies, errors."""

import numpy as np

from .._planning.max_unpool import check_indices
from . import builds
from .interop import as_array, bump_versions
from .outputs import check_output, element_type, outputs, own, readable


def max_unpool(plan, x, indices, out):
    """Run an `UnpoolPlan` at its first call, or on arrays that its `_run` did not take."""
    x, indices = own(as_array(x, "x")), own(as_array(indices, "indices"))
    name, native = element_type(x), x.dtype.newbyteorder("=")
    if x.shape != plan.x_shape:
        raise ValueError(f"x: expected shape {plan.x_shape}, got {x.shape}")
    prepared = plan._prepared_for(name, native)
    (into,) = outputs(out=out)
    y = prepared.run(x, indices, into)
    if y is None:
        y = _unpool_with_care(prepared, x, indices, into)
    bump_versions(out)
    return y if out is None else out


def _unpool_with_care(prepared, x, indices, out):
    plan, native = prepared.plan, prepared.dtype
    check_indices(indices, plan.x_shape)
    if out is not None:
        check_output("out", out, plan.output_shape, native, {"x": x, "indices": indices})
    y = np.empty(prepared.shape, native)
    plain = prepared.unpooling.dtype
    indices = readable(indices)
    threads = prepared.threads_now()
    bad = prepared.unpooling.unpool_apart(
        *(readable(x).view(plain), indices.view(f"i{indices.itemsize}"), y.view(plain)), threads
    )
    if bad >= 0:
        place = np.unravel_index(bad, plan.x_shape)
        raise ValueError(
            f"indices[{', '.join(map(str, place))}]: {indices[place]} is outside "
            f"[0, {prepared.counted}), the elements that it counts in"
        )
    if bad == builds.active().CHANGED_INDICES:
        raise ValueError("indices: changed by another thread or process during the call")
    if bad != -1:
        raise AssertionError(
            f"fastpool: the kernels refused the arrays of {plan}; please report this"
        )
    if prepared.block:
        result = np.zeros(plan.output_shape, native)
        result[tuple(map(slice, y.shape))] = y
        y = result
    if out is None:
        return y
    out[...] = y
    return out
