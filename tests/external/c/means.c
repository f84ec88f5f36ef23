/* means.pool(x, y): the mean of each channel of float32 images, channels last. */
#include <Python.h> /* before fastpool.h */

#include <fastpool.h>

static int plan_means(fastpool_plan *plan, const Py_buffer *images) {
    const ptrdiff_t output_size[] = {1, 1};        /* one window of each plane */
    fastpool_avg_pool_attributes attributes = {0}; /* the default of everything */
    attributes.input_shape = images->shape;
    attributes.ndim = 4;
    attributes.layout = "NHWC";
    attributes.dtype = "float32";
    attributes.output_size = output_size;
    return fastpool_plan_avg_pool(plan, &attributes);
}

static int do_pool(const Py_buffer *x, const Py_buffer *y) {
    fastpool_plan plan;
    int code;
    if (x->ndim != 4 || strcmp(x->format, "f")) {
        PyErr_SetString(PyExc_ValueError, "x: expected float32 images, four axes in all");
        return -1;
    }
    if (plan_means(&plan, x) < 0) return -1;
    if ((size_t)y->len != plan.output_bytes) {
        PyErr_Format(PyExc_ValueError, "y: expected %zu bytes", plan.output_bytes);
        fastpool_plan_release(&plan);
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS
    code = fastpool_avg_pool(&plan, x->buf, x->strides, y->buf, NULL, 0, 0);
    Py_END_ALLOW_THREADS
    fastpool_plan_release(&plan);
    if (code) PyErr_SetString(PyExc_ValueError, fastpool_error_text(code));
    return code ? -1 : 0;
}

static PyObject *pool(PyObject *module, PyObject *args) {
    PyObject *x_object, *y_object;
    Py_buffer x, y;
    int status = -1;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &x_object, &y_object)) return NULL;
    if (PyObject_GetBuffer(x_object, &x, PyBUF_STRIDES | PyBUF_FORMAT) < 0) return NULL;
    if (PyObject_GetBuffer(y_object, &y, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) == 0) {
        status = do_pool(&x, &y);
        PyBuffer_Release(&y);
    }
    PyBuffer_Release(&x);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {{"pool", pool, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "means", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_means(void) {
    PyObject *module = fastpool_import() < 0 ? NULL : PyModule_Create(&definition);
#ifdef Py_GIL_DISABLED
    if (module) PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    return module;
}
