# Takes:   any window whose additions may have any order; what no other strategy takes
# Reads:   the input in place, row by row
# Scratch: the columns of a row of windows with margins (COLUMNS); for long windows along a row
#          prefixes of these (PREFIX, PLACES)
# Wins:    large windows that overlap: the time hardly grows with the window
#
# The first step: columns of a window are added up, elements as doubles. windows.pxi is the second.

cdef inline void add_run(double *sums, const any_t *src, Py_ssize_t n, const Block *b,
                         Py_ssize_t slabs, Py_ssize_t count, Py_ssize_t step) noexcept nogil:
    """Set the sums of `count` rows, `step` elements apart, in every slab; n >= WIDE.

    Callers pass constant `slabs` and `count` for the common windows.
    """
    cdef Py_ssize_t i = 0, s, r
    cdef const any_t *at
    cdef vec_t one, two
    while i + 2 * WIDE <= n:
        one = two = wide_zero()
        for s in range(slabs):
            at = src + b.offsets[s] + i
            for r in range(count):
                one = wide_add(one, wide(at))
                two = wide_add(two, wide(at + WIDE))
                at += step
        vec_store(sums + i, one)
        vec_store(sums + i + WIDE, two)
        i += 2 * WIDE
    while i < n:
        i = imin(i, n - WIDE)               # (some sums are made again)
        one = wide_zero()
        for s in range(slabs):
            at = src + b.offsets[s] + i
            for r in range(count):
                one = wide_add(one, wide(at))
                at += step
        vec_store(sums + i, one)
        i += WIDE


cdef void add_rows(double *sums, const any_t *src, Py_ssize_t n, const Block *b,
                   const Rows *rows) noexcept nogil:
    """Set the sums of `rows` in every slab, of n neighbouring elements."""
    cdef Py_ssize_t i, s, r, step = rows.step * rows.pitch
    cdef const any_t *at
    src += rows.first * rows.pitch
    if n < WIDE:
        for i in range(n):
            sums[i] = 0
            for s in range(b.slabs):
                at = src + b.offsets[s] + i
                for r in range(rows.count):
                    sums[i] += as_double(at)
                    at += step
    elif b.slabs == 1 and rows.count == 2:
        add_run(sums, src, n, b, 1, 2, step)
    elif b.slabs == 1 and rows.count == 3:
        add_run(sums, src, n, b, 1, 3, step)
    elif b.slabs == 1 and rows.count == 5:
        add_run(sums, src, n, b, 1, 5, step)
    elif b.slabs == 1:
        add_run(sums, src, n, b, 1, rows.count, step)
    else:
        add_run(sums, src, n, b, b.slabs, rows.count, step)


cdef inline void carry_run(double *sums, const any_t *src, Py_ssize_t n, const Block *b,
                           const Rows *more, const Rows *less, Py_ssize_t most,
                           Py_ssize_t least) noexcept nogil:
    """Add `most` rows of every slab to n sums, and subtract `least` ones. They may be constants."""
    cdef Py_ssize_t i, s, r
    cdef const any_t *added
    cdef const any_t *gone
    cdef vec_t v
    for s in range(b.slabs):
        added = src + b.offsets[s] + more.first * more.pitch
        gone = src + b.offsets[s] + less.first * less.pitch
        i = 0
        while i + WIDE <= n:
            v = vec_load(sums + i)
            for r in range(most):
                v = wide_add(v, wide(added + r * more.pitch + i))
            for r in range(least):
                v = wide_sub(v, wide(gone + r * less.pitch + i))
            vec_store(sums + i, v)
            i += WIDE
        while i < n:
            for r in range(most):
                sums[i] += as_double(added + r * more.pitch + i)
            for r in range(least):
                sums[i] -= as_double(gone + r * less.pitch + i)
            i += 1


cdef void carry_rows(double *sums, const any_t *src, Py_ssize_t n, const Block *b,
                     const Rows *more, const Rows *less) noexcept nogil:
    """Add rows of every slab to n sums, and subtract others."""
    if more.count == 1 and less.count == 1:
        carry_run(sums, src, n, b, more, less, 1, 1)
    else:
        carry_run(sums, src, n, b, more, less, more.count, less.count)


cdef void sum_columns(Columns *columns, const any_t *src, const Block *b,
                      Py_ssize_t output) noexcept nogil:
    """Set the sums of columns under one row of outputs."""
    cdef const Problem *p = &b.average.frame.problem
    cdef const Tile *tile = b.tile
    cdef const View *x = b.x
    cdef Rows rows, gone
    cdef Py_ssize_t cols = tile.col_hi - tile.col_lo, n = tile.channels, c, runs = 1, stop
    cdef double *sums = columns.sums
    rows.count = real_taps(&p.rows, output, &rows.first)
    rows.first -= tile.row_lo
    rows.step, rows.pitch = p.rows.dilation, x.row
    if x.col == n or cols <= 1:
        n *= cols                           # neighbours in memory are one run
    else:
        runs = cols
    if b.average.carries_rows and 0 <= columns.first <= rows.first < columns.stop:
        # (the windows share rows)
        gone, stop = rows, rows.first + rows.count
        gone.first, gone.count = columns.first, rows.first - columns.first
        columns.first = rows.first
        rows.first, rows.count = columns.stop, stop - columns.stop
        for c in range(runs):
            carry_rows(sums + c * n, src + c * x.col, n, b, &rows, &gone)
        columns.stop = stop
        return
    for c in range(runs):
        add_rows(sums + c * n, src + c * x.col, n, b, &rows)
    columns.first, columns.stop = rows.first, rows.first + rows.count


cdef void begin_columns(Columns *columns, const Block *b, int digit) noexcept nogil:
    """Set where the sums of a digit's columns are, with margins of 0 around them."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t left = 0 if a.carries_cols else tile.left
    cdef Py_ssize_t right = 0 if a.carries_cols else tile.span - left - cols
    cdef double *sums = doubles(a, b.scratch, COLUMNS) + digit * a.band
    fill(sums, left * n, <double>0)
    columns.sums = sums + left * n
    fill(columns.sums + cols * n, right * n + 2 * WIDE, <double>0)
    columns.first = columns.stop = -1
