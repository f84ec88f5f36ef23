"""Running maxima along every axis: when they pay, and in which tiles.

Tiles of long windows overlap almost entirely, so that a call by tiles takes as long as the window
says. The kernel of `running_maxima.pxi` looks at each element three times per axis at most.
"""

import math

# Pairs of a key and a place, 16 bytes each, that one task may have in scratch.
SCRATCH_PAIRS = 96 << 10
# Loads of the other ways that take as long as one look at an element takes here, 3 to 10 ns: a load
# takes 0.1 to 0.4 for pairs of value and index, 0.01 to 0.1 for values (float32 and uint8, AVX2).
PAIR_LOADS = 40
VALUE_LOADS = 200
# Windows of so few taps are never dear, unless these are far apart.
FEW_TAPS = 64
# A load takes a vector, also of a narrow row.
NARROW = 16
# Elements that the innermost axis reads at a time (FAR_QUEUE of `running_maxima.pxi`).
QUEUE = 64
# Vectors of a short axis are read once.
SHORT = 64


def pays(work):
    """Are the loads of a work so many that running maxima over all axes take less time?"""
    windows, channels = work.windows, work.channels if work.channels_last else 1
    if math.prod(w.kernel for w in windows) <= FEW_TAPS and all(
        w.extent <= 2 * w.size + FEW_TAPS for w in windows
    ):
        return False
    least = PAIR_LOADS if work.return_indices else VALUE_LOADS
    loads = _loads(work)
    if loads <= least * math.prod(w.size for w in windows):  # (quick, and true of nearly all)
        return False
    return loads > least * far_axes(windows, channels)[2] / channels


def _loads(work):
    """Loads and stores per plane, or per channel of pixels, of a work of passes, about."""
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
    if work.return_indices:  # (what is under each leading tap is pooled and merged)
        rows_taken = max(under, tile_rows)
        return tiles * (under * across * cols.cost + rows_taken * tile_cols * (rows.cost + 1))
    return tiles * across * (under + tile_rows * (1 + cols.cost))


def _elements(window):
    """Elements that windows a dilation apart share at most."""
    return -(-window.size // window.dilation)


def far_axes(windows, channels):
    """The axes from the innermost on, as the kernel takes them; the channels of a tile; the cost.

    Each axis is (number of the window, outputs of a tile, vectors between kept suffixes, how many
    are kept). Axes of one element that is the only output are left out. The outermost axis is not
    cut, and its outputs need no scratch. The others come in the order of outputs per element, the
    fewest first: no vector between two axes is larger then than both the input and the output.
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
    """The axes, with tiles as large as scratch allows, and the channels of a tile."""
    most = SCRATCH_PAIRS
    while True:
        most //= 2
        axes, width = _tiles_within(windows, inner, top, channels, most)
        if _scratch_pairs(axes, width) <= SCRATCH_PAIRS or most < len(axes):
            return axes, width


def _scratch_pairs(axes, width):
    """What `place_far` lays out: two blocks, the kept suffixes, a queue and two vectors an axis."""
    pairs, n = 0, width
    for level, (_, tile, block, marks) in enumerate(axes):
        pairs += (2 * block + marks + (1 if level else QUEUE) + 2) * n
        n *= tile
    return pairs


def _tiles_within(windows, inner, top, channels, pairs):
    """The axes and channels where the outermost axis takes so many pairs of scratch at most."""
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
    """Vectors between suffixes that are kept, and how many those are: all elements if they fit."""
    elements = _elements(window)
    if 2 * elements <= max(vectors, SHORT):
        return max(1, elements), 1
    taps = min(window.kernel, elements)
    block = math.isqrt(taps) + 1
    return block, -(-taps // block) + 1


def _cost(windows, axes, width, channels):
    """Looks at elements for one plane, or for all channels of pixels, along all axes."""
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
