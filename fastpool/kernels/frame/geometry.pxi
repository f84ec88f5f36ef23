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


cdef struct Window:         # one pooled axis; it begins with WINDOW_FIELDS (schedule.pxi)
    Py_ssize_t size, out, kernel, stride, dilation, begin
    Py_ssize_t extent               # (kernel - 1) * dilation + 1
    Py_ssize_t inner_lo, inner_hi   # outputs whose taps are all elements
    # An irregular axis is one of adaptive pooling: output o covers the elements from
    # (o * of_size + rest) / outputs, rounded down, to that of o + 1, rounded up. `kernel` is its
    # longest window, `stride` the longest step from one window to the next, the dilation 1.
    bint irregular
    Py_ssize_t outputs, rest
    Py_ssize_t whole, part          # of_size / outputs, rounded down, and its remainder
    # The chain of a long window: step i takes taps[i] elements, shifts[i] apart, the last one at
    # lasts[i].
    Py_ssize_t steps
    Py_ssize_t taps[MAX_STEPS]
    Py_ssize_t shifts[MAX_STEPS]
    Py_ssize_t lasts[MAX_STEPS]


cdef struct Walk:           # over the windows of an axis
    Py_ssize_t start, stop          # of the window, which may reach into padding
    Py_ssize_t rest                 # of an irregular axis: what `start` was rounded down by


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


cdef int log2(Py_ssize_t size) noexcept nogil:
    cdef int shift = 0
    while <Py_ssize_t>1 << shift < size:
        shift += 1
    return shift


cdef extern from *:
    """
    #include <stdint.h>
    /* Return (count * part + rest) / whole, rounded down, and its remainder in `left`. The count is
     * at most `whole`, `part` and `rest` are below it. */
    static inline Py_ssize_t share(Py_ssize_t count, Py_ssize_t part, Py_ssize_t rest,
                                   Py_ssize_t whole, Py_ssize_t *left) {
    #ifdef __SIZEOF_INT128__
        if (whole > INT32_MAX) { /* (the product may need more than 64 bits) */
            const unsigned __int128 total = (unsigned __int128)count * (size_t)part + (size_t)rest;
            *left = (Py_ssize_t)(total % (size_t)whole);
            return (Py_ssize_t)(total / (size_t)whole);
        }
    #endif
        const uint64_t total = (uint64_t)count * (uint64_t)part + (uint64_t)rest;
        *left = (Py_ssize_t)(total % (uint64_t)whole);
        return (Py_ssize_t)(total / (uint64_t)whole);
    }
    """
    Py_ssize_t share(Py_ssize_t count, Py_ssize_t part, Py_ssize_t rest, Py_ssize_t whole,
                     Py_ssize_t *left) noexcept nogil


cdef inline Py_ssize_t edge(const Window *w, Py_ssize_t output, Py_ssize_t *left) noexcept nogil:
    """Return where a window of an irregular axis starts. `left` is what it was rounded down by."""
    return output * w.whole + share(output, w.part, w.rest, w.outputs, left)


cdef inline Py_ssize_t window_start(const Window *w, Py_ssize_t output) noexcept nogil:
    """Return the element where a window starts, which may be padding."""
    cdef Py_ssize_t left
    return edge(w, output, &left) if w.irregular else output * w.stride - w.begin


cdef inline Py_ssize_t window_stop(const Window *w, Py_ssize_t output) noexcept nogil:
    """Return the element after a window."""
    cdef Py_ssize_t left, at
    if not w.irregular:
        return output * w.stride - w.begin + w.extent
    at = edge(w, output + 1, &left)
    return at + (left > 0)


cdef inline Py_ssize_t step_edge(const Window *w, Py_ssize_t at, Py_ssize_t *rest) noexcept nogil:
    """Return the edge after `at`, and set what it was rounded down by."""
    at += w.whole
    rest[0] += w.part
    if rest[0] >= w.outputs:
        rest[0] -= w.outputs
        at += 1
    return at


cdef inline void set_stop(Walk *walk, const Window *w) noexcept nogil:
    """Set the element after the window, from where the window starts."""
    cdef Py_ssize_t rest = walk.rest
    if not w.irregular:
        walk.stop = walk.start + w.extent
        return
    walk.stop = step_edge(w, walk.start, &rest)
    walk.stop += rest > 0


cdef inline void start_walk(Walk *walk, const Window *w, Py_ssize_t output) noexcept nogil:
    """Begin with the window of an output."""
    walk.rest = 0
    walk.start = edge(w, output, &walk.rest) if w.irregular else output * w.stride - w.begin
    set_stop(walk, w)


cdef inline void next_window(Walk *walk, const Window *w) noexcept nogil:
    """Go to the window of the next output, without a division."""
    walk.start = step_edge(w, walk.start, &walk.rest) if w.irregular else walk.start + w.stride
    set_stop(walk, w)


cdef inline Py_ssize_t real_taps(const Window *w, Py_ssize_t output,
                                 Py_ssize_t *first) noexcept nogil:
    """Count the taps of an output that are elements. `first` gets the first such element."""
    cdef Py_ssize_t start = output * w.stride - w.begin, skipped = 0
    if w.irregular:
        first[0] = window_start(w, output)
        return window_stop(w, output) - first[0]
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
