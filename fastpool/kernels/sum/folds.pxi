# Means of small integers whose windows share no column, without a band: they are shifted sums.
#
# Takes:   8 and 16 bits, at most MOST_FOLDED taps; divisors that are powers of two, of signed types
#          the taps, to the nearest or floor; 2, 4 or 8 columns at that stride, in rows of at least
#          a vector, or of 2 columns half a vector (a quarter with masks); pixels of at least a
#          vector (of bytes half with masks) of windows that share no row either. Others pool what
#          is over an edge
# Reads:   elements in place, as lanes of twice their width
# Scratch: none
# Wins:    one thread, AVX-512: uint8 2048x2048 2x2 442 -> 270 us, 4x4 393 -> 228, uint16 2x2
#          617 -> 441; uint8 128x512x512 2x2x2 5.7 -> 2.9 ms, 64x56x56 2x2 24 -> 9 us, last int8
#          56x56x128 33 -> 9

cdef void set_part(Tile *tile, const Block *b, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t col,
                   Py_ssize_t cols) noexcept nogil:
    """Set a part of a tile, by its outputs."""
    tile[0] = b.tile[0]
    tile.row, tile.rows = tile.row + row, rows
    tile.col, tile.cols = tile.col + col, cols
    set_elements(tile, &b.average.frame.problem)


cdef void average_exactly(const View *y, const char *src, Block *b) noexcept nogil:
    if b.average.small_floats:
        average_planes_exact(y, src, b, <const float *>NULL)
    else:
        average_planes_exact(y, src, b, <const double *>NULL)


cdef void average_rest(const View *y, const char *src, Block *b, Py_ssize_t row, Py_ssize_t rows,
                       Py_ssize_t col, Py_ssize_t cols) noexcept nogil:
    """Pool a part of a tile that is not folded."""
    cdef Block rest = b[0]
    cdef Tile tile
    if rows > 0 and cols > 0:
        set_part(&tile, b, row, rows, col, cols)
        rest.tile = &tile
        set_column_counts(&rest)
        if tile.row_hi > tile.row_lo and tile.col_hi > tile.col_lo:
            average_exactly(y, src, &rest)
        else:
            fill_empty(y, &rest)
        set_column_counts(b)                # (for the next group of planes)


cdef void average_folded(const View *y, const char *src, Block *b) noexcept nogil:
    """Pool the planes of a tile to exact means, folded if they may be."""
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef const Window *rows = &p.rows
    cdef const Window *cols = &p.cols
    cdef Py_ssize_t row = imax(0, rows.inner_lo - b.tile.row)
    cdef Py_ssize_t col = imax(0, cols.inner_lo - b.tile.col)
    cdef Py_ssize_t n = imin(b.tile.cols, cols.inner_hi - b.tile.col) - col, plane, r, k, t, taps
    cdef Py_ssize_t count = b.slabs * rows.kernel, across, m, least = VEC_BYTES // p.size
    cdef bint takes, pixels = b.tile.channels > 1
    cdef divisors_t d
    cdef Tile tile
    cdef folds_t f
    if p.size > 2 or p.code == BOOL or is_float_code(p.code) or a.result != p.code:
        average_exactly(y, src, b)
        return
    f.flip = 0
    m = imin(b.tile.rows, rows.inner_hi - b.tile.row) - row
    taps = count * cols.kernel
    takes = (b.quantization == NULL and not rows.irregular and not cols.irregular
             and taps <= MOST_FOLDED and m > 0 and n > 0)
    if pixels:
        least //= 2 if VEC_MASKS and p.size == 1 else 1
        takes &= (rows.stride >= rows.kernel and cols.stride >= cols.kernel
                  and b.tile.channels >= least)
    else:
        if cols.kernel == 2:
            least //= 4 if VEC_MASKS else 2
        takes &= (y.col == 1 and b.x.col == p.size and cols.stride == cols.kernel
                  and cols.kernel in (2, 4, 8) and cols.dilation == 1 and n >= least)
    if takes:
        set_divisors(&d, b, b.tile.row + row)
        m = imin(same_divisors(b, row, b.tile.rows) - row, m)
        if d.counts != NULL:
            d.divisor *= d.counts[col]
            for k in range(col, col + n):
                takes &= d.counts[k] == d.counts[col]
    if takes and (p.code == I8 or p.code == I16):   # (quotients are those of x + 2**(bits - 1))
        takes &= d.divisor == taps and a.rounding in (HALF_EVEN, FLOOR)
        f.flip = 1 << (8 * p.size - 1)
    if not (takes and 1 <= d.divisor <= 2 * MOST_FOLDED and is_power_of_two(d.divisor)):
        average_exactly(y, src, b)
        return
    set_part(&tile, b, row, m, col, n)
    set_shift(&f, log2(<Py_ssize_t>d.divisor), a.rounding)
    across = cols.kernel if pixels else 1
    f.count, f.width, f.n = <int>count, <int>cols.kernel, n
    f.rows, f.step, f.pitch = m, rows.stride * b.x.row, y.row * p.size
    if pixels:                              # each tap is a row of elements, each output one too
        f.count, f.width, f.n = <int>taps, 1, b.tile.channels
        f.rows, f.step, f.pitch = n, cols.stride * b.x.col, y.col * p.size
    for t in range(f.count):
        k = t // across
        f.taps[t] = (src + b.offsets[k // rows.kernel] + t % across * cols.dilation * b.x.col
                     + k % rows.kernel * rows.dilation * b.x.row)
    for plane in range(tile.planes):
        f.at = input_offset(p, b.x, &tile, plane)
        f.to = y.data + output_offset(p, y, &tile, plane) * p.size
        for r in range(m if pixels else 1):
            fold(&f, <int>p.size)
            f.at += rows.stride * b.x.row
            f.to += y.row * p.size
    average_rest(y, src, b, 0, row, 0, b.tile.cols)
    average_rest(y, src, b, row, m, 0, col)
    average_rest(y, src, b, row, m, col + n, b.tile.cols - col - n)
    average_rest(y, src, b, row + m, b.tile.rows - row - m, 0, b.tile.cols)
