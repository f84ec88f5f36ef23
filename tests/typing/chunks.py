"""The types that checkers must see for calls on dask arrays and DataArrays."""

from typing import assert_type, cast

import dask.array as da
import numpy as np
import xarray

import fastpool
import fastpool.dask
import fastpool.xarray

a = cast(da.Array, da.from_array(np.zeros((8, 8)), chunks=4))  # type: ignore[no-untyped-call]
assert_type(fastpool.dask.max_pool(a, 2, layout="HW"), da.Array)
assert_type(fastpool.max_pool(a, 2, layout="HW"), da.Array)
b, indices = fastpool.max_pool(a, 2, strides=2, layout="HW", return_indices=True)
assert_type(b, da.Array)
assert_type(fastpool.max_unpool(b, indices, 2, strides=2, layout="HW"), da.Array)
both = fastpool.dask.max_pool(a, 2, layout="HW", ceil_mode=1, return_indices=True, num_threads=2)
assert_type(both, tuple[da.Array, da.Array])
assert_type(fastpool.avg_pool(a, 2, layout="HW", dtype="float64"), da.Array)
assert_type(fastpool.dask.avg_pool(a, 2, layout="HW", divisor=3, nan="ignore"), da.Array)
assert_type(fastpool.global_avg_pool(a, layout="HW", keepdims=False), da.Array)
assert_type(fastpool.dask.global_avg_pool(a, layout="HW", numerics="sequential"), da.Array)
assert_type(fastpool.adaptive_avg_pool(a, (2, None), layout="HW"), da.Array)
assert_type(fastpool.adaptive_max_pool(a, 4, layout="HW"), da.Array)
both = fastpool.dask.global_max_pool(a, layout="HW", return_indices=True, index_axis=0)
assert_type(both, tuple[da.Array, da.Array])
both = fastpool.global_max_pool(a, layout="HW", return_indices=True)
assert_type(both, tuple[da.Array, da.Array])

x = xarray.DataArray(np.zeros((4, 6)), dims=("lat", "lon"))
assert_type(fastpool.xarray.max_pool(x, {"lat": 2}), xarray.DataArray)
assert_type(fastpool.max_pool(x, {"lat": 2, "lon": 3}, pads={"lat": (0, 1)}), xarray.DataArray)
assert_type(fastpool.max_pool(x, {"lat": 2}, strides="window"), xarray.DataArray)
y, places = fastpool.max_pool(x, {"lat": 2}, return_indices=True)
assert_type(places, xarray.DataArray)
assert_type(fastpool.xarray.labels(places, x, "lat"), xarray.DataArray)
assert_type(fastpool.xarray.max_unpool(y, places, {"lat": 2}, like=x), xarray.DataArray)
assert_type(fastpool.max_unpool(y, places, {"lat": 2}), xarray.DataArray)
for with_indices in (False, True):
    results = fastpool.xarray.max_pool(x, {"lat": 2}, return_indices=with_indices)
    assert_type(results, xarray.DataArray | tuple[xarray.DataArray, xarray.DataArray])

# Means, whole dimensions and adaptive windows
assert_type(fastpool.avg_pool(x, {"lat": 2}, pads={"lat": (0, 1)}, divisor=2), xarray.DataArray)
assert_type(fastpool.xarray.avg_pool(x, {"lat": 2}, dtype="float64"), xarray.DataArray)
assert_type(fastpool.xarray.global_avg_pool(x, "lat", keepdims=False), xarray.DataArray)
assert_type(fastpool.xarray.global_max_pool(x, ["lat", "lon"]), xarray.DataArray)
assert_type(fastpool.adaptive_avg_pool(x, {"lat": 2}), xarray.DataArray)
y, places = fastpool.adaptive_max_pool(x, {"lon": 2}, return_indices=True)
assert_type(places, xarray.DataArray)
y, places = fastpool.xarray.global_max_pool(x, "lon", return_indices=True)
assert_type(places, xarray.DataArray)
assert_type(fastpool.xarray.coarsen(x, lat=2).mean(skipna=False), xarray.DataArray)
assert_type(fastpool.xarray.rolling(x.to_dataset(name="v"), {"lat": 2}).max(), xarray.Dataset)
