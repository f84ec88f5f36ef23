"""`python -m fastpool`: the command line."""

import argparse
import sys
from pathlib import Path


def main(arguments=None):
    """Run one command and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m fastpool", description="Exact max pooling on CPUs."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    demo = commands.add_parser(
        "demo",
        help="pool photographs and the layers of known networks, and check every number",
        description="Pool the photographs of scikit-image and the MaxPool layers of the networks "
        "inside the onnx package through all three interfaces, check every value and index, and "
        "draw before-and-after pictures. Exits with 1 if anything differs.",
    )
    demo.add_argument(
        "--output",
        type=Path,
        default=Path("fastpool-demo"),
        metavar="DIR",
        help="folder of the pictures [%(default)s]",
    )
    options = parser.parse_args(arguments)
    try:
        from fastpool import _demo
    except ModuleNotFoundError as missing:
        if missing.name.partition(".")[0] not in ("onnx", "PIL", "skimage"):
            raise
        parser.error(f"the demo needs the package {missing.name!r}: pip install 'fastpool[demo]'")
    return _demo.run(options.output)


if __name__ == "__main__":
    sys.exit(main())
