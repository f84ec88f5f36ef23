# Takes:   stride 2 along the columns, windows of 2 or 3 columns without dilation; needs masks
# Reads:   the input in place; lanes outside are replaced as they are loaded
# Scratch: none; slabs of leading axes, where they are gathered first
# Wins:    float32 1x64x112x112 k3 s2 340 -> 185 us (AVX-512). AVX2 loses with blends for masks
#          (379 -> 444; uint8 76 -> 190), so it declines there.
#
# The rows under an output row are pooled vector by vector. Shuffles then pair their columns.

cdef inline vec_t join_pairs(vec_t evens, vec_t odds, vec_t next_evens, Py_ssize_t kernel, const number *src) noexcept nogil:
    """Windows of 2 or 3 columns from the columns at even and odd places."""
    evens, odds = vec_max(evens, odds, src), evens
    return evens if kernel == 2 else vec_max(evens, vec_shift_in(odds, next_evens, src), src)


cdef inline void row_stride_two(number *dst, const number *src, const Py_ssize_t *taps, Py_ssize_t ntaps, const byte_mask *masks,
                             Py_ssize_t kernel, Py_ssize_t n, bint both, vec_flag *nan) noexcept nogil:
    """One row of n windows of 2 or 3 columns at stride 2. Edges are those of the first pair of vectors, of the last, of the
    one beyond; `both`: has the last one anything in its second vector?"""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef vec_t a, b, evens, odds, next_evens, next_odds
    if n > lanes:
        column_pair(&a, &b, src, taps, ntaps, masks, True, nan)
        evens, odds = vec_concat_even(a, b, src), vec_concat_odd(a, b, src)
        while n > 2 * lanes:
            src += 2 * lanes
            column_pair(&a, &b, src, taps, ntaps, NULL, True, nan)
            next_evens, next_odds = vec_concat_even(a, b, src), vec_concat_odd(a, b, src)
            vec_store(dst, join_pairs(evens, odds, next_evens, kernel, src))
            evens, odds = next_evens, next_odds
            dst, n = dst + lanes, n - lanes
        src += 2 * lanes
        column_pair(&a, &b, src, taps, ntaps, masks + 2, both, nan)
        next_evens, next_odds = vec_concat_even(a, b, src), vec_concat_odd(a, b, src)
        vec_store(dst, join_pairs(evens, odds, next_evens, kernel, src))
        dst, n = dst + lanes, n - lanes
    else:
        column_pair(&a, &b, src, taps, ntaps, masks + 2, both, nan)
        next_evens, next_odds = vec_concat_even(a, b, src), vec_concat_odd(a, b, src)
    evens = vec_lowest(src)
    if n == lanes and kernel == 3:
        column_pair(&a, &b, src + 2 * lanes, taps, ntaps, masks + 4, False, nan)
        evens = vec_concat_even(a, b, src)
    store_lanes(dst, join_pairs(next_evens, next_odds, evens, kernel, src), n * <Py_ssize_t>sizeof(number))


cdef vec_flag pool_stride_two(number *dst, Py_ssize_t dst_row, Py_ssize_t dst_plane, const number *src, const Source *s,
                         Py_ssize_t planes, const Pool *p, const Tile *tile, const Leads *leads) noexcept nogil:
    """A tile, row by row; src is its first element."""
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef byte_mask masks[6]
    cdef Py_ssize_t size = sizeof(number), lanes = VEC_BYTES // size, n = tile.cols, stride = p.cols.stride
    cdef Py_ssize_t start = tile.col * stride - p.cols.begin - tile.col_lo, last = (n - 1) // lanes * lanes * stride
    cdef Py_ssize_t fewer[MAX_TAPS]
    cdef Py_ssize_t plane, r, i, col, row, real, step = p.rows.dilation * s.row
    cdef const Py_ssize_t *row_of
    cdef bint both = start + last + lanes < s.cols
    cdef vec_flag nan = flag_none()
    cdef const number *at
    for i in range(6):
        col = start + (i % 2) * lanes + (0 if i < 2 else last if i < 4 else last + 2 * lanes)
        masks[i] = vec_mask_range(-col * size, (s.cols - col) * size)
    taps_across_slabs(taps, leads, p.rows.kernel, step)
    for plane in range(planes):
        for r in range(tile.rows):
            real = real_taps(&p.rows, tile.row + r, &row)
            if real == 0:
                fill(dst + r * dst_row, n, <number>lowest(dst))
                continue
            row_of = taps
            if real < p.rows.kernel and leads.count > 1:        # (of one slab the taps are a part of the whole window's)
                taps_across_slabs(fewer, leads, real, step)
                row_of = fewer
            at = src + (row - tile.row_lo) * s.row + start
            if p.strategy == APART:
                row_apart(dst + r * dst_row, at, row_of, real * leads.count, stride, n, &nan)
            elif VEC_MASKS:
                row_stride_two(dst + r * dst_row, at, row_of, real * leads.count, masks, p.cols.kernel, n, both, &nan)
        src, dst = src + s.plane, dst + dst_plane
    return nan
