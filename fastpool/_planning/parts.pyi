"""The type of a plan's tiles."""

from typing import Generic, NamedTuple

from typing_extensions import TypeVar

from .._plans import MaxPoolPlan

_WithIndices = TypeVar("_WithIndices", bound=bool, default=bool, covariant=True)

class Tile(NamedTuple, Generic[_WithIndices]):
    plan: MaxPoolPlan[_WithIndices]
    read: tuple[slice, ...]
    write: tuple[slice, ...]
