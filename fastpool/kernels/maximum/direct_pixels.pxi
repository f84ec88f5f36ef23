# Takes:   channels last, windows to 12 taps where one axis after the other takes more loads; to 64
#          of pixels of 128 bytes if no two windows share an element; to 3 of less than 32 bytes
# Reads:   the input in place
# Scratch: slabs of leading axes, where they are gathered first, and keys (SLAB, POOLED)
# Wins:    strided windows: 1.19 times as fast (63 random layers, AVX2); float64 1x19x19x19x184,
#          3x3x3 at strides 7, 7, 5: 168 -> 21 us. Bands win at stride 1 (float32 1x28x28x192 k3
#          105 us, 172 so) and with more taps of narrow pixels (AVX-512, uint8 1x38x133x88 k7 s7
#          5.1 us, 7.7 so).

cdef vec_flag pool_direct_pixels(number *dst, const Target *to, const number *src, const Source *s,
                                 const Work *work) noexcept nogil:
    """Pool every output row, its inner columns in one go."""
    cdef const Tile *tile = work.tile
    cdef const Window *rows = &work.pool.frame.problem.rows
    cdef const Window *cols = &work.pool.frame.problem.cols
    cdef Py_ssize_t last = tile.col + tile.cols, begin = imax(tile.col, imin(cols.inner_lo, last))
    cdef Py_ssize_t end = imax(begin, imin(cols.inner_hi, last))
    cdef Py_ssize_t r, o, i, l, c, t, real_rows, real_cols, row, col, count, at
    cdef number *out
    cdef vec_flag nan = flag_none()
    cdef Taps taps
    for r in range(tile.rows):
        real_rows = real_taps(rows, tile.row + r, &row)
        o = tile.col
        while o < last:
            real_cols = real_taps(cols, o, &col)
            count = end - begin if o == begin and end > begin else 1
            out = dst + r * to.row + (o - tile.col) * to.col
            if real_rows == 0 or real_cols == 0:
                for i in range(count):
                    fill_lowest(out + i * to.col, tile.channels)
            else:
                t = 0
                for l in range(work.leads.count):
                    for i in range(real_rows):
                        at = work.leads.offsets[l] + i * rows.dilation * s.row
                        for c in range(real_cols):
                            taps.offsets[t] = at + c * cols.dilation * s.col
                            t += 1
                taps.count = t
                at = (row - tile.row_lo) * s.row + (col - tile.col_lo) * s.col
                window_rows(out, to.col, src + at, cols.stride * s.col, &taps, count,
                            tile.channels, &nan)
            o += count
    return nan
