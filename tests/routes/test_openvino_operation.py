"""The operation fastpool.openvino.MaxPool gives exactly what OpenVINO's own MaxPool gives."""

import numpy as np
import pytest

import fastpool
import fastpool.openvino
import limits

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


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("version", "shape", "attributes"), POOLS)
def test_equals_openvino(version, shape, attributes, layout):
    x = sample(shape)
    own = own_model(version, shape, attributes)
    replaced = own.clone()
    (layer,) = fastpool.openvino.replace_pooling(replaced, layout=layout, select="all")
    assert "MaxPool" in types(own) and "MaxPool" not in types(replaced)
    expected = run(own, x)
    assert_same(run(replaced, x), expected)
    results = layer(x)
    assert_same(results if isinstance(results, tuple) else (results,), expected)


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint8", "int32"])
def test_element_types_in_models(dtype):
    """Those that OpenVINO computes exactly itself."""
    own = own_model(8, (2, 3, 8, 9), PADDED, np.dtype(dtype))
    replaced = own.clone()
    fastpool.openvino.replace_pooling(replaced, select="all")
    x = sample((2, 3, 8, 9), dtype)
    assert_same(run(replaced, x), run(own, x))


TYPES = ["f16", "f32", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "boolean"]


def operation(shape, element_type, **attributes):
    x = ops.parameter(shape, element_type, name="x")
    return fastpool.openvino.MaxPool(x, **attributes)


@pytest.mark.parametrize("name", TYPES)
def test_element_types(name):
    element_type = getattr(openvino.Type, name)
    x = sample((2, 3, 8, 9)).astype(element_type.to_dtype())
    expected = fastpool.openvino.max_pool(x, **PADDED)
    pool = operation(x.shape, element_type, **PADDED)
    outputs = [openvino.Tensor(element_type, expected[0].shape)]
    outputs.append(openvino.Tensor(openvino.Type.i64, expected[0].shape))
    assert pool.evaluate(outputs, [openvino.Tensor(x)])
    assert_same([output.data for output in outputs], expected)


def test_bfloat16_is_read_by_its_bits():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = (sample((2, 3, 8, 9)) - 4.5).astype(ml_dtypes.bfloat16)
    expected = fastpool.max_pool(x, 2, strides=2).view(np.uint16)
    pool = operation(x.shape, openvino.Type.bf16, **HALVE, return_indices=False)
    given = openvino.Tensor(openvino.Type.bf16, x.shape)
    given.data[...] = x.view(np.float16)
    result = openvino.Tensor(openvino.Type.bf16, expected.shape)
    assert pool.evaluate([result], [given])
    np.testing.assert_array_equal(result.data.view(np.uint16), expected)

    model = openvino.Model(pool.outputs(), [pool.input_value(0).get_node()])
    (got,) = CORE.compile_model(model, "CPU", EXACT)([given]).values()
    np.testing.assert_array_equal(got.view(np.uint16), expected)


@pytest.mark.parametrize("return_indices", [False, True])
def test_nothing_is_copied(return_indices):
    shape = (1, 8, 512, 512)
    pool = operation(shape, openvino.Type.f32, **HALVE, return_indices=return_indices)
    given, result = openvino.Tensor(sample(shape)), openvino.Tensor(np.zeros((1, 8, 256, 256), "f"))
    results = [result, openvino.Tensor(openvino.Type.i64, result.shape)][: 1 + return_indices]
    pool.evaluate(results, [given])  # plans
    result.data[...] = 0
    assert limits.allocated(lambda: pool.evaluate(results, [given])) < 100_000
    np.testing.assert_array_equal(result.data, fastpool.max_pool(given.data, 2, strides=2))


def test_nan():
    x = sample((1, 2, 8, 8))
    x[0, :, ::3, ::5] = np.nan
    own = own_model(8, x.shape, PADDED)
    for nan in ("ignore", "propagate"):
        replaced = own.clone()
        fastpool.openvino.replace_pooling(replaced, nan=nan, select="all")
        assert_same(run(replaced, x), fastpool.openvino.max_pool(x, **PADDED, nan=nan))
        if nan == "ignore":
            assert_same(run(replaced, x), run(own, x))


DYNAMIC = [(-1, 3, -1, -1), (2, -1, 8, "5..9"), ("1..4", 3, "..20", "7.."), None]


@pytest.mark.parametrize("shape", DYNAMIC, ids=str)
@pytest.mark.parametrize(
    "attributes",
    [
        HALVE,
        PADDED,
        PADDED | {"rounding_type": "ceil", "dilations": [2, 1]},
        PADDED | {"rounding_type": "ceil_torch"},
        HALVE | {"auto_pad": "same_lower"},
    ],
    ids=str,
)
def test_unknown_extents(shape, attributes):
    """Never less is known of the outputs than OpenVINO knows, and what comes is among it."""
    shape = openvino.PartialShape.dynamic() if shape is None else openvino.PartialShape(shape)
    x = ops.parameter(shape, np.float32, name="x")
    known = own_max_pool(x, 14, attributes).get_output_partial_shape(0)
    pool = fastpool.openvino.MaxPool(x, **attributes)
    outputs = pool.get_output_partial_shape(0)
    assert outputs.refines(known)
    assert pool.get_output_partial_shape(1) == outputs
    if shape.rank.is_dynamic:
        return  # OpenVINO's CPU does not run such models
    compiled = CORE.compile_model(openvino.Model(pool.outputs(), [x]), "CPU", EXACT)
    for extents in ((2, 3, 8, 9), (2, 3, 8, 7), (2, 3, 8, 9)):
        x = sample(extents)
        got = list(compiled([x]).values())
        assert_same(got, fastpool.openvino.max_pool(x, version=14, **attributes))
        assert outputs.compatible(openvino.PartialShape(got[0].shape))


@pytest.mark.parametrize("shape", [(2, 8, 9, 3), (-1, "5..", -1, 3), None], ids=str)
def test_channels_last(shape):
    shape = openvino.PartialShape.dynamic() if shape is None else openvino.PartialShape(shape)
    attributes = PADDED | {"axis": 1, "layout": "NHWC"}
    x = ops.parameter(shape, np.float32)
    pool = fastpool.openvino.MaxPool(x, **attributes)
    given = np.ascontiguousarray(np.moveaxis(sample((2, 3, 8, 9)), 1, -1))
    expected = fastpool.openvino.max_pool(given, **attributes)
    assert pool.get_output_partial_shape(0).compatible(openvino.PartialShape(expected[0].shape))
    if shape.rank.is_static:
        assert_same(run(openvino.Model(pool.outputs(), [x]), given), expected)


def test_a_window_larger_than_the_padded_input():
    """OpenVINO's own operation refuses it in every rounding mode.

    If the extents are unknown and it has one thread, OpenVINO 2026.4 gives an empty result instead.
    """
    x = np.array([[[3, 7]]], np.float32)
    window = {"strides": [3], "pads_begin": [0], "pads_end": [0]}
    for rounding_type in ("floor", "ceil", "ceil_torch"):
        own = ops.parameter(x.shape, np.float32)
        attributes = {**window, "dilations": [1], "kernel_shape": [4]}
        with pytest.raises(RuntimeError, match="larger than the data shape after padding"):
            ops.max_pool(own, **attributes, rounding_type=rounding_type)
    for operation, more in (
        (fastpool.openvino.MaxPool, {}),
        (fastpool.openvino.AvgPool, {"exclude_pad": True}),
    ):
        attributes = {**window, "kernel": [4], **more}
        for rounding_type in ("floor", "ceil"):
            with pytest.raises(ValueError, match='exceeds .*; rounding_type "ceil_torch" would'):
                operation(
                    ops.parameter([1, 1, 2], np.float32), **attributes, rounding_type=rounding_type
                )
        for extent in (2, -1):
            parameter = ops.parameter([1, 1, extent], np.float32)
            pool = operation(parameter, **attributes, rounding_type="ceil_torch")
            y, *_ = run(openvino.Model(pool.outputs(), [parameter]), x)
            assert y.tolist() == [[[5 if more else 7]]]


def test_evaluate_gives_outputs_their_shape():
    x = ops.parameter([-1, 3, -1, -1], np.float32)
    model = openvino.Model(fastpool.openvino.MaxPool(x, **HALVE).outputs(), [x])
    given = sample((2, 3, 8, 9))
    outputs = [openvino.Tensor(openvino.Type.f32, []), openvino.Tensor(openvino.Type.i64, [])]
    outputs = [openvino.Tensor(output.element_type, [0]) for output in outputs]
    assert model.evaluate(outputs, [openvino.Tensor(given)])
    expected = fastpool.openvino.max_pool(given, **HALVE)
    assert_same([output.data for output in outputs], expected)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"kernel": None}, TypeError, "kernel"),
        ({"kernel": 2}, TypeError, "kernel"),
        ({"kernel": [2]}, ValueError, "kernel"),
        ({"kernel": [20, 2]}, ValueError, "kernel.*20.*exceeds"),
        ({"strides": None}, TypeError, "strides"),
        ({"strides": [2, 0]}, ValueError, "strides"),
        ({"auto_pad": "explicit"}, TypeError, "pads_begin.*required"),
        ({"auto_pad": "same"}, ValueError, "auto_pad"),
        ({"dilations": [1, 2.0]}, TypeError, "dilations"),
        ({"axis": 4}, ValueError, "axis"),
        ({"index_element_type": "i8"}, ValueError, "index_element_type"),
        ({"nan": "no"}, ValueError, "nan"),
        ({"layout": "NWHC"}, ValueError, "layout"),
        ({"return_indices": 1}, TypeError, "return_indices"),
        ({"num_threads": 2}, TypeError, "num_threads"),
    ],
)
def test_bad_attributes(change, error, match):
    x = ops.parameter([1, 2, 8, 8], np.float32)
    with pytest.raises(error, match=match):
        fastpool.openvino.MaxPool(x, **HALVE | change)


@pytest.mark.parametrize(("kernel", "error"), [(None, TypeError), (2, TypeError), ([], ValueError)])
def test_bad_kernel_of_an_unknown_rank(kernel, error):
    x = ops.parameter(openvino.PartialShape.dynamic(), np.float32)
    with pytest.raises(error, match="kernel"):
        fastpool.openvino.MaxPool(x, **HALVE | {"kernel": kernel})


@pytest.mark.parametrize(
    ("shape", "name", "error", "match"),
    [
        ([1, 8], "f32", ValueError, "rank"),
        ([1, 1, 8, 8, 8, 8], "f32", ValueError, "rank"),
        ([1, 2, 8, 8], "i4", TypeError, "i4"),
        ([1, 2, 8, 8], "f8e4m3", TypeError, "f8e4m3"),
        ([1, 2, "..1", 8], "f32", ValueError, "exceeds"),
    ],
)
def test_bad_inputs(shape, name, error, match):
    x = ops.parameter(openvino.PartialShape(shape), getattr(openvino.Type, name))
    with pytest.raises(error, match=match):
        fastpool.openvino.MaxPool(x, **HALVE)
