"""Data arrays for the tests of fastpool.xarray."""

import itertools

import numpy as np
import pytest

xarray = pytest.importorskip("xarray")
pd = pytest.importorskip("pandas")

DIMS = ("time", "lat", "lon", "band")
SIZES = {"time": 5, "lat": 6, "lon": 7, "band": 4}
WINDOWS = [pooled for n in range(1, 5) for pooled in itertools.combinations(DIMS, n)]


def sample(dims=DIMS, dtype=np.float32):
    """Small whole numbers, so that ties are common; no coordinates."""
    shape = [SIZES[dim] for dim in dims]
    values = np.random.default_rng(len(dims)).integers(0, 9, shape).astype(dtype)
    return xarray.DataArray(values, dims=dims)


def located():
    """An array with coordinates of every kind."""
    return sample().assign_coords(
        time=pd.date_range("2026-01-01", periods=5),
        lat=[50.0, 49.0, 48.0, 47.0, 46.0, 45.0],
        lon=("lon", np.arange(7), {"units": "degrees_east"}),
        band=["r", "g", "b", "n"],
        place=("lon", list("abcdefg")),
        sea=("lat", [True, False, True, True, False, False]),
        lead=("time", np.arange(5) * np.timedelta64(3, "h")),
        row=("lat", np.arange(6, 0, -1, dtype=np.uint8)),
        x=(("lat", "lon"), np.arange(42.0).reshape(6, 7)),
        run=7,
    )
