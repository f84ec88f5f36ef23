"""Translate the attributes of OpenVINO's MaxPool into plans of :func:`fastpool.max_pool`."""

from .._planning import arguments
from .._planning.arguments import shown
from .._planning.operators import counts, spatial_rank
from .._plans import make_plan
from .._running.interop import as_array
from .._running.plan_cache import PlanCache

VERSIONS = (1, 8, 14)
_AUTO_PADS = {
    "explicit": "NOTSET",
    "same_upper": "SAME_UPPER",
    "same_lower": "SAME_LOWER",
    "valid": "VALID",
}
# rounding_type -> (ceil_mode, ceil_rule)
_ROUNDING_TYPES = {
    "floor": (False, "clip"),
    "ceil": (True, "keep"),
    "ceil_torch": (True, "clip"),
}
_INDEX_ELEMENT_TYPES = {"i64": "int64", "i32": "int32"}


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
        the end or past it, "ceil_torch" drops it. It does not affect same_upper and same_lower.
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
    return _pool_plans.find(x, arguments)(x, out, out_indices)


def _plan_max_pool(shape, dtype, version, *arguments):
    *own, ceil_rule, layout, nan, index_layout, num_threads = arguments
    n = spatial_rank(shape, layout)
    if n > 3:
        raise ValueError(f"x: expected rank 3, 4 or 5, got {n + 2}")
    attributes = native_attributes(n, version, *own)
    if ceil_rule is not None:
        attributes["ceil_rule"] = ceil_rule
    return make_plan(
        shape,
        dtype,
        **attributes,
        layout=layout,
        nan=nan,
        index_layout=index_layout,
        num_threads=num_threads,
    )


_pool_plans = PlanCache(_plan_max_pool)


def native_attributes(
    n,
    version,
    strides=None,
    pads_begin=None,
    pads_end=None,
    kernel=None,
    rounding_type=None,
    auto_pad=None,
    dilations=None,
    index_element_type=None,
    axis=None,
):
    """Return the checked attributes for `n` spatial axes, as the native call takes them."""
    if arguments.as_int(version, "version") not in VERSIONS:
        raise ValueError(f"version: expected 1, 8 or 14, got {version}")
    rounding_type = _lower_case_choice(rounding_type, "rounding_type", _ROUNDING_TYPES)
    if rounding_type == "ceil_torch" and version < 14:
        raise ValueError(f'rounding_type: "ceil_torch" needs version 14, got version {version}')
    ceil_mode, ceil_rule = _ROUNDING_TYPES[rounding_type]
    auto_pad = _lower_case_choice(auto_pad, "auto_pad", _AUTO_PADS)
    attributes = {
        "kernel_shape": counts(kernel, "kernel", n, 1, required=True),
        "strides": counts(strides, "strides", n, 1, required=True),
        "auto_pad": _AUTO_PADS[auto_pad],
        "ceil_mode": ceil_mode,
        "ceil_rule": ceil_rule,
    }
    if auto_pad == "explicit":
        # The document's "ignored when auto_pad is specified" means any other auto_pad.
        for name, value in (("pads_begin", pads_begin), ("pads_end", pads_end)):
            if value is None:
                raise TypeError(f'{name}: required with auto_pad "explicit"')
        attributes["pads"] = (
            *counts(pads_begin, "pads_begin", n, 0),
            *counts(pads_end, "pads_end", n, 0),
        )
    later = {"dilations": dilations, "index_element_type": index_element_type, "axis": axis}
    if version == 1:
        for name, value in later.items():
            if value is not None:
                raise ValueError(f"{name}: version 1 has no such attribute, got {shown(value)}")
        return attributes
    element_type = arguments.choice(
        index_element_type, "index_element_type", tuple(_INDEX_ELEMENT_TYPES)
    )
    return attributes | {
        "dilations": counts(dilations, "dilations", n, 1),
        "return_indices": True,
        "index_dtype": _INDEX_ELEMENT_TYPES[element_type],
        "index_axis": _axis(axis, n + 2),
    }


def _lower_case_choice(value, name, allowed):
    """Return one of `allowed`, the first by default; as in OpenVINO, any case is accepted."""
    return arguments.choice(
        value.lower() if isinstance(value, str) else value, name, tuple(allowed)
    )


def _axis(value, rank):
    value = 0 if value is None else arguments.as_int(value, "axis")
    if not -rank <= value < rank:
        raise ValueError(
            f"axis: expected an int in [{-rank}, {rank - 1}] for rank {rank}, got {value}"
        )
    return value
