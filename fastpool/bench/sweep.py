"""Time fastpool alone: does the time per output grow with the window?"""

import math
import time
from functools import partial
from itertools import product

import numpy as np

import fastpool

WINDOWS = range(2, 130)
QUICK_WINDOWS = (2, 3, 5, 7, 8, 9, 13, 16, 17, 24, 31, 33, 48, 63, 65, 96, 127, 129)
CHANNELS, SIZE = 16, 224
ROUNDS = 5
# The windows that `check` compares at stride 1, and how much longer the larger may take.
SMALL, LARGE = 7, 63
ALLOWED = {"values": 2, "indices": 3}


def combinations():
    """Return one dict per curve."""
    names = ("kind", "dtype", "layout", "stride", "dilation")
    values = ("values", "indices"), ("float32", "uint8"), ("NCHW", "NHWC"), (1, 2, 3), (1, 2)
    return [dict(zip(names, chosen, strict=True)) for chosen in product(*values)]


def sweep(windows, say):
    """Return one dict per curve and window: nanoseconds per output, the least of a few rounds.

    Only the window differs: all windows share one input, padded for an equal number of outputs
    ("SAME_UPPER"). All calls use one thread. `say` gets messages on progress.
    """
    results = []
    for curve in combinations():
        say(" ".join(map(str, curve.values())))
        shape = (1, CHANNELS, SIZE, SIZE)
        if curve["layout"] == "NHWC":
            shape = (1, SIZE, SIZE, CHANNELS)
        x = np.random.default_rng(0).integers(0, 256, shape).astype(curve["dtype"])
        calls = _calls(x, curve, windows)
        least = dict.fromkeys(windows, math.inf)
        for _ in range(ROUNDS):
            for kernel, call in calls.items():
                start = time.perf_counter()
                call()
                least[kernel] = min(least[kernel], time.perf_counter() - start)
        outputs = CHANNELS * math.ceil(SIZE / curve["stride"]) ** 2
        for kernel, seconds in least.items():
            nanoseconds = round(seconds / outputs * 1e9, 4)
            results.append({**curve, "kernel": kernel, "nanoseconds": nanoseconds})
    return results


def _calls(x, curve, windows):
    """Return window -> call. All write to one array, so memory causes no differences."""
    indices = curve["kind"] == "indices"
    plans = {
        kernel: fastpool.plan_max_pool(
            x.shape,
            x.dtype,
            kernel,
            strides=curve["stride"],
            dilations=curve["dilation"],
            auto_pad="SAME_UPPER",
            layout=curve["layout"],
            return_indices=indices,
            num_threads=1,
        )
        for kernel in windows
    }
    shape = next(iter(plans.values())).output_shape
    out = np.zeros(shape, x.dtype)
    out_indices = np.zeros(shape, np.int64) if indices else None
    return {
        kernel: partial(plan, x, out=out, out_indices=out_indices) for kernel, plan in plans.items()
    }


def check(results):
    """Yield lines of text: the larger window's time over the smaller one's, at stride 1."""
    times = {}
    for result in results:
        curve = tuple(v for k, v in result.items() if k not in ("kernel", "nanoseconds"))
        times.setdefault(curve, {})[result["kernel"]] = result["nanoseconds"]
    yield f"time({LARGE}) / time({SMALL}) at stride 1, on one thread:"
    for (kind, dtype, layout, stride, dilation), curve in times.items():
        if stride == 1:
            ratio, allowed = curve[LARGE] / curve[SMALL], ALLOWED[kind]
            verdict = "" if ratio <= allowed else f"  more than {allowed}"
            yield f"  {kind:8} {dtype:8} {layout}  dilation {dilation}  {ratio:5.2f}{verdict}"
