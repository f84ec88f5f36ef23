"""Random max_unpool calls, with any indices, and their comparison with the slow twin."""

import math
from dataclasses import dataclass, replace

import numpy as np

import cases
import fastpool
from fastpool import _reference
from fastpool._running import builds as running

from .arrays import FILL, draw_arrangement, in_time, same, untouched
from .attributes import draw_batch, draw_numbering, planes
from .pooling import AROUND, MOST_ELEMENTS

MOST_VALUES = 4000  # the twin puts one at a time

# How indices are drawn: into their own planes rising, any, or few; anywhere; two of them, repeated.
LEGAL = ["rising", "any", "few", "anywhere", "anywhere", "two"]


@dataclass(frozen=True)
class Unpooling:
    """One call of max_unpool."""

    layout: str
    shape: tuple
    dtype: str
    seed: int
    kind: str  # of indices: one of LEGAL, or "outside": one is
    index_dtype: str
    planes: int
    counted: int  # planes that indices count through
    index_count: int
    kernel_shape: object
    attributes: dict
    memory: tuple = ()  # Arrangement of input, result and indices; contiguous if empty
    threads: int = 1
    legal: bool = True

    def plain(self):
        """The input and the indices, contiguous."""
        return cases.values(self.shape, self.dtype, "bits", self.seed), self.places()

    def x(self):
        """Return the input in the arrangement that was drawn for it."""
        x, _ = self.plain()
        return self.memory[0].holding(x) if self.memory else x

    def indices(self):
        """Return the indices in the arrangement that was drawn for them."""
        places = self.places()
        return self.memory[2].holding(places) if self.memory else places

    def places(self):
        """Return the indices, contiguous: any that an attacker may choose."""
        rng = np.random.default_rng(self.seed)
        count = math.prod(self.shape)
        if self.planes == 0 or self.kind in ("anywhere", "outside", "two"):
            chosen = rng.integers(0, max(self.index_count, 1), self.shape)
            if self.kind == "two" and count:
                chosen = rng.choice(chosen.reshape(-1)[:2], self.shape)
        else:
            plane = self.index_count // self.counted
            chosen = rng.integers(0, plane, (self.planes, count // self.planes))
            if self.kind == "few":
                chosen %= 2
            if self.kind == "rising":
                chosen.sort()
            chosen += plane * (np.arange(self.planes) % self.counted)[:, None]
            if self.layout.endswith("C"):
                batch = self.shape[0] if self.layout.startswith("N") else 1
                chosen = chosen.reshape(batch, self.shape[-1], -1).swapaxes(1, 2)
        chosen = np.ascontiguousarray(chosen.reshape(self.shape), self.index_dtype)
        if self.kind == "outside" and count:
            limits = np.iinfo(self.index_dtype)
            bad = [-1, self.index_count, limits.min, limits.max, self.index_count + 1]
            chosen.reshape(-1)[rng.integers(count)] = rng.choice(bad)
        return chosen


def draw_unpool_call(choices, kinds=LEGAL):
    """Return a legal call on contiguous arrays."""
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
    channels = choices.pick([1, 2, 3, choices.pick([4, 5, 17, 33, 70])])
    batch, channels = draw_batch(choices, sizes, channels, MOST_VALUES)
    numbering = draw_numbering(choices, layout)
    output, output_shape = inferred, None
    if choices.once_in(2):
        if numbering["index_space"] == "inferred":
            output = tuple(extent + choices.integer(0, 3) for extent in inferred)
        else:
            output = tuple(choices.integer(1, extent + 3) for extent in inferred)
        output_shape = cases.array_shape(layout, batch, channels, output)
    block = output if numbering["index_space"] == "output" else inferred
    counted = planes(layout, batch, channels, numbering["index_axis"])
    return Unpooling(
        layout=layout,
        shape=cases.array_shape(layout, batch, channels, sizes),
        dtype=choices.pick(cases.DTYPE_NAMES),
        seed=choices.integer(0, 2**16),
        kind=choices.pick(kinds),
        index_dtype=choices.pick(["int64", "int32"]),
        planes=planes(layout, batch, channels),
        counted=counted,
        index_count=counted * math.prod(block),
        kernel_shape=kernels,
        attributes={
            "strides": strides,
            "pads": begins + ends,
            "output_shape": output_shape,
            "layout": layout,
            **numbering,
        },
    )


def draw_unpooling(choices):
    """Draw a call, now and then with bad indices, with arrangements and a number of threads."""
    case = draw_unpool_call(choices, [*LEGAL, "outside"])
    rank = len(case.shape)
    memory = (
        draw_arrangement(choices, rank),
        draw_arrangement(choices, rank, output=True),
        draw_arrangement(choices, rank),
    )
    return replace(case, memory=memory, threads=choices.integer(2, 5))


def compare_unpooling(case, counts, builds, threads):
    """Raise unless each configuration gives what the twin gives, or is refused with it.

    A call that is refused writes nothing. Count the configurations in `counts`.
    """
    x, z = case.plain()
    arranged = case.x(), case.indices()
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
        with running.using(build):
            for num_threads in threads:
                _compare_unpool(case, build, num_threads, (x, z), arranged, expected, counts)
    assert [array.tobytes() for array in arranged] == before, "an input was changed"


def _compare_unpool(case, build, threads, plain, arranged, expected, counts):
    what = f"{build}, {threads} threads"
    attributes = {"num_threads": threads, **case.attributes}
    if isinstance(expected, type):
        shape = case.attributes["output_shape"]
        out, owner = case.memory[1].empty(case.shape if shape is None else shape, plain[0].dtype)
        try:
            fastpool.max_unpool(*plain, case.kernel_shape, out=out, **attributes)
        except (TypeError, ValueError) as refused:
            assert type(refused) is expected, f"{what}: refused with {refused!r}"
            assert (owner == FILL).all(), f"{what}: written though refused"
            counts["refused", "as by the twin"] += 1
            return
        raise AssertionError(f"{what}: unpooled what the twin refuses with {expected}")
    elements = plain[0].size + expected.size
    with in_time(elements, what):
        y = fastpool.max_unpool(*plain, case.kernel_shape, **attributes)
    same(y, expected, what)
    out, owner = case.memory[1].empty(expected.shape, expected.dtype)
    with in_time(elements, what):
        fastpool.max_unpool(*arranged, case.kernel_shape, out=out, **attributes)
    same(out, expected, f"{what}, arranged")
    untouched(out, owner, what)
    counts["case", "unpooling"] += 2
    for arrangement in ("plain", "arranged"):
        counts["arrays", arrangement] += 1
    counts["dtype", case.dtype] += 2
    counts["layout", case.attributes["layout"]] += 2
    counts["build", build] += 2
    counts["threads", "1" if threads == 1 else "several"] += 2
    counts["outputs", "unpooled"] += 2
    counts["strategy", f"{build} unpooling"] += 2
    counts["path", f"{build} unpooling, {case.kind}, {case.index_dtype}"] += 2
