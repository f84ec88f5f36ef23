"""Compare what one set of attributes means in ONNX, OpenVINO, torch and TensorFlow.

All pool by one formula, but disagree about the last window, padding, and which attributes are
valid. `compare` returns the output shape of each; the result can be printed and drawn.
"""

import html
from typing import NamedTuple

from ._planning import arguments, max_pool
from ._planning.geometry import Axis, window_counts
from ._planning.windows import Windows, windows_of

__all__ = ["Answer", "Comparison", "compare"]


class Answer(NamedTuple):
    """The result of one convention for the attributes.

    Attributes
    ----------
    name : str
    call : str
        How the attributes are written in that convention.
    output_shape : tuple of int or None
        Spatial extents; None if it refuses.
    problem : str
        Why it refuses; "" if it does not.
    notes : tuple of str
        Further facts, such as implementations that differ.
    windows : tuple
        The positions of the windows of each axis, for drawings.
    """

    name: str
    call: str
    output_shape: tuple | None
    problem: str = ""
    notes: tuple = ()
    windows: tuple = ()


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
        from ._showing.draw import Panel, figure

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
    sizes, kernel_shape, *, strides=1, pads=0, dilations=1, auto_pad="NOTSET", ceil_mode=False
):
    """Compare what the attributes of a pooling mean in each convention.

    Parameters
    ----------
    sizes : int or sequence of int
        Extents of the spatial axes.
    kernel_shape, strides, pads, dilations, auto_pad, ceil_mode
        As in :func:`fastpool.max_pool`. TensorFlow has no pads and no `ceil_mode`. It is compared
        with the padding that `auto_pad` names, or with both of its paddings.

    Returns
    -------
    comparison : Comparison

    Raises
    ------
    TypeError, ValueError
        An attribute is valid in none of them.

    Notes
    -----
    ONNX is the text of opset 22, whose rounding onnxruntime has in every opset. OpenVINO is MaxPool
    of version 8. All other facts were observed in onnxruntime 1.31, OpenVINO 2026.4 and torch 2.13.
    TensorFlow follows the formulas of its "SAME" and "VALID".

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
    """
    if not arguments.is_sequence(sizes):
        sizes = [sizes]
    sizes = arguments.as_counts(sizes, "sizes", 1, range(1, arguments.MOST_AXES - 1))
    count = len(sizes)
    asked = _Asked(
        sizes,
        arguments.kernel_shape(kernel_shape, count),
        arguments.strides(strides, count),
        arguments.pads(pads, count),
        arguments.dilations(dilations, count),
        arguments.auto_pad(auto_pad),
        arguments.ceil_mode(ceil_mode),
    )
    answers = [_onnx(asked), _openvino(asked), _torch(asked), *_tensorflow(asked)]
    return Comparison(str(asked), tuple(answers))


class _Asked(NamedTuple):
    sizes: tuple
    kernel: tuple
    strides: tuple
    pads: tuple
    dilations: tuple
    auto_pad: str
    ceil_mode: bool

    def __str__(self):
        words = [f"size {self.sizes}", f"kernel_shape {self.kernel}", f"strides {self.strides}"]
        words += [f"pads {self.pads}"] * any(self.pads)
        words += [f"dilations {self.dilations}"] * (max(self.dilations) > 1)
        words += [f"auto_pad {self.auto_pad}"] * (self.auto_pad != "NOTSET")
        return ", ".join(words + ["ceil_mode"] * self.ceil_mode)

    @property
    def same(self):
        return self.auto_pad.startswith("SAME")

    @property
    def extents(self):
        return [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]

    def answer(self, name, call, notes=(), ceil_rule="clip", **changed):
        """Return the answer of fastpool for these attributes, some of them `changed`."""
        asked = self._replace(**changed)
        try:
            fields = max_pool.resolve(
                (1, 1, *asked.sizes),
                "uint8",
                asked.kernel,
                strides=asked.strides,
                pads=asked.pads,
                dilations=asked.dilations,
                auto_pad=asked.auto_pad,
                ceil_mode=asked.ceil_mode,
                ceil_rule=ceil_rule,
            )
            plan = max_pool.MaxPool(**fields)
        except ValueError as error:
            return Answer(name, call, None, str(error), tuple(notes))
        return Answer(name, call, plan.output_shape[2:], "", tuple(notes), windows_of(plan))


def _shown(extents):
    return "error" if extents is None else str(extents)


def _dropped(windows):
    """Return in words the windows that rounding up would have added; "" if there are none."""
    axes = [(i, w.dropped[-1]) for i, w in enumerate(windows) if w.dropped]
    if len(windows) == 1:
        return "".join(f"window {output}" for _, output in axes)
    return " and ".join(f"window {output} of axis {i}" for i, output in axes)


# ------------------------------------------------------------------------------ one convention each


def _onnx(asked):
    call = [f'auto_pad="{asked.auto_pad}"'] * (asked.auto_pad != "NOTSET")
    call += ["ceil_mode=1"] * asked.ceil_mode
    answer = asked.answer("ONNX", ", ".join(call))
    notes = list(_onnxruntime(asked, answer))
    if asked.ceil_mode and any(w.dropped for w in answer.windows):
        notes.append(f"texts before opset 22 keep {_dropped(answer.windows)}")
    return answer._replace(notes=tuple(notes))


def _onnxruntime(asked, answer):
    """Yield notes on what onnxruntime does differently."""
    axes = list(zip(asked.sizes, asked.kernel, asked.strides, asked.extents, strict=True))
    if any(p >= k for p, k in zip(asked.pads, asked.kernel * 2, strict=True)):
        yield "onnxruntime refuses pads of the kernel's extent"
        return
    if asked.auto_pad != "NOTSET" and any(asked.pads):
        yield "onnxruntime ignores the pads"
    elif not answer.windows:
        count = len(axes)
        rooms = [n + sum(asked.pads[i::count]) - e for i, (n, _, _, e) in enumerate(axes)]
        fitting = [
            r // s if r >= 0 else -(-r // s) for r, s in zip(rooms, asked.strides, strict=True)
        ]
        if min(fitting) >= -1:
            yield "onnxruntime makes windows that do not fit, or an empty result"
    if asked.same and asked.extents != list(asked.kernel):
        yield "onnxruntime pads as if not dilated: other windows, or an error"
    elif asked.same and any((-(-n // s) - 1) * s + k < n for n, k, s, _ in axes):
        yield "onnxruntime pads by less than nothing: other windows, or an error"


def _openvino(asked):
    pads, call, notes = asked.pads, [], []
    if asked.auto_pad != "NOTSET":
        call.append(f'auto_pad="{asked.auto_pad.lower()}"')
        if any(pads):
            pads = (0,) * len(pads)
            notes.append("the pads are ignored")
    call += ['rounding_type="ceil"'] * asked.ceil_mode
    answer = asked.answer("OpenVINO", ", ".join(call), pads=pads, ceil_rule="keep")
    if asked.ceil_mode and asked.same:
        axes = [w.axis for w in answer.windows]
        rooms = [a.size + a.begin + a.end - e for a, e in zip(axes, asked.extents, strict=True)]
        found = tuple(-(-r // s) + 1 for r, s in zip(rooms, asked.strides, strict=True))
        if found != answer.output_shape:
            notes.append(f"OpenVINO 2026.4 gives {found}, with windows of nothing")
    elif asked.ceil_mode:
        dropped = _dropped(asked.answer("", "", pads=pads, ceil_rule="clip").windows)
        if dropped:
            notes.append(f'"ceil_torch", of version 14, drops {dropped}')
    return answer._replace(notes=tuple(notes))


def _torch(asked):
    count = len(asked.sizes)
    begins, ends = asked.pads[:count], asked.pads[count:]
    if asked.auto_pad == "VALID":
        begins = ends = (0,) * count
    call = [f"padding={begins}"] * any(begins)
    call = ", ".join(call + ["ceil_mode=True"] * asked.ceil_mode)

    def refused(problem):
        return Answer("torch", call, None, problem)

    if asked.auto_pad.startswith("SAME"):
        return refused("no automatic padding")
    if begins != ends:
        return refused("one padding for both sides of an axis")
    if any(2 * p > k for p, k in zip(begins, asked.kernel, strict=True)):
        return refused("padding of at most half the kernel")
    windows = []
    for i, (size, kernel, stride, pad, dilation) in enumerate(
        zip(asked.sizes, asked.kernel, asked.strides, begins, asked.dilations, strict=True)
    ):
        extent = asked.extents[i]
        fitting, reaching = window_counts(size + 2 * pad, extent, stride)
        output = reaching if asked.ceil_mode else fitting
        if asked.ceil_mode and (output - 1) * stride >= size + pad:
            output -= 1
        if output < 1:
            return refused(f"a window of {extent} exceeds the padded input of {size + 2 * pad}")
        end = max(0, (output - 1) * stride + extent - size - pad)
        axis = Axis(size, output, kernel, stride, dilation, pad, end)
        windows.append(Windows(axis, pad, max(0, fitting), max(0, reaching)))
    notes = ()
    if any(w.fitting < 1 for w in windows):
        notes = ("rounds up to one window although that exceeds the padded input",)
    extents = tuple(w.output for w in windows)
    return Answer("torch", call, extents, "", notes, tuple(windows))


def _tensorflow(asked):
    lacks = ["pads"] * any(asked.pads) + ["ceil_mode"] * asked.ceil_mode
    call = ", ".join(f"no {name}" for name in lacks)
    changed = {"pads": (0,) * len(asked.pads), "ceil_mode": False}
    if asked.auto_pad in ("NOTSET", "VALID"):
        yield asked.answer('TensorFlow "VALID"', call, **changed, auto_pad="VALID")
    if asked.auto_pad != "VALID":
        notes = ["no SAME_LOWER: the odd unit of padding is at the end"]
        notes = notes if asked.auto_pad == "SAME_LOWER" else []
        yield asked.answer('TensorFlow "SAME"', call, notes, **changed, auto_pad="SAME_UPPER")
