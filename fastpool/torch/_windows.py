"""Check torch's attributes in all their forms, and compute the extents of results.

torch.compile and torch.export trace all of this code. Extents may be symbols then.
"""

import torch

from .._planning import arguments
from .._planning.geometry import CEIL_HINT
from .._planning.values import MOST, as_int, shown

# torch's operators take no larger ints.
_MOST = 2**63 - 1


def per_axis(value, name, rank, least):
    """Return an int, or a list with one or `rank` ints, as a list of `rank` ints."""
    if type(value) is int and least <= value <= _MOST:  # nearly always
        return [value] * rank
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(values) == 1:
        values *= rank
    if len(values) != rank:
        raise ValueError(f"{name}: expected an int or {rank} ints, got {shown(value)}")
    for i, number in enumerate(values):
        values[i] = number = _int(number, name, "an int or a tuple of ints")
        if number < least:
            raise ValueError(f"{name}: expected ints of at least {least}, got {shown(value)}")
        if isinstance(number, int) and number > _MOST:
            raise ValueError(f"{name}: expected ints of at most {_MOST}, got {shown(value)}")
    return values


def _int(value, name, expected):
    if isinstance(value, bool) or not isinstance(value, (int, torch.SymInt)):
        return as_int(value, name, expected)
    return value


def spatial_rank(values, name):
    """Return the number of spatial axes, from a list with one value per axis."""
    rank = len(values)
    if rank not in (1, 2, 3):
        raise ValueError(
            f"{name}: expected 1 to 3 ints, one per spatial axis, got {shown(list(values))}"
        )
    return rank


def check_kind(tensor, name):
    """Raise unless this is a tensor with extents and strides."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {type(tensor).__name__}")
    if tensor.is_nested:
        raise TypeError(f"{name}: expected a tensor of one shape, got a nested one")


def check_rank(shape, rank):
    """Raise unless this shape has `rank` spatial axes after channels, with or without a batch."""
    if len(shape) not in (rank + 1, rank + 2):
        raise ValueError(
            f"input: expected {rank + 1} axes, or {rank + 2} with a batch, got shape {tuple(shape)}"
        )


# --------------------------------------------------------------- attributes, and extents of results
#
# Each function takes the spatial extents of the input and attributes in any of torch's forms. It
# returns attributes with one value per axis, and the extents of the result.


def max_windows(sizes, kernel_size, stride, padding, dilation, ceil_mode):
    """Resolve the attributes of max pooling."""
    kernel_size, stride, padding = _windows(len(sizes), kernel_size, stride, padding)
    dilation = per_axis(dilation, "dilation", len(sizes), 1)
    _check_flag(ceil_mode, "ceil_mode")
    attributes = kernel_size, stride, padding, dilation, ceil_mode
    return attributes, _extents(sizes, *attributes)


def average_windows(
    sizes,
    kernel_size,
    stride,
    padding,
    ceil_mode,
    count_include_pad,
    divisor_override,
    numerics,
):
    """Resolve the attributes of average pooling."""
    kernel_size, stride, padding = _windows(len(sizes), kernel_size, stride, padding)
    _check_flag(ceil_mode, "ceil_mode")
    _check_flag(count_include_pad, "count_include_pad")
    if divisor_override is not None:
        divisor_override = _int(divisor_override, "divisor_override", "an int")
        if not 0 < abs(divisor_override) <= MOST:
            raise ValueError(
                f"divisor_override: expected an int other than 0 of a magnitude of at most "
                f"{MOST}, got {shown(divisor_override)}"
            )
    extents = _mean_extents(sizes, kernel_size, stride, padding, ceil_mode)
    rules = ceil_mode, count_include_pad, divisor_override, _numerics(numerics)
    return (kernel_size, stride, padding, *rules), extents


def lp_windows(sizes, kernel_size, stride, ceil_mode, norm_type):
    """Resolve the attributes of Lp pooling with a finite order."""
    kernel_size, stride, padding = _windows(len(sizes), kernel_size, stride, 0)
    _check_flag(ceil_mode, "ceil_mode")
    extents = _mean_extents(sizes, kernel_size, stride, padding, ceil_mode)
    return (kernel_size, stride, ceil_mode, order(norm_type)), extents


def order(norm_type):
    """Return the order of a norm as a float."""
    if isinstance(norm_type, float) and norm_type > 0:
        return norm_type  # torch.compile cannot trace the check
    try:
        return arguments.p(norm_type)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("p:", "norm_type:", 1)) from None


def adaptive_windows(sizes, output_size):
    """Resolve the output size of adaptive pooling."""
    values = list(sizes) if output_size is None else output_size
    if isinstance(values, (list, tuple)) and len(values) == len(sizes):
        values = [size if n is None else n for n, size in zip(values, sizes, strict=True)]
    values = per_axis(values, "output_size", len(sizes), 0)
    for size, output in zip(sizes, values, strict=True):
        if size < 1 and output:
            raise ValueError(f"input: expected spatial axes with elements, got {tuple(sizes)}")
    return (values,), values


def adaptive_average_windows(sizes, output_size, numerics):
    """Resolve the attributes of adaptive average pooling."""
    (output_size,), extents = adaptive_windows(sizes, output_size)
    return (output_size, _numerics(numerics)), extents


def _windows(rank, kernel_size, stride, padding):
    kernel_size = per_axis(kernel_size, "kernel_size", rank, 1)
    if stride is None or (isinstance(stride, (list, tuple)) and len(stride) == 0):
        stride = kernel_size
    stride = per_axis(stride, "stride", rank, 1)
    padding = per_axis(padding, "padding", rank, 0)
    for k, p in zip(kernel_size, padding, strict=True):
        if 2 * p > k:
            raise ValueError(f"padding: expected at most half of kernel_size {k}, got {p}")
    return kernel_size, stride, padding


def _check_flag(value, name):
    if not isinstance(value, bool):
        raise TypeError(f"{name}: expected a bool, got {shown(value)}")


def _numerics(value):
    if isinstance(value, str) and value in ("pairwise", "exact", "sequential"):
        return value  # torch.compile cannot trace the check
    return arguments.numerics(value)


def _mean_extents(sizes, kernel_size, stride, padding, ceil_mode):
    extents = _extents(sizes, kernel_size, stride, padding, [1] * len(sizes), ceil_mode)
    if len(sizes) == 3 and any(k > size for k, size in zip(kernel_size, sizes, strict=True)):
        raise ValueError(  # so does torch, whose derivatives would fail
            f"kernel_size: expected at most the extents of input {tuple(sizes)}, got {kernel_size}"
        )
    return extents


def _extents(sizes, kernel_size, stride, padding, dilation, ceil_mode):
    """Return the spatial extents of a pooling's result.

    With `ceil_mode`, the last window still starts in the input or in the padding before it. It may
    reach past the padding at the end, even if it is the only one.
    """
    outputs = []
    for size, k, s, p, d in zip(sizes, kernel_size, stride, padding, dilation, strict=True):
        if size < 1:
            raise ValueError(f"input: expected spatial axes with elements, got {tuple(sizes)}")
        room = size + 2 * p - d * (k - 1) - 1
        output = (room + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (output - 1) * s >= size + p:
            output -= 1
        if output < 1:
            problem = (
                f"kernel_size: window ({k} - 1) * {d} + 1 = {d * (k - 1) + 1} exceeds the padded "
                f"input {size} + 2 * {p} = {size + 2 * p}"
            )
            if ceil_mode:
                problem += f" by at least the stride {s}"
            elif room + s > 0:
                problem += CEIL_HINT
            raise ValueError(problem)
        outputs.append(output)
    return outputs


def may_be_empty(sizes, kernel_size, stride, padding, dilation, ceil_mode):
    """May a window of max pooling hold no element?"""
    return any(d > size for d, size in zip(dilation, sizes, strict=True))


def are_apart(kernel_size, stride, padding, dilation, ceil_mode):
    """Do no two windows of max pooling share an element?"""
    return all(s > d * (k - 1) for k, s, d in zip(kernel_size, stride, dilation, strict=True))


def unpooled_extents(extents, kernel_size, stride, padding, output_size):
    """Return the spatial extents of an unpooling's result: inferred, or a valid `output_size`."""
    rank = len(extents)
    kernel_size = per_axis(kernel_size, "kernel_size", rank, 1)
    stride = kernel_size if stride is None else per_axis(stride, "stride", rank, 1)
    padding = per_axis(padding, "padding", rank, 0)
    inferred = [
        (size - 1) * s + k - 2 * p
        for size, k, s, p in zip(extents, kernel_size, stride, padding, strict=True)
    ]
    if output_size is None:
        if min(inferred) < 1:
            raise ValueError(f"padding: expected extents above 0, got {inferred} by {padding}")
        if any(isinstance(extent, int) and extent > _MOST for extent in inferred):
            raise ValueError(
                f"kernel_size: expected extents of the result of at most {_MOST}, got {inferred}"
            )
        return inferred
    if not isinstance(output_size, (list, tuple)):
        raise TypeError(f"output_size: expected a tuple of ints, got {output_size!r}")
    given = list(output_size[2:]) if len(output_size) == rank + 2 else list(output_size)
    if len(given) != rank:
        raise ValueError(
            f"output_size: expected {rank} ints, or {rank + 2} with batch and channels, "
            f"got {tuple(output_size)}"
        )
    given = per_axis(given, "output_size", rank, 1)
    for size, near, s in zip(given, inferred, stride, strict=True):
        if not near - s < size < near + s:
            raise ValueError(
                f"output_size: expected extents within the stride {stride} of {inferred}, "
                f"got {given}"
            )
    return given


def is_channels_last(x, rank):
    """Are a tensor's channels last in memory, in a format that torch has a name for?"""
    if rank == 1 or x.dim() != rank + 2:
        return False
    strides = x.stride()
    return strides[-1] > 1 and strides[1] == 1


def memory_format(channels_last, rank):
    """Return torch's memory format."""
    if not channels_last:
        return torch.contiguous_format
    return torch.channels_last if rank == 2 else torch.channels_last_3d
