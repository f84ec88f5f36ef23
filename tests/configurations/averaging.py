"""Random averages over windows, parts and planes, and their comparison with the slow twin."""

import contextlib
import math
from dataclasses import dataclass, field, replace
from unittest import mock

import numpy as np

import cases
import fastpool
from fastpool import _reference
from fastpool._running import averages, interleaving, pass_sizes
from fastpool._running import builds as running

from .arrays import draw_arrangement, in_time, same, untouched
from .attributes import draw_batch
from .pooling import AROUND, draw_axes, draw_hostile_axis, overhanging

MOST_TAPS = 12_000  # that the twin adds, one at a time
MOST_ELEMENTS = 40_000
KINDS = [*cases.SUM_KINDS, "special", "bits"]
FUNCTIONS = ["avg_pool"] * 6 + ["adaptive_avg_pool"] * 3 + ["global_avg_pool"]
# Limits of `averages` and `pass_sizes`, which are so large that no plane the twin can pool has two
# blocks of rows.
LIMITS = {
    "ROW_ELEMENTS": [16, 64, 300],
    "PIXEL_ELEMENTS": [16, 64, 300],
    "INTERLEAVED_BYTES": [1024, 8192],
    "GROUP_BYTES": [1024, 65536],
    "PASS_BYTES": [1, 1000, 4000],
    "PASS_ELEMENTS": [16, 100],
    "TALL_BYTES": [1024, 8192],
    "MOST_LINES": [0, 2000],
    "WHOLE_PLANES": [1, 9, 17],
}
DIVISORS = [None, None, None, None, None, None, 1, 2, 3, 49, -1, -3, 2**26, 2**31 - 1]
SIZES = {1: 150, 2: 20, 3: 7, 4: 4}  # spatial axes -> the largest extent of adaptive windows


@dataclass(frozen=True)
class Averaging:
    """One call of avg_pool, adaptive_avg_pool or global_avg_pool."""

    function: str
    shape: tuple
    dtype: str
    kind: str
    seed: int
    kernel_shape: object  # for adaptive_avg_pool the output size; global_avg_pool takes none
    attributes: dict
    memory: tuple = ()  # Arrangement of input and result; contiguous if empty
    threads: int = 1
    legal: bool = True
    limits: dict = field(default_factory=dict)  # instead of `LIMITS`

    def plain(self):
        """The input, contiguous."""
        return cases.summands(self.shape, self.dtype, self.kind, self.seed)

    def x(self):
        """Return the input in the arrangement that was drawn for it."""
        return self.memory[0].holding(self.plain()) if self.memory else self.plain()

    def windows(self):
        """The positional arguments after the input."""
        return () if self.function == "global_avg_pool" else (self.kernel_shape,)

    def expected(self, x):
        """Return what the twin gives."""
        return getattr(_reference, self.function)(x, *self.windows(), **self.attributes)

    def plan(self, dtype, **more):
        """Return the plan of this call."""
        attributes = {**self.attributes, **more}
        attributes["result_dtype"] = attributes.pop("dtype")
        plan = getattr(fastpool, f"plan_{self.function}")
        return plan(self.shape, dtype, *self.windows(), **attributes)


def draw_numbers(choices, dtype):
    """Draw the attributes of sums and roundings."""
    if dtype in cases.FLOAT_NAMES:
        wider = {"float32": ["float64"], "float64": []}.get(dtype, ["float32", "float64"])
        return {
            "dtype": choices.pick([None, None, None, *wider]),
            "rounding": "half_even",
            "numerics": choices.pick(["exact", "exact", "pairwise", None, "sequential"]),
            "nan": choices.pick(["propagate", "ignore"]),
        }
    result = choices.pick([None, None, "int64", "float64", "float32", *cases.INTEGER_NAMES])
    roundings = ["half_even", "half_away", "trunc", "floor"]
    return {
        "dtype": result,
        "rounding": "half_even" if result in cases.FLOAT_NAMES else choices.pick(roundings),
        "numerics": choices.pick(["exact", "sequential", "pairwise"]),
        "nan": choices.pick(["propagate", "ignore"]),
    }


def draw_windows(choices, rank, hostile):
    """Return (extents, numbers to add per plane, windows, attributes) of a call of avg_pool."""
    kind = "hostile" if hostile else choices.pick(["any", "any", "any", "whole", "apart", "same"])
    if hostile:
        axes = [draw_hostile_axis(choices, rank) for _ in range(rank)]
    else:
        axes = draw_axes(choices, rank, kind)
    ceil_mode = choices.pick([False, True])
    if kind != "same" and ceil_mode and choices.once_in(8):
        axes = [overhanging(choices, axis) for axis in axes]
    sizes, kernels, strides, dilations, begins, ends = zip(*axes, strict=True)
    outputs = [
        max(1, (size + begin + end - (kernel - 1) * dilation - 1) // stride + 1)
        for size, kernel, stride, dilation, begin, end in axes
    ]
    taps = [min(kernel, max(size, 1)) for size, kernel in zip(sizes, kernels, strict=True)]
    auto_pad = choices.pick(["SAME_UPPER", "SAME_LOWER"]) if kind == "same" else "NOTSET"
    attributes = {
        "strides": strides,
        "pads": begins + ends,
        "dilations": dilations,
        "auto_pad": auto_pad,
        "ceil_mode": ceil_mode,
        "ceil_rule": choices.pick(["clip", "keep"]),
        "count_include_pad": choices.pick([False, True]),
        "beyond": choices.pick(["drop", "count"]),
        "divisor": choices.pick(DIVISORS),
    }
    return sizes, [max(math.prod(outputs) * math.prod(taps), *sizes)], kernels, attributes


def draw_parts(choices, rank, function):
    """Return (extents, numbers to add per plane, output size, attributes) without padding."""
    most = SIZES[rank]
    around = [size for size in AROUND if size <= most]
    sizes = tuple(choices.pick([choices.integer(1, most), *around[-2:]]) for _ in range(rank))
    if function == "global_avg_pool":
        return sizes, sizes, None, {}
    outs = tuple(
        choices.pick([1, 2, size, choices.integer(1, size), choices.integer(1, 2 * size)])
        for size in sizes
    )
    added = [out + size + 1 for out, size in zip(outs, sizes, strict=True)]
    return sizes, added, outs, {}


def draw_average_call(choices, dtypes=cases.DTYPE_NAMES, kinds=KINDS, hostile=False):
    """Return a legal call with any attributes except activations, on contiguous arrays.

    A result type that cannot hold some mean is refused.
    """
    function = "avg_pool" if hostile else choices.pick(FUNCTIONS)
    rank = choices.pick([2, 1, 3] if hostile else [2, 2, 2, 2, 1, 1, 3, 4])
    layout = choices.pick(["NCHW", "NHWC", *cases.layouts(rank)])
    if function == "avg_pool":
        sizes, added, windows, attributes = draw_windows(choices, rank, hostile)
    else:
        sizes, added, windows, attributes = draw_parts(choices, rank, function)
    channels = choices.pick([1, 2, 3, choices.pick([4, 5, 8, 16, 17, 33, 70])])
    batch, channels = draw_batch(choices, added, channels, MOST_TAPS)
    dtype = choices.pick(dtypes)
    return Averaging(
        function=function,
        shape=cases.array_shape(layout, batch, channels, sizes),
        dtype=dtype,
        kind=choices.pick(kinds),
        seed=choices.integer(0, 2**16),
        kernel_shape=windows,
        attributes={**attributes, "layout": layout, **draw_numbers(choices, dtype)},
    )


def draw_averaging(choices):
    """Return a call with arrangements and a number of threads."""
    case = draw_average_call(choices, hostile=choices.once_in(16))
    rank = len(case.shape)
    memory = draw_arrangement(choices, rank), draw_arrangement(choices, rank, output=True)
    limits = {}
    if choices.once_in(2):
        limits = {name: choices.pick(values) for name, values in LIMITS.items()}
    return replace(case, memory=memory, threads=choices.integer(2, 5), limits=limits)


def compare_averaging(case, counts, builds, threads):
    """Raise unless each configuration gives what the twin gives; count them in `counts`."""
    x, arranged = case.plain(), case.x()
    if not case.legal:
        try:
            plan = case.plan(x.dtype)
        except (TypeError, ValueError):
            counts["refused", "attributes"] += 1
            return
        if math.prod(plan.output_shape) > MOST_ELEMENTS:
            counts["refused", "by nobody, but too large for the twin"] += 1
            return
    try:
        expected = case.expected(x)
    except (TypeError, ValueError) as refused:
        expected = type(refused)
    before = arranged.tobytes()
    for build in builds:
        with running.using(build):
            for num_threads in threads:
                _compare_average(case, build, num_threads, x, arranged, expected, counts)
    assert arranged.tobytes() == before, "the input was changed"


def _compare_average(case, build, threads, x, arranged, expected, counts):
    what = f"{build}, {threads} threads"
    try:
        plan = case.plan(x.dtype, num_threads=threads)
    except (TypeError, ValueError) as refused:
        assert type(refused) is expected, f"{what}: refused with {refused!r}"
        counts["refused", "as by the twin"] += 1
        return
    assert isinstance(expected, np.ndarray), f"{what}: planned what the twin refuses"
    elements = x.size + expected.size
    with in_time(elements, what), contextlib.ExitStack() as stack:
        for module in (averages, interleaving, pass_sizes):
            limits = {name: value for name, value in case.limits.items() if hasattr(module, name)}
            stack.enter_context(mock.patch.dict(vars(module), limits))
        y = plan(x)
    same(y, expected, what)
    out, owner = case.memory[1].empty(expected.shape, expected.dtype)
    with in_time(elements, what):
        plan(arranged, out)
    same(out, expected, f"{what}, arranged")
    untouched(out, owner, what)
    counts["case", "averages"] += 2
    for arrangement in ("plain", "arranged"):
        counts["arrays", arrangement] += 1
    counts["dtype", case.dtype] += 2
    counts["layout", case.attributes["layout"]] += 2
    counts["build", build] += 2
    counts["threads", "1" if threads == 1 else "several"] += 2
    counts["outputs", "averages"] += 2
    way = f"{case.function}, {case.attributes['numerics']}"
    counts["strategy", f"{build} {way}"] += 2
    counts["path", f"{build} {way}, {case.dtype} to {expected.dtype}"] += 2
