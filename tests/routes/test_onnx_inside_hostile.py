"""Malicious models in sessions with fastpool's kernels: an error that names the node, no crash.

The models run in processes of their own, so that a crash fails a test instead of ending them all.
"""

import json
import os
import sys

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import cases

WINDOWS = {"kernel_shape": [2, 2]}
OPERATORS = {
    "MaxPool": WINDOWS,
    "AveragePool": WINDOWS,
    "LpPool": WINDOWS,
    "GlobalAveragePool": {},
    "GlobalMaxPool": {},
    "GlobalLpPool": {},
}
LIMIT = 2**63 - 1

# Attribute -> values that no node may have: absurd, of the wrong length, of the wrong type.
WRONG = {
    "kernel_shape": [
        *([2], [2, 2, 2], [], [0, 2], [-1, 2], [2**31, 1], [2**62, 2**62], [LIMIT, LIMIT]),
        *([1] * 8, [1] * 9, [1] * 16, 2, [2.0, 2.0], "22", [100, 100]),
    ],
    "strides": [[0, 1], [-1, 1], [2**62, 2**62], [1], [1, 1, 1], [1.0, 1.0], 3, "1"],
    "pads": [[1, 1], [-1, 0, 0, 0], [2**62] * 4, [LIMIT] * 4, [-LIMIT] * 4, [1] * 16, "x", 1],
    "dilations": [[0, 1], [-2, 1], [2**62, 1], [2**32 + 1] * 2, [1], [1.5, 1.0], 2, [LIMIT, 2]],
    "auto_pad": ["NOPE", "same_upper", 1, [1], b"\xff\xfe", "VALID "],
    "ceil_mode": [2, -1, LIMIT, 1.0, [1], "1"],
    "storage_order": [3, -1, 1.0, [0]],
    "count_include_pad": [7, -1, 1.0, "y"],
    "p": [0, -3, -LIMIT, "2", [2]],
}
TAKES = {
    "MaxPool": [*WRONG][:7],
    "AveragePool": [*WRONG][:6] + ["count_include_pad"],
    "LpPool": [*WRONG][:6] + ["p"],
    "GlobalAveragePool": [],
    "GlobalMaxPool": [],
    "GlobalLpPool": ["p"],
}

CHILD = """
import faulthandler, json, sys
faulthandler.enable()
sys.path.insert(0, {folder!r})
import numpy as np
from onnx_models import inside, model_of, plain, run
X = np.ones((1, 2, 5, 5), np.float32)

def tell(model, inputs, make=inside, what=None, **entries):
    try:
        told = [list(array.shape) for array in run(make(model, **entries), inputs)]
    except Exception as error:
        told = f"{{type(error).__name__}}: {{error}}"
    told = told if what is None else [told, what]
    print(json.dumps(told, default=repr), flush=True)

"""


def outcomes(code):
    """Run a program that tells of models: shapes of the outputs, or the text of an error."""
    process = cases.run_python(CHILD.format(folder=os.path.dirname(cases.__file__)) + code)
    assert process.returncode == 0, process.stderr[-3000:]
    return [json.loads(line) for line in process.stdout.splitlines()]


def is_named(told, op_type):
    """Is this an error that names the node?"""
    return isinstance(told, str) and f"node 'n' ({op_type}): " in told


@pytest.mark.parametrize("op_type", [name for name in TAKES if TAKES[name]])
def test_wrong_attributes(op_type):
    """With a shape that is known when the model is loaded, and without."""
    wrong = [{name: value} for name in TAKES[op_type] for value in WRONG[name]]
    told = outcomes(f"""
for wrong in {wrong!r}:
    for shape, select in (
        ([1, 2, 5, 5], "all"), (None, "all"), ([1, 2, "h", "w"], "faster"), (None, "faster")
    ):
        if select == "faster" and "p" in wrong:
            continue  # below
        attributes = {OPERATORS[op_type]!r} | wrong
        model = model_of({op_type!r}, {{"x": X}}, shape=shape, **attributes)
        tell(model, {{"x": X}}, select=select, what=wrong)
""")
    assert len(told) >= 2 * len(wrong)
    for text, attribute in told:
        fine = is_named(text, op_type) and next(iter(attribute)) in text
        assert fine, f"{attribute}: {text}"


def test_wrong_orders_of_delegated_norms():
    """LpPool has floats in opset 1 only."""
    told = outcomes(f"""
for p in {[*WRONG["p"], 2.5]!r}:
    for op_type, attributes in (("LpPool", {{"kernel_shape": [2, 2]}}), ("GlobalLpPool", {{}})):
        tell(model_of(op_type, {{"x": X}}, p=p, **attributes), {{"x": X}}, what=(p, op_type))
""")
    for text, (p, op_type) in told:
        assert is_named(text, op_type), f"{p}: {text}"


def test_long_attributes_name_their_node():
    told = outcomes("""
for wrong in ({"kernel_shape": [1] * 17}, {"auto_pad": "SAME" * 25}, {"pads": [0] * 40}):
    attributes = {"kernel_shape": [2, 2]} | wrong
    tell(model_of("MaxPool", {"x": X}, **attributes), {"x": X}, what=wrong)
""")
    for text, attribute in told:
        assert is_named(text, "MaxPool") and next(iter(attribute)) in text


# Shapes with no axis to pool, with other ones than the attributes have, and with too many.
SHAPES = [(), (4,), (4, 4), (2, 3, 4), (1, 2, 5, 5, 5), (1,) * 8]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_wrong_ranks(dtype):
    told = outcomes(f"""
for op_type, attributes in {OPERATORS!r}.items():
    for shape in {SHAPES!r}:
        for known in (shape, None):
            x = np.ones(shape, {dtype!r})
            model = model_of(op_type, {{"x": x}}, shape=known, **attributes)
            tell(model, {{"x": x}}, select="all", what=(op_type, shape))
""")
    assert len(told) == 72
    for text, (op_type, shape) in told:
        if op_type.startswith("Global") and len(shape) > 2:
            assert text == [[*shape[:2], *[1] * (len(shape) - 2)]]
        else:
            assert is_named(text, op_type), f"{shape}: {text}"


def test_more_axes_than_fastpool_has():
    told = outcomes("""
x = np.ones((1,) * 9, np.float32)
for op_type in ("MaxPool", "GlobalMaxPool", "GlobalAveragePool"):
    for known in (x.shape, None):
        attributes = {"kernel_shape": [1] * 7} if op_type == "MaxPool" else {}
        model = model_of(op_type, {"x": x}, shape=known, **attributes)
        tell(model, {"x": x}, select="all", what=op_type)
i = np.zeros((1,) * 9, int)
tell(model_of("MaxUnpool", {"x": X, "i": i}, kernel_shape=[2, 2]), {"x": X, "i": i},
     what="MaxUnpool")
""")
    for text, op_type in told:
        assert is_named(text, op_type), text


def test_pads_that_only_fastpool_has():
    """onnxruntime's own kernel, which may be faster for these, refuses them."""
    told = outcomes("""
tell(model_of("LpPool", {"x": X}, kernel_shape=[2, 2], pads=[2] * 4), {"x": X}, select="faster")
x = np.ones((1, 1, 4, 4, 4), np.float32)
cube = {"kernel_shape": [3] * 3, "strides": [2] * 3, "pads": [3] * 6}
tell(model_of("MaxPool", {"x": x}, **cube), {"x": x}, select="faster")
""")
    assert [len(shapes[0]) for shapes in told] == [4, 5]


def test_axes_that_only_fastpool_has():
    """Global means of four spatial axes, and of no channels: fastpool runs them, if it may."""
    told = outcomes("""
for shape in ((1, 2, 3, 3, 3, 3), (1, 0, 5, 5)):
    x = np.ones(shape, np.float32)
    tell(model_of("GlobalAveragePool", {"x": x}), {"x": x}, select="faster")
""")
    assert told == [[[1, 2, 1, 1, 1, 1]], [[1, 0, 1, 1]]]


def test_empty_inputs():
    """No batch and no channels are fine; nothing to pool is an error."""
    told = outcomes(f"""
for op_type, attributes in {OPERATORS!r}.items():
    for shape in ((0, 2, 5, 5), (1, 0, 5, 5), (1, 2, 0, 5), (0, 0, 0, 0)):
        x = np.ones(shape, np.float32)
        model = model_of(op_type, {{"x": x}}, **attributes)
        tell(model, {{"x": x}}, select="all", what=(op_type, shape))
""")
    assert len(told) == 24
    for text, (op_type, shape) in told:
        if shape[2]:
            assert text == [[*shape[:2], *([1, 1] if op_type.startswith("Global") else [4, 4])]]
        else:
            assert is_named(text, op_type), f"{shape}: {text}"


def test_wrong_types():
    """Text and complex numbers, and norms of integers."""
    told = outcomes(f"""
for op_type, attributes in {OPERATORS!r}.items():
    arrays = [np.array([[[["a", "b"], ["c", "d"]]]]), np.ones((1, 1, 2, 2), np.complex64)]
    if "Lp" in op_type:
        arrays += [np.ones((1, 2, 5, 5), dtype) for dtype in ("int8", "uint64", "bool")]
    for x in arrays:
        model = model_of(op_type, {{"x": x}}, **attributes)
        tell(model, {{"x": x}}, what=(op_type, str(x.dtype)))
""")
    for text, (op_type, dtype) in told:
        if dtype == "complex64":  # which no input of any operator here may be
            assert "node (n) is invalid" in text
        else:
            assert is_named(text, op_type) and "expected one of" in text, text


# ------------------------------------------------------------------------------------ unpooling

# Indices out of range, and of other shapes than the input.
PLACES = [
    *([0, -1, 2, 3], [0, 1, 2, 16], [LIMIT] * 4, [-LIMIT - 1] * 4),
    *([[0, 1, 2], [0, 1, 2]], [[0, 1]], 0, [0] * 5),
]
SIZES = [
    *([1, 1, -1, -1], [1, 1, 2**62, 2**62], [1, 1, 2**31, 2**31], [LIMIT] * 4, [-LIMIT - 1] * 4),
    *([1, 1, 0, 0], [2, 1, 4, 4], [1, 3, 4, 4], [1, 1, 4], [1, 1, 4, 4, 4], [], [[1, 1, 4, 4]]),
]


def test_wrong_indices():
    told = outcomes(f"""
x = np.ones((1, 1, 2, 2), np.float32)
for places in {PLACES!r}:
    for select in ("all", "faster"):
        i = np.array(places)
        i = i.reshape(x.shape) if i.size == 4 else i
        model = model_of("MaxUnpool", {{"x": x, "i": i}}, kernel_shape=[2, 2], strides=[2, 2])
        tell(model, {{"x": x, "i": i}}, what=places, select=select)
""")
    assert len(told) == 16
    for text, places in told:
        assert is_named(text, "MaxUnpool") and "indices: " in text, f"{places}: {text}"


def test_wrong_output_shapes():
    told = outcomes(f"""
x, i = np.ones((1, 1, 2, 2), np.float32), np.arange(4).reshape(1, 1, 2, 2)
for size in {SIZES!r}:
    inputs = {{"x": x, "i": i, "size": np.array(size, np.int64)}}
    model = model_of("MaxUnpool", inputs, kernel_shape=[2, 2], strides=[2, 2])
    tell(model, inputs, what=size)
""")
    assert len(told) == len(SIZES)
    for text, size in told:
        fine = is_named(text, "MaxUnpool") and ("output_shape" in text or "indices" in text)
        assert fine, f"{size}: {text}"


def test_output_shapes_smaller_than_the_inferred_one():
    """onnxruntime refuses them. fastpool takes them, as its functions do, if all indices fit."""
    told = outcomes("""
x, i = np.ones((1, 1, 2, 2), np.float32), np.arange(4).reshape(1, 1, 2, 2)
inputs = {"x": x, "i": i, "size": np.array([1, 1, 3, 3])}
for make in (inside, plain):
    tell(model_of("MaxUnpool", inputs, kernel_shape=[2, 2], strides=[2, 2]), inputs, make)
""")
    assert told[0] == [[1, 1, 3, 3]] and "smaller than minimum" in told[1]


def test_attributes_of_unpoolings():
    wrong = [{name: value} for name in ("kernel_shape", "strides", "pads") for value in WRONG[name]]
    wrong = [w for w in wrong if w != {"kernel_shape": [100, 100]}]
    told = outcomes(f"""
x, i = np.ones((1, 1, 2, 2), np.float32), np.arange(4).reshape(1, 1, 2, 2)
inputs = {{"x": x, "i": i}}
for wrong in {wrong!r}:
    attributes = {{"kernel_shape": [2, 2], "strides": [2, 2]}} | wrong
    tell(model_of("MaxUnpool", inputs, **attributes), inputs)
""")
    for attribute, text in zip(wrong, told, strict=True):
        assert isinstance(text, str) and "node 'n' (MaxUnpool): " in text, f"{attribute}: {text}"


def test_inputs_of_other_types_and_numbers():
    """What the model's types say is checked by onnxruntime, as for its own operators."""
    told = outcomes("""
x, i = np.ones((1, 1, 2, 2), np.float32), np.arange(4).reshape(1, 1, 2, 2)
for inputs in (
    {"x": x},
    {"x": x, "i": i.astype(np.int32)},
    {"x": x, "i": x},
    {"x": x, "i": i, "size": x},
    {"x": x, "i": i, "size": i.ravel(), "more": x},
):
    tell(model_of("MaxUnpool", inputs, kernel_shape=[2, 2]), inputs)
for outputs in ([], [""], ["y", "i", "z"]):
    tell(model_of("MaxPool", {"x": X}, outputs, kernel_shape=[2, 2]), {"x": X})
tell(model_of("GlobalMaxPool", {"x": X}, ["y", "i"]), {"x": X})
""")
    for text in told:
        assert isinstance(text, str), text


# ---------------------------------------------------------------------------------------- names


def test_names_of_any_text():
    """Long ones, line breaks, zero bytes and braces of formats, in nodes, outputs and extents."""
    told = outcomes("""
for name in ("x" * 600, "a\\nb", "é" * 300, "%s%n%d", "{0}", "'", "a\\0b"):
    tell(model_of("MaxPool", {"x": X}, name=name, kernel_shape=[0, 2]), {"x": X})
    tell(model_of("MaxPool", {"x": X}, [name, "i"], name="", kernel_shape=[0, 2]), {"x": X})
    tell(model_of("MaxPool", {"x": X}, [name, name + "2"], name=name, kernel_shape=[2, 2],
                  shape=[name, "c", name, "w"]), {"x": X})
""")
    for i, text in enumerate(told):
        if i % 3 == 2:
            assert text == [[1, 2, 4, 4]] * 2
        else:
            assert "(MaxPool)" in text and "kernel_shape[0]: expected an int" in text


def test_extents_that_are_too_large_to_exist():
    """Declared by a model that then gets a small input, and by one that windows make so."""
    told = outcomes("""
for shape in ([1, 2, 2**40, 2**40], [2**62, 2**62, 5, 5], [1, 2, 2**63 - 1, 5]):
    tell(model_of("MaxPool", {"x": X}, shape=shape, kernel_shape=[2, 2]), {"x": X}, select="all")
for attributes in (
    {"kernel_shape": [2**31 - 1] * 2, "pads": [2**30] * 4},
    {"kernel_shape": [1, 1], "pads": [2**30] * 4},
    {"kernel_shape": [1, 1], "pads": [2**30] * 4, "strides": [2**31 - 1] * 2},
):
    for op_type in ("MaxPool", "AveragePool", "LpPool"):
        tell(model_of(op_type, {"x": X}, **attributes), {"x": X}, select="all")
""")
    assert len(told) == 12
    for text in told[:9]:
        assert isinstance(text, str), text
    for text in told[9:]:
        assert isinstance(text, list) or "node 'n'" in text


def test_a_session_survives_its_errors():
    """Wrong inputs between right ones, and models that are refused between others."""
    told = outcomes("""
model = model_of("MaxPool", {"x": X}, kernel_shape=[4, 4])
session, small = inside(model), X[:, :, :2].copy()
for i in range(200):
    assert run(session, {"x": X})[0].shape == (1, 2, 2, 2)
    for wrong in (small, X[0], X.astype(float)):
        try:
            run(session, {"x": wrong})
        except Exception:
            pass
        else:
            raise AssertionError
tell(model, {"x": X})
""")
    assert told == [[[1, 2, 2, 2]]]


MUTATED = """
import random, resource
import onnx.parser
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
POOL = "<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], ceil_mode = 1>"
TWO = "<kernel_shape = [2, 2], strides = [2, 2]>"
texts = [
    f"(float[1, 2, h, w] x) => (float[a, b, c, d] y, int64[e, f, g, i] j) "
    f"{{ y, j = MaxPool {POOL} (x) }}",
    f"(float[1, 2, 5, 5] x) => (float[a, b, c, d] y) {{ y = AveragePool {POOL} (x) }}",
    f"(float[1, 2, 5, 5] x) => (float[a, b, c, d] y) "
    f"{{ t, i = MaxPool {TWO} (x) y = MaxUnpool {TWO} (t, i) }}",
    f"(float[1, 2, 5, 5] x) => (float[a, b, c, d] y, float[e, f, g, h] z) "
    f"{{ y = GlobalAveragePool (x) z = LpPool {TWO} (x) }}",
]
head = '<ir_version: 8, opset_import: ["": 21]> mutated '
seeds = [onnx.parser.parse_model(head + text).SerializeToString() for text in texts]
chance = random.Random(SEED)
for _ in range(300):
    model = bytearray(chance.choice(seeds))
    for _ in range(chance.choice([1, 1, 2, 3, 5])):
        place = chance.randrange(len(model))
        model[place : place + 1] = chance.choice(
            [
                bytes([chance.randrange(256)]),
                bytes([model[place] ^ 1 << chance.randrange(8)]),
                bytes([255] * chance.choice([1, 2, 8]) + [1]),
            ]
        )
    try:
        session = inside(bytes(model))
        run(session, {value.name: X for value in session.get_inputs()})
    except Exception:
        pass
print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
@pytest.mark.parametrize("seed", range(4))
def test_mutated_models_end_no_process(seed):
    head = CHILD.format(folder=os.path.dirname(cases.__file__))
    process = cases.run_python(head + MUTATED.replace("SEED", str(seed)))
    assert process.returncode == 0, process.stderr[-3000:]
    assert process.stdout.endswith("done\n")  # (onnxruntime prints about models that fail)
