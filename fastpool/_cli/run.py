"""`fastpool run`: run ONNX models."""

from pathlib import Path

import click
import numpy as np

import fastpool

from .arrays import Archive, described, npz_writer
from .options import THREADS, given, text, with_options
from .program import Command, wrong_input

RULES = [
    text("nan", "propagate or ignore. [propagate; with --session only in nodes of fastpool]"),
    text(
        "numerics",
        "pairwise, exact or sequential. [pairwise; with --session only in nodes of fastpool]",
    ),
    text("ceil-rule", "clip or keep. [clip; not with --session]"),
    text("pads-with-auto-pad", "error or ignore. [error; not with --session]"),
    text("index-space", "inferred or output. [inferred; not with --session]"),
    text("beyond", "drop or count. [drop; not with --session]"),
]
SESSION = [text("select", "With --session: faster, all or none. [faster]")]


@click.command(
    cls=Command,
    examples=[
        "fastpool run model.onnx inputs.npz outputs.npz",
        "fastpool run model.onnx inputs.npz outputs.npz --session --num-threads 2",
    ],
)
@click.argument("model", metavar="MODEL.onnx", type=click.Path(path_type=Path))
@click.argument("inputs", metavar="INPUTS.npz", type=click.Path(path_type=Path))
@click.argument("outputs", metavar="OUTPUTS.npz", type=click.Path(path_type=Path))
@click.option(
    "--session", is_flag=True, help="Run any model inside onnxruntime, with fastpool's kernels."
)
@with_options(RULES, SESSION, THREADS)
def command(model, inputs, outputs, session, **rules):
    """Run an ONNX model of pooling nodes.

    The arrays in INPUTS.npz have the names of the graph's inputs. Those in OUTPUTS.npz get the
    names of its outputs. Nodes that move data around pooling run too; other operators need
    --session. The other options choose conventions, as in fastpool.onnx.max_pool.
    """
    with wrong_input():
        with Archive("inputs", inputs) as archive:
            arrays = {name: archive[name] for name in archive.names}
        results = _run(model, arrays, session, given(rules))
        with fastpool.files.replacing(outputs=outputs) as new:
            with npz_writer(new["outputs"]) as write:
                for name, array in results.items():
                    write(name, array)
    for name, array in results.items():
        click.echo(f"{outputs}: {name} {described(array)}")


def _run(path, arrays, session, rules):
    """Return a dict of the outputs."""
    from .. import onnx as front

    runner = front.InferenceSession if session else front.Backend.prepare  # (or: what to install)

    from onnx import numpy_helper

    from ..onnx._graph import load, read_graph

    model = load(path)
    graph = read_graph(model)
    missing = graph.inputs.keys() - graph.optional - arrays.keys()
    if missing or arrays.keys() - graph.inputs.keys():
        wanted = [f"{v.name} {v.type} {v.shape}" for v in graph.inputs.values()]
        raise ValueError(
            f"inputs: expected the arrays {', '.join(wanted)}; got {', '.join(arrays)}"
        )
    arrays = {name: graph.inputs[name].checked(x) for name, x in arrays.items()}
    try:
        if session:
            results = runner(str(path), _options(rules)).run(None, arrays)
            if not all(isinstance(result, np.ndarray) for result in results):
                raise ValueError("model: an output is no tensor, which no .npz holds")
        elif "select" in rules:
            raise ValueError("select: has no meaning without --session")
        else:
            prepared = runner(model, **rules)
            for name in graph.optional - arrays.keys():
                arrays[name] = numpy_helper.to_array(graph.initializers[name])
            results = prepared.run([arrays[name] for name in graph.inputs])
    except ValueError as error:
        raise ValueError(
            str(error).replace("fastpool.onnx.InferenceSession", "--session")
        ) from None
    except Exception as error:
        if not type(error).__module__.startswith("onnxruntime"):
            raise
        raise ValueError(f"model: {str(error).splitlines()[0]}") from None
    return {output.name: array for output, array in zip(graph.outputs, results, strict=True)}


def _options(rules):
    """Return onnxruntime's options of a session whose kernels follow some rules."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = rules.pop("num_threads", 0)
    for name, value in rules.items():
        if name not in ("nan", "numerics", "select"):
            raise ValueError(f"{name}: has no meaning with --session")
        options.add_session_config_entry(f"fastpool.{name}", value)
    return options
