"""What torch.jit.script compiles where a model calls a function of fastpool.torch.

torch.jit.script compiles the source of every function that a model calls. The functions here have
the signatures of fastpool's, call torch's operators, and are written in TorchScript, a part of
Python: so there are three of each. Scripted models run without fastpool.
"""

from typing import Optional

import torch.nn.functional as F
from torch import Tensor, _jit_internal
from torch._jit_internal import BroadcastingList1, BroadcastingList2, BroadcastingList3


def compile_instead(function):
    """Make torch.jit.script compile this file's function of the same name, or else torch's."""
    name = function.__name__
    if name in globals():
        function.__prepare_scriptable__ = lambda: globals()[name]
    else:  # a pair of functions, of which the argument return_indices chooses one
        # (not by a subscript: the documentation is built with a mock of torch)
        both = _jit_internal.boolean_dispatched
        both.update({function: both[getattr(F, name)]})


def avg_pool1d(
    input: Tensor,
    kernel_size: BroadcastingList1[int],
    stride: Optional[BroadcastingList1[int]] = None,  # noqa: UP045 (TorchScript)
    padding: BroadcastingList1[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    numerics: str = "pairwise",
) -> Tensor:
    if stride is None:
        stride = kernel_size
    return F.avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None,  # noqa: UP045
    padding: BroadcastingList2[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Optional[int] = None,  # noqa: UP045
    numerics: str = "pairwise",
) -> Tensor:
    if stride is None:
        stride = kernel_size
    return F.avg_pool2d(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def avg_pool3d(
    input: Tensor,
    kernel_size: BroadcastingList3[int],
    stride: Optional[BroadcastingList3[int]] = None,  # noqa: UP045
    padding: BroadcastingList3[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Optional[int] = None,  # noqa: UP045
    numerics: str = "pairwise",
) -> Tensor:
    if stride is None:
        stride = kernel_size
    return F.avg_pool3d(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def lp_pool1d(
    input: Tensor,
    norm_type: int | float,
    kernel_size: BroadcastingList1[int],
    stride: Optional[BroadcastingList1[int]] = None,  # noqa: UP045
    ceil_mode: bool = False,
) -> Tensor:
    if float(norm_type) == float("inf"):
        return F.max_pool1d(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    return F.lp_pool1d(input.abs(), norm_type, kernel_size[0], stride, ceil_mode)


def lp_pool2d(
    input: Tensor,
    norm_type: int | float,
    kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None,  # noqa: UP045
    ceil_mode: bool = False,
) -> Tensor:
    if float(norm_type) == float("inf"):
        return F.max_pool2d(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    return F.lp_pool2d(input.abs(), norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor,
    norm_type: int | float,
    kernel_size: BroadcastingList3[int],
    stride: Optional[BroadcastingList3[int]] = None,  # noqa: UP045
    ceil_mode: bool = False,
) -> Tensor:
    if float(norm_type) == float("inf"):
        return F.max_pool3d(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    return F.lp_pool3d(input.abs(), norm_type, kernel_size, stride, ceil_mode)


def adaptive_avg_pool1d(
    input: Tensor, output_size: BroadcastingList1[int], numerics: str = "pairwise"
) -> Tensor:
    return F.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(
    input: Tensor, output_size: BroadcastingList2[int], numerics: str = "pairwise"
) -> Tensor:
    return F.adaptive_avg_pool2d(input, output_size)


def adaptive_avg_pool3d(
    input: Tensor, output_size: BroadcastingList3[int], numerics: str = "pairwise"
) -> Tensor:
    return F.adaptive_avg_pool3d(input, output_size)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: BroadcastingList1[int],
    stride: Optional[BroadcastingList1[int]] = None,  # noqa: UP045
    padding: BroadcastingList1[int] = 0,
    output_size: Optional[list[int]] = None,  # noqa: UP045
) -> Tensor:
    return _unpooled(input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None,  # noqa: UP045
    padding: BroadcastingList2[int] = 0,
    output_size: Optional[list[int]] = None,  # noqa: UP045
) -> Tensor:
    return _unpooled(input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: BroadcastingList3[int],
    stride: Optional[BroadcastingList3[int]] = None,  # noqa: UP045
    padding: BroadcastingList3[int] = 0,
    output_size: Optional[list[int]] = None,  # noqa: UP045
) -> Tensor:
    return _unpooled(input, indices, kernel_size, stride, padding, output_size)


def _unpooled(
    input: Tensor,
    indices: Tensor,
    kernel_size: list[int],
    stride: Optional[list[int]],  # noqa: UP045
    padding: list[int],
    output_size: Optional[list[int]],  # noqa: UP045
) -> Tensor:
    """Scatter: torch.jit.script cannot compile torch's function."""
    rank = len(kernel_size)
    if stride is None:
        stride = kernel_size
    shape = input.shape[:-rank]
    planes = input.shape[:-rank]
    plane = 1
    for axis in range(rank):
        if output_size is None:
            extent = (input.shape[axis - rank] - 1) * stride[axis] + kernel_size[axis]
            extent = extent - 2 * padding[axis]
        else:
            extent = output_size[axis - rank]
        shape.append(extent)
        plane = plane * extent
    planes.append(plane)
    result = input.new_zeros(planes)
    return result.scatter(-1, indices.flatten(-rank), input.flatten(-rank)).reshape(shape)
