# Takes:   windows so long that no band holds what is under a tile, with and without indices
# Reads:   keys of the input, a few vectors at a time
# Scratch: per axis two blocks of vectors, one vector per block (kept suffixes) and a queue (SLAB)
# Wins:    where a window is far larger than a tile: every vector is read at most three times per
#          axis, however long the windows are
#
# Each axis is a sequence of vectors. An inner axis gives one vector per element of the axis around
# it, and the innermost axis reads the input. A window is a suffix and a prefix around a middle (van
# Herk, Gil and Werman). Only the first suffix of each block is kept. Those in between are made
# again when their windows come. So scratch grows with the square root of the window.
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
    QUEUE = 64                  # elements that the innermost axis reads at a time


cdef struct RunningAxis:
    const Window *window
    int which                       # 0 columns, 1 rows, 2 and more: leading axes
    Py_ssize_t place                # from one element to the next
    # d / gcd(s, d): outputs this far apart have taps on the same elements
    Py_ssize_t turns
    Py_ssize_t tile                 # outputs at a time
    Py_ssize_t block                # vectors between two suffixes that are kept
    Py_ssize_t marks                # suffixes that are kept
    Py_ssize_t source, slots, kept, queue, best, output     # where they are in scratch, in pairs


cdef struct RunningTask:            # a tile
    const Pool *p
    const Job *job
    int64_t *scratch
    Py_ssize_t x_at, y_at, z_at     # the plane, in elements
    int64_t base                    # what its indices count from
    Py_ssize_t first[MAX_LEADS + 2]
    Py_ssize_t count[MAX_LEADS + 2]
    Py_ssize_t n[MAX_LEADS + 2]     # pairs of a vector


cdef struct Pairs:
    int64_t *keys
    int64_t *places


cdef struct RunningRow:             # the elements of an axis that some outputs share
    int level
    Py_ssize_t rest, size           # the first of them, and how many
    Py_ssize_t at
    int64_t place
    bint whole                      # all are in `source`
    Pairs source


cdef inline Pairs pairs_area(const RunningTask *task, Py_ssize_t at, Py_ssize_t vectors,
                             Py_ssize_t n) noexcept nogil:
    """Return the area of some vectors: their keys, then their places."""
    cdef Pairs pairs
    pairs.keys = task.scratch + 2 * at
    pairs.places = pairs.keys + vectors * n
    return pairs


cdef inline Pairs pairs_from(Pairs pairs, Py_ssize_t at) noexcept nogil:
    pairs.keys += at
    pairs.places += at
    return pairs


cdef inline void fill_none(Pairs to, Py_ssize_t n) noexcept nogil:
    fill_lowest(to.keys, n)
    fill(to.places, n, <int64_t>NOWHERE)


cdef inline void copy_pairs(Pairs to, Pairs source, Py_ssize_t n) noexcept nogil:
    memcpy(to.keys, source.keys, n * sizeof(int64_t))
    memcpy(to.places, source.places, n * sizeof(int64_t))


cdef inline void max_pairs(Pairs to, Pairs a, Pairs b, Py_ssize_t n) noexcept nogil:
    max_pairs_of(to.keys, to.places, a.keys, a.places, b.keys, b.places, n)


cdef inline Py_ssize_t axis_stride(const View *view, int which) noexcept nogil:
    return view.col if which == 0 else view.row if which == 1 else view.lead[which - 2]


cdef void fetch_elements(const RunningTask *task, int level, Py_ssize_t element, Py_ssize_t count,
                         Py_ssize_t at, int64_t place, Pairs to) noexcept nogil:
    """Fetch `count` vectors of an axis, a dilation apart.

    `at` and `place` are those of the axis's first element.
    """
    cdef const RunningAxis *axis = &task.p.running[level]
    cdef const View *x = &task.job.x
    cdef Py_ssize_t stride = axis_stride(x, axis.which), n = task.n[level]
    cdef Py_ssize_t d = axis.window.dilation, i, c
    cdef keys_load_t load
    cdef const char *src
    at += element * stride
    place += element * axis.place
    if level:
        for i in range(count):
            pool_axis(task, level - 1, at + i * d * stride, place + i * d * axis.place,
                      pairs_from(to, i * n))
        return
    load = keys_loader(task.p.frame.problem.code, 8)
    src = x.data + at * task.p.frame.problem.size
    if n == d * stride:
        load(to.keys, 0, src, 0, 1, count * n, task.p.rule)
    else:
        load(to.keys, n, src, d * stride, count, n, task.p.rule)
    for i in range(count):
        for c in range(n):
            to.places[i * n + c] = place + i * d * axis.place


cdef void pool_axis(const RunningTask *task, int level, Py_ssize_t at, int64_t place,
                    Pairs to) noexcept nogil:
    """Pool one axis: into `to`, or into the arrays if the axis is the outermost."""
    cdef const RunningAxis *axis = &task.p.running[level]
    cdef const Window *w = axis.window
    cdef Py_ssize_t turn, top, first
    for turn in range(imin(axis.turns, task.count[level])):
        top = (task.first[level] + turn) * w.stride - w.begin
        first = top // w.dilation if top >= 0 else -ceil_div(-top, w.dilation)
        pool_turn(task, level, turn, first, top - first * w.dilation, at, place, to)


cdef void pool_turn(const RunningTask *task, int level, Py_ssize_t turn, Py_ssize_t top,
                    Py_ssize_t rest, Py_ssize_t at, int64_t place, Pairs to) noexcept nogil:
    """Pool the outputs turn, turn + turns, ... of an axis.

    Their taps are the elements rest, rest + dilation, ..., counted from 0 on. The first window
    starts at number `top` of these.
    """
    cdef const RunningAxis *axis = &task.p.running[level]
    cdef const Window *w = axis.window
    cdef Py_ssize_t n = task.n[level], block = axis.block
    cdef Py_ssize_t step = w.stride // (w.dilation // axis.turns)
    cdef Py_ssize_t outputs = ceil_div(task.count[level] - turn, axis.turns)
    cdef Py_ssize_t output = 0, start, middle, low, end, blocks, held, begin = 0, i
    cdef Py_ssize_t last, queued, read
    cdef RunningRow row
    cdef Pairs source = pairs_area(task, axis.source, block, n)
    cdef Pairs slots = pairs_area(task, axis.slots, block, n)
    cdef Pairs kept = pairs_area(task, axis.kept, axis.marks, n)
    cdef Pairs best = pairs_area(task, axis.best, 1, n)
    cdef Pairs queue = pairs_area(task, axis.queue, queue_length(level), n)
    row.level, row.rest, row.at, row.place, row.source = level, rest, at, place, source
    row.size = ceil_div(w.size - rest, w.dilation) if rest < w.size else 0
    row.whole = row.size <= block
    if row.whole:
        fetch_elements(task, level, rest, row.size, at, place, source)
    while output < outputs:
        start = top + output * step
        middle = start + w.kernel
        low, end = imax(start, 0), imin(middle, row.size)
        fill_none(best, n)
        if low >= end:                  # no element in this window
            pool_output(task, level, turn + output * axis.turns, best, best, to)
            output += 1
            continue
        blocks = ceil_div(end - low, block)
        for i in range(blocks - 1, 0, -1):
            make_suffixes(task, &row, slots, low + i * block, end, kept, i, blocks)
            copy_pairs(pairs_from(kept, i * n), slots, n)
        held = -1
        last = queued = read = imax(middle, 0)
        while output < outputs and start < end:
            i = (imax(start, 0) - low) // block
            if i != held:
                held, begin = i, low + i * block
                make_suffixes(task, &row, slots, begin, end, kept, i, blocks)
            while last < imin(start + w.kernel, row.size):
                if row.whole:
                    max_pairs(best, best, pairs_from(source, last * n), n)
                else:
                    if last == read:    # no further than the windows before the middle go
                        queued, read = last, imin(middle + w.kernel - 1, row.size)
                        read = imin(read, last + queue_length(level))
                        fetch_elements(task, level, rest + last * w.dilation, read - last, at,
                                       place, queue)
                    max_pairs(best, best, pairs_from(queue, (last - queued) * n), n)
                last += 1
            pool_output(task, level, turn + output * axis.turns,
                        pairs_from(slots, (imax(start, 0) - begin) * n), best, to)
            output += 1
            start += step


cdef inline Py_ssize_t queue_length(int level) noexcept nogil:
    """Return how many vectors are read at a time past a middle."""
    return 1 if level else QUEUE


cdef void make_suffixes(const RunningTask *task, const RunningRow *row, Pairs slots,
                        Py_ssize_t begin, Py_ssize_t end, Pairs kept, Py_ssize_t i,
                        Py_ssize_t blocks) noexcept nogil:
    """Set, for each vector of block i, the maximum of it and all after it before `end`.

    The block begins at `begin`.
    """
    cdef const RunningAxis *axis = &task.p.running[row.level]
    cdef Py_ssize_t n = task.n[row.level], count = imin(axis.block, end - begin), j
    cdef Pairs source = row.source, to
    if row.whole:
        source = pairs_from(source, begin * n)
    else:
        fetch_elements(task, row.level, row.rest + begin * axis.window.dilation, count, row.at,
                       row.place, source)
    to = pairs_from(slots, (count - 1) * n)
    if i + 1 < blocks:
        max_pairs(to, pairs_from(source, (count - 1) * n), pairs_from(kept, (i + 1) * n), n)
    else:
        copy_pairs(to, pairs_from(source, (count - 1) * n), n)
    for j in range(count - 2, -1, -1):
        max_pairs(pairs_from(slots, j * n), pairs_from(source, j * n),
                  pairs_from(slots, (j + 1) * n), n)


cdef inline void pool_output(const RunningTask *task, int level, Py_ssize_t output, Pairs suffix,
                             Pairs prefix, Pairs to) noexcept nogil:
    """Store an output of an axis: the greater of the suffix and the prefix of a middle."""
    cdef Py_ssize_t n = task.n[level]
    if level < task.p.running_axes - 1:
        max_pairs(pairs_from(to, output * n), suffix, prefix, n)
    else:
        to = pairs_area(task, task.p.running[level].output, 1, n)
        max_pairs(to, suffix, prefix, n)
        store_output(task, output, to)


cdef void store_output(const RunningTask *task, Py_ssize_t output, Pairs pairs) noexcept nogil:
    """Store an output of the outermost axis in the arrays: values, and indices."""
    cdef const Pool *p = task.p
    cdef const View *y = &task.job.y
    cdef const View *z = &task.job.z
    cdef int top = p.running_axes - 1, level, which = p.running[0].which
    cdef Py_ssize_t n = task.n[0], size = p.frame.problem.size, cols = task.count[0] if top else 1
    cdef Py_ssize_t rows = task.n[top] // (cols * n), r, i, rest, y_at, z_at
    cdef Py_ssize_t y_step = axis_stride(y, which)
    cdef Py_ssize_t z_step = axis_stride(z, which) if p.with_indices else 0
    cdef keys_store_t store = keys_storer(p.frame.problem.code, 8)
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
            y_at += i * axis_stride(y, p.running[level].which)
            if p.with_indices:
                z_at += i * axis_stride(z, p.running[level].which)
        if y_step == n:
            store(y.data + y_at * size, 0, pairs.keys, 0, 1, cols * n, p.rule)
        else:
            store(y.data + y_at * size, y_step, pairs.keys, n, cols, n, p.rule)
        if p.with_indices and p.indexing.bytes == 8:
            store_positions(<int64_t *>z.data + z_at, z_step, pairs.places, cols, task)
        elif p.with_indices:
            store_positions(<int32_t *>z.data + z_at, z_step, pairs.places, cols, task)
        pairs = pairs_from(pairs, cols * n)


cdef void store_positions(index_t *dst, Py_ssize_t step, const int64_t *places, Py_ssize_t cols,
                          const RunningTask *task) noexcept nogil:
    cdef const Pool *p = task.p
    cdef Py_ssize_t n = task.n[0], o, c
    cdef int64_t place, index
    for o in range(cols):
        for c in range(n):
            place = places[o * n + c]
            if place == NOWHERE:
                dst[o * step + c] = -1
                continue
            index = task.base + c * p.indexing.channel
            if p.indexing.linear:
                index += place * p.indexing.col
            else:
                index += index_of_position(p, place)
            dst[o * step + c] = <index_t>index


cdef void tile_running_maxima(const Pool *p, const Job *job, Py_ssize_t task_number,
                              Scratch *scratch) noexcept nogil:
    """Pool one tile: all outputs of the outermost axis, some outputs of the others."""
    cdef const Problem *problem = &p.frame.problem
    cdef const Indexing *indexing = &p.indexing
    cdef const RunningAxis *axis
    cdef RunningTask task
    cdef int level, top = p.running_axes - 1
    cdef Py_ssize_t out, channel
    task.p, task.job = p, job
    task.scratch = <int64_t *>area_of(p, scratch.area, SLAB)
    for level in range(p.running_axes):
        axis = &p.running[level]
        out = axis.window.out
        task.first[level], task.count[level] = 0, out
        if level != top:
            task.first[level] = part(&task_number, ceil_div(out, axis.tile)) * axis.tile
            task.count[level] = imin(axis.tile, out - task.first[level])
    channel = part(&task_number, p.frame.tiling.channel_tiles) * p.frame.tiling.channels
    task.n[0] = 1
    if problem.channels_last:
        task.n[0] = imin(p.frame.tiling.channels, problem.channels - channel)
    for level in range(top):
        task.n[level + 1] = task.n[level] * task.count[level]
    task.z_at = 0
    task.base = indexing.base
    if problem.channels_last:
        task.x_at = task_number * job.x.batch + channel
        task.y_at = task_number * job.y.batch + channel
        task.base += task_number * indexing.batch + channel * indexing.channel
        if p.with_indices:
            task.z_at = task_number * job.z.batch + channel
    else:
        task.x_at = plane_offset(problem, &job.x, task_number)
        task.y_at = plane_offset(problem, &job.y, task_number)
        task.base += plane_base(p, task_number)
        if p.with_indices:
            task.z_at = plane_offset(problem, &job.z, task_number)
    pool_axis(&task, top, task.x_at, 0, pairs_area(&task, 0, 0, 0))


cdef Py_ssize_t running_scratch(const Pool *p) noexcept nogil:
    """Return the bytes of SLAB: up to the end of the outermost axis's last area."""
    cdef const RunningAxis *last = &p.running[p.running_axes - 1]
    cdef Py_ssize_t n = last.output - last.best
    return 2 * (last.output + n) * <Py_ssize_t>sizeof(int64_t)


cdef int plan_running_maxima(Pool *p, axes) except -1:
    """Set the axes, and lay out their areas.

    `axes` are (number of the window, tile, block, marks), from the innermost on.
    """
    cdef const Problem *problem = &p.frame.problem
    cdef Tiling *tiling = &p.frame.tiling
    cdef Py_ssize_t n = tiling.channels if problem.channels_last else 1, total = 0, window
    cdef RunningAxis *axis
    cdef int level
    p.running = <RunningAxis *>malloc(len(axes) * sizeof(RunningAxis))
    if p.running == NULL:
        raise MemoryError("fastpool: no memory for axes")
    p.running_axes = len(axes)
    tiling.tasks = plane_tiles(problem, tiling)
    for level in range(p.running_axes):
        axis = &p.running[level]
        window, axis.tile, axis.block, axis.marks = axes[level]
        if window < problem.leads:
            axis.which, axis.window = <int>(2 + window), &problem.lead[window]
            axis.place = p.indexing.position_lead[window]
        elif window == problem.leads:
            axis.which, axis.window, axis.place = 1, &problem.rows, problem.cols.size
        else:
            axis.which, axis.window, axis.place = 0, &problem.cols, 1
        axis.turns = axis.window.dilation // gcd(axis.window.stride, axis.window.dilation)
        if level < p.running_axes - 1:
            tiling.tasks *= ceil_div(axis.window.out, axis.tile)
        axis.source = total
        axis.slots = axis.source + axis.block * n
        axis.kept = axis.slots + axis.block * n
        axis.queue = axis.kept + axis.marks * n
        axis.best = axis.queue + queue_length(level) * n
        axis.output = axis.best + n
        total = axis.output + n
        n *= axis.tile
    return 0
