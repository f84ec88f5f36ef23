"""`fastpool pyramid` writes OME-Zarr images, and says in one line why it cannot."""

import numpy as np
import pytest

import cases
import fastpool

pytest.importorskip("click")
pytest.importorskip("rich")
zarr = pytest.importorskip("zarr")

X = np.random.default_rng(0).integers(0, 4, (3, 20, 33)).astype(np.uint64) << 60


def assert_levels(path, *expected):
    group = zarr.open_group(path, mode="r")
    for level, want in enumerate(expected):
        cases.assert_same(group[str(level)][:], want)
    return group


def test_a_tiff_file(folder):
    x = (X >> 60).astype(np.uint16)
    more = {"photometric": "minisblack", "metadata": {"axes": "ZYX"}}
    pytest.importorskip("tifffile").imwrite("a.tif", x, **more)
    arguments = "a.tif", "a.zarr", "--levels", "2", "--factor", "1,2,2", "--func", "mode"
    assert cases.command("pyramid", *arguments, "--nodata", "0") == (
        0,
        "a.zarr/0: uint16 3x20x33\na.zarr/1: uint16 3x10x17\na.zarr/2: uint16 3x5x9\n",
        "",
    )
    assert_levels("a.zarr", x, *fastpool.pyramid(x, 2, (1, 2, 2), "mode", nodata=0))


def test_all_options(folder):
    np.save("x.npy", X)
    options = ["--levels", "2", "--factor", "1,2,2", "--func", "median", "--axes", "cyx"]
    options += ["--ome-version", "0.4"]
    options += ["--chunks", "1,8,16", "--edge", "trim", "--rounding", "floor", "--min-count", "2"]
    options += ["--nodata", str(3 << 60), "--max-bytes", "64K", "--num-threads", "1"]
    status, printed, said = cases.command("pyramid", "x.npy", "y.zarr", *options)
    assert (status, said, printed.splitlines()[2]) == (0, "", "y.zarr/2: uint64 3x5x8")
    more = {"edge": "trim", "rounding": "floor", "min_count": 2, "nodata": 3 << 60}
    group = assert_levels("y.zarr", X, *fastpool.pyramid(X, 2, (1, 2, 2), "median", **more))
    assert group.metadata.zarr_format == 2 and group["0"].chunks == (1, 8, 16)
    x = np.where(X == 0, np.nan, X * 0.5)
    np.save("x.npy", x)
    for options, more in [
        (
            ["--func", "std", "--ddof", "1", "--nan", "ignore"],
            {"func": "std", "ddof": 1, "nan": "ignore"},
        ),
        (
            ["--numerics", "exact", "--result-dtype", "float64", "--nodata", "-0.5"],
            {"numerics": "exact", "dtype": "float64", "nodata": -0.5},
        ),
    ]:
        target = f"{more.get('func')}.zarr"
        arguments = "x.npy", target, "--levels", "1", "--axes", "zyx", *options
        assert cases.command("pyramid", *arguments)[::2] == (0, "")
        assert_levels(target, x, *fastpool.pyramid(x, 1, **more))


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["x.npy", "y.zarr"], 2, "Missing option '--levels'. (fastpool pyramid --help)"),
        (["x.npy", "y.zarr", "--levels", "2"], 2, "--axes: needed, because source does not"),
        (
            ["x.npy", "x.npy", "--levels", "2", "--axes", "tzyx"],
            2,
            "OUT: 'x.npy' exists, and is never overwritten",
        ),
        (["none.npy", "y.zarr", "--levels", "2"], 1, "none.npy: No such file or directory"),
        (["x.npy", "y.zarr", "--levels", "2", "--nodata", "none"], 2, "expected 0 or -9999.5, got"),
        (["x.npy", "y.zarr", "--levels", "2", "--axes", "tczyx"], 2, "--axes: expected a differ"),
        (
            ["x.npy", "y.zarr", "--levels", "2", "--axes", "tczy", "--ddof", "1"],
            *(2, "--axes: expected a different letter"),
        ),
        (
            ["x.npy", "y.zarr", "--levels", "9", "--axes", "tyxc", "--max-bytes", "1K"],
            *(2, "--max-bytes: expected at least"),
        ),
    ],
)
def test_errors_are_one_line(folder, arguments, status, message):
    got, printed, said = cases.command("pyramid", *arguments)
    assert (got, printed, said.count("\n")) == (status, "", 1)
    assert said.startswith("fastpool: ") and message in said
    assert cases.names(folder) == ["x.npy"]
