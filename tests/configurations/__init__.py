"""Random cases of everything that a call can meet, and their comparison with the slow twin.

ci/compare.py draws them at random, ci/fuzz.py from the bytes of a coverage-guided fuzzer, and the
tests by hypothesis (`strategies`), all of them by `choices.Choices`. The modules:

- `pooling` and `unpooling`: one call each. A case is many configurations: every build, one thread
  and several, values alone and with indices, plain arrays and parts of larger ones.
- `plans`: plans of which `changes` has changed some fields. Each is refused, or computes what its
  fields say.
- `sequences`: calls that share arguments, plans and outputs, some of them on several threads.
- `attributes`: what all of these draw alike. `arrays`: arrangements, and limits on memory and time.
- `oracle`: what to expect.
"""

from collections import Counter
from dataclasses import replace

import numpy as np

import cases

from .choices import Choices
from .plans import Planned, compare_planned, draw_planned
from .pooling import Pooling, compare_pooling, draw_pooling
from .sequences import compare_sequence, draw_sequence
from .unpooling import Unpooling, compare_unpooling, draw_unpooling

__all__ = ["Choices", "compare", "configurations", "draw", "report", "spoiled"]

# In the place of an attribute: of a wrong kind, of no legal value, or legal after all.
BAD = [0, -1, 3, 2.0, True, None, "2", b"NHWC", (), (1,), (2, 2), (1,) * 70, [[1, 2]], {}, "NHWC"]
BAD += [2**40, 2**62, 2**63, 2**80, -(2**63), float("nan"), np.int8(1), np.float32(1), np.arange(2)]


def spoiled(case, choices):
    """The case with something in the place of one of its attributes, if it is a single call."""
    if not isinstance(case, (Pooling, Unpooling)):
        return case
    name = choices.pick(["kernel_shape", *case.attributes])
    bad = choices.pick(BAD)
    if name == "kernel_shape":
        return replace(case, kernel_shape=bad, legal=False)
    return replace(case, attributes={**case.attributes, name: bad}, legal=False)


def draw(choices):
    draws = [draw_pooling] * 5 + [draw_unpooling, draw_planned, draw_sequence]
    return choices.pick(draws)(choices)


def compare(case, counts, builds=cases.BUILDS, threads=None):
    """Raise AssertionError at the first difference."""
    with np.errstate(all="ignore"):
        if isinstance(case, (Pooling, Unpooling)):
            threads = (1, case.threads) if threads is None else threads
            one = compare_pooling if isinstance(case, Pooling) else compare_unpooling
            one(case, counts, builds, threads)
        elif isinstance(case, Planned):
            compare_planned(case, counts, builds)
        else:
            compare_sequence(case, counts, builds)


def configurations(counts):
    return counts["arrays", "plain"] + counts["arrays", "arranged"]


def report(counts, every_path=False):
    """Lines of text: how many configurations of each sort."""
    for heading in (
        "case",
        "dtype",
        "layout",
        "build",
        "form",
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
