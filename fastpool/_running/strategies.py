"""Choose the strategy of a call, best first, with the reason why each one before it declined.

A strategy is a file of kernels/maximum/, whose head says what it takes. Its function here returns
None if it takes the work, or the reason why not. Builds differ by the bytes of a vector and by
masks, so the choice for any processor can be tested on any other.
"""

import math
import os
from typing import NamedTuple

from .._planning.dtypes import ITEMSIZE, is_float
from .._planning.geometry import Axis
from .._planning.windows import Windows
from .passes import is_empty, is_wide
from .tiles import FEW_TASKS, SHARED_BYTES

# Limits of the kernels, which export those that their code depends on (LIMITS).
MAX_TAPS = 64
SMALL_TAPS = 8  # along one axis, in registers
RING = 32  # rows under a window with indices that slides over them
TAPS_ALONG = 8  # along each axis of such a window; twice as many with masks (AVX-512)
FLAT_TAPS = 32  # in a window over flattened planes
FLAT_MASKS = 4096  # masks for flattened planes, and elements of a plane
# With indices all taps are taken at once up to this many: half the time of two passes over pairs.
AT_ONCE_TAPS = 12
# Channels last: pixels of at most this many bytes are taken as one row.
ROW_PIXEL_BYTES = 20
# Bytes of a plane that is pooled to one value in one pass. (A plane with a NaN is copied.)
WHOLE_BYTES = 512 << 10
# Bytes of a pixel of interleaved planes, and of planes that are interleaved and their outputs.
LEAST_PIXEL = 64
MOST_PIXEL = 256
INTERLEAVED_BYTES = 128 << 10
SLABS_BYTES = 512 << 10  # with indices, and taps along leading axes: nothing else is fast
# Most elements of an interleaved plane of 16-bit floats: with several outputs, with one.
KEYED_ELEMENTS = 1300
KEYED_WHOLE = 144
# Most elements of an interleaved plane of another type with one output and taps on leading axes.
WHOLE_SLABS = 64
# Bytes of a row of outputs: at most, for long windows at stride 1; fewer than, with indices.
SLIDING_ROW = 40
INDEXED_ROW = 64
# With indices, a plane with one window is interleaved up to this many elements.
WHOLE_ELEMENTS = 128
WHOLE_CHANNELS = 256  # of a tile, so that each has some pixels at a time
# A padded plane has at most this many times the outputs.
PADDED_PARTS = 4

SWITCHED_OFF = "switched off by FASTPOOL_STRATEGY"
NEVER_OFF = "running_maxima", "bands", "pairs", "irregular"
BY_PASSES = "bands", "pairs"

# What a strategy does, for `explain`.
DOES = {
    "running_maxima": "running maxima along every axis, for windows too long for tiles",
    "whole_plane": "a plane at once, if its rows are contiguous (else by bands)",
    "padded_planes": "passes over small planes that are padded in scratch",
    "flat_planes": "small planes as one row, if they are contiguous (else by bands)",
    "planes_as_pixels": "small planes, interleaved, as the channels of one image",
    "apart": "neighbouring columns in registers: no two windows share one",
    "slide_down": "all taps in registers, down a few neighbouring columns at a time",
    "stride_two": "all taps in registers, two columns from one window to the next",
    "pixels_as_row": "rows of a tile into scratch, then columns out of it, few channels as one row",
    "direct_pixels": "all taps of a pixel's channels at once",
    "bands": "rows of a tile into scratch, then columns out of it",
    "one_window": "the greatest of a plane, then its place",
    "taps": "all taps in registers, with the places of their elements",
    "pairs": "columns of a tile into scratch, then rows out of it, as pairs of value and place",
    "irregular": "the rows under each row of outputs into scratch, then columns out of it",
}


class Choice(NamedTuple):
    """The chosen strategy, and (name, reason) of each one before it that declined.

    If planes are interleaved, `inner` is the strategy that then pools them as channels.
    """

    strategy: str
    declined: tuple
    inner: str | None = None


def choose(work, build, off=()):
    """Return the `Choice` for a `Work` on a `Build`, without the strategies that are `off`.

    Pass the names that the work was made with: they decide its tiles too.
    """
    declined = []
    for strategy in STRATEGIES[work.return_indices, work.channels_last]:
        name = strategy.__name__
        reason = SWITCHED_OFF if name in off else _against(strategy, work, build)
        if reason is None:
            inner = choose(work.inner, build, off).strategy if work.inner else None
            return Choice(name, tuple(declined), inner)
        declined.append((name, reason))


def _against(strategy, work, build):
    """Return why a strategy declines a work, or None."""
    if strategy is not irregular and any(window.places for window in work.windows):
        return "the windows of an axis differ in length"
    return strategy(work, build)


def switched_off():
    """Return the strategies that ``FASTPOOL_STRATEGY=-flat_planes,-apart`` switches off.

    This is for measurements. Strategies that take work that no other one can are never off.
    """
    switches = os.environ.get("FASTPOOL_STRATEGY", "").replace(" ", "")
    if not switches:
        return ()
    names = {f.__name__: None for row in STRATEGIES.values() for f in row}
    names = [name for name in names if name not in NEVER_OFF]
    chosen = switches.split(",")
    for choice in chosen:
        if choice[:1] != "-" or choice[1:] not in names:
            expected = ", ".join(f"-{name}" for name in names)
            raise ValueError(f"FASTPOOL_STRATEGY={switches!r}: expected some of {expected}")
    return {choice[1:] for choice in chosen}


# ---------------------------------------------------------------------------------- any of them


def running_maxima(work, build):
    return None if work.axes else "passes over tiles take less time for windows this short"


def _takes_chain(work):
    *_, rows, cols = work.windows
    if len(rows.steps) > 1 or len(cols.steps) > 1:
        return f"a window of {rows.kernel} x {cols.kernel} needs several passes per axis"
    return None


def _not(cols):
    """Return what the columns of a window are, for a reason."""
    dilated = f", dilation {cols.dilation}" if cols.dilation > 1 else ""
    return f"not {cols.kernel} at stride {cols.stride}{dilated}"


def _tiles(work):
    *_, rows, cols = work.windows
    return -(-rows.out // work.tile[0]) * -(-cols.out // work.tile[1])


def none_empty(window):
    """Has every output an element?"""
    return Windows(Axis(*window[:6], 0), 0, window.out, window.out).empty == 0


# ----------------------------------------------------------------------- channels first, planes


def interleaved_planes(work, off):
    """Return how many planes are interleaved at a time, or 0.

    This decides the tiles, so it is asked as soon as there is the work of single planes.
    """
    if "planes_as_pixels" in off or against_interleaving(work):
        return 0
    size, planes = ITEMSIZE[work.dtype], work.batch * work.channels
    groups = -(-planes * size // _pixel_bytes(work))
    if planes * _plane_bytes(work) > SHARED_BYTES:
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
    slabs = work.return_indices and any(w.kernel > 1 for w in work.windows[:-2])
    room = SLABS_BYTES if slabs else INTERLEAVED_BYTES
    return min(MOST_PIXEL, room // _plane_bytes(work) * ITEMSIZE[work.dtype])


def against_interleaving(work):
    """Return why planes are not interleaved, or None."""
    planes, (batch, channel, *_) = work.batch * work.channels, work.index_strides
    if work.channels_last:
        return "channels are last"
    if any(w.places or not w.size or not w.out or is_empty(w) or is_wide(w) for w in work.windows):
        return "windows have no elements, differ in length, or are very long"
    if work.return_indices and work.batch > 1 and batch != work.channels * channel:
        return "indices count within a batch"
    if planes * ITEMSIZE[work.dtype] < LEAST_PIXEL:
        return f"{planes} planes are too few"
    if _pixel_bytes(work) < LEAST_PIXEL:
        return f"a plane of {_plane_bytes(work)} bytes, with its outputs, is too large"
    return _against_small_planes(work)


def _against_small_planes(work):
    """Return why single planes take less time, or None. Measured on random layers."""
    *leads, rows, cols = work.windows
    size, elements = ITEMSIZE[work.dtype], math.prod(w.size for w in work.windows)
    row_bytes, slabs = cols.out * size, any(window.kernel > 1 for window in leads)
    long = f"a row of {row_bytes} bytes of outputs is not short"
    if work.return_indices:
        if against_one_window(work) is None:
            return "a plane has one window over all its elements"
        near = cols.stride <= 2 and size >= 4 and not work.keyed and not slabs
        return long if near and row_bytes >= INDEXED_ROW else None
    if all(window.out == 1 for window in work.windows):
        if elements > (KEYED_WHOLE if work.keyed else WHOLE_SLABS if slabs else 0):
            return "a plane has one window"
    if slabs:
        return None
    if work.keyed:
        if max(elements, 4 * cols.size) <= KEYED_ELEMENTS:
            return None
        return f"a plane of {elements} elements is taken row by row"
    if _takes_chain(work) is None:
        low, high = cols.inner
        over_sides = high - low < cols.out
        return None if cols.kernel == cols.stride > 2 and over_sides else "windows are short"
    if size == 8:
        return "a vector holds few elements"
    if rows.stride * cols.stride == 1 and row_bytes > SLIDING_ROW and 2 * cols.kernel <= cols.size:
        return long
    return None


def planes_as_pixels(work, build):
    return None if work.inner else against_interleaving(work)


# ------------------------------------------------------------------------------ values, one plane


def whole_plane(work, build):
    *_, rows, cols = work.windows
    for axis in (rows, cols):
        if axis.out != 1 or axis.kernel != axis.size or axis.begin != 0 or axis.dilation != 1:
            return "one window does not take all of a plane"
    nbytes = rows.size * cols.size * ITEMSIZE[work.dtype]
    if nbytes > WHOLE_BYTES:
        return f"a plane of {nbytes} bytes is more than {WHOLE_BYTES}"
    return None


def padded_planes(work, build):
    *_, rows, cols = work.windows
    if not _takes_chain(work):
        return f"a window of {rows.kernel} x {cols.kernel} needs one pass per axis"
    if rows.stride * cols.stride > 1:
        return f"strides {rows.stride} and {cols.stride} are not 1"
    if _tiles(work) > 1:
        return "a plane is more than one tile"
    if cols.out * ITEMSIZE[work.dtype] >= 2 * build.vector_bytes:
        return f"a row of {cols.out} outputs is two vectors or more"
    padded = rows.span(rows.out) * cols.span(cols.out)
    if padded > PADDED_PARTS * rows.out * cols.out:
        return f"a padded plane of {padded} is over {PADDED_PARTS} times its {rows.out * cols.out}"
    return None


def flat_planes(work, build):
    """Decline unless flattened planes cost less than rows; the costs per vector were measured."""
    *leads, rows, cols = work.windows
    size = ITEMSIZE[work.dtype]
    lanes, elements = build.vector_bytes // size, rows.size * cols.size
    taps = rows.kernel * cols.kernel
    if reason := _takes_chain(work):
        return reason
    if not build.masks:
        return "the build has no masks"
    if leads:
        return "there are leading axes"
    if _tiles(work) > 1:
        return "a plane is cut into tiles"
    if taps > FLAT_TAPS:
        return f"{taps} taps are over {FLAT_TAPS}"
    if elements > FLAT_MASKS:
        return f"a plane of {elements} elements is over {FLAT_MASKS}"
    for w in (cols, rows):  # each output is stored at a distinct element, one of its window's taps
        tap, rest = divmod(w.begin, w.dilation)
        if (w.out - 1) * w.stride >= w.size or w.begin < 0 or rest or tap >= w.kernel:
            return "some output is not at an element of its window"
    period = flat_period(elements, lanes)
    if period * taps > FLAT_MASKS:
        return f"masks repeat after {period} vectors, which is too late"
    whole = rows.out == rows.size and cols.out == cols.size
    flat = -(-elements // lanes) * (4 * taps + (0 if whole else 8 if size >= 4 else 20))
    other = -(-cols.out // lanes) * rows.out * (2 * rows.kernel + 2 * cols.kernel + 8) + 100
    return None if flat < other else f"a plane takes about {flat} cycles, by rows {other}"


def flat_period(elements, lanes):
    """Return the number of vectors after which the masks of flattened planes repeat."""
    return elements // math.gcd(elements, lanes)


def apart(work, build):
    *_, rows, cols = work.windows
    if reason := _takes_chain(work):
        return reason
    if cols.kernel != cols.stride or cols.kernel not in (2, 4) or cols.dilation > 1:
        return f"takes 2 columns at stride 2, or 4 at 4, {_not(cols)}"
    low, high = cols.inner
    if high - low != cols.out:
        return "some window hangs over a side"
    last = cols.out - (-(-cols.out // work.tile[1]) - 1) * work.tile[1]  # of the narrowest tile
    if last * ITEMSIZE[work.dtype] < build.vector_bytes:
        return f"a row of {last} outputs is less than a vector"
    return None


def slide_down(work, build):
    *_, rows, cols = work.windows
    size = ITEMSIZE[work.dtype]
    if reason := _takes_chain(work):
        return reason
    if not build.masks:
        return "the build has no masks"
    if rows.stride * cols.stride > 1:
        return f"strides {rows.stride} and {cols.stride} are not 1"
    if max(rows.kernel, cols.kernel) > SMALL_TAPS:
        return f"a window of {rows.kernel} x {cols.kernel} is over {SMALL_TAPS} long"
    # Wider rows would be read from memory in small pieces.
    if work.tile[1] * size > 8 * build.vector_bytes:
        return f"a row of {work.tile[1]} outputs is over 8 vectors"
    if is_float(work.dtype) and not work.keyed and cols.kernel > 2:
        # It tests two taps for NaN, whose vectors must cover every column of the windows.
        tracked = min(max(cols.begin, 0) // cols.dilation, cols.kernel - 2)
        reach = (cols.kernel - 1 - tracked) * cols.dilation
        if work.tile[1] < cols.out or reach > max(cols.out, build.vector_bytes // size):
            return "the taps that look for NaN do not meet every column"
    return None


def stride_two(work, build):
    *_, rows, cols = work.windows
    if reason := _takes_chain(work):
        return reason
    if not build.masks:
        return "the build has no masks"
    if cols.stride != 2 or cols.dilation > 1 or cols.kernel not in (2, 3):
        return f"takes 2 or 3 columns at stride 2, {_not(cols)}"
    if cols.begin >= cols.kernel or 2 * (cols.out - 1) - cols.begin >= cols.size:
        return "some window has no column"
    return None


# -------------------------------------------------------------------------- values, channels last


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


def pixels_as_row(work, build):
    if work.pixels_as_row:
        return None
    return against_row(work.windows[-1], work.channels * ITEMSIZE[work.dtype])


def direct_pixels(work, build):
    return None if work.direct else against_all_taps(work.windows, work.return_indices)


def bands(work, build):
    return None


# --------------------------------------------------------------------------------- with indices


def against_one_window(work):
    """Return why planes do not have one window each, over more than a few elements, or None."""
    for w in work.windows:
        if (w.out, w.kernel, w.begin, w.dilation) != (1, w.size, 0, 1):
            return "one window does not take all of a plane"
    elements = math.prod(w.size for w in work.windows)
    least = WHOLE_ELEMENTS
    if work.channels_last and ITEMSIZE[work.dtype] > 2:
        least = MAX_TAPS
    if elements <= least:
        return f"a plane of {elements} elements is at most {least}"
    return None


def takes_one_window(work, off):
    """Are planes pooled to one value and index each? This decides the width of keys."""
    return work.return_indices and "one_window" not in off and not against_one_window(work)


def one_window(work, build):
    return against_one_window(work)


def taps(work, build):
    """Decline windows whose taps cost more at once, or, channels first, do not fit in registers."""
    *leads, rows, cols = work.windows
    if work.direct:
        return None
    if work.channels_last:
        return against_all_taps(work.windows, work.return_indices)
    slabs = math.prod(w.kernel for w in leads)
    if slabs > MAX_TAPS:
        return f"{slabs} slabs are over {MAX_TAPS}"
    strides = (*work.index_strides[2:],)
    furthest = sum(
        (w.kernel - 1) * w.dilation * s for w, s in zip(work.windows, strides, strict=True)
    )
    if furthest >> (8 * work.key_bytes - 1):
        return f"a key of {work.key_bytes} bytes does not hold the place {furthest}"
    if cols.stride == 4:
        if cols.kernel != 4 or cols.dilation > 1:
            return f"takes 4 columns at stride 4, {_not(cols)}"
    elif cols.stride > 2 or (cols.stride == 2 and (cols.kernel == 1 or cols.dilation > 1)):
        return f"takes columns at stride 1, or neighbours at stride 2, {_not(cols)}"
    if slides(work):
        most = 2 * TAPS_ALONG if build.masks else TAPS_ALONG
        if rows.extent > RING:
            return f"the rows of a window span {rows.extent}, over {RING}"
        if max(rows.kernel, cols.kernel) > most:
            return f"a window of {rows.kernel} x {cols.kernel} is over {most} long"
    elif slabs * rows.kernel * cols.kernel > MAX_TAPS:
        return f"{slabs * rows.kernel * cols.kernel} taps are over {MAX_TAPS}"
    return None if none_empty(cols) else "some window has no column"


def slides(work):
    """Do neighbouring windows share rows that are worth keeping?

    Comparing three rows at stride 2 again is faster than keeping them.
    """
    *leads, rows, cols = work.windows
    if math.prod(w.kernel for w in leads) > 1 or cols.stride > 2 or rows.kernel <= rows.stride:
        return False
    return rows.stride == 1 or (rows.dilation == 1 and rows.kernel > 3)


def slides_square(work):
    """Do windows of 3 x 3 or 5 x 5 slide over rows, with a loop made for them?"""
    *_, rows, cols = work.windows
    if not slides(work) or rows.stride * cols.stride != 1:
        return False
    return rows.kernel in (3, 5) and rows.kernel == cols.kernel and none_empty(rows)


def pairs(work, build):
    return None


# -------------------------------------------------------------------------------- irregular axes


def irregular(work, build):
    return None


# (return_indices, channels_last) -> strategies, best first. Bands and pairs take everything but
# irregular axes.
_WITH_INDICES = one_window, running_maxima, taps, pairs, irregular
_PLANES = whole_plane, padded_planes, flat_planes, apart, slide_down, stride_two
STRATEGIES = {
    (False, False): (planes_as_pixels, running_maxima, *_PLANES, bands, irregular),
    (False, True): (running_maxima, pixels_as_row, direct_pixels, bands, irregular),
    (True, False): (planes_as_pixels, *_WITH_INDICES),
    (True, True): _WITH_INDICES,
}
