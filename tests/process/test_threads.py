"""Threads never change a result: counts, shared plans, forks, limits from outside."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import cases
import fastpool
import limits
from fastpool import _reference

COUNTS = range(1, 9)

# (shape, attributes): many planes, few, one huge plane, one long row, and the same channels last
WORK = [
    ((3, 7, 40, 50), {"strides": 2, "pads": 1}),
    ((1, 2, 130, 70), {"pads": 1}),
    ((1, 1, 211, 97), {"strides": 2, "pads": 1}),
    ((1, 1, 64, 64), {"dilations": 7, "pads": 5}),
    ((1, 1, 20011), {"pads": 1}),
    ((1, 3, 9, 31, 21), {"strides": (1, 2, 1), "pads": 1}),
    ((2, 50, 40, 7), {"strides": 2, "pads": 1, "layout": "NHWC"}),
    ((1, 97, 101, 3), {"pads": 1, "layout": "NHWC"}),
    ((1, 2011, 5), {"pads": 1, "layout": "NHWC"}),
    ((1, 1, 3, 700), {"pads": 1, "layout": "NHWC"}),
]


@pytest.mark.parametrize("name", ["float32", "uint8", "float16", "int64"])
@pytest.mark.parametrize("work", WORK, ids=str)
@pytest.mark.parametrize("kernel", [3, 17])
def test_one_to_eight_threads_give_one_result(work, name, kernel, isa):
    shape, attributes = work
    if kernel == 17:
        attributes = {**attributes, "pads": 8 * int(np.max(attributes.get("dilations", 1)))}
    x = cases.values(shape, name, "ties", 0)
    expected = fastpool.max_pool(x, kernel, return_indices=True, num_threads=1, **attributes)
    for count in COUNTS:
        y, indices = fastpool.max_pool(
            x, kernel, return_indices=True, num_threads=count, **attributes
        )
        cases.assert_same(y, expected[0], f"{count} threads")
        cases.assert_same(indices, expected[1], f"{count} threads, indices")
        y = fastpool.max_pool(x, kernel, num_threads=count, **attributes)
        cases.assert_same(y, expected[0], f"{count} threads, values alone")


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("index_space", ["output", "inferred"])
@pytest.mark.parametrize("distinct", [1, 7, 5000])
def test_the_last_duplicate_wins_with_any_number_of_threads(layout, index_space, distinct, isa):
    """Indices that repeat within a plane and across planes, so that threads meet at one element."""
    rng = np.random.default_rng(distinct)
    x = cases.values((3, 5, 11, 13) if layout == "NCHW" else (3, 11, 13, 5), "int32", "bits", 0)
    indices = rng.choice(rng.integers(0, 3 * 5 * 22 * 26, distinct), x.shape)
    attributes = {"strides": 2, "layout": layout, "index_space": index_space}
    expected = _reference.max_unpool(x, indices, 2, **attributes)
    for count in COUNTS:
        y = fastpool.max_unpool(x, indices, 2, num_threads=count, **attributes)
        cases.assert_same(y, expected, f"{count} threads")


def test_more_threads_than_there_is_work_for():
    x = cases.values((2, 3, 40, 40), "float32", "ties", 0)
    expected = fastpool.max_pool(x, 3, num_threads=1)
    for count in (None, np.int64(2), 1000, 10**6, 2**70):
        cases.assert_same(fastpool.max_pool(x, 3, num_threads=count), expected)


def large_pool():
    """A pool big enough to be worth threads on any machine."""
    x = cases.values((8, 32, 128, 128), "float32", "ties", 0)
    plan = fastpool.plan_max_pool(x.shape, x.dtype, 3, pads=1, return_indices=True, num_threads=2)
    return x, plan


def test_a_plan_is_shared_by_python_threads(isa):
    """Eight threads, one plan and one input; each must find its own result."""
    x = cases.values((2, 8, 64, 64), "float32", "ties", 0)
    attributes = {"pads": 2, "return_indices": True}
    expected = fastpool.max_pool(x, 5, num_threads=1, **attributes)
    for count in (1, 2):
        plan = fastpool.plan_max_pool(x.shape, x.dtype, 5, num_threads=count, **attributes)
        start = threading.Barrier(8)
        wrong = []

        def pool(number, plan=plan, start=start, wrong=wrong):
            y = np.empty(plan.output_shape, x.dtype)
            indices = np.empty(plan.output_shape, np.int64)
            start.wait()  # all of them are the plan's first call
            for repeat in range(20):
                y.fill(number)
                indices.fill(number)
                plan(x, out=y, out_indices=indices)
                if not (np.array_equal(y, expected[0]) and np.array_equal(indices, expected[1])):
                    wrong.append((number, repeat))

        cases.in_threads(pool, range(8))
        assert not wrong


def test_different_pools_in_different_python_threads(isa):
    """No scratch is shared between calls that run at the same time."""
    jobs = []
    for number, name in enumerate(["float32", "uint8", "float64", "float16", "int32", "int8"]):
        x = cases.values((2, 4, 30 + number, 50 - number), name, "ties", number)
        attributes = {"pads": number % 3, "strides": 1 + number % 2, "return_indices": True}
        kernel = 3 + number
        jobs.append((x, kernel, attributes, fastpool.max_pool(x, kernel, **attributes)))
    wrong = []

    def run(job):
        x, kernel, attributes, expected = job
        for _ in range(50):
            y, indices = fastpool.max_pool(x, kernel, **attributes)
            if not (np.array_equal(y, expected[0]) and np.array_equal(indices, expected[1])):
                wrong.append(x.dtype)

    cases.in_threads(run, jobs)
    assert not wrong


def test_the_interpreter_runs_while_a_pool_does():
    """The lock is released: another Python thread makes progress during one long call."""
    x = np.zeros((4, 16, 512, 512), np.float32)
    plan = fastpool.plan_max_pool(x.shape, x.dtype, 63, return_indices=True, num_threads=1)
    y, indices = np.empty(plan.output_shape, x.dtype), np.empty(plan.output_shape, np.int64)
    plan(x, out=y, out_indices=indices)
    assert cases.another_thread_runs_during(lambda: plan(x, out=y, out_indices=indices))


# ----------------------------------------------------------------------- threads of the caller

MEET = """
import os, threading, numpy as np, fastpool
from fastpool._running import builds
x = np.random.default_rng(0).random((8, 32, 128, 128), np.float32)
plan = fastpool.plan_max_pool(x.shape, x.dtype, 3)
expected = fastpool.max_pool(x, 3, num_threads=1)
met, wrong, most, ready = [], [], [], threading.Barrier({callers} + 1)
def work():
    ready.wait()
    for _ in range(1000):
        wrong.extend([1] if not np.array_equal(plan(x), expected) else [])
        if builds.active().paused():
            met.append((plan.explain(), explicit.explain()))
        if len(met) > 30:
            return
def runs(task):
    try:
        with open(f"/proc/self/task/{{task}}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "R"
    except OSError:
        return False
explicit = fastpool.plan_max_pool(x.shape, x.dtype, 3, num_threads=2)
threads = [threading.Thread(target=work) for _ in range({callers})]
for thread in threads:
    thread.start()
ready.wait()
while any(thread.is_alive() for thread in threads):
    if os.path.isdir("/proc/self/task"):
        most.append(sum(map(runs, os.listdir("/proc/self/task"))))
for thread in threads:
    thread.join()
assert met and not wrong
assert "threads   1 (for " in met[0][0] and "2 (set by num_threads)" in met[0][1]
print(max(most, default=0))
"""


@pytest.mark.skipif(not cases.OPENMP, reason="needs OpenMP")
def test_calls_that_meet_stay_serial_for_a_while(isa):
    # OMP_NUM_THREADS: on a machine of one processor it would be 1.
    environment = {"FASTPOOL_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "FASTPOOL_ISA": isa}
    process = cases.run_python(MEET.format(callers=2), **environment)
    assert process.returncode == 0, process.stderr


@pytest.mark.skipif(not cases.OPENMP, reason="needs OpenMP")
def test_sixteen_callers_do_not_start_the_threads_of_sixteen():
    environment = {"FASTPOOL_NUM_THREADS": "8", "OMP_NUM_THREADS": "8"}
    process = cases.run_python(MEET.format(callers=16), **environment)
    assert process.returncode == 0, process.stderr
    # 16 callers, 8 threads of one of them, and those of one whose region has just ended
    assert int(process.stdout) <= 16 + 8 + 8


# ------------------------------------------------------------------------------------------- fork


def wait_for(child):
    """The child's exit status; a child that hangs is killed and fails the test."""
    end = time.monotonic() + limits.HANG
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the forked child hangs")


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

FORK = """
import os, sys, warnings
import numpy as np
import fastpool
warnings.simplefilter("ignore", DeprecationWarning)
x = np.random.default_rng(0).random((8, 32, 128, 128), np.float32)
attributes = dict(pads=1, return_indices=True, num_threads=2)
{before}
expected = fastpool.max_pool(x, 3, **{{**attributes, "num_threads": 1}})
def right():
    y, indices = fastpool.max_pool(x, 3, **attributes)
    z = fastpool.max_unpool(y, indices, 3, pads=1, output_shape=x.shape, num_threads=2)
    same = np.array_equal(y, expected[0]) and np.array_equal(indices, expected[1])
    return same and z.max() == x.max()
def says_why():
    plan = fastpool.plan_max_pool(x.shape, x.dtype, 3, num_threads=2)
    return "1 (a child made by fork has only one)" in plan.explain()
if {in_parent}:
    assert right()
child = os.fork()
if child == 0:
    grandchild = os.fork()
    if grandchild == 0:
        os._exit(0 if right() and right() else 3)
    below = os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1])
    os._exit(below if below else 0 if right() and right() and says_why() else 4)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert right()
sys.exit(status)
"""


@needs_fork
@pytest.mark.parametrize("in_parent", [True, False])
@pytest.mark.parametrize("build", cases.BUILDS)
def test_a_forked_child_pools(build, in_parent):
    """After a threaded call a forked child, and its own child, must not wait for lost threads."""
    code = FORK.format(before="", in_parent=in_parent)
    process = cases.run_python(code, FASTPOOL_ISA=build)
    assert process.returncode == 0, process.stderr


@needs_fork
@pytest.mark.parametrize("other", ["torch", "sklearn"])
def test_a_forked_child_pools_next_to_another_openmp(other):
    pytest.importorskip(other)
    if other == "torch":
        before = "import torch; torch.rand(2000, 2000) @ torch.rand(2000, 2000)"
    else:
        before = "from sklearn.cluster import KMeans; KMeans(8).fit(x[0, 0])"
    process = cases.run_python(FORK.format(before=before, in_parent=True))
    assert process.returncode == 0, process.stderr


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:os.fork:RuntimeWarning")
def test_fork_while_other_threads_pool():
    """A fork in the middle of other threads' calls leaves a child that works."""
    x, plan = large_pool()
    expected = plan(x)
    running = threading.Event()
    running.set()

    def pool():
        while running.is_set():
            plan(x)

    threads = [threading.Thread(target=pool) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            time.sleep(0.05)
            child = os.fork()
            if child == 0:
                y, indices = plan(x)
                right = np.array_equal(y, expected[0]) and np.array_equal(indices, expected[1])
                os._exit(0 if right else 3)
            assert wait_for(child) == 0
    finally:
        running.clear()
        for thread in threads:
            thread.join()


@needs_fork
def test_multiprocessing_workers_pool():
    code = """
import multiprocessing, numpy as np, fastpool
x = np.random.default_rng(0).random((8, 32, 128, 128), np.float32)
plan = fastpool.plan_max_pool(x.shape, x.dtype, 3, pads=1, num_threads=2)
def work(_):
    return float(plan(x).sum(dtype=np.float64))
if __name__ == "__main__":
    expected = work(0)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(work, range(4)) == [expected] * 4
"""
    process = cases.run_python(code)
    assert process.returncode == 0, process.stderr


# --------------------------------------------------------------------------- limits from outside

# OpenMP keeps its threads after a call, so the process shows how many one call started.
COUNT_THREADS = """
import os
import numpy as np
{before}
import fastpool
x = np.zeros((8, 32, 128, 128), np.float32)
alone = len(os.listdir("/proc/self/task"))
fastpool.max_pool(x, 3, num_threads={num_threads})
print(1 + len(os.listdir("/proc/self/task")) - alone)
"""

needs_proc = pytest.mark.skipif(
    not os.path.isdir("/proc/self/task"), reason="counts the threads in /proc"
)
needs_two_processors = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="needs two processors",
)


def threads_of_a_call(num_threads=None, before="", **environment):
    code = COUNT_THREADS.format(num_threads=num_threads, before=before)
    environment = {"OMP_NUM_THREADS": "", **environment}
    process = cases.run_python(code, **{k: v for k, v in environment.items() if v})
    assert process.returncode == 0, process.stderr
    return int(process.stdout)


@needs_proc
@needs_two_processors
def test_what_a_call_asks_for_is_what_it_gets():
    found = [threads_of_a_call(count) for count in (1, 2, 3)]
    assert found == ([1, 2, 3] if cases.OPENMP else [1, 1, 1])
    assert threads_of_a_call(2, FASTPOOL_NUM_THREADS="1") == found[1]


@needs_proc
def test_the_default_is_within_every_limit():
    assert threads_of_a_call() <= len(os.sched_getaffinity(0))
    for variable in ("FASTPOOL_NUM_THREADS", "OMP_NUM_THREADS"):
        assert threads_of_a_call(**{variable: "1"}) == 1
    assert threads_of_a_call(FASTPOOL_NUM_THREADS="1", OMP_NUM_THREADS="2") == 1
    assert threads_of_a_call(FASTPOOL_NUM_THREADS="2", OMP_NUM_THREADS="1") == 1
    assert threads_of_a_call(OMP_NUM_THREADS="1,2") == 1


@needs_proc
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs sched_setaffinity")
@pytest.mark.parametrize("first", ["", "import fastpool;"])
def test_the_default_is_within_the_affinity(first):
    before = first + "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    assert threads_of_a_call(before=before) == 1


@needs_proc
def test_small_work_stays_on_one_thread():
    code = """
import os, numpy as np, fastpool
x = np.zeros((1, 8, 64, 64), np.float32)
alone = len(os.listdir("/proc/self/task"))
fastpool.max_pool(x, 3)
fastpool.max_pool(x[:, :1], 3, num_threads=2)
assert len(os.listdir("/proc/self/task")) == alone
"""
    process = cases.run_python(code)
    assert process.returncode == 0, process.stderr


@needs_proc
@pytest.mark.skipif(not cases.OPENMP, reason="needs OpenMP")
def test_medium_work_wakes_no_thread_that_sleeps():
    code = """
import os, time, numpy as np, fastpool
x = np.zeros((1, 8, 256, 256), np.float32)
plan = fastpool.plan_max_pool(x.shape, x.dtype, 3, strides=2)
alone = len(os.listdir("/proc/self/task"))
for _ in range(5):
    plan(x)
    time.sleep(0.01)
assert len(os.listdir("/proc/self/task")) == alone
for _ in range(1000):
    plan(x)
assert len(os.listdir("/proc/self/task")) == alone + 1
"""
    process = cases.run_python(code, FASTPOOL_NUM_THREADS="2", OMP_NUM_THREADS="2")
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("value", ["0", "-3", "many", "1.5", ""])
def test_a_bad_limit_in_the_environment_breaks_nothing(value):
    """What cannot be read of OpenMP's is ignored; ours may be refused, by its name."""
    code = "import numpy, fastpool; fastpool.max_pool(numpy.zeros((1, 1, 4, 4)), 2)"
    assert cases.run_python(code, OMP_NUM_THREADS=value).returncode == 0
    process = cases.run_python(code, FASTPOOL_NUM_THREADS=value)
    assert process.returncode == 0 or "FASTPOOL_NUM_THREADS" in process.stderr


@needs_proc
def test_threadpoolctl_limits():
    pytest.importorskip("threadpoolctl")
    code = """
import os, numpy as np, fastpool, threadpoolctl
x = np.zeros((8, 32, 128, 128), np.float32)
fastpool.max_pool(x[:1, :1], 3)
alone = len(os.listdir("/proc/self/task"))
with threadpoolctl.threadpool_limits(1):
    fastpool.max_pool(x, 3)
assert len(os.listdir("/proc/self/task")) == alone
"""
    process = cases.run_python(code)
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("order", ["import torch, fastpool", "import fastpool, torch"])
def test_several_openmp_runtimes_in_one_process(order):
    pytest.importorskip("torch")
    code = f"""
import numpy as np
{order}
x = np.random.default_rng(0).random((8, 32, 128, 128), np.float32)
expected = torch.nn.functional.max_pool2d(torch.from_numpy(x), 3, 1, 1).numpy()
for _ in range(3):
    assert np.array_equal(fastpool.max_pool(x, 3, pads=1, num_threads=2), expected)
    again = torch.nn.functional.max_pool2d(torch.from_numpy(x), 3, 1, 1)
    assert np.array_equal(again.numpy(), expected)
"""
    process = cases.run_python(code)
    assert process.returncode == 0, process.stderr
