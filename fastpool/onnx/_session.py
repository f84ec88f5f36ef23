"""Run whole models: pooling nodes with fastpool, all other nodes with onnxruntime."""

import contextlib
import functools
import threading
from collections.abc import Iterable, Mapping

import onnx
import onnxruntime
from google.protobuf.message import Error as ProtobufError
from onnx import numpy_helper

from .._planning import arguments
from .._planning.arguments import shown
from .._running import builds, threads
from ._choice import choose, explained, output_of
from ._graph import Program, Step, inputs_of, load, read_graph
from ._nodes import INTERNAL_NHWC, REDUCTIONS, check_rules, kind_of, pooling_call
from ._split import Piece, entering, split
from ._types import dims_of

# Conventions in which onnxruntime differs from the standard's text and examples, or from itself.
_CONVENTIONS = {"pads_with_auto_pad": "ignore", "index_space": "output"}
_CONVENTIONS_OF = {"QLinearAveragePool": {"beyond": "count"}}

_FATAL = 4  # a level of logging
_MOST_AXES = 5  # of what onnxruntime pools; it says so when a model runs

_SPINNING = "session.intra_op.allow_spinning", "session.inter_op.allow_spinning"

# Limit for the threads of all pieces of a model together: those of _FULL_POOLS sessions, or
# _SMALL_NUMBER. Known networks have fewer pieces, which are large enough to need all threads.
_FULL_POOLS = 16
_SMALL_NUMBER = 128

_limit = threading.local()
threads.limits.append(lambda: getattr(_limit, "threads", threads.MOST_THREADS))


class InferenceSession:
    """A model that runs with onnxruntime, and with fastpool the pooling nodes where that is faster.

    It replaces onnxruntime.InferenceSession. The pooling nodes are those of
    `fastpool.onnx.Backend`, except inside subgraphs and functions. The model is cut at those that
    fastpool runs, and each piece in between is a session of onnxruntime. Arrays go from one piece
    to the next without a copy. If fastpool runs none, the model is one session of onnxruntime, and
    `run` is the method of that session, with its errors.

    A cut costs a call, and between convolutions a change of layout. So fastpool runs a node if it
    is faster by more than that, as a table of measurements says (docs/onnx.md), if onnxruntime does
    not run it, or if it knows an argument that is given here. The choice depends on the model and
    on what onnxruntime runs. `explain` returns it as a text.

    ReduceMean and ReduceMax are pooling nodes if their axes are constants and exactly the spatial
    axes (2, 3 and so on) of an input of known rank, with at least two of them. (Over the last of
    three axes, such nodes are nearly always parts of a layer normalisation.)

    If the standard and onnxruntime read MaxUnpool and `auto_pad` differently, this class follows
    onnxruntime; so it does in the divisor of QLinearAveragePool with `ceil_mode`. In the nodes that
    fastpool runs, NaN, windows without elements, `dilations` with `auto_pad` and the rounding of
    means follow fastpool: ``numerics="sequential"`` gives onnxruntime's bits for AveragePool from
    opset 19 on.

    Each piece has its own threads: onnxruntime sessions can only share the threads of the whole
    process, and only if no session has its own. With more than 16 pieces each has fewer threads:
    together they have at most those of 16 sessions, or 128 threads.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        The model. No piece may have more than 2 GiB.
    sess_options : onnxruntime.SessionOptions, optional
        Options for every piece. Pooling takes at most half of their intra-op number of
        threads, except with `num_threads`. If the model is cut and they do not set spinning of
        threads, it is switched off in them. With ``use_per_session_threads = False`` all pieces
        share the threads of the process.
    providers : sequence, optional
        Execution providers for every piece, by default onnxruntime's CPU.
    select : {"faster", "all", "none"} or function of a NodeProto
        Which pooling nodes fastpool runs: those that it runs faster, all, none, or those for which
        the function returns a true value.
    nan, ceil_rule, pads_with_auto_pad, index_space, numerics, beyond, partial, num_threads : \
optional
        As in `fastpool.onnx.max_pool`, `max_unpool`, `average_pool` and `lp_pool`, for the pooling
        nodes that fastpool runs and that know the argument. With ``select="faster"``, fastpool runs
        all nodes that know an argument given here (except `num_threads`).

    Attributes
    ----------
    pooling_nodes : list of NodeProto
        The nodes that fastpool runs, in order.

    Raises
    ------
    TypeError, ValueError
        The model is invalid or has sparse initializers, or an argument is wrong.

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
    >>> print(session.explain())
    0 of 1 pooling nodes with fastpool, 1 session of onnxruntime
      node (MaxPool) of the output 'y': onnxruntime, 4 elements: a cut pays from 32768 on
    >>> session = fastpool.onnx.InferenceSession(model, nan="propagate")
    >>> print(session.explain())
    1 of 1 pooling nodes with fastpool, 1 session of onnxruntime
      node (MaxPool) of the output 'y': fastpool, follows nan
    """

    def __init__(
        self,
        model,
        sess_options=None,
        providers=("CPUExecutionProvider",),
        *,
        select="faster",
        **rules,
    ):
        select = arguments.select(select)
        check_rules(rules)
        given, model = model, load(model)
        graph = read_graph(model)

        is_known = functools.partial(_is_known, model, graph, {})
        with _named_limits():
            followed = {name for name, value in rules.items() if value is not None}
            followed.discard("num_threads")
            self._choices = choose(model, graph, select, followed, is_known)
        self._nodes = [node for node in graph.nodes if output_of(node) in self._choices]
        self.pooling_nodes = [n for n in self._nodes if self._choices[output_of(n)].is_ours]
        if self.pooling_nodes:
            self._pieces = self._cut(model, graph, sess_options, list(providers), rules)
        else:
            self._pieces = 1
            if isinstance(given, onnx.ModelProto):
                with _named_limits():
                    given = model.SerializeToString()
            session = onnxruntime.InferenceSession(given, sess_options, list(providers))
            # Methods of onnxruntime: a run costs no more than without fastpool.
            self.get_inputs, self.get_outputs = session.get_inputs, session.get_outputs
            self.get_providers, self.run = session.get_providers, session.run

    def _cut(self, model, graph, options, providers, rules):
        """Make a program of the model's pieces; return how many onnxruntime runs."""
        options = options or onnxruntime.SessionOptions()
        _stop_spinning(options)
        # Half of the threads: pooling takes little of the time, and waits for its slowest thread.
        self._threads = max(1, (options.intra_op_num_threads or threads.available_cpus()) // 2)
        rules = {"num_threads": 1 if self._threads == 1 else None} | rules
        is_serial = rules["num_threads"] == 1
        ours = set(map(output_of, self.pooling_nodes))
        types = {value.name: value.type for value in model.graph.input}
        types |= {name: _type(t.data_type, t.dims) for name, t in graph.initializers.items()}
        self._providers = []  # (a model of poolings alone has no piece)
        read = graph.optional.union(output.name for output in graph.outputs)
        steps = []
        parts = split(graph, lambda node: output_of(node) in ours)
        pieces = sum(isinstance(part, Piece) for part in parts)
        for part in parts:
            if isinstance(part, Piece):
                piece = _serialized(model, graph, part, types)
                with _fewer_threads(options, pieces):
                    session = onnxruntime.InferenceSession(piece, options, providers)
                types |= {value.name: _type_of(value) for value in session.get_outputs()}
                self._providers = session.get_providers()
                steps.append(Step(_run(session, part, is_serial), part.inputs, part.outputs))
            else:
                own = _CONVENTIONS | _CONVENTIONS_OF.get(part.op_type, {})
                run = pooling_call(part, graph.opsets, own | rules)
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
        return pieces

    def explain(self):
        """Return a text: which pooling nodes fastpool runs, which onnxruntime runs, and why."""
        count, every = len(self.pooling_nodes), len(self._nodes)
        sessions = "1 session" if self._pieces == 1 else f"{self._pieces} sessions"
        lines = [f"{count} of {every} pooling nodes with fastpool, {sessions} of onnxruntime"]
        lines += [explained(node, self._choices[output_of(node)]) for node in self._nodes]
        return "\n".join(lines)

    def get_inputs(self):
        """Return the inputs without a default value; each has a `name`, `type` and `shape`."""
        return [value for name, value in self._inputs.items() if name not in self._optional]

    def get_outputs(self):
        """Return the outputs; each has a `name`, `type` and `shape`."""
        return list(self._outputs)

    def get_providers(self):
        """Return the names of the execution providers that run the pieces."""
        return list(self._providers)

    def run(self, output_names, input_feed, run_options=None):
        """Return a list of the named outputs (None for all), from a dict of the inputs.

        `run_options` are onnxruntime.RunOptions, for every piece.
        """
        if not isinstance(input_feed, Mapping):
            raise TypeError(f"input_feed: expected a dict of the inputs, got {shown(input_feed)}")
        if not isinstance(run_options, onnxruntime.RunOptions | None):
            raise TypeError(
                f"run_options: expected onnxruntime.RunOptions or None, got {shown(run_options)}"
            )
        missing = self._inputs.keys() - self._optional - input_feed.keys()
        unknown = input_feed.keys() - self._inputs.keys()
        if missing or unknown:
            raise ValueError(
                f"input_feed: missing {shown(sorted(missing))}, unknown {shown(sorted(unknown))}"
            )
        names = _names(output_names)
        unknown = set(names) - {output.name for output in self._outputs}
        if unknown:
            raise ValueError(f"output_names: unknown {shown(sorted(unknown))}")
        inputs = {name: self._inputs[name].checked(x) for name, x in input_feed.items()}
        with _limits(self._threads, run_options):
            results = self._program(inputs)
        if not names:
            return results
        named = dict(zip((output.name for output in self._outputs), results, strict=True))
        return [named[name] for name in names]


def _names(output_names):
    """Return the names as a list, which an iterator of them would be only once."""
    names = None if isinstance(output_names, str) else output_names or ()
    if isinstance(names, Iterable):
        names = list(names)
        if all(isinstance(name, str) for name in names):
            return names
    raise TypeError(f"output_names: expected a list of names or None, got {shown(output_names)}")


@contextlib.contextmanager
def _limits(count, options):
    """Limit the threads of poolings that this thread calls, and set the options of pieces."""
    _limit.threads, _limit.run_options = count, options
    try:
        yield
    finally:
        del _limit.threads, _limit.run_options


@contextlib.contextmanager
def _fewer_threads(options, pieces):
    """Limit the threads of each session to its share for this number of pieces.

    One piece runs at a time, but onnxruntime shares a thread pool among sessions only after
    `set_global_thread_pool_sizes`. From then on it refuses every session of the process that wants
    its own threads, so only the program can decide that.
    """
    names = ["intra_op_num_threads"]
    if options.execution_mode == onnxruntime.ExecutionMode.ORT_PARALLEL:
        names.append("inter_op_num_threads")
    chosen = {name: getattr(options, name) for name in names}
    try:
        if getattr(options, "use_per_session_threads", True):
            for name, count in chosen.items():
                wanted = count or threads.available_cpus()  # 0: onnxruntime finds a number
                most = 1 + max(_FULL_POOLS * (wanted - 1), _SMALL_NUMBER) // pieces
                # 1 is set too: onnxruntime would count processors that this process may not use.
                if most < wanted or wanted == 1:
                    setattr(options, name, min(most, wanted))
        yield
    finally:
        for name, count in chosen.items():
            setattr(options, name, count)


def _stop_spinning(options):
    """Switch spinning off: a session's spinning threads would slow down the next session."""
    for entry in _SPINNING:
        try:
            options.get_session_config_entry(entry)
        except RuntimeError:  # the caller has not set it
            options.add_session_config_entry(entry, "0")


def _run(session, piece, is_serial):
    def run(*arrays):
        if not is_serial:  # poolings left threads that spin
            builds.end_workers()
        inputs = dict(zip(piece.inputs, arrays, strict=True))
        return session.run(piece.outputs, inputs, _limit.run_options)

    return run


def _is_known(model, graph, answers, node, types):
    """Does onnxruntime run such a node? It is asked once; `answers` has what it said."""
    inputs = entering([node], graph)
    if not types.keys() >= {*inputs, node.input[0]}:
        return True
    if len(dims_of(types[node.input[0]]) or ()) > _MOST_AXES:
        return False
    key = (
        *(node.domain, node.op_type, len(node.output)),
        *(types[name].tensor_type.elem_type for name in inputs),
        *(attribute.SerializeToString() for attribute in node.attribute),
    )
    if key not in answers:
        piece = Piece([node], inputs, list(filter(None, node.output)))
        answers[key] = _is_loaded(model, graph, piece, types)
    return answers[key]


def _is_loaded(model, graph, piece, types):
    """Does onnxruntime load a piece?"""
    types = {name: _type(types[name].tensor_type.elem_type) for name in piece.inputs}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, _FATAL
    try:
        onnxruntime.InferenceSession(
            _serialized(model, graph, piece, types), options, ["CPUExecutionProvider"]
        )
    except Exception:  # of several types, for types that the standard or onnxruntime lacks
        return False
    return True


def _serialized(model, graph, piece, types):
    """Return a piece as the bytes of a separate model."""
    with _named_limits():
        return _model(model, graph, piece, types).SerializeToString()


@contextlib.contextmanager
def _named_limits():
    """Turn protobuf's errors, which copying and serializing raise, into a ValueError."""
    try:
        yield
    except ProtobufError as error:
        raise ValueError(
            "model: a piece of it cannot be serialized: it is nested too deep or has more than "
            f"2 GiB: {error}"
        ) from None


def _model(model, graph, piece, types):
    """Return a piece as a separate model."""
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
    """Return the type of a piece's output, as onnxruntime inferred it."""
    name = value.type.removeprefix("tensor(").removesuffix(")").upper()
    if name not in onnx.TensorProto.DataType.keys():  # noqa: SIM118 (no dict)
        raise ValueError(f"model: {shown(value.name)} is no tensor, and crosses a pooling node")
    dims = [size if isinstance(size, int) else None for size in value.shape]
    return _type(onnx.TensorProto.DataType.Value(name), dims or None)  # [] also means any rank


def _pooled_types(node, types):
    """Return the types of a pooling node's outputs."""
    tensor = types[node.input[0]].tensor_type
    dims = None
    if tensor.HasField("shape") and kind_of(node) not in REDUCTIONS:  # these may drop axes
        dims = [None] * len(tensor.shape.dim)
    outputs = zip(node.output, (tensor.elem_type, onnx.TensorProto.INT64), strict=False)
    return {name: _type(elem_type, dims) for name, elem_type in outputs}
