# What the strategies that pool in registers share: loads at an edge, and columns two vectors wide.
#
# There is no band and there are no margins. Lanes outside the input are replaced as they are loaded.
# The pass tracks NaN: a maximum of floats drops a NaN in its first operand, so the caller pools a
# tile with a NaN again, as keys.

cdef struct Source:         # the input under a tile
    Py_ssize_t row, plane           # elements from one to the next
    Py_ssize_t rows, cols           # how many there are


cdef inline vec_t tap_at(const number *at, const vec_edge *edge) noexcept nogil:
    return vec_load(at) if edge == NULL else vec_load_inside(at, edge[0], vec_lowest(at))


cdef inline const vec_edge *edge_of(const vec_edge *edges, Py_ssize_t tap) noexcept nogil:
    return NULL if edges == NULL else edges + tap


cdef inline void put(number *dst, vec_t v, Py_ssize_t nbytes) noexcept nogil:
    if nbytes == VEC_BYTES:
        vec_store(dst, v)
    else:
        vec_store_part(dst, v, nbytes)


cdef inline void column_pair(vec_t *a, vec_t *b, const number *src, const Py_ssize_t *taps, Py_ssize_t ntaps, const vec_edge *edges,
                             bint both, vec_flag *nan) noexcept nogil:
    """The maximum of `ntaps` rows, two vectors wide; without `both` the second is outside."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef vec_t left, right
    cdef Py_ssize_t t
    a[0] = tap_at(src + taps[0], edge_of(edges, 0))
    b[0] = tap_at(src + taps[0] + lanes, edge_of(edges, 1)) if both else vec_lowest(src)
    nan[0] = nan_or(nan[0], a[0], b[0], src)
    for t in range(1, ntaps):
        left = tap_at(src + taps[t], edge_of(edges, 0))
        a[0] = vec_max(a[0], left, src)
        if both:
            right = tap_at(src + taps[t] + lanes, edge_of(edges, 1))
            nan[0] = nan_or(nan[0], left, right, src)
            b[0] = vec_max(b[0], right, src)
        else:
            nan[0] = nan_or(nan[0], left, left, src)
