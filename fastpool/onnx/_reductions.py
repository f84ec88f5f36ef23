"""Find the reductions of a graph that are poolings: those over exactly the spatial axes."""

import onnx
from onnx import numpy_helper
from onnx.helper import get_attribute_value

from .._planning.arguments import MOST_AXES
from ._global import are_spatial
from ._nodes import REDUCTIONS, kind_of
from ._types import dims_of

# A reduction over the last of three axes is nearly always a part of a layer normalisation: of a
# model that would be cut dozens of times, which has no pooling.
_FEWEST_AXES = 2


def spatial_reductions(graph, types):
    """Return the names of the first outputs of the reductions that are poolings.

    Their axes are constants, two or more, and the rank of their input is known from `types`.
    """
    constants = {
        name: tensor for name, tensor in graph.initializers.items() if name not in graph.optional
    }
    for node in graph.nodes:
        if kind_of(node) == ("", "Constant") and node.output:
            constants[node.output[0]] = node
    found = {}  # output -> (input, axes)
    for node in graph.nodes:
        if kind_of(node) in REDUCTIONS and node.input and node.output:
            axes = _axes(node, constants)
            if axes is not None and len(axes) >= _FEWEST_AXES:
                found[node.output[0]] = node.input[0], axes
    return {
        name
        for name, (x, axes) in found.items()
        if are_spatial(axes, len(dims_of(types.get(x)) or ()))
    }


def _axes(node, constants):
    """Return the axes of a reduction as a list; None if they are absent or not constant."""
    if len(node.input) > 1:
        value = constants.get(node.input[1])
        if isinstance(value, onnx.NodeProto):
            return _list_of(value, "value_ints") or _values(_attribute(value, "value"))
        return _values(value)
    return _list_of(node, "axes")


def _attribute(node, name):
    found = [a for a in node.attribute if a.name == name and not a.ref_attr_name]
    return get_attribute_value(found[0]) if len(found) == 1 else None


def _list_of(node, name):
    value = _attribute(node, name)
    return value if isinstance(value, list) and set(map(type, value)) <= {int} else None


def _values(tensor):
    """Return the elements of a short tensor of integers; None for anything else."""
    if not isinstance(tensor, onnx.TensorProto) or tensor.data_type != onnx.TensorProto.INT64:
        return None
    if len(tensor.dims) != 1 or not 0 <= tensor.dims[0] <= MOST_AXES:
        return None
    try:
        return numpy_helper.to_array(tensor).tolist()
    except ValueError:  # less data than the dims say; onnxruntime refuses it
        return None
