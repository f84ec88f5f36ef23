"""Backend reads only data files that it may read. It and explain refuse graphs nested too deep."""

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx.helper

import fastpool.onnx
from fastpool.onnx import Backend


def elsewhere(name="w", location="secret"):
    """A constant of two numbers that stand in a file."""
    tensor = onnx.TensorProto(dims=[2], data_type=onnx.TensorProto.FLOAT, name=name)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    tensor.external_data.add(key="length", value="8")
    return tensor


def node_of(tensor, output="t", op_type="Constant", name="value"):
    return onnx.helper.make_node(op_type, [], [output], **{name: tensor})


def branch_of(*nodes, initializers=(), sparse=()):
    output = onnx.helper.make_tensor_value_info("t", onnx.TensorProto.FLOAT, [2])
    nodes = nodes or [onnx.helper.make_node("Identity", ["w"], ["t"])]
    return onnx.helper.make_graph(
        nodes, "branch", [], [output], initializers, sparse_initializer=sparse
    )


def choice_of(branch):
    return onnx.helper.make_node("If", ["c"], ["t"], then_branch=EMPTY, else_branch=branch)


EMPTY = branch_of(node_of(onnx.numpy_helper.from_array(np.zeros(2, np.float32))))


def with_pooling(*nodes, functions=(), initializers=()):
    """A model that pools x, and has these nodes too."""
    value = onnx.helper.make_tensor_value_info
    pool = onnx.helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[1])
    graph = onnx.helper.make_graph(
        [pool, *nodes],
        "graph",
        [
            value("x", onnx.TensorProto.FLOAT, [1, 1, 2]),
            value("c", onnx.TensorProto.BOOL, []),
        ],
        [value("y", onnx.TensorProto.FLOAT, None)]
        + [value("t", onnx.TensorProto.FLOAT, [2])] * bool(nodes),
        initializers,
    )
    opsets = [onnx.helper.make_opsetid("", 13), onnx.helper.make_opsetid("local", 1)]
    return onnx.helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=9)


def function_of(*nodes, defaults=()):
    function = onnx.helper.make_function(
        "local", "f", [], ["t"], nodes, [onnx.helper.make_opsetid("", 13)]
    )
    function.attribute_proto.extend(defaults)
    return with_pooling(onnx.helper.make_node("f", [], ["t"], domain="local"), functions=[function])


def hidden_tensors():
    """Models with a tensor in another file, by where it is."""
    tensor = elsewhere()
    here = onnx.numpy_helper.from_array(np.array([0]), "i")
    values = onnx.SparseTensorProto(values=tensor, indices=here, dims=[2])
    indices = onnx.SparseTensorProto(values=here, indices=tensor, dims=[2])
    inner = branch_of(initializers=[tensor])
    deep = inner
    for _ in range(20):
        deep = branch_of(choice_of(deep))
    many = onnx.helper.make_node("Many", [], ["t"], domain="local", graphs=[branch_of(), inner])
    yield "initializer", with_pooling(initializers=[tensor])
    yield "constant", with_pooling(node_of(tensor))
    yield "list of tensors", with_pooling(node_of([here, tensor], name="values"))
    yield "values of a sparse constant", with_pooling(node_of(values, name="sparse_value"))
    yield "indices of a sparse constant", with_pooling(node_of(indices, name="sparse_value"))
    sparse = onnx.AttributeProto(name="all", type=onnx.AttributeProto.SPARSE_TENSORS)
    sparse.sparse_tensors.append(values)
    listed = onnx.helper.make_node("Many", [], ["t"], domain="local")
    listed.attribute.append(sparse)
    yield "list of sparse tensors", with_pooling(listed)
    yield "initializer of a branch", with_pooling(choice_of(inner))
    yield "constant of a branch", with_pooling(choice_of(branch_of(node_of(tensor))))
    yield "sparse of a branch", with_pooling(choice_of(branch_of(sparse=[values])))
    yield "list of graphs", with_pooling(many)
    yield "branch in branches", with_pooling(choice_of(deep))
    yield "constant of a function", function_of(node_of(tensor))
    yield "branch of a function", function_of(choice_of(inner))
    default = onnx.helper.make_attribute("default", tensor)
    yield "default of a function", function_of(node_of(here), defaults=[default])


@pytest.mark.parametrize(("place", "model"), [*hidden_tensors()])
def test_data_in_other_files_is_read_from_no_place(place, model, tmp_path, monkeypatch):
    """A model that is no file names files of whoever runs it."""
    monkeypatch.chdir(tmp_path)
    np.array([7, 8], np.float32).tofile("secret")
    for given in (model, model.SerializeToString()):
        with pytest.raises(ValueError, match="^model: the data of 'w' is in another file"):
            Backend.prepare(given)


def test_every_tensor_of_the_protocol_is_found():
    """Whatever fields ONNX adds: a tensor is planted into each, and one below each."""
    from fastpool.onnx._graph import tensors_in

    def plant(message, seen):
        """Fill the fields that hold messages; the number of tensors in them."""
        count = 0
        for field in message.DESCRIPTOR.fields:
            if field.message_type is None or field.message_type.full_name in seen:
                continue
            below = {*seen, message.DESCRIPTOR.full_name}
            value = getattr(message, field.name)
            part = value if hasattr(value, "DESCRIPTOR") else value.add()
            part.SetInParent()
            count += isinstance(part, onnx.TensorProto) or plant(part, below)
        return count

    for kind in (onnx.GraphProto, onnx.FunctionProto, onnx.NodeProto):
        message = kind()
        count = plant(message, set())
        assert count > 3 and len(list(tensors_in(message))) == count


@pytest.mark.parametrize("location", ["../secret", "/", "link", "none"])
def test_data_outside_of_the_folder_of_a_model_is_refused(location, tmp_path):
    np.array([7, 8], np.float32).tofile(tmp_path / "secret")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "link").symlink_to(tmp_path / "secret")
    location = str(tmp_path / "secret") if location == "/" else location
    tensor = elsewhere(location=location)
    for model in (
        with_pooling(node_of(tensor)),
        with_pooling(choice_of(branch_of(initializers=[tensor]))),
        function_of(node_of(tensor)),
    ):
        path = tmp_path / "models" / "model.onnx"
        path.write_bytes(model.SerializeToString())
        with pytest.raises(ValueError, match="^model: "):
            Backend.prepare(path)


@pytest.mark.parametrize("depth", [60, 3000])
def test_nested_more_than_protobuf_reads(depth):
    model = with_pooling(choice_of(branch_of()))
    place = model.graph.node[1].attribute[1].g
    for _ in range(depth):
        node = place.node[0]
        node.CopyFrom(onnx.helper.make_node("If", ["c"], ["t"]))
        node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH)
        place = node.attribute[0].g
        place.node.add()
    place.CopyFrom(EMPTY)
    with pytest.raises(ValueError, match="^model: nested deeper than the 100 levels"):
        Backend.prepare(model)
    with pytest.raises(ValueError, match="^model: "):
        fastpool.onnx.explain(model)


def test_types_nested_more_than_protobuf_reads():
    model = with_pooling()
    kind = model.graph.input.add(name="s").type
    for _ in range(200):
        kind = kind.sequence_type.elem_type
    kind.tensor_type.elem_type = 1
    model.graph.node.add(op_type="SequenceLength", input=["s"], output=["t"])
    model.graph.output.add(name="t")
    with pytest.raises(ValueError, match="^model: "):
        fastpool.onnx.explain(model)
