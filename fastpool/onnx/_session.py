"""Use fastpool's kernels inside onnxruntime's own sessions."""

import functools
import io
import os
import threading
import warnings

import onnxruntime

from ._inside import report, runtime

# Providers next to which kernels for the CPU are right. Those of other devices find theirs by the
# names of operators, which kernels of fastpool would take from them.
_PROVIDERS = {"CPUExecutionProvider", "OpenVINOExecutionProvider", "AzureExecutionProvider"}

# Arguments of fastpool's first sessions, which onnxruntime would ignore -> what to do.
_NO_ARGUMENTS = {
    name: f'use sess_options.add_session_config_entry("fastpool.{name}", ...)'
    for name in ("select", "nan", "numerics")
}
_NO_ARGUMENTS["num_threads"] = "use sess_options.intra_op_num_threads"
_NO_ARGUMENTS |= dict.fromkeys(
    ("ceil_rule", "pads_with_auto_pad", "index_space", "beyond", "partial"),
    "it follows onnxruntime",
)
_MOST_FIELDS = 1 << 14  # of a model, functions included
_reporting = threading.Lock()


def library():
    """Return the path of fastpool's kernels for onnxruntime.

    A session whose options register the library runs pooling nodes with fastpool, where
    onnxruntime's own kernels are slow or missing. It is onnxruntime's own session, and the model
    stays as it is. docs/onnx.md says which nodes these are.

    Options are set before, with ``add_session_config_entry``: ``"fastpool.numerics"`` ("pairwise",
    "exact" or "sequential"), ``"fastpool.nan"`` ("propagate" or "ignore"), ``"fastpool.select"``
    ("faster", "all" or "none"), and ``"fastpool.domains"``: with "all" instead of "standard",
    NhwcMaxPool and QLinearAveragePool of com.microsoft get kernels, too. Only a model that imports
    that domain can be loaded then.

    The program must run Python, which makes the plans: one in C++ alone cannot load the library.

    Returns
    -------
    path : str
        Where the library is.

    Examples
    --------
    >>> import onnxruntime
    >>> import fastpool.onnx
    >>> options = onnxruntime.SessionOptions()
    >>> options.register_custom_ops_library(fastpool.onnx.library())
    """
    return runtime().__file__


class InferenceSession(onnxruntime.InferenceSession):
    """onnxruntime.InferenceSession with fastpool's kernels registered.

    The arguments are onnxruntime's. `sess_options` gets the library of :func:`library`, which has
    the options. Without `sess_options`, ``"fastpool.domains"`` is "all" for a model that imports
    com.microsoft. A program uses fastpool after
    ``onnxruntime.InferenceSession = fastpool.onnx.InferenceSession``.

    With providers of other devices than the CPU nothing is registered, and a warning says so once.

    Examples
    --------
    >>> import numpy as np
    >>> import onnx.parser
    >>> import fastpool.onnx
    >>> model = onnx.parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 13]>
    ...     example (float[1, 1, 4] x) => (float[1, 1, 2] y, int64[1, 1, 2] indices) {
    ...         y, indices = MaxPool <kernel_shape = [2], strides = [2]> (x)
    ...     }''')
    >>> session = fastpool.onnx.InferenceSession(model.SerializeToString())
    >>> session.run(None, {"x": np.array([[[1, 3, 2, 4]]], dtype=np.float32)})
    [array([[[3., 4.]]], dtype=float32), array([[[1, 3]]], dtype=int64)]
    """

    def __init__(
        self, path_or_bytes, sess_options=None, providers=None, provider_options=None, **kwargs
    ):
        for name in kwargs.keys() & _NO_ARGUMENTS.keys():
            raise TypeError(f"{name}: no argument of sessions; {_NO_ARGUMENTS[name]}")
        others = _other_providers(providers)
        if others:
            _warn_once(*others)
        else:
            if sess_options is None:
                sess_options = onnxruntime.SessionOptions()
                if _imports_microsoft(path_or_bytes):
                    sess_options.add_session_config_entry("fastpool.domains", "all")
            sess_options.register_custom_ops_library(library())
        super().__init__(path_or_bytes, sess_options, providers, provider_options, **kwargs)


def _imports_microsoft(path_or_bytes):
    """Does a model import the domain com.microsoft?

    Only the lengths of its fields are read, and those that name a domain (opset_import, 8).
    """
    is_bytes = isinstance(path_or_bytes, bytes)
    if not is_bytes and not isinstance(path_or_bytes, str | os.PathLike):
        return False
    try:
        with io.BytesIO(path_or_bytes) if is_bytes else open(path_or_bytes, "rb") as model:
            for _ in range(_MOST_FIELDS):
                kind = _number(model)
                if kind & 7 == 0:
                    _number(model)
                elif kind & 7 != 2:  # (a model has no other fields)
                    return False
                elif kind >> 3 != 8:
                    model.seek(_number(model), os.SEEK_CUR)
                elif b"\x0a\x0dcom.microsoft" in model.read(_number(model)):  # (13 letters)
                    return True
    except (OSError, ValueError):  # onnxruntime says what is wrong
        pass
    return False


def _number(model):
    """Read a number, seven bits of each byte, the lowest first."""
    value = shift = 0
    while shift < 35:
        byte = model.read(1)
        if not byte:
            raise ValueError("the model ends")
        value |= (byte[0] & 127) << shift
        if byte[0] < 128:
            return value
        shift += 7
    raise ValueError("a number of many digits")


def _other_providers(providers):
    """Return the names of providers with which fastpool registers nothing."""
    names = onnxruntime.get_available_providers()
    if isinstance(providers, (list, tuple)):  # onnxruntime leaves out those that it has not
        given = [name[0] if isinstance(name, tuple) else name for name in providers]
        names = [name for name in names if name in given]
    return [name for name in names if name not in _PROVIDERS]


@functools.cache
def _warn_once(*names):
    warnings.warn(
        f"fastpool registers no kernels in sessions with {', '.join(map(str, names))}: they are "
        "for the CPU",
        stacklevel=3,
    )


def explain(model):
    """Return a text: who runs each pooling node of a model inside onnxruntime, and why.

    :class:`InferenceSession` loads the model with its default options, and nothing runs.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        The model, in any form but that of an .ort file.

    Returns
    -------
    text : str
        A line for each node, after one with their number.

    Raises
    ------
    TypeError
        `model` is of another type.
    ValueError
        onnxruntime or onnx cannot load the model.

    Examples
    --------
    >>> import onnx.parser
    >>> import fastpool.onnx
    >>> model = onnx.parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 13]>
    ...     example (float[1, 1, 4] x) => (float[1, 1, 2] z) {
    ...         y, i = MaxPool <kernel_shape = [2], strides = [2]> (x)
    ...         z = AveragePool <kernel_shape = [1]> (y)
    ...     }''')
    >>> print(fastpool.onnx.explain(model))
    1 of 2 pooling nodes with fastpool
      node (MaxPool) of the output 'y': fastpool
      node (AveragePool) of the output 'z': onnxruntime, as fastpool's kernels begin with opset 19
    """
    from ._nodes import label

    nodes = _pooling_nodes(model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # (only what ends a process)
    options.add_session_config_entry("fastpool.report", "1")
    if isinstance(model, str | os.PathLike):
        model = os.fspath(model)
    elif not isinstance(model, bytes):
        model = model.SerializeToString()
    with _reporting:
        report.clear()
        try:
            InferenceSession(model, options, ["CPUExecutionProvider"])
        except Exception as error:
            if not type(error).__module__.startswith("onnxruntime"):
                raise
            raise ValueError(f"model: {str(error).splitlines()[0]}") from None
        taken = list(report)
    found = []
    for node, _ in nodes:
        known = node.op_type, next(filter(None, node.output), "")
        found.append(_taken(taken, known, lambda entry: entry[:2]))
    lines, every = [], []
    for (node, version), who in zip(nodes, found, strict=True):
        # (An optimiser that changes the layout or the type of a node gives it another output.)
        who = who or _taken(taken, _origin(node.op_type), lambda entry: _origin(entry[0]))
        every.append(who or _reason(node, version))
        lines.append(f"  {label(node)}: {every[-1]}")
    lines += [f"  {op_type} of a function: {who}" for op_type, _, who in taken]
    every += [who for *_, who in taken]
    kinds = [who.partition(", ")[::2] for who in every]
    ours = sum(kind[0] == "fastpool" for kind in kinds)
    by_shape = sum(kind[0] == "fastpool" and kind[1] != "" for kind in kinds)
    head = f"{ours - by_shape} of {len(every)} pooling nodes with fastpool"
    return "\n".join([head + f", {by_shape} by their shape" * (by_shape > 0), *lines])


def _taken(entries, wanted, part):
    """Remove the first entry with a wanted part, and return who runs it. None if there is none."""
    for entry in entries:
        if part(entry) == wanted:
            entries.remove(entry)
            return entry[2]
    return None


def _origin(op_type):
    return {"NhwcMaxPool": "MaxPool", "QLinearAveragePool": "AveragePool"}.get(op_type, op_type)


def _pooling_nodes(model):
    """Return the pooling nodes of a model and of its subgraphs, with their opset versions."""
    from ._graph import load
    from ._nodes import REDUCTIONS, is_pooling, kind_of

    model = load(model, load_external_data=False)
    opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
    found, graphs = [], [model.graph]
    while graphs:
        graph = graphs.pop()
        for node in graph.node:
            if is_pooling(node) and kind_of(node) not in REDUCTIONS:
                found.append((node, opsets.get(kind_of(node)[0], 0)))
            for attribute in node.attribute:
                graphs += [attribute.g] if attribute.HasField("g") else attribute.graphs
    return found


def _reason(node, version):
    """Return who runs a node that fastpool was not given, and why."""
    from ._nodes import INTERNAL_NHWC, MICROSOFT

    since = runtime().SINCE.get(node.op_type)
    if since is None or node.domain == INTERNAL_NHWC:
        return "onnxruntime, as fastpool has no kernel for it"
    if node.domain == MICROSOFT:
        return 'onnxruntime, unless the option fastpool.domains is "all"'
    if version < since:
        return f"onnxruntime, as fastpool's kernels begin with opset {since}"
    return "onnxruntime, whose optimiser took it"
