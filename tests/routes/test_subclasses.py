"""Of a subclass of ndarray the true memory is used, and masked arrays are refused."""

import contextlib
import importlib

import numpy as np
import pytest

import cases
import fastpool

X = np.arange(2 * 3 * 8 * 8, dtype=np.float32).reshape(2, 3, 8, 8) % 97
Y, INDICES = fastpool.max_pool(X, 2, strides=2, return_indices=True)

POOL = {"kernel_shape": 2, "strides": 2}
# What names an argument: a call of which it is one, with the array there and right ones elsewhere.
ARGUMENTS = {
    "x": lambda x: fastpool.max_pool(x, **POOL),
    "out": lambda out: fastpool.max_pool(X, **POOL, out=out),
    "out_indices": lambda out: fastpool.max_pool(X, **POOL, return_indices=True, out_indices=out),
    "onnx x": lambda x: fastpool.onnx.max_pool(x, kernel_shape=[2, 2], strides=[2, 2]),
    "onnx out": lambda out: fastpool.onnx.max_pool(
        X, kernel_shape=[2, 2], strides=[2, 2], activation="Relu", out=out
    ),
    "onnx average x": lambda x: fastpool.onnx.average_pool(x, kernel_shape=[2, 2]),
    "onnx average out": lambda out: fastpool.onnx.average_pool(
        X, kernel_shape=[2, 2], strides=[2, 2], out=out
    ),
    "openvino out": lambda out: fastpool.openvino.max_pool(
        X, kernel=[2, 2], strides=[2, 2], auto_pad="valid", version=1, out=out
    ),
    "openvino out_indices": lambda out: fastpool.openvino.max_pool(
        X, kernel=[2, 2], strides=[2, 2], auto_pad="valid", out_indices=out
    ),
    "unpool x": lambda x: fastpool.max_unpool(x, INDICES, **POOL),
    "unpool indices": lambda indices: fastpool.max_unpool(Y, indices, **POOL),
    "unpool out": lambda out: fastpool.max_unpool(Y, INDICES, **POOL, out=out),
    "onnx unpool out": lambda out: fastpool.onnx.max_unpool(
        Y, INDICES, kernel_shape=[2, 2], strides=[2, 2], out=out
    ),
    "onnx unpool activation out": lambda out: fastpool.onnx.max_unpool(
        Y, INDICES, kernel_shape=[2, 2], strides=[2, 2], activation="Relu", out=out
    ),
}


def right_for(argument):
    """Return an array that is legal as this argument. Outputs are full of 77, unlike any result."""
    kind = argument.split()[-1]
    if kind == "out":
        return np.full_like(X if "unpool" in argument else Y, 77)
    if kind == "out_indices":
        return np.full_like(INDICES, 77)
    return {"x": Y if "unpool" in argument else X, "indices": INDICES}[kind].copy()


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_masked_arrays_are_refused(argument, masked, hard):
    """A mask would be ignored as an input. As a result it would stay over what is written, or keep
    it from being written.
    """
    array = right_for(argument)
    given = np.ma.array(array, mask=np.arange(array.size) % 2 if masked else False, hard_mask=hard)
    before = given.data.copy()
    message = f"^{argument.split()[-1]}: a masked array's mask would be ignored"
    with pytest.raises(TypeError, match=message):
        ARGUMENTS[argument](given)
    assert (given.data == before).all()


def test_what_becomes_a_masked_array_is_refused():
    """As a variable of netCDF4 does."""

    class Variable:
        def __array__(self, dtype=None, copy=None):
            return np.ma.array(X, mask=X > 50)

    with pytest.raises(TypeError, match="^x: a masked array's mask would be ignored"):
        fastpool.max_pool(Variable(), 2)


LIES = {
    "flags": [None, {}, "WRITEABLE"],
    "shape": [(), (1, 1, 1, 1), (2, 3, 99, 99), None],
    "strides": [(), (0, 0, 0, 0), (2**40,) * 4, None],
    "dtype": [np.dtype("int8"), np.dtype("float64"), np.dtype("O"), "float32", None],
    "itemsize": [0, 1, 2**40],
    "size": [0, 2**40],
    "nbytes": [0, 2**40],
    "ndim": [0, 64, -1],
    "data": [None, memoryview(b"")],
    "base": [None],
    "ctypes": [None],
    "__array_interface__": [{}, {"shape": (9,), "typestr": "<f4", "data": (8, False)}],
    "__array_struct__": [None],
    "__array_priority__": [float("nan")],
    "__class__": [int, np.ndarray, np.ma.MaskedArray],
    "null_count": [5],
    "device": ["cuda"],
}
METHODS = [
    *("view", "astype", "copy", "reshape", "transpose", "ravel", "flatten", "fill", "item"),
    *("squeeze", "swapaxes", "resize", "setflags", "tobytes", "__getitem__", "__setitem__"),
    *("__len__", "__iter__", "__eq__", "__lt__", "__bool__", "__index__", "__array__"),
    *("__array_finalize__", "__array_wrap__", "__array_ufunc__", "__array_function__"),
    *("__dlpack__", "__dlpack_device__", "__buffer__", "__getattr__", "__copy__", "__reduce__"),
]


def raises(*arguments, **keywords):
    raise ZeroDivisionError


def subclasses():
    """Yield subclasses of ndarray that report one wrong attribute each."""
    plain = {"__slots__": ()}
    for name, values in LIES.items():
        for value in values:
            lie = property(lambda self, value=value: value)
            yield f"{name} {value}", type("Lies", (np.ndarray,), {**plain, name: lie})
        yield f"{name} raises", type("Raises", (np.ndarray,), {**plain, name: property(raises)})
    for name in METHODS:
        for value in (None, 0, X[0], "self"):

            def method(self, *arguments, value=value, **keywords):
                return self if isinstance(value, str) else value

            yield f"{name} {type(value)}", type("Lies", (np.ndarray,), {**plain, name: method})
        yield f"{name} raises", type("Raises", (np.ndarray,), {**plain, name: raises})


SUBCLASSES = dict(subclasses())
# In its type, in an order that kernels do not take, between other elements, backwards.
ARRANGEMENTS = {
    "plain": lambda a: a,
    "Fortran": np.asfortranarray,
    "gaps": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "backwards": lambda a: a[..., ::-1].copy()[..., ::-1],
}


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_subclasses_that_lie(argument, arrangement):
    """Their memory is read or written, whatever they say of it; results are what was given."""
    for library in ("dask.array", "xarray"):  # of which an array could say that it is one
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(library)
    call = ARGUMENTS[argument]
    kind = argument.split()[-1]
    expected = [np.asarray(part) for part in _as_tuple(call(right_for(argument)))]
    for name, subclass in SUBCLASSES.items():
        array = ARRANGEMENTS[arrangement](right_for(argument))
        memory = array.view()
        try:
            given = np.ndarray.view(array, subclass)
        except (TypeError, ZeroDivisionError):  # what NumPy itself asks for when it makes one
            assert name.startswith("__array_finalize__")
            continue
        results = _as_tuple(call(given))
        if kind.startswith("out"):
            place = kind == "out_indices"
            assert results[place] is given, name
            cases.assert_same(memory, expected[place])
        else:
            for result, want in zip(results, expected, strict=True):
                assert type(result) is np.ndarray, name
                cases.assert_same(result, want)


def _as_tuple(results):
    return results if type(results) is tuple else (results,)


@pytest.mark.parametrize("kind", [np.matrix, np.recarray, np.memmap])
@pytest.mark.parametrize("argument", ["x", "out"])
def test_subclasses_of_numpy(kind, argument):
    array = np.arange(64, dtype=np.float32).reshape(8, 8)
    y = fastpool.max_pool(array, 2, strides=2, layout="HW")
    if argument == "x":
        given = np.ndarray.view(array, kind)
        result = fastpool.max_pool(given, 2, strides=2, layout="HW")
        assert type(result) is np.ndarray
    else:
        given = np.ndarray.view(np.zeros_like(y), kind)
        result = fastpool.max_pool(array, 2, strides=2, layout="HW", out=given)
        assert result is given
    cases.assert_same(np.asarray(result), y)
