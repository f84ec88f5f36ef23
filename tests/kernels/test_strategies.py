"""A call takes the best strategy that accepts it, says why others declined, and can switch one off.

The choice is pure Python, so the choice for every instruction set is tested on any machine.
"""

import os
import random

import numpy as np
import pytest

import cases
import fastpool
from fastpool import _reference
from fastpool._running import blocks, pass_sizes, prepare, running_maxima, strategies
from fastpool._running import builds as running
from fastpool._running.instruction_sets import Build
from fastpool._running.work import make_work, problem_of

BUILDS = {
    "avx512": Build(64, masks=True),
    "avx2": Build(32, masks=False),
    "baseline": Build(16, masks=False),
}

# A call, and the strategy that it takes on each build.
CALLS = {
    "running_maxima": (
        *((1, 1, 1, 20000), "float64", (1, 80001), {"pads": (0, 80000), "return_indices": True}),
        {},
    ),
    "whole_plane": ((1, 64, 7, 7), "float32", 7, {}, {}),
    "flat_planes": (
        *((1, 1024, 7, 7), "float32", 2, {}),
        dict.fromkeys(("avx2", "baseline"), "bands"),
    ),
    "planes_as_pixels": ((8, 64, 7, 7), "float16", 3, {}, {}),
    "one_window": ((1, 8, 40, 40), "float32", 40, {"return_indices": True}, {}),
    "apart": ((1, 64, 112, 112), "float32", 4, {"strides": 4}, {}),
    "slide_down": (
        *((1, 64, 56, 56), "float32", 3, {"pads": 1}),
        dict.fromkeys(("avx2", "baseline"), "bands"),
    ),
    "stride_two": (
        *((1, 64, 112, 112), "float32", 3, {"strides": 2, "pads": 1}),
        dict.fromkeys(("avx2", "baseline"), "bands"),
    ),
    "whole_pixels": ((1, 560, 16), "float32", 560, {"layout": "NHWC"}, {}),
    "pixels_as_row": ((1, 56, 56, 3), "uint8", 3, {"layout": "NHWC"}, {}),
    "direct_pixels": ((1, 56, 56, 64), "float32", 3, {"layout": "NHWC", "strides": 2}, {}),
    "bands": ((1, 64, 112, 112), "float32", 3, {"strides": 3}, {}),
    "composites": ((1, 8, 56, 56), "float32", 19, {"return_indices": True}, {}),
    "taps": ((1, 64, 56, 56), "float32", 3, {"pads": 1, "return_indices": True}, {}),
    "pairs": ((1, 8, 56, 56), "float64", 19, {"return_indices": True}, {}),
    "irregular": ((1, 64, 13, 13), "float32", (6, 13), {}, {}),  # an output size
}


def plan_of(name):
    shape, dtype, size, attributes, _ = CALLS[name]
    make = fastpool.plan_adaptive_max_pool if name == "irregular" else fastpool.plan_max_pool
    return make(shape, dtype, size, **attributes)


def work_of(plan, build):
    work = make_work(problem_of(plan))
    return strategies.decide(work, build)


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", CALLS)
def test_calls_that_reach_every_strategy(name, build):
    plan, elsewhere = plan_of(name), CALLS[name][-1]
    work = work_of(plan, BUILDS[build])
    assert work.strategy == elsewhere.get(build, name), work
    best_first = [
        f.__name__ for f in strategies.STRATEGIES[plan.return_indices, plan.channels_last]
    ]
    assert [*dict(work.declined), work.strategy] == best_first[: len(work.declined) + 1]
    assert all(dict(work.declined).values())


def test_every_strategy_is_reached():
    assert {f.__name__ for row in strategies.STRATEGIES.values() for f in row} == CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
def test_explained(name, isa):
    plan = plan_of(name)
    text = " ".join(plan.explain(verbose=True).split())
    work = work_of(plan, BUILDS[isa])
    assert f'("{work.strategy}")' in text
    for strategy, reason in work.declined:
        assert f"{strategy}: {reason}" in text


ALL_OFF = ",".join(f"-{name}" for name in CALLS if name not in strategies.NEVER_OFF)


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
        taken = work_of(plan, BUILDS[isa]).strategy
        only = [] if taken in strategies.NEVER_OFF else [f"-{taken}"]
        for switch in (*only, ALL_OFF):
            monkeypatch.setenv("FASTPOOL_STRATEGY", switch)
            other = fastpool.plan_max_pool(shape, x.dtype, kernel, num_threads=1, **attributes)
            got = other(x)
            instead = other._prepared.pooling.strategy
            monkeypatch.delenv("FASTPOOL_STRATEGY")
            off[taken].add(instead)
            if not attributes["return_indices"]:
                got, expected = (got,), (expected,) if not isinstance(expected, tuple) else expected
            for one, two in zip(got, expected, strict=True):
                cases.assert_same(one, two, f"{taken} by {instead}: {shape} {kernel} {attributes}")
    kept = strategies.NEVER_OFF
    assert all(name not in others for name, others in off.items() if name not in kept)


def test_a_switch_of_no_strategy_is_refused(monkeypatch):
    x = np.zeros((1, 1, 4, 4), np.float32)
    for switch in ("-flat", "flat_planes", "-apart,", "-bands", "-running_maxima", "-taps -apart"):
        monkeypatch.setenv("FASTPOOL_STRATEGY", switch)
        plan = fastpool.plan_max_pool(x.shape, x.dtype, 2)
        expected = "FASTPOOL_STRATEGY=.*expected some of -planes_as_pixels"
        with pytest.raises(ValueError, match=expected):
            plan(x)
    monkeypatch.delenv("FASTPOOL_STRATEGY")
    assert plan(x).shape == (1, 1, 3, 3)


class Changing(dict):
    """Environment variables that another thread changes after each look."""

    def get(self, name, default=None):
        value = super().get(name, default)
        if name == "FASTPOOL_STRATEGY":
            self[name] = "" if value else "-taps,-direct_pixels,-pixels_as_row"
        return value


def test_a_switch_that_changes_during_a_call(isa, monkeypatch):
    """Work made for all taps went to passes over pairs: a segmentation fault."""
    monkeypatch.setattr(prepare.os, "environ", Changing(os.environ))
    for shape, attributes in (
        ((1, 20, 20, 33), {"return_indices": True}),
        ((1, 20, 20, 33), {}),
        ((1, 20, 20, 3), {}),
    ):
        x = cases.values(shape, "float32", "ties", 3)
        attributes = {"layout": "NHWC", **attributes}
        expected = _reference.max_pool(x, 3, **attributes)
        for _ in range(4):
            got = fastpool.plan_max_pool(shape, "float32", 3, **attributes)(x)
            if not isinstance(got, tuple):
                got, expected = (got,), (expected,) if not isinstance(expected, tuple) else expected
            for one, two in zip(got, expected, strict=True):
                cases.assert_same(one, two, str(attributes))


def test_a_build_refuses_what_needs_masks(isa):
    plan = fastpool.plan_max_pool((1, 64, 7, 7), "float32", 2)
    kernels = running.builds()[isa]
    for name in ("slide_down", "stride_two", "flat_planes"):
        if not kernels.MASKS:
            with pytest.raises(ValueError, match=name):
                work = work_of(plan, BUILDS[isa])._replace(strategy=name)
                kernels.Pooling(work, np.dtype("float32"))


def test_the_compiled_object_runs_by_the_choice(isa):
    for name in CALLS:
        plan = plan_of(name)
        pooling = prepare.PreparedPool(plan).pooling
        assert pooling.strategy == work_of(plan, running.facts(running.active())).strategy, name


def test_limits_are_those_of_the_kernels(isa):
    limits = dict(running.builds()[isa].LIMITS)
    assert limits.pop("QUEUE") == running_maxima.QUEUE
    for name in ("MOST_BYTE_ROWS", "MOST_BYTE_TAPS"):
        assert limits.pop(name) == getattr(pass_sizes, name)
    for name in ("MOST_WIDTH", "MOST_ODD"):
        assert limits.pop(name) == getattr(blocks, "_" + name)
    assert {name: getattr(strategies, name) for name in limits} == limits
    assert running.facts(running.active()) == BUILDS[isa]


REASONS = [  # shape, kernel, attributes, strategy, how its reason begins
    ((1, 20, 20, 8), 19, {"layout": "NHWC"}, "pixels_as_row", "a window of 19 columns"),
    ((1, 20, 20, 8), 2, {"layout": "NHWC"}, "pixels_as_row", "a pixel of 32 bytes is over 20"),
    ((1, 26, 26, 16), 13, {"layout": "NHWC", "strides": 13}, "direct_pixels", "169 taps"),
    ((1, 26, 26, 16), 3, {"layout": "NHWC"}, "direct_pixels", "one axis after the other"),
    ((1, 26, 26, 32), 4, {"layout": "NHWC", "strides": 3}, "direct_pixels", "16 taps are over 12"),
    ((8, 64, 7, 7), (1, 3), {"strides": (1, 3)}, "planes_as_pixels", "windows are short"),
    ((1, 26, 26, 16), 13, {"layout": "NHWC", "return_indices": True}, "taps", "169 taps"),
    ((1, 1, 40, 40), 19, {"return_indices": True}, "taps", "a window of 19 x 19 is over 16"),
    ((1, 1, 60, 60), 3, {"return_indices": True, "dilations": 17}, "taps", "the rows of a window"),
    ((1, 1, 40, 40), 3, {"strides": 3}, "apart", "takes 2 columns at stride 2, or 4"),
    ((1, 1, 40, 40), 3, {"strides": 3}, "whole_plane", "one window does not take all"),
    ((1, 1, 40, 40), 3, {"strides": 3}, "running_maxima", "passes over tiles take less time"),
]


@pytest.mark.parametrize(("shape", "kernel", "attributes", "strategy", "reason"), REASONS)
def test_reasons(shape, kernel, attributes, strategy, reason):
    dtype = "float64" if attributes.get("return_indices") else "float32"  # (else composites)
    plan = fastpool.plan_max_pool(shape, dtype, kernel, **attributes)
    declined = dict(work_of(plan, BUILDS["avx512"]).declined)
    assert declined[strategy].startswith(reason)


# Calls next to the limits of a choice, and the strategy of all builds.
APART = {"layout": "NHWC", "return_indices": True}
AT_LIMITS = [
    # All taps at once: MAX_TAPS if no two windows share an element, of pixels of 128 bytes. (The
    # kernels have no room for more taps.)
    ((1, 64, 64, 32), "float32", 8, {"layout": "NHWC", "strides": 8}, "direct_pixels"),
    ((1, 64, 64, 31), "float32", 8, {"layout": "NHWC", "strides": 8}, "bands"),
    # Of narrow pixels few taps: more took up to 19 times as long (AVX2).
    ((1, 60, 60, 8), "float32", 2, {"layout": "NHWC", "strides": 2}, "direct_pixels"),
    ((1, 60, 60, 7), "float32", 2, {"layout": "NHWC", "strides": 2}, "bands"),
    ((1, 60, 60, 7), "float32", (1, 3), {"layout": "NHWC"}, "direct_pixels"),
    ((1, 65, 65, 32), "float32", (5, 13), {"layout": "NHWC", "strides": (5, 13)}, "bands"),
    # Planes interleaved: the columns of all rows are split by a stride, from 3 on.
    ((8, 64, 18, 20), "float32", (1, 3), {"strides": (1, 3)}, "planes_as_pixels"),
    ((8, 64, 18, 20), "float32", (1, 3), {"strides": (2, 3)}, "bands"),
    # Windows apart over rows of more than 64 bytes of values, of 4 columns 96, and over 8 rows.
    ((8, 64, 20, 64), "uint8", 9, {"strides": 9}, "planes_as_pixels"),
    ((8, 64, 20, 65), "uint8", 9, {"strides": 9}, "bands"),
    ((8, 64, 40, 32), "int16", (9, 4), {"strides": 9}, "planes_as_pixels"),
    ((8, 64, 40, 48), "int16", (9, 4), {"strides": 9}, "planes_as_pixels"),
    ((8, 64, 40, 49), "int16", (9, 4), {"strides": 9}, "bands"),
    ((8, 64, 7, 65), "uint8", (2, 9), {"strides": (2, 9)}, "planes_as_pixels"),
    ((8, 64, 8, 65), "uint8", (2, 9), {"strides": (2, 9)}, "bands"),
    ((8, 64, 20, 66), "uint8", (1, 9), {"strides": (1, 9)}, "planes_as_pixels"),
    ((8, 64, 9, 36), "float32", 9, {"strides": 9}, "planes_as_pixels"),
    ((8, 64, 40, 40), "float32", 9, {"strides": 10, "dilations": 2}, "planes_as_pixels"),
    ((8, 64, 20, 20), "float32", 9, {"strides": (9, 4)}, "planes_as_pixels"),
    ((8, 64, 20, 64), "float16", 9, {"strides": 9}, "planes_as_pixels"),
    # One window, channels last: planes of 4 rows and columns, and rows of 256 KiB, are taken by
    # rows, but not all keys and bytes. Columns alone are.
    ((1, 16, 16, 4), "float32", 16, {"layout": "NHWC"}, "bands"),
    ((1, 4, 100, 16), "float32", (4, 100), {"layout": "NHWC"}, "bands"),
    ((1, 3, 100, 16), "float32", (3, 100), {"layout": "NHWC"}, "whole_pixels"),
    ((1, 100, 4, 16), "float32", (100, 4), {"layout": "NHWC"}, "bands"),
    ((1, 100, 3, 16), "float32", (100, 3), {"layout": "NHWC"}, "whole_pixels"),
    ((1, 100, 1, 16), "float32", (100, 1), {"layout": "NHWC"}, "bands"),
    ((1, 100, 1, 100), "float32", (100, 1), {"layout": "NHWC"}, "bands"),
    ((1, 4, 4097, 16), "float32", (4, 4097), {"layout": "NHWC"}, "whole_pixels"),
    ((1, 560, 4), "uint8", 560, {"layout": "NHWC"}, "whole_pixels"),
    ((1, 560, 40), "float32", 560, {"layout": "NHWC"}, "whole_pixels"),
    ((1, 40, 40), "float32", 40, {"layout": "NHWC"}, "direct_pixels"),
    ((1, 16, 16, 20), "uint8", 16, {"layout": "NHWC"}, "whole_pixels"),
    ((1, 16, 16, 21), "uint8", 16, {"layout": "NHWC"}, "bands"),
    ((1, 16, 16, 4), "int16", 16, {"layout": "NHWC"}, "bands"),
    ((1, 16, 16, 64), "float32", 16, {"layout": "NHWC"}, "bands"),
    ((1, 5, 5, 65), "float32", 5, {"layout": "NHWC"}, "whole_pixels"),
    ((1, 16, 16, 64), "float16", 16, {"layout": "NHWC"}, "whole_pixels"),
    ((1, 16, 16, 65), "float16", 16, {"layout": "NHWC"}, "bands"),
    ((1, 16, 16, 127), "float16", 16, {"layout": "NHWC"}, "bands"),
    ((1, 16, 16, 128), "float16", 16, {"layout": "NHWC"}, "whole_pixels"),
    # Few short rows of keys: those of SLIDING_PLANE bytes of outputs.
    ((1, 192, 43), "bfloat16", 2, {}, "planes_as_pixels"),
    ((1, 192, 8, 41), "float16", 2, {}, "planes_as_pixels"),
    ((1, 192, 8, 42), "float16", 2, {}, "bands"),
    ((1, 192, 3, 70), "int16", (1, 9), {}, "bands"),
    # One window with indices, channels last: pixels of a vector, of 4 bytes and more.
    ((1, 16, 16, 16), "float32", 16, APART, "taps"),
    ((1, 16, 16, 3), "float32", 16, APART, "one_window"),
    ((1, 16, 16, 32), "int16", 16, APART, "one_window"),
    # Taps with indices at a stride, of bytes: rows of 24 outputs.
    ((1, 1, 200, 48), "uint8", 2, {"return_indices": True, "strides": 2}, "taps"),
    ((1, 1, 200, 47), "uint8", 2, {"return_indices": True, "strides": 2}, "composites"),
    # Taps with indices: OUTPUT_BYTES of outputs, as keys.
    ((8, 8, 1, 3), "int8", 1, {"layout": "NHWC", "return_indices": True}, "taps"),
    ((8, 9, 1, 3), "int8", 1, {"layout": "NHWC", "return_indices": True}, "composites"),
    ((1, 128, 128, 3), "float32", 64, APART | {"strides": 64}, "composites"),
    # Windows with indices that share no element: to 64 taps along each axis, or slabs in all.
    ((1, 130, 8, 16), "float32", (64, 2), APART | {"strides": (64, 2)}, "taps"),
    ((1, 130, 8, 16), "float32", (65, 2), APART | {"strides": (65, 2)}, "composites"),
    ((1, 8, 130, 16), "float32", (2, 64), APART | {"strides": (2, 64)}, "taps"),
    ((1, 8, 130, 16), "float32", (2, 65), APART | {"strides": (2, 65)}, "composites"),
    ((1, 9, 500, 64), "float32", (9, 11), APART | {"strides": 11}, "taps"),  # (one along an axis)
    ((1, 16, 16, 4, 4, 16), "float32", (8, 8, 2, 2), APART | {"strides": (8, 8, 2, 2)}, "taps"),
    ((1, 26, 10, 4, 4, 16), "float32", (13, 5, 2, 2), APART | {"strides": (13, 5, 2, 2)}, "pairs"),
    # Their elements, and their places in keys of 16 bits.
    ((1, 32, 32, 32, 64), "float32", 16, APART | {"strides": 16}, "taps"),
    ((1, 34, 32, 32, 64), "float32", (17, 16, 16), APART | {"strides": 17}, "composites"),
    ((1, 64, 2000, 32), "uint8", (16, 17), APART | {"strides": 17}, "taps"),
    ((1, 64, 2200, 32), "uint8", (16, 17), APART | {"strides": 17}, "composites"),
    # Planes of volumes interleaved, larger than others: rows of 12 bytes of outputs, and of 32 if
    # windows share slabs.
    ((1, 256, 30, 10, 9), "float32", 3, {"strides": 3}, "planes_as_pixels"),
    ((1, 256, 30, 10, 12), "float32", 3, {"strides": 3}, "bands"),
    ((1, 256, 13, 17, 24), "float32", 3, {"strides": (2, 3, 3)}, "planes_as_pixels"),
    ((1, 256, 13, 17, 27), "float32", 3, {"strides": (2, 3, 3)}, "bands"),
    ((1, 256, 40, 20, 3), "float64", 2, {"strides": 2}, "bands"),
]


@pytest.mark.parametrize(("shape", "dtype", "kernel", "attributes", "strategy"), AT_LIMITS)
def test_choices_at_limits(shape, dtype, kernel, attributes, strategy):
    plan = fastpool.plan_max_pool(shape, dtype, kernel, **attributes)
    assert {work_of(plan, build).strategy for build in BUILDS.values()} == {strategy}


@pytest.mark.parametrize(
    ("dtype", "width", "kernel", "stride", "strategy"),
    [
        *(("int16", 128, 2, 1, "flat_planes"), ("int16", 129, 2, 1, "bands")),
        *(("uint8", 127, 3, 2, "flat_planes"), ("uint8", 129, 3, 2, "stride_two")),
        *(("uint8", 129, 4, 2, "flat_planes"), ("uint8", 519, 4, 2, "bands")),
    ],
)
def test_signals_that_are_flattened(dtype, width, kernel, stride, strategy):
    plan = fastpool.plan_max_pool((1, 4, width), dtype, kernel, strides=stride)
    assert work_of(plan, BUILDS["avx512"]).strategy == strategy


@pytest.mark.parametrize(("channels", "width"), [(72, 72), (200, 80)])
def test_parts_of_pixels(channels, width):
    """Long windows take parts of pixels, which are whole vectors."""
    plan = fastpool.plan_max_pool((1, 40, 40, channels), "float32", 15, layout="NHWC")
    assert work_of(plan, BUILDS["avx512"]).tile[2] == width


def test_long_rows_have_no_bands():
    """Bands of a few long rows would need more scratch than a call may have (prepare.py)."""
    plan = fastpool.plan_max_pool((1, 2, 20000, 32), "float32", (2, 20000), layout="NHWC")
    plan(np.zeros(plan.input_shape, "float32"))
    assert plan._prepared.pooling.strategy == "whole_pixels"
