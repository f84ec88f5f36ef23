# What the strategies that pool in registers share: loads at an edge, and columns two vectors wide.
#
# There is no band and there are no margins. Lanes outside the input are replaced as they are
# loaded. NaN are tracked: a maximum of floats drops a NaN in its first operand, so the caller pools
# a tile with a NaN again, as keys.

cdef inline vec_t load_tap(const number *at, const byte_mask *mask) noexcept nogil:
    """Load a vector. If there is a mask, the lanes outside get the lowest value."""
    return vec_load(at) if mask == NULL else vec_masked_load_or(at, mask[0], vec_lowest(at))


cdef inline const byte_mask *mask_of(const byte_mask *masks, Py_ssize_t tap) noexcept nogil:
    if masks == NULL:
        return NULL
    return masks + tap


cdef inline void store_lanes(number *dst, vec_t v, Py_ssize_t nbytes) noexcept nogil:
    """Store the first `nbytes` of a vector."""
    if nbytes == VEC_BYTES:
        vec_store(dst, v)
    else:
        vec_store_part(dst, v, nbytes)


cdef inline void column_pair(vec_t *a, vec_t *b, const number *src, const Py_ssize_t *taps,
                             Py_ssize_t count, const byte_mask *masks, bint both,
                             vec_flag *nan) noexcept nogil:
    """Set a and b to the maximum over `count` rows, two vectors wide.

    Without `both`, b is outside.
    """
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef vec_t left, right
    cdef const number *at = src + taps[0]
    cdef Py_ssize_t t
    a[0] = load_tap(at, mask_of(masks, 0))
    b[0] = load_tap(at + lanes, mask_of(masks, 1)) if both else vec_lowest(src)
    nan[0] = nan_or(nan[0], a[0], b[0], src)
    for t in range(1, count):
        at = src + taps[t]
        left = load_tap(at, mask_of(masks, 0))
        a[0] = vec_max(a[0], left, src)
        if both:
            right = load_tap(at + lanes, mask_of(masks, 1))
            nan[0] = nan_or(nan[0], left, right, src)
            b[0] = vec_max(b[0], right, src)
        else:
            nan[0] = nan_or(nan[0], left, left, src)
