"""Average quantised elements: from the sums of windows to quantised means, exactly.

A window with the sum S of its n elements and the divisor D has the total T = S - n * zero point,
and the quantised mean RN(T * step / D) + zero point of the result, where the step is the quotient
of the scales. Compiled code computes that (kernels/vectors/quantize.h).
"""

from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from .execute import input_of, run_with_copies
from .interop import bump_versions
from .outputs import check_output, outputs
from .repeats import repeat

# Greater steps give the same: means are 0, or leave the type, as divisors are at most 2**53. So do
# smaller ones: all means become 0.
_MOST_STEP, _LEAST_STEP = Fraction(2**62), Fraction(1, 2**38)


class Quantization(NamedTuple):
    """What the elements of input and result stand for: scale * (element - zero point).

    The quotient of the scales is ``numerator * 2**shift / denominator``.
    """

    numerator: int
    shift: int
    denominator: int
    x_zero_point: int
    y_zero_point: int


def quantization(x_scale, x_zero_point, y_scale, y_zero_point):
    """Return the `Quantization` of two positive floats and two integers."""
    step = min(max(Fraction(x_scale) / Fraction(y_scale), _LEAST_STEP), _MOST_STEP)
    shift = max(0, step.numerator.bit_length() - 62)  # (floats have 24 bits, so the rest are zeros)
    return Quantization(
        step.numerator >> shift, shift, step.denominator, x_zero_point, y_zero_point
    )


class QuantizedAverage:
    """An average pooling of quantised elements, ready to run on arrays of one shape and type."""

    def __init__(self, plan):
        """Set up.

        Parameters
        ----------
        plan : AvgPoolPlan
            One of uint8 or int8 whose windows and divisors are wanted, without dilation.
        """
        self._plan = plan
        self._quantize = lambda x, out, parts: None  # until there is a compiled function

    def _count_tables_in(self, counter):
        self._plan._count_tables_in(counter)

    def __call__(self, x, quantization, out=None):
        """Return the quantised means of an array of the plan's shape and type.

        `out` is as in `fastpool.avg_pool`, an array of that type and of the plan's output shape.
        """
        y = self._quantize(x, out, quantization)
        return self._with_care(x, quantization, out) if y is None else y

    def _with_care(self, x, quantization, out):
        """Pool arrays that compiled code does not take as they are, and any at the first call."""
        x = input_of(self._plan, x)
        prepared = self._plan._prepared_for(x.dtype)
        plan = prepared.plan
        (into,) = outputs(out=out)
        if into is not None:
            check_output("out", into, plan.output_shape, x.dtype, {"x": x})
        if prepared.once is not None:
            y = self._repeated(prepared.once, x, quantization)
            if into is not None:
                into[...] = y
        else:
            y = np.empty(plan.output_shape, x.dtype) if into is None else into
            if y.size:
                self._quantize = prepared.pooling.quantize
                _run(prepared, x, quantization, y)
        bump_versions(out)
        return y if out is None else out

    def _repeated(self, each, x, quantization):
        """Return the means of windows that repeat, each of which is pooled once."""
        means = np.empty(each.plan.output_shape, x.dtype)
        y = np.empty(self._plan.output_shape, x.dtype)
        if y.size:
            _run(each, x, quantization, means)
            repeat(self._plan, each.plan, means, y)
        return y


def _run(prepared, x, quantization, y):
    run_with_copies(prepared, partial(prepared.pooling.quantize_apart, quantization), x, y)
