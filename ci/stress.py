"""Pool in many Python threads at once, with forks in between, and compare every result.

    python ci/stress.py --minutes 10 --threads 16
    python ci/stress.py --scaling

Runs the installed package. It stops at the first wrong result, or at a forked child that hangs,
with status 1. `--scaling` prints how much two Python threads that pool alone gain over one. Without
the GIL that is nearly 2 on two quiet processors.
"""

import argparse
import faulthandler
import os
import pickle
import random
import signal
import sys
import threading
import time
import traceback
import warnings

import numpy as np

import fastpool

SECONDS_OF_A_CHILD = 30
LIST = [3, 3]  # an argument of all threads
CHANGING = [2, 2]  # one that a thread changes


def make_input(shape, dtype="float32"):
    """Return an array that every thread pools."""
    values = np.random.default_rng(len(shape)).integers(-100, 100, shape)
    return values.astype(dtype)


X = make_input((2, 8, 40, 40))
BYTES = make_input((1, 3, 30, 50), "uint8")
PLANS = {
    "max": fastpool.plan_max_pool(X.shape, X.dtype, 3, pads=1, return_indices=True, num_threads=1),
    "max on two": fastpool.plan_max_pool(X.shape, X.dtype, 5, pads=2, num_threads=2),
    "average": fastpool.plan_avg_pool(X.shape, X.dtype, 3, strides=2),
    "norm": fastpool.plan_lp_pool(X.shape, X.dtype, 2),
    "adaptive": fastpool.plan_adaptive_avg_pool(X.shape, X.dtype, 7),
}
INDICES = fastpool.max_pool(X, 2, strides=2, return_indices=True)

# Every call finds its plan in a cache. Arguments of all threads are among them.
CALLS = {
    **{name: (lambda plan=plan: plan(X)) for name, plan in PLANS.items()},
    "pickled": lambda: pickle.loads(pickle.dumps(PLANS["max"]))(X),
    "list": lambda: fastpool.max_pool(X, LIST, strides=LIST),
    "tuple": lambda: fastpool.avg_pool(BYTES, (2, 3), dtype="float32"),
    "indices": lambda: fastpool.max_pool(BYTES, 2, strides=[2, 2], return_indices=True),
    "unpooled": lambda: fastpool.max_unpool(*INDICES, 2, strides=2),
    "onnx": lambda: fastpool.onnx.average_pool(X, kernel_shape=LIST, pads=[1, 1, 1, 1]),
    "openvino": lambda: fastpool.openvino.max_pool(
        X, version=1, kernel=LIST, strides=[2, 2], auto_pad="valid"
    ),
    "global": lambda: fastpool.global_max_pool(BYTES),
    "explained": lambda: np.frombuffer(PLANS["average"].explain().encode(), np.uint8),
}


def same(result, expected):
    if isinstance(expected, tuple):
        return all(map(same, result, expected))
    return result.dtype == expected.dtype and np.array_equal(result, expected)


EXPECTED = {name: call() for name, call in CALLS.items()}
# Without the GIL, a call may see elements of both states.
CHANGED = [fastpool.max_pool(X, taps) for taps in ([2, 2], [4, 4], [2, 4], [4, 2])]


def check_call(name):
    if not same(CALLS[name](), EXPECTED[name]):
        raise AssertionError(f"a wrong result: {name}")


def check_new_geometry(width):
    """Pool an array of another width: the caches overflow after a thousand of them.

    So do those of the steps of long windows, and of the sums of norms.
    """
    x = np.full((1, 1, 1, width), width, np.int32)
    taps = width % 300 + 3
    y = fastpool.max_pool(x, (1, taps), pads=(0, taps // 2, 0, (taps - 1) // 2))
    if y.shape != x.shape or (y != width).any():
        raise AssertionError(f"a wrong result: width {width}")
    taps = width % 40 + 3
    x = np.zeros((1, 1, taps + 2))
    x[..., 2] = width  # in all three windows
    y = fastpool.lp_pool(x, taps, p=3)
    if y.shape != (1, 1, 3) or (y != width).any():
        raise AssertionError(f"a wrong norm: width {width}")


def check_changing_list():
    y = fastpool.max_pool(X, CHANGING)
    if not any(same(y, expected) for expected in CHANGED):
        raise AssertionError("a wrong result: a list that another thread changes")


class Stress:
    """The threads, and what they found."""

    def __init__(self, threads):
        self.counts = [0] * threads
        self.error = None
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.pool, args=(i,)) for i in range(threads)]
        self.threads.append(threading.Thread(target=self.change))

    def pool(self, number):
        draw = random.Random(number)
        names = list(CALLS)
        try:
            while not self.stop.is_set():
                for _ in range(20):
                    check_call(draw.choice(names))
                check_new_geometry(draw.randrange(3, 4000))
                check_changing_list()
                self.counts[number] += 22
        except BaseException as error:  # also what an interpreter raises that is out of memory
            self.error = error
            self.stop.set()

    def change(self):
        while not self.stop.is_set():
            CHANGING[:] = 4, 4
            CHANGING[:] = 2, 2
            time.sleep(1e-4)

    def fork_elsewhere(self):
        """Fork in a new thread: there, all lists belong to another thread."""
        outcomes = []
        thread = threading.Thread(target=lambda: outcomes.append(self.fork()))
        thread.start()
        thread.join()
        return outcomes == [True]

    def fork(self):
        """Fork. Return whether the child could make every call."""
        child = os.fork()
        if child == 0:
            faulthandler.enable()
            faulthandler.dump_traceback_later(SECONDS_OF_A_CHILD - 5)  # where it hangs
            try:
                for name in CALLS:
                    check_call(name)
                for width in range(5, 500, 50):
                    check_new_geometry(width)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        limit = time.monotonic() + SECONDS_OF_A_CHILD
        while time.monotonic() < limit:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                if status:
                    print("the child ended with", os.waitstatus_to_exitcode(status))
                return status == 0
            time.sleep(0.01)
        print("the child hangs")
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return False

    def run(self, seconds, forks):
        for thread in self.threads:
            thread.start()
        end, forked = time.monotonic() + seconds, 0
        while not self.stop.wait(0.2) and time.monotonic() < end:
            if forks:
                if not (self.fork_elsewhere() if forked % 2 else self.fork()):
                    self.error = AssertionError(f"forked child {forked} failed or hung")
                    break
                forked += 1
        self.stop.set()
        for thread in self.threads:
            thread.join()
        print(f"{sum(self.counts)} calls in {len(self.counts)} threads, {forked} forks: ", end="")
        print(f"{self.error!r}" if self.error else "no difference")
        return self.error is not None


def scaling(rounds=7, seconds=1.0):
    """Return how many times the calls of one thread two threads make, round by round."""
    plan = fastpool.plan_max_pool((1, 64, 56, 56), "float32", 3, strides=2, num_threads=1)

    def count(start, counts, number):
        x, y = np.zeros(plan.input_shape, "f4"), np.empty(plan.output_shape, "f4")
        start.wait()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            plan(x, out=y)
            counts[number] += 1

    def calls(threads):
        start, counts = threading.Barrier(threads), [0] * threads
        running = [threading.Thread(target=count, args=(start, counts, i)) for i in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return sum(counts)

    return [calls(2) / calls(1) for _ in range(rounds)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--no-forks", action="store_true", help="for sanitizers")
    parser.add_argument("--scaling", action="store_true")
    options = parser.parse_args()
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"Python {sys.version.split()[0]}, {'with' if gil else 'without'} the GIL")
    if options.scaling:
        ratios = sorted(scaling())
        print(
            f"two threads over one: {ratios[len(ratios) // 2]:.2f} (median of {len(ratios)} "
            f"rounds, from {ratios[0]:.2f} to {ratios[-1]:.2f})"
        )
        return 0
    warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)
    return Stress(options.threads).run(60 * options.minutes, not options.no_forks)


if __name__ == "__main__":
    sys.exit(main())
