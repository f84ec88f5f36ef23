"""Hypothesis' strategies of the cases that ci/compare.py and the fuzzer draw too."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st

import cases

from .arrays import draw_arrangement
from .choices import Choices
from .pooling import GEOMETRIES, draw_call
from .unpooling import draw_unpool_call


def examples(count):
    """So many examples under the profile of CI, more or fewer in proportion under others."""
    return settings(max_examples=max(1, count * settings.default.max_examples // 100))


def choices_of(draw):
    return Choices(lambda low, high: draw(st.integers(low, high)))


def placed(case, choices):
    """The case with its input in a larger array, or more often contiguous."""
    if not choices.once_in(4):
        return case
    return replace(case, memory=tuple(draw_arrangement(choices, len(case.shape)) for _ in "xyz"))


@st.composite
def pools(draw, dtypes=cases.DTYPE_NAMES, kinds=cases.VALUE_KINDS):
    """Every legal combination of attributes on small arrays of 1 to 4 spatial axes."""
    choices = choices_of(draw)
    geometries = [name for name in GEOMETRIES if name not in ("hostile", "long")]
    return placed(draw_call(choices, geometries, dtypes, kinds), choices)


@st.composite
def hostile_pools(draw):
    """Legal attributes of any magnitude, up to far beyond 64 bits, on small arrays."""
    choices = choices_of(draw)
    return placed(draw_call(choices, ["hostile"]), choices)


@st.composite
def unpools(draw):
    """Legal unpooling: both index spaces, larger results, repeated indices, empty batches."""
    choices = choices_of(draw)
    return placed(draw_unpool_call(choices), choices)
