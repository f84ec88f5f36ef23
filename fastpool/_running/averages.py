"""Turn a plan of averages into the work of a compiled `Averaging`: windows, counts and tiles."""

import math
from typing import NamedTuple

from .._planning.dtypes import ITEMSIZE, is_float
from .borders import MOST_SHARE
from .divisor_counts import counts_of, divisors, most_divisor
from .interleaving import group_of, interleaves, most_taps
from .pass_sizes import (
    INTERLEAVED,
    MOST_LEAF,
    MOST_MARGINS,
    SMALL_INTEGERS,
    WHOLE_PLANES,
    are_signals,
    most_lines,
    pass_sizes,
    sizes_in_order,
)
from .passes import trimmed, whole_window
from .threads import THREAD_BYTES, is_always_one
from .work import NO_ROWS, has_pixels, images_as_one, work_bytes

# Elements along a row of a tile, at most: of single columns, and of pixels, which are read in one
# run if they are whole (56x56x128 float16 3x3 216 -> 126 us, AVX2).
ROW_ELEMENTS = 1 << 12
PIXEL_ELEMENTS = 1 << 15
# A tile keeps all channels if a row has room for this many extents of a window. It is contiguous
# then: with fewer channels, 220 random signals and images take 1.7 times as long.
LEAST_EXTENTS = 3
# Least channels of a tile (a vector of doubles), and the bytes of which parts are multiples.
FEWEST_CHANNELS, WHOLE_VECTORS = 8, 64
MOST_RESULTS = 1 << 20  # bytes, of interleaved planes
# Of interleaved planes: bytes of a group under a tile, and least output rows of a tile.
INTERLEAVED_BYTES = 256 << 10
FEWEST_ROWS = 4
# INTERLEAVED_BYTES of windows that differ in length along a row, and the most if tiles had fewer
# rows otherwise: 16x1000x1000 to 333x401 float64 119 -> 25 ms.
IRREGULAR_BYTES, MOST_IRREGULAR = 1 << 20, 4 << 20
# Columns of such a row (whose sums are doubles), of planes that are cut into tiles without and with
# a part of the bytes of the input (scratch takes up to 2300 bytes each, docs/promises.md).
IRREGULAR_COLUMNS, CUT_COLUMNS, CUT_BYTES = 32 << 10, 6 << 10, 1200
# Taps along leading axes, whose offsets are kept, from which the longest of them become rows.
MOST_OFFSETS = 4096
# Outputs of a tile along a row that are more than the elements under them.
MOST_OUTPUTS = 1 << 14
# Columns of signals, channels last, are added as rows if few windows overlap and begin ROW_OF_STEP
# elements apart, or if pixels have ROW_PIXEL bytes for each of up to MOST_OVER windows over them:
# 0.67 of the time (2,800 random signals, AVX2 0.76).
ROW_OF_STEP, ROW_PIXEL, MOST_OVER = 384, 64, 6
# Columns of windows longer than LONG_WINDOW have room in scratch up to MOST_COLUMNS elements. If
# there are more, and up to MOST_LONG windows over a column, they are added as rows (1x144521x50
# uint8 k176505 s5993, 268 -> 0.3 MiB), else of few channels (1x110000x3 k90000 15,000 -> 9 ms).
LONG_WINDOW, MOST_COLUMNS, MOST_LONG = 1 << 12, 1 << 18, 64
# Rows of a window above which tiles are narrow, so that their rows are converted once and windows
# share sums: 19312x129 uint8 k16140x5 9.9 -> 0.7 s.
TALL_WINDOW = 1 << 10
# Elements of dilated windows along a row: their tiles are this long, or a quarter of a window.
LONG_ROW = 1 << 17
# Tiles for threads: some, if they have a few bytes of input, and more of more bytes. A part of a
# plane has at least half of what a thread moves: 4x256x256 48 -> 43 us on one thread.
SOME_TASKS = 16
FEW_BYTES = 16 << 10
TASK_BYTES = 64 << 10
PART_BYTES = THREAD_BYTES // 2
# Of images of a batch that are pooled as one, at most: 32x2x2x8 float32 5.6 -> 1.3 us, 32x7x7x64
# 10.7 -> 7.0, but 8x28x28x64 20.7 -> 19.7, which threads can share.
IMAGE_BYTES = 16 << 10
# Of planes of one window, whose columns are added next to one another: 64x56x56 34 -> 24 us.
ONE_WINDOW_BYTES = 256 << 10
# Taps, and these per element and output, from which NumPy adds windows in pairs that are mostly
# padding; outputs from which kernels cut rows: 2x16000 float16 k67108865 950 -> 40 ms.
MANY_TAPS, FEW_TAPS, CUT_OUTPUTS = 1 << 22, 1 << 8, 1 << 17


class SumWork(NamedTuple):
    """The description of an average pooling from which `fastpool._kernels.Averaging` is made."""

    input_shape: tuple
    output_shape: tuple
    dtype: str
    result: str
    rounding: str
    ignore_nan: bool
    sequential: bool
    pairwise: bool
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
    group: int  # planes, channels first, that are interleaved, or 0
    interleaved: int  # elements of these under a tile
    tile: tuple  # output rows, output columns, channels, planes
    block: int  # outputs that are summed, and then divided
    block_rows: int
    divisors: tuple  # of rows, without the counts of columns; empty if there are too many
    by_value: bool  # with these counts, because columns are too many
    small_floats: bool  # sums are floats, which are exact
    pitch: int  # elements of a part of a row
    walks: bool  # are the columns of each output added on their own?
    parts: int  # elements of parts of trees
    lines: int  # rows that are converted at once before they are added
    line: int  # elements of such a row, at most
    tall: int  # elements of parts that rows of tall windows share
    byte_rows: bool  # do rows of bytes enter and leave sums?
    shorts: int  # columns of these that are added before they are floats
    long_rows: int  # rows of sums whose columns are added at once
    whole: bool  # have planes one window each?
    signals: bool  # are these planes one row of neighbours?
    wide_counts: bool  # do only doubles hold the numbers of NaN of a window?
    band: int  # sums of columns with their margins
    digit_bits: int  # of elements whose sums a double does not hold
    terms: float  # of a window
    nbytes: int
    effort: int  # bytes, or additions if they are in order: what decides about the GIL
    return_indices: bool = False
    index_bytes: int = 8
    beyond: tuple = ()  # as in `Work`
    joined: int = 0  # as in `Work`


def _arranged(plan, in_order, channels_last, moves, border):
    """Return windows, places of axes and counts, as the kernels take them: leads, rows, columns.

    `moves` says whether the columns may be another axis than the last one, which is contiguous.
    With `in_order` the order of additions depends on all taps and on the order of axes.
    """
    # (Integers keep no taps that no element ever stands under, if these are most of the taps.)
    far = any([axis.kernel > MOST_MARGINS * axis.size for axis in plan.axes])
    all_taps = border is not None or (plan.numerics == "pairwise" and (in_order or not far))
    windows = list(map(whole_window if all_taps else trimmed, plan.axes))
    axes = list(plan.spatial)
    counted = plan.counted or (None,) * len(windows)
    if border is not None:
        counted = (*counted[:-1], None)  # (all of its places count)
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
    taps = list(map(most_taps, windows[:-1])) if len(windows) > 2 else [1]
    longest = taps.index(max(taps))
    if taps[longest] > taps[-1] and not in_order:
        # Windows that overlap share sums along rows, but not along leading axes.
        slabs = math.prod(map(most_taps, windows[:-2]))
        if windows[longest].out > 1 or slabs > MOST_OFFSETS:
            for values in (windows, axes, counts):
                values[longest], values[-2] = values[-2], values[longest]
    if windows[-2].is_trivial and _columns_become_rows(windows, in_order, channels_last, plan):
        # (An axis of one element changes no order of additions.)
        for values in (windows, axes, counts):
            values[-2], values[-1] = values[-1], values[-2]
    return windows, axes, counts


def _columns_become_rows(windows, in_order, channels_last, plan):
    """Are the columns of signals better added as rows?

    8x1000x256, channels last, to one 1056 -> 440 us. Columns that many windows share are added once
    for all of them, if they are not rows.
    """
    cols = windows[-1]
    many = most_taps(cols) > (MOST_LEAF if channels_last else LONG_ROW)
    if cols.out == 1:
        return many and (channels_last or not are_signals(plan, windows))
    if not channels_last or (in_order and plan.numerics == "sequential"):
        return False
    step = cols.size // max(1, cols.out) if cols.places else cols.stride
    if many and (cols.places or 3 * step >= cols.extent):
        if plan.channels >= max(INTERLEAVED, ROW_OF_STEP / max(1, step)):
            return True
    if cols.places:
        return False
    each = max(1, cols.extent / step)  # windows over a column
    if cols.extent > LONG_WINDOW and cols.extent * plan.channels > MOST_COLUMNS:
        return each <= MOST_LONG
    pixel = plan.channels * ITEMSIZE[plan.dtype]
    if cols.span(cols.out) > 2 * cols.size or (plan.batch > 1 and cols.size * pixel <= IMAGE_BYTES):
        return False  # (most taps are padding, or images are pooled as one)
    if plan.dtype in SMALL_INTEGERS and (many or (step == 1 and ITEMSIZE[plan.dtype] == 1)):
        return many and each <= 4 * MOST_OVER and pixel >= ROW_PIXEL * (4 if step == 1 else 1)
    return each <= MOST_OVER and pixel >= ROW_PIXEL * each


def make_sum_work(plan, moves=True, border=None):
    """Return the work of a plan.

    With `moves`, arrays are contiguous along the last spatial axis of more than one element. A
    `Border` fills the padding of columns (`fills_columns`).
    """
    channels_last = has_pixels(plan, moves)
    floats = is_float(plan.dtype)
    sequential = plan.numerics == "sequential" and floats
    pairwise = plan.numerics == "pairwise" and floats
    windows, axes, counts = _arranged(plan, sequential or pairwise, channels_last, moves, border)
    batch, alike = plan.batch, moves and channels_last and border is None
    if alike and (one := images_as_one(plan, windows, IMAGE_BYTES)):
        batch, windows = 1, one
    *leads, rows, cols = windows
    lead_taps = tuple(map(most_taps, leads))
    taps = math.prod(map(most_taps, windows))
    interleaved_rows = 0 if channels_last else _interleaved_rows(plan, windows)
    if interleaved_rows:
        group = group_of(plan, windows)
        tile = _interleaved_tile(plan, windows, interleaved_rows, group)
        tile_rows, tile_cols, channels, planes = *tile[:2], group, 1
        under = min(rows.size, rows.span(tile_rows)) * cols.size
        interleaved = math.prod(lead_taps) * under * group
    else:
        tile = _tile(plan, batch, windows, channels_last, sequential)
        tile_rows, tile_cols, channels, planes = tile
        group = interleaved = 0
    reciprocals, by_value = divisors(plan, counts, cols.out)
    small_floats = plan.result_dtype == plan.dtype and plan.dtype in SMALL_INTEGERS
    small_floats = small_floats and taps << 8 * ITEMSIZE[plan.dtype] < 2**24  # (sums are exact)
    width = max(1, tile_cols * channels)
    under, span = (tile_rows, tile_cols, channels, planes), _span(cols, tile_cols)
    if sequential:
        sizes = sizes_in_order(plan, windows, under, span)
    else:
        doubles = "float64" in (plan.dtype, plan.result_dtype) if pairwise else not small_floats
        sizes = pass_sizes(plan, windows, under, span, channels_last, moves, 8 if doubles else 4)
    return SumWork(
        input_shape=plan.input_shape,
        output_shape=plan.output_shape,
        dtype=plan.dtype,
        result=plan.result_dtype,
        rounding=_rounding(plan),
        ignore_nan=plan.nan == "ignore" and floats,
        sequential=sequential,
        pairwise=pairwise,
        windows=tuple(windows),
        lead_taps=lead_taps,
        counts=tuple(counts),
        divisor=float(plan.divisor or 0),
        most_divisor=float(abs(most_divisor(plan))),
        spatial_axes=tuple(axes),
        batch_axis=plan.batch_axis,
        channel_axis=plan.channel_axis,
        batch=batch,
        channels=plan.channels,
        channels_last=channels_last,
        group=group,
        interleaved=interleaved,
        tile=tile,
        block=sizes.block_rows * width,
        divisors=reciprocals,
        by_value=by_value,
        small_floats=small_floats,
        wide_counts=max(taps, abs(most_divisor(plan))) > 2**24,
        digit_bits=51 - math.ceil(math.log2(max(2, taps))),
        terms=float(taps),
        nbytes=work_bytes(plan),
        effort=max(work_bytes(plan), math.prod(plan.output_shape) * taps if sequential else 0),
        **sizes._asdict(),
    )


def is_far(plan):
    """Are windows in pairs mostly padding, and too many for each to be added alone?"""
    if plan.numerics != "pairwise" or not is_float(plan.dtype):
        return False
    sizes, outputs = zip(*[(axis.size, axis.output) for axis in plan.axes], strict=True)
    between = [math.prod(outputs[:i] + sizes[i:]) for i in range(len(sizes) + 1)]
    return max(between) <= MOST_SHARE * (between[0] + between[-1]) and any(
        axis.span(axis.output) > MOST_MARGINS * (axis.size + min(axis.output, CUT_OUTPUTS))
        and axis.size * axis.output > FEW_TAPS * (axis.size + axis.output)
        and axis.size * math.prod(plan.output_shape) > MANY_TAPS
        for axis in plan.axes
    )


def _rounding(plan):
    """Return the rule by which means are rounded, the faster one of two if no sum is below 0."""
    positive = plan.dtype.startswith("uint") and (plan.divisor is None or plan.divisor > 0)
    return "floor" if positive and plan.rounding == "trunc" else plan.rounding


def fills_columns(plan, border):
    """Return the work of kernels that fill the padding of columns, next to sums of bytes, or None.

    It is filled by `border`. The tile has all columns.
    """
    if border.mode == "constant" or plan.dtype not in SMALL_INTEGERS:
        return None
    work = make_sum_work(plan, True, border)
    one = work.tile[1] == plan.axes[-1].output and work.spatial_axes[-1] == plan.spatial[-1]
    # (Kernels fold windows of one column: folds.pxi.)
    one &= plan.axes[-1].kernel > plan.axes[-1].stride == 1
    return work if one and work.shorts > 0 else None


def _interleaved_rows(plan, windows):
    """Return the output rows of a tile of interleaved planes; 0 if they are not interleaved."""
    *leads, rows, cols = windows
    planes, itemsize = plan.batch * plan.channels, ITEMSIZE[plan.dtype]
    if 0 in plan.output_shape or planes < (2 if cols.places else INTERLEAVED // 2):
        return 0  # (most of a group would be zeros)
    if cols.places and cols.size > IRREGULAR_COLUMNS:
        return 0
    groups = -(-planes // INTERLEAVED)
    nbytes = itemsize * groups * INTERLEAVED / planes  # zeros of the last group included
    if not interleaves(windows, nbytes, plan):
        return 0
    if _span(cols, cols.out) > max(ROW_ELEMENTS, 4 * cols.size):  # (nearly all of it is padding)
        return 0
    row_bytes = math.prod(map(most_taps, leads)) * cols.size * INTERLEAVED * itemsize
    group, results = INTERLEAVED_BYTES, MOST_RESULTS
    if cols.places:
        group = min(MOST_IRREGULAR, max(IRREGULAR_BYTES, rows.span(FEWEST_ROWS) * row_bytes))
        some = MOST_IRREGULAR * min(4, ITEMSIZE[plan.result_dtype]) // 4  # (sums are floats)
        results = min(MOST_IRREGULAR, max(some, work_bytes(plan)))
    room = group // max(1, row_bytes)
    most = rows.out if room >= rows.size else (room - rows.extent) // rows.stride + 1
    # Rows of padding or of parts may be many more than those of the input.
    most = min(most, results // max(1, cols.out * INTERLEAVED * ITEMSIZE[plan.result_dtype]))
    if most < min(FEWEST_ROWS, rows.out):
        return 0
    if cols.places and most < rows.out:
        if cols.size > CUT_COLUMNS + _input_bytes(plan) // CUT_BYTES:
            return 0
    return _part(rows.out, most)


def _interleaved_tile(plan, windows, tile_rows, group):
    """Return the output rows, output columns, channels and planes of a tile."""
    *leads, rows, cols = windows
    groups = -(-plan.batch * plan.channels // group)  # (the last one may lack planes)
    pieces = groups * math.prod(w.out for w in leads) * -(-rows.out // tile_rows)
    return tile_rows, cols.out, 1, group * _of_a_task(plan, groups, pieces, _some_tasks(plan))


def _some_tasks(plan):
    return 1 if is_always_one(plan.num_threads, work_bytes(plan)) else SOME_TASKS


def _of_a_task(plan, whole, pieces, some):
    """Return how many of `whole` planes, or groups, a task takes; all tasks have `pieces` tiles."""
    nbytes = _input_bytes(plan)
    enough = max(1, min(some, nbytes // FEW_BYTES), min(nbytes // TASK_BYTES, pieces))
    return max(1, min(whole, pieces // enough))


def _input_bytes(plan):
    return math.prod(plan.input_shape) * ITEMSIZE[plan.dtype]


def _span(window, outputs):
    """Return at most the elements under neighbouring outputs, with the padding around them."""
    if window.places:
        of_size, of_outputs, _ = window.places
        return min(window.size, max(1, outputs) * of_size // of_outputs + 2)
    return window.span(max(1, outputs))


def _tile(plan, batch, windows, channels_last, sequential):
    """Return the output rows, output columns, channels and planes of a tile."""
    *leads, rows, cols = windows
    out_rows, out_cols = max(1, rows.out), max(1, cols.out)
    channels, limit = 1, PIXEL_ELEMENTS if channels_last else ROW_ELEMENTS
    converts = plan.numerics != "pairwise" or plan.dtype not in ("float32", "float64")
    if rows.kernel > TALL_WINDOW and converts and not sequential:
        room = most_lines(plan) // (8 * max(1, rows.size)) - INTERLEAVED
        limit = min(limit, max(INTERLEAVED, room))
    if channels_last:
        channels = plan.channels
        if limit // channels < LEAST_EXTENTS * max(cols.extent, cols.stride):
            under = min(cols.size, _span(cols, out_cols))
            channels = _part(plan.channels, max(WHOLE_VECTORS, limit // max(1, under)))
            channels = min(plan.channels, -(-channels // WHOLE_VECTORS) * WHOLE_VECTORS)
        if cols.extent > LONG_WINDOW and not sequential:
            channels = min(channels, MOST_COLUMNS // min(cols.extent, 2 * cols.size + 1) or 1)
        while 0 < plan.channels % channels < FEWEST_CHANNELS:
            channels -= 1  # the last part is as wide as vectors are, too
    columns = out_cols
    span = _span(cols, columns)
    real = min(cols.size, span)
    if not sequential and real <= LONG_ROW and span > MOST_MARGINS * (real + columns):
        columns = _part(out_cols, max(1, MOST_OUTPUTS // channels))  # (most taps are padding)
    elif span * channels > limit:
        under = min(cols.extent, max(64, 2 * cols.size))  # of long windows, most is padding
        room = max(limit // channels - under, min(3 * under, max(LONG_ROW, under // 4)))
        columns = min(columns, _part(out_cols, max(1, room // cols.stride)))
    elif columns * channels > MOST_OUTPUTS:  # (of hardly any elements)
        columns = _part(out_cols, max(1, MOST_OUTPUTS // channels))
    planes = 1
    whole = batch * (-(-plan.channels // channels) if channels_last else plan.channels)
    pieces = math.prod(w.out for w in leads) * whole * -(-out_cols // columns)
    some = _some_tasks(plan)
    if pieces >= some:
        if not channels_last and columns == out_cols:
            planes = _of_a_task(plan, whole, pieces, some)
            if rows.out == cols.out == 1:  # (they are added next to one another)
                nbytes = _input_bytes(plan)
                more = max(pieces // some, whole * ONE_WINDOW_BYTES // max(1, nbytes))
                planes = max(planes, min(whole, more, WHOLE_PLANES))
        return out_rows, columns, channels, planes
    pieces = max(1, pieces)
    parts = min(SOME_TASKS // pieces, -(-_input_bytes(plan) // (pieces * PART_BYTES)), out_rows)
    if not sequential:  # (of tall windows, parts would share most of their rows)
        parts = min(parts, max(1, out_rows * rows.stride // rows.extent))
    return -(-out_rows // max(1, parts)), columns, channels, planes


def _part(total, most):
    """Return the size of nearly equal parts of at most `most`."""
    return -(-total // -(-total // max(1, most))) if total else 1
