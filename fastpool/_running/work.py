"""Turn a plan into the work of a compiled `Pooling`: windows, passes and tiles.

A plan says what is computed. The work says in which pieces. It counts loads and bytes and does not
depend on vectors. All numbers are integers, computed once per plan.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from .._planning.dtypes import INDEX_BYTES, ITEMSIZE, is_float
from .._planning.indexing import index_base, index_strides, is_linear
from . import interleaving, pixels, running_maxima, strategies, whole
from .composites import composed
from .passes import Step, Window, chain, is_empty, is_wide
from .tiles import key_bytes, tile_of


@dataclass(frozen=True)
class Work:
    """The description of a pooling from which `fastpool._kernels.Pooling` is made."""

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
    return_indices: bool
    key_bytes: int
    tile: tuple  # output rows, output columns, channels, planes
    index_bytes: int
    index_strides: tuple  # batch, channel, leading axes, row, column
    index_base: int  # of the input's first element
    position_strides: tuple  # leading axes, in a row-major plane
    linear: bool
    nbytes: int  # read and written
    axes: tuple  # as `running_axes` returns them, () for all other strategies
    # The work that pools interleaved planes as channels (if composed: keys with places as values).
    inner: "Work | None" = None
    composed: bool = False

    @property
    def effort(self):
        """What decides whether a call releases the GIL."""
        return self.nbytes

    @property
    def slides(self):
        return strategies.slides(self)

    @property
    def slides_square(self):
        return strategies.slides_square(self)


class UnpoolWork(NamedTuple):
    """The description of an unpooling from which `fastpool._kernels.Unpooling` is made.

    `count` values of each plane go among `size` elements. Indices count through `counted` planes.
    If `physical`, they are offsets into the memory of the result.
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


def work_bytes(plan):
    """Return the bytes that a call reads and writes."""
    read = math.prod(plan.input_shape) * ITEMSIZE[plan.dtype]
    return read + math.prod(plan.output_shape) * plan.output_bytes


def make_work(plan, windows, input_shape, output_shape, off=()):
    """Return the work of a plan, or of a piece of one.

    `windows` are the `trimmed` axes of the piece. The shapes are those of its arrays. `off` are
    the names of strategies that are switched off.
    """
    arguments = plan, tuple(windows), input_shape, output_shape, off
    work = _make_work(*arguments)
    planes = interleaving.interleaved_planes(work, off)
    if not planes:
        return work
    tile = (work.windows[-2].out, work.windows[-1].out, 1, planes)
    inner = _make_work(*arguments, planes)
    return replace(work, axes=(), tile=tile, inner=inner, composed=False)


def _make_work(plan, windows, input_shape, output_shape, off, interleaved=0, composite=None):
    """Return the work of planes one by one, or of some that are interleaved.

    `composite` is the dtype of their elements with places, which are pooled as values.
    """
    dtype, pairs = composite or plan.dtype, plan.return_indices and not composite
    itemsize = ITEMSIZE[dtype]
    axes = list(plan.spatial)
    given, windows = windows, list(windows)
    strides = index_strides(plan)
    base = index_base(plan, strides)
    if len(windows) == 1:
        windows.insert(0, Window(1, 1, 1, 1, 1, 0, chain(1, 1)))
        axes.insert(0, -1)
        strides = (*strides[:2], 0, strides[2])
    batch, channels = plan.batch, plan.channels
    channels_last = plan.channels_last and channels > 1
    if interleaved:
        strides = (0, strides[1] if channels > 1 else strides[0], *strides[2:])
        batch, channels, channels_last = 1, interleaved, True
    rows, cols = windows[-2:]
    pixels_as_row = direct = False
    irregular = any(window.places for window in windows)
    if irregular:  # its strategy has no chains
        windows = [window._replace(steps=chain(1, 1)) for window in windows]
    elif channels_last:
        pixels_as_row, direct = pixels.of_pixels(windows, channels * itemsize, pairs, off)
    keyed = is_float(dtype) and (itemsize == 2 or plan.nan == "ignore")
    if not (irregular or pairs or composite or keyed or pixels_as_row or direct):
        windows[-2] = windows[-2].strided
        if channels_last:
            windows[-1] = windows[-1].strided
    if direct:
        rows, cols = (w._replace(steps=(Step(1, 1, 0),)) for w in (rows, cols))
        windows[-2:] = rows, cols
    arguments = (batch, channels, channels_last, direct, pairs)
    element_bytes = 8 if irregular and pairs else itemsize
    tile = tile_of(windows, element_bytes, *arguments)
    if pairs and not irregular:
        element_bytes = key_bytes(windows, tile, itemsize, strides, direct)
        if element_bytes > itemsize:
            tile = tile_of(windows, element_bytes, *arguments)
            element_bytes = key_bytes(windows, tile, itemsize, strides, direct)
    sizes = [w.size for w in windows]
    work = Work(
        input_shape=input_shape,
        output_shape=output_shape,
        dtype=dtype,
        nan=plan.nan,
        windows=tuple(windows),
        spatial_axes=tuple(axes),
        batch_axis=plan.batch_axis,
        channel_axis=plan.channel_axis,
        batch=batch,
        channels=channels,
        channels_last=channels_last,
        direct=direct,
        pixels_as_row=pixels_as_row,
        keyed=keyed,
        return_indices=pairs,
        key_bytes=element_bytes,
        tile=tile,
        index_bytes=INDEX_BYTES[plan.index_dtype],
        index_strides=strides,
        index_base=base,
        position_strides=tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes) - 2)),
        linear=is_linear(strides, sizes),
        nbytes=work_bytes(plan),
        axes=(),
    )
    if irregular:
        return work
    if whole.takes_one_window(work, off):
        tile = 1, 1, whole.whole_width(work) if channels_last else 1, tile[3]
        work = replace(work, direct=False, pixels_as_row=False, tile=tile)
        return replace(work, key_bytes=max(2, itemsize))
    wide = any(map(is_empty, windows)) or any(map(is_wide, windows))
    if pairs and not wide:

        def make_inner(name):
            return _make_work(plan, given, input_shape, output_shape, off, interleaved, name)

        if by_composites := composed(work, make_inner, off):
            return by_composites
    return as_running_maxima(work) if wide or running_maxima.pays(work) else work


def as_running_maxima(work):
    """Return the work by running maxima, for windows long relative to the input or scratch."""
    channels = work.channels if work.channels_last else 1
    axes, channels, _ = running_maxima.running_axes(work.windows, channels)
    tile = 1, 1, channels, 1
    work = replace(work, axes=axes, tile=tile, direct=False, pixels_as_row=False)
    return replace(work, inner=None, composed=False)


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
    smaller = replace(work, tile=tile)
    if work.composed:
        return replace(smaller, inner=replace(work.inner, tile=tile))
    return as_running_maxima(work) if running_maxima.pays(smaller) else smaller
