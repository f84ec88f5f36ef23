"""fastpool.onnx's averages and global poolings follow ONNX's attributes, defaults and rules."""

import numpy as np
import pytest

import fastpool
import fastpool.onnx
from cases import assert_same
from fastpool.onnx._global import reduce_max, reduce_mean

X = np.random.default_rng(0).standard_normal((2, 3, 5, 4)).astype(np.float32)
WHOLE = np.arange(-12, 12).reshape(2, 3, 4)

# ------------------------------------------------------------------------------- AveragePool


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [3, 2]},
        {"kernel_shape": (3, 2), "strides": np.array([2, 1])},
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 2, 1]},
        {"kernel_shape": [3, 3], "pads": [1, 0, 2, 1], "count_include_pad": 1},
        {"kernel_shape": [2, 2], "dilations": [2, 3]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
        {"kernel_shape": [2, 2], "auto_pad": "SAME_LOWER", "count_include_pad": 1},
        {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "VALID", "ceil_mode": 1},
        {"kernel_shape": [2, 2], "strides": [3, 3], "ceil_mode": 1, "ceil_rule": "keep"},
        {
            "kernel_shape": [3, 3],
            "strides": [2, 2],
            "pads": [1, 1, 0, 1],
            "ceil_mode": 1,
            "count_include_pad": 1,
            "beyond": "count",
        },
        {"kernel_shape": [2, 2], "nan": "ignore", "num_threads": 1, "numerics": "sequential"},
        {"kernel_shape": [2, 2], "activation": "Clip", "activation_params": [-0.1, 0.1]},
    ],
)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_is_the_native_call(attributes, layout):
    x = np.ascontiguousarray(np.moveaxis(X, 1, -1)) if layout == "NHWC" else X
    native = dict(attributes)
    kernel_shape = native.pop("kernel_shape")
    got = fastpool.onnx.average_pool(x, **attributes, layout=layout)
    assert_same(got, fastpool.avg_pool(x, kernel_shape, **native, layout=layout))


def test_none_is_an_absent_attribute():
    absent = {"strides": None, "pads": None, "dilations": None, "auto_pad": None, "ceil_mode": None}
    absent |= {"count_include_pad": None, "activation": None, "activation_params": None}
    got = fastpool.onnx.average_pool(X, kernel_shape=[2, 2], **absent)
    assert_same(got, fastpool.avg_pool(X, 2))


def test_text_attributes_may_be_bytes():
    """onnx.helper.get_attribute_value gives text as bytes."""
    attributes = {"kernel_shape": [3, 3], "auto_pad": b"SAME_LOWER", "activation": b"Relu"}
    expected = fastpool.avg_pool(X, 3, auto_pad="SAME_LOWER", activation="Relu")
    assert_same(fastpool.onnx.average_pool(X, **attributes), expected)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"pads": [1, 1]}, [1.0, 1.0, 1.0]),
        ({"pads": [1, 1], "count_include_pad": 1}, [2 / 3, 1.0, 0.5]),
        ({"pads": [1, 1], "count_include_pad": 1, "beyond": "count"}, [2 / 3, 1.0, 1 / 3]),
    ],
)
def test_divisors(attributes, expected):
    """The third window holds one element, one padding and one place beyond."""
    x = np.ones((1, 1, 4))
    window = {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}
    assert fastpool.onnx.average_pool(x, **window, **attributes).tolist() == [[expected]]


def test_last_ceil_window():
    x = np.array([[[1.0, 2.0]]])
    attributes = {"kernel_shape": [1], "strides": [2], "ceil_mode": 1}
    assert fastpool.onnx.average_pool(x, **attributes).tolist() == [[[1.0]]]
    kept = fastpool.onnx.average_pool(x, **attributes, ceil_rule="keep")
    assert kept.tolist() == [[[1.0, 0.0]]]


def test_numerics():
    """In pairs unless asked otherwise; each of the three gives another number."""
    x = np.array([[[1e8, 1.0, -1e8, 1.0, 2.0]]], np.float32)
    for pool, more in (
        (fastpool.onnx.average_pool, {"kernel_shape": [5]}),
        (fastpool.onnx.global_average_pool, {}),
        (reduce_mean, {"axes": [2]}),
    ):
        assert pool(x, **more).item() == np.float32(2 / 5)
        assert pool(x, **more, numerics="pairwise").item() == np.float32(2 / 5)
        assert pool(x, **more, numerics="exact").item() == np.float32(4 / 5)
        assert pool(x, **more, numerics="sequential").item() == np.float32(3 / 5)
        with pytest.raises(ValueError, match="numerics: expected one of"):
            pool(x, **more, numerics="fast")


def test_pads_with_auto_pad():
    attributes = {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "pads": [0, 0, 0, 1]}
    with pytest.raises(ValueError, match="pads"):
        fastpool.onnx.average_pool(X, **attributes)
    got = fastpool.onnx.average_pool(X, **attributes, pads_with_auto_pad="ignore")
    assert_same(got, fastpool.avg_pool(X, 3, auto_pad="SAME_UPPER"))


def test_outputs_are_the_given_arrays():
    y = np.empty((2, 3, 4, 3), np.float32)
    assert fastpool.onnx.average_pool(X, kernel_shape=[2, 2], out=y) is y
    assert_same(y, fastpool.avg_pool(X, 2))
    for pool in (fastpool.onnx.global_average_pool, fastpool.onnx.global_max_pool):
        y = np.empty((2, 3, 1, 1), np.float32)
        assert pool(X, out=y) is y
        assert_same(y, pool(X))


@pytest.mark.parametrize("name", ["kernel_shape", "strides", "dilations", "pads"])
@pytest.mark.parametrize(
    ("value", "error"),
    [
        (2, TypeError),
        ("22", TypeError),
        ([2.0, 2.0], TypeError),
        ([True, True], TypeError),
        ([], ValueError),
        ([1], ValueError),
        ([1, 1, 1], ValueError),
        ([-1, -1], ValueError),
    ],
)
def test_list_attributes(name, value, error):
    if name == "pads" and isinstance(value, list):
        value = value * 2 if len(value) == 2 else value
    with pytest.raises(error, match=name):
        fastpool.onnx.average_pool(X, **{"kernel_shape": [2, 2], name: value})


@pytest.mark.parametrize(
    ("attributes", "error", "match"),
    [
        ({"kernel_shape": None}, TypeError, "kernel_shape"),
        ({"kernel_shape": [0, 2]}, ValueError, "kernel_shape"),
        ({"kernel_shape": [8, 2]}, ValueError, "kernel_shape"),
        ({"auto_pad": "same_upper"}, ValueError, "auto_pad"),
        ({"auto_pad": 3}, TypeError, "auto_pad"),
        ({"ceil_mode": 2}, ValueError, "ceil_mode"),
        ({"count_include_pad": 2}, ValueError, "count_include_pad"),
        ({"count_include_pad": -1}, ValueError, "count_include_pad"),
        ({"count_include_pad": 1.0}, TypeError, "count_include_pad"),
        ({"beyond": "keep"}, ValueError, "beyond"),
        ({"nan": "drop"}, ValueError, "nan"),
        ({"ceil_rule": "drop"}, ValueError, "ceil_rule"),
        ({"activation": "Softmax"}, ValueError, "activation"),
        ({"activation": "Clip"}, ValueError, "activation_params"),
        ({"layout": "HW"}, ValueError, "layout"),
        ({"layout": 3}, TypeError, "layout"),
        ({"storage_order": 0}, TypeError, "storage_order"),
    ],
)
def test_bad_attributes(attributes, error, match):
    with pytest.raises(error, match=match):
        fastpool.onnx.average_pool(X, **({"kernel_shape": [2, 2]} | attributes))


@pytest.mark.parametrize("pool", [fastpool.onnx.average_pool, fastpool.onnx.global_average_pool])
@pytest.mark.parametrize("dtype", ["complex64", "S3", "object", "datetime64[s]"])
def test_types_that_have_no_mean(pool, dtype):
    more = {"kernel_shape": [1]} if pool is fastpool.onnx.average_pool else {}
    with pytest.raises(TypeError, match="^x: expected one of float16"):
        pool(np.zeros((1, 1, 2), dtype), **more)


# ------------------------------------------------------------------------------- all spatial axes

GLOBAL = [
    (fastpool.onnx.global_average_pool, fastpool.global_avg_pool, reduce_mean),
    (fastpool.onnx.global_max_pool, fastpool.global_max_pool, reduce_max),
]


@pytest.mark.parametrize(("pool", "native", "reduce"), GLOBAL)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_any_number_of_spatial_axes(pool, native, reduce, n):
    x = np.random.default_rng(n).standard_normal((2, 3, *range(2, 2 + n)))
    y, axes = native(x), [*range(2, 2 + n)]
    assert y.shape == (2, 3) + (1,) * n
    assert_same(pool(x), y)
    assert_same(reduce(x, axes), y)
    assert_same(reduce(x, np.array(axes)[::-1] - x.ndim, keepdims=0), y.reshape(2, 3))
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    assert_same(pool(last, layout="NHWC"), np.moveaxis(y, 1, -1))


@pytest.mark.parametrize(("pool", "native", "reduce"), GLOBAL)
def test_nan(pool, native, reduce):
    x = np.array([[[1.0, np.nan, 2.0]]])
    assert np.isnan(pool(x)).all() and np.isnan(reduce(x, [2])).all()
    assert_same(pool(x, nan="ignore"), native(x, nan="ignore"))
    assert_same(reduce(x, [2], nan="ignore"), native(x, nan="ignore"))


@pytest.mark.parametrize(("pool", "native", "reduce"), GLOBAL)
def test_what_is_not_pooled(pool, native, reduce):
    for shape in ((), (5,), (5, 5)):
        with pytest.raises(ValueError, match="at least one spatial axis"):
            pool(np.zeros(shape))
        with pytest.raises(ValueError, match="axes: expected an x with spatial axes"):
            reduce(np.zeros(shape), [])
    with pytest.raises(ValueError, match="layout"):
        pool(np.zeros((2, 2, 2)), layout="HWC")
    with pytest.raises(ValueError, match="at least one element along each spatial axis"):
        pool(np.zeros((1, 1, 2, 0)))
    assert pool(np.zeros((0, 3, 2, 2))).shape == (0, 3, 1, 1)


@pytest.mark.parametrize("reduce", [reduce_mean, reduce_max])
@pytest.mark.parametrize(
    ("axes", "error"),
    [
        (None, ValueError),
        ([], ValueError),
        ([1], ValueError),
        ([2], ValueError),
        ([3], ValueError),
        ([1, 2, 3], ValueError),
        ([2, 2, 3], ValueError),
        ([2, -2], ValueError),
        ([2, 4], ValueError),
        ([-9, 2], ValueError),
        ([2, 3.0], TypeError),
        (2, TypeError),
        (np.array(2), TypeError),
        (np.array([2.0, 3.0]), TypeError),
        ([2**70, 3], ValueError),
        ([2] * 1000, ValueError),
    ],
)
def test_axes_of_reductions(reduce, axes, error):
    with pytest.raises(error, match="axes"):
        reduce(X, axes)


def test_means_of_integers_go_toward_zero():
    """As in onnxruntime and in onnx.reference."""
    got = reduce_mean(WHOLE, [2], keepdims=0)
    assert_same(got, np.trunc(WHOLE.mean(axis=2)).astype(WHOLE.dtype))
    with pytest.raises(ValueError, match="keepdims"):
        reduce_mean(WHOLE, [2], keepdims=2)
