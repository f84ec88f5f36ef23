"""The types of fastpool.conventions."""

from typing import Any, Literal, NamedTuple

from matplotlib.figure import Figure
from numpy.typing import DTypeLike

from .. import typing as t

class Answer(NamedTuple):
    name: str
    call: str
    output_shape: tuple[int, ...] | None
    problem: str = ""
    notes: tuple[str, ...] = ()
    windows: tuple[Any, ...] = ()

class Comparison(NamedTuple):
    question: str
    answers: tuple[Answer, ...]
    def draw(self, *, title: str | None = None, width: float | None = None) -> Figure: ...
    def _repr_html_(self) -> str | None: ...

def compare(sizes: t.Ints, op: Literal["max", "average", None] = "max") -> Comparison: ...
