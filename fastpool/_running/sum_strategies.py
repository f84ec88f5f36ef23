"""Choose how the sums of an average are made, best first, with the reason why others declined.

A strategy is a file of kernels/sum/, whose head says what it does. Its function here returns None
if it takes the windows, or the reason why not. The last one takes all windows. Whatever the
strategy, planes whose sums are not exact are pooled again: kernels/sum/double_double.pxi, then
kernels/sum/digits.pxi.
"""

import math
from typing import NamedTuple

from .._planning.dtypes import ITEMSIZE
from .passes import Window
from .strategies import SWITCHED_OFF

# Columns of a window that are added one by one; of longer windows prefixes are subtracted.
FEW_TAPS = 8
# Small windows: rows from the first to the last one of a window, and elements of a row.
SMALL_EXTENT = 32
SMALL_ROW = 4096
# Their taps along a row, if additions are in order, and their strides: what the kernels have room
# for (MOST_SMALL_TAPS in small_windows.h).
MOST_IN_ORDER = 64
# Windows that are added pixel by pixel: how often they read an element on average, at most (3x3 at
# stride 2 take twice as long as by columns), and their channels, at least as many as there are
# doubles in the longest vectors.
MOST_SHARED = 2
FEWEST_CHANNELS = 8

# Most bytes along a row of planes that are interleaved: bytes of elements, if windows share none
# along it. Otherwise bytes of outputs that take few additions each, more, or many.
READ_ONCE = 128
FEW_COLUMNS = 4  # of a window
SHORT_ROW = 96
LONGER_ROW = 160
LONGEST_ROW = 256
# Bytes of a plane of doubles under one window.
SMALL_PLANE = 8192
# If elements are added in pairs: bytes of a row of outputs (rows of 20 columns 24 -> 14 us, of 40
# columns 48 -> 52: 64 planes, 3x3, AVX-512).
PAIR_ROW = 96

# 8-bit elements whose sum 16 bits hold (a constant of bytes.h).
MOST_BYTES = 255

# Bits of sums in 32 bits (int_columns), and of elements whose sums they hold, however large.
INT_BITS = 31
FITTING = {"int8": 8, "uint8": 8, "int16": 16, "uint16": 16}
# Others fit if they are small. Under more taps most floats are no multiples of a unit.
MOST_INT_TAPS = {"float16": 32, "bfloat16": 64, "int32": 2**16, "uint32": 2**16}
MOST_INT_TAPS |= {name: 2 ** (INT_BITS - bits) for name, bits in FITTING.items()}
# Rows of all slabs under a window that are converted, and slabs.
MOST_INT_ROWS = 64
MOST_SLABS = 9

NEVER_OFF = "pairwise", "in_order", "columns"

# What a strategy does, for `explain`.
DOES = {
    "whole_planes": "all elements of a plane added up",
    "byte_columns": "columns added up in 16 bits, then taps along rows",
    "int_columns": "columns added up in 32 bits, then taps or differences of prefixes along rows",
    "small_windows": "taps along rows, then down the rows, in registers",
    "pixels": "the pixels of each window added up, channels in registers",
    "pairwise": "columns added in pairs, then these along rows",
    "in_order": "one pass over a row of windows per tap",
    "columns": "columns added up, then taps or differences of prefixes along rows",
}


class SumWindows(NamedTuple):
    """What the choice depends on: the windows of the axes, and how elements lie in memory."""

    leads: tuple
    rows: Window
    cols: Window
    channels: int  # next to one another; 1 for channels first
    interleaved: bool  # are these channels planes that were interleaved?
    dtype: str
    result: str
    sequential: bool
    ignores_nan: bool


def choose(windows, off=()):
    """Return the strategy for some windows, and (name, reason) of each that declined.

    `off` are the names of strategies that are switched off.
    """
    declined = []
    for strategy in STRATEGIES:
        reason = SWITCHED_OFF if strategy.__name__ in off else strategy(windows)
        if reason is None:
            return strategy.__name__, tuple(declined)
        declined.append((strategy.__name__, reason))


def most_taps(window):
    """Return an upper bound of the elements under a window."""
    return min(window.kernel, max(1, window.size))


def interleaves(windows, nbytes, dtype, sequential):
    """Are planes, channels first, better interleaved, and pooled as channels that are last?

    That takes as long as two to four additions per element, for each window of leading axes.
    Rows of single elements take longer than that if they are short, or are split by a stride: of
    1,000 random layers two thirds are 1.2 to 10 times as fast if they are interleaved.

    `nbytes` are those of an element, planes that a group lacks included. Sums of doubles are
    seldom exact, and those of two doubles take long where there is one output at a time.
    """
    *leads, rows, cols = windows
    is_double = dtype == "float64" and not sequential
    nbytes *= math.prod(max(1, most_taps(lead) // lead.stride) for lead in leads)
    if takes_all(rows) and takes_all(cols) and not sequential:
        return is_double and rows.size * cols.size * nbytes <= SMALL_PLANE
    if cols.stride >= cols.kernel and not is_double:
        return cols.size * nbytes <= (READ_ONCE if cols.kernel <= FEW_COLUMNS else READ_ONCE // 4)
    longest = LONGER_ROW
    if cols.stride == 1:
        longest = SHORT_ROW if rows.kernel <= 3 else LONGEST_ROW
    elif is_double or sequential:
        longest = LONGEST_ROW * (2 if is_double else 1)
    return cols.out * nbytes <= longest


def interleaves_pairs(windows, nbytes):
    """Are planes, channels first, better interleaved if elements are added in pairs?

    Then a vector holds a column of planes, whatever the stride. Rows of bands want long rows.
    """
    *_, rows, cols = windows
    if rows.out == cols.out == 1:
        return False  # (sums of columns are, which are fewer)
    return cols.out * nbytes <= (PAIR_ROW if cols.stride <= 2 else LONGEST_ROW)


def takes_all(window):
    """Does the only output of an axis take all elements?"""
    return window.out == 1 and window.dilation == 1 and window.kernel >= window.size


def whole_planes(w):
    """Take one window over all rows and columns."""
    if not (takes_all(w.rows) and takes_all(w.cols)):
        return "planes have several windows, or a part of each"
    if w.channels > 1:
        return "planes are interleaved" if w.interleaved else "channels are last"
    if w.sequential:
        return "additions are in order"


def byte_columns(w):
    """Take few 8-bit elements under a window, and results of their type."""
    if w.dtype not in ("int8", "uint8"):
        return "elements have more than 8 bits"
    if w.result != w.dtype:
        return f"results are {w.result}"
    if w.rows.places or w.cols.places:
        return "the windows of an axis differ in length"
    taps = math.prod(map(most_taps, (*w.leads, w.rows, w.cols)))
    if taps > MOST_BYTES:
        return f"{taps} taps, whose sum 16 bits do not hold"
    if w.cols.extent > max(MOST_BYTES, 2 * w.cols.size):
        return "most taps along rows are padding"


def int_columns(w):
    """Take sums that 32 bits hold."""
    if w.dtype not in MOST_INT_TAPS:
        return f"32 bits do not hold sums of {w.dtype}"
    if w.sequential:
        return "additions are in order"
    taps = math.prod(map(most_taps, (*w.leads, w.rows, w.cols)))
    if taps > MOST_INT_TAPS[w.dtype]:
        return f"{taps} taps, more than {MOST_INT_TAPS[w.dtype]}, whose sum 32 bits may not hold"
    slabs = math.prod(map(most_taps, w.leads))
    if w.dtype not in FITTING and w.channels == 1 and w.rows.stride >= w.rows.kernel > 1:
        return "single elements are converted for one window only"  # (0.63 times as fast, AVX2)
    if slabs > MOST_SLABS:
        return f"{slabs} slabs under a window, each of which takes a pass"
    if w.dtype not in FITTING and ITEMSIZE[w.dtype] == 4:
        if pixels(w) is None or w.rows.kernel > FEW_TAPS:
            return "looking for the greatest element takes longer than sums of doubles do"
    if w.dtype not in FITTING and slabs * min(w.rows.extent, w.rows.size) > MOST_INT_ROWS:
        return "the rows under a window take too much scratch"
    if not carries_columns(w.cols) and w.cols.extent > max(MOST_BYTES, 2 * w.cols.size):
        return "most taps along rows are padding"


def carries_columns(cols):
    """Are windows along a row differences of prefixes?"""
    return bool(cols.places) or cols.kernel > FEW_TAPS or cols.extent > max(64, 2 * cols.size)


def small_windows(w):
    """Take few taps along rows, and few rows: in order, or floats that windows share down rows."""
    rows, cols = w.rows, w.cols
    if rows.places or cols.places:
        return "the windows of an axis differ in length"
    most = MOST_IN_ORDER if w.sequential else FEW_TAPS
    if cols.kernel > most:
        return f"{cols.kernel} taps along rows, more than {most}"
    if rows.extent > SMALL_EXTENT:
        return f"{rows.extent} rows under a window, more than {SMALL_EXTENT}"
    if cols.extent * (1 if w.channels == 1 else SMALL_EXTENT) > SMALL_ROW:
        return f"windows of {cols.extent} columns, which take too much scratch"
    if cols.stride > MOST_IN_ORDER:
        return f"a stride of {cols.stride} along rows, more than {MOST_IN_ORDER}"
    if not w.sequential:
        if w.dtype not in ("float32", "float64"):
            return f"elements are {w.dtype}"
        if w.channels > 1 or cols.stride > 1 or not rows.stride < rows.kernel <= 3:
            return "columns are better added up first, unless single elements share 2 or 3 rows"
        return None
    if w.ignores_nan:
        return "NaN are left out"
    if math.prod(map(most_taps, w.leads)) > MOST_IN_ORDER:
        return f"more than {MOST_IN_ORDER} taps along the leading axes"


def reads(axis):
    """Return about how many elements the windows of an axis read."""
    return min(most_taps(axis) * axis.out, axis.size * -(-axis.kernel // axis.stride))


def pixels(w):
    """Take channels last, where few windows share a pixel."""
    if w.channels < FEWEST_CHANNELS:
        return f"fewer than {FEWEST_CHANNELS} channels next to one another"
    if w.interleaved:
        return "planes are interleaved"
    if w.sequential:
        return "additions are in order"
    if w.dtype in ("int64", "uint64"):
        return "sums need more than 64 bits"
    if reads(w.rows) * reads(w.cols) > MOST_SHARED * w.rows.size * w.cols.size:
        return f"windows have more than {MOST_SHARED} times the elements of the input"


def in_order(w):
    """Take all that remains with a rounding after each addition."""
    if not w.sequential:
        return "sums are exact, so columns may be added first"


def columns(w):
    """Take all that remains."""


STRATEGIES = whole_planes, byte_columns, int_columns, small_windows, pixels, in_order, columns
