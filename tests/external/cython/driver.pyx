# cython: language_level=3
# cython: freethreading_compatible=True
"""Runs plans on addresses, so that a test can pass anything at all."""

from libc.stdint cimport uintptr_t
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from fastpool cimport (
    FASTPOOL_APART, fastpool_avg_pool, fastpool_avg_pool_attributes, fastpool_error_text,
    fastpool_max_pool, fastpool_max_pool_attributes, fastpool_max_unpool,
    fastpool_max_unpool_attributes, fastpool_plan, fastpool_plan_avg_pool, fastpool_plan_from,
    fastpool_plan_max_pool, fastpool_plan_max_unpool, fastpool_plan_release, fastpool_run_tasks,
)

cdef extern from "Python.h":
    void *PyGILState_GetThisThreadState() nogil

cdef extern from "<pthread.h>":
    ctypedef struct pthread_t:
        pass
    int pthread_create(pthread_t *, const void *, void *(*)(void *) noexcept nogil, void *)
    int pthread_join(pthread_t, void **) nogil

APART = FASTPOOL_APART
NAMES = (
    *("abi", "size", "ndim", "num_threads", "input_shape", "output_shape"),
    *("itemsize", "index_itemsize", "input_bytes", "output_bytes", "indices_bytes"),
    "output_itemsize",
)


def error_text(int code):
    return fastpool_error_text(code).decode()


cdef struct Array:
    char *data
    Py_ssize_t *strides
    Py_ssize_t[64] numbers


cdef int describe(Array *array, given) except -1:
    """`given` is None, an address, or an address and strides."""
    array.data = array.strides = NULL
    if given is not None:
        address, strides = given if isinstance(given, tuple) else (given, None)
        array.data = <char *><uintptr_t>address
        if strides is not None:
            array.strides = array.numbers
            for i, stride in enumerate(strides):
                array.numbers[i] = stride
    return 0


cdef struct Call:
    const fastpool_plan *plan
    Array x, y, indices
    int threads, code
    unsigned int flags
    bint average, known_to_python


cdef void run(Call *c) noexcept nogil:
    if c.average:
        c.code = fastpool_avg_pool(
            c.plan, c.x.data, c.x.strides, c.y.data, c.y.strides, c.threads, c.flags
        )
        return
    c.code = fastpool_max_pool(
        c.plan, c.x.data, c.x.strides, c.y.data, c.y.strides, c.indices.data, c.indices.strides,
        c.threads, c.flags,
    )


cdef void *run_elsewhere(void *call) noexcept nogil:
    run(<Call *>call)
    (<Call *>call).known_to_python = PyGILState_GetThisThreadState() != NULL
    return NULL


cdef class Plan:
    cdef fastpool_plan plan
    cdef bint average                   # what its runs call
    cdef Py_ssize_t[5][64] lists        # of attributes, which live as long as this
    cdef list texts
    cdef int used

    def __init__(self, source, **attributes):
        """Take a plan of Python, or the name of an operation and attributes, or None: no plan."""
        cdef fastpool_max_pool_attributes a
        cdef fastpool_max_unpool_attributes b
        cdef fastpool_avg_pool_attributes c
        self.texts = []
        if source == "max_pool":
            a = fastpool_max_pool_attributes(
                input_shape=self.numbers(attributes.get("input_shape")),
                ndim=len(attributes.get("input_shape") or ()),
                dtype=self.text(attributes.get("dtype")),
                kernel_shape=self.numbers(attributes.get("kernel_shape")),
                strides=self.numbers(attributes.get("strides")),
                pads=self.numbers(attributes.get("pads")),
                dilations=self.numbers(attributes.get("dilations")),
                auto_pad=self.text(attributes.get("auto_pad")),
                ceil_rule=self.text(attributes.get("ceil_rule")),
                layout=self.text(attributes.get("layout")),
                nan=self.text(attributes.get("nan")),
                index_dtype=self.text(attributes.get("index_dtype")),
                index_layout=self.text(attributes.get("index_layout")),
                ceil_mode=attributes.get("ceil_mode", 0),
                return_indices=attributes.get("return_indices", 0),
                storage_order=attributes.get("storage_order", 0),
                index_axis=attributes.get("index_axis", 0),
                num_threads=attributes.get("num_threads", 0),
                minimum=attributes.get("minimum", 0),
            )
            fastpool_plan_max_pool(&self.plan, &a)
        elif source == "max_unpool":
            b = fastpool_max_unpool_attributes(
                input_shape=self.numbers(attributes.get("input_shape")),
                ndim=len(attributes.get("input_shape") or ()),
                dtype=self.text(attributes.get("dtype")),
                kernel_shape=self.numbers(attributes.get("kernel_shape")),
                strides=self.numbers(attributes.get("strides")),
                pads=self.numbers(attributes.get("pads")),
                output_shape=self.numbers(attributes.get("output_shape")),
                layout=self.text(attributes.get("layout")),
                index_space=self.text(attributes.get("index_space")),
                index_dtype=self.text(attributes.get("index_dtype")),
                index_layout=self.text(attributes.get("index_layout")),
                index_axis=attributes.get("index_axis", 0),
                num_threads=attributes.get("num_threads", 0),
            )
            fastpool_plan_max_unpool(&self.plan, &b)
        elif source == "avg_pool":
            c = fastpool_avg_pool_attributes(
                input_shape=self.numbers(attributes.get("input_shape")),
                ndim=len(attributes.get("input_shape") or ()),
                dtype=self.text(attributes.get("dtype")),
                output_size=self.numbers(attributes.get("output_size")),
                kernel_shape=self.numbers(attributes.get("kernel_shape")),
                strides=self.numbers(attributes.get("strides")),
                pads=self.numbers(attributes.get("pads")),
                dilations=self.numbers(attributes.get("dilations")),
                auto_pad=self.text(attributes.get("auto_pad")),
                ceil_rule=self.text(attributes.get("ceil_rule")),
                beyond=self.text(attributes.get("beyond")),
                ceil_mode=attributes.get("ceil_mode", 0),
                count_include_pad=attributes.get("count_include_pad", 0),
                divisor=attributes.get("divisor", 0),
                result_dtype=self.text(attributes.get("result_dtype")),
                rounding=self.text(attributes.get("rounding")),
                numerics=self.text(attributes.get("numerics")),
                nan=self.text(attributes.get("nan")),
                layout=self.text(attributes.get("layout")),
                num_threads=attributes.get("num_threads", 0),
            )
            fastpool_plan_avg_pool(&self.plan, &c)
        elif source is not None:
            fastpool_plan_from(&self.plan, source)

    def __dealloc__(self):
        fastpool_plan_release(&self.plan)

    cdef const Py_ssize_t *numbers(self, values) except? NULL:
        if values is None:
            return NULL
        self.used += 1
        for i, value in enumerate(values):
            self.lists[self.used - 1][i] = value
        return self.lists[self.used - 1]

    cdef const char *text(self, value) except? NULL:
        if value is None:
            return NULL
        self.texts.append(value.encode())
        return <const char *><bytes>self.texts[-1]

    def release(self):
        fastpool_plan_release(&self.plan)

    def fields(self):
        cdef fastpool_plan *p = &self.plan
        shapes = (
            tuple([p.input_shape[i] for i in range(p.ndim)]),
            tuple([p.output_shape[i] for i in range(p.ndim)]),
        )
        sizes = p.itemsize, p.index_itemsize, p.input_bytes, p.output_bytes, p.indices_bytes
        values = p.abi, p.size, p.ndim, p.num_threads, *shapes, *sizes, p.output_itemsize
        return dict(zip(NAMES, values, strict=True))

    @property
    def tasks(self):
        return self.plan.tasks

    def run_tasks(self, x, y, indices, size_t first, size_t stop):
        """The code that a run of some tasks returns."""
        cdef Call c
        self.set_call(&c, x, y, indices, 1, 0)
        with nogil:
            c.code = fastpool_run_tasks(c.plan, c.x.data, c.y.data, c.indices.data, first, stop)
        return c.code

    cdef int set_call(self, Call *c, x, y, indices, int threads, unsigned int flags) except -1:
        c.plan, c.threads, c.flags, c.average = &self.plan, threads, flags, self.average
        describe(&c.x, x)
        describe(&c.y, y)
        describe(&c.indices, indices)
        return 0

    def pool(self, x, y, indices=None, int threads=0, unsigned int flags=0):
        """The code that a run returns."""
        cdef Call c
        self.set_call(&c, x, y, indices, threads, flags)
        with nogil:
            run(&c)
        return c.code

    def pool_elsewhere(self, x, y, indices=None, int threads=0, unsigned int flags=0):
        """The same on a thread that Python knows nothing of; also whether it does afterwards."""
        cdef Call c
        cdef pthread_t thread
        self.set_call(&c, x, y, indices, threads, flags)
        assert pthread_create(&thread, NULL, run_elsewhere, &c) == 0
        with nogil:
            pthread_join(thread, NULL)
        return c.code, c.known_to_python

    def unpool(self, x, indices, y, int threads=0, unsigned int flags=0):
        cdef Call c
        self.set_call(&c, x, y, indices, threads, flags)
        with nogil:
            c.code = fastpool_max_unpool(c.plan, c.x.data, c.indices.data, c.y.data, threads, flags)
        return c.code

    def seconds(self, Py_ssize_t count, x, y, indices=None, unsigned int flags=0):
        """Return the seconds of one run, the mean of `count` runs on one thread."""
        cdef Call c
        cdef Py_ssize_t _
        cdef timespec begin, end
        self.set_call(&c, x, y, indices, 1, flags)
        with nogil:
            clock_gettime(CLOCK_MONOTONIC, &begin)
            for _ in range(count):
                run(&c)
            clock_gettime(CLOCK_MONOTONIC, &end)
        return (end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) * 1e-9) / count


cdef class AveragePlan(Plan):
    """A plan whose runs call `fastpool_avg_pool`."""

    def __cinit__(self, *_, **__):
        self.average = True
