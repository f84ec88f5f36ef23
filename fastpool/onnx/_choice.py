"""Choose who runs each pooling node of a model: fastpool or onnxruntime.

Every node of fastpool cuts the model. A cut costs a call and, for float32 images between
convolutions, a change of layout: onnxruntime keeps them in blocks of channels. So by default
fastpool runs the nodes that were measured to be faster by more than that.
"""

import math
from typing import NamedTuple

from onnx import AttributeProto, TensorProto

from ._nodes import (
    INTERNAL_NHWC,
    MICROSOFT,
    OPERATORS,
    REDUCTIONS,
    is_pooling,
    kind_of,
    label,
    opset_version,
)
from ._reductions import spatial_reductions
from ._types import dims_of, infer_types

# An input with fewer elements gains less than a cut costs, about 20 microseconds.
_LEAST_SIZE = 2**15

# onnxruntime has its images in blocks of channels if their number is a multiple of this. (On some
# machines the blocks are larger; then more nodes would be faster with fastpool.)
_BLOCK = 8

_EIGHT_BITS = {TensorProto.INT8, TensorProto.UINT8}
_NEVER = math.inf


class Choice(NamedTuple):
    """Who runs a pooling node, and why."""

    is_ours: bool
    reason: str


def choose(model, graph, select, given, is_known):
    """Return output name -> Choice for each pooling node of a graph, in order.

    Parameters
    ----------
    model : ModelProto
    graph : Graph
    select : {"faster", "all", "none"} or function of a NodeProto
    given : set of str
        The rules that the caller gave. Nodes that know one of them follow it only with fastpool.
    is_known : function of a NodeProto and the types of values
        Whether onnxruntime runs such a node.
    """
    if not any(map(is_pooling, graph.nodes)):
        return {}
    types = infer_types(model, graph)
    reductions = spatial_reductions(graph, types)
    nodes = [
        node
        for node in graph.nodes
        if is_pooling(node) and (kind_of(node) not in REDUCTIONS or node.output[0] in reductions)
    ]
    if callable(select):
        own = {True: Choice(True, "selected"), False: Choice(False, "not selected")}
        return {output_of(node): own[bool(select(node))] for node in nodes}
    if select != "faster":
        return {output_of(node): Choice(select == "all", f'select="{select}"') for node in nodes}
    context = _Context(graph, nodes)
    choices = {}
    for node in nodes:
        choice = _by_need(node, types, given, is_known)
        choices[output_of(node)] = choice or _by_speed(node, types, graph.opsets, context)
    return choices


def output_of(node):
    """Return the name of the first output, by which a node is known."""
    return next(filter(None, node.output))


def _by_need(node, types, given, is_known):
    """Return the choice if only fastpool runs a node as the caller wants it, else None."""
    if not any(node.input):
        return Choice(True, "it has no input")  # an error that names the node
    followed = given & OPERATORS[kind_of(node)].call.__kwdefaults__.keys()
    if followed:
        return Choice(True, f"follows {', '.join(sorted(followed))}")
    if node.domain == INTERNAL_NHWC or not is_known(node, types):
        return Choice(True, "onnxruntime does not run it")
    return None


class _Context:
    """What surrounds the pooling nodes of a graph."""

    def __init__(self, graph, nodes):
        self.has_convolutions = any("Conv" in node.op_type for node in graph.nodes)
        self.is_pooling_alone = len(nodes) == len(graph.nodes)
        self._made_by = {name: node.op_type for node in graph.nodes for name in node.output}
        self._read_by = {}
        for node in graph.nodes:
            for name in node.input:
                self._read_by.setdefault(name, set()).add(node.op_type)

    def is_quantised(self, node):
        """Is a node of floats one that onnxruntime changes into one of 8 bits?"""
        before, after = self._made_by.get(node.input[0]), self._read_by.get(node.output[0])
        return before == "DequantizeLinear" and after == {"QuantizeLinear"}


def _by_speed(node, types, opsets, context):
    """Return who was measured to be faster."""
    x = types.get(node.input[0])
    dims = dims_of(x)
    size = _least_size(dims)
    if size < _LEAST_SIZE:
        return Choice(False, f"{size} elements: a cut pays from {_LEAST_SIZE} on")
    least, why = _least_taps(node, x, dims, opsets, context)
    if least == _NEVER:
        return Choice(False, why)
    if not least:
        return Choice(True, f"faster: {why}")
    taps = _taps(node, dims, dims_of(types.get(node.output[0])))
    text = f"{taps:.3g} taps per element of the input, faster from {least} on ({why})"
    return Choice(taps >= least, text)


def _least_size(dims):
    """Return the number of elements: inf if unknown, but an unknown batch counts as 1."""
    if dims is None or None in dims[1:]:
        return math.inf
    return math.prod(size or 1 for size in dims)


def _taps(node, dims, outputs):
    """Return the taps that onnxruntime visits per element of the input: those inside it."""
    # Not `read_attributes`: what onnxruntime runs may have any attributes.
    lists = {a.name: list(a.ints) for a in node.attribute if a.type == AttributeProto.INTS}
    kernel = lists.get("kernel_shape", [])
    sizes = [n or math.inf for n in dims[2:]] if dims else [math.inf] * len(kernel)
    taps = math.prod(min(k, n) for k, n in zip(kernel, sizes, strict=False))
    if outputs and None not in outputs[2:] and math.inf not in sizes:
        return taps * math.prod(outputs[2:]) / max(1, math.prod(sizes))
    return taps / max(1, math.prod(lists.get("strides", [])))


def _least_taps(node, x, dims, opsets, context):
    """Return the least taps per element of the input for which fastpool is faster, and the reason.

    0 means always, and _NEVER never. Measured with onnxruntime 1.31 (AVX-512, one thread):
    docs/onnx.md has the table.
    """
    element = x.tensor_type.elem_type if x is not None else TensorProto.UNDEFINED
    domain, op_type = kind_of(node)
    if op_type == "MaxPool":
        if len(node.output) > 1:
            return 0, "it has indices"
        if element == TensorProto.DOUBLE:
            return 0, "float64"
        if context.is_pooling_alone:
            return 0, "a model of poolings alone"
        if dims is not None and len(dims) != 4:
            return 2, "not two spatial axes"
        if context.has_convolutions:
            return 200, "a model of convolutions"
        return (0, "8 bits") if element in _EIGHT_BITS else (25, "a model without convolutions")
    if op_type == "AveragePool":
        if context.is_quantised(node):
            return 0, "8 bits"
        is_blocked = dims is None or (len(dims) == 4 and not (dims[1] or 0) % _BLOCK)
        if opset_version(node, opsets) >= 19 and not is_blocked:
            return 0, "onnxruntime has no fast kernel for it"
        if context.has_convolutions:
            return 200, "a model of convolutions"
        return 64, "a model without convolutions"
    if (domain, op_type) == (MICROSOFT, "QLinearAveragePool"):
        return 0, "8 bits"
    if op_type == "LpPool":
        return 2, "Lp norms"
    return _NEVER, "onnxruntime is as fast"


def explained(node, choice):
    """Return a line of text: who runs a node, and why."""
    return f"  {label(node)}: {'fastpool' if choice.is_ours else 'onnxruntime'}, {choice.reason}"
