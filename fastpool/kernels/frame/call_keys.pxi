# Make one key of a call's arguments (fastpool/_running/plan_cache.py).
#
# An argument is one word. A small int has the lowest bit set; anything else is its address. The
# elements of a tuple or list follow a word with their number and the second lowest bit set. A list
# of anything but small ints has no key: another thread may replace an element, and a new object may
# get its address.
#
# Lists are read without their lock. (CPython takes it if another thread made the list, and only
# until one other has read it.) With it, threads that share a list would wait for each other, and
# without the GIL, a child made by fork would hang if another thread of the parent had the lock
# (CPython 3.13 to 3.15). So a list that changes during a call may give a key of both its states,
# which is that of another call. Two looks make this rare.

cdef enum:
    MAX_WORDS = 256
    SMALL = 1 << 29         # small ints are below


cdef extern from "Python.h":
    # (not cpython.tuple's, which takes a reference)
    PyObject *PyTuple_GET_ITEM(object, Py_ssize_t)


cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030D0000
    #define list_item PyList_GetItemRef
    #else
    static inline PyObject *list_item(PyObject *list, Py_ssize_t i) {
        PyObject *item = PyList_GetItem(list, i);
        Py_XINCREF(item);
        return item;
    }
    #endif
    """
    PyObject *list_item(object, Py_ssize_t)


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
            count = add_word(words, count, word_of(argument))
        if count > MAX_WORDS:
            return None
    return PyBytes_FromStringAndSize(<char *>words, count * sizeof(Py_ssize_t))


cdef inline Py_ssize_t word_of(PyObject *argument) noexcept:
    """Return the word of an argument, or of an element of one."""
    cdef int overflow = 0
    cdef Py_ssize_t value
    if PyLong_CheckExact(<object>argument):
        value = PyLong_AsLongAndOverflow(<object>argument, &overflow)
        if not overflow and -SMALL <= value < SMALL:
            return 2 * value + 1
    return <Py_ssize_t>argument


cdef inline Py_ssize_t add_word(Py_ssize_t *words, Py_ssize_t count, Py_ssize_t word) noexcept:
    """Add a word. Return the words used, or more than MAX_WORDS if there is no room."""
    if count >= MAX_WORDS:
        return MAX_WORDS + 1
    words[count] = word
    return count + 1


cdef Py_ssize_t add_tuple(Py_ssize_t *words, Py_ssize_t count, sequence) noexcept:
    cdef Py_ssize_t i, length = PyTuple_GET_SIZE(sequence)
    count = add_word(words, count, 4 * length + 2)
    for i in range(length):
        count = add_word(words, count, word_of(PyTuple_GET_ITEM(sequence, i)))
    return count


cdef Py_ssize_t add_list(Py_ssize_t *words, Py_ssize_t count, sequence) noexcept:
    """Add a list of small ints. Return more than MAX_WORDS for any other, or one that changes."""
    cdef Py_ssize_t i, word, length = PyList_GET_SIZE(sequence), first
    count = add_word(words, count, 4 * length + 2)
    first = count
    for i in range(length):
        word = word_in_list(sequence, i)
        count = add_word(words, count, word)
        if not word or count > MAX_WORDS:
            return MAX_WORDS + 1
    # Look again, because another thread may have changed the list between two elements.
    for i in range(length):
        if word_in_list(sequence, i) != words[first + i]:
            return MAX_WORDS + 1
    return count


cdef inline Py_ssize_t word_in_list(sequence, Py_ssize_t i) noexcept:
    """Return the word of an element; 0 if it is no small int, or if there is no such element."""
    cdef PyObject *item = list_item(sequence, i)
    cdef Py_ssize_t word
    if item == NULL:
        PyErr_Clear()
        return 0
    word = word_of(item)
    Py_DECREF(<object>item)
    return word if word & 1 else 0
