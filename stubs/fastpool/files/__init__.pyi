"""The types of fastpool.files."""

import os
from collections.abc import Callable, Sequence
from typing import Literal, SupportsIndex, TypeAlias, Unpack

from numpy.typing import DTypeLike

from .. import AvgPoolPlan, LpPoolPlan, MaxPoolPlan, MinPoolPlan
from .. import typing as t

_Path: TypeAlias = str | os.PathLike[str]

def mxx_pool(
    num_threads: SupportsIndex | None = None, **attributes: Unpack[t.PoolAttributes]
) -> MxxPoolPlan: ...
def avg_pool(
    num_threads: SupportsIndex | None = None, **attributes: Unpack[t.AvgPoolAttributes]
) -> AvgPoolPlan: ...
def global_avg_pool(
    num_threads: SupportsIndex | None = None, **attributes: Unpack[t.MeanAttributes]
) -> AvgPoolPlan: ...
def lp_pool(
    num_threads: SupportsIndex | None = None, **attributes: Unpack[t.LpPoolAttributes]
) -> LpPoolPlan: ...
def global_lp_pool(
    num_threads: SupportsIndex | None = None, **attributes: Unpack[t.NormAttributes]
) -> LpPoolPlan: ...
def global_mxx_pool(
    num_threads: SupportsIndex | None = None, **attributes: Unpack[t.MaximumAttributes]
) -> MxxPoolPlan: ...
def adaptive_avg_pool(
    num_threads: SupportsIndex | None = None, **attributes: Unpack[t.MeanAttributes]
) -> AvgPoolPlan: ...
def adaptive_mxx_pool(
    num_threads: SupportsIndex | None = None, **attributes: Unpack[t.MaximumAttributes]
) -> MxxPoolPlan: ...
def pyramid(source: _Path | t.DaskArray) -> None: ...
