# Small windows of channels-first planes, in registers: no band, no margins.
#
# At stride 1 (`pool_down`) a column of vectors goes down the rows: a row's windows are taken from unaligned loads, the last
# rows stay in registers. At stride 2 or 4 (`pool_along`) the rows under an output row are taken vector by vector, and their
# columns paired by shuffles. Lanes outside the input are replaced as they are loaded, which takes masks: without them a band
# with margins is faster (CONTRIBUTING.md, "What was tried"). NaN are noted on the way: the caller takes a tile again, as
# keys, if there was one (a maximum of floats drops its first operand's). Planes of a few vectors are taken as one row, with
# a mask per tap that says in which lanes it is inside (`pool_flat`), those under long windows as one row too, with margins
# (`pool_padded`).

cdef struct Source:         # the input under a tile
    Py_ssize_t row, plane           # elements from one to the next
    Py_ssize_t rows, cols           # how many there are


cdef inline vec_t tap_at(const number *at, const vec_edge *edge) noexcept nogil:
    return vec_load(at) if edge == NULL else vec_load_inside(at, edge[0], vec_lowest(at))


cdef inline const vec_edge *edge_of(const vec_edge *edges, Py_ssize_t tap) noexcept nogil:
    return NULL if edges == NULL else edges + tap


cdef inline vec_t across(const number *src, Py_ssize_t row, const Source *s, const Py_ssize_t *taps, Py_ssize_t ntaps,
                         const vec_edge *edges, vec_flag *nan) noexcept nogil:
    """Windows along one row, one per lane."""
    cdef const number *at = src + row * s.row
    cdef vec_t best, last
    cdef Py_ssize_t t
    if not 0 <= row < s.rows:
        return vec_lowest(src)
    best = tap_at(at + taps[0], edge_of(edges, 0))
    last = tap_at(at + taps[ntaps - 1], edge_of(edges, ntaps - 1))
    for t in range(1, ntaps - 1):
        best = vec_max(best, tap_at(at + taps[t], edge_of(edges, t)), src)
    nan[0] = nan_or(nan[0], best, last, src)
    return vec_max(best, last, src)


cdef inline void put(number *dst, vec_t v, Py_ssize_t nbytes) noexcept nogil:
    if nbytes == VEC_BYTES:
        vec_store(dst, v)
    else:
        vec_store_part(dst, v, nbytes)


cdef struct Few:            # a row's three or five taps, kept in registers
    Py_ssize_t a, b, c, d, e
    vec_edge edge_a, edge_b, edge_c, edge_d, edge_e


cdef inline vec_t across_few(const number *at, const Few *f, bint five, bint edged, vec_flag *nan) noexcept nogil:
    cdef vec_t best = tap_at(at + f.a, &f.edge_a if edged else NULL), last = tap_at(at + f.c, &f.edge_c if edged else NULL)
    best = vec_max(best, tap_at(at + f.b, &f.edge_b if edged else NULL), at)
    if five:
        best = vec_max(best, vec_max(tap_at(at + f.d, &f.edge_d if edged else NULL),
                                     tap_at(at + f.e, &f.edge_e if edged else NULL), at), at)
    nan[0] = nan_or(nan[0], best, last, at)
    return vec_max(best, last, at)


cdef inline void slide_few(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t row, Py_ssize_t step, const Source *s,
                           Py_ssize_t count, const Few *few, bint five, bint edged, Py_ssize_t nbytes, vec_flag *nan) noexcept nogil:
    """As `slide`, for 3 x 3 and 5 x 5 windows, two outputs at a time. The last row of the first window is an element's."""
    cdef Few f = few[0]
    cdef Py_ssize_t jump = step * s.row, i, real
    cdef const number *at = src + row * s.row
    cdef vec_t a, b, c, d, e, both, outside = vec_lowest(src)
    a = b = c = d = outside
    for i in range(4 if five else 2):
        if five:
            a, b = b, c
        c, d = d, across_few(at, &f, five, edged, nan) if 0 <= row < s.rows else outside
        at, row = at + jump, row + step
    real = imin(count, (s.rows - 1 - row) // step + 1) if row < s.rows else 0       # outputs whose last row is there
    i = 0
    while True:
        # windows: (a b) c d e
        e = across_few(at, &f, five, edged, nan) if i < real else outside
        both = vec_max(d, e, src)
        if five:
            both = vec_max(both, vec_max(b, c, src), src)
            put(dst, vec_max(both, a, src), nbytes)
            a, b = c, d
        else:
            put(dst, vec_max(both, c, src), nbytes)
        i += 1
        if i == count:
            return
        c, d = e, across_few(at + jump, &f, five, edged, nan) if i < real else outside
        put(dst + dst_step, vec_max(both, d, src), nbytes)
        i += 1
        if i == count:
            return
        at, dst = at + 2 * jump, dst + 2 * dst_step


cdef void slide(number *dst, Py_ssize_t dst_step, const number *src, Py_ssize_t row, Py_ssize_t step, const Source *s,
                Py_ssize_t kernel, Py_ssize_t count, const Py_ssize_t *taps, Py_ssize_t ntaps, const vec_edge *edges,
                Py_ssize_t nbytes, vec_flag *nan) noexcept nogil:
    """`count` windows of `kernel` rows, `step` apart, each one such step below the last; the first starts in `row`."""
    cdef vec_t ring[SMALL_TAPS]
    cdef vec_t best
    cdef Py_ssize_t i, t
    for i in range(kernel - 1):
        ring[i] = across(src, row + i * step, s, taps, ntaps, edges, nan)
    row += (kernel - 1) * step
    for i in range(count):
        ring[(i + kernel - 1) % SMALL_TAPS] = across(src, row, s, taps, ntaps, edges, nan)
        best = ring[i % SMALL_TAPS]
        for t in range(1, kernel):
            best = vec_max(best, ring[(i + t) % SMALL_TAPS], src)
        put(dst, best, nbytes)
        dst, row = dst + dst_step, row + step


cdef vec_flag pool_down(number *dst, Py_ssize_t dst_row, Py_ssize_t dst_plane, const number *src, const Source *s,
                        Py_ssize_t planes, const Pool *p, const Tile *tile) noexcept nogil:
    """A tile at stride 1; src is its first element."""
    cdef Py_ssize_t taps[SMALL_TAPS]
    cdef vec_edge edges[SMALL_TAPS]
    cdef Py_ssize_t size = sizeof(number), lanes = VEC_BYTES // size, n = tile.cols, ntaps = p.cols.kernel
    cdef Py_ssize_t start = tile.col - p.cols.begin - tile.col_lo, top = tile.row - p.rows.begin - tile.row_lo
    cdef Py_ssize_t o = 0, t, col, nbytes, plane, residue, count, step = p.rows.dilation
    cdef number *to
    cdef const number *at
    cdef vec_flag nan = flag_none()
    cdef bint inner, five = ntaps == 5, square = ntaps == p.rows.kernel and (ntaps == 3 or five) and top + (ntaps - 1) * step >= 0
    cdef Few few
    # A NaN survives as the last operand of a maximum. Every column is the last tap of some output, or met by the tap that
    # stands at the first column in output 0 (`notes_all`): with that one in the last place but one a single comparison finds
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
            edges[t] = vec_inside(-col * size, (s.cols - col) * size)
            inner = inner and col >= 0 and col + lanes <= s.cols
        few.a, few.b, few.c = taps[0], taps[1], taps[ntaps - 1]
        few.edge_a, few.edge_b, few.edge_c = edges[0], edges[1], edges[ntaps - 1]
        if five:
            few.b, few.d, few.e, few.edge_b, few.edge_d, few.edge_e = taps[1], taps[2], taps[3], edges[1], edges[2], edges[3]
        for plane in range(planes):
            for residue in range(imin(step, tile.rows)):        # dilated rows: as many slides, in turns
                to = dst + plane * dst_plane + residue * dst_row + o
                at = src + plane * s.plane + start + o
                count = ceil_div(tile.rows - residue, step)
                if square and five:
                    if inner:
                        slide_few(to, dst_row * step, at, top + residue, step, s, count, &few, True, False, VEC_BYTES, &nan)
                    else:
                        slide_few(to, dst_row * step, at, top + residue, step, s, count, &few, True, True, nbytes, &nan)
                elif square:
                    if inner:
                        slide_few(to, dst_row * step, at, top + residue, step, s, count, &few, False, False, VEC_BYTES, &nan)
                    else:
                        slide_few(to, dst_row * step, at, top + residue, step, s, count, &few, False, True, nbytes, &nan)
                else:
                    slide(to, dst_row * step, at, top + residue, step, s, p.rows.kernel, count, taps, ntaps,
                          NULL if inner else edges, nbytes, &nan)
        o += lanes
    return nan


cdef inline void column_pair(vec_t *a, vec_t *b, const number *src, const Py_ssize_t *taps, Py_ssize_t ntaps, const vec_edge *edges,
                             bint both, vec_flag *nan) noexcept nogil:
    """The maximum of `ntaps` rows, two vectors wide; without `both` the second is outside."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef vec_t left, right
    cdef Py_ssize_t t
    a[0] = tap_at(src + taps[0], edge_of(edges, 0))
    b[0] = tap_at(src + taps[0] + lanes, edge_of(edges, 1)) if both else vec_lowest(src)
    nan[0] = nan_or(nan[0], a[0], b[0], src)
    for t in range(1, ntaps):
        left = tap_at(src + taps[t], edge_of(edges, 0))
        a[0] = vec_max(a[0], left, src)
        if both:
            right = tap_at(src + taps[t] + lanes, edge_of(edges, 1))
            nan[0] = nan_or(nan[0], left, right, src)
            b[0] = vec_max(b[0], right, src)
        else:
            nan[0] = nan_or(nan[0], left, left, src)


cdef inline vec_t joined(vec_t evens, vec_t odds, vec_t next_evens, Py_ssize_t kernel, const number *src) noexcept nogil:
    """Windows of 2 or 3 columns from the columns at even and odd places."""
    evens, odds = vec_max(evens, odds, src), evens
    return evens if kernel == 2 else vec_max(evens, vec_next(odds, next_evens, src), src)


cdef inline void pairs_along(number *dst, const number *src, const Py_ssize_t *taps, Py_ssize_t ntaps, const vec_edge *edges,
                             Py_ssize_t kernel, Py_ssize_t n, bint both, vec_flag *nan) noexcept nogil:
    """One row of n windows of 2 or 3 columns at stride 2. Edges are those of the first pair of vectors, of the last, of the
    one beyond; `both`: has the last one anything in its second vector?"""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number)
    cdef vec_t a, b, evens, odds, next_evens, next_odds
    if n > lanes:
        column_pair(&a, &b, src, taps, ntaps, edges, True, nan)
        evens, odds = vec_evens(a, b, src), vec_odds(a, b, src)
        while n > 2 * lanes:
            src += 2 * lanes
            column_pair(&a, &b, src, taps, ntaps, NULL, True, nan)
            next_evens, next_odds = vec_evens(a, b, src), vec_odds(a, b, src)
            vec_store(dst, joined(evens, odds, next_evens, kernel, src))
            evens, odds = next_evens, next_odds
            dst, n = dst + lanes, n - lanes
        src += 2 * lanes
        column_pair(&a, &b, src, taps, ntaps, edges + 2, both, nan)
        next_evens, next_odds = vec_evens(a, b, src), vec_odds(a, b, src)
        vec_store(dst, joined(evens, odds, next_evens, kernel, src))
        dst, n = dst + lanes, n - lanes
    else:
        column_pair(&a, &b, src, taps, ntaps, edges + 2, both, nan)
        next_evens, next_odds = vec_evens(a, b, src), vec_odds(a, b, src)
    evens = vec_lowest(src)
    if n == lanes and kernel == 3:
        column_pair(&a, &b, src + 2 * lanes, taps, ntaps, edges + 4, False, nan)
        evens = vec_evens(a, b, src)
    put(dst, joined(next_evens, next_odds, evens, kernel, src), n * <Py_ssize_t>sizeof(number))


cdef inline void apart_along(number *dst, const number *src, const Py_ssize_t *taps, Py_ssize_t ntaps, Py_ssize_t stride,
                             Py_ssize_t n, vec_flag *nan) noexcept nogil:
    """One row of n windows of 2 or 4 columns at that stride, n at least a vector."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), i = 0
    cdef vec_t a, b, c, d
    while True:
        column_pair(&a, &b, src + i * stride, taps, ntaps, NULL, True, nan)
        a = vec_max(vec_evens(a, b, src), vec_odds(a, b, src), src)
        if stride == 4:
            column_pair(&c, &d, src + 4 * i + 2 * lanes, taps, ntaps, NULL, True, nan)
            c = vec_max(vec_evens(c, d, src), vec_odds(c, d, src), src)
            a = vec_max(vec_evens(a, c, src), vec_odds(a, c, src), src)
        vec_store(dst + i, a)
        if i == n - lanes:
            return
        i = imin(i + lanes, n - lanes)


cdef vec_flag pool_along(number *dst, Py_ssize_t dst_row, Py_ssize_t dst_plane, const number *src, const Source *s,
                         Py_ssize_t planes, const Pool *p, const Tile *tile, const Leads *leads) noexcept nogil:
    """A tile, row by row; src is its first element."""
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef vec_edge edges[6]
    cdef Py_ssize_t size = sizeof(number), lanes = VEC_BYTES // size, n = tile.cols, stride = p.cols.stride
    cdef Py_ssize_t start = tile.col * stride - p.cols.begin - tile.col_lo, last = (n - 1) // lanes * lanes * stride
    cdef Py_ssize_t fewer[MAX_TAPS]
    cdef Py_ssize_t plane, r, i, col, row, real, step = p.rows.dilation * s.row
    cdef const Py_ssize_t *row_of
    cdef bint both = start + last + lanes < s.cols
    cdef vec_flag nan = flag_none()
    cdef const number *at
    for i in range(6):
        col = start + (i % 2) * lanes + (0 if i < 2 else last if i < 4 else last + 2 * lanes)
        edges[i] = vec_inside(-col * size, (s.cols - col) * size)
    cross(taps, leads, p.rows.kernel, step)
    for plane in range(planes):
        for r in range(tile.rows):
            real = real_taps(&p.rows, tile.row + r, &row)
            if real == 0:
                fill(dst + r * dst_row, n, <number>lowest(dst))
                continue
            row_of = taps
            if real < p.rows.kernel and leads.count > 1:        # (of one slab the taps are a part of the whole window's)
                cross(fewer, leads, real, step)
                row_of = fewer
            at = src + (row - tile.row_lo) * s.row + start
            if p.form == APART:
                apart_along(dst + r * dst_row, at, row_of, real * leads.count, stride, n, &nan)
            elif VEC_MASKS:
                pairs_along(dst + r * dst_row, at, row_of, real * leads.count, edges, p.cols.kernel, n, both, &nan)
        src, dst = src + s.plane, dst + dst_plane
    return nan


cdef vec_flag pool_whole(number *dst, Py_ssize_t dst_plane, const number *src, const Source *s, Py_ssize_t planes,
                         Py_ssize_t n) noexcept nogil:
    """One window over all n elements of each plane, which lie side by side."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), i, plane
    cdef vec_t a, b, c, d
    cdef vec_flag nan = flag_none()
    cdef vec_edge edge = vec_inside(0, n * <Py_ssize_t>sizeof(number))
    for plane in range(planes):
        if n < lanes:
            a = vec_load_inside(src, edge, vec_lowest(src))
            nan = nan_or(nan, a, a, src)
        else:
            a = b = vec_load(src + n - lanes)
            i = 0
            while i + 2 * lanes <= n:
                c, d = vec_load(src + i), vec_load(src + i + lanes)
                nan = nan_or(nan, c, d, src)
                a, b = vec_max(a, c, src), vec_max(b, d, src)
                i += 2 * lanes
            if i + lanes <= n:
                c = vec_load(src + i)
                nan = nan_or(nan, a, c, src)
                a = vec_max(a, c, src)
            c = vec_load(src + n - lanes)
            nan = nan_or(nan, c, c, src)
            a = vec_max(a, b, src)
        narrow_store(dst, vec_reduce(a, src), sizeof(number))
        src, dst = src + s.plane, dst + dst_plane
    return nan


cdef vec_flag pool_flat(number *dst, const number *stop, const number *src, Py_ssize_t n, const Pool *p) noexcept nogil:
    """Planes of n elements in all as one row, a window at each element; those that are outputs are stored up to `stop`."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), i = 0, t
    cdef const vec_edge *masks = p.flat_masks
    cdef const vec_edge *end = masks + p.flat_period * (p.flat_taps + 1)
    cdef vec_edge there
    cdef vec_t best
    cdef vec_flag nan = flag_none()
    while i < n:
        there = vec_inside(0, (n - i) * <Py_ssize_t>sizeof(number))
        best = vec_load_inside(src + i, there, vec_lowest(src))
        nan = nan_or(nan, best, best, src)
        for t in range(p.flat_taps):
            best = vec_max(best, vec_load_inside(src + i + p.flat_offsets[t], masks[t] & there, vec_lowest(src)), src)
        if not p.flat_all:
            dst += vec_store_chosen(dst, best, masks[p.flat_taps] & there, sizeof(number), dst + lanes <= stop)
        else:
            put(dst + i, best, imin(lanes, n - i) * <Py_ssize_t>sizeof(number))
        masks += p.flat_taps + 1
        if masks == end:
            masks = p.flat_masks
        i += lanes
    return nan


cdef inline Py_ssize_t padded_plane(const Window *rows, const Window *cols) noexcept nogil:
    """Elements of a plane at stride 1 with its margins."""
    return (rows.out - 1 + rows.extent) * (cols.out - 1 + cols.extent)


cdef vec_flag pool_padded(number *dst, Py_ssize_t dst_row, Py_ssize_t dst_plane, const number *src, const Source *s,
                          Py_ssize_t planes, const Pool *p, const Tile *tile, number *area) noexcept nogil:
    """Whole planes under long windows: copied with margins all around, they are one row to every step of both chains."""
    cdef Py_ssize_t taps[MAX_TAPS]
    cdef Py_ssize_t zero = 0, lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), pitch = tile.span, step, plane
    cdef Py_ssize_t each = padded_plane(&p.rows, &p.cols), inside = imax(p.rows.begin, 0) * pitch + tile.left
    cdef vec_flag nan = flag_none()
    fill(area, planes * each, <number>lowest(area))
    for plane in range(planes):
        window_rows(area + plane * each + inside, pitch, src + plane * s.plane, s.row, &zero, 1, s.rows, s.cols, &nan)
    for step in range(p.cols.steps):
        step_taps(taps, &p.cols, step, 1)
        window_run(area, <const number *>area, taps, p.cols.taps[step], round_up(planes * each, lanes), NULL)
    for step in range(p.rows.steps - 1):
        step_taps(taps, &p.rows, step, pitch)
        window_run(area, <const number *>area, taps, p.rows.taps[step], round_up(planes * each, lanes), NULL)
    step_taps(taps, &p.rows, p.rows.steps - 1, pitch)
    for plane in range(planes):
        window_rows(dst + plane * dst_plane, dst_row, <const number *>(area + plane * each), pitch, taps,
                    p.rows.taps[p.rows.steps - 1], tile.rows, tile.cols, NULL)
    return nan


cdef vec_flag pool_small(number *dst, Py_ssize_t dst_row, Py_ssize_t dst_plane, const number *src, const Source *s,
                         Py_ssize_t planes, const Pool *p, const Tile *tile, const Leads *leads, number *area) noexcept nogil:
    if p.form == PADDED:
        return pool_padded(dst, dst_row, dst_plane, src, s, planes, p, tile, area)
    if VEC_MASKS and p.form == DOWN:
        return pool_down(dst, dst_row, dst_plane, src, s, planes, p, tile)
    if VEC_MASKS and p.form == FLAT:
        return pool_flat(dst, dst + planes * p.rows.out * p.cols.out, src, planes * p.rows.size * p.cols.size, p)
    if p.form != WHOLE:
        return pool_along(dst, dst_row, dst_plane, src, s, planes, p, tile, leads)
    return pool_whole(dst, dst_plane, src, s, planes, s.rows * s.cols)
