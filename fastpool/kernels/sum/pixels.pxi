# Windows that hardly overlap, channels last: each one's pixels are added up in registers.

cdef void add_pixels(double *out, const any_t *src, const Block *b, Py_ssize_t rows,
                     Py_ssize_t row, Py_ssize_t cols, Py_ssize_t col) noexcept nogil:
    """Set the sums of one window's channels. `row` and `col` are elements from tap to tap."""
    cdef Py_ssize_t n = b.tile.channels, i = 0, s, r, c
    cdef const any_t *at
    cdef vec_t one, two, three, four
    while i + 4 * WIDE <= n:
        one = two = three = four = wide_zero()
        for s in range(b.slabs):
            for r in range(rows):
                at = src + b.offsets[s] + r * row + i
                for c in range(cols):
                    one = wide_add(one, wide(at))
                    two = wide_add(two, wide(at + WIDE))
                    three = wide_add(three, wide(at + 2 * WIDE))
                    four = wide_add(four, wide(at + 3 * WIDE))
                    at += col
        vec_store(out + i, one)
        vec_store(out + i + WIDE, two)
        vec_store(out + i + 2 * WIDE, three)
        vec_store(out + i + 3 * WIDE, four)
        i += 4 * WIDE
    while i < n:
        i = imin(i, n - WIDE)               # (some sums are made again)
        one = wide_zero()
        for s in range(b.slabs):
            for r in range(rows):
                at = src + b.offsets[s] + r * row + i
                for c in range(cols):
                    one = wide_add(one, wide(at))
                    at += col
        vec_store(out + i, one)
        i += WIDE


cdef void sum_pixels(double *out, const any_t *src, const Block *b, Py_ssize_t done,
                     Py_ssize_t stop) noexcept nogil:
    """Set the sums of some rows of windows. `src` is the first element of the tile."""
    cdef const Problem *p = &b.average.frame.problem
    cdef const Tile *tile = b.tile
    cdef const View *x = b.x
    cdef Py_ssize_t row = x.row, col = x.col, r, c, rows, cols, first_row, first
    row *= p.rows.dilation if p.rows.places == NULL else 1
    col *= p.cols.dilation if p.cols.places == NULL else 1
    for r in range(done, stop):
        rows = real_taps(&p.rows, tile.row + r, &first_row)
        for c in range(tile.cols):
            cols = real_taps(&p.cols, tile.col + c, &first)
            add_pixels(out, src + (first_row - tile.row_lo) * x.row + (first - tile.col_lo) * x.col,
                       b, rows, row, cols, col)
            out += tile.channels
