"""Sessions with fastpool in threads and processes: same bits, bounded memory, forks, exits."""

import random
import sys

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime

import cases
import fastpool.onnx
from cases import assert_same
from fastpool._running import plan_cache
from onnx_models import inside, model_of, options, plain

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads and forks as Linux does")

X = np.random.default_rng(0).standard_normal((2, 3, 12, 16), np.float32)
POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}
MAX = model_of("MaxPool", {"x": X}, ["y", "i"], **POOL)

# -------------------------------------------------------------------------- threads and memory


def test_one_thread_and_two_give_the_same_bits():
    x = {"x": np.random.default_rng(0).standard_normal((4, 16, 96, 80), np.float32)}
    for op_type in ("MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool"):
        attributes = {} if op_type.startswith("Global") else {"kernel_shape": [3, 3]}
        model = model_of(op_type, x, **attributes)
        found = []
        for threads in (1, 2, 3):
            given = options(select="all")
            given.intra_op_num_threads = threads
            found.append(inside(model, given).run(None, x)[0])
        assert_same(found[1], found[0], op_type)
        assert_same(found[2], found[0], op_type)


def test_parallel_execution():
    branches = "".join(
        f"y{i}, i{i} = MaxPool <kernel_shape = [{i + 1}, 2], pads = [{i}, 0, 0, 1]> (x) "
        f"n{i} = Neg (y{i}) "
        for i in range(8)
    )
    text = f"""
        <ir_version: 8, opset_import: ["": 13]>
        net (float[n, c, h, w] x) => (float[n, k, h, w] z) {{
            {branches}
            z = Concat <axis = 1> ({", ".join(f"n{i}" for i in range(8))})
        }}"""
    given = options()
    given.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
    given.inter_op_num_threads = 2
    session, alone = inside(text, given), plain(text)
    for h in range(8, 14):
        x = {"x": np.random.default_rng(h).standard_normal((2, 3, h, 9), np.float32)}
        assert_same(session.run(None, x)[0], alone.run(None, x)[0])


def test_sixteen_threads_and_many_shapes():
    """More shapes than a node keeps plans for, so that plans go while others run them."""
    session = inside(MAX)
    wrong = []

    def work(seed):
        choose = random.Random(seed)
        for _ in range(40):
            x = cases.values((1, 2, choose.randint(2, 40), 7), "float32", "ties", seed)
            got = session.run(None, {"x": x})
            for one, same in zip(
                got, fastpool.onnx.max_pool(x, n_outputs=2, num_threads=1, **POOL), strict=True
            ):
                if not np.array_equal(one, same):
                    wrong.append(x.shape)

    cases.in_threads(work, range(16))
    assert not wrong


@pytest.mark.parametrize("limit", [0, 200_000])
def test_plans_stay_within_the_limit_of_the_process(limit):
    before = fastpool.set_plan_cache_limit(limit)
    try:
        sessions = [inside(MAX) for _ in range(4)]
        for size in range(2, 30):
            x = cases.values((1, 1, size, 9), "float32", "ties", size)
            for session in sessions:
                got = session.run(None, {"x": x})
                assert plan_cache.plan_cache_bytes() <= limit
                assert_same(got[0], fastpool.onnx.max_pool(x, **POOL))
    finally:
        fastpool.set_plan_cache_limit(before)


def test_a_limit_that_changes_while_sessions_run():
    session, wrong = inside(MAX), []

    def work(seed):
        for size in range(2, 60):
            if seed % 4 == 0:
                fastpool.set_plan_cache_limit(size % 3 * 40_000)
            x = cases.values((1, 2, size, 9), "float32", "ties", size)
            if not np.array_equal(
                session.run(None, {"x": x})[0], fastpool.onnx.max_pool(x, num_threads=1, **POOL)
            ):
                wrong.append(size)

    before = fastpool.set_plan_cache_limit(0)
    try:
        cases.in_threads(work, range(8))
    finally:
        fastpool.set_plan_cache_limit(before)
    assert not wrong


# ------------------------------------------------------------------------------------- processes

PROGRAM = """
import os, re, sys, threading, warnings
sys.path.insert(0, {folder!r})
warnings.simplefilter("ignore", DeprecationWarning)  # of forks of a process with threads
import numpy as np
import fastpool.onnx
from onnx_models import inside, model_of, options
X = np.random.default_rng(0).integers(0, 99, (2, 3, 12, 16)).astype(np.float32)
POOL = dict(kernel_shape=[2, 2], strides=[2, 2])
MAX = model_of("MaxPool", {{"x": X}}, ["y", "i"], **POOL)
LP = model_of("LpPool", {{"x": X}}, **POOL)
def right(session, size=12):
    x = X[:, :, :size].copy()
    y, i = fastpool.onnx.max_pool(x, n_outputs=2, **POOL)
    got = session.run(None, {{"x": x}})
    return np.array_equal(got[0], y) and np.array_equal(got[1], i)
def resident():
    with open("/proc/self/status") as f:
        return int(re.search(r"VmRSS:\\s+(\\d+) kB", f.read())[1]) << 10
"""


def program(code):
    """Run a program that must end well and say nothing. Return what it printed."""
    folder = cases.__file__.rpartition("/")[0]
    process = cases.run_python(PROGRAM.format(folder=folder) + code)
    assert process.returncode == 0, process.stderr
    assert not process.stderr
    return process.stdout


@needs_linux
def test_sessions_that_come_and_go_take_no_memory():
    """Each runs three shapes, some with options, and one model in four is refused."""
    out = program("""
BROKEN = model_of("MaxPool", {"x": X}, kernel_shape=[0, 2])
def some(count):
    for i in range(count):
        session = inside(MAX, select=("all", "faster")[i % 2])
        assert right(session) and right(session, 9) and right(session, 5)
        if not i % 4:
            inside(LP, select="all").run(None, {"x": X})
            try:
                inside(BROKEN)
            except Exception:
                pass
            else:
                raise AssertionError
some(150)
before = resident()
some(400)
print(resident() - before)
""")
    assert int(out) < 3 << 20


@needs_linux
def test_shapes_that_never_repeat_take_no_memory():
    """A node forgets its plans: images of any size run through one session."""
    out = program("""
session = inside(model_of("MaxPool", {"x": X}, **POOL))
def some(first, count):
    for size in range(first, first + count):
        x = np.zeros((1, 1, size, 4), np.float32)
        session.run(None, {"x": x})
some(2, 500)
before = resident()
some(600, 1500)
print(resident() - before)
""")
    assert int(out) < 3 << 20


def test_a_process_may_end_with_live_sessions():
    """In globals, in reference cycles, and in modules that outlive others."""
    assert (
        program("""
import builtins, atexit
session = builtins.kept = inside(MAX)
cycle = [inside(MAX, select="all")]
cycle.append(cycle)
bound = session.io_binding()
assert right(session) and right(cycle[0])
atexit.register(lambda: print(right(session), flush=True))
""")
        == "True\n"
    )


def test_a_process_may_end_while_sessions_run():
    """On threads that the interpreter waits for."""
    assert (
        program("""
session = inside(MAX)
def work():
    for size in range(2, 13):
        assert right(session, size)
    os.write(1, b"done\\n")  # in one piece
for _ in range(2):
    threading.Thread(target=work).start()
""")
        == "done\n" * 2
    )


@needs_linux
def test_fork():
    """The child runs the parent's session of one thread, and makes sessions."""
    assert (
        program("""
session = inside(MAX)
assert right(session)
for _ in range(3):
    child = os.fork()
    if not child:
        fine = right(session) and right(session, 7) and right(inside(MAX), 8)
        del session
        os._exit(0 if fine else 1)
    assert os.waitpid(child, 0)[1] == 0
assert right(session) and right(session, 6)
print("fine")
""")
        == "fine\n"
    )


@needs_linux
def test_fork_next_to_threads_that_plan():
    assert (
        program("""
sessions = [inside(MAX) for _ in range(3)]
stop = False
def work(session):
    while not stop:
        for size in range(2, 13):
            assert right(session, size)
threads = [threading.Thread(target=work, args=(session,)) for session in sessions[1:]]
for thread in threads: thread.start()
for _ in range(8):
    child = os.fork()
    if not child:
        os._exit(0 if right(sessions[0]) and right(inside(MAX), 8) else 1)
    assert os.waitpid(child, 0)[1] == 0
stop = True
for thread in threads: thread.join()
print("fine")
""")
        == "fine\n"
    )


def test_the_library_needs_fastpool_in_the_process():
    """A program that loads the file by its path, before fastpool.onnx made it ready."""
    path = fastpool.onnx.library()
    out = program(f"""
code = '''
import onnxruntime
options = onnxruntime.SessionOptions()
try:
    options.register_custom_ops_library({path!r})
except Exception as error:
    print(error)
'''
import subprocess
print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
""")
    assert "call fastpool.onnx.library() before a session loads that" in out


def test_an_interrupt_while_a_plan_is_made_is_not_lost():
    """onnxruntime reports it as the error of a node. It comes again, when Python runs."""
    out = program("""
import signal
from fastpool.onnx import _inside
signal.signal(signal.SIGINT, signal.default_int_handler)  # (ignored in the background of a shell)
session = inside(MAX, select="all")
_inside.Node.plan = lambda *arguments: signal.raise_signal(signal.SIGINT)
try:
    try:
        session.run(None, {"x": X})
    except Exception:
        sum(1 for _ in range(1000))
except KeyboardInterrupt:
    print("interrupted")
""")
    assert out == "interrupted\n"
