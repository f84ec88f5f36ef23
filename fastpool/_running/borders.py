"""Pool with a border: the windows inside of an array, and strips of outputs at its edges.

A strip reads few elements: those under its windows, in their order, copied into a small array with
the values of padding. It is pooled without padding. Kernels fill the padding of some columns
themselves (`fills_columns`). Where that array would be much larger than the axis (long windows, far
padding, large dilations), `far_borders` takes the whole pooling.
"""

import numpy as np

from .._planning.average_pool import AvgPool
from .._planning.borders import adds_nothing, inside, period, positions
from .._planning.dtypes import is_float
from .._planning.indexing import index_base, index_strides
from .._planning.parts import part, tile
from .._planning.plan_checks import changed

# A strip reads at most MOST_SHARE times the elements and outputs of its axis, and FEW more.
MOST_SHARE, FEW = 4, 256
# Columns of padding that kernels fill, at most: a plan keeps a number for each.
MOST_BEYOND = 256


def plain_plan(plan, keeps_activation=False):
    """Return a plan without borders and activation, whose outputs inside are those of `plan`."""
    changes = {"borders": ()}
    if not keeps_activation:
        changes |= {"activation": None, "activation_params": ()}
    if isinstance(plan, AvgPool):
        every = plan.beyond == "count"
        counted = None if every else tuple((0, axis.size) for axis in plan.axes)
        changes.update(count_include_pad=every, counted=counted)
    return changed(plan, changes)


def edges(plan):
    """Return, for each spatial axis, the outputs inside if its padding matters, else None.

    The padding of () is a constant that only competes with each result next to it.
    """
    if 0 in plan.output_shape:
        return [None] * len(plan.axes)
    selects = not isinstance(plan, AvgPool) and not plan.return_indices
    ends = [inside(axis) for axis in plan.axes]
    for i, (axis, border) in enumerate(zip(plan.axes, plan.borders, strict=True)):
        if ends[i] == (0, axis.output) or (selects and adds_nothing(axis, border)):
            ends[i] = None
        elif selects and border.mode == "constant" and border.value == border.value:
            ends[i] = ()  # what is not NaN is compared with the results
    return ends


def is_far(plan, within):
    """Would a strip read much more than its axes have?"""
    if isinstance(plan, AvgPool) and plan.numerics == "sequential" and is_float(plan.dtype):
        return False  # it adds every tap
    read = elements = outputs = 1
    for axis, border, ends in zip(plan.axes, plan.borders, within, strict=True):
        if ends:
            strips = (*_strips(axis, ends), (0, axis.output))
            longest = max(positions(axis, border, *strip)[2] for strip in strips)
            if longest > MOST_SHARE * (axis.size + axis.output) + FEW:
                return True
            read *= longest
            elements *= axis.size
            outputs *= axis.output
    return read > MOST_SHARE * (elements + outputs) + FEW**2  # (of axes of which none is far)


def _strips(axis, ends):
    first, stop = ends
    return [pair for pair in ((0, first), (stop, axis.output)) if pair[0] < pair[1]]


class Bordered:
    """The parts of a plan with borders: a tile of the windows inside, and strips."""

    def __init__(self, plan, within, fills, prepare):
        """`within` are the `edges`; ``prepare(plan)`` returns what a part needs to run.

        ``fills(plan, border)`` returns the work of kernels that fill the padding of columns, or
        None. It is the second argument of `prepare`.
        """
        self.plan, plain = plan, plain_plan(plan)
        boxes = [(0, axis.output) for axis in plan.axes]
        self.parts = []
        work = None
        if within[-1] is not None:
            inner = [ends or box for ends, box in zip(within[:-1], boxes, strict=False)]
            inner = self._inner(plain, [*inner, boxes[-1]])
            if inner and inner.plan.axes[-1].size == plan.axes[-1].size:
                work = _filling(inner.plan, plan.borders[-1], fills)
            if work:
                within = [*within[:-1], boxes[-1]]  # (strips at other edges copy it)
        for i, ends in enumerate(within):
            if not ends or ends == boxes[i]:
                continue
            for strip in _strips(plan.axes[i], ends):
                box = (*boxes[:i], strip, *boxes[i + 1 :])
                gathered = [j >= i and bool(within[j]) for j in range(len(boxes))]
                self.parts.append(_Strip(plan, plain, box, gathered, prepare))
            boxes[i] = ends
        self.competing = [
            (place, [run for _, run in _runs(_touching(axis, border))])
            for axis, border, place, ends in zip(
                plan.axes, plan.borders, plan.spatial, within, strict=True
            )
            if ends == ()
        ]
        self.inner = self._inner(plain, boxes)
        if self.inner:
            self.inner = self.inner._replace(plan=prepare(self.inner.plan, work))

    @staticmethod
    def _inner(plan, boxes):
        """Return the tile of some outputs along each axis, or None if there are none."""
        if not all(first < stop for first, stop in boxes):
            return None
        outputs = [slice(None)] * len(plan.output_shape)
        for place, ends in zip(plan.spatial, boxes, strict=True):
            outputs[place] = slice(*ends)
        return tile(plan, tuple(outputs))

    def run(self, pool, x, *into):
        """Pool `x` into arrays of which the last may be None; `pool` is a function of `execute`."""
        if self.inner:
            views = [None if array is None else array[self.inner.write] for array in into]
            _pooled(pool, self.inner.plan, x[self.inner.read], *views)
        for strip in self.parts:
            strip.run(pool, x, *into)
        for place, outputs in self.competing:
            for chosen in outputs:
                view = into[0][(slice(None),) * place + (chosen,)]
                with np.errstate(invalid="ignore", over="ignore"):
                    self._better(view, view.dtype.type(self.plan.border_value), out=view)
        if self.competing:
            fill_empty(self.plan, (into[0], self.plan.of_nothing))

    @property
    def _better(self):
        if self.plan.nan == "ignore":
            return np.fmin if self.plan.minimum else np.fmax
        return np.minimum if self.plan.minimum else np.maximum

    @property
    def kernel(self):
        """What was prepared for most of the outputs."""
        return self.inner.plan if self.inner else self.parts[0].prepared


def _filling(plan, border, fills):
    """Return the work of kernels that fill the padding of columns, or None."""
    axis = plan.axes[-1]
    begin, end = axis.begin, border.end
    around = 0 <= begin and 0 <= end and begin + axis.size + end == axis.span(axis.output)
    if not (around and axis.size and 0 < begin + end <= MOST_BEYOND):
        return None
    if border.value is not None and border.value != border.value:
        return None
    work = fills(plan, border)
    if work is None:
        return None
    places = np.concatenate([np.arange(-begin, 0), np.arange(axis.size, axis.size + end)])
    outside = np.zeros(8, np.uint8)
    if border.mode == "constant":
        value = np.array([border.value], plan.dtype).view(np.uint8)
        outside[: value.size] = value
    constant = int(outside.view(np.int64)[0])
    return work._replace(beyond=(constant, *element_at(places, axis.size, border.mode).tolist()))


class _Strip:
    """Outputs at an edge, with the plan of the array that their windows are copied into."""

    def __init__(self, plan, plain, box, gathered, prepare):
        """`box` are the outputs along each axis, `gathered` says along which padding is copied."""
        shape, outputs = list(plan.input_shape), list(plan.output_shape)
        axes, self.plan = [], plan
        # Of each axis of x: a slice, or the element at each position, -1 for a constant.
        self.read, self.write = [slice(None)] * len(shape), [slice(None)] * len(shape)
        for i, place in enumerate(plan.spatial):
            axis, ends = plan.axes[i], box[i]
            if gathered[i]:
                self.read[place], axis = _copied(axis, plan.borders[i], *ends)
                shape[place] = len(self.read[place])
            else:
                (low, high), axis = part(axis, *ends)
                self.read[place], shape[place] = slice(low, high), high - low
            self.write[place] = slice(*ends)
            outputs[place] = axis.output
            axes.append(axis)
        self.write = tuple(self.write)
        copies = [(i, _runs(read)) for i, read in enumerate(self.read) if type(read) is not slice]
        extents = zip(shape, plan.input_shape, strict=True)
        growth = [after / max(1, before) for after, before in extents]
        self.copies = sorted(copies, key=lambda copy: growth[copy[0]])  # the shortest first
        self.constant = plan.border_value
        changes = {
            "input_shape": tuple(shape),
            "output_shape": tuple(outputs),
            "axes": tuple(axes),
            "given": None,
        }
        if isinstance(plan, AvgPool):
            if plain.counted is not None:
                changes["counted"] = tuple((0, axis.size) for axis in axes)
        else:
            changes.update(
                index_shape=tuple(shape),
                index_origin=(0,) * len(shape),
                index_axis=0,
                storage_order=0,
                index_layout="NHWC" if plan.channels_last else "NCHW",
                index_dtype="int64",
            )
        self.prepared = prepare(changed(plain, changes))
        self.shape = tuple(shape)

    def run(self, pool, x, y, *indices):
        copied = x[tuple(read if isinstance(read, slice) else slice(None) for read in self.read)]
        for place, runs in self.copies:
            shape = (*copied.shape[:place], self.shape[place], *copied.shape[place + 1 :])
            longer, before = np.empty(shape, x.dtype), (slice(None),) * place
            for into, source in runs:
                longer[(*before, into)] = copied[(*before, source)] if source else self.constant
            copied = longer
        nothing = (None,) * len(indices)
        results = _pooled(pool, self.prepared, copied, y[self.write], *nothing)
        if any(array is not None for array in indices):
            indices[0][self.write] = self._index(results[1])

    def _index(self, z):
        """Return the indices in the whole array, given those in the copied one."""
        constant = z < 0
        if constant.all():
            return z
        coordinates = list(np.unravel_index(np.maximum(z, 0), self.shape))
        for place, read in enumerate(self.read):
            if isinstance(read, slice):
                coordinates[place] = coordinates[place] + (read.start or 0)
            else:
                coordinates[place] = read[coordinates[place]]
                constant |= coordinates[place] < 0
        return np.where(constant, -1, index_of(self.plan, coordinates))


def _touching(axis, border):
    """Return the outputs whose windows have a tap in the padding of an axis."""
    first, stop = inside(axis)
    last = np.arange(max(first, 0), axis.output)
    last = last[last >= stop] if first < stop else np.arange(axis.output)
    starts = last * axis.stride - axis.begin
    taps = np.maximum(0, -((starts - axis.size) // axis.dilation))  # before the padding
    after = (taps < axis.kernel) & (starts + taps * axis.dilation < axis.size + border.end)
    touching = last[after | (starts < 0)]
    return touching if first >= stop else np.concatenate([np.arange(first), touching])


def fill_empty(plan, *filled):
    """Give the windows that start past all padding, at the end of an axis, a value each."""
    for axis, border, place in zip(plan.axes, plan.borders, plan.spatial, strict=True):
        first = axis.starting_before(axis.size + border.end)
        for array, value in filled:
            array[(slice(None),) * place + (slice(first, None),)] = value


def _pooled(pool, prepared, x, *into):
    """Pool by compiled code if it can use the arrays as they are, else by `pool`."""
    results = prepared.run(x, *into)
    return pool(prepared, x, *into) if results is None else results


def _copied(axis, border, first, stop):
    """Return the elements that stand under outputs, and the `Axis` of an array of these."""
    start, count, span = positions(axis, border, first, stop)
    elements = element_at(np.arange(start, start + count), axis.size, border.mode)
    beyond = span - count
    pads = {"begin": 0, "end": beyond} if count else {"begin": beyond, "end": 0}
    return elements, axis._replace(size=count, output=stop - first, **pads)


def _runs(elements):
    """Return pairs of slices: of an array of these elements, and of what is copied there.

    The second has one element for all of the first, or is None, for the constant.
    """
    steps, constant = np.diff(elements), elements < 0
    starts = np.ones(len(elements), bool)
    starts[1:] = (constant[1:] != constant[:-1]) | (np.abs(steps) > 1)
    starts[2:] |= steps[1:] != steps[:-1]
    bounds = [*np.flatnonzero(starts).tolist(), len(elements)]
    runs = []
    for start, stop in zip(bounds, bounds[1:], strict=False):
        first, last = int(elements[start]), int(elements[stop - 1])
        if last >= first:
            source = slice(first, last + 1)
        else:
            source = slice(first, last - 1 if last else None, -1)
        runs.append((slice(start, stop), None if first < 0 else source))
    return runs


def element_at(places, size, mode):
    """Return the element that stands at each place of an axis, or -1 for a constant."""
    if mode == "constant":
        return np.where((places >= 0) & (places < size), places, -1)
    if mode == "nearest":
        return np.clip(places, 0, size - 1)
    every = period(size, mode)
    places = places % every
    if mode == "wrap":
        return places
    # Two places of a period hold one element: their sum is odd if the last one is there twice.
    return np.minimum(places, (every - 1 if mode == "reflect" else 2 * size - 2) - places)


def index_of(plan, coordinates):
    """Return the index that a plan counts for elements at some coordinates along each axis."""
    strides = index_strides(plan)
    total = index_base(plan, strides)
    places = plan.batch_axis, plan.channel_axis, *plan.spatial
    for place, stride in zip(places, strides, strict=True):
        if place >= 0:
            total = total + coordinates[place] * stride
    return total
