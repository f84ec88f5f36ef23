"""`fastpool pool` pools arrays and images from file to file, and says clearly why it cannot."""

import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import cases
import fastpool
import fastpool.files

pytest.importorskip("click")
pytest.importorskip("rich")

X, POOL = cases.IMAGES, cases.IMAGE_POOL
OPTIONS = ("--kernel", "3", "--strides", "2", "--layout", "NHWC")


def test_pool(folder):
    options = ["--kernel", "3", "--strides", "2,1", "--pads", "1", "--layout", "NHWC"]
    options += ["--ceil-mode", "--nan", "ignore", "--index-layout", "NHWC", "--index-axis", "1"]
    options += ["--indices", "z.npy", "--max-bytes", "2K", "--num-threads", "1"]
    options += ["--activation", "Clip", "--activation-params", "3,200.5"]
    assert cases.command("pool", "x.npy", "y.npy", *options) == (0, "y.npy: uint8 2x16x40x3\n", "")
    expected = fastpool.max_pool(
        *(X, 3),
        strides=(2, 1),
        pads=1,
        layout="NHWC",
        ceil_mode=True,
        index_layout="NHWC",
        index_axis=1,
        return_indices=True,
        activation="Clip",
        activation_params=(3, 200.5),
    )
    for name, want in zip(("y.npy", "z.npy"), expected, strict=True):
        cases.assert_same(np.load(name), want)


OPS = {
    "avg": (
        "--kernel 3 --strides 2 --pads 1 --count-include-pad --numerics exact "
        "--result-dtype float64",
        {
            **{"kernel_shape": 3, "strides": 2, "pads": 1, "count_include_pad": True},
            **{"dtype": "float64", "numerics": "exact"},
        },
    ),
    "avg ": (  # of integers
        "--kernel 2,3 --divisor 7 --rounding floor --ceil-mode --beyond count",
        {
            **{"kernel_shape": (2, 3), "divisor": 7, "rounding": "floor"},
            **{"ceil_mode": True, "beyond": "count"},
        },
    ),
    "global-avg": ("--keepdims 0", {"keepdims": False}),
    "global-max": ("--nan ignore", {"nan": "ignore"}),
    "adaptive-avg": ("--output-size 4,7", {"output_size": (4, 7)}),
    "adaptive-max": ("--output-size 5", {"output_size": 5}),
    "min": ("--kernel 3 --strides 2 --pads 1", {"kernel_shape": 3, "strides": 2, "pads": 1}),
    "global-min": ("", {}),
    "adaptive-min": ("--output-size 4,7", {"output_size": (4, 7)}),
}


@pytest.mark.parametrize("op", OPS)
def test_ops(folder, op):
    options, attributes = OPS[op]
    function = getattr(fastpool, op.strip().replace("-", "_") + "_pool")
    expected = function(X, layout="NHWC", **attributes)
    wanted = f"{expected.dtype} {'x'.join(map(str, expected.shape))}"
    options = ["--op", op.strip(), "--layout", "NHWC", *options.split()]
    assert cases.command("pool", "x.npy", "y.npy", *options) == (0, f"y.npy: {wanted}\n", "")
    cases.assert_same(np.load("y.npy"), expected)
    np.savez("in.npz", a=X)
    status, printed, said = cases.command("pool", "in.npz", "out.npz", *options)
    assert (status, printed, said) == (0, f"out.npz: a {wanted}\n", "")
    with np.load("out.npz") as out:
        cases.assert_same(out["a"], expected)


@pytest.mark.parametrize("target", ["y.npy", "y.npz"])
def test_indices_of_ops(folder, target):
    np.savez("x.npz", a=X)
    arguments = [f"x.{target[2:]}", target, "--op", "adaptive-max", "--output-size", "5"]
    indices = f"z.{target[2:]}"
    options = ["--layout", "NHWC", "--indices", indices, "--index-dtype", "int32"]
    assert cases.command("pool", *arguments, *options)[0] == 0
    attributes = {"layout": "NHWC", "return_indices": True, "index_dtype": "int32"}
    _, expected = fastpool.adaptive_max_pool(X, 5, **attributes)
    if target.endswith("y"):
        cases.assert_same(np.load(indices), expected)
    else:
        with np.load(indices) as found:
            cases.assert_same(found["a"], expected)


def test_pool_arrays_by_name(folder):
    arrays = {"a": X, "b": X.astype(np.float32)}
    np.savez("in.npz", **arrays)
    status, printed, _ = cases.command(
        "pool", "in.npz", "out.npz", *OPTIONS, "--indices", "where.npz"
    )
    assert status == 0 and printed.splitlines() == [
        "out.npz: a uint8 2x14x19x3",
        "out.npz: b float32 2x14x19x3",
    ]
    with np.load("out.npz") as out, np.load("where.npz") as where:
        assert out.files == where.files == ["a", "b"]
        for name, x in arrays.items():
            y, z = fastpool.max_pool(x, **POOL, return_indices=True)
            cases.assert_same(out[name], y)
            cases.assert_same(where[name], z)
    assert cases.command("pool", "in.npz", "one.npy", *OPTIONS, "--key", "b")[0] == 0
    cases.assert_same(np.load("one.npy"), fastpool.max_pool(arrays["b"], **POOL))


@pytest.mark.parametrize("mode, layout", [("RGB", "HWC"), ("LA", "HWC"), ("L", "HW"), ("1", "HW")])
def test_pool_images(folder, mode, layout):
    image = pytest.importorskip("PIL.Image")
    picture = image.fromarray(X[0]).convert(mode)
    picture.save("in.png")
    status, printed, said = cases.command(
        *("pool", "in.png", "out.png", "--kernel-shape", "2", "--indices", "z.npy")
    )
    assert (status, said) == (0, "") and printed.startswith("out.png: uint8 29x39")
    x = np.asarray(picture.convert("L") if mode == "1" else picture)
    y, z = fastpool.max_pool(x, 2, layout=layout, return_indices=True)
    cases.assert_same(np.asarray(image.open("out.png")), y)
    cases.assert_same(np.load("z.npy"), z)
    assert cases.command("pool", "in.png", "y.npy", "--kernel", "2")[0] == 0
    cases.assert_same(np.load("y.npy"), y)


def test_pool_into_an_image(folder):
    image = pytest.importorskip("PIL.Image")
    np.save("deep.npy", X[0, :, :, 0].astype(np.uint16) << 8)
    window = ("--kernel", "2", "--layout", "HW")
    assert cases.command("pool", "deep.npy", "y.png", *window)[0] == 0
    want = fastpool.max_pool(np.load("deep.npy"), 2, layout="HW")
    cases.assert_same(np.asarray(image.open("y.png")), want)
    # Pillow would round this one.
    np.save("wide.npy", np.full((4, 4), 1 / 3))
    status, _, said = cases.command("pool", "wide.npy", "y.tif", *window)
    assert (status, said) == (2, "fastpool: a TIFF image cannot hold float64 3x3\n")
    assert cases.names(folder) == ["deep.npy", "wide.npy", "x.npy", "y.png"]


def test_turned_photographs_are_turned(folder):
    image = pytest.importorskip("PIL.Image")
    exif = image.Exif()
    exif[0x0112] = 6  # a quarter to the right
    image.fromarray(X[0]).save("in.png", exif=exif)
    assert cases.command("pool", "in.png", "y.npy", "--kernel", "1")[0] == 0
    cases.assert_same(np.load("y.npy"), np.rot90(X[0], -1))


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        ("nothing.npy y.npy --kernel 2", 1, "nothing.npy: No such file or directory"),
        ("x.npy no/y.npy --kernel 2", 1, "y.npy: No such file or directory"),
        ("x.npy y.npy --kernel 99", 2, "--kernel-shape[0]: window (99"),
        ("x.npy y.npy --op mean --kernel 2", 2, "'mean' is not one of 'max', 'min', 'avg'"),
        ("x.npy y.npy --op avg", 2, "Missing option '--kernel-shape'"),
        ("x.npy y.npy --op adaptive-avg", 2, "Missing option '--output-size'"),
        (
            "x.npy y.npy --op global-avg --kernel 2",
            2,
            "--kernel-shape: has no meaning",
        ),
        ("x.npy y.npy --kernel 2 --divisor 2", 2, "--divisor: has no meaning with --op max"),
        ("x.npy y.npy --op avg --kernel 2 --indices z.npy", 2, "--indices: has no meaning with"),
        ("x.npy y.npy --op avg --kernel 2 --divisor 0", 2, "--divisor: expected an int other"),
        ("x.npy y.npy --op avg --kernel 2 --result-dtype float16", 2, "--result-dtype: "),
        ("x.npy y.npy --op global-max --keepdims 2", 2, "--keepdims: expected 0 or 1, got 2"),
        ("x.npy y.npy --kernel 2 --layout HC", 2, "--layout: expected"),
        ("x.npy y.npy --kernel 2 --auto-pad SAME", 2, "--auto-pad: expected one of"),
        ("x.npy y.npy --kernel 2,x", 2, "expected 3 or 3,3, got '2,x'"),
        ("x.npy y.npy --kernel 2 --max-bytes 2T", 2, "got '2T'"),
        ("x.npy y.npy --kernel 2 --key a", 2, "--key: only arrays in .npz files have names"),
        ("x.npy y.npz --kernel 2", 2, "'y.npz' cannot hold one array"),
        ("x.npy x.tif --kernel 2 --max-bytes 2M", 2, "--max-bytes: only from .npy files to"),
        ("x.npy y.npy --kernel 2 --indices ./y.npy", 2, "indices: expected another file"),
        ("x.npy y.png --kernel 2 --indices z.png", 2, "--indices: expected a name that ends"),
        ("x.npy y.png --kernel 2 --layout NHWC", 2, "a PNG image cannot hold uint8 2x29x39x3"),
        ("x.npy y.nothing --kernel 2", 2, "'y.nothing': expected a name that ends as"),
        ("in.npz y.npy --kernel 2", 2, "'y.npy' cannot hold the arrays of an .npz file; --key"),
        ("in.npz y.npz --kernel 3", 2, "axis H (b: uint8 2x3x2x5)"),
        ("in.npz y.npy --kernel 2 --key c", 2, "'in.npz' has no 'c'; it has a, b"),
        ("text.npz y.npz --kernel 2", 2, "'text.npz' is no .npz file of arrays: File is not"),
        ("odd.npz y.npz --kernel 2", 2, "'odd.npz': 'readme' is no array"),
        ("text.npy y.npy --kernel 2", 2, "IN: 'text.npy' is no .npy file"),
        ("text.npy y.png --kernel 2", 2, "IN: 'text.npy' is no .npy file"),
        ("text.txt y.npy --kernel 2", 2, "'text.txt' is no .npy or .npz file, nor a known image"),
        ("short.png y.npy --kernel 2", 1, "image file is truncated"),
        ("two.gif y.npy --kernel 2", 2, "'two.gif': expected one picture, or a .npy file, got 2"),
        ("in.png y.npy --kernel 2 --layout HW", 2, "--layout: expected none"),
    ],
)
def test_what_goes_wrong_is_one_line(folder, arguments, status, message):
    image = pytest.importorskip("PIL.Image")
    for name in ("text.npy", "text.npz", "text.txt"):
        Path(name).write_text("no array at all")
    np.savez("in.npz", a=X, b=np.zeros((2, 3, 2, 5), np.uint8))
    with zipfile.ZipFile("odd.npz", "w") as archive:
        archive.writestr("readme", "no array")
    one, two = (image.fromarray(x) for x in X)
    one.save("in.png")
    one.save("two.gif", save_all=True, append_images=[two])
    Path("short.png").write_bytes(Path("in.png").read_bytes()[:2000])
    before = cases.names(folder)
    got, printed, said = cases.command("pool", *arguments.split())
    assert (got, printed) == (status, "") and message in said and said.count("\n") == 1
    assert cases.names(folder) == before


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
@pytest.mark.parametrize(
    "arguments, message",
    [
        ("pool x.npy one.npy --kernel 2 --indices two.npy", "--indices: expected another file"),
        ("pool x.npy two.npy --kernel 2 --indices one.npy", "--indices: expected another file"),
        ("pool in.npz one.npz --kernel 2 --indices two.npz", "--indices: expected another file"),
        ("pool x.npy one.png --kernel 2 --indices two.npy", "--indices: expected another file"),
        ("explain --shape 6 --layout W --kernel 3 --svg one.svg --png two.png", "--png: expected"),
        ("bench --quick --json one.svg --plot two.svg", "--plot: expected another file"),
        ("bench sweep --quick --json one.png --plot one.png", "--plot: expected another file"),
    ],
)
def test_one_file_by_two_names_is_refused(folder, arguments, message):
    """Else what is written last would be all that is left."""
    pytest.importorskip("matplotlib")
    np.savez("in.npz", a=X)
    for ending in ("npy", "npz", "png", "svg"):
        Path(f"two.{ending}").symlink_to("one.npy")
        if ending != "npy":
            Path(f"one.{ending}").symlink_to("one.npy")
    before = cases.names(folder)
    status, printed, said = cases.command(*arguments.split())
    assert (status, printed) == (2, "") and message in said and said.count("\n") == 1
    assert cases.names(folder) == before


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("target", ["y.npy", "y.npz", "y.png"])
def test_a_private_file_stays_private(folder, target):
    pytest.importorskip("PIL")
    np.savez("in.npz", a=X)
    np.save("x.npy", X[0, ..., 0])
    Path(target).touch(mode=0o600)
    source, layout = ("in.npz", "NHWC") if target == "y.npz" else ("x.npy", "HW")
    assert cases.command("pool", source, target, "--kernel", "2", "--layout", layout)[0] == 0
    assert Path(target).stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize(
    "arguments, message",
    [
        ("x.npy pipe.npy --kernel 2", "OUT: expected a regular file, got 'pipe.npy', a pipe"),
        ("x.npy pipe.png --kernel 2", "OUT: expected a regular file, got 'pipe.png', a pipe"),
        ("x.npy y.png --kernel 2 --indices pipe.npy", "--indices: expected a regular file"),
        ("x.npy . --kernel 2", "'.': expected a name that ends as"),
        ("pipe.npy y.npy --kernel 2", "IN: expected a regular file, got 'pipe.npy', a pipe"),
        ("pipe.npy y.png --kernel 2", "IN: expected a regular file, got 'pipe.npy', a pipe"),
        ("pipe.npz y.npz --kernel 2", "IN: expected a regular file, got 'pipe.npz', a pipe"),
        ("pipe.png y.npy --kernel 2", "IN: expected a regular file, got 'pipe.png', a pipe"),
    ],
)
def test_pipes_are_refused(folder, arguments, message):
    pytest.importorskip("PIL")
    for ending in ("npy", "npz", "png"):
        os.mkfifo(f"pipe.{ending}")
    before = cases.names(folder)
    status, printed, said = cases.command("pool", *arguments.split())
    assert (status, printed) == (2, "") and message in said and said.count("\n") == 1
    assert cases.names(folder) == before


def test_an_image_without_pillow(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    for files in (("x.png", "y.npy"), ("x.npy", "y.png")):
        status, _, said = cases.command("pool", *files, "--kernel", "2")
        assert (status, said) == (2, 'fastpool: an image needs PIL: pip install "pillow"\n')


def test_strides_of_the_window(folder):
    options = ["--kernel", "2,3", "--strides", "window", "--layout", "NHWC"]
    assert cases.command("pool", "x.npy", "y.npy", *options)[0] == 0
    expected = fastpool.max_pool(X, (2, 3), strides=(2, 3), layout="NHWC")
    cases.assert_same(np.load("y.npy"), expected)
    status, _, said = cases.command("pool", "x.npy", "y.npy", "--kernel", "2", "--strides", "w")
    assert (status, said.count("\n")) == (2, 1)
    assert "'--strides': expected window, 3 or 3,3, got 'w'" in said
