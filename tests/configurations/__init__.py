"""One generator of random cases for hypothesis, ci/compare.py and the fuzzer, and its comparison.

`draw(choices)` returns a random case. `compare(case, counts)` runs it and raises AssertionError at
the first difference from the slow twin, `fastpool/_reference`. A case is a frozen dataclass of
plain values, so its text alone describes it. Three programs draw cases. They differ only in where
the random numbers come from, which a `choices.Choices` object hides:

| program | numbers come from | cases |
| --- | --- | --- |
| ci/compare.py | `random.Random` with a seed and the case's number | `draw`, `compare` |
| ci/fuzz.py | bytes that a coverage-guided fuzzer chooses | `draw`, `spoiled`, `compare` |
| tests | hypothesis, which shrinks what fails | the strategies of `strategies` |

kernels/test_random_cases.py runs a few cases as the first two programs do.

The sorts of cases, which `SORTS` names, are six modules:

- `pooling`, `unpooling`, `averaging`: one call. It runs in many configurations: every build, one
  thread and several, values alone and with indices, contiguous arrays and parts of larger ones.
- `plans`: a plan whose fields `changes` has changed. The plan is refused, or computes what its
  fields say.
- `sequences`: calls that share arguments, plans and outputs, some of them on several threads.
- `science`: block_reduce, pyramid, poolings with a border, and the filters of fastpool.ndimage.

The other modules are shared: `attributes` draws arguments, `arrays` draws arrangements in memory
and limits the time, and `oracle` computes the expected results.
"""

from collections import Counter
from dataclasses import replace

import numpy as np

import cases

from .averaging import Averaging, compare_averaging, draw_averaging
from .choices import Choices
from .plans import Planned, compare_planned, draw_planned
from .pooling import Pooling, compare_pooling, draw_pooling
from .science import (
    Blocks,
    Borders,
    Filter,
    compare_blocks,
    compare_borders,
    compare_filter,
    compare_spoiled,
    draw_blocks,
    draw_borders,
    draw_filter,
    draw_pyramid,
)
from .sequences import compare_sequence, draw_sequence
from .unpooling import Unpooling, compare_unpooling, draw_unpooling

__all__ = ["SORTS", "Choices", "compare", "configurations", "draw", "report", "spoiled"]

# Single calls and their comparisons.
SINGLE = {
    Pooling: compare_pooling,
    Unpooling: compare_unpooling,
    Averaging: compare_averaging,
}
SCIENCE = {Blocks: compare_blocks, Borders: compare_borders, Filter: compare_filter}

# name -> (function that draws a case, how often it is chosen)
SORTS = {
    "poolings": (draw_pooling, 5),
    "unpoolings": (draw_unpooling, 1),
    "averages": (draw_averaging, 4),
    "plans": (draw_planned, 1),
    "sequences": (draw_sequence, 1),
    "blocks": (draw_blocks, 1),
    "pyramids": (draw_pyramid, 1),
    "borders": (draw_borders, 1),
    "filters": (draw_filter, 1),
}

# Values that `spoiled` writes over an attribute. Most have a wrong type or an illegal value; some
# are legal for some attributes.
BAD = [0, -1, 3, 2.0, True, None, "2", b"NHWC", (), (1,), (2, 2), (1,) * 70, [[1, 2]], {}, "NHWC"]
BAD += [2**40, 2**62, 2**63, 2**80, -(2**63), float("nan"), np.int8(1), np.float32(1), np.arange(2)]


def spoiled(case, choices):
    """Return a call with one attribute replaced by one of BAD; any other case unchanged."""
    if type(case) in SCIENCE:
        return replace(case, spoiled={choices.pick([*case.given()]): choices.pick(BAD)})
    if type(case) not in SINGLE:
        return case
    name = choices.pick(["kernel_shape", *case.attributes])
    bad = choices.pick(BAD)
    if name == "kernel_shape":
        return replace(case, kernel_shape=bad, legal=False)
    return replace(case, attributes={**case.attributes, name: bad}, legal=False)


def draw(choices, sorts=SORTS):
    """Return a case of one of the sorts, by default most often one call of max_pool."""
    draws = [draw for sort in sorts for draw, times in [SORTS[sort]] for _ in range(times)]
    return choices.pick(draws)(choices)


def compare(case, counts, builds=cases.BUILDS, threads=None):
    """Run the case on each build and raise AssertionError at the first difference.

    `counts` is a Counter; its keys (heading, name) count what was run. `threads` are the numbers of
    threads for single calls: by default 1 and the case's own number.
    """
    with np.errstate(all="ignore"):
        if type(case) in SINGLE:
            threads = (1, case.threads) if threads is None else threads
            SINGLE[type(case)](case, counts, builds, threads)
        elif type(case) in SCIENCE and case.spoiled:
            compare_spoiled(case, counts)
        elif type(case) in SCIENCE:
            SCIENCE[type(case)](case, counts, builds, (1, 2) if threads is None else threads)
        elif isinstance(case, Planned):
            compare_planned(case, counts, builds)
        else:
            compare_sequence(case, counts, builds)


def configurations(counts):
    """Return how many configurations were compared. Each is one build, call and arrangement."""
    return counts["arrays", "plain"] + counts["arrays", "arranged"]


def report(counts, every_path=False):
    """Yield lines of text: how many configurations of each sort were compared."""
    for heading in (
        "case",
        "dtype",
        "layout",
        "build",
        "strategy",
        "threads",
        "outputs",
        "arrays",
        "refused",
    ):
        found = Counter({name: n for (kind, name), n in counts.items() if kind == heading})
        yield f"{heading}: " + ", ".join(f"{name} {n}" for name, n in found.most_common())
    paths = sorted((name, n) for (kind, name), n in counts.items() if kind == "path")
    yield f"{len(paths)} ways through the kernels"
    if every_path:
        yield from (f"{n:10} {name}" for name, n in paths)
