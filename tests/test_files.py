"""Pooling of .npy files in bounded memory."""

import doctest
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cases
import fastpool
import fastpool.files

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


def test_documentation(folder):
    assert doctest.testmod(fastpool.files).failed == 0
    page = Path(__file__).parents[1] / "docs" / "files.md"
    results = doctest.testfile(str(page), module_relative=False)
    assert results.attempted > 3 and results.failed == 0
