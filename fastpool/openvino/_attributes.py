"""Translate the attributes of OpenVINO's poolings into those of the native functions."""

from .._planning import arguments, geometry
from .._planning.operators import counts, spatial_rank
from .._planning.values import as_int, choice, flag, shown

# The versions of each operation, oldest first.
VERSIONS = {
    "MaxPool": (1, 8, 14),
    "AvgPool": (1, 14, 16),
    "AdaptiveAvgPool": (8,),
    "AdaptiveMaxPool": (8,),
}
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


def rank_of(shape, layout):
    """Return the number of spatial axes of an input, 1 to 3."""
    n = spatial_rank(shape, layout)
    if n > 3:
        raise ValueError(f"x: expected rank 3, 4 or 5, got {n + 2}")
    return n


def max_pool_attributes(
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
    """Return the checked attributes for `n` spatial axes, as fastpool.max_pool takes them."""
    version = _version(version, "MaxPool")
    windows = strides, pads_begin, pads_end, kernel, rounding_type, auto_pad
    attributes = _windows(n, version, *windows)
    if version == 1:
        _refuse(version, dilations=dilations, index_element_type=index_element_type, axis=axis)
        return attributes
    return attributes | {
        "dilations": counts(dilations, "dilations", n, 1),
        "return_indices": True,
        "index_dtype": index_dtype(index_element_type),
        "index_axis": _axis(axis, n + 2),
    }


def avg_pool_attributes(
    n,
    version,
    strides=None,
    pads_begin=None,
    pads_end=None,
    kernel=None,
    exclude_pad=None,
    rounding_type=None,
    auto_pad=None,
    dilations=None,
    beyond=None,
):
    """Return the checked attributes for `n` spatial axes, as fastpool.avg_pool takes them."""
    version = _version(version, "AvgPool")
    windows = strides, pads_begin, pads_end, kernel, rounding_type, auto_pad
    attributes = _windows(n, version, *windows)
    if version < 16:
        _refuse(version, dilations=dilations)
    if exclude_pad is None:
        raise TypeError("exclude_pad: required, expected a bool, got None")
    if beyond is None:
        # OpenVINO's program divides by the whole window as soon as there is any padding, along
        # whichever axis. Its documents do not say what it divides by.
        beyond = "count" if any(attributes.get("pads", ())) else "drop"
    return attributes | {
        "dilations": counts(dilations, "dilations", n, 1),
        "count_include_pad": not flag(exclude_pad, "exclude_pad"),
        "beyond": arguments.beyond(beyond),
    }


_OF_WINDOWS = {"MaxPool": max_pool_attributes, "AvgPool": avg_pool_attributes}


def check_attributes(operation, version, attributes):
    """Raise unless the attributes of a layer are right; its kernel gives the number of axes."""
    if operation in _OF_WINDOWS:
        _OF_WINDOWS[operation](len(attributes["kernel"]), version, **attributes)
    else:
        index_dtype(attributes.get("index_element_type"))


def windows_plan(make, shape, dtype, version, *, ceil_mode, ceil_rule, **attributes):
    """Return the plan that ``make(shape, dtype, ...)`` returns for native attributes.

    OpenVINO refuses a window that exceeds the padded input. With `ceil_rule` "clip", rounding up
    makes one window of it here, as in torch. Without it, the ValueError says how to get it.
    """
    try:
        if ceil_mode and ceil_rule == "keep":
            names = geometry.Attributes._fields
            windows = {name: attributes[name] for name in names if name in attributes}
            order = geometry.layout(attributes.get("layout"), shape)
            geometry.pooled_axes(shape, order, geometry.Attributes(**windows))
        return make(shape, dtype, ceil_mode=ceil_mode, ceil_rule=ceil_rule, **attributes)
    except ValueError as error:
        instead = 'rounding_type "ceil_torch"'
        if version < 14:
            instead = 'rounding_type "ceil" with ceil_rule "clip"'
        hint = geometry.CEIL_HINT.replace("ceil_mode", instead)
        raise ValueError(str(error).replace(geometry.CEIL_HINT, hint)) from None


def index_dtype(element_type):
    """Return the native name of an index_element_type."""
    names = tuple(_INDEX_ELEMENT_TYPES)
    return _INDEX_ELEMENT_TYPES[choice(element_type, "index_element_type", names)]


def _version(version, operation):
    version, allowed = as_int(version, "version"), VERSIONS[operation]
    if version not in allowed:
        *others, last = allowed
        raise ValueError(
            f"version: expected {', '.join(map(str, others))} or {last}, got {version}"
        )
    return version


def _windows(n, version, strides, pads_begin, pads_end, kernel, rounding_type, auto_pad):
    """Return the native attributes that all poolings with given windows share."""
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
    return attributes


def _refuse(version, **later):
    """Raise ValueError if an attribute is given that only later versions have."""
    for name, value in later.items():
        if value is not None:
            raise ValueError(f"{name}: version {version} has no such attribute, got {shown(value)}")


def _lower_case_choice(value, name, allowed):
    """Return one of `allowed`, the first by default; as in OpenVINO, any case is accepted."""
    return choice(value.lower() if isinstance(value, str) else value, name, tuple(allowed))


def _axis(value, rank):
    value = 0 if value is None else as_int(value, "axis")
    if not -rank <= value < rank:
        raise ValueError(
            f"axis: expected an int in [{-rank}, {rank - 1}] for rank {rank}, got {value}"
        )
    return value
