# Takes:   channels first, one window over all rows and columns
# Reads:   the input in place
# Scratch: the sums alone (HIGH)
# Wins:    against columns, one thread of an EPYC, float32: 1x2048x7x7 k7 145 -> 18 us (AVX-512),
#          102 -> 34 (AVX2), 167 -> 44 (baseline); 1x64x56x56 k56 21 -> 16, 23 -> 16, 60 -> 51;
#          bytes eight at a time, uint8: 8x37x100x100 k100 248 -> 43 us (AVX-512)
#          planes of up to FEW elements one by one, AVX2: a plane of 8 floats 12 -> 4 ns, of 8 bytes
#          20 -> 6 ns
#
# All elements of a plane are added up.

cdef enum:
    FEW = 12


cdef double sum_runs(const any_t *src, Py_ssize_t n, Py_ssize_t count,
                     Py_ssize_t step) noexcept nogil:
    """Return the sum of `count` runs of n neighbouring elements, `step` elements apart."""
    cdef vec_t one = wide_zero(), two = one, three = one, four = one, last
    cdef Py_ssize_t i, r
    for r in range(count):
        i = 0
        while i + 4 * WIDE <= n:            # (an addition takes as long as four begin)
            one, two = wide_add(one, wide(src + i)), wide_add(two, wide(src + i + WIDE))
            three = wide_add(three, wide(src + i + 2 * WIDE))
            four = wide_add(four, wide(src + i + 3 * WIDE))
            i += 4 * WIDE
        while i + WIDE <= n:
            one = wide_add(one, wide(src + i))
            i += WIDE
        if i < n:
            last = wide_part_load(src + i, n - i)
            two, three = wide_add(three, last), two     # (the next row adds to the other one)
        src += step
    return wide_total(wide_add(wide_add(one, two), wide_add(three, four)))


cdef void sum_whole_planes(double *out, const any_t *src, const Block *b, Py_ssize_t plane,
                           Py_ssize_t planes) noexcept nogil:
    """Set the sums of planes that have one window each, of all that is under the tile."""
    cdef const Problem *p = &b.average.frame.problem
    cdef Py_ssize_t rows = b.tile.row_hi - b.tile.row_lo, cols = b.tile.col_hi - b.tile.col_lo
    cdef Py_ssize_t i, s, r, slabs = b.slabs
    cdef const any_t *at
    if b.x.row == cols:                     # rows that are neighbours in memory are one run
        rows, cols = 1, rows * cols
        s = 1
        while s < slabs and b.offsets[s] - b.offsets[s - 1] == cols:
            s += 1
        if s == slabs:                      # (so are slabs)
            slabs, cols = 1, slabs * cols
    if not (any_t is float16_t_ or any_t is bfloat16_t_):       # (scalars of these take longer)
        if slabs == rows == 1 and cols <= FEW:
            for i in range(planes):
                at = src + b.offsets[0] + input_offset(p, b.x, b.tile, plane + i)
                out[i] = 0
                for r in range(cols):
                    out[i] += as_double(at + r)
            return
    for i in range(planes):
        out[i] = 0
        for s in range(slabs):
            at = src + b.offsets[s] + input_offset(p, b.x, b.tile, plane + i)
            if any_t is int8_t or any_t is uint8_t:
                for r in range(rows):
                    out[i] += sum_of_bytes(at + r * b.x.row, cols, any_t is int8_t)
            else:
                out[i] += sum_runs(at, cols, rows, b.x.row)
