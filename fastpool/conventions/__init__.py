"""Compare what one set of attributes means in ONNX, OpenVINO, torch and TensorFlow.

All pool by one formula, but disagree about the last window, padding, and which attributes are
valid. `compare` returns the output shape of each; the result can be printed and drawn.
"""

import html
from typing import NamedTuple

from .._planning import arguments
from .._planning.values import MOST_AXES, as_counts, choice, is_sequence
from . import _average, _maximum
from ._answers import Answer, Asked

__all__ = ["Answer", "Comparison", "compare"]


class Comparison(NamedTuple):
    """The answers of all conventions; `str` is a table of them.

    Attributes
    ----------
    question : str
        The attributes.
    answers : tuple of Answer
    """

    question: str
    answers: tuple

    def __str__(self):
        lines = [self.question]
        shown = [_shown(answer.output_shape) for answer in self.answers]
        name = max(len(answer.name) for answer in self.answers)
        wide = max(map(len, shown))
        for answer, extents in zip(self.answers, shown, strict=True):
            start = f"{answer.name:{name}}  {extents:{wide}}  "
            rest = [answer.problem or answer.call, *answer.notes]
            lines += [(start if i == 0 else " " * len(start)) + text for i, text in enumerate(rest)]
        return "\n".join(line.rstrip() for line in lines)

    def draw(self, *, title=None, width=None):
        """Draw the windows of every convention over the same elements.

        Parameters
        ----------
        title : str, optional
            The attributes by default. "" means no title.
        width : float, optional
            Width of the figure in inches. By default it depends on the geometry.

        Returns
        -------
        figure : matplotlib.figure.Figure

        Raises
        ------
        ImportError
            matplotlib is not installed: ``pip install "fastpool[plot]"``.
        ValueError
            There are more than two axes, or all refuse.
        """
        from .._showing.draw import Panel, figure

        shown = [answer for answer in self.answers if answer.windows]
        if not shown:
            raise ValueError("no convention takes these attributes: there is nothing to draw")
        count = len(shown[0].windows)
        if count > 2:
            raise ValueError(f"{count} spatial axes cannot be drawn at once; compare one or two")
        panels = []
        for answer in self.answers:
            head = f"{answer.name}: {_shown(answer.output_shape)}"
            text = "\n".join([answer.problem or answer.call, *answer.notes])
            panels.append(Panel(answer.windows, head, text))
        title = self.question.replace("), ", ")\n", 1) if title is None else title
        return figure(panels, ["H", "W"][-count:], title, width)

    def _repr_html_(self):
        try:
            rows = "".join(
                f"<tr><th>{html.escape(answer.name)}</th><td>{_shown(answer.output_shape)}</td>"
                f'<td style="text-align:left">'
                f"{'<br>'.join(map(html.escape, [answer.problem or answer.call, *answer.notes]))}"
                f"</td></tr>"
                for answer in self.answers
            )
            table = f"<p><b>{html.escape(self.question)}</b></p><table>{rows}</table>"
        except Exception:  # a notebook then shows the text, not a traceback
            return None
        try:
            return f"<div>{self.draw(title='')._repr_html_()}{table}</div>"
        except (ImportError, ValueError):
            return f"<div>{table}</div>"


def compare(
    sizes,
    kernel_shape,
    *,
    strides=1,
    pads=0,
    dilations=1,
    auto_pad="NOTSET",
    ceil_mode=False,
    op="max",
    count_include_pad=False,
    dtype=None,
):
    """Compare what the attributes of a pooling mean in each convention.

    Parameters
    ----------
    sizes : int or sequence of int
        Extents of the spatial axes.
    kernel_shape, strides, pads, dilations, auto_pad, ceil_mode
        As in :func:`fastpool.max_pool`. TensorFlow has no pads and no `ceil_mode`. It is compared
        with the padding that `auto_pad` names, or with both of its paddings.
    op : {"max", "average"}
        The pooling that they are attributes of.
    count_include_pad : bool
        As in :func:`fastpool.avg_pool`, of averages only.
    dtype : dtype_like, optional
        An integer type, of averages only: to compare how they are rounded.

    Returns
    -------
    comparison : Comparison

    Raises
    ------
    TypeError, ValueError
        An attribute is valid in none of them, or has no meaning for `op`.

    Notes
    -----
    ONNX is the text of opset 22, whose rounding onnxruntime has in every opset. OpenVINO is MaxPool
    of version 8 and AvgPool of version 16. All other facts were observed in onnxruntime 1.31,
    OpenVINO 2026.4 and torch 2.13. TensorFlow follows the formulas of its "SAME" and "VALID".

    Examples
    --------
    >>> from fastpool import conventions
    >>> print(conventions.compare(4, 2, strides=3, pads=1, ceil_mode=True))
    size (4,), kernel_shape (2,), strides (3,), pads (1, 1), ceil_mode
    ONNX                (2,)  ceil_mode=1
                              texts before opset 22 keep window 2
    OpenVINO            (3,)  rounding_type="ceil"
                              "ceil_torch", of version 14, drops window 2
    torch               (2,)  padding=(1,), ceil_mode=True
    TensorFlow "VALID"  (1,)  no pads, no ceil_mode
    TensorFlow "SAME"   (2,)  no pads, no ceil_mode

    What sums are divided by differs too:

    >>> attributes = {"strides": 2, "pads": 1, "ceil_mode": True, "count_include_pad": True}
    >>> print(conventions.compare(4, 3, op="average", **attributes))
    size (4,), kernel_shape (3,), strides (2,), pads (1, 1), ceil_mode, op average, \
count_include_pad
    ONNX                (3,)  ceil_mode=1, count_include_pad=1
                              window 2 is divided by 2 of its 3 taps
                              QLinearAveragePool of onnxruntime divides by all of them
    OpenVINO            (3,)  rounding_type="ceil", exclude-pad="false"
                              window 2 is divided by all of its 3 taps
    torch               (3,)  padding=(1,), ceil_mode=True
                              window 2 is divided by 2 of its 3 taps
    TensorFlow "VALID"  (1,)  no pads, no ceil_mode, no count_include_pad
    TensorFlow "SAME"   (2,)  no pads, no ceil_mode, no count_include_pad
    """
    if not is_sequence(sizes):
        sizes = [sizes]
    sizes = as_counts(sizes, "sizes", 1, range(1, MOST_AXES - 1))
    count = len(sizes)
    kernel_shape = arguments.kernel_shape(kernel_shape, count)
    asked = Asked(
        sizes,
        kernel_shape,
        arguments.strides(strides, kernel_shape),
        arguments.pads(pads, count),
        arguments.dilations(dilations, count),
        arguments.auto_pad(auto_pad),
        arguments.ceil_mode(ceil_mode),
        choice(op, "op", ("max", "average")),
        arguments.count_include_pad(count_include_pad),
        None if dtype is None else arguments.dtype_name(dtype),
    )
    if asked.op == "average":
        return Comparison(str(asked), tuple(_average.answers(asked)))
    for name in ("count_include_pad", "dtype"):
        if getattr(asked, name):
            raise ValueError(f'{name}: has no meaning with op "max"')
    return Comparison(str(asked), tuple(_maximum.answers(asked)))


def _shown(extents):
    return "error" if extents is None else str(extents)
