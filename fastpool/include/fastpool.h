/* fastpool for C, C++ and Cython: max, min and average pooling, and max unpooling, without the GIL.
 *
 * This header is plain C99 or C++. A file that makes plans includes Python.h first. A file that
 * only runs plans needs neither Python.h nor a library to link with. docs/c-api.md explains the
 * interface and has complete programs.
 */
#ifndef FASTPOOL_H
#define FASTPOOL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* At run time, fastpool must have this major number, and this minor number or a later one. */
#define FASTPOOL_ABI_MAJOR 1
#define FASTPOOL_ABI_MINOR 3

/* The result of running a plan. After any code except FASTPOOL_OK, nothing has been written. */
enum fastpool_error {
    FASTPOOL_OK = 0,
    FASTPOOL_BAD_PLAN = 1,
    FASTPOOL_BAD_THREADS = 2,
    FASTPOOL_BAD_FLAGS = 3,
    FASTPOOL_NO_MEMORY = 4,
    FASTPOOL_OVERLAP = 5,
    FASTPOOL_INDEX_OUTSIDE = 6,
    FASTPOOL_EXTRA_INDICES = 7,
    FASTPOOL_BAD_TASKS = 8,
    FASTPOOL_X_NULL = 16,
    FASTPOOL_Y_NULL = 17,
    FASTPOOL_INDICES_NULL = 18,
    FASTPOOL_X_ALIGNMENT = 32,
    FASTPOOL_Y_ALIGNMENT = 33,
    FASTPOOL_INDICES_ALIGNMENT = 34,
    FASTPOOL_X_STRIDES = 48,
    FASTPOOL_Y_STRIDES = 49,
    FASTPOOL_INDICES_STRIDES = 50
};

/* Flags of a run. FASTPOOL_APART: the caller guarantees that no memory is shared, so overlap is not
 * checked.
 */
#define FASTPOOL_APART 1u

typedef struct fastpool_plan fastpool_plan;

/* A pooling or an unpooling of one geometry and element type. Make and release it with the GIL. It
 * does not change in between, so any number of threads may run it at once. Copies of the struct may
 * be read and run; release only one of them.
 */
struct fastpool_plan {
    uint32_t abi;  /* that of the library: major << 16 | minor; 0 if there is nothing to run */
    uint32_t size; /* bytes of this struct that the library knows */

    int ndim;                       /* axes of every array */
    int num_threads;                /* threads of a run with num_threads 0; if default, at most */
    const ptrdiff_t *input_shape;   /* of x, and of an unpooling's indices */
    const ptrdiff_t *output_shape;  /* of y, and of a pooling's indices */
    size_t itemsize;                /* bytes of an element of x */
    size_t index_itemsize;          /* of indices: 8 or 4; 0 for a plan without them */
    size_t input_bytes;             /* of all of x, without gaps */
    size_t output_bytes;            /* of all of y */
    size_t indices_bytes;           /* of all indices */

    /* Private to the library. */
    int (*max_pool)(const fastpool_plan *, const void *, const ptrdiff_t *, void *,
                    const ptrdiff_t *, void *, const ptrdiff_t *, int, unsigned);
    int (*max_unpool)(const fastpool_plan *, const void *, const void *, void *, int, unsigned);
    const void *compiled;
    void *owner;

    /* Since 1.1. */
    size_t output_itemsize; /* bytes of an element of y */

    /* Private to the library. */
    int (*avg_pool)(const fastpool_plan *, const void *, const ptrdiff_t *, void *,
                    const ptrdiff_t *, void *, const ptrdiff_t *, int, unsigned);

    /* Since 1.2. */
    size_t tasks; /* parts of a run, for fastpool_run_tasks; 0 if there are none */

    /* Private to the library. */
    int (*run_tasks)(const fastpool_plan *, const void *, void *, void *, size_t, size_t);
};

/* Pool x into y, and write the indices of the maxima or minima to indices (NULL if the plan has
 * none).
 *
 * Strides are in bytes, one per axis. NULL means that the array is C-contiguous. Strides must keep
 * addresses multiples of the element size, and the last axis (the channels, if they come last) must
 * be contiguous. num_threads 0 means the plan's number. A process made by fork pools on one thread.
 * Without FASTPOOL_APART, arrays that may share memory are refused: all bytes from the first to the
 * last element of an array count as its memory.
 */
static inline int fastpool_max_pool(const fastpool_plan *plan, const void *x,
                                    const ptrdiff_t *x_strides, void *y, const ptrdiff_t *y_strides,
                                    void *indices, const ptrdiff_t *indices_strides,
                                    int num_threads, unsigned flags) {
    if (!plan || !plan->max_pool) return FASTPOOL_BAD_PLAN;
    return plan->max_pool(plan, x, x_strides, y, y_strides, indices, indices_strides, num_threads,
                          flags);
}

/* Write the means of x to y. The arguments follow the rules of fastpool_max_pool. Since 1.1. */
static inline int fastpool_avg_pool(const fastpool_plan *plan, const void *x,
                                    const ptrdiff_t *x_strides, void *y, const ptrdiff_t *y_strides,
                                    int num_threads, unsigned flags) {
    /* Code that was compiled with an earlier header makes shorter plans. */
    if (!plan || plan->size < offsetof(fastpool_plan, tasks) || !plan->avg_pool)
        return FASTPOOL_BAD_PLAN;
    return plan->avg_pool(plan, x, x_strides, y, y_strides, NULL, NULL, num_threads, flags);
}

/* Run a part of a pooling on the calling thread: the tasks from first up to, not including, stop.
 *
 * For programs with threads of their own. Once each of the plan's tasks was run, in any order and
 * on any threads, y and indices are those of one run. Arrays are C-contiguous and share no memory.
 * Since 1.2.
 */
static inline int fastpool_run_tasks(const fastpool_plan *plan, const void *x, void *y,
                                     void *indices, size_t first, size_t stop) {
    if (!plan || plan->size < sizeof *plan || !plan->run_tasks) return FASTPOOL_BAD_PLAN;
    return plan->run_tasks(plan, x, y, indices, first, stop);
}

/* Write the values of x to their indices in y, and zeros elsewhere. Arrays are C-contiguous. */
static inline int fastpool_max_unpool(const fastpool_plan *plan, const void *x, const void *indices,
                                      void *y, int num_threads, unsigned flags) {
    if (!plan || !plan->max_unpool) return FASTPOOL_BAD_PLAN;
    return plan->max_unpool(plan, x, indices, y, num_threads, flags);
}

/* Return the message for an error code. */
static inline const char *fastpool_error_text(int code) {
    switch (code) {
    case FASTPOOL_OK: return "no error";
    case FASTPOOL_BAD_PLAN: return "plan: NULL, released, or of another operation";
    case FASTPOOL_BAD_THREADS: return "num_threads: negative";
    case FASTPOOL_BAD_FLAGS: return "flags: one that this fastpool does not know";
    case FASTPOOL_NO_MEMORY: return "no memory for scratch";
    case FASTPOOL_OVERLAP:
        return "y or indices: may share memory with another array, or elements with one another";
    case FASTPOOL_INDEX_OUTSIDE:
        return "indices: one is negative, or not below the number of elements that it counts in";
    case FASTPOOL_EXTRA_INDICES: return "indices: given, but the plan returns none";
    case FASTPOOL_BAD_TASKS: return "tasks: first above stop, or stop above the plan's tasks";
    case FASTPOOL_X_NULL: return "x: NULL";
    case FASTPOOL_Y_NULL: return "y: NULL";
    case FASTPOOL_INDICES_NULL: return "indices: NULL";
    case FASTPOOL_X_ALIGNMENT: return "x: its address is no multiple of the element size";
    case FASTPOOL_Y_ALIGNMENT: return "y: its address is no multiple of the element size";
    case FASTPOOL_INDICES_ALIGNMENT:
        return "indices: their address is no multiple of the element size";
    case FASTPOOL_X_STRIDES:
        return "x_strides: no multiples of the element size, or gaps in the last axis";
    case FASTPOOL_Y_STRIDES:
        return "y_strides: no multiples of the element size, or gaps in the last axis";
    case FASTPOOL_INDICES_STRIDES:
        return "indices_strides: no multiples of the element size, or gaps in the last axis";
    }
    return "unknown error";
}

/* Attributes with the names, values and meanings of fastpool.plan_max_pool (or, if minimum is 1, of
 * fastpool.plan_min_pool), fastpool.max_unpool and fastpool.plan_avg_pool. NULL or 0 means the
 * default; input_shape, dtype and kernel_shape have none. input_shape and output_shape have one
 * number per axis of the array. Other lists have one per pooled axis, and pads has all begins and
 * then all ends.
 */
typedef struct fastpool_max_pool_attributes {
    const ptrdiff_t *input_shape;
    int ndim;
    const char *dtype; /* "float32", "bfloat16", "uint8", ... */
    const ptrdiff_t *kernel_shape, *strides, *pads, *dilations;
    const char *auto_pad, *ceil_rule, *layout, *nan, *index_dtype, *index_layout;
    int ceil_mode, return_indices, storage_order, index_axis, num_threads;
    size_t minimum; /* since 1.3; as wide as a pointer, so that it begins after any padding */
} fastpool_max_pool_attributes;

typedef struct fastpool_max_unpool_attributes {
    const ptrdiff_t *input_shape;
    int ndim;
    const char *dtype;
    const ptrdiff_t *kernel_shape, *strides, *pads, *output_shape;
    const char *layout, *index_space, *index_dtype, *index_layout;
    int index_axis, num_threads;
} fastpool_max_unpool_attributes;

/* Given an output_size, with one number per pooled axis, the pooling is adaptive. It is global if
 * all of these are 1. The fields from kernel_shape to divisor must then be NULL or 0. A numerics of
 * NULL is "pairwise"; "exact" and "sequential" are the others. Since 1.1.
 */
typedef struct fastpool_avg_pool_attributes {
    const ptrdiff_t *input_shape;
    int ndim;
    const char *dtype;
    const ptrdiff_t *output_size;
    const ptrdiff_t *kernel_shape, *strides, *pads, *dilations;
    const char *auto_pad, *ceil_rule, *beyond;
    int ceil_mode, count_include_pad;
    int64_t divisor;
    const char *result_dtype, *rounding, *numerics, *nan, *layout;
    int num_threads;
} fastpool_avg_pool_attributes;

#ifdef Py_PYTHON_H /* the functions below need the GIL */

typedef struct fastpool_functions {
    int major, minor;
    int (*plan_from)(fastpool_plan *, size_t, PyObject *);
    int (*plan_max_pool)(fastpool_plan *, size_t, const fastpool_max_pool_attributes *, size_t);
    int (*plan_max_unpool)(fastpool_plan *, size_t, const fastpool_max_unpool_attributes *, size_t);
    int (*plan_avg_pool)(fastpool_plan *, size_t, const fastpool_avg_pool_attributes *, size_t);
} fastpool_functions;

/* Return the library's functions. If its ABI does not fit, return NULL with an ImportError. The
 * functions are looked up at every call: in another interpreter, or after Py_Finalize and
 * Py_Initialize, those found before belong to a module that no longer exists.
 */
static inline const fastpool_functions *fastpool_imported(void) {
    const fastpool_functions *functions =
        (const fastpool_functions *)PyCapsule_Import("fastpool._C_API", 0);
    if (!functions) return NULL;
    if (functions->major != FASTPOOL_ABI_MAJOR || functions->minor < FASTPOOL_ABI_MINOR) {
        PyErr_Format(PyExc_ImportError,
                     "fastpool: compiled for C ABI %d.%d, but the installed one has %d.%d",
                     FASTPOOL_ABI_MAJOR, FASTPOOL_ABI_MINOR, functions->major, functions->minor);
        return NULL;
    }
    return functions;
}

/* The functions below return 0, or -1 with a Python exception. After -1 the plan is empty. */

/* Check that the installed fastpool fits. Call it when your module is imported, to fail early; the
 * functions that make plans check it too.
 */
static inline int fastpool_import(void) { return fastpool_imported() ? 0 : -1; }

/* Make a plan from a fastpool.MaxPoolPlan, a fastpool.MinPoolPlan or a fastpool.AvgPoolPlan. */
static inline int fastpool_plan_from(fastpool_plan *plan, PyObject *python_plan) {
    const fastpool_functions *functions = fastpool_imported();
    memset(plan, 0, sizeof *plan);
    return functions ? functions->plan_from(plan, sizeof *plan, python_plan) : -1;
}

static inline int fastpool_plan_max_pool(fastpool_plan *plan,
                                         const fastpool_max_pool_attributes *attributes) {
    const fastpool_functions *functions = fastpool_imported();
    memset(plan, 0, sizeof *plan);
    return functions
               ? functions->plan_max_pool(plan, sizeof *plan, attributes, sizeof *attributes)
               : -1;
}

static inline int fastpool_plan_max_unpool(fastpool_plan *plan,
                                       const fastpool_max_unpool_attributes *attributes) {
    const fastpool_functions *functions = fastpool_imported();
    memset(plan, 0, sizeof *plan);
    return functions
               ? functions->plan_max_unpool(plan, sizeof *plan, attributes, sizeof *attributes)
               : -1;
}

static inline int fastpool_plan_avg_pool(fastpool_plan *plan,
                                         const fastpool_avg_pool_attributes *attributes) {
    const fastpool_functions *functions = fastpool_imported();
    memset(plan, 0, sizeof *plan);
    return functions
               ? functions->plan_avg_pool(plan, sizeof *plan, attributes, sizeof *attributes)
               : -1;
}

/* Release a plan that no thread is running. A plan that is all zeros (not made, or released before)
 * stays unchanged.
 */
static inline void fastpool_plan_release(fastpool_plan *plan) {
    PyObject *owner = (PyObject *)plan->owner;
    memset(plan, 0, sizeof *plan);
    Py_XDECREF(owner);
}

#endif /* Py_PYTHON_H */

#ifdef __cplusplus
}
#endif

#endif
