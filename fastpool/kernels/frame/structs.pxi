# What a tile is pooled from and into: the pooling, the arrays, the tile and the scratch.

cdef enum Strategy:         # how a tile is pooled; each has a file in maximum/
    BANDS                   # also direct_pixels and pixels_as_row, and pairs with indices
    SLIDE_DOWN
    STRIDE_TWO
    APART
    PADDED_PLANES
    WHOLE_PLANE             # from here on, rows and planes have to be contiguous
    FLAT_PLANES
    TAPS
    RUNNING_MAXIMA


cdef enum Area:             # areas of one thread's scratch
    SLAB                    # the input under a tile: as keys, or the maximum of leading slabs
    SPARE                   # one slab more
    SPARE_PLACES
    BAND                    # outputs of the first pass
    BAND_PLACES
    DENSE                   # what the chain of a column pass goes through
    DENSE_PLACES
    POOLED                  # outputs before they are stored
    POOLED_PLACES
    CHAIN                   # what a pass over long windows goes through
    IOTA                    # positions of the input under a tile
    AREAS


cdef enum:
    MAX_THREADS = 256


cdef struct FarAxis                     # running_maxima.pxi
cdef struct FlatPlanes                  # flat_planes.pxi


cdef struct Problem:                    # windows and dtype: the same for every reduction
    Window rows, cols
    Window *lead                        # apart: a Window is 1.6 KB, and thousands of plans are kept
    Py_ssize_t leads, lead_outs
    Py_ssize_t batch, channels
    bint channels_last
    int code, size                      # dtype, and bytes of an element


cdef struct Tiling:
    Py_ssize_t rows, cols, channels, planes             # outputs of a tile
    Py_ssize_t row_tiles, col_tiles, channel_tiles      # tiles along each axis
    Py_ssize_t tasks                                    # tiles in all


cdef struct Indexing:                   # the strides of indices, and what they count from
    Py_ssize_t bytes
    int64_t base                        # of the input's first element
    Py_ssize_t batch, channel, row, col
    Py_ssize_t lead[MAX_LEADS]
    Py_ssize_t position_lead[MAX_LEADS]
    bint linear                         # index = base + position * col


cdef struct ScratchLayout:
    Py_ssize_t nbytes                   # per thread
    Py_ssize_t offsets[AREAS]


cdef struct TapsChoice:                 # taps.pxi: how windows with indices are compared
    bint slides                         # each row under a tile is compared once
    bint slides_square                  # windows of 3 x 3 or 5 x 5
    bint tracks_nan                     # in what is read in place, as it is read


cdef struct Pool:                       # a pooling, ready to run
    Problem problem
    Tiling tiling
    Indexing indexing
    ScratchLayout scratch
    int strategy                        # a Strategy
    bint direct                         # channels last: direct_pixels.pxi
    bint pixels_as_row                  # channels last: pixels_as_row.pxi
    bint in_place                       # chains of columns overwrite the band, margins too
    bint with_indices
    bint keyed                          # pooled as keys: 16-bit floats, nan="ignore"
    int key_bytes, rule                 # of a key; key_rule
    TapsChoice taps
    FlatPlanes *flat
    FarAxis *far                        # from the innermost axis on
    int fars


cdef struct View:                       # an array, strides in elements
    char *data
    Py_ssize_t batch, channel, row, col
    Py_ssize_t lead[MAX_LEADS]


cdef struct Scratch:                    # of one thread
    char *area
    Py_ssize_t margins      # first output column of the tile whose margins are filled, or -1


cdef struct Job:                        # one call
    Pool *pool
    View x, y, z                        # input, values, indices
    Scratch *scratch


cdef struct Tile:
    Py_ssize_t plane, planes                        # channels first: planes n * C + c
    Py_ssize_t batch, channel, channels
    Py_ssize_t lead                                 # flat position among the leading outputs
    Py_ssize_t row, rows, col, cols                 # outputs
    Py_ssize_t row_lo, row_hi, col_lo, col_hi       # elements under them, without padding
    Py_ssize_t left, span                           # columns of padding before col_lo; all columns


cdef struct Source:                     # the input under a tile
    Py_ssize_t plane, row, col          # elements from one to the next
    Py_ssize_t rows, cols               # how many there are


cdef struct Target:                     # the outputs of a tile
    Py_ssize_t plane, row, col          # elements from one to the next


cdef struct Work:                       # what a strategy gets besides its input and output
    const Pool *pool
    const Tile *tile
    Py_ssize_t planes                   # that are pooled together
    const Taps *leads                   # slabs of the leading axes that are pooled together
    char *scratch


cdef inline char *area_of(const Pool *p, char *scratch, Area area) noexcept nogil:
    return scratch + p.scratch.offsets[<int>area]
