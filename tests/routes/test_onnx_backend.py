"""fastpool.onnx.Backend passes the onnx package's tests of pooling, and runs models of any kind."""

import importlib
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx.backend.test
import onnx.backend.test.runner
import onnx.parser

import fastpool.onnx
import limits
from cases import assert_same
from fastpool.onnx import Backend

LIST_ALL_TESTS = onnx.backend.test.runner.load_model_tests
# onnx 1.21 and older read the models of node tests from files.
STORED = tuple(map(int, onnx.__version__.split(".")[:2])) < (1, 22)
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 6, 8)).astype(np.float32)
NHWC = "com.ms.internal.nhwc"


# ------------------------------------------------------------------------- the official tests


def pooling_tests(data_dir=None, kind=None):
    """Stands in for onnx's loader: making the node tests of every operator takes 10 seconds."""
    if kind == "node" and not STORED:
        modules = ("averagepool", "globalaveragepool", "globalmaxpool", "lppool", "maxpool")
        for module in (*modules, "maxunpool"):
            importlib.import_module(f"onnx.backend.test.case.node.{module}")
        cases = onnx.backend.test.case.node._NodeTestCases
        poolings = ("MaxPool", "MaxUnpool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool")
        poolings += ("LpPool",)
        return [c for c in cases if c.model.graph.node[0].op_type in poolings]
    if kind in ("node", "pytorch-converted", "pytorch-operator"):
        return [c for c in LIST_ALL_TESTS(kind=kind) if "pool" in c.name.lower()]
    return []


def collect():
    """Test name -> unittest class that holds it, for the CPU."""
    with mock.patch.object(onnx.backend.test.runner, "load_model_tests", pooling_tests):
        classes = onnx.backend.test.BackendTest(Backend, __name__).test_cases.values()
    return {
        name: case
        for case in classes
        for name in dir(case)
        if name.startswith("test_") and name.endswith("_cpu")
    }


TESTS = collect()


@pytest.mark.parametrize("name", TESTS)
def test_onnx_backend(name):
    """All of them pass; there is no list of exceptions."""
    TESTS[name](name).debug()


def test_onnx_backend_is_complete():
    """A renamed module or loader must not turn the tests above into none."""
    names = " ".join(TESTS)
    assert names.count("test_maxpool_") >= 19
    assert names.count("test_maxunpool_") >= 2
    assert names.count("test_MaxPool") >= 8
    assert "test_operator_maxpool" in names
    assert names.count("test_averagepool_") >= 19
    assert names.count("test_globalaveragepool_") >= 2
    assert names.count("test_globalmaxpool_") >= 2
    assert names.count("test_AvgPool") >= 7
    assert names.count("test_lppool_") >= 8


# --------------------------------------------------------------------------- one node at a time


def node(op_type="MaxPool", inputs="x", outputs="y", name="pool", domain="", **attributes):
    """Names of inputs and outputs are letters, "-" for an absent one."""
    inputs, outputs = ([n.replace("-", "") for n in names] for names in (inputs, outputs))
    return onnx.helper.make_node(op_type, inputs, outputs, name, domain=domain, **attributes)


WINDOW = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}


@pytest.mark.parametrize("opset", [1, 7, 8, 9, 10, 11, 12, 21, 22, None])
def test_max_pool_of_every_opset_version(opset):
    """Each with the attributes and outputs that came with it or before it."""
    attributes, version = dict(WINDOW), opset or 22
    if version >= 8:
        attributes["storage_order"] = 1
    if version >= 10:
        attributes |= {"dilations": [1, 2], "ceil_mode": 1}
    outputs = "yz" if version >= 8 else "y"
    pool = node(outputs=outputs, **attributes)
    got = Backend.run_node(pool, [X], opset_version=opset)
    expected = fastpool.onnx.max_pool(X, **attributes, n_outputs=len(outputs))
    for output, same in zip(got, expected if version >= 8 else (expected,), strict=True):
        assert_same(output, same)


@pytest.mark.parametrize("opset", [9, 11, 22, None])
def test_max_unpool_of_every_opset_version(opset):
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    y, z = fastpool.onnx.max_pool(X, **window, n_outputs=2)
    (got,) = Backend.run_node(node("MaxUnpool", "yz", "x", **window), [y, z], opset_version=opset)
    assert_same(got, fastpool.onnx.max_unpool(y, z, **window))
    larger = np.array([2, 3, 7, 9])
    unpool = node("MaxUnpool", "yzs", "x", **window)
    (got,) = Backend.run_node(unpool, [y, z, larger], opset_version=opset)
    assert_same(got, fastpool.onnx.max_unpool(y, z, [2, 3, 7, 9], **window))
    (got,) = Backend.run_node(unpool, [y, z, larger], opset_version=opset, index_space="output")
    assert_same(got, fastpool.onnx.max_unpool(y, z, [2, 3, 7, 9], **window, index_space="output"))


@pytest.mark.parametrize("version", [1, 11, 12, 22])
def test_channels_last_domains(version):
    last = np.ascontiguousarray(np.moveaxis(X, 1, -1))
    clip = {"activation": "Clip", "activation_params": [-0.5, 0.5]}
    pool = node(outputs="yz" if version >= 8 else "y", domain=NHWC, **WINDOW, **clip)
    got = Backend.run_node(pool, [last], opset_version=version)
    expected = fastpool.onnx.max_pool(last, **WINDOW, **clip, layout="NHWC", n_outputs=2)
    for output, same in zip(got, expected, strict=version >= 8):
        assert_same(output, same)
    if version >= 9:
        window = {"kernel_shape": [2, 2], "strides": [2, 2], "activation": "Relu"}
        unpool = node("MaxUnpool", "yz", "x", domain=NHWC, **window)
        (back,) = Backend.run_node(unpool, got, opset_version=version)
        assert_same(back, fastpool.onnx.max_unpool(*got, **window, layout="NHWC"))

    quantized = RNG.integers(0, 255, (1, 5, 6, 3), np.uint8)
    window = WINDOW | {"dilations": [1, 2], "ceil_mode": 1}
    pool = node("NhwcMaxPool", domain="com.microsoft", **window)
    (got,) = Backend.run_node(pool, [quantized], opset_version=version)
    assert_same(got, fastpool.onnx.max_pool(quantized, **window, layout="NHWC"))


@pytest.mark.parametrize(
    ("bad", "opset", "match"),
    [
        (node(), 22, "kernel_shape is missing"),
        (node("MaxUnpool", "yz", "x"), 22, "kernel_shape is missing"),
        (node(kernel_shape=2), 22, "kernel_shape: expected INTS, got INT"),
        (node(kernel_shape=[2.0, 2.0]), 22, "kernel_shape: expected INTS, got FLOATS"),
        (node(kernel_shape="2,2"), 22, "kernel_shape: expected INTS, got STRING"),
        (node(**WINDOW, auto_pad=3), 22, "auto_pad: expected STRING, got INT"),
        (node(**WINDOW, ceil_mode=[1]), 22, "ceil_mode: expected INT, got INTS"),
        (node(**WINDOW, ceil_mode=1), 9, "ceil_mode came with opset 10, the model imports 9"),
        (node(**WINDOW, dilations=[1, 1]), 8, "dilations came with opset 10"),
        (node(**WINDOW, storage_order=0), 7, "storage_order came with opset 8"),
        (node(**WINDOW, count_include_pad=1), 22, "unknown attribute count_include_pad"),
        (node(**WINDOW, activation="Relu"), 22, "unknown attribute activation"),
        (node("MaxUnpool", "yz", "x", **WINDOW, dilations=[1, 1]), 22, "unknown attribute dil"),
        (node("NhwcMaxPool", domain="com.microsoft", **WINDOW, storage_order=1), 22, "unknown"),
        (node("MaxUnpool", "yz", "x", **WINDOW), 8, "MaxUnpool came with opset 9"),
        (node(inputs="", **WINDOW), 22, "expected inputs x, got"),
        (node(inputs="-", **WINDOW), 22, "expected inputs x, got"),
        (node(inputs="xx", **WINDOW), 22, "expected inputs x, got"),
        (node("MaxUnpool", "y", "x", **WINDOW), 22, "expected inputs x, indices"),
        (node("MaxUnpool", "y-s", "x", **WINDOW), 22, "expected inputs x, indices"),
        (node("MaxUnpool", "yzsx", "x", **WINDOW), 22, "expected inputs x, indices"),
        (node(outputs="", **WINDOW), 22, "expected outputs y, indices, got"),
        (node(outputs="-z", **WINDOW), 22, "expected outputs y, indices, got"),
        (node(outputs="yzw", **WINDOW), 22, "expected outputs y, indices, got"),
        (node(outputs="yz", **WINDOW), 7, "expected outputs y, got"),
        (node("MaxUnpool", "yz", "xw", **WINDOW), 22, "expected outputs y, got"),
        (node(kernel_shape=[2, 2], strides=[2]), 22, "strides: expected 2 ints, got 1"),
        (node(kernel_shape=[2, 2], auto_pad="SAME"), 22, "auto_pad: expected one of"),
        (node(kernel_shape=[2, 0]), 22, r"kernel_shape\[1\]: expected an int of at least 1"),
        (node(kernel_shape=[20, 2]), 22, r"kernel_shape\[0\]: window .* exceeds"),
        (node("Transpose", perm=[5]), 22, "[Pp]ermutation"),
        (node("Transpose", perms=[0]), 22, "perms"),
        (node("QuantizeLinear", "xy"), 9, "QuantizeLinear"),
    ],
)
def test_bad_nodes_are_named(bad, opset, match):
    y, z = X[:, :, :2, :2], np.zeros((2, 3, 2, 2), int)
    arrays = {"x": X, "y": y, "z": z, "s": np.array(X.shape), "": None}
    with pytest.raises(ValueError, match=rf"^node 'pool' \({bad.op_type}\): .*{match}"):
        Backend.run_node(bad, [arrays[name] for name in bad.input], opset_version=opset)


def test_attributes_given_twice_or_not_given():
    twice = node(**WINDOW)
    twice.attribute.append(onnx.helper.make_attribute("strides", [1, 1]))
    with pytest.raises(ValueError, match=r"^node 'pool' \(MaxPool\): strides is given twice"):
        Backend.run_node(twice, [X])
    of_function = node(**WINDOW)
    of_function.attribute[0].ref_attr_name = "window"
    with pytest.raises(ValueError, match="pool.*kernel_shape refers to a function"):
        Backend.run_node(of_function, [X])
    untyped = node(**WINDOW)
    untyped.attribute[0].ClearField("type")
    with pytest.raises(ValueError, match="pool.*kernel_shape: expected INTS, got UNDEFINED"):
        Backend.run_node(untyped, [X])


def test_a_node_without_a_name_is_called_by_its_output():
    with pytest.raises(ValueError, match=r"^node \(MaxPool\) of the output 'y': kernel_shape"):
        Backend.run_node(node(name=""), [X])


def test_wrong_arrays_are_errors_of_their_kind():
    with pytest.raises(TypeError, match=r"^node 'pool' \(MaxPool\): x: expected one of float16"):
        Backend.run_node(node(**WINDOW), [X.astype(complex)])
    with pytest.raises(ValueError, match=r"^node 'pool' \(MaxUnpool\): indices\["):
        Backend.run_node(node("MaxUnpool", "yz", "x", **WINDOW), [X, np.full(X.shape, -1)])


def test_options():
    pool = node(kernel_shape=[1], strides=[2], ceil_mode=1)
    x = np.array([[[1.0, np.nan]]])
    assert Backend.run_node(pool, [x])[0].tolist() == [[[1.0]]]
    assert Backend.run_node(pool, [x], ceil_rule="keep")[0].tolist() == [[[1.0, -np.inf]]]
    pool = node(kernel_shape=[2])
    assert Backend.run_node(pool, [x], nan="ignore", num_threads=1)[0].tolist() == [[[1.0]]]
    pool = node(kernel_shape=[2], auto_pad="VALID", pads=[1, 1])
    assert Backend.run_node(pool, [x], pads_with_auto_pad="ignore")[0].shape == (1, 1, 1)
    with pytest.raises(ValueError, match="pads"):
        Backend.run_node(pool, [x])
    with pytest.raises(TypeError, match="layout: expected one of nan, "):
        Backend.run_node(pool, [x], layout="NHWC")
    with pytest.raises(ValueError, match="nan: expected one of"):
        Backend.run_node(node(kernel_shape=[2]), [x], nan="drop")


def test_options_are_checked_when_a_model_is_made_ready():
    """No node of this model has most of them."""
    model = onnx.parser.parse_model(ROUND_TRIP)
    for name in ("nan", "ceil_rule", "pads_with_auto_pad", "index_space"):
        with pytest.raises(ValueError, match=f"^{name}: expected one of .*, got 'wrong'$"):
            Backend.prepare(model, **{name: "wrong"})
    for name in ("numerics", "beyond", "partial", "num_threads"):
        with pytest.raises(TypeError, match=f"^{name}: expected .*, got 0.5$"):
            Backend.prepare(model, **{name: 0.5})
    with pytest.raises(ValueError, match="^num_threads: expected an int of at least 1, got 0$"):
        Backend.prepare(model, num_threads=0)
    Backend.prepare(model, **dict.fromkeys(fastpool.onnx._nodes.RULES))


@pytest.mark.parametrize(("device", "supported"), [("CPU", 1), ("CPU:0", 1), ("CUDA", 0), (3, 0)])
def test_devices(device, supported):
    assert Backend.supports_device(device) == bool(supported)
    if not supported:
        with pytest.raises(ValueError, match='device: expected "CPU", got'):
            Backend.run_node(node(**WINDOW), [X], device)


# ------------------------------------------------------------------------------------- models

ROUND_TRIP = """
    <ir_version: 8, opset_import: ["": 13]>
    round_trip (float[n, 3, h, w] x) => (float[n, 3, h, w] back, float[n, 3, h2, w2] y) {
        y, where = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
        shape = Shape (x)
        back = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (y, where, shape)
    }"""


def test_a_model():
    model = onnx.parser.parse_model(ROUND_TRIP)
    back, y = Backend.prepare(model).run([X])
    assert_same(y, fastpool.max_pool(X, 2, strides=2))
    assert_same(np.where(back == 0, X, back), X)
    assert np.count_nonzero(back) == y.size
    for output, same in zip(Backend.run_model(model, [X]), (back, y), strict=True):
        assert_same(output, same)


def test_a_model_by_path_and_as_bytes(tmp_path):
    model = onnx.parser.parse_model(ROUND_TRIP)
    onnx.save(model, tmp_path / "model.onnx")
    for given in (tmp_path / "model.onnx", str(tmp_path / "model.onnx"), model.SerializeToString()):
        assert_same(Backend.run_model(given, [X])[1], fastpool.max_pool(X, 2, strides=2))
    with pytest.raises(FileNotFoundError):
        Backend.prepare(tmp_path / "none.onnx")
    with pytest.raises(ValueError, match="^model: Error parsing"):
        Backend.prepare(b"\xff" * 100)
    for wrong in (None, 3, model.graph, [model]):
        with pytest.raises(TypeError, match="model: expected an onnx.ModelProto, a path or bytes"):
            Backend.prepare(wrong)


def test_operators_that_move_data():
    """A quantized block of three branches, as exporters write them."""
    text = """
    <ir_version: 8, opset_import: ["": 13, "com.microsoft": 1]>
    block (uint8[n, c, h, w] q) => (uint8[k, m] flat, float[n, c3, h, w] y)
    <float scale = {0.5}, uint8 zero = {128}> {
        x = DequantizeLinear (q, scale, zero)
        a = MaxPool <kernel_shape = [5, 5], pads = [2, 2, 2, 2]> (x)
        b = MaxPool <kernel_shape = [5, 5], pads = [2, 2, 2, 2]> (a)
        y = Concat <axis = 1> (x, a, b)
        z = QuantizeLinear (y, scale, zero)
        last = Transpose <perm = [0, 2, 3, 1]> (z)
        pooled = com.microsoft.NhwcMaxPool <kernel_shape = [2, 2]> (last)
        same = Identity (pooled)
        axes = Constant <value = int64[1] {0}> ()
        more = Unsqueeze (same, axes)
        less = Squeeze (more, axes)
        whole = Constant <value = int64[2] {1, -1}> ()
        row = Reshape (less, whole)
        flat = Flatten <axis = 0> (row)
    }"""
    q = RNG.integers(0, 255, (2, 3, 6, 8), np.uint8)
    flat, y = Backend.run_model(onnx.parser.parse_model(text), [q])
    five = {"kernel_shape": 5, "pads": 2}
    a = fastpool.max_pool(q, **five)
    quantized = np.concatenate([q, a, fastpool.max_pool(a, **five)], axis=1)
    assert_same(y, (quantized.astype(np.float32) - 128) / 2)
    pooled = fastpool.max_pool(np.moveaxis(quantized, 1, -1), 2, layout="NHWC")
    assert_same(flat, pooled.reshape(1, -1))


def test_operators_that_are_not_supported_are_named_all_at_once():
    text = """
    <ir_version: 8, opset_import: ["": 13, "own.domain": 1, "ai.onnx.ml": 1]>
    net (float[n, c, h, w] x, float[c, c, h, w] k) => (float[n, c, h, w] z) {
        a = Conv (x, k)
        b = MaxPool <kernel_shape = [2, 2]> (a)
        c = own.domain.MaxPool <kernel_shape = [2, 2]> (b)
        d = ai.onnx.ml.Scaler (c)
        z = Conv (d, k)
    }"""
    model = onnx.parser.parse_model(text)
    expected = r"unsupported operators: Conv \(2\), own.domain.MaxPool \(1\), "
    with pytest.raises(ValueError, match=expected + r"ai.onnx.ml.Scaler \(1\); fastpool.onnx.Inf"):
        Backend.prepare(model)
    assert not Backend.is_compatible(model)
    assert Backend.is_compatible(onnx.parser.parse_model(ROUND_TRIP))
    assert not Backend.is_compatible(onnx.parser.parse_model(ROUND_TRIP), "CUDA")


@pytest.mark.parametrize("ir_version", [3, 8])
def test_initializers_among_the_inputs_are_default_values(ir_version):
    """But for old models, in which every constant had to be among the inputs."""
    text = f"""
    <ir_version: {ir_version}, opset_import: ["": 11]>
    net (float[1, 1, 2] y, int64[1, 1, 2] where, int64[3] shape) => (float[1, 1, n] x)
    <int64[3] shape = {{1, 1, 6}}> {{
        x = MaxUnpool <kernel_shape = [2], strides = [2]> (y, where, shape)
    }}"""
    prepared = Backend.prepare(onnx.parser.parse_model(text))
    y, where = np.array([[[5, 7]]], np.float32), np.array([[[1, 2]]])
    assert prepared.run([y, where])[0].tolist() == [[[0, 5, 7, 0, 0, 0]]]
    more = [y, where, np.array([1, 1, 5])]
    if ir_version == 8:
        assert prepared.run(more)[0].tolist() == [[[0, 5, 7, 0, 0]]]
    else:
        with pytest.raises(ValueError, match="expected a list of 2 arrays: 'y', 'where'"):
            prepared.run(more)


def test_absent_inputs_and_outputs():
    """Names of "" at the end, and between."""
    text = """
    <ir_version: 8, opset_import: ["": 13]>
    net (float[1, 1, 4] x) => (float[1, 1, n] back) {
        y, where = MaxPool <kernel_shape = [2], strides = [2]> (x)
        back = MaxUnpool <kernel_shape = [2], strides = [2]> (y, where)
    }"""
    model = onnx.parser.parse_model(text)
    model.graph.node[1].input.append("")
    again = model.graph.node.add()
    again.CopyFrom(model.graph.node[0])
    again.output[:] = ["y2", ""]
    model.graph.output.append(onnx.ValueInfoProto(name="y2"))
    back, y = Backend.run_model(model, [np.array([[[1, 3, 2, 4]]], np.float32)])
    assert back.tolist() == [[[0, 3, 0, 4]]]
    assert y.tolist() == [[[3, 4]]]


def test_inputs_are_outputs_and_constants_too():
    text = """
    <ir_version: 8, opset_import: ["": 13]>
    net (float[1, 1, 2] x) => (float[1, 1, 2] x, float[1] c, float[1, 1, 1] y)
    <float[1] c = {7.0}, float[1, 1, 3] fixed = {1.0, 3.0, 2.0}> {
        y = MaxPool <kernel_shape = [3]> (fixed)
    }"""
    x = np.array([[[1, 2]]], np.float32)
    got = Backend.run_model(onnx.parser.parse_model(text), [x])
    assert [array.tolist() for array in got] == [[[[1, 2]]], [7], [[[3]]]]


def test_inputs_that_do_not_fit():
    prepared = Backend.prepare(onnx.parser.parse_model(ROUND_TRIP))
    with pytest.raises(TypeError, match="^input 'x': expected float32, got float64"):
        prepared.run([X.astype(float)])
    with pytest.raises(ValueError, match=r"^input 'x': expected shape .*, got \(3, 6, 8\)"):
        prepared.run([X[0]])
    with pytest.raises(ValueError, match=r"^input 'x': expected shape .*, got \(2, 2, 6, 8\)"):
        prepared.run([X[:, 1:]])
    for inputs in ([], [X, X], X, {"x": X}):
        with pytest.raises(ValueError, match="^inputs: expected a list of 1 arrays: 'x'"):
            prepared.run(inputs)


def test_values_are_given_up_after_their_last_use():
    """A chain of 50 poolings of 4 MiB needs a few of them at a time."""
    nodes = [node(inputs=[f"v{i}"], outputs=[f"v{i + 1}"], kernel_shape=[2]) for i in range(50)]
    x = onnx.helper.make_tensor_value_info("v0", onnx.TensorProto.FLOAT, [1, 1, None])
    graph = onnx.helper.make_graph(nodes, "chain", [x], [onnx.ValueInfoProto(name="v50")])
    prepared = Backend.prepare(onnx.helper.make_model(graph))
    array = np.ones((1, 1, 1 << 20), np.float32)
    assert limits.allocated(lambda: prepared.run([array])) < 4 * array.nbytes
