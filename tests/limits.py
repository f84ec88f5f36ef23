"""Bounds on the time and the memory of calls, which also hold on busy machines and on slow ones.

Time is processor time, because other processes stretch any other. Each bound is at least five times
what an idle machine takes: a machine may be five times slower, and a processor whose other half is
busy is nearly half as fast. Only `HANG` counts seconds on the clock, to end what never ends.

Memory is what a call adds. How large the process is depends on what ran before.
"""

import contextlib
import gc
import sys
import time
import tracemalloc

# After so many seconds a child process, a thread or a cluster hangs: more than ten times what the
# longest of them takes on an idle machine.
HANG = 300


@contextlib.contextmanager
def quick(seconds, what="this"):
    """Raise if the block takes more processor time, in all threads of this process together.

    Threads of OpenMP that wait for work spin for some milliseconds, which count: give a call that
    is measured num_threads=1, or much more time than that. Python's garbage collector is off: once
    thousands of tests have run, it walks over millions of objects that the block did not make.
    """
    collecting = gc.isenabled()
    gc.disable()
    start = time.process_time()
    try:
        yield
        used = time.process_time() - start
    finally:
        if collecting:
            gc.enable()
    assert used <= seconds, f"{what} took {used:.3f} s of processor time, at most {seconds} s"


@contextlib.contextmanager
def address_space(nbytes):
    """Let the process have no more than this much memory on top of what it has. Linux only."""
    if sys.platform != "linux":
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as f:
        size = int(f.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + nbytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def allocated(call):
    """Return the bytes that a call has allocated at most, in Python and NumPy."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# The beginning of a program: `added` returns the bytes by which a call raises the high-water mark
# of resident memory. The mark is that of the whole process, so touch all pages that the call may
# use before it. (ru_maxrss begins with that of the process that started this one.) Linux only.
ADDED = """
import re

def peak():
    with open("/proc/self/status") as f:
        return int(re.search(r"VmHWM:\\s+(\\d+) kB", f.read())[1]) << 10

def added(call):
    before = peak()
    call()
    return peak() - before

"""
