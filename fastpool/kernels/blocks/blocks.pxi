# Reduce blocks that share no element: one function of a whole region of equal blocks.
#
# Takes:   any element type, any strides, blocks of any size; edges are regions of their own
# Reads:   each element once, into columns (to MOST_TAPS taps) or into a list of a block's keys
# Scratch: per thread, columns of LANES blocks; of a larger block 8 bytes and a key per element
#
# Python cuts partial blocks off and puts the axes in the order of memory, the fastest one last.
# Axes of one output are left out. Of the axes of a block, all have more than one tap.

cdef extern from "kernels/vectors/blocks.h" nogil:
    enum:
        LANES, MOST_TAPS, MOST_WIDTH, MOST_ODD, B_MODE, B_MEDIAN, B_VAR, B_STD
    ctypedef struct block_rule_t:
        int64_t code, function, result, need, masked
    ctypedef struct block_lanes_t:
        int64_t *count
        uint64_t *bits
        uint64_t *row
    void gather(void *, const char *, Py_ssize_t, Py_ssize_t, int)
    void gather_lanes(void *, const char *, const Py_ssize_t *, Py_ssize_t, int)
    void split(void *, const char *, Py_ssize_t, Py_ssize_t, int)
    void reduce_columns(block_lanes_t *, void *, uint8_t *, void *, int, int,
                        const block_rule_t *)
    bint reduce_labels(block_lanes_t *, void *, const char *, const Py_ssize_t *, int, int, bint,
                       const block_rule_t *)
    Py_ssize_t append_keys(void *, void *, uint8_t *, int, const block_rule_t *)
    void reduce_list(block_lanes_t *, void *, void *, Py_ssize_t, const block_rule_t *)
    void choose_results(block_lanes_t *, const block_rule_t *)
    ctypedef struct block_folds_t:
        char *to
        int64_t *counts
        const char *taps[64]
        const uint8_t *where[64]
        const uint8_t *sums
        int count, width, pairs, odd, need
        Py_ssize_t n
        const block_rule_t *rule
    void fold_blocks(const block_folds_t *)
    ctypedef struct fill_t:
        int64_t code
        int wild
        const char *x
        const uint8_t *where
        char *to
        Py_ssize_t n
    void fill_missing(fill_t *, Py_ssize_t, Py_ssize_t)
    void store_row(char *, Py_ssize_t, const Py_ssize_t *, Py_ssize_t, const void *, int)


cdef enum:
    SHORT_ROW = 32              # outputs: shorter rows are taken together
    TASKS_PER_THREAD = 8
    FILLED_PER_TASK = 1 << 16
    FILL_FIELDS = 7             # of fill_t
    RULE_FIELDS = 10            # of block_rule_t, which come from Python

LIMITS |= {"MOST_WIDTH": MOST_WIDTH, "MOST_ODD": MOST_ODD}


cdef Py_ssize_t MOST_BYTES = <Py_ssize_t>((<size_t>-1) >> 1)


cdef struct Operand:            # an array; its steps are in bytes
    char *data                  # NULL if there is none
    Py_ssize_t steps[MAX_NDIM]          # from output to output
    Py_ssize_t tap_steps[MAX_NDIM]      # from tap to tap
    Py_ssize_t taps[64]                 # of a block in columns or folds: where its taps or rows are


cdef struct Blocks:
    block_rule_t rule
    int ndim, block_ndim, itemsize
    Py_ssize_t shape[MAX_NDIM]          # outputs
    Py_ssize_t block[MAX_NDIM]
    Py_ssize_t taps, outputs, rows      # rows: of a block that is folded, else its taps
    const uint8_t *sums                 # of a block that is folded, else NULL
    Operand x, where, y, counts
    Py_ssize_t row, chunks_per_row      # row: 0 if rows are taken together
    Py_ssize_t chunks, chunks_per_task
    char *scratch
    Py_ssize_t scratch_bytes, list_bytes    # per thread


cdef struct Places:             # of the outputs of a chunk: all of them, or of a row the first one
    Py_ssize_t n
    Py_ssize_t x[64]
    Py_ssize_t where[64]
    Py_ssize_t y[64]
    Py_ssize_t counts[64]


cdef void place_lane(const Blocks *b, Py_ssize_t output, Places *at, int lane) noexcept nogil:
    cdef Py_ssize_t place
    cdef int axis = b.ndim - 1
    at.x[lane] = at.where[lane] = at.y[lane] = at.counts[lane] = 0
    while axis >= 0:
        place, output = output % b.shape[axis], output // b.shape[axis]
        at.x[lane] += place * b.x.steps[axis]
        at.where[lane] += place * b.where.steps[axis]
        at.y[lane] += place * b.y.steps[axis]
        at.counts[lane] += place * b.counts.steps[axis]
        axis -= 1


cdef void place_chunk(const Blocks *b, Py_ssize_t chunk, Places *at) noexcept nogil:
    """Set the places of a chunk. Unless at.n is 0, those of the chunk before are there."""
    cdef Py_ssize_t first
    cdef int lane, last = b.ndim - 1
    if b.row:
        first = chunk % b.chunks_per_row * LANES
        if first and at.n:
            at.x[0] += LANES * b.x.steps[last]
            at.where[0] += LANES * b.where.steps[last]
            at.y[0] += LANES * b.y.steps[last]
            at.counts[0] += LANES * b.counts.steps[last]
        else:
            place_lane(b, chunk // b.chunks_per_row * b.row + first, at, 0)
        at.n = imin(LANES, b.row - first)
    else:
        first = chunk * LANES
        at.n = imin(LANES, b.outputs - first)
        for lane in range(<int>at.n):
            place_lane(b, first + lane, at, lane)


cdef void store_chunk(const Blocks *b, const Operand *to, const Py_ssize_t *places, Py_ssize_t n,
                      const void *row, int itemsize) noexcept nogil:
    if to.data == NULL:
        return
    if b.row:
        store_row(to.data + places[0], to.steps[b.ndim - 1], NULL, n, row, itemsize)
    else:
        store_row(to.data, 0, places, n, row, itemsize)


cdef bint are_adjacent(const Blocks *b, const Operand *x, int itemsize) noexcept nogil:
    """Are the blocks of a row, and the taps of each of their rows, next to each other?"""
    cdef Py_ssize_t width = b.block[b.block_ndim - 1]
    return (b.row and width > 1 and x.tap_steps[b.block_ndim - 1] == itemsize
            and x.steps[b.ndim - 1] == width * itemsize)


cdef void load_columns(void *rows, const Blocks *b, const Operand *from_, const Py_ssize_t *places,
                       Py_ssize_t n, int itemsize) noexcept nogil:
    """Load the taps of n blocks, one row of LANES elements per tap."""
    cdef Py_ssize_t step = from_.steps[b.ndim - 1], t = 0, row_bytes = LANES * itemsize
    cdef Py_ssize_t width = b.block[b.block_ndim - 1]
    cdef char *row = <char *>rows
    cdef bint neighbours = are_adjacent(b, from_, itemsize)
    while t < b.taps:
        if neighbours:
            split(row + t * row_bytes, from_.data + places[0] + from_.taps[t], width, n, itemsize)
            t += width
        else:
            if b.row:
                gather(row + t * row_bytes, from_.data + places[0] + from_.taps[t], step, n,
                       itemsize)
            else:
                gather_lanes(row + t * row_bytes, from_.data + from_.taps[t], places, n, itemsize)
            t += 1


cdef Py_ssize_t load_list(char *keys, const Blocks *b, Py_ssize_t x, Py_ssize_t where,
                          char *row) noexcept nogil:
    """Load the keys of a block's elements that are there. Return how many there are."""
    cdef Py_ssize_t at_axis[MAX_NDIM]
    cdef Py_ssize_t kept = 0, held = 0, i, n
    cdef int last = b.block_ndim - 1, axis
    cdef uint8_t *there = <uint8_t *>(row + LANES * 8)
    for axis in range(b.block_ndim):
        at_axis[axis] = 0
    memset(there, 1, LANES)
    while True:
        i = 0
        while i < b.block[last]:
            n = imin(LANES - held, b.block[last] - i)
            gather(row + held * b.itemsize, b.x.data + x + i * b.x.tap_steps[last],
                   b.x.tap_steps[last], n, b.itemsize)
            if b.where.data != NULL:
                gather(there + held, b.where.data + where + i * b.where.tap_steps[last],
                       b.where.tap_steps[last], n, 1)
            i, held = i + n, held + n
            if held == LANES:
                kept += append_keys(keys + kept * b.itemsize, row, there, LANES, &b.rule)
                memset(there, 1, LANES)
                held = 0
        axis = last - 1
        while axis >= 0:
            at_axis[axis] += 1
            x += b.x.tap_steps[axis]
            where += b.where.tap_steps[axis]
            if at_axis[axis] < b.block[axis]:
                break
            x -= at_axis[axis] * b.x.tap_steps[axis]
            where -= at_axis[axis] * b.where.tap_steps[axis]
            at_axis[axis] = 0
            axis -= 1
        if axis < 0:
            return kept + append_keys(keys + kept * b.itemsize, row, there, <int>held, &b.rule)


cdef void reduce_columns_of(const Blocks *b, const Places *at, block_lanes_t *lanes, char *rows,
                            bint counts) noexcept nogil:
    cdef char *work = rows + b.taps * LANES * 8
    cdef uint8_t *there = <uint8_t *>(work + b.taps * LANES * 8)
    if (b.rule.function == B_MODE and b.block[b.block_ndim - 1] == 2
            and are_adjacent(b, &b.x, b.itemsize)
            and reduce_labels(lanes, rows, b.x.data + at.x[0], b.x.taps, <int>b.taps, <int>at.n,
                              counts, &b.rule)):
        return
    load_columns(rows, b, &b.x, at.x, at.n, b.itemsize)
    if b.where.data != NULL:
        load_columns(there, b, &b.where, at.where, at.n, 1)
    else:
        memset(there, 1, b.taps * LANES)
    reduce_columns(lanes, rows, there, work, <int>b.taps, <int>at.n, &b.rule)


cdef void reduce_lists_of(const Blocks *b, const Places *at, block_lanes_t *lanes,
                          char *row) noexcept nogil:
    cdef char *keys = row + LANES * 9
    cdef Py_ssize_t x = at.x[0], where = at.where[0], kept
    cdef uint64_t bits[64]
    cdef int64_t counts[64]
    cdef int lane
    for lane in range(<int>at.n):
        if not b.row:
            x, where = at.x[lane], at.where[lane]
        kept = load_list(keys, b, x, where, row)
        reduce_list(lanes, keys, keys + b.list_bytes, kept, &b.rule)
        bits[lane], counts[lane] = lanes.bits[0], kept
        x += b.x.steps[b.ndim - 1]
        where += b.where.steps[b.ndim - 1]
    memcpy(lanes.bits, bits, at.n * sizeof(uint64_t))
    memcpy(lanes.count, counts, at.n * sizeof(int64_t))
    choose_results(lanes, &b.rule)


cdef void reduce_chunk(const Blocks *b, const Places *at, char *scratch) noexcept nogil:
    """Reduce up to LANES blocks."""
    cdef block_lanes_t *lanes = <block_lanes_t *>scratch
    cdef char *rows = scratch + round_up(sizeof(block_lanes_t), 64)
    if b.taps <= MOST_TAPS:
        reduce_columns_of(b, at, lanes, rows, b.counts.data != NULL)
    else:
        reduce_lists_of(b, at, lanes, rows)
    store_chunk(b, &b.y, at.y, at.n, lanes.row, dtype_bytes[b.rule.result])
    store_chunk(b, &b.counts, at.counts, at.n, lanes.count, 8)


cdef void reduce_task(void *call, Py_ssize_t task, int thread) noexcept nogil:
    cdef const Blocks *b = <const Blocks *>call
    cdef Py_ssize_t chunk
    cdef fp_state state
    cdef Places at
    at.n = 0
    fp_enter(&state)
    for chunk in range(task * b.chunks_per_task, imin(b.chunks, (task + 1) * b.chunks_per_task)):
        place_chunk(b, chunk, &at)
        reduce_chunk(b, &at, b.scratch + thread * b.scratch_bytes)
    fp_leave(&state)


cdef void fold_task(void *call, Py_ssize_t task, int thread) noexcept nogil:
    cdef const Blocks *b = <const Blocks *>call
    cdef Py_ssize_t row, t
    cdef block_folds_t f
    cdef fp_state state
    cdef Places at
    f.rule, f.n, f.counts = &b.rule, b.row, NULL
    f.sums, f.width, f.count = b.sums, <int>b.block[b.block_ndim - 1], <int>b.rows
    f.pairs = f.width & -f.width
    f.odd = f.width // f.pairs
    f.need = <int>imin(b.rule.need, 127)
    fp_enter(&state)
    for row in range(task * b.chunks_per_task, imin(b.chunks, (task + 1) * b.chunks_per_task)):
        place_lane(b, row * b.row, &at, 0)
        for t in range(b.rows):
            f.taps[t] = b.x.data + at.x[0] + b.x.taps[t]
            if b.rule.masked:
                f.where[t] = <const uint8_t *>b.where.data + at.where[0] + b.where.taps[t]
        f.to = b.y.data + at.y[0]
        if b.counts.data != NULL:
            f.counts = <int64_t *>(b.counts.data + at.counts[0])
        fold_blocks(&f)
    fp_leave(&state)


cdef int set_fields(int64_t *field, values) except -1:
    for value in values:            # (of 64 bits also where Py_ssize_t is not)
        field[0] = value
        field += 1
    return 0


cdef char *data_of(x, int flags) except NULL:
    """Return where the data of an array begins, which the caller holds."""
    cdef Array array
    if not read_array(&array, x, x.dtype, flags):
        raise AssertionError("fastpool: the kernels refused an array; please report this")
    release_array(&array)
    return array.data


cdef void fill_task(void *call, Py_ssize_t task, int thread) noexcept nogil:
    cdef fill_t *f = <fill_t *>call
    cdef Py_ssize_t at = task * FILLED_PER_TASK
    fill_missing(f, at, imin(FILLED_PER_TASK, f.n - at))


def filled(rule, x, where, to, int threads, int by_default, /):
    """Copy elements, with a filler where one is missing.

    `rule` are the first fields of fill_t. The arrays are contiguous and of one size, but `where`
    may be None. Return whether an element is wild.
    """
    cdef fill_t f
    cdef Py_ssize_t tasks
    memset(&f, 0, sizeof(f))
    if len(rule) != FILL_FIELDS:
        raise ValueError(f"{len(rule)} fields of a rule, not {FILL_FIELDS}")
    set_fields(&f.code, rule)
    f.x, f.to, f.n = data_of(x, ALIGNED), data_of(to, ALIGNED | WRITEABLE), to.size
    if where is not None:
        f.where = <const uint8_t *>data_of(where, ALIGNED)
    tasks = (f.n + FILLED_PER_TASK - 1) // FILLED_PER_TASK
    threads = thread_count(tasks, threads, by_default)
    with nogil:
        run_tasks(fill_task, &f, 0, tasks, threads, by_default)
    return f.wild != 0


cdef void place_block(Operand *of, const Py_ssize_t *block, int ndim) noexcept nogil:
    """Set where the taps of a block in columns are."""
    cdef Py_ssize_t taps = 1, t
    cdef int axis
    of.taps[0] = 0
    for axis in range(ndim - 1, -1, -1):
        for t in range(taps, taps * block[axis]):
            of.taps[t] = of.taps[t - taps] + of.tap_steps[axis]
        taps *= block[axis]


cdef int set_operand(Operand *to, const Blocks *b, operand, bint written) except -1:
    """Set an operand from (array, steps, tap steps); None stands for no array."""
    memset(to, 0, sizeof(Operand))
    if operand is None:
        return 0
    x, steps, tap_steps = operand
    to.data = data_of(x, ALIGNED | WRITEABLE if written else ALIGNED)
    read_integers(to.steps, steps, b.ndim)
    if tap_steps is None:
        return 0
    read_integers(to.tap_steps, tap_steps, b.block_ndim)
    if b.rows <= MOST_TAPS:
        place_block(to, b.block, b.block_ndim - (b.rows < b.taps))
    return 0


cdef char *scratch_of(int threads, Py_ssize_t nbytes) except NULL:
    cdef char *scratch = <char *>malloc(threads * nbytes)
    if scratch == NULL:
        raise MemoryError(f"fastpool: no memory for the scratch of {threads} threads, "
                          f"{nbytes} bytes each")
    return scratch


def reduce_blocks(rule, shape, block, operands, bytes sums, int threads, int by_default, /):
    """Reduce all blocks of a region; unless `sums` is None, by rows, as vectors/block_folds.h does.

    `rule` are the fields of block_rule_t but the last one, `shape` the outputs per axis and `block`
    the taps per axis, neither of them empty. The operands are x, where, y and counts, each (array,
    steps from output to output, steps from tap to tap), or None. The caller holds their arrays, and
    knows that all places are inside of them, and that y and counts share no memory with the others.
    """
    cdef Blocks b
    cdef int axis, i
    cdef Py_ssize_t tasks, width
    if not 1 <= len(shape) <= MAX_NDIM or not 1 <= len(block) <= MAX_NDIM:
        raise ValueError("axes of outputs, or of blocks")
    memset(&b, 0, sizeof(b))
    if len(rule) != RULE_FIELDS:
        raise ValueError(f"{len(rule)} fields of a rule, not {RULE_FIELDS}")
    set_fields(&b.rule.code, rule)
    b.ndim, b.block_ndim = <int>len(shape), <int>len(block)
    read_integers(b.shape, shape, b.ndim)
    read_integers(b.block, block, b.block_ndim)
    b.taps = b.outputs = 1
    for axis in range(b.ndim):
        b.outputs *= b.shape[axis]
    for axis in range(b.block_ndim):
        b.taps *= b.block[axis]
    b.rows = b.taps
    if sums is not None:
        width = b.block[b.block_ndim - 1]
        b.rows //= width
        if (len(sums) != b.rows or b.rows > MOST_TAPS or width > MOST_WIDTH
                or width // (width & -width) > MOST_ODD):
            raise ValueError(f"{len(sums)} sums of {b.rows} rows of {width}")
        b.sums = <const uint8_t *><const char *>sums
    if b.taps > MOST_BYTES // (32 * MAX_THREADS):   # (an array of stride 0)
        raise MemoryError(f"fastpool: no memory for lists of {b.taps} elements")
    b.itemsize = dtype_bytes[b.rule.code]
    for i in range(4):
        set_operand(&b.x + i, &b, operands[i], i >= 2)
    if b.x.data == NULL or b.y.data == NULL:
        raise ValueError("no input or no result")
    b.rule.masked = b.where.data != NULL
    b.row = b.shape[b.ndim - 1] if b.shape[b.ndim - 1] >= SHORT_ROW else 0
    b.chunks = (b.outputs + LANES - 1) // LANES
    if b.row:
        b.chunks_per_row = 1 if b.sums != NULL else (b.row + LANES - 1) // LANES
        b.chunks = b.outputs // b.row * b.chunks_per_row
    b.scratch_bytes = round_up(sizeof(block_lanes_t), 64)
    if b.taps <= MOST_TAPS:         # elements, doubles, and which of them are there
        b.scratch_bytes += b.taps * LANES * 17
    else:
        b.list_bytes = round_up((b.taps + LANES) * b.itemsize, 64)
        b.scratch_bytes += LANES * 9 + b.list_bytes
        if b.rule.function in (B_MODE, B_MEDIAN, B_VAR, B_STD):
            b.scratch_bytes += b.taps * 8
    b.scratch_bytes = round_up(b.scratch_bytes, 64)
    b.chunks_per_task = imax(1, b.chunks // (threads * TASKS_PER_THREAD))
    tasks = (b.chunks + b.chunks_per_task - 1) // b.chunks_per_task
    threads = thread_count(tasks, threads, by_default)
    b.scratch = scratch_of(threads, b.scratch_bytes)
    memset(b.scratch, 0, threads * imin(b.scratch_bytes, MOST_TAPS * LANES * 18))
    with nogil:
        run_tasks(fold_task if b.sums != NULL else reduce_task, &b, 0, tasks, threads, by_default)
    free(b.scratch)
