"""Models of OpenVINO give exactly the same results after fastpool took over their poolings."""

import doctest
import functools
import importlib
import pathlib

import numpy as np
import pytest

import cases
import fastpool
import fastpool.openvino

openvino = pytest.importorskip("openvino")
ops = pytest.importorskip("openvino.opset14")

from openvino_models import (  # noqa: E402
    CORE,
    EXACT,
    HALVE,
    PADDED,
    POOLS,
    assert_same,
    own_max_pool,
    own_model,
    run,
    sample,
    types,
)

# --------------------------------------------------------------------------- files


@pytest.mark.parametrize(("version", "shape", "attributes"), POOLS)
def test_read_layers_of_saved_models(version, shape, attributes, tmp_path):
    model = own_model(version, shape, attributes)
    openvino.save_model(model, tmp_path / "model.xml")
    (layer,) = fastpool.openvino.read_layers(tmp_path / "model.xml")
    (replaced,) = fastpool.openvino.replace_pooling(model, select="all")
    if "pads_begin" not in attributes:  # OpenVINO notes what it made of auto_pad, but not there
        for found in (layer, replaced):
            del found.attributes["pads_begin"], found.attributes["pads_end"]
    assert layer == replaced
    assert layer.name == "pool" and layer.version == version
    assert layer.input_dims == (shape,)
    x = sample(shape)
    results = layer(x)
    assert_same(results if isinstance(results, tuple) else (results,), run(model, x))


@pytest.mark.parametrize(("version", "shape", "attributes"), POOLS)
def test_saved_and_read_again(version, shape, attributes, tmp_path):
    extents = [-1] * len(shape) if version == 8 else shape  # unknown, too
    model = own_model(version, extents, attributes)
    fastpool.openvino.replace_pooling(model, nan="ignore", select="all")
    openvino.save_model(model, tmp_path / "model.xml")
    again = CORE.read_model(tmp_path / "model.xml")
    kinds = "FastpoolMaxPool"
    before, after = (m.get_ordered_ops()[types(m).index(kinds)] for m in (model, again))
    assert after.get_attributes() == before.get_attributes()
    assert after.get_attributes()["nan"] == "ignore"
    assert after.get_friendly_name() == "pool"
    x = sample(shape)
    assert_same(run(again, x), run(model, x))
    assert fastpool.openvino.read_layers(tmp_path / "model.xml") == []


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('kernel="2, 2"', 'kernel="2, 0"', "kernel"),
        ('kernel="2, 2"', 'kernel="200, 2"', "kernel.*exceeds"),
        ('kernel="2, 2"', "", "kernel"),
        ('strides="2, 2"', "", "strides"),
        ('dilations="1, 1"', "", "dilations"),
        ('auto_pad="valid"', "", "pads_begin"),
        ('axis="0"', 'axis="7"', "axis"),
        ('nan="propagate"', 'nan="none"', "nan"),
    ],
)
def test_altered_files(old, new, match, tmp_path):
    model = own_model(8, (1, 2, 8, 8), HALVE)
    fastpool.openvino.replace_pooling(model, select="all")
    openvino.save_model(model, tmp_path / "model.xml")
    text = (tmp_path / "model.xml").read_text()
    if match == "pads_begin":
        text = text.replace('pads_begin="0, 0"', "")
    assert old in text
    (tmp_path / "model.xml").write_text(text.replace(old, new))
    with pytest.raises(RuntimeError, match=match):
        CORE.read_model(tmp_path / "model.xml")


# --------------------------------------------------------------------------- models


def test_indices_only_where_they_are_used():
    x = ops.parameter([1, 2, 8, 8], np.float32)
    first = own_max_pool(x, 8, HALVE)
    second = own_max_pool(ops.relu(first.output(0)), 8, HALVE)
    model = openvino.Model(second.outputs(), [x])
    assert len(fastpool.openvino.replace_pooling(model, select="all")) == 2
    pools = [node for node in model.get_ordered_ops() if "MaxPool" in node.get_type_name()]
    assert [pool.get_output_size() for pool in pools] == [1, 2]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("element_type", ["i32", "i64"])
def test_models_that_compute_with_indices(element_type, layout):
    x = ops.parameter([1, 2, 8, 8], np.float32)
    pool = own_max_pool(x, 8, PADDED | {"index_element_type": element_type})
    flat = ops.reshape(x, [-1], special_zero=False)
    model = openvino.Model([ops.gather(flat, pool.output(1), 0)], [x])
    model.add_outputs([ops.concat([pool.output(1), pool.output(1)], 0).output(0)])
    replaced = model.clone()
    fastpool.openvino.replace_pooling(replaced, layout=layout, select="all")
    x = sample((1, 2, 8, 8))
    assert_same(run(replaced, x), run(model, x))


def test_names_stay():
    x = ops.parameter([1, 2, 8, 8], np.float32, name="x")
    pool = own_max_pool(x, 8, HALVE)
    pool.output(0).set_names({"maxima", "y"})
    pool.output(1).set_names({"places"})
    model = openvino.Model(pool.outputs(), [x])
    fastpool.openvino.replace_pooling(model, select="all")
    assert [output.names for output in model.outputs] == [{"maxima", "y"}, {"places"}]
    assert fastpool.openvino.replace_pooling(model, select="all") == []
    compiled = CORE.compile_model(model, "CPU", EXACT)
    x = sample((1, 2, 8, 8))
    np.testing.assert_array_equal(compiled(x)["y"], fastpool.max_pool(x, 2, strides=2))


def loop_model():
    """A MaxPool before a TensorIterator, and one in its body, which it runs on each plane."""
    row = ops.parameter([1, 1, 4, 4], np.float32)
    body = openvino.Model([ops.result(own_max_pool(row, 8, PADDED).output(0))], [row])
    x = ops.parameter([1, 3, 8, 8], np.float32)
    iterator = ops.tensor_iterator()
    iterator.set_body(body)
    iterator.set_sliced_input(row, own_max_pool(x, 1, HALVE).output(0), 0, 1, 1, -1, 1)
    outputs = iterator.get_concatenated_slices(body.get_results()[0].output(0), 0, 1, 1, -1, 1)
    return openvino.Model([outputs], [x])


def if_model():
    """A MaxPool in each branch of an If."""
    x = ops.parameter([1, 3, 8, 8], np.float32)
    large = ops.greater(ops.reduce_sum(x, np.arange(4)), np.float32(0))
    branch = ops.if_op(large.output(0))
    branches = []
    for attributes in (HALVE, HALVE | {"kernel": [1, 1]}):
        given = ops.parameter([1, 3, 8, 8], np.float32)
        result = ops.result(own_max_pool(given, 8, attributes).output(0))
        branches.append((openvino.Model([result], [given]), given, result))
    branch.set_then_body(branches[0][0])
    branch.set_else_body(branches[1][0])
    branch.set_input(x.output(0), branches[0][1], branches[1][1])
    return openvino.Model([branch.set_output(branches[0][2], branches[1][2])], [x])


@pytest.mark.parametrize(("make", "count"), [(loop_model, 2), (if_model, 2)])
def test_bodies(make, count, tmp_path):
    model, replaced = make(), make()
    layers = fastpool.openvino.replace_pooling(replaced, select="all")
    assert len(layers) == count
    openvino.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    assert fastpool.openvino.read_layers(tmp_path / "model.xml") == layers
    for x in (sample((1, 3, 8, 8)), -sample((1, 3, 8, 8))):
        assert_same(run(replaced, x), run(model, x))


def test_all_or_none():
    x, other = ops.parameter([1, 2, 8, 8], np.float32), ops.parameter([1, 2, 8, 8], np.float32)
    legal, stride_0 = own_max_pool(x, 8, HALVE), own_max_pool(other, 8, HALVE)
    model = openvino.Model([legal.output(0), stride_0.output(0)], [x, other])
    stride_0.set_attribute("strides", [2, 0])
    with pytest.raises(ValueError, match="strides"):
        fastpool.openvino.replace_pooling(model, select="all")
    assert types(model).count("MaxPool") == 2


@pytest.mark.parametrize("model", [None, "model.xml", [1]])
def test_replace_pooling_needs_a_model(model):
    with pytest.raises(TypeError, match="^model"):
        fastpool.openvino.replace_pooling(model, select="all")


def test_requests_of_several_streams():
    model = own_model(8, (1, 4, 64, 64), HALVE)
    fastpool.openvino.replace_pooling(model, select="all")
    hints = {"PERFORMANCE_HINT": "THROUGHPUT"}
    compiled = CORE.compile_model(model, "CPU", hints)
    queue = openvino.AsyncInferQueue(compiled, 4)
    got = {}

    def keep(request, number):
        got[number] = [output.data.copy() for output in request.output_tensors]

    queue.set_callback(keep)
    given = [sample((1, 4, 64, 64)) * (-1) ** number * number for number in range(40)]
    for number, x in enumerate(given):
        queue.start_async([x], number)
    queue.wait_all()
    for number, x in enumerate(given):
        assert_same(got[number], fastpool.openvino.max_pool(x, **HALVE))


@functools.cache
def network(name):
    """Return a graph of the onnx package as bytes, with random weights for those left out."""
    onnx = pytest.importorskip("onnx")
    numpy_helper = pytest.importorskip("onnx.numpy_helper")
    folder = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    model = onnx.load(folder / f"light_{name}.onnx")
    shapes = {given.name: numpy_helper.to_array(given) for given in model.graph.initializer}
    rng = np.random.default_rng(0)
    nodes = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            nodes.append(node)
            continue
        shape = shapes[node.input[0]]
        weights = rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        if len(shape) == 1:  # a variance, among others
            weights = np.abs(weights) + 0.5
        weights = numpy_helper.from_array(weights.astype(np.float32), node.output[0])
        model.graph.initializer.append(weights)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model.SerializeToString()


@pytest.mark.parametrize(
    ("name", "count", "layout"),
    [("squeezenet", 3, None), ("squeezenet", 3, "NCHW"), ("shufflenet", 5, None)],
)
def test_networks(name, count, layout):
    """What the networks say, and each pooling inside, bit by bit."""
    replaced = CORE.read_model(network(name))
    pools = [node for node in replaced.get_ordered_ops() if node.get_type_name().endswith("Pool")]
    replaced.add_outputs([pool.output(0) for pool in pools])
    model = replaced.clone()
    layers = fastpool.openvino.replace_pooling(
        replaced, numerics="sequential", layout=layout, select="all"
    )
    assert len(layers) == count
    pools = [node for node in replaced.get_ordered_ops() if node.get_type_name().endswith("Pool")]
    assert [pool.get_attributes()["layout"] for pool in pools] == [layout or "NHWC"] * count
    x = np.random.default_rng(1).random(tuple(model.input(0).shape)).astype(np.float32)
    got, expected = run(replaced, x), run(model, x)
    assert len(expected) == 1 + count and all(output.std() > 0 for output in expected)
    assert_same(got[1:], expected[1:])
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-4)  # sums, in another layout


# --------------------------------------------------------------------------- around it


@pytest.mark.parametrize("name", ["MaxPool", "replace_pooling"])
def test_without_openvino(name):
    line = f'fastpool.openvino.{name} needs openvino: pip install "fastpool[openvino]"'
    found = cases.error_without("openvino", f"import fastpool.openvino; fastpool.openvino.{name}")
    assert found == f"ImportError: {line}"


@pytest.mark.parametrize("name", ["_windows", "_adaptive", "_replace"])
def test_docstrings(name):
    module = importlib.import_module(f"fastpool.openvino.{name}")
    found = doctest.testmod(module)
    assert found.attempted and found.failed == 0


@pytest.mark.parametrize("page", ["openvino.md", "coming-from/openvino.md"])
def test_recipes(page):
    cases.check_page(page)
