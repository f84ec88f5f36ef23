"""fastpool gives the bits of LiteRT's built-in pooling, which has channels last and two axes.

XNNPACK is switched off. It takes float32 means in an order of its own, and multiplies by a
reciprocal. Left out: infinities, which LiteRT clamps to the largest finite numbers.
"""

import random
from types import SimpleNamespace

import numpy as np
import pytest

import cases
import fastpool

interpreter = pytest.importorskip("ai_edge_litert.interpreter")
flatbuffers = pytest.importorskip("flatbuffers")

import ai_edge_litert.schema_py_generated as schema  # noqa: E402

from fastpool.bench.frameworks import LiteModel  # noqa: E402

PADDINGS = {"SAME": "SAME_UPPER", "VALID": "VALID"}
VERSIONS = {"float32": 1, "uint8": 1, "int8": 2, "int16": 3}  # of the operators, by element type


def window(choose, shape):
    """A random window that fits an image, rarely a large one; and LiteRT's name of its padding."""
    largest = 20 if choose.random() < 0.1 else 5
    kernel = tuple(choose.randint(1, largest) for _ in range(2))
    strides = tuple(choose.randint(1, 4) for _ in range(2))
    fits = all(k <= size for k, size in zip(kernel, shape[1:3], strict=True))
    padding = choose.choice(["SAME", "VALID"]) if fits else "SAME"
    return {"kernel_shape": kernel, "strides": strides}, padding


def image(rng, shape, dtype):
    """Floats of many magnitudes, whose sums depend on their order; or any integers."""
    if dtype == "float32":
        return (rng.standard_normal(shape) * 10 ** rng.uniform(-3, 3, shape)).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def run_litert(name, x, result_shape, attributes, padding):
    """The result of a model of one operator, by the kernels that are no delegate's."""
    model = LiteModel(schema, x.dtype.name.upper())
    first, last = model.tensor(x.shape), model.tensor(result_shape)
    model.pool(name, VERSIONS[x.dtype.name], SimpleNamespace(**attributes), first, last, padding)
    lite = interpreter.Interpreter(
        model_content=model.packed(flatbuffers.Builder, first, last),
        experimental_op_resolver_type=(
            interpreter.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        ),
    )
    lite.allocate_tensors()
    lite.set_tensor(lite.get_input_details()[0]["index"], x)
    lite.invoke()
    return lite.get_tensor(lite.get_output_details()[0]["index"])


@pytest.mark.parametrize("name", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
@pytest.mark.parametrize("dtype", VERSIONS)
def test_same_bits(name, dtype):
    """Integers round halves away from zero; floats are added in row-major order."""
    choose, rng = random.Random(dtype), np.random.default_rng(0)
    for _ in range(100):
        shape = [choose.randint(1, most) for most in (2, 24, 24, 20)]
        x = image(rng, shape, dtype)
        attributes, padding = window(choose, shape)
        rules = {**attributes, "auto_pad": PADDINGS[padding], "layout": "NHWC"}
        if name == "MAX_POOL_2D":
            y = fastpool.max_pool(x, **rules)
        elif dtype == "float32":
            y = fastpool.avg_pool(x, **rules, numerics="sequential")
        else:
            y = fastpool.avg_pool(x, **rules, rounding="half_away")
        cases.assert_same(run_litert(name, x, y.shape, attributes, padding), y)
