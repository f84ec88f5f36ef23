"""Types of Lp pooling, of arrays and plans."""

import math
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import fastpool
import fastpool.onnx
from fastpool import LpPoolPlan

x = np.ones((1, 1, 4, 4), np.float32)
y = fastpool.lp_pool(x, 2, math.inf, strides=2, partial="scale")
assert_type(y, NDArray[np.float32])
assert_type(fastpool.lp_pool(x, 2, 1.5, strides=2, out=y), NDArray[np.float32])
assert_type(fastpool.lp_pool([3.0, 1.0], 2, layout="W"), NDArray[Any])
assert_type(fastpool.global_lp_pool(x, 1, keepdims=False), NDArray[np.float32])
assert_type(fastpool.onnx.lp_pool(x, kernel_shape=[2, 2], p=3), NDArray[np.float32])
assert_type(fastpool.onnx.global_lp_pool(x), NDArray[np.float32])

plan = fastpool.plan_lp_pool(x.shape, x.dtype, 2, 3, nan="ignore")
assert_type(plan, LpPoolPlan)
assert_type(plan(x), NDArray[np.float32])
assert_type(plan.p, float)
assert_type(plan.tile(np.s_[:, :, 1:3]).plan, LpPoolPlan)
assert_type(fastpool.plan_global_lp_pool((1, 1, 4, 4), "float32"), LpPoolPlan)
