# Sums of planes of one window each: columns are added up, and become rows next to one another.

cdef enum:
    BLOCK_COLUMNS = 128                 # that stay in the first-level cache
    FULL_ROW = 64                       # sums that are added with one call, if halves are added
    SOME_ROWS = 16                      # of a block, which stays in that cache, too
    SOME_PLANES = 8                     # from which trees of rows take less time


cdef struct Rows:                       # whose columns are added
    Trees trees                         # how elements become sums
    const char *src
    Py_ssize_t channel                  # bytes from one plane to the next
    Py_ssize_t planes, cols
    Py_ssize_t halves                   # of the tree of a row; if planes are few, they are rows
    Py_ssize_t offsets[FULL_ROW]        # columns of the halves of a row
    Py_ssize_t pitch                    # from one of all halves to the next, if always the same
    void *block                         # of columns of some rows as sums


cdef acc_t *sum_whole_planes(Passes *t, const char *src, const Block *b,
                             Py_ssize_t planes, const acc_t *tag) noexcept nogil:
    """Return the sums of planes of one window each, in scratch.

    Their columns are added up as rows, next to one another. `src` is the first plane.
    """
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t cols = tile.col_hi - tile.col_lo, size, i, most = 0, plane = 0, count
    cdef acc_t *lines = <acc_t *>t.trees.lines + 2 * MOST_LEAF * a.pitch
    cdef const char *at
    cdef Trees run, slabs, trees
    cdef acc_t *bands = <acc_t *>doubles(a, b.scratch, COLUMNS) + t.left
    cdef acc_t *columns = <acc_t *>doubles(a, b.scratch, SPLIT)
    cdef acc_t *sums = columns + cols * planes
    cdef acc_t *parts = <acc_t *>doubles(a, b.scratch, PARTS)
    cdef Py_ssize_t pitch = a.band, item = t.trees.size, lanes = VEC_BYTES // sizeof(acc_t)
    cdef bint room = True                   # for a vector after a band?
    cdef int last = t.trees.count - 2
    size = cols * (tile.row_hi - tile.row_lo)
    if sum_planes_of_bytes(columns, t, src, b, planes):
        return columns
    if a.signals:
        run = t.trees
        run.n, run.col = 1, item
        return sum_rows(&run, src, b.x.channel, planes, cols, b, tag)
    if not t.flat:
        most = begin_slabs(&slabs, t, size, planes, b, tag)
    elif (not t.trees.direct and t.one_run and (planes == 1 or b.x.channel == size * item)
            and (t.trees.add == NULL or cols < lanes)):
        most = a.lines * a.line // size
    if most:
        run = t.trees
        run.n, run.col = 1, item
    if p.rows.kernel == 1 and t.flat and t.trees.direct and b.x.col == item:
        bands, pitch = <acc_t *>src, b.x.channel // item if planes > 1 else cols
        plane, room = planes, False         # (rows are bands)
    while plane < planes:
        count = planes - plane
        at = src + plane * b.x.channel
        if most:                            # planes are converted, or slabs added, as one run
            count = imin(count, most)
            if not t.trees.direct:          # (no NaN is left out, so their half of lines is free)
                run.cols = count * b.slabs * size
                at = <const char *>converted(lines if t.flat else lines + a.lines * a.line, lines,
                                             &run, at)
            if not t.flat:
                slabs.planes = count
                add_tree(lines, &slabs, last, 0, slabs.axes[last].taps, at, parts)
            add_planes(bands + plane * a.band, &t.down, <const char *>lines, count,
                       cols * sizeof(acc_t), size * sizeof(acc_t), b)
        elif t.flat and (t.trees.direct or t.trees.add != NULL):
            add_planes(bands + plane * a.band, &t.trees, at, count, b.x.row, b.x.channel, b)
        else:
            for i in range(count):
                sum_down(bands + (plane + i) * a.band - t.left, t, at + i * b.x.channel, b,
                         tile.row, tile.row + 1)
        plane += count
    begin_trees(&trees, planes, t.trees.pitch, bands)
    trees.zeros = t.trees.zeros
    set_pair_axis(&trees.axes[0], &p.cols, tile.col, trees.col)
    if p.cols.dilation == 1 and trees.axes[0].hi - trees.axes[0].lo == trees.axes[0].taps:
        if cols > BLOCK_COLUMNS:
            begin_trees(&run, 1, a.pitch, bands)
            return sum_rows(&run, <const char *>bands, pitch * sizeof(acc_t), planes, cols, b, tag)
        if cols > MOST_LEAF and planes >= SOME_PLANES:
            add_row_trees(columns, bands, pitch, planes, cols, room)
            return columns
    i = cols
    if room:
        i = round_up(cols, lanes)
    transpose(columns, planes, bands, pitch, planes, i, sizeof(acc_t))
    trees.axes[0].base = trees.col * (window_start(&p.cols, tile.col) - tile.col_lo
                                      + trees.axes[0].lo * p.cols.dilation)
    if not add_tree(sums, &trees, 0, 0, trees.axes[0].taps, <const char *>columns, parts):
        fill(sums, planes, <acc_t>0)
    return sums


cdef Py_ssize_t begin_slabs(Trees *slabs, const Passes *t, Py_ssize_t size, Py_ssize_t planes,
                            const Block *b, const acc_t *tag) noexcept nogil:
    """Set trees over the leading axes of planes, whose slabs have `size` neighbouring elements.

    Return how many planes a call may add, 0 if slabs are not whole. If elements are converted
    first, planes are one run.
    """
    cdef const Average *a = b.average
    cdef Py_ssize_t room = a.lines * a.line, most = imin(room, t.trees.pitch) // size
    cdef int i
    slabs[0] = t.trees
    slabs.cols, slabs.plane, slabs.band = size, b.x.channel, size
    if not t.one_run or b.x.channel % slabs.size != 0:
        return 0
    for i in range(slabs.count - 1):
        if slabs.axes[i].hi - slabs.axes[i].lo < slabs.axes[i].taps:
            return 0
        slabs.axes[i].step = slabs.axes[i].step // slabs.size * sizeof(acc_t)
    if not slabs.direct:
        if not (takes_whole_planes(&a.frame.problem) and is_run(t, b)) or (
                planes > 1 and b.x.channel != b.slabs * size * slabs.size):
            return 0
        most = imin(most, room // (b.slabs * size))
        slabs.direct, slabs.size, slabs.col = True, sizeof(acc_t), sizeof(acc_t)
        slabs.plane = b.slabs * size * sizeof(acc_t)
    return most


cdef bint sum_planes_of_bytes(acc_t *sums, const Passes *t, const char *src, const Block *b,
                              Py_ssize_t planes) noexcept nogil:
    """Set the sums of planes of bytes, as integers, if their one window takes all of them.

    Return False if it does not, or if this would take longer.
    """
    cdef const Problem *p = &b.average.frame.problem
    cdef Py_ssize_t cols = p.cols.size, i, s
    cdef bint run
    if (p.code != I8 and p.code != U8) or not takes_whole_planes(p):
        return False
    run = is_run(t, b)
    # (A part of a vector takes 9 ns without masks: AVX2, 64x56x8 4 -> 30 us, x130 26 -> 34.)
    if not run and not (VEC_MASKS or cols % VEC_BYTES == 0 or cols >= 5 * VEC_BYTES):
        return False
    if not run and b.x.col != 1:
        return False
    for i in range(planes):
        if run:
            sums[i] = <acc_t>sum_of_bytes(src, b.slabs * p.rows.size * cols, p.code == I8)
        else:
            sums[i] = 0
            for s in range(b.slabs):
                sums[i] += <acc_t>sum_of_rows_of_bytes(src + b.offsets[s], cols, p.rows.size,
                                                       b.x.row, p.code == I8)
        src += b.x.channel
    return True


cdef bint is_run(const Passes *t, const Block *b) noexcept nogil:
    """Are the elements of each plane neighbours in memory?"""
    cdef const Problem *p = &b.average.frame.problem
    cdef Py_ssize_t s
    for s in range(b.slabs):
        if b.offsets[s] != s * p.rows.size * p.cols.size * t.trees.size:
            return False
    return t.one_run


cdef bint takes_whole_planes(const Problem *p) noexcept nogil:
    """Has the one window of a plane a tap for each element, and no others?"""
    cdef int i
    for i in range(p.leads):
        if not takes_whole(&p.lead[i]):
            return False
    return takes_whole(&p.rows) and takes_whole(&p.cols)


cdef inline bint takes_whole(const Window *w) noexcept nogil:
    """Has the only window of an axis a tap for each element, and no others?"""
    return (w.out == 1 and w.begin == 0 and w.kernel == w.size and w.dilation == 1
            and not w.irregular)


cdef acc_t *sum_rows(const Trees *trees, const char *src, Py_ssize_t channel, Py_ssize_t planes,
                     Py_ssize_t cols, const Block *b, const acc_t *tag) noexcept nogil:
    """Return the trees of the columns of rows, one of each plane. `trees` makes elements sums."""
    cdef acc_t *sums = <acc_t *>doubles(b.average, b.scratch, SPLIT)
    cdef Py_ssize_t i, size = cols
    cdef Rows rows
    rows.trees, rows.src, rows.channel, rows.planes = trees[0], src, channel, planes
    rows.cols, rows.halves, rows.block, rows.offsets[0] = cols, 1, sums + FULL_ROW, 0
    while size > BLOCK_COLUMNS and 2 * rows.halves * planes <= imin(FULL_ROW, b.average.pitch):
        size >>= 1
        i = rows.halves
        while i > 0:
            i -= 1
            rows.offsets[2 * i + 1] = rows.offsets[i] + size
            rows.offsets[2 * i] = rows.offsets[i]
        rows.halves *= 2
    rows.pitch = 0
    if planes == 1:
        channel = cols * trees.size
    if trees.direct and size * rows.halves == cols and channel % trees.size == 0:
        if rows.halves == 1 or channel == cols * trees.size:
            rows.pitch = channel // trees.size // rows.halves
    add_blocks(sums, &rows, 0, size, <acc_t *>doubles(b.average, b.scratch, PARTS))
    for i in range(planes):
        sums[i] = sum_of_halves(sums + i * rows.halves, &rows, i)
    return sums


cdef void add_block(acc_t *to, Rows *rows, Py_ssize_t first, Py_ssize_t taps) noexcept nogil:
    """Set sums to the trees of some neighbouring columns of rows."""
    cdef Py_ssize_t count = rows.halves * rows.planes, size = rows.trees.size, row = 0, i, some
    cdef Py_ssize_t half = 0
    cdef acc_t *block = <acc_t *>rows.block
    cdef const char *src = rows.src + first * size
    if rows.pitch:
        add_row_trees(to, <const acc_t *>src, rows.pitch, count, taps, False)
        return
    rows.trees.cols = taps
    while row < count:
        some = imin(count - row, SOME_ROWS)
        for i in range(some):
            take_row(block + i * BLOCK_COLUMNS, &rows.trees, src + rows.offsets[half] * size)
            half += 1
            if half == rows.halves:
                half, src = 0, src + rows.channel
        add_row_trees(to + row, block, BLOCK_COLUMNS, some, taps, False)
        row += some


cdef inline void take_row(acc_t *line, const Trees *trees, const char *src) noexcept nogil:
    if trees.direct:
        memcpy(line, src, trees.cols * sizeof(acc_t))
    else:
        converted(line, line, trees, src)


cdef acc_t sum_of_halves(acc_t *sums, const Rows *rows, Py_ssize_t plane) noexcept nogil:
    """Return the tree of the sums of halves, to each of which its odd tap is added last."""
    cdef Py_ssize_t halves = rows.halves, half, size, step = 1
    cdef const char *src = rows.src + plane * rows.channel
    cdef Trees one = rows.trees
    cdef acc_t odd
    one.cols = 1
    while halves > 1:
        halves, step = halves // 2, step * 2
        size = rows.cols // halves          # (halves begin where the first of theirs does)
        for half in range(halves):
            sums[half] = sums[2 * half] + sums[2 * half + 1]
            if size % 2:
                take_row(&odd, &one, src + (rows.offsets[half * step] + size - 1) * one.size)
                sums[half] += odd
    return sums[0]


cdef void add_blocks(acc_t *to, Rows *rows, Py_ssize_t first, Py_ssize_t taps,
                     acc_t *spare) noexcept nogil:
    """Set sums to the trees of neighbouring columns of rows, some columns at a time."""
    cdef Py_ssize_t half = taps // 2, count = rows.halves * rows.planes
    if taps <= BLOCK_COLUMNS or rows.pitch:
        add_block(to, rows, first, taps)
        return
    add_blocks(to, rows, first, half, spare)
    add_blocks(spare, rows, first + half, half, spare + count)
    add_to(to, spare, count, 1, 0)
    if taps % 2:
        add_block(spare, rows, first + taps - 1, 1)
        add_to(to, spare, count, 1, 0)


cdef void add_planes(acc_t *bands, Trees *trees, const char *src, Py_ssize_t planes,
                     Py_ssize_t row, Py_ssize_t channel, const Block *b) noexcept nogil:
    """Set the sums down the columns of planes, which have bands of their own.

    `row` and `channel` are the bytes from one row to the next and from one plane to the next.
    """
    cdef const Window *w = &b.average.frame.problem.rows
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t i = 0, most = 1
    if (trees.count == 1 and channel % trees.size == 0 and trees.col == trees.size
            and not w.irregular and w.inner_lo <= tile.row < w.inner_hi):
        most = planes
        if w.kernel > MOST_LEAF:
            most = b.average.band
            if w.kernel % 2 == 0 and channel == w.kernel * w.dilation * row:
                # (Halves of planes are planes: `add_halves`.)
                most = (tile.col_hi - tile.col_lo) * halves_of(w.kernel)
            most = imax(1, b.average.pitch // most)
    trees.plane, trees.band = channel, b.average.band
    while i < planes:
        trees.planes = imin(most, planes - i)
        add_down(bands + i * b.average.band, trees, True, False, src + i * channel, row, b,
                 tile.row, tile.row + 1)
        i += trees.planes
    trees.planes = 1
