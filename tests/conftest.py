"""Hypothesis profiles and shared fixtures: every build, a folder, torch.compile, guarded memory."""

import ctypes
import functools
import gc
import hashlib
import mmap
import os
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# Before anything loads OpenMP, which reads it once. A thread that waits otherwise spins for some
# milliseconds: test_unpool.py takes 197 s of processor time instead of 25.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import cases  # noqa: E402
from fastpool import _reference  # noqa: E402
from fastpool._running import builds as running  # noqa: E402

settings.register_profile(
    "fastpool",
    deadline=None,
    print_blob=True,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
# pytest --hypothesis-profile=fuzz: fifty times as many examples, never the same.
settings.register_profile(
    "fuzz", settings.get_profile("fastpool"), max_examples=5000, derandomize=False
)
# A tenth: for emulators, and for many environments one after another.
settings.register_profile("few", settings.get_profile("fastpool"), max_examples=10)
settings.load_profile("fastpool")


def remembered(function, most=16 << 20):
    """Keep the answers of a function of arrays, up to `most` bytes of them."""
    kept, nbytes = {}, 0

    def key(value):
        if not isinstance(value, np.ndarray):
            return repr(value)
        return str(value.dtype), value.shape, hashlib.blake2b(value.tobytes()).digest()

    @functools.wraps(function)
    def call(*args, **named):
        nonlocal nbytes
        asked = (*map(key, args), *((name, key(named[name])) for name in sorted(named)))
        if asked not in kept:
            answer = function(*args, **named)
            kept[asked] = answer if isinstance(answer, tuple) else (answer,)
            nbytes += sum(array.nbytes for array in kept[asked])
            if nbytes > most:
                kept.clear()
                nbytes = 0
            return answer
        copies = tuple(array.copy() for array in kept[asked])
        return copies if len(copies) > 1 else copies[0]

    return call


# Each build is compared with the same answers of the twin, one build after the other.
for name in ("avg_pool", "max_pool", "min_pool"):
    setattr(_reference, name, remembered(getattr(_reference, name)))


def pytest_collection_modifyitems(items):
    """Put the tests that differ in nothing but the build next to one another."""
    first = {}
    for place, item in enumerate(items):
        build = getattr(item, "callspec", None) and item.callspec.params.get("isa")
        item.without_build = item.nodeid.replace(str(build), "")
        first.setdefault(item.without_build, place)
    items.sort(key=lambda item: first[item.without_build])


@pytest.fixture(params=cases.BUILDS)
def isa(request):
    """Run the test once on every build of the kernels that this machine can execute."""
    with running.using(request.param):
        yield request.param


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with an input."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", cases.IMAGES)
    return tmp_path


@pytest.fixture
def compiled():
    """torch.compile without graph breaks, for tests of which torch's own cleanup may warn."""
    import torch

    yield functools.partial(torch.compile, fullgraph=True, backend="aot_eager")
    torch.compiler.reset()
    gc.collect()  # in this test, which ignores what torch's own cleanup raises


class GuardedMemory:
    """Memory between two pages that nothing may touch.

    An array placed at the "end" stops at the upper guard page, one at the "start" begins right
    after the lower one, so that one byte read or written outside is a segmentation fault. The bytes
    on the array's other side are a known pattern that `check` compares.
    """

    _PATTERN = 0xA5

    def __init__(self, nbytes):
        page = mmap.PAGESIZE
        self._size = -(-nbytes // page) * page
        self._map = mmap.mmap(-1, self._size + 2 * page)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        for guard in (start, start + page + self._size):
            if libc.mprotect(guard, page, 0):
                raise OSError(ctypes.get_errno(), "mprotect failed")
        self._bytes = np.frombuffer(self._map, np.uint8, self._size, page)
        self._bytes[:] = self._PATTERN
        self._words = self._bytes.view(np.uint64)
        self._used = slice(0, 0)

    def array(self, shape, dtype, at):
        """Return an uninitialised array whose "end" or "start" is at a guard page."""
        nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        first = self._size - nbytes if at == "end" else 0
        self._bytes[self._used] = self._PATTERN
        self._used = slice(first, first + nbytes)
        return self._bytes[self._used].view(dtype).reshape(shape)

    def check(self):
        """Raise if anything outside the array was written."""
        first, last = self._used.start, self._used.stop
        word, next_word = first // 8, -(-last // 8)  # whole words are compared eight times faster
        pattern = int.from_bytes([self._PATTERN] * 8)
        outside = [(self._words[:word], pattern), (self._words[next_word:], pattern)]
        outside += [
            (self._bytes[8 * word : first], self._PATTERN),
            (self._bytes[last : 8 * next_word], self._PATTERN),
        ]
        assert all((part == expected).all() for part, expected in outside), (
            "bytes outside the array were written"
        )


@pytest.fixture(scope="module")
def guarded_memory():
    """A factory of `GuardedMemory`."""
    if not sys.platform.startswith("linux"):
        pytest.skip("guard pages are made with Linux's mprotect")
    return GuardedMemory
