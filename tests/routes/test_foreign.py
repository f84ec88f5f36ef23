"""Arrays of other libraries are used in place, or refused by an error that says why.

Tests of torch, jax and pyarrow run if they are installed. A class of this file imitates any other.
"""

import array
import importlib
import sys

import numpy as np
import pytest

import cases
import fastpool
from fastpool._running.interop import as_array

X = np.arange(2 * 3 * 8 * 8, dtype=np.float32).reshape(2, 3, 8, 8) % 97
Y, INDICES = fastpool.max_pool(X, 2, strides=2, return_indices=True)


class Packed:
    """An array that can be seen by DLPack alone; it may name another device."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack__(self, **keywords):
        assert self.device[0] in (1, 3), "asked for memory that the processor cannot read"
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.device


class Convertible:
    """What has only `__array__`."""

    def __array__(self, dtype=None, copy=None):
        return X


def tensor(x):
    return pytest.importorskip("torch").from_numpy(x)


def channels_last(x):
    torch = pytest.importorskip("torch")
    return tensor(x).to(memory_format=torch.channels_last)


def on_jax(x):
    return pytest.importorskip("jax.numpy").asarray(x)


def in_arrow(x):
    arrow = pytest.importorskip("pyarrow")
    return arrow.Tensor.from_numpy(x)


# --------------------------------------------------------------------------------------- as inputs


@pytest.mark.parametrize("make", [Packed, tensor, channels_last, on_jax, in_arrow])
def test_inputs(make):
    x = make(X)
    cases.assert_same(fastpool.max_pool(x, 2, strides=2), Y)
    plan = fastpool.plan_max_pool(X.shape, X.dtype, 2, strides=2)
    cases.assert_same(plan(x), Y)
    cases.assert_same(fastpool.onnx.max_pool(x, kernel_shape=[2, 2], strides=[2, 2]), Y)
    attributes = {"kernel": [2, 2], "strides": [2, 2], "auto_pad": "valid", "version": 1}
    cases.assert_same(fastpool.openvino.max_pool(x, **attributes), Y)


@pytest.mark.parametrize("make", [Packed, tensor, on_jax, in_arrow])
def test_inputs_of_unpooling(make):
    expected = fastpool.max_unpool(Y, INDICES, 2, strides=2)
    cases.assert_same(fastpool.max_unpool(make(Y), make(INDICES), 2, strides=2), expected)


def test_inputs_without_dlpack():
    cases.assert_same(fastpool.max_pool(Convertible(), 2, strides=2), Y)
    cases.assert_same(fastpool.max_pool(memoryview(X), 2, strides=2), Y)
    cases.assert_same(fastpool.max_pool(X.tolist(), 2, strides=2), Y.astype(np.float64))


def test_memory_maps(tmp_path):
    np.save(tmp_path / "x.npy", X)
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    out = np.lib.format.open_memmap(tmp_path / "y.npy", "w+", Y.dtype, Y.shape)
    assert fastpool.max_pool(x, 2, strides=2, out=out) is out
    out.flush()
    cases.assert_same(np.load(tmp_path / "y.npy"), Y)


# ---------------------------------------------------------------------------------- without a copy


def test_dlpack_is_the_same_memory():
    assert np.shares_memory(as_array(Packed(X), "x"), X)
    assert np.shares_memory(as_array(memoryview(X), "x"), X)
    assert np.shares_memory(as_array(Convertible(), "x"), X)


def test_tensors_are_the_same_memory():
    torch = pytest.importorskip("torch")
    for name in ("float32", "float64", "float16", "int8", "uint8", "int64", "uint16", "bool"):
        x = torch.zeros((2, 3, 4, 5), dtype=getattr(torch, name))
        assert as_array(x, "x").ctypes.data == x.data_ptr()
        assert as_array(x, "x").dtype == name
        x = x.to(memory_format=torch.channels_last)
        assert as_array(x, "x").ctypes.data == x.data_ptr()
        assert as_array(x, "x").transpose(0, 2, 3, 1).flags.c_contiguous


def test_bfloat16_of_torch_is_the_same_memory():
    torch = pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    x = torch.from_numpy(X).to(torch.bfloat16)
    assert as_array(x, "x").ctypes.data == x.data_ptr()
    out = torch.zeros((2, 3, 4, 4), dtype=torch.bfloat16)
    assert fastpool.max_pool(x, 2, strides=2, out=out) is out
    assert torch.equal(out, torch.nn.functional.max_pool2d(x, 2))


def test_bfloat16_without_ml_dtypes_says_what_is_missing(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ImportError, match="x: bfloat16 needs ml_dtypes: pip install ml_dtypes"):
        fastpool.max_pool(torch.zeros((1, 1, 4, 4), dtype=torch.bfloat16), 2)


def test_arrays_of_jax_and_arrow_are_the_same_memory():
    jax = pytest.importorskip("jax")
    x = jax.numpy.asarray(X)
    assert as_array(x, "x").ctypes.data == x.unsafe_buffer_pointer()
    assert not as_array(x, "x").flags.writeable
    assert fastpool.max_pool(x.astype(jax.numpy.bfloat16), 2).dtype.name == "bfloat16"


def test_arrays_of_arrow_are_the_same_memory():
    arrow = pytest.importorskip("pyarrow")
    x = arrow.array([3, 1, 4, 1, 5])
    assert as_array(x, "x").ctypes.data == x.buffers()[1].address
    assert fastpool.max_pool(x, 2, strides=2, layout="W").tolist() == [3, 4]
    assert fastpool.max_pool(x.buffers()[1], 8, strides=8, layout="W").tolist() == [3, 1, 4, 1, 5]


# -------------------------------------------------------------------------------------- as results


@pytest.mark.parametrize("make", [Packed, tensor, channels_last])
def test_results(make):
    y, indices = np.zeros_like(Y), np.zeros_like(INDICES)
    out, out_indices = make(y), make(indices)
    results = fastpool.max_pool(
        X, 2, strides=2, return_indices=True, out=out, out_indices=out_indices
    )
    assert results[0] is out and results[1] is out_indices
    cases.assert_same(np.asarray(as_array(out, "out")), Y)
    cases.assert_same(np.asarray(as_array(out_indices, "out_indices")), INDICES)
    back = make(np.full_like(X, 7))
    assert fastpool.max_unpool(out, out_indices, 2, strides=2, out=back) is back
    expected = fastpool.max_unpool(Y, INDICES, 2, strides=2)
    cases.assert_same(np.asarray(as_array(back, "out")), expected)


@pytest.mark.parametrize("make", [Packed, tensor])
def test_results_of_unpooling_with_an_activation(make):
    out = make(np.full_like(X, 7))
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2], "activation": "Relu"}
    assert fastpool.onnx.max_unpool(Y, INDICES, **attributes, out=out) is out
    expected = fastpool.onnx.max_unpool(Y, INDICES, **attributes)
    cases.assert_same(np.asarray(as_array(out, "out")), expected)
    with pytest.raises(TypeError, match="^out: expected a numpy.ndarray, or another array that"):
        fastpool.onnx.max_unpool(Y, INDICES, **attributes, out=X.tolist())


def test_results_in_buffers():
    out = array.array("i", [0, 0])
    x = np.array([3, 1, 4, 1], np.int32)
    assert fastpool.max_pool(x, 2, strides=2, layout="W", out=out) is out
    assert out.tolist() == [3, 4]
    out = bytearray(2)
    assert fastpool.max_pool(x.astype(np.uint8), 2, strides=2, layout="W", out=out) is out
    assert out == b"\3\4"


def test_results_that_share_memory_with_the_input_are_refused():
    x = X.copy()
    with pytest.raises(ValueError, match="out: overlaps x"):
        fastpool.max_pool(Packed(x), 1, out=Packed(x))
    assert (x == X).all()


def read_only_buffer(y):
    return memoryview(y.tobytes()).cast("f", y.shape)


@pytest.mark.parametrize("make", [read_only_buffer, on_jax])
def test_results_that_cannot_be_written_are_refused(make):
    with pytest.raises(ValueError, match="out: expected a writeable array, got a read-only one"):
        fastpool.max_pool(X, 2, strides=2, out=make(Y))


@pytest.mark.parametrize("make", [Convertible, Y.tolist, lambda: 3.0, lambda: "text", object])
def test_results_whose_memory_cannot_be_seen_are_refused(make):
    with pytest.raises(TypeError, match="out: expected a numpy.ndarray, or another array that"):
        fastpool.max_pool(X, 2, strides=2, out=make())


# ------------------------------------------------------------------ tensors that autograd watches


def calls_into(torch):
    """Functions with the tensors that each writes, for every route that has `out=`."""
    x, indices = torch.from_numpy(X), torch.from_numpy(INDICES)
    y, z, back = (torch.from_numpy(np.zeros_like(a)) for a in (Y, INDICES, X))
    plan = fastpool.plan_max_pool(X.shape, X.dtype, 2, strides=2, return_indices=True)
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    both = {"out": y, "out_indices": z}
    layer = {"kernel": [2, 2], "strides": [2, 2], "auto_pad": "valid"}
    relu = {"activation": "Relu"}
    q, bytes_ = torch.zeros(X.shape, dtype=torch.uint8), torch.zeros(Y.shape, dtype=torch.uint8)
    one, scale, zero = torch.zeros(2, 3, 1, 1), torch.tensor(0.5), torch.tensor([1], dtype=q.dtype)
    max_pool, onnx, openvino = fastpool.max_pool, fastpool.onnx, fastpool.openvino
    yield [y, z], lambda: max_pool(x, 2, strides=2, return_indices=True, **both)
    yield [z], lambda: max_pool(X, 2, strides=2, return_indices=True, out_indices=z)
    yield [y], lambda: max_pool(X, 2, strides=2, activation="Relu", out=y)
    yield [y, z], lambda: plan(X, y, z)
    yield [y, z], lambda: plan(x, **both)
    yield [back], lambda: fastpool.max_unpool(Y, indices, 2, strides=2, out=back)
    yield [y, z], lambda: onnx.max_pool(x, **window, n_outputs=2, **both)
    yield [back], lambda: onnx.max_unpool(Y, INDICES, **window, out=back)
    yield [back], lambda: onnx.max_unpool(Y, INDICES, **window, **relu, out=back)
    yield [y], lambda: onnx.average_pool(x, **window, out=y)
    yield [one], lambda: onnx.global_average_pool(x, out=one)
    yield [one], lambda: onnx.global_max_pool(x, out=one)
    yield [bytes_], lambda: onnx.qlinear_average_pool(q, scale, zero, scale, **window, out=bytes_)
    yield [y, z], lambda: openvino.max_pool(x, **layer, version=8, **both)
    yield [y], lambda: openvino.max_pool(x, **layer, version=1, out=y)


def test_a_written_tensor_has_a_new_version():
    torch = pytest.importorskip("torch")
    for number, (written, call) in enumerate(calls_into(torch)):
        before = [tensor._version for tensor in written]
        call()
        for tensor, version in zip(written, before, strict=True):
            assert tensor._version > version, number


@pytest.mark.parametrize("part", ["whole", "view", "detached", "parameter", "subclass"])
def test_gradients_of_what_was_overwritten_are_refused(part):
    """As after torch's own functions in place; without it they would be made of the new values."""
    torch = pytest.importorskip("torch")

    class Marked(torch.Tensor):
        pass

    saved = torch.full((2, 3, 4, 4), 3.0)
    out = {
        "whole": lambda: saved,
        "view": lambda: saved.view(6, 4, 4).view(2, 3, 4, 4),
        "detached": lambda: saved.detach(),
        "parameter": lambda: torch.nn.Parameter(saved, requires_grad=False),
        "subclass": lambda: saved.as_subclass(Marked),
    }[part]()
    if part == "parameter":
        saved = out
    weight = torch.ones(2, 3, 4, 4, requires_grad=True)
    product = (weight * saved).sum()
    assert fastpool.max_pool(X, 2, strides=2, out=out) is out
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_a_tensor_that_requires_a_gradient_is_written_where_torch_would():
    torch = pytest.importorskip("torch")
    leaf = torch.zeros(2, 3, 4, 4, requires_grad=True)
    message = "requires grad; fastpool.torch has .* that differentiate, and out.detach"
    with pytest.raises(TypeError, match=f"^out: expected .*{message}"):
        fastpool.max_pool(X, 2, strides=2, out=leaf)
    assert not leaf.any() and leaf._version == 0
    with torch.no_grad():
        fastpool.max_pool(X, 2, strides=2, out=leaf)
    assert leaf._version == 1
    cases.assert_same(leaf.detach().numpy(), Y)


def test_tensors_of_inference_mode():
    torch = pytest.importorskip("torch")
    plain = torch.zeros(2, 3, 4, 4)
    with torch.inference_mode():
        out = torch.zeros(2, 3, 4, 4)
        fastpool.max_pool(X, 2, strides=2, out=out)
        fastpool.max_pool(X, 2, strides=2, out=plain)
        cases.assert_same(out.numpy(), Y)
        assert plain._version == 1
        out.zero_()
    message = "^out: expected a tensor that may change here, got an inference-mode tensor outside"
    with pytest.raises(TypeError, match=message):
        fastpool.max_pool(X, 2, strides=2, out=out)
    assert not out.any()
    cases.assert_same(fastpool.max_pool(out, 1), out.numpy())  # it may be read


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
def test_tensors_with_tangents_are_refused():
    """A result has none, so that a derivative would be wrong and nobody would know."""
    torch = pytest.importorskip("torch")
    forward_ad = importlib.import_module("torch.autograd.forward_ad")
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.from_numpy(X), torch.ones(X.shape))
        out = forward_ad.make_dual(torch.zeros(Y.shape), torch.ones(Y.shape))
        with pytest.raises(TypeError, match="^x: expected a tensor without a tangent"):
            fastpool.max_pool(x, 2, strides=2)
        with pytest.raises(TypeError, match="^out: expected a tensor without a tangent"):
            fastpool.max_pool(X, 2, strides=2, out=out)
        assert not out.any()
        fastpool.max_pool(X, 2, strides=2, out=torch.zeros(Y.shape))


def test_tensors_whose_memory_is_elsewhere_are_refused():
    torch = pytest.importorskip("torch")
    wrapped = torch._to_functional_tensor(torch.from_numpy(X))
    for arguments in ({"x": wrapped}, {"x": X, "out": wrapped}):
        with pytest.raises(TypeError, match="expected a tensor with memory, got one of function"):
            fastpool.max_pool(kernel_shape=1, **arguments)


def test_an_error_leaves_the_version_of_a_tensor():
    torch = pytest.importorskip("torch")
    out, indices = torch.zeros(2, 3, 4, 4), torch.zeros(2, 3, 4, 4)  # these of a wrong type
    with pytest.raises(TypeError, match="^out_indices: expected dtype int64"):
        fastpool.max_pool(X, 2, strides=2, return_indices=True, out=out, out_indices=indices)
    back, bad = torch.zeros(X.shape), INDICES + 10**6
    with pytest.raises(ValueError, match="^indices"):
        fastpool.max_unpool(Y, bad, 2, strides=2, out=back)
    assert out._version == indices._version == back._version == 0


# ------------------------------------------------------------------------------- what is not there


@pytest.mark.parametrize(
    "device, name",
    [((2, 1), "CUDA:1"), ((10, 0), "ROCm:0"), ((8, 0), "Metal:0"), ((99, 3), "DLPack device 99:3")],
)
def test_another_device_is_named(device, name):
    x = Packed(X, device)
    for arguments in ({"x": x}, {"x": X, "out": x}):
        argument = "out" if "out" in arguments else "x"
        message = f"^{argument}: expected an array on the CPU, got one on {name}$"
        with pytest.raises(TypeError, match=message):
            fastpool.max_pool(kernel_shape=2, **arguments)
    with pytest.raises(TypeError, match=f"^indices: expected an array on the CPU, got .* {name}$"):
        fastpool.max_unpool(X, x, 2)


def test_memory_that_another_device_pinned_is_read():
    cases.assert_same(fastpool.max_pool(Packed(X, device=(3, 0)), 2, strides=2), Y)


def test_tensors_that_are_not_plain_numbers_in_memory():
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X)
    message = "^x: expected a tensor on the CPU, got one on meta$"
    with pytest.raises(TypeError, match=message):
        fastpool.max_pool(x.to("meta"), 2)
    strange = {
        "requires grad": x.clone().requires_grad_(),
        "Sparse": x.to_sparse(),
        "negative bit": torch._neg_view(x),
    }
    fake = importlib.import_module("torch._subclasses").FakeTensorMode
    with fake():
        strange["subclasses"] = torch.zeros(X.shape)
    for what, value in strange.items():
        with pytest.raises(TypeError, match=f"^x: .*{what}"):
            fastpool.max_pool(value, 2)
        with pytest.raises(TypeError, match=f"^out: .*{what}"):
            fastpool.max_pool(X, 1, out=value)


def test_complex_tensors_are_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="^x: expected one of float16, .*, got dtype complex64"):
        fastpool.max_pool(torch.zeros((1, 1, 4, 4), dtype=torch.complex64), 2)


@pytest.mark.parametrize("make", ["array", "chunked_array"])
def test_nulls_are_refused(make):
    arrow = pytest.importorskip("pyarrow")
    values = [1, None, 3] if make == "array" else [[1, None], [3]]
    with pytest.raises(TypeError, match="^x: has 1 nulls; fill them first$"):
        fastpool.max_pool(getattr(arrow, make)(values), 2, layout="W")


def test_a_traced_array_is_refused():
    jax = pytest.importorskip("jax")
    with pytest.raises(TypeError):
        jax.jit(lambda x: fastpool.max_pool(x, 2))(jax.numpy.zeros((1, 1, 4, 4)))
