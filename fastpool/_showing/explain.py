"""Explain a plan in words: the rules that were used, their results, and how a call runs."""

import html
import math
import textwrap

from .._planning import geometry
from .._planning.dtypes import ITEMSIZE, is_float, lowest
from .._planning.windows import windows_of
from .._running import builds, strategies, threads
from .._running.passes import is_empty
from .._running.prepare import PreparedPool
from .._running.work import work_bytes

_WIDTH = 79
_LABEL = 10

_NAN = {
    "propagate": "a NaN in a window is its result, the first one its index",
    "ignore": "NaN is skipped; a window of nothing else gives NaN",
}


def explain(plan):
    """Explain a plan, as `MaxPoolPlan.explain` does."""
    prepared = _prepared(plan)
    plan = prepared.plan  # its fields are checked
    lines = [_title(plan)]
    for label, sentences in _sections(plan, prepared):
        for i, sentence in enumerate(sentences):
            lines += textwrap.wrap(
                sentence,
                _WIDTH,
                initial_indent=("" if i else label).ljust(_LABEL),
                subsequent_indent=" " * _LABEL,
                break_long_words=False,
                break_on_hyphens=False,
            )
    return "\n".join(lines)


def as_html(plan):
    """Return the explanation as an HTML table, with the drawing if there can be one.

    If anything goes wrong, return None.
    """
    # A notebook then shows the repr. It must never show a traceback for a value.
    try:
        rows = "".join(
            f'<tr><th style="text-align:left;vertical-align:top">{html.escape(label)}</th>'
            f'<td style="text-align:left">{"<br>".join(map(html.escape, sentences))}</td></tr>'
            for label, sentences in _sections(plan, _prepared(plan))
        )
        title = html.escape(_title(plan))
        return f"<div><p><b>{title}</b></p>{_picture(plan)}<table>{rows}</table></div>"
    except Exception:
        return None


def _picture(plan):
    try:
        return plan.draw(title="")._repr_html_()
    except (ImportError, ValueError):  # no matplotlib, or too many axes
        return ""


def _prepared(plan):
    """Return what a call of the plan would use now; it is not stored on the plan."""
    prepared = vars(plan).get("_prepared")
    return prepared if prepared is not None and prepared.fits(plan) else PreparedPool(plan)


def _title(plan):
    return f"MaxPoolPlan: {plan.dtype} {plan.layout} {plan.input_shape} -> {plan.output_shape}"


def _sections(plan, prepared):
    """Yield (label, sentences) in the order in which readers ask."""
    yield "window", [_window(plan)]
    yield "rule", list(_rule(plan))
    yield from _axes(plan)
    yield "edges", [_edges(plan)]
    yield "values", list(_values(plan))
    yield "indices", list(_indices(plan))
    yield from _call(plan, prepared)


# ---------------------------------------------------------------------------------------- geometry


def _window(plan):
    spans = tuple(windows.extent for windows in windows_of(plan))
    text = f"kernel_shape {plan.kernel_shape}, strides {plan.strides}"
    if any(dilation > 1 for dilation in plan.dilations):
        text += f", dilations {plan.dilations}: one window spans {spans}"
    return text


def _rule(plan):
    given = plan.given
    if given is None:
        yield "the plan of a tile: what its windows lack here, in padding or elements, is padding"
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
    alike = {}
    for name, windows in zip(order.spatial_names, windows_of(plan), strict=True):
        alike.setdefault(windows, []).append(name)
    for windows, names in alike.items():
        yield ", ".join(names), list(_axis(plan, windows))


def _axis(plan, windows):
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
    unread = []
    if axis.output > 1 and axis.stride > windows.extent:
        unread.append(f"{axis.stride - windows.extent} between one window and the next")
    if windows.unread_end:
        unread.append(f"the last {windows.unread_end}")
    if unread:
        yield f"of {axis.size} elements in no window: {' and '.join(unread)}"


def _is_same(plan):
    return plan.given is not None and plan.given.auto_pad.startswith("SAME")


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
        text += f", which give {lowest(plan.dtype)}"
        text += " and index -1" if plan.return_indices else ""
    return text


# ---------------------------------------------------------------------------------- values, indices


def _values(plan):
    text = f"{plan.dtype}, exactly; padding never wins"
    yield f'{text}; nan "{plan.nan}": {_NAN[plan.nan]}' if is_float(plan.dtype) else text
    if plan.activation is not None:
        parameters = ", ".join(map(str, plan.activation_params))
        yield f"then {plan.activation}({parameters})"


def _indices(plan):
    if not plan.return_indices:
        yield "none (return_indices)"
        return
    axes = list(plan.index_shape)
    order = f"the {plan.layout} array"
    if plan.channels_last and plan.index_layout == "NCHW":
        axes.insert(plan.spatial[0], axes.pop())
        order = "the array as if channels came first"
    counted = axes[plan.index_axis :]
    text = f"{plan.index_dtype}, of the first maximum, "
    if len(counted) == len(axes):
        text += f"counted in all of {order}, shape {tuple(axes)}"
    else:
        last = f"last {len(counted)} axes" if len(counted) > 1 else "last axis"
        text += f"counted in the {last} of {order}, shape {tuple(counted)}"
    if plan.storage_order:
        text += "; column by column within a plane (storage_order 1)"
    yield text
    if any(plan.index_origin):
        yield f"element 0 of this tile is at {plan.index_origin} of an array {plan.index_shape}"


# -------------------------------------------------------------------------------------- the call


def _call(plan, prepared):
    """Yield (label, sentences) on how this machine runs a call on plain arrays now."""
    kernels = builds.builds()[prepared.build]
    build = f"{prepared.build} build, vectors of {kernels.VECTOR_BYTES} bytes"
    how, declined = _kernel(plan, prepared)
    yield "kernel", [f"{build}; {how}"]
    if declined:
        yield "not by", [f"{strategy}: {reason}" for strategy, reason in declined]
    yield "copies", [_copies(plan)]
    yield "threads", [_threads_of(plan, prepared)]
    itemsize = ITEMSIZE[plan.dtype]
    read = math.prod(plan.input_shape) * itemsize
    scratch = 0 if prepared.pooling is None else prepared.pooling.scratch_bytes
    yield (
        "memory",
        [
            f"{_bytes(read)} read, {_bytes(work_bytes(plan) - read)} written, "
            f"{_bytes(scratch)} of scratch per thread"
        ],
    )


def _kernel(plan, prepared):
    """Return how tiles are pooled, and the (strategy, reason) of those that declined."""
    if prepared.pooling is None:
        how = "every part of the input that a window holds is pooled once, as places exceed 64 bits"
        return how, ()
    if any(map(is_empty, prepared.windows)):
        return "nothing to pool: no window has an element", ()
    work, (strategy, declined) = prepared.work, prepared.choice
    text = strategies.DOES[strategy]
    if strategy in strategies.BY_PASSES:
        names = geometry.layout(plan.layout, plan.input_shape).spatial_names
        names = dict(zip(plan.spatial, names, strict=True))
        windows = zip(work.spatial_axes[-2:], work.windows[-2:], strict=True)
        passes = (
            f"{names[place]} {' x '.join(str(step.taps) for step in window.steps)}"
            for place, window in windows
            if place >= 0
        )
        text += f"; taps of the passes: {', '.join(passes)}"
    tiles = prepared.pooling.tasks
    tiles = "1 tile" if tiles == 1 else f"{tiles} tiles"
    return f'{text} ("{strategy}"); {tiles}', declined


def _copies(plan):
    names = geometry.layout(plan.layout, plan.input_shape).spatial_names
    closest = "C" if plan.channels_last and plan.channels > 1 else names[-1]
    return f"none, if x is in native byte order and contiguous along {closest}; else one of x"


def _threads_of(plan, prepared):
    tasks = 1 if prepared.pooling is None else max(1, prepared.pooling.tasks)
    asked = prepared.threads_now()
    count = min(asked, tasks)
    work = work_bytes(plan)
    if prepared.pooling is None:
        why = f"{asked} for what is pooled once"
    elif count < asked:
        why = f"{asked} asked for, more than there are tiles"
    elif plan.num_threads is not None:
        why = "set by num_threads"
    elif work < threads.SERIAL_BYTES:
        why = f"a call that moves less than {_bytes(threads.SERIAL_BYTES)} wakes no other thread"
    else:
        why = "the default here: see fastpool.show_config()"
    return f"{count} ({why})"


def _bytes(count):
    """Return a number of bytes as text: 1536 as 1.5 KiB."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            break
        count /= 1024
    return f"{count} {unit}" if isinstance(count, int) else f"{count:.3g} {unit}"
