"""Means: sums in float arithmetic, in two orders, or exact sums, divided and rounded once."""

from fractions import Fraction
from functools import reduce
from typing import NamedTuple

import numpy as np

from .._planning import arguments, geometry
from .._planning.dtypes import is_float
from .._running.activation import apply_activation
from . import windows
from .exact import ROUNDINGS, Numbers, limits, rounded
from .windows import arranged, planes_of, reduced, sizes_of, walk, whole, without_axes


class Divisor(NamedTuple):
    """What sums are divided by: one integer, or else one of the counts of a `Window`."""

    fixed: int | None
    count: str

    def of(self, window, ignored=0):
        """Return D of a window, of whose elements some are ignored."""
        return getattr(window, self.count) - ignored if self.fixed is None else self.fixed


# The mean of all elements there are.
_OF_ELEMENTS = Divisor(None, "real")


def avg_pool(
    x,
    kernel_shape,
    *,
    strides=1,
    pads=0,
    dilations=1,
    auto_pad="NOTSET",
    ceil_mode=False,
    ceil_rule="clip",
    border="ignore",
    border_value=None,
    count_include_pad=False,
    beyond="drop",
    divisor=None,
    dtype=None,
    rounding="half_even",
    numerics="pairwise",
    nan="propagate",
    layout="NCHW",
    activation=None,
    activation_params=(),
):
    """Pool as `fastpool.avg_pool` does."""
    x = np.asarray(x)
    order = geometry.layout(layout, x.shape)
    attributes = geometry.Attributes(
        kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule
    )
    border = arguments.border(border, 1)[0]
    name = arguments.dtype_name(x.dtype)
    constant = arguments.border_value(border_value, (border,), name)
    places = None
    if border != "ignore" and count_include_pad:
        raise ValueError(f"count_include_pad with border {border}")
    count_include_pad = count_include_pad or border != "ignore"
    if border == "ignore" or (constant == 0 and nan != "ignore"):  # padding adds 0
        axes = windows.pooled(sizes_of(x, order), attributes)
    else:
        axes, places = windows.bordered(sizes_of(x, order), attributes, border)
    divisor = Divisor(arguments.divisor(divisor), _counted(count_include_pad, beyond))
    result = arguments.result_dtype(dtype, name)
    activation, activation_params = arguments.activation(activation, activation_params, result)
    y = _means(x, order, axes, divisor, dtype, rounding, numerics, nan, places, constant)
    apply_activation(y, activation, activation_params)
    return y


def global_avg_pool(
    x,
    *,
    layout="NCHW",
    keepdims=True,
    dtype=None,
    rounding="half_even",
    numerics="pairwise",
    nan="propagate",
):
    """Pool as `fastpool.global_avg_pool` does."""
    x = np.asarray(x)
    order = geometry.layout(layout, x.shape)
    axes = whole(sizes_of(x, order))
    y = _means(x, order, axes, _OF_ELEMENTS, dtype, rounding, numerics, nan)
    return without_axes(y, order, keepdims)


def adaptive_avg_pool(
    x,
    output_size,
    *,
    layout="NCHW",
    dtype=None,
    rounding="half_even",
    numerics="pairwise",
    nan="propagate",
):
    """Pool as `fastpool.adaptive_avg_pool` does."""
    x = np.asarray(x)
    order = geometry.layout(layout, x.shape)
    axes = windows.adaptive(sizes_of(x, order), output_size)
    return _means(x, order, axes, _OF_ELEMENTS, dtype, rounding, numerics, nan)


def qlinear_average_pool(
    x,
    x_scale,
    x_zero_point,
    y_scale,
    y_zero_point,
    kernel_shape,
    *,
    strides=1,
    pads=0,
    auto_pad="NOTSET",
    ceil_mode=False,
    ceil_rule="clip",
    count_include_pad=False,
    beyond="drop",
    layout="NCHW",
):
    """Pool as `fastpool.onnx.qlinear_average_pool` does, in any layout."""
    x = np.asarray(x)
    dtype = arguments.dtype_name(x.dtype)
    if dtype not in ("uint8", "int8"):
        raise TypeError(f"x: expected uint8 or int8, got {dtype}")
    order = geometry.layout(layout, x.shape)
    attributes = geometry.Attributes(
        kernel_shape, strides, pads, None, auto_pad, ceil_mode, ceil_rule
    )
    axes = windows.pooled(sizes_of(x, order), attributes)
    divisor = Divisor(None, _counted(count_include_pad, beyond))
    step = Fraction(arguments.scale(x_scale, "x_scale"))
    step /= Fraction(arguments.scale(y_scale, "y_scale"))
    x_zero_point = arguments.zero_point(x_zero_point, "x_zero_point", dtype)
    y_zero_point = arguments.zero_point(y_zero_point, "y_zero_point", dtype)
    least, most = limits(dtype)

    planes = planes_of(x, order)
    numbers = Numbers(planes, dtype, "propagate")
    numbers.integers -= x_zero_point
    quantised = _mean(
        numbers, divisor, lambda mean: min(max(round(mean * step) + y_zero_point, least), most)
    )
    return arranged(reduced(planes, axes, planes.dtype, y_zero_point, quantised), order)


def _counted(count_include_pad, beyond):
    """Return which count of a `Window` is the divisor."""
    beyond = arguments.beyond(beyond)
    if not arguments.count_include_pad(count_include_pad):
        return "real"
    return "full" if beyond == "count" else "declared"


def _means(x, order, axes, divisor, dtype, rounding, numerics, nan, places=None, constant=None):
    """Return the mean of each window, in the type `dtype`.

    `places` and `constant` are what stands at the places of each axis, padding included.
    """
    name = arguments.dtype_name(x.dtype)
    result = arguments.result_dtype(dtype, name)
    rounding = arguments.rounding(rounding, result)
    numerics = arguments.numerics(numerics)
    nan = arguments.nan(nan)
    if not is_float(result):
        _check_fits(axes, divisor, name, result, rounding)
    planes = planes_of(x, order)
    if places is not None:
        planes = windows.continued(planes, places, constant)
    if numerics == "sequential" and is_float(name):
        mean = _mean_in_floats(planes, name, divisor, nan, _in_sequence)
    elif numerics == "pairwise" and is_float(name):
        wide = "float64" if "float64" in (name, result) else "float32"
        mean = _mean_in_floats(planes, wide, divisor, nan, _in_pairs)
    else:
        numbers = Numbers(planes, name, nan)

        def finished(value):
            return rounded(value, numbers.exponent, result, rounding)

        mean = _mean(numbers, divisor, finished)
    with np.errstate(all="ignore"):
        y = reduced(planes, axes, planes.dtype if result == name else result, 0, mean)
    return arranged(y, order)


def _check_fits(axes, divisor, dtype, result, rounding):
    """Raise ValueError if the result type cannot hold the mean of some input.

    Nothing holds more than int64 and uint64: for them, means saturate.
    """
    if result in ("int64", "uint64"):
        return
    shares = (Fraction(w.real, divisor.of(w)) for _, w in walk(axes) if w.real)
    greatest = max(shares, key=abs, default=Fraction(0))
    least, most = limits(result)
    for extreme in limits(dtype):
        mean = ROUNDINGS[rounding](extreme * greatest)
        if not least <= mean <= most:
            raise ValueError(f"dtype: {result} cannot hold {mean}, the mean of some {dtype}")


def _mean(numbers, divisor, finished):
    """Return a function of a window to its exact means, each of which is `finished`."""

    def mean(window):
        totals = window.of(numbers.integers).sum(axis=-1)
        specials = window.of(numbers.special).sum(axis=-1)
        ignored = window.of(numbers.ignored).sum(axis=-1)
        for plane in np.ndindex(totals.shape):
            count = int(ignored[plane])
            special = float(specials[plane])
            if count == window.real:
                totals[plane] = np.nan
            elif special:
                totals[plane] = special if divisor.of(window, count) > 0 else -special
            else:
                totals[plane] = finished(Fraction(totals[plane], divisor.of(window, count)))
        return totals

    return mean


def _mean_in_floats(planes, dtype, divisor, nan, total):
    """Return a function of a window to its means in the arithmetic of float32 or float64.

    The accumulator is float64 for the `dtype` "float64", else float32. Each sum is rounded to it,
    and so is the quotient. `total` is one of the two functions below.
    """
    accumulator = "float64" if dtype == "float64" else "float32"
    with np.errstate(invalid="ignore"):  # signalling NaN
        values = planes.astype(accumulator)
    ignored = np.isnan(values) & (nan == "ignore")
    values[ignored] = -0.0  # adding it to any number changes nothing

    def mean(window):
        totals = total(window, values)
        for plane, count in np.ndenumerate(window.of(ignored).sum(axis=-1)):
            if count == window.real:
                totals[plane] = np.nan
            else:
                count = rounded(Fraction(divisor.of(window, int(count))), 0, accumulator)
                totals[plane] /= totals.dtype.type(count)
        return totals

    return mean


def _in_sequence(window, values):
    """Add the taps in row-major order."""
    return np.add.accumulate(window.of(values), axis=-1)[..., -1]


def _in_pairs(window, values):
    """Add the taps along the first spatial axis by `_tree`, then the sums along the next one."""
    totals = values[:, :, *window.box]
    for taps in window.taps:
        totals = _tree(np.moveaxis(totals, 2, 0), -taps.before, taps.full)
    return totals.copy()  # (of one tap they are the elements)


def _tree(elements, first, taps):
    """Add two halves of an axis' taps, each by its own tree, and then the odd tap.

    Tap t is element first + t. Taps that are not there add nothing. Return None if none is there.
    """
    if first + taps <= 0 or first >= len(elements):
        return None
    if taps == 1:
        return elements[first]
    half = taps // 2
    parts = [_tree(elements, first, half), _tree(elements, first + half, half)]
    if taps % 2:
        parts.append(_tree(elements, first + taps - 1, 1))
    return reduce(np.add, (part for part in parts if part is not None))
