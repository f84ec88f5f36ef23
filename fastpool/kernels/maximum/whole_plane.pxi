# Takes:   one window over all of a plane of at most 512 KiB, whose rows are contiguous
# Reads:   the input in place
# Scratch: keys of some planes (SLAB, POOLED); a band where rows are not contiguous
# Wins:    float32 1x2048x7x7 k7: 44 -> 20 us (AVX-512), 63 -> 31 (AVX2), 127 -> 26 (baseline);
#          planes of up to FEW_ELEMENTS that do not fill a vector, one by one:
#          uint32 2x2 18 -> 2 ns a plane, uint8 3x3 43 -> 3 (AVX2); keys of several planes at a
#          time: bfloat16 1x768x16x17 36 -> 18 us

cdef enum:
    FEW_ELEMENTS = 16
    FEW_MASKED = 6          # where masks are (float32 3x3 6.1 -> 3 ns a plane by masked loads)
    MAX_VEC_BYTES = 64


cdef vec_flag pool_few(max_t *dst, const Target *to, const max_t *src, const Source *s,
                       const Work *work) noexcept nogil:
    """Pool each plane of a few elements to one value, without vectors."""
    cdef Py_ssize_t n = s.rows * s.cols, i, plane
    cdef max_t most, nan = 0
    cdef max_t lanes[MAX_VEC_BYTES]
    for plane in range(work.planes):
        most = src[0]
        for i in range(n):
            if src[i] > most:
                most = src[i]
            if max_t is float or max_t is double:
                if src[i] != src[i]:
                    nan = src[i]
        dst[0] = most
        src, dst = src + s.plane, dst + to.plane
    memset(lanes, 0, sizeof(lanes))
    lanes[0] = nan
    return nan_or(flag_none(), vec_load(lanes), vec_load(lanes), src)


cdef vec_flag pool_whole_plane(number *dst, const Target *to, const number *src, const Source *s,
                               const Work *work) noexcept nogil:
    """Pool each plane to one value."""
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(number), n = s.rows * s.cols, i, plane
    cdef vec_t a, b, c, d
    cdef vec_flag nan = flag_none()
    cdef byte_mask mask = vec_mask_range(0, n * <Py_ssize_t>sizeof(number))
    if number in max_t:
        if 0 < n <= (FEW_MASKED if VEC_MASKS else FEW_ELEMENTS) and n < lanes:
            return pool_few(dst, to, src, s, work)
    for plane in range(work.planes):
        if n < lanes:
            a = vec_masked_load_or(src, mask, vec_lowest(src))
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
        narrow_store(dst, vec_reduce_max(a, src), sizeof(number))
        src, dst = src + s.plane, dst + to.plane
    return nan


cdef inline bint planes_are_one_run(const Pool *pool, const View *x, const View *y) noexcept nogil:
    """Are planes of keys taken whole, and are these, and their results, without gaps in memory?"""
    cdef const Problem *p = &pool.frame.problem
    return (pool.strategy == WHOLE_PLANE and pool.keyed and p.leads == 0 and evenly_spaced(p, x)
            and evenly_spaced(p, y) and (x.row == p.cols.size or p.rows.size == 1)
            and x.channel == p.rows.size * p.cols.size and y.channel == 1)


cdef void tile_planes_of_keys(const Pool *pool, const View *x, const View *y, const Tile *tile,
                              Scratch *scratch, any_key *tag) noexcept nogil:
    """Pool whole planes as keys, some at a time."""
    cdef const Problem *p = &pool.frame.problem
    cdef any_key *keys = <any_key *>area_of(pool, scratch.area, SLAB)
    cdef any_key *pooled = <any_key *>area_of(pool, scratch.area, POOLED)
    cdef keys_load_t load = keys_loader(p.code, <int>sizeof(any_key))
    cdef keys_store_t store = keys_storer(p.code, <int>sizeof(any_key))
    cdef Source source
    cdef Target target
    cdef Work work
    cdef Py_ssize_t plane = 0
    work.pool, work.tile = pool, tile
    source.rows, source.cols = p.rows.size, p.cols.size
    source.plane, target.plane = p.rows.size * p.cols.size, 1
    while plane < tile.planes:
        work.planes = imin(tile.planes - plane, imax(1, POOLED_KEYS // source.plane))
        load(keys, 0, x.data + input_offset(p, x, tile, plane) * p.size, 0, 1,
             work.planes * source.plane, pool.rule)
        pool_planes(pooled, &target, <const any_key *>keys, &source, &work)
        store(y.data + output_offset(p, y, tile, plane) * p.size, 0, pooled, 0, 1, work.planes,
              pool.rule)
        plane += work.planes
