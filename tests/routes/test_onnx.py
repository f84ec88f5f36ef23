"""fastpool.onnx follows ONNX's attributes, defaults and rules, and its own switches work."""

import subprocess
import sys

import numpy as np
import pytest

import fastpool
import fastpool.onnx
from cases import assert_same

X = np.random.default_rng(0).standard_normal((2, 3, 7, 6)).astype(np.float32)


def test_never_imports_onnx():
    code = "import sys, fastpool.onnx; sys.exit('onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -------------------------------------------------------------------------------- MaxPool


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [3, 2]},
        {"kernel_shape": (3, 2), "strides": np.array([2, 1])},
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 2, 1]},
        {"kernel_shape": [2, 2], "dilations": [2, 3], "storage_order": 1},
        {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
        {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"},
        {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "VALID", "ceil_mode": 1},
        {"kernel_shape": [2, 2], "strides": [3, 3], "ceil_mode": 1, "ceil_rule": "keep"},
        {"kernel_shape": [2, 2], "nan": "ignore", "num_threads": 1},
    ],
)
def test_is_the_native_call(attributes, n_outputs):
    native = dict(attributes)
    kernel_shape = native.pop("kernel_shape")
    got = fastpool.onnx.max_pool(X, **attributes, n_outputs=n_outputs)
    expected = fastpool.max_pool(X, kernel_shape, **native, return_indices=n_outputs == 2)
    assert isinstance(got, tuple) == (n_outputs == 2)
    for output, same in zip(
        got if n_outputs == 2 else (got,),
        expected if n_outputs == 2 else (expected,),
        strict=True,
    ):
        assert_same(output, same)


def test_none_is_an_absent_attribute():
    absent = {"strides": None, "pads": None, "dilations": None, "auto_pad": None, "ceil_mode": None}
    absent |= {"storage_order": None, "activation": None, "activation_params": None}
    y, z = fastpool.onnx.max_pool(X, kernel_shape=[2, 2], n_outputs=2, **absent)
    expected, expected_z = fastpool.onnx.max_pool(X, kernel_shape=[2, 2], n_outputs=2)
    assert_same(y, expected)
    assert_same(z, expected_z)


def test_text_attributes_may_be_bytes():
    """onnx.helper.get_attribute_value gives text as bytes."""
    expected = fastpool.onnx.max_pool(X, kernel_shape=[3, 3], auto_pad="SAME_LOWER")
    assert_same(fastpool.onnx.max_pool(X, kernel_shape=[3, 3], auto_pad=b"SAME_LOWER"), expected)
    expected = fastpool.onnx.max_pool(X, kernel_shape=[3, 3], activation="Relu")
    assert_same(fastpool.onnx.max_pool(X, kernel_shape=[3, 3], activation=b"Relu"), expected)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_any_number_of_spatial_axes(n):
    x = np.arange(2 * 3 * 4**n).reshape(2, 3, *(4,) * n)
    y, z = fastpool.onnx.max_pool(x, kernel_shape=[2] * n, n_outputs=2)
    corner = x[(slice(None), slice(None), *(slice(1, None),) * n)]
    assert_same(y, corner)
    assert_same(z, corner)


def test_layout_nhwc():
    """The domain com.ms.internal.nhwc: permuted outputs, and either reading of the values."""
    attributes = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 1, 0, 0]}
    y, z = fastpool.onnx.max_pool(X, **attributes, n_outputs=2)
    last = np.ascontiguousarray(np.moveaxis(X, 1, -1))
    y_last, z_last = fastpool.onnx.max_pool(last, **attributes, n_outputs=2, layout="NHWC")
    assert_same(y_last, np.moveaxis(y, 1, -1))
    assert_same(z_last, np.moveaxis(z, 1, -1))
    assert_same(X.ravel()[z_last], y_last)

    y_last, z_last = fastpool.onnx.max_pool(
        last, **attributes, n_outputs=2, layout="NHWC", index_layout="NHWC"
    )
    assert_same(y_last, np.moveaxis(y, 1, -1))
    assert_same(last.ravel()[z_last], y_last)


@pytest.mark.parametrize("layout", ["CHW", "NHW", "HW", "HWC", "W", ""])
def test_layout_has_batch_and_channels(layout):
    with pytest.raises(ValueError, match="layout"):
        fastpool.onnx.max_pool(X, kernel_shape=[2, 2], layout=layout)
    with pytest.raises(ValueError, match="layout"):
        fastpool.onnx.max_unpool(X, np.zeros(X.shape, int), kernel_shape=[2, 2], layout=layout)


def test_pads_with_auto_pad():
    """The standard forbids the two together; onnxruntime ignores the pads."""
    attributes = {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}
    expected = fastpool.onnx.max_pool(X, **attributes)
    assert_same(fastpool.onnx.max_pool(X, **attributes, pads=[0, 0, 0, 0]), expected)
    with pytest.raises(ValueError, match="pads"):
        fastpool.onnx.max_pool(X, **attributes, pads=[0, 0, 0, 1])
    got = fastpool.onnx.max_pool(X, **attributes, pads=[0, 0, 0, 1], pads_with_auto_pad="ignore")
    assert_same(got, expected)
    with pytest.raises(ValueError, match="pads_with_auto_pad.*'warn'"):
        fastpool.onnx.max_pool(X, **attributes, pads_with_auto_pad="warn")


@pytest.mark.parametrize("auto_pad", [None, "", "NOTSET"])
def test_ignoring_pads_needs_an_auto_pad(auto_pad):
    attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "pads_with_auto_pad": "ignore"}
    got = fastpool.onnx.max_pool(X, **attributes, auto_pad=auto_pad)
    assert got.shape == X.shape


def test_last_ceil_window():
    """Clipped as opset 22 and every onnxruntime do; MaxPool-11's own text keeps it."""
    x = np.array([[[1.0, 2.0, 3.0]]])
    attributes = {"kernel_shape": [1], "strides": [2], "pads": [0, 1], "ceil_mode": 1}
    assert fastpool.onnx.max_pool(x, **attributes).tolist() == [[[1.0, 3.0]]]
    x = np.array([[[1.0, 2.0]]])
    attributes = {"kernel_shape": [1], "strides": [2], "ceil_mode": 1}
    assert fastpool.onnx.max_pool(x, **attributes).tolist() == [[[1.0]]]
    kept, indices = fastpool.onnx.max_pool(x, **attributes, ceil_rule="keep", n_outputs=2)
    assert kept.tolist() == [[[1.0, -np.inf]]]
    assert indices.tolist() == [[[0, -1]]]


def test_activation_changes_values_only():
    x = np.array([[[-3.0, -2.0, 5.0, 9.0]]], dtype=np.float32)
    attributes = {"kernel_shape": [2], "activation": "Clip", "activation_params": [-1.0, 6.0]}
    y, z = fastpool.onnx.max_pool(x, **attributes, n_outputs=2)
    assert y.tolist() == [[[-1.0, 5.0, 6.0]]]
    assert z.tolist() == [[[1, 2, 3]]]


def test_outputs_are_the_given_arrays():
    y, z = np.empty((2, 3, 6, 5), np.float32), np.empty((2, 3, 6, 5), np.int64)
    got = fastpool.onnx.max_pool(X, kernel_shape=[2, 2], n_outputs=2, out=y, out_indices=z)
    assert got[0] is y and got[1] is z
    assert_same(X.ravel()[z], y)


@pytest.mark.parametrize("name", ["kernel_shape", "strides", "dilations", "pads"])
@pytest.mark.parametrize(
    "value, error",
    [
        (2, TypeError),
        (np.int64(2), TypeError),
        (np.array(2), TypeError),
        ("22", TypeError),
        (b"22", TypeError),
        ([2.0, 2.0, 2.0, 2.0], TypeError),
        ([True, True, True, True], TypeError),
        (["2", "2", "2", "2"], TypeError),
        ([None, None, None, None], TypeError),
        ([], ValueError),
        ([1], ValueError),
        ([1, 1, 1], ValueError),
        ([1, 1, 1, 1, 1], ValueError),
        ([-1, -1, -1, -1], ValueError),
    ],
)
def test_list_attributes(name, value, error):
    """Exactly one integer per spatial axis (two for pads), nothing broadcast."""
    if isinstance(value, list) and len(value) == 4 and name != "pads":
        value = value[:2]
    attributes = {"kernel_shape": [2, 2], name: value}
    with pytest.raises(error, match=name):
        fastpool.onnx.max_pool(X, **attributes)
    if name != "dilations":
        with pytest.raises(error, match=name):
            fastpool.onnx.max_unpool(X, np.zeros(X.shape, int), **attributes)


@pytest.mark.parametrize(
    "attributes, error, match",
    [
        ({"kernel_shape": None}, TypeError, "kernel_shape"),
        ({"kernel_shape": [2, 2], "pads": [1, 1]}, ValueError, "pads"),
        ({"kernel_shape": [0, 2]}, ValueError, "kernel_shape"),
        ({"kernel_shape": [2, 2], "strides": [0, 1]}, ValueError, "strides"),
        ({"kernel_shape": [2, 2], "dilations": [1, 0]}, ValueError, "dilations"),
        ({"kernel_shape": [8, 2]}, ValueError, "kernel_shape"),
        ({"kernel_shape": [2, 2], "auto_pad": "same_upper"}, ValueError, "auto_pad"),
        ({"kernel_shape": [2, 2], "auto_pad": b"\xff"}, ValueError, "auto_pad"),
        ({"kernel_shape": [2, 2], "auto_pad": 3}, TypeError, "auto_pad"),
        ({"kernel_shape": [2, 2], "ceil_mode": 2}, ValueError, "ceil_mode"),
        ({"kernel_shape": [2, 2], "ceil_mode": 1.0}, TypeError, "ceil_mode"),
        ({"kernel_shape": [2, 2], "storage_order": 2}, ValueError, "storage_order"),
        ({"kernel_shape": [2, 2], "n_outputs": 0}, ValueError, "n_outputs"),
        ({"kernel_shape": [2, 2], "n_outputs": 3}, ValueError, "n_outputs"),
        ({"kernel_shape": [2, 2], "n_outputs": "2"}, TypeError, "n_outputs"),
        ({"kernel_shape": [2, 2], "n_outputs": 2.0}, TypeError, "n_outputs"),
        ({"kernel_shape": [2, 2], "activation": "Softmax"}, ValueError, "activation"),
        ({"kernel_shape": [2, 2], "activation": "Clip"}, ValueError, "activation_params"),
        ({"kernel_shape": [2, 2], "ceil_rule": "drop"}, ValueError, "ceil_rule"),
        ({"kernel_shape": [2, 2], "nan": "drop"}, ValueError, "nan"),
        ({"kernel_shape": [2, 2], "layout": 3}, TypeError, "layout"),
        ({"kernel_shape": [2, 2], "count_include_pad": 1}, TypeError, "count_include_pad"),
        ({}, TypeError, "kernel_shape"),
    ],
)
def test_bad_attributes(attributes, error, match):
    with pytest.raises(error, match=match):
        fastpool.onnx.max_pool(X, **attributes)


@pytest.mark.parametrize("shape", [(), (5,), (5, 5)])
def test_rank(shape):
    x = np.zeros(shape, np.float32)
    with pytest.raises(ValueError, match="at least one spatial axis"):
        fastpool.onnx.max_pool(x, kernel_shape=[1] * max(len(shape) - 2, 0))
    with pytest.raises(ValueError, match="at least one spatial axis"):
        fastpool.onnx.max_unpool(x, np.zeros(shape, int), kernel_shape=[])


# ------------------------------------------------------------------------------ MaxUnpool

POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}


def test_unpool_restores_the_maxima():
    x = X[:, :, :6]
    y, z = fastpool.onnx.max_pool(x, **POOL, n_outputs=2)
    back = fastpool.onnx.max_unpool(y, z, **POOL)
    assert back.shape == x.shape
    assert_same(back.ravel()[z], y)
    assert np.count_nonzero(back) == y.size


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_unpool_index_space(layout):
    """A 7x6 input: inferred is 6x6, and only `index_space="output"` finds the places again."""
    x = np.ascontiguousarray(np.moveaxis(X, 1, -1)) if layout == "NHWC" else X
    y, z = fastpool.onnx.max_pool(x, **POOL, n_outputs=2, layout=layout)
    back = fastpool.onnx.max_unpool(y, z, x.shape, **POOL, layout=layout, index_space="output")
    assert back.shape == x.shape
    assert_same(np.where(back == 0, x, back), x)
    assert np.count_nonzero(back) == y.size

    # Indices of the 6x6 input count in the inferred block, which begins at the result's origin.
    rows = slice(6)
    x = x[:, rows] if layout == "NHWC" else x[:, :, rows]
    y, z = fastpool.onnx.max_pool(x, **POOL, n_outputs=2, layout=layout)
    back = fastpool.onnx.max_unpool(y, z, **POOL, layout=layout)
    larger = (2, 7, 8, 3) if layout == "NHWC" else (2, 3, 7, 8)
    got = fastpool.onnx.max_unpool(y, z, larger, **POOL, layout=layout)
    assert_same(got[tuple(slice(size) for size in back.shape)], back)
    assert np.count_nonzero(got) == np.count_nonzero(back) == y.size


def test_unpool_index_layout():
    last = np.ascontiguousarray(np.moveaxis(X[:, :, :6], 1, -1))
    y, z = fastpool.onnx.max_pool(last, **POOL, n_outputs=2, layout="NHWC", index_layout="NHWC")
    back = fastpool.onnx.max_unpool(y, z, **POOL, layout="NHWC", index_layout="NHWC")
    assert_same(back.ravel()[z], y)
    assert np.count_nonzero(back) == y.size


def test_unpool_pads_and_default_strides():
    x = np.ones((1, 1, 3), np.float32)
    z = np.arange(3).reshape(1, 1, 3)
    assert fastpool.onnx.max_unpool(x, z, kernel_shape=[3]).tolist() == [[[1, 1, 1, 0, 0]]]
    got = fastpool.onnx.max_unpool(x, z, kernel_shape=[3], pads=[1, 0])
    assert got.tolist() == [[[1, 1, 1, 0]]]


def test_unpool_activation():
    x = np.array([[[-1.0, 5.0]]], np.float32)
    z = np.array([[[1, 2]]])
    attributes = {"kernel_shape": [2], "strides": [2]}
    got = fastpool.onnx.max_unpool(x, z, **attributes, activation="Relu")
    assert got.tolist() == [[[0.0, 0.0, 5.0, 0.0]]]
    out = np.full((1, 1, 4), 7.0, np.float32)
    got = fastpool.onnx.max_unpool(
        x, z, **attributes, activation=b"Clip", activation_params=[1.0, 4.0], out=out
    )
    assert got is out
    assert got.tolist() == [[[1.0, 1.0, 4.0, 1.0]]]


@pytest.mark.parametrize(
    "activation, params, dtype, error",
    [
        ("Softmax", (), np.float32, ValueError),
        ("Clip", (1.0,), np.float32, ValueError),
        ("Tanh", (1.0,), np.float32, ValueError),
        ("Tanh", (), np.int32, TypeError),
        (3, (), np.float32, TypeError),
    ],
)
def test_unpool_bad_activation_writes_nothing(activation, params, dtype, error):
    out = np.full((1, 1, 4), 7, dtype)
    with pytest.raises(error, match="activation"):
        fastpool.onnx.max_unpool(
            np.ones((1, 1, 2), dtype),
            np.array([[[1, 2]]]),
            kernel_shape=[2],
            strides=[2],
            activation=activation,
            activation_params=params,
            out=out,
        )
    assert out.tolist() == [[[7, 7, 7, 7]]]


@pytest.mark.parametrize(
    "change, match",
    [
        ({"kernel_shape": None}, "kernel_shape"),
        ({"pads": [1, 1]}, "pads"),
        ({"pads": [9, 9, 9, 9]}, "pads|kernel_shape|inferred"),
        ({"output_shape": (2, 3, 6)}, "output_shape"),
        ({"output_shape": (2, 4, 6, 6)}, "output_shape"),
        ({"output_shape": (1, 3, 6, 6)}, "output_shape"),
        ({"output_shape": (2, 3, 5, 6)}, "output_shape"),
        ({"output_shape": (2, 3, 6.0, 6)}, "output_shape"),
        ({"index_space": "input"}, "index_space"),
        ({"indices": np.zeros((2, 3, 3, 2), int)}, "indices"),
        ({"indices": np.zeros((2, 3, 3, 3))}, "indices"),
        ({"indices": np.full((2, 3, 3, 3), -1)}, "indices.*-1"),
        ({"indices": np.full((2, 3, 3, 3), 216)}, "indices.*216"),
    ],
)
def test_unpool_bad_arguments(change, match):
    arguments = {"x": X[:, :, :3, :3], "indices": np.zeros((2, 3, 3, 3), int)} | POOL | change
    with pytest.raises((TypeError, ValueError), match=match):
        fastpool.onnx.max_unpool(**arguments)
