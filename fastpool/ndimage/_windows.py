"""Turn SciPy's arguments of a filter into a plan of fastpool, and run it."""

import sys
from typing import NamedTuple

import numpy as np

from .. import _plans
from .._planning import arguments
from .._planning.values import MOST, as_count, as_int, is_sequence, quoted, shown
from .._running.interop import as_array
from .._running.plan_cache import PlanCache

# SciPy's mode -> border.
MODES = {name: name for name in arguments.BORDERS if name != "ignore"}
MODES |= {"grid-mirror": "reflect", "grid-wrap": "wrap", "grid-constant": "constant"}


class Window(NamedTuple):
    """What a filter takes along every axis of an array: taps, some of them before and after it."""

    sizes: tuple
    begins: tuple
    ends: tuple
    borders: tuple

    def turned(self):
        """Return the window of a dilation: that of an erosion, turned around."""
        return self._replace(begins=self.ends, ends=self.begins)

    def rows(self, first, stop, count):
        """Return the rows of an array of `count` that some of a result read, and their window."""
        begin, end = self.begins[0], self.ends[0]
        begins = max(0, begin - first), *self.begins[1:]
        ends = max(0, stop + end - count), *self.ends[1:]
        under = max(0, first - begin), min(count, stop + end)
        return under, self._replace(begins=begins, ends=ends)


def _planner(make):
    def planned(shape, dtype, layout, sizes, pads, borders, value, *more):
        attributes = dict(zip(("result_dtype", "rounding", "numerics"), more, strict=False))
        border = arguments.Borders(borders)
        windows = {"pads": pads, "layout": layout, "border": border, "border_value": value}
        try:
            return make(shape, dtype, sizes, **windows, **attributes)
        except ValueError as error:  # of arguments that have other names here
            text = str(error).replace("kernel_shape:", "size:", 1)
            raise ValueError(text.replace("dtype:", "output:", 1)) from None

    return planned


# Plans by kind of filter.
_PLANS = {
    "max": PlanCache(_planner(_plans.make_plan)),
    "min": PlanCache(_planner(_plans.make_min_plan)),
    "mean": PlanCache(_planner(_plans.make_avg_plan)),
}


def checked_input(x):
    """Return an array of any supported type and at least one axis."""
    x = as_array(x, "input")
    arguments.dtype_name(x.dtype, "input")
    if not x.ndim:
        raise ValueError("input: expected at least one axis, got a number")
    return x


def window_of(x, size, origin, mode, axes):
    """Return the `Window` for an array, given one value for all `axes` or one for each."""
    axes = _axes(axes, x.ndim)
    count = len(axes)
    sizes = [as_count(n, "size", most=MOST) for n in _each(size, "size", count)]
    origins = [as_int(o, "origin") for o in _each(origin, "origin", count)]
    modes = [_border(m) for m in _each(mode, "mode", count)]
    for n, o in zip(sizes, origins, strict=True):
        if not -(n // 2) <= o <= (n - 1) // 2:
            raise ValueError(
                f"origin: expected an int in [{-(n // 2)}, {(n - 1) // 2}] for {n} taps, got {o}"
            )
    whole = [(1, 0, 0, "nearest")] * x.ndim
    for axis, n, o, mode in zip(axes, sizes, origins, modes, strict=True):
        whole[axis] = n, n // 2 + o, n - 1 - n // 2 - o, mode
    return Window(*zip(*whole, strict=True))


def box(size, footprint, structure, axes, rank):
    """Return the size of a window, from the first of these that is given: the last ones.

    A footprint with holes, or a structure that is not flat, is a NotImplementedError.
    """
    count = len(_axes(axes, rank))
    given = [("footprint", footprint, True), ("structure", structure, False)]
    shapes = []
    for name, array, expected in given:
        if array is None:
            continue
        array = as_array(array, name)
        if array.ndim != count:
            raise ValueError(f"{name}: expected {count} axes, got an array of shape {array.shape}")
        if not array.size or (expected and not array.any()):
            raise ValueError(f"{name}: expected some elements, got an array of none or of zeros")
        if (array.astype(bool) != expected).any():
            what = "ones" if expected else "zeros"
            raise NotImplementedError(
                f"{name}: fastpool.ndimage takes boxes of {what} only; scipy.ndimage takes others"
            )
        shapes.append(array.shape)
    if len({*shapes}) > 1:
        raise ValueError(
            f"structure: expected the shape of footprint, {shapes[0]}, got {shapes[1]}"
        )
    if not shapes and size is None:
        raise ValueError("size: expected an int or a sequence of ints, or a footprint")
    return shapes[-1] if shapes else size


def _each(value, name, count):
    if not is_sequence(value):
        return (value,) * count
    if len(value) != count:
        raise ValueError(f"{name}: expected one value or {count}, one per axis, got {len(value)}")
    return tuple(value)


def _axes(axes, rank):
    """Return the positions of axes, counted from the first; None means all."""
    if axes is None:
        return tuple(range(rank))
    axes = tuple(axes) if is_sequence(axes) else (axes,)
    places = [as_int(axis, "axes") for axis in axes]
    for place in places:
        if not -rank <= place < rank:
            raise ValueError(f"axes: expected ints in [{-rank}, {rank - 1}], got {shown(axes)}")
    places = tuple(place % rank for place in places)
    if len({*places}) < len(places):
        raise ValueError(f"axes: expected each axis once, got {shown(axes)}")
    return places


def axis_of(axis, rank):
    """Return the position of one axis."""
    place = as_int(axis, "axis")
    if not -rank <= place < rank:
        raise ValueError(f"axis: expected an int in [{-rank}, {rank - 1}], got {place}")
    return place % rank


def _border(mode):
    if not isinstance(mode, str):
        raise TypeError(f"mode: expected a str, got {shown(mode)}")
    if mode not in MODES:
        raise ValueError(f"mode: expected one of {quoted(MODES)}, got {shown(mode)}")
    return MODES[mode]


def result_dtype(x, output):
    """Return the type that maxima and minima of `x` are wanted in, one that holds them."""
    dtype = np.dtype(x.dtype.type)  # (quick calls know this object)
    wanted = output.dtype if isinstance(output, np.ndarray) else output
    if wanted is None:
        return dtype
    arguments.dtype_name(wanted, "output")
    wanted = np.dtype(wanted)
    if not np.can_cast(dtype, wanted, "safe"):
        raise TypeError(f"output: expected a type that holds {dtype}, got {wanted}")
    return wanted


def target(x, output, dtype):
    """Return the array to write results into: `output`, or a new one of a type."""
    if not isinstance(output, np.ndarray):
        return np.empty(x.shape, dtype)
    if output.shape != x.shape:
        raise ValueError(f"output: expected shape {x.shape}, got {output.shape}")
    if not output.flags.writeable:
        raise ValueError("output: expected a writeable array, got a read-only one")
    return output


def step(kind, x, y, window, cval, *more):
    """Return a function that filters an array into another one, and its arguments.

    `more` are those of means. If the window is that of some rows, `y` has these.
    """
    value = None
    if "constant" in window.borders:
        value = arguments.border_value(cval, window.borders, arguments.dtype_name(x.dtype), "cval")
    if not x.size or (max(window.sizes) == 1 and not more):
        return _assign, y, x
    layout, shape, axes = _layout(window.sizes, x.shape)
    sizes, begins, ends, borders = (values[axes] for values in window)
    if "constant" not in borders:
        value = None
    attributes = layout, sizes, begins + ends, borders, value, *more
    of_layout = x.reshape(shape)
    plan = _PLANS[kind].find(of_layout, attributes)
    kept = y.dtype == plan.result_dtypes(x.dtype)[0] and y.dtype.isnative
    if kept and y.flags.c_contiguous and not np.may_share_memory(x, y):
        return plan, of_layout, y.reshape(plan.output_shape)
    return _assign, y, of_layout, plan


def _assign(y, x, plan=None):
    y[...] = x if plan is None else plan(x).reshape(y.shape)


def run(*arguments):
    """Filter an array into another one, as :func:`step` says, and return that."""
    function, *arrays = step(*arguments)
    function(*arrays)
    return arguments[2]


def _layout(sizes, shape):
    """Return a layout of fastpool, the shape of an array in it, and its spatial axes.

    An axis at an end whose windows have one tap is the batch or the channels.
    """
    rank = len(sizes)
    first = int(sizes[0] == 1 and rank > 1)
    last = int(sizes[-1] == 1 and rank - first > 1)
    axes, count = slice(first, rank - last), rank - last - first
    if count <= 3:
        # (An interned name is one object, which keys of calls are quick with.)
        return sys.intern("N" * first + "DHW"[-count:] + "C" * last), shape, axes
    ones = (1,) * (1 - first)
    if last:
        return "NHWC", (*ones, *shape), axes
    return "NCHW", (*shape[:first], *ones, 1, *shape[first:]), axes
