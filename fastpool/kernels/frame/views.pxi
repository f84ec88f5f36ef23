# The arrays that a pooling takes, and arrays as the kernels read them.

cdef struct Prepared:               # all that a call needs
    const Frame *frame
    bint with_indices
    Py_ssize_t batch_axis, channel_axis     # AXIS_FIELDS
    Py_ssize_t joined       # first axes that must be evenly spaced; also AXIS_FIELDS
    Py_ssize_t axes[MAX_LEADS + 2]                  # leading axes, rows, columns
    int ndim
    Py_ssize_t x_shape[MAX_NDIM]
    Py_ssize_t y_shape[MAX_NDIM]
    size_t work
    int by_default              # number of threads (threads.pxi)
    # of the element sizes: a 64-bit division takes as long as a small pooling
    int shift, y_shift, index_shift
    const void *more                                # of a Job: of all runs from C


AXIS_FIELDS = "batch_axis", "channel_axis", "joined"


cdef int set_arrays(Prepared *prepared, const Frame *frame, schedule) except -1:
    """Set the pooling, and the axes and shapes of its arrays."""
    prepared.frame, prepared.with_indices = frame, schedule.return_indices
    read_fields(&prepared.batch_axis, schedule, AXIS_FIELDS)
    read_integers(prepared.axes, schedule.spatial_axes, frame.problem.leads + 2)
    prepared.ndim, prepared.work = len(schedule.input_shape), schedule.effort
    read_integers(prepared.x_shape, schedule.input_shape, prepared.ndim)
    read_integers(prepared.y_shape, schedule.output_shape, prepared.ndim)
    prepared.shift = prepared.y_shift = log2(frame.problem.size)
    prepared.index_shift = log2(schedule.index_bytes)
    return 0


cdef bint view_array(View *view, const Array *array, const Prepared *prepared,
                     const Py_ssize_t *shape, int shift) noexcept nogil:
    """Set a view, strides in elements. Return False if kernels cannot read the array as it is."""
    cdef const Problem *p = &prepared.frame.problem
    cdef Py_ssize_t strides = 0, rows = prepared.axes[p.leads]
    cdef Py_ssize_t step = 0            # of joined axes, 0 if any
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
    if prepared.axes[p.leads + 1] < prepared.joined:
        step = <Py_ssize_t>1 << shift
    if not are_joined(array, prepared.joined, step, shape):
        return False
    # An axis of one element continues its neighbour: planes look as evenly spaced as they are.
    view.batch = axis_step(array, prepared.batch_axis, shift, 0)
    view.channel = axis_step(array, prepared.channel_axis, shift,
                             1 if p.channels_last else view.batch)
    view.row = axis_step(array, rows, shift, view.channel)
    if p.batch == 1:
        if prepared.batch_axis >= 0 and shape[prepared.batch_axis] > 1:
            # The images of a batch are one, each below the one before (`images_as_one`).
            view.row = axis_step(array, rows, shift, view.batch)
            if view.batch != view.row * (shape[rows] if rows >= 0 else 1):
                return False
        view.batch = p.channels * view.channel
    view.col = axis_step(array, prepared.axes[p.leads + 1], shift, 1)
    for i in range(p.leads):
        view.lead[i] = axis_step(array, prepared.axes[i], shift, 0)
    if p.channels_last:
        return view.channel == 1
    return view.col == 1


cdef inline bint are_joined(const Array *array, Py_ssize_t axes, Py_ssize_t step,
                            const Py_ssize_t *shape) noexcept nogil:
    """Are the first axes evenly spaced, from the last one's `step` in bytes on? 0 is any step."""
    cdef Py_ssize_t i
    for i in range(axes - 1, -1, -1):
        if shape[i] > 1:
            if step == 0:
                step = array.strides[i]
            if step == 0 or array.strides[i] != step:
                return False
            step *= shape[i]
    return True


cdef inline Py_ssize_t axis_step(const Array *array, Py_ssize_t axis, int shift,
                                 Py_ssize_t absent) noexcept nogil:
    """Return the elements from one index of an axis to the next.

    If the axis is absent or has one element, return `absent`.
    """
    if axis < 0 or array.shape[axis] == 1:
        return absent
    return array.strides[axis] >> shift
