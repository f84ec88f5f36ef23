"""Count the instructions and bytes of the shared workloads; fail if there are 3 % more of them.

    python ci/instructions.py check     # against ci/instructions.json
    python ci/instructions.py accept    # write the counts of the installed fastpool there

Wall-clock time on a shared machine says little about a change of a few percent. Counts do not vary.
Three things are counted, all without imports and planning:

- kernels: one call of a plan on one thread, from where it enters a compiled module of fastpool to
  where it returns, C library included. The builds are `baseline` and `avx2`: valgrind does not
  support AVX-512.
- calls: everything, Python included, of 100 tiny calls.
- bytes: what the first two calls of a plan ask of malloc, mostly scratch, in a separate process.

Exit status: 0 if counts are as stored or lower; 1 if they are higher or some workload has no stored
count; 77 if no instructions were compared, because valgrind is missing, or because these modules
and the stored counts come from different compilers. (Calls and bytes are only compared under the
same Python and NumPy.) Needs glibc, a C compiler, and gcc's .comment section in the modules.

asv keeps the history of these counts (asv_benchmarks/benchmarks). It runs this file on the fastpool
of other commits, so the file calls public functions only, and reads the workloads of its own
checkout.
"""

import ctypes
import functools
import gc
import json
import math
import os
import platform
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import numpy as np

STORED = Path(__file__).with_suffix(".json")
LIST = Path(__file__).parents[1] / "fastpool" / "bench" / "workloads.py"
BUILDS = ("baseline", "avx2")
LARGEST = 24_000_000  # bytes read and written: larger arrays take long and show nothing new
LARGEST_AVERAGE = 4_000_000
TINY_CALLS = 100
# Paths that no workload takes: a function of fastpool, an element type, a shape, and arguments.
IMAGE, PHOTO, MAPS = (512, 512), (512, 512, 3), (1, 64, 56, 56)
PATHS = {
    "blocks-mean/f32": ("block_reduce", "float32", IMAGE, (4, "mean")),
    "blocks-std/f32": ("block_reduce", "float32", IMAGE, (4, "std")),
    "blocks-median/u8": ("block_reduce", "uint8", IMAGE, (4, "median")),
    "blocks-mode/u32": ("block_reduce", "uint32", IMAGE, (2, "mode")),
    "pyramid-mean/u8": ("pyramid", "uint8", PHOTO, (3, (2, 2, 1))),
    "pyramid-mode/u32": ("pyramid", "uint32", IMAGE, (3, 2, "mode")),
    "minima/f32": ("min_pool", "float32", MAPS, (3,)),
    "minima/i16": ("min_pool", "int16", MAPS, (3,)),
    "border-max/f32": ("ndimage.maximum_filter", "float32", IMAGE, (15,)),
    "border-mean/f32": ("ndimage.uniform_filter", "float32", IMAGE, (15,)),
}
TOLERANCE = 0.03  # relative; addresses and the C library may differ
NOT_COMPARED = 77
# A library to preload. glibc's own functions do the work.
COUNT_BYTES = """
#include <stddef.h>
size_t allocated;
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *malloc(size_t n) { allocated += n; return __libc_malloc(n); }
void *calloc(size_t m, size_t n) { allocated += m * n; return __libc_calloc(m, n); }
void *realloc(void *p, size_t n) { allocated += n; return __libc_realloc(p, n); }
"""


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


def paths(fastpool):
    """Yield the name of each of `PATHS` that this fastpool has, and its call."""
    for name, (function, dtype, shape, arguments) in PATHS.items():
        found = functools.reduce(lambda a, b: getattr(a, b, None), function.split("."), fastpool)
        if found is not None:
            x = np.resize(np.arange(100).astype(dtype), shape)
            yield name, functools.partial(found, x, *arguments)


def drive():
    """Run the calls under valgrind; print the name of every count.

    A count begins at one system call that nothing else makes, and ends at another. Both write what
    was counted since the last: callgrind's --zero-before keeps some of it.
    """
    fastpool, known = load()
    gc.disable()  # one collection is a fifth of 100 calls
    for name, module in list(sys.modules.items()):
        if name.startswith("fastpool._kernels") and hasattr(module, "trust_flags"):
            module.trust_flags(True)  # valgrind sets none, and every sum would count as rounded
    counted = []
    named = (zip(names(workload), calls(fastpool, workload), strict=False) for workload in known)
    for name, call in chain(*named, paths(fastpool)):
        call()  # the first call alone prepares tiles and scratch
        os.getpgrp()
        for _ in range(TINY_CALLS if name.startswith("tiny") else 1):
            call()
        os.getppid()
        counted.append(name)
    print(json.dumps(counted))


def drive_bytes():
    """Run the first calls of every plan in a new process, which prints its name and their bytes.

    Tiny ones are left out: their scratch is on the stack.
    """
    fastpool, known = load()
    allocated = ctypes.c_size_t.in_dll(ctypes.CDLL(None), "allocated")
    tiny = [workload for workload in known if workload.name.startswith("tiny")]
    for workload in tiny:
        for call in calls(fastpool, workload):
            call()  # imports what calls need
    for workload in known:
        if workload in tiny:
            continue
        child = os.fork()  # because scratch outlives a call, in one block for all plans
        if child:
            if os.waitpid(child, 0)[1]:
                sys.exit(f"{workload.name}: failed, see above")
            continue
        call = calls(fastpool, workload)[0]
        before = allocated.value
        call()
        call()
        print(json.dumps([workload.name, allocated.value - before]), flush=True)
        os._exit(0)


def load():
    """Return fastpool and the workloads that it knows: an earlier commit may lack averages."""
    import ml_dtypes  # noqa: F401  (gives NumPy bfloat16)

    import fastpool

    averages = hasattr(fastpool, "plan_avg_pool")
    return fastpool, [workload for workload in workloads() if averages or workload.op != "avg"]


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
    environment = environment_of(build)
    if environment is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        command = (
            *("valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"),
            *("--dump-before=getpgrp", "--dump-before=getppid"),
            *("--compress-strings=no", "--compress-pos=no", "-q"),
            *(sys.executable, __file__, "drive"),
        )
        driven = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        counts = {}
        for number, name in enumerate(json.loads(driven.stdout), start=1):
            total, inside = counts[name] = read_dump(Path(folder, f"out.{2 * number}"))
            if not inside:
                sys.exit(f"{build}, {name}: no instructions of fastpool's modules seen")
    return counts


def count_bytes(build):
    """Return what the first two calls of plans allocate: name -> bytes. The dict may be empty."""
    environment = environment_of(build)
    if environment is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        library = environment["LD_PRELOAD"] = f"{folder}/count_bytes.so"
        command = ("cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library)
        subprocess.run(command, input=COUNT_BYTES, text=True, check=True)
        command = (sys.executable, __file__, "drive_bytes")
        driven = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return dict(map(json.loads, driven.stdout.splitlines()))


def environment_of(build):
    """Return the environment that chooses a build, or None if the build does not run here."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    environment["FASTPOOL_ISA"] = build
    imports = [sys.executable, "-P", "-c", "import fastpool"]  # not that of a checkout
    failed = subprocess.run(imports, env=environment, stderr=subprocess.DEVNULL).returncode
    return None if failed else environment


def count(instructions=True):
    """Return all counts to store, or without those that need valgrind."""
    counts = {build: {} for build in BUILDS}
    if instructions:
        with ThreadPoolExecutor() as pool:
            counts = dict(zip(BUILDS, pool.map(count_build, BUILDS), strict=True))
    return {
        "compiler": compiler(),
        "python": f"{platform.python_implementation()} {platform.python_version()}, "
        f"numpy {np.__version__}, {platform.python_compiler()}",
        "kernels": {
            build: {name: inside for name, (_, inside) in found.items()}
            for build, found in counts.items()
            if found
        },
        "bytes": {build: found for build in BUILDS if (found := count_bytes(build))},
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
    why = None
    if shutil.which("valgrind") is None:
        why = "valgrind is missing (Debian and Ubuntu: apt install valgrind)"
    elif stored["compiler"] != compiler():
        why = f"stored are those of {stored['compiler']}, these modules are of {compiler()}"
    found = count(instructions=why is None)
    if not found["bytes"]:
        sys.exit("no build of fastpool can be imported")
    bad = False
    for build, counts in found["kernels"].items():
        bad |= differences(f"instructions, {build}", stored["kernels"][build], counts)
    if stored["python"] == found["python"]:
        bad |= differences("instructions, calls", stored["calls"], found["calls"])
        for build, counts in found["bytes"].items():
            bad |= differences(f"bytes, {build}", stored["bytes"][build], counts)
    else:
        print(f"calls, bytes: not compared, stored under {stored['python']}, not {found['python']}")
    if why:
        print(f"instructions: not compared: {why}")
    if bad:
        print("More than stored. If that is meant: python ci/instructions.py accept")
    return 1 if bad else NOT_COMPARED if why else 0


def accept():
    found = count()
    missing = [build for build in BUILDS if build not in found["kernels"]]
    if missing:
        sys.exit(f"not written: {', '.join(missing)} cannot be counted on this machine")
    STORED.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{STORED}: {sum(map(len, found['kernels'].values()))} kernel counts")


if __name__ == "__main__":
    commands = {"check": check, "accept": accept, "drive": drive, "drive_bytes": drive_bytes}
    if sys.argv[1:] not in [[name] for name in commands]:
        sys.exit(__doc__)
    sys.exit(commands[sys.argv[1]]())
