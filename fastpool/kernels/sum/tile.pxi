# Pool one tile to averages: sums of a block of rows, then quotients.

cdef void set_divisors(divisors_t *d, const Average *a, const Tile *tile,
                       Py_ssize_t output) noexcept nogil:
    """Set by what one row of outputs is divided; the counts of columns begin with the tile's."""
    cdef const Problem *p = &a.frame.problem
    cdef Py_ssize_t axis = p.leads, lead = tile.lead
    cdef double by
    d.counts = d.reciprocals = NULL
    d.rounding, d.settle = a.rounding, False
    if a.divisor:
        by = a.divisor
        d.powers_of_two = is_power_of_two(by)
    else:
        by = count_of(&a.rows, output)
        while axis > 0:
            axis -= 1
            by *= count_of(&a.lead[axis], lead % p.lead[axis].out)
            lead //= p.lead[axis].out
        d.powers_of_two = is_power_of_two(by) and a.cols.powers_of_two
        if a.cols.counts == NULL or p.cols.out == 1:
            by *= count_of(&a.cols, 0)
        else:
            d.counts, d.reciprocals = a.cols.counts + tile.col, a.cols.reciprocals + tile.col
    d.divisor, d.reciprocal = by, 1 / by if by else 0


cdef inline Row row_from(const Row *row, Py_ssize_t i) noexcept nogil:
    """Return the sums from the i-th on."""
    cdef Row later
    cdef int w
    later.words, later.divisors = row.words, NULL
    later.sums.high, later.sums.low, later.sums.rest = row.sums.high + i, NULL, NULL
    if row.sums.low != NULL:
        later.sums.low, later.sums.rest = row.sums.low + i, row.sums.rest + i
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
        for c in range(1 if n == 1 or col == n else tile.cols):
            run = row_from(row, c * n)
            d.counts, d.reciprocals = run.divisors, run.reciprocals
            divide(y + c * col * size, &run, &d, tile.cols * n if col == n else n, result)
        return
    if n == 1 or (d.counts == NULL and col == n):
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


cdef inline Py_ssize_t same_divisors(const Average *a, const Tile *tile, Py_ssize_t first,
                                     Py_ssize_t stop) noexcept nogil:
    """Return the row of a tile up to which rows are divided as the first one is."""
    cdef Py_ssize_t r = first + 1
    cdef const double *counts = a.rows.counts
    if counts == NULL:
        return stop
    while r < stop and counts[tile.row + r] == counts[tile.row + first]:
        r += 1
    return r


cdef void divide_rows(char *y, const View *view, const Row *sums, const Block *b, Py_ssize_t done,
                      Py_ssize_t stop, bint settles) noexcept nogil:
    """Divide the sums of some rows of a tile."""
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, width = tile.cols * n, r = done, last, step
    cdef int size = dtype_bytes[b.average.result]
    cdef divisors_t divisors
    cdef Row row
    while r < stop:
        set_divisors(&divisors, b.average, tile, tile.row + r)
        divisors.settle = settles
        last = same_divisors(b.average, tile, r, stop)
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


cdef void divide_block(char *y, const View *view, const Row *sums, const Block *b,
                       Py_ssize_t done, Py_ssize_t stop) noexcept nogil:
    """Divide the sums of some rows of a tile; again, if a result was too small to be sure of."""
    fp_clear()
    divide_rows(y, view, sums, b, done, stop, False)
    if fp_underflow():
        divide_rows(y, view, sums, b, done, stop, True)


cdef void sum_windows(double *out, const Columns *columns, const Block *b) noexcept nogil:
    """Set the sums of one row of windows from the sums of its columns."""
    cdef char *scratch = b.scratch
    cdef const Average *a = b.average
    if a.carries_cols:
        sum_prefixes(out, columns.sums, doubles(a, scratch, PREFIX), b,
                     <const Py_ssize_t *>doubles(a, scratch, PLACES))
    else:
        sum_taps(out, columns.sums - b.tile.left * b.tile.channels, b)


cdef void begin_columns(Columns *columns, const Block *b, int digit) noexcept nogil:
    """Set where the sums of a digit's columns are, with margins of 0 around them."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t left = 0 if a.carries_cols else tile.left
    cdef Py_ssize_t right = 0 if a.carries_cols else tile.span - left - cols
    cdef double *sums = doubles(a, b.scratch, COLUMNS) + digit * a.band
    fill(sums, left * n, <double>0)
    columns.sums = sums + left * n
    fill(columns.sums + cols * n, right * n + 2 * WIDE, <double>0)
    columns.first = columns.stop = -1


cdef double sum_run(const any_t *src, Py_ssize_t n) noexcept nogil:
    """Return the sum of n neighbouring elements."""
    cdef vec_t one = wide_zero(), two = one, three = one, four = one
    cdef Py_ssize_t i = 0
    while i + 4 * WIDE <= n:                # (an addition takes as long as four begin)
        one, two = wide_add(one, wide(src + i)), wide_add(two, wide(src + i + WIDE))
        three = wide_add(three, wide(src + i + 2 * WIDE))
        four = wide_add(four, wide(src + i + 3 * WIDE))
        i += 4 * WIDE
    while i + WIDE <= n:
        one = wide_add(one, wide(src + i))
        i += WIDE
    if i < n:
        two = wide_add(two, wide_part_load(src + i, n - i))
    return wide_total(wide_add(wide_add(one, two), wide_add(three, four)))


cdef void sum_whole_planes(double *out, const any_t *src, const Block *b, Py_ssize_t plane,
                           Py_ssize_t planes) noexcept nogil:
    """Set the sums of planes that have one window each, of all that is under the tile."""
    cdef const Problem *p = &b.average.frame.problem
    cdef Py_ssize_t rows = b.tile.row_hi - b.tile.row_lo, cols = b.tile.col_hi - b.tile.col_lo
    cdef Py_ssize_t i, s, r
    cdef const any_t *at
    if b.x.row == cols:                     # rows that are neighbours in memory are one run
        rows, cols = 1, rows * cols
    for i in range(planes):
        out[i] = 0
        for s in range(b.slabs):
            at = src + b.offsets[s] + input_offset(p, b.x, b.tile, plane + i)
            for r in range(rows):
                out[i] += sum_run(at + r * b.x.row, cols)


cdef bint quick_divide(char *y, const quick_t *d, const Average *a) noexcept nogil:
    """Divide rows of sums by reciprocals. Return False if results may be wrong."""
    cdef int result = a.result
    if result == F32:
        return quick_divide_f32(y, d)
    if result == F16:
        return quick_divide_f16(y, d)
    if result == BF16:
        return quick_divide_bf16(y, d)
    if result == I8 or result == U8:
        return quick_divide_8_of_floats(y, d) if a.small_floats else quick_divide_8(y, d)
    if result == I16 or result == U16:
        return quick_divide_16_of_floats(y, d) if a.small_floats else quick_divide_16(y, d)
    return quick_divide_32(y, d)


cdef const Reciprocals *reciprocals_of(const Average *a, const Tile *tile,
                                       Py_ssize_t row) noexcept nogil:
    """Return those of a row of a tile."""
    cdef divisors_t d
    cdef int i = 0
    if a.divisors > 1:
        set_divisors(&d, a, tile, tile.row + row)
        while i < a.divisors - 1 and a.reciprocals[i].by != d.divisor:
            i += 1
    return &a.reciprocals[i]


cdef bint quick_divide_rows(char *y, const View *view, const char *sums, const Block *b,
                            Py_ssize_t done, Py_ssize_t stop) noexcept nogil:
    """Divide the sums of some rows of a tile by reciprocals. Return False if that is not sure."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, width = tile.cols * n, r = done, last, c, stop_col
    cdef int size = dtype_bytes[a.result], item = 4 if a.small_floats else 8
    cdef const Reciprocals *by
    cdef bint sure = True, lies = view.col == n or tile.cols == 1
    cdef quick_t d
    d.rounding, d.sums_pitch = a.rounding, width * item
    if a.divisors == 0:
        return False
    while r < stop:
        last, by = same_divisors(a, tile, r, stop), reciprocals_of(a, tile, r)
        d.rows, d.pitch = last - r, view.row * size
        c = 0
        while c < tile.cols:                # columns that are divided with one call
            stop_col = tile.cols
            if not lies:
                stop_col = c + 1
            elif n > 1 and by.count > 1:
                stop_col = c + 1
                while (stop_col < tile.cols
                       and by.high[tile.col + stop_col] == by.high[tile.col + c]):
                    stop_col += 1
            d.n, d.sums = (stop_col - c) * n, sums + ((r - done) * width + c * n) * item
            d.one = by.count == 1 or n > 1
            d.high = by.high if by.count == 1 else by.high + tile.col + c
            d.low = by.low if by.count == 1 else by.low + tile.col + c
            sure &= quick_divide(y + (r * view.row + c * view.col) * size, &d, a)
            c = stop_col
        r = last
    return sure


cdef bint quick_divide_planes(char *y, const double *sums, Py_ssize_t planes,
                              const Average *a) noexcept nogil:
    """Divide the sums of neighbouring planes that have one window each."""
    cdef quick_t d
    d.sums, d.sums_pitch, d.rows, d.pitch, d.n = <const char *>sums, 0, 1, 0, planes
    d.high, d.low, d.one, d.rounding = a.reciprocals[0].high, a.reciprocals[0].low, True, a.rounding
    return a.divisors == 1 and quick_divide(y, &d, a)


cdef bint average_exact(const View *y, const any_t *src, Block *b, const SmallTile *small,
                        Py_ssize_t plane, Py_ssize_t planes) noexcept nogil:
    """Pool planes of a tile. Return False if a sum is not exact, or beyond the limit.

    Several planes are pooled at once if a block holds all of their sums.
    """
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t width = tile.cols * tile.channels, i, r, stop, done = 0
    cdef double *high = doubles(a, b.scratch, HIGH)
    cdef int item = 4 if a.small_floats else 8
    cdef char *dst
    cdef divisors_t divisors
    cdef Columns columns
    cdef Row row
    row.sums.high, row.sums.low, row.sums.rest, row.words = high, NULL, NULL, 0
    row.divisors = row.reciprocals = NULL
    while done < tile.rows:
        stop = imin(tile.rows, done + a.block_rows)
        fp_clear()
        if a.whole:
            sum_whole_planes(high, src, b, plane, planes)
        elif a.pixels:
            sum_pixels(high, src + input_offset(p, b.x, tile, 0), b, done, stop)
        elif a.small:
            for i in range(planes):
                sum_small(<char *>high + i * tile.rows * width * item, small,
                          src + input_offset(p, b.x, tile, plane + i), b, done, stop)
        else:
            for i in range(planes):
                if done == 0:
                    begin_columns(&columns, b, 0)
                for r in range(done, stop):
                    sum_columns(&columns, src + input_offset(p, b.x, tile, plane + i), b,
                                tile.row + r)
                    sum_windows(high + (i * tile.rows + r - done) * width, &columns, b)
        if fp_inexact():
            return False
        if a.limit and not a.small_floats and not all_within(high, planes * (stop - done) * width, a.limit):
            return False
        dst = y.data + output_offset(p, y, tile, plane) * dtype_bytes[a.result]
        if a.whole and y.channel == 1 and evenly_spaced(p, y):
            if quick_divide_planes(dst, high, planes, a):
                return True
            set_divisors(&divisors, a, tile, 0)
            fp_clear()
            divide(dst, &row, &divisors, planes, a.result)
            if fp_underflow():
                divisors.settle = True
                divide(dst, &row, &divisors, planes, a.result)
            return True
        for i in range(planes):
            row.sums.high = high + i * tile.rows * width
            dst = y.data + output_offset(p, y, tile, plane + i) * dtype_bytes[a.result]
            if not quick_divide_rows(dst, y, <char *>high + i * tile.rows * width * item, b, done,
                                     stop):
                divide_block(dst, y, &row, b, done, stop)
        done = stop
    return True


cdef void average_tile(const Average *a, const Job *job, const Tile *tile, Scratch *scratch,
                       const any_t *tag) noexcept nogil:
    """Pool one tile of any element type."""
    cdef const Problem *p = &a.frame.problem
    cdef const View *x = &job.x
    cdef const View *y = &job.y
    cdef Py_ssize_t counts[MAX_LEADS]
    cdef Py_ssize_t first, plane = 0, i, at_once, s
    cdef Py_ssize_t *offsets = <Py_ssize_t *>doubles(a, scratch.area, OFFSETS)
    cdef const any_t *src
    cdef char *dst
    cdef SmallTile small
    cdef Block b
    b.average, b.tile, b.x, b.scratch, b.offsets = a, tile, x, scratch.area, offsets
    b.slabs = lead_taps(p, x, tile.lead, counts, &first)
    for s in range(b.slabs):
        offsets[s] = lead_offset(p, x.lead, counts, s)
    if a.carries_cols:
        set_prefix_places(<Py_ssize_t *>doubles(a, scratch.area, PLACES), &b)
    at_once = 1
    if a.block_rows >= tile.rows:
        at_once = imax(1, a.block // (tile.rows * tile.cols * tile.channels))
    src = <const any_t *>x.data + first
    if a.small:
        begin_small(&small, &b, src)
    while plane < tile.planes:
        at_once = imin(at_once, tile.planes - plane)
        if not a.sequential and average_exact(y, src, &b, &small, plane, at_once):
            plane += at_once
            continue
        for i in range(plane, plane + at_once):
            if any_t in real:
                if a.sequential:
                    dst = y.data + output_offset(p, y, tile, i) * dtype_bytes[a.result]
                    if a.small:
                        average_small_in_order(dst, y, &small, src + input_offset(p, x, tile, i),
                                               &b)
                    else:
                        average_in_order(dst, y, src + input_offset(p, x, tile, i), &b)
                    continue
            if at_once > 1 and average_exact(y, src, &b, &small, i, 1):
                continue
            dst = y.data + output_offset(p, y, tile, i) * dtype_bytes[a.result]
            average_by_digits(dst, y, src + input_offset(p, x, tile, i), &b)
        plane += at_once


cdef void run_average(Job *job, Py_ssize_t task, Scratch *scratch) noexcept nogil:
    """Pool the tile of a task."""
    cdef const Average *a = <const Average *>job.frame
    cdef int code = a.frame.problem.code
    cdef fp_state state
    cdef Tile tile
    tile_of(&tile, &a.frame, task)
    fp_enter(&state)
    if code == F32:
        average_tile(a, job, &tile, scratch, <const float *>NULL)
    elif code == F64:
        average_tile(a, job, &tile, scratch, <const double *>NULL)
    elif code == F16:
        average_tile(a, job, &tile, scratch, <const float16_t_ *>NULL)
    elif code == BF16:
        average_tile(a, job, &tile, scratch, <const bfloat16_t_ *>NULL)
    elif code == I8:
        average_tile(a, job, &tile, scratch, <const int8_t *>NULL)
    elif code == U8:
        average_tile(a, job, &tile, scratch, <const uint8_t *>NULL)
    elif code == I16:
        average_tile(a, job, &tile, scratch, <const int16_t *>NULL)
    elif code == U16:
        average_tile(a, job, &tile, scratch, <const uint16_t *>NULL)
    elif code == I32:
        average_tile(a, job, &tile, scratch, <const int32_t *>NULL)
    elif code == U32:
        average_tile(a, job, &tile, scratch, <const uint32_t *>NULL)
    elif code == I64:
        average_tile(a, job, &tile, scratch, <const int64_t *>NULL)
    elif code == U64:
        average_tile(a, job, &tile, scratch, <const uint64_t *>NULL)
    else:
        average_tile(a, job, &tile, scratch, <const bool_t_ *>NULL)
    fp_leave(&state)
