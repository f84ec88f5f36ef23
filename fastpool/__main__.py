"""`python -m fastpool`: the command line."""

import argparse
import sys
from functools import partial
from pathlib import Path

from fastpool import _files_command as files
from fastpool.bench import command as bench


def main(arguments=None):
    """Run one command and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m fastpool", description="Exact max pooling on CPUs."
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    _add_demo(commands)
    bench.add_parser(commands)
    files.add_parsers(commands)
    options = parser.parse_args(arguments)
    return options.run(options)


def _add_demo(commands):
    demo = commands.add_parser(
        "demo",
        help="pool photographs and the layers of known networks, and check every number",
        description="Pool the photographs of scikit-image and the MaxPool layers of the networks "
        "inside the onnx package through all three interfaces, check every value and index, and "
        "draw before-and-after pictures. Exits with 1 if anything differs.",
    )
    demo.set_defaults(run=partial(_run_demo, demo.error))
    demo.add_argument(
        "--output",
        type=Path,
        default=Path("fastpool-demo"),
        metavar="DIR",
        help="folder of the pictures [%(default)s]",
    )


def _run_demo(error, options):
    try:
        from fastpool import _demo
    except ModuleNotFoundError as missing:
        if missing.name.partition(".")[0] not in ("onnx", "PIL", "skimage"):
            raise
        error(f"the demo needs the package {missing.name!r}: pip install 'fastpool[demo]'")
    return _demo.run(options.output)


if __name__ == "__main__":
    sys.exit(main())
