"""Turn a plan of averages into the work of a compiled `Averaging`: windows, counts and tiles."""

import math
from dataclasses import dataclass

import numpy as np

from .._planning.dtypes import ITEMSIZE, is_float
from .._planning.geometry import AdaptiveAxis
from .passes import Window, chain, trimmed
from .work import work_bytes

# The kernels' limits: divisors, and numbers whose products they compute, in 64 bits.
LARGEST_DIVISOR = 2**50
WIDE = 2**31
# Outputs along an axis of a result without elements for which tables are made.
FEW_OUTPUTS = 2**16
# Outputs that are summed before they are divided: they should stay in the first-level cache.
BLOCK_OUTPUTS = 1024
# Sums of columns along one row of a tile.
ROW_ELEMENTS = 4096
# Columns of a window that are added one by one; of longer windows prefixes are subtracted.
FEW_TAPS = 8
# Windows whose columns are added in registers (`small`): rows between the first and the last, and
# outputs of a block along a row. In order there may be more taps.
SMALL_EXTENT = 32
SMALL_OUTPUTS = 512
SMALL_BLOCK = 4096
MOST_IN_ORDER = 64
# Channels of such pixels: as many as there are doubles in the longest vectors.
FEWEST_PIXEL_CHANNELS = 8
# Windows of pixels that are added one by one have so many times the elements of the input at most.
MOST_SHARED = 3
# Divisors of rows whose reciprocals are kept, and columns that they are kept for.
MOST_DIVISORS = 16
MOST_RECIPROCALS = 4096
# Tiles for threads, and bytes of input that one has at least.
SOME_TASKS = 16
TASK_BYTES = 32 << 10
# Bits of the range of each float type, from the least subnormal to the largest number.
RANGE_BITS = {"float16": 190, "bfloat16": 280, "float32": 280, "float64": 2110}
MARKS = 3


@dataclass(frozen=True)
class SumWork:
    """The description of an average pooling from which `fastpool._kernels.Averaging` is made."""

    input_shape: tuple
    output_shape: tuple
    dtype: str
    result: str
    rounding: str
    ignore_nan: bool
    sequential: bool
    windows: tuple  # leading axes, rows, columns
    lead_taps: tuple  # the most of one window, along each leading axis
    counts: tuple  # per window: what each output's divisor is the product of (`counts_of`)
    divisor: float  # of all windows, or 0
    spatial_axes: tuple  # their positions in the array; -1 for rows that do not exist
    batch_axis: int
    channel_axis: int
    batch: int
    channels: int
    channels_last: bool
    carries_rows: bool
    carries_cols: bool
    tile: tuple  # output rows, output columns, channels, planes
    block: int  # outputs that are summed, and then divided
    block_rows: int
    whole: bool  # the one window of a plane takes all of it
    divisors: tuple  # what those of a row have in common; empty if there are too many
    pixels: bool  # windows of pixels are added one by one
    small: bool  # windows are pooled in registers
    small_doubles: bool  # from rows of doubles
    small_floats: bool  # with sums of floats, which are exact
    pitch: int  # elements from one row to the next there
    rows: int  # of a block
    band: int  # sums of columns with their margins
    lag: int  # columns from one prefix to the next
    digit_bits: int
    most_digits: int
    nbytes: int
    return_indices: bool = False
    index_bytes: int = 8


def is_huge(plan):
    """Does a plan have numbers that compiled code cannot hold?"""
    windows = [trimmed(axis) for axis in plan.axes]
    if 0 in plan.output_shape and max(plan.output_shape) > FEW_OUTPUTS:
        return True  # (nothing is computed, but tables would have one entry per output)
    for axis, window in zip(plan.axes, windows, strict=True):
        if isinstance(axis, AdaptiveAxis):
            if axis.of_output > WIDE:
                return True
            continue
        numbers = axis.kernel, axis.stride, axis.dilation, axis.begin, window.extent
        if max(numbers) > WIDE or window.span(window.out) > 2**50 or axis.span(axis.output) > 2**50:
            return True
    return abs(_most_divisor(plan)) > LARGEST_DIVISOR


def _most_divisor(plan):
    if plan.divisor is not None:
        return plan.divisor
    return math.prod(axis.kernel for axis in plan.axes)


def counts_of(axis, places):
    """Return the counts of an axis' outputs as doubles, or one double if they are equal.

    `places` are those that count, or None.
    """
    if isinstance(axis, AdaptiveAxis):
        least, rest = divmod(axis.of_size, axis.of_output)
        ends = (axis.first + np.arange(axis.output + 1)) * rest
        stops = -(-ends[1:] // axis.of_output)
        return (least + stops - ends[:-1] // axis.of_output).astype(np.float64)
    stop = axis.span(axis.output) - axis.begin
    if places is None or (places[0] <= -axis.begin and stop <= places[1]):
        return float(axis.kernel)
    starts = np.arange(axis.output) * axis.stride - axis.begin
    first, stop = (-((starts - place) // axis.dilation) for place in places)
    counts = np.minimum(stop, axis.kernel) - np.maximum(first, 0)
    return np.maximum(counts, 0).astype(np.float64)


def make_sum_work(plan):
    """Return the work of a plan."""
    itemsize = ITEMSIZE[plan.dtype]
    windows, axes = list(map(trimmed, plan.axes)), list(plan.spatial)
    counted = plan.counted or (None,) * len(windows)
    counts = [1.0] * len(windows)
    if plan.divisor is None:
        counts = list(map(counts_of, plan.axes, counted))
        if isinstance(counts[-1], np.ndarray) and len(counts[-1]) == 1:
            counts[-1] = float(counts[-1][0])
    if len(windows) == 1:
        windows.insert(0, Window(1, 1, 1, 1, 1, 0, chain(1, 1)))
        axes.insert(0, -1)
        counts.insert(0, 1.0)
    channels_last = plan.channels_last and plan.channels > 1
    sequential = plan.numerics == "sequential" and is_float(plan.dtype)
    global_ = _takes_all(windows[-2]) and _takes_all(windows[-1]) and not sequential
    if channels_last and (axes[-2] < 0 or global_) and windows[-2].size < windows[-1].size:
        # Channels are what is contiguous, so rows and columns are alike. Columns need scratch.
        for pair in (windows, axes, counts):
            pair[-2:] = pair[:-3:-1]
    longest = max(range(len(windows) - 1), key=lambda axis: _most_taps(windows[axis]))
    if not sequential and _most_taps(windows[longest]) > max(FEW_TAPS, _most_taps(windows[-2])):
        # Rows are carried from window to window, and taps of leading axes are added one by one.
        for pair in (windows, axes, counts):
            pair[longest], pair[-2] = pair[-2], pair[longest]
    *leads, rows, cols = windows
    lead_taps = tuple(map(_most_taps, leads))
    whole = not channels_last and _takes_all(rows) and _takes_all(cols)
    carries_rows = 2 * rows.stride + 3 < rows.kernel and rows.dilation == 1
    carries_rows = carries_rows and not rows.places and not whole
    carries_cols = bool(cols.places) or cols.kernel > FEW_TAPS
    carries_cols = carries_cols or cols.extent > max(64, 2 * cols.size)
    small = not whole and _is_small(plan, rows, cols, sequential)
    pixels = channels_last and not small and not sequential and _is_apart(plan, rows, cols)
    carries_rows, carries_cols = carries_rows and not small, carries_cols and not small
    limit = ROW_ELEMENTS // 4 if plan.dtype == "float64" and carries_rows else ROW_ELEMENTS
    tile = _tile(plan, windows, channels_last, limit, small or pixels)
    tile_rows, tile_cols, channels, planes = tile
    span = _span(cols, tile_cols) if not carries_cols else min(cols.size, _span(cols, tile_cols))
    terms = math.prod(lead_taps) * (_most_taps(rows) + (rows.stride if carries_rows else 0))
    terms *= min(cols.size, span) if carries_cols else cols.kernel
    width = max(1, tile_cols * channels)
    block = max(width, min(SMALL_BLOCK if small else BLOCK_OUTPUTS, tile_rows * width * planes))
    pitch = block_extent = 0
    small_floats = False
    if small:
        taps = math.prod(lead_taps) * rows.kernel * cols.kernel
        small_floats = (
            plan.result_dtype == plan.dtype
            and plan.dtype in ("int8", "uint8", "int16", "uint16")
            and taps * 2 ** (8 * itemsize) < 2**24
        )
        pitch = _pitch(cols, tile_cols, channels)
        block_extent = rows.span(max(1, min(tile_rows, block // width)))
    bits = 51 - math.ceil(math.log2(max(2, terms)))
    digits = max(1, itemsize // 2)
    if is_float(plan.dtype):
        digits = -(-RANGE_BITS[plan.dtype] // bits) + 3
    return SumWork(
        input_shape=plan.input_shape,
        output_shape=plan.output_shape,
        dtype=plan.dtype,
        result=plan.result_dtype,
        rounding=plan.rounding,
        ignore_nan=plan.nan == "ignore" and is_float(plan.dtype),
        sequential=sequential,
        windows=tuple(windows),
        lead_taps=lead_taps,
        counts=tuple(counts),
        divisor=float(plan.divisor or 0),
        spatial_axes=tuple(axes),
        batch_axis=plan.batch_axis,
        channel_axis=plan.channel_axis,
        batch=plan.batch,
        channels=plan.channels,
        channels_last=channels_last,
        carries_rows=carries_rows,
        carries_cols=carries_cols,
        tile=tile,
        block=block,
        block_rows=block // width,
        whole=whole,
        divisors=_divisors(plan, counts),
        pixels=pixels,
        small=small,
        small_doubles=plan.dtype in ("float64", "int32", "uint32"),
        small_floats=small_floats,
        pitch=pitch,
        rows=block_extent * (math.prod(lead_taps) if sequential or small_floats else 1),
        band=0 if whole else span * channels + 64,
        lag=0 if whole else min(cols.dilation, max(1, cols.size)),
        digit_bits=bits,
        most_digits=digits + MARKS,
        nbytes=work_bytes(plan),
    )


def _is_small(plan, rows, cols, sequential):
    """Are the windows for registers?"""
    if rows.places or cols.places or rows.extent > SMALL_EXTENT or cols.stride > MOST_IN_ORDER:
        return False
    if sequential:
        return cols.kernel <= MOST_IN_ORDER and plan.nan != "ignore"
    if plan.dtype in ("int64", "uint64") or cols.kernel > FEW_TAPS:
        return False
    if cols.stride > 2 and not (plan.channels_last and plan.channels > 1):
        return False  # (to split rows takes longer than to add their columns first)
    return rows.kernel <= 3 or rows.stride >= rows.kernel


def _is_apart(plan, rows, cols):
    """Are the windows of pixels with whole vectors of channels, and few of them share a pixel?"""
    if plan.channels < FEWEST_PIXEL_CHANNELS or plan.dtype in ("int64", "uint64"):
        return False
    taps = _most_taps(rows) * rows.out * _most_taps(cols) * cols.out
    return taps <= MOST_SHARED * rows.size * cols.size


def _pitch(cols, outputs, channels):
    """Return the elements of a row of a tile, every stride-th one next to another."""
    margin = 64  # whole vectors are read and written
    if channels == 1 and cols.stride > 1:
        return cols.stride * (cols.span(outputs) // cols.stride + 1 + margin)
    return cols.span(outputs) * channels + margin


def _divisors(plan, counts):
    """Return the different products of counts of all axes but columns."""
    if plan.result_dtype in ("float64", "int64", "uint64", "bool"):
        return ()
    if plan.divisor is not None:
        return (float(plan.divisor),)
    *others, cols = counts
    products = {1.0 if isinstance(cols, np.ndarray) else cols}
    for axis in others:
        values = set(axis.tolist()) if isinstance(axis, np.ndarray) else {axis}
        products = {product * value for product in products for value in values}
        if len(products) > MOST_DIVISORS:
            return ()
    if isinstance(cols, np.ndarray) and len(cols) * len(products) > MOST_RECIPROCALS:
        return ()
    return tuple(products)


def _most_taps(window):
    """Return an upper bound of the elements under a window."""
    return min(window.kernel, max(1, window.size))


def _takes_all(window):
    """Does the only output of an axis take all elements?"""
    return window.out == 1 and window.dilation == 1 and window.kernel >= window.size


def _span(window, outputs):
    """Return the elements under neighbouring outputs, with the padding around them."""
    if window.places:
        return window.size
    return window.span(max(1, outputs))


def _tile(plan, windows, channels_last, limit, direct):
    """Return the output rows, output columns, channels and planes of a tile.

    `limit` is that of sums of columns along one row, if windows are not longer.
    """
    *leads, rows, cols = windows
    out_rows, out_cols = max(1, rows.out), max(1, cols.out)
    channels = 1
    if channels_last:
        under = min(cols.size, _span(cols, out_cols))
        most = SMALL_OUTPUTS if direct else max(64, limit // max(1, under))
        channels = _part(plan.channels, most)
    columns = out_cols
    if direct:
        most = SMALL_OUTPUTS // channels if channels_last else limit // cols.stride
        columns = _part(out_cols, max(1, most))
    elif not cols.places and cols.span(out_cols) * channels > limit:
        room = max(limit // channels, 4 * cols.extent) - cols.extent
        columns = _part(out_cols, max(1, room // cols.stride))
    planes, whole = (
        1,
        plan.batch * (-(-plan.channels // channels) if channels_last else plan.channels),
    )
    pieces = math.prod(w.out for w in leads) * whole * -(-out_cols // columns)
    read = math.prod(plan.input_shape) * ITEMSIZE[plan.dtype]
    if pieces >= SOME_TASKS:
        if not channels_last and columns == out_cols:
            enough = max(SOME_TASKS, min(read // TASK_BYTES, pieces))
            planes = max(1, min(whole, pieces // enough))
        return out_rows, columns, channels, planes
    parts = min(SOME_TASKS // max(1, pieces), -(-read // TASK_BYTES), out_rows)
    return -(-out_rows // max(1, parts)), columns, channels, planes


def _part(total, most):
    """Return the size of nearly equal parts of at most `most`."""
    return -(-total // -(-total // max(1, most))) if total else 1
