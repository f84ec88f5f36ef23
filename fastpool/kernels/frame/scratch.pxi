# Scratch: one block of memory per call, cut into equal parts per thread, and each part into areas.

cdef inline void split_scratch(Areas *areas, const Pool *p, char *area) noexcept nogil:
    cdef char **each = <char **>areas
    cdef int i
    for i in range(AREAS):
        each[i] = area + p.offsets[i]


cdef inline Py_ssize_t chain_elements(const Pool *p, const Window *w, Py_ssize_t count, Py_ssize_t element,
                                      bint in_keys) noexcept nogil:
    """Scratch of a pass over long windows: rows of pairs; a vector per window and copied rows; rows of two steps."""
    cdef Py_ssize_t length = ((count - 1) * w.stride + w.extent) * VEC_BYTES, nbytes
    if p.with_indices:
        return imax(CHAIN_BYTES, 2 * length) // element
    nbytes = imax(CHAIN_BYTES, imin(w.kernel, count) * VEC_BYTES)
    if in_keys or not VEC_MASKS:
        nbytes += imax(COPIED_BYTES, length)
    if w.steps == 2:
        nbytes = imax(nbytes, 4 * length)
    return nbytes // element


cdef void plan_scratch(Pool *p) noexcept nogil:
    """Sizes of the scratch areas, for the largest tile."""
    cdef Py_ssize_t element = p.key_bytes if p.with_indices else p.size, lanes = VEC_BYTES // element
    cdef Py_ssize_t length = (p.tile_rows - 1) * p.rows.stride + p.rows.extent
    cdef Py_ssize_t span = (p.tile_cols - 1) * p.cols.stride + p.cols.extent
    cdef Py_ssize_t rows = imin(length, p.rows.size), cols = imin(span, p.cols.size)
    cdef Py_ssize_t n = p.tile_channels, pitch = round_up(lanes + span, lanes)
    cdef Py_ssize_t in_keys = p.keyed or p.code == F32 or p.code == F64, out_row = p.tile_cols * n
    cdef Py_ssize_t size[AREAS]
    cdef Py_ssize_t i, slabs = 1
    memset(size, 0, sizeof(size))
    if p.strategy == RUNNING_MAXIMA:
        p.scratch = plan_far_scratch(p) + 2 * REDZONE
        for i in range(AREAS):          # (one area)
            p.offsets[i] = REDZONE if i == 0 else p.scratch
        return
    if p.rows.steps > 1 and p.strategy != PADDED_PLANES:
        size[9] = chain_elements(p, &p.rows, p.tile_rows, element, in_keys)
    if p.channels_last and p.cols.steps > 1:
        size[9] = imax(size[9], chain_elements(p, &p.cols, p.tile_cols, element, False))
    if p.strategy == TAPS:
        # the input under a tile, where it is not read in place; results in keys
        for i in range(p.leads):
            slabs *= p.lead[i].kernel
        size[0] = p.tile_planes * slabs * rows * (cols * n if p.channels_last else pitch)
        size[7] = p.tile_planes * p.tile_rows * out_row
    elif p.with_indices:
        # keys of the input: as many rows as one column pass takes, and one more: a chain takes them as one, and its taps
        # go on behind the last
        size[0] = cols * n if p.channels_last else (PAIR_ROWS + 1) * pitch
        size[1] = size[2] = p.tile_rows * out_row if p.leads else 0
        size[3] = size[4] = rows * out_row
        size[5] = size[6] = (PAIR_ROWS + 1) * pitch if not p.channels_last and (p.cols.steps > 1 or p.cols.stride > 2) else 0
        size[7] = size[8] = p.tile_rows * out_row
        size[10] = cols * n if p.channels_last else pitch + 4 * lanes
    else:
        # of leading axes the maximum, of keys all that no chain begins with
        size[0] = rows * cols * n if p.leads or (in_keys and (p.rows.steps == 1 or p.strategy != BANDS)) else 0
        size[1] = size[0] if p.leads and in_keys else 0
        if p.strategy == PADDED_PLANES:            # (the last plane's taps look at what would be the next)
            size[3] = p.tile_planes * padded_plane(&p.rows, &p.cols) + p.rows.extent * span + p.cols.extent + lanes
        elif p.channels_last:
            size[3] = 0 if p.direct else p.tile_rows * (round_up(span * n, lanes) + lanes if p.pixels_as_row else cols * n)
        else:
            size[3] = p.tile_planes * p.tile_rows * pitch + pitch
            if p.cols.steps > 1 or not shuffled_stride(&p.cols):
                p.in_place = size[3] * element > DENSE_BYTES
                size[5] = 0 if p.in_place else size[3]
        size[7] = pooled_rows(p) * out_row if in_keys else 0
        if p.pixels_as_row and p.cols.stride > 1:
            size[7] = imax(size[7], span * n + lanes)
    p.scratch = REDZONE
    for i in range(AREAS):
        p.offsets[i] = p.scratch
        p.scratch += round_up(size[i] * element, 64) + (SLACK if size[i] else 0) + REDZONE


# Scratch beyond the stack: one block outlives a call, as mapping fresh pages would cost more than a small pooling. Calls take
# it, and put theirs in its place, by an exchange, as not all of them hold the GIL. A block's first word holds its size.
cdef extern from *:
    """
    #define exchange(place, block) __atomic_exchange_n((place), (block), __ATOMIC_ACQ_REL)
    """
    size_t *exchange(size_t **, size_t *) noexcept nogil


cdef size_t *kept = NULL


cdef size_t *take_scratch(size_t nbytes) noexcept nogil:
    cdef size_t *block = NULL
    if nbytes <= KEEP_BYTES:
        block = exchange(&kept, NULL)
        if block != NULL and block[0] >= nbytes:
            return block
        free(block)
    block = <size_t *>malloc(nbytes)
    if block != NULL:
        block[0] = nbytes
    return block


cdef void give_scratch(size_t *block) noexcept nogil:
    free(exchange(&kept, block) if block[0] <= KEEP_BYTES else block)
