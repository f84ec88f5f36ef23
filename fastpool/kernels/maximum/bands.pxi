# One tile of values.
#
# A max over a box is one pass per axis. Rows go first, into a band of scratch; the column pass reads it only when the whole
# band is there (a row read back right after it was stored stalls on store forwarding). Long windows are running maxima
# between middles (`herk`), along lanes a chain of passes with few taps each (_schedule.py). Where a pass has inner
# elements beside each other (rows of any layout, columns of channels-last) windows hanging over the edge drop taps; along
# lanes the band has margins that hold the lowest value.


cdef void row_pass(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step, Py_ssize_t origin,
                   const Window *w, Py_ssize_t first, Py_ssize_t count, Py_ssize_t n, number *chain,
                   const Leads *leads, vec_flag *nan, const Keys *keys) noexcept nogil:
    """Outputs first ... first + count of one axis; each is a row of n elements. `src` is element `origin` of that axis.

    Unless nan is NULL, NaN are noted there; unless keys is NULL, src is input yet to be made keys (of long windows only).
    """
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef Py_ssize_t o, begin, end, ntaps
    if w.steps > 1:
        long_row_pass(dst, dst_step, src, src_step, origin, w, first, count, n, chain, nan, keys)
        return
    ntaps = cross(taps, leads, w.kernel, w.dilation * src_step)
    begin = imax(first, imin(w.inner_lo, first + count))
    end = imax(begin, imin(w.inner_hi, first + count))
    src += (begin * w.stride - w.begin - origin) * src_step     # where the first inner output starts
    if lanes <= n <= 4 * lanes:
        # Short rows: top to bottom in columns of one vector, or the edges would cost more than the middle.
        o = 0
        while o < n:
            o = imin(o, n - lanes)
            column_edge(dst + o, dst_step, src + o, src_step, w, first, begin, begin, leads, nan)
            window_column(dst + (begin - first) * dst_step + o, dst_step, src + o, w.stride * src_step, taps, ntaps,
                          end - begin, nan)
            column_edge(dst + (end - first) * dst_step + o, dst_step, src + o, src_step, w, end, first + count, begin, leads, nan)
            o += lanes
        return
    window_rows(dst + (begin - first) * dst_step, dst_step, src, w.stride * src_step, taps, ntaps, end - begin, n, nan)
    src -= (begin * w.stride - w.begin - origin) * src_step
    for o in range(first, begin):
        border_row(dst + (o - first) * dst_step, 0, src, 0, src_step, origin, w, o, 1, n, leads, nan)
    for o in range(end, first + count):
        border_row(dst + (o - first) * dst_step, 0, src, 0, src_step, origin, w, o, 1, n, leads, nan)


cdef inline void column_edge(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step, const Window *w,
                             Py_ssize_t first, Py_ssize_t end, Py_ssize_t inner, const Leads *leads,
                             vec_flag *nan) noexcept nogil:
    """Outputs first ... end that hang over an edge, one vector wide; `src` is where output `inner` starts."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef Py_ssize_t o, l, t, real, lo
    cdef const number *at
    cdef vec_t best
    for o in range(first, end):
        real = real_taps(w, o, &lo)
        if real == 0:
            fill(dst, lanes, <number>lowest(dst))
        else:
            at = src + (lo - (inner * w.stride - w.begin)) * src_step
            best = noted(vec_load(at + leads.offsets[0]), src, nan != NULL, nan)
            for l in range(leads.count):
                for t in range(real):
                    best = vec_max(best, noted(vec_load(at + leads.offsets[l] + t * w.dilation * src_step), src, nan != NULL, nan), src)
            vec_store(dst, best)
        dst += dst_step


cdef inline void border_row(number *dst, Py_ssize_t dst_plane, const number *src, Py_ssize_t src_plane, Py_ssize_t src_step,
                            Py_ssize_t origin, const Window *w, Py_ssize_t output, Py_ssize_t planes, Py_ssize_t n,
                            const Leads *leads, vec_flag *nan) noexcept nogil:
    """One output row, of only those taps that are elements, in each of `planes` planes."""
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef Py_ssize_t lo, plane, real = real_taps(w, output, &lo)
    if real == 0:
        for plane in range(planes):
            fill(dst + plane * dst_plane, n, <number>lowest(dst))
        return
    real = cross(taps, leads, real, w.dilation * src_step)
    window_rows(dst, dst_plane, src + (lo - origin) * src_step, src_plane, taps, real, planes, n, nan)


cdef inline Py_ssize_t lane_pitch(const Pool *p, Py_ssize_t span, Py_ssize_t left, Py_ssize_t lanes,
                                  Py_ssize_t *data) noexcept nogil:
    """Elements from one band row to the next, and where a row's first column stands: aligned, but for chains, whose dense
    passes would pay for the gaps."""
    data[0] = 0
    if p.cols.steps > 1:
        return span
    data[0] = round_up(left, lanes) - left
    return round_up(data[0] + span, lanes)


cdef void lane_pass(number *dst, Py_ssize_t dst_step, number *band, number *dense, Py_ssize_t pitch, const Window *w,
                    Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """The column pass where columns are lanes: rows of `band`, margins in place, to n outputs each.

    A chain goes through `dense`, which may be `band`.
    """
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef Py_ssize_t step, r, i, last = w.steps - 1
    cdef bint vector = lane_stride(w)
    cdef number *src = band
    for step in range(w.steps):
        step_taps(taps, w, step, 1)
        if step == last and vector:
            break
        window_run(dense, src, taps, w.taps[step], round_up(rows * pitch, lanes), NULL)
        src = dense
    if not vector:
        for r in range(rows):
            for i in range(n):
                dst[r * dst_step + i] = src[r * pitch + i * w.stride]
    elif w.stride == 1:
        window_rows(dst, dst_step, src, pitch, taps, w.taps[last], rows, n, NULL)
    else:
        window_every(dst, dst_step, src, pitch, taps, w.taps[last], w.stride, rows, n)


cdef void direct_pass(number *dst, Py_ssize_t dst_row, Py_ssize_t dst_col, const number *src, Py_ssize_t src_row,
                      Py_ssize_t src_col, Py_ssize_t row_origin, Py_ssize_t col_origin, const Pool *p,
                      const Tile *tile, const Leads *leads, vec_flag *nan) noexcept nogil:
    """Channels-last, all taps of a small window at once: no scratch. Every output row, its inner columns in one go."""
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef Py_ssize_t r, o, i, l, t, rows, cols, row, col, count, ntaps, last = tile.col + tile.cols
    cdef Py_ssize_t begin = imax(tile.col, imin(p.cols.inner_lo, last)), end = imax(begin, imin(p.cols.inner_hi, last))
    cdef number *to
    for r in range(tile.rows):
        rows = real_taps(&p.rows, tile.row + r, &row)
        o = tile.col
        while o < last:
            cols = real_taps(&p.cols, o, &col)
            count = end - begin if o == begin and end > begin else 1
            to = dst + r * dst_row + (o - tile.col) * dst_col
            if rows == 0 or cols == 0:
                for i in range(count):
                    fill(to + i * dst_col, tile.channels, <number>lowest(dst))
            else:
                ntaps = 0
                for l in range(leads.count):
                    for i in range(rows):
                        for t in range(cols):
                            taps[ntaps] = leads.offsets[l] + i * p.rows.dilation * src_row + t * p.cols.dilation * src_col
                            ntaps += 1
                window_rows(to, dst_col, src + (row - row_origin) * src_row + (col - col_origin) * src_col,
                            p.cols.stride * src_col, taps, ntaps, count, tile.channels, nan)
            o += count


cdef void rows_of_pixels(number *band, Py_ssize_t pitch, const number *src, Py_ssize_t src_row, Py_ssize_t src_col,
                         const Pool *p, const Tile *tile, number *chain, const Leads *leads, vec_flag *nan,
                         const Keys *keys) noexcept nogil:
    """The row pass under a channels-last tile: one run where its pixels lie side by side, else pixel by pixel."""
    cdef Py_ssize_t n = tile.channels, cols = tile.col_hi - tile.col_lo, c
    if src_col == n:
        row_pass(band, pitch, src, src_row, tile.row_lo, &p.rows, tile.row, tile.rows, cols * n, chain, leads, nan,
                 keys)
        return
    for c in range(cols):
        row_pass(band + c * n, pitch, element(src, c * src_col, keys), src_row, tile.row_lo, &p.rows, tile.row, tile.rows, n, chain, leads,
                 nan, keys)


cdef void fill_margins(number *band, Py_ssize_t pitch, Py_ssize_t data, const Tile *tile, Py_ssize_t rows) noexcept nogil:
    cdef Py_ssize_t real = tile.col_hi - tile.col_lo, r
    for r in range(rows):
        fill(band + r * pitch + data, tile.left, <number>lowest(band))
        fill(band + r * pitch + data + tile.left + real, tile.span - tile.left - real, <number>lowest(band))


cdef void gather_leads(number *slab, const number *src, const View *x, const Pool *p, const Tile *tile,
                       const Py_ssize_t *counts, Py_ssize_t total, vec_flag *nan) noexcept nogil:
    """The pass over the leading axes: the input under a tile, dense in `slab`, the maximum of `total` slabs."""
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo, n = tile.channels
    cdef Py_ssize_t done = 0, count, t, r, c
    cdef bint whole = x.col == n or cols == 1
    if whole and x.row == cols * n:
        cols, rows = rows * cols, 1
    while done < total:
        count = imin(total - done, MAX_TAPS)
        for t in range(count):
            taps[t] = lead_offset(p, x.lead, counts, done + t)
        for r in range(rows):
            for c in range(1 if whole else cols):
                accumulate(slab + (r * cols + c) * n, src + r * x.row + c * x.col, taps, count,
                           cols * n if whole else n, done > 0, nan)
        done += count


cdef inline void accumulate(number *dst, const number *src, const Py_ssize_t *taps, Py_ssize_t ntaps, Py_ssize_t n,
                            bint more, vec_flag *nan) noexcept nogil:
    """A row of windows; with `more`, on top of what dst holds."""
    cdef Py_ssize_t t
    cdef Py_ssize_t both[2]
    if not more:
        window_rows(dst, 0, src, 0, taps, ntaps, 1, n, nan)
        return
    both[0] = 0
    for t in range(ntaps):
        both[1] = (<char *>(src + taps[t]) - <char *>dst) // <Py_ssize_t>sizeof(number)
        window_rows(dst, 0, <const number *>dst, 0, both, 2, 1, n, nan)


cdef void gather_keys(lane *slab, const View *x, Py_ssize_t at, const Pool *p, const Tile *tile, const Py_ssize_t *counts,
                      Py_ssize_t total, lane *spare) noexcept nogil:
    """The same for input that is pooled as keys: `at` is its offset in x."""
    cdef Py_ssize_t both[2]
    cdef Py_ssize_t elements = (tile.row_hi - tile.row_lo) * (tile.col_hi - tile.col_lo) * tile.channels, t
    for t in range(total):
        load_keys(slab if t == 0 else spare, x, at + lead_offset(p, x.lead, counts, t), p, tile)
        if t > 0:
            both[0], both[1] = 0, spare - slab
            window_rows(slab, 0, <const lane *>slab, 0, both, 2, 1, elements, NULL)


cdef inline void load_keys(lane *keys, const View *x, Py_ssize_t at, const Pool *p, const Tile *tile) noexcept nogil:
    """The input under a tile as keys, rows x columns x channels, dense."""
    cdef keys_load_t load = keys_loader(p.code, <int>sizeof(lane))
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo, n = tile.channels, r
    cdef int rule = p.rule
    if x.col == n or cols == 1:
        load(keys, cols * n, x.data + at * p.size, x.row, rows, cols * n, rule)
        return
    for r in range(rows):
        load(keys + r * cols * n, n, x.data + (at + r * x.row) * p.size, x.col, cols, n, rule)


cdef void pool_box(number *y, Py_ssize_t y_row, Py_ssize_t y_col, const number *src, Py_ssize_t src_row, Py_ssize_t src_col,
                   const Pool *p, const Tile *tile, number *band, number *chain, const Leads *leads,
                   vec_flag *nan) noexcept nogil:
    """Rows and columns of a channels-last tile; `src` is its first real row and column."""
    cdef Py_ssize_t n = tile.channels, pitch = (tile.col_hi - tile.col_lo) * n, r
    cdef Leads one
    if p.direct:
        direct_pass(y, y_row, y_col, src, src_row, src_col, tile.row_lo, tile.col_lo, p, tile, leads, nan)
        return
    one.count, one.offsets[0] = 1, 0
    rows_of_pixels(band, pitch, src, src_row, src_col, p, tile, chain, leads, nan, NULL)
    for r in range(tile.rows):
        row_pass(y + r * y_row, y_col, <const number *>(band + r * pitch), n, tile.col_lo, &p.cols, tile.col, tile.cols, n,
                 chain, &one, NULL, NULL)


cdef inline bint few_leads(const Pool *p, Py_ssize_t total) noexcept nogil:
    """Fewer loads to take the leading axes' taps with those of the next pass than in a pass of their own?"""
    if p.direct:
        return total * p.rows.kernel * p.cols.kernel <= MAX_TAPS
    return p.rows.steps == 1 and total * p.rows.kernel <= imin(total + p.rows.kernel + 2, MAX_TAPS)


cdef inline bint planes_touch(const Pool *p, const View *y) noexcept nogil:
    """Do the rows of one plane go on in the next? (Tiles of several planes hold whole planes.)"""
    return y.channel == p.rows.out * y.row and evenly_spaced(p, y)


cdef inline bint fits_form(const Pool *p, const View *x, const View *y, Py_ssize_t rows, Py_ssize_t cols) noexcept nogil:
    """May a tile be taken as p.form says? Some forms need rows and planes that lie side by side."""
    cdef Py_ssize_t plane = p.rows.size * p.cols.size
    if p.form < WHOLE:
        return True
    if p.form == WHOLE:
        return x.row == cols or rows == 1
    if p.batch * p.channels > 1:
        if x.channel != plane or y.channel != p.rows.out * p.cols.out or not (evenly_spaced(p, x) and evenly_spaced(p, y)):
            return False
    return (x.row == p.cols.size or p.rows.size == 1) and (y.row == p.cols.out or p.rows.out == 1)


cdef bint tile_folded(number *to, const number *src, Py_ssize_t src_row, const Pool *p, const View *y, const Tile *tile,
                      number *band, number *row, number *chain, const Leads *leads) noexcept nogil:
    """A channels-last tile of a few channels: its pixels are one row of lanes, their windows' taps a pixel apart.

    False if there is a NaN under it.
    """
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef Py_ssize_t size = sizeof(number), lanes = VEC_BYTES // size, n = tile.channels, stride = p.cols.stride
    cdef Py_ssize_t left = tile.left * n, cols = (tile.col_hi - tile.col_lo) * n, span = tile.span * n
    cdef Py_ssize_t pitch = round_up(span, lanes) + lanes, wide = ((tile.cols - 1) * stride + 1) * n, r, t, i, c
    cdef vec_flag nan = flag_none()
    cdef number *dst
    for r in range(tile.rows):
        fill(band + r * pitch, left, <number>lowest(band))
        fill(band + r * pitch + left + cols, span - left - cols, <number>lowest(band))
    row_pass(band + left, pitch, src, src_row, tile.row_lo, &p.rows, tile.row, tile.rows, cols, chain, leads, &nan, NULL)
    if flag_any(nan):
        return False
    for t in range(p.cols.kernel):
        taps[t] = t * p.cols.dilation * n
    if stride == 1:
        window_rows(to, y.row, <const number *>band, pitch, taps, p.cols.kernel, tile.rows, wide, NULL)
        return True
    for r in range(tile.rows):
        window_run(row, <const number *>(band + r * pitch), taps, p.cols.kernel, imax(wide, lanes), NULL)
        dst = to + r * y.row
        i = 0
        # Pixels at the stride, as 16 bytes that the next pixel overwrites, or in two such pieces.
        while (tile.cols - i) * n * size >= 16:
            narrow_store(dst + i * n, narrow_load(row + i * stride * n, 16), 16)
            if n * size > 16:
                c = n - 16 // size
                narrow_store(dst + i * n + c, narrow_load(row + i * stride * n + c, 16), 16)
            i += 1
        for i in range(i, tile.cols):
            for c in range(n):
                dst[i * n + c] = row[i * stride * n + c]
    return True


cdef bint tile_values(number *kind, const Pool *p, const View *x, const View *y, const Tile *tile,
                      Scratch *scratch) noexcept nogil:
    """One tile of a dtype that has its own max. False, and nothing promised, if there is a NaN under it."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef Py_ssize_t counts[MAX_LEADS]
    cdef Py_ssize_t data, at, plane, first, src_row = x.row, src_col = x.col, r, t
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t pitch = lane_pitch(p, tile.span, tile.left, lanes, &data)
    cdef Py_ssize_t total = lead_taps(p, x, tile.lead, counts, &first)
    cdef Areas areas
    carve(&areas, p, scratch.area)
    cdef number *slab = <number *>areas.slab
    cdef number *band = <number *>areas.band
    cdef number *chain = <number *>areas.chain
    cdef number *dense
    cdef number *to = <number *>y.data + output_offset(p, y, tile, 0)
    cdef const number *src = <const number *>x.data + input_offset(p, x, tile, 0) + first
    cdef Leads leads
    cdef Source source
    cdef Py_ssize_t planes
    cdef vec_flag nan = flag_none()
    leads.count, leads.offsets[0] = 1, 0
    if total == 0 or rows == 0 or cols == 0:
        for plane in range(tile.planes):
            fill_tile(<number *>y.data + output_offset(p, y, tile, plane), y, p, tile, <number>lowest(kind))
        return True
    if p.form != BANDS and (total > 1 or fits_form(p, x, y, rows, cols)):
        if total > 1 and (p.form == ALONG or p.form == APART) and few_leads(p, total):
            leads.count = total
            for t in range(total):
                leads.offsets[t] = lead_offset(p, x.lead, counts, t)
        elif total > 1:
            gather_leads(slab, src, x, p, tile, counts, total, &nan)
            src, src_row = slab, cols
        planes = tile.planes if tile.planes == 1 or (evenly_spaced(p, x) and evenly_spaced(p, y)) else 1
        plane = 0
        while plane < tile.planes:
            if plane > 0:
                src = <const number *>x.data + input_offset(p, x, tile, plane) + first
                to = <number *>y.data + output_offset(p, y, tile, plane)
            source.row, source.plane, source.rows, source.cols = src_row, x.channel, rows, cols
            if flag_any(pool_small(to, y.row, y.channel, src, &source, planes, p, tile, &leads, band)):
                return False
            plane += planes
        return not flag_any(nan)
    if total > 1 and few_leads(p, total):
        leads.count = total
        for t in range(total):
            leads.offsets[t] = lead_offset(p, x.lead, counts, t)
    elif total > 1:                     # (a tile of leading axes is of one plane)
        gather_leads(slab, src, x, p, tile, counts, total, &nan)
        src, src_row, src_col = slab, cols * tile.channels, tile.channels
    if p.folded and src_col == tile.channels and y.col == tile.channels and total <= MAX_TAPS:
        return tile_folded(to, src, src_row, p, y, tile, band, <number *>areas.pooled, chain, &leads) and not flag_any(nan)
    if p.channels_last:
        pool_box(to, y.row, y.col, src, src_row, src_col, p, tile, band, chain, &leads, &nan)
        return not flag_any(nan)
    if scratch.margins != tile.col:
        fill_margins(band, pitch, data, tile, p.tile_planes * p.tile_rows)
        scratch.margins = -1 if p.in_place else tile.col
    band += data
    dense = band if p.in_place else <number *>areas.dense
    if tile.planes > tile.rows and p.rows.steps == 1 and evenly_spaced(p, x):
        for r in range(tile.rows):      # planes inside: there are more of them than rows in each
            border_row(band + r * pitch + tile.left, tile.rows * pitch, src, x.channel, src_row, tile.row_lo, &p.rows,
                       tile.row + r, tile.planes, cols, &leads, &nan)
    else:
        for plane in range(tile.planes):
            if plane > 0:
                src = <const number *>x.data + input_offset(p, x, tile, plane) + first
            row_pass(band + plane * tile.rows * pitch + tile.left, pitch, src, src_row, tile.row_lo, &p.rows, tile.row,
                     tile.rows, cols, chain, &leads, &nan, NULL)
    if flag_any(nan):
        return False
    if tile.planes == 1 or planes_touch(p, y):
        lane_pass(to, y.row, band, dense, pitch, &p.cols, tile.planes * tile.rows, tile.cols)
    else:
        # From the last on: a chain may write over the first elements behind its rows.
        for plane in range(tile.planes - 1, -1, -1):
            lane_pass(<number *>y.data + output_offset(p, y, tile, plane), y.row, band + plane * tile.rows * pitch,
                      dense + plane * tile.rows * pitch, pitch, &p.cols, tile.rows, tile.cols)
    return True


cdef void fill_tile(number *dst, const View *y, const Pool *p, const Tile *tile, number value) noexcept nogil:
    cdef Py_ssize_t r, c
    for r in range(tile.rows):
        for c in range(tile.cols):
            fill(dst + r * y.row + c * y.col, tile.channels, value)


cdef void tile_keys(lane *kind, const Pool *p, const View *x, const View *y, const Tile *tile, Scratch *scratch) noexcept nogil:
    """One tile by way of keys: 16-bit floats, and any float with a NaN rule to follow."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(lane)
    cdef Py_ssize_t counts[MAX_LEADS]
    cdef Py_ssize_t data, total, at, plane, first, r, count, n = tile.channels
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo, src_row = cols * n, src_col = n
    cdef Py_ssize_t pitch = lane_pitch(p, tile.span, tile.left, lanes, &data)
    cdef Areas areas
    carve(&areas, p, scratch.area)
    cdef lane *slab = <lane *>areas.slab
    cdef lane *band = <lane *>areas.band
    cdef lane *pooled = <lane *>areas.pooled
    cdef lane *chain = <lane *>areas.chain
    cdef const lane *src
    cdef bint small = p.form != BANDS and (p.form != FLAT or rows * cols == p.rows.size * p.cols.size)
    cdef Source source
    cdef Leads leads
    cdef Keys keys
    keys.load, keys.size, keys.rule = keys_loader(p.code, <int>sizeof(lane)), p.size, p.rule
    leads.count, leads.offsets[0] = 1, 0
    total = lead_taps(p, x, tile.lead, counts, &first)
    scratch.margins = -1
    for plane in range(tile.planes):
        if total == 0 or rows == 0 or cols == 0:
            fill(pooled, tile.cols * n, <lane>lowest(kind))
            for r in range(tile.rows):
                store_keys(y, tile, plane, r, 1, <const lane *>pooled, p)
            continue
        at = input_offset(p, x, tile, plane) + first
        if total == 1 and p.rows.steps > 1 and not small:       # chains begin with keys
            src, src_row, src_col = <const lane *>(x.data + at * p.size), x.row, x.col
        else:
            gather_keys(slab, x, at, p, tile, counts, total, <lane *>areas.spare)
            src = slab
        if small or p.direct:
            if small:
                source.row, source.plane, source.rows, source.cols = cols, 0, rows, cols
                pool_small(pooled, tile.cols, 0, src, &source, 1, p, tile, &leads, band)
            else:
                direct_pass(pooled, tile.cols * n, n, src, src_row, src_col, tile.row_lo, tile.col_lo, p, tile, &leads, NULL)
            store_keys(y, tile, plane, 0, tile.rows, <const lane *>pooled, p)
            continue
        if p.channels_last:
            pitch = cols * n
            rows_of_pixels(band, pitch, src, src_row, src_col, p, tile, chain, &leads, NULL, &keys if src != slab else NULL)
        else:
            if plane == 0 or p.in_place:
                fill_margins(band, pitch, data, tile, tile.rows)
            row_pass(band + data + tile.left, pitch, src, src_row, tile.row_lo, &p.rows, tile.row, tile.rows, cols, chain, &leads,
                     NULL, &keys if src != slab else NULL)
        r = tile.rows
        while r > 0:                    # from the last on, as above
            count = imin(pooled_rows(p), r)
            r -= count
            if p.channels_last:
                row_pass(pooled, n, <const lane *>(band + r * pitch), n, tile.col_lo, &p.cols, tile.col, tile.cols, n, chain,
                         &leads, NULL, NULL)
            else:
                lane_pass(pooled, tile.cols, band + data + r * pitch,
                          band + data + r * pitch if p.in_place else <lane *>areas.dense, pitch, &p.cols, count, tile.cols)
            store_keys(y, tile, plane, r, count, <const lane *>pooled, p)


cdef inline Py_ssize_t pooled_rows(const Pool *p) noexcept nogil:
    """Rows of keys that are pooled before they are stored."""
    if p.direct or p.form != BANDS:
        return p.tile_rows
    return 1 if p.channels_last else imin(p.tile_rows, ceil_div(POOLED_KEYS, p.tile_cols))


cdef inline void store_keys(const View *y, const Tile *tile, Py_ssize_t plane, Py_ssize_t row, Py_ssize_t count,
                            const lane *pooled, const Pool *p) noexcept nogil:
    """`count` rows of the tile, from its row `row` on."""
    cdef keys_store_t store = keys_storer(p.code, <int>sizeof(lane))
    cdef Py_ssize_t n = tile.channels, at = output_offset(p, y, tile, plane) + row * y.row, r
    for r in range(count):
        if y.col == n:
            store(y.data + (at + r * y.row) * p.size, 0, pooled + r * tile.cols * n, 0, 1, tile.cols * n)
        else:
            store(y.data + (at + r * y.row) * p.size, y.col, pooled + r * tile.cols * n, n, tile.cols, n)
