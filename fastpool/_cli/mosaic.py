"""`fastpool mosaic`."""

import click

from .program import Command, needing
from .screen import progress


@click.command(cls=Command, examples=["fastpool mosaic mosaic.npy --size 20000    # 1.2 GB"])
@click.argument("target", metavar="OUT.npy", type=click.Path())
@click.option(
    "--size",
    metavar="N",
    type=click.IntRange(min=1),
    default=20000,
    help="Rows and columns of the photograph. [20000]",
)
def command(target, size):
    """Write a large photograph to pool, made of small ones.

    It is made of scikit-image's pictures and written to a .npy file: uint8, layout HWC.
    """
    with needing("the mosaic", "fastpool[demo]", "PIL", "skimage"):
        from . import mosaic_file
    with progress("mosaic") as update:
        mosaic_file.write(target, size, update)
    click.echo(f"{target}: uint8 {size}x{size}x3")
