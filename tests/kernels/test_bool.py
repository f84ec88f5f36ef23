"""Any byte of a bool except 0 is True, also in buffers and in tensors of models."""

import numpy as np
import pytest

import cases
import fastpool
from fastpool._running import running_maxima


def bools(shape, seed):
    """An array of few True, each of another byte."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, shape, np.uint8)
    return np.where(rng.random(shape) < 0.7, 0, data).astype(np.uint8).view(bool)


GEOMETRIES = {
    "small windows": ("NCHW", (2, 3, 9, 70), (3, 3), {"pads": 1}),
    "side by side": ("NCHW", (2, 3, 8, 160), (2, 2), {"strides": 2}),
    "long windows": ("NCHW", (1, 2, 40, 90), (31, 40), {"pads": 9}),
    "whole planes": ("NCHW", (2, 5, 7, 7), (7, 7), {}),
    "tiny planes": ("NCHW", (8, 9, 4, 4), (2, 2), {"strides": 2}),
    "channels last": ("NHWC", (2, 9, 8, 40), (3, 3), {"strides": 2}),
    "few channels last": ("NHWC", (2, 9, 30, 3), (3, 3), {"pads": 1}),
    "leading axes": ("CDHW", (2, 4, 5, 40), (2, 2, 3), {}),
    "empty windows": ("W", (30,), 2, {"pads": 5, "strides": 3}),
}


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_bytes_other_than_one(name, far, isa, monkeypatch):
    if far:
        monkeypatch.setattr(running_maxima, "pays", lambda work: True)
    layout, shape, kernel, attributes = GEOMETRIES[name]
    x = bools(shape, 1)
    plain = x.view(np.uint8) != 0
    assert not np.array_equal(x.view(np.uint8), plain.view(np.uint8))
    for indices in (False, True):
        for threads in (1, 2):
            plan = fastpool.plan_max_pool(
                shape,
                bool,
                kernel,
                layout=layout,
                return_indices=indices,
                num_threads=threads,
                **attributes,
            )
            got, expected = plan(x), plan(plain)
            if not indices:
                got, expected = (got,), (expected,)
            for a, b in zip(got, expected, strict=True):
                assert (a.view(np.uint8) == b.view(np.uint8)).all()
            assert set(np.unique(got[0].view(np.uint8))) <= {0, 1}


def test_the_first_true_byte_has_the_index():
    """The largest byte had it, and came out as the value."""
    x = np.array([1, 2, 0, 255], np.uint8).view(bool)
    y, z = fastpool.max_pool(x, 4, layout="W", return_indices=True)
    assert z.tolist() == [0] == [x.argmax()]
    assert y.view(np.uint8).tolist() == [1]


def test_gaps_are_not_written():
    x = bools((3, 9, 9), 2)
    owner = np.full((3, 9, 20), 7, np.uint8)
    out = owner[:, 1:8, 2:9].view(bool)
    fastpool.max_pool(x, 3, layout="CHW", out=out)
    cases.assert_same(out, fastpool.max_pool(x, 3, layout="CHW"), "values")
    owner[:, 1:8, 2:9] = 7
    assert (owner == 7).all()
