"""`fastpool pool`: pool arrays and images in files."""

from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
import numpy as np

import fastpool

from .arrays import Archive, described, image_format, npz_writer, read_image, write_image
from .options import (
    ACTIVATION,
    AVERAGE,
    INDICES,
    NORM,
    OP,
    THREADS,
    WINDOW,
    Size,
    check_op,
    function_name,
    given,
    number,
    with_options,
)
from .program import Command, wrong_input
from .screen import progress

ARRAYS = (".npy", ".npz")


@click.command(
    cls=Command,
    examples=[
        "fastpool pool photo.png small.png --kernel-shape 2 --strides window",
        "fastpool pool x.npy y.npy --kernel 3 --pads 1 --layout NHWC --indices z.npy",
        "fastpool pool large.npy y.npy --kernel 4 --strides 4 --layout HW --max-bytes 64M",
        "fastpool pool batch.npz pooled.npz --kernel 3,3 --strides 2 --ceil-mode",
        "fastpool pool photo.png eroded.png --op min --kernel 5 --pads 2",
        "fastpool pool x.npy y.npy --op avg --kernel 3 --pads 1 --count-include-pad",
        "fastpool pool x.npy y.npy --op global-avg --result-dtype float64 --keepdims 0",
        "fastpool pool photo.png small.png --op adaptive-avg --output-size 64,96",
    ],
)
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@with_options(OP, WINDOW)
@with_options(AVERAGE)
@click.option(
    "--result-dtype", "dtype", metavar="NAME", help="Type of averages. [that of the input]"
)
@with_options(NORM, [number("keepdims", "Whether a global op keeps spatial axes: 0 or 1. [1]")])
@click.option(
    "--indices",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the index of each maximum or minimum too.",
)
@with_options(INDICES, ACTIVATION, THREADS)
@click.option("--key", metavar="NAME", help="The array of an .npz file; by default all of them.")
@click.option("--max-bytes", type=Size(), help="Memory for input and results. [256M]")
def command(source, target, op, indices, key, max_bytes, **attributes):
    """Pool arrays or an image from one file into another.

    Attributes are those of fastpool.max_pool, or of the function for another --op. The endings of
    file names give their formats:

    \b
    .npy   an array; from one to another any size fits into little memory
    .npz   arrays by name, each of which is pooled
    other  an image that Pillow knows; its layout, HW or HWC, is known

    One array or image can go to an .npy file or an image. Files appear when they are complete.
    """
    with wrong_input():
        attributes, name = given(attributes), function_name(op)
        outputs = given({"indices": indices})
        check_op(op, getattr(fastpool, name), {**attributes, **outputs})
        targets = [target] if indices is None else [target, indices]
        _check(source, targets, key, max_bytes, attributes)
        with progress("pooling") as update:
            if {path.suffix for path in (source, *targets)} == {".npy"}:
                size = {} if max_bytes is None else {"max_bytes": max_bytes}
                getattr(fastpool.files, name)(
                    *(source, target), progress=update, **outputs, **size, **attributes
                )
                lines = [described(np.load(target, mmap_mode="r"))]
            else:
                if indices is not None:
                    attributes["return_indices"] = True
                function = getattr(fastpool, name)
                lines = _pool_arrays(function, source, targets, key, attributes, update)
    for line in lines:
        click.echo(f"{target}: {line}")


def _check(source, targets, key, max_bytes, attributes):
    """Raise if options or files do not go together."""
    if key is not None and source.suffix != ".npz":
        raise ValueError("key: only arrays in .npz files have names")
    if max_bytes is not None and {path.suffix for path in (source, *targets)} != {".npy"}:
        raise ValueError("max_bytes: only from .npy files to .npy files")
    if "layout" in attributes and source.suffix not in ARRAYS:
        raise ValueError("layout: expected none, as an image has its own")
    many = source.suffix == ".npz" and key is None
    for path in targets:
        if many != (path.suffix == ".npz"):
            what = "the arrays of an .npz file; --key chooses one" if many else "one array"
            raise ValueError(f"{str(path)!r} cannot hold {what}")
    if len(targets) == 2 and targets[1].suffix not in ARRAYS:
        raise ValueError("indices: expected a name that ends in .npy or .npz")


def _pool_arrays(function, source, targets, key, attributes, update):
    """Pool arrays in memory, one after the other; yield a line about each."""
    lines = []
    with ExitStack() as stack:
        formats = [None if path.suffix in ARRAYS else image_format(path) for path in targets]
        names = dict(zip(("target", "indices"), targets, strict=False))
        new = stack.enter_context(fastpool.files.replacing(**names))
        writers = [
            stack.enter_context(_writer(new[name], path.suffix, format))
            for (name, path), format in zip(names.items(), formats, strict=True)
        ]
        for name, x, layout in _inputs(source, key, update):
            more = {} if layout is None else {"layout": layout}
            try:
                results = function(x, **attributes, **more)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{error} ({name or source}: {described(x)})") from None
            results = results if isinstance(results, tuple) else (results,)
            for write, result in zip(writers, results, strict=True):
                write(name, result)
            lines.append(f"{name} {described(results[0])}".lstrip())
    return lines


def _inputs(source, key, update):
    """Yield name, array, and layout if that is known."""
    if source.suffix == ".npz":
        with Archive("source", source) as archive:
            names = archive.names if key is None else [key]
            for done, name in enumerate(names):
                update(done, len(names))
                yield name, archive[name], None
    elif source.suffix == ".npy":
        with fastpool.files.existing(source) as x:
            yield "", x.mapped(), None
    else:
        yield "", *read_image("source", source)


@contextmanager
def _writer(path, suffix, format):
    """Yield a function that writes a named array to the file `path`, in the format of `suffix`."""
    if suffix == ".npz":
        with npz_writer(path) as write:
            yield write
    elif suffix == ".npy":
        with open(path, "wb") as file:
            yield lambda name, array: np.save(file, array)
    else:
        yield lambda name, array: write_image(path, format, array)
