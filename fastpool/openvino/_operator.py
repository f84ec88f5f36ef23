"""OpenVINO's MaxPool (versions 1, 8 and 14) on NumPy arrays, and its XML layers.

The functions translate OpenVINO's attribute names, values and defaults into the plans of
:func:`fastpool.max_pool`; the openvino package is never imported. An attribute given as None is
absent.
"""

import re
from dataclasses import dataclass

from .. import _arguments
from .._arguments import shown
from .._dispatch import as_array
from .._kept import Kept
from .._operator_arguments import counts, spatial_rank
from .._plan import make_plan

__all__ = ["MaxPoolLayer", "max_pool", "read_layer"]

_VERSIONS = (1, 8, 14)
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
# Characters of one layer's text. (Its elements take some hundred bytes each, its ports few.)
_LONGEST_LAYER = 1 << 20
# How the operation's documents start their layers, and the XML that is meant.
_DOCUMENTED_START = '<layer ... type="MaxPool" ... >', '<layer type="MaxPool">'


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
        the end or past it, "ceil_torch" drops it. Without effect on same_upper and same_lower.
    auto_pad : {"explicit", "same_upper", "same_lower", "valid"}
        Where padding comes from. This and `rounding_type` may be written in any case.
    index_element_type : {"i64", "i32"}, optional
        Type of the indices, "i64" by default.
    axis : int, optional
        The indices count within the axes from this one on; 0 by default, in [-R, R - 1].
    ceil_rule : {"keep", "clip"}, optional
        What happens to the last window under "ceil", if not "keep".
    layout, nan, index_layout, out, out_indices, num_threads
        As in :func:`fastpool.max_pool`. `layout` has both batch and channels; `axis` means the
        axes in N x C x spatial order whatever the layout.

    Returns
    -------
    y : ndarray
        The maxima, in `layout`.
    indices : ndarray
        Not with version 1: the shape of `y`, and -1 for a window that holds no element.

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
    attributes = _native_attributes(n, version, *own)
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


_pool_plans = Kept(_plan_max_pool)


def _native_attributes(
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
    """Checked attributes of an operation with `n` spatial axes, as the native call takes them."""
    if _arguments.as_int(version, "version") not in _VERSIONS:
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
    element_type = _arguments.choice(
        index_element_type, "index_element_type", tuple(_INDEX_ELEMENT_TYPES)
    )
    return attributes | {
        "dilations": counts(dilations, "dilations", n, 1),
        "return_indices": True,
        "index_dtype": _INDEX_ELEMENT_TYPES[element_type],
        "index_axis": _axis(axis, n + 2),
    }


def _lower_case_choice(value, name, allowed):
    """One of `allowed`, the first by default, written in any case as OpenVINO itself takes them."""
    return _arguments.choice(
        value.lower() if isinstance(value, str) else value, name, tuple(allowed)
    )


def _axis(value, rank):
    value = 0 if value is None else _arguments.as_int(value, "axis")
    if not -rank <= value < rank:
        raise ValueError(
            f"axis: expected an int in [{-rank}, {rank - 1}] for rank {rank}, got {value}"
        )
    return value


@dataclass(frozen=True)
class MaxPoolLayer:
    """A MaxPool layer of an OpenVINO model, made by :func:`read_layer`: call it on an array.

    Attributes
    ----------
    name : str or None
        Name of the layer in its model.
    version : {1, 8, 14}
    attributes : dict
        The keywords of :func:`max_pool` that the layer gives.
    input_dims, output_dims : tuple of tuple of int
        Dimensions that the layer declares for its ports; -1 is unknown. They are not enforced: the
        layer also runs on other extents, and declarations can be wrong (the same_upper example of
        the operation's own documents declares 32 x 32 where it is 16 x 16).
    """

    name: str | None
    version: int
    attributes: dict
    input_dims: tuple
    output_dims: tuple

    def __call__(
        self,
        x,
        *,
        layout="NCHW",
        nan="propagate",
        ceil_rule=None,
        index_layout="NCHW",
        out=None,
        out_indices=None,
        num_threads=None,
    ):
        """Run the layer: :func:`max_pool` with its attributes and these switches."""
        return max_pool(
            x,
            version=self.version,
            **self.attributes,
            layout=layout,
            nan=nan,
            ceil_rule=ceil_rule,
            index_layout=index_layout,
            out=out,
            out_indices=out_indices,
            num_threads=num_threads,
        )


def read_layer(layer):
    """Read a MaxPool layer from the XML of an OpenVINO model.

    Parameters
    ----------
    layer : str or xml.etree.ElementTree.Element
        The ``<layer type="MaxPool">`` element, or its text. The text may have the ellipses with
        which OpenVINO's documentation prints its examples: ``<layer ... type="MaxPool" ... >``.

    Returns
    -------
    layer : MaxPoolLayer
        Its version is the newest one in the layer's opset ("opset8" to "opset13" are 8). A layer
        that names no opset is of version 1 if it declares one output and nothing newer, else 8.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.openvino
    >>> layer = fastpool.openvino.read_layer(
    ...     '<layer type="MaxPool" version="opset1">'
    ...     '<data auto_pad="valid" kernel="2" strides="2"/></layer>'
    ... )
    >>> layer(np.array([[[1, 5, 2, 4]]]))
    array([[[5, 4]]])
    """
    if isinstance(layer, str):
        if len(layer) > _LONGEST_LAYER:
            raise ValueError(
                f"layer: expected at most {_LONGEST_LAYER} characters, got {len(layer)}"
            )
        layer = _parse(layer.replace(*_DOCUMENTED_START, 1))
    elif not hasattr(layer, "findall") or not hasattr(layer, "attrib"):
        raise TypeError(f"layer: expected XML text or an Element, got {shown(layer)}")
    if layer.tag != "layer" or layer.get("type") != "MaxPool":
        kind = shown(layer.get("type"))
        raise ValueError(
            f'layer: expected <layer type="MaxPool">, got <{shown(layer.tag)} type={kind}>'
        )
    data = layer.findall("data")
    if len(data) != 1:
        raise ValueError(f"layer: expected one <data> element, got {len(data)}")
    attributes = _read_attributes(data[0].attrib)
    input_dims, output_dims = _read_dims(layer, "input"), _read_dims(layer, "output")
    version = _read_version(layer.get("version"), attributes, len(output_dims))
    # A bad layer fails here, not where it is first called. The kernel says how many spatial axes
    # there are.
    _native_attributes(len(attributes["kernel"]), version, **attributes)
    return MaxPoolLayer(layer.get("name"), version, attributes, input_dims, output_dims)


def _parse(text):
    """The root element of XML text that declares no document type, and so no entities."""
    # Imported here for the sake of those who only pool.
    from xml.etree.ElementTree import TreeBuilder
    from xml.parsers import expat

    def refuse(*declaration):
        raise ValueError("layer: a document type declaration (DTD) is not allowed")

    builder = TreeBuilder()
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, UnicodeEncodeError) as error:
        raise ValueError(f"layer: not well-formed XML: {error}") from None
    return builder.close()


def _read_attributes(texts):
    attributes = {}
    for name, text in texts.items():
        if name not in _READERS:
            raise ValueError(
                f"layer: <data> has an unknown attribute {shown(name)}; "
                f"expected {', '.join(_READERS)}"
            )
        if not isinstance(text, str):  # an Element that was not read from text can hold anything
            raise TypeError(f"{name}: expected text, got {shown(text)}")
        attributes[name] = _READERS[name](text, name)
    required = ["kernel", "strides"]
    if attributes.get("auto_pad", "explicit").lower() == "explicit":
        required += ["pads_begin", "pads_end"]
    for name in required:
        if name not in attributes:
            raise ValueError(f"{name}: required, and not an attribute of <data>")
    return attributes


def _read_int(text, name):
    # int() also takes underscores, other digits than these, and thousands of them.
    if not re.fullmatch(r"-?[0-9]{1,19}", text.strip(" \t\n")):
        raise ValueError(f"{name}: expected an integer, got {shown(text)}")
    return int(text)


def _read_ints(text, name):
    pieces = text.split(",", 3)
    if len(pieces) > 3:
        raise ValueError(f"{name}: expected 1 to 3 integers, got {shown(text)}")
    return tuple(_read_int(piece, name) for piece in pieces)


def _read_text(text, name):
    return text


_READERS = {
    "strides": _read_ints,
    "pads_begin": _read_ints,
    "pads_end": _read_ints,
    "kernel": _read_ints,
    "rounding_type": _read_text,
    "auto_pad": _read_text,
    "dilations": _read_ints,
    "index_element_type": _read_text,
    "axis": _read_int,
}


def _read_dims(layer, ports):
    return tuple(
        tuple(_read_int(dim.text or "", "dim") for dim in port.findall("dim"))
        for port in layer.findall(f"{ports}/port")
    )


def _read_version(text, attributes, n_outputs):
    if text is None:
        newer = {"dilations", "index_element_type", "axis"} & set(attributes)
        return 1 if n_outputs == 1 and not newer else 8
    found = re.fullmatch(r"opset([1-9][0-9]?)", text)
    if not found:
        raise ValueError(f'version: expected "opset" and a number, got {shown(text)}')
    return max(version for version in _VERSIONS if version <= int(found[1]))
