# cython: language_level=3, boundscheck=False
# cython: freethreading_compatible=True
"""Keep what is the largest in its neighbourhood, and make the rest zero."""

from libc.stdint cimport int64_t
from libc.string cimport memset

from fastpool cimport (
    fastpool_error_text, fastpool_max_pool, fastpool_max_unpool, fastpool_max_unpool_attributes,
    fastpool_plan, fastpool_plan_from, fastpool_plan_max_unpool, fastpool_plan_release,
)

import fastpool
import numpy


cdef class Peaks:
    """Of images of one shape, in blocks of `block` x `block`."""
    cdef fastpool_plan pool, unpool
    cdef float[:, ::1] maxima
    cdef int64_t[:, ::1] places

    def __cinit__(self, shape, Py_ssize_t block):
        cdef fastpool_max_unpool_attributes back
        cdef Py_ssize_t[2] window = [block, block]
        plan = fastpool.plan_max_pool(
            shape, "float32", block, strides=block, layout="HW", return_indices=True
        )
        fastpool_plan_from(&self.pool, plan)
        self.maxima = numpy.empty(plan.output_shape, numpy.float32)
        self.places = numpy.empty(plan.output_shape, numpy.int64)
        memset(&back, 0, sizeof(back))      # the default of everything
        back.ndim, back.dtype, back.layout = 2, b"float32", b"HW"
        back.input_shape, back.output_shape = self.pool.output_shape, self.pool.input_shape
        back.kernel_shape = back.strides = window
        fastpool_plan_max_unpool(&self.unpool, &back)

    def __dealloc__(self):
        fastpool_plan_release(&self.pool)
        fastpool_plan_release(&self.unpool)

    cdef int keep(self, const float[:, :] x, float[:, ::1] y) noexcept nogil:
        cdef int code = fastpool_max_pool(
            &self.pool, &x[0, 0], x.strides, &self.maxima[0, 0], NULL,
            &self.places[0, 0], NULL, 0, 0,
        )
        if code:
            return code
        return fastpool_max_unpool(
            &self.unpool, &self.maxima[0, 0], &self.places[0, 0], &y[0, 0], 0, 0
        )

    def __call__(self, const float[:, :] x, float[:, ::1] y):
        """Write the peaks of x into y."""
        cdef int axis, code
        for axis in range(2):
            if not x.shape[axis] == y.shape[axis] == self.pool.input_shape[axis]:
                raise ValueError(f"expected images of another shape, got {x.shape} and {y.shape}")
        with nogil:
            code = self.keep(x, y)
        if code:
            raise ValueError(fastpool_error_text(code).decode())
