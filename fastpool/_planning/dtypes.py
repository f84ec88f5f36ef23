"""The one table of element types: name, size, kind and lowest value."""

import numpy as np

# Bytes per element. bfloat16 is known by name, so ml_dtypes need not be installed.
ITEMSIZE = {
    **{"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8},
    **{"int8": 1, "int16": 2, "int32": 4, "int64": 8},
    **{"uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8, "bool": 1},
}
DTYPES = tuple(ITEMSIZE)
INDEX_BYTES = {"int32": 4, "int64": 8}

# dtype of native byte order -> name
NAMES = {np.dtype(name): name for name in DTYPES if name != "bfloat16"}


def is_float(name):
    return "float" in name


def lowest(name):
    """Return the lowest value of a type, the result of a window without elements."""
    if name == "bool":
        return False
    return -np.inf if is_float(name) else np.iinfo(name).min
