"""The types that checkers must see for calls on arrays."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import fastpool
import fastpool.files
from fastpool.typing import Layout, Strides

x = np.zeros((1, 1, 4, 4), np.float32)

# The element type is kept; that of a list is not known.
assert_type(fastpool.max_pool(x, 2), NDArray[np.float32])
assert_type(
    fastpool.max_pool(x.astype(np.uint8), (2, 2), strides=np.array([2, 1])), NDArray[np.uint8]
)
assert_type(fastpool.max_pool([[3, 1], [4, 1]], 2, layout="HW"), NDArray[Any])
assert_type(fastpool.max_pool(memoryview(b"fast"), 2, layout="W"), NDArray[Any])
assert_type(
    fastpool.max_pool(
        x,
        kernel_shape=[np.int64(2), 2],
        strides=None,
        pads=(0, 0, 1, 1),
        dilations=1,
        auto_pad="NOTSET",
        ceil_mode=True,
        ceil_rule="keep",
        layout="NCHW",
        nan="ignore",
        activation="Clip",
        activation_params=(0, 6.0),
        num_threads=1,
    ),
    NDArray[np.float32],
)

assert_type(fastpool.max_pool(x, 2, strides="window"), NDArray[np.float32])

# Types for annotations
layout: Layout = "HW"
strides: Strides = "window"
assert_type(fastpool.avg_pool([[3, 1]], 1, strides=strides, layout=layout), NDArray[Any])

# Indices
y, indices = fastpool.max_pool(x, 2, strides=2, return_indices=True)
assert_type(y, NDArray[np.float32])
assert_type(indices, NDArray[np.int64])
_, short = fastpool.max_pool(x, 2, strides=2, return_indices=True, index_dtype="int32")
assert_type(short, NDArray[np.int32])
_, short = fastpool.max_pool(x, 2, strides=2, return_indices=True, index_dtype=np.int32)
assert_type(short, NDArray[np.int32])
_, some = fastpool.max_pool(x, 2, strides=2, return_indices=True, index_dtype="<i4")
assert_type(some, NDArray[Any])
assert_type(
    fastpool.max_pool([[3, 1]], 1, layout="HW", return_indices=True),
    tuple[NDArray[Any], NDArray[Any]],
)
for with_indices in (False, True):
    assert_type(
        fastpool.max_pool(x, 2, return_indices=with_indices),
        NDArray[Any] | tuple[NDArray[Any], NDArray[Any]],
    )

# What is given to be written is returned.
assert_type(fastpool.max_pool(x, 2, strides=2, out=y), NDArray[np.float32])
memory = bytearray(3)
assert_type(fastpool.max_pool(bytearray(b"fast"), 2, layout="W", out=memory), bytearray)
pair = fastpool.max_pool(x, 2, strides=2, return_indices=True, out=y, out_indices=indices)
assert_type(pair, tuple[NDArray[np.float32], NDArray[np.int64]])

# Back
assert_type(fastpool.max_unpool(y, indices, 2, strides=2), NDArray[np.float32])
assert_type(
    fastpool.max_unpool(y, indices.tolist(), 2, strides=2, output_shape=x.shape, out=x),
    NDArray[np.float32],
)
assert_type(fastpool.max_unpool([7], [1], 2, layout="W"), NDArray[Any])

assert_type(fastpool.get_include(), str)
assert_type(fastpool.__version__, str)


def pool_file(source: str) -> tuple[int, ...]:
    plan = fastpool.files.max_pool(source, "y.npy", 2, layout="HW", progress=print, nan="ignore")
    return plan.output_shape


def average_file(source: str) -> tuple[str, tuple[int, ...]]:
    plan = fastpool.files.avg_pool(source, "y.npy", 2, layout="HW", dtype="float32", divisor=3)
    whole = fastpool.files.global_max_pool(source, "y.npy", keepdims=False, indices="z.npy")
    return plan.result_dtype, whole.output_shape


def write_levels(source: str) -> None:
    fastpool.files.pyramid(source, "y.zarr", 2, (1, 2, 2), "mode", axes="zyx", nodata=0)
