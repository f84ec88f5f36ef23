# Elements as keys (keys.h), and back: 16-bit floats, floats under nan="ignore", tiles with a NaN.

cdef enum:
    POOLED_KEYS = 4096      # keys that are pooled before they are stored


cdef struct Keys:           # how elements of the input become keys on their way into a chain
    keys_load_t load
    Py_ssize_t size                 # bytes of an element
    int rule


cdef inline const number *element(const number *src, Py_ssize_t at,
                                  const Keys *keys) noexcept nogil:
    """Return the address of element `at`. If there are keys, src is input of another type."""
    if keys == NULL:
        return src + at
    return <const number *>(<const char *>src + at * keys.size)


cdef inline void load_keys(any_key *keys, const View *x, Py_ssize_t at, const Pool *p,
                           const Tile *tile) noexcept nogil:
    """Load the input under a tile as keys: rows x columns x channels, contiguous."""
    cdef keys_load_t load = keys_loader(p.frame.problem.code, <int>sizeof(any_key))
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t n = tile.channels, size = p.frame.problem.size, r
    cdef int rule = p.rule
    if x.col == n or cols == 1:
        load(keys, cols * n, x.data + at * size, x.row, rows, cols * n, rule)
        return
    for r in range(rows):
        load(keys + r * cols * n, n, x.data + (at + r * x.row) * size, x.col, cols, n, rule)


cdef inline Py_ssize_t pooled_rows(const Pool *p) noexcept nogil:
    """Return how many rows of keys are pooled before they are stored."""
    if pools_planes(p) or takes_all_taps(p):
        return p.frame.tiling.rows
    if p.frame.problem.channels_last:
        return 1
    return imin(p.frame.tiling.rows, ceil_div(POOLED_KEYS, p.frame.tiling.cols))


cdef inline void store_keys(const View *y, const Tile *tile, Py_ssize_t plane, Py_ssize_t row,
                            Py_ssize_t count, const any_key *pooled, const Pool *p) noexcept nogil:
    """Store `count` rows of the tile, from its row `row` on."""
    cdef keys_store_t store = keys_storer(p.frame.problem.code, <int>sizeof(any_key))
    cdef Py_ssize_t n = tile.channels, size = p.frame.problem.size, r
    cdef Py_ssize_t at = output_offset(&p.frame.problem, y, tile, plane) + row * y.row
    if y.col == n and y.row == tile.cols * n:
        store(y.data + at * size, 0, pooled, 0, 1, count * y.row, p.rule)
        return
    for r in range(count):
        if y.col == n:
            store(y.data + (at + r * y.row) * size, 0, pooled + r * tile.cols * n, 0, 1,
                  tile.cols * n, p.rule)
        else:
            store(y.data + (at + r * y.row) * size, y.col, pooled + r * tile.cols * n, n,
                  tile.cols, n, p.rule)
