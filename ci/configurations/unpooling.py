"""Random max_unpool calls, with any indices, and their comparison with the slow twin."""

import math
from dataclasses import dataclass

import numpy as np

import cases
import fastpool
from fastpool import _reference
from fastpool._running import builds as running

from .arrays import FILL, Arrangement, draw_arrangement, in_time, same, untouched
from .pooling import AROUND, MOST_ELEMENTS


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
        with running.using(build):
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
    elements = plain[0].size + expected.size
    with in_time(elements, what):
        y = fastpool.max_unpool(*plain, case.kernel_shape, **attributes)
    same(y, expected, what)
    out, owner = case.y.empty(expected.shape, expected.dtype)
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
    counts["form", f"{build} unpooling"] += 2
    counts["path", f"{build} unpooling, {case.indices}, {case.index_dtype}"] += 2
