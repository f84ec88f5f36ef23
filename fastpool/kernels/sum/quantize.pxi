# The last step of quantised averages, in place of divide.pxi: sums of 8-bit elements become
# elements of another scale (quantize.h). These sums are always exact.

cdef void set_quantization(quantization_t *to, parts, int code) except *:
    """Set from a `quantized.Quantization`."""
    to.p, to.shift, to.q, to.x_zero, to.y_zero = parts
    to.step = <double>to.p / <double>to.q * power_of_two(to.shift)
    to.least, to.most = (-128, 127) if code == I8 else (0, 255)


cdef struct FactorArrays:   # of the columns of a row: what their sums are made means with
    double *by
    double *zeros
    double *high
    double *low
    float *zeros_f
    float *high_f
    float *low_f


cdef FactorArrays factor_arrays(const Block *b, int slot) noexcept nogil:
    """Return where the factors of a slot are. Each array goes on for a vector."""
    cdef Py_ssize_t n = b.tile.cols + VEC_BYTES // 4
    cdef FactorArrays to
    to.by = doubles(b.average, b.scratch, FACTORS) + FACTOR_ARRAYS * n * slot
    to.zeros, to.high, to.low = to.by + n, to.by + 2 * n, to.by + 3 * n
    to.zeros_f = <float *>(to.by + 4 * n)
    to.high_f, to.low_f = to.zeros_f + n, to.zeros_f + 2 * n
    return to


cdef FactorArrays factors_of(const Block *b, Py_ssize_t row, Py_ssize_t columns) noexcept nogil:
    """Return what the sums of a row of windows exceed their totals by, and the factors of totals.

    `columns` is 1 if all columns are alike. Rows of a tile that are alike share a slot.
    """
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef Factors *known = b.factors
    cdef Py_ssize_t c, first, taps = b.slabs * real_taps(&p.rows, b.tile.row + row, &first)
    cdef double others = a.divisor or divisor_of_row(a, b.tile, b.tile.row + row)
    cdef FactorArrays to
    cdef int slot
    for slot in range(imin(known.count, FACTOR_SLOTS)):
        if known.taps[slot] == taps and known.divisors[slot] == others:
            return factor_arrays(b, slot)
    slot = known.count % FACTOR_SLOTS
    known.count += 1
    known.taps[slot], known.divisors[slot] = taps, others
    to = factor_arrays(b, slot)
    for c in range(columns):
        to.zeros[c] = b.quantization.x_zero * <double>(
            taps * real_taps(&p.cols, b.tile.col + c, &first))
        to.by[c] = others * (b.count if b.counts == NULL else b.counts[c])
        if c > 0 and to.by[c] == to.by[c - 1]:
            to.high[c], to.low[c] = to.high[c - 1], to.low[c - 1]
            to.high_f[c], to.low_f[c] = to.high_f[c - 1], to.low_f[c - 1]
        else:
            split_factor(b.quantization, to.by[c], &to.high[c], &to.low[c])
            split_factor_floats(to.high[c], to.low[c], 256 * a.terms, &to.high_f[c], &to.low_f[c])
        to.zeros_f[c] = <float>to.zeros[c]
    return to


cdef inline bint columns_are_alike(const Block *b) noexcept nogil:
    """Have all columns of a tile all their taps, and one divisor?"""
    cdef const Window *w = &b.average.frame.problem.cols
    cdef bint full = w.inner_lo <= b.tile.col and b.tile.col + b.tile.cols <= w.inner_hi
    return b.tile.cols == 1 or (full and b.counts == NULL)


cdef void begin_quantize(quantize_t *d, const Block *b) noexcept nogil:
    cdef const Average *a = b.average
    cdef double most = <double>b.quantization.q * a.most_divisor
    d.to, d.of_floats = b.quantization, a.small_floats
    d.sure = HAS_FMA and most <= MOST_SURE
    d.in_floats = 0
    # (Floats must hold the factors, and totals times these.)
    if HAS_FMA and a.small_floats and 256 * a.terms < MOST_FLOAT_TOTAL and (
            1e-10 < d.to.step < 1e10 and 0 < a.most_divisor < 1e10):
        d.in_floats = 2 if most <= MOST_SURE_FLOATS else 1


cdef void set_factors(quantize_t *d, const FactorArrays *factors, Py_ssize_t c) noexcept nogil:
    d.by, d.zeros = factors.by + c, factors.zeros + c
    d.high, d.low = factors.high + c, factors.low + c
    d.zeros_f, d.high_f, d.low_f = factors.zeros_f + c, factors.high_f + c, factors.low_f + c


cdef void quantize_block(char *y, const View *view, const char *sums, const Block *b,
                         Py_ssize_t done, Py_ssize_t stop) noexcept nogil:
    """Quantise the sums of some rows of a tile."""
    cdef const Average *a = b.average
    cdef const Window *rows = &a.frame.problem.rows
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, width = tile.cols * n, r = done, last, c, end, first, taps
    cdef Py_ssize_t columns = 1 if columns_are_alike(b) else tile.cols
    cdef bint adjacent = view.col == n or tile.cols == 1
    cdef int item = 4 if a.small_floats else 8
    cdef FactorArrays of
    cdef quantize_t d
    begin_quantize(&d, b)
    d.sums_pitch, d.pitch = width * item, view.row
    while r < stop:
        taps, last = real_taps(rows, tile.row + r, &first), same_divisors(b, r, stop)
        d.rows = 1
        while r + d.rows < last and real_taps(rows, tile.row + r + d.rows, &first) == taps:
            d.rows += 1
        of = factors_of(b, r, columns)
        c = 0
        while c < tile.cols:                # columns that take one call
            end = c + 1
            d.one = columns == 1 or n > 1 or not adjacent
            if adjacent and (columns == 1 or not d.one):
                end = tile.cols
            while adjacent and end < tile.cols and (
                    of.zeros[end] == of.zeros[c] and of.high[end] == of.high[c]
                    and of.low[end] == of.low[c]):
                end += 1
            d.n, d.sums = (end - c) * n, sums + ((r - done) * width + c * n) * item
            set_factors(&d, &of, 0 if columns == 1 else c)
            quantize_rows(y + r * view.row + c * view.col, &d)
            c = end
        r += d.rows


cdef void quantize_planes(char *y, const char *sums, Py_ssize_t planes,
                          const Block *b) noexcept nogil:
    """Quantise the sums of neighbouring planes that have one window each."""
    cdef FactorArrays of = factors_of(b, 0, 1)
    cdef quantize_t d
    begin_quantize(&d, b)
    d.sums, d.rows, d.n, d.sums_pitch, d.pitch, d.one = sums, 1, planes, 0, 0, True
    set_factors(&d, &of, 0)
    quantize_rows(y, &d)
