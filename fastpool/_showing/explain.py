"""Explain a plan in words: the rules that were used, their results, and how a call runs."""

import html
import math
import textwrap

from .._planning import geometry
from .._planning.average_pool import AvgPool
from .._planning.dtypes import ITEMSIZE, is_float, is_integer
from .._planning.lp_pool import LpPool
from .._planning.values import flag
from .._running import builds, lp, strategies, threads
from .._running.forks import has_forked
from .._running.passes import is_empty
from .._running.work import work_bytes
from . import axes
from .divisors import divisor_rule

_WIDTH = 79
_LABEL = 10

_NAN = {
    "propagate": "a NaN in a window is its result, the first one its index",
    "ignore": "NaN is skipped; a window of nothing else gives NaN",
}
_NAN_IN_MEANS = {
    "propagate": "a window with a NaN, or with infinities of both signs, gives NaN",
    "ignore": "NaN is {}; a window of nothing else gives NaN",
}
_NAN_IN_NORMS = {
    "propagate": "a window with a NaN gives NaN",
    "ignore": "NaN adds nothing; a window of nothing else gives NaN",
}
_CONTINUED = {
    "reflect": "continued by dcba on both sides",
    "mirror": "continued by dcb before it and cba after it",
    "nearest": "continued by aaa before it and ddd after it",
    "wrap": "continued by bcd before it and abc after it",
}
_ROUNDED = {
    "half_even": "to the nearest, halves to the even one",
    "half_away": "to the nearest, halves away from zero",
    "trunc": "toward zero",
    "floor": "down",
}


def explain(plan, verbose=False):
    """Explain a plan, as its method `explain` does."""
    prepared = _prepared(plan)
    plan = prepared.plan  # its fields are checked
    lines = [_title(plan)]
    for label, sentences in _sections(plan, prepared, flag(verbose, "verbose")):
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
    prepared = getattr(plan, "_prepared", None)
    return prepared if prepared is not None and prepared.fits(plan) else plan._prepare(None)


def _title(plan):
    types = _types(plan) if isinstance(plan, AvgPool) else plan.dtype
    shapes = f"{plan.input_shape} -> {plan.output_shape}"
    name = type(plan).__name__.removesuffix("Plan")
    return f"{name}Plan: {types} {plan.layout} {shapes}"


def _types(plan):
    same = plan.result_dtype == plan.dtype
    return plan.dtype if same else f"{plan.dtype} to {plan.result_dtype}"


def _sections(plan, prepared, verbose=False):
    """Yield (label, sentences) in the order in which readers ask."""
    if plan.layout == "NCW" and plan.input_shape[-1] in (1, 3, 4):  # (like height, width, colours)
        colours = plan.input_shape[-1]
        yield (
            "layout",
            [
                f"the last axis, of {colours}, is W and is pooled; for a photograph, whose last "
                'axis is that of the colours, write layout="HWC"'
            ],
        )
    yield from axes.sections(plan)
    if getattr(plan, "borders", ()):
        yield "border", list(_border(plan))
    if isinstance(plan, AvgPool):
        yield "divisor", list(divisor_rule(plan))
        yield "values", list(_means(plan))
    elif isinstance(plan, LpPool):
        yield "values", list(_norms(plan))
    else:
        yield "values", list(_values(plan))
        yield "indices", list(_indices(plan))
    yield from _call(plan, prepared, verbose)


def _border(plan):
    names = geometry.layout(plan.layout, plan.input_shape).spatial_names
    alike = {}
    for name, border in zip(names, plan.borders, strict=True):
        alike.setdefault((border.mode, border.value), []).append(name)
    for (mode, value), along in alike.items():
        what = f"{value}" if mode == "constant" else f"abcd, {_CONTINUED[mode]}"
        yield f'"{mode}" along {", ".join(along)}: padding is {what}'


# ---------------------------------------------------------------------------------- values, indices


def _values(plan):
    text = f"{plan.dtype}, exactly; {'padding competes' if plan.borders else 'padding never wins'}"
    yield f'{text}; nan "{plan.nan}": {_NAN[plan.nan]}' if is_float(plan.dtype) else text
    yield from _activation(plan)


def _means(plan):
    mean = "the true mean" if plan.divisor is None else "the true quotient"
    if not is_float(plan.result_dtype):
        yield f'{_types(plan)}: {mean}, rounded {_ROUNDED[plan.rounding]} ("{plan.rounding}")'
    elif plan.numerics == "sequential" and is_float(plan.dtype):
        accumulator = "float64" if plan.dtype == "float64" else "float32"
        last = "" if plan.result_dtype == accumulator else f", then to {plan.result_dtype}"
        yield (
            f'{_types(plan)}, numerics "sequential": elements are added in row-major order, and '
            f"the sum is divided once; each step is rounded to {accumulator}{last}"
        )
    elif plan.numerics == "pairwise" and is_float(plan.dtype):
        yield _pairwise(plan)
    else:
        exact = ', numerics "exact"' if is_float(plan.dtype) else ""
        yield f"{_types(plan)}{exact}: {mean}, rounded once"
    if plan.divisor is not None and is_integer(plan.result_dtype):
        if ITEMSIZE[plan.result_dtype] == 8:
            yield f"what {plan.result_dtype} does not hold becomes its least or greatest value"
    if is_float(plan.dtype):
        taken = "neither summed nor counted" if plan.divisor is None else "not summed"
        yield f'nan "{plan.nan}": {_NAN_IN_MEANS[plan.nan].format(taken)}'
    yield from _activation(plan)


def _pairwise(plan):
    """Return the order of additions, and by how much a mean may be off."""
    wide = "float64" in (plan.dtype, plan.result_dtype)
    accumulator, digits = ("float64", 53) if wide else ("float32", 24)
    names = geometry.layout(plan.layout, plan.input_shape).spatial_names
    depth = sum(map(_most_depth, plan.axes))
    result = plan.result_dtype
    last = "" if result == accumulator else f", and by the rounding to {result}"
    return (
        f'{_types(plan)}, numerics "pairwise": taps along {", then along ".join(names)} are added '
        f"by trees, in {accumulator}, and the sum is divided once; a mean is off by at most "
        f"{depth + 1} * 2**-{digits} times the sum of magnitudes over the divisor{last}"
    )


def _most_depth(axis):
    """Return the depth of a window along an axis; a shorter one may be deeper (7 and 8 taps)."""
    shorter = axis.kernel - isinstance(axis, geometry.AdaptiveAxis)
    return max(_depth(axis.kernel), _depth(shorter))


def _depth(taps):
    """Return the additions after each other in a tree of `taps`."""
    return 0 if taps <= 1 else _depth(taps // 2) + 1 + taps % 2


def _norms(plan):
    exact = lp.is_exact(plan)
    if plan.p == math.inf:
        yield f"{plan.dtype}, p inf: the greatest magnitude"
    else:
        ulps = "5 ulp" if plan.dtype == "float64" else "1 ulp"
        rounded = "rounded once" if exact else f"within {ulps}"
        yield f"{plan.dtype}, p {plan.p:g}: the p-th root of the sum of magnitudes ** p, {rounded}"
    if plan.is_scaled:
        names = geometry.layout(plan.layout, plan.input_shape).spatial_names
        for name, taps, last in zip(names, plan.kernel_shape, plan.counted_last, strict=True):
            if last < taps:
                yield f'partial "scale": last sums along {name} are multiplied by {taps} / {last}'
    yield f'nan "{plan.nan}": {_NAN_IN_NORMS[plan.nan]}'


def _activation(plan):
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
    text = f"{plan.index_dtype}, of the first {'minimum' if plan.minimum else 'maximum'}, "
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


def _call(plan, prepared, verbose):
    """Yield (label, sentences) on how this machine runs a call on plain arrays now."""
    kernels = builds.builds()[prepared.build]
    build = f"{prepared.build} build, vectors of {kernels.VECTOR_BYTES} bytes"
    if isinstance(plan, LpPool):
        yield "kernel", [f"{build}; {lp.DOES[lp.way(plan)]}"]
        yield "copies", [f"one of each part of x and its result, of {_bytes(lp.PART_BYTES)}"]
        part = prepared.kernel()
        of_part = _threads_of(part.plan, part) if part.pooling else "1"
        yield "threads", [f"{of_part} for the kernel of each part; NumPy takes 1"]
        return
    of_kind = _kernel_of_means if isinstance(plan, AvgPool) else _kernel
    kernel = prepared
    while kernel and (kernel.once or kernel.bordered):
        kernel = kernel.once or kernel.bordered.kernel
    if kernel is None:
        yield "kernel", ["NumPy, tap by tap of a tree, as padding is much longer than the array"]
        yield "threads", ["1"]
        return
    how, declined = of_kind(kernel.plan, kernel)
    how = _axes_taken(kernel.plan, kernel.work) + how
    if prepared.bordered:
        filled = bool(kernel.work.beyond)
        where = " of all axes but the last" if filled else ""
        how += f"; windows over the edges{where} are pooled apart, in copies of what they read"
    if prepared.once:
        how += "; windows that repeat are pooled once, and NumPy repeats their results"
    yield "kernel", [f"{build}; {how}" if how else build]
    if declined and verbose:
        yield "not by", [f"{strategy}: {reason}" for strategy, reason in declined]
    yield "copies", [_copies(plan, kernel.contiguous_axis)]
    yield "threads", [_threads_of(kernel.plan, kernel)]
    itemsize = ITEMSIZE[plan.dtype]
    read = math.prod(plan.input_shape) * itemsize
    yield (
        "memory",
        [
            f"{_bytes(read)} read, {_bytes(work_bytes(plan) - read)} written, "
            f"{_bytes(kernel.pooling.scratch_bytes)} of scratch per thread"
        ],
    )


def _axes_taken(plan, work):
    """Return how axes are taken, if other than they are (`FewerAxes`)."""
    all_joined = work.joined > work.spatial_axes[-1]
    if all_joined and work.spatial_axes[0] < 0:
        return f"windows as those of one row of {work.windows[-1].size} elements: "
    if all_joined:
        return f"the last axes as one of {work.windows[-1].size} elements: "
    if work.channel_axis == plan.spatial[-1]:
        return "columns as channels that are last: "
    names = geometry.layout(plan.layout, plan.input_shape).spatial_names
    places = zip(plan.spatial[:-2], names, strict=False)
    some = [n for at, n in places if at not in work.spatial_axes and plan.input_shape[at] > 1]
    return f"planes along {', '.join(some)} as channels: " if some else ""


def _kernel(plan, prepared):
    """Return how tiles are pooled, and the (strategy, reason) of those that declined."""
    if any(map(is_empty, prepared.work.problem.windows)):
        return "nothing to pool: no window has an element", ()
    work = prepared.work
    text = strategies.DOES[work.strategy]
    if work.inner:
        text += f', by "{work.inner.strategy}"'
    if plan.minimum and work.keyed:
        text += "; elements are inverted keys"
    if work.strategy in strategies.BY_PASSES:
        names = geometry.layout(plan.layout, plan.input_shape).spatial_names
        names = dict(zip(plan.spatial, names, strict=True))
        windows = zip(work.spatial_axes[-2:], work.windows[-2:], strict=True)
        passes = (
            f"{names[place]} {' x '.join(str(step.taps) for step in window.steps)}"
            for place, window in windows
            if place >= 0
        )
        text += f"; taps of the passes: {', '.join(passes)}"
    return f'{text} ("{work.strategy}"); {_tiles(prepared.pooling.tasks)}', work.declined


def _kernel_of_means(plan, prepared):
    """Return how tiles are averaged, and (): no strategies are listed that declined."""
    work = prepared.work
    text = "columns added in pairs, then these along rows"
    if not is_float(plan.dtype):
        text = "columns, rows or whole windows added as integers"
    elif work.windows[-1].kernel == 1:
        text = "columns added in pairs"
    if work.sequential:
        text = "tap by tap, four vectors of windows at a time"
    elif work.byte_rows:
        text = "rows enter and leave sums down columns; these are added along rows"
    if work.group:
        text = f"{min(work.group, plan.batch * plan.channels)} planes interleaved; {text}"
    if work.sequential or work.pairwise:
        text += "; each addition is rounded"
    elif is_float(plan.dtype) or ITEMSIZE[plan.dtype] >= 4:
        text += "; by digits where a sum is not exact"
    return f"{text}; {_tiles(prepared.pooling.tasks)}", ()


def _tiles(count):
    return "1 tile" if count == 1 else f"{count} tiles"


def _copies(plan, axis):
    names = geometry.layout(plan.layout, plan.input_shape).spatial_names
    closest = dict(zip(plan.spatial, names, strict=True)).get(axis, "C")
    along = "" if axis is None else f" along {closest}"
    return f"none, if x is in native byte order and contiguous{along}; else one of x"


def _threads_of(plan, prepared):
    asked = prepared.threads_now()
    fewest = threads.SERIAL_BYTES if plan.num_threads is None else threads.HANDED_BYTES
    tasks, most = prepared.pooling.tasks, prepared.pooling.most_threads
    count = min(asked, max(1, most))
    work = prepared.work.nbytes
    if count < asked and most < tasks:
        why = f"{asked} asked for, whose scratch would take more memory than the arrays"
    elif count < asked:
        why = f"{asked} asked for, more than there are tiles"
    elif plan.num_threads != 1 and not builds.active().OPENMP:
        why = "this fastpool was built without OpenMP"
    elif plan.num_threads != 1 and work < fewest:
        why = f"a call that moves less than {_bytes(fewest)} takes no other"
    elif plan.num_threads != 1 and has_forked():
        why = "a child made by fork has only one"
    elif plan.num_threads is not None:
        why = "set by num_threads"
    elif count > 1 and (pause := threads.why_paused(builds.active())):
        count, why = 1, pause
    elif count > 1 and threads.rule(None, work) == threads.SHARED_SOON:
        why = (
            f"within {threads.SOON_MS} ms of another call of {_bytes(fewest)} or more, else 1: a "
            f"call that moves less than {_bytes(threads.LARGE_BYTES)} does not wake threads"
        )
    elif count == work // threads.THREAD_BYTES:
        why = f"a thread moves at least {_bytes(threads.THREAD_BYTES)}"
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
