# Takes:   windows with numerics="sequential"
# Reads:   the input in place, one row of windows at a time
# Scratch: the sums (HIGH), and how many NaN each window leaves out (NANS)
# Wins:    no other strategy takes them
#
# Sums as other libraries make them: one rounded addition per tap, in row-major order.

cdef inline int sum_bytes(int code) noexcept nogil:
    """Return the bytes of a sum: it is a float, and of doubles a double."""
    return 8 if code == F64 else 4


cdef void sum_in_order(char *sums, double *nans, const char *src, const Block *b,
                       Py_ssize_t output, const real *tag) noexcept nogil:
    """Set the sums of one row of windows. If there are `nans`, count NaN, and add none."""
    cdef const Problem *p = &b.average.frame.problem
    cdef const Tile *tile = b.tile
    cdef const Window *w = &p.cols
    cdef Py_ssize_t n = tile.channels, first, count, s, r, t, c, lo, hi, at, col = b.x.col
    cdef Py_ssize_t begin = 0, end      # taps along a row that some output has on an element
    cdef Py_ssize_t some = 0, stop = tile.cols      # outputs that have such taps, if not all
    cdef Py_ssize_t step = p.rows.dilation
    cdef int size = sum_bytes(p.code)
    cdef const char *row
    memset(sums, 0, tile.cols * n * size)
    if nans != NULL:
        fill(nans, tile.cols * n, <double>0)
    count = real_taps(&p.rows, output, &first)
    at = (tile.col + tile.cols - 1) * w.stride - w.begin
    if at < 0:
        begin = ceil_div(-at, w.dilation)
    at = w.size - 1 - tile.col * w.stride + w.begin
    end = 0 if at < 0 else imin(w.kernel, at // w.dilation + 1)
    if not w.irregular:
        at = w.begin - w.extent + 1
        some = 0 if at <= 0 else imin(tile.cols, imax(0, ceil_div(at, w.stride) - tile.col))
        stop = imax(some, imin(tile.cols, ceil_div(w.size + w.begin, w.stride) - tile.col))
    for s in range(b.slabs):
        for r in range(count):
            row = src + b.offsets[s] + (first + r * step - tile.row_lo) * b.x.row
            if w.irregular or w.stride > w.size:    # (no two windows share a tap)
                for c in range(some, stop):
                    hi = real_taps(w, tile.col + c, &at)
                    at -= tile.col_lo
                    for t in range(hi):
                        add_in_order(sums + c * n * size,
                                     <const real *>(row + (at + t * w.dilation) * col), n, 1,
                                     nans + c * n if nans != NULL else NULL)
                continue
            for t in range(begin, end):
                # The outputs whose tap t is an element: 0 <= c * stride + at < size.
                at = tile.col * w.stride - w.begin + t * w.dilation
                lo = 0 if at >= 0 else ceil_div(-at, w.stride)
                hi = 0 if at >= w.size else imin(tile.cols, (w.size - 1 - at) // w.stride + 1)
                at -= tile.col_lo
                if n == 1 or (w.stride == 1 and col == n * p.size):
                    if lo < hi:
                        add_in_order(sums + lo * n * size,
                                     <const real *>(row + (at + lo * w.stride) * col),
                                     (hi - lo) * n, w.stride if n == 1 else 1,
                                     nans + lo * n if nans != NULL else NULL)
                    continue
                for c in range(lo, hi):
                    add_in_order(sums + c * n * size,
                                 <const real *>(row + (at + c * w.stride) * col), n, 1,
                                 nans + c * n if nans != NULL else NULL)


cdef void divide_in_order(char *y, char *sums, const divisors_t *d, Py_ssize_t n, int code,
                          int result) noexcept nogil:
    if code == F64:
        divide_double_f64(<double *>y, <double *>sums, d, n)
    elif result == F64:
        divide_float_f64(<double *>y, <float *>sums, d, n)
    elif result == F32:
        divide_float_f32(<float *>y, <float *>sums, d, n)
    elif result == F16:
        divide_float_f16(<float16_t_ *>y, <float *>sums, d, n)
    else:
        divide_float_bf16(<bfloat16_t_ *>y, <float *>sums, d, n)


cdef void leave_out(char *sums, double *nans, const divisors_t *d, const Block *b,
                    Py_ssize_t output) noexcept nogil:
    """Turn the numbers of NaN into divisors. If a window holds nothing else, its sum is NaN."""
    cdef const Average *a = b.average
    cdef Py_ssize_t n = b.tile.channels, c, i = 0, j, taps, rows, first
    rows = real_taps(&a.frame.problem.rows, output, &first) * b.slabs
    for c in range(b.tile.cols):
        taps = rows * real_taps(&a.frame.problem.cols, b.tile.col + c, &first)
        for j in range(n):
            if nans[i] and nans[i] == taps:
                if a.frame.problem.code == F64:
                    (<double *>sums)[i] = NAN
                else:
                    (<float *>sums)[i] = NAN
                nans[i] = 0
            nans[i] = (d.divisor * (d.counts[c] if d.counts != NULL else 1)
                       - (0 if a.divisor else nans[i]))
            i += 1


cdef void average_in_order(char *y, const View *view, const char *src, const Block *b,
                           const real *tag) noexcept nogil:
    """Pool one plane of a tile."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, r, c, run
    cdef int size = dtype_bytes[a.result], code = a.frame.problem.code
    cdef char *sums = <char *>doubles(a, b.scratch, HIGH)
    cdef double *nans = doubles(a, b.scratch, NANS) if a.ignore_nan else NULL
    cdef divisors_t d, one
    for r in range(tile.rows):
        sum_in_order(sums, nans, src, b, tile.row + r, tag)
        set_divisors(&d, b, tile.row + r)
        if a.ignore_nan:
            leave_out(sums, nans, &d, b, tile.row + r)
            d.divisor = 1
        run = tile.cols if n == 1 else 1    # columns with one call
        c = 0
        while c < tile.cols:
            one = d
            if a.ignore_nan:
                one.counts = nans + c * n
            elif n > 1 and d.counts != NULL:
                one.divisor, one.counts = d.divisor * d.counts[c], NULL
            divide_in_order(y + (r * view.row + c * view.col) * size,
                            sums + c * n * sum_bytes(code), &one, run * n, code, a.result)
            c += run


cdef void average_planes_in_order(const View *y, const char *src, const Block *b,
                                  const real *tag) noexcept nogil:
    """Pool the planes of a tile."""
    cdef const Problem *p = &b.average.frame.problem
    cdef Py_ssize_t i
    for i in range(b.tile.planes):
        average_in_order(y.data + output_offset(p, y, b.tile, i) * dtype_bytes[b.average.result], y,
                         src + input_offset(p, b.x, b.tile, i), b, tag)
