# Windows with indices: the greatest tap of each lane, and where it is.
#
# The columns of a window are compared from left to right, its rows from top to bottom. A tap
# replaces the best so far only if it is greater, so that the winner is the first in row-major
# order. Lanes are neighbouring columns (channels first) or channels (channels last). Types with a
# native comparison are read as they are; others are read as keys. If a NaN was tracked, the
# caller pools the tile again as keys.
#
# A position counts from where a window starts, in the strides of the index. So an index is the
# index of the window's start plus a position. No margin wins: rows outside are left out, and a
# window over the left side whose elements are all the lowest value has the position of the first of
# them, the least that it can have.

cdef struct Best:           # of each lane: the greatest so far, and where it is
    vec_t key, place


cdef struct WindowColumns:
    Py_ssize_t stride               # elements from one lane's window to the next lane's
    Py_ssize_t taps
    Py_ssize_t offsets[MAX_TAPS]
    vec_t places[MAX_TAPS]
    vec_t least                     # position of the first column inside, over the left side
    vec_t first_least               # least of a tile's first lanes


cdef struct WindowRows:     # in each slab of the leading axes
    Py_ssize_t step, tap_step       # elements from one row to the next, from one tap to the next
    int64_t place                   # what a row adds to the index
    vec_t places[MAX_TAPS]          # of each tap
    Py_ssize_t slabs
    Py_ssize_t slab_of[MAX_TAPS]
    vec_t slab_places[MAX_TAPS]


cdef struct Compared:       # what a loop compares: constants, where there is a loop for them
    Py_ssize_t slabs, rows, taps, stride


cdef struct Indices:        # what indices are made of
    vec_t iota                      # 0, step, 2 * step, ...
    int64_t step                    # from one lane to the next
    int bytes


cdef struct PixelStep:      # from one window of a channels-last row to the next
    Py_ssize_t elements
    int64_t base                    # what it adds to the index


cdef struct Outputs:        # values and indices
    void *values
    char *indices
    int64_t base                    # what positions count from
    Py_ssize_t row, col             # elements from one value to the next
    Py_ssize_t index_row, index_col     # bytes from one index to the next
    Py_ssize_t n                    # lanes that are stored
    const Indices *how


cdef inline void argmax_update(Best *best, vec_t key, vec_t place,
                               const ordered *tag) noexcept nogil:
    cdef vec_mask greater = vec_gt(key, best.key, tag)
    best.key = vec_select(greater, key, best.key, tag)
    best.place = vec_select(greater, place, best.place, tag)


cdef inline void copy_best(Best *to, const Best *best) noexcept nogil:
    to.key, to.place = best.key, best.place     # (both at once would be copied in halves)


cdef inline vec_t load_strided_tap(const ordered *at, Py_ssize_t tap, Py_ssize_t stride,
                                   vec_flag *nan) noexcept nogil:
    """Load one column of windows at stride 1 or 2, after the first. Read nothing past it."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(ordered)
    cdef vec_t a, b
    if stride == 1:
        return track_nan(vec_load(at + tap), nan, at)
    a, b = vec_load(at + tap - 1), vec_load(at + tap - 1 + lanes)
    if nan != NULL:
        nan[0] = nan_or(nan[0], a, b, at)
    return vec_concat_odd(a, b, at)


cdef inline void argmax_row(Best *best, const ordered *at, const WindowColumns *cols,
                            const Compared *c, vec_flag *nan) noexcept nogil:
    """Set `best` to the maximum of one row of windows."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(ordered), stride = c.stride
    cdef Py_ssize_t taps = c.taps, t = 1, half
    cdef vec_t v = vec_load(at), w, x, y, second
    cdef Best right
    best.key, best.place = v, cols.places[0]
    if stride == 4:                     # four columns, each in a window
        w, x, y = vec_load(at + lanes), vec_load(at + 2 * lanes), vec_load(at + 3 * lanes)
        if nan != NULL:
            nan[0] = nan_or(nan_or(nan[0], v, w, at), x, y, at)
        v, w = vec_concat_even(v, w, at), vec_concat_odd(v, w, at)
        x, y = vec_concat_even(x, y, at), vec_concat_odd(x, y, at)
        best.key = vec_concat_even(v, x, at)
        argmax_update(best, vec_concat_even(w, y, at), cols.places[1], at)
        argmax_update(best, vec_concat_odd(v, x, at), cols.places[2], at)
        argmax_update(best, vec_concat_odd(w, y, at), cols.places[3], at)
        t = 4
    elif stride == 2:
        w = vec_load(at + lanes)
        if nan != NULL:
            nan[0] = nan_or(nan[0], v, w, at)
        best.key = vec_concat_even(v, w, at)
        argmax_update(best, vec_concat_odd(v, w, at), cols.places[1], at)
        t = 2
    elif taps > 1:
        second = vec_load(at + cols.offsets[1])
        if nan != NULL:
            nan[0] = nan_or(nan[0], v, second, at)
        argmax_update(best, second, cols.places[1], at)
        t = 2
    elif nan != NULL:
        nan[0] = nan_or(nan[0], v, v, at)
    if taps > 4 and stride < 4:         # in two halves: each comparison waits for the one before
        half = (taps + 1) // 2
        right.key = load_strided_tap(at, cols.offsets[half], stride, nan)
        right.place = cols.places[half]
        for t in range(1, half):
            if t > 1:                   # (compared already)
                argmax_update(best, load_strided_tap(at, cols.offsets[t], stride, nan),
                              cols.places[t], at)
            if half + t < taps:
                argmax_update(&right, load_strided_tap(at, cols.offsets[half + t], stride, nan),
                              cols.places[half + t], at)
        argmax_update(best, right.key, right.place, at)
    else:
        for t in range(t, taps):
            argmax_update(best, load_strided_tap(at, cols.offsets[t], stride, nan),
                          cols.places[t], at)
    best.place = vec_max_int(best.place, cols.least, at)


cdef inline void argmax_rows(Best *best, const ordered *at, const WindowColumns *cols,
                             const WindowRows *rows, const Compared *c,
                             vec_flag *nan) noexcept nogil:
    """Set `best` to the maximum over rows, in every slab; `at` is where the first window starts."""
    cdef Py_ssize_t step = rows.tap_step, s, t
    cdef const ordered *slab
    cdef Best more
    argmax_row(best, at, cols, c, nan)
    for s in range(c.slabs):
        slab = at + rows.slab_of[s] if c.slabs > 1 else at
        for t in range(0 if s else 1, c.rows):
            argmax_row(&more, slab + t * step, cols, c, nan)
            if c.slabs > 1:
                more.place = vec_add_int(more.place, rows.slab_places[s], at)
            argmax_update(best, more.key, vec_add_int(more.place, rows.places[t], at), at)


cdef inline void store_best(ordered *values, char *indices, const Best *best, Py_ssize_t n,
                            int64_t base, const Indices *how) noexcept nogil:
    """Store the first n lanes: values and indices."""
    store_lanes(values, best.key, n * <Py_ssize_t>sizeof(ordered))
    store_vec_indices(indices, best.place, n, base, how.iota, how.step, how.bytes, values)


cdef inline void store_none(const Outputs *to, const ordered *tag) noexcept nogil:
    """Store windows without an element."""
    fill_lowest(<ordered *>to.values, to.n)
    if to.how.bytes == 8:
        fill(<int64_t *>to.indices, to.n, <int64_t>-1)
    else:
        fill(<int32_t *>to.indices, to.n, <int32_t>-1)


cdef inline void next_rows(Outputs *to, Py_ssize_t count, int64_t base,
                           const ordered *tag) noexcept nogil:
    """Advance by `count` rows of outputs; `base` is what they add to the index."""
    to.values = <ordered *>to.values + count * to.row
    to.indices += count * to.index_row
    to.base += base


cdef inline void argmax_column(const Outputs *first, const ordered *src, const WindowColumns *cols,
                               const WindowRows *rows, Py_ssize_t step, int64_t base_step,
                               Py_ssize_t count, const Compared *c, vec_flag *nan) noexcept nogil:
    """Pool `count` vectors of windows that are inside, `step` elements apart."""
    cdef Py_ssize_t r, n = first.n, row = first.row, index_row = first.index_row
    cdef int64_t base = first.base
    cdef ordered *values = <ordered *>first.values
    cdef char *indices = first.indices
    cdef const Indices *how = first.how
    cdef Best best
    for r in range(count):
        argmax_rows(&best, src, cols, rows, c, nan)
        store_best(values, indices, &best, n, base, how)
        values, indices, src, base = values + row, indices + index_row, src + step, base + base_step
