"""`fastpool demo`."""

from pathlib import Path

import click

from .program import Command, needing


@click.command(cls=Command, examples=["fastpool demo", "fastpool demo --output pictures"])
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default="fastpool-demo",
    metavar="DIR",
    help="Folder for the pictures. [fastpool-demo]",
)
def command(output):
    """Pool photographs and the layers of known networks.

    Pools the photographs of scikit-image and all pooling layers of the networks in the onnx package
    through all three interfaces: maxima, means and global means. Checks every value and index, and
    draws before-and-after pictures. A page, science.html, has three examples of science: labels, a
    raster with missing values, a photograph. Exits with 1 if anything differs.
    """
    with needing("the demo", "fastpool[demo]", "onnx", "PIL", "skimage"):
        from .photographs import run
    return run(output)
