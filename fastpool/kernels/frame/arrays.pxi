# NumPy's arrays, looked at without NumPy's headers, and keys of the calls that were made with them.
#
# The fields below begin every ndarray. NumPy's headers read them inline, in every extension compiled against NumPy 1 or 2, so
# they cannot move; `fields_agree` compares them with what Python says all the same, before anything trusts them. Where they
# do not agree, arrays are read by way of the buffer protocol.
#
# Shape and strides are copied or compared under the GIL. The memory of an array stays while the caller refers to it:
# ndarray.resize refuses then. An export would hold off no more: resize(refcheck=False) ignores it as well.

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
    MAX_WORDS = 256
    SMALL = 1 << 29


cdef struct Array:
    char *data
    int ndim
    const Py_ssize_t *shape
    const Py_ssize_t *strides       # in bytes
    bint exported                   # read by way of this buffer
    Py_buffer buffer


cdef object ndarray = numpy.ndarray
cdef object empty = numpy.empty
cdef object INT32 = numpy.dtype("int32")
cdef object INT64 = numpy.dtype("int64")
cdef bint fields_known = False


def fields_agree(x):
    """Do the fields of an array say what Python says of it?"""
    cdef ndarray_fields *fields = <ndarray_fields *>x
    cdef int i
    if ndarray.__basicsize__ < <Py_ssize_t>sizeof(ndarray_fields):
        return False
    # Pointers are followed only once these agree.
    if <uintptr_t>fields.data != <uintptr_t>x.ctypes.data or fields.nd != x.ndim or fields.descr != <PyObject *>x.dtype:
        return False
    if fields.flags & (CONTIGUOUS | ALIGNED | WRITEABLE) != x.flags.num & (CONTIGUOUS | ALIGNED | WRITEABLE):
        return False
    for i in range(fields.nd):
        if fields.dimensions[i] != x.shape[i] or fields.strides[i] != x.strides[i]:
            return False
    return True


def trust_fields(bint known):
    """Read arrays by their fields from now on, or by way of buffers; returns what was so far."""
    global fields_known
    before, fields_known = fields_known, known
    return before


cdef bint look(Array *array, x, dtype, int flags) except -1:
    """Look into a plain ndarray of this very dtype object that has these flags; False for anything else."""
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
    array.data, array.ndim, array.shape, array.strides = fields.data, fields.nd, fields.dimensions, fields.strides
    return True


cdef void close(Array *array) noexcept:
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
    """Does each axis step over all inside it, so that no address is two elements? (Else: not known.)"""
    cdef Py_ssize_t inside = itemsize
    cdef int axis = a.ndim
    while axis > 0:
        axis -= 1
        if a.shape[axis] > 1:
            if a.strides[axis] < inside:
                return False
            inside = a.strides[axis] * (a.shape[axis] - 1) + inside
    return True


cdef bint overlap(const Array *a, Py_ssize_t a_itemsize, const Array *b, Py_ssize_t b_itemsize) noexcept nogil:
    """May the two share memory? (By bounds: interleaved slices count as sharing.)"""
    cdef Py_ssize_t a_lo, a_hi, b_lo, b_hi
    bounds(a, a_itemsize, &a_lo, &a_hi)
    bounds(b, b_itemsize, &b_lo, &b_hi)
    return a_lo < b_hi and b_lo < a_hi


cdef void bounds(const Array *a, Py_ssize_t itemsize, Py_ssize_t *lo, Py_ssize_t *hi) noexcept nogil:
    cdef int i
    lo[0] = hi[0] = <Py_ssize_t>a.data
    hi[0] += itemsize
    for i in range(a.ndim):
        if a.shape[i] == 0:
            hi[0] = lo[0]
            return
        if a.strides[i] < 0:
            lo[0] += (a.shape[i] - 1) * a.strides[i]
        else:
            hi[0] += (a.shape[i] - 1) * a.strides[i]


# A call's arguments as one key (`fastpool._kept`). An argument is one word: a small int has the lowest bit set, anything else
# is its address. The elements of a tuple or list follow a word with their number and the second lowest bit set.

def call_key(x, tuple arguments):
    """Bytes that are the same for the same shape and dtype object of x, equal ints and identical other arguments, in
    sequences too. None where that cannot be told quickly.

    A key means something as long as the dtype and the arguments exist: who keeps it keeps them.
    """
    cdef Py_ssize_t words[MAX_WORDS]
    cdef Py_ssize_t count, i
    cdef ndarray_fields *fields = <ndarray_fields *>x
    cdef PyObject *argument
    if type(x) is not ndarray or not fields_known:
        return None
    words[0], words[1] = fields.nd, <Py_ssize_t>fields.descr
    for i in range(fields.nd):
        words[2 + i] = fields.dimensions[i]
    count = 2 + fields.nd
    for i in range(PyTuple_GET_SIZE(arguments)):
        argument = PyTuple_GET_ITEM(arguments, i)
        if PyTuple_CheckExact(<object>argument) or PyList_CheckExact(<object>argument):
            count = add_sequence(words, count, <object>argument)
        else:
            count = add_word(words, count, argument)
        if count > MAX_WORDS:
            return None
    return PyBytes_FromStringAndSize(<char *>words, count * sizeof(Py_ssize_t))


cdef inline Py_ssize_t add_word(Py_ssize_t *words, Py_ssize_t count, PyObject *argument) noexcept:
    """Words used then; more than there is room for if there is none."""
    cdef int overflow = 0
    cdef Py_ssize_t value
    if count >= MAX_WORDS:
        return MAX_WORDS + 1
    words[count] = <Py_ssize_t>argument
    if PyLong_CheckExact(<object>argument):
        value = PyLong_AsLongAndOverflow(<object>argument, &overflow)
        if not overflow and -SMALL <= value < SMALL:
            words[count] = 2 * value + 1
    return count + 1


cdef Py_ssize_t add_sequence(Py_ssize_t *words, Py_ssize_t count, sequence) noexcept:
    cdef bint listed = PyList_CheckExact(sequence)
    cdef Py_ssize_t i, length = PyList_GET_SIZE(sequence) if listed else PyTuple_GET_SIZE(sequence)
    if count >= MAX_WORDS:
        return MAX_WORDS + 1
    words[count] = 4 * length + 2
    count += 1
    for i in range(length):
        count = add_word(words, count, PyList_GET_ITEM(sequence, i) if listed else PyTuple_GET_ITEM(sequence, i))
    return count
