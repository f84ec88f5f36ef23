# Sums that a double does not hold: by digits, each of whose sums is exact.
#
# An element is a sum of digits, multiples of smaller and smaller units. There is room for the
# carries of all additions in a double, so the sums of each digit are exact and may be carried along
# like any others. Their own sum, as three doubles, decides the rounding. The time grows with the
# range of the elements' exponents, not with the window.

cdef enum:
    SHRINK_BITS = 128       # elements near overflow are divided by 2**128,
    LOWER_EXPONENT = -800   # as far as their digits are multiples of 2**-800


cdef void add_parts(double *sums, const any_t *src, Py_ssize_t n, const part_t *part,
                    bint adds) noexcept nogil:
    """Add one digit of n elements to sums, or subtract it."""
    cdef Py_ssize_t i = 0
    cdef vec_t v
    while i + WIDE <= n:
        v = wide_part_of(src + i, part)
        if adds:
            vec_store(sums + i, wide_add(vec_load(sums + i), v))
        else:
            vec_store(sums + i, wide_sub(vec_load(sums + i), v))
        i += WIDE
    while i < n:
        if adds:
            sums[i] += part_of(src + i, part)
        else:
            sums[i] -= part_of(src + i, part)
        i += 1


cdef void add_part_rows(double *sums, const any_t *src, const Block *b, const part_t *part,
                        Py_ssize_t first, Py_ssize_t stop, Py_ssize_t step,
                        bint adds) noexcept nogil:
    """Add one digit of some rows of the tile, in every slab, or subtract it."""
    cdef Py_ssize_t n = b.tile.channels, cols = b.tile.col_hi - b.tile.col_lo, r = first, s, c
    while r < stop:
        for s in range(b.slabs):
            if b.x.col == n or cols <= 1:
                add_parts(sums, src + b.offsets[s] + r * b.x.row, cols * n, part, adds)
                continue
            for c in range(cols):
                add_parts(sums + c * n, src + b.offsets[s] + r * b.x.row + c * b.x.col, n, part,
                          adds)
        r += step


cdef void sum_part_columns(Columns *columns, const any_t *src, const Block *b,
                           Py_ssize_t output, const part_t *part) noexcept nogil:
    """Set the sums of one digit of columns under one row of outputs."""
    cdef const Window *w = &b.average.frame.problem.rows
    cdef Py_ssize_t first, count, step = w.dilation
    cdef Py_ssize_t stop, cols = b.tile.col_hi - b.tile.col_lo
    count = real_taps(w, output, &first)
    first -= b.tile.row_lo
    stop = first + count * step
    if step == 1 and 0 <= columns.first <= first < columns.stop:
        add_part_rows(columns.sums, src, b, part, columns.stop, stop, 1, True)
        add_part_rows(columns.sums, src, b, part, columns.first, first, 1, False)
    else:
        fill(columns.sums, cols * b.tile.channels, <double>0)
        add_part_rows(columns.sums, src, b, part, first, stop, step, True)
    columns.first, columns.stop = first, stop


cdef int plan_parts(part_t *parts, const range_t *range_, const Average *a) noexcept nogil:
    """Set the digits of a tile's elements. Return how many there are.

    If a sum could overflow, the higher ones are of elements times SHRINK.
    """
    cdef int code = a.frame.problem.code, count = 0, exponent, last, words
    cdef int shrunk = 0, lowest_now
    cdef double above = 0
    if not is_float_code(code):
        words = <int>imax(1, a.frame.problem.size // 2)
        for count in range(words):
            parts[count].what, parts[count].shift = WORD, 16 * (words - 1 - count)
            parts[count].last, parts[count].scale = count == 0, 1
        return words
    if range_.most == 0:
        return 0
    if range_.most > 1e270:
        shrunk = SHRINK_BITS
    exponent = exponent_of(range_.most) + 1 - a.digit_bits
    last = exponent_of(range_.least) - (52 if code == F64 else 23)
    last = <int>imax(last, -1074 if code == F64 else -149)
    while True:
        lowest_now = <int>imax(last, LOWER_EXPONENT) if shrunk else last
        exponent = <int>imax(exponent, lowest_now)
        parts[count].what, parts[count].scale = DIGIT, power_of_two(-shrunk)
        parts[count].unit, parts[count].above = power_of_two(exponent - shrunk), above
        count += 1
        if exponent == last or count == a.most_digits - MARKS:
            return count
        if exponent == lowest_now:
            shrunk = 0
        above = power_of_two(exponent - shrunk)
        exponent -= a.digit_bits


cdef inline bint is_float_code(int code) noexcept nogil:
    return code == F16 or code == BF16 or code == F32 or code == F64


cdef struct Sums:                       # of a block of rows of windows
    Row row
    double *lower[3]                    # high, low and rest of what was not shrunk
    double *marks[MARKS]
    bint shrunk


cdef void sum_part(double *out, Columns *columns, const any_t *src, const Block *b,
                   const part_t *part, Py_ssize_t done, Py_ssize_t stop) noexcept nogil:
    """Set the sums of one digit, of some rows of windows.

    Columns that are carried from block to block are begun before.
    """
    cdef Py_ssize_t width = b.tile.cols * b.tile.channels, r
    if b.average.whole:
        out[0] = sum_part_of_plane(src, b, part)
        return
    if not b.average.carries_rows:
        begin_columns(columns, b, 0)
    for r in range(done, stop):
        sum_part_columns(columns, src, b, b.tile.row + r, part)
        sum_windows(out + (r - done) * width, columns, b)


cdef double sum_part_of_plane(const any_t *src, const Block *b, const part_t *part) noexcept nogil:
    """Return the sum of one digit of all elements under a tile."""
    cdef Py_ssize_t cols = b.tile.col_hi - b.tile.col_lo, s, r, i
    cdef const any_t *at
    cdef vec_t sum = wide_zero()
    cdef double rest = 0
    for s in range(b.slabs):
        for r in range(b.tile.row_hi - b.tile.row_lo):
            at = src + b.offsets[s] + r * b.x.row
            i = 0
            while i + WIDE <= cols:
                sum = wide_add(sum, wide_part_of(at + i, part))
                i += WIDE
            while i < cols:
                rest += part_of(at + i, part)
                i += 1
    return wide_total(sum) + rest


cdef void note_tile(range_t *range_, const any_t *src, const Block *b) noexcept nogil:
    """Note all elements under a tile."""
    cdef Py_ssize_t n = b.tile.channels, cols = b.tile.col_hi - b.tile.col_lo, s, r, c
    cdef Py_ssize_t rows = b.tile.row_hi - b.tile.row_lo
    cdef bint lies = b.x.col == n or cols <= 1
    range_.most, range_.least, range_.infinite, range_.nan = 0, 1e308 * 10, 0, 0
    if lies and b.x.row == cols * n:
        cols, rows = rows * cols, 1         # rows that are neighbours in memory
    for s in range(b.slabs):
        for r in range(rows):
            if lies:
                note_elements(range_, src + b.offsets[s] + r * b.x.row, cols * n)
                continue
            for c in range(cols):
                note_elements(range_, src + b.offsets[s] + r * b.x.row + c * b.x.col, n)


cdef void begin_sums(Sums *s, const Block *b, Py_ssize_t n, int words) noexcept nogil:
    cdef const Average *a = b.average
    cdef char *scratch = b.scratch
    cdef int w
    s.shrunk, s.row.words = False, words
    s.row.divisors = s.row.reciprocals = NULL
    for w in range(words):
        # (vectors are stored past the end of one)
        s.row.word[w] = doubles(a, scratch, DIGITS) + w * (n + WIDE)
    s.row.sums.high = doubles(a, scratch, HIGH)
    s.row.sums.low = doubles(a, scratch, LOW)
    s.row.sums.rest = doubles(a, scratch, REST)
    s.lower[0] = doubles(a, scratch, LOWER_HIGH)
    s.lower[1] = doubles(a, scratch, LOWER_LOW)
    s.lower[2] = doubles(a, scratch, LOWER_REST)
    s.marks[0] = doubles(a, scratch, UPPER)
    s.marks[1] = doubles(a, scratch, LOWER)
    s.marks[2] = doubles(a, scratch, NANS)
    fill(<double *>s.row.sums.high, n, <double>0)
    fill(<double *>s.row.sums.low, n, <double>0)
    fill(<double *>s.row.sums.rest, n, <double>0)


cdef void add_digit(Sums *s, const double *digit, const part_t *part, Py_ssize_t n) noexcept nogil:
    """Add the sums of a digit to those of the higher ones."""
    cdef int i
    if part.what == WORD:
        add_to_sums(<double *>s.row.sums.high, <double *>s.row.sums.low, <double *>s.row.sums.rest,
                    digit, power_of_two(part.shift), n)
        return
    if part.scale != 1 and not s.shrunk:
        s.shrunk = True
        for i in range(3):
            fill(s.lower[i], n, <double>0)
    if s.shrunk and part.scale == 1:
        add_to_sums(s.lower[0], s.lower[1], s.lower[2], digit, 1, n)
    else:
        add_to_sums(<double *>s.row.sums.high, <double *>s.row.sums.low, <double *>s.row.sums.rest,
                    digit, 1, n)


cdef extern from *:
    """
    #define LEAST_SHRUNK 0x1p-890
    """
    const double LEAST_SHRUNK   # which SHRINK_BITS leave normal, with all their places


cdef bint is_shrunk(double *high, double *low, double *rest, double *const *lower,
                    Py_ssize_t i) noexcept nogil:
    """Put a sum of lower digits into the sum of the shrunk ones.

    Return whether the result is shrunk. A small one is not: it needs digits that shrinking loses.
    """
    cdef double scale = power_of_two(SHRINK_BITS), part
    cdef bint small = -1e-250 < high[0] < 1e-250
    cdef int j
    if small:
        high[0], low[0], rest[0] = high[0] * scale, low[0] * scale, rest[0] * scale
    for j in range(3):
        part = lower[j][i]
        if part != 0 and not small:
            if -LEAST_SHRUNK < part < LEAST_SHRUNK:     # (of all that is smaller, the sign will do)
                part = power_of_two(-1074) if part > 0 else -power_of_two(-1074)
                add_to_sums(high, low, rest, &part, 1, 1)
                break
            part /= scale
        add_to_sums(high, low, rest, &part, 1, 1)
    return not small


cdef void end_sums(Sums *s, const Block *b, int marks, Py_ssize_t done,
                   Py_ssize_t stop) noexcept nogil:
    """Put sums that were not shrunk and infinities into the sums, and set each one's divisor."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t r, c, i = 0, j, k, first, rows, taps
    cdef double *high = <double *>s.row.sums.high
    cdef double *low = <double *>s.row.sums.low
    cdef double *rest = <double *>s.row.sums.rest
    cdef divisors_t d
    cdef double by, upper, lower, nans
    s.row.divisors = doubles(a, b.scratch, DIVISORS)
    s.row.reciprocals = doubles(a, b.scratch, RECIPROCALS)
    for r in range(done, stop):
        set_divisors(&d, b, tile.row + r)
        rows = real_taps(&a.frame.problem.rows, tile.row + r, &first)
        for c in range(tile.cols):
            taps = rows * real_taps(&a.frame.problem.cols, tile.col + c, &first) * b.slabs
            for j in range(tile.channels):
                by = d.divisor * d.counts[c] if d.counts != NULL else d.divisor
                nans = s.marks[2][i] if marks and a.ignore_nan else 0
                if not a.divisor:
                    by -= nans
                if s.shrunk and is_shrunk(&high[i], &low[i], &rest[i], s.lower, i):
                    by *= power_of_two(-SHRINK_BITS)
                if marks:
                    upper, lower = s.marks[0][i] - nans, s.marks[1][i] - nans
                    if nans and nans == taps:
                        upper = lower = 1
                    if upper > 0 or lower > 0:
                        high[i] = (NAN if upper > 0 and lower > 0
                                   else INFINITY if upper > 0 else -INFINITY)
                        low[i] = rest[i] = 0
                s.row.divisors[i], s.row.reciprocals[i] = by, 1 / by if by else 0
                i += 1


cdef void average_by_digits(char *y, const View *view, const any_t *src,
                            Block *b) noexcept nogil:
    """Pool one plane of a tile, whatever its elements."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t width = tile.cols * tile.channels, n, stop, done = 0
    cdef bint floats = is_float_code(a.frame.problem.code), words
    cdef int count, d, marks = 0
    cdef double *digit = doubles(a, b.scratch, DIGITS)
    cdef part_t parts[MOST_PARTS]
    cdef Columns columns[MOST_PARTS]
    cdef range_t noted
    cdef Sums sums
    noted.infinite = noted.nan = 0
    if floats:
        note_tile(&noted, src, b)
        marks = MARKS if noted.infinite or noted.nan else 0
    count = plan_parts(parts, &noted, a)
    words = not floats and not is_float_code(a.result)
    for d in range(marks):
        parts[count + d].what = IS_UPPER if d == 0 else IS_LOWER if d == 1 else IS_NAN
    if a.carries_rows:
        for d in range(count + marks):
            begin_columns(&columns[d], b, d)
    while done < tile.rows:
        stop = imin(tile.rows, done + a.block_rows)
        n = (stop - done) * width
        begin_sums(&sums, b, n, count if words else 0)
        for d in range(count):
            if words:
                sum_part(<double *>sums.row.word[count - 1 - d], &columns[d], src, b, &parts[d],
                         done, stop)
                continue
            sum_part(digit, &columns[d], src, b, &parts[d], done, stop)
            add_digit(&sums, digit, &parts[d], n)
        for d in range(marks):
            if d == 1 and not noted.infinite:
                sums.marks[1] = sums.marks[0]       # (both count the NaN)
            elif d < 2 or a.ignore_nan:
                sum_part(sums.marks[d], &columns[count + d], src, b, &parts[count + d], done, stop)
        if marks or sums.shrunk:
            end_sums(&sums, b, marks, done, stop)
        divide_block(y, view, &sums.row, b, done, stop)
        done = stop
