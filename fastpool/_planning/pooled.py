"""What the plans of all poolings over windows share: properties of their axes, and their check."""

from .geometry import (
    LARGEST,
    AdaptiveAxis,
    Attributes,
    Axis,
    Given,
    GivenSize,
    adaptive_axes,
    check_length,
    pooled_axes,
    window_counts,
)
from .plan_checks import (
    FLAG,
    INTEGER,
    INTEGERS,
    TEXT,
    Data,
    any_of,
    compare_fields,
    or_none,
    record_of,
    tuple_of,
)
from .values import MOST

# What the fields `axes` and `given` may be.
AXES = tuple_of(
    "a tuple of Axis",
    any_of(*(record_of(kind, *[INTEGER] * len(kind._fields)) for kind in (Axis, AdaptiveAxis))),
)
GIVEN = or_none(
    any_of(record_of(Given, INTEGERS, TEXT, FLAG, TEXT), record_of(GivenSize, INTEGERS))
)


class Pooled(Data):
    """Properties of a plan that has `input_shape`, `layout`, `axes` and `channels_last`."""

    @property
    def kernel_shape(self):
        """Taps of the window along each spatial axis; of adaptive pooling, those of the longest."""
        return tuple(axis.kernel for axis in self.axes)

    @property
    def strides(self):
        """Strides of the windows. An irregular axis of adaptive pooling has 0."""
        return tuple(axis.stride for axis in self.axes)

    @property
    def dilations(self):
        return tuple(axis.dilation for axis in self.axes)

    @property
    def pads(self):
        """All begins and then all ends, as used: with these a floor rounding gives this output."""
        return tuple(axis.begin for axis in self.axes) + tuple(axis.end for axis in self.axes)

    @property
    def border(self):
        """The values of padding; with several borders, their names along the spatial axes."""
        modes = tuple(border.mode for border in self.borders)
        return modes if len({*modes}) > 1 else (modes or ("ignore",))[0]

    @property
    def border_value(self):
        """The constant in padding, or None."""
        return next((b.value for b in self.borders if b.mode == "constant"), None)

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


def axes_again(plan, order):
    """Return the axes of a plan, resolved again from its shape, its axes and `given`."""
    sizes = [plan.input_shape[place] for place in order.spatial]
    if [axis.size for axis in plan.axes] != sizes:
        raise ValueError(f"axes {plan.axes} do not fit input_shape {plan.input_shape}")
    if isinstance(plan.given, GivenSize):
        return adaptive_axes(plan.input_shape, order, plan.given.output_size)[0]
    irregular = any(isinstance(axis, AdaptiveAxis) for axis in plan.axes)
    if plan.given is not None:
        if irregular:
            raise ValueError(f"axes {plan.axes} do not fit given {plan.given}")
        pads, *rules = plan.given
        attributes = Attributes(plan.kernel_shape, plan.strides, pads, plan.dilations, *rules)
        axes, given = pooled_axes(plan.input_shape, order, attributes)
        compare_fields(plan, {"given": given})
        return axes
    if irregular:
        for axis in plan.axes:
            if axis.begin or axis.end or axis.dilation > 1:
                raise ValueError(f"{axis} has padding or a dilation next to an irregular axis")
    return tuple(map(_axis_again, plan.axes))


def _axis_again(axis):
    if isinstance(axis, AdaptiveAxis):
        return axis.checked()
    if min(axis.kernel, axis.stride, axis.dilation) < 1 or min(axis) < 0 or max(axis) > LARGEST:
        raise ValueError(f"{axis} is no window")
    if max(axis.stride, axis.dilation) > MOST:
        raise ValueError(f"{axis} has a stride or a dilation above {MOST}")
    check_length(axis, "(of a plan)")
    # An axis without elements has windows or, in an empty tile, none.
    if axis.output == axis.size == 0:
        return axis
    fitting, _ = window_counts(axis.size + axis.begin + axis.end, axis.extent, axis.stride)
    if not fitting:
        raise ValueError(f"{axis} has no window")
    return axis._replace(output=fitting)
