# Square windows of few pixels, whose channels are neighbours, for pairwise.pxi: sums down the
# columns stay in registers, and no band is made.

cdef bint rolls(const PairTile *t, const Block *b, const acc_t *tag) noexcept nogil:
    """May `roll` take the windows of a tile?"""
    cdef const Problem *p = &b.average.frame.problem
    cdef const Window *rows = &p.rows
    cdef const Window *cols = &p.cols
    return (b.tile.channels >= VEC_BYTES // <Py_ssize_t>sizeof(acc_t) and not t.trees.ignores
            and not rows.irregular and not cols.irregular and cols.dilation == 1
            and rows.kernel == cols.kernel and 2 <= rows.kernel <= MOST_LEAF and t.flat)


cdef bint roll_row(char *to, Py_ssize_t to_col, PairTile *t, const real *src, const Block *b,
                   Py_ssize_t row, const PairDivisors *d, const acc_t *tag) noexcept nogil:
    """Pool one row of windows. Return False, with nothing written, if there is no loop for them."""
    cdef const Window *w = &b.average.frame.problem.rows
    cdef const Window *cols = &b.average.frame.problem.cols
    cdef const Tile *tile = b.tile
    cdef PairAxis axis
    cdef Py_ssize_t k, lo
    cdef rolling_t a
    set_pair_axis(&axis, w, row, b.x.row)
    lo = (window_start(w, row) + axis.lo * w.dilation - tile.row_lo) * b.x.row
    for k in range(w.kernel):
        a.taps[k], a.steps[k] = t.trees.zeros, 0
        if axis.lo <= k < axis.hi:
            a.taps[k], a.steps[k] = src + lo + (k - axis.lo) * axis.step, b.x.col
    a.to, a.to_col, a.by, a.high, a.low = to, to_col, d.by, d.high, d.low
    a.rows, a.cols, a.stride = <int>w.kernel, <int>cols.kernel, cols.stride
    a.first, a.size = window_start(cols, tile.col) - tile.col_lo, tile.col_hi - tile.col_lo
    a.n, a.outputs = tile.channels, tile.cols
    return roll(&a, tag)
