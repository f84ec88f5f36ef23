"""Count the instructions of the shared workloads under valgrind; fail if there are more of them.

    python ci/instructions.py check     # against ci/instructions.json
    python ci/instructions.py accept    # write the counts of the installed fastpool there

Wall-clock time on a shared machine says little about a change of a few percent. A count shows
everything but memory, and does not vary. Two things are counted, both without imports and planning:

- kernels: one call of a plan on one thread, from where it enters a compiled module of fastpool to
  where it returns, C library included. The builds are `baseline` and `avx2`: valgrind does not
  support AVX-512.
- calls: everything, Python included, of 100 tiny calls.

Exit status: 0 if counts are as stored or lower; 1 if they are higher or some workload has no stored
count; 77 if nothing was compared, because these modules and the stored counts come from different
compilers. (Calls are only compared under the same Python and NumPy.) Needs valgrind, and gcc's
.comment section in the modules.

asv keeps the history of these counts (asv_benchmarks/benchmarks/instructions.py). It runs this file
on the fastpool of other commits, so the file calls public functions only, and reads the workloads
of its own checkout.
"""

import json
import math
import os
import platform
import re
import runpy
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

STORED = Path(__file__).with_suffix(".json")
LIST = Path(__file__).parents[1] / "fastpool" / "bench" / "workloads.py"
BUILDS = ("baseline", "avx2")
LARGEST = 24_000_000  # bytes read and written: larger arrays take long and show nothing new
LARGEST_AVERAGE = 4_000_000
TINY_CALLS = 100
TOLERANCE = 0.02  # relative; addresses and the C library may differ
NOT_COMPARED = 77


def workloads():
    """Return the workloads that are counted."""
    return [
        workload
        for workload in runpy.run_path(str(LIST))["WORKLOADS"]
        if workload.kind != "qlinear"
        and workload.bytes_read + workload.bytes_written
        <= (LARGEST_AVERAGE if workload.op == "avg" else LARGEST)
    ]


def names(workload):
    """Return the names of a workload's counts."""
    tiny = workload.group == "tiny" and workload.kind != "unpool"
    return [workload.name, f"{workload.name} max_pool"] if tiny else [workload.name]


def calls(fastpool, workload):
    """Return the calls to count, one for each name."""
    # Any values but NaN will do. Making random ones takes valgrind longer than the pooling.
    x = np.resize(np.arange(100).astype(workload.dtype), workload.shape)
    keywords = {**workload.window, "layout": workload.layout, "num_threads": 1}
    if workload.kind == "unpool":
        needed = ("kernel_shape", "strides", "pads", "layout", "num_threads")
        keywords = {name: keywords[name] for name in needed}
        y, indices = fastpool.max_pool(x, **keywords, return_indices=True)
        keywords["output_shape"] = workload.shape
        return [lambda: fastpool.max_unpool(y, indices, **keywords, out=x)]
    if workload.op == "avg":
        make = fastpool.plan_avg_pool
        if workload.output_size:
            make = fastpool.plan_adaptive_avg_pool
            keywords = {name: keywords[name] for name in ("layout", "num_threads")}
            keywords["output_size"] = workload.output_size
        if workload.numerics:
            keywords["numerics"] = workload.numerics
        plan = make(x.shape, x.dtype, **keywords)
        y = np.empty(plan.output_shape, x.dtype)
        return [lambda: plan(x, out=y)]
    keywords["return_indices"] = workload.kind == "indices"
    plan = fastpool.plan_max_pool(x.shape, x.dtype, **keywords)
    y = np.empty(plan.output_shape, x.dtype)
    z = np.empty(plan.output_shape, plan.index_dtype) if plan.return_indices else None
    return [lambda: plan(x, out=y, out_indices=z), lambda: fastpool.max_pool(x, **keywords)]


def drive():
    """Run the calls under valgrind; print the name of every count.

    A count begins at one system call that nothing else makes, and ends at another.
    """
    import ml_dtypes  # noqa: F401  (gives NumPy bfloat16)

    import fastpool

    for name, module in list(sys.modules.items()):
        if name.startswith("fastpool._kernels") and hasattr(module, "trust_flags"):
            module.trust_flags(True)  # valgrind sets none, and every sum would count as rounded
    counted = []
    for workload in workloads():
        if workload.op == "avg" and not hasattr(fastpool, "plan_avg_pool"):
            continue  # an earlier commit
        for name, call in zip(names(workload), calls(fastpool, workload), strict=False):
            call()  # the first call alone prepares tiles and scratch
            os.getpgrp()
            for _ in range(TINY_CALLS if name.startswith("tiny") else 1):
                call()
            os.getppid()
            counted.append(name)
    print(json.dumps(counted))


def read_dump(path):
    """Return (all instructions, those between entering and leaving fastpool's modules)."""
    total = inside = 0
    here = callee = ""  # object files
    entering = False
    for line in path.read_text().splitlines():
        kind, _, rest = line.partition("=")
        if kind == "ob":
            here = callee = rest
        elif kind == "cob":
            callee = rest
        elif kind == "calls":  # the next line holds the cost of the call
            entering = is_kernels(callee) and not is_kernels(here)
            callee = here
        elif entering:
            inside += int(line.split()[-1])
            entering = False
        elif line.startswith("totals:"):
            total = int(line.split()[-1])
    return total, inside


def is_kernels(path):
    return re.search(r"/fastpool/_kernels[^/]*$", path) is not None


def count_build(build):
    """Return what one build takes: name -> (all instructions, those of its module).

    The dict is empty if the build does not run here.
    """
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    environment["FASTPOOL_ISA"] = build
    imports = [sys.executable, "-c", "import fastpool"]
    if subprocess.run(imports, env=environment, stderr=subprocess.DEVNULL).returncode:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        command = (
            *("valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"),
            *("--zero-before=getpgrp", "--dump-before=getppid"),
            *("--compress-strings=no", "--compress-pos=no", "-q"),
            *(sys.executable, __file__, "drive"),
        )
        driven = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        counts = {}
        for number, name in enumerate(json.loads(driven.stdout), start=1):
            total, inside = counts[name] = read_dump(Path(folder, f"out.{number}"))
            if not inside:
                sys.exit(f"{build}, {name}: no instructions of fastpool's modules seen")
    return counts


def count():
    """Return all counts to store."""
    counts = {build: count_build(build) for build in BUILDS}
    return {
        "compiler": compiler(),
        "python": f"{platform.python_implementation()} {platform.python_version()}, "
        f"numpy {np.__version__}, {platform.python_compiler()}",
        "kernels": {
            build: {name: inside for name, (_, inside) in found.items()}
            for build, found in counts.items()
            if found
        },
        "calls": {
            name: total for name, (total, _) in counts[BUILDS[0]].items() if name.startswith("tiny")
        },
    }


def compiler():
    """Return the compiler that the modules name."""
    made = set()
    for module in Path(find_spec("fastpool").origin).parent.glob("_kernels*.so"):
        made.update(re.findall(rb"GCC: [ -~]+|clang version [\d.]+", module.read_bytes()))
    return ", ".join(sorted(text.decode() for text in made))


def differences(title, stored, found):
    """Print how counts differ; return whether any is higher or new."""
    bad = False
    ratios = []
    for name, number in found.items():
        before = stored.get(name)
        if before is None:
            print(f"  {title}, {name}: {number}, not stored")
            bad = True
            continue
        ratios.append(number / before)
        if abs(ratios[-1] - 1) > TOLERANCE:
            word = "MORE" if ratios[-1] > 1 else "fewer"
            print(f"  {title}, {name}: {before} -> {number}, x {ratios[-1]:.3f}  {word}")
            bad = bad or ratios[-1] > 1
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{title}: {len(ratios)} counts, geometric mean x {mean:.4f}")
    return bad


def check():
    stored = json.loads(STORED.read_text())
    if stored["compiler"] != compiler():
        print(f"not compared: the stored counts are of {stored['compiler']}")
        print(f"              these modules are of {compiler()}")
        return NOT_COMPARED
    found = count()
    bad = False
    for build, counts in stored["kernels"].items():
        if build in found["kernels"]:
            bad |= differences(build, counts, found["kernels"][build])
        else:
            print(f"{build}: does not run here, not compared")
    if stored["python"] == found["python"]:
        bad |= differences("calls", stored["calls"], found["calls"])
    else:
        print(f"calls: not compared, stored under {stored['python']}; this is {found['python']}")
    if bad:
        print("More instructions than stored. If that is meant: python ci/instructions.py accept")
    return int(bad)


def accept():
    found = count()
    missing = [build for build in BUILDS if build not in found["kernels"]]
    if missing:
        sys.exit(f"not written: {', '.join(missing)} cannot be counted on this machine")
    STORED.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{STORED}: {sum(map(len, found['kernels'].values()))} kernel counts")


if __name__ == "__main__":
    commands = {"check": check, "accept": accept, "drive": drive}
    if sys.argv[1:] not in [[name] for name in commands]:
        sys.exit(__doc__)
    sys.exit(commands[sys.argv[1]]())
