# Takes:   windows so long that no band holds what is under a tile, with and without indices
# Reads:   keys of the input, a few vectors at a time
# Scratch: per axis two blocks of vectors and one vector per block (kept suffixes)
# Wins:    where the window is far larger than a tile: every vector is read at most three times per
#          axis, however long the windows are
#
# Each axis is a sequence of vectors. An inner axis gives one vector per element of the axis around it,
# and the innermost axis reads the input. A window is a suffix and a prefix around a middle (van Herk,
# Gil and Werman). Only the first suffix of each block is kept. Those in between are made again when
# their windows come. So scratch grows with the root of the window.
#
# A pair is a 64-bit key (keys.h) and a place: the row-major position in the plane. The greater key
# wins, then the lower place, so that the axes may be pooled in any order. The longest axis is the
# outermost, and its outputs are stored as they come.

cdef extern from *:
    """
    #define NOWHERE INT64_MAX
    """
    const int64_t NOWHERE           # the place of no element


cdef enum:
    FAR_QUEUE = 64                  # elements that the innermost axis reads at a time


cdef struct FarTask:                # a tile
    const Pool *p
    const View *x
    const View *y
    const View *z
    int64_t *scratch
    Py_ssize_t x_at, y_at, z_at     # the plane, in elements
    int64_t base                    # what its indices count from
    Py_ssize_t channels
    Py_ssize_t first[MAX_LEADS + 2]
    Py_ssize_t count[MAX_LEADS + 2]
    Py_ssize_t n[MAX_LEADS + 2]     # pairs of a vector


cdef struct Pairs:
    int64_t *keys
    int64_t *places


cdef struct FarRow:                 # the elements of an axis that some outputs share
    int level
    Py_ssize_t rest, size           # the first of them, and how many
    Py_ssize_t at
    int64_t place
    bint whole                      # all are in `source`
    Pairs source


cdef inline Pairs far_area(const FarTask *task, Py_ssize_t at, Py_ssize_t vectors, Py_ssize_t n) noexcept nogil:
    """The keys of some vectors, and then their places."""
    cdef Pairs pairs
    pairs.keys = task.scratch + 2 * at
    pairs.places = pairs.keys + vectors * n
    return pairs


cdef inline Pairs far_vector(Pairs pairs, Py_ssize_t at) noexcept nogil:
    pairs.keys += at
    pairs.places += at
    return pairs


cdef inline void far_none(Pairs to, Py_ssize_t n) noexcept nogil:
    fill(to.keys, n, <int64_t>lowest(to.keys))
    fill(to.places, n, <int64_t>NOWHERE)


cdef inline void far_copy(Pairs to, Pairs source, Py_ssize_t n) noexcept nogil:
    memcpy(to.keys, source.keys, n * sizeof(int64_t))
    memcpy(to.places, source.places, n * sizeof(int64_t))


cdef inline void far_max(Pairs to, Pairs a, Pairs b, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef int64_t key, place
    cdef bint better
    for i in range(n):
        key, place = b.keys[i], b.places[i]
        better = (key > a.keys[i]) | ((key == a.keys[i]) & (place < a.places[i]))
        to.keys[i] = key if better else a.keys[i]
        to.places[i] = place if better else a.places[i]


cdef inline Py_ssize_t far_stride(const View *view, int which) noexcept nogil:
    return view.col if which == 0 else view.row if which == 1 else view.lead[which - 2]


cdef void far_fetch(const FarTask *task, int level, Py_ssize_t element, Py_ssize_t count, Py_ssize_t at, int64_t place,
                    Pairs to) noexcept nogil:
    """`count` vectors of an axis, a dilation apart; `at` and `place` are those of its first element."""
    cdef const FarAxis *axis = &task.p.far[level]
    cdef Py_ssize_t stride = far_stride(task.x, axis.which), n = task.n[level], d = axis.window.dilation, i, c
    cdef keys_load_t load
    cdef const char *src
    at += element * stride
    place += element * axis.place
    if level:
        for i in range(count):
            far_axis(task, level - 1, at + i * d * stride, place + i * d * axis.place, far_vector(to, i * n))
        return
    load = keys_loader(task.p.code, 8)
    src = task.x.data + at * task.p.size
    if n == d * stride:
        load(to.keys, 0, src, 0, 1, count * n, task.p.rule)
    else:
        load(to.keys, n, src, d * stride, count, n, task.p.rule)
    for i in range(count):
        for c in range(n):
            to.places[i * n + c] = place + i * d * axis.place


cdef void far_axis(const FarTask *task, int level, Py_ssize_t at, int64_t place, Pairs to) noexcept nogil:
    """The outputs of one axis: into `to`, or where they belong if the axis is the outermost."""
    cdef const FarAxis *axis = &task.p.far[level]
    cdef const Window *w = axis.window
    cdef Py_ssize_t turn, top, first
    for turn in range(imin(axis.turns, task.count[level])):
        top = (task.first[level] + turn) * w.stride - w.begin
        first = top // w.dilation if top >= 0 else -ceil_div(-top, w.dilation)
        far_turn(task, level, turn, first, top - first * w.dilation, at, place, to)


cdef void far_turn(const FarTask *task, int level, Py_ssize_t turn, Py_ssize_t top, Py_ssize_t rest, Py_ssize_t at,
                   int64_t place, Pairs to) noexcept nogil:
    """The outputs turn, turn + turns, ... of an axis. Their taps are the elements rest, rest + dilation, ..., counted from 0
    on; the first window starts at number `top` of these."""
    cdef const FarAxis *axis = &task.p.far[level]
    cdef const Window *w = axis.window
    cdef Py_ssize_t n = task.n[level], block = axis.block
    cdef Py_ssize_t step = w.stride // (w.dilation // axis.turns), outputs = ceil_div(task.count[level] - turn, axis.turns)
    cdef Py_ssize_t output = 0, start, middle, low, end, blocks, held, begin = 0, i, last, queued, read
    cdef FarRow row
    cdef Pairs source = far_area(task, axis.source, block, n), slots = far_area(task, axis.slots, block, n)
    cdef Pairs kept = far_area(task, axis.kept, axis.marks, n), best = far_area(task, axis.best, 1, n)
    cdef Pairs queue = far_area(task, axis.queue, far_queue(level), n)
    row.level, row.rest, row.at, row.place, row.source = level, rest, at, place, source
    row.size = ceil_div(w.size - rest, w.dilation) if rest < w.size else 0
    row.whole = row.size <= block
    if row.whole:
        far_fetch(task, level, rest, row.size, at, place, source)
    while output < outputs:
        start = top + output * step
        middle = start + w.kernel
        low, end = imax(start, 0), imin(middle, row.size)
        far_none(best, n)
        if low >= end:                  # no element in this window
            far_output(task, level, turn + output * axis.turns, best, best, to)
            output += 1
            continue
        blocks = ceil_div(end - low, block)
        for i in range(blocks - 1, 0, -1):
            far_suffixes(task, &row, slots, low + i * block, end, block, kept, i, blocks)
            far_copy(far_vector(kept, i * n), slots, n)
        held = -1
        last = queued = read = imax(middle, 0)
        while output < outputs and start < end:
            i = (imax(start, 0) - low) // block
            if i != held:
                held, begin = i, low + i * block
                far_suffixes(task, &row, slots, begin, end, block, kept, i, blocks)
            while last < imin(start + w.kernel, row.size):
                if row.whole:
                    far_max(best, best, far_vector(source, last * n), n)
                else:
                    if last == read:    # no further than the windows that start before the middle go
                        queued = last
                        read = imin(last + far_queue(level), imin(middle + w.kernel - 1, row.size))
                        far_fetch(task, level, rest + last * w.dilation, read - last, at, place, queue)
                    far_max(best, best, far_vector(queue, (last - queued) * n), n)
                last += 1
            far_output(task, level, turn + output * axis.turns, far_vector(slots, (imax(start, 0) - begin) * n), best, to)
            output += 1
            start += step


cdef inline Py_ssize_t far_queue(int level) noexcept nogil:
    """Vectors that are read at a time past a middle."""
    return 1 if level else FAR_QUEUE


cdef void far_suffixes(const FarTask *task, const FarRow *row, Pairs slots, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t block,
                       Pairs kept, Py_ssize_t i, Py_ssize_t blocks) noexcept nogil:
    """For each vector of block `i`, which begins at `begin`, the greatest of it and all after it before `end`."""
    cdef Py_ssize_t n = task.n[row.level], count = imin(block, end - begin), j
    cdef Pairs source = row.source
    if row.whole:
        source = far_vector(source, begin * n)
    else:
        far_fetch(task, row.level, row.rest + begin * task.p.far[row.level].window.dilation, count, row.at, row.place, source)
    if i + 1 < blocks:
        far_max(far_vector(slots, (count - 1) * n), far_vector(source, (count - 1) * n), far_vector(kept, (i + 1) * n), n)
    else:
        far_copy(far_vector(slots, (count - 1) * n), far_vector(source, (count - 1) * n), n)
    for j in range(count - 2, -1, -1):
        far_max(far_vector(slots, j * n), far_vector(source, j * n), far_vector(slots, (j + 1) * n), n)


cdef inline void far_output(const FarTask *task, int level, Py_ssize_t output, Pairs suffix, Pairs prefix, Pairs to) noexcept nogil:
    """An output of an axis: the greater of what lies before and after a middle."""
    cdef Py_ssize_t n = task.n[level]
    if level < task.p.fars - 1:
        far_max(far_vector(to, output * n), suffix, prefix, n)
    else:
        to = far_area(task, task.p.far[level].output, 1, n)
        far_max(to, suffix, prefix, n)
        far_store(task, output, to)


cdef void far_store(const FarTask *task, Py_ssize_t output, Pairs pairs) noexcept nogil:
    """An output of the outermost axis: values, and indices."""
    cdef const Pool *p = task.p
    cdef int top = <int>p.fars - 1, level, which = p.far[0].which
    cdef Py_ssize_t n = task.n[0], cols = task.count[0] if top else 1, rows = task.n[top] // (cols * n), r, i, rest, y_at, z_at
    cdef Py_ssize_t y_step = far_stride(task.y, which), z_step = far_stride(task.z, which) if p.with_indices else 0
    cdef keys_store_t store = keys_storer(p.code, 8)
    for r in range(rows):
        y_at, z_at, rest = task.y_at, task.z_at, r
        for level in range(top + 1):
            if level == top:
                i = output
            elif level == 0:
                i = task.first[0]
            else:
                i = task.first[level] + rest % task.count[level]
                rest //= task.count[level]
            y_at += i * far_stride(task.y, p.far[level].which)
            if p.with_indices:
                z_at += i * far_stride(task.z, p.far[level].which)
        if y_step == n:
            store(task.y.data + y_at * p.size, 0, pairs.keys, 0, 1, cols * n)
        else:
            store(task.y.data + y_at * p.size, y_step, pairs.keys, n, cols, n)
        if p.with_indices and p.index_bytes == 8:
            far_indices(<int64_t *>task.z.data + z_at, z_step, pairs.places, cols, task)
        elif p.with_indices:
            far_indices(<int32_t *>task.z.data + z_at, z_step, pairs.places, cols, task)
        pairs = far_vector(pairs, cols * n)


cdef void far_indices(index_t *dst, Py_ssize_t step, const int64_t *places, Py_ssize_t cols, const FarTask *task) noexcept nogil:
    cdef const Pool *p = task.p
    cdef Py_ssize_t n = task.n[0], o, c
    cdef int64_t place
    for o in range(cols):
        for c in range(n):
            place = places[o * n + c]
            if place == NOWHERE:
                dst[o * step + c] = -1
            elif p.linear:
                dst[o * step + c] = <index_t>(task.base + c * p.index_channel + place * p.index_col)
            else:
                dst[o * step + c] = <index_t>(task.base + c * p.index_channel + index_of_position(p, place))


cdef void tile_running_maxima(const Pool *p, const View *x, const View *y, const View *z, Py_ssize_t number, Scratch *scratch) noexcept nogil:
    """One tile: all outputs of the outermost axis, some of the others."""
    cdef FarTask task
    cdef int level, top = <int>p.fars - 1
    cdef Py_ssize_t out, channel
    task.p, task.x, task.y, task.z = p, x, y, z
    task.scratch = <int64_t *>(scratch.area + p.offsets[0])
    for level in range(p.fars):
        out = p.far[level].window.out
        task.first[level] = 0 if level == top else part(&number, ceil_div(out, p.far[level].tile)) * p.far[level].tile
        task.count[level] = out if level == top else imin(p.far[level].tile, out - task.first[level])
    channel = part(&number, p.channel_tiles) * p.tile_channels
    task.n[0] = imin(p.tile_channels, p.channels - channel) if p.channels_last else 1
    for level in range(top):
        task.n[level + 1] = task.n[level] * task.count[level]
    task.z_at = 0
    if p.channels_last:
        task.x_at = number * x.batch + channel
        task.y_at = number * y.batch + channel
        task.base = p.index_base + number * p.index_batch + channel * p.index_channel
        if p.with_indices:
            task.z_at = number * z.batch + channel
    else:
        task.x_at, task.y_at = plane_offset(p, x, number), plane_offset(p, y, number)
        task.base = p.index_base + plane_base(p, number)
        if p.with_indices:
            task.z_at = plane_offset(p, z, number)
    far_axis(&task, top, task.x_at, 0, far_area(&task, 0, 0, 0))


cdef Py_ssize_t plan_far_scratch(Pool *p) noexcept nogil:
    """Lay out the scratch of every axis; returns the bytes in all."""
    cdef Py_ssize_t total = 0, n = p.tile_channels if p.channels_last else 1
    cdef FarAxis *axis
    cdef int level
    for level in range(p.fars):
        axis = &p.far[level]
        axis.source = total
        axis.slots = axis.source + axis.block * n
        axis.kept = axis.slots + axis.block * n
        axis.queue = axis.kept + axis.marks * n
        axis.best = axis.queue + far_queue(level) * n
        axis.output = axis.best + n
        total = axis.output + n
        n *= axis.tile
    return 2 * total * <Py_ssize_t>sizeof(int64_t)
