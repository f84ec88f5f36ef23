"""Which strategy a call takes, why better ones declined, and the switch that turns one off.

The choice is pure Python, so that the one for every instruction set is tested on any machine.
"""

import random

import numpy as np
import pytest

import cases
import fastpool
from fastpool._running import builds as running
from fastpool._running import prepare, strategies
from fastpool._running.passes import trimmed
from fastpool._running.work import make_work

BUILDS = {
    "avx512": strategies.Build(64, masks=True),
    "avx2": strategies.Build(32, masks=False),
    "baseline": strategies.Build(16, masks=False),
}

# A call, and the strategy that it takes on each build.
CALLS = {
    "running_maxima": (
        *((1, 1, 1, 20000), "float32", (1, 80001), {"pads": (0, 80000), "return_indices": True}),
        {},
    ),
    "whole_plane": ((1, 64, 7, 7), "float32", 7, {}, {}),
    "padded_planes": ((1, 64, 20, 20), "uint8", 13, {"pads": 6}, {}),
    "flat_planes": (
        *((1, 1024, 7, 7), "float32", 2, {}),
        dict.fromkeys(("avx2", "baseline"), "bands"),
    ),
    "apart": ((1, 64, 112, 112), "float32", 2, {"strides": 2}, {}),
    "slide_down": (
        *((1, 64, 56, 56), "float32", 3, {"pads": 1}),
        dict.fromkeys(("avx2", "baseline"), "bands"),
    ),
    "stride_two": (
        *((1, 64, 112, 112), "float32", 3, {"strides": 2, "pads": 1}),
        dict.fromkeys(("avx2", "baseline"), "bands"),
    ),
    "pixels_as_row": ((1, 56, 56, 3), "uint8", 3, {"layout": "NHWC"}, {}),
    "direct_pixels": ((1, 56, 56, 64), "float32", 3, {"layout": "NHWC", "strides": 2}, {}),
    "bands": ((1, 64, 112, 112), "float32", 3, {"strides": 3}, {}),
    "taps": ((1, 64, 56, 56), "float32", 3, {"pads": 1, "return_indices": True}, {}),
    "pairs": ((1, 8, 56, 56), "float32", 19, {"return_indices": True}, {}),
}


def work_of(plan):
    windows = tuple(map(trimmed, plan.axes))
    return make_work(plan, windows, plan.input_shape, plan.output_shape)


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", CALLS)
def test_calls_that_reach_every_strategy(name, build):
    shape, dtype, kernel, attributes, elsewhere = CALLS[name]
    plan = fastpool.plan_max_pool(shape, dtype, kernel, **attributes)
    choice = strategies.choose(work_of(plan), BUILDS[build])
    assert choice.strategy == elsewhere.get(build, name), choice
    best_first = [
        f.__name__ for f in strategies.STRATEGIES[plan.return_indices, plan.channels_last]
    ]
    assert [*dict(choice.declined), choice.strategy] == best_first[: len(choice.declined) + 1]
    assert all(dict(choice.declined).values())


def test_every_strategy_is_reached():
    assert {f.__name__ for row in strategies.STRATEGIES.values() for f in row} == CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
def test_explained(name, isa):
    shape, dtype, kernel, attributes, elsewhere = CALLS[name]
    plan = fastpool.plan_max_pool(shape, dtype, kernel, **attributes)
    text = " ".join(plan.explain().split())
    taken, declined = strategies.choose(work_of(plan), BUILDS[isa])
    assert f'("{taken}")' in text
    for strategy, reason in declined:
        assert f"{strategy}: {reason}" in text


def drawn(rng):
    """A geometry, of the kinds that strategies differ in."""
    rank, most = rng.choice([1, 2, 2, 2, 3]), rng.choice([4, 8, 20, 60])
    sizes = [rng.randint(1, most) for _ in range(rank)]
    axes = []
    for size in sizes:
        kernel = rng.choice([1, 2, 2, 3, 3, 4, 5, 8, 9, 13, size])
        dilation = rng.choice([1, 1, 1, 2, rng.randint(1, 9)])
        begin, end = (rng.choice([0, 0, 1, kernel // 2, rng.randint(0, 9)]) for _ in range(2))
        end += max(0, (kernel - 1) * dilation + 1 - size - begin - end)
        axes.append((kernel, rng.choice([1, 1, 2, 2, 3, 4, kernel]), dilation, begin, end))
    kernels, strides, dilations, begins, ends = zip(*axes, strict=True)
    layout = rng.choice(cases.layouts(rank))
    attributes = {
        **{"strides": strides, "dilations": dilations, "pads": begins + ends, "layout": layout},
        **{"nan": rng.choice(["propagate", "ignore"]), "return_indices": rng.random() < 0.4},
    }
    shape = cases.array_shape(layout, rng.choice([1, 2]), rng.choice([1, 3, 5, 16]), sizes)
    return shape, rng.choice(cases.DTYPE_NAMES), kernels, attributes


def test_switching_any_strategy_off_leaves_results_alone(isa, monkeypatch):
    """Also of all but the last: the one that takes the rest."""
    rng, off = random.Random(7), {name: set() for name in CALLS}
    for seed in range(150):
        shape, dtype, kernel, attributes = drawn(rng)
        x = cases.values(shape, dtype, rng.choice(cases.VALUE_KINDS), seed)
        plan = fastpool.plan_max_pool(shape, x.dtype, kernel, num_threads=1, **attributes)
        expected = plan(x)
        taken = strategies.choose(work_of(plan), BUILDS[isa]).strategy
        for switch in (f"-{taken}", ",".join(f"-{name}" for name in CALLS)):
            monkeypatch.setenv("FASTPOOL_STRATEGY", switch)
            other = fastpool.plan_max_pool(shape, x.dtype, kernel, num_threads=1, **attributes)
            got = other(x)
            instead = strategies.choose(work_of(other), BUILDS[isa]).strategy
            monkeypatch.delenv("FASTPOOL_STRATEGY")
            off[taken].add(instead)
            if not attributes["return_indices"]:
                got, expected = (got,), (expected,) if not isinstance(expected, tuple) else expected
            for one, two in zip(got, expected, strict=True):
                cases.assert_same(one, two, f"{taken} by {instead}: {shape} {kernel} {attributes}")
    kept = {"running_maxima", "bands", "pairs"}
    assert all(name not in others for name, others in off.items() if name not in kept)


def test_a_switch_of_no_strategy_is_refused(monkeypatch):
    monkeypatch.setenv("FASTPOOL_STRATEGY", "-flat")
    with pytest.raises(ValueError, match="FASTPOOL_STRATEGY='-flat'"):
        fastpool.max_pool(np.zeros((1, 1, 4, 4), np.float32), 2, num_threads=1, ceil_mode=True)


def test_the_compiled_object_runs_by_the_choice(isa):
    for name, (shape, dtype, kernel, attributes, _) in CALLS.items():
        plan = fastpool.plan_max_pool(shape, dtype, kernel, **attributes)
        pooling = prepare.PreparedPool(plan, np.dtype(dtype)).pooling
        assert pooling.strategy == strategies.choose(work_of(plan), running.facts()).strategy, name


def test_limits_are_those_of_the_kernels(isa):
    limits = running.builds()[isa].LIMITS
    assert {name: getattr(strategies, name) for name in limits} == limits
    assert running.facts() == BUILDS[isa]
