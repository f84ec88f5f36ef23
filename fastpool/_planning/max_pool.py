"""Resolve the arguments of a max pooling to integers: extents, padding, positions of axes."""

from dataclasses import dataclass, field

from . import arguments, geometry
from .checks import (
    FLAG,
    FLOATS,
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
from .dtypes import ITEMSIZE
from .geometry import (
    Attributes,
    Axis,
    Given,
    check_size,
    extent_at,
    padded_axis,
    pooled_axes,
    replaced,
)
from .indexing import check_index_size, index_rules


@dataclass(frozen=True)
class MaxPool:
    """A max pooling of one geometry, as data. `fastpool.MaxPoolPlan` documents the fields."""

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
    given: Given | None = field(default=None, compare=False)

    def __post_init__(self):
        check_fields(self)

    @property
    def kernel_shape(self):
        return tuple(axis.kernel for axis in self.axes)

    @property
    def strides(self):
        return tuple(axis.stride for axis in self.axes)

    @property
    def dilations(self):
        return tuple(axis.dilation for axis in self.axes)

    @property
    def pads(self):
        """All begins and then all ends, as used: with these a floor rounding gives this output."""
        return tuple(axis.begin for axis in self.axes) + tuple(axis.end for axis in self.axes)

    @property
    def batch_axis(self):
        """Position of the batch axis in the array, -1 if there is none."""
        return 0 if self.layout.startswith("N") else -1

    @property
    def channel_axis(self):
        """Position of the channel axis in the array, -1 if there is none."""
        return len(self.input_shape) - 1 if self.channels_last else self.layout.find("C")

    @property
    def spatial(self):
        """Positions of the spatial axes in the array."""
        first = self.layout.startswith("N") + ("C" in self.layout and not self.channels_last)
        return tuple(range(first, first + len(self.axes)))


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
):
    """Check attributes as the public functions take them; return the fields of a plan as a dict."""
    shape = arguments.input_shape(input_shape)
    dtype = arguments.dtype_name(dtype)
    order = geometry.layout(layout, shape)
    activation, activation_params = arguments.activation(activation, activation_params, dtype)
    return_indices = arguments.return_indices(return_indices)
    index_dtype = arguments.index_dtype(index_dtype)
    nan = arguments.nan(nan)
    num_threads = arguments.num_threads(num_threads)

    attributes = Attributes(kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule)
    axes, given = pooled_axes(shape, order, attributes)
    rules = index_rules(shape, order, storage_order, index_axis, index_layout)
    return {
        **_resolved(shape, dtype, order, axes, rules, index_dtype, return_indices, shape),
        "nan": nan,
        "activation": activation,
        "activation_params": activation_params,
        "num_threads": num_threads,
        "index_origin": (0,) * len(shape),
        "given": given,
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
    "axes": tuple_of("a tuple of Axis", record_of(Axis, *[INTEGER] * len(Axis._fields))),
    "activation": or_none(TEXT),
    "activation_params": FLOATS,
    "num_threads": or_none(INTEGER),
    "given": or_none(record_of(Given, INTEGERS, TEXT, FLAG, TEXT)),
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
        axes = _axes_again(plan, order)
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
                **_resolved(shape, dtype, order, axes, *more),
            },
        )


def _axes_again(plan, order):
    """Return the axes of a plan, resolved again from its shape, its axes and `given`."""
    sizes = [plan.input_shape[place] for place in order.spatial]
    if [axis.size for axis in plan.axes] != sizes:
        raise ValueError(f"axes {plan.axes} do not fit input_shape {plan.input_shape}")
    if plan.given is not None:
        pads, *rules = plan.given
        attributes = Attributes(plan.kernel_shape, plan.strides, pads, plan.dilations, *rules)
        axes, given = pooled_axes(plan.input_shape, order, attributes)
        compare_fields(plan, {"given": given})
        return axes
    for axis in plan.axes:
        if min(axis.kernel, axis.stride, axis.dilation) < 1 or min(axis) < 0:
            raise ValueError(f"{axis} is no window")
    # An axis without elements has windows or, in an empty tile, none.
    return tuple(
        axis if axis.output == axis.size == 0 else padded_axis(axis, "floor", "axes", "(of a plan)")
        for axis in plan.axes
    )
