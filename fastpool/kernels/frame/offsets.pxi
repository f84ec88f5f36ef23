# Where a tile begins in its arrays.

cdef inline Py_ssize_t lead_taps(const Problem *p, const View *x, Py_ssize_t output,
                                 Py_ssize_t *counts, Py_ssize_t *first) noexcept nogil:
    """Count the taps of one output of the leading axes that are elements.

    `counts` gets their number per axis, `first` the offset of the first of them in x.
    """
    cdef Py_ssize_t axis = p.leads, total = 1, at
    first[0] = 0
    while axis > 0:
        axis -= 1
        counts[axis] = real_taps(&p.lead[axis], output % p.lead[axis].out, &at)
        output //= p.lead[axis].out
        total *= counts[axis]
        first[0] += at * x.lead[axis]
    return total


cdef inline Py_ssize_t lead_offset(const Problem *p, const Py_ssize_t *strides,
                                   const Py_ssize_t *counts, Py_ssize_t tap) noexcept nogil:
    """Return the distance of leading tap number `tap` (row-major) from the first one."""
    cdef Py_ssize_t axis = p.leads, offset = 0
    while axis > 0:
        axis -= 1
        offset += tap % counts[axis] * p.lead[axis].dilation * strides[axis]
        tap //= counts[axis]
    return offset


cdef inline bint evenly_spaced(const Problem *p, const View *x) noexcept nogil:
    """Is plane n * C + c that many steps away from the first plane?"""
    return p.batch == 1 or x.batch == p.channels * x.channel


cdef inline Py_ssize_t plane_offset(const Problem *p, const View *x,
                                    Py_ssize_t plane) noexcept nogil:
    if evenly_spaced(p, x):             # most arrays, and no division
        return plane * x.channel
    return plane // p.channels * x.batch + plane % p.channels * x.channel


cdef inline Py_ssize_t input_offset(const Problem *p, const View *x, const Tile *tile,
                                    Py_ssize_t plane) noexcept nogil:
    """Return the offset of one plane of the tile in x: its first element, row and channel."""
    cdef Py_ssize_t at = tile.row_lo * x.row + tile.col_lo * x.col
    if p.channels_last:
        return at + tile.batch * x.batch + tile.channel * x.channel
    return at + plane_offset(p, x, tile.plane + plane)


cdef inline Py_ssize_t output_offset(const Problem *p, const View *y, const Tile *tile,
                                     Py_ssize_t plane) noexcept nogil:
    cdef Py_ssize_t at = tile.row * y.row + tile.col * y.col, lead = tile.lead, axis = p.leads
    while axis > 0:
        axis -= 1
        at += lead % p.lead[axis].out * y.lead[axis]
        lead //= p.lead[axis].out
    if p.channels_last:
        return at + tile.batch * y.batch + tile.channel * y.channel
    return at + plane_offset(p, y, tile.plane + plane)


cdef inline Py_ssize_t extent_of(const Problem *p, Py_ssize_t axis, bint outputs) noexcept nogil:
    """Return the extent of a pooled axis: leading ones, then rows, then columns."""
    cdef const Window *w = &p.cols if axis > p.leads else &p.rows
    if axis < p.leads:
        w = &p.lead[axis]
    return w.out if outputs else w.size


cdef inline Py_ssize_t step_of(const View *view, const Problem *p, Py_ssize_t axis) noexcept nogil:
    """Return the elements from one index of a pooled axis to the next."""
    if axis < p.leads:
        return view.lead[axis]
    return view.row if axis == p.leads else view.col


cdef struct Runs:                       # a plane as runs of pixels that are evenly spaced
    Py_ssize_t length, count
    Py_ssize_t axes                     # that lead to the runs, the first ones


cdef Runs runs_of(const Problem *p, const View *view, bint outputs) noexcept nogil:
    """Cut a plane, or the outputs of one, into runs: rows that follow one another are one."""
    cdef Runs runs
    cdef Py_ssize_t axis, step
    runs.length, runs.count, runs.axes = extent_of(p, p.leads + 1, outputs), 1, p.leads + 1
    step = runs.length * view.col
    while runs.axes > 0 and (extent_of(p, runs.axes - 1, outputs) == 1
                             or step_of(view, p, runs.axes - 1) == step):
        runs.axes -= 1
        runs.length *= extent_of(p, runs.axes, outputs)
        step *= extent_of(p, runs.axes, outputs)
    for axis in range(runs.axes):
        runs.count *= extent_of(p, axis, outputs)
    return runs


cdef Py_ssize_t run_offset(const Problem *p, const View *view, const Runs *runs, Py_ssize_t run,
                           bint outputs) noexcept nogil:
    """Return where a run begins in its plane."""
    cdef Py_ssize_t axis = runs.axes, at = 0
    while axis > 0:
        axis -= 1
        at += run % extent_of(p, axis, outputs) * step_of(view, p, axis)
        run //= extent_of(p, axis, outputs)
    return at
