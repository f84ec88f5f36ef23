"""The types of fastpool.conventions."""

from typing import Any, Literal, NamedTuple

from matplotlib.figure import Figure
from numpy.typing import DTypeLike

from .. import typing as t

__all__ = ["Answer", "Comparison", "compare"]

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

def compare(
    sizes: t.Ints,
    kernel_shape: t.Ints,
    *,
    strides: t.Strides | None = 1,
    pads: t.Ints | None = 0,
    dilations: t.Ints | None = 1,
    auto_pad: t.AutoPad = "NOTSET",
    ceil_mode: t.CeilMode = False,
    op: Literal["max", "average", None] = "max",
    count_include_pad: t.CountIncludePad = False,
    dtype: DTypeLike | None = None,
) -> Comparison: ...
