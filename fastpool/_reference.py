"""The slow twin: max pooling and max unpooling in plain arithmetic.

It is the specification in code and the oracle of the tests. It shares only the normalising of
attributes and the activations with the rest of the package. Extents, padding, windows and indices
are computed here independently, one output position at a time.
"""

import math
from itertools import product

import numpy as np

from ._planning import arguments, geometry
from ._planning.dtypes import INDEX_DTYPES, lowest
from ._running.activation import apply_activation


def max_pool(
    x,
    kernel_shape,
    *,
    strides=1,
    pads=0,
    dilations=1,
    auto_pad="NOTSET",
    ceil_mode=False,
    ceil_rule="clip",
    layout="NCHW",
    nan="propagate",
    activation=None,
    activation_params=(),
    return_indices=False,
    storage_order=0,
    index_axis=0,
    index_dtype="int64",
    index_layout="NCHW",
):
    """Pool as `fastpool.max_pool` does."""
    x = np.asarray(x)
    dtype = arguments.dtype_name(x.dtype)
    order = geometry.layout(layout, x.shape)
    n = len(order.spatial)
    attributes = geometry.Attributes(
        kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule
    )
    kernels, strides, pads, dilations, auto_pad, *rounding = attributes.checked(n)
    nan = arguments.nan(nan)
    activation, activation_params = arguments.activation(activation, activation_params, dtype)
    return_indices = arguments.return_indices(return_indices)
    if auto_pad != "NOTSET" and any(pads):
        raise ValueError(f"pads {pads} with auto_pad {auto_pad}")

    planes = _planes(x, order)
    axes = []  # per spatial axis and output: the elements in the window, as a range
    for i, size in enumerate(planes.shape[2:]):
        window = size, kernels[i], strides[i], dilations[i]
        if auto_pad.startswith("SAME"):
            begin, outputs = _same(*window, auto_pad)
        else:
            begin, outputs = pads[i], _outputs(*window, pads[i], pads[n + i], *rounding)
        axes.append([_window(o, *window, begin) for o in range(outputs)])

    numbers = _numbers(x.shape, order, storage_order, index_axis, index_layout)
    index_dtype = arguments.index_dtype(index_dtype)
    if return_indices and numbers.size and numbers.max() > np.iinfo(index_dtype).max:
        raise ValueError(f"index_dtype {index_dtype} cannot hold {numbers.max()}")
    shape = planes.shape[:2] + tuple(map(len, axes))
    y = np.full(shape, lowest(dtype), planes.dtype)
    indices = np.full(shape, -1, index_dtype)
    batch, channel = np.ogrid[: shape[0], : shape[1]]
    for output in product(*map(range, shape[2:])):
        window = [axis[o] for axis, o in zip(axes, output, strict=True)]
        count = math.prod(map(len, window))
        if count == 0:
            continue
        box = tuple(slice(taps.start, taps[-1] + 1, taps.step) for taps in window)
        taps = planes[:, :, *box].reshape(*shape[:2], count)
        first = _first_maximum(taps, nan)
        y[:, :, *output] = taps[batch, channel, first]
        indices[:, :, *output] = numbers[:, :, *box].reshape(taps.shape)[batch, channel, first]

    y = _arranged(y, order)
    apply_activation(y, activation, activation_params)
    return (y, _arranged(indices, order)) if return_indices else y


def max_unpool(
    x,
    indices,
    kernel_shape,
    *,
    strides=1,
    pads=0,
    output_shape=None,
    layout="NCHW",
    index_space="output",
    index_axis=0,
    index_layout="NCHW",
):
    """Unpool as `fastpool.max_unpool` does."""
    x, indices = np.asarray(x), np.asarray(indices)
    arguments.dtype_name(x.dtype)
    if indices.dtype.newbyteorder("=") not in INDEX_DTYPES:
        raise TypeError(f"indices of type {indices.dtype}")
    if indices.shape != x.shape:
        raise ValueError(f"indices of shape {indices.shape} for x of shape {x.shape}")
    order = geometry.layout(layout, x.shape)
    n = len(order.spatial)
    kernels = arguments.kernel_shape(kernel_shape, n)
    strides = arguments.strides(strides, n)
    pads = arguments.pads(pads, n)
    index_space = arguments.index_space(index_space)
    index_layout = arguments.index_layout(index_layout, order)
    output_shape = arguments.output_shape(output_shape, x.ndim)

    values = _planes(x, order)
    batch, channels, *sizes = values.shape
    inferred = [(sizes[i] - 1) * strides[i] + kernels[i] - pads[i] - pads[n + i] for i in range(n)]
    if output_shape is None:
        extents = inferred
    else:
        extents = [output_shape[axis] for axis in order.spatial]
        if output_shape != _shape(x.shape, order, extents):
            raise ValueError(f"output_shape {output_shape} for x of shape {x.shape}")
    block = extents if index_space == "output" else inferred
    if block is inferred and min(inferred) < 1:
        raise ValueError(f"pads {pads} leave extents of {inferred}")
    if any(e < b for e, b in zip(extents, block, strict=True)):
        raise ValueError(f"output_shape {output_shape} is below the inferred extents {inferred}")

    # `flat` is in the order that indices count in; `counted` is the same memory, channels first.
    if index_layout == "NHWC":
        flat = np.zeros((batch, *block, channels), values.dtype)
        counted = np.moveaxis(flat, -1, 1)
    else:
        counted = flat = np.zeros((batch, channels, *block), values.dtype)
    # All index spaces have one size, and each takes equally many values, in order.
    outer = [batch] * (order.batch_axis >= 0)
    if index_layout == "NCHW":  # for "NHWC", channels are inside each space
        outer += [channels] * (order.channel_axis >= 0)
    index_axis = arguments.index_axis(index_axis, x.ndim)
    if index_axis > len(outer):
        raise ValueError(f"index_axis {index_axis} is inside the plane")
    spaces = max(1, math.prod(outer[:index_axis]))
    places = _planes(indices, order).reshape(-1).astype(np.int64)
    size = flat.size // spaces
    for place in places.tolist():
        if not 0 <= place < size:
            raise ValueError(f"indices: {place} is outside [0, {size})")
    places = places.reshape(spaces, -1) + size * np.arange(spaces)[:, None]
    for place, value in zip(places.ravel().tolist(), values.ravel(), strict=True):
        flat.reshape(-1)[place] = value

    y = np.zeros((batch, channels, *extents), values.dtype)
    y[:, :, *map(slice, block)] = counted
    return _arranged(y, order)


# ------------------------------------------------------------------------------------- geometry


def _same(size, kernel, stride, dilation, auto_pad):
    """Return (padding at the beginning, outputs)."""
    outputs = -(-size // stride)
    total = max(0, (outputs - 1) * stride + (kernel - 1) * dilation + 1 - size)
    return (total + (auto_pad == "SAME_LOWER")) // 2, outputs


def _outputs(size, kernel, stride, dilation, begin, end, ceil_mode, ceil_rule):
    room = size + begin + end - ((kernel - 1) * dilation + 1)
    if room < 0:
        raise ValueError(f"kernel_shape: {kernel} taps exceed the padded input by {-room}")
    steps, rest = divmod(room, stride)
    if ceil_mode and rest:
        steps += 1
    if ceil_mode and ceil_rule == "clip" and steps * stride >= size + begin:
        steps -= 1
    return steps + 1


def _window(output, size, kernel, stride, dilation, begin):
    """Return the elements in a window along one axis, without looping over padding of any size."""
    start = output * stride - begin
    skipped = 0 if start >= 0 else -(start // dilation)
    taken = max(skipped, min(kernel, -((start - size) // dilation)))
    return range(start + skipped * dilation, start + taken * dilation, dilation)


# --------------------------------------------------------------------------------------- arrays


def _axes(order):
    """Return the positions of batch, channels and the spatial axes; -1 for an absent one."""
    return [order.batch_axis, order.channel_axis, *order.spatial]


def _planes(array, order):
    """Return the array as (batch, channels, spatial axes...) in native byte order."""
    axes = _axes(order)
    array = array.astype(array.dtype.newbyteorder("="))
    array = array.transpose([axis for axis in axes if axis >= 0])
    return np.expand_dims(array, [i for i, axis in enumerate(axes) if axis < 0])


def _arranged(planes, order):
    """Undo what `_planes` does."""
    axes = _axes(order)
    array = planes[tuple(0 if axis < 0 else slice(None) for axis in axes)]
    back = np.argsort([axis for axis in axes if axis >= 0])
    return np.ascontiguousarray(array.transpose(back))


def _shape(shape, order, extents):
    """Return `shape` with other spatial extents."""
    extents = dict(zip(order.spatial, extents, strict=True))
    return tuple(extents.get(axis, extent) for axis, extent in enumerate(shape))


def _numbers(shape, order, storage_order, index_axis, index_layout):
    """Return the index of every element, arranged as `_planes` arranges the elements."""
    storage_order = arguments.storage_order(storage_order)
    index_axis = arguments.index_axis(index_axis, len(shape))
    index_layout = arguments.index_layout(index_layout, order)
    numbers = np.arange(math.prod(shape), dtype=np.int64)
    if index_layout == "NHWC":
        counted = shape
        numbers = _planes(numbers.reshape(shape), order)
    else:
        counted = tuple(shape[axis] for axis in _axes(order) if axis >= 0)
        full = [1 if axis < 0 else shape[axis] for axis in _axes(order)]
        if storage_order:
            # In each plane the first axis varies fastest. The order of planes does not change.
            reverse = (0, 1, *range(len(full) - 1, 1, -1))
            numbers = numbers.reshape([full[axis] for axis in reverse]).transpose(reverse)
        else:
            numbers = numbers.reshape(full)
    plane = len(counted) - len(order.spatial)
    if storage_order and (index_layout == "NHWC" or index_axis > plane):
        raise ValueError(
            f"storage_order 1 with index_layout {index_layout} and index_axis {index_axis}"
        )
    return numbers % max(1, math.prod(counted[index_axis:]))


# --------------------------------------------------------------------------------------- values


def _first_maximum(taps, nan):
    """Return the first of the largest values along the last axis; -0.0 and 0.0 are equal."""
    if taps.dtype.name == "bfloat16":
        with np.errstate(invalid="ignore"):  # signalling NaN
            taps = taps.astype(np.float32)
    if nan == "propagate" or taps.dtype.kind != "f":
        return taps.argmax(axis=-1)  # the first NaN, if there is one
    is_nan = np.isnan(taps)
    first = np.where(is_nan, -np.inf, taps).argmax(axis=-1)
    # If that is a NaN, no number is above -inf: take the first number, or the first NaN if all are.
    is_lost = np.take_along_axis(is_nan, first[..., None], axis=-1)[..., 0]
    return np.where(is_lost, is_nan.argmin(axis=-1), first)
