"""Run a network with onnxruntime alone and with fastpool's pooling; compare outputs and times.

    python examples/onnx_session.py                         # inception_v1 of the onnx package
    python examples/onnx_session.py model.onnx --threads 2

All weights of the networks in the onnx package are equal. Here they get random ones.
"""

import argparse
import math
import statistics
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import fastpool.onnx

NETWORKS = Path(onnx.__file__).parent / "backend/test/data/light"


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
            # With one axis they are scales, biases, means, and variances, which are not negative.
            weights = abs(weights) if len(shape) == 1 else weights
            tensor = onnx.numpy_helper.from_array(weights.astype(np.float32), node.output[0])
            model.graph.initializer.append(tensor)
        else:
            model.graph.node.append(node)
    return model


def options(threads):
    chosen = onnxruntime.SessionOptions()
    chosen.intra_op_num_threads = threads
    chosen.log_severity_level = 3
    return chosen


def medians(calls, seconds):
    """Return the median time of each call in milliseconds, called in turns."""
    times = [[] for _ in calls]
    end = time.perf_counter() + seconds
    while len(times[0]) < 3 or time.perf_counter() < end:
        for call, of_call in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            of_call.append(time.perf_counter() - start)
    return [statistics.median(of_call) * 1e3 for of_call in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", nargs="?", default=NETWORKS / "light_inception_v1.onnx")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10)
    given = parser.parse_args()

    model = random_weights(onnx.load(given.model))
    alone = onnxruntime.InferenceSession(
        model.SerializeToString(), options(given.threads), ["CPUExecutionProvider"]
    )
    both = fastpool.onnx.InferenceSession(model, options(given.threads))
    rng = np.random.default_rng(1)
    inputs = {}
    for value in both.get_inputs():  # images: float32, with a batch of one if it is free
        shape = [size if isinstance(size, int) else 1 for size in value.shape]
        inputs[value.name] = rng.standard_normal(shape).astype(np.float32)

    for got, expected in zip(both.run(None, inputs), alone.run(None, inputs), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-7, strict=True)
    calls = [lambda: alone.run(None, inputs), lambda: both.run(None, inputs)]
    before, after = medians(calls, given.seconds)
    print(f"{Path(given.model).name}, {given.threads} threads: the outputs agree")
    print(f"onnxruntime {before:.1f} ms; with fastpool's pooling {after:.1f} ms")


if __name__ == "__main__":
    main()
