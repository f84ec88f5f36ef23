# Windows with indices that share rows: each row under a tile is compared once.

cdef enum:
    RING = 32               # rows under a window that slides


cdef struct Under:          # the rows under a sequence of windows, each a tap below the last
    Py_ssize_t above        # rows of the first window before the first real one
    Py_ssize_t size         # real rows
    Py_ssize_t count        # windows


cdef inline void slide_square_rows(const Outputs *first, const ordered *src,
                                   const WindowColumns *cols, const WindowRows *rows,
                                   const Under *under, int64_t base_row,
                                   bint five) noexcept nogil:
    """Pool windows of three or five rows and columns: a row is compared once.

    In the place of a row outside, the nearest row inside is compared, with its own position. Its
    window has that row too, since no window is empty. `src` is the first real row. A row of windows
    adds `base_row` to the index.
    """
    cdef Py_ssize_t tap = -under.above, count = under.count, left = count - 1 + (4 if five else 2)
    cdef Py_ssize_t n = first.n, row = first.row, index_row = first.index_row
    cdef Py_ssize_t step = rows.tap_step, size = under.size
    cdef int64_t base = first.base
    cdef ordered *values = <ordered *>first.values
    cdef char *indices = first.indices
    cdef Indices how = first.how[0]     # (stores of values might change what a pointer points to)
    cdef vec_t back = vec_set_int(-base_row, src)
    cdef Compared one
    cdef Best a, b, c, d, e, best
    one.slabs, one.rows, one.taps, one.stride = 1, 1, 5 if five else 3, 1
    argmax_row(&e, src, cols, &one, NULL)
    e.place = vec_add_int(e.place, vec_set_int(under.above * base_row, src), src)
    copy_best(&a, &e)
    copy_best(&b, &e)
    copy_best(&c, &e)
    copy_best(&d, &e)
    while True:
        if left < count:
            copy_best(&best, &a if five else &c)
            if five:
                argmax_update(&best, b.key, vec_add_int(b.place, rows.places[1], src), src)
                argmax_update(&best, c.key, vec_add_int(c.place, rows.places[2], src), src)
                copy_best(&a, &d)
                a.place = vec_add_int(d.place, rows.places[3], src)
                argmax_update(&a, e.key, vec_add_int(e.place, rows.places[4], src), src)
                argmax_update(&best, a.key, a.place, src)
            else:
                argmax_update(&best, d.key, vec_add_int(d.place, rows.places[1], src), src)
                argmax_update(&best, e.key, vec_add_int(e.place, rows.places[2], src), src)
            store_best(values, indices, &best, n, base, &how)
            values, indices, base = values + row, indices + index_row, base + base_row
        if left == 0:
            return
        left -= 1
        tap += 1
        if five:
            copy_best(&a, &b)
            copy_best(&b, &c)
        copy_best(&c, &d)
        copy_best(&d, &e)
        if 0 < tap < size:
            argmax_row(&e, src + tap * step, cols, &one, NULL)
        else:
            e.place = vec_add_int(e.place, back, src)


# Not inline: among what surrounds their calls, the loops would keep offsets in memory (13 % of
# 1x64x56x56 k3, AVX2).

cdef void slide_three_rows(const Outputs *first, const ordered *src, const WindowColumns *cols,
                           const WindowRows *rows, const Under *under,
                           int64_t base_row) noexcept nogil:
    slide_square_rows(first, src, cols, rows, under, base_row, False)


cdef void slide_five_rows(const Outputs *first, const ordered *src, const WindowColumns *cols,
                          const WindowRows *rows, const Under *under,
                          int64_t base_row) noexcept nogil:
    slide_square_rows(first, src, cols, rows, under, base_row, True)


cdef inline void slide_rows(const Outputs *first, const ordered *src, const WindowColumns *cols,
                            const WindowRows *rows, const Window *w, const Tile *tile,
                            Py_ssize_t stride) noexcept nogil:
    """Pool all rows of a tile under windows that share rows.

    `src` is in the first row under the tile, as the base of the outputs is.
    """
    cdef vec_t keys[RING]
    cdef vec_t places[RING]             # (apart: a Best would be copied in halves)
    cdef Outputs to = first[0]
    cdef int64_t base = to.base
    cdef Compared one
    cdef Best best, lower
    cdef Py_ssize_t step = rows.step, dilation = w.dilation, made = 0, o, t, at, row, real, half
    one.slabs, one.rows, one.taps, one.stride = 1, 1, cols.taps, stride
    for o in range(tile.row, tile.row + tile.rows):
        real = real_taps(w, o, &row)
        row -= tile.row_lo
        if dilation == 1:               # (else a later window may begin with an earlier row)
            made = imax(made, row)
        if real == 0:                   # (its row may be far beyond the input)
            store_none(&to, src)
        else:
            while made <= row + (real - 1) * dilation:
                argmax_row(&best, src + made * step, cols, &one, NULL)
                keys[made & (RING - 1)], places[made & (RING - 1)] = best.key, best.place
                made += 1
            best.key, best.place = keys[row & (RING - 1)], places[row & (RING - 1)]
            half = (real + 1) // 2
            at = (row + half * dilation) & (RING - 1)
            lower.key, lower.place = keys[at], vec_add_int(places[at], rows.places[half], src)
            for t in range(1, half):
                at = (row + t * dilation) & (RING - 1)
                argmax_update(&best, keys[at], vec_add_int(places[at], rows.places[t], src), src)
                if half + t < real:
                    at = (row + (half + t) * dilation) & (RING - 1)
                    argmax_update(&lower, keys[at],
                                  vec_add_int(places[at], rows.places[half + t], src), src)
            if real > 1:
                argmax_update(&best, lower.key, lower.place, src)
            store_best(<ordered *>to.values, to.indices, &best, to.n, base + row * rows.place,
                       to.how)
        next_rows(&to, 1, 0, src)


cdef inline void slide_taps_down(const Outputs *first, const ordered *src,
                                 const WindowColumns *cols, const WindowRows *rows, const Pool *p,
                                 const Tile *tile) noexcept nogil:
    """Pool the rows of a tile under windows that share rows; the smallest have their own loops."""
    cdef const Window *w = &p.frame.problem.rows
    cdef Py_ssize_t residue, start, step = w.dilation
    cdef const ordered *at
    cdef Outputs to
    cdef Under under
    if p.taps.slides_square:
        for residue in range(imin(step, tile.rows)):    # dilated rows: as many slides
            start = tile.row + residue - w.begin
            under.above = ceil_div(imax(-start, 0), step)
            under.count = ceil_div(tile.rows - residue, step)
            under.size = (w.size - 1 - start) // step + 1 - under.above
            start -= tile.row_lo
            to = first[0]
            next_rows(&to, residue, start * rows.place, src)
            to.row *= step
            to.index_row *= step
            at = src + (start + under.above * step) * rows.step
            if cols.taps == 5:
                slide_five_rows(&to, at, cols, rows, &under, step * rows.place)
            else:
                slide_three_rows(&to, at, cols, rows, &under, step * rows.place)
    elif cols.stride == 2:
        slide_rows(first, src, cols, rows, w, tile, 2)
    else:
        slide_rows(first, src, cols, rows, w, tile, 1)
