"""Turn the axes of a pooling into windows for the kernels, with a chain of passes along each.

All numbers are Python ints, computed once per plan.
"""

import sys
from typing import NamedTuple

from .._planning.geometry import AdaptiveAxis
from .forks import remember

# For longer kernels the search for the cheapest chain starts after some steps of four taps.
LONG_KERNEL = 1 << 16
# Limits for numbers of a window of maxima that is pooled by tiles: Py_ssize_t must hold products of
# a stride and a dilation, and of a span and the bytes of a few vectors. Running maxima take larger
# windows.
if sys.maxsize > 2**32:
    WIDE, WIDE_PRODUCT, WIDE_SPAN = 2**31, 2**62, 2**50
else:
    WIDE, WIDE_PRODUCT, WIDE_SPAN = 2**24, 2**30, 2**24
# Most taps of a strided window in one step: of windows that share rows, and of others.
STRIDED_TAPS = 64
SEPARATE_TAPS = 8


class Step(NamedTuple):
    """One pass of a chain: the maximum of `taps` elements `shift` apart, the last one at `last`."""

    taps: int
    shift: int
    last: int


class Window(NamedTuple):
    """One pooled axis. Output o covers elements o * stride - begin + t * dilation, t < kernel.

    An irregular axis has `places`, from which compiled code computes its windows: output o
    covers elements floor((o * size + rest) / outputs) to ceil(((o + 1) * size + rest) / outputs).
    Its `kernel` is the longest window and its `stride` the longest step from one to the next.
    """

    size: int
    out: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    steps: tuple
    places: tuple = ()  # size, outputs, rest

    @property
    def extent(self):
        return (self.kernel - 1) * self.dilation + 1

    @property
    def is_trivial(self):
        """Does the axis have one element, which is its only output?"""
        return self.size == self.out == self.kernel == 1 and self.begin == 0

    @property
    def takes_all(self):
        """Has the axis one window, of all of its elements?"""
        return (self.out, self.kernel, self.begin, self.dilation) == (1, self.size, 0, 1)

    @property
    def inner(self):
        """The outputs whose taps are all elements: (first, stop)."""
        first = min(self.out, -(-max(self.begin, 0) // self.stride))
        room = self.size - self.extent + self.begin
        return first, max(first, min(self.out, room // self.stride + 1) if room >= 0 else 0)

    def span(self, outputs):
        """Return the extent of `outputs` neighbouring windows in elements, padding included."""
        return (outputs - 1) * self.stride + self.extent

    @property
    def strided(self):
        """The window, in one step if that takes fewer loads than a chain, which makes every row.

        Measured on random layers: rows of 9 x 7 at stride 6 x 4 take a fifth of the time.
        """
        most = STRIDED_TAPS if self.extent > self.stride else SEPARATE_TAPS
        if self.stride == 1 or self.kernel > min(most, 3 * self.stride):
            return self
        return self._replace(steps=(Step(self.kernel, self.dilation, self.extent - 1),))

    @property
    def cost(self):
        """Loads and stores per element of the passes along this axis."""
        return sum(step.taps + 1 for step in self.steps)


@remember(4096)
def _radices(kernel):
    """Return the cheapest taps per step whose product reaches `kernel`.

    A pass costs its loads, a store and half a load for its loop, counted in half loads.
    """
    if kernel == 1:
        return 0, ()
    choices = []
    for taps in range(2, min(kernel, 8) + 1):
        cost, rest = _radices(-(-kernel // taps))
        choices.append((cost + 2 * taps + 3, (*rest, taps)))
    return min(choices)


def chain(kernel, dilation):
    """Return the steps that make a window of `kernel` taps.

    Each step but the last multiplies the length of the windows by its taps. In the last step the
    windows overlap. The number of loads grows with the logarithm of `kernel`.
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
    """Return the window of an axis without the taps that never meet an element.

    Pads may exceed the input. The trimmed window is bounded by the input and the output.
    """
    if axis.output == 0:
        return Window(axis.size, 0, 1, 1, 1, 0, chain(1, 1))
    if isinstance(axis, AdaptiveAxis):
        size, outputs = axis.of_size, axis.of_output
        places = size, outputs, axis.first * size % outputs
        stride = -(-size // outputs)
        return Window(axis.size, axis.output, axis.kernel, stride, 1, 0, chain(1, 1), places)
    stride = axis.stride if axis.output > 1 else 1
    lowest = -axis.begin
    highest = (axis.output - 1) * stride - axis.begin
    skip = max(0, -(highest // axis.dilation))
    keep = min(axis.kernel, -(-(axis.size - lowest) // axis.dilation))
    if axis.size == 0 or skip >= axis.kernel or keep <= skip:
        # No output has an element: use windows of one tap that start past the last element.
        return Window(axis.size, axis.output, 1, 1, 1, -axis.size, chain(1, 1))
    kernel = keep - skip
    dilation = axis.dilation if kernel > 1 else 1
    begin = axis.begin - skip * axis.dilation
    return Window(axis.size, axis.output, kernel, stride, dilation, begin, chain(kernel, dilation))


def whole_window(axis):
    """Return the window of an axis with all of its taps: the order of additions depends on them."""
    if isinstance(axis, AdaptiveAxis) or axis.output == 0:
        return trimmed(axis)
    size, output, kernel, stride, dilation, begin, _ = axis
    return Window(size, output, kernel, stride, dilation, begin, chain(1, 1))


def against_one_pass(windows):
    """Return why windows need several passes per axis, or None."""
    *_, rows, cols = windows
    if len(rows.steps) > 1 or len(cols.steps) > 1:
        return f"a window of {rows.kernel} x {cols.kernel} needs several passes per axis"
    return None


def is_empty(window):
    """Are all outputs of a trimmed window without elements?"""
    return window.out > 0 and window.begin <= -window.size


def is_wide(window):
    """May the products of a window's numbers that bands and passes compute exceed an address?"""
    numbers = window.extent, window.stride, window.dilation, window.out
    return (
        max(numbers) > WIDE
        or window.stride * window.dilation > WIDE_PRODUCT
        or window.span(window.out) > WIDE_SPAN
    )
