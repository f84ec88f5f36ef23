# Sums of windows, by passes: trees down the columns (trees.pxi, tall_windows.pxi), then a tree over
# the columns of each window (along.pxi). No sum is shared that has another tree, so the order of
# additions is that of numerics="pairwise" (docs/averages.md), whoever asks for the sums.
#
# Takes:   all windows; if additions are in order, in_order.pxi makes the sums
# Reads:   elements in place if they are of the type of sums; others are converted as they are
#          added, or become rows first (ROWS); whole planes of bytes are added at once
# Scratch: sums down the columns of some rows of windows, with margins of 0 (COLUMNS); parts of long
#          windows and of strides (SPLIT), and of tall ones (TALL); zeros (NO_ROW), parts of trees
#          (PARTS)
# Wins:    no other strategy takes them

cdef enum:
    MOST_TIMES = 3                      # an element is converted for each of its windows


cdef struct Passes:                     # what the planes of a tile have in common
    Trees trees
    Trees down                          # of rows that are lines
    bint flat                           # have windows one tap along each leading axis?
    bint nans                           # was a NaN left out?
    Py_ssize_t left                     # elements of a band before its first column
    bint has_margins                    # are these filled, and those after its last one?
    Py_ssize_t line                     # elements from one converted row to the next
    bint one_run                        # are rows neighbours, which become lines as one?
    bint converts                       # all rows under some rows of windows become lines, once
    bint tall                           # tall_windows.pxi
    bint bytes                          # rows enter and leave sums (byte_rows.pxi)
    bint shorts                         # these are added along rows
    byte_divisors_t divisors[BYTE_SLOTS]    # of these, of rows at the edges and inside
    const char *kept                    # the plane whose sums are kept, the sums, and their rows
    const char *sums
    Py_ssize_t lo, hi
    bint pixels                         # squares.pxi


cdef struct Part:                       # of a tile, which is pooled at once
    Py_ssize_t plane, planes            # several if they have one window each
    Py_ssize_t row, stop                # rows of outputs


cdef void begin_passes(Passes *t, const Block *b, part_t *part, int word,
                       const acc_t *tag) noexcept nogil:
    """Set what the planes of a tile have in common.

    `part` and `word` (if not -1) say what of each element to add.
    """
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t lanes = VEC_BYTES // sizeof(acc_t)
    cdef int code = a.frame.problem.code
    cdef const Window *rows = &a.frame.problem.rows
    cdef Trees *trees = &t.trees
    cdef int slot
    trees.count = <int>a.frame.problem.leads + 1
    trees.n, trees.cols, trees.size, trees.col = n, cols, a.frame.problem.size, b.x.col
    trees.planes, trees.plane, trees.band = 1, 0, 0
    trees.ignores, trees.counts, trees.kept = b.ignores, False, False
    trees.part, trees.word = part, word
    if acc_t is float:
        trees.convert, trees.direct = to_floats_of(code), code == F32
    else:
        trees.convert = to_words_of(code) if word >= 0 else to_doubles_of(code)
        trees.direct = code == F64 and part == NULL
    trees.direct &= not b.ignores
    trees.direct &= trees.col == n * trees.size or cols <= 1 or n >= lanes
    trees.zeros = <char *>doubles(a, b.scratch, NO_ROW)
    trees.lines, trees.pitch = <char *>doubles(a, b.scratch, ROWS), a.pitch
    set_lead_axes(trees, b)
    t.flat = is_flat(trees)
    trees.add = NULL
    if t.flat and not trees.direct and not b.ignores and part == NULL and word < 0:
        if trees.col == n * trees.size or cols <= 1 or n >= lanes:
            trees.add = add_converted_of(code, acc_t is double)
    t.converts = a.lines > 0 and not (trees.direct and t.flat)
    if trees.add != NULL and not rows.irregular:
        t.converts &= rows.out > 1 and (a.block_rows * rows.kernel > MOST_TIMES * a.lines
                                        or a.tall > 0)
    t.pixels = False
    t.bytes, t.kept = a.byte_rows and t.flat, NULL
    if b.quantization != NULL and rows.kernel <= MOST_LEAF and a.small_floats:
        t.bytes = False                     # (all of their sums become floats)
    t.shorts = t.bytes and a.shorts > 0 and trees.col == n * trees.size
    for slot in range(BYTE_SLOTS):
        t.divisors[slot].by = -1
    t.tall = a.tall > 0 and ((trees.direct and t.flat) or t.converts)
    begin_trees(&t.down, n, a.pitch, tag)   # (a copy of all axes would take 0.1 us)
    t.down.cols, t.down.zeros = cols, trees.zeros
    trees.found = &t.nans
    # (The stride of one row, or of one channel, may be 0.)
    t.one_run = trees.col == n * trees.size and (
        tile.row_hi - tile.row_lo <= 1 or b.x.row == cols * trees.col)
    t.line = cols * n if t.one_run else round_up(cols * n, lanes)
    t.left = 0
    fill(<acc_t *>trees.zeros, a.pitch, <acc_t>0)
    if not (a.walks or a.sequential):
        t.left = round_up(tile.left * n, VEC_BYTES // 2)    # (vectors begin at the first column)
    t.has_margins = a.walks or a.sequential


cdef void begin_tile(Passes *t, const char *src, Block *b, const acc_t *tag) noexcept nogil:
    """Set what the planes of a tile have in common. If none has a NaN, no NaN is left out."""
    cdef const Problem *p = &b.average.frame.problem
    cdef Part part
    b.ignores = b.average.ignore_nan
    begin_passes(t, b, NULL, -1, tag)
    part.planes, part.row, part.stop, part.plane = 1, 0, b.tile.rows, 0
    while b.ignores and part.plane < b.tile.planes:
        if note_part(NULL, t, src + input_offset(p, b.x, b.tile, part.plane), b, &part):
            return
        part.plane += 1
    if b.ignores:
        b.ignores = False
        begin_passes(t, b, NULL, -1, tag)


cdef bint is_flat(const Trees *trees) noexcept nogil:
    """Does a window have one tap along each leading axis?"""
    cdef int a
    for a in range(trees.count - 1):
        if trees.axes[a].taps > 1 or trees.axes[a].lo == trees.axes[a].hi:
            return False
    return True


cdef void add_down(acc_t *bands, Trees *trees, bint flat, bint tall, const char *src,
                   Py_ssize_t pitch, const Block *b, Py_ssize_t row,
                   Py_ssize_t stop) noexcept nogil:
    """Set the sums down the columns of some rows of windows.

    `src` is the first element under the tile, `pitch` the bytes from one row to the next.
    """
    cdef const Window *w = &b.average.frame.problem.rows
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t cols = tile.col_hi - tile.col_lo, n = tile.channels, c, k, count
    cdef Py_ssize_t most = imax(1, trees.pitch // n)    # columns at a time
    cdef Py_ssize_t size = sizeof(acc_t)
    cdef int last = trees.count - 1
    cdef PairAxis *axis = &trees.axes[last]
    cdef acc_t *parts = <acc_t *>doubles(b.average, b.scratch, PARTS)
    cdef bint close = trees.col == n * trees.size       # (columns are neighbours)
    cdef bint at_once = (flat and (trees.direct or trees.add != NULL) and not w.irregular
                         and w.kernel <= MOST_LEAF and trees.planes == 1)
    cdef pairs_of_t pairs
    if tall:
        add_tall(bands, <const acc_t *>src, pitch // size, trees.col // size, b, row, stop)
        return
    if (trees.direct or trees.add != NULL) and not close:
        most = 1
    while row < stop:
        set_pair_axis(axis, w, row, pitch)
        axis.base = (window_start(w, row) + axis.lo * w.dilation - tile.row_lo) * pitch
        if at_once and w.inner_lo <= row < w.inner_hi:
            count = imin(stop, w.inner_hi) - row
            begin_pairs(&pairs, bands, b.average.band, count, n * (cols if close else 1))
            pairs.step = pairs.last_step = w.stride * (pitch // trees.size)
            pairs.count, pairs.has_room = <int>w.kernel, True
            for c in range(1 if close else cols):
                for k in range(w.kernel):
                    pairs.taps[k] = src + axis.base + k * axis.step + c * trees.col
                pairs.to = bands + c * n
                if trees.direct:
                    add_in_pairs(&pairs, bands)
                else:
                    trees.add(&pairs)
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


cdef void add_down_lines(acc_t *bands, Passes *t, const char *src, const Block *b,
                         Py_ssize_t row, Py_ssize_t stop) noexcept nogil:
    """Set the sums down the columns of rows of lines: converted, or added along leading axes."""
    cdef const Window *w = &b.average.frame.problem.rows
    cdef const Tile *tile = b.tile
    cdef Trees *trees = &t.trees
    cdef Py_ssize_t lo = imax(0, window_start(w, row)), n = tile.channels, r, c, rows
    cdef Py_ssize_t hi = imin(w.size, window_stop(w, stop - 1)), cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t most = imax(1, trees.pitch // n), pitch = t.line * sizeof(acc_t)
    cdef int last = trees.count - 2
    cdef acc_t *lines = <acc_t *>trees.lines + 2 * MOST_LEAF * trees.pitch
    cdef acc_t *nans = lines + b.average.lines * t.line
    cdef acc_t *parts = <acc_t *>doubles(b.average, b.scratch, PARTS)
    cdef const char *at
    if trees.direct and trees.col != n * trees.size:
        most = 1
    rows = imax(0, hi - lo)
    if t.one_run:
        rows, cols = 1, cols * rows
    if t.flat:
        trees.cols = cols
        for r in range(0 if trees.kept else rows):
            converted(lines + r * t.line, nans + r * t.line, trees,
                      src + (lo + r - tile.row_lo) * b.x.row)
        if trees.counts:
            lines = nans
    else:
        for r in range(rows):
            at = src + (lo + r - tile.row_lo) * b.x.row
            c = 0
            while c < cols:
                trees.cols = imin(most, cols - c)
                if not add_tree(lines + r * t.line + c * n, trees, last, 0, trees.axes[last].taps,
                                at + c * trees.col, parts):
                    fill(lines + r * t.line + c * n, trees.cols * n, <acc_t>0)
                c += trees.cols
    add_down(bands, &t.down, True, t.tall, <const char *>lines - (lo - tile.row_lo) * pitch, pitch,
             b, row, stop)


cdef void clear_margins(char *band, Passes *t, const Block *b, Py_ssize_t size) noexcept nogil:
    """Set what bands have of padding, at both ends, to 0. Their elements have `size` bytes."""
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, width = (tile.col_hi - tile.col_lo) * n, r
    cdef Py_ssize_t right = ((tile.span - tile.left) * n - width) * size + VEC_BYTES
    for r in range(imin(b.average.block_rows, tile.rows)):
        memset(band, 0, t.left * size)
        memset(band + (t.left + width) * size, 0, right)
        band += b.average.band * size
    t.has_margins = True


cdef void sum_down(acc_t *bands, Passes *t, const char *src, const Block *b, Py_ssize_t row,
                   Py_ssize_t stop) noexcept nogil:
    """Set the sums down the columns of some rows of windows. `src` begins the plane of the tile."""
    cdef Py_ssize_t size = 2 * t.trees.size if t.shorts else sizeof(acc_t)
    if not t.has_margins:
        clear_margins(<char *>bands, t, b, size)
    if b.average.sequential:
        sum_in_order(bands, t, src, b, row, stop)
    elif t.bytes:
        add_down_bytes(<char *>bands + t.left * size, t, src, b, row, stop, size)
    elif t.converts:
        add_down_lines(bands + t.left, t, src, b, row, stop)
    else:
        add_down(bands + t.left, &t.trees, t.flat, t.tall, src, b.x.row, b, row, stop)
    fill_beyond(<char *>bands + t.left * size, b.average.band * size, &b.average.frame.problem,
                b.tile, stop - row, b.tile.channels * size, NULL)


cdef void sum_along(acc_t *sums, const Passes *t, const Block *b,
                    Py_ssize_t rows) noexcept nogil:
    """Set the sums of some rows of windows, not divided."""
    cdef const acc_t *bands = <const acc_t *>doubles(b.average, b.scratch, COLUMNS)
    cdef pairs_of_t pairs
    begin_pairs(&pairs, sums, b.tile.cols * b.tile.channels, rows, 0)
    pairs.step = pairs.last_step = b.average.band
    pairs.taps[0] = first_band(t, b, bands)
    add_along(&pairs, b, NULL, bands)


cdef inline const acc_t *first_band(const Passes *t, const Block *b,
                                    const acc_t *bands) noexcept nogil:
    """Return where the margin of the first band begins, or its first column if it has none."""
    if b.average.walks or b.average.sequential:
        return bands
    return bands + t.left - b.tile.left * b.tile.channels


cdef void count_nans(acc_t *nans, Passes *t, const char *src, const Block *b, Py_ssize_t row,
                     Py_ssize_t stop, bint kept) noexcept nogil:
    """Set how many NaN each window of some rows has. `kept`: their lines are converted."""
    t.trees.counts, t.trees.kept = True, kept
    sum_down(<acc_t *>doubles(b.average, b.scratch, COLUMNS), t, src, b, row, stop)
    t.trees.counts = t.trees.kept = False
    sum_along(nans, t, b, stop - row)


cdef void sum_part(acc_t *sums, Passes *t, const char *src, const Block *b,
                   const Part *part) noexcept nogil:
    """Set the sums of some outputs. `src` is the first element of their plane."""
    if b.average.whole:
        memcpy(sums, sum_whole_planes(t, src, b, part.planes, <const acc_t *>sums),
               part.planes * sizeof(acc_t))
        return
    if acc_t is double:
        if t.pixels:
            sum_pixels(sums, t, src, b, part.row, part.stop)
            return
    sum_down(<acc_t *>doubles(b.average, b.scratch, COLUMNS), t, src, b, b.tile.row + part.row,
             b.tile.row + part.stop)
    sum_along(sums, t, b, part.stop - part.row)
