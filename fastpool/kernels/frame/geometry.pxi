# One pooled axis: its windows, and which of their taps are elements.
#
# A window has `kernel` taps, `dilation` apart. Output o starts at element o * stride - begin. Elements
# below 0 and from `size` on are padding, which never wins the maximum.

cdef enum:
    MAX_NDIM = 64           # of numpy's arrays
    MAX_LEADS = 62          # these, less rows and columns
    MAX_STEPS = 64          # each step at least doubles the window, and sizes are 64-bit
    MAX_TAPS = 64           # of one step, or of a whole direct window


cdef struct Window:     # one pooled axis
    Py_ssize_t size, out, kernel, stride, dilation, begin
    Py_ssize_t extent               # (kernel - 1) * dilation + 1
    Py_ssize_t inner_lo, inner_hi   # outputs whose taps are all real elements
    Py_ssize_t steps                # the chain: step i takes taps[i] elements, shifts[i] apart, the last one at lasts[i]
    Py_ssize_t taps[MAX_STEPS]
    Py_ssize_t shifts[MAX_STEPS]
    Py_ssize_t lasts[MAX_STEPS]


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


cdef int set_window(Window *w, window) except -1:
    cdef Py_ssize_t i
    w.size, w.out, w.kernel, w.stride, w.dilation, w.begin = window.size, window.out, window.kernel, window.stride, window.dilation, window.begin
    w.extent = (w.kernel - 1) * w.dilation + 1
    w.inner_lo = imin(w.out, ceil_div(imax(w.begin, 0), w.stride))
    w.inner_hi = 0 if w.size - w.extent + w.begin < 0 else imin(w.out, (w.size - w.extent + w.begin) // w.stride + 1)
    w.inner_hi = imax(w.inner_lo, w.inner_hi)
    w.steps = len(window.steps)
    if not 1 <= w.steps <= MAX_STEPS:
        raise ValueError(f"a chain of {w.steps} steps")
    for i in range(w.steps):
        w.taps[i], w.shifts[i], w.lasts[i] = window.steps[i]
        if not 1 <= w.taps[i] <= MAX_TAPS:
            raise ValueError(f"a step of {w.taps[i]} taps")
    return 0


cdef inline Py_ssize_t real_taps(const Window *w, Py_ssize_t output, Py_ssize_t *first) noexcept nogil:
    """Number of taps of one output that are elements; `first` gets the first such element."""
    cdef Py_ssize_t start = output * w.stride - w.begin, skipped = 0
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


cdef inline Py_ssize_t step_taps(Py_ssize_t *taps, const Window *w, Py_ssize_t step, Py_ssize_t scale) noexcept nogil:
    """Offsets of one step's taps, where the axis advances by `scale` elements; returns how many."""
    cdef Py_ssize_t t
    for t in range(w.taps[step] - 1):
        taps[t] = t * w.shifts[step] * scale
    taps[w.taps[step] - 1] = w.lasts[step] * scale
    return w.taps[step]


cdef inline bint shuffled_stride(const Window *w) noexcept nogil:
    """Are strided lanes picked by shuffles?"""
    return w.stride == 1 or w.stride == 2 or w.stride == 4


cdef bint none_empty(const Window *w) noexcept nogil:
    """Has every output an element?"""
    cdef Py_ssize_t o, first
    for o in range(w.out):
        if not w.inner_lo <= o < w.inner_hi and real_taps(w, o, &first) == 0:
            return False
    return True
