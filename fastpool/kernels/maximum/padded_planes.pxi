# Takes:   long windows at stride 1 over whole planes whose output rows are shorter than two vectors
# Reads:   a copy of the planes, with margins all around
# Scratch: the copy (BAND)
# Wins:    1x256x20x20 k13 uint8 132 -> 64 us, k9 uint8 104 -> 41, k13 float32 213 -> 184. Rows of
#          two vectors and more lose (float64 k13 AVX-512 344 -> 402; float32 k13 AVX2 207 -> 226,
#          baseline 221 -> 396).
#
# Every step of both chains takes the padded planes as one row.

cdef inline Py_ssize_t padded_plane(const Window *rows, const Window *cols) noexcept nogil:
    """Return the elements of a plane at stride 1 with its margins."""
    return (rows.out - 1 + rows.extent) * (cols.out - 1 + cols.extent)


cdef vec_flag pool_padded_planes(number *dst, const Target *to, const number *src, const Source *s,
                                 const Work *work) noexcept nogil:
    """Pool whole planes."""
    cdef const Tile *tile = work.tile
    cdef const Window *rows = &work.pool.frame.problem.rows
    cdef const Window *cols = &work.pool.frame.problem.cols
    cdef number *area = <number *>area_of(work.pool, work.scratch, BAND)
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), pitch = tile.span, step, plane
    cdef Py_ssize_t each = padded_plane(rows, cols), n = round_up(work.planes * each, lanes)
    cdef number *inside = area + imax(rows.begin, 0) * pitch + tile.left
    cdef vec_flag nan = flag_none()
    cdef Taps taps
    fill(area, work.planes * each, <number>lowest(area))
    for plane in range(work.planes):
        copy_rows(inside + plane * each, pitch, src + plane * s.plane, s.row, s.rows, s.cols, &nan)
    for step in range(cols.steps):
        step_taps(&taps, cols, step, 1)
        window_run(area, <const number *>area, &taps, n, NULL)
    for step in range(rows.steps - 1):
        step_taps(&taps, rows, step, pitch)
        window_run(area, <const number *>area, &taps, n, NULL)
    step_taps(&taps, rows, rows.steps - 1, pitch)
    for plane in range(work.planes):
        window_rows(dst + plane * to.plane, to.row, <const number *>(area + plane * each), pitch,
                    &taps, tile.rows, tile.cols, NULL)
    return nan


cdef Py_ssize_t padded_planes_scratch(const Pool *p, Py_ssize_t lanes) noexcept nogil:
    """Return the elements of BAND. The taps of the last plane read what would be the next plane."""
    cdef const Window *rows = &p.frame.problem.rows
    cdef const Window *cols = &p.frame.problem.cols
    cdef Py_ssize_t planes = p.frame.tiling.planes, span = p.frame.tiling.cols - 1 + cols.extent
    return planes * padded_plane(rows, cols) + rows.extent * span + cols.extent + lanes
