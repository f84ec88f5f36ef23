# The second step of columns.pxi: the columns of each window, by taps or as differences of prefixes.

cdef inline void add_taps(double *out, const double *sums, Py_ssize_t count, Py_ssize_t taps,
                          Py_ssize_t step) noexcept nogil:
    """Set `count` sums of taps that are `step` apart. The last vector may reach into the slack."""
    cdef Py_ssize_t i = 0, t
    cdef vec_t sum
    while i < count:
        sum = vec_load(sums + i)
        for t in range(1, taps):
            sum = wide_add(sum, vec_load(sums + i + t * step))
        vec_store(out + i, sum)
        i += WIDE


cdef inline void add_taps_at_two(double *out, const double *sums, Py_ssize_t count,
                                 Py_ssize_t taps, Py_ssize_t step) noexcept nogil:
    """Set `count` sums as `add_taps` does, of windows whose columns have a stride of 2."""
    cdef Py_ssize_t i = 0, t
    cdef const double *at
    cdef vec_t sum, low, high
    while i < count:
        at = sums + 2 * i
        low, high = vec_load(at), vec_load(at + WIDE)
        sum = vec_concat_even(low, high, at)
        for t in range(1, taps):
            if t == 1 and step == 1:
                sum = wide_add(sum, vec_concat_odd(low, high, at))
                continue
            low, high = vec_load(at + t * step), vec_load(at + t * step + WIDE)
            sum = wide_add(sum, vec_concat_even(low, high, at))
        vec_store(out + i, sum)
        i += WIDE


cdef void sum_taps(double *out, const double *sums, const Block *b) noexcept nogil:
    """Add the taps of one row of windows. `sums` begin with the margin.

    The common numbers of taps are constants, so that their loops are unrolled.
    """
    cdef const Window *w = &b.average.frame.problem.cols
    cdef Py_ssize_t n = b.tile.channels, step = w.dilation * n, c, runs = 1, t
    cdef Py_ssize_t stride = w.stride * n, taps = w.kernel, count = b.tile.cols * n
    cdef double one
    if n == 1 and stride == 2:
        if taps == 2:
            add_taps_at_two(out, sums, count, 2, step)
        elif taps == 3:
            add_taps_at_two(out, sums, count, 3, step)
        else:
            add_taps_at_two(out, sums, count, taps, step)
        return
    if n == 1 and stride > 2:
        for c in range(count):
            one = sums[c * stride]
            for t in range(1, taps):
                one += sums[c * stride + t * step]
            out[c] = one
        return
    if w.stride > 1:
        runs, count = b.tile.cols, n
    for c in range(runs):
        if taps == 2:
            add_taps(out + c * n, sums + c * stride, count, 2, step)
        elif taps == 3:
            add_taps(out + c * n, sums + c * stride, count, 3, step)
        else:
            add_taps(out + c * n, sums + c * stride, count, taps, step)


cdef void sum_prefixes(double *out, const double *sums, double *prefix,
                       const Block *b, const Py_ssize_t *places) noexcept nogil:
    """Set the sums of one row of windows. `sums` begin with the first element of the tile."""
    cdef const Window *w = &b.average.frame.problem.cols
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, cols = tile.col_hi - tile.col_lo, i, c, lo = 0, hi = 0
    # (At least n: windows without an element are the difference of the first n prefixes and these.)
    cdef Py_ssize_t lag = imax(1, imin(w.dilation, cols)) * n
    cdef double *high
    cdef double *low
    for i in range(lag):
        prefix[i] = 0
    i = 0
    if lag >= WIDE:
        while i < cols * n:                 # (into the slack)
            vec_store(prefix + lag + i, wide_add(vec_load(prefix + i), vec_load(sums + i)))
            i += WIDE
    elif lag == 1:
        sum_before(prefix + 1, sums, cols)
    else:
        for i in range(cols * n):
            prefix[lag + i] = prefix[i] + sums[i]
    fill(prefix + lag + cols * n, WIDE, <double>0)  # the last windows read whole vectors
    if n == 1 and not w.irregular and w.stride == 1 and w.dilation == 1:
        # Where all taps are elements, windows that are neighbours begin at neighbours.
        lo = imin(imax(w.inner_lo - tile.col, 0), tile.cols)
        hi = imin(imax(w.inner_hi - tile.col, lo), tile.cols)
        if hi - lo >= WIDE:
            low = prefix + places[2 * lo] - lo
            c = lo
            while c < hi:
                c = imin(c, hi - WIDE)
                vec_store(out + c, wide_sub(vec_load(low + c + w.kernel), vec_load(low + c)))
                c += WIDE
    for c in range(tile.cols):
        if lo <= c < hi and hi - lo >= WIDE:
            continue
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
    cdef Py_ssize_t c, count, first
    cdef Walk walk
    if w.dilation == 1:
        start_walk(&walk, w, tile.col)
        for c in range(tile.cols):
            places[2 * c] = imin(imax(walk.start, tile.col_lo), tile.col_hi) - tile.col_lo
            places[2 * c + 1] = imin(imax(walk.stop, tile.col_lo), tile.col_hi) - tile.col_lo
            next_window(&walk, w)
        return
    for c in range(tile.cols):
        count = real_taps(w, tile.col + c, &first)
        first -= tile.col_lo
        places[2 * c] = places[2 * c + 1] = 0
        if count:
            places[2 * c] = first
            places[2 * c + 1] = first + (count - 1) * w.dilation + imin(
                w.dilation, tile.col_hi - tile.col_lo)


cdef void sum_windows(double *out, const Columns *columns, const Block *b) noexcept nogil:
    """Set the sums of one row of windows from the sums of its columns."""
    cdef char *scratch = b.scratch
    cdef const Average *a = b.average
    if a.carries_cols:
        sum_prefixes(out, columns.sums, doubles(a, scratch, PREFIX), b,
                     <const Py_ssize_t *>doubles(a, scratch, PLACES))
    else:
        sum_taps(out, columns.sums - b.tile.left * b.tile.channels, b)
