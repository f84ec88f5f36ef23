# Pool one tile to averages.

cdef enum:
    # Columns that padding does not cut are pooled apart, with one divisor, if many (8x30000 uint8
    # k3, padded, 1275 -> 65 us). To part a tile takes as long as the divisors of some columns,
    # for each row of each plane, and for a few rows once.
    COLUMNS_OF_A_ROW = 64
    ROWS_OF_A_TILE = 4


cdef void average_planes(const View *y, const char *src, Block *b) noexcept nogil:
    """Pool the planes of a tile. `src` is the first element of the array, in the first slab."""
    cdef const Average *a = b.average
    cdef int code = a.frame.problem.code
    if not (a.pairwise or a.sequential):
        average_folded(y, src, b)
    elif code == F64 or (a.pairwise and a.result == F64):
        average_planes_pairwise(y, src, b, <const double *>NULL)
    else:
        average_planes_pairwise(y, src, b, <const float *>NULL)


cdef void fill_empty(const View *y, const Block *b) noexcept nogil:
    """Write a tile whose windows hold no element: means of 0."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t n = tile.channels, plane, r, c, runs = tile.cols
    cdef int size = dtype_bytes[a.result], byte = 0
    cdef char *dst
    if b.quantization != NULL:
        size, byte = 1, <int>b.quantization.y_zero
    if y.col == n:
        runs, n = 1, n * tile.cols
    for plane in range(tile.planes):
        dst = y.data + output_offset(&a.frame.problem, y, tile, plane) * size
        for r in range(tile.rows):
            for c in range(runs):
                memset(dst + (r * y.row + c * y.col) * size, byte, n * size)


cdef void average_tile(const View *y, const char *src, Block *b) noexcept nogil:
    """Pool a tile, or a part of it."""
    b.factors.count = 0
    set_column_counts(b)
    if b.tile.row_hi == b.tile.row_lo or b.tile.col_hi == b.tile.col_lo:
        fill_empty(y, b)
    elif b.average.group:
        average_interleaved(y, src, b)
    else:
        average_planes(y, src, b)


cdef void average_some_columns(const View *y, const char *src, const Block *b, Py_ssize_t col,
                               Py_ssize_t stop) noexcept nogil:
    """Pool the columns of a tile from `col` to `stop`, if there are any."""
    cdef Block some = b[0]
    cdef Tile tile
    if col < stop:
        set_part(&tile, b, 0, b.tile.rows, col, stop - col)
        some.tile = &tile
        average_tile(y, src, &some)


cdef void run_average(Job *job, Py_ssize_t task, Scratch *scratch) noexcept nogil:
    """Pool the tile of a task."""
    cdef const Average *a = <const Average *>job.frame
    cdef const Problem *p = &a.frame.problem
    cdef Py_ssize_t *offsets = <Py_ssize_t *>doubles(a, scratch.area, OFFSETS)
    cdef Py_ssize_t counts[MAX_LEADS]
    cdef Py_ssize_t first, s, lo, hi
    cdef View x = job.x
    cdef Factors factors
    cdef Tile tile
    cdef Block b
    cdef fp_state state
    x.batch, x.channel = x.batch * p.size, x.channel * p.size   # in bytes
    x.row, x.col = x.row * p.size, x.col * p.size
    for s in range(p.leads):
        x.lead[s] *= p.size
    tile_of(&tile, &a.frame, task)
    b.average, b.tile, b.x, b.scratch, b.offsets = a, &tile, &x, scratch.area, offsets
    b.quantization, b.factors = <const quantization_t *>job.more, &factors
    b.slabs = lead_taps(p, &x, tile.lead, counts, &first)
    for s in range(b.slabs):
        offsets[s] = lead_offset(p, x.lead, counts, s)
    if not b.slabs:
        fill_empty(&job.y, &b)
        return
    lo, hi = 0, tile.cols
    if a.cols.vary:
        uncut_columns(&lo, &hi, a, &tile)
        # (Neighbours of the parts share no sums of long windows.)
        if hi - lo < imax(p.cols.extent,
                          COLUMNS_OF_A_ROW * (ROWS_OF_A_TILE + tile.rows * tile.planes)):
            lo, hi = 0, tile.cols
    fp_enter(&state)
    if hi - lo == tile.cols:
        average_tile(&job.y, x.data + first, &b)
    else:
        average_some_columns(&job.y, x.data + first, &b, 0, lo)
        average_some_columns(&job.y, x.data + first, &b, lo, hi)
        average_some_columns(&job.y, x.data + first, &b, hi, tile.cols)
    fp_leave(&state)
