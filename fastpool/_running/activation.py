"""Apply the activations that fusion passes put on pooling nodes of the channels-last domain."""

import math

import numpy as np

# Elements per block: a block and its temporaries fit into a second-level cache.
BLOCK = 1 << 15


def apply_activation(y, activation, params):
    """Apply an activation to y in place; NaN stays NaN.

    Parameters
    ----------
    y : ndarray
        Floats, computed in float32 or wider; or integers, for Relu and Clip.
    activation : str or None
    params : tuple of float
        As `arguments.activation` returns them. Relu, Clip: minimum and maximum; LeakyRelu: alpha;
        HardSigmoid: alpha and beta.

    Notes
    -----
    Names and parameters are those that onnxruntime's fusion writes into com.ms.internal.nhwc.
    """
    prepared_activation(activation, params, y.dtype, y.size)(y)


def prepared_activation(activation, params, dtype, size):
    """Return a function that does to an array what `apply_activation` does.

    All temporaries are allocated here, at most a few MB for an array of any size. The function
    allocates nothing, so it cannot fail after the array holds results.

    Parameters
    ----------
    activation, params
        As for `apply_activation`.
    dtype : numpy.dtype
        Of the array.
    size : int
        Elements of the array.
    """
    if activation is None or not size:
        return _leave
    count = min(size, BLOCK)
    narrow = wide = np.empty(count, dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        least, most = params
        params = (
            dtype.type(_bound(least, math.ceil, info)),
            dtype.type(_bound(most, math.floor, info)),
        )
    elif dtype.itemsize < 4:
        wide = np.empty(count, np.float32)
    function, spares = _FUNCTIONS[activation]
    memory = [np.empty_like(wide) for _ in range(spares)]
    if activation in _BY_SIGN:
        memory.append(np.empty(count, bool))

    def overwrite(x):
        function(x, *(spare[: x.size] for spare in memory), *params)

    return lambda y: _by_blocks(y, narrow, wide, overwrite)


def _leave(y):
    """Leave y as it is: there is no activation."""


def _by_blocks(y, narrow, wide, overwrite):
    """Call `overwrite` for each block of y, in place or converted to the type of `wide`."""
    with np.errstate(all="ignore"):  # infinities and NaN, signalling or not, are data here
        if wide is narrow and y.flags.carray:
            flat = y.reshape(-1)
            for first in range(0, y.size, BLOCK):
                overwrite(flat[first : first + BLOCK])
            return
        # Call the functions on contiguous, aligned arrays only. On other arrays NumPy allocates
        # memory, and the last bit of a result could depend on the memory layout.
        for block in _blocks(_compact(y)):
            values = narrow[: block.size]
            x = values if wide is narrow else wide[: block.size]
            np.copyto(values.reshape(block.shape), block)
            if x is not values:
                np.copyto(x, values)
            overwrite(x)
            if x is not values:
                np.copyto(values, x, casting="unsafe")
            np.copyto(block, values.reshape(block.shape))


def _compact(y):
    """Return y with its axes from the largest stride to the smallest, so that parts are compact."""
    return y.transpose(sorted(range(y.ndim), key=lambda axis: -abs(y.strides[axis])))


def _blocks(y):
    """Yield views of at most BLOCK elements that together cover y."""
    if y.size <= BLOCK:
        yield y
        return
    each = y.size // len(y)
    if each > BLOCK:
        for part in y:
            yield from _blocks(part)
        return
    step = BLOCK // each
    for first in range(0, len(y), step):
        yield y[first : first + step]


def _bound(value, rounding, info):
    """Return the integer of a type that bounds its integers as the float `value` does.

    `value` may be infinite.
    """
    if value <= info.min:
        return info.min
    return info.max if value >= info.max else rounding(value)


def _clip(x, least, most):
    np.maximum(x, least, out=x)
    np.minimum(x, most, out=x)


def _leaky_relu(x, scaled, negative, alpha):
    np.multiply(x, alpha, out=scaled)
    np.less(x, 0, out=negative)
    np.copyto(x, scaled, where=negative)


def _hard_sigmoid(x, alpha, beta):
    np.multiply(x, alpha, out=x)
    np.add(x, beta, out=x)
    _clip(x, 0, 1)


def _tanh(x):
    np.tanh(x, out=x)


def _sigmoid(x, e, negative):
    np.less(x, 0, out=negative)
    np.abs(x, out=e)
    np.negative(e, out=e)
    np.exp(e, out=e)  # never above 1
    x.fill(1)
    np.copyto(x, e, where=negative)
    np.add(e, 1, out=e)
    np.divide(x, e, out=x)


def _silu(x, sigmoid, e, negative):
    np.copyto(sigmoid, x)
    _sigmoid(sigmoid, e, negative)
    # A window without elements gives -inf, whose limit is 0; -inf * 0 would be NaN.
    np.maximum(x, np.finfo(x.dtype).min, out=x)
    np.multiply(x, sigmoid, out=x)


# name -> (function that overwrites its first argument, number of temporaries of that size).
# Only copyto gets where=: if there is no memory, other functions raise SystemError with it.
_FUNCTIONS = {
    "Relu": (_clip, 0),
    "Clip": (_clip, 0),
    "LeakyRelu": (_leaky_relu, 1),
    "HardSigmoid": (_hard_sigmoid, 0),
    "Tanh": (_tanh, 0),
    "Sigmoid": (_sigmoid, 1),
    "Silu": (_silu, 2),
}
# Activations that also need a boolean temporary, which marks negative elements.
_BY_SIGN = ("LeakyRelu", "Sigmoid", "Silu")
