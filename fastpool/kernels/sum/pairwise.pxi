# Takes:   floats with numerics="pairwise"
# Reads:   floats and doubles in place, others from converted rows
# Scratch: sums down the columns of some rows of windows, with margins of 0 (COLUMNS); parts of long
#          windows and of strides (PREFIX); converted rows (ROWS), zeros (NO_ROW), parts of trees
#          (DIGITS), divisors (DIVISORS), and if NaN are left out, their numbers (NANS)
# Wins:    no other strategy takes them
#
# The order of additions is that of numerics="pairwise" (docs/averages.md): trees down the columns
# (trees.pxi), then a tree over the columns of each window. No sum is shared that has another tree.

cdef struct PairTile:                   # what the planes of a tile have in common
    Trees trees
    Py_ssize_t left                     # elements of a band before its first column
    Py_ssize_t line                     # elements from one converted row to the next
    bint converts                       # all rows under some rows of windows, once
    bint rolls                          # rolling.pxi
    int known                           # rows of divisors that were ever set
    double others[PAIR_SLOTS]           # what their divisors have in common
    Py_ssize_t taps                     # of the windows of a row whose NaN were left out last


cdef void begin_pairwise(PairTile *t, const Block *b, const real *src,
                         const acc_t *tag) noexcept nogil:
    """Set what the planes of a tile have in common, and fill the margins of bands."""
    cdef const Average *a = b.average
    cdef const Window *w = &a.frame.problem.rows
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, cols = tile.col_hi - tile.col_lo, r
    cdef Py_ssize_t lanes = VEC_BYTES // sizeof(acc_t)
    cdef bint same_type = real is float if acc_t is float else real is double
    cdef acc_t *band = <acc_t *>doubles(a, b.scratch, COLUMNS)
    cdef Trees *trees = &t.trees
    trees.count = <int>a.frame.problem.leads + 1
    trees.n, trees.cols, trees.col = n, cols, b.x.col
    trees.ignores, trees.counts = a.ignore_nan, False
    trees.direct = same_type and not a.ignore_nan and (b.x.col == n or cols <= 1)
    trees.zeros = <char *>doubles(a, b.scratch, NO_ROW)
    trees.lines, trees.pitch = <char *>doubles(a, b.scratch, ROWS), a.pitch
    set_lead_axes(trees, b)
    t.converts = not trees.direct and a.lines > 0 and is_flat(trees)
    t.line = round_up(cols * n, lanes)
    t.left, t.known, t.taps = 0, 0, -1
    fill(<acc_t *>trees.zeros, a.pitch, <acc_t>0)
    t.rolls = same_type and rolls(t, b, tag)
    if a.walks:
        return
    t.left = round_up(tile.left * n, lanes)     # (the first column is where vectors begin)
    for r in range(imin(a.block_rows, tile.rows)):
        fill(band, t.left, <acc_t>0)
        fill(band + t.left + cols * n, (tile.span - tile.left - cols) * n + lanes, <acc_t>0)
        band += a.band


cdef bint is_flat(const Trees *trees) noexcept nogil:
    """Does a window have one tap along each leading axis?"""
    cdef int a
    for a in range(trees.count - 1):
        if trees.axes[a].taps > 1 or trees.axes[a].lo == trees.axes[a].hi:
            return False
    return True


cdef void add_down(acc_t *bands, PairTile *t, const real *src, Py_ssize_t pitch, const Block *b,
                   Py_ssize_t row, Py_ssize_t stop) noexcept nogil:
    """Set the sums down the columns of some rows of windows.

    `src` is the first element under the tile, `pitch` the elements from one row to the next.
    """
    cdef const Window *w = &b.average.frame.problem.rows
    cdef const Tile *tile = b.tile
    cdef Trees *trees = &t.trees
    cdef Py_ssize_t cols = tile.col_hi - tile.col_lo, n = tile.channels, c, k, count
    cdef Py_ssize_t most = imax(1, trees.pitch // n)    # columns at a time
    cdef int last = trees.count - 1
    cdef PairAxis *axis = &trees.axes[last]
    cdef acc_t *parts = <acc_t *>doubles(b.average, b.scratch, DIGITS)
    cdef bint at_once = (trees.direct and not w.irregular and w.kernel <= MOST_LEAF
                         and is_flat(trees))
    cdef pairs_of_t pairs
    while row < stop:
        set_pair_axis(axis, w, row, pitch)
        axis.base = (window_start(w, row) + axis.lo * w.dilation - tile.row_lo) * pitch
        if at_once and w.inner_lo <= row < w.inner_hi:
            count = imin(stop, w.inner_hi) - row
            pairs.to, pairs.pitch, pairs.step, pairs.stride = bands, b.average.band, (
                w.stride * pitch), 1
            pairs.rows, pairs.width = count, cols * n
            pairs.count, pairs.division, pairs.by = <int>w.kernel, NO_DIVISION, NULL
            for k in range(w.kernel):
                pairs.taps[k] = src + axis.base + k * axis.step
            add_in_pairs(&pairs, bands)
            bands += count * b.average.band
            row += count
            continue
        c = 0
        while c < cols:
            trees.cols = imin(most, cols - c)
            if not add_tree(bands + c * n, trees, last, 0, axis.taps, src + c * trees.col, parts):
                fill(bands + c * n, trees.cols * n, <acc_t>0)
            c += trees.cols
        bands += b.average.band
        row += 1


cdef void add_down_converted(acc_t *bands, PairTile *t, const real *src, const Block *b,
                             Py_ssize_t row, Py_ssize_t stop) noexcept nogil:
    """Set the sums down the columns of rows that are converted first."""
    cdef const Window *w = &b.average.frame.problem.rows
    cdef const Tile *tile = b.tile
    cdef Trees *trees = &t.trees
    cdef Py_ssize_t lo = imax(0, window_start(w, row)), r
    cdef Py_ssize_t hi = imin(w.size, window_stop(w, stop - 1))
    cdef acc_t *lines = <acc_t *>trees.lines
    cdef acc_t *nans = lines + b.average.lines * t.line
    cdef acc_t *line
    trees.cols = tile.col_hi - tile.col_lo
    for r in range(hi - lo):
        line = lines if trees.counts else lines + r * t.line
        converted(line, nans + r * t.line if trees.counts else nans, trees,
                  src + (lo + r - tile.row_lo) * b.x.row)
    if trees.counts:
        lines = nans
    trees.direct, trees.col = True, trees.n
    add_down(bands, t, <const acc_t *>lines - (lo - tile.row_lo) * t.line, t.line, b, row, stop)
    trees.direct, trees.col = False, b.x.col


cdef void add_along(pairs_of_t *pairs, const Block *b, const divisors_t *d,
                    const acc_t *tag) noexcept nogil:
    """Add the columns of rows of windows. `taps[0]` is where the margin of the first row begins.

    `d` is NULL if the sums are not divided. `pairs.by` has the divisors of single columns.
    """
    cdef const Window *w = &b.average.frame.problem.cols
    cdef Py_ssize_t step = w.dilation * b.tile.channels, t
    cdef const acc_t *band = <const acc_t *>pairs.taps[0]
    if b.average.walks:
        add_each(pairs, b, d, tag)
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


cdef void add_outputs(pairs_of_t *pairs, const Block *b, const divisors_t *d, Py_ssize_t stride,
                      const acc_t *tag) noexcept nogil:
    """Add taps that are set for the first output, and divide, with one call for many outputs."""
    cdef Py_ssize_t n = b.tile.channels, cols = b.tile.cols, c = 0, run
    cdef double divisor
    cdef acc_t by
    pairs.stride = 1
    if n == 1 and (stride <= 2 or cols == 1):
        pairs.stride, pairs.width = <int>imin(stride, 2), cols
        add_divided(pairs, d, 0, tag)
        return
    while c < cols:
        run = 1
        if stride == 1:
            while c + run < cols and (d == NULL or d.counts == NULL
                                      or d.counts[c + run] == d.counts[c]):
                run += 1
        pairs.width = run * n
        add_divided(pairs, d, c, tag)
        advance(pairs, run * n, run * stride * n, tag)
        c += run


cdef void advance(pairs_of_t *pairs, Py_ssize_t outputs, Py_ssize_t elements,
                  const acc_t *tag) noexcept nogil:
    cdef int t
    pairs.to = <const acc_t *>pairs.to + outputs
    for t in range(pairs.count):
        pairs.taps[t] = <const acc_t *>pairs.taps[t] + elements


cdef void add_divided(pairs_of_t *pairs, const divisors_t *d, Py_ssize_t c,
                      const acc_t *tag) noexcept nogil:
    """Add, and divide by the divisors of outputs from `c` on: one, or those of single columns."""
    cdef const void *columns = pairs.by
    cdef double divisor
    cdef acc_t by
    pairs.division = NO_DIVISION
    if d != NULL and d.counts != NULL and columns != NULL:
        pairs.division = DIVISORS_OF_COLUMNS
        pairs.by = <const acc_t *>columns + c
    elif d != NULL:
        divisor = d.divisor * (1 if d.counts == NULL else d.counts[c])
        by = <acc_t>(divisor if divisor else 1)     # (a window without elements has a sum of 0)
        pairs.division, pairs.by = ONE_DIVISOR, &by
    add_in_pairs(pairs, tag)
    pairs.by = columns


cdef void add_split(pairs_of_t *pairs, const Block *b, const divisors_t *d,
                    const acc_t *tag) noexcept nogil:
    """Add single columns that have a stride: elements that are a stride apart become neighbours."""
    cdef const Window *w = &b.average.frame.problem.cols
    cdef Py_ssize_t size = ceil_div(b.tile.span, w.stride) + VEC_BYTES, r, t, i, k
    cdef acc_t *split = <acc_t *>doubles(b.average, b.scratch, PREFIX)
    cdef pairs_of_t one = pairs[0]
    cdef const acc_t *band
    one.rows = 1
    for r in range(pairs.rows):
        band = <const acc_t *>pairs.taps[0] + r * pairs.step
        one.to = <const acc_t *>pairs.to + r * pairs.pitch
        for t in range(w.kernel):
            i = t * w.dilation
            one.taps[t] = split + i % w.stride * size + i // w.stride
        for t in range(imin(w.stride, w.extent)):
            i = t
            for k in range(ceil_div(b.tile.span - t, w.stride)):
                split[t * size + k] = band[i]
                i += w.stride
        add_outputs(&one, b, d, 1, tag)


cdef void add_long(pairs_of_t *pairs, const Block *b, const divisors_t *d,
                   const acc_t *tag) noexcept nogil:
    """Add columns of long windows: those that are neighbours share the halves of their trees."""
    cdef const Window *w = &b.average.frame.problem.cols
    cdef Py_ssize_t n = b.tile.channels, step = w.dilation * n, size = w.kernel, shift = 0, t
    cdef Py_ssize_t width = b.tile.span * n, lanes = VEC_BYTES // sizeof(acc_t)
    cdef acc_t *parts = <acc_t *>doubles(b.average, b.scratch, PREFIX)
    cdef const acc_t *band = <const acc_t *>pairs.taps[0]
    cdef pairs_of_t part = pairs[0]
    while size > MOST_LEAF:
        size //= 2
        shift += 1
    for t in range(size):
        part.taps[t] = band + t * step
    part.to, part.pitch, part.division, part.count = parts, pairs.step, NO_DIVISION, <int>size
    part.stride = 1
    while shift > 0:
        # (In place, so that no vector may overlap another one.)
        part.width = round_up(width - (size - 1) * step, lanes)
        add_in_pairs(&part, tag)
        part.taps[0], part.taps[1] = parts, parts + size * step
        part.taps[2] = band + 2 * size * step
        shift -= 1
        size = w.kernel >> shift
        part.count = 2 + (size & 1)
    part.to, part.pitch = pairs.to, pairs.pitch
    add_outputs(&part, b, d, w.stride, tag)


cdef void add_each(pairs_of_t *pairs, const Block *b, const divisors_t *d,
                   const acc_t *tag) noexcept nogil:
    """Add the columns of each output alone: windows of several lengths, or mostly on padding."""
    cdef const Window *w = &b.average.frame.problem.cols
    cdef Py_ssize_t n = b.tile.channels, r, c
    cdef acc_t *sums = <acc_t *>doubles(b.average, b.scratch, PREFIX)
    cdef acc_t *parts = <acc_t *>doubles(b.average, b.scratch, DIGITS)
    cdef const acc_t *band
    cdef pairs_of_t one = pairs[0]
    cdef Trees trees
    trees.count, trees.cols, trees.col, trees.n, trees.direct = 1, 1, n, n, True
    trees.ignores = trees.counts = False
    trees.zeros = <char *>doubles(b.average, b.scratch, NO_ROW)
    trees.lines, trees.pitch = NULL, b.average.pitch
    one.count, one.rows, one.width, one.stride = 1, 1, n, 1
    for c in range(b.tile.cols):
        set_pair_axis(&trees.axes[0], w, b.tile.col + c, n)
        trees.axes[0].base = n * (window_start(w, b.tile.col + c)
                                  + trees.axes[0].lo * w.dilation - b.tile.col_lo)
        for r in range(pairs.rows):
            band = <const acc_t *>pairs.taps[0] + r * pairs.step
            if not add_tree(sums, &trees, 0, 0, trees.axes[0].taps, band, parts):
                fill(sums, n, <acc_t>0)
            one.taps[0], one.to = sums, <const acc_t *>pairs.to + r * pairs.pitch + c * n
            add_divided(&one, d, c, tag)


cdef void store_row(char *y, const View *view, const acc_t *means, const Block *b) noexcept nogil:
    """Round a row of means to the result's type."""
    cdef Py_ssize_t n = b.tile.channels, c, runs = b.tile.cols, run = n
    cdef int result = b.average.result, size = dtype_bytes[b.average.result]
    if view.col == n:
        run, runs = n * runs, 1
    for c in range(runs):
        if acc_t is float:
            if result == F16:
                store_f16(<float16_t_ *>y, means, run)
            elif result == BF16:
                store_bf16(<bfloat16_t_ *>y, means, run)
            else:
                memcpy(y, means, run * 4)
        else:
            memcpy(y, means, run * 8)
        y += view.col * size
        means += run


cdef void sum_down(acc_t *bands, PairTile *t, const real *src, const Block *b, Py_ssize_t row,
                   Py_ssize_t stop) noexcept nogil:
    """Set the sums down the columns of some rows of windows. `src` begins the plane of the tile."""
    if t.converts:
        add_down_converted(bands + t.left, t, src, b, row, stop)
    else:
        add_down(bands + t.left, t, src, b.x.row, b, row, stop)


cdef const acc_t *column_divisors(PairTile *t, const Block *b, const divisors_t *d,
                                  const acc_t *tag) noexcept nogil:
    """Return the divisors of single columns, which rows that are alike share; else NULL."""
    cdef Py_ssize_t width = b.tile.cols, c
    cdef acc_t *by = <acc_t *>doubles(b.average, b.scratch, DIVISORS)
    cdef double divisor
    cdef int slot
    if not t.rolls and (d.counts == NULL or b.tile.channels > 1):
        return NULL
    for slot in range(<int>imin(t.known, PAIR_SLOTS)):
        if t.others[slot] == d.divisor:
            return by + slot * width
    slot = t.known % PAIR_SLOTS
    t.known += 1
    t.others[slot] = d.divisor
    for c in range(width):
        divisor = d.divisor * (1 if d.counts == NULL else d.counts[c])
        by[slot * width + c] = <acc_t>(divisor if divisor else 1)
    return by + slot * width


cdef void sum_windows_in_pairs(acc_t *sums, PairTile *t, const real *src, const Block *b,
                               Py_ssize_t row, Py_ssize_t stop) noexcept nogil:
    """Set the sums of some rows of windows, not divided."""
    cdef acc_t *bands = <acc_t *>doubles(b.average, b.scratch, COLUMNS)
    cdef pairs_of_t pairs
    sum_down(bands, t, src, b, row, stop)
    pairs.step, pairs.rows = b.average.band, stop - row
    pairs.pitch, pairs.by = b.tile.cols * b.tile.channels, NULL
    pairs.taps[0], pairs.to = first_band(t, b, <const acc_t *>bands), sums
    add_along(&pairs, b, NULL, <const acc_t *>sums)


cdef inline const acc_t *first_band(const PairTile *t, const Block *b,
                                    const acc_t *bands) noexcept nogil:
    """Return where the margin of the first band begins, or its first column if it has none."""
    return bands if b.average.walks else bands + t.left - b.tile.left * b.tile.channels


cdef void average_without_nans(char *y, const View *view, PairTile *t, const real *src,
                               const Block *b, Py_ssize_t row, Py_ssize_t stop,
                               const acc_t *tag) noexcept nogil:
    """Pool some rows of windows, whose NaN are left out."""
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef Py_ssize_t n = b.tile.channels, width = b.tile.cols * n, r, c, i, rows, first
    cdef acc_t *sums = <acc_t *>doubles(a, b.scratch, HIGH)
    cdef double *nans = doubles(a, b.scratch, NANS)
    cdef acc_t *counts = <acc_t *>nans
    cdef acc_t *by = <acc_t *>doubles(a, b.scratch, DIVISORS)
    cdef acc_t *taps = by + b.tile.cols
    cdef divisors_t d
    t.trees.counts = False
    sum_windows_in_pairs(sums, t, src, b, row, stop)
    t.trees.counts = True
    if acc_t is float and a.wide_counts:
        begin_pairwise(t, b, src, <const double *>NULL)
        t.trees.counts = True
        sum_windows_in_pairs(nans, t, src, b, row, stop)
        begin_pairwise(t, b, src, tag)
    else:
        sum_windows_in_pairs(counts, t, src, b, row, stop)
        i = (stop - row) * width - 1 if acc_t is float else -1
        while i >= 0:                       # (the last one first: doubles take more room)
            nans[i] = counts[i]
            i -= 1
    for r in range(row, stop):
        rows = real_taps(&p.rows, r, &first) * b.slabs
        set_divisors(&d, b, r)
        if rows != t.taps or d.divisor != t.others[0]:
            t.taps, t.others[0] = rows, d.divisor
            for c in range(b.tile.cols):
                taps[c] = <acc_t>(rows * real_taps(&p.cols, b.tile.col + c, &first))
                by[c] = <acc_t>(d.divisor * (d.counts[c] if d.counts != NULL else 1))
        if n == 1:
            divide_counted(sums, nans, taps, by, False, a.divisor != 0, width)
        else:
            for c in range(b.tile.cols):
                divide_counted(sums + c * n, nans + c * n, taps + c, by + c, True,
                               a.divisor != 0, n)
        store_row(y, view, sums, b)
        y += view.row * dtype_bytes[a.result]
        sums += width
        nans += width


cdef bint roll_plane(char *y, const View *view, PairTile *t, const real *src, const Block *b,
                     const acc_t *tag) noexcept nogil:
    """Pool one plane of a tile by rows of pixels. Return False if there is no loop for that."""
    cdef const Average *a = b.average
    cdef acc_t *sums = <acc_t *>doubles(a, b.scratch, HIGH)
    cdef bint in_place = a.result == F32 or a.result == F64
    cdef Py_ssize_t n = b.tile.channels, r
    cdef divisors_t d
    for r in range(b.tile.rows):
        set_divisors(&d, b, b.tile.row + r)
        if not roll_row(y if in_place else <char *>sums, view.col if in_place else n, t, src, b,
                        b.tile.row + r, column_divisors(t, b, &d, tag)):
            return False
        if not in_place:
            store_row(y, view, sums, b)
        y += view.row * dtype_bytes[a.result]
    return True


cdef void average_pairwise(char *y, const View *view, PairTile *t, const real *src,
                           const Block *b, const acc_t *tag) noexcept nogil:
    """Pool one plane of a tile. `src` is its first element."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, done = 0, stop, r, last, i
    cdef int size = dtype_bytes[a.result]
    cdef acc_t *sums = <acc_t *>doubles(a, b.scratch, HIGH)
    cdef acc_t *bands = <acc_t *>doubles(a, b.scratch, COLUMNS)
    cdef bint in_place = ((a.result == F32 or a.result == F64)
                          and (view.col == n or tile.cols == 1))
    cdef pairs_of_t pairs
    cdef divisors_t d
    if t.rolls:
        if roll_plane(y, view, t, src, b, tag):
            return
        t.rolls, t.known = False, 0
    while done < tile.rows:
        stop = imin(tile.rows, done + a.block_rows)
        if a.ignore_nan:
            average_without_nans(y + done * view.row * size, view, t, src, b,
                                 tile.row + done, tile.row + stop, tag)
            done = stop
            continue
        sum_down(bands, t, src, b, tile.row + done, tile.row + stop)
        r = done
        while r < stop:
            last = same_divisors(b, r, stop)
            set_divisors(&d, b, tile.row + r)
            pairs.by = column_divisors(t, b, &d, tag)
            pairs.step, pairs.rows = a.band, last - r
            pairs.taps[0] = first_band(t, b, <const acc_t *>bands) + (r - done) * a.band
            pairs.to, pairs.pitch = sums, tile.cols * n
            if in_place:
                pairs.to, pairs.pitch = y + r * view.row * size, view.row
            add_along(&pairs, b, &d, tag)
            if not in_place:
                for i in range(r, last):
                    store_row(y + i * view.row * size, view, sums + (i - r) * tile.cols * n, b)
            r = last
        done = stop


cdef void average_planes_pairwise(const View *y, const real *src, Block *b,
                                  const acc_t *tag) noexcept nogil:
    """Pool the planes of a tile."""
    cdef const Problem *p = &b.average.frame.problem
    cdef PairTile t
    cdef Py_ssize_t plane
    begin_pairwise(&t, b, src, tag)
    for plane in range(b.tile.planes):
        average_pairwise(y.data + output_offset(p, y, b.tile, plane)
                         * dtype_bytes[b.average.result], y, &t,
                         src + input_offset(p, b.x, b.tile, plane), b, tag)
