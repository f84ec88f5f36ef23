"""The types of fastpool.files."""

import os
from collections.abc import Callable
from typing import SupportsIndex, TypeAlias, Unpack

from . import MaxPoolPlan
from . import _typing as t

__all__ = ["max_pool"]

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
