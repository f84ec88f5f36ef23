# Takes:   windows with indices, all taps in registers: windows that slide to 8 x 8 (16 x 16 with
#          masks), others to 64 taps, channels last to 64 along each axis if no two share an
#          element; channels first, columns at stride 1, 2 or 4
# Reads:   the input in place, or from a copy with margins where windows hang over the sides
# Scratch: the copy (SLAB); keys of the outputs (POOLED)
# Wins:    AVX-512: float32 1x64x112x112 k3 s2 902 -> 480 us, 1x64x224x224 k2 s2 3840 -> 2630,
#          1x192x28x28 k3 430 -> 218, channels last 1x112x112x64 k3 s2 597 -> 255. AVX2, baseline:
#          1x64x112x112 k2 s2 923, 1510 -> 375, 539. Windows that slide, k16: 577 -> 528 (AVX-512);
#          above 8 AVX2 loses (1x64x40x40 k9 539 -> 592). Channels last, int32 1x23x500x64 k31x11
#          s31x11 327 -> 115 (AVX2).
#
# argmax.pxi compares the taps, sliding_taps.pxi keeps rows that windows share.

cdef inline void argmax_inner(const Outputs *to, const ordered *src, const WindowColumns *cols,
                              const WindowRows *rows, const Pool *p, Py_ssize_t step,
                              int64_t base_step, Py_ssize_t count, vec_flag *nan) noexcept nogil:
    """Pool `count` vectors of inner windows that share no rows, or few, `step` elements apart."""
    cdef Py_ssize_t kernel = p.frame.problem.rows.kernel
    cdef Compared c
    c.slabs, c.rows, c.taps, c.stride = rows.slabs, kernel, cols.taps, 2
    if p.taps.tracks_nan and cols.stride == 4:
        c.taps, c.stride = 4, 4
        argmax_column(to, src, cols, rows, step, base_step, count, &c, nan)
    elif p.taps.tracks_nan:
        c.slabs, c.rows, c.taps = 1, 2, 2
        argmax_column(to, src, cols, rows, step, base_step, count, &c, nan)
    elif cols.stride == 1:
        c.stride = 1
        argmax_column(to, src, cols, rows, step, base_step, count, &c, NULL)
    elif cols.taps == 3 and kernel == 3 and rows.slabs == 1:
        c.slabs, c.rows, c.taps = 1, 3, 3
        argmax_column(to, src, cols, rows, step, base_step, count, &c, NULL)
    else:
        argmax_column(to, src, cols, rows, step, base_step, count, &c, NULL)


cdef inline Py_ssize_t argmax_down(const Outputs *first, const ordered *src,
                                   const WindowColumns *cols, const WindowRows *rows, const Pool *p,
                                   const Tile *tile, Py_ssize_t across,
                                   vec_flag *nan) noexcept nogil:
    """Pool the rows of a tile, one vector of windows wide, or a tile's only row, `across` wide.

    `src` is in the first row under the tile, as the base of the outputs is. Return the width.
    """
    cdef const Window *w = &p.frame.problem.rows
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(ordered), step = w.stride * rows.step
    cdef Py_ssize_t last = tile.row + tile.rows, o = tile.row, count, real, row, wide = 1
    cdef int64_t base_step = w.stride * rows.place
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
    elif tile.rows == 1:                # (uint8 1x136x398 k7: 207 -> 109 us)
        step = lanes * p.frame.problem.cols.stride
        to.row, to.index_row, base_step = lanes, lanes * to.how.bytes, step * p.indexing.col
    while o < last:
        real = real_taps(w, o, &row)
        row -= tile.row_lo
        to.base = base + row * rows.place
        count = 1
        if real == 0:
            store_none(&to, src)
        elif o == begin and end > begin:
            count, wide = end - begin, across if tile.rows == 1 else 1
            argmax_inner(&to, src + row * rows.step, cols, rows, p, step, base_step,
                         imax(count, wide), &seen)
        else:
            c.slabs, c.rows, c.taps, c.stride = rows.slabs, real, cols.taps, cols.stride
            argmax_rows(&best, src + row * rows.step, cols, rows, &c, &seen)
            store_best(<ordered *>to.values, to.indices, &best, to.n, to.base, to.how)
        o += count
        next_rows(&to, count, 0, src)
    nan[0] = seen
    return wide


cdef inline vec_t least_places(Py_ssize_t start, const Pool *p, const ordered *tag) noexcept nogil:
    """Return, per lane, the position of a window's first column inside.

    The window of the first lane starts in column `start` < 0.
    """
    cdef const Window *cols = &p.frame.problem.cols
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
    cdef const Window *w = &p.frame.problem.cols
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(ordered), n = tile.cols, o = 0
    cdef Py_ssize_t start, across
    cdef Outputs to = plane[0]
    while True:
        start = (tile.col + o) * w.stride - w.begin
        cols.least, across = vec_set_int(0, src), imax(1, (n - o) // lanes)
        if start < 0:
            across = 1
            cols.least = cols.first_least if o == 0 else least_places(start, p, src)
        to.values = <ordered *>plane.values + o
        to.indices = plane.indices + o * to.how.bytes
        to.base = plane.base + start * p.indexing.col
        to.n = imin(lanes, n - o)
        o += lanes * argmax_down(&to, src + start - tile.col_lo, cols, rows, p, tile, across, nan)
        if o >= n:
            return
        o = imin(o, n - lanes)


cdef void copy_taps(ordered *slab, Py_ssize_t pitch, const View *x, Py_ssize_t at, const Pool *p,
                    const Tile *tile, bint in_keys, vec_flag *nan) noexcept nogil:
    """Copy the input under a tile, from x's element `at` on, to rows in `slab`."""
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t n = tile.channels, r
    cdef const ordered *src = <const ordered *>x.data + at
    if ordered is int16_t or ordered is int32_t or ordered is int64_t:
        if in_keys and p.frame.problem.channels_last:
            load_keys(slab, x, at, p, tile)
            return
        if in_keys:
            keys_loader(p.frame.problem.code, <int>sizeof(ordered))(
                slab, pitch, x.data + at * p.frame.problem.size, x.row, rows, cols, p.rule)
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
    cdef const Window *w = &p.frame.problem.cols
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
        c.rows = real_taps(&p.frame.problem.rows, tile.row + r, &row)
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
    cdef const Problem *problem = &p.frame.problem
    cdef const Indexing *indexing = &p.indexing
    cdef Py_ssize_t t, at, pixel = 1
    if problem.channels_last:
        pixel = x.col if slabs.in_place else tile.channels
    cols.stride = 1 if problem.channels_last else problem.cols.stride
    cols.taps = problem.cols.kernel
    cols.least = cols.first_least = vec_set_int(0, tag)
    if not problem.channels_last and tile.left:
        cols.first_least = least_places(-tile.left, p, tag)
    for t in range(cols.taps):
        cols.offsets[t] = t * problem.cols.dilation * pixel
        cols.places[t] = vec_set_int(t * problem.cols.dilation * indexing.col, tag)
    rows.step, rows.place = x.row if slabs.in_place else slabs.pitch, indexing.row
    rows.slabs, rows.tap_step = slabs.count, rows.step * problem.rows.dilation
    for t in range(problem.rows.kernel):
        rows.places[t] = vec_set_int(t * problem.rows.dilation * indexing.row, tag)
    for t in range(slabs.count):
        rows.slab_of[t] = t * slabs.elements
        if slabs.in_place:
            rows.slab_of[t] = lead_offset(problem, x.lead, slabs.taps, t)
        at = lead_offset(problem, indexing.lead, slabs.taps, t)
        rows.slab_places[t] = vec_set_int(at, tag)
    how.step = indexing.channel if problem.channels_last else problem.cols.stride * indexing.col
    how.iota, how.bytes = vec_iota(how.step), <int>indexing.bytes


cdef bint tile_taps(const Pool *p, const Job *job, const Tile *tile, Scratch *scratch, bint in_keys,
                    ordered *tag) noexcept nogil:
    """Pool one tile to values and indices.

    Return False if its input holds a NaN. The outputs are then undefined, and the caller pools the
    tile again `in_keys`.
    """
    cdef const Problem *problem = &p.frame.problem
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
    if ordered is int16_t or ordered is int32_t or ordered is int64_t:
        if in_keys:
            for plane in range(tile.planes):
                at = plane * tile.rows * out
                store_keys(y, tile, plane, 0, tile.rows, <const ordered *>pooled + at, p)
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


cdef int plan_taps(Pool *p, schedule) except -1:
    """Set how windows are compared."""
    cdef const Problem *problem = &p.frame.problem
    cdef const Window *rows = &problem.rows
    cdef const Window *cols = &problem.cols
    cdef TapsChoice *taps = &p.taps
    cdef Py_ssize_t slabs = 1, i
    for i in range(problem.leads):
        slabs *= problem.lead[i].kernel
    if max(slabs, rows.kernel, cols.kernel) > MAX_TAPS:     # (the arrays of `place_taps`)
        raise ValueError(f"taps: {slabs} slabs of {rows.kernel} x {cols.kernel}")
    if problem.channels_last:
        return 0
    taps.slides, taps.slides_square = schedule.slides, schedule.slides_square
    # Windows that share nothing read everything once, from memory: a search for NaN before would
    # cost a fifth (1x64x224x224 k2 s2 2035 -> 2550 us).
    taps.tracks_nan = not taps.slides and cols.stride == 4
    if not taps.slides and slabs == 1 and cols.stride == cols.kernel == rows.kernel == 2:
        taps.tracks_nan = True
    return 0


cdef void taps_scratch(const Pool *p, Py_ssize_t *size) noexcept nogil:
    """Set the sizes of SLAB and POOLED, in keys."""
    cdef const Problem *problem = &p.frame.problem
    cdef Py_ssize_t lanes = VEC_BYTES // p.key_bytes, n = p.frame.tiling.channels, slabs = 1, i
    cdef Py_ssize_t rows = (p.frame.tiling.rows - 1) * problem.rows.stride + problem.rows.extent
    cdef Py_ssize_t span = (p.frame.tiling.cols - 1) * problem.cols.stride + problem.cols.extent
    cdef Py_ssize_t pitch = round_up(lanes + span, lanes)
    if problem.channels_last:
        pitch = imin(span, problem.cols.size) * n
    for i in range(problem.leads):
        slabs *= problem.lead[i].kernel
    size[<int>SLAB] = p.frame.tiling.planes * slabs * imin(rows, problem.rows.size) * pitch
    size[<int>POOLED] = p.frame.tiling.planes * p.frame.tiling.rows * p.frame.tiling.cols * n
