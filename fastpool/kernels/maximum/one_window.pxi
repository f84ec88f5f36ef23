# Takes:   one window over all of a plane, with its index, whatever the axes and strides
# Reads:   keys of some pixels at a time (keys.h)
# Scratch: these keys (SLAB); of each channel the greatest key and its pixel, among MOST_PLACES at
#          most (BAND, BAND_PLACES) and among all so far (POOLED, POOLED_PLACES)
# Wins:    AVX-512, an EPYC: float32 32x3x56x56 k56 358 -> 49 us, 1x5x17x21x12 k17x21x12 41 -> 4,
#          channels last 1x37x37x88 k37 75 -> 24, int16 1x1979x1979x1 5970 -> 180

cdef enum:
    KEYS_AT_ONCE = 4096
    MOST_PLACES = 1 << 16  # pixels that a place of the shortest keys tells apart


cdef inline void greatest_pixels(key_t *best, key_t *places, const key_t *keys, Py_ssize_t pixels,
                                 Py_ssize_t n, Py_ssize_t before) noexcept nogil:
    """Set the greatest key of each of n channels, and the number of its pixel.

    If there are pixels `before` these, `best` and `places` are theirs.
    """
    cdef Py_ssize_t lanes = VEC_BYTES // <Py_ssize_t>sizeof(key_t), i = 0, t
    cdef vec_t key, place, other, count, one = vec_set_int(1, keys)
    cdef vec_mask greater
    while i < n:
        key, place = vec_load(keys + i), vec_set_int(0, keys)
        count = place
        if before:
            key, place = vec_load(best + i), vec_load(places + i)
            count = vec_set_int(<key_t>(before - 1), keys)
        for t in range(1 if before == 0 else 0, pixels):
            other, count = vec_load(keys + t * n + i), vec_add_int(count, one, keys)
            greater = vec_gt(other, key, keys)
            key, place = vec_max(key, other, keys), vec_select(greater, count, place, keys)
        vec_store(best + i, key)
        vec_store(places + i, place)
        i += lanes


cdef inline void tile_one_window(const Pool *p, const Job *job, const Tile *tile, Scratch *scratch,
                                 const key_t *tag) noexcept nogil:
    """Pool some planes, or some channels of one batch, to one value and index each."""
    cdef const Problem *problem = &p.frame.problem
    cdef const View *x = &job.x
    cdef Py_ssize_t n = tile.channels, size = problem.size, most = imax(1, KEYS_AT_ONCE // n)
    cdef Py_ssize_t plane, r, i, c, at, pixels, done, since, some_runs, lines = 1, step = 0
    cdef keys_load_t load = keys_loader(problem.code, <int>sizeof(key_t))
    cdef key_t *keys = <key_t *>area_of(p, scratch.area, SLAB)
    cdef key_t *some = <key_t *>area_of(p, scratch.area, BAND)
    cdef key_t *some_places = <key_t *>area_of(p, scratch.area, BAND_PLACES)
    cdef key_t *best = <key_t *>area_of(p, scratch.area, POOLED)
    cdef int64_t *places = <int64_t *>area_of(p, scratch.area, POOLED_PLACES)
    cdef Runs runs = runs_of(problem, x, False)
    cdef int64_t base
    cdef const char *src
    if runs.axes:                       # runs that are evenly spaced
        lines = extent_of(problem, runs.axes - 1, False)
        step = step_of(x, problem, runs.axes - 1)
    for plane in range(tile.planes):
        done = since = 0                # pixels compared with `best`, and those after them
        r = 0
        while r < runs.count:           # some runs, or a part of one
            some_runs = imin(lines - r % lines, imax(1, most // runs.length))
            at = input_offset(problem, x, tile, plane) + run_offset(problem, x, &runs, r, False)
            r += some_runs
            i = 0
            while i < runs.length:
                pixels = imin(most, runs.length - i)
                for c in range(some_runs):
                    src = x.data + (at + c * step + i * x.col) * size
                    if x.col == n:
                        load(keys, pixels * n, src, step, some_runs, pixels * n, p.rule)
                        break
                    load(keys + c * pixels * n, n, src, x.col, pixels, n, p.rule)
                i += pixels
                pixels *= some_runs
                if n == 1:
                    some[0] = greatest(keys, pixels)
                else:
                    greatest_pixels(some, some_places, keys, pixels, n, since)
                since += pixels
                if n > 1 and since + KEYS_AT_ONCE <= MOST_PLACES:
                    if r < runs.count or i < runs.length:
                        continue
                for c in range(n):
                    if done == 0 or some[c] > best[c]:
                        best[c], places[c] = some[c], done
                        if n == 1:
                            places[c] += first_equal(keys, pixels, some[c])
                        elif key_t is int16_t:
                            places[c] += <uint16_t>some_places[c]
                        elif key_t is int32_t:
                            places[c] += <uint32_t>some_places[c]
                        else:
                            places[c] += some_places[c]
                done += since
                since = 0
        store_keys(&job.y, tile, plane, 0, 1, <const key_t *>best, p)
        base = tile_base(p, tile)
        if not problem.channels_last:
            base += plane_base(p, tile.plane + plane)
        at = output_offset(problem, &job.z, tile, plane)
        for c in range(n):
            done = <Py_ssize_t>base + c * p.indexing.channel + index_of_position(p, places[c])
            if p.indexing.bytes == 8:
                (<int64_t *>job.z.data)[at + c] = done
            else:
                (<int32_t *>job.z.data)[at + c] = <int32_t>done


cdef void one_window_scratch(const Pool *p, Py_ssize_t *size) noexcept nogil:
    """Set the sizes of all areas, in keys."""
    cdef Py_ssize_t n = p.frame.tiling.channels
    size[<int>SLAB] = imax(KEYS_AT_ONCE, n)
    size[<int>BAND] = size[<int>BAND_PLACES] = size[<int>POOLED] = n
    size[<int>POOLED_PLACES] = n * 8 // p.key_bytes
