# Takes:   channels first, one window over all rows and columns
# Reads:   the input in place
# Scratch: the sums alone (HIGH)
# Wins:    against columns, one thread of an EPYC, float32: 1x2048x7x7 k7 145 -> 18 us (AVX-512),
#          102 -> 34 (AVX2), 167 -> 44 (baseline); 1x64x56x56 k56 21 -> 16, 23 -> 16, 60 -> 51
#
# All elements of a plane are added up.

cdef double sum_run(const any_t *src, Py_ssize_t n) noexcept nogil:
    """Return the sum of n neighbouring elements."""
    cdef vec_t one = wide_zero(), two = one, three = one, four = one
    cdef Py_ssize_t i = 0
    while i + 4 * WIDE <= n:                # (an addition takes as long as four begin)
        one, two = wide_add(one, wide(src + i)), wide_add(two, wide(src + i + WIDE))
        three = wide_add(three, wide(src + i + 2 * WIDE))
        four = wide_add(four, wide(src + i + 3 * WIDE))
        i += 4 * WIDE
    while i + WIDE <= n:
        one = wide_add(one, wide(src + i))
        i += WIDE
    if i < n:
        two = wide_add(two, wide_part_load(src + i, n - i))
    return wide_total(wide_add(wide_add(one, two), wide_add(three, four)))


cdef void sum_whole_planes(double *out, const any_t *src, const Block *b, Py_ssize_t plane,
                           Py_ssize_t planes) noexcept nogil:
    """Set the sums of planes that have one window each, of all that is under the tile."""
    cdef const Problem *p = &b.average.frame.problem
    cdef Py_ssize_t rows = b.tile.row_hi - b.tile.row_lo, cols = b.tile.col_hi - b.tile.col_lo
    cdef Py_ssize_t i, s, r
    cdef const any_t *at
    if b.x.row == cols:                     # rows that are neighbours in memory are one run
        rows, cols = 1, rows * cols
    for i in range(planes):
        out[i] = 0
        for s in range(b.slabs):
            at = src + b.offsets[s] + input_offset(p, b.x, b.tile, plane + i)
            for r in range(rows):
                out[i] += sum_run(at + r * b.x.row, cols)
