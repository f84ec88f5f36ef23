# Takes:   any window, with indices; what "taps" does not take
# Reads:   keys of the input, row by row (keys.h)
# Scratch: keys and positions of a band, of the outputs and of a chain; a table of positions
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

cdef inline void pair_window(key_t *dk, key_t *dp, const key_t *sk, const key_t *sp, const Py_ssize_t *taps, Py_ssize_t ntaps,
                             int64_t add, Py_ssize_t n) noexcept nogil:
    """Pairs i < n of a window over pairs (sk, sp); `add` is added to the positions. In place if n is whole vectors."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(key_t)
    cdef Py_ssize_t i = 0, t, tap
    cdef vec_t key, position, other, offset = vec_set(add, dk)
    cdef vec_mask greater
    while i < n:
        tap = taps[0] + i
        key, position = vec_load(sk + tap), vec_load(sp + tap)
        for t in range(1, ntaps):
            tap = taps[t] + i
            other = vec_load(sk + tap)
            greater = vec_gt(other, key, dk)
            key = vec_select(greater, other, key, dk)
            position = vec_select(greater, vec_load(sp + tap), position, dk)
        store_pair(dk + i, dp + i, key, vec_add(position, offset, dk), n - i)
        i += lanes


cdef inline void store_pair(key_t *dk, key_t *dp, vec_t key, vec_t position, Py_ssize_t left) noexcept nogil:
    if left * <Py_ssize_t>sizeof(key_t) >= VEC_BYTES:
        vec_store(dk, key)
        vec_store(dp, position)
    else:
        vec_store_part(dk, key, left * sizeof(key_t))
        vec_store_part(dp, position, left * sizeof(key_t))


cdef inline vec_t first_pair(const key_t *sk, const Py_ssize_t *taps, Py_ssize_t ntaps, vec_t *position, key_t *tag) noexcept nogil:
    """A window over bare keys: a tap's offset is its position."""
    cdef vec_t other, key = vec_load(sk + taps[0])
    cdef vec_mask greater
    cdef Py_ssize_t t
    position[0] = vec_set(taps[0], tag)
    for t in range(1, ntaps):
        other = vec_load(sk + taps[t])
        greater = vec_gt(other, key, tag)
        key = vec_select(greater, other, key, tag)
        position[0] = vec_select(greater, vec_set(taps[t], tag), position[0], tag)
    return key


cdef inline void first_window(key_t *dk, key_t *dp, const key_t *sk, const key_t *iota, const Py_ssize_t *taps,
                              Py_ssize_t ntaps, int64_t add, Py_ssize_t stride, Py_ssize_t n) noexcept nogil:
    """Windows over bare keys, one per lane, at stride 1 or 2; iota[i] is the position of a window starting at sk[i]."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(key_t)
    cdef Py_ssize_t i = 0
    cdef vec_t key, position, next_key, next_position, offset = vec_set(add, dk)
    while i < n:
        key = first_pair(sk + stride * i, taps, ntaps, &position, dk)
        position = vec_add(position, vec_load(iota + stride * i), dk)
        if stride == 2:
            next_key = first_pair(sk + 2 * i + lanes, taps, ntaps, &next_position, dk)
            next_position = vec_add(next_position, vec_load(iota + 2 * i + lanes), dk)
            key, position = vec_concat_even(key, next_key, dk), vec_concat_even(position, next_position, dk)
        store_pair(dk + i, dp + i, key, vec_add(position, offset, dk), n - i)
        i += lanes


cdef void pair_column_pass(key_t *dk, key_t *dp, const key_t *keys, key_t *dense_k, key_t *dense_p, const key_t *iota,
                         Py_ssize_t pitch, const Window *w, Py_ssize_t first, int64_t row_positions, Py_ssize_t rows,
                         Py_ssize_t n, Py_ssize_t dst_step) noexcept nogil:
    """The column pass where columns are lanes: rows first ... first + rows of the tile, `row_positions` from one to the next."""
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef Py_ssize_t step, r, i
    cdef bint short = w.steps == 1 and w.stride <= 2
    step_taps(taps, w, 0, 1)
    for r in range(rows):
        if short:
            first_window(dk + r * dst_step, dp + r * dst_step, keys + r * pitch, iota, taps, w.taps[0],
                         (first + r) * row_positions, w.stride, n)
        else:
            first_window(dense_k + r * pitch, dense_p + r * pitch, keys + r * pitch, iota, taps, w.taps[0],
                         (first + r) * row_positions, 1, pitch)
    if short:
        return
    for step in range(1, w.steps):
        step_taps(taps, w, step, 1)
        pair_window(dense_k, dense_p, <const key_t *>dense_k, <const key_t *>dense_p, taps, w.taps[step], 0, rows * pitch)
    for r in range(rows):
        for i in range(n):
            dk[r * dst_step + i] = dense_k[r * pitch + i * w.stride]
            dp[r * dst_step + i] = dense_p[r * pitch + i * w.stride]


cdef void pair_row_pass(key_t *dk, key_t *dp, Py_ssize_t dst_step, const key_t *sk, const key_t *sp, Py_ssize_t src_step,
                        Py_ssize_t origin, const Window *w, Py_ssize_t first, Py_ssize_t count, int64_t add, Py_ssize_t n,
                        key_t *chain) noexcept nogil:
    """As row_pass, on pairs."""
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(key_t)
    cdef Py_ssize_t lo = first * w.stride - w.begin, length = (count - 1) * w.stride + w.extent
    cdef Py_ssize_t block = imax(lanes, CHAIN_BYTES // 2 // VEC_BYTES // length * lanes)
    cdef Py_ssize_t o, real, at, start, width, pitch, step, r, rows
    cdef key_t *ck
    cdef key_t *cp
    if w.steps == 1:
        step_taps(taps, w, 0, src_step)
        for o in range(count):
            real = real_taps(w, first + o, &at)
            if real == 0:
                fill(dk + o * dst_step, n, <key_t>lowest(dk))
                fill(dp + o * dst_step, n, <key_t>0)
            else:
                at = (at - origin) * src_step
                pair_window(dk + o * dst_step, dp + o * dst_step, sk + at, sp + at, taps, real, add, n)
        return
    start = 0
    while start < n:
        width = imin(block, n - start)
        pitch = round_up(width, lanes)
        ck, cp = chain, chain + length * pitch
        for r in range(length):
            if 0 <= lo + r < w.size:
                at = (lo + r - origin) * src_step + start
                memcpy(ck + r * pitch, sk + at, width * sizeof(key_t))
                memcpy(cp + r * pitch, sp + at, width * sizeof(key_t))
            else:
                fill(ck + r * pitch, width, <key_t>lowest(dk))
                fill(cp + r * pitch, width, <key_t>0)
        rows = length
        for step in range(w.steps - 1):
            rows -= w.lasts[step]
            step_taps(taps, w, step, pitch)
            pair_window(ck, cp, <const key_t *>ck, <const key_t *>cp, taps, w.taps[step], 0, rows * pitch)
        step_taps(taps, w, w.steps - 1, pitch)
        for o in range(count):
            at = o * w.stride * pitch
            pair_window(dk + o * dst_step + start, dp + o * dst_step + start, <const key_t *>(ck + at), <const key_t *>(cp + at),
                        taps, w.taps[w.steps - 1], add, width)
        start += block


cdef void pair_box(key_t *dk, key_t *dp, const Areas *areas, const View *x, Py_ssize_t at, const Pool *p, const Tile *tile,
                   Py_ssize_t pitch, Py_ssize_t data) noexcept nogil:
    """WindowRows and columns of one slab: pairs of the whole tile, dense, in (dk, dp)."""
    cdef Py_ssize_t n = tile.channels, rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t line = p.cols.size, out = tile.cols * n, r = 0, count
    cdef keys_load_t load = keys_loader(p.code, <int>sizeof(key_t))
    cdef key_t *keys = <key_t *>areas.slab
    cdef key_t *iota = <key_t *>areas.iota
    cdef key_t *mk = <key_t *>areas.band
    cdef key_t *mp = <key_t *>areas.band_places
    if p.channels_last:
        for r in range(rows):
            if x.col == n or cols == 1:
                load(keys, 0, x.data + (at + r * x.row) * p.size, 0, 1, cols * n, p.rule)
            else:
                load(keys, n, x.data + (at + r * x.row) * p.size, x.col, cols, n, p.rule)
            pair_row_pass(mk + r * out, mp + r * out, n, <const key_t *>keys, <const key_t *>iota, n, tile.col_lo, &p.cols, tile.col,
                          tile.cols, r * line, n, <key_t *>areas.chain)
    else:
        while r < rows:
            count = imin(PAIR_ROWS, rows - r)
            load(keys + data + tile.left, pitch, x.data + (at + r * x.row) * p.size, x.row, count, cols, p.rule)
            pair_column_pass(mk + r * out, mp + r * out, <const key_t *>(keys + data), <key_t *>areas.dense, <key_t *>areas.dense_places,
                           <const key_t *>iota, pitch, &p.cols, r, line, count, tile.cols, out)
            r += count
    pair_row_pass(dk, dp, out, <const key_t *>mk, <const key_t *>mp, out, tile.row_lo, &p.rows, tile.row, tile.rows, 0, out,
                  <key_t *>areas.chain)


cdef void tile_pairs(const Pool *p, const View *x, const View *y, const View *z, const Tile *tile, Scratch *scratch, key_t *tag) noexcept nogil:
    """One tile of values (y) and indices (z)."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(key_t)
    cdef Py_ssize_t counts[MAX_LEADS]
    cdef Py_ssize_t n = tile.channels, total, first, plane, t, i, at, data, r
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo, out = tile.cols * n
    cdef Py_ssize_t pitch = band_pitch(p, tile.span, tile.left, lanes, &data)
    cdef Areas areas
    split_scratch(&areas, p, scratch.area)
    cdef key_t *keys = <key_t *>areas.pooled
    cdef key_t *places = <key_t *>areas.pooled_places
    cdef key_t *more_keys = <key_t *>areas.spare
    cdef key_t *more_places = <key_t *>areas.spare_places
    cdef key_t *iota = <key_t *>areas.iota
    total = lead_taps(p, x, tile.lead, counts, &first)
    if p.channels_last:
        for i in range(cols):
            fill(iota + i * n, n, <key_t>i)
    else:
        fill_margins(<key_t *>areas.slab, pitch, data, tile, imin(rows, PAIR_ROWS))
        for i in range(pitch + 2 * lanes):
            iota[i] = <key_t>(i - tile.left)
    for plane in range(tile.planes):
        if total == 0 or rows == 0 or cols == 0:
            fill(keys, tile.rows * out, <key_t>lowest(tag))
            fill(places, tile.rows * out, <key_t>0)
            total = 0
        for t in range(total):
            at = input_offset(p, x, tile, plane) + first + lead_offset(p, x.lead, counts, t)
            if t == 0:
                pair_box(keys, places, &areas, x, at, p, tile, pitch, data)
                continue
            pair_box(more_keys, more_places, &areas, x, at, p, tile, pitch, data)
            at = lead_offset(p, p.position_lead, counts, t)
            for i in range(tile.rows * out):
                more_places[i] += <key_t>at
            merge_pairs(keys, places, <const key_t *>more_keys, <const key_t *>more_places, tile.rows * out)
        store_tile(keys, places, p, y, z, tile, plane)


cdef inline void merge_pairs(key_t *keys, key_t *places, const key_t *more_keys, const key_t *more_places,
                             Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(key_t)
    cdef Py_ssize_t i = 0
    cdef vec_t key, other
    cdef vec_mask greater
    while i < n:
        key, other = vec_load(keys + i), vec_load(more_keys + i)
        greater = vec_gt(other, key, keys)
        store_pair(keys + i, places + i, vec_select(greater, other, key, keys),
                   vec_select(greater, vec_load(more_places + i), vec_load(places + i), keys), n - i)
        i += lanes


cdef void store_tile(const key_t *keys, const key_t *places, const Pool *p, const View *y, const View *z, const Tile *tile,
                     Py_ssize_t plane) noexcept nogil:
    cdef Py_ssize_t out = tile.cols * tile.channels, r, at
    cdef int64_t base = tile_base(p, tile)
    if not p.channels_last:
        base += plane_base(p, tile.plane + plane) + tile.col_lo * p.index_col
    store_keys(y, tile, plane, 0, tile.rows, keys, p)
    at = output_offset(p, z, tile, plane)
    for r in range(tile.rows):
        if p.index_bytes == 8:
            store_index_row(<int64_t *>z.data + at + r * z.row, keys + r * out, places + r * out, p, z, tile, base, r)
        else:
            store_index_row(<int32_t *>z.data + at + r * z.row, keys + r * out, places + r * out, p, z, tile, base, r)


cdef void store_index_row(index_t *dst, const key_t *keys, const key_t *places, const Pool *p, const View *z, const Tile *tile,
                          Py_ssize_t base, Py_ssize_t r) noexcept nogil:
    cdef Py_ssize_t n = tile.channels, o, c
    if not p.linear:
        for o in range(tile.cols):
            for c in range(n):
                dst[o * z.col + c] = <index_t>(base + c * p.index_channel + index_of_position(p, places[o * n + c]))
    elif n == 1 and z.col == 1:
        store_indices(dst, places, <size_t>tile.cols, <int64_t>base, <int64_t>0, <int64_t>p.index_col)
    else:
        for o in range(tile.cols):
            store_indices(dst + o * z.col, places + o * n, <size_t>n, <int64_t>base, <int64_t>p.index_channel,
                          <int64_t>p.index_col)
    if has_margin(keys, <size_t>(tile.cols * n)):
        settle_margins(dst, keys, p, z, tile, base, r)


cdef inline Py_ssize_t index_of_position(const Pool *p, key_t place) noexcept nogil:
    """A position, row-major from the tile's first element, in the index's own strides."""
    cdef uint64_t at = <uint64_t>place
    cdef Py_ssize_t axis = p.leads, index
    if key_t is int16_t:
        at = <uint16_t>place
    elif key_t is int32_t:
        at = <uint32_t>place
    index = <Py_ssize_t>(at % <uint64_t>p.cols.size) * p.index_col
    at //= <uint64_t>p.cols.size
    index += <Py_ssize_t>(at % <uint64_t>p.rows.size) * p.index_row
    at //= <uint64_t>p.rows.size
    while axis > 0:
        axis -= 1
        index += <Py_ssize_t>(at % <uint64_t>p.lead[axis].size) * p.index_lead[axis]
        at //= <uint64_t>p.lead[axis].size
    return index


cdef void settle_margins(index_t *dst, const key_t *keys, const Pool *p, const View *z, const Tile *tile, Py_ssize_t base,
                         Py_ssize_t r) noexcept nogil:
    """Windows whose maximum is the lowest key: all their elements are it, so the first counts; -1 if they have none."""
    cdef Py_ssize_t n = tile.channels, o, c, row = 0, col = 0, lead = tile.lead, first, axis = p.leads
    cdef bint some = real_taps(&p.rows, tile.row + r, &row) > 0
    while axis > 0:
        axis -= 1
        some = some and real_taps(&p.lead[axis], lead % p.lead[axis].out, &first) > 0
        lead //= p.lead[axis].out
    for o in range(tile.cols):
        for c in range(n):
            if keys[o * n + c] != <key_t>lowest(keys):
                continue
            if some and real_taps(&p.cols, tile.col + o, &col) > 0:
                dst[o * z.col + c] = <index_t>(base + (row - tile.row_lo) * p.index_row + (col - tile.col_lo) * p.index_col
                                               + c * p.index_channel)
            else:
                dst[o * z.col + c] = -1
