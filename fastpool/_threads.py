"""How many threads a call uses, decided in one place.

``num_threads=None`` means the default: the processors that this process may use, by affinity and by
the cgroup's CPU quota, and no more than ``FASTPOOL_NUM_THREADS``, ``OMP_NUM_THREADS`` or a limit
set through threadpoolctl. Small work stays on one thread then: waking a second one costs more than
it gains, and far more when another process holds that core.

A child made by ``fork`` pools on one thread, whatever is asked: the OpenMP runtime of gcc waits for
threads that do not exist there.
"""

import os

# Bytes read and written below which the default is one thread.
SERIAL_BYTES = 4 << 20

# More are never started, whatever is asked.
MOST_THREADS = 256

_forked = False


def _after_fork_in_child():
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def cgroup_limit(root="/sys/fs/cgroup"):
    """CPUs that the cgroup's quota allows (version 2, then 1), rounded up; None if unlimited."""
    try:
        with open(f"{root}/cpu.max") as f:
            quota, period = f.read().split()[:2]
    except (OSError, ValueError):
        try:
            with open(f"{root}/cpu/cpu.cfs_quota_us") as f:
                quota = f.read().strip()
            with open(f"{root}/cpu/cpu.cfs_period_us") as f:
                period = f.read().strip()
        except OSError:
            return None
    try:
        quota, period = int(quota), int(period)
    except ValueError:  # "max"
        return None
    return max(1, -(-quota // period)) if quota > 0 and period > 0 else None


def available_cpus():
    """Processors this process may use: affinity now, and the cgroup quota."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    limit = cgroup_limit()
    return min(count, limit) if limit else count


def default_threads():
    """The default before OpenMP's own limit, which may change between calls, is applied."""
    text = os.environ.get("FASTPOOL_NUM_THREADS", "").strip()
    if text:
        if not text.isdecimal() or int(text) == 0:
            raise ValueError(f"FASTPOOL_NUM_THREADS must be a positive integer, got {text!r}")
        return min(int(text), MOST_THREADS)
    return available_cpus()


_default = None


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
    global _default
    if num_threads is None:
        if work < SERIAL_BYTES:
            return 1
        if _default is None:
            _default = default_threads()
        return 1 if _forked else min(_default, omp_limit())
    return 1 if _forked else min(num_threads, MOST_THREADS)
