"""`python -m fastpool pool` and `mosaic`: their options, and what they start."""

import argparse
import sys
import time
from contextlib import contextmanager
from functools import partial

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
# An interrupted program's status, as shells have it.
INTERRUPTED = 130


def add_parsers(commands):
    """Add the commands to those of `python -m fastpool`."""
    pool = commands.add_parser(
        "pool",
        help="pool an array in a .npy file that need not fit into memory",
        description="Pool the array in a .npy file into another, in little memory. Attributes are "
        "those of fastpool.max_pool; one number stands for all spatial axes, others are given as "
        "3,3. Exits with 2 if something asked for is wrong, with 1 if a file cannot be written.",
        argument_default=argparse.SUPPRESS,
    )
    pool.set_defaults(run=partial(_run, _pool))
    pool.add_argument("source", metavar="IN.npy", help="the input")
    pool.add_argument("target", metavar="OUT.npy", help="takes the maxima")
    pool.add_argument("--indices", metavar="FILE", help="takes the index of every maximum")
    counts = {"metavar": "N[,N...]", "type": _counts}
    pool.add_argument("--kernel-shape", required=True, **counts, help="(--kernel will do)")
    for name in ("strides", "pads", "dilations"):
        pool.add_argument(f"--{name}", **counts)
    pool.add_argument("--layout", help='the axes of the array: "HW", "NHWC" and so on [NCHW]')
    pool.add_argument("--ceil-mode", action="store_true")
    for name in ("auto-pad", "ceil-rule", "nan", "index-dtype", "index-layout"):
        pool.add_argument(f"--{name}", metavar="NAME")
    for name in ("storage-order", "index-axis", "num-threads"):
        pool.add_argument(f"--{name}", metavar="N", type=int)
    size = "memory for input and results at a time [256M]"
    pool.add_argument("--max-bytes", metavar="SIZE", type=_size, help=size)

    mosaic = commands.add_parser(
        "mosaic",
        help="write a photograph of any size, made of scikit-image's pictures, to a .npy file",
        description="Write a photograph made of small photographs: uint8, of the layout HWC.",
    )
    mosaic.set_defaults(run=partial(_run, _mosaic))
    mosaic.add_argument("target", metavar="OUT.npy")
    mosaic.add_argument(
        "--size", type=int, default=20000, help="its rows and columns [%(default)s]"
    )


def _counts(text):
    """An int, or several with commas between them; what is wrong with these the plan will say."""
    try:
        numbers = [int(number) for number in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected 3 or 3,3, got {text!r}") from None
    return numbers if "," in text else numbers[0]


def _size(text):
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if unit not in UNITS or not number.isdecimal():
        raise argparse.ArgumentTypeError(
            f"expected bytes, as 100000, 64K, 256M or 2G, got {text!r}"
        )
    return int(number) * UNITS[unit]


def _run(command, options):
    """The exit status; what goes wrong is one line."""
    arguments = {name: value for name, value in vars(options).items() if name != "run"}
    start = time.perf_counter()
    try:
        shape, dtype = command(**arguments)
    except (TypeError, ValueError, ModuleNotFoundError) as error:
        return _say(error, 2)
    except (OSError, MemoryError) as error:
        return _say(error, 1)
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    seconds = time.perf_counter() - start
    print(f"{arguments['target']}: {dtype} {'x'.join(map(str, shape))}, {seconds:.1f} s")
    return 0


def _say(message, status):
    print(f"python -m fastpool: {message}", file=sys.stderr)
    return status


def _pool(source, target, **options):
    from . import files

    with _progress("pooling") as progress:
        plan = files.max_pool(source, target, **options, progress=progress)
    return plan.output_shape, plan.dtype


def _mosaic(target, size):
    if size < 1:
        raise ValueError(f"--size: expected a number of at least 1, got {size}")
    try:
        from . import _mosaic
    except ModuleNotFoundError as missing:
        if missing.name.partition(".")[0] not in ("PIL", "skimage"):
            raise
        raise ModuleNotFoundError(
            f"the mosaic needs the package {missing.name!r}: pip install 'fastpool[demo]'"
        ) from None
    with _progress("mosaic") as progress:
        _mosaic.write(target, size, progress)
    return (size, size, 3), "uint8"


@contextmanager
def _progress(title):
    """What to call with the number of things done and of all; a bar if there is a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, every: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ModuleNotFoundError:
        _say("no progress bar: pip install 'fastpool[cli]'", 0)
        yield lambda done, every: None
        return
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(title)
        yield lambda done, every: bar.update(task, completed=done, total=every)
