/* One process, several lives of the interpreter: prints what making a plan comes to in each. */
#include <Python.h> /* before fastpool.h */

#include <fastpool.h>
#include <stdio.h>

static const char *average(void) {
    const ptrdiff_t input_shape[] = {2, 2}, output_size[] = {1, 1};
    const float x[] = {1, 4, 3, 2};
    double y = 0;
    fastpool_plan plan;
    fastpool_avg_pool_attributes attributes = {0};
    int code;
    attributes.input_shape = input_shape;
    attributes.ndim = 2;
    attributes.layout = "HW";
    attributes.dtype = "float32";
    attributes.result_dtype = "float64";
    attributes.output_size = output_size;
    if (fastpool_plan_avg_pool(&plan, &attributes) < 0) {
        PyErr_Print();
        return "no plan of averages";
    }
    code = fastpool_avg_pool(&plan, x, NULL, &y, NULL, 1, 0);
    fastpool_plan_release(&plan);
    return code == FASTPOOL_OK && y == 2.5 ? "pooled" : "wrong";
}

static const char *plan_and_run(void) {
    const ptrdiff_t input_shape[] = {2, 2}, kernel_shape[] = {2, 2};
    const float x[] = {1, 4, 3, 2};
    float y = 0;
    fastpool_plan plan;
    fastpool_max_pool_attributes attributes = {0};
    int code;
    attributes.input_shape = input_shape;
    attributes.ndim = 2;
    attributes.layout = "HW";
    attributes.dtype = "float32";
    attributes.kernel_shape = kernel_shape;
    if (fastpool_plan_max_pool(&plan, &attributes) < 0) {
        int missing = PyErr_ExceptionMatches(PyExc_ImportError);
        const char *name = missing ? "ImportError" : "another error";
        PyErr_Print();
        return name;
    }
    code = fastpool_max_pool(&plan, x, NULL, &y, NULL, NULL, NULL, 1, 0);
    fastpool_plan_release(&plan);
    return code == FASTPOOL_OK && y == 4 ? average() : "wrong";
}

int main(void) {
    for (int life = 0; life < 3; life++) {
        Py_Initialize();
        for (int call = 0; call < 2; call++) puts(plan_and_run());
        fflush(stdout);
        if (Py_FinalizeEx() < 0) return 1;
    }
    return 0;
}
