"""Backend and ops run nodes of averages, global poolings and spatial reductions, of any opset."""

import importlib

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx.backend.test.case.node
import onnx.parser
from onnx.reference import ReferenceEvaluator

import fastpool.onnx
from cases import assert_same, bounds
from fastpool.onnx import Backend
from fastpool.onnx._nodes import OPERATORS

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 5, 6)).astype(np.float32)
LAST = np.ascontiguousarray(np.moveaxis(X, 1, -1))
Q = RNG.integers(0, 256, X.shape, np.uint8)
NHWC, MICROSOFT = "com.ms.internal.nhwc", "com.microsoft"
WINDOW = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}
QUANTISATION = np.float32(0.1), np.uint8(3), np.float32(0.05), np.uint8(4)
GLOBAL = {
    "GlobalAveragePool": fastpool.onnx.global_average_pool,
    "GlobalMaxPool": fastpool.onnx.global_max_pool,
}
OF_REDUCTION = {"ReduceMean": "GlobalAveragePool", "ReduceMax": "GlobalMaxPool"}


def node(op_type="AveragePool", inputs="x", outputs="y", domain="", **attributes):
    """Names of inputs and outputs are letters, "-" for an absent one."""
    inputs, outputs = ([n.replace("-", "") for n in names] for names in (inputs, outputs))
    return onnx.helper.make_node(op_type, inputs, outputs, "pool", domain=domain, **attributes)


def evaluate(given, inputs, version):
    """The outputs of a node, by onnx.reference with the operators of fastpool."""
    values = [onnx.ValueInfoProto(name=name) for name in given.input if name]
    graph = onnx.helper.make_graph(
        [given], "node", values, [onnx.ValueInfoProto(name=name) for name in given.output]
    )
    opsets = [onnx.helper.make_opsetid(*pair) for pair in ((given.domain, version), ("", 13))]
    model = onnx.helper.make_model(graph, opset_imports=opsets[: 1 + bool(given.domain)])
    evaluator = ReferenceEvaluator(model, new_ops=fastpool.onnx.ops)
    named = {name: array for name, array in zip(given.input, inputs, strict=True) if name}
    return evaluator.run(None, named)


def assert_runs(given, inputs, version, expected):
    """Backend and ops give the same result."""
    (got,) = Backend.run_node(given, inputs, opset_version=version)
    assert_same(got, expected)
    (got,) = evaluate(given, inputs, 1 if given.domain == MICROSOFT else version)
    assert_same(got, expected)


# ------------------------------------------------------------------------------- every version


@pytest.mark.parametrize("version", [1, 6, 7, 9, 10, 11, 18, 19, 22])
def test_average_pool(version):
    """Each version has the attributes that came with it or before it."""
    attributes = dict(WINDOW)
    if version >= 7:
        attributes["count_include_pad"] = 1
    if version >= 10:
        attributes["ceil_mode"] = 1
    if version >= 19:
        attributes["dilations"] = [1, 2]
    expected = fastpool.onnx.average_pool(X, **attributes)
    assert_runs(node(**attributes), [X], version, expected)
    if version >= 7:
        clip = {"activation": "Clip", "activation_params": [-0.1, 0.1]}
        expected = fastpool.onnx.average_pool(LAST, **attributes, **clip, layout="NHWC")
        assert_runs(node(domain=NHWC, **attributes, **clip), [LAST], version, expected)


@pytest.mark.parametrize("version", [1, 13, 22])
@pytest.mark.parametrize("name", GLOBAL)
def test_global_pools(name, version):
    assert_runs(node(name), [X], version, GLOBAL[name](X))
    expected = GLOBAL[name](LAST, layout="NHWC")
    assert_runs(node(name, domain=NHWC), [LAST], version, expected)


@pytest.mark.parametrize("version", [1, 11, 13, 17, 18, 20, 22])
@pytest.mark.parametrize("keepdims", [None, 0, 1])
@pytest.mark.parametrize("name", OF_REDUCTION)
def test_reductions_over_the_spatial_axes(name, keepdims, version):
    expected = GLOBAL[OF_REDUCTION[name]](X)
    expected = expected if keepdims != 0 else expected[:, :, 0, 0]
    attributes = {} if keepdims is None else {"keepdims": keepdims}
    if version < 18:
        assert_runs(node(name, **attributes, axes=[-1, 2]), [X], version, expected)
    else:
        axes = np.array([2, -1])
        for more in ({}, {"noop_with_empty_axes": 1}):
            given = node(name, "xa", **attributes, **more)
            assert_runs(given, [X, axes], version, expected)


@pytest.mark.parametrize("zero_points", ["both", "x", "y", "none"])
def test_quantised(zero_points):
    """Zero points are optional, in the middle and at the end."""
    scale, zero, result_scale, result_zero = QUANTISATION
    inputs = [Q, scale, zero, result_scale, result_zero]
    names = list("xabcd")
    if zero_points in ("y", "none"):
        inputs[2], names[2] = None, ""
    if zero_points in ("x", "none"):
        inputs, names = inputs[:4], names[:4]
    attributes = WINDOW | {"ceil_mode": 1, "count_include_pad": 1}
    quantised = {"QLinearAveragePool": attributes, "QLinearGlobalAveragePool": {}}
    for name, attributes in quantised.items():
        pool = OPERATORS[MICROSOFT, name].call
        expected = pool(*inputs, **attributes)
        given = node(name, names, domain=MICROSOFT, **attributes)
        assert_runs(given, inputs, 22, expected)
        last = [np.ascontiguousarray(np.moveaxis(Q, 1, -1)), *inputs[1:]]
        given = node(name, names, domain=MICROSOFT, **attributes, channels_last=1)
        assert_runs(given, last, 22, np.moveaxis(expected, 1, -1))
        if (NHWC, name) in OPERATORS:  # whatever its attribute says
            for more in ({}, {"channels_last": 0}, {"channels_last": 1}):
                given = node(name, names, domain=NHWC, **attributes, **more)
                assert_runs(given, last, 13, np.moveaxis(expected, 1, -1))


# ------------------------------------------------------------------------------- other reductions


def official_reductions():
    with np.errstate(divide="ignore"):  # one of them divides by zero as it is made
        for module in ("reducemean", "reducemax"):
            importlib.import_module(f"onnx.backend.test.case.node.{module}")
    cases = onnx.backend.test.case.node._NodeTestCases
    return [c for c in cases if c.model.graph.node[0].op_type in OF_REDUCTION]


@pytest.mark.parametrize("case", official_reductions(), ids=lambda case: case.name)
def test_ops_leave_other_reductions_as_they_are(case):
    """All of onnx's own tests: none of them is over the spatial axes."""
    evaluator = ReferenceEvaluator(case.model, new_ops=fastpool.onnx.ops)
    inputs, expected = case.data_sets[0]
    names = [value.name for value in case.model.graph.input]
    got = evaluator.run(None, dict(zip(names, inputs, strict=True)))
    for output, same in zip(got, expected, strict=True):
        np.testing.assert_allclose(output, same, rtol=1e-6)
    with pytest.raises(ValueError, match="axes: expected .*InferenceSession runs other reductions"):
        Backend.run_model(case.model, inputs)


def test_there_are_official_reductions():
    assert len(official_reductions()) >= 16


# ------------------------------------------------------------------------------------- models


def test_a_model():
    """Poolings of every kind, with axes that are constants."""
    text = """
    <ir_version: 8, opset_import: ["": 18]>
    net (float[n, c, h, w] x) => (float[n, k, h1, w1] z, float[n, c] m)
    <int64[2] both = {2, 3}> {
        a = AveragePool <kernel_shape = [2, 2]> (x)
        b = GlobalAveragePool (a)
        c = GlobalMaxPool (x)
        axes = Constant <value_ints = [-2, -1]> ()
        d = ReduceMean (a, axes)
        m = ReduceMax <keepdims = 0> (x, both)
        z = Concat <axis = 1> (b, c, d)
    }"""
    z, m = Backend.run_model(onnx.parser.parse_model(text), [X])
    a = fastpool.avg_pool(X, 2)
    b, c = fastpool.global_avg_pool(a), fastpool.global_max_pool(X)
    assert_same(z, np.concatenate([b, c, b], axis=1))
    assert_same(m, fastpool.global_max_pool(X, keepdims=False))


def test_options():
    x = np.array([[[1e8, 1.0, -1e8, 1.0, 2.0, np.nan]]], np.float32)
    pool, mean = node(kernel_shape=[5]), node("GlobalAveragePool")
    by_windows = {"exact": 4 / 5, "sequential": 3 / 5, "pairwise": 2 / 5, None: 2 / 5}
    of_all = {"exact": 4 / 5, "sequential": 3 / 5, "pairwise": 3 / 5, None: 3 / 5}
    for numerics, expected in by_windows.items():
        rules = {} if numerics is None else {"numerics": numerics}
        assert Backend.run_node(pool, [x], **rules)[0][0, 0, 0] == np.float32(expected)
        y = Backend.run_node(mean, [x], nan="ignore", **rules)[0]
        assert y.item() == np.float32(of_all[numerics])
    pool = node(kernel_shape=[3], strides=[2], pads=[1, 1], ceil_mode=1, count_include_pad=1)
    x = np.ones((1, 1, 4), np.float32)
    assert Backend.run_node(pool, [x])[0][0, 0, 2] == 0.5
    assert Backend.run_node(pool, [x], beyond="count")[0][0, 0, 2] == np.float32(1 / 3)


# ------------------------------------------------------------------------------------- bad nodes

QUANTISED = {"op_type": "QLinearAveragePool", "inputs": "xabcd", "domain": MICROSOFT}


@pytest.mark.parametrize(
    ("bad", "opset", "match"),
    [
        (node(), 22, "kernel_shape is missing"),
        (node(**QUANTISED), 22, "kernel_shape is missing"),
        (node(**WINDOW, count_include_pad=1), 6, "count_include_pad came with opset 7"),
        (node(**WINDOW, ceil_mode=1), 9, "ceil_mode came with opset 10, the model imports 9"),
        (node(**WINDOW, dilations=[1, 1]), 18, "dilations came with opset 19"),
        (node(**WINDOW, storage_order=0), 22, "unknown attribute storage_order"),
        (node(**WINDOW, activation="Relu"), 22, "unknown attribute activation"),
        (node(**WINDOW, p=2), 22, "unknown attribute p; AveragePool has kernel_shape"),
        (node(**WINDOW, count_include_pad=[1]), 22, "count_include_pad: expected INT, got INTS"),
        (node(**WINDOW, count_include_pad=2), 22, "count_include_pad: expected 0 or 1, got 2"),
        (node(**WINDOW, count_include_pad=-1), 22, "count_include_pad: expected 0 or 1"),
        (node(**WINDOW, ceil_mode=2), 22, "ceil_mode: expected 0 or 1, got 2"),
        (node(domain=NHWC, **WINDOW), 6, "AveragePool came with opset 7"),
        (node("GlobalAveragePool", kernel_shape=[2]), 22, "unknown .* kernel_shape; .* has none"),
        (node("GlobalMaxPool", domain=NHWC, activation="Relu"), 22, "unknown attribute act"),
        (node(**QUANTISED, **WINDOW, dilations=[1, 1]), 22, "unknown attribute dilations"),
        (node(**QUANTISED, **WINDOW, channels_last=2), 22, "channels_last: expected 0 or 1"),
        (node(outputs="yz", **WINDOW), 22, "expected outputs y, got"),
        (node("GlobalMaxPool", outputs="yz"), 22, "expected outputs y, got"),
        (node(inputs="xa", **WINDOW), 22, "expected inputs x, got"),
        (node("QLinearAveragePool", "xab", domain=MICROSOFT, **WINDOW), 22, "inputs x, x_scale"),
        (node("QLinearAveragePool", "xab-d", domain=MICROSOFT, **WINDOW), 22, "inputs x, x_sca"),
        (node("QLinearAveragePool", "x-bcd", domain=MICROSOFT, **WINDOW), 22, "inputs x, x_sca"),
        (node("QLinearGlobalAveragePool", "xabcdx", domain=MICROSOFT), 22, "inputs x, x_scale"),
        (node("ReduceMean", axes=[2, 3]), 18, "axes ended with opset 17, the model imports 18"),
        (node("ReduceMean", "xz"), 17, "expected inputs x, got"),
        (node("ReduceMax", noop_with_empty_axes=1), 17, "noop_with_empty_axes came with opset 18"),
        (node("ReduceMax", axes=[1]), 13, r"axes: expected the spatial axes \[2, 3\], got \(1,\)"),
        (node("ReduceMean"), 13, "axes: expected the spatial axes .* got None"),
        (node("ReduceMean", "x-"), 18, "axes: expected the spatial axes .* got None"),
        (node("ReduceMean", axes=[2, 3], keepdims=3), 13, "keepdims: expected 0 or 1"),
        (node("ReduceMean", axes=[2**62, 3]), 13, "axes: expected the spatial axes"),
        (node("ReduceMean", axes=[2] * 100_000), 13, "axes: expected at most 64"),
        (node(kernel_shape=[2**62] * 2), 22, "kernel_shape"),
        (node(kernel_shape=[2] * 200_000), 22, "kernel_shape: expected 2 ints, got 200000"),
        (node(**WINDOW | {"pads": [2**62] * 4}), 22, "^node 'pool' "),
        (node(**QUANTISED, **WINDOW | {"pads": [2**40] * 4}), 22, "^node 'pool' "),
        (node(kernel_shape=[2, 2], auto_pad="x" * 900_000), 22, "auto_pad: expected one of"),
    ],
    ids=range(38),
)
def test_bad_nodes_are_named(bad, opset, match):
    scale, zero, result_scale, result_zero = QUANTISATION
    arrays = {"x": X, "z": np.array([2, 3]), "": None}
    if bad.domain == MICROSOFT:
        arrays |= {"x": Q, "a": scale, "b": zero, "c": result_scale, "d": result_zero}
    inputs = [arrays.get(name, X) for name in bad.input]
    with bounds(), pytest.raises(ValueError, match=match) as raised:
        Backend.run_node(bad, inputs, opset_version=opset)
    assert str(raised.value).startswith(f"node 'pool' ({bad.op_type}): ")
    assert len(str(raised.value)) < 700


@pytest.mark.parametrize(
    ("scale", "zero", "error"),
    [
        (np.float32(0), np.uint8(0), ValueError),
        (np.float32(np.nan), np.uint8(0), ValueError),
        (np.ones(2, np.float32), np.uint8(0), ValueError),
        (np.float32(1), np.int8(0), TypeError),
        (np.float32(1), np.zeros((2, 2), np.uint8), ValueError),
        (np.zeros(0, np.float32), np.uint8(0), ValueError),
        (np.array("one"), np.uint8(0), TypeError),
    ],
)
def test_bad_quantisations(scale, zero, error):
    for name, attributes in (("QLinearAveragePool", WINDOW), ("QLinearGlobalAveragePool", {})):
        given = node(name, "xabcd", domain=MICROSOFT, **attributes)
        with pytest.raises(error, match=r"^node 'pool' \(QLinear.*(x_scale|x_zero_point): "):
            Backend.run_node(given, [Q, scale, zero, np.float32(1), None])
