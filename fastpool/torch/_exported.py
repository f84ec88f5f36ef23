"""Export fastpool's functions as torch's own operators.

A graph of torch.jit, torch.export or torch.onnx is made to run elsewhere: saved, loaded without
fastpool, or converted by a program that knows torch's operators alone. So the functions record
torch's operators there, and exporters see what they see of torch's own functions. Graphs that
torch.compile makes run in this process and keep fastpool's operators.
"""

import math

import torch
import torch.nn.functional as F

from . import _ops
from ._windows import per_axis

_HALVES = frozenset((torch.float16, torch.bfloat16))
_INTEGERS = frozenset((torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64))


def is_exported(name, input):
    """Is a graph being exported, in which torch's function of this name takes the input?

    Where torch has no kernel for the input's type, the graph keeps fastpool's operator.
    """
    # torch.compile cannot trace `is_tracing`.
    compiling = torch.compiler.is_compiling()
    if not (torch.compiler.is_exporting() if compiling else _ops.is_tracing()):
        return False
    if not isinstance(input, torch.Tensor):
        return False
    if input.is_floating_point():
        return name not in ("avg_pool3d", "lp_pool3d") or input.dtype not in _HALVES
    if name.startswith("avg_pool"):
        return input.dtype is torch.int64
    return name in ("max_pool2d", "max_pool3d") and input.dtype in _INTEGERS


def maxima(name, rank, input, attributes, return_indices):
    """Call torch's function that takes maxima, with the attributes of `_poolings` in any form."""
    if name.startswith("adaptive"):
        attributes = (_sizes(rank, input, *attributes),)
    return getattr(F, name)(input, *attributes, return_indices)


def means(name, rank, input, attributes):
    """Call torch's function that takes means or norms."""
    call = getattr(F, name)
    if name.startswith("adaptive"):
        output_size, _ = attributes
        return call(input, _sizes(rank, input, output_size))
    if name.startswith("lp"):
        *windows, norm_type = attributes
        if norm_type % 2:  # an even power loses the sign by itself
            input = input.abs()
        return call(input, norm_type, *windows)
    kernel_size, stride, *rules, divisor, _ = attributes
    if stride is None:
        stride = kernel_size
    if rank > 1:
        rules.append(divisor)
    return call(input, kernel_size, stride, *rules)


def _sizes(rank, input, output_size):
    """Return the output size of adaptive pooling in a form that torch's functions take."""
    if output_size is None:
        output_size = [None] * rank
    if rank > 1:
        return output_size
    (size,) = output_size if isinstance(output_size, (list, tuple)) else (output_size,)
    return input.shape[-1] if size is None else size


def unpooled(name, rank, input, indices, kernel_size, stride, padding, output_size):
    """Unpool into an exported graph.

    torch's functions cannot be traced, and few converters know their operator. So a trace scatters.
    """
    if torch.compiler.is_exporting():
        windows = kernel_size, stride, padding
        return getattr(F, name)(input, indices, *windows, output_size)
    outer = input.shape[:-rank]
    if output_size is None:
        kernel_size = per_axis(kernel_size, "kernel_size", rank, 1)
        stride = kernel_size if stride is None else per_axis(stride, "stride", rank, 1)
        padding = per_axis(padding, "padding", rank, 0)
        axes = zip(input.shape[-rank:], kernel_size, stride, padding, strict=True)
        output_size = [(size - 1) * s + k - 2 * p for size, k, s, p in axes]
    extents = output_size[-rank:]
    planes = input.new_zeros((*outer, math.prod(extents)))
    planes = planes.scatter(-1, indices.flatten(-rank), input.flatten(-rank))
    return planes.reshape((*outer, *extents))
