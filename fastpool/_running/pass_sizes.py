"""Sizes of what the passes of sums need: blocks, rows of parts and of lines."""

import math
from typing import NamedTuple

from .._planning.dtypes import ITEMSIZE, is_float
from .tiles import INTERLEAVED, LINE_BYTES

# Bytes of rows of sums that stay in the first-level cache, elements of a part of a
# row, and the columns of padding per column and output from which each output is added on its own.
PASS_BYTES = 16 << 10
PASS_ELEMENTS = 512
MOST_MARGINS = 8
APART_ELEMENTS = 1024  # 0.7 of the time of shared halves (535 random layers), 500 up to 2.2
# Of tall windows: bytes of rows of parts that stay in the second-level cache, the fewest elements
# of such a row, and the most bytes.
TALL_BYTES = 128 << 10
TALL_ELEMENTS = 64
MOST_TALL = 4 << 20
LINES_BYTES = 128 << 10  # of rows whose windows are added in order, a few rows at a time
# Bytes of rows that are converted, or added along leading axes; of a row up to which all are.
MOST_LINES, NARROW_ROW = 8 << 20, 2 * LINE_BYTES
BLOCK_COLUMNS = 128  # of these that are added at once (whole_planes.pxi repeats it)
WHOLE_PLANES = 64  # planes of one window at a time
PLANES_AT_ONCE = 8  # of these, halves included: 512x60x60 float32 350 -> 250 us
WHOLE_ELEMENTS = 2048  # of planes that are converted as one run
SLIDING_PIXEL = 80  # elements of pixels whose sums in order need no lines, if windows slide
MOST_BYTE_ROWS = 128  # taps of a sum of small integers, if another one overlaps it (byte_sums.h)
MOST_BYTE_TAPS = 255  # of a sum of small integers, along rows too
SHORT_TAPS = 25  # of sums of 16 bits whose quotients fit floats, which take less time
SMALL_INTEGERS = "int8", "uint8", "int16", "uint16"
MOST_SHORTS = 8  # columns of such sums that are added at once
MOST_IN_FLOATS = 1 << 15  # bytes whose sums are exact in float32, 128 more each
MOST_LEAF = 7  # taps of a tree that stays in registers (pairwise.h)


class Sizes(NamedTuple):
    """What a `SumWork` has of the passes, under the same names."""

    band: int
    pitch: int
    block_rows: int
    walks: bool
    lines: int
    line: int
    whole: bool = False
    parts: int = 0
    tall: int = 0
    byte_rows: bool = False
    shorts: int = 0
    long_rows: int = 1
    signals: bool = False


def sizes_in_order(plan, windows, tile, span):
    """Return the sizes for sums in order: of lines, which rows of windows share."""
    *leads, rows, cols = windows
    tile_rows, tile_cols, channels, _ = tile
    item = 8 if plan.dtype == "float64" else 4
    under = min(cols.size, span)
    walks = bool(cols.places) or span > MOST_MARGINS * (under + tile_cols)
    # Lines have room for a vector, and so have the parts that a stride makes of them.
    room = LINE_BYTES // item
    line = (under if walks else span) * channels + room
    if not walks and channels < INTERLEAVED and 1 < cols.stride and tile_cols > 1:
        parts = max(4, min(cols.stride, cols.extent))
        line = max(line, parts * (-(-span // cols.stride) * channels + room))
    band = tile_cols * channels + 64
    block_rows = max(1, min(tile_rows, PASS_BYTES // (item * band)))
    # (The last of several parts of pixels is narrower.)
    least = plan.channels_last and plan.channels % channels or channels
    wide = least >= (INTERLEAVED if cols.stride > 1 else SLIDING_PIXEL)
    if wide and ITEMSIZE[plan.dtype] == item and plan.nan != "ignore":
        line = lines = 0  # (pixels are added where they are)
    else:
        most, slabs = max(1, LINES_BYTES // (item * line)), math.prod(w.kernel for w in leads)
        if not rows.places:
            block_rows = max(1, min(block_rows, (most // slabs - rows.extent) // rows.stride + 1))
        lines = max(1, min(most, slabs * min(rows.size, rows.span(block_rows))))
    return Sizes(band=band, pitch=1, block_rows=block_rows, walks=walks, lines=lines + 1, line=line)


def most_lines(plan):
    """Return the bytes of rows that are converted at a time: as many as the input has, at least."""
    return max(MOST_LINES, math.prod(plan.input_shape) * ITEMSIZE[plan.dtype])


def leaves_out_nan(plan):
    return plan.nan == "ignore" and is_float(plan.dtype)


def are_signals(plan, windows):
    """Has each plane one row, and one window that takes more than a block of its elements?"""
    *others, cols = windows
    whole = cols.out == cols.dilation == 1 and 0 <= cols.begin <= cols.size - cols.kernel
    whole = whole and cols.kernel > BLOCK_COLUMNS and all(other.is_trivial for other in others)
    return whole and plan.numerics != "sequential" and not leaves_out_nan(plan)


def pass_sizes(plan, windows, tile, span, channels_last, moves, item):
    """Return the sizes for some windows, whose sums have `item` bytes.

    `tile` is that of interleaved planes, if they are.
    """
    *leads, rows, cols = windows
    tile_rows, tile_cols, channels, planes = tile
    under = min(cols.size, span)
    walks = bool(cols.places) or span > MOST_MARGINS * (under + tile_cols)
    long = cols.kernel > MOST_LEAF and cols.kernel * channels >= APART_ELEMENTS
    # (Windows of interleaved planes that share a half 19 -> 34 us: 64x600 float16 k71 s36.)
    apart = cols.stride >= cols.extent or (channels_last and 2 * cols.stride >= cols.extent)
    walks |= long and channels >= INTERLEAVED and apart
    walks |= cols.out == 1 and cols.kernel > MOST_LEAF and channels > 1  # (no parts are shared)
    span = under if walks else span
    whole = channels == 1 and rows.out == cols.out == 1 and not leaves_out_nan(plan)
    signals = whole and are_signals(plan, windows)
    if signals:
        span = BLOCK_COLUMNS
    # (Halves of tall windows are added next to one another.)
    pitch = PASS_ELEMENTS if rows.kernel > MOST_LEAF else min(PASS_ELEMENTS, span * channels)
    pitch = max(channels, pitch)
    if whole:
        pitch = max(WHOLE_PLANES, min(2 * PASS_ELEMENTS, PLANES_AT_ONCE * (span + 64)), pitch)
    # A part for each halving, and one more: `other` of `add_halves`.
    depth = sum(w.kernel.bit_length() for w in windows) + len(windows) + 1
    band = span * channels + 64
    long_rows = max(1, PASS_BYTES // (item * band))
    if whole:
        some = WHOLE_PLANES if rows.size == 1 else max(WHOLE_PLANES // 4, 4 * long_rows)
        block_rows, tall = min(planes, WHOLE_PLANES, some), 0
    else:
        block_rows, tall = _tall(rows, min(tile_rows, long_rows), tile_rows, span * channels, item)
    lines = min(rows.size, rows.span(block_rows))
    if whole:
        lines = rows.size * max(1, min(planes, WHOLE_ELEMENTS // max(1, rows.size * cols.size)))
    in_place = ITEMSIZE[plan.dtype] == item and plan.nan != "ignore" and moves
    in_place &= plan.numerics == "pairwise" and is_float(plan.dtype)
    in_place &= all(lead.kernel == 1 for lead in leads)
    in_place &= not channels_last or channels in (plan.channels, max(channels, INTERLEAVED))
    few = rows.places or (not whole and lines > block_rows * rows.kernel)
    lanes = LINE_BYTES // item
    line = -(-under * channels // lanes) * lanes
    room = max(most_lines(plan), NARROW_ROW * lines)
    if in_place or signals or few or lines * line * item > room:
        lines = 0
    shorts = 0 if item == 8 or walks or whole else _shorts(plan, rows, cols, channels)
    byte_rows = not whole and _takes_bytes(plan, windows, shorts, item)
    if byte_rows:
        block_rows, lines = min(tile_rows, long_rows), 0
        tall = 2 * under * channels + 2 * LINE_BYTES  # (sums, and two rows of floats)
    return Sizes(
        band=band,
        pitch=pitch,
        block_rows=block_rows,
        walks=walks,
        whole=whole,
        parts=pitch * depth,
        lines=lines,
        line=line,
        tall=tall,
        byte_rows=byte_rows,
        shorts=shorts if byte_rows else 0,
        long_rows=long_rows,
        signals=signals,
    )


def _takes_bytes(plan, windows, shorts, item):
    """Are windows of small integers added row by row, and those that overlap one by the other?"""
    *leads, rows, _ = windows
    if plan.dtype not in SMALL_INTEGERS or rows.dilation > 1:
        return False
    if any(lead.kernel > 1 for lead in leads):
        return False
    if not shorts and rows.kernel <= MOST_LEAF and (item == 4 or ITEMSIZE[plan.dtype] == 2):
        if rows.places or rows.kernel <= 2 * rows.stride + 2:
            return False  # (rows that enter and leave are hardly fewer)
    if rows.kernel <= MOST_BYTE_ROWS:
        return True
    return rows.out == 1 and rows.kernel < MOST_IN_FLOATS and ITEMSIZE[plan.dtype] == 1


def _shorts(plan, rows, cols, channels):
    """Return how many columns of sums of integers are added before they are floats, or 0."""
    if plan.dtype not in SMALL_INTEGERS or cols.stride > 1:
        return 0
    if ITEMSIZE[plan.dtype] == 2 and rows.kernel * cols.kernel <= SHORT_TAPS:
        return 0
    if cols.kernel <= MOST_SHORTS:
        return cols.kernel if rows.kernel <= MOST_BYTE_ROWS else 0
    some = range(3, min(MOST_SHORTS, MOST_BYTE_TAPS // rows.kernel) + 1)
    # (Each output adds `n` columns, then as many sums, and the rest.)
    some = min(some, key=lambda n: n + cols.kernel // n + cols.kernel % n, default=0)
    return some if cols.kernel <= MOST_SHORTS**2 else 0


def _tall(rows, most, tile_rows, width, item):
    """Return the output rows of a block and the elements of parts, if windows share these.

    0: too few windows overlap, or parts take too much room.
    """
    taps, halvings = rows.kernel, 0
    while taps > MOST_LEAF:
        taps, halvings = taps // 2, halvings + 1
    if rows.places or not halvings:
        return most, 0
    more = max(
        most, min(4 * -(-rows.extent // rows.stride), 4 * TALL_BYTES // (item * (width + 64)))
    )
    # (Each block reads, and may convert, the rows of a window before its own.)
    more = max(more, min(rows.extent // (4 * rows.stride), MOST_TALL // (item * (width + 64))))
    more = min(tile_rows, more)
    # A row of parts is added once per halving, and a row of taps `kernel` times per output.
    if 2 * (halvings + 2) * (more * rows.stride + rows.extent) > more * rows.kernel:
        return most, 0
    parts = (more - 1) * rows.stride + 1 + (rows.kernel - taps) * rows.dilation
    if parts > 2 * (rows.size + more * rows.stride):
        return most, 0  # (most taps are padding)
    wide = max(min(width, TALL_ELEMENTS), TALL_BYTES // item // parts)
    return more, 2 * parts * max(1, min(wide, MOST_TALL // (2 * parts * item)))
