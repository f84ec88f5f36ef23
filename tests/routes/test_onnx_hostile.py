"""Malicious and broken ONNX models are refused clearly and quickly."""

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx.parser

from cases import bounds
from fastpool.onnx import Backend

X = np.arange(2 * 3 * 4 * 4, dtype=np.float32).reshape(2, 3, 4, 4)
LONG = "x" * 900_000


def pool(inputs=("x",), outputs=("y",), op_type="MaxPool", name="pool", domain="", **attributes):
    attributes = {"kernel_shape": [2, 2]} | attributes
    return onnx.helper.make_node(op_type, inputs, outputs, name, domain=domain, **attributes)


def move(op_type, inputs=("x",), outputs=("y",), **attributes):
    return onnx.helper.make_node(op_type, inputs, outputs, "move", **attributes)


def constant(dims, data=b"", name="w", data_type=onnx.TensorProto.INT64):
    return onnx.TensorProto(dims=dims, raw_data=data, name=name, data_type=data_type)


def model(*nodes, inputs="x", outputs="y", opsets=(("", 13),), initializers=(), **changes):
    graph = onnx.helper.make_graph(
        nodes,
        "graph",
        [onnx.ValueInfoProto(name=name) for name in inputs],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        initializers,
    )
    made = onnx.helper.make_model(graph)
    del made.opset_import[:]
    for domain, version in opsets:
        made.opset_import.add(domain=domain, version=version)
    for name, value in changes.items():
        getattr(made.graph, name).append(value)
    return made


def refused(given, match, *arrays):
    with bounds(), pytest.raises((TypeError, ValueError), match=match) as raised:
        Backend.run_model(given, list(arrays or [X]))
    assert len(str(raised.value)) < 700
    assert type(raised.value) in (TypeError, ValueError)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (model(pool(), opsets=()), "^node 'pool' .*imports no version of the domain ''"),
        (model(pool(domain="com.microsoft", op_type="NhwcMaxPool")), "domain 'com.microsoft'"),
        (model(pool(domain="com.ms.internal.nhwc")), "domain 'com.ms.internal.nhwc'"),
        (model(pool(), opsets=[("", 12), ("ai.onnx", 13)]), "^model: imports two versions"),
        (model(pool(), opsets=[("", 0)]), "MaxPool came with opset 1, the model imports 0"),
        (model(pool(), opsets=[("", -(2**63))]), "MaxPool came with opset 1"),
        (model(pool(), inputs="xx"), "^model: two of its inputs have the same name"),
        (model(pool(), inputs=["x", ""]), "^model: two of its inputs"),
        (model(pool(), initializers=[constant([1]), constant([1])]), "two of its initializers"),
        (model(pool(), outputs="z"), "^model: the output 'z' comes from no node"),
        (model(pool(), outputs=["y", ""]), "^model: the output ''"),
        (model(pool(outputs="x")), "^node 'pool' .*its output 'x' exists already"),
        (model(pool(), pool()), "^node 'pool' .*its output 'y' exists already"),
        (model(pool(outputs="yy")), "^node 'pool' .*its output 'y' exists already"),
        (model(pool("y", "z"), pool(), outputs="z"), "^node 'pool' .*its input 'y' is no input of"),
        (model(pool("y", "y")), "^node 'pool' .*its input 'y' is no input of"),
        (model(pool(), move("Identity", outputs=[""])), "^node 'move' .*has no output"),
        (model(pool(), move("Identity", outputs=())), "^node 'move' .*has no output"),
        (model(pool("w")), "^node 'pool' .*its input 'w' is no input of"),
        (
            model(pool(), sparse_initializer=onnx.SparseTensorProto()),
            "^model: sparse initializers are not supported",
        ),
    ],
)
def test_broken_graphs(given, match):
    refused(given, match)


SUBGRAPH = onnx.helper.make_graph([pool()], "inner", [], [onnx.ValueInfoProto(name="y")])
DEEP = SUBGRAPH
for _ in range(25):
    inner = onnx.helper.make_node("If", ["x"], ["y"], then_branch=DEEP, else_branch=SUBGRAPH)
    DEEP = onnx.helper.make_graph([inner], "inner", [], [onnx.ValueInfoProto(name="y")])


@pytest.mark.parametrize(
    "node",
    [
        onnx.helper.make_node("If", ["x"], ["y"], then_branch=SUBGRAPH, else_branch=SUBGRAPH),
        onnx.helper.make_node("If", ["x"], ["y"], then_branch=DEEP, else_branch=SUBGRAPH),
        onnx.helper.make_node("Expand", ["x", "x"], ["y"]),
        onnx.helper.make_node("ConstantOfShape", ["x"], ["y"]),
        onnx.helper.make_node("Loop", ["x"], ["y"], body=SUBGRAPH),
        onnx.helper.make_node("", ["x"], ["y"]),
        onnx.helper.make_node(LONG, ["x"], ["y"]),
    ],
)
def test_other_operators(node):
    refused(model(node), "^model: unsupported operators: ")


def test_many_other_operators():
    nodes = [onnx.helper.make_node(f"Op{i}", ["x"], [f"y{i}"]) for i in range(10_000)]
    refused(model(*nodes, outputs=["y0"]), r"Op0 \(1\), .*9988 more")


def test_functions_are_operators_that_are_not_supported():
    text = """
    <ir_version: 8, opset_import: ["": 13, "local": 1]>
    net (float[n, c, h, w] x) => (float[n, c, h, w] y) { y = local.f (x) }
    <domain: "local", opset_import: ["": 13]>
    f (x) => (y) { y = MaxPool <kernel_shape = [2, 2]> (x) }"""
    refused(onnx.parser.parse_model(text), r"unsupported operators: local.f \(1\)")


EXTERNAL = constant([2], data_type=onnx.TensorProto.FLOAT)
EXTERNAL.data_location = onnx.TensorProto.EXTERNAL
EXTERNAL.external_data.add(key="location", value="/dev/zero")
SPARSE = onnx.SparseTensorProto(values=EXTERNAL, indices=constant([0]), dims=[2])


@pytest.mark.parametrize(
    "given",
    [
        model(pool(), initializers=[EXTERNAL]),
        model(move("Constant", (), ["c"], value=EXTERNAL), pool()),
        model(move("Constant", (), ["c"], sparse_value=SPARSE), pool()),
    ],
)
def test_data_in_other_files(given, tmp_path):
    refused(given, "^model: the data of 'w' is in another file")
    path = tmp_path / "model.onnx"
    path.write_bytes(given.SerializeToString())
    refused(path, "^model: .*(absolute|'w' is in another file)")


@pytest.mark.parametrize(
    "tensor",
    [
        constant([2**40], b"\0" * 8),
        constant([2**62, 2**62], b"\0" * 8),
        constant([-1, -1], b"\0" * 8),
        constant([3], b"\0" * 8),
        constant([1], b"\0" * 7),
        constant([1], data_type=onnx.TensorProto.UNDEFINED),
        constant([2**40], data_type=onnx.TensorProto.STRING),
        constant([2**40], data_type=onnx.TensorProto.INT4),
        constant([2**40], data_type=onnx.TensorProto.FLOAT8E4M3FN),
        constant([2**40], data_type=onnx.TensorProto.BFLOAT16),
    ],
    ids=str,
)
def test_constants_that_are_less_than_they_say(tensor):
    refused(model(pool(), initializers=[tensor]), "^initializer 'w': ")
    of_node = move("Constant", (), ["c"], value=tensor)
    refused(model(of_node, pool()), "^node 'move' ")


@pytest.mark.parametrize(
    ("node", "match"),
    [
        (pool(kernel_shape=[2] * 200_000), "kernel_shape: expected 2 ints, got 200000"),
        (pool(pads=[2**62] * 4), "^node 'pool' "),
        (pool(pads=[2**40] * 4), "^node 'pool' "),
        (pool(strides=[-(2**63)] * 2), r"strides\[0\]"),
        (pool(auto_pad=LONG), "auto_pad: expected one of"),
        (pool(**{LONG: 1}), "unknown attribute xxx"),
        (pool(name=LONG, strides=[1]), "^node 'xxx.*strides"),
        (pool(name="", outputs=[LONG], strides=[1]), "of the output 'xxx.*strides"),
        (pool(inputs=["x"] * 100_000), "expected inputs x, got"),
        (pool(outputs=["y", *map(str, range(100_000))]), "expected outputs y, indices, got"),
        (move("Transpose", perm=[0] * 100_000), "[Pp]ermutation|axes"),
        (move("Reshape", ["x", "x"]), "^node 'move' "),
        (move("Concat", ["x"] * 3, axis=2**62), "^node 'move' "),
        (move("Concat", ["x"] * 3), "^node 'move' .*axis"),
        (move("Squeeze", ["x", "x"]), "^node 'move' "),
        (move("Unsqueeze", ["x", "x"]), "^node 'move' "),
        (move("Constant", ()), "^node 'move' "),
        (move("QuantizeLinear", ["x", "x"]), "^node 'move' "),
    ],
)
def test_nodes(node, match):
    given = model(node, outputs=[node.output[0]])
    refused(given, match)


def test_steps_without_end():
    """A chain as long as a megabyte of model allows: a result, or nothing worse."""
    count = 10_000
    nodes = [
        onnx.helper.make_node("Identity", [f"v{i}"], [f"v{i + 1}"], f"n{i}") for i in range(count)
    ]
    refused(model(*nodes, inputs=["v0"], outputs=["none"]), "the output 'none'")


def test_wrong_inputs_of_a_caller():
    given = model(pool())
    for array in (np.zeros((2, 3), np.float32), np.float32(1), "text", None, [[["a"]]], {}):
        refused(given, "^node 'pool' |^input 'x'", array)
