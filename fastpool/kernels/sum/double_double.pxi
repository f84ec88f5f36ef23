# Sums that a double does not hold, as two doubles: every tap is added with its error.
#
# Most of them decide the rounding. If one does not (a tie, digits that cancel, an overflow), the
# plane is pooled by digits. Every window adds its own taps, so this is for those strategies that do
# so anyway: small windows, pixels and whole planes, without leading taps.

cdef bint takes_pairs(const Block *b, const SmallTile *small) noexcept nogil:
    cdef const Average *a = b.average
    if a.small and small.windows.pairs and not MASKED_ROWS:
        return False                        # (one output at a time would read beyond the row)
    return b.slabs == 1 and not a.ignore_nan and (a.small or a.whole or a.pixels)


cdef void set_pairs(double *high, double *low, double *missed, const real *src, const Block *b,
                    const SmallTile *small, Py_ssize_t done, Py_ssize_t stop) noexcept nogil:
    """Set the sums of some rows of windows. `src` is the first element of the tile's plane."""
    cdef const Problem *p = &b.average.frame.problem
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, width = tile.cols * n, r, c, i, rows, cols, row, col
    cdef Py_ssize_t first_row, first
    cdef small_windows_t later
    if b.average.whole:
        high[0] = low[0] = missed[0] = 0
        for r in range(tile.row_hi - tile.row_lo):
            pair_run(high, low, missed, src + b.offsets[0] + r * b.x.row,
                     tile.col_hi - tile.col_lo)
        return
    if b.average.small:
        set_rows(small, src, b, done, stop)
        later = small.windows
        if small.stride == 1 and not later.pairs:
            pair_small(small.in_doubles, &later, 0, width, stop - done, high, low, missed, width)
            return
        for r in range(stop - done):        # (whole vectors overwrite what comes after them)
            for c in range(tile.cols):
                i = r * width + c * n
                pair_small(small.in_doubles, &later, c * p.cols.stride * n, n, 1, high + i,
                           low + i, missed + i, width)
            later.rows += later.stride
        return
    row = b.x.row * (p.rows.dilation if p.rows.places == NULL else 1)
    col = b.x.col * (p.cols.dilation if p.cols.places == NULL else 1)
    for r in range(done, stop):
        rows = real_taps(&p.rows, tile.row + r, &first_row)
        for c in range(tile.cols):
            cols = real_taps(&p.cols, tile.col + c, &first)
            i = 0
            while i < n:
                i = imin(i, n - WIDE)       # (some sums are made again)
                pair_pixels(high + i, low + i, missed + i,
                            src + b.offsets[0] + (first_row - tile.row_lo) * b.x.row
                            + (first - tile.col_lo) * b.x.col + i, rows, row, cols, col)
                i += WIDE
            high, low, missed = high + n, low + n, missed + n


cdef bint divide_pairs(char *y, const pairs_t *sums, int result) noexcept nogil:
    if result == F32:
        return divide_pairs_f32(y, sums)
    if result == F16:
        return divide_pairs_f16(y, sums)
    if result == BF16:
        fp_clear()                          # (subnormals are rounded twice, to float32 first)
        return divide_pairs_bf16(y, sums) and not fp_underflow()
    return divide_pairs_f64(y, sums)


cdef double exact_below(const real *src, const Block *b) noexcept nogil:
    """Return below what errors of sums are exact: 2**53 units of the elements' last bits."""
    cdef int code = b.average.frame.problem.code, last
    cdef range_t noted
    note_tile(&noted, src, b)
    if noted.most == 0:
        return 0
    last = exponent_of(noted.least) - (52 if code == F64 else 23)
    return power_of_two(<int>imin(imax(last, -1074) + 53, 1000))


cdef bint average_by_pairs(char *y, const View *view, const real *src, const Block *b,
                           const SmallTile *small) noexcept nogil:
    """Pool one plane of a tile. Return False if a result is not sure."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, width = tile.cols * n, done = 0, stop, r, c, run
    cdef int size = dtype_bytes[a.result]
    cdef char *at
    cdef double *high = doubles(a, b.scratch, HIGH)
    cdef double *low = doubles(a, b.scratch, LOW)
    cdef double *missed = doubles(a, b.scratch, REST)
    cdef divisors_t d
    cdef pairs_t sums
    cdef bint noted = False
    sums.terms, sums.overflows, sums.exact = a.terms, a.frame.problem.code == F64, 0
    while done < tile.rows:
        stop = imin(tile.rows, done + a.block_rows)
        set_pairs(high, low, missed, src, b, small, done, stop)
        for r in range(done, stop):
            set_divisors(&d, a, tile, tile.row + r)
            run = tile.cols                 # columns with one call
            if not (view.col == n or tile.cols == 1) or (n > 1 and d.counts != NULL):
                run = 1
            c = 0
            while c < tile.cols:
                sums.n, sums.divisor, sums.counts = run * n, d.divisor, d.counts
                if d.counts != NULL and (n > 1 or run == 1):
                    sums.divisor, sums.counts = d.divisor * d.counts[c], NULL
                sums.high = high + (r - done) * width + c * n
                sums.low = low + (r - done) * width + c * n
                sums.missed = missed + (r - done) * width + c * n
                at = y + (r * view.row + c * view.col) * size
                if not divide_pairs(at, &sums, a.result):
                    if noted:
                        return False
                    sums.exact, noted = exact_below(src, b), True
                    if not divide_pairs(at, &sums, a.result):
                        return False
                c += run
        done = stop
    return True
