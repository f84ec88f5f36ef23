"""Calls that checkers must refuse. mypy reports an ignore comment without an error."""

from typing import Any, Literal

import numpy as np
import xarray
from numpy.typing import NDArray

import fastpool
import fastpool.dask
import fastpool.files
import fastpool.onnx
from fastpool import openvino


def wrong(x: NDArray[np.float32], a: xarray.DataArray, plan: fastpool.MaxPoolPlan) -> None:
    fastpool.max_pool(x)  # type: ignore[call-overload]
    fastpool.max_pool(x, "2")  # type: ignore[arg-type]
    fastpool.max_pool(x, 2.0)  # type: ignore[call-overload]
    fastpool.max_pool(x, 2, 2)  # type: ignore[call-overload]
    fastpool.max_pool(x, 2, stride=2)  # type: ignore[call-overload]
    fastpool.max_pool(x, 2, strides="kernel")  # type: ignore[arg-type]
    fastpool.max_pool(x, 2, auto_pad="same")  # type: ignore[call-overload]
    fastpool.max_pool(x, 2, layout="HWN")  # type: ignore[call-overload]
    fastpool.max_pool(x, 2, nan="raise")  # type: ignore[call-overload]
    fastpool.max_pool(x, 2, ceil_mode="floor")  # type: ignore[call-overload]
    fastpool.max_pool(x, 2, ceil_rule="drop")  # type: ignore[call-overload]
    fastpool.max_pool(x, 2, storage_order=2)  # type: ignore[call-overload]
    fastpool.max_pool(x, 2, activation="relu")  # type: ignore[call-overload]
    fastpool.max_pool(x, 2, out_indices=x)  # type: ignore[call-overload]
    fastpool.max_pool(a, {"lat": 2}, layout="NCHW")  # type: ignore[call-overload]
    fastpool.max_unpool(x, x, 2, index_space="input")  # type: ignore[call-overload]
    fastpool.plan_max_pool(4, "float32", 2)  # type: ignore[call-overload]
    fastpool.avg_pool(x)  # type: ignore[call-overload]
    fastpool.avg_pool(x, 2, beyond="keep")  # type: ignore[call-overload]
    fastpool.avg_pool(x, 2, divisor=2.0)  # type: ignore[call-overload]
    fastpool.avg_pool(x, 2, count_include_pad="yes")  # type: ignore[call-overload]
    fastpool.avg_pool(x, 2, rounding="up")  # type: ignore[call-overload]
    fastpool.avg_pool(x, 2, numerics="fast")  # type: ignore[call-overload]
    fastpool.avg_pool(x, 2, return_indices=True)  # type: ignore[call-overload]
    fastpool.global_avg_pool(x, 2)  # type: ignore[call-overload]
    fastpool.global_max_pool(x, keepdims=2)  # type: ignore[call-overload]
    fastpool.adaptive_avg_pool(x, 2.0)  # type: ignore[call-overload]
    fastpool.adaptive_max_pool(x, 2, dtype="float32")  # type: ignore[call-overload]
    fastpool.adaptive_max_pool(a, {"lat": 2}, layout="NCHW")  # type: ignore[call-overload]
    print(fastpool.max_poll)  # type: ignore[attr-defined]
    fastpool.dask.max_pool(x, 2)  # type: ignore[call-overload]
    fastpool.files.max_pool("x.npy", "y.npy", 2, return_indices=True)  # type: ignore[call-arg]
    fastpool.onnx.max_pool(x, 2)  # type: ignore[call-overload]
    fastpool.onnx.max_pool(x, kernel_shape=2)  # type: ignore[call-overload]
    fastpool.onnx.Backend.prepare("model.onnx", threads=2)  # type: ignore[call-arg]
    openvino.max_pool(x, kernel=[2], strides=[2], rounding_type="up")  # type: ignore[call-overload]
    plan.strides = (2, 2)  # type: ignore[misc]


def wrong_results(x: NDArray[np.float32], plan: fastpool.MaxPoolPlan[Literal[True]]) -> Any:
    text: str = fastpool.max_pool(x, 2)  # type: ignore[assignment]
    y = fastpool.max_pool(x, 2)
    doubles: NDArray[np.float64] = y  # type: ignore[assignment]
    mean = fastpool.avg_pool(x, 2)
    doubles = mean  # type: ignore[assignment]
    alone: NDArray[np.float32] = plan(x)  # type: ignore[assignment]
    print(fastpool.max_pool(x, 2, return_indices=True).shape)  # type: ignore[attr-defined]
    return text, doubles, alone
