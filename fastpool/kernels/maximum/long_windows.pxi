# row_pass under long windows: running maxima between middles (van Herk, Gil and Werman).
#
# Every element is read twice, however long the window is. Part of the strategies "bands" and "padded".
#
# Takes:   axes that the schedule split into several steps
# Reads:   the input in place; rows that become keys, or have no vector of their own, from a copy
# Scratch: one vector per window between two middles (chain), copied rows after it
# Wins:    channels last 1x260x260x16 float32, k63 over k7: 5.0 -> 1.6; dilated 2: 20 -> 3.2.
#          Narrow rows under windows of two steps keep the chain: 1x512x40x40 k9 uint8, 366 us by
#          the chain, 749 by running maxima.

cdef void chain_row_pass(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step, Py_ssize_t origin,
                         const Window *w, Py_ssize_t first, Py_ssize_t count, Py_ssize_t n, number *chain,
                         vec_flag *nan) noexcept nogil:
    """The same for windows of two steps over narrow rows: the first step lays rows side by side in `chain`."""
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef Py_ssize_t lo = first * w.stride - w.begin, rows = (count - 1) * w.stride + w.extent - w.lasts[0]
    cdef Py_ssize_t begin = imin(rows, imax(0, -lo)), end = imax(begin, imin(rows, w.size - w.lasts[0] - lo))    # all taps inside
    cdef Py_ssize_t r = 0, at, real
    step_taps(taps, w, 0, src_step)
    while r < rows:
        if r == begin and end > begin:
            window_rows(chain + r * n, n, src + (lo + r - origin) * src_step, src_step, taps, w.taps[0], end - begin, n, nan)
            r = end
            continue
        at = lo + r
        real = w.taps[0]                # a few taps: a division would take longer than looking at each
        while real > 0 and at < 0:
            at, real = at + w.shifts[0], real - 1
        while real > 0 and at + (real - 1) * w.shifts[0] >= w.size:
            real -= 1
        if real == 0:
            fill(chain + r * n, n, <number>lowest(chain))
        else:
            window_rows(chain + r * n, n, src + (at - origin) * src_step, 0, taps, real, 1, n, nan)
        r += 1
    step_taps(taps, w, 1, n)
    window_rows(dst, dst_step, <const number *>chain, w.stride * n, taps, w.taps[1], count, n, NULL)


cdef void long_row_pass(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step, Py_ssize_t origin,
                        const Window *w, Py_ssize_t first, Py_ssize_t count, Py_ssize_t n, number *chain,
                        vec_flag *nan, const Keys *keys) noexcept nogil:
    """The same for long windows, at a cost that does not grow with them (see `van_herk`), a few columns at a time; narrow rows
    are faster by two steps where these suffice.

    WindowRows that are to become keys, or are shorter than a vector where there are no masks, are copied first.
    """
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef Py_ssize_t lo = first * w.stride - w.begin, length = (count - 1) * w.stride + w.extent
    cdef Py_ssize_t begin = imax(lo, 0), end = imin(lo + length, w.size), slots = imin(w.kernel, count)
    cdef Py_ssize_t block = n, start = 0, width, pitch, i, r
    cdef bint copied = keys != NULL or (not VEC_MASKS and n < lanes), wide = slots * 4 * VEC_BYTES <= CHAIN_BYTES
    cdef number *rows = chain + imax(CHAIN_BYTES, slots * VEC_BYTES) // <Py_ssize_t>sizeof(number)
    if w.steps == 2 and n < 4 * lanes and keys == NULL:
        chain_row_pass(dst, dst_step, src, src_step, origin, w, first, count, n, chain, nan)
        return
    if nan != NULL and has_nans(src) and n > 8 * lanes and not copied:
        # Whole rows first: memory is slow to give a tile in strips of a few vectors.
        track_nan_rows(src + (begin - origin) * src_step, src_step, end - begin, n, nan)
        nan = NULL
    if copied:
        block = imax(lanes, COPIED_BYTES // VEC_BYTES // length * lanes)
    while start < n:
        width = imin(block, n - start)
        if copied:
            pitch = round_up(width, lanes)
            if keys != NULL:
                keys.load(rows, pitch, element(src, (begin - origin) * src_step + start, keys), src_step, end - begin, width, keys.rule)
            else:
                for r in range(end - begin):
                    fill(rows + r * pitch, lanes, <number>lowest(dst))
                    memcpy(rows + r * pitch, src + (begin + r - origin) * src_step, n * sizeof(number))
            van_herk_rows(dst + start, dst_step, <const number *>rows, pitch, begin, w, first, count, width, True, wide, chain, nan)
        else:
            van_herk_rows(dst, dst_step, src, src_step, origin, w, first, count, n, False, wide, chain, nan)
        start += block


cdef void van_herk_rows(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step, Py_ssize_t origin, const Window *w,
                    Py_ssize_t first, Py_ssize_t count, Py_ssize_t n, bint padded, bint wide, number *slots,
                    vec_flag *nan) noexcept nogil:
    """Outputs first ... first + count of one axis, n columns of them; `padded`: whole vectors may be read."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), i, turn, turns = 1, a = w.stride
    cdef vec_flag seen = flag_none()
    cdef bint four, tracking = nan != NULL and has_nans(src)
    # Windows whose taps are the same elements follow each other in every `turns`th output.
    if w.dilation > 1:
        turns = w.dilation
        while a > 0:
            turns, a = a, turns % a
        turns = w.dilation // turns
    for turn in range(imin(turns, count)):
        i = 0
        while i < n:
            four = wide and i + 4 * lanes <= n
            if not four and n >= lanes:
                i = imin(i, n - lanes)
            van_herk(dst + turn * dst_step + i, dst_step * turns, src + i, src_step, origin, w, first + turn, turns,
                 ceil_div(count - turn, turns), four, n < lanes and not padded, imin(lanes, n - i) * <Py_ssize_t>sizeof(number), tracking,
                 slots, &seen)
            i += 4 * lanes if four else lanes
    if tracking:
        nan[0] = flag_or(nan[0], seen)


cdef struct FourVectors:
    vec_t w, x, y, z


cdef inline void max_update(FourVectors *best, const number *at, bint wide, bint masked, Py_ssize_t nbytes, bint tracking,
                      vec_flag *nan) noexcept nogil:
    """The maximum of what was taken and one more row."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef FourVectors more
    more.w = vec_load_part(at, nbytes) if masked else vec_load(at)
    if wide:
        more.x, more.y, more.z = vec_load(at + lanes), vec_load(at + 2 * lanes), vec_load(at + 3 * lanes)
        if tracking:
            nan[0] = nan_or(nan_or(nan[0], more.w, more.x, at), more.y, more.z, at)
        best.x, best.y, best.z = vec_max(best.x, more.x, at), vec_max(best.y, more.y, at), vec_max(best.z, more.z, at)
    elif tracking:
        nan[0] = nan_or(nan[0], more.w, more.w, at)
    best.w = vec_max(best.w, more.w, at)


cdef inline void van_herk_body(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step, Py_ssize_t origin,
                           const Window *w, Py_ssize_t first, Py_ssize_t turns, Py_ssize_t count, bint wide, bint masked,
                           Py_ssize_t nbytes, bint tracking, number *slots, vec_flag *nan) noexcept nogil:
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), slot = 4 * lanes if wide else lanes
    cdef Py_ssize_t stride = w.stride, step = w.dilation * src_step         # in taps; in elements
    cdef Py_ssize_t top = first * w.stride - w.begin
    cdef Py_ssize_t lo = imax(-top, 0), hi = imax(w.size - top, 0)          # taps that are elements of the input
    cdef Py_ssize_t i, j, from_j = 0, to_j, middle = 0
    cdef const number *taps = src + (top - origin) * src_step
    cdef vec_flag seen = nan[0]
    cdef FourVectors best
    if w.dilation > 1:                  # (64-bit divisions, each the time of a row)
        stride, lo, hi = w.stride * turns // w.dilation, ceil_div(lo, w.dilation), ceil_div(hi, w.dilation)
    while from_j < count:
        middle += w.kernel
        to_j = imin(count, middle if stride == 1 else ceil_div(middle, stride))     # windows that start before the middle
        best.w = best.x = best.y = best.z = vec_lowest(src)
        i, j = imin(middle, hi), to_j
        while j > from_j:
            j -= 1
            while i > imax(j * stride, lo):
                i -= 1
                max_update(&best, taps + i * step, wide, masked, nbytes, tracking, &seen)
            vec_store(slots + (j - from_j) * slot, best.w)
            if wide:
                vec_store(slots + (j - from_j) * slot + lanes, best.x)
                vec_store(slots + (j - from_j) * slot + 2 * lanes, best.y)
                vec_store(slots + (j - from_j) * slot + 3 * lanes, best.z)
        best.w = best.x = best.y = best.z = vec_lowest(src)
        i = imax(middle, lo)
        while j < to_j:
            while i < imin(j * stride + w.kernel, hi):
                max_update(&best, taps + i * step, wide, masked, nbytes, tracking, &seen)
                i += 1
            store_lanes(dst, vec_max(vec_load(slots + (j - from_j) * slot), best.w, src), nbytes)
            if wide:
                vec_store(dst + lanes, vec_max(vec_load(slots + (j - from_j) * slot + lanes), best.x, src))
                vec_store(dst + 2 * lanes, vec_max(vec_load(slots + (j - from_j) * slot + 2 * lanes), best.y, src))
                vec_store(dst + 3 * lanes, vec_max(vec_load(slots + (j - from_j) * slot + 3 * lanes), best.z, src))
            dst += dst_step
            j += 1
        from_j = to_j
    nan[0] = seen


cdef void van_herk(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step, Py_ssize_t origin, const Window *w,
               Py_ssize_t first, Py_ssize_t turns, Py_ssize_t count, bint wide, bint masked, Py_ssize_t nbytes, bint tracking,
               number *slots, vec_flag *nan) noexcept nogil:
    """Outputs first, first + turns, ... by the method of van Herk, Gil and Werman: four vectors wide, or nbytes of one, `masked`
    where the rest of it must not be read.

    Taps are counted from the first window's on; every kernel'th is a middle. A window that starts before a middle is what
    lies before it, a running maximum upwards that is kept per window in `slots`, and what lies behind it, a running maximum
    downwards: every tap is taken twice, however many windows it is in.
    """
    if wide and tracking:
        van_herk_body(dst, dst_step, src, src_step, origin, w, first, turns, count, True, False, VEC_BYTES, True, slots, nan)
    elif wide:
        van_herk_body(dst, dst_step, src, src_step, origin, w, first, turns, count, True, False, VEC_BYTES, False, slots, nan)
    elif masked and tracking:
        van_herk_body(dst, dst_step, src, src_step, origin, w, first, turns, count, False, True, nbytes, True, slots, nan)
    elif masked:
        van_herk_body(dst, dst_step, src, src_step, origin, w, first, turns, count, False, True, nbytes, False, slots, nan)
    elif tracking:
        van_herk_body(dst, dst_step, src, src_step, origin, w, first, turns, count, False, False, nbytes, True, slots, nan)
    else:
        van_herk_body(dst, dst_step, src, src_step, origin, w, first, turns, count, False, False, nbytes, False, slots, nan)
