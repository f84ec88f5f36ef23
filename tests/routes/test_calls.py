"""The hot path takes the arrays that it can use, misses no error, and declines all others."""

import sys
import warnings

import numpy as np
import pytest

import cases
import fastpool
from fastpool import _reference
from fastpool._api import maximum as api
from fastpool._running import builds as running

X = cases.values((2, 3, 8, 9), "int16", "bits", 0)


def took_the_short_way(plan, *arrays):
    """The results of a plan's compiled part alone, None if it declined."""
    plan(*arrays)  # the first call is what compiles
    return plan._run(*arrays, *(None,) * (3 - len(arrays)))


@pytest.fixture(params=["fields", "buffers"])
def reading(request, isa):
    """Arrays read by their fields, and through the buffer protocol as where the fields disagree."""
    kernels = running.builds()[isa]
    before = kernels.trust_fields(request.param == "fields")
    yield request.param
    kernels.trust_fields(before)


# ------------------------------------------------------------------ what the fields of arrays say


def test_fields_are_trusted_here():
    """On CPython, with every NumPy that there is; if not, calls are slower and the rest holds."""
    if sys.implementation.name != "cpython":
        pytest.skip("another interpreter may lay out arrays differently")
    for kernels in running.builds().values():
        assert all(map(kernels.fields_agree, running._probes()))
        assert kernels.trust_fields(True) is True


def test_fields_of_many_arrays():
    kernels = next(iter(running.builds().values()))
    for how in cases.ARRANGEMENTS:
        for name in cases.DTYPE_NAMES:
            for shape in ((2, 3, 4, 5), (3, 0, 2, 2), (1, 1, 1, 1)):
                x = cases.arranged(cases.values(shape, name, "bits", 0), how)
                assert kernels.fields_agree(x)
                assert kernels.fields_agree(x.T) and kernels.fields_agree(x[..., ::-1])


def test_fields_that_disagree_are_seen():
    """A subclass may say of itself what it likes; the fields do not follow."""

    class Liar(np.ndarray):
        lie = None

        def __getattribute__(self, name):
            lie = object.__getattribute__(self, "lie")
            return lie[1] if lie and lie[0] == name else super().__getattribute__(name)

    kernels = next(iter(running.builds().values()))
    x = np.zeros((2, 3, 4), np.float32).view(Liar)
    assert kernels.fields_agree(x)
    lies = [("ndim", 2), ("shape", (2, 3, 5)), ("strides", (48, 16, 8))]
    lies += [("dtype", np.dtype("int32")), ("flags", np.zeros(3)[::2].flags)]
    for lie in lies:
        x.lie = lie
        assert not kernels.fields_agree(x), lie


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_both_ways_of_reading_give_one_result(name, reading):
    x = cases.values((2, 3, 9, 10), name, "ties", 0)
    expected = _reference.max_pool(x, 3, strides=2, pads=1, return_indices=True)
    plan = fastpool.plan_max_pool(x.shape, x.dtype, 3, strides=2, pads=1, return_indices=True)
    outs = np.empty_like(expected[0]), np.empty_like(expected[1])
    for results in (plan(x), plan(x, *outs), took_the_short_way(plan, x)):
        cases.assert_same(results[0], expected[0])
        cases.assert_same(results[1], expected[1])
    assert plan(x, *outs)[0] is outs[0]
    restored = fastpool.max_unpool(*expected, 3, strides=2, pads=1, output_shape=x.shape)
    cases.assert_same(restored, _reference.max_unpool(*expected, 3, output_shape=x.shape))


# ------------------------------------------------------------------- arrays that are taken, or not


def test_plain_arrays_are_taken(reading):
    plan = fastpool.plan_max_pool(X.shape, X.dtype, 2)
    y = np.empty(plan.output_shape, X.dtype)
    wide = np.empty((2, 3, 10, 20), X.dtype)[:, :, 1:-1, 3:-8]
    wide[...] = X
    for x in (X, wide, np.repeat(X, 2, axis=1)[:, ::2], np.flip(X.copy(), (0, 2))):
        taken = took_the_short_way(plan, x, y)
        assert taken is y
        cases.assert_same(y, _reference.max_pool(x, 2))


def byte_swapped(x):
    return x.astype(x.dtype.newbyteorder())


def not_aligned(x):
    room = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    room[...] = x
    return room


def columns_apart(x):
    return np.repeat(x, 2, axis=-1)[..., ::2]


def of_a_subclass(x):
    return x.view(type("Array", (np.ndarray,), {}))


def of_another_dtype_object(x):
    """An equal dtype that is not the same object, as metadata or pickle make it."""
    return x.view(np.dtype(x.dtype, metadata={"unit": "m"}))


CAREFUL = [byte_swapped, not_aligned, columns_apart, of_a_subclass, of_another_dtype_object]


@pytest.mark.parametrize("make", CAREFUL)
@pytest.mark.parametrize("name", ["int16", "float32", "float64", "bool"])
def test_other_arrays_are_pooled_with_care(make, name, reading):
    values = cases.values((2, 3, 8, 9), name, "ties", 1)
    if values.itemsize == 1 and make in (byte_swapped, not_aligned):
        pytest.skip("bytes have no order, and are never unaligned")
    attributes = {"strides": 2, "return_indices": True}
    expected = _reference.max_pool(values, 2, **attributes)
    plan = fastpool.plan_max_pool(values.shape, values.dtype, 2, **attributes)
    x, y, z = make(values), make(expected[0]), make(expected[1])
    assert took_the_short_way(plan, x) is None
    assert plan._run(values, y, None) is None
    for results in (plan(x), fastpool.max_pool(x, 2, **attributes)):
        cases.assert_same(results[0], expected[0])
        cases.assert_same(results[1], expected[1])
    restored = _reference.max_unpool(*expected, 2, strides=2, output_shape=values.shape)
    unpool = {"kernel_shape": 2, "strides": 2, "output_shape": values.shape}
    for arrays in ((y, z), (y, expected[1]), (expected[0], z)):
        cases.assert_same(fastpool.max_unpool(*arrays, **unpool), restored)
    if make is byte_swapped:
        with pytest.raises(TypeError, match="^out: expected dtype"):
            plan(values, out=y)
        return
    y[...] = 0
    z[...] = 0
    assert plan(x, y, z)[0] is y
    cases.assert_same(y, expected[0])
    cases.assert_same(z, expected[1])
    target = make(np.zeros_like(values))
    assert fastpool.max_unpool(y, z, **unpool, out=target) is target
    cases.assert_same(target, restored)


def test_strides_of_axes_of_one_element_do_not_matter(reading):
    """NumPy keeps whatever strides such axes had, odd ones too."""
    x = np.arange(64, dtype=np.float32)
    odd = np.lib.stride_tricks.as_strided(x, (1, 1, 8, 8), (3, 5, 32, 4))
    plan = fastpool.plan_max_pool(odd.shape, odd.dtype, 2, strides=2)
    cases.assert_same(plan(odd), plan(x.reshape(1, 1, 8, 8)))


def test_arrays_without_elements(reading):
    for shape in ((0, 3, 8, 8), (2, 0, 8, 8)):
        y, indices = fastpool.max_pool(np.zeros(shape, np.float32), 2, return_indices=True)
        assert y.shape == indices.shape == (*shape[:2], 7, 7)
        assert fastpool.max_unpool(y, indices, 2).shape == shape


def test_what_may_not_be_written(reading):
    plan = fastpool.plan_max_pool(X.shape, X.dtype, 1, return_indices=True)
    y, indices = plan(X)
    x = X.copy()
    constant = y.copy()
    constant.flags.writeable = False
    twice = np.lib.stride_tricks.as_strided(y, y.shape, (0, *y.strides[1:]))
    swapped = byte_swapped(indices)
    for out in (constant, x, x[::-1], twice):
        with pytest.raises(ValueError, match="^out: "):
            plan(x, out, indices)
        cases.assert_same(x, X)
    for wrong, error in ((indices[:1], ValueError), (swapped, TypeError), (y, TypeError)):
        with pytest.raises(error, match="^out_indices: "):
            plan(x, y, wrong)
    with pytest.raises(ValueError, match="^out_indices: overlaps out"):
        room = np.zeros(y.size, np.int64)
        plan(X, room.view(np.int16)[: y.size].reshape(y.shape), room.reshape(y.shape))


def test_overlaps_of_unpooling(reading):
    room = np.zeros(1000, np.int64)
    x, indices = room[:96].reshape(1, 1, 8, 12), np.arange(96).reshape(1, 1, 8, 12)
    for out in (room[:96], room[40:136], room[95:191]):
        with pytest.raises(ValueError, match="^out: overlaps x"):
            fastpool.max_unpool(x, indices, 1, out=out.reshape(x.shape))
        with pytest.raises(ValueError, match="^out: overlaps indices"):
            fastpool.max_unpool(indices, x, 1, out=out.reshape(x.shape))
    assert not room.any()
    fastpool.max_unpool(x, indices, 1, out=room[96:192].reshape(x.shape))
    with pytest.raises(ValueError, match="read-only"):
        out = np.zeros(x.shape, np.int64)
        out.flags.writeable = False
        fastpool.max_unpool(x, indices, 1, out=out)


def test_another_element_type_with_one_unpooling_plan():
    plan = api._unpool_plans.find(X, (2, 2, 0, None, "NCHW", "output", 0, "NCHW", None))
    indices = np.arange(X.size).reshape(X.shape)
    for x in (X, X.astype(np.float64), X.astype(np.uint8), X):
        expected = _reference.max_unpool(x, indices, 2, strides=2)
        for _ in range(2):
            cases.assert_same(plan(x, indices), expected)
    with pytest.raises(ValueError, match="^x: expected shape"):
        plan(X[:1], indices[:1])


def test_arrays_that_change_between_calls(reading):
    """Shape, type and memory of an array object may be other ones at the next call."""
    x = np.zeros((1, 1, 8, 8), np.float32)
    x[...] = np.arange(64).reshape(x.shape)
    plan = fastpool.plan_max_pool(x.shape, x.dtype, 2, strides=2)
    expected = plan(x)
    for change, message in (
        ({"shape": (1, 1, 4, 16)}, "shape"),
        ({"dtype": np.dtype(np.int32)}, "dtype"),
    ):
        before = {name: getattr(x, name) for name in change}
        for name, value in change.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                setattr(x, name, value)
        with pytest.raises((TypeError, ValueError), match=f"^x: expected {message}"):
            plan(x)
        assert fastpool.max_pool(x, 2, strides=2).dtype == x.dtype
        for name, value in before.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                setattr(x, name, value)
        cases.assert_same(plan(x), expected)
    x.resize((1, 1, 8, 4), refcheck=False)
    with pytest.raises(ValueError, match="^x: expected shape"):
        plan(x)
    x.resize((1, 1, 8, 8), refcheck=False)  # adds zeros at the end
    x[...] = np.arange(64).reshape(x.shape)
    cases.assert_same(plan(x), expected)


# ------------------------------------------------------------------------------ blocks


@pytest.mark.parametrize("window", [2, (2, 3), [3, 1], np.array([1, 2])], ids=str)
def test_strides_of_the_window(window):
    """The word means the extents of the window, in every function, plan and the slow twin."""
    by_count = window if isinstance(window, int) else tuple(map(int, window))
    for name, attributes in {
        "max_pool": {"return_indices": True, "dilations": 2},
        "avg_pool": {"pads": 1, "count_include_pad": True, "dtype": "float64"},
        "lp_pool": {"p": 1, "ceil_mode": True},
    }.items():
        x = X.astype(np.float32)
        expected = getattr(fastpool, name)(x, window, strides=by_count, **attributes)
        for _ in range(2):  # planned, then cached
            got = getattr(fastpool, name)(x, window, strides="window", **attributes)
            for result, wanted in zip(both(got), both(expected), strict=True):
                cases.assert_same(result, wanted)
        twin = getattr(_reference, name)(x, window, strides="window", **attributes)
        assert both(twin)[0].shape == both(expected)[0].shape
        if name == "avg_pool":
            attributes["result_dtype"] = attributes.pop("dtype")
        make, arguments = getattr(fastpool, f"plan_{name}"), (x.shape, x.dtype, window)
        plan = make(*arguments, strides="window", **attributes)
        assert plan == make(*arguments, strides=by_count, **attributes)
        assert plan.strides == plan.kernel_shape
    y, indices = fastpool.max_pool(X, window, strides="window", return_indices=True)
    arguments, attributes = (y, indices, window), {"output_shape": X.shape}
    expected = fastpool.max_unpool(*arguments, strides=by_count, **attributes)
    attributes["strides"] = "window"
    cases.assert_same(fastpool.max_unpool(*arguments, **attributes), expected)
    cases.assert_same(_reference.max_unpool(*arguments, **attributes), expected)
    plan = fastpool.plan_max_unpool(y.shape, window, strides="window")
    assert plan == fastpool.plan_max_unpool(y.shape, window, strides=by_count)


def both(results):
    return results if isinstance(results, tuple) else (results,)
