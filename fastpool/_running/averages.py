"""Turn a plan of averages into the work of a compiled `Averaging`: windows, counts and tiles."""

import math
from typing import NamedTuple

from .._planning.dtypes import ITEMSIZE, is_float
from . import sum_strategies
from .divisor_counts import counts_of, divisors, most_divisor, values_of
from .pair_sizes import INTERLEAVED, NO_PAIRS, pair_sizes
from .passes import Window, chain, trimmed, whole_window
from .sum_strategies import (
    FEW_TAPS,
    FEWEST_CHANNELS,
    SumWindows,
    carries_columns,
    choose,
    most_taps,
)
from .work import NO_ROWS, work_bytes

# Outputs that are summed before they are divided: they should stay in the first-level cache.
BLOCK_OUTPUTS = 1024
# Sums of columns along one row of a tile.
ROW_ELEMENTS = 4096
# Small windows: outputs of a block, outputs of a tile along a row of pixels, and bytes of scratch
# for rows of the input, or for results of interleaved planes.
SMALL_BLOCK = 4096
SMALL_OUTPUTS = 512
SMALL_SCRATCH = 1 << 20
# Sums of columns in 32 bits that are added up before their windows, if rows are short.
INT_BANDS = 4096
# Taps of windows from which on blocks are smaller.
MANY_INT_TAPS = 16
# Bytes of rows that are converted to integers, if they are more than those under one window.
INT_ROW_BYTES = 64 << 10
# Windows that are added pixel by pixel: outputs of a tile along a row. Fewer read memory in pieces.
PIXEL_OUTPUTS = 2048
# Elements of a row of zeros that stands for padding, next to rows that are read where they are.
MOST_ZEROS = 1 << 15
# Of planes that are interleaved: bytes of a group under a tile that stay in the second-level cache,
# and output rows of a tile: fewer read too many elements twice.
INTERLEAVED_BYTES = 256 << 10
FEWEST_ROWS = 4
# Doubles under a block that are split into two digits: those that stay in the first-level cache,
# the most, how often each one is split at most, and how often windows read it at least, if they are
# of few taps over many channels (double_double.pxi says so too).
SPLIT_GOAL = 1 << 11
SPLIT_ELEMENTS = 1 << 15
MOST_SPLITS = 4
SPLIT_READS = 2
MOST_PAIR_TAPS = 32
# Taps along leading axes, whose offsets are kept, from which the longest of them become rows.
MOST_OFFSETS = 4096
# Outputs of a tile along a row that are more than the elements under them.
MOST_OUTPUTS = 1 << 14
# Elements of a window along a row from which the row is pooled as a column, whose sums need no
# scratch. Dilated windows are not: their tiles are this long, or a quarter of a window.
LONG_ROW = 1 << 17
# Tiles for threads, and bytes of input that one has at least.
SOME_TASKS = 16
TASK_BYTES = 64 << 10
# Bits of the range of each float type, from the least subnormal to the largest number.
RANGE_BITS = {"float16": 190, "bfloat16": 280, "float32": 280, "float64": 2110}
# Sums besides those of digits, which count infinities and NaN (average.pxi repeats it).
MARKS = 3
# Parts of a sum that are added to one another.
MOST_LANES = 64


class SumWork(NamedTuple):
    """The description of an average pooling from which `fastpool._kernels.Averaging` is made."""

    input_shape: tuple
    output_shape: tuple
    dtype: str
    result: str
    rounding: str
    ignore_nan: bool
    sequential: bool
    rounds_once: bool  # a sum of doubles is rounded as its mean is, unless that is subnormal
    windows: tuple  # leading axes, rows, columns
    lead_taps: tuple  # the most of one window, along each leading axis
    counts: tuple  # per window: what each output's divisor is the product of (`counts_of`)
    divisor: float  # of all windows, or 0
    most_divisor: float  # of any window
    spatial_axes: tuple  # their positions in the array; -1 for rows that do not exist
    batch_axis: int
    channel_axis: int
    batch: int
    channels: int
    channels_last: bool
    strategy: str  # of `sum_strategies`
    declined: tuple  # (name, reason) of each before it
    carries_rows: bool
    carries_cols: bool
    interleaves: bool  # planes, channels first
    interleaved: int  # elements of these under a tile
    tile: tuple  # output rows, output columns, channels, planes
    block: int  # outputs that are summed, and then divided
    block_rows: int
    divisors: tuple  # what those of a row have in common; empty if there are too many
    small_floats: bool  # sums are floats, which are exact
    pitch: int  # elements from one of these rows to the next
    zeros: int  # elements of a row of padding, which is as long as rows that are read in place
    rows: int  # of these under a block
    split: int  # doubles of a block as two digits; 0: they are not split
    pairwise: int  # bytes of a sum that is added in pairs; 0: sums are added otherwise
    walks: bool  # in pairs, are the columns of each output added on their own?
    parts: int  # elements of parts of trees
    lines: int  # rows that are converted at once before they are added in pairs
    tall: int  # elements of parts that rows of tall windows share
    long_rows: int  # rows of sums whose columns are added at once
    whole: bool  # have planes one window each?
    wide_counts: bool  # do only doubles hold the numbers of NaN of a window?
    int_bands: int  # rows of columns that are added up before their windows
    int_rows: int  # rows that are converted to integers, in each slab
    int_taps: int  # of a window
    band: int  # sums of columns with their margins
    lag: int  # columns from one prefix to the next
    digit_bits: int
    terms: float  # more than the additions of a window
    most_digits: int
    nbytes: int
    effort: int  # bytes, or additions if they are in order: what decides about the GIL
    return_indices: bool = False
    index_bytes: int = 8


def _arranged(plan, pairwise, sequential, channels_last, moves):
    """Return windows, places of axes and counts, as the kernels take them: leads, rows, columns.

    `moves` says whether the columns may be another axis than the last one, which is contiguous.
    """
    windows = list(map(whole_window if pairwise else trimmed, plan.axes))
    axes = list(plan.spatial)
    counted = plan.counted or (None,) * len(windows)
    counts = [1.0] * len(windows)
    if plan.divisor is None:
        counts = list(map(counts_of, plan.axes, counted))
    # Axes of one element come first, which keeps the order of taps: rows and columns are long then,
    # and few offsets of slabs are kept.
    order = range(len(windows))
    order = sorted(order, key=lambda i: not windows[i].is_trivial or (i == order[-1] and not moves))
    windows, axes, counts = ([of[i] for i in order] for of in (windows, axes, counts))
    if len(windows) == 1:
        windows.insert(0, NO_ROWS)
        axes.insert(0, -1)
        counts.insert(0, 1.0)
    if pairwise or sequential:
        return windows, axes, counts

    def swap(one, other):
        for values in (windows, axes, counts):
            values[one], values[other] = values[other], values[one]

    if channels_last and axes[-2] < 0:
        # Channels are what is contiguous, so rows and columns are alike. Columns need scratch.
        swap(-2, -1)
    longest = max(range(len(windows) - 1), key=lambda axis: most_taps(windows[axis]))
    is_longer = most_taps(windows[longest]) > max(FEW_TAPS, most_taps(windows[-2]))
    slabs = math.prod(map(most_taps, windows[:-2]))
    if is_longer and (windows[longest].out > 1 or slabs > MOST_OFFSETS):
        # Rows are carried from window to window, and taps of leading axes are added one by one.
        swap(longest, -2)
    cols = windows[-1]
    if cols.dilation == 1 and cols.out > 1 and most_taps(cols) > LONG_ROW:
        if not channels_last and axes[-2] >= 0:  # (no other axis is contiguous, so none is left)
            windows.insert(-1, Window(1, 1, 1, 1, 1, 0, chain(1, 1)))
            axes.insert(-1, -1)
            counts.insert(-1, 1.0)
        swap(-2, -1)
    is_long = windows[-2].dilation > 1 and most_taps(windows[-2]) > FEW_TAPS
    if is_long and channels_last:
        # Rows of dilated windows are not carried. Prefixes of columns may be dilated.
        swap(-2, -1)
    return windows, axes, counts


def make_sum_work(plan, moves=True, off=()):
    """Return the work of a plan.

    With `moves`, arrays are contiguous along the last spatial axis of more than one element. `off`
    are the names of strategies that are switched off.
    """
    channels_last = plan.channels_last and plan.channels > 1
    sequential = plan.numerics == "sequential" and is_float(plan.dtype)
    pairwise = plan.numerics == "pairwise" and is_float(plan.dtype)
    windows, axes, counts = _arranged(plan, pairwise, sequential, channels_last, moves)
    *leads, rows, cols = windows
    lead_taps = tuple(map(most_taps, leads))
    interleaved_rows = 0 if channels_last else _interleaved_rows(plan, windows, sequential)
    interleaves = interleaved_rows > 0
    strategy, declined = (
        ("pairwise", ())
        if pairwise
        else choose(
            SumWindows(
                leads=tuple(leads),
                rows=rows,
                cols=cols,
                channels=plan.channels if channels_last else INTERLEAVED if interleaves else 1,
                interleaved=interleaves,
                dtype=plan.dtype,
                result=plan.result_dtype,
                sequential=sequential,
                ignores_nan=plan.nan == "ignore",
            ),
            off,
        )
    )
    whole, small = strategy == "whole_planes", strategy == "small_windows"
    in_bytes, in_ints = strategy == "byte_columns", strategy == "int_columns"
    carries_rows, carries_cols = _carries(rows, cols, strategy)
    doubles = plan.dtype == "float64" and not (
        whole or pairwise or sequential or plan.nan == "ignore"
    )
    limit = ROW_ELEMENTS // 4 if doubles else ROW_ELEMENTS
    if interleaves:
        tile = _interleaved_tile(plan, windows, interleaved_rows)
        tile_rows, tile_cols, channels, planes = *tile[:2], INTERLEAVED, 1
        under = min(rows.size, rows.span(tile_rows)) * cols.size
        interleaved = math.prod(lead_taps) * under * INTERLEAVED
    else:
        tile = _tile(plan, windows, channels_last, limit, strategy)
        tile_rows, tile_cols, channels, planes = tile
        interleaved = 0
    span = _span(cols, tile_cols) if not carries_cols else min(cols.size, _span(cols, tile_cols))
    additions = math.prod(lead_taps) * (most_taps(rows) + (rows.stride if carries_rows else 0))
    additions *= min(cols.size, span) if carries_cols else cols.kernel
    bits, digits = _digits(plan.dtype, additions)
    width = max(1, tile_cols * channels)
    most = BLOCK_OUTPUTS
    if small or in_bytes or in_ints:
        # (A block of halves is summed again if one of its elements is no multiple of the unit.)
        many = in_ints and math.prod(map(most_taps, windows)) > MANY_INT_TAPS
        most = SMALL_BLOCK // 2 if many else SMALL_BLOCK
    block = max(width, min(most, tile_rows * width * planes))
    split = 0
    if doubles:
        under = max(1, math.prod(lead_taps) * min(cols.size, span) * channels)
        block, split = _split(windows, strategy, tile_rows, block, width, under, channels)
    pitch = zeros = small_rows = 0
    small_floats = (in_bytes or in_ints) and _sums_fit_floats(
        plan, math.prod(map(most_taps, windows))
    )
    int_rows = 0
    if in_ints and plan.dtype in ("float16", "bfloat16") and rows.stride < rows.kernel:
        row_bytes = 4 * math.prod(lead_taps) * max(1, min(cols.size, span) * channels)
        block, int_rows = _converted(rows, row_bytes, tile_rows, block, width)
    if small:
        pitch = zeros = _pitch(cols, tile_cols, channels)
        if channels_last:
            zeros = max(pitch, min(MOST_ZEROS, _pitch(cols, tile_cols, plan.channels)))
        added = not sequential and plan.dtype != "float64"
        slabs = 1 if added else math.prod(lead_taps)
        block_rows = _small_rows(rows, min(tile_rows, block // width), pitch * slabs)
        if block_rows < min(tile_rows, block // width):
            block = block_rows * width
        small_rows = slabs * rows.span(block_rows)
    pairs = NO_PAIRS
    if pairwise:
        under = tile_rows, tile_cols, channels, planes
        pairs = pair_sizes(plan, windows, under, span, channels_last, moves)
        span, pitch, block = pairs.span, pairs.pitch, pairs.block_rows * width
    return SumWork(
        input_shape=plan.input_shape,
        output_shape=plan.output_shape,
        dtype=plan.dtype,
        result=plan.result_dtype,
        rounding=plan.rounding,
        ignore_nan=plan.nan == "ignore" and is_float(plan.dtype),
        sequential=sequential,
        rounds_once=doubles and not carries_cols and _rounds_once(plan, windows, counts),
        windows=tuple(windows),
        lead_taps=lead_taps,
        counts=tuple(counts),
        divisor=float(plan.divisor or 0),
        most_divisor=float(abs(most_divisor(plan))),
        spatial_axes=tuple(axes),
        batch_axis=plan.batch_axis,
        channel_axis=plan.channel_axis,
        batch=plan.batch,
        channels=plan.channels,
        channels_last=channels_last,
        strategy=strategy,
        declined=declined,
        carries_rows=carries_rows,
        carries_cols=carries_cols,
        interleaves=interleaves,
        interleaved=interleaved,
        tile=tile,
        block=block,
        block_rows=block // width,
        divisors=divisors(plan, counts, cols.out),
        small_floats=small_floats,
        pitch=pitch,
        zeros=zeros,
        rows=small_rows,
        int_bands=max(1, min(tile_rows, INT_BANDS // (span * channels + 64))) if in_ints else 0,
        int_rows=int_rows,
        int_taps=max(1, math.prod(map(most_taps, windows))),
        split=split,
        pairwise=pairs.item,
        walks=pairs.walks,
        parts=pairs.parts,
        lines=pairs.lines,
        tall=pairs.tall,
        long_rows=pairs.long_rows,
        whole=whole or pairs.one_window,
        wide_counts=max(math.prod(map(most_taps, windows)), abs(most_divisor(plan))) > 2**24,
        band=0 if whole else span * channels + 64,
        lag=0 if whole else min(cols.dilation, max(1, cols.size)),
        digit_bits=bits,
        terms=float(math.prod(map(most_taps, windows)) + MOST_LANES),
        most_digits=digits,
        nbytes=work_bytes(plan),
        effort=max(work_bytes(plan), _additions(plan, windows) if sequential else 0),
    )


def _additions(plan, windows):
    """Return at most how many elements are added up, one by one."""
    return math.prod(plan.output_shape) * math.prod(map(most_taps, windows))


def _carries(rows, cols, strategy):
    """Are sums of columns carried to the next row of windows, and sums of windows along a row?"""
    if strategy in ("pairwise", "whole_planes", "small_windows"):
        return False, False
    down = 2 * rows.stride + 3 < rows.kernel and rows.dilation == 1 and not rows.places
    if strategy == "byte_columns":
        return down, False
    return down, carries_columns(cols)


def _digits(dtype, additions):
    """Return the bits of a digit whose sums are exact, and how many sums there are with marks."""
    bits = 51 - math.ceil(math.log2(max(2, additions)))
    digits = -(-RANGE_BITS[dtype] // bits) + 3 if is_float(dtype) else max(1, ITEMSIZE[dtype] // 2)
    return bits, digits + MARKS


def _rounds_once(plan, windows, counts):
    """Do windows have at most two elements, and are divisors powers of two?"""
    if math.prod(map(most_taps, windows)) > 2:
        return False
    if plan.divisor is not None:
        counts = [float(plan.divisor)]
    divisors = [tuple(map(int, map(abs, values_of(count)))) for count in counts]
    return all(divisors) and not any(n & (n - 1) for values in divisors for n in values)


def _split(windows, strategy, tile_rows, block, width, under, channels):
    """Return the outputs of a block of doubles, and the elements under it, which are split.

    `width` is that of a row of outputs, `under` the elements of a row of the input, `channels` are
    those of a tile. 0: elements are not split, because two doubles take less time.
    """
    rows = windows[-2]
    if rows.places:
        elements = rows.size * under
    else:
        fewest = -(-2 * (rows.extent - rows.stride) // rows.stride)
        room = (SPLIT_GOAL // under - rows.extent) // rows.stride + 1
        block_rows = min(max(room, fewest, 1), tile_rows)
        if block_rows < tile_rows:
            block_rows = min(block_rows, max(1, SMALL_BLOCK // width))
            block = block_rows * width
        read = min(rows.size, rows.span(block_rows))
        if block_rows < rows.out and read > MOST_SPLITS * block_rows * rows.stride:
            return block, 0  # (blocks share most of their rows)
        elements = read * under
    taps = math.prod(map(most_taps, windows))
    reads = taps * math.prod(window.out / max(1, window.size) for window in windows)
    wide = channels >= FEWEST_CHANNELS
    if strategy == "pixels" or (wide and taps <= MOST_PAIR_TAPS and reads < SPLIT_READS):
        return block, 0
    in_pairs = strategy == "small_windows" or (wide and taps <= MOST_PAIR_TAPS)
    most = 2 * SPLIT_GOAL if in_pairs else SPLIT_ELEMENTS
    return block, elements if elements <= most else 0


def _converted(rows, row_bytes, tile_rows, block, width):
    """Return the outputs of a block, and the rows of floats under it that become integers."""
    most = min(block // width, tile_rows)  # (a block may be of several planes, if they are small)
    room = (INT_ROW_BYTES // row_bytes - rows.extent) // rows.stride + 1
    if room < most:
        most = max(1, room)
        block = most * width
    return block, max(1, min(rows.size, rows.span(most) + rows.extent))


def _small_rows(rows, most, pitch):
    """Return the output rows of a block of small windows, at most `most`.

    `pitch` is that of rows of the input, in all slabs.
    """
    room = SMALL_SCRATCH // (8 * pitch) - rows.extent
    return max(1, min(most, room // rows.stride + 1))


def _interleaved_rows(plan, windows, sequential):
    """Return the output rows of a tile of interleaved planes; 0 if they are not interleaved."""
    *leads, rows, cols = windows
    planes, itemsize = plan.batch * plan.channels, ITEMSIZE[plan.dtype]
    if planes < INTERLEAVED // 2 or 0 in plan.output_shape:  # (most of a group would be zeros)
        return 0
    nbytes = itemsize * _groups(plan) * INTERLEAVED / planes  # zeros of the last group included
    if plan.numerics == "pairwise" and is_float(plan.dtype):
        if not sum_strategies.interleaves_pairs(windows, nbytes):
            return 0
    elif not sum_strategies.interleaves(windows, nbytes, plan.dtype, sequential):
        return 0
    if _span(cols, cols.out) > max(ROW_ELEMENTS, 4 * cols.size):  # (nearly all of it is padding)
        return 0
    row_bytes = math.prod(map(most_taps, leads)) * cols.size * INTERLEAVED * itemsize
    room = INTERLEAVED_BYTES // max(1, row_bytes)
    most = rows.out if room >= rows.size else (room - rows.extent) // rows.stride + 1
    # Rows of padding or of parts may be many more than those of the input.
    most = min(most, SMALL_SCRATCH // max(1, cols.out * INTERLEAVED * ITEMSIZE[plan.result_dtype]))
    if most < min(FEWEST_ROWS, rows.out) or (rows.places and most < rows.out):
        return 0
    return _part(rows.out, most)


def _groups(plan):
    """Return how many groups of planes there are to interleave; the last may lack some."""
    return -(-plan.batch * plan.channels // INTERLEAVED)


def _interleaved_tile(plan, windows, tile_rows):
    """Return the output rows, output columns, channels and planes of a tile."""
    *leads, rows, cols = windows
    groups = _groups(plan)
    pieces = groups * math.prod(w.out for w in leads) * -(-rows.out // tile_rows)
    return tile_rows, cols.out, 1, INTERLEAVED * _of_a_task(plan, groups, pieces)


def _of_a_task(plan, whole, pieces):
    """Return how many of `whole` planes, or groups of them, a task takes; all have `pieces`."""
    enough = max(SOME_TASKS, min(_input_bytes(plan) // TASK_BYTES, pieces))
    return max(1, min(whole, pieces // enough))


def _input_bytes(plan):
    return math.prod(plan.input_shape) * ITEMSIZE[plan.dtype]


def _sums_fit_floats(plan, taps):
    """Are sums of elements exact in float32, and means of their type?"""
    if plan.result_dtype != plan.dtype or plan.dtype not in ("int8", "uint8", "int16", "uint16"):
        return False
    return taps * 2 ** (8 * ITEMSIZE[plan.dtype]) < 2**24


def _pitch(cols, outputs, channels):
    """Return the elements of a row of a tile, every stride-th one next to another."""
    margin = 64  # whole vectors are read and written
    if cols.stride > 1:  # (rows of few channels are split by the stride)
        return cols.stride * ((cols.span(outputs) // cols.stride + 1) * channels + margin)
    return cols.span(outputs) * channels + margin


def _span(window, outputs):
    """Return at most the elements under neighbouring outputs, with the padding around them."""
    if window.places:
        of_size, of_outputs, _ = window.places
        return min(window.size, max(1, outputs) * of_size // of_outputs + 2)
    return window.span(max(1, outputs))


def _tile(plan, windows, channels_last, limit, strategy):
    """Return the output rows, output columns, channels and planes of a tile.

    `limit` is that of sums of columns along one row, if windows are not longer.
    """
    direct = strategy in ("small_windows", "pixels")
    outputs = PIXEL_OUTPUTS if strategy == "pixels" else SMALL_OUTPUTS
    *leads, rows, cols = windows
    out_rows, out_cols = max(1, rows.out), max(1, cols.out)
    channels = 1
    if channels_last:
        under = min(cols.size, _span(cols, out_cols))
        most = outputs if direct else max(64, limit // max(1, under))
        if strategy in ("byte_columns", "int_columns"):  # (parts of pixels would be too few bytes)
            most = max(64, 4 * limit // cols.extent)
        channels = _part(plan.channels, most)
        while 0 < plan.channels % channels < FEWEST_CHANNELS:
            channels -= 1  # the last part is as wide as vectors are, too
    columns = out_cols
    if direct:
        most = outputs // channels if channels_last else limit // cols.stride
        columns = _part(out_cols, max(1, most))
        limit = max(limit, 4 * cols.size * channels)
    if _span(cols, columns) * channels > limit:
        under = min(cols.extent, max(64, 2 * cols.size))  # of long windows, most is padding
        room = max(limit // channels - under, min(3 * under, max(LONG_ROW, under // 4)))
        columns = min(columns, _part(out_cols, max(1, room // cols.stride)))
    elif columns * channels > MOST_OUTPUTS:  # (of hardly any elements)
        columns = _part(out_cols, max(1, MOST_OUTPUTS // channels))
    planes = 1
    whole = plan.batch * (-(-plan.channels // channels) if channels_last else plan.channels)
    pieces = math.prod(w.out for w in leads) * whole * -(-out_cols // columns)
    if pieces >= SOME_TASKS:
        if not channels_last and columns == out_cols:
            planes = _of_a_task(plan, whole, pieces)
        return out_rows, columns, channels, planes
    parts = min(SOME_TASKS // max(1, pieces), -(-_input_bytes(plan) // TASK_BYTES), out_rows)
    if strategy == "pairwise":  # (of tall windows, parts would share most of their rows)
        parts = min(parts, max(1, out_rows * rows.stride // rows.extent))
    return -(-out_rows // max(1, parts)), columns, channels, planes


def _part(total, most):
    """Return the size of nearly equal parts of at most `most`."""
    return -(-total // -(-total // max(1, most))) if total else 1
