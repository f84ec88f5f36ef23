"""Define MaxPool and AvgPool operations for OpenVINO that fastpool runs in compiled models."""

import openvino

from .._planning.values import as_counts
from .._plans import make_avg_plan, make_plan
from ._attributes import avg_pool_attributes, max_pool_attributes, windows_plan
from ._extension import Pooling, switches

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
}


class _WindowPooling(Pooling):
    """A pooling whose attributes give the windows.

    A class derived from it has `_before_reading`, OpenVINO's attributes; `_translate` and
    `_version`, which make fastpool's attributes of them; ``_back(native)``, which does the opposite
    for those that are not of the windows; and `_make`, which makes plans.
    """

    def __init__(self, x, attributes):
        super().__init__([x], attributes | (self._before_reading if x is None else {}))

    def _rank(self):
        kernel = self._attributes["kernel"]
        return len(as_counts(kernel, "kernel", 1, (1, 2, 3), "1 to 3 ints"))

    def _resolve(self, n):
        own = {name: self._attributes[name] for name in self._before_reading}
        native = {"pads": (0,) * 2 * n} | self._translate(n, self._version, **own)
        native["dilations"] = native["dilations"] or (1,) * n
        others = switches(self._attributes)
        self._native = native | others
        self._attributes |= others | {
            "kernel": list(native["kernel_shape"]),
            "strides": list(native["strides"]),
            "pads_begin": list(native["pads"][:n]),
            "pads_end": list(native["pads"][n:]),
            "dilations": list(native["dilations"]),
            **self._back(native),
        }

    def _output_shape(self, shape):
        if shape.is_static:
            return openvino.PartialShape(self._plan(tuple(shape.to_shape()), "bool").output_shape)
        sizes = list(shape)
        for i, place in enumerate(self._spatial(len(sizes))):
            sizes[place] = self._output_dimension(i, sizes[place])
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
        n = len(self._native["kernel_shape"])
        alone = {name: self._native[name] for name in ("auto_pad", "ceil_mode", "ceil_rule")}
        for name in ("kernel_shape", "strides", "dilations", "pads"):
            alone[name] = self._native[name][i::n]
        return windows_plan(make_plan, (1, 1, size), "bool", self._version, **alone).output_shape[2]

    def _plan(self, shape, dtype):
        attributes = {**self._native, "num_threads": 1}
        return windows_plan(self._make, shape, dtype, self._version, **attributes)


class MaxPool(_WindowPooling):
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
    _before_reading = _BEFORE_READING | {"index_element_type": "i64", "axis": 0}
    _translate, _version = staticmethod(max_pool_attributes), 14
    _make = staticmethod(make_plan)

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
        attributes = {
            "kernel": kernel,
            "strides": strides,
            "pads_begin": pads_begin,
            "pads_end": pads_end,
            "rounding_type": rounding_type,
            "auto_pad": auto_pad,
            "dilations": dilations,
            "index_element_type": index_element_type,
            "axis": axis,
            "nan": nan,
            "layout": layout,
            "return_indices": return_indices,
        }
        super().__init__(x, attributes)

    def _back(self, native):
        return {"axis": native["index_axis"]}


class AvgPool(_WindowPooling):
    """An AvgPool operation that OpenVINO runs by calling fastpool.

    Means are those of :func:`fastpool.openvino.avg_pool`, with version 16's attributes, which
    include those of 1 and 14. Its type in a model is FastpoolAvgPool. To read a saved model with
    it, call ``core.add_extension(fastpool.openvino.AvgPool)`` first. It runs on one thread, as
    :class:`MaxPool` does.

    Parameters
    ----------
    x : openvino.Node or openvino.Output
        As in :class:`MaxPool`.
    kernel, strides, pads_begin, pads_end, exclude_pad, rounding_type, auto_pad, dilations, beyond
        As in :func:`fastpool.openvino.avg_pool`.
    numerics : {"pairwise", "exact", "sequential"}
        As in :func:`fastpool.avg_pool`. "sequential" gives the bits of OpenVINO's float32.
    nan : {"propagate", "ignore"}
        As in :func:`fastpool.avg_pool`. OpenVINO's own AvgPool follows "propagate".
    layout : {"NCHW", "NHWC"}
        Whether channels come first or last in input and output.

    Raises
    ------
    TypeError, ValueError
        An attribute is wrong, or does not fit the input's shape or element type.

    Examples
    --------
    >>> import numpy as np, openvino, openvino.opset14 as ops
    >>> import fastpool.openvino
    >>> x = ops.parameter([1, 1, 4], np.float32)
    >>> pool = fastpool.openvino.AvgPool(
    ...     x, kernel=[2], strides=[2], auto_pad="valid", exclude_pad=True
    ... )
    >>> run = openvino.compile_model(openvino.Model([pool], [x]), "CPU")
    >>> run([np.array([[[1, 5, 2, 4]]], np.float32)])[0].tolist()
    [[[3.0, 3.0]]]
    """

    class_type_info = openvino.DiscreteTypeInfo("FastpoolAvgPool", "extension")
    # 0 or 1 for exclude_pad, because no bool would be illegal.
    _before_reading = _BEFORE_READING | {"exclude_pad": -1, "beyond": ""}
    _translate, _version = staticmethod(avg_pool_attributes), 16
    _make = staticmethod(make_avg_plan)

    def __init__(
        self,
        x=None,
        *,
        kernel=None,
        strides=None,
        pads_begin=None,
        pads_end=None,
        exclude_pad=None,
        rounding_type="floor",
        auto_pad="explicit",
        dilations=None,
        beyond=None,
        numerics="pairwise",
        nan="propagate",
        layout="NCHW",
    ):
        attributes = {
            "kernel": kernel,
            "strides": strides,
            "pads_begin": pads_begin,
            "pads_end": pads_end,
            "exclude_pad": exclude_pad,
            "rounding_type": rounding_type,
            "auto_pad": auto_pad,
            "dilations": dilations,
            "beyond": beyond,
            "numerics": numerics,
            "nan": nan,
            "layout": layout,
        }
        super().__init__(x, attributes)

    def _back(self, native):
        exclude_pad = int(not native["count_include_pad"])
        return {"exclude_pad": exclude_pad, "beyond": native["beyond"]}
