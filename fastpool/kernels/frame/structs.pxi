# What a tile is pooled from and into, whatever the reduction: the frame of a pooling, the arrays,
# the tile and the scratch.

cdef enum:
    MAX_THREADS = 256
    MAX_AREAS = 32          # of one thread's scratch


cdef struct Problem:                    # windows and dtype: the same for every reduction
    Py_ssize_t batch, channels, channels_last       # PROBLEM_FIELDS (schedule.pxi)
    Window rows, cols
    Window *lead                        # apart: a Window is 1.6 KB, and thousands of plans are kept
    Py_ssize_t leads, lead_outs
    int code, size                      # dtype, and bytes of an element
    Py_ssize_t *beyond                  # in padding (`Work.beyond`); NULL if that is left out


cdef struct Tiling:
    Py_ssize_t rows, cols, channels, planes             # outputs of a tile
    Py_ssize_t row_tiles, col_tiles, channel_tiles      # tiles along each axis
    Py_ssize_t tasks                                    # tiles in all


cdef struct ScratchLayout:
    Py_ssize_t nbytes                   # per thread
    Py_ssize_t threads                  # for whose scratch a call may take memory
    int areas
    Py_ssize_t offsets[MAX_AREAS]


cdef struct View:                       # an array, strides in elements
    char *data
    Py_ssize_t batch, channel, row, col
    Py_ssize_t lead[MAX_LEADS]


cdef struct Scratch:                    # of one thread
    char *area
    Py_ssize_t margins      # first output column of the tile whose margins are filled, or -1


cdef struct Frame                       # below


cdef struct Job:                        # one call
    const Frame *frame
    View x, y, z                        # input, output, second output (indices) if any
    const void *more                    # what the reduction needs for this call alone
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


# Pool the tile of a task. A reduction puts its own function into the frame.
ctypedef void (*run_task_t)(Job *job, Py_ssize_t task, Scratch *scratch) noexcept nogil


cdef struct Frame:                      # a pooling; a reduction has a struct that begins with it
    Problem problem
    Tiling tiling
    ScratchLayout scratch
    run_task_t run


cdef inline char *frame_area(const Frame *frame, char *scratch, int area) noexcept nogil:
    """Return an area of a thread's scratch."""
    return scratch + frame.scratch.offsets[area]
