"""Blocks and rolling windows of xarray objects equal those of xarray itself."""

import doctest
import importlib
import warnings

import numpy as np
import pytest

import cases

xarray = pytest.importorskip("xarray")

import fastpool.xarray as fastpool_xarray  # noqa: E402
from fastpool import block_reduce, pyramid  # noqa: E402

coarsen, rolling = fastpool_xarray.coarsen, fastpool_xarray.rolling
BLOCKS = "max", "min", "mean", "sum", "std", "var", "median", "count"
ROLLED = "max", "min", "mean", "sum", "count"
DTYPES = "float32", "float64", "uint8", "int16", "int32", "int64", "bool"


@pytest.fixture(autouse=True)
def one_thread():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of means of nothing
        dask = pytest.importorskip("dask")
        with dask.config.set(scheduler="sync"):
            yield


def drawn(rng):
    """Return a DataArray with coordinates of several kinds."""
    dims = rng.permutation(["time", "lat", "lon"])[: rng.integers(1, 4)].tolist()
    shape = [int(rng.integers(1, 12)) for _ in dims]
    values = rng.standard_normal(shape) * 20
    dtype = np.dtype(str(rng.choice(DTYPES)))
    values = abs(values) if dtype.kind == "u" else values
    values = values > 0 if dtype.kind == "b" else values.astype(dtype)
    if dtype.kind == "f" and rng.random() < 0.6:
        values[rng.random(shape) < 0.3] = np.nan
    coords = {"scalar": 3.5}
    for dim, size in zip(dims, shape, strict=True):
        kind = rng.integers(4)
        if kind == 0:
            coords[dim] = (dim, np.arange(size) * 0.1, {"units": "degrees"})
        if kind == 1:
            coords[dim] = np.arange(size)[::-1]
        if kind == 2:
            coords[dim] = np.datetime64("2026-05-01", "ns") + np.arange(size) * np.timedelta64(
                7, "h"
            )
            coords[f"of_{dim}"] = (dim, rng.random(size).astype(np.float32))
    if len(dims) > 1:
        coords["grid"] = ((dims[1], dims[0]), rng.random((shape[1], shape[0])))
    name = str(rng.choice(["rain", ""])) or None
    return xarray.DataArray(values, coords, dims, name, {"units": "mm"})


def windows_of(rng, x, beyond):
    dims = [dim for dim in x.dims if rng.random() < 0.7] or x.dims[:1]
    return {dim: int(rng.integers(1, x.sizes[dim] + beyond)) for dim in dims}


def assert_equal(got, want, exact):
    """Compare coordinates bit for bit, and values exactly or within their rounding."""
    assert (got.name, got.dims, got.attrs) == (want.name, want.dims, want.attrs)
    assert list(got.coords) == list(want.coords)
    for name in want.coords:
        mine, theirs = got[name].variable, want[name].variable
        assert (mine.dims, mine.dtype, mine.attrs) == (theirs.dims, theirs.dtype, theirs.attrs)
        assert mine.values.tobytes() == theirs.values.tobytes()
    assert list(got.indexes) == list(want.indexes)
    mine, theirs = got.values.astype(float), want.values.astype(float)
    if exact:
        np.testing.assert_array_equal(mine, theirs)
    else:
        unit = np.finfo(got.dtype).eps
        np.testing.assert_allclose(mine, theirs, rtol=20 * unit, atol=400 * unit)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lazily", [False, True])
def test_random_blocks(seed, lazily):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        x = drawn(rng)
        windows = windows_of(rng, x, 1)
        boundary = str(rng.choice(["exact", "trim", "pad"]))
        if boundary == "exact":
            sizes = {dim: slice(x.sizes[dim] // k * k) for dim, k in windows.items()}
            x = x.isel(sizes)
        side = {dim: str(rng.choice(["left", "right"])) for dim in windows}
        side = side if rng.random() < 0.5 else "left"
        options = {"boundary": boundary, "side": side}
        options["coord_func"] = {"grid": "min"} if rng.random() < 0.3 else "mean"
        func = str(rng.choice(BLOCKS))
        x = x.chunk(dict.fromkeys(x.dims, 2)) if lazily else x
        # Of the numbers in float64: xarray rounds sums and padded integers to float32.
        wide = x if x.dtype.kind in "iub" and boundary != "pad" else x.astype(float)
        want = getattr(wide.coarsen(windows, **options), func)()
        got = getattr(coarsen(x, windows, **options), func)()
        assert (got.chunks is not None) == lazily
        exact = func in ("max", "min", "count") or (func == "sum" and x.dtype.kind != "f")
        assert_equal(got, want, exact)
        if x.dtype.kind == "f" and func != "count":
            assert got.dtype == x.dtype
        elif boundary != "pad":
            assert got.dtype == want.dtype


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lazily", [False, True])
def test_random_rolling_windows(seed, lazily):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        x = drawn(rng)
        windows = windows_of(rng, x, 4)
        taps = int(np.prod([*windows.values()]))
        options = {"min_periods": [None, 1, int(rng.integers(1, taps + 1))][rng.integers(3)]}
        center = {dim: bool(rng.integers(2)) for dim in windows}
        options["center"] = [True, False, center][rng.integers(3)]
        func = str(rng.choice(ROLLED))
        with xarray.set_options(use_bottleneck=False):
            want = getattr(x.astype(float).rolling(windows, **options), func)()
        got = getattr(rolling(x.chunk(2) if lazily else x, windows, **options), func)()
        assert (got.chunks is not None) == lazily
        floats = x.dtype.kind == "f" and func != "count"
        assert got.dtype == (x.dtype if floats else np.float64)
        assert_equal(got, want, func in ("max", "min", "count"))


def test_chunks_give_the_bits_of_one_piece():
    x = xarray.DataArray(np.random.default_rng(0).random((30, 41), np.float32), dims=("y", "x"))
    chunked = x.chunk({"y": (7, 20, 3), "x": 9})
    for center in (False, True):
        for periods in (None, 1, 9):
            options = {"min_periods": periods, "center": center}
            for func in ROLLED:
                want = getattr(rolling(x, y=5, x=8, **options), func)()
                got = getattr(rolling(chunked, y=5, x=8, **options), func)()
                np.testing.assert_array_equal(got.values, want.values, strict=True)
    for func in BLOCKS:
        options = {"boundary": "pad", "side": {"y": "right"}}
        want = getattr(coarsen(x, y=4, x=7, **options), func)()
        got = getattr(coarsen(chunked, y=4, x=7, **options), func)()
        np.testing.assert_array_equal(got.values, want.values, strict=True)


def test_float16_and_wide_integers():
    x = xarray.DataArray(np.array([6e4, 1, 2, 3], np.float16), dims="t")
    assert rolling(x, t=2).max().dtype == coarsen(x, t=2).median().dtype == np.float16
    big = xarray.DataArray(np.array([2**62 + 1, 2**62 + 3], np.int64), dims="t")
    assert coarsen(big, t=2).max().values.tolist() == [2**62 + 3]
    padded = coarsen(xarray.DataArray(np.arange(5, dtype=np.uint8), dims="t"), t=2, boundary="pad")
    assert padded.max().dtype == np.uint8 and padded.sum().dtype == np.uint64


def test_nan_of_blocks():
    x = xarray.DataArray([1.0, np.nan, 3, 4, np.nan, np.nan], {"t": np.arange(6.0)}, dims="t")
    blocks = coarsen(x, t=2)
    assert blocks.max(skipna=False).values.tolist()[1:2] == [4]
    assert np.isnan(blocks.max(skipna=False).values[[0, 2]]).all()
    np.testing.assert_array_equal(blocks.sum(), [1, 7, 0])
    np.testing.assert_array_equal(blocks.sum(min_count=2), [np.nan, 7, np.nan])
    np.testing.assert_array_equal(blocks.var(ddof=1), [np.nan, 0.5, np.nan])
    np.testing.assert_array_equal(blocks.count(), [1, 2, 0])
    assert blocks.mean(numerics="exact").t.values.tolist() == [0.5, 2.5, 4.5]


@pytest.mark.parametrize("make", [coarsen, rolling])
def test_datasets(make):
    x = xarray.DataArray(np.arange(12.0).reshape(3, 4), {"t": [1, 2, 3, 4]}, ("y", "t"))
    x.attrs["units"] = "mm"
    data = xarray.Dataset(
        {"both": x, "one": ("t", np.arange(4)), "none": ("z", ["a", "b"], {"k": 1})},
        {"far": ("z", [5, 6])}, {"title": "rain"},
    )  # fmt: skip
    for keep_attrs in (None, True, False):
        theirs = getattr(data, make.__name__)(y=3, t=2).max(keep_attrs=keep_attrs)
        got = make(data, {"y": 3, "t": 2}).max(keep_attrs=keep_attrs)
        xarray.testing.assert_identical(got, theirs)
    with xarray.set_options(keep_attrs=False):
        assert make(x, t=2).max().attrs == make(data, t=2).max().attrs == {}
    for values in (["a", "b", "c", "d"], np.arange(4).astype("M8[ns]"), [None] * 4):
        with pytest.raises(TypeError, match=r"^obj\['text'\]: expected one of"):
            make(data.assign(text=("t", values)), t=2)


def test_a_coordinate_itself():
    x = xarray.DataArray(np.arange(6.0), {"t": np.arange(6.0)}, dims="t")["t"]
    xarray.testing.assert_identical(coarsen(x, t=2).max(), x.coarsen(t=2).max())
    xarray.testing.assert_identical(rolling(x, t=2).max(), x.rolling(t=2).max())


def test_large_windows_cost_nothing():
    x = xarray.DataArray(np.arange(6.0), dims="t")
    assert np.isnan(rolling(x, t=2**62).max()).all()
    assert rolling(x, t=2**62, min_periods=1).max().values.tolist() == [0, 1, 2, 3, 4, 5]
    assert rolling(x, t=2**62, min_periods=6, center=True).sum().values.tolist() == [15] * 6
    assert coarsen(x, t=2**62, boundary="pad").max().values.tolist() == [5]
    assert coarsen(x, t=2**62, boundary="trim").max().shape == (0,)
    assert rolling(x[:0], t=3).max().shape == coarsen(x[:0], t=3).max().shape == (0,)


X = xarray.DataArray(np.zeros((4, 6)), dims=("y", "x"))


@pytest.mark.parametrize("make", [coarsen, rolling])
@pytest.mark.parametrize(
    ("obj", "dim", "windows", "error", "match"),
    [
        (X.values, {"y": 2}, {}, TypeError, "^obj: expected an xarray"),
        (X, None, {}, TypeError, "^dim: expected a mapping"),
        (X, 2, {}, TypeError, "^dim: expected a mapping"),
        (X, {"y": 2}, {"x": 2}, ValueError, "^dim: "),
        (X, {"z": 2}, {}, ValueError, "^dim: .*'y', 'x'.*'z'"),
        (X, {"y": 0}, {}, ValueError, r"^dim\['y'\]: .*at least 1"),
        (X, {"y": 2.0}, {}, TypeError, r"^dim\['y'\]: "),
        (X, {"y": True}, {}, TypeError, r"^dim\['y'\]: "),
        (X.astype(complex), {"y": 2}, {}, TypeError, "^obj: expected one of"),
    ],
)
def test_bad_windows(make, obj, dim, windows, error, match):
    with pytest.raises(error, match=match):
        make(obj, dim, **windows)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: coarsen(X, y=3), ValueError, "^boundary: .*'y'.*3.*4"),
        (lambda: coarsen(X, y=2, boundary="keep"), ValueError, "^boundary: "),
        (lambda: coarsen(X, y=2, boundary={"z": "pad"}), ValueError, "^boundary: .*'z'"),
        (lambda: coarsen(X, y=2, side="top"), ValueError, "^side: "),
        (lambda: coarsen(X, y=2, side={"y": 1}), TypeError, r"^side\['y'\]: "),
        (lambda: coarsen(X, y=2).mean(skipna=2), ValueError, "^skipna"),
        (lambda: coarsen(X, y=2).mean(min_count=3), ValueError, "^min_count"),
        (lambda: coarsen(X, y=2).mean(numerics="fast"), ValueError, "^numerics"),
        (lambda: coarsen(X, y=2).var(ddof=-1), ValueError, "^ddof"),
        (lambda: coarsen(X, y=2).max(keep_attrs="all"), TypeError, "^keep_attrs"),
        (lambda: coarsen(X, y=2).count(min_count=1), TypeError, "min_count"),
        (lambda: coarsen(X.astype(int), y=2).max(min_count=2), ValueError, "^min_count: no int64"),
        (lambda: rolling(X, y=2, center="y"), TypeError, "^center: "),
        (lambda: rolling(X, y=2, center={"z": True}), ValueError, "^center: .*'z'"),
        (lambda: rolling(X, y=2, min_periods=0), ValueError, "^min_periods"),
        (lambda: rolling(X, y=2, min_periods=1.0), TypeError, "^min_periods"),
        (lambda: rolling(X, y=2, x=3, min_periods=7), ValueError, "^min_periods: .*6.*obj.*7"),
        (lambda: rolling(X, y=2).mean(numerics="fast"), ValueError, "^numerics"),
        (
            lambda: coarsen(X.assign_coords(c=("y", list("abcd"))), y=2).max(),
            TypeError,
            "^coord_func: .*'c'",
        ),
    ],
)
def test_bad_arguments(call, error, match):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("name", ["_coarsen", "_rolling"])
def test_docstrings(name):
    results = doctest.testmod(importlib.import_module(f"fastpool.xarray.{name}"))
    assert results.attempted > 3 and results.failed == 0


def test_page():
    cases.check_page("coming-from/xarray.md")


def test_blocks_name_coarsen():
    x = xarray.DataArray(np.ones((4, 4)), dims=("y", "x"))
    for call in (lambda: block_reduce(x, 2, "max"), lambda: pyramid(x, 1)):
        with pytest.raises(TypeError, match="^x: .*coarsen"):
            call()
