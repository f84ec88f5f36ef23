"""Read pooling layers from OpenVINO's XML, one element or a whole IR file."""

import os
import re

from .._planning.values import shown
from ._attributes import VERSIONS, check_attributes
from ._layers import make_layer

# Limit for the characters of one layer. Each element takes some hundred bytes; ports are few.
_LONGEST_LAYER = 1 << 18
# A file is read in pieces of this many bytes. Elements of models are nested a few deep (each body
# of a loop or a branch adds four). A model has some dozens of pooling layers.
_PIECE = 1 << 16
_DEEPEST = 100
_MOST_LAYERS = 1000
# How the operations' documents start their layers, and the XML that they mean.
_DOCUMENTED_START = r'<layer \.\.\. type="(\w+)" \.\.\. >', r'<layer type="\1">'


def read_layer(layer):
    """Read a pooling layer from the XML of an OpenVINO model.

    Parameters
    ----------
    layer : str or xml.etree.ElementTree.Element
        The ``<layer>`` element of type MaxPool, AvgPool, AdaptiveAvgPool or AdaptiveMaxPool, or its
        text. The text may have the ellipses of the examples in OpenVINO's documentation:
        ``<layer ... type="MaxPool" ... >``.

    Returns
    -------
    layer : MaxPoolLayer, AvgPoolLayer, AdaptiveAvgPoolLayer or AdaptiveMaxPoolLayer
        The layer. Its version is the newest one in its opset ("opset8" to "opset13" mean 8 for
        MaxPool). A layer without an opset has the newest version. Only a MaxPool layer without an
        opset has version 1 if it declares one output and nothing newer, else 8.

    Raises
    ------
    TypeError
        The argument is neither text nor an element, or an attribute is not text.
    ValueError
        It is no such layer, or an attribute is missing, unknown or wrong.

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
        layer = _parse(re.sub(*_DOCUMENTED_START, layer, count=1))
    elif not hasattr(layer, "findall") or not hasattr(layer, "attrib"):
        raise TypeError(f"layer: expected XML text or an Element, got {shown(layer)}")
    kind = layer.get("type")
    if layer.tag != "layer" or not _is_pooling(kind):
        raise ValueError(
            f"layer: expected a <layer> of type {', '.join(VERSIONS)}, "
            f"got <{shown(layer.tag)} type={shown(kind)}>"
        )
    attributes = _read_attributes(kind, layer.findall("data"))
    input_dims, output_dims = _read_dims(layer, "input"), _read_dims(layer, "output")
    version = _read_version(kind, layer.get("version"), attributes, len(output_dims))
    check_attributes(kind, version, attributes)  # so that a bad layer does not fail at its call
    return make_layer(kind, layer.get("name"), version, attributes, input_dims, output_dims)


def _is_pooling(kind):
    return isinstance(kind, str) and kind in VERSIONS


def read_layers(file):
    """Read the pooling layers of a model that OpenVINO saved (IR, the .xml file).

    Parameters
    ----------
    file : path-like or binary file object
        A file from ``openvino.save_model``. It is read in pieces and need not fit in memory.

    Returns
    -------
    layers : list of MaxPoolLayer, AvgPoolLayer, AdaptiveAvgPoolLayer or AdaptiveMaxPoolLayer
        The layers, as :func:`read_layer` reads them, in the order of the file, which is an order of
        execution. Layers in the bodies of If, Loop and TensorIterator come before those that follow
        the operation.

    Raises
    ------
    ValueError
        The file is no IR, declares a document type, has a bad pooling layer (the error names it),
        or exceeds a limit: 256 KiB for a layer or without any tag, elements 100 deep, 1000 layers.

    Examples
    --------
    >>> import io
    >>> import fastpool.openvino
    >>> file = io.BytesIO(
    ...     b'''<net name="model" version="11"><layers>
    ...         <layer id="0" name="x" type="Parameter" version="opset1"/>
    ...         <layer id="1" name="pool" type="MaxPool" version="opset8">
    ...             <data auto_pad="valid" kernel="2" strides="2"/>
    ...         </layer>
    ...     </layers></net>'''
    ... )
    >>> [(layer.name, layer.version) for layer in fastpool.openvino.read_layers(file)]
    [('pool', 8)]
    """
    if isinstance(file, (str, os.PathLike)):
        with open(file, "rb") as opened:
            return read_layers(opened)
    if not hasattr(file, "read"):
        raise TypeError(f"file: expected a path or a binary file object, got {shown(file)}")
    layers = _LayersOfFile()
    while piece := file.read(_PIECE):
        if not isinstance(piece, bytes):
            raise TypeError(f"file: expected one opened in binary mode, got {shown(piece)} from it")
        layers.feed(piece)
    return layers.close()


class _LayersOfFile:
    """A collector of the pooling layers of a file that arrives in pieces."""

    def __init__(self):
        self._parser = _parser("file")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._layers = []
        self._fed = self._last_tag = self._depth = 0
        self._builder = None  # builder of the open pooling layer
        self._layer_depth = 0

    def feed(self, piece):
        _feed(self._parser, piece, False, "file")
        self._fed += len(piece)
        # In a pooling layer, this counts from the layer's start and bounds what the builder holds.
        if self._fed - self._last_tag > _LONGEST_LAYER:
            raise ValueError(
                f"file: more than {_LONGEST_LAYER} bytes of one pooling layer, or without a tag"
            )

    def close(self):
        _feed(self._parser, b"", True, "file")
        return self._layers

    def _start(self, tag, attributes):
        if self._depth == 0 and tag != "net":
            raise ValueError(f"file: expected an IR, whose root is <net>, got <{shown(tag)}>")
        if self._depth == _DEEPEST:
            raise ValueError(f"file: elements more than {_DEEPEST} deep")
        self._depth += 1
        if self._builder is None:
            self._last_tag = self._parser.CurrentByteIndex
            if tag != "layer" or not _is_pooling(attributes.get("type")):
                return
            self._builder, self._layer_depth = _tree_builder(), self._depth
            self._parser.CharacterDataHandler = self._builder.data
        self._builder.start(tag, attributes)

    def _end(self, tag):
        if self._builder is None:
            self._last_tag = self._parser.CurrentByteIndex
        else:
            self._builder.end(tag)
            if self._depth == self._layer_depth:
                self._finish(self._builder.close())
                self._builder = self._parser.CharacterDataHandler = None
        self._depth -= 1

    def _finish(self, element):
        if len(self._layers) == _MOST_LAYERS:
            raise ValueError(f"file: more than {_MOST_LAYERS} pooling layers")
        try:
            self._layers.append(read_layer(element))
        except ValueError as error:
            raise ValueError(f"layer {shown(element.get('name'))}: {error}") from None


def _parse(text):
    """Return the root element of XML text."""
    parser, builder = _parser("layer"), _tree_builder()
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    _feed(parser, text, True, "layer")
    return builder.close()


# xml is imported in functions, so that pooling alone does not load it.


def _tree_builder():
    from xml.etree.ElementTree import TreeBuilder

    return TreeBuilder()


def _parser(name):
    """Return a parser that allows no document type, and so no entities."""
    from xml.parsers import expat

    def refuse(*declaration):
        raise ValueError(f"{name}: a document type declaration (DTD) is not allowed")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    return parser


def _feed(parser, text, final, name):
    from xml.parsers.expat import ExpatError

    try:
        parser.Parse(text, final)
    except (ExpatError, UnicodeEncodeError, LookupError) as error:
        raise ValueError(f"{name}: not well-formed XML: {error}") from None


def _read_attributes(kind, data):
    """Return the attributes by the names that the functions have for them."""
    readers = _READERS[kind]
    required = [name for name in ("kernel", "strides", "exclude-pad") if name in readers]
    if len(data) != 1 and (required or data):
        raise ValueError(f"layer: expected one <data> element, got {len(data)}")
    attributes = {}
    for name, text in data[0].attrib.items() if data else ():
        if name not in readers:
            raise ValueError(
                f"layer: <data> has an unknown attribute {shown(name)}; "
                f"expected {', '.join(readers)}"
            )
        if not isinstance(text, str):  # an Element made by a program can hold anything
            raise TypeError(f"{name}: expected text, got {shown(text)}")
        value = readers[name](text, name)
        if value is not None:
            attributes[name] = value
    if required and attributes.get("auto_pad", "explicit").lower() == "explicit":
        required += ["pads_begin", "pads_end"]
    for name in required:
        if name not in attributes:
            raise ValueError(f"{name}: required, and not an attribute of <data>")
    return {name.replace("-", "_"): value for name, value in attributes.items()}


def _read_int(text, name):
    # int() also takes underscores, digits of other scripts, and thousands of digits.
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


def _read_dilations(text, name):
    # OpenVINO saves an AvgPool-16 that was made without dilations with empty ones.
    return _read_ints(text, name) if text else None


def _read_bool(text, name):
    found = {"true": True, "1": True, "false": False, "0": False}.get(text.lower())
    if found is None:
        raise ValueError(f'{name}: expected "true" or "false", got {shown(text)}')
    return found


def _read_output_type(text, name):
    # The documents' examples have this attribute. It is not defined, and has no effect.
    if text != "i64":
        raise ValueError(
            f'{name}: not defined; expected "i64" as in the documents, got {shown(text)}'
        )


_WINDOWS = {
    "strides": _read_ints,
    "pads_begin": _read_ints,
    "pads_end": _read_ints,
    "kernel": _read_ints,
    "rounding_type": _read_text,
    "auto_pad": _read_text,
}
# The attributes that a layer of each type may have.
_READERS = {
    "MaxPool": _WINDOWS
    | {"dilations": _read_ints, "index_element_type": _read_text, "axis": _read_int},
    "AvgPool": _WINDOWS | {"dilations": _read_dilations, "exclude-pad": _read_bool},
    "AdaptiveAvgPool": {"output_type": _read_output_type},
    "AdaptiveMaxPool": {"index_element_type": _read_text, "output_type": _read_output_type},
}


def _read_dims(layer, ports):
    return tuple(
        tuple(_read_int(dim.text or "", "dim") for dim in port.findall("dim"))
        for port in layer.findall(f"{ports}/port")
    )


def _read_version(kind, text, attributes, n_outputs):
    versions = VERSIONS[kind]
    if text is None:
        if kind != "MaxPool":
            return versions[-1]
        newer = {"dilations", "index_element_type", "axis"} & set(attributes)
        return 1 if n_outputs == 1 and not newer else 8
    found = re.fullmatch(r"opset([1-9][0-9]?)", text)
    if not found:
        raise ValueError(f'version: expected "opset" and a number, got {shown(text)}')
    known = [version for version in versions if version <= int(found[1])]
    if not known:
        raise ValueError(f"version: {kind} is new in opset{versions[0]}, got {shown(text)}")
    return known[-1]
