"""InferenceSession runs averages, global poolings and spatial reductions as onnxruntime does."""

import random
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx.parser
import onnxruntime

import fastpool.onnx
from cases import assert_same
from fastpool.onnx import InferenceSession

ONE_THREAD = onnxruntime.SessionOptions()
ONE_THREAD.intra_op_num_threads = 1
ONE_THREAD.log_severity_level = 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 6, 8)).astype(np.float32)


def cut(model, select="all", **rules):
    """A session of a model, or of its text, with all pooling nodes by fastpool."""
    if isinstance(model, str):
        model = onnx.parser.parse_model(model)
    return InferenceSession(model, ONE_THREAD, select=select, **rules)


def whole(model):
    if isinstance(model, str):
        model = onnx.parser.parse_model(model)
    return onnxruntime.InferenceSession(
        model.SerializeToString(), ONE_THREAD, ["CPUExecutionProvider"]
    )


def model_of(node, inputs, opset):
    """A model of one node, with inputs of unknown shape."""
    graph = onnx.helper.make_graph(
        [node],
        "node",
        [
            onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), [None] * array.ndim
            )
            for name, array in inputs.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in node.output],
    )
    opsets = [onnx.helper.make_opsetid("", opset), onnx.helper.make_opsetid("com.microsoft", 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)


# ------------------------------------------------------------------------------- AveragePool


def random_window(choose, n, dilated):
    """Attributes that onnxruntime takes: padding is less than the window, and SAME not dilated."""
    window = [choose.randint(1, 4) for _ in range(n)]
    attributes = {"kernel_shape": window, "count_include_pad": choose.randint(0, 1)}
    if choose.random() < 0.3:
        # (With a stride larger than the window onnxruntime crops the input.)
        attributes["strides"] = [choose.randint(1, k) for k in window]
        attributes["auto_pad"] = choose.choice(["SAME_UPPER", "SAME_LOWER"])
    else:
        attributes["strides"] = [choose.randint(1, 3) for _ in range(n)]
        attributes["pads"] = [choose.randint(0, k - 1) for k in window * 2]
        attributes["ceil_mode"] = choose.randint(0, 1)
        if dilated:
            attributes["dilations"] = [choose.randint(1, 2) for _ in range(n)]
    return attributes


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_sequential_windows_have_the_bits_of_onnxruntime(n, dtype, seed):
    """From opset 19 on."""
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    opset = choose.choice([19, 21, 22])
    node = onnx.helper.make_node("AveragePool", ["x"], ["y"], **random_window(choose, n, True))
    x = rng.standard_normal((2, 3, *(choose.randint(7, 9) for _ in range(n))))
    x = {"x": (x * 10 ** rng.uniform(-2, 2, x.shape)).astype(dtype)}
    model = model_of(node, x, opset)
    session = cut(model, numerics="sequential")
    assert len(session.pooling_nodes) == 1
    (got,), (expected,) = session.run(None, x), whole(model).run(None, x)
    assert_same(got, expected)


@pytest.mark.parametrize("opset", [7, 11, 18, 22])
@pytest.mark.parametrize("numerics", ["exact", "sequential"])
def test_any_opset_within_rounding(opset, numerics):
    attributes = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    node = onnx.helper.make_node("AveragePool", ["x"], ["y"], **attributes, count_include_pad=1)
    model = model_of(node, {"x": X}, opset)
    (got,) = cut(model, numerics=numerics).run(None, {"x": X})
    (expected,) = whole(model).run(None, {"x": X})
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7, strict=True)


@pytest.mark.parametrize("name", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_global_pools(name, dtype, n):
    x = {"x": RNG.standard_normal((2, 3, 5, 4, 3)[: 2 + n]).astype(dtype)}
    model = model_of(onnx.helper.make_node(name, ["x"], ["y"]), x, 13)
    (got,), (expected,) = cut(model).run(None, x), whole(model).run(None, x)
    step = np.finfo(dtype).eps if name == "GlobalAveragePool" else 0
    np.testing.assert_allclose(got, expected, rtol=4 * step, atol=4 * step, strict=True)


# ------------------------------------------------------------------------------- quantised


def exact_means(x, quantisation, attributes, channels_last):
    """Real means in steps of the result, without rounding: Fractions before the zero point."""
    scale, zero, result_scale, _ = quantisation
    layout = "NHWC" if channels_last else "NCHW"
    attributes = dict(attributes)
    windows = attributes.pop("kernel_shape"), layout
    wide = x.astype(np.int32) - int(zero)
    counts = {"divisor": 1, "dtype": "int64", **attributes, "layout": layout}
    sums = fastpool.avg_pool(wide, windows[0], **counts)
    ones = fastpool.avg_pool(np.ones_like(wide), windows[0], **counts)
    if attributes.get("count_include_pad"):
        ones[...] = np.prod(windows[0])  # onnxruntime, of windows beyond the padding too
    step = Fraction(float(scale)) / Fraction(float(result_scale))
    return [
        Fraction(int(s), max(int(n), 1)) * step for s, n in zip(sums.flat, ones.flat, strict=True)
    ]


@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("seed", range(15))
def test_quantised_means_differ_at_ties_only(dtype, channels_last, seed):
    """By one step, where the exact mean lies halfway or within the rounding of float32."""
    choose, rng, info = random.Random(seed), np.random.default_rng(seed), np.iinfo(dtype)
    attributes = random_window(choose, 2, False)
    x = rng.integers(info.min, info.max + 1, (1, 2, choose.randint(7, 9), 8), dtype)
    x = np.ascontiguousarray(np.moveaxis(x, 1, -1)) if channels_last else x
    quantisation = (
        np.float32(choose.choice([1, 0.5, 0.1])),
        dtype(choose.randint(info.min, info.max)),
        np.float32(choose.choice([1, 0.25, 0.3])),
        dtype(choose.randint(info.min, info.max)),
    )
    names = ["x", "xs", "xz", "ys", "yz"]
    inputs = dict(zip(names, (x, *map(np.asarray, quantisation)), strict=True))
    node = onnx.helper.make_node(
        "QLinearAveragePool",
        names,
        ["y"],
        domain="com.microsoft",
        channels_last=channels_last,
        **attributes,
    )
    model = model_of(node, inputs, 13)
    (got,), (expected,) = cut(model).run(None, inputs), whole(model).run(None, inputs)
    assert got.shape == expected.shape and got.dtype == expected.dtype
    means = exact_means(x, quantisation, attributes, channels_last)
    for y, theirs, mean in zip(got.flat, expected.flat, means, strict=True):
        if y != theirs:
            assert abs(int(y) - int(theirs)) == 1
            assert abs(abs(mean - round(mean)) - Fraction(1, 2)) < Fraction(1, 10_000)


def test_conventions_are_those_of_onnxruntime():
    """A last window with a place beyond its padding: only quantised means count that."""
    text = """
    <ir_version: 8, opset_import: ["": 19, "com.microsoft": 1]>
    net (float[n, c, w] x, uint8[n, c, w] q, float s, uint8 o)
        => (float[n, c, w] y, uint8[n, c, w] z) {
        y = AveragePool <kernel_shape = [3], strides = [2], pads = [1, 1], ceil_mode = 1,
                         count_include_pad = 1> (x)
        z = com.microsoft.QLinearAveragePool <kernel_shape = [3], strides = [2], pads = [1, 1],
                         ceil_mode = 1, count_include_pad = 1> (q, s, o, s, o)
    }"""
    inputs = {"x": np.ones((1, 1, 4), np.float32), "q": np.full((1, 1, 4), 60, np.uint8)}
    inputs |= {"s": np.array(1, np.float32), "o": np.array(0, np.uint8)}
    y, z = cut(text).run(None, inputs)
    assert y[0, 0, 2] == 0.5 and z.tolist() == [[[40, 60, 20]]]
    for got, expected in zip((y, z), whole(text).run(None, inputs), strict=True):
        assert_same(got, expected)
    y, z = cut(text, beyond="drop").run(None, inputs)
    assert y[0, 0, 2] == 0.5 and z[0, 0, 2] == 30
    y, z = cut(text, beyond="count").run(None, inputs)
    assert y[0, 0, 2] == np.float32(1 / 3) and z[0, 0, 2] == 20


# ------------------------------------------------------------------------------- reductions

REDUCTION = """
    <ir_version: 8, opset_import: ["": {opset}]>
    net ({inputs}) => (float[n, c, h, w] z) <int64[2] spatial = {{2, 3}}, int64[2] all = {{-2, 3}},
                       int64[1] one = {{2}}, int64[2] first = {{0, 1}}> {{
        {nodes}
    }}"""
INPUT = "float[n, c, h, w] x"


@pytest.mark.parametrize(
    ("opset", "inputs", "nodes", "taken"),
    [
        # Axes as an attribute, an initializer, and a Constant of either kind.
        (17, INPUT, "z = ReduceMean <axes = [2, 3]> (x)", 1),
        (11, INPUT, "z = ReduceMax <axes = [-1, 2], keepdims = 0> (x)", 1),
        (18, INPUT, "z = ReduceMean (x, spatial)", 1),
        (18, INPUT, "z = ReduceMax <keepdims = 0> (x, all)", 1),
        (18, INPUT, "a = Constant <value_ints = [2, 3]> () z = ReduceMean (x, a)", 1),
        (18, INPUT, "a = Constant <value = int64[2] {3, 2}> () z = ReduceMean (x, a)", 1),
        # Ranks that are inferred.
        (
            18,
            "float x0",
            "s = Constant <value_ints = [1, 2, 3, 4]> () x = Expand (x0, s) "
            "z = ReduceMean (x, spatial)",
            1,
        ),
        (
            17,
            "float[24] x24",
            "s = Constant <value_ints = [1, 2, 3, 4]> () "
            "x = Reshape (x24, s) z = ReduceMean <axes = [2, 3]> (x)",
            1,
        ),
        # A part of a layer normalisation, or a mean over time: not worth a cut.
        (17, "float[n, c, w] y", "z = ReduceMean <axes = [-1]> (y)", 0),
        (18, "float[n, c, w] y", "z = ReduceMean (y, one)", 0),
        # Other axes, some of them or none.
        (17, INPUT, "z = ReduceMean <axes = [1, 2]> (x)", 0),
        (17, INPUT, "z = ReduceMean <axes = [2]> (x)", 0),
        (17, INPUT, "z = ReduceMean <axes = [1, 2, 3]> (x)", 0),
        (17, INPUT, "z = ReduceMax (x)", 0),
        (18, INPUT, "z = ReduceMax (x, one)", 0),
        (18, INPUT, "z = ReduceMean (x, first)", 0),
        (18, INPUT, "z = ReduceMean <noop_with_empty_axes = 1> (x)", 0),
        (18, INPUT, "z = ReduceSum (x, spatial)", 0),
        # An unknown rank, and one without batch or channels.
        (
            17,
            "float[n, c, h, w] x, int64[k] s",
            "y = Reshape (x, s) z = ReduceMean <axes = [2, 3]> (y)",
            0,
        ),
        (17, "float[6, 8] xy", "z = ReduceMean <axes = [0, 1]> (xy)", 0),
        # Axes that are computed, or an input.
        (18, INPUT, "a = Add (spatial, spatial) b = Sub (a, spatial) z = ReduceMean (x, b)", 0),
        (18, INPUT + ", int64[2] a", "z = ReduceMean (x, a)", 0),
    ],
    ids=range(22),
)
def test_reductions_that_are_poolings(opset, inputs, nodes, taken):
    text = REDUCTION.format(opset=opset, inputs=inputs, nodes=nodes)
    session = cut(text)
    assert len(session.pooling_nodes) == taken
    arrays = {
        "x": X,
        "x0": np.array(3, np.float32),
        "s": np.array([2, 3, 8, 6]),
        "x24": X.ravel()[:24],
        "xy": X[0, 0],
        "y": X[0],
        "a": np.array([2, 3]),
    }
    fed = {value.name: arrays[value.name] for value in session.get_inputs()}
    (got,), (expected,) = session.run(None, fed), whole(text).run(None, fed)
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7, strict=True)


def test_axes_that_a_caller_may_replace():
    """An initializer among the inputs is a default value, not a constant."""
    model = onnx.parser.parse_model(
        REDUCTION.format(opset=18, inputs=INPUT, nodes="z = ReduceMean (x, spatial)")
    )
    model.graph.input.append(
        onnx.helper.make_tensor_value_info("spatial", onnx.TensorProto.INT64, [2])
    )
    session = cut(model)
    assert session.pooling_nodes == []
    got = session.run(None, {"x": X, "spatial": np.array([0, 1])})[0]
    np.testing.assert_allclose(got, X.mean((0, 1), keepdims=True), rtol=1e-5, atol=1e-7)
    model.ir_version = 3  # in which all constants had to be among the inputs
    assert len(cut(model).pooling_nodes) == 1


def test_axes_with_less_data_than_they_say():
    """onnxruntime refuses them; fastpool leaves them to it."""
    model = onnx.parser.parse_model(
        REDUCTION.format(opset=18, inputs=INPUT, nodes="z = ReduceMean (x, spatial)")
    )
    broken = onnx.TensorProto(dims=[2], data_type=onnx.TensorProto.INT64, name="spatial")
    broken.raw_data = b"\2" + b"\0" * 7
    model.graph.initializer[0].CopyFrom(broken)
    with pytest.raises(Exception, match=r"^\[ONNXRuntimeError\].*spatial"):
        cut(model)


@pytest.mark.parametrize(
    "body",
    [
        "y = local.f (x)  z = Neg (y)",
        "y = local.g (x)  z = Neg (y)",
        """c = Constant <value = bool {1}> ()
        z = If (c) <then_branch = t () => (y) { y = local.f (x) },
                    else_branch = e () => (y) { y = Neg (x) }>""",
    ],
)
def test_models_whose_shapes_cannot_be_inferred(body):
    """Functions that call themselves, or each other; onnxruntime refuses them."""
    text = f"""
    <ir_version: 8, opset_import: ["": 13, "local": 1]>
    net (float[1, 1, 4, 4] x) => (float[1, 1, n, n] z) {{
        a = local.f (x)
        z = ReduceMean <axes = [2, 3]> (a)
    }}
    <domain: "local", opset_import: ["": 13, "local": 1]>
    f (x) => (z) {{ {body} }}
    <domain: "local", opset_import: ["": 13, "local": 1]>
    g (x) => (z) {{ z = local.f (x) }}"""
    with pytest.raises(Exception, match=r"^\[ONNXRuntimeError\]"):
        cut(text)


def calling(function):
    """Return a model that calls a function of one input."""
    sets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(function.domain, 1)]
    call = onnx.helper.make_node(
        function.name, ["x"], ["a"], domain=function.domain, overload=function.overload
    )
    mean = onnx.helper.make_node("ReduceMean", ["a"], ["z"], axes=[2, 3])
    x, z = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("x", [1, 1, 4, 4]), ("z", None))
    )
    graph = onnx.helper.make_graph([call, mean], "net", [x], [z])
    function.opset_import.extend(sets)
    return onnx.helper.make_model(graph, functions=[function], opset_imports=sets, ir_version=10)


def branch(node):
    z = onnx.helper.make_tensor_value_info(node.output[0], onnx.TensorProto.FLOAT, None)
    return onnx.helper.make_graph([node], "branch", [], [z])


def test_a_function_that_calls_itself_in_a_default_attribute():
    true = onnx.helper.make_tensor("c", onnx.TensorProto.BOOL, [], [True])
    constant = onnx.helper.make_node("Constant", [], ["c"], value=true)
    other = branch(onnx.helper.make_node("Neg", ["x"], ["e"]))
    choice = onnx.helper.make_node("If", ["c"], ["y"], else_branch=other)
    kind = onnx.AttributeProto.GRAPH
    choice.attribute.add(name="then_branch", ref_attr_name="g", type=kind)
    function = onnx.helper.make_function("local", "f", ["x"], ["y"], [constant, choice], [])
    itself = branch(onnx.helper.make_node("f", ["x"], ["t"], domain="local"))
    function.attribute_proto.append(onnx.helper.make_attribute("g", itself))
    with pytest.raises(Exception, match=r"^\[ONNXRuntimeError\]"):
        cut(calling(function))


@pytest.mark.parametrize(
    ("name", "overload", "called"),
    [("b:c", "", ("a:b", "c")), ("b", "c", ("a", "b:c")), ("b", "c", ("a:b", "c"))],
)
def test_functions_whose_names_have_colons(name, overload, called):
    """onnx 1.21 and older take them for one another."""
    domain, operator = called
    node = onnx.helper.make_node(operator, ["x"], ["y"], domain=domain)
    function = onnx.helper.make_function("a", name, ["x"], ["y"], [node], [], overload=overload)
    with pytest.raises(Exception, match=r"^\[ONNXRuntimeError\]"):
        cut(calling(function))


def test_a_long_chain_of_functions():
    last = onnx.helper.make_node("Neg", ["x"], ["y"])
    model = calling(onnx.helper.make_function("local", "f0", ["x"], ["y"], [last], []))
    sets = list(model.opset_import)
    for i in range(1, 5000):
        node = onnx.helper.make_node(f"f{i - 1}", ["x"], ["y"], domain="local")
        function = onnx.helper.make_function("local", f"f{i}", ["x"], ["y"], [node], sets)
        model.functions.append(function)
    model.graph.node[0].op_type = "f4999"
    with pytest.raises(Exception, match=r"^\[ONNXRuntimeError\]"):
        cut(model)


def test_ranks_that_are_not_as_the_model_says():
    """The reduction is checked again as it runs."""
    text = """
    <ir_version: 8, opset_import: ["": 13]>
    net (float[n] x, int64[k] s) => (float[n, c] z) <float[n, c, h, w] y> {
        y = Reshape (x, s)
        z = ReduceMean <axes = [2, 3], keepdims = 0> (y)
    }"""
    session = cut(text)
    assert len(session.pooling_nodes) == 1
    x = X.ravel()[:24]
    (got,) = session.run(None, {"x": x, "s": np.array([1, 3, 2, 4])})
    np.testing.assert_allclose(got, x.reshape(1, 3, 8).mean(2), rtol=1e-6)
    with pytest.raises(ValueError, match=r"^node \(ReduceMean\) of the output 'z': axes: expected"):
        session.run(None, {"x": x, "s": np.array([1, 3, 1, 2, 4])})


def test_selected_reductions():
    text = REDUCTION.format(
        opset=17, inputs=INPUT, nodes="a = GlobalMaxPool (x) z = ReduceMean <axes = [2, 3]> (a)"
    )
    session = cut(text, select=lambda node: node.op_type == "ReduceMean")
    assert [node.op_type for node in session.pooling_nodes] == ["ReduceMean"]
    assert_same(session.run(None, {"x": X})[0], fastpool.global_max_pool(X))


def test_means_of_integers():
    """They go toward zero."""
    node = onnx.helper.make_node("ReduceMean", ["x"], ["y"], axes=[2, 3], keepdims=0)
    x = {"x": RNG.integers(-9, 9, (3, 4, 5, 1), np.int32)}
    model = model_of(node, x, 13)
    session = cut(model)
    assert len(session.pooling_nodes) == 1
    assert_same(session.run(None, x)[0], whole(model).run(None, x)[0])


# ------------------------------------------------------------------------------- a whole model


@pytest.mark.parametrize("numerics", ["exact", "sequential"])
def test_a_small_network(numerics):
    """Averages, maxima, a gate of global means, and a head, between convolutions."""
    text = """
    <ir_version: 8, opset_import: ["": 19]>
    net (float[n, 3, 12, 12] x) => (float[n, 2] z) <int64[2] axes = {2, 3}> {
        a = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w1)
        b = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (a)
        c = Conv <kernel_shape = [1, 1]> (b, w2)
        d = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (c)
        g = ReduceMean (d, axes)
        h = Sigmoid (g)
        i = Mul (d, h)
        j = AveragePool <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1> (i)
        k = GlobalAveragePool (j)
        l = GlobalMaxPool (j)
        m = Concat <axis = 1> (k, l)
        o = Flatten (m)
        z = Gemm (o, w3)
    }"""
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(1)
    for name, shape in (("w1", (4, 3, 3, 3)), ("w2", (4, 4, 1, 1)), ("w3", (8, 2))):
        weights = rng.standard_normal(shape, np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    session = cut(model, numerics=numerics)
    assert [node.op_type for node in session.pooling_nodes] == [
        "MaxPool",
        "AveragePool",
        "ReduceMean",
        "AveragePool",
        "GlobalAveragePool",
        "GlobalMaxPool",
    ]
    x = {"x": rng.standard_normal((1, 3, 12, 12), np.float32)}
    (got,), (expected,) = session.run(None, x), whole(model).run(None, x)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5, strict=True)


def test_what_onnxruntime_does_not_run():
    """The channels-last domain, and types that its kernels lack."""
    text = """
    <ir_version: 8, opset_import: ["": 19, "com.ms.internal.nhwc": 19]>
    net (double[n, c, h, w] x, uint8[n, h, w, c] q, float s)
        => (double[n, h, w, c] z, double[n, c, h2, w2] m, uint8[n, h3, w3, c] p) {
        y = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (x)
        last = Transpose <perm = [0, 2, 3, 1]> (y)
        z = com.ms.internal.nhwc.AveragePool <kernel_shape = [2, 2], activation = "Relu"> (last)
        m = GlobalMaxPool (x)
        p = com.ms.internal.nhwc.QLinearAveragePool <kernel_shape = [2, 2]> (q, s, , s)
    }"""
    x, q = X.astype(float), RNG.integers(0, 256, (1, 3, 4, 2), np.uint8)
    scale = np.array(0.5, np.float32)
    z, m, p = cut(text).run(None, {"x": x, "q": q, "s": scale})
    y = np.maximum(fastpool.avg_pool(fastpool.avg_pool(x, 2, strides=2), 2), 0)
    assert_same(z, np.moveaxis(y, 1, -1))
    assert_same(m, fastpool.global_max_pool(x))
    assert_same(p, fastpool.avg_pool(q, 2, layout="NHWC"))
