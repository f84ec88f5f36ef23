"""What the kernels inside onnxruntime ask: which nodes are valid, shapes of outputs, and plans.

_runtime.c calls these functions, when a model is loaded and when a node sees a new shape.
"""

import contextlib
import ctypes
import functools
import hashlib
import inspect
import itertools
import math
import struct
import sys
import threading
import weakref

import numpy as np

from .._planning import arguments
from .._planning.dtypes import FLOATS, is_float
from .._planning.operators import counts
from .._planning.values import choice, shown
from .._running import capi, plan_cache
from .._running.forks import remember
from .._running.outputs import plain_dtype
from ._averages import checked_quantization, plan_average_pool
from ._global import plan_global_average, plan_global_max
from ._lp import plan_global_lp_pool, plan_lp_pool
from ._operators import plan_max_pool, plan_max_unpool

# ONNX's numbers of element types.
ELEMENT_TYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    16: "bfloat16",
}
OPTIONS = {
    "fastpool.numerics": arguments.numerics,
    "fastpool.nan": arguments.nan,
    "fastpool.select": arguments.select,
    "fastpool.domains": lambda value: choice(value, "domains", ("standard", "all")),
    "fastpool.report": str,
}
_PLANS = {
    "MaxPool": plan_max_pool,
    "AveragePool": plan_average_pool,
    "LpPool": plan_lp_pool,
    "MaxUnpool": plan_max_unpool,
    "GlobalMaxPool": plan_global_max,
    "GlobalAveragePool": plan_global_average,
    "GlobalLpPool": plan_global_lp_pool,
    "NhwcMaxPool": plan_max_pool,
    "QLinearAveragePool": plan_average_pool,
}
# Arguments of these that a node may lack, or no node has: onnxruntime's conventions (docs/onnx.md).
_DEFAULTS = {
    "auto_pad": "NOTSET",
    "ceil_mode": 0,
    "storage_order": 0,
    "count_include_pad": 0,
    "p": 2,
    "activation_params": (),
    "layout": "NCHW",
    "index_layout": "NCHW",
    "nan": "propagate",
    "numerics": "pairwise",
    "rounding": "half_even",
    "beyond": "drop",
    "ceil_rule": "clip",
    "partial": "sum",
    "pads_with_auto_pad": "ignore",
    "index_space": "output",
    "num_threads": 1,
}
# Of a window that is checked before an input is known. (That of a larger one has no address.)
_MOST_TAPS = 1 << 8
_GLOBAL = "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"
# What the nodes report of a session with the option "fastpool.report": (operator, output, who).
report = []
_made_names = itertools.count()


def options_of(text):
    """Return the options of a session as a dict, from lines of "name=value"."""
    return dict(line.split("=", 1) for line in text.split("\n") if line)


def domain_count(text):
    """Return for how many domains a session gets kernels. Raise if an option has a wrong value."""
    options = options_of(text)
    for name, value in options.items():
        try:
            OPTIONS[name](value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}: {error}") from None
    if options.get("fastpool.select") == "none":
        return 0
    return 2 if options.get("fastpool.domains") == "all" else 1


class _Kept:
    """The plans of all nodes, as a cache among those that stay below the limit of the process.

    The latest plan of a node belongs to its session, as one that a user holds. So a session whose
    shapes do not change never plans again, however many nodes it has.
    """

    def __init__(self):
        self._lock = threading.RLock()
        self._nodes = weakref.WeakSet()
        self._more = 0  # plans than one per node

    @property
    def nbytes(self):
        return self._more * _PLAN_BYTES

    def add(self, node, more):
        with self._lock:
            self._nodes.add(node)
            self._more += more

    def clear(self):
        """Forget all plans but the latest one of each node."""
        with self._lock:
            nodes = list(self._nodes)
        for node in nodes:
            node.forget()

    def forget(self):
        """Renew the lock in a child made by fork."""
        self._lock = threading.RLock()


# What a plan takes: 2,000 of them were measured to take 15 MB.
_PLAN_BYTES = 8 << 10
_kept = _Kept()
plan_cache.register(_kept)


class Node:
    """A pooling node of a session."""

    def __init__(self, op_type, attributes, indices, name, output, options, code, shape, kernel):
        """Check what is known of a node.

        Parameters
        ----------
        op_type : str
        attributes : dict
            Those that the node has.
        indices : int
            Has it that output?
        name, output : str
            Of the node, and of its first output.
        options : str
            Of the session, as for `options_of`.
        code : int
            The type of the input as ONNX counts them, 0 if it is not known.
        shape : tuple of int
            Of the input; -1 is not known. Empty if none is.
        kernel : int
            The address of the kernel, for `_runtime.forget`.
        """
        self._op_type = op_type
        self.label = f"node {shown(name)} ({op_type})" if name else f"node ({op_type})"
        if not name:
            self.label += f" of the output {shown(output)}"
        options = options_of(options)
        self._values = _DEFAULTS | attributes
        self._values["n_outputs"] = 2 if indices else 1
        if has_channels_last(op_type, attributes):
            self._values["layout"] = "NHWC"
        if op_type == "QLinearAveragePool":
            self._values["beyond"] = "count"
        for name in ("nan", "numerics"):
            self._values[name] = options.get(f"fastpool.{name}", _DEFAULTS[name])
        self._kernel, self._count = kernel, 0
        self._lock = threading.RLock()  # for Pythons without the GIL
        with _named(self.label):
            dtype = _element_type(code) if code else "float32"
            if op_type.endswith("LpPool"):
                _check_norm(dtype, attributes)
            if op_type not in _GLOBAL:
                _check_windows(op_type, attributes, len(shape) - 2)
        # The attributes of onnxruntime's own kernel, if it may be faster. It follows no option.
        self.theirs = None
        follows = {"fastpool.nan", *["fastpool.numerics"] * ("Average" in op_type)}
        if options.get("fastpool.select") != "all" and not follows & options.keys():
            if ELEMENT_TYPES.get(code) == "float32" and not indices:
                self.theirs = _all_attributes(op_type, attributes)
        if "fastpool.report" in options:
            report.append((op_type, output, self._who(shape)))

    def _who(self, shape):
        """Return who runs the node, in words."""
        if self.theirs is None:
            return "fastpool"
        if not shape or min(shape) < 0:
            return "fastpool, or onnxruntime for shapes where that is faster"
        with contextlib.suppress(TypeError, ValueError):
            if self._is_theirs(self._planned(shape, "float32", None)):
                return "onnxruntime, whose kernel is faster for its shape"
        return "fastpool"

    def _is_theirs(self, plan):
        return self.theirs is not None and is_theirs_faster(self._op_type, plan)

    def plan(self, address, size, code, shape, told):
        """Make a plan: fill the struct at an address, or return a function that runs it.

        `told` are the numbers of other inputs: those of output_shape, or the bits of scales, each
        with its zero point. It is empty if there are none.

        Returns
        -------
        output_shape : tuple of int
        call : function of the addresses of x and y, or None
            True if onnxruntime's own kernel is faster.
        """
        with _named(self.label):
            dtype = _element_type(code)
            quantised = self._op_type.startswith("QLinear")
            plan = self._planned(shape, dtype, None if quantised else told or None)
            self._count_plan()
            if self._is_theirs(plan):
                return plan.output_shape, True
            if self._op_type.endswith("LpPool"):
                return plan.output_shape, _caller(plan, shape, dtype)
            if self._op_type == "MaxUnpool":
                capi.from_unpool(plan, dtype, "int64", address, size)
            else:
                scales = _quantization(dtype, told) if quantised else None
                capi.from_plan(plan, address, size, scales)
            return plan.output_shape, None

    def _planned(self, shape, dtype, output_shape):
        if self._op_type == "MaxUnpool":
            dtype = plain_dtype(dtype)
        values = self._values | {"output_shape": output_shape}
        plan = _planned(_PLANS[self._op_type], shape, dtype, values)
        return plan[0] if self._op_type == "MaxUnpool" else plan

    def _count_plan(self):
        with self._lock:
            before, self._count = self._count, min(self._count + 1, runtime().MOST_PLANS)
        _kept.add(self, max(self._count, 1) - max(before, 1))

    def forget(self):
        """Forget all plans but the latest one."""
        with self._lock:
            if self._kernel:
                runtime().forget(self._kernel)
                _kept.add(self, 1 - max(self._count, 1))
                self._count = min(self._count, 1)

    def keep_within_limit(self):
        plan_cache.keep_within_limit()

    def end(self):
        """Say that the kernel is no more."""
        with self._lock:
            _kept.add(self, 1 - max(self._count, 1))
            self._kernel, self._count = 0, 0


@contextlib.contextmanager
def _named(label):
    """Name the node in errors."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{label}: {error}") from error


def has_channels_last(op_type, attributes):
    """Has a node the channels last?"""
    return op_type == "NhwcMaxPool" or attributes.get("channels_last", 0) == 1


def _quantization(dtype, told):
    """Return the scales and zero points of 8-bit elements, from their bits."""
    if dtype not in ("uint8", "int8"):
        raise TypeError(f"x: expected uint8 or int8, got {dtype}")
    signed = 256 if dtype == "int8" else 0
    scales = struct.unpack("<2f", struct.pack("<2I", *told[::2]))
    zeros = [byte - signed * (byte > 127) for byte in told[1::2]]
    return checked_quantization(dtype, scales[0], zeros[0], scales[1], zeros[1])


def _element_type(code):
    if code not in ELEMENT_TYPES:
        got = "string" if code == 8 else f"type {code} of ONNX"
        raise TypeError(f"x: expected one of {', '.join(ELEMENT_TYPES.values())}, got {got}")
    return ELEMENT_TYPES[code]


def _check_norm(dtype, attributes):
    if not is_float(dtype):
        raise TypeError(f"x: expected one of {', '.join(FLOATS)}, got {dtype}")
    p = attributes.get("p", 2)
    if not isinstance(p, int) or p < 1:
        raise ValueError(f"p: expected an int of at least 1, got {shown(p)}")


def _check_windows(op_type, attributes, count):
    """Check the attributes of windows, over `count` axes, as far as no other shape is needed."""
    kernel = attributes.get("kernel_shape")
    if not kernel or not isinstance(kernel, tuple):
        raise ValueError(f"kernel_shape: expected an int per spatial axis, got {shown(kernel)}")
    if count > 0:
        counts(kernel, "kernel_shape", count, 1)
    if op_type == "MaxUnpool":
        counts(attributes.get("strides"), "strides", len(kernel), 1)
        counts(attributes.get("pads"), "pads", 2 * len(kernel), 0)
        return
    # Any valid window fits into an input of its own extent.
    counts(kernel, "kernel_shape", len(kernel), 1)
    ones = (1,) * len(kernel)
    dilations = counts(attributes.get("dilations"), "dilations", len(kernel), 1) or ones
    fewer = {"kernel_shape": tuple(min(k, _MOST_TAPS) for k in kernel)}
    fewer["dilations"] = tuple(min(d, _MOST_TAPS) for d in dilations)
    sizes = [(k - 1) * d + 1 for k, d in zip(*fewer.values(), strict=True)]
    _spatial_shape(attributes | fewer, sizes)


# Operators whose kernel in onnxruntime may be faster -> their attributes.
_WINDOW = "kernel_shape", "strides", "pads", "dilations", "auto_pad", "ceil_mode"
_THEIRS = {
    "GlobalAveragePool": (),
    "GlobalLpPool": ("p",),
    "LpPool": (*_WINDOW, "p"),
    "MaxPool": (*_WINDOW, "storage_order"),
}


def _all_attributes(op_type, attributes):
    """Return all attributes of a node for onnxruntime's kernel, or None if it is never faster."""
    count = len(attributes.get("kernel_shape", ()))
    if op_type not in _THEIRS or (op_type == "MaxPool" and count != 3):
        return None
    ones = (1,) * count
    values = _DEFAULTS | {"strides": ones, "dilations": ones, "pads": (0, 0) * count} | attributes
    return {name: values[name] for name in _THEIRS[op_type]}


def is_theirs_faster(op_type, plan):
    """Is onnxruntime's own kernel faster for an input of float32?

    As examples/inside_onnxruntime.py --nodes --select all measures it: onnxruntime 1.32, AVX-512,
    one thread.
    """
    shape = plan.input_shape
    if not 3 <= len(shape) <= 5 or not all(shape):  # (its kernel refuses some of these)
        return False
    if op_type == "GlobalAveragePool":  # 0.3 to 0.9 of its speed, and 1.2 to 1.6 otherwise
        return len(shape) != 4 or min(shape[2:]) < 24 or math.prod(shape) < 1 << 15
    if op_type == "MaxPool":  # 0.8, but 1.7 to 18 with other windows over three axes
        slowest = plan.kernel_shape == (3, 3, 3) and plan.strides == (2, 2, 2)
        return slowest and not any(plan.pads) and set(plan.dilations) == {1}
    # Norms: a call takes 150 us, and onnxruntime 16 ns for each tap.
    return math.prod(plan.output_shape) * math.prod(plan.kernel_shape) < 10_000


def _spatial_shape(attributes, sizes):
    """Return the extents of the result of windows."""
    return _extents_of(tuple(sizes), tuple(attributes.items()))


@remember(256)
def _extents_of(sizes, attributes):
    values = _DEFAULTS | {"n_outputs": 1} | dict(attributes)
    return _planned(plan_max_pool, (1, 1, *sizes), "uint8", values).output_shape[2:]


def _planned(function, shape, dtype, values):
    """Call a function that makes plans; its other arguments are among some values."""
    return function(shape, dtype, *map(values.get, _names(function)))


@functools.cache
def _names(function):
    return tuple(inspect.signature(function).parameters)[2:]


def output_axes(op_type, attributes, is_told, axes):
    """Return the axes of a node's outputs, as a list of numbers, and names of unknown ones.

    `axes` are those of the input, in the same form, "" without a name; none if the rank is not
    known. `is_told` says whether an unpooling is given its output's shape. Wrong attributes are
    errors of `Node`. Axes of one name are taken to be equal, so one without gets its own.
    """
    axes = [_made_name() if axis == "" else axis for axis in axes]
    first = 1 if has_channels_last(op_type, attributes) else 2
    spatial = axes[first:][: len(axes) - 2]
    extents = [1] * len(spatial)
    if op_type not in _GLOBAL:
        extents = [
            _extent(op_type, attributes, is_told, axis, i, len(spatial))
            for i, axis in enumerate(spatial)
        ]
    return axes[:first] + extents + axes[first + len(spatial) :]


def _extent(op_type, attributes, is_told, axis, i, count):
    if is_told:
        return _made_name()
    own = {}  # the attributes along this axis
    for name, value in attributes.items():
        if isinstance(value, tuple):
            value = value[i::count] if name == "pads" else value[i : i + 1]
        own[name] = value
    with contextlib.suppress(TypeError, ValueError):
        if isinstance(axis, int) and op_type == "MaxUnpool":
            (kernel,), (stride,) = own["kernel_shape"], own.get("strides", (1,))
            extent = (axis - 1) * stride + kernel - sum(own.get("pads", (0, 0)))
            if extent > 0:
                return extent
        elif isinstance(axis, int):
            return _spatial_shape(own, [axis])[0]
    # Equal windows over equal extents get equal names. Names are made of names, and stay short.
    text = f"{op_type} {axis!r} {sorted(own.items())}"
    return f"fastpool.{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"


def _made_name():
    return f"fastpool.{next(_made_names)}"


def _caller(plan, shape, dtype):
    """Return a function that runs a plan on arrays at addresses."""
    if dtype == "bfloat16":
        import ml_dtypes

        dtype = ml_dtypes.bfloat16
    shapes = shape, plan.output_shape

    def call(*addresses):
        x, y = map(_array, addresses, shapes, [np.dtype(dtype)] * 2)
        plan(x, out=y)

    return call


def _array(address, shape, dtype):
    nbytes = math.prod(shape) * dtype.itemsize
    if not nbytes:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * nbytes).from_address(address)
    return np.frombuffer(memory, dtype).reshape(shape)


@functools.cache
def runtime():
    """Return the compiled module, ready for onnxruntime."""
    from . import _runtime

    _runtime.set_inside(sys.modules[__name__])
    return _runtime
