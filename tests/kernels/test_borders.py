"""Borders: what stands in padding, compared with the slow twin and with np.pad."""

import pickle
import random
import time
from collections import Counter

import numpy as np
import pytest

import cases
import configurations
import fastpool
import limits
from configurations import science
from configurations.science import PADDED
from fastpool import _reference

POOLS = "max_pool", "min_pool", "avg_pool"
NAN = float("nan")


def assert_same(results, expected):
    results, expected = (r if isinstance(r, tuple) else (r,) for r in (results, expected))
    for y, z in zip(results, expected, strict=True):
        assert y.dtype == z.dtype
        y, z = (a if a.dtype.kind in "iub" else a.astype(np.float64) for a in (y, z))
        np.testing.assert_array_equal(y, z)


@pytest.mark.parametrize("dtype", cases.DTYPE_NAMES)
def test_random_configurations(dtype):
    """Each is compared with the twin: by copies, or by the trees that far padding needs."""
    choices = configurations.Choices(random.Random(dtype).randint)
    counts = Counter()
    for _ in range(40):
        configurations.compare(science.draw_borders(choices, [dtype]), counts)
    assert configurations.configurations(counts) > 100


@pytest.mark.parametrize("border", ["nearest", "wrap", "reflect"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_columns_that_windows_take_one_by_one(dtype, layout, border, isa):
    """Kernels fold these, of many planes and of pixels, and fill no padding then."""
    for sizes, kernel, strides, pads in [
        ((2, 64, 14, 3), 1, 1, (0, 2, 0, 0)),
        ((1, 37, 24, 4), 1, (3, 1), (0, 3, 0, 0)),
        ((1, 20, 7, 14), 1, 1, (2, 1, 0, 1)),
        ((1, 256, 7, 14), (2, 1), (3, 1), (2, 0, 0, 2)),
    ]:
        x = np.random.default_rng(sum(sizes)).integers(1, 100, sizes).astype(dtype)
        if layout == "NHWC":
            x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
        attributes = {"strides": strides, "pads": pads, "layout": layout, "border": border}
        expected = _reference.avg_pool(x, kernel, **attributes)
        assert_same(fastpool.avg_pool(x, kernel, **attributes), expected)


@pytest.mark.parametrize("dtype", ["uint8", "int32"])
def test_exact_means_of_far_padding_take_no_seconds(dtype):
    """Windows that repeat are added, and divided, once; 451,275 took 6.7 s."""
    x = np.random.default_rng(1).integers(0, 100, (1, 5, 17, 17, 3)).astype(dtype)
    attributes = {"strides": (1, 1, 3), "layout": "NHWC"}
    padded = np.pad(x, [(0, 0), (1, 1), (3000, 3000), (1, 1), (0, 0)], "edge")
    expected = fastpool.avg_pool(padded, (3, 1, 7), **attributes)
    pads = (1, 3000, 1, 1, 3000, 1)
    with limits.quick(4):
        y = fastpool.avg_pool(x, (3, 1, 7), pads=pads, border="nearest", **attributes)
    assert_same(y, expected)


@pytest.mark.parametrize("value", [0, 5])
def test_a_constant_counts_where_nan_is_ignored(value):
    x = np.full(5, np.nan, np.float32)
    attributes = {"pads": 2, "layout": "W", "border": "constant", "border_value": value}
    y = fastpool.avg_pool(x, 3, nan="ignore", **attributes)
    np.testing.assert_array_equal(y, [value, value, np.nan, np.nan, np.nan, value, value])


@pytest.mark.parametrize("border", PADDED)
@pytest.mark.parametrize("name", POOLS)
def test_np_pad(name, border):
    """In floor mode a border is np.pad, bit for bit."""
    rng = np.random.default_rng(5)
    for size, pad in [(1, 1), (1, 100), (2, 5), (3, 300), (7, 3), (40, 6)]:
        x = rng.normal(size=(size, 6)).astype(np.float32)
        if size > 3:  # (kernels pool such tiles again, as keys)
            x[rng.random(x.shape) < 0.1] = np.nan
        before, after = rng.integers(0, pad + 1, 2)
        for kernel, stride in [(1, 1), (3, 1), (3, 2), (4, 3)]:
            if kernel > size + before + after:
                continue
            pads = before, 2, after, 3
            with_border = {"pads": pads, "border": border}
            padded = np.pad(x, ((before, after), (2, 3)), PADDED[border])
            pool, attributes = getattr(fastpool, name), {"strides": stride, "layout": "HW"}
            y = pool(x, kernel, **attributes, **with_border)
            np.testing.assert_array_equal(y, pool(padded, kernel, **attributes), strict=True)


@pytest.mark.parametrize("border", PADDED)
def test_time_follows_the_array(border):
    """Neither long windows nor far padding are looped over."""
    x = np.arange(12, dtype=np.float32)
    start = time.perf_counter()
    for name in POOLS:
        far = {"layout": "W", "border": border}
        for dtype in ("float32", "int32"):
            y = getattr(fastpool, name)(x.astype(dtype), 10**9 + 1, pads=5 * 10**8, **far)
            assert y.shape == x.shape
        y = getattr(fastpool, name)(x, 3, strides=10**8, dilations=10**8, pads=10**9, **far)
        assert y.size == 19
    assert time.perf_counter() - start < 5


def test_mean_of_nearly_everything():
    x = np.arange(12)
    y = fastpool.avg_pool(x, 10**9 + 1, pads=5 * 10**8, layout="W", border="wrap", dtype="float64")
    np.testing.assert_allclose(y, 5.5, rtol=1e-7)
    y = fastpool.avg_pool(
        x, 10**9 + 1, pads=5 * 10**8, layout="W", border="nearest", rounding="floor"
    )
    assert set(y.tolist()) <= {5, 6}


def test_indices_name_the_element():
    """The first tap wins, and a constant has -1."""
    x = np.array([5, 1, 5, 2])
    pool = {"layout": "W", "return_indices": True}
    y, z = fastpool.max_pool(x, 3, pads=1, border="wrap", **pool)
    assert z.tolist() == [0, 0, 2, 2] and x[z].tolist() == y.tolist()
    y, z = fastpool.max_pool(x, 3, pads=2, border="mirror", **pool)
    assert z.tolist() == [2, 0, 0, 2, 2, 2]
    y, z = fastpool.max_pool(x, 2, pads=1, border="constant", border_value=2, **pool)
    assert y.tolist() == [5, 5, 5, 5, 2] and z.tolist() == [0, 0, 2, 2, 3]
    y, z = fastpool.min_pool(x, 2, pads=1, border="constant", border_value=1, **pool)
    assert y.tolist() == [1, 1, 1, 2, 1] and z.tolist() == [-1, 1, 1, 3, -1]


def test_a_zero_is_count_include_pad():
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    given = {"pads": 1, "layout": "HW"}
    plan = fastpool.plan_avg_pool(x.shape, x.dtype, 3, border="constant", **given)
    assert plan == fastpool.plan_avg_pool(x.shape, x.dtype, 3, count_include_pad=True, **given)


@pytest.mark.parametrize("border", ["reflect", "mirror", "nearest"])
def test_centred_windows_of_maxima_need_no_border(border):
    x = np.random.default_rng(0).integers(0, 255, (9, 11), np.uint8)
    for kernel in (1, 3, 5):
        given = {"pads": kernel // 2, "layout": "HW"}
        y = fastpool.max_pool(x, kernel, border=border, **given)
        np.testing.assert_array_equal(y, fastpool.max_pool(x, kernel, **given))


def test_outputs_and_strided_inputs():
    x = np.arange(48, dtype=np.int16).reshape(6, 8).astype(">i2")[::-1, ::2]
    given = {"pads": 2, "layout": "HW", "border": "wrap", "return_indices": True}
    y, z = fastpool.min_pool(x.astype("i2"), 4, **given)
    out, out_indices = np.empty_like(y), np.empty_like(z)
    results = fastpool.min_pool(x, 4, out=out, out_indices=out_indices, **given)
    assert results[0] is out and results[1] is out_indices
    np.testing.assert_array_equal(out, y)
    np.testing.assert_array_equal(out_indices, z)
    with pytest.raises(ValueError, match="out: overlaps x"):
        fastpool.min_pool(y, 1, out=y, layout="HW", border="wrap")


def test_plans():
    given = {"pads": 1, "layout": "HW", "border": "constant"}
    plan = fastpool.plan_min_pool((4, 5), "float32", 3, border_value=NAN, **given)
    copy = pickle.loads(pickle.dumps(plan))
    assert copy == plan and hash(copy) == hash(plan)
    assert (plan.border, plan.border_value != plan.border_value) == ("constant", True)
    assert "border='constant', border_value=nan" in repr(plan)
    assert '"constant" along H, W: padding is nan' in plan.explain()
    assert plan != fastpool.plan_min_pool((4, 5), "float32", 3, border_value=1, **given)
    with pytest.raises(ValueError, match='border: expected "ignore" for a pooling in parts'):
        plan.tile(np.s_[:2])
    far = fastpool.plan_max_pool((4,), "int8", 10**6, pads=5 * 10**5, border="wrap", layout="W")
    assert "NumPy" in far.explain()
    mean = fastpool.plan_avg_pool((4, 5), "float32", 3, **{**given, "border": "mirror"})
    assert "padding counts (border)" in mean.explain()


@pytest.mark.parametrize(
    "error, text, given",
    [
        (
            ValueError,
            'border: expected one of "ignore".*np.pad: symmetric',
            {"border": "symmetric"},
        ),
        (TypeError, "border: expected one of", {"border": 1}),
        (TypeError, "border: expected one of", {"border": ("wrap",)}),
        (ValueError, "border_value: expected None", {"border_value": 0}),
        (ValueError, "border_value: expected None", {"border": "wrap", "border_value": 0}),
        (ValueError, "that uint8 holds", {"border": "constant", "border_value": 256}),
        (ValueError, "that uint8 holds", {"border": "constant", "border_value": 1.5}),
        (ValueError, "that uint8 holds", {"border": "constant", "border_value": NAN}),
        (TypeError, "border_value: expected a number", {"border": "constant", "border_value": "0"}),
    ],
)
@pytest.mark.parametrize("name", POOLS)
def test_bad_arguments(name, error, text, given):
    with pytest.raises(error, match=text):
        getattr(fastpool, name)(np.zeros((3, 3), np.uint8), 3, pads=1, layout="HW", **given)


def test_no_elements():
    x = np.zeros((0, 3), np.float32)
    with pytest.raises(ValueError, match='x: expected elements .* border "wrap"'):
        fastpool.max_pool(x, 2, pads=1, layout="HW", border="wrap")
    y = fastpool.max_pool(x, 2, pads=1, layout="HW", border="constant", border_value=3)
    np.testing.assert_array_equal(y, np.full((1, 4), 3, np.float32))
    with pytest.raises(ValueError, match="count_include_pad"):
        fastpool.avg_pool(
            np.ones((1, 3)), 1, pads=1, layout="HW", border="wrap", count_include_pad=True
        )


def test_files_refuse_a_border(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(12.0).reshape(3, 4))
    given = {"layout": "HW", "pads": 1, "border": "wrap"}
    with pytest.raises(ValueError, match='border: expected "ignore"'):
        fastpool.files.max_pool(tmp_path / "x.npy", tmp_path / "y.npy", 2, **given)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def test_other_arrays():
    """xarray passes a border on. Chunks refuse it."""
    xarray = pytest.importorskip("xarray")
    import fastpool.xarray

    x = np.arange(12.0).reshape(3, 4)
    for name in POOLS:
        y = getattr(fastpool, name)(
            xarray.DataArray(x, dims=("a", "b")), {"a": 3, "b": 2}, pads=1, border="wrap"
        )
        expected = getattr(fastpool, name)(x, (3, 2), pads=1, border="wrap", layout="HW")
        np.testing.assert_array_equal(y.values, expected)
    dask = pytest.importorskip("dask.array")
    refused = pytest.raises(ValueError, match='border: expected "ignore" for a pooling in parts')
    with refused:
        fastpool.max_pool(dask.from_array(x), 2, pads=1, border="wrap", layout="HW")
    chunks = xarray.DataArray(dask.from_array(x), dims=("a", "b"))
    with refused:
        fastpool.xarray.max_pool(chunks, {"a": 2}, pads=1, border="wrap")
    y = fastpool.xarray.max_pool(chunks, {"a": 2})
    np.testing.assert_array_equal(y.values, fastpool.max_pool(x, (2, 1), layout="HW"))
