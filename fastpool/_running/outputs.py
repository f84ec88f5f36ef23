"""Check the arrays of a call: which are legal, and which kernels can use in place."""

import numpy as np

from .._planning.arguments import dtype_name
from .._planning.dtypes import known_name
from .interop import as_output


def element_type(x):
    """Return the name of x's element type; NumPy's `name` takes longer than a small pooling."""
    return known_name(x.dtype) or dtype_name(x.dtype, "x")


def plain_dtype(name, dtype=None):
    """Return the dtype object that nearly all arrays of this element type have.

    That of bfloat16 comes from the `dtype` of an array, because a package defines it. Without an
    array, return an integer type of its size.
    """
    if name != "bfloat16":
        return np.dtype(name)
    if dtype is None:
        return np.dtype("uint16")
    if dtype_name(dtype) != name:
        raise TypeError(f"dtype: expected {name}, got {dtype}")
    return np.dtype(dtype.type)


def own(array):
    """Return a view that no other code holds, so that its shape and strides stay as checked."""
    return np.ndarray.view(array, np.ndarray)


def check_output(name, array, shape, dtype, others):
    """Raise unless results can be written into `array`. `others` maps names to arrays in use."""
    if array.dtype != dtype or not array.dtype.isnative:
        raise TypeError(f"{name}: expected dtype {dtype}, got {array.dtype}")
    if array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
    if not array.flags.writeable:
        raise ValueError(f"{name}: expected a writeable array, got a read-only one")
    if _repeats(array):
        raise ValueError(f"{name}: some of its elements share memory")
    for other_name, other in others.items():
        if _overlap(array, other):
            raise ValueError(f"{name}: overlaps {other_name}")


def _overlap(a, b):
    try:
        return np.shares_memory(a, b, max_work=100_000)
    except np.exceptions.TooHardError:
        return np.may_share_memory(a, b)


def _repeats(array):
    """May one address hold two elements? True may be wrong if strides of axes interleave."""
    inside = array.itemsize
    for stride, extent in sorted(zip(map(abs, array.strides), array.shape, strict=True)):
        if extent > 1:
            if stride < inside:
                return array.size > 0
            inside = stride * (extent - 1) + inside
    return False


def is_ready(array, unit_axis):
    """Can kernels work on this array in place? No `unit_axis`: if it is C-contiguous."""
    if unit_axis is None or array.ndim == 0:
        unit = array.flags.c_contiguous
    else:
        unit = array.shape[unit_axis] == 1 or array.strides[unit_axis] == array.itemsize
    return array.flags.aligned and array.dtype.isnative and unit


def readable(array, unit_axis=None):
    """Return the array, or a copy, that is ready (`is_ready`)."""
    if is_ready(array, unit_axis):
        return array
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C")


def outputs(**arrays):
    """Return plain arrays over the memory of the caller's output arrays; None stays None."""
    return [
        None if given is None else own(as_output(given, name)) for name, given in arrays.items()
    ]
