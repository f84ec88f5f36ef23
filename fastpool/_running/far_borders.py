"""Pool where windows or padding are much longer than an array, axis by axis.

The taps of a window are taken by a tree of two halves and an odd tap, which is the order that means
in pairs are added in. Windows of one length repeat: after a period, or once all of their taps are
past an edge. So each length of the tree, of which there are as many as the logarithm of the taps,
has few different windows.
"""

import math
from fractions import Fraction

import numpy as np

from .._planning.average_pool import AvgPool, rounded
from .._planning.borders import period
from .._planning.dtypes import is_float, limits
from .._planning.geometry import Border
from .._planning.parts import tile
from .borders import element_at, fill_empty, index_of

# Without a border: what stands around arrays; outputs along an axis, and elements, at a time; more
# elements if parts would be more.
ZEROS = Border("constant", 0, 0)
OUTPUTS, ELEMENTS, PARTS = 1 << 12, 1 << 18, 16


class _Places:
    """The places of an axis as rows of an array: its elements, then the constant, then nothing."""

    def __init__(self, axis, border):
        self.axis, self.mode = axis, border.mode
        self.limit = axis.size + border.end  # from there on nothing stands
        self.period = period(axis.size, border.mode)
        self.short, self.table = 0, None

    def alike(self, starts, taps):
        """Return for each window the start of one that holds the very same."""
        size, dilation = self.axis.size, self.axis.dilation
        length = (taps - 1) * dilation
        cut = (starts + length >= self.limit) & (starts < self.limit)
        if self.period:
            same = starts % self.period - (length // self.period + 2) * self.period
        else:
            same = np.clip(starts, -length - 1, size)
        same = np.where(starts >= self.limit, self.limit, same)
        return np.where(cut, starts, same)

    def rows(self, places):
        size = self.axis.size
        standing = np.minimum(places, self.limit - 1)
        rows = element_at(standing, size, self.mode) if size else np.full(places.shape, -1)
        rows = np.where(rows < 0, size, rows)
        return np.where(places < self.limit, rows, size + 1)

    def share(self, arrays, combine):
        """Keep what the windows of a few taps hold at all places, which zeros stand around."""
        step, self.short = self.axis.dilation, self.axis.kernel
        while 4 * (self.short - 1) * step > self.axis.size:
            self.short //= 2
        self.before = (self.short - 1) * step
        around = [(self.before, self.before + 1), *[(0, 0)] * (arrays[0].ndim - 1)]
        self.table = lines = [np.pad(array[: self.axis.size], around) for array in arrays]
        for shift in range(self.short.bit_length() - 1)[::-1]:
            taps = self.short >> shift
            far = taps // 2 * step
            self.table = combine([a[:-far] for a in self.table], [a[far:] for a in self.table])
            if taps % 2:
                last = [line[2 * far :] for line in lines]
                self.table = combine([a[:-step] for a in self.table], last)

    def totals(self, arrays, starts, taps, combine):
        """Return arrays of a row for each window: `combine` of its taps."""
        if taps == self.short:
            rows = np.where(starts < -self.before, self.axis.size, starts) + self.before
            return [sums[np.minimum(rows, len(sums) - 1)] for sums in self.table]
        if taps == 1:
            rows = self.rows(starts)
            return [array[rows] for array in arrays]
        starts, back = np.unique(self.alike(starts, taps), return_inverse=True)
        half, step = taps // 2, self.axis.dilation
        both = self.totals(arrays, np.concatenate([starts, starts + half * step]), half, combine)
        n = len(starts)
        done = combine([array[:n] for array in both], [array[n:] for array in both])
        if taps % 2:
            last = self.totals(arrays, starts + (taps - 1) * step, 1, combine)
            done = combine(done, last)
        return [array[back] for array in done]


def _along(plan, order, arrays, constants, nothing, combine):
    """Reduce the spatial axes of arrays one after another, in an `order`."""
    # Past an edge every tap is the constant, so along the axes to come one of it is enough.
    outside = [
        np.full((1,) * array.ndim, constant, array.dtype)
        for array, constant in zip(arrays, constants, strict=True)
    ]
    for i in order:
        axis, place = plan.axes[i], plan.spatial[i]
        border = plan.borders[i] if plan.borders else ZEROS
        starts = np.arange(axis.output) * axis.stride - axis.begin

        def reduced(groups, axis=axis, border=border, place=place, starts=starts):
            moved = []
            for group, absent in zip(groups, nothing, strict=True):
                rows = np.concatenate([np.moveaxis(array, place, 0) for array in group])
                last = np.full((1, *rows.shape[1:]), absent, rows.dtype)
                moved.append(np.concatenate([rows, last]))
            places = _Places(axis, border)
            if not plan.borders:
                places.share(moved, combine)
            blocks = [starts[at : at + OUTPUTS] for at in range(0, axis.output, OUTPUTS)]
            done = [places.totals(moved, block, axis.kernel, combine) for block in blocks]
            done = map(np.concatenate, zip(*done, strict=True))
            return [np.moveaxis(array, 0, place) for array in done]

        groups = []
        for array, constant in zip(arrays, outside, strict=True):
            shape = (*array.shape[:place], 1, *array.shape[place + 1 :])
            groups.append([array, np.broadcast_to(constant, shape)])
        arrays = reduced(groups)
        if i != order[-1] and any(border.mode == "constant" for border in plan.borders):
            outside = reduced([[constant] * (axis.size + 1) for constant in outside])
    return arrays


class FarBordered:
    """A plan that NumPy runs here."""

    kernel = None

    def __init__(self, plan):
        self.plan = plan

    def run(self, pool, x, *into):
        """Pool `x` into arrays of which the last may be None, without `pool`."""
        plan = self.plan
        if not isinstance(plan, AvgPool) or plan.borders:
            return (_average if isinstance(plan, AvgPool) else _select)(plan, x, *into)
        # In parts of the longest axis that windows take element by element.
        kernels = {i: axis.kernel for i, axis in zip(plan.spatial, plan.axes, strict=True)}
        along = max(range(x.ndim), key=lambda i: kernels.get(i, 1) == 1 and x.shape[i])
        outputs, stop = [slice(0, n) for n in plan.output_shape], plan.output_shape[along]
        most = max(1, stop // PARTS, ELEMENTS * stop // max(1, x.size))
        most = most if kernels.get(along, 1) == 1 else stop
        for first in range(0, stop, most):
            outputs[along] = slice(first, min(first + most, stop))
            part = tile(plan, tuple(outputs))
            _average(part.plan, x[part.read], into[0][part.write])


def _select(plan, x, y, z):
    """Write maxima or minima into `y` and, if it is not None, their indices into `z`."""
    ignore, floats = plan.nan == "ignore", is_float(plan.dtype)
    nothing = math.nan if ignore and floats else plan.of_nothing

    def first_of(one, two):
        (a, i), (b, j) = one, two
        with np.errstate(invalid="ignore"):
            better = b < a if plan.minimum else b > a
        if floats and ignore:
            better |= np.isnan(a) & ~np.isnan(b)
        elif floats:
            better |= np.isnan(b) & ~np.isnan(a)
        return np.where(better, b, a), np.where(better, j, i)

    places = np.arange(x.size).reshape(x.shape)
    order = range(len(plan.axes))[::-1]  # the first axis decides last which tap is the first
    arrays = _along(plan, order, [x, places], [plan.border_value or 0, -1], [nothing, -1], first_of)
    y[...] = arrays[0]
    fill_empty(plan, (y, plan.of_nothing))
    if z is not None:
        found = np.unravel_index(np.maximum(arrays[1], 0), x.shape)
        z[...] = np.where(arrays[1] < 0, -1, index_of(plan, found))
        fill_empty(plan, (z, -1))


@np.errstate(all="ignore")
def _average(plan, x, y):
    """Write means into `y`."""
    floats, order = is_float(plan.dtype), range(len(plan.axes))
    exact, ignore = not floats or plan.numerics == "exact", floats and plan.nan == "ignore"
    wide = np.float64 if exact or "float64" in (plan.dtype, plan.result_dtype) else np.float32
    # The constant is an element more.
    values, lost = np.append(x, np.array(plan.border_value or 0).astype(x.dtype)), 0.0
    if floats:
        values = values.astype(wide)
        if ignore:
            many = plan.borders or x.size > 1 << 24
            lost = np.isnan(values).astype(np.float64 if many else np.float32)
            values[lost > 0] = -0.0  # adding it to any number changes nothing
    columns = [(values, -0.0)]
    if exact:
        finite = np.isfinite(values)
        numbers = np.where(finite, values, 0) if floats else values
        columns = [(_fractions(numbers), Fraction(0)), (np.where(finite, 0, values) * 1.0, -0.0)]
    arrays, nothing = zip(*columns, *[(lost, 0.0)] * ignore, strict=True)
    constants = [array[-1] for array in arrays]
    arrays = [array[:-1].reshape(x.shape) for array in arrays]

    def add(one, two):
        return [a + b for a, b in zip(one, two, strict=True)]

    if exact:  # (in any order: last the axis that grows most, whose windows repeat)
        order = sorted(order, key=lambda i: plan.axes[i].output / max(1, plan.axes[i].size))
    sums = _along(plan, order, arrays, constants, nothing, add)
    lost = sums.pop() if ignore else np.zeros(y.shape, bool)
    pairs = zip(plan.axes, plan.borders, strict=False)
    ends = [(-axis.begin, axis.size + border.end) for axis, border in pairs]
    standing = _counts(plan, ends or [(0, axis.size) for axis in plan.axes])
    divisors = _counts(plan, plan.counted) - lost
    if plan.divisor is not None:
        divisors = np.full(lost.shape, float(plan.divisor))
    if exact:
        _divide_exactly(plan, *sums, divisors, y)
    else:
        y[...] = sums[0] / divisors.astype(wide)
    if floats:
        y[lost == standing] = math.nan
    y[np.broadcast_to(standing == 0, y.shape)] = 0


def _counts(plan, ends):
    """Return how many taps of each window lie between the `ends` of each axis, or all if None."""
    counts = np.ones((1,) * len(plan.output_shape))
    for i, (axis, place) in enumerate(zip(plan.axes, plan.spatial, strict=True)):
        along = axis.kernel
        if ends is not None:
            starts = np.arange(axis.output) * axis.stride - axis.begin
            taps = (-((starts - end) // axis.dilation) for end in ends[i])
            first, stop = (np.clip(tap, 0, axis.kernel) for tap in taps)
            along = np.maximum(stop - first, 0)
        counts = counts * np.reshape(along, [-1 if i == place else 1 for i in range(counts.ndim)])
    return counts


_fractions = np.frompyfunc(Fraction, 1, 1)


def _divide_exactly(plan, totals, specials, divisors, y):
    """Write exact sums, over their divisors, into `y`, each rounded once.

    `specials` are sums of infinities and NaN, and 0 where there are none.
    """
    integers = not is_float(plan.result_dtype)
    least, most = limits(plan.result_dtype) if integers else (0, 0)
    means = {}  # (windows that repeat have the very same sum: uint8 1x5x17x17x3 6.7 -> 0.3 s)
    for i, (total, special) in enumerate(zip(totals.flat, specials.flat, strict=True)):
        divisor = int(divisors.flat[i])
        key = id(total), divisor
        if special or not divisor:
            y.flat[i] = special / (divisor or 1)
            continue
        if key not in means:
            mean = total / divisor
            if integers:
                mean = min(max(rounded(mean, plan.rounding), least), most)
            means[key] = mean if integers or plan.result_dtype == "float64" else _to_odd(mean)
        y.flat[i] = means[key]


def _to_odd(value):
    """Return a float64 that rounds to narrower types as a Fraction does: its last bit is sticky."""
    near = float(value)
    if near == value or np.float64(near).view(np.int64) & 1:
        return near
    return math.nextafter(near, math.inf if value > near else -math.inf)
