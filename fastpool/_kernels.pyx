# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled module: what kernels/ holds, and the two classes that Python sees.

setup.py builds this one source once per instruction set. kernels/README.md is the map. A pooling
arrives resolved: windows, tiles and chains of passes (from _schedule.py), pointers and strides. The
kernels know no padding modes, rounding or layout names. They raise nothing, and they allocate scratch
and results only.
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

cdef extern from "fastpool.h":
    ctypedef struct fastpool_functions:
        int major, minor
        int (*plan_from)(fastpool_plan *, size_t, object) except -1
        int (*plan_max_pool)(fastpool_plan *, size_t, const fastpool_max_pool_attributes *, size_t) except -1
        int (*plan_max_unpool)(fastpool_plan *, size_t, const fastpool_max_unpool_attributes *, size_t) except -1

include "kernels/vectors/declarations.pxi"
include "kernels/frame/geometry.pxi"
include "kernels/frame/structs.pxi"
include "kernels/frame/offsets.pxi"
include "kernels/frame/tiles.pxi"
include "kernels/maximum/rows.pxi"
include "kernels/maximum/registers.pxi"
include "kernels/maximum/slide_down.pxi"
include "kernels/maximum/apart.pxi"
include "kernels/maximum/stride_two.pxi"
include "kernels/maximum/whole_plane.pxi"
include "kernels/maximum/flat_planes.pxi"
include "kernels/maximum/padded_planes.pxi"
include "kernels/maximum/key_rows.pxi"
include "kernels/maximum/long_windows.pxi"
include "kernels/maximum/leading_axes.pxi"
include "kernels/maximum/passes.pxi"
include "kernels/maximum/direct_pixels.pxi"
include "kernels/maximum/pixels_as_row.pxi"
include "kernels/maximum/bands.pxi"
include "kernels/maximum/pairs.pxi"
include "kernels/maximum/taps.pxi"
include "kernels/maximum/running_maxima.pxi"
include "kernels/maximum/strategies.pxi"
include "kernels/maximum/tiles.pxi"
include "kernels/frame/scratch.pxi"
include "kernels/frame/threads.pxi"
include "kernels/frame/arrays.pxi"
include "kernels/frame/views.pxi"
include "kernels/frame/call_keys.pxi"
include "kernels/scatter.pxi"


cdef bint in_use = False


def use(bint now):
    """Is this the build that plans run on? What was kept for another one declines."""
    global in_use
    in_use = now


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
        p.channels_last, p.direct, p.pixels_as_row = schedule.channels_last, schedule.direct, schedule.folded
        p.with_indices, p.keyed = schedule.return_indices, schedule.keyed
        p.code = CODES[schedule.dtype]
        p.size = dtype_bytes[p.code]
        p.key_bytes = schedule.lane_bytes
        p.rule = (NAN_IGNORE if schedule.nan == "ignore" else 0) | (ZEROS_EQUAL if p.with_indices else 0)
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
        p.strategy = choose_strategy(p)
        if p.strategy == FLAT_PLANES:
            p.flat_masks = <byte_mask *>malloc(p.flat_period * (p.flat_taps + 1) * sizeof(byte_mask))
            if p.flat_masks == NULL:
                raise MemoryError("fastpool: no memory for masks")
            fill_flat_masks(p)
        plan_scratch(p)
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
        """How its tiles are pooled: the name of a Strategy. With indices "taps", or "bands" for passes over with_indices."""
        return STRATEGY_NAMES[<int>self.prepared.pool.strategy]

    @property
    def scratch_bytes(self):
        """Scratch per thread."""
        return self.prepared.pool.scratch

    def run(self, x, out, out_indices):
        """What a plan's call gives, for plain arrays. None, with nothing written, for any other."""
        cdef bint with_indices = self.prepared.pool.with_indices
        if not in_use or (out_indices is not None and not with_indices):
            return None
        y, z = out, out_indices
        if y is None:
            y = empty(self.output_shape, self.dtype)
        if z is None and with_indices:
            z = empty(self.output_shape, self.index_dtype)
        if not self.pool_into(x, y, z, 1 if self.threads is None else self.threads(), out is None and out_indices is None):
            return None
        return (y, z) if with_indices else y

    def pool_apart(self, x, y, z, int threads):
        """Pool x into y (and indices into z) where the caller knows that no memory is shared. Returns whether it could."""
        return self.pool_into(x, y, z, threads, True)

    cdef bint pool_into(self, x, y, z, int threads, bint apart) except -1:
        cdef const Prepared *prepared = &self.prepared
        cdef Array arrays[3]
        cdef Job job
        cdef bint fit, enough, with_indices = prepared.pool.with_indices
        job.pool = &self.prepared.pool
        arrays[0].exported = arrays[1].exported = arrays[2].exported = False
        try:
            fit = (read_array(&arrays[0], x, self.dtype, ALIGNED) and read_array(&arrays[1], y, self.dtype, ALIGNED | WRITEABLE)
                   and view_array(&job.x, &arrays[0], prepared, prepared.x_shape, prepared.shift)
                   and view_array(&job.y, &arrays[1], prepared, prepared.y_shape, prepared.shift)
                   and (apart or disjoint(&arrays[0], prepared.shift, &arrays[1], prepared.shift)))
            if fit and with_indices:
                fit = (read_array(&arrays[2], z, self.index_dtype, ALIGNED | WRITEABLE)
                       and view_array(&job.z, &arrays[2], prepared, prepared.y_shape, prepared.index_shift)
                       and (apart or (disjoint(&arrays[0], prepared.shift, &arrays[2], prepared.index_shift)
                                      and disjoint(&arrays[1], prepared.shift, &arrays[2], prepared.index_shift))))
            if fit and prepared.pool.tasks:
                threads = thread_count(&prepared.pool, threads)
                if threads == 1 and prepared.work < UNLOCK_BYTES:
                    enough = run_job(&job, 1)
                else:
                    with nogil:
                        enough = run_job(&job, threads)
                if not enough:
                    raise MemoryError(f"fastpool: no memory for the scratch of {threads} threads, {prepared.pool.scratch} bytes each")
        finally:
            release_array(&arrays[0])
            release_array(&arrays[1])
            release_array(&arrays[2])
        return fit


cdef class Unpooling:
    """A max unpooling of one geometry and element type."""
    cdef Unpool unpool
    cdef int ndim, itemsize
    cdef Py_ssize_t x_shape[MAX_NDIM]
    cdef Py_ssize_t y_shape[MAX_NDIM]
    cdef size_t work
    cdef object output_shape, threads
    cdef readonly object dtype

    def __cinit__(self, x_shape, output_shape, Py_ssize_t batch, Py_ssize_t channels, Py_ssize_t count, Py_ssize_t size,
                  Py_ssize_t counted, bint channels_last, bint physical, dtype, threads=None):
        """`count` values of each plane go among `size` elements, by indices that count through `counted` planes;
        `dtype` and `threads` as for `Pooling`."""
        cdef Unpool *u = &self.unpool
        cdef int i
        if len(x_shape) > MAX_NDIM or len(output_shape) != len(x_shape):
            raise ValueError(f"shapes of {len(x_shape)} and {len(output_shape)} axes")
        u.batch, u.channels, u.count, u.size = batch, channels, count, size
        u.counted, u.channels_last, u.physical = counted, channels_last, physical
        self.output_shape, self.dtype, self.threads = output_shape, dtype, threads
        self.itemsize = dtype.itemsize
        self.work = batch * channels * (count * (self.itemsize + sizeof(int64_t)) + size * self.itemsize)
        self.ndim = len(x_shape)
        for i in range(self.ndim):
            self.x_shape[i], self.y_shape[i] = x_shape[i], output_shape[i]

    def run(self, x, indices, out):
        """The result, for plain arrays. None, with nothing written, for any other, and if an index is outside."""
        if not in_use:
            return None
        y = empty(self.output_shape, self.dtype) if out is None else out
        threads = 1 if self.threads is None else self.threads()
        return y if self.unpool_into(x, indices, y, threads, out is None) == DONE else None

    def unpool_apart(self, x, indices, y, int threads):
        """Unpool where the caller knows that no memory is shared. Returns DONE (-1), the flat place of the first index
        outside, with nothing written, REFUSED (-2) or CHANGED (-4)."""
        return self.unpool_into(x, indices, y, threads, True)

    cdef Py_ssize_t unpool_into(self, x, indices, y, int threads, bint apart) except -3:
        cdef Array arrays[3]
        cdef Unpool u = self.unpool
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
                    and has_shape(&arrays[0], self.ndim, self.x_shape) and has_shape(&arrays[1], self.ndim, self.x_shape)
                    and has_shape(&arrays[2], self.ndim, self.y_shape)):
                return REFUSED
            if not apart and (overlap(&arrays[0], self.itemsize, &arrays[2], self.itemsize)
                              or overlap(&arrays[1], index_bytes, &arrays[2], self.itemsize)):
                return REFUSED
            u.x, u.index, u.y = arrays[0].data, arrays[1].data, arrays[2].data
            threads = unpool_thread_count(&u, threads)
            if threads == 1 and self.work < UNLOCK_BYTES:
                return unpool_any(&u, self.itemsize, index_bytes, 1)
            with nogil:
                bad = unpool_any(&u, self.itemsize, index_bytes, threads)
            return bad
        finally:
            release_array(&arrays[0])
            release_array(&arrays[1])
            release_array(&arrays[2])


include "kernels/c_api.pxi"


def max_threads():
    """OpenMP's own limit: OMP_NUM_THREADS, or what threadpoolctl set."""
    return openmp.omp_get_max_threads()


def cpu_supports(feature):
    """Does this processor, and the operating system, have an x86 feature that a build was compiled for?"""
    return cpu_has(feature.encode())


VECTOR_BYTES = VEC_BYTES
CHANGED_INDICES = CHANGED
