"""Read and check models, and run their steps."""

import os
from typing import NamedTuple

import onnx
from google.protobuf.message import DecodeError, Message
from onnx.external_data_helper import uses_external_data

from .._planning.values import shown
from .._running.forks import remember
from .._running.interop import as_array
from ._nodes import label, opset_version

# Levels of nested messages that protobuf reads. A model made in memory can have more.
_MOST_LEVELS = 100


class Value:
    """An input or output, as the model describes it.

    Attributes
    ----------
    name : str
    type : str
        For instance "tensor(float)"; "" for anything but a tensor of a known type.
    shape : list or None
        Size of each axis, its name, or None if it is unknown. None if the rank is unknown.
    """

    def __init__(self, info):
        self.name = info.name
        self._label = f"input {shown(info.name)}"
        tensor = info.type.tensor_type
        self.type, self._dtype = "", None
        if tensor.elem_type:
            self.type = f"tensor({onnx.TensorProto.DataType.Name(tensor.elem_type).lower()})"
            self._dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        self.shape = None
        if tensor.HasField("shape"):
            dims = tensor.shape.dim
            self.shape = [dim.dim_value or dim.dim_param or None for dim in dims]
            self._sizes = [(axis, n) for axis, n in enumerate(self.shape) if isinstance(n, int)]

    def checked(self, x):
        """Return an array for this input; if its type or shape is wrong, raise."""
        x = as_array(x, self._label)
        if self._dtype is not None and x.dtype.type is not self._dtype.type:
            raise TypeError(f"{self._label}: expected {self._dtype}, got {x.dtype}")
        if self.shape is not None and not self._fits(x.shape):
            raise ValueError(f"{self._label}: expected shape {shown(self.shape)}, got {x.shape}")
        # onnxruntime would read the bytes of the other order as they are.
        return x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))

    def _fits(self, shape):
        return len(shape) == len(self.shape) and all(shape[axis] == n for axis, n in self._sizes)


class Graph(NamedTuple):
    """The parts of a model that are used."""

    nodes: list  # of NodeProto, each after those that it needs
    opsets: dict  # domain -> version; the standard domain is ""
    inputs: dict  # name -> Value, without constants
    optional: frozenset  # inputs with a default value
    initializers: dict  # name -> TensorProto: constants and default values
    outputs: list  # of Value


def load(model, load_external_data=True):
    """Return the ModelProto of a model, a file's path, or bytes."""
    if isinstance(model, onnx.ModelProto):
        return model
    try:
        if isinstance(model, bytes):
            return onnx.load_from_string(model)
        if isinstance(model, (str, os.PathLike)):
            return onnx.load(model, load_external_data=load_external_data)
    except (DecodeError, onnx.checker.ValidationError) as error:
        raise ValueError(f"model: {error}") from None
    raise TypeError(f"model: expected an onnx.ModelProto, a path or bytes, got {shown(model)}")


def read_graph(model):
    """Return the graph of a model; if the model is invalid, raise ValueError."""
    graph = model.graph
    refuse_external(graph, *model.functions)
    opsets = _opsets(model)
    initializers = _by_name(graph.initializer, "initializer")
    inputs = _by_name(graph.input, "input")
    optional = frozenset(initializers.keys() & inputs.keys())
    if model.ir_version < 4:  # every constant had to be among the inputs
        for name in optional:
            del inputs[name]
        optional = frozenset()
    if len(graph.sparse_initializer):
        raise ValueError("model: sparse initializers are not supported")

    known = inputs.keys() | initializers.keys()
    for node in graph.node:
        opset_version(node, opsets)
        for name in filter(None, node.input):
            if name not in known:
                raise ValueError(
                    f"{label(node)}: its input {shown(name)} is no input of the graph "
                    "and no output of an earlier node"
                )
        if not any(node.output):
            raise ValueError(f"{label(node)}: has no output")
        for name in filter(None, node.output):
            if name in known:
                raise ValueError(f"{label(node)}: its output {shown(name)} exists already")
            known.add(name)
    for output in graph.output:
        if output.name not in known:
            raise ValueError(f"model: the output {shown(output.name)} comes from no node")
    inputs = {name: Value(value) for name, value in inputs.items()}
    outputs = list(map(Value, graph.output))
    return Graph(list(graph.node), opsets, inputs, optional, initializers, outputs)


def refuse_external(*messages):
    """Raise if a tensor in these messages has its data in a file, which the caller did not name."""
    for message in messages:
        for tensor in tensors_in(message):
            if uses_external_data(tensor):
                raise ValueError(
                    f"model: the data of {shown(tensor.name)} is in another file; "
                    "give the path of the model, or load that data first"
                )


def tensors_in(message):
    """Yield every TensorProto in a message of ONNX, at any depth and in any field.

    The fields are those that the installed onnx knows: of nodes, of their subgraphs, of the
    defaults of functions, and of whatever a later version of ONNX adds.
    """
    left = [(message, 0)]
    while left:
        message, depth = left.pop()
        if isinstance(message, onnx.TensorProto):
            yield message
            continue
        if depth > _MOST_LEVELS:
            raise ValueError(
                f"model: nested deeper than the {_MOST_LEVELS} levels that protobuf reads"
            )
        fields = _fields_to_tensors(message.DESCRIPTOR)
        for field, value in message.ListFields():
            if field.name in fields:
                parts = [value] if isinstance(value, Message) else value
                left += [(part, depth + 1) for part in parts]


@remember(256)
def _fields_to_tensors(descriptor):
    """Return the names of the fields through which a type of message may hold a TensorProto."""
    found = {}  # type of message -> its fields that hold messages
    left = [descriptor]
    while left:
        kind = left.pop()
        if kind.full_name not in found:
            fields = [field for field in kind.fields if field.message_type is not None]
            found[kind.full_name] = {f.name: f.message_type.full_name for f in fields}
            left += [field.message_type for field in fields]
    reaching = {onnx.TensorProto.DESCRIPTOR.full_name}
    while more := {kind for kind, f in found.items() if reaching & {*f.values()}} - reaching:
        reaching |= more
    return {name for name, kind in found[descriptor.full_name].items() if kind in reaching}


def _opsets(model):
    opsets = {}
    for opset in model.opset_import:
        domain = "" if opset.domain == "ai.onnx" else opset.domain
        if opsets.setdefault(domain, opset.version) != opset.version:
            raise ValueError(f"model: imports two versions of the domain {shown(domain)}")
    return opsets


def _by_name(values, what):
    found = {value.name: value for value in values}
    if len(found) != len(values) or "" in found:
        raise ValueError(f"model: two of its {what}s have the same name, or one has none")
    return found


class Step(NamedTuple):
    """A part of a model that runs in one call."""

    run: object  # arrays -> a tuple of arrays
    inputs: tuple  # names; "" is absent
    outputs: tuple


class Program:
    """Steps that run in order. A value is released after the last step that reads it."""

    def __init__(self, steps, outputs, constants):
        self._constants = {"": None} | constants
        self._outputs = outputs
        self._steps = []
        later = {"", *outputs, *constants}
        for step in reversed(steps):
            last = tuple({*step.inputs, *step.outputs} - later)
            later.update(last)
            self._steps.append((*step, last))
        self._steps.reverse()

    def __call__(self, inputs):
        """Return a list of the outputs, from a dict of the inputs."""
        values = {**self._constants, **inputs}
        for run, names, outputs, last in self._steps:
            results = run(*[values[name] for name in names])
            values.update(zip(outputs, results, strict=False))  # absent ones may not be computed
            for name in last:
                values.pop(name, None)
        return [values[name] for name in self._outputs]
