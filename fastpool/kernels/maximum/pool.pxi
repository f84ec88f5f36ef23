# A pooling to maxima: its strategy, what that needs, and where indices count from.

cdef enum Strategy:         # how a tile is pooled; each has a file here
    BANDS
    DIRECT_PIXELS
    PIXELS_AS_ROW
    SLIDE_DOWN
    STRIDE_TWO
    APART
    WHOLE_PLANE
    WHOLE_PIXELS
    FLAT_PLANES
    PLANES_AS_PIXELS
    ONE_WINDOW
    COMPOSITES
    TAPS
    PAIRS
    RUNNING_MAXIMA
    IRREGULAR


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
    IOTA_LANES              # what the lanes of its rows add to an index
    AREAS


cdef struct Indexing:                   # the strides of indices, and what they count from
    Py_ssize_t bytes
    int64_t base                        # of the input's first element
    Py_ssize_t batch, channel, row, col
    Py_ssize_t lead[MAX_LEADS]
    Py_ssize_t position_lead[MAX_LEADS]
    bint linear                         # index = base + position * col


cdef struct TapsChoice:                 # taps.pxi: how windows with indices are compared
    bint slides                         # each row under a tile is compared once
    bint slides_square                  # windows of 3 x 3 or 5 x 5
    bint tracks_nan                     # in what is read in place, as it is read


cdef struct FlatPlanes                  # flat_planes.pxi
cdef struct RunningAxis                 # running_maxima.pxi
cdef struct Pool                        # below


cdef struct Pool:                       # a pooling to maxima, ready to run
    Frame frame                         # (first: a Job points to it)
    Indexing indexing
    int strategy                        # a Strategy
    bint in_place                       # chains of columns overwrite the band, margins too
    bint with_indices
    bint keyed                          # pooled as keys: 16-bit floats, nan="ignore", some minima
    int key_bytes, rule                 # of a key; key_rule
    TapsChoice taps
    FlatPlanes *flat
    Pool *inner                         # of planes that are interleaved, or of composites
    RunningAxis *running                # from the innermost axis on
    int running_axes


cdef struct Work:                       # what a strategy gets besides its input and output
    const Pool *pool
    const Tile *tile
    Py_ssize_t planes                   # that are pooled together
    const Taps *leads                   # slabs of the leading axes that are pooled together
    char *scratch


cdef inline char *area_of(const Pool *p, char *scratch, Area area) noexcept nogil:
    return frame_area(&p.frame, scratch, <int>area)


cdef inline bint pools_planes(const Pool *p) noexcept nogil:
    """Does the strategy pool channels-first planes without bands?"""
    return (p.strategy == SLIDE_DOWN or p.strategy == STRIDE_TWO or p.strategy == APART
            or p.strategy == WHOLE_PLANE or p.strategy == FLAT_PLANES)


cdef inline bint takes_maxima_only(const Pool *p) noexcept nogil:
    """Are its loops over elements compiled for maxima only? Minima would add 33 kB to a build."""
    return (p.strategy == STRIDE_TWO or p.strategy == APART or p.strategy == FLAT_PLANES
            or p.strategy == WHOLE_PIXELS or p.strategy == IRREGULAR)


cdef inline bint takes_all_taps(const Pool *p) noexcept nogil:
    """Does the strategy take all taps of a channels-last pixel at once?"""
    return p.strategy == DIRECT_PIXELS
