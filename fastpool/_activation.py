"""Activations that fusion passes put on pooling nodes of the channels-last domain."""

import math

import numpy as np

from ._arguments import dtype_name


def apply_activation(y, activation, params):
    """Replace y by its activation, in place; NaN stays NaN.

    Parameters
    ----------
    y : ndarray
        Floats, computed in float32 or wider; or integers, for Relu and Clip.
    activation : str or None
    params : tuple of float
        As `_arguments.activation` gives them. Relu, Clip: minimum and maximum; LeakyRelu: alpha;
        HardSigmoid: alpha and beta.

    Notes
    -----
    Names and parameters are those that onnxruntime's fusion writes into com.ms.internal.nhwc.
    """
    if activation is None:
        return
    name = dtype_name(y.dtype)
    if "int" in name:
        _clip_integers(y, *params)
        return
    with np.errstate(all="ignore"):  # NaN, signalling ones too, and infinities are data here
        # Not contiguous, the last bit of a result could depend on the arrangement in memory.
        wide = y.astype("float64" if name == "float64" else "float32", order="C")
        y[...] = _FUNCTIONS[activation](wide, *params).astype(y.dtype)


def _clip_integers(y, least, most):
    """Clip to the integers between two floats, exactly."""
    info = np.iinfo(y.dtype)
    np.maximum(y, y.dtype.type(_bound(least, math.ceil, info)), out=y)
    np.minimum(y, y.dtype.type(_bound(most, math.floor, info)), out=y)


def _bound(value, rounding, info):
    """The integer of a type that bounds its integers as a float does, infinities included."""
    if value <= info.min:
        return info.min
    return info.max if value >= info.max else rounding(value)


def _clip(x, least, most):
    return np.minimum(np.maximum(x, least), most)


def _leaky_relu(x, alpha):
    np.copyto(x, x * alpha, where=x < 0)
    return x


def _hard_sigmoid(x, alpha, beta):
    return _clip(x * alpha + beta, 0, 1)


def _sigmoid(x):
    e = np.exp(-np.abs(x))  # never above 1
    numerator = np.ones_like(x)
    np.copyto(numerator, e, where=x < 0)
    return numerator / (1 + e)


def _silu(x):
    # -inf, which a window without elements gives, becomes the limit 0: -inf * 0 would be NaN
    return np.maximum(x, np.finfo(x.dtype).min) * _sigmoid(x)


# Of an array that may be overwritten. (np.where, and where= but that of copyto, raise SystemError
# when there is no memory.)
_FUNCTIONS = {
    "Relu": _clip,
    "Clip": _clip,
    "LeakyRelu": _leaky_relu,
    "HardSigmoid": _hard_sigmoid,
    "Tanh": np.tanh,
    "Sigmoid": _sigmoid,
    "Silu": _silu,
}
