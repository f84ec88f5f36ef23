# Exact sums of the passes (window_sums.pxi), divided and rounded once: integers, and floats with
# numerics="exact".
#
# Scratch: a block of sums (HIGH), and what digits.pxi has next to them
#
# Sums are floats if these hold all sums of the elements, else doubles. Most sums of floats are
# exact in double, in any order: elements of 24 bits leave room for carries unless their exponents
# differ by much. The processor's flag for rounded results tells, at no cost, whether all additions
# of a block were exact. If they were not, digits.pxi pools the block.

cdef bint are_neighbours(const View *y, const Block *b, const Part *part) noexcept nogil:
    """Are the outputs of planes that have one window each next to one another in memory?"""
    return part.planes > 1 and y.channel == 1 and b.counts == NULL


cdef void divide_part(const View *y, const Row *row, const Block *b,
                      const Part *part) noexcept nogil:
    """Divide sums with care."""
    cdef const Problem *p = &b.average.frame.problem
    cdef Py_ssize_t i
    cdef int size = dtype_bytes[b.average.result]
    cdef Row of_plane
    cdef View to = y[0]
    cdef Tile tile
    cdef Block one
    if are_neighbours(y, b, part):          # they are divided as one row of columns
        tile, one, to.col = b.tile[0], b[0], 1
        tile.cols, one.tile = part.planes, &tile
        divide_block(y.data + output_offset(p, y, b.tile, part.plane) * size, &to, row, &one, 0, 1)
        return
    for i in range(part.planes):
        of_plane = row_from(row, i)
        divide_block(y.data + output_offset(p, y, b.tile, part.plane + i) * size, y, &of_plane, b,
                     part.row, part.stop)


cdef void divide_sums(const View *y, const char *sums, const Block *b,
                      const Part *part) noexcept nogil:
    """Divide, or quantise, exact sums."""
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef Py_ssize_t i
    cdef int item = 4 if a.small_floats else 8
    cdef int size = 1 if b.quantization != NULL else dtype_bytes[a.result]
    cdef bint as_row = are_neighbours(y, b, part)
    cdef char *dst = y.data + output_offset(p, y, b.tile, part.plane) * size
    cdef Row row
    if as_row and b.quantization != NULL:
        quantize_planes(dst, sums, part.planes, b)
        return
    if as_row and quick_divide_planes(dst, sums, part.planes, b):
        return
    row.sums.high, row.sums.low, row.sums.rest = <const double *>sums, NULL, NULL
    row.sums.bound = 0
    row.words, row.divisors, row.reciprocals = 0, NULL, NULL
    if as_row:
        divide_part(y, &row, b, part)
        return
    for i in range(part.planes):
        dst = y.data + output_offset(p, y, b.tile, part.plane + i) * size
        if b.quantization != NULL:
            quantize_block(dst, y, sums, b, part.row, part.stop)
        elif not quick_divide_rows(dst, y, sums, b, part.row, part.stop):
            row.sums.high = <const double *>sums
            divide_block(dst, y, &row, b, part.row, part.stop)
        sums += item


cdef bint average_exact(const View *y, Passes *t, const char *src, const Block *b,
                        const Part *part, const acc_t *tag) noexcept nogil:
    """Pool some outputs. Return False if a sum was rounded, or is too large to be divided."""
    cdef const Average *a = b.average
    cdef Py_ssize_t n = part.planes * (part.stop - part.row) * b.tile.cols * b.tile.channels
    cdef acc_t *sums = <acc_t *>doubles(a, b.scratch, HIGH)
    cdef double *nans = doubles(a, b.scratch, NANS)
    cdef Sums some
    t.nans = False
    fp_clear()
    if t.shorts:
        sum_down(<acc_t *>doubles(a, b.scratch, COLUMNS), t, src, b, b.tile.row + part.row,
                 b.tile.row + part.stop)
        if not average_bytes(y, t, b, part, sums):
            divide_sums(y, <const char *>sums, b, part)
        return True
    sum_part(sums, t, src, b, part)
    if acc_t is double:
        if a.may_round and fp_inexact():
            return False
        if a.limit and not all_within(sums, n, a.limit):
            return False
        if t.nans:
            count_nans(nans, t, src, b, b.tile.row + part.row, b.tile.row + part.stop, True)
            begin_sums(&some, b, 0, 0)
            end_sums(&some, nans, b, part)
            some.row.sums.low = some.row.sums.rest = NULL
            divide_part(y, &some.row, b, part)
            return True
    divide_sums(y, <const char *>sums, b, part)
    return True


cdef void average_planes_exact(const View *y, const char *src, Block *b,
                               const acc_t *tag) noexcept nogil:
    """Pool the planes of a tile."""
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef const Tile *tile = b.tile
    cdef bint spaced = evenly_spaced(p, b.x) and evenly_spaced(p, y)
    # (If one sum of doubles is rounded, most are.)
    cdef bint tries = True, gives_up = p.code == F64, pixels
    cdef const char *at
    cdef Passes t
    cdef Part part
    begin_tile(&t, src, b, tag)
    t.pixels = pixels = sizeof(acc_t) == 8 and takes_pixels(&t, b, F32, tag)
    part.plane = 0
    while part.plane < tile.planes:
        part.planes = 1
        if a.whole:
            part.planes = neighbours(b, part.plane, imin(a.block, tile.planes - part.plane), spaced)
        at = src + input_offset(p, b.x, tile, part.plane)
        part.row = 0
        while part.row < tile.rows:
            part.stop = imin(tile.rows, part.row + (1 if a.whole else a.block_rows))
            if not (tries and average_exact(y, &t, at, b, &part, tag)):
                average_by_digits(y, at, b, &part)
                begin_passes(&t, b, NULL, -1, tag)
                t.pixels = pixels
                tries = not gives_up
            part.row = part.stop
        part.plane += part.planes
