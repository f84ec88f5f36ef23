# The arrays that a pooling takes, and arrays as the kernels read them.

cdef struct Prepared:               # all that a call needs
    const Frame *frame
    bint with_indices
    int batch_axis, channel_axis, row_axis, col_axis, ndim
    int lead_axes[MAX_LEADS]
    Py_ssize_t x_shape[MAX_NDIM]
    Py_ssize_t y_shape[MAX_NDIM]
    size_t work
    # of the element sizes: a 64-bit division takes as long as a small pooling
    int shift, y_shift, index_shift


cdef int set_arrays(Prepared *prepared, const Frame *frame, schedule) except -1:
    """Set the pooling, and the axes and shapes of its arrays."""
    cdef Py_ssize_t leads = frame.problem.leads
    cdef int i
    prepared.frame, prepared.with_indices = frame, schedule.return_indices
    axes = schedule.spatial_axes
    prepared.row_axis, prepared.col_axis = axes[leads], axes[leads + 1]
    prepared.batch_axis, prepared.channel_axis = schedule.batch_axis, schedule.channel_axis
    for i in range(leads):
        prepared.lead_axes[i] = axes[i]
    prepared.ndim, prepared.work = len(schedule.input_shape), schedule.effort
    for i in range(prepared.ndim):
        prepared.x_shape[i] = schedule.input_shape[i]
        prepared.y_shape[i] = schedule.output_shape[i]
    prepared.shift = prepared.y_shift = log2(frame.problem.size)
    prepared.index_shift = log2(schedule.index_bytes)
    return 0


cdef bint view_array(View *view, const Array *array, const Prepared *prepared,
                     const Py_ssize_t *shape, int shift) noexcept nogil:
    """Set a view, strides in elements. Return False if kernels cannot read the array as it is."""
    cdef const Problem *p = &prepared.frame.problem
    cdef Py_ssize_t strides = 0
    cdef bint empty = False
    cdef int i
    if not has_shape(array, prepared.ndim, shape):
        return False
    for i in range(prepared.ndim):
        empty |= shape[i] == 0
        if shape[i] > 1:
            strides |= array.strides[i]
    if empty:                           # strides mean nothing; NumPy's are 0
        memset(view, 0, sizeof(View))
        return True
    if strides & ((<Py_ssize_t>1 << shift) - 1):
        return False
    view.data = array.data
    # An axis of one element continues its neighbour, so that planes look as evenly spaced as they
    # are.
    view.batch = axis_step(array, prepared.batch_axis, shift, 0)
    view.channel = axis_step(array, prepared.channel_axis, shift,
                             1 if p.channels_last else view.batch)
    if p.batch == 1:
        view.batch = p.channels * view.channel
    view.row = axis_step(array, prepared.row_axis, shift, view.channel)
    view.col = axis_step(array, prepared.col_axis, shift, 1)
    for i in range(p.leads):
        view.lead[i] = axis_step(array, prepared.lead_axes[i], shift, 0)
    if p.channels_last:
        return view.channel == 1
    return view.col == 1


cdef inline Py_ssize_t axis_step(const Array *array, int axis, int shift,
                                 Py_ssize_t absent) noexcept nogil:
    """Return the elements from one index of an axis to the next.

    If the axis is absent or has one element, return `absent`.
    """
    if axis < 0 or array.shape[axis] == 1:
        return absent
    return array.strides[axis] >> shift
