# Cut the outputs of a pooling into tiles. A task is the number of a tile.

cdef inline Py_ssize_t part(Py_ssize_t *task, Py_ssize_t count) noexcept nogil:
    """Take the place along one axis of `count` tiles off a task.

    A division takes as long as pooling a row, so an axis of one tile has none.
    """
    cdef Py_ssize_t which = 0
    if count > 1:
        which = task[0] % count
        task[0] //= count
    return which


cdef void set_elements(Tile *tile, const Problem *problem) noexcept nogil:
    """Set which elements are under the outputs of a tile."""
    cdef const Window *rows = &problem.rows
    cdef const Window *cols = &problem.cols
    cdef Py_ssize_t lo, stop
    lo, stop = window_start(rows, tile.row), window_stop(rows, tile.row + tile.rows - 1)
    tile.row_lo, tile.row_hi = imax(lo, 0), imin(stop, rows.size)
    lo, stop = window_start(cols, tile.col), window_stop(cols, tile.col + tile.cols - 1)
    tile.span = stop - lo
    tile.left = imin(imax(-lo, 0), tile.span)
    tile.col_lo, tile.col_hi = imax(lo, 0), imin(stop, cols.size)
    # Without an element under the tile, its range is empty, never reversed.
    tile.row_hi, tile.col_hi = imax(tile.row_hi, tile.row_lo), imax(tile.col_hi, tile.col_lo)


cdef void tile_of(Tile *tile, const Frame *frame, Py_ssize_t task) noexcept nogil:
    """Set the tile of a task."""
    cdef const Problem *problem = &frame.problem
    cdef const Tiling *tiling = &frame.tiling
    cdef const Window *rows = &problem.rows
    cdef const Window *cols = &problem.cols
    cdef Py_ssize_t which
    which = part(&task, tiling.col_tiles)
    tile.col = which * tiling.cols
    tile.cols = imin(tiling.cols, cols.out - tile.col)
    which = part(&task, tiling.channel_tiles)
    tile.channel = which * tiling.channels
    tile.channels = 1
    if problem.channels_last:
        tile.channels = imin(tiling.channels, problem.channels - tile.channel)
    which = part(&task, tiling.row_tiles)
    tile.row = which * tiling.rows
    tile.rows = imin(tiling.rows, rows.out - tile.row)
    tile.lead = part(&task, problem.lead_outs)
    if problem.channels_last:
        tile.batch, tile.plane, tile.planes = task, 0, 1
    else:
        tile.batch = 0
        tile.plane = task * tiling.planes
        tile.planes = imin(tiling.planes, problem.batch * problem.channels - tile.plane)
    set_elements(tile, problem)


cdef void fill_beyond(char *row, Py_ssize_t pitch, const Problem *p, const Tile *tile,
                      Py_ssize_t rows, Py_ssize_t nbytes, const void *outside) noexcept nogil:
    """Copy columns, of `nbytes` each, to where they stand in padding. The tile has all of them.

    `row` is the first one, `pitch` the bytes from one row to the next, `outside` the constant.
    """
    cdef Py_ssize_t cols = tile.col_hi - tile.col_lo, i, place
    cdef const char *source
    if p.beyond == NULL:
        return
    for i in range(tile.span - cols):
        place, source = i if i < tile.left else i + cols, <const char *>outside
        if p.beyond[1 + i] >= 0:
            source = row + p.beyond[1 + i] * nbytes
        copy_column(row + (place - tile.left) * nbytes, pitch, source,
                    pitch if p.beyond[1 + i] >= 0 else 0, rows, nbytes)
