# Takes:   small windows with indices: all taps in registers
# Reads:   the input in place, or from a copy with margins where windows hang over the sides
# Scratch: the copy (slab); keys of the outputs (pooled)
# Wins:    AVX-512: float32 1x64x112x112 k3 s2 902 -> 480 us, 1x64x224x224 k2 s2 3840 -> 2630,
#          1x192x28x28 k3 430 -> 218, channels last 1x112x112x64 k3 s2 597 -> 255. AVX2, baseline:
#          1x64x112x112 k2 s2 923, 1510 -> 375, 539. Windows that slide, k16: 577 -> 528 (AVX-512);
#          above 8 AVX2 loses (1x64x40x40 k9 539 -> 592).
#
# The columns of a window are compared from left to right, its rows from top to bottom. A tap replaces
# the best so far only if it is greater, so that the winner is the first in row-major order. Lanes are
# neighbouring columns (channels first) or channels (channels last). Types with a comparison of their
# own are read as they are; others are read as keys. A NaN is tracked, and the caller pools the tile
# again as keys.
#
# A position counts from where a window starts, in the strides of the index. So an index is the index
# of the window's start plus a position. No margin wins: rows outside are left out, and a window over
# the left side whose elements are all the lowest value has the position of the first of them, the
# least that it can have.

cdef struct Best:           # of each lane: the greatest so far, and where it is
    vec_t key, place


cdef struct WindowColumns:            # a window's columns
    Py_ssize_t stride               # from one lane to the next
    Py_ssize_t taps
    Py_ssize_t offsets[MAX_TAPS]
    vec_t places[MAX_TAPS]
    vec_t least                     # position of the first column inside, where windows hang over the left side
    vec_t first_least               # the same in a tile's first lanes


cdef struct WindowRows:           # a window's rows, in each slab of the leading axes
    Py_ssize_t step, tap_step       # elements from one row to the next, and from one tap to the next
    int64_t place                   # what a row adds to the index
    vec_t places[MAX_TAPS]          # of each tap
    Py_ssize_t slabs
    Py_ssize_t slab_of[MAX_TAPS]
    vec_t slab_places[MAX_TAPS]


cdef struct Indices:        # what indices are made of
    vec_t ramp                      # 0, step, 2 * step, ...
    int64_t step                    # from one lane to the next
    int bytes


cdef inline void argmax_update(Best *best, vec_t key, vec_t place, const ordered *tag) noexcept nogil:
    cdef vec_mask greater = vec_gt(key, best.key, tag)
    best.key = vec_select(greater, key, best.key, tag)
    best.place = vec_select(greater, place, best.place, tag)


cdef inline vec_t load_strided_tap(const ordered *at, Py_ssize_t tap, Py_ssize_t stride, bint tracking, vec_flag *nan) noexcept nogil:
    """One column of windows at stride 1 or 2, a later one than the first; nothing behind that column is read."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(ordered)
    cdef vec_t a, b
    if stride == 1:
        return track_nan(vec_load(at + tap), tracking, nan, at)
    a, b = vec_load(at + tap - 1), vec_load(at + tap - 1 + lanes)
    if tracking:
        nan[0] = nan_or(nan[0], a, b, at)
    return vec_concat_odd(a, b, at)


cdef inline void argmax_row(Best *best, const ordered *at, const WindowColumns *row, Py_ssize_t stride, Py_ssize_t taps, bint tracking,
                             vec_flag *nan) noexcept nogil:
    """One row of windows; `stride` and `taps` are the row's, as constants where they are small."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(ordered), t = 1
    cdef Py_ssize_t half
    cdef vec_t a = vec_load(at), b, c, d
    cdef Best right
    best.key, best.place = a, row.places[0]
    if stride == 4:                     # four columns, each in a window
        b, c, d = vec_load(at + lanes), vec_load(at + 2 * lanes), vec_load(at + 3 * lanes)
        if tracking:
            nan[0] = nan_or(nan_or(nan[0], a, b, at), c, d, at)
        a, b, c, d = vec_concat_even(a, b, at), vec_concat_odd(a, b, at), vec_concat_even(c, d, at), vec_concat_odd(c, d, at)
        best.key = vec_concat_even(a, c, at)
        argmax_update(best, vec_concat_even(b, d, at), row.places[1], at)
        argmax_update(best, vec_concat_odd(a, c, at), row.places[2], at)
        argmax_update(best, vec_concat_odd(b, d, at), row.places[3], at)
        t = 4
    elif stride == 2:
        b = vec_load(at + lanes)
        if tracking:
            nan[0] = nan_or(nan[0], a, b, at)
        best.key = vec_concat_even(a, b, at)
        argmax_update(best, vec_concat_odd(a, b, at), row.places[1], at)
        t = 2
    elif taps > 1:
        b = vec_load(at + row.offsets[1])
        if tracking:
            nan[0] = nan_or(nan[0], a, b, at)
        argmax_update(best, b, row.places[1], at)
        t = 2
    elif tracking:
        nan[0] = nan_or(nan[0], a, a, at)
    if taps > 4 and stride < 4:         # in two halves, as each comparison waits for the one before
        half = (taps + 1) // 2
        right.key, right.place = load_strided_tap(at, row.offsets[half], stride, tracking, nan), row.places[half]
        for t in range(1, half):
            if t > 1:                   # (compared already)
                argmax_update(best, load_strided_tap(at, row.offsets[t], stride, tracking, nan), row.places[t], at)
            if half + t < taps:
                argmax_update(&right, load_strided_tap(at, row.offsets[half + t], stride, tracking, nan), row.places[half + t], at)
        argmax_update(best, right.key, right.place, at)
    else:
        for t in range(t, taps):
            argmax_update(best, load_strided_tap(at, row.offsets[t], stride, tracking, nan), row.places[t], at)
    best.place = vec_max_int(best.place, row.least, at)


cdef inline void argmax_rows(Best *best, const ordered *at, const WindowColumns *row, const WindowRows *rows, Py_ssize_t slabs, Py_ssize_t count,
                              Py_ssize_t stride, Py_ssize_t taps, bint tracking, vec_flag *nan) noexcept nogil:
    """`count` rows of windows, in every slab; `at` is where the first window starts."""
    cdef Py_ssize_t step = rows.tap_step, s, t
    cdef const ordered *slab
    cdef Best more
    argmax_row(best, at, row, stride, taps, tracking, nan)
    for s in range(slabs):
        slab = at + rows.slab_of[s] if slabs > 1 else at
        for t in range(0 if s else 1, count):
            argmax_row(&more, slab + t * step, row, stride, taps, tracking, nan)
            if slabs > 1:
                more.place = vec_add(more.place, rows.slab_places[s], at)
            argmax_update(best, more.key, vec_add(more.place, rows.places[t], at), at)


cdef inline void store_best(ordered *dst, char *indices, const Best *best, Py_ssize_t n, int64_t base, const Indices *to) noexcept nogil:
    """The first n lanes: values and indices."""
    store_lanes(dst, best.key, n * <Py_ssize_t>sizeof(ordered))
    store_vec_indices(indices, best.place, n, base, to.ramp, to.step, to.bytes, dst)


cdef inline void store_none(ordered *dst, char *indices, Py_ssize_t n, const Indices *to) noexcept nogil:
    """Windows without an element."""
    fill(dst, n, <ordered>lowest(dst))
    if to.bytes == 8:
        fill(<int64_t *>indices, n, <int64_t>-1)
    else:
        fill(<int32_t *>indices, n, <int32_t>-1)


cdef inline void argmax_column(ordered *dst, Py_ssize_t dst_row, char *indices, Py_ssize_t index_row, const ordered *src,
                             Py_ssize_t src_row, const WindowColumns *row, const WindowRows *rows, Py_ssize_t count, Py_ssize_t n, int64_t base,
                             int64_t base_row, const Indices *to, Py_ssize_t slabs, Py_ssize_t kernel, Py_ssize_t stride,
                             Py_ssize_t taps, vec_flag *nan) noexcept nogil:
    """`count` rows of windows that are inside, one vector of n windows wide."""
    cdef Py_ssize_t r
    cdef Best best
    for r in range(count):
        argmax_rows(&best, src, row, rows, slabs, kernel, stride, taps, nan != NULL, nan)
        store_best(dst, indices, &best, n, base, to)
        dst, indices, src, base = dst + dst_row, indices + index_row, src + src_row, base + base_row


cdef inline void copy_best(Best *to, const Best *best) noexcept nogil:
    to.key, to.place = best.key, best.place     # (one by one: both at once would be copied in halves)


cdef inline void slide_square_rows(ordered *dst, Py_ssize_t dst_row, char *indices, Py_ssize_t index_row, const ordered *src,
                                const WindowColumns *row, const WindowRows *rows, Py_ssize_t above, Py_ssize_t size, Py_ssize_t count,
                                Py_ssize_t n, int64_t base, int64_t base_row, const Indices *to, bint five, Py_ssize_t taps) noexcept nogil:
    """`count` windows of three or five rows, each a tap below the last: a row is compared once.

    The first window has `above` rows outside before `src`, where `size` rows a tap apart begin. In place of one outside
    stands the nearest inside, which its window has too (none is without), and with that one's position.
    """
    cdef Py_ssize_t tap = -above, left = count - 1 + (4 if five else 2)
    cdef vec_t back = vec_set(-base_row, src)
    cdef Best a, b, c, d, e, best
    argmax_row(&e, src, row, 1, taps, False, NULL)
    e.place = vec_add(e.place, vec_set(above * base_row, src), src)
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
            store_best(dst, indices, &best, n, base, to)
            dst, indices, base = dst + dst_row, indices + index_row, base + base_row
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
            argmax_row(&e, src + tap * rows.tap_step, row, 1, taps, False, NULL)
        else:
            e.place = vec_add(e.place, back, src)


cdef inline void slide_rows(ordered *dst, Py_ssize_t dst_row, char *indices, Py_ssize_t index_row, const ordered *src,
                            const WindowColumns *row, const WindowRows *rows, const Window *w, const Tile *tile, Py_ssize_t n, int64_t base,
                            const Indices *to, Py_ssize_t stride, Py_ssize_t taps) noexcept nogil:
    """All rows of a tile under any windows that share rows; `src` stands in the first row under the tile, as `base` does."""
    cdef vec_t keys[RING]
    cdef vec_t places[RING]             # (apart: a pair would be copied in halves, and read back before it is there)
    cdef Best best, lower
    cdef Py_ssize_t step = rows.step, dilation = w.dilation, made = 0, o, t, at, first, real, half
    for o in range(tile.row, tile.row + tile.rows):
        real = real_taps(w, o, &first)
        first -= tile.row_lo
        if dilation == 1:               # (else a later window may begin with an earlier row)
            made = imax(made, first)
        while made <= first + (real - 1) * dilation:
            argmax_row(&best, src + made * step, row, stride, taps, False, NULL)
            keys[made & (RING - 1)], places[made & (RING - 1)] = best.key, best.place
            made += 1
        if real == 0:
            store_none(dst, indices, n, to)
        else:
            best.key, best.place = keys[first & (RING - 1)], places[first & (RING - 1)]
            half = (real + 1) // 2
            at = (first + half * dilation) & (RING - 1)
            lower.key, lower.place = keys[at], vec_add(places[at], rows.places[half], src)
            for t in range(1, half):
                at = (first + t * dilation) & (RING - 1)
                argmax_update(&best, keys[at], vec_add(places[at], rows.places[t], src), src)
                if half + t < real:
                    at = (first + (half + t) * dilation) & (RING - 1)
                    argmax_update(&lower, keys[at], vec_add(places[at], rows.places[half + t], src), src)
            if real > 1:
                argmax_update(&best, lower.key, lower.place, src)
            store_best(dst, indices, &best, n, base + first * rows.place, to)
        dst, indices = dst + dst_row, indices + index_row


cdef inline void slide_down(ordered *dst, Py_ssize_t dst_row, char *indices, Py_ssize_t index_row, const ordered *src,
                            const WindowColumns *row, const WindowRows *rows, const Pool *p, const Tile *tile, Py_ssize_t n, int64_t base,
                            const Indices *to) noexcept nogil:
    """A tile's rows under windows that share rows: the smallest have loops of their own."""
    cdef Py_ssize_t residue, start, above, count, size, step = p.rows.dilation
    if p.slides_square:
        for residue in range(imin(step, tile.rows)):    # dilated rows: as many slides, in turns
            start = tile.row + residue - p.rows.begin
            above = ceil_div(imax(-start, 0), step)
            count, size = ceil_div(tile.rows - residue, step), (p.rows.size - 1 - start) // step + 1 - above
            start -= tile.row_lo
            if row.taps == 5:
                slide_square_rows(dst + residue * dst_row, step * dst_row, indices + residue * index_row, step * index_row,
                               src + (start + above * step) * rows.step, row, rows, above, size, count, n, base + start * rows.place,
                               step * rows.place, to, True, 5)
            else:
                slide_square_rows(dst + residue * dst_row, step * dst_row, indices + residue * index_row, step * index_row,
                               src + (start + above * step) * rows.step, row, rows, above, size, count, n, base + start * rows.place,
                               step * rows.place, to, False, 3)
    elif row.stride == 2:
        slide_rows(dst, dst_row, indices, index_row, src, row, rows, &p.rows, tile, n, base, to, 2, row.taps)
    else:
        slide_rows(dst, dst_row, indices, index_row, src, row, rows, &p.rows, tile, n, base, to, 1, row.taps)


cdef inline void argmax_inner(ordered *dst, Py_ssize_t dst_row, char *indices, Py_ssize_t index_row, const ordered *src,
                                 const WindowColumns *row, const WindowRows *rows, const Pool *p, Py_ssize_t count, Py_ssize_t n, int64_t base,
                                 const Indices *to, vec_flag *nan) noexcept nogil:
    """`count` inner rows of windows that share none, or few."""
    cdef Py_ssize_t down = p.rows.stride, src_row = down * rows.step, kernel = p.rows.kernel
    cdef int64_t base_row = down * rows.place
    if p.tracks_nan and row.stride == 4:
        argmax_column(dst, dst_row, indices, index_row, src, src_row, row, rows, count, n, base, base_row, to, rows.slabs, kernel, 4, 4,
                    nan)
    elif p.tracks_nan:
        argmax_column(dst, dst_row, indices, index_row, src, src_row, row, rows, count, n, base, base_row, to, 1, 2, 2, 2, nan)
    elif row.stride == 1:
        argmax_column(dst, dst_row, indices, index_row, src, src_row, row, rows, count, n, base, base_row, to, rows.slabs, kernel, 1,
                    row.taps, NULL)
    elif row.taps == 3 and kernel == 3 and rows.slabs == 1:
        argmax_column(dst, dst_row, indices, index_row, src, src_row, row, rows, count, n, base, base_row, to, 1, 3, 2, 3, NULL)
    else:
        argmax_column(dst, dst_row, indices, index_row, src, src_row, row, rows, count, n, base, base_row, to, rows.slabs, kernel, 2,
                    row.taps, NULL)


cdef inline void argmax_down(ordered *dst, Py_ssize_t dst_row, char *indices, Py_ssize_t index_row, const ordered *src,
                                const WindowColumns *row, const WindowRows *rows, const Pool *p, const Tile *tile, Py_ssize_t n, int64_t base,
                                const Indices *to, vec_flag *nan) noexcept nogil:
    """A tile's rows, one vector of n windows wide; `src` stands in the first row under the tile, as `base` does."""
    cdef Py_ssize_t last = tile.row + tile.rows, o = tile.row, count, real, first
    cdef Py_ssize_t begin = imax(o, imin(p.rows.inner_lo, last)), end = imax(begin, imin(p.rows.inner_hi, last))
    cdef vec_flag seen = nan[0]         # in a register
    cdef Best best
    index_row *= to.bytes
    if p.slides:
        slide_down(dst, dst_row, indices, index_row, src, row, rows, p, tile, n, base, to)
        o = last
    while o < last:
        real = real_taps(&p.rows, o, &first)
        first -= tile.row_lo
        count = 1
        if real == 0:
            store_none(dst, indices, n, to)
        elif o == begin and end > begin:
            count = end - begin
            argmax_inner(dst, dst_row, indices, index_row, src + first * rows.step, row, rows, p, count, n,
                            base + first * rows.place, to, &seen)
        else:
            argmax_rows(&best, src + first * rows.step, row, rows, rows.slabs, real, row.stride, row.taps, has_nans(src), &seen)
            store_best(dst, indices, &best, n, base + first * rows.place, to)
        o, dst, indices = o + count, dst + count * dst_row, indices + count * index_row
    nan[0] = seen


cdef inline vec_t least_places(Py_ssize_t start, const Pool *p, const ordered *tag) noexcept nogil:
    """Per lane, the position of a window's first column inside; the first lane's window starts in column `start` < 0."""
    cdef int64_t place[32]             # lanes of 16 bits in the longest vector
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(ordered), i, taps
    for i in range(lanes):
        taps = imax(0, -(start + i * p.cols.stride))
        if p.cols.dilation > 1:
            taps = ceil_div(taps, p.cols.dilation) * p.cols.dilation
        place[i] = taps * p.index_col
    return vec_from_int64(place, tag)


cdef inline void argmax_plane(ordered *dst, Py_ssize_t dst_row, char *indices, Py_ssize_t index_row, const ordered *src, WindowColumns *row,
                               const WindowRows *rows, const Pool *p, const Tile *tile, int64_t base, const Indices *to,
                               vec_flag *nan) noexcept nogil:
    """Channels first: one plane of a tile, in columns of one vector. `src` is its first element, but `base` in column 0."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(ordered), n = tile.cols, o = 0, start
    while True:
        start = (tile.col + o) * p.cols.stride - p.cols.begin
        row.least = vec_set(0, dst)
        if start < 0:
            row.least = row.first_least if o == 0 else least_places(start, p, dst)
        argmax_down(dst + o, dst_row, indices + o * to.bytes, index_row, src + start - tile.col_lo, row, rows, p, tile,
                       imin(lanes, n - o), base + start * p.index_col, to, nan)
        if o + lanes >= n:
            return
        o = imin(o + lanes, n - lanes)


cdef void copy_taps(ordered *slab, Py_ssize_t pitch, const View *x, Py_ssize_t at, const Pool *p, const Tile *tile, bint in_keys,
                    vec_flag *nan) noexcept nogil:
    """The input under a tile, from x's element `at` on, as rows in `slab`."""
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo, n = tile.channels, zero = 0, r
    cdef const ordered *src = <const ordered *>x.data + at
    if ordered is int16_t or ordered is int32_t or ordered is int64_t:
        if in_keys and p.channels_last:
            load_keys(slab, x, at, p, tile)
            return
        if in_keys:
            keys_loader(p.code, <int>sizeof(ordered))(slab, pitch, x.data + at * p.size, x.row, rows, cols, p.rule)
            return
    if x.col == n or cols == 1:
        window_rows(slab, pitch, src, x.row, &zero, 1, rows, cols * n, nan)
        return
    for r in range(rows):
        window_rows(slab + r * pitch, n, src + r * x.row, x.col, &zero, 1, cols, n, nan)


cdef inline void argmax_pixel_run(ordered *dst, Py_ssize_t dst_col, char *indices, Py_ssize_t index_col, const ordered *src,
                                Py_ssize_t src_col, const WindowColumns *row, const WindowRows *rows, Py_ssize_t slabs, Py_ssize_t real,
                                Py_ssize_t taps, Py_ssize_t pixels, Py_ssize_t n, int64_t base, int64_t pixel_base,
                                const Indices *to, vec_flag *nan) noexcept nogil:
    """Channels last: neighbouring windows of `real` rows and `taps` columns."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(ordered), o, i
    cdef vec_flag seen = nan[0]
    cdef Best best
    for o in range(pixels):
        i = 0
        while True:
            argmax_rows(&best, src + i, row, rows, slabs, real, 1, taps, has_nans(src), &seen)
            store_best(dst + i, indices + i * to.bytes, &best, imin(lanes, n - i), base + i * to.step, to)
            if i + lanes >= n:
                break
            i = imin(i + lanes, n - lanes)
        dst, indices, src, base = dst + dst_col, indices + index_col * to.bytes, src + src_col, base + pixel_base
    nan[0] = seen


cdef inline void argmax_pixels(ordered *dst, Py_ssize_t dst_row, Py_ssize_t dst_col, char *indices, const View *z,
                                const ordered *src, Py_ssize_t src_col, const WindowColumns *row, const WindowRows *rows, const Pool *p,
                                const Tile *tile, int64_t base, const Indices *to, vec_flag *nan) noexcept nogil:
    """A channels-last tile; `src` is its first element, `base` that one's index. As pool_direct_pixels."""
    cdef Py_ssize_t r, o, i, first_row, first_col, real, taps, count, at, last = tile.col + tile.cols, n = tile.channels
    cdef Py_ssize_t begin = imax(tile.col, imin(p.cols.inner_lo, last)), end = imax(begin, imin(p.cols.inner_hi, last))
    cdef const ordered *start
    cdef ordered *values
    cdef int64_t first
    for r in range(tile.rows):
        real = real_taps(&p.rows, tile.row + r, &first_row)
        o = tile.col
        while o < last:
            taps = real_taps(&p.cols, o, &first_col)
            count = end - begin if o == begin and end > begin else 1
            values, at = dst + r * dst_row + (o - tile.col) * dst_col, r * z.row + (o - tile.col) * z.col
            start = src + (first_row - tile.row_lo) * rows.step + (first_col - tile.col_lo) * src_col
            first = base + (first_row - tile.row_lo) * rows.place + (first_col - tile.col_lo) * p.index_col
            if real == 0 or taps == 0:
                for i in range(count):
                    store_none(values + i * dst_col, indices + (at + i * z.col) * to.bytes, n, to)
            elif taps == 2 and real == 2 and rows.slabs == 1:
                argmax_pixel_run(values, dst_col, indices + at * to.bytes, z.col, start, p.cols.stride * src_col, row, rows, 1, 2, 2,
                               count, n, first, p.cols.stride * p.index_col, to, nan)
            elif taps == 3 and real == 3 and rows.slabs == 1:
                argmax_pixel_run(values, dst_col, indices + at * to.bytes, z.col, start, p.cols.stride * src_col, row, rows, 1, 3, 3,
                               count, n, first, p.cols.stride * p.index_col, to, nan)
            else:
                argmax_pixel_run(values, dst_col, indices + at * to.bytes, z.col, start, p.cols.stride * src_col, row, rows, rows.slabs,
                               real, taps, count, n, first, p.cols.stride * p.index_col, to, nan)
            o += count


cdef void place_taps(WindowColumns *row, WindowRows *rows, Indices *to, const Pool *p, const View *x, const Tile *tile, const Py_ssize_t *counts, Py_ssize_t total, Py_ssize_t pitch, Py_ssize_t area, bint in_place, const ordered *tag) noexcept nogil:
    """Where taps stand, in x or in a copy of `area` elements a slab, and what they add to an index."""
    cdef Py_ssize_t t, pixel = 1
    if p.channels_last:
        pixel = x.col if in_place else tile.channels
    row.stride, row.taps = 1 if p.channels_last else p.cols.stride, p.cols.kernel
    row.least = row.first_least = vec_set(0, tag)
    if not p.channels_last and tile.left:
        row.first_least = least_places(-tile.left, p, tag)
    for t in range(row.taps):
        row.offsets[t] = t * p.cols.dilation * pixel
        row.places[t] = vec_set(t * p.cols.dilation * p.index_col, tag)
    rows.step, rows.place, rows.slabs = x.row if in_place else pitch, p.index_row, total
    rows.tap_step = rows.step * p.rows.dilation
    for t in range(p.rows.kernel):
        rows.places[t] = vec_set(t * p.rows.dilation * p.index_row, tag)
    for t in range(total):
        rows.slab_of[t] = lead_offset(p, x.lead, counts, t) if in_place else t * area
        rows.slab_places[t] = vec_set(lead_offset(p, p.index_lead, counts, t), tag)
    to.step = p.index_channel if p.channels_last else p.cols.stride * p.index_col
    to.ramp, to.bytes = vec_iota(to.step), <int>p.index_bytes


cdef bint tile_taps(const Pool *p, const View *x, const View *y, const View *z, const Tile *tile, Scratch *scratch, bint in_keys, ordered *tag) noexcept nogil:
    """One tile of values (y) and indices (z). False, and nothing promised, if there is a NaN under it."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(ordered), n = tile.channels
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo, out = tile.cols * n
    cdef Py_ssize_t pitch = cols * n, left = 0, dst_row = y.row, dst_col = y.col, first, total, plane, t
    cdef Py_ssize_t counts[MAX_LEADS]
    cdef bint in_place = not in_keys
    cdef vec_flag nan = flag_none(), unused = flag_none()       # (behind a copy stands anything)
    cdef Areas areas
    split_scratch(&areas, p, scratch.area)
    cdef ordered *slab = <ordered *>areas.slab
    cdef ordered *dst
    cdef const ordered *src
    cdef char *indices
    cdef WindowColumns row
    cdef WindowRows each
    cdef Indices to
    cdef int64_t base = tile_base(p, tile)
    total = lead_taps(p, x, tile.lead, counts, &first)
    if p.channels_last:
        in_place = in_place and n >= lanes
    else:
        in_place = in_place and tile.span == cols and tile.cols >= lanes
        pitch, left = round_up(lanes + tile.span, lanes), tile.left
    place_taps(&row, &each, &to, p, x, tile, counts, total, pitch, rows * pitch, in_place, tag)
    if not in_place:
        for plane in range(tile.planes):
            for t in range(total):
                copy_taps(slab + left + (plane * total + t) * rows * pitch, pitch, x,
                          input_offset(p, x, tile, plane) + first + lead_offset(p, x.lead, counts, t), p, tile, in_keys, &nan)
        if not p.channels_last:
            fill_margins(slab, pitch, 0, tile, tile.planes * total * rows)
    if in_keys:
        dst_row, dst_col = out, n
    for plane in range(tile.planes):
        dst = <ordered *>areas.pooled + plane * tile.rows * out
        if not in_keys:
            dst = <ordered *>y.data + output_offset(p, y, tile, plane)
        indices = z.data + output_offset(p, z, tile, plane) * to.bytes
        src = slab + left + plane * total * rows * pitch
        if in_place:
            src = <const ordered *>x.data + input_offset(p, x, tile, plane) + first
        if total == 0 or rows == 0 or cols == 0:
            store_none_tile(dst, dst_row, dst_col, indices, z, tile, &to)
        elif p.channels_last:
            argmax_pixels(dst, dst_row, dst_col, indices, z, src, x.col if in_place else n, &row, &each, p, tile, base, &to,
                           &nan if in_place else &unused)
        else:
            if in_place and has_nans(tag) and not p.tracks_nan:
                for t in range(total):
                    track_nan_rows(src + each.slab_of[t], x.row, rows, cols, &nan)
            argmax_plane(dst, dst_row, indices, z.row, src, &row, &each, p, tile, base + plane_base(p, tile.plane + plane), &to,
                          &nan if in_place and p.tracks_nan else &unused)
    if in_keys:
        for plane in range(tile.planes):
            store_taps(y, tile, plane, <const ordered *>areas.pooled + plane * tile.rows * out, p)
    return not flag_any(nan)


cdef inline void store_none_tile(ordered *dst, Py_ssize_t dst_row, Py_ssize_t dst_col, char *indices, const View *z, const Tile *tile,
                              const Indices *to) noexcept nogil:
    cdef Py_ssize_t r, c
    for r in range(tile.rows):
        for c in range(tile.cols):
            store_none(dst + r * dst_row + c * dst_col, indices + (r * z.row + c * z.col) * to.bytes, tile.channels, to)


cdef inline void store_taps(const View *y, const Tile *tile, Py_ssize_t plane, const ordered *pooled, const Pool *p) noexcept nogil:
    if ordered is int16_t or ordered is int32_t or ordered is int64_t:
        store_keys(y, tile, plane, 0, tile.rows, pooled, p)
