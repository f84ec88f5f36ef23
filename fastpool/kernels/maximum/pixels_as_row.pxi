# Takes:   channels last, contiguous pixels of at most 20 bytes, columns of one pass
# Reads:   the input in place; the row pass stores a band
# Scratch: a band of whole pixels with margins (BAND); one row of windows where the columns are
#          strided (POOLED)
# Wins:    8x111x111x3 k3 s2 float32 286 -> 116 us, uint8 280 -> 59
#
# The pixels are one row of lanes. The taps of a window are a pixel apart.

cdef vec_flag pool_pixels_as_row(number *dst, const Target *to, const number *src, const Source *s,
                                 const Work *work) noexcept nogil:
    """Pool a tile. If there is a NaN under it, the outputs are undefined."""
    cdef const Tile *tile = work.tile
    cdef const Window *cols = &work.pool.frame.problem.cols
    cdef number *band = <number *>area_of(work.pool, work.scratch, BAND)
    cdef number *row = <number *>area_of(work.pool, work.scratch, POOLED)
    cdef Py_ssize_t size = sizeof(number), lanes = VEC_BYTES // size, n = tile.channels
    cdef Py_ssize_t left = tile.left * n, real = s.cols * n, span = tile.span * n
    cdef Py_ssize_t pitch = round_up(span, lanes) + lanes, stride = cols.stride, r, i, c
    cdef Py_ssize_t wide = ((tile.cols - 1) * stride + 1) * n
    cdef vec_flag nan = flag_none()
    cdef number *out
    cdef Taps taps
    cdef Pass run
    for r in range(tile.rows):
        fill_lowest(band + r * pitch, left)
        fill_lowest(band + r * pitch + left + real, span - left - real)
    set_pass_of_rows(&run, work)
    run.nan = &nan
    row_pass(band + left, pitch, src, s.row, real, &run)
    if flag_any(nan):
        return nan
    set_taps(&taps, cols.kernel, cols.dilation * n)
    if stride == 1:
        window_rows(dst, to.row, <const number *>band, pitch, &taps, tile.rows, wide, NULL)
        return nan
    for r in range(tile.rows):
        window_run(row, <const number *>(band + r * pitch), &taps, imax(wide, lanes), NULL)
        out = dst + r * to.row
        i = 0
        # Pixels at the stride, as 16 bytes that the next pixel overwrites, or in two such pieces.
        while (tile.cols - i) * n * size >= 16:
            narrow_store(out + i * n, narrow_load(row + i * stride * n, 16), 16)
            if n * size > 16:
                c = n - 16 // size
                narrow_store(out + i * n + c, narrow_load(row + i * stride * n + c, 16), 16)
            i += 1
        for i in range(i, tile.cols):
            for c in range(n):
                out[i * n + c] = row[i * stride * n + c]
    return nan


cdef void pixels_as_row_scratch(const Pool *p, Py_ssize_t *size, Py_ssize_t lanes) noexcept nogil:
    """Set the size of BAND, and raise that of POOLED."""
    cdef const Window *cols = &p.frame.problem.cols
    cdef const Tiling *tiling = &p.frame.tiling
    cdef Py_ssize_t n = tiling.channels, span = (tiling.cols - 1) * cols.stride + cols.extent
    size[<int>BAND] = tiling.rows * (round_up(span * n, lanes) + lanes)
    if cols.stride > 1:
        size[<int>POOLED] = imax(size[<int>POOLED], span * n + lanes)
