"""Hypothesis strategies that draw the cases of ci/compare.py and the fuzzer.

Tests use them as `@given(pools())` with `@examples(40)`, and run the case themselves.
"""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st

import cases

from .arrays import draw_arrangement
from .averaging import KINDS, draw_average_call
from .choices import Choices
from .pooling import GEOMETRIES, draw_call
from .unpooling import draw_unpool_call


def examples(count):
    """Return settings for `count` examples; profiles other than the default scale the number."""
    return settings(max_examples=max(1, count * settings.default.max_examples // 100))


def choices_of(draw):
    return Choices(lambda low, high: draw(st.integers(low, high)))


def placed(case, choices):
    """Return the case with its input in a larger array, or more often unchanged."""
    if not choices.once_in(4):
        return case
    return replace(case, memory=tuple(draw_arrangement(choices, len(case.shape)) for _ in "xyz"))


@st.composite
def pools(draw, dtypes=cases.DTYPE_NAMES, kinds=cases.VALUE_KINDS):
    """Draw any legal combination of attributes on a small array of 1 to 4 spatial axes."""
    choices = choices_of(draw)
    geometries = [name for name in GEOMETRIES if name not in ("hostile", "long")]
    return placed(draw_call(choices, geometries, dtypes, kinds), choices)


@st.composite
def hostile_pools(draw):
    """Draw legal attributes of any magnitude, up to far beyond 64 bits, on a small array."""
    choices = choices_of(draw)
    return placed(draw_call(choices, ["hostile"]), choices)


@st.composite
def averages(draw, dtypes=cases.DTYPE_NAMES, kinds=KINDS, hostile=False):
    """Draw a legal average of any sort, with attributes of any magnitude if `hostile`."""
    choices = choices_of(draw)
    return placed(draw_average_call(choices, dtypes, kinds, hostile), choices)


@st.composite
def unpools(draw):
    """Draw a legal unpooling: both index spaces, larger results, equal indices, empty batches."""
    choices = choices_of(draw)
    return placed(draw_unpool_call(choices), choices)
