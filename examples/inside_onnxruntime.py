"""Run models with onnxruntime alone and with fastpool's kernels inside; compare outputs and times.

    python examples/inside_onnxruntime.py                      # whole networks
    python examples/inside_onnxruntime.py --nodes              # single pooling nodes
    python examples/inside_onnxruntime.py --nodes --select all # what decides who runs them
    python examples/inside_onnxruntime.py model.onnx --threads 2
    python examples/inside_onnxruntime.py --json docs/inside.json      # the tables of docs/onnx.md

The networks are an encoder and decoder with indices (SegNet), one with AveragePool of opset 19, the
pooling pyramid of YOLO (SPPF), one of 8 bits, and the nine whose graphs are in the onnx package.
All weights in the onnx package are equal, so the networks get random ones.
"""

import argparse
import itertools
import json
import math
import statistics
import time
from operator import truediv
from pathlib import Path

import numpy as np
import onnx.parser
import onnxruntime

import fastpool.onnx
from fastpool.bench import report

RNG = np.random.default_rng(0)
NETWORKS = Path(onnx.__file__).parent / "backend/test/data/light"
HALVES = "<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>"
TWO = "<kernel_shape = [2, 2], strides = [2, 2]>"
SAME = "Conv <pads = [1, 1, 1, 1]>"


def parsed(text, constants=(), opset=17):
    """Return a model from the text of its graph, and from its constants."""
    microsoft = ', "com.microsoft": 1' if "com.microsoft" in text else ""
    head = f'<ir_version: 8, opset_import: ["": {opset}{microsoft}]>'
    model = onnx.parser.parse_model(f"{head} example {text}")
    for name, array in dict(constants).items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(array), name))
    return model


def weights(*shape):
    scale = math.sqrt(2 / max(1, math.prod(shape[1:])))
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def segnet(size=128, channels=(3, 64, 128, 256)):
    """Return an encoder and decoder: what MaxPool took from where, MaxUnpool puts there."""
    stages, constants, x, nodes = len(channels) - 1, {}, "x", ""
    for i in range(stages):
        constants[f"down{i}"] = weights(channels[i + 1], channels[i], 3, 3)
        nodes += f"a{i} = {SAME} ({x}, down{i}) b{i} = Relu (a{i})"
        nodes += f" c{i}, where{i} = MaxPool {TWO} (b{i}) "
        x = f"c{i}"
    for i in reversed(range(stages)):
        constants[f"up{i}"] = weights(channels[i] if i else 12, channels[i + 1], 3, 3)
        nodes += f"d{i} = MaxUnpool {TWO} ({x}, where{i})"
        nodes += f" e{i} = {SAME} (d{i}, up{i}) f{i} = Relu (e{i}) "
        x = f"f{i}"
    ends = f"(float[1, {channels[0]}, {size}, {size}] x) => (float[1, c, h, w] {x})"
    return parsed(f"{ends} {{ {nodes} }}", constants)


def averages(channels=60, size=56):
    """Return two convolutions with an AveragePool of opset 19 in between."""
    text = f"""(float[1, {channels}, {size}, {size}] x) => (float[1, c, h, w] y) {{
        a = Conv (x, before) b = AveragePool {HALVES} (a) y = Conv (b, after) }}"""
    constants = {name: weights(channels, channels, 1, 1) for name in ("before", "after")}
    return parsed(text, constants, opset=19)


def sppf(channels=256, size=20):
    """Return the end of YOLO's backbone: three poolings of 5x5 in a row, all of them read."""
    pool = "MaxPool <kernel_shape = [5, 5], pads = [2, 2, 2, 2]>"
    text = f"""(float[1, {2 * channels}, {size}, {size}] x) => (float[1, c, h, w] y) {{
        a = Conv (x, before) b = Sigmoid (a) c = Mul (a, b)
        d = {pool} (c) e = {pool} (d) f = {pool} (e)
        g = Concat <axis = 1> (c, d, e, f) y = Conv (g, after) }}"""
    shapes = (channels, 2 * channels), (2 * channels, 4 * channels)
    before, after = (weights(*shape, 1, 1) for shape in shapes)
    return parsed(text, {"before": before, "after": after})


def eight_bits(channels=(3, 32, 64, 128, 256, 512)):
    """Return a network of 8-bit convolutions, each with an average pooling that halves the image.

    Steps are powers of two, and zero points are 0. onnxruntime's means are then exact, too.
    """
    constants = {"s": np.float32(2.0**-5), "z": np.uint8(0), "kz": np.int8(0)}
    nodes, x = "image = QuantizeLinear (x, s, z)", "image"
    for i, (before, after) in enumerate(itertools.pairwise(channels)):
        constants[f"k{i}"] = RNG.integers(-127, 128, (after, before, 3, 3), np.int8)
        constants[f"ks{i}"] = np.float32(2.0 ** -round(math.log2(108 * math.sqrt(before))))
        nodes += f" a{i} = QLinear{SAME} ({x}, s, z, k{i}, ks{i}, kz, s, z)"
        nodes += f" b{i} = com.microsoft.QLinearAveragePool {HALVES} (a{i}, s, z, s, z)"
        x = f"b{i}"
    nodes += f" means = com.microsoft.QLinearGlobalAveragePool ({x}, s, z, s, z)"
    nodes += " y = DequantizeLinear (means, s, z)"
    return parsed(f"(float[1, 3, 224, 224] x) => (float[1, c, h, w] y) {{ {nodes} }}", constants)


def random_weights(model):
    """Replace weights that are filled with one number by random ones, and return the model."""
    shapes = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for node in nodes:
        if node.op_type == "ConstantOfShape" and node.input[0] in shapes:
            shape = tuple(shapes[node.input[0]])
            # One axis: scales, biases, means and variances of normalisations.
            values = weights(*shape) if len(shape) > 1 else RNG.uniform(0.5, 1, shape)
            tensor = onnx.numpy_helper.from_array(values.astype(np.float32), node.output[0])
            model.graph.initializer.append(tensor)
        else:
            model.graph.node.append(node)
    return model


def networks():
    """Yield (name, model)."""
    for build in (segnet, averages, sppf, eight_bits):
        yield build.__name__, build()
    for path in sorted(NETWORKS.glob("light_*.onnx")):
        yield path.stem.removeprefix("light_"), random_weights(onnx.load(path))


# opset; type, channels and extents; outputs, operator and attributes
NODES = f"""
    13; float[1, 64, 56, 56]; y, i = MaxPool {HALVES}
    13; float[1, 64, 56, 56]; y, i = MaxPool {TWO}
    13; float[1, 63, 56, 56]; y = MaxPool {HALVES}
    13; float[1, 63, 56, 56]; y = MaxPool <kernel_shape = [5, 5], pads = [2, 2, 2, 2]>
    13; float[1, 63, 56, 56]; y = MaxPool <kernel_shape = [3, 3], dilations = [2, 2]>
    13; float[1, 3, 224, 224]; y = MaxPool {HALVES}
    13; float[1, 64, 4096]; y = MaxPool <kernel_shape = [3], strides = [2]>
    13; float[1, 16, 16, 32, 32]; y = MaxPool <kernel_shape = [2, 2, 2], strides = [2, 2, 2]>
    13; float[1, 16, 16, 32, 32]; y = MaxPool <kernel_shape = [3, 3, 3], strides = [2, 2, 2]>
    13; double[1, 64, 56, 56]; y = MaxPool {HALVES}
    13; float16[1, 64, 56, 56]; y = MaxPool {HALVES}
    13; uint8[1, 64, 56, 56]; y = MaxPool {HALVES}
    13; int8[1, 64, 56, 56]; y = MaxPool <kernel_shape = [3, 3]>
    13; int32[1, 64, 56, 56]; y = MaxPool {HALVES}
    13; float[1, 1, 8, 8]; y = MaxPool {TWO}
    19; float[1, 63, 56, 56]; y = AveragePool {HALVES}
    19; float[1, 63, 56, 56]; y = AveragePool {TWO}
    19; float[1, 64, 4096]; y = AveragePool <kernel_shape = [3], strides = [2]>
    19; float[1, 16, 16, 32, 32]; y = AveragePool <kernel_shape = [3, 3, 3]>
    13; float[1, 63, 56, 56]; y = GlobalAveragePool
    13; float[1, 63, 28, 28]; y = GlobalAveragePool
    13; float[1, 63, 14, 14]; y = GlobalAveragePool
    13; float[1, 63, 7, 7]; y = GlobalAveragePool
    13; float[1, 64, 4096]; y = GlobalAveragePool
    13; float[1, 16, 8, 28, 28]; y = GlobalAveragePool
    13; float[1, 63, 56, 56]; y = GlobalMaxPool
    13; float[1, 63, 7, 7]; y = GlobalMaxPool
    18; float[1, 63, 56, 56]; y = LpPool <p = 2, {HALVES[1:]}
    18; float[1, 63, 56, 56]; y = LpPool <p = 1, {HALVES[1:]}
    18; float[1, 8, 32, 32]; y = LpPool {TWO}
    18; float[1, 1, 8, 8]; y = LpPool {TWO}
    18; float[1, 63, 56, 56]; y = GlobalLpPool
    18; float[1, 63, 14, 14]; y = GlobalLpPool
    18; float[1, 63, 7, 7]; y = GlobalLpPool
"""


def single_nodes():
    """Yield (name, model)."""
    for line in map(str.strip, NODES.strip().splitlines()):
        opset, declared, node = line.split(";")
        kind, axes = declared.split("[")
        free = "[" + ",".join("?" * len(axes.split(","))) + "]"
        results = f"{kind}{free} y, int64{free} i" if "i =" in node else f"{kind}{free} y"
        yield line, parsed(f"({declared} x) => ({results}) {{ {node} (x) }}", opset=opset)


def random_inputs(session):
    """Return an array for each input. Extents that are free are 1."""
    types, inputs = {"float": "float32", "double": "float64"}, {}
    for value in session.get_inputs():
        name = value.type.removeprefix("tensor(").removesuffix(")")
        shape = [size if isinstance(size, int) else 1 for size in value.shape]
        numbers = RNG.uniform(0, 100 if "int" in name else 1, shape)
        inputs[value.name] = numbers.astype(types.get(name, name))
    return inputs


def bound(session, inputs):
    """Return a function that runs a session, without making arrays of NumPy."""
    binding = session.io_binding()
    for name, x in inputs.items():
        binding.bind_cpu_input(name, x)
    for value in session.get_outputs():
        binding.bind_output(value.name)
    return lambda: session.run_with_iobinding(binding)


def interleaved(calls, rounds, pause=0):
    """Return the microseconds of each call in each round, in which they take turns.

    With a `pause`, each turn begins with one, and with a run that does not count: threads of the
    other session spin for some time after its last run. Without one, the time is the processor's,
    which other programs change little.
    """
    clock = time.perf_counter if pause else time.process_time
    for call in calls:
        call()
    times, count = [[] for _ in calls], 1
    for i in range(-1, rounds):
        for call, of_call in list(zip(calls, times, strict=True))[:: 1 if i % 2 else -1]:
            if pause:
                time.sleep(pause)
                call()
            start = clock()
            for _ in range(count):
                call()
            of_call.append((clock() - start) / count * 1e6)
        if i < 0:  # the first round says how many calls take half a millisecond
            count = max(1, int(500 / min(times)[0]))
            times = [[] for _ in calls]
    return times


def compare(name, model, threads, rounds, select):
    """Check the outputs of a model. Print and return times without and with fastpool, and ratios.

    The ratios are those of the least times, of the times of a round (median), and of loading.
    """
    data = model.SerializeToString()

    def load(session_type):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 4  # prints no errors
        options.add_session_config_entry("fastpool.select", select)
        if "com.microsoft" in {opset.domain for opset in model.opset_import}:
            options.add_session_config_entry("fastpool.domains", "all")
        return session_type(data, options, ["CPUExecutionProvider"])

    types = onnxruntime.InferenceSession, fastpool.onnx.InferenceSession
    ours, pause = load(types[1]), 0.1 * (threads > 1)
    inputs = random_inputs(ours)
    try:
        plain = load(types[0])
    except Exception as error:  # onnxruntime has no kernel for it
        (times,) = interleaved([bound(ours, inputs)], rounds, pause)
        print(f"{min(times):9.1f} us, with fastpool ({type(error).__name__})   {name}")
        return None, min(times), None, None, None
    for got, expected in zip(ours.run(None, inputs), plain.run(None, inputs), strict=True):
        near = 1e-6 * abs(expected).max()
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=near, strict=True)
    before, after = interleaved([bound(plain, inputs), bound(ours, inputs)], rounds, pause)
    least, median = min(before) / min(after), statistics.median(map(truediv, before, after))
    loads = [lambda kind=kind: load(kind) for kind in types]
    without, loading = map(min, interleaved(loads, max(3, rounds // 4)))
    ratios = least, median, loading / without
    shown = "{:7.2f} {:7.2f} {:6.2f}".format(*ratios)
    print(f"{min(before):9.1f} us {shown}   {name}", flush=True)
    return min(before), min(after), *ratios


def write_tables(path):
    """Measure the tables of docs/onnx.md, and write them as JSON."""
    found = {"machine": report.machine(), "versions": {"onnxruntime": onnxruntime.__version__}}
    titles = "onnxruntime, ms", "ratio", "median", "loading", "network"
    found["sessions"] = {"titles": titles, "rows": []}
    for name, model in networks():
        alone, _, *ratios = compare(name, model, 1, 40, "faster")
        found["sessions"]["rows"].append([alone / 1e3, *ratios, name])
    titles = "onnxruntime, us", "with fastpool, us", "ratio", "ratio, two threads", "node"
    found["nodes"] = {"titles": titles, "rows": []}
    for name, model in single_nodes():
        alone, inside, ratio, *_ = compare(name, model, 1, 200, "faster")
        more = compare(name, model, 2, 20, "faster")[2]
        found["nodes"]["rows"].append([alone, inside, ratio, more, name.partition("; ")[2]])
    lines = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--nodes", action="store_true", help="single nodes, not networks")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--select", default="faster", help="all: also what is left to onnxruntime")
    parser.add_argument("--json", type=Path, help="measure the tables of docs/onnx.md")
    given = parser.parse_args()
    if given.json:
        return write_tables(given.json)
    models = single_nodes() if given.nodes else networks()
    if given.model:
        models = [(given.model.name, random_weights(onnx.load(given.model)))]
    print(f"onnxruntime {onnxruntime.__version__}, threads {given.threads}: its least time alone,")
    print("that divided by the time with fastpool (least, median), time of loading with / without")
    for name, model in models:
        compare(name, model, given.threads, given.rounds, given.select)
        if given.model:
            print(fastpool.onnx.explain(model))


if __name__ == "__main__":
    main()
