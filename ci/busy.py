"""Compare calls on the default number of threads with calls on one, while other processes compute.

    python ci/busy.py [--calls 600] [--loads 0,1,2,4] [--sides 256,1000,3000]
    python ci/busy.py --callers 2 [--sides 256,1000]

Each row has one kind of call, one side of the planes, and one load: that many processes that do
nothing but compute. Calls on one thread and on the default number take turns, in blocks of ten. The
columns are milliseconds: mean, median and 95th percentile of each, and the ratios of the means and
of the medians. With --callers, that many threads call at once, as in a server, next to no load. A
row has the calls of all of them per second. It takes 6 seconds.
"""

import argparse
import ctypes
import subprocess
import sys
import threading
import time

import numpy as np

import fastpool
from fastpool._running import capi

BLOCK = 10
SPIN = "while True: pass"


class CPlan(ctypes.Structure):
    """The beginning of `fastpool_plan` (fastpool.h), and room for the rest."""

    _fields_ = (
        *(("abi_and_size", ctypes.c_uint32 * 2), ("numbers", ctypes.c_int * 2)),
        *(("shapes_and_bytes", ctypes.c_size_t * 7), ("max_pool", ctypes.c_void_p)),
        ("rest", ctypes.c_size_t * 16),
    )


def from_c(plan, x, out):
    """Return a function that runs a plan of maxima through the C interface."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = ctypes.cast(pointer(capi._C_API, b"fastpool._C_API"), ctypes.POINTER(ctypes.c_void_p))
    make = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.py_object)
    c_plan = CPlan()
    make(table[1])(ctypes.addressof(c_plan), ctypes.sizeof(c_plan), plan)
    address, null, flags = ctypes.c_void_p, ctypes.c_void_p(), ctypes.c_uint(0)
    run = ctypes.CFUNCTYPE(ctypes.c_int, *[address] * 7, ctypes.c_int, ctypes.c_uint)
    run = run(c_plan.max_pool)
    arrays = address(x.ctypes.data), null, address(out.ctypes.data), null, null, null
    return lambda: run(ctypes.addressof(c_plan), *arrays, 0, flags)


def calls_of(side, rng):
    """Yield the name of each kind of call, and a function of the number of threads."""
    shape = 1, 4, side, side
    x = rng.standard_normal(shape, np.float32)
    window = {"kernel_shape": 3, "strides": 2, "pads": 1}
    y, indices = fastpool.max_pool(x, **window, return_indices=True)

    def plans(make, *shape, **more):
        return {n: make(*shape, **window, num_threads=n, **more) for n in (1, None)}

    maxima = plans(fastpool.plan_max_pool, shape, x.dtype)
    averages = plans(fastpool.plan_avg_pool, shape, x.dtype)
    with_indices = plans(fastpool.plan_max_pool, shape, x.dtype, return_indices=True)
    unpools = plans(fastpool.plan_max_unpool, y.shape, output_shape=shape)
    out, back = np.empty_like(y), np.empty_like(x)
    in_c = {n: from_c(plan, x, out) for n, plan in maxima.items()}
    yield "maxima", lambda n: maxima[n](x, out=out)
    yield "maxima, C", lambda n: in_c[n]()
    yield "averages", lambda n: averages[n](x, out=out)
    yield "indices", lambda n: with_indices[n](x, out=y, out_indices=indices)
    yield "unpooling", lambda n: unpools[n](y, indices, out=back)


def take_turns(call, calls):
    """Return the seconds of `calls` calls on one thread, and on the default number."""
    times = {1: [], None: []}
    for n in (1, None):
        call(n)
    for _ in range(calls // BLOCK):
        for n, noted in times.items():
            for _ in range(BLOCK):
                begin = time.perf_counter()
                call(n)
                noted.append(time.perf_counter() - begin)
    return times[1], times[None]


def throughput(call, n, callers, seconds):
    """Return the calls per second of several threads that call at once."""
    counts = [0] * callers
    end = time.perf_counter() + seconds

    def work(number):
        while time.perf_counter() < end:
            call[number](n)
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(i,)) for i in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def serve(sides, callers, rounds=6, seconds=0.5):
    """Print the throughput of several callers."""
    rng = np.random.default_rng(0)
    for side in sides:
        kinds = zip(*(calls_of(side, rng) for _ in range(callers)), strict=True)
        for kind in kinds:
            name, calls = kind[0][0], [call for _, call in kind]
            rates = {1: [], None: []}
            for _ in range(rounds):
                for n, noted in rates.items():
                    noted.append(throughput(calls, n, callers, seconds))
            one, default = (float(np.median(noted)) for noted in rates.values())
            print(
                f"{name:10} {side:5} callers {callers:2}: {one:8.0f} per second on one thread "
                f"each, {default:8.0f} by default: {default / one:.2f}",
                flush=True,
            )


def table(sides, loads, calls):
    """Print the rows of all loads."""
    rng = np.random.default_rng(0)
    names = "".join(f"{name:>9}" for name in ("mean", "median", "p95"))
    print(f"{'load, call, side':23} {names} |{names} |   mean median   (ms; one | default | ratio)")
    for load in loads:
        busy = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(load)]
        time.sleep(0.5)
        try:
            for side in sides:
                for name, call in calls_of(side, rng):
                    count = calls if side < 2000 else max(BLOCK, calls // 5)
                    one, default = take_turns(call, max(BLOCK, count))
                    row = [
                        [1e3 * f for f in (np.mean(t), np.median(t), np.percentile(t, 95))]
                        for t in (one, default)
                    ]
                    texts = ["".join(f"{value:9.3f}" for value in values) for values in row]
                    means, medians = (row[1][i] / row[0][i] for i in range(2))
                    ends = f"{means:7.2f} {medians:6.2f}"
                    print(
                        f"busy {load} {name:10} {side:5} {texts[0]} |{texts[1]} |{ends}", flush=True
                    )
        finally:
            for process in busy:
                process.kill()
                process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=600, help="at least 10")
    parser.add_argument("--loads", default="0,1,2,4")
    parser.add_argument("--sides", default="256,1000,3000", help="of planes, four in each call")
    parser.add_argument("--callers", type=int, default=0)
    given = parser.parse_args()
    sides = [int(side) for side in given.sides.split(",")]
    if given.callers:
        serve(sides, given.callers)
    else:
        table(sides, [int(load) for load in given.loads.split(",")], given.calls)


if __name__ == "__main__":
    main()
