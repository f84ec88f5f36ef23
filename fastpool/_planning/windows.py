"""Classify the windows of one axis, for explanations, drawings and the choice of a strategy.

A window may be added by rounding up, dropped, over an edge, or empty. Extents may have any
magnitude: no function loops over elements, windows or padding.
"""

import math
from typing import NamedTuple

from .geometry import AdaptiveAxis, Axis, GivenSize, window_counts


class Windows(NamedTuple):
    """The windows of an `Axis`, and how rounding changed the number of its windows.

    `axis` says what is computed. `end` is the padding at the end that the caller asked for.
    ``axis.end`` is what rounding down would need. `fitting` and `reaching` are the numbers of
    windows in the padding asked for, rounded down and up (`window_counts`). Outputs from `fitting`
    on were added by rounding up; if it is 0, the window exceeds the padded input, and the only
    output was added. Outputs missing below `reaching` were dropped.
    """

    axis: Axis
    end: int
    fitting: int
    reaching: int

    @property
    def output(self):
        return self.axis.output

    @property
    def extent(self):
        return self.axis.extent

    @property
    def added(self):
        return range(self.fitting, self.output)

    @property
    def dropped(self):
        return range(self.output, self.reaching)

    def first(self, output):
        """Return the element of a window's first tap: below 0 or at least the size in padding."""
        return output * self.axis.stride - self.axis.begin

    def last(self, output):
        return self.first(output) + self.extent - 1

    @property
    def over_begin(self):
        """The number of outputs whose windows hang over the beginning: the first ones."""
        return self.outside((0, self.axis.size))[0]

    @property
    def over_end(self):
        """The number of outputs whose windows hang over the end: the last ones."""
        return self.outside((0, self.axis.size))[1]

    @property
    def inside(self):
        """The number of outputs all of whose taps are elements."""
        return max(0, self.output - self.over_begin - self.over_end)

    @property
    def empty_begin(self):
        """The number of outputs whose windows end before the first element."""
        return self.axis.starting_before(1 - self.extent)

    @property
    def empty_end(self):
        """The number of outputs past `empty_begin` whose windows start past the last element."""
        starting = self.axis.starting_before(self.axis.size)
        return self.output - max(starting, self.empty_begin)

    @property
    def empty_between(self):
        """The number of outputs whose windows have taps on both sides of the input, none in it."""
        size, _, _, stride, dilation, begin, _ = self.axis
        low = max(self.output - self.over_end, self.empty_begin)
        high = min(self.over_begin, self.output - self.empty_end)
        if size >= dilation or low >= high:
            return 0
        # The first tap that is not before the input is at -first modulo the dilation.
        start = low * stride - begin
        count = high - low
        return _floor_sum(count, stride, start + dilation - size, dilation) - _floor_sum(
            count, stride, start, dilation
        )

    @property
    def empty(self):
        return self.empty_begin + self.empty_between + self.empty_end

    def outside(self, places):
        """Return how many of the first and of the last outputs have taps outside of `places`.

        Places are (first, stop). None is any place. Some outputs may count as both.
        """
        if places is None:
            return 0, 0
        first, stop = places
        fitting = self.axis.starting_before(stop - self.extent + 1)
        return self.axis.starting_before(first), self.output - fitting

    def starting_at(self, place):
        """Return the outputs, dropped ones too, whose windows start at an element or padding."""
        output, rest = divmod(place + self.axis.begin, self.axis.stride)
        made = not rest and 0 <= output < max(self.output, self.reaching)
        return range(output, output + made)

    def is_empty(self, output):
        first, dilation = self.first(output), self.axis.dilation
        first += max(0, -(first // dilation)) * dilation
        return first >= self.axis.size or first > self.last(output)

    @property
    def unread_end(self):
        """The number of elements past the last window."""
        reached = self.last(self.output - 1) + 1 if self.output else 0
        return min(self.axis.size, max(0, self.axis.size - reached))

    def reads(self, element):
        """Does any window have a tap on this element?"""
        _, output, kernel, stride, dilation, begin, _ = self.axis
        common = math.gcd(stride, dilation)
        place = element + begin  # = o * stride + t * dilation
        if place % common or not output:
            return False
        # Taps t that some window may have there are `period` apart.
        period = stride // common
        some = place // common * pow(dilation // common, -1, period)
        least = max(0, -(-(place - (output - 1) * stride) // dilation))
        return least + (some - least) % period <= min(kernel - 1, place // dilation)


class AdaptiveWindows(NamedTuple):
    """The windows of an `AdaptiveAxis`, with the properties of `Windows`.

    They hold every element and no padding.
    """

    axis: AdaptiveAxis

    end = over_begin = over_end = 0
    empty = empty_begin = empty_between = empty_end = unread_end = 0
    added = dropped = range(0)

    @property
    def output(self):
        return self.axis.output

    inside = fitting = reaching = output

    @property
    def extent(self):
        """The length of the longest window of the whole axis."""
        return self.axis.extent

    @property
    def shorter(self):
        """The number of outputs whose windows are one element shorter than the longest possible.

        Windows have ``of_size // of_output`` elements and one or two more. The shorter ones have
        one more.
        """
        _, output, of_size, of_output, first = self.axis
        starts = _floor_sum(output, of_size, first * of_size, of_output)
        stops = _floor_sum(output, of_size, (first + 1) * of_size + of_output - 1, of_output)
        return output * (of_size // of_output + 2) - (stops - starts)

    @property
    def sharing(self):
        """The number of windows that share an element with the window after them."""
        _, output, of_size, of_output, first = self.axis
        apart = of_output // math.gcd(of_size, of_output)
        return output - 1 - ((first + output - 1) // apart - first // apart)

    def first(self, output):
        return self.axis.window(output)[0]

    def last(self, output):
        return self.axis.window(output)[1] - 1

    def outside(self, places):
        return 0, 0

    def starting_at(self, place):
        return range(self.axis.starting_before(place), self.axis.starting_before(place + 1))

    def is_empty(self, output):
        return False

    def reads(self, element):
        return True


def windows_of(plan):
    """Return the `Windows` or `AdaptiveWindows` of each spatial axis of a plan."""
    return tuple(windows(axis, plan.given, i) for i, axis in enumerate(plan.axes))


def windows(axis, given, i):
    """Return the windows of spatial axis `i` of a plan, from its `given` attributes."""
    if isinstance(axis, AdaptiveAxis):
        return AdaptiveWindows(axis)
    if given is None or isinstance(given, GivenSize) or given.auto_pad.startswith("SAME"):
        return Windows(axis, axis.end, axis.output, axis.output)
    end = given.pads[len(given.pads) // 2 + i]
    padded = axis.size + axis.begin + end
    return Windows(axis, end, *window_counts(padded, axis.extent, axis.stride))


def _floor_sum(count, step, start, divisor):
    """Return the sum of ``(start + i * step) // divisor`` over i < count, by Euclid's algorithm."""
    total = 0
    while True:
        total += count * (count - 1) // 2 * (step // divisor) + count * (start // divisor)
        step, start = step % divisor, start % divisor
        top = count * step + start
        if top < divisor:
            return total
        count, start = divmod(top, divisor)
        step, divisor = divisor, step
