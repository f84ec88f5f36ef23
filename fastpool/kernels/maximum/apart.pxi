# Takes:   2 or 4 columns a window at that stride, none over the mask, rows of at least a vector
# Reads:   the input in place
# Scratch: none; slabs of leading axes, where they are gathered first
# Wins:    float32 1x64x224x224 k2 s2: 1517 -> 997 us (AVX-512), 2125 -> 1657 (AVX2),
#          2262 -> 1595 (baseline)
#
# Windows share no column, so that no masks are needed.

cdef inline void row_apart(number *dst, const number *src, const Py_ssize_t *taps, Py_ssize_t ntaps, Py_ssize_t stride,
                             Py_ssize_t n, vec_flag *nan) noexcept nogil:
    """One row of n windows of 2 or 4 columns at that stride, n at least a vector."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), i = 0
    cdef vec_t a, b, c, d
    while True:
        column_pair(&a, &b, src + i * stride, taps, ntaps, NULL, True, nan)
        a = vec_max(vec_concat_even(a, b, src), vec_concat_odd(a, b, src), src)
        if stride == 4:
            column_pair(&c, &d, src + 4 * i + 2 * lanes, taps, ntaps, NULL, True, nan)
            c = vec_max(vec_concat_even(c, d, src), vec_concat_odd(c, d, src), src)
            a = vec_max(vec_concat_even(a, c, src), vec_concat_odd(a, c, src), src)
        vec_store(dst + i, a)
        if i == n - lanes:
            return
        i = imin(i + lanes, n - lanes)
