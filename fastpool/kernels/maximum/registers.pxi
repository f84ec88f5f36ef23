# What the strategies that pool in registers share: loads at an mask, and columns two vectors wide.
#
# There is no band and there are no margins. Lanes outside the input are replaced as they are loaded.
# The pass tracks NaN: a maximum of floats drops a NaN in its first operand, so the caller pools a
# tile with a NaN again, as keys.

cdef struct Source:         # the input under a tile
    Py_ssize_t row, plane           # elements from one to the next
    Py_ssize_t rows, cols           # how many there are


cdef inline vec_t load_tap(const number *at, const byte_mask *mask) noexcept nogil:
    return vec_load(at) if mask == NULL else vec_masked_load_or(at, mask[0], vec_lowest(at))


cdef inline const byte_mask *mask_of(const byte_mask *masks, Py_ssize_t tap) noexcept nogil:
    return NULL if masks == NULL else masks + tap


cdef inline void store_lanes(number *dst, vec_t v, Py_ssize_t nbytes) noexcept nogil:
    if nbytes == VEC_BYTES:
        vec_store(dst, v)
    else:
        vec_store_part(dst, v, nbytes)


cdef inline void column_pair(vec_t *a, vec_t *b, const number *src, const Py_ssize_t *taps, Py_ssize_t ntaps, const byte_mask *masks,
                             bint both, vec_flag *nan) noexcept nogil:
    """The maximum of `ntaps` rows, two vectors wide; without `both` the second is outside."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef vec_t left, right
    cdef Py_ssize_t t
    a[0] = load_tap(src + taps[0], mask_of(masks, 0))
    b[0] = load_tap(src + taps[0] + lanes, mask_of(masks, 1)) if both else vec_lowest(src)
    nan[0] = nan_or(nan[0], a[0], b[0], src)
    for t in range(1, ntaps):
        left = load_tap(src + taps[t], mask_of(masks, 0))
        a[0] = vec_max(a[0], left, src)
        if both:
            right = load_tap(src + taps[t] + lanes, mask_of(masks, 1))
            nan[0] = nan_or(nan[0], left, right, src)
            b[0] = vec_max(b[0], right, src)
        else:
            nan[0] = nan_or(nan[0], left, left, src)
