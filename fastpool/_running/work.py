"""Turn a plan into the work of a compiled `Pooling`: windows, passes and tiles.

A plan says what is computed. The work says in which pieces. It counts loads and bytes and does not
depend on vectors. All numbers are integers, computed once per plan. `strategies.decide` completes
it.
"""

import math
from typing import NamedTuple

from .._planning.dtypes import INDEX_BYTES, ITEMSIZE, is_float
from .._planning.geometry import Axis
from .._planning.indexing import index_base, index_strides, is_linear
from .._planning.windows import Windows
from .passes import Step, Window, chain, is_empty, is_wide, trimmed
from .threads import is_always_one
from .tiles import key_bytes, of_pixels, tile_of


class Problem(NamedTuple):
    """What a work is made for: a plan, its `trimmed` axes, and how they are taken."""

    plan: object
    windows: tuple
    off: frozenset = frozenset()  # names of strategies that are switched off
    copies: bool = True  # are arrays copied that kernels cannot use as they are?
    planes: int = 0  # planes that are interleaved as channels, 0 if none are
    composite: str | None = None  # dtype of elements with places, which are pooled as values

    @property
    def alone(self):
        """Does one thread take all tiles?"""
        return self.planes > 0 or is_always_one(self.plan.num_threads, work_bytes(self.plan))


class Work(NamedTuple):
    """The description of a pooling from which `fastpool._kernels.Pooling` is made."""

    problem: Problem
    input_shape: tuple
    output_shape: tuple
    dtype: str
    nan: str
    windows: tuple  # leading axes, rows, columns
    spatial_axes: tuple  # their positions in the array; -1 for rows that do not exist
    batch_axis: int
    channel_axis: int
    batch: int
    channels: int
    channels_last: bool
    direct: bool  # all taps of a pixel at once
    pixels_as_row: bool
    keyed: bool
    minimum: bool
    wide: bool  # for running maxima only, which take windows of any length
    return_indices: bool
    key_bytes: int
    tile: tuple  # output rows, output columns, channels, planes
    index_bytes: int
    index_strides: tuple  # batch, channel, leading axes, row, column; 0 without indices
    index_base: int  # of the input's first element
    position_strides: tuple  # leading axes, in a row-major plane
    linear: bool
    nbytes: int  # read and written
    axes: tuple = ()  # as `running_axes` returns them, () for all other strategies
    strategy: str = ""
    declined: tuple = ()  # (name, reason) of each strategy before it
    # The work of interleaved planes as channels, or (composed) of elements with places as values.
    inner: "Work | None" = None
    composed: bool = False
    # What kernels put into the padding of columns: the bits of a constant, then of each column its
    # element, or -1 for the constant.
    beyond: tuple = ()
    joined: int = 0  # first axes, which arrays must have evenly spaced

    @property
    def effort(self):
        """What decides whether a call releases the GIL."""
        return self.nbytes

    @property
    def slides(self):
        """Do neighbouring windows share rows that are worth keeping?

        Comparing three rows at stride 2 again is faster than keeping them.
        """
        *leads, rows, cols = self.windows
        if math.prod(w.kernel for w in leads) > 1 or cols.stride > 2 or rows.kernel <= rows.stride:
            return False
        return rows.stride == 1 or (rows.dilation == 1 and rows.kernel > 3)

    @property
    def slides_square(self):
        """Do windows of 3 x 3 or 5 x 5 slide over rows, with a loop made for them?"""
        *_, rows, cols = self.windows
        if not self.slides or rows.stride * cols.stride != 1:
            return False
        return rows.kernel in (3, 5) and rows.kernel == cols.kernel and none_empty(rows)


class UnpoolWork(NamedTuple):
    """The description of an unpooling from which `fastpool._kernels.Unpooling` is made.

    `count` values of each plane go among `size` elements. `rows` is the extent of the first axis
    of a plane that has more than one. Indices count through `counted` planes. If `physical`, they
    are offsets into the memory of the result.
    """

    x_shape: tuple
    output_shape: tuple
    batch: int
    channels: int
    count: int
    size: int
    counted: int
    channels_last: bool
    physical: bool
    rows: int


# Element types whose minima are taken as they are. Those of others are maxima of inverted keys.
MINIMA = "float32", "float64", "uint8", "uint16", "bool"

# Bytes of the images of a batch that are pooled as one, at most: 32x2x2x64 float32 2.2 -> 1.6 us,
# but float16 64x1x1x1984 14 -> 19.
IMAGE_BYTES = 3 << 10

# The rows of arrays that have columns only.
NO_ROWS = Window(1, 1, 1, 1, 1, 0, chain(1, 1))


def work_bytes(plan):
    """Return the bytes that a call reads and writes."""
    read = math.prod(plan.input_shape) * ITEMSIZE[plan.dtype]
    return read + math.prod(plan.output_shape) * plan.output_bytes


def none_empty(window):
    """Has every output an element?"""
    return Windows(Axis(*window[:6], 0), 0, window.out, window.out).empty == 0


def has_pixels(plan, copies):
    """Are channels last, in arrays that may be `copies`? Those of planes of one element are."""
    if plan.channels_last or plan.channels < 2 or not copies:
        return plan.channels_last and plan.channels > 1
    planes = plan.batch * plan.channels
    return 0 < planes == math.prod(plan.input_shape) == math.prod(plan.output_shape)


def images_as_one(plan, windows, most):
    """Return the windows of a batch, channels last, as those of one image, or None.

    Images of up to `most` bytes with one row of windows each are taken below one another: a tile
    for each would take longer than its elements.
    """
    *leads, rows, cols = windows
    small = 0 < math.prod(plan.input_shape) * ITEMSIZE[plan.dtype] <= plan.batch * most
    if leads or rows.places or not small or plan.batch == 1 or not rows.takes_all:
        return None
    rows = rows._replace(size=plan.batch * rows.size, out=plan.batch, stride=rows.size)
    return [rows, cols]


def problem_of(plan, off=frozenset(), copies=True):
    """Return the problem of a plan, without the strategies that are `off`."""
    return Problem(plan, tuple(map(trimmed, plan.axes)), off, copies)


def make_work(problem):
    """Return the work of a problem by passes over tiles, which no strategy has taken yet."""
    plan, windows, off, copies, planes, composite = problem
    dtype, pairs = composite or plan.dtype, plan.return_indices and not composite
    itemsize = ITEMSIZE[dtype]
    axes, windows = plan.spatial, list(windows)
    strides, base = (0,) * (2 + len(windows)), 0
    if pairs:
        strides = index_strides(plan)
        base = index_base(plan, strides)
    if len(windows) == 1:
        windows.insert(0, NO_ROWS)
        axes = -1, *axes
        strides = (*strides[:2], 0, strides[2])
    batch, channels = plan.batch, plan.channels
    copies &= not plan.return_indices
    channels_last = has_pixels(plan, copies)
    if copies and channels_last and (one := images_as_one(plan, windows, IMAGE_BYTES)):
        batch, windows = 1, one
    if planes:
        strides = (0, strides[1] if channels > 1 else strides[0], *strides[2:])
        batch, channels, channels_last = 1, planes, True
    pixels_as_row = direct = False
    irregular = any([window.places for window in windows])
    wide = not irregular and any([is_empty(w) or is_wide(w) for w in windows])
    if irregular:  # its strategy has no chains
        windows = [window._replace(steps=chain(1, 1)) for window in windows]
    elif channels_last:
        pixels_as_row, direct = of_pixels(windows, channels, itemsize, pairs and strides, off)
    minimum = plan.minimum and not composite  # (whose keys are inverted already)
    keyed = is_float(dtype) and (itemsize == 2 or plan.nan == "ignore")
    keyed |= minimum and (pairs or irregular or dtype not in MINIMA)
    if not (irregular or pairs or composite or keyed or pixels_as_row or direct):
        windows[-2] = windows[-2].strided
        if channels_last:
            windows[-1] = windows[-1].strided
    if direct:
        windows[-2:] = (w._replace(steps=(Step(1, 1, 0),)) for w in windows[-2:])
    arguments = (batch, channels, channels_last, direct, pairs, problem.alone)
    element_bytes = 8 if irregular and pairs else itemsize
    tile = tile_of(windows, element_bytes, *arguments)
    if pairs and not irregular:
        element_bytes = key_bytes(windows, tile, itemsize, strides, direct)
        if element_bytes > itemsize:
            tile = tile_of(windows, element_bytes, *arguments)
            element_bytes = key_bytes(windows, tile, itemsize, strides, direct)
    sizes = [w.size for w in windows]
    return Work(
        problem=problem,
        input_shape=plan.input_shape,
        output_shape=plan.output_shape,
        dtype=dtype,
        nan=plan.nan,
        windows=tuple(windows),
        spatial_axes=axes,
        batch_axis=plan.batch_axis,
        channel_axis=plan.channel_axis,
        batch=batch,
        channels=channels,
        channels_last=channels_last,
        direct=direct,
        pixels_as_row=pixels_as_row,
        keyed=keyed,
        minimum=minimum,
        wide=wide,
        return_indices=pairs,
        key_bytes=element_bytes,
        tile=tile,
        index_bytes=INDEX_BYTES[plan.index_dtype],
        index_strides=strides,
        index_base=base,
        position_strides=tuple([math.prod(sizes[i + 1 :]) for i in range(len(sizes) - 2)]),
        linear=not pairs or is_linear(strides, sizes),
        nbytes=work_bytes(plan),
    )


def narrower(work):
    """Return the work in smaller tiles, for less scratch; None if the loss exceeds the gain."""
    if work.axes or (work.inner and not work.composed):
        return None
    rows, cols = work.windows[-2:]
    tile_rows, tile_cols, width, planes = work.tile
    if planes > 1:
        planes = -(-planes // 2)
    elif width * work.key_bytes > 256:
        width = -(-width // 2)
    elif tile_cols > 1 and tile_cols * cols.stride > max(cols.extent, 32):
        tile_cols = -(-tile_cols // 2)
    elif tile_rows > 1 and tile_rows * rows.stride > rows.extent // 4:
        tile_rows = -(-tile_rows // 2)
    elif work.composed and width * 2 * work.key_bytes > 64:
        width = -(-width // 2)
    else:
        return None
    tile = tile_rows, tile_cols, width, planes
    inner = work.inner and work.inner._replace(tile=tile)
    return work._replace(tile=tile, inner=inner)
