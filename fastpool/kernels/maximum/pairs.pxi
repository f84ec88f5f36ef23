# Takes:   any window, with indices; what "taps" does not take
# Reads:   keys of the input, row by row (keys.h)
# Scratch: keys and positions of a band (BAND), of the outputs (POOLED), of one more slab (SPARE)
#          and of a chain (CHAIN, DENSE); keys of a few input rows (SLAB); their positions (IOTA)
# Wins:    windows too large for taps: channels last float32 1x56x56x64 k5 526 us (679 by taps),
#          k8 581 (1210 by taps)
#
# A pair is a key and a position, two integers of one width. A tap replaces the pair only if its key
# is greater, so that among equal values the first tap wins. Therefore columns go before rows, and
# rows before leading axes: the winner is the first in row-major order. A position is the row-major
# offset from the tile's first real element, modulo the width of the integer.
#
# A margin has the lowest key. Where it may have won a tie, and in a window without elements,
# `settle_margins` works the index out from the geometry.

cdef enum:
    PAIR_ROWS = 8           # rows of pairs that one column pass takes


cdef struct PairRows:       # rows of keys and of positions, both of type key_t
    void *keys
    void *places
    Py_ssize_t step                 # elements from one row to the next


cdef inline PairRows pair_rows(const Pool *p, char *scratch, Area keys, Area places,
                               Py_ssize_t step) noexcept nogil:
    cdef PairRows rows
    rows.keys, rows.places = area_of(p, scratch, keys), area_of(p, scratch, places)
    rows.step = step
    return rows


cdef inline PairRows from_pair(const PairRows *rows, Py_ssize_t at,
                               const key_t *tag) noexcept nogil:
    """Return the rows from element `at` on."""
    cdef PairRows part = rows[0]
    part.keys = <key_t *>rows.keys + at
    part.places = <key_t *>rows.places + at
    return part


cdef inline void pair_window(const PairRows *to, const PairRows *source, const Taps *taps,
                             int64_t add, Py_ssize_t n, const key_t *tag) noexcept nogil:
    """Pool n windows over pairs; `add` is added to the positions.

    `to` may be `source` if n is whole vectors.
    """
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(key_t)
    cdef key_t *dk = <key_t *>to.keys
    cdef key_t *dp = <key_t *>to.places
    cdef const key_t *sk = <const key_t *>source.keys
    cdef const key_t *sp = <const key_t *>source.places
    cdef Py_ssize_t i = 0, t, tap
    cdef vec_t key, position, other, offset = vec_set_int(add, tag)
    cdef vec_mask greater
    while i < n:
        tap = taps.offsets[0] + i
        key, position = vec_load(sk + tap), vec_load(sp + tap)
        for t in range(1, taps.count):
            tap = taps.offsets[t] + i
            other = vec_load(sk + tap)
            greater = vec_gt(other, key, tag)
            key = vec_select(greater, other, key, tag)
            position = vec_select(greater, vec_load(sp + tap), position, tag)
        store_pair(dk + i, dp + i, key, vec_add_int(position, offset, tag), n - i)
        i += lanes


cdef inline void store_pair(key_t *dk, key_t *dp, vec_t key, vec_t position,
                            Py_ssize_t left) noexcept nogil:
    """Store a vector of pairs, or the `left` first of them."""
    if left * <Py_ssize_t>sizeof(key_t) >= VEC_BYTES:
        vec_store(dk, key)
        vec_store(dp, position)
    else:
        vec_store_part(dk, key, left * sizeof(key_t))
        vec_store_part(dp, position, left * sizeof(key_t))


cdef inline vec_t first_pair(const key_t *sk, const Taps *taps, vec_t *position) noexcept nogil:
    """Pool windows over bare keys: the offset of a tap is its position."""
    cdef vec_t other, key = vec_load(sk + taps.offsets[0])
    cdef vec_mask greater
    cdef Py_ssize_t t
    position[0] = vec_set_int(taps.offsets[0], sk)
    for t in range(1, taps.count):
        other = vec_load(sk + taps.offsets[t])
        greater = vec_gt(other, key, sk)
        key = vec_select(greater, other, key, sk)
        position[0] = vec_select(greater, vec_set_int(taps.offsets[t], sk), position[0], sk)
    return key


cdef inline void first_window(key_t *dk, key_t *dp, const key_t *sk, const key_t *iota,
                              const Taps *taps, int64_t add, Py_ssize_t stride,
                              Py_ssize_t n) noexcept nogil:
    """Pool n windows over bare keys at stride 1 or 2.

    iota[i] is the position of a window that starts at sk[i].
    """
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(key_t)
    cdef Py_ssize_t i = 0
    cdef vec_t key, position, next_key, next_position, offset = vec_set_int(add, dk)
    while i < n:
        key = first_pair(sk + stride * i, taps, &position)
        position = vec_add_int(position, vec_load(iota + stride * i), dk)
        if stride == 2:
            next_key = first_pair(sk + 2 * i + lanes, taps, &next_position)
            next_position = vec_add_int(next_position, vec_load(iota + 2 * i + lanes), dk)
            key = vec_concat_even(key, next_key, dk)
            position = vec_concat_even(position, next_position, dk)
        store_pair(dk + i, dp + i, key, vec_add_int(position, offset, dk), n - i)
        i += lanes


cdef struct Lines:              # rows of a tile
    Py_ssize_t first, count
    int64_t positions           # from one row to the next


cdef void pair_column_pass(const PairRows *to, const key_t *keys, const PairRows *dense,
                           const key_t *iota, const Window *w, const Lines *lines,
                           Py_ssize_t n) noexcept nogil:
    """Pool columns of bare keys to n pairs a row. The rows of `dense` and of the keys are alike."""
    cdef Taps taps
    cdef Py_ssize_t step, r, rows = lines.count, pitch = dense.step
    cdef key_t *dk = <key_t *>to.keys
    cdef key_t *dp = <key_t *>to.places
    cdef key_t *dense_k = <key_t *>dense.keys
    cdef key_t *dense_p = <key_t *>dense.places
    cdef int64_t add
    cdef bint short = w.steps == 1 and w.stride <= 2
    step_taps(&taps, w, 0, 1)
    for r in range(rows):
        add = (lines.first + r) * lines.positions
        if short:
            first_window(dk + r * to.step, dp + r * to.step, keys + r * pitch, iota, &taps, add,
                         w.stride, n)
        else:
            first_window(dense_k + r * pitch, dense_p + r * pitch, keys + r * pitch, iota, &taps,
                         add, 1, pitch)
    if short:
        return
    for step in range(1, w.steps):
        step_taps(&taps, w, step, 1)
        pair_window(dense, dense, &taps, 0, rows * pitch, keys)
    for r in range(rows):
        pick_every(dk + r * to.step, <const key_t *>(dense_k + r * pitch), w.stride, n)
        pick_every(dp + r * to.step, <const key_t *>(dense_p + r * pitch), w.stride, n)


cdef void pair_row_pass(const PairRows *to, const PairRows *source, int64_t add, Py_ssize_t n,
                        const Pass *run, const key_t *tag) noexcept nogil:
    """row_pass over pairs; `add` is added to the positions."""
    cdef const Window *w = run.window
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(key_t)
    cdef Py_ssize_t lo = run.first * w.stride - w.begin
    cdef Py_ssize_t length = (run.count - 1) * w.stride + w.extent
    cdef Py_ssize_t block = imax(lanes, CHAIN_BYTES // 2 // VEC_BYTES // length * lanes)
    cdef Py_ssize_t o, real, at, start, width, pitch, step, r, rows
    cdef const key_t *sk = <const key_t *>source.keys
    cdef const key_t *sp = <const key_t *>source.places
    cdef key_t *ck = <key_t *>run.chain
    cdef key_t *cp
    cdef PairRows out, chain
    cdef Taps taps
    if w.steps == 1:
        step_taps(&taps, w, 0, source.step)
        for o in range(run.count):
            out = from_pair(to, o * to.step, tag)
            taps.count = real = real_taps(w, run.first + o, &at)
            if real == 0:
                fill_lowest(<key_t *>out.keys, n)
                fill(<key_t *>out.places, n, <key_t>0)
            else:
                chain = from_pair(source, (at - run.origin) * source.step, tag)
                pair_window(&out, &chain, &taps, add, n, tag)
        return
    start = 0
    while start < n:
        width = imin(block, n - start)
        pitch = round_up(width, lanes)
        cp = ck + length * pitch
        for r in range(length):
            if 0 <= lo + r < w.size:
                at = (lo + r - run.origin) * source.step + start
                memcpy(ck + r * pitch, sk + at, width * sizeof(key_t))
                memcpy(cp + r * pitch, sp + at, width * sizeof(key_t))
            else:
                fill_lowest(ck + r * pitch, width)
                fill(cp + r * pitch, width, <key_t>0)
        chain.keys, chain.places, chain.step = ck, cp, pitch
        rows = length
        for step in range(w.steps - 1):
            rows -= w.lasts[step]
            step_taps(&taps, w, step, pitch)
            pair_window(&chain, &chain, &taps, 0, rows * pitch, tag)
        step_taps(&taps, w, w.steps - 1, pitch)
        for o in range(run.count):
            at = o * w.stride * pitch
            chain.keys, chain.places = ck + at, cp + at
            out = from_pair(to, o * to.step + start, tag)
            pair_window(&out, &chain, &taps, add, width, tag)
        start += block


cdef void pair_box(const PairRows *to, const View *x, Py_ssize_t at, const Work *work,
                   const key_t *tag) noexcept nogil:
    """Pool the rows and columns of one slab to the pairs of the whole tile.

    `at` is the offset of the slab in x.
    """
    cdef const Pool *pool = work.pool
    cdef const Problem *p = &pool.frame.problem
    cdef const Tile *tile = work.tile
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(key_t), n = tile.channels, data
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t out = tile.cols * n, r = 0, pitch = band_pitch(p, tile, lanes, &data)
    cdef keys_load_t load = keys_loader(p.code, <int>sizeof(key_t))
    cdef key_t *keys = <key_t *>area_of(pool, work.scratch, SLAB)
    cdef const key_t *iota = <const key_t *>area_of(pool, work.scratch, IOTA)
    cdef PairRows band = pair_rows(pool, work.scratch, BAND, BAND_PLACES, out)
    cdef PairRows dense = pair_rows(pool, work.scratch, DENSE, DENSE_PLACES, pitch)
    cdef PairRows line, source
    cdef const char *src
    cdef Lines lines
    cdef Pass run
    lines.positions = p.cols.size
    if p.channels_last:
        set_pass_of_cols(&run, work, work.leads)
        source.keys, source.places, source.step = keys, <void *>iota, n
        for r in range(rows):
            src = x.data + (at + r * x.row) * p.size
            if x.col == n or cols == 1:
                load(keys, 0, src, 0, 1, cols * n, pool.rule)
            else:
                load(keys, n, src, x.col, cols, n, pool.rule)
            line = from_pair(&band, r * out, tag)
            line.step = n
            pair_row_pass(&line, &source, r * lines.positions, n, &run, tag)
    else:
        while r < rows:
            lines.first, lines.count = r, imin(PAIR_ROWS, rows - r)
            load(keys + data + tile.left, pitch, x.data + (at + r * x.row) * p.size, x.row,
                 lines.count, cols, pool.rule)
            line = from_pair(&band, r * out, tag)
            pair_column_pass(&line, <const key_t *>(keys + data), &dense, iota, &p.cols, &lines,
                             tile.cols)
            r += lines.count
    set_pass_of_rows(&run, work)
    pair_row_pass(to, &band, 0, out, &run, tag)


cdef void tile_pairs(const Pool *pool, const Job *job, const Tile *tile, Scratch *scratch,
                     const key_t *tag) noexcept nogil:
    """Pool one tile to values and indices."""
    cdef const Problem *p = &pool.frame.problem
    cdef const View *x = &job.x
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(key_t)
    cdef Py_ssize_t counts[MAX_LEADS]
    cdef Py_ssize_t n = tile.channels, total, first, plane, t, i, at, data
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t out = tile.cols * n, pitch = band_pitch(p, tile, lanes, &data)
    cdef PairRows best = pair_rows(pool, scratch.area, POOLED, POOLED_PLACES, out)
    cdef PairRows more = pair_rows(pool, scratch.area, SPARE, SPARE_PLACES, out)
    cdef key_t *keys = <key_t *>best.keys
    cdef key_t *places = <key_t *>best.places
    cdef key_t *iota = <key_t *>area_of(pool, scratch.area, IOTA)
    cdef Taps one
    cdef Work work
    set_taps(&one, 1, 0)
    work.pool, work.tile, work.planes = pool, tile, 1
    work.leads, work.scratch = &one, scratch.area
    total = lead_taps(p, x, tile.lead, counts, &first)
    if p.channels_last:
        for i in range(cols):
            fill(iota + i * n, n, <key_t>i)
    else:
        fill_margins(<key_t *>area_of(pool, scratch.area, SLAB), pitch, data, tile,
                     imin(rows, PAIR_ROWS))
        fill_positions(iota, pitch + 2 * lanes, <int64_t>-tile.left)
    for plane in range(tile.planes):
        if total == 0 or rows == 0 or cols == 0:
            fill_lowest(keys, tile.rows * out)
            fill(places, tile.rows * out, <key_t>0)
            total = 0
        for t in range(total):
            at = input_offset(p, x, tile, plane) + first + lead_offset(p, x.lead, counts, t)
            if t == 0:
                pair_box(&best, x, at, &work, tag)
                continue
            pair_box(&more, x, at, &work, tag)
            at = lead_offset(p, pool.indexing.position_lead, counts, t)
            merge_pairs(keys, places, <const key_t *>more.keys, <const key_t *>more.places, at,
                        tile.rows * out)
        store_tile(<const key_t *>keys, <const key_t *>places, pool, job, tile, plane)


cdef inline void merge_pairs(key_t *keys, key_t *places, const key_t *more_keys,
                             const key_t *more_places, int64_t add, Py_ssize_t n) noexcept nogil:
    """Merge n pairs with n more; `add` is added to the positions of those."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(key_t)
    cdef Py_ssize_t i = 0
    cdef vec_t key, other, place, offset = vec_set_int(add, keys)
    cdef vec_mask greater
    while i < n:
        key, other = vec_load(keys + i), vec_load(more_keys + i)
        greater = vec_gt(other, key, keys)
        place = vec_add_int(vec_load(more_places + i), offset, keys)
        place = vec_select(greater, place, vec_load(places + i), keys)
        store_pair(keys + i, places + i, vec_select(greater, other, key, keys), place, n - i)
        i += lanes


cdef void store_tile(const key_t *keys, const key_t *places, const Pool *p, const Job *job,
                     const Tile *tile, Py_ssize_t plane) noexcept nogil:
    """Store the values and indices of one plane."""
    cdef const View *z = &job.z
    cdef Py_ssize_t out = tile.cols * tile.channels, r, at
    cdef int64_t base = tile_base(p, tile)
    if not p.frame.problem.channels_last:
        base += plane_base(p, tile.plane + plane) + tile.col_lo * p.indexing.col
    store_keys(&job.y, tile, plane, 0, tile.rows, keys, p)
    at = output_offset(&p.frame.problem, z, tile, plane)
    for r in range(tile.rows):
        if p.indexing.bytes == 8:
            store_index_row(<int64_t *>z.data + at + r * z.row, keys + r * out, places + r * out,
                            p, z, tile, base, r)
        else:
            store_index_row(<int32_t *>z.data + at + r * z.row, keys + r * out, places + r * out,
                            p, z, tile, base, r)


cdef void store_index_row(index_t *dst, const key_t *keys, const key_t *places, const Pool *p,
                          const View *z, const Tile *tile, Py_ssize_t base,
                          Py_ssize_t r) noexcept nogil:
    """Store the indices of row r of the tile."""
    cdef Py_ssize_t n = tile.channels, o, c, at
    cdef int64_t channel = p.indexing.channel, col = p.indexing.col
    if not p.indexing.linear:
        for o in range(tile.cols):
            for c in range(n):
                at = base + c * channel + index_of_position(p, places[o * n + c])
                dst[o * z.col + c] = <index_t>at
    elif n == 1 and z.col == 1:
        store_indices(dst, places, <size_t>tile.cols, <int64_t>base, <int64_t>0, col)
    else:
        for o in range(tile.cols):
            store_indices(dst + o * z.col, places + o * n, <size_t>n, <int64_t>base, channel, col)
    if has_margin(keys, <size_t>(tile.cols * n)):
        settle_margins(dst, keys, p, z, tile, base, r)


cdef void settle_margins(index_t *dst, const key_t *keys, const Pool *p, const View *z,
                         const Tile *tile, Py_ssize_t base, Py_ssize_t r) noexcept nogil:
    """Set the indices of windows whose maximum is the lowest key.

    All their elements have that key, so the first one counts. The index is -1 if there is none.
    """
    cdef const Problem *problem = &p.frame.problem
    cdef Py_ssize_t n = tile.channels, o, c, row = 0, col = 0, lead = tile.lead, first, at
    cdef Py_ssize_t axis = problem.leads
    cdef bint some = real_taps(&problem.rows, tile.row + r, &row) > 0
    while axis > 0:
        axis -= 1
        some = some and real_taps(&problem.lead[axis], lead % problem.lead[axis].out, &first) > 0
        lead //= problem.lead[axis].out
    for o in range(tile.cols):
        for c in range(n):
            if keys[o * n + c] != <key_t>lowest(keys):
                continue
            if some and real_taps(&problem.cols, tile.col + o, &col) > 0:
                at = base + (row - tile.row_lo) * p.indexing.row + c * p.indexing.channel
                at += (col - tile.col_lo) * p.indexing.col
                dst[o * z.col + c] = <index_t>at
            else:
                dst[o * z.col + c] = -1


cdef void pairs_scratch(const Pool *p, Py_ssize_t *size) noexcept nogil:
    """Set the sizes of all areas, in keys."""
    cdef const Problem *problem = &p.frame.problem
    cdef Py_ssize_t lanes = VEC_BYTES // p.key_bytes, n = p.frame.tiling.channels
    cdef Py_ssize_t rows = (p.frame.tiling.rows - 1) * problem.rows.stride + problem.rows.extent
    cdef Py_ssize_t span = (p.frame.tiling.cols - 1) * problem.cols.stride + problem.cols.extent
    cdef Py_ssize_t line = imin(span, problem.cols.size) * n, out = p.frame.tiling.cols * n
    cdef Py_ssize_t pitch = round_up(lanes + span, lanes)
    size[<int>BAND] = size[<int>BAND_PLACES] = imin(rows, problem.rows.size) * out
    size[<int>POOLED] = size[<int>POOLED_PLACES] = p.frame.tiling.rows * out
    if problem.leads:
        size[<int>SPARE] = size[<int>SPARE_PLACES] = p.frame.tiling.rows * out
    if problem.channels_last:
        size[<int>SLAB] = size[<int>IOTA] = line
    else:
        # One row more than a column pass takes: a chain takes the rows as one, and its taps go on
        # after the last of them.
        size[<int>SLAB] = (PAIR_ROWS + 1) * pitch
        size[<int>IOTA] = pitch + 4 * lanes
        if problem.cols.steps > 1 or problem.cols.stride > 2:
            size[<int>DENSE] = size[<int>DENSE_PLACES] = size[<int>SLAB]
    long_windows_scratch(p, size, p.key_bytes, False)
