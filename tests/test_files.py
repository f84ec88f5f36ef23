"""Pooling of .npy files in bounded memory, and its commands."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cases
import fastpool
import fastpool.files
from fastpool.__main__ import main

X = cases.values((2, 30, 40, 3), "uint8", "bits", 0)
POOL = {"kernel_shape": 3, "strides": 2, "layout": "NHWC"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with an input."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    return tmp_path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@cases.examples(40)
@given(
    cases.pools(dtypes=["float32", "uint8", "float16", "int64"]),
    st.sampled_from([100, 2000, 10**9]),
)
def test_any_geometry_in_tiles(tmp_path_factory, case, max_bytes):
    folder = tmp_path_factory.mktemp("files")
    x, y, z = (folder / f"{name}.npy" for name in "xyz")
    np.save(x, case.x())
    plan = fastpool.files.max_pool(
        x, y, case.kernel_shape, indices=z, max_bytes=max_bytes, **case.attributes
    )
    expected = fastpool.max_pool(
        np.load(x), case.kernel_shape, return_indices=True, **case.attributes
    )
    assert plan.output_shape == expected[0].shape
    for path, want in zip((y, z), expected, strict=True):
        cases.assert_same(np.load(path), want)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_orders(folder, order, byte_order):
    x = np.arange(600, dtype=f"{byte_order}f4").reshape(20, 30, order=order)
    np.save("x.npy", x)
    fastpool.files.max_pool("x.npy", "y.npy", 3, layout="HW", max_bytes=200)
    cases.assert_same(np.load("y.npy"), fastpool.max_pool(x, 3, layout="HW"))


def test_progress(folder):
    seen = []
    fastpool.files.max_pool(
        "x.npy", "y.npy", **POOL, max_bytes=2000, progress=lambda *at: seen.append(at)
    )
    done, every = zip(*seen, strict=True)
    size = np.load("y.npy").size
    assert done[0] == 0 and done[-1] == size and set(every) == {size}
    assert list(done) == sorted(done) and len(done) > 3


def test_the_input_may_be_replaced(folder):
    fastpool.files.max_pool("x.npy", "x.npy", **POOL)
    cases.assert_same(np.load("x.npy"), fastpool.max_pool(X, **POOL))


def test_files_have_the_usual_permissions(folder):
    fastpool.files.max_pool("x.npy", "y.npy", **POOL)
    assert os.stat("y.npy").st_mode == os.stat("x.npy").st_mode


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_half_way_leaves_everything_as_it_was(folder, error):
    Path("y.npy").write_bytes(b"precious")

    def stop(done, every):
        if done:
            raise error

    with pytest.raises(error):
        fastpool.files.max_pool(
            "x.npy", "y.npy", **POOL, indices="z.npy", max_bytes=1000, progress=stop
        )
    assert names(folder) == ["x.npy", "y.npy"] and Path("y.npy").read_bytes() == b"precious"


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="only where room can be reserved")
def test_a_full_disk_is_found_before_anything_is_computed(folder, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    calls = []
    with pytest.raises(OSError, match="No space"):
        fastpool.files.max_pool("x.npy", "y.npy", **POOL, progress=lambda *at: calls.append(at))
    assert names(folder) == ["x.npy"] and not calls


def test_bad_arguments(folder):
    call = fastpool.files.max_pool
    with pytest.raises(ValueError, match="indices: expected another file than target"):
        call("x.npy", "y.npy", **POOL, indices=str(folder / "y.npy"))
    with pytest.raises(ValueError, match="max_bytes: expected an int of at least 1, got 0"):
        call("x.npy", "y.npy", **POOL, max_bytes=0)
    with pytest.raises(FileNotFoundError):
        call("nothing.npy", "y.npy", **POOL)
    with pytest.raises(TypeError, match="return_indices"):
        call("x.npy", "y.npy", **POOL, return_indices=True)
    Path("text.npy").write_text("no array at all")
    with pytest.raises(ValueError, match="source: 'text.npy' is no .npy file"):
        call("text.npy", "y.npy", **POOL)
    Path("short.npy").write_bytes(Path("x.npy").read_bytes()[:-1])
    with pytest.raises(ValueError, match="source: 'short.npy' is no .npy file: mmap length"):
        call("short.npy", "y.npy", **POOL)
    np.save("objects.npy", np.array([None, {}]))
    with pytest.raises(ValueError, match="source: 'objects.npy' is no .npy file"):
        call("objects.npy", "y.npy", **POOL)
    np.save("complex.npy", X.astype(complex))
    with pytest.raises(TypeError, match="complex128"):
        call("complex.npy", "y.npy", **POOL)
    assert "y.npy" not in names(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux counts resident pages")
def test_memory_is_bounded(folder):
    """192 MiB in and 96 MiB out, 8 MiB at a time."""
    shape = 96, 1 << 20
    x = np.lib.format.open_memmap("large.npy", "w+", np.uint16, shape)
    x[::7] = np.arange(shape[1]) % 1000
    del x
    code = """
import re
import numpy as np
import fastpool.files
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
before = peak()
window = {"kernel_shape": (2, 1), "strides": (2, 1), "layout": "HW"}
fastpool.files.max_pool("large.npy", "y.npy", **window, max_bytes=8 << 20)
print(peak() - before)
"""
    process = cases.run_python(code)
    assert process.returncode == 0, process.stderr
    # (in KiB; scratch, and pages around those that are touched, come on top)
    assert 1 << 10 < int(process.stdout) < 24 << 10
    y = np.load("y.npy", mmap_mode="r")
    assert y.shape == (48, shape[1]) and (y[0] == np.arange(shape[1]) % 1000).all()


# ----------------------------------------------------------------------------------- the commands


def run(capsys, *arguments):
    """(exit status, what was printed, what was said on standard error)."""
    try:
        status = main(list(arguments))
    except SystemExit as exited:
        status = exited.code
    return status, *capsys.readouterr()


def test_pool(folder, capsys):
    options = ["--kernel", "3", "--strides", "2,1", "--pads", "1", "--layout", "NHWC"]
    options += ["--ceil-mode", "--nan", "ignore", "--index-layout", "NHWC", "--index-axis", "1"]
    options += ["--indices", "z.npy", "--max-bytes", "2K", "--num-threads", "1"]
    status, printed, said = run(capsys, "pool", "x.npy", "y.npy", *options)
    assert (status, said) == (0, "") and re.fullmatch(r"y.npy: uint8 2x16x40x3, .* s\n", printed)
    expected = fastpool.max_pool(
        *(X, 3),
        strides=(2, 1),
        pads=1,
        layout="NHWC",
        ceil_mode=True,
        index_layout="NHWC",
        index_axis=1,
        return_indices=True,
    )
    for name, want in zip(("y.npy", "z.npy"), expected, strict=True):
        cases.assert_same(np.load(name), want)


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        (["nothing.npy", "y.npy", "--kernel", "2"], 1, "No such file or directory: 'nothing.npy'"),
        (["x.npy", "no/y.npy", "--kernel", "2"], 1, "No such file or directory: 'no/y.npy"),
        (["x.npy", "y.npy", "--kernel", "99"], 2, "kernel_shape[0]: window"),
        (["x.npy", "y.npy", "--kernel", "2", "--layout", "HC"], 2, "layout: expected"),
        (["x.npy", "y.npy", "--kernel", "2,x"], 2, "expected 3 or 3,3, got '2,x'"),
        (["x.npy", "y.npy", "--kernel", "2", "--max-bytes", "2T"], 2, "got '2T'"),
        (["x.npy", "y.npy"], 2, "--kernel-shape"),
    ],
)
def test_what_goes_wrong_is_one_line(folder, capsys, arguments, status, message):
    got, printed, said = run(capsys, "pool", *arguments)
    assert (got, printed) == (status, "") and names(folder) == ["x.npy"]
    assert message in said.splitlines()[-1] and (said.count("\n") == 1 or "usage:" in said)


def test_interrupted(folder, capsys, monkeypatch):
    def interrupt(*arguments, **attributes):
        raise KeyboardInterrupt

    monkeypatch.setattr(fastpool.files, "max_pool", interrupt)
    assert run(capsys, "pool", "x.npy", "y.npy", "--kernel", "2") == (
        130,
        "",
        "python -m fastpool: interrupted\n",
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_a_bar_on_a_terminal_alone(folder):
    """Standard error is a terminal here, standard output is not."""
    pytest.importorskip("rich")
    import pty

    master, terminal = pty.openpty()
    command = [sys.executable, "-m", "fastpool", "pool", "x.npy", "y.npy"]
    process = subprocess.run(
        [*command, "--kernel", "3", "--layout", "NHWC"],
        stdout=subprocess.PIPE,
        stderr=terminal,
        timeout=60,
        env={**os.environ, "TERM": "xterm", "PYTHONPATH": str(Path(fastpool.__file__).parents[1])},
    )
    os.close(terminal)
    said = os.read(master, 1 << 16).decode()
    os.close(master)
    assert process.returncode == 0 and "100%" in said and "pooling" in said
    assert re.fullmatch(rb"y.npy: uint8 2x28x38x3, .* s\n", process.stdout)


def test_mosaic(folder, capsys):
    pytest.importorskip("skimage")
    pytest.importorskip("PIL")
    status, printed, said = run(capsys, "mosaic", "m.npy", "--size", "350")
    assert (status, said) == (0, "") and printed.startswith("m.npy: uint8 350x350x3, ")
    mosaic = np.load("m.npy")
    assert mosaic.shape == (350, 350, 3) and mosaic.dtype == np.uint8
    cells = mosaic[:300, :300].reshape(3, 100, 3, 100, 3)
    assert cells.std(axis=(1, 3)).min() > 5  # each a picture
    assert len(np.unique(cells.mean(axis=(1, 3)).round().reshape(9, 3), axis=0)) == 9
    status, _, said = run(capsys, "mosaic", "m.npy", "--size", "0")
    assert status == 2 and "--size: expected a number of at least 1, got 0" in said


def test_a_mosaic_without_its_packages(folder, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "fastpool._mosaic", raising=False)
    monkeypatch.delattr(fastpool, "_mosaic", raising=False)
    monkeypatch.setitem(sys.modules, "skimage", None)
    status, _, said = run(capsys, "mosaic", "m.npy", "--size", "300")
    assert status == 2 and said.endswith("pip install 'fastpool[demo]'\n")


def test_documentation(folder):
    assert doctest.testmod(fastpool.files).failed == 0
    page = Path(__file__).parents[1] / "docs" / "files.md"
    results = doctest.testfile(str(page), module_relative=False)
    assert results.attempted > 3 and results.failed == 0
