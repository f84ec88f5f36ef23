"""Decide whether planes with one window each are pooled to one value. This decides the tiles."""

import math

from .._planning.dtypes import ITEMSIZE
from .pixels import MAX_TAPS

# With indices, a plane with one window is interleaved up to this many elements.
WHOLE_ELEMENTS = 128
# Bytes of pixels, without indices, of which two do not fit into WIDE_PIXEL (whole_pixels.pxi).
SLOW_PIXELS = range(129, 256)
WHOLE_CHANNELS = 256  # of a tile, so that each has some pixels at a time


def against_one_window(work):
    """Return why planes do not have one window each, over more than a few elements, or None."""
    for w in work.windows:
        if (w.out, w.kernel, w.begin, w.dilation) != (1, w.size, 0, 1):
            return "one window does not take all of a plane"
    elements = math.prod(w.size for w in work.windows)
    least = WHOLE_ELEMENTS
    if work.channels_last and (ITEMSIZE[work.dtype] > 2 or not work.return_indices):
        least = MAX_TAPS
    if elements <= least:
        return f"a plane of {elements} elements is at most {least}"
    return None


def in_one_window(work):
    """Return the work of planes that are pooled to one value each."""
    width = _whole_width(work) if work.channels_last else 1
    tile, key_bytes = (1, 1, width, work.tile[3]), max(2, ITEMSIZE[work.dtype])
    return work._replace(direct=False, pixels_as_row=False, tile=tile, key_bytes=key_bytes)


def _whole_width(work):
    """Return the channels of a tile with one window: whole pixels, or pieces for a few threads."""
    pieces = -(-work.channels // WHOLE_CHANNELS) if work.return_indices else 1
    if work.batch == 1 and work.channels > 64:
        pieces = max(2, pieces)
    return min(work.channels, -(-work.channels // pieces // 32) * 32)


def against_whole_pixels(work):
    """Return why pixels are not pooled to one, or None."""
    if not work.channels_last:
        return "channels are not last"
    pixel = _whole_width(work) * ITEMSIZE[work.dtype]
    if pixel in SLOW_PIXELS:
        return f"a pixel of {pixel} bytes is too long for several at once, and too short for one"
    return against_one_window(work)
