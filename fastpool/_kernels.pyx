# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled loops. This one source is built once per instruction set (setup.py); vector.h gives each build its vectors.

A pooling arrives resolved: windows, tiles and pass chains (from _schedule.py), pointers and strides. A *task* is one tile
of outputs; `run` shares the tasks among threads. Nothing here knows of padding modes, rounding or layout names, nothing
raises, and nothing but scratch and results is allocated.

"""
cimport openmp
from cpython.buffer cimport PyBUF_STRIDES, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.list cimport PyList_CheckExact, PyList_GET_SIZE
from cpython.long cimport PyLong_AsLongAndOverflow, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_SIZE
from cython.parallel cimport prange, threadid
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from fastpool cimport (
    FASTPOOL_ABI_MAJOR, FASTPOOL_ABI_MINOR, FASTPOOL_APART, FASTPOOL_BAD_FLAGS, FASTPOOL_BAD_THREADS, FASTPOOL_EXTRA_INDICES,
    FASTPOOL_INDEX_OUTSIDE, FASTPOOL_INDICES_ALIGNMENT, FASTPOOL_INDICES_NULL, FASTPOOL_INDICES_STRIDES, FASTPOOL_NO_MEMORY,
    FASTPOOL_OK, FASTPOOL_OVERLAP, FASTPOOL_X_ALIGNMENT, FASTPOOL_X_NULL, FASTPOOL_X_STRIDES, FASTPOOL_Y_ALIGNMENT,
    FASTPOOL_Y_NULL, FASTPOOL_Y_STRIDES, fastpool_max_pool_attributes, fastpool_max_unpool_attributes, fastpool_plan,
)

import numpy

cdef extern from "Python.h":
    # (not cpython.list's and cpython.tuple's, which take a reference)
    PyObject *PyList_GET_ITEM(object, Py_ssize_t)
    PyObject *PyTuple_GET_ITEM(object, Py_ssize_t)

cdef extern from "kernels/vectors/keys.h" nogil:
    ctypedef struct vec_t:
        pass
    ctypedef struct vec_mask:
        pass
    const Py_ssize_t VEC_BYTES
    vec_t vec_load(const void *)
    vec_t vec_load_part(const void *, size_t)
    ctypedef uint64_t vec_edge
    const bint VEC_MASKS
    vec_edge vec_inside(Py_ssize_t, Py_ssize_t)
    vec_t vec_load_inside(const void *, vec_edge, vec_t)
    Py_ssize_t vec_store_chosen(void *, vec_t, vec_edge, size_t, bint)
    void vec_store(void *, vec_t)
    void vec_store_part(void *, vec_t, size_t)
    ctypedef struct narrow_t:
        pass
    narrow_t narrow_load(const void *, size_t)
    void narrow_store(void *, narrow_t, size_t)
    narrow_t narrow_max(narrow_t, narrow_t, ...)
    # The last argument gives the element type, and is not looked at otherwise.
    vec_t vec_max(vec_t, vec_t, ...)
    vec_t vec_evens(vec_t, vec_t, ...)
    vec_t vec_odds(vec_t, vec_t, ...)
    vec_t vec_next(vec_t, vec_t, ...)
    vec_t vec_lowest(...)
    narrow_t vec_reduce(vec_t, ...)
    ctypedef struct vec_flag:
        pass
    vec_flag flag_none()
    bint flag_any(vec_flag)
    vec_flag flag_or(vec_flag, vec_flag)
    vec_flag nan_or(vec_flag, vec_t, vec_t, ...)
    vec_mask vec_gt(vec_t, vec_t, ...)
    vec_t vec_pick(vec_mask, vec_t, vec_t, ...)
    vec_t vec_add(vec_t, vec_t, ...)
    vec_t vec_splat(int64_t, ...)
    double lowest(...)
    bint has_margin(...)
    void store_indices(...)
    void put_indices(...)
    vec_t vec_ramp(int64_t)
    vec_t vec_of(const int64_t *, ...)
    vec_t vec_later(vec_t, vec_t, ...)
    int cpu_has(const char *)
    int F16, BF16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, BOOL
    int NAN_IGNORE, ZEROS_EQUAL
    const unsigned char *dtype_bytes
    ctypedef void (*keys_load_t)(void *, size_t, const void *, size_t, size_t, size_t, int) noexcept
    ctypedef void (*keys_store_t)(void *, size_t, const void *, size_t, size_t, size_t) noexcept
    keys_load_t keys_loader(int, int)
    keys_store_t keys_storer(int, int)

cdef extern from "kernels/vectors/redzones.h" nogil:
    const Py_ssize_t FENCE
    void put_fences(char *, size_t, const Py_ssize_t *, int)
    void take_fences_away(void *, size_t)

cdef extern from "kernels/vectors/threads.h" nogil:
    int threads_given(int)
    int call_in_child(void (*)() noexcept nogil)

cdef extern from "fastpool.h":
    ctypedef struct fastpool_functions:
        int major, minor
        int (*plan_from)(fastpool_plan *, size_t, object) except -1
        int (*plan_max_pool)(fastpool_plan *, size_t, const fastpool_max_pool_attributes *, size_t) except -1
        int (*plan_max_unpool)(fastpool_plan *, size_t, const fastpool_max_unpool_attributes *, size_t) except -1

ctypedef fused number:
    float
    double
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused lane:
    int16_t
    int32_t
    int64_t

cdef enum:
    MAX_NDIM = 64           # of numpy's arrays
    MAX_LEADS = 62          # these, less rows and columns
    MAX_STEPS = 64          # each step at least doubles the window, and sizes are 64-bit
    MAX_TAPS = 64           # of one step, or of a whole direct window
    SMALL_TAPS = 8          # along one axis of a window that is pooled in registers
    FLAT_TAPS = 32          # of a window over planes that are flattened, and the masks that this may take
    FLAT_MASKS = 4096
    RING = 32               # rows under a window with indices that slides over them
    TAPS_ALONG = 8          # along each axis of such a window (twice as many with 32 registers); in all, of one that does
    TAPS_AT_ONCE = 64       # not slide
    AREAS = 11
    MAX_THREADS = 256
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


cdef enum Form:         # how a tile is pooled
    BANDS                   # row pass into scratch, column pass out of it (of pairs the other way round); channels last also all taps at once
    DOWN                    # _small.pxi, with masks: stride 1, rows of a few vectors
    ALONG                   # with masks: stride 2 along the columns, 2 or 3 taps
    APART                   # 2 or 4 columns side by side: windows share none
    PADDED                  # long windows over planes of less than two vectors a row
    WHOLE                   # one window takes all of a plane
    FLAT                    # with masks: many planes smaller than a few vectors
    TAPS                    # _taps.pxi, with indices: small windows
    FAR                     # _far.pxi: windows so long that scratch holds no tile


cdef struct Window:     # one pooled axis
    Py_ssize_t size, out, kernel, stride, dilation, begin
    Py_ssize_t extent               # (kernel - 1) * dilation + 1
    Py_ssize_t inner_lo, inner_hi   # outputs whose taps are all real elements
    Py_ssize_t steps                # the chain: step i takes taps[i] elements, shifts[i] apart, the last one at lasts[i]
    Py_ssize_t taps[MAX_STEPS]
    Py_ssize_t shifts[MAX_STEPS]
    Py_ssize_t lasts[MAX_STEPS]


cdef struct FarAxis:            # FAR: one axis (_far.pxi)
    const Window *window
    int which                       # 0 columns, 1 rows, 2 and more: leading axes
    Py_ssize_t place                # from one element to the next
    Py_ssize_t turns                # windows this many outputs apart have taps on the same elements: d / gcd(s, d)
    Py_ssize_t tile                 # outputs at a time
    Py_ssize_t block                # vectors between two suffixes that are kept
    Py_ssize_t marks                # suffixes that are kept
    Py_ssize_t source, slots, kept, queue, best, given      # where they are in scratch, in pairs


cdef struct Pool:
    Window rows, cols
    Window *lead                    # of its own: a Window is 1.6 KB, and plans are kept by the thousand
    Py_ssize_t leads, lead_outs
    bint channels_last
    Py_ssize_t form                 # a Form
    bint direct                     # all taps at once from the input; else row pass, then column pass
    bint folded                     # channels last, a few of them: taken as lanes
    bint in_place                   # column chains overwrite the band, margins too
    bint pairs
    bint keyed                      # pooled as keys: 16-bit floats, nan="ignore"
    int code, size, lane, rule      # dtype, its bytes, bytes of a key, key_rule
    Py_ssize_t batch, channels
    Py_ssize_t tile_rows, tile_cols, tile_channels, tile_planes
    Py_ssize_t index_bytes
    int64_t index_base              # of the input's first element
    Py_ssize_t index_batch, index_channel, index_row, index_col
    Py_ssize_t index_lead[MAX_LEADS]
    bint slides, slides_few         # TAPS: each row under a tile is compared once; windows of 3 x 3 or 5 x 5
    bint notes                      # TAPS: the kernels note NaN in what they read in place
    bint linear                     # index = base + position * index_col
    Py_ssize_t position_lead[MAX_LEADS]
    Py_ssize_t row_tiles, col_tiles, channel_tiles, tasks
    Py_ssize_t flat_taps, flat_period       # FLAT: taps but the first, vectors until masks repeat
    Py_ssize_t flat_offsets[FLAT_TAPS]
    vec_edge *flat_masks            # per vector: which lanes have each tap, which are outputs
    bint flat_all                   # every element is an output
    Py_ssize_t fars                 # FAR: axes, from the innermost on
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


cdef inline Py_ssize_t imin(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    return a if a < b else b


cdef inline Py_ssize_t imax(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    return a if a > b else b


cdef inline Py_ssize_t ceil_div(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    return (a + b - 1) // b         # a >= 0


cdef inline Py_ssize_t round_up(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    return ceil_div(a, b) * b


cdef inline bint lane_stride(const Window *w) noexcept nogil:
    """Are strided lanes picked by shuffles?"""
    return w.stride == 1 or w.stride == 2 or w.stride == 4


cdef inline void carve(Areas *areas, const Pool *p, char *area) noexcept nogil:
    cdef char **each = <char **>areas
    cdef int i
    for i in range(AREAS):
        each[i] = area + p.offsets[i]


cdef inline Py_ssize_t real_taps(const Window *w, Py_ssize_t output, Py_ssize_t *first) noexcept nogil:
    """Number of taps of one output that are elements; `first` gets the first such element."""
    cdef Py_ssize_t start = output * w.stride - w.begin, skipped = 0
    if w.dilation == 1:                 # a 64-bit division takes as long as pooling a short row
        first[0] = imax(start, 0)
        return imax(0, imin(start + w.kernel, w.size) - first[0])
    if start < 0:
        skipped = ceil_div(-start, w.dilation)
        start += skipped * w.dilation
    first[0] = start
    if start >= w.size:
        return 0
    return imax(0, imin(w.kernel - skipped, (w.size - 1 - start) // w.dilation + 1))


cdef inline Py_ssize_t step_taps(Py_ssize_t *taps, const Window *w, Py_ssize_t step, Py_ssize_t scale) noexcept nogil:
    """Offsets of one step's taps, where the axis advances by `scale` elements; returns how many."""
    cdef Py_ssize_t t
    for t in range(w.taps[step] - 1):
        taps[t] = t * w.shifts[step] * scale
    taps[w.taps[step] - 1] = w.lasts[step] * scale
    return w.taps[step]


include "kernels/frame/offsets.pxi"
include "kernels/maximum/passes.pxi"
include "kernels/maximum/slide_down.pxi"
include "kernels/maximum/long_windows.pxi"
include "kernels/maximum/bands.pxi"
include "kernels/maximum/pairs.pxi"
include "kernels/maximum/taps.pxi"
include "kernels/maximum/running_maxima.pxi"
include "kernels/frame/tasks.pxi"
include "kernels/frame/arrays.pxi"
include "kernels/scatter.pxi"


CODES = {"float16": F16, "bfloat16": BF16, "float32": F32, "float64": F64, "int8": I8, "int16": I16, "int32": I32, "int64": I64,
         "uint8": U8, "uint16": U16, "uint32": U32, "uint64": U64, "bool": BOOL}

cdef bint in_use = False


def use(bint now):
    """Is this the build that plans run on? What was kept for another one declines."""
    global in_use
    in_use = now


cdef struct Prepared:               # a pooling, and how arrays lie that have its shapes: all that a call needs
    Pool pool
    int batch_axis, channel_axis, row_axis, col_axis, ndim
    int lead_axes[MAX_LEADS]
    Py_ssize_t x_shape[MAX_NDIM]
    Py_ssize_t y_shape[MAX_NDIM]
    size_t work
    int shift, index_shift                  # of the element sizes: a 64-bit division takes as long as a small pooling


FORMS = "bands", "down", "along", "apart", "padded", "whole", "flat", "taps", "far"     # as in enum Form


cdef class Pooling:
    """A scheduled pooling (`fastpool._schedule.Schedule`), ready to run on arrays of its shapes."""
    cdef Prepared prepared
    cdef object output_shape, index_dtype, threads
    cdef readonly object dtype

    def __cinit__(self, schedule, dtype, threads=None):
        """`dtype` is the dtype object of plain arrays; `threads` gives the number for each call of `run`, None is one."""
        cdef Prepared *prepared = &self.prepared
        cdef Pool *p = &prepared.pool
        cdef int i
        windows = schedule.windows
        if not 2 <= len(windows) <= MAX_LEADS + 2 or len(schedule.input_shape) > MAX_NDIM:
            raise ValueError(f"{len(windows)} windows over {len(schedule.input_shape)} axes")
        if len(schedule.output_shape) != len(schedule.input_shape) or len(schedule.spatial_axes) != len(windows):
            raise ValueError("shapes and axes of different lengths")
        p.leads = len(windows) - 2
        if p.leads:
            p.lead = <Window *>malloc(p.leads * sizeof(Window))
            if p.lead == NULL:
                raise MemoryError("fastpool: no memory for windows")
        p.lead_outs = 1
        for i in range(p.leads):
            set_window(&p.lead[i], windows[i])
            p.lead_outs *= p.lead[i].out
            p.index_lead[i] = schedule.index_strides[2 + i]
            p.position_lead[i] = schedule.position_strides[i]
            prepared.lead_axes[i] = schedule.spatial_axes[i]
        set_window(&p.rows, windows[len(windows) - 2])
        set_window(&p.cols, windows[len(windows) - 1])
        prepared.row_axis, prepared.col_axis = schedule.spatial_axes[p.leads], schedule.spatial_axes[p.leads + 1]
        prepared.batch_axis, prepared.channel_axis = schedule.batch_axis, schedule.channel_axis
        p.channels_last, p.direct, p.folded = schedule.channels_last, schedule.direct, schedule.folded
        p.pairs, p.keyed = schedule.return_indices, schedule.keyed
        p.code = CODES[schedule.dtype]
        p.size = dtype_bytes[p.code]
        p.lane = schedule.lane_bytes
        p.rule = (NAN_IGNORE if schedule.nan == "ignore" else 0) | (ZEROS_EQUAL if p.pairs else 0)
        p.batch, p.channels = schedule.batch, schedule.channels
        p.tile_rows, p.tile_cols, p.tile_channels, p.tile_planes = schedule.tile
        p.index_bytes, p.index_base = schedule.index_bytes, schedule.index_base
        p.index_batch, p.index_channel = schedule.index_strides[0], schedule.index_strides[1]
        p.index_row, p.index_col = schedule.index_strides[2 + p.leads], schedule.index_strides[3 + p.leads]
        p.linear = schedule.linear
        p.row_tiles, p.col_tiles = ceil_div(p.rows.out, p.tile_rows), ceil_div(p.cols.out, p.tile_cols)
        p.channel_tiles = ceil_div(p.channels, p.tile_channels) if p.channels_last else 1
        p.tasks = p.batch if p.channels_last else ceil_div(p.batch * p.channels, p.tile_planes)
        p.tasks *= p.channel_tiles
        if schedule.far:
            self.set_far(schedule.far)
        else:
            p.tasks *= p.lead_outs * p.row_tiles * p.col_tiles
        p.form = form_of(p)
        if p.form == FLAT:
            p.flat_masks = <vec_edge *>malloc(p.flat_period * (p.flat_taps + 1) * sizeof(vec_edge))
            if p.flat_masks == NULL:
                raise MemoryError("fastpool: no memory for masks")
            fill_masks(p)
        measure(p)
        self.dtype, self.index_dtype = dtype, INT64 if p.index_bytes == 8 else INT32
        prepared.shift, prepared.index_shift = log2(p.size), log2(p.index_bytes)
        self.threads = threads
        prepared.ndim = len(schedule.input_shape)
        prepared.work = schedule.work
        self.output_shape = schedule.output_shape
        for i in range(prepared.ndim):
            prepared.x_shape[i], prepared.y_shape[i] = schedule.input_shape[i], schedule.output_shape[i]

    cdef int set_far(self, axes) except -1:
        """`axes` are (number of the window, tile, block, marks), from the innermost on."""
        cdef Pool *p = &self.prepared.pool
        cdef FarAxis *axis
        cdef Py_ssize_t level, window
        p.far = <FarAxis *>malloc(len(axes) * sizeof(FarAxis))
        if p.far == NULL:
            raise MemoryError("fastpool: no memory for axes")
        p.fars = len(axes)
        for level in range(p.fars):
            axis = &p.far[level]
            window, axis.tile, axis.block, axis.marks = axes[level]
            if window < p.leads:
                axis.which, axis.window, axis.place = <int>(2 + window), &p.lead[window], p.position_lead[window]
            elif window == p.leads:
                axis.which, axis.window, axis.place = 1, &p.rows, p.cols.size
            else:
                axis.which, axis.window, axis.place = 0, &p.cols, 1
            axis.turns = axis.window.dilation // gcd(axis.window.stride, axis.window.dilation)
            if level < p.fars - 1:
                p.tasks *= ceil_div(axis.window.out, axis.tile)
        return 0

    def __dealloc__(self):
        free(self.prepared.pool.flat_masks)
        free(self.prepared.pool.far)
        free(self.prepared.pool.lead)

    @property
    def tasks(self):
        """Tiles in all: more threads than this find nothing to do."""
        return self.prepared.pool.tasks

    @property
    def form(self):
        """How its tiles are pooled: the name of a Form. With indices "taps", or "bands" for passes over pairs."""
        return FORMS[<int>self.prepared.pool.form]

    @property
    def scratch_bytes(self):
        """Scratch per thread."""
        return self.prepared.pool.scratch

    def run(self, x, out, out_indices):
        """What a plan's call gives, for plain arrays. None, with nothing written, for any other."""
        cdef bint pairs = self.prepared.pool.pairs
        if not in_use or (out_indices is not None and not pairs):
            return None
        y, z = out, out_indices
        if y is None:
            y = empty(self.output_shape, self.dtype)
        if z is None and pairs:
            z = empty(self.output_shape, self.index_dtype)
        if not self.pool_into(x, y, z, 1 if self.threads is None else self.threads(), out is None and out_indices is None):
            return None
        return (y, z) if pairs else y

    def pool_apart(self, x, y, z, int threads):
        """Pool x into y (and indices into z) where the caller knows that no memory is shared. Returns whether it could."""
        return self.pool_into(x, y, z, threads, True)

    cdef bint pool_into(self, x, y, z, int threads, bint apart) except -1:
        cdef const Prepared *prepared = &self.prepared
        cdef Array arrays[3]
        cdef Job job
        cdef bint fit, enough, pairs = prepared.pool.pairs
        job.pool = &self.prepared.pool
        arrays[0].exported = arrays[1].exported = arrays[2].exported = False
        try:
            fit = (look(&arrays[0], x, self.dtype, ALIGNED) and look(&arrays[1], y, self.dtype, ALIGNED | WRITEABLE)
                   and view(&job.x, &arrays[0], prepared, prepared.x_shape, prepared.shift)
                   and view(&job.y, &arrays[1], prepared, prepared.y_shape, prepared.shift)
                   and (apart or are_apart(&arrays[0], prepared.shift, &arrays[1], prepared.shift)))
            if fit and pairs:
                fit = (look(&arrays[2], z, self.index_dtype, ALIGNED | WRITEABLE)
                       and view(&job.z, &arrays[2], prepared, prepared.y_shape, prepared.index_shift)
                       and (apart or (are_apart(&arrays[0], prepared.shift, &arrays[2], prepared.index_shift)
                                      and are_apart(&arrays[1], prepared.shift, &arrays[2], prepared.index_shift))))
            if fit and prepared.pool.tasks:
                threads = busy(&prepared.pool, threads)
                if threads == 1 and prepared.work < UNLOCK_BYTES:
                    enough = run_job(&job, 1)
                else:
                    with nogil:
                        enough = run_job(&job, threads)
                if not enough:
                    raise MemoryError(f"fastpool: no memory for the scratch of {threads} threads, {prepared.pool.scratch} bytes each")
        finally:
            close(&arrays[0])
            close(&arrays[1])
            close(&arrays[2])
        return fit


cdef bint are_apart(const Array *a, int a_shift, const Array *written, int shift) noexcept nogil:
    """Is it sure that no two elements of the written array share memory, and that it shares none with the other?"""
    return nested(written, <Py_ssize_t>1 << shift) and not overlap(a, <Py_ssize_t>1 << a_shift, written, <Py_ssize_t>1 << shift)


cdef bint view(View *view, const Array *array, const Prepared *prepared, const Py_ssize_t *shape, int shift) noexcept nogil:
    """Strides in elements, if kernels can work on this array as it is."""
    cdef const Pool *p = &prepared.pool
    cdef Py_ssize_t strides = 0
    cdef bint empty = False
    cdef int i
    if not has_shape(array, prepared.ndim, shape):
        return False
    for i in range(prepared.ndim):
        empty |= shape[i] == 0
        if shape[i] > 1:
            strides |= array.strides[i]
    if empty:                           # strides mean nothing; NumPy's are 0
        memset(view, 0, sizeof(View))
        return True
    if strides & ((<Py_ssize_t>1 << shift) - 1):
        return False
    view.data = array.data
    # An axis of one element continues its neighbour, so that planes look as evenly spaced as they are.
    view.batch = step(array, prepared.batch_axis, shift, 0)
    view.channel = step(array, prepared.channel_axis, shift, 1 if p.channels_last else view.batch)
    if p.batch == 1:
        view.batch = p.channels * view.channel
    view.row = step(array, prepared.row_axis, shift, view.channel)
    view.col = step(array, prepared.col_axis, shift, 1)
    for i in range(p.leads):
        view.lead[i] = step(array, prepared.lead_axes[i], shift, 0)
    if p.channels_last:
        return view.channel == 1
    return view.col == 1


cdef Py_ssize_t gcd(Py_ssize_t a, Py_ssize_t b) noexcept:
    while b:
        a, b = b, a % b
    return a


cdef int log2(Py_ssize_t size) noexcept:
    cdef int shift = 0
    while <Py_ssize_t>1 << shift < size:
        shift += 1
    return shift


cdef int set_window(Window *w, window) except -1:
    cdef Py_ssize_t i
    w.size, w.out, w.kernel, w.stride, w.dilation, w.begin = window.size, window.out, window.kernel, window.stride, window.dilation, window.begin
    w.extent = (w.kernel - 1) * w.dilation + 1
    w.inner_lo = imin(w.out, ceil_div(imax(w.begin, 0), w.stride))
    w.inner_hi = 0 if w.size - w.extent + w.begin < 0 else imin(w.out, (w.size - w.extent + w.begin) // w.stride + 1)
    w.inner_hi = imax(w.inner_lo, w.inner_hi)
    w.steps = len(window.steps)
    if not 1 <= w.steps <= MAX_STEPS:
        raise ValueError(f"a chain of {w.steps} steps")
    for i in range(w.steps):
        w.taps[i], w.shifts[i], w.lasts[i] = window.steps[i]
        if not 1 <= w.taps[i] <= MAX_TAPS:
            raise ValueError(f"a step of {w.taps[i]} taps")
    return 0


cdef inline Py_ssize_t step(const Array *array, int axis, int shift, Py_ssize_t absent) noexcept nogil:
    """Elements from one index of an axis to the next; `absent` if it is not there or has only one."""
    if axis < 0 or array.shape[axis] == 1:
        return absent
    return array.strides[axis] >> shift


include "kernels/c_api.pxi"


def max_threads():
    """OpenMP's own limit: OMP_NUM_THREADS, or what threadpoolctl set."""
    return openmp.omp_get_max_threads()


def cpu_supports(feature):
    """Does this processor, and the operating system, have an x86 feature that a build was compiled for?"""
    return cpu_has(feature.encode())


VECTOR_BYTES = VEC_BYTES
