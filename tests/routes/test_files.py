"""fastpool.files pools .npy files of any version and order in bounded memory."""

import doctest
import os
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cases
import fastpool
import fastpool.files
import limits
from configurations.strategies import examples, pools

X, POOL = cases.IMAGES, cases.IMAGE_POOL


@examples(40)
@given(
    pools(dtypes=["float32", "uint8", "float16", "int64"]),
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


@pytest.mark.parametrize("max_bytes", [100, 2000, 10**9])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("avg_pool", {"kernel_shape": 3, "strides": 2, "pads": 1, "count_include_pad": True}),
        ("avg_pool", {"kernel_shape": (2, 5), "dtype": "float64", "nan": "ignore"}),
        ("global_avg_pool", {}),
        ("global_avg_pool", {"keepdims": False, "numerics": "sequential"}),
        ("global_max_pool", {"keepdims": False}),
        ("adaptive_avg_pool", {"output_size": (4, 7), "dtype": "float64"}),
        ("adaptive_max_pool", {"output_size": (4, 7)}),
        ("min_pool", {"kernel_shape": 3, "strides": 2, "pads": 1}),
        ("global_min_pool", {"keepdims": False}),
        ("adaptive_min_pool", {"output_size": (4, 7)}),
    ],
)
def test_means_and_others_in_tiles(folder, name, arguments, order, max_bytes):
    x = cases.values((2, 10, 9, 3), "float32", "bits", 0)
    np.save("x.npy", np.array(x, order=order))
    arguments = {**arguments, "layout": "NHWC"}
    plan = getattr(fastpool.files, name)("x.npy", "y.npy", **arguments, max_bytes=max_bytes)
    expected = getattr(fastpool, name)(x, **arguments)
    cases.assert_same(np.load("y.npy"), expected)
    assert arguments.get("keepdims") is False or plan.output_shape == expected.shape


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("global_max_pool", {"keepdims": False}),
        ("adaptive_max_pool", {"output_size": (4, 7)}),
        ("min_pool", {"kernel_shape": 3, "strides": 2, "pads": 1}),
        ("global_min_pool", {"keepdims": False}),
        ("adaptive_min_pool", {"output_size": (4, 7)}),
    ],
)
def test_indices_of_others(folder, name, arguments):
    x = cases.values((2, 10, 8, 3), "uint8", "ties", 0)
    np.save("x.npy", x)
    arguments = {**arguments, "layout": "NHWC"}
    getattr(fastpool.files, name)("x.npy", "y.npy", indices="z.npy", **arguments, max_bytes=500)
    expected = getattr(fastpool, name)(x, **arguments, return_indices=True)
    for path, want in zip(("y.npy", "z.npy"), expected, strict=True):
        cases.assert_same(np.load(path), want)


def test_bad_arguments_of_others(folder):
    names = cases.names(folder)
    for call, error, match in (
        (lambda f: f.avg_pool("x.npy", "y.npy", 2, indices="z.npy"), TypeError, "indices"),
        (
            lambda f: f.avg_pool("x.npy", "y.npy", 2, result_dtype="int8"),
            TypeError,
            r"^avg_pool\(\) got an .* 'result_dtype'; write dtype for result_dtype$",
        ),
        (lambda f: f.avg_pool("x.npy", "y.npy", 2, stride=2), TypeError, r"^avg_pool\(.* strides"),
        (lambda f: f.max_pool("x.npy", "y.npy", 2, stride=2), TypeError, r"^max_pool\(.* strides"),
        (lambda f: f.avg_pool("x.npy", "y.npy", 2, dtype="float16"), TypeError, "^dtype: expected"),
        (lambda f: f.global_avg_pool("x.npy", "y.npy", keepdims=2), ValueError, "keepdims"),
        (lambda f: f.adaptive_avg_pool("x.npy", "y.npy", -1), ValueError, "output_size"),
        (lambda f: f.adaptive_max_pool("x.npy", 5, 1), TypeError, "target: expected a str"),
        (
            lambda f: f.global_max_pool("x.npy", "y.npy", return_indices=True),
            TypeError,
            "return_indices",
        ),
    ):
        with pytest.raises(error, match=match):
            call(fastpool.files)
    assert cases.names(folder) == names


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


# --------------------------------------------------------------------------- what is in a file


def test_a_file_is_opened_once(folder, monkeypatch):
    """Shape and elements are of one file, whatever takes its name meanwhile."""
    np.save("other.npy", X.swapaxes(1, 2).copy())
    real = open

    def swap(path, *arguments, **keywords):
        file = real(path, *arguments, **keywords)
        if Path(path).name == "x.npy":
            os.replace("x.npy", "third.npy")
            os.replace("other.npy", "x.npy")
            os.replace("third.npy", "other.npy")
        return file

    monkeypatch.setattr("builtins.open", swap)
    fastpool.files.max_pool("x.npy", "y.npy", **POOL)
    monkeypatch.undo()
    cases.assert_same(np.load(folder / "y.npy"), fastpool.max_pool(X, **POOL))


def header(text, version=(1, 0)):
    """The beginning of a .npy file."""
    size = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + size + text.encode("latin1")


def described(shape, descr="'|u1'", order="False"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}"


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions_of_the_format(folder, version):
    with open("x.npy", "wb") as file:
        np.lib.format.write_array(file, X, version)
    fastpool.files.max_pool("x.npy", "y.npy", **POOL)
    cases.assert_same(np.load("y.npy"), fastpool.max_pool(X, **POOL))


HEADERS = {
    "nothing": b"",
    "magic": b"\x93NUMPY",
    "version": header(described("(4,)"), (9, 0)),
    "short": header(described("(4,)"))[:30],
    "long": header(described("(4,)") + 20_000 * " ", (2, 0)),
    "names": header("{'descr': '|u1', 'shape': (4,)}"),
    "code": header("__import__('os').system('true')"),
    "tokens": header("{'descr': ("),
    "brackets": header(9000 * "("),
    "signs": header(9000 * "-" + "1"),
    "keys": header("{[]: 1}"),
    "descr": header(described("(4,)", "'|q9'")),
    "objects": header(described("(4,)", "'|O'")),
    "no bytes": header(described("(4,)", "'|V0'")),
    "negative": header(described("(-2, -2)")),
    "text": header(described("('4',)")),
    "large": header(described(f"({2**62}, 4)")),
    "larger": header(described(f"({2**70},)")),
    "none of many": header(described(f"(0, {2**70})")),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_makes_no_sense_is_refused(folder, name):
    Path("x.npy").write_bytes(HEADERS[name] + b"1234")
    with pytest.raises(ValueError, match="^source: 'x.npy' is no .npy file: "):
        fastpool.files.max_pool("x.npy", "y.npy", 2, layout="W")
    assert cases.names(folder) == ["x.npy"]


def test_bad_arguments(folder):
    call = fastpool.files.max_pool
    with pytest.raises(ValueError, match="indices: expected another file than target"):
        call("x.npy", "y.npy", **POOL, indices=str(folder / "y.npy"))
    with pytest.raises(ValueError, match="max_bytes: expected an int of at least 1, got 0"):
        call("x.npy", "y.npy", **POOL, max_bytes=0)
    with pytest.raises(TypeError, match="progress: expected a callable or None, got 3"):
        call("x.npy", "y.npy", **POOL, progress=3)
    for names in (("nothing.npy", "y.npy"), ("x.npy", os.path.join("nothing", "y.npy"))):
        with pytest.raises(FileNotFoundError, match=r"nothing(\.npy|.y\.npy)'$"):
            call(*names, **POOL)
    with pytest.raises(TypeError, match="return_indices"):
        call("x.npy", "y.npy", **POOL, return_indices=True)
    Path("text.npy").write_text("no array at all")
    with pytest.raises(ValueError, match="source: 'text.npy' is no .npy file"):
        call("text.npy", "y.npy", **POOL)
    Path("short.npy").write_bytes(Path("x.npy").read_bytes()[:-1])
    with pytest.raises(
        ValueError, match="source: 'short.npy' is no .npy file: expected 7200 bytes"
    ):
        call("short.npy", "y.npy", **POOL)
    np.save("objects.npy", np.array([None, {}]))
    with pytest.raises(ValueError, match="source: 'objects.npy' is no .npy file"):
        call("objects.npy", "y.npy", **POOL)
    np.save("complex.npy", X.astype(complex))
    with pytest.raises(TypeError, match="^source: expected one of float16, .*, got dtype complex"):
        call("complex.npy", "y.npy", **POOL)
    assert "y.npy" not in cases.names(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux counts resident pages")
def test_memory_is_bounded(folder):
    """192 MiB in and 96 MiB out, 8 MiB at a time."""
    shape = 96, 1 << 20
    x = np.lib.format.open_memmap("large.npy", "w+", np.uint16, shape)
    x[::7] = np.arange(shape[1]) % 1000
    del x
    code = """
import fastpool.files
window = {"kernel_shape": (2, 1), "strides": (2, 1), "layout": "HW", "max_bytes": 8 << 20}
print(added(lambda: fastpool.files.max_pool("large.npy", "y.npy", **window)))
"""
    process = cases.run_python(limits.ADDED + code)
    assert process.returncode == 0, process.stderr
    # (scratch, and pages around those that are touched, come on top)
    assert 1 << 20 < int(process.stdout) < 24 << 20
    y = np.load("y.npy", mmap_mode="r")
    assert y.shape == (48, shape[1]) and (y[0] == np.arange(shape[1]) % 1000).all()


def test_documentation(folder):
    assert doctest.testmod(fastpool.files).failed == 0
    cases.check_page("files.md", 3)


@pytest.mark.parametrize("what", ["source", "target", "indices"])
@pytest.mark.parametrize("path", [5, b"y.npy", ["y.npy"]], ids=str)
def test_what_is_no_path_is_refused(tmp_path, what, path):
    np.save(tmp_path / "x.npy", np.zeros((4, 4), np.float32))
    paths = {"source": tmp_path / "x.npy", "target": tmp_path / "y.npy", what: path}
    with pytest.raises(TypeError, match=f"^{what}: "):
        fastpool.files.max_pool(**paths, kernel_shape=2, layout="HW")
    with pytest.raises(TypeError, match="^target: "):
        fastpool.files.max_pool(tmp_path / "x.npy", None, 2, indices=tmp_path / "i.npy")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.npy"]


@pytest.mark.parametrize("version", [2, 3])
def test_a_header_that_says_that_it_is_long(tmp_path, version):
    """NumPy reads all of it before it refuses."""
    path = tmp_path / "x.npy"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY" + bytes((version, 0)) + (300_000_000).to_bytes(4, "little"))
        file.truncate(300_000_100)
    with pytest.raises(ValueError, match="^source: .* a header of at most 65536 bytes"):
        fastpool.files.max_pool(path, tmp_path / "y.npy", 2, layout="HW")


@pytest.mark.parametrize("name", ["max_pool", "avg_pool"])
def test_strides_of_the_window(folder, name):
    x = cases.values((2, 10, 9, 3), "float32", "bits", 0)
    np.save("x.npy", x)
    plan = getattr(fastpool.files, name)("x.npy", "y.npy", (2, 3), strides="window", layout="NHWC")
    assert plan.strides == (2, 3)
    expected = getattr(fastpool, name)(x, (2, 3), strides=(2, 3), layout="NHWC")
    cases.assert_same(np.load("y.npy"), expected)
