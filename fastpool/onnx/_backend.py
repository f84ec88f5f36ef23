"""Run models of pooling nodes through the interface of onnx.backend.base."""

import contextlib
from collections import Counter

import onnx
from onnx import numpy_helper
from onnx.backend.base import Backend as BaseBackend
from onnx.backend.base import BackendRep
from onnx.reference import ReferenceEvaluator

from .._planning.values import shown
from ._graph import Program, Step, load, read_graph, refuse_external
from ._nodes import INTERNAL_NHWC, MICROSOFT, check_rules, is_pooling, kind_of, label, pooling_call

# Operators around pooling that move data, and those of quantized models. onnx's implementation in
# NumPy runs them.
MOVING = ("Concat", "Constant", "DequantizeLinear", "Flatten", "Identity", "QuantizeLinear")
MOVING += ("Reshape", "Shape", "Squeeze", "Transpose", "Unsqueeze")

# onnx.reference has them from this version on, which allows everything that earlier versions do.
_QUANTIZED_SINCE = 19

_MOST_SHOWN = 12  # operators in one error


class Backend(BaseBackend):
    """A backend for ONNX models of pooling nodes, and of nodes that move data, on the CPU.

    The operators are MaxPool, MaxUnpool, AveragePool, LpPool, GlobalAveragePool, GlobalMaxPool and
    GlobalLpPool at every opset version, also in the channels-last domain com.ms.internal.nhwc;
    NhwcMaxPool, QLinearAveragePool and QLinearGlobalAveragePool of com.microsoft, the second also
    in the channels-last domain; and ReduceMean and ReduceMax over exactly the spatial axes. Through
    onnx.reference it also runs Concat, Constant, DequantizeLinear, Flatten, Identity,
    QuantizeLinear, Reshape, Shape, Squeeze, Transpose and Unsqueeze. `prepare` refuses a model with
    other operators; `fastpool.onnx.InferenceSession` runs it.

    In all methods `model` is an onnx.ModelProto, the path of a file, or bytes. Keyword arguments
    choose conventions as in `fastpool.onnx.max_pool`, `max_unpool`, `average_pool` and `lp_pool`:
    `nan`, `ceil_rule`, `pads_with_auto_pad`, `index_space`, `numerics`, `beyond`, `partial` and
    `num_threads`.

    Examples
    --------
    >>> import numpy as np
    >>> import onnx.helper
    >>> import fastpool.onnx
    >>> node = onnx.helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2], strides=[2])
    >>> x = np.array([[[1, 3, 2, 4]]], dtype=np.float32)
    >>> fastpool.onnx.Backend.run_node(node, [x])
    (array([[[3., 4.]]], dtype=float32),)
    """

    @classmethod
    def prepare(cls, model, device="CPU", **rules):
        """Return the model, ready to `run` many times.

        Raises
        ------
        TypeError, ValueError
            A keyword argument is wrong, or the model is invalid or needs something unsupported.
            The error names the argument or the node.
        """
        _check_options(device, rules)
        return PreparedModel(load(model), rules)

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **rules):
        """Return the outputs of a model, a tuple of arrays."""
        return cls.prepare(model, device, **rules).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, opset_version=None, **rules):
        """Return the outputs of a node, a tuple of arrays.

        `inputs` has an array for each of the node's inputs, None for an absent one.
        `opset_version` is the version of its domain, by default the newest that onnx knows.
        """
        _check_options(device, rules)
        version = onnx.defs.onnx_opset_version() if opset_version is None else opset_version
        opsets = {"": version, INTERNAL_NHWC: version, MICROSOFT: 1}
        return tuple(_call(node, opsets, rules)(*inputs))

    @classmethod
    def is_compatible(cls, model, device="CPU", **rules):
        """Return whether `prepare` accepts the model."""
        try:
            cls.prepare(model, device, **rules)
        except (TypeError, ValueError):
            return False
        return True

    @classmethod
    def supports_device(cls, device):
        """Return whether the device is the CPU."""
        return isinstance(device, str) and device.partition(":")[0] == "CPU"


class PreparedModel(BackendRep):
    """A model that `Backend.prepare` made ready to run."""

    def __init__(self, model, rules):
        graph = read_graph(model)
        _refuse_others(graph.nodes)
        constants = {name: _array(tensor) for name, tensor in graph.initializers.items()}
        steps = []
        for node in graph.nodes:
            run = _call(node, graph.opsets, rules)
            if node.op_type == "Constant":
                constants[node.output[0]] = run()[0]
            else:
                steps.append(Step(run, tuple(node.input), tuple(node.output)))
        self._inputs = list(graph.inputs.values())
        self._required = [value for value in self._inputs if value.name not in graph.optional]
        self._program = Program(steps, [output.name for output in graph.outputs], constants)

    def run(self, inputs, **kwargs):
        """Return the outputs, a tuple of arrays.

        `inputs` has an array for each of the graph's inputs, or for each without a default value.
        """
        expected = self._inputs if len(inputs) == len(self._inputs) else self._required
        if not isinstance(inputs, (list, tuple)) or len(inputs) != len(expected):
            names = ", ".join(shown(value.name) for value in expected)
            raise ValueError(f"inputs: expected a list of {len(expected)} arrays: {names}")
        pairs = zip(expected, inputs, strict=True)
        return tuple(self._program({value.name: value.checked(x) for value, x in pairs}))


def _check_options(device, rules):
    check_rules(rules)
    if not Backend.supports_device(device):
        raise ValueError(f'device: expected "CPU", got {shown(device)}')


def _refuse_others(nodes):
    """Raise one error that names all unsupported operators."""
    others = Counter()
    for node in nodes:
        domain, op_type = kind_of(node)
        if not is_pooling(node) and (domain or op_type not in MOVING):
            others[f"{domain}.{op_type}" if domain else op_type] += 1
    if others:
        kinds = [f"{shown(kind)[1:-1]} ({count})" for kind, count in others.most_common()]
        kinds[_MOST_SHOWN:] = [f"{len(kinds) - _MOST_SHOWN} more"] * (len(kinds) > _MOST_SHOWN)
        raise ValueError(
            f"model: unsupported operators: {', '.join(kinds)}; "
            "fastpool.onnx.InferenceSession runs them with onnxruntime"
        )


def _call(node, opsets, rules):
    """Return a function of a node: input arrays, None for an absent one -> outputs."""
    if is_pooling(node):
        return pooling_call(node, opsets, rules)
    _refuse_others([node])
    refuse_external(node)
    standard = onnx.NodeProto()
    standard.CopyFrom(node)
    standard.domain = ""  # not its other name, "ai.onnx"
    context = onnx.checker.C.CheckerContext()
    context.ir_version = onnx.IR_VERSION
    context.opset_imports = {"": opsets[""]}
    with _errors_of(label(node)):
        onnx.checker.check_node(standard, context)
        names = tuple(node.input)
        inputs = _untyped(dict.fromkeys(filter(None, names)))
        graph = onnx.helper.make_graph([standard], "node", inputs, _untyped(node.output))
        version = opsets[""]
        if node.op_type in ("DequantizeLinear", "QuantizeLinear"):
            version = max(version, _QUANTIZED_SINCE)
        evaluator = ReferenceEvaluator(graph, opsets={"": version})

    def run(*arrays):
        with _errors_of(label(node)):
            return evaluator.run(None, dict(zip(names, arrays, strict=True)))

    return run


def _untyped(names):
    return [onnx.ValueInfoProto(name=name) for name in names]


def _array(tensor):
    with _errors_of(f"initializer {shown(tensor.name)}"):
        return numpy_helper.to_array(tensor)


@contextlib.contextmanager
def _errors_of(what):
    """Turn the onnx package's errors, of any type and long, into a short ValueError."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0][:200]
        raise ValueError(f"{what}: {reason}") from error
