"""The types of fastpool.files."""

import os
from collections.abc import Callable
from typing import SupportsIndex, TypeAlias, Unpack

from numpy.typing import DTypeLike

from .. import AvgPoolPlan, LpPoolPlan, MaxPoolPlan
from .. import typing as t

__all__ = [
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "avg_pool",
    "global_avg_pool",
    "global_lp_pool",
    "global_max_pool",
    "lp_pool",
    "max_pool",
]

_Path: TypeAlias = str | os.PathLike[str]

def max_pool(
    source: _Path,
    target: _Path,
    kernel_shape: t.Ints,
    *,
    indices: _Path | None = None,
    max_bytes: SupportsIndex = ...,
    progress: Callable[[int, int], object] | None = None,
    num_threads: SupportsIndex | None = None,
    **attributes: Unpack[t.PoolAttributes],
) -> MaxPoolPlan: ...
def avg_pool(
    source: _Path,
    target: _Path,
    kernel_shape: t.Ints,
    *,
    dtype: DTypeLike | None = None,
    max_bytes: SupportsIndex = ...,
    progress: Callable[[int, int], object] | None = None,
    num_threads: SupportsIndex | None = None,
    **attributes: Unpack[t.AvgPoolAttributes],
) -> AvgPoolPlan: ...
def global_avg_pool(
    source: _Path,
    target: _Path,
    *,
    keepdims: t.KeepDims = True,
    dtype: DTypeLike | None = None,
    max_bytes: SupportsIndex = ...,
    progress: Callable[[int, int], object] | None = None,
    num_threads: SupportsIndex | None = None,
    **attributes: Unpack[t.MeanAttributes],
) -> AvgPoolPlan: ...
def lp_pool(
    source: _Path,
    target: _Path,
    kernel_shape: t.Ints,
    p: float | None = 2,
    *,
    max_bytes: SupportsIndex = ...,
    progress: Callable[[int, int], object] | None = None,
    num_threads: SupportsIndex | None = None,
    **attributes: Unpack[t.LpPoolAttributes],
) -> LpPoolPlan: ...
def global_lp_pool(
    source: _Path,
    target: _Path,
    p: float | None = 2,
    *,
    keepdims: t.KeepDims = True,
    max_bytes: SupportsIndex = ...,
    progress: Callable[[int, int], object] | None = None,
    num_threads: SupportsIndex | None = None,
    **attributes: Unpack[t.NormAttributes],
) -> LpPoolPlan: ...
def global_max_pool(
    source: _Path,
    target: _Path,
    *,
    keepdims: t.KeepDims = True,
    indices: _Path | None = None,
    max_bytes: SupportsIndex = ...,
    progress: Callable[[int, int], object] | None = None,
    num_threads: SupportsIndex | None = None,
    **attributes: Unpack[t.MaximumAttributes],
) -> MaxPoolPlan: ...
def adaptive_avg_pool(
    source: _Path,
    target: _Path,
    output_size: t.OutputSize,
    *,
    dtype: DTypeLike | None = None,
    max_bytes: SupportsIndex = ...,
    progress: Callable[[int, int], object] | None = None,
    num_threads: SupportsIndex | None = None,
    **attributes: Unpack[t.MeanAttributes],
) -> AvgPoolPlan: ...
def adaptive_max_pool(
    source: _Path,
    target: _Path,
    output_size: t.OutputSize,
    *,
    indices: _Path | None = None,
    max_bytes: SupportsIndex = ...,
    progress: Callable[[int, int], object] | None = None,
    num_threads: SupportsIndex | None = None,
    **attributes: Unpack[t.MaximumAttributes],
) -> MaxPoolPlan: ...
