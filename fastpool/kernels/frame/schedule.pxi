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
    w.extent = (w.kernel - 1) * w.dilation + 1
    w.inner_lo = imin(w.out, ceil_div(imax(w.begin, 0), w.stride))
    w.inner_hi = 0
    if w.size - w.extent + w.begin >= 0:
        w.inner_hi = imin(w.out, (w.size - w.extent + w.begin) // w.stride + 1)
    w.inner_hi = imax(w.inner_lo, w.inner_hi)
    w.steps = len(window.steps)
    if not 1 <= w.steps <= MAX_STEPS:
        raise ValueError(f"a chain of {w.steps} steps")
    for i in range(w.steps):
        w.taps[i], w.shifts[i], w.lasts[i] = window.steps[i]
        if not 1 <= w.taps[i] <= MAX_TAPS:
            raise ValueError(f"a step of {w.taps[i]} taps")
    return 0


cdef int set_problem(Problem *p, schedule) except -1:
    cdef Py_ssize_t i
    windows = schedule.windows
    p.leads = len(windows) - 2
    if p.leads:
        p.lead = <Window *>malloc(p.leads * sizeof(Window))
        if p.lead == NULL:
            raise MemoryError("fastpool: no memory for windows")
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


cdef int set_tiling(Tiling *t, const Problem *p, tile) except -1:
    """`tile` is (rows, columns, channels, planes)."""
    t.rows, t.cols, t.channels, t.planes = tile
    t.row_tiles, t.col_tiles = ceil_div(p.rows.out, t.rows), ceil_div(p.cols.out, t.cols)
    t.channel_tiles = ceil_div(p.channels, t.channels) if p.channels_last else 1
    t.tasks = p.batch if p.channels_last else ceil_div(p.batch * p.channels, t.planes)
    t.tasks *= t.channel_tiles          # of one output of the pooled axes
    return 0


cdef int set_indexing(Indexing *indexing, schedule) except -1:
    cdef Py_ssize_t leads = len(schedule.windows) - 2, i
    strides = schedule.index_strides
    indexing.bytes, indexing.base = schedule.index_bytes, schedule.index_base
    indexing.batch, indexing.channel = strides[0], strides[1]
    indexing.row, indexing.col = strides[2 + leads], strides[3 + leads]
    indexing.linear = schedule.linear
    for i in range(leads):
        indexing.lead[i] = strides[2 + i]
        indexing.position_lead[i] = schedule.position_strides[i]
    return 0
