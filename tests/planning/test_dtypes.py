"""The table of element types, against NumPy's."""

import numpy as np
import pytest

import cases
from fastpool._planning import dtypes

KINDS = {"f": "float", "i": "signed", "u": "unsigned", "b": "bool"}


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_properties_are_those_of_numpy(name):
    element = dtypes.ELEMENT_TYPES[name]
    dtype = cases.dtype(name)
    assert element.nbytes == dtype.itemsize
    assert element.lowest == cases.lowest(name)
    if name != "bfloat16":  # its dtype has the kind of a record
        assert element.kind == KINDS[dtype.kind] and dtypes.NAMES[dtype] == name
    assert dtypes.is_float(name) == (name in cases.FLOAT_NAMES)
    assert dtypes.is_integer(name) == (name in cases.INTEGER_NAMES)


def test_the_tests_know_every_type():
    assert {*cases.DTYPE_NAMES, "bfloat16"} == {*dtypes.DTYPES}


def test_codes_differ():
    assert sorted(dtypes.CODES.values()) == list(range(len(dtypes.DTYPES)))


def test_lowest_values_are_plain_numbers():
    """`explain` prints them."""
    for name in dtypes.DTYPES:
        assert not isinstance(dtypes.lowest(name), np.generic)
