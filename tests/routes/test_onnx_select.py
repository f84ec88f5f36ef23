"""fastpool.onnx.InferenceSession chooses the nodes that fastpool runs. No test measures time."""

import sys

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx.parser
import onnxruntime

import fastpool
from cases import assert_same, run_python
from fastpool._running import threads
from fastpool.onnx import InferenceSession

OPTIONS = onnxruntime.SessionOptions()
OPTIONS.intra_op_num_threads = 1
OPTIONS.log_severity_level = 3

SHORT = "kernel_shape = [3, 3], pads = [1, 1, 1, 1]"
LONG = "kernel_shape = [15, 15], pads = [7, 7, 7, 7]"


def model_of(nodes, x="float[1, 64, 56, 56]", more="", opset=17, outputs="y"):
    """Return a model of these nodes, of the input `x` and `more`."""
    text = f"""
    <ir_version: 8, opset_import: ["": {opset}, "com.microsoft": 1, "com.ms.internal.nhwc": 17]>
    net ({x} x{more}) => () {{ {nodes} }}"""
    model = onnx.parser.parse_model(text)
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs.split())
    return model


def choices(session):
    """Return who runs each pooling node, and why."""
    _, *lines = session.explain().splitlines()
    return [line.partition(") of the output ")[2].partition(": ")[2] for line in lines]


INDICES = f"a, i = MaxPool <{SHORT}> (x)  y = Neg (a)"
MAX, LONG_MAX = f"a = MaxPool <{SHORT}> (x)  y = Neg (a)", f"a = MaxPool <{LONG}> (x)  y = Neg (a)"
AVERAGE = f"a = AveragePool <{SHORT}> (x)  y = Neg (a)"
SAME_TYPE = f"a = MaxPool <{SHORT}> (x)  y = Identity (a)"
DEQUANTIZED = f"d = DequantizeLinear (x, s, z)  a = AveragePool <{SHORT}> (d)"
QUANTIZED = {"x": "uint8[1, 64, 56, 56]", "more": ", float s, uint8 z"}
CONVOLVED = {"more": ", float[64, 64, 1, 1] w"}
SMALL, FREE = {"x": "float[1, 8, 8, 8]"}, {"x": "float[n, 8, h, w]"}
ROW = {"x": "float[n, 64, 4096]"}
LINE = "a = MaxPool <kernel_shape = [3]> (x)  y = Neg (a)"
NO_KERNEL = "fastpool, onnxruntime does not run it"

FASTER = [
    (INDICES, {}, "fastpool, faster: it has indices"),
    (INDICES, FREE, "fastpool, faster: it has indices"),
    (INDICES, {"x": "float[n, 8, 8, 8]"}, "onnxruntime, 512 elements: a cut pays from 32768 on"),
    (INDICES, {"x": "double[1, 64, 56, 56]"}, "fastpool, faster: it has indices"),
    (MAX, {}, "onnxruntime, 9 taps per element of the input, faster from 25 on"),
    (LONG_MAX, {}, "fastpool, 225 taps per element of the input, faster from 25 on"),
    (LONG_MAX, FREE, "fastpool, 225 taps"),
    (LONG_MAX, {"x": "float[1, 4096, 4, 4]"}, "onnxruntime, 16 taps"),
    (LONG_MAX.replace(">", ", strides = [4, 4]>"), {}, "onnxruntime, 14.1 taps"),
    (
        LONG_MAX.replace("15, 15", "56, 56").replace("[7, 7, 7, 7]", "[0, 0, 0, 0]"),
        {},
        "onnxruntime, 1 t",
    ),
    (f"{LONG_MAX}  c = Conv (y, w)", CONVOLVED, "fastpool, 225 taps per element of the input"),
    (
        f"{LONG_MAX}  c = Conv (y, w)".replace("15, 15", "13, 13"),
        CONVOLVED,
        "onnxruntime, 181 taps per element of the input, faster from 200 on (a model of convolu",
    ),
    (f"y = MaxPool <{SHORT}> (x)", {}, "fastpool, faster: a model of poolings alone"),
    (MAX, {"x": "double[1, 64, 56, 56]"}, "fastpool, faster: float64"),
    (SAME_TYPE, {"x": "uint8[1, 64, 56, 56]"}, "fastpool, faster: 8 bits"),
    (SAME_TYPE, {"x": "int8[1, 8, 8, 8]"}, "onnxruntime, 512 elements"),
    (SAME_TYPE, {"x": "int32[1, 8, 8, 8]"}, NO_KERNEL),
    (AVERAGE, {"x": "double[1, 8, 8, 8]"}, NO_KERNEL),
    (MAX.replace("MaxPool", "com.ms.internal.nhwc.MaxPool"), SMALL, NO_KERNEL),
    (LINE, ROW, "fastpool, 3 taps per element of the input, faster from 2 on (not two spatial"),
    (LINE.replace(">", ", strides = [3]>"), ROW, "onnxruntime, 1 taps"),
    (AVERAGE, {}, "onnxruntime, 9 taps per element of the input, faster from 64 on"),
    (AVERAGE.replace(SHORT, LONG), {}, "fastpool, 225 taps"),
    (AVERAGE, {"opset": 19}, "onnxruntime, 9 taps"),
    (AVERAGE, {"opset": 19, "x": "float[1, 3, 128, 128]"}, "fastpool, faster: onnxruntime has no"),
    (f"{DEQUANTIZED}  y = QuantizeLinear (a, s, z)", QUANTIZED, "fastpool, faster: 8 bits"),
    (f"{DEQUANTIZED}  y = Neg (a)", QUANTIZED, "onnxruntime, 9 taps"),
    (
        f"a = com.microsoft.QLinearAveragePool <{SHORT}> (x, s, z, s, z)  y = Identity (a)",
        QUANTIZED,
        "fastpool, faster: 8 bits",
    ),
    (
        "a = com.microsoft.QLinearGlobalAveragePool (x, s, z, s, z)  y = Identity (a)",
        QUANTIZED,
        "onnxruntime, onnxruntime is as fast",
    ),
    ("a = GlobalAveragePool (x)  y = Neg (a)", {}, "onnxruntime, onnxruntime is as fast"),
    ("a = ReduceMax <axes = [2, 3]> (x)  y = Neg (a)", {}, "onnxruntime, onnxruntime is as fast"),
    ("y = MaxPool <kernel_shape = [2, 2, 2, 2]> (x)", {"x": "float[1, 2, 4, 4, 4, 4]"}, NO_KERNEL),
    ("y = GlobalAveragePool (x)", {"x": "float[1, 2, 4, 4, 4, 4]"}, NO_KERNEL),
    ("y = MaxPool <kernel_shape = [2, 2], pads = [3, 3, 3, 3]> (x)", SMALL, NO_KERNEL),
    ("y = AveragePool <kernel_shape = [2, 2]> (x)", {"opset": 1, **SMALL}, NO_KERNEL),
    (MAX.replace("MaxPool", "LpPool"), {}, "fastpool, 9 taps per element of the input, faster fr"),
]


@pytest.mark.parametrize(("nodes", "arguments", "expected"), FASTER)
def test_what_is_faster(nodes, arguments, expected):
    session = InferenceSession(model_of(nodes, **arguments), OPTIONS)
    (choice,) = choices(session)
    assert choice.startswith(expected)
    assert len(session.pooling_nodes) == expected.startswith("fastpool")


TWO = f"{MAX}  b = AveragePool <{SHORT}> (y)  z = Neg (b)"


def test_switch():
    model = model_of(TWO, **SMALL, outputs="z")
    x = np.random.default_rng(0).standard_normal((1, 8, 8, 8)).astype(np.float32)
    expected = -fastpool.avg_pool(
        -fastpool.max_pool(x, 3, pads=1), 3, pads=1, numerics="sequential"
    )
    for select, count, reason in (
        ("all", 2, 'fastpool, select="all"'),
        ("none", 0, 'onnxruntime, select="none"'),
        (lambda node: 1, 2, "fastpool, selected"),
        (lambda node: None, 0, "onnxruntime, not selected"),
        (None, 0, "onnxruntime, 512 elements"),
    ):
        session = InferenceSession(model, OPTIONS, select=select)
        first, second = choices(session)
        assert first.startswith(reason) and second.startswith(reason)
        assert len(session.pooling_nodes) == count
        np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, rtol=1e-5, atol=1e-6)
    for wrong, error in (("fast", ValueError), (1, TypeError), (["all"], TypeError)):
        with pytest.raises(error, match="^select: expected .*"):
            InferenceSession(model, OPTIONS, select=wrong)


@pytest.mark.parametrize("op_type", ["MaxPool", "GlobalAveragePool", "LpPool"])
def test_nodes_without_inputs_are_named(op_type):
    model = model_of(f"y = {op_type} <kernel_shape = [2]> (x)", **SMALL)
    model.graph.node[0].ClearField("input")
    with pytest.raises(ValueError, match=op_type):
        InferenceSession(model)


def test_arguments_that_are_given_are_followed():
    model = model_of(TWO, **SMALL, outputs="z")
    for given, followed in (
        ({"nan": "propagate"}, ["fastpool, follows nan"] * 2),
        ({"numerics": "exact", "nan": "ignore"}, ["fastpool, follows nan"] * 2),
        ({"numerics": "exact", "nan": None}, ["onnxruntime, 512", "fastpool, follows numerics"]),
        ({"num_threads": 1, "index_space": "output"}, ["onnxruntime, 512"] * 2),
    ):
        found = choices(InferenceSession(model, OPTIONS, **given))
        assert all(map(str.startswith, found, followed)), found


def test_models_that_are_not_cut_are_onnxruntime_sessions():
    model = model_of(TWO, **FREE, outputs="z")
    session = InferenceSession(model, OPTIONS)
    assert isinstance(session.run.__self__, onnxruntime.InferenceSession)
    assert [value.name for value in session.get_inputs()] == ["x"]
    assert [value.name for value in session.get_outputs()] == ["z"]
    assert session.explain().startswith("0 of 2 pooling nodes with fastpool, 1 session of ")
    alone = onnxruntime.InferenceSession(model.SerializeToString(), OPTIONS)
    x = {"x": np.random.default_rng(0).standard_normal((2, 8, 9, 10)).astype(np.float32)}
    assert_same(session.run(["z"], x)[0], alone.run(["z"], x)[0])
    other = InferenceSession(model_of("y = Neg (x)"), OPTIONS)
    assert other.explain() == "0 of 0 pooling nodes with fastpool, 1 session of onnxruntime"


def test_a_segnet():
    """onnxruntime unpools with indices that fastpool found, and only the poolings cut the model."""
    window = "kernel_shape = [2, 2], strides = [2, 2]"
    nodes = f"""
        a = Relu (x)
        b, i = MaxPool <{window}> (a)
        c = Neg (b)
        d, j = MaxPool <{window}> (c)
        e = Neg (d)
        f = MaxUnpool <{window}> (e, j)
        g = Neg (f)
        h = MaxUnpool <{window}> (g, i)
        y = Neg (h)"""
    model = model_of(nodes)
    session = InferenceSession(model, OPTIONS)
    assert [node.output[0] for node in session.pooling_nodes] == ["b", "d"]
    assert session.explain().startswith("2 of 4 pooling nodes with fastpool, 3 sessions of onnx")
    alone = onnxruntime.InferenceSession(model.SerializeToString(), OPTIONS)
    x = {"x": np.random.default_rng(0).standard_normal((1, 64, 56, 56)).astype(np.float32)}
    assert_same(session.run(None, x)[0], alone.run(None, x)[0])
    assert session.get_providers() == alone.get_providers()
    stop = onnxruntime.RunOptions()
    stop.terminate = True
    for program in (session, alone):
        with pytest.raises(Exception, match="terminate"):
            program.run(None, x, stop)
    assert_same(session.run(None, x, None)[0], alone.run(None, x)[0])


def test_files_are_read_by_onnxruntime(tmp_path):
    """A model that is not cut may be a file, with data in another one."""
    model = model_of(MAX.replace("(a)", "(a)  z = Add (y, w)"), **FREE, outputs="z")
    weights = np.ones((1, 8, 1, 1), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    whole = model.SerializeToString()
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0)
    x = np.zeros((1, 8, 4, 4), np.float32)
    for given in (tmp_path / "m.onnx", str(tmp_path / "m.onnx"), whole):
        session = InferenceSession(given, OPTIONS)
        assert not session.pooling_nodes
        assert (session.run(None, {"x": x})[0] == 1).all()


def test_threads_of_a_session_limit_those_of_pooling(monkeypatch):
    seen = []

    def most():
        return threads.effective_threads(None, 1 << 30, lambda: 64)

    def call(intra):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = intra
        session = InferenceSession(model_of(INDICES), options)
        (run, *names), *others = session._program._steps

        def noted(x):
            seen.append(most())
            return run(x)

        session._program._steps = [(noted, *names), *others]
        session.run(None, {"x": np.zeros((1, 64, 56, 56), np.float32)})

    monkeypatch.setattr(threads, "available_cpus", lambda: 64)
    monkeypatch.setattr(threads, "has_forked", lambda: False)
    ours = [limit for limit in threads.limits if limit.__module__ == "fastpool.onnx._session"]
    monkeypatch.setattr(threads, "limits", ours)  # torch's is there if fastpool.torch was imported
    for intra in (1, 2, 7, 0):
        call(intra)
    assert seen == [1, 1, 3, 32] and most() == 64


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads as Linux does")
def test_threads_of_poolings_end_before_the_next_piece():
    code = """
import os, time, numpy as np, fastpool
from fastpool._running import builds

def count():
    with open("/proc/self/status") as f:
        return int(next(line for line in f if line.startswith("Threads:")).split()[1])

def settles_at(expected):
    # Linux counts a thread for some microseconds after it was joined.
    end = time.monotonic() + 60
    while count() != expected and time.monotonic() < end:
        time.sleep(0.001)
    return count() == expected

x = np.zeros((4, 64, 64, 64), np.float32)
builds.end_workers()
before = count()
for _ in range(2):
    y = fastpool.max_pool(x, 2, num_threads=3)
    assert count() == before + 2
    builds.end_workers()
    assert settles_at(before)

fastpool.max_pool(x, 2, num_threads=3)
child = os.fork()
if not child:
    builds.end_workers()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    process = run_python(code)
    assert process.returncode == 0, process.stderr
