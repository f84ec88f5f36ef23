"""Load the shared list of workloads, and prepare calls from it.

The time benchmarks have no `setup`: asv's runner (from 0.3 on) would run it before every single
call and measure cold calls one by one. So a call is prepared when it is first made, while asv warms
up.
"""

import importlib.util
from pathlib import Path

import numpy as np

import fastpool


def _load_workloads():
    """Import fastpool/bench/workloads.py of this checkout; the measured commit may lack it."""
    path = Path(__file__).parents[2] / "fastpool" / "bench" / "workloads.py"
    spec = importlib.util.spec_from_file_location("workloads", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


workloads = _load_workloads()
WORKLOADS = {workload.name: workload for workload in workloads.WORKLOADS}
WARMUP_TIME = 0.5  # seconds, longer than preparing any call that is shorter than a sample


def names(*kinds):
    """Return the names of the workloads of some kinds, without tiny ones."""
    return [w.name for w in WORKLOADS.values() if w.kind in kinds and w.group != "tiny"]


def keywords(workload, num_threads=1):
    """Return the attributes of a workload's call."""
    window = workload.window
    if workload.kind == "unpool":
        window = {name: window[name] for name in ("kernel_shape", "strides", "pads")}
        window["output_shape"] = workload.shape
    elif workload.kind == "indices":
        window["return_indices"] = True
    elif workload.output_size:
        window = {"output_size": workload.output_size}
    if workload.numerics:
        window["numerics"] = workload.numerics
    return {**window, "layout": workload.layout, "num_threads": num_threads}


def planner(workload):
    """Return the function that makes a workload's plan."""
    if workload.output_size:
        return fastpool.plan_adaptive_avg_pool
    return fastpool.plan_avg_pool if workload.op == "avg" else fastpool.plan_max_pool


def prepare(workload, num_threads=1, plan_of=None):
    """Return the call of a workload, with `out`, as a function without arguments.

    `plan_of` makes its plan, if not `planner(workload)`.
    """
    inputs = workloads.make_arrays(workload)
    attributes = keywords(workload, num_threads)
    if workload.kind == "unpool":
        out = np.ones(workload.shape, workload.dtype)
        return lambda: fastpool.max_unpool(*inputs, **attributes, out=out)
    plan = (plan_of or planner(workload))(workload.shape, workload.dtype, **attributes)
    results = plan(*inputs)
    if workload.kind == "indices":
        y, z = results
        return lambda: plan(*inputs, out=y, out_indices=z)
    return lambda: plan(*inputs, out=results)
