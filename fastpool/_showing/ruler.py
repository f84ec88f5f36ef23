"""Find the positions of elements along a drawn axis, and place its windows side by side.

Places count elements, of any magnitude. Positions count cells from the first one that is drawn.
"""

from typing import NamedTuple

_GAP = 1.6  # cells that replace those that are left out

# If the windows at the side of an axis need more lanes than _MOST_LANES, only _MOST_BARS of them
# are drawn, half of them the first and half of them the last ones.
_MOST_LANES, _MOST_BARS = 4, 8


class Ruler:
    """The positions of an axis's elements in a drawing, without the middle of a long axis."""

    def __init__(self, windows, most, whole):
        """Set up a ruler for several `Windows` of one input.

        All cells are drawn if there are at most `whole`, otherwise about `most`.
        """
        edges, ends = {0, windows[0].axis.size}, set()
        for w in windows:
            edges |= {-w.axis.begin, w.axis.size + w.end, high(w)}
            for output in _outermost(w):
                ends |= {w.first(output), w.last(output) + 1}
        self.parts = _parts(edges, ends, most, whole)
        self.cells = [cell for start, stop in self.parts for cell in range(start, stop)]

    @property
    def length(self):
        return self.at(self.parts[-1][1])

    def shows(self, cell):
        return any(start <= cell < stop for start, stop in self.parts)

    def at(self, place):
        """Return the position where a cell begins. Cells that are left out share the gap."""
        position, before = 0.0, None
        for start, stop in self.parts:
            if before is not None:
                if place < start:
                    return position + _GAP * ((place - before) / (start - before))
                position += _GAP
            if place <= stop:
                return position + (place - start)
            position, before = position + (stop - start), stop
        return position

    @property
    def gaps(self):
        """Positions of the middles of the gaps."""
        return [self.at(stop) + _GAP / 2 for _, stop in self.parts[:-1]]

    @property
    def middles(self):
        """Positions of the middles of the parts between the gaps."""
        return [self.at(start) + (stop - start) / 2 for start, stop in self.parts]

    def windows(self, windows):
        """Return the outputs whose windows have both ends drawn, and the outermost outputs.

        Dropped windows are among them. Of many windows that start at one cell, only the first and
        the last ones are.
        """
        found = set(_outermost(windows))
        for cell in self.cells:
            starting = windows.starting_at(cell)
            for output in {*starting[:_MOST_LANES], *starting[-_MOST_LANES:]}:
                if self.shows(windows.last(output)):
                    found.add(output)
        return sorted(found)

    def middle(self, cell):
        return self.at(cell) + 0.5


def _outermost(windows):
    """Return the first and the last output, and the dropped ones."""
    made = {0, windows.output - 1} if windows.output else set()
    return made | set(windows.dropped)


def _parts(edges, ends, most, whole):
    """Return the ranges of cells to draw: around all places if there is room, else at the edges."""
    low, high = min(edges | ends), max(edges | ends)
    if high - low <= whole:
        return [(low, high)]
    for places, least in ((edges | ends, 2), (edges, 1)):
        for around in range(most, least - 1, -1):
            parts = _merged(places, around, low, high)
            if sum(stop - start for start, stop in parts) <= most:
                return parts
    return parts


def _merged(places, around, low, high):
    """Return the ranges of cells around places, merged if at most two cells are between them."""
    parts = []
    for place in sorted(places):
        start, stop = max(low, place - around), min(high, place + around)
        if parts and start <= parts[-1][1] + 2:
            parts[-1] = parts[-1][0], max(stop, parts[-1][1])
        else:
            parts.append((start, stop))
    return parts


def high(windows):
    """Return where an axis ends: after its padding, or after a window that reaches past it."""
    last = windows.last(max(windows.output, windows.reaching) - 1)
    return max(windows.axis.size + windows.end, last + 1)


class Bars(NamedTuple):
    """The windows drawn at the side of one axis, as (output, lane) each."""

    placed: list
    lanes: int
    more: bool  # some that could be drawn are not


def bars(windows, ruler):
    shown = ruler.windows(windows)
    placed = _in_lanes(shown, windows, ruler)
    lanes = 1 + max((lane for _, lane in placed), default=0)
    if lanes > _MOST_LANES and len(shown) > _MOST_BARS:
        half = _MOST_BARS // 2
        few = _in_lanes(shown[:half] + shown[-half:], windows, ruler)
        return Bars(few, 1 + max(lane for _, lane in few), True)
    return Bars(placed, lanes, False)


def _in_lanes(outputs, windows, ruler):
    """Return (output, lane) for each output, in the first lane free where its window starts."""
    ends, placed = [], []
    for output in outputs:
        start, stop = ruler.at(windows.first(output)), ruler.at(windows.last(output) + 1)
        lane = next((i for i, end in enumerate(ends) if end <= start), len(ends))
        ends[lane : lane + 1] = [stop]
        placed.append((output, lane))
    return placed
