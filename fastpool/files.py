"""Pool arrays in .npy files that need not fit into memory.

Input and output are mapped tile by tile. A tile's pages are released with its mapping, so never
more pages are resident than one tile has.
"""

import os
import secrets
import stat
import sys
from contextlib import ExitStack, contextmanager, suppress
from math import prod
from pathlib import Path

import numpy as np

from ._api.maximum import plan_max_pool
from ._planning.arguments import as_count, shown
from ._planning.parts import grid

__all__ = ["max_pool"]

# Limit for the header of a .npy file. NumPy's is 10,000 characters.
MOST_HEADER_BYTES = 1 << 16


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
        File for the maxima. An existing file is replaced when everything is done, by a file with
        its owner, group and permissions. After an error it is unchanged. It may be `source`. A
        symbolic link stays, and the file that it names is replaced.
    kernel_shape : int or sequence of int
        Taps of the window along each spatial axis, at least 1.
    indices : str or os.PathLike, optional
        File for the index of each maximum. Either both it and `target` are replaced, or neither.
    max_bytes : int
        Memory for a tile: its input and its results. Only a single window can exceed it, and input
        that must be copied (big-endian, or in Fortran order) can take up to twice as much.
    progress : callable, optional
        Called with the number of outputs done and the number of all, first and after each tile.
    **attributes
        Those of :func:`fastpool.max_pool`, except `return_indices`, `out` and `out_indices`.

    Returns
    -------
    plan : MaxPoolPlan
        The plan of the whole array. Its `output_shape` is the shape of the written array.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.max_pool`. Also if `source` holds no array, if `target` and `indices` are
        names of one file, or if one of them is a folder, a pipe, a socket or a device.
    OSError
        A file cannot be read or written, or there is no room for the results. Room is checked
        before anything is computed.

    See Also
    --------
    fastpool.max_pool : Pool arrays in memory.

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
    for name, path in (("source", source), ("target", target)):
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"{name}: expected a str or os.PathLike, got {shown(path)}")
    if not isinstance(indices, (str, os.PathLike, type(None))):
        raise TypeError(f"indices: expected a str, os.PathLike or None, got {shown(indices)}")
    with ExitStack() as stack:
        x = stack.enter_context(existing(source))
        plan = plan_max_pool(
            x.shape, x.dtype, kernel_shape, return_indices=indices is not None, **attributes
        )
        dtypes = x.dtype.newbyteorder("="), np.dtype(plan.index_dtype)
        paths = stack.enter_context(replacing(target=target, indices=indices))
        results = [
            stack.enter_context(_new(path, plan.output_shape, dtype))
            for path, dtype in zip(paths.values(), dtypes, strict=False)
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
def replacing(**paths):
    """Make new files, which replace all `paths` together if nothing is raised.

    Parameters
    ----------
    **paths : str, os.PathLike or None
        Files to replace or to make. Their keywords are the names of arguments in errors. None is
        left out.

    Yields
    ------
    new : dict of str to Path
        An empty file for each argument, in the folder of the file that it will replace.

    Raises
    ------
    ValueError
        Two of them are one file, or one is no regular file.
    OSError
        A file cannot be made or replaced. Then all files are unchanged.
    """
    paths = {name: Path(path) for name, path in paths.items() if path is not None}
    finals = {name: _final(name, path) for name, path in paths.items()}
    apart(**paths)
    new, ending = {}, f".{secrets.token_hex(8)}.part"
    with ExitStack() as leftovers:
        for name, final in finals.items():
            new[name] = final.with_name(final.name + ending)
            leftovers.callback(new[name].unlink, missing_ok=True)
            # The replaced file may be private. The new one gets its permissions at the end.
            mode = 0o600 if final.exists() else 0o666
            try:
                os.close(os.open(new[name], os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
            except FileExistsError:
                # The endings are equal, so to the file system both names are one file: it ignores
                # case, for instance, or is mounted twice.
                raise _one_file(name, next(iter(finals)), paths[name]) from None
        yield new
        pairs = [(new[name], final) for name, final in finals.items()]
        for name, final in finals.items():
            if _final(name, final).exists():
                _copy_permissions(final, new[name])
        _replace(pairs)


def apart(**paths):
    """Raise ValueError if two of these paths are names of one file."""
    seen = {}
    for name, path in paths.items():
        for other_name, other in seen.items():
            if os.path.realpath(path) == os.path.realpath(other) or _is_linked(path, other):
                raise _one_file(name, other_name, path)
        seen[name] = path


def _is_linked(path, other):
    """Are these two names of one existing file?"""
    try:
        return os.path.samefile(path, other)
    except FileNotFoundError:
        return False


def _one_file(name, other_name, path):
    return ValueError(
        f"{name}: expected another file than {other_name}, got {os.fspath(path)!r}, "
        f"which is a name of the same file"
    )


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_regular(name, path):
    """Open a file for reading. If it is not regular, raise a ValueError that names the argument."""
    # If it is a pipe, do not wait for a writer.
    at_once = getattr(os, "O_NONBLOCK", 0)
    file = open(path, "rb", opener=lambda path, flags: os.open(path, flags | at_once))
    try:
        _check_regular(name, path, os.fstat(file.fileno()))
    except ValueError:
        file.close()
        raise
    return file


def _check_regular(name, path, status):
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "none")
        raise ValueError(f"{name}: expected a regular file, got {os.fspath(path)!r}, {kind}")


def _final(name, path):
    """Return the path without symbolic links: the file to replace or make."""
    with suppress(FileNotFoundError):
        _check_regular(name, path, os.stat(path))
    return Path(os.path.realpath(path))


# The access control list of a file in Linux. It also holds the permissions of owner, group and
# others. If there is one, the group bits of the mode are the most that it grants to anyone.
_ACL = "system.posix_acl_access"


def _copy_permissions(old, new):
    """Give a new file the owner, the group and the permissions of another one.

    If the process may not change owner and group, they stay the process's own. A group that differs
    then gets only the permissions of others.
    """
    status = os.stat(old)
    mode, acl = stat.S_IMODE(status.st_mode) & 0o777, None
    if hasattr(os, "chown"):  # not on Windows
        for owner in ((-1, status.st_gid), (status.st_uid, -1)):
            with suppress(PermissionError):
                os.chown(new, *owner)
    if os.stat(new).st_gid != status.st_gid:
        mode = mode & 0o707 | (mode & 0o007) << 3
    elif hasattr(os, "getxattr"):
        with suppress(OSError):  # there is none, or the file system does not support it
            acl = os.getxattr(old, _ACL)
    if acl is not None:
        os.setxattr(new, _ACL, acl)
        return
    if hasattr(os, "removexattr"):
        with suppress(OSError):  # the folder may give one to new files
            os.removexattr(new, _ACL)
    os.chmod(new, mode)


def _replace(pairs):
    """Replace files by new ones, given as (new, final): all of them, or after an error none.

    Progress is read from the file system, so an interrupt may come at any point.
    """
    last = pairs[-1][0]
    kept = {new: new.with_suffix(".old.part") for new, _ in pairs[:-1]}
    try:
        for new, final in pairs:
            if new in kept:
                _keep(final, kept[new])
            new.replace(final)
    finally:
        if last.exists():
            for new, final in pairs[:-1]:
                _put_back(new, final, kept[new])
        for old in kept.values():
            old.unlink(missing_ok=True)


def _keep(final, old):
    """Give a file, if it exists, a second name."""
    with suppress(FileNotFoundError):
        try:
            os.link(final, old)
        except OSError:  # no hard links on this file system, or not to this file
            final.replace(old)


def _put_back(new, final, old):
    """Undo the replacement of a file as far as it was done."""
    if old.exists():
        if not (new.exists() and final.exists()):
            old.replace(final)
    elif not new.exists():
        final.unlink()


class _ArrayFile:
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
    x : _ArrayFile
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
        yield _ArrayFile(file, offset, shape, dtype, order, "r")


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
def _new(path, shape, dtype):
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": shape,
    }
    with open(path, "r+b") as file:
        np.lib.format.write_array_header_1_0(file, header)
        offset = file.tell()
        size = offset + prod(shape) * dtype.itemsize
        file.truncate(size)
        if hasattr(os, "posix_fallocate"):
            # Writing to a mapping kills the process if there is no room on the disk.
            os.posix_fallocate(file.fileno(), 0, size)
        yield _ArrayFile(file, offset, shape, dtype, "C", "r+")
