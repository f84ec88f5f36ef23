"""Resolve the arguments of a max or min pooling: extents, padding, positions of axes."""

from dataclasses import dataclass, field

import numpy as np

from . import arguments, borders, geometry
from .dtypes import INDEX_BYTES, ITEMSIZE, highest, lowest
from .geometry import (
    Attributes,
    Given,
    GivenSize,
    adaptive_axes,
    check_size,
    extent_at,
    pooled_axes,
    replaced,
)
from .indexing import check_index_size, index_rules
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
)
from .pooled import AXES, GIVEN, Pooled, axes_again


@dataclass(frozen=True, eq=False, repr=False)
class MaxPool(Pooled):
    """A max pooling of one geometry, as data. `fastpool.MaxPoolPlan` documents the fields."""

    minimum = False

    input_shape: tuple
    dtype: str
    layout: str
    axes: tuple
    batch: int
    channels: int
    channels_last: bool
    output_shape: tuple
    nan: str
    activation: str | None
    activation_params: tuple
    return_indices: bool
    storage_order: int
    index_axis: int
    index_dtype: str
    index_layout: str
    num_threads: int | None
    index_shape: tuple
    index_origin: tuple
    given: Given | GivenSize | None = field(default=None, compare=False)
    borders: tuple = ()

    def __post_init__(self):
        check_fields(self)

    @property
    def of_nothing(self):
        """The result of a window without elements."""
        return highest(self.dtype) if self.minimum else lowest(self.dtype)

    @property
    def output_bytes(self):
        """Bytes of the results of one window."""
        index = INDEX_BYTES[self.index_dtype] if self.return_indices else 0
        return ITEMSIZE[self.dtype] + index

    def result_dtypes(self, dtype):
        """Return the dtype object of each result, for an array of `dtype`."""
        native = dtype.newbyteorder("=")
        return (native, np.dtype(self.index_dtype)) if self.return_indices else (native,)

    def in_part(self, read):
        """Return the fields that locate the part which takes the slices `read` of x."""
        origin = zip(self.index_origin, read, strict=True)
        return {"index_origin": tuple(at + start for at, (start, _) in origin)}


class MinPool(MaxPool):
    """A min pooling of one geometry, as data: a max pooling of elements in the opposite order."""

    minimum = True


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
    layout=None,
    nan=None,
    activation=None,
    activation_params=None,
    return_indices=None,
    storage_order=None,
    index_axis=None,
    index_dtype=None,
    index_layout=None,
    num_threads=None,
    border=None,
    border_value=None,
):
    """Check attributes as the public function takes them; return the fields of a plan as a dict."""
    shape = arguments.input_shape(input_shape)
    order = geometry.layout(layout, shape)
    attributes = Attributes(kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule)
    windows = pooled_axes(shape, order, attributes)
    indices = return_indices, storage_order, index_axis, index_dtype, index_layout
    values = nan, activation, activation_params, num_threads
    fields = _fields(shape, dtype, order, windows, indices, values)
    fields["borders"] = borders.resolve(border, border_value, shape, *windows, fields["dtype"])
    return fields


def resolve_global(input_shape, dtype, layout=None, nan=None, *more):
    """Return the fields of a plan whose window is all of the spatial axes.

    `more` are return_indices, index_axis, index_dtype, index_layout and num_threads.
    """
    shape = arguments.input_shape(input_shape)
    order = geometry.layout(layout, shape)
    windows = pooled_axes(shape, order, Attributes(geometry.whole_window(shape, order)))
    return _without_padding(shape, dtype, order, windows, nan, *more)


def resolve_adaptive(input_shape, dtype, output_size, layout=None, nan=None, *more):
    """Return the fields of a plan for an output size; `more` are those of `resolve_global`."""
    shape = arguments.input_shape(input_shape)
    order = geometry.layout(layout, shape)
    windows = adaptive_axes(shape, order, output_size)
    return _without_padding(shape, dtype, order, windows, nan, *more)


def _without_padding(shape, dtype, order, windows, nan, *more):
    return_indices, index_axis, index_dtype, index_layout, num_threads = more
    indices = return_indices, None, index_axis, index_dtype, index_layout
    return _fields(shape, dtype, order, windows, indices, (nan, None, (), num_threads))


def _fields(shape, dtype, order, windows, indices, values):
    """Return the fields of a plan; `windows` are the axes, and what they were resolved from."""
    axes, given = windows
    return_indices, storage_order, index_axis, index_dtype, index_layout = indices
    nan, activation, activation_params, num_threads = values
    dtype = arguments.dtype_name(dtype)
    activation, activation_params = arguments.activation(activation, activation_params, dtype)
    return_indices = arguments.return_indices(return_indices)
    index_dtype = arguments.index_dtype(index_dtype)
    rules = index_rules(shape, order, storage_order, index_axis, index_layout)
    return {
        **_resolved(shape, dtype, order, axes, rules, index_dtype, return_indices, shape),
        "nan": arguments.nan(nan),
        "activation": activation,
        "activation_params": activation_params,
        "num_threads": arguments.num_threads(num_threads),
        "index_origin": (0,) * len(shape),
        "given": given,
        "borders": (),
    }


def _resolved(shape, dtype, order, axes, rules, index_dtype, return_indices, index_shape):
    """Return the fields of a plan that follow from its shapes, layout, axes and `index_rules`.

    If an array would exceed any memory, or an index would exceed its type, raise ValueError.
    """
    output = replaced(shape, order, [axis.output for axis in axes])
    storage_order, index_axis, index_layout = rules
    itemsize = ITEMSIZE[dtype]
    check_size("input_shape", shape, itemsize)
    check_size("index_shape", index_shape, 1)
    check_size("output", output, max(itemsize, 8) if return_indices else itemsize)
    if return_indices and index_dtype == "int32":
        check_index_size(index_shape, order, index_axis, index_layout)
    return {
        "input_shape": shape,
        "dtype": dtype,
        "layout": order.name,
        "axes": axes,
        "batch": extent_at(shape, order.batch_axis),
        "channels": extent_at(shape, order.channel_axis),
        "channels_last": order.channels_last,
        "output_shape": output,
        "return_indices": return_indices,
        "storage_order": storage_order,
        "index_axis": index_axis,
        "index_dtype": index_dtype,
        "index_layout": index_layout,
        "index_shape": index_shape,
    }


# What each field of a `MaxPool` may be.
_KINDS = {
    **dict.fromkeys(("input_shape", "output_shape", "index_shape", "index_origin"), INTEGERS),
    **dict.fromkeys(("dtype", "layout", "nan", "index_dtype", "index_layout"), TEXT),
    **dict.fromkeys(("batch", "channels", "storage_order", "index_axis"), INTEGER),
    **dict.fromkeys(("channels_last", "return_indices"), FLAG),
    "axes": AXES,
    "activation": or_none(TEXT),
    "activation_params": FLOATS,
    "num_threads": or_none(INTEGER),
    "given": GIVEN,
    "borders": borders.BORDERS,
}


def check_fields(plan):
    """Raise unless each field of a plan is what `resolve` makes of the others.

    Fields are resolved again, because no list of contradictions would be complete.
    """
    check_kinds(plan, _KINDS)
    with named_plan():
        shape = arguments.input_shape(plan.input_shape)
        order = geometry.layout(plan.layout, shape)
        dtype = arguments.dtype_name(plan.dtype)
        activation, params = arguments.activation(plan.activation, plan.activation_params, dtype)
        index_dtype = arguments.index_dtype(plan.index_dtype)
        rules = plan.storage_order, plan.index_axis, plan.index_layout
        rules = index_rules(shape, order, *rules)
        more = rules, index_dtype, plan.return_indices, plan.index_shape
        axes = axes_again(plan, order)
        counted = plan.index_shape, plan.index_origin
        if {*map(len, counted)} != {len(shape)} or not all(
            0 <= start <= extent - size for size, extent, start in zip(shape, *counted, strict=True)
        ):
            raise ValueError(
                f"indices in index_shape {counted[0]} from index_origin {counted[1]} on do not fit "
                f"input_shape {shape}"
            )
        compare_fields(
            plan,
            {
                "nan": arguments.nan(plan.nan),
                "activation": activation,
                "activation_params": params,
                "num_threads": arguments.num_threads(plan.num_threads),
                "borders": borders.again(plan, axes),
                **_resolved(shape, dtype, order, axes, *more),
            },
        )
