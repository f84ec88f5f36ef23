"""Say in words where the windows of a plan lie along each axis."""

import math

from .._planning import geometry
from .._planning.average_pool import AvgPool
from .._planning.geometry import AdaptiveAxis, Given, GivenSize
from .._planning.max_pool import MaxPool
from .._planning.windows import windows_of
from .divisors import places_of, taps_that_count


def sections(plan):
    """Yield (label, sentences) about the windows, the rule for them, and each axis."""
    yield "window", [_window(plan)]
    yield "rule", list(_rule(plan))
    yield from _axes(plan)
    yield "edges", [_edges(plan)]


def _window(plan):
    if is_adaptive(plan):
        longest = " x ".join(map(str, plan.kernel_shape))
        return f"of an adaptive pooling, {longest} elements at most"
    spans = tuple(windows.extent for windows in windows_of(plan))
    text = f"kernel_shape {plan.kernel_shape}, strides {plan.strides}"
    if any(dilation > 1 for dilation in plan.dilations):
        text += f", dilations {plan.dilations}: one window spans {spans}"
    return text


def _rule(plan):
    given = plan.given
    if given is None:
        rest = ": what its windows lack here, in padding or elements, is padding"
        yield f"the plan of a tile{'' if is_adaptive(plan) else rest}"
    elif is_adaptive(plan):
        yield (
            f"output_size {given.output_size}: of O windows along an axis of H elements, window i "
            "begins at element floor(i*H/O) and ends before ceil((i+1)*H/O)"
        )
    elif _is_same(plan):
        side = "beginning" if given.auto_pad == "SAME_LOWER" else "end"
        rounding = ", with or without ceil_mode" if given.ceil_mode else ""
        yield (
            f'auto_pad "{given.auto_pad}": ceil(size / stride) outputs{rounding}, and the padding '
            f"for them, an odd unit of it at the {side}"
        )
    else:
        pads = f"pads {given.pads}, begins and then ends" if any(given.pads) else "no padding"
        yield f'auto_pad "{given.auto_pad}": {pads}'
        if not given.ceil_mode:
            yield "ceil_mode off: a last window that does not fit into the padded input is dropped"
        elif given.ceil_rule == "keep":
            yield 'ceil_mode, ceil_rule "keep": a last window that does not fit is kept'
        else:
            yield (
                'ceil_mode, ceil_rule "clip": a last window that does not fit is kept, unless it '
                "starts in the padding at the end, or past it"
            )


def _axes(plan):
    """Yield a section for each geometry of an axis; axes of one geometry share it."""
    order = geometry.layout(plan.layout, plan.input_shape)
    places = places_of(plan) if isinstance(plan, AvgPool) else (None,) * len(plan.axes)
    alike = {}
    for name, *found in zip(order.spatial_names, windows_of(plan), places, strict=True):
        alike.setdefault(tuple(found), []).append(name)
    for (windows, counted), names in alike.items():
        if isinstance(windows.axis, AdaptiveAxis):
            yield ", ".join(names), list(_irregular_axis(windows))
        elif isinstance(plan.given, GivenSize):
            yield ", ".join(names), [_regular_axis(windows.axis)]
        else:
            yield ", ".join(names), list(_axis(plan, windows, counted))


def _regular_axis(axis):
    if not axis.output:
        return "output 0"
    return f"output {axis.output}: windows of {axis.size} / {axis.output} = {axis.kernel} elements"


def _irregular_axis(windows):
    size, output, of_size, of_output, first = windows.axis
    least, shorter = of_size // of_output + 1, windows.shorter
    counts = {least: shorter, least + 1: output - shorter}
    lengths = (f"of {length} elements: {number}" for length, number in counts.items() if number)
    yield f"output {output}; windows {', '.join(lengths)}"
    if output < of_output:
        yield f"windows {first} to {first + output - 1} of {of_output} over {of_size} elements"
    if output > 1:
        yield f"windows that share an element with the next one: {windows.sharing}"
    if output >= 2 * size:
        yield "windows repeat, as there are at least twice as many as elements"


def _axis(plan, windows, counted):
    axis = windows.axis
    yield f"output {_formula(plan, windows)}"
    padding = f"padding {axis.begin} at the beginning, {windows.end} at the end"
    if _is_same(plan):
        total = f"max(({axis.output} - 1) * {axis.stride} + {windows.extent} - {axis.size}, 0)"
        yield f"padding {total} = {axis.begin + axis.end}: {padding.removeprefix('padding ')}"
    elif axis.begin or windows.end:
        yield padding
    for output in windows.added:
        past = windows.last(output) + 1 - axis.size - windows.end
        yield (
            f"added by ceil_mode: window {output}, which starts {_place(windows, output)} and ends "
            f"{past} past the padded input"
        )
    for output in windows.dropped:
        why = 'by ceil_rule "clip"' if plan.given.ceil_mode else "as ceil_mode is off"
        yield f"dropped, {why}: window {output}, which would start {_place(windows, output)}"
    yield "; ".join(_counts(windows))
    if any(windows.outside(counted)) and plan.divisor is None:
        yield taps_that_count(windows, counted)
    unread = []
    if axis.output > 1 and axis.stride > windows.extent:
        unread.append(f"{axis.stride - windows.extent} between one window and the next")
    if windows.unread_end:
        unread.append(f"the last {windows.unread_end}")
    if unread:
        yield f"of {axis.size} elements in no window: {' and '.join(unread)}"


def _is_same(plan):
    return isinstance(plan.given, Given) and plan.given.auto_pad.startswith("SAME")


def is_adaptive(plan):
    """Do the windows follow from an output size?

    Tiles of which all axes are regular are taken for those of other poolings.
    """
    irregular = any(isinstance(axis, AdaptiveAxis) for axis in plan.axes)
    return irregular or isinstance(plan.given, GivenSize)


def _formula(plan, windows):
    size, output, _, stride, _, begin, _ = windows.axis
    if _is_same(plan):
        return f"ceil({size} / {stride}) = {output}"
    if not output:  # of a tile
        return "0"
    rounding, count = "floor", windows.fitting
    if plan.given is not None and plan.given.ceil_mode:
        rounding, count = "ceil", windows.reaching
    text = f"{rounding}(({size} + {begin} + {windows.end} - {windows.extent}) / {stride}) + 1"
    return f"{text} = {output}" if count == output else f"{text} - {count - output} = {output}"


def _counts(windows):
    count = windows.output
    yield f"windows {_span(0, count)}"
    if windows.over_begin:
        yield f"over the beginning: {_span(0, windows.over_begin)}"
    if windows.over_end:
        yield f"over the end: {_span(count - windows.over_end, count)}"
    if windows.inside == count:
        yield "none over an edge"
    if windows.empty_begin:
        yield f"empty, before the input: {_span(0, windows.empty_begin)}"
    if windows.empty_between:
        yield f"empty, as the taps jump over the input: {windows.empty_between} of them"
    if windows.empty_end:
        yield f"empty, past the input: {_span(count - windows.empty_end, count)}"


def _span(start, stop):
    if stop - start > 1:
        return f"{start} to {stop - 1}"
    return str(start) if stop > start else "none"


def _place(windows, output):
    """Return in words where a window starts."""
    first = windows.first(output)
    size = windows.axis.size
    if first < 0:
        return f"{-first} before element 0"
    if first < size:
        return f"at element {first}"
    if first < size + windows.end:
        return "in the padding at the end"
    return "past the padding at the end"


def _edges(plan):
    axes = windows_of(plan)
    total = math.prod(windows.output for windows in axes)
    over = total - math.prod(windows.inside for windows in axes)
    empty = total - math.prod(windows.output - windows.empty for windows in axes)
    plane = "plane" if len(axes) == 2 else "channel"
    text = f"of {total} windows of a {plane}, {over} over an edge, {empty} empty"
    if empty:
        is_maximum = isinstance(plan, MaxPool)
        text += f", which give {plan.of_nothing if is_maximum else 0}"
        text += " and index -1" if is_maximum and plan.return_indices else ""
    return text
