# One pooled axis: its windows, and which of their taps are elements.
#
# A window has `kernel` taps, `dilation` apart. Output o starts at element o * stride - begin.
# Elements below 0 and from `size` on are padding.

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX


cdef enum:
    MAX_NDIM = 64           # of NumPy's arrays
    MAX_LEADS = 62          # these, less rows and columns
    MAX_STEPS = 64          # each step at least doubles the window, and sizes are 64-bit
    MAX_TAPS = 64           # of one step, or of a window as offsets


cdef struct Window:         # one pooled axis
    Py_ssize_t size, out, kernel, stride, dilation, begin
    Py_ssize_t extent               # (kernel - 1) * dilation + 1
    Py_ssize_t inner_lo, inner_hi   # outputs whose taps are all elements
    # If not NULL, the axis is irregular: per output its first element and how many there are, all
    # of them neighbours. The strides of such windows mean nothing, and their dilation is 1.
    Py_ssize_t *places
    # The chain of a long window: step i takes taps[i] elements, shifts[i] apart, the last one at
    # lasts[i].
    Py_ssize_t steps
    Py_ssize_t taps[MAX_STEPS]
    Py_ssize_t shifts[MAX_STEPS]
    Py_ssize_t lasts[MAX_STEPS]


cdef struct Taps:           # a window as offsets from where it starts
    Py_ssize_t count
    Py_ssize_t offsets[MAX_TAPS]


cdef inline Py_ssize_t imin(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    return a if a < b else b


cdef inline Py_ssize_t imax(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    return a if a > b else b


cdef inline Py_ssize_t ceil_div(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    return (a + b - 1) // b         # a >= 0


cdef inline Py_ssize_t round_up(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    return ceil_div(a, b) * b


cdef Py_ssize_t gcd(Py_ssize_t a, Py_ssize_t b) noexcept:
    while b:
        a, b = b, a % b
    return a


cdef int log2(Py_ssize_t size) noexcept:
    cdef int shift = 0
    while <Py_ssize_t>1 << shift < size:
        shift += 1
    return shift


cdef inline Py_ssize_t window_start(const Window *w, Py_ssize_t output) noexcept nogil:
    """Return the element where a window starts, which may be padding."""
    return output * w.stride - w.begin if w.places == NULL else w.places[2 * output]


cdef inline Py_ssize_t window_stop(const Window *w, Py_ssize_t output) noexcept nogil:
    """Return the element after a window."""
    if w.places == NULL:
        return output * w.stride - w.begin + w.extent
    return w.places[2 * output] + w.places[2 * output + 1]


cdef inline Py_ssize_t real_taps(const Window *w, Py_ssize_t output,
                                 Py_ssize_t *first) noexcept nogil:
    """Count the taps of an output that are elements. `first` gets the first such element."""
    cdef Py_ssize_t start = output * w.stride - w.begin, skipped = 0
    if w.places != NULL:
        first[0] = w.places[2 * output]
        return w.places[2 * output + 1]
    if w.dilation == 1:                 # a 64-bit division takes as long as pooling a short row
        first[0] = imax(start, 0)
        return imax(0, imin(start + w.kernel, w.size) - first[0])
    if start < 0:
        skipped = ceil_div(-start, w.dilation)
        start += skipped * w.dilation
    first[0] = start
    if start >= w.size:
        return 0
    return imax(0, imin(w.kernel - skipped, (w.size - 1 - start) // w.dilation + 1))


cdef inline void set_taps(Taps *taps, Py_ssize_t count, Py_ssize_t step) noexcept nogil:
    """Set `count` taps that are `step` apart."""
    cdef Py_ssize_t t
    taps.count = count
    for t in range(count):
        taps.offsets[t] = t * step


cdef inline void step_taps(Taps *taps, const Window *w, Py_ssize_t step,
                           Py_ssize_t scale) noexcept nogil:
    """Set the taps of one step of a chain, where the axis advances by `scale` elements."""
    set_taps(taps, w.taps[step], w.shifts[step] * scale)
    taps.offsets[w.taps[step] - 1] = w.lasts[step] * scale
