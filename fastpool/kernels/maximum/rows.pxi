# The loops that every pass over values is made of: rows and columns of neighbouring windows.
#
# A row of n neighbouring windows is pooled vector by vector. The last vector of a row overlaps the
# one before it. A row shorter than a vector is read and written in part. So nothing outside the row
# is touched.
#
# Where `nan` is not NULL, NaN in what is read are tracked there. Specialising works like this
# everywhere: an always-inline body gets constant arguments (NULL, or the address of a local flag),
# and one chooser calls it with each of them.

cdef inline bint shuffled_stride(const Window *w) noexcept nogil:
    """Do shuffles pick the strided columns?"""
    return w.stride == 1 or w.stride == 2 or w.stride == 4


cdef enum:
    COLUMN_BYTES = 16384    # rows over more bytes than this are pooled COLUMN_ROWS at a time
    COLUMN_ROWS = 16


cdef inline vec_t track_nan(vec_t v, vec_flag *nan, const number *tag) noexcept nogil:
    """Return v. Track its NaN."""
    if nan != NULL:
        nan[0] = nan_or(nan[0], v, v, tag)
    return v


cdef inline vec_t max_track_nan(vec_t a, vec_t b, vec_flag *nan, const number *tag) noexcept nogil:
    """Return the maximum of a and b. Track the NaN of both, in one comparison."""
    if nan != NULL:
        nan[0] = nan_or(nan[0], a, b, tag)
    return vec_max(a, b, tag)


cdef inline bint has_nans(const number *tag) noexcept nogil:
    return (number is float or number is double or number is min_f32_t
            or number is min_f64_t)


cdef inline vec_t window_at(const number *src, const Py_ssize_t *taps, Py_ssize_t count,
                            vec_flag *nan) noexcept nogil:
    """Return the maximum over `count` taps, for a vector of windows."""
    cdef vec_t best = track_nan(vec_load(src + taps[0]), nan, src)
    cdef Py_ssize_t t
    for t in range(1, count):
        best = vec_max(best, track_nan(vec_load(src + taps[t]), nan, src), src)
    return best


cdef inline vec_t window_of_five(const number *src, const Py_ssize_t *pair, Py_ssize_t c,
                                 Py_ssize_t d, Py_ssize_t e, vec_flag *nan) noexcept nogil:
    """Return the maximum over pair[0], pair[1], c, d and e.

    A loop over taps costs as much as the taps, and there is none here.
    """
    cdef vec_t left = max_track_nan(vec_load(src + pair[0]), vec_load(src + pair[1]), nan, src)
    cdef vec_t right = max_track_nan(vec_load(src + c), vec_load(src + d), nan, src)
    return vec_max(vec_max(left, right, src), track_nan(vec_load(src + e), nan, src), src)


cdef inline void window_run_body(number *dst, const number *src, const Taps *taps, Py_ssize_t n,
                                 vec_flag *nan) noexcept nogil:
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), count = taps.count
    cdef Py_ssize_t i = 0, t, tap, a, b, c
    cdef vec_t w, x, y, z, other_w, other_x, other_y, other_z
    if count == 1:
        a = taps.offsets[0]
        while i + lanes <= n:
            vec_store(dst + i, track_nan(vec_load(src + i + a), nan, src))
            i += lanes
    elif count == 2:
        a, b = taps.offsets[0], taps.offsets[1]
        while i + lanes <= n:
            w = max_track_nan(vec_load(src + i + a), vec_load(src + i + b), nan, src)
            vec_store(dst + i, w)
            i += lanes
    elif count == 3:
        a, b, c = taps.offsets[0], taps.offsets[1], taps.offsets[2]
        while i + lanes <= n:
            w = max_track_nan(vec_load(src + i + a), vec_load(src + i + b), nan, src)
            vec_store(dst + i, vec_max(w, track_nan(vec_load(src + i + c), nan, src), src))
            i += lanes
    else:
        while i + 4 * lanes <= n:
            tap = taps.offsets[0] + i
            w, x = vec_load(src + tap), vec_load(src + tap + lanes)
            y, z = vec_load(src + tap + 2 * lanes), vec_load(src + tap + 3 * lanes)
            if nan != NULL:
                nan[0] = nan_or(nan_or(nan[0], w, x, src), y, z, src)
            for t in range(1, count):
                tap = taps.offsets[t] + i
                other_w, other_x = vec_load(src + tap), vec_load(src + tap + lanes)
                other_y, other_z = vec_load(src + tap + 2 * lanes), vec_load(src + tap + 3 * lanes)
                if nan != NULL:
                    nan[0] = nan_or(nan_or(nan[0], other_w, other_x, src), other_y, other_z, src)
                w, x = vec_max(w, other_w, src), vec_max(x, other_x, src)
                y, z = vec_max(y, other_y, src), vec_max(z, other_z, src)
            vec_store(dst + i, w)
            vec_store(dst + i + lanes, x)
            vec_store(dst + i + 2 * lanes, y)
            vec_store(dst + i + 3 * lanes, z)
            i += 4 * lanes
        while i + lanes <= n:
            vec_store(dst + i, window_at(src + i, taps.offsets, count, nan))
            i += lanes
    if i < n:
        i = n - lanes
        vec_store(dst + i, window_at(src + i, taps.offsets, count, nan))


cdef void window_run(number *dst, const number *src, const Taps *taps, Py_ssize_t n,
                     vec_flag *nan) noexcept nogil:
    """Set dst[i] to the maximum over the taps of src[i + tap], for i < n; n is at least a vector.

    A whole vector is written only before what later vectors read. So dst may be src if n is whole
    vectors.
    """
    cdef vec_flag seen
    if nan == NULL or not has_nans(src):
        window_run_body(dst, src, taps, n, NULL)
    else:
        seen = nan[0]                   # in a register
        window_run_body(dst, src, taps, n, &seen)
        nan[0] = seen


cdef void track_nan_rows(const number *src, Py_ssize_t step, Py_ssize_t rows, Py_ssize_t n,
                         vec_flag *nan) noexcept nogil:
    """Track NaN in rows of at least a vector, from left to right."""
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


cdef inline bint rows_share_taps(const Taps *taps, Py_ssize_t step) noexcept nogil:
    """Does the window of the next row hold all taps of this row's window but the first?"""
    cdef Py_ssize_t t
    for t in range(1, taps.count):
        if taps.offsets[t] - taps.offsets[t - 1] != step:
            return False
    return True


cdef inline void window_column_body(number *dst, Py_ssize_t dst_step, const number *src,
                                    Py_ssize_t src_step, const Taps *window, Py_ssize_t rows,
                                    vec_flag *nan) noexcept nogil:
    cdef const Py_ssize_t *taps = <const Py_ssize_t *>window.offsets
    cdef Py_ssize_t count = window.count, r = 0, t, a, b, c
    cdef Py_ssize_t twice[2]
    cdef const number *below
    cdef vec_t w, x, y, z
    if count == 2:
        a, b = taps[0], taps[1]
        for r in range(rows):
            vec_store(dst, max_track_nan(vec_load(src + a), vec_load(src + b), nan, src))
            dst, src = dst + dst_step, src + src_step
        return
    if count == 3:
        a, b, c = taps[0], taps[1], taps[2]
        if rows_share_taps(window, src_step):               # one new row each
            w, x = vec_load(src + a), vec_load(src + b)
            if nan != NULL:
                nan[0] = nan_or(nan[0], w, x, src)
            for r in range(rows):
                y = track_nan(vec_load(src + c), nan, src)
                vec_store(dst, vec_max(vec_max(w, x, src), y, src))
                w, x = x, y
                dst, src = dst + dst_step, src + src_step
            return
        for r in range(rows):
            w = max_track_nan(vec_load(src + a), vec_load(src + b), nan, src)
            vec_store(dst, vec_max(w, track_nan(vec_load(src + c), nan, src), src))
            dst, src = dst + dst_step, src + src_step
        return
    if count > 3 and rows_share_taps(window, src_step):
        while r + 2 <= rows:                                # two rows share all taps but one each
            if count == 5:
                twice[0] = twice[1] = taps[1]
                w = window_of_five(src, twice, taps[2], taps[3], taps[4], nan)
            else:
                w = window_at(src, taps + 1, count - 1, nan)
            x, y = vec_load(src + taps[0]), vec_load(src + taps[count - 1] + src_step)
            if nan != NULL:
                nan[0] = nan_or(nan[0], x, y, src)
            vec_store(dst, vec_max(w, x, src))
            vec_store(dst + dst_step, vec_max(w, y, src))
            dst, src = dst + 2 * dst_step, src + 2 * src_step
            r += 2
    elif count == 4 or count == 5:
        for r in range(rows):
            vec_store(dst, window_of_five(src, taps, taps[2], taps[3], taps[count - 1], nan))
            dst, src = dst + dst_step, src + src_step
        return
    while r + 2 <= rows:
        below = src + src_step
        w, x = vec_load(src + taps[0]), vec_load(below + taps[0])
        if nan != NULL:
            nan[0] = nan_or(nan[0], w, x, src)
        for t in range(1, count):
            y, z = vec_load(src + taps[t]), vec_load(below + taps[t])
            if nan != NULL:
                nan[0] = nan_or(nan[0], y, z, src)
            w, x = vec_max(w, y, src), vec_max(x, z, src)
        vec_store(dst, w)
        vec_store(dst + dst_step, x)
        dst, src = dst + 2 * dst_step, src + 2 * src_step
        r += 2
    if r < rows:
        vec_store(dst, window_at(src, taps, count, nan))


cdef void window_column(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step,
                        const Taps *taps, Py_ssize_t rows, vec_flag *nan) noexcept nogil:
    """Pool a column of `rows` windows, one vector wide.

    Short rows would spend their time on the loop over columns.
    """
    cdef vec_flag seen
    if rows <= 0:
        return
    if nan == NULL or not has_nans(src):
        window_column_body(dst, dst_step, src, src_step, taps, rows, NULL)
    else:
        seen = nan[0]
        window_column_body(dst, dst_step, src, src_step, taps, rows, &seen)
        nan[0] = seen


cdef inline void masked_rows(number *dst, Py_ssize_t dst_step, const number *src,
                             Py_ssize_t src_step, const Taps *window, Py_ssize_t rows,
                             Py_ssize_t nbytes, vec_flag *nan) noexcept nogil:
    """Pool rows of `nbytes`, fewer than a vector has, by masked loads and stores."""
    cdef const Py_ssize_t *taps = <const Py_ssize_t *>window.offsets
    cdef Py_ssize_t count = window.count, a = taps[0], b = taps[count // 2], c = taps[count - 1]
    cdef Py_ssize_t r, t
    cdef vec_t best
    for r in range(rows):
        best = max_track_nan(vec_load_part(src + a, nbytes), vec_load_part(src + b, nbytes), nan,
                             src)
        if count > 2:
            best = vec_max(best, track_nan(vec_load_part(src + c, nbytes), nan, src), src)
        if count > 3:
            for t in range(1, count - 1):
                best = vec_max(best, track_nan(vec_load_part(src + taps[t], nbytes), nan, src),
                               src)
        vec_store_part(dst, best, nbytes)
        dst, src = dst + dst_step, src + src_step


cdef void narrow_rows(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step,
                      const Taps *window, Py_ssize_t rows, Py_ssize_t n,
                      vec_flag *nan) noexcept nogil:
    """Pool rows shorter than a vector: by masks, else in overlapping pieces of 16, 8, ... bytes."""
    cdef Py_ssize_t nbytes = n * <Py_ssize_t>sizeof(number), piece = 16, i, r, t, a, b, c
    cdef const Py_ssize_t *taps = <const Py_ssize_t *>window.offsets
    cdef Py_ssize_t count = window.count
    cdef vec_flag seen
    cdef narrow_t narrow
    cdef const number *at
    if VEC_MASKS:
        if nan == NULL or not has_nans(src):
            masked_rows(dst, dst_step, src, src_step, window, rows, nbytes, NULL)
        else:
            seen = nan[0]
            masked_rows(dst, dst_step, src, src_step, window, rows, nbytes, &seen)
            nan[0] = seen
        return
    if nan != NULL and has_nans(src):
        for r in range(rows):
            for t in range(count):
                track_nan(vec_load_part(src + r * src_step + taps[t], nbytes), nan, src)
    while piece > nbytes:
        piece //= 2
    i = 0
    while i < nbytes:
        i = imin(i, nbytes - piece) // <Py_ssize_t>sizeof(number)
        at = src + i
        if count <= 3:
            a, b, c = taps[0], taps[count // 2], taps[count - 1]
            for r in range(rows):
                narrow = narrow_max(narrow_load(at + a, piece), narrow_load(at + b, piece), dst)
                narrow = narrow_max(narrow, narrow_load(at + c, piece), dst)
                narrow_store(dst + r * dst_step + i, narrow, piece)
                at += src_step
        else:
            for r in range(rows):
                narrow = narrow_load(at + taps[0], piece)
                for t in range(1, count):
                    narrow = narrow_max(narrow, narrow_load(at + taps[t], piece), dst)
                narrow_store(dst + r * dst_step + i, narrow, piece)
                at += src_step
        i = i * <Py_ssize_t>sizeof(number) + piece


cdef void window_rows(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step,
                      const Taps *taps, Py_ssize_t rows, Py_ssize_t n,
                      vec_flag *nan) noexcept nogil:
    """Set dst[r, i] to the maximum over the taps of src[r, i + tap], for r < rows and i < n."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef Py_ssize_t r, i, block
    if dst_step == n and src_step == n:         # rows without gaps are one row
        n, rows = n * rows, 1
    if n < lanes:
        narrow_rows(dst, dst_step, src, src_step, taps, rows, n, nan)
    elif n > 4 * lanes or (n == 4 * lanes and not rows_share_taps(taps, src_step)):
        for r in range(rows):
            window_run(dst + r * dst_step, src + r * src_step, taps, n, nan)
    else:
        # All columns of a few rows at a time, where all rows would leave the first-level cache.
        block = rows
        if n > lanes and rows * src_step * <Py_ssize_t>sizeof(number) > COLUMN_BYTES:
            block = COLUMN_ROWS
        r = 0
        while r < rows:
            i = 0
            while i + lanes < n:
                window_column(dst + r * dst_step + i, dst_step, src + r * src_step + i, src_step,
                              taps, imin(block, rows - r), nan)
                i += lanes
            i = n - lanes
            window_column(dst + r * dst_step + i, dst_step, src + r * src_step + i, src_step, taps,
                          imin(block, rows - r), nan)
            r += block


cdef void copy_rows(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step,
                    Py_ssize_t rows, Py_ssize_t n, vec_flag *nan) noexcept nogil:
    """Copy rows of n elements, and track NaN."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), r, i
    cdef vec_flag seen = nan[0]         # in a register
    cdef vec_t a, b
    cdef Taps one
    if n < lanes:
        set_taps(&one, 1, 0)
        window_rows(dst, dst_step, src, src_step, &one, rows, n, nan)
        return
    for r in range(rows):
        i = 0
        while i + 2 * lanes <= n:
            a, b = vec_load(src + i), vec_load(src + i + lanes)
            seen = nan_or(seen, a, b, src)
            vec_store(dst + i, a)
            vec_store(dst + i + lanes, b)
            i += 2 * lanes
        i = imin(i, n - lanes)          # the last two vectors may overlap
        a, b = vec_load(src + i), vec_load(src + n - lanes)
        seen = nan_or(seen, a, b, src)
        vec_store(dst + i, a)
        vec_store(dst + n - lanes, b)
        dst, src = dst + dst_step, src + src_step
    nan[0] = seen


cdef inline vec_t window_even(const number *src, const Taps *taps) noexcept nogil:
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    return vec_concat_even(window_at(src, taps.offsets, taps.count, NULL),
                           window_at(src + lanes, taps.offsets, taps.count, NULL), src)


cdef inline void window_every(number *dst, Py_ssize_t dst_step, const number *src,
                              Py_ssize_t src_step, const Taps *taps, Py_ssize_t stride,
                              Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """Set dst[r, i] to the maximum over the taps of src[r, stride * i + tap], at stride 2 or 4.

    `src` is scratch, which is read in whole vectors.
    """
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef Py_ssize_t r, i
    cdef vec_t best
    for r in range(rows):
        i = 0
        while i < n:
            if i + lanes > n and n >= lanes:
                i = n - lanes
            best = window_even(src + stride * i, taps)
            if stride == 4:
                best = vec_concat_even(best, window_even(src + 4 * i + 2 * lanes, taps), dst)
            if n < lanes:
                vec_store_part(dst, best, n * sizeof(number))
            else:
                vec_store(dst + i, best)
            i += lanes
        dst, src = dst + dst_step, src + src_step
