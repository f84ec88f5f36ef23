"""Plans that are kept between calls are never used for other arguments, and are few and small."""

import gc
import itertools
import os
import sys
import threading
import unittest.mock
import weakref

import numpy as np
import pytest

import cases
import fastpool
from fastpool._running import forks, plan_cache
from fastpool._running.plan_cache import MOST_CALLS, PlanCache

X = cases.values((2, 3, 8, 9), "int16", "bits", 0)


def counting():
    """A `PlanCache` and the list of what it was asked to make."""
    made = []

    def make(shape, dtype, *arguments):
        made.append((shape, dtype, *arguments))
        return made[-1]

    return PlanCache(make), made


def test_calls_that_are_the_same():
    kept, made = counting()
    x = np.zeros((1, 2, 30), np.float32)
    long = 10**30
    equal = [(2, (3, 4), None), (2, [3, 4], None), (2, (3, 2 + 2), None)]
    for arguments in equal * 3:
        assert kept.find(x.copy(), arguments)[2] == 2
    assert len(made) <= 2  # a tuple and a list may be told apart
    made.clear()
    for argument in (np.int64(5), np.array([1, 2]), 1000, long, -7, 2.5, "text", b"text", int):
        for _ in range(3):
            again = np.array([1, 2]) if isinstance(argument, np.ndarray) else argument
            kept.find(x, (again,))
        assert len(made) == 1, argument
        made.clear()
    for digits in ("1000", "1" + 30 * "0"):
        for _ in range(3):
            kept.find(x, (int(digits), digits + "x"))
        assert len(made) == 1
        made.clear()


def test_calls_that_differ():
    kept, made = counting()
    x = np.zeros((1, 2, 30), np.float32)
    values = [1, 1.0, True, np.True_, np.int64(1), np.uint8(1), np.float64(1), "1", b"1"]
    values += [(1,), [1.0], (True,), (1, 1), [], (2,), (1, 2), None, 0, False, -1, 2, 2**40, 2**70]
    values += [int, float, (None,), ("1",), (0, 2, 1), np.array([1.0]), np.array([True])]
    for first in range(2):
        for value in values:
            plan = kept.find(x, (value, 1))
            assert type(plan[2]) is type(value) or type(value) is list
            assert plan[3] == 1 and plan == kept.find(x, (value, 1))
        assert first or len(made) <= len(values)
    for shape in ((1, 2, 31), (1, 30, 2), (2, 30), (1, 1, 2, 30), (60,)):
        assert kept.find(np.zeros(shape, np.float32), (1, 1))[0] == shape
    for dtype in (np.int32, np.dtype("float32").newbyteorder(), np.float64):
        assert kept.find(x.astype(dtype), (1, 1))[1] == dtype


def test_a_list_that_changes_is_another_call():
    x = np.arange(64, dtype=np.float32).reshape(1, 1, 8, 8)
    window = [2, 2]
    for _ in range(2):
        window[:] = 2, 2
        assert fastpool.max_pool(x, window).shape == (1, 1, 7, 7)
        window[1] = 3
        assert fastpool.max_pool(x, window).shape == (1, 1, 7, 6)
        window.append(1)
        with pytest.raises(ValueError, match="^kernel_shape: "):
            fastpool.max_pool(x, window)
        window[1:] = [True]
        with pytest.raises(TypeError, match="^kernel_shape"):
            fastpool.max_pool(x, window)
        window[1] = window
        with pytest.raises(TypeError, match="^kernel_shape"):
            fastpool.max_pool(x, window)


def test_objects_that_change_are_not_kept():
    """An array or a user's object can be an integer, and another one later."""

    class Number:
        value = 2

        def __index__(self):
            return self.value

    x = np.zeros((1, 1, 8, 8), np.float32)
    for number in (Number(), np.array(2)):
        for window in (number, (number, 2), [2, number]):
            for value in (2, 3, 2):
                if type(number) is Number:
                    number.value = value
                else:
                    number[...] = value
                y = fastpool.max_pool(x, window)
                assert 9 - value in y.shape[2:], (window, value)


def test_a_list_that_another_thread_changes():
    """One call may take either list; no plan of one may be kept under the key of the other."""
    shapes = [(1, 1, 8 + i, 9) for i in range(400)]
    window, done = [2, 2], threading.Event()

    def change():
        while not done.is_set():
            window[:] = 4, 4
            window[:] = 2, 2

    changing = threading.Thread(target=change)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    changing.start()
    try:
        for shape in shapes:
            x = np.zeros(shape, np.uint8)
            assert fastpool.max_pool(x, window).shape[3] in (8, 6)
    finally:
        done.set()
        changing.join()
        sys.setswitchinterval(interval)
    for shape in shapes:
        for taps in ([2, 2], [4, 4], (2, 2), (4, 4)):
            y = fastpool.max_pool(np.zeros(shape, np.uint8), taps)
            assert y.shape[2:] == (shape[2] + 1 - taps[0], 10 - taps[1])


def test_a_list_that_changes_while_a_plan_is_made():
    """As another thread may change it just then."""
    window = [2, 2]

    def make(shape, dtype, taps):
        made = tuple(taps)
        window[:] = 4, 4
        return made

    kept = PlanCache(make)
    x = np.zeros((1, 1, 8, 8), np.uint8)
    assert kept.find(x, (window,)) == (2, 2)
    assert kept.find(x, ([4, 4],)) == (4, 4)
    assert kept.find(x, ([2, 2],)) == (2, 2)


class Changing(float):
    """A number that is another one at each look."""

    def __index__(self):
        Changing.looks += 1
        return 2 + Changing.looks % 3

    looks = 0


def test_objects_that_claim_to_be_constant():
    """A mock, a subclass and a class with a dtype may give another answer at the next call."""
    x = np.zeros((1, 1, 8, 8), np.float32)
    number = unittest.mock.MagicMock(spec=int)
    for value in (2, 3, 2):
        number.__index__ = lambda self, value=value: value
        for window in (number, [number, 2], (number, 2)):
            assert fastpool.max_pool(x, window).shape[2] == 9 - value
    found = {fastpool.max_pool(x, Changing(2)).shape for _ in range(9)}
    assert len(found) == 3

    class IndexType:
        dtype = np.dtype("int64")

    for dtype in ("int64", "int32", "int64"):
        IndexType.dtype = np.dtype(dtype)
        _, z = fastpool.max_pool(x, 2, return_indices=True, index_dtype=IndexType)
        assert z.dtype == dtype


def test_sequences_that_lie():
    class Endless(list):
        def __iter__(self):
            return itertools.repeat(2)

    class Growing:
        def __index__(self):
            window.append(self)
            return 2

    x = np.zeros((1, 1, 8, 8), np.float32)
    with pytest.raises(ValueError, match="^kernel_shape: "):
        fastpool.max_pool(x, Endless([2, 2]))
    window = [Growing(), Growing()]
    assert fastpool.max_pool(x, window).shape == (1, 1, 7, 7)
    with pytest.raises(ValueError, match="^activation_params: "):
        fastpool.max_pool(x, 2, activation="Clip", activation_params=Endless([2, 2]))


def test_addresses_that_are_used_again():
    """A key of addresses must not outlive the objects."""
    kept, made = counting()
    x = np.zeros((1, 2, 30), np.float32)
    for i in range(3 * MOST_CALLS):
        text = f"text {i}"
        assert kept.find(x, (text, (text,)))[2] == text
        del text
    assert len(made) == 3 * MOST_CALLS
    assert len(kept.quick) <= MOST_CALLS
    assert plan_cache.plan_cache_bytes() <= plan_cache.plan_cache_limit()


@pytest.fixture
def limited():
    """A function that sets the limit of all caches. Afterwards it is as it was."""
    before = fastpool.set_plan_cache_limit(plan_cache.plan_cache_limit())
    yield fastpool.set_plan_cache_limit
    fastpool.set_plan_cache_limit(before)


def test_all_caches_share_one_limit(limited):
    limit = 1 << 20
    limited(limit)
    x = np.zeros((1, 1, 300, 9), np.float32)
    most = 0
    for i in range(300):
        for call in (fastpool.max_pool, fastpool.avg_pool, fastpool.onnx.average_pool):
            call(x[:, :, i:], kernel_shape=[1, 3], pads=[0, 1, 0, 1])
            most = max(most, plan_cache.plan_cache_bytes())
    assert limit // 2 < most <= limit
    fastpool.max_pool(x, 2)
    limited(0)
    assert plan_cache.plan_cache_bytes() == 0
    kept, made = counting()
    for _ in range(3):
        kept.find(x, (3,))
    assert len(made) == 3 and plan_cache.plan_cache_bytes() == 0
    limited(limit)
    for _ in range(3):
        kept.find(x, (3,))
    assert len(made) == 4
    for wrong, error in ((-1, ValueError), (1.0, TypeError), (None, TypeError), (True, TypeError)):
        with pytest.raises(error, match="^nbytes: "):
            limited(wrong)


def test_tables_of_plans_count(limited):
    """Exact averages over many columns keep reciprocals of divisors."""
    limited(16 << 20)
    x = np.zeros((1, 1, 3, 20_000), np.float32)
    for i in range(30):
        fastpool.avg_pool(x[..., i:], 3, pads=1, numerics="exact")
        assert plan_cache.plan_cache_bytes() <= 16 << 20
    held = fastpool.plan_avg_pool(x.shape, x.dtype, 3, pads=1, numerics="exact")
    kept = plan_cache.plan_cache_bytes()
    held(x)
    assert held._prepared.pooling.table_bytes > 1 << 19
    assert plan_cache.plan_cache_bytes() == kept  # plans that are held do not count
    limited(0)
    assert plan_cache.plan_cache_bytes() == 0
    limited(1 << 20)
    kept, made = counting()
    kept.find(x, (1,)), kept.find(x, (1,))
    assert len(made) == 1


def test_a_cache_that_dies_keeps_nothing():
    before = plan_cache.plan_cache_bytes()
    kept, _ = counting()
    for i in range(5):
        kept.find(np.zeros((1, i + 1)), (1,))
    assert plan_cache.plan_cache_bytes() > before
    del kept
    assert plan_cache.plan_cache_bytes() == before


@pytest.mark.parametrize(
    "text, limit", [("", 64 << 20), (" 0 ", 0), ("123456", 123456), ("64M", None), ("-1", None)]
)
def test_the_limit_of_the_environment(text, limit):
    code = "from fastpool._running import plan_cache; print(plan_cache.plan_cache_limit())"
    process = cases.run_python(code, FASTPOOL_PLAN_CACHE_LIMIT=text)
    if limit is None:
        text = f"FASTPOOL_PLAN_CACHE_LIMIT={text!r}: expected a whole number of bytes"
        assert f"ImportError: {text}" in process.stderr
    else:
        assert int(process.stdout) == limit


def test_arguments_of_any_number_and_length():
    kept, _ = counting()
    x = np.zeros((1,) * 64, np.float32)
    for count in (1, 180, 190, 254, 255, 256, 257, 1000):
        for _ in range(3):
            assert kept.find(x, (1,) * count)[2:] == (1,) * count
            assert kept.find(x, ((1,) * count, 1))[2:] == ((1,) * count, 1)
            assert kept.find(x, (1, [1] * count))[3] == [1] * count


def test_a_plan_that_is_dropped_is_freed():
    plan = fastpool.plan_max_pool(X.shape, X.dtype, 2)
    plan(X)
    gone = weakref.ref(plan)
    del plan
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("function", ["max_pool", "onnx", "openvino"])
def test_no_references_are_lost(function):
    x = np.arange(64, dtype=np.float32).reshape(1, 1, 8, 8)
    window, strides = [2, 2], (2, 2)
    y = np.zeros((1, 1, 4, 4), np.float32)
    calls = {
        "max_pool": lambda: fastpool.max_pool(x, window, strides=strides, out=y),
        "onnx": lambda: fastpool.onnx.max_pool(x, kernel_shape=window, strides=strides, out=y),
        "openvino": lambda: fastpool.openvino.max_pool(
            x, version=1, kernel=window, strides=strides, auto_pad="valid", out=y
        ),
    }
    call = calls[function]
    call()
    watched = (x, y, window, strides, x.dtype, None)
    before = [sys.getrefcount(a) for a in watched]
    for _ in range(1000):
        call()
    after = [sys.getrefcount(a) for a in watched]
    assert all(abs(a - b) < 50 for a, b in zip(after, before, strict=True)), (before, after)


def test_classes_that_claim_to_be_int():
    """A metaclass says what its classes are equal to."""

    class Meta(type):
        def __eq__(cls, other):
            return other is int or other is cls

        def __hash__(cls):
            return hash(int)

    class Five(metaclass=Meta):
        def __index__(self):
            return 5

        def __eq__(self, other):
            return other == 2

        def __hash__(self):
            return hash(2)

    x = np.zeros((1, 1, 9, 9), np.float32)
    assert fastpool.max_pool(x, Five()).shape == (1, 1, 5, 5)
    assert fastpool.max_pool(x, 2).shape == (1, 1, 8, 8)


def test_zeros_of_both_signs_are_two_arguments():
    x = np.full((1, 1, 2, 2), -1, np.float32)
    for alpha in (-0.0, 0.0, np.float64(-0.0), np.float64(0.0)):
        activation = {"activation": "LeakyRelu", "activation_params": [alpha]}
        y = fastpool.max_pool(x, 2, **activation)
        assert np.signbit(y).all() == (not np.signbit(alpha))


def test_results_are_remembered_by_type_and_up_to_a_number():
    """The cache for Pythons without the GIL; others take that of functools."""
    calls = []
    remembered = forks.Remembered(2, lambda *values: calls.append(values))
    for value in (1, 1.0, 1, 1.0):
        assert remembered(value) is None
    assert calls == [(1,), (1.0,)]
    assert remembered(2) is None
    remembered(1)
    assert calls == [(1,), (1.0,), (2,), (1,)]


def test_a_child_without_the_gil_forgets_plans():
    """A thread that does not exist in the child may hold the locks of the dicts."""
    code = """
import os, sys
import numpy as np
from fastpool._api import maximum
x = np.zeros((1, 1, 4, 4), np.float32)
maximum.max_pool(x, 2)
plans = maximum._pool_plans
kept = len(plans._plans), len(plans.quick)
child = os.fork()
if child == 0:
    left = len(plans._plans), len(plans.quick)
    maximum.max_pool(x, 2)
    without = not getattr(sys, "_is_gil_enabled", lambda: True)()
    os._exit(kept != (1, 1) or left != ((0, 0) if without else kept))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    if not hasattr(os, "fork"):
        pytest.skip("needs os.fork")
    assert cases.run_python(code).returncode == 0


@pytest.mark.parametrize("which", ["x", "dtype"])
def test_dtypes_that_hold_objects_are_not_kept(which):
    """The metadata of a dtype may be any object, of any size."""
    held = Held()
    dtype = np.dtype("float32", metadata={"held": held})
    x = np.zeros((1, 1, 4, 4), dtype if which == "x" else np.float32)
    fastpool.avg_pool(x, 2, dtype=dtype if which == "dtype" else None)
    fastpool.max_pool(x, 2)
    found = weakref.ref(held)
    del held, dtype, x
    gc.collect()
    assert found() is None


class Held:
    pass
