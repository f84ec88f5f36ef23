# Sums of the passes (window_sums.pxi), divided in their own type: numerics="pairwise" and
# "sequential". Windows of one column, of at most MOST_LEAF rows, need no passes if elements have
# the type of means: rows are added to results, and divided (512x512 3x1 79 -> 60 us).
#
# Scratch: if sums are not divided where they are stored, a block of them (HIGH); divisors
#          (DIVISORS), and if NaN are left out, their numbers (NANS)

cdef struct PairTile:                   # what the planes of a tile have in common
    Passes passes
    int known                           # rows of divisors that were ever set
    double others[PAIR_SLOTS]           # what their divisors have in common
    bint quick[PAIR_SLOTS]              # have they reciprocals?
    Py_ssize_t taps                     # of the windows of a row whose NaN were left out last,
    double by                           # and what their divisors have in common


cdef void store_means(char *y, const acc_t *means, Py_ssize_t n, int result) noexcept nogil:
    """Round means to the result's type."""
    if acc_t is float:
        if result == F16:
            store_f16(<float16_t_ *>y, means, n)
        elif result == BF16:
            store_bf16(<bfloat16_t_ *>y, means, n)
        elif result == F64:
            to_doubles_of(F32)(y, means, n, 0)
        else:
            memcpy(y, means, n * 4)
    else:
        memcpy(y, means, n * 8)


cdef void store_rows(char *y, const View *view, const acc_t *means, Py_ssize_t rows,
                     const Block *b) noexcept nogil:
    """Round rows of means to the result's type."""
    cdef Py_ssize_t n = b.tile.channels, r, c, runs = b.tile.cols
    cdef int size = dtype_bytes[b.average.result]
    if view.col == n or runs == 1:
        n, runs = n * runs, 1
        if view.row == n:                   # rows are neighbours in memory
            n, rows = n * rows, 1
    for r in range(rows):
        for c in range(runs):
            store_means(y + (r * view.row + c * view.col) * size, means, n, b.average.result)
            means += n


cdef void set_pair_divisors(PairDivisors *p, PairTile *t, const Block *b, Py_ssize_t row,
                            const acc_t *tag) noexcept nogil:
    """Set the divisors of a row of windows, which rows that are alike share."""
    cdef Py_ssize_t width = b.tile.cols, pitch = width + VEC_BYTES // 4, c
    cdef acc_t *by = <acc_t *>doubles(b.average, b.scratch, DIVISORS)
    cdef divisors_t d
    cdef double divisor
    cdef int slot = 0
    set_divisors(&d, b, row)
    while slot < imin(t.known, PAIR_SLOTS) and t.others[slot] != d.divisor:
        slot += 1
    p.vary = t.passes.pixels or d.counts != NULL
    if slot == imin(t.known, PAIR_SLOTS):
        slot = t.known % PAIR_SLOTS
        t.known += 1
        t.others[slot] = d.divisor
        by += 3 * slot * pitch
        for c in range(width if p.vary else 1):
            divisor = d.divisor * (1 if d.counts == NULL else d.counts[c])
            by[c] = <acc_t>(divisor if divisor else 1)  # (without elements the sum is 0)
        if p.vary:                          # (of a vector after the last column)
            fill(by + width, pitch - width, <acc_t>1)
        t.quick[slot] = set_pair_reciprocals(by, by + pitch, by + 2 * pitch,
                                             pitch if p.vary else 1)
    else:
        by += 3 * slot * pitch
    p.by, p.high, p.low = by, NULL, NULL
    if t.quick[slot]:
        p.high, p.low = by + pitch, by + 2 * pitch


cdef void average_without_nans(char *y, const View *view, PairTile *t, const char *src,
                               const Block *b, Py_ssize_t row, Py_ssize_t stop,
                               const acc_t *tag) noexcept nogil:
    """Pool some rows of windows, some of whose NaN are left out. Bands have their sums."""
    cdef const Average *a = b.average
    cdef acc_t *sums = <acc_t *>doubles(a, b.scratch, HIGH)
    cdef double *nans = doubles(a, b.scratch, NANS)
    sum_along(sums, &t.passes, b, stop - row)
    if acc_t is float and a.wide_counts:
        begin_passes(&t.passes, b, NULL, -1, nans)
        count_nans(nans, &t.passes, src, b, row, stop, False)
        begin_passes(&t.passes, b, NULL, -1, tag)
        divide_rows_of_some(y, view, t, sums, <const double *>nans, b, row, stop)
        return
    count_nans(<acc_t *>nans, &t.passes, src, b, row, stop, True)
    divide_rows_of_some(y, view, t, sums, <const acc_t *>nans, b, row, stop)


cdef void divide_rows_of_some(char *y, const View *view, PairTile *t, acc_t *sums,
                              const count_t *nans, const Block *b, Py_ssize_t row,
                              Py_ssize_t stop) noexcept nogil:
    """Divide some rows of sums by the taps of their windows that are no NaN."""
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef Py_ssize_t n = b.tile.channels, width = b.tile.cols * n, r, c, rows, first
    cdef count_t *by = <count_t *>(doubles(a, b.scratch, DIVISORS)
                                   + 3 * PAIR_SLOTS * (b.tile.cols + VEC_BYTES // 4))
    cdef count_t *taps = by + b.tile.cols
    cdef divisors_t d
    for r in range(row, stop):
        rows = real_taps(&p.rows, r, &first) * b.slabs
        set_divisors(&d, b, r)
        if rows != t.taps or d.divisor != t.by:
            t.taps, t.by = rows, d.divisor
            for c in range(b.tile.cols):
                taps[c] = <count_t>(rows * real_taps(&p.cols, b.tile.col + c, &first))
                by[c] = <count_t>(d.divisor * (d.counts[c] if d.counts != NULL else 1))
        if n == 1:
            divide_some(sums, nans, taps, by, False, a.divisor != 0, width)
        else:
            for c in range(b.tile.cols):
                divide_some(sums + c * n, nans + c * n, taps + c, by + c, True, a.divisor != 0, n)
        store_rows(y, view, <const acc_t *>sums, 1, b)
        y += view.row * dtype_bytes[a.result]
        sums += width
        nans += width


cdef bint pool_by_pixels(char *y, const View *view, PairTile *t, const char *src, const Block *b,
                         const acc_t *tag) noexcept nogil:
    """Pool one plane of a tile by rows of pixels. Return False if a mean may be wrong."""
    cdef const Average *a = b.average
    cdef acc_t *sums = <acc_t *>doubles(a, b.scratch, HIGH)
    cdef bint in_place = a.result == F32 or a.result == F64
    cdef Py_ssize_t n = b.tile.channels, r
    cdef PairDivisors d
    fp_clear()
    for r in range(b.tile.rows):
        set_pair_divisors(&d, t, b, b.tile.row + r, tag)
        if d.high == NULL:
            return False
        pool_row_of_pixels(y if in_place else <char *>sums, view.col if in_place else n, t, src, b,
                           b.tile.row + r, &d, tag)
        if not in_place:
            store_rows(y, view, <const acc_t *>sums, 1, b)
        y += view.row * dtype_bytes[a.result]
    return not fp_unsure()


cdef bint has_columns(const Passes *t, const Block *b) noexcept nogil:
    """Are the windows of a tile a few neighbours of one column, which need no band?

    Most rows of windows are uncut: others begin blocks of their own (3x8x100 1.1 -> 1.8 us).
    """
    cdef const Window *rows = &b.average.frame.problem.rows
    cdef const Window *cols = &b.average.frame.problem.cols
    return (cols.kernel == cols.stride == 1 and cols.inner_lo == 0 and cols.inner_hi == cols.out
            and rows.kernel <= MOST_LEAF and 2 * (rows.inner_hi - rows.inner_lo) > rows.out
            and not rows.irregular and not b.average.sequential and t.flat and t.trees.direct
            and (t.trees.col == b.tile.channels * t.trees.size or b.tile.cols == 1))


cdef Py_ssize_t average_columns(char *y, Py_ssize_t pitch, PairTile *t, const char *src,
                                const Block *b, Py_ssize_t row, const acc_t *tag) noexcept nogil:
    """Pool rows of windows that `has_columns` takes. Return the row up to which they are alike.

    `y` is the first mean of `row`, `pitch` from one row of means to the next.
    """
    cdef const Window *w = &b.average.frame.problem.rows
    cdef Py_ssize_t last = same_divisors(b, row, b.tile.rows), k
    cdef Py_ssize_t first = b.tile.row + row
    cdef PairDivisors d
    cdef pairs_of_t pairs
    last = imin(last, w.inner_hi - b.tile.row)
    set_pair_divisors(&d, t, b, first, tag)
    begin_pairs(&pairs, <acc_t *>y, pitch, last - row, 0)
    pairs.step = pairs.last_step = w.stride * (b.x.row // t.passes.trees.size)
    pairs.count = <int>w.kernel
    src += (window_start(w, first) - b.tile.row_lo) * b.x.row
    for k in range(w.kernel):
        pairs.taps[k] = src + k * w.dilation * b.x.row
    add_outputs(&pairs, b, &d, 1, tag)
    return last


cdef void average_pairwise(char *y, const View *view, PairTile *t, const char *src,
                           const Block *b, const acc_t *tag) noexcept nogil:
    """Pool one plane of a tile. `src` is its first element."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, done = 0, stop, r, last
    cdef int size = dtype_bytes[a.result]
    cdef acc_t *sums = <acc_t *>doubles(a, b.scratch, HIGH)
    cdef acc_t *bands = <acc_t *>doubles(a, b.scratch, COLUMNS)
    cdef bint in_place = (size == sizeof(acc_t) and (view.col == n or tile.cols == 1))
    cdef const Window *rows = &a.frame.problem.rows
    cdef bint in_columns = in_place and has_columns(&t.passes, b)
    cdef pairs_of_t pairs
    cdef PairDivisors d
    if t.passes.pixels and pool_by_pixels(y, view, t, src, b, tag):
        return
    while done < tile.rows:
        r = tile.row + done
        if in_columns and rows.inner_lo <= r < rows.inner_hi:
            done = average_columns(y + done * view.row * size, view.row, t, src, b, done, tag)
            continue
        stop = imin(tile.rows, done + a.block_rows)
        if in_columns and r < rows.inner_lo:
            stop = imin(stop, rows.inner_lo - tile.row)
        t.passes.nans = False
        sum_down(bands, &t.passes, src, b, tile.row + done, tile.row + stop)
        r = done
        if t.passes.nans:
            average_without_nans(y + done * view.row * size, view, t, src, b,
                                 tile.row + done, tile.row + stop, tag)
            r = stop
        while r < stop:
            last = same_divisors(b, r, stop)
            set_pair_divisors(&d, t, b, tile.row + r, tag)
            begin_pairs(&pairs, sums, tile.cols * n, last - r, 0)
            pairs.step = pairs.last_step = a.band
            pairs.taps[0] = first_band(&t.passes, b, <const acc_t *>bands) + (r - done) * a.band
            if in_place:
                pairs.to, pairs.pitch = y + r * view.row * size, view.row
            add_along(&pairs, b, &d, tag)
            if not in_place:
                store_rows(y + r * view.row * size, view, <const acc_t *>sums, last - r, b)
            r = last
        done = stop


cdef void average_whole_planes(const View *y, PairTile *t, const char *src, const Block *b,
                               const acc_t *tag) noexcept nogil:
    """Pool planes of one window each."""
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t plane = 0, count, i
    cdef bint spaced = evenly_spaced(p, b.x) and evenly_spaced(p, y)
    cdef acc_t *means = <acc_t *>doubles(a, b.scratch, HIGH)    # (not in place: vectors overlap)
    cdef char *to
    cdef PairDivisors d
    cdef pairs_of_t one
    set_pair_divisors(&d, t, b, tile.row, tag)
    while plane < tile.planes:
        count = neighbours(b, plane, imin(a.block, tile.planes - plane), spaced)
        begin_pairs(&one, means, 0, 1, count)
        one.count = 1
        one.taps[0] = sum_whole_planes(&t.passes, src + input_offset(p, b.x, tile, plane), b, count,
                                       tag)
        add_divided(&one, &d, 0, b, tag)
        to = y.data + output_offset(p, y, tile, plane) * dtype_bytes[a.result]
        if y.channel == 1:
            store_means(to, means, count, a.result)
        else:
            for i in range(count):
                store_means(to + i * y.channel * dtype_bytes[a.result], means + i, 1, a.result)
        plane += count


cdef void average_planes_pairwise(const View *y, const char *src, Block *b,
                                  const acc_t *tag) noexcept nogil:
    """Pool the planes of a tile."""
    cdef const Problem *p = &b.average.frame.problem
    cdef PairTile t
    cdef Py_ssize_t plane
    begin_tile(&t.passes, src, b, tag)
    t.known, t.taps = 0, -1
    t.passes.pixels = not b.average.sequential and takes_pixels(
        &t.passes, b, F32 if sizeof(acc_t) == 4 else F64, tag)
    if b.average.whole:
        average_whole_planes(y, &t, src, b, tag)
        return
    if not b.average.sequential and has_squares(&t.passes, y, b, tag) and pool_squares(
            y, &t, src, b, tag):
        return
    for plane in range(b.tile.planes):
        average_pairwise(y.data + output_offset(p, y, b.tile, plane)
                         * dtype_bytes[b.average.result], y, &t,
                         src + input_offset(p, b.x, b.tile, plane), b, tag)
