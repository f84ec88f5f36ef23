"""The public functions: torch's signatures, and the shortest way to the operators."""

import torch
from torch.overrides import handle_torch_function, has_torch_function, has_torch_function_unary

from . import _ops
from ._gradients import Pool, Unpool
from ._windows import check_kind, check_rank, unpooled_extents, window


def max_pool1d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode=False,
    return_indices=False,
):
    """Pool as :func:`max_pool2d` does, over one spatial axis: (N, C, L) or (C, L)."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode=False,
    return_indices=False,
):
    """Take the maximum of every window, as :func:`torch.nn.functional.max_pool2d` does.

    Parameters
    ----------
    input : Tensor
        Input on the CPU, of shape (N, C, H, W) or (C, H, W): any float, any integer or bool. A
        channels_last tensor is read in place, and so is any other with contiguous rows.
    kernel_size : int or tuple of int
        Taps of the window.
    stride : int or tuple of int, optional
        Elements from one window to the next, by default `kernel_size`.
    padding : int or tuple of int
        Padding at both sides, at most half of `kernel_size`. It never wins the maximum.
    dilation : int or tuple of int
        Elements from one tap to the next.
    ceil_mode : bool
        Whether the number of windows is rounded up.
    return_indices : bool
        Whether to return the index of each maximum within its plane too.

    Returns
    -------
    output : Tensor
        The maxima, in the memory format of `input`. First and second derivatives go to the places
        of the maxima.
    indices : Tensor of int64
        Only if `return_indices`: the index of the first maximum of each window, or of its first
        NaN, or -1 for a window that holds no element.

    Raises
    ------
    TypeError
        An argument is of the wrong kind, or `input` is on another device, sparse or quantized.
    ValueError
        An argument has a wrong value, or a window is larger than the padded input.

    Notes
    -----
    torch returns the index of the last NaN of a window, and for an empty window that of an element
    of another plane. All other results are equal. The number of threads is the default of
    :func:`fastpool.max_pool`, but at most ``torch.get_num_threads()``.

    Examples
    --------
    >>> import torch
    >>> import fastpool.torch
    >>> x = torch.tensor([[[1, 3, 2, 4], [5, 6, 8, 7]]], dtype=torch.uint8)
    >>> y, indices = fastpool.torch.max_pool2d(x, 2, return_indices=True)
    >>> y
    tensor([[[6, 8]]], dtype=torch.uint8)
    >>> fastpool.torch.max_unpool2d(y, indices, 2)
    tensor([[[0, 0, 0, 0],
             [0, 6, 8, 0]]], dtype=torch.uint8)
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode=False,
    return_indices=False,
):
    """Pool as :func:`max_pool2d` does, over three axes: (N, C, D, H, W) or (C, D, H, W)."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Unpool as :func:`max_unpool2d` does, over one spatial axis."""
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Put maxima back where they were, as :func:`torch.nn.functional.max_unpool2d` does.

    Parameters
    ----------
    input : Tensor
        The maxima, of shape (N, C, H, W) or (C, H, W) and any type that :func:`max_pool2d` takes.
    indices : Tensor of int64
        Their indices, in the shape of `input`. Each counts in its plane of the result.
    kernel_size, stride, padding : int or tuple of int
        Those of the pooling.
    output_size : tuple of int, optional
        The extents of the result, with or without batch and channels. Each differs by less than a
        stride from ``(size - 1) * stride + kernel_size - 2 * padding``, the default.

    Returns
    -------
    output : Tensor
        The result, in the memory format of `input`, zero except for the values. If an index occurs
        twice in a plane, the last value stays (and, as in torch, the gradient goes to both).

    Raises
    ------
    TypeError
        An argument is of the wrong kind, or a tensor is on another device, sparse or quantized.
    ValueError
        An argument has a wrong value, or an index is outside its plane.

    Examples
    --------
    >>> import torch
    >>> import fastpool.torch
    >>> y, indices = torch.tensor([[[6.0, 8.0]]]), torch.tensor([[[5, 7]]])
    >>> fastpool.torch.max_unpool2d(y, indices, 2, output_size=(2, 5))
    tensor([[[0., 0., 0., 0., 0.],
             [6., 0., 8., 0., 0.]]])
    """
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Unpool as :func:`max_unpool2d` does, over three spatial axes."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


_POOLS = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}
_UNPOOLS = {1: max_unpool1d, 2: max_unpool2d, 3: max_unpool3d}


def _max_pool(rank, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    if has_torch_function_unary(input):
        arguments = input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
        return handle_torch_function(_POOLS[rank], (input,), *arguments)
    check_kind(input, "input")
    return_indices = bool(return_indices)
    if _ops.is_plain(input):
        return _ops.pool(
            rank, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
        )
    attributes = window(rank, kernel_size, stride, padding, dilation, ceil_mode)
    if not return_indices and not _needs_indices(input):
        return _ops.max_pool(input, *attributes)
    run = _ops.max_pool_with_indices if _ops.is_traced() else Pool.apply
    results = run(input, *attributes)
    return results if return_indices else results[0]


def _max_unpool(rank, input, indices, kernel_size, stride, padding, output_size):
    if has_torch_function((input, indices)):
        arguments = input, indices, kernel_size, stride, padding, output_size
        return handle_torch_function(_UNPOOLS[rank], (input, indices), *arguments)
    check_kind(input, "input")
    check_kind(indices, "indices")
    check_rank(input.shape, rank)
    extents = unpooled_extents(input.shape[-rank:], kernel_size, stride, padding, output_size)
    if _ops.is_plain(input, indices):
        return _ops.unpool(rank, input, indices, extents)
    run = _ops.max_unpool if _ops.is_traced() else Unpool.apply
    return run(input, indices, extents)


def _needs_indices(input):
    """Do derivatives need indices? In a traced graph, the operator's own derivative finds them."""
    if torch.jit.is_tracing() or torch.compiler.is_exporting():
        return False
    return not _ops.is_traced() or (input.requires_grad and torch.is_grad_enabled())
