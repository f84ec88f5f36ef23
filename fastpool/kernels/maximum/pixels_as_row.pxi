# Takes:   channels last, contiguous pixels of at most 20 bytes
# Reads:   the input in place; the row pass stores a band
# Scratch: a band of whole pixels with margins; one row of windows where the columns are strided
# Wins:    8x111x111x3 k3 s2 float32 286 -> 116 us, uint8 280 -> 59
#
# The pixels are one row of lanes. The taps of a window are a pixel apart.

cdef bint pool_pixels_as_row(number *to, const number *src, Py_ssize_t src_row, const Pool *p, const View *y, const Tile *tile,
                      number *band, number *row, number *chain, const Leads *leads) noexcept nogil:
    """A channels-last tile of a few channels: its pixels are one row of lanes, their windows' taps a pixel apart.

    False if there is a NaN under it.
    """
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef Py_ssize_t size = sizeof(number), lanes = VEC_BYTES // size, n = tile.channels, stride = p.cols.stride
    cdef Py_ssize_t left = tile.left * n, cols = (tile.col_hi - tile.col_lo) * n, span = tile.span * n
    cdef Py_ssize_t pitch = round_up(span, lanes) + lanes, wide = ((tile.cols - 1) * stride + 1) * n, r, t, i, c
    cdef vec_flag nan = flag_none()
    cdef number *dst
    for r in range(tile.rows):
        fill(band + r * pitch, left, <number>lowest(band))
        fill(band + r * pitch + left + cols, span - left - cols, <number>lowest(band))
    row_pass(band + left, pitch, src, src_row, tile.row_lo, &p.rows, tile.row, tile.rows, cols, chain, leads, &nan, NULL)
    if flag_any(nan):
        return False
    for t in range(p.cols.kernel):
        taps[t] = t * p.cols.dilation * n
    if stride == 1:
        window_rows(to, y.row, <const number *>band, pitch, taps, p.cols.kernel, tile.rows, wide, NULL)
        return True
    for r in range(tile.rows):
        window_run(row, <const number *>(band + r * pitch), taps, p.cols.kernel, imax(wide, lanes), NULL)
        dst = to + r * y.row
        i = 0
        # Pixels at the stride, as 16 bytes that the next pixel overwrites, or in two such pieces.
        while (tile.cols - i) * n * size >= 16:
            narrow_store(dst + i * n, narrow_load(row + i * stride * n, 16), 16)
            if n * size > 16:
                c = n - 16 // size
                narrow_store(dst + i * n + c, narrow_load(row + i * stride * n + c, 16), 16)
            i += 1
        for i in range(i, tile.cols):
            for c in range(n):
                dst[i * n + c] = row[i * stride * n + c]
    return True
