# Max unpooling: values back to the places their indices name.
#
# Only bits are moved, so dtypes of one size share a kernel. Indices are looked at before anything is written. Where every
# one stays in its own plane, as a pooling's own indices do, planes are independent tasks; otherwise they are checked, and
# one thread goes through the values in row-major order, so that of two with one index the last one stays.

cdef enum:
    DONE = -1
    REFUSED = -2

ctypedef fused bits:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef struct Unpool:
    const char *x
    const char *index
    char *y
    Py_ssize_t batch, channels, count, size     # count: values of a plane, size: elements of an output plane
    bint channels_last                          # of x, index and y alike
    bint physical                               # indices are offsets into y as it lies in memory


cdef inline Py_ssize_t first_outside(const index_t *index, Py_ssize_t n, Py_ssize_t size) noexcept nogil:
    """Place of the first index outside [0, size), or -1."""
    cdef Py_ssize_t i = 0, j, end
    cdef bint bad
    while i < n:                        # in blocks: a loop with an exit would not vectorise
        end = imin(i + 4096, n)
        bad = False
        for j in range(i, end):
            bad |= <uint64_t><int64_t>index[j] >= <uint64_t>size
        if bad:
            for j in range(i, end):
                if <uint64_t><int64_t>index[j] >= <uint64_t>size:
                    return j
        i = end
    return -1


cdef inline bint own_plane(const index_t *index, const Unpool *u, Py_ssize_t plane) noexcept nogil:
    """Do all indices of one plane (channels last: of one batch) stay in it?"""
    cdef Py_ssize_t i, c, base
    cdef bint out = False
    if not u.channels_last:
        base = plane * u.size
        index += plane * u.count
        for i in range(u.count):
            out |= <uint64_t>(index[i] - base) >= <uint64_t>u.size
        return not out
    index += plane * u.count * u.channels
    for i in range(u.count):
        for c in range(u.channels):
            base = (plane * u.channels + c) * u.size
            out |= <uint64_t>(index[i * u.channels + c] - base) >= <uint64_t>u.size
        if out:
            return False
    return True


cdef inline void scatter_plane(bits *y, const bits *x, const index_t *index, const Unpool *u, Py_ssize_t plane) noexcept nogil:
    cdef Py_ssize_t i, base = plane * u.size
    y += base
    x += plane * u.count
    index += plane * u.count
    memset(y, 0, u.size * sizeof(bits))
    for i in range(u.count):
        y[index[i] - base] = x[i]


cdef inline void scatter_batch(bits *y, const bits *x, const index_t *index, const Unpool *u, Py_ssize_t batch) noexcept nogil:
    """Channels last, logical indices: plane n, c holds indices (n * C + c) * size ..."""
    cdef Py_ssize_t i, c, channels = u.channels, size = u.size, base = batch * channels * size
    y += base
    x += batch * u.count * channels
    index += batch * u.count * channels
    memset(y, 0, size * channels * sizeof(bits))
    for i in range(u.count):
        for c in range(channels):
            y[(index[c] - base - c * size) * channels + c] = x[c]
        x += channels
        index += channels


cdef inline void scatter_all(bits *y, const bits *x, const index_t *index, const Unpool *u) noexcept nogil:
    """Any index anywhere, in row-major order of the logical (channels-first) array."""
    cdef Py_ssize_t n, c, i, at, place, channels = u.channels, count = u.count, plane
    memset(y, 0, u.batch * channels * u.size * sizeof(bits))
    for n in range(u.batch):
        for c in range(channels):
            for i in range(count):
                at = (n * count + i) * channels + c if u.channels_last else (n * channels + c) * count + i
                place = index[at]
                if u.channels_last and not u.physical:
                    plane = place // u.size
                    place = (plane // channels * u.size + place % u.size) * channels + plane % channels
                y[place] = x[at]


cdef Py_ssize_t unpool_planes(bits *y, const index_t *index, const Unpool *u, int threads) noexcept nogil:
    """Unpool; or return the place of the first index out of range, with nothing written (else -1)."""
    cdef Py_ssize_t planes = u.batch if u.channels_last else u.batch * u.channels, plane
    cdef Py_ssize_t strays = 0, bad
    cdef const bits *x = <const bits *>u.x
    if u.physical:
        strays = 1
    elif threads == 1:
        for plane in range(planes):
            if not own_plane(index, u, plane):
                strays = 1
                break
    else:
        for plane in prange(planes, schedule='static', num_threads=threads):
            strays += not own_plane(index, u, plane)
    if strays:
        bad = first_outside(index, u.batch * u.channels * u.count, u.batch * u.channels * u.size)
        if bad >= 0:
            return bad
        scatter_all(y, x, index, u)
    elif threads == 1:
        for plane in range(planes):
            if u.channels_last:
                scatter_batch(y, x, index, u, plane)
            else:
                scatter_plane(y, x, index, u, plane)
    else:
        for plane in prange(planes, schedule='static', num_threads=threads):
            if u.channels_last:
                scatter_batch(y, x, index, u, plane)
            else:
                scatter_plane(y, x, index, u, plane)
    return -1


cdef Py_ssize_t unpool_sized(const Unpool *u, const index_t *index, int itemsize, int threads) noexcept nogil:
    if itemsize == 1:
        return unpool_planes(<uint8_t *>u.y, index, u, threads)
    if itemsize == 2:
        return unpool_planes(<uint16_t *>u.y, index, u, threads)
    if itemsize == 4:
        return unpool_planes(<uint32_t *>u.y, index, u, threads)
    return unpool_planes(<uint64_t *>u.y, index, u, threads)


cdef class Unpooling:
    """A max unpooling of one geometry and element type."""
    cdef Unpool unpool
    cdef int ndim, itemsize
    cdef Py_ssize_t x_shape[64]
    cdef Py_ssize_t y_shape[64]
    cdef size_t work
    cdef object output_shape, threads
    cdef readonly object dtype

    def __cinit__(self, x_shape, output_shape, Py_ssize_t batch, Py_ssize_t channels, Py_ssize_t count, Py_ssize_t size,
                  bint channels_last, bint physical, dtype, threads=None):
        """`count` values of each plane go among `size` elements; `dtype` and `threads` as for `Pooling`."""
        cdef Unpool *u = &self.unpool
        cdef int i
        u.batch, u.channels, u.count, u.size = batch, channels, count, size
        u.channels_last, u.physical = channels_last, physical
        self.output_shape, self.dtype, self.threads = output_shape, dtype, threads
        self.itemsize = dtype.itemsize
        self.work = batch * channels * (count * (self.itemsize + sizeof(int64_t)) + size * self.itemsize)
        self.ndim = len(x_shape)
        for i in range(self.ndim):
            self.x_shape[i], self.y_shape[i] = x_shape[i], output_shape[i]

    def run(self, x, indices, out):
        """The result, for plain arrays. None, with nothing written, for any other, and if an index is outside."""
        if not in_use:
            return None
        y = empty(self.output_shape, self.dtype) if out is None else out
        threads = 1 if self.threads is None else self.threads()
        return y if self.unpool_into(x, indices, y, threads, out is None) == DONE else None

    def unpool_apart(self, x, indices, y, int threads):
        """Unpool where the caller knows that no memory is shared. Returns DONE (-1), the flat place of the first index
        outside, with nothing written, or REFUSED (-2)."""
        return self.unpool_into(x, indices, y, threads, True)

    cdef Py_ssize_t unpool_into(self, x, indices, y, int threads, bint apart) except -3:
        cdef Array arrays[3]
        cdef Unpool u = self.unpool
        cdef Py_ssize_t bad = REFUSED
        cdef int index_bytes = 8
        arrays[0].exported = arrays[1].exported = arrays[2].exported = False
        try:
            if not look(&arrays[1], indices, INT64, ALIGNED | CONTIGUOUS):
                index_bytes = 4
                if not look(&arrays[1], indices, INT32, ALIGNED | CONTIGUOUS):
                    return REFUSED
            if not (look(&arrays[0], x, self.dtype, ALIGNED | CONTIGUOUS)
                    and look(&arrays[2], y, self.dtype, ALIGNED | CONTIGUOUS | WRITEABLE)
                    and has_shape(&arrays[0], self.ndim, self.x_shape) and has_shape(&arrays[1], self.ndim, self.x_shape)
                    and has_shape(&arrays[2], self.ndim, self.y_shape)):
                return REFUSED
            if not apart and (overlap(&arrays[0], self.itemsize, &arrays[2], self.itemsize)
                              or overlap(&arrays[1], index_bytes, &arrays[2], self.itemsize)):
                return REFUSED
            u.x, u.index, u.y = arrays[0].data, arrays[1].data, arrays[2].data
            threads = <int>imax(1, imin(threads, u.batch if u.channels_last else u.batch * u.channels))
            if threads == 1 and self.work < UNLOCK_BYTES:
                return unpool_any(&u, self.itemsize, index_bytes, 1)
            with nogil:
                bad = unpool_any(&u, self.itemsize, index_bytes, threads)
            return bad
        finally:
            close(&arrays[0])
            close(&arrays[1])
            close(&arrays[2])


cdef Py_ssize_t unpool_any(const Unpool *u, int itemsize, int index_bytes, int threads) noexcept nogil:
    if index_bytes == 8:
        return unpool_sized(u, <const int64_t *>u.index, itemsize, threads)
    return unpool_sized(u, <const int32_t *>u.index, itemsize, threads)
