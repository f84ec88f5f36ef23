"""Helpers of the tests of fastpool.torch. Importing this module needs torch."""

import functools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import fastpool.torch as ft

FORMATS = {2: torch.channels_last, 3: torch.channels_last_3d}
# torch gives two of its globals one name after a reset, and fails to delete the second one.
ignore_torchs_own_cleanup = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <function ExactWeakKeyDictionary"
    ":pytest.PytestUnraisableExceptionWarning"
)

OPS = torch.ops.fastpool


def pairs(name):
    """torch's function and fastpool's, by the number of spatial axes."""
    return {
        rank: tuple(getattr(library, f"{name}{rank}d") for library in (F, ft)) for rank in (1, 2, 3)
    }


POOLS, UNPOOLS = pairs("max_pool"), pairs("max_unpool")
AVERAGES = pairs("avg_pool")
ADAPTIVE_AVERAGES, ADAPTIVE_MAXIMA = pairs("adaptive_avg_pool"), pairs("adaptive_max_pool")

same = functools.partial(torch.testing.assert_close, rtol=0, atol=0, equal_nan=True)


def images(rank, dtype=torch.float64, last=False, size=6, **attributes):
    """A batch of different numbers, of even extents."""
    shape = 2, 3, *range(size, size + 2 * rank, 2)
    count = int(np.prod(shape))
    x = torch.randperm(count, generator=torch.Generator().manual_seed(0)).reshape(shape)
    x = x.to(dtype)
    x = x.to(memory_format=FORMATS[rank]) if last else x
    return x.requires_grad_(**attributes) if attributes else x


def arrangements(x):
    """The tensor in each order of memory that it may have, by name."""
    rank = x.dim() - 2
    yield "contiguous", x
    if rank > 1:
        yield "channels last", x.to(memory_format=FORMATS[rank])
    yield "sliced", torch.cat([x, x], -1)[..., : x.shape[-1]]
    yield "transposed", x.transpose(-1, 1).contiguous().transpose(-1, 1)
    yield "without a batch", x[0]


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
