"""Random max_pool calls and their comparison with the slow twin."""

import math
from dataclasses import dataclass

import numpy as np

import cases
import fastpool
from fastpool._running import builds as running

from . import oracle
from .arrays import Arrangement, draw_arrangement, in_time, same, untouched
from .changes import Renamed
from .oracle import MOST_OUTPUTS

MOST_ELEMENTS = 40_000

# Extents around the lanes of every vector and element size.
AROUND = [7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 66, 127, 128, 129, 130]


@dataclass(frozen=True)
class Pooling:
    """One case of max_pool."""

    shape: tuple
    dtype: str
    kind: str
    seed: int
    repeated: bool  # along the first axis, by a stride of 0
    kernel_shape: object
    attributes: dict
    threads: int
    x: Arrangement
    y: Arrangement
    z: Arrangement
    long: bool  # one axis: too many outputs for the twin
    legal: bool = True


def draw_axis(choices, rank, last, kind, outputs):
    """(size, kernel, stride, dilation, begin, end) of one axis with about so many outputs."""
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
    begin = end = 0
    if kind != "same" and choices.once_in(2):
        begin, end = (
            choices.integer(0, choices.pick([kernel // 2, extent + 2, extent + room])) for _ in "be"
        )
    size = max(extent + room - begin - end, choices.pick([0, 1, 2]) if begin + end else 1)
    if size + begin + end < extent:
        end = extent - size - begin
    return size, kernel, stride, dilation, begin, end


def draw_hostile_axis(choices):
    """An axis of any magnitude, up to far beyond 64 bits, with few outputs."""
    kernel, stride, dilation = (
        choices.pick([choices.integer(1, 5), choices.integer(1, 200), 2 ** choices.integer(8, 70)])
        + choices.integer(0, 2)
        for _ in "ksd"
    )
    return place_window(
        choices, choices.integer(0, 6), kernel, stride, dilation, choices.integer(1, 9)
    )


def draw_long_axis(choices, most):
    """An axis of `most` elements or fewer, with windows and pads that may be far larger."""
    size = choices.pick([choices.integer(100, 999), choices.integer(1000, 20_000)])
    size = min(size, most)
    far = [choices.integer(1, 9), size, size * choices.integer(1, 9), 2 ** choices.integer(8, 40)]
    kernel = choices.pick(far) + choices.integer(0, 2)
    stride = choices.pick([1, 1, 1, choices.integer(1, 9), *far])
    dilation = choices.pick([1, 1, 1, choices.integer(1, 9), *far])
    outputs = choices.pick([choices.integer(1, 3 * size), choices.integer(1, 9)])
    return place_window(choices, size, kernel, stride, dilation, outputs)


def draw_short_axis(choices):
    """One next to a long axis."""
    size, kernel, stride = choices.integer(1, 5), choices.integer(1, 3), choices.integer(1, 2)
    return place_window(choices, size, kernel, stride, 1, choices.integer(1, 3))


def place_window(choices, size, kernel, stride, dilation, outputs):
    """(size, kernel, stride, dilation, begin, end) with the padding for so many outputs."""
    room = (outputs - 1) * stride + choices.integer(0, min(stride - 1, 2**62))
    pads = max(0, room + (kernel - 1) * dilation + 1 - size)
    # Mostly a tap of some output is on an element, or next to one: elsewhere all is padding.
    tap = choices.pick([0, 1, 2, kernel // 2, kernel - 1]) % kernel
    begin = choices.pick([0, choices.integer(0, outputs - 1)]) * stride + tap * dilation
    begin = min(max(begin - choices.integer(-2, size + 1), 0), pads)
    return size, kernel, stride, dilation, begin, pads - begin


def draw_activation(choices, dtype):
    activations = [("Relu", ()), ("Clip", (-2.0, 3.0))]
    if dtype in cases.FLOAT_NAMES:
        activations += [("LeakyRelu", (0.25,)), ("HardSigmoid", (0.5, 0.25))]
    return choices.pick(activations)


def draw_pooling(choices):
    rank = choices.pick([2, 2, 2, 2, 1, 1, 3, 4])
    layout = choices.pick(["NCHW", "NHWC", *cases.layouts(rank)])
    kind = choices.pick(["any"] * 7 + ["whole", "apart", "apart", "same", "hostile"])
    if kind == "hostile" and choices.once_in(2):
        kind = "long"
    if kind == "hostile":
        rank = min(rank, 3)
        layout = choices.pick(cases.layouts(rank))
        axes = [draw_hostile_axis(choices) for _ in range(rank)]
    elif kind == "long":
        rank = choices.pick([1, 2, 1, 3])
        layout = choices.pick(cases.layouts(rank))
        axes = [draw_short_axis(choices) for _ in range(rank - 1)]
        room = MOST_ELEMENTS // math.prod(size for size, *_ in axes)
        axes.insert(choices.integer(0, rank - 1), draw_long_axis(choices, room))
    else:
        axes, budget = [], MOST_OUTPUTS
        for i in reversed(range(rank)):
            last = i == rank - 1
            outputs = choices.integer(1, min(budget, {1: 40, 2: 9}.get(rank, 4)))
            if last and rank < 4 and choices.once_in(2):
                outputs = choices.pick(AROUND)
            budget = max(1, budget // outputs)
            axes.insert(0, draw_axis(choices, rank, last, kind, outputs))
    sizes, kernels, strides, dilations, begins, ends = zip(*axes, strict=True)
    many = [5, 8, 16, 17, 33, 65, 130] if layout.endswith("C") else [5, 17, 70, 150]
    channels = choices.pick([1, 2, 3, choices.pick(many)])
    batch = choices.pick([1, 1, 2, 3, 8])
    room = MOST_ELEMENTS // max(1, math.prod(sizes))
    if kind == "long":
        outputs = [
            (size + begin + end - (kernel - 1) * dilation - 1) // stride + 1
            for size, kernel, stride, dilation, begin, end in axes
        ]
        room = min(room, MOST_ELEMENTS // math.prod(outputs))
    channels = max(1, min(channels, room))
    batch = max(1, min(batch, room // channels))
    if choices.once_in(50):
        batch, channels = choices.pick([(0, channels), (batch, 0)])
    dtype = choices.pick(cases.DTYPE_NAMES)
    physical = layout.endswith("C") and choices.once_in(2)
    storage_order = 0 if physical else choices.integer(0, 1)
    first = cases.first_spatial_axis(layout)
    last_axis = first if storage_order else rank + first - 1
    auto_pad = choices.pick(["SAME_UPPER", "SAME_LOWER"]) if kind == "same" else "NOTSET"
    if auto_pad == "NOTSET" and not any(begins + ends) and choices.once_in(4):
        auto_pad = "VALID"
    attributes = {
        "strides": strides,
        "pads": begins + ends,
        "dilations": dilations,
        "auto_pad": auto_pad,
        "ceil_mode": choices.pick([False, True]),
        "ceil_rule": choices.pick(["clip", "keep"]),
        "layout": layout,
        "nan": choices.pick(["propagate", "ignore"]),
        "storage_order": storage_order,
        "index_axis": choices.integer(0, last_axis) - choices.pick([0, rank + first]),
        "index_dtype": choices.pick(["int64", "int32"]),
        "index_layout": "NHWC" if physical else "NCHW",
    }
    if choices.once_in(12):
        activation = draw_activation(choices, dtype)
        attributes["activation"], attributes["activation_params"] = activation
    if choices.once_in(30):
        name = choices.pick(["layout", "nan", "ceil_rule", "index_layout"])
        attributes[name] = Renamed(attributes[name])
    shape = cases.array_shape(layout, batch, channels, sizes)
    return Pooling(
        shape=shape,
        dtype=dtype,
        kind=choices.pick(cases.VALUE_KINDS),
        seed=choices.integer(0, 2**16),
        repeated=choices.once_in(16),
        kernel_shape=kernels,
        attributes=attributes,
        threads=choices.integer(2, 5),
        x=draw_arrangement(choices, len(shape)),
        y=draw_arrangement(choices, len(shape), output=True),
        z=draw_arrangement(choices, len(shape), output=True),
        long=kind == "long",
    )


def compare_pooling(case, counts, builds, threads):
    """Every way of running the case gives what the twin gives; `counts` gets what was run."""
    x = cases.values(case.shape, case.dtype, case.kind, case.seed)
    arranged, _ = case.x.empty(case.shape, x.dtype)
    arranged[...] = x
    if case.repeated:
        arranged = np.broadcast_to(arranged[:1], case.shape)
        x = np.ascontiguousarray(np.broadcast_to(x[:1], case.shape))
    attributes = dict(case.attributes)
    if not case.legal:
        try:
            plan = fastpool.plan_max_pool(case.shape, x.dtype, case.kernel_shape, **attributes)
        except (TypeError, ValueError):
            counts["refused", "attributes"] += 1
            return
        if math.prod(plan.output_shape) > MOST_ELEMENTS:
            counts["refused", "by nobody, but too large for the twin"] += 1
            return
    # A name is what it is equal to, whatever it says when it is asked for a text.
    named = {k: str.__str__(v) if isinstance(v, str) else v for k, v in attributes.items()}
    try:
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
            plan = fastpool.plan_max_pool(case.shape, x.dtype, case.kernel_shape, **attributes)
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
    out, owner = case.y.empty(y.shape, y.dtype)
    if plan.return_indices:
        same(results[1], z, f"{what}, indices")
        places, places_owner = case.z.empty(z.shape, z.dtype)
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
    way = cases.kernel_path(plan)
    counts["form", f"{build} {way.partition(', ')[0]}"] += 2
    counts["path", f"{build} {way}"] += 2
