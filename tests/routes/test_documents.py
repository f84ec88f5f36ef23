"""Every example of the five operator documents gives the numbers that the document prints.

If a document is wrong, the test states an erratum: the printed number, the right one, and why. The
ONNX pages belong to the domain com.ms.internal.nhwc, but their text and examples are written in
N x C x H x W. So each of their examples runs twice: as written, and transposed with layout="NHWC".
"""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import fastpool.onnx
import fastpool.openvino
from cases import assert_same

LAYOUTS = ("NCHW", "NHWC")


def to_layout(array, layout):
    """`array`, written channels first, as a contiguous array of `layout`."""
    return np.ascontiguousarray(np.moveaxis(array, 1, -1)) if layout == "NHWC" else array


# ------------------------------------------------------ com.ms.internal.nhwc, MaxPool - 11


class OnnxExample(NamedTuple):
    attributes: dict
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray | None = None


SQUARE_5 = np.arange(1, 26).reshape(1, 1, 5, 5)
SQUARE_4 = np.arange(1, 17).reshape(1, 1, 4, 4)
PADDED_Y = np.array(
    [
        [
            [
                [13, 14, 15, 15, 15],
                [18, 19, 20, 20, 20],
                [23, 24, 25, 25, 25],
                [23, 24, 25, 25, 25],
                [23, 24, 25, 25, 25],
            ]
        ]
    ]
)
PADDED_Z = np.array(
    [
        [
            [
                [12, 13, 14, 14, 14],
                [17, 18, 19, 19, 19],
                [22, 23, 24, 24, 24],
                [22, 23, 24, 24, 24],
                [22, 23, 24, 24, 24],
            ]
        ]
    ]
)

MAX_POOL_11 = {
    # The operator has 8-bit types since version 12 only: the example contradicts the page's list.
    "_maxpool_2d_uint8": OnnxExample(
        {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2]},
        SQUARE_5.astype(np.uint8),
        PADDED_Y.astype(np.uint8),
    ),
    "_maxpool_2d_precomputed_pads": OnnxExample(
        {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2]},
        SQUARE_5.astype(np.float32),
        PADDED_Y.astype(np.float32),
    ),
    "_maxpool_with_argmax_2d_precomputed_pads": OnnxExample(
        {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2]},
        SQUARE_5.astype(np.float32),
        PADDED_Y.astype(np.float32),
        PADDED_Z.astype(np.int64),
    ),
    "_maxpool_2d_precomputed_strides": OnnxExample(
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        SQUARE_5.astype(np.float32),
        np.array([[[[7, 9], [17, 19]]]]).astype(np.float32),
    ),
    "_maxpool_with_argmax_2d_precomputed_strides": OnnxExample(
        {"kernel_shape": [2, 2], "strides": [2, 2], "storage_order": 1},
        SQUARE_5.astype(np.float32),
        np.array([[[[7, 9], [17, 19]]]]).astype(np.float32),
        np.array([[[[6, 16], [8, 18]]]]).astype(np.int64),
    ),
    "_maxpool_2d_precomputed_same_upper": OnnxExample(
        {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
        SQUARE_5.astype(np.float32),
        np.array([[[[7, 9, 10], [17, 19, 20], [22, 24, 25]]]]).astype(np.float32),
    ),
    # ceil_mode is an integer attribute; the page writes a bool.
    "_maxpool_2d_ceil": OnnxExample(
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": True},
        SQUARE_4.astype(np.float32),
        np.array([[[[11, 12], [15, 16]]]]).astype(np.float32),
    ),
    # The page has no expect() line for this one; the numbers stand as given.
    "_maxpool_2d_dilations": OnnxExample(
        {"kernel_shape": [2, 2], "strides": [1, 1], "dilations": [2, 2]},
        SQUARE_4.astype(np.float32),
        np.array([[[[11, 12], [15, 16]]]]).astype(np.float32),
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", MAX_POOL_11)
def test_onnx_max_pool_11(name, layout):
    example = MAX_POOL_11[name]
    outputs = fastpool.onnx.max_pool(
        to_layout(example.x, layout),
        **example.attributes,
        n_outputs=1 if example.z is None else 2,
        layout=layout,
    )
    if example.z is None:
        assert_same(outputs, to_layout(example.y, layout))
    else:
        assert_same(outputs[0], to_layout(example.y, layout))
        # Channels last is an arrangement of memory: the tensor is permuted, its values still count
        # in N x C x H x W.
        assert_same(outputs[1], to_layout(example.z, layout))


def test_onnx_max_pool_11_offsets_of_the_channels_last_array():
    """With one channel the offsets into the channels-last array are the logical ones."""
    example = MAX_POOL_11["_maxpool_with_argmax_2d_precomputed_pads"]
    y, z = fastpool.onnx.max_pool(
        to_layout(example.x, "NHWC"),
        **example.attributes,
        n_outputs=2,
        layout="NHWC",
        index_layout="NHWC",
    )
    assert_same(y, to_layout(example.y, "NHWC"))
    assert_same(z, to_layout(example.z, "NHWC"))


class RandomExample(NamedTuple):
    attributes: dict
    input_shape: tuple
    output_shape: tuple
    pad_width: tuple = ()  # (begin, end) per spatial axis, as the example resolves it


MAX_POOL_11_RANDOM = {
    "_maxpool_1d_default": RandomExample({"kernel_shape": [2]}, (1, 3, 32), (1, 3, 31)),
    "_maxpool_2d_default": RandomExample({"kernel_shape": [2, 2]}, (1, 3, 32, 32), (1, 3, 31, 31)),
    "_maxpool_3d_default": RandomExample(
        {"kernel_shape": [2, 2, 2]}, (1, 3, 32, 32, 32), (1, 3, 31, 31, 31)
    ),
    "_maxpool_2d_same_upper": RandomExample(
        {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"},
        (1, 3, 32, 32),
        (1, 3, 32, 32),
        ((0, 1), (0, 1)),
    ),
    "_maxpool_2d_same_lower": RandomExample(
        {"kernel_shape": [2, 2], "auto_pad": "SAME_LOWER"},
        (1, 3, 32, 32),
        (1, 3, 32, 32),
        ((1, 0), (1, 0)),
    ),
    "_maxpool_2d_pads": RandomExample(
        {"kernel_shape": [3, 3], "pads": [2, 2, 2, 2]},
        (1, 3, 28, 28),
        (1, 3, 30, 30),
        ((2, 2), (2, 2)),
    ),
    "_maxpool_2d_strides": RandomExample(
        {"kernel_shape": [5, 5], "strides": [3, 3]}, (1, 3, 32, 32), (1, 3, 10, 10)
    ),
}


def windows_of(x, example):
    """Every window of a random example, its elements last, padding as `fill` would be: a view."""
    spatial = x.ndim - 2
    width = ((0, 0), (0, 0)) + (example.pad_width or ((0, 0),) * spatial)
    fill = -1 if x.dtype.kind == "i" else -np.inf
    padded = np.pad(x, width, constant_values=fill)
    windows = sliding_window_view(
        padded, example.attributes["kernel_shape"], axis=tuple(range(2, x.ndim))
    )
    strides = example.attributes.get("strides", [1] * spatial)
    windows = windows[(slice(None), slice(None), *(slice(None, None, s) for s in strides))]
    return windows.reshape(*windows.shape[: x.ndim], -1)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", MAX_POOL_11_RANDOM)
def test_onnx_max_pool_11_random_input(name, layout):
    example = MAX_POOL_11_RANDOM[name]
    x = np.random.default_rng(0).standard_normal(example.input_shape).astype(np.float32)
    values = windows_of(x, example)
    offsets = windows_of(np.arange(x.size).reshape(x.shape), example)
    expected = values.max(axis=-1)
    first = values.argmax(axis=-1, keepdims=True)
    expected_indices = np.take_along_axis(offsets, first, axis=-1)[..., 0].astype(np.int64)
    assert expected.shape == example.output_shape

    y = fastpool.onnx.max_pool(to_layout(x, layout), **example.attributes, layout=layout)
    assert_same(y, to_layout(expected, layout))
    y, z = fastpool.onnx.max_pool(
        to_layout(x, layout), **example.attributes, n_outputs=2, layout=layout
    )
    assert_same(y, to_layout(expected, layout))
    assert_same(z, to_layout(expected_indices, layout))


# ---------------------------------------------------- com.ms.internal.nhwc, MaxUnpool - 9


@pytest.mark.parametrize("layout", LAYOUTS)
def test_onnx_max_unpool_9_without_output_shape(layout):
    x = np.array([[[[1, 2], [3, 4]]]], dtype=np.float32)
    indices = np.array([[[[5, 7], [13, 15]]]], dtype=np.int64)
    expected = np.array(
        [[[[0, 0, 0, 0], [0, 1, 0, 2], [0, 0, 0, 0], [0, 3, 0, 4]]]], dtype=np.float32
    )
    y = fastpool.onnx.max_unpool(
        to_layout(x, layout),
        to_layout(indices, layout),
        kernel_shape=[2, 2],
        strides=[2, 2],
        layout=layout,
    )
    assert_same(y, to_layout(expected, layout))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_onnx_max_unpool_9_with_output_shape(layout):
    x = np.array([[[[5, 6], [7, 8]]]], dtype=np.float32)
    indices = np.array([[[[5, 7], [13, 15]]]], dtype=np.int64)
    output_shape = np.array((1, 1, 5, 5), dtype=np.int64)
    expected = np.array(
        [
            [
                [
                    [0, 0, 0, 0, 0],
                    [0, 5, 0, 6, 0],
                    [0, 0, 0, 0, 0],
                    [0, 7, 0, 8, 0],
                    [0, 0, 0, 0, 0],
                ]
            ]
        ],
        dtype=np.float32,
    )
    y = fastpool.onnx.max_unpool(
        to_layout(x, layout),
        to_layout(indices, layout),
        output_shape[[0, 2, 3, 1]] if layout == "NHWC" else output_shape,
        kernel_shape=[2, 2],
        strides=[2, 2],
        layout=layout,
    )
    assert_same(y, to_layout(expected, layout))


def test_onnx_max_unpool_9_with_output_shape_by_its_text():
    """The text of the same page counts indices in the result: a switch serves that reading."""
    y = fastpool.onnx.max_unpool(
        np.array([[[[5, 6], [7, 8]]]], dtype=np.float32),
        np.array([[[[5, 7], [13, 15]]]], dtype=np.int64),
        (1, 1, 5, 5),
        kernel_shape=[2, 2],
        strides=[2, 2],
        index_space="output",
    )
    assert np.flatnonzero(y).tolist() == [5, 7, 13, 15]
    assert y.ravel()[[5, 7, 13, 15]].tolist() == [5, 6, 7, 8]


# ----------------------------------------- OpenVINO: MaxPool-1, MaxPool-8 (English, Japanese)


class OpenvinoExample(NamedTuple):
    attributes: dict
    input: list
    output0: list
    output1: list
    # (position, value, index) where the document's own numbers are wrong.
    errata: tuple = ()


MIXED_3 = [[-1, 2, 3], [4, 5, -6], [-7, 8, 9]]
OPENVINO = {
    1: OpenvinoExample(
        {
            "strides": [1, 1],
            "pads_begin": [1, 1],
            "pads_end": [1, 1],
            "kernel": [2, 2],
            "rounding_type": "floor",
            "auto_pad": "explicit",
        },
        [[MIXED_3]],
        [[[[-1, 2, 3, 3], [4, 5, 5, -6], [4, 8, 9, 9], [-7, 8, 9, 9]]]],
        [[[[0, 1, 2, 2], [3, 4, 4, 5], [3, 7, 8, 8], [6, 7, 8, 8]]]],
        # The window of row 1, column 3 covers rows 0-1 of the last column: 3 (index 2) and -6
        # (index 5). Its maximum is 3, not -6.
        errata=(((0, 0, 1, 3), 3, 2),),
    ),
    2: OpenvinoExample(
        {"strides": [1], "kernel": [3], "rounding_type": "floor", "auto_pad": "valid"},
        [[[-1, 2, 3, 5, -7, 9, 1]]],
        [[[3, 5, 5, 9, 9]]],
        [[[2, 3, 3, 5, 5]]],
    ),
    3: OpenvinoExample(
        {"strides": [1, 1], "kernel": [2, 2], "rounding_type": "floor", "auto_pad": "same_lower"},
        [[MIXED_3]],
        [[[[-1, 2, 3], [4, 5, 5], [4, 8, 9]]]],
        [[[[0, 1, 2], [3, 4, 4], [3, 7, 8]]]],
    ),
    4: OpenvinoExample(
        {"strides": [1, 1], "kernel": [2, 2], "rounding_type": "floor", "auto_pad": "same_upper"},
        [[MIXED_3, [[2, -1, 5], [6, -7, 1], [8, 2, -3]]]],
        [[[[5, 5, 3], [8, 9, 9], [8, 9, 9]], [[6, 5, 5], [8, 2, 1], [8, 2, -3]]]],
        [[[[4, 4, 2], [7, 8, 8], [7, 8, 8]], [[12, 11, 11], [15, 16, 14], [15, 16, 17]]]],
    ),
    # auto_pad = valid with rounding_type = ceil: the formula above the examples of MaxPool-8 would
    # give 1x1, the example (and OpenVINO itself) honours the rounding.
    5: OpenvinoExample(
        {"strides": [2, 2], "kernel": [2, 2], "rounding_type": "ceil", "auto_pad": "valid"},
        [[MIXED_3]],
        [[[[5, 3], [8, 9]]]],
        [[[[4, 2], [7, 8]]]],
    ),
    6: OpenvinoExample(
        {
            "strides": [1, 1],
            "kernel": [2, 2],
            "dilations": [2, 2],
            "rounding_type": "floor",
            "auto_pad": "explicit",
            "pads_begin": [1, 1],
            "pads_end": [1, 1],
        },
        [[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]],
        [[[[5, 6, 5], [8, 9, 8], [5, 6, 5]]]],
        [[[[4, 5, 4], [7, 8, 7], [4, 5, 4]]]],
    ),
    7: OpenvinoExample(
        {
            "strides": [1, 1],
            "kernel": [2, 2],
            "dilations": [1, 1],
            "rounding_type": "floor",
            "auto_pad": "explicit",
            "pads_begin": [0, 0],
            "pads_end": [0, 0],
            "axis": 2,
        },
        [
            [
                [[1, 2, 3], [4, 5, 6], [7, 8, 9]],
                [[10, 11, 12], [13, 14, 15], [16, 17, 18]],
            ]
        ],
        [[[[5, 6], [8, 9]], [[14, 15], [17, 18]]]],
        [[[[4, 5], [7, 8]], [[4, 5], [7, 8]]]],
    ),
}

# The two MaxPool-8 documents print the same numbers; MaxPool-1 has the first five, without output1.
OPENVINO_EXAMPLES = [("MaxPool-1", number) for number in (1, 2, 3, 4, 5)]
OPENVINO_EXAMPLES += [("MaxPool-8 English", number) for number in OPENVINO]
OPENVINO_EXAMPLES += [("MaxPool-8 Japanese", number) for number in OPENVINO]


def corrected(example, dtype):
    """The outputs of an OpenVINO example with its errata applied."""
    values = np.array(example.output0, dtype=dtype)
    indices = np.array(example.output1, dtype=np.int64)
    for position, value, index in example.errata:
        values[position], indices[position] = value, index
    return values, indices


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("document, number", OPENVINO_EXAMPLES)
def test_openvino_example(document, number, dtype):
    example = OPENVINO[number]
    x = np.array(example.input, dtype=dtype)
    expected, expected_indices = corrected(example, dtype)
    if document == "MaxPool-1":
        assert_same(fastpool.openvino.max_pool(x, version=1, **example.attributes), expected)
        return
    for version in (8, 14):
        y, indices = fastpool.openvino.max_pool(x, version=version, **example.attributes)
        assert_same(y, expected)
        assert_same(indices, expected_indices)


def test_openvino_example_1_erratum():
    """All three documents print -6 (index 5) where the window holds 3 and -6."""
    example = OPENVINO[1]
    x = np.array(example.input)
    row, column = 1, 3
    window = x[0, 0, row - 1 : row + 1, column - 1 : column + 1]
    assert window.tolist() == [[3], [-6]]
    assert example.output0[0][0][row][column] == -6
    assert example.output1[0][0][row][column] == 5
    y, indices = fastpool.openvino.max_pool(x, **example.attributes)
    assert (y[0, 0, row, column], indices[0, 0, row, column]) == (3, 2)
    # Nothing else differs from the document.
    assert np.argwhere(y != np.array(example.output0)).tolist() == [[0, 0, row, column]]
    assert np.argwhere(indices != np.array(example.output1)).tolist() == [[0, 0, row, column]]


# The documents' layer examples, character for character except the indentation.
LAYER = """
<layer ... type="MaxPool" ... >
    <data auto_pad="{auto_pad}" kernel="2,2" pads_begin="1,1" pads_end="1,1" strides="2,2"/>
    <input>
        <port id="0">
            <dim>1</dim>
            <dim>3</dim>
            <dim>32</dim>
            <dim>32</dim>
        </port>
    </input>
    <output>
        {ports}
    </output>
</layer>
"""
PORT = """<port id="{id}">
            <dim>1</dim>
            <dim>3</dim>
            <dim>{size}</dim>
            <dim>{size}</dim>
        </port>"""
# auto_pad -> (extent printed in the documents, extent it has)
LAYER_EXTENTS = {
    # 32 is an erratum: "H_out = H" forgets the stride of 2. It is ceil(32 / 2) = 16.
    "same_upper": (32, 16),
    "explicit": (17, 17),
    "valid": (16, 16),
}
LAYER_DOCUMENTS = {"MaxPool-1": 1, "MaxPool-8 English": 2, "MaxPool-8 Japanese": 2}


@pytest.mark.parametrize("auto_pad", LAYER_EXTENTS)
@pytest.mark.parametrize("document", LAYER_DOCUMENTS)
def test_openvino_layer(document, auto_pad):
    declared, actual = LAYER_EXTENTS[auto_pad]
    n_outputs = LAYER_DOCUMENTS[document]
    ports = "\n        ".join(PORT.format(id=i + 1, size=declared) for i in range(n_outputs))
    layer = fastpool.openvino.read_layer(LAYER.format(auto_pad=auto_pad, ports=ports))
    assert layer.version == {1: 1, 2: 8}[n_outputs]
    assert layer.input_dims == ((1, 3, 32, 32),)
    assert layer.output_dims == ((1, 3, declared, declared),) * n_outputs

    x = np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype(np.float32)
    outputs = layer(x)
    expected = fastpool.openvino.max_pool(
        x,
        version=layer.version,
        auto_pad=auto_pad,
        kernel=[2, 2],
        pads_begin=[1, 1],
        pads_end=[1, 1],
        strides=[2, 2],
    )
    if n_outputs == 1:
        outputs, expected = (outputs,), (expected,)
    for output, same in zip(outputs, expected, strict=True):
        assert output.shape == (1, 3, actual, actual)
        assert_same(output, same)
    # A 2x2 window with stride 2: the pads decide where the windows start.
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    tiles = padded if auto_pad == "explicit" else x
    blocks = tiles.reshape(1, 3, actual, 2, actual, 2)
    assert_same(outputs[0], blocks.max(axis=(3, 5)))
