"""Random blocks, pyramids, borders and filters, and their comparison with the slow twin.

The twin of a filter pads the array by np.pad and takes each window of what is padded, so it has
none of the code that fills borders.
"""

import inspect
import random
import re
from dataclasses import dataclass, field
from unittest import mock

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import block_cases
import cases
import fastpool
import fastpool.ndimage
from fastpool import _reference
from fastpool._running import blocks, borders
from fastpool._running import builds as running

from .arrays import Arrangement, draw_arrangement, in_time, same

# border, and mode of SciPy -> mode of np.pad
PADDED = {
    "reflect": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "constant": "constant",
}
MODES = {**PADDED, "grid-mirror": "symmetric", "grid-wrap": "wrap", "grid-constant": "constant"}
LAYOUTS = {1: "W", 2: "HW", 3: "DHW"}
_FLOATS = frozenset(cases.FLOAT_NAMES)
FUNCTIONS = fastpool.ndimage.__all__


def _count(counts, call, dtype, build, threads, arrangement="arranged"):
    counts["case", call] += 1
    counts["dtype", dtype] += 1
    counts["build", build] += 1
    counts["threads", "1" if threads == 1 else "several"] += 1
    counts["arrays", arrangement] += 1


def small_values(shape, dtype, seed):
    """Return small numbers, so that many are equal; of floats some are NaN and infinite."""
    rng = np.random.default_rng(seed)
    name = np.dtype(dtype).kind
    x = rng.integers(0 if name in "ub" else -4, 2 if name == "b" else 5, shape).astype(dtype)
    if name not in "iub" and rng.random() < 0.3:
        x.ravel()[rng.integers(0, x.size, 2)] = [np.nan, np.inf]
    return x


# ----------------------------------------------------------------------------- blocks and pyramids


@dataclass(frozen=True)
class Blocks:
    """One call of block_reduce, or of pyramid if there are levels."""

    func: str
    x: np.ndarray
    block_size: tuple
    levels: int  # 0: a call of block_reduce
    attributes: dict
    row: int = 64  # blocks of a tile, if several levels are reduced in one go
    spoiled: dict = field(default_factory=dict)

    def call(self):
        return fastpool.pyramid if self.levels else fastpool.block_reduce

    def given(self, x=None):
        """Return all arguments, by name."""
        given = {"x": self.x if x is None else x, "func": self.func, **self.attributes}
        if self.levels:
            return {**given, "levels": self.levels, "factor": self.block_size}
        return {**given, "block_size": self.block_size}


def _draw_blocks(choices, has_levels):
    rng = random.Random(choices.integer(0, 2**60))
    dtype = choices.pick(cases.DTYPE_NAMES)
    func = choices.pick([f for f in block_cases.FUNCS if f != "mode" or dtype not in _FLOATS])
    x = block_cases.drawn_array(rng, dtype)
    if has_levels:
        taps = [rng.choice([1, 2, 2, 3, 4]) for _ in x.shape]
        taps[rng.randrange(x.ndim)] = 2
    else:
        taps = block_cases.drawn_blocks(rng, x.shape)
    attributes = block_cases.drawn_attributes(rng, x, taps, func)
    levels = 0
    if has_levels:
        levels = rng.randint(1, 4)
        del attributes["return_counts"]
        if attributes["edge"] == "exact":
            attributes["edge"] = "keep"
    return Blocks(func, x, tuple(taps), levels, attributes, rng.choice([1, 2, 2, 5, 64]))


def draw_blocks(choices):
    """Return a call of block_reduce."""
    return _draw_blocks(choices, has_levels=False)


def draw_pyramid(choices):
    """Return a call of pyramid."""
    return _draw_blocks(choices, has_levels=True)


def compare_blocks(case, counts, builds, threads):
    """Raise unless each configuration gives what the twin gives; count them in `counts`.

    All builds and threads give the same bits, also for variances, which have a tolerance.
    """
    dtype = case.x.dtype.newbyteorder("=").name
    ulps = block_cases.ulps_of(case.func, dtype)
    contiguous = np.array(case.x, case.x.dtype.newbyteorder("="), order="C")
    twin = _reference.pyramid if case.levels else _reference.block_reduce
    expected = _parts(twin(**case.given()))
    before, first = case.x.tobytes(), None
    for build in builds:
        tiles = mock.patch.multiple(blocks, _ROW=case.row, _FEWEST=case.row // 4)
        with running.using(build), tiles:
            for num_threads in threads:
                for how, x in (("plain", contiguous), ("arranged", case.x)):
                    what = f"{build}, {num_threads} threads, {how}"
                    with in_time(x.size * max(case.levels, 1), what):
                        found = _parts(case.call()(**case.given(x), num_threads=num_threads))
                    first = found if first is None else first
                    for y, z, y_of_first in zip(found, expected, first, strict=True):
                        block_cases.assert_close(y, z, ulps if y.dtype.kind == "f" else 0, what)
                        cases.assert_same(y, y_of_first, f"another build, {what}")
                    name = "pyramid" if case.levels else "block_reduce"
                    _count(counts, f"{name} {case.func}", dtype, build, num_threads, how)
    assert case.x.tobytes() == before, "the input was changed"


def _parts(result):
    return result if isinstance(result, (list, tuple)) else [result]


# ----------------------------------------------------------------------------------------- borders


@dataclass(frozen=True)
class Borders:
    """One call of max_pool, min_pool or avg_pool with a border."""

    function: str
    shape: tuple
    dtype: str
    seed: int
    kernel_shape: list
    attributes: dict
    memory: Arrangement
    is_far: bool  # by the trees that far padding needs, however near it is
    spoiled: dict = field(default_factory=dict)

    def call(self):
        return getattr(fastpool, self.function)

    def given(self, x=None):
        """Return all arguments, by name."""
        x = small_values(self.shape, cases.dtype(self.dtype), self.seed) if x is None else x
        return {"x": x, "kernel_shape": self.kernel_shape, **self.attributes}


def draw_borders(choices, dtypes=cases.DTYPE_NAMES):
    """Return a call with a border; some are illegal."""
    pick = choices.pick
    dtype = pick(dtypes)
    rank = pick([1, 1, 2, 2, 3])
    extents = [pick([1, 1, 2, 3, 5, 9]) for _ in range(rank)]
    batch, last = pick(["", "N", "NC"]), pick([False, False, True])
    batch = batch[:1] if last else batch
    # (Many planes are interleaved, and wide pixels pooled in other ways.)
    shape = (*[pick([2, 2, 3, 17]) for _ in batch], *extents, *[pick([3, 3, 40])] * last)
    far = rank < 3 and choices.once_in(3)
    attributes = {
        "strides": [pick([1, 1, 2, 3, *[40] * far]) for _ in extents],
        "dilations": [pick([1, 1, 2, 3, *[30] * far]) for _ in extents],
        "pads": [pick([0, 1, 2, 3, *[30, 100] * far]) for _ in extents * 2],
        "ceil_mode": choices.once_in(3),
        "ceil_rule": pick(["clip", "keep"]),
        "border": pick([*PADDED]),
        "nan": pick(["propagate", "ignore"]),
        "layout": batch + LAYOUTS[rank] + "C" * last,
    }
    if attributes["border"] == "constant":
        special = [-2.5, float("nan"), np.inf] if dtype in _FLOATS else []
        attributes["border_value"] = pick([None, 0, 1, *special])
    if choices.once_in(6):
        attributes.update(pads=0, auto_pad=pick(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    function = pick(["max_pool", "min_pool", "avg_pool"])
    if function == "avg_pool":
        attributes["numerics"] = pick(["pairwise", "pairwise", "exact", "sequential"])
        attributes["beyond"] = pick(["drop", "count"])
        if choices.once_in(3):
            attributes["divisor"] = pick([1, 3, -2])
            attributes["dtype"] = None if dtype in _FLOATS else "float64"
        elif dtype not in _FLOATS:
            attributes["rounding"] = pick(block_cases.ROUNDINGS)
    elif choices.once_in(2):
        attributes.update(return_indices=True, index_axis=pick([0, -1]))
        if last:
            attributes["index_layout"] = pick(["NCHW", "NHWC"])
    kernel_shape = [pick([1, 2, 3, 5, *[17, 200] * far]) for _ in extents]
    seed, memory = choices.integer(0, 2**16), draw_arrangement(choices, len(shape))
    return Borders(
        *(function, shape, dtype, seed, kernel_shape, attributes, memory, choices.once_in(3)),
    )


def compare_borders(case, counts, builds, threads):
    """Raise unless each configuration gives what the twin gives; count them in `counts`."""
    plain = case.given()["x"]
    arrays = {"plain": plain, "arranged": case.memory.holding(plain)}
    try:
        expected = _parts(getattr(_reference, case.function)(**case.given()))
    except ValueError:
        expected = None
    limits = {"MOST_SHARE": 0, "FEW": 0} if case.is_far else {}
    for build in builds:
        with running.using(build), mock.patch.dict(vars(borders), limits):
            for num_threads in threads:
                for how, x in arrays.items():
                    what = f"{build}, {num_threads} threads, {how}"
                    try:
                        found = _parts(case.call()(**case.given(x), num_threads=num_threads))
                    except ValueError as refused:
                        assert expected is None, f"{what}: refused with {refused!r}"
                        counts["refused", "as by the twin"] += 1
                        continue
                    assert expected is not None, f"{what}: took what the twin refuses"
                    for y, z in zip(found, expected, strict=True):
                        same(y, z, what)
                    _count(
                        counts,
                        f"{case.function} with a border",
                        case.dtype,
                        build,
                        num_threads,
                        how,
                    )
                    counts["strategy", f"border {case.attributes['border']}"] += 1


# ----------------------------------------------------------------------------------------- filters


@dataclass(frozen=True)
class Filter:
    """One call of a function of fastpool.ndimage."""

    function: str
    shape: tuple
    dtype: str
    seed: int
    axes: tuple
    size: tuple
    origin: tuple
    mode: tuple
    cval: float
    output: str | None
    more: dict  # of means
    memory: Arrangement
    spoiled: dict = field(default_factory=dict)

    def call(self):
        return getattr(fastpool.ndimage, self.function)

    def given(self, x=None):
        """Return all arguments, by name."""
        given = {name: list(getattr(self, name)) for name in ("size", "origin", "mode")}
        if self.function.endswith("1d"):
            given = {name: value for name, (value,) in given.items()} | {"axis": self.axes[0]}
        else:
            given["axes"] = self.axes
        x = small_values(self.shape, cases.dtype(self.dtype), self.seed) if x is None else x
        return {"input": x, **given, "cval": self.cval, "output": self.output, **self.more}

    def padded(self, x, turned):
        """Return x with all that its windows reach; `turned` says that they are turned around."""
        cval = np.asarray(self.cval).astype(x.dtype)
        for axis, size, origin, mode in zip(
            self.axes, self.size, self.origin, self.mode, strict=True
        ):
            before = (size - 1) // 2 - origin if turned else size // 2 + origin
            widths = [(0, 0)] * x.ndim
            widths[axis] = before, size - 1 - before
            more = {"constant_values": cval} if MODES[mode] == "constant" else {}
            x = np.pad(x, widths, MODES[mode], **more)
        return x

    def taps(self):
        """Return the extents of the window along all axes."""
        taps = [1] * len(self.shape)
        for axis, size in zip(self.axes, self.size, strict=True):
            taps[axis] = size
        return taps

    def expected(self, x):
        """Return what the twin gives."""
        function = self.function.removesuffix("1d")
        output = x.dtype if self.output is None else np.dtype(self.output)
        if function == "uniform_filter":
            more = {} if output.kind not in "iub" else {"rounding": "trunc"}
            y = self.padded(x, False)[None, None]
            y = _reference.avg_pool(y, self.taps(), dtype=self.output, **more, **self.more)
            return y[0, 0]

        def eroded(x):
            windows = sliding_window_view(self.padded(x, False), self.taps())
            return windows.min(tuple(range(x.ndim, 2 * x.ndim)))

        def dilated(x):
            turned = function != "maximum_filter"
            windows = sliding_window_view(self.padded(x, turned), self.taps())
            return windows.max(tuple(range(x.ndim, 2 * x.ndim)))

        if function in ("minimum_filter", "grey_erosion"):
            return eroded(x).astype(output)
        if function in ("maximum_filter", "grey_dilation"):
            return dilated(x).astype(output)
        if function == "morphological_gradient":
            more, less = dilated(x), eroded(x)
        elif function in ("grey_opening", "white_tophat"):
            more, less = x, dilated(eroded(x))
        else:
            more, less = eroded(dilated(x)), x
        if function in ("grey_opening", "grey_closing"):
            return (less if function == "grey_opening" else more).astype(output)
        if output.kind == "b":
            return more ^ less
        return more.astype(output) - less.astype(output)


def draw_filter(choices):
    """Return a legal call of a function of fastpool.ndimage."""
    pick = choices.pick
    function, dtype = pick(FUNCTIONS), pick(cases.DTYPE_NAMES)
    rank = pick([1, 2, 2, 3, 4])
    longest = {1: [40, 70], 2: [12, 20], 3: [6]}.get(rank, [])
    shape = tuple(pick([1, 2, 3, 5, *longest]) for _ in range(rank))
    if function.endswith("1d"):
        axes = (choices.integer(0, rank - 1),)
    else:
        axes = [axis for axis in range(rank) if not choices.once_in(4)] or [0]
        axes = tuple(axes[::-1] if choices.once_in(2) else axes)
    size = tuple(pick([1, 2, 3, 4, 7, *[25] * (rank < 3)]) for _ in axes)
    origin = tuple(pick([0, 0, choices.integer(-(k // 2), (k - 1) // 2)]) for k in size)
    if "uniform" in function:
        wider = block_cases.WIDER if dtype in _FLOATS else {dtype: ["float64", "float32"]}
        outputs = [None, None, *wider[dtype]]
        more = {"numerics": pick(["pairwise", "pairwise", "exact", "sequential"])}
    else:
        outputs = [None, None, None, *(["int64"] if dtype in ("int8", "uint16") else [])]
        more = {}
    return Filter(
        *(function, shape, dtype, choices.integer(0, 2**16), axes, size, origin),
        mode=tuple(pick([*MODES]) for _ in axes),
        cval=pick([0, 1, *[-2.5] * (dtype in _FLOATS)]),
        output=pick(outputs),
        more=more,
        memory=draw_arrangement(choices, rank),
    )


def compare_filter(case, counts, builds, threads):
    """Raise unless each configuration gives what the twin gives; count them in `counts`."""
    plain = case.given()["input"]
    arrays = {"plain": plain, "arranged": case.memory.holding(plain)}
    expected = case.expected(plain)
    for build in builds:
        with running.using(build):
            for how, x in arrays.items():
                same(case.call()(**case.given(x)), expected, f"{build}, {how}")
                _count(counts, case.function, case.dtype, build, 1, how)


# ------------------------------------------------------------------------------------ bad arguments


def compare_spoiled(case, counts):
    """Raise unless the call gives a result, or names an argument in an error and writes nothing."""
    call, given = case.call(), {**case.given(), **case.spoiled}
    names = [name for name in inspect.signature(call).parameters if name != "more"]
    out = None
    if isinstance(case, Blocks) and not case.levels and not case.attributes["return_counts"]:
        out = given["out"] = np.ones_like(call(**case.given()))
    with in_time(1000, f"{case.spoiled}"):
        try:
            call(**given)
        except (TypeError, ValueError, NotImplementedError) as refused:
            named = re.match(rf"({'|'.join(map(re.escape, names))})\b", f"{refused}")
            assert named, f"{case.spoiled}: {refused!r}"
            assert out is None or (out == 1).all(), f"{case.spoiled}: written before {refused!r}"
            counts["refused", "attributes"] += 1
        else:
            counts["refused", "by nobody"] += 1
