"""Arrays that pyramids are made of: .npy, TIFF and zarr files, read region by region."""

import math
import os
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import __version__
from .._planning.values import as_float, is_sequence, read, shown, value_count
from ._npy import ArrayFile, existing
from ._replacing import open_regular

# The axes of OME-Zarr, in its order, and their types.
TYPES = dict(t="time", c="channel", z="space", y="space", x="space")
# Bytes of a .npy file that are mapped at a time.
MAPPED_BYTES = 4 << 20


class Volume(NamedTuple):
    """An array to read: `axes` are the names that its file gives, and `slow` puts slow ones first.

    `read` takes a tuple of slices.
    """

    shape: tuple
    dtype: np.dtype
    axes: str | None
    slow: tuple
    read: Callable

    def transposed(self, order):
        """Return the volume with its axes in another order."""
        back = sorted(range(len(order)), key=order.__getitem__)

        def read(region):
            return self.read(tuple(region[axis] for axis in back)).transpose(order)

        shape = tuple(self.shape[axis] for axis in order)
        return Volume(shape, self.dtype, self.axes, tuple(back[a] for a in self.slow), read)


@contextmanager
def extra():
    """Say what to install if an import of a package of the extra "zarr" fails."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if missing.name not in ("tifffile", "zarr"):
            raise
        raise ImportError(
            f'fastpool.files.pyramid needs {missing.name}: pip install "fastpool[zarr]"'
        ) from None


@contextmanager
def opened(path):
    """Open an array: a zarr array in a folder, or a .npy or TIFF file by its ending."""
    ending = Path(path).suffix.lower()
    with ExitStack() as stack:
        if ending == ".npy":
            x, axes = stack.enter_context(existing(path)), None
        elif ending in (".tif", ".tiff"):
            x, axes = _from_tiff(path, stack)
        elif ending == ".zarr" or os.path.isdir(path):
            x, axes = _from_zarr(path)
        else:
            raise ValueError(
                "source: expected a name that ends in .npy, .tif, .tiff or .zarr, or the folder of "
                f"a zarr array, got {os.fspath(path)!r}"
            )
        is_mapped = isinstance(x, ArrayFile)
        slow = tuple(range(len(x.shape)))[:: -1 if is_mapped and x.order == "F" else 1]
        known = axes if axes and set(axes) <= set(TYPES) else None
        read = partial(_copied if is_mapped else _decoded, x, path)
        yield Volume(x.shape, x.dtype, known, slow, read)


def _decoded(x, path, region):
    """Return a region of a zarr array."""
    try:
        return x[region]
    except (OSError, MemoryError):
        raise
    except Exception as error:  # any of a codec
        raise ValueError(f"source: {os.fspath(path)!r} cannot be decoded: {error}") from error


def _copied(x, path, region):
    """Copy a region of an `ArrayFile`, and map few planes at a time.

    The system maps some pages around those that are read, in all up to 16 times as many.
    """
    part = np.empty([cut.stop - cut.start for cut in region], x.dtype, x.order)
    axis, rest = (-1, region[:-1]) if x.order == "F" else (0, region[1:])
    planes = np.moveaxis(part, axis, 0)
    step = max(1, MAPPED_BYTES * len(planes) // part.nbytes)
    for start in range(0, len(planes), step):
        into, first = planes[start : start + step], region[axis].start + start
        at = slice(first, first + len(into))
        into[...] = np.moveaxis(x.mapped(), axis, 0)[(at, *rest)]
    return part


def _from_tiff(path, stack):
    """Return the first image of a TIFF file, and the letters of its axes.

    It is an `ArrayFile` if it is in one piece and not compressed, else a zarr array.
    """
    with extra():
        import tifffile
        import zarr
    file = stack.enter_context(open_regular("source", path))
    try:
        tiff = stack.enter_context(tifffile.TiffFile(file))
        series = tiff.series[0]
        store = stack.enter_context(series.aszarr(level=0))
    except OSError:
        raise
    except Exception as error:  # tifffile passes on errors of struct and others
        raise ValueError(f"source: {os.fspath(path)!r} is not a TIFF file: {error}") from None
    axes, x = series.axes.lower(), zarr.open_array(store, mode="r")
    offset = series.dataoffset
    if offset is not None and offset + x.nbytes <= os.fstat(file.fileno()).st_size:
        x = ArrayFile(file, offset, x.shape, x.dtype.newbyteorder(tiff.byteorder), "C", "r")
    return x, axes if "c" in axes else axes.replace("s", "c")  # S: the samples of a pixel


def _from_zarr(path):
    """Return the zarr array in a folder, and the names of its axes if it has them."""
    import zarr

    os.stat(path)
    try:
        x = zarr.open(Path(path), mode="r")
        if isinstance(x, zarr.Group):
            raise ValueError("it is a group; name one of its arrays, as group.zarr/0")
    except (OSError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"source: {os.fspath(path)!r} is not a zarr array: {error}") from None
    names = getattr(x.metadata, "dimension_names", None) or x.attrs.get("_ARRAY_DIMENSIONS")
    names = names if isinstance(names, (list, tuple)) else ()
    single = all(isinstance(name, str) and len(name) == 1 for name in names)
    return x, "".join(names).lower() if single else None


def names_of_axes(axes, known, rank):
    """Return the names of the axes of an array as a string: `axes`, or else what its file says."""
    if axes is None:
        axes = known
    if axes is None:
        raise ValueError(
            f"axes: needed, because source does not name its {rank} axes; for example "
            f'"{"tczyx"[-rank:]}"'
        )
    if not isinstance(axes, str):
        raise TypeError(f"axes: expected a str, got {shown(axes)}")
    if (
        len(axes) != rank
        or len({*axes}) != rank
        or not {*axes} <= {*TYPES}
        or not {*"yx"} <= {*axes}
    ):
        raise ValueError(
            f'axes: expected a different letter of "tczyx" for each of {rank} axes, "y" and "x" '
            f"among them, got {shown(axes)}"
        )
    return axes


def element_sizes(scale, rank):
    """Return the sizes of an element along the axes of an array."""
    if scale is None:
        return [1.0] * rank
    if not is_sequence(scale):
        raise TypeError(f"scale: expected a sequence of floats, got {shown(scale)}")
    expected = f"{value_count(rank)}, one per axis of the source"
    sizes = [
        as_float(v, f"scale[{i}]") for i, v in enumerate(read(scale, "scale", [rank], expected))
    ]
    if not all(0 < size < math.inf for size in sizes):
        raise ValueError(f"scale: expected positive numbers, got {shown(scale)}")
    return sizes


def metadata(name, axes, scales, unit, func, version):
    """Return the attributes of an OME-Zarr image; `scales` are those of each level."""
    units = {"space": {"unit": unit}} if unit else {}
    types = [TYPES[axis] for axis in axes]
    image = {
        "name": name,
        "axes": [
            {"name": axis, "type": kind, **units.get(kind, {})}
            for axis, kind in zip(axes, types, strict=True)
        ],
        "datasets": [
            {
                "path": str(level),
                "coordinateTransformations": [
                    {"type": "scale", "scale": list(scale)},
                    {
                        "type": "translation",
                        "translation": [(a - b) / 2 for a, b in zip(scale, scales[0], strict=True)],
                    },
                ],
            }
            for level, scale in enumerate(scales)
        ],
        "type": func,
        "metadata": {"method": "fastpool.files.pyramid", "version": __version__},
    }
    if version == "0.4":
        return {"multiscales": [{"version": version, **image}]}
    return {"ome": {"version": version, "multiscales": [image]}}
