"""The operators of fastpool.onnx.ops work inside onnx.reference.ReferenceEvaluator."""

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx.parser
from onnx.reference import ReferenceEvaluator

import fastpool.onnx
from cases import assert_same

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 6, 8)).astype(np.float32)
NHWC = "com.ms.internal.nhwc"


def evaluate(model, *inputs):
    """The outputs of a model, or of its text."""
    if isinstance(model, str):
        model = onnx.parser.parse_model(model)
    evaluator = ReferenceEvaluator(model, new_ops=fastpool.onnx.ops)
    return evaluator.run(None, dict(zip(evaluator.input_names, inputs, strict=True)))


def test_ops_are_named_as_their_operators():
    names = ("MaxPool", "MaxUnpool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool")
    names += ("LpPool", "GlobalLpPool")
    assert {(op.op_domain, op.__name__) for op in fastpool.onnx.ops} == {
        *(("", name) for name in (*names, "ReduceMean", "ReduceMax")),
        *((NHWC, name) for name in (*names, "QLinearAveragePool")),
        ("com.microsoft", "NhwcMaxPool"),
        ("com.microsoft", "QLinearAveragePool"),
        ("com.microsoft", "QLinearGlobalAveragePool"),
    }


def test_among_the_operators_of_the_reference():
    text = """
    <ir_version: 8, opset_import: ["": 13]>
    net (float[n, c, h, w] x) => (float[n, c, h, w] z, int64[n, c, h2, w2] where) {
        a = Neg (x)
        y, where = MaxPool <kernel_shape = [3, 2], strides = [2, 2], pads = [1, 0, 1, 0]> (a)
        z = Exp (y)
    }"""
    z, where = evaluate(text, X)
    window = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 0]}
    y, indices = fastpool.onnx.max_pool(-X, **window, n_outputs=2)
    assert_same(z, np.exp(y))
    assert_same(where, indices)


@pytest.mark.parametrize("opset", [1, 8, 10, 11, 12, 22])
def test_every_opset_version(opset):
    attributes = {"kernel_shape": [3, 2], "auto_pad": "SAME_LOWER"}
    if opset >= 8:
        attributes["storage_order"] = 1
    if opset >= 10:
        attributes |= {"dilations": [1, 2], "ceil_mode": 1}
    pool = onnx.helper.make_node("MaxPool", ["x"], ["y", "z"][: 1 + (opset >= 8)], **attributes)
    graph = onnx.helper.make_graph(
        [pool],
        "pool",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, None)],
        [onnx.ValueInfoProto(name=name) for name in pool.output],
    )
    opsets = [onnx.helper.make_opsetid("", opset)]
    got = evaluate(onnx.helper.make_model(graph, opset_imports=opsets), X)
    expected = fastpool.onnx.max_pool(X, **attributes, n_outputs=2)
    for output, same in zip(got, expected[: len(got)], strict=True):
        assert_same(output, same)


def test_unpooling_with_and_without_a_shape():
    text = """
    <ir_version: 8, opset_import: ["": 22]>
    net (float[n, c, h, w] x, int64[4] shape)
        => (float[n, c, h, w] back, float[n, c, h, w] larger, int64[n, c, h2, w2] where) {
        y, where = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
        back = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (y, where)
        larger = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (y, where, shape)
    }"""
    back, larger, where = evaluate(text, X, np.array([2, 3, 7, 9]))
    assert_same(back.ravel()[where], fastpool.max_pool(X, 2, strides=2))
    assert_same(larger[:, :, :6, :8], back)


def test_channels_last_domains():
    text = """
    <ir_version: 8, opset_import: ["": 13, "com.ms.internal.nhwc": 13, "com.microsoft": 1]>
    net (float[n, h, w, c] x) => (float[n, h, w, c] back, float[n, h, w, c] other) {
        y, where = com.ms.internal.nhwc.MaxPool
            <kernel_shape = [2, 2], strides = [2, 2], activation = "Relu"> (x)
        back = com.ms.internal.nhwc.MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (y, where)
        other = com.microsoft.NhwcMaxPool <kernel_shape = [2, 2]> (x)
    }"""
    last = np.ascontiguousarray(np.moveaxis(X, 1, -1))
    back, other = evaluate(text, last)
    window = {"kernel_shape": [2, 2], "strides": [2, 2], "layout": "NHWC"}
    y, where = fastpool.onnx.max_pool(last, **window, activation="Relu", n_outputs=2)
    assert_same(back, fastpool.onnx.max_unpool(y, where, **window))
    assert_same(other, fastpool.max_pool(last, 2, layout="NHWC"))


def test_attributes_of_functions():
    """A pooling node in a function takes its window from the node that calls the function."""
    text = """
    <ir_version: 8, opset_import: ["": 13, "local": 1]>
    net (float[n, c, h, w] x) => (float[n, c, h, w] y) {
        y = local.halve <window = [2, 2]> (x)
    }
    <domain: "local", opset_import: ["": 13]>
    halve <window> (x) => (y) {
        y = MaxPool <kernel_shape: ints = @window, strides: ints = @window> (x)
    }"""
    (y,) = evaluate(text, X)
    assert_same(y, fastpool.max_pool(X, 2, strides=2))


@pytest.mark.parametrize(
    ("opset", "attributes", "match"),
    [
        (13, "", "kernel_shape"),
        (13, "kernel_shape = [2, 2], stride = [2, 2]", "unknown attribute stride"),
        (13, "kernel_shape = [2.0, 2.0]", "kernel_shape: expected INTS, got FLOATS"),
        (9, "kernel_shape = [2, 2], ceil_mode = 1", "ceil_mode came with opset 10"),
        (13, "kernel_shape = [2, 2], strides = [2]", "strides: expected 2 ints, got 1"),
    ],
)
def test_bad_nodes(opset, attributes, match):
    text = f"""
    <ir_version: 8, opset_import: ["": {opset}]>
    net (float[n, c, h, w] x) => (float[n, c, h, w] y) {{
        y = MaxPool <{attributes}> (x)
    }}"""
    with pytest.raises(ValueError, match=match):
        evaluate(text.replace("<>", ""), X)
