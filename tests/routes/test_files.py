"""fastpool.files pools .npy files of any version and order in bounded memory."""

import doctest
import errno
import os
import socket
import stat
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
    assert cases.names(folder) == ["x.npy", "y.npy"] and Path("y.npy").read_bytes() == b"precious"


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="only where room can be reserved")
def test_a_full_disk_is_found_before_anything_is_computed(folder, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    calls = []
    with pytest.raises(OSError, match="No space"):
        fastpool.files.max_pool("x.npy", "y.npy", **POOL, progress=lambda *at: calls.append(at))
    assert cases.names(folder) == ["x.npy"] and not calls


# ------------------------------------------------------------------------------- both, or none

needs_posix = pytest.mark.skipif(os.name != "posix", reason="permissions, pipes and links of POSIX")


def pool_both(target, indices, **more):
    return fastpool.files.max_pool("x.npy", target, **POOL, indices=indices, **more)


def two_names(folder, how):
    """Two names of one file."""
    if how == "parts":
        (folder / "sub").mkdir()
        return "y.npy", "sub/../y.npy"
    if how == "folder":
        (folder / "real").mkdir()
        (folder / "linked").symlink_to("real")
        return "real/y.npy", "linked/y.npy"
    if how == "dangling":
        (folder / "z.npy").symlink_to("y.npy")
        return "y.npy", "z.npy"
    Path("y.npy").write_bytes(b"precious")
    if how == "symbolic":
        (folder / "z.npy").symlink_to("y.npy")
    else:
        os.link("y.npy", "z.npy")
    return "y.npy", "z.npy"


WAYS = ["parts", "folder", "dangling", "symbolic", "hard"]


@needs_posix
@pytest.mark.parametrize("how", WAYS)
def test_one_file_by_two_names_is_refused(folder, how):
    paths = two_names(folder, how)
    before = cases.names(folder)
    calls = []
    for target, indices in (paths, paths[::-1]):
        with pytest.raises(ValueError, match="^indices: expected another file than target, got"):
            pool_both(target, indices, progress=lambda *at: calls.append(at))
    assert cases.names(folder) == before and not calls


def test_names_that_the_file_system_takes_for_one_are_refused(folder, monkeypatch):
    """(As where case does not matter, or a folder is mounted twice.)"""
    create = os.open

    def ignore_case(path, flags, *mode):
        return create(os.fspath(path).lower() if flags & os.O_EXCL else path, flags, *mode)

    monkeypatch.setattr(os, "open", ignore_case)
    with pytest.raises(ValueError, match="^indices: expected another file than target"):
        pool_both("y.npy", "Y.npy")
    assert cases.names(folder) == ["x.npy"]


def refuse(monkeypatch, function, refused, *, error=errno.EPERM):
    """Let a function of os fail where a new file would get a name."""
    real = getattr(os, function)

    def call(*arguments, **keywords):
        new = ".old" not in Path(arguments[0]).suffixes
        if new and refused in (Path(arguments[-1]).name, "anything"):
            raise OSError(error, os.strerror(error), refused)
        return real(*arguments, **keywords)

    monkeypatch.setattr(os, function, call)


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("there", [["y.npy", "z.npy"], ["y.npy"], ["z.npy"], []])
@pytest.mark.parametrize("refused", ["y.npy", "z.npy"])
def test_both_files_are_replaced_or_none(folder, monkeypatch, refused, there, links):
    """The second replacement fails when the first has been made; without hard links too."""
    for name in there:
        Path(name).write_bytes(name.encode())
    refuse(monkeypatch, "replace", refused)
    if not links:
        refuse(monkeypatch, "link", "anything")
    with pytest.raises(OSError, match="not permitted"):
        pool_both("y.npy", "z.npy")
    assert cases.names(folder) == sorted(["x.npy", *there])
    assert [Path(name).read_bytes() for name in there] == [name.encode() for name in there]


@pytest.mark.parametrize("after", ["y.npy", "z.npy"])
def test_an_interrupt_between_the_replacements(folder, monkeypatch, after):
    """Both are replaced, or none, wherever it strikes."""
    for name in ("y.npy", "z.npy"):
        Path(name).write_bytes(b"precious")
    real = os.replace

    def replace(path, other):
        real(path, other)
        if Path(other).name == after and str(path).endswith("part"):
            monkeypatch.setattr(os, "replace", real)
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        pool_both("y.npy", "z.npy")
    assert cases.names(folder) == ["x.npy", "y.npy", "z.npy"]
    replaced = [Path(name).read_bytes() != b"precious" for name in ("y.npy", "z.npy")]
    assert replaced == [after == "z.npy"] * 2


def make_special(path, kind):
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    elif kind == "device":
        path.symlink_to("/dev/null")


@needs_posix
@pytest.mark.parametrize("kind", ["folder", "pipe", "socket", "device"])
@pytest.mark.parametrize("argument", ["target", "indices"])
def test_what_is_no_regular_file_is_refused(folder, kind, argument):
    make_special(folder / "odd.npy", kind)
    Path("other.npy").write_bytes(b"precious")
    status, calls = os.stat("odd.npy"), []
    paths = {"target": "other.npy", "indices": "other.npy", argument: "odd.npy"}
    message = f"^{argument}: expected a regular file, got '.*odd.npy', a {kind}$"
    with pytest.raises(ValueError, match=message):
        pool_both(**paths, progress=lambda *at: calls.append(at))
    assert cases.names(folder) == ["odd.npy", "other.npy", "x.npy"] and not calls
    assert os.stat("odd.npy") == status and Path("other.npy").read_bytes() == b"precious"


@needs_posix
@pytest.mark.parametrize("kind", ["folder", "pipe", "socket", "device"])
def test_a_source_that_is_no_regular_file_is_refused(folder, kind):
    """The call does not wait for a writer of the pipe."""
    make_special(folder / "odd.npy", kind)
    with pytest.raises((ValueError, OSError), match="odd.npy"):
        fastpool.files.max_pool("odd.npy", "y.npy", **POOL)
    assert cases.names(folder) == ["odd.npy", "x.npy"]


@needs_posix
@pytest.mark.parametrize("relative", [True, False])
def test_symbolic_links_stay(folder, relative):
    (folder / "data").mkdir()
    real = folder / "data" / "real.npy"
    real.write_bytes(b"old")
    Path("y.npy").symlink_to(real.relative_to(folder) if relative else real)
    Path("z.npy").symlink_to(folder / "data" / "new.npy")
    pool_both("y.npy", "z.npy")
    y, z = fastpool.max_pool(X, **POOL, return_indices=True)
    assert Path("y.npy").is_symlink() and Path("z.npy").is_symlink()
    cases.assert_same(np.load(real), y)
    cases.assert_same(np.load(folder / "data" / "new.npy"), z)
    assert cases.names(folder) == ["data", "x.npy", "y.npy", "z.npy"]
    assert cases.names(folder / "data") == ["new.npy", "real.npy"]


@needs_posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400, 0o666, 0o4755])
def test_a_file_keeps_its_permissions(folder, mode):
    """What replaces it is never readable by more."""
    for name in ("y.npy", "z.npy"):
        Path(name).touch()
        os.chmod(name, mode)
    seen = set()

    def look(done, every):
        parts = [path for path in folder.iterdir() if path.suffix == ".part"]
        seen.update(stat.S_IMODE(path.stat().st_mode) for path in parts)

    pool_both("y.npy", "z.npy", progress=look)
    assert seen == {0o600}
    for name in ("y.npy", "z.npy"):
        # Programs that ran as their owner do not come back as numbers that do.
        assert stat.S_IMODE(os.stat(name).st_mode) == mode & 0o777
        assert np.load(name).size


@needs_posix
def test_permissions_are_those_of_the_end(folder):
    """A file that is made private while its successor is computed stays private."""
    Path("y.npy").touch()
    fastpool.files.max_pool("x.npy", "y.npy", **POOL, progress=lambda *at: os.chmod("y.npy", 0o600))
    assert stat.S_IMODE(os.stat("y.npy").st_mode) == 0o600


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may")
def test_a_file_keeps_its_owner_and_group(folder):
    Path("y.npy").touch()
    os.chown("y.npy", 1234, 4321)
    os.chmod("y.npy", 0o640)
    fastpool.files.max_pool("x.npy", "y.npy", **POOL)
    found = os.stat("y.npy")
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 4321, 0o640)


@needs_posix
def test_another_group_gets_no_more_than_everybody(folder, monkeypatch):
    """Who may not give a file to a group does not give its permissions to another one."""
    Path("y.npy").touch()
    os.chmod("y.npy", 0o664)
    real = os.stat

    def of_another_group(path, **keywords):
        found = list(real(path, **keywords))
        if Path(path).name == "y.npy":
            found[stat.ST_GID] += 1
        return os.stat_result(found)

    def chown(*arguments):
        raise PermissionError

    monkeypatch.setattr(os, "stat", of_another_group)
    monkeypatch.setattr(os, "chown", chown)
    fastpool.files.max_pool("x.npy", "y.npy", **POOL)
    assert stat.S_IMODE(real("y.npy").st_mode) == 0o644


# Version 2; owner rw-, user 1234 rw-, the group ---, at most rw-, others ---.
ACL = struct.pack(
    "<I" + 5 * "HHI",
    *(2, 0x01, 6, 2**32 - 1, 0x02, 6, 1234, 0x04, 0, 2**32 - 1, 0x10, 6, 2**32 - 1),
    *(0x20, 0, 2**32 - 1),
)


def give_acl(path, kind="access"):
    try:
        os.setxattr(path, f"system.posix_acl_{kind}", ACL)
    except (AttributeError, OSError):
        pytest.skip("no access control lists here")


def test_a_file_keeps_its_access_control_list(folder):
    """Without it the bits of the group would open the file to the group."""
    Path("y.npy").touch()
    give_acl("y.npy")
    fastpool.files.max_pool("x.npy", "y.npy", **POOL)
    assert os.getxattr("y.npy", "system.posix_acl_access") == ACL


def test_a_file_gets_no_access_control_list_of_its_folder(folder):
    Path("y.npy").touch()
    os.chmod("y.npy", 0o660)
    give_acl(folder, "default")
    fastpool.files.max_pool("x.npy", "y.npy", **POOL)
    assert stat.S_IMODE(os.stat("y.npy").st_mode) == 0o660
    assert "system.posix_acl_access" not in os.listxattr("y.npy")


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
    with pytest.raises(FileNotFoundError):
        call("nothing.npy", "y.npy", **POOL)
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
    with pytest.raises(TypeError, match="complex128"):
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
    page = Path(__file__).parents[2] / "docs" / "files.md"
    results = doctest.testfile(str(page), module_relative=False)
    assert results.attempted > 3 and results.failed == 0


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
