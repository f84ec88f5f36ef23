"""Options that several commands share, and the types of their values.

Options that are not given are not passed on. The library checks their values.
"""

import inspect
from pathlib import Path

import click

from .program import needing

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Numbers(click.ParamType):
    """A parameter type: one number, or several with commas in between, as a tuple."""

    name = "N,..."

    def __init__(self, kind=int, example="3 or 3,3", word=None):
        """Take the text `word` too, as it is."""
        self.kind, self.example, self.word = kind, example, word

    def convert(self, value, param, ctx):
        if not isinstance(value, str) or value == self.word:
            return value
        try:
            numbers = tuple(map(self.kind, value.split(",")))
        except ValueError:
            self.fail(f"expected {self.example}, got {value!r}", param, ctx)
        return numbers if "," in value else numbers[0]


class Size(click.ParamType):
    """A parameter type: a number of bytes."""

    name = "SIZE"

    def convert(self, value, param, ctx):
        if isinstance(value, int):
            return value
        number, unit = (value[:-1], value[-1].upper()) if value[-1:].isalpha() else (value, "")
        if unit not in UNITS or not number.isdecimal():
            self.fail(f"expected bytes, as 100000, 64K, 256M or 2G, got {value!r}", param, ctx)
        return int(number) * UNITS[unit]


class Written(click.Path):
    """A file that is written at the end. If that is impossible, it fails before the long work."""

    def __init__(self, *endings):
        super().__init__(path_type=Path, dir_okay=False, writable=True)
        self.endings = endings

    def convert(self, value, param, ctx):
        path = super().convert(value, param, ctx)
        if not path.absolute().parent.is_dir():
            self.fail(f"there is no folder {str(path.parent)!r}", param, ctx)
        if self.endings and path.suffix not in self.endings:
            what = " or ".join(self.endings)
            self.fail(f"expected a name that ends in {what}, got {str(path)!r}", param, ctx)
        return path


class Picture(Written):
    """A picture that is drawn at the end."""

    def convert(self, value, param, ctx):
        path = super().convert(value, param, ctx)
        with needing("a picture", "fastpool[plot]", "matplotlib"):
            import matplotlib  # noqa: F401
        return path


def text(name, help):
    return click.option(f"--{name}", metavar="NAME", help=help)


def number(name, help):
    return click.option(f"--{name}", metavar="N", type=int, help=help)


# What is computed, and the functions and arguments that it has in fastpool.
OPS = ("max", "min", "avg", "lp", "global-max", "global-min", "global-avg", "global-lp")
OPS += ("adaptive-max", "adaptive-min", "adaptive-avg")
OP = [
    click.option(
        "--op",
        type=click.Choice(OPS),
        metavar="NAME",
        default="max",
        help="max, min, avg or lp; global-max, global-min, global-avg or global-lp; adaptive-max, "
        "adaptive-min or adaptive-avg. [max]",
    ),
]
# The attributes of windows and arrays, in order.
WINDOW = [
    click.option(
        *("--kernel-shape", "--kernel"),
        type=Numbers(),
        help="Taps of a window: one number for all spatial axes, or one for each, as 3,3.",
    ),
    click.option(
        "--output-size",
        type=Numbers(),
        help="Windows of an adaptive op: one number for all spatial axes, or one for each.",
    ),
    click.option(
        "--strides",
        type=Numbers(example="window, 3 or 3,3", word="window"),
        help="Elements between windows; window: those of one. [1]",
    ),
    click.option(
        "--pads",
        type=Numbers(),
        help="Padding: for all sides, for each axis, or all begins and then all ends. [0]",
    ),
    click.option("--dilations", type=Numbers(), help="Elements between taps. [1]"),
    text("auto-pad", "NOTSET, VALID, SAME_UPPER or SAME_LOWER. [NOTSET]"),
    click.option("--ceil-mode", is_flag=True, help="Round the number of windows up."),
    text("ceil-rule", "Drop a window that starts in the end padding (clip), or keep. [clip]"),
    click.option(
        "--layout",
        metavar="AXES",
        help="Axes: HW, HWC, NCDHW and so on; NCHW and NHWC for any rank. [NCHW]",
    ),
    text("nan", "propagate or ignore. [propagate]"),
]
AVERAGE = [
    click.option("--count-include-pad", is_flag=True, help="Padding counts for the divisor."),
    text("beyond", "Taps past the end padding then do not count (drop), or do (count). [drop]"),
    number("divisor", "What sums are divided by, whatever the window holds."),
    text("rounding", "half_even, half_away, trunc or floor, of integers. [half_even]"),
    text("numerics", "pairwise, exact or sequential (the bits of other libraries). [pairwise]"),
]
NORM = [
    click.option("--p", metavar="X", type=float, help="The order of a norm, inf too. [2]"),
    text("partial", "Norms of windows that reach past the end: sum, or scale. [sum]"),
]
INDICES = [
    number("storage-order", "Indices count rows (0) or columns (1) of a plane first. [0]"),
    number("index-axis", "Indices count within the axes from this one on. [0]"),
    text("index-dtype", "int64 or int32. [int64]"),
    text("index-layout", "NCHW or NHWC, if the channels come last. [NCHW]"),
]
ACTIVATION = [
    text("activation", "Relu, Clip, LeakyRelu, HardSigmoid, Tanh, Sigmoid or Silu."),
    click.option(
        "--activation-params",
        metavar="X,...",
        type=Numbers(float, "0.1 or 0,6"),
        help="Parameters of the activation.",
    ),
]
THREADS = [number("num-threads", "Number of threads. [as `fastpool info` shows]")]


def with_options(*groups):
    """Return a decorator that adds all of these options to a command."""

    def decorate(function):
        for group in reversed(groups):
            for option in reversed(group):
                function = option(function)
        return function

    return decorate


def given(options):
    """Return the options that were given; those of flags are then True."""
    return {
        name: value for name, value in options.items() if value is not None and value is not False
    }


def function_name(op):
    """Return the name that the functions of `op` have in every module."""
    return f"{op.replace('-', '_')}_pool"


def check_op(op, function, options):
    """Raise unless `function`, which computes `op`, takes these options, and has what it needs.

    `indices` is a file for what it writes into its argument `out_indices`.
    """
    known = {*inspect.signature(function).parameters}
    known |= {"indices"} if "out_indices" in known else set()
    for name in options:
        if name not in known:
            raise ValueError(f"{name}: has no meaning with --op {op}")
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name
        if name in ("kernel_shape", "output_size") and name in known and name not in options:
            raise click.MissingParameter(ctx=context, param=parameter)
