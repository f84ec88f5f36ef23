"""Replace the poolings of OpenVINO's models by fastpool's operations."""

import openvino
from openvino.opset1 import convert, transpose

from .._planning.arguments import shown
from ._adaptive import AdaptiveAvgPool, AdaptiveMaxPool
from ._layers import make_layer
from ._windows import AvgPool, MaxPool

_OPERATIONS = {
    "MaxPool": MaxPool,
    "AvgPool": AvgPool,
    "AdaptiveAvgPool": AdaptiveAvgPool,
    "AdaptiveMaxPool": AdaptiveMaxPool,
}


def replace_pooling(model, *, nan="propagate", numerics="exact", layout=None):
    """Replace the pooling operations of a model by fastpool's.

    These are MaxPool, AvgPool, AdaptiveAvgPool and AdaptiveMaxPool.

    Parameters
    ----------
    model : openvino.Model
        The model, changed in place together with the bodies of If, Loop and TensorIterator. Names
        of operations and tensors stay.
    nan : {"propagate", "ignore"}
        The NaN rule of the new operations. Of the replaced ones, maxima follow "ignore", and
        averages "propagate".
    numerics : {"exact", "sequential"}
        How the new operations take averages, as in :func:`fastpool.avg_pool`. A replaced AvgPool
        follows "sequential".
    layout : {"NCHW", "NHWC"}, optional
        Layout of the new operations' input. "NHWC" puts transpositions around them. They cost
        nothing if OpenVINO has channels last in memory anyway, as around convolutions. "NHWC" is
        the default for models that have convolutions.

    Returns
    -------
    replaced : list of MaxPoolLayer, AvgPoolLayer, AdaptiveAvgPoolLayer or AdaptiveMaxPoolLayer
        The operations that were replaced, in an order of execution.

    Raises
    ------
    TypeError, ValueError
        One cannot be replaced. Then none is.

    Examples
    --------
    >>> import numpy as np, openvino, openvino.opset14 as ops
    >>> import fastpool.openvino
    >>> x = ops.parameter([1, 3, 224, 224], np.float32)
    >>> pool = ops.max_pool(x, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2], name="pool")
    >>> model = openvino.Model([ops.relu(pool.output(0))], [x])
    >>> for layer in fastpool.openvino.replace_pooling(model):
    ...     print(layer.name, layer.attributes["kernel"], layer.output_dims[0])
    pool (2, 2) (1, 3, 112, 112)
    >>> compiled = openvino.compile_model(model, "CPU")
    """
    if not isinstance(model, openvino.Model):
        raise TypeError(f"model: expected an openvino.Model, got {shown(model)}")
    nodes = list(_nodes(model))
    if layout is None:
        convolutions = any("Convolution" in node.get_type_name() for node in nodes)
        layout = "NHWC" if convolutions else "NCHW"
    pools = [node for node in nodes if _is_pooling(node.get_type_info())]
    replacements = [_replacement(node, nan, numerics, layout) for node in pools]
    layers = [_layer(node) for node in pools]
    for node, outputs in zip(pools, replacements, strict=True):
        for old, new in zip(node.outputs(), outputs, strict=False):
            old.replace(new)
    return layers


def _nodes(model):
    for node in model.get_ordered_ops():
        for body in _bodies(node):
            yield from _nodes(body)
        yield node


def _bodies(node):
    kind = node.get_type_name()
    if kind == "If":
        return [node.get_function(i) for i in (0, 1)]
    return [node.get_function()] if kind in ("Loop", "TensorIterator") else []


def _is_pooling(kind):
    return kind.name in _OPERATIONS and kind.version_id.startswith("opset")


def _replacement(node, nan, numerics, layout):
    """Return the outputs that replace those of a node."""
    name, kind = node.get_friendly_name(), node.get_type_name()
    x, *others = node.input_values()
    attributes = _attributes(node) | {"nan": nan}
    rank = node.get_output_partial_shape(0).rank
    if rank.is_dynamic:
        layout = "NCHW"  # a transposition needs a rank
    if layout == "NHWC":
        channel = rank.get_length() - 1  # the axis, if it is the last one
        x = transpose(x, [0, *range(2, channel + 1), 1], name=f"{name}/NHWC")
    indices = node.get_output_size() > 1 and bool(node.output(1).get_target_inputs())
    if kind in ("MaxPool", "AdaptiveMaxPool"):
        # The CPU plugin computes with 32-bit indices and expects them from other operations.
        attributes |= {"index_element_type": "i32", "return_indices": indices}
    else:
        attributes["numerics"] = numerics
    pool = _OPERATIONS[kind](x, *others, **attributes, layout=layout)
    pool.set_friendly_name(name)
    outputs = pool.outputs()
    if layout == "NHWC":
        back = [0, channel, *range(1, channel)]
        outputs = [
            transpose(output, back, name=f"{name}/NCHW.{i}").output(0)
            for i, output in enumerate(outputs)
        ]
    if indices and node.get_output_element_type(1) == openvino.Type.i64:
        outputs[1] = convert(outputs[1], "i64", name=f"{name}/i64").output(0)
    return outputs


def _attributes(node):
    """Return the attributes of a node by the names that the functions have for them."""
    attributes = {name.replace("-", "_"): value for name, value in node.get_attributes().items()}
    if attributes.get("dilations") == []:  # of an AvgPool-16 that was made without
        del attributes["dilations"]
    return attributes


def _layer(node):
    attributes = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in _attributes(node).items()
    }
    kind = node.get_type_info()
    version = int(kind.version_id.removeprefix("opset"))
    dims = [tuple(map(_dims, ports)) for ports in (node.inputs(), node.outputs())]
    return make_layer(kind.name, node.get_friendly_name(), version, attributes, *dims)


def _dims(port):
    shape = port.get_partial_shape()
    if shape.rank.is_dynamic:
        return ()
    return tuple(size.get_length() if size.is_static else -1 for size in shape)
