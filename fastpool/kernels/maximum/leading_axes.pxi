# Leading axes: all pooled axes but the last two.
#
# A slab is what one combination of leading taps selects: rows and columns. Where that takes fewer
# loads, the taps of the leading axes are added to the taps of the next pass. Otherwise one pass
# gathers the maximum of all slabs in scratch.

cdef inline Py_ssize_t taps_across_slabs(Py_ssize_t *taps, const Leads *leads, Py_ssize_t count, Py_ssize_t step) noexcept nogil:
    """Taps of `count` elements, `step` apart, in each of the leading slabs."""
    cdef Py_ssize_t l, t
    for l in range(leads.count):
        for t in range(count):
            taps[l * count + t] = leads.offsets[l] + t * step
    return leads.count * count


cdef inline bint few_leads(const Pool *p, Py_ssize_t total) noexcept nogil:
    """Fewer loads to take the leading axes' taps with those of the next pass than in a pass of their own?"""
    if p.direct:
        return total * p.rows.kernel * p.cols.kernel <= MAX_TAPS
    return p.rows.steps == 1 and total * p.rows.kernel <= imin(total + p.rows.kernel + 2, MAX_TAPS)


cdef void gather_leads(number *slab, const number *src, const View *x, const Pool *p, const Tile *tile,
                       const Py_ssize_t *counts, Py_ssize_t total, vec_flag *nan) noexcept nogil:
    """The pass over the leading axes: the input under a tile, dense in `slab`, the maximum of `total` slabs."""
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo, n = tile.channels
    cdef Py_ssize_t done = 0, count, t, r, c
    cdef bint whole = x.col == n or cols == 1
    if whole and x.row == cols * n:
        cols, rows = rows * cols, 1
    while done < total:
        count = imin(total - done, MAX_TAPS)
        for t in range(count):
            taps[t] = lead_offset(p, x.lead, counts, done + t)
        for r in range(rows):
            for c in range(1 if whole else cols):
                accumulate(slab + (r * cols + c) * n, src + r * x.row + c * x.col, taps, count,
                           cols * n if whole else n, done > 0, nan)
        done += count


cdef inline void accumulate(number *dst, const number *src, const Py_ssize_t *taps, Py_ssize_t ntaps, Py_ssize_t n,
                            bint more, vec_flag *nan) noexcept nogil:
    """A row of windows; with `more`, on top of what dst holds."""
    cdef Py_ssize_t t
    cdef Py_ssize_t both[2]
    if not more:
        window_rows(dst, 0, src, 0, taps, ntaps, 1, n, nan)
        return
    both[0] = 0
    for t in range(ntaps):
        both[1] = (<char *>(src + taps[t]) - <char *>dst) // <Py_ssize_t>sizeof(number)
        window_rows(dst, 0, <const number *>dst, 0, both, 2, 1, n, nan)
