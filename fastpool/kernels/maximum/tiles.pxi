# Pool one tile: pick the kernel of its element type and its strategy.

cdef vec_flag pool_planes(number *dst, Py_ssize_t dst_row, Py_ssize_t dst_plane, const number *src, const Source *s,
                         Py_ssize_t planes, const Pool *p, const Tile *tile, const Leads *leads, number *area) noexcept nogil:
    if p.strategy == PADDED_PLANES:
        return pool_padded_planes(dst, dst_row, dst_plane, src, s, planes, p, tile, area)
    if VEC_MASKS and p.strategy == SLIDE_DOWN:
        return pool_slide_down(dst, dst_row, dst_plane, src, s, planes, p, tile)
    if VEC_MASKS and p.strategy == FLAT_PLANES:
        return pool_flat_planes(dst, dst + planes * p.rows.out * p.cols.out, src, planes * p.rows.size * p.cols.size, p)
    if p.strategy != WHOLE_PLANE:
        return pool_stride_two(dst, dst_row, dst_plane, src, s, planes, p, tile, leads)
    return pool_whole_plane(dst, dst_plane, src, s, planes, s.rows * s.cols)


cdef inline bint fits_form(const Pool *p, const View *x, const View *y, Py_ssize_t rows, Py_ssize_t cols) noexcept nogil:
    """May a tile be taken as p.strategy says? Some forms need rows and planes that lie side by side."""
    cdef Py_ssize_t plane = p.rows.size * p.cols.size
    if p.strategy < WHOLE_PLANE:
        return True
    if p.strategy == WHOLE_PLANE:
        return x.row == cols or rows == 1
    if p.batch * p.channels > 1:
        if x.channel != plane or y.channel != p.rows.out * p.cols.out or not (evenly_spaced(p, x) and evenly_spaced(p, y)):
            return False
    return (x.row == p.cols.size or p.rows.size == 1) and (y.row == p.cols.out or p.rows.out == 1)


cdef bint tile_values(const Pool *p, const View *x, const View *y, const Tile *tile, Scratch *scratch, number *tag) noexcept nogil:
    """One tile of a dtype that has its own max. False, and nothing promised, if there is a NaN under it."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef Py_ssize_t counts[MAX_LEADS]
    cdef Py_ssize_t data, at, plane, first, src_row = x.row, src_col = x.col, r, t
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t pitch = band_pitch(p, tile.span, tile.left, lanes, &data)
    cdef Py_ssize_t total = lead_taps(p, x, tile.lead, counts, &first)
    cdef Areas areas
    split_scratch(&areas, p, scratch.area)
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
            fill_tile(<number *>y.data + output_offset(p, y, tile, plane), y, p, tile, <number>lowest(tag))
        return True
    if p.strategy != BANDS and (total > 1 or fits_form(p, x, y, rows, cols)):
        if total > 1 and (p.strategy == STRIDE_TWO or p.strategy == APART) and few_leads(p, total):
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
            if flag_any(pool_planes(to, y.row, y.channel, src, &source, planes, p, tile, &leads, band)):
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
    if p.pixels_as_row and src_col == tile.channels and y.col == tile.channels and total <= MAX_TAPS:
        return pool_pixels_as_row(to, src, src_row, p, y, tile, band, <number *>areas.pooled, chain, &leads) and not flag_any(nan)
    if p.channels_last:
        pool_pixels(to, y.row, y.col, src, src_row, src_col, p, tile, band, chain, &leads, &nan)
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
        column_pass(to, y.row, band, dense, pitch, &p.cols, tile.planes * tile.rows, tile.cols)
    else:
        # From the last on: a chain may write over the first elements behind its rows.
        for plane in range(tile.planes - 1, -1, -1):
            column_pass(<number *>y.data + output_offset(p, y, tile, plane), y.row, band + plane * tile.rows * pitch,
                      dense + plane * tile.rows * pitch, pitch, &p.cols, tile.rows, tile.cols)
    return True


cdef void fill_tile(number *dst, const View *y, const Pool *p, const Tile *tile, number value) noexcept nogil:
    cdef Py_ssize_t r, c
    for r in range(tile.rows):
        for c in range(tile.cols):
            fill(dst + r * y.row + c * y.col, tile.channels, value)


cdef void tile_keys(const Pool *p, const View *x, const View *y, const Tile *tile, Scratch *scratch, key_t *tag) noexcept nogil:
    """One tile by way of keys: 16-bit floats, and any float with a NaN rule to follow."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(key_t)
    cdef Py_ssize_t counts[MAX_LEADS]
    cdef Py_ssize_t data, total, at, plane, first, r, count, n = tile.channels
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo, src_row = cols * n, src_col = n
    cdef Py_ssize_t pitch = band_pitch(p, tile.span, tile.left, lanes, &data)
    cdef Areas areas
    split_scratch(&areas, p, scratch.area)
    cdef key_t *slab = <key_t *>areas.slab
    cdef key_t *band = <key_t *>areas.band
    cdef key_t *pooled = <key_t *>areas.pooled
    cdef key_t *chain = <key_t *>areas.chain
    cdef const key_t *src
    cdef bint small = p.strategy != BANDS and (p.strategy != FLAT_PLANES or rows * cols == p.rows.size * p.cols.size)
    cdef Source source
    cdef Leads leads
    cdef Keys keys
    keys.load, keys.size, keys.rule = keys_loader(p.code, <int>sizeof(key_t)), p.size, p.rule
    leads.count, leads.offsets[0] = 1, 0
    total = lead_taps(p, x, tile.lead, counts, &first)
    scratch.margins = -1
    for plane in range(tile.planes):
        if total == 0 or rows == 0 or cols == 0:
            fill(pooled, tile.cols * n, <key_t>lowest(tag))
            for r in range(tile.rows):
                store_keys(y, tile, plane, r, 1, <const key_t *>pooled, p)
            continue
        at = input_offset(p, x, tile, plane) + first
        if total == 1 and p.rows.steps > 1 and not small:       # chains begin with keys
            src, src_row, src_col = <const key_t *>(x.data + at * p.size), x.row, x.col
        else:
            gather_keys(slab, x, at, p, tile, counts, total, <key_t *>areas.spare)
            src = slab
        if small or p.direct:
            if small:
                source.row, source.plane, source.rows, source.cols = cols, 0, rows, cols
                pool_planes(pooled, tile.cols, 0, src, &source, 1, p, tile, &leads, band)
            else:
                pool_direct_pixels(pooled, tile.cols * n, n, src, src_row, src_col, tile.row_lo, tile.col_lo, p, tile, &leads, NULL)
            store_keys(y, tile, plane, 0, tile.rows, <const key_t *>pooled, p)
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
                row_pass(pooled, n, <const key_t *>(band + r * pitch), n, tile.col_lo, &p.cols, tile.col, tile.cols, n, chain,
                         &leads, NULL, NULL)
            else:
                column_pass(pooled, tile.cols, band + data + r * pitch,
                          band + data + r * pitch if p.in_place else <key_t *>areas.dense, pitch, &p.cols, count, tile.cols)
            store_keys(y, tile, plane, r, count, <const key_t *>pooled, p)


cdef void make_bools(const Pool *p, const View *y, const Tile *tile) noexcept nogil:
    """Make 1 of every maximum but 0: any other byte is True too."""
    cdef uint8_t *row
    cdef bint dense = y.col == tile.channels
    cdef Py_ssize_t n = tile.cols * tile.channels if dense else tile.channels, plane, r, i, c
    for plane in range(tile.planes):
        for r in range(tile.rows):
            row = <uint8_t *>y.data + output_offset(p, y, tile, plane) + r * y.row
            for c in range(1 if dense else tile.cols):
                for i in range(n):
                    row[i] = row[i] != 0
                row += y.col


cdef void run_task(Job *job, Py_ssize_t task, Scratch *scratch) noexcept nogil:
    cdef Tile tile
    cdef Pool *p = job.pool
    cdef View *x = &job.x
    cdef View *y = &job.y
    cdef bint done = False
    if p.strategy == RUNNING_MAXIMA:
        tile_running_maxima(p, x, y, &job.z, task, scratch)
        return
    tile_of(&tile, p, task)
    if p.strategy == TAPS:
        if not p.keyed and p.key_bytes == p.size:
            if p.code == F32:
                done = tile_taps(p, x, y, &job.z, &tile, scratch, False, <float *>NULL)
            elif p.code == F64:
                done = tile_taps(p, x, y, &job.z, &tile, scratch, False, <double *>NULL)
            elif p.code == I16:
                done = tile_taps(p, x, y, &job.z, &tile, scratch, False, <int16_t *>NULL)
            elif p.code == I32:
                done = tile_taps(p, x, y, &job.z, &tile, scratch, False, <int32_t *>NULL)
            elif p.code == I64:
                done = tile_taps(p, x, y, &job.z, &tile, scratch, False, <int64_t *>NULL)
        if done:
            return
        if p.key_bytes == 2:
            tile_taps(p, x, y, &job.z, &tile, scratch, True, <int16_t *>NULL)
        elif p.key_bytes == 4:
            tile_taps(p, x, y, &job.z, &tile, scratch, True, <int32_t *>NULL)
        else:
            tile_taps(p, x, y, &job.z, &tile, scratch, True, <int64_t *>NULL)
        return
    if p.with_indices:
        if p.key_bytes == 2:
            tile_pairs(p, x, y, &job.z, &tile, scratch, <int16_t *>NULL)
        elif p.key_bytes == 4:
            tile_pairs(p, x, y, &job.z, &tile, scratch, <int32_t *>NULL)
        else:
            tile_pairs(p, x, y, &job.z, &tile, scratch, <int64_t *>NULL)
        return
    if not p.keyed:
        if p.code == F32:
            done = tile_values(p, x, y, &tile, scratch, <float *>NULL)
        elif p.code == F64:
            done = tile_values(p, x, y, &tile, scratch, <double *>NULL)
        elif p.code == I8:
            done = tile_values(p, x, y, &tile, scratch, <int8_t *>NULL)
        elif p.code == I16:
            done = tile_values(p, x, y, &tile, scratch, <int16_t *>NULL)
        elif p.code == I32:
            done = tile_values(p, x, y, &tile, scratch, <int32_t *>NULL)
        elif p.code == I64:
            done = tile_values(p, x, y, &tile, scratch, <int64_t *>NULL)
        elif p.code == U8 or p.code == BOOL:
            done = tile_values(p, x, y, &tile, scratch, <uint8_t *>NULL)
            if p.code == BOOL:
                make_bools(p, y, &tile)
        elif p.code == U16:
            done = tile_values(p, x, y, &tile, scratch, <uint16_t *>NULL)
        elif p.code == U32:
            done = tile_values(p, x, y, &tile, scratch, <uint32_t *>NULL)
        else:
            done = tile_values(p, x, y, &tile, scratch, <uint64_t *>NULL)
        if done:
            return
    if p.size == 2:
        tile_keys(p, x, y, &tile, scratch, <int16_t *>NULL)
    elif p.size == 4:
        tile_keys(p, x, y, &tile, scratch, <int32_t *>NULL)
    else:
        tile_keys(p, x, y, &tile, scratch, <int64_t *>NULL)
