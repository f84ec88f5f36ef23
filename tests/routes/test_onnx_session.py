"""fastpool.onnx.InferenceSession gives what onnxruntime alone gives; it cuts models at poolings."""

import doctest
import os
import random
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx.parser
import onnxruntime

import cases
import fastpool.onnx
from cases import assert_same
from fastpool.onnx import InferenceSession

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 6, 8)).astype(np.float32)
ONE_THREAD = onnxruntime.SessionOptions()
ONE_THREAD.intra_op_num_threads = 1
ONE_THREAD.log_severity_level = 3


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


@pytest.mark.parametrize("module", ["_backend", "_session"])
def test_docstrings(module):
    module = __import__(f"fastpool.onnx.{module}", fromlist=["x"])
    results = doctest.testmod(module)
    assert results.attempted > 3 and results.failed == 0


@pytest.mark.parametrize("page", ["onnx.md", "coming-from/onnxruntime.md"])
def test_recipes(page):
    cases.check_page(page, 10)


# ------------------------------------------------------------------------------- known networks

EXAMPLE = runpy.run_path(ROOT / "examples" / "onnx_session.py")


@pytest.mark.parametrize(
    ("name", "pools", "pieces"),
    [
        ("squeezenet", 4, 5),
        ("inception_v1", 14, 15),
        ("densenet121", 5, 6),
        ("inception_v2", 13, 14),
    ],
)
def test_networks(name, pools, pieces):
    """(Not exactly: onnxruntime multiplies in another order where it sees less of a network.)"""
    model = EXAMPLE["random_weights"](onnx.load(EXAMPLE["NETWORKS"] / f"light_{name}.onnx"))
    session = cut(model)
    assert len(session.pooling_nodes) == pools
    assert session.pooling_nodes == [node for node in model.graph.node if "Pool" in node.op_type]
    assert len(session._program._steps) == pools + pieces
    x = {value.name: RNG.standard_normal(value.shape, np.float32) for value in session.get_inputs()}
    (got,), (expected,) = session.run(None, x), whole(model).run(None, x)
    assert expected.max() > 3 * expected.min()
    near = 1e-6 * abs(expected).max()
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=near, strict=True)


def test_a_network_of_eight_bits():
    """Every image inside, exactly: integers are added, and onnxruntime's means do not round."""
    model = EXAMPLE["eight_bits"]()
    names = [name for node in model.graph.node for name in node.output]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names[:-1])
    session = cut(model)
    pools = [node for node in model.graph.node if "Pool" in node.op_type]
    assert session.pooling_nodes == pools and len(pools) == 6
    x = {"x": RNG.standard_normal((1, 3, 224, 224), np.float32)}
    for got, expected in zip(session.run(None, x), whole(model).run(None, x), strict=True):
        assert expected.std() > 0
        assert_same(got, expected)


def test_filled_weights_stay_in_their_pieces():
    """The networks as they are: weights come out of nodes, and onnxruntime is to know them."""
    session = InferenceSession(
        EXAMPLE["NETWORKS"] / "light_squeezenet.onnx", ONE_THREAD, select="all"
    )
    assert [len(inputs) for _, inputs, _, _ in session._program._steps] == [1] * 9


def test_example(monkeypatch, capsys):
    model = str(EXAMPLE["NETWORKS"] / "light_squeezenet.onnx")
    monkeypatch.setattr("sys.argv", ["onnx_session.py", model, "--seconds", "0.1"])
    EXAMPLE["main"]()
    line = "light_squeezenet.onnx, threads 1: the outputs agree; 0 of 4 pooling nodes with fastpool"
    assert line in capsys.readouterr().out


# ------------------------------------------------------------------------------- random graphs


def random_model(seed):
    """A graph of pooling nodes and others in any order, with constants, and outputs anywhere."""
    choose = random.Random(seed)
    nodes, values, constants = [], ["x0", "x1"], ["w"]
    weights = onnx.numpy_helper.from_array(np.full((1, 3, 1, 1), 0.5, np.float32), "w")
    for i in range(choose.randint(1, 14)):
        op_type = choose.choice(["MaxPool", "MaxPool", "Add", "Sub", "Neg", "Constant", "Abs"])
        inputs, outputs, attributes = [choose.choice(values)], [f"v{i}"], {}
        if op_type == "MaxPool":
            attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
            outputs += [f"indices{i}"] * choose.randint(0, 1)
        elif op_type in ("Add", "Sub"):
            inputs.append(choose.choice(values + constants))
        elif op_type == "Constant":
            inputs, attributes = [], {"value": weights}
        elif op_type == "Abs":
            inputs = [choose.choice(constants)]
        nodes.append(onnx.helper.make_node(op_type, inputs, outputs, **attributes))
        (constants if op_type in ("Constant", "Abs") else values).append(outputs[0])
    made = [name for node in nodes for name in node.output]
    graph = onnx.helper.make_graph(
        nodes,
        "random",
        [
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None, 3, None, None])
            for name in ("x0", "x1")
        ],
        [onnx.ValueInfoProto(name=name) for name in choose.sample(made, min(len(made), 4))],
        [weights],
    )
    opsets = [onnx.helper.make_opsetid("", 13)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed):
    model = random_model(seed)
    inputs = {"x0": X, "x1": X[::-1].copy()}
    session = cut(model)
    assert len(session.pooling_nodes) == sum(n.op_type == "MaxPool" for n in model.graph.node)
    for got, expected in zip(
        session.run(None, inputs), whole(model).run(None, inputs), strict=True
    ):
        assert_same(got, expected)


# ------------------------------------------------------------------------------- kinds of graphs


def test_parallel_branches_are_one_piece():
    """Three levels, two of them with pooling nodes in two branches."""
    text = """
    <ir_version: 8, opset_import: ["": 13]>
    net (float[2, 3, 6, 8] x) => (float[2, 6, 6, 8] z) {
        a = Neg (x)
        a1 = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (a)
        b1 = MaxPool <kernel_shape = [5, 5], pads = [2, 2, 2, 2]> (x)
        a2 = Neg (a1)
        b2 = Neg (b1)
        a3 = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (a2)
        b3 = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (b2)
        z = Concat <axis = 1> (a3, b3)
    }"""
    session = cut(text)
    outputs = [step[2] for step in session._program._steps]
    assert outputs == [["a"], ("a1",), ("b1",), ["a2", "b2"], ("a3",), ("b3",), ["z"]]
    assert_same(session.run(None, {"x": X})[0], whole(text).run(None, {"x": X})[0])


def test_selected_nodes():
    """Two of three; onnxruntime runs the other."""
    text = """
    <ir_version: 8, opset_import: ["": 13]>
    net (float[2, 3, 6, 8] x) => (float[2, 3, h, w] z, int64[2, 3, h2, w2] where) {
        a = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)
        b, where = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (a)
        z = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (b, where)
    }"""
    session = cut(text, select=lambda node: "where" in [*node.input, *node.output])
    assert [node.op_type for node in session.pooling_nodes] == ["MaxPool", "MaxUnpool"]
    none = cut(text, select=lambda node: None)
    assert none.pooling_nodes == []
    for got, same, expected in zip(
        session.run(None, {"x": X}),
        none.run(None, {"x": X}),
        whole(text).run(None, {"x": X}),
        strict=True,
    ):
        assert_same(got, expected)
        assert_same(same, expected)


def test_nothing_but_pooling_and_nothing_of_it():
    pooling = """
    <ir_version: 8, opset_import: ["": 13]>
    net (float[2, 3, h, w] x) => (float[2, 3, h2, w2] y, int64[2, 3, h2, w2] where) {
        y, where = MaxPool <kernel_shape = [2, 2], dilations = [2, 1], storage_order = 1> (x)
    }"""
    other = """
    <ir_version: 8, opset_import: ["": 13]>
    net (float[2, 3, h, w] x) => (float[2, 3, h, w] y, float[2, 3, h, w] x) { y = Neg (x) }"""
    for text, count in ((pooling, 1), (other, 0)):
        session = cut(text)
        assert len(session.pooling_nodes) == count
        if count:
            expected = whole(text).run(None, {"x": X})
        else:
            expected = [-X, X]
        for got, same in zip(session.run(None, {"x": X}), expected, strict=True):
            assert_same(got, same)


def test_what_onnxruntime_does_not_run():
    """The channels-last domain, and types that its kernels lack."""
    text = """
    <ir_version: 8, opset_import: ["": 13, "com.ms.internal.nhwc": 13]>
    net (double[n, c, h, w] x) => (double[n, h, w, c] z, int32[n, c, h2, w2] i) {
        y, where = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
        back = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (y, where)
        last = Transpose <perm = [0, 2, 3, 1]> (back)
        z = com.ms.internal.nhwc.MaxPool <kernel_shape = [2, 2]> (last)
        whole = Cast <to = 6> (x)
        i = MaxPool <kernel_shape = [2, 2]> (whole)
    }"""
    x = X.astype(float)
    z, i = cut(text).run(None, {"x": x})
    back = fastpool.max_unpool(
        *fastpool.max_pool(x, 2, strides=2, return_indices=True), 2, strides=2
    )
    assert_same(z, np.moveaxis(fastpool.max_pool(back, 2), 1, -1))
    assert_same(i, fastpool.max_pool(x.astype(np.int32), 2))


def test_conventions_are_those_of_onnxruntime():
    text = """
    <ir_version: 8, opset_import: ["": 13]>
    net (float[n, c, h, w] x, int64[4] shape) => (float[n, c, h, w] z, float[n, c, h, w] s) {
        y, where = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
        z = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (y, where, shape)
        s = MaxPool <kernel_shape = [3, 3], auto_pad = "SAME_UPPER", pads = [0, 1, 0, 1]> (x)
    }"""
    inputs = {"x": X[:, :, :, :7].copy(), "shape": np.array([2, 3, 6, 7])}
    for got, expected in zip(
        cut(text).run(None, inputs), whole(text).run(None, inputs), strict=True
    ):
        assert_same(got, expected)
    with pytest.raises(ValueError, match=r"^node \(MaxPool\) of the output 's': pads"):
        cut(text, pads_with_auto_pad="error").run(None, inputs)
    with pytest.raises(TypeError, match="provider: expected one of"):
        cut(text, provider=1)


def test_random_numbers_are_drawn_once():
    """They depend on no input, and are no constants."""
    text = """
    <ir_version: 8, opset_import: ["": 13]>
    net () => (float[1, 1, 4] y) {
        r = RandomUniform <shape = [1, 1, 4]> ()
        p = MaxPool <kernel_shape = [1]> (r)
        y = Sub (p, r)
    }"""
    assert not cut(text).run(None, {})[0].any()


def test_constants_that_pooling_nodes_read():
    text = """
    <ir_version: 8, opset_import: ["": 13]>
    net (float[1, 1, 2] y, int64[1, 1, 2] where)
        => (float[1, 1, n] a, float[1, 1, n] b, int64[3] more, float[1, 1, 3] p, int64[3] fixed)
    <int64[3] fixed = {1, 1, 6}, int64[3] one = {0, 0, 1}, float[1, 1, 3] f = {1.0, 3.0, 2.0}> {
        more = Add (fixed, one)
        a = MaxUnpool <kernel_shape = [2], strides = [2]> (y, where, fixed)
        b = MaxUnpool <kernel_shape = [2], strides = [2]> (y, where, more)
        p = MaxPool <kernel_shape = [3], pads = [1, 1]> (f)
    }"""
    inputs = {"y": np.array([[[5, 7]]], np.float32), "where": np.array([[[1, 2]]])}
    got = [array.tolist() for array in cut(text).run(None, inputs)]
    assert got[0] == [[[0, 5, 7, 0, 0, 0]]] and got[1] == [[[0, 5, 7, 0, 0, 0, 0]]]
    assert got[2:] == [[1, 1, 7], [[[3, 3, 3]]], [1, 1, 6]]


@pytest.mark.parametrize("ir_version", [3, 8])
def test_default_values(ir_version):
    """Initializers among the inputs: to be replaced, but in old models, where all had to be."""
    text = f"""
    <ir_version: {ir_version}, opset_import: ["": 11]>
    net (float[1, 1, 4] x, float[1] w) => (float[1, 1, 2] z)
    <float[1] w = {{2.0}}> {{
        y = MaxPool <kernel_shape = [2], strides = [2]> (x)
        z = Mul (y, w)
    }}"""
    x = {"x": np.array([[[1, 3, 2, 4]]], np.float32)}
    session = cut(text)
    assert [value.name for value in session.get_inputs()] == ["x"]
    assert session.run(None, x)[0].tolist() == [[[6, 8]]]
    if ir_version == 8:
        assert session.run(None, x | {"w": np.ones(1, np.float32)})[0].tolist() == [[[3, 4]]]
    else:
        with pytest.raises(ValueError, match=r"unknown \['w'\]"):
            session.run(None, x | {"w": np.ones(1, np.float32)})


def test_subgraphs_read_what_is_around_them():
    """Values of another level, and constants; pooling nodes in them are onnxruntime's."""
    text = """
    <ir_version: 8, opset_import: ["": 13]>
    net (float[1, 1, 4] x, bool b) => (float[1, 1, n] z) <float[1] two = {2.0}> {
        a = Neg (x)
        c = Neg (two)
        y = MaxPool <kernel_shape = [2]> (a)
        z = If (b) <
            then_branch = yes () => (float[1, 1, n] t) { d = Mul (a, c)  t = Sub (d, two) },
            else_branch = no () => (float[1, 1, n] e) { e = MaxPool <kernel_shape = [2]> (y) }
        >
    }"""
    session = cut(text)
    assert len(session.pooling_nodes) == 1
    x = np.array([[[1, 3, 2, 4]]], np.float32)
    for b in (True, False):
        inputs = {"x": x, "b": np.array(b)}
        assert_same(session.run(None, inputs)[0], whole(text).run(None, inputs)[0])


def test_functions_are_left_to_onnxruntime():
    text = """
    <ir_version: 8, opset_import: ["": 13, "local": 1]>
    net (float[1, 1, 4] x) => (float[1, 1, n] z) {
        a = local.f (x)
        y = MaxPool <kernel_shape = [2]> (a)
        z = local.f (y)
    }
    <domain: "local", opset_import: ["": 13]>
    f (x) => (z) { y = MaxPool <kernel_shape = [2]> (x)  z = Neg (y) }"""
    session = cut(text)
    assert len(session.pooling_nodes) == 1
    x = {"x": np.array([[[1, 3, 2, 4]]], np.float32)}
    assert_same(session.run(None, x)[0], whole(text).run(None, x)[0])


# ----------------------------------------------------------------------------------- the interface

HALVES = """
    <ir_version: 8, opset_import: ["": 13]>
    net (float[n, 3, 6, 8] x, bool b) => (float[n, 3, 3, 4] y, float[n, 3, 3, 4] z, bool c) {
        y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
        z = Neg (y)
        c = Not (b)
    }"""


def test_inputs_and_outputs_are_described_as_onnxruntime_does():
    ours, theirs = cut(HALVES), whole(HALVES)
    for got, expected in zip(
        ours.get_inputs() + ours.get_outputs(),
        theirs.get_inputs() + theirs.get_outputs(),
        strict=True,
    ):
        assert (got.name, got.type, got.shape) == (expected.name, expected.type, expected.shape)


def test_names_of_inputs_and_outputs():
    session = cut(HALVES)
    inputs = {"x": X, "b": np.array(True)}
    y = fastpool.max_pool(X, 2, strides=2)
    z, again = session.run(["z", "y"], inputs)
    assert_same(z, -y)
    assert_same(again, y)
    assert len(session.run([], inputs)) == len(session.run(None, inputs)) == 3
    assert_same(*session.run(iter(["y"]), inputs), y)
    for wrong in ("y", 5, [["y"]]):
        with pytest.raises(TypeError, match="^output_names: expected a list of names or None, got"):
            session.run(wrong, inputs)
    with pytest.raises(ValueError, match=r"^output_names: unknown \['w'\]"):
        session.run(["w", "y"], inputs | {"x": X.astype(float)})  # before the inputs are read
    with pytest.raises(ValueError, match=r"^input_feed: missing \['b'\], unknown \['w'\]"):
        session.run(None, {"x": X, "w": X})
    with pytest.raises(TypeError, match=r"^input_feed: expected a dict of the inputs, got \["):
        session.run(None, [X])
    with pytest.raises(
        TypeError, match="^run_options: expected onnxruntime.RunOptions or None, got 3"
    ):
        session.run(None, inputs, 3)
    with pytest.raises(TypeError, match="^input 'x': expected float32, got float64"):
        session.run(None, inputs | {"x": X.astype(float)})
    with pytest.raises(ValueError, match="^input 'x': expected shape"):
        session.run(None, inputs | {"x": X[:, :2]})


def test_inputs_in_the_other_byte_order():
    """Also those that a piece reads first, whose bytes onnxruntime takes as they are."""
    text = """
        <ir_version: 8, opset_import: ["": 13]>
        net (float[1, 3, 6, 8] x) => (float[1, 3, 5, 7] y) {
            z = Neg (x)
            y = MaxPool <kernel_shape = [2, 2]> (z)
        }"""
    x = X[:1]
    other = x.astype(x.dtype.newbyteorder())
    assert_same(cut(text).run(None, {"x": other})[0], fastpool.max_pool(-x, 2))


def test_options_reach_every_piece():
    key = "session.intra_op.allow_spinning"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = InferenceSession(onnx.parser.parse_model(HALVES), options, select="all")
    assert options.get_session_config_entry(key) == "0"
    y = fastpool.max_pool(X, 2, strides=2)
    assert_same(session.run(["y"], {"x": X, "b": np.array(True)})[0], y)
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry(key, "1")
    InferenceSession(onnx.parser.parse_model(HALVES), options, select="all")
    assert options.get_session_config_entry(key) == "1"


THREADS = """
import numpy as np
import onnx.parser
import onnxruntime
from fastpool.onnx import InferenceSession

def started():
    with open("/proc/self/status") as f:
        return int(next(line for line in f if line.startswith("Threads:")).split()[1])

def model(count):
    text = "".join(
        f"p{i} = MaxPool <kernel_shape = [1, 1]> (v{i})  v{i + 1} = Neg (p{i}) "
        for i in range(count)
    )
    return onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]>'
        f"net (float[n, c, h, w] v0) => (float[n, c, h, w] v{count}) {{ {text} }}"
    )

def threads_of(count, options):
    chosen = options.intra_op_num_threads, options.inter_op_num_threads
    before = started()
    session = InferenceSession(model(count), options, select="all")
    made = started() - before
    x = np.ones((1, 1, 2, 2), np.float32)
    assert len(session.pooling_nodes) == count
    assert (session.run(None, {"v0": x})[0] == (-1) ** count).all()
    assert chosen == (options.intra_op_num_threads, options.inter_op_num_threads)
    return made

"""


def lines_of(code):
    process = cases.run_python(THREADS + code)
    assert process.returncode == 0, process.stderr
    return list(map(int, process.stdout.split()))


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads as Linux does")
def test_threads_of_the_pieces_together():
    code = """
for mode in ("ORT_SEQUENTIAL", "ORT_PARALLEL"):
    for count in (10, 16, 100, 300):
        options = onnxruntime.SessionOptions()
        options.execution_mode = getattr(onnxruntime.ExecutionMode, mode)
        options.intra_op_num_threads = options.inter_op_num_threads = 8
        if count > 10:  # spinning threads take a minute on one processor
            options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        print(threads_of(count, options))
    options.intra_op_num_threads = options.inter_op_num_threads = 0
    print(threads_of(300, options))
"""
    sequential, parallel = np.reshape(lines_of(code), (2, 5)).tolist()
    assert sequential[:4] == [70, 112, 100, 0]
    most = max(128, 16 * (os.cpu_count() - 1))
    assert sequential[4] <= most and max(parallel[:4]) <= 2 * 128 and parallel[4] <= 2 * most


@pytest.mark.skipif(
    not hasattr(onnxruntime.SessionOptions, "use_per_session_threads"), reason="onnxruntime is old"
)
@pytest.mark.skipif(sys.platform != "linux", reason="counts threads as Linux does")
def test_pieces_share_the_threads_of_the_process():
    code = """
onnxruntime.set_default_logger_severity(3)
before = started()
onnxruntime.set_global_thread_pool_sizes(8, 1)
print(started() - before)
for count in (10, 100):
    options = onnxruntime.SessionOptions()
    options.use_per_session_threads = False
    print(threads_of(count, options))
"""
    assert lines_of(code) == [7, 0, 0]


@pytest.mark.parametrize(
    ("missing", "name", "extra"),
    [
        ("onnx", "Backend", "onnx"),
        ("onnx", "ops", "onnx"),
        ("onnx", "InferenceSession", "onnx"),
        ("onnxruntime", "InferenceSession", "onnxruntime"),
    ],
)
def test_missing_packages(missing, name, extra):
    code = f"""
import fastpool.onnx
assert fastpool.onnx.max_pool and {name!r} in dir(fastpool.onnx)
fastpool.onnx.{name}
"""
    line = f'fastpool.onnx.{name} needs {missing}: pip install "fastpool[{extra}]"'
    assert cases.error_without(missing, code) == f"ImportError: {line}"
