# Read NumPy's arrays without NumPy's headers.
#
# The fields below begin every ndarray. NumPy's headers read them inline, in every extension that is
# compiled against NumPy 1 or 2, so they cannot move. `fields_agree` compares them with what Python
# says of several arrays before anything trusts them. If they do not agree, arrays are read through
# the buffer protocol.
#
# Shape and strides are copied or compared under the GIL. The caller's references keep the memory:
# ndarray.resize refuses to move it as long as they exist. Holding an exported buffer would protect
# from no more, because resize(refcheck=False) ignores exports as well.

cdef extern from *:
    """
    typedef struct {
        PyObject_HEAD
        char *data;
        int nd;
        Py_ssize_t *dimensions, *strides;
        PyObject *base, *descr;
        int flags;
    } ndarray_fields;
    """
    ctypedef struct ndarray_fields:
        char *data
        int nd
        Py_ssize_t *dimensions
        Py_ssize_t *strides
        PyObject *descr
        int flags


cdef enum:                          # bits of ndarray.flags.num
    CONTIGUOUS = 0x1
    ALIGNED = 0x100
    WRITEABLE = 0x400


cdef struct Array:
    char *data
    int ndim
    const Py_ssize_t *shape
    const Py_ssize_t *strides       # in bytes
    bint exported                   # read through this buffer
    Py_buffer buffer


cdef object ndarray = numpy.ndarray


cdef object empty = numpy.empty


cdef object INT32 = numpy.dtype("int32")


cdef object INT64 = numpy.dtype("int64")


cdef bint fields_known = False


def fields_agree(x):
    """Return whether the fields of an array say what Python says of it."""
    cdef ndarray_fields *fields = <ndarray_fields *>x
    cdef int flags = CONTIGUOUS | ALIGNED | WRITEABLE, i
    if ndarray.__basicsize__ < <Py_ssize_t>sizeof(ndarray_fields):
        return False
    # Pointers are followed only once these agree.
    if <uintptr_t>fields.data != <uintptr_t>x.ctypes.data or fields.nd != x.ndim:
        return False
    if fields.descr != <PyObject *>x.dtype:
        return False
    if fields.flags & flags != x.flags.num & flags:
        return False
    for i in range(fields.nd):
        if fields.dimensions[i] != x.shape[i] or fields.strides[i] != x.strides[i]:
            return False
    return True


def trust_fields(bint known):
    """Read arrays by their fields from now on if `known`, else through buffers.

    Return what held so far.
    """
    global fields_known
    before, fields_known = fields_known, known
    return before


cdef bint read_array(Array *array, x, dtype, int flags) except -1:
    """Read a plain ndarray that has this very dtype object and these flags.

    For anything else, return False.
    """
    cdef ndarray_fields *fields
    array.exported = False
    if type(x) is not ndarray:
        return False
    if not fields_known:
        if x.dtype is not dtype or x.flags.num & flags != flags:
            return False
        PyObject_GetBuffer(x, &array.buffer, PyBUF_STRIDES)
        array.exported = True
        array.data, array.ndim = <char *>array.buffer.buf, array.buffer.ndim
        array.shape, array.strides = array.buffer.shape, array.buffer.strides
        return True
    fields = <ndarray_fields *>x
    if fields.descr != <PyObject *>dtype or fields.flags & flags != flags:
        return False
    array.data, array.ndim = fields.data, fields.nd
    array.shape, array.strides = fields.dimensions, fields.strides
    return True


cdef void release_array(Array *array) noexcept:
    if array.exported:
        PyBuffer_Release(&array.buffer)


cdef bint has_shape(const Array *array, int ndim, const Py_ssize_t *shape) noexcept nogil:
    cdef int i
    if array.ndim != ndim:
        return False
    for i in range(ndim):
        if array.shape[i] != shape[i]:
            return False
    return True


cdef bint nested(const Array *a, Py_ssize_t itemsize) noexcept nogil:
    """Does each axis step over all axes inside it?

    If so, no two elements have one address. If not, they may or may not.
    """
    cdef Py_ssize_t inside = itemsize
    cdef int axis = a.ndim
    while axis > 0:
        axis -= 1
        if a.shape[axis] > 1:
            if a.strides[axis] < inside:
                return False
            inside = a.strides[axis] * (a.shape[axis] - 1) + inside
    return True


cdef bint overlap(const Array *a, Py_ssize_t a_itemsize, const Array *b,
                  Py_ssize_t b_itemsize) noexcept nogil:
    """May two arrays share memory? (By their bounds: interleaved slices count as sharing.)"""
    cdef uintptr_t a_first, a_last, b_first, b_last
    return (bounds(a, a_itemsize, &a_first, &a_last) and bounds(b, b_itemsize, &b_first, &b_last)
            and a_first <= b_last and b_first <= a_last)


cdef bint bounds(const Array *a, Py_ssize_t itemsize, uintptr_t *first,
                 uintptr_t *last) noexcept nogil:
    """Set the addresses of an array's first and last bytes. Return False if it is empty."""
    cdef int i
    first[0] = <uintptr_t>a.data        # (addresses of 32 bits may have the bit of the sign)
    last[0] = first[0] + itemsize - 1
    for i in range(a.ndim):
        if a.shape[i] == 0:
            return False
        if a.strides[i] < 0:
            first[0] += (a.shape[i] - 1) * a.strides[i]
        else:
            last[0] += (a.shape[i] - 1) * a.strides[i]
    return True


cdef bint disjoint(const Array *a, int a_shift, const Array *written, int shift) noexcept nogil:
    """Do no two elements of the written array share memory, and none of it with the other array?

    False if that is not sure. The shifts are those of the element sizes.
    """
    cdef Py_ssize_t itemsize = <Py_ssize_t>1 << shift
    if not nested(written, itemsize):
        return False
    return not overlap(a, <Py_ssize_t>1 << a_shift, written, itemsize)
