"""The axes of a pooling as kernels take them, and the chains of passes along each.

All of it is Python integers, made once per plan.
"""

import functools
from typing import NamedTuple

# Of longer kernels the search for the cheapest chain begins further on.
LONG_KERNEL = 1 << 16
# The kernels of tiles multiply a stride by a dilation, and a span by the bytes of a few vectors.
# Running maxima take windows with larger numbers.
WIDE = 2**31
WIDE_SPAN = 2**50


class Step(NamedTuple):
    """One pass of a chain: the maximum of `taps` elements `shift` apart, the last one at `last`."""

    taps: int
    shift: int
    last: int


class Window(NamedTuple):
    """One pooled axis. Output o covers elements o * stride - begin + t * dilation, t < kernel."""

    size: int
    out: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    steps: tuple

    @property
    def extent(self):
        return (self.kernel - 1) * self.dilation + 1

    @property
    def is_trivial(self):
        """Is the axis of one element, which is its only output?"""
        return self.size == self.out == self.kernel == 1 and self.begin == 0

    @property
    def inner(self):
        """The outputs whose taps are all elements: (first, stop)."""
        first = min(self.out, -(-max(self.begin, 0) // self.stride))
        room = self.size - self.extent + self.begin
        return first, max(first, min(self.out, room // self.stride + 1) if room >= 0 else 0)

    def span(self, outputs):
        """Elements, padding included, from the first to the last of neighbouring outputs."""
        return (outputs - 1) * self.stride + self.extent

    @property
    def cost(self):
        """Loads and stores per element of the passes along this axis."""
        return sum(step.taps + 1 for step in self.steps)


@functools.cache
def _radices(kernel):
    """Taps per step whose product reaches `kernel`, the cheapest: a pass costs its loads, a store
    and half a load for its loop, in half loads."""
    if kernel == 1:
        return 0, ()
    choices = []
    for taps in range(2, min(kernel, 8) + 1):
        cost, rest = _radices(-(-kernel // taps))
        choices.append((cost + 2 * taps + 3, (*rest, taps)))
    return min(choices)


def chain(kernel, dilation):
    """The steps that make a window of `kernel` taps.

    Windows of the earlier steps double, triple, ... in length; the last step lets them overlap.
    The number of loads grows with the logarithm of `kernel`.
    """
    radices, rest = (), kernel
    while rest > LONG_KERNEL:  # four taps a step are the cheapest; what is left is searched
        radices, rest = (*radices, 4), -(-rest // 4)
    radices += _radices(rest)[1] or (1,)
    covered, steps = 1, []
    for taps in radices[:-1]:
        steps.append(Step(taps, covered * dilation, (taps - 1) * covered * dilation))
        covered *= taps
    taps = -(-kernel // covered)
    steps.append(Step(taps, covered * dilation, (kernel - covered) * dilation))
    return tuple(steps)


def trimmed(axis):
    """The window of an axis without taps that never meet an element.

    Pads may exceed any memory; what is left of a window is bounded by the input and the output.
    """
    if axis.output == 0:
        return Window(axis.size, 0, 1, 1, 1, 0, chain(1, 1))
    stride = axis.stride if axis.output > 1 else 1
    lowest = -axis.begin
    highest = (axis.output - 1) * stride - axis.begin
    skip = max(0, -(highest // axis.dilation))
    keep = min(axis.kernel, -(-(axis.size - lowest) // axis.dilation))
    if axis.size == 0 or skip >= axis.kernel or keep <= skip:
        # No output has an element. The windows are those that start past the last one.
        return Window(axis.size, axis.output, 1, 1, 1, -axis.size, chain(1, 1))
    kernel = keep - skip
    dilation = axis.dilation if kernel > 1 else 1
    begin = axis.begin - skip * axis.dilation
    return Window(axis.size, axis.output, kernel, stride, dilation, begin, chain(kernel, dilation))


def is_empty(window):
    """Has no output of a trimmed window an element?"""
    return window.out > 0 and window.begin <= -window.size


def is_wide(window):
    """Might products of a window's numbers, as bands and passes make them, exceed 64 bits?"""
    numbers = window.extent, window.stride, window.dilation, window.out
    return max(numbers) > WIDE or window.span(window.out) > WIDE_SPAN
