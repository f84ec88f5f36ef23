# Pool one tile: pick the kernel of its element type and its strategy.

cdef vec_flag pool_planes(number *dst, const Target *to, const number *src, const Source *s,
                          const Work *work) noexcept nogil:
    """Pool channels-first planes by a strategy without bands. Return whether there was a NaN.

    If there was one, the outputs are undefined.
    """
    cdef int strategy = work.pool.strategy
    if VEC_MASKS and strategy == SLIDE_DOWN:
        return pool_slide_down(dst, to, src, s, work)
    if number in max_t:                 # (takes_maxima_only)
        if VEC_MASKS and strategy == FLAT_PLANES:
            return pool_flat_planes(dst, to, src, s, work)
        if VEC_MASKS and strategy == STRIDE_TWO:
            return pool_stride_two(dst, to, src, s, work)
        if strategy == APART:
            return pool_apart(dst, to, src, s, work)
    return pool_whole_plane(dst, to, src, s, work)


cdef inline bint fits_strategy(const Pool *pool, const View *x, const View *y,
                               const Tile *tile) noexcept nogil:
    """May a tile be pooled by its strategy? Some need contiguous rows and planes."""
    cdef const Problem *p = &pool.frame.problem
    cdef Py_ssize_t plane = p.rows.size * p.cols.size
    if pool.strategy == WHOLE_PLANE:
        return x.row == tile.col_hi - tile.col_lo or tile.row_hi - tile.row_lo == 1
    if pool.strategy != FLAT_PLANES:
        return True
    if p.batch * p.channels > 1:
        if x.channel != plane or y.channel != p.rows.out * p.cols.out:
            return False
        if not evenly_spaced(p, x) or not evenly_spaced(p, y):
            return False
    if x.row != p.cols.size and p.rows.size > 1:
        return False
    return y.row == p.cols.out or p.rows.out == 1


cdef bint tile_values(const Pool *pool, const View *x, const View *y, const Tile *tile,
                      Scratch *scratch, number *tag) noexcept nogil:
    """Pool one tile of a dtype that compares as it is.

    Return False if its input holds a NaN. The output is then undefined, and the caller pools the
    tile again, as keys.
    """
    cdef const Problem *p = &pool.frame.problem
    cdef Py_ssize_t counts[MAX_LEADS]
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t first, plane, total = lead_taps(p, x, tile.lead, counts, &first)
    cdef number *slab = <number *>area_of(pool, scratch.area, SLAB)
    cdef number *dst
    cdef const number *src
    cdef vec_flag nan = flag_none(), seen
    cdef Taps leads
    cdef Source source
    cdef Target target
    cdef Work work
    if number in max_t:
        if pool.strategy == IRREGULAR:
            return tile_irregular(pool, x, y, tile, scratch, tag)
        if pool.strategy == WHOLE_PIXELS:
            return tile_whole_pixels(pool, x, y, tile, scratch, NULL, tag)
    if total == 0 or rows == 0 or cols == 0:
        for plane in range(tile.planes):
            dst = <number *>y.data + output_offset(p, y, tile, plane)
            fill_tile(dst, y, tile)
        return True
    dst = <number *>y.data + output_offset(p, y, tile, 0)
    src = <const number *>x.data + input_offset(p, x, tile, 0) + first
    leads.count, leads.offsets[0] = 1, 0
    source.plane, source.row, source.col = x.channel, x.row, x.col
    source.rows, source.cols = rows, cols
    target.plane, target.row, target.col = y.channel, y.row, y.col
    work.pool, work.tile, work.planes = pool, tile, 1
    work.leads, work.scratch = &leads, scratch.area
    if pools_planes(pool) and (total > 1 or fits_strategy(pool, x, y, tile)):
        if number in max_t and total > 1 and adds_leads(pool) and few_leads(pool, total):
            lead_offsets(&leads, p, x, counts, total)
        elif total > 1:
            gather_leads(slab, src, x, p, tile, counts, total, &nan)
            src, source.row = slab, cols
        if evenly_spaced(p, x) and evenly_spaced(p, y):
            work.planes = tile.planes
        plane = 0
        while plane < tile.planes:
            if plane > 0:
                src = <const number *>x.data + input_offset(p, x, tile, plane) + first
                dst = <number *>y.data + output_offset(p, y, tile, plane)
            if flag_any(pool_planes(dst, &target, src, &source, &work)):
                return False
            plane += work.planes
        return not flag_any(nan)
    if total > 1 and few_leads(pool, total):
        lead_offsets(&leads, p, x, counts, total)
    elif total > 1:                     # (a tile of leading axes is of one plane)
        gather_leads(slab, src, x, p, tile, counts, total, &nan)
        src, source.row, source.col = slab, cols * tile.channels, tile.channels
    if not p.channels_last:
        seen = pool_bands(src, source.row, first, x, y, &work, scratch)
    elif (pool.strategy == PIXELS_AS_ROW and source.col == tile.channels and y.col == tile.channels
          and total <= MAX_TAPS):
        seen = pool_pixels_as_row(dst, &target, src, &source, &work)
    elif takes_all_taps(pool):
        seen = pool_direct_pixels(dst, &target, src, &source, &work)
    else:
        seen = pool_pixels(dst, &target, src, &source, &work)
    return not flag_any(flag_or(nan, seen))


cdef inline bint adds_leads(const Pool *p) noexcept nogil:
    """Can the strategy pool the taps of leading axes together with its own?"""
    return p.strategy == STRIDE_TWO or p.strategy == APART


cdef void fill_tile(number *dst, const View *y, const Tile *tile) noexcept nogil:
    """Store the result of windows without elements."""
    cdef Py_ssize_t r, c
    for r in range(tile.rows):
        for c in range(tile.cols):
            fill_lowest(dst + r * y.row + c * y.col, tile.channels)


cdef void tile_keys(const Pool *pool, const View *x, const View *y, const Tile *tile,
                    Scratch *scratch, any_key *tag) noexcept nogil:
    """Pool one tile as keys: 16-bit floats, floats with a NaN rule to follow, some minima."""
    cdef const Problem *p = &pool.frame.problem
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(any_key), n = tile.channels
    cdef Py_ssize_t counts[MAX_LEADS]
    cdef Py_ssize_t data, total, at, plane, first, r, count
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t pitch = band_pitch(p, tile, lanes, &data)
    cdef any_key *slab = <any_key *>area_of(pool, scratch.area, SLAB)
    cdef any_key *band = <any_key *>area_of(pool, scratch.area, BAND)
    cdef any_key *dense = <any_key *>area_of(pool, scratch.area, DENSE)
    cdef any_key *pooled = <any_key *>area_of(pool, scratch.area, POOLED)
    cdef const any_key *src
    cdef bint small = pools_planes(pool), direct = takes_all_taps(pool)
    cdef Taps one
    cdef Source source
    cdef Target target
    cdef Work work
    cdef Keys keys
    cdef any_key outside
    cdef Pass run
    if pool.strategy == IRREGULAR:
        tile_irregular_keys(pool, x, y, tile, scratch, tag)
        return
    if planes_are_one_run(pool, x, y):
        tile_planes_of_keys(pool, x, y, tile, scratch, tag)
        return
    if pool.strategy == FLAT_PLANES and rows * cols != p.rows.size * p.cols.size:
        small = False
    keys.load, keys.size = keys_loader(p.code, <int>sizeof(any_key)), p.size
    keys.rule = pool.rule
    if pool.strategy == WHOLE_PIXELS:
        tile_whole_pixels(pool, x, y, tile, scratch, &keys, tag)
        return
    set_taps(&one, 1, 0)
    target.plane, target.row, target.col = 0, tile.cols * n, n
    source.plane, source.rows, source.cols = 0, rows, cols
    work.pool, work.tile, work.planes = pool, tile, 1
    work.leads, work.scratch = &one, scratch.area
    total = lead_taps(p, x, tile.lead, counts, &first)
    scratch.margins = -1
    for plane in range(tile.planes):
        if total == 0 or rows == 0 or cols == 0:
            fill_lowest(pooled, tile.cols * n)
            for r in range(tile.rows):
                store_keys(y, tile, plane, r, 1, <const any_key *>pooled, pool)
            continue
        at = input_offset(p, x, tile, plane) + first
        set_pass_of_rows(&run, &work)
        if total == 1 and p.rows.steps > 1 and not small:       # chains begin with keys
            src, run.keys = <const any_key *>(x.data + at * p.size), &keys
            source.row, source.col = x.row, x.col
        else:
            gather_keys(slab, x, at, pool, tile, counts, total,
                        <any_key *>area_of(pool, scratch.area, SPARE))
            src, source.row, source.col = slab, cols * n, n
        if small or direct:
            if small:
                pool_planes(pooled, &target, src, &source, &work)
            else:
                pool_direct_pixels(pooled, &target, src, &source, &work)
            store_keys(y, tile, plane, 0, tile.rows, <const any_key *>pooled, pool)
            continue
        if p.channels_last:
            pitch = cols * n
            rows_of_pixels(band, pitch, src, &source, tile, &run)
            set_pass_of_cols(&run, &work, &one)
        else:
            if plane == 0 or pool.in_place:
                fill_margins(band, pitch, data, tile, tile.rows)
            row_pass(band + data + tile.left, pitch, src, source.row, cols, &run)
            if p.beyond != NULL:
                keys.load(&outside, 0, p.beyond, 0, 1, 1, pool.rule)
            fill_beyond(<char *>(band + data + tile.left), pitch * sizeof(any_key), p, tile,
                        tile.rows, sizeof(any_key), &outside)
        r = tile.rows
        while r > 0:                    # from the last on: a chain may write after its rows
            count = imin(pooled_rows(pool), r)
            r -= count
            if p.channels_last:
                row_pass(pooled, n, <const any_key *>(band + r * pitch), n, n, &run)
            else:
                at = data + r * pitch
                column_pass(pooled, tile.cols, band + at, band + at if pool.in_place else dense,
                            pitch, &p.cols, count, tile.cols)
            store_keys(y, tile, plane, r, count, <const any_key *>pooled, pool)


cdef void make_bools(const Problem *p, const View *y, const Tile *tile) noexcept nogil:
    """Make 1 of every result but 0: any other byte is True too."""
    cdef uint8_t *row
    cdef bint whole = y.col == tile.channels
    cdef Py_ssize_t n = tile.cols * tile.channels if whole else tile.channels, plane, r, c
    for plane in range(tile.planes):
        for r in range(tile.rows):
            row = <uint8_t *>y.data + output_offset(p, y, tile, plane) + r * y.row
            for c in range(1 if whole else tile.cols):
                store_bools(row, n)
                row += y.col


cdef void values_scratch(const Pool *p, Py_ssize_t *size) noexcept nogil:
    """Set the sizes of the areas without indices, in elements."""
    cdef const Problem *problem = &p.frame.problem
    cdef Py_ssize_t lanes = VEC_BYTES // problem.size, n = p.frame.tiling.channels, rows, cols
    cdef bint in_keys = p.keyed or problem.code == F32 or problem.code == F64
    if p.strategy == WHOLE_PIXELS:
        whole_pixels_scratch(p, size)
        return
    long_windows_scratch(p, size, problem.size, in_keys)
    if problem.leads or (in_keys and (problem.rows.steps == 1 or pools_planes(p))):
        # of leading axes the maximum, of keys all that no chain begins with
        rows = (p.frame.tiling.rows - 1) * problem.rows.stride + problem.rows.extent
        cols = (p.frame.tiling.cols - 1) * problem.cols.stride + problem.cols.extent
        size[<int>SLAB] = imin(rows, problem.rows.size) * imin(cols, problem.cols.size) * n
    if problem.leads and in_keys:
        size[<int>SPARE] = size[<int>SLAB]
    if in_keys:
        size[<int>POOLED] = pooled_rows(p) * p.frame.tiling.cols * n
    if p.keyed and p.strategy == WHOLE_PLANE:
        size[<int>SLAB] = imax(size[<int>SLAB], POOLED_KEYS)
        size[<int>POOLED] = POOLED_KEYS
    if p.strategy == PIXELS_AS_ROW:
        pixels_as_row_scratch(p, size, lanes)
    elif p.strategy == BANDS or p.strategy == WHOLE_PLANE or p.strategy == FLAT_PLANES:
        bands_scratch(p, size, lanes)


cdef bint pool_values(const Job *job, const Tile *tile, Scratch *scratch) noexcept nogil:
    """Pool one tile of any such dtype. Return False if its input holds a NaN."""
    cdef const Pool *p = <const Pool *>job.frame
    cdef const View *x = &job.x
    cdef const View *y = &job.y
    cdef int code = p.frame.problem.code
    if p.rule & MINIMUM:
        return pool_minima(p, x, y, tile, scratch)
    if code == F32:
        return tile_values(p, x, y, tile, scratch, <float *>NULL)
    if code == F64:
        return tile_values(p, x, y, tile, scratch, <double *>NULL)
    if code == I8:
        return tile_values(p, x, y, tile, scratch, <int8_t *>NULL)
    if code == I16:
        return tile_values(p, x, y, tile, scratch, <int16_t *>NULL)
    if code == I32:
        return tile_values(p, x, y, tile, scratch, <int32_t *>NULL)
    if code == I64:
        return tile_values(p, x, y, tile, scratch, <int64_t *>NULL)
    if code == U8 or code == BOOL:
        return tile_values(p, x, y, tile, scratch, <uint8_t *>NULL)
    if code == U16:
        return tile_values(p, x, y, tile, scratch, <uint16_t *>NULL)
    if code == U32:
        return tile_values(p, x, y, tile, scratch, <uint32_t *>NULL)
    return tile_values(p, x, y, tile, scratch, <uint64_t *>NULL)


cdef bint pool_minima(const Pool *p, const View *x, const View *y, const Tile *tile,
                      Scratch *scratch) noexcept nogil:
    """Pool one tile of a dtype whose minima are taken as they are. Return False for a NaN."""
    cdef int code = p.frame.problem.code
    if code == F32:
        return tile_values(p, x, y, tile, scratch, <min_f32_t *>NULL)
    if code == F64:
        return tile_values(p, x, y, tile, scratch, <min_f64_t *>NULL)
    if code == U16:
        return tile_values(p, x, y, tile, scratch, <min_u16_t *>NULL)
    return tile_values(p, x, y, tile, scratch, <min_u8_t *>NULL)


cdef bint pool_taps(const Job *job, const Tile *tile, Scratch *scratch) noexcept nogil:
    """Pool one tile with indices, of a dtype that compares as it is. Return False for others."""
    cdef const Pool *p = <const Pool *>job.frame
    cdef int code = p.frame.problem.code
    if p.keyed or p.key_bytes != p.frame.problem.size:
        return False
    if code == F32:
        return tile_taps(p, job, tile, scratch, False, <float *>NULL)
    if code == F64:
        return tile_taps(p, job, tile, scratch, False, <double *>NULL)
    if code == I16:
        return tile_taps(p, job, tile, scratch, False, <int16_t *>NULL)
    if code == I32:
        return tile_taps(p, job, tile, scratch, False, <int32_t *>NULL)
    if code == I64:
        return tile_taps(p, job, tile, scratch, False, <int64_t *>NULL)
    return False


cdef void run_task(Job *job, Py_ssize_t task, Scratch *scratch) noexcept nogil:
    """Pool the tile of a task, with subnormal numbers compared as what they are."""
    cdef fp_state state
    fp_enter_comparing(&state)
    pool_task(job, task, scratch)
    fp_leave_comparing(&state)


cdef void pool_task(Job *job, Py_ssize_t task, Scratch *scratch) noexcept nogil:
    cdef Tile tile
    cdef const Pool *p = <const Pool *>job.frame
    cdef const View *x = &job.x
    cdef const View *y = &job.y
    if p.strategy == RUNNING_MAXIMA:
        tile_running_maxima(p, job, task, scratch)
        return
    if p.strategy == PLANES_AS_PIXELS:
        tile_planes_as_pixels(p, job, task, scratch)
        return
    tile_of(&tile, &p.frame, task)
    if p.frame.problem.leads == 1:
        fetch_next_slabs(&p.frame.problem, x, &tile)
    if p.strategy == TAPS:
        if pool_taps(job, &tile, scratch):
            return
        if p.key_bytes == 2:
            tile_taps(p, job, &tile, scratch, True, <int16_t *>NULL)
        elif p.key_bytes == 4:
            tile_taps(p, job, &tile, scratch, True, <int32_t *>NULL)
        else:
            tile_taps(p, job, &tile, scratch, True, <int64_t *>NULL)
    elif p.strategy == COMPOSITES:
        if p.key_bytes == 2:
            tile_composites(p, job, &tile, scratch, <int16_t *>NULL)
        else:
            tile_composites(p, job, &tile, scratch, <int32_t *>NULL)
    elif p.strategy == ONE_WINDOW:
        if p.key_bytes == 2:
            tile_one_window(p, job, &tile, scratch, <int16_t *>NULL)
        elif p.key_bytes == 4:
            tile_one_window(p, job, &tile, scratch, <int32_t *>NULL)
        else:
            tile_one_window(p, job, &tile, scratch, <int64_t *>NULL)
    elif p.with_indices and p.strategy == IRREGULAR:
        tile_irregular_pairs(p, job, &tile, scratch)
    elif p.with_indices:
        if p.key_bytes == 2:
            tile_pairs(p, job, &tile, scratch, <int16_t *>NULL)
        elif p.key_bytes == 4:
            tile_pairs(p, job, &tile, scratch, <int32_t *>NULL)
        else:
            tile_pairs(p, job, &tile, scratch, <int64_t *>NULL)
    elif p.keyed or not pool_values(job, &tile, scratch):
        if p.frame.problem.size == 1:
            tile_keys(p, x, y, &tile, scratch, <int8_t *>NULL)
        elif p.frame.problem.size == 2:
            tile_keys(p, x, y, &tile, scratch, <int16_t *>NULL)
        elif p.frame.problem.size == 4:
            tile_keys(p, x, y, &tile, scratch, <int32_t *>NULL)
        else:
            tile_keys(p, x, y, &tile, scratch, <int64_t *>NULL)
    elif p.frame.problem.code == BOOL:
        make_bools(&p.frame.problem, y, &tile)
