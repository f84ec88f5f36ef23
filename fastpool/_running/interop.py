"""View arrays of other libraries as NumPy arrays, without a copy wherever they allow it.

No other library is imported: an object of one only comes from a program that has imported it.
"""

import sys
from inspect import signature

import numpy as np

# DLPack device types whose memory the CPU reads: its own, and memory pinned by CUDA and ROCm.
_HOST = (1, 3, 11)
_DEVICES = {
    2: "CUDA",
    4: "OpenCL",
    7: "Vulkan",
    8: "Metal",
    10: "ROCm",
    13: "CUDA managed",
    14: "oneAPI",
    15: "WebGPU",
    16: "Hexagon",
}

# Types with their own front end: the module of the type, its name, and fastpool's module.
_ROUTES = {"dask.array": ("Array", "dask"), "xarray": ("DataArray", "xarray")}


def routed(function, x, arguments):
    """Call the front end for the type of `x` and return its results; None if there is none.

    It has a function with the name of `function`. That one gets the arguments that are not
    defaults. If it does not take them, raise TypeError. `arguments` are the variables of
    `function`, of which `unknown` and `more` are known to be empty.
    """
    for library, (kind, route) in _ROUTES.items():
        if issubclass(type(x), getattr(sys.modules.get(library), kind, ())):
            for name in ("out", "out_indices"):
                if arguments.get(name) is not None:
                    got = type(arguments[name]).__name__
                    raise TypeError(f"{name}: expected None if x is a {library}.{kind}, got {got}")
            usual = function.__kwdefaults__
            given = {
                name: value
                for name, value in arguments.items()
                if name not in ("unknown", "more")
                and (name not in usual or value is not usual[name])
            }
            # The package imports the front end on first access.
            module = getattr(sys.modules["fastpool"], route)
            front = getattr(module, function.__name__, None)
            if front is None:
                raise TypeError(
                    f"x: {module.__name__} has no {function.__name__} of a {library}.{kind}; "
                    f"{module.__name__}.coarsen reduces blocks, and x.data is an array"
                )
            try:
                return front(**given)
            except TypeError:
                name = f"{module.__name__}.{function.__name__}"
                _check_arguments(front, given, f"{name} pools {library}.{kind}")
                raise
    return None


def _check_arguments(front, given, why):
    """Raise TypeError if a front end's function cannot be called with these arguments."""
    try:
        signature(front).bind(**given)
    except TypeError as error:
        raise TypeError(f"x: {why}, and its arguments differ: {error}") from None


def as_array(x, name):
    """Return `x` as an ndarray, without a copy if `x` exposes its memory.

    Refuse arrays on another device, and arrays with a mask or nulls, which would be ignored.
    """
    if issubclass(type(x), np.ndarray):
        return _plain(x, name)
    if x is None:  # NumPy would make an array of one object
        raise TypeError(f"{name}: expected an array, got None")
    if _is_tensor(x):
        return _from_tensor(x, name)
    nulls = getattr(x, "null_count", 0)  # pyarrow would give NumPy floats and NaN
    if isinstance(nulls, int) and nulls:
        raise TypeError(f"{name}: has {nulls} nulls; fill them first")
    _check_device(x, name)
    if hasattr(x, "__dlpack__") and not hasattr(x, "__array__"):
        return np.from_dlpack(x)
    # This also takes dtypes that DLPack or NumPy's import of it lacks. `__array__` may return a
    # masked array.
    try:
        return _plain(np.asanyarray(x), name)
    except ValueError as error:  # lists of different lengths
        raise ValueError(f"{name}: {error}") from None


def as_output(out, name):
    """Return a plain array over the memory of `out`, which is to be written."""
    if issubclass(type(out), np.ndarray):
        return _plain(out, name)
    if _is_tensor(out):
        return _from_output_tensor(out, name)
    if hasattr(out, "__dlpack__"):
        _check_device(out, name)
        return np.from_dlpack(out)
    try:
        return np.asarray(memoryview(out))
    except TypeError:
        raise TypeError(
            f"{name}: expected a numpy.ndarray, or another array that lets its memory be written "
            f"(by DLPack or the buffer protocol), got {type(out).__name__}"
        ) from None


def _plain(array, name):
    """Return an exact ndarray over the memory of `array`.

    A subclass may override methods and attributes that NumPy and the kernels rely on.
    """
    if type(array) is np.ndarray:
        return array
    if issubclass(type(array), np.ma.MaskedArray):
        raise TypeError(f"{name}: a masked array's mask would be ignored; fill it first")
    return np.ndarray.view(array, np.ndarray)


def bump_versions(*outputs):
    """Tell autograd that the tensors among these outputs were written; an output may be None.

    Call it after the last write. A backward pass that saved such a tensor then raises, as after
    torch's in-place functions. Otherwise it would compute with the new values.
    """
    for out in outputs:
        if out is not None and not isinstance(out, np.ndarray) and _is_tensor(out):
            sys.modules["torch"].autograd.graph.increment_version(out)


def _is_tensor(x):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, getattr(torch, "Tensor", ()))


def _from_output_tensor(tensor, name):
    torch = sys.modules["torch"]
    # It has no version that could be increased. torch's in-place functions refuse it too.
    if tensor.is_inference() and not torch.is_inference_mode_enabled():
        raise TypeError(
            f"{name}: expected a tensor that may change here, got an inference-mode tensor outside "
            "inference_mode; clone it first"
        )
    return _from_tensor(tensor, name)


def _from_tensor(tensor, name):
    """Return an array over a tensor's memory.

    DLPack is not used: it ignores that a tensor is negated, and exports the memory that a fake
    tensor does not have.
    """
    torch = sys.modules["torch"]
    if tensor.device.type != "cpu":
        raise TypeError(f"{name}: expected a tensor on the CPU, got one on {tensor.device}")
    if torch._is_functional_tensor(tensor):  # its memory is not that of the tensor it wraps
        raise TypeError(f"{name}: expected a tensor with memory, got one of functionalize")
    if tensor.requires_grad and torch.is_grad_enabled():
        raise TypeError(
            f"{name}: expected a tensor without a gradient, got one that requires grad; "
            f"fastpool.torch has functions that differentiate, and {name}.detach() has no gradient"
        )
    if torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None:
        raise TypeError(
            f"{name}: expected a tensor without a tangent, which would be ignored; "
            "fastpool.torch differentiates"
        )
    try:
        if tensor.dtype is not torch.bfloat16:
            return tensor.numpy()
        bits = tensor.view(torch.int16).numpy()
    except (RuntimeError, TypeError) as error:  # it is sparse, or not numeric
        raise TypeError(f"{name}: {error}") from error
    return bits.view(bfloat16(name))


def bfloat16(name):
    try:
        import ml_dtypes
    except ModuleNotFoundError:
        raise ImportError(f"{name}: bfloat16 needs ml_dtypes: pip install ml_dtypes") from None
    return ml_dtypes.bfloat16


def _check_device(x, name):
    """Raise if DLPack says that the CPU cannot read the memory of an array."""
    if hasattr(x, "__dlpack_device__"):
        kind, number = map(int, x.__dlpack_device__())
        if kind not in _HOST:
            device = f"{_DEVICES.get(kind, f'DLPack device {kind}')}:{number}"
            raise TypeError(f"{name}: expected an array on the CPU, got one on {device}")
