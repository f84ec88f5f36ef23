# Max unpooling: copy values to the places that their indices name.
#
# Only bits are moved, so that dtypes of one size share a kernel. Indices are checked before
# anything is written. If every index stays in its own plane, as a pooling's own indices do, planes
# are independent tasks; channels last, batches are. Otherwise one thread goes through the values in
# row-major order, so that of two values with one index the last one stays.
#
# A task goes through its values once. Elements are zeroed just ahead of the first value that may go
# among them, so that the value finds them in the first-level cache. The memory after those is
# prefetched meanwhile: a pooling's indices hardly go back.
#
# If tasks are fewer than threads, each is cut into bands: some neighbouring rows of values, slices
# of a volume or values of a signal. If the indices of a band do not all come before those of the
# next one, as where windows overlap, tasks stay whole. (Threads that took blocks of channels were
# slower than one: their cache lines alternate.)
#
# Planes of fewer values than CHUNK are taken several at a time, and so are pixels of few channels.
#
# An index is read once more when its value is stored, and may have changed in between: two mappings
# of one file have different addresses. So the index is copied and checked, and the copy is used.
# Nothing outside the result is written.

cdef enum:
    DONE = -1
    REFUSED = -2
    CHANGED = -4            # an index changed after it was checked; some of the result is written
    ALL = -1                # not a part: all values, by one thread
    CHUNK = 64              # values for which elements are zeroed at a time
    TOGETHER = 256          # values of planes that are taken together; places_t holds as many
    LINE = 64               # bytes of a cache line
    AHEAD = 4096            # bytes from what is zeroed to what is prefetched
    TOGETHER_BYTES = 16384  # at most, of planes that are taken together
    BAND_VALUES = 4096      # at least, of a band for one thread


cdef extern from *:
    """
    #define fetch_to_write(address) __builtin_prefetch((address), 1)
    """
    void fetch_to_write(const void *) noexcept nogil


cdef struct Together:               # planes, or pixels with all their channels, taken together
    Py_ssize_t count                # at most, of values at most TOGETHER in all
    uint64_t before[TOGETHER]       # what the index of a value counts from, past the first one's
    uint64_t at[TOGETHER]           # what is added to its place


cdef struct Values:                 # values that go among some elements, and among no others
    Py_ssize_t x, y                 # where the values and the elements begin
    Py_ssize_t count, size          # values and elements; channels last: pixels of them
    uint64_t base                   # what the index of the first element is


cdef struct Unpool:             # it begins with UNPOOL_FIELDS
    Py_ssize_t batch, channels
    Py_ssize_t count, size      # values of a plane, elements of an output plane
    Py_ssize_t counted          # planes that indices count through: all, those of one batch, or one
    Py_ssize_t channels_last    # of x, index and y
    Py_ssize_t physical         # indices are offsets into the memory of y
    Py_ssize_t rows             # rows, slices or values that bands are made of
    Together *together
    const char *x
    indices_t index
    char *y
    int by_default              # number of threads (threads.pxi)
    int itemsize
    Py_ssize_t bands            # of a plane, or of pixels: some of its rows, and where they go


UNPOOL_FIELDS = (
    "batch", "channels", "count", "size", "counted", "channels_last", "physical", "rows"
)


cdef Py_ssize_t first_outside(const indices_t *index, Py_ssize_t n, Py_ssize_t size) noexcept nogil:
    """Return the place of the first index outside [0, size), or -1."""
    cdef Py_ssize_t i = 0, end
    while i < n:                        # in blocks: a loop with an exit would not vectorise
        end = imin(i + 4096, n)
        if plane_outside(index, i, end - i, 0, size):
            for i in range(i, end):
                if index_at(index, i) >= <uint64_t>size:
                    return i
        i = end
    return -1


cdef void set_together(Together *to, const Unpool *u, int itemsize) noexcept:
    """Set which values are taken together."""
    cdef Py_ssize_t values = u.channels if u.channels_last else u.count, k
    cdef Py_ssize_t nbytes = imax(1, u.size * itemsize), step = u.size if u.counted > 1 else 0
    to.count = TOGETHER // imax(1, values) if values < CHUNK + u.channels_last else 1
    if not u.channels_last:
        to.count = imax(1, imin(to.count, TOGETHER_BYTES // nbytes))
    for k in range(TOGETHER if values else 0):
        if u.channels_last:
            to.at[k] = k % values
            to.before[k] = k % values * step
        else:
            to.at[k] = k // values * u.size
            to.before[k] = k // values * step


cdef inline Values values_of(const Unpool *u, Py_ssize_t plane) noexcept nogil:
    """Return the values of a plane. Channels last, it is the first one of a batch."""
    cdef Values v
    v.x, v.y = plane * u.count, plane * u.size
    v.base, v.count, v.size = plane % u.counted * u.size, u.count, u.size
    return v


cdef inline Py_ssize_t neighbouring(const Unpool *u, Py_ssize_t plane,
                                    Py_ssize_t stop) noexcept nogil:
    """Return how many planes from `plane` to `stop` are taken together."""
    cdef Py_ssize_t n = imin(u.together.count, stop - plane)
    return n if u.counted <= 1 else imin(n, u.counted - plane % u.counted)


cdef bint own_planes(const Unpool *u, Py_ssize_t plane, Py_ssize_t stop) noexcept nogil:
    """Do all indices of some planes stay in their own planes?"""
    cdef Py_ssize_t n
    cdef uint64_t base
    while plane < stop:
        n, base = neighbouring(u, plane, stop), plane % u.counted * u.size
        if n == 1:
            if plane_outside(&u.index, plane * u.count, u.count, base, u.size):
                return False
        elif table_outside(&u.index, plane * u.count, n * u.count, base, u.together.before, u.size):
            return False
        plane += n
    return True


cdef bint own_pixels(const Unpool *u, const Values *v) noexcept nogil:
    """Channels last: do all indices stay in their own planes?"""
    cdef Py_ssize_t i = 0, n, at
    cdef uint64_t step = u.size if u.counted > 1 else 0
    while i < v.count:
        n, at = imin(u.together.count, v.count - i), v.x + i * u.channels
        if u.together.count == 1:
            if pixel_outside(&u.index, at, u.channels, v.base, step, v.size):
                return False
        elif table_outside(&u.index, at, n * u.channels, v.base, u.together.before, v.size):
            return False
        i += n
    return True


cdef inline void zero(void *y, Py_ssize_t nbytes, Py_ssize_t ahead) noexcept nogil:
    """Zero some bytes, and prefetch as many, `ahead` bytes after them."""
    cdef char *at = <char *>y
    cdef Py_ssize_t i
    while nbytes >= LINE:
        fetch_to_write(at + ahead)
        for i in range(LINE // VEC_BYTES):
            vec_store(at + i * VEC_BYTES, vec_set_int(0, <const int64_t *>NULL))
        at += LINE
        nbytes -= LINE
    memset(at, 0, nbytes)


# Values are stored where a copy of up to CHUNK indices says. It is checked as it is made, because
# another thread, or another mapping of their memory, may have changed the indices since the check.

cdef inline bint scatter_values(bits *y, const bits *x, const Unpool *u,
                                const Values *v) noexcept nogil:
    """Unpool values of one plane. If an index has changed, return False; some may be written."""
    cdef Py_ssize_t i = 0, n, last, limit, zeroed = 0
    cdef places_t places
    y, x = y + v.y, x + v.x
    while i < v.count:
        n = imin(CHUNK, v.count - i)
        last = 0
        if not plane_places(places.of, &u.index, v.x + i, n, v.base, v.size, &last):
            return False
        if last >= zeroed:
            limit = imin(v.size, round_up(last + 1, LINE // sizeof(bits)))
            zero(y + zeroed, (limit - zeroed) * sizeof(bits), AHEAD)
            zeroed = limit
        scatter(y, x + i, places.of, n)
        i += n
    zero(y + zeroed, (v.size - zeroed) * sizeof(bits), AHEAD)
    return True


cdef bint scatter_planes(bits *y, const bits *x, const Unpool *u, Py_ssize_t plane,
                         Py_ssize_t stop) noexcept nogil:
    """Unpool some planes. If an index has changed, return False; some may be written."""
    cdef Py_ssize_t n, last = 0, size = u.size, count = u.count
    cdef places_t places
    cdef Values v
    while plane < stop:
        n = neighbouring(u, plane, stop)
        if n == 1:
            v = values_of(u, plane)
            if not scatter_values(y, x, u, &v):
                return False
        else:
            if not table_places(places.of, &u.index, plane * count, n * count,
                                plane % u.counted * size, u.together.before, size, &last):
                return False
            zero(y + plane * size, n * size * sizeof(bits), AHEAD)
            scatter_by(y + plane * size, x + plane * count, places.of, u.together.at,
                       <uint64_t>1, n * count)
        plane += n
    return True


cdef bint scatter_pixels(bits *y, const bits *x, const Unpool *u,
                         const Values *v) noexcept nogil:
    """Unpool all channels of one batch, channels last, several pixels at once."""
    cdef Py_ssize_t i = 0, n, last = -1, zeroed = 0, channels = u.channels
    cdef places_t places
    y, x = y + v.y, x + v.x
    while i < v.count:
        n = imin(u.together.count, v.count - i)
        if not table_places(places.of, &u.index, v.x + i * channels, n * channels, v.base,
                            u.together.before, v.size, &last):
            return False
        if last >= zeroed:
            zero(y + zeroed * channels, (last + 1 - zeroed) * channels * sizeof(bits), AHEAD)
            zeroed = last + 1
        scatter_by(y, x, places.of, u.together.at, <uint64_t>channels, n * channels)
        i, x = i + n, x + n * channels
    zero(y + zeroed * channels, (v.size - zeroed) * channels * sizeof(bits), AHEAD)
    return True


cdef bint scatter_wide(bits *y, const bits *x, const Unpool *u, const Values *v) noexcept nogil:
    """Unpool all channels of one batch, channels last, some channels of one pixel at once.

    Indices are logical: those of channel c begin at base + c * step. If an index has changed,
    return False; some may be written.
    """
    cdef Py_ssize_t i, c, n, last, zeroed = 0, channels = u.channels
    cdef Py_ssize_t pixel = channels * sizeof(bits), ahead = ceil_div(AHEAD, pixel) * pixel
    cdef uint64_t step = u.size if u.counted > 1 else 0
    cdef places_t places
    y, x = y + v.y, x + v.x
    for i in range(v.count):
        c = 0
        while c < channels:
            n = imin(CHUNK, channels - c)
            last = 0
            if not pixel_places(places.of, &u.index, v.x + i * channels + c, n, v.base + c * step,
                                step, v.size, &last):
                return False
            if last >= zeroed:
                zero(y + zeroed * channels, (last + 1 - zeroed) * pixel, ahead)
                zeroed = last + 1
            scatter_by(y + c, x + c, places.of, u.together.at, <uint64_t>channels, n)
            c += n
        x += channels
    zero(y + zeroed * channels, (v.size - zeroed) * pixel, ahead)
    return True


cdef bint scatter_all(bits *y, const bits *x, const Unpool *u) noexcept nogil:
    """Unpool everything, in row-major order of the logical (channels-first) array.

    Indices may leave their planes. If one has changed, return False with some of the result
    written.
    """
    cdef Py_ssize_t n, c, i, at, origin, channels = u.channels, count = u.count, plane
    cdef uint64_t place, last = u.counted * u.size
    memset(y, 0, u.batch * channels * u.size * sizeof(bits))
    for n in range(u.batch):
        for c in range(channels):
            plane = n * channels + c
            origin = (plane - plane % u.counted) * u.size
            for i in range(count):
                at = (n * channels + c) * count + i
                if u.channels_last:
                    at = (n * count + i) * channels + c
                place = index_at(&u.index, at)
                if place >= last:
                    return False
                place += origin
                if u.channels_last and not u.physical:
                    plane = place // u.size
                    place = plane // channels * u.size + place % u.size
                    place = place * channels + plane % channels
                y[place] = x[at]
    return True


# A part is what one thread takes at a time: some planes, the pixels of a batch, or a band of them.

cdef inline Values part_values(const Unpool *u, Py_ssize_t part) noexcept nogil:
    """Return the values of a plane or of the pixels of one batch."""
    return values_of(u, part * u.channels if u.channels_last else part)


cdef inline Values band_values(const Unpool *u, Py_ssize_t part) noexcept nogil:
    """Return the values of a band, and all elements of its plane."""
    cdef Values v = part_values(u, part // u.bands)
    cdef Py_ssize_t band = part % u.bands, row = v.count // u.rows
    cdef Py_ssize_t begin = u.rows * band // u.bands * row
    v.x += begin * (u.channels if u.channels_last else 1)
    v.count = u.rows * (band + 1) // u.bands * row - begin
    return v


cdef void find_band(const Unpool *u, Py_ssize_t part, Py_ssize_t *first,
                    Py_ssize_t *last) noexcept nogil:
    """Set the first and the last place of a band's values."""
    cdef Py_ssize_t i = 0, n, at
    cdef Values v = band_values(u, part)
    cdef uint64_t step = u.size if u.counted > 1 else 0
    first[0], last[0] = v.size, -1
    if not u.channels_last:
        plane_range(&u.index, v.x, v.count, v.base, first, last)
        return
    while i < v.count:
        n, at = imin(u.together.count, v.count - i), v.x + i * u.channels
        if u.together.count == 1:
            pixel_range(&u.index, at, u.channels, v.base, step, first, last)
        else:
            table_range(&u.index, at, n * u.channels, v.base, u.together.before, first, last)
        i += n


cdef bint own_part(const Unpool *u, Py_ssize_t part) noexcept nogil:
    cdef Py_ssize_t n = u.together.count
    cdef Values v
    if not u.channels_last:
        return own_planes(u, part * n, imin((part + 1) * n, u.batch * u.channels))
    v = part_values(u, part)
    return own_pixels(u, &v)


cdef bint scatter_channels(bits *y, const bits *x, const Unpool *u,
                           const Values *v) noexcept nogil:
    if not u.channels_last:
        return scatter_values(y, x, u, v)
    if u.together.count > 1:
        return scatter_pixels(y, x, u, v)
    return scatter_wide(y, x, u, v)


cdef bint scatter_part(bits *y, const bits *x, const Unpool *u, Py_ssize_t part) noexcept nogil:
    cdef Py_ssize_t n = u.together.count
    cdef Values v
    if not u.channels_last:
        return scatter_planes(y, x, u, part * n, imin((part + 1) * n, u.batch * u.channels))
    v = part_values(u, part)
    return scatter_channels(y, x, u, &v)


cdef bint scatter_band(bits *y, const bits *x, const Unpool *u, Py_ssize_t part, Py_ssize_t lo,
                       Py_ssize_t hi) noexcept nogil:
    """Unpool a band, whose values go among the elements lo ... hi of its plane."""
    cdef Values v = band_values(u, part)
    v.y += lo * (u.channels if u.channels_last else 1)
    v.base, v.size = v.base + lo, hi - lo
    return scatter_channels(y, x, u, &v)


cdef inline Py_ssize_t unpool_parts_of(const Unpool *u) noexcept nogil:
    """Return how many parts are independent."""
    if u.channels_last:
        return u.batch if u.channels else 0
    return ceil_div(u.batch * u.channels, u.together.count)


cdef struct UnpoolCall:
    const Unpool *u
    int bad                             # parts with strays, or whose indices have changed
    Py_ssize_t first[2 * MAX_THREADS]   # places of each band
    Py_ssize_t last[2 * MAX_THREADS]


cdef void note_band(void *call, Py_ssize_t part, int thread) noexcept nogil:
    cdef UnpoolCall *c = <UnpoolCall *>call
    find_band(c.u, part, &c.first[part], &c.last[part])


cdef void note_strays(void *call, Py_ssize_t part, int thread) noexcept nogil:
    cdef UnpoolCall *c = <UnpoolCall *>call
    if not own_part(c.u, part):
        add_relaxed(&c.bad, 1)


cdef bint scatter_any(bits *y, const UnpoolCall *c, Py_ssize_t part) noexcept nogil:
    cdef const bits *x = <const bits *>c.u.x
    if part == ALL:
        return scatter_all(y, x, c.u)
    if c.u.bands > 1:
        return scatter_band(y, x, c.u, part, c.first[part], c.last[part])
    return scatter_part(y, x, c.u, part)


cdef void unpool_part(void *call, Py_ssize_t part, int thread) noexcept nogil:
    cdef UnpoolCall *c = <UnpoolCall *>call
    cdef char *y = c.u.y
    cdef bint same
    if c.u.itemsize == 1:
        same = scatter_any(<uint8_t *>y, c, part)
    elif c.u.itemsize == 2:
        same = scatter_any(<uint16_t *>y, c, part)
    elif c.u.itemsize == 4:
        same = scatter_any(<uint32_t *>y, c, part)
    else:
        same = scatter_any(<uint64_t *>y, c, part)
    if not same:
        add_relaxed(&c.bad, 1)


cdef void set_band_ranges(UnpoolCall *c, Unpool *u, Py_ssize_t parts) noexcept nogil:
    """Set the elements that each band writes. If one shares some with another, set one band.

    If an index is outside its plane, note that there are strays.
    """
    cdef Py_ssize_t part, bands = u.bands
    for part in range(parts):
        if c.first[part] < 0 or c.last[part] >= u.size:
            c.bad = 1
        if part % bands == 0:
            c.first[part] = 0
        elif c.last[part - 1] >= c.first[part]:
            u.bands = 1
    for part in range(parts):
        c.last[part] = u.size if (part + 1) % bands == 0 else c.first[part + 1]


cdef Py_ssize_t unpool(Unpool *u, int threads) noexcept nogil:
    """Unpool on as many threads as `unpool_thread_count` said.

    Return DONE, or CHANGED if an index has changed. If an index is out of range, return the place
    of the first one, with nothing written.
    """
    cdef Py_ssize_t parts = unpool_parts_of(u), bad
    cdef UnpoolCall c
    if u.count == 0 and u.size == 0:    # (there may be any number of empty planes)
        return DONE
    c.u, c.bad = u, 0
    if u.bands > 1:
        run_tasks(note_band, &c, 0, parts * u.bands, threads, u.by_default)
        set_band_ranges(&c, u, parts * u.bands)
        parts *= u.bands
        threads = thread_count(parts, threads, u.by_default)
    elif not u.physical:
        run_tasks(note_strays, &c, 0, parts, threads, u.by_default)
    if u.physical or c.bad:
        bad = first_outside(&u.index, u.batch * u.channels * u.count, u.counted * u.size)
        if bad >= 0:
            return bad
        c.bad = 0
        unpool_part(&c, ALL, 0)
        return CHANGED if c.bad else DONE
    run_tasks(unpool_part, &c, 0, parts, threads, u.by_default)
    return CHANGED if c.bad else DONE


cdef int unpool_thread_count(Unpool *u, int threads) noexcept nogil:
    """Set bands. Return how many threads have a part, as far as the system allows."""
    cdef Py_ssize_t bands, parts = unpool_parts_of(u)
    u.bands, threads = 1, imin(threads, MAX_THREADS)
    if 0 < parts < threads and not u.physical:
        bands = u.count * (u.channels if u.channels_last else 1) // BAND_VALUES
        u.bands = imax(1, imin(imin(bands, u.rows), ceil_div(threads, parts)))
        parts *= u.bands
    return thread_count(parts, threads, u.by_default)
