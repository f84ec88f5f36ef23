# Takes:   whole contiguous planes of a few vectors, windows of at most 32 taps; needs masks
# Reads:   the input in place; a mask per tap says which lanes are inside their plane
# Scratch: keys of a tile with a NaN (SLAB, POOLED); a band where planes are not contiguous. The
#          masks belong to the pooling, at most 4096 of them.
# Wins:    256x64x4x4 k2 s2 float32 1280 -> 373 us, uint8 1211 -> 127; 1x1024x7x7 k2 float32
#          90 -> 35 (AVX-512). Larger planes lose (1x256x13x13 k3 float32 33 -> 43), so
#          _running/strategies.py declines them.
#
# All planes are one row. A window starts at each element. The windows that are outputs are stored.

cdef enum:
    FLAT_TAPS = 32
    FLAT_MASKS = 4096


cdef struct FlatPlanes:     # the masks of a pooling, and where its taps are
    Py_ssize_t taps                 # all but the element itself
    Py_ssize_t period               # vectors until the masks repeat
    bint all                        # every element is an output
    Py_ssize_t offsets[FLAT_TAPS]
    byte_mask *masks                # per vector: which lanes have each tap, which are outputs


cdef vec_flag pool_flat_planes(max_t *dst, const Target *to, const max_t *src, const Source *s,
                               const Work *work) noexcept nogil:
    """Pool whole planes as one row."""
    cdef const FlatPlanes *flat = work.pool.flat
    cdef const Problem *p = &work.pool.frame.problem
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(max_t), i = 0, t
    cdef Py_ssize_t n = work.planes * p.rows.size * p.cols.size     # elements in all
    cdef const max_t *stop = dst + work.planes * p.rows.out * p.cols.out
    cdef const byte_mask *masks = flat.masks
    cdef const byte_mask *end = masks + flat.period * (flat.taps + 1)
    cdef byte_mask there
    cdef vec_t best, tap, outside = vec_lowest(src)
    cdef vec_flag nan = flag_none()
    while i < n:
        there = vec_mask_range(0, (n - i) * <Py_ssize_t>sizeof(max_t))
        best = vec_masked_load_or(src + i, there, outside)
        nan = nan_or(nan, best, best, src)
        for t in range(flat.taps):
            tap = vec_masked_load_or(src + i + flat.offsets[t], masks[t] & there, outside)
            best = vec_max(best, tap, src)
        if not flat.all:
            dst += vec_compress_store(dst, best, masks[flat.taps] & there, sizeof(max_t),
                                      dst + lanes <= stop)
        else:
            store_lanes(dst + i, best, imin(lanes, n - i) * <Py_ssize_t>sizeof(max_t))
        masks += flat.taps + 1
        if masks == end:
            masks = flat.masks
        i += lanes
    return nan


cdef Py_ssize_t flat_period(const Problem *p) noexcept nogil:
    """Return after how many vectors the masks repeat."""
    cdef Py_ssize_t period = p.rows.size * p.cols.size, lanes = VEC_BYTES // p.size
    while lanes > 1 and period % 2 == 0:
        lanes, period = lanes // 2, period // 2
    return period


cdef bint plan_flat_planes(Pool *p) noexcept nogil:
    """Make the masks. Return False if there is no memory."""
    cdef const Window *rows = &p.frame.problem.rows
    cdef const Window *cols = &p.frame.problem.cols
    cdef Py_ssize_t size = p.frame.problem.size, lanes = VEC_BYTES // size
    cdef Py_ssize_t v, l, r, c, t, i, j, row, col
    cdef FlatPlanes *flat = <FlatPlanes *>malloc(sizeof(FlatPlanes))
    cdef byte_mask *masks
    cdef byte_mask bits
    p.flat = flat
    if flat == NULL:
        return False
    flat.period, flat.taps = flat_period(&p.frame.problem), rows.kernel * cols.kernel - 1
    flat.all = rows.out == rows.size and cols.out == cols.size
    flat.masks = masks = <byte_mask *>malloc(flat.period * (flat.taps + 1) * sizeof(byte_mask))
    if masks == NULL:
        return False
    memset(masks, 0, flat.period * (flat.taps + 1) * sizeof(byte_mask))
    for v in range(flat.period):
        for l in range(lanes):
            bits = vec_mask_range(l * size, (l + 1) * size)
            i = (v * lanes + l) % (rows.size * cols.size)
            r, c = i // cols.size, i % cols.size
            if is_start(rows, r) and is_start(cols, c):
                masks[flat.taps] |= bits
            t = 0
            for i in range(rows.kernel):
                for j in range(cols.kernel):
                    row, col = i * rows.dilation - rows.begin, j * cols.dilation - cols.begin
                    if row == 0 and col == 0:       # the element itself
                        continue
                    flat.offsets[t] = row * cols.size + col
                    if 0 <= r + row < rows.size and 0 <= c + col < cols.size:
                        masks[t] |= bits
                    t += 1
        masks += flat.taps + 1
    return True


cdef inline bint is_start(const Window *w, Py_ssize_t element) noexcept nogil:
    """Is the window at this element an output?"""
    return element % w.stride == 0 and element // w.stride < w.out


cdef void free_flat_planes(FlatPlanes *flat) noexcept nogil:
    if flat != NULL:
        free(flat.masks)
    free(flat)
