"""Define a MaxPool operation for OpenVINO that fastpool runs inside compiled models."""

import openvino
from openvino.opset1 import convert, transpose

from .._planning import arguments
from .._planning.arguments import shown
from .._plans import make_plan
from .._running.interop import bfloat16
from .._running.plan_cache import PlanCache
from ._layers import MaxPoolLayer
from ._operator import native_attributes

# Names of OpenVINO. "dynamic" is a type that is not known yet.
_ELEMENT_TYPES = {
    *("f16", "bf16", "f32", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"),
    *("boolean", "dynamic"),
}
_INDEX_TYPES = {"int64": openvino.Type.i64, "int32": openvino.Type.i32}
# Attributes of an operation that is read from a file, until the file's attributes replace them.
# They have the right types. Required ones have illegal values.
_BEFORE_READING = {
    "kernel": [0],
    "strides": [0],
    "pads_begin": [-1],
    "pads_end": [-1],
    "rounding_type": "floor",
    "auto_pad": "explicit",
    "dilations": [0],
    "index_element_type": "i64",
    "axis": 0,
}


class MaxPool(openvino.Op):
    """A MaxPool operation that OpenVINO runs by calling fastpool.

    Values and indices are those of :func:`fastpool.openvino.max_pool`, with version 14's
    attributes, which include those of 1 and 8. Its type in a model is FastpoolMaxPool. To read a
    saved model with it, call ``core.add_extension(fastpool.openvino.MaxPool)`` first.

    It always runs on the one thread from which OpenVINO calls it. OpenVINO binds that thread to one
    processor during the call, and new threads would inherit that. With several streams
    (``PERFORMANCE_HINT: THROUGHPUT``) poolings of different requests run in parallel.

    Parameters
    ----------
    x : openvino.Node or openvino.Output
        Input of rank 3, 4 or 5. Dimensions and the rank may be unknown. It may have all element
        types of fastpool; bf16 needs the package ml_dtypes.
    kernel, strides, pads_begin, pads_end, rounding_type, auto_pad, dilations, axis
        As in :func:`fastpool.openvino.max_pool`.
    index_element_type : {"i64", "i32"}
        Type of the indices. If a model computes with them, OpenVINO's CPU plugin needs "i32".
    nan : {"propagate", "ignore"}
        As in :func:`fastpool.max_pool`. OpenVINO's own MaxPool follows "ignore".
    layout : {"NCHW", "NHWC"}
        Whether channels come first or last in input and outputs. In both, indices count channels
        first, and `axis` means N x C x spatial.
    return_indices : bool
        Whether there is a second output. Without it, pooling takes a fraction of the time.

    Raises
    ------
    TypeError, ValueError
        An attribute is wrong, or does not fit the input's shape or element type.

    Examples
    --------
    >>> import numpy as np, openvino, openvino.opset14 as ops
    >>> import fastpool.openvino
    >>> x = ops.parameter([1, 1, 4], np.float32)
    >>> pool = fastpool.openvino.MaxPool(x, kernel=[2], strides=[2], auto_pad="valid")
    >>> run = openvino.compile_model(openvino.Model(pool.outputs(), [x]), "CPU")
    >>> [output.tolist() for output in run([np.array([[[1, 5, 2, 4]]], np.float32)]).values()]
    [[[[5.0, 4.0]]], [[[1, 3]]]]
    """

    class_type_info = openvino.DiscreteTypeInfo("FastpoolMaxPool", "extension")

    def __init__(
        self,
        x=None,
        *,
        kernel=None,
        strides=None,
        pads_begin=None,
        pads_end=None,
        rounding_type="floor",
        auto_pad="explicit",
        dilations=None,
        index_element_type="i64",
        axis=0,
        nan="propagate",
        layout="NCHW",
        return_indices=True,
    ):
        super().__init__(self)
        self._attributes = {"nan": nan, "layout": layout, "return_indices": return_indices}
        if x is None:  # OpenVINO reads a file and calls visit_attributes next
            self._attributes |= _BEFORE_READING
            return
        self._attributes |= {
            "kernel": kernel,
            "strides": strides,
            "pads_begin": pads_begin,
            "pads_end": pads_end,
            "rounding_type": rounding_type,
            "auto_pad": auto_pad,
            "dilations": dilations,
            "index_element_type": index_element_type,
            "axis": axis,
        }
        self.set_arguments(x if isinstance(x, list) else [x])
        self.constructor_validate_and_infer_types()

    @staticmethod
    def get_type_info():
        return MaxPool.class_type_info

    def clone_with_new_inputs(self, inputs):
        return MaxPool(inputs, **self._attributes)

    def visit_attributes(self, visitor):
        visitor.on_attributes(self._attributes)
        return True

    def validate_and_infer_types(self):
        shape = self.get_input_partial_shape(0)
        if shape.rank.is_dynamic:
            kernel = self._attributes["kernel"]
            n = len(arguments.as_counts(kernel, "kernel", 1, (1, 2, 3), "1 to 3 ints"))
            shape = openvino.PartialShape([-1] * (2 + n))
        element_type = self.get_input_element_type(0)
        if element_type.get_type_name() not in _ELEMENT_TYPES:
            raise TypeError(f"x: fastpool has no element type {element_type.get_type_name()}")
        self._resolve(len(shape) - 2)
        self._bfloat16 = bfloat16("x") if element_type == openvino.Type.bf16 else None
        self._plans = PlanCache(self._plan)
        outputs = self._output_shape(shape)
        self.set_output_size(1 + self._native["return_indices"])
        self.set_output_type(0, element_type, outputs)
        if self._native["return_indices"]:
            self.set_output_type(1, _INDEX_TYPES[self._native["index_dtype"]], outputs)

    def _resolve(self, n):
        """Check the attributes for `n` spatial axes and store them in two forms.

        One is for fastpool. The other is for OpenVINO's visitors: all attributes, as plain values
        and lists of these.
        """
        if not 1 <= n <= 3:
            raise ValueError(f"x: expected rank 3, 4 or 5, got {n + 2}")
        own = {name: self._attributes[name] for name in _BEFORE_READING}
        native = {"pads": (0,) * 2 * n} | native_attributes(n, 14, **own)
        native["dilations"] = native["dilations"] or (1,) * n
        switches = {
            "nan": arguments.nan(self._attributes["nan"]),
            "layout": arguments.choice(self._attributes["layout"], "layout", ("NCHW", "NHWC")),
            "return_indices": arguments.return_indices(self._attributes["return_indices"]),
        }
        self._native = native | switches
        self._attributes |= switches | {
            "kernel": list(native["kernel_shape"]),
            "strides": list(native["strides"]),
            "pads_begin": list(native["pads"][:n]),
            "pads_end": list(native["pads"][n:]),
            "dilations": list(native["dilations"]),
            "axis": native["index_axis"],
        }

    def _output_shape(self, shape):
        if shape.is_static:
            return openvino.PartialShape(self._plan(tuple(shape.to_shape()), "bool").output_shape)
        first = 2 if self._native["layout"] == "NCHW" else 1
        sizes = list(shape)
        for i in range(len(sizes) - 2):
            sizes[first + i] = self._output_dimension(i, sizes[first + i])
        return openvino.PartialShape(sizes)

    def _output_dimension(self, i, size):
        """Return the output extents that spatial axis `i` may have; they grow with `size`."""
        if size.is_static:
            return openvino.Dimension(self._extent(i, size.get_length()))
        try:
            least = self._extent(i, size.get_min_length())
        except ValueError:  # too small for the window, so no input has this extent
            least = 1
        most = size.get_max_length()
        return openvino.Dimension(least, most if most < 0 else self._extent(i, most))

    def _extent(self, i, size):
        """Return the output extent of spatial axis `i` for an input extent `size`."""
        alone = self._native | {"layout": "NCHW", "return_indices": False, "index_axis": 0}
        n = len(alone["kernel_shape"])
        for name in ("kernel_shape", "strides", "dilations", "pads"):
            alone[name] = alone[name][i::n]
        return make_plan((1, 1, size), "bool", **alone).output_shape[2]

    def _plan(self, shape, dtype):
        return make_plan(shape, dtype, **self._native, num_threads=1)

    def has_evaluate(self):
        return True

    def evaluate(self, outputs, inputs):
        x, y = self._values(inputs[0]), self._values(outputs[0])
        plan = self._plans.find(x, ())
        if y.shape != plan.output_shape:  # it was not known before
            for output in outputs:
                output.shape = plan.output_shape
            y = self._values(outputs[0])
        plan(x, y, outputs[1].data if plan.return_indices else None)
        return True

    def _values(self, tensor):
        # openvino returns bf16 as an array of float16 with its bits.
        return tensor.data if self._bfloat16 is None else tensor.data.view(self._bfloat16)


def replace_pooling(model, *, nan="propagate", layout=None):
    """Replace the MaxPool operations of a model by fastpool's.

    Parameters
    ----------
    model : openvino.Model
        The model, changed in place together with the bodies of If, Loop and TensorIterator. Names
        of operations and tensors stay.
    nan : {"propagate", "ignore"}
        The NaN rule of the new operations. The replaced ones follow "ignore".
    layout : {"NCHW", "NHWC"}, optional
        Layout of the new operations' input. "NHWC" puts transpositions around them. They cost
        nothing if OpenVINO has channels last in memory anyway, as around convolutions. "NHWC" is
        the default for models that have convolutions.

    Returns
    -------
    replaced : list of MaxPoolLayer
        The operations that were replaced, in an order of execution.

    Raises
    ------
    TypeError, ValueError
        One cannot be replaced. Then none is.

    Examples
    --------
    >>> import numpy as np, openvino, openvino.opset14 as ops
    >>> import fastpool.openvino
    >>> x = ops.parameter([1, 3, 224, 224], np.float32)
    >>> pool = ops.max_pool(x, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2], name="pool")
    >>> model = openvino.Model([ops.relu(pool.output(0))], [x])
    >>> for layer in fastpool.openvino.replace_pooling(model):
    ...     print(layer.name, layer.attributes["kernel"], layer.output_dims[0])
    pool (2, 2) (1, 3, 112, 112)
    >>> compiled = openvino.compile_model(model, "CPU")
    """
    if not isinstance(model, openvino.Model):
        raise TypeError(f"model: expected an openvino.Model, got {shown(model)}")
    nodes = list(_nodes(model))
    if layout is None:
        convolutions = any("Convolution" in node.get_type_name() for node in nodes)
        layout = "NHWC" if convolutions else "NCHW"
    pools = [node for node in nodes if _is_max_pool(node.get_type_info())]
    replacements = [_replacement(node, nan, layout) for node in pools]
    layers = [_layer(node) for node in pools]
    for node, outputs in zip(pools, replacements, strict=True):
        for old, new in zip(node.outputs(), outputs, strict=False):
            old.replace(new)
    return layers


def _nodes(model):
    for node in model.get_ordered_ops():
        for body in _bodies(node):
            yield from _nodes(body)
        yield node


def _bodies(node):
    kind = node.get_type_name()
    if kind == "If":
        return [node.get_function(i) for i in (0, 1)]
    return [node.get_function()] if kind in ("Loop", "TensorIterator") else []


def _is_max_pool(kind):
    return kind.name == "MaxPool" and kind.version_id.startswith("opset")


def _replacement(node, nan, layout):
    """Return the outputs that replace those of a node."""
    name, x = node.get_friendly_name(), node.input_value(0)
    attributes = node.get_attributes()
    channel = len(attributes["kernel"]) + 1  # the axis, if it is the last one
    if layout == "NHWC":
        x = transpose(x, [0, *range(2, channel + 1), 1], name=f"{name}/NHWC")
    indices = node.get_output_size() > 1 and bool(node.output(1).get_target_inputs())
    # The CPU plugin computes with 32-bit indices and expects them from other operations.
    attributes["index_element_type"] = "i32"
    pool = MaxPool(x, **attributes, nan=nan, layout=layout, return_indices=indices)
    pool.set_friendly_name(name)
    outputs = pool.outputs()
    if layout == "NHWC":
        back = [0, channel, *range(1, channel)]
        outputs = [
            transpose(output, back, name=f"{name}/NCHW.{i}").output(0)
            for i, output in enumerate(outputs)
        ]
    if indices and node.get_output_element_type(1) == openvino.Type.i64:
        outputs[1] = convert(outputs[1], "i64", name=f"{name}/i64").output(0)
    return outputs


def _layer(node):
    attributes = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in node.get_attributes().items()
    }
    version = int(node.get_type_info().version_id.removeprefix("opset"))
    dims = [tuple(map(_dims, ports)) for ports in (node.inputs(), node.outputs())]
    return MaxPoolLayer(node.get_friendly_name(), version, attributes, *dims)


def _dims(port):
    shape = port.get_partial_shape()
    if shape.rank.is_dynamic:
        return ()
    return tuple(size.get_length() if size.is_static else -1 for size in shape)
