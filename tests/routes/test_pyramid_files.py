"""fastpool.files.pyramid writes OME-Zarr images with the bits of fastpool.pyramid, or nothing."""

import doctest
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import block_cases
import cases
import fastpool
import fastpool.files
import limits

zarr = pytest.importorskip("zarr")

X = np.random.default_rng(0).integers(0, 1000, (9, 21, 17)).astype(np.uint16)
FUNCTIONS = block_cases.FUNCS
AXES = {2: ["yx", "xy"], 3: ["zyx", "cyx", "tyx", "yxc", "xyz"], 4: ["czyx", "tzyx", "zcyx"]}
AXES[5] = ["tczyx", "tzcyx"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    return tmp_path


def write(source="x.npy", target="y.zarr", levels=2, factor=2, func="mean", axes="zyx", **more):
    fastpool.files.pyramid(source, target, levels, factor, func, axes=axes, **more)
    return zarr.open_group(target, mode="r")


def per_axis(factor, axes):
    """Return the factors of `axes`. An int leaves times and channels as they are."""
    return [1 if a in "tc" else factor for a in axes] if isinstance(factor, int) else factor


def attributes_of(group):
    attributes = dict(group.attrs)
    return attributes.get("ome", attributes)["multiscales"][0]


def assert_holds(group, x, levels, factor, func, axes=None, **more):
    """Compare an image with `x`, whose axes are `axes`, and its levels in memory."""
    axes = axes or "tczyx"[-x.ndim :]
    order = sorted(range(x.ndim), key=lambda axis: "tczyx".index(axes[axis]))
    x = x.transpose(order)
    factor = [per_axis(factor, axes)[axis] for axis in order]
    expected = [x.astype(x.dtype.newbyteorder("="))]
    expected += fastpool.pyramid(x, levels, factor, func, **more)
    assert {*group.array_keys()} == {str(level) for level in range(levels + 1)}
    for level, want in enumerate(expected):
        cases.assert_same(group[str(level)][:], want, f"level {level}")
        shape = zip(group[str(level)].shape, group["0"].chunks, strict=True)
        assert group[str(level)].chunks == tuple(max(1, min(pair)) for pair in shape)
    image = attributes_of(group)
    assert [axis["name"] for axis in image["axes"]] == [axes[axis] for axis in order]
    for level, data in enumerate(image["datasets"]):
        scale, shift = data["coordinateTransformations"]
        steps = [float(f**level) for f in factor]
        assert data["path"] == str(level) and scale == {"type": "scale", "scale": steps}
        assert shift == {"type": "translation", "translation": [(f - 1) / 2 for f in steps]}
    assert image["type"] == func


# ------------------------------------------------------------------------------------------ results


def drawn(rng):
    """Return an array, axes, levels, a factor, a statistic and attributes, which need not agree."""
    rank = int(rng.integers(2, 6))
    shape = tuple(rng.integers(rng.random() < 0.97, 40 if rank == 2 else 12, rank).tolist())
    x = (rng.standard_normal(shape) * 4).astype(
        rng.choice([*cases.INTEGER_NAMES, "bool", "float16", "float32", "float64"])
    )
    if x.dtype.kind == "f":
        x[rng.random(shape) < 0.2] = rng.choice([np.nan, -0.0])
    x = cases.arranged(x, rng.choice(cases.ARRANGEMENTS))
    factor = tuple(rng.integers(1, 4, rank).tolist()) if rng.random() < 0.7 else 2
    more = {"edge": str(rng.choice(["keep", "keep", "trim", "exact"]))}
    for name, value in (
        ("nan", "ignore"),
        ("nodata", int(rng.integers(2))),
        ("min_count", int(rng.integers(1, 3))),
        ("ddof", 1),
        ("rounding", "half_away"),
        ("numerics", "exact"),
        ("dtype", rng.choice(["float64", "float32", "int64"])),
        ("num_threads", 1),
    ):
        if rng.random() < 0.2:
            more[name] = value
    return (
        x,
        str(rng.choice(AXES[rank])),
        int(rng.integers(1, 4)),
        factor,
        str(rng.choice(FUNCTIONS)),
        more,
    )


@pytest.mark.parametrize("seed", range(150))
def test_any_array_and_attributes(folder, seed):
    rng = np.random.default_rng(seed)
    x, axes, levels, factor, func, more = drawn(rng)
    np.save("x.npy", x)
    version, sizes = str(rng.choice(["0.5", "0.4"])), {}
    if rng.random() < 0.8:
        sizes["chunks"] = rng.integers(1, 9, x.ndim).tolist() if rng.random() < 0.7 else 4
    given = {**more, **sizes, "ome_version": version}
    try:
        fastpool.pyramid(x, levels, per_axis(factor, axes), func, **more)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            write(levels=levels, factor=factor, func=func, axes=axes, **given)
        assert cases.names(folder) == ["x.npy"]
        return
    try:
        group = write(levels=levels, factor=factor, func=func, axes=axes, max_bytes=2000, **given)
    except ValueError as error:
        least = int(re.search("max_bytes: expected at least ([0-9]+)", str(error))[1])
        assert least > 2000
        group = write(levels=levels, factor=factor, func=func, axes=axes, max_bytes=least, **given)
    assert group.metadata.zarr_format == (2 if version == "0.4" else 3)
    assert_holds(group, x, levels, factor, func, axes, **more)
    assert cases.names(folder) == ["x.npy", "y.zarr"]


def save_tiff(x, **more):
    pytest.importorskip("tifffile").imwrite("x.tif", x, **more)
    return "x.tif"


def save_zarr(x, path="x.zarr", **more):
    zarr.create_array(path, data=x, **more)
    return path


@pytest.mark.parametrize(
    ("metadata", "axes"),
    [({"axes": "ZYX"}, "zyx"), ({"axes": "TYX"}, "tyx"), ({"axes": "CYX"}, "cyx")],
)
@pytest.mark.parametrize(
    "kind", [{"ome": True}, {"imagej": True}, {"compression": "zlib"}, {"rowsperstrip": 2}]
)
def test_tiff_files_name_their_axes(folder, metadata, axes, kind):
    source = save_tiff(X, metadata=metadata, **kind)
    assert_holds(write(source, axes=None, max_bytes=20000, chunks=4), X, 2, 2, "mean", axes)


def test_tiff_files_in_other_orders(folder):
    """ImageJ keeps channels after z. Colours come last, and tiles do not divide the array."""
    x = np.arange(2 * 3 * 4 * 20 * 18, dtype=np.uint16).reshape(2, 3, 4, 20, 18)
    source = save_tiff(x, imagej=True, metadata={"axes": "TZCYX"})
    factor = 1, 2, 1, 2, 2
    assert_holds(write(source, factor=factor, axes=None), x, 2, factor, "mean", "tzcyx")
    x = np.random.default_rng(0).integers(0, 256, (50, 37, 3), np.uint8)
    for target, more in [("a.zarr", {"rowsperstrip": 5}), ("b.zarr", {"tile": (16, 32)})]:
        source = save_tiff(x, photometric="rgb", **more)
        group = write(source, target, factor=(2, 2, 1), axes=None, max_bytes=10000, chunks=8)
        assert_holds(group, x, 2, (2, 2, 1), "mean", "yxc")


def test_tiff_files_with_unknown_axes(folder):
    source = save_tiff(X, metadata={"axes": "QYX"})
    with pytest.raises(ValueError, match="^axes: needed"):
        write(source, axes=None)
    assert_holds(write(source, axes="zyx"), X, 2, 2, "mean")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr_arrays(folder, zarr_format):
    source = save_zarr(X, zarr_format=zarr_format, chunks=(5, 6, 7))
    with pytest.raises(ValueError, match="^axes: needed"):
        write(source, axes=None)
    group = write(source, max_bytes=30000, chunks=4, func="mode", nodata=3)
    assert_holds(group, X, 2, 2, "mode", nodata=3)


def test_zarr_arrays_name_their_axes(folder):
    source = save_zarr(X, dimension_names=["c", "y", "x"])
    assert_holds(write(source, axes=None), X, 2, 2, "mean", "cyx")
    again = write("y.zarr/0", "z.zarr", axes=None)
    assert_holds(again, X, 2, 2, "mean", "cyx")
    xarrays = save_zarr(X, "v.zarr", zarr_format=2, attributes={"_ARRAY_DIMENSIONS": list("zyx")})
    assert_holds(write(xarrays, "w.zarr", axes=None), X, 2, 2, "mean", "zyx")
    other = save_zarr(X, "u.zarr", dimension_names=["band", None, "x"])
    with pytest.raises(ValueError, match="^axes: needed"):
        write(other, "t.zarr", axes=None)


def test_levels_beyond_the_array(folder):
    assert_holds(write(levels=64, func="sum"), X, 64, 2, "sum")
    assert_holds(
        write(target="z.zarr", factor=10**18, chunks=2**80, max_bytes=2**1020), X, 2, 10**18, "mean"
    )
    assert_holds(write(target="a.zarr", levels=1, factor=2**1020), X, 1, 2**1020, "mean")


@pytest.mark.parametrize("shape", [(0, 4, 5), (4, 0, 5), (4, 5, 0), (0, 0, 0), (1, 1, 1)])
@pytest.mark.parametrize("edge", ["keep", "trim"])
@pytest.mark.parametrize("version", ["0.5", "0.4"])
def test_arrays_of_no_elements(folder, shape, edge, version):
    x = np.ones(shape, np.float32)
    np.save("x.npy", x)
    group = write(func="sum", edge=edge, ome_version=version, chunks=3)
    assert_holds(group, x, 2, 2, "sum", edge=edge)


def test_zeros_of_both_signs(folder):
    """Chunks of zeros are not stored, but those of -0.0 are."""
    x = np.zeros((16, 16), np.float32)
    x[:8] = -0.0
    np.save("x.npy", x)
    group = write(axes="yx", chunks=4, func="min")
    assert_holds(group, x, 2, 2, "min")
    assert not Path("y.zarr/0/c/3/3").exists() and Path("y.zarr/0/c/0/0").exists()


@pytest.mark.parametrize("source", ["x.npy", "x.zarr"])
def test_memory_is_bounded(folder, source):
    """192 MiB, 16 MiB at a time."""
    x = np.lib.format.open_memmap("x.npy", "w+", np.uint16, (96, 1024, 1024))
    x[::7] = np.arange(1024)
    if source == "x.zarr":
        save_zarr(x, chunks=(32, 64, 64))
    del x
    code = """
import fastpool.files
def write():
    fastpool.files.pyramid("{}", "y.zarr", 3, axes="zyx", chunks=32, max_bytes=16 << 20)
print(added(write))
"""
    process = cases.run_python(limits.ADDED + code.format(source))
    assert process.returncode == 0, process.stderr
    assert int(process.stdout) < 96 << 20  # zarr, its threads and files that are mapped take most
    y = zarr.open_array("y.zarr/1", mode="r")
    assert y.shape == (48, 512, 512) and y[0, 0, 5] == 5


def test_progress(folder):
    calls = []
    group = write(max_bytes=20000, chunks=4, progress=lambda *call: calls.append(call))
    every = sum(group[name].size for name in group.array_keys())
    done, totals = zip(*calls, strict=True)
    assert done[0] == 0 and done[-1] == every and set(totals) == {every}
    assert list(done) == sorted(done) and len(done) > 5


def test_files_are_those_of_the_format(folder):
    np.save("x.npy", np.full((2, 9, 8), 7, np.int16))
    group = write(axes="cyx", factor=(1, 2, 2))
    assert group["0"].metadata.dimension_names == ("c", "y", "x")
    assert [axis["type"] for axis in attributes_of(group)["axes"]] == ["channel", "space", "space"]
    assert group["0"].chunks == (1, 9, 8) and Path("y.zarr/0/c/0/0/0").exists()
    write(target="z.zarr", axes="cyx", factor=(1, 2, 2), ome_version="0.4")
    assert Path("z.zarr/0/0/0/0").exists() and Path("z.zarr/.zattrs").exists()
    mode = os.stat("x.npy").st_mode & 0o777
    assert os.stat("y.zarr/0/c/0/0/0").st_mode & 0o777 == mode


@pytest.mark.parametrize(
    ("dtype", "axes", "first", "chunks"),
    [
        ("uint8", "zyx", (1,), (1, 1024, 1024)),
        ("uint8", "zyx", (5,), (5, 256, 256)),
        ("uint8", "zyx", (130,), (64, 64, 64)),
        ("float32", "tczyx", (1, 1, 40), (1, 1, 40, 64, 64)),
        ("float64", "zyx", (33,), (32, 32, 32)),
        ("uint16", "cyx", (3,), (1, 512, 512)),
        ("uint8", "yx", (), (1024, 1024)),
    ],
)
def test_chunks_by_default(folder, dtype, axes, first, chunks):
    x = np.lib.format.open_memmap("x.npy", "w+", dtype, (*first, 1100, 1050))
    group = write(axes=axes, levels=1)
    expected = [min(pair) for pair in zip(x.shape, chunks, strict=True)]
    assert group["0"].chunks == tuple(expected)


@pytest.mark.parametrize("version", ["0.5", "0.4"])
def test_the_metadata_is_valid(folder, version):
    models = pytest.importorskip("ome_zarr_models")
    from ome_zarr_models import v04, v05

    for target, axes, factor in [("y.zarr", "zyx", 2), ("z.zarr", "yxc", (2, 2, 1))]:
        group = write(target=target, axes=axes, factor=factor, ome_version=version)
        image = models.open_ome_zarr(group)
        assert isinstance(image, v05.Image if version == "0.5" else v04.Image)
        multiscale = (image.ome_attributes if version == "0.5" else image.attributes).multiscales[0]
        assert multiscale.type == "mean" and len(multiscale.datasets) == 3


@pytest.mark.parametrize("version", ["0.5", "0.4"])
def test_sizes_of_elements(folder, version):
    """They are for the axes of the source, and units for those of space."""
    more = {"scale": (0.25, 2, 0.5), "unit": "micrometer", "ome_version": version}
    image = attributes_of(write(axes="xcy", factor=(2, 1, 4), **more))
    space = {"type": "space", "unit": "micrometer"}
    channels = {"name": "c", "type": "channel"}
    assert image["axes"] == [channels, {"name": "y", **space}, {"name": "x", **space}]
    transforms = [data["coordinateTransformations"] for data in image["datasets"]]
    assert [scale["scale"] for scale, _ in transforms] == [[2, 0.5, 0.25], [2, 2, 0.5], [2, 8, 1]]
    shifts = [shift["translation"] for _, shift in transforms]
    assert shifts == [[0, 0, 0], [0, 0.75, 0.125], [0, 3.75, 0.375]]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("version", ["0.5", "0.4"])
def test_ome_zarr_reads_it(folder, version):
    io, reader = pytest.importorskip("ome_zarr.io"), pytest.importorskip("ome_zarr.reader")
    write(ome_version=version)
    (node,) = reader.Reader(io.parse_url("y.zarr"))()
    for level, want in zip(node.data, [X, *fastpool.pyramid(X, 2)], strict=True):
        cases.assert_same(np.asarray(level), want)
    assert [axis["name"] for axis in node.metadata["axes"]] == ["z", "y", "x"]


# -------------------------------------------------------------------------------------------- dask


@pytest.mark.parametrize("seed", range(20))
def test_dask_arrays(folder, seed):
    dask = pytest.importorskip("dask")
    import dask.array as da

    rng = np.random.default_rng(seed)
    x, axes, levels, factor, func, more = drawn(rng)
    more = {**more, "edge": "keep"}
    cuts = [np.sort(rng.integers(0, n + 1, 2)) for n in x.shape]
    chunks = [np.diff([0, *cut, n]).tolist() for cut, n in zip(cuts, x.shape, strict=True)]
    lazy = da.from_array(x, tuple(map(tuple, chunks)))
    try:
        fastpool.pyramid(x, levels, per_axis(factor, axes), func, **more)
    except (TypeError, ValueError) as refused:
        with pytest.raises(type(refused), match=re.escape(str(refused))):
            write(lazy, "y.zarr", levels, factor, func, axes, chunks=4, **more)
        assert cases.names(folder) == ["x.npy"]
        return
    with dask.config.set(scheduler="threads"):
        group = write(lazy, "y.zarr", levels, factor, func, axes, chunks=4, **more)
    assert_holds(group, x, levels, factor, func, axes, **more)
    assert cases.names(folder) == ["x.npy", "y.zarr"]


def test_bad_dask_arrays(folder):
    da = pytest.importorskip("dask.array")
    x = da.from_array(X)
    for call, message in [
        (lambda: write(x, axes=None), "^axes: needed"),
        (lambda: write(x, progress=print), "^progress: expected None for a dask array"),
        (lambda: write(x[x[:, 0, 0] > 3]), "^source: sizes of chunks are unknown"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    broken = da.map_blocks(lambda block: 1 / 0, x, dtype=x.dtype, meta=np.empty((0,) * 3, x.dtype))
    with pytest.raises(ZeroDivisionError):
        write(broken)
    assert cases.names(folder) == ["x.npy"]


# ------------------------------------------------------------------------------------------ refused


BAD = [
    ({"axes": None}, ValueError, "axes: needed"),
    ({"axes": "yx"}, ValueError, "axes: expected a different letter of .tczyx. for each of 3"),
    ({"axes": "yyx"}, ValueError, "axes: "),
    ({"axes": "zyq"}, ValueError, "axes: "),
    ({"axes": "tcx"}, ValueError, "axes: "),
    ({"axes": "ZYX"}, ValueError, "axes: "),
    ({"axes": "z" * 10**6}, ValueError, "axes: "),
    ({"axes": ["z", "y", "x"]}, TypeError, "axes: "),
    ({"scale": 1.0}, TypeError, "scale: expected a sequence of floats, got 1.0"),
    ({"scale": "123"}, TypeError, "scale: "),
    ({"scale": (1, 2)}, ValueError, "scale: expected 3 values, one per axis of the source, got 2"),
    ({"scale": (1, "2", 3)}, TypeError, r"scale\[1\]: expected a number"),
    ({"scale": (1, 2, float("nan"))}, ValueError, r"scale\[2\]: "),
    ({"scale": (1, 0, 3)}, ValueError, "scale: expected positive numbers"),
    ({"scale": (1, 2, float("inf"))}, ValueError, "scale: expected positive numbers"),
    ({"scale": (1, 2, 1.5e308)}, ValueError, "scale: 1.5e[+]308 is too large for 2 levels"),
    ({"unit": 1}, TypeError, "unit: expected a str or None, got 1"),
    ({"levels": 0}, ValueError, "levels: "),
    ({"levels": 65}, ValueError, "levels: "),
    ({"levels": 2.0}, TypeError, "levels: "),
    ({"factor": 1}, ValueError, "factor: "),
    ({"factor": (2, 2)}, ValueError, "factor: "),
    ({"factor": 0}, ValueError, "factor: "),
    ({"factor": 2**5000}, ValueError, "factor: "),
    ({"factor": 2**1024 - 1, "levels": 1}, ValueError, "factor: .* is too large for 1 levels"),
    ({"factor": "2"}, TypeError, "factor: "),
    ({"func": "average"}, ValueError, "func: "),
    ({"func": max}, TypeError, "func: "),
    ({"edge": "pad"}, ValueError, "edge: "),
    ({"edge": "exact"}, ValueError, "block_size"),
    ({"dtype": "uint8"}, ValueError, "dtype: "),
    ({"rounding": "up"}, ValueError, "rounding: "),
    ({"ddof": 1}, ValueError, "ddof: "),
    ({"numerics": "fast"}, ValueError, "numerics: "),
    ({"nan": "no"}, ValueError, "nan: "),
    ({"nodata": -1}, ValueError, "nodata: "),
    ({"nodata": "0"}, TypeError, "nodata: "),
    ({"min_count": 0}, ValueError, "min_count: "),
    ({"min_count": 9}, ValueError, "min_count: "),
    ({"min_count": 2}, ValueError, "nodata: needed"),
    ({"num_threads": 0}, ValueError, "num_threads: "),
    ({"chunks": 0}, ValueError, "chunks: "),
    ({"chunks": (4, 4)}, ValueError, "chunks: "),
    ({"chunks": 2.5}, TypeError, "chunks: "),
    ({"max_bytes": 0}, ValueError, "max_bytes: "),
    ({"max_bytes": 100}, ValueError, "max_bytes: expected at least [0-9]+"),
    ({"max_bytes": 1e9}, TypeError, "max_bytes: "),
    ({"ome_version": "0.6"}, ValueError, "ome_version: "),
    ({"ome_version": 0.5}, TypeError, "ome_version: "),
    ({"progress": 3}, TypeError, "progress: "),
    ({"target": 3}, TypeError, "target: "),
    ({"target": "x.npy"}, ValueError, "target: .x.npy. exists, and is never overwritten"),
    ({"target": "."}, ValueError, "target: .*exists"),
    ({"target": ""}, ValueError, "target: .*exists"),
    ({"target": "x.npy/"}, ValueError, "target: .*exists"),
    ({"source": X}, TypeError, "source: expected a str, os.PathLike or dask.array.Array"),
    ({"source": "x.png"}, ValueError, "source: expected a name that ends in .npy"),
    ({"source": "none.npy"}, FileNotFoundError, "none.npy"),
    ({"source": "none.zarr"}, FileNotFoundError, "none.zarr"),
    ({"source": "none.tif"}, FileNotFoundError, "none.tif"),
    ({"where": X > 3}, TypeError, "where"),
    ({"return_counts": True}, TypeError, "return_counts"),
]


@pytest.mark.parametrize(("arguments", "kind", "message"), BAD, ids=cases.shown)
def test_bad_arguments_write_nothing(folder, arguments, kind, message):
    if "tif" in str(arguments.get("source")):
        pytest.importorskip("tifffile")
    with pytest.raises(kind, match=message):
        write(**arguments)
    assert cases.names(folder) == ["x.npy"]


def test_sources_that_hold_no_array(folder):
    pytest.importorskip("tifffile")
    whole = Path("x.npy").read_bytes()
    Path("short.npy").write_bytes(whole[:-1])
    Path("text.tif").write_bytes(b"text" * 9)
    Path("empty.tif").touch()
    Path("empty.zarr").mkdir()
    Path("file.zarr").write_bytes(whole)
    zarr.create_group("group.zarr")
    zarr.create_array("text.zarr", shape=(3, 4, 5), dtype="U3", zarr_format=2)
    zarr.create_array("complex.zarr", shape=(3, 4, 5), dtype="complex64")
    Path("spoiled.zarr").mkdir()
    Path("spoiled.zarr/zarr.json").write_text("{")
    before = cases.names(folder)
    for name in before:
        if name != "x.npy":
            with pytest.raises((ValueError, TypeError), match="^source: "):
                write(name)
    assert cases.names(folder) == before


@pytest.mark.parametrize("more", [{"compression": "zlib"}, {}])
def test_a_tiff_file_that_ends_early(folder, more):
    x = np.random.default_rng(0).integers(0, 255, (9, 300, 200), np.uint8)
    whole = Path(save_tiff(x, photometric="minisblack", **more)).read_bytes()
    Path("x.tif").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError):  # the array, or its decoding
        write("x.tif")
    Path("x.tif").write_bytes(whole[:7])
    with pytest.raises(ValueError, match="^source: .x.tif. is not a TIFF file"):
        write("x.tif")
    assert cases.names(folder) == ["x.npy", "x.tif"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("at", [0, 3, -1])
def test_an_error_on_the_way_leaves_nothing(folder, error, at):
    calls = []
    write(target="z.zarr", chunks=4, max_bytes=20000, progress=lambda *call: calls.append(call))
    stop = calls[at]

    def progress(*call):
        if call == stop:
            raise error

    with pytest.raises(error):
        write(chunks=4, max_bytes=20000, progress=progress)
    assert cases.names(folder) == ["x.npy", "z.zarr"]


def test_an_error_of_the_writing_thread_leaves_nothing(folder, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zarr.Array, "__setitem__", full)
    with pytest.raises(OSError, match="No space"):
        write()
    assert cases.names(folder) == ["x.npy"]


def test_chunks_that_are_no_chunks(folder):
    chunk = Path(save_zarr(X, chunks=(4, 4, 4)), "c/0/0/0")
    chunk.write_bytes(b"text")
    with pytest.raises(ValueError, match="^source: .x.zarr. cannot be decoded"):
        write("x.zarr")
    assert cases.names(folder) == ["x.npy", "x.zarr"]


def test_names_are_no_addresses(folder):
    """zarr takes text with "::" for a chain of file systems."""
    Path("a").mkdir()
    fastpool.files.pyramid("x.npy", "a::b.zarr", 2, axes="zyx")
    fastpool.files.pyramid("a::b.zarr/0", "y::z.zarr", 2)
    assert cases.names(folder) == ["a", "a::b.zarr", "x.npy", "y::z.zarr"]
    assert not list(Path("a").iterdir())


def test_targets_that_exist_stay(folder):
    Path("empty").mkdir()
    Path("link").symlink_to("nowhere")
    Path("linked").symlink_to("empty")
    before = cases.names(folder)
    for target in before:
        with pytest.raises(ValueError, match=f"^target: .{target}. exists"):
            write(target=target)
    assert cases.names(folder) == before and not any(Path("empty").iterdir())


def test_a_target_that_appears_meanwhile_stays(folder):
    with pytest.raises(ValueError, match="^target: .y. exists"):
        write(target="y", progress=lambda *call: Path("y").write_bytes(b"precious"))
    assert cases.names(folder) == ["x.npy", "y"] and Path("y").read_bytes() == b"precious"


def test_folders_that_take_nothing(folder, monkeypatch):
    with pytest.raises(FileNotFoundError, match="none/y.zarr"):
        write(target="none/y.zarr")

    def refuse(path, *arguments):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)  # (root may write to every folder)
    with pytest.raises(PermissionError, match="'y.zarr'"):
        write()
    assert cases.names(folder) == ["x.npy"]


@pytest.mark.parametrize("missing", ["zarr", "tifffile"])
def test_missing_packages(folder, monkeypatch, missing):
    Path("x.tif").touch()
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=f'{missing}: pip install "fastpool.zarr."'):
        write("x.tif")


def test_docstring():
    results = doctest.testmod(fastpool.files._pyramid)
    assert results.attempted and results.failed == 0
