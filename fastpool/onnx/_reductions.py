"""Find the reductions of a graph that are poolings: those over exactly the spatial axes."""

import contextlib

import onnx
from onnx import numpy_helper
from onnx.helper import get_attribute_value

from .._planning.arguments import MOST_AXES
from ._global import are_spatial
from ._nodes import REDUCTIONS, kind_of

# A reduction over the last of three axes is nearly always a part of a layer normalisation: of a
# model that would be cut dozens of times, which has no pooling.
_FEWEST_AXES = 2

# Shape inference reads the values of constants of up to this many elements, such as shapes.
_FEW = 64


def spatial_reductions(model, graph):
    """Return the names of the first outputs of the reductions that are poolings.

    Their axes are constants, two or more, and the rank of their input is known from the model: its
    own statements, and onnx's shape inference.
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
    if not found:
        return set()
    ranks = _ranks(model, graph)
    return {name for name, (x, axes) in found.items() if are_spatial(axes, ranks.get(x, 0))}


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


def _ranks(model, graph):
    """Return value name -> number of axes, where that is known."""
    light = onnx.GraphProto(name="ranks")
    light.node.extend(model.graph.node)
    light.input.extend(value for value in model.graph.input if value.name in graph.inputs)
    light.output.extend(model.graph.output)
    light.value_info.extend(model.graph.value_info)
    for name, tensor in graph.initializers.items():
        if len(tensor.dims) <= 1 and sum(tensor.dims) <= _FEW:
            light.initializer.append(tensor)
        elif name not in graph.inputs:  # large weights are not copied
            light.input.append(
                onnx.helper.make_tensor_value_info(name, tensor.data_type, tensor.dims)
            )
    model = onnx.ModelProto(
        ir_version=max(model.ir_version, 4),  # constants are not among the inputs
        opset_import=model.opset_import,
        functions=model.functions,
        graph=light,
    )
    # It raises errors of several types for models that it does not like. Then only the ranks that
    # the model itself states are known, and onnxruntime will say what is wrong.
    with contextlib.suppress(Exception):
        light = onnx.shape_inference.infer_shapes(model).graph
    values = [*light.input, *light.value_info, *light.output]
    return {
        value.name: len(value.type.tensor_type.shape.dim)
        for value in values
        if value.type.tensor_type.HasField("shape")
    }
