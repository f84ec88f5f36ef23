"""Replace the poolings of OpenVINO's models by fastpool's operations."""

import math

import openvino
from openvino.opset1 import convert, transpose

from .._planning import arguments
from .._planning.values import shown
from ._adaptive import AdaptiveAvgPool, AdaptiveMaxPool
from ._layers import make_layer
from ._windows import AvgPool, MaxPool

_OPERATIONS = {
    "MaxPool": MaxPool,
    "AvgPool": AvgPool,
    "AdaptiveAvgPool": AdaptiveAvgPool,
    "AdaptiveMaxPool": AdaptiveMaxPool,
}

# An input with fewer elements gains less than a call costs, about 25 microseconds.
_LEAST_SIZE = 2**15


class Replaced(list):
    """The result of :func:`replace_pooling`: a list of the layers that were replaced.

    It holds a MaxPoolLayer, AvgPoolLayer, AdaptiveAvgPoolLayer or AdaptiveMaxPoolLayer for each, in
    an order of execution.

    Attributes
    ----------
    left : dict of str to str
        Poolings that were not replaced: name -> reason.
    """

    def __init__(self):
        super().__init__()
        self.left = {}
        self._lines = []

    def explain(self):
        """Return a text: which poolings are fastpool's, which are OpenVINO's, and why.

        Returns
        -------
        text : str
            A line with the counts, then a line for each.
        """
        return "\n".join([f"{len(self)} replaced, {len(self.left)} left", *self._lines])

    def _add(self, node, is_ours, reason):
        name = node.get_friendly_name()
        if is_ours:
            self.append(_layer(node))
        else:
            self.left[name] = reason
        whose = "fastpool" if is_ours else "OpenVINO"
        self._lines.append(f"  {shown(name)} ({node.get_type_name()}): {whose}, {reason}")


def replace_pooling(model, *, nan=None, numerics=None, layout=None, select="faster"):
    """Replace the pooling operations of a model by fastpool's.

    These are MaxPool, AvgPool, AdaptiveAvgPool and AdaptiveMaxPool.

    Parameters
    ----------
    model : openvino.Model
        The model, changed in place together with the bodies of If, Loop and TensorIterator. Names
        of operations and tensors stay.
    nan : {"propagate", "ignore"}, optional
        The NaN rule of the new operations, "propagate" by default. Of the replaced ones, maxima
        follow "ignore", and averages "propagate".
    numerics : {"pairwise", "exact", "sequential"}, optional
        How the new operations take averages, as in :func:`fastpool.avg_pool`: "pairwise" by
        default. A replaced AvgPool follows "sequential".
    layout : {"NCHW", "NHWC"}, optional
        Layout of the new operations' input. "NHWC" puts transpositions around them. They cost
        nothing if OpenVINO has channels last in memory anyway, as around convolutions. "NHWC" is
        the default for models that have convolutions.
    select : {"faster", "all", "none"} or function of an openvino.Node
        Which poolings are replaced: those that fastpool runs faster, all, none, or those for which
        the function returns a true value. With "faster", all operations that know an argument given
        here (`nan`, `numerics`) are replaced. The others are if they were measured to be faster
        (docs/openvino.md has the table).

    Returns
    -------
    replaced : Replaced
        A list of what was replaced, whose method `explain` says why.

    Raises
    ------
    TypeError, ValueError
        One cannot be replaced. Then none is.

    Examples
    --------
    >>> import numpy as np, openvino, openvino.opset14 as ops
    >>> import fastpool.openvino
    >>> x = ops.parameter([1, 3, 224, 224], np.float32)
    >>> a = ops.max_pool(x, [1, 1], [1, 1], [6, 6], [6, 6], [13, 13], name="long")
    >>> b = ops.max_pool(
    ...     a.output(0), [2, 2], [1, 1], [0, 0], [0, 0], [2, 2], name="short"
    ... )
    >>> model = openvino.Model([ops.relu(b.output(0))], [x])
    >>> replaced = fastpool.openvino.replace_pooling(model)
    >>> for layer in replaced:
    ...     print(layer.name, layer.attributes["kernel"], layer.output_dims[0])
    long (13, 13) (1, 3, 224, 224)
    >>> print(replaced.explain())
    1 replaced, 1 left
      'long' (MaxPool): fastpool, 169 taps per element of the input, faster from 64 on
      'short' (MaxPool): OpenVINO, 1 taps per element of the input, faster from 64 on
    >>> compiled = openvino.compile_model(model, "CPU")
    """
    if not isinstance(model, openvino.Model):
        raise TypeError(f"model: expected an openvino.Model, got {shown(model)}")
    select = arguments.select(select)
    given = {name for name, value in (("nan", nan), ("numerics", numerics)) if value is not None}
    nan, numerics = arguments.nan(nan), arguments.numerics(numerics)
    nodes = list(_nodes(model))
    convolutions = any("Convolution" in node.get_type_name() for node in nodes)
    if layout is None:
        layout = "NHWC" if convolutions else "NCHW"
    replaced, pools = Replaced(), []
    for node in nodes:
        if _is_pooling(node.get_type_info()):
            is_ours, reason = _choice(node, select, given, convolutions)
            replaced._add(node, is_ours, reason)
            pools += [node] * is_ours
    replacements = [_replacement(node, nan, numerics, layout) for node in pools]
    for node, outputs in zip(pools, replacements, strict=True):
        for old, new in zip(node.outputs(), outputs, strict=False):
            old.replace(new)
    return replaced


def _choice(node, select, given, convolutions):
    """Return whether fastpool is to run a node, and why."""
    if callable(select):
        is_ours = bool(select(node))
        return is_ours, "selected" if is_ours else "not selected"
    if select != "faster":
        return select == "all", f'select="{select}"'
    followed = given - ({"numerics"} if "Max" in node.get_type_name() else set())
    if followed:
        return True, f"follows {', '.join(sorted(followed))}"
    if _fails(node):
        return True, "OpenVINO does not run it"
    return _faster(node, convolutions)


def _fails(node):
    """Is a node one that OpenVINO 2026.4 does not compile, or on which it crashes?"""
    kind = node.get_type_name()
    if kind == "AdaptiveMaxPool":
        return node.get_output_element_type(1) == openvino.Type.i64
    return kind == "AvgPool" and node.get_attributes().get("dilations") == []


def _faster(node, convolutions):
    """Return whether fastpool was measured to be faster, and why.

    OpenVINO 2026.4 ran its poolings on two threads. It calls an operation of fastpool on one.
    """
    kind = node.get_type_name()
    if _has_indices(node):
        return True, "it has indices"
    if kind.startswith("Adaptive"):
        outputs = _dims(node.output(0))[2:]
        if outputs and set(outputs) == {1}:
            return False, "as fast on whole planes"
        return True, "adaptive windows"
    sizes = _dims(node.input(0))
    count = math.prod(map(abs, sizes))  # with a batch of 1 if it is unknown
    if sizes and -1 not in sizes[1:] and count < _LEAST_SIZE:
        return False, f"{count} elements: a call pays from {_LEAST_SIZE} on"
    attributes = _attributes(node)
    inside = [
        min(taps, size) if size > 0 else taps
        for taps, size in zip(attributes["kernel"], sizes[2:] or attributes["kernel"], strict=True)
    ]
    outputs = _dims(node.output(0))
    if -1 in (*sizes[2:], *outputs[2:]) or not sizes:
        taps = math.prod(inside) / math.prod(attributes["strides"])
    else:
        taps = math.prod(inside) * math.prod(outputs[2:]) / max(1, math.prod(sizes[2:]))
    if node.get_input_element_type(0) in (openvino.Type.u8, openvino.Type.i8):
        least = 9
    elif kind == "AvgPool":
        least = 200
    else:
        least = 150 if convolutions else 64
    return taps >= least, f"{taps:.3g} taps per element of the input, faster from {least} on"


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


def _is_pooling(kind):
    return kind.name in _OPERATIONS and kind.version_id.startswith("opset")


def _replacement(node, nan, numerics, layout):
    """Return the outputs that replace those of a node."""
    name, kind = node.get_friendly_name(), node.get_type_name()
    x, *others = node.input_values()
    attributes = _attributes(node) | {"nan": nan}
    rank = node.get_output_partial_shape(0).rank
    if rank.is_dynamic:
        layout = "NCHW"  # a transposition needs a rank
    if layout == "NHWC":
        channel = rank.get_length() - 1  # the axis, if it is the last one
        x = transpose(x, [0, *range(2, channel + 1), 1], name=f"{name}/NHWC")
    indices = _has_indices(node)
    if kind in ("MaxPool", "AdaptiveMaxPool"):
        # The CPU plugin computes with 32-bit indices and expects them from other operations.
        attributes |= {"index_element_type": "i32", "return_indices": indices}
    else:
        attributes["numerics"] = numerics
    pool = _OPERATIONS[kind](x, *others, **attributes, layout=layout)
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


def _has_indices(node):
    """Does the model use the indices of a node?"""
    return node.get_output_size() > 1 and bool(node.output(1).get_target_inputs())


def _attributes(node):
    """Return the attributes of a node by the names that the functions have for them."""
    attributes = {name.replace("-", "_"): value for name, value in node.get_attributes().items()}
    if attributes.get("dilations") == []:  # of an AvgPool-16 that was made without
        del attributes["dilations"]
    return attributes


def _layer(node):
    attributes = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in _attributes(node).items()
    }
    kind = node.get_type_info()
    version = int(kind.version_id.removeprefix("opset"))
    dims = [tuple(map(_dims, ports)) for ports in (node.inputs(), node.outputs())]
    return make_layer(kind.name, node.get_friendly_name(), version, attributes, *dims)


def _dims(port):
    shape = port.get_partial_shape()
    if shape.rank.is_dynamic:
        return ()
    return tuple(size.get_length() if size.is_static else -1 for size in shape)
