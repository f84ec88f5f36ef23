"""Where along a drawn axis its elements stand, and its windows beside each other.

Places are elements, of any magnitude; positions are cells from the first one that is drawn.
"""

from typing import NamedTuple

_GAP = 1.6  # cells in the place of those that are left out

# Windows at the side of an axis: with more lanes than so many, the first and the last ones of so
# many are enough.
_MOST_LANES, _MOST_BARS = 4, 8


class Ruler:
    """The elements of an axis side by side, without the middle of long ones."""

    def __init__(self, windows, most, whole):
        """For several `Windows` of one input; all is drawn if there are at most `whole` cells, else
        about `most`."""
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
        """Where a cell begins. What is left out shares the room of the gap."""
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
        """Positions of their middles."""
        return [self.at(stop) + _GAP / 2 for _, stop in self.parts[:-1]]

    @property
    def middles(self):
        """Of the parts between the gaps."""
        return [self.at(start) + (stop - start) / 2 for start, stop in self.parts]

    def windows(self, windows):
        """Outputs of which both ends are drawn, and the outermost; those of dropped windows too."""
        axis, found = windows.axis, set(_outermost(windows))
        for cell in self.cells:
            output, rest = divmod(cell + axis.begin, axis.stride)
            made = 0 <= output < max(windows.output, windows.reaching)
            if made and not rest and self.shows(windows.last(output)):
                found.add(output)
        return sorted(found)

    def middle(self, cell):
        return self.at(cell) + 0.5


def _outermost(windows):
    """The first and the last output, and the dropped ones."""
    made = {0, windows.output - 1} if windows.output else set()
    return made | set(windows.dropped)


def _parts(edges, ends, most, whole):
    """What to draw, as ranges of cells: around all places if there is room, else at the edges."""
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
    """The cells around places, as ranges; those nearly next to each other are one."""
    parts = []
    for place in sorted(places):
        start, stop = max(low, place - around), min(high, place + around)
        if parts and start <= parts[-1][1] + 2:
            parts[-1] = parts[-1][0], max(stop, parts[-1][1])
        else:
            parts.append((start, stop))
    return parts


def high(windows):
    """Where an axis ends: its padding, or what of its windows lies behind that."""
    last = windows.last(max(windows.output, windows.reaching) - 1)
    return max(windows.axis.size + windows.end, last + 1)


class Bars(NamedTuple):
    """The windows of one axis as they stand at its side: (output, lane) each."""

    placed: list
    lanes: int
    more: bool  # not all that could be drawn are


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
    """Each in the first lane that is free where its window starts."""
    ends, placed = [], []
    for output in outputs:
        start, stop = ruler.at(windows.first(output)), ruler.at(windows.last(output) + 1)
        lane = next((i for i, end in enumerate(ends) if end <= start), len(ends))
        ends[lane : lane + 1] = [stop]
        placed.append((output, lane))
    return placed
