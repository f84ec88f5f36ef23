"""The types of fastpool.dask."""

from typing import Literal, SupportsIndex, Unpack, overload

import dask.array as da
from numpy.typing import DTypeLike

from .. import typing as t

@overload
def mxx_pool(
    return_indices: Literal[False] | None = False, **attributes: Unpack[t.PoolAttributes]
) -> da.Array: ...
@overload
def mxx_pool(
    return_indices: Literal[True], **attributes: Unpack[t.PoolAttributes]
) -> tuple[da.Array, da.Array]: ...
@overload
def mxx_pool(
    return_indices: bool | None, **attributes: Unpack[t.PoolAttributes]
) -> da.Array | tuple[da.Array, da.Array]: ...
def avg_pool(**attributes: Unpack[t.AvgPoolAttributes]) -> da.Array: ...
def global_avg_pool(**attributes: Unpack[t.MeanAttributes]) -> da.Array: ...
def lp_pool(**attributes: Unpack[t.LpPoolAttributes]) -> da.Array: ...
def global_lp_pool(**attributes: Unpack[t.NormAttributes]) -> da.Array: ...
@overload
def global_mxx_pool(
    return_indices: Literal[False] | None = False, **attributes: Unpack[t.MaximumAttributes]
) -> da.Array: ...
@overload
def global_mxx_pool(
    return_indices: Literal[True], **attributes: Unpack[t.MaximumAttributes]
) -> tuple[da.Array, da.Array]: ...
@overload
def global_mxx_pool(
    return_indices: bool | None, **attributes: Unpack[t.MaximumAttributes]
) -> da.Array | tuple[da.Array, da.Array]: ...
def adaptive_avg_pool(**attributes: Unpack[t.MeanAttributes]) -> da.Array: ...
@overload
def adaptive_mxx_pool(
    return_indices: Literal[False] | None = False, **attributes: Unpack[t.MaximumAttributes]
) -> da.Array: ...
@overload
def adaptive_mxx_pool(
    return_indices: Literal[True], **attributes: Unpack[t.MaximumAttributes]
) -> tuple[da.Array, da.Array]: ...
@overload
def adaptive_mxx_pool(
    return_indices: bool | None, **attributes: Unpack[t.MaximumAttributes]
) -> da.Array | tuple[da.Array, da.Array]: ...
def max_unpool(**attributes: Unpack[t.UnpoolAttributes]) -> da.Array: ...
