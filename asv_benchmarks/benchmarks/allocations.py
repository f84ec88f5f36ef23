"""Track the bytes that plans allocate, which depend neither on the machine nor on the compiler."""

from math import nan

from .instructions import counter

NAMES = [w.name for w in counter.workloads() if not w.name.startswith("tiny")]


def setup_cache():
    """Count once for each commit: build -> name -> bytes."""
    return {build: counter.count_bytes(build) for build in counter.BUILDS}


class Allocations:
    """Bytes that the first two calls of a plan ask of malloc, on one thread, with `out`."""

    params = (counter.BUILDS, NAMES)
    param_names = ("build", "workload")
    unit = "bytes"

    def track_bytes(self, counts, build, workload):
        return counts[build].get(workload, nan)
