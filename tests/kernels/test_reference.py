"""The slow twin is right: it equals loops over single elements, and each rule worked by hand."""

import itertools
import math
import random

import numpy as np
import pytest

import cases
import limits
from fastpool import _reference
from fastpool._planning import arguments
from fastpool._plans import make_plan
from fastpool._running.activation import apply_activation

NAN, INF = math.nan, math.inf


def pool(x, kernel_shape, dtype=None, **attributes):
    """Values and indices as nested lists; rows and planes unless a layout is given."""
    x = np.array(x, dtype)
    attributes.setdefault("layout", "DHW"[-x.ndim :])
    y, indices = _reference.max_pool(x, kernel_shape, return_indices=True, **attributes)
    alone = _reference.max_pool(x, kernel_shape, **attributes)
    assert np.array_equal(y, alone, equal_nan=y.dtype.kind == "f")
    assert y.dtype == alone.dtype == x.dtype
    return y.tolist(), indices.tolist()


# ------------------------------------------------------------------------ element by element


def extents(size, kernel, stride, dilation, begin, end, rounding):
    extent = (kernel - 1) * dilation + 1
    padded = size + begin + end
    outputs = sum(1 for start in range(0, padded, stride) if start + extent <= padded)
    if rounding != "floor":
        if (outputs - 1) * stride + extent < padded:
            outputs += 1
        if rounding == "clip" and (outputs - 1) * stride >= size + begin:
            outputs -= 1
    return outputs


def by_elements(x, axes, rounding):
    """Pool a (batch, channels, ...) array: {output position: (value, position of the element)}."""
    found = {}
    outputs = [range(extents(*axis, rounding)) for axis in axes]
    taps = [range(axis[1]) for axis in axes]
    for output in itertools.product(*map(range, x.shape[:2]), *outputs):
        best = None
        for tap in itertools.product(*taps):
            place = output[:2]
            for o, t, (_, _, stride, dilation, begin, _) in zip(output[2:], tap, axes, strict=True):
                place += (o * stride + t * dilation - begin,)
            if all(0 <= p < size for p, size in zip(place, x.shape, strict=True)):
                value = x[place].item()
                if best is None or value > best[0]:
                    best = value, place
        found[output] = best
    return found


def number_of(place, shape, order):
    """The offset of an element when the axes of `shape` vary in `order`, the last one fastest."""
    offset = 0
    for axis in order:
        offset = offset * shape[axis] + place[axis]
    return offset


@pytest.mark.parametrize("seed", range(150))
def test_small_geometries_element_by_element(seed):
    rng = random.Random(seed)
    rank = rng.choice([1, 1, 2, 2, 3])
    rounding = rng.choice(["floor", "clip", "keep"])
    axes = []
    while len(axes) < rank:
        kernel, stride, dilation = rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 3)
        axis = rng.randint(1, 5), kernel, stride, dilation, rng.randint(0, 4), rng.randint(0, 4)
        missing = (kernel - 1) * dilation + 1 - axis[0] - axis[4] - axis[5]
        if missing <= 0 or rounding != "floor" and missing < stride:
            axes.append(axis)
    sizes, kernels, strides, dilations, begins, ends = zip(*axes, strict=True)
    storage_order = rng.randint(0, 1)
    index_axis = rng.randint(0, 2 if storage_order else rank + 1)
    x = np.array(
        [rng.randint(-3, 3) for _ in range(6 * math.prod(sizes))], rng.choice(["int8", "f4", "i8"])
    ).reshape(2, 3, *sizes)

    attributes = {
        "strides": strides,
        "pads": begins + ends,
        "dilations": dilations,
        "ceil_mode": rounding != "floor",
        "ceil_rule": "keep" if rounding == "keep" else "clip",
        "return_indices": True,
        "storage_order": storage_order,
        "index_axis": index_axis,
    }
    y, indices = _reference.max_pool(x, kernels, **attributes)
    found = by_elements(x, axes, rounding)
    assert y.size == len(found)
    spatial = range(2, 2 + rank)
    order = (0, 1, *(reversed(spatial) if storage_order else spatial))
    counted = math.prod(x.shape[index_axis:])
    for output, best in found.items():
        if best is None:
            low = np.iinfo(x.dtype).min if x.dtype.kind == "i" else -INF
            assert (y[output], indices[output]) == (low, -1)
        else:
            assert y[output] == best[0]
            assert indices[output] == number_of(best[1], x.shape, order) % counted

    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    same = _reference.max_pool(last, kernels, layout="NHWC", **attributes)
    assert np.array_equal(np.moveaxis(same[0], -1, 1), y)
    assert np.array_equal(np.moveaxis(same[1], -1, 1), indices)

    attributes |= {"storage_order": 0, "index_axis": 0}
    y, physical = _reference.max_pool(
        last, kernels, layout="NHWC", index_layout="NHWC", **attributes
    )
    for output, best in found.items():
        if best is not None:
            number = number_of(best[1], x.shape, (0, *spatial, 1))
            assert physical[(output[0], *output[2:], output[1])] == number


@pytest.mark.parametrize("seed", range(300))
def test_extents_agree_with_the_planner(seed):
    """Two independent computations, of numbers up to the limits."""
    rng = random.Random(seed)
    size = rng.randint(0, 6)
    kernel, dilation = (rng.randint(1, 1 << rng.randint(1, bits)) for bits in (15, 15))
    extent = (kernel - 1) * dilation + 1
    begin = rng.choice([0, 1, extent // 2, extent - 1, extent + 5])
    end = max(0, extent - size - begin + rng.randint(-9, 9))
    stride = rng.choice([1, 2, 3, extent, extent // 2 + 1, 2**31 - 1])
    auto_pad = rng.choice(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER"])
    if (size + begin + end - extent) // stride > 1000:
        stride = (size + begin + end - extent) // 7
    attributes = {
        "strides": stride,
        "dilations": dilation,
        "pads": (begin, end) if auto_pad == "NOTSET" else 0,
        "auto_pad": auto_pad,
        "ceil_mode": rng.random() < 0.5,
        "ceil_rule": rng.choice(["clip", "keep"]),
        "layout": "W",
    }
    try:
        shape = make_plan((size,), "int64", kernel, **attributes).output_shape
    except ValueError:
        with pytest.raises(ValueError, match="^kernel_shape"):
            _reference.max_pool(np.arange(size), kernel, **attributes)
    else:
        assert _reference.max_pool(np.arange(size), kernel, **attributes).shape == shape


# ------------------------------------------------------------------------------ rules, by hand


def test_windows_without_elements():
    """In the padding, between the taps of a dilation, past the end, and over an empty axis."""
    for dtype, low in (("f2", -INF), ("f8", -INF), ("i1", -128), ("u8", 0), ("?", False)):
        assert pool([1, 0], 2, dtype, pads=3)[0] == [low, low, 1, 1, 0, low, low]
        assert pool([1, 0], 2, dtype, pads=3)[1] == [-1, -1, 0, 0, 1, -1, -1]
        assert pool([1], 2, dtype, pads=1, dilations=2) == ([low], [-1])
        attributes = {"strides": 3, "pads": (0, 1), "ceil_mode": True, "ceil_rule": "keep"}
        assert pool([1, 1, 1, 1, 1], 2, dtype, **attributes) == ([1, 1, low], [0, 3, -1])
        assert pool([], 1, dtype, pads=1) == ([low, low], [-1, -1])
    for storage_order, axis in ((0, 0), (1, 0), (0, 3)):
        attributes = {"storage_order": storage_order, "index_axis": axis, "layout": "NCHW"}
        _, indices = pool(np.ones((2, 2, 1, 1)), 1, pads=1, **attributes)
        assert np.count_nonzero(np.array(indices) == -1) == 4 * 8


def test_a_window_larger_than_the_padded_input():
    """Rounding up makes one of it, as long as less than a stride is missing."""
    for ceil_rule in ("clip", "keep"):
        attributes = {"ceil_mode": True, "ceil_rule": ceil_rule}
        assert pool([3, 7], 4, strides=3, **attributes) == ([7], [1])
        assert pool([3, 7], 4, strides=3, auto_pad="VALID", **attributes) == ([7], [1])
        assert pool([3, 7], 6, strides=3, pads=(1, 1), **attributes) == ([7], [1])
        assert pool([[5]], 3, strides=4, **attributes) == ([[5]], [[0]])
        assert pool([5, 9], 2, strides=3, dilations=2, **attributes) == ([5], [0])
        assert pool([5], 2, strides=5, dilations=3, pads=(1, 0), **attributes)[1] == [-1]
        for strides, kernel in ((2, 4), (1, 3)):
            with pytest.raises(ValueError, match="^kernel_shape"):
                pool([3, 7], kernel, strides=strides, **attributes)
    with pytest.raises(ValueError, match="^kernel_shape"):
        pool([3, 7], 3, strides=2)
    low = np.iinfo(np.int64).min
    attributes = {"strides": 9, "ceil_mode": True}
    assert pool([], 3, "i8", pads=(1, 0), **attributes) == ([low], [-1])
    assert pool([], 3, "i8", **attributes, ceil_rule="keep") == ([low], [-1])
    with pytest.raises(ValueError, match="^kernel_shape"):
        pool([], 3, "i8", **attributes)


def test_the_last_window_of_ceil():
    # ONNX's _maxpool_2d_ceil_output_size_reduce_by_one: the third window starts in the padding
    x = np.arange(1, 5).reshape(2, 2)
    attributes = {"strides": 3, "pads": (0, 0, 2, 2), "ceil_mode": True}
    assert pool(x, 1, **attributes)[0] == [[1]]
    attributes["ceil_rule"] = "keep"
    low = np.iinfo(np.int64).min
    assert pool(x, 1, **attributes)[0] == [[1, low], [low, low]]


def test_nan_propagates_or_is_ignored():
    for dtype in ("f2", "f4", "f8"):
        row = [1, NAN, 3, NAN, NAN, NAN, -INF, NAN]
        y, indices = pool(row, 3, dtype)
        assert all(map(math.isnan, y)) and indices == [1, 1, 3, 3, 4, 5]
        y, indices = pool(row, 3, dtype, nan="ignore")
        assert y[:3] == [3, 3, 3] and math.isnan(y[3]) and y[4:] == [-INF, -INF]
        assert indices == [2, 2, 2, 3, 6, 6]
        assert pool([NAN, -INF, -INF], 3, dtype, nan="ignore") == ([-INF], [1])
    assert pool([1, 2], 2, "i4", nan="ignore") == ([2], [1])


def test_equal_values_the_first_wins():
    assert pool([[5, 5], [5, 5]], 2)[1] == [[0]]
    assert pool([[1, 5], [5, 1]], 2)[1] == [[1]]
    # also when indices count column by column: row 0 comes first, although its number is larger
    assert pool([[1, 5], [5, 1]], 2, storage_order=1)[1] == [[2]]
    for zeros in ([0.0, -0.0], [-0.0, 0.0]):
        assert pool(zeros, 2) == ([0.0], [0])


def test_the_lowest_value_beats_padding():
    for dtype, low in (("f2", -INF), ("f4", -INF), ("i1", -128), ("u1", 0), ("i8", -(2**63))):
        assert pool([low, low], 3, dtype, pads=2) == ([low] * 4, [0, 0, 0, 1])
    assert pool([False, False], 2, "?", pads=1) == ([False] * 3, [0, 0, 1])


def test_integers_are_exact():
    for dtype, base in (("i8", 2**62), ("u8", 2**63), ("i4", 2**24)):
        assert pool([base, base + 1, base - 1], 2, dtype) == ([base + 1] * 2, [1, 1])


def test_same_counts_the_dilation():
    # extent 5 over 6 elements, stride 2: 3 outputs need 3 elements of padding
    row = [9, 1, 2, 3, 4, 5]
    attributes = {"strides": 2, "dilations": 2}
    assert pool(row, 3, auto_pad="SAME_UPPER", **attributes) == ([3, 5, 5], [3, 5, 5])
    assert pool(row, 3, auto_pad="SAME_LOWER", **attributes) == ([9, 9, 4], [0, 0, 4])
    # a stride longer than the window neither pads nor crops
    assert pool(row, 1, strides=4, auto_pad="SAME_UPPER") == ([9, 4], [0, 4])


def test_what_indices_count():
    x = np.arange(2 * 2 * 2 * 3).reshape(2, 2, 2, 3)  # the maximum of a plane is its last element
    window = {"kernel_shape": (2, 3), "layout": "NCHW"}
    assert np.ravel(pool(x, **window)[1]).tolist() == [5, 11, 17, 23]
    assert np.ravel(pool(x, index_axis=1, **window)[1]).tolist() == [5, 11, 5, 11]
    assert np.ravel(pool(x, index_axis=-2, **window)[1]).tolist() == [5, 5, 5, 5]
    assert np.ravel(pool(x, index_axis=3, **window)[1]).tolist() == [2, 2, 2, 2]
    x = x[..., ::-1]  # now it is the first of the last row: (1, 0)
    assert np.ravel(pool(x, **window)[1]).tolist() == [3, 9, 15, 21]
    assert np.ravel(pool(x, storage_order=1, **window)[1]).tolist() == [1, 7, 13, 19]
    assert np.ravel(pool(x, storage_order=1, index_axis=2, **window)[1]).tolist() == [1] * 4

    x = np.moveaxis(x, 1, -1)
    window["layout"] = "NHWC"
    assert np.ravel(pool(x, **window)[1]).tolist() == [3, 9, 15, 21]
    assert np.ravel(pool(x, index_layout="NHWC", **window)[1]).tolist() == [6, 7, 18, 19]
    indices = pool(x, index_layout="NHWC", index_axis=1, **window)[1]
    assert np.ravel(indices).tolist() == [6, 7, 6, 7]


def test_index_types():
    y, indices = _reference.max_pool(
        np.zeros((1, 1, 4)), 2, return_indices=True, index_dtype="int32"
    )
    assert indices.dtype == np.int32 and y.dtype == np.float64


def test_any_array():
    x = np.arange(24, dtype="f4").reshape(1, 2, 3, 4)
    expected = _reference.max_pool(x, 2)
    x.flags.writeable = False
    for same in (x, np.asfortranarray(x), x[:, :, ::-1].copy()[:, :, ::-1], x.tolist()):
        assert np.array_equal(_reference.max_pool(same, 2), expected)
    swapped = _reference.max_pool(x.astype(x.dtype.newbyteorder()), 2)
    assert swapped.dtype == np.float32 and np.array_equal(swapped, expected)


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.array([1, NAN, 3, -INF], ml_dtypes.bfloat16)
    y, indices = _reference.max_pool(x, 2, layout="W", nan="ignore", return_indices=True)
    assert y.dtype == x.dtype and y.tolist() == [1, 3, 3] and indices.tolist() == [0, 2, 2]
    y, indices = _reference.max_pool(x, 2, layout="W", return_indices=True)
    assert np.isnan(y).tolist() == [True, True, False] and indices.tolist() == [1, 1, 2]


@pytest.mark.parametrize("batch, channels", [(0, 3), (2, 0), (0, 0)])
def test_empty_batches_and_channels(batch, channels):
    for layout, shape in (("NCHW", (batch, channels, 5, 6)), ("NHWC", (batch, 5, 6, channels))):
        y, indices = _reference.max_pool(np.zeros(shape), 2, layout=layout, return_indices=True)
        expected = make_plan(shape, "float64", 2, layout=layout).output_shape
        assert y.shape == indices.shape == expected and indices.dtype == np.int64


def test_endless_padding_is_not_walked_over():
    with limits.quick(0.5):
        row = [0, 1, 2, 3]
        most = 2**31 - 1
        assert pool(row, 2**30, pads=2**29) == ([3] * 5, [3] * 5)
        assert pool(row, most, pads=(most - 1, 0)) == (row, row)
        assert pool(row, 3, dilations=2**30, pads=2**30) == (row, row)
        low = np.iinfo(np.int64).min
        attributes = {"pads": most, "strides": 2**30}
        assert pool(row, 3, **attributes) == ([low, low, 3, low], [-1, -1, 3, -1])


WRONG = [
    {"kernel_shape": 9},
    {"kernel_shape": 2.0},
    {"kernel_shape": (2, 2)},
    {"strides": 0},
    {"pads": -1},
    {"auto_pad": "VALID", "pads": 1},
    {"auto_pad": "valid"},
    {"storage_order": 2},
    {"index_axis": 3},
    {"storage_order": 1, "index_layout": "NHWC", "layout": "NHWC"},
    {"index_layout": "NHWC"},
    {"index_dtype": "int16"},
    {"activation": "Gelu"},
    {"layout": "HW"},
]


@pytest.mark.parametrize("attributes", WRONG, ids=str)
def test_what_the_planner_refuses(attributes):
    attributes = {"kernel_shape": 2, **attributes}
    for function in (
        lambda: make_plan((1, 4, 4), "float32", **attributes),
        lambda: _reference.max_pool(np.zeros((1, 4, 4), "f4"), **attributes),
    ):
        with pytest.raises((TypeError, ValueError)):
            function()


# ------------------------------------------------------------------------------------ unpooling


def unpool(x, indices, kernel_shape, **attributes):
    return _reference.max_unpool(
        np.array(x), np.array(indices), kernel_shape, **attributes
    ).tolist()


def test_unpooling():
    assert unpool([1, 2], [1, 3], 2, strides=2, layout="W") == [0, 1, 0, 2]
    assert unpool([1, 2], [1, 2], 2, strides=2, pads=(1, 0), layout="W") == [0, 1, 2]
    x, places = [[5, 6], [7, 8]], [[5, 7], [13, 15]]
    attributes = {"strides": 2, "output_shape": (5, 5), "layout": "HW"}
    y = np.array(unpool(x, places, 2, index_space="inferred", **attributes))
    assert np.array_equal(np.argwhere(y), [[1, 1], [1, 3], [3, 1], [3, 3]])
    for pads in (0, 70):  # of no meaning here
        y = unpool(x, places, 2, pads=pads, **attributes)
        assert np.flatnonzero(y).tolist() == [5, 7, 13, 15]


def test_of_duplicates_the_last_of_the_channels_first_order_wins():
    x = np.arange(1, 9).reshape(1, 2, 2, 2)
    places = np.zeros((1, 2, 2, 2), int)
    assert np.ravel(unpool(x, places, 1)).tolist() == [8] + [0] * 7
    y = _reference.max_unpool(np.moveaxis(x, 1, -1), np.moveaxis(places, 1, -1), 1, layout="NHWC")
    assert y[0, 0, 0].tolist() == [8, 0]  # in the last channel, where memory has 7 last


def test_unpooling_by_indices_of_each_plane():
    x, places = [[[5, 6]], [[7, 8]]], [[[2, 0]], [[1, 2]]]
    attributes = {"output_shape": (2, 1, 3), "layout": "CHW"}
    assert unpool(x, places, 1, index_axis=1, **attributes) == [[[6, 0, 5]], [[0, 7, 8]]]
    assert unpool(x, places, 1, **attributes) == [[[6, 7, 8]], [[0, 0, 0]]]
    for index_axis, layout in ((2, "CHW"), (1, "HWC")):
        with pytest.raises(ValueError, match="inside the plane"):
            attributes = {"index_axis": index_axis, "layout": layout}
            physical = {"index_layout": "NHWC"} if layout == "HWC" else {}
            unpool(x, places, 1, **attributes, **physical)


@pytest.mark.parametrize("index_layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["f2", "u1", "i8", "?"])
def test_a_round_trip(dtype, index_layout):
    x = np.random.default_rng(0).integers(0, 9, (2, 5, 7, 3)).astype(dtype)
    attributes = {"strides": 2, "layout": "NHWC", "index_layout": index_layout}
    y, indices = _reference.max_pool(x, 2, return_indices=True, **attributes)
    back = _reference.max_unpool(y, indices, 2, output_shape=x.shape, **attributes)
    kept = back != 0
    assert np.array_equal(back[kept], x[kept]) and back.dtype == x.dtype
    assert np.array_equal(_reference.max_pool(back, 2, **attributes), y)


def test_wrong_unpooling():
    x, places = np.ones((1, 1, 2)), np.array([[[0, 3]]])
    assert _reference.max_unpool(x, places.astype("i4"), 2, strides=2).shape == (1, 1, 4)
    for wrong in (-1, 4, 2**62):
        with pytest.raises(ValueError, match=f"indices: {wrong} is outside"):
            _reference.max_unpool(x, places * 0 + wrong, 2, strides=2)
    for attributes in (
        {"pads": 2},
        {"output_shape": (1, 1)},
        {"output_shape": (2, 1, 4)},
        {"output_shape": (1, 1, 3), "index_space": "inferred"},
    ):
        with pytest.raises(ValueError):
            _reference.max_unpool(x, places * 0, 2, strides=2, **attributes)
    with pytest.raises(TypeError):
        _reference.max_unpool(x, places.astype("i2"), 2, strides=2)
    with pytest.raises(ValueError):
        _reference.max_unpool(x, places[..., :1], 2, strides=2)


# ----------------------------------------------------------------------------------- activation


def sigmoid(v):
    return 1 / (1 + math.exp(-v)) if v > -700 else 0.0


FORMULAS = {
    ("Relu", ()): lambda v: max(v, 0.0),
    ("Relu", (-1.0, 6.0)): lambda v: min(max(v, -1.0), 6.0),
    ("Clip", (-2.5, 0.75)): lambda v: min(max(v, -2.5), 0.75),
    ("LeakyRelu", (0.125,)): lambda v: v if v > 0 else 0.125 * v,
    ("HardSigmoid", (0.25, 0.5)): lambda v: min(max(0.25 * v + 0.5, 0.0), 1.0),
    ("Tanh", ()): math.tanh,
    ("Sigmoid", ()): sigmoid,
    ("Silu", ()): lambda v: v * sigmoid(v),
}
# of the same, at -inf and inf
LIMITS = [(0, INF), (-1, 6), (-2.5, 0.75), (-INF, INF), (0, 1), (-1, 1), (0, 1), (0, INF)]
POINTS = [-2000.0, -90.0, -3.5, -1.0, -0.25, -0.0, 0.0, 0.5, 1.0, 2.75, 7.0, 90.0, 2000.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name, params", FORMULAS)
def test_activations(name, params, dtype):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    x = np.array([*POINTS, NAN], dtype)
    expected = np.array([FORMULAS[name, params](v) for v in POINTS]).astype(dtype)
    y = x.copy()
    apply_activation(y, *arguments.activation(name, params))
    assert y.dtype == x.dtype and np.isnan(y[-1])
    if name in ("Tanh", "Sigmoid", "Silu"):
        ulp = 2.0**-7 if dtype not in ("float16", "float32", "float64") else np.finfo(dtype).eps
        tiny = 2e-38 if dtype != "float16" else 1e-7
        np.testing.assert_allclose(
            y[:-1].astype(float), expected.astype(float), rtol=4 * ulp, atol=tiny
        )
    else:
        assert np.array_equal(y[:-1], expected)


@pytest.mark.parametrize("activation, limits", list(zip(FORMULAS, LIMITS, strict=True)))
def test_activations_at_infinity(activation, limits):
    """-inf is what a window without elements holds."""
    y = np.array([-INF, INF], "f4")
    apply_activation(y, *arguments.activation(*activation))
    assert y.tolist() == [*limits]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "u8"])
def test_activations_of_integers_are_exact(dtype):
    info = np.iinfo(dtype)
    values = sorted({info.min, info.min + 1, 0, 1, 2, 3, 99, info.max - 1, info.max})
    bounds = [-INF, -1e30, -(2.0**63), -2.5, 0.0, 0.5, 2.0, 2.5, 98.5, 2.0**53, 2.0**63, 1e30, INF]
    for least, most in itertools.combinations_with_replacement(bounds, 2):
        y = np.array(values, dtype)
        apply_activation(y, "Clip", (least, most))
        lowest = info.min if least < info.min else min(least, info.max)
        highest = info.max if most > info.max else max(most, info.min)
        for before, after in zip(values, y.tolist(), strict=True):
            if lowest <= before <= highest:
                assert after == before
            elif math.ceil(lowest) <= math.floor(highest):
                assert after == (math.ceil(lowest) if before < lowest else math.floor(highest))
    y = np.array(values, dtype)
    apply_activation(y, *arguments.activation("Relu", ()))
    assert y.tolist() == [max(v, 0) for v in values]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int16"])
@pytest.mark.parametrize("shape", [(5, 3, 3, 2000), (2, 40_000), (40_000, 2), (70_001,), (3,)])
def test_activations_do_not_depend_on_blocks_or_arrangement(dtype, shape):
    """To the last bit: larger arrays are those of many small ones."""
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    values = cases.values(shape, dtype, "bits", 0)
    if dtype != "int16":
        rng = np.random.default_rng(0)
        moderate = (10 * rng.normal(size=shape)).astype(values.dtype)
        np.copyto(values, moderate, where=rng.random(shape) < 0.8)
    for name, params in FORMULAS:
        if dtype == "int16" and name not in ("Relu", "Clip"):
            continue
        activation = arguments.activation(name, params)
        expected = values.reshape(-1).copy()
        for first in range(0, values.size, 999):
            part = expected[first : first + 999].copy()
            apply_activation(part, *activation)
            expected[first : first + 999] = part
        for how in ("contiguous", "fortran", "negative", "stepped", "rows", "unaligned"):
            y = cases.arranged(values.copy(), how)
            apply_activation(y, *activation)
            cases.assert_same(np.asarray(y), expected.reshape(shape), f"{name} {how}")


def test_activation_belongs_to_the_values_alone():
    x = np.array([[-1, -2, 3, 4]], "f4")
    attributes = {"layout": "HW", "strides": (1, 2), "return_indices": True}
    y, indices = _reference.max_pool(
        x, (1, 2), activation="Clip", activation_params=[0, 2], **attributes
    )
    assert y.tolist() == [[0, 2]] and indices.tolist() == [[0, 3]]
