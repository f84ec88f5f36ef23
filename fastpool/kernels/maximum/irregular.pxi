# Takes:   axes of adaptive pooling whose windows differ in length, with and without indices
# Reads:   the input in place; as keys, row by row
# Scratch: a row of maxima (BAND, BAND_PLACES), a row of keys (SLAB), its positions (IOTA), outputs
#          as keys (POOLED, POOLED_PLACES)
# Wins:    no other strategy takes them
#
# An output row first takes the maximum of the rows under it, in every slab of its leading taps. Then
# each of its outputs takes the maximum of its columns. A row goes through the band in pieces, so no
# window is too large for scratch. In this order the first maximum of a window is not met first, so
# with indices the lower position wins a tie.
#
# All windows are inside the input and have no dilation: `axes_again` (_planning/pooled.py) sees to
# it. So none is empty.

cdef enum:
    PIECE_BYTES = 32768     # of a row of the band


cdef struct RowsUnder:          # an output row, and a piece of the rows under it
    const Pool *pool
    const View *x
    Py_ssize_t counts[MAX_LEADS]    # taps along the leading axes
    Py_ssize_t slabs, first         # how many there are, and the offset of the first
    Py_ssize_t rows, cols, channels
    Py_ssize_t at                   # offset in x of the piece in the first row


cdef inline Py_ssize_t piece_columns(const Pool *p) noexcept nogil:
    """Return the most columns of a piece."""
    cdef Py_ssize_t size = p.key_bytes if p.with_indices else p.frame.problem.size
    size *= p.frame.tiling.channels
    return imin(imax(1, PIECE_BYTES // size), p.frame.problem.cols.size)


cdef inline void load_row(void *keys, int key_bytes, const RowsUnder *under,
                          Py_ssize_t offset) noexcept nogil:
    """Load a row as keys; `offset` is that from the first row."""
    cdef const View *x = under.x
    cdef Py_ssize_t n = under.channels, size = under.pool.frame.problem.size
    cdef keys_load_t load = keys_loader(under.pool.frame.problem.code, key_bytes)
    cdef const char *src = x.data + (under.at + offset) * size
    if x.col == n or under.cols == 1:
        load(keys, 0, src, 0, 1, under.cols * n, under.pool.rule)
    else:
        load(keys, n, src, x.col, under.cols, n, under.pool.rule)


cdef inline Py_ssize_t slab_offset(const RowsUnder *under, Py_ssize_t slab) noexcept nogil:
    return lead_offset(&under.pool.frame.problem, under.x.lead, under.counts, slab)


cdef void band_of_values(number *band, const RowsUnder *under, vec_flag *nan) noexcept nogil:
    """Set the band to the maximum of the rows, and track NaN."""
    cdef const View *x = under.x
    cdef Py_ssize_t n = under.channels, slab, done, c
    cdef bint whole = x.col == n or under.cols == 1
    cdef const number *src
    cdef Taps taps
    for slab in range(under.slabs):
        done = 0
        while done < under.rows:
            src = <const number *>x.data + under.at + slab_offset(under, slab) + done * x.row
            set_taps(&taps, imin(under.rows - done, MAX_TAPS), x.row)
            for c in range(1 if whole else under.cols):
                accumulate(band + c * n, src + c * x.col, &taps, under.cols * n if whole else n,
                           slab + done > 0, nan)
            done += taps.count


cdef void band_of_keys(number *band, number *spare, const RowsUnder *under) noexcept nogil:
    """Set the band to the maximum of the rows as keys. `spare` holds a row."""
    cdef Py_ssize_t slab, r
    cdef Taps both
    both.count, both.offsets[0], both.offsets[1] = 2, 0, spare - band
    for slab in range(under.slabs):
        for r in range(under.rows):
            load_row(band if slab + r == 0 else spare, <int>sizeof(number), under,
                     slab_offset(under, slab) + r * under.x.row)
            if slab + r > 0:
                window_rows(band, 0, <const number *>band, 0, &both, 1,
                            under.cols * under.channels, NULL)


cdef inline number greatest_of(const number *src, Py_ssize_t n) noexcept nogil:
    """Return the maximum of n elements. They hold no NaN, or the result is undefined."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), i
    cdef number best = src[0]
    cdef vec_t v
    if n < 2 * lanes:
        for i in range(1, n):
            best = src[i] if src[i] > best else best
        return best
    v, i = vec_load(src + n - lanes), 0
    while i + lanes < n:
        v = vec_max(v, vec_load(src + i), src)
        i += lanes
    narrow_store(&best, vec_reduce_max(v, src), sizeof(number))
    return best


cdef void pool_columns(number *dst, Py_ssize_t step, const number *band, Py_ssize_t low,
                       Py_ssize_t high, const Tile *tile, const Window *w) noexcept nogil:
    """Pool columns `low` to `high`, which are in the band.

    An output whose window began in an earlier piece holds the maximum until there.
    """
    cdef Py_ssize_t n = tile.channels, o, start, first, count, done
    cdef const number *src
    cdef number best
    cdef Taps taps
    for o in range(tile.cols):
        start = window_start(w, tile.col + o)
        first = imax(start, low)
        count = imin(window_stop(w, tile.col + o), high) - first
        if count <= 0:
            continue
        src = band + (first - low) * n
        if n == 1:
            best = greatest_of(src, count)
            dst[o * step] = dst[o * step] if start < low and dst[o * step] > best else best
            continue
        done = 0
        while done < count:
            set_taps(&taps, imin(count - done, MAX_TAPS), n)
            accumulate(dst + o * step, src + done * n, &taps, n, start < low or done > 0, NULL)
            done += taps.count


cdef void pool_row(number *dst, Py_ssize_t step, RowsUnder *under, const Tile *tile, number *band,
                   number *spare, vec_flag *nan) noexcept nogil:
    """Pool an output row, as keys if there is a spare row for them. Else track NaN."""
    cdef Py_ssize_t most = piece_columns(under.pool), low = tile.col_lo, high
    while low < tile.col_hi:
        high = imin(low + most, tile.col_hi)
        under.cols = high - low
        if spare == NULL:
            band_of_values(band, under, nan)
        else:
            band_of_keys(band, spare, under)
        pool_columns(dst, step, <const number *>band, low, high, tile,
                     &under.pool.frame.problem.cols)
        under.at += under.cols * under.x.col
        low = high


cdef inline void start_tile(RowsUnder *under, const Pool *pool, const View *x,
                            const Tile *tile) noexcept nogil:
    """Set what all rows of a tile share."""
    under.pool, under.x, under.channels = pool, x, tile.channels
    under.slabs = lead_taps(&pool.frame.problem, x, tile.lead, under.counts, &under.first)


cdef inline Py_ssize_t start_row(RowsUnder *under, const Tile *tile, Py_ssize_t plane,
                                 Py_ssize_t r) noexcept nogil:
    """Start with row r of the tile. Return the first row under it, counted in the tile."""
    cdef const Problem *p = &under.pool.frame.problem
    cdef Py_ssize_t row
    under.rows = real_taps(&p.rows, tile.row + r, &row)
    row -= tile.row_lo
    under.at = input_offset(p, under.x, tile, plane) + under.first + row * under.x.row
    return row


cdef bint tile_irregular(const Pool *pool, const View *x, const View *y, const Tile *tile,
                         Scratch *scratch, number *tag) noexcept nogil:
    """Pool one tile. Return False if its input holds a NaN."""
    cdef number *band = <number *>area_of(pool, scratch.area, BAND)
    cdef number *dst
    cdef vec_flag nan = flag_none()
    cdef Py_ssize_t plane, r
    cdef RowsUnder under
    start_tile(&under, pool, x, tile)
    for plane in range(tile.planes):
        dst = <number *>y.data + output_offset(&pool.frame.problem, y, tile, plane)
        for r in range(tile.rows):
            start_row(&under, tile, plane, r)
            pool_row(dst + r * y.row, y.col, &under, tile, band, NULL, &nan)
    return not flag_any(nan)


cdef void tile_irregular_keys(const Pool *pool, const View *x, const View *y, const Tile *tile,
                              Scratch *scratch, key_t *tag) noexcept nogil:
    """Pool one tile as keys."""
    cdef key_t *band = <key_t *>area_of(pool, scratch.area, BAND)
    cdef key_t *spare = <key_t *>area_of(pool, scratch.area, SLAB)
    cdef key_t *pooled = <key_t *>area_of(pool, scratch.area, POOLED)
    cdef Py_ssize_t plane, r
    cdef RowsUnder under
    start_tile(&under, pool, x, tile)
    for plane in range(tile.planes):
        for r in range(tile.rows):
            start_row(&under, tile, plane, r)
            pool_row(pooled, tile.channels, &under, tile, band, spare, NULL)
            store_keys(y, tile, plane, r, 1, <const key_t *>pooled, pool)


# ------------------------------------------------------------------------------------ with indices


cdef void band_of_pairs(const PairRows *band, int64_t *spare, const int64_t *iota,
                        const RowsUnder *under, Py_ssize_t position) noexcept nogil:
    """Set the band to the first maximum of the rows. `position` is that of the first element."""
    cdef const Pool *p = under.pool
    cdef Py_ssize_t n = under.cols * under.channels, slab, r, place
    cdef int64_t *keys = <int64_t *>band.keys
    cdef int64_t *places = <int64_t *>band.places
    # A lowest key that is left needs no position (settle_margins).
    fill(keys, n, <int64_t>lowest(keys))
    fill(places, n, <int64_t>0)
    for slab in range(under.slabs):
        place = position
        place += lead_offset(&p.frame.problem, p.indexing.position_lead, under.counts, slab)
        for r in range(under.rows):
            load_row(spare, <int>sizeof(int64_t), under, slab_offset(under, slab) + r * under.x.row)
            merge_pairs(keys, places, <const int64_t *>spare, iota, place, n)
            place += p.frame.problem.cols.size


cdef void pool_columns_of_pairs(const PairRows *to, const PairRows *band, Py_ssize_t low,
                                Py_ssize_t high, const Tile *tile, const Window *w) noexcept nogil:
    """Merge columns `low` to `high`, which are in the band, into a row of outputs."""
    cdef Py_ssize_t n = tile.channels, o, i, first, stop
    cdef PairRows best, pair
    for o in range(tile.cols):
        first = imax(window_start(w, tile.col + o), low)
        stop = imin(window_stop(w, tile.col + o), high)
        best = from_pair(to, o * n, <const int64_t *>NULL)
        for i in range(first - low, stop - low):
            pair = from_pair(band, i * n, <const int64_t *>NULL)
            max_pairs_of(<int64_t *>best.keys, <int64_t *>best.places, <const int64_t *>best.keys,
                         <const int64_t *>best.places, <const int64_t *>pair.keys,
                         <const int64_t *>pair.places, n)


cdef void tile_irregular_pairs(const Pool *pool, const Job *job, const Tile *tile,
                               Scratch *scratch) noexcept nogil:
    """Pool one tile to values and indices."""
    cdef const Problem *p = &pool.frame.problem
    cdef Py_ssize_t n = tile.channels, out = tile.cols * n, most = piece_columns(pool)
    cdef Py_ssize_t plane, r, row, low, i
    cdef PairRows band = pair_rows(pool, scratch.area, BAND, BAND_PLACES, 0)
    cdef PairRows best = pair_rows(pool, scratch.area, POOLED, POOLED_PLACES, out), to
    cdef int64_t *spare = <int64_t *>area_of(pool, scratch.area, SLAB)
    cdef int64_t *iota = <int64_t *>area_of(pool, scratch.area, IOTA)
    cdef int64_t *keys = <int64_t *>best.keys
    cdef int64_t *places = <int64_t *>best.places
    cdef RowsUnder under
    start_tile(&under, pool, &job.x, tile)
    for i in range(most):
        fill(iota + i * n, n, <int64_t>i)
    for plane in range(tile.planes):
        fill(keys, tile.rows * out, <int64_t>lowest(keys))
        fill(places, tile.rows * out, <int64_t>0)
        for r in range(tile.rows):
            to = from_pair(&best, r * out, <const int64_t *>keys)
            row = start_row(&under, tile, plane, r)
            low = tile.col_lo
            while low < tile.col_hi:
                under.cols = imin(most, tile.col_hi - low)
                band_of_pairs(&band, spare, <const int64_t *>iota, &under,
                              row * p.cols.size + low - tile.col_lo)
                pool_columns_of_pairs(&to, &band, low, low + under.cols, tile, &p.cols)
                under.at += under.cols * job.x.col
                low += under.cols
        store_tile(<const int64_t *>keys, <const int64_t *>places, pool, job, tile, plane)


cdef void irregular_scratch(const Pool *p, Py_ssize_t *size) noexcept nogil:
    """Set the sizes of all areas, in keys or elements."""
    cdef const Tiling *tiling = &p.frame.tiling
    cdef Py_ssize_t row = piece_columns(p) * tiling.channels, out = tiling.cols * tiling.channels
    cdef int code = p.frame.problem.code
    size[<int>BAND] = row
    if p.with_indices:
        size[<int>BAND_PLACES] = size[<int>SLAB] = size[<int>IOTA] = row
        size[<int>POOLED] = size[<int>POOLED_PLACES] = tiling.rows * out
    elif p.keyed or code == F32 or code == F64:
        size[<int>SLAB], size[<int>POOLED] = row, out
