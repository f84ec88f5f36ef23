"""`fastpool info`: the facts that a bug report needs."""

import json
import os
import platform
import re
import sys
from contextlib import suppress
from importlib import util
from pathlib import Path

import click
import numpy as np

from .. import __version__, _kernels
from .._running import builds, plan_cache, threads
from .program import Command, wrong_input
from .screen import show, table

# Distributions that the extras install.
PACKAGES = ("click", "rich", "ml_dtypes", "onnx", "onnxruntime", "openvino", "torch", "dask")
PACKAGES += ("distributed", "xarray", "matplotlib", "pillow", "scikit-image", "threadpoolctl")

OPENMP = re.compile(r"/lib(gomp|omp|iomp5)\b[^/]*$")


@click.command(cls=Command, examples=["fastpool info", "fastpool info --json > info.json"])
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json):
    """Show versions, the build in use, and the threads.

    For bug reports, and to see why this build and this number of threads were chosen.
    """
    with wrong_input():  # FASTPOOL_NUM_THREADS=many
        found = collect()
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    rows = table(name="left", value="left")
    rows.show_header = False
    for row in _rows(found):
        rows.add_row(*row)
    show(rows)


def collect():
    """Return all facts as a dict for JSON."""
    from ..bench.report import machine

    return {
        "fastpool": __version__,
        "path": str(Path(__file__).parents[1]),
        "numpy": np.__version__,
        **machine(),
        "implementation": platform.python_implementation(),
        "gil": getattr(sys, "_is_gil_enabled", lambda: True)(),
        "executable": sys.executable,
        "features": _features(),
        "builds": _builds(),
        "threads": _thread_limits(),
        "openmp": _openmp(),
        "plan_cache": {
            "bytes": plan_cache.plan_cache_bytes(),
            "limit": plan_cache.plan_cache_limit(),
        },
        "packages": _packages(),
    }


def _features():
    """Return processor features that builds use -> whether this processor has them."""
    names = dict.fromkeys(name for _, needed in builds.BUILDS.values() for name in needed)
    return {name: bool(_kernels.cpu_supports(name)) for name in names}


def _builds():
    used = builds._active
    features, here = _features(), builds.builds()
    found = {}
    for name, (suffix, needed) in builds.BUILDS.items():
        missing = [feature for feature in needed if not features[feature]]
        if name in here:
            found[name] = "in use" if name == used else "runs here"
        elif util.find_spec(f"fastpool._kernels{suffix}") is None:
            found[name] = "not installed"
        else:
            found[name] = f"needs {', '.join(missing)}"
    return {
        "in_use": used,
        "because": "FASTPOOL_ISA" if os.environ.get("FASTPOOL_ISA", "").strip() else "best here",
        "vector_bytes": here[used].VECTOR_BYTES,
        "all": found,
    }


def _thread_limits():
    """Return the default number of threads, and everything that may limit it."""
    kernels = builds.active()
    asked = os.environ.get("FASTPOOL_NUM_THREADS", "").strip()
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limits = {
        "FASTPOOL_NUM_THREADS": int(asked) if asked.isdecimal() else None,
        "affinity": affinity,
        "cgroup quota": threads.cgroup_limit(),
        "OpenMP" if kernels.OPENMP else "built without OpenMP": kernels.max_threads(),
    }
    default = threads.most_by_default(kernels)
    because = [name for name, limit in limits.items() if limit == default]
    return {
        "default": default,
        "because": because,
        "serial_bytes": threads.SERIAL_BYTES,
        "large_bytes": threads.LARGE_BYTES,
        "soon_ms": threads.SOON_MS,
        "limits": limits,
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
    }


def _openmp():
    """Return the files of the OpenMP runtimes in this process; None if they cannot be found."""
    try:
        with open("/proc/self/maps") as lines:
            files = {line.split(maxsplit=5)[-1].strip() for line in lines}
    except OSError:
        return None
    return sorted(filter(OPENMP.search, files))


def _packages():
    from importlib import metadata  # slow to import, and --help does not need it

    found = {}
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _rows(found):
    """Yield the facts as rows of a table."""
    builds, threads = found["builds"], found["threads"]
    yield "fastpool", f"{found['fastpool']}, {found['path']}"
    gil = "" if found["gil"] else " without the GIL"
    yield "Python", f"{found['implementation']} {found['python']}{gil}, {found['executable']}"
    yield "NumPy", found["numpy"]
    yield "system", found["system"]
    yield "processor", f"{found['processors']} x {found['processor']}"
    features = [name if there else f"no {name}" for name, there in found["features"].items()]
    yield "features", ", ".join(features)
    yield (
        "build",
        f"{builds['in_use']} ({builds['because']}), {builds['vector_bytes']}-byte vectors",
    )
    yield "builds", ", ".join(f"{name}: {state}" for name, state in builds["all"].items())
    yield "threads", f"{threads['default']} by default ({', '.join(threads['because'])})"
    small, large = f"{threads['serial_bytes'] >> 10} KiB", f"{threads['large_bytes'] >> 20} MiB"
    soon = f"another call of {small} or more ended within {threads['soon_ms']} ms"
    busy = "for a while if processors are busy: see plan.explain()"
    yield "", f"1 below {small}, below {large} unless {soon}, and {busy}"
    limits = [f"{name}: {limit or 'none'}" for name, limit in threads["limits"].items()]
    limits.append(f"OMP_NUM_THREADS: {threads['OMP_NUM_THREADS'] or 'none'}")
    yield "limits", ", ".join(limits)
    yield "OpenMP", "unknown" if found["openmp"] is None else ", ".join(found["openmp"]) or "none"
    kept = found["plan_cache"]
    yield "plan cache", f"{kept['bytes']:,} of at most {kept['limit']:,} bytes"
    packages = [f"{name} {version}" for name, version in found["packages"].items()]
    yield "packages", ", ".join(packages)
