# Takes:   any window; what no other strategy takes
# Reads:   the input in place, row by row
# Scratch: a band of rows with margins (BAND), what the chain of a column pass goes through (DENSE),
#          what long windows go through (CHAIN)
# Wins:    channels last, bands of whole pixels (128 KiB) against blocks of channels: float32
#          1x28x28x192 k3 192 -> 105 us. Planes in the inner loop, where a tile has more planes than
#          rows: float32 1x2048x7x7 k7 217 -> 43 (for any tile of several planes it loses:
#          1x192x28x28 k3 113 -> 172). Inputs beyond the caches are pooled plane by plane:
#          32x512x14x14 k2 s2 2365 -> 1613. A cached input would lose: 4x512x14x14 128 -> 159.
#
# A maximum over a box is one pass per axis. The row pass stores a band of scratch. The column pass
# reads it only when the whole band is there: a row read back right after it was stored stalls on
# store forwarding.

cdef enum:
    # A band to this size has an area for its chain: filling its margins again for every tile takes
    # longer than short rows.
    DENSE_BYTES = 65536
    # An input of FAR_BYTES or more does not fit the caches. Its planes are pooled one by one if
    # they have FAR_PLANE_BYTES or more.
    FAR_BYTES = 8 << 20
    FAR_PLANE_BYTES = 400


cdef vec_flag pool_pixels(number *dst, const Target *to, const number *src, const Source *s,
                          const Work *work) noexcept nogil:
    """Pool the rows, then the columns, of a channels-last tile; `src` is its first element."""
    cdef const Tile *tile = work.tile
    cdef number *band = <number *>area_of(work.pool, work.scratch, BAND)
    cdef Py_ssize_t n = tile.channels, pitch = s.cols * n, r
    cdef vec_flag nan = flag_none()
    cdef Taps one
    cdef Pass run
    set_pass_of_rows(&run, work)
    run.nan = &nan
    rows_of_pixels(band, pitch, src, s, tile, &run)
    set_taps(&one, 1, 0)
    set_pass_of_cols(&run, work, &one)
    for r in range(tile.rows):
        row_pass(dst + r * to.row, to.col, <const number *>(band + r * pitch), n, n, &run)
    return nan


cdef inline bint planes_inside(const Problem *p, const Tile *tile, const View *x) noexcept nogil:
    """Is a row pooled in each plane of a tile before the next row?

    If the input does not fit the caches, planes are pooled one by one, because reading memory in
    order is faster. Planes of one row or of few bytes, and planes that overlap in memory, are not:
    they are in order, or too small to gain.
    """
    cdef Py_ssize_t elements = p.rows.size * p.cols.size, plane_bytes = elements * p.size
    if tile.planes <= tile.rows or p.rows.steps > 1 or not evenly_spaced(p, x):
        return False
    if tile.rows == 1 or plane_bytes < FAR_PLANE_BYTES or -elements < x.channel < elements:
        return True
    return p.batch * p.channels * plane_bytes < FAR_BYTES


cdef inline bint has_one_column_each(const Window *cols) noexcept nogil:
    """Is each window one column, and each column a window's?"""
    return cols.kernel == 1 and cols.stride == 1 and cols.begin == 0 and cols.out == cols.size


cdef vec_flag pool_bands(const number *src, Py_ssize_t src_row, Py_ssize_t first, const View *x,
                         const View *y, const Work *work, Scratch *scratch) noexcept nogil:
    """Pool a channels-first tile. If there is a NaN under it, the outputs are undefined.

    `src` is the first element of the first plane, which may be in scratch. `first` is the offset of
    its slab in x.
    """
    cdef const Tile *tile = work.tile
    cdef const Pool *pool = work.pool
    cdef const Problem *p = &pool.frame.problem
    cdef number *band = <number *>area_of(pool, work.scratch, BAND)
    cdef number *dense
    cdef number *y_data = <number *>y.data
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), data, plane, r
    cdef Py_ssize_t cols = tile.col_hi - tile.col_lo, pitch = band_pitch(p, tile, lanes, &data)
    cdef vec_flag nan = flag_none()
    cdef bint in_place = has_one_column_each(&p.cols)   # rows are results
    cdef number *to
    cdef Planes planes
    cdef Pass run
    if scratch.margins != tile.col:
        fill_margins(band, pitch, data, tile, pool.frame.tiling.planes * pool.frame.tiling.rows)
        scratch.margins = -1 if pool.in_place else tile.col
    band += data
    dense = band if pool.in_place else <number *>area_of(pool, work.scratch, DENSE)
    set_pass_of_rows(&run, work)
    run.nan = &nan
    if not in_place and planes_inside(p, tile, x):
        planes.count, planes.source, planes.target = tile.planes, x.channel, tile.rows * pitch
        for r in range(tile.rows):
            border_row(band + r * pitch + tile.left, src, src_row, cols, tile.row + r, &planes,
                       &run)
    else:
        for plane in range(tile.planes):
            if plane > 0:
                src = <const number *>x.data + input_offset(p, x, tile, plane) + first
            to = band + plane * tile.rows * pitch + tile.left
            if in_place:
                to = y_data + output_offset(p, y, tile, plane)
            row_pass(to, y.row if in_place else pitch, src, src_row, cols, &run)
    if in_place or flag_any(nan):
        return nan
    fill_beyond(<char *>(band + tile.left), pitch * sizeof(number), p, tile,
                tile.planes * tile.rows, sizeof(number), p.beyond)
    # (Tiles of several planes hold whole planes, whose rows may go on in the next plane.)
    if tile.planes == 1 or (y.channel == p.rows.out * y.row and evenly_spaced(p, y)):
        column_pass(y_data + output_offset(p, y, tile, 0), y.row, band, dense, pitch, &p.cols,
                    tile.planes * tile.rows, tile.cols)
    else:
        # From the last on: a chain may write over the first elements after its rows.
        for plane in range(tile.planes - 1, -1, -1):
            r = plane * tile.rows * pitch
            column_pass(y_data + output_offset(p, y, tile, plane), y.row, band + r, dense + r,
                        pitch, &p.cols, tile.rows, tile.cols)
    return nan


cdef bint bands_in_place(const Pool *p) noexcept nogil:
    """Is a band too large for its chain to have another area?"""
    cdef const Problem *problem = &p.frame.problem
    if problem.channels_last or p.with_indices:
        return False
    if problem.cols.steps == 1 and shuffled_stride(&problem.cols):
        return False
    return band_elements(p, VEC_BYTES // problem.size) * problem.size > DENSE_BYTES


cdef Py_ssize_t band_elements(const Pool *p, Py_ssize_t lanes) noexcept nogil:
    """Return the elements of BAND, channels first."""
    cdef const Window *cols = &p.frame.problem.cols
    cdef Py_ssize_t span = (p.frame.tiling.cols - 1) * cols.stride + cols.extent
    return (p.frame.tiling.planes * p.frame.tiling.rows + 1) * round_up(lanes + span, lanes)


cdef void bands_scratch(const Pool *p, Py_ssize_t *size, Py_ssize_t lanes) noexcept nogil:
    """Set the sizes of BAND and DENSE."""
    cdef const Window *cols = &p.frame.problem.cols
    cdef const Tiling *tiling = &p.frame.tiling
    cdef Py_ssize_t span = (tiling.cols - 1) * cols.stride + cols.extent, n = tiling.channels
    if not p.frame.problem.channels_last:
        size[<int>BAND] = band_elements(p, lanes)
        if not p.in_place and (cols.steps > 1 or not shuffled_stride(cols)):
            size[<int>DENSE] = size[<int>BAND]
    else:
        size[<int>BAND] = tiling.rows * imin(span, cols.size) * n
