"""The bounds of limits.py catch what they are to catch, and let a busy machine pass."""

import gc
import sys
import time

import numpy as np
import pytest

import cases
import limits

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads and limits memory as Linux")


def work(seconds):
    start = time.thread_time()
    while time.thread_time() - start < seconds:
        pass


def test_processor_time():
    with limits.quick(1):
        time.sleep(1.2)  # as if others had the processor
    with pytest.raises(AssertionError, match="^planning took 0.* s of .* time, at most 0.05 s"):
        with limits.quick(0.05, "planning"):
            work(0.1)


def test_processor_time_of_other_threads():
    with pytest.raises(AssertionError), limits.quick(0.05):
        cases.in_threads(work, [0.1])


def test_errors_pass():
    with pytest.raises(ZeroDivisionError), limits.quick(0):
        work(0.01)
        raise ZeroDivisionError


def test_other_garbage_does_not_count():
    """No collection begins in the block, and collections go on after it, also after an error."""
    begun = []
    gc.callbacks.append(lambda phase, _: begun.append(phase))
    try:
        with pytest.raises(ZeroDivisionError), limits.quick(5):
            cycles = [[] for _ in range(100_000)]
            for cycle in cycles:
                cycle.append(cycle)
            assert not begun and not gc.isenabled()
            raise ZeroDivisionError
    finally:
        gc.callbacks.pop()
    assert gc.isenabled()


@needs_linux
def test_address_space():
    # (malloc keeps up to 64 MiB of what earlier tests freed, and would take 64 MiB from there.)
    def take():
        return np.ones(256 << 20, np.uint8).nbytes

    with limits.address_space(512 << 20):
        assert take()
    with limits.address_space(32 << 20), pytest.raises(MemoryError):
        take()
    assert take()


def test_allocated_bytes():
    held = np.ones(1 << 20, np.uint8)  # not by the call
    assert 2 << 20 <= limits.allocated(lambda: np.concatenate([held, held])) < 3 << 20
    assert limits.allocated(held.sum) < 1 << 20


@needs_linux
def test_added_pages():
    code = """
import numpy as np
held = np.ones(64 << 20, np.uint8)
print(added(lambda: np.ones(32 << 20, np.uint8)), added(lambda: held.sum()))
"""
    process = cases.run_python(limits.ADDED + code)
    assert process.returncode == 0, process.stderr
    some, none = map(int, process.stdout.split())
    assert 31 << 20 <= some < 40 << 20 and none < 8 << 20


@pytest.mark.skipif(not cases.GIL, reason="without the GIL, the other thread always runs")
def test_another_thread_during_a_call():
    interval = sys.getswitchinterval()
    assert cases.another_thread_runs_during(lambda: time.sleep(0.01))
    assert not cases.another_thread_runs_during(lambda: work(0.01))
    assert sys.getswitchinterval() == interval
