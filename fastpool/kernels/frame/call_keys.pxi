# Make one key of a call's arguments (fastpool/_running/plan_cache.py).
#
# An argument is one word. A small int has the lowest bit set; anything else is its address. The
# elements of a tuple or list follow a word with their number and the second lowest bit set. Those
# of a list are small ints: other threads may replace them, and an address could be used again.

cdef enum:
    MAX_WORDS = 256
    SMALL = 1 << 29         # small ints are below


cdef extern from "Python.h":
    # (not cpython.list's and cpython.tuple's, which take a reference)
    PyObject *PyList_GET_ITEM(object, Py_ssize_t)
    PyObject *PyTuple_GET_ITEM(object, Py_ssize_t)


def call_key(x, tuple arguments):
    """Return bytes that tell calls apart, or None where that would take long.

    They are equal for one shape and dtype object of x, equal ints and identical other arguments, in
    tuples too. A key is valid as long as the dtype and the arguments exist: to keep a key, keep
    them.
    """
    cdef Py_ssize_t words[MAX_WORDS]
    cdef Py_ssize_t count, i
    cdef ndarray_fields *fields = <ndarray_fields *>x
    if type(x) is not ndarray or not fields_known:
        return None
    words[0], words[1] = fields.nd, <Py_ssize_t>fields.descr
    for i in range(fields.nd):
        words[2 + i] = fields.dimensions[i]
    count = 2 + fields.nd
    return key_with(words, count, arguments)


cdef key_with(Py_ssize_t *words, Py_ssize_t count, tuple arguments):
    """Return the key of the first words and of arguments, or None."""
    cdef PyObject *argument
    cdef Py_ssize_t i
    for i in range(PyTuple_GET_SIZE(arguments)):
        argument = PyTuple_GET_ITEM(arguments, i)
        if PyTuple_CheckExact(<object>argument):
            count = add_tuple(words, count, <object>argument)
        elif PyList_CheckExact(<object>argument):
            count = add_list(words, count, <object>argument)
        else:
            count = add_word(words, count, argument)
        if count > MAX_WORDS:
            return None
    return PyBytes_FromStringAndSize(<char *>words, count * sizeof(Py_ssize_t))


cdef inline Py_ssize_t add_word(Py_ssize_t *words, Py_ssize_t count, PyObject *argument) noexcept:
    """Add one argument. Return the words used, or more than MAX_WORDS if there is no room."""
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


cdef Py_ssize_t add_tuple(Py_ssize_t *words, Py_ssize_t count, sequence) noexcept:
    cdef Py_ssize_t i, length = PyTuple_GET_SIZE(sequence)
    count = add_length(words, count, length)
    for i in range(length):
        count = add_word(words, count, PyTuple_GET_ITEM(sequence, i))
    return count


cdef Py_ssize_t add_list(Py_ssize_t *words, Py_ssize_t count, sequence) noexcept:
    """Add a list. Return more than MAX_WORDS if it holds something else than small ints."""
    cdef Py_ssize_t i, length
    with critical_section(sequence):
        length = PyList_GET_SIZE(sequence)
        count = add_length(words, count, length)
        for i in range(length):
            count = add_word(words, count, PyList_GET_ITEM(sequence, i))
            if count <= MAX_WORDS and not words[count - 1] & 1:
                count = MAX_WORDS + 1
    return count


cdef inline Py_ssize_t add_length(Py_ssize_t *words, Py_ssize_t count,
                                  Py_ssize_t length) noexcept:
    """Add the length of a sequence, as `add_word` adds an argument."""
    if count >= MAX_WORDS:
        return MAX_WORDS + 1
    words[count] = 4 * length + 2
    return count + 1
