"""Callers from C and Cython get the right results on any thread, and after a fork."""

import os
import threading

import numpy as np
import pytest

import cases
import fastpool
from callers import assert_pooled, at, needs_compiler, results

pytestmark = needs_compiler


def test_a_thread_that_python_does_not_know(driver, isa):
    x = cases.values((4, 8, 64, 64), "float32", "ties", 0)
    plan = fastpool.plan_max_pool(x.shape, x.dtype, 5, pads=2, return_indices=True)
    compiled, expected = driver.Plan(plan), plan(x)
    for threads in (1, 3):
        y, indices = results(plan)
        code, known = compiled.pool_elsewhere(at(x), at(y), at(indices), threads)
        assert not known
        assert_pooled((code, y, indices), expected)


def test_threads_share_a_plan(driver, isa):
    """Eight at once, with results of their own; each call finds scratch that no other uses."""
    x = cases.values((2, 8, 64, 64), "float32", "ties", 0)
    plan = fastpool.plan_max_pool(x.shape, x.dtype, 5, pads=2, return_indices=True)
    compiled, expected = driver.Plan(plan), plan(x)
    start, wrong = threading.Barrier(8), []

    def pool(number):
        y, indices = results(plan)
        start.wait()
        for _ in range(20):
            y.fill(number)
            indices.fill(number)
            run = compiled.pool if number % 2 else compiled.pool_elsewhere
            run(at(x), at(y), at(indices), 1 + number // 4)
            if not (np.array_equal(y, expected[0]) and np.array_equal(indices, expected[1])):
                wrong.append(number)

    cases.in_threads(pool, range(8))
    assert not wrong


def test_scratch_changes_hands_without_the_lock(driver, isa):
    """Thousands of short calls at once, of two sizes: blocks are kept, taken, and let go."""
    jobs, wrong = [], []
    for number in range(4):
        x = cases.values((1, 8, 32 + 16 * (number % 2), 32), "float32", "ties", number)
        plan = fastpool.plan_max_pool(x.shape, x.dtype, 3)
        jobs.append((x, driver.Plan(plan), results(plan)[0], plan(x)))

    def pool(job):
        x, compiled, y, expected = job
        for _ in range(10):
            y.fill(77)
            compiled.seconds(400, at(x), at(y))
            if not np.array_equal(y, expected):
                wrong.append(x.shape)

    cases.in_threads(pool, jobs)
    assert not wrong


def test_python_runs_while_a_pooling_does(driver):
    x = np.zeros((4, 16, 512, 512), np.float32)
    plan = fastpool.plan_max_pool(x.shape, x.dtype, 63, return_indices=True)
    compiled, (y, indices) = driver.Plan(plan), results(plan)
    codes = []
    assert cases.another_thread_runs_during(
        lambda: codes.append(compiled.pool(at(x), at(y), at(indices), 1))
    )
    assert not any(codes)


FORK = """
import importlib.util, os, sys, warnings
import numpy as np
import fastpool
warnings.simplefilter("ignore", DeprecationWarning)
spec = importlib.util.spec_from_file_location("driver", {path!r})
driver = importlib.util.module_from_spec(spec)
spec.loader.exec_module(driver)
x = np.random.default_rng(0).random((8, 32, 128, 128), np.float32)
plan = fastpool.plan_max_pool(x.shape, x.dtype, 3, return_indices=True)
expected = plan(x)
shapes = dict(input_shape=plan.output_shape, output_shape=x.shape, kernel_shape=(3, 3))
pool, unpool = driver.Plan(plan), driver.Plan("max_unpool", dtype="float32", **shapes)
def right():
    y, indices, z = (np.empty_like(a) for a in (*expected, x))
    code = pool.pool(y=y.ctypes.data, x=x.ctypes.data, indices=indices.ctypes.data, threads=2)
    code += unpool.unpool(y.ctypes.data, indices.ctypes.data, z.ctypes.data, 2)
    same = np.array_equal(y, expected[0]) and np.array_equal(indices, expected[1])
    return code == 0 and same and z.max() == x.max()
assert right()
child = os.fork()
if child == 0:
    os._exit(0 if right() and right() else 3)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert right()
sys.exit(status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize("name", cases.BUILDS)
def test_a_forked_child_runs_plans_of_its_parent(cython_package, name):
    process = cases.run_python(FORK.format(path=str(cython_package["driver"])), FASTPOOL_ISA=name)
    assert process.returncode == 0, process.stderr
