"""fastpool.openvino follows OpenVINO's attributes, versions, rounding types and XML layers."""

import pickle
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

import fastpool
import fastpool.openvino
from cases import assert_same

X = np.random.default_rng(0).standard_normal((2, 3, 7, 6)).astype(np.float32)
WINDOW = {"strides": [2, 1], "kernel": [3, 2]}
EXPLICIT = WINDOW | {"pads_begin": [1, 0], "pads_end": [2, 1]}


def assert_same_outputs(got, expected):
    for output, same in zip(got, expected, strict=True):
        assert_same(output, same)


@pytest.mark.parametrize("unwanted", ["openvino", "xml.etree.ElementTree", "xml.parsers.expat"])
def test_import_is_cheap(unwanted):
    """openvino is never imported, and nothing of XML before a layer is read."""
    code = f"import sys, fastpool.openvino; sys.exit({unwanted!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --------------------------------------------------------------------------------- max_pool


@pytest.mark.parametrize("version", [8, 14])
@pytest.mark.parametrize(
    "attributes, native",
    [
        (EXPLICIT, {"pads": (1, 0, 2, 1)}),
        (EXPLICIT | {"dilations": [2, 3]}, {"pads": (1, 0, 2, 1), "dilations": (2, 3)}),
        (EXPLICIT | {"axis": 2}, {"pads": (1, 0, 2, 1), "index_axis": 2}),
        (EXPLICIT | {"axis": -4}, {"pads": (1, 0, 2, 1), "index_axis": 0}),
        (
            EXPLICIT | {"index_element_type": "i32"},
            {"pads": (1, 0, 2, 1), "index_dtype": "int32"},
        ),
        (
            EXPLICIT | {"rounding_type": "ceil"},
            {"pads": (1, 0, 2, 1), "ceil_mode": True, "ceil_rule": "keep"},
        ),
        (EXPLICIT | {"auto_pad": "same_upper"}, {"auto_pad": "SAME_UPPER"}),
        (EXPLICIT | {"auto_pad": "same_lower"}, {"auto_pad": "SAME_LOWER"}),
        (WINDOW | {"auto_pad": "valid"}, {"auto_pad": "VALID"}),
        (WINDOW | {"auto_pad": "Same_Lower"}, {"auto_pad": "SAME_LOWER"}),
        (
            WINDOW | {"auto_pad": "VALID", "rounding_type": "CEIL"},
            {"auto_pad": "VALID", "ceil_mode": True, "ceil_rule": "keep"},
        ),
        (EXPLICIT | {"nan": "ignore", "num_threads": 1}, {"pads": (1, 0, 2, 1), "nan": "ignore"}),
    ],
)
def test_is_the_native_call(attributes, native, version):
    expected = fastpool.max_pool(X, (3, 2), strides=(2, 1), return_indices=True, **native)
    got = fastpool.openvino.max_pool(X, version=version, **attributes)
    assert_same_outputs(got, expected)


def test_names_that_are_listed():
    listed = dir(fastpool.openvino)
    assert {*fastpool.openvino.__all__, "MaxPool", "replace_pooling"} <= {*listed}
    assert "importlib" not in listed


def test_version_1_has_one_output():
    expected = fastpool.max_pool(X, (3, 2), strides=(2, 1), pads=(1, 0, 2, 1))
    assert_same(fastpool.openvino.max_pool(X, version=1, **EXPLICIT), expected)


def test_version_8_by_default():
    assert_same_outputs(
        fastpool.openvino.max_pool(X, **EXPLICIT),
        fastpool.openvino.max_pool(X, version=8, **EXPLICIT),
    )


def test_none_is_an_absent_attribute():
    absent = dict.fromkeys(
        ("rounding_type", "auto_pad", "dilations", "index_element_type", "axis", "ceil_rule")
    )
    assert_same_outputs(
        fastpool.openvino.max_pool(X, **EXPLICIT, **absent),
        fastpool.openvino.max_pool(X, **EXPLICIT),
    )


def test_last_ceil_window():
    """ "ceil" keeps a window that starts in the padding at the end, "ceil_torch" drops it."""
    x = np.array([[[1.0, 2.0, 3.0]]])
    window = {"strides": [2], "kernel": [1], "pads_begin": [0], "pads_end": [1]}
    assert fastpool.openvino.max_pool(x, version=1, **window).tolist() == [[[1, 3]]]
    x = np.array([[[1.0, 2.0]]])
    window["pads_end"] = [0]
    for version in (8, 14):
        y, indices = fastpool.openvino.max_pool(x, version=version, rounding_type="ceil", **window)
        assert y.tolist() == [[[1, -np.inf]]]
        assert indices.tolist() == [[[0, -1]]]
    y, _ = fastpool.openvino.max_pool(x, version=14, rounding_type="ceil_torch", **window)
    assert y.tolist() == [[[1]]]
    y = fastpool.openvino.max_pool(x, version=1, rounding_type="ceil", ceil_rule="clip", **window)
    assert y.tolist() == [[[1]]]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_window_larger_than_the_padded_input(layout):
    """OpenVINO refuses it. "ceil_torch" makes one window of what is there."""
    x = np.moveaxis(np.array([[[3.0, 7.0]]]), 1, 2 if layout == "NHWC" else 1)
    window = {"strides": [3], "kernel": [4], "auto_pad": "valid", "layout": layout}
    exceeds = r"^kernel_shape\[0\]: window \(4 - 1\) \* 1 \+ 1 = 4 exceeds .* = 2 of axis W; "
    for version in (1, 8, 14):
        instead = 'rounding_type "ceil_torch"'
        if version < 14:
            instead = 'rounding_type "ceil" with ceil_rule "clip"'
        for rounding_type in ("floor", "ceil"):
            with pytest.raises(ValueError, match=f"{exceeds}{instead} would make one window of it"):
                fastpool.openvino.max_pool(
                    x, version=version, **window, rounding_type=rounding_type
                )
    for version, rounding in (
        (14, {"rounding_type": "ceil_torch"}),
        (8, {"rounding_type": "ceil", "ceil_rule": "clip"}),
    ):
        y, indices = fastpool.openvino.max_pool(x, version=version, **window, **rounding)
        assert (y.tolist(), indices.tolist()) == ([[[7]]], [[[1]]])
    window["strides"] = [2]
    for rounding_type in ("floor", "ceil", "ceil_torch"):
        with pytest.raises(ValueError, match="exceeds .* of axis W") as raised:
            fastpool.openvino.max_pool(x, version=14, **window, rounding_type=rounding_type)
        assert "one window" not in str(raised.value)


@pytest.mark.parametrize("rounding_type", ["floor", "ceil", "ceil_torch"])
def test_same_padding_ignores_rounding(rounding_type):
    x = np.arange(7.0).reshape(1, 1, 7)
    y, _ = fastpool.openvino.max_pool(
        x,
        version=14,
        strides=[3],
        kernel=[1],
        auto_pad="same_upper",
        rounding_type=rounding_type,
    )
    assert y.tolist() == [[[0, 3, 6]]]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_ranks(n):
    x = np.arange(2 * 3 * 4**n).reshape(2, 3, *(4,) * n)
    y, indices = fastpool.openvino.max_pool(x, strides=[1] * n, kernel=[2] * n, auto_pad="valid")
    corner = x[(slice(None), slice(None), *(slice(1, None),) * n)]
    assert_same(y, corner)
    assert_same(indices, corner)


@pytest.mark.parametrize("shape", [(5,), (5, 5), (1, 1, 3, 3, 3, 3)])
def test_ranks_refused(shape):
    n = max(len(shape) - 2, 0)
    with pytest.raises(ValueError, match="spatial axis|rank"):
        fastpool.openvino.max_pool(
            np.zeros(shape), strides=[1] * n, kernel=[2] * n, auto_pad="valid"
        )


@pytest.mark.parametrize("shape", [(0, 3, 5), (2, 0, 5)])
def test_no_planes(shape):
    y, indices = fastpool.openvino.max_pool(
        np.zeros(shape, np.float32), strides=[1], kernel=[2], auto_pad="valid"
    )
    assert y.shape == indices.shape == (*shape[:2], 4)


def test_channels_last():
    """The axis attribute means N x C x spatial, whatever the arrangement."""
    y, indices = fastpool.openvino.max_pool(X, axis=1, **EXPLICIT)
    got = fastpool.openvino.max_pool(
        np.ascontiguousarray(np.moveaxis(X, 1, -1)), axis=1, layout="NHWC", **EXPLICIT
    )
    assert_same_outputs(got, (np.moveaxis(y, 1, -1), np.moveaxis(indices, 1, -1)))


def test_outputs_are_the_given_arrays():
    y, indices = np.empty((2, 3, 6, 5), np.float32), np.empty((2, 3, 6, 5), np.int32)
    got = fastpool.openvino.max_pool(
        X,
        strides=[1, 1],
        kernel=[2, 2],
        auto_pad="valid",
        index_element_type="i32",
        out=y,
        out_indices=indices,
    )
    assert got[0] is y and got[1] is indices
    assert_same(X.ravel()[indices], y)


BAD_ATTRIBUTES = [
    ({"version": 2}, ValueError, "version.*2"),
    ({"version": "8"}, TypeError, "version"),
    ({"version": None}, TypeError, "version"),
    ({"strides": None}, TypeError, "strides"),
    ({"strides": 2}, TypeError, "strides"),
    ({"strides": [2]}, ValueError, "strides"),
    ({"strides": [2, 0]}, ValueError, "strides"),
    ({"strides": [2, 2.0]}, TypeError, "strides"),
    ({"strides": "2,2"}, TypeError, "strides"),
    ({"kernel": None}, TypeError, "kernel"),
    ({"kernel": [0, 1]}, ValueError, "kernel"),
    ({"kernel": [2, 2, 2]}, ValueError, "kernel"),
    ({"kernel": [20, 2]}, ValueError, r"kernel.*20.*exceeds"),
    ({"dilations": [0, 1]}, ValueError, "dilations"),
    ({"dilations": [1]}, ValueError, "dilations"),
    ({"pads_begin": None}, TypeError, "pads_begin.*required"),
    ({"pads_end": None}, TypeError, "pads_end.*required"),
    ({"pads_begin": [0, -1]}, ValueError, "pads_begin"),
    ({"pads_end": [0, 0, 0, 0]}, ValueError, "pads_end"),
    ({"rounding_type": "round"}, ValueError, "rounding_type.*round"),
    ({"rounding_type": "ceil_torch"}, ValueError, "rounding_type.*14"),
    ({"rounding_type": 1}, TypeError, "rounding_type"),
    ({"auto_pad": "notset"}, ValueError, "auto_pad.*notset"),
    ({"auto_pad": ""}, ValueError, "auto_pad"),
    ({"auto_pad": 0}, TypeError, "auto_pad"),
    ({"index_element_type": "i16"}, ValueError, "index_element_type.*i16"),
    ({"index_element_type": "I64"}, ValueError, "index_element_type"),
    ({"index_element_type": np.int64}, TypeError, "index_element_type"),
    ({"axis": 4}, ValueError, r"axis.*\[-4, 3\].*4"),
    ({"axis": -5}, ValueError, "axis"),
    ({"axis": 1.0}, TypeError, "axis"),
    ({"layout": "HWC"}, ValueError, "layout"),
    ({"ceil_rule": "drop"}, ValueError, "ceil_rule"),
    ({"pads_value": 0}, TypeError, "pads_value"),
]


@pytest.mark.parametrize("change, error, match", BAD_ATTRIBUTES)
def test_bad_attributes(change, error, match):
    with pytest.raises(error, match=match):
        fastpool.openvino.max_pool(X, **(EXPLICIT | change))


@pytest.mark.parametrize(
    "change",
    [{"dilations": [1, 1]}, {"index_element_type": "i64"}, {"axis": 0}],
)
def test_version_1_knows_no_later_attribute(change):
    (name,) = change
    with pytest.raises(ValueError, match=f"{name}.*version 1"):
        fastpool.openvino.max_pool(X, version=1, **EXPLICIT, **change)


# ------------------------------------------------------------------------------- read_layer

DATA = 'auto_pad="explicit" kernel="3,2" strides="2,1" pads_begin="1,0" pads_end="2,1"'


def xml(data=DATA, head='type="MaxPool" version="opset8"', rest=""):
    return f"<layer {head}><data {data}/>{rest}</layer>"


def test_layer_remembers():
    text = xml(
        DATA + ' dilations="1, 2" axis="-2" index_element_type="i32" rounding_type="ceil"',
        'id="7" name="pool" type="MaxPool" version="opset8"',
        """
        <input><port id="0" precision="FP32"><dim>2</dim><dim>3</dim><dim>7</dim><dim>-1</dim>
        </port></input>
        <output><port id="1"><dim>2</dim></port><port id="2"/></output>""",
    )
    layer = fastpool.openvino.read_layer(text)
    assert layer.name == "pool"
    assert layer.version == 8
    assert layer.attributes == {
        "auto_pad": "explicit",
        "kernel": (3, 2),
        "strides": (2, 1),
        "pads_begin": (1, 0),
        "pads_end": (2, 1),
        "dilations": (1, 2),
        "axis": -2,
        "index_element_type": "i32",
        "rounding_type": "ceil",
    }
    assert layer.input_dims == ((2, 3, 7, -1),)
    assert layer.output_dims == ((2,), ())
    assert pickle.loads(pickle.dumps(layer)) == layer

    expected = fastpool.openvino.max_pool(X, **layer.attributes)
    assert_same_outputs(layer(X), expected)
    # The declared dimensions do not bind.
    assert_same_outputs(layer(X[:1]), (output[:1] for output in expected))


def test_layer_takes_the_switches():
    layer = fastpool.openvino.read_layer(xml())
    last = np.ascontiguousarray(np.moveaxis(X, 1, -1))
    switches = {"layout": "NHWC", "index_layout": "NHWC", "nan": "ignore", "num_threads": 1}
    expected = fastpool.openvino.max_pool(last, **EXPLICIT, **switches)
    y, indices = (np.empty_like(output) for output in expected)
    got = layer(last, **switches, out=y, out_indices=indices)
    assert got[0] is y and got[1] is indices
    assert_same_outputs(got, expected)
    with pytest.raises(TypeError, match="dilations"):
        layer(X, dilations=[1, 1])


def test_layer_ceil_rule():
    text = xml('kernel="1" strides="2" auto_pad="valid" rounding_type="ceil"')
    layer = fastpool.openvino.read_layer(text)
    x = np.array([[[1.0, 2.0]]])
    assert layer(x)[0].tolist() == [[[1, -np.inf]]]
    assert layer(x, ceil_rule="clip")[0].tolist() == [[[1]]]


def test_layer_from_an_element():
    element = ElementTree.fromstring(f"<net><layers>{xml()}</layers></net>").find(".//layer")
    layer = fastpool.openvino.read_layer(element)
    assert layer == fastpool.openvino.read_layer(xml())


def test_layer_text_with_a_declaration():
    text = '<?xml version="1.0" encoding="latin-1"?>\n<!-- é -->' + xml()
    assert fastpool.openvino.read_layer(text) == fastpool.openvino.read_layer(xml())


OUTPUT = "<output><port><dim>1</dim></port></output>"
TWO_OUTPUTS = "<output><port/><port/></output>"


@pytest.mark.parametrize(
    "text, version",
    [
        (xml(head='type="MaxPool" version="opset1"'), 1),
        (xml(head='type="MaxPool" version="opset7"'), 1),
        (xml(head='type="MaxPool" version="opset8"'), 8),
        (xml(head='type="MaxPool" version="opset8"', rest=OUTPUT), 8),
        (xml(head='type="MaxPool" version="opset13"'), 8),
        (xml(head='type="MaxPool" version="opset14"'), 14),
        (xml(head='type="MaxPool" version="opset16"'), 14),
        (xml(head='type="MaxPool"', rest=OUTPUT), 1),
        (xml(head='type="MaxPool"', rest=TWO_OUTPUTS), 8),
        (xml(head='type="MaxPool"'), 8),
        (xml(DATA + ' axis="0"', head='type="MaxPool"', rest=OUTPUT), 8),
    ],
)
def test_layer_version(text, version):
    assert fastpool.openvino.read_layer(text).version == version


HOSTILE_LISTS = [
    "",
    " ",
    ",",
    "2,",
    ",2",
    "2,,2",
    "2;2",
    "2 2",
    "2,2,2,2",
    "2," * 100_000 + "2",
    "+2,2",
    "2.0,2",
    "2e1,2",
    "0x2,2",
    "1_0,2",
    "٢,2",
    "２,2",
    "2,two",
    "2,True",
    "2,None",
    "2,nan",
    "2,%d",
    "--2,2",
    "-2,2",
    "2," + "9" * 10_000,
    "__import__('os'),2",
]


@pytest.mark.parametrize("name", ["kernel", "strides", "pads_begin", "pads_end", "dilations"])
@pytest.mark.parametrize("text", HOSTILE_LISTS, ids=lambda text: text[:12] + f" ({len(text)})")
def test_hostile_list(name, text):
    attributes = {
        "kernel": "3,2",
        "strides": "2,1",
        "pads_begin": "1,0",
        "pads_end": "2,1",
        "dilations": "1,1",
        name: text,
    }
    data = " ".join(f'{key}="{value}"' for key, value in attributes.items())
    with pytest.raises(ValueError, match=name) as caught:
        fastpool.openvino.read_layer(xml(data))
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "data, match",
    [
        ('kernel="2,2" strides="2,2"', "pads_begin.*required"),
        ('kernel="2,2" strides="2,2" pads_begin="0,0"', "pads_end.*required"),
        ('strides="2,2" auto_pad="valid"', "kernel.*required"),
        ('kernel="2,2" auto_pad="valid"', "strides.*required"),
        ('kernel="2,2" strides="2" auto_pad="valid"', "strides"),
        ('kernel="0,2" strides="2,2" auto_pad="valid"', "kernel"),
        ('kernel="2,2,2,2" strides="2,2,2,2" auto_pad="valid"', "kernel"),
        (DATA + ' axis="4"', "axis"),
        (DATA + ' axis="1,1"', "axis"),
        (DATA + ' axis=""', "axis"),
        (DATA + ' index_element_type="f32"', "index_element_type"),
        (DATA + ' rounding_type="ceil_torch"', "rounding_type"),
        (DATA + ' rounding_type=""', "rounding_type"),
        (DATA.replace("explicit", "explicit "), "auto_pad"),
        (DATA + ' pads_value="0"', "pads_value"),
        (DATA + " " + "q" * 100_000 + '="0"', "unknown"),
    ],
)
def test_bad_data(data, match):
    with pytest.raises(ValueError, match=match) as caught:
        fastpool.openvino.read_layer(xml(data))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "text, match",
    [
        ("", "well-formed"),
        ("layer", "well-formed"),
        ("<layer", "well-formed"),
        (xml() + xml(), "well-formed"),
        (xml()[:-1], "well-formed"),
        (xml() + "\0", "well-formed"),
        (xml(DATA + ' axis="\ud800"'), "well-formed"),
        (xml(DATA + ' axis="&boom;"'), "well-formed"),
        (xml(DATA + ' strides="1,1"'), "well-formed"),
        ("<data/>", "layer"),
        ("<net>" + xml() + "</net>", "net"),
        (xml(head='type="ROIPooling"'), "ROIPooling"),
        (xml(head=""), "MaxPool"),
        ('<layer type="MaxPool"/>', "data"),
        (f'<layer type="MaxPool"><data {DATA}/><data {DATA}/></layer>', "data"),
        ('<layer xmlns="urn:x" type="MaxPool"/>', "layer"),
        (xml(head='type="MaxPool" version="8"'), "version"),
        (xml(head='type="MaxPool" version="opset0"'), "version"),
        (xml(head='type="MaxPool" version="opset８"'), "version"),
        (xml(head=f'type="MaxPool" version="opset{"9" * 9999}"'), "version"),
        (xml(rest="<input><port><dim>x</dim></port></input>"), "dim"),
        (xml(rest="<input><port><dim/></port></input>"), "dim"),
        (xml(rest="<output><port><dim>1.5</dim></port></output>"), "dim"),
        (xml(rest="<output><port><dim>" + "9" * 99999 + "</dim></port></output>"), "dim"),
    ],
    ids=lambda text: text[:30],
)
def test_bad_xml(text, match):
    with pytest.raises(ValueError, match=match) as caught:
        fastpool.openvino.read_layer(text)
    assert len(str(caught.value)) < 300


BOMB = '<!DOCTYPE layer [<!ENTITY a "2"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE layer>" + xml(),
        '<!DOCTYPE layer SYSTEM "file:///etc/passwd">' + xml(),
        '<!DOCTYPE layer PUBLIC "a" "http://localhost/a.dtd">' + xml(),
        '<?xml version="1.0"?>\n<!-- x --><!DOCTYPE\nlayer\n>' + xml(),
        BOMB + xml(DATA + ' axis="&b;"'),
        '<!DOCTYPE layer [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + xml(rest="<x>&a;</x>"),
        '<!DOCTYPE layer [<!ENTITY % a "b">]>' + xml(),
        '<!DOCTYPE layer [<!ATTLIST data axis CDATA "1">]>' + xml(),
    ],
)
def test_document_types_are_refused(text):
    with pytest.raises(ValueError, match="document type"):
        fastpool.openvino.read_layer(text)


def test_deep_nesting():
    text = xml(rest="<a>" * 37_000 + "</a>" * 37_000)
    assert fastpool.openvino.read_layer(text).version == 8


@pytest.mark.parametrize("layer", [None, 3, b"<layer/>", X, [xml()], {"type": "MaxPool"}])
def test_not_a_layer(layer):
    with pytest.raises(TypeError, match="layer"):
        fastpool.openvino.read_layer(layer)
