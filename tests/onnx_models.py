"""Models for onnxruntime, and its sessions with fastpool's kernels and without them."""

import ctypes

import numpy as np
import onnx.parser
import onnxruntime
from onnx import helper

import cases
import fastpool.onnx

CPU = ["CPUExecutionProvider"]
# The newest opset of the oldest onnxruntime is 21.
NEWEST_OPSET = 22 if int(onnxruntime.__version__.split(".")[1]) > 20 else 21
BFLOAT16 = onnx.TensorProto.BFLOAT16


def element_type(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def described(name, array, shape=None):
    """An input: an array's type, and a shape that is not known unless it is given."""
    shape = [None] * np.ndim(array) if shape is None else shape
    return helper.make_tensor_value_info(name, element_type(array.dtype), shape)


def model_of(
    op_type, inputs, outputs=("y",), opset=22, name="n", shape=None, domain="", **attributes
):
    """A model of one node. No extent of an input is known, or those of the first are `shape`."""
    node = helper.make_node(op_type, list(inputs), list(outputs), name=name, domain=domain)
    for key, value in attributes.items():
        kind = onnx.AttributeProto.INTS if value == [] else None
        node.attribute.append(helper.make_attribute(key, value, attr_type=kind))
    values = [described(*item) for item in inputs.items() if item[0]]
    if shape is not None:
        values[0] = described(*next(iter(inputs.items())), shape)
    results = [onnx.ValueInfoProto(name=name) for name in outputs if name]
    graph = helper.make_graph([node], "node", values, results)
    opset = min(opset, NEWEST_OPSET)
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1)] * bool(domain)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def options(**entries):
    """Options of one thread that log nothing, with entries like nan="ignore" of fastpool."""
    made = onnxruntime.SessionOptions()
    made.intra_op_num_threads = 1
    made.log_severity_level = 4
    for name, value in entries.items():
        made.add_session_config_entry(f"fastpool.{name}", value)
    return made


def serialized(model):
    """The bytes of a model, or of its text."""
    if isinstance(model, str):
        model = onnx.parser.parse_model(model)
    return model if isinstance(model, bytes) else model.SerializeToString()


def inside(model, given=None, **entries):
    """A session of a model, or of its text, with fastpool's kernels."""
    given = options(**entries) if given is None else given
    return fastpool.onnx.InferenceSession(serialized(model), given, CPU)


def plain(model, given=None):
    """A session of onnxruntime alone."""
    return onnxruntime.InferenceSession(serialized(model), given or options(), CPU)


def run(session, inputs, names=None):
    """Return the outputs. NumPy lacks bfloat16, so onnxruntime is told the type of its bits."""
    quiet = onnxruntime.RunOptions()
    quiet.log_severity_level = 4
    if not any(array.dtype.name == "bfloat16" for array in inputs.values()):
        return session.run(names, inputs, quiet)
    return list(map(array_of, session.run_with_ort_values(names, ort_values(inputs), quiet)))


def ort_values(inputs):
    return {name: ort_value(array) for name, array in inputs.items()}


def ort_value(array):
    if array.dtype.name != "bfloat16":
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, BFLOAT16)


def array_of(value):
    """Return a copy of a tensor of onnxruntime, of any type."""
    if value.data_type() != "tensor(bfloat16)":
        return value.numpy()
    shape, kind = value.shape(), cases.dtype("bfloat16")
    nbytes = int(np.prod(shape)) * kind.itemsize
    return np.frombuffer(ctypes.string_at(value.data_ptr(), nbytes), kind).reshape(shape)


# ---------------------------------------------------------------------------------- random windows


def random_window(choose, n, last=3):
    """Attributes that onnxruntime takes too: padding is less than the window."""
    window = [choose.randint(1, last) for _ in range(n)]
    attributes = {"kernel_shape": window}
    if choose.random() < 0.7:
        attributes["strides"] = [choose.randint(1, k) for k in window]
    if choose.random() < 0.3:
        attributes["auto_pad"] = choose.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
        return attributes
    if choose.random() < 0.7:
        attributes["pads"] = [choose.randint(0, k - 1) for k in window * 2]
    if choose.random() < 0.5:
        attributes["ceil_mode"] = choose.randint(0, 1)
    if choose.random() < 0.5:
        attributes["dilations"] = [choose.randint(1, 2) for _ in range(n)]
    return attributes


def random_shape(choose, n):
    return choose.randint(1, 2), choose.randint(1, 5), *(choose.randint(7, 12) for _ in range(n))
