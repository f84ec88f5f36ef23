# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: freethreading_compatible=True
"""A reduction that is no maximum, on the frame that all reductions share.

It counts the elements under each window that are not 0. Nothing of kernels/maximum/ is included, so
this stops to compile if the frame needs it.
"""
# What is included uses these names.
from cpython.buffer cimport PyBUF_STRIDES, PyBuffer_Release, PyObject_GetBuffer  # no-cython-lint
from cpython.object cimport PyObject  # no-cython-lint
from cython.parallel cimport prange  # no-cython-lint
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t  # no-cython-lint
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t  # no-cython-lint
from libc.stdlib cimport free, malloc  # no-cython-lint
from libc.string cimport memcpy, memset  # no-cython-lint

import numpy  # no-cython-lint

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

cdef enum Area:
    COLUMNS                 # of each output column: its first element, and how many there are
    AREAS


cdef Py_ssize_t count_window(const Problem *p, const View *x, const int32_t *src,
                             const Py_ssize_t *leads, Py_ssize_t slabs, Py_ssize_t rows,
                             Py_ssize_t cols) noexcept nogil:
    """Count what is not 0 in a window of `rows` x `cols` elements in each of its slabs."""
    cdef Py_ssize_t found = 0, s, r, c
    cdef const int32_t *slab
    for s in range(slabs):
        slab = src + lead_offset(p, x.lead, leads, s)
        for r in range(rows):
            for c in range(cols):
                found += slab[r * p.rows.dilation * x.row + c * p.cols.dilation * x.col] != 0
    return found


cdef void count_task(Job *job, Py_ssize_t task, Scratch *scratch) noexcept nogil:
    cdef const Frame *frame = job.frame
    cdef const Problem *p = &frame.problem
    cdef const View *x = &job.x
    cdef const View *y = &job.y
    cdef Py_ssize_t leads[MAX_LEADS]
    cdef Py_ssize_t *columns = <Py_ssize_t *>frame_area(frame, scratch.area, COLUMNS)
    cdef Py_ssize_t first, slabs, plane, r, c, i, rows, row, at
    cdef const int32_t *src
    cdef int32_t *dst
    cdef Tile tile
    tile_of(&tile, frame, task)
    slabs = lead_taps(p, x, tile.lead, leads, &first)
    for c in range(tile.cols):
        columns[2 * c + 1] = real_taps(&p.cols, tile.col + c, &columns[2 * c])
    for plane in range(tile.planes):
        src = <const int32_t *>x.data + input_offset(p, x, &tile, plane) + first
        dst = <int32_t *>y.data + output_offset(p, y, &tile, plane)
        for r in range(tile.rows):
            rows = real_taps(&p.rows, tile.row + r, &row)
            for c in range(tile.cols):
                at = (row - tile.row_lo) * x.row + (columns[2 * c] - tile.col_lo) * x.col
                for i in range(tile.channels):
                    dst[r * y.row + c * y.col + i] = <int32_t>count_window(
                        p, x, src + at + i, leads, slabs, rows, columns[2 * c + 1])


cdef class Counting:
    """A count, ready to run on int32 arrays."""
    cdef Frame frame
    cdef Prepared prepared

    def __cinit__(self, schedule):
        cdef Py_ssize_t sizes[AREAS]
        set_frame(&self.frame, schedule)
        self.frame.run = count_task
        sizes[<int>COLUMNS] = 2 * self.frame.tiling.cols * sizeof(Py_ssize_t)
        lay_out_scratch(&self.frame.scratch, sizes, AREAS)
        set_arrays(&self.prepared, &self.frame, schedule)

    def __dealloc__(self):
        free_frame(&self.frame)

    @property
    def tasks(self):
        return self.frame.tiling.tasks

    def run(self, x, y, int threads):
        """Count in x. Return whether the arrays could be read as they are."""
        cdef const Prepared *prepared = &self.prepared
        cdef Array arrays[2]
        cdef Job job
        job.frame, job.more = prepared.frame, NULL
        arrays[0].exported = arrays[1].exported = False
        try:
            if not (read_array(&arrays[0], x, INT32, ALIGNED)
                    and read_array(&arrays[1], y, INT32, ALIGNED | WRITEABLE)
                    and view_array(&job.x, &arrays[0], prepared, prepared.x_shape, prepared.shift)
                    and view_array(&job.y, &arrays[1], prepared, prepared.y_shape,
                                   prepared.shift)):
                return False
            with nogil:
                threads = thread_count(most_threads(&self.frame), threads, AS_GIVEN)
                run_job(&job, 0, self.frame.tiling.tasks, threads, AS_GIVEN)
            return True
        finally:
            release_array(&arrays[0])
            release_array(&arrays[1])
