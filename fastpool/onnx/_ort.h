/* What _runtime.c uses of onnxruntime's C interface.
 *
 * The interface is a table of functions that only grows at its end, and a struct of functions that
 * an operator offers. So no header of onnxruntime is needed, and one build works with every version
 * from 1.20 on. Numbers, order and arguments are those of onnxruntime_c_api.h.
 */
#ifndef FASTPOOL_ORT_H
#define FASTPOOL_ORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32
#define ORT_CALL __stdcall
#define EXPORT __declspec(dllexport)
#else
#define ORT_CALL
#define EXPORT __attribute__((visibility("default")))
#endif

typedef struct OrtStatus OrtStatus;
typedef struct OrtApi OrtApi;
typedef struct OrtKernelInfo OrtKernelInfo;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtShapeInferContext OrtShapeInferContext;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtCustomOpDomain OrtCustomOpDomain;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtShapeInfo OrtShapeInfo; /* OrtTensorTypeAndShapeInfo */
typedef struct OrtOpAttr OrtOpAttr;
typedef struct OrtOp OrtOp;
typedef struct OrtValue OrtValue;

typedef struct {
    const OrtApi *(ORT_CALL *GetApi)(uint32_t version);
    const char *(ORT_CALL *GetVersionString)(void);
} OrtApiBase;

enum { FAIL = 1, INVALID_ARGUMENT = 2, NOT_IMPLEMENTED = 9 };     /* OrtErrorCode */
enum { UNDEFINED = 0, FLOATS = 1, UINT8 = 2, INT8 = 3, INT64 = 7 }; /* element types */
enum { ATTR_INT = 1, ATTR_INTS, ATTR_FLOAT, ATTR_FLOATS, ATTR_STRING }; /* OrtOpAttrType */
enum { REQUIRED = 0, OPTIONAL = 1 };
enum {
    OLDEST_MINOR = 20,
    API_VERSION = 17,             /* that every one of these has */
    SHAPE_REFERENCE_VERSION = 24, /* has GetTensorElementTypeAndShapeDataReference */
    SECOND_SHAPE_VERSION = 28     /* the shape of an output that a node lacks ends no process */
};

typedef struct OrtCustomOp OrtCustomOp;
struct OrtCustomOp {
    uint32_t version;
    void *(ORT_CALL *CreateKernel)(const OrtCustomOp *, const OrtApi *, const OrtKernelInfo *);
    const char *(ORT_CALL *GetName)(const OrtCustomOp *);
    const char *(ORT_CALL *GetExecutionProviderType)(const OrtCustomOp *);
    int (ORT_CALL *GetInputType)(const OrtCustomOp *, size_t);
    size_t (ORT_CALL *GetInputTypeCount)(const OrtCustomOp *);
    int (ORT_CALL *GetOutputType)(const OrtCustomOp *, size_t);
    size_t (ORT_CALL *GetOutputTypeCount)(const OrtCustomOp *);
    void (ORT_CALL *KernelCompute)(void *, OrtKernelContext *);
    void (ORT_CALL *KernelDestroy)(void *);
    int (ORT_CALL *GetInputCharacteristic)(const OrtCustomOp *, size_t);
    int (ORT_CALL *GetOutputCharacteristic)(const OrtCustomOp *, size_t);
    int (ORT_CALL *GetInputMemoryType)(const OrtCustomOp *, size_t);
    int (ORT_CALL *GetVariadicInputMinArity)(const OrtCustomOp *);
    int (ORT_CALL *GetVariadicInputHomogeneity)(const OrtCustomOp *);
    int (ORT_CALL *GetVariadicOutputMinArity)(const OrtCustomOp *);
    int (ORT_CALL *GetVariadicOutputHomogeneity)(const OrtCustomOp *);
    OrtStatus *(ORT_CALL *CreateKernelV2)(const OrtCustomOp *, const OrtApi *,
                                          const OrtKernelInfo *, void **);
    OrtStatus *(ORT_CALL *KernelComputeV2)(void *, OrtKernelContext *);
    OrtStatus *(ORT_CALL *InferOutputShapeFn)(const OrtCustomOp *, OrtShapeInferContext *);
    int (ORT_CALL *GetStartVersion)(const OrtCustomOp *);
    int (ORT_CALL *GetEndVersion)(const OrtCustomOp *);
    size_t (ORT_CALL *GetMayInplace)(int **, int **);
    void (ORT_CALL *ReleaseMayInplace)(int *, int *);
    size_t (ORT_CALL *GetAliasMap)(int **, int **);
    void (ORT_CALL *ReleaseAliasMap)(int *, int *);
};
_Static_assert(sizeof(OrtCustomOp) == 26 * sizeof(void *), "as in onnxruntime 1.17");
_Static_assert(offsetof(OrtCustomOp, CreateKernelV2) == 17 * sizeof(void *), "as in 1.16");

/* Name a slot of the table, its number, and its arguments. It returns an OrtStatus, or releases. */
#define SLOT(name, number, ...)                                                                   \
    typedef OrtStatus *(ORT_CALL *name##_t)(__VA_ARGS__);                                         \
    enum { name##_slot = number };
SLOT(CreateStatus, 0, int, const char *)
SLOT(CreateCustomOpDomain, 26, const char *, OrtCustomOpDomain **)
SLOT(CustomOpDomain_Add, 27, OrtCustomOpDomain *, const OrtCustomOp *)
SLOT(AddCustomOpDomain, 28, OrtSessionOptions *, OrtCustomOpDomain *)
SLOT(GetTensorMutableData, 51, OrtValue *, void **)
SLOT(CastTypeInfoToTensorInfo, 55, const OrtTypeInfo *, const OrtShapeInfo **)
SLOT(CreateTensorTypeAndShapeInfo, 57, OrtShapeInfo **)
SLOT(SetTensorElementType, 58, OrtShapeInfo *, int)
SLOT(SetDimensions, 59, OrtShapeInfo *, const int64_t *, size_t)
SLOT(GetTensorElementType, 60, const OrtShapeInfo *, int *)
SLOT(GetDimensionsCount, 61, const OrtShapeInfo *, size_t *)
SLOT(GetDimensions, 62, const OrtShapeInfo *, int64_t *, size_t)
SLOT(GetSymbolicDimensions, 63, const OrtShapeInfo *, const char **, size_t)
SLOT(GetTensorTypeAndShape, 65, const OrtValue *, OrtShapeInfo **)
SLOT(KernelInfoGetAttribute_float, 85, const OrtKernelInfo *, const char *, float *)
SLOT(KernelInfoGetAttribute_int64, 86, const OrtKernelInfo *, const char *, int64_t *)
SLOT(KernelInfoGetAttribute_string, 87, const OrtKernelInfo *, const char *, char *, size_t *)
SLOT(KernelContext_GetInputCount, 88, const OrtKernelContext *, size_t *)
SLOT(KernelContext_GetInput, 90, const OrtKernelContext *, size_t, const OrtValue **)
SLOT(KernelContext_GetOutput, 91, OrtKernelContext *, size_t, const int64_t *, size_t, OrtValue **)
SLOT(ReleaseStatus, 93, OrtStatus *)
SLOT(ReleaseTypeInfo, 98, OrtTypeInfo *)
SLOT(ReleaseTensorTypeAndShapeInfo, 99, OrtShapeInfo *)
SLOT(AddSessionConfigEntry, 130, OrtSessionOptions *, const char *, const char *)
SLOT(KernelInfoGetAttributeArray_int64, 163, const OrtKernelInfo *, const char *, int64_t *,
     size_t *)
SLOT(CreateOpAttr, 211, const char *, const void *, int, int, OrtOpAttr **)
SLOT(ReleaseOpAttr, 212, OrtOpAttr *)
SLOT(CreateOp, 213, const OrtKernelInfo *, const char *, const char *, int, const char **,
     const int *, int, const OrtOpAttr *const *, int, int, int, OrtOp **)
SLOT(InvokeOp, 214, const OrtKernelContext *, const OrtOp *, const OrtValue *const *, int,
     OrtValue *const *, int)
SLOT(ReleaseOp, 215, OrtOp *)
SLOT(KernelInfo_GetOutputCount, 231, const OrtKernelInfo *, size_t *)
SLOT(KernelInfo_GetOutputName, 233, const OrtKernelInfo *, size_t, char *, size_t *)
SLOT(KernelInfo_GetInputTypeInfo, 234, const OrtKernelInfo *, size_t, OrtTypeInfo **)
SLOT(HasSessionConfigEntry, 237, const OrtSessionOptions *, const char *, int *)
SLOT(GetSessionConfigEntry, 238, const OrtSessionOptions *, const char *, char *, size_t *)
SLOT(KernelInfo_GetNodeName, 244, const OrtKernelInfo *, char *, size_t *)
SLOT(ShapeInferContext_GetInputCount, 267, const OrtShapeInferContext *, size_t *)
SLOT(ShapeInferContext_GetInputTypeShape, 268, const OrtShapeInferContext *, size_t,
     OrtShapeInfo **)
SLOT(ShapeInferContext_GetAttribute, 269, const OrtShapeInferContext *, const char *,
     const OrtOpAttr **)
SLOT(ShapeInferContext_SetOutputTypeShape, 270, const OrtShapeInferContext *, size_t,
     const OrtShapeInfo *)
SLOT(SetSymbolicDimensions, 271, OrtShapeInfo *, const char **, size_t)
SLOT(ReadOpAttr, 272, const OrtOpAttr *, int, void *, size_t, size_t *)
SLOT(KernelContext_ParallelFor, 274, const OrtKernelContext *, void (*)(void *, size_t), size_t,
     size_t, void *)
SLOT(GetTensorElementTypeAndShapeDataReference, 414, const OrtValue *, int *, const int64_t **,
     size_t *)

#endif
