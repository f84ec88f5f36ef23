"""Averages of planes that are interleaved: tiles, batches, gaps, groups that lack planes."""

import itertools

import numpy as np
import pytest

import cases
import fastpool
from average_cases import assert_as_the_twin, numerics_of
from fastpool import _reference
from fastpool._running import averages
from fastpool._running import builds as running

EXACT = {"numerics": "exact"}

# Planes that are interleaved: channels (one group, parts of groups), plane, window, attributes.
INTERLEAVED = [
    ((16, 5, 5), (3, 3), {"pads": 1}),
    ((9, 7, 6), (2, 3), {"strides": 2, "pads": (1, 0, 0, 1)}),
    ((40, 6, 3), (2, 2), {"strides": 2, "ceil_mode": True}),
    ((24, 9, 8), (5, 7), {"strides": 3, "count_include_pad": True}),
    ((17, 5, 9), (5, 9), {}),
    ((33, 9, 4), (3, 2), {"dilations": 2, "pads": 2}),
    ((130, 4, 3), (3, 2), {"pads": 1}),
    ((95, 3, 3), (3, 3), {"pads": (1, 0, 1, 0)}),
    ((67, 2, 3, 2), (2, 2, 1), {}),
    ((16, 3, 5, 4), (2, 3, 2), {"strides": (2, 1, 1), "pads": 1}),
    ((20, 31), (4,), {"strides": 3}),
]


def test_scratch_of_interleaved_planes_is_bounded():
    """Of tall results of small planes, by padding or by windows that repeat."""
    padded = fastpool.plan_avg_pool(
        (1, 8, 1, 4), "float32", (2, 1), pads=(2**18, 0, 2**18, 0), **EXACT
    )
    assert cases.is_interleaved(padded)
    parts = fastpool.plan_adaptive_avg_pool((1, 8, 4, 4), "float32", (2**18, 4), **EXACT)
    for plan in (padded, parts):
        prepared = plan._prepared_for(np.dtype("float32"))
        assert (prepared.once or prepared).pooling.scratch_bytes < 4 << 20
    x = cases.summands((1, 8, 1, 4), "float32", "normal", 4)
    expected = np.zeros(padded.output_shape, np.float32)
    expected[:, :, 2**18 - 1 : 2**18 + 1] = x
    cases.assert_same(padded(x), expected)


@pytest.mark.parametrize(("shape", "kernel", "attributes"), INTERLEAVED)
@pytest.mark.parametrize("dtype", cases.DTYPE_NAMES)
def test_interleaved_planes(dtype, shape, kernel, attributes, monkeypatch):
    """Contiguous arrays, rows and planes with gaps, one tile or several, in all numerics."""
    attributes = attributes | {"layout": "C" + "DHW"[4 - len(shape) :]}
    wider = *(2 * n for n in shape[:-1]), shape[-1]
    every = tuple(slice(None, None, 2) for _ in shape[:-1])
    for numerics in numerics_of(cases.dtype(dtype), "exact", "sequential", "pairwise"):
        attributes["numerics"] = numerics
        for nbytes in (averages.INTERLEAVED_BYTES, 4096):
            monkeypatch.setattr(averages, "INTERLEAVED_BYTES", nbytes)
            for kind in ("quarters", "rare"):
                x = cases.summands(shape, dtype, kind, 1)
                spread = np.zeros(wider, x.dtype)
                spread[every] = x
                assert_as_the_twin(x, kernel, attributes)
                assert_as_the_twin(spread[every], kernel, attributes)


def test_interleaved_batches():
    """Batches whose planes are not evenly spaced, and results that are not contiguous."""
    x = cases.summands((3, 2, 20, 6, 5), "float32", "finite", 2)[:, 1]
    plan = fastpool.plan_avg_pool(x.shape, x.dtype, 3, strides=2, **EXACT)
    assert cases.is_interleaved(plan)
    expected = _reference.avg_pool(x, 3, strides=2, **EXACT)
    assert_as_the_twin(x, (3, 3), {"strides": 2})
    for order in itertools.permutations(range(4)):
        out = np.zeros([2 * expected.shape[i] for i in order], x.dtype)
        into = out[::2, ::2, ::2, ::2].transpose(np.argsort(order))
        plan(x, out=into)
        cases.assert_same(into, expected, str(order))
        assert np.count_nonzero(out) <= np.count_nonzero(expected), "nothing else is written"


@pytest.mark.parametrize(("batch", "channels"), [(4, 8), (2, 9), (3, 17), (2, 33), (2, 16)])
def test_interleaved_results_with_gaps(batch, channels):
    """Planes of a group that belong to two batches, between which the result has a gap."""
    x = cases.summands((batch, channels, 4, 4), "float32", "finite", 2)
    out = np.zeros((batch, channels + 1, 2, 2), x.dtype)
    expected = _reference.avg_pool(x, 2, strides=2, **EXACT)
    for build in cases.BUILDS:
        with running.using(build):
            plan = fastpool.plan_avg_pool(x.shape, x.dtype, 2, strides=2, **EXACT)
            assert cases.is_interleaved(plan)
            plan(x, out=out[:, :channels])
        cases.assert_same(out[:, :channels], expected, build)
        assert not out[:, channels].any(), "nothing else is written"


@pytest.mark.parametrize(("dtype", "rows"), [("uint8", 92), ("int16", 64), ("float32", 46)])
def test_interleaved_planes_of_the_last_task(dtype, rows):
    """They are pooled with planes of the task before, if these are evenly spaced."""
    x = cases.summands((3, 13, rows, rows), dtype, "finite", 2)
    window = {"kernel_shape": 5, "strides": 3, "pads": 2}
    plan = fastpool.plan_avg_pool((1, 37, rows, rows), x.dtype, **window)
    assert cases.is_interleaved(plan)
    assert plan._prepared_for(x.dtype).work.tile[3] == 16
    given = {"strides": 3, "pads": 2}
    assert_as_the_twin(x.reshape(1, 39, rows, rows)[:, :37], (5, 5), given)
    assert_as_the_twin(x[:, :12], (5, 5), given)


@pytest.mark.parametrize("numerics", ["exact", "sequential", "pairwise"])
@pytest.mark.parametrize("output_size", [(0, 3), (3, 0), (0, 0)])
def test_many_planes_without_outputs(output_size, numerics):
    x = np.ones((2, 16, 5, 5), np.float32)
    y = fastpool.adaptive_avg_pool(x, output_size, numerics=numerics)
    assert y.shape == (2, 16, *output_size)


def test_groups_of_planes():
    """Small planes: up to 256, of 20 KiB in all, results too; no more than fill groups."""

    def group(*args, make=fastpool.plan_avg_pool, **more):
        prepared = make(*args, **more)._prepared_for(np.dtype(args[1]))
        return (prepared.once or prepared).work.group

    assert group((1, 2112, 4, 4), "float32", 2) == 192
    assert group((1, 2112, 7, 7), "float32", 3) == 96
    assert group((1, 2112, 7, 7), "float64", 3, numerics="exact") == 48
    assert group((1, 2112, 4, 4), "float64", 3, pads=2, numerics="exact") == 64
    assert group((1, 4096, 2, 2), "int8", (2, 1)) == 256
    assert group((4, 12, 4, 4), "uint8", 3) == 48
    assert group((3, 11, 7, 7), "int8", 3) == 48
    assert group((1, 17, 7, 7), "int8", 3) == 32
    assert group((1, 2112, 5), "int8", 3, make=fastpool.plan_adaptive_avg_pool, layout="NCW") == 16
    assert group((1, 8, 1, 4), "float32", (2, 1), pads=(2**18, 0, 2**18, 0)) == 16
    assert group((33, 1, 1), "float16", (90, 2), pads=(89, 1) * 2, layout="CHW") == 16
    assert group((1, 7, 4, 4), "float32", 2) == 0
    # Of groups of 16, rows of 8 outputs are the longest.
    assert group((1, 32, 9, 9), "float32", 2) == 32
    assert group((1, 16, 9, 10), "float32", 2) == 0
