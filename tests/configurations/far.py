"""Calls whose attributes are far from their arrays, and the limits on their time and memory.

`draw_far(choices)` returns a call of any front end: arrays of a few elements to a megabyte, and
kernels, strides, dilations, pads, divisors and output sizes that are small, close to the extents,
large, or around the limits. `Measure` runs it. docs/promises.md states the rule.
"""

import contextlib
import ctypes
import gc
import math
import re
import sys
import time
import tracemalloc
from dataclasses import dataclass

import numpy as np

import fastpool
import fastpool.onnx
import fastpool.openvino
from fastpool._running import plan_cache

from .choices import Choices

MIB = 1 << 20
# Results that are not computed, because the machine would have to hold them.
MOST_OUTPUT_BYTES = 24 * MIB
SECONDS, SECONDS_PER_BYTE, SECONDS_PER_ADDITION = 0.5, 2e-7, 1e-8
# NumPy makes Lp norms part by part, in float64: a long window is a part (docs/promises.md).
NORM_SECONDS, NORM_ARRAYS = 2, 14
# What the interpreter and its allocators may add to a call that fits.
NOISE = 2 * MIB
# What may stay after all calls, next to the plans: scratch of three builds, fragments.
KEPT_BYTES = 64 * MIB

NEAR_LIMITS = [2**31 - 2, 2**31 - 1, 2**31, 2**31 + 1, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, 2**80]
LARGE = [10**3, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9, 2**16, 2**20, 2**26 + 1, 2**30]
DTYPES = ["float32", "uint8", "float64", "float16", "int64", "int16", "uint64", "bool"]


@dataclass(frozen=True)
class Far:
    """One call: ``function(array, *positional, **attributes)`` of a front end, by its name."""

    function: str
    shape: tuple
    dtype: str
    positional: tuple
    attributes: dict


def draw_shape(choices, rank):
    """Return extents of spatial axes of up to 300,000 elements in all."""
    most = choices.pick([8, 64, 1000, 10**4, 10**5, 300_000])
    extents = []
    for _ in range(rank):
        extent = choices.pick([1, choices.integer(1, 9), choices.integer(1, most), most])
        extents.append(max(1, min(extent, most)))
        most = max(1, most // extents[-1])
    return tuple(extents[i] for i in sorted(range(rank), key=lambda _: choices.integer(0, 9)))


def draw_number(choices, size, least):
    """Return an attribute of an axis: small, around its extent, large, or around a limit."""
    options = [choices.integer(least, 5)] * 3
    options += [size - 1, size, size + 1, 2 * size, size // 2]
    options += [choices.pick(LARGE)] * 3 + [choices.pick(NEAR_LIMITS)]
    return max(least, choices.pick(options))


def per_axis(choices, sizes, least):
    return tuple(draw_number(choices, size, least) for size in sizes)


def usual(choices, sizes, least, value):
    """Return numbers for all axes, half of the time the usual one."""
    return (value,) * len(sizes) if choices.once_in(2) else per_axis(choices, sizes, least)


def draw_far(choices):
    """Return a `Far`."""
    rank = choices.pick([1, 1, 2, 2, 3])
    sizes = draw_shape(choices, rank)
    few = math.prod(sizes) <= 10**4
    planes = choices.pick([(1, 1), (1, 1), (1, 2), (0, 1), *([(2, 3), (1, 16)] if few else [])])
    dtype = choices.pick(DTYPES)
    name = choices.pick(sorted(DRAWS))
    positional, attributes = DRAWS[name](choices, sizes, dtype)
    if name.startswith("openvino.adaptive"):
        planes = max(1, planes[0]), planes[1]
    if "qlinear" in name:
        dtype = "uint8"
    if "lp_pool" in name:
        dtype = choices.pick(["float32", "float64", "float16"])
    return Far(name, (*planes, *sizes), dtype, positional, attributes)


def _windows(choices, sizes):
    """Return a kernel and attributes of windows, which fit more often than by chance."""
    kernel, dilations = usual(choices, sizes, 1, 2), usual(choices, sizes, 1, 1)
    strides = usual(choices, sizes, 1, 1)
    begins, ends = (list(usual(choices, sizes, 0, 0)) for _ in range(2))
    for i, (k, d, size) in enumerate(zip(kernel, dilations, sizes, strict=True)):
        lacking = (k - 1) * d + 1 - size - begins[i] - ends[i]
        if lacking > 0 and not choices.once_in(4):
            begins[i] += lacking // 2
            ends[i] += lacking - lacking // 2
    attributes = {"strides": strides, "dilations": dilations, "pads": (*begins, *ends)}
    if choices.once_in(3):
        attributes["ceil_mode"] = True
        attributes["ceil_rule"] = choices.pick(["clip", "keep"])
    elif choices.once_in(4):
        attributes["auto_pad"] = choices.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
        attributes["pads"] = 0
    return kernel, attributes


def _divisors(choices):
    return {
        "count_include_pad": choices.once_in(2),
        "divisor": None if choices.once_in(2) else (
            draw_number(choices, 7, 1) * choices.pick([1, -1])
        ),
        "numerics": choices.pick(["exact", "sequential", "pairwise"]),
        "nan": choices.pick(["propagate", "ignore"]),
    }  # fmt: skip


def _max_pool(choices, sizes, dtype):
    kernel, attributes = _windows(choices, sizes)
    return (kernel,), attributes | {"return_indices": choices.once_in(2)}


def _avg_pool(choices, sizes, dtype):
    kernel, attributes = _windows(choices, sizes)
    attributes |= _divisors(choices) | {"beyond": choices.pick(["drop", "count"])}
    attributes["dtype"] = None if dtype.startswith("float") else choices.pick([None, "float64"])
    return (kernel,), attributes


def _lp_pool(choices, sizes, dtype):
    kernel, attributes = _windows(choices, sizes)
    return (kernel, choices.pick([1, 2, math.inf])), attributes


def _max_unpool(choices, sizes, dtype):
    attributes = {"strides": usual(choices, sizes, 1, 2), "pads": usual(choices, sizes, 0, 0)}
    return (usual(choices, sizes, 1, 2),), attributes


def _global(choices, sizes, dtype):
    return (), {}


def _adaptive(choices, sizes, dtype):
    return (per_axis(choices, sizes, 0),), {}


def _adaptive_avg(choices, sizes, dtype):
    return (per_axis(choices, sizes, 0),), {
        "numerics": choices.pick(["exact", "sequential", "pairwise"])
    }


def _onnx(choices, sizes, dtype, **more):
    kernel, attributes = _windows(choices, sizes)
    attributes.pop("ceil_rule", None)
    attributes["ceil_mode"] = int(attributes.get("ceil_mode", 0))
    if attributes["pads"] == 0:
        del attributes["pads"]
    return (), {"kernel_shape": kernel, **attributes, **more}


def _onnx_average(choices, sizes, dtype):
    return _onnx(choices, sizes, dtype, count_include_pad=choices.integer(0, 1))


def _qlinear(choices, sizes, dtype):
    _, attributes = _onnx(choices, sizes, dtype, count_include_pad=choices.integer(0, 1))
    del attributes["dilations"]
    scales = np.float32(0.1), np.uint8(3), np.float32(choices.pick([0.1, 1e-9, 1e9])), np.uint8(7)
    return scales, attributes


def _openvino(choices, sizes, dtype, **more):
    kernel, attributes = _windows(choices, sizes)
    pads = attributes["pads"] or (0,) * 2 * len(sizes)
    return (), {
        "strides": attributes["strides"],
        "pads_begin": pads[: len(sizes)],
        "pads_end": pads[len(sizes) :],
        "kernel": kernel,
        "dilations": attributes["dilations"],
        "rounding_type": choices.pick(["floor", "ceil", "ceil_torch"]),
        "auto_pad": choices.pick(["explicit", "explicit", "same_upper", "valid"]),
        **more,
    }


def _openvino_max(choices, sizes, dtype):
    return _openvino(choices, sizes, dtype, version=14)


def _openvino_average(choices, sizes, dtype):
    return _openvino(choices, sizes, dtype, version=16, exclude_pad=choices.once_in(2))


def _explain(choices, sizes, dtype):
    """A plan of arrays that no machine holds is made, explained and cut at once."""
    kernel, attributes = _windows(choices, sizes)
    return (kernel, choices.pick([1, 2**20, 2**33, 2**40])), attributes


DRAWS = {
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "lp_pool": _lp_pool,
    "max_unpool": _max_unpool,
    "global_max_pool": _global,
    "global_avg_pool": _global,
    "adaptive_max_pool": _adaptive,
    "adaptive_avg_pool": _adaptive_avg,
    "onnx.max_pool": _onnx,
    "onnx.average_pool": _onnx_average,
    "onnx.qlinear_average_pool": _qlinear,
    "openvino.max_pool": _openvino_max,
    "openvino.avg_pool": _openvino_average,
    "openvino.adaptive_avg_pool": _adaptive,
    "openvino.adaptive_max_pool": _adaptive,
    "explain max": _explain,
    "explain average": _explain,
}


def _torch(name):
    """Return a draw of a function of fastpool.torch, which takes one number for all axes."""

    def draw(choices, sizes, dtype):
        size = max(sizes)
        if name.startswith("adaptive"):
            return (draw_number(choices, size, 0),), {}
        kernel, stride = draw_number(choices, size, 1), draw_number(choices, size, 1)
        return (kernel, stride, min(draw_number(choices, size, 0), kernel // 2)), {}

    return draw


def add_front_ends():
    """Add those of packages that are large or optional, as far as they are installed."""
    try:
        import fastpool.torch  # noqa: F401
    except ImportError:
        pass
    else:
        for name in ("max_pool", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool"):
            DRAWS[f"torch.{name}"] = _torch(name)
    try:
        import fastpool.dask  # noqa: F401
    except ImportError:
        return
    DRAWS["dask.max_pool"], DRAWS["dask.avg_pool"] = _max_pool, _avg_pool
    DRAWS["dask.adaptive_avg_pool"] = _adaptive_avg


# --------------------------------------------------------------------------------------- measured


def peak_since(reset=False):
    """Return the most memory that this process had in use since it was reset."""
    if reset:
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
    with open("/proc/self/status") as f:
        return int(re.search(r"VmHWM:\s+(\d+) kB", f.read())[1]) << 10


def give_back():
    """Free what is garbage, and give free memory back to the system (glibc keeps fragments)."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


class TooLarge(Exception):
    """The result would be larger than what is computed here."""


class Measure:
    """Runs calls, raises AssertionError where one passes its limits, and counts what happened."""

    def __init__(self, trace_one_in=8):
        self.counts = {"result": 0, "TypeError": 0, "ValueError": 0, "too large": 0}
        self.worst = {"seconds": (0.0, None), "memory": (0.0, None)}
        self._trace_one_in, self._done = trace_one_in, 0
        self._rng = np.random.default_rng(0)

    def run(self, case):
        """Run a `Far`: a result, a TypeError or a ValueError within its limits."""
        x = self._array(case)
        self._done += 1
        traced = self._done % self._trace_one_in == 0
        if traced:
            tracemalloc.start()
        before = peak_since(reset=True)
        start = time.process_time()
        output_bytes, additions = 0, 0
        try:
            output_bytes, additions = call(case, x)
            kind = "result"
        except (TypeError, ValueError) as error:
            kind = type(error).__name__
            assert 0 < len(str(error)) < 2000, f"{case}: an error of {len(str(error))} characters"
        except TooLarge:
            kind = "too large"
        seconds = time.process_time() - start
        added = peak_since() - before
        if traced:
            added = max(added, tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        self.counts[kind] += 1
        self._check(case, x.nbytes, output_bytes, additions, seconds, added)

    def _check(self, case, input_bytes, output_bytes, additions, seconds, added):
        arrays = input_bytes + output_bytes
        most = SECONDS + SECONDS_PER_BYTE * arrays + SECONDS_PER_ADDITION * additions
        most += NORM_SECONDS if "lp_pool" in case.function else 0
        assert seconds < most, f"{case}: {seconds:.2f} s, at most {most:.2f}"
        # Next to the result: the rule of docs/promises.md.
        room = output_bytes + 2 * arrays + 16 * MIB + NOISE
        room += NORM_ARRAYS * arrays if "lp_pool" in case.function else 0
        assert added <= room, f"{case}: {added >> 10} KiB added, at most {room >> 10}"
        for name, share in (("seconds", seconds / most), ("memory", added / room)):
            if share > self.worst[name][0]:
                self.worst[name] = share, case
        assert plan_cache.plan_cache_bytes() <= plan_cache.plan_cache_limit(), case

    def _array(self, case):
        values = self._rng.integers(0, 100, case.shape)
        return values.astype(case.dtype)


def call(case, x):
    """Make a call. Return the bytes of its results, and the additions that are made in order."""
    if case.function.startswith("explain"):
        return _explained(case), 0
    route, _, name = case.function.rpartition(".")
    module = getattr(fastpool, route) if route else fastpool
    attributes = dict(case.attributes)
    _refuse_large(case)
    if route == "torch":
        import torch

        name = f"{name}{len(case.shape) - 2}d"
        x = torch.from_numpy(x.astype("float32"))
    elif route == "dask":
        import dask.array

        x = dask.array.from_array(x, chunks=tuple(-(-n // 2) or 1 for n in x.shape))
    arguments = (x, *case.positional)
    if name == "max_unpool":
        z = np.arange(x.size).reshape(x.shape)
        arguments = (x, z, *case.positional)
    results = getattr(module, name)(*arguments, **attributes)
    if route == "dask":
        results = dask.compute(results, scheduler="synchronous")[0]
    results = results if isinstance(results, tuple) else (results,)
    nbytes = sum(getattr(y, "nbytes", 0) for y in results)
    in_order = attributes.get("numerics") in ("sequential", "pairwise")
    # (docs/promises.md: averages of long windows that are dilated down the rows)
    in_order |= "avg_pool" in name and max(attributes.get("dilations", (1,))) > 1
    return nbytes, results[0].size * x.size if in_order else 0


def _refuse_large(case):
    """Raise TooLarge if the plan of the call has a result that is not to be computed."""
    shape, kinds = case.shape, case.function.rpartition(".")[2]
    sizes = shape[2:]
    outputs = []
    attributes, positional = case.attributes, case.positional
    if kinds.startswith("adaptive"):
        numbers = positional[0] if isinstance(positional[0], tuple) else positional * len(sizes)
        outputs = numbers[: len(sizes)]
    elif kinds == "max_unpool":
        outputs = [(n - 1) * s + k for n, s, k in
                   zip(sizes, attributes["strides"], positional[0], strict=True)]  # fmt: skip
    elif not kinds.startswith("global"):
        outputs = [_outputs(case, i) for i in range(len(sizes))]
    room = MOST_OUTPUT_BYTES // 16
    if math.prod(max(1, n) for n in outputs) * math.prod(shape[:2]) > room:
        raise TooLarge


def _outputs(case, i):
    """Return at least the outputs of a window along a spatial axis."""
    n, attributes = len(case.shape) - 2, case.attributes
    if case.function.startswith("torch."):
        kernel, stride, pad = case.positional
        return (case.shape[2 + i] + 2 * pad - kernel) // stride + 2
    pads = attributes.get("pads") or attributes.get("pads_begin", ()) + attributes.get(
        "pads_end", (0,) * n
    )
    pads = pads if len(pads) == 2 * n else (0,) * 2 * n
    kernel = attributes.get("kernel_shape") or attributes.get("kernel") or case.positional[0]
    dilation = attributes.get("dilations", (1,) * n)[i]
    room = case.shape[2 + i] + pads[i] + pads[n + i] - (kernel[i] - 1) * dilation - 1
    if attributes.get("auto_pad", "NOTSET").lower().startswith("same"):
        room = case.shape[2 + i]
    return max(0, room) // attributes["strides"][i] + 2


def _explained(case):
    kernel, scale = case.positional
    shape = (*case.shape[:2], *(size * scale for size in case.shape[2:]))
    make = fastpool.plan_max_pool if case.function.endswith("max") else fastpool.plan_avg_pool
    plan = make(shape, case.dtype, kernel, **case.attributes)
    text = plan.explain()
    assert len(text) < 20_000, f"{case}: {len(text)} characters"
    middle = tuple(slice(n // 2, n // 2 + 1) for n in plan.output_shape)
    plan.tile(middle).plan.explain()
    return 0


def measure(choices, draws, trace_one_in=8, check_every=1000):
    """Run `draws` calls; return the `Measure`. What stays in memory is checked, too.

    Each trace leaves 12 KB in the process (CPython 3.11), which would count after thousands.
    """
    measured, started = Measure(trace_one_in), None
    for name, draw in DRAWS.items():  # what is loaded at the first call
        dtype = "uint8" if "qlinear" in name else "float32"
        case = Far(name, (1, 1, 9), dtype, *draw(Choices(lambda low, high: low), (9,), dtype))
        with contextlib.suppress(TypeError, ValueError, TooLarge):
            call(case, np.ones((1, 1, 9), dtype))
    for number in range(draws):
        case = draw_far(choices)
        try:
            measured.run(case)
        except AssertionError:
            raise
        except BaseException:
            print(f"{number}: {case}", file=sys.stderr, flush=True)
            raise
        if number == check_every or (started is not None and number % check_every == 0):
            give_back()
            now = peak_since(reset=True)
            started = now if started is None else started
            most = plan_cache.plan_cache_limit() + KEPT_BYTES
            assert now - started <= most, f"{(now - started) >> 20} MiB kept after {number} calls"
    return measured
