"""The types that checkers must see for ONNX's and OpenVINO's operators, and for their models."""

from typing import Any, assert_type

import numpy as np
import onnx
import onnx.helper
from numpy.typing import NDArray
from onnx.backend.base import BackendRep

import fastpool.onnx
import fastpool.openvino
from fastpool.openvino import AvgPoolLayer, MaxPoolLayer

x = np.zeros((1, 1, 4, 4), np.float32)
k = [2, 2]

assert_type(fastpool.onnx.max_pool(x, kernel_shape=k, ceil_mode=1), NDArray[np.float32])
assert_type(fastpool.onnx.max_pool(x, kernel_shape=k, auto_pad=b"VALID"), NDArray[np.float32])
y, indices = fastpool.onnx.max_pool(x, kernel_shape=np.array(k), strides=k, n_outputs=2)
assert_type(y, NDArray[np.float32])
assert_type(indices, NDArray[np.int64])
assert_type(fastpool.onnx.max_unpool(y, indices, kernel_shape=k, strides=k), NDArray[np.float32])
assert_type(fastpool.onnx.max_pool([[[3, 1, 4]]], kernel_shape=[2]), NDArray[Any])

assert_type(fastpool.onnx.average_pool(x, kernel_shape=k), NDArray[np.float32])
assert_type(fastpool.onnx.average_pool([[[3.0, 1.0]]], kernel_shape=[2], numerics="exact"), Any)
assert_type(fastpool.onnx.global_average_pool(x, numerics="sequential"), NDArray[np.float32])
assert_type(fastpool.onnx.global_max_pool(x, layout="NHWC"), NDArray[np.float32])
q = np.zeros((1, 1, 4, 4), np.uint8)
scale, zero = np.array(0.5, np.float32), np.array(3, np.uint8)
same = fastpool.onnx.qlinear_average_pool(q, scale, zero, 0.25, 7, kernel_shape=k, beyond="count")
assert_type(same, NDArray[np.uint8])
assert_type(fastpool.onnx.qlinear_global_average_pool(q, scale, None, scale), NDArray[np.uint8])

node = onnx.helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=k)
assert_type(fastpool.onnx.Backend.run_node(node, [x], nan="ignore"), tuple[NDArray[Any], ...])


def run(model: onnx.ModelProto) -> Any:
    assert_type(fastpool.onnx.Backend.prepare(model, num_threads=1), BackendRep)
    assert_type(fastpool.onnx.library(), str)
    assert_type(fastpool.onnx.explain(model), str)
    session = fastpool.onnx.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    session = fastpool.onnx.InferenceSession(model.SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: x})


pooled = fastpool.openvino.max_pool(x, strides=k, kernel=k, auto_pad="valid")
assert_type(pooled, tuple[NDArray[np.float32], NDArray[np.int64]])
short = fastpool.openvino.max_pool(
    x, strides=k, kernel=k, auto_pad="VALID", index_element_type="i32"
)
assert_type(short, tuple[NDArray[np.float32], NDArray[np.int32]])
first = fastpool.openvino.max_pool(
    x, version=1, strides=k, kernel=k, pads_begin=[0, 0], pads_end=[1, 1]
)
assert_type(first, NDArray[np.float32])
means = fastpool.openvino.avg_pool(
    x, strides=k, kernel=k, auto_pad="valid", exclude_pad=True, numerics="sequential"
)
assert_type(means, NDArray[np.float32])
assert_type(
    fastpool.openvino.avg_pool(
        [[[3, 1]]], strides=[1], kernel=[2], auto_pad="valid", exclude_pad=0, beyond="drop"
    ),
    NDArray[Any],
)
assert_type(fastpool.openvino.adaptive_avg_pool(x, [2, 1]), NDArray[np.float32])
maxima = fastpool.openvino.adaptive_max_pool(x, (2, None))
assert_type(maxima, tuple[NDArray[np.float32], NDArray[np.int64]])
maxima_32 = fastpool.openvino.adaptive_max_pool(x, 2, index_element_type="i32")
assert_type(maxima_32, tuple[NDArray[np.float32], NDArray[np.int32]])
layer = fastpool.openvino.read_layer(
    '<layer type="MaxPool" version="opset1">'
    '<data auto_pad="valid" kernel="2,2" strides="2,2"/></layer>'
)
assert isinstance(layer, (MaxPoolLayer, AvgPoolLayer))
assert_type(layer.output_dims, tuple[tuple[int, ...], ...])
assert_type(layer(x), Any)
