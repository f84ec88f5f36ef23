"""Coordinates of what fastpool.xarray pools, and labels of its indices."""

import importlib

import numpy as np
import pytest

import fastpool
from data_arrays import DIMS, WINDOWS, located, sample

xarray = pytest.importorskip("xarray")
pd = pytest.importorskip("pandas")
fastpool_xarray = importlib.import_module("fastpool.xarray")


@pytest.mark.parametrize("window", [{"lat": 2}, {"lat": 3, "lon": 2}, {"time": 4, "lon": 3}])
def test_like_coarsen(window):
    """Of blocks, values and coordinates are those of coarsen."""
    x = located().drop_vars(["place", "sea", "band"])
    y = fastpool_xarray.max_pool(x, window, strides=window)
    xarray.testing.assert_equal(y, x.coarsen(window, boundary="trim").max())


def test_windows_around_each_element_keep_coordinates():
    x = located()
    y = fastpool_xarray.max_pool(x, {"lat": 3, "lon": 5}, pads={"lat": 1, "lon": 2})
    assert y.coords.identical(x.coords)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lat", [49.5, 47.5, 45.5]),
        ("row", [5.5, 3.5, 1.5]),
        ("sea", [True, True, False]),
        ("lon", [0.5, 2.5, 4.5]),
        ("place", ["a", "c", "e"]),
        ("x", np.arange(42.0).reshape(6, 7)[::2, :-1:2] + 4),
        ("time", pd.date_range("2026-01-01T12", periods=2, freq="2D")),
        ("lead", np.array([90, 450], "timedelta64[m]")),
        ("band", ["r", "g", "b", "n"]),
        ("run", 7),
    ],
)
def test_centres(name, expected):
    x = located()
    y, indices = fastpool_xarray.max_pool(
        x, {"time": 2, "lat": 2, "lon": 2}, strides=2, return_indices=True
    )
    np.testing.assert_array_equal(y[name].values, expected)
    assert y[name].attrs == x[name].attrs
    assert y.coords.identical(indices.coords)
    assert set(y.coords) == set(x.coords)


def test_centres_outside():
    x = xarray.DataArray(np.arange(4), {"i": [10, 11, 12, 13]})
    y = fastpool_xarray.max_pool(x, {"i": 2}, pads={"i": (3, 2)})
    assert y.i.values.tolist() == [10, 10, 10, 10.5, 11.5, 12.5, 13, 13]
    y = fastpool_xarray.max_pool(x, {"i": 3}, strides=3, ceil_mode=True)
    assert y.i.values.tolist() == [11, 13] and y.i.dtype == x.i.dtype


def test_dilated_centres():
    x = xarray.DataArray(np.arange(6), {"i": np.arange(6)})
    assert fastpool_xarray.max_pool(x, {"i": 2}, dilations=3).i.values.tolist() == [1.5, 2.5, 3.5]


def test_no_overflow_in_the_middle():
    big = np.array([250, 255, 5, 1], np.uint8)
    x = xarray.DataArray(np.arange(4), {"i": big})
    assert fastpool_xarray.max_pool(x, {"i": 2}).i.values.tolist() == [252.5, 130, 3]


def test_objects_and_categories():
    x = xarray.DataArray(np.arange(4), dims="i").assign_coords(
        o=("i", np.array([1, "b", None, 2.5], object)), c=("i", pd.Categorical(list("abab")))
    )
    y = fastpool_xarray.max_pool(x, {"i": 2}, strides=2)
    assert y.o.values.tolist() == [1, None]
    assert list(y.c.values) == ["a", "a"]


def test_multiindex():
    x = sample(("lat", "lon")).assign_coords(lat=np.arange(6), lon=np.arange(7)).stack(z=DIMS[1:3])
    y = fastpool_xarray.max_pool(x, {"z": 4}, strides=4)
    assert isinstance(y.indexes["z"], pd.MultiIndex)
    assert list(y.z.values) == list(x.z.values[1::4][: y.size])


def test_names_and_attributes():
    x = located().rename("rain").assign_attrs(units="mm")
    y, indices = fastpool_xarray.max_pool(x, {"lat": 2}, return_indices=True)
    assert (y.name, y.attrs) == ("rain", {"units": "mm"})
    assert (indices.name, indices.attrs) == ("indices", {})
    assert y.attrs is not x.attrs
    bare = fastpool_xarray.max_pool(sample(), {"lat": 2})
    assert bare.name is None and not bare.coords


def test_windows_of_padding_alone_have_no_coordinates():
    x = xarray.DataArray(np.zeros((2, 0)), {"y": [1, 2], "x": []})
    with pytest.raises(ValueError, match="x: dimension 'x' has no elements"):
        fastpool.xarray.max_pool(x, {"x": 2}, pads=1)
    pooled = fastpool.xarray.max_pool(x.drop_vars("x"), {"x": 2}, pads=1)
    assert (pooled == -np.inf).all() and pooled.shape == (2, 1)
    assert fastpool.xarray.max_pool(x, {"y": 2}).shape == (1, 0)


# --------------------------------------------------------------------------- indices


@pytest.mark.parametrize("dim", DIMS)
def test_labels(dim):
    x = located()
    _, indices = fastpool_xarray.max_pool(x, {"time": 2, "lat": 3, "band": 4}, return_indices=True)
    found = fastpool_xarray.labels(indices, x, dim)
    positions = np.unravel_index(indices.values, x.shape)[x.dims.index(dim)]
    np.testing.assert_array_equal(found.values, x[dim].values[positions], strict=True)
    assert found.name == dim and found.attrs == x[dim].attrs
    assert found.coords.identical(indices.coords)


def test_labels_are_those_of_idxmax():
    x = located()
    _, indices = fastpool_xarray.max_pool(x, {"lat": 6}, return_indices=True)
    found = fastpool_xarray.labels(indices, x, "lat").isel(lat=0)
    np.testing.assert_array_equal(found, x.idxmax("lat"))


def test_labels_without_a_coordinate_are_positions():
    x = sample(("lat",))
    _, indices = fastpool_xarray.max_pool(x, {"lat": 2}, return_indices=True)
    np.testing.assert_array_equal(fastpool_xarray.labels(indices, x, "lat"), indices)


def test_windows_without_elements_have_no_label():
    x = sample(("lat",))
    _, indices = fastpool_xarray.max_pool(x, {"lat": 1}, pads=1, return_indices=True)
    assert indices[0] == -1
    with pytest.raises(ValueError, match=r"indices.*\[0, 6\)"):
        fastpool_xarray.labels(indices, x, "lat")


@pytest.mark.parametrize("pooled", WINDOWS, ids="-".join)
def test_unpooling(pooled):
    x = located()
    window = dict.fromkeys(pooled, 2)
    y, indices = fastpool_xarray.max_pool(x, window, strides=2, return_indices=True)
    back = fastpool_xarray.max_unpool(y, indices, window, strides=2, like=x)
    expected = np.zeros(x.shape, x.dtype)
    expected.ravel()[indices.values] = y.values
    np.testing.assert_array_equal(back.values, expected, strict=True)
    assert back.coords.identical(x.coords)


def test_unpooling_of_inferred_extents():
    x = located().isel(lon=slice(6)).rename("rain").assign_attrs(units="mm")
    window = {"lat": 2, "lon": 3}
    y, indices = fastpool_xarray.max_pool(x, window, strides=window, return_indices=True)
    back = fastpool_xarray.max_unpool(y, indices, window, strides=window)
    assert back.shape == x.shape
    assert (back.name, back.attrs) == ("rain", {"units": "mm"})
    assert set(back.coords) == {"time", "band", "lead", "run"}
    like = fastpool_xarray.max_unpool(y, indices, window, strides=window, like=x)
    np.testing.assert_array_equal(back, like)
