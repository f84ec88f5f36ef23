"""Average quantised elements: from the sums of windows to quantised means, exactly.

A window with the sum S of its n elements and the divisor D has the total T = S - n * zero point,
and the quantised mean RN(T * step / D) + zero point of the result, where the step is the quotient
of the scales. That never decreases with T. So for each D there is a least total of each of the 256
results, and these 255 integers decide it without any rounding.
"""

from fractions import Fraction
from functools import lru_cache
from itertools import chain, pairwise, product
from math import prod
from typing import NamedTuple

import numpy as np

from .._planning.average_pool import count
from .._planning.dtypes import limits
from .interop import bump_versions
from .outputs import check_output, outputs, own

_INT64 = np.iinfo(np.int64)

# For windows of up to 257 bytes: it fits in the second level of any cache.
_LONGEST_TABLE = 2**16


class Quantization(NamedTuple):
    """What the elements of input and result stand for: scale * (element - zero point)."""

    x_scale: float
    x_zero_point: int
    y_scale: float
    y_zero_point: int


class QuantizedAverage:
    """An average pooling of quantised elements, ready to run on arrays of one shape and type."""

    def __init__(self, plan):
        """Set up.

        Parameters
        ----------
        plan : AvgPoolPlan
            One that adds the elements of each window: of uint8 or int8, with a `divisor` of 1, and
            without dilation, so that few divisors take turns.
        """
        self._plan = plan
        self._counts = None

    def __call__(self, x, quantization, out=None):
        """Pool an array of the plan's shape and type, as `fastpool.avg_pool` does."""
        x, dtype = own(x), np.dtype(self._plan.dtype)
        (into,) = outputs(out=out)
        if into is not None:
            check_output("out", into, self._plan.output_shape, dtype, {"x": x})
        sums = self._plan(x)
        if into is None:
            into = np.empty(sums.shape, dtype)
        if sums.size:
            self._quantize(sums, quantization, into)
        bump_versions(out)
        return into if out is None else out

    def _quantize(self, sums, quantization, y):
        """Write the quantised means of the windows with these sums."""
        plan = self._plan
        if self._counts is None:  # not before the sums had memory: there is a count per output
            self._counts = _Counts(plan)
        counts = self._counts
        totals = sums.astype(np.int64)
        elements = np.int64(quantization.x_zero_point)
        for place, of_axis in zip(plan.spatial, counts.elements, strict=True):
            shape = [1] * sums.ndim
            shape[place] = -1
            elements = elements * of_axis.reshape(shape)
        totals -= elements
        farthest = 255 * prod(plan.kernel_shape)  # from 0 that a total is
        quantized = _looked_up if farthest <= _LONGEST_TABLE else _searched
        for divisor, region in counts.regions(plan):
            rule = quantization, divisor, plan.dtype
            y[region] = quantized(totals[region], rule, farthest)


class _Counts:
    """Of each output along each axis: how many elements, and how many taps that divide.

    Attributes
    ----------
    elements : list of ndarray of int64
        One array per axis.
    """

    def __init__(self, plan):
        places = plan.counted or (None,) * len(plan.axes)
        self.elements, self._runs = [], []
        for axis, counted in zip(plan.axes, places, strict=True):
            # All taps of the outputs from `first` up to `stop` are elements.
            first = min(-(-axis.begin // axis.stride), axis.output)
            stop = (axis.size + axis.begin - axis.kernel) // axis.stride + 1
            stop = max(first, min(axis.output, stop))
            elements = np.full(axis.output, min(axis.kernel, axis.size))
            numbers = {axis.kernel: 0}  # of divisors, which may have more than 64 bits
            of_outputs = np.zeros(axis.output, np.intp)
            for output in chain(range(first), range(stop, axis.output)):
                elements[output] = count(axis, (0, axis.size), output)
                divisor = count(axis, counted, output)
                of_outputs[output] = numbers.setdefault(divisor, len(numbers))
            divisors = list(numbers)
            cuts = 0, *(np.flatnonzero(np.diff(of_outputs)) + 1), axis.output
            self.elements.append(elements)
            self._runs.append(
                [(divisors[of_outputs[start]], slice(start, end)) for start, end in pairwise(cuts)]
            )

    def regions(self, plan):
        """Yield each divisor with an index of outputs that it divides."""
        for runs in product(*self._runs):
            region = [slice(None)] * len(plan.output_shape)
            for place, (_, outputs_of_axis) in zip(plan.spatial, runs, strict=True):
                region[place] = outputs_of_axis
            # A window without elements has a total of 0: any divisor will do.
            yield prod(divisor for divisor, _ in runs) or 1, tuple(region)


def _searched(totals, rule, farthest):
    return np.searchsorted(_bounds(*rule), totals, side="right") + limits(rule[-1])[0]


def _looked_up(totals, rule, farthest):
    """Return what `_searched` does, many times faster if there are more totals than `farthest`."""
    return _table(rule, farthest)[totals]  # those below 0 count from the end


@lru_cache(256)
def _table(rule, farthest):
    totals = np.concatenate([np.arange(farthest + 1), np.arange(-farthest, 0)])
    return _searched(totals, rule, farthest).astype(rule[-1])


@lru_cache(1024)
def _bounds(quantization, divisor, dtype):
    """Return the least total for each value of the type but the least."""
    step = Fraction(quantization.x_scale) / Fraction(quantization.y_scale)
    zero_point = quantization.y_zero_point
    least, most = limits(dtype)
    bounds = []
    for value in range(least + 1 - zero_point, most + 1 - zero_point):
        # total * step / divisor >= value - 1/2, or > if the tie goes to value - 1, which is even
        numerator = (2 * value - 1) * divisor * step.denominator
        bound, rest = divmod(numerator, 2 * step.numerator)
        bound += rest > 0 or value % 2
        bounds.append(min(max(bound, _INT64.min), _INT64.max))
    return np.array(bounds)
