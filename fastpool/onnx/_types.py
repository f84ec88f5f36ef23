"""Infer the types and shapes of the values in a model."""

import contextlib
import graphlib

import onnx

# Shape inference reads the values of constants of up to this many elements, such as shapes.
_FEW = 64


def infer_types(model, graph):
    """Return value name -> TypeProto, as far as onnx's shape inference knows it."""
    light = onnx.GraphProto(name="types")
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
    # It raises errors of several types for models that it does not like. Then only the types that
    # the model itself states are known, and onnxruntime will say what is wrong.
    with contextlib.suppress(Exception):
        _refuse_recursion(model.functions)
        light = onnx.shape_inference.infer_shapes(model).graph
    stated = {value.name: value.type for value in (*light.input, *light.value_info, *light.output)}
    constants = {
        tensor.name: onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        for tensor in light.initializer
    }
    return constants | stated


def _refuse_recursion(functions):
    """Raise if functions call themselves or each other: onnx 1.21 and older crash at that."""
    calls = graphlib.TopologicalSorter()
    for function in functions:  # (several may have one name)
        calls.add((function.domain or "ai.onnx", function.name), *_called(function.node))
    calls.prepare()


def _called(nodes):
    for node in nodes:
        yield node.domain or "ai.onnx", node.op_type
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _called(graph.node)


def dims_of(value_type):
    """Return the axes of a tensor type, each an int or None; None if their number is unknown."""
    if value_type is None or not value_type.tensor_type.HasField("shape"):
        return None
    return [dim.dim_value or None for dim in value_type.tensor_type.shape.dim]
