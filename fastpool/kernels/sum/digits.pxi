# Sums that a double does not hold: by digits, each of whose sums is exact.
#
# An element is a sum of digits, multiples of smaller and smaller units. There is room for the
# carries of all additions in a double, so the passes make exact sums of each digit. Their own sum,
# as three doubles, decides the rounding. What is left of the elements after a digit says where the
# next one begins. It also limits what windows lack: once that decides no result, no digit follows.
# So the time grows with the range of exponents that matter, not with the window. Words are the
# digits of integers.

cdef enum:
    SHRINK_BITS = 128       # elements near overflow are divided by 2**128,
    LOWER_EXPONENT = -800   # as far as their digits are multiples of 2**-800


cdef void begin_parts(part_t *part, double most) noexcept nogil:
    """Prepare for the first digit. If a sum could overflow, elements are shrunk."""
    part.scale, part.unit, part.wild = power_of_two(-SHRINK_BITS) if most > 1e270 else 1, 0, False


cdef void next_part(part_t *part, double most, bint quick, const Average *a) noexcept nogil:
    """Set the next digit of elements. `most` limits what is left of each; it is not 0."""
    cdef int shift = SHRINK_BITS if most < 1 else 0     # (it may be subnormal)
    cdef int exponent = exponent_of(most * power_of_two(shift)) - shift + 1 - a.digit_bits
    cdef int lowest = -1074 if a.frame.problem.code == F64 else -149, shrunk = 0
    if part.scale != 1:
        if most > power_of_two(LOWER_EXPONENT - 1):
            shrunk, lowest = SHRINK_BITS, LOWER_EXPONENT
        else:                               # (the rest is shrunk no more)
            part.scale, part.unit = 1, power_of_two(LOWER_EXPONENT)
    part.above, part.unit = part.unit, power_of_two(<int>imax(exponent, lowest) - shrunk)
    part.quick = quick
    memset(part.left, 0, VEC_BYTES)


cdef inline bint is_float_code(int code) noexcept nogil:
    return code == F16 or code == BF16 or code == F32 or code == F64


cdef bint note_part(range_t *noted, const Passes *t, const char *src, const Block *b,
                    const Part *part) noexcept nogil:
    """Note the elements under some outputs. If `noted` is NULL, return whether one is a NaN."""
    cdef const Window *w = &b.average.frame.problem.rows
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, cols = tile.col_hi - tile.col_lo, runs = 1, i, s, r, c, at
    cdef Py_ssize_t lo = imax(0, window_start(w, tile.row + part.row)) - tile.row_lo, count
    cdef Py_ssize_t hi = imin(w.size, window_stop(w, tile.row + part.stop - 1)) - tile.row_lo
    cdef Py_ssize_t rows = hi - lo, planes = part.planes, size = t.trees.size
    cdef double *line = <double *>t.trees.lines
    cdef const char *row
    if t.trees.col == n * size or cols <= 1:
        n *= cols                           # neighbours in memory are one run
        if b.x.row == n * size:
            n, rows = n * rows, 1
            if b.x.channel == n * size:
                n, planes = n * planes, 1
    else:
        runs = cols
    if noted != NULL:
        memset(noted.most, 0, VEC_BYTES)
        noted.wild = False
    for i in range(planes):
        for s in range(b.slabs):
            for r in range(lo, lo + rows):
                for c in range(runs):
                    row = src + i * b.x.channel + b.offsets[s] + r * b.x.row + c * b.x.col
                    if noted == NULL:
                        if contains_nan(row, n, b.average.frame.problem.code):
                            return True
                        continue
                    at = 0
                    while at < n:
                        count = imin(t.trees.pitch, n - at)
                        if size == 8:
                            note(noted, <const double *>row + at, count)
                        else:
                            t.trees.convert(line, row + at * size, count, 0)
                            note(noted, line, count)
                        at += count
    return False


cdef struct Sums:                       # of some outputs
    Row row
    bint unsure                         # results, of sums that lack something
    const double *wild                  # sums of infinities and NaN, or NULL if there are none
    const double *nans                  # how many are left out, or NULL
    double *lower[3]                    # high, low and rest of what was not shrunk
    bint shrunk


cdef void begin_sums(Sums *s, const Block *b, Py_ssize_t n, int words) noexcept nogil:
    cdef const Average *a = b.average
    cdef char *scratch = b.scratch
    cdef int w
    s.shrunk, s.row.words, s.wild, s.nans = False, words, NULL, NULL
    s.row.sums.bound, s.row.sums.unsure = 0, &s.unsure
    s.row.divisors = s.row.reciprocals = NULL
    for w in range(words):
        s.row.word[w] = doubles(a, scratch, DIGITS) + w * a.block
    s.row.sums.high = doubles(a, scratch, HIGH)
    s.row.sums.low = doubles(a, scratch, LOW)
    s.row.sums.rest = doubles(a, scratch, REST)
    s.lower[0] = doubles(a, scratch, LOWER_HIGH)
    s.lower[1] = doubles(a, scratch, LOWER_LOW)
    s.lower[2] = doubles(a, scratch, LOWER_REST)
    fill(<double *>s.row.sums.high, n, <double>0)
    fill(<double *>s.row.sums.low, n, <double>0)
    fill(<double *>s.row.sums.rest, n, <double>0)


cdef void add_digit(Sums *s, const double *digit, double scale, bint shrunk,
                    Py_ssize_t n) noexcept nogil:
    """Add the sums of a digit, times a scale, to those of the higher ones."""
    if s.shrunk and not shrunk:
        add_to_sums(s.lower[0], s.lower[1], s.lower[2], digit, scale, n)
    else:
        add_to_sums(<double *>s.row.sums.high, <double *>s.row.sums.low, <double *>s.row.sums.rest,
                    digit, scale, n)


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
        if part == 0:
            continue
        if not small:
            if -LEAST_SHRUNK < part < LEAST_SHRUNK:     # (of all that is smaller, the sign will do)
                part = power_of_two(-1074) if part > 0 else -power_of_two(-1074)
                add_to_sums(high, low, rest, &part, 1, 1)
                break
            part /= scale
        add_to_sums(high, low, rest, &part, 1, 1)
    return not small


cdef void end_sums(Sums *s, const double *nans, const Block *b, const Part *part) noexcept nogil:
    """Set the divisor of each sum, one without `nans`, and put together what was shrunk or not.

    Sums that lack something are all shrunk or none is.
    """
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t i = 0, r, c, j, first, rows, row
    cdef double *high = <double *>s.row.sums.high
    cdef double *by = doubles(a, b.scratch, DIVISORS)
    cdef double *reciprocals = doubles(a, b.scratch, RECIPROCALS)
    cdef double taps
    cdef divisors_t d
    s.row.divisors, s.row.reciprocals = by, reciprocals
    for r in range(part.planes * (part.stop - part.row)):
        row = tile.row + part.row + r % (part.stop - part.row)
        set_divisors(&d, b, row)
        rows = real_taps(&a.frame.problem.rows, row, &first) * b.slabs
        for c in range(tile.cols):
            taps = <double>(rows * real_taps(&a.frame.problem.cols, tile.col + c, &first))
            for j in range(tile.channels):
                by[i] = d.divisor * d.counts[c] if d.counts != NULL else d.divisor
                reciprocals[i] = taps       # (at first)
                i += 1
    if nans != NULL:
        leave_nans_out(high, by, reciprocals, nans, a.divisor != 0, i)
    for j in range(i if s.shrunk else 0):
        if s.row.sums.bound != 0 or is_shrunk(&high[j], <double *>s.row.sums.low + j,
                                              <double *>s.row.sums.rest + j, s.lower, j):
            by[j] *= power_of_two(-SHRINK_BITS)
        reciprocals[j] = 1 / by[j] if by[j] else 0


cdef bint divide_digits(const View *y, Sums *s, double left, Py_ssize_t n, const Block *b,
                        const Part *part) noexcept nogil:
    """Divide sums that lack what is `left` of each element. Return whether all results are sure."""
    cdef Py_ssize_t i
    s.unsure, s.row.sums.bound = False, left * b.average.terms
    if (s.nans != NULL or s.shrunk) and (left == 0 or s.row.divisors == NULL):
        end_sums(s, s.nans, b, part)
    for i in range(n if s.wild != NULL else 0):
        if s.wild[i] != 0:                  # (or NaN)
            (<double *>s.row.sums.high)[i] = s.wild[i]
            (<double *>s.row.sums.low)[i] = 0
            if s.row.sums.rest != NULL:
                (<double *>s.row.sums.rest)[i] = 0
    divide_part(y, &s.row, b, part)
    return not s.unsure


cdef void average_words(const View *y, const char *src, const Block *b,
                        const Part *part) noexcept nogil:
    """Pool some outputs of integers."""
    cdef const Average *a = b.average
    cdef Py_ssize_t n = part.planes * (part.stop - part.row) * b.tile.cols * b.tile.channels
    cdef double *digit = doubles(a, b.scratch, DIGITS)
    cdef int words = <int>a.frame.problem.size // 2, d
    cdef Passes t
    cdef Sums sums
    begin_sums(&sums, b, n, 0 if is_float_code(a.result) else words)
    for d in range(words):
        begin_passes(&t, b, NULL, words - 1 - d, digit)
        if sums.row.words:
            digit = <double *>sums.row.word[words - 1 - d]
        sum_part(digit, &t, src, b, part)
        if not sums.row.words:
            add_digit(&sums, digit, power_of_two(16 * (words - 1 - d)), False, n)
    divide_part(y, &sums.row, b, part)


cdef void average_by_digits(const View *y, const char *src, const Block *b,
                            const Part *part) noexcept nogil:
    """Pool some outputs, whatever their elements. `src` is the first element of their plane."""
    cdef const Average *a = b.average
    cdef Py_ssize_t n = part.planes * (part.stop - part.row) * b.tile.cols * b.tile.channels
    cdef double *digit = doubles(a, b.scratch, DIGITS)
    cdef double left
    cdef int d
    cdef bint tries                         # to divide after 2, 3, 5, 9, 17, 33 digits
    cdef part_t of
    cdef range_t noted
    cdef Passes t
    cdef Sums sums
    if not is_float_code(a.frame.problem.code):
        average_words(y, src, b, part)
        return
    begin_sums(&sums, b, n, 0)
    begin_passes(&t, b, NULL, -1, digit)
    note_part(&noted, &t, src, b, part)
    left = largest(noted.most)
    begin_parts(&of, left)
    sums.shrunk = of.scale != 1
    for d in range(3 if sums.shrunk else 0):
        fill(sums.lower[d], n, <double>0)
    if noted.wild:
        of.quick, of.wild, of.above, t.nans = False, True, 0, False
        begin_passes(&t, b, &of, -1, digit)
        sum_part(doubles(a, b.scratch, WILD), &t, src, b, part)
        sums.wild = doubles(a, b.scratch, WILD)
        if t.nans:
            sums.nans = doubles(a, b.scratch, NANS)
            count_nans(<double *>sums.nans, &t, src, b, b.tile.row + part.row,
                       b.tile.row + part.stop, True)
        of.wild = False
    d = 0
    while left != 0:
        next_part(&of, left, d < 2 and not sums.shrunk and not noted.wild, a)
        begin_passes(&t, b, &of, -1, digit)
        sum_part(<double *>sums.row.sums.high if d == 0 else digit, &t, src, b, part)
        left = left_after(&of)
        tries = left != 0 and d > 0 and d & (d - 1) == 0 and (of.scale != 1 or not sums.shrunk)
        if d == 1 and a.result == F64 and not sums.shrunk:  # (two digits are divided as they are)
            sums.row.sums.low, sums.row.sums.rest = digit, NULL
            if divide_digits(y, &sums, left, n, b, part):
                return
            tries = False
            sums.row.sums.low = doubles(a, b.scratch, LOW)
            sums.row.sums.rest = doubles(a, b.scratch, REST)
        if d > 0:
            add_digit(&sums, digit, 1, of.scale != 1, n)
        if tries and divide_digits(y, &sums, left * of.scale, n, b, part):
            return
        d += 1
    divide_digits(y, &sums, 0, n, b, part)
