"""The types of fastpool.dask."""

from typing import Literal, SupportsIndex, Unpack, overload

import dask.array as da

from .. import _typing as t

__all__ = ["max_pool", "max_unpool"]

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
def max_unpool(
    x: da.Array,
    indices: da.Array | t.Array,
    kernel_shape: t.Ints,
    *,
    num_threads: SupportsIndex | None = 1,
    **attributes: Unpack[t.UnpoolAttributes],
) -> da.Array: ...
