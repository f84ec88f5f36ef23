"""Whole models: pooling nodes by fastpool, everything else by onnxruntime."""

import contextlib

import onnx
import onnxruntime
from google.protobuf.message import Error as ProtobufError
from onnx import numpy_helper

from .._planning.arguments import shown
from .._running.threads import available_cpus
from ._graph import Program, Step, inputs_of, load, read_graph
from ._nodes import INTERNAL_NHWC, check_rules, is_pooling, pooling_call
from ._split import Piece, split

# Where onnxruntime's reading is not the one of the standard's text and examples.
_CONVENTIONS = {"pads_with_auto_pad": "ignore", "index_space": "output"}

_SPINNING = "session.intra_op.allow_spinning"

# The pieces of a model have as many threads together as this many sessions, or as many as these.
# Known networks have fewer pieces, and theirs are large enough to need all threads.
_FULL_POOLS = 16
_SMALL_NUMBER = 128


class InferenceSession:
    """A model that runs with onnxruntime, but for its pooling nodes, which fastpool runs.

    Takes the place of onnxruntime.InferenceSession. The model is cut at its pooling nodes (those of
    `fastpool.onnx.Backend`, but for the ones inside of subgraphs and functions), and each piece in
    between is a session of onnxruntime; arrays go from one to the next without a copy. Where the
    standard and onnxruntime read MaxUnpool and `auto_pad` differently, this follows onnxruntime;
    NaN, windows without elements and `dilations` beside `auto_pad` are fastpool's.

    Each piece has threads of its own, as onnxruntime lets sessions share none but those of the
    whole process, and these only if no session has its own. Where there are more than 16 pieces
    each has fewer threads: all together have no more than 16 such sessions, or than 128 threads.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        No piece may have more than 2 GiB.
    sess_options : onnxruntime.SessionOptions, optional
        For every piece. Their number of threads inside of operators is also that of pooling. They
        are made to say that threads do not spin, unless they say something about that. With
        ``use_per_session_threads = False`` all pieces share the threads of the process.
    providers : sequence, optional
        For every piece; onnxruntime's CPU by default.
    select : function of a NodeProto, optional
        Whether fastpool is to run this pooling node; all of them by default.
    nan, ceil_rule, pads_with_auto_pad, index_space, num_threads : optional
        As in `fastpool.onnx.max_pool` and `fastpool.onnx.max_unpool`, for all pooling nodes.

    Attributes
    ----------
    pooling_nodes : list of NodeProto
        What fastpool runs, in that order.

    Raises
    ------
    ValueError
        The model is wrong, or has sparse initializers.

    Examples
    --------
    >>> import numpy as np
    >>> import onnx.parser
    >>> import fastpool.onnx
    >>> model = onnx.parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 13]>
    ...     example (float[1, 1, 4] x) => (float[1, 1, 2] z) {
    ...         y = MaxPool <kernel_shape = [2], strides = [2]> (x)
    ...         z = Neg (y)
    ...     }''')
    >>> session = fastpool.onnx.InferenceSession(model)
    >>> session.run(None, {"x": np.array([[[1, 3, 2, 4]]], dtype=np.float32)})
    [array([[[-3., -4.]]], dtype=float32)]
    """

    def __init__(
        self,
        model,
        sess_options=None,
        providers=("CPUExecutionProvider",),
        *,
        select=is_pooling,
        **rules,
    ):
        check_rules(rules)
        model = load(model)
        graph = read_graph(model)
        options = sess_options or onnxruntime.SessionOptions()
        _stop_spinning(options)
        threads = {"num_threads": options.intra_op_num_threads or None}
        rules = _CONVENTIONS | threads | rules

        types = {value.name: value.type for value in model.graph.input}
        types |= {name: _type(t.data_type, t.dims) for name, t in graph.initializers.items()}
        read = graph.optional.union(output.name for output in graph.outputs)
        steps, self.pooling_nodes = [], []
        parts = split(graph, lambda node: is_pooling(node) and bool(select(node)))
        pieces = sum(isinstance(part, Piece) for part in parts)
        for part in parts:
            if isinstance(part, Piece):
                piece = _serialized(model, graph, part, types)
                with _fewer_threads(options, pieces):
                    session = onnxruntime.InferenceSession(piece, options, list(providers))
                types |= {value.name: _type_of(value) for value in session.get_outputs()}
                steps.append(Step(_run(session, part), part.inputs, part.outputs))
            else:
                self.pooling_nodes.append(part)
                run = pooling_call(part, graph.opsets, rules)
                types |= _pooled_types(part, types)
                steps.append(Step(run, tuple(part.input), tuple(part.output)))
                read = read.union(part.input)
        constants = {
            name: numpy_helper.to_array(tensor)
            for name, tensor in graph.initializers.items()
            if name in read
        }
        self._inputs, self._optional = graph.inputs, graph.optional
        self._outputs = graph.outputs
        self._program = Program(steps, [output.name for output in graph.outputs], constants)

    def get_inputs(self):
        """The inputs without a default value; each has a `name`, `type` and `shape`."""
        return [value for name, value in self._inputs.items() if name not in self._optional]

    def get_outputs(self):
        """The outputs; each has a `name`, `type` and `shape`."""
        return list(self._outputs)

    def run(self, output_names, input_feed):
        """A list of the named outputs, all of them for None, from a dict of the inputs."""
        missing = self._inputs.keys() - self._optional - input_feed.keys()
        unknown = input_feed.keys() - self._inputs.keys()
        if missing or unknown:
            raise ValueError(
                f"input_feed: missing are {shown(sorted(missing))}, "
                f"and unknown {shown(sorted(unknown))}"
            )
        results = self._program(
            {name: self._inputs[name].checked(x) for name, x in input_feed.items()}
        )
        if not output_names:
            return results
        named = dict(zip((output.name for output in self._outputs), results, strict=True))
        unknown = set(output_names) - named.keys()
        if unknown:
            raise ValueError(f"output_names: unknown are {shown(sorted(unknown))}")
        return [named[name] for name in output_names]


@contextlib.contextmanager
def _fewer_threads(options, pieces):
    """Ask for as many threads per session as one of so many may have.

    One piece runs at a time, but onnxruntime shares a pool of threads among sessions only after
    `set_global_thread_pool_sizes`. From then on it refuses every session of the process that wants
    threads of its own, so that this is the program's to decide.
    """
    names = ["intra_op_num_threads"]
    if options.execution_mode == onnxruntime.ExecutionMode.ORT_PARALLEL:
        names.append("inter_op_num_threads")
    chosen = {name: getattr(options, name) for name in names}
    try:
        if getattr(options, "use_per_session_threads", True):
            for name, threads in chosen.items():
                wanted = threads or available_cpus()  # 0: onnxruntime finds a number
                most = 1 + max(_FULL_POOLS * (wanted - 1), _SMALL_NUMBER) // pieces
                if most < wanted:
                    setattr(options, name, most)
        yield
    finally:
        for name, threads in chosen.items():
            setattr(options, name, threads)


def _stop_spinning(options):
    """Each session has threads of its own, and those of one would be in the way of the next."""
    try:
        options.get_session_config_entry(_SPINNING)
    except RuntimeError:  # nobody has said anything
        options.add_session_config_entry(_SPINNING, "0")


def _run(session, piece):
    def run(*arrays):
        return session.run(piece.outputs, dict(zip(piece.inputs, arrays, strict=True)))

    return run


def _serialized(model, graph, piece, types):
    """A piece as the bytes of a model of its own."""
    try:
        return _model(model, graph, piece, types).SerializeToString()
    except ProtobufError as error:  # copying parses too
        raise ValueError(
            "model: a piece of it cannot be serialized, as it is nested too deep or has more than "
            f"2 GiB: {error}"
        ) from None


def _model(model, graph, piece, types):
    """A piece as a model of its own."""
    read = {name for node in piece.nodes for name in inputs_of(node)}.difference(piece.inputs)
    part = onnx.helper.make_graph(
        piece.nodes,
        "piece",
        [onnx.ValueInfoProto(name=name, type=types[name]) for name in piece.inputs],
        [onnx.ValueInfoProto(name=name) for name in piece.outputs],
        [tensor for name, tensor in graph.initializers.items() if name in read],
    )
    return onnx.helper.make_model(
        part,
        functions=model.functions,
        ir_version=max(model.ir_version, 4),  # constants are not among the inputs
        opset_imports=[
            onnx.helper.make_opsetid(domain, version)
            for domain, version in graph.opsets.items()
            if domain != INTERNAL_NHWC
        ],
    )


def _type(elem_type, shape=None):
    return onnx.helper.make_tensor_type_proto(elem_type, shape)


def _type_of(value):
    """The type of a piece's output, as onnxruntime inferred it."""
    name = value.type.removeprefix("tensor(").removesuffix(")").upper()
    if name not in onnx.TensorProto.DataType.keys():  # noqa: SIM118 (no dict)
        raise ValueError(f"model: {shown(value.name)} is no tensor, and crosses a pooling node")
    dims = [size if isinstance(size, int) else None for size in value.shape]
    return _type(onnx.TensorProto.DataType.Value(name), dims or None)  # [] is also for any rank


def _pooled_types(node, types):
    """The types of a pooling node's outputs."""
    tensor = types[node.input[0]].tensor_type
    dims = None
    if tensor.HasField("shape"):
        dims = [None] * len(tensor.shape.dim)
    outputs = zip(node.output, (tensor.elem_type, onnx.TensorProto.INT64), strict=False)
    return {name: _type(elem_type, dims) for name, elem_type in outputs}
