# Square windows whose sums down the columns stay in registers, without a band: of pixels whose
# channels are neighbours, and of rows of single columns.
#
# Takes:   2x2 and 3x3 of pixels, of a vector at least, that windows do not share, at a stride of 1
#          unless they share a set of the cache, 3x3 at a stride of 2 if they are small; 2 and 3
#          pixels of one row, of two vectors at least; single columns at a stride of 1, 2x2 and 3x3
#          at a stride of 2
# Reads:   elements in place
# Scratch: none
# Wins:    against bands, one thread, AVX2: 2x2 s2 last 56x56x64 64 -> 33 us, 3x3 s1 first
#          64x56x56 102 -> 77, 7x7 205 -> 143. AVX-512: 3 s3 of 15567x269 3665 -> 1382, 3 s2 of
#          8x500x64 60 -> 30, 3x3 s1 last 56x56x96 109 -> 67; but 2 s1 of 4x200x16 3.9 -> 5.4

cdef enum:
    MOST_PIXEL_BYTES = 256              # of 3x3 at a stride of 2: 112x112x32 173 -> 116 us
    # Pixels a multiple of 4 KiB apart share one set of the first-level cache. At a stride of 1 they
    # take 1.36 times as long in registers (AVX2; others above 4 KiB 0.9 of the time).
    SET_BYTES = 4096


cdef bint takes_pixels(const Passes *t, const Block *b, int code, const acc_t *tag) noexcept nogil:
    """May windows of elements of one type be pooled by pixels?"""
    cdef const Problem *p = &b.average.frame.problem
    cdef const Window *rows = &p.rows
    cdef const Window *cols = &p.cols
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(acc_t)
    if rows.kernel > 1 and cols.stride < cols.kernel and cols.out > 1 and (
            cols.stride == 1 or p.size != sizeof(acc_t)
            or b.tile.channels * p.size > MOST_PIXEL_BYTES):
        return False
    return (p.code == code and b.tile.channels >= (lanes if rows.kernel > 1 else 2 * lanes)
            and not t.trees.ignores and not rows.irregular and not cols.irregular
            and cols.dilation == 1 and (rows.kernel == cols.kernel or rows.kernel == 1)
            and 2 <= cols.kernel <= 3 and t.flat)


cdef void set_squares(squares_t *a, const Passes *t, const char *src, const Block *b,
                      Py_ssize_t row) noexcept nogil:
    """Set all but the results and divisors of one row of windows."""
    cdef const Window *w = &b.average.frame.problem.rows
    cdef const Window *cols = &b.average.frame.problem.cols
    cdef const Tile *tile = b.tile
    cdef PairAxis axis
    cdef Py_ssize_t k, lo
    set_pair_axis(&axis, w, row, b.x.row)
    lo = (window_start(w, row) + axis.lo * w.dilation - tile.row_lo) * b.x.row
    for k in range(w.kernel):
        a.taps[k], a.steps[k] = t.trees.zeros, 0
        if axis.lo <= k < axis.hi:
            a.taps[k] = src + lo + (k - axis.lo) * axis.step
            a.steps[k] = b.x.col // t.trees.size
    a.rows, a.cols, a.stride = <int>w.kernel, <int>cols.kernel, cols.stride
    a.first, a.size = window_start(cols, tile.col) - tile.col_lo, tile.col_hi - tile.col_lo
    a.n, a.outputs, a.zeros, a.vary = tile.channels, tile.cols, t.trees.zeros, True


cdef void pool_row_of_pixels(char *to, Py_ssize_t to_col, PairTile *t, const char *src,
                             const Block *b, Py_ssize_t row, const PairDivisors *d,
                             const acc_t *tag) noexcept nogil:
    """Pool one row of windows."""
    cdef squares_t a
    set_squares(&a, &t.passes, src, b, row)
    a.to, a.to_col, a.by, a.high, a.low = to, to_col, d.by, d.high, d.low
    pixels(&a, tag)


cdef void sum_pixels(double *sums, const Passes *t, const char *src, const Block *b, Py_ssize_t row,
                     Py_ssize_t stop) noexcept nogil:
    """Set the sums of some rows of windows of floats."""
    cdef squares_t a
    cdef Py_ssize_t r
    for r in range(row, stop):
        set_squares(&a, t, src, b, b.tile.row + r)
        a.to, a.to_col, a.by, a.high, a.low = sums, b.tile.channels, NULL, NULL, NULL
        pixels_f64_of_f32(&a)
        sums += b.tile.cols * b.tile.channels


cdef bint has_squares(const Passes *t, const View *y, const Block *b,
                      const acc_t *tag) noexcept nogil:
    """May `pool_squares` take the windows of a tile?"""
    cdef const Problem *p = &b.average.frame.problem
    cdef const Window *rows = &p.rows
    cdef const Window *cols = &p.cols
    cdef Py_ssize_t n = b.tile.channels, lanes = VEC_BYTES // <Py_ssize_t>sizeof(acc_t)
    if not (t.trees.direct and t.flat and b.average.result == p.code
            and not rows.irregular and not cols.irregular and cols.dilation == 1
            and rows.kernel == cols.kernel and rows.kernel <= MOST_LEAF):
        return False
    if n > 1:
        return (not t.pixels and cols.kernel in (2, 3) and cols.stride == rows.stride == 1
                and rows.dilation == 1 and n >= lanes and b.x.col % SET_BYTES != 0)
    return (y.col == 1 and (cols.stride == 1 or (cols.kernel <= 3 and cols.stride == 2))
            and b.x.col == t.trees.size and b.tile.col_hi - b.tile.col_lo <= b.average.pitch)


cdef bint pool_squares(const View *y, PairTile *t, const char *src, const Block *b,
                       const acc_t *tag) noexcept nogil:
    """Pool the planes of a tile. Return False if a mean may be wrong, or there is no loop."""
    cdef const Average *average = b.average
    cdef const Problem *p = &average.frame.problem
    cdef const Window *rows = &p.rows
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t r = 0, last, plane, k, shift
    cdef PairDivisors d
    cdef squares_t a, of_plane
    fp_clear()
    while r < tile.rows:
        last = r + 1                        # rows that are alike take one call
        if rows.inner_lo <= tile.row + r < rows.inner_hi:
            last = imin(same_divisors(b, r, tile.rows), rows.inner_hi - tile.row)
        set_squares(&a, &t.passes, src + input_offset(p, b.x, tile, 0), b, tile.row + r)
        set_pair_divisors(&d, t, b, tile.row + r, tag)
        if d.high == NULL:
            return False
        a.by, a.high, a.low, a.vary = d.by, d.high, d.low, d.vary
        a.runs, a.to_row, a.to_col = last - r, y.row, y.col
        a.step = rows.stride * (b.x.row // t.passes.trees.size)
        of_plane = a
        for plane in range(tile.planes):
            shift = input_offset(p, b.x, tile, plane) - input_offset(p, b.x, tile, 0)
            of_plane.to = y.data + ((output_offset(p, y, tile, plane) + r * y.row)
                                    * dtype_bytes[average.result])
            for k in range(rows.kernel):
                if a.steps[k]:              # (others are zeros)
                    of_plane.taps[k] = <const char *>a.taps[k] + shift
            if tile.channels > 1:
                slide_pixels(&of_plane, tag)
            elif not slide_sums(&of_plane, tag):
                return False
        r = last
    return not fp_unsure()
