"""Malicious models and indices are refused clearly, quickly, in little memory.

What is merely wrong is in test_bad_inputs.py and in the tests of the front ends; this is about
size, and about everything at once.
"""

import io
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
import fastpool
import fastpool.onnx
import fastpool.openvino
from cases import bounds
from configurations.strategies import hostile_pools
from fastpool import _reference
from fastpool._running import builds as running

X = np.arange(2 * 3 * 8 * 8, dtype=np.float32).reshape(2, 3, 8, 8)
Y, Z = fastpool.max_pool(X, 2, strides=2, return_indices=True)
POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}
OPENVINO = {"kernel": [2, 2], "strides": [2, 2], "pads_begin": [0, 0], "pads_end": [0, 0]}


def refused(call, *arguments, match=None, exceptions=(TypeError, ValueError), **attributes):
    """The error is one for people: it begins with the argument, and is short."""
    with bounds(), pytest.raises(exceptions, match=match) as raised:
        call(*arguments, **attributes)
    assert len(str(raised.value)) < 500
    assert type(raised.value) in (TypeError, ValueError)


# ---------------------------------------------------------------------------------------- any call

FUNCTIONS = {
    "max_pool": (fastpool.max_pool, (X,), POOL),
    "onnx.max_pool": (fastpool.onnx.max_pool, (X,), POOL),
    "openvino.max_pool": (fastpool.openvino.max_pool, (X,), OPENVINO),
    "openvino.avg_pool": (fastpool.openvino.avg_pool, (X,), OPENVINO | {"exclude_pad": False}),
    "openvino.adaptive_avg_pool": (fastpool.openvino.adaptive_avg_pool, (X,), {"output_size": 2}),
    "openvino.adaptive_max_pool": (fastpool.openvino.adaptive_max_pool, (X,), {"output_size": 2}),
    "max_unpool": (fastpool.max_unpool, (Y, Z), POOL),
    "onnx.max_unpool": (fastpool.onnx.max_unpool, (Y, Z), POOL),
    "onnx.average_pool": (fastpool.onnx.average_pool, (X,), POOL),
    "onnx.qlinear_average_pool": (
        fastpool.onnx.qlinear_average_pool,
        (X.astype(np.uint8), 0.5, 3, 0.25, 7),
        POOL,
    ),
    "onnx.global_average_pool": (fastpool.onnx.global_average_pool, (X,), {}),
    "lp_pool": (fastpool.lp_pool, (X,), POOL | {"p": 3}),
    "onnx.lp_pool": (fastpool.onnx.lp_pool, (X,), POOL),
    "onnx.global_lp_pool": (fastpool.onnx.global_lp_pool, (X,), {}),
}
LISTS = ["kernel_shape", "strides", "pads", "dilations", "output_shape", "activation_params"]
LISTS += ["kernel", "pads_begin", "pads_end", "output_size"]


def functions_with(names):
    """(function, argument) for the arguments of these names that it has."""
    for function, (call, *_) in FUNCTIONS.items():
        for name in call.__kwdefaults__ or {}:
            if name in names:
                yield function, name
        for name in names:
            if name in call.__code__.co_varnames[: call.__code__.co_argcount]:
                yield function, name


LONG = {
    "a list": [1] * 3_000_000,
    "a tuple of large integers": (2**1000,) * 1_000_000,
    "an array": np.ones(10_000_000, np.int8),
    "a view of one element": np.broadcast_to(np.int64(1), 2**40),
    "a range": range(2**60),
    "bytes": b"\xff" * 30_000_000,
    "text": "1," * 15_000_000,
    "an integer": 1 << 10_000_000,
    "lists in lists": [[[[[1] * 1_000_000]]]] * 3,
    "long integers in lists": [[1 << 100_000], [1 << 100_000]],
}


@pytest.mark.parametrize("what", LONG)
@pytest.mark.parametrize(("function", "name"), sorted(set(functions_with(LISTS))))
def test_gigantic_lists(function, name, what):
    call, arrays, attributes = FUNCTIONS[function]
    if name == "activation_params":
        attributes = {**attributes, "activation": "Clip"}
    refused(call, *arrays, match=f"^{name}", **{**attributes, name: LONG[what]})


@pytest.mark.parametrize("what", LONG)
def test_gigantic_shapes(what):
    refused(fastpool.plan_max_pool, LONG[what], "float32", 2, match="^input_shape")


NAMES = ["auto_pad", "ceil_rule", "layout", "nan", "activation", "index_dtype", "index_layout"]
NAMES += ["index_space", "rounding_type", "index_element_type", "pads_with_auto_pad"]
NAMES += ["beyond", "numerics"]


@pytest.mark.parametrize("what", ["bytes", "text", "a list", "an integer", "lists in lists"])
@pytest.mark.parametrize(("function", "name"), sorted(set(functions_with(NAMES))))
def test_gigantic_names(function, name, what):
    call, arrays, attributes = FUNCTIONS[function]
    refused(call, *arrays, match=name, **{**attributes, name: LONG[what]})


HOSTILE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.integers(),
    st.sampled_from([s * (2**n + d) for s in (1, -1) for n in (31, 40, 63, 64) for d in (-1, 0)]),
    st.floats(),
    st.sampled_from(["", "NOTSET", "VALID", "SAME_UPPER", "valid", "NHWC", "Clip", "ceil", "i32"]),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.sampled_from([np.int8(2), np.float32(2), np.array([2, 2]), np.array(2), np.zeros((2, 2))]),
)
VALUES = st.one_of(
    HOSTILE,
    st.lists(HOSTILE, max_size=5),
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    st.lists(st.lists(HOSTILE, max_size=2), max_size=3),
)


@pytest.mark.parametrize("function", FUNCTIONS)
@settings(max_examples=100)
@given(data=st.data())
def test_any_attributes(function, data):
    """A result, or one of three errors; MemoryError where a legal result has no room."""
    call, arrays, attributes = FUNCTIONS[function]
    names = sorted({*call.__kwdefaults__, *attributes} - {"out", "out_indices"})
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    attributes = {**attributes, **{name: data.draw(VALUES, label=name) for name in chosen}}
    with bounds():
        try:
            call(*arrays, **attributes)
        except (TypeError, ValueError, MemoryError) as error:
            assert type(error) is not UnicodeError
            assert len(str(error)) < 500


def test_results_larger_than_the_machine():
    """ValueError where no machine has so much, MemoryError where this one may not: at once."""
    for pads in (2**40, 2**62, 2**63 - 1, 2**63, 2**64):
        for call, names in (
            (fastpool.max_pool, {"kernel_shape": [1, 1], "pads": [pads] * 4}),
            (fastpool.onnx.max_pool, {"kernel_shape": [1, 1], "pads": [pads] * 4}),
            (fastpool.onnx.average_pool, {"kernel_shape": [1, 1], "pads": [pads] * 4}),
            (
                fastpool.openvino.max_pool,
                {"kernel": [1, 1], "strides": [1, 1], "pads_begin": [pads] * 2, "pads_end": [0, 0]},
            ),
        ):
            with bounds(), pytest.raises((ValueError, MemoryError)):
                call(X, **names)
    for strides in (2**20, 2**31, 2**40, 2**62, 2**63):
        for call in (fastpool.max_unpool, fastpool.onnx.max_unpool):
            with bounds(), pytest.raises((ValueError, MemoryError)):
                call(Y, Z, kernel_shape=[2, 2], strides=[strides] * 2)
            with bounds(), pytest.raises((ValueError, MemoryError)):
                call(Y, Z, output_shape=[2, 3, strides, strides], **POOL)


@settings(max_examples=100)
@given(case=hostile_pools())
def test_legal_attributes_of_any_size_need_little(case):
    x = case.x()
    with bounds():
        fastpool.max_pool(x, case.kernel_shape, return_indices=True, **case.attributes)


# ----------------------------------------------------------------------------------- nodes of ONNX

ONNX_VALUES = {
    "float": 2.0,
    "floats": [2.0, 2.0],
    "nan": [math.nan, 2.0],
    "infinity": math.inf,
    "text": "2,2",
    "texts": ["2", "2"],
    "int": 2,
    "one int": [2],
    "many ints": [1] * 1_000_000,
    "zeros": [0, 0],
    "negative": [-1, -1],
    "least": [-(2**63)] * 2,
    "largest": [2**63 - 1] * 2,
    "2^40": [2**40] * 2,
    "no ints": [],
}


@pytest.mark.parametrize("what", ONNX_VALUES)
@pytest.mark.parametrize("name", ["kernel_shape", "strides", "pads", "dilations"])
@pytest.mark.parametrize("operator", ["MaxPool", "MaxUnpool"])
def test_attributes_of_nodes(operator, name, what):
    """As they come out of a model, by the onnx package's own reading."""
    helper = pytest.importorskip("onnx.helper")
    onnx = pytest.importorskip("onnx")
    if operator == "MaxUnpool" and name == "dilations":
        pytest.skip("MaxUnpool has none")
    value = ONNX_VALUES[what]
    if what == "no ints":
        attribute = onnx.AttributeProto(name=name, type=onnx.AttributeProto.INTS)
    else:
        attribute = helper.make_attribute(name, value)
    attributes = POOL | {name: helper.get_attribute_value(attribute)}
    arrays = (X,) if operator == "MaxPool" else (Y, Z)
    call = fastpool.onnx.max_pool if operator == "MaxPool" else fastpool.onnx.max_unpool
    refused(call, *arrays, match="^(kernel_shape|strides|pads|dilations|output)", **attributes)


@pytest.mark.parametrize("kind", ["tensor", "graph", "type", "sparse", "tensors", "graphs"])
def test_attributes_that_are_no_numbers(kind):
    onnx = pytest.importorskip("onnx")
    helper = pytest.importorskip("onnx.helper")
    tensor = helper.make_tensor("t", onnx.TensorProto.INT64, [2], [2, 2])
    graph = helper.make_graph([], "g", [], [])
    sparse = helper.make_sparse_tensor(tensor, tensor, [9])
    of_type = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [1])
    values = {"tensor": tensor, "graph": graph, "type": of_type, "sparse": sparse}
    values |= {"tensors": [tensor, tensor], "graphs": [graph, graph]}
    value = helper.get_attribute_value(helper.make_attribute("kernel_shape", values[kind]))
    for name in ("kernel_shape", "strides", "pads", "dilations", "ceil_mode", "auto_pad"):
        refused(fastpool.onnx.max_pool, X, match=name, **POOL | {name: value})


def test_absent_and_unknown_attributes():
    refused(fastpool.onnx.max_pool, X, match="kernel_shape")
    refused(fastpool.onnx.max_pool, X, match="kernel_shape", kernel_shape=None)
    refused(fastpool.onnx.max_unpool, Y, Z, match="kernel_shape")
    refused(fastpool.openvino.max_pool, X, match="kernel", strides=[2, 2])
    refused(fastpool.openvino.max_pool, X, match="pads_begin", kernel=[2, 2], strides=[2, 2])
    refused(fastpool.openvino.avg_pool, X, match="exclude_pad", **OPENVINO)
    refused(fastpool.openvino.adaptive_avg_pool, X, match="output_size")
    many = {f"attribute_{i}": i for i in range(100_000)}
    for call, arrays, attributes in FUNCTIONS.values():
        refused(call, *arrays, match="attribute_", **attributes, **many)


# --------------------------------------------------------------------------------- XML of OpenVINO

DATA = 'kernel="2,2" strides="2,2" pads_begin="0,0" pads_end="0,0"'


def layer(data=DATA, before="", inside=""):
    return f'{before}<layer type="MaxPool"><data {data}/>{inside}</layer>'


ENTITIES = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10 if i else "2" * 1000}">' for i in range(10))
XML = {
    "entity expansion": layer('kernel="&e9;"', f"<!DOCTYPE layer [{ENTITIES}]>"),
    "quadratic expansion": layer(
        f'kernel="{"&e;" * 50_000}"', f'<!DOCTYPE layer [<!ENTITY e "{"2" * 50_000}">]>'
    ),
    "an external entity": layer(
        inside="<x>&e;</x>", before='<!DOCTYPE layer [<!ENTITY e SYSTEM "file:///dev/zero">]>'
    ),
    "an external document type": layer(before='<!DOCTYPE layer SYSTEM "file:///dev/zero">'),
    "parameter entities": layer(
        before='<!DOCTYPE layer [<!ENTITY % a SYSTEM "file:///dev/zero"> %a;]>'
    ),
    "an entity of no document type": layer('kernel="&e;"'),
    "many attributes": layer(" ".join(f'a{i}="{i}"' for i in range(50_000))),
    "many attributes twice": layer(DATA + f" {DATA}"),
    "a long name": layer(f'{"k" * 250_000}="2"'),
    "a long list": layer(DATA.replace("2,2", "2," * 120_000 + "2", 1)),
    "a long number": layer(DATA.replace("2,2", "9" * 250_000, 1)),
    "a long version": '<layer type="MaxPool" version="opset' + "8" * 250_000 + '"/>',
    "many layers of data": layer(inside=f"<data {DATA}/>" * 3_500),
    "more text than any layer": layer(inside="<x/>" * 10_000_000),
    "more of one comment": layer(inside=f"<!--{'x' * 30_000_000}-->"),
    "ports without end": layer(inside="<input>" + "<port>" * 40_000),
    "not integers": layer(DATA.replace("2,2", "2.0,2", 1)),
    "a dimension that is no integer": layer(inside="<input><port><dim>1e9</dim></port></input>"),
    "nothing but openings": "<a>" * 80_000,
    "NUL": layer().replace("2,2", "2,\0", 1),
}


@pytest.mark.parametrize("what", XML)
def test_xml(what):
    refused(fastpool.openvino.read_layer, XML[what], exceptions=ValueError)


@pytest.mark.parametrize("text", ["<x/>" * 60_000, "<x>" * 30_000 + "</x>" * 30_000])
def test_what_is_read_and_does_not_matter(text):
    with bounds():
        assert fastpool.openvino.read_layer(layer(inside=text)).version == 8


def model(inside, before=""):
    return f'{before}<net name="m" version="11"><layers>{inside}</layers></net>'


CONSTANT = """<layer id="1" name="w" type="Const" version="opset1">
    <data element_type="f32" shape="64, 3, 7" offset="0" size="5376" />
    <output><port id="0"><dim>64</dim><dim>3</dim><dim>7</dim></port></output></layer>"""
FILES = {
    "entity expansion": model(layer('kernel="&e9;"'), f"<!DOCTYPE net [{ENTITIES}]>"),
    "an external document type": model(layer(), '<!DOCTYPE net SYSTEM "file:///dev/zero">'),
    "openings": "<net>" * 1_000_000,
    "openings in a layer": model(layer(inside="<x>" * 1_000_000)),
    "a tag without end": model(f'<layer name="{"n" * 30_000_000}"/>'),
    "a comment without end": model(f"<!--{'x' * 30_000_000}-->"),
    "text without end": model("x" * 30_000_000),
    "a MaxPool layer without end": model(layer(inside="<x/>" * 5_000_000)),
    "MaxPool layers without end": model(layer() * 11_000),
    "a bad layer after others": model(layer() + CONSTANT + layer('kernel="2"')),
    "an end too early": model(layer())[:-5],
    "something after the end": model(layer()) + "<net/>",
    "NUL": model(layer() + "\0"),
    "no model": "<model/>",
    "no encoding": '<?xml version="1.0" encoding="none"?>' + model(""),
    "nothing": "",
}


@pytest.mark.parametrize("what", FILES)
def test_files(what):
    file = io.BytesIO(FILES[what].encode())
    refused(fastpool.openvino.read_layers, file, match="^(file|layer)", exceptions=ValueError)


def test_files_are_read_in_little_memory():
    file = io.BytesIO(
        model(
            layer() + CONSTANT * 20_000 + layer('kernel="3" auto_pad="valid" strides="1"')
        ).encode()
    )
    with bounds():
        layers = fastpool.openvino.read_layers(file)
    assert [found.attributes["kernel"] for found in layers] == [(2, 2), (3,)]


@pytest.mark.parametrize("value", [2, None, [2, 2], b"2,2", 2.0])
@pytest.mark.parametrize("name", ["kernel", "strides", "auto_pad", "axis"])
def test_elements_that_hold_other_than_text(name, value):
    from xml.etree.ElementTree import fromstring

    element = fromstring(layer())
    element.find("data").set(name, value)
    refused(fastpool.openvino.read_layer, element, match=f"^{name}", exceptions=TypeError)


@pytest.mark.parametrize("number", [2**31, 2**40, 2**62, 2**63 - 1, 2**63, 10**19 - 1])
@pytest.mark.parametrize("name", ["kernel", "strides", "pads_begin", "pads_end", "dilations"])
def test_large_numbers_in_layers(name, number):
    attributes = {"kernel": "2,2", "strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0"}
    attributes[name] = f"{number},2"
    pool = fastpool.openvino.read_layer(
        layer(" ".join(f'{key}="{value}"' for key, value in attributes.items()))
    )
    names = {"kernel": "kernel_shape", "pads_begin": "pads", "pads_end": "pads"}
    refused(pool, X, match=rf"^{names.get(name, name)}.* at most 2\*\*31 - 1 = {2**31 - 1}, got")


# ---------------------------------------------------------------------------- indices of unpooling

ENDS = {
    "int64": [-(2**63), -(2**63) + 1, -(2**32), -1, 2**31, 2**32, 2**62, 2**63 - 1],
    "int32": [-(2**31), -(2**31) + 1, -1, 2**31 - 1],
}


@settings(max_examples=100)
@given(data=st.data())
def test_indices_of_an_attacker(data):
    """Right, or refused with nothing written: whatever the indices, the build and the threads."""
    layout = data.draw(st.sampled_from(["NCHW", "NHWC", "HW"]))
    shape = cases.array_shape(layout, 2, 3, (4, 5))
    dtype = data.draw(st.sampled_from(sorted(ENDS)))
    attributes = {"strides": 2, "layout": layout}
    if layout == "NHWC":
        attributes["index_layout"] = data.draw(st.sampled_from(["NCHW", "NHWC"]))
    if data.draw(st.booleans()):
        attributes["output_shape"] = cases.array_shape(layout, 2, 3, (9, 11))
        attributes["index_space"] = data.draw(st.sampled_from(["output", "inferred"]))
    larger = attributes.get("index_space") == "output"
    size = math.prod(cases.array_shape(layout, 2, 3, (9, 11) if larger else (8, 10)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    indices = rng.integers(0, data.draw(st.sampled_from([1, 7, size])), shape).astype(dtype)
    places = data.draw(st.lists(st.integers(0, indices.size - 1), max_size=3))
    ends = st.sampled_from([size - 1, size, size + 1, *ENDS[dtype]])
    for place in places:
        indices.reshape(-1)[place] = data.draw(ends)
    legal = bool(((indices >= 0) & (indices < size)).all())

    x = cases.values(shape, "int16", "bits", 0)
    if legal:
        expected = _reference.max_unpool(x, indices, 2, **attributes)
    out_shape = attributes.get("output_shape", cases.array_shape(layout, 2, 3, (8, 10)))
    for build in cases.BUILDS:
        for num_threads in (1, 3):
            out = np.full(out_shape, 7, np.int16)
            arguments = {"kernel_shape": 2, "out": out, "num_threads": num_threads, **attributes}
            with running.using(build):
                if legal:
                    fastpool.max_unpool(x, indices, **arguments)
                    cases.assert_same(out, expected, f"{build}, {num_threads} threads")
                else:
                    with pytest.raises(ValueError, match=r"^indices\["):
                        fastpool.max_unpool(x, indices, **arguments)
                    assert (out == 7).all()


# ------------------------------------------------------------------ whatever the error, out= stays


@pytest.mark.parametrize("function", FUNCTIONS)
def test_errors_leave_out_as_it_was(function, isa):
    call, arrays, attributes = FUNCTIONS[function]
    results = call(*arrays, **attributes)
    results = list(results) if isinstance(results, tuple) else [results]
    outs = [np.full_like(result, 7) for result in results]
    named = dict(zip(("out", "out_indices"), outs, strict=False))
    wrong = [(arrays, {**attributes, name: -99}) for name in call.__kwdefaults__]
    wrong += [(arrays, {**attributes, "out_indices": outs[0]}), (arrays, {"nonsense": 1})]
    wrong += [((array, *arrays[1:]), attributes) for array in (X[:1, :1, :1], X[0], None, "x", 1j)]
    wrong += [((arrays[0].astype(complex), *arrays[1:]), attributes)]
    if len(arrays) == 2:
        others = (Z[:1], Z - 10, Z + 10**6, Z.astype(np.uint8), Z[..., ::-1] * -1, None)
        wrong += [((Y, other), attributes) for other in others]
    for bad_arrays, bad in wrong:
        for num_threads in (1, 2):
            final = {"num_threads": num_threads, **named, **bad}
            with pytest.raises((TypeError, ValueError)):
                call(*bad_arrays, **final)
            assert all((out == 7).all() for out in outs), (bad_arrays, bad)


# --------------------------------------------------------------------- arrays that change in a call


class Reshaping:
    """An output whose export changes the shape of the input, after that was checked."""

    def __init__(self, x, shape, out):
        self.x, self.shape, self.out = x, shape, out

    def __dlpack_device__(self):
        return self.out.__dlpack_device__()

    def __dlpack__(self, **options):
        self.x.shape = self.shape
        return self.out.__dlpack__(**options)


def test_an_output_that_changes_the_shape_of_the_input():
    """Windows of any size took the new shape, and read past the end of the input."""
    x = np.zeros((1, 1, 8, 8), np.float32)
    for kernel, pads, strides in ((3, 1, 1), ((2**31 - 1, 1), (2**31 - 1, 0) * 2, (2**30, 1))):
        plan = fastpool.plan_max_pool(x.shape, x.dtype, kernel, pads=pads, strides=strides)
        expected = plan(x)
        out = np.full(plan.output_shape, 7, np.float32)
        plan(x, out=Reshaping(x, (1, 1, 2, 32), out))
        x.shape = (1, 1, 8, 8)
        assert np.array_equal(out, expected)


def test_an_output_that_changes_the_shape_of_values_to_unpool():
    x, indices = Y.copy(), Z.copy()
    expected = fastpool.max_unpool(Y, Z, 2, strides=2)
    out = np.full(expected.shape, 7, np.float32)
    fastpool.max_unpool(x, indices, 2, strides=2, out=Reshaping(x, (2, 3, 16), out))
    assert np.array_equal(out, expected)
