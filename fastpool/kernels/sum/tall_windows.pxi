# Add rows of tall windows that overlap. Each row of parts is half of several trees, so the time
# hardly grows with the window.

cdef void add_tall(acc_t *bands, const acc_t *src, Py_ssize_t pitch, Py_ssize_t col_step,
                   const Block *b, Py_ssize_t row, Py_ssize_t stop) noexcept nogil:
    """Set the sums down the columns of some rows of windows, whose leading taps are one.

    `src` is the first element under the tile, `pitch` the elements from one row to the next, and
    `col_step` those from one column to the next.
    """
    cdef const Window *w = &b.average.frame.problem.rows
    cdef Py_ssize_t cols = b.tile.col_hi - b.tile.col_lo, n = b.tile.channels, col, at, most
    if col_step == n:
        n, cols = n * cols, imin(cols, 1)   # neighbours in memory are one run
    most = (stop - 1 - row) * w.stride + 1
    most += (w.kernel - (w.kernel >> leaf_shift(w.kernel))) * w.dilation
    most = imin(b.average.tall // (2 * most), b.average.pitch)      # elements at a time
    for col in range(cols):
        at = 0
        while at < n:
            add_tall_run(bands + col * n + at, src + col * col_step + at, pitch, imin(most, n - at),
                         b, row, stop)
            at += most


cdef void add_tall_run(acc_t *bands, const acc_t *src, Py_ssize_t pitch, Py_ssize_t width,
                       const Block *b, Py_ssize_t row, Py_ssize_t stop) noexcept nogil:
    """Set the sums of neighbouring elements of rows."""
    cdef const Window *w = &b.average.frame.problem.rows
    cdef Py_ssize_t start = window_start(w, row), outputs = stop - row
    cdef Py_ssize_t step = w.dilation * width, rows = (outputs - 1) * w.stride + 1, lo, hi, r, t
    cdef int shift = leaf_shift(w.kernel)
    cdef Py_ssize_t size = w.kernel >> shift, odd, most
    cdef acc_t *parts = <acc_t *>doubles(b.average, b.scratch, TALL)
    cdef acc_t *others
    cdef const acc_t *zeros = <const acc_t *>doubles(b.average, b.scratch, NO_ROW)
    cdef const acc_t *first = src + (start - b.tile.row_lo) * pitch     # of the first window
    cdef pairs_of_t part
    # Leaves. Those of rows from `lo` to `hi` have all of their taps.
    most = rows + (w.kernel - size) * w.dilation
    others = parts + most * width
    lo = imin(most, imax(0, -start))
    hi = imin(most, imax(lo, w.size - (size - 1) * w.dilation - start))
    begin_pairs(&part, parts, width, 1, width)
    part.count = <int>size
    for r in range(most):
        if r == lo and hi > lo:
            part.to, part.rows, part.step, part.last_step = parts + r * width, hi - lo, pitch, pitch
            for t in range(size):
                part.taps[t] = first + (r + t * w.dilation) * pitch
            add_in_pairs(&part, bands)
            part.rows = 1
        elif not lo <= r < hi:
            part.to = parts + r * width
            for t in range(size):
                part.taps[t] = zeros
                if 0 <= start + r + t * w.dilation < w.size:
                    part.taps[t] = first + (r + t * w.dilation) * pitch
            add_in_pairs(&part, bands)
    while shift > 0:
        shift -= 1
        odd = 2 * size                      # the tap that comes last, if there is one
        r, size = size, w.kernel >> shift
        most = rows + (w.kernel - size) * w.dilation
        part.pitch, part.step, part.to = width, width, others
        part.taps[0], part.taps[1] = parts, parts + r * step
        parts, others = others, parts       # (not in place, because vectors overlap)
        if shift == 0:
            part.to, part.pitch, part.step = bands, b.average.band, w.stride * width
            most = outputs
        add_odd(&part, first + odd * w.dilation * pitch, start + odd * w.dilation, most,
                w.stride if shift == 0 else 1, pitch, size % 2 == 1, b, bands)


cdef void add_odd(pairs_of_t *part, const acc_t *taps, Py_ssize_t place, Py_ssize_t rows,
                  Py_ssize_t stride, Py_ssize_t pitch, bint has_odd, const Block *b,
                  const acc_t *tag) noexcept nogil:
    """Add two parts of some rows, and the last tap where it is an element.

    `taps` is that of the first row, at `place`. It is `stride` rows farther in each row.
    """
    cdef const Window *w = &b.average.frame.problem.rows
    cdef Py_ssize_t lo = rows, hi = rows, r = 0
    if has_odd:
        lo = imin(rows, imax(0, ceil_div(-place, stride)))
        hi = imin(rows, imax(lo, ceil_div(w.size - place, stride)))
    while r < rows:
        part.count, part.rows, part.last_step = 2, (lo if r < lo else rows) - r, part.step
        if lo <= r < hi:
            part.count, part.rows, part.last_step = 3, hi - r, stride * pitch
            part.taps[2] = taps + r * stride * pitch
        add_in_pairs(part, tag)
        part.to = <acc_t *>part.to + part.rows * part.pitch
        part.taps[0] = <const acc_t *>part.taps[0] + part.rows * part.step
        part.taps[1] = <const acc_t *>part.taps[1] + part.rows * part.step
        r += part.rows
