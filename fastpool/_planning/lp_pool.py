"""Resolve the arguments of an Lp pooling: axes, the order of the norm, and the taps that count.

Padding is worth 0, so it adds nothing. With `partial` "scale", the sum of a window that reaches
past the padding at the end is multiplied by the taps of the window over those that count: taps on
elements and on padding.
"""

import math
from dataclasses import dataclass, field

from . import arguments, geometry
from .average_pool import count, counted_again, counted_in_part, counted_places
from .dtypes import FLOATS, ITEMSIZE
from .geometry import Attributes, Axis, Given, check_size, extent_at, pooled_axes, replaced
from .plan_checks import (
    FLAG,
    FLOAT,
    INTEGER,
    INTEGERS,
    TEXT,
    check_kinds,
    compare_fields,
    named_plan,
    or_none,
    record_of,
    tuple_of,
)
from .pooled import Pooled, axes_again


@dataclass(frozen=True, eq=False, repr=False)
class LpPool(Pooled):
    """An Lp pooling of one geometry, as data. `fastpool.LpPoolPlan` documents the fields."""

    input_shape: tuple
    dtype: str
    layout: str
    axes: tuple
    batch: int
    channels: int
    channels_last: bool
    output_shape: tuple
    p: float
    partial: str
    counted: tuple | None
    nan: str
    num_threads: int | None
    given: Given | None = field(default=None, compare=False)

    def __post_init__(self):
        check_fields(self)

    @property
    def output_bytes(self):
        """Bytes of the result of one window."""
        return ITEMSIZE[self.dtype]

    def result_dtypes(self, dtype):
        """Return the dtype object of the result, for an array of `dtype`, in a tuple."""
        return (dtype.newbyteorder("="),)

    def in_part(self, read):
        """Return the fields that locate the part which takes the slices `read` of x."""
        return {} if self.counted is None else {"counted": counted_in_part(self, read)}

    @property
    def counted_last(self):
        """The taps that count in the last window along each axis; in all others, all taps do.

        1 if none does. Such a window has no elements, so its scale does not matter.
        """
        places = self.counted or [None] * len(self.axes)
        pairs = zip(self.axes, places, strict=True)
        return tuple(max(1, count(axis, at, axis.output - 1)) for axis, at in pairs)

    @property
    def is_scaled(self):
        """Is the sum of some window scaled?"""
        return self.p < math.inf and self.counted_last != self.kernel_shape


def resolve(
    input_shape,
    dtype,
    kernel_shape,
    p=None,
    strides=None,
    pads=None,
    dilations=None,
    auto_pad=None,
    ceil_mode=None,
    ceil_rule=None,
    partial=None,
    nan=None,
    layout=None,
    num_threads=None,
):
    """Check attributes as the public function takes them; return the fields of a plan as a dict."""
    shape = arguments.input_shape(input_shape)
    order = geometry.layout(layout, shape)
    attributes = Attributes(kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule)
    axes, given = pooled_axes(shape, order, attributes)
    partial = arguments.partial(partial)
    counted = counted_places(axes, given, True, "drop") if partial == "scale" else None
    return _fields(shape, dtype, order, axes, given, (p, partial, counted, nan, num_threads))


def resolve_global(input_shape, dtype, p=None, layout=None, nan=None, num_threads=None):
    """Return the fields of a plan whose window is all of the spatial axes."""
    shape = arguments.input_shape(input_shape)
    order = geometry.layout(layout, shape)
    axes, given = pooled_axes(shape, order, Attributes(geometry.whole_window(shape, order)))
    return _fields(shape, dtype, order, axes, given, (p, "sum", None, nan, num_threads))


def _fields(shape, dtype, order, axes, given, values):
    p, partial, counted, nan, num_threads = values
    dtype = arguments.dtype_name(dtype, allowed=FLOATS)
    output = replaced(shape, order, [axis.output for axis in axes])
    check_size("input_shape", shape, ITEMSIZE[dtype])
    check_size("output", output, 8)
    return {
        "input_shape": shape,
        "dtype": dtype,
        "layout": order.name,
        "axes": axes,
        "batch": extent_at(shape, order.batch_axis),
        "channels": extent_at(shape, order.channel_axis),
        "channels_last": order.channels_last,
        "output_shape": output,
        "p": arguments.p(p),
        "partial": partial,
        "counted": counted,
        "nan": arguments.nan(nan),
        "num_threads": arguments.num_threads(num_threads),
        "given": given,
    }


# What each field of an `LpPool` may be.
_KINDS = {
    **dict.fromkeys(("input_shape", "output_shape"), INTEGERS),
    **dict.fromkeys(("dtype", "layout", "partial", "nan"), TEXT),
    **dict.fromkeys(("batch", "channels"), INTEGER),
    "channels_last": FLAG,
    "p": FLOAT,
    "num_threads": or_none(INTEGER),
    "counted": or_none(tuple_of("a tuple of pairs of ints", INTEGERS)),
    "axes": tuple_of("a tuple of Axis", record_of(Axis, *[INTEGER] * len(Axis._fields))),
    "given": or_none(record_of(Given, INTEGERS, TEXT, FLAG, TEXT)),
}


def check_fields(plan):
    """Raise unless each field of a plan is what `resolve` makes of the others."""
    check_kinds(plan, _KINDS)
    with named_plan():
        shape = arguments.input_shape(plan.input_shape)
        order = geometry.layout(plan.layout, shape)
        axes = axes_again(plan, order)
        partial, counted = arguments.partial(plan.partial), None
        if partial == "scale":
            counted = counted_again(plan, axes, True, "drop")
        values = plan.p, partial, counted, plan.nan, plan.num_threads
        compare_fields(plan, _fields(shape, plan.dtype, order, axes, plan.given, values))
