# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled loops. This one source is built once per instruction set (setup.py); _vector.h gives each build its vectors.

A pooling arrives resolved: windows, tiles and pass chains (from _schedule.py), pointers and strides. A *task* is one tile
of outputs; `run` shares the tasks among threads. Nothing here knows of padding modes, rounding or layout names, nothing
raises, and nothing but scratch is allocated.

    _kernels.pyx   geometry, tasks, the entry points
    _windows.pxi   the three loops that everything is made of, on plain values
    _small.pxi     one tile of values, where windows are small enough for registers
    _values.pxi    one tile of values: row pass, column pass, or both at once
    _pairs.pxi     one tile of values with the positions they came from
    _unpool.pxi    max unpooling
"""
cimport openmp
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cython.parallel cimport prange, threadid
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset, strchr

cdef extern from "_keys.h" nogil:
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
    vec_flag nan_or(vec_flag, vec_t, vec_t, ...)
    vec_mask vec_gt(vec_t, vec_t, ...)
    vec_t vec_pick(vec_mask, vec_t, vec_t, ...)
    vec_t vec_add(vec_t, vec_t, ...)
    vec_t vec_splat(int64_t, ...)
    double lowest(...)
    bint has_margin(...)
    void store_indices(...)
    int cpu_has(const char *)
    int F16, BF16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64
    int NAN_IGNORE, ZEROS_EQUAL
    const unsigned char *dtype_bytes
    ctypedef void (*keys_load_t)(void *, size_t, const void *, size_t, size_t, size_t, int) noexcept
    ctypedef void (*keys_store_t)(void *, size_t, const void *, size_t, size_t, size_t) noexcept
    keys_load_t keys_loader(int, int)
    keys_store_t keys_storer(int, int)

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
    MAX_LEADS = 62          # numpy's 64 axes, less rows and columns
    MAX_STEPS = 64          # each step at least doubles the window, and sizes are 64-bit
    MAX_TAPS = 64           # of one step, or of a whole direct window
    SMALL_TAPS = 8          # along one axis of a window that is pooled in registers
    FLAT_TAPS = 32          # of a window over planes that are flattened, and the masks that this may take
    FLAT_MASKS = 4096
    AREAS = 11
    MAX_THREADS = 256
    SLACK = 512             # bytes behind every scratch area: whole vectors are read past the last element
    COLUMN_BYTES = 16384    # rows over more bytes than these are taken by so many at a time
    COLUMN_ROWS = 16
    CHAIN_BYTES = 32768     # dense rows of a long window: they stay in the first-level cache
    KEEP_BYTES = 8 << 20    # scratch of at most this many bytes outlives a call
    UNLOCK_BYTES = 16384    # work on fewer bytes is done before another thread could take the GIL


cdef enum Form:         # how a tile of values is pooled
    BANDS                   # row pass into scratch, column pass out of it; channels last also all taps at once
    DOWN                    # _small.pxi, with masks: stride 1, rows of a few vectors
    ALONG                   # with masks: stride 2 along the columns, 2 or 3 taps
    APART                   # 2 or 4 columns side by side: windows share none
    WHOLE                   # one window takes all of a plane
    FLAT                    # with masks: many planes smaller than a few vectors


cdef struct Window:     # one pooled axis
    Py_ssize_t size, out, kernel, stride, dilation, begin
    Py_ssize_t extent               # (kernel - 1) * dilation + 1
    Py_ssize_t inner_lo, inner_hi   # outputs whose taps are all real elements
    Py_ssize_t steps                # the chain: step i takes taps[i] elements, shifts[i] apart, the last one at lasts[i]
    Py_ssize_t taps[MAX_STEPS]
    Py_ssize_t shifts[MAX_STEPS]
    Py_ssize_t lasts[MAX_STEPS]


cdef struct Pool:
    Window rows, cols
    Window lead[MAX_LEADS]
    Py_ssize_t leads, lead_outs
    bint channels_last
    Form form
    bint direct                     # all taps at once from the input; else row pass, then column pass
    bint pairs
    bint keyed                      # pooled as keys: 16-bit floats, nan="ignore"
    int code, size, lane, rule      # dtype, its bytes, bytes of a key, key_rule
    Py_ssize_t batch, channels
    Py_ssize_t tile_rows, tile_cols, tile_channels, tile_planes
    Py_ssize_t index_bytes
    Py_ssize_t index_batch, index_channel, index_row, index_col
    Py_ssize_t index_lead[MAX_LEADS]
    bint linear                     # index = base + position * index_col
    Py_ssize_t position_lead[MAX_LEADS]
    Py_ssize_t row_tiles, col_tiles, channel_tiles, tasks
    Py_ssize_t flat_taps, flat_period       # FLAT: taps but the first, vectors until masks repeat
    Py_ssize_t flat_offsets[FLAT_TAPS]
    vec_edge *flat_masks            # per vector: which lanes have each tap, which are outputs
    bint flat_all                   # every element is an output
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


include "_windows.pxi"
include "_small.pxi"
include "_values.pxi"
include "_pairs.pxi"
include "_tasks.pxi"
include "_unpool.pxi"


CODES = {"float16": F16, "bfloat16": BF16, "float32": F32, "float64": F64, "int8": I8, "int16": I16, "int32": I32, "int64": I64,
         "uint8": U8, "uint16": U16, "uint32": U32, "uint64": U64, "bool": U8}
FORMATS = {"float16": b"e", "bfloat16": b"", "float32": b"f", "float64": b"d", "int8": b"b", "int16": b"h", "int32": b"il",
           "int64": b"lq", "uint8": b"B", "uint16": b"H", "uint32": b"IL", "uint64": b"LQ", "bool": b"?"}


cdef class Pooling:
    """A scheduled pooling (`fastpool._schedule.Schedule`), ready to run on arrays of its shapes."""
    cdef Pool pool
    cdef bytes formats, index_formats
    cdef int batch_axis, channel_axis, row_axis, col_axis, ndim
    cdef int lead_axes[MAX_LEADS]
    cdef Py_ssize_t x_shape[64]
    cdef Py_ssize_t y_shape[64]
    cdef size_t work

    def __cinit__(self, schedule):
        cdef Pool *p = &self.pool
        cdef int i
        windows = schedule.windows
        p.leads = len(windows) - 2
        p.lead_outs = 1
        for i in range(p.leads):
            set_window(&p.lead[i], windows[i])
            p.lead_outs *= p.lead[i].out
            p.index_lead[i] = schedule.index_strides[2 + i]
            p.position_lead[i] = schedule.position_strides[i]
            self.lead_axes[i] = schedule.spatial_axes[i]
        set_window(&p.rows, windows[len(windows) - 2])
        set_window(&p.cols, windows[len(windows) - 1])
        self.row_axis, self.col_axis = schedule.spatial_axes[p.leads], schedule.spatial_axes[p.leads + 1]
        self.batch_axis, self.channel_axis = schedule.batch_axis, schedule.channel_axis
        p.channels_last, p.direct = schedule.channels_last, schedule.direct
        p.pairs, p.keyed = schedule.return_indices, schedule.keyed
        p.code = CODES[schedule.dtype]
        p.size = dtype_bytes[p.code]
        p.lane = schedule.lane_bytes
        p.rule = (NAN_IGNORE if schedule.nan == "ignore" else 0) | (ZEROS_EQUAL if p.pairs else 0)
        p.batch, p.channels = schedule.batch, schedule.channels
        p.tile_rows, p.tile_cols, p.tile_channels, p.tile_planes = schedule.tile
        p.index_bytes = schedule.index_bytes
        p.index_batch, p.index_channel = schedule.index_strides[0], schedule.index_strides[1]
        p.index_row, p.index_col = schedule.index_strides[2 + p.leads], schedule.index_strides[3 + p.leads]
        p.linear = schedule.linear
        p.row_tiles, p.col_tiles = ceil_div(p.rows.out, p.tile_rows), ceil_div(p.cols.out, p.tile_cols)
        p.channel_tiles = ceil_div(p.channels, p.tile_channels) if p.channels_last else 1
        p.tasks = p.batch if p.channels_last else ceil_div(p.batch * p.channels, p.tile_planes)
        p.tasks *= p.lead_outs * p.row_tiles * p.col_tiles * p.channel_tiles
        p.form = form_of(p)
        if p.form == FLAT:
            p.flat_masks = <vec_edge *>malloc(p.flat_period * (p.flat_taps + 1) * sizeof(vec_edge))
            if p.flat_masks == NULL:
                raise MemoryError("fastpool: no memory for masks")
            fill_masks(p)
        measure(p)
        self.formats = FORMATS[schedule.dtype]
        self.index_formats = FORMATS["int64" if p.index_bytes == 8 else "int32"]
        self.ndim = len(schedule.input_shape)
        self.work = schedule.work
        for i in range(self.ndim):
            self.x_shape[i], self.y_shape[i] = schedule.input_shape[i], schedule.output_shape[i]

    def __dealloc__(self):
        free(self.pool.flat_masks)

    @property
    def tasks(self):
        """Tiles in all: more threads than this find nothing to do."""
        return self.pool.tasks

    @property
    def scratch_bytes(self):
        """Scratch per thread."""
        return self.pool.scratch

    def run(self, x, y, z, int threads, bint bits=False, bint apart=False):
        """Pool x into y (and indices into z): True if done, False if an array needs the careful way.

        `bits`: 16-bit floats come as uint16. `apart`: the caller has made sure that no memory is shared.
        """
        cdef Py_buffer buffers[3]
        cdef Job job
        cdef int opened = 0, count = 3 if self.pool.pairs else 2
        cdef bint fit
        cdef const char *formats = self.formats
        job.pool = &self.pool
        try:
            for opened in range(count):
                if opened == 0:
                    PyObject_GetBuffer(x, &buffers[0], PyBUF_FORMAT | PyBUF_STRIDES)
                elif opened == 1:
                    PyObject_GetBuffer(y, &buffers[1], PyBUF_FORMAT | PyBUF_STRIDES | PyBUF_WRITABLE)
                else:
                    PyObject_GetBuffer(z, &buffers[2], PyBUF_FORMAT | PyBUF_STRIDES | PyBUF_WRITABLE)
        except (BufferError, TypeError, ValueError):    # not an array, read-only, no buffer format: said elsewhere
            while opened > 0:
                opened -= 1
                PyBuffer_Release(&buffers[opened])
            return False
        if bits:
            formats = b"H"
        fit = (self.view(&job.x, &buffers[0], self.x_shape, formats, self.pool.size)
               and self.view(&job.y, &buffers[1], self.y_shape, formats, self.pool.size)
               and (count == 2 or self.view(&job.z, &buffers[2], self.y_shape, <const char *>self.index_formats,
                                       self.pool.index_bytes)))
        if fit and not apart:
            fit = nested(&buffers[1]) and not overlap(&buffers[0], &buffers[1])
            if count == 3:
                fit = (fit and nested(&buffers[2]) and not overlap(&buffers[0], &buffers[2])
                       and not overlap(&buffers[1], &buffers[2]))
        try:
            if fit and self.pool.tasks:
                self.launch(&job, threads)
        finally:
            for opened in range(count):
                PyBuffer_Release(&buffers[opened])
        return fit

    cdef bint view(self, View *view, Py_buffer *buffer, const Py_ssize_t *shape, const char *formats,
                   Py_ssize_t itemsize) noexcept:
        """Strides in elements, if kernels can work on this array as it is."""
        cdef int i
        if buffer.ndim != self.ndim or buffer.itemsize != itemsize or buffer.format == NULL:
            return False
        if buffer.format[0] == 0 or buffer.format[1] != 0:
            return False
        if strchr(formats, buffer.format[0]) == NULL or <uintptr_t>buffer.buf % <uintptr_t>itemsize:
            return False
        for i in range(self.ndim):
            if buffer.shape[i] != shape[i] or buffer.strides[i] % itemsize:
                return False
        view.data = <char *>buffer.buf
        # An axis of one element continues its neighbour, so that planes look as evenly spaced as they are.
        view.batch = step(buffer, self.batch_axis, 0)
        view.channel = step(buffer, self.channel_axis, 1 if self.pool.channels_last else view.batch)
        if self.pool.batch == 1:
            view.batch = self.pool.channels * view.channel
        view.row = step(buffer, self.row_axis, view.channel)
        view.col = step(buffer, self.col_axis, 1)
        for i in range(self.pool.leads):
            view.lead[i] = step(buffer, self.lead_axes[i], 0)
        if self.pool.channels_last:
            return view.channel == 1
        return view.col == 1

    cdef int launch(self, Job *job, int threads) except -1:
        cdef size_t stride = self.pool.scratch + 64, nbytes
        cdef size_t *block
        cdef Scratch scratch[MAX_THREADS]
        cdef int i
        threads = <int>imax(1, imin(imin(threads, self.pool.tasks), MAX_THREADS))
        nbytes = 128 + threads * stride
        block = take_scratch(nbytes)
        if block == NULL:
            raise MemoryError(f"fastpool: no memory for {nbytes} bytes of scratch ({threads} threads)")
        for i in range(threads):
            scratch[i].area = <char *>((<uintptr_t>block + 64 + i * stride + 63) // 64 * 64)
            scratch[i].margins = -1
        job.scratch = scratch
        if threads == 1 and self.work < UNLOCK_BYTES:
            run_tasks(job, 1)
        else:
            with nogil:
                run_tasks(job, threads)
        give_scratch(block)
        return 0


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


cdef inline Py_ssize_t step(const Py_buffer *buffer, int axis, Py_ssize_t absent) noexcept:
    """Elements from one index of an axis to the next; `absent` if it is not there or has only one."""
    if axis < 0 or buffer.shape[axis] == 1:
        return absent
    return buffer.strides[axis] // buffer.itemsize


cdef bint nested(const Py_buffer *buffer) noexcept:
    """Does each axis step over all inside it, so that no address is two elements? (Else: not known.)"""
    cdef Py_ssize_t inside = buffer.itemsize
    cdef int axis = buffer.ndim
    while axis > 0:
        axis -= 1
        if buffer.shape[axis] > 1:
            if buffer.strides[axis] < inside:
                return False
            inside = buffer.strides[axis] * (buffer.shape[axis] - 1) + inside
    return True


cdef bint overlap(const Py_buffer *a, const Py_buffer *b) noexcept:
    """May the two share memory? (By bounds: interleaved slices count as sharing.)"""
    cdef Py_ssize_t a_lo, a_hi, b_lo, b_hi
    bounds(a, &a_lo, &a_hi)
    bounds(b, &b_lo, &b_hi)
    return a_lo < b_hi and b_lo < a_hi


cdef void bounds(const Py_buffer *a, Py_ssize_t *lo, Py_ssize_t *hi) noexcept:
    cdef int i
    lo[0] = hi[0] = <Py_ssize_t>a.buf
    hi[0] += a.itemsize
    for i in range(a.ndim):
        if a.shape[i] == 0:
            hi[0] = lo[0]
            return
        if a.strides[i] < 0:
            lo[0] += (a.shape[i] - 1) * a.strides[i]
        else:
            hi[0] += (a.shape[i] - 1) * a.strides[i]


def max_threads():
    """OpenMP's own limit: OMP_NUM_THREADS, or what threadpoolctl set."""
    return openmp.omp_get_max_threads()


def cpu_supports(feature):
    """Does this processor, and the operating system, have an x86 feature that a build was compiled for?"""
    return cpu_has(feature.encode())


VECTOR_BYTES = VEC_BYTES
