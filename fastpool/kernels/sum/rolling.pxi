# Square windows of few pixels, whose channels are neighbours: sums down the columns stay in
# registers, and no band is made. For pairwise.pxi, whose sums have the elements' type and are
# divided at once, and for exact sums of floats.

cdef bint rolls(const Passes *t, const Block *b, int code, const acc_t *tag) noexcept nogil:
    """May windows of elements of one type be rolled?"""
    cdef const Problem *p = &b.average.frame.problem
    cdef const Window *rows = &p.rows
    cdef const Window *cols = &p.cols
    return (p.code == code and b.tile.channels >= VEC_BYTES // <Py_ssize_t>sizeof(acc_t)
            and not t.trees.ignores and not rows.irregular and not cols.irregular
            and cols.dilation == 1 and rows.kernel == cols.kernel
            and 2 <= rows.kernel <= MOST_LEAF and t.flat)


cdef void set_rolling(rolling_t *a, const Passes *t, const char *src, const Block *b,
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
    a.n, a.outputs = tile.channels, tile.cols


cdef bint roll_row(char *to, Py_ssize_t to_col, PairTile *t, const char *src, const Block *b,
                   Py_ssize_t row, const PairDivisors *d, const acc_t *tag) noexcept nogil:
    """Pool one row of windows. Return False, with nothing written, if there is no loop for them."""
    cdef rolling_t a
    set_rolling(&a, &t.passes, src, b, row)
    a.to, a.to_col, a.by, a.high, a.low = to, to_col, d.by, d.high, d.low
    return roll(&a, tag)


cdef bint roll_sums(double *sums, const Passes *t, const char *src, const Block *b, Py_ssize_t row,
                    Py_ssize_t stop) noexcept nogil:
    """Set the sums of some rows of windows. Return False if there is no loop for them."""
    cdef rolling_t a
    cdef Py_ssize_t r
    for r in range(row, stop):
        set_rolling(&a, t, src, b, b.tile.row + r)
        a.to, a.to_col, a.by, a.high, a.low = sums, b.tile.channels, NULL, NULL, NULL
        if not roll_f64_of_f32(&a):
            return False
        sums += b.tile.cols * b.tile.channels
    return True
