"""Minima: maxima of the opposite order, of every type, by every strategy, on every build.

test_against_reference.py and test_random_cases.py compare them with the slow twin, and
test_guards.py runs them at guard pages.
"""

import itertools
import pickle

import numpy as np
import pytest

import cases
import fastpool
from fastpool import _reference
from fastpool._running import builds as running
from fastpool._running import running_maxima, strategies
from fastpool._running.instruction_sets import Build
from fastpool._running.strategies import OF_MAXIMA
from fastpool._running.work import MINIMA, make_work, problem_of

# Layout, channels, sizes, window, attributes.
GEOMETRIES = {
    "filter": ("HW", 1, (40, 90), 3, {"pads": 1}),
    "wide filter": ("HW", 1, (40, 700), 3, {"pads": 1}),
    "long windows": ("HW", 1, (80, 300), 33, {"pads": 16}),
    "blocks": ("CHW", 3, (30, 77), 2, {"strides": 2}),
    "blocks of four": ("CHW", 2, (9, 160), 4, {"strides": 4}),
    "stride two": ("CHW", 5, (19, 33), 3, {"strides": 2, "pads": 1}),
    "whole planes": ("CHW", 7, (9, 11), (9, 11), {}),
    "large planes": ("CHW", 3, (20, 21), (20, 21), {}),
    "few elements": ("CHW", 70, (2, 2), 2, {}),
    "small planes": ("CHW", 70, (5, 5), 3, {"pads": 1}),
    "tiny planes": ("CHW", 5, (3, 4), 2, {"pads": (0, 0, 1, 1)}),
    "direct": ("HWC", 96, (7, 9), 2, {"strides": 2}),
    "channels last": ("HWC", 130, (9, 11), (5, 3), {"pads": 1}),
    "photograph": ("HWC", 3, (20, 31), 3, {"pads": 1}),
    "wide pixels": ("HWC", 300, (5, 7), (5, 7), {}),
    "whole pixels": ("HWC", 70, (12, 14), (12, 14), {}),
    "leading axes": ("CDHW", 2, (4, 6, 40), (2, 3, 2), {"strides": 2, "pads": 1}),
    "running": ("CHW", 2, (40, 50), (2, 20), {"pads": (0, 40, 0, 30), "dilations": (1, 3)}),
    "dilated slabs": ("CDHW", 2, (9, 8, 30), (2, 3, 2), {"dilations": (3, 1, 1)}),
    "empty windows": ("CHW", 2, (3, 20), 2, {"pads": (0, 4, 0, 5), "dilations": (1, 2)}),
}


def inverted(x):
    """Return an array whose maxima are the minima of `x`, inverted."""
    return -x if x.dtype.name in cases.FLOAT_NAMES else ~x


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_minima_are_maxima_of_the_inverted_array(geometry, name, isa, monkeypatch):
    if geometry == "running":
        monkeypatch.setattr(running_maxima, "pays", lambda work: True)
    layout, channels, sizes, kernel, attributes = GEOMETRIES[geometry]
    shape = cases.array_shape(layout, 1, channels, sizes)
    for kind, nan in (("ties", "propagate"), ("special", "propagate"), ("special", "ignore")):
        x = cases.values(shape, name, kind, 0)
        given = {**attributes, "layout": layout, "nan": nan}
        y = fastpool.min_pool(x, kernel, num_threads=1, **given)
        both = {"return_indices": True, "num_threads": 2, **given}
        expected, places = fastpool.max_pool(inverted(x), kernel, **both)
        cases.assert_same(y, inverted(expected), f"{kind}, {nan}")
        with_indices, indices = fastpool.min_pool(x, kernel, **both)
        cases.assert_same(with_indices, y, f"{kind}, {nan}, with indices")
        cases.assert_same(indices, places, f"{kind}, {nan}, indices")


def test_the_geometries_reach_every_strategy(monkeypatch):
    reached = set()
    for geometry, (layout, channels, sizes, kernel, attributes) in GEOMETRIES.items():
        if geometry == "running":
            monkeypatch.setattr(running_maxima, "pays", lambda work: True)
        shape = cases.array_shape(layout, 1, channels, sizes)
        for name, indices in itertools.product(cases.DTYPE_NAMES, (False, True)):
            plan = fastpool.plan_min_pool(
                shape, name, kernel, layout=layout, return_indices=indices, **attributes
            )
            for facts in (Build(64, masks=True), Build(32, masks=False)):
                reached.add(strategies.decide(make_work(problem_of(plan)), facts).strategy)
        monkeypatch.undo()
    every = {strategy.__name__ for row in strategies.STRATEGIES.values() for strategy in row}
    assert reached == every - {"irregular"}, every - reached


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_global_and_adaptive(name, isa):
    for layout, shape in (("NCHW", (2, 3, 9, 11)), ("NHWC", (2, 9, 11, 40)), ("W", (25,))):
        x = cases.values(shape, name, "special", 1)
        for indices in (False, True):
            given = {"layout": layout, "return_indices": indices}
            calls = [("global_min_pool", (), given)]
            calls += [("adaptive_min_pool", (size,), given) for size in (4, 30)]
            for function, arguments, more in calls:
                expected = getattr(_reference, function)(x, *arguments, **more)
                found = getattr(fastpool, function)(x, *arguments, **more)
                plan = getattr(fastpool, f"plan_{function}")(x.shape, x.dtype, *arguments, **more)
                for results in (found, plan(x)):
                    pairs = zip(results, expected, strict=True) if indices else [(found, expected)]
                    for one, other in pairs:
                        cases.assert_same(one, other, f"{function} {layout}")


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_windows_without_elements(name):
    x = np.zeros((2, 2), cases.dtype(name))
    y, indices = fastpool.min_pool(x, 1, pads=1, layout="HW", return_indices=True)
    assert y[0, 0] == cases.highest(name)
    assert indices[0].tolist() == [-1] * 4
    plan = fastpool.plan_min_pool(x.shape, x.dtype, 1, pads=1, layout="HW")
    assert f"which give {cases.highest(name)} " in " ".join(plan.explain().split())


def test_any_byte_of_a_bool_but_0_is_true():
    x = np.array([2, 255, 0, 4, 1, 8], np.uint8).view(bool)
    y = fastpool.min_pool(x, 2, strides=2, layout="W")
    assert y.view(np.uint8).tolist() == [1, 0, 1]
    y, _ = fastpool.min_pool(x, 2, strides=2, layout="W", return_indices=True)
    assert y.view(np.uint8).tolist() == [1, 0, 1]


def test_a_photograph_of_any_strides(isa):
    x = cases.values((3, 30, 41), "uint8", "bits", 0).transpose(1, 2, 0)[::-1, ::2]
    expected = _reference.min_pool(x, 5, pads=2, layout="HWC")
    cases.assert_same(fastpool.min_pool(x, 5, pads=2, layout="HWC"), expected)


def test_plans():
    arguments = (8, 9), "float32", 3
    plan = fastpool.plan_min_pool(*arguments, layout="HW", return_indices=True)
    other = fastpool.plan_max_pool(*arguments, layout="HW", return_indices=True)
    assert plan == pickle.loads(pickle.dumps(plan)) != other
    assert not isinstance(plan, fastpool.MaxPoolPlan)
    assert repr(plan).startswith("<MinPoolPlan float32 HW (8, 9) -> (6, 7)")
    assert "of the first minimum" in plan.explain()
    x = cases.values((8, 9), "float32", "ties", 0)
    y, indices = plan(x)
    part, read, write = plan.tile(np.s_[2:5, 1:6])
    assert type(part) is fastpool.MinPoolPlan
    for result, whole in zip(part(x[read]), (y, indices), strict=True):
        cases.assert_same(result, whole[write])


def test_zeros_are_positive_with_indices():
    """They are merged, so that the first wins. An image without signs gets none."""
    x = np.float32([0, 1, 0, 2, -0.0, 0])
    for dtype in ("float16", "float32", "float64"):
        y, indices = fastpool.min_pool(x.astype(dtype), 2, layout="W", return_indices=True)
        assert indices.tolist() == [0, 2, 2, 4, 4]
        assert not np.signbit(y).any()


def test_strategies_that_take_minima_as_keys_only(isa):
    """No loop of these is compiled for minima that are taken as they are."""
    kernels, declined = running.builds()[isa], set()
    for layout, channels, sizes, kernel, attributes in GEOMETRIES.values():
        shape = cases.array_shape(layout, 1, channels, sizes)
        for name in MINIMA:
            given = shape, name, kernel
            of_maxima = fastpool.plan_max_pool(*given, layout=layout, **attributes)
            work = of_maxima._prepare(None).work
            plan = fastpool.plan_min_pool(*given, layout=layout, **attributes)
            if work.strategy in OF_MAXIMA:
                declined.add(work.strategy)
                reasons = dict(plan._prepare(None).work.declined)
                assert reasons[work.strategy].endswith("compiled for maxima only")
                with pytest.raises(ValueError, match="takes minima as keys only"):
                    kernels.Pooling(work._replace(minimum=True), np.dtype(name))
    masked = {"flat_planes", "stride_two"}
    assert declined >= {"whole_pixels"} | (masked if isa == "avx512" else {"apart"})
