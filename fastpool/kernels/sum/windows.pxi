# The second step of a sum: the columns of each window, by taps or as differences of prefixes.

cdef void sum_taps(double *out, const double *sums, const Block *b) noexcept nogil:
    """Add the taps of one row of windows. `sums` begin with the margin."""
    cdef const Window *w = &b.average.frame.problem.cols
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, step = w.dilation * n, i, c, runs = 1, count = tile.cols * n
    cdef Py_ssize_t stride = w.stride * n, t
    cdef vec_t sum
    cdef double one
    if w.stride > 1 and n == 1:
        if w.stride == 2:
            sum_taps_at_two(out, sums, w, tile.cols)
            return
        for c in range(tile.cols):
            one = sums[c * stride]
            for t in range(1, w.kernel):
                one += sums[c * stride + t * step]
            out[c] = one
        return
    if w.stride > 1:
        runs, count = tile.cols, n
    for c in range(runs):
        i = 0
        while i < count:                    # (the last vector may reach into the slack)
            sum = vec_load(sums + c * stride + i)
            for t in range(1, w.kernel):
                sum = wide_add(sum, vec_load(sums + c * stride + i + t * step))
            vec_store(out + c * n + i, sum)
            i += WIDE


cdef void sum_taps_at_two(double *out, const double *sums, const Window *w,
                          Py_ssize_t cols) noexcept nogil:
    cdef Py_ssize_t c = 0, t
    cdef const double *at
    cdef vec_t sum
    while c < cols:
        at = sums + 2 * c
        sum = vec_concat_even(vec_load(at), vec_load(at + WIDE), at)
        for t in range(1, w.kernel):
            at += w.dilation
            sum = wide_add(sum, vec_concat_even(vec_load(at), vec_load(at + WIDE), at))
        vec_store(out + c, sum)
        c += WIDE


cdef void sum_prefixes(double *out, const double *sums, double *prefix,
                       const Block *b, const Py_ssize_t *places) noexcept nogil:
    """Set the sums of one row of windows. `sums` begin with the first element of the tile."""
    cdef const Window *w = &b.average.frame.problem.cols
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, cols = tile.col_hi - tile.col_lo, i, c, first, stop
    cdef Py_ssize_t lag = imin(w.dilation if w.places == NULL else 1, cols) * n
    cdef double *high
    cdef double *low
    for i in range(lag):
        prefix[i] = 0
    i = 0
    if lag >= WIDE:
        while i < cols * n:                 # (into the slack)
            vec_store(prefix + lag + i, wide_add(vec_load(prefix + i), vec_load(sums + i)))
            i += WIDE
    else:
        for i in range(cols * n):
            prefix[lag + i] = prefix[i] + sums[i]
    for c in range(tile.cols):
        high, low = prefix + places[2 * c + 1] * n, prefix + places[2 * c] * n
        if n == 1:
            out[c] = high[0] - low[0]
            continue
        i = 0
        while i < n:
            vec_store(out + c * n + i, wide_sub(vec_load(high + i), vec_load(low + i)))
            i += WIDE


cdef void set_prefix_places(Py_ssize_t *places, const Block *b) noexcept nogil:
    """Set where the prefixes of each output column begin and end, in a row of prefixes.

    A prefix at c holds the elements before c that are multiples of the dilation away.
    """
    cdef const Window *w = &b.average.frame.problem.cols
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t c, count, first, dilation = w.dilation if w.places == NULL else 1
    for c in range(tile.cols):
        count = real_taps(w, tile.col + c, &first)
        first -= tile.col_lo
        places[2 * c] = places[2 * c + 1] = 0
        if count:
            places[2 * c] = first
            places[2 * c + 1] = first + (count - 1) * dilation + imin(
                dilation, tile.col_hi - tile.col_lo)
