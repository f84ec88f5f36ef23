# The modes of blocks on several levels at once, each from the elements themselves.
#
# Takes:   integers, any strides, blocks of up to MOST_TAPS elements on the first level
# Reads:   each element once; random labels once a level, as long as blocks are columns. A block
#          whose elements are equal has a label. The labels of others, and how many elements have
#          each, make a list. From level to level parts are added up.
# Scratch: per thread, up to 60 bytes per element of a tile, but pages only for what lists hold
# Wins:    pyramid of 5 of 64x512x512 uint64, labels of 8^3, one thread, AVX-512: 220 -> 15 ms
#
# A tile is one block of the last level, or several along the last axis, so that rows are long.
# Axes are in the order of memory. Blocks of the level before are the parts of a block.

cdef extern from "kernels/vectors/blocks.h" nogil:
    ctypedef struct label_lists_t:
        int64_t *labels
        int32_t *list_of
        Py_ssize_t blocks
        int64_t *keys
        int32_t *counts
        Py_ssize_t kept
        Py_ssize_t *ends
        Py_ssize_t lists
        uint32_t *slots
        int stopped
    void list_columns(label_lists_t *, const void *, const int64_t *, int, int, bint,
                      const block_rule_t *)
    void join_labels(label_lists_t *, block_lanes_t *, const label_lists_t *, Py_ssize_t,
                     const Py_ssize_t *, int, int, int32_t, const block_rule_t *)
    void merge_lists(label_lists_t *, block_lanes_t *, int, const label_lists_t *,
                     const Py_ssize_t *, Py_ssize_t, int32_t, bint, const block_rule_t *)


cdef enum:
    MOST_LEVELS = 16            # fastpool/_running/blocks.py knows it
    FAST_BYTES = 128            # blocks: lists take as long as columns of 64 elements of 2 bytes


cdef struct Levels:
    Blocks first                # of the first level
    int levels
    int fast, possible          # up to which level columns are faster than lists, and possible
    Py_ssize_t tiles[MAX_NDIM]
    Py_ssize_t tile[MAX_NDIM]                       # its elements along each axis
    Py_ssize_t sizes[MOST_LEVELS + 1][MAX_NDIM]     # of blocks
    int32_t elements_of[MOST_LEVELS + 1]            # of a whole block
    Py_ssize_t shapes[MOST_LEVELS + 1][MAX_NDIM]    # of results
    Operand y[MOST_LEVELS + 1]
    Py_ssize_t elements, lists, slots               # of a tile, at most
    char *scratch
    Py_ssize_t scratch_bytes                        # per thread


cdef struct Level:               # of a level: the blocks of a tile
    Py_ssize_t first[MAX_NDIM]
    Py_ssize_t shape[MAX_NDIM]


cdef bint place_part(const Levels *v, int level, Py_ssize_t task, Level *p) noexcept nogil:
    """Set the blocks of a tile. Return whether there are any."""
    cdef Py_ssize_t n
    cdef int axis
    for axis in range(v.first.ndim - 1, -1, -1):
        n = v.tile[axis] // v.sizes[level][axis]
        p.first[axis], task = task % v.tiles[axis] * n, task // v.tiles[axis]
        p.shape[axis] = imin(n, v.shapes[level][axis] - p.first[axis])
        if p.shape[axis] <= 0:
            return False
    return True


cdef void reduce_row(const Levels *v, int level, int below, const Level *p, const Level *before,
                     Py_ssize_t row, Blocks *b, label_lists_t *lists, const label_lists_t *parts,
                     char *scratch) noexcept nogil:
    """Reduce the blocks of a row, from elements or, at places of b.counts, `parts`."""
    cdef block_lanes_t *lanes = <block_lanes_t *>scratch
    cdef char *rows = scratch + round_up(sizeof(block_lanes_t), 64)
    cdef Py_ssize_t at[MAX_NDIM]
    cdef Py_ssize_t places[64]
    cdef Py_ssize_t n, factor, i, t
    cdef int axis, last = b.ndim - 1
    cdef bint whole, joined
    cdef Places chunk
    for axis in range(last - 1, -1, -1):
        at[axis], row = row % p.shape[axis], row // p.shape[axis]
    at[last] = 0
    while at[last] < p.shape[last]:
        n = imin(LANES, p.shape[last] - at[last])
        b.taps, whole = 1, True
        chunk.x[0] = chunk.where[0] = chunk.y[0] = chunk.counts[0] = 0
        for axis in range(b.ndim):
            factor = v.sizes[level][axis] // v.sizes[below][axis]
            if axis == last and n > 1 and (at[axis] + n) * factor > before.shape[axis]:
                n -= 1          # (the last one has fewer parts, and comes next)
            b.block[axis] = imin(factor, before.shape[axis] - at[axis] * factor)
            b.taps *= b.block[axis]
            whole = whole and b.block[axis] == factor
            chunk.x[0] += (p.first[axis] + at[axis]) * b.x.steps[axis]
            chunk.where[0] += (p.first[axis] + at[axis]) * b.where.steps[axis]
            chunk.y[0] += (p.first[axis] + at[axis]) * v.y[level].steps[axis]
            chunk.counts[0] += at[axis] * b.counts.steps[axis]
        chunk.n = n
        if below == 0:
            place_block(&b.x, b.block, b.ndim)
            place_block(&b.where, b.block, b.ndim)
            reduce_columns_of(b, &chunk, lanes, rows, not lists.stopped)
            if not lists.stopped:
                list_columns(lists, rows, lanes.count, <int>b.taps, <int>n, whole, &b.rule)
                # Long lists, of random labels, are not worth their time.
                lists.stopped = level < v.possible and 2 * lists.kept > lists.blocks * b.taps
        else:
            place_block(&b.counts, b.block, b.ndim)
            joined = whole and b.block[last] == 2 and n >= VEC_BYTES // 8
            if joined:
                join_labels(lists, lanes, parts, chunk.counts[0], b.counts.taps, <int>b.taps,
                            <int>n, v.elements_of[below], &b.rule)
            for i in range(n):
                if joined and lists.list_of[lists.blocks + i] < 0:
                    continue
                for t in range(b.taps):
                    places[t] = chunk.counts[0] + i * b.counts.steps[last] + b.counts.taps[t]
                merge_lists(lists, lanes, <int>i, parts, places, b.taps, v.elements_of[below],
                            whole, &b.rule)
            lists.blocks += n
            choose_results(lanes, &b.rule)
        store_row(v.y[level].data + chunk.y[0], v.y[level].steps[last], NULL, n, lanes.row,
                  b.itemsize)
        at[last] += n


cdef void reduce_tile(void *call, Py_ssize_t task, int thread) noexcept nogil:
    cdef const Levels *v = <const Levels *>call
    cdef char *scratch = v.scratch + thread * v.scratch_bytes
    cdef char *rest = scratch + v.first.scratch_bytes
    cdef label_lists_t lists[2]
    cdef Level parts[3]          # of two levels, and of level 0
    cdef Level *before
    cdef Blocks b = v.first
    cdef Py_ssize_t step, rows, row
    cdef int level, below, axis, i
    for i in range(2):
        lists[i].keys = <int64_t *>rest + i * v.elements
        lists[i].labels = <int64_t *>rest + 2 * v.elements + i * v.lists
        lists[i].ends = <Py_ssize_t *>(lists[0].labels + 2 * v.lists) + i * (v.lists + 1)
        lists[i].ends[0] = 0
        lists[i].ends += 1
        lists[i].counts = <int32_t *>(lists[0].ends + 2 * v.lists + 1) + i * v.elements
        lists[i].list_of = lists[0].counts + 2 * v.elements + i * v.lists
        lists[i].slots = <uint32_t *>(lists[0].list_of + 2 * v.lists)
    place_part(v, 0, task, &parts[2])
    for level in range(1, v.levels + 1):
        i = level % 2
        if not place_part(v, level, task, &parts[i]):
            break
        below = 0 if level == 1 or lists[1 - i].stopped else level - 1
        before = &parts[1 - i if below else 2]
        step = rows = 1
        for axis in range(b.ndim - 1, -1, -1):
            b.x.steps[axis] = b.x.tap_steps[axis] * v.sizes[level][axis]
            b.where.steps[axis] = b.where.tap_steps[axis] * v.sizes[level][axis]
            b.counts.tap_steps[axis] = step
            b.counts.steps[axis] = step * (v.sizes[level][axis] // v.sizes[level - 1][axis])
            step *= before.shape[axis]
            rows *= parts[i].shape[axis]
        lists[i].kept = lists[i].lists = lists[i].blocks = 0
        lists[i].stopped = level == v.levels or level < v.fast
        for row in range(rows // parts[i].shape[b.ndim - 1]):
            reduce_row(v, level, below, &parts[i], before, row, &b, &lists[i], &lists[1 - i],
                       scratch)


def reduce_levels(rule, list levels, x, where, int threads, int by_default, /):
    """Set the modes of all levels.

    `levels` are (extents of blocks, extents of results, operand of results). That of level 0 has
    the extents of tiles and of the input. Extents of blocks are multiples of those of the level
    before, and tiles of those of the last one. Operands are those of `reduce_blocks`, which says
    what the caller knows.
    """
    cdef Levels v
    cdef int level, axis, ndim
    cdef Py_ssize_t tasks = 1, labels = 1, taps
    cdef tuple of_level
    memset(&v, 0, sizeof(v))
    v.levels, ndim = <int>len(levels) - 1, <int>len(levels[0][0])
    if not 1 <= v.levels <= MOST_LEVELS or not 1 <= ndim <= MAX_NDIM or len(rule) != RULE_FIELDS:
        raise ValueError("levels, axes, or fields of a rule")
    set_fields(&v.first.rule.code, rule)
    v.first.ndim = v.first.block_ndim = ndim
    v.first.itemsize = dtype_bytes[v.first.rule.code]
    for level in range(v.levels + 1):
        of_level = levels[level]
        read_integers(v.sizes[level], of_level[0], ndim)
        read_integers(v.shapes[level], of_level[1], ndim)
        set_operand(&v.y[level], &v.first, of_level[2], True)
        taps = 1
        for axis in range(ndim):
            taps *= v.sizes[level][axis]
        v.possible += level > 0 and taps <= MOST_TAPS
        v.fast += level > 0 and taps * v.first.itemsize <= FAST_BYTES and taps <= MOST_TAPS
        v.elements_of[level] = <int32_t>taps    # (of a tile at most, if there are whole blocks)
    if where is None and v.sizes[1][ndim - 1] == 2 and (v.elements_of[1] == 4
                                                        or v.elements_of[1] == 8):
        v.fast = 0              # (in registers: 4 levels of 2x2 uint8 cells 8.3 -> 7.5 ms)
    for axis in range(ndim):
        v.tile[axis], v.sizes[0][axis] = v.sizes[0][axis], 1
    v.elements = v.lists = 1
    for axis in range(ndim):
        labels *= imin(v.sizes[v.levels][axis], v.shapes[0][axis])
        v.first.block[axis] = v.sizes[1][axis]
        v.elements *= imin(v.tile[axis], v.shapes[0][axis])
        v.lists *= imin(v.tile[axis] // v.sizes[1][axis], v.shapes[1][axis])
        v.tiles[axis] = (v.shapes[0][axis] + v.tile[axis] - 1) // v.tile[axis]
        tasks *= v.tiles[axis]
    set_operand(&v.first.x, &v.first, x, False)
    set_operand(&v.first.where, &v.first, where, False)
    v.first.rule.masked, v.first.row = v.first.where.data != NULL, 1
    v.slots = 16
    while v.slots < 2 * labels:
        v.slots *= 2
    v.first.scratch_bytes = round_up(sizeof(block_lanes_t), 64) + MOST_TAPS * LANES * 17
    v.scratch_bytes = round_up(v.first.scratch_bytes + v.elements * 24 + v.slots * 4
                               + v.lists * 24 + (v.lists + 1) * 2 * sizeof(Py_ssize_t), 64)
    threads = thread_count(tasks, threads, by_default)
    v.scratch = scratch_of(threads, v.scratch_bytes)
    for level in range(threads):
        memset(v.scratch + level * v.scratch_bytes, 0, v.first.scratch_bytes)
    with nogil:
        run_tasks(reduce_tile, &v, 0, tasks, threads, by_default)
    free(v.scratch)
