"""Helpers of the tests of fastpool.torch. Importing this module needs torch."""

import functools

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import fastpool.torch as ft

FORMATS = {2: torch.channels_last, 3: torch.channels_last_3d}
OPS = torch.ops.fastpool
POOLS = {
    rank: (getattr(F, f"max_pool{rank}d"), getattr(ft, f"max_pool{rank}d")) for rank in (1, 2, 3)
}
UNPOOLS = {
    rank: (getattr(F, f"max_unpool{rank}d"), getattr(ft, f"max_unpool{rank}d"))
    for rank in (1, 2, 3)
}

same = functools.partial(torch.testing.assert_close, rtol=0, atol=0, equal_nan=True)


def images(rank, dtype=torch.float64, last=False, size=6, **attributes):
    """A batch of different numbers, of even extents."""
    shape = 2, 3, *range(size, size + 2 * rank, 2)
    count = int(np.prod(shape))
    x = torch.randperm(count, generator=torch.Generator().manual_seed(0)).reshape(shape)
    x = x.to(dtype)
    x = x.to(memory_format=FORMATS[rank]) if last else x
    return x.requires_grad_(**attributes) if attributes else x


class Net(nn.Module):
    """Pools, unpools and pools again, with one module twice."""

    def __init__(self, library=nn):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.down = library.MaxPool2d(2, return_indices=True)
        self.up = library.MaxUnpool2d(2)
        self.blocks = nn.Sequential(nn.ReLU(), library.MaxPool2d(3, 2, 1, ceil_mode=True))
        self.shared = self.blocks[1]

    def forward(self, x):
        x = self.conv(x)
        x = self.up(*self.down(x), output_size=x.shape)
        return self.shared(self.blocks(x))
