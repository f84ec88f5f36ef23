"""The types that checkers must see for calls on torch's tensors."""

from typing import Any, assert_type

import torch
from numpy.typing import NDArray
from torch import Tensor

import fastpool
import fastpool.torch

x = torch.zeros(1, 1, 4, 4)
assert_type(fastpool.torch.max_pool2d(x, 2), Tensor)
assert_type(fastpool.torch.max_pool2d(x, (2, 2), [2, 2], 1, 1, True), Tensor)
y, indices = fastpool.torch.max_pool2d(x, 2, return_indices=True)
assert_type(y, Tensor)
assert_type(fastpool.torch.max_unpool2d(y, indices, 2, output_size=(4, 4)), Tensor)
for with_indices in (False, True):
    results = fastpool.torch.max_pool2d(x, 2, return_indices=with_indices)
    assert_type(results, Tensor | tuple[Tensor, Tensor])
assert_type(fastpool.torch.avg_pool2d(x, 2, divisor_override=3, numerics="sequential"), Tensor)
assert_type(fastpool.torch.lp_pool2d(x, 2.5, 2), Tensor)
assert_type(fastpool.torch.adaptive_avg_pool2d(x, (2, None)), Tensor)
assert_type(fastpool.torch.adaptive_max_pool2d(x, 2), Tensor)
assert_type(fastpool.torch.adaptive_max_pool2d(x, 2, True), tuple[Tensor, Tensor])
assert_type(fastpool.torch.adaptive_max_pool2d(x, 2, return_indices=True), tuple[Tensor, Tensor])
average = fastpool.torch.AvgPool2d(2)
assert_type(average.forward(x), Tensor)

model = torch.nn.Sequential(fastpool.torch.MaxPool2d(2, stride=2, padding=1), torch.nn.MaxPool2d(2))
assert_type(fastpool.torch.replace_pooling(model).swapped, dict[str, str])
assert_type(fastpool.torch.replace_pooling(model, select="all").explain(), str)
fastpool.torch.replace_pooling(model, select=lambda module: not module.training)

# The functions for arrays read tensors, and write into them.
assert_type(fastpool.max_pool(x, 2), NDArray[Any])
assert_type(fastpool.max_pool(x, 2, strides=2, out=y), Tensor)
