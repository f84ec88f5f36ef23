"""`fastpool check`: compare the installed package with the slow twin."""

import time
from collections import Counter
from importlib import util
from itertools import product

import click
import numpy as np

import fastpool

from .. import _reference
from .._planning.dtypes import DTYPES, is_float, is_integer
from .._running import threads as rules
from .._running.builds import builds, using
from ..bench.answers import difference
from .program import FAILED, Command
from .screen import progress, show, table

# name -> (shape, attributes): each path through the kernels, with borders on all sides of a vector.
POOLINGS = {
    "halves": (
        (2, 3, 17, 34),
        {"kernel_shape": 2, "strides": 2, "ceil_mode": True, "layout": "NCHW"},
    ),
    "overlapping": ((3, 19, 35), {"kernel_shape": 3, "strides": 2, "pads": 1, "layout": "CHW"}),
    "every place": ((9, 70), {"kernel_shape": (3, 5), "auto_pad": "SAME_UPPER", "layout": "HW"}),
    "dilated": (
        (1, 2, 13, 40),
        {"kernel_shape": 3, "dilations": (2, 3), "pads": (2, 3, 2, 3), "storage_order": 1},
    ),
    "large window": ((5, 150), {"kernel_shape": (2, 65), "pads": (0, 9), "layout": "HW"}),
    "channels last": (
        (2, 9, 8, 37),
        {"kernel_shape": 3, "strides": (1, 2), "layout": "NHWC", "index_layout": "NHWC"},
    ),
    "few channels last": ((12, 33, 3), {"kernel_shape": 5, "strides": 3, "layout": "HWC"}),
    "one axis": ((2, 130), {"kernel_shape": 7, "nan": "ignore", "layout": "CW", "index_axis": 1}),
    "three axes": (
        (1, 2, 5, 6, 17),
        {"kernel_shape": 2, "strides": (2, 1, 2), "pads": 1, "index_dtype": "int32"},
    ),
    "empty windows": (
        (6, 7),
        {"kernel_shape": 2, "pads": 4, "ceil_mode": True, "ceil_rule": "keep", "layout": "HW"},
    ),
}
UNPOOLED = ("halves", "few channels last")
# Attributes that averages do not have.
OF_MAXIMA = ("storage_order", "index_axis", "index_dtype", "index_layout")
MOST_SHOWN = 10


@click.command(cls=Command, examples=["fastpool check", "fastpool check --num-threads 8"])
@click.option(
    "--num-threads",
    "threads",
    metavar="N",
    type=click.IntRange(min=1, max=rules.MOST_THREADS),
    help="Compare on one thread and on this many. [the processors, at least 2]",
)
def command(threads):
    """Test the installed package, in some seconds.

    Pools and unpools arrays of every element type in every build that this processor runs, on one
    thread and on several, and compares all maxima, minima, indices and averages with a slow
    implementation in plain Python. Exits with 1 if anything differs.
    """
    start = time.perf_counter()
    rules.HANDED_BYTES = 0  # (else arrays that are so small take one thread)
    threads = threads or max(2, rules.available_cpus())
    dtypes = [name for name in DTYPES if name != "bfloat16" or util.find_spec("ml_dtypes")]
    names = list(builds())
    counts, problems = Counter(), []
    with progress("checking") as update:
        for done, dtype in enumerate(dtypes):
            update(done, len(dtypes))
            for build, what, problem in comparisons(dtype, names, threads):
                counts[dtype, build, not problem] += 1
                if problem:
                    problems.append(f"{dtype}, {build}, {what}: {problem}")
    rows = table(dtype="left", **dict.fromkeys(names, "left"))
    for dtype in dtypes:
        wrong = [counts[dtype, build, False] for build in names]
        rows.add_row(dtype, *(f"{count} differ" if count else "exact" for count in wrong))
    show(rows)
    seconds = time.perf_counter() - start
    verdict = f"{len(problems)} differ" if problems else "all exact"
    click.echo(f"{counts.total()} results on 1 and {threads} threads in {seconds:.1f} s: {verdict}")
    for problem in problems[:MOST_SHOWN]:
        click.echo(f"  {problem}")
    return FAILED if problems else 0


def comparisons(dtype, builds, threads):
    """Yield (build, what was compared, what differs or "") for one element type.

    Only one of the poolings, a different one for each type, also runs on several threads: on a busy
    machine each such call waits for a processor.
    """
    turn = DTYPES.index(dtype) % len(POOLINGS)
    for number, (name, (shape, attributes)) in enumerate(POOLINGS.items()):
        x = values(shape, dtype)
        want = _reference.max_pool(x, **attributes, return_indices=True)
        least = _reference.min_pool(x, **attributes, return_indices=True)
        unpooling = None
        if name in UNPOOLED:
            chosen = {key: attributes[key] for key in ("kernel_shape", "strides", "layout")}
            unpooling = {**chosen, "output_shape": shape}
            back = (_reference.max_unpool(*want, **unpooling),)
        numbers = summands(shape, dtype)
        averaging = {key: value for key, value in attributes.items() if key not in OF_MAXIMA}
        ways = ("pairwise", "exact") if is_float(dtype) else ("pairwise",)
        means = {way: _reference.avg_pool(numbers, **averaging, numerics=way) for way in ways}
        for build, count in product(builds, (1, threads) if number == turn else (1,)):
            what = f"{name}, threads: {count}"
            with using(build):
                for pool, of, expected in (
                    (fastpool.max_pool, what, want),
                    (fastpool.min_pool, f"{what}, minima", least),
                ):
                    alone = pool(x, **attributes, num_threads=count)
                    yield build, of, difference((alone,), expected[:1])
                    both = pool(x, **attributes, return_indices=True, num_threads=count)
                    yield build, f"{of}, with indices", difference(both, expected)
                if unpooling:
                    y = fastpool.max_unpool(*want, **unpooling, num_threads=count)
                    yield build, f"{what}, unpooled", difference((y,), back)
                for way, mean in means.items():
                    y = fastpool.avg_pool(numbers, **averaging, numerics=way, num_threads=count)
                    yield build, f"{what}, averaged, {way}", difference((y,), (mean,))


def values(shape, dtype):
    """Return an array of few distinct numbers, the ends of the type among them, and rare NaN."""
    rng = np.random.default_rng(0)
    if dtype == "bool":
        return rng.random(shape) < 0.3
    if is_integer(dtype):
        ends = np.iinfo(dtype)
        return rng.choice(np.array([ends.min, ends.min + 1, 0, 1, ends.max], dtype), shape)
    numbers = rng.choice(np.float32([-np.inf, -2.5, -0.0, 0, 1.5, np.inf]), shape)
    numbers[rng.random(shape) < 0.02] = np.nan
    return numbers.astype(numpy_dtype(dtype))


def summands(shape, dtype):
    """Return numbers to average. Of floats the second half has sums that are hardly ever exact."""
    if dtype == "bool" or is_integer(dtype):
        return values(shape, dtype)
    rng = np.random.default_rng(1)
    numbers = rng.integers(-99, 99, shape) / 4
    wide = numbers.reshape(-1)[numbers.size // 2 :]
    most = 3 if dtype == "float16" else 30
    wide *= 10.0 ** rng.integers(-most, most, wide.shape) / 3
    for special in (np.nan, np.inf):
        numbers[rng.random(shape) < 0.005] = special
    return numbers.astype(numpy_dtype(dtype))


def numpy_dtype(name):
    if name == "bfloat16":
        import ml_dtypes  # noqa: F401  (gives NumPy the type)
    return np.dtype(name)
