# One pass over one axis of a tile.
#
# row_pass pools rows and reads along no row: every output is a row of n elements. It serves the rows
# of any layout, and the columns of channels-last arrays. Windows that hang over the edge drop taps.
# column_pass pools columns that are neighbours in memory. Its rows have margins that hold the lowest
# value.

cdef void row_pass(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step, Py_ssize_t origin,
                   const Window *w, Py_ssize_t first, Py_ssize_t count, Py_ssize_t n, number *chain,
                   const Leads *leads, vec_flag *nan, const Keys *keys) noexcept nogil:
    """Outputs first ... first + count of one axis; each is a row of n elements. `src` is element `origin` of that axis.

    Unless nan is NULL, NaN are track_nan there; unless keys is NULL, src is input yet to be made keys (of long windows only).
    """
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef Py_ssize_t o, begin, end, ntaps
    if w.steps > 1:
        long_row_pass(dst, dst_step, src, src_step, origin, w, first, count, n, chain, nan, keys)
        return
    ntaps = taps_across_slabs(taps, leads, w.kernel, w.dilation * src_step)
    begin = imax(first, imin(w.inner_lo, first + count))
    end = imax(begin, imin(w.inner_hi, first + count))
    src += (begin * w.stride - w.begin - origin) * src_step     # where the first inner output starts
    if lanes <= n <= 4 * lanes:
        # Short rows: top to bottom in columns of one vector, or the edges would cost more than the middle.
        o = 0
        while o < n:
            o = imin(o, n - lanes)
            column_edge(dst + o, dst_step, src + o, src_step, w, first, begin, begin, leads, nan)
            window_column(dst + (begin - first) * dst_step + o, dst_step, src + o, w.stride * src_step, taps, ntaps,
                          end - begin, nan)
            column_edge(dst + (end - first) * dst_step + o, dst_step, src + o, src_step, w, end, first + count, begin, leads, nan)
            o += lanes
        return
    window_rows(dst + (begin - first) * dst_step, dst_step, src, w.stride * src_step, taps, ntaps, end - begin, n, nan)
    src -= (begin * w.stride - w.begin - origin) * src_step
    for o in range(first, begin):
        border_row(dst + (o - first) * dst_step, 0, src, 0, src_step, origin, w, o, 1, n, leads, nan)
    for o in range(end, first + count):
        border_row(dst + (o - first) * dst_step, 0, src, 0, src_step, origin, w, o, 1, n, leads, nan)


cdef inline void column_edge(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step, const Window *w,
                             Py_ssize_t first, Py_ssize_t end, Py_ssize_t inner, const Leads *leads,
                             vec_flag *nan) noexcept nogil:
    """Outputs first ... end that hang over an edge, one vector wide; `src` is where output `inner` starts."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef Py_ssize_t o, l, t, real, lo
    cdef const number *at
    cdef vec_t best
    for o in range(first, end):
        real = real_taps(w, o, &lo)
        if real == 0:
            fill(dst, lanes, <number>lowest(dst))
        else:
            at = src + (lo - (inner * w.stride - w.begin)) * src_step
            best = track_nan(vec_load(at + leads.offsets[0]), nan != NULL, nan, src)
            for l in range(leads.count):
                for t in range(real):
                    best = vec_max(best, track_nan(vec_load(at + leads.offsets[l] + t * w.dilation * src_step), nan != NULL, nan, src), src)
            vec_store(dst, best)
        dst += dst_step


cdef inline void border_row(number *dst, Py_ssize_t dst_plane, const number *src, Py_ssize_t src_plane, Py_ssize_t src_step,
                            Py_ssize_t origin, const Window *w, Py_ssize_t output, Py_ssize_t planes, Py_ssize_t n,
                            const Leads *leads, vec_flag *nan) noexcept nogil:
    """One output row, of only those taps that are elements, in each of `planes` planes."""
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef Py_ssize_t lo, plane, real = real_taps(w, output, &lo)
    if real == 0:
        for plane in range(planes):
            fill(dst + plane * dst_plane, n, <number>lowest(dst))
        return
    real = taps_across_slabs(taps, leads, real, w.dilation * src_step)
    window_rows(dst, dst_plane, src + (lo - origin) * src_step, src_plane, taps, real, planes, n, nan)


cdef inline Py_ssize_t band_pitch(const Pool *p, Py_ssize_t span, Py_ssize_t left, Py_ssize_t lanes,
                                  Py_ssize_t *data) noexcept nogil:
    """Elements from one band row to the next, and where a row's first column stands: aligned, but for chains, whose dense
    passes would pay for the gaps."""
    data[0] = 0
    if p.cols.steps > 1:
        return span
    data[0] = round_up(left, lanes) - left
    return round_up(data[0] + span, lanes)


cdef void column_pass(number *dst, Py_ssize_t dst_step, number *band, number *dense, Py_ssize_t pitch, const Window *w,
                    Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """The column pass where columns are lanes: rows of `band`, margins in place, to n outputs each.

    A chain goes through `dense`, which may be `band`.
    """
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef Py_ssize_t step, r, i, last = w.steps - 1
    cdef bint vector = shuffled_stride(w)
    cdef number *src = band
    for step in range(w.steps):
        step_taps(taps, w, step, 1)
        if step == last and vector:
            break
        window_run(dense, src, taps, w.taps[step], round_up(rows * pitch, lanes), NULL)
        src = dense
    if not vector:
        for r in range(rows):
            for i in range(n):
                dst[r * dst_step + i] = src[r * pitch + i * w.stride]
    elif w.stride == 1:
        window_rows(dst, dst_step, src, pitch, taps, w.taps[last], rows, n, NULL)
    else:
        window_every(dst, dst_step, src, pitch, taps, w.taps[last], w.stride, rows, n)


cdef void rows_of_pixels(number *band, Py_ssize_t pitch, const number *src, Py_ssize_t src_row, Py_ssize_t src_col,
                         const Pool *p, const Tile *tile, number *chain, const Leads *leads, vec_flag *nan,
                         const Keys *keys) noexcept nogil:
    """The row pass under a channels-last tile: one run where its pixels lie side by side, else pixel by pixel."""
    cdef Py_ssize_t n = tile.channels, cols = tile.col_hi - tile.col_lo, c
    if src_col == n:
        row_pass(band, pitch, src, src_row, tile.row_lo, &p.rows, tile.row, tile.rows, cols * n, chain, leads, nan,
                 keys)
        return
    for c in range(cols):
        row_pass(band + c * n, pitch, element(src, c * src_col, keys), src_row, tile.row_lo, &p.rows, tile.row, tile.rows, n, chain, leads,
                 nan, keys)


cdef void fill_margins(number *band, Py_ssize_t pitch, Py_ssize_t data, const Tile *tile, Py_ssize_t rows) noexcept nogil:
    cdef Py_ssize_t real = tile.col_hi - tile.col_lo, r
    for r in range(rows):
        fill(band + r * pitch + data, tile.left, <number>lowest(band))
        fill(band + r * pitch + data + tile.left + real, tile.span - tile.left - real, <number>lowest(band))
