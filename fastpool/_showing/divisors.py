"""Say what an average divides the sum of each window by, for explanations and drawings.

A divisor is the product of one count per axis: of the window's taps that count along it.
"""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

from .._planning import geometry
from .._planning.average_pool import count
from .._planning.geometry import AdaptiveAxis
from .._planning.windows import windows_of

# If more windows of an axis than _MOST lack taps, the first and the last _FEW are listed.
_MOST, _FEW = 8, 3


def places_of(plan):
    """Return the places that count along each spatial axis: (first, stop), or None for any."""
    return (None,) * len(plan.axes) if plan.counted is None else plan.counted


def taps_that_count(windows, places):
    """Say how many taps count along an axis some of whose windows have taps outside of `places`."""
    axis = windows.axis
    before, after = windows.outside(places)
    lacking = min(before + after, axis.output)
    listed = []
    for i in range(lacking) if lacking <= _MOST else (*range(_FEW), *range(lacking)[-_FEW:]):
        output = i if i < before else axis.output - lacking + i
        listed.append(f"{count(axis, places, output)} in window {output}")
    if lacking > _MOST:
        listed.insert(_FEW, "...")
    whole = f"{axis.kernel}; " if lacking < axis.output else ""
    return f"taps that count: {whole}{', '.join(listed)}"


def divisor_rule(plan):
    """Yield sentences on what the sum of a window is divided by."""
    if plan.divisor is not None:
        yield f"divisor {plan.divisor}: every sum is divided by it, whatever its window holds"
        return
    all_windows = windows_of(plan)
    pairs = [*zip(all_windows, places_of(plan), strict=True)]
    regular = not any(isinstance(windows.axis, AdaptiveAxis) for windows in all_windows)
    if regular and not any(any(windows.outside(of_axis)) for windows, of_axis in pairs):
        padded = any(windows.over_begin or windows.over_end for windows in all_windows)
        why = f", as padding counts ({_why(plan)})" if padded else ""
        yield f"every sum is divided by {math.prod(plan.kernel_shape)}{why}"
    else:
        counted = "elements of its window"
        if plan.count_include_pad or plan.borders:
            counted = f"taps on elements and padding ({_why(plan)})"
        elif regular:
            counted = "taps on elements (count_include_pad is off)"
        names = geometry.layout(plan.layout, plan.input_shape).spatial_names
        along = " times ".join(f"that along {name}" for name in names)
        product = f": {along}" if len(names) > 1 else ""
        yield f"a sum is divided by the number of {counted}{product}"
    if (plan.count_include_pad or plan.borders) and any(windows.added for windows in all_windows):
        done = "do not count" if plan.beyond == "drop" else "count as well"
        yield f'beyond "{plan.beyond}": taps past the padding at the end {done}'


def _why(plan):
    return "border" if plan.borders else "count_include_pad"


class Divisors(NamedTuple):
    """What a drawing of one or two axes says about divisors.

    `counts` holds a function per drawn axis, from an output to its number of taps that count.
    `fixed` is the divisor of every window, if the plan has one. `complete` says whether all axes
    are drawn. `padding` and `past` say what padding, and places past it, do to a divisor.
    """

    counts: tuple[Callable, ...]
    fixed: int | None
    complete: bool
    padding: str
    past: str

    @classmethod
    def of(cls, plan, axes):
        """Return those of a plan, of which the spatial axes at some positions are drawn."""
        places = places_of(plan)
        counts = tuple(functools.partial(count, plan.axes[i], places[i]) for i in axes)
        padding = past = " (does not count)"
        if plan.count_include_pad or plan.borders:
            padding, past = " (counts)", past if plan.beyond == "drop" else " (counts)"
        if plan.divisor is not None:
            padding = past = ""
        return cls(counts, plan.divisor, len(counts) == len(places), padding, past)

    def along(self, axis, output):
        """Return the factor of a divisor along a drawn axis, as text, or "" if there is none."""
        if self.fixed is not None:
            return f" ÷{self.fixed}" if self.complete and len(self.counts) == 1 else ""
        return f" ÷{self.counts[axis](output)}"

    def whole(self, outputs):
        """Return the divisor of a window as text, or "" if only some of its axes are drawn."""
        if self.fixed is not None:
            return f"÷{self.fixed}"
        if not self.complete:
            return ""
        taps = (number(output) for number, output in zip(self.counts, outputs, strict=True))
        return f"÷{math.prod(taps)}"

    @property
    def legend(self):
        if not self.complete and self.fixed is None:
            return "taps that count along an axis"
        if len(self.counts) == 1 or self.fixed is not None:
            return "what the sum is divided by"
        return "what the sum is divided by, along each axis and in all"
