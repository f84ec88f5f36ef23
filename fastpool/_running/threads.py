"""How many threads a call uses, decided in one place.

``num_threads=None`` means the default: the processors that this process may use, by affinity and by
the cgroup's CPU quota, and no more than ``FASTPOOL_NUM_THREADS``, ``OMP_NUM_THREADS`` or a limit
set through threadpoolctl. Small work stays on one thread then: waking a second one costs more than
it gains, and far more when another process holds that core.

A child made by ``fork`` pools on one thread, whatever is asked: the OpenMP runtime of gcc waits for
threads that do not exist there.
"""

import functools
import os

# Bytes read and written below which the default is one thread.
SERIAL_BYTES = 4 << 20

# More are never started, whatever is asked.
MOST_THREADS = 256

# Functions that give further limits of the default: another library's own setting.
limits = []

_forked = False


def _after_fork_in_child():
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def cgroup_limit(root="/sys/fs/cgroup", membership="/proc/self/cgroup"):
    """CPUs that the quotas of this process's cgroup and of those around it allow, rounded up; None
    if unlimited. Version 2 counts, and version 1 where a quota is found there.
    """
    groups = {"": "/"}  # in a container the root is its own
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
    """The folders of a cgroup and of all around it."""
    names = [name for name in path.split("/") if name and name != ".."]
    return ["/".join([root, *names[:count]]) for count in range(len(names), -1, -1)]


def _read_numbers(path):
    """The integers in a file; none if it is not there, or says "max"."""
    try:
        with open(path) as f:
            return list(map(int, f.read().split()[:2]))
    except (OSError, ValueError):
        return []


# The quotas; read once, which takes as long as a small pooling.
_quota = functools.cache(cgroup_limit)


def available_cpus():
    """Processors this thread may use: affinity now, and the cgroup quota at the first call."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return min(count, _quota() or count)


@functools.cache
def _own_limit():
    """FASTPOOL_NUM_THREADS at the first call."""
    text = os.environ.get("FASTPOOL_NUM_THREADS", "").strip()
    if not text:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"FASTPOOL_NUM_THREADS must be a positive integer, got {text!r}")
    return min(int(text), MOST_THREADS)


def default_threads():
    """The default before OpenMP's own limit, which may change between calls as affinity may."""
    return _own_limit() or available_cpus()


def effective_threads(num_threads, work, omp_limit):
    """Threads for one call.

    Parameters
    ----------
    num_threads : int or None
        As given by the caller and checked: at least 1, or None for the default.
    work : int
        Bytes read and written.
    omp_limit : callable
        Returns OpenMP's current limit.
    """
    if num_threads is None:
        if work < SERIAL_BYTES:
            return 1
        if _forked:
            return 1
        return min(default_threads(), omp_limit(), *(limit() for limit in limits))
    return 1 if _forked else min(num_threads, MOST_THREADS)
