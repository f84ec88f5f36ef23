"""Configurations of pooling and unpooling, and their comparison with the slow twin.

compare.py draws them at random, fuzz.py from what a coverage-guided fuzzer hands it. One drawn case
is many configurations: every build, one thread and several, values alone and with indices, plain
arrays and arrays that lie somehow in larger ones.
"""

import math
import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import cases
import fastpool
from fastpool import _dispatch, _reference

# The twin takes some 15 microseconds per output position; planes are nearly free.
MOST_OUTPUTS = 300
MOST_ELEMENTS = 40_000

# Extents around the lanes of every vector and element size.
AROUND = [7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 66, 127, 128, 129, 130]
FILL = 1  # every byte beside an output; also a legal bool


class Choices:
    """What draws: `integer(low, high)`, both included. The first option is the plainest."""

    def __init__(self, integer):
        self.integer = integer

    def pick(self, options):
        return options[self.integer(0, len(options) - 1)]

    def once_in(self, times):
        return self.integer(0, times - 1) == times - 1


# --------------------------------------------------------------------------------- arrangements


@dataclass(frozen=True)
class Arrangement:
    """How an array lies in a larger one."""

    order: tuple  # its axes, from the slowest in memory to the fastest
    steps: tuple  # elements from one to the next, along each axis; negative is backwards
    before: tuple  # elements of the larger one beside it
    after: tuple
    offset: int  # bytes before the first element: not aligned
    swapped: bool  # the other byte order

    def empty(self, shape, dtype):
        """(an array to be filled, the bytes of the larger one)."""
        dtype = np.dtype(dtype)
        if self.swapped and dtype.name != "bfloat16":  # ml_dtypes' type has no such form
            dtype = dtype.newbyteorder()
        parts, extents = [], []
        for n, step, before, after in zip(shape, self.steps, self.before, self.after, strict=True):
            span = (n - 1) * abs(step) + 1 if n else 0
            parts.append(slice(before, before + span, abs(step)))
            extents.append(before + span + after)
        nbytes = math.prod(extents) * dtype.itemsize
        owner = np.full(self.offset + nbytes, FILL, np.uint8)
        array = np.ndarray([extents[axis] for axis in self.order], dtype, owner, self.offset)
        array = array.transpose(np.argsort(self.order))[tuple(parts)]
        return array[tuple(slice(None, None, -1 if step < 0 else 1) for step in self.steps)], owner


def draw_arrangement(choices, rank, output=False):
    if choices.once_in(3):
        order = list(range(rank))
        for i in range(rank - 1):
            j = choices.integer(i, rank - 1)
            order[i], order[j] = order[j], order[i]
    else:
        order = range(rank)
    steps = [choices.pick([1, 1, 1, 2, -1, -2, 3]) for _ in range(rank)]
    if choices.once_in(2):
        steps[-1] = 1  # what kernels take in place
    return Arrangement(
        order=tuple(order),
        steps=tuple(steps),
        before=tuple(choices.pick([0, 0, 1, 3]) for _ in range(rank)),
        after=tuple(choices.pick([0, 0, 1, 2]) for _ in range(rank)),
        offset=choices.pick([0, 0, 0, 0, 0, 1, 2, 4]),
        swapped=not output and choices.once_in(16),
    )


# --------------------------------------------------------------------------------------- pooling


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
    size = choices.integer(0, 6)
    kernel, stride, dilation = (
        choices.pick([choices.integer(1, 5), choices.integer(1, 200), 2 ** choices.integer(8, 70)])
        + choices.integer(0, 2)
        for _ in "ksd"
    )
    outputs = choices.integer(1, 9)
    room = (outputs - 1) * stride + choices.integer(0, min(stride - 1, 2**62))
    pads = max(0, room + (kernel - 1) * dilation + 1 - size)
    # Mostly a tap of some output on an element, or just beside them: elsewhere all is padding.
    tap = choices.pick([0, 1, 2, kernel // 2, kernel - 1]) % kernel
    begin = choices.integer(0, outputs - 1) * stride + tap * dilation
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
    if kind == "hostile":
        rank = min(rank, 3)
        layout = choices.pick(cases.layouts(rank))
        axes = [draw_hostile_axis(choices) for _ in range(rank)]
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
    try:
        expected = _reference.max_pool(x, case.kernel_shape, return_indices=True, **attributes)
    except (TypeError, ValueError) as refused:
        expected = type(refused)
    before = arranged.tobytes()
    for build in builds:
        with _dispatch.using(build):
            for num_threads in threads:
                for indices in (False, True):
                    more = {"return_indices": indices, "num_threads": num_threads, **attributes}
                    _compare_plan(case, build, more, x, arranged, expected, counts)
    assert arranged.tobytes() == before, "the input was changed"


def _compare_plan(case, build, attributes, x, arranged, expected, counts):
    what = f"{build}, {attributes['num_threads']} threads"
    try:
        plan = fastpool.plan_max_pool(case.shape, x.dtype, case.kernel_shape, **attributes)
    except (TypeError, ValueError) as refused:
        assert type(refused) is expected, f"{what}: refused with {refused!r}"
        counts["refused", "as by the twin"] += 1
        return
    assert isinstance(expected, tuple), f"{what}: planned what the twin refuses with {expected}"
    y, z = expected
    results = plan(x) if plan.return_indices else (plan(x),)
    _same(results[0], y, what)
    out, owner = case.y.empty(y.shape, y.dtype)
    if plan.return_indices:
        _same(results[1], z, f"{what}, indices")
        places, places_owner = case.z.empty(z.shape, z.dtype)
        plan(arranged, out, places)
        _same(places, z, f"{what}, indices, arranged")
        _untouched(places, places_owner, what)
    else:
        plan(arranged, out)
    _same(out, y, f"{what}, arranged")
    _untouched(out, owner, what)
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


# ------------------------------------------------------------------------------------- unpooling


@dataclass(frozen=True)
class Unpooling:
    """One case of max_unpool."""

    layout: str
    shape: tuple
    dtype: str
    seed: int
    indices: str  # "rising", "any", "few": in their own planes; "anywhere"; "outside": one is
    index_dtype: str
    planes: int
    counted: int  # planes that indices count through
    index_count: int
    kernel_shape: object
    attributes: dict
    threads: int
    x: Arrangement
    y: Arrangement
    z: Arrangement
    legal: bool = True

    def places(self):
        """The indices: whatever an attacker may have chosen."""
        rng = np.random.default_rng(self.seed)
        count = math.prod(self.shape)
        if self.planes == 0 or self.indices in ("anywhere", "outside"):
            chosen = rng.integers(0, max(self.index_count, 1), self.shape)
        else:
            plane = self.index_count // self.counted
            chosen = rng.integers(0, plane, (self.planes, count // self.planes))
            if self.indices == "few":
                chosen %= 2
            if self.indices == "rising":
                chosen.sort()
            chosen += plane * (np.arange(self.planes) % self.counted)[:, None]
            if self.layout.endswith("C"):
                batch = self.shape[0] if self.layout.startswith("N") else 1
                chosen = chosen.reshape(batch, self.shape[-1], -1).swapaxes(1, 2)
        chosen = np.ascontiguousarray(chosen.reshape(self.shape), self.index_dtype)
        if self.indices == "outside" and count:
            limits = np.iinfo(self.index_dtype)
            bad = [-1, self.index_count, limits.min, limits.max, self.index_count + 1]
            chosen.reshape(-1)[rng.integers(count)] = rng.choice(bad)
        return chosen


def draw_unpooling(choices):
    rank = choices.pick([2, 2, 1, 3, 4])
    layout = choices.pick(["NCHW", "NHWC", *cases.layouts(rank)])
    axes = []
    for i in range(rank):
        size = choices.integer(1, 9 if rank < 3 else 3)
        if i == rank - 1 and rank < 3 and choices.once_in(3):
            size = choices.pick(AROUND)
        kernel, stride = choices.integer(1, 4), choices.integer(1, 4)
        extent = (size - 1) * stride + kernel
        begin = choices.pick([0, 0, choices.integer(0, extent - 1)])
        end = choices.pick([0, 0, choices.integer(0, extent - 1 - begin)])
        axes.append((size, kernel, stride, begin, end, extent - begin - end))
    sizes, kernels, strides, begins, ends, inferred = zip(*axes, strict=True)
    batch = choices.pick([1, 2, 3])
    channels = choices.pick([1, 2, 3, choices.pick([5, 17, 33, 70])])
    room = 4000 // math.prod(sizes)  # the twin puts one value at a time
    channels = max(1, min(channels, room))
    batch = max(1, min(batch, room // channels))
    if choices.once_in(30):
        batch, channels = choices.pick([(0, channels), (batch, 0)])
    index_space = choices.pick(["output", "inferred"])
    output, output_shape = inferred, None
    if choices.once_in(2):
        if index_space == "inferred":
            output = tuple(extent + choices.integer(0, 3) for extent in inferred)
        else:
            output = tuple(choices.integer(1, extent + 3) for extent in inferred)
        output_shape = cases.array_shape(layout, batch, channels, output)
    counted = output if index_space == "output" else inferred
    index_layout = choices.pick(["NCHW", "NHWC"] if layout.endswith("C") else ["NCHW"])
    shape = cases.array_shape(layout, batch, channels, sizes)
    outer = [batch] * ("N" in layout) + [channels] * ("C" in layout)
    index_axis = choices.integer(0, len(outer) - (index_layout == "NHWC"))
    return Unpooling(
        layout=layout,
        shape=shape,
        dtype=choices.pick(cases.DTYPE_NAMES),
        seed=choices.integer(0, 2**16),
        indices=choices.pick(["rising", "any", "few", "anywhere", "anywhere", "outside"]),
        index_dtype=choices.pick(["int64", "int32"]),
        planes=math.prod(outer),
        counted=math.prod(outer[index_axis:]),
        index_count=math.prod(outer[index_axis:]) * math.prod(counted),
        kernel_shape=kernels,
        attributes={
            "strides": strides,
            "pads": begins + ends,
            "output_shape": output_shape,
            "layout": layout,
            "index_space": index_space,
            "index_axis": index_axis,
            "index_layout": index_layout,
        },
        threads=choices.integer(2, 5),
        x=draw_arrangement(choices, len(shape)),
        y=draw_arrangement(choices, len(shape), output=True),
        z=draw_arrangement(choices, len(shape)),
    )


def compare_unpooling(case, counts, builds, threads):
    """As `compare_pooling`; bad indices are refused with nothing written."""
    x, z = cases.values(case.shape, case.dtype, "bits", case.seed), case.places()
    arranged = []
    for array, how in ((x, case.x), (z, case.z)):
        place, _ = how.empty(case.shape, array.dtype)
        place[...] = array
        arranged.append(place)
    before = [array.tobytes() for array in arranged]
    if not case.legal:
        try:
            y = fastpool.max_unpool(x, z, case.kernel_shape, **case.attributes)
        except (TypeError, ValueError, MemoryError):
            counts["refused", "attributes"] += 1
            return
        if y.size > MOST_ELEMENTS:
            counts["refused", "by nobody, but too large for the twin"] += 1
            return
    try:
        expected = _reference.max_unpool(x, z, case.kernel_shape, **case.attributes)
    except (TypeError, ValueError) as refused:
        expected = type(refused)
    for build in builds:
        with _dispatch.using(build):
            for num_threads in threads:
                _compare_unpool(case, build, num_threads, (x, z), arranged, expected, counts)
    assert [array.tobytes() for array in arranged] == before, "an input was changed"


def _compare_unpool(case, build, threads, plain, arranged, expected, counts):
    what = f"{build}, {threads} threads"
    attributes = {"num_threads": threads, **case.attributes}
    if isinstance(expected, type):
        shape = case.attributes["output_shape"]
        out, owner = case.y.empty(case.shape if shape is None else shape, plain[0].dtype)
        try:
            fastpool.max_unpool(*plain, case.kernel_shape, out=out, **attributes)
        except (TypeError, ValueError) as refused:
            assert type(refused) is expected, f"{what}: refused with {refused!r}"
            assert (owner == FILL).all(), f"{what}: written though refused"
            counts["refused", "as by the twin"] += 1
            return
        raise AssertionError(f"{what}: unpooled what the twin refuses with {expected}")
    _same(fastpool.max_unpool(*plain, case.kernel_shape, **attributes), expected, what)
    out, owner = case.y.empty(expected.shape, expected.dtype)
    fastpool.max_unpool(*arranged, case.kernel_shape, out=out, **attributes)
    _same(out, expected, f"{what}, arranged")
    _untouched(out, owner, what)
    for arrangement in ("plain", "arranged"):
        counts["arrays", arrangement] += 1
    counts["dtype", case.dtype] += 2
    counts["layout", case.attributes["layout"]] += 2
    counts["build", build] += 2
    counts["threads", "1" if threads == 1 else "several"] += 2
    counts["outputs", "unpooled"] += 2
    counts["form", f"{build} unpooling"] += 2
    counts["path", f"{build} unpooling, {case.indices}, {case.index_dtype}"] += 2


# --------------------------------------------------------------------------------------- results


def _same(got, expected, what):
    """`cases.assert_same`, with a quick answer where nothing is NaN."""
    if got.dtype != expected.dtype or got.shape != expected.shape or not (got == expected).all():
        cases.assert_same(got, expected, what)


def _untouched(array, owner, what):
    """Nothing was written beside an array that `Arrangement.empty` gave."""
    array[...] = np.full(array.itemsize, FILL, np.uint8).view(array.dtype)[0]
    assert (owner == FILL).all(), f"{what}: written beside the output"


# In the place of an attribute: of a wrong kind, of no legal value, or legal after all.
BAD = [0, -1, 3, 2.0, True, None, "2", b"NHWC", (), (1,), (2, 2), (1,) * 70, [[1, 2]], {}, "NHWC"]
BAD += [2**40, 2**62, 2**63, 2**80, -(2**63), float("nan"), np.int8(1), np.float32(1), np.arange(2)]


def spoiled(case, choices):
    """The case with something in the place of one of its attributes."""
    name = choices.pick(["kernel_shape", *case.attributes])
    bad = choices.pick(BAD)
    if name == "kernel_shape":
        return replace(case, kernel_shape=bad, legal=False)
    return replace(case, attributes={**case.attributes, name: bad}, legal=False)


def draw(choices):
    return draw_unpooling(choices) if choices.once_in(8) else draw_pooling(choices)


def compare(case, counts, builds=cases.BUILDS, threads=None):
    """Raise AssertionError at the first difference."""
    one = compare_pooling if isinstance(case, Pooling) else compare_unpooling
    with np.errstate(all="ignore"):
        one(case, counts, builds, (1, case.threads) if threads is None else threads)


def configurations(counts):
    return counts["arrays", "plain"] + counts["arrays", "arranged"]


def report(counts, every_path=False):
    """Lines of text: how many configurations of each sort."""
    for heading in ("dtype", "layout", "build", "form", "threads", "outputs", "arrays", "refused"):
        found = Counter({name: n for (kind, name), n in counts.items() if kind == heading})
        yield f"{heading}: " + ", ".join(f"{name} {n}" for name, n in found.most_common())
    paths = sorted((name, n) for (kind, name), n in counts.items() if kind == "path")
    yield f"{len(paths)} ways through the kernels"
    if every_path:
        yield from (f"{n:10} {name}" for name, n in paths)
