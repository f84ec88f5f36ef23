# Sums that a double does not hold: by digits, each of whose sums is exact.
#
# An element is a sum of digits, multiples of smaller and smaller units. There is room for the
# carries of all additions in a double, so the passes make exact sums of each digit. Their own sum,
# as three doubles, decides the rounding. The time grows with the range of the elements' exponents,
# not with the window. Words are the digits of integers.

cdef enum:
    SHRINK_BITS = 128       # elements near overflow are divided by 2**128,
    LOWER_EXPONENT = -800   # as far as their digits are multiples of 2**-800
    MOST_PARTS = 256        # digits of an element


cdef int plan_parts(part_t *parts, const range_t *range_, const Average *a) noexcept nogil:
    """Set the digits of some elements. Return how many there are.

    If a sum could overflow, the higher ones are of elements divided by 2**SHRINK_BITS.
    """
    cdef int code = a.frame.problem.code, count = 0, exponent, last
    cdef int shrunk = 0, lowest_now
    cdef double above = 0
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
        parts[count].wild, parts[count].scale = False, power_of_two(-shrunk)
        parts[count].unit, parts[count].above = power_of_two(exponent - shrunk), above
        parts[count].quick = count < 2 and not shrunk and not range_.wild
        count += 1
        if exponent == last or count == MOST_PARTS:
            return count
        if exponent == lowest_now:
            shrunk = 0
        above = power_of_two(exponent - shrunk)
        exponent -= a.digit_bits


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
        noted.most, noted.least, noted.wild = 0, INFINITY, False
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
    double *lower[3]                    # high, low and rest of what was not shrunk
    bint shrunk


cdef void begin_sums(Sums *s, const Block *b, Py_ssize_t n, int words) noexcept nogil:
    cdef const Average *a = b.average
    cdef char *scratch = b.scratch
    cdef int w
    s.shrunk, s.row.words = False, words
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


cdef void end_sums(Sums *s, const double *nans, const Block *b, const Part *part) noexcept nogil:
    """Set the divisor of each sum, one without `nans`, and put together what was shrunk or not."""
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
        if is_shrunk(&high[j], <double *>s.row.sums.low + j, <double *>s.row.sums.rest + j,
                     s.lower, j):
            by[j] *= power_of_two(-SHRINK_BITS)
        reciprocals[j] = 1 / by[j] if by[j] else 0


cdef void average_by_digits(const View *y, const char *src, const Block *b,
                            const Part *part) noexcept nogil:
    """Pool some outputs, whatever their elements. `src` is the first element of their plane."""
    cdef const Average *a = b.average
    cdef Py_ssize_t n = part.planes * (part.stop - part.row) * b.tile.cols * b.tile.channels, i
    cdef double *digit = doubles(a, b.scratch, DIGITS)
    cdef double *nans = doubles(a, b.scratch, NANS)
    cdef bint finds_nans = False, quick     # (two digits are divided as they are)
    cdef int words = <int>a.frame.problem.size // 2, d, count
    cdef part_t parts[MOST_PARTS + 1]
    cdef range_t noted
    cdef Passes t
    cdef Sums sums
    if not is_float_code(a.frame.problem.code):
        begin_sums(&sums, b, n, 0 if is_float_code(a.result) else words)
        for d in range(words):
            begin_passes(&t, b, NULL, words - 1 - d, digit)
            if sums.row.words:
                digit = <double *>sums.row.word[words - 1 - d]
            sum_part(digit, &t, src, b, part)
            if not sums.row.words:
                add_digit(&sums, digit, power_of_two(16 * (words - 1 - d)), False, n)
        divide_part(y, &sums.row, b, part)
        return
    begin_sums(&sums, b, n, 0)
    begin_passes(&t, b, NULL, -1, digit)
    note_part(&noted, &t, src, b, part)
    count = plan_parts(parts, &noted, a)
    sums.shrunk = count > 0 and parts[0].scale != 1
    for d in range(3 if sums.shrunk else 0):
        fill(sums.lower[d], n, <double>0)
    quick = count == 2 and a.result == F64 and not sums.shrunk
    for d in range(count):
        begin_passes(&t, b, &parts[d], -1, digit)
        if d == 0:
            sum_part(<double *>sums.row.sums.high, &t, src, b, part)
            continue
        if d == 1 and quick:
            sum_part(<double *>sums.row.sums.low, &t, src, b, part)
            continue
        sum_part(digit, &t, src, b, part)
        add_digit(&sums, digit, 1, parts[d].scale != 1, n)
    if count <= 2 and not sums.shrunk:
        sums.row.sums.rest = NULL           # (it is 0)
    if noted.wild:
        parts[count].quick, parts[count].wild = False, True
        t.nans = False
        begin_passes(&t, b, &parts[count], -1, digit)
        sum_part(digit, &t, src, b, part)
        if t.nans:
            finds_nans = True
            count_nans(nans, &t, src, b, b.tile.row + part.row, b.tile.row + part.stop, True)
    if finds_nans or sums.shrunk:
        end_sums(&sums, nans if finds_nans else NULL, b, part)
    if noted.wild:
        for i in range(n):
            if digit[i] != 0:               # (or NaN)
                (<double *>sums.row.sums.high)[i] = digit[i]
                (<double *>sums.row.sums.low)[i] = 0
                if sums.row.sums.rest != NULL:
                    (<double *>sums.row.sums.rest)[i] = 0
    divide_part(y, &sums.row, b, part)
