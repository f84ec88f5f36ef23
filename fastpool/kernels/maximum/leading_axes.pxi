# Leading axes: all pooled axes but the last two.
#
# A slab is what one combination of leading taps selects: rows and columns. Where that takes fewer
# loads, the taps of the leading axes are added to the taps of the next pass. Otherwise one pass
# gathers the maximum of all slabs in scratch.

cdef enum:
    FETCHED_BYTES = 16384   # at most, so that they stay in the first cache


cdef inline void taps_across_slabs(Taps *taps, const Taps *leads, Py_ssize_t count,
                                   Py_ssize_t step) noexcept nogil:
    """Set the taps of `count` elements, `step` apart, in each of the leading slabs."""
    cdef Py_ssize_t l, t
    taps.count = leads.count * count
    for l in range(leads.count):
        for t in range(count):
            taps.offsets[l * count + t] = leads.offsets[l] + t * step


cdef inline void lead_offsets(Taps *leads, const Problem *p, const View *x,
                              const Py_ssize_t *counts, Py_ssize_t total) noexcept nogil:
    """Set the offsets of all leading slabs."""
    cdef Py_ssize_t t
    leads.count = total
    for t in range(total):
        leads.offsets[t] = lead_offset(p, x.lead, counts, t)


cdef inline bint few_leads(const Pool *p, Py_ssize_t total) noexcept nogil:
    """Does it take fewer loads to add the leading taps to the next pass than to gather slabs?"""
    cdef const Window *rows = &p.frame.problem.rows
    if takes_all_taps(p):
        return total * rows.kernel * p.frame.problem.cols.kernel <= MAX_TAPS
    return rows.steps == 1 and total * rows.kernel <= imin(total + rows.kernel + 2, MAX_TAPS)


cdef void gather_leads(number *slab, const number *src, const View *x, const Problem *p,
                       const Tile *tile, const Py_ssize_t *counts, Py_ssize_t total,
                       vec_flag *nan) noexcept nogil:
    """Pool the leading axes: store the maximum of `total` slabs, contiguous, in `slab`."""
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t n = tile.channels, done = 0, count, t, r, c
    cdef bint whole = x.col == n or cols == 1
    cdef Taps taps
    if whole and x.row == cols * n:
        cols, rows = rows * cols, 1
    while done < total:
        taps.count = count = imin(total - done, MAX_TAPS)
        for t in range(count):
            taps.offsets[t] = lead_offset(p, x.lead, counts, done + t)
        for r in range(rows):
            for c in range(1 if whole else cols):
                accumulate(slab + (r * cols + c) * n, src + r * x.row + c * x.col, &taps,
                           cols * n if whole else n, done > 0, nan)
        done += count


cdef inline void fetch_next_slabs(const Problem *p, const View *x,
                                  const Tile *tile) noexcept nogil:
    """Prefetch the slabs after those of a tile, if they are few bytes and no window shares any.

    No processor foresees short pieces of several slabs in turns: beyond the caches float32
    1x587x20x21x17 k3 s3 5900 -> 3200 us. (gcc drops calls of a prefetch that are not inline.)
    """
    cdef const Window *w = &p.lead[0]
    cdef Py_ssize_t nbytes, at
    if p.channels_last or tile.rows < p.rows.out or not w.extent <= w.stride <= w.size:
        return
    nbytes = w.stride * x.lead[0] * p.size
    if 0 < nbytes <= FETCHED_BYTES:
        at = window_start(w, tile.lead + 1) * x.lead[0] + input_offset(p, x, tile, 0)
        prefetch_bytes(x.data + at * p.size, nbytes)


cdef inline void accumulate(number *dst, const number *src, const Taps *taps, Py_ssize_t n,
                            bint more, vec_flag *nan) noexcept nogil:
    """Pool a row of windows. With `more`, include what dst holds."""
    cdef Py_ssize_t t
    cdef Taps both
    if not more:
        window_rows(dst, 0, src, 0, taps, 1, n, nan)
        return
    both.count, both.offsets[0] = 2, 0
    for t in range(taps.count):
        both.offsets[1] = <char *>(src + taps.offsets[t]) - <char *>dst
        both.offsets[1] //= <Py_ssize_t>sizeof(number)
        window_rows(dst, 0, <const number *>dst, 0, &both, 1, n, nan)


cdef void gather_keys(any_key *slab, const View *x, Py_ssize_t at, const Pool *p,
                      const Tile *tile, const Py_ssize_t *counts, Py_ssize_t total,
                      any_key *spare) noexcept nogil:
    """Store the maximum of `total` slabs, as keys, in `slab`; `at` is the offset of the first."""
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo, t
    cdef Taps both
    both.count, both.offsets[0], both.offsets[1] = 2, 0, spare - slab
    for t in range(total):
        load_keys(slab if t == 0 else spare, x,
                  at + lead_offset(&p.frame.problem, x.lead, counts, t), p, tile)
        if t > 0:
            window_rows(slab, 0, <const any_key *>slab, 0, &both, 1, rows * cols * tile.channels,
                        NULL)
