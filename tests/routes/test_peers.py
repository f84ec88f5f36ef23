"""fastpool gives what onnxruntime, OpenVINO and torch give where those follow their documents.

Each peer gets only cases that it answers correctly. Left out for all of them: windows without any
element, NaN indices and windows of the type's lowest value. The test of a peer says what else is
left out. Geometry is random with fixed seeds.
"""

import functools
import math
import random
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pytest

import fastpool
import fastpool.onnx
import fastpool.openvino
from cases import assert_same


class Geometry(NamedTuple):
    """One random pool: per spatial axis unless said otherwise."""

    shape: tuple  # of the whole input, N x C x spatial
    kernel: tuple
    strides: tuple
    dilations: tuple
    begins: tuple
    ends: tuple
    auto_pad: str  # ONNX's names
    ceil: bool

    @property
    def pads(self):
        return self.begins + self.ends

    def extents(self):
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))


def holds_element(geometry, ceil_rule="clip"):
    """Which windows hold an element, in the shape of a plane's output; None if one does not fit.

    Counted from the documents' formulas, not from fastpool's answers.
    """
    per_axis = []
    for axis, size in enumerate(geometry.shape[2:]):
        stride, extent = geometry.strides[axis], geometry.extents()[axis]
        if geometry.auto_pad.startswith("SAME"):
            outputs = math.ceil(size / stride)
            total = max((outputs - 1) * stride + extent - size, 0)
            begin = total // 2 if geometry.auto_pad == "SAME_UPPER" else total - total // 2
        else:
            explicit = geometry.auto_pad == "NOTSET"
            begin = geometry.begins[axis] if explicit else 0
            room = size + begin + (geometry.ends[axis] if explicit else 0) - extent
            if room < 0:
                return None
            outputs = (math.ceil if geometry.ceil else math.floor)(room / stride) + 1
            if geometry.ceil and ceil_rule == "clip" and (outputs - 1) * stride >= size + begin:
                outputs -= 1
        starts = stride * np.arange(outputs)[:, None] - begin
        taps = starts + geometry.dilations[axis] * np.arange(geometry.kernel[axis])
        per_axis.append(((taps >= 0) & (taps < size)).any(axis=1))
    return functools.reduce(np.logical_and.outer, per_axis)


def is_ordinary(geometry):
    """Whether every window fits the padded input and holds at least one element of it."""
    holds = holds_element(geometry)
    return holds is not None and holds.all()


def geometries(seed, count, *, accept=is_ordinary, symmetric=False, more_pads=0):
    """`count` random geometries that `accept` likes; pads below the kernel plus `more_pads`."""
    rng = random.Random(seed)
    found = []
    while len(found) < count:
        n = rng.choice((1, 2, 2, 3))
        largest = {1: 20, 2: 12, 3: 7}[n]

        def per_axis(low, high, n=n):
            return tuple(rng.randint(low, high) for _ in range(n))

        kernel = per_axis(1, 5)
        auto_pad = rng.choice(("NOTSET", "NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"))
        begins = ends = (0,) * n
        if auto_pad == "NOTSET":
            largest_pads = [k // 2 if symmetric else k - 1 + more_pads for k in kernel]
            begins = tuple(rng.randint(0, pad) for pad in largest_pads)
            ends = begins if symmetric else tuple(rng.randint(0, pad) for pad in largest_pads)
        geometry = Geometry(
            shape=(rng.randint(1, 2), rng.randint(1, 3), *per_axis(1, largest)),
            kernel=kernel,
            strides=per_axis(1, 4),
            dilations=rng.choice(((1,) * n, per_axis(1, 3))),
            begins=begins,
            ends=ends,
            auto_pad=auto_pad,
            ceil=rng.random() < 0.4,
        )
        if accept(geometry):
            found.append(geometry)
    return found


def sample(geometry, dtype, seed):
    """Small whole numbers, so that ties are common; never the lowest value of the type."""
    low = 1 if np.dtype(dtype).kind == "u" else -4
    return np.random.default_rng(seed).integers(low, 9, geometry.shape).astype(dtype)


# ------------------------------------------------------------------------------ onnxruntime


def onnx_session(op_type, inputs, output_types, attributes, opset=12):
    """An onnxruntime session of one node, or a skip where a package is missing."""
    onnx = pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    names = [f"output{i}" for i in range(len(output_types))]
    as_onnx = onnx.helper.np_dtype_to_tensor_dtype
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(op_type, list(inputs), names, **attributes)],
        "one node",
        [
            onnx.helper.make_tensor_value_info(name, as_onnx(array.dtype), array.shape)
            for name, array in inputs.items()
        ],
        [
            onnx.helper.make_tensor_value_info(name, as_onnx(np.dtype(dtype)), None)
            for name, dtype in zip(names, output_types, strict=True)
        ],
    )
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def onnxruntime_is_right(geometry):
    """Its SAME_* pooling forgets dilation, and crops the input where the stride is the larger."""
    if geometry.auto_pad.startswith("SAME") and (
        max(geometry.dilations) > 1
        or any(s > k for s, k in zip(geometry.strides, geometry.kernel, strict=True))
    ):
        return False
    return is_ordinary(geometry)


def onnx_attributes(geometry):
    attributes = {
        "kernel_shape": geometry.kernel,
        "strides": geometry.strides,
        "dilations": geometry.dilations,
        "ceil_mode": int(geometry.ceil),
        "auto_pad": geometry.auto_pad,
    }
    if geometry.auto_pad == "NOTSET":
        attributes["pads"] = geometry.pads
    return attributes


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint8"])
def test_onnxruntime_max_pool(dtype):
    for seed, geometry in enumerate(geometries(1, 80, accept=onnxruntime_is_right)):
        x = sample(geometry, dtype, seed)
        attributes = onnx_attributes(geometry) | {"storage_order": seed % 2}
        n_outputs = 1 + (seed % 3 > 0)
        session = onnx_session("MaxPool", {"x": x}, [dtype, "int64"][:n_outputs], attributes)
        expected = session.run(None, {"x": x})
        got = fastpool.onnx.max_pool(x, **attributes, n_outputs=n_outputs)
        for output, same in zip(got if n_outputs == 2 else (got,), expected, strict=True):
            assert_same(output, same)


def unpooled(geometry, sizes):
    """The spatial extents that MaxUnpool infers from an input of spatial extents `sizes`."""
    windows = zip(
        *(sizes, geometry.strides, geometry.kernel, geometry.begins, geometry.ends), strict=True
    )
    return tuple((size - 1) * s + k - begin - end for size, s, k, begin, end in windows)


def can_be_unpooled(geometry):
    """MaxUnpool has pads, but neither padding modes, nor dilation, nor rounding."""
    plain = geometry.auto_pad == "NOTSET" and max(geometry.dilations) == 1 and not geometry.ceil
    return plain and is_ordinary(geometry)


def test_onnxruntime_max_unpool_to_the_input():
    """Indices counted in the result, onnxruntime's reading: an unpool undoes the pool.

    Left out: pads that leave nothing of an inferred extent. It refuses them even with a shape.
    """

    def accept(geometry):
        return (
            can_be_unpooled(geometry) and min(unpooled(geometry, holds_element(geometry).shape)) > 0
        )

    for seed, geometry in enumerate(geometries(2, 40, accept=accept)):
        x = sample(geometry, "float32", seed)
        pool = {"kernel_shape": geometry.kernel, "strides": geometry.strides, "pads": geometry.pads}
        y, indices = fastpool.onnx.max_pool(x, **pool, n_outputs=2)
        inputs = {"x": y, "i": indices, "shape": np.array(x.shape)}
        (expected,) = onnx_session("MaxUnpool", inputs, ["float32"], pool).run(None, inputs)
        assert_same(
            fastpool.onnx.max_unpool(y, indices, x.shape, **pool, index_space="output"), expected
        )


def test_onnxruntime_max_unpool_repeated_indices():
    """Any indices at all, repeated ones too: the last in row-major order wins."""

    def accept(geometry):
        return min(unpooled(geometry, geometry.shape[2:])) > 0

    rng = np.random.default_rng(3)
    for geometry in geometries(3, 60, accept=accept):
        pool = {"kernel_shape": geometry.kernel, "strides": geometry.strides, "pads": geometry.pads}
        size = math.prod(geometry.shape[:2] + unpooled(geometry, geometry.shape[2:]))
        x = rng.standard_normal(geometry.shape).astype(np.float32)
        indices = rng.integers(0, size, geometry.shape)
        inputs = {"x": x, "i": indices}
        (expected,) = onnx_session("MaxUnpool", inputs, ["float32"], pool).run(None, inputs)
        assert_same(fastpool.onnx.max_unpool(x, indices, **pool), expected)


def averages(geometry, include):
    """The attributes of `fastpool.avg_pool`."""
    pads = {"pads": geometry.pads} if geometry.auto_pad == "NOTSET" else {}
    attributes = {"auto_pad": geometry.auto_pad, "count_include_pad": include, **pads}
    names = ("kernel", "strides", "dilations", "ceil")
    native = ("kernel_shape", "strides", "dilations", "ceil_mode")
    values = (getattr(geometry, name) for name in names)
    return {**attributes, **dict(zip(native, values, strict=True))}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_onnxruntime_average_pool(dtype):
    """Of small whole numbers, whose sums are exact in any order."""
    for seed, geometry in enumerate(geometries(4, 40, accept=onnxruntime_is_right)):
        x = sample(geometry, dtype, seed)
        attributes = onnx_attributes(geometry) | {"count_include_pad": seed % 2}
        session = onnx_session("AveragePool", {"x": x}, [dtype], attributes, opset=22)
        (expected,) = session.run(None, {"x": x})
        assert_same(fastpool.avg_pool(x, **averages(geometry, bool(seed % 2))), expected)


# --------------------------------------------------------------------------------- OpenVINO

OPENVINO_AUTO_PAD = {
    "NOTSET": "explicit",
    "VALID": "valid",
    "SAME_UPPER": "same_upper",
    "SAME_LOWER": "same_lower",
}


def openvino_attributes(geometry, version, seed):
    attributes = {
        "strides": geometry.strides,
        "pads_begin": geometry.begins,
        "pads_end": geometry.ends,
        "kernel": geometry.kernel,
        "auto_pad": OPENVINO_AUTO_PAD[geometry.auto_pad],
        "rounding_type": "ceil" if geometry.ceil else "floor",
    }
    if version > 1:
        rank = len(geometry.shape)
        attributes["dilations"] = geometry.dilations
        attributes["axis"] = seed % (2 * rank) - rank
        attributes["index_element_type"] = ("i64", "i32")[seed % 2]
    if version == 14 and geometry.ceil and seed % 2:
        attributes["rounding_type"] = "ceil_torch"
    return attributes


def openvino_model(shape, dtype, version, attributes):
    """An OpenVINO model of one MaxPool."""
    openvino = pytest.importorskip("openvino")
    opset = getattr(openvino, f"opset{version}")
    parameter = opset.parameter(shape, np.dtype(dtype))
    arguments = {name: list(v) if isinstance(v, tuple) else v for name, v in attributes.items()}
    arguments["kernel_shape"] = arguments.pop("kernel")
    return openvino.Model(opset.max_pool(parameter, **arguments).outputs(), [parameter])


def run_openvino(model, x):
    """The outputs of an OpenVINO model on the CPU, in order."""
    openvino = pytest.importorskip("openvino")
    options = {"INFERENCE_NUM_THREADS": "1", "INFERENCE_PRECISION_HINT": "f32"}
    return list(openvino.Core().compile_model(model, "CPU", options)(x).values())


def openvino_geometries(seed, count, version):
    """Left out: SAME_* rounded up with a stride beyond the window, where it adds a window."""

    def accept(geometry):
        if version == 1 and max(geometry.dilations) > 1:
            return False
        beyond = any(s > e for s, e in zip(geometry.strides, geometry.extents(), strict=True))
        if geometry.auto_pad.startswith("SAME") and geometry.ceil and beyond:
            return False
        return holds_element(geometry) is not None

    return geometries(seed, count, accept=accept, more_pads=2)


def assert_same_as_openvino(got, expected, geometry, attributes):
    """All shapes, and all windows that hold an element: for the others OpenVINO has -FLT_MAX."""
    ceil_rule = "clip" if attributes["rounding_type"] == "ceil_torch" else "keep"
    holds = holds_element(geometry, ceil_rule)
    for output, same in zip(got if isinstance(got, tuple) else (got,), expected, strict=True):
        assert output.shape == same.shape == (*geometry.shape[:2], *holds.shape)
        assert_same(output[..., holds], same[..., holds])


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8", "int32"])
@pytest.mark.parametrize("version", [1, 8, 14])
def test_openvino_max_pool(version, dtype):
    for seed, geometry in enumerate(openvino_geometries(10 + version, 12, version)):
        x = sample(geometry, dtype, seed)
        attributes = openvino_attributes(geometry, version, seed)
        expected = run_openvino(openvino_model(x.shape, dtype, version, attributes), x)
        got = fastpool.openvino.max_pool(x, version=version, **attributes)
        assert_same_as_openvino(got, expected, geometry, attributes)


@pytest.mark.parametrize("version", [1, 8, 14])
def test_openvino_layer_as_openvino_writes_it(version, tmp_path):
    """read_layer on the XML of a serialised model."""
    openvino = pytest.importorskip("openvino")
    for seed, geometry in enumerate(openvino_geometries(20 + version, 8, version)):
        x = sample(geometry, "float32", seed)
        attributes = openvino_attributes(geometry, version, seed)
        model = openvino_model(x.shape, "float32", version, attributes)
        openvino.serialize(model, tmp_path / "model.xml", tmp_path / "model.bin")
        (element,) = ElementTree.parse(tmp_path / "model.xml").findall(".//layer[@type='MaxPool']")
        expected = run_openvino(model, x)
        for source in (element, ElementTree.tostring(element, encoding="unicode")):
            layer = fastpool.openvino.read_layer(source)
            assert layer.version == version
            assert layer.input_dims == (x.shape,)
            assert layer.output_dims == tuple(output.shape for output in expected)
            assert_same_as_openvino(layer(x), expected, geometry, attributes)


def test_openvino_average_pool():
    """It counts what is beyond the padding as soon as there is padding anywhere."""

    def accept(geometry):
        same_and_ceil = geometry.auto_pad.startswith("SAME") and geometry.ceil
        return max(geometry.dilations) == 1 and not same_and_ceil and is_ordinary(geometry)

    opset = pytest.importorskip("openvino.opset14")
    openvino = pytest.importorskip("openvino")
    for seed, geometry in enumerate(geometries(14, 40, accept=accept)):
        x, include = sample(geometry, "float32", seed), bool(seed % 2)
        pads = geometry.begins, geometry.ends
        rounding = "ceil_torch" if geometry.ceil else "floor"
        window = geometry.strides, *pads, geometry.kernel, not include, rounding
        parameter = opset.parameter(x.shape, np.float32)
        pool = opset.avg_pool(parameter, *window, OPENVINO_AUTO_PAD[geometry.auto_pad])
        (expected,) = run_openvino(openvino.Model([pool], [parameter]), x)
        beyond = "count" if any(geometry.pads) else "drop"
        assert_same(fastpool.avg_pool(x, **averages(geometry, include), beyond=beyond), expected)


def test_openvino_adaptive_average_pool():
    opset = pytest.importorskip("openvino.opset14")
    openvino = pytest.importorskip("openvino")
    rng = np.random.default_rng(15)
    for size in ((5,), (3, 4), (9, 1), (2, 3, 7)):
        x = rng.integers(-4, 9, (2, 3, *(7, 10, 6)[: len(size)])).astype(np.float32)
        parameter = opset.parameter(x.shape, np.float32)
        pool = opset.adaptive_avg_pool(parameter, np.array(size))
        (expected,) = run_openvino(openvino.Model([pool], [parameter]), x)
        assert_same(fastpool.adaptive_avg_pool(x, size), expected)


# ------------------------------------------------------------------------------------ torch


@pytest.fixture
def torch():
    """torch on one thread, so that the two libraries do not share the cores."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch
    torch.set_num_threads(threads)


def torch_is_right(geometry):
    """It has no padding modes, and pads of at most half the window, alike on both sides."""
    return geometry.auto_pad == "NOTSET" and is_ordinary(geometry)


def torch_arguments(geometry):
    return {
        "kernel_size": geometry.kernel,
        "stride": geometry.strides,
        "padding": geometry.begins,
        "dilation": geometry.dilations,
        "ceil_mode": geometry.ceil,
    }


def native_attributes(geometry):
    return {
        "kernel_shape": geometry.kernel,
        "strides": geometry.strides,
        "pads": geometry.pads,
        "dilations": geometry.dilations,
        "ceil_mode": geometry.ceil,
    }


TORCH_DTYPES = ["float32", "float64", "float16", "uint8", "int8", "int16", "int32", "int64"]


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
def test_torch_max_pool(torch, dtype):
    """torch counts indices within each plane, which is index_axis=2."""
    chosen = geometries(30, 80, accept=torch_is_right, symmetric=True)
    for seed, geometry in enumerate(chosen):
        x = sample(geometry, dtype, seed)
        n = len(geometry.kernel)
        pool = getattr(torch.nn.functional, f"max_pool{n}d")
        expected = pool(torch.from_numpy(x), **torch_arguments(geometry), return_indices=True)
        got = fastpool.max_pool(x, **native_attributes(geometry), return_indices=True, index_axis=2)
        for output, same in zip(got, expected, strict=True):
            assert_same(output, same.numpy())


def test_torch_bfloat16(torch):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    for seed, geometry in enumerate(geometries(31, 60, accept=torch_is_right, symmetric=True)):
        x = sample(geometry, "float32", seed)
        pool = getattr(torch.nn.functional, f"max_pool{len(geometry.kernel)}d")
        expected = pool(torch.from_numpy(x).to(torch.bfloat16), **torch_arguments(geometry))
        got = fastpool.max_pool(x.astype(bfloat16), **native_attributes(geometry))
        assert_same(got.astype("float32"), expected.to(torch.float32).numpy())


def test_torch_special_values(torch):
    """NaN reaches y, and -inf is an element like any other. torch names the last NaN: y only."""
    rng = np.random.default_rng(32)
    for geometry in geometries(32, 80, accept=torch_is_right, symmetric=True):
        x = rng.choice(
            [np.nan, -np.inf, np.inf, 0.0, 1.0], geometry.shape, p=[0.1, 0.6, 0.1, 0.1, 0.1]
        )
        x = x.astype(np.float32)
        pool = getattr(torch.nn.functional, f"max_pool{len(geometry.kernel)}d")
        expected = pool(torch.from_numpy(x), **torch_arguments(geometry))
        assert_same(fastpool.max_pool(x, **native_attributes(geometry)), expected.numpy())


def test_torch_channels_last(torch):
    """Two of torch's three ranks have a channels-last kernel; its indices stay logical."""
    chosen = geometries(33, 120, accept=torch_is_right, symmetric=True)
    for seed, geometry in enumerate(g for g in chosen if len(g.kernel) > 1):
        n = len(geometry.kernel)
        x = sample(geometry, "float32", seed)
        memory_format = {2: torch.channels_last, 3: torch.channels_last_3d}[n]
        tensor = torch.from_numpy(x).to(memory_format=memory_format)
        pool = getattr(torch.nn.functional, f"max_pool{n}d")
        expected = pool(tensor, **torch_arguments(geometry), return_indices=True)
        got = fastpool.max_pool(
            np.moveaxis(x, 1, -1),
            **native_attributes(geometry),
            layout="NHWC",
            return_indices=True,
            index_axis=2,
        )
        for output, same in zip(got, expected, strict=True):
            assert_same(np.moveaxis(output, -1, 1), same.numpy())


def test_torch_max_unpool(torch):
    """Back to the input's shape, which torch wants within a stride of the inferred shape."""
    rng = np.random.default_rng(34)
    for geometry in geometries(34, 60, accept=can_be_unpooled, symmetric=True):
        n = len(geometry.kernel)
        x = rng.standard_normal(geometry.shape).astype(np.float32)
        pool = native_attributes(geometry)
        y, indices = fastpool.max_pool(x, **pool, return_indices=True)
        plane = int(np.prod(x.shape[2:]))
        expected = getattr(torch.nn.functional, f"max_unpool{n}d")(
            torch.from_numpy(y),
            torch.from_numpy(indices % plane),
            geometry.kernel,
            stride=geometry.strides,
            padding=geometry.begins,
            output_size=x.shape,
        )
        got = fastpool.max_unpool(
            y,
            indices,
            geometry.kernel,
            strides=geometry.strides,
            pads=geometry.pads,
            output_shape=x.shape,
        )
        assert_same(got, expected.numpy())


def torch_averages(torch, seed, count):
    """Random average pools of torch: (geometry, its function, its attributes).

    Left out: windows that are larger than the array. It refuses them in three dimensions.
    """

    def accept(geometry):
        fits = np.all(np.less_equal(geometry.kernel, geometry.shape[2:]))
        return torch_is_right(geometry) and max(geometry.dilations) == 1 and fits

    chosen = geometries(seed, count, accept=accept, symmetric=True)
    for number, geometry in enumerate(chosen):
        attributes = torch_arguments(geometry) | {"count_include_pad": bool(number % 2)}
        del attributes["dilation"]
        n = len(geometry.kernel)
        yield geometry, getattr(torch.nn.functional, f"avg_pool{n}d"), attributes


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
def test_torch_avg_pool(torch, dtype):
    """Its sums of small whole numbers are exact, and it cuts off fractions of integers."""
    rounding = {"rounding": "trunc"} if dtype == "int64" else {}
    for seed, (geometry, pool, attributes) in enumerate(torch_averages(torch, 35, 40)):
        if dtype == "float16" and len(geometry.kernel) == 3:
            continue  # not implemented
        x = sample(geometry, dtype, seed)
        native = averages(geometry, attributes["count_include_pad"])
        expected = pool(torch.from_numpy(x), **attributes)
        assert_same(fastpool.avg_pool(x, **native, **rounding), expected.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch_adds_in_sequence(torch, dtype):
    """Its bits are those of numerics="sequential", in both memory formats."""
    rng = np.random.default_rng(36)
    for geometry, pool, attributes in torch_averages(torch, 36, 40):
        n, x = len(geometry.kernel), rng.standard_normal(geometry.shape).astype(dtype)
        native = averages(geometry, attributes["count_include_pad"]) | {"numerics": "sequential"}
        tensor = torch.from_numpy(x)
        if n > 1:
            last = {2: torch.channels_last, 3: torch.channels_last_3d}[n]
            tensor = tensor.to(memory_format=last)
        assert_same(fastpool.avg_pool(x, **native), pool(tensor.contiguous(), **attributes).numpy())
        assert_same(fastpool.avg_pool(x, **native), pool(tensor, **attributes).numpy())


@pytest.mark.filterwarnings("ignore:torch.quantize")
def test_torch_quantized_avg_pool(torch):
    """It rounds means of bytes to nearest, halves to even."""
    for seed, (geometry, pool, attributes) in enumerate(torch_averages(torch, 37, 40)):
        x = sample(geometry, "uint8", seed)
        if len(geometry.kernel) == 2:
            tensor = torch._make_per_tensor_quantized_tensor(torch.from_numpy(x), 1.0, 0)
            native = averages(geometry, attributes["count_include_pad"])
            assert_same(
                fastpool.avg_pool(x, **native), pool(tensor, **attributes).int_repr().numpy()
            )


def test_torch_adaptive_avg_pool(torch):
    """Of multiples of what is divided by: it divides by the taps along one axis after the other."""
    rng = np.random.default_rng(38)
    for size in ((5,), (11,), (3, 4), (7, 1), (2, 3, 5)):
        x = rng.integers(-4, 9, (2, 3, *(7, 10, 6)[: len(size)])).astype(np.float32) * 5040
        pool = getattr(torch.nn.functional, f"adaptive_avg_pool{len(size)}d")
        assert_same(fastpool.adaptive_avg_pool(x, size), pool(torch.from_numpy(x), size).numpy())
