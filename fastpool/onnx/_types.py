"""Infer the types and shapes of the values in a model."""

import contextlib
import graphlib

import onnx

# Shape inference reads the values of constants of up to this many elements, such as shapes.
_FEW = 64
# Functions that call the next one: onnx 1.22 refuses more, and older ones crash at thousands.
_DEEPEST = 100


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
    """Raise if functions call themselves or each other, or in long chains: onnx crashes at that.

    onnx 1.22 and newer refuse them, but not a call in a graph that is an attribute's default.
    """
    calls = {}  # (several functions may have one name)
    for function in functions:
        called = calls.setdefault((function.domain or "ai.onnx", function.name), set())
        called.update(_called(function.node), _called_in_graphs(function.attribute_proto))
    depths = {}
    for key in graphlib.TopologicalSorter(calls).static_order():
        depths[key] = 1 + max((depths[called] for called in calls.get(key, ())), default=0)
        if depths[key] > _DEEPEST:
            raise ValueError(f"more than {_DEEPEST} functions call each other in a chain")
        if ":" in "".join(key):  # onnx 1.21 and older join domain, name and overload with colons
            raise ValueError(f"a colon in a function's name: {key}")


def _called(nodes):
    for node in nodes:
        yield node.domain or "ai.onnx", node.op_type
        yield from _called_in_graphs(node.attribute)


def _called_in_graphs(attributes):
    for attribute in attributes:
        for graph in (attribute.g, *attribute.graphs):
            yield from _called(graph.node)


def dims_of(value_type):
    """Return the axes of a tensor type, each an int or None; None if their number is unknown."""
    if value_type is None or not value_type.tensor_type.HasField("shape"):
        return None
    return [dim.dim_value or None for dim in value_type.tensor_type.shape.dim]
