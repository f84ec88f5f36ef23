# Sums as other libraries make them: one rounded addition per tap, in row-major order. Padding may be
# added, as 0: sums begin with 0, and no addition makes -0 of that.
#
# Takes:   windows with numerics="sequential"
# Reads:   pixels of a vector at least in place, if they are of the type of sums; others, and rows of
#          single columns, as lines, with margins of 0, and split by the stride
# Scratch: two rows, and lines that rows of windows share (ROWS); sums (COLUMNS)
# Wins:    no other strategy takes them

cdef enum:
    TAPS_AT_ONCE = 64       # of all windows of a run
    LINES_AT_ONCE = 64


cdef struct Run:                        # how rows of windows are added
    bint pixels                         # the taps of each output are told apart
    bint in_place
    Py_ssize_t stride, col              # of columns in a line; elements from one to the next
    Py_ssize_t part                     # elements of every `stride`-th column, with room


cdef void begin_run(Run *run, const Passes *t, const Block *b, const acc_t *tag) noexcept nogil:
    cdef const Window *w = &b.average.frame.problem.cols
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, lanes = VEC_BYTES // sizeof(acc_t)
    run.pixels = b.average.walks or n >= lanes
    run.stride = 1 if run.pixels or tile.cols == 1 else w.stride
    run.part = ceil_div(tile.span, run.stride) * n + lanes
    run.in_place = t.trees.direct and (run.pixels or (
        run.stride == 1 and tile.span == tile.col_hi - tile.col_lo and t.trees.col == n * t.trees.size))
    run.col = t.trees.col // t.trees.size if run.in_place and run.pixels else n


cdef void set_line(acc_t *line, const Run *run, const Trees *trees, const char *src,
                   const Block *b) noexcept nogil:
    """Set a line to a row of the input, or to 1 for each NaN if these are counted."""
    cdef const Tile *tile = b.tile
    cdef const Window *w = &b.average.frame.problem.cols
    cdef Py_ssize_t n = tile.channels, left = 0 if run.pixels else tile.left * n, t, cols
    cdef Py_ssize_t width = trees.cols * n, rows
    cdef acc_t *other = <acc_t *>trees.lines
    cdef acc_t *row = line if run.stride == 1 else other + b.average.line
    cdef pairs_of_t pairs
    if trees.counts:
        converted(other + left, row + left, trees, src)
    else:
        converted(row + left, other + left, trees, src)
    if run.pixels:
        return
    fill(row, left, <acc_t>0)
    fill(row + left + width, tile.span * n - left - width + VEC_BYTES // sizeof(acc_t), <acc_t>0)
    if run.stride == 1:
        return
    cols = imin(run.stride, w.extent)
    if n > 1:
        split_pixels(<char *>line, run.part * sizeof(acc_t), <char *>row, n * sizeof(acc_t),
                     tile.span, run.stride, cols)
    elif run.stride == 2:
        begin_pairs(&pairs, line, run.part, cols, run.part)
        pairs.count, pairs.stride, pairs.taps[0], pairs.step, pairs.last_step = 1, 2, row, 1, 1
        add_in_pairs(&pairs, line)
    else:
        # (Four columns at least: fewer use no vectors.)
        rows = (tile.span - cols) // run.stride + 1
        transpose(line, run.part, row, run.stride, rows, imax(4, cols), sizeof(acc_t))
        for t in range(imin(cols, tile.span - rows * run.stride)):
            line[t * run.part + rows] = row[rows * run.stride + t]


cdef void add_rows(acc_t *sums, const Run *run, const acc_t *const *rows, Py_ssize_t count,
                   const Block *b) noexcept nogil:
    """Add the taps along some rows to the sums of a row of windows."""
    cdef const Window *w = &b.average.frame.problem.cols
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, c = 0, outputs = 1, width = tile.cols * n, at = 0, r, t
    cdef Py_ssize_t taps = w.kernel, phase, i, step = w.stride * run.col
    cdef const acc_t *some[TAPS_AT_ONCE]
    cdef int k
    if not run.in_place:
        width = round_up(width, VEC_BYTES // sizeof(acc_t))
    while c < tile.cols:
        if run.pixels:
            width, outputs = n, 1
            taps = real_taps(w, tile.col + c, &at)
            if not w.irregular and w.inner_lo <= tile.col + c < w.inner_hi:
                outputs = imin(tile.cols, w.inner_hi - tile.col) - c
            at = (at - tile.col_lo) * run.col
        k = 0
        for r in range(count):
            phase, i = 0, at
            for t in range(taps):
                some[k] = rows[r] + phase * run.part + i
                k += 1
                if k == TAPS_AT_ONCE:
                    add_taps(sums + c * n, some, k, width, outputs, step)
                    k = 0
                i += w.dilation // run.stride * run.col
                phase += w.dilation % run.stride
                if phase >= run.stride:
                    phase, i = phase - run.stride, i + run.col
        add_taps(sums + c * n, some, k, width, outputs, step)
        c += outputs if run.pixels else tile.cols


cdef void sum_in_order(acc_t *sums, Passes *t, const char *src, const Block *b, Py_ssize_t row,
                       Py_ssize_t stop) noexcept nogil:
    """Set the sums of some rows of windows. Lines that they share are kept."""
    cdef const Average *a = b.average
    cdef const Window *w = &a.frame.problem.rows
    cdef const Tile *tile = b.tile
    cdef Trees *trees = &t.trees
    cdef acc_t *lines = <acc_t *>trees.lines + 2 * a.line
    cdef const acc_t *rows[LINES_AT_ONCE]
    cdef const char *at
    cdef Py_ssize_t s, k, r, i, first, count, slot, known
    cdef Py_ssize_t most
    cdef bint keeps = not trees.ignores and w.dilation == 1 and b.slabs * w.kernel <= a.lines - 2
    cdef Run run
    begin_run(&run, t, b, sums)
    most = LINES_AT_ONCE if run.in_place else imin(LINES_AT_ONCE, a.lines - 2)
    trees.cols = tile.col_hi - tile.col_lo
    fill(sums, (stop - row) * a.band, <acc_t>0)
    while row < stop:
        count = real_taps(w, row, &first)
        known = t.hi if keeps and t.kept == src else 0
        i = 0
        for s in range(b.slabs):
            for k in range(count):
                r = first + k * w.dilation
                at = src + b.offsets[s] + (r - tile.row_lo) * b.x.row
                if run.in_place:
                    rows[i] = <const acc_t *>at
                else:
                    slot = s * w.kernel + r % w.kernel if keeps else i
                    rows[i] = lines + slot * a.line
                    if r >= known:
                        set_line(lines + slot * a.line, &run, trees, at, b)
                i += 1
                if i == most:
                    add_rows(sums, &run, rows, i, b)
                    i = 0
        if i:
            add_rows(sums, &run, rows, i, b)
        t.kept, t.hi = src, first + count
        sums += a.band
        row += 1
