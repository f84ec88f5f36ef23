"""How a planned pooling is carried out: the axes as kernels see them, pass chains, tiles.

A plan says what is computed; a schedule says in which pieces. It counts loads and bytes and knows
nothing of vectors. All of it is integers, made once per plan and handed to the compiled `Pooling`.
"""

import functools
import math
import operator
from dataclasses import dataclass, replace
from typing import NamedTuple

from . import _far

# Scratch that one tile's band may take: it should stay in the first-level cache (32 to 48 KiB), or
# for long windows, whose tiles overlap by nearly a window, in the second-level cache.
BAND_BYTES = 24 << 10
PAIRS_BYTES = 64 << 10
PIXEL_BAND_BYTES = 128 << 10  # channels last: whole pixels, over which rows and columns share loads
PIXEL_BYTES = 4 << 10
LONG_BAND_BYTES = 512 << 10
# Channels last: pixels of at most so many bytes are taken as lanes.
FOLDED_BYTES = 20
LONG_PIXEL_BYTES = 256
# Loads and stores per output of a running maximum, beside one load per element under the tile.
HERK_COST = 4
# A row of lanes longer than this is split into column tiles.
LANE_ROW_BYTES = 16 << 10
# Scratch per thread, where smaller tiles can keep it (they cannot for windows of thousands).
SCRATCH_BYTES = 1 << 20
# Scratch per thread, at most.
MOST_SCRATCH_BYTES = 2 << 20
# Of longer kernels the search for the cheapest chain begins further on.
LONG_KERNEL = 1 << 16
# Direct windows: at most this many taps (MAX_TAPS of _kernels.pyx).
MAX_TAPS = 64
# Windows reach no further, padding included.
LARGEST_PLACE = 2**62
# The other kernels multiply a stride and a dilation, and a span by the bytes of a
# few vectors; where one is larger `running_maxima.pxi` takes the windows.
WIDE = 2**31
WIDE_SPAN = 2**50
# With indices, always up to so many: half the time of two passes over pairs.
FEW_TAPS = 12
# Enough tiles for the threads of a large machine to share, but none of less than this many bytes
# where there are some for each of a few threads; and for anything worth a second thread.
MANY_TASKS = 64
SOME_TASKS = 8
TASK_BYTES = 16 << 10
FEW_TASKS = 4
SHARED_BYTES = 256 << 10

ITEMSIZE = {
    **dict.fromkeys(("bool", "int8", "uint8"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64"), 8),
}
INDEX_BYTES = {"int32": 4, "int64": 8}


class Step(NamedTuple):
    """One pass of a chain: the maximum of `taps` elements `shift` apart, the last one at `last`."""

    taps: int
    shift: int
    last: int


class Window(NamedTuple):
    """One pooled axis. Output o covers elements o * stride - begin + t * dilation, t < kernel."""

    size: int
    out: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    steps: tuple

    @property
    def extent(self):
        return (self.kernel - 1) * self.dilation + 1

    @property
    def is_trivial(self):
        """Is the axis of one element, which is its only output?"""
        return self.size == self.out == self.kernel == 1 and self.begin == 0

    def span(self, outputs):
        """Elements, padding included, from the first to the last of neighbouring outputs."""
        return (outputs - 1) * self.stride + self.extent

    @property
    def cost(self):
        """Loads and stores per element of the passes along this axis."""
        return sum(step.taps + 1 for step in self.steps)


@functools.cache
def _radices(kernel):
    """Taps per step whose product reaches `kernel`, the cheapest: a pass costs its loads, a store
    and half a load for its loop, in half loads."""
    if kernel == 1:
        return 0, ()
    choices = []
    for taps in range(2, min(kernel, 8) + 1):
        cost, rest = _radices(-(-kernel // taps))
        choices.append((cost + 2 * taps + 3, (*rest, taps)))
    return min(choices)


def chain(kernel, dilation):
    """The steps that make a window of `kernel` taps.

    Windows of the earlier steps double, triple, ... in length; the last step lets them overlap.
    The number of loads grows with the logarithm of `kernel`.
    """
    radices, rest = (), kernel
    while rest > LONG_KERNEL:  # four taps a step are the cheapest; what is left is searched
        radices, rest = (*radices, 4), -(-rest // 4)
    radices += _radices(rest)[1] or (1,)
    covered, steps = 1, []
    for taps in radices[:-1]:
        steps.append(Step(taps, covered * dilation, (taps - 1) * covered * dilation))
        covered *= taps
    taps = -(-kernel // covered)
    steps.append(Step(taps, covered * dilation, (kernel - covered) * dilation))
    return tuple(steps)


def trimmed(axis):
    """The window of an axis without taps that never meet an element.

    Pads may exceed any memory; what is left of a window is bounded by the input and the output.
    """
    if axis.output == 0:
        return Window(axis.size, 0, 1, 1, 1, 0, chain(1, 1))
    stride = axis.stride if axis.output > 1 else 1
    lowest = -axis.begin
    highest = (axis.output - 1) * stride - axis.begin
    skip = max(0, -(highest // axis.dilation))
    keep = min(axis.kernel, -(-(axis.size - lowest) // axis.dilation))
    if axis.size == 0 or skip >= axis.kernel or keep <= skip:
        # No output has an element. The windows are those that start past the last one.
        return Window(axis.size, axis.output, 1, 1, 1, -axis.size, chain(1, 1))
    kernel = keep - skip
    dilation = axis.dilation if kernel > 1 else 1
    begin = axis.begin - skip * axis.dilation
    return Window(axis.size, axis.output, kernel, stride, dilation, begin, chain(kernel, dilation))


def is_empty(window):
    """Has no output of a trimmed window an element?"""
    return window.out > 0 and window.begin <= -window.size


def is_wide(window):
    """Might products of a window's numbers, as bands and passes make them, exceed 64 bits?"""
    numbers = window.extent, window.stride, window.dilation, window.out
    return max(numbers) > WIDE or window.span(window.out) > WIDE_SPAN


def is_gigantic(window):
    """Do places in the padded input exceed 64 bits?"""
    return window.span(window.out) + abs(window.begin) + window.size > LARGEST_PLACE


def live(axis):
    """The outputs of an axis from the first to the last that may have an element: (start, stop)."""
    extent = (axis.kernel - 1) * axis.dilation + 1
    start = max(0, -(-(axis.begin - extent + 1) // axis.stride))
    return start, max(start, min(axis.output, -(-(axis.size + axis.begin) // axis.stride)))


def every_end(axis):
    """The axis from whose outputs those of windows that exceed the input are gathered.

    Its outputs hold, of the elements a dilation apart, the first few or the last few: for every
    number of them.
    """
    taps = max(1, -(-axis.size // axis.dilation))
    reach = (taps - 1) * axis.dilation
    return axis._replace(
        output=axis.size + reach,
        kernel=taps,
        stride=1,
        dilation=axis.dilation if taps > 1 else 1,
        begin=reach,
        end=reach,
    )


def gathered(axis, ends):
    """For each output, the one of `every_end` that holds the elements of its window; -1 for none.

    Windows are longer than the input, so that none begins and ends inside of it.
    """
    places = []
    for output in range(axis.output):
        first = output * axis.stride - axis.begin
        last = first + (axis.kernel - 1) * axis.dilation
        low = first if first >= 0 else first % axis.dilation
        if low >= axis.size or last < low:
            places.append(-1)
        else:
            places.append(low + ends.begin if last >= axis.size else last)
    return places


@dataclass(frozen=True)
class Schedule:
    """What `fastpool._kernels.Pooling` is made from."""

    input_shape: tuple
    output_shape: tuple
    dtype: str
    nan: str
    windows: tuple  # leading axes, rows, columns
    spatial_axes: tuple  # their places in the array; -1 for rows that are not there
    batch_axis: int
    channel_axis: int
    batch: int
    channels: int
    channels_last: bool
    direct: bool
    folded: bool
    keyed: bool
    return_indices: bool
    lane_bytes: int
    tile: tuple  # output rows, output columns, channels, planes
    index_bytes: int
    index_strides: tuple  # batch, channel, leading axes, row, column
    index_base: int  # of the input's first element
    position_strides: tuple  # leading axes, in a row-major plane
    linear: bool
    work: int  # bytes read and written
    far: tuple  # axes as `_far.far_axes` gives them, () for the other ways


def index_strides(plan):
    """What one step along batch, channel and each spatial axis adds to an index."""
    _, channels, *sizes = along(plan, plan.index_shape, 1)
    row_major = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    plane = math.prod(sizes)
    if plan.index_layout == "NHWC":
        spatial = [stride * channels for stride in row_major]
        strides = [plane * channels, *spatial, 1]
        order = ["N", *range(len(sizes)), "C"]
    else:
        spatial = row_major
        if plan.storage_order:
            spatial = [math.prod(sizes[:i]) for i in range(len(sizes))]
        strides = [plane * channels, plane, *spatial]
        order = ["N", "C", *range(len(sizes))]
    # index_axis counts the axes that the layout has
    absent = {"N": plan.batch_axis < 0, "C": plan.channel_axis < 0}
    dropped = set([axis for axis in order if not absent.get(axis)][: plan.index_axis])
    by_axis = {a: 0 if a in dropped else s for a, s in zip(order, strides, strict=True)}
    return by_axis["N"], by_axis["C"], *(by_axis[i] for i in range(len(sizes)))


def along(plan, values, absent):
    """Of one value per axis of the array: those of batch, channels and the spatial axes."""
    places = plan.batch_axis, plan.channel_axis, *plan.spatial
    return [absent if place < 0 else values[place] for place in places]


def _index_base(plan, strides):
    """The index of the input's first element: 0, unless the plan is that of a tile."""
    return sum(map(operator.mul, along(plan, plan.index_origin, 0), strides))


def _is_linear(strides, sizes):
    """Is an index a base plus a multiple of the row-major position?"""
    scale = strides[-1]
    row_major = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    return all(
        size == 1 or stride == place * scale
        for stride, place, size in zip(strides[2:], row_major, sizes, strict=True)
    )


def _fit(total, piece_bytes, budget):
    """As many of `total` as fit, in nearly equal parts."""
    count = max(1, min(total, budget // max(1, piece_bytes)))
    return -(-total // -(-total // count)) if total else 1


def _is_direct(rows, cols):
    """Take all taps of a channels-last window at once, rather than rows first and columns then?"""
    if rows.kernel * cols.kernel > MAX_TAPS:
        return False
    columns_per_output = cols.span(cols.out) / max(1, cols.out)
    return rows.kernel * cols.kernel <= rows.cost * columns_per_output + cols.cost


def _long_tile(rows, cols, element, width, channels_last, pairs):
    """Output rows and columns of a tile under a long window: the fewest loads per output.

    Tiles overlap by nearly a window on each side, so they are as large as scratch allows. Values
    are pooled by rows first, and the band holds the columns under the tile; pairs by columns first,
    and it holds keys and places of the rows under the tile, and of its own.
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
                    cost *= 2  # wider lanes
            else:
                along = across + HERK_COST * tile_cols if channels_last else across * cols.cost
                cost = across * (under + HERK_COST * tile_rows) + tile_rows * along
            best = min(best, (cost / (tile_rows * tile_cols), tile_rows, tile_cols))
        if tile_rows == 1:
            return best[1:]
        parts += max(1, parts // 4)


def _tile(windows, element, batch, channels, channels_last, direct, pairs):
    """Outputs of one task: rows, columns, channels, planes."""
    *leads, rows, cols = windows
    out_rows, out_cols = max(1, rows.out), max(1, cols.out)
    long = len(rows.steps) > 1
    share = 3 if pairs else 1  # keys, and keys and positions of pooled columns and rows
    width = 1
    if channels_last:
        width = _fit(channels, element, LONG_PIXEL_BYTES if long else PIXEL_BYTES // share)
    if long:
        tile_rows, out_cols = _long_tile(rows, cols, element, width, channels_last, pairs)
        row_bytes = element * width * cols.span(out_cols) * share
        budget = LONG_BAND_BYTES
    else:
        budget = PAIRS_BYTES if pairs else BAND_BYTES
        column_limit = LANE_ROW_BYTES // element
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
        planes = max(1, min(_fit(count, row_bytes * out_rows, budget), count // tasks))
    pieces = math.prod(w.out for w in leads) * batch * -(-cols.out // out_cols)
    pieces *= -(-channels // (width if channels_last else planes))
    if pieces * row_bytes * out_rows > SHARED_BYTES:
        # one or two large planes: more of them than threads, by shorter tiles
        tile_rows = max(1, min(tile_rows, out_rows * pieces // FEW_TASKS))
    return tile_rows, out_cols, width, planes


def _lane_bytes(windows, tile, itemsize, strides, direct):
    """The narrowest integer that holds a key and any position under a tile or a direct window."""
    *leads, rows, cols = windows
    if direct:  # in the strides of the index, as signed integers
        places = sum((w.extent - 1) * s for w, s in zip(windows, strides[2:], strict=True))
        return next((n for n in (2, 4) if n >= itemsize and places < 1 << (8 * n - 1)), 8)
    under_rows = min(rows.span(tile[0]), max(1, rows.size))
    places = (under_rows - 1) * cols.size + min(cols.span(tile[1]), cols.size)
    plane = rows.size * cols.size
    for lead in reversed(leads):
        places += min(lead.extent, lead.size) * plane
        plane *= lead.size
    for nbytes in (2, 4):
        if nbytes >= itemsize and places < 1 << (8 * nbytes):
            return nbytes
    return 8


def work_bytes(plan):
    """Bytes that a call reads and writes."""
    itemsize = ITEMSIZE[plan.dtype]
    result = itemsize + (INDEX_BYTES[plan.index_dtype] if plan.return_indices else 0)
    return math.prod(plan.input_shape) * itemsize + math.prod(plan.output_shape) * result


def make_schedule(plan, windows, input_shape, output_shape):
    """Schedule a plan, or a piece of one: `windows` are its `trimmed` axes, the shapes theirs."""
    itemsize = ITEMSIZE[plan.dtype]
    axes = list(plan.spatial)
    windows = list(windows)
    strides = index_strides(plan)
    index_base = _index_base(plan, strides)
    if len(windows) == 1:
        windows.insert(0, Window(1, 1, 1, 1, 1, 0, chain(1, 1)))
        axes.insert(0, -1)
        strides = (*strides[:2], 0, strides[2])
    channels_last = plan.channels_last and plan.channels > 1
    rows, cols = windows[-2:]
    folded = (
        channels_last
        and not plan.return_indices
        and plan.channels * itemsize <= FOLDED_BYTES
        and len(cols.steps) == 1
    )
    direct = channels_last and not folded and _is_direct(rows, cols)
    if plan.return_indices:
        taps = math.prod(w.kernel for w in windows)
        direct = taps <= MAX_TAPS and (direct or (channels_last and taps <= FEW_TAPS))
    if direct:
        rows, cols = (w._replace(steps=(Step(1, 1, 0),)) for w in (rows, cols))
        windows[-2:] = rows, cols
    pairs = plan.return_indices
    arguments = (plan.batch, plan.channels, channels_last, direct, pairs)
    tile = _tile(windows, itemsize, *arguments)
    lane_bytes = itemsize
    if pairs:
        lane_bytes = _lane_bytes(windows, tile, itemsize, strides, direct)
        if lane_bytes > itemsize:
            tile = _tile(windows, lane_bytes, *arguments)
            lane_bytes = _lane_bytes(windows, tile, itemsize, strides, direct)
    sizes = [w.size for w in windows]
    schedule = Schedule(
        input_shape=input_shape,
        output_shape=output_shape,
        dtype=plan.dtype,
        nan=plan.nan,
        windows=tuple(windows),
        spatial_axes=tuple(axes),
        batch_axis=plan.batch_axis,
        channel_axis=plan.channel_axis,
        batch=plan.batch,
        channels=plan.channels,
        channels_last=channels_last,
        direct=direct,
        folded=folded,
        keyed=plan.dtype in ("float16", "bfloat16")
        or (plan.nan == "ignore" and plan.dtype in ("float32", "float64")),
        return_indices=pairs,
        lane_bytes=lane_bytes,
        tile=tile,
        index_bytes=INDEX_BYTES[plan.index_dtype],
        index_strides=strides,
        index_base=index_base,
        position_strides=tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes) - 2)),
        linear=_is_linear(strides, sizes),
        work=work_bytes(plan),
        far=(),
    )
    wide = any(map(is_empty, windows)) or any(map(is_wide, windows))
    return far(schedule) if wide or _far.pays(schedule) else schedule


def far(schedule):
    """The schedule for windows that are long beside the input or the scratch (`_far`)."""
    channels = schedule.channels if schedule.channels_last else 1
    axes, channels, _ = _far.far_axes(schedule.windows, channels)
    return replace(schedule, far=axes, tile=(1, 1, channels, 1), direct=False, folded=False)


def narrower(schedule):
    """The schedule with smaller tiles, for less scratch; None if that costs more than it wins."""
    if schedule.far:
        return None
    rows, cols = schedule.windows[-2:]
    tile_rows, tile_cols, width, planes = schedule.tile
    if planes > 1:
        planes = -(-planes // 2)
    elif width * schedule.lane_bytes > 256:
        width = -(-width // 2)
    elif tile_cols > 1 and tile_cols * cols.stride > max(cols.extent, 32):
        tile_cols = -(-tile_cols // 2)
    elif tile_rows > 1 and tile_rows * rows.stride > rows.extent // 4:
        tile_rows = -(-tile_rows // 2)
    else:
        return None
    smaller = replace(schedule, tile=(tile_rows, tile_cols, width, planes))
    return far(schedule) if _far.pays(smaller) else smaller
