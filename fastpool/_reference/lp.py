"""Lp norms: sums of powers and their roots, with more digits than any element type has."""

import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction

import numpy as np

from .._planning import arguments, geometry
from .._planning.dtypes import is_float
from . import windows
from .exact import Numbers, rounded
from .windows import arranged, planes_of, reduced, sizes_of, whole, without_axes

# Enough digits for any root that float64 holds: roots by a smaller p overflow.
_DIGITS = Context(prec=40, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def lp_pool(
    x,
    kernel_shape,
    p=2,
    *,
    strides=1,
    pads=0,
    dilations=1,
    auto_pad="NOTSET",
    ceil_mode=False,
    ceil_rule="clip",
    partial="sum",
    nan="propagate",
    layout="NCHW",
):
    """Pool as `fastpool.lp_pool` does.

    For p of 1, 2 and infinity, a result is the exact norm, rounded once. For other p, it is rounded
    from 40 decimal digits, so it is within 1 ulp.
    """
    x = np.asarray(x)
    order = geometry.layout(layout, x.shape)
    attributes = geometry.Attributes(
        kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule
    )
    return _norms(x, order, windows.pooled(sizes_of(x, order), attributes), p, partial, nan)


def global_lp_pool(x, p=2, *, layout="NCHW", keepdims=True, nan="propagate"):
    """Return the `lp_pool` of one window over all elements."""
    x = np.asarray(x)
    order = geometry.layout(layout, x.shape)
    y = _norms(x, order, whole(sizes_of(x, order)), p, "sum", nan)
    return without_axes(y, order, keepdims)


def _norms(x, order, axes, p, partial, nan):
    dtype = arguments.dtype_name(x.dtype)
    if not is_float(dtype):
        raise TypeError(f"x: expected floats, got {dtype}")
    p = arguments.p(p)
    is_scaled = arguments.partial(partial) == "scale"
    planes = planes_of(x, order)
    numbers = Numbers(planes, dtype, arguments.nan(nan))
    magnitudes, specials = abs(numbers.integers), abs(numbers.special)

    def norm(window):
        scale = Fraction(window.full, window.declared) if is_scaled else Fraction(1)
        taps = window.of(magnitudes)
        y = window.of(specials).sum(axis=-1)
        ignored = window.of(numbers.ignored).all(axis=-1)
        for plane in np.ndindex(y.shape):
            if ignored[plane]:
                y[plane] = np.nan
            elif not y[plane]:
                y[plane] = rounded(_norm(taps[plane], p, scale), numbers.exponent, dtype)
        return y

    with np.errstate(all="ignore"):  # signalling NaN, overflow of the result type
        return arranged(reduced(planes, axes, planes.dtype, 0, norm), order)


def _norm(taps, p, scale):
    """Return the norm of integers that are not negative, with digits beyond those of float64."""
    greatest = taps.max()
    if p == math.inf or not greatest:
        return Fraction(greatest)
    if p == 1:
        return taps.sum() * scale
    if p == 2:
        return _square_root((taps * taps).sum() * scale)
    with localcontext(_DIGITS):
        power = Decimal(p)
        total = sum((Decimal(tap) / Decimal(greatest)) ** power for tap in taps)
        root = (total * scale.numerator / scale.denominator) ** (1 / power)
        return Fraction(min(root, Decimal(2**2200))) * greatest  # that much is infinite


def _square_root(value):
    """Return a fraction that rounds as the square root of `value` does, to up to 60 digits."""
    # Enough digits, rounded down; one more digit says that the root is not exact.
    shift = max(0, 64 - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    squared = value.numerator << 2 * shift
    root = math.isqrt(squared // value.denominator)
    is_exact = root * root * value.denominator == squared
    return Fraction(2 * root + (not is_exact), 2 << shift)
