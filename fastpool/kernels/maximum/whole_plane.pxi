# Takes:   one window over all of a plane of at most 512 KiB, whose rows are contiguous
# Reads:   the input in place
# Scratch: keys of a tile with a NaN (SLAB, POOLED); a band where rows are not contiguous
# Wins:    float32 1x2048x7x7 k7: 44 -> 20 us (AVX-512), 63 -> 31 (AVX2), 127 -> 26 (baseline)

cdef vec_flag pool_whole_plane(number *dst, const Target *to, const number *src, const Source *s,
                               const Work *work) noexcept nogil:
    """Pool each plane to one value."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), n = s.rows * s.cols, i, plane
    cdef vec_t a, b, c, d
    cdef vec_flag nan = flag_none()
    cdef byte_mask mask = vec_mask_range(0, n * <Py_ssize_t>sizeof(number))
    for plane in range(work.planes):
        if n < lanes:
            a = vec_masked_load_or(src, mask, vec_lowest(src))
            nan = nan_or(nan, a, a, src)
        else:
            a = b = vec_load(src + n - lanes)
            i = 0
            while i + 2 * lanes <= n:
                c, d = vec_load(src + i), vec_load(src + i + lanes)
                nan = nan_or(nan, c, d, src)
                a, b = vec_max(a, c, src), vec_max(b, d, src)
                i += 2 * lanes
            if i + lanes <= n:
                c = vec_load(src + i)
                nan = nan_or(nan, a, c, src)
                a = vec_max(a, c, src)
            c = vec_load(src + n - lanes)
            nan = nan_or(nan, c, c, src)
            a = vec_max(a, b, src)
        narrow_store(dst, vec_reduce_max(a, src), sizeof(number))
        src, dst = src + s.plane, dst + to.plane
    return nan
