# Cut the outputs of a pooling into tiles. A task is the number of a tile.

cdef inline Py_ssize_t part(Py_ssize_t *task, Py_ssize_t count) noexcept nogil:
    """The place of a task along one axis of `count` tiles; a division takes as long as pooling a row."""
    cdef Py_ssize_t which = 0
    if count > 1:
        which = task[0] % count
        task[0] //= count
    return which


cdef void tile_of(Tile *tile, const Pool *p, Py_ssize_t task) noexcept nogil:
    cdef Py_ssize_t lo, span, which
    which = part(&task, p.col_tiles)
    tile.col = which * p.tile_cols
    tile.cols = imin(p.tile_cols, p.cols.out - tile.col)
    which = part(&task, p.channel_tiles)
    tile.channel = which * p.tile_channels
    tile.channels = imin(p.tile_channels, p.channels - tile.channel) if p.channels_last else 1
    which = part(&task, p.row_tiles)
    tile.row = which * p.tile_rows
    tile.rows = imin(p.tile_rows, p.rows.out - tile.row)
    tile.lead = part(&task, p.lead_outs)
    if p.channels_last:
        tile.batch, tile.plane, tile.planes = task, 0, 1
    else:
        tile.batch = 0
        tile.plane = task * p.tile_planes
        tile.planes = imin(p.tile_planes, p.batch * p.channels - tile.plane)
    lo = tile.row * p.rows.stride - p.rows.begin
    span = (tile.rows - 1) * p.rows.stride + p.rows.extent
    tile.row_lo, tile.row_hi = imax(lo, 0), imin(lo + span, p.rows.size)
    lo = tile.col * p.cols.stride - p.cols.begin
    tile.span = (tile.cols - 1) * p.cols.stride + p.cols.extent
    tile.left = imin(imax(-lo, 0), tile.span)
    tile.col_lo, tile.col_hi = imax(lo, 0), imin(lo + tile.span, p.cols.size)
    # nothing real under the tile: an empty range, never a reversed one
    tile.row_hi, tile.col_hi = imax(tile.row_hi, tile.row_lo), imax(tile.col_hi, tile.col_lo)
