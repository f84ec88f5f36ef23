"""The one table of element types: name, size, kind, code in compiled code, and range."""

import math
from typing import NamedTuple

import numpy as np


class ElementType(NamedTuple):
    """The properties of an element type.

    `kind` is "float", "signed", "unsigned" or "bool". `code` is that of the compiled table
    (kernels/frame/schedule.pxi). `lowest` is the result of a maximum over no elements, and
    `highest` that of a minimum.
    """

    nbytes: int
    kind: str
    code: int
    lowest: float | int | bool
    highest: float | int | bool


# bfloat16 is known by name, so ml_dtypes need not be installed.
ELEMENT_TYPES = {
    "float16": ElementType(2, "float", 0, -math.inf, math.inf),
    "bfloat16": ElementType(2, "float", 1, -math.inf, math.inf),
    "float32": ElementType(4, "float", 2, -math.inf, math.inf),
    "float64": ElementType(8, "float", 3, -math.inf, math.inf),
    "int8": ElementType(1, "signed", 4, -(2**7), 2**7 - 1),
    "int16": ElementType(2, "signed", 5, -(2**15), 2**15 - 1),
    "int32": ElementType(4, "signed", 6, -(2**31), 2**31 - 1),
    "int64": ElementType(8, "signed", 7, -(2**63), 2**63 - 1),
    "uint8": ElementType(1, "unsigned", 8, 0, 2**8 - 1),
    "uint16": ElementType(2, "unsigned", 9, 0, 2**16 - 1),
    "uint32": ElementType(4, "unsigned", 10, 0, 2**32 - 1),
    "uint64": ElementType(8, "unsigned", 11, 0, 2**64 - 1),
    "bool": ElementType(1, "bool", 12, False, True),
}

DTYPES = tuple(ELEMENT_TYPES)
ITEMSIZE = {name: element.nbytes for name, element in ELEMENT_TYPES.items()}
FLOATS = tuple(name for name, element in ELEMENT_TYPES.items() if element.kind == "float")
CODES = {name: element.code for name, element in ELEMENT_TYPES.items()}

# dtype of native byte order -> name
NAMES = {np.dtype(name): name for name in DTYPES if name != "bfloat16"}

# By `dtype.num`. A child made by fork hung in `NAMES`: without the GIL, lookups of objects that
# belong to another thread take the lock of the dict, and a thread of the parent may have had it.
_BY_NUM = {np.dtype(char).num: NAMES[np.dtype(char)] for char in "?bBhHiIlLqQefd"}
_BY_NUM = tuple(map(_BY_NUM.get, range(max(_BY_NUM) + 1)))


def name_of(dtype):
    """Return the name of a dtype of either byte order; None of others, and of bfloat16."""
    # Fields may lie over a number, as in `(">i4", [("a", "<i2"), ("b", "<i2")])`. Then `isnative`
    # is that of the fields.
    known = 0 <= dtype.num < len(_BY_NUM) and dtype.fields is None
    return _BY_NUM[dtype.num] if known else None


def known_name(dtype):
    """Return the name of a dtype of native byte order; None of others, and of bfloat16."""
    return name_of(dtype) if dtype.isnative else None


# The types of indices.
INDEX_BYTES = {name: ITEMSIZE[name] for name in ("int32", "int64")}
INDEX_DTYPES = {np.dtype(name): name for name in INDEX_BYTES}


def is_float(name):
    return ELEMENT_TYPES[name].kind == "float"


def is_integer(name):
    return ELEMENT_TYPES[name].kind in ("signed", "unsigned")


def lowest(name):
    """Return the lowest value of a type, the result of a window without elements."""
    return ELEMENT_TYPES[name].lowest


def highest(name):
    """Return the highest value of a type, the result of a minimum over no elements."""
    return ELEMENT_TYPES[name].highest


def limits(name):
    """Return the least and the greatest value of an integer type or bool, as ints."""
    element = ELEMENT_TYPES[name]
    return int(element.lowest), int(element.highest)
