"""Random calls of max_pool and min_pool, and their comparison with the slow twin."""

import math
from dataclasses import dataclass, replace

import numpy as np

import cases
import fastpool
from fastpool._planning.values import MOST
from fastpool._running import builds as running

from . import oracle
from .arrays import draw_arrangement, in_time, same, untouched
from .attributes import draw_batch, draw_conventions
from .changes import Renamed
from .oracle import MOST_OUTPUTS

MOST_ELEMENTS = 40_000

# Extents around the lanes of every vector and element size.
AROUND = [7, 8, 9, 15, 16, 17, 18, 31, 32, 33, 34, 47, 63, 64, 65, 66, 127, 128, 129, 130]

# Kinds of geometries, the usual ones several times.
GEOMETRIES = ["any"] * 14 + ["whole"] * 2 + ["apart"] * 4 + ["same"] * 4 + ["hostile", "long"]


@dataclass(frozen=True)
class Pooling:
    """One call of max_pool, or of min_pool."""

    shape: tuple
    dtype: str
    kind: str
    seed: int
    repeated: bool  # along the first axis, by a stride of 0
    kernel_shape: object
    attributes: dict
    long: bool  # one axis: too many outputs for the twin
    memory: tuple = ()  # Arrangement of input, values and indices; contiguous if empty
    threads: int = 1
    minimum: bool = False
    legal: bool = True

    def plain(self):
        """The input, contiguous."""
        x = cases.values(self.shape, self.dtype, self.kind, self.seed)
        return np.ascontiguousarray(np.broadcast_to(x[:1], x.shape)) if self.repeated else x

    def x(self):
        """Return the input in the arrangement that was drawn for it."""
        x = self.plain()
        x = self.memory[0].holding(x) if self.memory else x
        return np.broadcast_to(x[:1], x.shape) if self.repeated else x

    def plan(self, attributes):
        make = fastpool.plan_min_pool if self.minimum else fastpool.plan_max_pool
        return make(self.shape, self.plain().dtype, self.kernel_shape, **attributes)


def draw_axis(choices, rank, last, kind, outputs):
    """Return (size, kernel, stride, dilation, begin, end) of an axis of about `outputs` outputs."""
    if kind == "whole":
        around = AROUND if rank < 3 else AROUND[:3]
        kernel = choices.pick([choices.integer(1, 9), choices.pick(around)])
        return kernel, kernel, choices.integer(1, 3), 1, 0, 0
    if kind == "apart" and last:
        kernel = choices.pick([2, 4, 3])
        size = outputs * kernel + choices.integer(0, kernel - 1)
        return size, kernel, kernel, 1, 0, 0
    kernel = choices.integer(1, 4)
    if choices.once_in(4):
        kernel = choices.integer(1, {1: 140, 2: 24}.get(rank, 6))
    stride = choices.pick([1, 1, 2, 2, 3, choices.integer(1, 9)])
    dilation = choices.pick([1, 1, 1, 2, choices.integer(1, 5)])
    extent = (kernel - 1) * dilation + 1
    room = (outputs - 1) * stride + choices.integer(0, stride - 1)
    if kind == "same":
        return choices.pick([room + 1, extent + room]), kernel, stride, dilation, 0, 0
    begin = end = 0
    if choices.once_in(2):
        begin, end = (
            choices.integer(0, choices.pick([kernel // 2, extent + 3, extent + room])) for _ in "be"
        )
    size = max(extent + room - begin - end, choices.pick([0, 1, 2]) if begin else 1)
    if size + begin + end < extent:
        end = extent - size - begin
    return size, kernel, stride, dilation, begin, end


def draw_hostile_axis(choices, rank):
    """Return an axis of few outputs with a window of any size, up to the limits."""
    kernel, stride, dilation = (
        max(1, choices.pick([near, choices.integer(1, 200), 2 ** choices.integer(8, 31)]) + off)
        for near, off in ((choices.integer(1, 5), choices.integer(-2, 2)) for _ in "ksd")
    )
    kernel = min(kernel, 2 ** (52 // rank))  # (an average has at most 2**53 taps)
    return place_window(
        choices, choices.integer(0, 6), kernel, stride, dilation, choices.integer(1, 9)
    )


def draw_long_axis(choices, most):
    """Return an axis of at most `most` elements; windows and pads may be far larger."""
    size = choices.pick([choices.integer(100, 999), choices.integer(1000, 20_000)])
    size = min(size, most)
    far = [choices.integer(1, 9), size, size * choices.integer(1, 9), 2 ** choices.integer(8, 30)]
    kernel = choices.pick(far) + choices.integer(0, 2)
    stride = choices.pick([1, 1, 1, choices.integer(1, 9), *far])
    dilation = choices.pick([1, 1, 1, choices.integer(1, 9), *far])
    outputs = choices.pick([choices.integer(1, 3 * size), choices.integer(1, 9)])
    return place_window(choices, size, kernel, stride, dilation, outputs)


def draw_short_axis(choices):
    """Return an axis for a case with a long axis."""
    size, kernel, stride = choices.integer(1, 5), choices.integer(1, 3), choices.integer(1, 2)
    return place_window(choices, size, kernel, stride, 1, choices.integer(1, 3))


def place_window(choices, size, kernel, stride, dilation, outputs):
    """Return (size, kernel, stride, dilation, begin, end), padded for `outputs` outputs.

    Numbers beyond the limits become smaller.
    """
    kernel, stride, dilation = (min(number, MOST) for number in (kernel, stride, dilation))
    dilation = min(dilation, max(1, MOST // kernel))
    outputs = min(outputs, 1 + (MOST - stride) // stride)
    room = (outputs - 1) * stride + choices.integer(0, stride - 1)
    pads = max(0, room + (kernel - 1) * dilation + 1 - size)
    # Mostly a tap of some output is on an element, or next to one: elsewhere all is padding.
    tap = choices.pick([0, 1, 2, kernel // 2, kernel - 1]) % kernel
    begin = choices.pick([0, choices.integer(0, outputs - 1)]) * stride + tap * dilation
    begin = min(max(begin - choices.integer(-2, size + 1), 0 if size else 1), pads)
    begin = min(max(begin, pads - MOST), MOST)
    return size, kernel, stride, dilation, begin, pads - begin


def overhanging(choices, axis):
    """Return an axis that is too short for its window, but rounds up to one, if there is any."""
    size, kernel, stride, dilation, begin, end = axis
    extent = (kernel - 1) * dilation + 1
    if min(stride, extent) > 1:
        padded = extent - choices.integer(1, min(stride, extent) - 1)
        size = max(1, min(size, padded))
        begin = min(begin, padded - size)
        end = padded - size - begin
    return size, kernel, stride, dilation, begin, end


def draw_activation(choices, dtype):
    activations = [("Relu", ()), ("Clip", (-2.0, 3.0))]
    if dtype in cases.FLOAT_NAMES:
        activations += [("LeakyRelu", (0.25,)), ("HardSigmoid", (0.5, 0.25))]
    return choices.pick(activations)


def draw_axes(choices, rank, kind):
    """Return `rank` axes. Most have outputs for some milliseconds of the twin, some for more."""
    axes, budget = [], 6 * MOST_OUTPUTS if choices.once_in(8) else MOST_OUTPUTS
    for i in reversed(range(rank)):
        last = i == rank - 1
        outputs = choices.integer(1, min(budget, {1: 41, 2: 13}.get(rank, 5)))
        if last and rank < 4 and choices.once_in(2):
            outputs = choices.pick(AROUND)
        budget = max(1, budget // outputs)
        axes.insert(0, draw_axis(choices, rank, last, kind, outputs))
    return axes


def draw_call(choices, geometries=GEOMETRIES, dtypes=cases.DTYPE_NAMES, kinds=cases.VALUE_KINDS):
    """Return a legal call with any attributes except activations, on contiguous arrays."""
    kind = choices.pick(geometries)
    rank = choices.pick(
        {"hostile": [2, 1, 3], "long": [1, 2, 1, 3]}.get(kind, [2] * 4 + [1, 1, 3, 4])
    )
    layout = choices.pick(["NCHW", "NHWC", *cases.layouts(rank)])
    if kind == "hostile":
        axes = [draw_hostile_axis(choices, rank) for _ in range(rank)]
    elif kind == "long":
        axes = [draw_short_axis(choices) for _ in range(rank - 1)]
        room = MOST_ELEMENTS // math.prod(size for size, *_ in axes)
        axes.insert(choices.integer(0, rank - 1), draw_long_axis(choices, room))
    else:
        axes = draw_axes(choices, rank, kind)
    conventions = draw_conventions(choices, rank, layout)
    if kind != "same" and conventions["ceil_mode"] and choices.once_in(8):
        axes = [overhanging(choices, axis) for axis in axes]
    sizes, kernels, strides, dilations, begins, ends = zip(*axes, strict=True)
    many = [4, 5, 8, 16, 17, 33, 65, 130] if layout.endswith("C") else [4, 5, 17, 70, 150]
    counted = sizes
    if kind == "long":
        outputs = [
            max(1, (size + begin + end - (kernel - 1) * dilation - 1) // stride + 1)
            for size, kernel, stride, dilation, begin, end in axes
        ]
        counted = max(sizes, outputs, key=math.prod)
    channels = choices.pick([1, 2, 3, choices.pick(many)])
    batch, channels = draw_batch(choices, counted, channels, MOST_ELEMENTS)
    auto_pad = choices.pick(["SAME_UPPER", "SAME_LOWER"]) if kind == "same" else "NOTSET"
    if auto_pad == "NOTSET" and not any(begins + ends) and choices.once_in(4):
        auto_pad = "VALID"
    return Pooling(
        shape=cases.array_shape(layout, batch, channels, sizes),
        dtype=choices.pick(dtypes),
        kind=choices.pick(kinds),
        seed=choices.integer(0, 2**16),
        repeated=choices.once_in(16),
        kernel_shape=kernels,
        attributes={
            "strides": strides,
            "pads": begins + ends,
            "dilations": dilations,
            "auto_pad": auto_pad,
            **conventions,
        },
        long=kind == "long",
    )


def draw_pooling(choices):
    """Return a call with arrangements and threads, now and then with an activation or odd names."""
    case = draw_call(choices)
    attributes = dict(case.attributes)
    if choices.once_in(12):
        activation = draw_activation(choices, case.dtype)
        attributes["activation"], attributes["activation_params"] = activation
    if choices.once_in(30):
        name = choices.pick(["layout", "nan", "ceil_rule", "index_layout"])
        attributes[name] = Renamed(attributes[name])
    rank = len(case.shape)
    memory = (
        draw_arrangement(choices, rank),
        draw_arrangement(choices, rank, output=True),
        draw_arrangement(choices, rank, output=True),
    )
    threads = choices.integer(2, 5)
    minimum = choices.once_in(4)
    return replace(case, attributes=attributes, memory=memory, threads=threads, minimum=minimum)


def compare_pooling(case, counts, builds, threads):
    """Raise unless each configuration gives what the twin gives; count them in `counts`."""
    x, arranged = case.plain(), case.x()
    attributes = dict(case.attributes)
    if not case.legal:
        try:
            plan = case.plan(attributes)
        except (TypeError, ValueError):
            counts["refused", "attributes"] += 1
            return
        if math.prod(plan.output_shape) > MOST_ELEMENTS:
            counts["refused", "by nobody, but too large for the twin"] += 1
            return
    # A name is what it is equal to, whatever it says when it is asked for a text.
    named = {k: str.__str__(v) if isinstance(v, str) else v for k, v in attributes.items()}
    try:
        named["minimum"] = case.minimum
        expected = oracle.max_pool(x, case.kernel_shape, named, case.long and case.legal)
    except (TypeError, ValueError) as refused:
        expected = type(refused)
    before = arranged.tobytes()
    for build in builds:
        with running.using(build):
            for num_threads in threads:
                for indices in (False, True):
                    more = {"return_indices": indices, "num_threads": num_threads, **attributes}
                    _compare_plan(case, build, more, x, arranged, expected, counts)
    assert arranged.tobytes() == before, "the input was changed"


def _compare_plan(case, build, attributes, x, arranged, expected, counts):
    what = f"{build}, {attributes['num_threads']} threads"
    try:
        with in_time(0, what):
            plan = case.plan(attributes)
    except (TypeError, ValueError) as refused:
        assert type(refused) is expected, f"{what}: refused with {refused!r}"
        counts["refused", "as by the twin"] += 1
        return
    assert isinstance(expected, tuple), f"{what}: planned what the twin refuses with {expected}"
    y, z = expected
    elements = x.size + 2 * y.size
    with in_time(elements, what):
        results = plan(x) if plan.return_indices else (plan(x),)
    same(results[0], y, what)
    out, owner = case.memory[1].empty(y.shape, y.dtype)
    if plan.return_indices:
        same(results[1], z, f"{what}, indices")
        places, places_owner = case.memory[2].empty(z.shape, z.dtype)
        with in_time(elements, what):
            plan(arranged, out, places)
        same(places, z, f"{what}, indices, arranged")
        untouched(places, places_owner, what)
    else:
        with in_time(elements, what):
            plan(arranged, out)
    same(out, y, f"{what}, arranged")
    untouched(out, owner, what)
    counts["case", "long pooling" if case.long else "pooling"] += 2
    for arrangement in ("plain", "arranged"):
        counts["arrays", arrangement] += 1
    counts["dtype", case.dtype] += 2
    counts["layout", plan.layout] += 2
    counts["build", build] += 2
    counts["threads", "1" if plan.num_threads == 1 else "several"] += 2
    counts["outputs", "values and indices" if plan.return_indices else "values"] += 2
    counts["of", "minima" if case.minimum else "maxima"] += 2
    way = cases.kernel_path(plan)
    counts["strategy", f"{build} {way.partition(', ')[0]}"] += 2
    counts["path", f"{build} {way}"] += 2
