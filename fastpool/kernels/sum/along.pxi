# Sums along rows of sums: a tree over the columns of each window.

cdef enum:
    LEAST_TOGETHER = 128    # taps of rows of one output added at once: 13504 to 3 68 -> 4.8 us


cdef struct PairDivisors:               # of a row of outputs
    const void *by                      # one, or one of each column
    const void *high                    # parts of their reciprocals; NULL if these are too short
    const void *low
    bint vary                           # one of each column


cdef void add_along(pairs_of_t *pairs, const Block *b, const PairDivisors *d,
                    const acc_t *tag) noexcept nogil:
    """Add the columns of rows of windows. `taps[0]` is where the margin of the first row begins.

    If `d` is NULL, do not divide.
    """
    cdef const Window *w = &b.average.frame.problem.cols
    cdef Py_ssize_t step = w.dilation * b.tile.channels, t
    cdef const acc_t *band = <const acc_t *>pairs.taps[0]
    cdef bint apart = w.dilation == 1 and w.stride >= w.kernel and b.tile.channels == 1
    if b.average.sequential:                # (they are added)
        pairs.count = 1
        add_outputs(pairs, b, d, 1, tag)
    elif b.average.walks:
        add_each(pairs, b, d, tag)
    elif apart and imax(w.kernel, w.stride - 1) > MOST_LEAF and b.tile.cols >= MIN_APART:
        add_apart(pairs, b, d, tag)
    elif w.kernel > MOST_LEAF:
        add_long(pairs, b, d, tag)
    else:
        pairs.count = <int>w.kernel
        for t in range(w.kernel):
            pairs.taps[t] = band + t * step
        if b.tile.channels == 1 and w.stride > 2 and b.tile.cols > 1 and w.stride <= MOST_SPLIT:
            add_split(pairs, b, d, tag)
        else:
            add_outputs(pairs, b, d, w.stride, tag)


cdef void add_outputs(pairs_of_t *pairs, const Block *b, const PairDivisors *d, Py_ssize_t stride,
                      const acc_t *tag) noexcept nogil:
    """Add taps that are set for the first output, and divide, with one call for many outputs."""
    cdef Py_ssize_t n = b.tile.channels, cols = b.tile.cols, c = 0, run, r
    cdef const acc_t *by = <const acc_t *>d.by if d != NULL and d.vary else NULL
    cdef pairs_of_t row
    cdef int t
    pairs.stride = 1
    if n == 1 and (stride <= 2 or cols == 1):
        pairs.stride, pairs.width = <int>imin(stride, 2), cols
        add_divided(pairs, d, 0, b, tag)
        return
    while c < cols:
        run = 1                             # outputs with one divisor
        while c + run < cols and (by == NULL or by[c + run] == by[c]):
            run += 1
        pairs.width = run * n
        if stride == 1:
            add_divided(pairs, d, c, b, tag)
        else:                               # they are rows of one call
            row = pairs[0]
            row.rows, row.width, row.pitch = run, n, n
            row.step = row.last_step = stride * n
            for r in range(pairs.rows):
                row.to = <acc_t *>pairs.to + r * pairs.pitch
                for t in range(pairs.count):
                    row.taps[t] = <const acc_t *>pairs.taps[t] + r * (
                        pairs.step if t < pairs.count - 1 else pairs.last_step)
                add_divided(&row, d, c, b, tag)
        advance(pairs, run * n, run * stride * n, tag)
        c += run


cdef void advance(pairs_of_t *pairs, Py_ssize_t outputs, Py_ssize_t elements,
                  const acc_t *tag) noexcept nogil:
    cdef int t
    pairs.to = <acc_t *>pairs.to + outputs
    for t in range(pairs.count):
        pairs.taps[t] = <const acc_t *>pairs.taps[t] + elements


cdef void add_divided(pairs_of_t *pairs, const PairDivisors *d, Py_ssize_t c, const Block *b,
                      const acc_t *tag) noexcept nogil:
    """Add, and divide by the divisors of outputs from `c` on: one, or those of single columns."""
    pairs.division = NO_DIVISION
    if d != NULL:
        pairs.division = ONE_DIVISOR
        if d.vary and b.tile.channels == 1:
            pairs.division = DIVISORS_OF_COLUMNS
        c = c if d.vary else 0
        pairs.by = <const acc_t *>d.by + c
        pairs.high = pairs.low = NULL
        if d.high != NULL:
            pairs.high, pairs.low = <const acc_t *>d.high + c, <const acc_t *>d.low + c
    add_in_pairs(pairs, tag)


cdef void add_split(pairs_of_t *pairs, const Block *b, const PairDivisors *d,
                    const acc_t *tag) noexcept nogil:
    """Add single columns that have a stride: elements that are a stride apart become neighbours."""
    cdef const Window *w = &b.average.frame.problem.cols
    cdef Py_ssize_t size = ceil_div(b.tile.span, w.stride) + VEC_BYTES, r, t, i
    cdef Py_ssize_t cols = imin(w.stride, w.extent), rows = (b.tile.span - cols) // w.stride + 1
    cdef acc_t *split = <acc_t *>doubles(b.average, b.scratch, SPLIT)
    cdef pairs_of_t one = pairs[0]
    cdef const acc_t *band
    one.rows = 1
    for r in range(pairs.rows):
        band = <const acc_t *>pairs.taps[0] + r * pairs.step
        one.to = <acc_t *>pairs.to + r * pairs.pitch
        for t in range(w.kernel):
            i = t * w.dilation
            one.taps[t] = split + i % w.stride * size + i // w.stride
        # (Four columns at least: fewer use no vectors. A band ends with room for a vector.)
        transpose(split, size, band, w.stride, rows, imax(4, cols), sizeof(acc_t))
        i = rows * w.stride
        for t in range(imin(cols, b.tile.span - i)):
            split[t * size + rows] = band[i + t]
        add_outputs(&one, b, d, 1, tag)


cdef void add_apart(pairs_of_t *pairs, const Block *b, const PairDivisors *d,
                    const acc_t *tag) noexcept nogil:
    """Add single columns of windows that share none: they are rows of taps."""
    cdef const Window *w = &b.average.frame.problem.cols
    cdef acc_t *sums = <acc_t *>doubles(b.average, b.scratch, SPLIT)
    cdef const acc_t *band = <const acc_t *>pairs.taps[0]
    cdef pairs_of_t part = pairs[0]
    cdef Py_ssize_t r
    part.count, part.stride, part.width, part.rows, part.taps[0] = 1, 1, b.tile.cols, 1, sums
    for r in range(pairs.rows):
        add_row_trees(sums, band + r * pairs.step, w.stride, b.tile.cols, w.kernel, True)
        part.to = <acc_t *>pairs.to + r * pairs.pitch
        add_divided(&part, d, 0, b, tag)


cdef void add_long(pairs_of_t *pairs, const Block *b, const PairDivisors *d,
                   const acc_t *tag) noexcept nogil:
    """Add columns of long windows: those that are neighbours share the halves of their trees."""
    cdef const Window *w = &b.average.frame.problem.cols
    cdef Py_ssize_t n = b.tile.channels, step = w.dilation * n, size, t, r = 0
    cdef Py_ssize_t width = b.tile.span * n, lanes = VEC_BYTES // sizeof(acc_t)
    cdef int shift
    cdef acc_t *parts = <acc_t *>doubles(b.average, b.scratch, SPLIT)
    cdef acc_t *band
    cdef pairs_of_t part
    while r < pairs.rows:
        band = <acc_t *>pairs.taps[0] + r * pairs.step
        part = pairs[0]
        part.rows = imin(b.average.long_rows, pairs.rows - r)
        shift = leaf_shift(w.kernel)
        size = w.kernel >> shift
        part.width = round_up(width - (size - 1) * step, lanes)
        for t in range(size):
            part.taps[t] = band + t * step
        part.to, part.pitch, part.division, part.count = parts, pairs.step, NO_DIVISION, <int>size
        part.stride = 1
        for t in range(part.rows):          # (what is after rows is added too, and raises flags)
            memset(band + t * pairs.step + width, 0, VEC_BYTES)
            memset(parts + t * pairs.step + part.width, 0, VEC_BYTES)
        while shift > 0:
            # (In place, so that no vector may overlap another one; `parts` are aligned.)
            part.width = round_up(width - (size - 1) * step, lanes)
            add_in_pairs(&part, tag)
            part.taps[0], part.taps[1] = parts, parts + size * step
            part.taps[2] = band + 2 * size * step
            shift -= 1
            size = w.kernel >> shift
            part.count = 2 + (size & 1)
        part.to, part.pitch = <acc_t *>pairs.to + r * pairs.pitch, pairs.pitch
        add_outputs(&part, b, d, w.stride, tag)
        r += part.rows


cdef inline int leaf_shift(Py_ssize_t taps) noexcept nogil:
    """Return how often the taps of a tree are halved before they are those of a leaf."""
    cdef int shift = 0
    while taps >> shift > MOST_LEAF:
        shift += 1
    return shift


cdef void add_each(pairs_of_t *pairs, const Block *b, const PairDivisors *d,
                   const acc_t *tag) noexcept nogil:
    """Add the columns of each output alone: windows of several lengths, or mostly on padding."""
    cdef const Window *w = &b.average.frame.problem.cols
    cdef Py_ssize_t n = b.tile.channels, r, c, base = 0, count = 0, i
    cdef bint same, together
    cdef acc_t *sums = <acc_t *>doubles(b.average, b.scratch, SPLIT)    # (as those of `sum_rows`)
    cdef acc_t *parts = <acc_t *>doubles(b.average, b.scratch, PARTS)
    cdef const acc_t *band
    cdef pairs_of_t one = pairs[0]
    cdef Trees trees, run
    begin_trees(&trees, n, b.average.pitch, tag)
    begin_trees(&run, 1, b.average.pitch, tag)
    trees.zeros = <char *>doubles(b.average, b.scratch, NO_ROW)
    one.count, one.rows, one.width, one.stride = 1, 1, n, 1
    one.step = one.last_step = 0
    for c in range(b.tile.cols):
        set_pair_axis(&trees.axes[0], w, b.tile.col + c, trees.col)
        trees.axes[0].base = trees.col * (window_start(w, b.tile.col + c) - b.tile.col_lo
                                          + trees.axes[0].lo * w.dilation)
        # (Equal windows, mostly on padding, have equal sums if these are exact.)
        same = c > 0 and d == NULL and not b.average.pairwise and trees.axes[0].base == base
        same &= trees.axes[0].hi - trees.axes[0].lo == count
        base, count = trees.axes[0].base, trees.axes[0].hi - trees.axes[0].lo
        together = (n == 1 and w.dilation == 1 and count == trees.axes[0].taps
                    and count * pairs.rows >= LEAST_TOGETHER)
        for r in range(pairs.rows):
            one.to = <acc_t *>pairs.to + r * pairs.pitch + c * n
            if same:
                memcpy(one.to, <acc_t *>one.to - n, n * sizeof(acc_t))
                continue
            band = <const acc_t *>pairs.taps[0] + r * pairs.step
            i = r % FULL_ROW if together else 0
            if together:
                if i == 0:
                    sum_rows(&run, <const char *>band + base, pairs.step * sizeof(acc_t),
                             imin(FULL_ROW, pairs.rows - r), count, b, tag)
            elif not add_tree(sums, &trees, 0, 0, trees.axes[0].taps, <const char *>band, parts):
                fill(sums, n, <acc_t>0)
            one.taps[0] = sums + i
            add_divided(&one, d, c, b, tag)
