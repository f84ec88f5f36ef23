# Takes:   axes of adaptive pooling whose windows differ in length, with and without indices
# Reads:   the input in place; as keys, a few columns at a time
# Scratch: the maxima of rows (BAND, BAND_PLACES), a row of keys (SLAB) and its positions (IOTA),
#          outputs as keys (POOLED, POOLED_PLACES)
# Wins:    no other strategy takes them
#
# A row of outputs is pooled in groups. The band first takes the maximum of the rows under a group,
# in every slab of the leading taps. Each output then takes the maximum of its columns there. A
# window too long for the band is a group by itself, and is folded: the band also takes the maximum
# of its pieces, so scratch is bounded. In this order the first maximum of a window is not met
# first, so with indices the lower position wins a tie.
#
# All windows are inside the input and have no dilation: `axes_again` (_planning/pooled.py) sees to
# it. So none is empty.

cdef enum:
    GROUP_BYTES = 16384     # of the columns under a group
    FOLDED_BYTES = 256      # of the band, if windows are folded
    LONG_BYTES = 1024       # of a window along a row, from which it is folded


cdef struct Group:              # neighbouring outputs of a row, and what is under them
    const Pool *pool
    const View *x
    Py_ssize_t counts[MAX_LEADS]    # taps along the leading axes
    Py_ssize_t slabs, lead          # how many there are, and the offset of the first
    Py_ssize_t channels
    Py_ssize_t most, most_outputs   # columns of a band, and outputs
    Walk first_row, first_col       # of the tile
    Walk row_at, col_at             # of the row of outputs; of the group's first output
    Py_ssize_t row, rows, at        # the first row, counted in the tile, and its offset in x
    Py_ssize_t output, outputs      # of the axis
    Py_ssize_t first, span          # columns under the group
    Py_ssize_t cols                 # columns of the band, fewer than `span` if they are folded


cdef inline Py_ssize_t shortest(const Window *w) noexcept nogil:
    """Return the length of the shortest window. The others have one element more."""
    return w.stride if w.irregular else w.kernel


cdef inline Py_ssize_t pixel_bytes(const Pool *p) noexcept nogil:
    """Return the bytes of a column of the band."""
    cdef int size = p.key_bytes if p.with_indices else p.frame.problem.size
    return p.frame.tiling.channels * size


cdef inline bint folds(const Pool *p) noexcept nogil:
    return shortest(&p.frame.problem.cols) * pixel_bytes(p) > LONG_BYTES


cdef inline Py_ssize_t band_columns(const Pool *p) noexcept nogil:
    """Return the most columns of a band."""
    return imax(1, (FOLDED_BYTES if folds(p) else GROUP_BYTES) // pixel_bytes(p))


cdef inline void start_groups(Group *g, const Pool *pool, const View *x,
                              const Tile *tile) noexcept nogil:
    """Set what all groups of a tile share."""
    cdef const Window *w = &pool.frame.problem.cols
    g.pool, g.x, g.channels = pool, x, tile.channels
    g.most, g.most_outputs = band_columns(pool), 1
    if not folds(pool):
        g.most_outputs += (g.most - w.extent) // w.stride
    g.slabs = lead_taps(&pool.frame.problem, x, tile.lead, g.counts, &g.lead)
    start_walk(&g.first_row, &pool.frame.problem.rows, tile.row)
    start_walk(&g.first_col, w, tile.col)


cdef inline void start_row(Group *g, const Tile *tile, Py_ssize_t plane,
                           Py_ssize_t r) noexcept nogil:
    """Set what the groups of row r of the tile share: the row after the last one, or row 0."""
    cdef const Problem *p = &g.pool.frame.problem
    if r == 0:
        g.row_at = g.first_row
    else:
        next_window(&g.row_at, &p.rows)
    g.rows, g.row = g.row_at.stop - g.row_at.start, g.row_at.start - tile.row_lo
    g.col_at = g.first_col
    g.at = input_offset(p, g.x, tile, plane) + g.lead + g.row * g.x.row - tile.col_lo * g.x.col
    g.output, g.outputs = tile.col, 0


cdef inline bint next_group(Group *g, const Tile *tile) noexcept nogil:
    """Go to the next group of a row. Return False if there is none."""
    cdef Py_ssize_t left, stop
    g.output += g.outputs
    left = tile.col + tile.cols - g.output
    g.outputs = imin(g.most_outputs, left)
    if g.outputs == 0:
        return False
    g.first, stop = g.col_at.start, tile.col_hi
    if g.outputs < left:
        stop = window_stop(&g.pool.frame.problem.cols, g.output + g.outputs - 1)
    g.span = stop - g.first
    g.cols = imin(g.span, g.most)
    return True


cdef inline Py_ssize_t slab_offset(const Group *g, Py_ssize_t slab) noexcept nogil:
    """Return the offset in x of the first row of a slab, at the group."""
    cdef Py_ssize_t at = g.at + g.first * g.x.col
    return at + lead_offset(&g.pool.frame.problem, g.x.lead, g.counts, slab)


# ----------------------------------------------------------------------------------------- values


cdef inline void take_taps(max_t *band, const Group *g, Taps *taps, bint more,
                           vec_flag *nan) noexcept nogil:
    """Set the band to the maximum of some taps, with `more` also of what it holds. Track NaN."""
    cdef Py_ssize_t n = g.channels, c
    cdef bint whole = g.x.col == n or g.cols == 1
    cdef const max_t *src = <const max_t *>g.x.data
    cdef max_t *dst = band
    taps.count += more
    for c in range(1 if whole else g.cols):
        if more:
            taps.offsets[taps.count - 1] = <char *>dst - <char *>src
            taps.offsets[taps.count - 1] //= <Py_ssize_t>sizeof(max_t)
        window_rows(dst, 0, src, 0, taps, 1, g.cols * n if whole else n, nan)
        dst, src = dst + n, src + g.x.col
    taps.count = 0


cdef void band_of_values(max_t *band, const Group *g, vec_flag *nan) noexcept nogil:
    """Set the band to the maximum of what is under a group, and track NaN."""
    cdef Py_ssize_t slab, r, col, at
    cdef bint more = False
    cdef Taps taps
    taps.count = 0
    for slab in range(g.slabs):
        at = slab_offset(g, slab)
        for r in range(g.rows):
            col = 0
            while col < g.span:
                if taps.count == MAX_TAPS - 1:
                    take_taps(band, g, &taps, more, nan)
                    more = True
                taps.offsets[taps.count] = at + imin(col, g.span - g.cols) * g.x.col
                taps.count += 1
                col += g.cols
            at += g.x.row
    take_taps(band, g, &taps, more, nan)


cdef inline void load_band(void *keys, int key_bytes, const Group *g,
                           Py_ssize_t at) noexcept nogil:
    """Load as keys what is at an offset in x."""
    cdef Py_ssize_t n = g.channels, size = g.pool.frame.problem.size
    cdef keys_load_t load = keys_loader(g.pool.frame.problem.code, key_bytes)
    if g.x.col == n or g.cols == 1:
        load(keys, 0, g.x.data + at * size, 0, 1, g.cols * n, g.pool.rule)
    else:
        load(keys, n, g.x.data + at * size, g.x.col, g.cols, n, g.pool.rule)


cdef void band_of_keys(any_key *band, any_key *spare, const Group *g) noexcept nogil:
    """Set the band to the maximum of what is under a group, as keys. `spare` is as large."""
    cdef Py_ssize_t n = g.cols * g.channels, slab, r, col, at
    cdef Taps both
    both.count, both.offsets[0], both.offsets[1] = 2, 0, spare - band
    fill_lowest(band, n)
    for slab in range(g.slabs):
        at = slab_offset(g, slab)
        for r in range(g.rows):
            col = 0
            while col < g.span:
                load_band(spare, <int>sizeof(any_key), g,
                          at + imin(col, g.span - g.cols) * g.x.col)
                window_rows(band, 0, <const any_key *>band, 0, &both, 1, n, NULL)
                col += g.cols
            at += g.x.row


cdef void pool_columns(max_t *dst, Py_ssize_t step, max_t *band, Group *g) noexcept nogil:
    """Pool the columns of a group, and go to the column after it. The band is overwritten."""
    cdef const Window *w = &g.pool.frame.problem.cols
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(max_t), n = g.channels
    cdef Py_ssize_t least = imin(shortest(w), g.cols), covered = 1, o, count, more
    cdef const max_t *src
    cdef narrow_t one
    cdef Taps taps
    if n < lanes or least >= MAX_TAPS:
        # Each column gets the maximum of `covered` columns from it on: two of them are a window.
        while covered < least:
            more = imin(covered, least - covered)
            covered += more
            set_taps(&taps, 2, more * n)
            window_run(band, <const max_t *>band, &taps,
                       round_up((g.cols - covered + 1) * n, lanes), NULL)
    for o in range(g.outputs):
        src = band + (g.col_at.start - g.first) * n
        count = imin(g.col_at.stop - g.col_at.start, g.cols)
        next_window(&g.col_at, w)
        if n == 1:
            one = narrow_max(narrow_load(src, sizeof(max_t)),
                             narrow_load(src + count - covered, sizeof(max_t)), src)
            narrow_store(dst + o * step, one, sizeof(max_t))
        else:
            set_taps(&taps, ceil_div(count, covered), covered * n)
            taps.offsets[taps.count - 1] = (count - covered) * n
            window_rows(dst + o * step, 0, src, 0, &taps, 1, n, NULL)


cdef bint tile_irregular(const Pool *pool, const View *x, const View *y, const Tile *tile,
                         Scratch *scratch, max_t *tag) noexcept nogil:
    """Pool one tile. Return False if its input holds a NaN."""
    cdef max_t *band = <max_t *>area_of(pool, scratch.area, BAND)
    cdef max_t *dst
    cdef vec_flag nan = flag_none()
    cdef Py_ssize_t plane, r
    cdef Group g
    start_groups(&g, pool, x, tile)
    for plane in range(tile.planes):
        dst = <max_t *>y.data + output_offset(&pool.frame.problem, y, tile, plane)
        for r in range(tile.rows):
            start_row(&g, tile, plane, r)
            while next_group(&g, tile):
                band_of_values(band, &g, &nan)
                pool_columns(dst + r * y.row + (g.output - tile.col) * y.col, y.col, band, &g)
    return not flag_any(nan)


cdef void tile_irregular_keys(const Pool *pool, const View *x, const View *y, const Tile *tile,
                              Scratch *scratch, any_key *tag) noexcept nogil:
    """Pool one tile as keys."""
    cdef any_key *band = <any_key *>area_of(pool, scratch.area, BAND)
    cdef any_key *spare = <any_key *>area_of(pool, scratch.area, SLAB)
    cdef any_key *pooled = <any_key *>area_of(pool, scratch.area, POOLED)
    cdef Py_ssize_t n = tile.channels, plane, r
    cdef Group g
    start_groups(&g, pool, x, tile)
    for plane in range(tile.planes):
        for r in range(tile.rows):
            start_row(&g, tile, plane, r)
            while next_group(&g, tile):
                band_of_keys(band, spare, &g)
                pool_columns(pooled + (g.output - tile.col) * n, n, band, &g)
            store_keys(y, tile, plane, r, 1, <const any_key *>pooled, pool)


# ------------------------------------------------------------------------------------ with indices


cdef void band_of_pairs(int64_t *keys, int64_t *places, int64_t *spare, const int64_t *iota,
                        const Group *g, const Tile *tile) noexcept nogil:
    """Set the band to the first maximum of what is under a group, in each column."""
    cdef const Problem *p = &g.pool.frame.problem
    cdef Py_ssize_t n = g.cols * g.channels, slab, r, col, at, place, skipped
    # A lowest key that is left needs no position: `settle_margins` finds it.
    fill_lowest(keys, n)
    fill(places, n, <int64_t>0)
    for slab in range(g.slabs):
        at = slab_offset(g, slab)
        place = lead_offset(p, g.pool.indexing.position_lead, g.counts, slab)
        place += g.row * p.cols.size + g.first - tile.col_lo
        for r in range(g.rows):
            col = 0
            while col < g.span:
                skipped = imin(col, g.span - g.cols)
                load_band(spare, <int>sizeof(int64_t), g, at + skipped * g.x.col)
                merge_pairs(keys, places, <const int64_t *>spare, iota, place + skipped, n)
                col += g.cols
            at += g.x.row
            place += p.cols.size


cdef void pool_columns_of_pairs(int64_t *dst, int64_t *dst_places, const int64_t *keys,
                                const int64_t *places, Group *g) noexcept nogil:
    """Pool the columns of a group, and go to the column after it."""
    cdef const Window *w = &g.pool.frame.problem.cols
    cdef Py_ssize_t n = g.channels, o, i, at, count
    cdef int64_t best, place
    cdef bint better
    for o in range(g.outputs):
        at = (g.col_at.start - g.first) * n
        count = imin(g.col_at.stop - g.col_at.start, g.cols)
        next_window(&g.col_at, w)
        if n == 1:
            best, place = keys[at], places[at]
            for i in range(at + 1, at + count):
                better = (keys[i] > best) | ((keys[i] == best) & (places[i] < place))
                best, place = keys[i] if better else best, places[i] if better else place
            dst[o], dst_places[o] = best, place
            continue
        memcpy(dst + o * n, keys + at, n * sizeof(int64_t))
        memcpy(dst_places + o * n, places + at, n * sizeof(int64_t))
        for i in range(1, count):
            max_pairs_of(dst + o * n, dst_places + o * n, dst + o * n, dst_places + o * n,
                         keys + at + i * n, places + at + i * n, n)


cdef void tile_irregular_pairs(const Pool *pool, const Job *job, const Tile *tile,
                               Scratch *scratch) noexcept nogil:
    """Pool one tile to values and indices."""
    cdef Py_ssize_t n = tile.channels, plane, r, at, i
    cdef int64_t *keys = <int64_t *>area_of(pool, scratch.area, BAND)
    cdef int64_t *places = <int64_t *>area_of(pool, scratch.area, BAND_PLACES)
    cdef int64_t *spare = <int64_t *>area_of(pool, scratch.area, SLAB)
    cdef int64_t *iota = <int64_t *>area_of(pool, scratch.area, IOTA)
    cdef int64_t *pooled = <int64_t *>area_of(pool, scratch.area, POOLED)
    cdef int64_t *pooled_places = <int64_t *>area_of(pool, scratch.area, POOLED_PLACES)
    cdef Group g
    start_groups(&g, pool, &job.x, tile)
    for i in range(imin(g.most, tile.span)):
        fill(iota + i * n, n, <int64_t>i)
    for plane in range(tile.planes):
        for r in range(tile.rows):
            start_row(&g, tile, plane, r)
            while next_group(&g, tile):
                band_of_pairs(keys, places, spare, iota, &g, tile)
                at = (r * tile.cols + g.output - tile.col) * n
                pool_columns_of_pairs(pooled + at, pooled_places + at, keys, places, &g)
        store_tile(<const int64_t *>pooled, <const int64_t *>pooled_places, pool, job, tile, plane)


cdef void irregular_scratch(const Pool *p, Py_ssize_t *size) noexcept nogil:
    """Set the sizes of all areas, in keys or elements."""
    cdef Py_ssize_t n = p.frame.tiling.channels, out = p.frame.tiling.cols * n
    cdef Py_ssize_t band = imin(band_columns(p), p.frame.problem.cols.size) * n
    cdef int code = p.frame.problem.code
    size[<int>BAND] = band
    if p.with_indices:
        size[<int>BAND_PLACES] = size[<int>SLAB] = size[<int>IOTA] = band
        size[<int>POOLED] = size[<int>POOLED_PLACES] = p.frame.tiling.rows * out
    elif p.keyed or code == F32 or code == F64:
        size[<int>SLAB], size[<int>POOLED] = band, out
