# Takes:   floats with numerics="pairwise"
# Reads:   floats and doubles in place, others from converted rows
# Scratch: sums down the columns of some rows of windows, with margins of 0 (COLUMNS); parts of long
#          windows and of strides (PREFIX), and of tall ones (TALL); converted rows (ROWS), zeros
#          (NO_ROW), parts of trees (DIGITS), divisors (DIVISORS), and if NaN are left out, their
#          numbers (NANS)
# Wins:    no other strategy takes them
#
# The order of additions is that of numerics="pairwise" (docs/averages.md): trees down the columns
# (trees.pxi, tall_windows.pxi), then a tree over the columns of each window (pair_columns.pxi). No
# sum is shared that has another tree.

cdef struct PairTile:                   # what the planes of a tile have in common
    Trees trees
    Trees down                          # of rows that are lines
    bint flat                           # have windows one tap along each leading axis?
    bint nans                           # was a NaN left out?
    Py_ssize_t left                     # elements of a band before its first column
    Py_ssize_t line                     # elements from one converted row to the next
    bint converts                       # all rows under some rows of windows become lines, once
    bint tall                           # tall_windows.pxi
    bint rolls                          # rolling.pxi
    int known                           # rows of divisors that were ever set
    double others[PAIR_SLOTS]           # what their divisors have in common
    bint quick[PAIR_SLOTS]              # have they reciprocals?
    Py_ssize_t taps                     # of the windows of a row whose NaN were left out last,
    double by                           # and what their divisors have in common


cdef void begin_pairwise(PairTile *t, const Block *b, const real *src,
                         const acc_t *tag) noexcept nogil:
    """Set what the planes of a tile have in common, and fill the margins of bands."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, cols = tile.col_hi - tile.col_lo, r, right
    cdef Py_ssize_t lanes = VEC_BYTES // sizeof(acc_t)
    cdef bint same_type = real is float if acc_t is float else real is double
    cdef acc_t *band = <acc_t *>doubles(a, b.scratch, COLUMNS)
    cdef Trees *trees = &t.trees
    trees.count = <int>a.frame.problem.leads + 1
    trees.n, trees.cols, trees.col = n, cols, b.x.col
    trees.ignores, trees.counts, trees.kept = a.ignore_nan, False, False
    trees.direct = same_type and not a.ignore_nan and (b.x.col == n or cols <= 1 or n >= lanes)
    trees.zeros = <char *>doubles(a, b.scratch, NO_ROW)
    trees.lines, trees.pitch = <char *>doubles(a, b.scratch, ROWS), a.pitch
    set_lead_axes(trees, b)
    t.flat = is_flat(trees)
    t.converts = a.lines > 0 and not (trees.direct and t.flat)
    t.tall = a.tall > 0 and ((trees.direct and t.flat) or t.converts)
    t.down = trees[0]
    t.down.count, t.down.col, t.down.direct, t.down.ignores = 1, n, True, False
    trees.found = &t.nans
    t.line = round_up(cols * n, lanes)
    t.left, t.known, t.taps = 0, 0, -1
    fill(<acc_t *>trees.zeros, a.pitch, <acc_t>0)
    t.rolls = same_type and rolls(t, b, tag)
    if a.walks:
        return
    t.left = round_up(tile.left * n, lanes)     # (the first column is where vectors begin)
    right = (tile.span - tile.left - cols) * n + lanes
    for r in range(imin(a.block_rows, tile.rows)):
        if t.left:
            fill(band, t.left, <acc_t>0)
        fill(band + t.left + cols * n, right, <acc_t>0)
        band += a.band


cdef bint is_flat(const Trees *trees) noexcept nogil:
    """Does a window have one tap along each leading axis?"""
    cdef int a
    for a in range(trees.count - 1):
        if trees.axes[a].taps > 1 or trees.axes[a].lo == trees.axes[a].hi:
            return False
    return True


cdef void add_down(acc_t *bands, Trees *trees, bint flat, bint tall, const real *src,
                   Py_ssize_t pitch, const Block *b, Py_ssize_t row,
                   Py_ssize_t stop) noexcept nogil:
    """Set the sums down the columns of some rows of windows.

    `src` is the first element under the tile, `pitch` the elements from one row to the next.
    """
    cdef const Window *w = &b.average.frame.problem.rows
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t cols = tile.col_hi - tile.col_lo, n = tile.channels, c, k, count
    cdef Py_ssize_t most = imax(1, trees.pitch // n)    # columns at a time
    cdef int last = trees.count - 1
    cdef PairAxis *axis = &trees.axes[last]
    cdef acc_t *parts = <acc_t *>doubles(b.average, b.scratch, DIGITS)
    cdef bint at_once = trees.direct and flat and not w.irregular and w.kernel <= MOST_LEAF
    cdef pairs_of_t pairs
    if tall:
        if (acc_t is float and real is float) or (acc_t is double and real is double):
            add_tall(bands, src, pitch, trees.col, b, row, stop)
            return
    if trees.direct and trees.col != n:
        most = 1                            # (columns are not neighbours)
    while row < stop:
        set_pair_axis(axis, w, row, pitch)
        axis.base = (window_start(w, row) + axis.lo * w.dilation - tile.row_lo) * pitch
        if at_once and w.inner_lo <= row < w.inner_hi:
            count = imin(stop, w.inner_hi) - row
            begin_pairs(&pairs, bands, b.average.band, count, n * (cols if trees.col == n else 1))
            pairs.step = pairs.last_step = w.stride * pitch
            pairs.count, pairs.has_room = <int>w.kernel, True
            for c in range(1 if trees.col == n else cols):
                for k in range(w.kernel):
                    pairs.taps[k] = src + axis.base + k * axis.step + c * trees.col
                pairs.to = bands + c * n
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


cdef void add_down_lines(acc_t *bands, PairTile *t, const real *src, const Block *b,
                         Py_ssize_t row, Py_ssize_t stop) noexcept nogil:
    """Set the sums down the columns of rows of lines: converted, or added along leading axes."""
    cdef const Window *w = &b.average.frame.problem.rows
    cdef const Tile *tile = b.tile
    cdef Trees *trees = &t.trees
    cdef Py_ssize_t lo = imax(0, window_start(w, row)), n = tile.channels, r, c
    cdef Py_ssize_t hi = imin(w.size, window_stop(w, stop - 1)), cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t most = 1 if trees.direct and trees.col != n else imax(1, trees.pitch // n)
    cdef int last = trees.count - 2
    cdef acc_t *lines = <acc_t *>trees.lines + 2 * MOST_LEAF * trees.pitch
    cdef acc_t *nans = lines + b.average.lines * t.line
    cdef acc_t *parts = <acc_t *>doubles(b.average, b.scratch, DIGITS)
    cdef const real *at
    if t.flat:
        trees.cols = cols
        for r in range(0 if trees.kept else hi - lo):
            converted(lines + r * t.line, nans + r * t.line, trees,
                      src + (lo + r - tile.row_lo) * b.x.row)
        if trees.counts:
            lines = nans
    else:
        for r in range(hi - lo):
            at = src + (lo + r - tile.row_lo) * b.x.row
            c = 0
            while c < cols:
                trees.cols = imin(most, cols - c)
                if not add_tree(lines + r * t.line + c * n, trees, last, 0, trees.axes[last].taps,
                                at + c * trees.col, parts):
                    fill(lines + r * t.line + c * n, trees.cols * n, <acc_t>0)
                c += trees.cols
    add_down(bands, &t.down, True, t.tall, <const acc_t *>lines - (lo - tile.row_lo) * t.line,
             t.line, b, row, stop)


cdef void store_means(char *y, const acc_t *means, Py_ssize_t n, int result) noexcept nogil:
    """Round means to the result's type."""
    if acc_t is float:
        if result == F16:
            store_f16(<float16_t_ *>y, means, n)
        elif result == BF16:
            store_bf16(<bfloat16_t_ *>y, means, n)
        else:
            memcpy(y, means, n * 4)
    else:
        memcpy(y, means, n * 8)


cdef void store_row(char *y, const View *view, const acc_t *means, const Block *b) noexcept nogil:
    """Round a row of means to the result's type."""
    cdef Py_ssize_t n = b.tile.channels, c, runs = b.tile.cols
    if view.col == n:
        n, runs = n * runs, 1
    for c in range(runs):
        store_means(y, means, n, b.average.result)
        y += view.col * dtype_bytes[b.average.result]
        means += n


cdef void sum_down(acc_t *bands, PairTile *t, const real *src, const Block *b, Py_ssize_t row,
                   Py_ssize_t stop) noexcept nogil:
    """Set the sums down the columns of some rows of windows. `src` begins the plane of the tile."""
    if t.converts:
        add_down_lines(bands + t.left, t, src, b, row, stop)
    else:
        add_down(bands + t.left, &t.trees, t.flat, t.tall, src, b.x.row, b, row, stop)


cdef void set_pair_divisors(PairDivisors *p, PairTile *t, const Block *b, Py_ssize_t row,
                            const acc_t *tag) noexcept nogil:
    """Set the divisors of a row of windows, which rows that are alike share."""
    cdef Py_ssize_t width = b.tile.cols, c
    cdef acc_t *by = <acc_t *>doubles(b.average, b.scratch, DIVISORS)
    cdef divisors_t d
    cdef double divisor
    cdef int slot = 0
    set_divisors(&d, b, row)
    while slot < imin(t.known, PAIR_SLOTS) and t.others[slot] != d.divisor:
        slot += 1
    p.vary = t.rolls or d.counts != NULL
    if slot == imin(t.known, PAIR_SLOTS):
        slot = t.known % PAIR_SLOTS
        t.known += 1
        t.others[slot] = d.divisor
        by += 3 * slot * width
        for c in range(width if p.vary else 1):
            divisor = d.divisor * (1 if d.counts == NULL else d.counts[c])
            by[c] = <acc_t>(divisor if divisor else 1)  # (without elements the sum is 0)
        t.quick[slot] = set_pair_reciprocals(by, by + width, by + 2 * width,
                                             width if p.vary else 1)
    else:
        by += 3 * slot * width
    p.by, p.high, p.low = by, NULL, NULL
    if t.quick[slot]:
        p.high, p.low = by + width, by + 2 * width


cdef void sum_along(acc_t *sums, const PairTile *t, const Block *b,
                    Py_ssize_t rows) noexcept nogil:
    """Set the sums of some rows of windows, not divided."""
    cdef const acc_t *bands = <const acc_t *>doubles(b.average, b.scratch, COLUMNS)
    cdef pairs_of_t pairs
    begin_pairs(&pairs, sums, b.tile.cols * b.tile.channels, rows, 0)
    pairs.step = pairs.last_step = b.average.band
    pairs.taps[0] = first_band(t, b, bands)
    add_along(&pairs, b, NULL, bands)


cdef inline const acc_t *first_band(const PairTile *t, const Block *b,
                                    const acc_t *bands) noexcept nogil:
    """Return where the margin of the first band begins, or its first column if it has none."""
    return bands if b.average.walks else bands + t.left - b.tile.left * b.tile.channels


cdef void average_without_nans(char *y, const View *view, PairTile *t, const real *src,
                               const Block *b, Py_ssize_t row, Py_ssize_t stop,
                               const acc_t *tag) noexcept nogil:
    """Pool some rows of windows, some of whose NaN are left out. Bands have their sums."""
    cdef const Average *a = b.average
    cdef Py_ssize_t rows = stop - row, size = rows * b.tile.cols * b.tile.channels
    cdef acc_t *sums = <acc_t *>doubles(a, b.scratch, HIGH)
    cdef double *nans = doubles(a, b.scratch, NANS)
    cdef acc_t *bands = <acc_t *>doubles(a, b.scratch, COLUMNS)
    sum_along(sums, t, b, rows)
    t.trees.counts = True
    if acc_t is float and a.wide_counts:
        begin_pairwise(t, b, src, <const double *>NULL)
        t.trees.counts = True
        sum_down(doubles(a, b.scratch, COLUMNS), t, src, b, row, stop)
        sum_along(nans, t, b, rows)
        begin_pairwise(t, b, src, tag)
        divide_rows_of_some(y, view, t, sums, <const double *>nans, b, row, stop)
        return
    t.trees.kept = True
    sum_down(bands, t, src, b, row, stop)
    t.trees.kept = t.trees.counts = False
    sum_along(<acc_t *>nans, t, b, rows)
    divide_rows_of_some(y, view, t, sums, <const acc_t *>nans, b, row, stop)


cdef void divide_rows_of_some(char *y, const View *view, PairTile *t, acc_t *sums,
                              const count_t *nans, const Block *b, Py_ssize_t row,
                              Py_ssize_t stop) noexcept nogil:
    """Divide some rows of sums by the taps of their windows that are no NaN."""
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef Py_ssize_t n = b.tile.channels, width = b.tile.cols * n, r, c, rows, first
    cdef count_t *by = <count_t *>(doubles(a, b.scratch, DIVISORS) + 3 * PAIR_SLOTS * b.tile.cols)
    cdef count_t *taps = by + b.tile.cols
    cdef divisors_t d
    for r in range(row, stop):
        rows = real_taps(&p.rows, r, &first) * b.slabs
        set_divisors(&d, b, r)
        if rows != t.taps or d.divisor != t.by:
            t.taps, t.by = rows, d.divisor
            for c in range(b.tile.cols):
                taps[c] = <count_t>(rows * real_taps(&p.cols, b.tile.col + c, &first))
                by[c] = <count_t>(d.divisor * (d.counts[c] if d.counts != NULL else 1))
        if n == 1:
            divide_some(sums, nans, taps, by, False, a.divisor != 0, width)
        else:
            for c in range(b.tile.cols):
                divide_some(sums + c * n, nans + c * n, taps + c, by + c, True, a.divisor != 0, n)
        store_row(y, view, sums, b)
        y += view.row * dtype_bytes[a.result]
        sums += width
        nans += width


cdef bint roll_plane(char *y, const View *view, PairTile *t, const real *src, const Block *b,
                     const acc_t *tag) noexcept nogil:
    """Pool one plane of a tile by rows of pixels. Return False if a mean may be wrong.

    That is so if there is no loop for these windows, too.
    """
    cdef const Average *a = b.average
    cdef acc_t *sums = <acc_t *>doubles(a, b.scratch, HIGH)
    cdef bint in_place = a.result == F32 or a.result == F64
    cdef Py_ssize_t n = b.tile.channels, r
    cdef PairDivisors d
    fp_clear()
    for r in range(b.tile.rows):
        set_pair_divisors(&d, t, b, b.tile.row + r, tag)
        if d.high == NULL or not roll_row(y if in_place else <char *>sums,
                                          view.col if in_place else n, t, src, b,
                                          b.tile.row + r, &d, tag):
            return False
        if not in_place:
            store_row(y, view, sums, b)
        y += view.row * dtype_bytes[a.result]
    return not fp_unsure()


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
    cdef PairDivisors d
    if t.rolls and roll_plane(y, view, t, src, b, tag):
        return
    while done < tile.rows:
        stop = imin(tile.rows, done + a.block_rows)
        t.nans = False
        sum_down(bands, t, src, b, tile.row + done, tile.row + stop)
        r = done
        if t.nans:
            average_without_nans(y + done * view.row * size, view, t, src, b,
                                 tile.row + done, tile.row + stop, tag)
            r = stop
        while r < stop:
            last = same_divisors(b, r, stop)
            set_pair_divisors(&d, t, b, tile.row + r, tag)
            begin_pairs(&pairs, sums, tile.cols * n, last - r, 0)
            pairs.step = pairs.last_step = a.band
            pairs.taps[0] = first_band(t, b, <const acc_t *>bands) + (r - done) * a.band
            if in_place:
                pairs.to, pairs.pitch = y + r * view.row * size, view.row
            add_along(&pairs, b, &d, tag)
            if not in_place:
                for i in range(r, last):
                    store_row(y + i * view.row * size, view, sums + (i - r) * tile.cols * n, b)
            r = last
        done = stop


cdef void average_whole_planes(const View *y, PairTile *t, const real *src, const Block *b,
                               const acc_t *tag) noexcept nogil:
    """Pool planes of one window each: their columns are added up as rows, next to one another."""
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t cols = tile.col_hi - tile.col_lo, plane = 0, count, i
    cdef bint spaced = evenly_spaced(p, b.x) and evenly_spaced(p, y)
    cdef acc_t *bands = <acc_t *>doubles(a, b.scratch, COLUMNS)
    cdef acc_t *columns = <acc_t *>doubles(a, b.scratch, PREFIX)
    cdef acc_t *means = <acc_t *>doubles(a, b.scratch, HIGH)
    cdef acc_t *sums                        # (not divided in place, because vectors overlap)
    cdef acc_t *parts = <acc_t *>doubles(a, b.scratch, DIGITS)
    cdef const real *at
    cdef char *to
    cdef PairDivisors d
    cdef pairs_of_t one
    cdef Trees trees = t.trees
    trees.count, trees.cols, trees.direct = 1, 1, True
    trees.ignores = trees.counts = False
    set_pair_divisors(&d, t, b, tile.row, tag)
    while plane < tile.planes:
        count = neighbours(b, plane, imin(a.block, tile.planes - plane), spaced)
        at = src + input_offset(p, b.x, tile, plane)
        if not add_small_planes(bands, t, at, count, b):
            for i in range(count):
                sum_down(bands + i * a.band, t, at + i * b.x.channel, b, tile.row, tile.row + 1)
        transpose(columns, count, bands + t.left, a.band, count, cols, sizeof(acc_t))
        set_pair_axis(&trees.axes[0], &p.cols, tile.col, count)
        trees.axes[0].base = count * (window_start(&p.cols, tile.col) - tile.col_lo
                                      + trees.axes[0].lo * p.cols.dilation)
        trees.n = trees.col = count
        sums = columns + cols * count
        if not add_tree(sums, &trees, 0, 0, trees.axes[0].taps, <const acc_t *>columns, parts):
            fill(sums, count, <acc_t>0)
        begin_pairs(&one, means, 0, 1, count)
        one.count, one.taps[0] = 1, sums
        add_divided(&one, &d, 0, b, tag)
        to = y.data + output_offset(p, y, tile, plane) * dtype_bytes[a.result]
        if y.channel == 1:
            store_means(to, means, count, a.result)
        else:
            for i in range(count):
                store_means(to + i * y.channel * dtype_bytes[a.result], means + i, 1, a.result)
        plane += count


cdef bint add_small_planes(acc_t *bands, const PairTile *t, const real *src, Py_ssize_t planes,
                           const Block *b) noexcept nogil:
    """Set the sums down the columns of planes of few rows. Return False if they have more."""
    cdef const Window *w = &b.average.frame.problem.rows
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t k
    cdef pairs_of_t pairs
    if (not t.trees.direct or t.trees.col != 1 or w.irregular or w.kernel > MOST_LEAF
            or not w.inner_lo <= tile.row < w.inner_hi or not t.flat):
        return False
    begin_pairs(&pairs, bands + t.left, b.average.band, planes, tile.col_hi - tile.col_lo)
    pairs.count, pairs.step, pairs.last_step = <int>w.kernel, b.x.channel, b.x.channel
    pairs.has_room = True
    for k in range(w.kernel):
        pairs.taps[k] = src + (window_start(w, tile.row) + k * w.dilation - tile.row_lo) * b.x.row
    add_in_pairs(&pairs, bands)
    return True


cdef void average_planes_pairwise(const View *y, const real *src, Block *b,
                                  const acc_t *tag) noexcept nogil:
    """Pool the planes of a tile."""
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef PairTile t
    cdef Py_ssize_t plane
    begin_pairwise(&t, b, src, tag)
    if a.whole:
        average_whole_planes(y, &t, src, b, tag)
        return
    for plane in range(b.tile.planes):
        average_pairwise(y.data + output_offset(p, y, b.tile, plane)
                         * dtype_bytes[b.average.result], y, &t,
                         src + input_offset(p, b.x, b.tile, plane), b, tag)
