"""Classify the windows of one axis, for explanations, drawings and the choice of a strategy.

A window may be added by rounding up, dropped, over an edge, or empty. Extents may have any
magnitude: no function loops over elements, windows or padding.
"""

import math
from typing import NamedTuple

from .geometry import Axis, window_counts


class Windows(NamedTuple):
    """An `Axis`, and how rounding changed the number of its windows.

    `axis` says what is computed. `end` is the padding at the end that the caller asked for.
    ``axis.end`` is what rounding down would need. `fitting` and `reaching` are the numbers of
    windows in the padding asked for, rounded down and up (`window_counts`). Outputs from `fitting`
    on were added by rounding up. Outputs missing below `reaching` were dropped.
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
        return self._before(self.axis.begin)

    @property
    def over_end(self):
        """The number of outputs whose windows hang over the end: the last ones."""
        return self.output - self._before(self.axis.size + self.axis.begin - self.extent + 1)

    @property
    def inside(self):
        """The number of outputs all of whose taps are elements."""
        return max(0, self.output - self.over_begin - self.over_end)

    @property
    def empty_begin(self):
        """The number of outputs whose windows end before the first element."""
        return self._before(self.axis.begin - self.extent + 1)

    @property
    def empty_end(self):
        """The number of outputs past `empty_begin` whose windows start past the last element."""
        starting = self._before(self.axis.size + self.axis.begin)
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

    def _before(self, place):
        """Return how many outputs have windows that start before a place in the padded input."""
        return min(max(0, -(-place // self.axis.stride)), self.output)


def windows_of(plan):
    """Return the `Windows` of each spatial axis of a plan."""
    return tuple(windows(axis, plan.given, i) for i, axis in enumerate(plan.axes))


def windows(axis, given, i):
    """Return the `Windows` of spatial axis `i` of a plan, from its `given` attributes."""
    if given is None or given.auto_pad.startswith("SAME"):
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
