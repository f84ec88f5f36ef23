"""Differential tests against onnxruntime, OpenVINO and torch, where those follow their documents.

Each peer is asked only what it answers rightly. Left out, for all of them: windows without any
element, NaN indices and windows of the type's lowest value; what else is left out stands beside the
peer. Geometry is random with fixed seeds.
"""

import random
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pytest

import fastpool
import fastpool.onnx
import fastpool.openvino


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


def padding_of(geometry):
    """(begin, output extent before rounding and clipping rules, at most) of every spatial axis."""
    result = []
    for axis, size in enumerate(geometry.shape[2:]):
        stride, extent = geometry.strides[axis], geometry.extents()[axis]
        begin, end = geometry.begins[axis], geometry.ends[axis]
        if geometry.auto_pad == "VALID":
            begin = end = 0
        if geometry.auto_pad.startswith("SAME"):
            outputs = -(-size // stride)
            total = max((outputs - 1) * stride + extent - size, 0)
            begin = total // 2 if geometry.auto_pad == "SAME_UPPER" else total - total // 2
        else:
            outputs = -(-(size + begin + end - extent) // stride) + 1
        result.append((begin, outputs))
    return result


def is_ordinary(geometry):
    """Whether every window fits the padded input and holds at least one element of it."""
    for axis, (begin, outputs) in enumerate(padding_of(geometry)):
        size = geometry.shape[2 + axis]
        if outputs < 1 or (
            geometry.auto_pad in ("NOTSET", "VALID")
            and size + (geometry.auto_pad == "NOTSET") * (begin + geometry.ends[axis])
            < geometry.extents()[axis]
        ):
            return False
        taps = range(geometry.kernel[axis])
        for o in range(outputs):
            start = o * geometry.strides[axis] - begin
            if not any(0 <= start + t * geometry.dilations[axis] < size for t in taps):
                return False
    return True


def geometries(seed, count, *, accept=is_ordinary, symmetric=False):
    """`count` random geometries for which `accept` holds."""
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
            begins = tuple(rng.randint(0, k // 2 if symmetric else k - 1) for k in kernel)
            ends = begins if symmetric else tuple(rng.randint(0, k - 1) for k in kernel)
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


def assert_same(got, expected):
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected, strict=True)


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


def test_onnxruntime_max_unpool_to_the_input():
    """Indices counted in the result, onnxruntime's reading: an unpool undoes the pool."""
    explicit = [g for g in geometries(2, 150) if g.auto_pad == "NOTSET" and not g.ceil]
    for seed, geometry in enumerate(g for g in explicit if max(g.dilations) == 1):
        x = sample(geometry, "float32", seed)
        pool = {"kernel_shape": geometry.kernel, "strides": geometry.strides, "pads": geometry.pads}
        y, indices = fastpool.onnx.max_pool(x, **pool, n_outputs=2)
        shape = np.array(x.shape, dtype=np.int64)
        inputs = {"x": y, "i": indices, "shape": shape}
        # onnxruntime refuses padding that makes the inferred extent larger than the result.
        (expected,) = onnx_session("MaxUnpool", inputs, ["float32"], pool).run(None, inputs)
        assert_same(
            fastpool.onnx.max_unpool(y, indices, shape, **pool, index_space="output"), expected
        )


def test_onnxruntime_max_unpool_repeated_indices():
    """Any indices at all, repeated ones too: the last in row-major order wins."""
    rng = np.random.default_rng(3)
    for geometry in geometries(3, 60):
        attributes = {"kernel_shape": geometry.kernel, "strides": geometry.strides}
        inferred = geometry.shape[:2] + tuple(
            (size - 1) * stride + kernel
            for size, stride, kernel in zip(
                geometry.shape[2:], geometry.strides, geometry.kernel, strict=True
            )
        )
        x = rng.standard_normal(geometry.shape).astype(np.float32)
        indices = rng.integers(0, np.prod(inferred), geometry.shape)
        inputs = {"x": x, "i": indices}
        (expected,) = onnx_session("MaxUnpool", inputs, ["float32"], attributes).run(None, inputs)
        assert_same(fastpool.onnx.max_unpool(x, indices, **attributes), expected)


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


def openvino_is_right(geometry):
    """SAME_* rounded up with a stride beyond the window: it adds a window."""
    beyond = any(s > e for s, e in zip(geometry.strides, geometry.extents(), strict=True))
    if geometry.auto_pad.startswith("SAME") and geometry.ceil and beyond:
        return False
    return is_ordinary(geometry)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8", "int32"])
@pytest.mark.parametrize("version", [1, 8, 14])
def test_openvino_max_pool(version, dtype):
    def accept(geometry):
        return (version > 1 or max(geometry.dilations) == 1) and openvino_is_right(geometry)

    for seed, geometry in enumerate(geometries(10 + version, 12, accept=accept)):
        x = sample(geometry, dtype, seed)
        attributes = openvino_attributes(geometry, version, seed)
        expected = run_openvino(openvino_model(x.shape, dtype, version, attributes), x)
        got = fastpool.openvino.max_pool(x, version=version, **attributes)
        for output, same in zip((got,) if version == 1 else got, expected, strict=True):
            assert_same(output, same)


@pytest.mark.parametrize("version", [1, 8, 14])
def test_openvino_layer_as_openvino_writes_it(version, tmp_path):
    """read_layer on the XML of a serialised model."""
    openvino = pytest.importorskip("openvino")
    for seed, geometry in enumerate(geometries(20, 8, accept=openvino_is_right)):
        if version == 1:
            geometry = geometry._replace(dilations=(1,) * len(geometry.dilations))
            if not openvino_is_right(geometry):
                continue
        x = sample(geometry, "float32", seed)
        model = openvino_model(
            x.shape, "float32", version, openvino_attributes(geometry, version, seed)
        )
        openvino.serialize(model, tmp_path / "model.xml", tmp_path / "model.bin")
        (element,) = ElementTree.parse(tmp_path / "model.xml").findall(".//layer[@type='MaxPool']")
        expected = run_openvino(model, x)
        for layer in (element, ElementTree.tostring(element, encoding="unicode")):
            layer = fastpool.openvino.read_layer(layer)
            assert layer.version == version
            assert layer.input_dims == (x.shape,)
            assert layer.output_dims == tuple(output.shape for output in expected)
            got = layer(x)
            for output, same in zip((got,) if version == 1 else got, expected, strict=True):
                assert_same(output, same)


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
    """Back to the input's shape, which torch limits to the inferred shape plus or minus a stride."""
    rng = np.random.default_rng(34)
    chosen = geometries(34, 150, accept=torch_is_right, symmetric=True)
    for geometry in (g for g in chosen if max(g.dilations) == 1 and not g.ceil):
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
