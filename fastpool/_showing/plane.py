"""Draw one panel on matplotlib's axes: the elements, the padding, and the windows over them.

A window of a plane combines a window of rows and one of columns. Bars at the sides show these,
readable also if windows overlap. Inside the plane, all windows are outlined if none overlap.
Otherwise the first and the last one are outlined, and marks show where the others start.
"""

from itertools import product
from typing import NamedTuple

from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from .divisors import Divisors
from .ruler import high

_MOST_DIVISORS = 64  # with more windows outlined, none is written inside of them

INCHES = 0.3  # size of a cell if the caller gives no width
LANE = 0.66  # cells that a bar takes
SIDE = 0.3  # cells from the plane to its bars

# Colour-blind safe, by Okabe and Ito. Line styles and fills differ too, for prints in gray.
_MADE, _ADDED, _DROPPED = "#0072B2", "#D55E00", "#7A4270"
_FILLS = {_MADE: "#CFE6F5", _ADDED: "#FFDCC2", _DROPPED: "#FFFFFF"}
_LINES = {_MADE: "-", _ADDED: "-", _DROPPED: (0, (2.2, 1.4))}
_THICK = {_MADE: 1, _ADDED: 1.7, _DROPPED: 1}
_ELEMENT, _HATCH, _FAINT = "#E4E4E4", "#A8A8A8", "#6E6E6E"
TEXT = "#1A1A1A"


class Panel(NamedTuple):
    """One plane or row to draw: the windows of its axes, or none if there is only text.

    `divisors` are those of an average.
    """

    windows: tuple
    head: str = ""
    text: str = ""
    why_dropped: str = ""
    divisors: Divisors | None = None


def _colour(windows, output):
    if output >= windows.output:
        return _DROPPED
    return _ADDED if output in windows.added else _MADE


def _sign(marker):
    """Return what stands for a sign in the legend."""
    return Line2D([], [], marker=marker, color=TEXT, linestyle="", mew=0.1)


class Plane:
    """One panel on matplotlib's axes. The unit is a cell; y grows downwards."""

    def __init__(self, ax, panel, rulers, sides, names, points):
        self.ax, self.panel, self.names, self.points = ax, panel, names, points
        self.cols, self.col_bars = (panel.windows[-1], rulers[-1]), sides[-1]
        self.rows, self.row_bars = None, None
        if len(rulers) > 1:
            self.rows, self.row_bars = (panel.windows[0], rulers[0]), sides[0]
        self.legend = {}

    def draw(self):
        self._cells()
        self._unread()
        self._side(*self.cols, self.col_bars, self.names[-1], lambda along, across: (along, across))
        if self.rows:
            self._side(
                *self.rows, self.row_bars, self.names[0], lambda along, across: (across, along)
            )
        self._windows()
        return self.legend

    def _lines(self):
        """Return (cell, position, kind) of the rows; one row of elements if there is no such axis.

        The kind is "element", "padding" or "past".
        """
        if self.rows is None:
            return [(0, 0.0, "element")]
        return self._kinds(*self.rows)

    def _kinds(self, windows, ruler):
        size = windows.axis.size
        for cell in ruler.cells:
            if not -windows.axis.begin <= cell < high(windows):  # a cell of another panel
                continue
            kind = "element" if 0 <= cell < size else "padding"
            if cell >= size + windows.end:
                kind = "past"
            yield cell, ruler.at(cell), kind

    def _cells(self):
        kinds = {"element": [], "padding": [], "past": []}
        for (_, y, row), (_, x, col) in product(self._lines(), list(self._kinds(*self.cols))):
            kind = max(row, col, key=("element", "padding", "past").index)
            kinds[kind].append([(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)])
        styles = {
            "element": {"facecolor": _ELEMENT, "edgecolor": "white", "linewidth": 1.0},
            "padding": {"facecolor": "white", "edgecolor": _HATCH, "hatch": "/////"},
            "past": {"facecolor": "white", "edgecolor": _HATCH, "linestyle": ":"},
        }
        styles["padding"]["linewidth"] = styles["past"]["linewidth"] = 0.6
        names = {"element": "input", "padding": "padding", "past": "past the padding"}
        if self.panel.divisors:
            names["padding"] += self.panel.divisors.padding
            names["past"] += self.panel.divisors.past
        for kind, cells in kinds.items():
            if cells:
                self.ax.add_collection(PolyCollection(cells, zorder=1, **styles[kind]))
                self.legend[names[kind]] = Patch(**styles[kind])
        cols, rows = self.cols[1], self.rows and self.rows[1]
        across = [(x, y, "⋯") for x in cols.gaps for y in (rows.middles if rows else [0.5])]
        down = [(x, y, "⋮") for x in cols.middles for y in (rows.gaps if rows else [])]
        both = [(x, y, "⋱") for x in cols.gaps for y in (rows.gaps if rows else [])]
        for x, y, dots in across + down + both:
            self._text(x, y, dots, _FAINT, 11)

    def _unread(self):
        """Draw crosses where no window has a tap."""

        def read(windows, ruler):
            size = windows.axis.size
            return {cell: windows.reads(cell) for cell in ruler.cells if 0 <= cell < size}

        cols = read(*self.cols)
        rows = {0: True} if self.rows is None else read(*self.rows)
        crosses = [
            (self.cols[1].middle(col), 0.5 if self.rows is None else self.rows[1].middle(row))
            for row, col in product(rows, cols)
            if not (rows[row] and cols[col])
        ]
        if crosses:
            style = {"marker": "x", "color": _FAINT, "markersize": 3.5, "linestyle": ""}
            self.ax.plot(*zip(*crosses, strict=True), zorder=2, **style)
            self.legend["in no window"] = Line2D([], [], **style)

    def _side(self, windows, ruler, side, name, turn):
        """Draw bars above the plane and numbers of elements below it.

        If `turn` swaps the axes, bars are left of the plane and numbers right of it.
        """
        dilated = windows.axis.dilation > 1 and windows.axis.kernel > 1
        across = self.cols if turn(0, 1) == (1, 0) else self.rows
        near, far = 0, 1
        if across:
            near, far = across[1].at(-across[0].axis.begin), across[1].at(high(across[0]))
        for output, lane in side.placed:
            start, stop = ruler.at(windows.first(output)), ruler.at(windows.last(output) + 1)
            edge = near - SIDE - (lane + 1) * LANE
            colour = _colour(windows, output)
            empty = windows.is_empty(output)
            x, y = turn(start + 0.06, edge + 0.05)
            size = turn(stop - start - 0.12, LANE - 0.1)
            style = {"edgecolor": colour, "linestyle": _LINES[colour]}
            style["linewidth"] = 1.1 * _THICK[colour]
            style["facecolor"] = "white" if empty else _FILLS[colour]
            self.ax.add_patch(Rectangle((x, y), *size, zorder=3, **style))
            middle = edge + LANE / 2
            # If the window is dilated, put the label next to the first tap, where no tap is.
            place = ruler.middle(windows.first(output) + 1) if dilated else (start + stop) / 2
            label = f"{output}∅" if empty else f"{output}{self._factor(windows, name, output)}"
            upright = turn(0, 1) == (1, 0) and len(label) > 2
            room = self.points * (1 if dilated else stop - start) / (0.7 * len(label))
            style_of_text = {"rotation": 90 if upright else 0}
            self._text(*turn(place, middle), label, colour, min(7, room), **style_of_text)
            if empty:
                self.legend["no element in it"] = _sign("$∅$")
            if dilated:
                taps = self._taps(windows, ruler, output)
                points = [turn(ruler.middle(tap), middle) for tap in taps]
                self.ax.plot(*zip(*points, strict=True), "o", color=colour, ms=2.6, zorder=4)
            self._explain(colour, style | {"facecolor": _FILLS[colour]})
        if side.more:
            lanes = near - SIDE - LANE * side.lanes / 2
            self._text(*turn(ruler.length / 2, lanes), "⋯", _FAINT, 10)
        self._numbers(windows, ruler, turn, far)
        start = ruler.at(-windows.axis.begin) - 0.35
        self._text(*turn(start, far + 0.4), name, TEXT, 7, weight="bold")

    def _factor(self, windows, name, output):
        """Return the factor of a window's divisor along an axis, for its bar."""
        divisors = self.panel.divisors
        if divisors is None or output >= windows.output:
            return ""
        return self._divisor(divisors.along(self.names.index(name), output))

    def _divisor(self, text):
        """Return the text of a divisor; if there is one, explain it in the legend."""
        if text:
            self.legend[self.panel.divisors.legend] = _sign(r"$\div$")
        return text

    def _explain(self, colour, style):
        names = {_MADE: "window, and its output's number", _ADDED: "window added by ceil_mode"}
        names[_DROPPED] = f"window dropped{self.panel.why_dropped}"
        self.legend.setdefault(names[colour], Patch(**style))

    def _taps(self, windows, ruler, output):
        first, dilation = windows.first(output), windows.axis.dilation
        last = windows.last(output)
        return [
            cell for cell in ruler.cells if first <= cell <= last and not (cell - first) % dilation
        ]

    def _numbers(self, windows, ruler, turn, across):
        """Draw as many numbers of elements as there is room for, opposite to the bars."""
        size = windows.axis.size
        shown = [cell for cell in ruler.cells if 0 <= cell < size]
        room = self.points / (4.4 * len(str(size))) if turn(0, 1) == (0, 1) else self.points / 8
        step = next((n for n in (1, 2, 5, 10) if n * room >= 1), 20)
        for cell in shown:
            if cell % step == 0 or cell == size - 1 and (cell % step) * room >= 1:
                place = turn(ruler.middle(cell), across + 0.4)
                self._text(*place, str(cell), _FAINT, 6.5)

    def _windows(self):
        """Draw outlines of windows, or marks where they start."""
        cols = self.cols[1].windows(self.cols[0])
        rows = [None] if self.rows is None else self.rows[1].windows(self.rows[0])
        sides = [self.cols] if self.rows is None else [self.cols, self.rows]
        overlap = any(w.extent > w.axis.stride and w.output > 1 for w, _ in sides)
        if not rows or not cols:
            return
        pairs = list(product(rows, cols))
        outlined = pairs
        if overlap:
            made = [pair for pair in pairs if self._sort(pair) != _DROPPED] or pairs
            outlined = [pairs[0], made[-1]] + self._representatives(rows, cols)
            outlined = list(dict.fromkeys(outlined))
            self._marks([pair for pair in pairs if pair not in outlined])
        for turn, pair in enumerate(outlined):
            self._outline(pair, 0.1 + 0.07 * (turn % 2 if overlap else 0), overlap)
        if self.rows and self.panel.divisors and len(outlined) <= _MOST_DIVISORS:
            for pair in outlined:
                self._write_divisor(pair)

    def _write_divisor(self, pair):
        """Write in the middle of a window what its sum is divided by."""
        axes = self.rows, self.cols
        of_pair = [*zip((windows for windows, _ in axes), pair, strict=True)]
        if self._sort(pair) == _DROPPED or any(w.is_empty(output) for w, output in of_pair):
            return
        left, top, right, bottom = self._box(pair)
        box = {"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.8}
        text = self._divisor(self.panel.divisors.whole(pair))
        self._text((left + right) / 2, (top + bottom) / 2, text, TEXT, 7.5, bbox=box)

    def _representatives(self, rows, cols):
        """Return one dropped window in the first row of windows and one in the first column."""
        found = []
        for row, col in [(rows[0], cols[-1]), (rows[-1], cols[0])]:
            if self._sort((row, col)) == _DROPPED:
                found.append((row, col))
        return found

    def _sort(self, pair):
        row, col = pair
        colours = {_colour(self.cols[0], col)}
        if row is not None:
            colours.add(_colour(self.rows[0], row))
        return next(c for c in (_DROPPED, _ADDED, _MADE) if c in colours)

    def _box(self, pair):
        row, col = pair
        windows, ruler = self.cols
        left, right = ruler.at(windows.first(col)), ruler.at(windows.last(col) + 1)
        top, bottom = 0.0, 1.0
        if row is not None:
            windows, ruler = self.rows
            top, bottom = ruler.at(windows.first(row)), ruler.at(windows.last(row) + 1)
        return left, top, right, bottom

    def _outline(self, pair, inset, filled):
        left, top, right, bottom = self._box(pair)
        colour = self._sort(pair)
        size = right - left - 2 * inset, bottom - top - 2 * inset
        style = {"edgecolor": colour, "linestyle": _LINES[colour], "zorder": 5}
        style["linewidth"] = 1.6 * _THICK[colour]
        self.ax.add_patch(Rectangle((left + inset, top + inset), *size, fill=False, **style))
        if filled and colour != _DROPPED:
            place = left + inset, top + inset
            self.ax.add_patch(
                Rectangle(place, *size, facecolor=colour, alpha=0.13, linewidth=0, zorder=1.5)
            )
        row, col = pair
        sides = [(self.cols, col)] if row is None else [(self.cols, col), (self.rows, row)]
        if any(w.axis.dilation > 1 for (w, _), _ in sides):
            taps = [
                [ruler.middle(tap) for tap in self._taps(windows, ruler, output)]
                for (windows, ruler), output in sides
            ]
            ys = taps[1] if row is not None else [0.5]
            points = list(product(taps[0], ys))
            style = {"marker": "o", "color": colour, "markersize": 4, "linestyle": ""}
            self.ax.plot(*zip(*points, strict=True), zorder=6, **style)
            self.legend.setdefault("tap", Line2D([], [], **style))

    def _marks(self, pairs):
        """Mark the corner at which each window starts."""
        lines = {}
        for pair in pairs:
            left, top, _, _ = self._box(pair)
            left, top = left + 0.14, top + 0.14
            corner = [(left, top + 0.42), (left, top), (left + 0.42, top)]
            lines.setdefault(self._sort(pair), []).append(corner)
        for colour, corners in lines.items():
            style = {"colors": colour, "linewidths": 1.3, "linestyles": "-"}
            self.ax.add_collection(LineCollection(corners, zorder=4, **style))
        if _MADE in lines:
            self.legend["start of a window"] = Line2D(
                [], [], marker=[(0, -1), (0, 0), (1, 0)], color=_MADE, linestyle="", mfc="none"
            )

    def _text(self, x, y, text, colour, size, **style):
        size *= max(1, self.points / (72 * INCHES)) ** 0.5
        style |= {"color": colour, "fontsize": min(size, 0.6 * self.points)}
        self.ax.text(x, y, text, ha="center", va="center", zorder=7, **style)
