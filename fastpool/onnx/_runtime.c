/* Kernels of ONNX's poolings for onnxruntime's own sessions: a library of custom operators.
 *
 * onnxruntime loads this file by its path (fastpool.onnx.library) and calls RegisterCustomOps. It
 * prefers a registered operator to its own one of the same domain and name. Python decides which
 * attributes are valid, and makes shapes and plans (_inside.py). It is asked when a model loads,
 * and when a node sees a shape for the first time. A run finds its plan by the shape, and pools
 * without the GIL, on onnxruntime's threads.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h> /* before fastpool.h */

#include "_ort.h"
#include <fastpool.h>
#include <stdio.h>
#include <stdlib.h>

static void *const *api; /* the table */
static int minor_version;
#define ort(name) ((name##_t)api[name##_slot])
#define TRY(call)                                                                                 \
    do {                                                                                          \
        OrtStatus *status_ = (call);                                                              \
        if (status_) return status_;                                                              \
    } while (0)

/* Release an object, by the slot of its kind. */
static void release(int slot, void *object) {
    if (object) ((void(ORT_CALL *)(void *))api[slot])(object);
}

/* Return whether a call succeeded. Its error is forgotten. */
static int succeeds(OrtStatus *status) {
    release(ReleaseStatus_slot, status);
    return !status;
}

static OrtStatus *fail(int code, const char *text) { return ort(CreateStatus)(code, text); }

static OrtStatus *no_memory(void) { return fail(FAIL, "fastpool: no memory"); }

/* ---- operators, nodes, and their plans ---- */

enum {
    MOST_AXES = 8,
    MOST_NUMBERS = 2 * MOST_AXES, /* of an attribute */
    MOST_PLANS = 16,              /* of a node; those used last stay */
    NAME_BYTES = 512,
    OPTION_BYTES = 32, /* of a value */
    CHUNK_BYTES = 32 << 10, /* of input and output, that are worth another call of a thread */
    MOST_CHUNKS = 64
};

/* What the other inputs of a node are, which a plan depends on. */
enum { NOTHING, PLACES, SCALES };

typedef struct {
    const char *name;
    int since;     /* opset version */
    int microsoft; /* is it one of com.microsoft? */
    int inputs, outputs;
    int others;             /* the inputs after the first one */
    const char *attributes; /* their letters */
    int type;               /* of x, if each has an operator: several inputs have that type */
} Kind;

/* Before these versions, onnxruntime's own kernels are not slow, or its optimisers want the older
 * operator: MaxPool-12 is the first one of 8 bits, which they would otherwise leave alone. */
static const Kind kinds[] = {
    {"MaxPool", 12, 0, 1, 2, NOTHING, "kspdamo", UNDEFINED},
    {"AveragePool", 19, 0, 1, 1, NOTHING, "kspdami", UNDEFINED},
    {"GlobalAveragePool", 1, 0, 1, 1, NOTHING, "", UNDEFINED},
    {"GlobalMaxPool", 1, 0, 1, 1, NOTHING, "", UNDEFINED},
    {"MaxUnpool", 11, 0, 3, 1, PLACES, "ksp", UNDEFINED},
    {"LpPool", 18, 0, 1, 1, NOTHING, "kspdamn", UNDEFINED},
    {"GlobalLpPool", 2, 0, 1, 1, NOTHING, "n", UNDEFINED},
    {"NhwcMaxPool", 1, 1, 1, 1, NOTHING, "kspdam", UNDEFINED},
    {"QLinearAveragePool", 1, 1, 5, 1, SCALES, "kspamic", UINT8},
    {"QLinearAveragePool", 1, 1, 5, 1, SCALES, "kspamic", INT8},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct {
    const char *name;
    char letter;
    int type;
} attributes[] = {
    {"kernel_shape", 'k', ATTR_INTS}, {"strides", 's', ATTR_INTS},
    {"pads", 'p', ATTR_INTS},         {"dilations", 'd', ATTR_INTS},
    {"auto_pad", 'a', ATTR_STRING},   {"ceil_mode", 'm', ATTR_INT},
    {"storage_order", 'o', ATTR_INT}, {"count_include_pad", 'i', ATTR_INT},
    {"p", 'n', ATTR_INT},             {"channels_last", 'c', ATTR_INT},
};
enum { ATTRIBUTES = sizeof attributes / sizeof *attributes };

typedef struct Operators Operators;
typedef struct {
    OrtCustomOp base; /* (first: onnxruntime has its address) */
    const Kind *kind;
    const Operators *all;
} Operator;

/* The operators of sessions with the same options. Sessions point to them, so they stay. */
struct Operators {
    Operators *next;
    OrtCustomOpDomain *domains[2]; /* the standard's, and com.microsoft */
    Operator table[KINDS];
    char options[NAME_BYTES]; /* lines of "name=value" */
};

/* What a plan depends on, as its node sees it. */
typedef struct {
    int type, told_count;
    size_t axes;
    int64_t shape[MOST_AXES]; /* of the input */
    int64_t told[MOST_AXES];  /* by other inputs: the output's shape, or scales and zero points */
} Seen;

typedef struct Plan {
    struct Plan *next;
    Seen seen;
    int out_axes;
    int64_t out[MOST_AXES];
    fastpool_plan plan;
    PyObject *call; /* in place of a plan: a function that needs the GIL, or */
    int theirs;     /* is onnxruntime's own kernel faster? */
    long users;     /* and one for the list */
} Plan;

typedef struct {
    const Kind *kind;
    PyObject *node; /* of _inside.py */
    char label[NAME_BYTES];
    int indices;             /* has it that output? */
    OrtOp *theirs;           /* onnxruntime's own kernel, or NULL */
    PyThread_type_lock lock; /* of the list. Who holds it does not wait for the GIL. */
    Plan *plans;
} Kernel;

/* Return the status of what is wrong with a node's inputs. */
static OrtStatus *refuse(const Kernel *kernel, const char *text) {
    char named[2 * NAME_BYTES];
    snprintf(named, sizeof named, "%s: %s", kernel->label, text);
    return fail(INVALID_ARGUMENT, named);
}

/* Forget Python's error. An interrupt by the user is not lost: it comes again. */
static void forget_error(void) {
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
    PyErr_Clear();
}

/* Return the status of Python's error. */
static OrtStatus *python_error(void) {
    PyObject *type, *value, *traceback, *text = NULL;
    const char *utf8 = NULL;
    OrtStatus *status;
    int code, interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    code = PyErr_GivenExceptionMatches(type, PyExc_MemoryError) ? FAIL : INVALID_ARGUMENT;
    if (value) text = PyObject_Str(value);
    if (text) utf8 = PyUnicode_AsUTF8(text);
    status = fail(code, utf8 ? utf8 : "fastpool: an error without a text");
    forget_error();
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    if (interrupted) PyErr_SetInterrupt(); /* (last: to make a text looks for signals) */
    return status;
}

static PyObject *inside; /* the module _inside */

/* Take the GIL. Return 0 if there is no interpreter any more. */
static int enter_python(PyGILState_STATE *state) {
    if (!Py_IsInitialized() || !inside) return 0;
    *state = PyGILState_Ensure();
    return 1;
}

static OrtStatus *no_python(void) { return fail(FAIL, "fastpool: Python has ended"); }

static PyObject *tuple_of(const int64_t *values, size_t count) {
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; tuple && i < count; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);
        if (!value) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, value);
    }
    return tuple;
}

/* Read integers of a sequence. Return how many, or -1 with Python's error. */
static int read_numbers(PyObject *sequence, int64_t *values, int most) {
    PyObject *items = PySequence_Tuple(sequence);
    int count = -1;
    if (!items) return -1;
    if (PyTuple_GET_SIZE(items) <= most) {
        count = (int)PyTuple_GET_SIZE(items);
        for (int i = 0; i < count; i++)
            values[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(items, i));
        if (PyErr_Occurred()) count = -1;
    } else
        PyErr_Format(PyExc_ValueError, "x: at most %d axes, got %zd", most,
                     PyTuple_GET_SIZE(items));
    Py_DECREF(items);
    return count;
}

/* Set an item of a dict to a value, of which this takes the reference. Return 0, or -1. */
static int set_item(PyObject *dict, const char *name, PyObject *value) {
    int code = value ? PyDict_SetItemString(dict, name, value) : -1;
    Py_XDECREF(value);
    return code;
}

static PyObject *text_of(const char *utf8) {
    return PyUnicode_DecodeUTF8(utf8, (Py_ssize_t)strlen(utf8), "replace");
}

static PyObject *attribute_value(int type, const int64_t *numbers, size_t count, const char *text) {
    if (type == ATTR_STRING) return text_of(text);
    return type == ATTR_INT ? PyLong_FromLongLong(numbers[0]) : tuple_of(numbers, count);
}

/* ---- loading: nodes become kernels ---- */

/* Return an attribute, of any type, for Python to judge. None if the node does not have it.
 *
 * (A list of another type is an empty list of integers: this is asked last.) */
static PyObject *read_attribute(const OrtKernelInfo *info, const char *name) {
    int64_t number, *numbers;
    float real;
    size_t size = 0;
    char *text;
    PyObject *value = NULL;
    if (succeeds(ort(KernelInfoGetAttribute_int64)(info, name, &number)))
        return PyLong_FromLongLong(number);
    if (succeeds(ort(KernelInfoGetAttribute_float)(info, name, &real)))
        return PyFloat_FromDouble(real);
    if (succeeds(ort(KernelInfoGetAttribute_string)(info, name, NULL, &size))) {
        text = PyMem_Calloc(size + 1, 1);
        if (!text) return PyErr_NoMemory();
        succeeds(ort(KernelInfoGetAttribute_string)(info, name, text, &size));
        value = text_of(text);
        PyMem_Free(text);
        return value;
    }
    if (succeeds(ort(KernelInfoGetAttributeArray_int64)(info, name, NULL, &size))) {
        numbers = PyMem_Calloc(size + 1, sizeof *numbers);
        if (!numbers) return PyErr_NoMemory();
        succeeds(ort(KernelInfoGetAttributeArray_int64)(info, name, numbers, &size));
        value = tuple_of(numbers, size);
        PyMem_Free(numbers);
        return value;
    }
    Py_RETURN_NONE;
}

static int read_attributes(PyObject *dict, const Kind *kind, const OrtKernelInfo *info) {
    for (int i = 0; i < ATTRIBUTES; i++) {
        PyObject *value;
        if (!strchr(kind->attributes, attributes[i].letter)) continue;
        value = read_attribute(info, attributes[i].name);
        if (value == Py_None) Py_DECREF(value);
        else if (set_item(dict, attributes[i].name, value) < 0) return -1;
    }
    return 0;
}

/* Set the type and the shape of a node's input, as far as they are known. */
static void read_input_type(const OrtKernelInfo *info, int *type, int64_t *shape, size_t *axes) {
    OrtTypeInfo *described;
    const OrtShapeInfo *tensor = NULL;
    *type = UNDEFINED, *axes = 0;
    if (!succeeds(ort(KernelInfo_GetInputTypeInfo)(info, 0, &described))) return;
    if (succeeds(ort(CastTypeInfoToTensorInfo)(described, &tensor)) && tensor &&
        succeeds(ort(GetTensorElementType)(tensor, type)) &&
        succeeds(ort(GetDimensionsCount)(tensor, axes))) {
        if (*axes > MOST_AXES || !succeeds(ort(GetDimensions)(tensor, shape, *axes))) *axes = 0;
    }
    release(ReleaseTypeInfo_slot, described);
}

/* Make onnxruntime's own kernel, with all attributes: it fills in no defaults. With the GIL. */
static OrtStatus *make_theirs(Kernel *kernel, const OrtKernelInfo *info, int type,
                              PyObject *values) {
    const char *constraint = "T";
    OrtOpAttr *made[ATTRIBUTES] = {0};
    OrtStatus *status = NULL;
    PyObject *key, *value;
    Py_ssize_t place = 0;
    int count = 0;
    while (!status && count < ATTRIBUTES && PyDict_Next(values, &place, &key, &value)) {
        int64_t numbers[MOST_NUMBERS];
        const char *name = PyUnicode_AsUTF8(key), *text = NULL;
        int kind = ATTR_INTS, length;
        if (PyUnicode_Check(value)) {
            text = PyUnicode_AsUTF8(value);
            kind = ATTR_STRING, length = text ? (int)strlen(text) : -1;
        } else if (PyLong_Check(value)) {
            numbers[0] = PyLong_AsLongLong(value);
            kind = ATTR_INT, length = 1;
        } else
            length = read_numbers(value, numbers, MOST_NUMBERS);
        if (!name || length < 0 || PyErr_Occurred()) status = python_error();
        else
            status = ort(CreateOpAttr)(name, text ? (const void *)text : numbers, length, kind,
                                       &made[count++]);
    }
    if (!status)
        status = ort(CreateOp)(info, kernel->kind->name, "", kernel->kind->since, &constraint,
                               &type, 1, (const OrtOpAttr *const *)made, count, 1, 1,
                               &kernel->theirs);
    while (count--) release(ReleaseOpAttr_slot, made[count]);
    return status;
}

static void free_kernel(Kernel *kernel) {
    if (kernel->node) Py_XDECREF(PyObject_CallMethod(kernel->node, "end", NULL));
    forget_error();
    release(ReleaseOp_slot, kernel->theirs);
    Py_XDECREF(kernel->node);
    if (kernel->lock) PyThread_free_lock(kernel->lock);
    free(kernel);
}

static OrtStatus *ORT_CALL create_kernel(const OrtCustomOp *base, const OrtApi *unused,
                                         const OrtKernelInfo *info, void **result) {
    const Operator *op = (const Operator *)base;
    Kernel *kernel = calloc(1, sizeof *kernel);
    char name[NAME_BYTES] = "", output[NAME_BYTES] = "", second[NAME_BYTES] = "";
    size_t outputs = 1, axes, size = sizeof name;
    int type;
    int64_t shape[MOST_AXES];
    OrtStatus *status = NULL;
    PyObject *dict, *label, *theirs = NULL;
    const char *text;
    PyGILState_STATE state;
    (void)unused;
    if (!kernel) return no_memory();
    kernel->kind = op->kind;
    /* (A name that is too long is left out.) */
    if (!succeeds(ort(KernelInfo_GetNodeName)(info, name, &size))) name[0] = 0;
    size = sizeof output;
    if (!succeeds(ort(KernelInfo_GetOutputName)(info, 0, output, &size))) output[0] = 0;
    if (succeeds(ort(KernelInfo_GetOutputCount)(info, &outputs)) && outputs > 1) {
        size = sizeof second;
        kernel->indices =
            !succeeds(ort(KernelInfo_GetOutputName)(info, 1, second, &size)) || second[0];
    }
    read_input_type(info, &type, shape, &axes);
    if (!enter_python(&state)) {
        free(kernel);
        return no_python();
    }
    dict = PyDict_New();
    kernel->lock = PyThread_allocate_lock();
    if (dict && kernel->lock && !read_attributes(dict, op->kind, info))
        kernel->node = PyObject_CallMethod(
            inside, "Node", "sOisssiNn", op->kind->name, dict, kernel->indices, name, output,
            op->all->options, type, tuple_of(shape, axes), (Py_ssize_t)(intptr_t)kernel);
    label = kernel->node ? PyObject_GetAttrString(kernel->node, "label") : NULL;
    text = label ? PyUnicode_AsUTF8(label) : NULL;
    if (text) {
        snprintf(kernel->label, sizeof kernel->label, "%s", text);
        theirs = PyObject_GetAttrString(kernel->node, "theirs");
        /* (It refuses some windows that fastpool takes.) */
        if (theirs && PyDict_Check(theirs) &&
            !succeeds(make_theirs(kernel, info, type, theirs)))
            PyObject_SetAttrString(kernel->node, "theirs", Py_None);
    }
    if (!text || !theirs || PyErr_Occurred())
        status = PyErr_Occurred() ? python_error() : no_memory();
    if (status) free_kernel(kernel);
    else *result = kernel;
    Py_XDECREF(theirs);
    Py_XDECREF(label);
    Py_XDECREF(dict);
    PyGILState_Release(state);
    return status;
}

/* Free a plan that nobody uses. With the GIL. */
static void free_plan(Plan *plan) {
    fastpool_plan_release(&plan->plan);
    Py_XDECREF(plan->call);
    free(plan);
}

static int drop(Plan *plan) { return __atomic_sub_fetch(&plan->users, 1, __ATOMIC_ACQ_REL) == 0; }

/* Forget the plans of a kernel from the one after `most` on. With the GIL. */
static void forget_plans(Kernel *kernel, int most) {
    Plan **end, *plan;
    PyThread_acquire_lock(kernel->lock, WAIT_LOCK);
    for (end = &kernel->plans; *end && most > 0; most--) end = &(*end)->next;
    plan = *end;
    *end = NULL;
    PyThread_release_lock(kernel->lock);
    while (plan) {
        Plan *next = plan->next;
        if (drop(plan)) free_plan(plan);
        plan = next;
    }
}

static void ORT_CALL destroy_kernel(void *given) {
    Kernel *kernel = given;
    PyGILState_STATE state;
    if (!enter_python(&state)) return; /* (the objects are gone, and the process ends) */
    forget_plans(kernel, 0);
    free_kernel(kernel);
    PyGILState_Release(state);
}

/* ---- running ---- */

/* Find the plan for what a node sees, and count a user of it. Return NULL if there is none. */
static Plan *find_plan(Kernel *kernel, const Seen *seen) {
    Plan **place, *plan;
    PyThread_acquire_lock(kernel->lock, WAIT_LOCK);
    for (place = &kernel->plans; (plan = *place); place = &plan->next)
        if (plan->seen.type == seen->type && plan->seen.axes == seen->axes &&
            plan->seen.told_count == seen->told_count &&
            !memcmp(plan->seen.shape, seen->shape, seen->axes * sizeof *seen->shape) &&
            !memcmp(plan->seen.told, seen->told, (size_t)seen->told_count * sizeof *seen->told)) {
            *place = plan->next; /* it comes first now */
            plan->next = kernel->plans;
            kernel->plans = plan;
            __atomic_add_fetch(&plan->users, 1, __ATOMIC_RELAXED);
            break;
        }
    PyThread_release_lock(kernel->lock);
    return plan;
}

static OrtStatus *make_plan(Kernel *kernel, const Seen *seen, Plan **made) {
    PyGILState_STATE state;
    PyObject *result = NULL, *call;
    OrtStatus *status = NULL;
    Plan *plan;
    if (!enter_python(&state)) return no_python();
    plan = calloc(1, sizeof *plan);
    if (plan) {
        plan->seen = *seen;
        plan->users = 2;
        result = PyObject_CallMethod(
            kernel->node, "plan", "nniNN", (Py_ssize_t)(intptr_t)&plan->plan,
            (Py_ssize_t)sizeof plan->plan, seen->type, tuple_of(seen->shape, seen->axes),
            tuple_of(seen->told, (size_t)seen->told_count));
        /* a pair: the shape of the output; the function, True if theirs is faster, or None */
        plan->out_axes = -1;
        if (result && PyTuple_CheckExact(result) && PyTuple_GET_SIZE(result) == 2) {
            plan->out_axes = read_numbers(PyTuple_GET_ITEM(result, 0), plan->out, MOST_AXES);
            call = PyTuple_GET_ITEM(result, 1);
            plan->theirs = call == Py_True && kernel->theirs;
            if (PyCallable_Check(call)) plan->call = Py_NewRef(call);
        }
    }
    if (!plan || plan->out_axes < 0) {
        status = PyErr_Occurred() ? python_error() : no_memory();
        if (plan) free_plan(plan);
    } else {
        PyThread_acquire_lock(kernel->lock, WAIT_LOCK);
        plan->next = kernel->plans; /* (another thread may have made the same one: no harm) */
        kernel->plans = plan;
        PyThread_release_lock(kernel->lock);
        forget_plans(kernel, MOST_PLANS);
        *made = plan;
        /* Now all that the process keeps may be too much. */
        Py_XDECREF(PyObject_CallMethod(kernel->node, "keep_within_limit", NULL));
        forget_error();
    }
    Py_XDECREF(result);
    PyGILState_Release(state);
    return status;
}

/* Say that a run needs its plan no longer. */
static void leave_plan(Plan *plan) {
    PyGILState_STATE state;
    if (drop(plan) && enter_python(&state)) {
        free_plan(plan);
        PyGILState_Release(state);
    }
}

static OrtStatus *read_shape(const Kernel *kernel, const OrtValue *value, int *type,
                             int64_t *shape, size_t *axes) {
    OrtShapeInfo *info;
    OrtStatus *status;
    const int64_t *in_place;
    if (minor_version >= SHAPE_REFERENCE_VERSION) {
        TRY(ort(GetTensorElementTypeAndShapeDataReference)(value, type, &in_place, axes));
        if (*axes > MOST_AXES) return refuse(kernel, "an input of more than 8 axes");
        if (*axes) memcpy(shape, in_place, *axes * sizeof *shape);
        return NULL;
    }
    TRY(ort(GetTensorTypeAndShape)(value, &info));
    status = ort(GetTensorElementType)(info, type);
    if (!status) status = ort(GetDimensionsCount)(info, axes);
    if (!status && *axes > MOST_AXES)
        status = refuse(kernel, "an input of more than 8 axes");
    if (!status) status = ort(GetDimensions)(info, shape, *axes);
    release(ReleaseTensorTypeAndShapeInfo_slot, info);
    return status;
}

typedef struct {
    const fastpool_plan *plan;
    const void *x;
    void *y, *indices;
    size_t chunks;
    int code;
} Run;

/* Run a chunk of a plan's tasks. */
static void run_chunk(void *given, size_t chunk) {
    Run *run = given;
    size_t tasks = run->plan->tasks;
    int code = fastpool_run_tasks(run->plan, run->x, run->y, run->indices,
                                  tasks * chunk / run->chunks, tasks * (chunk + 1) / run->chunks);
    if (code) __atomic_store_n(&run->code, code, __ATOMIC_RELAXED);
}

static OrtStatus *run_plan(OrtKernelContext *context, const Kernel *kernel,
                           const fastpool_plan *plan, const void *x, void *y, void *indices) {
    Run run = {plan, x, y, indices, 1, 0};
    size_t chunks = (plan->input_bytes + plan->output_bytes) / CHUNK_BYTES;
    if (chunks > plan->tasks) chunks = plan->tasks;
    if (chunks > MOST_CHUNKS) chunks = MOST_CHUNKS;
    if (chunks > 1) {
        run.chunks = chunks;
        TRY(ort(KernelContext_ParallelFor)(context, run_chunk, chunks, 0, &run));
    } else
        run_chunk(&run, 0);
    return run.code ? refuse(kernel, fastpool_error_text(run.code)) : NULL;
}

static OrtStatus *run_python(const Plan *plan, const void *x, void *y) {
    PyGILState_STATE state;
    OrtStatus *status = NULL;
    PyObject *result;
    if (!enter_python(&state)) return no_python();
    result = PyObject_CallFunction(plan->call, "nn", (Py_ssize_t)(intptr_t)x,
                                   (Py_ssize_t)(intptr_t)y);
    if (!result) status = python_error();
    Py_XDECREF(result);
    PyGILState_Release(state);
    return status;
}

static OrtStatus *run_kernel(OrtKernelContext *context, const Kernel *kernel, const Plan *plan,
                             const OrtValue *x, const OrtValue *places) {
    OrtValue *y, *indices = NULL;
    void *from, *to, *at = NULL;
    int code;
    TRY(ort(KernelContext_GetOutput)(context, 0, plan->out, (size_t)plan->out_axes, &y));
    if (plan->theirs) return ort(InvokeOp)(context, kernel->theirs, &x, 1, &y, 1);
    TRY(ort(GetTensorMutableData)((OrtValue *)x, &from));
    TRY(ort(GetTensorMutableData)(y, &to));
    if (kernel->indices) {
        TRY(ort(KernelContext_GetOutput)(context, 1, plan->out, (size_t)plan->out_axes, &indices));
        TRY(ort(GetTensorMutableData)(indices, &at));
    }
    if (plan->call) return run_python(plan, from, to);
    if (!places) return run_plan(context, kernel, &plan->plan, from, to, at);
    TRY(ort(GetTensorMutableData)((OrtValue *)places, &at));
    code = fastpool_max_unpool(&plan->plan, from, at, to, 1, FASTPOOL_APART);
    return code ? refuse(kernel, fastpool_error_text(code)) : NULL;
}

/* Read the other inputs of an unpooling: indices, in the shape of x, and output_shape. */
static OrtStatus *read_places(OrtKernelContext *context, const Kernel *kernel, Seen *seen,
                              const OrtValue **places) {
    const OrtValue *wanted = NULL;
    int64_t shape[MOST_AXES], *values;
    size_t axes, inputs;
    int type;
    TRY(ort(KernelContext_GetInput)(context, 1, places));
    TRY(read_shape(kernel, *places, &type, shape, &axes));
    if (type != INT64 || axes != seen->axes || memcmp(shape, seen->shape, axes * sizeof *shape))
        return refuse(kernel, "indices: expected int64 in the shape of x");
    TRY(ort(KernelContext_GetInputCount)(context, &inputs));
    if (inputs > 2) TRY(ort(KernelContext_GetInput)(context, 2, &wanted));
    if (!wanted) return NULL;
    TRY(read_shape(kernel, wanted, &type, shape, &axes));
    if (type != INT64 || axes != 1 || shape[0] != (int64_t)seen->axes)
        return refuse(kernel, "output_shape: expected an int64 per axis of x");
    TRY(ort(GetTensorMutableData)((OrtValue *)wanted, (void **)&values));
    seen->told_count = (int)seen->axes;
    memcpy(seen->told, values, seen->axes * sizeof *values);
    return NULL;
}

/* Read the scale and the zero point of x, and those of y: the bits of a float, and a byte. */
static OrtStatus *read_scales(OrtKernelContext *context, const Kernel *kernel, Seen *seen) {
    static const char *const names[] = {"x_scale", "x_zero_point", "y_scale", "y_zero_point"};
    size_t inputs;
    TRY(ort(KernelContext_GetInputCount)(context, &inputs));
    seen->told_count = 4;
    for (int i = 0; i < 4; i++) {
        const OrtValue *value = NULL;
        int64_t shape[MOST_AXES], count = 1;
        size_t axes;
        int type, is_scale = i % 2 == 0;
        uint32_t bits = 0;
        void *data;
        char text[80];
        if ((size_t)i + 1 < inputs)
            TRY(ort(KernelContext_GetInput)(context, (size_t)i + 1, &value));
        seen->told[i] = 0;
        if (!value && !is_scale) continue; /* a zero point of 0 */
        if (value) {
            TRY(read_shape(kernel, value, &type, shape, &axes));
            for (size_t axis = 0; axis < axes; axis++) count *= shape[axis];
        }
        if (!value || count != 1 || type != (is_scale ? FLOATS : seen->type)) {
            snprintf(text, sizeof text, "%s: expected one %s", names[i],
                     is_scale ? "float" : "element of the type of x");
            return refuse(kernel, text);
        }
        TRY(ort(GetTensorMutableData)((OrtValue *)value, &data));
        memcpy(&bits, data, is_scale ? 4 : 1);
        seen->told[i] = bits;
    }
    return NULL;
}

static OrtStatus *ORT_CALL compute(void *given, OrtKernelContext *context) {
    Kernel *kernel = given;
    const OrtValue *x, *places = NULL;
    Seen seen;
    OrtStatus *status;
    Plan *plan;
    TRY(ort(KernelContext_GetInput)(context, 0, &x));
    TRY(read_shape(kernel, x, &seen.type, seen.shape, &seen.axes));
    seen.told_count = 0;
    if (kernel->kind->others == PLACES) TRY(read_places(context, kernel, &seen, &places));
    if (kernel->kind->others == SCALES) TRY(read_scales(context, kernel, &seen));
    plan = find_plan(kernel, &seen);
    if (!plan) TRY(make_plan(kernel, &seen, &plan));
    status = run_kernel(context, kernel, plan, x, places);
    leave_plan(plan);
    return status;
}

/* ---- shapes, when a model is loaded ---- */

static OrtStatus *infer_attributes(PyObject *dict, const Kind *kind,
                                   const OrtShapeInferContext *context) {
    for (int i = 0; i < ATTRIBUTES; i++) {
        int64_t numbers[MOST_NUMBERS];
        char text[32] = "";
        size_t size = 0;
        const OrtOpAttr *attribute;
        int type = attributes[i].type;
        void *to = type == ATTR_STRING ? (void *)text : numbers;
        size_t room = type == ATTR_STRING ? sizeof text - 1 : sizeof numbers;
        if (!strchr(kind->attributes, attributes[i].letter) ||
            !succeeds(ort(ShapeInferContext_GetAttribute)(context, attributes[i].name, &attribute)))
            continue;
        if (type == ATTR_INT) room = sizeof *numbers;
        TRY(ort(ReadOpAttr)(attribute, type, to, room, &size));
        if (set_item(dict, attributes[i].name,
                     attribute_value(type, numbers, size / sizeof *numbers, text)) < 0)
            return python_error();
    }
    return NULL;
}

/* Return a list of the axes of an input: a number, or the name of one that is not known. */
static PyObject *list_axes(const OrtShapeInfo *info, size_t axes) {
    int64_t shape[MOST_AXES];
    const char *names[MOST_AXES];
    PyObject *list;
    if (axes > MOST_AXES || !succeeds(ort(GetDimensions)(info, shape, axes)) ||
        !succeeds(ort(GetSymbolicDimensions)(info, names, axes)))
        axes = 0;
    list = PyList_New((Py_ssize_t)axes);
    for (size_t i = 0; list && i < axes; i++) {
        PyObject *item = shape[i] >= 0 ? PyLong_FromLongLong(shape[i]) : text_of(names[i]);
        if (!item) Py_CLEAR(list);
        else PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    return list;
}

/* Set the type and shape of all outputs, whose axes are a list of numbers and names. */
static OrtStatus *set_outputs(const OrtShapeInferContext *context, const Kind *kind, int type,
                              PyObject *axes) {
    int64_t shape[MOST_AXES];
    const char *names[MOST_AXES];
    Py_ssize_t count = PyList_GET_SIZE(axes);
    OrtShapeInfo *info;
    OrtStatus *status;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *axis = PyList_GET_ITEM(axes, i);
        int named = PyUnicode_Check(axis);
        shape[i] = named ? -1 : PyLong_AsLongLong(axis);
        names[i] = named ? PyUnicode_AsUTF8(axis) : "";
        if (!names[i] || PyErr_Occurred()) return python_error();
    }
    TRY(ort(CreateTensorTypeAndShapeInfo)(&info));
    status = ort(SetTensorElementType)(info, type);
    if (!status) status = ort(SetDimensions)(info, shape, (size_t)count);
    if (!status) status = ort(SetSymbolicDimensions)(info, names, (size_t)count);
    if (!status) status = ort(ShapeInferContext_SetOutputTypeShape)(context, 0, info);
    if (!status && kind->outputs > 1 && minor_version >= SECOND_SHAPE_VERSION &&
        !(status = ort(SetTensorElementType)(info, INT64)))
        /* (an error if the node has one output) */
        succeeds(ort(ShapeInferContext_SetOutputTypeShape)(context, 1, info));
    release(ReleaseTensorTypeAndShapeInfo_slot, info);
    return status;
}

static OrtStatus *ORT_CALL infer_shapes(const OrtCustomOp *base, OrtShapeInferContext *context) {
    const Kind *kind = ((const Operator *)base)->kind;
    OrtShapeInfo *info;
    OrtStatus *status;
    PyObject *dict, *axes = NULL;
    PyGILState_STATE state;
    size_t count, inputs = 1;
    int type;
    TRY(ort(ShapeInferContext_GetInputCount)(context, &inputs));
    TRY(ort(ShapeInferContext_GetInputTypeShape)(context, 0, &info)); /* (the context owns it) */
    TRY(ort(GetTensorElementType)(info, &type));
    TRY(ort(GetDimensionsCount)(info, &count));
    if (!enter_python(&state)) return no_python();
    dict = PyDict_New();
    status = dict ? infer_attributes(dict, kind, context) : python_error();
    if (!status) {
        axes = PyObject_CallMethod(inside, "output_axes", "sOiN", kind->name, dict,
                                   kind->others == PLACES && inputs > 2, list_axes(info, count));
        if (!axes) status = python_error();
        else if (PyList_Check(axes) && PyList_GET_SIZE(axes) <= MOST_AXES && PyList_GET_SIZE(axes))
            status = set_outputs(context, kind, type, axes);
    }
    Py_XDECREF(axes);
    Py_XDECREF(dict);
    PyGILState_Release(state);
    return status;
}

/* ---- registering ---- */

static const char *ORT_CALL get_name(const OrtCustomOp *op) {
    return ((const Operator *)op)->kind->name;
}
static const char *ORT_CALL get_provider(const OrtCustomOp *op) {
    (void)op;
    return NULL; /* the CPU */
}
static int ORT_CALL get_input_type(const OrtCustomOp *op, size_t i) {
    const Kind *kind = ((const Operator *)op)->kind;
    if (kind->others == SCALES && i % 2) return FLOATS;
    return i && kind->others == PLACES ? INT64 : kind->type; /* (UNDEFINED is any) */
}
static int ORT_CALL get_output_type(const OrtCustomOp *op, size_t i) {
    return i ? INT64 : ((const Operator *)op)->kind->type;
}
static size_t ORT_CALL get_inputs(const OrtCustomOp *op) {
    return (size_t)((const Operator *)op)->kind->inputs;
}
static size_t ORT_CALL get_outputs(const OrtCustomOp *op) {
    return (size_t)((const Operator *)op)->kind->outputs;
}
static int ORT_CALL get_input_need(const OrtCustomOp *op, size_t i) {
    int others = ((const Operator *)op)->kind->others;
    return others != NOTHING && i && i % 2 == 0 ? OPTIONAL : REQUIRED; /* shape, zero points */
}
static int ORT_CALL get_output_need(const OrtCustomOp *op, size_t i) {
    (void)op;
    return i ? OPTIONAL : REQUIRED;
}
static int ORT_CALL get_memory(const OrtCustomOp *op, size_t i) {
    (void)op, (void)i;
    return 0; /* the default */
}
static int ORT_CALL get_one(const OrtCustomOp *op) {
    (void)op;
    return 1;
}
static int ORT_CALL get_start(const OrtCustomOp *op) { return ((const Operator *)op)->kind->since; }
static int ORT_CALL get_end(const OrtCustomOp *op) {
    return ((const Operator *)op)->kind->microsoft ? 1 : 1000;
}
static size_t ORT_CALL get_no_pairs(int **a, int **b) {
    *a = *b = NULL;
    return 0;
}
static void ORT_CALL release_no_pairs(int *a, int *b) { (void)a, (void)b; }

static const OrtCustomOp callbacks = {
    .version = API_VERSION,
    .GetName = get_name,
    .GetExecutionProviderType = get_provider,
    .GetInputType = get_input_type,
    .GetInputTypeCount = get_inputs,
    .GetOutputType = get_output_type,
    .GetOutputTypeCount = get_outputs,
    .KernelDestroy = destroy_kernel,
    .GetInputCharacteristic = get_input_need,
    .GetOutputCharacteristic = get_output_need,
    .GetInputMemoryType = get_memory,
    .GetVariadicInputMinArity = get_one,
    .GetVariadicInputHomogeneity = get_one,
    .GetVariadicOutputMinArity = get_one,
    .GetVariadicOutputHomogeneity = get_one,
    .CreateKernelV2 = create_kernel,
    .KernelComputeV2 = compute,
    .InferOutputShapeFn = infer_shapes,
    .GetStartVersion = get_start,
    .GetEndVersion = get_end,
    .GetMayInplace = get_no_pairs,
    .ReleaseMayInplace = release_no_pairs,
    .GetAliasMap = get_no_pairs,
    .ReleaseAliasMap = release_no_pairs,
};

/* Return the operators for some options. With the GIL, which guards the list. */
static OrtStatus *operators_for(const char *options, Operators **found) {
    static Operators *all;
    Operators *made;
    for (*found = all; *found; *found = (*found)->next)
        if (!strcmp((*found)->options, options)) return NULL;
    made = calloc(1, sizeof *made);
    if (!made) return no_memory();
    strcpy(made->options, options);
    TRY(ort(CreateCustomOpDomain)("", &made->domains[0])); /* the standard's */
    TRY(ort(CreateCustomOpDomain)("com.microsoft", &made->domains[1]));
    for (int i = 0; i < KINDS; i++) {
        made->table[i] = (Operator){callbacks, &kinds[i], made};
        TRY(ort(CustomOpDomain_Add)(made->domains[kinds[i].microsoft], &made->table[i].base));
    }
    made->next = all;
    *found = all = made;
    return NULL;
}

/* Add "name=value" for each of the session's own options. */
static OrtStatus *read_options(const OrtSessionOptions *session, char *options) {
    static const char *const names[] = {"fastpool.numerics", "fastpool.nan", "fastpool.select",
                                        "fastpool.domains", "fastpool.report"};
    char *end = options, text[80];
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        int has = 0;
        size_t size = OPTION_BYTES;
        TRY(ort(HasSessionConfigEntry)(session, names[i], &has));
        if (!has) continue;
        end += sprintf(end, "%s=", names[i]);
        if (!succeeds(ort(GetSessionConfigEntry)(session, names[i], end, &size)) ||
            strchr(end, '\n')) {
            snprintf(text, sizeof text, "%s: expected a word", names[i]);
            return fail(INVALID_ARGUMENT, text);
        }
        end += strlen(end);
        strcpy(end++, "\n");
    }
    return NULL;
}

static OrtStatus *add_operators(OrtSessionOptions *session) {
    char options[NAME_BYTES] = "";
    Operators *operators = NULL;
    PyObject *answer;
    long count;
    int has = 0;
    /* Registered twice, a domain would be an error. */
    TRY(ort(HasSessionConfigEntry)(session, "fastpool.registered", &has));
    if (has) return NULL;
    TRY(read_options(session, options));
    answer = PyObject_CallMethod(inside, "domain_count", "s", options); /* how many */
    count = answer ? PyLong_AsLong(answer) : -1;
    Py_XDECREF(answer);
    if (count < 0) return python_error();
    TRY(ort(AddSessionConfigEntry)(session, "fastpool.registered", "1"));
    if (count) TRY(operators_for(options, &operators));
    for (int i = 0; i < count && i < 2; i++)
        TRY(ort(AddCustomOpDomain)(session, operators->domains[i]));
    return NULL;
}

EXPORT OrtStatus *ORT_CALL RegisterCustomOps(OrtSessionOptions *session, const OrtApiBase *base) {
    int major = 0, minor = 0;
    OrtStatus *status;
    PyGILState_STATE state;
    sscanf(base->GetVersionString(), "%d.%d", &major, &minor);
    if (!api || minor_version != minor) {
        minor_version = minor;
        api = (void *const *)base->GetApi(minor < SHAPE_REFERENCE_VERSION ? API_VERSION
                                                                         : SHAPE_REFERENCE_VERSION);
    }
    if (!api) return NULL; /* (onnxruntime has printed why) */
    if (major != 1 || minor < OLDEST_MINOR)
        return fail(NOT_IMPLEMENTED, "fastpool needs onnxruntime 1.20 or a later 1.x");
    if (!enter_python(&state))
        return fail(FAIL, "fastpool: call fastpool.onnx.library() before a session loads that");
    status = add_operators(session);
    PyGILState_Release(state);
    return status;
}

/* ---- the module ---- */

/* Forget the plans of a kernel, by its address, but the latest. */
static PyObject *forget(PyObject *module, PyObject *address) {
    Kernel *kernel = PyLong_AsVoidPtr(address);
    (void)module;
    if (!kernel) return NULL;
    forget_plans(kernel, 1);
    Py_RETURN_NONE;
}

static PyObject *set_inside(PyObject *module, PyObject *given) {
    (void)module;
    Py_XDECREF(inside);
    inside = Py_NewRef(given);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"forget", forget, METH_O, NULL}, {"set_inside", set_inside, METH_O, NULL}, {0}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_runtime", NULL, -1, methods, 0, 0, 0, 0};
PyMODINIT_FUNC PyInit__runtime(void) {
    PyObject *module = PyModule_Create(&definition), *since = PyDict_New();
    for (int i = 0; since && i < KINDS; i++)
        if (set_item(since, kinds[i].name, PyLong_FromLong(kinds[i].since)) < 0) Py_CLEAR(since);
    if (!module || !since || PyModule_AddObjectRef(module, "SINCE", since) < 0 ||
        PyModule_AddIntConstant(module, "MOST_PLANS", MOST_PLANS) < 0)
        Py_CLEAR(module);
#ifdef Py_GIL_DISABLED
    if (module) PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    Py_XDECREF(since);
    return module;
}
