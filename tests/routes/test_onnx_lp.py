"""fastpool.onnx runs LpPool and GlobalLpPool of every opset: on arrays, in models, in sessions."""

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx.helper
from onnx.reference import ReferenceEvaluator

import fastpool
import fastpool.onnx
from cases import assert_same
from fastpool.onnx import Backend

X = np.random.default_rng(0).standard_normal((2, 3, 5, 6)).astype(np.float32)
LAST = np.ascontiguousarray(np.moveaxis(X, 1, -1))
NHWC = "com.ms.internal.nhwc"
PARTIAL = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}
WINDOW = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}


def node(op_type="LpPool", domain="", **attributes):
    return onnx.helper.make_node(op_type, ["x"], ["y"], "pool", domain=domain, **attributes)


def model_of(given, version):
    values = [onnx.helper.make_tensor_value_info("x", 1, [None] * 4)]
    graph = onnx.helper.make_graph([given], "node", values, [onnx.ValueInfoProto(name="y")])
    opsets = [onnx.helper.make_opsetid(*pair) for pair in ((given.domain, version), ("", 13))]
    opsets = opsets[: 1 + bool(given.domain)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)


def assert_runs(given, x, version, expected):
    """Backend and ops give the same result."""
    (got,) = Backend.run_node(given, [x], opset_version=version)
    assert_same(got, expected)
    evaluator = ReferenceEvaluator(model_of(given, version), new_ops=fastpool.onnx.ops)
    (got,) = evaluator.run(None, {"x": x})
    assert_same(got, expected)


@pytest.mark.parametrize("version", [1, 2, 11, 18, 22])
def test_every_version(version):
    """Each has the attributes that came with it or before it; p is a float in the first only."""
    attributes, native = dict(WINDOW), dict(WINDOW)
    if version >= 18:
        attributes |= {"ceil_mode": 1, "dilations": [1, 2]}
        native = dict(attributes)
    expected = fastpool.lp_pool(X, native.pop("kernel_shape"), **native)
    assert_runs(node(**attributes), X, version, expected)
    for p in (1, 3) if version > 1 else (1.0, 2.5):
        expected = fastpool.lp_pool(X, WINDOW["kernel_shape"], p, **native)
        assert_runs(node(**attributes, p=p), X, version, expected)
        assert_runs(node("GlobalLpPool", p=p), X, version, fastpool.global_lp_pool(X, p))
        if version >= 11:
            last = np.moveaxis(expected, 1, -1)
            assert_runs(node(domain=NHWC, **attributes, p=p), LAST, version, last)
            last = fastpool.global_lp_pool(LAST, p, layout="NHWC")
            assert_runs(node("GlobalLpPool", domain=NHWC, p=p), LAST, version, last)


@pytest.mark.parametrize(
    ("given", "version", "match"),
    [
        (node(**WINDOW, p=2.0), 2, "p: expected INT, got FLOAT"),
        (node(**WINDOW, p=2), 1, "p: expected FLOAT, got INT"),
        (node("GlobalLpPool", p=2.0), 22, "p: expected INT, got FLOAT"),
        (node(**WINDOW, ceil_mode=1), 11, "ceil_mode came with opset 18"),
        (node(**WINDOW, dilations=[1, 1]), 11, "dilations came with opset 18"),
        (node(p=2), 22, "kernel_shape is missing"),
        (node(**WINDOW, count_include_pad=1), 22, "unknown attribute count_include_pad"),
        (node(domain=NHWC, **WINDOW), 10, "came with opset 11"),
        (node(domain=NHWC, **WINDOW, activation="Relu"), 11, "unknown attribute activation"),
        (node(**WINDOW, p=0), 22, "p: expected a number above 0"),
        (node("GlobalLpPool", p=-1), 22, "p: expected a number above 0"),
    ],
)
def test_bad_nodes_are_named(given, version, match):
    with pytest.raises(ValueError, match=rf"^node 'pool' \((Global)?LpPool\): .*{match}"):
        Backend.run_node(given, [X], opset_version=version)


def test_functions():
    """They take every convention of the native call."""
    attributes = {"strides": [2, 2], "ceil_mode": 1, "nan": "ignore", "num_threads": 1}
    for layout, x in (("NCHW", X), ("NHWC", LAST)):
        for p, partial in ((1, "sum"), (np.inf, "scale"), (2.5, "scale")):
            more = {"layout": layout, "partial": partial, **attributes}
            got = fastpool.onnx.lp_pool(x, kernel_shape=[3, 2], p=p, **more)
            assert_same(got, fastpool.lp_pool(x, (3, 2), p, **more))
    got = fastpool.onnx.lp_pool(
        X, kernel_shape=(2, 2), auto_pad=b"SAME_LOWER", pads=[1] * 4, pads_with_auto_pad="ignore"
    )
    assert_same(got, fastpool.lp_pool(X, 2, auto_pad="SAME_LOWER"))
    out = np.empty((2, 3, 1, 1), np.float32)
    assert fastpool.onnx.global_lp_pool(X, p=1, out=out) is out
    assert_same(out, fastpool.global_lp_pool(X, 1))
    with pytest.raises(ValueError, match="layout"):
        fastpool.onnx.lp_pool(X[0], kernel_shape=[2, 2], layout="CHW")
    with pytest.raises(TypeError, match="^x: expected one of float16"):
        fastpool.onnx.global_lp_pool(X.astype(int))


@pytest.mark.parametrize("op_type", ["LpPool", "GlobalLpPool"])
def test_sessions(op_type):
    """Their sums are those of onnxruntime: partial windows are not scaled."""
    pytest.importorskip("onnxruntime")
    from onnx_models import inside, plain

    for p in (1, 2, 3):
        attributes = {} if op_type == "GlobalLpPool" else PARTIAL
        version = 18 if attributes else 13
        model = model_of(node(op_type, **attributes, p=p), version)
        (got,) = inside(model, select="all").run(None, {"x": X})
        (expected,) = plain(model).run(None, {"x": X})
        np.testing.assert_allclose(got, expected, rtol=1e-6, strict=True)
    if attributes:
        scaled = fastpool.onnx.lp_pool(X, **attributes, p=3, partial="scale")
        assert (scaled != got).any()
