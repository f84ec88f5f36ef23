# Takes:   stride 2 along the columns, windows of 2 or 3 columns without dilation; needs masks
# Reads:   the input in place; lanes outside are replaced as they are loaded
# Scratch: none; slabs of leading axes, where they are gathered first (SLAB); keys of a tile with a
#          NaN (SLAB, POOLED)
# Wins:    float32 1x64x112x112 k3 s2 340 -> 185 us (AVX-512). AVX2 loses with blends for masks
#          (379 -> 444; uint8 76 -> 190), so it declines there.
#
# The rows under an output row are pooled vector by vector. Shuffles then pair their columns.

cdef inline vec_t join_pairs(vec_t evens, vec_t odds, vec_t next_evens, Py_ssize_t kernel,
                             const max_t *tag) noexcept nogil:
    """Return windows of 2 or 3 columns, made of the columns at even and at odd places."""
    evens, odds = vec_max(evens, odds, tag), evens
    if kernel == 2:
        return evens
    return vec_max(evens, vec_shift_in(odds, next_evens, tag), tag)


cdef inline void row_stride_two(max_t *dst, const max_t *src, const Taps *taps,
                                const byte_mask *masks, Py_ssize_t kernel, Py_ssize_t n, bint both,
                                vec_flag *nan) noexcept nogil:
    """Pool one row of n windows of 2 or 3 columns.

    The masks are those of the first pair of vectors, of the last pair and of the pair after it.
    `both` says whether the last pair has an element in its second vector.
    """
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(max_t), count = taps.count
    cdef const Py_ssize_t *rows = <const Py_ssize_t *>taps.offsets
    cdef vec_t a, b, evens, odds, next_evens, next_odds
    if n > lanes:
        column_pair(&a, &b, src, rows, count, masks, True, nan)
        evens, odds = vec_concat_even(a, b, src), vec_concat_odd(a, b, src)
        while n > 2 * lanes:
            src += 2 * lanes
            column_pair(&a, &b, src, rows, count, NULL, True, nan)
            next_evens, next_odds = vec_concat_even(a, b, src), vec_concat_odd(a, b, src)
            vec_store(dst, join_pairs(evens, odds, next_evens, kernel, src))
            evens, odds = next_evens, next_odds
            dst, n = dst + lanes, n - lanes
        src += 2 * lanes
        column_pair(&a, &b, src, rows, count, masks + 2, both, nan)
        next_evens, next_odds = vec_concat_even(a, b, src), vec_concat_odd(a, b, src)
        vec_store(dst, join_pairs(evens, odds, next_evens, kernel, src))
        dst, n = dst + lanes, n - lanes
    else:
        column_pair(&a, &b, src, rows, count, masks + 2, both, nan)
        next_evens, next_odds = vec_concat_even(a, b, src), vec_concat_odd(a, b, src)
    evens = vec_lowest(src)
    if n == lanes and kernel == 3:
        column_pair(&a, &b, src + 2 * lanes, rows, count, masks + 4, False, nan)
        evens = vec_concat_even(a, b, src)
    store_lanes(dst, join_pairs(next_evens, next_odds, evens, kernel, src),
                n * <Py_ssize_t>sizeof(max_t))


cdef vec_flag pool_stride_two(max_t *dst, const Target *to, const max_t *src, const Source *s,
                              const Work *work) noexcept nogil:
    """Pool a tile, row by row; `src` is its first element."""
    cdef const Tile *tile = work.tile
    cdef const Window *rows = &work.pool.frame.problem.rows
    cdef const Window *cols = &work.pool.frame.problem.cols
    cdef byte_mask masks[6]
    cdef Py_ssize_t size = sizeof(max_t), lanes = VEC_BYTES // size, n = tile.cols
    cdef Py_ssize_t start = tile.col * 2 - cols.begin - tile.col_lo
    cdef Py_ssize_t last = (n - 1) // lanes * lanes * 2
    cdef Py_ssize_t step = rows.dilation * s.row, plane, r, o, i, col, row, real, held = rows.kernel
    cdef bint both = start + last + lanes < s.cols
    cdef vec_flag nan = flag_none()
    cdef Taps taps
    for i in range(6):
        col = start + (i % 2) * lanes + (0 if i < 2 else last if i < 4 else last + 2 * lanes)
        masks[i] = vec_mask_range(-col * size, (s.cols - col) * size)
    taps_across_slabs(&taps, work.leads, held, step)
    for plane in range(work.planes):
        for r in range(tile.rows):
            o = tile.row + r
            real, row = held, o * rows.stride - rows.begin
            if o < rows.inner_lo or o >= rows.inner_hi:
                real = real_taps(rows, o, &row)
            elif held < rows.kernel:
                real = rows.kernel
            if real == 0:
                fill_lowest(dst + r * to.row, n)
                continue
            if real != held:
                held = real
                taps_across_slabs(&taps, work.leads, held, step)
            row_stride_two(dst + r * to.row, src + (row - tile.row_lo) * s.row + start, &taps,
                           masks, cols.kernel, n, both, &nan)
        src, dst = src + s.plane, dst + to.plane
    return nan
