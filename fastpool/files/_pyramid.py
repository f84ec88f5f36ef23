"""Pyramids of arrays larger than memory, as OME-Zarr images.

A region of level 0 is read once. It is copied, and all levels of it are reduced. A chunk of a level
holds results of many regions, so levels are gathered in temporary .npy files, and their chunks are
written at the end.
"""

import os
import secrets
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import product, repeat
from math import ceil, inf, lcm, prod
from operator import add, mul
from pathlib import Path

from .._api.blocks import block_reduce
from .._planning import arguments
from .._planning.blocks import levels as block_sizes
from .._planning.blocks import per_axis, resolve
from .._planning.dtypes import DTYPES
from .._planning.values import as_count, choice, is_sequence, shown
from ._npy import new
from ._volumes import TYPES, Volume, element_sizes, extra, metadata, names_of_axes, opened

# The default of `max_bytes`.
MAX_BYTES = 256 << 20
# What zarr knows.
ELEMENTS = [name for name in DTYPES if name != "bfloat16"]
# A chunk has at most this many bytes by default.
CHUNK_BYTES = 1 << 20
# Copies of a region in memory at a time: one is reduced, one written, and one compressed.
COPIES = 3


def pyramid(
    source,
    target,
    levels,
    factor=2,
    func="mean",
    *,
    axes=None,
    scale=None,
    unit=None,
    ome_version="0.5",
    chunks=None,
    edge="keep",
    dtype=None,
    rounding="half_even",
    ddof=0,
    numerics="pairwise",
    nan="propagate",
    nodata=None,
    min_count=None,
    max_bytes=MAX_BYTES,
    num_threads=None,
    progress=None,
):
    """Write an array and smaller levels of it as an OME-Zarr image.

    Array "0" of the image is a copy of the source, "1" the first reduced level, and so on. The
    levels are those of :func:`fastpool.pyramid` of that array, bit for bit.

    Parameters
    ----------
    source : str, os.PathLike or dask.array.Array
        A .npy file, the first image of a TIFF file (.tif, .tiff), or the folder of a zarr array. It
        is never written. The workers of a dask cluster write the chunks of a dask array, to a
        folder that all of them must see.
    target : str or os.PathLike
        Folder for the image. It must not exist, and appears when everything is done.
    levels : int
        Number of reduced levels, 1 to 64.
    factor : int or sequence of int
        Factor from level to level: for "z", "y" and "x", or per axis of the source. 1 leaves an
        axis as it is, as an int leaves times and channels.
    func : str
        As in :func:`fastpool.block_reduce`.
    axes : str, optional
        The axes of the source, a letter for each: "t" for time, "c" for channels, "z", "y" and "x".
        By default those that the file names. A .npy file and a dask array name none. The axes of
        the image are in the order "tczyx", whatever that of the source.
    scale : sequence of float, optional
        Size of an element along each axis of the source, which the scales of levels are multiples
        of. 1 by default, also where a file has sizes of its own.
    unit : str, optional
        Unit of `scale` along "z", "y" and "x". OME-Zarr requires words such as "micrometer", not
        "um"; this is not checked.
    ome_version : {"0.5", "0.4"}
        Version of OME-Zarr. 0.5 is zarr format 3, and 0.4 format 2.
    chunks : int or sequence of int, optional
        Elements of a chunk, for all axes or per axis of the source. By default 1 along "t" and "c",
        and along the others the greatest power of 2 for which a chunk has at most 1 MiB.
    edge, dtype, rounding, ddof, numerics, nan, nodata, min_count, num_threads
        As in :func:`fastpool.block_reduce`.
    max_bytes : int
        Memory for regions of the source and their results. One block of the last level must fit.
        For a dask array, its chunks decide instead.
    progress : callable, optional
        Called with the number of elements done and the number of all, first and after each region.
        For a dask array, dask shows the progress.

    Raises
    ------
    TypeError, ValueError
        As :func:`fastpool.pyramid`. Also if `target` exists, `source` is none of these, or `axes`
        or `max_bytes` does not fit.
    OSError
        A file cannot be read or written, or there is no room for the levels.
    ImportError
        zarr or tifffile is not installed.

    See Also
    --------
    fastpool.pyramid : Levels of an array in memory.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import zarr
    >>> import fastpool.files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.arange(48, dtype=np.uint8).reshape(6, 8))
    ...     fastpool.files.pyramid(f"{folder}/x.npy", f"{folder}/x.zarr", 2, axes="yx")
    ...     zarr.open(f"{folder}/x.zarr")["2"][:]
    array([[14, 18],
           [38, 42]], dtype=uint8)
    """
    options = {
        "edge": edge, "rounding": rounding, "ddof": ddof, "numerics": numerics, "nan": nan,
        "nodata": nodata, "min_count": min_count, "num_threads": num_threads,
    }  # fmt: skip
    max_bytes = as_count(max_bytes, "max_bytes")
    ome_version = choice(ome_version, "ome_version", ("0.5", "0.4"))
    if not isinstance(target, (str, os.PathLike)):
        raise TypeError(f"target: expected a str or os.PathLike, got {shown(target)}")
    if unit is not None and not isinstance(unit, str):
        raise TypeError(f"unit: expected a str or None, got {shown(unit)}")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress: expected a callable or None, got {shown(progress)}")
    with extra():
        import zarr
    with ExitStack() as stack:
        x, is_lazy = stack.enter_context(_volume(source)), not _is_path(source)
        if is_lazy and progress is not None:
            raise ValueError("progress: expected None for a dask array; dask shows it")
        name, rank = arguments.dtype_name(x.dtype, "source", ELEMENTS), len(x.shape)
        axes = names_of_axes(axes, x.axes, rank)
        order = sorted(range(rank), key=lambda axis: [*TYPES].index(axes[axis]))

        def ordered(values):
            return [values[axis] for axis in order]

        factors = per_axis(factor, "factor", rank)
        if not is_sequence(factor):
            factors = [f if TYPES[a] == "space" else 1 for f, a in zip(factors, axes, strict=True)]
        x, axes, factor = x.transposed(order), ordered(axes), ordered(factors)
        scale = ordered(element_sizes(scale, rank))
        if chunks is None:
            chunks = _default_chunks(x, axes)
        else:
            chunks = ordered(per_axis(chunks, "chunks", rank))
        sizes = block_sizes(levels, factor, x.shape)
        if max(sizes[-1]).bit_length() > sys.float_info.max_exp - 1:  # scales are floats
            raise ValueError(f"factor: {shown(max(factor))} is too large for {levels} levels")
        scales = [tuple(map(mul, size, scale)) for size in [(1,) * rank, *sizes]]
        if inf in scales[-1]:
            raise ValueError(f"scale: {shown(max(scale))} is too large for {levels} levels")
        plans = [
            resolve(x.shape, name, size, func, result_dtype=dtype, **options) for size in sizes
        ]
        options["dtype"] = dtype
        passes = None if is_lazy else _passes(x, chunks, plans, max_bytes)
        folder = stack.enter_context(_appearing(target))
        group = zarr.create_group(
            folder / "image",
            zarr_format=2 if ome_version == "0.4" else 3,
            attributes=metadata(
                Path(target).stem, axes, scales, unit, plans[0].function, ome_version
            ),
        )
        arrays = list(_arrays(group, x, plans, chunks, axes))
        if is_lazy:
            _store(source.transpose(order), arrays, levels, factor, func, **options)
        else:
            _write(x, arrays, plans, passes, folder, max_bytes, progress, options)


def _is_path(source):
    return isinstance(source, (str, os.PathLike))


@contextmanager
def _volume(source):
    """Open a file, or check that the source is a dask array."""
    if _is_path(source):
        with opened(source) as x:
            yield x
        return
    package = sys.modules.get("dask.array")
    if package is None or not isinstance(source, package.Array):
        raise TypeError(
            f"source: expected a str, os.PathLike or dask.array.Array, got {shown(source)}"
        )
    from ..dask._reductions import check

    check(source, "source")
    yield Volume(source.shape, source.dtype, None, tuple(range(source.ndim)), None)


def _default_chunks(x, axes):
    extents = [n for n, axis in zip(x.shape, axes, strict=True) if TYPES[axis] == "space"]
    side, most = 1, CHUNK_BYTES // x.dtype.itemsize
    while side < max(extents) and prod(min(2 * side, n) for n in extents) <= most:
        side *= 2
    return [side if TYPES[axis] == "space" else 1 for axis in axes]


@contextmanager
def _appearing(target):
    """Yield a folder next to `target`. If nothing is raised, its "image" becomes the target."""
    final = Path(target).absolute()
    _check_absent(target, final)
    part = final.with_name(f"{final.name}.{secrets.token_hex(8)}.part")
    try:
        part.mkdir()
    except OSError as error:
        error.filename = os.fspath(target)  # the caller knows no other name
        raise
    try:
        yield part
        _check_absent(target, final)
        (part / "image").rename(final)
    finally:
        shutil.rmtree(part, ignore_errors=True)  # a worker of dask may still write


def _check_absent(target, final):
    if os.path.lexists(final):
        raise ValueError(f"target: {os.fspath(target)!r} exists, and is never overwritten")


def _arrays(group, x, plans, chunks, axes):
    """Make the zarr array of each level."""
    # zstd's level 1 takes a sixth of the time of zarr's default, 3, for files 1.1 times as large.
    form = {"dimension_names": axes, "compressors": {"name": "zstd", "configuration": {"level": 1}}}
    if group.metadata.zarr_format == 2:
        form = {
            "chunk_key_encoding": {"name": "v2", "separator": "/"},
            "compressors": {"id": "zstd", "level": 1},
        }
    levels = [(x.shape, x.dtype.newbyteorder("="))]
    levels += [(plan.output_shape, plan.result_dtype_of(x.dtype)) for plan in plans]
    for level, (shape, dtype) in enumerate(levels):
        chunk = tuple(max(1, min(pair)) for pair in zip(shape, chunks, strict=True))
        yield group.create_array(str(level), shape=shape, dtype=dtype, chunks=chunk, **form)


def _store(x, arrays, *windows, **options):
    """Write all levels of a dask array. One of its chunks holds all of a chunk of a zarr array."""
    import dask.array as da

    from ..dask._reductions import pyramid, whole_blocks

    levels = [x, *pyramid(x, *windows, **options)]
    aligned = [
        level.rechunk(tuple(map(whole_blocks, level.chunks, array.chunks, level.shape)))
        for level, array in zip(levels, arrays, strict=True)
    ]
    da.store(aligned, arrays, lock=False)


def _passes(x, chunks, plans, max_bytes):
    """Return (extents of a region, whether it is copied, whether it is reduced) of each pass."""
    blocks = plans[-1].blocks  # those of all levels end where these end
    cost = COPIES * x.dtype.itemsize + sum(
        plan.result_dtype_of(x.dtype).itemsize * prod(plan.output_shape) / max(1, prod(x.shape))
        for plan in plans
    )
    most = int(min(max_bytes, sys.maxsize) / cost)
    both = _extents(x.shape, map(lcm, chunks, blocks), most, x.slow)
    if prod(both) <= most:
        return [(both, True, True)]
    copied, reduced = (_extents(x.shape, unit, most, x.slow) for unit in (chunks, blocks))
    need = max(prod(copied), prod(reduced))
    if need > most:
        raise ValueError(
            f"max_bytes: expected at least {ceil(need * cost)}, because a region of {need} "
            f"elements holds a chunk or a block of the last level, got {max_bytes}"
        )
    return [(copied, True, False), (reduced, False, True)]


def _extents(shape, unit, most, slow):
    """Return the extents of a region of `most` elements, or of one unit: slow axes are cut first.

    Regions begin at multiples of `unit`.
    """
    extents, unit = [*map(max, shape, repeat(1))], [*map(min, shape, unit)]
    for axis in slow:
        extents[axis] = 1
        fits = most // prod(extents) // max(1, unit[axis]) * unit[axis]
        extents[axis] = max(1, unit[axis], min(shape[axis], fits))
    return extents


def _regions(shape, extents):
    """Yield the slices of each region of an array."""
    if 0 in shape:
        return
    starts = (range(0, n, extent) for n, extent in zip(shape, extents, strict=True))
    for start in product(*starts):
        ends = map(min, map(add, start, extents), shape)
        yield tuple(map(slice, start, ends))


def _write(x, arrays, plans, passes, folder, max_bytes, progress, options):
    """Write all levels of a volume. A region is written while the next one is reduced."""
    done, every = 0, len(passes) * prod(x.shape) + sum(array.size for array in arrays[1:])
    progress = progress or (lambda done, every: None)
    with ThreadPoolExecutor(1) as thread:  # which an interrupt waits for
        written = thread.submit(int)
        progress(done, every)
        for array, region, values in _steps(x, arrays, plans, passes, folder, max_bytes, options):
            written.result()
            if array is not None:
                written = thread.submit(array.__setitem__, region, values)
            done += values.size
            progress(done, every)
        written.result()


def _steps(x, arrays, plans, passes, folder, max_bytes, options):
    """Reduce region by region, and yield (zarr array or None, region, values) to write."""
    levels = []
    with ExitStack() as stack:
        for array, plan in zip(arrays[1:], plans, strict=True):
            path = folder / f"{array.basename}.npy"
            path.touch()
            level = new(path, array.shape, array.dtype, array.shape)
            levels.append((array, plan, stack.enter_context(level)))
        for extents, is_copied, is_reduced in passes:
            for region in _regions(x.shape, extents):
                values = x.read(region)
                for _, plan, level in levels if is_reduced else ():
                    at = tuple(
                        slice(part.start // size, -(-part.stop // size))
                        for part, size in zip(region, plan.blocks, strict=True)
                    )
                    out = level.mapped()[at]
                    block_reduce(values, plan.blocks, plan.function, out=out, **options)
                yield arrays[0] if is_copied else None, region, values
        for array, _, level in levels:
            most = max_bytes // (COPIES * array.dtype.itemsize)
            extents = _extents(array.shape, array.chunks, most, range(array.ndim))
            for region in _regions(array.shape, extents):
                yield array, region, level.mapped()[region]
