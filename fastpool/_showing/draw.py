"""Draw the elements and padding of one or two axes of a plan, and the windows over them.

The layout counts in cells, one per element. A `Ruler` gives the position of an element along a
drawn axis and leaves out the middle of long axes. A figure is a sheet of panels, and a `Plane`
draws one of them.
"""

import base64
import io
import re
import textwrap

try:
    import matplotlib.style
    from matplotlib.figure import Figure
except ImportError:
    raise ImportError('drawing needs matplotlib: pip install "fastpool[plot]"') from None

from .._planning import geometry
from .._planning.average_pool import AvgPool
from .._planning.geometry import GivenSize
from .._planning.lp_pool import LpPool
from .._planning.values import is_sequence, shown
from .._planning.windows import windows_of
from .axes import is_adaptive
from .divisors import Divisors
from .plane import INCHES, LANE, SIDE, TEXT, Panel, Plane
from .ruler import Ruler, bars

_WIDTH = 7.0  # largest width of the figure if the caller gives none
_MOST_INCHES = 0.5
_LEAST_INCHES = 0.19, 0.15  # for an axis that is drawn in part, and in whole
# number of axes -> (cells, about, of an axis drawn in part; most cells of one drawn in whole)
_MOST_CELLS = {1: (30, 44), 2: (18, 34)}

# On top of matplotlib's default style, so that the caller's style has no effect.
_STYLE = [
    "default",
    {
        "font.family": ["DejaVu Sans"],
        "hatch.linewidth": 0.7,
        "svg.fonttype": "path",
        "svg.hashsalt": "fastpool",
    },
]


class Drawing(Figure):
    """A figure that gives identical SVG bytes every time, and that notebooks show."""

    def savefig(self, fname, **arguments):
        if str(arguments.get("format") or fname).lower().endswith("svg"):
            arguments.setdefault("metadata", {"Date": None})
        with matplotlib.style.context(_STYLE):
            super().savefig(fname, **arguments)

    def _repr_html_(self):
        # Embed it as an image: the style sheet and ids of inline SVG would apply to the whole page.
        file = io.BytesIO()
        self.savefig(file, format="svg")
        data = base64.b64encode(file.getvalue()).decode()
        return f'<img alt="windows of a pooling" src="data:image/svg+xml;base64,{data}">'


def draw(plan, axes, title, width):
    """Draw a plan, as its method `draw` does."""
    order = geometry.layout(plan.layout, plan.input_shape)
    chosen = _chosen(axes, order.spatial_names)
    windows = [windows_of(plan)[i] for i in chosen]
    names = [order.spatial_names[i] for i in chosen]
    ceil_mode = getattr(plan.given, "ceil_mode", False)
    why = ' (ceil_rule "clip")' if ceil_mode else " (ceil_mode off)"
    title = _title(plan) if title is None else title
    divisors = Divisors.of(plan, chosen) if isinstance(plan, AvgPool) else None
    panel = Panel(tuple(windows), why_dropped=why, divisors=divisors)
    return figure([panel], names, title, width)


def _chosen(axes, names):
    """Return the positions, among the spatial axes, of those to draw."""
    if axes is None:
        if len(names) > 2:
            raise ValueError(
                f"axes: {len(names)} spatial axes cannot be drawn at once; name one or two of "
                f"{', '.join(names)}"
            )
        return range(len(names))
    if not is_sequence(axes) and not isinstance(axes, str):
        raise TypeError(f"axes: expected names of axes, got {shown(axes)}")
    chosen = [axes] if axes in names else list(axes)
    if not 1 <= len(chosen) <= 2 or len(set(chosen)) < len(chosen) or set(chosen) - set(names):
        raise ValueError(f"axes: expected one or two of {', '.join(names)}, got {shown(axes)}")
    return [names.index(name) for name in chosen]


def _title(plan):
    types, more = plan.dtype, []
    if isinstance(plan, AvgPool):
        types += f" → {plan.result_dtype}" * (plan.result_dtype != plan.dtype)
        more += ["count_include_pad"] * plan.count_include_pad
        more += [f"beyond {plan.beyond}"] * (plan.beyond != "drop")
        more += [f"divisor {plan.divisor}"] * (plan.divisor is not None)
    elif isinstance(plan, LpPool):
        more += [f"p {plan.p:g}", *[f"partial {plan.partial}"] * (plan.partial != "sum")]
    shapes = f"{types} {plan.layout} {plan.input_shape} → {plan.output_shape}"
    return f"{shapes}\n{', '.join([*_attributes(plan), *more])}"


def _attributes(plan):
    given = plan.given
    if isinstance(given, GivenSize):
        return [f"output_size {given.output_size}"]
    if is_adaptive(plan):
        return [f"{' x '.join(map(str, plan.kernel_shape))} elements at most, of a tile"]
    words = [f"kernel_shape {plan.kernel_shape}", f"strides {plan.strides}"]
    if max(plan.dilations) > 1:
        words.append(f"dilations {plan.dilations}")
    if given is None:
        words.append(f"pads {plan.pads}, of a tile")
    else:
        words += [f"pads {given.pads}"] * any(given.pads)
        words += [f"auto_pad {given.auto_pad}"] * (given.auto_pad != "NOTSET")
        words += [f"ceil_mode\N{NO-BREAK SPACE}({given.ceil_rule})"] * given.ceil_mode
    return words


# ------------------------------------------------------------------------------------- the figure


def figure(panels, names, title, width=None):
    """Return a `Drawing` of panels that share their elements.

    Panels of one axis are drawn one below the other, planes in a grid.
    """
    if width is not None and not 2 <= width <= 100:
        raise ValueError(f"width: expected 2 to 100 inches, got {shown(width)}")
    with matplotlib.style.context(_STYLE):
        return _Sheet(panels, names, width).draw(title)


class _Sheet:
    """The sizes of all parts of a figure: in cells inside the panels, in inches outside."""

    def __init__(self, panels, names, width):
        self.panels, self.names = panels, names
        count, shown = len(names), [panel for panel in panels if panel.windows]
        most, whole = _MOST_CELLS[count]
        self.columns = 1
        if count == 2 and len(panels) > 1:
            self.columns = 3 if width is None else max(1, int(width / 3))
            self.columns = min(self.columns, len(panels))
            most, whole = 13, 15
        if width is not None:
            room = width / self.columns
            most = max(12, min(most, int(room / _LEAST_INCHES[0]) - 6))
            whole = max(most, min(whole, int(room / _LEAST_INCHES[1]) - 6))
        axes = range(count)
        self.rulers = [Ruler([p.windows[i] for p in shown], most, whole) for i in axes]
        self.sides = {p: [bars(p.windows[i], self.rulers[i]) for i in axes] for p in shown}
        lanes = [max(self.sides[p][i].lanes for p in shown) for i in axes]
        # Bars, the plane, the numbers of elements.
        self.left = 0.9 if count == 1 else SIDE + LANE * lanes[0] + 0.1
        self.above = SIDE + LANE * lanes[-1] + 0.1
        self.across = self.left + self.rulers[-1].length + (0.4 if count == 1 else 1.1)
        self.down = self.above + (1 if count == 1 else self.rulers[0].length) + 0.9
        widest = _WIDTH if self.columns == 1 else _WIDTH * 0.5
        self.inches = min(INCHES, widest / self.across)
        self.width = max(
            3.6 if len(panels) == 1 else 4.8, self.columns * (self.across * self.inches + 0.2)
        )
        if width is not None:
            self.inches = min(width / self.columns / self.across, _MOST_INCHES)
            self.width = width

    def draw(self, title):
        titles = _wrapped(title, self.width)
        heads = {panel: self._head(panel) for panel in self.panels}
        rows = [self.panels[i : i + self.columns] for i in range(0, len(self.panels), self.columns)]
        heights = [
            max(0.17 * len(heads[p]) + (self.down * self.inches if p.windows else 0.1) for p in row)
            for row in rows
        ]
        drawing = Drawing(figsize=(self.width, 1), dpi=100, facecolor="white")
        legend, planes = {}, []
        for panel in self.panels:
            if panel.windows:
                ax = drawing.add_axes((0, 0, 1, 1), label=panel.head)
                ax.set_axis_off()
                margin = (self.width / self.columns / self.inches - self.across) / 2
                ax.set_xlim(-self.left - margin, self.across - self.left + margin)
                ax.set_ylim(self.down - self.above, -self.above)
                plane = Plane(
                    ax, panel, self.rulers, self.sides[panel], self.names, self.inches * 72
                )
                legend.update(plane.draw())
                planes.append((panel, ax))
        lines, columns = _legend_shape(legend, self.width)
        top = 0.1 + 0.18 * len(titles)
        height = top + sum(heights) + 0.1 + 0.15 * lines
        drawing.set_size_inches(self.width, height)
        for i, line in enumerate(titles):
            weight = "bold" if i == 0 else "normal"
            _write(drawing, self.width / 2, 0.14 + 0.18 * i, line, weight, "center", 8.5)
        axes = dict(planes)
        for row, extent in zip(rows, heights, strict=True):
            for i, panel in enumerate(row):
                left = i * self.width / self.columns
                for j, line in enumerate(heads[panel]):
                    weight = "normal" if j else "bold"
                    _write(drawing, left + 0.15, top + 0.1 + 0.17 * j, line, weight, "left", 7.5)
                if panel.windows:
                    bottom = height - top - 0.17 * len(heads[panel]) - self.down * self.inches
                    sizes = self.width / self.columns, self.down * self.inches
                    box = left / self.width, bottom / height
                    axes[panel].set_position((*box, sizes[0] / self.width, sizes[1] / height))
            top += extent
        drawing.legend(
            legend.values(),
            legend.keys(),
            loc="lower center",
            ncols=columns,
            frameon=False,
            fontsize=7.5,
            handlelength=1.6,
            columnspacing=1.4,
            labelspacing=0.35,
            borderaxespad=0.2,
        )
        return drawing

    def _head(self, panel):
        room = self.width / self.columns * 0.95
        return [*_wrapped(panel.head, room), *_wrapped(panel.text, room * 1.1)]


def _write(drawing, x, y, text, weight, ha, size):
    """Write text at a position in inches from the upper left."""
    width, height = drawing.get_size_inches()
    style = {"fontsize": size, "color": TEXT, "weight": weight, "ha": ha, "va": "center"}
    drawing.text(x / width, 1 - y / height, text, **style)


def _wrapped(title, width):
    """Return lines that fit the width, broken between attributes but not inside their tuples."""
    lines = []
    for line in title.splitlines():
        whole = re.sub(r", (?=[^()]*\))", ",\N{NO-BREAK SPACE}", line)
        lines += textwrap.wrap(whole, int(width * 14.5)) or [""]
    return lines


def _legend_shape(legend, width):
    """Return rows and columns of a legend, with as many columns as fit."""
    for columns in range(len(legend), 0, -1):
        rows, more = divmod(len(legend), columns)
        labels, wide, start = list(legend), 0.3, 0
        for column in range(columns):
            stop = start + rows + (column < more)
            wide += 0.47 + 0.056 * max(map(len, labels[start:stop]))
            start = stop
        if wide <= width:
            break
    return rows + (more > 0), columns
