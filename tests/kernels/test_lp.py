"""Lp norms are those of the slow twin: exactly where they are promised to be, else within ulps."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cases
import fastpool
from configurations.arrays import draw_arrangement
from configurations.attributes import draw_batch
from configurations.averaging import KINDS, MOST_TAPS, draw_windows
from configurations.strategies import choices_of, examples
from fastpool import _reference
from fastpool._running import builds as running
from fastpool._running import lp

INF, NAN = math.inf, math.nan
ORDERS = [1, 2, INF, 3, 1.5, 0.5, 7, 0.01, 1e-5, 5e-324, 100.25, 1e6, 1e300]
NAMES = cases.FLOAT_NAMES


def is_exact(name, p):
    """Is the norm the true one, rounded once?"""
    return p in (1, INF) or (p == 2 and name != "float64")


def assert_norms(y, expected, p, what=""):
    """Compare with the twin, whose norms are rounded once."""
    if is_exact(expected.dtype.name, p):
        cases.assert_same(y, expected, what)
        return
    assert (y.dtype, y.shape) == (expected.dtype, expected.shape), what
    cases.assert_same(np.isnan(y), np.isnan(expected), what)
    bits = np.dtype(f"int{8 * y.itemsize}")
    apart = abs(y.view(bits).astype(object) - expected.view(bits).astype(object))
    most = 5 if y.dtype == np.float64 else 1  # (L5: one and four units of two taps, and more)
    assert (apart[~np.isnan(y)] <= most).all(), what


def check(x, kernel_shape, p=2, **attributes):
    """Compare a call with the slow twin, on every build, for one and three threads."""
    expected = _reference.lp_pool(x, kernel_shape, p, **attributes)
    first = None
    for build in cases.BUILDS:
        with running.using(build):
            for threads in (1, 3):
                y = fastpool.lp_pool(x, kernel_shape, p, num_threads=threads, **attributes)
                what = f"{build}, {threads} threads, {x.shape} {x.dtype} {kernel_shape} p={p}"
                assert_norms(y, expected, p, f"{what} {attributes}")
                first = y if first is None else first
                cases.assert_same(y, first, what)
    return first


@st.composite
def calls(draw, hostile=False):
    """Draw (array, window, p, attributes) of a legal call."""
    choices = choices_of(draw)
    rank = choices.pick([1, 2, 2, 2, 3, 4][: 3 if hostile else 6])
    layout = choices.pick(["NCHW", "NHWC", *cases.layouts(rank)])
    sizes, taps, kernel_shape, attributes = draw_windows(choices, rank, hostile)
    for name in ("count_include_pad", "beyond", "divisor"):
        del attributes[name]
    attributes |= {
        "layout": layout,
        "partial": choices.pick(["sum", "scale"]),
        "nan": choices.pick(["propagate", "ignore"]),
    }
    batch, channels = draw_batch(choices, taps, choices.pick([1, 2, 3, 5, 17]), MOST_TAPS // 4)
    shape = cases.array_shape(layout, batch, channels, sizes)
    x = cases.summands(
        shape, choices.pick(NAMES), choices.pick(KINDS), seed=choices.integer(0, 2**16)
    )
    return (
        draw_arrangement(choices, x.ndim).holding(x),
        kernel_shape,
        choices.pick(ORDERS),
        attributes,
    )


@examples(150)
@given(call=calls())
def test_random_calls(call):
    x, kernel_shape, p, attributes = call
    check(x, kernel_shape, p, **attributes)


@examples(40)
@given(call=calls(hostile=True))
def test_attributes_of_any_magnitude(call):
    x, kernel_shape, p, attributes = call
    check(x, kernel_shape, p, **attributes)


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_values(name, p):
    for kind in [*KINDS, "nans"]:
        x = cases.summands((1, 2, 5, 9), name, kind, 3)
        for partial in ("sum", "scale"):
            attributes = {"strides": 2, "ceil_mode": True, "partial": partial, "nan": "ignore"}
            check(x[:, :1], (2, 3), p, pads=(0, 1, 1, 1), **attributes)
        check(x[..., :3], 2, p, layout="NHWC", dilations=(1, 2))
        plane = x[:, 1:]
        y = fastpool.global_lp_pool(plane, p, keepdims=False)
        assert_norms(y, _reference.global_lp_pool(plane, p, keepdims=False), p)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "float64"])
def test_roots_next_to_a_middle_of_two_results(name):
    """Squares of these sum up to the square of a middle, or to a little more or less of it."""
    info = cases.dtype(name)
    digits = {"float16": 11, "bfloat16": 8, "float32": 24}[name]
    middle = 2**digits + 1
    # (a, b, ...) with a sum of squares of middle**2: four squares are always enough.
    rows, rest = [], middle**2
    while rest and len(rows) < 12:
        root = math.isqrt(rest)
        root -= root % max(1, 2 ** (root.bit_length() - digits))  # a number of the type
        rows.append(root)
        rest -= root**2
    assert not rest
    for scale in (1, 2.0**-12):
        for more in (0, scale / 64, scale * 2.0**-8):
            x = (np.array([*rows, 0.0]) * scale).astype(info)
            x[-1] = more
            check(x, len(x), 2, layout="W")
            x = x[:-1] if not more else x
            check(np.nextafter(x.astype(np.float64), 0).astype(info), len(x), 2, layout="W")


@pytest.mark.skipif("bfloat16" not in NAMES, reason="bfloat16 needs ml_dtypes")
def test_many_middles_and_long_windows_take_no_seconds():
    """Half of the norms are in the middle of two results, or windows overlap by thousands."""
    x = np.tile(np.array([32, 255], cases.dtype("bfloat16")), (1, 1, 64, 512))
    with cases.bounds():
        assert (fastpool.lp_pool(x, (1, 2)) == 256).all()  # (the root is 257)
    x = np.random.default_rng(0).standard_normal(20_000)
    for name, p in (("float32", 0.5), ("float32", 3), ("float64", 2), ("float64", 3)):
        plan = fastpool.plan_lp_pool(x.shape, name, 10_001, p, pads=5_000, layout="W")
        with cases.bounds():
            plan(x.astype(name))


def test_orders():
    x = np.array([3.0, -4, 12, -84], np.float32)
    for p, expected in ((1, [7, 16, 96]), (2, [5, 160**0.5, 7200**0.5]), (INF, [4, 12, 84])):
        y = fastpool.lp_pool(x, 2, p, layout="W")
        assert y.tolist() == np.array(expected, np.float32).tolist()
    assert fastpool.lp_pool(x, 4, 1e-9, layout="W").tolist() == [INF]
    assert fastpool.lp_pool(np.array([0, 7.0]), 2, 1e-9, layout="W").tolist() == [7]
    for least in (5e-324, 3e-308, 1e-300):
        check(np.array([3, 4, 0, 0, 5, 1e300, 5e-324, 0]), 2, least, layout="W")
        partial = {"strides": 3, "ceil_mode": True, "partial": "scale"}
        check(np.array([3, 4, 0, 0, 1.0]), 2, least, layout="W", **partial)
    assert fastpool.lp_pool(x, 2, None, layout="W").tolist() == [
        5,
        *y.dtype.type([160**0.5, 7200**0.5]),
    ]


def test_nothing_overflows_or_underflows():
    for name, big, small in (("float32", 1e38, 1e-45), ("float64", 1e308, 5e-324)):
        for p in (2, 3, 0.5, 20):
            for value in (big / 4, small):
                check(np.full(3, value, name), 2, p, layout="W")
                check(np.array([value, 1, value], name), 2, p, layout="W")
    x = np.float32([1e20, 1e20])
    assert fastpool.lp_pool(x, 2, layout="W").tolist() == [np.float32(2**0.5 * 1e20)]


def test_special_values():
    x = np.array([NAN, 3, INF, 4, -INF, NAN, NAN], np.float32)
    for p in ORDERS:
        y = fastpool.lp_pool(x, 2, p, layout="W")
        np.testing.assert_array_equal(y, [NAN, INF, INF, INF, NAN, NAN], str(p))
        y = fastpool.lp_pool(x, 2, p, layout="W", nan="ignore")
        np.testing.assert_array_equal(y, [3, INF, INF, INF, INF, NAN], str(p))
        empty = fastpool.lp_pool(x[1:2], 1, p, layout="W", pads=2)
        np.testing.assert_array_equal(empty, [0, 0, 3, 0, 0], str(p))


def test_partial_windows():
    x = np.ones(4, np.float32)
    attributes = {"strides": 3, "ceil_mode": True, "layout": "W"}
    for p, whole in ((1, 3), (2, np.float32(3**0.5)), (4, np.float32(3**0.25)), (INF, 1)):
        assert fastpool.lp_pool(x, 3, p, **attributes).tolist() == [whole, 1]
        assert fastpool.lp_pool(x, 3, p, partial="scale", **attributes).tolist() == [whole, whole]
    # One element, one tap of padding, one past it.
    y = fastpool.lp_pool(x, 3, 1, strides=2, pads=1, ceil_mode=True, partial="scale", layout="W")
    assert y.tolist() == [2, 3, 1.5]


@pytest.mark.parametrize("name", NAMES)
def test_tiles_and_parts_give_the_same_bits(name, monkeypatch):
    x = cases.summands((2, 3, 17, 21), name, "finite", 1)
    attributes = {"strides": 2, "pads": 1, "ceil_mode": True, "partial": "scale"}
    for p in (1, 2, 2.5, INF):
        plan = fastpool.plan_lp_pool(x.shape, x.dtype, (3, 4), p, **attributes)
        y = plan(x)
        for outputs in (np.s_[:, :, 2:5], np.s_[1:, 1:2, 8:, 3:], np.s_[:, :, :, 10:]):
            part, read, write = plan.tile(outputs)
            cases.assert_same(part(x[read]), y[write], f"{p} {outputs}")
        with monkeypatch.context() as patch:
            patch.setattr(lp, "PART_BYTES", 300)
            patch.setattr(lp, "GATHERED", 50)
            cases.assert_same(pickle.loads(pickle.dumps(plan))(x), y)
        last = fastpool.lp_pool(
            np.ascontiguousarray(x.transpose(0, 2, 3, 1)), (3, 4), p, layout="NHWC", **attributes
        )
        cases.assert_same(last.transpose(0, 3, 1, 2), y)


def test_plans():
    plan = fastpool.plan_lp_pool((1, 2, 9), "float32", 3, 3, strides=2, partial="scale")
    assert plan == pickle.loads(pickle.dumps(plan))
    assert hash(plan) == hash(pickle.loads(pickle.dumps(plan)))
    assert repr(plan) == (
        "<LpPoolPlan float32 NCW (1, 2, 9) -> (1, 2, 4), kernel_shape=(3,), strides=(2,), p=3.0, "
        "partial='scale'>"
    )
    for change in ({"p": 0.0}, {"p": 2}, {"counted": None}, {"counted": ((1, 9),)}, {"batch": 2}):
        with pytest.raises((TypeError, ValueError), match="^plan: "):
            replace(plan, **change)
    x, y = np.ones((1, 2, 9), np.float32), np.empty((1, 2, 4), np.float32)
    assert plan(x, out=y) is y and (y == np.float32(3 ** (1 / 3))).all()
    whole = fastpool.plan_global_lp_pool((1, 2, 9), "float16", INF)
    assert whole.output_shape == (1, 2, 1) and whole.p == INF
    out = np.empty((1, 2), np.float32)
    assert fastpool.global_lp_pool(x, keepdims=False, out=out) is out and (out == 3).all()


@pytest.mark.parametrize(
    ("error", "name", "attributes"),
    [
        (ValueError, "p", {"p": 0}),
        (ValueError, "p", {"p": -1}),
        (ValueError, "p", {"p": NAN}),
        (TypeError, "p", {"p": "2"}),
        (TypeError, "p", {"p": True}),
        (ValueError, "partial", {"partial": "mean"}),
        (TypeError, "partial", {"partial": 1}),
        (ValueError, "nan", {"nan": "skip"}),
        (ValueError, "kernel_shape", {"kernel_shape": 9}),
        (TypeError, "x", {"x": np.ones(8, np.int32)}),
        (TypeError, "x", {"x": np.ones(8, bool)}),
        (TypeError, "out", {"out": np.ones(7, np.float64)}),
        (ValueError, "out", {"out": np.ones(6, np.float32)}),
    ],
)
def test_errors(error, name, attributes):
    attributes = {"x": np.ones(8, np.float32), "kernel_shape": 2, "layout": "W", **attributes}
    with pytest.raises(error, match=f"^{name}\\b"):
        fastpool.lp_pool(**attributes)


def test_errors_leave_out_as_it_was():
    x = np.ones((1, 1, 0, 4), np.float32)
    with pytest.raises(ValueError, match="spatial"):
        fastpool.global_lp_pool(x)
    x = np.ones(8, np.float32)
    with pytest.raises(ValueError, match="out: overlaps x"):
        fastpool.lp_pool(x, 2, layout="W", out=x[1:])
    assert (x == 1).all()
    assert fastpool.lp_pool(np.ones((0, 1, 3, 3)), 2).shape == (0, 1, 2, 2)
