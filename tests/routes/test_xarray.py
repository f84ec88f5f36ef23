"""fastpool.xarray pools dimensions by name, and keeps names, attributes and coordinates."""

import doctest
import importlib

import numpy as np
import pytest

import cases
import fastpool
from data_arrays import DIMS, WINDOWS, located, sample

xarray = pytest.importorskip("xarray")
pd = pytest.importorskip("pandas")
fastpool_xarray = importlib.import_module("fastpool.xarray")


def pooled_apart(x, window, **attributes):
    """Values and indices, by moving the pooled dimensions to the end first."""
    axes = [i for i, dim in enumerate(x.dims) if dim in window]
    ends = list(range(x.ndim - len(axes), x.ndim))
    moved = np.moveaxis(x.values, axes, ends)
    where = np.moveaxis(np.arange(x.size).reshape(x.shape), axes, ends)
    outer = moved.shape[: x.ndim - len(axes)]
    kernel = [window[dim] for dim in x.dims if dim in window]
    flat = np.ascontiguousarray(moved).reshape(-1, 1, *moved.shape[len(outer) :])
    y, indices = fastpool.max_pool(flat, kernel, return_indices=True, **attributes)
    indices = where.ravel()[indices]
    shape = (*outer, *y.shape[2:])
    return [np.moveaxis(array.reshape(shape), ends, axes) for array in (y, indices)]


@pytest.mark.parametrize("pooled", WINDOWS, ids="-".join)
def test_any_dimensions(pooled):
    """Whatever is pooled, and in whatever order it is named."""
    window = {dim: 2 + (dim == "lat") for dim in reversed(pooled)}
    for attributes in ({}, {"strides": 2, "pads": 1}, {"ceil_mode": True, "strides": 3}):
        x = sample()
        got = fastpool_xarray.max_pool(x, window, return_indices=True, **attributes)
        for result, expected in zip(got, pooled_apart(x, window, **attributes), strict=True):
            assert result.dims == x.dims
            np.testing.assert_array_equal(result.values, expected, strict=True)
        alone = fastpool_xarray.max_pool(x, window, **attributes)
        xarray.testing.assert_identical(alone, got[0])


@pytest.mark.parametrize("dims", [("lat",), ("lat", "lon"), ("lon", "band", "lat")])
def test_any_rank(dims):
    x = sample(dims)
    y, indices = fastpool_xarray.max_pool(x, dict.fromkeys(dims, 2), return_indices=True)
    expected, where = pooled_apart(x, dict.fromkeys(dims, 2))
    np.testing.assert_array_equal(y.values, expected)
    np.testing.assert_array_equal(indices.values, where)
    np.testing.assert_array_equal(x.values.ravel()[indices], y)


@pytest.mark.parametrize("last", ["lon", "band"])
def test_attributes_by_name(last):
    """What a mapping says, and what it leaves out; with the channels last, and without."""
    x = sample(("time", "band", "lat", "lon") if last == "lon" else DIMS)
    got = fastpool_xarray.max_pool(
        x,
        {"lat": 3, "lon": 2},
        strides={"lon": 2},
        dilations={"lat": 2},
        pads={"lat": 1, "lon": (0, 1)},
        return_indices=True,
        index_dtype="int32",
        num_threads=1,
    )
    expected = pooled_apart(
        x, {"lat": 3, "lon": 2}, strides=[1, 2], dilations=[2, 1], pads=[1, 0, 1, 1]
    )
    np.testing.assert_array_equal(got[0].values, expected[0])
    np.testing.assert_array_equal(got[1].values, expected[1])
    assert got[1].dtype == np.int32
    for attributes in ({"auto_pad": "SAME_LOWER", "strides": 2}, {"pads": [0, 1]}, {"pads": None}):
        y = fastpool_xarray.max_pool(x, {"lat": 2}, **attributes)
        if isinstance(attributes.get("pads"), list):
            attributes = {"pads": [0, 1]}
        np.testing.assert_array_equal(y, pooled_apart(x, {"lat": 2}, **attributes)[0])


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint16", "int64", "bool"])
def test_types(dtype):
    x = sample(dtype=dtype)
    y = fastpool_xarray.max_pool(x, {"lat": 2, "band": 2})
    np.testing.assert_array_equal(y, pooled_apart(x, {"lat": 2, "band": 2})[0], strict=True)


def test_the_general_functions_take_data_arrays():
    x = located()
    window = {"lat": 2, "band": 2}
    got = fastpool.max_pool(x, window, strides={"band": 2}, return_indices=True)
    expected = fastpool_xarray.max_pool(x, window, strides={"band": 2}, return_indices=True)
    for result, same in zip(got, expected, strict=True):
        xarray.testing.assert_identical(result, same)
    back = fastpool.max_unpool(*got, window, strides={"band": 2})
    same = fastpool_xarray.max_unpool(*got, window, strides={"band": 2})
    xarray.testing.assert_identical(back, same)
    with pytest.raises(TypeError, match="^x: fastpool.xarray.max_pool pools .* 'layout'$"):
        fastpool.max_pool(x, window, layout="HWC")
    with pytest.raises(TypeError, match="^kernel_shape: expected a mapping"):
        fastpool.max_pool(x, 2)
    for name in ("global_avg_pool", "global_max_pool", "global_lp_pool"):
        with pytest.raises(TypeError, match=f"^x: fastpool.xarray.{name} pools .* 'dims'$"):
            getattr(fastpool, name)(x)


def test_views():
    x = located().isel(lat=slice(None, None, -1), lon=slice(1, None, 2)).transpose(..., "time")
    y = fastpool_xarray.max_pool(x, {"lat": 2, "time": 2})
    np.testing.assert_array_equal(y, pooled_apart(x, {"lat": 2, "time": 2})[0])


def test_nan():
    x = sample(("lat", "lon"))
    x[2, 3] = np.nan
    window = {"lat": 2, "lon": 2}
    ignored = fastpool_xarray.max_pool(x, window, strides=2, nan="ignore")
    xarray.testing.assert_equal(ignored, x.coarsen(window, boundary="trim").max())
    propagated = fastpool_xarray.max_pool(x, window, strides=2)
    xarray.testing.assert_equal(propagated, ignored.where([[1, 1, 1], [1, 0, 1], [1, 1, 1]]))


# --------------------------------------------------------------------------- means and others


@pytest.mark.parametrize("window", [{"lat": 3}, {"lat": 3, "lon": 2}, {"time": 4, "band": 2}])
@pytest.mark.parametrize("dtype", ["float64", "uint8"])
def test_means_like_coarsen(window, dtype):
    x = located().drop_vars(["place", "sea", "band"]).astype(dtype)
    y = fastpool_xarray.avg_pool(x, window, strides=window, dtype="float64")
    # NumPy rounds each sum, and quotients of small integers once.
    xarray.testing.assert_equal(y, x.coarsen(window, boundary="trim").mean())


def test_attributes_of_means():
    x = sample(("time", "lat", "lon"), np.int16).rename("rain").assign_attrs(units="mm")
    attributes = {"ceil_mode": True, "count_include_pad": True, "beyond": "count"}
    attributes |= {"rounding": "trunc", "nan": "ignore", "numerics": "sequential"}
    got = fastpool_xarray.avg_pool(
        x, {"lat": 3, "time": 2}, strides={"lat": 2}, pads={"lat": (1, 0)}, **attributes
    )
    expected = fastpool.avg_pool(
        x.values, (2, 3), strides=(1, 2), pads=(0, 1, 0, 0), layout="HWC", **attributes
    )
    np.testing.assert_array_equal(got.values, expected, strict=True)
    assert (got.name, got.attrs, got.dims) == ("rain", {"units": "mm"}, x.dims)
    sums = fastpool_xarray.avg_pool(x, {"lat": 2}, divisor=1, dtype="int32")
    np.testing.assert_array_equal(sums, x.rolling(lat=2).sum()[:, 1:])


@pytest.mark.parametrize("dims", ["lat", ["lat"], ("lon", "time"), DIMS])
@pytest.mark.parametrize("keepdims", [True, False])
def test_whole_dimensions(dims, keepdims):
    x = located().drop_vars(["place", "sea", "band"]).rename("rain").astype("float64")
    same = {"keepdims": keepdims}
    y = fastpool_xarray.global_avg_pool(x, dims, **same)
    top, indices = fastpool_xarray.global_max_pool(x, dims, **same, return_indices=True)
    least, places = fastpool_xarray.global_min_pool(x, dims, **same, return_indices=True)
    for got, want in (
        (y, x.mean(dims, **same, keep_attrs=True)),
        (top, x.max(dims, **same, keep_attrs=True)),
        (least, x.min(dims, **same, keep_attrs=True)),
    ):
        if keepdims:  # xarray drops their coordinates
            got = got.drop_vars(set(got.coords) - set(want.coords))
        xarray.testing.assert_identical(got, want)
    np.testing.assert_array_equal(x.values.ravel()[indices], top)
    np.testing.assert_array_equal(x.values.ravel()[places], least)
    if keepdims:
        blocks = {dim: x.sizes[dim] for dim in ([dims] if dims == "lat" else dims)}
        xarray.testing.assert_identical(y, x.coarsen(blocks).mean())


@pytest.mark.parametrize(
    ("size", "lat", "lon"),
    [
        ({"lat": 4}, [49.5, 48.5, 46.5, 45.5], range(7)),
        ({"lat": 3, "lon": 3}, [49.5, 47.5, 45.5], [1, 3, 5]),
        ({"lon": 9, "lat": None}, range(50, 44, -1), [0, 0.5, 1.5, 2.5, 3, 3.5, 4.5, 5.5, 6]),
    ],
)
def test_adaptive_windows(size, lat, lon):
    x = located()
    y = fastpool_xarray.adaptive_avg_pool(x, size)
    sizes = [size.get(dim) for dim in x.dims]
    expected = fastpool.adaptive_avg_pool(x.values[None, None], [*sizes])[0, 0]
    np.testing.assert_array_equal(y.values, expected, strict=True)
    assert y.lat.values.tolist() == [*lat] and y.lon.values.tolist() == [*lon]
    assert y.place.values.tolist() == [x.place.values[int(at)] for at in lon]


@pytest.mark.parametrize("op", ["max", "min"])
def test_adaptive_maxima_and_minima(op):
    x = located()
    adaptive = getattr(fastpool_xarray, f"adaptive_{op}_pool")
    got = adaptive(x, {"lat": 3, "band": 2}, return_indices=True)
    pool = getattr(fastpool_xarray, f"{op}_pool")
    same = pool(x, {"lat": 2, "band": 2}, strides=2, return_indices=True)
    for result, expected in zip(got, same, strict=True):
        xarray.testing.assert_identical(result, expected)


def test_the_general_functions_take_data_arrays_for_means():
    x = located()
    for name, *arguments in (
        ("avg_pool", {"lat": 2, "band": 2}),
        ("adaptive_avg_pool", {"lat": 4}),
        ("adaptive_max_pool", {"lat": 3}),
        ("min_pool", {"lat": 2, "band": 2}),
        ("adaptive_min_pool", {"lat": 3}),
    ):
        got = getattr(fastpool, name)(x, *arguments)
        xarray.testing.assert_identical(got, getattr(fastpool_xarray, name)(x, *arguments))
    for function in (fastpool.global_avg_pool, fastpool.global_max_pool, fastpool.global_min_pool):
        with pytest.raises(TypeError, match="dims"):
            function(x)


# --------------------------------------------------------------------------- chunks

CHUNKS = [{"lat": 2}, {"time": 1, "lat": 4, "lon": 3, "band": 2}, {"lon": (1, 5, 1)}]


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("window", [{"lat": 3, "lon": 2}, {"band": 2}, {"lat": 2, "band": 4}])
def test_chunks(window, chunks):
    """The same as in memory, and lazily."""
    pytest.importorskip("dask")
    x = located()
    attributes = {"strides": 2, "pads": 1, "return_indices": True}
    expected = fastpool_xarray.max_pool(x, window, **attributes)
    got = fastpool_xarray.max_pool(x.chunk(chunks), window, **attributes)
    for result, same in zip(got, expected, strict=True):
        assert result.chunks is not None
        xarray.testing.assert_identical(result.compute(scheduler="synchronous"), same)

    found = fastpool_xarray.labels(got[1], x, "lat")
    assert found.chunks is not None
    same = fastpool_xarray.labels(expected[1], x, "lat")
    xarray.testing.assert_identical(found.compute(scheduler="synchronous"), same)

    back = fastpool_xarray.max_unpool(*got, window, strides=2, pads=1, like=x)
    same = fastpool_xarray.max_unpool(*expected, window, strides=2, pads=1, like=x)
    assert back.chunks is not None
    xarray.testing.assert_identical(back.compute(scheduler="synchronous"), same)


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("avg_pool", {"lat": 3, "lon": 2}),
        ("global_avg_pool", ["lat", "lon"]),
        ("global_max_pool", "lat"),
        ("adaptive_avg_pool", {"lat": 4, "lon": 3}),
        ("adaptive_max_pool", {"lat": 4, "band": 3}),
        ("min_pool", {"lat": 3, "lon": 2}),
        ("global_min_pool", "lat"),
        ("adaptive_min_pool", {"lat": 4, "band": 3}),
    ],
)
def test_chunks_of_means(name, argument, chunks):
    pytest.importorskip("dask")
    x = located()
    function = getattr(fastpool_xarray, name)
    variants = [{}] if not name.startswith("global") else [{}, {"keepdims": False}]
    for attributes in variants:
        got = function(x.chunk(chunks), argument, **attributes)
        assert got.chunks is not None
        same = function(x, argument, **attributes)
        xarray.testing.assert_identical(got.compute(scheduler="synchronous"), same)


# --------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"kernel_shape": 2}, TypeError, "kernel_shape.*mapping"),
        ({"kernel_shape": [2, 2]}, TypeError, "kernel_shape.*mapping"),
        ({"kernel_shape": None}, TypeError, "kernel_shape.*mapping"),
        ({"kernel_shape": {}}, TypeError, "kernel_shape.*mapping"),
        ({"kernel_shape": {"height": 2}}, ValueError, "kernel_shape.*'time'.*'height'"),
        ({"kernel_shape": {"lat": 2.0}}, TypeError, "kernel_shape"),
        ({"kernel_shape": {"lat": 0}}, ValueError, "kernel_shape"),
        ({"kernel_shape": {"lat": 7}}, ValueError, "kernel_shape.*exceeds"),
        ({"strides": {"lon": 2}}, ValueError, "strides.*'lat'.*'lon'"),
        ({"strides": 0}, ValueError, "strides"),
        ({"strides": "2"}, ValueError, "strides"),
        ({"dilations": {"band": 1}}, ValueError, "dilations"),
        ({"pads": {"lat": -1}}, ValueError, "pads"),
        ({"pads": {"lat": (1, 2, 3)}}, TypeError, "pads"),
        ({"auto_pad": "same"}, ValueError, "auto_pad"),
        ({"nan": "skip"}, ValueError, "nan"),
        ({"layout": "NCHW"}, TypeError, "layout"),
    ],
)
def test_bad_attributes(change, error, match):
    with pytest.raises(error, match=match):
        fastpool_xarray.max_pool(sample(), **{"kernel_shape": {"lat": 2}} | change)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda f, x: f.avg_pool(x, 2), TypeError, "kernel_shape.*mapping"),
        (lambda f, x: f.avg_pool(x, {"lat": 2}, dtype="f2"), TypeError, "^dtype: expected"),
        (lambda f, x: f.avg_pool(x, {"lat": 2}, divisor=0), ValueError, "divisor"),
        (lambda f, x: f.adaptive_avg_pool(x, 2), TypeError, "output_size.*mapping"),
        (lambda f, x: f.adaptive_avg_pool(x, {"height": 2}), ValueError, "output_size.*'height'"),
        (lambda f, x: f.adaptive_max_pool(x, {"lat": -1}), ValueError, "output_size"),
        (lambda f, x: f.global_avg_pool(x, "height"), ValueError, "dims: .*'time'.*'height'"),
        (lambda f, x: f.global_avg_pool(x, []), TypeError, "dims: expected one dimension"),
        (lambda f, x: f.global_avg_pool(x, [["lat"]]), TypeError, "dims: expected one dimension"),
        (lambda f, x: f.global_avg_pool(x[:0], "time"), ValueError, "x: .*'time', got none"),
        (lambda f, x: f.global_max_pool(x, "lat", keepdims=2), ValueError, "keepdims"),
        (lambda f, x: f.global_max_pool(x.values, "lat"), TypeError, "x: expected an xarray"),
    ],
)
def test_bad_attributes_of_means(call, error, match):
    with pytest.raises(error, match=match):
        call(fastpool_xarray, sample())


def test_errors_name_dimensions():
    x = sample()
    y, indices = fastpool_xarray.max_pool(x, {"lat": 2}, return_indices=True)
    size = x.sizes["lat"]
    window = rf"^kernel_shape\['lat'\]: window .* padded input {size} .* of dimension 'lat'$"
    for call, match in (
        (lambda: fastpool_xarray.max_pool(x, {"lat": 99}), window),
        (lambda: fastpool_xarray.avg_pool(x, {"lat": 99}), window),
        (lambda: fastpool_xarray.lp_pool(x.astype(float), {"lat": 99}), window),
        (lambda: fastpool_xarray.avg_pool(x, {"lat": 2}, strides=0), r"^strides\['lat'\]: "),
        (
            lambda: fastpool_xarray.max_pool(x, {"time": 2, "lat": 2}, pads={"lat": (0, -1)}),
            r"^pads\['lat'\]: expected an int of at least 0, got -1$",
        ),
        (
            lambda: fastpool_xarray.adaptive_avg_pool(x[:, :0], {"lat": 2}),
            r"^output_size\['lat'\]: expected 0 for an axis without elements, got 2$",
        ),
        (
            lambda: fastpool_xarray.max_unpool(y, indices, {"lat": 2}, pads={"lat": 99}),
            "^pads: the unpooled extent .* of dimension 'lat' is not positive$",
        ),
    ):
        with pytest.raises(ValueError, match=match):
            call()


def test_bad_arrays():
    x = sample()
    for wrong in (x.values, x.to_dataset(name="v"), None, x.variable):
        with pytest.raises(TypeError, match="^x: expected an xarray.DataArray"):
            fastpool_xarray.max_pool(wrong, {"lat": 2})
    with pytest.raises(TypeError, match="map"):
        fastpool_xarray.max_pool(x.to_dataset(name="v"), {"lat": 2})
    with pytest.raises(TypeError, match="^x: expected one of float16, .*, got dtype complex"):
        fastpool_xarray.max_pool(x.astype(complex), {"lat": 2})
    y, indices = fastpool_xarray.max_pool(x, {"lat": 2}, return_indices=True)
    swapped = indices.transpose()
    for call in (
        lambda i: fastpool_xarray.max_unpool(y, i, {"lat": 2}),
        lambda i: fastpool_xarray.labels(i, x, "lat"),
    ):
        with pytest.raises(ValueError, match="indices: expected dimensions"):
            call(swapped)
        with pytest.raises(TypeError, match="indices"):
            call(indices.values)
        with pytest.raises(TypeError, match="indices.*float64"):
            call(indices.astype(float))
        with pytest.raises(ValueError, match="indices"):
            call(indices + 10**6)
    with pytest.raises(ValueError, match="like: expected dimensions"):
        fastpool_xarray.max_unpool(y, indices, {"lat": 2}, like=x.transpose())
    with pytest.raises(ValueError, match="dim: .*height"):
        fastpool_xarray.labels(indices, x, "height")


def test_datasets_by_their_own_map():
    """As the recipe says."""
    x = located()
    dataset = xarray.Dataset({"a": x, "b": -x})
    y = dataset.map(fastpool_xarray.max_pool, kernel_shape={"lat": 2}, strides=2)
    for name in "ab":
        expected = fastpool_xarray.max_pool(dataset[name], {"lat": 2}, strides=2)
        xarray.testing.assert_equal(y[name], expected)


def test_without_xarray():
    line = 'AttributeError: fastpool.xarray needs xarray: pip install "fastpool[xarray]"'
    assert cases.error_without("xarray", "import fastpool; fastpool.xarray") == line


@pytest.mark.parametrize("name", ["", "._adaptive", "._lp"])
def test_docstrings(name):
    results = doctest.testmod(importlib.import_module(f"fastpool.xarray{name}"))
    assert results.attempted > 5 and results.failed == 0


def test_recipe():
    cases.check_page("xarray.md")


@pytest.mark.parametrize("name", ["max_pool", "avg_pool", "lp_pool"])
def test_strides_of_the_window(name):
    function, window = getattr(fastpool_xarray, name), {"lat": 2, "lon": 3}
    x = located()
    expected = function(x, window, strides=window)
    xarray.testing.assert_identical(function(x, window, strides="window"), expected)
    with pytest.raises(ValueError, match='^strides: expected "window" or ints, got'):
        function(x, window, strides="lat")
    for argument in ("pads", "dilations"):
        with pytest.raises(TypeError, match=f"^{argument}: "):
            function(x, window, **{argument: "window"})


def test_strides_of_the_window_in_chunks_and_back():
    pytest.importorskip("dask")
    window = {"lat": 2, "lon": 3}
    x = sample()
    expected = fastpool_xarray.max_pool(x, window, strides=window, return_indices=True)
    chunked = x.chunk({"lat": 4, "time": 2})
    got = fastpool_xarray.max_pool(chunked, window, strides="window", return_indices=True)
    for result, wanted in zip(got, expected, strict=True):
        xarray.testing.assert_identical(result.compute(), wanted)
    back = fastpool_xarray.max_unpool(*expected, window, strides="window", like=x)
    wanted = fastpool_xarray.max_unpool(*expected, window, strides=window, like=x)
    xarray.testing.assert_identical(back, wanted)
