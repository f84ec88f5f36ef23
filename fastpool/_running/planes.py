"""Decide whether planes are taken whole: those of one window each, and those that are interleaved.

Both decide the tiles.
"""

import math

from .._planning.dtypes import ITEMSIZE
from .composites import takes_longer
from .passes import against_one_pass
from .tiles import FEW_TASKS, MAX_TAPS, ROW_PIXEL_BYTES, SHARED_BYTES

# With indices, a plane with one window is interleaved up to this many elements.
WHOLE_ELEMENTS = 128
# Planes of pixels of more bytes than WIDE_PIXEL are taken whole if there are more than WIDE_PIXELS:
# 1.4 times as fast as by passes (300 random planes). With 9 to 16 pixels 1.1, but some 0.6.
WIDE_PIXEL, WIDE_PIXELS = 256, 16
WHOLE_CHANNELS = 256  # of a tile, so that each has some pixels at a time
# Bytes of a pixel of interleaved planes, and of planes that are interleaved and their outputs.
LEAST_PIXEL = 64
MOST_PIXEL = 256
INTERLEAVED_BYTES = 128 << 10
# INTERLEAVED_BYTES if taps lie along leading axes, with indices, or of values whose rows of outputs
# have up to SLAB_ROW bytes (SLAB_ROW_APART, if windows share no slab): 0.5 of the time.
SLABS_BYTES, SLAB_ROW, SLAB_ROW_APART = 512 << 10, 32, 12
# Most elements of an interleaved plane of 16-bit floats, unless it is taken whole.
KEYED_ELEMENTS = 1300
# Least elements of an interleaved plane of another type, and most if a quarter are outputs.
FEW_ELEMENTS = 16
MOST_ELEMENTS = 64
# Most bytes of an interleaved plane of another type with one output and taps on leading axes:
# float32 8x1408x4x4x5 655 -> 222 us, but 1x256x8x8x8 18 -> 36.
WHOLE_SLABS = 1024
# Most elements of a row at strides above 1, of less than 4 bytes and of 4: 0.7 of the time.
SPLIT_ROW, SPLIT_ROW_OF_4 = 24, 10
# Bytes of a row of outputs, at most, of long windows at a stride of 1: of values, of keys (or if
# these times the rows are at most SLIDING_PLANE: 0.56 to 0.79 of the time, 5,200 random layers),
# and with indices, below INDEXED_ROW.
SLIDING_ROW = 40
SLIDING_KEYS = 52
SLIDING_PLANE = 640
INDEXED_ROW = 64
# Values under windows apart are not interleaved from APART_ROWS rows of APART_ROW bytes on (of
# APART_BY_FOUR under 4 columns): 0.61 of the time (6,100 layers), of smaller planes up to 4.
APART_ROWS, APART_ROW, APART_BY_FOUR = 8, 64, 96
# One window, channels last, is taken by rows, then columns, from LEAST_SIDE rows and columns on, up
# to LONGEST_ROW bytes of a row: 0.87 of the time of all pixels at once (560 random planes). Longer
# rows take up to 40 times as long (2x100000x10 float32), one column at once 10 times (5000x1x10).
# Of pixels of SLOW_KEYS bytes, two do not fit into a row of pixels.
LEAST_SIDE, LONGEST_ROW, SLOW_KEYS = 4, 256 << 10, range(129, 256)


def against_one_window(work, least=None):
    """Return why planes do not have one window each, over more than a few elements, or None."""
    if not all([w.takes_all for w in work.windows]):
        return "one window does not take all of a plane"
    elements = math.prod(w.size for w in work.windows)
    if least is None:
        short = work.return_indices and ITEMSIZE[work.dtype] <= 2
        least = MAX_TAPS if work.channels_last and not short else WHOLE_ELEMENTS
    if elements <= least:
        return f"a plane of {elements} elements is at most {least}"
    return None


def in_one_window(work):
    """Return the work of planes that are pooled to one value each."""
    width = 1
    if work.channels_last:  # whole pixels, or pieces for a few threads
        pieces = -(-work.channels // WHOLE_CHANNELS) if work.return_indices else 1
        if work.batch == 1 and work.channels > 64 and not work.problem.alone:
            pieces = max(2, pieces)
        width = min(work.channels, -(-work.channels // pieces // 32) * 32)
    tile, key_bytes = (1, 1, width, work.tile[3]), max(2, ITEMSIZE[work.dtype])
    return work._replace(direct=False, pixels_as_row=False, tile=tile, key_bytes=key_bytes)


def against_whole_pixels(work):
    """Return why pixels are not pooled to one, or None."""
    if not work.channels_last:
        return "channels are not last"
    pixel = work.channels * ITEMSIZE[work.dtype]
    if reason := against_one_window(work, WIDE_PIXELS if pixel > WIDE_PIXEL else None):
        return reason
    *_, rows, cols = work.windows
    by_rows = cols.size == 1 < rows.size
    if min(rows.size, cols.size) >= LEAST_SIDE and cols.size * pixel <= LONGEST_ROW:
        least = ROW_PIXEL_BYTES if ITEMSIZE[work.dtype] == 1 else 0
        by_rows = pixel in SLOW_KEYS or (least < pixel <= WIDE_PIXEL and not work.keyed)
    if by_rows:
        return f"pixels of {pixel} bytes take less time by rows, then columns"
    return None


def interleaved_planes(work):
    """Return how many planes are interleaved at a time."""
    size, planes = ITEMSIZE[work.dtype], work.batch * work.channels
    groups = -(-planes * size // _pixel_bytes(work))
    if planes * _plane_bytes(work) > SHARED_BYTES and not work.problem.alone:
        groups = max(groups, min(FEW_TASKS, planes * size // LEAST_PIXEL))
    step = 16 // size
    return -(-planes // (groups * step)) * step


def _plane_bytes(work):
    """Return the bytes of a plane and its outputs."""
    size, places = ITEMSIZE[work.dtype], work.return_indices * work.index_bytes
    outs = math.prod(w.out for w in work.windows)
    return math.prod(w.size for w in work.windows) * size + outs * (size + places)


def _pixel_bytes(work):
    """Return the most bytes of a pixel of planes for which there is room in the cache."""
    *leads, _, cols = work.windows
    size, room = ITEMSIZE[work.dtype], INTERLEAVED_BYTES
    if any(lead.kernel > 1 for lead in leads):
        most = SLAB_ROW if any(lead.stride < lead.kernel for lead in leads) else SLAB_ROW_APART
        if work.return_indices or (size < 8 and cols.out * size <= most):
            room = SLABS_BYTES
    return min(MOST_PIXEL, room // _plane_bytes(work) * size)


def against_interleaving(work, split):
    """Return why planes are not interleaved, or None. Does a stride `split` columns of all rows?"""
    planes, (batch, channel, *_) = work.batch * work.channels, work.index_strides
    if work.channels_last:
        return "channels are last"
    if work.wide or not all([w.size and w.out for w in work.windows]):
        return "windows have no elements, or are very long"
    if work.return_indices and work.batch > 1 and batch != work.channels * channel:
        return "indices count within a batch"
    least = LEAST_PIXEL
    if takes_longer(work):  # (composites of fewer elements fill a vector)
        least = min(32, 16 * ITEMSIZE[work.dtype])
    if planes * ITEMSIZE[work.dtype] < least:
        return f"planes are too few: {planes}"
    if _pixel_bytes(work) < least:
        return f"a plane of {_plane_bytes(work)} bytes, with its outputs, is too large"
    return _against_small_planes(work, split)


def _against_small_planes(work, split):
    """Return why single planes take less time, or None. Measured on random layers."""
    *leads, rows, cols = work.windows
    size, elements = ITEMSIZE[work.dtype], math.prod(w.size for w in work.windows)
    row_bytes, slabs = cols.out * size, any(window.kernel > 1 for window in leads)
    long = f"a row of {row_bytes} bytes of outputs is not short"
    if work.return_indices:
        if against_one_window(work) is None:
            return "a plane has one window over all its elements"
        near = cols.stride <= 2 and size >= 4 and not slabs
        return long if near and row_bytes >= INDEXED_ROW else None
    if all(window.out == 1 for window in work.windows):
        most = slabs * WHOLE_SLABS // size
        if work.keyed and (slabs or not (rows.takes_all and cols.takes_all)):
            most = KEYED_ELEMENTS
        if elements > most:
            return "a plane has one window"
    if slabs:
        return None
    apart = all([w.extent <= w.stride and w.kernel < w.size for w in (rows, cols)])
    apart &= rows.kernel > 1 and rows.size >= APART_ROWS and not work.keyed
    if apart and cols.size * size > (APART_BY_FOUR if cols.kernel == 4 else APART_ROW):
        return f"windows apart take less time along rows of {cols.size * size} bytes"
    slides = rows.stride * cols.stride == 1 and 2 * cols.kernel <= cols.size
    if not work.keyed and against_one_pass(work.windows) is None:
        low, high = cols.inner
        if cols.kernel == cols.stride > 2 and high - low < cols.out:  # (some hang over the sides)
            return None
        if size < 8 and elements >= FEW_ELEMENTS and (split or _takes_less_interleaved(work)):
            return None
        return "windows are short"
    if size == 8:
        return "a vector holds few elements"
    most = max(SLIDING_KEYS, SLIDING_PLANE // rows.size) if work.keyed else SLIDING_ROW
    if slides and row_bytes > most:
        return long
    if work.keyed and max(elements, 4 * cols.size) > KEYED_ELEMENTS:
        return f"a plane of {elements} elements is taken row by row"
    return None


def _takes_less_interleaved(work):
    """Do interleaved planes take less time, under windows of one pass per axis?

    They do if rows are short and split by a stride, if many taps share rows that leave most of a
    vector empty, and if most of what flattened planes pool is no output.
    """
    *_, rows, cols = work.windows
    size, taps = ITEMSIZE[work.dtype], rows.kernel + cols.kernel
    short = SPLIT_ROW if size < 4 else SPLIT_ROW_OF_4
    if rows.stride > 1 and cols.stride > 1 and cols.size <= short:
        return True
    least = 6 if size < 4 else 9 if rows.stride * cols.stride <= 4 else math.inf
    if taps >= least and cols.out * size < 4 * taps:
        return True
    elements, outs = math.prod(w.size for w in work.windows), math.prod(w.out for w in work.windows)
    return elements <= MOST_ELEMENTS and 4 * outs <= elements
