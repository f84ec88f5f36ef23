"""Whole models inside onnxruntime: the node tests of onnx, its networks, and random models."""

import contextlib
import importlib
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx.backend.test.case.node
from onnx import helper, numpy_helper

from cases import assert_same
from onnx_models import inside, options, plain, run

ROOT = Path(__file__).parents[2]
LIGHT = os.path.join(os.path.dirname(onnx.backend.test.__file__), "data", "light")


@pytest.mark.parametrize("name", ["squeezenet", "inception_v1", "densenet121", "shufflenet"])
def test_networks(name):
    """They load and give what they give without fastpool."""
    with open(os.path.join(LIGHT, f"light_{name}.onnx"), "rb") as f:
        model = f.read()
    session = inside(model)
    x = {
        value.name: np.random.default_rng(0).standard_normal(value.shape, np.float32)
        for value in session.get_inputs()
    }
    for got, expected in zip(session.run(None, x), plain(model).run(None, x), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, strict=True)


def test_extents_of_one_name_are_equal():
    """onnxruntime keeps them in one buffer. Names of names stay short, and tell their windows."""
    nodes = "".join(
        f"v{i + 1} = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (v{i}) "
        for i in range(30)
    )
    model = f"""<ir_version: 8, opset_import: ["": 21]>
        chain (float[1, 1, h, w] v0) => (float[1, 1, n, m] z) {{ {nodes}
            a = AveragePool <kernel_shape = [4, 4], strides = [4, 4]> (v30)
            b = Relu (a)
            c = ReduceSum (b)
            d = Add (v30, c)
            e = AveragePool <kernel_shape = [2, 2]> (d)
            f = Relu (e)
            z = ReduceSum (f)
        }}"""
    x = {"v0": np.random.default_rng(0).standard_normal((1, 1, 64, 64), np.float32)}
    for got, expected in zip(inside(model).run(None, x), plain(model).run(None, x), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4)


def test_extents_that_an_input_says_are_not_equal():
    model = """<ir_version: 8, opset_import: ["": 13]>
        unpool (float[1, 1, h, w] x, int64[4] s, int64[4] t) => (float[a, b, c, d] z) {
            y, i = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
            u = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (y, i, s)
            v = Relu (u)
            p = ReduceSum (v)
            q = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (y, i, t)
            r = Relu (q)
            o = ReduceSum (r)
            z = Add (p, o)
        }"""
    x = {"x": np.random.default_rng(0).standard_normal((1, 1, 64, 64), np.float32)}
    x |= {"s": np.array([1, 1, 70, 70]), "t": np.array([1, 1, 64, 64])}
    for got, expected in zip(inside(model).run(None, x), plain(model).run(None, x), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4)


@pytest.mark.parametrize("arguments", [["--nodes"], ["model"]], ids=["nodes", "model"])
def test_the_example(arguments):
    """It checks the outputs of its models itself."""
    if arguments == ["model"]:
        arguments = [os.path.join(LIGHT, "light_shufflenet.onnx")]
    program = ROOT / "examples" / "inside_onnxruntime.py"
    process = subprocess.run(
        [sys.executable, "-P", program, "--rounds", "1", *arguments], capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    assert len(process.stdout.splitlines()) > 2


# ------------------------------------------------------------------------------- onnx's node tests

POOLINGS = {
    "AveragePool",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "LpPool",
    "MaxPool",
    "MaxUnpool",
    "QLinearAveragePool",
}
# Node tests that onnxruntime does not load without the library.
ONLY_INSIDE = set()
# Node tests whose results with the library are not those without it.
DIFFERENT = set()
# Node tests whose results are not the standard's, with the library and without.
NOT_STANDARD = {
    "test_averagepool_2d_ceil_last_window_starts_on_pad",  # it holds four digits
    "test_maxunpool_export_with_output_shape",  # onnxruntime's indices count in the output
}


def node_tests():
    """Return the node tests that hold a pooling node."""
    modules = "averagepool globalaveragepool globalmaxpool lppool maxpool maxunpool".split()
    for module in modules + ["globallppool", "qlinearaveragepool"]:
        with contextlib.suppress(ModuleNotFoundError):  # there are none of some operators
            importlib.import_module(f"onnx.backend.test.case.node.{module}")
    tests = onnx.backend.test.case.node._NodeTestCases
    return [case for case in tests if POOLINGS & {node.op_type for node in case.model.graph.node}]


@pytest.mark.parametrize("case", node_tests(), ids=lambda case: case.name)
@pytest.mark.parametrize("select", ["all", "faster"])
def test_node_tests(case, select):
    """The results are the standard's, and those of onnxruntime without the library.

    Sums are added in another order, so means and norms differ in their last digits.
    """
    arrays, outputs = case.data_sets[0]
    inputs = dict(zip((x.name for x in case.model.graph.input), arrays, strict=True))
    got = run(inside(case.model, select=select), inputs)
    for one, right in zip(got, outputs, strict=True):
        if case.name not in NOT_STANDARD:
            np.testing.assert_allclose(one, right, rtol=1e-5, atol=1e-7, strict=True)
    if case.name in ONLY_INSIDE:
        with pytest.raises(Exception, match=r"^\[ONNXRuntimeError\]"):
            plain(case.model)
        return
    adds = "average" in case.name or "lppool" in case.name
    near = 4 * np.finfo(np.float32).eps * adds
    for one, same in zip(got, run(plain(case.model), inputs), strict=True):
        if case.name not in DIFFERENT:
            np.testing.assert_allclose(
                one, same, rtol=near, atol=near * abs(arrays[0]).max(), strict=True
            )


def test_there_are_node_tests():
    assert len(node_tests()) >= 50
    assert {case.name for case in node_tests()} >= ONLY_INSIDE | DIFFERENT | NOT_STANDARD


# --------------------------------------------------------------------------------- random models


class Builder:
    """A random model over [n, c, h, w]: convolutions, poolings, transposes, quantised parts."""

    def __init__(self, seed, averages):
        self.choose, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.opset = self.choose.randint(7, 22)
        self.averages = averages
        self.nodes, self.constants, self.outputs = [], [], []
        self.channels = self.choose.choice([3, 4, 8, 16, 17])
        self.shape = [self.choose.randint(1, 2), self.channels, 36, self.choose.randint(30, 40)]
        self.value, self.count, self.poolings = "x", 0, 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def constant(self, array):
        name = self.name()
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def add(self, op_type, *inputs, outputs=1, **attributes):
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op_type, inputs, names, **attributes))
        return names[0]

    def conv(self):
        size, before = self.choose.choice([1, 3]), self.channels
        self.channels = self.choose.choice([4, 8, 16, 17])
        weights = self.rng.standard_normal((self.channels, before, size, size)) / before
        weights = self.constant(weights.astype(np.float32))
        self.value = self.add("Conv", self.value, weights, pads=[size // 2] * 4)
        if self.choose.random() < 0.5:
            self.value = self.add("Relu", self.value)

    def window(self):
        """(With a stride larger than the window, onnxruntime crops the input for SAME.)"""
        kernel = [self.choose.randint(1, 3) for _ in range(2)]
        attributes = {"kernel_shape": kernel}
        self.poolings += 1
        if self.poolings < 3 and self.choose.random() < 0.6:  # so that something is left
            attributes["strides"] = [self.choose.randint(1, k) for k in kernel]
        if self.choose.random() < 0.25:
            attributes["auto_pad"] = self.choose.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
        elif self.choose.random() < 0.6:
            attributes["pads"] = [self.choose.randint(0, k - 1) for k in kernel * 2]
        if self.opset >= 10 and self.choose.random() < 0.3:
            attributes["ceil_mode"] = 1
        return attributes

    def max_pool(self):
        attributes, outputs = self.window(), 1
        if self.opset >= 10 and self.choose.random() < 0.2 and "auto_pad" not in attributes:
            attributes["dilations"] = [self.choose.randint(1, 2) for _ in range(2)]
        if self.opset >= 8 and self.choose.random() < 0.3:
            outputs = 2
        self.value = self.add("MaxPool", self.value, outputs=outputs, **attributes)
        if outputs == 2:
            self.outputs.append(self.nodes[-1].output[1])

    def average_pool(self):
        attributes = self.window()
        attributes.pop("ceil_mode", None)
        attributes["count_include_pad"] = self.choose.randint(0, 1)
        self.value = self.add("AveragePool", self.value, **attributes)

    def lp_pool(self):
        attributes = self.window()
        if self.opset < 18:
            attributes.pop("ceil_mode", None)
        self.value = self.add("LpPool", self.value, p=self.choose.randint(1, 2), **attributes)

    def transpose(self):
        """There and back, with something between that NHWC optimisers may like."""
        self.value = self.add("Transpose", self.value, perm=[0, 2, 3, 1])
        self.value = self.add("Neg", self.value)
        self.value = self.add("Transpose", self.value, perm=[0, 3, 1, 2])

    def quantize(self):
        """Eight bits in and out, with a pooling of them between if the opset has one."""
        scale, zero = self.constant(np.float32(0.05)), self.constant(np.uint8(128))
        self.value = self.add("QuantizeLinear", self.value, scale, zero)
        if self.opset >= 12 and self.choose.random() < 0.5:
            self.max_pool()
        self.value = self.add("DequantizeLinear", self.value, scale, zero)

    def finish(self):
        whole = ["GlobalMaxPool"] + ["GlobalAveragePool"] * 2 * self.averages
        if self.choose.random() < 0.4:
            self.value = self.add(self.choose.choice(whole), self.value)

    def model(self):
        steps = [self.conv, self.conv, self.max_pool, self.max_pool, self.transpose]
        if self.averages:
            # (Not before a quantisation, which makes a step of the last digit of a mean.)
            steps += [self.average_pool] * 3 + [self.lp_pool]
        elif self.opset >= 10:
            steps += [self.quantize]
        for _ in range(self.choose.randint(2, 6)):
            self.choose.choice(steps)()
        self.finish()
        axes = list(self.shape)
        if self.choose.random() < 0.4:
            axes = ["n", axes[1], "h", "w"]
        graph = helper.make_graph(
            self.nodes,
            "random",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, axes)],
            [onnx.ValueInfoProto(name=name) for name in dict.fromkeys([self.value, *self.outputs])],
            self.constants,
        )
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def input(self):
        return {"x": self.rng.standard_normal(self.shape).astype(np.float32)}


def optimised(make, model, path):
    """A session, and the kinds of nodes in it."""
    given = options()
    given.optimized_model_filepath = path
    session = make(model, given)
    return session, [(node.domain, node.op_type) for node in onnx.load(path).graph.node]


def both(seed, averages, folder):
    """The outputs of a random model inside and outside; its optimised graphs are the same."""
    built = Builder(seed, averages)
    model, x = built.model(), built.input()
    ours, graph = optimised(inside, model, os.path.join(folder, "ours.onnx"))
    theirs, same = optimised(plain, model, os.path.join(folder, "theirs.onnx"))
    assert graph == same, f"seed {seed}"
    return zip(ours.run(None, x), theirs.run(None, x), strict=True)


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_random_models_of_maxima(first, tmp_path):
    for seed in range(first, first + 20):
        for got, expected in both(seed, False, tmp_path):
            assert_same(got, expected, f"seed {seed}")


@pytest.mark.parametrize("first", range(1000, 1100, 20))
def test_random_models_of_averages(first, tmp_path):
    """Means differ in their last digits, which convolutions pass on."""
    for seed in range(first, first + 20):
        for got, expected in both(seed, True, tmp_path):
            if got.dtype == np.int64:
                continue  # of maxima of means: a tie may go the other way
            near = 1e-5 * abs(expected).max(initial=0)
            np.testing.assert_allclose(
                got, expected, rtol=1e-5, atol=near, strict=True, err_msg=f"seed {seed}"
            )
