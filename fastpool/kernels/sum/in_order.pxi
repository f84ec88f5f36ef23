# Sums as other libraries make them: one rounded addition per tap, in row-major order. Padding may
# be added, as 0: sums begin with 0, and no addition makes -0 of that.
#
# Takes:   windows with numerics="sequential"
# Reads:   elements of the type of sums in place: pixels of some vectors, and rows without padding
#          at a stride of 1. Others become lines, with margins of 0, which are split by the stride
# Scratch: lines, one more, and converted rows (ROWS); sums (COLUMNS)
# Wins:    no other strategy takes them

cdef enum:
    TAPS_AT_ONCE = 64
    LINES_AT_ONCE = 64
    SLIDING_PIXEL = 5          # vectors of a pixel in place, if windows slide: others are one row


cdef struct Run:                        # how the windows of a tile are added
    bint pixels                         # the taps of each output are told apart
    bint margins                        # lines have margins, or parts
    bint in_place
    Py_ssize_t stride, col              # of columns in a line; elements from one to the next
    Py_ssize_t part                     # elements of every `stride`-th column, with room
    Py_ssize_t line                     # elements from one line to the next
    Py_ssize_t same                     # rows of outputs that are added at once


cdef void begin_run(Run *run, const Passes *t, const Block *b, const acc_t *tag) noexcept nogil:
    cdef const Tile *tile = b.tile
    cdef const Trees *trees = &t.trees
    cdef Py_ssize_t n = tile.channels, lanes = VEC_BYTES // sizeof(acc_t)
    cdef Py_ssize_t stride = b.average.frame.problem.cols.stride
    run.pixels = b.average.walks or n >= (lanes if stride > 1 else SLIDING_PIXEL * lanes)
    run.stride = 1 if run.pixels or tile.cols == 1 else stride
    run.part = ceil_div(tile.span, run.stride) * n + lanes
    run.margins = not run.pixels and (run.stride > 1 or tile.span > trees.cols)
    run.in_place = trees.direct and not run.margins and (run.pixels
                                                         or trees.col == n * trees.size)
    run.line = b.average.line if run.margins else trees.cols * n
    run.col = n
    if run.in_place:
        run.line = b.x.row // trees.size
        if run.pixels:
            run.col = trees.col // trees.size


cdef void set_lines(acc_t *lines, const Run *run, Trees *trees, const char *src, Py_ssize_t rows,
                    const Block *b) noexcept nogil:
    """Set lines to rows of the input, or to 1 for each NaN if these are counted."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, cols = trees.cols, width = cols * n, pitch = width, r, t
    cdef Py_ssize_t extent = imin(run.stride, a.frame.problem.cols.extent), count
    cdef acc_t *other = <acc_t *>trees.lines + (a.lines - 1) * a.line
    cdef acc_t *to = other + a.line if run.margins else lines
    cdef const acc_t *line = to
    if trees.direct and run.margins and trees.col == n * trees.size:
        line, pitch = <const acc_t *>src, b.x.row // trees.size
    elif not trees.ignores and b.x.row == cols * trees.col:     # neighbours
        trees.cols = rows * cols
        converted(to, other, trees, src)
        trees.cols = cols
    else:
        for r in range(rows):
            if trees.counts:
                converted(other, to + r * width, trees, src + r * b.x.row)
            else:
                converted(to + r * width, other, trees, src + r * b.x.row)
    if not run.margins:
        return
    if run.stride == 1 or (run.stride == 2 and n == 1):
        copy_lines(lines, a.line, run.part, line, pitch, rows, tile.left * n, width, tile.span * n,
                   <int>run.stride)
        return
    for r in range(rows):
        copy_lines(other, 0, 0, line + r * pitch, 0, 1, tile.left * n, width, tile.span * n, 1)
        if n > 1:
            split_pixels(<char *>lines, run.part * sizeof(acc_t), <const char *>other,
                         n * sizeof(acc_t), tile.span, run.stride, extent)
        else:
            # (Four columns at least: fewer use no vectors.)
            count = (tile.span - extent) // run.stride + 1
            transpose(lines, run.part, other, run.stride, count, imax(4, extent), sizeof(acc_t))
            for t in range(imin(extent, tile.span - count * run.stride)):
                lines[t * run.part + count] = other[count * run.stride + t]
        lines += a.line


cdef void add_rows(acc_t *sums, const Run *run, const acc_t *const *rows, Py_ssize_t count,
                   bint begins, const Block *b) noexcept nogil:
    """Add the taps along some rows to the sums of rows of windows, or set these if it `begins`."""
    cdef const Average *a = b.average
    cdef const Window *w = &a.frame.problem.cols
    cdef Py_ssize_t n = b.tile.channels, cols = b.tile.cols, c = 0, taps = w.kernel, at = 0
    cdef Py_ssize_t phase, i, r, t
    cdef const acc_t *some[TAPS_AT_ONCE]
    cdef int k
    cdef taps_t of
    of.taps, of.n, of.outputs = <void *>some, cols * n, run.same
    of.step, of.to_step = a.frame.problem.rows.stride * run.line, a.band
    if run.pixels:
        of.n, of.step, of.to_step = n, w.stride * run.col, n
    while c < cols:
        if run.pixels:
            of.outputs, taps = 1, real_taps(w, b.tile.col + c, &at)
            if not w.irregular and w.inner_lo <= b.tile.col + c < w.inner_hi:
                of.outputs = imin(cols, w.inner_hi - b.tile.col) - c
            at = (at - b.tile.col_lo) * run.col
        of.begins, k = begins, 0
        for r in range(count):
            phase, i = 0, at
            for t in range(taps):
                if k == TAPS_AT_ONCE:
                    add_taps(sums + c * n, &of, k)
                    of.begins, k = False, 0
                some[k] = rows[r] + phase * run.part + i
                k += 1
                i += w.dilation // run.stride * run.col
                phase += w.dilation % run.stride
                if phase >= run.stride:
                    phase, i = phase - run.stride, i + run.col
        add_taps(sums + c * n, &of, k)
        c += of.outputs if run.pixels else cols


cdef void sum_in_order(acc_t *sums, Passes *t, const char *src, const Block *b, Py_ssize_t row,
                       Py_ssize_t stop) noexcept nogil:
    """Set the sums of some rows of windows."""
    cdef const Average *a = b.average
    cdef const Window *w = &a.frame.problem.rows
    cdef Trees *trees = &t.trees
    cdef Py_ssize_t lo = imax(0, window_start(w, row)), hi = imin(w.size, window_stop(w, stop - 1))
    cdef Py_ssize_t under = imax(0, hi - lo), most = LINES_AT_ONCE, s, k, i, first, count
    cdef acc_t *lines = <acc_t *>trees.lines
    cdef const acc_t *rows[LINES_AT_ONCE]
    cdef const char *at
    cdef bint fit = b.slabs * under < a.lines   # all lines at once
    cdef bint begins
    cdef Run run
    trees.cols = b.tile.col_hi - b.tile.col_lo
    begin_run(&run, t, b, sums)
    if not (run.in_place or fit):
        most = imin(most, a.lines - 1)
    for s in range(b.slabs if fit and not run.in_place else 0):
        set_lines(lines + s * under * run.line, &run, trees,
                  src + b.offsets[s] + (lo - b.tile.row_lo) * b.x.row, under, b)
    while row < stop:
        count = real_taps(w, row, &first)
        run.same, i, begins = 1, 0, True
        if (fit or run.in_place) and not run.pixels and w.inner_lo <= row < w.inner_hi:
            if not w.irregular:
                run.same = imin(stop, w.inner_hi) - row
        for s in range(b.slabs):
            for k in range(count):
                at = src + b.offsets[s] + (first + k * w.dilation - b.tile.row_lo) * b.x.row
                if run.in_place:
                    rows[i] = <const acc_t *>at
                elif fit:
                    rows[i] = lines + (s * under + first + k * w.dilation - lo) * run.line
                else:
                    rows[i] = lines + i * run.line
                    set_lines(lines + i * run.line, &run, trees, at, 1, b)
                i += 1
                if i == most:
                    add_rows(sums, &run, rows, i, begins, b)
                    i, begins = 0, False
        if i or begins:
            add_rows(sums, &run, rows, i, begins, b)
        sums += run.same * a.band
        row += run.same
