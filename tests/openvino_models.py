"""Helpers of the tests of fastpool.openvino in models. Importing this module needs openvino."""

import importlib

import numpy as np
import openvino
import openvino.opset14 as ops

import cases
import fastpool.openvino

CORE = openvino.Core()
for operation in ("MaxPool", "AvgPool", "AdaptiveAvgPool", "AdaptiveMaxPool"):
    CORE.add_extension(getattr(fastpool.openvino, operation))
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": "1"}

HALVE = {"kernel": [2, 2], "strides": [2, 2], "auto_pad": "valid"}
PADDED = {"kernel": [3, 2], "strides": [2, 1], "pads_begin": [1, 0], "pads_end": [2, 1]}
ROUNDED = PADDED | {"pads_end": [1, 0]}  # rounded up, there is one more window
# version, shape, attributes
POOLS = [
    (1, (2, 3, 8, 9), HALVE),
    (1, (2, 3, 8, 9), PADDED),
    (1, (1, 2, 8, 7), ROUNDED | {"rounding_type": "ceil"}),
    (8, (2, 3, 9, 8), PADDED | {"dilations": [2, 3], "axis": 2}),
    (8, (2, 3, 9, 8), HALVE | {"auto_pad": "same_upper", "index_element_type": "i32"}),
    (8, (2, 3, 9), {"kernel": [4], "strides": [3], "auto_pad": "same_lower", "axis": -1}),
    (8, (2, 3, 5, 6, 7), {"kernel": [2, 3, 2], "strides": [1, 2, 2], "auto_pad": "valid"}),
    (14, (1, 2, 8, 7), ROUNDED | {"rounding_type": "ceil"}),
    (14, (1, 2, 8, 7), ROUNDED | {"rounding_type": "ceil_torch", "axis": 1}),
]


# Averages: version, shape, attributes. Without dilations, OpenVINO 2026.4 crashes on version 16.
MEANS = [
    (1, (1, 2, 6, 7), HALVE | {"exclude_pad": True}),
    (1, (1, 2, 6, 7), PADDED | {"exclude_pad": False}),
    (1, (1, 2, 7, 6), ROUNDED | {"exclude_pad": False, "rounding_type": "ceil"}),
    (14, (1, 2, 6, 7), ROUNDED | {"exclude_pad": True, "rounding_type": "ceil_torch"}),
    (
        14,
        (2, 3, 7),
        {"kernel": [4], "strides": [3], "auto_pad": "same_lower", "exclude_pad": False},
    ),
    (16, (1, 2, 8, 7), PADDED | {"exclude_pad": True, "dilations": [2, 3]}),
    (
        16,
        (1, 2, 4, 5, 6),
        {"kernel": [2, 3, 2], "strides": [1, 2, 2], "auto_pad": "valid", "exclude_pad": True}
        | {"dilations": [1, 1, 1]},
    ),
]


def own_avg_pool(x, version, attributes):
    """OpenVINO's own operation."""
    n = len(attributes["kernel"])
    arguments = {"pads_begin": [0] * n, "pads_end": [0] * n} | attributes
    arguments["kernel_shape"] = arguments.pop("kernel")
    opset = importlib.import_module(f"openvino.opset{version}")
    return opset.avg_pool(x, **arguments, name="pool")


def fractions(shape, dtype=np.float32):
    """Numbers of all magnitudes, whose sums depend on the order of the additions."""
    rng = np.random.default_rng(0)
    return (rng.standard_normal(shape) * np.exp(3 * rng.standard_normal(shape))).astype(dtype)


def sample(shape, dtype=np.float32):
    """Small whole numbers, so that ties are common; never the lowest value of the type."""
    return np.random.default_rng(0).integers(1, 9, shape).astype(dtype)


def own_max_pool(x, version, attributes):
    """OpenVINO's own operation."""
    n = len(attributes["kernel"])
    arguments = {"pads_begin": [0] * n, "pads_end": [0] * n} | attributes
    if version > 1:
        arguments.setdefault("dilations", [1] * n)
    arguments["kernel_shape"] = arguments.pop("kernel")
    return getattr(openvino, f"opset{version}").max_pool(x, **arguments, name="pool")


def own_model(version, shape, attributes, dtype=np.float32):
    x = ops.parameter(shape, dtype, name="x")
    return openvino.Model(own_max_pool(x, version, attributes).outputs(), [x])


def run(model, *arrays):
    return list(CORE.compile_model(model, "CPU", EXACT)(arrays).values())


def assert_same(got, expected):
    for output, same in zip(got, expected, strict=True):
        cases.assert_same(output, same)


def types(model):
    return [node.get_type_name() for node in model.get_ordered_ops()]
