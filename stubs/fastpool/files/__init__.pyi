"""The types of fastpool.files."""

import os
from collections.abc import Callable
from typing import SupportsIndex, TypeAlias, Unpack

from numpy.typing import DTypeLike

from .. import AvgPoolPlan, LpPoolPlan, MaxPoolPlan
from .. import typing as t

_Path: TypeAlias = str | os.PathLike[str]

def max_pool(
    num_threads: SupportsIndex | None = None, **attributes: Unpack[t.PoolAttributes]
) -> MaxPoolPlan: ...
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
def global_max_pool(
    num_threads: SupportsIndex | None = None, **attributes: Unpack[t.MaximumAttributes]
) -> MaxPoolPlan: ...
def adaptive_avg_pool(
    num_threads: SupportsIndex | None = None, **attributes: Unpack[t.MeanAttributes]
) -> AvgPoolPlan: ...
def adaptive_max_pool(
    num_threads: SupportsIndex | None = None, **attributes: Unpack[t.MaximumAttributes]
) -> MaxPoolPlan: ...
