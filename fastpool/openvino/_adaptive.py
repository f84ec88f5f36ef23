"""Define adaptive poolings for OpenVINO that fastpool runs in compiled models."""

import numpy as np
import openvino
from openvino.opset1 import constant

from .._planning import arguments
from .._planning.values import as_counts
from .._plans import make_adaptive_avg_plan, make_adaptive_max_plan
from ._attributes import index_dtype
from ._extension import Pooling, switches


class _AdaptivePooling(Pooling):
    """A pooling whose second input gives the output size."""

    def __init__(self, x, output_size, attributes):
        if x is not None and not isinstance(output_size, (openvino.Node, openvino.Output)):
            expected = 0, (1, 2, 3), "a node or 1 to 3 ints"
            sizes = as_counts(output_size, "output_size", *expected)
            output_size = constant(np.array(sizes, np.int64))
        super().__init__([x, output_size], attributes)

    def _rank(self):
        shape = self.get_input_partial_shape(1)
        return shape[0].get_length() if shape.is_static and len(shape) == 1 else None

    def _resolve(self, n):
        self._native = switches(self._attributes)
        self._attributes |= self._native

    def _output_shape(self, shape):
        sizes, places = list(shape), self._spatial(len(shape))
        given = self.input_value(1).get_node()
        if given.get_type_name() != "Constant":
            outputs = [-1] * len(places)
        elif shape.is_static:
            plan = self._plan(tuple(shape.to_shape()), "bool", given.data.tolist())
            return openvino.PartialShape(plan.output_shape)
        else:
            outputs = arguments.output_size(given.data.tolist(), [1] * len(places))
        for place, extent in zip(places, outputs, strict=True):
            sizes[place] = openvino.Dimension(extent)
        return openvino.PartialShape(sizes)

    def _arguments(self, inputs):
        return (inputs[1].data.tolist(),)


class AdaptiveAvgPool(_AdaptivePooling):
    """An AdaptiveAvgPool operation that OpenVINO runs by calling fastpool.

    Means are those of :func:`fastpool.openvino.adaptive_avg_pool`. Its type in a model is
    FastpoolAdaptiveAvgPool. To read a saved model with it, call
    ``core.add_extension(fastpool.openvino.AdaptiveAvgPool)`` first. It runs on one thread, as
    :class:`MaxPool` does.

    Parameters
    ----------
    x : openvino.Node or openvino.Output
        As in :class:`MaxPool`.
    output_size : openvino.Node, openvino.Output or sequence of int
        The second input: the outputs along each spatial axis. Ints become a constant.
    numerics : {"pairwise", "exact", "sequential"}
        As in :func:`fastpool.avg_pool`.
    nan : {"propagate", "ignore"}
        As in :func:`fastpool.avg_pool`.
    layout : {"NCHW", "NHWC"}
        Whether channels come first or last in input and output.

    Raises
    ------
    TypeError, ValueError
        An attribute is wrong, or an input has a wrong rank, element type or value.

    Examples
    --------
    >>> import numpy as np, openvino, openvino.opset14 as ops
    >>> import fastpool.openvino
    >>> x = ops.parameter([1, 1, 4], np.float32)
    >>> pool = fastpool.openvino.AdaptiveAvgPool(x, [2])
    >>> run = openvino.compile_model(openvino.Model([pool], [x]), "CPU")
    >>> run([np.array([[[1, 5, 2, 4]]], np.float32)])[0].tolist()
    [[[3.0, 3.0]]]
    """

    class_type_info = openvino.DiscreteTypeInfo("FastpoolAdaptiveAvgPool", "extension")

    def __init__(
        self, x=None, output_size=None, *, numerics="pairwise", nan="propagate", layout="NCHW"
    ):
        attributes = {"numerics": numerics, "nan": nan, "layout": layout}
        super().__init__(x, output_size, attributes)

    def _plan(self, shape, dtype, output_size):
        native = self._native
        values = None, None, native["numerics"], native["nan"], 1
        return make_adaptive_avg_plan(shape, dtype, output_size, native["layout"], *values)


class AdaptiveMaxPool(_AdaptivePooling):
    """An AdaptiveMaxPool operation that OpenVINO runs by calling fastpool.

    Values and indices are those of :func:`fastpool.openvino.adaptive_max_pool`. Its type in a model
    is FastpoolAdaptiveMaxPool. To read a saved model with it, call
    ``core.add_extension(fastpool.openvino.AdaptiveMaxPool)`` first. It runs on one thread, as
    :class:`MaxPool` does.

    Parameters
    ----------
    x : openvino.Node or openvino.Output
        As in :class:`MaxPool`.
    output_size : openvino.Node, openvino.Output or sequence of int
        As in :class:`AdaptiveAvgPool`.
    index_element_type : {"i64", "i32"}
        Type of the indices. If a model computes with them, OpenVINO's CPU plugin needs "i32".
    nan : {"propagate", "ignore"}
        As in :func:`fastpool.max_pool`.
    layout : {"NCHW", "NHWC"}
        Whether channels come first or last in input and outputs.
    return_indices : bool
        Whether there is a second output.

    Raises
    ------
    TypeError, ValueError
        An attribute is wrong, or an input has a wrong rank, element type or value.

    Examples
    --------
    >>> import numpy as np, openvino, openvino.opset14 as ops
    >>> import fastpool.openvino
    >>> x = ops.parameter([1, 1, 4], np.float32)
    >>> pool = fastpool.openvino.AdaptiveMaxPool(x, [2])
    >>> run = openvino.compile_model(openvino.Model(pool.outputs(), [x]), "CPU")
    >>> [output.tolist() for output in run([np.array([[[1, 5, 2, 4]]], np.float32)]).values()]
    [[[[5.0, 4.0]]], [[[1, 3]]]]
    """

    class_type_info = openvino.DiscreteTypeInfo("FastpoolAdaptiveMaxPool", "extension")

    def __init__(
        self,
        x=None,
        output_size=None,
        *,
        index_element_type="i64",
        nan="propagate",
        layout="NCHW",
        return_indices=True,
    ):
        attributes = {
            "index_element_type": index_element_type,
            "nan": nan,
            "layout": layout,
            "return_indices": return_indices,
        }
        super().__init__(x, output_size, attributes)

    def _resolve(self, n):
        super()._resolve(n)
        self._native["index_dtype"] = index_dtype(self._attributes["index_element_type"])

    def _plan(self, shape, dtype, output_size):
        native = self._native
        indices = native["return_indices"], 2, native["index_dtype"], "NCHW"
        values = native["layout"], native["nan"], *indices, 1
        return make_adaptive_max_plan(shape, dtype, output_size, *values)
