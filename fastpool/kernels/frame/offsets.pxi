# Where a tile begins in its arrays, and what its indices count from.

cdef inline Py_ssize_t lead_taps(const Pool *p, const View *x, Py_ssize_t output, Py_ssize_t *counts,
                                 Py_ssize_t *first) noexcept nogil:
    """Taps of one output of the leading axes: how many in all, how many per axis, and where the first stands in x."""
    cdef Py_ssize_t axis = p.leads, total = 1, at
    first[0] = 0
    while axis > 0:
        axis -= 1
        counts[axis] = real_taps(&p.lead[axis], output % p.lead[axis].out, &at)
        output //= p.lead[axis].out
        total *= counts[axis]
        first[0] += at * x.lead[axis]
    return total


cdef inline Py_ssize_t lead_offset(const Pool *p, const Py_ssize_t *strides, const Py_ssize_t *counts,
                                   Py_ssize_t tap) noexcept nogil:
    """Distance of leading tap number `tap` (row-major) from the first."""
    cdef Py_ssize_t axis = p.leads, offset = 0
    while axis > 0:
        axis -= 1
        offset += tap % counts[axis] * p.lead[axis].dilation * strides[axis]
        tap //= counts[axis]
    return offset


cdef inline bint evenly_spaced(const Pool *p, const View *x) noexcept nogil:
    """Is plane n * C + c that many steps from the first?"""
    return p.batch == 1 or x.batch == p.channels * x.channel


cdef inline Py_ssize_t plane_offset(const Pool *p, const View *x, Py_ssize_t plane) noexcept nogil:
    if evenly_spaced(p, x):             # most arrays, and no division
        return plane * x.channel
    return plane // p.channels * x.batch + plane % p.channels * x.channel


cdef inline Py_ssize_t input_offset(const Pool *p, const View *x, const Tile *tile, Py_ssize_t plane) noexcept nogil:
    """Where one plane of the tile begins in x: its first real row, column and channel."""
    cdef Py_ssize_t at = tile.row_lo * x.row + tile.col_lo * x.col
    if p.channels_last:
        return at + tile.batch * x.batch + tile.channel * x.channel
    return at + plane_offset(p, x, tile.plane + plane)


cdef inline Py_ssize_t output_offset(const Pool *p, const View *y, const Tile *tile, Py_ssize_t plane) noexcept nogil:
    cdef Py_ssize_t at = tile.row * y.row + tile.col * y.col, lead = tile.lead, axis = p.leads
    while axis > 0:
        axis -= 1
        at += lead % p.lead[axis].out * y.lead[axis]
        lead //= p.lead[axis].out
    if p.channels_last:
        return at + tile.batch * y.batch + tile.channel * y.channel
    return at + plane_offset(p, y, tile.plane + plane)


cdef inline Py_ssize_t plane_base(const Pool *p, Py_ssize_t plane) noexcept nogil:
    """What an index counts from in one plane."""
    if p.index_batch == p.channels * p.index_channel:   # most layouts of indices, and no division
        return plane * p.index_channel
    return plane // p.channels * p.index_batch + plane % p.channels * p.index_channel


cdef inline int64_t tile_base(const Pool *p, const Tile *tile) noexcept nogil:
    """The index of a tile's first element, but for the plane and the column of channels first."""
    cdef Py_ssize_t lead = tile.lead, axis = p.leads, at
    cdef int64_t base = p.index_base + tile.row_lo * p.index_row
    while axis > 0:
        axis -= 1
        real_taps(&p.lead[axis], lead % p.lead[axis].out, &at)
        lead //= p.lead[axis].out
        base += at * p.index_lead[axis]
    if p.channels_last:
        base += tile.batch * p.index_batch + tile.channel * p.index_channel + tile.col_lo * p.index_col
    return base
