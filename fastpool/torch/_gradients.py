"""Derivatives: a pooling's gradient goes to the maxima, and its tangent comes from them.

All derivatives consist of operators that torch differentiates again. `Pool` and `Unpool` are the
operators outside graphs. They support tangents and torch.func, unlike
`torch.library.register_autograd`.
"""

import math

import torch

from . import _ops
from ._windows import is_channels_last


def _planes(tensor, rank, channels_last):
    """Return a tensor with its spatial axes as one, which is last, or before channels_last."""
    tensor = tensor.reshape(*tensor.shape[:-rank], math.prod(tensor.shape[-rank:]))
    return tensor.transpose(-1, -2) if channels_last else tensor


def _extended(planes, extents, channels_last):
    """Undo what `_planes` does."""
    if channels_last:
        planes = planes.transpose(-1, -2)
    return planes.reshape(*planes.shape[:-1], *extents)


def _scatter(grad, indices, extents):
    """Add each element of `grad` at its index, in planes of zeros with these extents."""
    rank = len(extents)
    last = is_channels_last(indices, rank)
    axis = -2 if last else -1
    grad, indices = _planes(grad, rank, last), _planes(indices, rank, last)
    shape = list(grad.shape)
    shape[axis] = math.prod(extents)
    return _extended(grad.new_zeros(shape).scatter_add_(axis, indices, grad), extents, last)


def _gather(grad, indices, rank):
    """Return the elements of `grad` at the indices."""
    last = is_channels_last(indices, rank)
    planes = _planes(grad, rank, last), _planes(indices, rank, last)
    taken = torch.gather(planes[0], -2 if last else -1, planes[1])
    return _extended(taken, indices.shape[-rank:], last)


def _without_empty(ctx, tangent, indices):
    """Replace the tangent by zeros where a window holds no element and its index is -1."""
    if all(d <= size for d, size in zip(ctx.dilation, ctx.extents, strict=True)):
        return tangent, indices
    empty = indices < 0
    return tangent.masked_fill(empty, 0), indices.masked_fill(empty, 0)


class Pool(torch.autograd.Function):
    """The operator max_pool_with_indices."""

    generate_vmap_rule = True

    @staticmethod
    def forward(input, kernel_size, *attributes):
        if _ops.is_plain(input):
            return _ops.pool(len(kernel_size), input, kernel_size, *attributes, True)
        return _ops.max_pool_with_indices(input, kernel_size, *attributes)

    @staticmethod
    def setup_context(ctx, inputs, output):
        input, kernel_size, _, _, ctx.dilation, _ = inputs
        _, indices = output
        ctx.extents = input.shape[-len(kernel_size) :]
        ctx.save_for_backward(indices)
        ctx.save_for_forward(indices)
        ctx.mark_non_differentiable(indices)

    @staticmethod
    def backward(ctx, grad, _):
        (indices,) = ctx.saved_tensors
        return _scatter(*_without_empty(ctx, grad, indices), ctx.extents), *[None] * 5

    @staticmethod
    def jvp(ctx, tangent, *_):
        (indices,) = ctx.saved_tensors
        taken = _gather(tangent, indices.clamp(min=0), len(ctx.extents))
        return _without_empty(ctx, taken, indices)[0], None


class Unpool(torch.autograd.Function):
    """The operator max_unpool."""

    generate_vmap_rule = True

    @staticmethod
    def forward(input, indices, output_size):
        if _ops.is_plain(input, indices):
            return _ops.unpool(len(output_size), input, indices, output_size)
        return _ops.max_unpool(input, indices, output_size)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, indices, ctx.output_size = inputs
        ctx.save_for_backward(indices)
        ctx.save_for_forward(indices)

    @staticmethod
    def backward(ctx, grad):
        (indices,) = ctx.saved_tensors
        return _gather(grad, indices, len(ctx.output_size)), None, None

    @staticmethod
    def jvp(ctx, tangent, *_):
        (indices,) = ctx.saved_tensors
        return Unpool.apply(tangent, indices, ctx.output_size)


def _save_input(ctx, inputs, output):
    input, *ctx.attributes = inputs
    ctx.save_for_backward(input)


def _backward_of_values(ctx, grad):
    """Pool again to get the indices, and scatter the gradient to them."""
    (input,) = ctx.saved_tensors
    _, _, _, ctx.dilation, _ = ctx.attributes
    ctx.extents = input.shape[-len(ctx.dilation) :]
    _, indices = _ops.max_pool_with_indices(input.detach(), *ctx.attributes)
    return _scatter(*_without_empty(ctx, grad, indices), ctx.extents), *[None] * 5


for _name, _backward, _setup in (
    ("max_pool", _backward_of_values, _save_input),
    ("max_pool_with_indices", Pool.backward, Pool.setup_context),
    ("max_unpool", Unpool.backward, Unpool.setup_context),
):
    torch.library.register_autograd(f"fastpool::{_name}", _backward, setup_context=_setup)
