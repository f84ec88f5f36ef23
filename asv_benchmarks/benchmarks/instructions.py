"""Track instructions under valgrind, which no other program on the machine changes.

ci/instructions.py of this checkout counts them, on the fastpool of the measured commit.
"""

import importlib.util
from math import nan
from pathlib import Path


def _load_counter():
    path = Path(__file__).parents[2] / "ci" / "instructions.py"
    spec = importlib.util.spec_from_file_location("instructions", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


counter = _load_counter()
NAMES = [name for workload in counter.workloads() for name in counter.names(workload)]
NAMES += counter.PATHS


def setup_cache():
    """Count once for each commit: build -> name -> (all instructions, those of the kernels)."""
    return {build: counter.count_build(build) for build in counter.BUILDS}


setup_cache.timeout = 1800


class Instructions:
    """Instructions of one call of a plan, inside the compiled module.

    valgrind does not support AVX-512.
    """

    params = (counter.BUILDS, NAMES)
    param_names = ("build", "workload")
    unit = "instructions"

    def track_kernels(self, counts, build, workload):
        _, inside = counts[build].get(workload, (nan, nan))
        return inside


class TinyInstructions:
    """Instructions of 100 calls on 64 elements, Python included, by the avx2 build."""

    params = [name for name in NAMES if name.startswith("tiny")]
    param_names = ("workload",)
    unit = "instructions"

    def track_calls(self, counts, workload):
        total, _ = counts["avx2"].get(workload, (nan, nan))
        return total
