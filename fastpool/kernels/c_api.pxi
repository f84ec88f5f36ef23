# What include/fastpool.h gives to callers from C and Cython.
#
# Some functions run a plan on addresses, without the GIL. The others make plans, with the GIL.
# fastpool/_running/capi.py is the part of them that needs no C.

cdef extern from "fastpool.h":
    ctypedef struct fastpool_functions:
        int major, minor
        int (*plan_from)(fastpool_plan *, size_t, object) except -1
        int (*plan_max_pool)(
            fastpool_plan *, size_t, const fastpool_max_pool_attributes *, size_t) except -1
        int (*plan_max_unpool)(
            fastpool_plan *, size_t, const fastpool_max_unpool_attributes *, size_t) except -1
        int (*plan_avg_pool)(
            fastpool_plan *, size_t, const fastpool_avg_pool_attributes *, size_t) except -1

# In a child made by fork the threads of OpenMP are gone, and gcc's runtime waits for them
# (fastpool/_running/threads.py).
cdef bint forked = False


cdef void after_fork() noexcept nogil:
    global forked
    forked = True


call_in_child(after_fork)


# ---------------------------------------------------------------------------------------- running

cdef int threads_of_run(const fastpool_plan *plan, int threads) noexcept nogil:
    if forked:
        return 1
    return threads if threads else plan.num_threads


cdef int check_pointers(const fastpool_plan *plan, const void *x, const void *y,
                        size_t y_itemsize, const void *indices, int threads,
                        unsigned int flags) noexcept nogil:
    """Return FASTPOOL_OK or what is wrong. An array without elements may be at any address.

    `y_itemsize` is an argument because a plan of ABI 1.0 has no field for it.
    """
    if threads < 0:
        return FASTPOOL_BAD_THREADS
    if flags & ~FASTPOOL_APART:
        return FASTPOOL_BAD_FLAGS
    if x == NULL and plan.input_bytes:
        return FASTPOOL_X_NULL
    if y == NULL and plan.output_bytes:
        return FASTPOOL_Y_NULL
    if indices == NULL and plan.indices_bytes:
        return FASTPOOL_INDICES_NULL
    if indices != NULL and not plan.index_itemsize:
        return FASTPOOL_EXTRA_INDICES
    # (of arrays without elements, no address is used)
    if plan.input_bytes and <uintptr_t>x & (plan.itemsize - 1):
        return FASTPOOL_X_ALIGNMENT
    if plan.output_bytes and <uintptr_t>y & (y_itemsize - 1):
        return FASTPOOL_Y_ALIGNMENT
    if plan.indices_bytes and <uintptr_t>indices & (plan.index_itemsize - 1):
        return FASTPOOL_INDICES_ALIGNMENT
    return FASTPOOL_OK


cdef void describe(Array *array, const void *data, int ndim, const Py_ssize_t *shape,
                   const Py_ssize_t *strides, Py_ssize_t *dense,
                   Py_ssize_t itemsize) noexcept nogil:
    """Set an array. If it has no strides, it is C-contiguous, and `dense` gets its strides."""
    cdef int axis = ndim
    array.data, array.ndim, array.shape, array.strides = <char *>data, ndim, shape, strides
    if strides == NULL:
        array.strides = dense
        while axis > 0:
            axis -= 1
            dense[axis] = itemsize
            itemsize *= shape[axis]


cdef int run_pool(const fastpool_plan *plan, const void *x, const Py_ssize_t *x_strides, void *y,
                  const Py_ssize_t *y_strides, void *indices, const Py_ssize_t *indices_strides,
                  int threads, unsigned int flags) noexcept nogil:
    """Pool to maxima or averages: the frame of the plan has the loops."""
    return run_part(plan, x, x_strides, y, y_strides, indices, indices_strides, threads, flags, 0,
                    (<Prepared *>plan.compiled).frame.tiling.tasks)


cdef int run_some_tasks(const fastpool_plan *plan, const void *x, void *y, void *indices,
                        size_t first, size_t stop) noexcept nogil:
    """Run some tasks of a pooling on the calling thread."""
    if first > stop or stop > plan.tasks:
        return FASTPOOL_BAD_TASKS
    return run_part(plan, x, NULL, y, NULL, indices, NULL, 1, FASTPOOL_APART, first, stop)


cdef int run_part(const fastpool_plan *plan, const void *x, const Py_ssize_t *x_strides, void *y,
                  const Py_ssize_t *y_strides, void *indices, const Py_ssize_t *indices_strides,
                  int threads, unsigned int flags, Py_ssize_t first,
                  Py_ssize_t stop) noexcept nogil:
    cdef Prepared *prepared = <Prepared *>plan.compiled
    cdef int ndim = prepared.ndim, shift = prepared.shift, y_shift = prepared.y_shift
    cdef int index_shift = prepared.index_shift
    cdef Py_ssize_t y_itemsize = <Py_ssize_t>1 << y_shift
    cdef bint check = not flags & FASTPOOL_APART
    cdef int by_default = 0 if threads else prepared.by_default
    cdef Array arrays[3]
    cdef Py_ssize_t dense[3][MAX_NDIM]
    cdef Job job
    cdef int code = check_pointers(plan, x, y, y_itemsize, indices, threads, flags)
    if code or first == stop:
        return code
    job.frame, job.more = prepared.frame, prepared.more
    describe(&arrays[0], x, ndim, prepared.x_shape, x_strides, dense[0], plan.itemsize)
    describe(&arrays[1], y, ndim, prepared.y_shape, y_strides, dense[1], y_itemsize)
    if not view_array(&job.x, &arrays[0], prepared, prepared.x_shape, shift):
        return FASTPOOL_X_STRIDES
    if not view_array(&job.y, &arrays[1], prepared, prepared.y_shape, y_shift):
        return FASTPOOL_Y_STRIDES
    if check and not disjoint(&arrays[0], shift, &arrays[1], y_shift):
        return FASTPOOL_OVERLAP
    if prepared.with_indices:
        describe(&arrays[2], indices, ndim, prepared.y_shape, indices_strides, dense[2],
                 plan.index_itemsize)
        if not view_array(&job.z, &arrays[2], prepared, prepared.y_shape, index_shift):
            return FASTPOOL_INDICES_STRIDES
        if check and not (disjoint(&arrays[0], shift, &arrays[2], index_shift)
                          and disjoint(&arrays[1], y_shift, &arrays[2], index_shift)):
            return FASTPOOL_OVERLAP
    threads = thread_count(most_threads(prepared.frame), threads_of_run(plan, threads), by_default)
    if not run_job(&job, first, stop, threads, by_default):
        return FASTPOOL_NO_MEMORY
    return FASTPOOL_OK


cdef bint dense_overlap(const void *a, size_t a_bytes, const void *b,
                        size_t b_bytes) noexcept nogil:
    """Do two contiguous arrays share memory?"""
    if not a_bytes or not b_bytes:
        return False
    return <uintptr_t>a < <uintptr_t>b + b_bytes and <uintptr_t>b < <uintptr_t>a + a_bytes


cdef int run_max_unpool(const fastpool_plan *plan, const void *x, const void *indices, void *y,
                        int threads, unsigned int flags) noexcept nogil:
    cdef Unpool u = (<const Unpool *>plan.compiled)[0]
    cdef int code = check_pointers(plan, x, y, plan.itemsize, indices, threads, flags)
    if code:
        return code
    if not flags & FASTPOOL_APART and (dense_overlap(x, plan.input_bytes, y, plan.output_bytes)
                                       or dense_overlap(indices, plan.indices_bytes, y,
                                                        plan.output_bytes)):
        return FASTPOOL_OVERLAP
    u.x, u.index.data, u.y = <const char *>x, <const char *>indices, <char *>y
    u.index.bytes = <int>plan.index_itemsize
    u.by_default = 0 if threads else u.by_default
    threads = unpool_thread_count(&u, threads_of_run(plan, threads))
    if unpool(&u, threads) != DONE:
        return FASTPOOL_INDEX_OUTSIDE
    return FASTPOOL_OK


# ----------------------------------------------------------------------------------- making plans

cdef size_t bytes_of(const Py_ssize_t *shape, int ndim, size_t itemsize) noexcept:
    cdef int axis
    for axis in range(ndim):
        itemsize *= shape[axis]
    return itemsize


cdef void finish_plan(uintptr_t address, size_t size, fastpool_plan *plan, owner):
    """Complete a plan, and copy as much of it as the caller's struct holds.

    The plan keeps a reference to its owner.
    """
    plan.abi = <uint32_t>(FASTPOOL_ABI_MAJOR << 16 | FASTPOOL_ABI_MINOR)
    plan.size = <uint32_t>imin(size, sizeof(fastpool_plan))
    plan.input_bytes = bytes_of(plan.input_shape, plan.ndim, plan.itemsize)
    plan.output_bytes = bytes_of(plan.output_shape, plan.ndim, plan.output_itemsize)
    Py_INCREF(owner)
    plan.owner = <void *>owner
    memcpy(<void *>address, plan, plan.size)


def fill_pool(Framed framed, uintptr_t address, size_t size, int threads, /):
    """Write the plan of a pooling into a C struct. `threads` is the default of its runs."""
    cdef fastpool_plan plan
    cdef Prepared *prepared = &framed.prepared
    memset(&plan, 0, sizeof(plan))
    plan.ndim, plan.num_threads = prepared.ndim, threads
    plan.input_shape, plan.output_shape = prepared.x_shape, prepared.y_shape
    plan.itemsize, plan.output_itemsize = 1 << prepared.shift, 1 << prepared.y_shift
    if prepared.with_indices:
        plan.index_itemsize = 1 << prepared.index_shift
        plan.indices_bytes = bytes_of(plan.output_shape, plan.ndim, plan.index_itemsize)
    plan.compiled, plan.run_tasks = prepared, run_some_tasks
    plan.tasks = prepared.frame.tiling.tasks
    if isinstance(framed, Averaging):
        plan.avg_pool = run_pool
    else:
        plan.max_pool = run_pool
    finish_plan(address, size, &plan, framed)


def fill_max_unpool(Unpooling unpooling, uintptr_t address, size_t size, int threads,
                    int index_itemsize):
    """Write the plan of an unpooling into a C struct. `threads` is the default of its runs."""
    cdef fastpool_plan plan
    memset(&plan, 0, sizeof(plan))
    plan.ndim, plan.num_threads = unpooling.ndim, threads
    plan.input_shape, plan.output_shape = unpooling.x_shape, unpooling.y_shape
    plan.itemsize = plan.output_itemsize = unpooling.unpool.itemsize
    plan.index_itemsize = index_itemsize
    plan.indices_bytes = bytes_of(plan.input_shape, plan.ndim, plan.index_itemsize)
    plan.max_unpool, plan.compiled = run_max_unpool, &unpooling.unpool
    finish_plan(address, size, &plan, unpooling)


cdef tuple numbers(const Py_ssize_t *values, Py_ssize_t count):
    """Return a tuple. If there are no values, return None, which stands for the default."""
    return None if values == NULL else tuple([values[i] for i in range(count)])


cdef str text(const char *value):
    return None if value == NULL else value.decode()


cdef int plan_from(fastpool_plan *plan, size_t size, python_plan) except -1:
    makers.from_plan(python_plan, <uintptr_t>plan, size)
    return 0


cdef int plan_max_pool(fastpool_plan *plan, size_t size,
                       const fastpool_max_pool_attributes *given,
                       size_t given_size) except -1:
    cdef fastpool_max_pool_attributes a
    memset(&a, 0, sizeof(a))
    memcpy(&a, given, imin(given_size, sizeof(a)))
    shape, layout = numbers(a.input_shape, a.ndim), text(a.layout)
    count = makers.pooled_axes(shape, layout)
    makers.max_pool(
        *(<uintptr_t>plan, size, shape, text(a.dtype), numbers(a.kernel_shape, count)),
        minimum=a.minimum, strides=numbers(a.strides, count), pads=numbers(a.pads, 2 * count),
        dilations=numbers(a.dilations, count), auto_pad=text(a.auto_pad), ceil_mode=a.ceil_mode,
        ceil_rule=text(a.ceil_rule), layout=layout, nan=text(a.nan),
        return_indices=a.return_indices != 0, storage_order=a.storage_order,
        index_axis=a.index_axis, index_dtype=text(a.index_dtype),
        index_layout=text(a.index_layout), num_threads=a.num_threads or None,
    )
    return 0


cdef int plan_max_unpool(fastpool_plan *plan, size_t size,
                         const fastpool_max_unpool_attributes *given,
                         size_t given_size) except -1:
    cdef fastpool_max_unpool_attributes a
    memset(&a, 0, sizeof(a))
    memcpy(&a, given, imin(given_size, sizeof(a)))
    shape, layout = numbers(a.input_shape, a.ndim), text(a.layout)
    count = makers.pooled_axes(shape, layout)
    makers.max_unpool(
        *(<uintptr_t>plan, size, shape, text(a.dtype), numbers(a.kernel_shape, count)),
        text(a.index_dtype), strides=numbers(a.strides, count), pads=numbers(a.pads, 2 * count),
        output_shape=numbers(a.output_shape, a.ndim), layout=layout,
        index_space=text(a.index_space), index_axis=a.index_axis,
        index_layout=text(a.index_layout), num_threads=a.num_threads or None,
    )
    return 0


cdef int plan_avg_pool(fastpool_plan *plan, size_t size,
                       const fastpool_avg_pool_attributes *given,
                       size_t given_size) except -1:
    cdef fastpool_avg_pool_attributes a
    memset(&a, 0, sizeof(a))
    memcpy(&a, given, imin(given_size, sizeof(a)))
    shape, layout = numbers(a.input_shape, a.ndim), text(a.layout)
    count = makers.pooled_axes(shape, layout)
    makers.avg_pool(
        *(<uintptr_t>plan, size, shape, text(a.dtype), numbers(a.output_size, count)),
        kernel_shape=numbers(a.kernel_shape, count), strides=numbers(a.strides, count),
        pads=numbers(a.pads, 2 * count), dilations=numbers(a.dilations, count),
        auto_pad=text(a.auto_pad), ceil_mode=a.ceil_mode, ceil_rule=text(a.ceil_rule),
        count_include_pad=a.count_include_pad, beyond=text(a.beyond), divisor=a.divisor or None,
        result_dtype=text(a.result_dtype), rounding=text(a.rounding), numerics=text(a.numerics),
        nan=text(a.nan), layout=layout, num_threads=a.num_threads or None,
    )
    return 0


cdef fastpool_functions functions
cdef object makers = None


def c_api(module):
    """Return the capsule that fastpool.h imports.

    `module` has the functions that plan. They are called with the address and the size of a C
    struct.
    """
    global makers
    makers = module
    functions.major, functions.minor = FASTPOOL_ABI_MAJOR, FASTPOOL_ABI_MINOR
    functions.plan_from = plan_from
    functions.plan_max_pool = plan_max_pool
    functions.plan_max_unpool = plan_max_unpool
    functions.plan_avg_pool = plan_avg_pool
    return PyCapsule_New(&functions, "fastpool._C_API", NULL)
