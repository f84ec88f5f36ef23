# Small planes, channels first, are interleaved element by element, INTERLEAVED of them at a time.
# Then they are pooled as channels that are last: a vector holds planes, whatever the stride.
#
# Takes:   what `interleaves` of fastpool/_running/sum_strategies.py says
# Reads:   a transposed copy of the input under a tile
# Scratch: the copy and its results (ELEMENTS, RESULTS)
# Wins:    against the same strategy on single planes, one thread of an EPYC: 1x64x14x14 k3 pads 1
#          float32 15 -> 9 us (AVX-512), 17 -> 11 (AVX2), uint8 23 -> 7, 17 -> 8; 1x64x56x56 k3 s2
#          pads 1 float32 100 -> 64, 106 -> 68. float64 1x512x7x7 k7 140 -> 23, 111 -> 26 if sums
#          are not exact; if they are, it loses: 6 -> 14, 9 -> 14.

cdef inline Py_ssize_t row_pitch(const Block *b) noexcept nogil:
    """Return the elements of a plane from one row to the next, once planes are interleaved."""
    cdef Py_ssize_t size = b.average.frame.problem.cols.size
    return size if b.x.row == size else b.tile.col_hi - b.tile.col_lo


cdef Py_ssize_t interleave(any_t *to, const any_t *src, const Block *b,
                           Py_ssize_t plane, bint spaced) noexcept nogil:
    """Interleave planes of a tile from `plane` on, in every slab. Return how many.

    `src` is the first element of the array. Planes of one batch have one distance from one another,
    in the input and in the result; all planes have, if they are `spaced`.
    """
    cdef const Problem *p = &b.average.frame.problem
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t planes = imin(INTERLEAVED, tile.planes - plane), s, r
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, cols = tile.col_hi - tile.col_lo
    cdef Py_ssize_t pitch = row_pitch(b), size = rows * pitch * INTERLEAVED
    if not spaced:
        planes = imin(planes, p.channels - (tile.plane + plane) % p.channels)
    if planes < INTERLEAVED:
        memset(to, 0, b.slabs * size * sizeof(any_t))
    src += input_offset(p, b.x, tile, plane)
    if b.x.row == pitch and rows > 0:       # rows that are neighbours in memory are one run
        rows, cols = 1, (rows - 1) * pitch + cols
    for s in range(b.slabs):
        for r in range(rows):
            transpose(to + s * size + r * pitch * INTERLEAVED, INTERLEAVED,
                      src + b.offsets[s] + r * b.x.row, b.x.channel, planes, cols, sizeof(any_t))
    return planes


cdef void separate(char *to, const View *y, const char *results, const Block *b,
                   Py_ssize_t planes) noexcept nogil:
    """Write the interleaved results of some planes. `to` is the first output of the first one."""
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t rows = tile.rows, cols = tile.cols, r, c
    cdef int size = dtype_bytes[b.average.result]
    if y.row == cols and y.col == 1:
        rows, cols = 1, rows * cols
    for r in range(rows):
        if y.col == 1:
            transpose(to + r * y.row * size, y.channel, results, INTERLEAVED, cols, planes, size)
            results += cols * INTERLEAVED * size
            continue
        for c in range(cols):
            transpose(to + (r * y.row + c * y.col) * size, y.channel, results, INTERLEAVED, 1,
                      planes, size)
            results += INTERLEAVED * size


cdef void average_interleaved(const View *y, const any_t *src, const Block *b) noexcept nogil:
    """Pool a tile. `src` is the first element of the array, in the first slab."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t *offsets = <Py_ssize_t *>doubles(a, b.scratch, OFFSETS) + b.slabs
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, plane = 0, planes, s
    cdef bint spaced = evenly_spaced(&a.frame.problem, b.x) and evenly_spaced(&a.frame.problem, y)
    cdef int size = dtype_bytes[a.result]
    cdef any_t *elements = <any_t *>doubles(a, b.scratch, ELEMENTS)
    cdef char *results = <char *>doubles(a, b.scratch, RESULTS)
    cdef View x, to
    cdef Tile all_of = tile[0]
    cdef Block block = b[0]
    all_of.channels, all_of.plane, all_of.planes = INTERLEAVED, 0, 1
    memset(&x, 0, sizeof(View))
    to = x
    x.row, to.row = row_pitch(b) * INTERLEAVED, tile.cols * INTERLEAVED
    x.col = to.col = INTERLEAVED
    to.data = results - (tile.row * to.row + tile.col * to.col) * size
    for s in range(b.slabs):
        offsets[s] = s * rows * x.row
    block.tile, block.x, block.offsets = &all_of, &x, offsets
    while plane < tile.planes:
        if spaced and tile.planes >= INTERLEAVED:
            plane = imin(plane, tile.planes - INTERLEAVED)      # (some planes are pooled again)
        planes = interleave(elements, src, b, plane, spaced)
        average_planes(&to, elements - input_offset(&a.frame.problem, &x, &all_of, 0), &block)
        separate(y.data + output_offset(&a.frame.problem, y, tile, plane) * size, y, results, b,
                 planes)
        plane += planes
