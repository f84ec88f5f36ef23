# Takes:   2 or 4 columns a window at that stride, none over the edge, rows of at least a vector
# Reads:   the input in place
# Scratch: none; slabs of leading axes, where they are gathered first (SLAB); keys of a tile with a
#          NaN (SLAB, POOLED)
# Wins:    float32 1x64x224x224 k2 s2: 1517 -> 997 us (AVX-512), 2125 -> 1657 (AVX2),
#          2262 -> 1595 (baseline)
#
# Windows share no column, so no masks are needed.

cdef inline void row_apart(max_t *dst, const max_t *src, const Taps *taps, Py_ssize_t stride,
                           Py_ssize_t n, vec_flag *nan) noexcept nogil:
    """Pool one row of n windows; n is at least a vector."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(max_t), i = 0
    cdef const Py_ssize_t *rows = <const Py_ssize_t *>taps.offsets
    cdef Py_ssize_t count = taps.count
    cdef vec_t a, b, c, d
    while True:
        column_pair(&a, &b, src + i * stride, rows, count, NULL, True, nan)
        a = vec_max(vec_concat_even(a, b, src), vec_concat_odd(a, b, src), src)
        if stride == 4:
            column_pair(&c, &d, src + 4 * i + 2 * lanes, rows, count, NULL, True, nan)
            c = vec_max(vec_concat_even(c, d, src), vec_concat_odd(c, d, src), src)
            a = vec_max(vec_concat_even(a, c, src), vec_concat_odd(a, c, src), src)
        vec_store(dst + i, a)
        if i == n - lanes:
            return
        i = imin(i + lanes, n - lanes)


cdef vec_flag pool_apart(max_t *dst, const Target *to, const max_t *src, const Source *s,
                         const Work *work) noexcept nogil:
    """Pool a tile, row by row; `src` is its first element."""
    cdef const Tile *tile = work.tile
    cdef const Window *rows = &work.pool.frame.problem.rows
    cdef const Window *cols = &work.pool.frame.problem.cols
    cdef Py_ssize_t start = tile.col * cols.stride - cols.begin - tile.col_lo
    cdef Py_ssize_t step = rows.dilation * s.row, plane, r, row, real, held = rows.kernel
    cdef vec_flag nan = flag_none()
    cdef Taps taps
    taps_across_slabs(&taps, work.leads, held, step)
    for plane in range(work.planes):
        for r in range(tile.rows):
            real = real_taps(rows, tile.row + r, &row)
            if real == 0:
                fill_lowest(dst + r * to.row, tile.cols)
                continue
            if real != held:
                held = real
                taps_across_slabs(&taps, work.leads, held, step)
            row_apart(dst + r * to.row, src + (row - tile.row_lo) * s.row + start, &taps,
                      cols.stride, tile.cols, &nan)
        src, dst = src + s.plane, dst + to.plane
    return nan
