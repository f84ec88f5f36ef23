"""Load the builds of the compiled module that run here, and choose the one that plans run on."""

import contextlib
import importlib
import os
import sys

import numpy as np

from .._planning.dtypes import CODES, ITEMSIZE
from .._version import __version__
from . import threads
from .instruction_sets import BUILDS, Build


def _load_builds():
    try:
        from .._kernels import cpu_supports
    except ModuleNotFoundError as error:
        # Python in a checkout finds the source there first, whatever is installed.
        # (To import pathlib takes 3 ms, a tenth of the import of fastpool.)
        folder = os.path.dirname(os.path.dirname(__file__))
        raise ImportError(
            f"{folder} has no compiled module for this Python. If it is a checkout, start "
            "Python in another folder, or build it in place: pip install -e ."
        ) from error

    found = {}
    for name, (suffix, features) in BUILDS.items():
        if all(map(cpu_supports, features)):
            # A build may be missing (another architecture). If it exists, it must load.
            with contextlib.suppress(ModuleNotFoundError):
                found[name] = importlib.import_module(f"fastpool._kernels{suffix}")
    return found


_builds = _load_builds()

# Compiled code has the sizes and codes of the table of element types.
assert all(k.ELEMENT_BYTES == ITEMSIZE and k.CODES == CODES for k in _builds.values())


def builds():
    """Return the builds that this processor runs, best first: name -> module."""
    return dict(_builds)


def _choose_build():
    name = os.environ.get("FASTPOOL_ISA", "").strip()
    if not name:
        return next(iter(_builds))
    if name not in _builds:
        refuse(f"FASTPOOL_ISA={name!r}: no such build runs here; available: {', '.join(_builds)}")
    return name


def refuse(text):
    """Refuse a wrong environment variable: end the command `fastpool`, else raise ImportError."""
    if _is_command_line():
        # Python imports the package before any code of the command could handle the error.
        print(f"fastpool: {text}", file=sys.stderr)
        raise SystemExit(2)
    raise ImportError(text)


def _is_command_line():
    """Was this process started as `fastpool` or as `python -m fastpool`?"""
    arguments = getattr(sys, "argv", [])
    if arguments[:1] == ["-m"]:  # while Python looks for the module
        return sys.orig_argv[-len(arguments)].removeprefix("-m") == "fastpool"
    program = os.path.basename(arguments[0]) if arguments else ""
    return program.removesuffix(".exe") == "fastpool"


_active = None


def _activate(name):
    global _active
    _active = name
    for build, kernels in _builds.items():
        kernels.use(build == name)


_activate(_choose_build())


def active_name():
    """Return the name of the build that plans run on."""
    return _active


def active():
    """Return the compiled module that plans run on."""
    return _builds[_active]


@contextlib.contextmanager
def usual_floats():
    """Let NumPy round to nearest and keep subnormal numbers, whatever the thread was told."""
    kernels = active()
    state = kernels.enter_usual_floats()
    try:
        yield
    finally:
        kernels.leave_usual_floats(state)


def facts(kernels):
    """Return the `Build` of a compiled module, from which a strategy is chosen."""
    return Build(kernels.VECTOR_BYTES, kernels.MASKS)


def _probes():
    """Yield arrays that differ in every C field that is read (kernels/frame/arrays.pxi)."""
    a = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    yield from (a, a[::-1, 1:, ::2], a.T, a[:, :0], a[0, 0, 0:1].reshape(()))
    yield from (a.astype(np.float32), a.astype(a.dtype.newbyteorder()), a.astype(bool))
    yield np.zeros((1,) * 9)
    yield a.view(np.uint8).reshape(-1)[1:-1].view(np.int16)  # not aligned
    constant = np.zeros(3)
    constant.flags.writeable = False
    yield constant


for _kernels in _builds.values():
    _kernels.trust_fields(all(map(_kernels.fields_agree, _probes())))

call_key = _builds[_active].call_key
knows_tensors, tensor_key = _builds[_active].knows_tensors, _builds[_active].tensor_key


@contextlib.contextmanager
def using(name):
    """Run with another build, for tests and measurements. It is not thread-safe."""
    global _active
    kernels = _builds[name]
    before = _active
    _activate(name)
    try:
        yield kernels
    finally:
        _activate(before)


def show_config():
    """Print the version, the builds, the one in use, and the number of threads.

    Examples
    --------
    >>> import fastpool
    >>> fastpool.show_config()  # doctest: +ELLIPSIS
    fastpool ...
    """
    kernels = _builds[_active]
    print(f"fastpool {__version__}, Python {sys.version.split()[0]}, numpy {np.__version__}")
    print(f"builds: {', '.join(_builds)}; in use: {_active} ({kernels.VECTOR_BYTES}-byte vectors)")
    if not kernels.OPENMP:
        print("threads: 1, because this fastpool was built without OpenMP")
        return
    limit = kernels.max_threads()
    default = threads.most_by_default(kernels)
    print(
        f"threads: {default} by default (processors: {threads.available_cpus()}, "
        f"OpenMP limit: {limit}, FASTPOOL_NUM_THREADS: "
        f"{os.environ.get('FASTPOOL_NUM_THREADS', 'not set')})"
    )
    if pause := threads.why_paused(kernels):
        print(f"threads: 1 for now ({pause})")
