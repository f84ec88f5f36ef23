"""The slow twin's global and adaptive pooling is right: against windows worked by hand."""

import math
from fractions import Fraction

import numpy as np
import pytest

import cases
from fastpool import _reference

NAN = math.nan


def same(found, expected):
    np.testing.assert_array_equal(np.array(found, float), np.array(expected, float))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_global_pooling(layout, rank):
    x = np.random.default_rng(rank).standard_normal((2, 3, 4, 2, 3, 5)[: rank + 2])
    axes = tuple(range(1, rank + 1)) if layout == "NHWC" else tuple(range(2, rank + 2))
    extents = [x.shape[axis] for axis in axes]
    y = _reference.global_avg_pool(x, layout=layout)
    same(y, _reference.avg_pool(x, extents, layout=layout))
    same(y, _reference.adaptive_avg_pool(x, 1, layout=layout))
    np.testing.assert_allclose(y, x.mean(axes, keepdims=True))
    flat = _reference.global_avg_pool(x, layout=layout, keepdims=False)
    assert flat.shape == y.squeeze(axes).shape == x.shape[:1] + flat.shape[1:] and flat.ndim == 2
    indices = {"return_indices": True, "index_axis": 1, "index_dtype": "int32", "layout": layout}
    found = _reference.global_max_pool(x, **indices)
    adaptive = _reference.adaptive_max_pool(x, 1, **indices)
    pooled = _reference.max_pool(x, extents, **indices)
    flat = _reference.global_max_pool(x, **indices, keepdims=False)
    for one, two, three, four in zip(found, pooled, adaptive, flat, strict=True):
        cases.assert_same(one, two)
        cases.assert_same(three, two)
        cases.assert_same(four, two.squeeze(axes))
    cases.assert_same(_reference.global_max_pool(x, layout=layout), pooled[0])


def test_global_pooling_of_nothing():
    for function in (_reference.global_avg_pool, _reference.global_max_pool):
        assert function(np.ones((0, 3, 4, 5))).shape == (0, 3, 1, 1)
        assert function(np.ones((2, 0, 4, 5)), keepdims=False).shape == (2, 0)
        for shape in ((2, 3, 0, 5), (0, 3, 4, 0)):
            with pytest.raises(ValueError, match="no elements"):
                function(np.ones(shape))


BOUNDARIES = {
    1: [(0, 7)],
    2: [(0, 4), (3, 7)],
    3: [(0, 3), (2, 5), (4, 7)],
    5: [(0, 2), (1, 3), (2, 5), (4, 6), (5, 7)],
    7: [(i, i + 1) for i in range(7)],
    10: [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 5), (4, 5), (4, 6), (5, 7), (6, 7)],
}


@pytest.mark.parametrize("outputs", BOUNDARIES)
def test_adaptive_windows(outputs):
    x = np.array([3, 1, 4, 1, 5, 9, 2.0])
    boxes = [x[slice(*bounds)] for bounds in BOUNDARIES[outputs]]
    y = _reference.adaptive_avg_pool(x, outputs, layout="W")
    same(y, [float(Fraction(int(box.sum()), len(box))) for box in boxes])
    maxima, places = _reference.adaptive_max_pool(x, outputs, layout="W", return_indices=True)
    same(maxima, [box.max() for box in boxes])
    starts = [first for first, _ in BOUNDARIES[outputs]]
    same(places, [start + box.argmax() for start, box in zip(starts, boxes, strict=True)])
    plane = np.add.outer(x, x)
    one = _reference.adaptive_avg_pool(plane, (outputs, None), layout="HW")
    two = _reference.adaptive_avg_pool(plane, (outputs, 7), layout="HW")
    same(one, two)
    assert one.shape == (outputs, 7)


def test_adaptive_pooling_into_equal_parts():
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 8)).astype(np.float32)
    for numerics in ("exact", "sequential", "pairwise"):
        y = _reference.adaptive_avg_pool(x, (3, 2), numerics=numerics)
        same(y, _reference.avg_pool(x, (2, 4), strides=(2, 4), numerics=numerics))
    y = _reference.adaptive_max_pool(x, (3, 2))
    same(y, _reference.max_pool(x, (2, 4), strides=(2, 4)))
    last = np.moveaxis(x, 1, -1)
    same(
        _reference.adaptive_avg_pool(last, 5, layout="NHWC"),
        np.moveaxis(_reference.adaptive_avg_pool(x, 5), 1, -1),
    )


def test_adaptive_pooling_to_nothing_and_of_nothing():
    for function in (_reference.adaptive_avg_pool, _reference.adaptive_max_pool):
        assert function(np.ones((2, 3, 4, 5)), 0).shape == (2, 3, 0, 0)
        assert function(np.ones((2, 3, 0, 5)), (0, 2)).shape == (2, 3, 0, 2)
        assert function(np.ones((2, 3, 0, 5)), None).shape == (2, 3, 0, 5)
        assert function(np.ones((0, 3, 4, 5)), 2).shape == (0, 3, 2, 2)
        with pytest.raises(ValueError, match=r"^output_size\[0\]: "):
            function(np.ones((2, 3, 0, 5)), (1, 2))


def test_adaptive_pooling_in_other_types():
    assert _reference.adaptive_avg_pool(np.array([1, 2, 2]), 2, layout="W").tolist() == [2, 2]
    x = np.array([1, 2, 4], np.uint8)
    kinds = {"layout": "W", "rounding": "half_away"}
    assert _reference.adaptive_avg_pool(x, 2, **kinds).tolist() == [2, 3]
    assert _reference.adaptive_avg_pool(x, 2, layout="W", dtype="float64").tolist() == [1.5, 3]
    x = np.array([NAN, 2, 4])
    same(_reference.adaptive_avg_pool(x, 2, layout="W", nan="ignore"), [2, 3])
    same(_reference.global_avg_pool(x, layout="W", nan="ignore"), [3])
