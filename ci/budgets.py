"""Print what fastpool costs next to what it may cost; fail if something costs more.

    python ci/budgets.py            # what is the same on every run: bytes, lines, modules, calls
    python ci/budgets.py --time     # and times, on a machine that does nothing else

Start it with the Python of an environment that has fastpool: ci/lint.sh does, after the tests. A
limit is a little above the value of today. Lower it when the value falls. The goal is where it
should go. Times never fail: they depend on the machine. "?" is what cannot be measured here.
"""

import argparse
import glob
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import fastpool
from fastpool._api import average, maximum

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = os.path.dirname(fastpool.__file__)
# What the budget of lines leaves out: front ends, programs, and the reference implementation.
ELSEWHERE = "onnx", "openvino", "torch", "dask", "xarray", "files", "conventions", "ndimage"
ELSEWHERE += "_cli", "bench", "_reference"
SOURCES = [f"fastpool/*.{ending}" for ending in ("pyx", "pxi", "pxd", "h")]
CALLS, PROCESSES = 300, 30  # of which the fastest counts


def lines(*patterns, left_out=()):
    """Return the lines of the files that git has under some patterns."""
    command = ["git", "ls-files", "--", *patterns]
    names = subprocess.check_output(command, cwd=ROOT, text=True).split()
    kept = (name for name in names if name.split("/")[1] not in left_out)
    return sum((ROOT / name).read_bytes().count(b"\n") for name in kept)


def code_kilobytes():
    """Return the machine code and constants of the largest build, as `size` counts them."""
    builds = glob.glob(os.path.join(PACKAGE, "_kernels*.so"))
    try:
        table = subprocess.check_output(["size", *builds], text=True)
    except (OSError, subprocess.CalledProcessError):
        return None  # no binutils
    return max(int(row.split()[0]) for row in table.splitlines()[1:]) // 1000


def wheel_kilobytes():
    tag = sys.implementation.cache_tag
    wheels = glob.glob(str(ROOT / "build" / f"wheels-{tag}" / "*.whl"))
    return os.path.getsize(wheels[0]) // 1000 if wheels else None


def modules():
    """Return how many modules a new process loads for fastpool, after NumPy."""
    code = "import sys, numpy; n = len(sys.modules); import fastpool; print(len(sys.modules) - n)"
    return int(subprocess.check_output([sys.executable, "-P", "-c", code], text=True))


def calls(pool, plans):
    """Return how many Python functions of fastpool a call runs that has to plan."""
    x, count = np.zeros((1, 4, 8, 8), np.float32), 0

    def profile(frame, event, _):
        nonlocal count
        inside = event == "call" and frame.f_code.co_filename.startswith(PACKAGE)
        count += inside and not frame.f_code.co_name.startswith("<")

    pool(x, 3, strides=2, pads=1)
    plans.clear()
    sys.setprofile(profile)
    try:
        pool(x, 3, strides=2, pads=1)
    finally:
        sys.setprofile(None)
    return count


def microseconds(call, before=lambda: None):
    best = float("inf")
    for _ in range(CALLS):
        before()
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def import_milliseconds():
    """Return the processor time of an import, less that of NumPy's; the least of some processes."""
    best = {}
    for _ in range(PROCESSES):
        for code in ("import numpy", "import numpy, fastpool"):
            process = subprocess.Popen([sys.executable, "-P", "-c", code])
            usage = os.wait4(process.pid, 0)[2]
            best[code] = min(best.get(code, 9e9), usage.ru_utime + usage.ru_stime)
    one, both = best.values()
    return (both - one) * 1e3


def print_times():
    x = np.zeros((1, 4, 8, 8), np.float32)
    window = {"kernel_shape": 3, "strides": 2, "pads": 1}
    plan = fastpool.plan_max_pool(x.shape, x.dtype, **window)
    y = plan(x)
    first_max = microseconds(lambda: fastpool.max_pool(x, **window), maximum._pool_plans.clear)
    first_avg = microseconds(lambda: fastpool.avg_pool(x, **window), average._plans.clear)
    for name, unit, goal, value in (
        ("import over NumPy's", "ms of processor time", 12, import_milliseconds()),
        ("first call of max_pool", "us", 110, first_max),
        ("first call of avg_pool", "us", 110, first_avg),
        (
            *("plan_max_pool", "us", 55),
            microseconds(lambda: fastpool.plan_max_pool(x.shape, x.dtype, **window)),
        ),
        (
            *("repeated call of a plan with out=", "us", 0.4),
            microseconds(lambda: [plan(x, y) for _ in range(100)]) / 100,
        ),
    ):
        print(f"{value:>8.2f} {'':>8} {goal:>8}  {name}, {unit}")


# Name, unit, limit, goal, and what measures it.
BUDGETS = (
    ("machine code of the largest build", "kB", 1843, 1200, code_kilobytes),
    ("wheel", "kB", 2918, 1900, wheel_kilobytes),
    (
        *("Cython and C without front ends", "lines", 18998, 11500),
        lambda: lines(*SOURCES, left_out=ELSEWHERE),
    ),
    (
        *("C inside onnxruntime", "lines", 1080, 900),
        lambda: lines("fastpool/onnx/*.c", "fastpool/onnx/*.h"),
    ),
    (
        *("Python without front ends and programs", "lines", 14565, 9000),
        lambda: lines("fastpool/*.py", left_out=ELSEWHERE),
    ),
    ("stubs, and what writes them", "lines", 1835, 1600, lambda: lines("stubs/*.py*")),
    ("modules of `import fastpool` over NumPy's", "modules", 56, 45, modules),
    (
        *("first call of max_pool", "calls of Python functions", 285, 200),  # (AVX2; AVX-512 281)
        lambda: calls(fastpool.max_pool, maximum._pool_plans),
    ),
    (
        *("first call of avg_pool", "calls of Python functions", 283, 200),
        lambda: calls(fastpool.avg_pool, average._plans),
    ),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--time", action="store_true", help="measure times, too")
    options = parser.parse_args()
    exceeded = 0
    print(f"{'now':>8} {'limit':>8} {'goal':>8}")
    for name, unit, limit, goal, measure in BUDGETS:
        value = measure()
        over = value is not None and value > limit
        exceeded += over
        shown = "?" if value is None else value
        print(f"{shown:>8} {limit:>8} {goal:>8}  {name}, {unit}{'   EXCEEDED' if over else ''}")
    if options.time:
        print_times()
    if exceeded:
        sys.exit(f"{exceeded} budgets are exceeded (ci/budgets.py)")


if __name__ == "__main__":
    main()
