"""fastpool.openvino's AvgPool follows OpenVINO's attributes, versions, divisors and documents."""

import pickle

import numpy as np
import pytest

import fastpool
import fastpool.openvino
from cases import assert_same

X = np.random.default_rng(0).standard_normal((1, 2, 7, 6)).astype(np.float32)
WINDOW = {"strides": [2, 1], "kernel": [3, 2], "exclude_pad": True}
EXPLICIT = WINDOW | {"pads_begin": [1, 0], "pads_end": [2, 1]}
INCLUDE = EXPLICIT | {"exclude_pad": False}
PADS = {"pads": (1, 0, 2, 1)}


# --------------------------------------------------------------------------------- avg_pool


@pytest.mark.parametrize("numerics", ["pairwise", "exact", "sequential"])
@pytest.mark.parametrize(
    "attributes, native",
    [
        (EXPLICIT, PADS),
        (INCLUDE, PADS | {"count_include_pad": True, "beyond": "count"}),
        (INCLUDE | {"beyond": "drop"}, PADS | {"count_include_pad": True}),
        (EXPLICIT | {"dilations": [2, 3]}, PADS | {"dilations": (2, 3)}),
        (
            INCLUDE | {"rounding_type": "ceil"},
            PADS
            | {"ceil_mode": True, "ceil_rule": "keep"}
            | {"count_include_pad": True, "beyond": "count"},
        ),
        (
            EXPLICIT | {"rounding_type": "Ceil_Torch"},
            PADS | {"ceil_mode": True, "ceil_rule": "clip"},
        ),
        (EXPLICIT | {"auto_pad": "same_upper"}, {"auto_pad": "SAME_UPPER"}),
        (
            INCLUDE | {"auto_pad": "SAME_LOWER"},
            {"auto_pad": "SAME_LOWER", "count_include_pad": True},
        ),
        (WINDOW | {"auto_pad": "valid"}, {"auto_pad": "VALID"}),
        (
            INCLUDE | {"auto_pad": "valid", "rounding_type": "ceil"},
            {"auto_pad": "VALID", "ceil_mode": True, "ceil_rule": "keep"}
            | {"count_include_pad": True},
        ),
        (EXPLICIT | {"nan": "ignore", "num_threads": 1}, PADS | {"nan": "ignore"}),
    ],
)
def test_is_the_native_call(attributes, native, numerics):
    expected = fastpool.avg_pool(X, (3, 2), strides=(2, 1), numerics=numerics, **native)
    got = fastpool.openvino.avg_pool(X, numerics=numerics, **attributes)
    assert_same(got, expected)


@pytest.mark.parametrize("version", [1, 14, 16])
def test_versions(version):
    expected = fastpool.openvino.avg_pool(X, **EXPLICIT)
    assert_same(fastpool.openvino.avg_pool(X, version=version, **EXPLICIT), expected)


def test_none_is_an_absent_attribute():
    absent = dict.fromkeys(
        ("rounding_type", "auto_pad", "dilations", "beyond", "ceil_rule", "numerics", "layout")
    )
    assert_same(
        fastpool.openvino.avg_pool(X, **EXPLICIT, **absent),
        fastpool.openvino.avg_pool(X, **EXPLICIT),
    )


# The last window of 4 ones holds 1 element, as much padding as there is, and the rest is past it.
ROW = {"kernel": [3], "strides": [2], "exclude_pad": False}


@pytest.mark.parametrize("rounding_type", ["ceil", "ceil_torch"])
@pytest.mark.parametrize(
    "pads_begin, pads_end, beyond, last",
    [
        (1, 1, None, 1 / 3),
        (1, 1, "count", 1 / 3),
        (1, 1, "drop", 1 / 2),
        (0, 0, None, 1),
        (0, 0, "drop", 1),
        (0, 0, "count", 2 / 3),
        (0, 1, None, 2 / 3),
    ],
)
def test_windows_that_reach_past_the_padding(pads_begin, pads_end, beyond, last, rounding_type):
    window = ROW | {"rounding_type": rounding_type, "beyond": beyond}
    got = fastpool.openvino.avg_pool(
        np.ones((1, 1, 4)), pads_begin=[pads_begin], pads_end=[pads_end], **window
    )
    assert got[0, 0, -1] == last


def test_padding_of_one_axis_counts_for_the_others():
    """As in OpenVINO's program: one row of padding above changes the column at the right."""
    window = {"kernel": [2, 3], "strides": [2, 2], "exclude_pad": False, "rounding_type": "ceil"}
    ones = np.ones((1, 1, 3, 4))
    padded = fastpool.openvino.avg_pool(ones, **window, pads_begin=[1, 0], pads_end=[0, 0])
    assert padded[0, 0].tolist() == [[1 / 2, 1 / 3], [1, 2 / 3]]
    dropped = fastpool.openvino.avg_pool(
        ones, **window, pads_begin=[1, 0], pads_end=[0, 0], beyond="drop"
    )
    assert dropped[0, 0].tolist() == [[1 / 2, 1 / 2], [1, 1]]
    none = fastpool.openvino.avg_pool(ones, **window, pads_begin=[0, 0], pads_end=[0, 0])
    assert none[0, 0].tolist() == [[1, 1], [1, 1]]


def test_pads_that_auto_pad_ignores_do_not_count():
    window = ROW | {"auto_pad": "valid", "rounding_type": "ceil"}
    got = fastpool.openvino.avg_pool(np.ones((1, 1, 4)), **window, pads_begin=[1], pads_end=[1])
    assert got.tolist() == [[[1, 1]]]


@pytest.mark.parametrize("exclude_pad", [False, True])
def test_windows_without_elements(exclude_pad):
    """ "ceil" keeps the last window and "ceil_torch" drops it. OpenVINO has NaN for it."""
    x = np.array([[[1.0, 2.0]]])
    window = {"strides": [2], "kernel": [1], "pads_begin": [0], "pads_end": [0]}
    window["exclude_pad"] = exclude_pad
    y = fastpool.openvino.avg_pool(x, rounding_type="ceil", **window)
    assert y.tolist() == [[[1, 0]]]
    for clipped in (
        {"rounding_type": "ceil_torch"},
        {"rounding_type": "ceil", "ceil_rule": "clip"},
    ):
        assert fastpool.openvino.avg_pool(x, **clipped, **window).tolist() == [[[1]]]


def test_pads_as_large_as_the_window():
    """OpenVINO refuses them with exclude_pad."""
    window = {"kernel": [1], "strides": [1], "pads_begin": [1], "pads_end": [0]}
    for exclude_pad in (False, True):
        got = fastpool.openvino.avg_pool(np.ones((1, 1, 2)), exclude_pad=exclude_pad, **window)
        assert got.tolist() == [[[0, 1, 1]]]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_ranks(n):
    x = np.arange(3**n).reshape(1, 1, *(3,) * n)
    y = fastpool.openvino.avg_pool(
        x, strides=[1] * n, kernel=[3] * n, auto_pad="valid", exclude_pad=True
    )
    assert_same(y, np.full((1, 1, *(1,) * n), 3**n // 2))


@pytest.mark.parametrize("shape", [(5,), (5, 5), (1, 1, 3, 3, 3, 3)])
def test_ranks_refused(shape):
    n = max(len(shape) - 2, 0)
    with pytest.raises(ValueError, match="spatial axis|rank"):
        fastpool.openvino.avg_pool(
            np.zeros(shape), strides=[1] * n, kernel=[2] * n, auto_pad="valid", exclude_pad=True
        )


@pytest.mark.parametrize("shape", [(0, 3, 5), (2, 0, 5)])
def test_no_planes(shape):
    window = {"strides": [1], "kernel": [2], "auto_pad": "valid", "exclude_pad": True}
    assert fastpool.openvino.avg_pool(np.zeros(shape), **window).shape == (*shape[:2], 4)


def test_a_window_larger_than_the_padded_input():
    """OpenVINO refuses it. "ceil_torch" makes one window, divided as any that is rounded up."""
    x = np.array([[[3.0, 7.0]]])
    window = {"strides": [3], "kernel": [5], "pads_begin": [1], "pads_end": [0]}
    for version in (1, 14, 16):
        instead = "ceil_torch" if version > 1 else '"ceil" with ceil_rule "clip"'
        for rounding_type in ("floor", "ceil"):
            with pytest.raises(ValueError, match=f"exceeds .* of axis W; .*{instead}.* one window"):
                fastpool.openvino.avg_pool(
                    x, **window, version=version, exclude_pad=True, rounding_type=rounding_type
                )
    for pad, exclude_pad, mean in ((1, True, 5), (1, False, 2), (0, False, 5)):
        window |= {"pads_begin": [pad], "strides": [4 - pad], "exclude_pad": exclude_pad}
        y = fastpool.openvino.avg_pool(x, **window, rounding_type="ceil_torch")
        assert y.tolist() == [[[mean]]]
    window |= {"version": 1, "rounding_type": "ceil", "ceil_rule": "clip"}
    assert fastpool.openvino.avg_pool(x, **window).tolist() == [[[5]]]


def test_integers_round_halves_to_even():
    x = np.array([[[1, 2, 3, 4, -1, -2]]], np.int8)
    window = {"strides": [1], "kernel": [2], "auto_pad": "valid", "exclude_pad": True}
    assert_same(fastpool.openvino.avg_pool(x, **window), np.array([[[2, 2, 4, 2, -2]]], np.int8))
    big = np.full((1, 1, 2), 2**31 - 1, np.int32)  # OpenVINO: -1
    assert fastpool.openvino.avg_pool(big, **window).tolist() == [[[2**31 - 1]]]


def test_channels_last_and_out():
    expected = np.moveaxis(fastpool.openvino.avg_pool(X, **INCLUDE), 1, -1)
    last = np.ascontiguousarray(np.moveaxis(X, 1, -1))
    out = np.empty(expected.shape, np.float32)
    assert fastpool.openvino.avg_pool(last, layout="NHWC", out=out, **INCLUDE) is out
    assert_same(out, np.ascontiguousarray(expected))


BAD_ATTRIBUTES = [
    ({"version": 8}, ValueError, "version.*1, 14 or 16.*8"),
    ({"version": "16"}, TypeError, "version"),
    ({"version": None}, TypeError, "version"),
    ({"strides": None}, TypeError, "strides"),
    ({"strides": 2}, TypeError, "strides"),
    ({"strides": [2, 0]}, ValueError, "strides"),
    ({"kernel": None}, TypeError, "kernel"),
    ({"kernel": [2.0, 2]}, TypeError, "kernel"),
    ({"kernel": [20, 2]}, ValueError, r"kernel.*20.*exceeds"),
    ({"kernel": [2**62, 2]}, ValueError, "kernel"),
    ({"dilations": [0, 1]}, ValueError, "dilations"),
    ({"dilations": []}, ValueError, "dilations"),
    ({"pads_begin": None}, TypeError, "pads_begin.*required"),
    ({"pads_end": [0, -1]}, ValueError, "pads_end"),
    ({"exclude_pad": None}, TypeError, "exclude_pad.*required"),
    ({"exclude_pad": 2}, ValueError, "exclude_pad.*2"),
    ({"exclude_pad": "true"}, (TypeError, ValueError), "exclude_pad.*true"),
    ({"rounding_type": "round"}, ValueError, "rounding_type.*round"),
    ({"rounding_type": 1}, TypeError, "rounding_type"),
    ({"version": 1, "rounding_type": "ceil_torch"}, ValueError, "rounding_type.*14"),
    ({"version": 1, "dilations": [1, 1]}, ValueError, "dilations.*version 1"),
    ({"version": 14, "dilations": [1, 1]}, ValueError, "dilations.*version 14"),
    ({"auto_pad": "notset"}, ValueError, "auto_pad.*notset"),
    ({"beyond": "keep"}, ValueError, "beyond.*keep"),
    ({"beyond": True}, TypeError, "beyond"),
    ({"numerics": "fast"}, ValueError, "numerics.*fast"),
    ({"nan": "skip"}, ValueError, "nan"),
    ({"layout": "HWC"}, ValueError, "layout"),
    ({"ceil_rule": "drop"}, ValueError, "ceil_rule"),
    ({"axis": 0}, TypeError, "axis"),
    ({"divisor": 2}, TypeError, "divisor"),
]


@pytest.mark.parametrize("change, error, match", BAD_ATTRIBUTES)
def test_bad_attributes(change, error, match):
    with pytest.raises(error, match=match):
        fastpool.openvino.avg_pool(X, **(EXPLICIT | change))


def test_exclude_pad_must_be_said():
    window = {name: value for name, value in EXPLICIT.items() if name != "exclude_pad"}
    with pytest.raises(TypeError, match="exclude_pad"):
        fastpool.openvino.avg_pool(X, **window)


# ------------------------------------------------------------------------------- read_layer

DATA = 'auto_pad="explicit" kernel="3,2" strides="2,1" pads_begin="1,0" pads_end="2,1"'
EXCLUDE = DATA + ' exclude-pad="true"'


def xml(data=EXCLUDE, head='type="AvgPool" version="opset16"', rest=""):
    return f"<layer {head}><data {data}/>{rest}</layer>"


def test_layer_remembers():
    text = xml(
        EXCLUDE + ' dilations="1, 2" rounding_type="ceil"',
        'id="7" name="pool" type="AvgPool" version="opset16"',
        "<input><port><dim>1</dim><dim>-1</dim></port></input>",
    )
    layer = fastpool.openvino.read_layer(text)
    assert type(layer) is fastpool.openvino.AvgPoolLayer
    assert (layer.name, layer.version) == ("pool", 16)
    assert layer.attributes == {
        "auto_pad": "explicit",
        "kernel": (3, 2),
        "strides": (2, 1),
        "pads_begin": (1, 0),
        "pads_end": (2, 1),
        "exclude_pad": True,
        "dilations": (1, 2),
        "rounding_type": "ceil",
    }
    assert (layer.input_dims, layer.output_dims) == (((1, -1),), ())
    assert pickle.loads(pickle.dumps(layer)) == layer
    assert_same(layer(X), fastpool.openvino.avg_pool(X, **layer.attributes))


def test_layer_takes_the_switches():
    layer = fastpool.openvino.read_layer(xml(DATA + ' exclude-pad="false" rounding_type="ceil"'))
    last = np.ascontiguousarray(np.moveaxis(X, 1, -1))
    switches = {"layout": "NHWC", "nan": "ignore", "num_threads": 1, "ceil_rule": "clip"}
    switches |= {"numerics": "sequential", "beyond": "drop"}
    expected = fastpool.openvino.avg_pool(last, **INCLUDE, rounding_type="ceil", **switches)
    out = np.empty_like(expected)
    assert layer(last, **switches, out=out) is out
    assert_same(out, expected)
    with pytest.raises(TypeError, match="dilations"):
        layer(X, dilations=[1, 1])


@pytest.mark.parametrize(
    "text, exclude_pad",
    [("true", True), ("True", True), ("1", True), ("false", False), ("FALSE", False), ("0", False)],
)
def test_exclude_pad_of_layers(text, exclude_pad):
    layer = fastpool.openvino.read_layer(xml(DATA + f' exclude-pad="{text}"'))
    assert layer.attributes["exclude_pad"] is exclude_pad


def test_empty_dilations_are_absent():
    """OpenVINO writes them for an AvgPool-16 that was made without dilations."""
    layer = fastpool.openvino.read_layer(xml(EXCLUDE + ' dilations=""'))
    assert layer == fastpool.openvino.read_layer(xml())


@pytest.mark.parametrize(
    "opset, version", [(1, 1), (7, 1), (13, 1), (14, 14), (15, 14), (16, 16), (99, 16), (None, 16)]
)
def test_layer_version(opset, version):
    head = 'type="AvgPool"' + (f' version="opset{opset}"' if opset else "")
    assert fastpool.openvino.read_layer(xml(head=head)).version == version


@pytest.mark.parametrize(
    "data, match",
    [
        (DATA, "exclude-pad.*required"),
        (DATA + ' exclude_pad="true"', "exclude_pad"),
        (DATA + ' exclude-pad=""', "exclude-pad"),
        (DATA + ' exclude-pad="yes"', "exclude-pad.*yes"),
        (DATA + ' exclude-pad=" true"', "exclude-pad"),
        (DATA + f' exclude-pad="{"1" * 100_000}"', "exclude-pad"),
        ('kernel="2,2" strides="2,2" exclude-pad="true"', "pads_begin.*required"),
        ('strides="2,2" auto_pad="valid" exclude-pad="true"', "kernel.*required"),
        (EXCLUDE + ' dilations=" "', "dilations"),
        (EXCLUDE + ' dilations="2"', "dilations"),
        (EXCLUDE + ' dilations="0,1"', "dilations"),
        (EXCLUDE + ' axis="0"', "axis"),
        (EXCLUDE + ' index_element_type="i64"', "index_element_type"),
        (EXCLUDE + ' rounding_type="round"', "rounding_type"),
        (EXCLUDE.replace("2,1", "2,9999999999999999999999"), "strides"),
    ],
)
def test_bad_data(data, match):
    with pytest.raises(ValueError, match=match) as caught:
        fastpool.openvino.read_layer(xml(data))
    assert len(str(caught.value)) < 300


def test_attributes_of_later_versions():
    for opset in (1, 15):
        with pytest.raises(ValueError, match="dilations"):
            head = f'type="AvgPool" version="opset{opset}"'
            fastpool.openvino.read_layer(xml(EXCLUDE + ' dilations="1,1"', head=head))
    with pytest.raises(ValueError, match="rounding_type"):
        head = 'type="AvgPool" version="opset13"'
        fastpool.openvino.read_layer(xml(EXCLUDE + ' rounding_type="ceil_torch"', head=head))


# -------------------------------------------------------------------------- the documents' examples


# auto_pad, exclude-pad, kernel, pads_begin, pads_end, strides, the extent that the document prints,
# the right one. The examples of AvgPool-1, -14 and -16 are the same ones.
EXAMPLES = [
    # H_out is the input's for SAME only with strides of 1.
    ("same_upper", "true", "2,2", "0,0", "1,1", "2,2", 32, 16),
    ("same_upper", "false", "5,5", "0,0", "1,1", "2,2", 32, 16),
    ("explicit", "true", "5,5", "1,1", "1,1", "3,3", 10, 10),
    ("explicit", "false", "5,5", "1,1", "1,1", "2,2", 15, 15),
    ("valid", "true", "5,5", "1,1", "1,1", "2,2", 14, 14),
]
DILATED = ("explicit", "false", "5,5", "1,1", "1,1", "2,2", 13, 13)  # AvgPool-16's sixth


def printed(example, dilations):
    auto_pad, exclude_pad, kernel, pads_begin, pads_end, strides, extent, _ = example
    ports = (
        f"<port id='{i}'><dim>1</dim><dim>3</dim><dim>{size}</dim><dim>{size}</dim></port>"
        for i, size in enumerate((32, extent))
    )
    dilations = f'dilations="{dilations}" ' if dilations else ""
    return (
        f'<layer ... type="AvgPool" ... ><data auto_pad="{auto_pad}" exclude-pad="{exclude_pad}" '
        f'kernel="{kernel}" {dilations}pads_begin="{pads_begin}" pads_end="{pads_end}" '
        f'strides="{strides}"/><input>{next(ports)}</input><output>{next(ports)}</output></layer>'
    )


@pytest.mark.parametrize(
    "example, dilations",
    [(example, dilations) for example in EXAMPLES for dilations in (None, "1,1")]
    + [(DILATED, "2,2")],
)
def test_documents(example, dilations):
    layer = fastpool.openvino.read_layer(printed(example, dilations))
    *_, extent, right = example
    assert layer.output_dims == ((1, 3, extent, extent),)
    plane = np.arange(32 * 32, dtype=np.float64).reshape(1, 1, 32, 32)
    y = layer(plane)
    assert y.shape == (1, 1, right, right)
    attributes = layer.attributes
    kernel, step = attributes["kernel"][0], attributes["strides"][0]
    dilation = attributes.get("dilations", (1,))[0]
    extent = (kernel - 1) * dilation + 1
    begin = {"valid": 0, "explicit": 1, "same_upper": (kernel - 2) // 2}[attributes["auto_pad"]]
    padded = np.pad(plane[0, 0], ((begin, 9),) * 2, constant_values=np.nan)
    for i in (0, 1, right - 1):
        window = padded[i * step :, :extent:dilation][:extent:dilation]
        elements = window[~np.isnan(window)]
        count = elements.size if attributes["exclude_pad"] else window.size
        assert y[0, 0, i, 0] == elements.sum() / count
