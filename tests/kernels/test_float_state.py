"""Results do not depend on the calling thread's floating-point state, which stays as it was.

Other libraries set it: rounding, and subnormal numbers flushed to zero or taken for zero
(``torch.set_flush_denormal``). The threads that fastpool starts have the usual state.
"""

import contextlib
import ctypes
import itertools
import math
import platform
import sys

import numpy as np
import pytest

import cases
import fastpool.onnx

FLOATS = cases.FLOAT_NAMES

# Per processor: where its control word is in fenv_t, flush-to-zero, rounding up, down, to zero.
CONTROLS = {
    "x86_64": (28, 0x8040, (0x4000, 0x2000, 0x6000)),
    "aarch64": (0, 1 << 24, (1 << 22, 2 << 22, 3 << 22)),
}
needs_fenv = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() not in CONTROLS,
    reason="sets the floating-point control word that Linux keeps in fenv_t",
)


def control_word(new=None):
    """Return the control word of this thread, without flags; set another one if it is given."""
    at, *_ = CONTROLS[platform.machine()]
    libc, state = ctypes.CDLL(None), (ctypes.c_uint32 * 8)()
    libc.fegetenv(state)
    word = state[at // 4] & ~0x3F
    if new is not None:
        state[at // 4] = new
        libc.fesetenv(state)
    return word


@contextlib.contextmanager
def floating_point(bits):
    """Run the block with other bits in the control word; check that they are still there."""
    usual = control_word()
    control_word(usual | bits)
    try:
        yield
        found = control_word()
    finally:
        control_word(usual)
    assert found == usual | bits, "the control word was changed"


def modes():
    _, flush, directed = CONTROLS[platform.machine()]
    return [flush, *directed, flush | directed[0]]


@needs_fenv
@pytest.mark.parametrize("name", FLOATS)
def test_maxima_of_subnormal_numbers(name, isa):
    """Were they taken for zero, all would be equal, on the calling thread alone."""
    for large in (False, True):
        shape = (4, 16, 65, 64) if large else (1, 2, 9, 21)
        x = cases.summands(shape, name, "finite", 5)
        x = (x.view(f"uint{8 * x.itemsize}") % 9 + 1).view(x.dtype)
        x[..., ::7] *= -1
        x[..., 3::29] = 0
        for kernel, strides in (1, 1), (2, 2), (3, 1), ((1, 9), 1), ((7, 8), 2):
            call = {"strides": strides, "return_indices": True}
            y, indices = fastpool.max_pool(x, kernel, **call, num_threads=1)
            for mode, threads in itertools.product(modes(), (1, 3)):
                with floating_point(mode):
                    alone = fastpool.max_pool(x, kernel, strides=strides, num_threads=threads)
                    pair = fastpool.max_pool(x, kernel, **call, num_threads=threads)
                for found, expected in zip((alone, *pair), (y, y, indices), strict=True):
                    cases.assert_same(found, expected, f"{mode:#x}, {threads} threads, {kernel}")
            assert not (y == 0).all()


@needs_fenv
@pytest.mark.parametrize("name", [*FLOATS, "uint8", "int32", "int64"])
def test_the_state_of_the_thread_changes_no_mean(name, isa):
    """Plans made and run with other roundings, and with subnormal numbers taken for zero."""
    calls = []
    for kind in ("finite", "powers", "normal", "cancelling"):
        plain = cases.summands((2, 9, 21), name, kind, 5)
        subnormal = (plain.view(f"uint{8 * plain.itemsize}") >> 2).view(plain.dtype)
        for x, numerics in itertools.product(
            (plain, subnormal), ("exact", "sequential", "pairwise")
        ):
            more = {"numerics": numerics, "layout": "CHW"}
            calls.append((fastpool.plan_avg_pool, x, (3, 3), {"pads": 1, **more}))
            calls.append((fastpool.plan_avg_pool, x, (1, 17), more))
            calls.append((fastpool.plan_adaptive_avg_pool, x, (2, 5), more))
            if name not in FLOATS:
                more = {**more, "result_dtype": "float32"}
                calls.append((fastpool.plan_avg_pool, x, (3, 7), more))
    expected = [make(x.shape, x.dtype, size, **more)(x) for make, x, size, more in calls]
    for mode, threads in itertools.product(modes(), (1, 3)):
        with floating_point(mode):
            plans = [
                make(x.shape, x.dtype, size, num_threads=threads, **more)
                for make, x, size, more in calls
            ]
            found = [plan(x) for plan, (_, x, *_) in zip(plans, calls, strict=True)]
        for got, wanted, call in zip(found, expected, calls, strict=True):
            cases.assert_same(got, wanted, f"{mode:#x}, {threads} threads, {call[0]} {call[2:]}")


@needs_fenv
@pytest.mark.parametrize("name", FLOATS)
def test_the_state_of_the_thread_changes_no_norm(name):
    orders = [1, 2, 3, 1.5, 0.5, math.inf]
    for kind in ("finite", "powers", "normal"):
        plain = cases.summands((2, 9, 21), name, kind, 5)
        subnormal = (plain.view(f"uint{8 * plain.itemsize}") >> 3).view(plain.dtype)
        for x, p, partial in itertools.product((plain, subnormal), orders, ("sum", "scale")):
            more = {"strides": 2, "ceil_mode": True, "partial": partial, "layout": "CHW"}
            expected = fastpool.lp_pool(x, (2, 3), p, **more)
            for mode in modes():
                with floating_point(mode):
                    y = fastpool.lp_pool(x, (2, 3), p, **more)
                cases.assert_same(y, expected, f"{mode:#x}, p {p}, {partial}")


@needs_fenv
def test_subnormal_scales_are_not_flushed():
    x = np.array([[[0, 100, 200]]], np.uint8)
    with floating_point(modes()[0]):
        y = fastpool.onnx.qlinear_average_pool(x, 1e-38, 0, 2e-38, 0, kernel_shape=[1])
    assert y.tolist() == [[[0, 50, 100]]]


@needs_fenv
def test_the_least_number_is_not_flushed():
    x = np.full(8, 2.0**-149, np.float32)
    with floating_point(modes()[0]):
        for numerics in ("exact", "sequential", "pairwise"):
            y = fastpool.avg_pool(x, 4, layout="W", numerics=numerics)
            assert (y.view(np.uint32) == 1).all()


@needs_fenv
@pytest.mark.parametrize("func", ["max", "mean", "sum", "median", "std", "count"])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_blocks(func, name):
    least = cases.dtype(name).type(1) * np.finfo(name).smallest_subnormal
    x = np.array([3 * least, 5 * least, 1, 2, 0, 3 * least, -least, 0.0] * 20, name)
    where = np.arange(x.size) % 7 > 0
    given = [{}, {"nodata": 0}, {"nodata": 1}, {"where": where}, {"nan": "ignore"}]
    given += [{"nodata": float(3 * least)}, {"nodata": 0.1}]
    for more in given:
        expected = fastpool.block_reduce(x, 4, func, **more)
        for bits in modes():
            with floating_point(bits):
                y = fastpool.block_reduce(x, 4, func, **more)
            assert y.tobytes() == expected.tobytes(), (more, bits)
