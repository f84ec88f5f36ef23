# Takes:   channels last, small strided windows: all taps at once
# Reads:   the input in place
# Scratch: none; slabs of leading axes, where they are gathered first
# Wins:    strided windows. At stride 1 bands win: float32 1x28x28x192 k3 105 us by bands, 172 so.

cdef void pool_direct_pixels(number *dst, Py_ssize_t dst_row, Py_ssize_t dst_col, const number *src, Py_ssize_t src_row,
                      Py_ssize_t src_col, Py_ssize_t row_origin, Py_ssize_t col_origin, const Pool *p,
                      const Tile *tile, const Leads *leads, vec_flag *nan) noexcept nogil:
    """Channels-last, all taps of a small window at once: no scratch. Every output row, its inner columns in one go."""
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef Py_ssize_t r, o, i, l, t, rows, cols, row, col, count, ntaps, last = tile.col + tile.cols
    cdef Py_ssize_t begin = imax(tile.col, imin(p.cols.inner_lo, last)), end = imax(begin, imin(p.cols.inner_hi, last))
    cdef number *to
    for r in range(tile.rows):
        rows = real_taps(&p.rows, tile.row + r, &row)
        o = tile.col
        while o < last:
            cols = real_taps(&p.cols, o, &col)
            count = end - begin if o == begin and end > begin else 1
            to = dst + r * dst_row + (o - tile.col) * dst_col
            if rows == 0 or cols == 0:
                for i in range(count):
                    fill(to + i * dst_col, tile.channels, <number>lowest(dst))
            else:
                ntaps = 0
                for l in range(leads.count):
                    for i in range(rows):
                        for t in range(cols):
                            taps[ntaps] = leads.offsets[l] + i * p.rows.dilation * src_row + t * p.cols.dilation * src_col
                            ntaps += 1
                window_rows(to, dst_col, src + (row - row_origin) * src_row + (col - col_origin) * src_col,
                            p.cols.stride * src_col, taps, ntaps, count, tile.channels, nan)
            o += count
