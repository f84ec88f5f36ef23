"""The public functions: torch's signatures, and the shortest way to the operators."""

import math

import torch
from torch.overrides import handle_torch_function, has_torch_function, has_torch_function_unary

from . import _exported, _ops, _poolings, _scripted
from ._gradients import Maxima, Means, Norms, applied, unpooled
from ._windows import check_kind, check_rank, order, unpooled_extents


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
    attributes = kernel_size, stride, padding, dilation, ceil_mode
    return _maxima(max_pool1d, _poolings.max_pool, 1, input, attributes, return_indices)


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
    attributes = kernel_size, stride, padding, dilation, ceil_mode
    return _maxima(max_pool2d, _poolings.max_pool, 2, input, attributes, return_indices)


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
    attributes = kernel_size, stride, padding, dilation, ceil_mode
    return _maxima(max_pool3d, _poolings.max_pool, 3, input, attributes, return_indices)


def avg_pool1d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    *,
    numerics="pairwise",
):
    """Pool as :func:`avg_pool2d` does, over one spatial axis: (N, C, L) or (C, L)."""
    attributes = kernel_size, stride, padding, ceil_mode, count_include_pad
    return _windows_means(avg_pool1d, 1, input, attributes, numerics)


def avg_pool2d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
    *,
    numerics="pairwise",
):
    """Take the mean of every window, as :func:`torch.nn.functional.avg_pool2d` does.

    Parameters
    ----------
    input : Tensor
        Input on the CPU, as :func:`max_pool2d` takes it.
    kernel_size : int or tuple of int
        Elements of the window.
    stride : int or tuple of int, optional
        Elements from one window to the next, by default `kernel_size`.
    padding : int or tuple of int
        Zeros at both sides, at most half of `kernel_size`.
    ceil_mode : bool
        Whether the number of windows is rounded up.
    count_include_pad : bool
        Whether padding counts for the divisor.
    divisor_override : int, optional
        What every sum is divided by, whatever the window holds: any int but 0. 1 gives sums.
    numerics : {"pairwise", "exact", "sequential"}
        How floats are added, as in :func:`fastpool.avg_pool`. "exact": the true mean, rounded once.
        "sequential": the bits of torch's function for contiguous and channels_last tensors. It adds
        in row-major order and rounds each sum.

    Returns
    -------
    output : Tensor
        The means, of the type of `input` and in its memory format. Those of integers and bool are
        rounded toward zero. Derivatives of any order are defined for floats.

    Raises
    ------
    TypeError
        An argument is of the wrong kind, or `input` is on another device, sparse or quantized.
    ValueError
        An argument has a wrong value, a window is larger than the padded input, or
        `divisor_override` gives sums that the type of `input` does not hold.

    Notes
    -----
    torch's function takes no integers but int64, whose sums wrap; and in three dimensions no
    float16 and bfloat16. The number of threads is the default of :func:`fastpool.avg_pool`, but at
    most ``torch.get_num_threads()``.

    Examples
    --------
    >>> import torch
    >>> import fastpool.torch
    >>> x = torch.tensor([[[1.0, 3, 2, 4], [5, 7, 8, 6]]])
    >>> fastpool.torch.avg_pool2d(x, 2)
    tensor([[[4., 5.]]])
    >>> fastpool.torch.avg_pool2d(x, 2, padding=1, count_include_pad=False)
    tensor([[[1.0000, 2.5000, 4.0000],
             [5.0000, 7.5000, 6.0000]]])
    """
    attributes = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    return _windows_means(avg_pool2d, 2, input, attributes, numerics)


def avg_pool3d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
    *,
    numerics="pairwise",
):
    """Pool as :func:`avg_pool2d` does, over three axes: (N, C, D, H, W) or (C, D, H, W)."""
    attributes = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    return _windows_means(avg_pool3d, 3, input, attributes, numerics)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """Pool as :func:`lp_pool2d` does, over one spatial axis: (N, C, L) or (C, L)."""
    return _norms(lp_pool1d, 1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """Take the Lp norm of every window, as :func:`torch.nn.functional.lp_pool2d` does.

    Parameters
    ----------
    input : Tensor
        Input on the CPU, of shape (N, C, H, W) or (C, H, W): float16, bfloat16, float32 or float64.
    norm_type : float
        The order of the norm, above 0. It may be infinite.
    kernel_size : int or tuple of int
        Elements of the window.
    stride : int or tuple of int, optional
        Elements from one window to the next, by default `kernel_size`.
    ceil_mode : bool
        Whether the number of windows is rounded up. The sum of a window that reaches past the end
        is multiplied by the taps of the window over its elements.

    Returns
    -------
    output : Tensor
        The norms, of the type of `input` and in its memory format. Derivatives of any order are
        defined. They are 0 where the norm or the element is 0.

    Raises
    ------
    TypeError
        An argument is of the wrong kind, or `input` holds no floats, is on another device, sparse
        or quantized.
    ValueError
        An argument has a wrong value, or a window is larger than the input.

    Notes
    -----
    Elements lose their signs here. torch's function does not take their absolute values: with a
    `norm_type` of 1 it gives sums with a sign, and with 3 the result of a negative sum is NaN. It
    also overflows where a power does. Norms here are rounded as :func:`fastpool.lp_pool` says.

    Examples
    --------
    >>> import torch
    >>> import fastpool.torch
    >>> x = torch.tensor([[[1.0, 5, 2, 0], [-3, 1, 1, -2]]])
    >>> fastpool.torch.lp_pool2d(x, 2, 2)
    tensor([[[6., 3.]]])
    """
    return _norms(lp_pool2d, 2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """Pool as :func:`lp_pool2d` does, over three axes: (N, C, D, H, W) or (C, D, H, W)."""
    return _norms(lp_pool3d, 3, input, norm_type, kernel_size, stride, ceil_mode)


def adaptive_avg_pool1d(input, output_size, *, numerics="pairwise"):
    """Pool as :func:`adaptive_avg_pool2d` does, over one spatial axis: (N, C, L) or (C, L)."""
    return _adaptive_means(adaptive_avg_pool1d, 1, input, output_size, numerics)


def adaptive_avg_pool2d(input, output_size, *, numerics="pairwise"):
    """Divide axes into windows and take the means.

    :func:`torch.nn.functional.adaptive_avg_pool2d` takes them too. Output ``i`` of ``O`` along an
    axis of ``H`` elements covers those from ``floor(i * H / O)`` up to, and without,
    ``ceil((i + 1) * H / O)``.

    Parameters
    ----------
    input : Tensor
        Input on the CPU, as :func:`max_pool2d` takes it.
    output_size : int or tuple of (int or None)
        Windows along both axes or each. None is the extent of the axis.
    numerics : {"pairwise", "exact", "sequential"}
        As in :func:`avg_pool2d`. torch adds in an order of its own here, so none gives its bits.

    Returns
    -------
    output : Tensor
        The means, of the type of `input` and in its memory format. Those of integers and bool are
        rounded toward zero. Derivatives of any order are defined for floats.

    Raises
    ------
    TypeError
        An argument is of the wrong kind, or `input` is on another device, sparse or quantized.
    ValueError
        An argument has a wrong value, or an axis without elements gets windows.

    Examples
    --------
    >>> import torch
    >>> import fastpool.torch
    >>> x = torch.arange(14.0).reshape(1, 2, 7)
    >>> fastpool.torch.adaptive_avg_pool2d(x, (None, 3))
    tensor([[[ 1.,  3.,  5.],
             [ 8., 10., 12.]]])
    """
    return _adaptive_means(adaptive_avg_pool2d, 2, input, output_size, numerics)


def adaptive_avg_pool3d(input, output_size, *, numerics="pairwise"):
    """Pool as :func:`adaptive_avg_pool2d` does, over three spatial axes."""
    return _adaptive_means(adaptive_avg_pool3d, 3, input, output_size, numerics)


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """Pool as :func:`adaptive_max_pool2d` does, over one spatial axis: (N, C, L) or (C, L)."""
    pooling = _poolings.adaptive_max_pool
    return _maxima(adaptive_max_pool1d, pooling, 1, input, (output_size,), return_indices)


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """Divide axes into windows and take the maxima.

    The windows are those of :func:`adaptive_avg_pool2d`.
    :func:`torch.nn.functional.adaptive_max_pool2d` gives equal results.

    Parameters
    ----------
    input : Tensor
        Input on the CPU, as :func:`max_pool2d` takes it.
    output_size : int or tuple of (int or None)
        Windows along both axes or each. None is the extent of the axis.
    return_indices : bool
        Whether to return the index of each maximum within its plane too.

    Returns
    -------
    output : Tensor
        The maxima, in the memory format of `input`. Derivatives are those of :func:`max_pool2d`.
    indices : Tensor of int64
        Only if `return_indices`: the index of the first maximum of each window, or of its first
        NaN, where torch names the last.

    Raises
    ------
    TypeError
        An argument is of the wrong kind, or `input` is on another device, sparse or quantized.
    ValueError
        An argument has a wrong value, or an axis without elements gets windows.

    Examples
    --------
    >>> import torch
    >>> import fastpool.torch
    >>> x = torch.tensor([[[2, 7, 1, 8], [2, 8, 1, 8]]])
    >>> fastpool.torch.adaptive_max_pool2d(x, (1, 2), return_indices=True)
    (tensor([[[8, 8]]]), tensor([[[5, 3]]]))
    """
    pooling = _poolings.adaptive_max_pool
    return _maxima(adaptive_max_pool2d, pooling, 2, input, (output_size,), return_indices)


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """Pool as :func:`adaptive_max_pool2d` does, over three spatial axes."""
    pooling = _poolings.adaptive_max_pool
    return _maxima(adaptive_max_pool3d, pooling, 3, input, (output_size,), return_indices)


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

for _name, _function in tuple(globals().items()):
    if _name.endswith(("1d", "2d", "3d")):
        _scripted.compile_instead(_function)


# ------------------------------------------------------------------ the shortest way to an operator


def _maxima(function, pooling, rank, input, attributes, return_indices):
    if has_torch_function_unary(input):
        return handle_torch_function(function, (input,), input, *attributes, return_indices)
    return_indices = bool(return_indices)
    eager = _ops.is_eager(input)
    if eager and not _ops.needs_grad(input):
        return pooling.run(rank, input, attributes, return_indices)
    if not eager and _exported.is_exported(function.__name__, input):
        return _exported.maxima(function.__name__, rank, input, attributes, return_indices)
    attributes = _resolved(pooling, rank, input, attributes)
    if eager:
        results = applied(Maxima, input, pooling, *attributes)
    elif not return_indices and not _needs_indices(input):
        return pooling.values(input, *attributes)
    elif _ops.is_traced():
        results = pooling.with_indices(input, *attributes)
    else:
        results = Maxima.apply(input, pooling, *attributes)
    return results if return_indices else results[0]


def _windows_means(function, rank, input, attributes, numerics):
    if has_torch_function_unary(input):
        return handle_torch_function(function, (input,), input, *attributes, numerics=numerics)
    divisor = () if rank > 1 else (None,)
    return _means(function, _poolings.avg_pool, rank, input, (*attributes, *divisor, numerics))


def _adaptive_means(function, rank, input, output_size, numerics):
    if has_torch_function_unary(input):
        return handle_torch_function(function, (input,), input, output_size, numerics=numerics)
    return _means(function, _poolings.adaptive_avg_pool, rank, input, (output_size, numerics))


def _norms(function, rank, input, norm_type, kernel_size, stride, ceil_mode):
    if has_torch_function_unary(input):
        arguments = norm_type, kernel_size, stride, ceil_mode
        return handle_torch_function(function, (input,), input, *arguments)
    check_kind(input, "input")
    norm_type = order(norm_type)
    if norm_type == math.inf:
        _poolings.lp_pool.check_type(str(input.dtype).removeprefix("torch."))
        attributes = kernel_size, stride, 0, 1, ceil_mode
        return _maxima(_POOLS[rank], _poolings.max_pool, rank, input.abs(), attributes, False)
    attributes = kernel_size, stride, ceil_mode, norm_type
    return _means(function, _poolings.lp_pool, rank, input, attributes, Norms)


def _means(function, pooling, rank, input, attributes, derived=Means):
    eager = _ops.is_eager(input)
    if eager and not _ops.needs_grad(input):
        return pooling.run(rank, input, attributes)
    if not eager and _exported.is_exported(function.__name__, input):
        return _exported.means(function.__name__, rank, input, attributes)
    attributes = _resolved(pooling, rank, input, attributes)
    if eager:
        return applied(derived, input, pooling, *attributes)
    if _ops.is_traced():
        return pooling.values(input, *attributes)
    return derived.apply(input, pooling, *attributes)


def _resolved(pooling, rank, input, attributes):
    """Return the attributes with one value per axis."""
    check_kind(input, "input")
    check_rank(input.shape, rank)
    return pooling.resolve(input.shape[-rank:], *attributes)[0]


def _max_unpool(rank, input, indices, kernel_size, stride, padding, output_size):
    if has_torch_function((input, indices)):
        arguments = input, indices, kernel_size, stride, padding, output_size
        return handle_torch_function(_UNPOOLS[rank], (input, indices), *arguments)
    check_kind(input, "input")
    check_kind(indices, "indices")
    check_rank(input.shape, rank)
    name = _UNPOOLS[rank].__name__
    if _exported.is_exported(name, input):
        windows = kernel_size, stride, padding
        return _exported.unpooled(name, rank, input, indices, *windows, output_size)
    extents = unpooled_extents(input.shape[-rank:], kernel_size, stride, padding, output_size)
    return unpooled(input, indices, extents)


def _needs_indices(input):
    """Do derivatives need indices? In a traced graph, the operator's own derivative finds them."""
    return not _ops.is_traced() or (input.requires_grad and torch.is_grad_enabled())
