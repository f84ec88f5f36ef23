"""Measure what each strategy gains: time layers with their strategy and with it switched off.

    python ci/strategies.py                         # 3 seeds of 400 random layers, every build
    python ci/strategies.py --only apart --isa avx2 --seeds 1 2 --layers 1000
    python ci/strategies.py --list                  # and the gain on each layer

Maxima alone. A layer counts for the strategy that takes it, not for the one that then pools
its interleaved planes or composites. A strategy that gains less than 1.15 (the geometric mean over
the layers that it takes) should be narrowed or removed, and the exit status is 1. Those that can
never be off are listed apart.
"""

import argparse
import functools
import math
import os
import statistics
import sys
import time
from collections import defaultdict

import numpy as np

import fastpool
from fastpool._running import builds, strategies
from fastpool.bench.layers import random_layers
from fastpool.bench.workloads import make_arrays

WORTH = 1.15
SWITCH = "FASTPOOL_STRATEGY"
NEVER_OFF = strategies.NEVER_OFF
# Rounds in which both ways run in turns, and the seconds of each way in a round. Shared machines
# are slow for some milliseconds at a time, so several short rounds find the shortest time.
ROUNDS = 7
SECONDS = 0.001
# Gains and losses of less than this are measured again, in three times the rounds.
NEAR = 0.15
AGAIN = 3
FEW_LAYERS = 8  # of which a mean says nothing


def plan_of(workload):
    """Return the plan of a layer, for one thread."""
    settings = {"layout": workload.layout, "num_threads": 1}
    arguments = workload.shape, workload.dtype
    indices = workload.kind == "indices"
    return fastpool.plan_max_pool(*arguments, **workload.window, **settings, return_indices=indices)


def prepared(workload, x, off=""):
    """Return a call without some strategies, its results and its work."""
    plan = plan_of(workload)
    os.environ[SWITCH] = off
    try:
        results = plan(x)
    finally:
        del os.environ[SWITCH]
    results = results if isinstance(results, tuple) else (results,)
    names = "out", "out_indices"
    call = functools.partial(plan, x, **dict(zip(names, results, strict=False)))
    return call, results, (plan._prepared.once or plan._prepared).work


def calls_of_a_round(call):
    """Return how many calls take about as long as a round."""
    start = time.thread_time()
    call()
    return 1 + int(SECONDS / max(1e-7, time.thread_time() - start))


def seconds(one, two):
    """Return the shortest times of two calls, which run in turns.

    It is the processor's time of this thread, without the time in which others ran.
    """
    calls, best = (one, two), [math.inf, math.inf]
    counts = [calls_of_a_round(call) for call in calls]
    for number in range(ROUNDS * AGAIN):
        if number == ROUNDS and abs(best[1] / best[0] - 1) > NEAR:
            break
        for place in (0, 1) if number % 2 else (1, 0):
            call, count = calls[place], counts[place]
            start = time.thread_time()
            for _ in range(count):
                call()
            best[place] = min(best[place], (time.thread_time() - start) / count)
    return best


def measured(workload, only):
    """Return a layer's strategy, what it gains (0: not measured), and a line about it."""
    (x,) = make_arrays(workload)
    call, results, work = prepared(workload, x)
    name = work.strategy
    if name in NEVER_OFF or only not in (None, name):
        return name, 0, ""
    other, others, without = prepared(workload, x, f"-{name}")
    for result, expected in zip(others, results, strict=True):
        assert np.array_equal(result, expected), (workload, name)
    with_it, without_it = seconds(call, other)
    line = f"{without_it / with_it:.3f} {with_it * 1e6:.1f} us, by {without.strategy}"
    return name, without_it / with_it, f"{line}: {workload.name} {workload.form}"


def report(build, found, count):
    """Print a line for each strategy; return whether one gains too little."""
    poor = False
    print(f"{build}: strategy, layers and their share, gain, best and worst of a layer")
    for name, gains in sorted(found.items()):
        share = f"{name:18}{len(gains):5} {len(gains) / count:6.1%}"
        if not all(gains):
            print(f"  {share}   {'never off' if name in NEVER_OFF else 'not measured'}")
            continue
        mean, verdict = statistics.geometric_mean(gains), ""
        if mean < WORTH:
            verdict = "TOO LITTLE" if len(gains) >= FEW_LAYERS else "(too few layers to say)"
        poor |= verdict == "TOO LITTLE"
        print(f"  {share} {mean:6.2f} {max(gains):6.2f} {min(gains):6.2f}  {verdict}".rstrip())
    return poor


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--layers", type=int, default=400, help="random layers of each seed")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    names = [f.__name__ for row in strategies.STRATEGIES.values() for f in row]
    parser.add_argument("--only", choices=names, help="a strategy")
    isa = {"action": "append", "choices": [*builds.builds()]}
    parser.add_argument("--isa", **isa, help="a build; all by default")
    parser.add_argument("--list", action="store_true", help="print every layer too")
    options = parser.parse_args()
    drawn = [layer for seed in options.seeds for layer in random_layers(seed, options.layers)]
    layers = [layer for layer in drawn if layer.op == "max" and layer.kind != "unpool"]
    poor = False
    for build in options.isa or builds.builds():
        found = defaultdict(list)
        with builds.using(build):
            for layer in layers:
                name, gain, line = measured(layer, options.only)
                found[name].append(gain)
                if options.list and line:
                    print(f"{build} {name} {line}", flush=True)
        poor |= report(build, found, len(layers))
    sys.exit(poor)


if __name__ == "__main__":
    main()
