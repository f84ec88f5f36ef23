"""Pooling works in any process: other runtimes, threads, workers, signals, interpreters, exit.

Forks, limits on threads and OpenMP's variables are in test_threads.py too.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import threading

import numpy as np
import pytest

import cases
import fastpool
from fastpool._running import threads

needs_proc = pytest.mark.skipif(
    not os.path.isdir("/proc/self/task"), reason="counts the threads in /proc"
)
needs_gil = pytest.mark.skipif(
    not cases.GIL, reason="without the GIL, other threads do not wait for a call to release it"
)
needs_affinity = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="needs two processors and their affinity",
)

# A program begins with this: `right()` pools and unpools on two threads, and compares with one.
BEGIN = """
import ctypes, os, sys, threading, warnings
import numpy as np
warnings.simplefilter("ignore", DeprecationWarning)  # of forks of a process with threads
{before}
import fastpool
{after}
x = np.random.default_rng(0).integers(-99, 99, (4, 16, 128, 128)).astype(np.float32)
attributes = dict(pads=1, return_indices=True)
plan = fastpool.plan_max_pool(x.shape, x.dtype, 3, num_threads=2, **attributes)
expected = fastpool.max_pool(x, 3, num_threads=1, **attributes)
restored = fastpool.max_unpool(*expected, 3, pads=1, num_threads=1)
def right():
    y, indices = plan(x)
    z = fastpool.max_unpool(y, indices, 3, pads=1, num_threads=2)
    same = np.array_equal(y, expected[0]) and np.array_equal(indices, expected[1])
    return bool(same and np.array_equal(z, restored))
assert right()
"""


def run(code, before="", after="", **environment):
    """Run a program that begins as above; it must end well, and say nothing on stderr."""
    process = cases.run_python(BEGIN.format(before=before, after=after) + code, **environment)
    assert process.returncode == 0, process.stderr
    assert not process.stderr
    return process.stdout


# --------------------------------------------------------------------------------- Python threads


def test_importing_leaves_the_gil_off():
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("needs free-threaded CPython")
    # An extension that needs the GIL would turn it on, and CPython would warn.
    code = "import sys, fastpool; sys.exit(sys._is_gil_enabled())"
    process = cases.run_python(code, PYTHON_GIL="")
    assert process.returncode == 0 and not process.stderr


def test_sixteen_threads_share_inputs_and_plans(isa):
    """Every thread makes the same calls, first ones and repeated ones, on the same arrays."""
    x = cases.values((2, 6, 33, 40), "float32", "ties", 0)
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    plans = [
        fastpool.plan_max_pool(x.shape, x.dtype, 3, pads=1, num_threads=count) for count in (1, 2)
    ]
    pairs = fastpool.plan_max_pool(x.shape, x.dtype, 5, return_indices=True, num_threads=2)
    y, indices = fastpool.max_pool(x, 2, strides=2, return_indices=True)
    unpool = {"strides": 2, "output_shape": x.shape}
    calls = [
        *[lambda plan=plan: (plan(x),) for plan in plans],
        lambda: pairs(x),
        lambda: fastpool.max_pool(last, 3, strides=2, layout="NHWC", return_indices=True),
        lambda: (fastpool.max_pool(x, 7, num_threads=2),),
        lambda: (fastpool.max_unpool(y, indices, 2, **unpool),),
        lambda: fastpool.onnx.max_pool(x, kernel_shape=[3, 3], n_outputs=2),
        lambda: fastpool.openvino.max_pool(x, kernel=[3, 3], strides=[1, 1], auto_pad="valid"),
    ]
    expected = [
        *[(fastpool.max_pool(x, 3, pads=1),) for _ in plans],
        fastpool.max_pool(x, 5, return_indices=True),
        fastpool.max_pool(last, 3, strides=2, layout="NHWC", return_indices=True),
        (fastpool.max_pool(x, 7),),
        (fastpool.max_unpool(y, indices, 2, **unpool),),
        *[fastpool.max_pool(x, 3, return_indices=True)] * 2,
    ]
    start = threading.Barrier(16)
    wrong = []

    def work(number):
        start.wait()
        for repeat in range(3 * len(calls)):
            which = (number + repeat) % len(calls)
            for got, right in zip(calls[which](), expected[which], strict=True):
                if not np.array_equal(got, right):
                    wrong.append((number, which))

    cases.in_threads(work, range(16))
    assert not wrong


# With this switch interval a thread runs only when another one lets go of the lock by itself, which
# between `inside = True` and `inside = False` nothing but the call does. The call takes 0.2 s. If a
# busy machine wakes the other thread later, `inside` is False, and the next attempt tells.
ONLY_WHEN_RELEASED = """
import signal
sys.setswitchinterval(1000)
tall = np.zeros((1, 64, 512, 512), np.float32)
slow = fastpool.plan_max_pool(tall.shape, tall.dtype, 63, return_indices=True, num_threads=1)
y, indices = slow(tall)
main, inside, go, seen = threading.get_ident(), False, threading.Lock(), []
def other():
    with go:
        {during}
def attempt():
    global inside
    go.acquire()
    helper = threading.Thread(target=other)
    helper.start()
    try:
        inside = True
        go.release()
        slow(tall, y, indices)
        inside = False
    finally:
        helper.join()
"""


@needs_gil
def test_two_calls_run_at_the_same_time():
    """A whole call of one thread begins and ends while another thread is inside of one."""
    code = ONLY_WHEN_RELEASED.format(during="seen.append((inside, right(), inside))")
    code += """
x, expected = x[:1, :1], [a[:1, :1] for a in expected]
plan = fastpool.plan_max_pool(x.shape, x.dtype, 3, num_threads=1, **attributes)
restored = restored[:1, :1]
for _ in range(20):
    attempt()
    if seen[-1] == (True, True, True):
        break
else:
    raise AssertionError(seen)
"""
    run(code)


@needs_gil
@pytest.mark.skipif(sys.platform == "win32", reason="needs signals between threads")
def test_an_interrupt_during_a_call_is_acted_on_after_it():
    during = "seen.append(inside); signal.pthread_kill(main, signal.SIGINT)"
    code = ONLY_WHEN_RELEASED.format(during=during)
    code += """
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores it
for _ in range(20):
    y.fill(7)
    try:
        attempt()
        for _ in range(100):
            pass
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("no interrupt")
    assert not y.any()  # all was written
    if seen[-1]:
        break
else:
    raise AssertionError(seen)
assert right()
"""
    run(code)


# ------------------------------------------------------------------------------- other libraries

BLAS = "import numpy; a = numpy.ones((700, 700)); assert (a @ a == 700).all()"
TORCH = "import torch; t = torch.ones(700, 700); assert bool((t @ t == 700).all())"
SKLEARN = (
    "import numpy; from sklearn.cluster import KMeans; "
    "KMeans(2, n_init=1).fit(numpy.arange(20000.).reshape(-1, 2))"
)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("library", ["numpy", "sklearn"])
def test_together_with_another_parallel_library(library, when):
    """Its threads are started before fastpool is imported, or after; then both take turns.

    (torch, which brings the same OpenMP once more, is in test_threads.py.)
    """
    pytest.importorskip(library)
    use = {"numpy": BLAS, "sklearn": SKLEARN}[library]
    run(f"for _ in range(3):\n    {use}\n    assert right()\n", **{when: use})


def test_after_a_fork_in_a_process_with_blas():
    code = f"""
{BLAS}
child = os.fork()
if child == 0:
    {BLAS}
    os._exit(0 if right() else 3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert right()
"""
    run(code)


NESTED = """
#include <omp.h>
void in_parallel(int threads, void (*call)(int)) {
    #pragma omp parallel num_threads(threads)
    call(omp_get_thread_num());
}
"""


@pytest.fixture(scope="module")
def openmp_program(tmp_path_factory):
    """A foreign library that calls back from inside its own parallel region."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("nested")
    source, library = folder / "nested.c", folder / "nested.so"
    source.write_text(NESTED)
    command = [compiler, "-shared", "-fPIC", "-fopenmp", str(source), "-o", str(library)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("the C compiler knows no OpenMP")
    return library


@pytest.mark.parametrize("levels", ["1", "2"])
def test_inside_a_parallel_region(openmp_program, levels):
    """Called by each thread of an OpenMP program, with nested parallel regions and without."""
    code = f"""
done = []
callback = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda number: done.append((number, right())))
for _ in range(3):
    ctypes.CDLL({str(openmp_program)!r}).in_parallel(4, callback)
assert sorted(done) == [(n, True) for n in range(4) for _ in range(3)], done
"""
    run(code, OMP_MAX_ACTIVE_LEVELS=levels)


def test_after_another_runtime_of_the_same_kind(openmp_program):
    """The program's own threads are there first, and stay when fastpool asks for fewer or more."""
    code = f"""
callback = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda number: None)
for count in (1, 4, 2, 8):
    ctypes.CDLL({str(openmp_program)!r}).in_parallel(count, callback)
    assert right()
"""
    run(code, before=code.split("for count")[0])


# ---------------------------------------------------------------------------------------- workers


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_worker_processes_that_are_not_forked(method):
    """A plan travels to new interpreters, which may use threads of their own."""
    code = f"""
import multiprocessing
if __name__ == "__main__":
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        for y, indices in pool.map(plan, [x, x]):
            assert np.array_equal(y, expected[0]) and np.array_equal(indices, expected[1])
    assert right()
"""
    run(code)


def test_workers_of_a_data_loader():
    """Forked by torch after a parallel region, they pool while the parent does."""
    pytest.importorskip("torch")
    code = """
class Pooled(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, place):
        assert right()
        return torch.from_numpy(plan(x)[0][place])
loader = torch.utils.data.DataLoader(Pooled(), batch_size=1, num_workers=2)
for place, y in enumerate(loader):
    assert np.array_equal(y[0].numpy(), expected[0][place])
    assert right()
"""
    run(code, before=TORCH)


# ------------------------------------------------------------------------------------- variables

# The runtime's own variables. Results never depend on them.
VARIABLES = [
    {"OMP_NUM_THREADS": "1"},
    {"OMP_THREAD_LIMIT": "1"},
    {"OMP_THREAD_LIMIT": "2", "OMP_NUM_THREADS": "8"},
    {"OMP_DYNAMIC": "true"},
    {"OMP_SCHEDULE": "dynamic,1", "OMP_WAIT_POLICY": "passive"},
    {"OMP_PROC_BIND": "true", "OMP_PLACES": "cores", "OMP_WAIT_POLICY": "active"},
    {"OMP_STACKSIZE": "64k"},
]


@needs_proc
@pytest.mark.parametrize("variables", VARIABLES, ids=lambda v: ",".join(map("=".join, v.items())))
def test_variables_of_openmp(variables):
    code = """
many = fastpool.max_pool(x, 3, num_threads=5, **attributes)
assert np.array_equal(many[0], expected[0]) and np.array_equal(many[1], expected[1])
print(len(os.listdir("/proc/self/task")) - alone)
"""
    started = int(run(code, before='alone = len(os.listdir("/proc/self/task"))', **variables))
    if "OMP_THREAD_LIMIT" in variables:
        assert started < int(variables["OMP_THREAD_LIMIT"])


# -------------------------------------------------------------------------------- how many threads


@needs_affinity
def test_the_default_follows_the_affinity():
    """It may change at any time: before the first call, after it, in one thread alone."""
    before = os.sched_getaffinity(0)
    everywhere = threads.available_cpus()
    alone = []

    def pinned():
        os.sched_setaffinity(0, {min(before)})
        alone.append(threads.available_cpus())

    thread = threading.Thread(target=pinned)
    thread.start()
    thread.join()
    assert alone == [1]
    assert threads.available_cpus() == everywhere
    try:
        os.sched_setaffinity(0, {max(before)})
        assert threads.effective_threads(None, 1 << 30, lambda: 8) == 1
    finally:
        os.sched_setaffinity(0, before)


@needs_proc
@needs_affinity
def test_the_affinity_changes_after_the_first_call():
    code = """
fastpool.max_pool(x, 3)
started = len(os.listdir("/proc/self/task"))
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
def pool():  # in a thread without an OpenMP team
    fastpool.max_pool(x, 3)
    assert len(os.listdir("/proc/self/task")) == started + 1
    print("pooled")
thread = threading.Thread(target=pool)
thread.start()
thread.join()
"""
    assert run(code, OMP_NUM_THREADS="8") == "pooled\n"


def quotas(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return threads.cgroup_limit(str(folder), str(folder / "membership"))


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, None),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "200000 100000\n"}, 2),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "1000 100000\n"}, 1),
        ({"cpu.max": "1000"}, None),
        ({"cpu.max": "many 100000\n"}, None),
        ({"cpu.max": "100000 0\n"}, None),
        ({"cpu.max": ""}, None),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "300000\n"}, None),
        # a service of systemd, and a slice around it with less
        ({"membership": "0::/a/b\n", "a/b/cpu.max": "400000 100000\n"}, 4),
        (
            {
                "membership": "0::/a/b\n",
                "a/b/cpu.max": "400000 100000\n",
                "a/cpu.max": "200000 100000\n",
                "cpu.max": "max 100000\n",
            },
            2,
        ),
        (
            {
                "membership": "5:cpu,cpuacct:/a\n0::/other\n",
                "cpu/a/cpu.cfs_quota_us": "50000\n",
                "cpu/a/cpu.cfs_period_us": "100000\n",
            },
            1,
        ),
        # a container that sees the host's name of its cgroup
        ({"membership": "0::/docker/1f\n", "cpu.max": "200000 100000\n"}, 2),
        ({"membership": "0::/../../x\n", "cpu.max": "200000 100000\n"}, 2),
        ({"membership": "nonsense\n", "cpu.max": "200000 100000\n"}, 2),
    ],
    ids=str,
)
def test_quotas_of_cgroups(files, limit, tmp_path):
    assert quotas(tmp_path, files) == limit


def test_a_quota_limits_the_default(monkeypatch):
    monkeypatch.setattr(threads, "_quota", lambda: 1)
    assert threads.available_cpus() == 1
    monkeypatch.setattr(threads, "_quota", lambda: None)
    assert threads.available_cpus() >= 1


# -------------------------------------------------------------------------- interpreters and exit


def test_daemon_threads_when_the_interpreter_exits():
    """They are inside of calls, of one thread and of two, when the main thread is done."""
    code = """
started = [threading.Event() for _ in range(4)]
def forever(number):
    own = fastpool.plan_max_pool(x.shape, x.dtype, 9, pads=4, num_threads=1 + number % 2)
    own(x)
    started[number].set()
    while True:
        own(x)
for number in range(4):
    threading.Thread(target=forever, args=(number,), daemon=True).start()
for event in started:
    event.wait()
"""
    for _ in range(3):
        run(code)


def test_pooling_while_the_interpreter_exits():
    """By what is registered to run then, and by an object that is dropped last of all."""
    code = """
import atexit
class Last:
    def __init__(self, call, x, y):
        self.call, self.x, self.y = call, x, y
    def __del__(self):
        self.call(self.x, *self.y)
fastpool.last = Last(plan, x, [a.copy() for a in expected])
atexit.register(lambda: print(right()))
"""
    assert run(code) == "True\n"


POOL_OR_REFUSE = """
try:
    import numpy as np
except Exception:  # which one depends on NumPy's version
    print("no NumPy")
else:
    try:
        import fastpool
        x = np.arange(16.0).reshape(1, 1, 4, 4)
        assert fastpool.max_pool(x, 2, strides=2).tolist() == [[[[5, 7], [13, 15]]]]
        print("works")
    except ImportError:
        print("refused")
"""


@pytest.mark.parametrize("first", ["sys", "numpy", "fastpool"])
def test_another_interpreter_in_the_process(first):
    """NumPy and Cython know one only: fastpool is imported in the first, and refused in another."""
    code = f"""
import sys
import {first}
try:
    import _interpreters as interpreters  # 3.13
except ImportError:
    import _xxsubinterpreters as interpreters
other = interpreters.create()
try:
    failed = interpreters.run_string(other, '''
import sys, warnings
warnings.simplefilter("ignore")
sys.path[:] = {sys.path!r}
{POOL_OR_REFUSE}
''')
    assert failed is None, failed
finally:
    interpreters.destroy(other)
{POOL_OR_REFUSE}
"""
    process = cases.run_python(code)
    if first != "fastpool" and process.stdout == "no NumPy\n" and process.returncode < 0:
        pytest.skip("NumPy ended the process, where fastpool was not imported yet")  # 2.1, 3.13
    assert process.returncode == 0, process.stderr
    there, here = process.stdout.splitlines()
    assert here in ("works", "no NumPy") or (first != "fastpool" and there == "works")
