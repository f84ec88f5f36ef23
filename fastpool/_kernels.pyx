# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""The compiled module: what kernels/ holds, and the two classes that Python sees.

setup.py builds this one source once per instruction set. kernels/README.md is the map. A pooling
arrives resolved: windows, tiles and chains of passes (from _running/), pointers and strides. The
kernels know no padding modes, rounding or layout names. The loops raise nothing. Making a `Pooling`
copies the work to structs: it allocates them, and raises if the work does not fit. A call allocates
results and scratch, and raises MemoryError if there is none.
"""
from cpython.buffer cimport PyBUF_STRIDES, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_Clear, PyErr_SetString
from cpython.list cimport PyList_CheckExact, PyList_GET_SIZE
from cpython.long cimport PyLong_AsLongAndOverflow, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_SIZE
from cython.parallel cimport prange
from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t,
)
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from fastpool cimport (
    FASTPOOL_ABI_MAJOR, FASTPOOL_ABI_MINOR, FASTPOOL_APART, FASTPOOL_BAD_FLAGS, FASTPOOL_BAD_TASKS,
    FASTPOOL_BAD_THREADS, FASTPOOL_EXTRA_INDICES, FASTPOOL_INDEX_OUTSIDE,
    FASTPOOL_INDICES_ALIGNMENT, FASTPOOL_INDICES_NULL, FASTPOOL_INDICES_STRIDES,
    FASTPOOL_NO_MEMORY, FASTPOOL_OK, FASTPOOL_OVERLAP, FASTPOOL_X_ALIGNMENT, FASTPOOL_X_NULL,
    FASTPOOL_X_STRIDES, FASTPOOL_Y_ALIGNMENT, FASTPOOL_Y_NULL, FASTPOOL_Y_STRIDES,
    fastpool_avg_pool_attributes, fastpool_max_pool_attributes, fastpool_max_unpool_attributes,
    fastpool_plan,
)

import numpy

include "kernels/vectors/declarations.pxi"
include "kernels/frame/geometry.pxi"
include "kernels/frame/structs.pxi"
include "kernels/frame/schedule.pxi"
include "kernels/frame/offsets.pxi"
include "kernels/frame/tiles.pxi"
include "kernels/frame/scratch.pxi"
include "kernels/frame/threads.pxi"
include "kernels/frame/arrays.pxi"
include "kernels/frame/views.pxi"
include "kernels/frame/call_keys.pxi"
include "kernels/frame/tensors.pxi"
include "kernels/maximum/pool.pxi"
include "kernels/maximum/indexing.pxi"
include "kernels/maximum/rows.pxi"
include "kernels/maximum/registers.pxi"
include "kernels/maximum/slide_down.pxi"
include "kernels/maximum/apart.pxi"
include "kernels/maximum/stride_two.pxi"
include "kernels/maximum/whole_plane.pxi"
include "kernels/maximum/flat_planes.pxi"
include "kernels/maximum/key_rows.pxi"
include "kernels/maximum/leading_axes.pxi"
include "kernels/maximum/passes.pxi"
include "kernels/maximum/long_windows.pxi"
include "kernels/maximum/direct_pixels.pxi"
include "kernels/maximum/pixels_as_row.pxi"
include "kernels/maximum/bands.pxi"
include "kernels/maximum/pairs.pxi"
include "kernels/maximum/argmax.pxi"
include "kernels/maximum/sliding_taps.pxi"
include "kernels/maximum/taps.pxi"
include "kernels/maximum/running_maxima.pxi"
include "kernels/maximum/irregular.pxi"
include "kernels/maximum/planes_as_pixels.pxi"
include "kernels/maximum/one_window.pxi"
include "kernels/maximum/whole_pixels.pxi"
include "kernels/maximum/composites.pxi"
include "kernels/maximum/pool_tile.pxi"
include "kernels/maximum/strategies.pxi"
include "kernels/sum/average.pxi"
include "kernels/sum/divide.pxi"
include "kernels/sum/quantize.pxi"
include "kernels/sum/interleaved.pxi"
include "kernels/sum/trees.pxi"
include "kernels/sum/along.pxi"
include "kernels/sum/tall_windows.pxi"
include "kernels/sum/byte_rows.pxi"
include "kernels/sum/window_sums.pxi"
include "kernels/sum/in_order.pxi"
include "kernels/sum/whole_planes.pxi"
include "kernels/sum/pairwise.pxi"
include "kernels/sum/squares.pxi"
include "kernels/sum/digits.pxi"
include "kernels/sum/exact.pxi"
include "kernels/sum/folds.pxi"
include "kernels/sum/tile.pxi"
include "kernels/scatter.pxi"
include "kernels/blocks/blocks.pxi"
include "kernels/blocks/levels.pxi"

cdef enum:
    # Work on fewer bytes, or of fewer additions if they are in order, is done before another thread
    # could take the GIL.
    UNLOCK_BYTES = 16384

cdef bint in_use = False


def use(bint now):
    """Say whether plans run on this build. If not, what was kept for it declines."""
    global in_use
    in_use = now


cdef class Framed:
    """A reduction on the frame, ready to run on arrays of its shapes."""
    cdef Prepared prepared
    cdef object output_shape, index_dtype, threads
    cdef Framed otherwise       # takes arrays that this one does not, or None
    cdef readonly object dtype, result_dtype

    cdef int prepare(self, Frame *frame, work, dtype, result_dtype, threads,
                     int by_default) except -1:
        """Set what a call needs. dtypes are the dtype objects of plain arrays.

        `threads` is called for the number of threads of each `run`. If it is None, they run on one.
        `by_default` is a rule of `fastpool._running.threads`.
        """
        set_arrays(&self.prepared, frame, work)
        limit_scratch(&frame.scratch, work.nbytes)
        self.prepared.by_default = by_default
        self.dtype, self.result_dtype, self.threads = dtype, result_dtype, threads
        self.prepared.y_shift = log2(result_dtype.itemsize)
        self.index_dtype = INT64 if work.index_bytes == 8 else INT32
        self.output_shape = work.output_shape
        return 0

    @property
    def tasks(self):
        """Tiles in all: more threads than this have nothing to do."""
        return self.prepared.frame.tiling.tasks

    @property
    def most_threads(self):
        """Threads that have a task, and memory for their scratch."""
        return most_threads(self.prepared.frame)

    @property
    def scratch_bytes(self):
        """Scratch per thread."""
        return self.prepared.frame.scratch.nbytes

    def pool_apart(self, x, y, z, int threads, /):
        """Pool x into y (and indices into z). The caller knows that they share no memory.

        Return whether the arrays could be used as they are.
        """
        return self.pool_into(x, y, z, threads, True, NULL)

    cdef bint pool_into(self, x, y, z, int threads, bint apart, const void *more) except -1:
        cdef const Prepared *prepared = &self.prepared
        cdef int shift = prepared.shift, y_shift = prepared.y_shift
        cdef int index_shift = prepared.index_shift
        cdef Array arrays[3]
        cdef Job job
        cdef bint fit, with_indices = prepared.with_indices
        job.frame, job.more = prepared.frame, more
        arrays[0].exported = arrays[1].exported = arrays[2].exported = False
        try:
            fit = (read_array(&arrays[0], x, self.dtype, ALIGNED)
                   and read_array(&arrays[1], y, self.result_dtype, ALIGNED | WRITEABLE)
                   and view_array(&job.x, &arrays[0], prepared, prepared.x_shape, shift)
                   and view_array(&job.y, &arrays[1], prepared, prepared.y_shape, y_shift)
                   and (apart or disjoint(&arrays[0], shift, &arrays[1], y_shift)))
            if fit and with_indices:
                fit = (read_array(&arrays[2], z, self.index_dtype, ALIGNED | WRITEABLE)
                       and view_array(&job.z, &arrays[2], prepared, prepared.y_shape, index_shift)
                       and (apart or (disjoint(&arrays[0], shift, &arrays[2], index_shift)
                                      and disjoint(&arrays[1], y_shift, &arrays[2], index_shift))))
            if fit:
                self.run_views(&job, threads)
        finally:
            release_array(&arrays[0])
            release_array(&arrays[1])
            release_array(&arrays[2])
        if not fit and self.otherwise is not None:
            return self.otherwise.pool_into(x, y, z, threads, apart, more)
        return fit

    cdef int run_views(self, Job *job, int threads) except -1:
        """Pool the views of a job."""
        cdef const Prepared *prepared = &self.prepared
        cdef bint enough
        cdef int by_default = prepared.by_default
        cdef Py_ssize_t tasks = prepared.frame.tiling.tasks
        if not tasks:
            return 0
        threads = thread_count(most_threads(prepared.frame), threads, by_default)
        if threads == 1 and prepared.work < UNLOCK_BYTES:
            enough = run_job(job, 0, tasks, 1, AS_GIVEN)
        else:
            with nogil:
                enough = run_job(job, 0, tasks, threads, by_default)
        if not enough:
            raise MemoryError(f"fastpool: no memory for the scratch of {threads} threads, "
                              f"{prepared.frame.scratch.nbytes} bytes each")
        return 0

    def run_tensor(self, capsule, tensor, bint last):
        """Return the result for a tensor, as tensors of its library, axes in the plan's order.

        `capsule` holds that library's functions (kernels/frame/tensors.pxi). If `last`, axis 1 of
        the tensor is the last one of the plan. For a tensor that cannot be used as it is, return
        None.
        """
        cdef const Prepared *prepared = &self.prepared
        cdef const dl_functions *functions
        cdef TensorArray x, y, z
        cdef dl_owned *values = NULL
        cdef dl_owned *places = NULL
        cdef dl_owned *made
        cdef dl_tensor t, index
        cdef bint fit
        cdef Job job
        functions = <const dl_functions *>PyCapsule_GetPointer(capsule, DL_CAPSULE)
        if not in_use or prepared.y_shift != prepared.shift:
            return None
        if not (read_tensor(&t, functions, tensor)
                and set_tensor_array(&x, &t, last, prepared.shift)
                and view_array(&job.x, &x.array, prepared, prepared.x_shape, prepared.shift)):
            return self.otherwise and self.otherwise.run_tensor(capsule, tensor, last)
        job.frame, job.more = prepared.frame, NULL
        try:
            values = make_tensor(&y, functions, &t, prepared.y_shape, prepared.y_shift)
            fit = view_array(&job.y, &y.array, prepared, prepared.y_shape, prepared.y_shift)
            if prepared.with_indices:
                index = t
                index.dtype.code, index.dtype.bits = DL_INT, 8 << prepared.index_shift
                places = make_tensor(&z, functions, &index, prepared.y_shape, prepared.index_shift)
                fit &= view_array(&job.z, &z.array, prepared, prepared.y_shape,
                                  prepared.index_shift)
            if not fit:
                return self.otherwise and self.otherwise.run_tensor(capsule, tensor, last)
            self.run_views(&job, threads_of(self.threads, prepared.by_default))
            made, values = values, NULL
            result = as_tensor(made, functions)
            if not prepared.with_indices:
                return result
            made, places = places, NULL
            return result, as_tensor(made, functions)
        finally:
            if values != NULL:
                values.deleter(values)
            if places != NULL:
                places.deleter(places)


cdef int check_axes(work) except -1:
    windows, shape = work.windows, work.input_shape
    if not 2 <= len(windows) <= MAX_LEADS + 2 or len(shape) > MAX_NDIM:
        raise ValueError(f"{len(windows)} windows over {len(shape)} axes")
    if len(work.output_shape) != len(shape) or len(work.spatial_axes) != len(windows):
        raise ValueError("shapes and axes of different lengths")
    return 0


cdef class Pooling(Framed):
    """A pooling to maxima (`fastpool._running.work.Work`)."""
    cdef Pool pool
    cdef readonly object strategy

    def __cinit__(self, work, dtype, threads=None, by_default=0, Framed otherwise=None):
        check_axes(work)
        plan_maximum(&self.pool, work)
        self.otherwise = otherwise
        self.prepare(&self.pool.frame, work, dtype, dtype, threads, by_default)
        self.strategy = work.strategy

    def __dealloc__(self):
        free_maximum(&self.pool)

    def run(self, x, out, out_indices, /):
        """Return what a plan's call gives, for plain arrays.

        For any others, return None with nothing written.
        """
        cdef bint with_indices = self.prepared.with_indices
        cdef bint apart = out is None and out_indices is None
        if not in_use or (out_indices is not None and not with_indices):
            return None
        y, z = out, out_indices
        if y is None:
            y = empty(self.output_shape, self.dtype)
        if z is None and with_indices:
            z = empty(self.output_shape, self.index_dtype)
        threads = threads_of(self.threads, self.prepared.by_default)
        if not self.pool_into(x, y, z, threads, apart, NULL):
            return None
        return (y, z) if with_indices else y


cdef class Averaging(Framed):
    """An average pooling (`fastpool._running.averages.SumWork`)."""
    cdef Average average
    cdef quantization_t quantization        # of runs from C, if they quantise
    cdef readonly Py_ssize_t table_bytes    # of its reciprocals: a plan that is kept counts them

    def __cinit__(self, work, dtype, result_dtype, threads=None, by_default=0,
                  Averaging otherwise=None):
        check_axes(work)
        plan_average(&self.average, work)
        self.table_bytes = self.average.table_bytes
        self.otherwise = otherwise
        if otherwise is not None:
            self.table_bytes += otherwise.table_bytes
        self.prepare(&self.average.frame, work, dtype, result_dtype, threads, by_default)

    def __dealloc__(self):
        free_average(&self.average)

    def run(self, x, out, /):
        """Return what a plan's call gives, for plain arrays.

        For any others, return None with nothing written.
        """
        return self.run_with(x, out, NULL)

    def quantize(self, x, out, parts, /):
        """Return the quantised means of 8-bit elements, as `run` returns means.

        `parts` are those of a `fastpool._running.quantized.Quantization`.
        """
        cdef quantization_t quantization
        set_quantization(&quantization, parts, self.average.frame.problem.code)
        return self.run_with(x, out, &quantization)

    def quantize_apart(self, parts, x, y, z, int threads, /):
        """`pool_apart`, with means that are quantised. `z` is None."""
        cdef quantization_t quantization
        set_quantization(&quantization, parts, self.average.frame.problem.code)
        return self.pool_into(x, y, z, threads, True, &quantization)

    def quantize_in_c(self, parts):
        """Let all runs from C quantise their means."""
        set_quantization(&self.quantization, parts, self.average.frame.problem.code)
        self.prepared.more = &self.quantization

    cdef run_with(self, x, out, const void *more):
        if not in_use:
            return None
        y = empty(self.output_shape, self.result_dtype) if out is None else out
        threads = threads_of(self.threads, self.prepared.by_default)
        return y if self.pool_into(x, y, None, threads, out is None, more) else None


cdef class Unpooling:
    """A max unpooling of one geometry and element type."""
    cdef Unpool unpool
    cdef Together together
    cdef int ndim
    cdef Py_ssize_t x_shape[MAX_NDIM]
    cdef Py_ssize_t y_shape[MAX_NDIM]
    cdef size_t work
    cdef object output_shape, threads
    cdef readonly object dtype

    def __cinit__(self, work, dtype, threads=None, by_default=0):
        """`work` is a `fastpool._running.work.UnpoolWork`. The rest are those of `Pooling`."""
        cdef Unpool *u = &self.unpool
        if len(work.x_shape) > MAX_NDIM or len(work.output_shape) != len(work.x_shape):
            raise ValueError(f"shapes of {len(work.x_shape)} and {len(work.output_shape)} axes")
        read_fields(&u.batch, work, UNPOOL_FIELDS)
        self.output_shape, self.dtype, self.threads = work.output_shape, dtype, threads
        u.by_default = by_default
        u.itemsize = dtype.itemsize
        u.together = &self.together
        set_together(&self.together, u, u.itemsize)
        self.work = u.batch * u.channels * u.size * u.itemsize
        self.work += u.batch * u.channels * u.count * (u.itemsize + sizeof(int64_t))
        self.ndim = len(work.x_shape)
        read_integers(self.x_shape, work.x_shape, self.ndim)
        read_integers(self.y_shape, work.output_shape, self.ndim)

    def run(self, x, indices, out, /):
        """Return the result, for plain arrays.

        For any others, and if an index is outside, return None with nothing written.
        """
        if not in_use:
            return None
        y = empty(self.output_shape, self.dtype) if out is None else out
        threads = threads_of(self.threads, self.unpool.by_default)
        return y if self.unpool_into(x, indices, y, threads, out is None) == DONE else None

    def unpool_apart(self, x, indices, y, int threads, /):
        """Unpool. The caller knows that the arrays share no memory.

        Return DONE (-1), REFUSED (-2) or CHANGED (-4). If an index is outside, return the flat
        place of the first one, with nothing written.
        """
        return self.unpool_into(x, indices, y, threads, True)

    cdef Py_ssize_t unpool_into(self, x, indices, y, int threads, bint apart) except -3:
        cdef Array arrays[3]
        cdef Unpool u = self.unpool
        cdef int itemsize = u.itemsize
        cdef Py_ssize_t bad = REFUSED
        cdef int index_bytes = 8
        arrays[0].exported = arrays[1].exported = arrays[2].exported = False
        try:
            if not read_array(&arrays[1], indices, INT64, ALIGNED | CONTIGUOUS):
                index_bytes = 4
                if not read_array(&arrays[1], indices, INT32, ALIGNED | CONTIGUOUS):
                    return REFUSED
            if not (read_array(&arrays[0], x, self.dtype, ALIGNED | CONTIGUOUS)
                    and read_array(&arrays[2], y, self.dtype, ALIGNED | CONTIGUOUS | WRITEABLE)
                    and has_shape(&arrays[0], self.ndim, self.x_shape)
                    and has_shape(&arrays[1], self.ndim, self.x_shape)
                    and has_shape(&arrays[2], self.ndim, self.y_shape)):
                return REFUSED
            if not apart and (overlap(&arrays[0], itemsize, &arrays[2], itemsize)
                              or overlap(&arrays[1], index_bytes, &arrays[2], itemsize)):
                return REFUSED
            u.x, u.index.data, u.y = arrays[0].data, arrays[1].data, arrays[2].data
            u.index.bytes = index_bytes
            threads = unpool_thread_count(&u, threads)
            if threads == 1 and self.work < UNLOCK_BYTES:
                return unpool(&u, 1)
            with nogil:
                bad = unpool(&u, threads)
            return bad
        finally:
            release_array(&arrays[0])
            release_array(&arrays[1])
            release_array(&arrays[2])


include "kernels/c_api.pxi"


def max_threads():
    """Return OpenMP's own limit: OMP_NUM_THREADS, or what threadpoolctl set; 1 without OpenMP."""
    return openmp_limit()


def cpu_supports(feature):
    """Return whether the processor and the operating system have an x86 feature of a build."""
    return cpu_has(feature.encode())


def enter_usual_floats():
    """Let this thread round to nearest and keep subnormal numbers; return its state before.

    It is for NumPy's arithmetic: a thread may have been told otherwise, as by -ffast-math.
    """
    cdef fp_state state
    fp_enter(&state)
    return <bytes>(<char *>&state)[:sizeof(state)]


def leave_usual_floats(bytes state, /):
    """Restore the state that `enter_usual_floats` returned."""
    if len(state) != sizeof(fp_state):
        raise ValueError("not a state")
    fp_leave(<const fp_state *><const char *>state)


def paused():
    """Say why calls on the default number of threads stay serial now, and for how long.

    Return the seconds that are left, and how many a call lost of how many that it took. These are
    0 if two calls met. If no pause is on, return None.
    """
    cdef int64_t left = load_relaxed(&pause.until) - wall_ns()
    return (left / 1e9, pause.lost / 1e9, pause.took / 1e9) if left > 0 else None


def trust_flags(bint known):
    """Say whether arithmetic sets floating-point flags, and return what held so far.

    Under valgrind it sets none. To count the instructions of other runs, trust them all the same.
    """
    global fp_sets_flags
    before, fp_sets_flags = fp_sets_flags, known
    return before


fp_detect_flags()
VECTOR_BYTES = VEC_BYTES
MASKS = bool(VEC_MASKS)
OPENMP = bool(HAS_OPENMP)
ELEMENT_BYTES = {name: dtype_bytes[<int>code] for name, code in CODES.items()}
CHANGED_INDICES = CHANGED
