"""Doubles with all their digits: means whose sums no double holds."""

import itertools

import numpy as np
import pytest

import cases
import fastpool
from fastpool import _reference
from fastpool._running import builds as running
from fastpool._running import pass_sizes

# Shape, window and attributes: planes at once, rows in several blocks, parts.
LAYERS = [
    ((3, 6, 21), (3, 3), {"layout": "CHW", "pads": 1}),
    ((1, 30, 12), (5, 5), {"layout": "CHW"}),
    ((2, 24, 9), (5, 1), {"layout": "CHW", "strides": (4, 1), "pads": (2, 0, 2, 0)}),
    ((1, 14, 30), (9, 11), {"layout": "CHW", "pads": 4}),
    ((16, 7, 6), (3, 3), {"layout": "CHW", "strides": 2, "ceil_mode": True}),
    ((9, 31), (3,), {"layout": "CW", "strides": 2}),
    ((7, 4, 17), (3, 2), {"layout": "HWC", "pads": 1, "count_include_pad": True}),
    ((12, 9, 3), (3, 3), {"layout": "HWC", "strides": 2, "dilations": 2}),
    ((4, 6, 5, 9), (2, 3, 3), {"layout": "CDHW", "strides": (1, 2, 1)}),
    ((2, 0, 5), (1, 3), {"layout": "CHW", "pads": 1}),
]


EXACT = {"numerics": "exact"}


def assert_exact(x, kernel, attributes):
    attributes = attributes | EXACT
    expected = _reference.avg_pool(x, kernel, **attributes)
    for build in cases.BUILDS:
        with running.using(build):
            for threads in (1, 3):
                y = fastpool.avg_pool(x, kernel, num_threads=threads, **attributes)
                cases.assert_same(y, expected, f"{build} {x.shape} {kernel} {attributes}")


def arrays(shape):
    """Doubles whose sums are exact in two digits, in some blocks, and in none."""
    rng = np.random.default_rng(len(shape))
    x = rng.standard_normal(shape)
    yield x
    yield np.ldexp(x, -1040)  # (subnormal)
    yield np.ldexp(x, 1000)
    rows = np.arange(x.size).reshape(shape) // max(1, shape[-1])
    yield np.ldexp(x, rows % 97)  # larger from block to block
    yield np.where(rows % 13, 0, x)
    yield np.where(rows % 29 == 7, np.ldexp(x, -200), x)
    for kind in ("finite", "powers", "cancelling", "rare", "quarters"):
        yield cases.summands(shape, "float64", kind, 5)
    yield np.where(rng.random(shape) < 0.01, np.nextafter(np.inf, 0), x)


@pytest.mark.parametrize(("shape", "kernel", "attributes"), LAYERS)
def test_exact(shape, kernel, attributes, monkeypatch):
    """In blocks of few rows. The last array has gaps between its elements."""
    monkeypatch.setattr(pass_sizes, "PASS_BYTES", 1)
    wide = np.zeros((*shape[:-1], 2 * shape[-1] + 1))[..., 1::2]
    for x in arrays(shape):
        assert_exact(x, kernel, attributes)
        wide[...] = x
    assert_exact(wide, kernel, attributes)


@pytest.mark.parametrize("output_size", [(3, 4), (5, 13), (1, 2)])
def test_adaptive(output_size):
    for layout, shape in (("CHW", (3, 7, 17)), ("HWC", (5, 13, 9))):
        for x in arrays(shape):
            expected = _reference.adaptive_avg_pool(x, output_size, layout=layout, **EXACT)
            for build in cases.BUILDS:
                with running.using(build):
                    y = fastpool.adaptive_avg_pool(x, output_size, layout=layout, **EXACT)
                cases.assert_same(y, expected, f"{build} {shape} {output_size}")


TWO_TAPS = [
    ((2,), {"strides": 2}),
    ((2,), {"pads": 1, "count_include_pad": True}),
    ((2,), {"divisor": 2**30}),
    ((2,), {"divisor": -1}),
    ((2,), {"dilations": 3}),
    ((1,), {}),
]


@pytest.mark.parametrize(("kernel", "attributes"), TWO_TAPS)
@pytest.mark.parametrize("layout", ["CW", "WC"])
def test_two_elements(kernel, attributes, layout):
    """A power of two divides their sum: ties, subnormals, overflow."""
    attributes = attributes | {"layout": layout}
    shape = (3, 21) if layout == "CW" else (21, 3)
    for x in arrays(shape):
        assert_exact(x, kernel, attributes)
        integers = np.rint(np.clip(x, -2, 2) * 2.0**53)
        assert_exact(integers, kernel, attributes)  # (sums are often ties)
        assert_exact(np.ldexp(integers, -1074), kernel, attributes)
        assert_exact(np.ldexp(integers, -1110), kernel, attributes)


def sparse_digits(shape, name, seed):
    """Elements whose sums are decided by few digits, by all of them, or by one far below others."""
    rng = np.random.default_rng(seed)
    kind = cases.dtype(name)
    bits, least, most = {
        "float32": (24, -149, 127),
        "bfloat16": (8, -133, 127),
        "float64": (53, -1074, 1023),
    }[name]
    signs = rng.choice([1.0, -1.0, 1.5, -1.25], shape)
    middle = np.full(shape, 2.0 ** (most // 2))
    any_exponent = np.ldexp(signs, rng.integers(least, most, shape))
    tiny = np.ldexp(np.rint(4 * signs), least)
    yield any_exponent
    yield np.where(rng.random(shape) < 0.05, np.ldexp(signs, most), tiny)  # far from all others
    yield np.where(rng.random(shape) < 0.8, 0, any_exponent)  # (windows of zeros)
    yield np.where(rng.random(shape) < 0.02, any_exponent, np.rint(signs))  # the same at 1
    pairs = any_exponent.copy()
    pairs[..., 1::2] = -pairs[..., :-1:2]
    yield np.where(rng.random(shape) < 0.1, tiny, pairs)
    half = np.ldexp(middle, -bits)  # of a unit of the middle: ties, which tiny ones decide
    yield rng.choice([1.0, 0.0], shape) * np.choose(
        rng.integers(4, size=shape), [middle, half, -half, np.ldexp(signs, least)]
    )
    special = rng.choice([np.nan, np.inf, -np.inf], shape)
    yield np.where(rng.random(shape) < 0.02, special, any_exponent).astype(kind)


@pytest.mark.parametrize("nan", ["propagate", "ignore"])
@pytest.mark.parametrize("name", ["float32", "bfloat16", "float64"])
def test_digits_that_decide(name, nan):
    """Digits are skipped if they are zeros, or if what is left of elements decides no result."""
    windows = [
        ((3, 9, 21), (3, 3), {"layout": "CHW", "pads": 1}),
        ((2, 12, 14), (2, 2), {"layout": "CHW", "strides": 2, "divisor": 4}),
        ((9, 13, 5), (5, 3), {"layout": "HWC", "dilations": (1, 2), "divisor": -3}),
        ((20, 6, 7), (6, 7), {"layout": "CHW"}),
        ((5, 3, 19), (5, 3), {"layout": "HWC", "pads": 1, "count_include_pad": True}),
    ]
    for (shape, kernel, attributes), seed in itertools.product(windows, range(2)):
        for x in sparse_digits(shape, name, seed):
            assert_exact(x.astype(cases.dtype(name)), kernel, attributes | {"nan": nan})
