# The loops that every pass over values is made of: rows and columns of neighbouring windows.
#
# A window is a list of taps: offsets from where it starts. A row of n neighbouring windows is pooled
# vector by vector. The last vector of a row overlaps the one before it. A row shorter than a vector
# is read and written in part. So nothing outside the row is touched.

cdef inline vec_t track_nan(vec_t v, bint tracking, vec_flag *nan, const number *tag) noexcept nogil:
    """A vector of the input; with `tracking`, NaN in it are track_nan."""
    if tracking:
        nan[0] = nan_or(nan[0], v, v, tag)
    return v


cdef inline vec_t max_track_nan(vec_t a, vec_t b, bint tracking, vec_flag *nan, const number *tag) noexcept nogil:
    if tracking:
        nan[0] = nan_or(nan[0], a, b, tag)
    return vec_max(a, b, tag)


cdef inline bint has_nans(const number *tag) noexcept nogil:
    return number is float or number is double


cdef inline vec_t window_at(const number *src, const Py_ssize_t *taps, Py_ssize_t ntaps, bint tracking,
                            vec_flag *nan) noexcept nogil:
    cdef vec_t best = track_nan(vec_load(src + taps[0]), tracking, nan, src)
    cdef Py_ssize_t t
    for t in range(1, ntaps):
        best = vec_max(best, track_nan(vec_load(src + taps[t]), tracking, nan, src), src)
    return best


cdef inline vec_t window_of_five(const number *src, Py_ssize_t a, Py_ssize_t b, Py_ssize_t c, Py_ssize_t d, Py_ssize_t e,
                                 bint tracking, vec_flag *nan) noexcept nogil:
    """Without a loop over taps, which costs as much as the taps."""
    cdef vec_t left = max_track_nan(vec_load(src + a), vec_load(src + b), tracking, nan, src)
    cdef vec_t right = max_track_nan(vec_load(src + c), vec_load(src + d), tracking, nan, src)
    return vec_max(vec_max(left, right, src), track_nan(vec_load(src + e), tracking, nan, src), src)


cdef inline void window_run_body(number *dst, const number *src, const Py_ssize_t *taps, Py_ssize_t ntaps, Py_ssize_t n, bint tracking,
                     vec_flag *nan) noexcept nogil:
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef Py_ssize_t i = 0, t, tap, a, b, c
    cdef vec_t w, x, y, z, other_w, other_x, other_y, other_z
    if ntaps == 1:
        a = taps[0]
        while i + lanes <= n:
            vec_store(dst + i, track_nan(vec_load(src + i + a), tracking, nan, src))
            i += lanes
    elif ntaps == 2:
        a, b = taps[0], taps[1]
        while i + lanes <= n:
            vec_store(dst + i, max_track_nan(vec_load(src + i + a), vec_load(src + i + b), tracking, nan, src))
            i += lanes
    elif ntaps == 3:
        a, b, c = taps[0], taps[1], taps[2]
        while i + lanes <= n:
            w = max_track_nan(vec_load(src + i + a), vec_load(src + i + b), tracking, nan, src)
            vec_store(dst + i, vec_max(w, track_nan(vec_load(src + i + c), tracking, nan, src), src))
            i += lanes
    else:
        while i + 4 * lanes <= n:
            tap = taps[0] + i
            w, x = vec_load(src + tap), vec_load(src + tap + lanes)
            y, z = vec_load(src + tap + 2 * lanes), vec_load(src + tap + 3 * lanes)
            if tracking:
                nan[0] = nan_or(nan_or(nan[0], w, x, src), y, z, src)
            for t in range(1, ntaps):
                tap = taps[t] + i
                other_w, other_x = vec_load(src + tap), vec_load(src + tap + lanes)
                other_y, other_z = vec_load(src + tap + 2 * lanes), vec_load(src + tap + 3 * lanes)
                if tracking:
                    nan[0] = nan_or(nan_or(nan[0], other_w, other_x, src), other_y, other_z, src)
                w, x = vec_max(w, other_w, src), vec_max(x, other_x, src)
                y, z = vec_max(y, other_y, src), vec_max(z, other_z, src)
            vec_store(dst + i, w)
            vec_store(dst + i + lanes, x)
            vec_store(dst + i + 2 * lanes, y)
            vec_store(dst + i + 3 * lanes, z)
            i += 4 * lanes
        while i + lanes <= n:
            vec_store(dst + i, window_at(src + i, taps, ntaps, tracking, nan))
            i += lanes
    if i < n:
        i = n - lanes
        vec_store(dst + i, window_at(src + i, taps, ntaps, tracking, nan))


cdef void window_run(number *dst, const number *src, const Py_ssize_t *taps, Py_ssize_t ntaps, Py_ssize_t n,
                     vec_flag *nan) noexcept nogil:
    """dst[i] = max over t of src[i + taps[t]], i < n; n at least a vector.

    Whole vectors only ever write behind what later ones read, so dst may be src when n is whole vectors. Unless nan is NULL,
    NaN in src are track_nan.
    """
    cdef vec_flag seen
    if nan == NULL or not has_nans(src):
        window_run_body(dst, src, taps, ntaps, n, False, NULL)
    else:
        seen = nan[0]                   # in a register
        window_run_body(dst, src, taps, ntaps, n, True, &seen)
        nan[0] = seen


cdef void track_nan_rows(const number *src, Py_ssize_t step, Py_ssize_t rows, Py_ssize_t n, vec_flag *nan) noexcept nogil:
    """Note NaN in rows of at least a vector, from left to right."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), r, i
    cdef vec_flag seen = nan[0]
    for r in range(rows):
        i = 0
        while i + 2 * lanes <= n:
            seen = nan_or(seen, vec_load(src + i), vec_load(src + i + lanes), src)
            i += 2 * lanes
        seen = nan_or(seen, vec_load(src + imin(i, n - lanes)), vec_load(src + n - lanes), src)
        src += step
    nan[0] = seen


cdef inline bint rows_share_taps(const Py_ssize_t *taps, Py_ssize_t ntaps, Py_ssize_t step) noexcept nogil:
    """Does the next row's window hold this row's taps but the first?"""
    cdef Py_ssize_t t
    for t in range(1, ntaps):
        if taps[t] - taps[t - 1] != step:
            return False
    return True


cdef inline void window_column_body(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step, const Py_ssize_t *taps,
                        Py_ssize_t ntaps, Py_ssize_t rows, bint tracking, vec_flag *nan) noexcept nogil:
    cdef Py_ssize_t r = 0, t, a, b, c
    cdef const number *below
    cdef vec_t w, x, y, z
    if ntaps == 2:
        a, b = taps[0], taps[1]
        for r in range(rows):
            vec_store(dst, max_track_nan(vec_load(src + a), vec_load(src + b), tracking, nan, src))
            dst, src = dst + dst_step, src + src_step
        return
    if ntaps == 3:
        a, b, c = taps[0], taps[1], taps[2]
        if rows_share_taps(taps, 3, src_step):                       # one new row each
            w, x = vec_load(src + a), vec_load(src + b)
            if tracking:
                nan[0] = nan_or(nan[0], w, x, src)
            for r in range(rows):
                y = track_nan(vec_load(src + c), tracking, nan, src)
                vec_store(dst, vec_max(vec_max(w, x, src), y, src))
                w, x = x, y
                dst, src = dst + dst_step, src + src_step
            return
        for r in range(rows):
            w = max_track_nan(vec_load(src + a), vec_load(src + b), tracking, nan, src)
            vec_store(dst, vec_max(w, track_nan(vec_load(src + c), tracking, nan, src), src))
            dst, src = dst + dst_step, src + src_step
        return
    if ntaps > 3 and rows_share_taps(taps, ntaps, src_step):
        while r + 2 <= rows:                                # two rows share all their taps but one each
            if ntaps == 5:
                w = window_of_five(src, taps[1], taps[1], taps[2], taps[3], taps[4], tracking, nan)
            else:
                w = window_at(src, taps + 1, ntaps - 1, tracking, nan)
            x, y = vec_load(src + taps[0]), vec_load(src + taps[ntaps - 1] + src_step)
            if tracking:
                nan[0] = nan_or(nan[0], x, y, src)
            vec_store(dst, vec_max(w, x, src))
            vec_store(dst + dst_step, vec_max(w, y, src))
            dst, src = dst + 2 * dst_step, src + 2 * src_step
            r += 2
    elif ntaps == 4 or ntaps == 5:
        for r in range(rows):
            vec_store(dst, window_of_five(src, taps[0], taps[1], taps[2], taps[3], taps[ntaps - 1], tracking, nan))
            dst, src = dst + dst_step, src + src_step
        return
    while r + 2 <= rows:
        below = src + src_step
        w, x = vec_load(src + taps[0]), vec_load(below + taps[0])
        if tracking:
            nan[0] = nan_or(nan[0], w, x, src)
        for t in range(1, ntaps):
            y, z = vec_load(src + taps[t]), vec_load(below + taps[t])
            if tracking:
                nan[0] = nan_or(nan[0], y, z, src)
            w, x = vec_max(w, y, src), vec_max(x, z, src)
        vec_store(dst, w)
        vec_store(dst + dst_step, x)
        dst, src = dst + 2 * dst_step, src + 2 * src_step
        r += 2
    if r < rows:
        vec_store(dst, window_at(src, taps, ntaps, tracking, nan))


cdef void window_column(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step, const Py_ssize_t *taps,
                        Py_ssize_t ntaps, Py_ssize_t rows, vec_flag *nan) noexcept nogil:
    """One vector wide, `rows` high: short rows would spend their time on the loop over columns."""
    cdef vec_flag seen
    if rows <= 0:
        return
    if nan == NULL or not has_nans(src):
        window_column_body(dst, dst_step, src, src_step, taps, ntaps, rows, False, NULL)
    else:
        seen = nan[0]
        window_column_body(dst, dst_step, src, src_step, taps, ntaps, rows, True, &seen)
        nan[0] = seen


cdef inline void masked_rows(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step, const Py_ssize_t *taps,
                             Py_ssize_t ntaps, Py_ssize_t rows, Py_ssize_t nbytes, bint tracking, vec_flag *nan) noexcept nogil:
    cdef Py_ssize_t a = taps[0], b = taps[ntaps // 2], c = taps[ntaps - 1], r, t
    cdef vec_t best
    for r in range(rows):
        best = max_track_nan(vec_load_part(src + a, nbytes), vec_load_part(src + b, nbytes), tracking, nan, src)
        if ntaps > 2:
            best = vec_max(best, track_nan(vec_load_part(src + c, nbytes), tracking, nan, src), src)
        if ntaps > 3:
            for t in range(1, ntaps - 1):
                best = vec_max(best, track_nan(vec_load_part(src + taps[t], nbytes), tracking, nan, src), src)
        vec_store_part(dst, best, nbytes)
        dst, src = dst + dst_step, src + src_step


cdef void narrow_rows(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step, const Py_ssize_t *taps,
                      Py_ssize_t ntaps, Py_ssize_t rows, Py_ssize_t n, vec_flag *nan) noexcept nogil:
    """WindowRows shorter than a vector: behind a mask where there are masks, else in overlapping pieces of 16, 8, ... bytes."""
    cdef Py_ssize_t nbytes = n * <Py_ssize_t>sizeof(number), piece = 16, i, r, t, a, b, c
    cdef vec_flag seen
    cdef narrow_t narrow
    cdef const number *at
    if VEC_MASKS:
        if nan == NULL or not has_nans(src):
            masked_rows(dst, dst_step, src, src_step, taps, ntaps, rows, nbytes, False, NULL)
        else:
            seen = nan[0]
            masked_rows(dst, dst_step, src, src_step, taps, ntaps, rows, nbytes, True, &seen)
            nan[0] = seen
        return
    if nan != NULL and has_nans(src):
        for r in range(rows):
            for t in range(ntaps):
                track_nan(vec_load_part(src + r * src_step + taps[t], nbytes), True, nan, src)
    while piece > nbytes:
        piece //= 2
    i = 0
    while i < nbytes:
        i = imin(i, nbytes - piece) // <Py_ssize_t>sizeof(number)
        at = src + i
        if ntaps <= 3:
            a, b, c = taps[0], taps[ntaps // 2], taps[ntaps - 1]
            for r in range(rows):
                narrow = narrow_max(narrow_load(at + a, piece), narrow_load(at + b, piece), dst)
                narrow_store(dst + r * dst_step + i, narrow_max(narrow, narrow_load(at + c, piece), dst), piece)
                at += src_step
        else:
            for r in range(rows):
                narrow = narrow_load(at + taps[0], piece)
                for t in range(1, ntaps):
                    narrow = narrow_max(narrow, narrow_load(at + taps[t], piece), dst)
                narrow_store(dst + r * dst_step + i, narrow, piece)
                at += src_step
        i = i * <Py_ssize_t>sizeof(number) + piece


cdef void window_rows(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step, const Py_ssize_t *taps,
                      Py_ssize_t ntaps, Py_ssize_t rows, Py_ssize_t n, vec_flag *nan) noexcept nogil:
    """dst[r, i] = max over t of src[r, i + taps[t]], r < rows, i < n; unless nan is NULL, NaN in src are track_nan."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef Py_ssize_t r, i, block
    if dst_step == n and src_step == n:         # rows without gaps are one row
        n, rows = n * rows, 1
    if n < lanes:
        narrow_rows(dst, dst_step, src, src_step, taps, ntaps, rows, n, nan)
    elif n > 4 * lanes or (n == 4 * lanes and not rows_share_taps(taps, ntaps, src_step)):
        for r in range(rows):
            window_run(dst + r * dst_step, src + r * src_step, taps, ntaps, n, nan)
    else:
        # All columns of a few rows at a time, where going down all rows would leave the first-level cache.
        block = rows
        if n > lanes and rows * src_step * <Py_ssize_t>sizeof(number) > COLUMN_BYTES:
            block = COLUMN_ROWS
        r = 0
        while r < rows:
            i = 0
            while i + lanes < n:
                window_column(dst + r * dst_step + i, dst_step, src + r * src_step + i, src_step, taps, ntaps,
                              imin(block, rows - r), nan)
                i += lanes
            i = n - lanes
            window_column(dst + r * dst_step + i, dst_step, src + r * src_step + i, src_step, taps, ntaps,
                          imin(block, rows - r), nan)
            r += block


cdef inline vec_t window_even(const number *src, const Py_ssize_t *taps, Py_ssize_t ntaps) noexcept nogil:
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    return vec_concat_even(window_at(src, taps, ntaps, False, NULL), window_at(src + lanes, taps, ntaps, False, NULL), src)


cdef inline void window_every(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step,
                              const Py_ssize_t *taps, Py_ssize_t ntaps, Py_ssize_t stride, Py_ssize_t rows,
                              Py_ssize_t n) noexcept nogil:
    """dst[r, i] = max over t of src[r, stride * i + taps[t]] for stride 2 or 4; src is scratch, read in whole vectors."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef Py_ssize_t r, i
    cdef vec_t best
    for r in range(rows):
        i = 0
        while i < n:
            if i + lanes > n and n >= lanes:
                i = n - lanes
            best = window_even(src + stride * i, taps, ntaps)
            if stride == 4:
                best = vec_concat_even(best, window_even(src + 4 * i + 2 * lanes, taps, ntaps), dst)
            if n < lanes:
                vec_store_part(dst, best, n * sizeof(number))
            else:
                vec_store(dst + i, best)
            i += lanes
        dst, src = dst + dst_step, src + src_step


cdef inline void fill(number *dst, Py_ssize_t n, number value) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        dst[i] = value
