"""Resolve the values of padding, and find the outputs that depend on it.

A window takes the taps of its padding from elements: position p of an axis stands for one element,
or for a constant. So only outputs whose windows touch padding differ from those of a pooling that
leaves it out.
"""

import math

from . import arguments
from .geometry import Border, declared_ends
from .plan_checks import INTEGER, TEXT, Kind, or_none, record_of, tuple_of
from .values import shown

_NUMBER = Kind("a number", lambda value: type(value) in (int, float, bool))
# What the field `borders` of a plan may be.
BORDERS = tuple_of("a tuple of Border", record_of(Border, TEXT, INTEGER, or_none(_NUMBER)))


def resolve(border, border_value, shape, axes, given, dtype):
    """Return the `Border` of each axis, or () if padding is ignored."""
    modes = arguments.border(border, len(axes))
    value = arguments.border_value(border_value, modes, arguments.dtype_name(dtype))
    if {*modes} == {"ignore"}:
        return ()
    ends = declared_ends(axes, given)
    for mode, axis, end in zip(modes, axes, ends, strict=True):
        if mode != "constant" and not axis.size and (axis.begin or end):
            raise ValueError(
                f'x: expected elements along each padded axis for border "{mode}", '
                f"got shape {shape}"
            )
    values = (value if mode == "constant" else None for mode in modes)
    return tuple(map(Border, modes, ends, values))


def again(plan, axes):
    """Return `borders` of a plan, resolved again."""
    if not plan.borders:
        return ()
    modes = arguments.Borders(border.mode for border in plan.borders)
    values = {border.value for border in plan.borders if border.mode == "constant"}
    if len(modes) != len(axes) or plan.given is None or len(values) > 1 or "ignore" in modes:
        raise ValueError(f"borders {shown(plan.borders)} do not fit axes {axes}")
    value = values.pop() if values else None
    return resolve(modes, value, plan.input_shape, axes, plan.given, plan.dtype)


def canonical(border):
    """Return a `Border` of a pickle with the NaN that plans have; any other value unchanged."""
    if type(border) is Border and type(border.value) is float and border.value != border.value:
        return border._replace(value=math.nan)
    return border


def padded(axis, border):
    """Return an axis over the elements and the padding of another, which are its elements.

    The windows are those of the other axis. It has padding at its end only, which rounding up
    added.
    """
    size = axis.begin + axis.size + border.end
    return axis._replace(size=size, begin=0, end=max(0, axis.end - border.end))


def inside(axis):
    """Return the first output whose window is inside the elements, and the one after the last.

    If there is none, both are the number of outputs.
    """
    first, stop = axis.starting_before(0), axis.starting_before(axis.size - axis.extent + 1)
    return (first, stop) if first < stop else (axis.output, axis.output)


def adds_nothing(axis, border):
    """Do taps in padding only repeat elements of their windows? Then no maximum depends on them."""
    size, output, kernel, _, dilation, begin, _ = axis
    if border.mode not in ("reflect", "mirror", "nearest") or not output:
        return False
    past = axis.window(output - 1)[1] - size  # may be beyond the padding
    for outside, left in ((begin, kernel - begin), (min(past, border.end), kernel - past)):
        if outside <= 0:
            continue
        # The elements that stand outside are the first ones, or those after the first one.
        needed = {"nearest": 1, "reflect": outside, "mirror": outside + 1}[border.mode]
        if dilation > 1 or needed > min(left, size):
            return False
    return True


def positions(axis, border, first, stop):
    """Return what outputs `first` to `stop` read: the first position and the number of positions.

    Those past the padding are not counted. The third number is that of all under the windows.
    """
    start, span = axis.window(first)[0], axis.span(stop - first)
    return start, max(0, min(span, axis.size + border.end - start)), span


def period(size, mode):
    """Return after how many positions a border repeats, or 0 if it does not."""
    return {"wrap": size, "reflect": 2 * size, "mirror": max(1, 2 * size - 2)}.get(mode, 0)
