"""Choose the strategy of a call, best first, with the reason why each one before it declined.

A strategy is a file of kernels/maximum/, whose head says what it takes. Its function here returns
the reason why it declines a work. If it takes the work, it returns None, or the work in its own
tiles. Builds differ by the bytes of a vector and by masks, so the choice for any processor can be
tested on any other.
"""

import math

from .._planning.dtypes import ITEMSIZE, is_float
from . import running_maxima as _running_maxima
from .composites import against_composites, composed
from .passes import against_one_pass
from .planes import (
    against_interleaving,
    against_one_window,
    against_whole_pixels,
    in_one_window,
    interleaved_planes,
)
from .tiles import MAX_TAPS, TAPS_ALONG, against_all_taps, against_row
from .work import make_work, none_empty

# Limits of the kernels, which export those that their code depends on (LIMITS).
SMALL_TAPS = 5  # along an axis of the largest windows whose rows stay in registers
RING = 32  # rows under a window with indices that slides over them
NARROW = 5  # columns of outputs of planes that are interleaved, if flattening them takes longer
FLAT_TAPS = 32  # in a window over flattened planes
FLAT_MASKS = 4096  # masks for flattened planes, and elements of a plane
# Bytes of outputs of a signal that is not flattened, at least, and of 2 or 3 columns at stride 2.
SIGNAL, SIGNAL_BY_TWO = 256, 64
# Bytes of a plane that is pooled to one value in one pass. (A plane with a NaN is copied.)
WHOLE_BYTES = 512 << 10

SWITCHED_OFF = "switched off by FASTPOOL_STRATEGY"
NEVER_OFF = "running_maxima", "bands", "pairs", "irregular"
BY_PASSES = "bands", "pairs"
# Strategies that take minima as keys only (pool_tile.pxi). So does "irregular", for which
# `make_work` asks for keys.
OF_MAXIMA = "whole_pixels", "flat_planes", "apart", "stride_two"

# What a strategy does, for `explain`.
DOES = {
    "running_maxima": "running maxima along every axis, for windows too long for tiles",
    "whole_plane": "a plane at once, if its rows are contiguous (else by bands)",
    "whole_pixels": "all pixels at once, channel by channel",
    "flat_planes": "small planes as one row, if they are contiguous (else by bands)",
    "planes_as_pixels": "small planes, interleaved, as the channels of one image",
    "apart": "neighbouring columns in registers: no two windows share one",
    "slide_down": "all taps in registers, down a few neighbouring columns at a time",
    "stride_two": "all taps in registers, two columns from one window to the next",
    "pixels_as_row": "rows of a tile into scratch, then columns out of it, few channels as one row",
    "direct_pixels": "all taps of a pixel's channels at once",
    "bands": "rows of a tile into scratch, then columns out of it",
    "one_window": "the greatest of a plane, then its place",
    "composites": "elements and their places as one integer each, pooled as values",
    "taps": "all taps in registers, with the places of their elements",
    "pairs": "columns of a tile into scratch, then rows out of it, as pairs of value and place",
    "irregular": "the rows under each row of outputs into scratch, then columns out of it",
}


def decide(work, build):
    """Return a `Work` with the strategy that takes it on a `Build`, and the tiles of that.

    A work in other tiles can be decided again: strategies that set tiles leave those alone.
    """
    declined, off = [], work.problem.off
    irregular_axes = any([window.places for window in work.windows])
    for strategy in STRATEGIES[work.return_indices, work.channels_last]:
        name = strategy.__name__
        if name in off:
            found = SWITCHED_OFF
        elif irregular_axes and strategy is not irregular:
            found = "the windows of an axis differ in length"
        elif work.axes and strategy is not running_maxima:
            found = "its tiles would need too much scratch"
        else:
            found = strategy(work, build)
        if not isinstance(found, str) and work.minimum and not work.keyed and name in OF_MAXIMA:
            found = "its loops over elements are compiled for maxima only"
        if not isinstance(found, str):
            return (found or work)._replace(strategy=name, declined=tuple(declined))
        declined.append((name, found))


def filling_columns(work, build):
    """Return the work with its strategy if that can fill the padding of columns, else None."""
    work = decide(work, build)
    fills = work.strategy == "bands" and not (work.keyed or work.channels_last)
    return work if fills and work.tile[1] == work.windows[-1].out else None


# ---------------------------------------------------------------------------------- any of them


def running_maxima(work, build):
    if work.axes:  # (no other strategy has little scratch)
        return None
    # A work of composites is here if its values would be pooled by running maxima. Its tiles and
    # keys suit composites only.
    if work.wide or work.composed or _running_maxima.pays(work):
        return _running_maxima.in_running_maxima(work)
    return "passes over tiles take less time for windows this short"


def _not(cols):
    """Return what the columns of a window are, for a reason."""
    dilated = f", dilation {cols.dilation}" if cols.dilation > 1 else ""
    return f"not {cols.kernel} at stride {cols.stride}{dilated}"


def _tiles(work):
    *_, rows, cols = work.windows
    return -(-rows.out // work.tile[0]) * -(-cols.out // work.tile[1])


# ----------------------------------------------------------------------- channels first, planes


def planes_as_pixels(work, build):
    *leads, rows, cols = work.windows
    # Of planes with such columns, interleaved ones take 0.55 of the time (90 random planes, AVX-512
    # and AVX2), and of up to NARROW columns of outputs 0.5 (2,000; AVX2 0.24), but not if whole
    # planes are one row, and twice that of `apart` (AVX2).
    split = rows.stride == 1 and cols.stride > 2 and apart(work, build)
    narrow = cols.out <= NARROW and max(cols.kernel, rows.stride) > 1
    narrow &= not leads or any([lead.kernel > 1 for lead in leads])  # (as planes, `_in_planes`)
    split = (split or narrow) and flat_planes(work, build)
    if reason := against_interleaving(work, split):
        return reason
    if work.problem.composite:
        return "planes of composites are taken one by one"
    planes = interleaved_planes(work)
    inner = decide(make_work(work.problem._replace(planes=planes)), build)
    tile = work.windows[-2].out, work.windows[-1].out, 1, planes
    return work._replace(tile=tile, inner=inner)


# ------------------------------------------------------------------------------ values, one plane


def whole_plane(work, build):
    *_, rows, cols = work.windows
    if rows.out > 1 or not (rows.takes_all and cols.takes_all):
        return "one window does not take all of a plane"
    nbytes = rows.size * cols.size * ITEMSIZE[work.dtype]
    if nbytes > WHOLE_BYTES:
        return f"a plane of {nbytes} bytes is more than {WHOLE_BYTES}"
    return None


def flat_planes(work, build):
    """Decline unless flattened planes cost less than rows; the costs per vector were measured."""
    *leads, rows, cols = work.windows
    size = ITEMSIZE[work.dtype]
    lanes, elements = build.vector_bytes // size, rows.size * cols.size
    taps = rows.kernel * cols.kernel
    if reason := against_one_pass(work.windows):
        return reason
    if not build.masks:
        return "the build has no masks"
    if leads:
        return "there are leading axes"
    row = cols.out * size
    if rows.size == 1 and row >= (SIGNAL if stride_two(work, build) else SIGNAL_BY_TWO):
        return f"a row of {row} bytes of outputs takes less time on its own"
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
    slides = rows.stride == cols.stride == 1 and "slide_down" not in work.problem.off
    if slides and slide_down(work, build) is None:
        other //= 2  # (1x704x8x8 float32 k3 22 us, by `slide_down` 15)
    return None if flat < other else f"a plane takes about {flat} cycles, by rows {other}"


def flat_period(elements, lanes):
    """Return the number of vectors after which the masks of flattened planes repeat."""
    return elements // math.gcd(elements, lanes)


def apart(work, build):
    *_, rows, cols = work.windows
    if reason := against_one_pass(work.windows):
        return reason
    if cols.kernel != cols.stride or cols.kernel not in (2, 4) or cols.dilation > 1:
        return f"takes 2 columns at stride 2, or 4 at 4, {_not(cols)}"
    if cols.kernel == 2 and build.masks:
        return "with masks, pairs of columns take no longer in any case"  # (1.04, 30 random layers)
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
    if reason := against_one_pass(work.windows):
        return reason
    if not build.masks:
        return "the build has no masks"
    if rows.stride * cols.stride > 1:
        return f"strides {rows.stride} and {cols.stride} are not 1"
    if rows.kernel != cols.kernel or cols.kernel not in (3, SMALL_TAPS):
        return f"a window of {rows.kernel} x {cols.kernel} is not 3 x 3 or 5 x 5"
    if rows.begin > (rows.kernel - 1) * rows.dilation:
        return "some window has no row"
    # Wider rows would be read from memory in small pieces.
    if work.tile[1] * size > 8 * build.vector_bytes:
        return f"a row of {work.tile[1]} outputs is over 8 vectors"
    if is_float(work.dtype) and not work.keyed:
        # It tests two taps for NaN, whose vectors must cover every column of the windows.
        tracked = min(max(cols.begin, 0) // cols.dilation, cols.kernel - 2)
        reach = (cols.kernel - 1 - tracked) * cols.dilation
        if work.tile[1] < cols.out or reach > max(cols.out, build.vector_bytes // size):
            return "the taps that look for NaN do not meet every column"
    return None


def stride_two(work, build):
    *_, rows, cols = work.windows
    if reason := against_one_pass(work.windows):
        return reason
    if not build.masks:
        return "the build has no masks"
    if cols.stride != 2 or cols.dilation > 1 or cols.kernel not in (2, 3):
        return f"takes 2 or 3 columns at stride 2, {_not(cols)}"
    if cols.begin >= cols.kernel or 2 * (cols.out - 1) - cols.begin >= cols.size:
        return "some window has no column"
    return None


# -------------------------------------------------------------------------- values, channels last


def whole_pixels(work, build):
    if work.strategy == "whole_pixels":
        return None
    return against_whole_pixels(work) or in_one_window(work)


def pixels_as_row(work, build):
    if work.pixels_as_row:
        return None
    return against_row(work.windows[-1], work.channels * ITEMSIZE[work.dtype])


def direct_pixels(work, build):
    if work.direct:
        return None
    return against_all_taps(work.windows, work.channels, ITEMSIZE[work.dtype])


def bands(work, build):
    return None


# --------------------------------------------------------------------------------- with indices


def one_window(work, build):
    if work.strategy == "one_window":
        return None
    pixel = work.channels * ITEMSIZE[work.dtype]
    if work.direct and pixel >= build.vector_bytes and ITEMSIZE[work.dtype] >= 4:
        # (0.58 of the time, 415 random planes, AVX-512; AVX2 0.71, baseline 0.51.)
        return f"taps of a pixel of {pixel} bytes take less time in registers"
    return against_one_window(work) or in_one_window(work)


def taps(work, build):
    """Decline windows whose taps cost more at once, or, channels first, do not fit in registers."""
    *leads, rows, cols = work.windows
    if work.direct:
        return None
    if work.channels_last:
        size, strides = ITEMSIZE[work.dtype], work.index_strides
        return against_all_taps(work.windows, work.channels, size, strides)
    slabs = math.prod(w.kernel for w in leads)
    if slabs > MAX_TAPS:
        return f"{slabs} slabs are over {MAX_TAPS}"
    pairs_along = zip(work.windows, work.index_strides[2:], strict=True)
    furthest = sum((w.extent - 1) * stride for w, stride in pairs_along)
    if furthest >> (8 * work.key_bytes - 1):
        return f"a key of {work.key_bytes} bytes does not hold the place {furthest}"
    if cols.stride == 4:
        if cols.kernel != 4 or cols.dilation > 1:
            return f"takes 4 columns at stride 4, {_not(cols)}"
    elif cols.stride > 2 or (cols.stride == 2 and (cols.kernel == 1 or cols.dilation > 1)):
        return f"takes columns at stride 1, or neighbours at stride 2, {_not(cols)}"
    if work.slides:
        most = 2 * TAPS_ALONG if build.masks else TAPS_ALONG
        if rows.extent > RING:
            return f"the rows of a window span {rows.extent}, over {RING}"
        if max(rows.kernel, cols.kernel) > most:
            return f"a window of {rows.kernel} x {cols.kernel} is over {most} long"
    elif slabs * rows.kernel * cols.kernel > MAX_TAPS:
        return f"{slabs * rows.kernel * cols.kernel} taps are over {MAX_TAPS}"
    return None if none_empty(cols) else "some window has no column"


def composites(work, build):
    def inner(dtype):
        return decide(make_work(work.problem._replace(composite=dtype)), build)

    if not work.composed:
        if reason := against_composites(work):
            return reason
        work = composed(work, inner)
        if work is None:
            return "no tile suits them"
    pooled = decide(work.inner, build)
    if pooled.axes:
        return "windows this long are not pooled by tiles"
    return work._replace(inner=pooled)


def pairs(work, build):
    return None


# -------------------------------------------------------------------------------- irregular axes


def irregular(work, build):
    return None


# (return_indices, channels_last) -> strategies, best first. Bands and pairs take everything but
# irregular axes.
_WITH_INDICES = one_window, composites, running_maxima, taps, pairs, irregular
_PLANES = whole_plane, flat_planes, apart, slide_down, stride_two
STRATEGIES = {
    (False, False): (planes_as_pixels, running_maxima, *_PLANES, bands, irregular),
    (False, True): (whole_pixels, running_maxima, pixels_as_row, direct_pixels, bands, irregular),
    (True, False): (planes_as_pixels, *_WITH_INDICES),
    (True, True): _WITH_INDICES,
}
