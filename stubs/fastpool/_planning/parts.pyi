"""The type of a plan's tiles."""

from typing import Generic, NamedTuple

from typing_extensions import TypeVar

from .._plans.base import _WindowPlan

_Plan = TypeVar("_Plan", bound=_WindowPlan, covariant=True)

class Tile(NamedTuple, Generic[_Plan]):
    plan: _Plan
    read: tuple[slice, ...]
    write: tuple[slice, ...]
