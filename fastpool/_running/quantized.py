"""Average quantised elements: from the sums of windows to quantised means, exactly.

A window with the sum S of its n elements and the divisor D has the total T = S - n * zero point,
and the quantised mean RN(T * step / D) + zero point of the result, where the step is the quotient
of the scales. Compiled code computes that (kernels/vectors/quantize.h), but for divisors that are
too large for its proof. Those take Python's integers.
"""

from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from .averages import is_huge
from .counts import most_divisor
from .execute import input_of, run_with_copies
from .huge import quantize_huge
from .interop import bump_versions
from .outputs import check_output, outputs

# Divisors are below this in compiled code.
_LARGE_DIVISOR = 2**26
# Greater steps, and smaller ones than its inverse, give the same: any mean but 0 leaves the type,
# or becomes 0.
_MOST_STEP = 2**38


class Quantization(NamedTuple):
    """What the elements of input and result stand for: scale * (element - zero point)."""

    step: Fraction  # the quotient of the scales
    x_zero_point: int
    y_zero_point: int
    compiled: tuple  # the same for compiled code: numerator, denominator and zero points


def quantization(x_scale, x_zero_point, y_scale, y_zero_point):
    """Return the `Quantization` of two positive floats and two integers."""
    step = Fraction(x_scale) / Fraction(y_scale)
    near = min(max(step, Fraction(1, _MOST_STEP)), Fraction(_MOST_STEP))
    compiled = *near.as_integer_ratio(), x_zero_point, y_zero_point
    return Quantization(step, x_zero_point, y_zero_point, compiled)


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
        self._is_large = is_huge(plan) or most_divisor(plan) >= _LARGE_DIVISOR
        self._quantize = lambda x, out, parts: None  # until there is a compiled function

    def __call__(self, x, quantization, out=None):
        """Return the quantised means of an array of the plan's shape and type.

        `out` is as in `fastpool.avg_pool`, an array of that type and of the plan's output shape.
        """
        y = self._quantize(x, out, quantization.compiled)
        return self._with_care(x, quantization, out) if y is None else y

    def _with_care(self, x, quantization, out):
        """Pool arrays that compiled code does not take as they are, and any at the first call."""
        x = input_of(self._plan, x)
        prepared = self._plan._prepared_for(x.dtype)
        plan, pooling = prepared.plan, prepared.pooling
        (into,) = outputs(out=out)
        if into is not None:
            check_output("out", into, plan.output_shape, x.dtype, {"x": x})
        y = np.empty(plan.output_shape, x.dtype) if into is None else into
        if self._is_large:
            if y.size:
                quantize_huge(plan, quantization, x, y)
        elif y.size:
            self._quantize = pooling.quantize
            quantize = partial(pooling.quantize_apart, quantization.compiled)
            run_with_copies(pooling, quantize, plan, prepared.threads_now(), x, y)
        bump_versions(out)
        return y if out is None else out
