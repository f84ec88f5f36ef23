# Takes:   long windows at stride 1 over whole planes whose output rows are shorter than two vectors
# Reads:   a copy of the planes, with margins all around
# Scratch: the copy (band)
# Wins:    1x256x20x20 k13 uint8 132 -> 64 us, k9 uint8 104 -> 41, k13 float32 213 -> 184. WindowRows of two
#          vectors and more lose (float64 k13 AVX-512 344 -> 402; float32 k13 AVX2 207 -> 226,
#          baseline 221 -> 396).
#
# Every step of both chains takes the padded planes as one row.

cdef inline Py_ssize_t padded_plane(const Window *rows, const Window *cols) noexcept nogil:
    """Elements of a plane at stride 1 with its margins."""
    return (rows.out - 1 + rows.extent) * (cols.out - 1 + cols.extent)


cdef vec_flag pool_padded_planes(number *dst, Py_ssize_t dst_row, Py_ssize_t dst_plane, const number *src, const Source *s,
                          Py_ssize_t planes, const Pool *p, const Tile *tile, number *area) noexcept nogil:
    """Whole planes under long windows: copied with margins all around, they are one row to every step of both chains."""
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef Py_ssize_t zero = 0, lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), pitch = tile.span, step, plane
    cdef Py_ssize_t each = padded_plane(&p.rows, &p.cols), inside = imax(p.rows.begin, 0) * pitch + tile.left
    cdef vec_flag nan = flag_none()
    fill(area, planes * each, <number>lowest(area))
    for plane in range(planes):
        window_rows(area + plane * each + inside, pitch, src + plane * s.plane, s.row, &zero, 1, s.rows, s.cols, &nan)
    for step in range(p.cols.steps):
        step_taps(taps, &p.cols, step, 1)
        window_run(area, <const number *>area, taps, p.cols.taps[step], round_up(planes * each, lanes), NULL)
    for step in range(p.rows.steps - 1):
        step_taps(taps, &p.rows, step, pitch)
        window_run(area, <const number *>area, taps, p.rows.taps[step], round_up(planes * each, lanes), NULL)
    step_taps(taps, &p.rows, p.rows.steps - 1, pitch)
    for plane in range(planes):
        window_rows(dst + plane * dst_plane, dst_row, <const number *>(area + plane * each), pitch, taps,
                    p.rows.taps[p.rows.steps - 1], tile.rows, tile.cols, NULL)
    return nan
