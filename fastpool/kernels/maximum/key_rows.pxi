# Elements as keys (keys.h), and back: 16-bit floats, floats under nan="ignore", tiles with a NaN.

cdef struct Keys:           # how elements of the input become keys on their way into a chain
    keys_load_t load
    Py_ssize_t size                 # bytes of an element
    int rule


cdef inline const number *element(const number *src, Py_ssize_t at, const Keys *keys) noexcept nogil:
    if keys == NULL:
        return src + at
    return <const number *>(<const char *>src + at * keys.size)


cdef void gather_keys(key_t *slab, const View *x, Py_ssize_t at, const Pool *p, const Tile *tile, const Py_ssize_t *counts,
                      Py_ssize_t total, key_t *spare) noexcept nogil:
    """The same for input that is pooled as keys: `at` is its offset in x."""
    cdef Py_ssize_t both[2]
    cdef Py_ssize_t elements = (tile.row_hi - tile.row_lo) * (tile.col_hi - tile.col_lo) * tile.channels, t
    for t in range(total):
        load_keys(slab if t == 0 else spare, x, at + lead_offset(p, x.lead, counts, t), p, tile)
        if t > 0:
            both[0], both[1] = 0, spare - slab
            window_rows(slab, 0, <const key_t *>slab, 0, both, 2, 1, elements, NULL)


cdef inline void load_keys(key_t *keys, const View *x, Py_ssize_t at, const Pool *p, const Tile *tile) noexcept nogil:
    """The input under a tile as keys, rows x columns x channels, dense."""
    cdef keys_load_t load = keys_loader(p.code, <int>sizeof(key_t))
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo, n = tile.channels, r
    cdef int rule = p.rule
    if x.col == n or cols == 1:
        load(keys, cols * n, x.data + at * p.size, x.row, rows, cols * n, rule)
        return
    for r in range(rows):
        load(keys + r * cols * n, n, x.data + (at + r * x.row) * p.size, x.col, cols, n, rule)


cdef inline Py_ssize_t pooled_rows(const Pool *p) noexcept nogil:
    """WindowRows of keys that are pooled before they are stored."""
    if p.direct or p.strategy != BANDS:
        return p.tile_rows
    return 1 if p.channels_last else imin(p.tile_rows, ceil_div(POOLED_KEYS, p.tile_cols))


cdef inline void store_keys(const View *y, const Tile *tile, Py_ssize_t plane, Py_ssize_t row, Py_ssize_t count,
                            const key_t *pooled, const Pool *p) noexcept nogil:
    """`count` rows of the tile, from its row `row` on."""
    cdef keys_store_t store = keys_storer(p.code, <int>sizeof(key_t))
    cdef Py_ssize_t n = tile.channels, at = output_offset(p, y, tile, plane) + row * y.row, r
    for r in range(count):
        if y.col == n:
            store(y.data + (at + r * y.row) * p.size, 0, pooled + r * tile.cols * n, 0, 1, tile.cols * n)
        else:
            store(y.data + (at + r * y.row) * p.size, y.col, pooled + r * tile.cols * n, n, tile.cols, n)
