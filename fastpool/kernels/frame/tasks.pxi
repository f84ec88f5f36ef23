# From a schedule and arrays to tiles on threads.

cdef struct Job:
    Pool *pool
    View x, y, z
    Scratch *scratch


cdef Form form_of(Pool *p) noexcept nogil:
    cdef const Window *rows = &p.rows
    cdef const Window *cols = &p.cols
    cdef Form form = BANDS
    if p.fars:
        return FAR
    if p.pairs:
        return TAPS if p.direct or taps_fit(p) else BANDS
    if p.channels_last:
        return BANDS
    if rows.out * cols.out == 1 and rows.kernel == rows.size and cols.kernel == cols.size and rows.inner_hi * cols.inner_hi == 1:
        if rows.size * cols.size * p.size <= WHOLE_BYTES:       # (a plane with a NaN is copied)
            return WHOLE
    if rows.steps > 1 or cols.steps > 1:
        if rows.stride * cols.stride == 1 and p.row_tiles * p.col_tiles == 1 and cols.out * p.size < 2 * VEC_BYTES:
            if padded_plane(rows, cols) <= PADDED_PARTS * rows.out * cols.out:
                return PADDED
        return BANDS
    if cols.kernel == cols.stride and cols.dilation == 1 and cols.inner_hi - cols.inner_lo == cols.out:
        # (the last tile is the narrowest)
        if (cols.kernel == 2 or cols.kernel == 4) and (cols.out - (p.col_tiles - 1) * p.tile_cols) * p.size >= VEC_BYTES:
            form = APART
    if not VEC_MASKS:
        return form
    if cols.stride == 1:
        # Vectors go down a few neighbouring columns; wider rows would come from memory in small pieces.
        if rows.stride == 1 and imax(rows.kernel, cols.kernel) <= SMALL_TAPS and p.tile_cols * p.size <= 8 * VEC_BYTES:
            form = DOWN if notes_all(p) else BANDS
    elif form == BANDS and cols.stride == 2 and cols.dilation == 1 and 2 <= cols.kernel <= 3 and cols.begin < cols.kernel:
        if 2 * (cols.out - 1) - cols.begin < cols.size:
            form = ALONG
    return FLAT if flat_pays(p, form) else form


cdef bint taps_fit(Pool *p) noexcept nogil:
    """Channels first, with indices: can all taps be taken in registers, and is that faster than passes?"""
    cdef const Window *rows = &p.rows
    cdef const Window *cols = &p.cols
    cdef Py_ssize_t slabs = 1, i, first
    cdef int64_t furthest = (rows.kernel - 1) * rows.dilation * p.index_row + (cols.kernel - 1) * cols.dilation * p.index_col
    if p.channels_last:
        return False
    for i in range(p.leads):
        slabs *= p.lead[i].kernel
        furthest += (p.lead[i].kernel - 1) * p.lead[i].dilation * p.index_lead[i]
        if slabs > MAX_TAPS:
            return False
    if furthest >> (8 * p.lane - 1):
        return False
    if cols.stride == 4:
        if cols.kernel != 4 or cols.dilation > 1:
            return False
    elif cols.stride > 2 or (cols.stride == 2 and (cols.kernel == 1 or cols.dilation > 1)):
        return False
    # (three rows at stride 2 are compared again sooner than they are kept)
    p.slides = slabs == 1 and cols.stride <= 2 and rows.kernel > rows.stride
    p.slides = p.slides and (rows.stride == 1 or (rows.dilation == 1 and rows.kernel > 3))
    if p.slides:
        if rows.extent > RING or imax(rows.kernel, cols.kernel) > (2 * TAPS_ALONG if VEC_MASKS else TAPS_ALONG):
            return False
    elif slabs * rows.kernel * cols.kernel > TAPS_AT_ONCE:
        return False
    # Windows that share nothing read everything once, from memory: a look for NaN before would cost a fifth.
    p.notes = not p.slides and (cols.stride == 4 or (slabs == 1 and cols.stride == cols.kernel == rows.kernel == 2))
    p.slides_few = p.slides and rows.stride * cols.stride == 1 and rows.kernel == cols.kernel and none_empty(rows)
    p.slides_few = p.slides_few and (rows.kernel == 3 or rows.kernel == 5)
    return none_empty(cols)


cdef bint none_empty(const Window *w) noexcept nogil:
    """Has every output an element?"""
    cdef Py_ssize_t o, first
    for o in range(w.out):
        if not w.inner_lo <= o < w.inner_hi and real_taps(w, o, &first) == 0:
            return False
    return True


cdef inline bint notes_all(const Pool *p) noexcept nogil:
    """Does pool_down see every NaN? It looks at two taps, whose vectors have to meet every column of the windows."""
    cdef const Window *cols = &p.cols
    cdef Py_ssize_t noted = imin(imax(cols.begin, 0) // cols.dilation, cols.kernel - 2)
    if (p.code != F32 and p.code != F64) or p.keyed or cols.kernel <= 2:
        return True
    return p.col_tiles == 1 and (cols.kernel - 1 - noted) * cols.dilation <= imax(cols.out, VEC_BYTES // p.size)


cdef bint flat_pays(Pool *p, Form form) noexcept nogil:
    """Does it take fewer cycles to pool planes as one long row? The costs of a vector were measured."""
    cdef const Window *rows = &p.rows
    cdef const Window *cols = &p.cols
    cdef const Window *w
    cdef Py_ssize_t lanes = VEC_BYTES // p.size, elements = rows.size * cols.size, taps = rows.kernel * cols.kernel
    cdef Py_ssize_t i, t = lanes, flat, other
    if p.leads or p.row_tiles * p.col_tiles > 1 or taps > FLAT_TAPS or elements > FLAT_MASKS:
        return False
    for i in range(2):                  # each output stands at an element of its own, which is one of its taps
        w = cols if i else rows
        if (w.out - 1) * w.stride >= w.size or w.begin < 0 or w.begin % w.dilation or w.begin // w.dilation >= w.kernel:
            return False
    p.flat_period = elements
    while t > 1 and p.flat_period % 2 == 0:
        t, p.flat_period = t // 2, p.flat_period // 2
    p.flat_taps = taps - 1
    p.flat_all = rows.out == rows.size and cols.out == cols.size
    if p.flat_period * taps > FLAT_MASKS:
        return False
    flat = ceil_div(elements, lanes) * (4 * taps + (0 if p.flat_all else 8 if p.size >= 4 else 20))
    other = ceil_div(cols.out, lanes) * rows.out * (2 * rows.kernel + 2 * cols.kernel + 8) + 100
    return flat < other


cdef void fill_masks(Pool *p) noexcept nogil:
    cdef const Window *rows = &p.rows
    cdef const Window *cols = &p.cols
    cdef Py_ssize_t lanes = VEC_BYTES // p.size, v, l, r, c, t, i, j, row, col
    cdef vec_edge *masks = p.flat_masks
    cdef vec_edge bits
    memset(masks, 0, p.flat_period * (p.flat_taps + 1) * sizeof(vec_edge))
    for v in range(p.flat_period):
        for l in range(lanes):
            bits = vec_inside(l * p.size, (l + 1) * p.size)
            i = (v * lanes + l) % (rows.size * cols.size)
            r, c = i // cols.size, i % cols.size
            if r % rows.stride == 0 and r // rows.stride < rows.out and c % cols.stride == 0 and c // cols.stride < cols.out:
                masks[p.flat_taps] |= bits
            t = 0
            for i in range(rows.kernel):
                for j in range(cols.kernel):
                    row, col = i * rows.dilation - rows.begin, j * cols.dilation - cols.begin
                    if row == 0 and col == 0:       # the element itself
                        continue
                    p.flat_offsets[t] = row * cols.size + col
                    if 0 <= r + row < rows.size and 0 <= c + col < cols.size:
                        masks[t] |= bits
                    t += 1
        masks += p.flat_taps + 1


cdef inline Py_ssize_t chain_elements(const Pool *p, const Window *w, Py_ssize_t count, Py_ssize_t element,
                                      bint in_keys) noexcept nogil:
    """Scratch of a pass over long windows: rows of pairs; a vector per window and copied rows; rows of two steps."""
    cdef Py_ssize_t length = ((count - 1) * w.stride + w.extent) * VEC_BYTES, nbytes
    if p.pairs:
        return imax(CHAIN_BYTES, 2 * length) // element
    nbytes = imax(CHAIN_BYTES, imin(w.kernel, count) * VEC_BYTES)
    if in_keys or not VEC_MASKS:
        nbytes += imax(COPIED_BYTES, length)
    if w.steps == 2:
        nbytes = imax(nbytes, 4 * length)
    return nbytes // element


cdef void measure(Pool *p) noexcept nogil:
    """Sizes of the scratch areas, for the largest tile."""
    cdef Py_ssize_t element = p.lane if p.pairs else p.size, lanes = VEC_BYTES // element
    cdef Py_ssize_t length = (p.tile_rows - 1) * p.rows.stride + p.rows.extent
    cdef Py_ssize_t span = (p.tile_cols - 1) * p.cols.stride + p.cols.extent
    cdef Py_ssize_t rows = imin(length, p.rows.size), cols = imin(span, p.cols.size)
    cdef Py_ssize_t n = p.tile_channels, pitch = round_up(lanes + span, lanes)
    cdef Py_ssize_t in_keys = p.keyed or p.code == F32 or p.code == F64, out_row = p.tile_cols * n
    cdef Py_ssize_t size[AREAS]
    cdef Py_ssize_t i, slabs = 1
    memset(size, 0, sizeof(size))
    if p.form == FAR:
        p.scratch = place_far(p) + 2 * FENCE
        for i in range(AREAS):          # (one area)
            p.offsets[i] = FENCE if i == 0 else p.scratch
        return
    if p.rows.steps > 1 and p.form != PADDED:
        size[9] = chain_elements(p, &p.rows, p.tile_rows, element, in_keys)
    if p.channels_last and p.cols.steps > 1:
        size[9] = imax(size[9], chain_elements(p, &p.cols, p.tile_cols, element, False))
    if p.form == TAPS:
        # the input under a tile, where it is not read in place; results in keys
        for i in range(p.leads):
            slabs *= p.lead[i].kernel
        size[0] = p.tile_planes * slabs * rows * (cols * n if p.channels_last else pitch)
        size[7] = p.tile_planes * p.tile_rows * out_row
    elif p.pairs:
        # keys of the input: as many rows as one column pass takes, and one more: a chain takes them as one, and its taps
        # go on behind the last
        size[0] = cols * n if p.channels_last else (PAIR_ROWS + 1) * pitch
        size[1] = size[2] = p.tile_rows * out_row if p.leads else 0
        size[3] = size[4] = rows * out_row
        size[5] = size[6] = (PAIR_ROWS + 1) * pitch if not p.channels_last and (p.cols.steps > 1 or p.cols.stride > 2) else 0
        size[7] = size[8] = p.tile_rows * out_row
        size[10] = cols * n if p.channels_last else pitch + 4 * lanes
    else:
        # of leading axes the maximum, of keys all that no chain begins with
        size[0] = rows * cols * n if p.leads or (in_keys and (p.rows.steps == 1 or p.form != BANDS)) else 0
        size[1] = size[0] if p.leads and in_keys else 0
        if p.form == PADDED:            # (the last plane's taps look at what would be the next)
            size[3] = p.tile_planes * padded_plane(&p.rows, &p.cols) + p.rows.extent * span + p.cols.extent + lanes
        elif p.channels_last:
            size[3] = 0 if p.direct else p.tile_rows * (round_up(span * n, lanes) + lanes if p.folded else cols * n)
        else:
            size[3] = p.tile_planes * p.tile_rows * pitch + pitch
            if p.cols.steps > 1 or not lane_stride(&p.cols):
                p.in_place = size[3] * element > DENSE_BYTES
                size[5] = 0 if p.in_place else size[3]
        size[7] = pooled_rows(p) * out_row if in_keys else 0
        if p.folded and p.cols.stride > 1:
            size[7] = imax(size[7], span * n + lanes)
    p.scratch = FENCE
    for i in range(AREAS):
        p.offsets[i] = p.scratch
        p.scratch += round_up(size[i] * element, 64) + (SLACK if size[i] else 0) + FENCE


cdef inline Py_ssize_t part(Py_ssize_t *task, Py_ssize_t count) noexcept nogil:
    """The place of a task along one axis of `count` tiles; a division takes as long as pooling a row."""
    cdef Py_ssize_t which = 0
    if count > 1:
        which = task[0] % count
        task[0] //= count
    return which


cdef void tile_of(Tile *tile, const Pool *p, Py_ssize_t task) noexcept nogil:
    cdef Py_ssize_t lo, span, which
    which = part(&task, p.col_tiles)
    tile.col = which * p.tile_cols
    tile.cols = imin(p.tile_cols, p.cols.out - tile.col)
    which = part(&task, p.channel_tiles)
    tile.channel = which * p.tile_channels
    tile.channels = imin(p.tile_channels, p.channels - tile.channel) if p.channels_last else 1
    which = part(&task, p.row_tiles)
    tile.row = which * p.tile_rows
    tile.rows = imin(p.tile_rows, p.rows.out - tile.row)
    tile.lead = part(&task, p.lead_outs)
    if p.channels_last:
        tile.batch, tile.plane, tile.planes = task, 0, 1
    else:
        tile.batch = 0
        tile.plane = task * p.tile_planes
        tile.planes = imin(p.tile_planes, p.batch * p.channels - tile.plane)
    lo = tile.row * p.rows.stride - p.rows.begin
    span = (tile.rows - 1) * p.rows.stride + p.rows.extent
    tile.row_lo, tile.row_hi = imax(lo, 0), imin(lo + span, p.rows.size)
    lo = tile.col * p.cols.stride - p.cols.begin
    tile.span = (tile.cols - 1) * p.cols.stride + p.cols.extent
    tile.left = imin(imax(-lo, 0), tile.span)
    tile.col_lo, tile.col_hi = imax(lo, 0), imin(lo + tile.span, p.cols.size)
    # nothing real under the tile: an empty range, never a reversed one
    tile.row_hi, tile.col_hi = imax(tile.row_hi, tile.row_lo), imax(tile.col_hi, tile.col_lo)


cdef void run_task(Job *job, Py_ssize_t task, Scratch *scratch) noexcept nogil:
    cdef Tile tile
    cdef Pool *p = job.pool
    cdef View *x = &job.x
    cdef View *y = &job.y
    cdef bint done = False
    if p.form == FAR:
        tile_far(p, x, y, &job.z, task, scratch)
        return
    tile_of(&tile, p, task)
    if p.form == TAPS:
        if not p.keyed and p.lane == p.size:
            if p.code == F32:
                done = tile_taps(<float *>NULL, p, x, y, &job.z, &tile, scratch, False)
            elif p.code == F64:
                done = tile_taps(<double *>NULL, p, x, y, &job.z, &tile, scratch, False)
            elif p.code == I16:
                done = tile_taps(<int16_t *>NULL, p, x, y, &job.z, &tile, scratch, False)
            elif p.code == I32:
                done = tile_taps(<int32_t *>NULL, p, x, y, &job.z, &tile, scratch, False)
            elif p.code == I64:
                done = tile_taps(<int64_t *>NULL, p, x, y, &job.z, &tile, scratch, False)
        if done:
            return
        if p.lane == 2:
            tile_taps(<int16_t *>NULL, p, x, y, &job.z, &tile, scratch, True)
        elif p.lane == 4:
            tile_taps(<int32_t *>NULL, p, x, y, &job.z, &tile, scratch, True)
        else:
            tile_taps(<int64_t *>NULL, p, x, y, &job.z, &tile, scratch, True)
        return
    if p.pairs:
        if p.lane == 2:
            tile_pairs(<int16_t *>NULL, p, x, y, &job.z, &tile, scratch)
        elif p.lane == 4:
            tile_pairs(<int32_t *>NULL, p, x, y, &job.z, &tile, scratch)
        else:
            tile_pairs(<int64_t *>NULL, p, x, y, &job.z, &tile, scratch)
        return
    if not p.keyed:
        if p.code == F32:
            done = tile_values(<float *>NULL, p, x, y, &tile, scratch)
        elif p.code == F64:
            done = tile_values(<double *>NULL, p, x, y, &tile, scratch)
        elif p.code == I8:
            done = tile_values(<int8_t *>NULL, p, x, y, &tile, scratch)
        elif p.code == I16:
            done = tile_values(<int16_t *>NULL, p, x, y, &tile, scratch)
        elif p.code == I32:
            done = tile_values(<int32_t *>NULL, p, x, y, &tile, scratch)
        elif p.code == I64:
            done = tile_values(<int64_t *>NULL, p, x, y, &tile, scratch)
        elif p.code == U8 or p.code == BOOL:
            done = tile_values(<uint8_t *>NULL, p, x, y, &tile, scratch)
            if p.code == BOOL:
                make_bools(p, y, &tile)
        elif p.code == U16:
            done = tile_values(<uint16_t *>NULL, p, x, y, &tile, scratch)
        elif p.code == U32:
            done = tile_values(<uint32_t *>NULL, p, x, y, &tile, scratch)
        else:
            done = tile_values(<uint64_t *>NULL, p, x, y, &tile, scratch)
        if done:
            return
    if p.size == 2:
        tile_keys(<int16_t *>NULL, p, x, y, &tile, scratch)
    elif p.size == 4:
        tile_keys(<int32_t *>NULL, p, x, y, &tile, scratch)
    else:
        tile_keys(<int64_t *>NULL, p, x, y, &tile, scratch)


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


cdef void run_tasks(Job *job, int threads) noexcept nogil:
    cdef Py_ssize_t task
    if threads == 1:
        for task in range(job.pool.tasks):
            run_task(job, task, &job.scratch[0])
        return
    for task in prange(job.pool.tasks, schedule='static', num_threads=threads):
        run_task(job, task, &job.scratch[threadid()])


cdef inline int busy(const Pool *p, int threads) noexcept nogil:
    """Threads that find something to do, as far as the system gives them."""
    threads = <int>imax(1, imin(imin(threads, p.tasks), MAX_THREADS))
    return threads if threads == 1 else threads_given(threads)


cdef bint run_job(Job *job, int threads) noexcept nogil:
    """Run on so many `busy` threads. False, with nothing done, if there is no memory for their scratch."""
    cdef const Pool *p = job.pool
    cdef size_t stride = p.scratch + 64, nbytes = 128 + threads * stride
    cdef Scratch scratch[MAX_THREADS]
    cdef char small[STACK_BYTES]
    cdef size_t *block = <size_t *>small if nbytes <= STACK_BYTES else take_scratch(nbytes)
    cdef int i
    if block == NULL:
        return False
    for i in range(threads):
        scratch[i].area = <char *>((<uintptr_t>block + 64 + i * stride + 63) // 64 * 64)
        scratch[i].margins = -1
        put_fences(scratch[i].area, p.scratch, p.offsets, AREAS)
    job.scratch = scratch
    run_tasks(job, threads)
    take_fences_away(block, nbytes)
    if block != <size_t *>small:
        give_scratch(block)
    return True


# Scratch beyond the stack: one block outlives a call, as mapping fresh pages would cost more than a small pooling. Calls take
# it, and put theirs in its place, by an exchange, as not all of them hold the GIL. A block's first word holds its size.
cdef extern from *:
    """
    #define exchange(place, block) __atomic_exchange_n((place), (block), __ATOMIC_ACQ_REL)
    """
    size_t *exchange(size_t **, size_t *) noexcept nogil

cdef size_t *kept = NULL


cdef size_t *take_scratch(size_t nbytes) noexcept nogil:
    cdef size_t *block = NULL
    if nbytes <= KEEP_BYTES:
        block = exchange(&kept, NULL)
        if block != NULL and block[0] >= nbytes:
            return block
        free(block)
    block = <size_t *>malloc(nbytes)
    if block != NULL:
        block[0] = nbytes
    return block


cdef void give_scratch(size_t *block) noexcept nogil:
    free(exchange(&kept, block) if block[0] <= KEEP_BYTES else block)
