# The last step of quantised averages, in place of divide.pxi: sums of 8-bit elements become
# elements of another scale (quantize.h). These sums are always exact.

cdef void set_quantization(quantization_t *to, parts, int code) except *:
    """Set from numerator and denominator of the quotient of the scales, and the zero points."""
    cdef int64_t p, q
    p, q, to.x_zero, to.y_zero = parts
    to.p, to.q, to.step = p, q, <double>p / <double>q
    to.least, to.most = (-128, 127) if code == I8 else (0, 255)


cdef void set_factors(double *zeros, double *high, double *low, const Block *b, Py_ssize_t row,
                      Py_ssize_t columns) noexcept nogil:
    """Set what the sums of a row of windows exceed their totals by, and what makes means of these.

    `columns` is 1 if all columns are alike.
    """
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef Py_ssize_t c, first, taps = b.slabs * real_taps(&p.rows, b.tile.row + row, &first)
    cdef double others = divisor_of_row(a, b.tile, b.tile.row + row), by
    for c in range(columns):
        zeros[c] = b.quantization.x_zero * <double>(
            taps * real_taps(&p.cols, b.tile.col + c, &first))
        by = others * count_of(&a.cols, b.tile.col + c)
        if c > 0 and by == others * count_of(&a.cols, b.tile.col + c - 1):
            high[c], low[c] = high[c - 1], low[c - 1]
        else:
            split_factor(b.quantization, by, &high[c], &low[c])


cdef inline bint columns_are_alike(const Block *b) noexcept nogil:
    """Have all columns of a tile all their taps, and one divisor?"""
    cdef const Window *w = &b.average.frame.problem.cols
    cdef bint full = w.inner_lo <= b.tile.col and b.tile.col + b.tile.cols <= w.inner_hi
    return b.tile.cols == 1 or (full and b.average.cols.counts == NULL)


cdef void begin_quantize(quantize_t *d, const Block *b) noexcept nogil:
    cdef const Average *a = b.average
    d.to, d.of_floats = b.quantization, a.small_floats
    d.sure = HAS_FMA and <double>d.to.q * a.most_divisor <= MOST_SURE


cdef void quantize_block(char *y, const View *view, const char *sums, const Block *b,
                         Py_ssize_t done, Py_ssize_t stop) noexcept nogil:
    """Quantise the sums of some rows of a tile."""
    cdef const Average *a = b.average
    cdef const Window *rows = &a.frame.problem.rows
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, width = tile.cols * n, r = done, last, c, end, first, taps
    cdef Py_ssize_t columns = 1 if columns_are_alike(b) else tile.cols
    cdef double *zeros = doubles(a, b.scratch, LOW)
    cdef double *high = doubles(a, b.scratch, DIVISORS)
    cdef double *low = doubles(a, b.scratch, RECIPROCALS)
    cdef bint lies = view.col == n or tile.cols == 1
    cdef int item = 4 if a.small_floats else 8
    cdef quantize_t d
    begin_quantize(&d, b)
    d.sums_pitch, d.pitch = width * item, view.row
    while r < stop:
        taps, last = real_taps(rows, tile.row + r, &first), same_divisors(a, tile, r, stop)
        d.rows = 1
        while r + d.rows < last and real_taps(rows, tile.row + r + d.rows, &first) == taps:
            d.rows += 1
        set_factors(zeros, high, low, b, r, columns)
        c = 0
        while c < tile.cols:                # columns that take one call
            end = c + 1
            d.one = columns == 1 or n > 1 or not lies
            while lies and end < tile.cols and (not d.one or columns == 1 or (
                    zeros[end] == zeros[c] and high[end] == high[c] and low[end] == low[c])):
                end += 1
            d.n, d.sums = (end - c) * n, sums + ((r - done) * width + c * n) * item
            first = 0 if columns == 1 else c
            d.zeros, d.high, d.low = zeros + first, high + first, low + first
            quantize_rows(y + r * view.row + c * view.col, &d)
            c = end
        r += d.rows


cdef void quantize_planes(char *y, const char *sums, Py_ssize_t planes,
                          const Block *b) noexcept nogil:
    """Quantise the sums of neighbouring planes that have one window each."""
    cdef double zeros, high, low
    cdef quantize_t d
    begin_quantize(&d, b)
    set_factors(&zeros, &high, &low, b, 0, 1)
    d.sums, d.rows, d.n, d.sums_pitch, d.pitch = sums, 1, planes, 0, 0
    d.zeros, d.high, d.low, d.one = &zeros, &high, &low, True
    quantize_rows(y, &d)
