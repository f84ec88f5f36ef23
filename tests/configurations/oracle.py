"""Expected results: from the slow twin, or from `quick` for long axes with many outputs.

`quick` pools all windows at once with NumPy. Its time grows with the input, the output and the
logarithm of the window, so cases with long axes can be compared too. `planned_pool` and
`planned_unpool` compute what the fields of a plan say.
"""

import math

import numpy as np

import cases
from fastpool import _reference
from fastpool._planning import arguments, geometry
from fastpool._reference import maximum, windows
from fastpool._running.activation import apply_activation

from .arrays import same

# The twin takes some 15 microseconds per output position; planes are nearly free.
MOST_OUTPUTS = 300

EMPTY = -2  # the rank of a window without elements, below that of every value


def max_pool(x, kernel_shape, attributes, long):
    """Return (maxima, indices); with ``minimum`` among the attributes, minima.

    A `long` case with few outputs compares both oracles first.
    """
    if not long:
        return _reference.max_pool(x, kernel_shape, return_indices=True, **attributes)
    expected = quick(x, kernel_shape, **attributes)
    if math.prod(expected[0].shape) <= MOST_OUTPUTS:
        twin = _reference.max_pool(x, kernel_shape, return_indices=True, **attributes)
        for one, other in zip(expected, twin, strict=True):
            same(one, other, "the two oracles")
    return expected


def quick(
    x,
    kernel_shape,
    *,
    strides,
    pads,
    dilations,
    auto_pad,
    ceil_mode,
    ceil_rule,
    layout,
    nan,
    storage_order,
    index_axis,
    index_dtype,
    index_layout,
    activation=None,
    activation_params=(),
    minimum=False,
):
    """Return what `_reference.max_pool` returns, for legal attributes with one value per axis."""
    name = arguments.dtype_name(x.dtype)
    activation, activation_params = arguments.activation(activation, activation_params, name)
    order = geometry.layout(layout, x.shape)
    planes = windows.planes_of(x, order)
    sizes = planes.shape[2:]
    ranks = _ranks(planes, nan, minimum)
    places = np.broadcast_to(np.arange(math.prod(sizes)).reshape(sizes), planes.shape)
    # The first maximum in row-major order: along the last axis first.
    for i in reversed(range(len(sizes))):
        window = sizes[i], kernel_shape[i], strides[i], dilations[i]
        if auto_pad.startswith("SAME"):
            begin, _, outputs = windows.same(*window, auto_pad)
        else:
            ends = pads[i], pads[len(sizes) + i]
            begin, outputs = pads[i], windows.output_count(*window, *ends, ceil_mode, ceil_rule)
        firsts, counts = _windows(outputs, *window, begin)
        taken = np.moveaxis(ranks, 2 + i, -1), np.moveaxis(places, 2 + i, -1)
        taken = _best(*taken, firsts, counts, window[3])
        ranks, places = (np.moveaxis(array, -1, 2 + i) for array in taken)
    numbers = maximum.numbers_of(x.shape, order, storage_order, index_axis, index_layout)
    y = np.full(ranks.shape, cases.highest(name) if minimum else cases.lowest(name), planes.dtype)
    indices = np.full(ranks.shape, -1, index_dtype)
    found = ranks != EMPTY
    batch, channel, *_ = np.nonzero(found)
    for result, source in ((y, planes), (indices, np.broadcast_to(numbers, planes.shape))):
        source = source.reshape(*planes.shape[:2], math.prod(sizes))
        result[found] = source[batch, channel, places[found]]
    y = windows.arranged(y, order)
    apply_activation(y, activation, activation_params)
    return y, windows.arranged(indices, order)


def _ranks(values, nan, minimum):
    """Return integers from 0 on in the order of the values, or in the opposite order.

    NaN is the highest, or -1 if ignored.
    """
    if values.dtype.name == "bfloat16":
        values = values.astype(np.float32)
    if values.dtype.kind != "f":
        return _ranked(values, minimum)
    is_nan = np.isnan(values)
    values = np.where(is_nan, 0, values)
    ranks = _ranked(values, minimum)
    return np.where(is_nan, -1 if nan == "ignore" else values.size, ranks)


def _ranked(values, minimum):
    ranks = np.unique(values, return_inverse=True)[1].reshape(values.shape)
    return values.size - 1 - ranks if minimum else ranks


def _windows(outputs, size, kernel, stride, dilation, begin):
    """Return the first element of each output's window, and how many elements the window has."""
    reach = (outputs + kernel) * max(stride, dilation) + size + begin
    starts = np.arange(outputs).astype(np.int64 if reach < 2**62 else object) * stride - begin
    skipped = np.maximum(0, -(starts // dilation))
    taken = np.minimum(kernel, -((starts - size) // dilation))
    counts = np.maximum(0, taken - skipped)
    firsts = np.where(counts > 0, starts + skipped * dilation, 0)
    return firsts.astype(np.int64), counts.astype(np.int64)


def _best(ranks, places, firsts, counts, dilation):
    """Return the highest rank of each window along the last axis, and its first place.

    The tables hold the best of 1, 2, 4, ... taps from every element on. A window is the better of
    two entries, which may overlap.
    """
    shape = *ranks.shape[:-1], len(counts)
    best, where = np.full(shape, EMPTY), np.zeros(shape, np.int64)
    taps = 1
    while taps <= max(counts, default=0):
        some = np.flatnonzero((counts >= taps) & (counts < 2 * taps))
        last = firsts[some] + (counts[some] - taps) * dilation
        left, right = ((ranks[..., at], places[..., at]) for at in (firsts[some], last))
        best[..., some], where[..., some] = _higher(*left, *right)
        shift = taps * dilation
        if shift >= ranks.shape[-1]:
            break
        ranks, places = _higher(
            *(ranks[..., :-shift], places[..., :-shift]), *(ranks[..., shift:], places[..., shift:])
        )
        taps *= 2
    return best, where


def _higher(ranks, places, later_ranks, later_places):
    """Return the better of each pair of taps: the higher rank, or the earlier one if equal."""
    later = later_ranks > ranks
    return np.where(later, later_ranks, ranks), np.where(later, later_places, places)


# ---------------------------------------------------------------------------------------- plans


def planned_pool(plan, x):
    """Return (values, indices) as the fields of a `MaxPoolPlan` or `MinPoolPlan` say, or raise."""
    order = geometry.layout(plan.layout, plan.input_shape)
    if len(plan.axes) != len(order.spatial):
        raise ValueError("the number of axes")
    maximum.numbers_of(
        plan.input_shape, order, plan.storage_order, plan.index_axis, plan.index_layout
    )
    for size, output, *window, begin, end in plan.axes:
        # The twin would walk over whatever padding there is.
        if output and output != windows.output_count(size, *window, begin, end, False, "clip"):
            raise ValueError("the output of an axis")
    if any(axis.output == 0 for axis in plan.axes):  # parts of a pooling may have none
        y = np.empty(plan.output_shape, x.dtype)
        return y, np.empty(y.shape, np.int64)
    y, places = (_reference.min_pool if plan.minimum else _reference.max_pool)(
        x,
        plan.kernel_shape,
        strides=plan.strides,
        pads=plan.pads,
        dilations=plan.dilations,
        layout=plan.layout,
        nan=plan.nan,
        activation=plan.activation,
        activation_params=plan.activation_params,
        return_indices=True,
    )
    return y, _counted(plan, places, order)


def along(order, values, absent):
    """Return the values of batch, channels and the spatial axes, from one value per array axis."""
    return [absent if axis < 0 else values[axis] for axis in windows.axes_of(order)]


def _counted(plan, places, order):
    """Return indices in the whole that the plan is a part of, from those in the plan's input."""
    extents, starts = along(order, plan.index_shape, 1), along(order, plan.index_origin, 0)
    present = [axis >= 0 for axis in windows.axes_of(order)]
    wide = np.int64 if math.prod(extents) < 2**62 else object
    digits, rest = [], np.maximum(places, 0)
    for size, start in zip(along(order, plan.input_shape, 1)[::-1], starts[::-1], strict=True):
        rest, at = np.divmod(rest, max(1, size))
        digits.insert(0, at.astype(wide) + start)
    batch, channel, *spatial = zip(digits, extents, present, strict=True)
    if plan.index_layout == "NHWC":
        counted = [batch, *spatial, channel]
    else:
        counted = [batch, channel, *(spatial[::-1] if plan.storage_order else spatial)]
    counted = [digit for digit in counted if digit[2]][plan.index_axis :]
    numbers = np.zeros(places.shape, wide)
    for digit, extent, _ in counted:
        numbers = numbers * extent + digit
    return np.where(places < 0, -1, numbers)


def planned_unpool(plan, x, seed):
    """Return (indices, result) as the fields of an `UnpoolPlan` say, or raise."""
    order = geometry.layout(plan.layout, plan.x_shape)
    sizes = [plan.x_shape[axis] for axis in order.spatial]
    extents = [plan.output_shape[axis] for axis in order.spatial]
    # Windows that infer what the plan has inferred: the elements depend on nothing else of them.
    pairs = list(zip(sizes, plan.inferred, strict=True))
    kernels = [max(1, extent - size + 1) for size, extent in pairs]
    cut = [max(0, size - extent) for size, extent in pairs]
    block = extents if plan.index_space == "output" else plan.inferred
    outer = [plan.x_shape[axis] for axis in (order.batch_axis, order.channel_axis) if axis >= 0]
    count = math.prod(outer[plan.index_axis :]) * math.prod(block)
    places = np.random.default_rng(seed).integers(0, max(1, count), plan.x_shape)
    y = _reference.max_unpool(
        x,
        places,
        kernels,
        pads=[0] * len(cut) + cut,
        output_shape=plan.output_shape,
        layout=plan.layout,
        index_space=plan.index_space,
        index_axis=plan.index_axis,
        index_layout=plan.index_layout,
    )
    return places, y
