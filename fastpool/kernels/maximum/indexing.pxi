# What the indices of a tile count from.

cdef int set_indexing(Indexing *indexing, schedule) except -1:
    cdef Py_ssize_t strides[MAX_LEADS + 4]
    cdef Py_ssize_t leads = len(schedule.windows) - 2, i
    read_integers(strides, schedule.index_strides, leads + 4)
    read_integers(indexing.position_lead, schedule.position_strides, leads)
    indexing.bytes, indexing.base = schedule.index_bytes, schedule.index_base
    indexing.batch, indexing.channel = strides[0], strides[1]
    indexing.row, indexing.col = strides[2 + leads], strides[3 + leads]
    indexing.linear = schedule.linear
    for i in range(leads):
        indexing.lead[i] = strides[2 + i]
    return 0


cdef inline Py_ssize_t plane_base(const Pool *p, Py_ssize_t plane) noexcept nogil:
    """Return what the indices of one plane count from."""
    cdef Py_ssize_t channels = p.frame.problem.channels
    if p.indexing.batch == channels * p.indexing.channel:   # most layouts, and no division
        return plane * p.indexing.channel
    return plane // channels * p.indexing.batch + plane % channels * p.indexing.channel


cdef inline int64_t tile_base(const Pool *p, const Tile *tile) noexcept nogil:
    """Return the index of a tile's first element.

    Channels first, the plane and the column are left out.
    """
    cdef const Problem *problem = &p.frame.problem
    cdef const Indexing *indexing = &p.indexing
    cdef Py_ssize_t lead = tile.lead, axis = problem.leads, at
    cdef int64_t base = indexing.base + tile.row_lo * indexing.row
    while axis > 0:
        axis -= 1
        real_taps(&problem.lead[axis], lead % problem.lead[axis].out, &at)
        lead //= problem.lead[axis].out
        base += at * indexing.lead[axis]
    if problem.channels_last:
        base += tile.batch * indexing.batch + tile.channel * indexing.channel
        base += tile.col_lo * indexing.col
    return base


cdef inline Py_ssize_t index_of_position(const Pool *p, key_t place) noexcept nogil:
    """Return a position, row-major from the tile's first element, in the strides of the index."""
    cdef const Problem *problem = &p.frame.problem
    cdef uint64_t at = <uint64_t>place
    cdef Py_ssize_t axis = problem.leads, index
    if key_t is int16_t:
        at = <uint16_t>place
    elif key_t is int32_t:
        at = <uint32_t>place
    index = <Py_ssize_t>(at % <uint64_t>problem.cols.size) * p.indexing.col
    at //= <uint64_t>problem.cols.size
    index += <Py_ssize_t>(at % <uint64_t>problem.rows.size) * p.indexing.row
    at //= <uint64_t>problem.rows.size
    while axis > 0:
        axis -= 1
        index += <Py_ssize_t>(at % <uint64_t>problem.lead[axis].size) * p.indexing.lead[axis]
        at //= <uint64_t>problem.lead[axis].size
    return index
