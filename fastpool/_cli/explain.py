"""`fastpool explain`: describe and draw the windows of a pooling."""

import json
from pathlib import Path

import click

import fastpool
import fastpool.onnx

from .._planning import geometry
from .._showing import explain
from .options import (
    ACTIVATION,
    AVERAGE,
    INDICES,
    NORM,
    OP,
    THREADS,
    WINDOW,
    Numbers,
    Picture,
    check_op,
    function_name,
    given,
    text,
    with_options,
)
from .program import Command, wrong_input

# Attributes in which conventions differ. Only fastpool has the others.
COMPARED = (
    *("kernel_shape", "strides", "pads", "dilations", "auto_pad", "ceil_mode"),
    "count_include_pad",
)

DPI = 200


@click.command(
    cls=Command,
    examples=[
        "fastpool explain --shape 1,3,224,224 --kernel-shape 3 --strides 2 --auto-pad SAME_UPPER",
        "fastpool explain --shape 7,9 --layout HW --kernel 3 --strides 2 --svg windows.svg",
        "fastpool explain --shape 6 --layout W --kernel 3 --strides 2 --ceil-mode --conventions",
        "fastpool explain model.onnx",
        "fastpool explain --shape 7,9 --layout HW --kernel 3 --json",
    ],
)
@click.argument("model", required=False, type=click.Path(path_type=Path))
@click.option(
    "--shape", type=Numbers(), help="Shape of the array, in --layout. [required without MODEL]"
)
@click.option("--dtype", metavar="NAME", default="float32", help="Type of the array. [float32]")
@with_options(OP, WINDOW, AVERAGE, NORM)
@with_options([text("result-dtype", "Type of averages. [that of the array]")])
@click.option(
    "--return-indices", is_flag=True, help="Return the indices of the maxima or minima too."
)
@with_options(INDICES, ACTIVATION, THREADS)
@click.option(
    "--conventions",
    is_flag=True,
    help="Compare what the attributes mean in ONNX, OpenVINO, torch and TensorFlow.",
)
@click.option("--svg", metavar="FILE", type=Picture(".svg"), help="Draw the windows as SVG.")
@click.option("--png", metavar="FILE", type=Picture(".png"), help="Draw the windows as PNG.")
@click.option("--axes", metavar="NAMES", help="One or two spatial axes to draw, as W or HW. [all]")
@click.option("--verbose", is_flag=True, help="Say why this machine takes no better strategy.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(model, shape, dtype, op, conventions, svg, png, axes, verbose, as_json, **attributes):
    """Explain what a pooling does, and draw it. Of a model: who runs its poolings in onnxruntime.

    Attributes are those of fastpool.max_pool, or of the function for another --op. Prints which
    rules apply, the resulting padding and output, which windows hang over an edge, and how this
    machine would compute it.
    """
    with wrong_input():
        if (model is None) == (shape is None):
            raise ValueError("shape: expected either --shape or a MODEL.onnx")
        if model is not None:
            words = fastpool.onnx.explain(model)
            head, *nodes = map(str.strip, words.splitlines())
            click.echo(_as_json({"summary": head, "nodes": nodes}) if as_json else words)
            return
        shape = shape if isinstance(shape, tuple) else (shape,)
        attributes = given(attributes)
        planned = getattr(fastpool, f"plan_{function_name(op)}")
        check_op(op, planned, attributes)
        if conventions:
            answer = _compared(op, shape, {**attributes, "axes": axes})
            words = _as_json(_answers(answer)) if as_json else str(answer)
        else:
            answer = planned(shape, dtype, **attributes)
            words = _as_json(_facts(answer)) if as_json else answer.explain(verbose=verbose)
        pictures = given({"svg": svg, "png": png})
        if pictures:
            with fastpool.files.replacing(**pictures) as new:
                for format, path in new.items():
                    figure = answer.draw() if axes is None else answer.draw(axes=axes)
                    figure.savefig(path, format=format, dpi=DPI)
    click.echo(words)


def _as_json(facts):
    """Return JSON, in which infinity is a text: JSON has no such number."""
    return json.dumps(json.loads(json.dumps(facts), parse_constant=str), indent=1)


def _answers(comparison):
    """Return what the conventions answer, without the positions of windows."""
    names = "name", "call", "output_shape", "problem", "notes"
    answers = [{name: getattr(each, name) for name in names} for each in comparison.answers]
    return {"question": comparison.question, "answers": answers}


def _facts(plan):
    """Return the fields of a plan, and what is said about it, by label."""
    fields = {name: getattr(plan, name) for name in plan.__dataclass_fields__}
    fields["axes"] = [axis._asdict() for axis in plan.axes]
    fields["given"] = plan.given._asdict()
    explained = {}
    for label, sentences in explain._sections(plan, explain._prepared(plan), verbose=True):
        explained.setdefault(label, []).extend(sentences)
    return {"plan": type(plan).__name__, **fields, "explained": explained}


def _compared(op, shape, attributes):
    """Return the comparison of the attributes in other conventions."""
    from .. import conventions

    if op not in ("max", "avg"):
        raise ValueError(
            "op: has no meaning with --conventions, unless it is max (min is the same) or avg"
        )
    order = geometry.layout(attributes.pop("layout", None), shape)
    for name, value in attributes.items():
        if name not in COMPARED and value:
            raise ValueError(f"{name}: has no meaning with --conventions")
    chosen = {name: value for name, value in attributes.items() if name in COMPARED}
    op = {"max": "max", "avg": "average"}[op]
    return conventions.compare([shape[axis] for axis in order.spatial], op=op, **chosen)
