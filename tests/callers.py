"""Helpers that build and call the packages of tests/external, for the tests of the C API."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cases
import fastpool

ROOT = Path(__file__).parents[1]
HEADER = Path(fastpool.get_include(), "fastpool.h")
COMPILER = shutil.which(os.environ.get("CC", "cc").split()[0])
ERRORS = {name: int(n) for name, n in re.findall(r"(FASTPOOL_\w+) = (\d+)", HEADER.read_text())}

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler is found")


def build(package, folder, flags):
    """Build a package in `folder`, as its author would; the modules, by name."""
    pytest.importorskip("setuptools")
    shutil.copytree(ROOT / "tests" / "external" / package, folder)
    process = subprocess.run(
        [sys.executable, "-P", "setup.py", "build_ext", "--inplace"],
        cwd=folder,
        env={**os.environ, "CFLAGS": flags, "PYTHONPATH": str(Path(fastpool.__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return {path.name.partition(".")[0]: path for path in folder.glob("*.so")}, process.stderr


def load(path):
    spec = importlib.util.spec_from_file_location(path.name.partition(".")[0], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def at(array):
    """An array as the driver takes it."""
    return None if array is None else (array.ctypes.data, array.strides)


def bits(array):
    """A view that any type's results can be kept in."""
    return array.view(f"u{array.itemsize}")


def results(plan, extra=0):
    """Return arrays for the results of a plan: full of 77, with `extra` elements after each row."""
    average = isinstance(plan, fastpool.AvgPoolPlan)
    names = [plan.result_dtype if average else plan.dtype]
    if not average and plan.return_indices:
        names.append(plan.index_dtype)
    found = []
    for name in names:
        shape = (*plan.output_shape[:-1], plan.output_shape[-1] + extra)
        found.append(np.full(shape, 77, cases.dtype(name))[..., : plan.output_shape[-1]])
    return found if len(found) == 2 else [*found, None]


def compiled_plan(driver, plan):
    """Return a plan of Python as one of the driver."""
    average = isinstance(plan, fastpool.AvgPoolPlan)
    return driver.AveragePlan(plan) if average else driver.Plan(plan)


def pooled(driver, plan, x, threads=0, flags=0, extra=0, compiled=None):
    y, indices = results(plan, extra)
    compiled = compiled_plan(driver, plan) if compiled is None else compiled
    return compiled.pool(at(x), at(y), at(indices), threads, flags), y, indices


def assert_pooled(found, expected):
    code, y, indices = found
    assert code == 0
    if indices is None:
        cases.assert_same(y, expected)
    else:
        cases.assert_same(y, expected[0])
        cases.assert_same(indices, expected[1])
