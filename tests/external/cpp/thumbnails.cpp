// thumbnails.shrink(x, y, block): the means of blocks of uint8 images, as float32.
#include <Python.h> // before fastpool.h

#include <fastpool.h>

namespace {

// Both are made and released with the GIL.
struct Plan {
    fastpool_plan plan{};
    Plan() = default;
    Plan(const Plan &) = delete;
    Plan &operator=(const Plan &) = delete;
    ~Plan() { fastpool_plan_release(&plan); }
};

struct Buffer {
    Py_buffer view{};
    Buffer() = default;
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    ~Buffer() { PyBuffer_Release(&view); }
    bool read(PyObject *object, int flags) { return PyObject_GetBuffer(object, &view, flags) == 0; }
};

bool make_plan(Plan &made, const Py_buffer &images, ptrdiff_t block) {
    const ptrdiff_t blocks[] = {block, block};
    fastpool_avg_pool_attributes attributes{}; // the default of everything
    attributes.input_shape = images.shape;
    attributes.ndim = images.ndim;
    attributes.layout = "NHWC";
    attributes.dtype = "uint8";
    attributes.result_dtype = "float32";
    attributes.kernel_shape = attributes.strides = blocks;
    return fastpool_plan_avg_pool(&made.plan, &attributes) == 0;
}

PyObject *shrink(PyObject *, PyObject *arguments) {
    PyObject *x_object, *y_object;
    Py_ssize_t block;
    Buffer x, y;
    Plan made;
    int code;
    if (!PyArg_ParseTuple(arguments, "OOn", &x_object, &y_object, &block)) return nullptr;
    if (!x.read(x_object, PyBUF_STRIDES)) return nullptr;
    if (!y.read(y_object, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)) return nullptr;
    if (!make_plan(made, x.view, block)) return nullptr;
    if (static_cast<size_t>(y.view.len) != made.plan.output_bytes)
        return PyErr_Format(PyExc_ValueError, "y: expected %zu bytes", made.plan.output_bytes);
    Py_BEGIN_ALLOW_THREADS
    code = fastpool_avg_pool(&made.plan, x.view.buf, x.view.strides, y.view.buf, nullptr, 0, 0);
    Py_END_ALLOW_THREADS
    if (code) return PyErr_Format(PyExc_ValueError, "%s", fastpool_error_text(code));
    Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"shrink", shrink, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "thumbnails", nullptr, -1, methods,
                          nullptr, nullptr, nullptr, nullptr};

} // namespace

PyMODINIT_FUNC PyInit_thumbnails() {
    PyObject *module = fastpool_import() < 0 ? nullptr : PyModule_Create(&definition);
#ifdef Py_GIL_DISABLED
    if (module) PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    return module;
}
