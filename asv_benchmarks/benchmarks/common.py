"""The shared list of workloads, and calls prepared from it.

The benchmarks of time have no `setup`: where there is one, asv (its runner, from 0.3 on) runs it
before every single call and measures cold calls one by one. So a call is prepared when it is first
made, while asv warms up.
"""

import importlib.util
from pathlib import Path

import numpy as np

import fastpool


def _load_workloads():
    """fastpool/bench/workloads.py of this checkout, which the commit that is measured may lack."""
    path = Path(__file__).parents[2] / "fastpool" / "bench" / "workloads.py"
    spec = importlib.util.spec_from_file_location("workloads", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


workloads = _load_workloads()
WORKLOADS = {workload.name: workload for workload in workloads.WORKLOADS}
WARMUP_TIME = 0.5  # seconds: more than the preparing of any call that is shorter than a sample


def names(*kinds):
    """Names of the workloads of some kinds, tiny ones aside."""
    return [w.name for w in WORKLOADS.values() if w.kind in kinds and w.group != "tiny"]


def keywords(workload, num_threads=1):
    """The attributes of a workload's call."""
    window = workload.window
    if workload.kind == "unpool":
        window = {name: window[name] for name in ("kernel_shape", "strides", "pads")}
        window["output_shape"] = workload.shape
    elif workload.kind == "indices":
        window["return_indices"] = True
    return {**window, "layout": workload.layout, "num_threads": num_threads}


def prepare(workload, num_threads=1):
    """The call of a workload into memory for its results: a function without arguments."""
    inputs = workloads.make_arrays(workload)
    attributes = keywords(workload, num_threads)
    if workload.kind == "unpool":
        out = np.ones(workload.shape, workload.dtype)
        return lambda: fastpool.max_unpool(*inputs, **attributes, out=out)
    plan = fastpool.plan_max_pool(workload.shape, workload.dtype, **attributes)
    results = plan(*inputs)
    y, z = results if workload.kind == "indices" else (results, None)
    return lambda: plan(*inputs, out=y, out_indices=z)
