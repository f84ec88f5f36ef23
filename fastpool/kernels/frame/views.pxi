# A pooling together with the shapes of its arrays, and arrays as the kernels read them.

cdef struct Prepared:               # a pooling, and how arrays lie that have its shapes: all that a call needs
    Pool pool
    int batch_axis, channel_axis, row_axis, col_axis, ndim
    int lead_axes[MAX_LEADS]
    Py_ssize_t x_shape[MAX_NDIM]
    Py_ssize_t y_shape[MAX_NDIM]
    size_t work
    int shift, index_shift                  # of the element sizes: a 64-bit division takes as long as a small pooling


cdef bint view_array(View *view, const Array *array, const Prepared *prepared, const Py_ssize_t *shape, int shift) noexcept nogil:
    """Strides in elements, if kernels can work on this array as it is."""
    cdef const Pool *p = &prepared.pool
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
    # An axis of one element continues its neighbour, so that planes look as evenly spaced as they are.
    view.batch = axis_step(array, prepared.batch_axis, shift, 0)
    view.channel = axis_step(array, prepared.channel_axis, shift, 1 if p.channels_last else view.batch)
    if p.batch == 1:
        view.batch = p.channels * view.channel
    view.row = axis_step(array, prepared.row_axis, shift, view.channel)
    view.col = axis_step(array, prepared.col_axis, shift, 1)
    for i in range(p.leads):
        view.lead[i] = axis_step(array, prepared.lead_axes[i], shift, 0)
    if p.channels_last:
        return view.channel == 1
    return view.col == 1


cdef inline Py_ssize_t axis_step(const Array *array, int axis, int shift, Py_ssize_t absent) noexcept nogil:
    """Elements from one index of an axis to the next; `absent` if it is not there or has only one."""
    if axis < 0 or array.shape[axis] == 1:
        return absent
    return array.strides[axis] >> shift
