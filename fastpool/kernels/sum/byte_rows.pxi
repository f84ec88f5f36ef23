# Sums of bytes in 16 bits (byte_sums.h): rows enter and leave those down columns.
#
# Takes:   8 bits, windows without leading taps and dilated rows. Sums along rows are of 16 bits too
#          if `shorts`: columns are neighbours, at a stride of 1, or 2 of single channels
# Reads:   elements in place
# Scratch: sums down the columns of some rows of windows, with margins of 0 (COLUMNS) or, if they
#          become floats, of one row and these floats (TALL); sums of some neighbours (SPLIT)
# Wins:    one thread, AVX-512 and AVX2: uint8 2048x2048 3x3 1.6 and 2.4 ms -> 0.5 and 0.6

cdef void add_down_bytes(char *bands, Passes *t, const char *src, const Block *b, Py_ssize_t row,
                         Py_ssize_t stop, Py_ssize_t size) noexcept nogil:
    """Set the sums down the columns of rows of windows, as shorts, floats or doubles.

    If windows share most of their rows, others enter and leave the sums of the window before.
    """
    cdef const Window *w = &b.average.frame.problem.rows
    cdef Py_ssize_t cols = b.tile.col_hi - b.tile.col_lo, c, lo, hi, at
    cdef int16_t *sums = <int16_t *>doubles(b.average, b.scratch, TALL)
    cdef int16_t *to
    cdef float *floats
    cdef bint begins
    cdef bytes_t a
    a.pitch, a.n = b.x.row, b.tile.channels
    a.flip = 128 if b.average.frame.problem.code == I8 else 0
    if t.trees.col == a.n:                  # neighbours in memory are one run
        a.n, cols = a.n * cols, imin(cols, 1)
    floats = <float *>(sums + round_up(a.n * cols, VEC_BYTES // 2) + VEC_BYTES // 2)
    src -= b.tile.row_lo * a.pitch
    while row < stop:
        lo = imin(w.size, imax(0, window_start(w, row)))
        hi = imax(lo, imin(w.size, window_stop(w, row)))
        begins = t.kept != src or lo < t.lo or hi < t.hi or hi - lo <= lo - t.lo + hi - t.hi
        if begins:
            t.lo = t.hi = lo
        to = <int16_t *>bands if t.shorts else sums
        for c in range(cols):
            a.to, a.before = to + c * a.n, NULL if begins else t.sums + c * a.n
            a.leave, a.leaving = src + t.lo * a.pitch + c * t.trees.col, lo - t.lo
            if size == 4:
                floats = <float *>(bands + c * a.n * size)
            at = t.hi
            while True:                     # as many rows as such sums hold
                a.enter, a.entering = src + at * a.pitch + c * t.trees.col, hi - at
                a.entering = imin(a.entering, MOST_BYTE_ROWS)
                add_bytes(&a)
                if not t.shorts:
                    shorts_to_floats(floats, a.to, a.n, at > t.hi)
                at += a.entering
                if at == hi:
                    break
            if size == 8:
                to_doubles_of(F32)(bands + c * a.n * size, floats, a.n, -1)
        t.kept, t.sums, t.lo, t.hi = src, to, lo, hi
        if hi - lo > MOST_BYTE_ROWS:
            t.kept = NULL
        bands += b.average.band * size
        row += 1


cdef void set_taps_along(along_t *d, const Passes *t, const Block *b,
                         Py_ssize_t rows) noexcept nogil:
    """Set the taps of rows of windows: of many neighbours, sums of some are made here."""
    cdef const Window *w = &b.average.frame.problem.cols
    cdef Py_ssize_t n = b.tile.channels, step = w.dilation * n, some = b.average.shorts, odd
    cdef int16_t *band = <int16_t *>doubles(b.average, b.scratch, COLUMNS)
    cdef int16_t *parts = <int16_t *>doubles(b.average, b.scratch, SPLIT)
    band += t.left - b.tile.left * n
    d.rows, d.pitch, d.stride = rows, b.average.band, <int>w.stride
    d.kept = -1 if b.average.frame.problem.code == I8 else 0xffff
    d.taps[0] = d.taps[1] = band
    d.count[0], d.count[1], d.step[0], d.step[1] = 0, w.kernel, step, step
    if w.kernel > some:
        d.count[1], d.to, d.to_pitch = some, parts, d.pitch
        d.n = (b.tile.span - (some - 1) * w.dilation) * n
        shorts_along(d)
        odd = w.kernel % some
        d.taps[0], d.count[0], d.step[0] = parts, w.kernel // some, some * step
        d.taps[1], d.count[1] = band + (w.kernel - odd) * step, odd


cdef bint average_bytes(const View *y, const Passes *t, const Block *b, const Part *part,
                        float *sums) noexcept nogil:
    """Set the means of some outputs, whose sums down columns are known, or the sums."""
    cdef const Average *a = b.average
    cdef const Counts *counts = &a.cols
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, r = part.row, c, last, stop, from_first, g
    cdef Py_ssize_t taps = a.frame.problem.rows.kernel * a.frame.problem.cols.kernel
    cdef bint is_signed = a.frame.problem.code == I8
    cdef bint divides = (b.quantization == NULL and taps <= MOST_BYTE_TAPS and a.divisor == 0
                         and (y.col == n or tile.cols == 1))
    cdef char *dst = y.data + output_offset(&a.frame.problem, y, tile, part.plane)
    cdef divisors_t by
    cdef along_t d, run
    set_taps_along(&d, t, b, part.stop - part.row)
    while divides and r < part.stop:        # rows and columns that have one divisor
        last = same_divisors(b, r, part.stop)
        set_divisors(&by, b, tile.row + r)
        c = 0
        while divides and c < tile.cols:
            stop = tile.cols
            if by.counts != NULL:
                stop = c + 1
                if counts.first <= tile.col + c < counts.last:
                    stop = imin(tile.cols, counts.last - tile.col)
            run = d
            for g in range(2):
                run.taps[g] += (r - part.row) * d.pitch + c * n * d.stride
            run.rows, run.n, run.to_pitch = last - r, (stop - c) * n, y.row
            run.to = dst + r * y.row + c * n
            divides = set_byte_divisor(
                &run, by.divisor * (by.counts[c] if by.counts != NULL else 1), is_signed,
                a.rounding)
            if divides:
                means_along(&run)
            c = stop
        r = last
    if divides:
        return True
    d.to, d.n, d.to_pitch = sums, tile.cols * n, tile.cols * n
    floats_along(&d, taps > MOST_BYTE_TAPS)
    return False
