# Sums of integers of 8 and 16 bits, in twice their bits (byte_sums.h): rows enter and leave those
# down columns.
#
# Takes:   windows without leading taps and dilated rows. Sums are added along rows too if columns
#          are neighbours and their stride is 1
# Reads:   elements in place
# Scratch: sums down the columns of some rows of windows, with margins of 0 (COLUMNS) or, if they
#          become floats, of one row and these floats (TALL); sums of some neighbours (SPLIT)
# Wins:    one thread, AVX-512 and AVX2, 2048x2048: uint8 3x3 1.6 and 2.4 ms -> 0.5 and 0.7, 7x7 2.4
#          and 3.3 -> 0.7 and 0.9; uint16 7x7 4.5 -> 1.8 (AVX-512)

cdef void add_down_bytes(char *bands, Passes *t, const char *src, const Block *b, Py_ssize_t row,
                         Py_ssize_t stop, Py_ssize_t size) noexcept nogil:
    """Set the sums down the columns of rows of windows, as shorts, floats or doubles.

    If windows share most of their rows, others enter and leave the sums of the window before.
    """
    cdef const Problem *p = &b.average.frame.problem
    cdef const Window *w = &p.rows
    cdef Py_ssize_t cols = b.tile.col_hi - b.tile.col_lo, item = 2 * p.size, c, lo, hi, at, i
    cdef char *sums = <char *>doubles(b.average, b.scratch, TALL)
    cdef char *to
    cdef float *floats
    cdef float *more
    cdef bint begins
    cdef bytes_t a
    a.pitch, a.n = b.x.row, b.tile.channels
    a.flip = 1 << (8 * p.size - 1) if p.code == I8 or p.code == I16 else 0
    if t.trees.col == a.n * p.size:         # neighbours in memory are one run
        a.n, cols = a.n * cols, imin(cols, 1)
    floats = <float *>(sums + round_up(a.n * cols * item, VEC_BYTES) + VEC_BYTES)
    more = floats + round_up(a.n, VEC_BYTES)
    src -= b.tile.row_lo * a.pitch
    while row < stop:
        lo = imin(w.size, imax(0, window_start(w, row)))
        hi = imax(lo, imin(w.size, window_stop(w, row)))
        begins = t.kept != src or lo < t.lo or hi < t.hi or hi - lo <= lo - t.lo + hi - t.hi
        if begins:
            t.lo = t.hi = lo
        to = bands if t.shorts else sums
        for c in range(cols):
            i, at = c * a.n, t.hi
            a.to, a.before = to + i * item, NULL
            if not begins:
                a.before = t.sums + i * item
            a.leave, a.leaving = src + t.lo * a.pitch + c * t.trees.col, lo - t.lo
            a.enter, a.entering = src + at * a.pitch + c * t.trees.col, hi - at
            if size == 4:
                floats = <float *>bands + i
            a.entering = imin(a.entering, MOST_BYTE_ROWS)
            add_bytes(&a, NULL if t.shorts else floats, <int>p.size)
            while a.entering < hi - at:     # (one sum holds no more rows)
                at += a.entering
                a.enter, a.entering = src + at * a.pitch + c * t.trees.col, hi - at
                a.entering = imin(a.entering, MOST_BYTE_ROWS)
                add_bytes(&a, more, <int>p.size)
                add_to(floats, more, a.n, 1, 0)
            if size == 8:
                to_doubles_of(F32)(<double *>bands + i, floats, a.n, -1)
        t.kept, t.sums, t.lo, t.hi = src, to, lo, hi
        if hi - lo > MOST_BYTE_ROWS:
            t.kept = NULL
        bands += b.average.band * size
        row += 1


cdef inline Py_ssize_t divisors_of(Py_ssize_t n, Py_ssize_t size) noexcept nogil:
    """Return the bytes of what set_byte_divisors has of a row."""
    return 3 * round_up(n * size, VEC_BYTES)


cdef void set_taps_along(along_t *d, const Passes *t, const Block *b,
                         Py_ssize_t rows) noexcept nogil:
    """Set the taps of rows of windows: of many neighbours, sums of some are made here."""
    cdef const Problem *p = &b.average.frame.problem
    cdef const Window *w = &p.cols
    cdef Py_ssize_t n = b.tile.channels, step = w.dilation * n, some = b.average.shorts, odd
    cdef Py_ssize_t size = 2 * p.size
    cdef char *band = <char *>doubles(b.average, b.scratch, COLUMNS)
    band += (t.left - b.tile.left * n) * size
    d.rows, d.pitch = rows, b.average.band
    d.kept = 0xffff if p.code == U8 else -1
    d.taps[0] = d.taps[1] = band
    d.count[0], d.count[1], d.step[0], d.step[1] = 0, w.kernel, step, step
    if w.kernel > some:
        # (after what set_byte_divisors has)
        d.to = <char *>doubles(b.average, b.scratch, SPLIT)
        d.to = <char *>d.to + BYTE_SLOTS * divisors_of(d.pitch, size)
        d.count[1], d.to_pitch = some, d.pitch
        d.n = (b.tile.span - (some - 1) * w.dilation) * n
        sums_along(d, <int>p.size)
        odd = w.kernel % some
        d.taps[0], d.count[0], d.step[0] = <char *>d.to, w.kernel // some, some * step
        d.taps[1], d.count[1] = band + (w.kernel - odd) * step * size, odd
    d.n = b.tile.cols * n


cdef bint average_bytes(const View *y, Passes *t, const Block *b, const Part *part,
                        acc_t *sums) noexcept nogil:
    """Set the means of some outputs, whose sums down columns are known. If False, set the sums."""
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, r = part.row, last, g, count, size = 2 * p.size
    cdef char *dst = y.data + output_offset(p, y, tile, part.plane) * p.size
    cdef bint divides = (b.quantization == NULL and a.divisor == 0 and a.result == p.code
                         and p.rows.kernel * p.cols.kernel <= MOST_BYTE_TAPS
                         and (y.col == n or tile.cols == 1))
    cdef byte_divisors_t *own
    cdef char *of_slots = <char *>doubles(a, b.scratch, SPLIT)
    cdef along_t d
    cdef divisors_t by
    set_taps_along(&d, t, b, part.stop - part.row)
    d.to_pitch = y.row
    while divides and r < part.stop:        # rows that have the same divisors
        last = same_divisors(b, r, part.stop)
        set_divisors(&by, b, tile.row + r)
        g = 0
        while g < BYTE_SLOTS - 1 and t.divisors[g].by != by.divisor and t.divisors[g].by >= 0:
            g += 1
        own = &t.divisors[g]
        if own.by != by.divisor:
            set_byte_divisors(own, of_slots + g * divisors_of(a.band, size), a.band, by.divisor,
                              by.counts, tile.cols, n, <int>p.size,
                              p.code == I8 or p.code == I16, a.rounding)
        divides = own.fits
        if divides:
            d.rows, d.to = last - r, dst + r * y.row * p.size
            means_along(&d, own, <int>p.size)
        for g in range(2):
            d.taps[g] += (last - r) * d.pitch * size
        r = last
    if divides:
        return True
    for g in range(2):
        d.taps[g] -= (r - part.row) * d.pitch * size
    count = (part.stop - part.row) * d.n
    d.rows, d.to_pitch, d.to = part.stop - part.row, d.n, sums
    if acc_t is double:                     # (floats become doubles in place)
        d.to = <float *>sums + count
    floats_along(&d, <int>p.size)
    if acc_t is double:
        to_doubles_of(F32)(sums, <const float *>d.to, count, -1)
    return False
