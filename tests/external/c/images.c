/* images.pool(x, y, threads): 3 x 3 maxima at stride 2 of float32 images, on threads of our own
   that share one plan. */
#include <Python.h> /* before fastpool.h */

#include <fastpool.h>
#include <pthread.h>

enum { MOST_THREADS = 64 };

typedef struct {
    const fastpool_plan *plan; /* of one image */
    const char *x;
    char *y;
    ptrdiff_t first, count, every; /* images of this worker */
    int code;
    pthread_t thread;
} worker;

/* Knows nothing of Python: it could as well be in a file that does not include it. */
static void *work(void *argument) {
    worker *w = (worker *)argument;
    const fastpool_plan *plan = w->plan;
    for (ptrdiff_t i = w->first; i < w->count && w->code == FASTPOOL_OK; i += w->every)
        w->code = fastpool_max_pool(plan, w->x + i * plan->input_bytes, NULL,
                                    w->y + i * plan->output_bytes, NULL, NULL, NULL, 1, 0);
    return NULL;
}

static int work_on_threads(const fastpool_plan *plan, const void *x, void *y, ptrdiff_t count,
                           int threads) {
    worker workers[MOST_THREADS];
    int code = FASTPOOL_OK;
    for (int i = 0; i < threads; i++) {
        worker w = {plan, (const char *)x, (char *)y, i, count, threads, FASTPOOL_OK, 0};
        workers[i] = w;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) threads = i, code = -1;
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].code) code = workers[i].code;
    }
    return code;
}

/* The plan of one image. */
static int plan_image(fastpool_plan *plan, const Py_buffer *images) {
    const ptrdiff_t kernel_shape[] = {3, 3}, strides[] = {2, 2};
    fastpool_max_pool_attributes attributes = {0}; /* the default of everything */
    attributes.input_shape = images->shape + 1;
    attributes.ndim = 2;
    attributes.layout = "HW";
    attributes.dtype = "float32";
    attributes.kernel_shape = kernel_shape;
    attributes.strides = strides;
    return fastpool_plan_max_pool(plan, &attributes);
}

static int do_pool(const Py_buffer *x, const Py_buffer *y, int threads) {
    fastpool_plan plan;
    int code;
    if (x->ndim != 3 || strcmp(x->format, "f") || threads < 1 || threads > MOST_THREADS) {
        PyErr_SetString(PyExc_ValueError,
                        "expected float32 images, three axes in all, and 1 to 64 threads");
        return -1;
    }
    if (plan_image(&plan, x) < 0) return -1;
    if ((size_t)y->len != x->shape[0] * plan.output_bytes) {
        PyErr_Format(PyExc_ValueError, "y: expected %zu bytes for each image", plan.output_bytes);
        fastpool_plan_release(&plan);
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS
    code = work_on_threads(&plan, x->buf, y->buf, x->shape[0], threads);
    Py_END_ALLOW_THREADS
    fastpool_plan_release(&plan);
    if (code)
        PyErr_SetString(PyExc_RuntimeError, code < 0 ? "no thread" : fastpool_error_text(code));
    return code ? -1 : 0;
}

static PyObject *pool(PyObject *module, PyObject *args) {
    PyObject *x_object, *y_object;
    Py_buffer x, y;
    int threads, status = -1;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOi", &x_object, &y_object, &threads)) return NULL;
    if (PyObject_GetBuffer(x_object, &x, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) return NULL;
    if (PyObject_GetBuffer(y_object, &y, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) == 0) {
        status = do_pool(&x, &y, threads);
        PyBuffer_Release(&y);
    }
    PyBuffer_Release(&x);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {{"pool", pool, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "images", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_images(void) {
    PyObject *module = fastpool_import() < 0 ? NULL : PyModule_Create(&definition);
#ifdef Py_GIL_DISABLED
    if (module) PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    return module;
}
