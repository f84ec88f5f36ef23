"""Run the kernels without NumPy, on memory of ctypes, and compare with loops of Python.

ci/wasm.sh runs this in Pyodide: there is no NumPy for it in the registries of packages. The
compiled module gets a stand-in, which has what importing fastpool needs. Plans are made and run as
C makes and runs them.
"""

import ctypes
import itertools
import random
import re
import sys
import types


class Anything:
    """What nothing here calls for a result."""

    def __init__(self, *args, **kwargs):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __call__(self, *args, **kwargs):
        return Anything()

    def __iter__(self):
        return iter(())

    __getitem__ = __setitem__ = __add__ = __call__


class Dtype(str):
    type = str
    name = property(str)

    def newbyteorder(self, order):
        return self

    @property
    def itemsize(self):
        return int((re.search(r"\d+", self) or ["8"])[0]) // 8


class StandIn(types.ModuleType):
    __version__ = "stand-in"

    def __getattr__(self, name):
        return Dtype if name == "dtype" else Anything


sys.modules["numpy"] = StandIn("numpy")

from fastpool._running import builds, capi  # noqa: E402

TYPES = {
    **{f"int{n}": getattr(ctypes, f"c_int{n}") for n in (8, 16, 32, 64)},
    **{f"uint{n}": getattr(ctypes, f"c_uint{n}") for n in (8, 16, 32, 64)},
    **{"float32": ctypes.c_float, "float64": ctypes.c_double},
}
P = ctypes.c_void_p
RUN = ctypes.CFUNCTYPE(ctypes.c_int, P, P, P, P, P, P, P, ctypes.c_int, ctypes.c_uint)


class Plan(ctypes.Structure):
    """struct fastpool_plan of fastpool.h."""

    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("abi", "size")),
        *((name, ctypes.c_int) for name in ("ndim", "num_threads")),
        *((name, P) for name in ("input_shape", "output_shape")),
        *((name, ctypes.c_size_t) for name in ("itemsize", "index_itemsize", "input_bytes")),
        *((name, ctypes.c_size_t) for name in ("output_bytes", "indices_bytes")),
        *((name, P) for name in ("max_pool", "max_unpool", "compiled", "owner")),
        ("output_itemsize", ctypes.c_size_t),
        ("avg_pool", P),
    ]


def windows(size, kernel, stride, dilation, pads):
    """Yield the elements of each window of an axis."""
    for start in range(-pads[0], size + pads[1] - (kernel - 1) * dilation, stride):
        taps = range(start, start + kernel * dilation, dilation)
        yield [tap for tap in taps if 0 <= tap < size]


def check(dtype, shape, kernel, stride, dilation, pad, average):
    planes, height, width = shape[0] * shape[1], *shape[2:]
    attributes = {"strides": (stride,) * 2, "dilations": (dilation,) * 2, "pads": (pad,) * 4}
    plan = Plan()
    address = ctypes.addressof(plan), ctypes.sizeof(plan)
    if average:
        attributes |= {"kernel_shape": (kernel,) * 2, "divisor": kernel * kernel}
        capi.avg_pool(*address, shape, dtype, None, **attributes)
    else:
        capi.max_pool(*address, shape, dtype, (kernel,) * 2, return_indices=True, **attributes)
    element = TYPES[dtype]
    count, made = plan.input_bytes // plan.itemsize, plan.output_bytes // plan.output_itemsize
    least, most = (0, 99) if dtype[0] == "u" else (-99, 99)
    x = (element * count)(*(random.randint(least, most) for _ in range(count)))
    y = (element * made)()
    z = (ctypes.c_int64 * made)()
    pointers = [ctypes.addressof(x), None, ctypes.addressof(y), None]
    pointers += [None if average else ctypes.addressof(z), None, 0, 0]
    code = RUN(plan.avg_pool if average else plan.max_pool)(ctypes.addressof(plan), *pointers)
    assert code == 0, code

    axes = [list(windows(n, kernel, stride, dilation, (pad, pad))) for n in (height, width)]
    at = 0
    for plane, rows, cols in itertools.product(range(planes), *axes):
        places = [(plane * height + r) * width + c for r in rows for c in cols]
        values = [x[place] for place in places]
        if average:
            expected = element(sum(values) / kernel**2).value
            assert y[at] == expected, (dtype, at, y[at], expected)
        else:
            assert y[at] == max(values), (dtype, at, y[at], max(values))
            assert z[at] == places[values.index(max(values))], (dtype, at, z[at])
        at += 1
    assert at == made, (at, made)
    return at


kernels = builds.active()
print(f"vectors of {kernels.VECTOR_BYTES} bytes, addresses of {8 * ctypes.sizeof(P)} bits")
random.seed(1)
SHAPES = (1, 2, 9, 33), (2, 3, 5, 7), (1, 20, 5, 5), (1, 1, 3, 100)
cases = outputs = 0
for dtype, shape in itertools.product(TYPES, SHAPES):
    every = list(itertools.product((2, 3), (1, 2, 3), (1, 2), (0, 1)))
    for kernel, stride, dilation, pad in random.sample(every, 6):
        if min(shape[2:]) + 2 * pad <= (kernel - 1) * dilation or pad >= kernel * dilation:
            continue
        for average in (False, True)[: 1 + (dtype[0] == "f")]:
            outputs += check(dtype, shape, kernel, stride, dilation, pad, average)
            cases += 1
print(f"{cases} poolings, {outputs} outputs: all as expected")
