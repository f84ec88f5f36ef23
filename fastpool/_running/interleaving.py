"""Decide whether planes of averages, channels first, are interleaved, and pooled as pixels are.

The limits were measured on random layers.
"""

import math

from .._planning.dtypes import ITEMSIZE, is_float
from .pass_sizes import SMALL_INTEGERS, leaves_out_nan
from .tiles import GROUP_COLUMNS, INTERLEAVED

# Planes are interleaved if a row of outputs has at most this many bytes, at strides of 1 and 2, and
# at other strides (64 planes, 3x3, AVX-512: 20 columns 24 -> 14 us, 40 columns 48 -> 52).
SHORT_ROW = 96
LONGER_ROW = 256
# The limit of signals at strides above 2 whose windows overlap and are longer than the row: 0.66 of
# the time (2,100 random signals, AVX-512; AVX2 0.70). Others have the limits above.
SHARED_ROW = 2 << 10
# Most taps of these, and of rows of 512 bytes, if numerics is "exact" or "sequential": 64x1957
# float16 k1305 s6, padded, 1.1 -> 5 ms.
LONG_SIGNAL = 64
# The limit of windows of at most FEW_TAPS, of two columns or at a stride of 2, over FEW_ROWS rows
# and more: uint8 64x56x56 2x2 33 -> 22 us; one row of int16 256x4x57 3x3 7 -> 18. (Bytes are two.)
SHORT_ROW_OF_FEW, FEW_TAPS, FEW_ROWS = 48, 9, 6
# The limit of squares whose sums slide along rows (kernels/sum/squares.pxi), by stride: 64x14x14
# float32 3x3 7.6 -> 5.1 us. 7x7 of float64 shifts vectors by more than AVX2 has bytes. That of
# padded 2x2 and 3x3 at a stride of 1 is SHORT_ROW_OF_CUT: 216x10x10 17 -> 10 us.
SHORT_ROW_OF_SQUARES, SHORT_ROW_OF_CUT = 32, 48
SLIDING = {1: (2, 3, 5, 7), 2: (2, 3)}
MOST_SHIFT = 32
# Bytes of a group of more than 16 planes, and how many times 16 they are, at most.
GROUP_BYTES, MOST_GROUP = 20 << 10, 16
# Bytes of a row of outputs that is folded as it is (kernels/sum/folds.pxi), at least, by columns of
# a window: 64x32x32 uint8 2x2 13 -> 5 us, but 24x24 8 -> 10; and the most taps of a window.
FOLDED_ROWS, MOST_FOLDED = {2: 16, 4: 64, 8: 64}, 128
SMALL_PLANE = 2 << 10  # bytes of a plane of one window (8x13x6x13 int8 2.8 -> 5.5 us)
# Of planes whose one window takes rows and columns whole: columns, and bytes of a plane and of a
# volume by bytes of an element, at most. 0.68 of the time (2,000 random planes; AVX2 0.77), of
# float16 7x7 0.59. (One row is a signal.)
TINY_ROW = 12
TINY_PLANE = {1: (31, 16), 2: (224, 144), 4: (96, 144), 8: (96, 144)}
# Rows for each output (`_adds_few_rows`), at most, and columns of floats that fill vectors: 0.6 of
# the time (3,600 random adaptive layers). Taps along a row that count as one more row, by bytes.
MOST_ROWS, MOST_ROWS_OF_DOUBLES, MOST_ROWS_IN_ORDER, LONG_ROW = 40, 28, 4096, 32
ROW_TAPS = {1: 200, 2: 110, 4: 55, 8: 55}
# The most taps of a window along a row, times (16 / planes)**2.5, of fewer than 8 planes, by
# whether they are floats in pairs (416 random adaptive layers; 8 to 15 planes would gain nothing).
LONG_ROWS_OF_FEW = {True: 1700, False: 350}


def most_taps(window):
    """Return an upper bound of the elements under a window."""
    return min(window.kernel, max(1, window.size))


def interleaves(windows, nbytes, plan):
    """Are planes, channels first, better interleaved, and pooled as channels that are last?

    Then a vector holds a column of planes, whatever the stride. Bands are faster for long rows.
    `nbytes` are those of an element, planes that a group lacks included.
    """
    *leads, rows, cols = windows
    in_order = plan.numerics == "sequential" and is_float(plan.dtype)
    cut = [not w.places and w.inner != (0, w.out) for w in windows]
    size = ITEMSIZE[plan.dtype]
    lack = nbytes / size  # above 1 if the last group lacks planes
    if rows.out == cols.out == 1 and not in_order:
        # Columns of planes that are not tiny are added first, as planes of sums, but not if NaN are
        # left out, padding cuts the rows or slabs are not whole: then small planes take 0.35 of the
        # time (3,577 random layers), of up to 2 KiB with what a group lacks, of 8 KiB if NaN are
        # left out, of 16 KiB if parts of slabs' columns are, or padding cuts short ones.
        ignores, slabs = leaves_out_nan(plan), any(lead.kernel > 1 for lead in leads)
        whole = rows.takes_all and cols.takes_all
        plane = math.prod(w.size for w in windows) * nbytes
        if whole and 1 < rows.size and cols.size <= TINY_ROW and plane <= TINY_PLANE[size][slabs]:
            return True
        short = cols.kernel < cols.size or (cols.size * size < 64 and cut[-1])
        if plane > SMALL_PLANE << (2 if ignores else 3 * (slabs and short)):
            return False
        return ignores or any(cut[:-1]) or (slabs and not whole)
    if cols.places or not (in_order or any(cut)):
        few = _adds_few_rows(windows, lack, plan)
        if cols.places or not few:
            return few
    # (Squares have no leading axes: 32x224x7x6x7 float64 2x2x2 11.4 -> 3.2 ms.)
    flat = all(lead.kernel == 1 for lead in leads)
    square = flat and rows.kernel == cols.kernel in SLIDING.get(cols.stride, ())
    square &= plan.numerics == "pairwise" and plan.dtype in ("float32", "float64")
    square &= (cols.kernel - 1) // cols.stride * size <= MOST_SHIFT
    square &= plan.nan != "ignore" and cols.dilation == 1 and not rows.places
    few = math.prod(map(most_taps, windows)) <= FEW_TAPS and not in_order and rows.out >= FEW_ROWS
    few &= plan.numerics == "pairwise" or plan.dtype != "float64"
    cut_sides = cut[-1] and cols.stride == 1
    if square:
        most = SHORT_ROW_OF_CUT if cut_sides and cols.kernel <= 3 else SHORT_ROW_OF_SQUARES
    elif rows.is_trivial and not (cut_sides and size == 1):
        most = _row_of_signals(cols, lack, plan)
    elif cols.stride > 2:
        most = LONGER_ROW
    elif few and (cols.stride == 2 or (cols.kernel == 2 and nbytes >= 2)):
        most, nbytes = SHORT_ROW_OF_FEW if flat else SHORT_ROW, max(2, nbytes)
    else:
        most = SHORT_ROW
    # (Rows of larger groups may be longer: 0.64 of the time of 520 random layers.)
    short = cols.out * nbytes <= most or group_of(plan, windows) > INTERLEAVED
    return short and not _folds(windows, plan)


def group_of(plan, windows):
    """Return how many planes are interleaved at a time: more than 16, if they are small.

    Groups of up to 64 take 0.57 of the time of 16 (380 random layers, AVX-512; AVX2 0.63), and
    those of up to 256 0.7 of that.
    """
    planes, elements = plan.batch * plan.channels, math.prod(w.size for w in windows)
    larger = max(1, elements, math.prod(w.out for w in windows))
    # (Long windows of few elements would take much scratch: uint8 241x66 k7 d144, padded, 13 MB.)
    alone = windows[-1].places or any([max(w.kernel, w.extent // 2) > w.size for w in windows])
    most = 1 if alone else GROUP_BYTES // (ITEMSIZE[plan.dtype] * larger)
    some = range(1, max(1, min(MOST_GROUP, most // INTERLEAVED)) + 1)
    # (16 bytes are converted in the time of 48: 257x17x17 uint8 2x2 s2 12 us by 16, by 64 7.)
    more = 2 * (ITEMSIZE[plan.dtype] == 1)
    times = {
        n: -(-planes // (n * INTERLEAVED)) * (GROUP_COLUMNS + (n + more) * elements) for n in some
    }
    return INTERLEAVED * min(times, key=times.get)


def _adds_few_rows(windows, lack, plan):
    """Are few rows added for each output, and so planes interleaved if windows differ in length?

    Few taps along a row are added one by one, but those of a group at once: 64x100x100 to 60x60
    float32 18 -> 0.8 ms. Single planes add many rows faster (3x382x343 to 6x6 float16 383 -> 48
    us), and many taps (8x12785 to 2 float32 71 -> 28).
    """
    *others, cols = windows
    tall = math.prod(w.size / w.out for w in others) * cols.size / (cols.size + 4 * cols.out)
    doubles = plan.numerics == "exact" or plan.dtype == "float64"
    tall *= min(1, cols.size / (LONG_ROW >> doubles)) ** 3
    if plan.numerics == "sequential" and is_float(plan.dtype):
        return tall * lack**3 <= MOST_ROWS_IN_ORDER
    taps = cols.size / cols.out if cols.places else 0
    tall *= 1 + taps / ROW_TAPS[ITEMSIZE[plan.dtype]]
    most = LONG_ROWS_OF_FEW[plan.numerics == "pairwise" and is_float(plan.dtype)]
    if plan.batch * plan.channels < INTERLEAVED // 2 and taps * lack**2.5 > most:
        return False
    return tall * lack <= (MOST_ROWS_OF_DOUBLES if doubles else MOST_ROWS)


def _row_of_signals(cols, lack, plan):
    """Return the most bytes of a row of outputs of signals that are interleaved."""
    long = plan.numerics != "pairwise" and most_taps(cols) > LONG_SIGNAL
    if 2 < cols.stride < cols.kernel and not long:
        return SHARED_ROW / lack
    if cols.stride >= cols.kernel > 4:  # (taps: dilated windows are added as others)
        return SHORT_ROW if cols.kernel > 16 and plan.numerics != "sequential" else LONGER_ROW
    return LONGER_ROW if long or ITEMSIZE[plan.dtype] == 1 else 2 * LONGER_ROW


def _folds(windows, plan):
    """Are rows of windows folded as they are (kernels/sum/folds.pxi)?"""
    if plan.dtype not in SMALL_INTEGERS or plan.result_dtype != plan.dtype:
        return False
    *_, rows, cols = windows
    if cols.out * ITEMSIZE[plan.dtype] < FOLDED_ROWS.get(cols.kernel, math.inf):
        return False
    if rows.places or cols.kernel != cols.stride or cols.dilation > 1:
        return False
    taps = math.prod(w.kernel for w in windows)
    if plan.divisor not in (None, taps) or taps > MOST_FOLDED or taps & taps - 1:
        return False
    if plan.dtype.startswith("int") and plan.rounding not in ("half_even", "floor"):
        return False
    # (Columns that are cut take longer than those of interleaved planes: 64x33x33 14 -> 24 us.)
    return rows.inner == (0, rows.out) and cols.inner == (0, cols.out)
