# Takes:   any window; what no other strategy takes
# Reads:   the input in place, row by row
# Scratch: a band of rows, next to it a chain of passes where the window is long
# Wins:    channels last, bands of whole pixels (128 KiB) against blocks of channels: float32
#          1x28x28x192 k3 192 -> 105 us
#
# A maximum over a box is one pass per axis. The row pass stores a band of scratch. The column pass
# reads it only when the whole band is there: a row read back right after it was stored stalls on
# store forwarding.

cdef void pool_pixels(number *y, Py_ssize_t y_row, Py_ssize_t y_col, const number *src, Py_ssize_t src_row, Py_ssize_t src_col,
                   const Pool *p, const Tile *tile, number *band, number *chain, const Leads *leads,
                   vec_flag *nan) noexcept nogil:
    """WindowRows and columns of a channels-last tile; `src` is its first real row and column."""
    cdef Py_ssize_t n = tile.channels, pitch = (tile.col_hi - tile.col_lo) * n, r
    cdef Leads one
    if p.direct:
        pool_direct_pixels(y, y_row, y_col, src, src_row, src_col, tile.row_lo, tile.col_lo, p, tile, leads, nan)
        return
    one.count, one.offsets[0] = 1, 0
    rows_of_pixels(band, pitch, src, src_row, src_col, p, tile, chain, leads, nan, NULL)
    for r in range(tile.rows):
        row_pass(y + r * y_row, y_col, <const number *>(band + r * pitch), n, tile.col_lo, &p.cols, tile.col, tile.cols, n,
                 chain, &one, NULL, NULL)


cdef inline bint planes_touch(const Pool *p, const View *y) noexcept nogil:
    """Do the rows of one plane go on in the next? (Tiles of several planes hold whole planes.)"""
    return y.channel == p.rows.out * y.row and evenly_spaced(p, y)
