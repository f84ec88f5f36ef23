# Takes:   windows of few taps along a row and few rows, all of one length: in order; and exact sums
#          of floats and doubles, channels first, at stride 1 along rows that share 2 or 3 rows
# Reads:   floats and doubles in place, others from converted rows
# Scratch: the rows under a block (ROWS, ROW_PLACES, NO_ROW, ONE_ROW)
# Wins:    in order 1.96 times as fast as in_order (97 random layers, AVX2). Exact, against columns,
#          one thread of an EPYC: 1x64x56x56 k3 pads 1 float32 192 -> 110 us (AVX-512), 178 -> 132
#          (AVX2). Other exact sums lose: with a stride 0.85, channels last 0.77 (36 random layers).
#
# Rows of floats or doubles have margins of 0, and strips of outputs go down the rows.
#
# Rows of the input are read where they are, if they are floats or doubles. Others are converted
# first. So are rows of single elements whose windows have a stride: their elements are reordered,
# so that those a stride apart are neighbours. Leading taps of exact sums are added up in doubles on
# the way, unless elements are doubles, whose sums are hardly ever exact.

cdef struct SmallTile:
    small_windows_t windows
    bint direct                         # rows are read where they are
    bint in_doubles                     # what rows hold
    Py_ssize_t part                     # elements from every stride-th element to the next ones
    Py_ssize_t stride                   # columns; 1 if `part` is not 0
    Py_ssize_t col                      # elements from one column of a row to the next
    Py_ssize_t left                     # elements of padding before the first of a row
    Py_ssize_t pairs                    # outputs that `pool_pairs` makes
    Py_ssize_t parts[MOST_SMALL_TAPS]   # where a row's elements 0, 1, ... go, if it is split, or -1


cdef void begin_small(SmallTile *small, const Block *b, const real *tag) noexcept nogil:
    """Set what the planes of a tile have in common."""
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef const Tile *tile = b.tile
    cdef small_windows_t *w = &small.windows
    cdef Py_ssize_t n = tile.channels, cols = tile.col_hi - tile.col_lo, t, at, lanes, run
    cdef Py_ssize_t stride = p.cols.stride
    cdef bint gaps = b.x.col != n and cols > 1, splits
    cdef bint sums_slabs = real is not double and not a.sequential and b.slabs > 1
    small.in_doubles = sums_slabs or real is double
    small.part, small.stride, small.col = 0, stride, n
    w.slabs = 1 if sums_slabs else b.slabs
    w.kernel, w.dilation, w.stride = p.rows.kernel, p.rows.dilation, p.rows.stride
    w.slab = (imin(a.block_rows, tile.rows) - 1) * w.stride + p.rows.extent
    w.taps, w.hi = p.cols.kernel, PY_SSIZE_T_MAX // 4
    w.lo = -w.hi                        # (rows that are set have margins)
    w.rows = <const char **>doubles(a, b.scratch, ROW_PLACES)
    run = n * (tile.cols if small.stride == 1 and not gaps else 1)
    lanes = 2 * WIDE if a.sequential and not small.in_doubles else WIDE
    small.direct = (real is float or real is double) and not sums_slabs
    # (What is between the first and the last element of a row must not be padding.)
    small.direct &= not gaps or (n >= lanes and b.x.col > n
                                 and tile.span * b.x.col + VEC_BYTES <= a.zeros)
    w.pairs = n == 1 and stride == 2 and w.taps == 2 and p.cols.dilation == 1
    small.pairs = cols // 2
    w.pairs &= tile.left == 0 and small.pairs >= lanes and small.pairs >= tile.cols - 1
    if w.pairs:
        small.stride = 1
    splits = small.stride > 1 and n < lanes
    small.direct &= not splits
    small.direct &= MASKED_ROWS or (tile.left == 0 and cols == tile.span
                                    and (run >= lanes or w.pairs))
    if small.direct and gaps:
        small.col = b.x.col
    small.left = tile.left * small.col
    if small.direct:
        w.lo, w.hi = small.left, small.left + (cols - 1) * small.col + n
    elif splits:
        small.part, small.stride = a.pitch // stride, 1
        for t in range(stride):
            at = tile.left + t
            small.parts[t] = at % stride * small.part + at // stride * n
            if at % stride >= p.cols.extent:
                small.parts[t] = -1         # between windows
    for t in range(w.taps):
        at = t * p.cols.dilation
        if small.part:
            w.offset[t] = at % stride * small.part + at // stride * n
        else:
            w.offset[t] = at * small.col
    memset(doubles(a, b.scratch, NO_ROW), 0, imax(a.pitch, tile.span * small.col + VEC_BYTES) * 8)
    # Whole vectors are read: where they reach beyond a row, what they read must be a number.
    if not small.direct and (cols < tile.span or tile.cols * n < lanes):
        memset(doubles(a, b.scratch, ROWS), 0,
               w.slabs * w.slab * a.pitch * (8 if small.in_doubles else 4))


cdef void set_row(char *to, const real *src, const SmallTile *small, const Block *b,
                  bint adds) noexcept nogil:
    """Set one row of a tile from one slab, or add to it."""
    cdef Py_ssize_t n = b.tile.channels, cols = b.tile.col_hi - b.tile.col_lo, c, left
    cdef int size = 8 if small.in_doubles else 4
    to += small.left * size
    if b.x.col == n or cols <= 1:
        to_row(to, src, cols * n, small.in_doubles, adds)
    else:
        for c in range(cols):
            to_row(to + c * n * size, src + c * b.x.col, n, small.in_doubles, adds)


cdef void split_row(char *to, const char *line, const SmallTile *small, const Block *b,
                    Py_ssize_t stride) noexcept nogil:
    """Copy a row so that elements a stride apart become neighbours."""
    cdef char *parts[MOST_SMALL_TAPS]
    cdef Py_ssize_t cols = b.tile.col_hi - b.tile.col_lo, n = b.tile.channels, r
    cdef int size = 8 if small.in_doubles else 4
    parts[0] = parts[1] = NULL          # (gcc does not see that a stride is at least 2 here)
    for r in range(stride):
        parts[r] = to + small.parts[r] * size if small.parts[r] >= 0 else NULL
    if n > 1:
        split_pixels(parts, line, cols, stride, n * size)
    elif small.in_doubles:
        split_f64(<double **>parts, <const double *>line, cols, stride)
    else:
        split_f32(<float **>parts, <const float *>line, cols, stride)


cdef void set_rows(const SmallTile *small, const real *src, const Block *b, Py_ssize_t done,
                   Py_ssize_t stop) noexcept nogil:
    """Set the rows under some rows of outputs. `src` is the first element of the tile's plane."""
    cdef const Average *a = b.average
    cdef const Window *w = &a.frame.problem.rows
    cdef Py_ssize_t first = window_start(w, b.tile.row + done), count, i, s, row
    cdef Py_ssize_t slabs = small.windows.slabs
    cdef int size = 8 if small.in_doubles else 4
    cdef char **places = <char **>doubles(a, b.scratch, ROW_PLACES)
    cdef char *none = <char *>doubles(a, b.scratch, NO_ROW)
    cdef char *to = <char *>doubles(a, b.scratch, ROWS)
    cdef char *line = <char *>doubles(a, b.scratch, ONE_ROW)
    cdef const real *at
    count = (stop - done - 1) * w.stride + w.extent
    for s in range(slabs):
        for i in range(count):
            row = first + i
            if i % w.stride >= w.extent:
                continue                    # between windows
            if row < 0 or row >= w.size or b.tile.col_hi == b.tile.col_lo:
                places[s * small.windows.slab + i] = none
                continue
            at = src + b.offsets[s] + (row - b.tile.row_lo) * b.x.row
            if small.direct:
                places[s * small.windows.slab + i] = <char *>(at - small.left)
                continue
            places[s * small.windows.slab + i] = to
            if small.part == 0:
                set_row(to, at, small, b, False)
                if slabs < b.slabs:
                    add_slabs(to, src, at, small, b)
            elif (real is float or real is double) and slabs == b.slabs and (
                    b.x.col == b.tile.channels):
                split_row(to, <const char *>at, small, b, a.frame.problem.cols.stride)
            else:
                set_row(line - small.left * size, at, small, b, False)
                if slabs < b.slabs:
                    add_slabs(line - small.left * size, src, at, small, b)
                split_row(to, line, small, b, a.frame.problem.cols.stride)
            to += a.pitch * size


cdef void add_slabs(char *to, const real *src, const real *at, const SmallTile *small,
                    const Block *b) noexcept nogil:
    """Add a row of the other slabs."""
    cdef Py_ssize_t s
    for s in range(1, b.slabs):
        set_row(to, at + b.offsets[s] - b.offsets[0], small, b, True)


cdef void pool_small(const SmallTile *small, const Block *b, const small_results_t *y, int kind,
                     Py_ssize_t count) noexcept nogil:
    """Pool `count` rows of outputs from the rows that are set."""
    cdef Py_ssize_t n = b.tile.channels, tile_cols = b.tile.cols, c, r = 0, step = 1
    cdef small_windows_t later
    cdef small_results_t at = y[0]
    cdef Py_ssize_t item = 4 if kind == FLOATS_IN_ORDER else 8
    if small.windows.pairs:
        if small.pairs < tile_cols:         # (whole vectors overwrite what comes after them)
            later = small.windows
            later.pairs = False
            at.data = y.data + small.pairs * item
            if not y.one_divisor and y.by != NULL:
                at.by = <const char *>y.by + small.pairs * item
            pool_small_kind(kind, &later, 2 * small.pairs, 1, count, &at)
        pool_small_kind(kind, &small.windows, 0, imin(small.pairs, tile_cols), count, y)
        return
    if small.stride == 1 and small.col == n:
        pool_small_kind(kind, &small.windows, 0, n * tile_cols, count, y)
        return
    later = small.windows
    if n * item >= VEC_BYTES:               # (else whole vectors overwrite what comes after them)
        step = count
    while r < count:
        for c in range(tile_cols):
            at.data = y.data + r * y.pitch + c * n * item
            if not y.one_divisor and y.by != NULL:
                at.by = <const char *>y.by + c * n * item
            pool_small_kind(kind, &later, c * small.stride * small.col, n, step, &at)
        later.rows += step * later.stride
        r += step


cdef inline void pool_small_kind(int kind, const small_windows_t *w, Py_ssize_t first, Py_ssize_t n,
                                 Py_ssize_t count, const small_results_t *y) noexcept nogil:
    if kind == EXACT_FROM_FLOATS:
        pool_small_exact(w, first, n, count, y)
    elif kind == EXACT_FROM_DOUBLES:
        pool_small_doubles(w, first, n, count, y)
    elif kind == FLOATS_IN_ORDER:
        pool_small_floats_in_order(w, first, n, count, y)
    else:
        pool_small_doubles_in_order(w, first, n, count, y)


cdef void sum_small(char *sums, const SmallTile *small, const real *src, const Block *b,
                    Py_ssize_t done, Py_ssize_t stop) noexcept nogil:
    """Set the sums of some rows of windows of one plane."""
    cdef small_results_t y
    cdef int kind = EXACT_FROM_DOUBLES if small.in_doubles else EXACT_FROM_FLOATS
    y.data, y.by, y.one_divisor = sums, NULL, True
    y.pitch = b.tile.cols * b.tile.channels * 8
    set_rows(small, src, b, done, stop)
    pool_small(small, b, &y, kind, stop - done)


cdef void set_divisors_in_order(small_results_t *y, const divisors_t *d, const Block *b,
                                int item) noexcept nogil:
    """Set the divisors of one row of outputs, as floats or doubles."""
    cdef Py_ssize_t n = b.tile.channels, c, i
    cdef double *by = doubles(b.average, b.scratch, DIVISORS)
    cdef double divisor
    y.by, y.one_divisor = by, d.counts == NULL
    for c in range(1 if y.one_divisor else b.tile.cols):
        divisor = d.divisor * (1 if y.one_divisor else d.counts[c])
        divisor = divisor if divisor else 1     # (a window without elements has a sum of 0)
        for i in range(1 if y.one_divisor else n):
            if item == 4:
                (<float *>by)[c * n + i] = <float>divisor
            else:
                by[c * n + i] = divisor


cdef void store_quotients(char *y, char *quotients, Py_ssize_t n, int code,
                          int result) noexcept nogil:
    """Round n quotients to the result's type."""
    cdef divisors_t one
    if result == F16:
        store_f16(<float16_t_ *>y, <float *>quotients, n)
    elif result == BF16:
        store_bf16(<bfloat16_t_ *>y, <float *>quotients, n)
    else:
        one.counts, one.divisor = NULL, 1
        divide_in_order(y, quotients, &one, n, code, result)


cdef void average_small_in_order(char *y, const View *view, const SmallTile *small,
                                 const real *src, const Block *b) noexcept nogil:
    """Pool one plane of a tile, with a rounding after each addition."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, width = tile.cols * n, done = 0, stop, r, last, i, c
    cdef int size = dtype_bytes[a.result], code = a.frame.problem.code
    cdef int item = 8 if small.in_doubles else 4
    cdef bint lies = view.col == n or tile.cols == 1
    cdef Py_ssize_t run = width if small.stride == 1 and small.col == n else n
    cdef bint whole = not small.windows.pairs or small.pairs >= tile.cols
    cdef bint in_place = (whole and lies and a.result == code and size == item
                          and run * item >= VEC_BYTES)
    cdef char *sums = <char *>doubles(a, b.scratch, HIGH)
    cdef SmallTile later = small[0]
    cdef small_results_t results
    cdef divisors_t d
    while done < tile.rows:
        stop = imin(tile.rows, done + a.block_rows)
        set_rows(small, src, b, done, stop)
        r = done
        while r < stop:
            last = same_divisors(b, r, stop)
            set_divisors(&d, b, tile.row + r)
            set_divisors_in_order(&results, &d, b, item)
            results.data = y + r * view.row * size if in_place else sums
            results.pitch = view.row * size if in_place else width * item
            later.windows.rows = small.windows.rows + (r - done) * small.windows.stride
            pool_small(&later, b, &results,
                       DOUBLES_IN_ORDER if small.in_doubles else FLOATS_IN_ORDER, last - r)
            if not in_place:
                for i in range(r, last):
                    for c in range(1 if lies else tile.cols):
                        store_quotients(y + (i * view.row + c * view.col) * size,
                                        sums + ((i - r) * width + c * n) * item,
                                        width if lies else n, code, a.result)
            r = last
        done = stop
