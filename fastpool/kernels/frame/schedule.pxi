# Copy a schedule (`fastpool._running.work.Work`) to structs.

CODES = {
    "float16": F16, "bfloat16": BF16, "float32": F32, "float64": F64, "int8": I8, "int16": I16,
    "int32": I32, "int64": I64, "uint8": U8, "uint16": U16, "uint32": U32, "uint64": U64,
    "bool": BOOL,
}


cdef int set_window(Window *w, window) except -1:
    """Copy a window of the schedule. Raise ValueError if its chain does not fit."""
    cdef Py_ssize_t i
    w.size, w.out, w.begin = window.size, window.out, window.begin
    w.kernel, w.stride, w.dilation = window.kernel, window.stride, window.dilation
    w.extent = window.extent
    w.inner_lo, w.inner_hi = window.inner
    w.steps = len(window.steps)
    if not 1 <= w.steps <= MAX_STEPS:
        raise ValueError(f"a chain of {w.steps} steps")
    for i in range(w.steps):
        w.taps[i], w.shifts[i], w.lasts[i] = window.steps[i]
        if not 1 <= w.taps[i] <= MAX_TAPS:
            raise ValueError(f"a step of {w.taps[i]} taps")
    w.irregular = bool(window.places)
    if w.irregular:
        size, w.outputs, w.rest = window.places
        w.whole, w.part = divmod(size, w.outputs)
    return 0


cdef int set_problem(Problem *p, schedule) except -1:
    cdef Py_ssize_t i
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
    p.batch, p.channels = schedule.batch, schedule.channels
    p.channels_last = schedule.channels_last
    p.code = CODES[schedule.dtype]
    p.size = dtype_bytes[p.code]
    return 0


cdef Py_ssize_t plane_tiles(const Problem *p, const Tiling *t) noexcept:
    """Return the number of tiles of one output of the pooled axes."""
    cdef Py_ssize_t tiles = p.batch if p.channels_last else ceil_div(p.batch * p.channels, t.planes)
    return tiles * t.channel_tiles


cdef int set_tiling(Tiling *t, const Problem *p, tile) except -1:
    """`tile` is (rows, columns, channels, planes)."""
    t.rows, t.cols, t.channels, t.planes = tile
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
