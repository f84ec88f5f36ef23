# Takes:   axes that the schedule split into several steps
# Reads:   the input in place; rows that become keys, or that are shorter than a vector where there
#          are no masks, from a copy
# Scratch: one vector per window between two middles, then the copied rows (CHAIN)
# Wins:    channels last 1x260x260x16 float32, k63 over k7: 5.0 -> 1.6; dilated 2: 20 -> 3.2.
#          Narrow rows under windows of two steps keep the chain: 1x512x40x40 k9 uint8, 366 us by
#          the chain, 749 by running maxima. Strips of a few columns lose where they are the first
#          to touch a tile (1x8x512x512 k64 float32 3700 -> 5650), so NaN are tracked in whole rows
#          first. Windows that share no rows: 25x16x20x512 float32, one each, 1600 -> 323.
#
# row_pass under long windows: running maxima between middles (van Herk, Gil and Werman). Every
# element is read twice, however long the window is. Windows that share no rows are read once, in
# the order of memory, a few rows at a time. Strategies by passes use it.

cdef enum:
    CHAIN_BYTES = 32768     # contiguous rows of a long window: they stay in the first-level cache
    COPIED_BYTES = 131072   # of rows that are copied
    ROWS_AT_ONCE = 8        # of windows that share none


cdef inline bint share_no_rows(const Window *w, Py_ssize_t count) noexcept nogil:
    """Do `count` neighbouring windows share no rows?"""
    return count == 1 or w.stride >= w.extent


cdef inline void max_rows_body(number *dst, const number *src, Py_ssize_t src_step,
                               Py_ssize_t rows, Py_ssize_t n, bint first,
                               vec_flag *nan) noexcept nogil:
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), i = 0, t
    cdef vec_t best, other, row
    while True:
        best = track_nan(vec_load(src + i), nan, src)
        other = best if first else vec_load(dst + i)
        for t in range(1, rows):
            row = track_nan(vec_load(src + t * src_step + i), nan, src)
            if t % 2:
                other = vec_max(other, row, src)
            else:
                best = vec_max(best, row, src)
        vec_store(dst + i, vec_max(best, other, src))
        if i + lanes >= n:
            return
        i = imin(i + lanes, n - lanes)


cdef inline void max_rows_of(number *dst, const number *src, Py_ssize_t src_step, Py_ssize_t rows,
                             Py_ssize_t n, bint first, vec_flag *nan) noexcept nogil:
    if rows == ROWS_AT_ONCE and not first:
        max_rows_body(dst, src, src_step, ROWS_AT_ONCE, n, False, nan)
    else:
        max_rows_body(dst, src, src_step, rows, n, first, nan)


cdef void max_rows(number *dst, const number *src, Py_ssize_t src_step, Py_ssize_t rows,
                   Py_ssize_t n, bint first, vec_flag *nan) noexcept nogil:
    """Include rows in n maxima, at least a vector. If `first`, there are none before."""
    cdef vec_flag seen
    if nan == NULL or not has_nans(src):
        max_rows_of(dst, src, src_step, rows, n, first, NULL)
    else:
        seen = nan[0]
        max_rows_of(dst, src, src_step, rows, n, first, &seen)
        nan[0] = seen


cdef void separate_row_pass(number *dst, Py_ssize_t dst_step, const number *src,
                            Py_ssize_t src_step, Py_ssize_t pixels, Py_ssize_t src_pixel,
                            Py_ssize_t n, const Pass *run) noexcept nogil:
    """row_pass for windows that share no rows; rows are `pixels` times n columns.

    n is at least a vector. The pixels of a row of outputs are contiguous.
    """
    cdef const Window *w = run.window
    cdef Py_ssize_t step = w.dilation * src_step, o, t, c, lo, at, real, rows
    for o in range(run.count):
        real = real_taps(w, run.first + o, &lo)
        if real == 0:
            fill_lowest(dst, pixels * n)
        t = 0
        while t < real:
            rows = imin(ROWS_AT_ONCE, real - t)
            for c in range(pixels):
                at = (lo - run.origin) * src_step + t * step + c * src_pixel
                if run.keys == NULL:
                    max_rows(dst + c * n, src + at, step, rows, n, t == 0, run.nan)
                else:
                    max_key_rows(dst + c * n, src, at, step, rows, n, t == 0, run)
            t += rows
        dst += dst_step


cdef void max_key_rows(number *dst, const number *src, Py_ssize_t at, Py_ssize_t step,
                       Py_ssize_t rows, Py_ssize_t n, bint first, const Pass *run) noexcept nogil:
    """Copy rows that become keys, from src's element `at` on, and include them in the maximum."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), i = 0
    cdef Py_ssize_t most = COPIED_BYTES // ROWS_AT_ONCE // <Py_ssize_t>sizeof(number), width
    cdef Py_ssize_t slots = imin(run.window.kernel, run.count)
    cdef number *copied = <number *>(run.chain + imax(CHAIN_BYTES, slots * VEC_BYTES))
    while True:
        width = imin(most, n - i)
        run.keys.load(copied, most, element(src, at + i, run.keys), step, rows, width,
                      run.keys.rule)
        max_rows(dst + i, <const number *>copied, most, rows, width, first, NULL)
        if i + most >= n:
            return
        i = imin(i + most, n - lanes)


cdef void chain_row_pass(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step,
                         Py_ssize_t n, const Pass *run) noexcept nogil:
    """row_pass for windows of two steps over narrow rows.

    The first step stores rows in the chain, one after the other.
    """
    cdef Taps taps
    cdef const Window *w = run.window
    cdef number *chain = <number *>run.chain
    cdef Py_ssize_t lo = run.first * w.stride - w.begin, origin = run.origin
    cdef Py_ssize_t rows = (run.count - 1) * w.stride + w.extent - w.lasts[0]
    # the rows whose taps are all inside
    cdef Py_ssize_t begin = imin(rows, imax(0, -lo))
    cdef Py_ssize_t end = imax(begin, imin(rows, w.size - w.lasts[0] - lo))
    cdef Py_ssize_t r = 0, at, real
    step_taps(&taps, w, 0, src_step)
    while r < rows:
        if r == begin and end > begin:
            window_rows(chain + r * n, n, src + (lo + r - origin) * src_step, src_step, &taps,
                        end - begin, n, run.nan)
            r = end
            continue
        at = lo + r
        real = w.taps[0]                # a few taps: a division would take longer than a loop
        while real > 0 and at < 0:
            at, real = at + w.shifts[0], real - 1
        while real > 0 and at + (real - 1) * w.shifts[0] >= w.size:
            real -= 1
        if real == 0:
            fill_lowest(chain + r * n, n)
        else:
            taps.count = real
            window_rows(chain + r * n, n, src + (at - origin) * src_step, 0, &taps, 1, n, run.nan)
            taps.count = w.taps[0]
        r += 1
    step_taps(&taps, w, 1, n)
    window_rows(dst, dst_step, <const number *>chain, w.stride * n, &taps, run.count, n, NULL)


cdef void long_row_pass(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step,
                        Py_ssize_t n, const Pass *run) noexcept nogil:
    """row_pass for long windows, a few columns at a time.

    Rows that become keys are copied first. So are rows shorter than a vector, without masks.
    """
    cdef const Window *w = run.window
    cdef const Keys *keys = run.keys
    cdef Pass part = run[0]
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef Py_ssize_t lo = run.first * w.stride - w.begin
    cdef Py_ssize_t length = (run.count - 1) * w.stride + w.extent
    cdef Py_ssize_t begin = imax(lo, 0), end = imin(lo + length, w.size)
    cdef Py_ssize_t slots = imin(w.kernel, run.count), block = n, start = 0, width, pitch, r
    cdef bint copied = keys != NULL or (not VEC_MASKS and n < lanes)
    cdef bint wide = slots * 4 * VEC_BYTES <= CHAIN_BYTES
    cdef number *rows = <number *>run.chain
    rows += imax(CHAIN_BYTES, slots * VEC_BYTES) // <Py_ssize_t>sizeof(number)
    if share_no_rows(w, run.count) and n >= lanes:
        separate_row_pass(dst, dst_step, src, src_step, 1, 0, n, run)
        return
    if w.steps == 2 and n < 4 * lanes and keys == NULL:
        chain_row_pass(dst, dst_step, src, src_step, n, run)
        return
    if run.nan != NULL and has_nans(src) and n > 8 * lanes and not copied:
        # Whole rows first: memory is slow to give a tile in strips of a few vectors.
        track_nan_rows(src + (begin - run.origin) * src_step, src_step, end - begin, n, run.nan)
        part.nan = NULL
    if not copied:
        van_herk_rows(dst, dst_step, src, src_step, n, False, wide, &part)
        return
    block = imax(lanes, COPIED_BYTES // VEC_BYTES // length * lanes)
    part.origin = begin
    while start < n:
        width = imin(block, n - start)
        pitch = round_up(width, lanes)
        if keys != NULL:
            keys.load(rows, pitch, element(src, (begin - run.origin) * src_step + start, keys),
                      src_step, end - begin, width, keys.rule)
        else:
            for r in range(end - begin):
                fill_lowest(rows + r * pitch, lanes)
                memcpy(rows + r * pitch, src + (begin + r - run.origin) * src_step,
                       n * sizeof(number))
        van_herk_rows(dst + start, dst_step, <const number *>rows, pitch, width, True, wide, &part)
        start += block


cdef struct Turn:               # outputs first, first + turns, ...: taps on the same elements
    const Window *window
    Py_ssize_t origin           # as in Pass
    char *slots                 # a vector per window between two middles
    Py_ssize_t first, turns, count
    Py_ssize_t nbytes           # of each output, where it is not four vectors wide


cdef void van_herk_rows(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step,
                        Py_ssize_t n, bint padded, bint wide, const Pass *run) noexcept nogil:
    """Pool n columns, four vectors wide if `wide`. If `padded`, whole vectors may be read."""
    cdef const Window *w = run.window
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), i, residue, a = w.stride
    cdef Turn turn
    cdef vec_flag seen = flag_none()
    cdef vec_flag *nan = &seen if run.nan != NULL and has_nans(src) else NULL
    cdef bint four
    turn.window, turn.origin, turn.slots = w, run.origin, run.chain
    # Windows whose taps are the same elements follow each other in every `turns`th output.
    turn.turns = 1
    if w.dilation > 1:
        turn.turns = w.dilation
        while a > 0:
            turn.turns, a = a, turn.turns % a
        turn.turns = w.dilation // turn.turns
    for residue in range(imin(turn.turns, run.count)):
        turn.first = run.first + residue
        turn.count = ceil_div(run.count - residue, turn.turns)
        i = 0
        while i < n:
            four = wide and i + 4 * lanes <= n
            if not four and n >= lanes:
                i = imin(i, n - lanes)
            turn.nbytes = imin(lanes, n - i) * <Py_ssize_t>sizeof(number)
            van_herk(dst + residue * dst_step + i, dst_step * turn.turns, src + i, src_step,
                     four, n < lanes and not padded, &turn, nan)
            i += 4 * lanes if four else lanes
    if nan != NULL:
        run.nan[0] = flag_or(run.nan[0], seen)


cdef struct FourVectors:
    vec_t w, x, y, z


cdef inline void max_update(FourVectors *best, const number *at, bint wide, bint masked,
                            Py_ssize_t nbytes, vec_flag *nan) noexcept nogil:
    """Include one more row in the maximum."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef FourVectors more
    more.w = vec_load_part(at, nbytes) if masked else vec_load(at)
    if wide:
        more.x, more.y = vec_load(at + lanes), vec_load(at + 2 * lanes)
        more.z = vec_load(at + 3 * lanes)
        if nan != NULL:
            nan[0] = nan_or(nan_or(nan[0], more.w, more.x, at), more.y, more.z, at)
        best.x, best.y = vec_max(best.x, more.x, at), vec_max(best.y, more.y, at)
        best.z = vec_max(best.z, more.z, at)
    elif nan != NULL:
        nan[0] = nan_or(nan[0], more.w, more.w, at)
    best.w = vec_max(best.w, more.w, at)


cdef inline void van_herk_body(number *dst, Py_ssize_t dst_step, const number *src,
                               Py_ssize_t src_step, bint wide, bint masked, const Turn *turn,
                               vec_flag *nan) noexcept nogil:
    cdef const Window *w = turn.window
    cdef number *slots = <number *>turn.slots
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef Py_ssize_t nbytes = VEC_BYTES if wide else turn.nbytes, count = turn.count
    cdef Py_ssize_t slot = 4 * lanes if wide else lanes
    cdef Py_ssize_t stride = w.stride, step = w.dilation * src_step     # in taps; in elements
    cdef Py_ssize_t top = turn.first * w.stride - w.begin
    cdef Py_ssize_t lo = imax(-top, 0), hi = imax(w.size - top, 0)      # taps that are elements
    cdef Py_ssize_t i, j, from_j = 0, to_j, middle = 0
    cdef const number *taps = src + (top - turn.origin) * src_step
    cdef number *held
    cdef FourVectors best
    if w.dilation > 1:                  # (64-bit divisions, each the time of a row)
        stride = w.stride * turn.turns // w.dilation
        lo, hi = ceil_div(lo, w.dilation), ceil_div(hi, w.dilation)
    while from_j < count:
        middle += w.kernel
        # the windows that start before the middle
        to_j = imin(count, middle if stride == 1 else ceil_div(middle, stride))
        best.w = best.x = best.y = best.z = vec_lowest(src)
        i, j = imin(middle, hi), to_j
        while j > from_j:
            j -= 1
            while i > imax(j * stride, lo):
                i -= 1
                max_update(&best, taps + i * step, wide, masked, nbytes, nan)
            held = slots + (j - from_j) * slot
            vec_store(held, best.w)
            if wide:
                vec_store(held + lanes, best.x)
                vec_store(held + 2 * lanes, best.y)
                vec_store(held + 3 * lanes, best.z)
        best.w = best.x = best.y = best.z = vec_lowest(src)
        i = imax(middle, lo)
        while j < to_j:
            while i < imin(j * stride + w.kernel, hi):
                max_update(&best, taps + i * step, wide, masked, nbytes, nan)
                i += 1
            held = slots + (j - from_j) * slot
            store_lanes(dst, vec_max(vec_load(held), best.w, src), nbytes)
            if wide:
                vec_store(dst + lanes, vec_max(vec_load(held + lanes), best.x, src))
                vec_store(dst + 2 * lanes, vec_max(vec_load(held + 2 * lanes), best.y, src))
                vec_store(dst + 3 * lanes, vec_max(vec_load(held + 3 * lanes), best.z, src))
            dst += dst_step
            j += 1
        from_j = to_j


cdef void van_herk(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t src_step,
                   bint wide, bint masked, const Turn *turn, vec_flag *nan) noexcept nogil:
    """Pool the outputs of a turn: four vectors wide, or turn.nbytes of one vector.

    If `masked`, the rest of that vector must not be read.

    Taps are counted from the first window's on. Every kernel'th is a middle. A window that starts
    before a middle is the maximum of two running maxima: of its taps before the middle, made
    upwards and kept per window in `slots`, and of its taps after it, made downwards. So every tap
    is read twice, however many windows it is in.
    """
    cdef vec_flag seen
    if nan == NULL:
        if wide:
            van_herk_body(dst, dst_step, src, src_step, True, False, turn, NULL)
        elif masked:
            van_herk_body(dst, dst_step, src, src_step, False, True, turn, NULL)
        else:
            van_herk_body(dst, dst_step, src, src_step, False, False, turn, NULL)
        return
    seen = nan[0]
    if wide:
        van_herk_body(dst, dst_step, src, src_step, True, False, turn, &seen)
    elif masked:
        van_herk_body(dst, dst_step, src, src_step, False, True, turn, &seen)
    else:
        van_herk_body(dst, dst_step, src, src_step, False, False, turn, &seen)
    nan[0] = seen


cdef inline Py_ssize_t chain_elements(const Pool *p, const Window *w, Py_ssize_t count,
                                      Py_ssize_t size, bint in_keys) noexcept nogil:
    """Return the elements of CHAIN for `count` outputs.

    It holds rows of pairs; or a vector per window and copied rows; or the rows of two steps.
    """
    cdef Py_ssize_t length = ((count - 1) * w.stride + w.extent) * VEC_BYTES, nbytes
    if p.with_indices:
        return imax(CHAIN_BYTES, 2 * length) // size
    nbytes = imax(CHAIN_BYTES, imin(w.kernel, count) * VEC_BYTES)
    if in_keys or not VEC_MASKS:
        nbytes += imax(COPIED_BYTES, length)
    if w.steps == 2:
        nbytes = imax(nbytes, 4 * length)
    return nbytes // size


cdef void long_windows_scratch(const Pool *p, Py_ssize_t *size, Py_ssize_t element,
                               bint in_keys) noexcept nogil:
    cdef const Problem *problem = &p.frame.problem
    cdef const Tiling *tiling = &p.frame.tiling
    if problem.rows.steps > 1:
        size[<int>CHAIN] = chain_elements(p, &problem.rows, tiling.rows, element, in_keys)
    if problem.channels_last and problem.cols.steps > 1:
        size[<int>CHAIN] = imax(size[<int>CHAIN],
                                chain_elements(p, &problem.cols, tiling.cols, element, False))
