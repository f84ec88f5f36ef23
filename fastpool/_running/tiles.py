"""Choose the sizes of tiles: how much of the result one task makes while its scratch is cached.

Channels last, how pixels are taken decides the tiles.
"""

import math

# Limits for the scratch of one tile's band. 24 KiB stay in the first-level cache. The others may
# fill the second-level cache.
BAND_BYTES = 24 << 10
PAIRS_BYTES = 64 << 10
PIXEL_BAND_BYTES = 128 << 10  # channels last: whole pixels, for which rows and columns share loads
PIXEL_BYTES = 4 << 10
DIRECT_PIXEL_BYTES = 16 << 10  # all taps at once, without a band: signals 1.3, images 1.1 times
LONG_BAND_BYTES = 512 << 10
LONG_PIXEL_BYTES = 384  # (256: 8x17x17x72 float32 k15, padded, 73 -> 204 us)
LINE_BYTES = 64  # of the longest vector: parts of pixels, and lines of sums, are whole ones
# Of planes that are interleaved for sums, these at least, and the columns whose time a group takes
# besides its own.
INTERLEAVED, GROUP_COLUMNS = 16, 20
# The limit for values of long windows of at most MODERATE_TAPS along an axis: 0.8 of the time.
MODERATE_TAPS, MODERATE_PIXEL_BYTES = 10, 1 << 10
# Loads and stores per output of a running maximum, plus one load per element under the tile.
VAN_HERK_COST = 4
# Rows longer than this are split into column tiles.
COLUMN_TILE_BYTES = 16 << 10
# MANY_TASKS are enough for the threads of a large machine. If there are SOME_TASKS, enough for a
# few threads, none has less than TASK_BYTES. Work above SHARED_BYTES is cut into FEW_TASKS.
MANY_TASKS = 64
SOME_TASKS = 8
TASK_BYTES = 16 << 10
FEW_TASKS = 4
SHARED_BYTES = 256 << 10
# Taps of a window that kernels take at once, and along one axis.
MAX_TAPS = 64
TAPS_ALONG = 8
# All taps of a pixel are taken at once up to AT_ONCE_TAPS (more take 1.3 times the time of passes),
# pixels below NARROW_PIXEL_BYTES up to NARROW_TAPS, and up to MAX_TAPS with indices (0.5 times), or
# if windows share nothing and pixels have APART_PIXEL_BYTES (0.85 times).
AT_ONCE_TAPS, NARROW_TAPS = 12, 3
APART_PIXEL_BYTES, NARROW_PIXEL_BYTES = 128, 32
# With indices even up to MAX_TAPS along each axis, if windows share nothing, have at most this many
# bytes, and keys are no wider for them: 0.66 of the time of composites.
WINDOW_BYTES = 1 << 20
# Pixels of at most this many bytes are taken as one row.
ROW_PIXEL_BYTES = 20


def _fit(total, piece_bytes, budget):
    """Return how many of `total` pieces fit into the budget, with nearly equal parts."""
    count = max(1, min(total, budget // max(1, piece_bytes)))
    return -(-total // -(-total // count)) if total else 1


def _long_tile(rows, cols, element, width, channels_last, pairs):
    """Return the output rows and columns of a tile under a long window with the fewest loads.

    Tiles overlap by nearly a window on each side, so they are as large as scratch allows. Values
    are pooled by rows first, and the band holds the columns under the tile. Pairs are pooled by
    columns first, and the band holds keys and positions of the rows under the tile and in it.
    """
    limit = LONG_BAND_BYTES // (element * width)
    best = math.inf, 1, 1
    parts = 1
    while True:
        tile_rows = -(-rows.out // parts)
        under = rows.span(tile_rows)
        if pairs:
            tile_cols = limit // (2 * (min(under, rows.size) + tile_rows))
        else:
            tile_cols = (limit // tile_rows - cols.extent) // cols.stride + 1
        if tile_cols >= 1:
            tile_cols = _fit(cols.out, 1, tile_cols)
            across = cols.span(tile_cols)
            if pairs:
                cost = under * (across * cols.cost + tile_cols * rows.cost)
                if element <= 2 and min(under, rows.size) * cols.size > 1 << 16:
                    cost *= 2  # wider keys
            else:
                along = across + VAN_HERK_COST * tile_cols if channels_last else across * cols.cost
                cost = across * (under + VAN_HERK_COST * tile_rows) + tile_rows * along
            best = min(best, (cost / (tile_rows * tile_cols), tile_rows, tile_cols))
        if tile_rows == 1:
            return best[1:]
        parts += max(1, parts // 4)


def tile_of(windows, element, batch, channels, channels_last, direct, pairs, alone):
    """Return the outputs of one task: rows, columns, channels, planes.

    If one thread takes all tiles (`alone`), there are no more of them than scratch requires.
    """
    *leads, rows, cols = windows
    out_rows, out_cols = max(1, rows.out), max(1, cols.out)
    separate = rows.out == 1 or rows.stride >= rows.extent  # windows share no rows
    long = len(rows.steps) > 1 and (pairs or not separate)
    share = 3 if pairs else 1  # keys, and keys and positions of pooled columns and rows
    width = 1
    if channels_last:
        pixel_bytes = DIRECT_PIXEL_BYTES if direct else PIXEL_BYTES // share
        if long:
            moderate = max(rows.kernel, cols.kernel) <= MODERATE_TAPS and not (pairs or leads)
            pixel_bytes = MODERATE_PIXEL_BYTES if moderate else LONG_PIXEL_BYTES
        if rows.out * cols.out == 1 and not pairs:
            # One output of each batch: blocks of channels, so that there are some tasks.
            shares = batch * channels * element // (1 if alone else FEW_TASKS)
            pixel_bytes = min(pixel_bytes, max(LONG_PIXEL_BYTES, shares))
        lanes = LINE_BYTES // element
        width = min(channels, -(-_fit(channels, element, pixel_bytes) // lanes) * lanes)
    if long:
        tile_rows, out_cols = _long_tile(rows, cols, element, width, channels_last, pairs)
        row_bytes = element * width * cols.span(out_cols) * share
        budget = LONG_BAND_BYTES
    else:
        budget = PAIRS_BYTES if pairs else BAND_BYTES
        column_limit = COLUMN_TILE_BYTES // element
        if channels_last:
            if not direct:
                budget = max(budget, PIXEL_BAND_BYTES)
            column_limit = budget // (4 * share * element * width)  # at least four rows
        column_limit = max(column_limit, (4 if channels_last else 8) * cols.extent)
        if cols.span(out_cols) > 2 * column_limit:
            out_cols = _fit(out_cols, cols.stride, max(column_limit - cols.extent, cols.stride))
        row_bytes = max(1, cols.span(out_cols) * width * element) * share
        tile_rows = _fit(out_rows, row_bytes, budget)
    planes = 1
    whole = tile_rows >= out_rows and out_cols >= cols.out
    if not channels_last and whole and all(w.out == w.kernel == 1 for w in leads):
        count = batch * channels
        tasks = max(SOME_TASKS, min(MANY_TASKS, count * row_bytes * out_rows // TASK_BYTES))
        most = count if alone else count // tasks
        planes = max(1, min(_fit(count, row_bytes * out_rows, budget), most))
    pieces = math.prod(w.out for w in leads) * batch * -(-cols.out // out_cols)
    pieces *= -(-channels // (width if channels_last else planes))
    if not alone and pieces * row_bytes * out_rows > SHARED_BYTES:
        # For one or two large planes, make tiles shorter so that there are more than threads.
        tile_rows = max(1, min(tile_rows, out_rows * pieces // FEW_TASKS))
    return tile_rows, out_cols, width, planes


def key_bytes(windows, tile, itemsize, strides, direct):
    """Return the bytes of the narrowest integer for a key and any position under a tile.

    With `direct`, the positions are those under one window.
    """
    *leads, rows, cols = windows
    if direct:  # signed integers, in the strides of the index
        places = sum((w.extent - 1) * s for w, s in zip(windows, strides[2:], strict=True))
        return next((n for n in (2, 4) if n >= itemsize and places < 1 << (8 * n - 1)), 8)
    under_rows = min(rows.span(tile[0]), max(1, rows.size))
    places = (under_rows - 1) * cols.size + min(cols.span(tile[1]), cols.size)
    plane = rows.size * cols.size
    for lead in reversed(leads):
        places += min(lead.extent, lead.size) * plane
        plane *= lead.size
    return next((n for n in (2, 4) if n >= itemsize and places < 1 << (8 * n)), 8)


def against_row(cols, pixel_bytes):
    """Return why pixels are not taken as one row, or None."""
    if len(cols.steps) > 1:
        return f"a window of {cols.kernel} columns needs several passes"
    if pixel_bytes > ROW_PIXEL_BYTES:
        return f"a pixel of {pixel_bytes} bytes is over {ROW_PIXEL_BYTES} bytes"
    return None


def against_all_taps(windows, channels, itemsize, strides=None):
    """Return why the taps of a pixel are not taken all at once, or None: with `strides` indices."""
    *leads, rows, cols = windows
    slabs, taps = math.prod(w.kernel for w in leads), rows.kernel * cols.kernel
    all_taps, pixel_bytes, most = slabs * taps, channels * itemsize, AT_ONCE_TAPS
    apart = all([w.out == 1 or w.stride >= w.extent for w in windows])
    if strides and apart and max(slabs, rows.kernel, cols.kernel) <= MAX_TAPS:
        narrow = key_bytes(windows, None, itemsize, strides, True) <= max(2, itemsize)
        if all_taps <= MAX_TAPS or (narrow and all_taps * pixel_bytes <= WINDOW_BYTES):
            return None
    if strides or (apart and pixel_bytes >= APART_PIXEL_BYTES):
        most = MAX_TAPS
    elif pixel_bytes < NARROW_PIXEL_BYTES:
        most = NARROW_TAPS
    if all_taps > most:
        return f"{all_taps} taps are over {most}, for pixels of {pixel_bytes} bytes"
    columns_per_output = cols.span(cols.out) / max(1, cols.out)
    few = strides and all_taps <= AT_ONCE_TAPS
    if not few and taps > rows.cost * columns_per_output + cols.cost:
        return "one axis after the other takes fewer loads than all taps"
    return None


def of_pixels(windows, channels, itemsize, strides, off):
    """Return whether pixels are taken as one row, and whether all taps of a pixel at once.

    Both decide the tiles, so they are asked before tiling.
    """
    if not strides and "pixels_as_row" not in off:
        if against_row(windows[-1], channels * itemsize) is None:
            return True, False
    name = "taps" if strides else "direct_pixels"
    return False, name not in off and not against_all_taps(windows, channels, itemsize, strides)
