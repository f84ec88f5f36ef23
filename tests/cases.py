"""Helpers of most tests: dtypes, adversarial values, layouts, arrangements, processes, threads."""

import contextlib
import doctest
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np

import fastpool
import limits
from fastpool._running import builds as running
from fastpool._running import threads as rules

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

# Small cases run on several threads too, if they ask for them.
rules.HANDED_BYTES = 0

INTEGER_NAMES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOAT_NAMES = ["float16", "float32", "float64"] + (["bfloat16"] if ml_dtypes else [])
DTYPE_NAMES = FLOAT_NAMES + INTEGER_NAMES + ["bool"]
BUILDS = list(running.builds())
OPENMP = running.active().OPENMP  # without it, every call takes one thread
GIL = getattr(sys, "_is_gil_enabled", lambda: True)()

# (bits of the type, bits of its mantissa)
_FLOAT_FORMATS = {
    "float16": (16, 10),
    "bfloat16": (16, 7),
    "float32": (32, 23),
    "float64": (64, 52),
}


def dtype(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def run_python(code, timeout=limits.HANG, **environment):
    """Run code in a new interpreter that imports this same fastpool; the finished process."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("FASTPOOL_")}
    own["PYTHONPATH"] = str(Path(fastpool.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**own, **environment},
    )


def error_without(package, code):
    """Return the last line that code prints on stderr where a package cannot be imported."""
    process = run_python(f"import sys; sys.modules[{package!r}] = None\n{code}")
    assert process.returncode == 1
    return process.stderr.splitlines()[-1]


@contextlib.contextmanager
def bounds():
    """Limit the block to a second of processor time and 100 MiB of additional memory."""
    with limits.quick(1), limits.address_space(100 << 20):
        yield


def command(*arguments):
    """The command line in this process: (exit status, standard output, standard error)."""
    from click.testing import CliRunner

    from fastpool._cli.program import program

    result = CliRunner().invoke(program, arguments, prog_name="fastpool")
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def kernel_path(plan):
    """The way through the kernels of a plan that has run: its strategy, and what its tiles are."""
    pooling = plan._prepared.pooling
    made = plan._prepared.work
    words = [pooling.strategy]
    if pooling.strategy == "running_maxima":
        words += ["channels last"] * made.channels_last
        return ", ".join(words + ["leading axes"] * (len(made.windows) > 2))
    words += ["channels last"] * made.channels_last + ["direct"] * made.direct
    words += ["pixels as row"] * made.pixels_as_row + ["leading axes"] * (len(made.windows) > 2)
    words += ["long rows"] * (len(made.windows[-2].steps) > 1)
    words += ["long columns"] * (len(made.windows[-1].steps) > 1)
    words += ["keys"] * made.keyed
    words += [f"indices in {made.key_bytes} bytes"] * made.return_indices
    return ", ".join(words)


# ---------------------------------------------------------------------------------------- values


def lowest(name):
    """What a window without elements holds, and what a margin must lose against."""
    if name in _FLOAT_FORMATS:
        return dtype(name).type(-np.inf)
    return np.False_ if name == "bool" else np.iinfo(name).min


def highest(name):
    """What a window without elements holds among minima."""
    if name in _FLOAT_FORMATS:
        return dtype(name).type(np.inf)
    return np.True_ if name == "bool" else np.iinfo(name).max


def special_floats(name):
    """Zeros, subnormals, extremes, infinities, NaNs (quiet, signalling, full), of both signs."""
    bits, mantissa = _FLOAT_FORMATS[name]
    infinity = ((1 << (bits - 1 - mantissa)) - 1) << mantissa
    one = ((1 << (bits - 2 - mantissa)) - 1) << mantissa
    magnitudes = [0, 1, (1 << mantissa) - 1, 1 << mantissa, one, one + 1, infinity - 1, infinity]
    magnitudes += [infinity + 1, infinity + (1 << (mantissa - 1)), infinity + (1 << mantissa) - 1]
    patterns = [sign | magnitude for sign in (0, 1 << (bits - 1)) for magnitude in magnitudes]
    return np.array(patterns, f"uint{bits}").view(dtype(name))


def special_integers(name):
    """The ends of the range, and the neighbours that float32 and float64 cannot tell apart."""
    info = np.iinfo(name)
    numbers = [info.min, info.min + 1, -1, 0, 1, 127, 128, 2**24, 2**24 + 1, 2**53, 2**53 + 1]
    numbers += [info.max // 2, info.max // 2 + 1, info.max - 1, info.max]
    return np.array([n for n in numbers if info.min <= n <= info.max], name)


VALUE_KINDS = ["ties", "lowest", "special", "nans", "bits"]
SUM_KINDS = ["quarters", "normal", "finite", "powers", "cancelling", "rare", "constant"]


def values(shape, name, kind, seed):
    """An array of the kind that breaks a maximum.

    ties     three different numbers, so that almost every window has several equal maxima
    lowest   nearly everywhere the lowest value of the type, which padding must not beat
    special  every special value, signalling NaN included
    nans     NaN nearly everywhere (as "special" where there is no NaN)
    bits     any bit pattern: the full range of integers, floats over all exponents
    """
    rng = np.random.default_rng(seed)
    kind_dtype = dtype(name)
    if name == "bool":
        return rng.random(shape) < {"ties": 0.3, "lowest": 0.03}.get(kind, 0.5)
    if kind == "bits":
        size = int(np.prod(shape)) * kind_dtype.itemsize
        return np.frombuffer(rng.bytes(size), kind_dtype).reshape(shape).copy()
    if name in _FLOAT_FORMATS:
        special = special_floats(name)
        with np.errstate(invalid="ignore"):  # signalling NaN
            nan = special[np.isnan(special)]
        numbers = np.array([-np.inf, -1.5, 2], np.float32).astype(kind_dtype)
    else:
        special = nan = special_integers(name)
        numbers = np.array([lowest(name), 3, 100], name)
    if kind == "ties":
        return rng.choice(numbers, shape)
    if kind == "special":
        return rng.choice(special, shape)
    rare = rng.random(shape) < 0.1
    common = numbers[:1] if kind == "lowest" else nan
    return np.where(rare, rng.choice(special, shape), rng.choice(common, shape)).astype(kind_dtype)


def summands(shape, name, kind, seed):
    """An array of the kind that breaks a mean; the kinds of `values` are among them.

    quarters    multiples of 1/4, whose sums are exact and whose means are often ties
    normal      rounded sums in any arithmetic
    finite      any bits but NaN and infinities: exponents over the whole range
    powers      powers of two and one and a half times that, over the whole range
    cancelling  the largest numbers of both signs among small ones
    rare        normal, with few NaN and infinities
    constant    one number
    """
    if kind in VALUE_KINDS:
        return values(shape, name, kind, seed)
    if name not in _FLOAT_FORMATS:
        return _integer_summands(shape, name, kind, seed)
    rng, kind_dtype = np.random.default_rng(seed), dtype(name)
    info = ml_dtypes.finfo(kind_dtype) if name == "bfloat16" else np.finfo(kind_dtype)
    x = rng.standard_normal(shape)
    if kind == "quarters":
        x = rng.integers(-8, 9, shape) / 4
    elif kind == "powers":
        least = int(info.minexp) - int(info.nmant)
        x = np.ldexp(rng.choice([1, -1, 1.5], shape), rng.integers(least, info.maxexp, shape))
    elif kind == "cancelling":
        most = float(info.max)
        x = np.where(rng.random(shape) < 0.3, rng.choice([most, -most], shape), x / 1000)
    elif kind == "rare":
        special = rng.choice([np.nan, np.inf, -np.inf], shape)
        x = np.where(rng.random(shape) < 0.05, special, x)
    if kind in ("finite", "constant"):
        x = values(shape, name, "bits", seed)
        with np.errstate(invalid="ignore"):  # signalling NaN
            x[~np.isfinite(x)] = 1
        if kind == "constant":
            x[...] = x.reshape(-1)[:1] if x.size else 0
    return np.asarray(x).astype(kind_dtype)


def _integer_summands(shape, name, kind, seed):
    rng = np.random.default_rng(seed)
    if name == "bool" or kind in ("normal", "finite"):
        return values(shape, name, "bits", seed)
    if kind in ("quarters", "rare"):
        return rng.integers(0, 101, shape).astype(name)
    info = np.iinfo(name)
    if kind == "constant":
        return np.full(shape, rng.integers(info.min, info.max, dtype=name, endpoint=True), name)
    ends = [info.min, info.max, 0, 1, info.max - 1]
    return rng.choice(np.array(ends, name), shape)


# The images in the tests of files, and how they are pooled.
IMAGES = values((2, 30, 40, 3), "uint8", "bits", 0)
IMAGE_POOL = {"kernel_shape": 3, "strides": 2, "layout": "NHWC"}


def assert_same(got, expected, what=""):
    """Exact equality of dtype, shape and elements; any NaN equals any NaN, and -0.0 equals 0.0."""
    assert got.dtype == expected.dtype, f"{what}: dtype {got.dtype}, expected {expected.dtype}"
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    with np.errstate(invalid="ignore"):  # signalling NaN
        same = np.asarray(got == expected)
        if got.dtype.name in _FLOAT_FORMATS:
            same |= (got != got) & (expected != expected)
    if not same.all():
        wrong = np.argwhere(~same)
        at = tuple(int(i) for i in wrong[0])
        raise AssertionError(
            f"{what}: {len(wrong)} of {got.size} elements differ, first at {at}: "
            f"got {got[at]!r}, expected {expected[at]!r}"
        )


# --------------------------------------------------------------------------------------- layouts

_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def layouts(rank):
    """Every name of every layout with `rank` spatial axes."""
    names = ["NCHW", "NHWC"]
    if rank in _SPATIAL:
        spatial = _SPATIAL[rank]
        names += ["NC" + spatial, "N" + spatial + "C", "C" + spatial, spatial + "C"]
        names += ["N" + spatial, spatial]
    return list(dict.fromkeys(names))


def array_shape(layout, batch, channels, sizes):
    """The shape of an array in `layout`, which may lack batch or channels."""
    first = (channels,) if "C" in layout and not layout.endswith("C") else ()
    last = (channels,) if layout.endswith("C") else ()
    return ((batch,) if layout.startswith("N") else ()) + first + tuple(sizes) + last


def first_spatial_axis(layout):
    """Position of the first spatial axis in the logical, channels-first shape."""
    return ("N" in layout) + ("C" in layout)


# ---------------------------------------------------------------------------------- arrangements

ARRANGEMENTS = [
    "contiguous",
    "fortran",
    "negative",
    "stepped",
    "rows",
    "planes",
    "broadcast",
    "unaligned",
    "read-only",
    "byte-swapped",
]


def arranged(x, how):
    """The same values, arranged otherwise ("broadcast" repeats the first element of axis 0)."""
    if how == "fortran":
        return np.asfortranarray(x)
    if how == "negative":
        return np.flip(np.flip(x).copy())
    if how == "stepped":
        wide = np.repeat(x, 2, axis=-1)
        return wide[..., ::2]
    if how == "rows":  # rows contiguous, planes not
        wide = np.concatenate([x[..., :1], x, x[..., -1:]], axis=-1)
        return wide[..., 1 : 1 + x.shape[-1]] if x.shape[-1] else x
    if how == "planes":  # every other element of the first axis
        return np.repeat(x, 2, axis=0)[::2]
    if how == "broadcast":
        return np.broadcast_to(x[:1], x.shape)
    if how == "unaligned":
        raw = np.zeros(x.nbytes + 1, np.uint8)
        shifted = raw[1:].view(x.dtype).reshape(x.shape)
        shifted[...] = x
        return shifted
    if how == "read-only":
        x = x.copy()
        x.flags.writeable = False
        return x
    if how == "byte-swapped":  # ml_dtypes' bfloat16 cannot be swapped
        return x if x.dtype.name == "bfloat16" else x.astype(x.dtype.newbyteorder())
    return np.ascontiguousarray(x)


# ----------------------------------------------------------------------------- files, threads


def names(folder):
    """The sorted names of a folder's files."""
    return sorted(path.name for path in folder.iterdir())


def shown(value):
    """A value in the id of a test: without addresses, so that ids are the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def check_page(page, examples=5):
    """Run the examples of a page of docs/, of which there are more than `examples`."""
    path = Path(__file__).parents[1] / "docs" / page
    results = doctest.testfile(str(path), module_relative=False)
    assert results.attempted > examples and results.failed == 0


def in_threads(function, arguments):
    """Call function(argument) for every argument at the same time, each in its own thread."""
    threads = [threading.Thread(target=function, args=(argument,)) for argument in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def another_thread_runs_during(call):
    """Return whether another Python thread gets to run during a call that releases the GIL.

    Nothing is timed. Threads take no turns here, so the other one runs only if this one releases
    the GIL by itself, and before `inside` is False again nothing but the call does. If the system
    did not wake the other thread before the call was over, the next attempt tells.
    """
    inside, seen, go = False, False, threading.Lock()

    def other():
        nonlocal seen
        with go:
            seen = inside

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        for _ in range(20):
            go.acquire()
            thread = threading.Thread(target=other)
            thread.start()
            inside = True
            go.release()
            call()
            inside = False
            thread.join()
            if seen:
                return True
        return False
    finally:
        sys.setswitchinterval(interval)


def is_interleaved(plan):
    """Does a plan of means take small planes, channels first, as channels that are last?"""
    return "planes interleaved" in plan.explain()
