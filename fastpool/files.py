"""Max pooling of arrays in .npy files that need not fit into memory.

Input and output are mapped, tile after tile, and a tile's pages are let go with its mapping: at no
time are more resident than one tile has.
"""

import os
import secrets
from contextlib import ExitStack, contextmanager
from math import prod
from pathlib import Path

import numpy as np

from ._api import plan_max_pool
from ._arguments import as_count
from ._tiling import grid

__all__ = ["max_pool"]


def max_pool(
    source,
    target,
    kernel_shape,
    *,
    indices=None,
    max_bytes=256 << 20,
    progress=None,
    **attributes,
):
    """Pool the array in one .npy file into another .npy file.

    Parameters
    ----------
    source : str or os.PathLike
        File with the input. It is never written.
    target : str or os.PathLike
        File that takes the maxima. One that exists is replaced when everything is done, and stays
        as it is after an error; it may be `source`.
    kernel_shape : int or sequence of int
        Taps of the window along each spatial axis, at least 1.
    indices : str or os.PathLike, optional
        File that takes the index of each maximum, likewise.
    max_bytes : int
        Memory for a tile: its input and its results. It is exceeded only where a single window does
        so, and up to twice with input that no call takes as it is (big-endian, or in Fortran order)
        or with an activation.
    progress : callable, optional
        Called with the number of outputs done and the number of all, at first and after each tile.
    **attributes
        Those of :func:`fastpool.max_pool`, but for `return_indices`, `out` and `out_indices`.

    Returns
    -------
    plan : MaxPoolPlan
        That of the whole array: its `output_shape` is the shape of what was written.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.max_pool`; or `source` holds no array; or `target` is `indices`.
    OSError
        A file cannot be read or written, or there is no room for the results, which is found out
        before any is computed.

    See Also
    --------
    fastpool.max_pool : The same for arrays in memory.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import fastpool.files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.arange(24).reshape(4, 6))
    ...     plan = fastpool.files.max_pool(
    ...         f"{folder}/x.npy", f"{folder}/y.npy", 2, strides=2, layout="HW", max_bytes=100
    ...     )
    ...     np.load(f"{folder}/y.npy")
    array([[ 7,  9, 11],
           [19, 21, 23]])
    """
    max_bytes = as_count(max_bytes, "max_bytes")
    targets = [Path(path) for path in (target, indices) if path is not None]
    if len(targets) == 2 and targets[0].absolute() == targets[1].absolute():
        raise ValueError(f"indices: expected another file than target, got {str(indices)!r} twice")
    with ExitStack() as stack:
        x = stack.enter_context(_existing(source))
        plan = plan_max_pool(
            x.shape, x.dtype, kernel_shape, return_indices=indices is not None, **attributes
        )
        dtypes = x.dtype.newbyteorder("="), np.dtype(plan.index_dtype)
        results = [
            stack.enter_context(
                _new(stack.enter_context(replacing(path)), plan.output_shape, dtype)
            )
            for path, dtype in zip(targets, dtypes, strict=False)
        ]
        done, every = 0, prod(plan.output_shape)
        for outputs in grid(plan, max_bytes, reverse=x.order == "F"):
            if progress is not None:
                progress(done, every)
            tile = plan.tile(outputs)
            tile.plan(x.mapped()[tile.read], *(result.mapped()[outputs] for result in results))
            done += prod(tile.plan.output_shape)
        if progress is not None:
            progress(done, every)
    return plan


@contextmanager
def replacing(path):
    """The name of a new file beside `path`, which takes its place if nothing is raised."""
    path = Path(path)
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield new
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


class _ArrayFile:
    """An array in an open file."""

    def __init__(self, file, array, mode):
        """`array` is a mapping of it."""
        self.shape, self.dtype = array.shape, array.dtype
        self.order = "C" if array.flags.c_contiguous else "F"
        self._file, self._mode, self._offset = file, mode, array.offset

    def mapped(self):
        """The array, whose pages are resident as long as this mapping is referred to."""
        return np.memmap(
            *(self._file, self.dtype, self._mode, self._offset), shape=self.shape, order=self.order
        )


@contextmanager
def _existing(path):
    with open(path, "rb") as file:
        try:
            array = np.lib.format.open_memmap(path, "r")
        except ValueError as error:
            raise ValueError(f"source: {os.fspath(path)!r} is no .npy file: {error}") from None
        yield _ArrayFile(file, array, "r")


@contextmanager
def _new(path, shape, dtype):
    array = np.lib.format.open_memmap(path, "w+", dtype, shape)
    with open(path, "r+b") as file:
        if hasattr(os, "posix_fallocate"):
            # A mapping that finds no room on the disk kills the process.
            os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)
        yield _ArrayFile(file, array, "r+")
