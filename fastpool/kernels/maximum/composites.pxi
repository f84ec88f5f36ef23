# Takes:   windows with indices, elements of up to 32 bits, at most one leading axis
# Reads:   keys of the input (keys.h), composed with their places (composites.h)
# Scratch: composites of the input (SLAB) and of the outputs (POOLED), keys of these (BAND), the
#          places of a row (IOTA) and what its channels add to an index (IOTA_LANES), what pools the
#          composites (CHAIN)
# Wins:    AVX-512, an EPYC: float16 4x1x386x2175 k44 s44 3490 -> 330 us, channels last uint8
#          1x836x1061x4 k7x1 s2 4180 -> 1400, float32 1x69x69x3 k3 65 -> 17, 1x60x60x8 k5 89 -> 37
#
# Another Pool pools the composites of a tile, as integers, by any strategy for values. It runs
# tiles of the same windows. A NaN is the greatest key, so that no tile is pooled twice.

cdef void compose_input(const Pool *p, const Job *job, const Tile *tile, Scratch *scratch,
                        Py_ssize_t slabs, const Py_ssize_t *taps, Py_ssize_t first) noexcept nogil:
    """Set the composites of the input under a tile: planes, slabs, rows, pixels, channels."""
    cdef const Problem *problem = &p.frame.problem
    cdef const View *x = &job.x
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t n = tile.channels, size = problem.size, plane, slab, r, at
    cdef compose_t compose = composer(problem.code, p.key_bytes)
    cdef char *composites = area_of(p, scratch.area, SLAB)
    cdef places_of_t places, pixel
    places.steps, places.row_places = area_of(p, scratch.area, IOTA), cols
    pixel.row_places = 1
    for plane in range(tile.planes):
        for slab in range(slabs):
            at = input_offset(problem, x, tile, plane) + first
            at += lead_offset(problem, x.lead, taps, slab)
            places.first = slab * rows * cols
            if x.col == n or cols == 1:
                compose(composites, x.data + at * size, x.row, rows, cols * n, p.rule, &places)
            else:
                pixel.steps = places.steps      # (those of a first pixel are 0)
                for r in range(rows):
                    pixel.first = places.first + r * cols
                    compose(composites + r * cols * n * 2 * p.key_bytes,
                            x.data + (at + r * x.row) * size, x.col, cols, n, p.rule, &pixel)
            composites += rows * cols * n * 2 * p.key_bytes


cdef void set_lanes(const Pool *p, Scratch *scratch, Py_ssize_t n) noexcept nogil:
    """Set, per lane of a row of pixels of n channels, its pixel and what its channel adds."""
    cdef char *steps = area_of(p, scratch.area, IOTA)
    cdef int64_t *lanes = <int64_t *>area_of(p, scratch.area, IOTA_LANES)
    cdef Py_ssize_t i, c
    if scratch.margins == n:
        return
    scratch.margins = n
    if n == 1:
        if p.key_bytes == 2:
            fill_positions(<int16_t *>steps, most_columns(p), 0)
        else:
            fill_positions(<int32_t *>steps, most_columns(p), 0)
        return
    for i in range(most_columns(p)):
        if p.key_bytes == 2:
            fill(<int16_t *>steps + i * n, n, <int16_t>i)
        else:
            fill(<int32_t *>steps + i * n, n, <int32_t>i)
    for i in range(p.frame.tiling.cols):
        for c in range(n):
            lanes[i * n + c] = c * p.indexing.channel


cdef void store_composites(const Pool *p, const Job *job, const Tile *tile, Scratch *scratch,
                           const decoding_t *how, const half_t *tag) noexcept nogil:
    """Store the values and indices of a tile."""
    cdef const char *composites = area_of(p, scratch.area, POOLED)
    cdef const Problem *problem = &p.frame.problem
    cdef const View *z = &job.z
    cdef Py_ssize_t n = tile.channels, out = tile.cols * n, size = 2 * sizeof(half_t)
    cdef Py_ssize_t bytes = p.indexing.bytes, rows = 1, length = tile.rows * out, plane, r, c, at
    cdef half_t *keys = <half_t *>area_of(p, scratch.area, BAND)
    cdef const int64_t *lanes = NULL
    cdef int64_t base
    cdef char *to
    if n > 1 or z.row != out or z.col != n:
        rows, length = tile.rows, out
    if n > 1:
        lanes = <const int64_t *>area_of(p, scratch.area, IOTA_LANES)
    for plane in range(tile.planes):
        keys_of(keys, composites, tile.rows * out)
        store_keys(&job.y, tile, plane, 0, tile.rows, <const half_t *>keys, p)
        base = tile_base(p, tile)
        if not problem.channels_last:
            base += plane_base(p, tile.plane + plane) + tile.col_lo * p.indexing.col
        to = z.data + output_offset(problem, z, tile, plane) * bytes
        for r in range(rows):
            if z.col == n or tile.cols == 1:
                indices_of(to + r * z.row * bytes, composites, lanes, length, base, how, bytes, tag)
            else:
                for c in range(tile.cols):
                    at = (r * z.row + c * z.col) * bytes
                    indices_of(to + at, composites + c * n * size, lanes, n, base, how, bytes, tag)
            composites += length * size


cdef void tile_composites(const Pool *p, const Job *job, const Tile *tile, Scratch *scratch,
                          const half_t *tag) noexcept nogil:
    """Pool one tile to values and indices."""
    cdef const Problem *problem = &p.frame.problem
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t n = tile.channels, out = tile.cols * n, first, slabs, at
    cdef Py_ssize_t taps[MAX_LEADS]
    cdef char *composites = area_of(p, scratch.area, SLAB)
    cdef char *pooled = area_of(p, scratch.area, POOLED)
    cdef Scratch inner
    cdef View x, y
    cdef decoding_t how
    slabs = lead_taps(problem, &job.x, tile.lead, taps, &first)
    set_lanes(p, scratch, n)
    compose_input(p, job, tile, scratch, slabs, taps, first)
    # The inner tile is the same tile: its views begin where the arrays would.
    x.col, x.row, x.channel = n, cols * n, slabs * rows * cols
    y.col, y.row, y.channel = n, out, tile.rows * out
    x.lead[0], y.lead[0] = rows * cols * n, 0
    x.batch, y.batch = problem.channels * x.channel, problem.channels * y.channel
    if problem.channels_last:
        x.batch = y.batch = x.channel = y.channel = 0
    lead_taps(problem, &x, tile.lead, taps, &first)
    at = input_offset(problem, &x, tile, 0) + first
    x.data = <char *>(<uintptr_t>composites - at * 2 * sizeof(half_t))
    at = output_offset(problem, &y, tile, 0)
    y.data = <char *>(<uintptr_t>pooled - at * 2 * sizeof(half_t))
    inner.area, inner.margins = area_of(p, scratch.area, CHAIN), -1
    if half_t is int16_t:
        tile_values(p.inner, &x, &y, tile, &inner, <int32_t *>NULL)
    else:
        tile_values(p.inner, &x, &y, tile, &inner, <int64_t *>NULL)
    how.per_col, how.per_row = 1.0 / imax(cols, 1), 1.0 / imax(rows, 1)
    how.col = <uint32_t>p.indexing.col
    how.row = <uint32_t>(p.indexing.row - cols * p.indexing.col)
    how.slab = 0
    if problem.leads:
        how.slab = <uint32_t>(problem.lead[0].dilation * p.indexing.lead[0]
                              - rows * p.indexing.row)
    store_composites(p, job, tile, scratch, &how, tag)


cdef Py_ssize_t most_columns(const Pool *p) noexcept nogil:
    """Return the most columns under a tile."""
    cdef const Window *cols = &p.frame.problem.cols
    return imin((p.frame.tiling.cols - 1) * cols.stride + cols.extent, cols.size)


cdef void composites_scratch(const Pool *p, Py_ssize_t *size) noexcept nogil:
    """Set the sizes of all areas, in bytes."""
    cdef const Problem *problem = &p.frame.problem
    cdef const Tiling *tiling = &p.frame.tiling
    cdef Py_ssize_t rows = (tiling.rows - 1) * problem.rows.stride + problem.rows.extent
    cdef Py_ssize_t row = most_columns(p) * tiling.channels, slabs = 1
    cdef Py_ssize_t out = tiling.rows * tiling.cols * tiling.channels
    if problem.leads:
        slabs = problem.lead[0].kernel
    rows = imin(rows, problem.rows.size)
    size[<int>SLAB] = tiling.planes * slabs * rows * row * 2 * p.key_bytes
    size[<int>POOLED] = tiling.planes * out * 2 * p.key_bytes
    size[<int>BAND] = out * p.key_bytes
    size[<int>IOTA] = row * p.key_bytes + VEC_BYTES
    if problem.channels_last:
        size[<int>IOTA_LANES] = tiling.cols * tiling.channels * 8
    size[<int>CHAIN] = p.inner.frame.scratch.nbytes
