"""Lp pooling: powers of magnitudes by NumPy, and their sums by the kernels of averages.

Magnitudes are the elements without their signs. p of infinity takes their maxima, and p of 1 their
exact sums. For p of 2 the squares are summed as float64. The root of that is rounded to the result
type, which is right unless it is next to a middle between two results: then integers decide. For
other p, powers are summed in the same way, those of float64 exactly. In windows with sums that
float64 does not hold, they are powers of magnitudes that a power of two brings near 1: the same one
for windows whose greatest magnitudes are alike. For great p they are relative to the greatest
magnitude of each window, and so are they for some small p in all windows. That takes time for each
tap.

Everything is done in parts of the result, so that the scratch is a few MB, or about 30 bytes for
each element of a window that is larger.
"""

import math
from fractions import Fraction

import numpy as np

from .._planning import average_pool, parts
from .._planning.average_pool import AvgPool
from .._planning.lp_pool import LpPool
from .._planning.max_pool import MaxPool
from .._planning.plan_checks import checked, resolved
from . import builds
from .double_double import multiply
from .execute import average_with_care, input_of, pool_with_care
from .interop import bump_versions
from .lp_roots import (
    FORMATS,
    LEAST_SUM,
    MOST_SUM,
    Rounding,
    are_products,
    as_float64,
    narrow_norms,
    nearest,
    norms,
    powers,
    product,
    root,
    roots,
    row_sums,
)
from .outputs import check_output, outputs, readable
from .plan_cache import MOST_PART_PLANS
from .prepare import Prepared, PreparedAverage, PreparedPool
from .work import work_bytes

# Limit for the elements of a part and its results, and of what a window takes alone: parts share
# the elements of longer windows.
PART_BYTES, WINDOWS = 1 << 19, 4
# Parts that are smaller than that if windows are far apart: each takes 0.2 ms.
MOST_SMALL_PARTS = 64
# A plan that has more parts, or more of different plans, makes them again for each call.
_MOST_KEPT = 64
# From this p on, roots of sums in float64 have more digits than any narrower type; and from this
# one, the errors of sums are at most doubled by roots.
_LEAST_NARROW_P = 2.0**-10
_LEAST_P = 0.5
# From this p on, powers relative to the greatest magnitude need no more digits than float64 has:
# their errors, p times those of the quotients, are divided by p again.
_LEAST_RELATIVE_P = 1
# Up to this p there are about 64 bands, at most, of magnitudes that take a sum each.
_MOST_BANDED_P = 12
# Taps of windows that are gathered at a time, if one window has no more.
GATHERED = 1 << 15

# name of a method of `Norms` -> what it does, in words
DOES = {
    "maxima": "the maxima of magnitudes",
    "sums": "exact sums of magnitudes",
    "roots": "sums of powers of magnitudes in float64; then integers decide ties",
    "powers": "sums of powers in float64; windows with extreme sums by bands of magnitudes, or "
    "one by one",
    "by_windows": "window by window, relative to its greatest magnitude",
}


def way(plan):
    """Return how a plan computes its norms: a key of `DOES`."""
    narrow = plan.dtype != "float64"
    if plan.p == math.inf:
        return "maxima"
    if plan.p == 1 and not (narrow and plan.is_scaled):
        return "sums"
    if narrow and plan.p in (1, 2):
        return "roots"
    return "powers" if plan.p >= (_LEAST_NARROW_P if narrow else _LEAST_P) else "by_windows"


def is_exact(plan):
    """Does a plan give the true norms, rounded once?"""
    how = way(plan)
    return how in ("maxima", "roots") or (how == "sums" and not plan.is_scaled)


def lp_pool(plan, x, out):
    """Run an `LpPoolPlan`. Every array is checked before anything is written."""
    x = input_of(plan, x)
    prepared = plan._prepared_for(x.dtype)
    plan = prepared.plan
    (into,) = outputs(out=out)
    (dtype,) = plan.result_dtypes(x.dtype)
    if into is not None:
        check_output("out", into, plan.output_shape, dtype, {"x": x})
    y = np.empty(plan.output_shape, dtype)
    if y.size:
        prepared.run(x, y)
    if into is None:
        return y
    into[...] = y
    bump_versions(out)
    return out


def _part_bytes(plan):
    """Return the bytes of a part. Few windows on elements, far apart, would take a part each."""
    nbytes = max(PART_BYTES, WINDOWS * parts.window_bytes(plan))
    most = MOST_SMALL_PARTS + 4 * work_bytes(plan) // PART_BYTES
    while _count(plan, nbytes) > most:
        nbytes *= 2
    return nbytes


def _count(plan, nbytes):
    extents = zip(plan.output_shape, parts.box_extents(plan, nbytes), strict=True)
    return math.prod(-(-extent // count) for extent, count in extents)


class PreparedNorm(Prepared):
    """What an Lp pooling plan needs to run on one build."""

    def __init__(self, plan, dtype=None):
        """`dtype` is that of an array, for element types whose dtype a package defines."""
        self.plan, self.state = checked(LpPool, plan)
        self.build = builds.active_name()
        self._dtype = dtype
        self._parts = None

    def run(self, x, y):
        """Write the norms of `x` into `y`, part by part."""
        parted = self._parts or self._parted()
        if len(parted) <= _MOST_KEPT and len({part for part, *_ in parted}) <= MOST_PART_PLANS:
            self._parts = parted
        with builds.usual_floats():
            for norms_of_part, read, write in parted:
                y[write] = norms_of_part(x[read])

    def kernel(self):
        """Return what adds up the windows of a part, or takes their maxima."""
        extents = parts.box_extents(self.plan, _part_bytes(self.plan))
        part, *_ = parts.tile(self.plan, tuple(map(slice, extents)))
        return Norms(part, self._dtype).kernel

    def _parted(self):
        """Return a function for each part of the result, and the slices it reads and writes."""
        made, parted = {}, []
        for box in parts.grid(self.plan, _part_bytes(self.plan)):
            part, read, write = parts.tile(self.plan, box)
            if part not in made:
                made[part] = Norms(part, self._dtype).of
            parted.append((made[part], read, write))
        return parted


class Norms:
    """The norms of the windows of one plan, for arrays that fit into the scratch.

    `kernel` adds up most of the windows, or takes their maxima.
    """

    def __init__(self, plan, dtype):
        self.plan = plan
        self._format = FORMATS[plan.dtype]
        self._is_narrow = plan.dtype != "float64"
        self._is_scaled = plan.is_scaled
        how = way(plan)
        self._of = getattr(self, f"_{how}")
        if how == "sums":
            self._summing = _summing(plan, plan.dtype, dtype, "exact")
        elif how in ("roots", "powers"):
            numerics = "pairwise" if self._is_narrow else "exact"
            self._summing = _summing(plan, "float64", None, numerics)
        if how in ("maxima", "powers", "by_windows"):
            self._maximising = _maximising(plan)
        self.kernel = self._maximising if how in ("maxima", "by_windows") else self._summing

    def of(self, x):
        """Return the norms of an array, in its type."""
        x = readable(x)
        words = x.view(self._format.word) & self._format.word.type(self._format.sign - 1)
        with np.errstate(all="ignore"):  # infinities and NaN are data here
            return self._of(words.view(x.dtype))

    def _maxima(self, x):
        """Return the greatest of magnitudes: 0 if a window has no element."""
        return np.maximum(pool_with_care(self._maximising, x, None, None), x.dtype.type(0))

    def _sums(self, x):
        y = average_with_care(self._summing, x, None)
        if self._is_scaled:  # these are float64
            scaled = (self._scales()[0] != 1) & np.isfinite(y)
            y[scaled] = self._times_scales(y, scaled)
        return y

    def _times_scales(self, y, some):
        """Return some sums, times the scales of their windows."""
        # (As significands: products of the halves of their digits would overflow, or underflow.)
        significand, power = np.frexp(y[some])
        high, low = multiply((significand, 0.0), [part[some] for part in self._scales()])
        return np.ldexp(high + low, power)

    def _roots(self, x):
        """Return norms by p of 1 or 2, rounded once to a narrow type."""
        values, power = as_float64(x, self.plan.dtype), int(self.plan.p)
        y = average_with_care(self._summing, product(values, power), None)
        if self._is_scaled:
            y *= self._scales()[0]
        if power == 2:
            np.sqrt(y, out=y)
        return self._rounded(y, x, lambda *rest: self._decide(*rest, values, power))

    def _decide(self, rounding, places, values, power):
        """Set `is_up` where it may be wrong: compare powers of the middle and of the norm.

        `places` of the flat result are those that are rounded.
        """
        near = np.flatnonzero(rounding.is_near)
        lower, exponents = rounding.lower[near], rounding.exponents[near]
        middle = np.ldexp(2.0 * lower + 1, exponents - 1)
        first = 0
        for some, taps in self._chunks(places[near], values):
            of_some = slice(first, first + len(some))
            terms = np.concatenate((taps**power, -(middle[of_some, np.newaxis] ** power)), axis=1)
            rest = row_sums(terms)  # powers by 1 and 2 are exact here
            is_odd = lower[of_some] % 2 == 1
            rounding.is_up[near[of_some]] = (rest > 0) | ((rest == 0) & is_odd)
            first += len(some)
        if self._is_scaled:
            for at in near[self._scales()[0].flat[places[near]] != 1]:
                low, exponent = int(rounding.lower[at]), int(rounding.exponents[at])
                middle = (Fraction(2 * low + 1) * Fraction(2) ** (exponent - 1)) ** power
                total = self._exact_sum(values, places[at], power)
                rounding.is_up[at] = total > middle or (total == middle and low % 2)

    def _powers(self, x):
        """Return norms by other p, from sums of powers in one or two float64."""
        plan = self.plan
        values = as_float64(x, plan.dtype)
        y, safe = self._by_sums(values)
        if not safe.all():
            greatest = as_float64(self._maxima(x), plan.dtype)
            unsafe = np.flatnonzero(~safe & (greatest != 0))
            if plan.p <= _MOST_BANDED_P:
                unsafe = self._by_bands_at(unsafe, values, y, greatest)
            self._by_windows_at(unsafe, values, y, greatest)
        return self._rounded(y, x)

    def _by_sums(self, values):
        """Return norms by sums of powers, and which of them are right: float64 holds the sums."""
        plan, products = self.plan, are_products(self.plan.p)
        if products:
            high = product(values, int(plan.p))
        else:
            high, low = (values**plan.p, None) if self._is_narrow else powers(values, plan.p)
        y = average_with_care(self._summing, high, None)
        # In other sums, powers that are not exact would be seen.
        # (Nor are roots below 2**-1000 those of their sums.)
        safe = (y >= max(LEAST_SUM, 2.0 ** (-1000 * plan.p))) & (y <= MOST_SUM)
        some = ... if safe.all() else safe
        scale = [part[some] for part in self._scales()] if self._is_scaled else (1.0, 0.0)
        if self._is_narrow:
            y[some] = (y[some] * scale[0]) ** (1 / plan.p)
        elif products:
            y[some] = root(y[some] * scale[0], int(plan.p))
        else:
            low = average_with_care(self._summing, low, None)
            y[some] = roots(multiply((y[some], low[some]), scale), plan.p)
        return y, safe

    def _by_bands_at(self, places, values, y, greatest):
        """Write norms as `_by_windows_at` does, and return the places where that must be done.

        A window belongs to the band of its greatest magnitude, so its norm does not depend on
        other windows.
        """
        greatest, flat = greatest.reshape(-1)[places], y.reshape(-1)
        band = np.where(np.isfinite(greatest), np.frexp(greatest)[1] // _band(self.plan.p), 0)
        left = [places[~np.isfinite(greatest)]]
        for number in np.unique(band):
            shift = int(number) * _band(self.plan.p)
            some = places[(band == number) & np.isfinite(greatest)]
            of_band, safe = self._by_sums(np.ldexp(values, -shift))
            safe = safe.reshape(-1)[some]
            flat[some[safe]] = np.ldexp(of_band.reshape(-1)[some[safe]], shift)
            left.append(some[~safe])
        return np.concatenate(left)

    def _by_windows(self, x):
        """Return norms by any p, relative to the greatest magnitude of each window."""
        values, y = (as_float64(array, self.plan.dtype) for array in (x, self._maxima(x)))
        self._by_windows_at(np.flatnonzero(y), values, y, y)
        return self._rounded(y, x)

    def _rounded(self, y, x, decide=None):
        """Return float64 in the type of `x`. `decide` corrects a `Rounding` of some places."""
        if not self._is_narrow:
            return y
        result, is_sure = nearest(y, self._format)
        if (places := np.flatnonzero(~is_sure)).size:
            rounding = Rounding(y.reshape(-1)[places], self._format)
            if decide:
                decide(rounding, places)
            result.reshape(-1)[places] = rounding.patterns()
        return result.view(x.dtype)

    def _by_windows_at(self, places, values, y, greatest):
        """Write the norms at some places of the flat result `y`, given the greatest magnitudes."""
        plan, flat, greatest = self.plan, y.reshape(-1), greatest.reshape(-1)
        finite = np.isfinite(greatest[places])
        flat[places[~finite]] = greatest[places[~finite]]
        places = places[finite]
        norms_of = narrow_norms if self._is_narrow or plan.p >= _LEAST_RELATIVE_P else norms
        scale = 1.0, 0.0
        scales = [part.reshape(-1) for part in self._scales()] if self._is_scaled else None
        for some, taps in self._chunks(places, values):
            if scales:
                scale = [part[some] for part in scales]
            flat[some] = norms_of(taps, greatest[some], plan.p, scale)

    def _chunks(self, places, values):
        """Yield some of the places at a time, with the taps of their windows."""
        most = math.prod(
            min(axis.kernel, -(-axis.size // axis.dilation)) for axis in self.plan.axes
        )
        step = max(1, GATHERED // max(1, most))
        for first in range(0, len(places), step):
            some = places[first : first + step]
            yield some, self._gathered(values, some)

    def _scales(self):
        """Return what the sum of each window is multiplied by, as the sum of two arrays."""
        scales = np.ones(self.plan.output_shape), np.zeros(self.plan.output_shape)
        pairs = zip(self.plan.spatial, self.plan.axes, self.plan.counted_last, strict=True)
        for place, axis, last in pairs:
            exact = Fraction(axis.kernel, last)
            of_last = float(exact), float(exact - Fraction(float(exact)))
            factors = []
            for usual, value in zip((1.0, 0.0), of_last, strict=True):
                along = np.full(axis.output, usual)
                along[-1] = value
                factors.append(
                    along.reshape([-1 if i == place else 1 for i in range(scales[0].ndim)])
                )
            scales = multiply(scales, factors)
        return scales

    def _exact_sum(self, values, place, power):
        """Return the scaled sum of the powers of the window at a place, as a Fraction."""
        plan, taps = self.plan, self._gathered(values, np.array([place]))[0]
        total = sum((Fraction(tap) ** power for tap in taps), Fraction(0))
        outputs_of = np.unravel_index(place, plan.output_shape)
        for at, axis, last in zip(plan.spatial, plan.axes, plan.counted_last, strict=True):
            if outputs_of[at] == axis.output - 1:
                total *= Fraction(axis.kernel, last)
        return total

    def _gathered(self, values, places):
        """Return the taps of some windows, a row of float64 per window.

        Taps without an element and NaN are 0. `places` count in the flat result.
        """
        plan = self.plan
        flat = values.reshape(-1)
        index, real = np.zeros((len(places), 1), np.int64), np.ones((len(places), 1), bool)
        axes = dict(zip(plan.spatial, plan.axes, strict=True))
        strides = np.array(values.strides) // values.itemsize
        for place, output in enumerate(np.unravel_index(places, plan.output_shape)):
            at, taken = output[:, np.newaxis], np.ones((1, 1), bool)
            if place in axes:
                at, taken = _taps(axes[place], at)
            index = index[:, :, np.newaxis] + at[:, np.newaxis] * strides[place]
            real = real[:, :, np.newaxis] & taken[:, np.newaxis]
            index, real = (array.reshape(len(places), -1) for array in (index, real))
        taps = flat[np.where(real, index, 0)]
        return np.where(real & (taps == taps), taps, 0.0)


def _taps(axis, outputs):
    """Return the places of the elements of windows along an axis, and which of them exist.

    `outputs` is a column. The results have a row for each of them.
    """
    start = outputs * axis.stride - axis.begin
    first = np.maximum(-(start // axis.dilation), 0)
    stop = np.minimum(-((start - axis.size) // axis.dilation), axis.kernel)
    count = np.maximum(stop - first, 0)
    start = (start + first * axis.dilation) * (count > 0)
    taps = np.arange(count.max())
    return start + taps * min(axis.dilation, max(1, axis.size)), taps < count


def _summing(plan, dtype, array_dtype, numerics):
    """Return what adds up the elements of each window, which are of type `dtype`."""
    fields = {
        **_shared(plan),
        "dtype": dtype,
        "result_dtype": dtype,
        "count_include_pad": False,
        "beyond": "drop",
        "counted": average_pool.counted_places(plan.axes, plan.given, False, "drop"),
        "divisor": 1,
        "rounding": "half_even",
        "numerics": numerics,
    }
    return PreparedAverage(resolved(AvgPool, fields), array_dtype)


def _maximising(plan):
    """Return what takes the maximum of each window."""
    fields = {
        **_shared(plan),
        "dtype": plan.dtype,
        "return_indices": False,
        "storage_order": 0,
        "index_axis": 0,
        "index_dtype": "int64",
        "index_layout": "NCHW",
        "index_shape": plan.input_shape,
        "index_origin": (0,) * len(plan.input_shape),
    }
    return PreparedPool(resolved(MaxPool, fields))


def _shared(plan):
    """Return the fields of a plan that plans of all reductions have."""
    names = "input_shape", "layout", "axes", "batch", "channels", "channels_last", "output_shape"
    fields = {name: getattr(plan, name) for name in (*names, "nan", "num_threads", "given")}
    return {**fields, "activation": None, "activation_params": ()}


def _band(p):
    """Return how many powers of two a band has: their powers by p differ by less than 2**400."""
    return int(400 / p)
