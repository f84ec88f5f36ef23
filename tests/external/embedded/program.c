/* A program: the greatest of each 2 x 2 elements of a float32 image. */
#include <Python.h> /* before fastpool.h */

#include <fastpool.h>
#include <stdio.h>

int main(void) {
    const ptrdiff_t shape[] = {4, 4}, window[] = {2, 2};
    const float x[] = {1, 3, 2, 4, 5, 6, 8, 7, 3, 2, 1, 0, 1, 2, 3, 4};
    float y[4];
    fastpool_plan plan;
    fastpool_max_pool_attributes attributes = {0}; /* the default of everything */
    PyThreadState *state;
    int code;
    attributes.input_shape = shape;
    attributes.ndim = 2;
    attributes.layout = "HW";
    attributes.dtype = "float32";
    attributes.kernel_shape = attributes.strides = window;
    Py_Initialize();
    if (fastpool_plan_max_pool(&plan, &attributes) < 0) {
        PyErr_Print();
        return 1;
    }
    state = PyEval_SaveThread(); /* from here on no Python runs, and any thread may pool */
    code = fastpool_max_pool(&plan, x, NULL, y, NULL, NULL, NULL, 0, 0);
    if (code == FASTPOOL_OK)
        printf("%g %g\n%g %g\n", y[0], y[1], y[2], y[3]);
    else
        puts(fastpool_error_text(code));
    PyEval_RestoreThread(state);
    fastpool_plan_release(&plan);
    return Py_FinalizeEx() < 0 || code;
}
