# Set up a pooling to maxima by the strategy that fastpool/_running/strategies.py chose.

STRATEGIES = {
    "bands": BANDS, "direct_pixels": DIRECT_PIXELS, "pixels_as_row": PIXELS_AS_ROW,
    "slide_down": SLIDE_DOWN, "stride_two": STRIDE_TWO, "apart": APART,
    "whole_plane": WHOLE_PLANE, "flat_planes": FLAT_PLANES,
    "taps": TAPS, "pairs": PAIRS, "running_maxima": RUNNING_MAXIMA,
    "irregular": IRREGULAR, "planes_as_pixels": PLANES_AS_PIXELS,
    "one_window": ONE_WINDOW, "composites": COMPOSITES,
    "whole_pixels": WHOLE_PIXELS,
}

# What the strategies can take, for the tests of that module.
LIMITS = {
    "MAX_TAPS": MAX_TAPS, "SMALL_TAPS": SMALL_TAPS, "RING": RING, "QUEUE": QUEUE,
    "FLAT_TAPS": FLAT_TAPS, "FLAT_MASKS": FLAT_MASKS, "MOST_BYTE_ROWS": MOST_BYTE_ROWS,
    "MOST_BYTE_TAPS": MOST_BYTE_TAPS,
}


cdef bint has_irregular_axes(const Problem *p) noexcept:
    cdef bint found = p.rows.irregular or p.cols.irregular
    cdef Py_ssize_t i
    for i in range(p.leads):
        found |= p.lead[i].irregular
    return found


cdef int plan_maximum(Pool *p, schedule) except -1:
    """Set a pooling to maxima by the strategy of its schedule, a name of STRATEGIES."""
    strategy = schedule.strategy
    p.strategy = STRATEGIES[strategy]
    set_frame(&p.frame, schedule)
    if p.strategy != IRREGULAR and has_irregular_axes(&p.frame.problem):
        raise ValueError(f"{strategy}: takes no irregular axes")
    p.frame.run = run_task
    p.with_indices, p.keyed = schedule.return_indices, schedule.keyed
    p.key_bytes = schedule.key_bytes
    p.rule = NAN_IGNORE if schedule.nan == "ignore" else 0
    if p.with_indices:
        p.rule |= ZEROS_EQUAL
    if schedule.minimum:
        p.rule |= MINIMUM
    set_indexing(&p.indexing, schedule)
    if not VEC_MASKS and (p.strategy == SLIDE_DOWN or p.strategy == STRIDE_TWO
                          or p.strategy == FLAT_PLANES):
        raise ValueError(f"{strategy}: this build has no masks")
    if p.rule & MINIMUM and not p.keyed and takes_maxima_only(p):
        raise ValueError(f"{strategy}: takes minima as keys only")
    if p.strategy == TAPS:
        plan_taps(p, schedule)
    elif p.strategy == RUNNING_MAXIMA:
        plan_running_maxima(p, schedule.axes)
    elif p.strategy == PLANES_AS_PIXELS or p.strategy == COMPOSITES:
        plan_inner(p, schedule)
    elif p.strategy == FLAT_PLANES and not plan_flat_planes(p):
        raise MemoryError("fastpool: no memory for masks")
    if not (p.strategy == RUNNING_MAXIMA or p.strategy == PLANES_AS_PIXELS
            or p.strategy == COMPOSITES):
        p.in_place = bands_in_place(p)
    plan_scratch(p)
    return 0


cdef int plan_inner(Pool *p, schedule) except -1:
    """Set the pool of interleaved planes, or of composites."""
    p.inner = <Pool *>malloc(sizeof(Pool))
    if p.inner == NULL:
        raise MemoryError("fastpool: no memory for a pooling")
    memset(p.inner, 0, sizeof(Pool))    # (freed whatever is set)
    plan_maximum(p.inner, schedule.inner)
    if p.strategy == PLANES_AS_PIXELS:
        p.frame.tiling.tasks = ceil_div(p.frame.problem.batch * p.frame.problem.channels,
                                        p.frame.tiling.planes)
    return 0


cdef void plan_scratch(Pool *p) noexcept nogil:
    """Lay out the scratch of one thread."""
    cdef Py_ssize_t sizes[AREAS]        # in elements, or in keys if p has indices
    cdef Py_ssize_t element = p.key_bytes if p.with_indices else p.frame.problem.size
    cdef int i
    memset(sizes, 0, sizeof(sizes))
    if p.strategy == RUNNING_MAXIMA:
        sizes[<int>SLAB], element = running_scratch(p), 1
    elif p.strategy == PLANES_AS_PIXELS:
        planes_as_pixels_scratch(p, sizes)
        element = 1
    elif p.strategy == COMPOSITES:
        composites_scratch(p, sizes)
        element = 1
    elif p.strategy == IRREGULAR:
        irregular_scratch(p, sizes)
    elif p.strategy == TAPS:
        taps_scratch(p, sizes)
    elif p.strategy == ONE_WINDOW:
        one_window_scratch(p, sizes)
    elif p.with_indices:
        pairs_scratch(p, sizes)
    else:
        values_scratch(p, sizes)
    for i in range(<int>AREAS):
        sizes[i] *= element
    lay_out_scratch(&p.frame.scratch, sizes, AREAS)


cdef void free_maximum(Pool *p) noexcept:
    free_flat_planes(p.flat)
    free(p.running)
    if p.inner != NULL:
        free_maximum(p.inner)
        free(p.inner)
    free_frame(&p.frame)
