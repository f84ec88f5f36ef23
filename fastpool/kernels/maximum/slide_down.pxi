# Takes:   stride 1 along both axes, windows to 8 x 8, tiles of at most 8 vectors a row; needs masks
# Reads:   the input in place; lanes outside are replaced as they are loaded
# Scratch: none
# Wins:    float32 1x192x28x28 k3 99 -> 82 us, 1x512x40x40 k5 855 -> 606; uint8 306 -> 139 (AVX-512).
#          AVX2 loses with blends for masks (1x256x20x20 k5 124 -> 235), so it declines there.
#          Windows to 16 taps lose: 1x256x20x20 k13 float32 304 -> 604, uint8 163 -> 273.
#
# A column of vectors slides down the rows. The windows of one row are unaligned loads. The last rows
# stay in registers.

cdef inline vec_t max_across(const number *src, Py_ssize_t row, const Source *s, const Py_ssize_t *taps, Py_ssize_t ntaps,
                         const byte_mask *masks, vec_flag *nan) noexcept nogil:
    """Windows along one row, one per lane."""
    cdef const number *at = src + row * s.row
    cdef vec_t best, last
    cdef Py_ssize_t t
    if not 0 <= row < s.rows:
        return vec_lowest(src)
    best = load_tap(at + taps[0], mask_of(masks, 0))
    last = load_tap(at + taps[ntaps - 1], mask_of(masks, ntaps - 1))
    for t in range(1, ntaps - 1):
        best = vec_max(best, load_tap(at + taps[t], mask_of(masks, t)), src)
    nan[0] = nan_or(nan[0], best, last, src)
    return vec_max(best, last, src)


cdef struct FewTaps:            # a row's three or five taps, kept in registers
    Py_ssize_t a, b, c, d, e
    byte_mask mask_a, mask_b, mask_c, mask_d, mask_e


cdef inline vec_t max_across_few(const number *at, const FewTaps *f, bint five, bint masked, vec_flag *nan) noexcept nogil:
    cdef vec_t best = load_tap(at + f.a, &f.mask_a if masked else NULL), last = load_tap(at + f.c, &f.mask_c if masked else NULL)
    best = vec_max(best, load_tap(at + f.b, &f.mask_b if masked else NULL), at)
    if five:
        best = vec_max(best, vec_max(load_tap(at + f.d, &f.mask_d if masked else NULL),
                                     load_tap(at + f.e, &f.mask_e if masked else NULL), at), at)
    nan[0] = nan_or(nan[0], best, last, at)
    return vec_max(best, last, at)


cdef inline void slide_square(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t row, Py_ssize_t step, const Source *s,
                           Py_ssize_t count, const FewTaps *few, bint five, bint masked, Py_ssize_t nbytes, vec_flag *nan) noexcept nogil:
    """As `slide`, for 3 x 3 and 5 x 5 windows, two outputs at a time. The last row of the first window is an element's."""
    cdef FewTaps f = few[0]
    cdef Py_ssize_t jump = step * s.row, i, real
    cdef const number *at = src + row * s.row
    cdef vec_t a, b, c, d, e, both, outside = vec_lowest(src)
    a = b = c = d = outside
    for i in range(4 if five else 2):
        if five:
            a, b = b, c
        c, d = d, max_across_few(at, &f, five, masked, nan) if 0 <= row < s.rows else outside
        at, row = at + jump, row + step
    real = imin(count, (s.rows - 1 - row) // step + 1) if row < s.rows else 0       # outputs whose last row is there
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


cdef void slide(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t row, Py_ssize_t step, const Source *s,
                Py_ssize_t kernel, Py_ssize_t count, const Py_ssize_t *taps, Py_ssize_t ntaps, const byte_mask *masks,
                Py_ssize_t nbytes, vec_flag *nan) noexcept nogil:
    """`count` windows of `kernel` rows, `step` apart, each one such step below the last; the first starts in `row`."""
    cdef vec_t ring[SMALL_TAPS]
    cdef vec_t best
    cdef Py_ssize_t i, t
    for i in range(kernel - 1):
        ring[i] = max_across(src, row + i * step, s, taps, ntaps, masks, nan)
    row += (kernel - 1) * step
    for i in range(count):
        ring[(i + kernel - 1) % SMALL_TAPS] = max_across(src, row, s, taps, ntaps, masks, nan)
        best = ring[i % SMALL_TAPS]
        for t in range(1, kernel):
            best = vec_max(best, ring[(i + t) % SMALL_TAPS], src)
        store_lanes(dst, best, nbytes)
        dst, row = dst + dst_step, row + step


cdef vec_flag pool_slide_down(number *dst, Py_ssize_t dst_row, Py_ssize_t dst_plane, const number *src, const Source *s,
                        Py_ssize_t planes, const Pool *p, const Tile *tile) noexcept nogil:
    """A tile at stride 1; src is its first element."""
    cdef Py_ssize_t taps[SMALL_TAPS]
    cdef byte_mask masks[SMALL_TAPS]
    cdef Py_ssize_t size = sizeof(number), lanes = VEC_BYTES // size, n = tile.cols, ntaps = p.cols.kernel
    cdef Py_ssize_t start = tile.col - p.cols.begin - tile.col_lo, top = tile.row - p.rows.begin - tile.row_lo
    cdef Py_ssize_t o = 0, t, col, nbytes, plane, residue, count, step = p.rows.dilation
    cdef number *to
    cdef const number *at
    cdef vec_flag nan = flag_none()
    cdef bint inner, five = ntaps == 5, square = ntaps == p.rows.kernel and (ntaps == 3 or five) and top + (ntaps - 1) * step >= 0
    cdef FewTaps few
    # A NaN survives as the last operand of a maximum. Every column is the last tap of some output, or met by the tap that
    # stands at the first column in output 0 (`tracks_every_nan`): with that one in the last place but one a single comparison finds
    # every NaN.
    for t in range(ntaps):
        taps[t] = t * p.cols.dilation
    if ntaps > 2:
        t = imin(imax(p.cols.begin, 0) // p.cols.dilation, ntaps - 2)
        taps[t], taps[ntaps - 2] = taps[ntaps - 2], taps[t]
    while o < n:
        if n >= lanes:
            o = imin(o, n - lanes)
        nbytes = imin(lanes, n - o) * size
        inner = o > 0
        for t in range(ntaps):
            col = start + o + taps[t]
            masks[t] = vec_mask_range(-col * size, (s.cols - col) * size)
            inner = inner and col >= 0 and col + lanes <= s.cols
        few.a, few.b, few.c = taps[0], taps[1], taps[ntaps - 1]
        few.mask_a, few.mask_b, few.mask_c = masks[0], masks[1], masks[ntaps - 1]
        if five:
            few.b, few.d, few.e, few.mask_b, few.mask_d, few.mask_e = taps[1], taps[2], taps[3], masks[1], masks[2], masks[3]
        for plane in range(planes):
            for residue in range(imin(step, tile.rows)):        # dilated rows: as many slides, in turns
                to = dst + plane * dst_plane + residue * dst_row + o
                at = src + plane * s.plane + start + o
                count = ceil_div(tile.rows - residue, step)
                if square and five:
                    if inner:
                        slide_square(to, dst_row * step, at, top + residue, step, s, count, &few, True, False, VEC_BYTES, &nan)
                    else:
                        slide_square(to, dst_row * step, at, top + residue, step, s, count, &few, True, True, nbytes, &nan)
                elif square:
                    if inner:
                        slide_square(to, dst_row * step, at, top + residue, step, s, count, &few, False, False, VEC_BYTES, &nan)
                    else:
                        slide_square(to, dst_row * step, at, top + residue, step, s, count, &few, False, True, nbytes, &nan)
                else:
                    slide(to, dst_row * step, at, top + residue, step, s, p.rows.kernel, count, taps, ntaps,
                          NULL if inner else masks, nbytes, &nan)
        o += lanes
    return nan


cdef inline bint tracks_every_nan(const Pool *p) noexcept nogil:
    """Does pool_slide_down see every NaN? It looks at two taps, whose vectors have to meet every column of the windows."""
    cdef const Window *cols = &p.cols
    cdef Py_ssize_t track_nan = imin(imax(cols.begin, 0) // cols.dilation, cols.kernel - 2)
    if (p.code != F32 and p.code != F64) or p.keyed or cols.kernel <= 2:
        return True
    return p.col_tiles == 1 and (cols.kernel - 1 - track_nan) * cols.dilation <= imax(cols.out, VEC_BYTES // p.size)
