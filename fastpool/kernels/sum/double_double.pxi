# Sums that a double does not hold, as two doubles: every tap is added with its error.
#
# Most sums decide the rounding. If one does not (a tie, terms that cancel), its window is added up
# exactly. Every window adds its own taps, so this is for strategies that do so anyway, and for
# small windows over channels. Digits (digits.pxi) take what is left: sums that overflow, long
# windows of doubles that are not decided, and NaN that are left out.

cdef enum:
    MOST_PAIR_TAPS = 32     # of windows that would share sums, were they exact
    MOST_EXACT_TERMS = 512  # of doubles, whose exact sums are long


cdef bint takes_pairs(const Block *b, const SmallTile *small) noexcept nogil:
    """Are the sums of a tile that are not exact made again as two doubles?"""
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    if a.ignore_nan:
        return False
    if a.whole or a.pixels or (a.small and small.windows.slabs == b.slabs):
        return True
    return (b.tile.channels >= WIDE
            and b.slabs * imin(p.rows.kernel, p.rows.size) * imin(p.cols.kernel, p.cols.size)
            <= MOST_PAIR_TAPS)


cdef bint hardly_fits(const any_t *src, const Block *b) noexcept nogil:
    """Do the first elements tell that the sums of a tile's doubles need more bits than a double?

    `src` is the first element of the array. What fits has zeros in the end, like integers.
    """
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t c
    if any_t is double:
        if tile.row_hi > tile.row_lo and b.slabs:
            src += input_offset(&b.average.frame.problem, b.x, tile, 0) + b.offsets[0]
            for c in range(imin(8, tile.col_hi - tile.col_lo)):
                if has_low_bits(src[c * b.x.col]):
                    return True
    return False


cdef void set_pairs(double *high, double *low, double *missed, const real *src, const Block *b,
                    const SmallTile *small, Py_ssize_t done, Py_ssize_t stop) noexcept nogil:
    """Set the sums of some rows of windows. `src` is the first element of the tile's plane."""
    cdef const Problem *p = &b.average.frame.problem
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, r, c, i, s, rows, cols, row, col, first_row, first
    if b.average.whole:
        high[0] = low[0] = missed[0] = 0
        for s in range(b.slabs):
            for r in range(tile.row_hi - tile.row_lo):
                pair_run(high, low, missed, src + b.offsets[s] + r * b.x.row,
                         tile.col_hi - tile.col_lo)
        return
    if b.average.small and small.windows.slabs == b.slabs:
        set_rows(small, src, b, done, stop)     # (exact sums: single elements at stride 1)
        pair_small(small.in_doubles, &small.windows, 0, tile.cols, stop - done, high, low, missed,
                   tile.cols)
        return
    row = b.x.row * p.rows.dilation
    col = b.x.col * p.cols.dilation
    for r in range(done, stop):
        rows = real_taps(&p.rows, tile.row + r, &first_row)
        for c in range(tile.cols):
            cols = real_taps(&p.cols, tile.col + c, &first)
            i = 0
            while i < n:
                i = imin(i, n - WIDE)       # (some sums are made again)
                pair_pixels(high + i, low + i, missed + i,
                            src + (first_row - tile.row_lo) * b.x.row
                            + (first - tile.col_lo) * b.x.col + i, b.offsets, b.slabs, rows, row,
                            cols, col)
                i += WIDE
            high, low, missed = high + n, low + n, missed + n


cdef bint settle_output(char *y, const real *src, const Block *b, Py_ssize_t row, Py_ssize_t col,
                        Py_ssize_t channel, double divisor) noexcept nogil:
    """Pool one window exactly. Return False if its sum overflows, or is long."""
    cdef const Problem *p = &b.average.frame.problem
    cdef Py_ssize_t rows, cols, first_row, first, row_step, col_step, s, r, c
    cdef int result = b.average.result
    cdef exact_sum_t sum
    cdef double q, x, wild = 0              # the sum of NaN and infinities
    cdef float rounded
    cdef bint finite = True
    sum.count = 0
    if p.code == F64 and b.average.terms > MOST_EXACT_TERMS:
        return False
    rows = real_taps(&p.rows, b.tile.row + row, &first_row)
    cols = real_taps(&p.cols, b.tile.col + col, &first)
    row_step = b.x.row * p.rows.dilation
    col_step = b.x.col * p.cols.dilation
    src += (first_row - b.tile.row_lo) * b.x.row + (first - b.tile.col_lo) * b.x.col + channel
    for s in range(b.slabs):
        for r in range(rows):
            for c in range(cols):
                x = as_double(src + b.offsets[s] + r * row_step + c * col_step)
                if x - x != 0:
                    wild, finite = wild + x, False
                elif not add_exactly(&sum, x):
                    return False
    if not finite:
        q = wild / divisor
    elif result == F64:
        q = divide_exactly(&sum, divisor, 53, -1022)
    else:
        q = divide_exactly(&sum, divisor, 24 if result == F32 else 11 if result == F16 else 8,
                           -14 if result == F16 else -126)
    rounded = <float>q
    if result == F64:
        (<double *>y)[0] = q
    elif result == F32:
        (<float *>y)[0] = rounded
    elif result == F16:
        store_f16(<float16_t_ *>y, &rounded, 1)
    else:
        store_bf16(<bfloat16_t_ *>y, &rounded, 1)
    return True


cdef double exact_below(const real *src, const Block *b) noexcept nogil:
    """Return the limit below which the errors of sums are exact.

    It is 2**53 units of the last bit of the least element that is not 0.
    """
    cdef int code = b.average.frame.problem.code, last
    cdef range_t noted
    note_tile(&noted, src, b)
    if noted.most == 0:
        return 0
    last = exponent_of(noted.least) - (52 if code == F64 else 23)
    return power_of_two(<int>imin(imax(last, -1074) + 53, 1000))


cdef Py_ssize_t divide_pairs(char *y, const pairs_t *sums, Py_ssize_t first,
                             int result) noexcept nogil:
    """Store quotients from `first` on. Return the first one that is not sure, or `sums.n`."""
    cdef pairs_t few = sums[0]
    cdef Py_ssize_t sure
    if result == F32:
        return divide_pairs_f32(y, sums, first)
    if result == F16:
        return divide_pairs_f16(y, sums, first)
    if result == F64:
        return divide_pairs_f64(y, sums, first)
    while first < sums.n:                   # (few are divided again after one that is not sure)
        few.n = imin(first + WIDE, sums.n)
        fp_clear()
        sure = divide_pairs_bf16(y, &few, first)
        if fp_underflow():                  # (subnormals are rounded twice, to float32 first)
            return first
        if sure < few.n:
            return sure
        first = few.n
    return sums.n


cdef bint average_by_pairs(const View *view, const real *src, const Block *b,
                           const SmallTile *small, Py_ssize_t plane,
                           Py_ssize_t planes) noexcept nogil:
    """Pool planes of a tile; several, if they are whole and results are neighbours.

    `src` is the first element of the array. Return False if a sum overflows.
    """
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, width = tile.cols * n, done = 0, stop, r, c, i, run
    cdef Py_ssize_t moved
    cdef int size = dtype_bytes[a.result]
    cdef char *at
    cdef char *y = view.data + output_offset(p, view, tile, plane) * size
    cdef double *high = doubles(a, b.scratch, HIGH)
    cdef double *low = doubles(a, b.scratch, LOW)
    cdef double *missed = doubles(a, b.scratch, REST)
    cdef double by
    cdef divisors_t d
    cdef pairs_t sums
    cdef bint noted = False
    sums.terms, sums.overflows, sums.exact = a.terms, p.code == F64, 0
    while done < tile.rows:
        stop = imin(tile.rows, done + a.block_rows)
        for i in range(planes):
            set_pairs(high + i, low + i, missed + i, src + input_offset(p, b.x, tile, plane + i),
                      b, small, done, stop)
        for r in range(done, stop):
            set_divisors(&d, b, tile.row + r)
            sums.halves = d.powers_of_two
            run = tile.cols                 # columns with one call
            if not (view.col == n or tile.cols == 1) or (n > 1 and d.counts != NULL):
                run = 1
            c = 0
            while c < tile.cols:
                sums.n, sums.divisor, sums.counts = run * n * planes, d.divisor, d.counts
                if d.counts != NULL and (n > 1 or run == 1):
                    sums.divisor, sums.counts = d.divisor * d.counts[c], NULL
                sums.high = high + (r - done) * width + c * n
                sums.low = low + (r - done) * width + c * n
                sums.missed = missed + (r - done) * width + c * n
                at = y + (r * view.row + c * view.col) * size
                i = divide_pairs(at, &sums, 0, a.result)
                while i < sums.n:
                    if planes == 1 and not noted:
                        sums.exact, noted = exact_below(
                            src + input_offset(p, b.x, tile, plane), b), True
                    else:
                        moved = i if planes > 1 else 0      # planes; else columns and channels
                        by = sums.divisor * (1 if sums.counts == NULL else sums.counts[i])
                        if not settle_output(
                                at + i * size, src + input_offset(p, b.x, tile, plane + moved), b,
                                r, c + (i - moved) // n, (i - moved) % n, by):
                            return False
                        i += 1
                    i = divide_pairs(at, &sums, i, a.result)
                c += run
        done = stop
    return True
