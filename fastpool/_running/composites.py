"""Decide whether windows with indices are pooled as composites: a key and a place in one integer.

The composites of a tile are pooled as values, so that all strategies for values serve indices too
(kernels/maximum/composites.pxi). This decides tiles, so it is asked before there are any.
"""

import math

from .._planning.dtypes import ITEMSIZE
from .tiles import MAX_TAPS, TAPS_ALONG

# Per width of keys: the dtype of composites, and one more than the most places under a tile.
# (Places of 32 bits are divided as floats, whose quotients would be wrong from 2**22 on.)
DTYPES = {2: "int32", 4: "int64"}
MOST_PLACES = {2: 2**16 - 1, 4: 2**22}
MOST_INDEX = 2**31  # distance of two indices under a tile
MOST_MORE = 8  # times the elements, under tiles that are smaller for the sake of their places
# Taps in registers take less time than composites, channels last, for pixels of at least these
# bytes of keys, and for images with at most these bytes of outputs, as keys (0.8 of the time, 30
# random layers); channels first, for windows whose rows plus columns are at most LONG.
PIXEL_BYTES = 32
OUTPUT_BYTES = 48
LONG = 14
# Elements of a byte at a stride: taps take less time for rows of at least these outputs.
ROW = 24
# At a stride of 1 taps take less time for rows of at least SLIDING_ROW outputs, if a window's rows
# plus columns are at most SLIDING: 3x3 of float16 1.7 times as fast, 2x2 of float32 1.4.
SLIDING_ROW, SLIDING = 20, 10


def composed(work, make_inner):
    """Return the work of composites instead of a work with indices, or None if no tile suits them.

    `make_inner` returns the work of the same windows over values of a dtype. The caller decides its
    strategy again, since it gets the tile of the composites.
    """
    for size, dtype in DTYPES.items():
        if size < ITEMSIZE[work.dtype]:
            continue
        inner = make_inner(dtype)
        tile = _tile(work.windows, inner.tile, size)
        if tile is None or _overlaps(work.windows, tile, inner.tile):
            continue
        if _furthest(work, tile) < MOST_INDEX:
            inner = inner._replace(tile=tile)
            work = work._replace(key_bytes=size, tile=tile, direct=False)
            return work._replace(inner=inner, composed=True)
    return None


def against_composites(work):
    """Return why elements are not composed with their places, or None."""
    leads = work.windows[:-2]
    if ITEMSIZE[work.dtype] == 8:
        return "elements of 64 bits leave no room for places"
    if len(leads) > 1 or any(w.dilation > 1 for w in leads):
        return "there are several leading axes, or they are dilated"
    if work.wide or not all([w.size and w.out for w in work.windows]):
        return "windows are very long, or have no elements"
    if work.channels_last:
        pixel = work.channels * max(2, ITEMSIZE[work.dtype])
        if work.direct and pixel >= PIXEL_BYTES:
            return f"taps of a pixel of {pixel} bytes of keys take less time in registers"
        outputs = math.prod(w.out for w in work.windows) * pixel
        few = work.direct and math.prod(w.kernel for w in work.windows) <= MAX_TAPS
        if few and outputs <= OUTPUT_BYTES:
            return f"taps for {outputs} bytes of outputs, as keys, take less time in registers"
        return None
    return "few taps take less time in registers" if _few_taps(work) else None


def takes_longer(work):
    """Is a work pooled as composites, with more than few taps a window?"""
    if not work.return_indices or against_composites(work) is not None:
        return False
    *leads, rows, cols = work.windows
    longest = max(w.kernel for w in work.windows)
    return rows.stride * cols.stride > 1 or longest > TAPS_ALONG or any(w.kernel > 1 for w in leads)


def _few_taps(work):
    """Do taps in registers take less time, channels first? Measured on random layers."""
    *leads, rows, cols = work.windows
    slabs = math.prod(w.kernel for w in leads)
    longest = max(rows.kernel, cols.kernel)
    if rows.kernel + cols.kernel > LONG or (rows.kernel > rows.stride and longest > TAPS_ALONG):
        return False
    if slabs * rows.kernel * cols.kernel > MAX_TAPS:
        return False
    if cols.stride > 2 and not cols.stride == cols.kernel == 4:
        return False
    if cols.stride > 1 and (cols.kernel == 1 or cols.dilation > 1):
        return False
    one, bytes_wide = rows.stride == cols.stride == 1, ITEMSIZE[work.dtype] == 1
    if slabs > 1:
        return not one and not bytes_wide
    if one:
        if cols.out >= SLIDING_ROW and rows.kernel + cols.kernel <= SLIDING:
            return True
        return not (bytes_wide or work.keyed or longest == 2)
    return not bytes_wide or cols.out >= ROW


def _under(window, outputs):
    """Return the most elements under some neighbouring outputs."""
    return min(window.span(outputs), window.size)


def _tile(windows, tile, size):
    """Return the tile, smaller if there are more places under it than keys can have, or None."""
    *leads, rows, cols = windows
    tile_rows, tile_cols, channels, planes = tile
    slabs = math.prod(w.kernel for w in leads)
    while slabs * _under(rows, tile_rows) * _under(cols, tile_cols) > MOST_PLACES[size]:
        if tile_rows > 1 and (tile_cols == 1 or rows.span(tile_rows) >= 3 * rows.extent):
            tile_rows = -(-tile_rows // 2)
        elif tile_cols > 1:
            tile_cols = -(-tile_cols // 2)
        else:
            return None
        planes = 1
    return tile_rows, tile_cols, channels, planes


def _overlaps(windows, tile, larger):
    """Do smaller tiles have so many more elements under them that other tiles take less time?"""
    *_, rows, cols = windows
    most = max(rows.size * cols.size, _elements(rows, cols, larger))
    return _elements(rows, cols, tile) > MOST_MORE * most


def _elements(rows, cols, tile):
    """Return the elements under all tiles of a plane, those that tiles share several times."""
    tile_rows, tile_cols, *_ = tile
    tiles = -(-rows.out // tile_rows) * -(-cols.out // tile_cols)
    return tiles * _under(rows, tile_rows) * _under(cols, tile_cols)


def _furthest(work, tile):
    """Return the largest distance of two indices under a tile, in one channel."""
    *leads, rows, cols = work.windows
    extents = *(w.extent for w in leads), _under(rows, tile[0]), _under(cols, tile[1])
    strides = work.index_strides[2:]
    return sum((n - 1) * stride for n, stride in zip(extents, strides, strict=True))
