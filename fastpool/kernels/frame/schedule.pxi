# Copy a schedule (`fastpool._running.work.Work`) to structs.
#
# The numbers of a struct stand at its beginning, and one tuple has their names, in the same order.
# So one loop copies them. (A conversion per attribute took 70 kB of each build.)

WINDOW_FIELDS = "size", "out", "kernel", "stride", "dilation", "begin", "extent"
PROBLEM_FIELDS = "batch", "channels", "channels_last"

CODES = {
    "float16": F16, "bfloat16": BF16, "float32": F32, "float64": F64, "int8": I8, "int16": I16,
    "int32": I32, "int64": I64, "uint8": U8, "uint16": U16, "uint32": U32, "uint64": U64,
    "bool": BOOL,
}


cdef int read_fields(Py_ssize_t *to, work, tuple names) except -1:
    """Copy the integers of these names. Raise if one is no integer, or does not fit."""
    for name in names:
        to[0] = getattr(work, name)
        to += 1
    return 0


cdef int read_integers(Py_ssize_t *to, values, Py_ssize_t count) except -1:
    """Copy `count` integers. Raise if there are not as many, or one does not fit."""
    cdef tuple integers = tuple(values)
    if len(integers) != count:
        raise ValueError(f"{len(integers)} integers, not {count}")
    for value in integers:
        to[0] = value
        to += 1
    return 0


cdef int set_window(Window *w, window) except -1:
    """Copy a window of the schedule. Raise ValueError if its chain does not fit."""
    cdef Py_ssize_t numbers[3]
    cdef Py_ssize_t i = 0
    read_fields(&w.size, window, WINDOW_FIELDS)
    read_integers(&w.inner_lo, window.inner, 2)
    w.steps = len(window.steps)
    if not 1 <= w.steps <= MAX_STEPS:
        raise ValueError(f"a chain of {w.steps} steps")
    for step in window.steps[:MAX_STEPS]:
        read_integers(numbers, step, 3)
        w.taps[i], w.shifts[i], w.lasts[i] = numbers[0], numbers[1], numbers[2]
        if not 1 <= w.taps[i] <= MAX_TAPS:
            raise ValueError(f"a step of {w.taps[i]} taps")
        i += 1
    w.irregular = bool(window.places)
    if w.irregular:
        read_integers(numbers, window.places, 3)
        w.outputs, w.rest = numbers[1], numbers[2]
        if w.outputs < 1:
            raise ValueError(f"{w.outputs} outputs")
        w.whole, w.part = numbers[0] // w.outputs, numbers[0] % w.outputs
    return 0


cdef int set_problem(Problem *p, schedule) except -1:
    cdef Py_ssize_t i
    cdef tuple beyond = schedule.beyond
    windows = schedule.windows
    p.leads = len(windows) - 2
    if p.leads:
        p.lead = <Window *>malloc(p.leads * sizeof(Window))
        if p.lead == NULL:
            raise MemoryError("fastpool: no memory for windows")
        memset(p.lead, 0, p.leads * sizeof(Window))     # (freed whatever is set)
    p.lead_outs = 1
    for i in range(p.leads):
        set_window(&p.lead[i], windows[i])
        p.lead_outs *= p.lead[i].out
    set_window(&p.rows, windows[p.leads])
    set_window(&p.cols, windows[p.leads + 1])
    read_fields(&p.batch, schedule, PROBLEM_FIELDS)
    p.code = CODES[schedule.dtype]
    p.size = dtype_bytes[p.code]
    if beyond:
        p.beyond = <Py_ssize_t *>malloc(len(beyond) * sizeof(Py_ssize_t))
        if p.beyond == NULL:
            raise MemoryError("fastpool: no memory for a border")
        read_integers(p.beyond, beyond, len(beyond))
    return 0


cdef Py_ssize_t plane_tiles(const Problem *p, const Tiling *t) noexcept:
    """Return the number of tiles of one output of the pooled axes."""
    cdef Py_ssize_t tiles = p.batch if p.channels_last else ceil_div(p.batch * p.channels, t.planes)
    return tiles * t.channel_tiles


cdef int set_tiling(Tiling *t, const Problem *p, tile) except -1:
    """`tile` is (rows, columns, channels, planes)."""
    read_integers(&t.rows, tile, 4)
    t.row_tiles, t.col_tiles = ceil_div(p.rows.out, t.rows), ceil_div(p.cols.out, t.cols)
    t.channel_tiles = ceil_div(p.channels, t.channels) if p.channels_last else 1
    t.tasks = plane_tiles(p, t) * p.lead_outs * t.row_tiles * t.col_tiles
    return 0


cdef int set_frame(Frame *frame, schedule) except -1:
    """Set all but the scratch and what runs a task."""
    set_problem(&frame.problem, schedule)
    return set_tiling(&frame.tiling, &frame.problem, schedule.tile)


cdef void free_frame(Frame *frame) noexcept:
    free(frame.problem.lead)
    free(frame.problem.beyond)
