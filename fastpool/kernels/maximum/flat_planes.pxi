# Takes:   whole contiguous planes of a few vectors, windows of at most 32 taps; needs masks
# Reads:   the input in place; a mask per tap says which lanes are inside their plane
# Scratch: none; the masks belong to the pooling, at most 4096 of them
# Wins:    256x64x4x4 k2 s2 float32 1280 -> 373 us, uint8 1211 -> 127; 1x1024x7x7 k2 float32 90 -> 35
#          (AVX-512). Larger planes lose (1x256x13x13 k3 float32 33 -> 43): flat_planes_pay declines them.
#
# All planes are one row. A window starts at each element, and those that are outputs are stored.

cdef vec_flag pool_flat_planes(number *dst, const number *stop, const number *src, Py_ssize_t n, const Pool *p) noexcept nogil:
    """Planes of n elements in all as one row, a window at each element; those that are outputs are stored up to `stop`."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), i = 0, t
    cdef const byte_mask *masks = p.flat_masks
    cdef const byte_mask *end = masks + p.flat_period * (p.flat_taps + 1)
    cdef byte_mask there
    cdef vec_t best
    cdef vec_flag nan = flag_none()
    while i < n:
        there = vec_mask_range(0, (n - i) * <Py_ssize_t>sizeof(number))
        best = vec_masked_load_or(src + i, there, vec_lowest(src))
        nan = nan_or(nan, best, best, src)
        for t in range(p.flat_taps):
            best = vec_max(best, vec_masked_load_or(src + i + p.flat_offsets[t], masks[t] & there, vec_lowest(src)), src)
        if not p.flat_all:
            dst += vec_compress_store(dst, best, masks[p.flat_taps] & there, sizeof(number), dst + lanes <= stop)
        else:
            store_lanes(dst + i, best, imin(lanes, n - i) * <Py_ssize_t>sizeof(number))
        masks += p.flat_taps + 1
        if masks == end:
            masks = p.flat_masks
        i += lanes
    return nan


cdef bint flat_planes_pay(Pool *p, Strategy strategy) noexcept nogil:
    """Does it take fewer cycles to pool planes as one long row? The costs of a vector were measured."""
    cdef const Window *rows = &p.rows
    cdef const Window *cols = &p.cols
    cdef const Window *w
    cdef Py_ssize_t lanes = VEC_BYTES // p.size, elements = rows.size * cols.size, taps = rows.kernel * cols.kernel
    cdef Py_ssize_t i, t = lanes, flat, other
    if p.leads or p.row_tiles * p.col_tiles > 1 or taps > FLAT_TAPS or elements > FLAT_MASKS:
        return False
    for i in range(2):                  # each output stands at an element of its own, which is one of its taps
        w = cols if i else rows
        if (w.out - 1) * w.stride >= w.size or w.begin < 0 or w.begin % w.dilation or w.begin // w.dilation >= w.kernel:
            return False
    p.flat_period = elements
    while t > 1 and p.flat_period % 2 == 0:
        t, p.flat_period = t // 2, p.flat_period // 2
    p.flat_taps = taps - 1
    p.flat_all = rows.out == rows.size and cols.out == cols.size
    if p.flat_period * taps > FLAT_MASKS:
        return False
    flat = ceil_div(elements, lanes) * (4 * taps + (0 if p.flat_all else 8 if p.size >= 4 else 20))
    other = ceil_div(cols.out, lanes) * rows.out * (2 * rows.kernel + 2 * cols.kernel + 8) + 100
    return flat < other


cdef void fill_flat_masks(Pool *p) noexcept nogil:
    cdef const Window *rows = &p.rows
    cdef const Window *cols = &p.cols
    cdef Py_ssize_t lanes = VEC_BYTES // p.size, v, l, r, c, t, i, j, row, col
    cdef byte_mask *masks = p.flat_masks
    cdef byte_mask bits
    memset(masks, 0, p.flat_period * (p.flat_taps + 1) * sizeof(byte_mask))
    for v in range(p.flat_period):
        for l in range(lanes):
            bits = vec_mask_range(l * p.size, (l + 1) * p.size)
            i = (v * lanes + l) % (rows.size * cols.size)
            r, c = i // cols.size, i % cols.size
            if r % rows.stride == 0 and r // rows.stride < rows.out and c % cols.stride == 0 and c // cols.stride < cols.out:
                masks[p.flat_taps] |= bits
            t = 0
            for i in range(rows.kernel):
                for j in range(cols.kernel):
                    row, col = i * rows.dilation - rows.begin, j * cols.dilation - cols.begin
                    if row == 0 and col == 0:       # the element itself
                        continue
                    p.flat_offsets[t] = row * cols.size + col
                    if 0 <= r + row < rows.size and 0 <= c + col < cols.size:
                        masks[t] |= bits
                    t += 1
        masks += p.flat_taps + 1
