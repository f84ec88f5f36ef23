# Takes:   8 channels and more, last, under windows that read an element at most twice
# Reads:   the input in place, STREAMS pixels at a time
# Scratch: the sums alone (HIGH)
# Wins:    against columns, one thread of an EPYC: 1x112x112x64 k2 s2 float32 143 -> 126 us
#          (AVX-512), 157 -> 140 (AVX2), uint8 143 -> 124, 277 -> 238. If sums are not exact, two
#          doubles against digits: 1x7x7x2048 k7 float32 164 -> 51, 191 -> 64, float64 232 -> 58
#
# The pixels of each window are added up in registers.

cdef enum:
    STREAMS = 8             # pixels that are read next to one another


cdef inline void add_streams(double *out, const any_t **pixels, int count, Py_ssize_t n,
                             bint adds) noexcept nogil:
    """Set whole vectors of n sums of up to STREAMS pixels, or add to them."""
    cdef Py_ssize_t i = 0
    cdef int p
    cdef vec_t one, two, three, four
    one = two = three = four = wide_zero()
    while i + 4 * WIDE <= n:
        if adds:
            one, two = vec_load(out + i), vec_load(out + i + WIDE)
            three, four = vec_load(out + i + 2 * WIDE), vec_load(out + i + 3 * WIDE)
        else:
            one = two = three = four = wide_zero()
        for p in range(count):
            one = wide_add(one, wide(pixels[p] + i))
            two = wide_add(two, wide(pixels[p] + i + WIDE))
            three = wide_add(three, wide(pixels[p] + i + 2 * WIDE))
            four = wide_add(four, wide(pixels[p] + i + 3 * WIDE))
        vec_store(out + i, one)
        vec_store(out + i + WIDE, two)
        vec_store(out + i + 2 * WIDE, three)
        vec_store(out + i + 3 * WIDE, four)
        i += 4 * WIDE
    while i + WIDE <= n:
        one = vec_load(out + i) if adds else wide_zero()
        for p in range(count):
            one = wide_add(one, wide(pixels[p] + i))
        vec_store(out + i, one)
        i += WIDE


cdef inline void add_last(double *out, const any_t *src, const Block *b, Py_ssize_t rows,
                          Py_ssize_t row, Py_ssize_t cols, Py_ssize_t col) noexcept nogil:
    """Set one vector of sums of a window."""
    cdef Py_ssize_t s, r, c
    cdef vec_t sum = wide_zero()
    for s in range(b.slabs):
        for r in range(rows):
            for c in range(cols):
                sum = wide_add(sum, wide(src + b.offsets[s] + r * row + c * col))
    vec_store(out, sum)


cdef void add_pixels(double *out, const any_t *src, const Block *b, Py_ssize_t rows,
                     Py_ssize_t row, Py_ssize_t cols, Py_ssize_t col) noexcept nogil:
    """Set the sums of one window's channels. `row` and `col` are elements from tap to tap."""
    cdef Py_ssize_t n = b.tile.channels, s, r, c
    cdef const any_t *pixels[STREAMS]
    cdef bint adds = False
    cdef int count = 0
    for s in range(b.slabs):
        for r in range(rows):
            for c in range(cols):
                pixels[count] = src + b.offsets[s] + r * row + c * col
                count += 1
                if count == STREAMS:
                    add_streams(out, pixels, STREAMS, n, adds)
                    adds, count = True, 0
    if count == 4 and not adds:             # (2 x 2: with constants the loops are unrolled)
        add_streams(out, pixels, 4, n, False)
    elif count > 0 or not adds:
        add_streams(out, pixels, count, n, adds)
    if n % WIDE:                            # (some sums are made again)
        add_last(out + n - WIDE, src + n - WIDE, b, rows, row, cols, col)


cdef void sum_pixels(double *out, const any_t *src, const Block *b, Py_ssize_t done,
                     Py_ssize_t stop) noexcept nogil:
    """Set the sums of some rows of windows. `src` is the first element of the tile."""
    cdef const Problem *p = &b.average.frame.problem
    cdef const Tile *tile = b.tile
    cdef const View *x = b.x
    cdef Py_ssize_t row = x.row, col = x.col, r, c, rows, cols, first_row, first
    row *= p.rows.dilation
    col *= p.cols.dilation
    for r in range(done, stop):
        rows = real_taps(&p.rows, tile.row + r, &first_row)
        for c in range(tile.cols):
            cols = real_taps(&p.cols, tile.col + c, &first)
            add_pixels(out, src + (first_row - tile.row_lo) * x.row + (first - tile.col_lo) * x.col,
                       b, rows, row, cols, col)
            out += tile.channels
