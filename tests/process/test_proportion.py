"""Time and memory follow the arrays, whatever the attributes (docs/promises.md, "One rule")."""

import dataclasses
import sys
from pathlib import Path

import pytest

import cases
import fastpool
from fastpool._running import plan_cache

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory as Linux")

TESTS = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
MEASURE = """
import random
from configurations import Choices, far

far.add_front_ends()
measured = far.measure(Choices(random.Random({seed}).randint), {draws}, check_every=100)
assert measured.counts["result"] > {draws} // 4, measured.counts
print("done")
"""


@pytest.mark.parametrize("seed", range(3))
def test_attributes_far_from_the_arrays(seed):
    """A process of its own, because memory that other tests left would hide what a call adds."""
    process = cases.run_python(TESTS + MEASURE.format(seed=seed, draws=300))
    assert process.stdout == "done\n", process.stderr


# What independent reviews found: (a call, seconds of processor time, and MiB that it adds or keeps)
FOUND = {
    "padding under additions in order": (
        """x = np.ones((2, 3, 4, 8), np.float32)
call = lambda: fastpool.avg_pool(x, (1, 10**7), pads=(0, 10**7 - 1, 0, 0), numerics="sequential")
""",
        *(1, 20),
    ),
    "adaptive plans of many lengths": (
        """x = np.ones((1, 1, 3), np.uint8)
def call():
    for i in range(20):
        fastpool.adaptive_avg_pool(x, 10**6 + i)
""",
        *(4, 64),
    ),
    "counts of a long axis": (
        """x = np.ones((1, 1, 20 * 10**6), np.float32)
call = lambda: fastpool.avg_pool(x, 3, pads=1)
""",
        *(4, 80 + 16),
    ),
    "means of many outputs": (
        """x = np.ones((1, 1, 3), np.uint8)
call = lambda: fastpool.adaptive_avg_pool(x, 15 * 10**6)
""",
        *(4, 45 + 16),
    ),
    "maxima of many outputs": (
        """x = np.ones((1, 1, 3), np.uint8)
call = lambda: fastpool.adaptive_max_pool(x, 15 * 10**6)
""",
        *(4, 45 + 16),
    ),
    "a wide dilation": (
        """x = np.ones((1, 1, 10), np.uint8)
call = lambda: fastpool.avg_pool(x, 2, dilations=10**7, pads=10**7)
""",
        *(2, 30 + 16),
    ),
    "no planes": (
        """x = np.zeros((0, 1, 3), np.uint8)
call = lambda: fastpool.adaptive_max_pool(x, 2 * 10**7)
""",
        *(0.5, 16),
    ),
    "windows in pairs, mostly padding": (
        """x = np.ones((1, 2, 32000), np.float16)
pads = dict(auto_pad="SAME_UPPER", count_include_pad=True, num_threads=1)
def call():
    fastpool.avg_pool(x, 67108865, **pads)
    fastpool.avg_pool(x.astype("float32"), 10**8, pads=(10**8 - 1, 0), num_threads=1)
    fastpool.avg_pool(np.ones((1, 2, 32000, 1), np.uint8), (67108865, 10**7), **pads)
""",
        *(0.5, 20),
    ),
    "many leading taps": (
        """x = np.ones((1, 1, 10**7, 1, 1), np.float32)
call = lambda: fastpool.global_avg_pool(x, numerics="exact")
""",
        *(2, 16),
    ),
    "many leading taps in pairs": (
        """x = np.ones((1, 1, 10**7, 1, 1), np.float32)
call = lambda: fastpool.global_avg_pool(x)
""",
        *(2, 2 * 40 + 16),
    ),
    "windows of padding alone": (
        """x, y = np.ones((1, 1, 1, 1, 259286), np.int16), np.ones((1, 2, 300000, 1), np.uint8)
quantised = dict(kernel_shape=(10**8, 10**7), strides=(10**6, 65536))
quantised |= dict(pads=(49849997, 0, 49850003, 2**31 - 2))
def call():
    fastpool.avg_pool(x, 2, strides=(1, 4, 10000), dilations=(1, 5, 259285),
                      pads=(65536, 3, 10000, 0, 2, 0))
    y_scale = np.float32(1e-9)
    fastpool.onnx.qlinear_average_pool(y, np.float32(0.1), 3, y_scale, 7, **quantised)
""",
        *(0.5, 20),
    ),
    "an explanation": (
        """def call():
    for make in (fastpool.plan_avg_pool, fastpool.plan_max_pool):
        make((1, 1, 2**40), "uint8", 3, pads=1).explain()
    fastpool.plan_adaptive_max_pool((1, 1, 2**40), "uint8", 2**39 + 1).explain()
""",
        *(1, 16),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_out_of_proportion(name):
    call, seconds, mebibytes = FOUND[name]
    code = f"""{TESTS}
import time
import numpy as np, fastpool, fastpool.onnx
from configurations.far import peak_since
from fastpool._running import plan_cache

fastpool.max_pool(np.ones((1, 1, 9)), 3), fastpool.avg_pool(np.ones((1, 1, 9)), 3)
fastpool.plan_max_pool((9,), "int8", 3, layout="W").explain()
{call}
before, start = peak_since(reset=True), time.process_time()
call()
print(time.process_time() - start, (peak_since() - before) >> 20, plan_cache.plan_cache_bytes())
"""
    process = cases.run_python(code)
    assert process.returncode == 0, process.stderr
    used, added, kept = map(float, process.stdout.split())
    assert used < 5 * seconds and added <= mebibytes, process.stdout
    assert kept <= plan_cache.plan_cache_limit()


@pytest.mark.parametrize("change", [{"of_output": 2**70}, {"of_size": 2**70}, {"first": 2**63}])
def test_forged_axes(change):
    plan = fastpool.plan_adaptive_avg_pool((7,), "float32", 3, layout="W")
    axes = (plan.axes[0]._replace(**change),)
    with pytest.raises(ValueError, match="^plan: "):
        dataclasses.replace(plan, axes=axes, given=None)
