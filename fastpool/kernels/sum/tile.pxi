# Pool one tile to averages: sums of a block of rows, then quotients.

cdef struct Part:                   # of a tile, which is pooled at once: rows of outputs of planes
    Py_ssize_t plane, planes, row, stop


cdef struct Kept:                   # from one part of a tile to the next, by the ways of adding up
    const SmallTile *small
    Columns columns
    ByteColumns byte_columns
    IntColumns int_columns


cdef void set_sums(double *high, Kept *kept, const any_t *src, Block *b,
                   const Part *part) noexcept nogil:
    """Set the sums of a part of a tile, in the way that the plan names."""
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t width = tile.cols * tile.channels, i, r
    cdef int item = 4 if a.small_floats else 8
    cdef const any_t *at
    cdef char *sums
    if a.whole:
        sum_whole_planes(high, src, b, part.plane, part.planes)
        return
    if a.pixels:
        sum_pixels(high, src + input_offset(p, b.x, tile, 0), b, part.row, part.stop)
        return
    for i in range(part.planes):
        at = src + input_offset(p, b.x, tile, part.plane + i)
        sums = <char *>high + i * tile.rows * width * item
        if a.small:
            if any_t is float or any_t is double:
                sum_small(sums, kept.small, at, b, part.row, part.stop)
        elif a.bytes:
            sum_byte_rows(sums, &kept.byte_columns, <const uint8_t *>at, b, part.row, part.stop,
                          p.code == I8)
        else:
            if part.row == 0 or a.ints:     # (sums of earlier rows may have been integers)
                begin_columns(&kept.columns, b, 0)
            for r in range(part.row, part.stop):
                sum_columns(&kept.columns, at, b, tile.row + r)
                sum_windows(<double *>sums + (r - part.row) * width, &kept.columns, b)


cdef bint divide_ints(const View *y, const uint32_t *ints, Block *b, const Part *part,
                      double unit) noexcept nogil:
    """Divide sums that are multiples of `unit`, in 32 bits. Return False if that is not sure."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t i
    cdef char *dst
    if b.quantization != NULL or not a.quick_ints:
        return False
    for i in range(part.planes):
        dst = y.data + (output_offset(&a.frame.problem, y, tile, part.plane + i)
                        * dtype_bytes[a.result])
        if not quick_divide_rows(dst, y, <char *>(ints + i * tile.rows * tile.cols * tile.channels),
                                 b, part.row, part.stop, unit):
            return False
    return True


cdef bint divide_sums(const View *y, double *high, Block *b, const Part *part,
                      bint rounded) noexcept nogil:
    """Divide, or quantise, the sums of a part. Return False if a mean would be rounded twice.

    `rounded`: sums were rounded, and their means may not be.
    """
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t i, size = 1 if b.quantization != NULL else dtype_bytes[a.result]
    cdef Py_ssize_t distance = tile.rows * tile.cols * tile.channels * (4 if a.small_floats else 8)
    cdef bint as_row = a.whole and y.channel == 1 and evenly_spaced(p, y)
    cdef char *dst = y.data + output_offset(p, y, tile, part.plane) * size
    cdef char *sums
    cdef divisors_t divisors
    cdef Row row
    row.sums.high, row.sums.low, row.sums.rest, row.words = high, NULL, NULL, 0
    row.divisors = row.reciprocals = NULL
    if as_row and b.quantization != NULL:
        quantize_planes(dst, <char *>high, part.planes, b)
        return True
    if as_row:
        if quick_divide_planes(dst, high, part.planes, a):
            return True
        set_divisors(&divisors, b, 0)
        fp_clear()
        divide(dst, &row, &divisors, part.planes, a.result)
        if fp_underflow():
            divisors.settle = True
            divide(dst, &row, &divisors, part.planes, a.result)
        return True
    for i in range(part.planes):
        sums = <char *>high + i * distance
        dst = y.data + output_offset(p, y, tile, part.plane + i) * size
        row.sums.high = <double *>sums
        if b.quantization != NULL:
            quantize_block(dst, y, sums, b, part.row, part.stop)
        elif rounded:
            fp_clear()
            divide_rows(dst, y, &row, b, part.row, part.stop, False)
            if fp_underflow():
                return False
        elif not quick_divide_rows(dst, y, sums, b, part.row, part.stop, 0):
            divide_block(dst, y, &row, b, part.row, part.stop)
    return True


cdef bint average_exact(const View *y, const any_t *src, Block *b, const SmallTile *small,
                        Py_ssize_t plane, Py_ssize_t planes) noexcept nogil:
    """Pool planes of a tile. Return False if a mean may be wrong.

    That is if a sum was rounded (unless the plan rounds once) or is beyond the limit, or if a
    quotient would be rounded twice.

    Several planes are pooled at once if a block holds all of their sums.
    """
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t width = tile.cols * tile.channels, count
    cdef double *high = doubles(a, b.scratch, HIGH)
    cdef uint32_t *ints = <uint32_t *>doubles(a, b.scratch, LOW)
    cdef double unit = 1
    cdef bint rounded
    cdef Part part
    cdef Kept kept
    kept.small = small
    part.plane, part.planes, part.row = plane, planes, 0
    while part.row < tile.rows:
        part.stop = imin(tile.rows, part.row + a.block_rows)
        fp_clear()
        if a.ints and sum_ints(ints, &kept.int_columns, src, b, plane, planes, part.row, part.stop):
            if any_t in real:
                unit = power_of_two(kept.int_columns.exponent)
            if divide_ints(y, ints, b, &part, unit):
                part.row = part.stop
                continue
            count = ((planes - 1) * tile.rows + part.stop - part.row) * width
            if a.small_floats:
                ints_to_floats(<float *>high, ints, count)
            else:
                ints_to_doubles(high, ints, count, unit)
            rounded = False
        else:
            fp_clear()
            set_sums(high, &kept, src, b, &part)
            rounded = fp_inexact()
        if rounded and not a.rounds_once:
            return False
        if a.limit and not all_within(high, planes * (part.stop - part.row) * width, a.limit):
            return False
        if not divide_sums(y, high, b, &part, rounded):
            return False
        part.row = part.stop
    return True


cdef void average_planes(const View *y, const any_t *src, Block *b) noexcept nogil:
    """Pool the planes of a tile. `src` is the first element of the array, in the first slab.

    Several planes are pooled at once. If a sum of one is not exact, each is pooled again on its
    own: by doubles, which may be exact for it, then by two doubles, then by digits. Whole planes
    try two doubles at once first, whose quotients are vectors.
    """
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t plane = 0, at_once = 1, i
    cdef const any_t *at
    cdef char *dst
    cdef SmallTile small
    cdef SplitTile split
    cdef bint in_doubles = not a.sequential, in_digits = any_t is double and a.split > 0
    if any_t in real:
        if a.pairwise:
            if any_t is double or a.pairwise == 8:
                average_planes_pairwise(y, src, b, <const double *>NULL)
            elif any_t is not double:
                average_planes_pairwise(y, src, b, <const float *>NULL)
            return
    if a.carries_cols:
        set_prefix_places(<Py_ssize_t *>doubles(a, b.scratch, PLACES), b)
    if a.block_rows >= tile.rows:
        at_once = imax(1, a.block // (tile.rows * tile.cols * tile.channels))
    if any_t in real:
        if a.small:
            begin_small(&small, b, src)
    if in_digits:
        begin_split(&split, b)
    if in_doubles and (in_digits or takes_pairs(b, &small)):
        in_doubles = a.rounds_once or not hardly_fits(src, b)
    while plane < tile.planes:
        at_once = imin(at_once, tile.planes - plane)
        if in_doubles and average_exact(y, src, b, &small, plane, at_once):
            plane += at_once
            continue
        if any_t is double:
            if in_digits and average_by_two_digits(y, src, &split, b, plane, at_once):
                plane += at_once
                continue
        if any_t in real:
            if a.whole and y.channel == 1 and evenly_spaced(p, y) and takes_pairs(b, &small):
                if average_by_pairs(y, src, b, &small, plane, at_once):
                    plane += at_once
                    continue
        for i in range(plane, plane + at_once):
            at = src + input_offset(p, b.x, tile, i)
            dst = y.data + output_offset(p, y, tile, i) * dtype_bytes[a.result]
            if any_t in real:
                if a.sequential:
                    if a.small:
                        average_small_in_order(dst, y, &small, at, b)
                    else:
                        average_in_order(dst, y, at, b)
                    continue
            if in_doubles and at_once > 1 and average_exact(y, src, b, &small, i, 1):
                continue
            if any_t is double:
                if (in_digits and at_once > 1
                        and average_by_two_digits(y, src, &split, b, i, 1)):
                    continue
            if any_t in real:
                if takes_pairs(b, &small) and average_by_pairs(y, src, b, &small, i, 1):
                    continue
            average_by_digits(dst, y, at, b)
        plane += at_once


cdef void fill_empty(const View *y, const Block *b) noexcept nogil:
    """Write a tile whose windows hold no element: means of 0."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, plane, r, c, runs = tile.cols
    cdef int size = dtype_bytes[a.result], byte = 0
    cdef char *dst
    if b.quantization != NULL:
        size, byte = 1, <int>b.quantization.y_zero
    if y.col == n:
        runs, n = 1, n * tile.cols
    for plane in range(tile.planes):
        dst = y.data + output_offset(&a.frame.problem, y, tile, plane) * size
        for r in range(tile.rows):
            for c in range(runs):
                memset(dst + (r * y.row + c * y.col) * size, byte, n * size)


cdef void average_tile(const Average *a, const Job *job, const Tile *tile, Scratch *scratch,
                       const any_t *tag) noexcept nogil:
    """Pool one tile of any element type."""
    cdef const Problem *p = &a.frame.problem
    cdef const View *x = &job.x
    cdef Py_ssize_t counts[MAX_LEADS]
    cdef Py_ssize_t first, s
    cdef Py_ssize_t *offsets = <Py_ssize_t *>doubles(a, scratch.area, OFFSETS)
    cdef Factors factors
    cdef Block b
    factors.count, b.factors = 0, &factors
    b.average, b.tile, b.x, b.scratch, b.offsets = a, tile, x, scratch.area, offsets
    b.quantization = <const quantization_t *>job.more
    set_column_counts(&b)
    b.slabs = lead_taps(p, x, tile.lead, counts, &first)
    for s in range(b.slabs):
        offsets[s] = lead_offset(p, x.lead, counts, s)
    if not b.slabs or tile.row_hi == tile.row_lo or tile.col_hi == tile.col_lo:
        fill_empty(&job.y, &b)
        return
    if a.interleaves:
        average_interleaved(&job.y, <const any_t *>x.data + first, &b)
    else:
        average_planes(&job.y, <const any_t *>x.data + first, &b)


cdef void run_average(Job *job, Py_ssize_t task, Scratch *scratch) noexcept nogil:
    """Pool the tile of a task."""
    cdef const Average *a = <const Average *>job.frame
    cdef int code = a.frame.problem.code
    cdef fp_state state
    cdef Tile tile
    tile_of(&tile, &a.frame, task)
    fp_enter(&state)
    if code == F32:
        average_tile(a, job, &tile, scratch, <const float *>NULL)
    elif code == F64:
        average_tile(a, job, &tile, scratch, <const double *>NULL)
    elif code == F16:
        average_tile(a, job, &tile, scratch, <const float16_t_ *>NULL)
    elif code == BF16:
        average_tile(a, job, &tile, scratch, <const bfloat16_t_ *>NULL)
    elif code == I8:
        average_tile(a, job, &tile, scratch, <const int8_t *>NULL)
    elif code == U8:
        average_tile(a, job, &tile, scratch, <const uint8_t *>NULL)
    elif code == I16:
        average_tile(a, job, &tile, scratch, <const int16_t *>NULL)
    elif code == U16:
        average_tile(a, job, &tile, scratch, <const uint16_t *>NULL)
    elif code == I32:
        average_tile(a, job, &tile, scratch, <const int32_t *>NULL)
    elif code == U32:
        average_tile(a, job, &tile, scratch, <const uint32_t *>NULL)
    elif code == I64:
        average_tile(a, job, &tile, scratch, <const int64_t *>NULL)
    elif code == U64:
        average_tile(a, job, &tile, scratch, <const uint64_t *>NULL)
    else:
        average_tile(a, job, &tile, scratch, <const bool_t_ *>NULL)
    fp_leave(&state)
