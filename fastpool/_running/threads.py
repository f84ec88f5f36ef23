"""Decide how many threads a call uses.

``num_threads=None`` means the default: ``FASTPOOL_NUM_THREADS``, or else the processors that this
thread may use, by affinity and by the cgroup's CPU quota. ``OMP_NUM_THREADS``, by default the
number of processors, and a limit set through threadpoolctl bound it. By default, small work stays
on one thread, and a thread has at least THREAD_BYTES of work. Work below LARGE_BYTES stays on one
thread unless another call has just ended: to wake threads takes longer than such a call gains.

After a call that lost time to other programs, or two calls that met, all such work stays on one
thread for a while (a *pause*, kernels/frame/threads.pxi).

A given `num_threads` overrides all of this, except for work below HANDED_BYTES.

After ``fork``, a child always pools on one thread, even with an explicit `num_threads`: gcc's
OpenMP runtime waits for threads that do not exist in the child.
"""

import os

from .forks import has_forked, remember

# Bytes read and written for each thread of the default, at least, and below which it is one.
THREAD_BYTES = 256 << 10
SERIAL_BYTES = 2 * THREAD_BYTES
# Bytes read and written from which a call gains more than waking threads takes (200 us).
LARGE_BYTES = 3 << 20
# Bytes read and written below which a given `num_threads` is 1 too: to hand work to a thread that
# spins, and to wait for it, takes 5 us, and 128 KiB mostly take 4 to 10 us.
HANDED_BYTES = 128 << 10
# Rules of a call (kernels/frame/threads.pxi says what they are).
AS_GIVEN, SHARED, SHARED_SOON = range(3)
SOON_MS = 2  # after the end of a call (threads.pxi repeats it)

# Limit for any call, also with an explicit `num_threads` (kernels/frame/structs.pxi repeats it).
MOST_THREADS = 256

# Functions that return further limits of the default, such as another library's setting.
limits = []


def cgroup_limit(root="/sys/fs/cgroup", membership="/proc/self/cgroup"):
    """Return the CPUs that the quotas of this process's cgroup and its parents allow.

    The number is rounded up; None means no limit. cgroup version 2 is read, and version 1 if it
    has a quota.
    """
    groups = {"": "/"}  # in a container, the root is the container's cgroup
    try:
        with open(membership) as f:
            for line in f:
                _, controllers, path = line.rstrip("\n").split(":", 2)
                groups.update(dict.fromkeys(controllers.split(","), path))
    except (OSError, ValueError):
        pass
    quotas = []
    for folder in _upwards(root, groups[""]):
        quotas.append(_read_numbers(f"{folder}/cpu.max"))
    for folder in _upwards(f"{root}/cpu", groups.get("cpu", "/")):
        files = f"{folder}/cpu.cfs_quota_us", f"{folder}/cpu.cfs_period_us"
        quotas.append(sum(map(_read_numbers, files), []))
    limits = [
        max(1, -(-quota[0] // quota[1])) for quota in quotas if len(quota) == 2 and min(quota) > 0
    ]
    return min(limits, default=None)


def _upwards(root, path):
    """Return the folders of a cgroup and of its parents, its own first."""
    names = [name for name in path.split("/") if name and name != ".."]
    return ["/".join([root, *names[:count]]) for count in range(len(names), -1, -1)]


def _read_numbers(path):
    """Return the integers in a file; none if the file is missing or says "max"."""
    try:
        with open(path) as f:
            return list(map(int, f.read().split()[:2]))
    except (OSError, ValueError):
        return []


# Read once: reading the quotas takes as long as a small pooling.
_quota = remember(1)(cgroup_limit)


def available_cpus():
    """Return the processors that this thread may use.

    The affinity is read at each call, the cgroup quota at the first one.
    """
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return min(count, _quota() or count)


@remember(1)
def _own_limit():
    """Return FASTPOOL_NUM_THREADS as it was at the first call."""
    text = os.environ.get("FASTPOOL_NUM_THREADS", "").strip()
    if not text:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"FASTPOOL_NUM_THREADS must be a positive integer, got {text!r}")
    return min(int(text), MOST_THREADS)


def why_paused(kernels):
    """Return, as text, why calls by default stay on one thread for now; None if they do not."""
    paused = kernels.paused()
    if paused is None:
        return None
    left, lost, took = paused
    why = f"a call lost {1e3 * lost:.3g} of {1e3 * took:.3g} ms, as processors were busy"
    return f"for {left:.2g} s: {why if took else 'two calls ran at once'}"


def most_by_default(kernels):
    """Return the number of threads of a large call that names none."""
    return effective_threads(None, 1 << 40, kernels.max_threads)


def is_always_one(num_threads, work):
    """Do all calls that read and write `work` bytes use one thread?"""
    return num_threads == 1 or work < (SERIAL_BYTES if num_threads is None else HANDED_BYTES)


def rule(num_threads, work):
    """Return the rule for a call that reads and writes `work` bytes."""
    if num_threads is not None or work < SERIAL_BYTES:
        return AS_GIVEN
    return SHARED if work >= LARGE_BYTES else SHARED_SOON


def effective_threads(num_threads, work, omp_limit):
    """Return the number of threads for one call.

    Parameters
    ----------
    num_threads : int or None
        As given by the caller and checked: at least 1, or None for the default.
    work : int
        Bytes read and written.
    omp_limit : callable
        Returns OpenMP's current limit.
    """
    if is_always_one(num_threads, work) or has_forked():
        return 1
    if num_threads is not None:
        return min(num_threads, MOST_THREADS)
    most = work // THREAD_BYTES
    given = _own_limit() or available_cpus()
    return min(given, most, MOST_THREADS, omp_limit(), *(limit() for limit in limits))
