# One pass over one axis of a tile.
#
# row_pass never pools along a row: every output is a row of n elements, the maximum of whole rows
# of the input. It serves the rows of any layout, and the columns of channels-last arrays. Windows
# that hang over the edge drop taps. column_pass pools columns that are neighbours in memory. Its
# rows have margins that hold the lowest value.

cdef struct Pass:
    const Window *window
    Py_ssize_t first, count         # outputs
    Py_ssize_t origin               # the element of the axis that src begins with
    const Taps *leads               # slabs that are pooled together
    const Keys *keys                # if not NULL, src is yet to become keys: long windows only
    char *chain                     # scratch of long windows
    vec_flag *nan                   # if not NULL, NaN are tracked there


cdef struct Planes:                 # planes that are pooled in the inner loop
    Py_ssize_t count
    Py_ssize_t source, target       # elements from one to the next


cdef void row_pass(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step,
                   Py_ssize_t n, const Pass *run) noexcept nogil:
    """Pool one axis; each output is a row of n elements."""
    cdef Taps taps
    cdef const Window *w = run.window
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef Py_ssize_t first = run.first, last = first + run.count, o, begin, end
    cdef Planes one
    if w.steps > 1:
        long_row_pass(dst, dst_step, src, src_step, n, run)
        return
    taps_across_slabs(&taps, run.leads, w.kernel, w.dilation * src_step)
    begin = imax(first, imin(w.inner_lo, last))
    end = imax(begin, imin(w.inner_hi, last))
    # where the first inner output starts
    src += (begin * w.stride - w.begin - run.origin) * src_step
    if lanes <= n <= 4 * lanes:
        # Short rows: top to bottom in columns of one vector, or the edges would cost more than
        # the middle.
        o = 0
        while o < n:
            o = imin(o, n - lanes)
            column_edge(dst + o, dst_step, src + o, src_step, first, begin, begin, run)
            window_column(dst + (begin - first) * dst_step + o, dst_step, src + o,
                          w.stride * src_step, &taps, end - begin, run.nan)
            column_edge(dst + (end - first) * dst_step + o, dst_step, src + o, src_step, end, last,
                        begin, run)
            o += lanes
        return
    window_rows(dst + (begin - first) * dst_step, dst_step, src, w.stride * src_step, &taps,
                end - begin, n, run.nan)
    src -= (begin * w.stride - w.begin - run.origin) * src_step
    one.count, one.source, one.target = 1, 0, 0
    for o in range(first, begin):
        border_row(dst + (o - first) * dst_step, src, src_step, n, o, &one, run)
    for o in range(end, last):
        border_row(dst + (o - first) * dst_step, src, src_step, n, o, &one, run)


cdef inline void column_edge(number *dst, Py_ssize_t dst_step, const number *src,
                             Py_ssize_t src_step, Py_ssize_t first, Py_ssize_t end,
                             Py_ssize_t inner, const Pass *run) noexcept nogil:
    """Pool outputs first ... end, which hang over an edge, one vector wide.

    `src` is where output `inner` starts.
    """
    cdef const Window *w = run.window
    cdef const Taps *leads = run.leads
    cdef vec_flag *nan = run.nan
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), o, l, t, real, lo
    cdef Py_ssize_t step = w.dilation * src_step, start = inner * w.stride - w.begin
    cdef const number *at
    cdef vec_t best, tap
    for o in range(first, end):
        real = real_taps(w, o, &lo)
        if real == 0:
            fill_lowest(dst, lanes)
        else:
            at = src + (lo - start) * src_step
            best = track_nan(vec_load(at + leads.offsets[0]), nan, src)
            for l in range(leads.count):
                for t in range(real):
                    tap = track_nan(vec_load(at + leads.offsets[l] + t * step), nan, src)
                    best = vec_max(best, tap, src)
            vec_store(dst, best)
        dst += dst_step


cdef inline void border_row(number *dst, const number *src, Py_ssize_t src_step, Py_ssize_t n,
                            Py_ssize_t output, const Planes *planes,
                            const Pass *run) noexcept nogil:
    """Pool one output row, of only those taps that are elements, in each of the planes."""
    cdef const Window *w = run.window
    cdef Py_ssize_t lo, plane, real = real_taps(w, output, &lo)
    cdef Taps taps
    if real == 0:
        for plane in range(planes.count):
            fill_lowest(dst + plane * planes.target, n)
        return
    taps_across_slabs(&taps, run.leads, real, w.dilation * src_step)
    window_rows(dst, planes.target, src + (lo - run.origin) * src_step, planes.source, &taps,
                planes.count, n, run.nan)


cdef inline Py_ssize_t band_pitch(const Problem *p, const Tile *tile, Py_ssize_t lanes,
                                  Py_ssize_t *data) noexcept nogil:
    """Return the elements from one band row to the next. `data` gets where a row's columns begin.

    The first real column is aligned. Under chains it is not: their passes take all rows as one, and
    would pay for the gaps.
    """
    data[0] = 0
    if p.cols.steps > 1:
        return tile.span
    data[0] = round_up(tile.left, lanes) - tile.left
    return round_up(data[0] + tile.span, lanes)


cdef inline void pick_every(number *dst, const number *src, Py_ssize_t stride,
                            Py_ssize_t n) noexcept nogil:
    """Copy n elements that are `stride` apart.

    Unrolled by four: a loop of one element takes twice as long if its code straddles two cache
    lines.
    """
    cdef Py_ssize_t i = 0
    while i + 4 <= n:
        dst[i], dst[i + 1] = src[0], src[stride]
        dst[i + 2], dst[i + 3] = src[2 * stride], src[3 * stride]
        src += 4 * stride
        i += 4
    while i < n:
        dst[i] = src[0]
        src += stride
        i += 1


cdef void column_pass(number *dst, Py_ssize_t dst_step, number *band, number *dense,
                      Py_ssize_t pitch, const Window *w, Py_ssize_t rows,
                      Py_ssize_t n) noexcept nogil:
    """Pool rows of `band`, margins in place, to n outputs each.

    A chain goes through `dense`, which may be `band`.
    """
    cdef Taps taps
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef Py_ssize_t step, r, last = w.steps - 1
    cdef bint shuffled = shuffled_stride(w)
    cdef number *src = band
    for step in range(w.steps):
        step_taps(&taps, w, step, 1)
        if step == last and shuffled:
            break
        window_run(dense, <const number *>src, &taps, round_up(rows * pitch, lanes), NULL)
        src = dense
    if not shuffled:
        for r in range(rows):
            pick_every(dst + r * dst_step, src + r * pitch, w.stride, n)
    elif w.stride == 1:
        window_rows(dst, dst_step, <const number *>src, pitch, &taps, rows, n, NULL)
    else:
        window_every(dst, dst_step, <const number *>src, pitch, &taps, w.stride, rows, n)


cdef void rows_of_pixels(number *band, Py_ssize_t pitch, const number *src, const Source *s,
                         const Tile *tile, const Pass *run) noexcept nogil:
    """Pool the rows under a channels-last tile: in one run if its pixels are contiguous."""
    cdef Py_ssize_t n = tile.channels, cols = tile.col_hi - tile.col_lo, c
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    if s.col == n:
        row_pass(band, pitch, src, s.row, cols * n, run)
        return
    if run.window.steps > 1 and share_no_rows(run.window, run.count) and n >= lanes:
        separate_row_pass(band, pitch, src, s.row, cols, s.col, n, run)
        return
    for c in range(cols):
        row_pass(band + c * n, pitch, element(src, c * s.col, run.keys), s.row, n, run)


cdef void fill_margins(number *band, Py_ssize_t pitch, Py_ssize_t data, const Tile *tile,
                       Py_ssize_t rows) noexcept nogil:
    cdef Py_ssize_t real = tile.col_hi - tile.col_lo, r
    for r in range(rows):
        fill_lowest(band + r * pitch + data, tile.left)
        fill_lowest(band + r * pitch + data + tile.left + real, tile.span - tile.left - real)


cdef inline void set_pass_of_rows(Pass *run, const Work *work) noexcept nogil:
    """Set a pass over the rows of a tile."""
    cdef const Tile *tile = work.tile
    run.window = &work.pool.frame.problem.rows
    run.first, run.count, run.origin = tile.row, tile.rows, tile.row_lo
    run.leads, run.keys, run.nan = work.leads, NULL, NULL
    run.chain = area_of(work.pool, work.scratch, CHAIN)


cdef inline void set_pass_of_cols(Pass *run, const Work *work, const Taps *one) noexcept nogil:
    """Set a pass over the columns of a channels-last tile; `one` is a single slab."""
    cdef const Tile *tile = work.tile
    run.window = &work.pool.frame.problem.cols
    run.first, run.count, run.origin = tile.col, tile.cols, tile.col_lo
    run.leads, run.keys, run.nan = one, NULL, NULL
    run.chain = area_of(work.pool, work.scratch, CHAIN)
