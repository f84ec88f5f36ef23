# Max unpooling: values back to the places their indices name.
#
# Only bits are moved, so dtypes of one size share a kernel. Indices are looked at before anything is written. Where every
# one stays in its own plane, as a pooling's own indices do, planes are independent tasks; otherwise they are checked, and
# one thread goes through the values in row-major order, so that of two with one index the last one stays.

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


cdef bint plain(const Py_buffer *buffer, const char *formats) noexcept:
    """C-contiguous (asked for when the buffer was), aligned, and of one of these formats?"""
    return (buffer.format != NULL and buffer.format[0] != 0 and buffer.format[1] == 0
            and strchr(formats, buffer.format[0]) != NULL and <uintptr_t>buffer.buf % <uintptr_t>buffer.itemsize == 0)


def max_unpool(x, index, y, Py_ssize_t batch, Py_ssize_t channels, Py_ssize_t count, Py_ssize_t size, bint channels_last,
               bint physical, int threads):
    """Scatter x to `index` in y, each of the right shape.

    Returns -1 if done; the flat place of the first index outside y, with nothing written; or -2 if an array is not plain,
    or y may overlap another.
    """
    cdef Py_buffer buffers[3]
    cdef Unpool u
    cdef Py_ssize_t bad = -2, n = batch * channels * count
    cdef int opened = 0, itemsize, index_bytes
    try:
        for opened in range(3):
            PyObject_GetBuffer(x if opened == 0 else index if opened == 1 else y, &buffers[opened],
                               PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (PyBUF_WRITABLE if opened == 2 else 0))
        opened = 3
    except (BufferError, TypeError, ValueError):
        pass
    else:
        itemsize, index_bytes = <int>buffers[0].itemsize, <int>buffers[1].itemsize
        if (plain(&buffers[0], b"efdbBhHiIlLqQ?") and plain(&buffers[1], b"ilq") and plain(&buffers[2], buffers[0].format)
                and buffers[0].len == n * itemsize and buffers[1].len == n * index_bytes
                and buffers[2].len == batch * channels * size * itemsize
                and not overlap(&buffers[0], &buffers[2]) and not overlap(&buffers[1], &buffers[2])):
            u.x, u.index, u.y = <const char *>buffers[0].buf, <const char *>buffers[1].buf, <char *>buffers[2].buf
            u.batch, u.channels, u.count, u.size = batch, channels, count, size
            u.channels_last, u.physical = channels_last, physical
            threads = <int>imax(1, imin(threads, batch if channels_last else batch * channels))
            with nogil:
                if index_bytes == 8:
                    bad = unpool_sized(&u, <const int64_t *>u.index, itemsize, threads)
                else:
                    bad = unpool_sized(&u, <const int32_t *>u.index, itemsize, threads)
    while opened > 0:
        opened -= 1
        PyBuffer_Release(&buffers[opened])
    return bad
