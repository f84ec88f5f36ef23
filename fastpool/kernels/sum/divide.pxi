# Divide sums: the last step.
#
# Sums that the reciprocals of divisors are made for take two operations (quick_quotients.h). Others
# are divided with care (quotients.h): sums of digits, and those that the first way is not sure of.

cdef double divisor_of_row(const Average *a, const Tile *tile, Py_ssize_t output) noexcept nogil:
    """Return what the divisors of one row of outputs have in common, but for columns' counts."""
    cdef const Problem *p = &a.frame.problem
    cdef Py_ssize_t axis = p.leads, lead = tile.lead
    cdef double by = count_of(&a.rows, &p.rows, output)
    while axis > 0:
        axis -= 1
        by *= count_of(&a.lead[axis], &p.lead[axis], lead % p.lead[axis].out)
        lead //= p.lead[axis].out
    return by


cdef void set_divisors(divisors_t *d, const Block *b, Py_ssize_t output) noexcept nogil:
    """Set by what one row of outputs is divided; the counts of columns begin with the tile's."""
    cdef const Average *a = b.average
    cdef double by
    d.counts = d.reciprocals = NULL
    d.rounding = a.rounding
    if a.divisor:
        by = a.divisor
    else:
        by = divisor_of_row(a, b.tile, output)
        if b.counts == NULL:
            by *= b.count
        else:
            d.counts, d.reciprocals = b.counts, b.reciprocals
    d.powers_of_two = is_power_of_two(by) and (d.counts == NULL or a.cols.powers_of_two)
    d.divisor, d.reciprocal = by, 1 / by if by else 0


cdef inline Row row_from(const Row *row, Py_ssize_t i) noexcept nogil:
    """Return the sums from the i-th on."""
    cdef Row later
    cdef int w
    later.words, later.divisors = row.words, NULL
    later.sums = row.sums
    later.sums.high += i
    if row.sums.low != NULL:
        later.sums.low += i
    if row.sums.rest != NULL:
        later.sums.rest += i
    for w in range(row.words):
        later.word[w] = row.word[w] + i
    if row.divisors != NULL:
        later.divisors, later.reciprocals = row.divisors + i, row.reciprocals + i
    return later


cdef void divide(char *y, const Row *row, const divisors_t *d, Py_ssize_t n,
                 int result) noexcept nogil:
    """Divide n sums and store the quotients."""
    cdef const sums_t *s = &row.sums
    cdef bint is_signed = result == I8 or result == I16 or result == I32 or result == I64
    if row.words:
        divide_words(y, row.word, row.words, d, n, is_signed, dtype_bytes[result])
    elif result == F32:
        divide_f32(<float *>y, s, d, n)
    elif result == F64:
        divide_f64(<double *>y, s, d, n)
    elif result == F16:
        divide_f16(<float16_t_ *>y, s, d, n)
    elif result == BF16:
        divide_bf16(<bfloat16_t_ *>y, s, d, n)
    elif result == I8:
        divide_i8(<int8_t *>y, s, d, n)
    elif result == U8:
        divide_u8(<uint8_t *>y, s, d, n)
    elif result == I16:
        divide_i16(<int16_t *>y, s, d, n)
    elif result == U16:
        divide_u16(<uint16_t *>y, s, d, n)
    elif result == I32:
        divide_i32(<int32_t *>y, s, d, n)
    elif result == U32:
        divide_u32(<uint32_t *>y, s, d, n)
    elif result == I64:
        divide_i64(<int64_t *>y, s, d, n)
    elif result == U64:
        divide_u64(<uint64_t *>y, s, d, n)
    else:
        divide_bool(<bool_t_ *>y, s, d, n)


cdef void divide_row(char *y, Py_ssize_t col, const Row *row, const divisors_t *divisors,
                     const Block *b) noexcept nogil:
    """Divide one row of sums by the divisors of its columns.

    `y` is its first output, `col` the elements from one column to the next.
    """
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, c = 0, stop
    cdef int result = b.average.result, size = dtype_bytes[result]
    cdef divisors_t d = divisors[0]
    cdef Row run
    col = n if tile.cols == 1 else col
    if row.divisors != NULL:                # one by one
        d.powers_of_two, d.divisor, d.reciprocal = False, 1, 1
        for c in range(1 if col == n else tile.cols):
            run = row_from(row, c * n)
            d.counts, d.reciprocals = run.divisors, run.reciprocals
            divide(y + c * col * size, &run, &d, tile.cols * n if col == n else n, result)
        return
    if col == n and (n == 1 or d.counts == NULL):
        divide(y, row, &d, tile.cols * n, result)
        return
    d.counts = d.reciprocals = NULL
    while c < tile.cols:                    # runs of columns with one divisor
        stop = c + 1
        if divisors.counts != NULL:
            d.divisor = divisors.divisor * divisors.counts[c]
            d.reciprocal = 1 / d.divisor if d.divisor else 0
        if col == n:
            while stop < tile.cols and (divisors.counts == NULL
                                        or divisors.counts[stop] == divisors.counts[c]):
                stop += 1
        run = row_from(row, c * n)
        divide(y + c * col * size, &run, &d, (stop - c) * n, result)
        c = stop


cdef Py_ssize_t same_divisors(const Block *b, Py_ssize_t first, Py_ssize_t stop) noexcept nogil:
    """Return the row of a tile up to which rows are divided as the first one is."""
    cdef const Counts *counts = &b.average.rows
    cdef const Window *w = &b.average.frame.problem.rows
    cdef Py_ssize_t r = first + 1, row = b.tile.row
    cdef double count
    if not counts.vary:
        return stop
    if counts.first <= row + first < counts.last:
        return imin(stop, counts.last - row)
    count = count_of(counts, w, row + first)
    while r < stop and count_of(counts, w, row + r) == count:
        r += 1
    return r


cdef void divide_block(char *y, const View *view, const Row *sums, const Block *b,
                       Py_ssize_t done, Py_ssize_t stop) noexcept nogil:
    """Divide the sums of some rows of a tile."""
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, width = tile.cols * n, r = done, last, step
    cdef int size = dtype_bytes[b.average.result]
    cdef divisors_t divisors
    cdef Row row
    while r < stop:
        set_divisors(&divisors, b, tile.row + r)
        last = same_divisors(b, r, stop)
        step = 1
        if sums.divisors == NULL and divisors.counts == NULL and view.row == width and (
                view.col == n or tile.cols == 1):
            step = last - r                 # rows that are neighbours in memory
        while r < last:
            row = row_from(sums, (r - done) * width)
            if step > 1:
                divide(y + r * view.row * size, &row, &divisors, step * width, b.average.result)
            else:
                divide_row(y + r * view.row * size, view.col, &row, &divisors, b)
            r += step


cdef bint quick_divide(char *y, const quick_t *d, const Average *a) noexcept nogil:
    """Divide rows of sums by reciprocals. Return False if results may be wrong."""
    cdef int result = a.result
    if result == F32:
        return quick_divide_f32(y, d)
    if result == F16:
        return quick_divide_f16(y, d)
    if result == BF16:
        fp_clear()                          # (subnormals are rounded twice, to float32 first)
        return quick_divide_bf16(y, d) and not fp_underflow()
    if result == I8 or result == U8:
        return quick_divide_8_of_floats(y, d) if a.small_floats else quick_divide_8(y, d)
    if result == I16 or result == U16:
        return quick_divide_16_of_floats(y, d) if a.small_floats else quick_divide_16(y, d)
    return quick_divide_32(y, d)


cdef const Reciprocals *reciprocals_of(const Block *b, Py_ssize_t row, double count) noexcept nogil:
    """Return those of a row of a tile, whose columns have a `count`, or all of their counts."""
    cdef const Average *a = b.average
    cdef double by
    cdef int i = 0
    if a.divisors > 1:                      # (`divisor` is the only one)
        by = divisor_of_row(a, b.tile, b.tile.row + row)
        if not a.cols.vary or a.by_value:
            by *= count
        while i < a.divisors - 1 and a.reciprocals[i].by != by:
            i += 1
    return &a.reciprocals[i]


cdef bint quick_divide_rows(char *y, const View *view, const char *sums, const Block *b,
                            Py_ssize_t done, Py_ssize_t stop) noexcept nogil:
    """Divide the sums of some rows of a tile by reciprocals. Return False if that is not sure."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, width = tile.cols * n, r = done, last, c, stop_col, first
    cdef int size = dtype_bytes[a.result], item = 4 if a.small_floats else 8
    cdef const Reciprocals *by
    cdef bint sure = True, adjacent = view.col == n or tile.cols == 1
    cdef quick_t d
    d.rounding, d.sums_pitch = a.rounding, width * item
    if a.divisors == 0:
        return False
    while r < stop:
        last = same_divisors(b, r, stop)
        d.rows, d.pitch = last - r, view.row * size
        c = 0
        while c < tile.cols:                # columns that are divided with one call
            stop_col = tile.cols
            if not adjacent:
                stop_col = c + 1
            elif b.counts != NULL and (n > 1 or a.by_value):
                stop_col = c + 1
                while (stop_col < tile.cols
                       and b.counts[stop_col] == b.counts[c]):
                    stop_col += 1
            by = reciprocals_of(b, r, b.count if b.counts == NULL else b.counts[c])
            d.n = (stop_col - c) * n
            d.sums = sums + ((r - done) * width + c * n) * item
            d.one = b.counts == NULL or n > 1 or by.count == 1
            first = 0 if by.count == 1 else (tile.col + c) * item
            d.high, d.low = by.high + first, by.low + first
            sure &= quick_divide(y + (r * view.row + c * view.col) * size, &d, a)
            c = stop_col
        r = last
    return sure


cdef bint quick_divide_planes(char *y, const char *sums, Py_ssize_t planes,
                              const Block *b) noexcept nogil:
    """Divide the sums of neighbouring planes that have one window each, of one divisor."""
    cdef const Reciprocals *by = reciprocals_of(b, 0, b.count)
    cdef quick_t d
    d.sums, d.sums_pitch, d.rows, d.pitch, d.n = sums, 0, 1, 0, planes
    d.high, d.low, d.one, d.rounding = by.high, by.low, True, b.average.rounding
    return b.average.divisors > 0 and quick_divide(y, &d, b.average)
