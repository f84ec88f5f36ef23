"""Run networks with onnxruntime alone and with fastpool's pooling; compare outputs and times.

    python examples/onnx_session.py                         # twelve networks
    python examples/onnx_session.py model.onnx --threads 2
    python examples/onnx_session.py model.onnx --select all

The networks are the nine whose graphs are in the onnx package, the pooling pyramid of YOLO (SPPF),
an encoder and decoder with indices (SegNet), and one of 8 bits. All weights in the onnx package are
equal, so the networks get random ones.
"""

import argparse
import itertools
import math
import statistics
import time
from pathlib import Path

import numpy as np
import onnx.parser
import onnxruntime
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

import fastpool.onnx

NETWORKS = Path(onnx.__file__).parent / "backend/test/data/light"
KNOWN = (
    *("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet"),
    *("squeezenet", "vgg19", "zfnet512"),
)


def random_weights(model):
    """Replace weights that are filled with one number by random ones, and return the model."""
    rng = np.random.default_rng(0)
    shapes = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for node in nodes:
        if node.op_type == "ConstantOfShape" and node.input[0] in shapes:
            shape = tuple(shapes[node.input[0]])
            weights = rng.standard_normal(shape) * math.sqrt(2 / max(1, math.prod(shape[1:])))
            if len(shape) == 1:  # scales, biases, means and variances of normalisations
                weights = rng.uniform(0.5, 1, shape)
            tensor = onnx.numpy_helper.from_array(weights.astype(np.float32), node.output[0])
            model.graph.initializer.append(tensor)
        else:
            model.graph.node.append(node)
    return model


def eight_bits():
    """Return a network of 8-bit convolutions, each with an average pooling that halves the image.

    Steps are powers of two, and zero points are 0. onnxruntime's means are then exact, too.
    """
    rng, constants = np.random.default_rng(0), []

    def constant(name, value, dtype=np.float32):
        constants.append(onnx.numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def convolution(name, x, shape):
        fan_in = math.prod(shape[1:])
        kernel = [
            constant(f"{name}_weights", rng.integers(-127, 128, shape), np.int8),
            constant(f"{name}_scale", 2.0 ** -round(math.log2(36 * math.sqrt(fan_in)))),
            constant(f"{name}_zero", 0, np.int8),
        ]
        pads = [shape[-1] // 2] * 4
        return make_node("QLinearConv", [x, *steps, *kernel, *steps], [name], pads=pads)

    def mean(name, x, kind="", **window):
        operator = f"QLinear{kind}AveragePool"
        return make_node(operator, [x, *steps, *steps], [name], domain="com.microsoft", **window)

    steps = constant("scale", 2.0**-5), constant("zero", 0, np.uint8)
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}
    channels = 3, 32, 64, 128, 256, 512
    nodes = [make_node("QuantizeLinear", ["x", *steps], ["image"])]
    for before, after in itertools.pairwise(channels):
        nodes.append(convolution(f"conv{after}", nodes[-1].output[0], (after, before, 3, 3)))
        nodes.append(mean(f"mean{after}", nodes[-1].output[0], **window))
    nodes.append(mean("means", nodes[-1].output[0], "Global"))
    nodes.append(convolution("classes", "means", (1000, channels[-1], 1, 1)))
    nodes.append(make_node("DequantizeLinear", ["classes", *steps], ["y"]))
    x = make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 224, 224])
    graph = make_graph(nodes, "eight_bits", [x], [onnx.ValueInfoProto(name="y")], constants)
    opsets = [make_opsetid("", 13), make_opsetid("com.microsoft", 1)]
    return make_model(graph, opset_imports=opsets, ir_version=8)


def floats(name, text, shapes):
    """Return a network of float32 from its text; `shapes` are those of its weights."""
    rng = np.random.default_rng(0)
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {name} {text}')
    for weights, shape in shapes.items():
        values = rng.standard_normal(shape) * math.sqrt(2 / math.prod(shape[1:]))
        tensor = onnx.numpy_helper.from_array(values.astype(np.float32), weights)
        model.graph.initializer.append(tensor)
    return model


def sppf(channels=256, size=20):
    """Return the end of YOLO's backbone: three poolings of 5x5 in a row, all of them read."""
    pool = "MaxPool <kernel_shape = [5, 5], pads = [2, 2, 2, 2]>"
    text = f"""(float[1, {2 * channels}, {size}, {size}] x) => (float[1, c, h, w] y) {{
        a = Conv (x, before)
        b = Sigmoid (a)
        c = Mul (a, b)
        d = {pool} (c)
        e = {pool} (d)
        f = {pool} (e)
        g = Concat <axis = 1> (c, d, e, f)
        y = Conv (g, after)
    }}"""
    shapes = {"before": (channels, 2 * channels, 1, 1), "after": (2 * channels, 4 * channels, 1, 1)}
    return floats("sppf", text, shapes)


def segnet(size=128, channels=(3, 64, 128, 256)):
    """Return an encoder and decoder: what MaxPool took from where, MaxUnpool puts there."""
    window, conv = "<kernel_shape = [2, 2], strides = [2, 2]>", "Conv <pads = [1, 1, 1, 1]>"
    stages, shapes, x, nodes = len(channels) - 1, {}, "x", []
    for i in range(stages):
        shapes[f"down{i}"] = (channels[i + 1], channels[i], 3, 3)
        nodes += [f"a{i} = {conv} ({x}, down{i})", f"b{i} = Relu (a{i})"]
        nodes += [f"c{i}, where{i} = MaxPool {window} (b{i})"]
        x = f"c{i}"
    for i in reversed(range(stages)):
        shapes[f"up{i}"] = (channels[i] if i else 12, channels[i + 1], 3, 3)
        nodes += [f"d{i} = MaxUnpool {window} ({x}, where{i})", f"e{i} = {conv} (d{i}, up{i})"]
        nodes += [f"f{i} = Relu (e{i})"]
        x = f"f{i}"
    ends = f"(float[1, {channels[0]}, {size}, {size}] x) => (float[1, c, h, w] {x})"
    return floats("segnet", f"{ends} {{ {' '.join(nodes)} }}", shapes)


def networks():
    """Yield (name, model)."""
    for name in KNOWN:
        yield name, random_weights(onnx.load(NETWORKS / f"light_{name}.onnx"))
    yield "sppf", sppf()
    yield "segnet", segnet()
    yield "eight_bits", eight_bits()


def options(threads):
    chosen = onnxruntime.SessionOptions()
    chosen.intra_op_num_threads = threads
    chosen.log_severity_level = 3
    return chosen


def timed(calls, seconds):
    """Return the least and the median time of each call in milliseconds.

    The calls take turns of 0.4 s, or longer until one run counts. The first 0.1 s does not count,
    because threads of the other session spin for about 60 ms after its last run.
    """
    times = [[] for _ in calls]
    end = time.perf_counter() + seconds
    while not times[0] or time.perf_counter() < end:
        for call, of_call in zip(calls, times, strict=True):
            turn, counted = time.perf_counter(), 0
            while not counted or time.perf_counter() < turn + 0.4:
                start = time.perf_counter()
                call()
                if start > turn + 0.1:
                    of_call.append((time.perf_counter() - start) * 1e3)
                    counted += 1
    return [(min(of_call), statistics.median(of_call)) for of_call in times]


def compare(name, model, threads, seconds, select):
    """Check the outputs of a network, and print times."""
    alone = onnxruntime.InferenceSession(
        model.SerializeToString(), options(threads), ["CPUExecutionProvider"]
    )
    both = fastpool.onnx.InferenceSession(model, options(threads), select=select)
    rng = np.random.default_rng(1)
    inputs = {}
    for value in both.get_inputs():  # images: float32, with a batch of one if it is free
        shape = [size if isinstance(size, int) else 1 for size in value.shape]
        inputs[value.name] = rng.standard_normal(shape).astype(np.float32)

    for got, expected in zip(both.run(None, inputs), alone.run(None, inputs), strict=True):
        near = 1e-6 * abs(expected).max()
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=near, strict=True)
    calls = [lambda: alone.run(None, inputs), lambda: both.run(None, inputs)]
    before, after = timed(calls, seconds)
    counts, *nodes = both.explain().splitlines()
    print(f"{name}, threads {threads}: the outputs agree; {counts}")
    ratio = [ours / theirs for ours, theirs in zip(after, before, strict=True)]
    rows = ("onnxruntime", before), ("with fastpool", after), ("ratio", ratio)
    for what, (least, median) in rows:
        print(f"  {what:13} least {least:7.2f}, median {median:7.2f}" + " ms" * (what != "ratio"))
    print(*nodes, sep="\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--select", choices=("faster", "all", "none"), default="faster")
    given = parser.parse_args()

    if given.model:
        models = [(given.model.name, random_weights(onnx.load(given.model)))]
    else:
        models = networks()
    for name, model in models:
        compare(name, model, given.threads, given.seconds, given.select)


if __name__ == "__main__":
    main()
