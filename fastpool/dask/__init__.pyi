"""The types of fastpool.dask."""

from typing import Literal, SupportsIndex, Unpack, overload

import dask.array as da
from numpy.typing import DTypeLike

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
    "max_unpool",
]

@overload
def max_pool(
    x: da.Array,
    kernel_shape: t.Ints,
    *,
    num_threads: SupportsIndex | None = 1,
    return_indices: Literal[False] | None = False,
    **attributes: Unpack[t.PoolAttributes],
) -> da.Array: ...
@overload
def max_pool(
    x: da.Array,
    kernel_shape: t.Ints,
    *,
    num_threads: SupportsIndex | None = 1,
    return_indices: Literal[True],
    **attributes: Unpack[t.PoolAttributes],
) -> tuple[da.Array, da.Array]: ...
@overload
def max_pool(
    x: da.Array,
    kernel_shape: t.Ints,
    *,
    num_threads: SupportsIndex | None = 1,
    return_indices: bool | None,
    **attributes: Unpack[t.PoolAttributes],
) -> da.Array | tuple[da.Array, da.Array]: ...
def avg_pool(
    x: da.Array,
    kernel_shape: t.Ints,
    *,
    dtype: DTypeLike | None = None,
    num_threads: SupportsIndex | None = 1,
    **attributes: Unpack[t.AvgPoolAttributes],
) -> da.Array: ...
def global_avg_pool(
    x: da.Array,
    *,
    keepdims: t.KeepDims = True,
    dtype: DTypeLike | None = None,
    num_threads: SupportsIndex | None = 1,
    **attributes: Unpack[t.MeanAttributes],
) -> da.Array: ...
def lp_pool(
    x: da.Array,
    kernel_shape: t.Ints,
    p: float | None = 2,
    *,
    num_threads: SupportsIndex | None = 1,
    **attributes: Unpack[t.LpPoolAttributes],
) -> da.Array: ...
def global_lp_pool(
    x: da.Array,
    p: float | None = 2,
    *,
    keepdims: t.KeepDims = True,
    num_threads: SupportsIndex | None = 1,
    **attributes: Unpack[t.NormAttributes],
) -> da.Array: ...
@overload
def global_max_pool(
    x: da.Array,
    *,
    keepdims: t.KeepDims = True,
    num_threads: SupportsIndex | None = 1,
    return_indices: Literal[False] | None = False,
    **attributes: Unpack[t.MaximumAttributes],
) -> da.Array: ...
@overload
def global_max_pool(
    x: da.Array,
    *,
    keepdims: t.KeepDims = True,
    num_threads: SupportsIndex | None = 1,
    return_indices: Literal[True],
    **attributes: Unpack[t.MaximumAttributes],
) -> tuple[da.Array, da.Array]: ...
@overload
def global_max_pool(
    x: da.Array,
    *,
    keepdims: t.KeepDims = True,
    num_threads: SupportsIndex | None = 1,
    return_indices: bool | None,
    **attributes: Unpack[t.MaximumAttributes],
) -> da.Array | tuple[da.Array, da.Array]: ...
def adaptive_avg_pool(
    x: da.Array,
    output_size: t.OutputSize,
    *,
    dtype: DTypeLike | None = None,
    num_threads: SupportsIndex | None = 1,
    **attributes: Unpack[t.MeanAttributes],
) -> da.Array: ...
@overload
def adaptive_max_pool(
    x: da.Array,
    output_size: t.OutputSize,
    *,
    num_threads: SupportsIndex | None = 1,
    return_indices: Literal[False] | None = False,
    **attributes: Unpack[t.MaximumAttributes],
) -> da.Array: ...
@overload
def adaptive_max_pool(
    x: da.Array,
    output_size: t.OutputSize,
    *,
    num_threads: SupportsIndex | None = 1,
    return_indices: Literal[True],
    **attributes: Unpack[t.MaximumAttributes],
) -> tuple[da.Array, da.Array]: ...
@overload
def adaptive_max_pool(
    x: da.Array,
    output_size: t.OutputSize,
    *,
    num_threads: SupportsIndex | None = 1,
    return_indices: bool | None,
    **attributes: Unpack[t.MaximumAttributes],
) -> da.Array | tuple[da.Array, da.Array]: ...
def max_unpool(
    x: da.Array,
    indices: da.Array | t.Array,
    kernel_shape: t.Ints,
    *,
    num_threads: SupportsIndex | None = 1,
    **attributes: Unpack[t.UnpoolAttributes],
) -> da.Array: ...
