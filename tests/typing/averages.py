"""The types that checkers must see for averages, and for global and adaptive pooling."""

from typing import Any, Literal, assert_type

import numpy as np
from numpy.typing import NDArray

import fastpool
from fastpool import AvgPoolPlan, MaxPoolPlan, MinPoolPlan

x = np.zeros((1, 1, 4, 4), np.float32)

# The element type is kept unless another one is asked for; that of a list is not known.
assert_type(fastpool.avg_pool(x, 2), NDArray[np.float32])
assert_type(fastpool.avg_pool(x, 2, dtype=np.float64), NDArray[np.float64])
assert_type(fastpool.avg_pool(x, 2, dtype=np.dtype(np.float64)), NDArray[np.float64])
assert_type(fastpool.avg_pool(x, 2, dtype="float64"), NDArray[Any])
assert_type(fastpool.avg_pool([[3, 1], [4, 1]], 2, layout="HW"), NDArray[Any])
assert_type(
    fastpool.avg_pool(
        x.astype(np.uint8),
        kernel_shape=[np.int64(2), 2],
        strides=None,
        pads=(0, 0, 1, 1),
        dilations=1,
        auto_pad="NOTSET",
        ceil_mode=True,
        ceil_rule="keep",
        count_include_pad=1,
        beyond="count",
        divisor=4,
        rounding="trunc",
        numerics="sequential",
        nan="ignore",
        layout="NCHW",
        activation="Clip",
        activation_params=(0, 6.0),
        num_threads=1,
    ),
    NDArray[np.uint8],
)
assert_type(fastpool.global_avg_pool(x, keepdims=False), NDArray[np.float32])
assert_type(fastpool.global_avg_pool(x, dtype=np.float64, layout="NHWC"), NDArray[np.float64])
assert_type(fastpool.adaptive_avg_pool(x, (1, None)), NDArray[np.float32])
assert_type(fastpool.adaptive_avg_pool([3.0, 1.0], 2, layout="W"), NDArray[Any])

# What is given to be written is returned.
y = fastpool.avg_pool(x, 2, strides=2)
assert_type(fastpool.avg_pool(x, 2, strides=2, out=y), NDArray[np.float32])
memory = bytearray(3)
assert_type(fastpool.avg_pool(bytearray(b"fast"), 2, layout="W", out=memory), bytearray)
assert_type(fastpool.adaptive_avg_pool(bytearray(b"fasten"), 3, layout="W", out=memory), bytearray)

# Maxima, with and without indices.
assert_type(fastpool.global_max_pool(x, keepdims=0), NDArray[np.float32])
assert_type(fastpool.adaptive_max_pool(x, 2), NDArray[np.float32])
largest, indices = fastpool.global_max_pool(x, return_indices=True)
assert_type(largest, NDArray[np.float32])
assert_type(indices, NDArray[np.int64])
least, places = fastpool.global_min_pool(x, return_indices=True)
assert_type(least, NDArray[np.float32])
assert_type(places, NDArray[np.int64])
assert_type(fastpool.min_pool(x, 2), NDArray[np.float32])
assert_type(
    fastpool.plan_adaptive_min_pool((1, 1, 4, 4), "float32", 2), MinPoolPlan[Literal[False]]
)
_, short = fastpool.adaptive_max_pool(x, 2, return_indices=True, index_dtype="int32", index_axis=2)
assert_type(short, NDArray[np.int32])
for with_indices in (False, True):
    assert_type(
        fastpool.adaptive_max_pool(x, 2, return_indices=with_indices),
        NDArray[Any] | tuple[NDArray[Any], NDArray[Any]],
    )
pair = fastpool.global_max_pool(x, return_indices=True, out=largest, out_indices=indices)
assert_type(pair, tuple[NDArray[np.float32], NDArray[np.int64]])

# Plans
plan = fastpool.plan_avg_pool(x.shape, x.dtype, 2, result_dtype="float64")
assert_type(plan, AvgPoolPlan)
assert_type(plan(x), NDArray[Any])
assert_type(plan(x, out=np.empty(plan.output_shape, np.float64)), NDArray[np.float64])
assert_type(plan.tile(np.s_[:, :, 1:3]).plan, AvgPoolPlan)
assert_type(plan.divisor, int | None)
assert_type(plan.kernel_shape, tuple[int, ...])
assert_type(fastpool.plan_global_avg_pool((1, 1, 4, 4), "float32", nan="ignore"), AvgPoolPlan)
assert_type(fastpool.plan_adaptive_avg_pool((1, 1, 4, 4), "float32", 3), AvgPoolPlan)
assert_type(
    fastpool.plan_global_max_pool((1, 1, 4, 4), "float32", return_indices=True),
    MaxPoolPlan[Literal[True]],
)
adaptive = fastpool.plan_adaptive_max_pool((1, 1, 4, 4), "float32", (2, 4))
assert_type(adaptive, MaxPoolPlan[Literal[False]])
assert_type(adaptive(x), NDArray[np.float32])
