"""Activations that fusion passes put on pooling nodes of the channels-last domain."""

import numpy as np

from ._arguments import dtype_name


def apply_activation(y, activation, params):
    """Replace y by its activation, computed in float32 or wider; NaN stays NaN.

    Parameters
    ----------
    y : ndarray
        Changed in place.
    activation : str or None
    params : tuple of float
        Relu: none, or the range (minimum, maximum); Clip: (minimum, maximum); LeakyRelu: (alpha,);
        HardSigmoid: (alpha, beta), for clip(alpha * x + beta, 0, 1).

    Notes
    -----
    Names and parameters are those that onnxruntime's fusion writes into com.ms.internal.nhwc.
    """
    if activation is None:
        return
    name = dtype_name(y.dtype)
    if activation in ("Relu", "Clip"):
        low, high = params or (0.0, np.inf)
        y[...] = _clipped(y, low, high, name)
        return
    wide = y.astype(np.float64 if name == "float64" else np.float32)
    y[...] = _FUNCTIONS[activation](wide, *params).astype(y.dtype)


def _clipped(y, low, high, name):
    """min(max(y, low), high), in integers where y is: no rounding, and bounds may be infinite."""
    if "float" in name:
        wide = y.astype(np.float64 if name == "float64" else np.float32)
        return np.minimum(np.maximum(wide, low), high).astype(y.dtype)
    info = (0, 1) if name == "bool" else (np.iinfo(name).min, np.iinfo(name).max)
    least = max(info[0], _whole(low, np.ceil))
    most = min(info[1], _whole(high, np.floor))
    least, most = min(least, info[1]), max(most, info[0])
    return np.minimum(np.maximum(y, y.dtype.type(least)), y.dtype.type(most))


def _whole(bound, rounding):
    """The integer bound that means the same for integers."""
    if np.isinf(bound):
        return -(1 << 80) if bound < 0 else 1 << 80
    return int(rounding(bound))


def _sigmoid(x):
    # exp of a negative number only: no overflow
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


_FUNCTIONS = {
    "LeakyRelu": lambda x, alpha: np.where(x < 0, x * x.dtype.type(alpha), x),
    "HardSigmoid": lambda x, alpha, beta: np.clip(
        x * x.dtype.type(alpha) + x.dtype.type(beta), 0, 1
    ),
    "Tanh": np.tanh,
    "Sigmoid": _sigmoid,
    "Silu": lambda x: x * _sigmoid(x),
}
