"""`fastpool pyramid`: write an array in a file as an OME-Zarr image of several levels."""

from pathlib import Path

import click

import fastpool.files

from .arrays import described
from .options import AVERAGE, THREADS, Numbers, Size, given, number, text, with_options
from .program import Command, wrong_input
from .screen import progress

ROUNDING, NUMERICS = AVERAGE[-2:]


def number_of(text):
    """Return an int, which labels of 64 bits need, or else a float."""
    try:
        return int(text)
    except ValueError:
        return float(text)


@click.command(
    cls=Command,
    examples=[
        "fastpool pyramid labels.npy a.zarr --levels 5 --axes zyx --factor 1,2,2 --func mode",
        "fastpool pyramid a.npy a.zarr --levels 4 --axes zyx --max-bytes 1G",
        "fastpool pyramid a.zarr/0 b.zarr --levels 3 --ome-version 0.4 --chunks 128",
    ],
)
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--levels", metavar="N", type=int, required=True, help="Reduced levels, 1 to 64.")
@click.option(
    "--factor",
    type=Numbers(example="2 or 1,2,2"),
    help="From level to level: for z, y and x, or for each axis of IN. [2]",
)
@with_options(
    [
        text("func", "max, min, mean, sum, mode, median, std, var or count. [mean]"),
        text("axes", 'The axes of IN, of "tczyx". [as IN names them]'),
        click.option(
            "--scale",
            type=Numbers(float, "2,0.3,0.3"),
            help="Size of an element along each axis of IN. [1]",
        ),
        text("unit", "Unit of --scale along z, y and x, such as micrometer."),
        text("ome-version", "0.5 or 0.4. [0.5]"),
        click.option(
            "--chunks",
            type=Numbers(example="64 or 1,64,64"),
            help="Elements of a chunk: for all axes, or each. [to 1 MiB]",
        ),
        text("edge", "The last block: keep what is there, trim it, or be exact. [keep]"),
        click.option(
            *("--result-dtype", "dtype"),
            metavar="NAME",
            help="Type of the levels. [by the function and the type of IN]",
        ),
        ROUNDING,
        number("ddof", "What std and var subtract from the number of elements. [0]"),
        NUMERICS,
        text("nan", "propagate or ignore. [propagate]"),
        click.option(
            "--nodata",
            metavar="X",
            type=Numbers(number_of, "0 or -9999.5"),
            help="The value of missing elements.",
        ),
        number("min-count", "Elements that a result needs. [1; 0 for sum]"),
    ],
    THREADS,
)
@click.option("--max-bytes", type=Size(), help="Memory for input and results. [256M]")
def command(source, target, **attributes):
    """Write an array as an OME-Zarr image, with smaller levels of it.

    IN is a .npy file, a TIFF file, or the folder of a zarr array, of any size. OUT is a folder that
    appears when it is complete. Options are the arguments of fastpool.files.pyramid.
    """
    with wrong_input(), progress("reducing") as update:
        fastpool.files.pyramid(source, target, progress=update, **given(attributes))
    import zarr

    image = zarr.open_group(target, mode="r")
    for level in range(attributes["levels"] + 1):
        click.echo(f"{target}/{level}: {described(image[str(level)])}")
