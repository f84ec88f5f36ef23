# Declarations for Cython: `from fastpool cimport ...`. include/fastpool.h documents them. Compile
# modules with include_dirs=[fastpool.get_include()].

from libc.stdint cimport int64_t, uint32_t

cdef extern from "fastpool.h" nogil:
    const int FASTPOOL_ABI_MAJOR, FASTPOOL_ABI_MINOR
    const unsigned int FASTPOOL_APART

    enum fastpool_error:
        FASTPOOL_OK
        FASTPOOL_BAD_PLAN
        FASTPOOL_BAD_THREADS
        FASTPOOL_BAD_FLAGS
        FASTPOOL_NO_MEMORY
        FASTPOOL_OVERLAP
        FASTPOOL_INDEX_OUTSIDE
        FASTPOOL_EXTRA_INDICES
        FASTPOOL_BAD_TASKS
        FASTPOOL_X_NULL
        FASTPOOL_Y_NULL
        FASTPOOL_INDICES_NULL
        FASTPOOL_X_ALIGNMENT
        FASTPOOL_Y_ALIGNMENT
        FASTPOOL_INDICES_ALIGNMENT
        FASTPOOL_X_STRIDES
        FASTPOOL_Y_STRIDES
        FASTPOOL_INDICES_STRIDES

    ctypedef struct fastpool_plan:
        uint32_t abi, size
        int ndim, num_threads
        const Py_ssize_t *input_shape
        const Py_ssize_t *output_shape
        size_t itemsize, index_itemsize, input_bytes, output_bytes, indices_bytes
        # Private to the library.
        int (*max_pool)(const fastpool_plan *, const void *, const Py_ssize_t *, void *,
                        const Py_ssize_t *, void *, const Py_ssize_t *, int, unsigned int) noexcept
        int (*max_unpool)(const fastpool_plan *, const void *, const void *, void *, int,
                          unsigned int) noexcept
        const void *compiled
        void *owner

        size_t output_itemsize
        # Private to the library.
        int (*avg_pool)(const fastpool_plan *, const void *, const Py_ssize_t *, void *,
                        const Py_ssize_t *, void *, const Py_ssize_t *, int, unsigned int) noexcept

        size_t tasks
        # Private to the library.
        int (*run_tasks)(const fastpool_plan *, const void *, void *, void *, size_t,
                         size_t) noexcept

    int fastpool_max_pool(const fastpool_plan *plan, const void *x, const Py_ssize_t *x_strides,
                          void *y, const Py_ssize_t *y_strides, void *indices,
                          const Py_ssize_t *indices_strides, int num_threads,
                          unsigned int flags) noexcept
    int fastpool_max_unpool(const fastpool_plan *plan, const void *x, const void *indices, void *y,
                            int num_threads, unsigned int flags) noexcept
    int fastpool_avg_pool(const fastpool_plan *plan, const void *x, const Py_ssize_t *x_strides,
                          void *y, const Py_ssize_t *y_strides, int num_threads,
                          unsigned int flags) noexcept
    int fastpool_run_tasks(const fastpool_plan *plan, const void *x, void *y, void *indices,
                           size_t first, size_t stop) noexcept
    const char *fastpool_error_text(int code) noexcept

    ctypedef struct fastpool_max_pool_attributes:
        const Py_ssize_t *input_shape
        int ndim
        const char *dtype
        const Py_ssize_t *kernel_shape
        const Py_ssize_t *strides
        const Py_ssize_t *pads
        const Py_ssize_t *dilations
        const char *auto_pad
        const char *ceil_rule
        const char *layout
        const char *nan
        const char *index_dtype
        const char *index_layout
        int ceil_mode, return_indices, storage_order, index_axis, num_threads
        size_t minimum

    ctypedef struct fastpool_max_unpool_attributes:
        const Py_ssize_t *input_shape
        int ndim
        const char *dtype
        const Py_ssize_t *kernel_shape
        const Py_ssize_t *strides
        const Py_ssize_t *pads
        const Py_ssize_t *output_shape
        const char *layout
        const char *index_space
        const char *index_dtype
        const char *index_layout
        int index_axis, num_threads

    ctypedef struct fastpool_avg_pool_attributes:
        const Py_ssize_t *input_shape
        int ndim
        const char *dtype
        const Py_ssize_t *output_size
        const Py_ssize_t *kernel_shape
        const Py_ssize_t *strides
        const Py_ssize_t *pads
        const Py_ssize_t *dilations
        const char *auto_pad
        const char *ceil_rule
        const char *beyond
        int ceil_mode, count_include_pad
        int64_t divisor
        const char *result_dtype
        const char *rounding
        const char *numerics
        const char *nan
        const char *layout
        int num_threads

cdef extern from "fastpool.h":
    int fastpool_import() except -1
    int fastpool_plan_from(fastpool_plan *plan, object python_plan) except -1
    int fastpool_plan_max_pool(fastpool_plan *plan,
                               const fastpool_max_pool_attributes *attributes) except -1
    int fastpool_plan_max_unpool(fastpool_plan *plan,
                                 const fastpool_max_unpool_attributes *attributes) except -1
    int fastpool_plan_avg_pool(fastpool_plan *plan,
                               const fastpool_avg_pool_attributes *attributes) except -1
    void fastpool_plan_release(fastpool_plan *plan) noexcept
