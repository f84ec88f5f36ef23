"""Means of rows and pixels of about a vector: small integers that are folded, sliding floats.

`out` has gaps, which show that nothing else is written.
"""

import numpy as np
import pytest

import cases
import fastpool
from fastpool import _reference

SMALL_INTEGERS = "int8", "uint8", "int16", "uint16"
SIZES = *range(1, 20), 23, 24, 28, *range(31, 35), 47, 48, *range(63, 67), 96, 127, 128, 130


def assert_as_the_twin(x, kernel, layout, **attributes):
    expected = _reference.avg_pool(x, kernel, layout=layout, **attributes)
    out = np.full((*expected.shape[:-1], expected.shape[-1] + 3), 7, x.dtype)
    fastpool.avg_pool(x, kernel, layout=layout, out=out[..., :-3], num_threads=1, **attributes)
    cases.assert_same(out[..., :-3], expected, f"{x.shape} {kernel} {attributes}")
    assert (out[..., -3:] == 7).all(), f"{x.shape} {kernel} {attributes}"


@pytest.mark.parametrize("dtype", SMALL_INTEGERS)
@pytest.mark.parametrize("rounding", ["half_even", "floor", "half_away", "trunc"])
def test_folded(dtype, rounding, isa):
    for size in SIZES:
        for kernel in ((2, 2), (1, 2), (3, 2), (4, 4)):
            x = cases.values((3, 9, kernel[1] * size + 1), dtype, "bits", size)
            attributes = {"strides": kernel, "rounding": rounding}
            assert_as_the_twin(x, kernel, "CHW", **attributes)
            assert_as_the_twin(x, kernel, "CHW", ceil_mode=True, **attributes)
            x = cases.values((9, 5, size), dtype, "bits", size)
            assert_as_the_twin(x, kernel, "HWC", ceil_mode=True, **attributes)
            assert_as_the_twin(x, kernel, "HWC", pads=(kernel[0] - 1, 1), **attributes)


@pytest.mark.parametrize("dtype", SMALL_INTEGERS)
def test_folded_along_leading_axes(dtype, isa):
    x = cases.values((5, 6, 9, 70), dtype, "bits", 0)
    for attributes in ({}, {"dilations": (2, 1, 3)}, {"pads": (0, 0, 0, 0, 1, 1)}, {"divisor": 16}):
        strides = {"strides": (1, 2, 3), "ceil_mode": True, **attributes}
        assert_as_the_twin(x, 2, "DHWC", **strides)
        assert_as_the_twin(x, 2, "CDHW", **strides)
    x = cases.values((34, 17, 70), dtype, "bits", 1)
    assert_as_the_twin(x, 16, "HWC", strides=16)  # (256 taps)
    assert_as_the_twin(x, 2, "HWC", strides=5, pads=2, count_include_pad=True)


@pytest.mark.parametrize("dtype", SMALL_INTEGERS)
def test_counts_are_those_of_the_tile_after_its_cut_windows(dtype, isa):
    """Of several groups of interleaved planes, whose last windows have other divisors."""
    for channels in (33, 130):
        x = np.full((2, channels, 3), 100, dtype)
        y = fastpool.avg_pool(x, 2, strides=2, ceil_mode=True, layout="NCW")
        assert (y == 100).all()


@pytest.mark.parametrize("kernel", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["finite", "rare"])
def test_pixels_that_slide(dtype, kernel, kind, isa):
    for size in (*range(2, 20), 31, 33, 64, 300):
        for rows, columns, pads in ((4, 9, 0), (5, 4, 1), (kernel, 21, kernel - 1)):
            x = cases.summands((rows, columns, size), dtype, kind, size)
            for include in (False, True):
                assert_as_the_twin(x, kernel, "HWC", pads=pads, count_include_pad=include)
    x = cases.summands((2, 6, 7, 40), dtype, kind, 1)
    assert_as_the_twin(x, kernel, "NHWC", dilations=(2, 1))
    assert_as_the_twin(x, kernel, "NHWC", strides=(2, 1), divisor=-3)
    assert_as_the_twin(x[:, ::-1, ::2, 1:], kernel, "NHWC")
