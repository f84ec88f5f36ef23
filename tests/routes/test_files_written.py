"""fastpool.files replaces all files of a call or none, and keeps their links and permissions."""

import errno
import os
import socket
import stat
import struct
from pathlib import Path

import numpy as np
import pytest

import cases
import fastpool
import fastpool.files

X, POOL = cases.IMAGES, cases.IMAGE_POOL

needs_posix = pytest.mark.skipif(os.name != "posix", reason="permissions, pipes and links of POSIX")


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
