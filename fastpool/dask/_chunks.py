"""Find which parts of which chunks a block of the result needs, and compute one block.

A block is made from pieces: one of its own chunk, and strips of neighbouring chunks. Workers run
only this module, which does not import dask.
"""

from bisect import bisect_left, bisect_right
from itertools import accumulate, product
from math import prod
from typing import NamedTuple

import numpy as np

from .._api.maximum import max_unpool
from .._planning.parts import owned, part

# Indices that are checked at a time: their temporaries stay in the second-level cache.
INDICES_AT_ONCE = 1 << 14


class Share(NamedTuple):
    """The part of one axis that a block takes."""

    output: slice  # of the result
    read: slice  # of the input
    pieces: tuple  # (chunk, slice of it) for each part that is read
    own: int  # the piece from the block's own chunk
    windows: tuple | None = None  # unpooling: (kernel, stride, begin) if indices must be in windows


def pooled_shares(axis, chunks):
    """Return the blocks along an axis: an `Axis`, or None if it is not pooled."""
    edges = [0, *accumulate(chunks)]
    ends = edges[1:] if axis is None else owned(axis, chunks)
    shares = []
    for own, (first, stop) in enumerate(zip([0, *ends], ends, strict=False)):
        read = (first, stop) if axis is None else part(axis, first, stop)[0]
        if first < stop:
            shares.append(_share((first, stop), read, edges, own))
    return shares or [_share((0, 0), (0, 0), edges, 0)]


def unpooled_shares(windows, chunks, extent):
    """Return the blocks along an axis of an unpooling's result.

    A block begins with the first window of its chunk. It also takes earlier windows that reach into
    it.
    """
    edges = [0, *accumulate(chunks)]
    if len(chunks) == 1:
        return [_share((0, extent), (0, edges[-1]), edges, 0)]
    kernel, stride, begin = windows
    starts = [min(max(edge * stride - begin, 0), extent) for edge in edges[1:-1]]
    starts, stops = [0, *starts], [*starts, extent]
    kept = [own for own in range(len(chunks)) if starts[own] < stops[own]] or [0]
    shares = []
    for own in kept:
        # The values of windows outside the result have no place. The first and the last block take
        # these windows and raise.
        low = min(max((starts[own] + begin - kernel) // stride + 1, 0), edges[own])
        low = 0 if own == kept[0] else low
        high = edges[-1] if own == kept[-1] else edges[own + 1]
        share = _share((starts[own], stops[own]), (low, high), edges, own)
        shares.append(share._replace(windows=windows))
    return shares


def _share(output, read, edges, own):
    low, high = read
    chunks = range(
        min(own, bisect_right(edges, low) - 1),
        max(own + 1, bisect_left(edges, high)),
    )
    pieces = []
    for chunk in chunks:
        start, stop = edges[chunk], edges[chunk + 1]
        ends = (min(max(at, start), stop) - start for at in read)
        pieces.append((chunk, slice(*ends)))
    return Share(slice(*output), slice(*read), tuple(pieces), own - chunks.start)


# -------------------------------------------------------------------------------------- one block


def cut_out(chunk, cut):
    """Return a copy of a strip. A view would keep the chunk in memory."""
    return chunk[cut].copy()


def arranged(counts, own, cut, *blocks):
    """Return the pieces in an array of arrays; the block's own chunk is cut here."""
    pieces = np.empty(counts, object)
    for index, block in zip(np.ndindex(counts), blocks, strict=True):
        pieces[index] = block[cut] if index == own else block
    return pieces


def pool_block(plan, dtypes, outputs, pieces):
    """Compute one block. Windows inside its own chunk are pooled in place, others from copies."""
    plan = plan.tile(outputs).plan
    results = tuple(np.empty(plan.output_shape, dtype) for dtype in dtypes)
    for box in product(*_inside_and_across(plan, pieces)):
        tile = plan.tile(box)
        tile.plan(_joined(pieces, tile.read), *(result[tile.write] for result in results))
    return results if len(results) > 1 else results[0]


def _inside_and_across(plan, pieces):
    """Return per axis the outputs whose windows end in the block's own chunk, and the rest."""
    cuts = [[slice(0, extent)] for extent in plan.output_shape]
    for place, axis in zip(plan.spatial, plan.axes, strict=True):
        if pieces.shape[place] > 1:
            inside = axis.ending_by(pieces.flat[0].shape[place])
            both = slice(0, inside), slice(inside, axis.output)
            cuts[place] = [cut for cut in both if cut.start < cut.stop]
    return cuts


def _joined(pieces, wanted):
    """Return a box of the array that the pieces form: a view if one piece holds it."""
    chosen = []
    for place, cut in enumerate(wanted):
        line = pieces[(0,) * place + (slice(None),) + (0,) * (pieces.ndim - place - 1)]
        edges = [0, *accumulate(piece.shape[place] for piece in line)]
        chosen.append(_share((0, 0), (cut.start, cut.stop), edges, 0).pieces)
    parts = np.empty(tuple(map(len, chosen)), object)
    for index in np.ndindex(parts.shape):
        which, cut = zip(*(c[i] for c, i in zip(chosen, index, strict=True)), strict=True)
        parts[index] = pieces[which][cut]
    return parts.flat[0] if parts.size == 1 else np.block(parts.tolist())


def unpool_block(plan, shares, x, indices):
    """Compute one block: unpool into all that the windows of its values cover, then cut."""
    counted = dict(enumerate(plan.output_shape))
    if plan.index_space == "inferred":
        counted.update(zip(plan.spatial, plan.inferred, strict=True))
    windows = [_windows(share, counted[place]) for place, share in enumerate(shares)]
    covered = [_covered(share.output, ends) for share, ends in zip(shares, windows, strict=True)]
    shape = tuple(stop - start for start, stop in covered)

    whole = tuple(slice(0, share.read.stop - share.read.start) for share in shares)
    x, indices = _joined(x, whole), _joined(indices, whole)
    local = np.empty(indices.shape, np.int64)
    digits = list(counted)
    if plan.channels_last and plan.index_layout == "NCHW":
        digits.insert(plan.spatial[0], digits.pop())
    digits = digits[plan.index_axis :]
    total = prod(counted[place] for place in digits)
    for box in _stretches(indices.shape):
        rest = indices[box].astype(np.int64)
        wrong = (rest < 0) | (rest >= total)
        if wrong.any():
            what = f"outside [0, {total}), the elements that it counts in"
            raise ValueError(_described(wrong, box, shares, indices, what))
        number, step = np.zeros_like(rest), 1
        for place in reversed(digits):
            along = rest
            if place != digits[0]:
                rest = rest // counted[place]
                along = along - rest * counted[place]
            if windows[place] is not None:
                low, high = (ends[box[place]] for ends in windows[place])
                aligned = [1] * rest.ndim
                aligned[place] = len(low)
                low, high = low.reshape(aligned), high.reshape(aligned)
                wrong |= (along < low) | (along >= high)
            number += (along - covered[place][0]) * step
            step *= shape[place]
        if wrong.any():
            what = (
                "not in the window of its value, as it must be along axes in several chunks; "
                "check kernel_shape, strides and pads, or rechunk"
            )
            raise ValueError(_described(wrong, box, shares, indices, what))
        local[box] = number

    y = max_unpool(
        x,
        local,
        1,
        output_shape=shape,
        layout=plan.layout,
        index_axis=plan.index_axis,
        index_layout=plan.index_layout,
        num_threads=plan.num_threads,
    )
    inside = tuple(
        slice(share.output.start - start, share.output.stop - start)
        for share, (start, _) in zip(shares, covered, strict=True)
    )
    return np.ascontiguousarray(y[inside])


def _windows(share, extent):
    """Return where the windows of a block's values begin and end; None if they do not matter."""
    if share.windows is None:
        return None
    kernel, stride, begin = share.windows
    starts = [o * stride - begin for o in range(share.read.start, share.read.stop)]
    ends = [[min(max(at, 0), extent) for at in (start, start + kernel)] for start in starts]
    return np.array(ends, np.int64).reshape(-1, 2).T


def _covered(output, windows):
    """Return the range of an axis with a block's output and all windows of its values."""
    if windows is None or not windows.size:
        return output.start, output.stop
    low, high = windows
    return min(output.start, int(low.min())), max(output.stop, int(high.max()))


def _stretches(shape):
    """Yield boxes of few elements in order, each contiguous in memory."""
    if 0 in shape:
        return
    axis, inner = 0, prod(shape[1:])
    while inner > INDICES_AT_ONCE:
        axis += 1
        inner //= shape[axis]
    step = max(1, INDICES_AT_ONCE // inner)
    rest = (slice(None),) * (len(shape) - axis - 1)
    for lead in np.ndindex(shape[:axis]):
        for start in range(0, shape[axis], step):
            yield (*(slice(i, i + 1) for i in lead), slice(start, start + step), *rest)


def _described(wrong, box, shares, indices, what):
    """Return a message about the first bad index, with its position in the whole array."""
    found = np.argwhere(wrong)[0] + [cut.start or 0 for cut in box]
    place = found + [share.read.start for share in shares]
    return f"indices[{', '.join(map(str, place))}]: {indices[tuple(found)]} is {what}"
