"""Derivatives: the gradient of a maximum goes to it, that of a mean to all elements of its window.

All derivatives consist of operators that torch differentiates again. `Maxima`, `Means`, `Norms` and
`Unpool` are the operators outside graphs. They support tangents and torch.func, unlike
`torch.library.register_autograd`.
"""

import math

import torch

from . import _ops
from ._poolings import adaptive_avg_pool, adaptive_max_pool, avg_pool, lp_pool, max_pool
from ._windows import are_apart, is_channels_last, may_be_empty, memory_format


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
    if not ctx.may_be_empty:
        return tangent, indices
    empty = indices < 0
    return tangent.masked_fill(empty, 0), indices.masked_fill(empty, 0)


def applied(function, input, *arguments):
    """Apply an autograd.Function to an eager tensor.

    Its own `apply` inspects the signature of `forward` at each call, for transforms of torch.func.
    That takes as long as everything else.
    """
    return super(torch.autograd.Function, function).apply(input, *arguments)


def _call(pooling, input, attributes, return_indices=False):
    """Run an operator, without torch's dispatcher where it is not needed."""
    if _ops.is_eager(input):
        return pooling.run(len(attributes[0]), input, attributes, return_indices)
    return (pooling.with_indices if return_indices else pooling.values)(input, *attributes)


# ---------------------------------------------------------------------------------------- maxima


class Maxima(torch.autograd.Function):
    """The operator with indices of a pooling that takes maxima."""

    generate_vmap_rule = True

    @staticmethod
    def forward(input, pooling, *attributes):
        return _call(pooling, input, attributes, True)

    @staticmethod
    def setup_context(ctx, inputs, output):
        input, pooling, *attributes = inputs
        _, indices = output
        _set_windows(ctx, input, pooling, attributes)
        ctx.save_for_backward(indices)
        ctx.save_for_forward(indices)
        ctx.mark_non_differentiable(indices)

    @staticmethod
    def backward(ctx, grad, _):
        (indices,) = ctx.saved_tensors
        return _scattered(ctx, grad, indices), None, *ctx.none

    @staticmethod
    def jvp(ctx, tangent, *_):
        (indices,) = ctx.saved_tensors
        taken = _gather(tangent, indices.clamp(min=0), len(ctx.extents))
        return _without_empty(ctx, taken, indices)[0], None


def _set_windows(ctx, input, pooling, attributes):
    ctx.extents = tuple(input.shape[-len(attributes[0]) :])
    ctx.may_be_empty = pooling is max_pool and may_be_empty(ctx.extents, *attributes)
    ctx.apart = pooling is max_pool and are_apart(*attributes) and not ctx.may_be_empty
    ctx.none = [None] * len(attributes)


def _scattered(ctx, grad, indices):
    """Return the gradient of the input: each element of `grad` at the place of its maximum."""
    if ctx.apart and _ops.is_eager(grad, indices):  # no index occurs twice
        rank = len(ctx.extents)
        grad = grad.contiguous(memory_format=memory_format(is_channels_last(indices, rank), rank))
        return _unpooled_eagerly(grad, indices, ctx.extents)
    return _scatter(*_without_empty(ctx, grad, indices), ctx.extents)


def _register_maxima(pooling):
    """Give the operators of a pooling that takes maxima their derivatives."""

    def save_input(ctx, inputs, output):
        input, *ctx.attributes = inputs
        _set_windows(ctx, input, pooling, ctx.attributes)
        ctx.save_for_backward(input)

    def save_indices(ctx, inputs, output):
        input, *attributes = inputs
        Maxima.setup_context(ctx, (input, pooling, *attributes), output)

    def pool_again(ctx, grad):
        (input,) = ctx.saved_tensors
        _, indices = pooling.with_indices(input.detach(), *ctx.attributes)
        return _scattered(ctx, grad, indices), *ctx.none

    def scatter(ctx, grad, _):
        (indices,) = ctx.saved_tensors
        return _scattered(ctx, grad, indices), *ctx.none

    torch.library.register_autograd(pooling.values, pool_again, setup_context=save_input)
    torch.library.register_autograd(pooling.with_indices, scatter, setup_context=save_indices)


# ----------------------------------------------------------------------------------------- means


class Means(torch.autograd.Function):
    """The operator of a pooling that takes means. It is linear in its input."""

    generate_vmap_rule = True

    @staticmethod
    def forward(input, pooling, *attributes):
        return _call(pooling, input, attributes)

    @staticmethod
    def setup_context(ctx, inputs, output):
        input, ctx.pooling, *ctx.attributes = inputs
        ctx.shape = input.shape
        ctx.channels_last = is_channels_last(input, len(ctx.attributes[0]))

    @staticmethod
    def backward(ctx, grad):
        return _spread(ctx, grad), None, *[None] * len(ctx.attributes)

    @staticmethod
    def jvp(ctx, tangent, *_):
        return Means.apply(tangent, ctx.pooling, *ctx.attributes)


def _spread(ctx, grad):
    """Return for each element the sum of ``grad / divisor`` over the windows that hold it."""
    rank, shape, dtype = len(ctx.attributes[0]), ctx.shape, grad.dtype
    if 0 in grad.shape[-rank - 1 :]:  # torch's functions refuse it
        return grad.new_zeros(shape) + grad.sum()
    if grad.itemsize == 2:  # torch adds in the type itself, or has no function
        grad = grad.float()
    if rank == 1:
        grad, shape = grad.unsqueeze(-2), (*shape[:-1], 1, shape[-1])
    format = memory_format(ctx.channels_last, rank)
    like = torch.empty(shape, dtype=grad.dtype, device=grad.device, memory_format=format)
    result = _BACKWARD[ctx.pooling](grad, like, rank, *ctx.attributes)
    return (result.squeeze(-2) if rank == 1 else result).to(dtype)


def _windows_backward(grad, like, rank, kernel_size, stride, padding, *rules):
    ceil_mode, count_include_pad, divisor, _ = rules
    if rank == 1:
        kernel_size, stride, padding = [1, *kernel_size], [1, *stride], [0, *padding]
    if ceil_mode and count_include_pad and divisor is None:
        # For windows that reach past the padding, inductor's version of torch's function divides by
        # the wrong number (pytorch issue 198119).
        grad, divisor = grad / _counts(grad, like, kernel_size, stride, padding), 1
    backward = _aten.avg_pool3d_backward if rank == 3 else _aten.avg_pool2d_backward
    return backward(grad, like, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor)


def _counts(grad, like, kernel_size, stride, padding):
    """Return how many elements and padding each window holds, in the shape of a plane of `grad`."""
    counts, rank = torch.ones((), dtype=torch.int64, device=grad.device), len(kernel_size)
    shapes = grad.shape[-rank:], like.shape[-rank:]
    for output, size, k, s, p in zip(*shapes, kernel_size, stride, padding, strict=True):
        starts = torch.arange(output, device=grad.device) * s - p
        counts = counts.unsqueeze(-1) * ((starts + k).clamp(max=size + p) - starts)
    return counts


def _adaptive_backward(grad, like, rank, *_):
    if rank == 3:
        return _aten._adaptive_avg_pool3d_backward(grad, like)
    return _aten._adaptive_avg_pool2d_backward(grad, like)


def _sums_backward(grad, like, rank, *attributes):
    means, taps = _as_means(*attributes)
    return _windows_backward(grad, like, rank, *means) * taps


_aten = torch.ops.aten
_BACKWARD = {
    avg_pool: _windows_backward,
    lp_pool: _sums_backward,
    adaptive_avg_pool: _adaptive_backward,
}


# ----------------------------------------------------------------------------------------- norms


class Norms(torch.autograd.Function):
    """The operator lp_pool, of a finite order p.

    The derivative of a norm y for an element x is ``sign(x) * abs(x) ** (p - 1) * y ** (1 - p)``.
    It is computed in float64, so that powers of narrower types do not overflow.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(input, pooling, *attributes):
        return _call(pooling, input, attributes)

    @staticmethod
    def setup_context(ctx, inputs, output):
        Means.setup_context(ctx, inputs, output)
        input, *_ = inputs
        ctx.save_for_backward(input, output)
        ctx.save_for_forward(input, output)

    @staticmethod
    def backward(ctx, grad):
        of_element, of_norm = _powers(ctx)
        result = of_element * _spread(ctx, of_norm * grad.double())
        return result.to(grad.dtype), None, *[None] * len(ctx.attributes)

    @staticmethod
    def jvp(ctx, tangent, *_):
        of_element, of_norm = _powers(ctx)
        means, taps = _as_means(*ctx.attributes)
        sums = Means.apply(of_element * tangent.double(), avg_pool, *means) * taps
        return (of_norm * sums).to(tangent.dtype)


def _powers(ctx):
    """Return what the derivative is a product of: a power of the element and one of the norm."""
    input, output = (tensor.double() for tensor in ctx.saved_tensors)
    p = ctx.attributes[-1]
    of_norm = torch.where(output == 0, 0.0, torch.where(output == 0, 1.0, output) ** (1 - p))
    if p == 2:
        return input, of_norm
    zero = input == 0
    return input.sign() * torch.where(zero, 1.0, input).abs() ** (p - 1), of_norm


def _as_means(kernel_size, stride, ceil_mode, _):
    """Return the attributes of averages of windows, and how many times these are their sums.

    Sums of windows that reach past the end are scaled, as in averages whose divisor is smaller.
    """
    padding = [0] * len(kernel_size)
    return (kernel_size, stride, padding, ceil_mode, True, None, "pairwise"), math.prod(kernel_size)


def _register_means(pooling, derived=Means):
    """Give the operator of a pooling that takes means or norms its derivatives."""

    def setup(ctx, inputs, output):
        input, *attributes = inputs
        derived.setup_context(ctx, (input, pooling, *attributes), output)

    def backward(ctx, grad):
        gradient, _, *none = derived.backward(ctx, grad)
        return gradient, *none

    torch.library.register_autograd(pooling.values, backward, setup_context=setup)


# ------------------------------------------------------------------------------------- unpooling


class Unpool(torch.autograd.Function):
    """The operator max_unpool."""

    generate_vmap_rule = True

    @staticmethod
    def forward(input, indices, output_size):
        if _ops.is_eager(input, indices):
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


def unpooled(input, indices, output_size):
    """Unpool into these spatial extents."""
    if _ops.is_eager(input, indices):
        return _unpooled_eagerly(input, indices, output_size)
    run = _ops.max_unpool if _ops.is_traced() else Unpool.apply
    return run(input, indices, output_size)


def _unpooled_eagerly(input, indices, output_size):
    if _ops.needs_grad(input):
        return applied(Unpool, input, indices, output_size)
    return _ops.unpool(len(output_size), input, indices, output_size)


_register_maxima(max_pool)
_register_maxima(adaptive_max_pool)
_register_means(avg_pool)
_register_means(adaptive_avg_pool)
_register_means(lp_pool, Norms)
torch.library.register_autograd(
    "fastpool::max_unpool", Unpool.backward, setup_context=Unpool.setup_context
)
