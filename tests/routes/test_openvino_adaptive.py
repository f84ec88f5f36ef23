"""fastpool.openvino's AdaptiveAvgPool and AdaptiveMaxPool, by attributes and from layers."""

import io
import math
import pickle

import numpy as np
import pytest

import fastpool
import fastpool.openvino
from cases import assert_same

ROW = np.array([[[2.0, 7, 1, 8, 2, 8, 1], [3, 1, 4, 1, 5, 9, 2]]])
PLANE = np.random.default_rng(0).integers(-99, 99, (1, 2, 6, 4)).astype(np.float32)
KINDS = ["AdaptiveAvgPool", "AdaptiveMaxPool"]
FUNCTIONS = [fastpool.openvino.adaptive_avg_pool, fastpool.openvino.adaptive_max_pool]


def windows(size, outputs):
    """The windows of an axis as the documents define them."""
    return [
        slice(math.floor(i * size / outputs), math.ceil((i + 1) * size / outputs))
        for i in range(outputs)
    ]


@pytest.mark.parametrize("outputs", [1, 2, 3, 5, 7, 10])
def test_averages_of_seven(outputs):
    y = fastpool.openvino.adaptive_avg_pool(ROW, [outputs])
    expected = [
        ROW[..., window].sum(-1) / ROW[..., window].shape[-1] for window in windows(7, outputs)
    ]
    assert_same(y, np.stack(expected, -1))


@pytest.mark.parametrize("outputs", [1, 2, 3, 5, 7, 10])
def test_maxima_of_seven(outputs):
    y, indices = fastpool.openvino.adaptive_max_pool(ROW, [outputs])
    found = windows(7, outputs)
    assert_same(y, np.stack([ROW[..., window].max(-1) for window in found], -1))
    first = [ROW[..., window].argmax(-1) + window.start for window in found]
    assert_same(indices, np.stack(first, -1))


@pytest.mark.parametrize("numerics", ["pairwise", "exact", "sequential"])
@pytest.mark.parametrize("output_size", [(3, 2), [1, 1], np.array([6, 4]), 2, (None, 2), (0, 2)])
def test_averages_are_the_native_call(output_size, numerics):
    expected = fastpool.adaptive_avg_pool(PLANE, output_size, numerics=numerics)
    assert_same(
        fastpool.openvino.adaptive_avg_pool(PLANE, output_size, numerics=numerics), expected
    )


@pytest.mark.parametrize("output_size", [(3, 2), [1, 1], np.array([6, 4]), 2, (None, 2), (0, 2)])
@pytest.mark.parametrize("element_type, dtype", [("i64", "int64"), ("i32", "int32")])
def test_maxima_are_the_native_call(output_size, element_type, dtype):
    """The indices count in each plane."""
    expected = fastpool.adaptive_max_pool(
        PLANE, output_size, return_indices=True, index_axis=2, index_dtype=dtype
    )
    got = fastpool.openvino.adaptive_max_pool(PLANE, output_size, index_element_type=element_type)
    assert_same(got[0], expected[0])
    assert_same(got[1], expected[1])
    flat = np.take_along_axis(PLANE.reshape(1, 2, -1), got[1].reshape(1, 2, -1), -1)
    assert_same(flat.reshape(got[0].shape), got[0])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_ranks(n):
    x = np.arange(4**n).reshape(1, 1, *(4,) * n)
    y, indices = fastpool.openvino.adaptive_max_pool(x, [2] * n)
    corner = x[(slice(None), slice(None), *(slice(1, None, 2),) * n)]
    assert_same(y, corner)
    assert_same(indices, corner)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("shape", [(5,), (5, 5), (1, 1, 3, 3, 3, 3)])
def test_ranks_refused(function, shape):
    with pytest.raises(ValueError, match="spatial axis|rank|layout"):
        function(np.zeros(shape), [1] * max(len(shape) - 2, 0))


def test_channels_last_and_outputs():
    last = np.ascontiguousarray(np.moveaxis(PLANE, 1, -1))
    expected = fastpool.openvino.adaptive_max_pool(PLANE, [3, 2], index_element_type="i32")
    y, indices = np.empty((1, 3, 2, 2), np.float32), np.empty((1, 3, 2, 2), np.int32)
    arrays = {"out": y, "out_indices": indices}
    got = fastpool.openvino.adaptive_max_pool(
        last, [3, 2], layout="NHWC", index_element_type="i32", **arrays
    )
    assert got[0] is y and got[1] is indices
    assert_same(np.ascontiguousarray(np.moveaxis(y, -1, 1)), expected[0])
    assert_same(np.ascontiguousarray(np.moveaxis(indices, -1, 1)), expected[1])
    out = np.empty((1, 3, 2, 2), np.float32)
    assert fastpool.openvino.adaptive_avg_pool(last, [3, 2], layout="NHWC", out=out) is out
    assert_same(
        np.ascontiguousarray(np.moveaxis(out, -1, 1)),
        fastpool.openvino.adaptive_avg_pool(PLANE, [3, 2]),
    )


def test_nan():
    x = PLANE.copy()
    x[0, 0, 0, 0] = np.nan
    for nan in ("propagate", "ignore"):
        expected = fastpool.adaptive_avg_pool(x, (3, 2), nan=nan)
        assert_same(fastpool.openvino.adaptive_avg_pool(x, (3, 2), nan=nan), expected)
        assert np.isnan(expected[0, 0, 0, 0]) == (nan == "propagate")
        y, indices = fastpool.openvino.adaptive_max_pool(x, (3, 2), nan=nan)
        assert np.isnan(y[0, 0, 0, 0]) == (nan == "propagate")
        assert (indices[0, 0, 0, 0] == 0) == (nan == "propagate")


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    "output_size, error",
    [
        (-1, ValueError),
        ([-1, 2], ValueError),
        ([2], ValueError),
        ([2, 2, 2], ValueError),
        ([], ValueError),
        ([2, 2.0], TypeError),
        ([2, True], TypeError),
        ([2, "2"], TypeError),
        ("2,2", TypeError),
        ({2: 2}, TypeError),
        ([2**62, 2**62], ValueError),
        ([2, 2**63], ValueError),
    ],
    ids=str,
)
def test_bad_output_size(function, output_size, error):
    with pytest.raises(error, match="output") as caught:
        function(PLANE, output_size)
    assert len(str(caught.value)) < 300


def test_bad_arguments():
    for function in FUNCTIONS:
        with pytest.raises(TypeError, match="output_size"):
            function(PLANE)
        with pytest.raises(ValueError, match="output_size"):
            function(np.zeros((1, 1, 0)), [2])
        with pytest.raises(ValueError, match="nan"):
            function(PLANE, 2, nan="skip")
    with pytest.raises(ValueError, match="numerics"):
        fastpool.openvino.adaptive_avg_pool(PLANE, 2, numerics="fast")
    for element_type, error in (("i16", ValueError), ("I64", ValueError), (np.int64, TypeError)):
        with pytest.raises(error, match="index_element_type"):
            fastpool.openvino.adaptive_max_pool(PLANE, 2, index_element_type=element_type)


# ------------------------------------------------------------------------------- layers


def ports(*shapes):
    dims = ("".join(f"<dim>{size}</dim>" for size in shape) for shape in shapes)
    return "".join(f'<port id="{i}">{text}</port>' for i, text in enumerate(dims))


def xml(kind, data="", outputs=((1, 2, 3, 2),), head='version="opset8"'):
    return (
        f'<layer name="pool" type="{kind}" {head}>{data}<input>{ports((1, 2, 6, 4), (2,))}</input>'
        f"<output>{ports(*outputs)}</output></layer>"
    )


def test_averaging_layer():
    layer = fastpool.openvino.read_layer(xml("AdaptiveAvgPool"))
    assert type(layer) is fastpool.openvino.AdaptiveAvgPoolLayer
    assert (layer.name, layer.version) == ("pool", 8)
    assert layer.attributes == {"output_size": (3, 2)}
    assert layer.input_dims == ((1, 2, 6, 4), (2,))
    assert pickle.loads(pickle.dumps(layer)) == layer
    assert_same(layer(PLANE), fastpool.adaptive_avg_pool(PLANE, (3, 2)))
    switches = {"numerics": "sequential", "nan": "ignore", "num_threads": 1}
    out = np.empty((1, 2, 2, 2), np.float32)
    assert layer(PLANE, output_size=2, **switches, out=out) is out
    assert_same(out, fastpool.adaptive_avg_pool(PLANE, 2, numerics="sequential"))


def test_maximum_layer():
    text = xml("AdaptiveMaxPool", '<data index_element_type="i32"/>', [(1, 2, 3, 2)] * 2)
    layer = fastpool.openvino.read_layer(text)
    assert type(layer) is fastpool.openvino.AdaptiveMaxPoolLayer
    assert layer.attributes == {"output_size": (3, 2), "index_element_type": "i32"}
    expected = fastpool.openvino.adaptive_max_pool(PLANE, (3, 2), index_element_type="i32")
    for output, same in zip(layer(PLANE), expected, strict=True):
        assert_same(output, same)
    assert layer(PLANE, output_size=[1, 1], nan="ignore", index_layout="NCHW")[1].dtype == np.int32


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outputs", [(), ((),), ((1, 2),), ((1, 2, -1, 2),), ((1, 2, 3, -1),)])
def test_layers_that_do_not_say_the_output_size(kind, outputs):
    layer = fastpool.openvino.read_layer(xml(kind, outputs=outputs))
    assert layer.attributes == {}
    with pytest.raises(TypeError, match="^output_size: required"):
        layer(PLANE)
    layer(PLANE, output_size=(3, 2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("output_type", ["i64", None])
def test_documents(kind, output_type):
    """The examples have output_type, which is not defined, and ports with the same number."""
    data = f'<data output_type="{output_type}"/>' if output_type else ""
    shape = "<dim>1</dim><dim>3</dim><dim>{0}</dim><dim>{0}</dim>"
    outputs = f'<port id="1">{shape.format(16)}</port>'
    if kind == "AdaptiveMaxPool":
        outputs += f'<port id="2">{shape.format(16)}</port>'
    layer = fastpool.openvino.read_layer(
        f'<layer ... type="{kind}" ... >{data}<input><port id="0">{shape.format(32)}</port></input>'
        f'<input><port id="1"><dim>2</dim></port></input><output>{outputs}</output></layer>'
    )
    assert layer.attributes == {"output_size": (16, 16)}
    x = np.arange(3 * 32 * 32).reshape(1, 3, 32, 32)
    if kind == "AdaptiveMaxPool":
        y, indices = layer(x)
        assert_same(y, x[:, :, 1::2, 1::2])
        assert_same(indices, y % 1024)
    else:
        assert_same(layer(x.astype(np.float64)), x[:, :, ::2, ::2] + 16.5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("opset, version", [(8, 8), (13, 8), (16, 8)])
def test_layer_version(kind, opset, version):
    layer = fastpool.openvino.read_layer(xml(kind, head=f'version="opset{opset}"'))
    assert layer.version == version
    assert fastpool.openvino.read_layer(xml(kind, head="")).version == 8


@pytest.mark.parametrize(
    "text, match",
    [
        (xml("AdaptiveAvgPool", head='version="opset7"'), "version.*opset8.*opset7"),
        (xml("AdaptiveAvgPool", '<data index_element_type="i64"/>'), "index_element_type"),
        (xml("AdaptiveAvgPool", '<data output_size="3,2"/>'), "output_size"),
        (xml("AdaptiveAvgPool", '<data output_type="i32"/>'), "output_type.*i32"),
        (xml("AdaptiveMaxPool", '<data index_element_type="i8"/>'), "index_element_type.*i8"),
        (xml("AdaptiveMaxPool", '<data kernel="2,2"/>'), "kernel"),
        (xml("AdaptiveMaxPool", "<data/><data/>"), "one <data>"),
        (xml("AdaptiveMaxPool", outputs=[(1, 2, 3, "x")]), "dim"),
        (xml("AdaptiveMaxPool", outputs=[(1, 2, 3, "9" * 99_999)]), "dim"),
        (xml("AdaptiveLpPool"), "AdaptiveLpPool"),
    ],
    ids=lambda text: text[:40],
)
def test_bad_layers(text, match):
    with pytest.raises(ValueError, match=match) as caught:
        fastpool.openvino.read_layer(text)
    assert len(str(caught.value)) < 300


def model(*layers):
    return io.BytesIO(
        f'<net name="m" version="11"><layers>{"".join(layers)}</layers></net>'.encode()
    )


def test_files_with_all_types():
    window = 'kernel="2,2" strides="2,2" auto_pad="valid"'
    layers = {
        "MaxPoolLayer": f'<layer type="MaxPool" version="opset14"><data {window}/></layer>',
        "AvgPoolLayer": f'<layer type="AvgPool"><data {window} exclude-pad="1"/></layer>',
        "AdaptiveAvgPoolLayer": xml("AdaptiveAvgPool"),
        "AdaptiveMaxPoolLayer": xml("AdaptiveMaxPool"),
    }
    other = '<layer type="ReduceMean" version="opset1"><data keep_dims="true"/></layer>'
    found = fastpool.openvino.read_layers(model(*layers.values(), other))
    assert [type(layer).__name__ for layer in found] == [*layers]
    assert found == [fastpool.openvino.read_layer(text) for text in layers.values()]
    with pytest.raises(ValueError, match="^layer 'pool': output_type"):
        bad = xml("AdaptiveAvgPool", '<data output_type="f32"/>')
        fastpool.openvino.read_layers(model(layers["MaxPoolLayer"], bad))


@pytest.mark.parametrize("kind", KINDS)
def test_declared_sizes_of_hostile_layers(kind):
    layer = fastpool.openvino.read_layer(xml(kind, outputs=[(1, 2, 2**62, 2**62)]))
    with pytest.raises(ValueError, match="output"):
        layer(PLANE)
    layer = fastpool.openvino.read_layer(xml(kind, outputs=[(1, 2, 3)]))
    with pytest.raises(ValueError, match="output_size"):
        layer(PLANE)
