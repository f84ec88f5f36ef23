"""Resolve the arguments of an average pooling: axes, and what each window is divided by.

A window's divisor is the product of one count per axis: of its taps that lie in a range of places,
which holds the elements and, if padding counts, the padding. Padding is worth 0, so it changes
nothing else.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from . import arguments, borders, geometry
from .dtypes import ITEMSIZE, is_float, limits
from .geometry import (
    AdaptiveAxis,
    Attributes,
    Given,
    GivenSize,
    adaptive_axes,
    check_size,
    declared_ends,
    extent_at,
    pooled_axes,
    replaced,
)
from .plan_checks import (
    FLAG,
    FLOATS,
    INTEGER,
    INTEGERS,
    TEXT,
    check_kinds,
    compare_fields,
    named_plan,
    or_none,
    tuple_of,
)
from .pooled import AXES, GIVEN, Pooled, axes_again

# Taps of a window, so that every divisor is a double. Windows inside of an array have no limit.
_MOST_TAPS = 2**53
# Outputs of an axis whose windows are looked at one by one, for the most taps that one has.
_FEW_OUTPUTS = 4096


@dataclass(frozen=True, eq=False, repr=False)
class AvgPool(Pooled):
    """An average pooling of one geometry, as data. `fastpool.AvgPoolPlan` documents the fields."""

    input_shape: tuple
    dtype: str
    result_dtype: str
    layout: str
    axes: tuple
    batch: int
    channels: int
    channels_last: bool
    output_shape: tuple
    count_include_pad: bool
    beyond: str
    counted: tuple | None
    divisor: int | None
    rounding: str
    numerics: str
    nan: str
    activation: str | None
    activation_params: tuple
    num_threads: int | None
    given: Given | GivenSize | None = field(default=None, compare=False)
    borders: tuple = ()

    def __post_init__(self):
        check_fields(self)

    @property
    def output_bytes(self):
        """Bytes of the result of one window."""
        return ITEMSIZE[self.result_dtype]

    def result_dtypes(self, dtype):
        """Return the dtype object of the result, for an array of `dtype`, in a tuple."""
        same = self.result_dtype == self.dtype  # that of bfloat16 comes from a package
        return (dtype.newbyteorder("=") if same else np.dtype(self.result_dtype),)

    def in_part(self, read):
        """Return the fields that locate the part which takes the slices `read` of x."""
        if self.counted is None:
            return {}
        if self.count_include_pad:
            return {"counted": counted_in_part(self, read)}
        spans = (read[place] for place in self.spatial)
        return {"counted": tuple((0, stop - start) for start, stop in spans)}


def resolve(
    input_shape,
    dtype,
    kernel_shape,
    strides=None,
    pads=None,
    dilations=None,
    auto_pad=None,
    ceil_mode=None,
    ceil_rule=None,
    count_include_pad=None,
    beyond=None,
    divisor=None,
    result_dtype=None,
    rounding=None,
    numerics=None,
    nan=None,
    layout=None,
    activation=None,
    activation_params=None,
    num_threads=None,
    border=None,
    border_value=None,
    name="dtype",  # of result_dtype, in errors
):
    """Check attributes as the public function takes them; return the fields of a plan as a dict."""
    shape = arguments.input_shape(input_shape)
    order = geometry.layout(layout, shape)
    attributes = Attributes(kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule)
    axes, given = pooled_axes(shape, order, attributes)
    count_include_pad = arguments.count_include_pad(count_include_pad)
    beyond = arguments.beyond(beyond)
    resolved = borders.resolve(border, border_value, shape, axes, given, dtype)
    if resolved and count_include_pad:
        raise ValueError("count_include_pad: expected False with a border, whose padding counts")
    zeros = all(border.mode == "constant" and border.value == 0 for border in resolved)
    if resolved and zeros and nan != "ignore":  # (which would leave out padding next to NaN alone)
        resolved, count_include_pad = (), True  # zeros are what padding is worth
    counted = counted_places(axes, given, count_include_pad or bool(resolved), beyond)
    rules = count_include_pad, beyond, counted, arguments.divisor(divisor)
    values = result_dtype, rounding, numerics, nan, activation, activation_params, num_threads
    return _fields(shape, dtype, order, axes, given, rules, values, name, resolved)


def resolve_global(input_shape, dtype, layout=None, *values, name="dtype"):
    """Return the fields of a plan whose window is all of the spatial axes.

    `values` are result_dtype, rounding, numerics, nan and num_threads.
    """
    shape = arguments.input_shape(input_shape)
    order = geometry.layout(layout, shape)
    axes, given = pooled_axes(shape, order, Attributes(geometry.whole_window(shape, order)))
    return _without_padding(shape, dtype, order, axes, given, values, name)


def resolve_adaptive(input_shape, dtype, output_size, layout=None, *values, name="dtype"):
    """Return the fields of a plan for an output size; `values` are those of `resolve_global`."""
    shape = arguments.input_shape(input_shape)
    order = geometry.layout(layout, shape)
    axes, given = adaptive_axes(shape, order, output_size)
    return _without_padding(shape, dtype, order, axes, given, values, name)


def _without_padding(shape, dtype, order, axes, given, values, name):
    *values, num_threads = values
    rules = False, "drop", counted_places(axes, given, False, "drop"), None
    return _fields(shape, dtype, order, axes, given, rules, (*values, None, (), num_threads), name)


def _fields(shape, dtype, order, axes, given, rules, values, name, of_padding=()):
    """Return the fields of a plan.

    `rules` say what each window is divided by, `values` what becomes of the quotient, and `name`
    what errors call its type. If a result or an array would not fit, raise ValueError.
    """
    result_dtype, rounding, numerics, nan, activation, params, num_threads = values
    count_include_pad, beyond, counted, divisor = rules
    dtype = arguments.dtype_name(dtype)
    result_dtype = arguments.result_dtype(result_dtype, dtype, name)
    activation, params = arguments.activation(activation, params, result_dtype)
    output = replaced(shape, order, [axis.output for axis in axes])
    check_size("input_shape", shape, ITEMSIZE[dtype])
    check_size("output", output, max(8, ITEMSIZE[result_dtype]))
    taps = math.prod(axis.kernel for axis in axes)
    if taps > _MOST_TAPS and any(axis.kernel > axis.size for axis in axes):
        raise ValueError(
            f"kernel_shape: expected a product of at most 2**53, got {taps} taps: "
            f"{tuple(axis.kernel for axis in axes)}"
        )
    rounding = arguments.rounding(rounding, result_dtype)
    if not is_float(result_dtype) and ITEMSIZE[result_dtype] < 8:
        windows, places = axes, counted
        if of_padding:  # what stands there may be the greatest element
            windows = [*map(borders.padded, axes, of_padding)]
            places = counted and [(0, axis.size) for axis in windows]
        _check_range(dtype, result_dtype, rounding, windows, places, divisor, name)
    return {
        "input_shape": shape,
        "dtype": dtype,
        "result_dtype": result_dtype,
        "layout": order.name,
        "axes": axes,
        "batch": extent_at(shape, order.batch_axis),
        "channels": extent_at(shape, order.channel_axis),
        "channels_last": order.channels_last,
        "output_shape": output,
        "count_include_pad": count_include_pad,
        "beyond": beyond,
        "counted": counted,
        "divisor": divisor,
        "rounding": rounding,
        "numerics": arguments.numerics(numerics),
        "nan": arguments.nan(nan),
        "activation": activation,
        "activation_params": params,
        "num_threads": arguments.num_threads(num_threads),
        "given": given,
        "borders": of_padding,
    }


# --------------------------------------------------------------------------------------- divisors


def counted_places(axes, given, count_include_pad, beyond):
    """Return the range of places that count along each axis, or None if all do."""
    if not count_include_pad:
        return tuple((0, axis.size) for axis in axes)
    if beyond == "count":
        return None
    ends = zip(axes, declared_ends(axes, given), strict=True)
    return tuple((-axis.begin, axis.size + end) for axis, end in ends)


def counted_in_part(plan, read):
    """Return `counted` of a part of a plan, which takes the slices `read` of the input."""
    starts = (read[place][0] for place in plan.spatial)
    pairs = zip(plan.counted, starts, strict=True)
    return tuple((first - start, stop - start) for (first, stop), start in pairs)


def count(axis, places, output):
    """Return how many taps of an output lie in `places`: (first, stop), or None for any place."""
    if isinstance(axis, AdaptiveAxis):
        first, stop = axis.window(output)
        return stop - first
    if places is None:
        return axis.kernel
    start = output * axis.stride - axis.begin
    first, stop = (-(-(place - start) // axis.dilation) for place in places)
    return max(0, min(axis.kernel, stop) - max(0, first))


def _largest_share(axis, places, divisor):
    """Return the most elements of a window per tap that counts, or if there is a divisor, per tap.

    Of a great many windows it is an upper bound.
    """
    most = 1 if divisor is None else min(axis.kernel, -(-axis.size // axis.dilation))
    if axis.output > _FEW_OUTPUTS:
        return most
    elements = [count(axis, (0, axis.size), output) for output in range(axis.output)]
    if divisor is not None:
        return max(elements, default=0)
    from fractions import Fraction  # here, so that importing fastpool stays fast

    counts = (count(axis, places, output) for output in range(axis.output))
    pairs = set(zip(elements, counts, strict=True))  # (a few: a Fraction takes microseconds)
    return max((Fraction(taps, total) for taps, total in pairs if taps), default=0)


def _check_range(dtype, result_dtype, rounding, axes, counted, divisor, name):
    """Raise ValueError unless the result of every window fits its type, whatever the input."""
    low, high = limits(result_dtype)
    least, greatest = limits(dtype)
    if divisor is None and low <= least and greatest <= high:
        return  # no mean is outside of the values, or of 0
    from fractions import Fraction

    places = counted or [None] * len(axes)
    shares = (_largest_share(axis, at, divisor) for axis, at in zip(axes, places, strict=True))
    share = Fraction(math.prod(shares)) / (divisor or 1)
    extremes = [rounded(share * x, rounding) for x in (least, greatest)]
    if min(extremes) < low or max(extremes) > high:
        by = "" if divisor is None else f" and a divisor of {divisor}"
        raise ValueError(
            f"{name}: {result_dtype} does not hold {min(extremes)} to {max(extremes)}, which "
            f"elements of type {dtype}{by} can give"
        )


def rounded(value, rounding):
    """Return a Fraction as an int by one of the rules for integers."""
    floor = math.floor(value)
    if rounding == "floor":
        return floor
    if rounding == "trunc":
        return math.trunc(value)
    if rounding == "half_away":
        away = (2 * abs(value) + 1) // 2
        return away if value > 0 else -away
    return round(value)


# ----------------------------------------------------------------------------------------- checks


# What each field of an `AvgPool` may be.
_KINDS = {
    **dict.fromkeys(("input_shape", "output_shape"), INTEGERS),
    **dict.fromkeys(("dtype", "result_dtype", "layout"), TEXT),
    **dict.fromkeys(("beyond", "rounding", "numerics", "nan"), TEXT),
    **dict.fromkeys(("batch", "channels"), INTEGER),
    **dict.fromkeys(("channels_last", "count_include_pad"), FLAG),
    **dict.fromkeys(("divisor", "num_threads"), or_none(INTEGER)),
    "counted": or_none(tuple_of("a tuple of pairs of ints", INTEGERS)),
    "axes": AXES,
    "activation": or_none(TEXT),
    "activation_params": FLOATS,
    "given": GIVEN,
    "borders": borders.BORDERS,
}


def check_fields(plan):
    """Raise unless each field of a plan is what `resolve` makes of the others."""
    check_kinds(plan, _KINDS)
    with named_plan():
        shape = arguments.input_shape(plan.input_shape)
        order = geometry.layout(plan.layout, shape)
        axes = axes_again(plan, order)
        beyond = arguments.beyond(plan.beyond)
        include = plan.count_include_pad or bool(plan.borders)
        counted = counted_again(plan, axes, include, beyond)
        rules = plan.count_include_pad, beyond, counted, arguments.divisor(plan.divisor)
        values = plan.result_dtype, plan.rounding, plan.numerics, plan.nan
        values = *values, plan.activation, plan.activation_params, plan.num_threads
        more = plan.given, rules, values, "result_dtype", borders.again(plan, axes)
        expected = _fields(shape, plan.dtype, order, axes, *more)
        compare_fields(plan, expected)


def counted_again(plan, axes, include, beyond):
    """Return `counted` of a plan, resolved again, or checked if the plan is that of a tile."""
    if isinstance(plan.given, Given) or not include or beyond == "count":
        return counted_places(axes, plan.given, include, beyond)
    fits = plan.counted is not None and len(plan.counted) == len(axes)
    if not fits or plan.given is not None or {*map(len, plan.counted)} != {2}:
        raise ValueError(f"counted {plan.counted} does not fit axes {axes}")
    for axis, (first, stop) in zip(axes, plan.counted, strict=True):
        if first > 0 or stop < axis.size:
            raise ValueError(f"counted {plan.counted} leaves out elements of {axis}")
    return plan.counted
