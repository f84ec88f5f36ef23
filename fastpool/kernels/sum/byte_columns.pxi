# Takes:   windows of up to MOST_BYTES 8-bit elements, if the result has their type
# Reads:   the input in place, row by row
# Scratch: the columns of a row of windows with margins, in 16 bits (COLUMNS), sums of all places of
#          a row, and prefixes of columns (PREFIX)
# Wins:    against small_windows and columns, one thread of an EPYC, 24 random layers (geometric
#          mean): 2.1 times (AVX-512), 2.4 (AVX2), 1.5 (baseline); 1x4x100x100x100 k3 34 -> 2.2 ms
#
# Columns of a window are added up in 16 bits, which hold any such sum, then taps along rows; many
# taps are a difference of prefixes, modulo 2**16. The sums are floats, exactly.

cdef enum:
    MANY_BYTE_TAPS = 8      # along a row: adding them takes longer than prefixes
    SLOW_PREFIXES = 3       # times as many, if prefixes are added up one by one

cdef struct ByteColumns:
    uint16_t *sums                      # where the first element of the tile is
    Py_ssize_t first, stop              # rows of the input that are in there


cdef void begin_byte_columns(ByteColumns *columns, const Block *b) noexcept nogil:
    """Set margins of 0 around the sums of a plane's columns."""
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, cols = tile.col_hi - tile.col_lo
    cdef uint16_t *sums = <uint16_t *>doubles(b.average, b.scratch, COLUMNS)
    columns.sums = sums + tile.left * n
    memset(sums, 0, tile.left * n * 2)
    memset(columns.sums + cols * n, 0, (tile.span - tile.left - cols) * n * 2 + 2 * VEC_BYTES)
    columns.first = columns.stop = -1


cdef void sum_byte_columns(ByteColumns *columns, const uint8_t *src, const Block *b,
                           Py_ssize_t output, bint is_signed) noexcept nogil:
    """Set the sums of columns under one row of outputs."""
    cdef const Window *w = &b.average.frame.problem.rows
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, cols = tile.col_hi - tile.col_lo, runs = 1, c, first, count
    cdef uint16_t *sums
    cdef byte_rows_t rows
    cdef bint carries
    count = real_taps(w, output, &first)
    first -= tile.row_lo
    carries = b.average.carries_rows and 0 <= columns.first <= first < columns.stop
    rows.offsets, rows.slabs, rows.step = b.offsets, b.slabs, w.dilation * b.x.row
    if b.x.col == n or cols <= 1:
        n *= cols                           # neighbours in memory are one run
    else:
        runs = cols
    for c in range(runs):
        sums = columns.sums + c * n
        if carries:                         # (the windows share rows)
            rows.src, rows.rows = src + c * b.x.col + columns.stop * b.x.row, 0
            rows.rows = imax(0, first + count - columns.stop)
            carry_byte_rows(sums, &rows, n, True, is_signed)
            rows.src, rows.rows = src + c * b.x.col + columns.first * b.x.row, first - columns.first
            carry_byte_rows(sums, &rows, n, False, is_signed)
        else:
            rows.src, rows.rows = src + c * b.x.col + first * b.x.row, count
            add_byte_rows(sums, &rows, n, is_signed)
    columns.first, columns.stop = first, first + count


cdef void sum_byte_windows(float *out, const ByteColumns *columns, const Block *b,
                           bint is_signed) noexcept nogil:
    """Set the sums of one row of windows from the sums of its columns."""
    cdef const Window *w = &b.average.frame.problem.cols
    cdef Py_ssize_t n = b.tile.channels, cols = b.tile.cols, c
    cdef Py_ssize_t taps = w.kernel, step = w.dilation * n, stride = w.stride * n
    cdef const uint16_t *first = columns.sums - b.tile.left * n
    cdef uint16_t *places = <uint16_t *>doubles(b.average, b.scratch, PREFIX)
    cdef uint16_t *prefixes = places + b.average.band
    cdef Py_ssize_t many = MANY_BYTE_TAPS * (SLOW_PREFIXES if 1 < step < HALVES else 1)
    if taps >= many:
        sum_columns_before(prefixes, first, b.tile.span * n, step)
        first, taps, step = prefixes, 0, taps * step
    if w.stride == 1:
        sum_byte_taps(out, first, cols * n, taps, step, is_signed)
    elif n == 1 and stride == 2:
        sum_byte_taps_at_two(out, first, cols, taps, step, is_signed)
    elif n >= FLOATS_OF_SUMS:
        for c in range(cols):               # (what is set after the last channel is set again)
            sum_byte_taps(out + c * n, first + c * stride, n, taps, step, is_signed)
    else:
        sum_byte_taps_in_16(places, first, (cols - 1) * stride + n, taps, step)
        pick_sums(out, places, cols, n, stride, is_signed)


cdef void sum_byte_rows(char *sums, ByteColumns *columns, const uint8_t *src, const Block *b,
                        Py_ssize_t done, Py_ssize_t stop, bint is_signed) noexcept nogil:
    """Set the sums of some rows of windows, as floats or doubles.

    `src` is the first element of the tile.
    """
    cdef Py_ssize_t width = b.tile.cols * b.tile.channels, r
    cdef float *floats
    cdef bint in_floats = b.average.small_floats
    if done == 0:
        begin_byte_columns(columns, b)
    for r in range(done, stop):
        sum_byte_columns(columns, src, b, b.tile.row + r, is_signed)
        if in_floats:
            sum_byte_windows(<float *>sums + (r - done) * width, columns, b, is_signed)
            continue
        floats = <float *>doubles(b.average, b.scratch, LOW)
        sum_byte_windows(floats, columns, b, is_signed)
        widen_sums(<double *>sums + (r - done) * width, floats, width)
