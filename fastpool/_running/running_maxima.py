"""Decide when running maxima along every axis pay, and choose their tiles.

Tiles of long windows overlap almost entirely, so the time of a call by tiles grows with the window.
The kernel in `running_maxima.pxi` reads each element at most three times per axis.
"""

import math

# Limit for the pairs of a key and a position, 16 bytes each, in the scratch of one task.
SCRATCH_PAIRS = 96 << 10
# Loads of the other strategies that take as long as one read of an element here, 3 to 10 ns. A load
# takes 0.1 to 0.4 for pairs of value and index, 0.01 to 0.1 for values (float32 and uint8, AVX2).
PAIR_LOADS = 40
VALUE_LOADS = 200
# Windows of at most this many taps are cheap, unless the taps are far apart.
CHEAP_TAPS = 64
# Elements in a vector: a load takes a whole vector even in a narrower row.
NARROW = 16
# Elements that the innermost axis reads at a time (QUEUE of `running_maxima.pxi`).
QUEUE = 64
# Vectors of an axis at most this long are read once.
SHORT = 64


def pays(work):
    """Does a work take so many loads that running maxima over all axes are faster?"""
    windows, channels = work.windows, work.channels if work.channels_last else 1
    if math.prod(w.kernel for w in windows) <= CHEAP_TAPS and all(
        w.extent <= 2 * w.size + CHEAP_TAPS for w in windows
    ):
        return False
    least = PAIR_LOADS if work.return_indices else VALUE_LOADS
    loads = _loads(work)
    if loads <= least * math.prod(w.size for w in windows):  # (quick, and true of nearly all)
        return False
    return loads > least * running_axes(windows, channels)[2] / channels


def in_running_maxima(work):
    """Return the work by running maxima, for windows long relative to the input or scratch."""
    channels = work.channels if work.channels_last else 1
    axes, channels, _ = running_axes(work.windows, channels)
    work = work._replace(axes=axes, tile=(1, 1, channels, 1), direct=False, pixels_as_row=False)
    return work._replace(inner=None, composed=False)


def _loads(work):
    """Estimate the loads and stores of a work of passes, per plane or per channel of pixels."""
    *leads, rows, cols = work.windows
    tile_rows, tile_cols = min(work.tile[0], rows.out), min(work.tile[1], cols.out)
    if not tile_rows or not tile_cols:
        return 0
    tiles = -(-rows.out // tile_rows) * -(-cols.out // tile_cols)
    tiles *= math.prod(w.out * min(w.kernel, _elements(w)) for w in leads)
    if work.direct:
        return tiles * tile_rows * tile_cols * rows.kernel * cols.kernel
    under, across = min(rows.span(tile_rows), rows.size), cols.span(tile_cols)
    if not work.channels_last:
        across = max(across, NARROW)
    if work.return_indices:  # elements under each leading tap are pooled, then merged
        rows_taken = max(under, tile_rows)
        return tiles * (under * across * cols.cost + rows_taken * tile_cols * (rows.cost + 1))
    return tiles * across * (under + tile_rows * (1 + cols.cost))


def _elements(window):
    """Return the largest number of elements, a dilation apart, that a window can hold."""
    return -(-window.size // window.dilation)


def running_axes(windows, channels):
    """Return the axes for the kernel from the innermost on, the channels of a tile, and the cost.

    Each axis is (number of the window, outputs of a tile, vectors between kept suffixes, number of
    kept suffixes). Axes of one element that is the only output are left out. The outermost axis is
    not cut, and its outputs need no scratch. The other axes are sorted by outputs per element, the
    fewest first. Then no vector between two axes is larger than both the input and the output.
    """
    order = [i for i, w in enumerate(windows) if not w.is_trivial] or [0]
    order.sort(key=lambda i: (windows[i].out / max(1, windows[i].size), -i))
    choices = []
    for top in order:
        inner = [i for i in order if i != top]
        axes, width = _tiles(windows, inner, top, channels)
        choices.append((_cost(windows, axes, width, channels), axes, width))
    cost, axes, width = min(choices)
    return axes, width, cost


def _tiles(windows, inner, top, channels):
    """Return the axes with tiles as large as scratch allows, and the channels of a tile."""
    most = SCRATCH_PAIRS
    while True:
        most //= 2
        axes, width = _tiles_within(windows, inner, top, channels, most)
        if _scratch_pairs(axes, width) <= SCRATCH_PAIRS or most < len(axes):
            return axes, width


def _scratch_pairs(axes, width):
    """Return the scratch that `plan_running_maxima` lays out along these axes, in pairs.

    Each axis has two blocks, the kept suffixes, a queue and two vectors.
    """
    pairs, n = 0, width
    for level, (_, tile, block, marks) in enumerate(axes):
        pairs += (2 * block + marks + (1 if level else QUEUE) + 2) * n
        n *= tile
    return pairs


def _tiles_within(windows, inner, top, channels, pairs):
    """Return the axes and channels if the outermost axis takes at most `pairs` of scratch."""
    tiles = {i: max(1, windows[i].out) for i in inner}
    block, marks = _blocks(windows[top])
    most = pairs // (2 * block + marks + 3)

    def overlap(i):
        return windows[i].extent / (tiles[i] * windows[i].stride)

    while channels * math.prod(tiles.values()) > most:
        longer = [i for i in inner if tiles[i] > 1]
        if channels > 16 or (channels > 1 and not longer):
            channels = -(-channels // 2)
        elif longer:
            cut = min(longer, key=overlap)
            tiles[cut] = -(-tiles[cut] // 2)
        else:
            break
    axes, n = [], channels
    for i in inner:
        vectors = pairs // (2 * len(inner)) // n
        axes.append((i, tiles[i], *_blocks(windows[i], vectors)))
        n *= tiles[i]
    return (*axes, (top, 0, block, marks)), channels


def _blocks(window, vectors=0):
    """Return the vectors between kept suffixes and how many are kept: all elements if they fit."""
    elements = _elements(window)
    if 2 * elements <= max(vectors, SHORT):
        return max(1, elements), 1
    taps = min(window.kernel, elements)
    block = math.isqrt(taps) + 1
    return block, -(-taps // block) + 1


def _cost(windows, axes, width, channels):
    """Return the reads of elements for one plane, or for all channels of pixels, along all axes."""
    calls, n = -(-channels // width), width
    sizes = []
    for i, tile, block, _ in axes:
        window = windows[i]
        outputs = tile or window.out
        calls *= -(-window.out // outputs) if outputs else 0
        # Past the first block every element is read in two passes and a third.
        passes = 1 if _elements(window) <= block else 3
        read = passes * min(window.span(outputs), window.size) if outputs else 0
        sizes.append((n, read, outputs))
        n *= outputs
    cost = 0
    for n, read, outputs in reversed(sizes):
        cost += calls * n * (read + outputs)
        calls *= read
    return cost
