"""Find the axes of an array; resolve padding, rounding and the output extent of spatial axes.

All numbers are Python ints, so no sum or product wraps.
"""

import math
import sys
from typing import Any, NamedTuple

from . import arguments
from .values import plain_text, shown

# Limit for elements and bytes of an array: indices and byte offsets below it fit into an int64.
LARGEST = 2**62
# Limit for an axis with its padding, whose positions compiled code counts and adds to one another.
LONGEST = sys.maxsize // 2

# Ends the error of a window that exceeds the padded input, if rounding up makes one window of it.
CEIL_HINT = "; ceil_mode would make one window of it"

_SPATIAL_NAMES = {1: "W", 2: "HW", 3: "DHW"}

# name -> (has a batch axis, channels "first" or "last" or None, spatial axes)
_LAYOUTS = {
    batch + name: (bool(batch), channels, len(spatial))
    for batch in ("N", "")
    for spatial in _SPATIAL_NAMES.values()
    for channels, name in (("first", "C" + spatial), ("last", spatial + "C"), (None, spatial))
}


class Layout(NamedTuple):
    """Positions of the axes in an array; -1 for a batch or channel axis that it lacks."""

    name: str
    batch_axis: int
    channel_axis: int
    spatial: tuple
    channels_last: bool
    spatial_names: tuple


def layout(value, shape):
    """Return the `Layout` called `value` for an array of this shape.

    "NCHW" and "NHWC" also mean channels first and channels last with any number of spatial axes. Up
    to three spatial axes, the result has the exact name.
    """
    value = "NCHW" if value is None else value
    if not isinstance(value, str):
        raise TypeError(f"layout: expected a str, got {shown(value)}")
    value = plain_text(value)
    if value not in _LAYOUTS:
        raise ValueError(
            f'layout: expected "NCHW", "NHWC", or [N][C] and "W", "HW" or "DHW", or the C last, '
            f"got {shown(value)}"
        )
    batch, channels, count = _LAYOUTS[value]
    rank = len(shape)
    if value in ("NCHW", "NHWC"):
        count = rank - 2
        if count < 1:
            spatial = _SPATIAL_NAMES.get(rank)
            hint = f'; to pool all of its axes, write layout="{spatial}"' if spatial else ""
            raise ValueError(
                f'layout: "{value}" needs batch, channels and at least one spatial axis, '
                f"got an input of shape {shape}{hint}"
            )
    elif rank != len(value):
        raise ValueError(f'layout: expected a letter for each axis of shape {shape}, got "{value}"')
    first = batch + (channels == "first")
    if count in _SPATIAL_NAMES:
        spatial_names = _SPATIAL_NAMES[count]
        letters = {"first": "C" + spatial_names, "last": spatial_names + "C", None: spatial_names}
        value = "N" * batch + letters[channels]
    else:
        spatial_names = (f"D{i + 1}" for i in range(count))
    return Layout(
        name=value,
        batch_axis=0 if batch else -1,
        channel_axis={"first": first - 1, "last": rank - 1, None: -1}[channels],
        spatial=tuple(range(first, first + count)),
        channels_last=channels == "last",
        spatial_names=tuple(spatial_names),
    )


# ------------------------------------------------------------------------------------------ axes


class Axis(NamedTuple):
    """One pooled axis: output o covers elements ``o * stride - begin + t * dilation``, t < kernel.

    `end` is the padding at the end with which rounding down gives `output`. The record says what is
    computed, for any reduction. `windows.Windows` adds how rounding changed the number of windows,
    for explanations. `_running.passes.Window` adds how compiled code pools the axis.
    """

    size: int
    output: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int

    @property
    def extent(self):
        """The length of a window, from its first tap to its last, in elements and padding."""
        return (self.kernel - 1) * self.dilation + 1

    def window(self, output):
        """Return (first place, place after the last) of an output; places may be padding."""
        start = output * self.stride - self.begin
        return start, start + self.extent

    def span(self, outputs):
        """Return the elements and padding under `outputs` neighbouring windows."""
        return (outputs - 1) * self.stride + self.extent

    def starting_before(self, place):
        """Return the number of windows that start before an element."""
        return min(self.output, max(0, -(-(place + self.begin) // self.stride)))

    def ending_by(self, place):
        """Return the number of windows that cover neither an element nor what comes after it."""
        return min(self.output, max(0, (place + self.begin - self.extent) // self.stride + 1))


class AdaptiveAxis(NamedTuple):
    """An irregular axis of adaptive pooling: outputs `first`, first + 1, ... of a whole axis.

    Output i of `of_output` covers elements floor(i * of_size / of_output) to ceil((i + 1) *
    of_size / of_output) of `of_size`. The axis has `size` of the elements and `output` of the
    outputs. In a plan that is not a tile, these are all.
    """

    size: int
    output: int
    of_size: int
    of_output: int
    first: int = 0

    # What a regular axis has as fields.
    stride = 0
    dilation = 1
    begin = end = 0

    @property
    def kernel(self):
        """The number of elements of the longest window of the whole axis."""
        least, rest = divmod(self.of_size, self.of_output)
        return least + (0 if rest == 0 else 1 if self.of_output % rest == 0 else 2)

    extent = kernel

    def window(self, output):
        """Return (first element, element after the last) of an output."""
        i = self.first + output
        origin = self.first * self.of_size // self.of_output
        stop = -(-(i + 1) * self.of_size // self.of_output)
        return i * self.of_size // self.of_output - origin, stop - origin

    def span(self, outputs):
        """Return an upper bound of the elements under `outputs` neighbouring windows."""
        return min(self.size, outputs * self.of_size // self.of_output + 2)

    def starting_before(self, place):
        """Return the number of windows that start before an element."""
        place += self.first * self.of_size // self.of_output
        whole = -(-place * self.of_output // self.of_size)
        return min(self.output, max(0, whole - self.first))

    def ending_by(self, place):
        """Return the number of windows that cover neither an element nor what comes after it."""
        place += self.first * self.of_size // self.of_output
        whole = place * self.of_output // self.of_size
        return min(self.output, max(0, whole - self.first))

    def checked(self):
        """Return the axis; if its fields contradict each other, raise ValueError."""
        size, output, of_size, of_output, first = self
        if min(self) < 0 or max(self) > LARGEST or of_output < 1 or of_size < 1 or output < 1:
            raise ValueError(f"{self} is no axis")
        if first + output > of_output or self.window(output - 1)[1] != size:
            raise ValueError(f"{self} is no axis")
        return self


class Given(NamedTuple):
    """Attributes as the caller gave them; a plan's axes hold only what they resolve to."""

    pads: tuple
    auto_pad: str
    ceil_mode: bool
    ceil_rule: str


class GivenSize(NamedTuple):
    """The output size of an adaptive pooling: the outputs along each spatial axis."""

    output_size: tuple


class Border(NamedTuple):
    """The values of the padding of an axis.

    `mode` is a name of `arguments.BORDERS` other than "ignore". `end` is how far past the elements
    padding goes: taps further out are left out. `value` is what "constant" stands for, else None.
    """

    mode: str
    end: int
    value: float | int | bool | None


class Attributes(NamedTuple):
    """The attributes that define the windows of any pooling; None means the default, if any."""

    kernel_shape: Any
    strides: Any = None
    pads: Any = None
    dilations: Any = None
    auto_pad: Any = None
    ceil_mode: Any = None
    ceil_rule: Any = None

    def checked(self, sizes):
        """Return the attributes in canonical form, for spatial axes of these sizes."""
        count = len(sizes)
        kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule = self
        kernel_shape = arguments.kernel_shape(kernel_shape, count, max(sizes))
        strides = arguments.strides(strides, kernel_shape)
        dilations = arguments.dilations(dilations, count)
        return Attributes(
            kernel_shape,
            strides,
            arguments.pads(pads, count),
            dilations,
            arguments.auto_pad(auto_pad),
            arguments.ceil_mode(ceil_mode),
            arguments.ceil_rule(ceil_rule),
        )


def extent_at(shape, axis):
    return 1 if axis < 0 else shape[axis]


def along(plan, values, absent):
    """Return the values of batch, channels and the spatial axes, from one value per array axis."""
    places = plan.batch_axis, plan.channel_axis, *plan.spatial
    return [absent if place < 0 else values[place] for place in places]


def replaced(shape, order, extents):
    """Return `shape` with other spatial extents."""
    shape = list(shape)
    for axis, extent in zip(order.spatial, extents, strict=True):
        shape[axis] = extent
    return tuple(shape)


def whole_window(shape, order):
    """Return the taps of the window of a global pooling: the extents of the spatial axes."""
    sizes = tuple(shape[position] for position in order.spatial)
    if 0 in sizes:
        raise ValueError(
            f"x: expected at least one element along each spatial axis, got shape {shape}"
        )
    return sizes


def pooled_axes(shape, order, attributes):
    """Return the `Axis` of each spatial axis, and the `Given` from which they were resolved.

    `attributes` are `Attributes` as the caller wrote them.
    """
    count, sizes = len(order.spatial), [shape[position] for position in order.spatial]
    kernels, strides, pads, dilations, *rules = attributes.checked(sizes)
    auto_pad, ceil_mode, ceil_rule = rules
    if auto_pad != "NOTSET" and any(pads):
        raise ValueError(f'pads: expected none with auto_pad "{auto_pad}", got {pads}')
    rounding = ceil_rule if ceil_mode else "floor"
    axes = []
    for i, size in enumerate(sizes):
        ends = pads[i], pads[count + i]
        axis = Axis(size, 0, kernels[i], strides[i], dilations[i], *ends)
        if auto_pad.startswith("SAME"):
            axes.append(_same_axis(axis, lower=auto_pad == "SAME_LOWER"))
        else:
            axes.append(_padded_axis(axis, rounding, f"kernel_shape[{i}]", order.spatial_names[i]))
    for axis, name in zip(axes, order.spatial_names, strict=True):
        check_length(axis, name)
    return tuple(axes), Given(pads, *rules)


def declared_ends(axes, given):
    """Return the padding at the end of each axis, without what rounding up added."""
    if given.auto_pad == "NOTSET":
        return given.pads[len(axes) :]
    return [0 if given.auto_pad == "VALID" else axis.end for axis in axes]


def check_length(axis, axis_name):
    """Raise ValueError if an axis is so long, with its padding, that positions overflow."""
    if axis.size + axis.begin + axis.end > LONGEST:
        raise ValueError(
            f"input_shape: axis {axis_name} of {axis.size} + {axis.begin} + {axis.end} elements "
            f"with its padding is longer than {LONGEST}"
        )


def adaptive_axes(shape, order, output_size):
    """Return the axis of each spatial axis of an adaptive pooling, and its `GivenSize`.

    If all windows of an axis have one length and one stride, it is an `Axis`.
    """
    sizes = [shape[position] for position in order.spatial]
    outputs = arguments.output_size(output_size, sizes)
    axes = []
    for size, output in zip(sizes, outputs, strict=True):
        if output and size % output:
            axes.append(AdaptiveAxis(size, output, size, output))
        else:
            kernel = max(1, size // output if output else 1)
            axes.append(Axis(size, output, kernel, kernel, 1, 0, 0))
    return tuple(axes), GivenSize(outputs)


def _same_axis(axis, lower):
    """Return ceil(size / stride) outputs and the padding for them, an odd unit at one side."""
    size, _, kernel, stride, dilation, _, _ = axis
    output = -(-size // stride)
    total = max((output - 1) * stride + axis.extent - size, 0) if output else 0
    begin = (total + 1) // 2 if lower else total // 2
    return Axis(size, output, kernel, stride, dilation, begin, total - begin)


def _padded_axis(axis, rounding, argument, axis_name):
    """Return an axis with the outputs for its padding; its own number of outputs is ignored.

    `rounding` is "floor" or, for rounding up, a `ceil_rule`. If there is no window, raise
    ValueError with the names of the argument and the axis.
    """
    size, _, kernel, stride, dilation, begin, end = axis
    padded, extent = size + begin + end, axis.extent
    fitting, reaching = window_counts(padded, extent, stride)
    output = fitting if rounding == "floor" else reaching
    if not output:
        problem = (
            f"{argument}: window ({kernel} - 1) * {dilation} + 1 = {extent} exceeds the padded "
            f"input {size} + {begin} + {end} = {padded} of axis {axis_name}"
        )
        if rounding != "floor":
            problem += f" by at least the stride {stride}"
        elif reaching and size + begin:
            problem += CEIL_HINT
        raise ValueError(problem)
    # A last window that would start in the padding at the end, or past it, is dropped.
    if rounding == "clip" and (output - 1) * stride >= size + begin:
        output -= 1
    if not output:
        raise ValueError(
            f'{argument}: ceil_rule "clip" drops the only window of axis {axis_name}, which has '
            f"{size} elements and no padding before them"
        )
    if output != fitting:
        end = max((output - 1) * stride + extent - size - begin, 0)
    return Axis(size, output, kernel, stride, dilation, begin, end)


def window_counts(padded, extent, stride):
    """Return the number of windows in `padded` elements, rounded down and rounded up.

    Rounding down counts the windows that fit. Rounding up counts one more if there is room past
    them. If no window fits, that is one as long as less than a stride is missing.
    """
    room = padded - extent
    return max(0, room // stride + 1), max(0, -(-room // stride) + 1)


def check_size(name, shape, itemsize):
    if math.prod(extent or 1 for extent in shape) * itemsize > LARGEST:  # as NumPy counts
        raise ValueError(f"{name}: {shape} of {itemsize}-byte elements is more than 2**62 bytes")
