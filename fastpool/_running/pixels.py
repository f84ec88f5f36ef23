"""Choose how pixels with their channels last are taken, which decides their tiles."""

import math

MAX_TAPS = 64  # of the kernels
TAPS_ALONG = 8
# With indices all taps are taken at once up to this many: half the time of two passes over pairs.
AT_ONCE_TAPS = 12
# Pixels of at most this many bytes are taken as one row.
ROW_PIXEL_BYTES = 20


def against_row(cols, pixel_bytes):
    """Return why pixels are not taken as one row, or None."""
    if len(cols.steps) > 1:
        return f"a window of {cols.kernel} columns needs several passes"
    if pixel_bytes > ROW_PIXEL_BYTES:
        return f"a pixel of {pixel_bytes} bytes is over {ROW_PIXEL_BYTES} bytes"
    return None


def against_all_taps(windows, return_indices):
    """Return why the taps of a pixel are not taken all at once, or None."""
    *_, rows, cols = windows
    all_taps, taps = math.prod(w.kernel for w in windows), rows.kernel * cols.kernel
    most = all_taps if return_indices else taps
    if most > MAX_TAPS:
        return f"{most} taps are over {MAX_TAPS}"
    columns_per_output = cols.span(cols.out) / max(1, cols.out)
    few = return_indices and all_taps <= AT_ONCE_TAPS
    if not few and taps > rows.cost * columns_per_output + cols.cost:
        return "one axis after the other takes fewer loads than all taps"
    return None


def of_pixels(windows, pixel_bytes, return_indices, off):
    """Return whether pixels are taken as one row, and whether all taps of a pixel at once.

    Both decide the tiles, so they are asked before tiling.
    """
    if not return_indices and "pixels_as_row" not in off:
        if against_row(windows[-1], pixel_bytes) is None:
            return True, False
    name = "taps" if return_indices else "direct_pixels"
    return False, name not in off and against_all_taps(windows, return_indices) is None
