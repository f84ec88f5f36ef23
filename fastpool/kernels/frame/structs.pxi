# What a tile is pooled from and into: the pooling, the arrays, the tile, the scratch of one thread.

cdef enum:
    AREAS = 11
    MAX_THREADS = 256


cdef enum:
    SMALL_TAPS = 8          # along one axis of a window that is pooled in registers
    FLAT_TAPS = 32          # of a window over planes that are flattened, and the masks that this may take
    FLAT_MASKS = 4096
    RING = 32               # rows under a window with indices that slides over them
    TAPS_ALONG = 8          # along each axis of such a window (twice as many with 32 registers); in all, of one that does
    TAPS_AT_ONCE = 64       # not slide
    POOLED_KEYS = 4096      # that are stored at a time
    PAIR_ROWS = 8           # rows of pairs that one column pass takes
    PADDED_PARTS = 4        # a padded plane is at most so many times what is pooled
    WHOLE_BYTES = 524288    # of a plane that is pooled to one value in one go
    SLACK = 512             # bytes behind every scratch area: whole vectors are read past the last element
    COLUMN_BYTES = 16384    # rows over more bytes than these are taken by so many at a time
    COLUMN_ROWS = 16
    CHAIN_BYTES = 32768     # dense rows of a long window: they stay in the first-level cache
    DENSE_BYTES = 65536     # of a band that is kept beside its chain, as filling margins takes longer than short rows
    COPIED_BYTES = 131072   # of rows that a pass over long windows copies
    STACK_BYTES = 8192      # scratch of at most this many bytes is on the stack: an exchange of blocks takes 15 ns
    KEEP_BYTES = 8 << 20    # scratch of at most this many bytes outlives a call
    UNLOCK_BYTES = 16384    # work on fewer bytes is done before another thread could take the GIL


cdef enum Strategy:         # how a tile is pooled
    BANDS                   # row pass into scratch, column pass out of it (of pairs the other way round); channels last also all taps at once
    SLIDE_DOWN                    # _small.pxi, with masks: stride 1, rows of a few vectors
    STRIDE_TWO                   # with masks: stride 2 along the columns, 2 or 3 taps
    APART                   # 2 or 4 columns side by side: windows share none
    PADDED_PLANES                  # long windows over planes of less than two vectors a row
    WHOLE_PLANE                   # one window takes all of a plane
    FLAT_PLANES                    # with masks: many planes smaller than a few vectors
    TAPS                    # _taps.pxi, with indices: small windows
    RUNNING_MAXIMA                     # _far.pxi: windows so long that scratch holds no tile


cdef struct FarAxis:            # RUNNING_MAXIMA: one axis (_far.pxi)
    const Window *window
    int which                       # 0 columns, 1 rows, 2 and more: leading axes
    Py_ssize_t place                # from one element to the next
    Py_ssize_t turns                # windows this many outputs apart have taps on the same elements: d / gcd(s, d)
    Py_ssize_t tile                 # outputs at a time
    Py_ssize_t block                # vectors between two suffixes that are kept
    Py_ssize_t marks                # suffixes that are kept
    Py_ssize_t source, slots, kept, queue, best, output      # where they are in scratch, in pairs


cdef struct Pool:
    Window rows, cols
    Window *lead                    # of its own: a Window is 1.6 KB, and plans are kept by the thousand
    Py_ssize_t leads, lead_outs
    bint channels_last
    Py_ssize_t strategy                 # a Strategy
    bint direct                     # all taps at once from the input; else row pass, then column pass
    bint pixels_as_row                     # channels last, a few of them: taken as lanes
    bint in_place                   # column chains overwrite the band, margins too
    bint with_indices
    bint keyed                      # pooled as keys: 16-bit floats, nan="ignore"
    int code, size, key_bytes, rule      # dtype, its bytes, bytes of a key, key_rule
    Py_ssize_t batch, channels
    Py_ssize_t tile_rows, tile_cols, tile_channels, tile_planes
    Py_ssize_t index_bytes
    int64_t index_base              # of the input's first element
    Py_ssize_t index_batch, index_channel, index_row, index_col
    Py_ssize_t index_lead[MAX_LEADS]
    bint slides, slides_square         # TAPS: each row under a tile is compared once; windows of 3 x 3 or 5 x 5
    bint tracks_nan                      # TAPS: the kernels note NaN in what they read in place
    bint linear                     # index = base + position * index_col
    Py_ssize_t position_lead[MAX_LEADS]
    Py_ssize_t row_tiles, col_tiles, channel_tiles, tasks
    Py_ssize_t flat_taps, flat_period       # FLAT_PLANES: taps but the first, vectors until masks repeat
    Py_ssize_t flat_offsets[FLAT_TAPS]
    byte_mask *flat_masks            # per vector: which lanes have each tap, which are outputs
    bint flat_all                   # every element is an output
    Py_ssize_t fars                 # RUNNING_MAXIMA: axes, from the innermost on
    FarAxis *far
    Py_ssize_t scratch              # bytes per thread, and where each area begins in them
    Py_ssize_t offsets[AREAS]


cdef struct View:                   # an array, strides in elements
    char *data
    Py_ssize_t batch, channel, row, col
    Py_ssize_t lead[MAX_LEADS]


cdef struct Tile:
    Py_ssize_t plane, planes        # channels first: planes n * C + c
    Py_ssize_t batch, channel, channels
    Py_ssize_t lead                 # flat position among the leading outputs
    Py_ssize_t row, rows, col, cols                 # outputs
    Py_ssize_t row_lo, row_hi, col_lo, col_hi       # input elements under them, without padding
    Py_ssize_t left, span           # columns of padding before col_lo; columns in all, padding included


cdef struct Leads:                  # slabs of the leading axes that are taken together, and where in x
    Py_ssize_t count
    Py_ssize_t offsets[MAX_TAPS]


cdef struct Areas:                  # one thread's scratch, by use
    char *slab
    char *spare
    char *spare_places
    char *band
    char *band_places
    char *dense
    char *dense_places
    char *pooled
    char *pooled_places
    char *chain
    char *iota


cdef struct Scratch:
    char *area
    Py_ssize_t margins              # first output column of the tile whose margins are filled, or -1
