"""Averages and adaptive poolings, compared with OpenVINO's own: by calls and inside of models."""

import itertools

import numpy as np
import pytest

import cases
import fastpool.openvino

openvino = pytest.importorskip("openvino")
ops = pytest.importorskip("openvino.opset14")

from openvino_models import (  # noqa: E402
    CORE,
    EXACT,
    HALVE,
    MEANS,
    PADDED,
    assert_same,
    fractions,
    own_avg_pool,
    own_max_pool,
    run,
    sample,
    types,
)

MEAN = HALVE | {"exclude_pad": True}


def mean_model(version, shape, attributes, dtype=np.float32):
    x = ops.parameter(shape, dtype, name="x")
    return openvino.Model(own_avg_pool(x, version, attributes).outputs(), [x])


def adaptive_model(kind, shape, output_size, *more, dtype=np.float32):
    x = ops.parameter(shape, dtype, name="x")
    pool = getattr(ops, f"adaptive_{kind}_pool")(x, np.array(output_size), *more, name="pool")
    return openvino.Model(pool.outputs(), [x])


# --------------------------------------------------------------------------- windows

ROUNDINGS = {
    1: ["floor", "ceil"],
    14: ["floor", "ceil", "ceil_torch"],
    16: ["floor", "ceil", "ceil_torch"],
}
# Windows, strides and pads that leave something past the padding at the end of 7x6 elements.
GEOMETRIES = [
    {"kernel": [3, 2], "strides": [2, 2]},
    {"kernel": [2, 3], "strides": [2, 2], "pads_begin": [1, 0], "pads_end": [0, 0]},
    {"kernel": [3, 3], "strides": [2, 2], "pads_begin": [0, 1], "pads_end": [0, 0]},
    {"kernel": [3, 2], "strides": [3, 2], "pads_begin": [0, 0], "pads_end": [0, 1]},
    {"kernel": [3, 3], "strides": [2, 3], "pads_begin": [1, 2], "pads_end": [2, 1]},
]

# What OpenVINO wants to be told. Without dilations it crashes on version 16.
NONE = dict.fromkeys((1, 14), {"pads_begin": [0, 0], "pads_end": [0, 0]})
NONE[16] = NONE[1] | {"dilations": [1, 1]}


def calls(version):
    """The attributes of the poolings of one version."""
    for geometry, rounding in itertools.product(GEOMETRIES, ROUNDINGS[version]):
        yield geometry | {"rounding_type": rounding}
    for geometry, auto_pad in itertools.product(GEOMETRIES, ("same_upper", "same_lower", "valid")):
        yield geometry | {"auto_pad": auto_pad}
        if auto_pad == "valid":
            yield geometry | {"auto_pad": auto_pad, "rounding_type": "ceil"}
    if version == 16:
        for geometry, rounding in itertools.product(GEOMETRIES[1:4], ("floor", "ceil")):
            for dilations in ([2, 1], [1, 2], [2, 2]):
                yield geometry | {"dilations": dilations, "rounding_type": rounding}


@pytest.mark.parametrize("exclude_pad", [False, True])
@pytest.mark.parametrize("version", ROUNDINGS)
def test_equals_openvino_bit_by_bit(version, exclude_pad):
    """With numerics="sequential". A window without elements is 0 instead of OpenVINO's NaN."""
    given = fractions((1, 2, 7, 6))
    x = ops.parameter(given.shape, np.float32)
    attributes = [NONE[version] | {"exclude_pad": exclude_pad} | call for call in calls(version)]
    own = [own_avg_pool(x, version, call).output(0) for call in attributes]
    for call, expected in zip(attributes, run(openvino.Model(own, [x]), given), strict=True):
        got = fastpool.openvino.avg_pool(given, version=version, numerics="sequential", **call)
        empty = np.isnan(expected)
        assert not empty.any() or call["rounding_type"] == "ceil", call
        assert not got[empty].any(), call
        cases.assert_same(got, np.where(empty, np.float32(0), expected), call)


@pytest.mark.parametrize(("version", "shape", "attributes"), MEANS)
def test_equals_openvino_in_all_ranks(version, shape, attributes):
    x = fractions(shape)
    expected = run(mean_model(version, shape, attributes), x)
    got = fastpool.openvino.avg_pool(x, version=version, numerics="sequential", **attributes)
    assert_same([got], expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_integers(dtype):
    """OpenVINO is right as long as they are small."""
    x = sample((1, 2, 6, 7), dtype)
    attributes = PADDED | {"exclude_pad": False}
    expected = run(mean_model(1, x.shape, attributes, np.dtype(dtype)), x)
    assert_same([fastpool.openvino.avg_pool(x, version=1, **attributes)], expected)


@pytest.mark.parametrize("outputs", [1, 2, 3, 5, 7, 10])
def test_adaptive_averages(outputs):
    """OpenVINO adds in an order of its own, which does not show in whole numbers."""
    x, size = sample((1, 2, 7, 4)), [outputs, 3]
    expected = run(adaptive_model("avg", x.shape, size), x)
    assert_same([fastpool.openvino.adaptive_avg_pool(x, size)], expected)


@pytest.mark.parametrize("outputs", [1, 2, 3, 5, 7, 10])
def test_adaptive_maxima(outputs):
    x, size = sample((1, 2, 7, 4)), [outputs, 3]
    expected = run(adaptive_model("max", x.shape, size, "i32"), x)
    got = fastpool.openvino.adaptive_max_pool(x, size, index_element_type="i32")
    assert_same(got, expected)


# --------------------------------------------------------------------------- models


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("version", "shape", "attributes"), MEANS)
def test_models(version, shape, attributes, layout):
    own = mean_model(version, shape, attributes)
    replaced = own.clone()
    (layer,) = fastpool.openvino.replace_pooling(
        replaced, numerics="sequential", layout=layout, select="all"
    )
    assert "AvgPool" in types(own) and "AvgPool" not in types(replaced)
    x = fractions(shape)
    expected = run(own, x)
    assert_same(run(replaced, x), expected)
    assert_same([layer(x, numerics="sequential")], expected)

    default = own.clone()
    fastpool.openvino.replace_pooling(default, layout=layout, select="all")
    assert_same(run(default, x), [layer(x)])
    exact = own.clone()
    fastpool.openvino.replace_pooling(exact, numerics="exact", layout=layout, select="all")
    assert_same(run(exact, x), [layer(x, numerics="exact")])


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("size", [(3, 2), (1, 1), (6, 8)])
def test_adaptive_models(size, layout):
    shape = (1, 2, 6, 4)
    x = sample(shape)
    own = adaptive_model("avg", shape, size)
    replaced = own.clone()
    (layer,) = fastpool.openvino.replace_pooling(replaced, layout=layout, select="all")
    assert layer.attributes == {"output_size": size}
    assert_same(run(replaced, x), run(own, x))
    assert_same([layer(x)], run(own, x))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("size", [(3, 2), (1, 1)])
def test_adaptive_maxima_in_models(size, layout):
    shape = (1, 2, 6, 4)
    x = sample(shape)
    own = adaptive_model("max", shape, size, "i32")
    replaced = own.clone()
    (layer,) = fastpool.openvino.replace_pooling(replaced, layout=layout, select="all")
    assert layer.attributes == {"output_size": size, "index_element_type": "i32"}
    assert_same(run(replaced, x), run(own, x))
    assert_same(layer(x), run(own, x))


def test_indices_that_openvino_does_not_compile():
    """Its CPU plugin refuses AdaptiveMaxPool with 64-bit indices."""
    model = adaptive_model("max", (1, 2, 6, 4), (3, 2), "i64")
    fastpool.openvino.replace_pooling(model, select="all")
    x = sample((1, 2, 6, 4))
    y, indices = fastpool.openvino.adaptive_max_pool(x, (3, 2))
    got = run(model, x)
    assert_same(got[:1], [y])
    np.testing.assert_array_equal(got[1], indices)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_output_sizes_that_are_no_constants(layout):
    x, size = ops.parameter([1, 2, -1, 4], np.float32), ops.parameter([2], np.int64)
    pool = ops.adaptive_avg_pool(x, size, name="pool")
    model = openvino.Model(pool.outputs(), [x, size])
    (layer,) = fastpool.openvino.replace_pooling(model, layout=layout, select="all")
    assert layer.attributes == {}
    compiled = CORE.compile_model(model, "CPU", EXACT)
    given = sample((1, 2, 6, 4))
    for outputs in ((3, 2), (1, 1), (3, 2), (0, 2), (2, 8)):
        got = list(compiled([given, np.array(outputs)]).values())
        assert_same(got, [fastpool.openvino.adaptive_avg_pool(given, outputs)])
        assert_same(got, [layer(given, output_size=outputs)])
    (pool,) = poolings(model)
    bad = openvino.Tensor(np.array([-1, 2]))
    with pytest.raises(ValueError, match=r"output_size\[0\].*-1"):
        pool.evaluate([openvino.Tensor(np.zeros(0, np.float32))], [openvino.Tensor(given), bad])


def test_a_network():
    """Convolution, pooling and adaptive pooling: within the tolerance of float32 sums."""
    rng = np.random.default_rng(2)
    x = ops.parameter([1, 3, 16, 16], np.float32, name="x")
    weights = rng.standard_normal((4, 3, 3, 3)).astype(np.float32)
    features = ops.relu(ops.convolution(x, weights, [1, 1], [1, 1], [1, 1], [1, 1]))
    means = own_avg_pool(features, 14, PADDED | {"exclude_pad": False, "rounding_type": "ceil"})
    maxima = own_max_pool(means, 8, PADDED)
    head = ops.adaptive_avg_pool(maxima.output(0), np.array([1, 2]))
    model = openvino.Model([ops.softmax(ops.reshape(head, [1, -1], False), 1)], [x])
    given = fractions((1, 3, 16, 16))
    expected = run(model, given)
    layers = fastpool.openvino.replace_pooling(model, select="all")
    assert [type(layer).__name__ for layer in layers] == [
        "AvgPoolLayer",
        "MaxPoolLayer",
        "AdaptiveAvgPoolLayer",
    ]
    assert [node.get_attributes()["layout"] for node in poolings(model)] == ["NHWC"] * 3
    np.testing.assert_allclose(run(model, given)[0], expected[0], rtol=1e-5)


def poolings(model):
    return [node for node in model.get_ordered_ops() if node.get_type_name().startswith("Fastpool")]


# --------------------------------------------------------------------------- files


@pytest.mark.parametrize(("version", "shape", "attributes"), MEANS)
def test_read_layers_of_saved_models(version, shape, attributes, tmp_path):
    model = mean_model(version, shape, attributes)
    openvino.save_model(model, tmp_path / "model.xml")
    (layer,) = fastpool.openvino.read_layers(tmp_path / "model.xml")
    (replaced,) = fastpool.openvino.replace_pooling(model, select="all")
    if "pads_begin" not in attributes:  # OpenVINO notes what it made of auto_pad, but not there
        for found in (layer, replaced):
            del found.attributes["pads_begin"], found.attributes["pads_end"]
    assert layer == replaced
    assert layer.version == version


def test_an_average_without_dilations(tmp_path):
    """OpenVINO saves empty dilations."""
    attributes = PADDED | {"exclude_pad": True}
    model = mean_model(16, (1, 2, 6, 7), attributes)
    openvino.save_model(model, tmp_path / "model.xml")
    (layer,) = fastpool.openvino.read_layers(tmp_path / "model.xml")
    (replaced,) = fastpool.openvino.replace_pooling(model, select="all")
    assert layer == replaced and "dilations" not in layer.attributes
    x = fractions((1, 2, 6, 7))
    assert_same(run(model, x), [fastpool.openvino.avg_pool(x, **attributes)])


@pytest.mark.parametrize("kind", ["avg", "max"])
def test_adaptive_layers_of_saved_models(kind, tmp_path):
    model = adaptive_model(kind, (1, 2, 6, 4), (3, 2))
    openvino.save_model(model, tmp_path / "model.xml")
    (layer,) = fastpool.openvino.read_layers(tmp_path / "model.xml")
    assert [layer] == fastpool.openvino.replace_pooling(model, select="all")
    assert layer.attributes["output_size"] == (3, 2)


SAVED = {
    "AvgPool": (mean_model, (1, (1, 2, 6, 7), PADDED | {"exclude_pad": False})),
    "AdaptiveAvgPool": (adaptive_model, ("avg", (1, 2, 6, 4), (3, 2))),
    "AdaptiveMaxPool": (adaptive_model, ("max", (1, 2, 6, 4), (3, 2), "i32")),
}


@pytest.mark.parametrize("kind", SAVED)
def test_saved_and_read_again(kind, tmp_path):
    make, arguments = SAVED[kind]
    model = make(*arguments)
    fastpool.openvino.replace_pooling(model, nan="ignore", numerics="sequential", select="all")
    openvino.save_model(model, tmp_path / "model.xml")
    again = CORE.read_model(tmp_path / "model.xml")
    (before,), (after,) = poolings(model), poolings(again)
    assert before.get_type_name() == after.get_type_name() == f"Fastpool{kind}"
    assert after.get_attributes() == before.get_attributes()
    assert after.get_attributes()["nan"] == "ignore"
    assert after.get_friendly_name() == "pool"
    x = fractions(model.input(0).shape)
    assert_same(run(again, x), run(model, x))
    assert fastpool.openvino.read_layers(tmp_path / "model.xml") == []


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('kernel="3, 2"', "", "kernel"),
        ('exclude_pad="0"', "", "exclude_pad"),
        ('exclude_pad="0"', 'exclude_pad="7"', "exclude_pad"),
        ('beyond="count"', "", "beyond"),
        ('beyond="count"', 'beyond="all"', "beyond"),
        ('numerics="pairwise"', 'numerics="fast"', "numerics"),
    ],
)
def test_altered_files(old, new, match, tmp_path):
    make, arguments = SAVED["AvgPool"]
    model = make(*arguments)
    fastpool.openvino.replace_pooling(model, select="all")
    openvino.save_model(model, tmp_path / "model.xml")
    text = (tmp_path / "model.xml").read_text()
    assert old in text
    (tmp_path / "model.xml").write_text(text.replace(old, new))
    with pytest.raises(RuntimeError, match=match):
        CORE.read_model(tmp_path / "model.xml")


# --------------------------------------------------------------------------- operations


@pytest.mark.parametrize("name", ["f16", "f32", "f64", "i8", "u8", "i32", "i64", "u64", "boolean"])
def test_element_types(name):
    element_type = getattr(openvino.Type, name)
    x = sample((1, 2, 6, 4)).astype(element_type.to_dtype())
    parameter = ops.parameter(x.shape, element_type)
    made = {
        fastpool.openvino.AvgPool(parameter, **MEAN): fastpool.openvino.avg_pool(x, **MEAN),
        fastpool.openvino.AdaptiveAvgPool(parameter, [3, 2]): fastpool.openvino.adaptive_avg_pool(
            x, [3, 2]
        ),
    }
    size = openvino.Tensor(np.array([3, 2]))
    for pool, expected in made.items():
        result = openvino.Tensor(element_type, expected.shape)
        assert pool.evaluate([result], [openvino.Tensor(x), size][: pool.get_input_size()])
        assert_same([result.data], [expected])


def test_bfloat16_is_read_by_its_bits():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = fractions((1, 2, 6, 4), ml_dtypes.bfloat16)
    expected = fastpool.openvino.avg_pool(x, **MEAN)
    pool = fastpool.openvino.AvgPool(ops.parameter(x.shape, openvino.Type.bf16), **MEAN)
    given = openvino.Tensor(openvino.Type.bf16, x.shape)
    given.data[...] = x.view(np.float16)
    result = openvino.Tensor(openvino.Type.bf16, expected.shape)
    assert pool.evaluate([result], [given])
    np.testing.assert_array_equal(result.data.view(np.uint16), expected.view(np.uint16))


DYNAMIC = [(-1, 2, -1, -1), (1, -1, 6, "5..9"), ("1..4", 2, "..20", "4.."), None]


@pytest.mark.parametrize("shape", DYNAMIC, ids=str)
def test_unknown_extents(shape):
    """Never less is known of the outputs than OpenVINO knows, and what comes is among it."""
    shape = openvino.PartialShape.dynamic() if shape is None else openvino.PartialShape(shape)
    x, attributes = ops.parameter(shape, np.float32), PADDED | {"exclude_pad": True}
    pools = {
        fastpool.openvino.AvgPool(x, **attributes): own_avg_pool(x, 1, attributes),
        fastpool.openvino.AdaptiveAvgPool(x, [3, 2]): ops.adaptive_avg_pool(x, np.array([3, 2])),
    }
    for pool, own in pools.items():
        outputs = pool.get_output_partial_shape(0)
        assert outputs.refines(own.get_output_partial_shape(0))
    if shape.rank.is_dynamic:
        return  # OpenVINO's CPU does not run such models
    model = openvino.Model([pool.output(0) for pool in pools], [x])
    compiled = CORE.compile_model(model, "CPU", EXACT)
    for extents in ((1, 2, 6, 8), (1, 2, 6, 5), (1, 2, 6, 8)):
        given = fractions(extents)
        expected = [
            fastpool.openvino.avg_pool(given, **attributes),
            fastpool.openvino.adaptive_avg_pool(given, [3, 2]),
        ]
        assert_same(list(compiled([given]).values()), expected)


def test_neither_rank_nor_number_of_sizes_is_known():
    unknown = openvino.PartialShape.dynamic()
    x, size = ops.parameter(unknown, np.float32), ops.parameter([-1], np.int64)
    pool = fastpool.openvino.AdaptiveMaxPool(x, size)
    assert [pool.get_output_partial_shape(i) for i in (0, 1)] == [unknown, unknown]
    pool = fastpool.openvino.AdaptiveAvgPool(x, ops.parameter([2], np.int64))
    assert pool.get_output_partial_shape(0) == openvino.PartialShape([-1] * 4)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"kernel": None}, TypeError, "kernel"),
        ({"kernel": [20, 2]}, ValueError, "kernel.*20.*exceeds"),
        ({"exclude_pad": None}, TypeError, "exclude_pad.*required"),
        ({"exclude_pad": 3}, ValueError, "exclude_pad"),
        ({"auto_pad": "explicit"}, TypeError, "pads_begin.*required"),
        ({"beyond": "all"}, ValueError, "beyond"),
        ({"numerics": "fast"}, ValueError, "numerics"),
        ({"nan": "no"}, ValueError, "nan"),
        ({"layout": "NWHC"}, ValueError, "layout"),
        ({"axis": 2}, TypeError, "axis"),
    ],
)
def test_bad_attributes(change, error, match):
    x = ops.parameter([1, 2, 8, 8], np.float32)
    with pytest.raises(error, match=match):
        fastpool.openvino.AvgPool(x, **MEAN | change)


@pytest.mark.parametrize(
    ("size", "more", "error", "match"),
    [
        ([3], {}, ValueError, "output_size"),
        ([3, -2], {}, ValueError, "output_size"),
        ([3, 2.0], {}, TypeError, "output_size"),
        (3, {}, TypeError, "output_size"),
        (None, {}, TypeError, "output_size"),
        ([2**62, 2**62], {}, ValueError, "output"),
        ([3, 2], {"index_element_type": "i8"}, ValueError, "index_element_type"),
        ([3, 2], {"return_indices": 1}, TypeError, "return_indices"),
        ([3, 2], {"nan": "no"}, ValueError, "nan"),
    ],
)
def test_bad_adaptive_operations(size, more, error, match):
    x = ops.parameter([1, 2, 8, 8], np.float32)
    with pytest.raises(error, match=match):
        fastpool.openvino.AdaptiveMaxPool(x, size, **more)


@pytest.mark.parametrize("name", ["AvgPool", "AdaptiveAvgPool", "AdaptiveMaxPool"])
def test_without_openvino(name):
    line = f'fastpool.openvino.{name} needs openvino: pip install "fastpool[openvino]"'
    found = cases.error_without("openvino", f"import fastpool.openvino; fastpool.openvino.{name}")
    assert found == f"ImportError: {line}"
