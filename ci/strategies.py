"""Measure what each strategy gains: time layers with their strategy and with it switched off.

    python ci/strategies.py                    # the shared workloads and 200 random layers
    python ci/strategies.py --random 1000 --only flat_planes --isa avx512

Both ways run in turns in one process, and the shortest time of each counts. A strategy that wins
less than 1.15 times on every layer should go: its file in fastpool/kernels/maximum/ and its
function in fastpool/_running/strategies.py.
"""

import argparse
import os
import random
import statistics
import time
from collections import defaultdict

import numpy as np

import fastpool
from fastpool._running import builds, strategies
from fastpool._running.prepare import PreparedPool
from fastpool.bench.workloads import WORKLOADS

WORTH = 1.15
SWITCH = "FASTPOOL_STRATEGY"


def shared_layers():
    """Yield (name, shape, dtype, attributes) of the workloads that take maxima."""
    for workload in WORKLOADS:
        if workload.kind in ("values", "indices") and workload.dtype != "bfloat16":
            more = {"layout": workload.layout, "return_indices": workload.kind == "indices"}
            yield workload.name, workload.shape, workload.dtype, workload.window | more


def random_layers(count, seed):
    """Yield layers of up to 4 MB, of every kind of window that strategies are for."""
    rng = random.Random(seed)
    while count:
        sizes = [rng.choice([4, 7, 8, 13, 14, 20, 27, 28, 56, 112, 224]) for _ in range(2)]
        kernel = rng.choice([2, 2, 3, 3, 4, 5, 7, 9, 13, sizes[0]])
        channels = rng.choice([1, 3, 4, 16, 64, 192, 512])
        layout = rng.choice(["NCHW", "NHWC"])
        shape = (1, channels, *sizes) if layout == "NCHW" else (1, *sizes, channels)
        attributes = {
            "kernel_shape": kernel,
            "strides": rng.choice([1, 2, 2, kernel]),
            "pads": rng.choice([0, kernel // 2]),
            "dilations": rng.choice([1, 1, 1, 2]),
            "layout": layout,
            "return_indices": rng.random() < 0.3,
        }
        dtype = rng.choice(["float32", "float32", "uint8", "int8", "float16", "int16", "float64"])
        if np.prod(shape) > 1 << 20 or attributes["pads"] * 2 + min(sizes) < 2 * kernel:
            continue
        count -= 1
        yield f"{dtype} {shape} {attributes}", shape, dtype, attributes


def strategy_of(plan):
    """Return the strategy that a plan takes on the active build."""
    return PreparedPool(plan).pooling.strategy


def seconds(call, least):
    """Return the shortest time of a call, over calls that together take `least` seconds."""
    times, end = [], time.perf_counter() + least
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def worth(shape, dtype, attributes, rounds, least):
    """Return the strategy of a layer, the one without it, and how much longer that takes."""
    x = np.random.default_rng(0).integers(0, 99, shape).astype(dtype)
    plan = fastpool.plan_max_pool(shape, dtype, num_threads=1, **attributes)
    strategy = strategy_of(plan)
    with_it = plan(x)
    if strategy in strategies.NEVER_OFF:
        return strategy, None, None
    os.environ[SWITCH] = f"-{strategy}"
    try:
        other = fastpool.plan_max_pool(shape, dtype, num_threads=1, **attributes)
        without, instead = other(x), strategy_of(other)
    finally:
        del os.environ[SWITCH]
    for one, two in zip(np.atleast_1d(with_it), np.atleast_1d(without), strict=True):
        assert np.array_equal(one, two), (strategy, instead)
    best = [min(seconds(lambda p=p: p(x), least) for _ in range(rounds)) for p in (plan, other)]
    return strategy, instead, best[1] / best[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--random", type=int, default=200, help="random layers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="a strategy")
    parser.add_argument("--isa", action="append", help="a build; all by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.005, help="of a round")
    options = parser.parse_args()
    layers = [*shared_layers(), *random_layers(options.random, options.seed)]
    for build in options.isa or builds.builds():
        found = defaultdict(list)
        with builds.using(build):
            for name, *layer in layers:
                strategy, instead, gain = worth(*layer, options.rounds, options.seconds)
                if gain and options.only in (None, strategy):
                    found[strategy].append((gain, instead, name))
        for strategy, rows in sorted(found.items()):
            mean = statistics.geometric_mean(gain for gain, _, _ in rows)
            gain, instead, name = max(rows)
            least = min(rows)
            verdict = "" if gain >= WORTH else "   GOES"
            print(f"{build} {strategy}: {len(rows)} layers, mean {mean:.2f}{verdict}")
            print(f"    best  {gain:.2f} over {instead}: {name}")
            print(f"    least {least[0]:.2f} over {least[1]}: {least[2]}")


if __name__ == "__main__":
    main()
