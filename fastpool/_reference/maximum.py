"""Maxima, minima, and the inverse of maxima: max unpooling."""

import math

import numpy as np

from .._planning import arguments, geometry
from .._planning.dtypes import INDEX_DTYPES, highest, lowest
from .._running.activation import apply_activation
from . import windows
from .windows import arranged, axes_of, planes_of, reduced, sizes_of, whole, without_axes


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
    border="ignore",
    border_value=None,
    layout="NCHW",
    nan="propagate",
    activation=None,
    activation_params=(),
    return_indices=False,
    **indexing,
):
    """Pool as `fastpool.max_pool` does.

    `indexing` are the arguments of `_maxima`: storage_order, index_axis, index_dtype, index_layout,
    and minimum.
    """
    x = np.asarray(x)
    dtype = arguments.dtype_name(x.dtype)
    order = geometry.layout(layout, x.shape)
    attributes = geometry.Attributes(
        kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule
    )
    border = arguments.border(border, 1)[0]
    constant = arguments.border_value(border_value, (border,), dtype)
    places = None
    if border == "ignore":
        axes = windows.pooled(sizes_of(x, order), attributes)
    else:
        axes, places = windows.bordered(sizes_of(x, order), attributes, border)
    activation, activation_params = arguments.activation(activation, activation_params, dtype)
    outside = places, constant
    y, *indices = _maxima(x, order, axes, nan, return_indices, outside, **indexing)
    apply_activation(y, activation, activation_params)
    return (y, *indices) if indices else y


def global_max_pool(
    x, *, layout="NCHW", keepdims=True, nan="propagate", return_indices=False, **indexing
):
    """Pool as `fastpool.global_max_pool` does."""
    x = np.asarray(x)
    order = geometry.layout(layout, x.shape)
    results = _maxima(x, order, whole(sizes_of(x, order)), nan, return_indices, **indexing)
    y, *indices = (without_axes(array, order, keepdims) for array in results)
    return (y, *indices) if indices else y


def adaptive_max_pool(
    x, output_size, *, layout="NCHW", nan="propagate", return_indices=False, **indexing
):
    """Pool as `fastpool.adaptive_max_pool` does."""
    x = np.asarray(x)
    order = geometry.layout(layout, x.shape)
    axes = windows.adaptive(sizes_of(x, order), output_size)
    y, *indices = _maxima(x, order, axes, nan, return_indices, **indexing)
    return (y, *indices) if indices else y


def min_pool(x, kernel_shape, **attributes):
    """Pool as `fastpool.min_pool` does."""
    return max_pool(x, kernel_shape, minimum=True, **attributes)


def global_min_pool(x, **attributes):
    """Pool as `fastpool.global_min_pool` does."""
    return global_max_pool(x, minimum=True, **attributes)


def adaptive_min_pool(x, output_size, **attributes):
    """Pool as `fastpool.adaptive_min_pool` does."""
    return adaptive_max_pool(x, output_size, minimum=True, **attributes)


def _maxima(
    x,
    order,
    axes,
    nan,
    return_indices,
    outside=(None, None),
    *,
    storage_order=0,
    index_axis=0,
    index_dtype="int64",
    index_layout="NCHW",
    minimum=False,
):
    """Return the maxima, or the minima, and, if asked for, their indices.

    `outside` are the elements that stand at the places of each axis, and the constant.
    """
    dtype = arguments.dtype_name(x.dtype)
    nan = arguments.nan(nan)
    return_indices = arguments.return_indices(return_indices)
    numbers = numbers_of(x.shape, order, storage_order, index_axis, index_layout)
    index_dtype = arguments.index_dtype(index_dtype)
    if return_indices and numbers.size and numbers.max() > np.iinfo(index_dtype).max:
        raise ValueError(f"index_dtype {index_dtype} cannot hold {numbers.max()}")

    planes = planes_of(x, order)
    places, constant = outside
    if places is not None:
        planes = windows.continued(planes, places, constant)
        numbers = windows.continued(numbers, places, -1)
    offsets = np.arange(math.prod(planes.shape[2:])).reshape(1, 1, *planes.shape[2:])
    won = reduced(
        planes,
        axes,
        np.int64,
        -1,
        lambda window: window.of(offsets)[0, 0, _first_of(window.of(planes), nan, minimum)],
    )
    found = won >= 0
    batch, channel, *_ = np.nonzero(found)

    def taken(source, dtype, empty):
        """Return the elements of a source at the places that won."""
        y = np.full(won.shape, empty, dtype)
        y[found] = source.reshape(*planes.shape[:2], offsets.size)[batch, channel, won[found]]
        return arranged(y, order)

    y = taken(planes, planes.dtype, highest(dtype) if minimum else lowest(dtype))
    if not return_indices:
        return (y,)
    return y, taken(numbers, index_dtype, -1)


def _first_of(taps, nan, minimum):
    """Return the first of the largest, or least, values along the last axis; -0.0 equals 0.0."""
    if taps.dtype.name == "bfloat16":
        with np.errstate(invalid="ignore"):  # signalling NaN
            taps = taps.astype(np.float32)
    first_of, worst = (np.argmin, np.inf) if minimum else (np.argmax, -np.inf)
    if nan == "propagate" or taps.dtype.kind != "f":
        return first_of(taps, axis=-1)  # the first NaN, if there is one
    is_nan = np.isnan(taps)
    first = first_of(np.where(is_nan, worst, taps), axis=-1)
    # If that is a NaN, no number is better: take the first number, or the first NaN if all are.
    is_lost = np.take_along_axis(is_nan, first[..., None], axis=-1)[..., 0]
    return np.where(is_lost, is_nan.argmin(axis=-1), first)


# ------------------------------------------------------------------------------------------ indices


def numbers_of(shape, order, storage_order, index_axis, index_layout):
    """Return the index of every element, arranged as `planes_of` arranges the elements."""
    storage_order = arguments.storage_order(storage_order)
    index_axis = arguments.index_axis(index_axis, len(shape))
    index_layout = arguments.index_layout(index_layout, order)
    numbers = np.arange(math.prod(shape), dtype=np.int64)
    if index_layout == "NHWC":
        counted = shape
        numbers = planes_of(numbers.reshape(shape), order)
    else:
        counted = tuple(shape[axis] for axis in axes_of(order) if axis >= 0)
        full = [1 if axis < 0 else shape[axis] for axis in axes_of(order)]
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


# ---------------------------------------------------------------------------------------- unpooling


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
    strides = arguments.strides(strides, kernels)
    pads = arguments.pads(pads, n)
    index_space = arguments.index_space(index_space)
    index_layout = arguments.index_layout(index_layout, order)
    output_shape = arguments.output_shape(output_shape, x.ndim)

    values = planes_of(x, order)
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
    places = planes_of(indices, order).reshape(-1).astype(np.int64)
    size = flat.size // spaces
    for place in places.tolist():
        if not 0 <= place < size:
            raise ValueError(f"indices: {place} is outside [0, {size})")
    places = places.reshape(spaces, -1) + size * np.arange(spaces)[:, None]
    for place, value in zip(places.ravel().tolist(), values.ravel(), strict=True):
        flat.reshape(-1)[place] = value

    y = np.zeros((batch, channels, *extents), values.dtype)
    y[:, :, *map(slice, block)] = counted
    return arranged(y, order)


def _shape(shape, order, extents):
    """Return `shape` with other spatial extents."""
    extents = dict(zip(order.spatial, extents, strict=True))
    return tuple(extents.get(axis, extent) for axis, extent in enumerate(shape))
