# Pool one tile to averages: sums of a block of rows, then quotients.

cdef enum:
    SOME_SUMS = 64          # of a column, divided at a time


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
    cdef vec_t one = wide_zero(), two = one
    cdef Py_ssize_t i = 0
    while i + 2 * WIDE <= n:
        one, two = wide_add(one, wide(src + i)), wide_add(two, wide(src + i + WIDE))
        i += 2 * WIDE
    if i + WIDE <= n:
        one = wide_add(one, wide(src + i))
        i += WIDE
    if i < n:
        two = wide_add(two, wide_part_load(src + i, n - i))
    return wide_total(wide_add(one, two))


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


cdef bint quick_divide(char *y, const quick_t *d, Py_ssize_t n, const Average *a) noexcept nogil:
    """Divide n sums by a reciprocal. Return False if results may be wrong."""
    cdef int result = a.result
    if result == F32:
        return quick_divide_f32(y, d, n)
    if result == F16:
        return quick_divide_f16(y, d, n)
    if result == BF16:
        return quick_divide_bf16(y, d, n)
    if result == I8 or result == U8:
        return quick_divide_8_of_floats(y, d, n) if a.small_floats else quick_divide_8(y, d, n)
    if result == I16 or result == U16:
        return quick_divide_16_of_floats(y, d, n) if a.small_floats else quick_divide_16(y, d, n)
    return quick_divide_32(y, d, n)


cdef bint quick_divide_run(char *y, const char *sums, Py_ssize_t n, const Reciprocals *by,
                           Py_ssize_t col, const Average *a) noexcept nogil:
    cdef quick_t d
    d.sums, d.high, d.low, d.rounding = sums, by.high[col], by.low[col], a.rounding
    return quick_divide(y, &d, n, a)


cdef bint quick_divide_column(char *y, Py_ssize_t pitch, const char *sums, Py_ssize_t sums_pitch,
                              Py_ssize_t n, const Reciprocals *by, Py_ssize_t col,
                              const Average *a) noexcept nogil:
    """Divide the sums of one column of outputs; the pitches are in bytes."""
    cdef double some[SOME_SUMS]
    cdef double results[SOME_SUMS]
    cdef int size = dtype_bytes[a.result], item = 4 if a.small_floats else 8
    cdef Py_ssize_t i, done = 0, count
    cdef bint sure = True
    while done < n:
        count = imin(n - done, SOME_SUMS)
        for i in range(count):
            if item == 4:
                (<float *>some)[i] = (<const float *>sums)[0]
            else:
                some[i] = (<const double *>sums)[0]
            sums += sums_pitch
        sure &= quick_divide_run(<char *>results, <char *>some, count, by, col, a)
        for i in range(count):
            if size == 4:
                (<uint32_t *>y)[0] = (<uint32_t *>results)[i]
            elif size == 2:
                (<uint16_t *>y)[0] = (<uint16_t *>results)[i]
            else:
                y[0] = (<char *>results)[i]
            y += pitch
        done += count
    return sure


cdef bint quick_divide_rows(char *y, const View *view, const char *sums, const Block *b,
                            Py_ssize_t done, Py_ssize_t stop) noexcept nogil:
    """Divide the sums of some rows of a tile by reciprocals. Return False if that is not sure.

    The outputs of all columns are divided as that of the middle one, and then those again whose
    divisors are others. Outputs that are no neighbours are divided column by column.
    """
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, width = tile.cols * n, r = done, first, last, c, rows, middle
    cdef int size = dtype_bytes[a.result], item = 4 if a.small_floats else 8, i
    cdef const Reciprocals *by = &a.reciprocals[0]
    cdef divisors_t d
    cdef bint sure = True, lies = view.col == n or tile.cols == 1
    if a.divisors == 0:
        return False
    sums -= done * width * item
    while r < stop:
        first, last = r, same_divisors(a, tile, r, stop)
        if a.divisors > 1:
            set_divisors(&d, a, tile, tile.row + r)
            i = 0
            while i < a.divisors - 1 and a.reciprocals[i].by != d.divisor:
                i += 1
            by = &a.reciprocals[i]
        rows = last - r if view.row == width else 1
        middle = 0 if by.count == 1 else imin(imax(tile.col, by.inner_lo),
                                              imin(tile.col + tile.cols, by.inner_hi) - 1)
        while r < last and lies:
            sure &= quick_divide_run(y + r * view.row * size, sums + r * width * item,
                                     rows * width, by, imax(middle, 0), a)
            r += rows
        if by.count == 1 and lies:
            continue
        c = -1
        while c + 1 < tile.cols:
            c += 1
            if lies and by.inner_lo <= tile.col + c < by.inner_hi:
                c = by.inner_hi - tile.col - 1
                continue
            if n == 1:
                sure &= quick_divide_column(y + (first * view.row + c * view.col) * size,
                                            view.row * size, sums + (first * width + c) * item,
                                            width * item, last - first, by,
                                            0 if by.count == 1 else tile.col + c, a)
                continue
            for r in range(first, last):
                sure &= quick_divide_run(y + (r * view.row + c * view.col) * size,
                                         sums + (r * width + c * n) * item, n, by,
                                         0 if by.count == 1 else tile.col + c, a)
        r = last
    return sure


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
            if a.divisors == 1 and quick_divide_run(dst, <char *>high, planes, &a.reciprocals[0],
                                                    0, a):
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
