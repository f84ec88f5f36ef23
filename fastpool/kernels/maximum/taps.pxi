# Takes:   small windows with indices: all taps in registers
# Reads:   the input in place, or from a copy with margins where windows hang over the sides
# Scratch: the copy (SLAB); keys of the outputs (POOLED)
# Wins:    AVX-512: float32 1x64x112x112 k3 s2 902 -> 480 us, 1x64x224x224 k2 s2 3840 -> 2630,
#          1x192x28x28 k3 430 -> 218, channels last 1x112x112x64 k3 s2 597 -> 255. AVX2, baseline:
#          1x64x112x112 k2 s2 923, 1510 -> 375, 539. Windows that slide, k16: 577 -> 528 (AVX-512);
#          above 8 AVX2 loses (1x64x40x40 k9 539 -> 592).
#
# The columns of a window are compared from left to right, its rows from top to bottom. A tap
# replaces the best so far only if it is greater, so that the winner is the first in row-major
# order. Lanes are neighbouring columns (channels first) or channels (channels last). Types with a
# comparison of their own are read as they are; others are read as keys. If a NaN was tracked, the
# caller pools the tile again as keys.
#
# A position counts from where a window starts, in the strides of the index. So an index is the
# index of the window's start plus a position. No margin wins: rows outside are left out, and a
# window over the left side whose elements are all the lowest value has the position of the first of
# them, the least that it can have.

cdef enum:
    RING = 32               # rows under a window that slides


cdef struct Best:           # of each lane: the greatest so far, and where it is
    vec_t key, place


cdef struct WindowColumns:
    Py_ssize_t stride               # elements from one lane's window to the next lane's
    Py_ssize_t taps
    Py_ssize_t offsets[MAX_TAPS]
    vec_t places[MAX_TAPS]
    vec_t least                     # position of the first column inside, over the left side
    vec_t first_least               # the same of a tile's first lanes


cdef struct WindowRows:     # in each slab of the leading axes
    Py_ssize_t step, tap_step       # elements from one row to the next, from one tap to the next
    int64_t place                   # what a row adds to the index
    vec_t places[MAX_TAPS]          # of each tap
    Py_ssize_t slabs
    Py_ssize_t slab_of[MAX_TAPS]
    vec_t slab_places[MAX_TAPS]


cdef struct Compared:       # what a loop compares: constants, where there is a loop for them
    Py_ssize_t slabs, rows, taps, stride


cdef struct Indices:        # what indices are made of
    vec_t iota                      # 0, step, 2 * step, ...
    int64_t step                    # from one lane to the next
    int bytes


cdef struct PixelStep:      # from one window of a channels-last row to the next
    Py_ssize_t elements
    int64_t base                    # what it adds to the index


cdef struct Outputs:        # values and indices
    void *values
    char *indices
    int64_t base                    # what positions count from
    Py_ssize_t row, col             # elements from one value to the next
    Py_ssize_t index_row, index_col     # bytes from one index to the next
    Py_ssize_t n                    # lanes that are stored
    const Indices *how


cdef inline void argmax_update(Best *best, vec_t key, vec_t place,
                               const ordered *tag) noexcept nogil:
    cdef vec_mask greater = vec_gt(key, best.key, tag)
    best.key = vec_select(greater, key, best.key, tag)
    best.place = vec_select(greater, place, best.place, tag)


cdef inline void copy_best(Best *to, const Best *best) noexcept nogil:
    to.key, to.place = best.key, best.place     # (both at once would be copied in halves)


cdef inline vec_t load_strided_tap(const ordered *at, Py_ssize_t tap, Py_ssize_t stride,
                                   vec_flag *nan) noexcept nogil:
    """Load one column of windows at stride 1 or 2, after the first. Read nothing past it."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(ordered)
    cdef vec_t a, b
    if stride == 1:
        return track_nan(vec_load(at + tap), nan, at)
    a, b = vec_load(at + tap - 1), vec_load(at + tap - 1 + lanes)
    if nan != NULL:
        nan[0] = nan_or(nan[0], a, b, at)
    return vec_concat_odd(a, b, at)


cdef inline void argmax_row(Best *best, const ordered *at, const WindowColumns *cols,
                            const Compared *c, vec_flag *nan) noexcept nogil:
    """Set `best` to the maximum of one row of windows."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(ordered), stride = c.stride
    cdef Py_ssize_t taps = c.taps, t = 1, half
    cdef vec_t v = vec_load(at), w, x, y, second
    cdef Best right
    best.key, best.place = v, cols.places[0]
    if stride == 4:                     # four columns, each in a window
        w, x, y = vec_load(at + lanes), vec_load(at + 2 * lanes), vec_load(at + 3 * lanes)
        if nan != NULL:
            nan[0] = nan_or(nan_or(nan[0], v, w, at), x, y, at)
        v, w = vec_concat_even(v, w, at), vec_concat_odd(v, w, at)
        x, y = vec_concat_even(x, y, at), vec_concat_odd(x, y, at)
        best.key = vec_concat_even(v, x, at)
        argmax_update(best, vec_concat_even(w, y, at), cols.places[1], at)
        argmax_update(best, vec_concat_odd(v, x, at), cols.places[2], at)
        argmax_update(best, vec_concat_odd(w, y, at), cols.places[3], at)
        t = 4
    elif stride == 2:
        w = vec_load(at + lanes)
        if nan != NULL:
            nan[0] = nan_or(nan[0], v, w, at)
        best.key = vec_concat_even(v, w, at)
        argmax_update(best, vec_concat_odd(v, w, at), cols.places[1], at)
        t = 2
    elif taps > 1:
        second = vec_load(at + cols.offsets[1])
        if nan != NULL:
            nan[0] = nan_or(nan[0], v, second, at)
        argmax_update(best, second, cols.places[1], at)
        t = 2
    elif nan != NULL:
        nan[0] = nan_or(nan[0], v, v, at)
    if taps > 4 and stride < 4:         # in two halves: each comparison waits for the one before
        half = (taps + 1) // 2
        right.key = load_strided_tap(at, cols.offsets[half], stride, nan)
        right.place = cols.places[half]
        for t in range(1, half):
            if t > 1:                   # (compared already)
                argmax_update(best, load_strided_tap(at, cols.offsets[t], stride, nan),
                              cols.places[t], at)
            if half + t < taps:
                argmax_update(&right, load_strided_tap(at, cols.offsets[half + t], stride, nan),
                              cols.places[half + t], at)
        argmax_update(best, right.key, right.place, at)
    else:
        for t in range(t, taps):
            argmax_update(best, load_strided_tap(at, cols.offsets[t], stride, nan),
                          cols.places[t], at)
    best.place = vec_max_int(best.place, cols.least, at)


cdef inline void argmax_rows(Best *best, const ordered *at, const WindowColumns *cols,
                             const WindowRows *rows, const Compared *c,
                             vec_flag *nan) noexcept nogil:
    """Set `best` to the maximum over rows, in every slab; `at` is where the first window starts."""
    cdef Py_ssize_t step = rows.tap_step, s, t
    cdef const ordered *slab
    cdef Best more
    argmax_row(best, at, cols, c, nan)
    for s in range(c.slabs):
        slab = at + rows.slab_of[s] if c.slabs > 1 else at
        for t in range(0 if s else 1, c.rows):
            argmax_row(&more, slab + t * step, cols, c, nan)
            if c.slabs > 1:
                more.place = vec_add(more.place, rows.slab_places[s], at)
            argmax_update(best, more.key, vec_add(more.place, rows.places[t], at), at)


cdef inline void store_best(ordered *values, char *indices, const Best *best, Py_ssize_t n,
                            int64_t base, const Indices *how) noexcept nogil:
    """Store the first n lanes: values and indices."""
    store_lanes(values, best.key, n * <Py_ssize_t>sizeof(ordered))
    store_vec_indices(indices, best.place, n, base, how.iota, how.step, how.bytes, values)


cdef inline void store_none(const Outputs *to, const ordered *tag) noexcept nogil:
    """Store windows without an element."""
    fill(<ordered *>to.values, to.n, <ordered>lowest(tag))
    if to.how.bytes == 8:
        fill(<int64_t *>to.indices, to.n, <int64_t>-1)
    else:
        fill(<int32_t *>to.indices, to.n, <int32_t>-1)


cdef inline void next_rows(Outputs *to, Py_ssize_t count, int64_t base,
                           const ordered *tag) noexcept nogil:
    """Advance by `count` rows of outputs; `base` is what they add to the index."""
    to.values = <ordered *>to.values + count * to.row
    to.indices += count * to.index_row
    to.base += base


cdef inline void argmax_column(const Outputs *first, const ordered *src, const WindowColumns *cols,
                               const WindowRows *rows, Py_ssize_t down, Py_ssize_t count,
                               const Compared *c, vec_flag *nan) noexcept nogil:
    """Pool `count` rows of windows, `down` rows apart, that are inside, one vector wide."""
    cdef Py_ssize_t r, n = first.n, row = first.row, index_row = first.index_row
    cdef Py_ssize_t step = down * rows.step
    cdef int64_t base = first.base, base_row = down * rows.place
    cdef ordered *values = <ordered *>first.values
    cdef char *indices = first.indices
    cdef const Indices *how = first.how
    cdef Best best
    for r in range(count):
        argmax_rows(&best, src, cols, rows, c, nan)
        store_best(values, indices, &best, n, base, how)
        values, indices, src, base = values + row, indices + index_row, src + step, base + base_row


cdef struct Under:          # the rows under a sequence of windows, each a tap below the last
    Py_ssize_t above        # rows of the first window before the first real one
    Py_ssize_t size         # real rows
    Py_ssize_t count        # windows


cdef void slide_square_rows(const Outputs *first, const ordered *src, const WindowColumns *cols,
                            const WindowRows *rows, const Under *under, int64_t base_row,
                            bint five) noexcept nogil:
    """Pool windows of three or five rows and columns: a row is compared once.

    In the place of a row outside, the nearest row inside is compared, with its own position. Its
    window has that row too, since no window is empty. `src` is the first real row. A row of windows
    adds `base_row` to the index.

    Not inline: among what surrounds its calls, the loop would keep offsets in memory (13 % of
    1x64x56x56 k3, AVX2).
    """
    cdef Py_ssize_t tap = -under.above, count = under.count, left = count - 1 + (4 if five else 2)
    cdef Py_ssize_t n = first.n, row = first.row, index_row = first.index_row
    cdef Py_ssize_t step = rows.tap_step, size = under.size
    cdef int64_t base = first.base
    cdef ordered *values = <ordered *>first.values
    cdef char *indices = first.indices
    cdef Indices how = first.how[0]     # (stores of values might change what a pointer points to)
    cdef vec_t back = vec_set(-base_row, src)
    cdef Compared one
    cdef Best a, b, c, d, e, best
    one.slabs, one.rows, one.taps, one.stride = 1, 1, 5 if five else 3, 1
    argmax_row(&e, src, cols, &one, NULL)
    e.place = vec_add(e.place, vec_set(under.above * base_row, src), src)
    copy_best(&a, &e)
    copy_best(&b, &e)
    copy_best(&c, &e)
    copy_best(&d, &e)
    while True:
        if left < count:
            copy_best(&best, &a if five else &c)
            if five:
                argmax_update(&best, b.key, vec_add(b.place, rows.places[1], src), src)
                argmax_update(&best, c.key, vec_add(c.place, rows.places[2], src), src)
                copy_best(&a, &d)
                a.place = vec_add(d.place, rows.places[3], src)
                argmax_update(&a, e.key, vec_add(e.place, rows.places[4], src), src)
                argmax_update(&best, a.key, a.place, src)
            else:
                argmax_update(&best, d.key, vec_add(d.place, rows.places[1], src), src)
                argmax_update(&best, e.key, vec_add(e.place, rows.places[2], src), src)
            store_best(values, indices, &best, n, base, &how)
            values, indices, base = values + row, indices + index_row, base + base_row
        if left == 0:
            return
        left -= 1
        tap += 1
        if five:
            copy_best(&a, &b)
            copy_best(&b, &c)
        copy_best(&c, &d)
        copy_best(&d, &e)
        if 0 < tap < size:
            argmax_row(&e, src + tap * step, cols, &one, NULL)
        else:
            e.place = vec_add(e.place, back, src)


cdef inline void slide_rows(const Outputs *first, const ordered *src, const WindowColumns *cols,
                            const WindowRows *rows, const Window *w, const Tile *tile,
                            Py_ssize_t stride) noexcept nogil:
    """Pool all rows of a tile under windows that share rows.

    `src` is in the first row under the tile, as the base of the outputs is.
    """
    cdef vec_t keys[RING]
    cdef vec_t places[RING]             # (apart: a Best would be copied in halves)
    cdef Outputs to = first[0]
    cdef int64_t base = to.base
    cdef Compared one
    cdef Best best, lower
    cdef Py_ssize_t step = rows.step, dilation = w.dilation, made = 0, o, t, at, row, real, half
    one.slabs, one.rows, one.taps, one.stride = 1, 1, cols.taps, stride
    for o in range(tile.row, tile.row + tile.rows):
        real = real_taps(w, o, &row)
        row -= tile.row_lo
        if dilation == 1:               # (else a later window may begin with an earlier row)
            made = imax(made, row)
        while made <= row + (real - 1) * dilation:
            argmax_row(&best, src + made * step, cols, &one, NULL)
            keys[made & (RING - 1)], places[made & (RING - 1)] = best.key, best.place
            made += 1
        if real == 0:
            store_none(&to, src)
        else:
            best.key, best.place = keys[row & (RING - 1)], places[row & (RING - 1)]
            half = (real + 1) // 2
            at = (row + half * dilation) & (RING - 1)
            lower.key, lower.place = keys[at], vec_add(places[at], rows.places[half], src)
            for t in range(1, half):
                at = (row + t * dilation) & (RING - 1)
                argmax_update(&best, keys[at], vec_add(places[at], rows.places[t], src), src)
                if half + t < real:
                    at = (row + (half + t) * dilation) & (RING - 1)
                    argmax_update(&lower, keys[at],
                                  vec_add(places[at], rows.places[half + t], src), src)
            if real > 1:
                argmax_update(&best, lower.key, lower.place, src)
            store_best(<ordered *>to.values, to.indices, &best, to.n, base + row * rows.place,
                       to.how)
        next_rows(&to, 1, 0, src)


cdef inline void slide_taps_down(const Outputs *first, const ordered *src,
                                 const WindowColumns *cols, const WindowRows *rows, const Pool *p,
                                 const Tile *tile) noexcept nogil:
    """Pool the rows of a tile under windows that share rows; the smallest have their own loops."""
    cdef const Window *w = &p.problem.rows
    cdef Py_ssize_t residue, start, step = w.dilation
    cdef const ordered *at
    cdef Outputs to
    cdef Under under
    if p.taps.slides_square:
        for residue in range(imin(step, tile.rows)):    # dilated rows: as many slides
            start = tile.row + residue - w.begin
            under.above = ceil_div(imax(-start, 0), step)
            under.count = ceil_div(tile.rows - residue, step)
            under.size = (w.size - 1 - start) // step + 1 - under.above
            start -= tile.row_lo
            to = first[0]
            next_rows(&to, residue, start * rows.place, src)
            to.row *= step
            to.index_row *= step
            at = src + (start + under.above * step) * rows.step
            if cols.taps == 5:
                slide_square_rows(&to, at, cols, rows, &under, step * rows.place, True)
            else:
                slide_square_rows(&to, at, cols, rows, &under, step * rows.place, False)
    elif cols.stride == 2:
        slide_rows(first, src, cols, rows, w, tile, 2)
    else:
        slide_rows(first, src, cols, rows, w, tile, 1)


cdef inline void argmax_inner(const Outputs *to, const ordered *src, const WindowColumns *cols,
                              const WindowRows *rows, const Pool *p, Py_ssize_t count,
                              vec_flag *nan) noexcept nogil:
    """Pool `count` inner rows of windows that share no rows, or few."""
    cdef Py_ssize_t down = p.problem.rows.stride, kernel = p.problem.rows.kernel
    cdef Compared c
    c.slabs, c.rows, c.taps, c.stride = rows.slabs, kernel, cols.taps, 2
    if p.taps.tracks_nan and cols.stride == 4:
        c.taps, c.stride = 4, 4
        argmax_column(to, src, cols, rows, down, count, &c, nan)
    elif p.taps.tracks_nan:
        c.slabs, c.rows, c.taps = 1, 2, 2
        argmax_column(to, src, cols, rows, down, count, &c, nan)
    elif cols.stride == 1:
        c.stride = 1
        argmax_column(to, src, cols, rows, down, count, &c, NULL)
    elif cols.taps == 3 and kernel == 3 and rows.slabs == 1:
        c.slabs, c.rows, c.taps = 1, 3, 3
        argmax_column(to, src, cols, rows, down, count, &c, NULL)
    else:
        argmax_column(to, src, cols, rows, down, count, &c, NULL)


cdef inline void argmax_down(const Outputs *first, const ordered *src, const WindowColumns *cols,
                             const WindowRows *rows, const Pool *p, const Tile *tile,
                             vec_flag *nan) noexcept nogil:
    """Pool the rows of a tile, one vector of windows wide.

    `src` is in the first row under the tile, as the base of the outputs is.
    """
    cdef const Window *w = &p.problem.rows
    cdef Py_ssize_t last = tile.row + tile.rows, o = tile.row, count, real, row
    cdef Py_ssize_t begin = imax(o, imin(w.inner_lo, last))
    cdef Py_ssize_t end = imax(begin, imin(w.inner_hi, last))
    cdef int64_t base = first.base
    cdef vec_flag seen = nan[0]         # in a register
    cdef Outputs to = first[0]
    cdef Compared c
    cdef Best best
    if p.taps.slides:
        slide_taps_down(first, src, cols, rows, p, tile)
        o = last
    while o < last:
        real = real_taps(w, o, &row)
        row -= tile.row_lo
        to.base = base + row * rows.place
        count = 1
        if real == 0:
            store_none(&to, src)
        elif o == begin and end > begin:
            count = end - begin
            argmax_inner(&to, src + row * rows.step, cols, rows, p, count, &seen)
        else:
            c.slabs, c.rows, c.taps, c.stride = rows.slabs, real, cols.taps, cols.stride
            argmax_rows(&best, src + row * rows.step, cols, rows, &c, &seen)
            store_best(<ordered *>to.values, to.indices, &best, to.n, to.base, to.how)
        o += count
        next_rows(&to, count, 0, src)
    nan[0] = seen


cdef inline vec_t least_places(Py_ssize_t start, const Pool *p, const ordered *tag) noexcept nogil:
    """Return, per lane, the position of a window's first column inside.

    The window of the first lane starts in column `start` < 0.
    """
    cdef const Window *cols = &p.problem.cols
    cdef int64_t place[32]              # lanes of 16 bits in the longest vector
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(ordered), i, taps
    for i in range(lanes):
        taps = imax(0, -(start + i * cols.stride))
        if cols.dilation > 1:
            taps = ceil_div(taps, cols.dilation) * cols.dilation
        place[i] = taps * p.indexing.col
    return vec_from_int64(place, tag)


cdef inline void argmax_plane(const Outputs *plane, const ordered *src, WindowColumns *cols,
                              const WindowRows *rows, const Pool *p, const Tile *tile,
                              vec_flag *nan) noexcept nogil:
    """Pool one plane of a channels-first tile, in columns of one vector.

    `src` is its first element. The base of the outputs is that of column 0.
    """
    cdef const Window *w = &p.problem.cols
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(ordered), n = tile.cols, o = 0, start
    cdef Outputs to = plane[0]
    while True:
        start = (tile.col + o) * w.stride - w.begin
        cols.least = vec_set(0, src)
        if start < 0:
            cols.least = cols.first_least if o == 0 else least_places(start, p, src)
        to.values = <ordered *>plane.values + o
        to.indices = plane.indices + o * to.how.bytes
        to.base = plane.base + start * p.indexing.col
        to.n = imin(lanes, n - o)
        argmax_down(&to, src + start - tile.col_lo, cols, rows, p, tile, nan)
        if o + lanes >= n:
            return
        o = imin(o + lanes, n - lanes)


cdef void copy_taps(ordered *slab, Py_ssize_t pitch, const View *x, Py_ssize_t at, const Pool *p,
                    const Tile *tile, bint in_keys, vec_flag *nan) noexcept nogil:
    """Copy the input under a tile, from x's element `at` on, to rows in `slab`."""
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t n = tile.channels, r
    cdef const ordered *src = <const ordered *>x.data + at
    if ordered is int16_t or ordered is int32_t or ordered is int64_t:
        if in_keys and p.problem.channels_last:
            load_keys(slab, x, at, p, tile)
            return
        if in_keys:
            keys_loader(p.problem.code, <int>sizeof(ordered))(
                slab, pitch, x.data + at * p.problem.size, x.row, rows, cols, p.rule)
            return
    if x.col == n or cols == 1:
        copy_rows(slab, pitch, src, x.row, rows, cols * n, nan)
        return
    for r in range(rows):
        copy_rows(slab + r * pitch, n, src + r * x.row, x.col, cols, n, nan)


cdef inline void argmax_pixel_run(const Outputs *first, const ordered *src,
                                  const WindowColumns *cols, const WindowRows *rows,
                                  Py_ssize_t pixels, const PixelStep *step, const Compared *c,
                                  vec_flag *nan) noexcept nogil:
    """Pool neighbouring windows of a channels-last tile."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(ordered), n = first.n, o, i
    cdef char *indices = first.indices
    cdef ordered *values = <ordered *>first.values
    cdef int64_t base = first.base
    cdef const Indices *how = first.how
    cdef vec_flag seen = nan[0]
    cdef Best best
    for o in range(pixels):
        i = 0
        while True:
            argmax_rows(&best, src + i, cols, rows, c, &seen)
            store_best(values + i, indices + i * how.bytes, &best, imin(lanes, n - i),
                       base + i * how.step, how)
            if i + lanes >= n:
                break
            i = imin(i + lanes, n - lanes)
        values, indices = values + first.col, indices + first.index_col
        src, base = src + step.elements, base + step.base
    nan[0] = seen


cdef inline void argmax_pixels(const Outputs *first, const ordered *src, Py_ssize_t src_col,
                               const WindowColumns *cols, const WindowRows *rows, const Pool *p,
                               const Tile *tile, vec_flag *nan) noexcept nogil:
    """Pool a channels-last tile, as pool_direct_pixels does.

    `src` is its first element. The base of the outputs is the index of that element.
    """
    cdef const Window *w = &p.problem.cols
    cdef Py_ssize_t r, o, i, row, col, count, last = tile.col + tile.cols
    cdef Py_ssize_t begin = imax(tile.col, imin(w.inner_lo, last))
    cdef Py_ssize_t end = imax(begin, imin(w.inner_hi, last))
    cdef const ordered *at
    cdef Outputs to = first[0]
    cdef PixelStep step
    cdef Compared c
    step.elements, step.base = w.stride * src_col, w.stride * p.indexing.col
    c.stride = 1
    for r in range(tile.rows):
        c.rows = real_taps(&p.problem.rows, tile.row + r, &row)
        row -= tile.row_lo
        o = tile.col
        while o < last:
            c.slabs, c.taps = rows.slabs, real_taps(w, o, &col)
            col -= tile.col_lo
            count = end - begin if o == begin and end > begin else 1
            i = o - tile.col
            to.values = <ordered *>first.values + r * to.row + i * to.col
            to.indices = first.indices + r * to.index_row + i * to.index_col
            to.base = first.base + row * rows.place + col * p.indexing.col
            at = src + row * rows.step + col * src_col
            if c.rows == 0 or c.taps == 0:
                for i in range(count):
                    store_none(&to, src)
                    to.values = <ordered *>to.values + to.col
                    to.indices += to.index_col
            else:
                choose_pixel_run(&to, at, cols, rows, count, &step, &c, nan)
            o += count


cdef inline void choose_pixel_run(const Outputs *to, const ordered *src, const WindowColumns *cols,
                                  const WindowRows *rows, Py_ssize_t pixels, const PixelStep *step,
                                  const Compared *c, vec_flag *nan) noexcept nogil:
    """Windows of 2 x 2 and 3 x 3 have loops of their own."""
    cdef Compared d
    d.slabs, d.rows, d.taps, d.stride = c.slabs, c.rows, c.taps, 1
    if c.taps == 2 and c.rows == 2 and c.slabs == 1:
        d.slabs, d.rows, d.taps = 1, 2, 2
        argmax_pixel_run(to, src, cols, rows, pixels, step, &d, nan)
    elif c.taps == 3 and c.rows == 3 and c.slabs == 1:
        d.slabs, d.rows, d.taps = 1, 3, 3
        argmax_pixel_run(to, src, cols, rows, pixels, step, &d, nan)
    else:
        argmax_pixel_run(to, src, cols, rows, pixels, step, &d, nan)


cdef struct Slabs:          # what windows are read from: x, or copies of the slabs under a tile
    bint in_place
    Py_ssize_t count
    Py_ssize_t pitch, elements      # of a copy: from one row to the next, in all
    Py_ssize_t taps[MAX_LEADS]      # per leading axis


cdef void place_taps(WindowColumns *cols, WindowRows *rows, Indices *how, const Pool *p,
                     const View *x, const Tile *tile, const Slabs *slabs,
                     const ordered *tag) noexcept nogil:
    """Set where taps are, in x or in a copy, and what they add to an index."""
    cdef const Problem *problem = &p.problem
    cdef const Indexing *indexing = &p.indexing
    cdef Py_ssize_t t, at, pixel = 1
    if problem.channels_last:
        pixel = x.col if slabs.in_place else tile.channels
    cols.stride = 1 if problem.channels_last else problem.cols.stride
    cols.taps = problem.cols.kernel
    cols.least = cols.first_least = vec_set(0, tag)
    if not problem.channels_last and tile.left:
        cols.first_least = least_places(-tile.left, p, tag)
    for t in range(cols.taps):
        cols.offsets[t] = t * problem.cols.dilation * pixel
        cols.places[t] = vec_set(t * problem.cols.dilation * indexing.col, tag)
    rows.step, rows.place = x.row if slabs.in_place else slabs.pitch, indexing.row
    rows.slabs, rows.tap_step = slabs.count, rows.step * problem.rows.dilation
    for t in range(problem.rows.kernel):
        rows.places[t] = vec_set(t * problem.rows.dilation * indexing.row, tag)
    for t in range(slabs.count):
        rows.slab_of[t] = t * slabs.elements
        if slabs.in_place:
            rows.slab_of[t] = lead_offset(problem, x.lead, slabs.taps, t)
        at = lead_offset(problem, indexing.lead, slabs.taps, t)
        rows.slab_places[t] = vec_set(at, tag)
    how.step = indexing.channel if problem.channels_last else problem.cols.stride * indexing.col
    how.iota, how.bytes = vec_iota(how.step), <int>indexing.bytes


cdef bint tile_taps(const Pool *p, const Job *job, const Tile *tile, Scratch *scratch, bint in_keys,
                    ordered *tag) noexcept nogil:
    """Pool one tile to values and indices.

    Return False if its input holds a NaN. The outputs are then undefined, and the caller pools the
    tile again `in_keys`.
    """
    cdef const Problem *problem = &p.problem
    cdef const View *x = &job.x
    cdef const View *y = &job.y
    cdef const View *z = &job.z
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(ordered), n = tile.channels
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t out = tile.cols * n, left = 0, first, plane, t, at
    cdef vec_flag nan = flag_none(), unused = flag_none()   # (after a copy's rows is anything)
    cdef ordered *slab = <ordered *>area_of(p, scratch.area, SLAB)
    cdef ordered *pooled = <ordered *>area_of(p, scratch.area, POOLED)
    cdef const ordered *src
    cdef WindowColumns columns
    cdef WindowRows each
    cdef Indices how
    cdef Slabs slabs
    cdef Outputs to
    cdef int64_t base = tile_base(p, tile)
    slabs.count = lead_taps(problem, x, tile.lead, slabs.taps, &first)
    slabs.pitch, slabs.in_place = cols * n, not in_keys
    if problem.channels_last:
        slabs.in_place = slabs.in_place and n >= lanes
    else:
        slabs.in_place = slabs.in_place and tile.span == cols and tile.cols >= lanes
        slabs.pitch, left = round_up(lanes + tile.span, lanes), tile.left
    slabs.elements = rows * slabs.pitch
    place_taps(&columns, &each, &how, p, x, tile, &slabs, tag)
    if not slabs.in_place:
        for plane in range(tile.planes):
            for t in range(slabs.count):
                at = input_offset(problem, x, tile, plane) + first
                copy_taps(slab + left + (plane * slabs.count + t) * slabs.elements, slabs.pitch, x,
                          at + lead_offset(problem, x.lead, slabs.taps, t), p, tile, in_keys, &nan)
        if not problem.channels_last:
            fill_margins(slab, slabs.pitch, 0, tile, tile.planes * slabs.count * rows)
    to.how, to.n = &how, n
    to.row, to.col = y.row, y.col
    if in_keys:
        to.row, to.col = out, n
    to.index_row, to.index_col = z.row * how.bytes, z.col * how.bytes
    for plane in range(tile.planes):
        to.values = pooled + plane * tile.rows * out
        if not in_keys:
            to.values = <ordered *>y.data + output_offset(problem, y, tile, plane)
        to.indices = z.data + output_offset(problem, z, tile, plane) * how.bytes
        to.base = base
        src = slab + left + plane * slabs.count * slabs.elements
        if slabs.in_place:
            src = <const ordered *>x.data + input_offset(problem, x, tile, plane) + first
        if slabs.count == 0 or rows == 0 or cols == 0:
            store_none_tile(&to, tile, tag)
        elif problem.channels_last:
            argmax_pixels(&to, src, x.col if slabs.in_place else n, &columns, &each, p, tile,
                          &nan if slabs.in_place else &unused)
        else:
            if slabs.in_place and has_nans(tag) and not p.taps.tracks_nan:
                for t in range(slabs.count):
                    track_nan_rows(src + each.slab_of[t], x.row, rows, cols, &nan)
            to.base = base + plane_base(p, tile.plane + plane)
            argmax_plane(&to, src, &columns, &each, p, tile,
                         &nan if slabs.in_place and p.taps.tracks_nan else &unused)
    if in_keys:
        for plane in range(tile.planes):
            store_taps(y, tile, plane, <const ordered *>pooled + plane * tile.rows * out, p)
    return not flag_any(nan)


cdef inline void store_none_tile(const Outputs *first, const Tile *tile,
                                 const ordered *tag) noexcept nogil:
    """Store a tile of windows without an element."""
    cdef Outputs to = first[0]
    cdef Py_ssize_t r, c
    for r in range(tile.rows):
        for c in range(tile.cols):
            to.values = <ordered *>first.values + r * to.row + c * to.col
            to.indices = first.indices + r * to.index_row + c * to.index_col
            store_none(&to, tag)


cdef inline void store_taps(const View *y, const Tile *tile, Py_ssize_t plane,
                            const ordered *pooled, const Pool *p) noexcept nogil:
    if ordered is int16_t or ordered is int32_t or ordered is int64_t:
        store_keys(y, tile, plane, 0, tile.rows, pooled, p)


cdef bint taps_slide(const Problem *p, Py_ssize_t slabs) noexcept nogil:
    """Is each row compared once, for all windows that share it?"""
    cdef const Window *rows = &p.rows
    if slabs > 1 or p.cols.stride > 2 or rows.kernel <= rows.stride:
        return False
    # (three rows at stride 2 are compared again sooner than they are kept)
    return rows.stride == 1 or (rows.dilation == 1 and rows.kernel > 3)


cdef void plan_taps(Pool *p) noexcept nogil:
    """Set how windows are compared."""
    cdef const Problem *problem = &p.problem
    cdef const Window *rows = &problem.rows
    cdef const Window *cols = &problem.cols
    cdef TapsChoice *taps = &p.taps
    cdef Py_ssize_t slabs = 1, i
    if problem.channels_last:
        return
    for i in range(problem.leads):
        slabs *= problem.lead[i].kernel
    taps.slides = taps_slide(problem, slabs)
    # Windows that share nothing read everything once, from memory: a search for NaN before would
    # cost a fifth (1x64x224x224 k2 s2 2035 -> 2550 us).
    taps.tracks_nan = not taps.slides and cols.stride == 4
    if not taps.slides and slabs == 1 and cols.stride == cols.kernel == rows.kernel == 2:
        taps.tracks_nan = True
    taps.slides_square = taps.slides and rows.stride * cols.stride == 1
    taps.slides_square = taps.slides_square and (rows.kernel == 3 or rows.kernel == 5)
    taps.slides_square = taps.slides_square and rows.kernel == cols.kernel and none_empty(rows)


cdef void taps_scratch(const Pool *p, Py_ssize_t *size) noexcept nogil:
    """Set the sizes of SLAB and POOLED, in keys."""
    cdef const Problem *problem = &p.problem
    cdef Py_ssize_t lanes = VEC_BYTES // p.key_bytes, n = p.tiling.channels, slabs = 1, i
    cdef Py_ssize_t rows = (p.tiling.rows - 1) * problem.rows.stride + problem.rows.extent
    cdef Py_ssize_t span = (p.tiling.cols - 1) * problem.cols.stride + problem.cols.extent
    cdef Py_ssize_t pitch = round_up(lanes + span, lanes)
    if problem.channels_last:
        pitch = imin(span, problem.cols.size) * n
    for i in range(problem.leads):
        slabs *= problem.lead[i].kernel
    size[<int>SLAB] = p.tiling.planes * slabs * imin(rows, problem.rows.size) * pitch
    size[<int>POOLED] = p.tiling.planes * p.tiling.rows * p.tiling.cols * n
    long_windows_scratch(p, size, p.key_bytes, False)
