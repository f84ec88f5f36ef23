"""Make files that replace others together, when all of them are complete."""

import os
import secrets
import stat
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(**paths):
    """Make new files, which replace all `paths` together if nothing is raised.

    Parameters
    ----------
    **paths : str, os.PathLike or None
        Files to replace or to make. Their keywords are the names of arguments in errors. None is
        left out.

    Yields
    ------
    new : dict of str to Path
        An empty file for each argument, in the folder of the file that it will replace.

    Raises
    ------
    ValueError
        Two of them are one file, or one is no regular file.
    OSError
        A file cannot be made or replaced. Then all files are unchanged.
    """
    paths = {name: Path(path) for name, path in paths.items() if path is not None}
    finals = {name: _final(name, path) for name, path in paths.items()}
    apart(**paths)
    new, ending = {}, f".{secrets.token_hex(8)}.part"
    with ExitStack() as leftovers:
        for name, final in finals.items():
            new[name] = final.with_name(final.name + ending)
            leftovers.callback(new[name].unlink, missing_ok=True)
            # The replaced file may be private. The new one gets its permissions at the end.
            mode = 0o600 if final.exists() else 0o666
            try:
                os.close(os.open(new[name], os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
            except FileExistsError:
                # The endings are equal, so to the file system both names are one file: it ignores
                # case, for instance, or is mounted twice.
                raise _one_file(name, next(iter(finals)), paths[name]) from None
            except OSError as error:
                error.filename = os.fspath(paths[name])  # the caller knows no other name
                raise
        yield new
        pairs = [(new[name], final) for name, final in finals.items()]
        for name, final in finals.items():
            if _final(name, final).exists():
                _copy_permissions(final, new[name])
        _replace(pairs)


def apart(**paths):
    """Raise ValueError if two of these paths are names of one file."""
    seen = {}
    for name, path in paths.items():
        for other_name, other in seen.items():
            if os.path.realpath(path) == os.path.realpath(other) or _is_linked(path, other):
                raise _one_file(name, other_name, path)
        seen[name] = path


def _is_linked(path, other):
    """Are these two names of one existing file?"""
    try:
        return os.path.samefile(path, other)
    except FileNotFoundError:
        return False


def _one_file(name, other_name, path):
    return ValueError(
        f"{name}: expected another file than {other_name}, got {os.fspath(path)!r}, "
        f"which is a name of the same file"
    )


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_regular(name, path):
    """Open a file for reading. If it is not regular, raise a ValueError that names the argument."""
    # If it is a pipe, do not wait for a writer.
    at_once = getattr(os, "O_NONBLOCK", 0)
    file = open(path, "rb", opener=lambda path, flags: os.open(path, flags | at_once))
    try:
        _check_regular(name, path, os.fstat(file.fileno()))
    except ValueError:
        file.close()
        raise
    return file


def _check_regular(name, path, status):
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "none")
        raise ValueError(f"{name}: expected a regular file, got {os.fspath(path)!r}, {kind}")


def _final(name, path):
    """Return the path without symbolic links: the file to replace or make."""
    with suppress(FileNotFoundError):
        _check_regular(name, path, os.stat(path))
    return Path(os.path.realpath(path))


# The access control list of a file in Linux. It also holds the permissions of owner, group and
# others. If there is one, the group bits of the mode are the most that it grants to anyone.
_ACL = "system.posix_acl_access"


def _copy_permissions(old, new):
    """Give a new file the owner, the group and the permissions of another one.

    If the process may not change owner and group, they stay the process's own. A group that differs
    then gets only the permissions of others.
    """
    status = os.stat(old)
    mode, acl = stat.S_IMODE(status.st_mode) & 0o777, None
    if hasattr(os, "chown"):  # not on Windows
        for owner in ((-1, status.st_gid), (status.st_uid, -1)):
            with suppress(PermissionError):
                os.chown(new, *owner)
    if os.stat(new).st_gid != status.st_gid:
        mode = mode & 0o707 | (mode & 0o007) << 3
    elif hasattr(os, "getxattr"):
        with suppress(OSError):  # there is none, or the file system does not support it
            acl = os.getxattr(old, _ACL)
    if acl is not None:
        os.setxattr(new, _ACL, acl)
        return
    if hasattr(os, "removexattr"):
        with suppress(OSError):  # the folder may give one to new files
            os.removexattr(new, _ACL)
    os.chmod(new, mode)


def _replace(pairs):
    """Replace files by new ones, given as (new, final): all of them, or after an error none.

    Progress is read from the file system, so an interrupt may come at any point.
    """
    last = pairs[-1][0]
    kept = {new: new.with_suffix(".old.part") for new, _ in pairs[:-1]}
    try:
        for new, final in pairs:
            if new in kept:
                _keep(final, kept[new])
            new.replace(final)
    finally:
        if last.exists():
            for new, final in pairs[:-1]:
                _put_back(new, final, kept[new])
        for old in kept.values():
            old.unlink(missing_ok=True)


def _keep(final, old):
    """Give a file, if it exists, a second name."""
    with suppress(FileNotFoundError):
        try:
            os.link(final, old)
        except OSError:  # no hard links on this file system, or not to this file
            final.replace(old)


def _put_back(new, final, old):
    """Undo the replacement of a file as far as it was done."""
    if old.exists():
        if not (new.exists() and final.exists()):
            old.replace(final)
    elif not new.exists():
        final.unlink()
