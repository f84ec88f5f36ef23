# Small planes, channels first, are interleaved element by element, a group of 16 to 256 at a time.
# Then they are pooled as channels that are last: a vector holds planes, whatever the stride.
#
# Takes:   what `interleaves` of fastpool/_running/interleaving.py says
# Reads:   a transposed copy of the input under a tile
# Scratch: the copy and its results (ELEMENTS, RESULTS)
# Wins:    against single planes, one thread of an EPYC: 1x64x14x14 k3 pads 1 float32 15 -> 9 us
#          (AVX-512), 17 -> 11 (AVX2), uint8 23 -> 7, 17 -> 8

cdef inline Py_ssize_t row_pitch(const Block *b) noexcept nogil:
    """Return the elements of a plane from one row to the next, once planes are interleaved."""
    cdef const Problem *p = &b.average.frame.problem
    cdef Py_ssize_t cols = p.cols.size
    return cols if b.x.row == cols * p.size else b.tile.col_hi - b.tile.col_lo


cdef inline Py_ssize_t neighbours(const Block *b, Py_ssize_t plane, Py_ssize_t most,
                                  bint spaced) noexcept nogil:
    """Return how many planes from `plane` on, at most `most`, are at one distance from one another.

    Those of one batch are, in the input and in the result. All are if they are `spaced`.
    """
    cdef Py_ssize_t channels = b.average.frame.problem.channels
    return most if spaced else imin(most, channels - (b.tile.plane + plane) % channels)


cdef void interleave(char *to, const char *src, const Block *b, Py_ssize_t planes) noexcept nogil:
    """Interleave neighbouring planes of a tile, in every slab. `src` is where the first begins."""
    cdef Py_ssize_t rows = b.tile.row_hi - b.tile.row_lo, cols = b.tile.col_hi - b.tile.col_lo
    cdef Py_ssize_t size = b.average.frame.problem.size, pitch = row_pitch(b), s, r
    cdef Py_ssize_t group = b.average.group, row = pitch * group * size, slab = rows * row
    if b.x.row == pitch * size and rows > 0:    # rows that are neighbours in memory are one run
        rows, cols = 1, (rows - 1) * pitch + cols
    for s in range(b.slabs):
        for r in range(rows):
            transpose(to + s * slab + r * row, group, src + b.offsets[s] + r * b.x.row,
                      b.x.channel // size, planes, cols, <int>size)


cdef void separate(char *to, const View *y, const char *results, const Block *b,
                   Py_ssize_t planes) noexcept nogil:
    """Write the results of neighbouring planes. `to` is the first output of the first one."""
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t rows = tile.rows, cols = tile.cols, group = b.average.group, r, c
    cdef int size = dtype_bytes[b.average.result]
    if y.row == cols and y.col == 1:
        rows, cols = 1, rows * cols
    for r in range(rows):
        if y.col == 1:
            transpose(to + r * y.row * size, y.channel, results, group, cols, planes, size)
            results += cols * group * size
            continue
        for c in range(cols):
            transpose(to + (r * y.row + c * y.col) * size, y.channel, results, group, 1,
                      planes, size)
            results += group * size


cdef void average_interleaved(const View *y, const char *src, const Block *b) noexcept nogil:
    """Pool a tile. `src` is the first element of the array, in the first slab."""
    cdef const Average *a = b.average
    cdef const Tile *tile = b.tile
    cdef Py_ssize_t *offsets = <Py_ssize_t *>doubles(a, b.scratch, OFFSETS) + b.slabs
    cdef const Problem *p = &a.frame.problem
    cdef Py_ssize_t rows = tile.row_hi - tile.row_lo, plane = 0, planes, lane, run, s, more = 0
    cdef Py_ssize_t group = a.group
    cdef bint spaced = evenly_spaced(p, b.x) and evenly_spaced(p, y)
    cdef int size = dtype_bytes[a.result]
    cdef char *elements = <char *>doubles(a, b.scratch, ELEMENTS)
    cdef char *results = <char *>doubles(a, b.scratch, RESULTS)
    cdef View x, to
    cdef Tile all_of = tile[0]
    cdef Block block = b[0]
    all_of.channels, all_of.plane, all_of.planes = group, 0, 1
    memset(&x, 0, sizeof(View))
    to = x
    x.row, to.row = row_pitch(b) * group * p.size, tile.cols * group
    x.col, to.col = group * p.size, group
    to.data = results - (tile.row * to.row + tile.col * to.col) * size
    for s in range(b.slabs):
        offsets[s] = s * rows * x.row
    block.tile, block.x, block.offsets = &all_of, &x, offsets
    planes = imin(group, tile.planes)
    if planes < group and spaced and tile.plane > 0:
        # Planes of another task are pooled again, but not stored: 7 rows of bytes are transposed in
        # 2.6 times the time of 16, 15 rows of 16 bits in 1.6 times.
        more = group - planes
        plane, planes = -more, group
    elif planes < group:
        memset(elements, 0, b.slabs * rows * x.row)
    while plane < tile.planes:
        plane = imin(plane, tile.planes - planes)   # (some planes are pooled again)
        lane = 0
        while lane < planes:
            run = neighbours(b, plane + lane, planes - lane, spaced)
            interleave(elements + lane * p.size,
                       src + input_offset(p, b.x, tile, plane + lane), b, run)
            lane += run
        average_planes(&to, elements - input_offset(p, &x, &all_of, 0), &block)
        lane = more
        while lane < planes:
            run = neighbours(b, plane + lane, planes - lane, spaced)
            separate(y.data + output_offset(p, y, tile, plane + lane) * size, y,
                     results + lane * size, b, run)
            lane += run
        plane += planes
