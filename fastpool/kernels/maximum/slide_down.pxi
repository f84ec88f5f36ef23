# Takes:   3 x 3 and 5 x 5 at stride 1, tiles of at most 8 vectors a row; needs masks
# Reads:   the input in place; lanes outside are replaced as they are loaded
# Scratch: none; keys of a tile with a NaN (SLAB, POOLED)
# Wins:    float32 1x192x28x28 k3 99 -> 82 us, 1x512x40x40 k5 855 -> 606; uint8 306 -> 139
#          (AVX-512). AVX2 loses with blends for masks (1x256x20x20 k5 124 -> 235), so it declines
#          there. Windows of 1 x 3 to 5 x 4 lose (0.75 to 0.95; 30 layers each, AVX-512), except
#          those of bytes with padding (1.2).
#
# A column of vectors slides down the rows. The windows of one row are unaligned loads. The last
# rows stay in registers.

cdef enum:
    SMALL_TAPS = 5          # along one axis, at most


cdef struct Slide:          # a sequence of windows, each one step below the last
    Py_ssize_t row          # the first row of the first window
    Py_ssize_t step         # rows
    Py_ssize_t count        # windows
    Py_ssize_t target       # elements from one output to the next
    Py_ssize_t nbytes       # of each output


cdef struct FewTaps:        # three or five taps of a row, kept in registers
    Py_ssize_t a, b, c, d, e
    byte_mask mask_a, mask_b, mask_c, mask_d, mask_e


cdef inline vec_t max_across_few(const number *at, const FewTaps *f, bint five, bint masked,
                                 vec_flag *nan) noexcept nogil:
    cdef vec_t best = load_tap(at + f.a, &f.mask_a if masked else NULL)
    cdef vec_t last = load_tap(at + f.c, &f.mask_c if masked else NULL)
    best = vec_max(best, load_tap(at + f.b, &f.mask_b if masked else NULL), at)
    if five:
        best = vec_max(best, vec_max(load_tap(at + f.d, &f.mask_d if masked else NULL),
                                     load_tap(at + f.e, &f.mask_e if masked else NULL), at), at)
    nan[0] = nan_or(nan[0], best, last, at)
    return vec_max(best, last, at)


cdef inline void slide_square(number *dst, const number *src, const Source *s, const Slide *way,
                              const FewTaps *few, bint five, bint masked,
                              vec_flag *nan) noexcept nogil:
    """Pool windows of 3 x 3 or 5 x 5, two outputs at a time.

    The last row of the first window is an element's.
    """
    cdef FewTaps f = few[0]
    cdef Py_ssize_t step = way.step, count = way.count, row = way.row, dst_step = way.target
    cdef Py_ssize_t nbytes = way.nbytes if masked else VEC_BYTES, jump = step * s.row, i, real
    cdef const number *at = src + row * s.row
    cdef vec_t a, b, c, d, e, both, outside = vec_lowest(src)
    a = b = c = d = outside
    for i in range(4 if five else 2):
        if five:
            a, b = b, c
        c, d = d, max_across_few(at, &f, five, masked, nan) if 0 <= row < s.rows else outside
        at, row = at + jump, row + step
    # the outputs whose last row is there
    real = imin(count, (s.rows - 1 - row) // step + 1) if row < s.rows else 0
    i = 0
    while True:
        # windows: (a b) c d e
        e = max_across_few(at, &f, five, masked, nan) if i < real else outside
        both = vec_max(d, e, src)
        if five:
            both = vec_max(both, vec_max(b, c, src), src)
            store_lanes(dst, vec_max(both, a, src), nbytes)
            a, b = c, d
        else:
            store_lanes(dst, vec_max(both, c, src), nbytes)
        i += 1
        if i == count:
            return
        c, d = e, max_across_few(at + jump, &f, five, masked, nan) if i < real else outside
        store_lanes(dst + dst_step, vec_max(both, d, src), nbytes)
        i += 1
        if i == count:
            return
        at, dst = at + 2 * jump, dst + 2 * dst_step


cdef vec_flag pool_slide_down(number *dst, const Target *to, const number *src, const Source *s,
                              const Work *work) noexcept nogil:
    """Pool a tile; `src` is its first element."""
    cdef const Tile *tile = work.tile
    cdef const Window *rows = &work.pool.frame.problem.rows
    cdef const Window *cols = &work.pool.frame.problem.cols
    cdef Taps taps
    cdef byte_mask masks[SMALL_TAPS]
    cdef Py_ssize_t size = sizeof(number), lanes = VEC_BYTES // size, n = tile.cols
    cdef Py_ssize_t start = tile.col - cols.begin - tile.col_lo
    cdef Py_ssize_t top = tile.row - rows.begin - tile.row_lo
    cdef Py_ssize_t count = cols.kernel, o = 0, t, col, plane, residue
    cdef number *out
    cdef const number *at
    cdef vec_flag nan = flag_none()
    cdef bint inner, five = count == 5
    cdef FewTaps few
    cdef Slide way
    way.step, way.target = rows.dilation, to.row * rows.dilation
    # A NaN survives as the last operand of a maximum. Every column is the last tap of some output,
    # or is met by the tap that reads the first column for output 0 (`tracks_every_nan`). With that
    # tap in the last place but one, a single comparison finds every NaN.
    set_taps(&taps, count, cols.dilation)
    t = imin(imax(cols.begin, 0) // cols.dilation, count - 2)
    taps.offsets[t], taps.offsets[count - 2] = taps.offsets[count - 2], taps.offsets[t]
    while o < n:
        if n >= lanes:
            o = imin(o, n - lanes)
        way.nbytes = imin(lanes, n - o) * size
        inner = o > 0
        for t in range(count):
            col = start + o + taps.offsets[t]
            masks[t] = vec_mask_range(-col * size, (s.cols - col) * size)
            inner = inner and col >= 0 and col + lanes <= s.cols
        few.a, few.b, few.c = taps.offsets[0], taps.offsets[1], taps.offsets[count - 1]
        few.mask_a, few.mask_b, few.mask_c = masks[0], masks[1], masks[count - 1]
        if five:
            few.d, few.e = taps.offsets[2], taps.offsets[3]
            few.mask_d, few.mask_e = masks[2], masks[3]
        for plane in range(work.planes):
            for residue in range(imin(way.step, tile.rows)):    # dilated: a slide per residue
                out = dst + plane * to.plane + residue * to.row + o
                at = src + plane * s.plane + start + o
                way.row, way.count = top + residue, ceil_div(tile.rows - residue, way.step)
                if five and inner:
                    slide_square(out, at, s, &way, &few, True, False, &nan)
                elif five:
                    slide_square(out, at, s, &way, &few, True, True, &nan)
                elif inner:
                    slide_square(out, at, s, &way, &few, False, False, &nan)
                else:
                    slide_square(out, at, s, &way, &few, False, True, &nan)
        o += lanes
    return nan
