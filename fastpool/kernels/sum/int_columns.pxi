# Takes:   windows whose sums 32 bits hold: of integers of 8 and 16 bits, and of few others, if the
#          elements of a block are small; of 16-bit floats, as multiples of a unit
# Reads:   integers in place, row by row; floats whose windows share rows are converted first
#          (INT_ROWS), each of them once
# Scratch: the columns of a row of windows with margins (INT_COLUMNS), sums of all places of a row,
#          and prefixes of columns (INT_PREFIX)
# Wins:    against what takes these windows without it, one thread of an EPYC (AVX-512): 1x64x500 k3
#          bfloat16 41 -> 17 us, int32 42 -> 18; 1x8x200x200 k5 bfloat16 390 -> 245, int16
#          413 -> 231; 1x56x56x64 channels last k3 s2 int16 50 -> 20, k2 s2 bfloat16 45 -> 29
#
# Columns of a window are added up in 32 bits, then taps along rows; many taps are a difference of
# prefixes. All of it is modulo 2**32, so that only the sums of windows have to fit. If those of a
# block may not, or an element is no multiple of the unit, columns.pxi sums that block.

cdef enum:
    LEAST_UNIT = -70        # exponents: floats hold quotients of such units by any divisor
    LEAST_F16 = -24
    MOST_UNIT = 60
    MAX_VEC_BYTES = 64

cdef struct IntColumns:
    uint32_t *sums                      # where the first element of the tile is, of some rows
    const uint32_t *last                # the row that was set last
    Py_ssize_t first, stop              # rows of the input that are in there
    int32_t *rows                       # converted, in every slab
    Py_ssize_t row, end                 # the first of them, and the one after the last
    Py_ssize_t offsets                  # elements from one slab of them to the next
    int exponent                        # of their unit


ctypedef fused int_row_t:               # elements, or what they were converted to
    int8_t
    uint8_t
    int16_t
    uint16_t
    int32_t
    float16_t_
    bfloat16_t_


cdef void begin_int_columns(IntColumns *columns, const Block *b) noexcept nogil:
    """Set margins of 0 around the sums of a plane's columns, and forget the rows of others."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t left = 0 if a.carries_cols else tile.left
    cdef Py_ssize_t right = 0 if a.carries_cols else tile.span - left - cols
    cdef uint32_t *sums = <uint32_t *>doubles(a, b.scratch, INT_COLUMNS)
    cdef Py_ssize_t r
    columns.sums = columns.last = sums + left * n
    for r in range(a.int_bands):
        memset(sums + r * a.band, 0, left * n * 4)
        memset(columns.sums + r * a.band + cols * n, 0, right * n * 4)
    columns.first = columns.stop = -1
    columns.rows = <int32_t *>doubles(a, b.scratch, INT_ROWS)
    columns.offsets = a.int_rows * cols * n
    columns.row = columns.end = 0
    columns.exponent = LEAST_UNIT - 1


cdef void note_rows(char *greatest, const any_t *src, const Block *b, Py_ssize_t first,
                    Py_ssize_t stop) noexcept nogil:
    """Note the greatest magnitudes in some rows of a plane under a tile."""
    cdef Py_ssize_t n = b.tile.channels, cols = b.tile.col_hi - b.tile.col_lo, runs = 1, s, r, c
    cdef const any_t *at
    if any_t is float16_t_ or any_t is bfloat16_t_ or any_t is int32_t or any_t is uint32_t:
        if b.x.col == n or cols <= 1:
            n *= cols
        else:
            runs = cols
        for s in range(b.slabs):
            for r in range(first, stop):
                at = src + b.offsets[s] + r * b.x.row
                if b.x.row == n and runs == 1:          # neighbours in memory are one run
                    note_greatest(greatest, at, (stop - r) * n)
                    break
                for c in range(runs):
                    note_greatest(greatest, at + c * b.x.col, n)


cdef void forget_rows(IntColumns *columns) noexcept nogil:
    """Make the next block choose a unit."""
    columns.exponent = LEAST_UNIT - 1
    columns.row = columns.end
    columns.first = columns.stop = -1


cdef bint set_unit(IntColumns *columns, const any_t *tag, const Block *b,
                   uint32_t magnitude) noexcept nogil:
    """Choose a unit in which 32 bits hold sums of elements up to a magnitude.

    Return whether there is one. Rows that have another one are forgotten.
    """
    cdef double most
    cdef int exponent
    if any_t is float16_t_ or any_t is bfloat16_t_:
        most = HALF_OF(magnitude, tag) * b.average.int_taps
        if most - most != 0:
            return False
        exponent = LEAST_F16 if any_t is float16_t_ else LEAST_UNIT
        if most >= power_of_two(exponent + 31):
            exponent = exponent_of(most) - 30
        if exponent > columns.exponent:
            columns.exponent = exponent
            columns.first = columns.stop = -1
            columns.row = columns.end
        return columns.exponent <= MOST_UNIT
    elif any_t is int32_t or any_t is uint32_t:
        return magnitude < (<uint32_t>1 << 31) // <uint32_t>b.average.int_taps
    else:
        return True


cdef void convert_rows(IntColumns *columns, const any_t *src, const Block *b, Py_ssize_t first,
                       Py_ssize_t stop) noexcept nogil:
    """Convert the rows of a plane from `first` to `stop` that are not there yet."""
    cdef Py_ssize_t n = b.tile.channels, cols = b.tile.col_hi - b.tile.col_lo, runs = 1, s, r, c
    cdef Py_ssize_t pitch = cols * n, keep
    cdef float scale = <float>power_of_two(-columns.exponent)
    cdef int32_t *to
    cdef const any_t *at
    if any_t is float16_t_ or any_t is bfloat16_t_:
        if not columns.row <= first <= columns.end:
            columns.row = columns.end = first
        if stop - columns.row > b.average.int_rows:     # (rows that are kept move to the front)
            keep = first
            if columns.row <= columns.first < first:    # (what the next windows subtract)
                keep = imax(columns.first, stop - b.average.int_rows)
            for s in range(b.slabs):
                to = columns.rows + s * columns.offsets
                memmove(to, to + (keep - columns.row) * pitch, (columns.end - keep) * pitch * 4)
            columns.row = keep
        if columns.first < columns.row:                 # rows that are gone cannot be subtracted
            columns.first = columns.stop = -1
        if b.x.col == n or cols <= 1:
            n *= cols
        else:
            runs = cols
        for s in range(b.slabs):
            for r in range(columns.end, stop):
                to = columns.rows + s * columns.offsets + (r - columns.row) * pitch
                at = src + b.offsets[s] + r * b.x.row
                if b.x.row == pitch and runs == 1:      # neighbours in memory are one run
                    to_ints(to, at, (stop - r) * pitch, scale)
                    break
                for c in range(runs):
                    to_ints(to + c * n, at + c * b.x.col, n, scale)
        columns.end = imax(stop, columns.end)


cdef void sum_int_columns(uint32_t *to, IntColumns *columns, const int_row_t *src, const View *x,
                          const Block *b, const Py_ssize_t *offsets,
                          Py_ssize_t output) noexcept nogil:
    """Set the sums of columns under one row of outputs. `src` is row 0 of the tile."""
    cdef const Window *w = &b.average.frame.problem.rows
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, cols = tile.col_hi - tile.col_lo, runs = 1, c, s, first
    cdef Py_ssize_t count, step = x.row * w.dilation
    cdef float scale = <float>power_of_two(-columns.exponent)
    cdef uint32_t *sums
    cdef const uint32_t *before
    cdef const int_row_t *at
    cdef bint carries
    count = real_taps(w, output, &first)
    first -= tile.row_lo
    carries = b.average.carries_rows and count > 0 and 0 <= columns.first <= first < columns.stop
    if x.col == n or cols <= 1:
        n *= cols
    else:
        runs = cols
    for c in range(runs):
        sums, before = to + c * n, columns.last + c * n
        if count == 0 or b.slabs == 0:
            memset(sums, 0, n * 4)
        for s in range(b.slabs):
            at = src + offsets[s] + c * x.col
            if carries:                     # (the windows share rows)
                if not (int_row_t is float16_t_ or int_row_t is bfloat16_t_):
                    carry_int_rows(sums, before if s == 0 else sums, at + columns.stop * x.row,
                                   imax(0, first + count - columns.stop),
                                   at + columns.first * x.row, first - columns.first, n, x.row)
            elif count:
                sum_int_rows(sums, at + first * x.row, n, step, count, s > 0, scale)
    vec_store(to + cols * tile.channels, wide_zero())   # (part of a vector was set)
    columns.first, columns.stop, columns.last = first, first + count, to


cdef void sum_int_windows(uint32_t *out, const uint32_t *columns, const Block *b) noexcept nogil:
    """Set the sums of one row of windows from the sums of its columns."""
    cdef const Average *a = b.average
    cdef const Window *w = &a.frame.problem.cols
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, cols = tile.cols, c, taps = w.kernel, step = w.dilation * n
    cdef Py_ssize_t stride = w.stride * n, lo = 0, hi = 0, under = tile.col_hi - tile.col_lo
    cdef const uint32_t *first = columns - tile.left * n
    cdef uint32_t *other = <uint32_t *>doubles(a, b.scratch, INT_PREFIX)
    cdef const Py_ssize_t *places = <const Py_ssize_t *>doubles(a, b.scratch, PLACES)
    if a.carries_cols:
        sum_ints_before(other, columns, under * n,
                        imin(w.dilation, under) * n)
        if not w.irregular and w.stride == 1 and w.dilation == 1:
            # Where all taps are elements, windows that are neighbours begin at neighbours.
            lo = imin(imax(w.inner_lo - tile.col, 0), cols)
            hi = imin(imax(w.inner_hi - tile.col, lo), cols)
        for c in range(cols):
            if lo <= c < hi:
                if c == lo:                 # (what is set after them is set again)
                    first = other + places[2 * lo] * n
                    subtract_ints(out + lo * n, first + taps * n, first, (hi - lo) * n)
            else:
                subtract_ints(out + c * n, other + places[2 * c + 1] * n, other + places[2 * c] * n,
                              n)
    elif w.stride == 1:
        sum_int_taps(out, first, cols * n, taps, step)
    elif n == 1 and stride == 2:
        sum_int_taps_at_two(out, first, cols, taps, step)
    elif n >= INTS:
        for c in range(cols):               # (what is set after the last channel is set again)
            sum_int_taps(out + c * n, first + c * stride, n, taps, step)
    else:
        sum_int_taps(other, first, (cols - 1) * stride + n, taps, step)
        pick_int_sums(out, other, cols, n, stride)


cdef bint sum_ints(uint32_t *out, IntColumns *columns, const any_t *src, const Block *b,
                   Py_ssize_t plane, Py_ssize_t planes, Py_ssize_t done,
                   Py_ssize_t stop) noexcept nogil:
    """Set the sums of some rows of windows of some planes, as multiples of the unit.

    `src` is the first element of the array. Return False if 32 bits may not hold them.
    """
    cdef const Average *a = b.average
    cdef const Problem *p = &a.frame.problem
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t width = tile.cols * tile.channels, i, r, s, first, last, first_row, last_row
    cdef Py_ssize_t pitch = (tile.col_hi - tile.col_lo) * tile.channels
    cdef Py_ssize_t offsets[MAX_INT_SLABS]
    cdef const any_t *at
    cdef uint32_t *to
    cdef char greatest[MAX_VEC_BYTES]
    cdef View rows
    if any_t is float or any_t is double or any_t is bool_t_:
        return False
    elif any_t is int64_t or any_t is uint64_t:
        return False
    else:
        first = imin(imax(window_start(&p.rows, tile.row + done), tile.row_lo), tile.row_hi)
        last = imax(imin(window_stop(&p.rows, tile.row + stop - 1), tile.row_hi), first)
        first, last = first - tile.row_lo, last - tile.row_lo
        if done == 0:
            begin_int_columns(columns, b)
        if not a.int_rows:                  # (rows are not kept)
            columns.row = columns.end = first
        if not (any_t is int8_t or any_t is uint8_t or any_t is int16_t or any_t is uint16_t):
            r = imax(first, columns.end) if columns.row <= first <= columns.end else first
            memset(greatest, 0, MAX_VEC_BYTES)
            for i in range(planes):
                note_rows(greatest, src + input_offset(p, b.x, tile, plane + i), b, r, last)
            if not set_unit(columns, src, b, noted(greatest, src)):
                forget_rows(columns)
                return False
        for i in range(planes):
            at = src + input_offset(p, b.x, tile, plane + i)
            if i > 0:
                columns.first = columns.stop = -1
                columns.row = columns.end = 0
            if any_t is float16_t_ or any_t is bfloat16_t_:
                if a.int_rows:
                    convert_rows(columns, at, b, first, last)
                rows = b.x[0]
                rows.row, rows.col = pitch, tile.channels
                for s in range(b.slabs):
                    offsets[s] = s * columns.offsets - columns.row * pitch
            first_row = done
            while first_row < stop:
                last_row = imin(stop, first_row + a.int_bands)
                to = columns.sums
                for r in range(first_row, last_row):
                    if (any_t is float16_t_ or any_t is bfloat16_t_) and a.int_rows:
                        sum_int_columns(to, columns, columns.rows, &rows, b, offsets, tile.row + r)
                    elif any_t is uint32_t:
                        sum_int_columns(to, columns, <const int32_t *>at, b.x, b, b.offsets,
                                        tile.row + r)
                    else:
                        sum_int_columns(to, columns, at, b.x, b, b.offsets, tile.row + r)
                    to += a.band
                # (Sums are read at shifted places, which stalls if they were stored right before.)
                for r in range(first_row, last_row):
                    sum_int_windows(out + (i * tile.rows + r - done) * width,
                                    columns.sums + (r - first_row) * a.band, b)
                first_row = last_row
        if fp_inexact():                    # (an element is no multiple of the unit)
            forget_rows(columns)
            return False
        return True
