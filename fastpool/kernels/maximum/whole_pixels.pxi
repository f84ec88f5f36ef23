# Takes:   channels last, one window over all of a plane: of more than 16 elements if a pixel is
#          longer than 256 bytes, else of more than 64, if planes have less than 4 rows or columns,
#          but not one column, or rows of over 256 KiB; others of keys, or of few bytes, only
# Reads:   the input in place; where keys are pooled, keys of some pixels at a time
# Scratch: the maxima of one or several neighbouring pixels (POOLED); keys (SLAB)
# Wins:    AVX-512, an EPYC: float32 1x70x70x232 137 -> 92 us, 1x126x140x224 1650 -> 990; a Xeon:
#          uint8 5000x3 3.6 -> 0.6 us. Small pixels over many rows and columns take 1.15 times as
#          long as by rows (560 random planes).
#
# Pixels of few bytes are taken several at a time, as one. At the end their maxima are pooled.

cdef enum:
    BYTES_AT_ONCE = 16384   # of pixels that are compared before their maxima are stored
    PIXELS_AT_ONCE = 8      # if these are fewer bytes
    WIDE_PIXEL = 256        # bytes


cdef inline void pool_more_pixels(max_t *best, const max_t *src, Py_ssize_t step,
                                  Py_ssize_t pixels, Py_ssize_t n, vec_flag *nan) noexcept nogil:
    """Include pixels of n elements, `step` apart, in their maxima so far."""
    cdef Py_ssize_t done = 0, t, most = BYTES_AT_ONCE // (n * <Py_ssize_t>sizeof(max_t))
    cdef Taps taps
    most = imin(imax(most, PIXELS_AT_ONCE), MAX_TAPS - 1)
    while done < pixels:
        taps.count = 1 + imin(most, pixels - done)
        taps.offsets[0] = (<char *>best - <const char *>src) // <Py_ssize_t>sizeof(max_t)
        for t in range(1, taps.count):
            taps.offsets[t] = (t - 1) * step
        window_rows(best, 0, src, 0, &taps, 1, n, nan)
        src += (taps.count - 1) * step
        done += taps.count - 1


cdef bint tile_whole_pixels(const Pool *pool, const View *x, const View *y, const Tile *tile,
                            Scratch *scratch, const Keys *keys, max_t *tag) noexcept nogil:
    """Pool some channels of one batch. Return False if there is a NaN, unless they are keys."""
    cdef const Problem *p = &pool.frame.problem
    cdef max_t *best = <max_t *>area_of(pool, scratch.area, POOLED)
    cdef max_t *slab = <max_t *>area_of(pool, scratch.area, SLAB)
    cdef Py_ssize_t n = tile.channels, r, i, at, pixels, some, step = x.col, wide = 1, half
    cdef Py_ssize_t most = 1
    cdef Runs runs = runs_of(p, x, False)
    cdef const max_t *src
    cdef vec_flag nan = flag_none()
    if keys != NULL:
        step, most = n, imax(1, KEYS_AT_ONCE // n)
    if step == n:
        wide = imax(1, WIDE_PIXEL // (n * <Py_ssize_t>sizeof(max_t)))
    fill_lowest(best, wide * n)
    for r in range(runs.count):
        at = input_offset(p, x, tile, 0) + run_offset(p, x, &runs, r, False)
        i = 0
        while i < runs.length:
            pixels = runs.length - i
            src = <const max_t *>(x.data + (at + i * x.col) * p.size)
            if keys != NULL:
                pixels = imin(pixels, most)
                if x.col == n:
                    keys.load(slab, 0, src, 0, 1, pixels * n, keys.rule)
                else:
                    keys.load(slab, n, src, x.col, pixels, n, keys.rule)
                src = slab
            some = pixels // wide
            pool_more_pixels(best, src, wide * step, some, wide * n, &nan)
            some *= wide
            if some < pixels:
                pool_more_pixels(best, src + some * step, 0, 1, (pixels - some) * n, &nan)
            i += pixels
    while wide > 1:
        half = wide // 2
        pool_more_pixels(best, best + (wide - half) * n, 0, 1, half * n, &nan)
        wide -= half
    if keys == NULL:
        memcpy(y.data + output_offset(p, y, tile, 0) * p.size, best, n * sizeof(max_t))
    elif max_t in any_key:
        store_keys(y, tile, 0, 0, 1, <const max_t *>best, pool)
    return not flag_any(nan)


cdef void whole_pixels_scratch(const Pool *p, Py_ssize_t *size) noexcept nogil:
    """Set the sizes of POOLED and SLAB, in elements."""
    cdef Py_ssize_t n = p.frame.tiling.channels
    size[<int>POOLED] = n + WIDE_PIXEL
    size[<int>SLAB] = imax(KEYS_AT_ONCE, n)
