"""Arrays in .npy files: read and make headers, and map elements."""

import os
import sys
from contextlib import contextmanager
from math import prod

import numpy as np

from ._replacing import open_regular

# Limit for the header of a .npy file. NumPy's is 10,000 characters.
MOST_HEADER_BYTES = 1 << 16


class ArrayFile:
    """An array in an open file."""

    def __init__(self, file, offset, shape, dtype, order, mode):
        """Describe the array; `offset` is its first byte in the file, `mode` that of mappings."""
        self.shape, self.dtype, self.order = shape, dtype, order
        self._file, self._mode, self._offset = file, mode, offset

    def mapped(self):
        """Return the array; its pages are resident as long as this mapping is referenced."""
        return np.memmap(
            *(self._file, self.dtype, self._mode, self._offset), shape=self.shape, order=self.order
        )


@contextmanager
def existing(path):
    """Open the array in a .npy file for reading.

    Yields
    ------
    x : ArrayFile
        The array. Its shape, dtype, order and elements come from opening the path once.
    """
    with open_regular("source", path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            shape, fortran_order, dtype = _read_header(file)
        except OSError:
            raise
        except Exception as error:  # NumPy's parser passes on any error of Python's parser
            raise _no_array(path, error) from None
        offset, nbytes = file.tell(), prod(shape) * dtype.itemsize
        if size - offset < nbytes:
            what = f"expected {nbytes} bytes of data for shape {shape} and dtype {dtype}"
            raise _no_array(path, f"{what}, got {size - offset}")
        order = "F" if fortran_order else "C"
        yield ArrayFile(file, offset, shape, dtype, order, "r")


def _no_array(path, why):
    return ValueError(f"source: {os.fspath(path)!r} is no .npy file: {why}")


def _read_header(file):
    """Read (shape, fortran_order, dtype) from the header of an array."""
    version = np.lib.format.read_magic(file)
    if version > (1, 0):  # NumPy reads and decodes a header of any length before it checks it
        length = int.from_bytes(file.read(4), "little")
        if length > MOST_HEADER_BYTES:
            raise ValueError(
                f"expected a header of at most {MOST_HEADER_BYTES} bytes, got {length}"
            )
        file.seek(-4, os.SEEK_CUR)
    if version == (1, 0):
        header = np.lib.format.read_array_header_1_0(file)
    elif version in ((2, 0), (3, 0)):  # these differ only in the characters of field names
        header = np.lib.format.read_array_header_2_0(file)
    else:
        raise ValueError(f"expected format version 1.0, 2.0 or 3.0, got {version}")
    shape, _, dtype = header
    if not all(0 <= extent <= sys.maxsize for extent in shape):
        raise ValueError(f"expected a shape of extents from 0 to {sys.maxsize}, got {shape}")
    if dtype.hasobject or not dtype.itemsize:
        raise ValueError(f"expected numbers, got dtype {dtype}")
    return header


@contextmanager
def new(path, shape, dtype, given_shape):
    """Make a .npy file and yield it as an `ArrayFile` of `shape`; its header has `given_shape`."""
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": given_shape,
    }
    with open(path, "r+b") as file:
        np.lib.format.write_array_header_1_0(file, header)
        offset = file.tell()
        size = offset + prod(shape) * dtype.itemsize
        file.truncate(size)
        if hasattr(os, "posix_fallocate"):
            # Writing to a mapping kills the process if there is no room on the disk.
            os.posix_fallocate(file.fileno(), 0, size)
        yield ArrayFile(file, offset, shape, dtype, "C", "r+")
