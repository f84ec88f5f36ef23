# Sums of doubles that a double does not hold: of high digits and of low ones, both exact.
#
# Takes:   doubles whose rows under a block fit into scratch; not whole planes
# Reads:   the input row by row: each element is split once for all windows of a block
# Scratch: the two digits of elements (SPLIT), two sums per output (HIGH, LOW)
# Wins:    against two doubles and digits, one thread of an EPYC (AVX-512): 1x48x77x77 k3 pads 1
#          1640 -> 800 us, 1x63x274x240 k5 s2 17000 -> 7500, 2x232x90x90 k5x1 s4x1 17300 -> 7000,
#          1x40x35x35 k6 s2 pads 2 189 -> 83. Not where windows hardly overlap over many channels:
#          16x19x19x704 k7x1 s7x1 3650 -> 4600
#
# An element is a multiple of a unit, and a rest below it. The unit is so large that sums of its
# multiples are exact. Sums of rests are exact if the exponents of elements differ by less than
# about 40, and the flag tells. So windows share sums, as those of other types do: the strategy of
# the pooling makes both. What they are not exact for is left to double_double.pxi and digits.pxi.

cdef struct SplitTile:                  # the input of sums of digits, as the strategies read it
    Block block
    View x
    SmallTile small
    double bound                        # larger than the elements that were split last


cdef void begin_split(SplitTile *split, const Block *b) noexcept nogil:
    """Set what the planes of a tile have in common."""
    cdef const Average *a = b.average
    cdef Py_ssize_t *offsets = <Py_ssize_t *>doubles(a, b.scratch, OFFSETS)
    offsets += b.slabs * (1 + a.interleaves)
    split.block, split.x = b[0], b.x[0]
    split.x.col = b.tile.channels
    split.x.row = (b.tile.col_hi - b.tile.col_lo) * b.tile.channels
    split.block.x, split.block.offsets = &split.x, offsets
    split.bound = 0
    if a.small:
        begin_small(&split.small, &split.block, <const double *>NULL)


cdef double split_rows(double *high, double *low, const double *src, const Block *b,
                       Py_ssize_t rows, double unit) noexcept nogil:
    """Split rows of a tile, in every slab. Return the largest magnitude: inf if one is no number.

    `src` is the first element of the first row.
    """
    cdef Py_ssize_t n = b.tile.channels, cols = b.tile.col_hi - b.tile.col_lo, s, r, c, runs = 1
    cdef const double *at
    cdef double most = 0
    cdef Py_ssize_t ahead = 1024
    if b.x.col == n or cols <= 1:
        n *= cols
    else:
        runs = cols
    if runs == 1 and b.x.row == n:
        n, rows = n * rows, 1
    if runs == 1 and rows > 1 and n >= 128:
        ahead = b.x.row
    for s in range(b.slabs):
        for r in range(rows):
            at = src + b.offsets[s] + r * b.x.row
            for c in range(runs):
                most = split_digits(high, low, at + c * b.x.col, n, unit, most, ahead)
                high, low = high + n, low + n
    return most


cdef void sum_digit(double *out, const double *src, const SplitTile *split, Py_ssize_t done,
                    Py_ssize_t stop) noexcept nogil:
    """Set the sums of one digit of some rows of windows; `src` would be the tile's first one."""
    cdef const Block *b = &split.block
    cdef Py_ssize_t r
    cdef Columns columns
    if b.average.pixels:
        sum_pixels(out, src, b, done, stop)
    elif b.average.small:
        sum_small(<char *>out, &split.small, src, b, done, stop)
    else:
        begin_columns(&columns, b, 0)
        for r in range(done, stop):
            sum_columns(&columns, src, b, b.tile.row + r)
            sum_windows(out, &columns, b)
            out += b.tile.cols * b.tile.channels


cdef inline double bound_of(double most) noexcept nogil:
    """Return a power of two that is larger than a magnitude."""
    return power_of_two(<int>imax(exponent_of(most), -1000) + 1)


cdef bint sum_two_digits(double *high, double *low, const double *src, SplitTile *split,
                         const Block *b, Py_ssize_t done, Py_ssize_t stop) noexcept nogil:
    """Set the sums of some rows of windows of one plane. Return False if they are not exact."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef const Window *w = &a.frame.problem.rows
    cdef Py_ssize_t first = imax(window_start(w, tile.row + done), tile.row_lo)
    cdef Py_ssize_t rows = imin(window_stop(w, tile.row + stop - 1), tile.row_hi) - first
    cdef Py_ssize_t size = imax(rows, 0) * split.x.row, s
    cdef Py_ssize_t *offsets = <Py_ssize_t *>split.block.offsets
    cdef double *to = doubles(a, b.scratch, SPLIT)
    cdef double *rest = to + a.split + WIDE
    cdef double most
    if size * b.slabs > a.split:
        return False
    for s in range(b.slabs):
        offsets[s] = s * size - (first - tile.row_lo) * split.x.row
    src += (first - tile.row_lo) * b.x.row
    while True:
        most = split_rows(to, rest, src, b, rows, split.bound * power_of_two(-a.digit_bits))
        if most > 1e270:
            return False                    # (sums overflow, or an element is no number)
        if most >= split.bound:
            split.bound = 8 * bound_of(most)    # (elements of the next blocks may be larger)
            continue
        fp_clear()
        sum_digit(high, to, split, done, stop)
        sum_digit(low, rest, split, done, stop)
        if not fp_inexact():
            return True
        if split.bound == bound_of(most):
            return False
        split.bound = bound_of(most)


cdef bint average_by_two_digits(const View *y, const double *src, SplitTile *split, Block *b,
                                Py_ssize_t plane, Py_ssize_t planes) noexcept nogil:
    """Pool planes of a tile. Return False if sums are not exact.

    `src` is the first element of the array. A block holds the sums of several planes.
    """
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t width = tile.cols * tile.channels, i, at, stop, done = 0
    cdef double *high = doubles(a, b.scratch, HIGH)
    cdef double *low = doubles(a, b.scratch, LOW)
    cdef Row row
    row.sums.rest, row.words, row.divisors, row.reciprocals = NULL, 0, NULL, NULL
    while done < tile.rows:
        stop = imin(tile.rows, done + a.block_rows)
        for i in range(planes):
            at = i * tile.rows * width
            if not sum_two_digits(high + at, low + at, src + input_offset(p, b.x, tile, plane + i),
                                  split, b, done, stop):
                return False
        for i in range(planes):
            row.sums.high, row.sums.low = high + i * tile.rows * width, low + i * tile.rows * width
            divide_block(y.data + output_offset(p, y, tile, plane + i) * 8, y, &row, b, done, stop)
        done = stop
    return True
