"""Edge cases are right: ends of memory (guard pages), arrangements of arrays, unusual outputs."""

import functools
import itertools
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import cases
import fastpool
import limits
from fastpool import _reference
from fastpool._running import execute

WIDTHS = range(1, 131)
# To four vectors of 64 bytes and two elements, at least.
WIDTHS_BY_TYPE = {
    **dict.fromkeys(("uint8", "float16"), WIDTHS),
    **dict.fromkeys(("float32", "float64", "int32"), range(1, 67)),
}


# ------------------------------------------------------------------------------------ guard pages

# Shape, window and attributes by the swept width; rows or channels end at the page.
GUARDED_POOLS = {
    "row k1": lambda w: ((w,), 1, {"layout": "W"}),
    "row k2": lambda w: ((w + 1,), 2, {"layout": "W"}),
    "row k3 padded": lambda w: ((2, w), 3, {"layout": "CW", "pads": 1}),
    "row k2 stride 2": lambda w: ((3, 2 * w), 2, {"layout": "CW", "strides": 2}),
    "row k3 stride 2, ceil": lambda w: (
        (2, w + 2),
        3,
        {"layout": "CW", "strides": 2, "ceil_mode": True},
    ),
    "row k3 stride 3 dilation 2": lambda w: (
        (w + 4,),
        3,
        {"layout": "W", "strides": 3, "dilations": 2},
    ),
    "row k20": lambda w: ((w + 19,), 20, {"layout": "W"}),
    "plane k2 stride 2": lambda w: ((2, 3, w + 1), 2, {"layout": "CHW", "strides": 2}),
    "plane k3 padded": lambda w: ((2, 3, w), 3, {"layout": "CHW", "pads": 1}),
    "plane k9 padded": lambda w: ((1, 9, w), 9, {"layout": "CHW", "pads": 4}),
    "volume k2": lambda w: ((2, 2, w + 1), 2, {"layout": "DHW"}),
    "channels k3 padded": lambda w: ((3, 4, w), 3, {"layout": "HWC", "pads": 1}),
    "channels k2 stride 2": lambda w: ((4, 4, w), 2, {"layout": "HWC", "strides": 2}),
    "channels row k9": lambda w: ((11, w), 9, {"layout": "WC", "pads": 4}),
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="guard pages need mprotect")
@pytest.mark.parametrize("offset", [-1, 65536])
def test_a_guard_page_guards(offset):
    code = f"""
import ctypes, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from conftest import GuardedMemory
memory = GuardedMemory(65536)
array = memory.array((65536,), "uint8", "end")
ctypes.string_at(array.ctypes.data, 65536)
print("inside", flush=True)
ctypes.string_at(array.ctypes.data + {offset}, 1)
"""
    process = cases.run_python(code)
    assert process.stdout == "inside\n" and process.returncode == -signal.SIGSEGV


@pytest.mark.parametrize("case", GUARDED_POOLS)
@pytest.mark.parametrize("name", WIDTHS_BY_TYPE)
def test_nothing_beyond_the_pages_is_touched(case, name, isa, guarded_memory):
    """Input, output and indices each touch an unmapped page, at their end and at their start."""
    memories = {key: guarded_memory(65536) for key in ("x", "y", "indices")}
    for width in WIDTHS_BY_TYPE[name]:
        shape, kernel, attributes = GUARDED_POOLS[case](width)
        values = cases.values(shape, name, "ties", width)
        plans = [
            fastpool.plan_max_pool(
                shape, values.dtype, kernel, return_indices=return_indices, **attributes
            )
            for return_indices in (False, True)
        ]
        results = []
        for at in ("end", "start"):
            x = memories["x"].array(shape, values.dtype, at)
            x[...] = values
            y = memories["y"].array(plans[0].output_shape, values.dtype, at)
            indices = memories["indices"].array(plans[0].output_shape, np.int64, at)
            plans[0](x, out=y)
            results.append((y.copy(), None))
            plans[1](x, out=y, out_indices=indices)
            results.append((y.copy(), indices.copy()))
            assert x.tobytes() == values.tobytes()
            for memory in memories.values():
                memory.check()
        unguarded = plans[1](values)
        for y, indices in results:
            cases.assert_same(y, unguarded[0], f"{case}, width {width}")
            if indices is not None:
                cases.assert_same(indices, unguarded[1], f"indices, {case}, width {width}")


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_every_type_stays_between_the_pages(name, isa, guarded_memory):
    memories = {key: guarded_memory(65536) for key in ("x", "y", "indices")}
    for width in [*range(1, 36), 63, 64, 65, 66, 67, 127, 128, 129, 130]:
        values = cases.values((3, 5, width), name, "bits", width)
        expected = _reference.max_pool(
            values, 3, pads=1, strides=2, layout="CHW", return_indices=True
        )
        plan = fastpool.plan_max_pool(
            values.shape, values.dtype, 3, pads=1, strides=2, layout="CHW", return_indices=True
        )
        for at in ("end", "start"):
            x = memories["x"].array(values.shape, values.dtype, at)
            x[...] = values
            y = memories["y"].array(plan.output_shape, values.dtype, at)
            indices = memories["indices"].array(plan.output_shape, np.int64, at)
            plan(x, out=y, out_indices=indices)
            cases.assert_same(y, expected[0], f"width {width}")
            cases.assert_same(indices, expected[1], f"indices, width {width}")
            for memory in memories.values():
                memory.check()


@pytest.mark.parametrize("index_dtype", ["int64", "int32"])
@pytest.mark.parametrize("name", ["float32", "uint8", "float16", "float64"])
def test_unpooling_stays_between_the_pages(name, index_dtype, isa, guarded_memory):
    memories = {key: guarded_memory(65536) for key in ("x", "y", "indices")}
    for width in WIDTHS:
        shape, kernel = (2, 2, 2, width), (2, 2)
        values = cases.values(shape, name, "bits", width)
        total = 2 * 2 * 4 * 2 * width
        chosen = np.random.default_rng(width).permutation(total)[: values.size]
        chosen[:2] = 0, total - 1
        expected = np.zeros((2, 2, 4, 2 * width), values.dtype)
        for position, value in zip(chosen, values.reshape(-1), strict=True):
            expected.reshape(-1)[position] = value
        for at in ("end", "start"):
            x = memories["x"].array(shape, values.dtype, at)
            x[...] = values
            indices = memories["indices"].array(shape, index_dtype, at)
            indices[...] = chosen.reshape(shape)
            y = memories["y"].array(expected.shape, values.dtype, at)
            fastpool.max_unpool(x, indices, kernel, strides=2, out=y)
            cases.assert_same(y, expected, f"width {width}")
            for memory in memories.values():
                memory.check()


@pytest.mark.parametrize("name", ["uint8", "float32"])
def test_strided_rows_at_a_guard_page(name, isa, guarded_memory):
    """A view whose last row ends at the page, inside an array whose rows are longer."""
    memory = guarded_memory(65536)
    for width in WIDTHS:
        base = memory.array((4, 6, width + 3), cases.dtype(name), "end")
        base[...] = cases.values(base.shape, name, "ties", width)
        x = base[:, :, 3:]
        for attributes in ({"pads": 1}, {"strides": 2, "ceil_mode": True, "pads": 1}):
            y, indices = fastpool.max_pool(x, 3, layout="CHW", return_indices=True, **attributes)
            expected = fastpool.max_pool(
                x.copy(), 3, layout="CHW", return_indices=True, **attributes
            )
            cases.assert_same(y, expected[0], f"width {width}")
            cases.assert_same(indices, expected[1], f"width {width}")
            cases.assert_same(fastpool.max_pool(x, 3, layout="CHW", **attributes), expected[0])


SEPARATE = [  # layout, extents, channels, window, strides, pads: windows share no rows
    ("NHWC", (19, 3), 70, (19, 3), 1, 0),
    ("NHWC", (9, 11), 70, (9, 11), 1, 0),
    ("NHWC", (30, 5), 300, (11, 2), (12, 1), (3, 0, 3, 0)),
    ("NHWC", (9, 130), 70, (9, 130), 1, 0),  # keys: more columns than are copied at once
    ("NHWC", (37, 17), 37, (8, 8), (8, 9), (3, 1, 0, 0)),  # all of the most taps at once
    ("NCHW", (20, 8300), 1, (17, 2), (17, 2), (4, 0, 0, 0)),
    ("NCHW", (19, 70), 2, (19, 9), (1, 9), 0),
]


@pytest.mark.parametrize("case", SEPARATE, ids=str)
@pytest.mark.parametrize(
    "name", [n for n in ("uint8", "bfloat16", "float32", "float64") if n in cases.DTYPE_NAMES]
)
def test_long_windows_that_share_no_rows(case, name, isa, guarded_memory):
    layout, sizes, channels, kernel, strides, pads = case
    shape = cases.array_shape(layout, 1, channels, sizes)
    attributes = {"strides": strides, "pads": pads, "layout": layout}
    bits = cases.values(shape, name, "bits", 0)
    with np.errstate(invalid="ignore"):  # signalling NaN
        values = np.where(bits == bits, bits, np.ones_like(bits))
    memory = guarded_memory(2 * values.nbytes + 65536)
    column = shape.index(sizes[1], 2 if layout == "NCHW" else 1)
    for at, gap, nan in itertools.product(("end", "start"), (0, 5), (False, True)):
        if nan and name != "uint8":
            values.reshape(-1)[values.size // 3] = np.nan
        wider = list(shape)
        wider[column] += gap
        x = memory.array(tuple(wider), values.dtype, at)
        x = x[(slice(None),) * column + (slice(gap, None) if at == "end" else slice(sizes[1]),)]
        x[...] = values
        expected = _reference.max_pool(values, kernel, **attributes)
        y = fastpool.max_pool(x, kernel, **attributes)
        cases.assert_same(y, expected, f"{at}, gap {gap}, NaN {nan}")
        memory.check()


# ---------------------------------------------------------------------------------- arrangements


@pytest.mark.parametrize("how", cases.ARRANGEMENTS)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_any_arrangement_of_the_input(name, layout, how, isa):
    shape = cases.array_shape(layout, 3, 4, (7, 37))
    x = cases.arranged(cases.values(shape, name, "ties", 3), how)
    before = x.tobytes()
    for memory_of in (x, x[::-1], x[:, 1:], x[:, :, ::2], x[..., 1:-1], x.transpose(1, 0, 2, 3)):
        expected = _reference.max_pool(
            memory_of, 3, strides=2, pads=1, layout=layout, return_indices=True
        )
        y, indices = fastpool.max_pool(
            memory_of, 3, strides=2, pads=1, layout=layout, return_indices=True
        )
        cases.assert_same(y, expected[0])
        cases.assert_same(indices, expected[1])
        y = fastpool.max_pool(memory_of, 3, strides=2, pads=1, layout=layout)
        cases.assert_same(y, expected[0])
    assert x.tobytes() == before


@pytest.mark.parametrize("how", cases.ARRANGEMENTS)
def test_any_arrangement_of_unpooling(how, isa):
    x = cases.arranged(cases.values((2, 3, 4, 5), "float32", "ties", 3), how)
    indices = np.random.default_rng(0).integers(0, 2 * 3 * 8 * 10, x.shape)
    expected = _reference.max_unpool(x, indices, 2, strides=2)
    cases.assert_same(
        fastpool.max_unpool(x, cases.arranged(indices, "contiguous"), 2, strides=2), expected
    )
    if how != "broadcast":
        arranged = cases.arranged(indices, how)
        cases.assert_same(fastpool.max_unpool(x, arranged, 2, strides=2), expected)
    same = np.broadcast_to(indices[:1], x.shape)
    expected = _reference.max_unpool(x, same, 2, strides=2)
    cases.assert_same(fastpool.max_unpool(x, same, 2, strides=2), expected)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("name", ["float32", "uint8", "float16", "bool"] + cases.FLOAT_NAMES[3:])
def test_contiguous_rows_are_read_and_written_in_place(name, layout, isa):
    """Slices whose last axis is contiguous: nothing of their size is allocated."""
    base = cases.values((4, 90, 100, 60), name, "ties", 0)
    attributes = {"pads": 1, "layout": layout, "return_indices": True, "num_threads": 1}
    for x in (base, base[::2, 1:-1, 10:, 3:-3], base[::-1, ::-1, 5::3]):
        plan = fastpool.plan_max_pool(x.shape, x.dtype, 3, **attributes)
        y = np.zeros((*x.shape[:3], x.shape[3] + 7), x.dtype)[..., 4:-3]
        indices = np.zeros(y.shape, np.int64)
        plan(x, out=y, out_indices=indices)
        peak = limits.allocated(functools.partial(plan, x, out=y, out_indices=indices))
        assert peak < 20_000 < x.nbytes


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("batch", "channels"), [(0, 3), (2, 0), (0, 0)])
def test_empty_batches_and_channels(batch, channels, layout):
    x = np.zeros(cases.array_shape(layout, batch, channels, (5, 6)), np.float32)
    y, indices = fastpool.max_pool(x, 2, strides=2, layout=layout, return_indices=True)
    assert y.shape == indices.shape == cases.array_shape(layout, batch, channels, (2, 3))
    assert y.dtype == np.float32 and indices.dtype == np.int64
    restored = fastpool.max_unpool(y, indices, 2, strides=2, layout=layout)
    assert restored.shape == cases.array_shape(layout, batch, channels, (4, 6))


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_windows_without_elements(name, isa):
    """The lowest value and -1: in the pads, in the gaps of a dilation, and over an empty axis."""
    low = np.array(cases.lowest(name), cases.dtype(name))
    x = cases.values((1, 1, 2, 3), name, "ties", 0)
    y, indices = fastpool.max_pool(x, 2, pads=(3, 4, 3, 4), return_indices=True)
    cases.assert_same(y[0, 0, 0], np.broadcast_to(low, y.shape[3]))
    cases.assert_same(y[0, 0, :, 0], np.broadcast_to(low, y.shape[2]))
    assert (indices[0, 0, 0] == -1).all() and (indices[0, 0, :, -1] == -1).all()
    cases.assert_same(y, fastpool.max_pool(x, 2, pads=(3, 4, 3, 4)))

    gap = cases.values((1, 1, 1), name, "ties", 0)
    y, indices = fastpool.max_pool(gap, 2, dilations=2, pads=1, return_indices=True)
    cases.assert_same(y, np.broadcast_to(low, (1, 1, 1)))
    assert indices.tolist() == [[[-1]]]

    nothing = np.zeros((2, 0), cases.dtype(name))
    y, indices = fastpool.max_pool(nothing, 2, pads=2, layout="CW", return_indices=True)
    cases.assert_same(y, np.broadcast_to(low, (2, 3)))
    assert (indices == -1).all()


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_lowest_values_keep_their_index(name, layout, isa):
    """A window of nothing but the lowest value names its own first element, not a margin."""
    x = np.full(cases.array_shape(layout, 1, 2, (4, 21)), cases.lowest(name), cases.dtype(name))
    for kernel, pads in ((3, 1), (2, 0), (5, 4)):
        attributes = {"pads": pads, "layout": layout, "return_indices": True}
        y, indices = fastpool.max_pool(x, kernel, **attributes)
        expected_y, expected_indices = _reference.max_pool(x, kernel, **attributes)
        cases.assert_same(y, expected_y)
        cases.assert_same(indices, expected_indices)
        assert (indices >= 0).all()


@pytest.mark.parametrize("nan", ["propagate", "ignore"])
@pytest.mark.parametrize("name", cases.FLOAT_NAMES)
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
def test_a_nan_in_every_position(name, layout, nan, isa):
    """One NaN, then two, moved over every position of a plane several vectors wide."""
    height, width = 3, 35
    base = cases.values((height, width), name, "ties", 0)
    moved = np.repeat(base[None], height * width, 0).reshape(height * width, -1)
    diagonal = np.arange(height * width)
    moved[diagonal, diagonal] = np.nan
    moved[diagonal, diagonal[::-1]] = -moved.dtype.type(np.nan)
    x = moved.reshape(height * width, height, width)
    x = x if layout == "CHW" else np.ascontiguousarray(x.transpose(1, 2, 0))
    attributes = {"layout": layout, "nan": nan, "pads": 1}
    for kernel, strides in ((3, 1), (3, 2), (2, 2)):
        expected_y, expected_indices = _reference.max_pool(
            x, kernel, strides=strides, return_indices=True, **attributes
        )
        cases.assert_same(fastpool.max_pool(x, kernel, strides=strides, **attributes), expected_y)
        y, indices = fastpool.max_pool(
            x, kernel, strides=strides, return_indices=True, **attributes
        )
        cases.assert_same(y, expected_y)
        cases.assert_same(indices, expected_indices)


# ------------------------------------------------------------------------------------------- out=


def pool_inputs():
    x = np.arange(2 * 3 * 8 * 8, dtype=np.float32).reshape(2, 3, 8, 8)
    return x, np.full((2, 3, 4, 4), 7, np.float32), np.full((2, 3, 4, 4), 7, np.int64)


def wrong_outputs(good):
    """(what is wrong with it, array) for an output that should look like `good`."""
    read_only = good.copy()
    read_only.flags.writeable = False
    other = np.int16 if good.dtype != np.int16 else np.int32
    yield "dtype", good.astype(other)
    yield "float64 dtype", good.astype(np.float64)
    yield "byte-swapped", good.astype(good.dtype.newbyteorder())
    yield "smaller", good[..., :-1].copy()
    yield "larger", np.concatenate([good, good], axis=-1)
    yield "flat", good.reshape(-1)
    yield "broadcastable", good[:1].copy()
    yield "extra axis", good[None]
    yield "transposed", np.ascontiguousarray(np.moveaxis(good, 1, -1))
    yield "read-only", read_only
    yield "list", good.tolist()
    yield "scalar", 1.0


@pytest.mark.parametrize("argument", ["out", "out_indices"])
def test_wrong_outputs_are_refused_before_anything_is_written(argument, isa):
    x, y, indices = pool_inputs()
    for what, wrong in wrong_outputs(y if argument == "out" else indices):
        given = {"out": y, "out_indices": indices, argument: wrong}
        before = np.array(wrong, copy=True)
        with pytest.raises((TypeError, ValueError), match=rf"\b{argument}\b"):
            fastpool.max_pool(x, 2, strides=2, return_indices=True, **given)
            pytest.fail(f"accepted: {what}")
        assert np.array_equal(before, np.array(wrong)), f"written: {what}"
        assert (y == 7).all() and (indices == 7).all(), f"written together with {what}"
        if argument == "out":
            with pytest.raises((TypeError, ValueError), match=r"\bout\b"):
                fastpool.max_pool(x, 2, strides=2, out=wrong)
            assert np.array_equal(before, np.array(wrong)), f"written: {what}"


@pytest.mark.parametrize("most", [0, execute.MOST_COPIED])
def test_wrong_outputs_are_refused_before_x_is_copied_with_care(monkeypatch, most):
    """Of arrays in another order of memory, which kernels need copies of."""
    monkeypatch.setattr(execute, "MOST_COPIED", most)
    x, y, indices = pool_inputs()
    x = np.asfortranarray(x)
    expected = fastpool.max_pool(np.ascontiguousarray(x), 2, strides=2)
    cases.assert_same(fastpool.max_pool(x, 2, strides=2, out=y), expected)
    cases.assert_same(fastpool.max_pool(x, 2, strides=2, out=y[..., ::-1][..., ::-1]), expected)
    monkeypatch.setattr(execute, "readable", lambda *_: pytest.fail("copied"))
    for what, wrong in wrong_outputs(y.copy()):
        for pool in (fastpool.max_pool, fastpool.avg_pool):
            with pytest.raises((TypeError, ValueError), match=r"\bout\b"):
                pool(x, 2, strides=2, out=wrong)
                pytest.fail(f"accepted: {what}")
    with pytest.raises(ValueError, match="out_indices"):
        fastpool.max_pool(x, 2, strides=2, out=y.copy(), out_indices=indices)
    with pytest.raises(ValueError, match="out: overlaps x"):
        fastpool.max_pool(x, 2, strides=2, out=x[:, :, :4, :4])


@pytest.mark.parametrize("pool", [fastpool.max_pool, fastpool.avg_pool])
def test_small_arrays_with_gaps_are_copied_before_other_checks(monkeypatch, pool):
    """With gaps next to an axis of one element, which plans leave out, too."""
    x = np.arange(2 * 80 * 2 * 9, dtype="float32").reshape(2, 80, 2, 9)[..., 4:5]
    expected = pool(x.copy(), (2, 1))
    monkeypatch.setattr(execute, "input_of", lambda *_: pytest.fail("checked with care"))
    cases.assert_same(pool(x, (2, 1)), expected)
    out = np.empty_like(expected)
    assert pool(x, (2, 1), out=out) is out
    cases.assert_same(out, expected)


def calls_without_a_copy():
    """(what, x, out) of calls in which a copy of x would be of no use."""
    x = np.ones((2, 8, 90, 90), "float32")[..., :80]
    y = np.empty((2, 8, 89, 158), "float32")
    yield "rows with gaps", x, None
    yield "columns of out with gaps", x, y[..., ::2]
    yield "byte order", x.astype(">f4"), None
    yield "out in another order", np.asfortranarray(x), np.asfortranarray(y[..., :79])


@pytest.mark.parametrize(
    "what, x, out", [*calls_without_a_copy()], ids=lambda value: str(value)[:9]
)
@pytest.mark.parametrize("plan_pool", [fastpool.plan_max_pool, fastpool.plan_avg_pool])
def test_small_arrays_are_not_copied_for_nothing(monkeypatch, plan_pool, what, x, out):
    """By a first call, which prepares the plan, nor by further ones."""
    peaks = []
    for most in (0, execute.MOST_COPIED):
        monkeypatch.setattr(execute, "MOST_COPIED", most)
        plan = plan_pool(x.shape, "float32", 2)
        peaks.append([limits.allocated(lambda plan=plan: plan(x, out=out)) for _ in range(3)])
    few = x.nbytes // 2
    assert all(peak < usual + few for usual, peak in zip(*peaks, strict=True)), peaks


def test_out_indices_without_indices_is_refused():
    x, y, indices = pool_inputs()
    with pytest.raises(ValueError, match="out_indices"):
        fastpool.max_pool(x, 2, strides=2, out=y, out_indices=indices)
    assert (y == 7).all() and (indices == 7).all()


def test_wrong_output_of_unpool_is_refused(isa):
    x, indices = np.ones((2, 3, 2, 2), np.float32), np.zeros((2, 3, 2, 2), np.int64)
    good = np.full((2, 3, 4, 4), 7, np.float32)
    for what, wrong in wrong_outputs(good):
        before = np.array(wrong, copy=True)
        with pytest.raises((TypeError, ValueError), match=r"\bout\b"):
            fastpool.max_unpool(x, indices, 2, strides=2, out=wrong)
            pytest.fail(f"accepted: {what}")
        assert np.array_equal(before, np.array(wrong)), f"written: {what}"


def test_overlapping_outputs_are_refused(isa):
    base = np.arange(4 * 2 * 3 * 8 * 8, dtype=np.float32)
    x = base[:384].reshape(2, 3, 8, 8)
    before = base.copy()
    overlapping = {
        "the input's start": x.reshape(-1)[:96],
        "the input's end": base[383 : 383 + 96],
        "inside the input": x.reshape(-1)[100:196],
        "the input, reversed": x.reshape(-1)[95::-1],
        "every fourth element": x.reshape(-1)[::4],
    }
    for what, flat in overlapping.items():
        with pytest.raises(ValueError, match=r"\bout\b"):
            fastpool.max_pool(x, 2, strides=2, out=flat.reshape(2, 3, 4, 4))
            pytest.fail(f"accepted: {what}")
        assert np.array_equal(base, before), f"written: {what}"

    words = np.zeros(2 * 384 + 8, np.int64)
    x64 = words[:384].view(np.float64).reshape(2, 3, 8, 8)
    with pytest.raises(ValueError, match="out_indices"):
        fastpool.max_pool(
            x64, 2, strides=2, return_indices=True, out_indices=words[300:396].reshape(2, 3, 4, 4)
        )
    shared = words[400:496].reshape(2, 3, 4, 4)
    with pytest.raises(ValueError, match="out_indices"):
        fastpool.max_pool(
            x64,
            2,
            strides=2,
            return_indices=True,
            out=shared.view(np.float64),
            out_indices=shared,
        )
    assert not words.any()


def test_outputs_next_to_the_input_are_accepted(isa):
    """Outputs in the same buffer do not overlap the input: after it, or in other channels."""
    base = np.arange(4 * 2 * 3 * 8 * 8, dtype=np.float32)
    x = base[:384].reshape(2, 3, 8, 8)
    after = base[384 : 384 + 96].reshape(2, 3, 4, 4)
    expected = fastpool.max_pool(x, 2, strides=2)
    cases.assert_same(fastpool.max_pool(x, 2, strides=2, out=after), expected)

    for layout in ("NCHW", "NHWC"):  # spatial pyramid pooling into the buffer of its concatenation
        joined = cases.values(cases.array_shape(layout, 2, 6, (8, 9)), "float32", "bits", 0)
        before = joined.copy()
        channels = 1 if layout == "NCHW" else 3
        x, y = np.split(joined, 2, axis=channels)
        expected = fastpool.max_pool(x.copy(), 5, pads=2, layout=layout)
        assert fastpool.max_pool(x, 5, pads=2, layout=layout, out=y) is y
        cases.assert_same(y, expected)
        cases.assert_same(x, np.split(before, 2, axis=channels)[0])


def test_an_output_that_overlaps_itself_is_refused(isa):
    """Two elements of the output in one place cannot both hold their result."""
    x, _, _ = pool_inputs()
    repeated = np.lib.stride_tricks.as_strided(
        np.full(16, 7, np.float32), (2, 3, 4, 4), (0, 0, 16, 4)
    )
    with pytest.raises(ValueError, match=r"\bout\b"):
        fastpool.max_pool(x, 2, strides=2, out=repeated)
    assert (repeated == 7).all()


def test_overlapping_outputs_of_unpool_are_refused(isa):
    words = np.zeros(400, np.int64)
    x, indices = words[:24].reshape(2, 3, 2, 2), words[24:48].reshape(2, 3, 2, 2)
    for first in (0, 10, 30):
        with pytest.raises(ValueError, match=r"\bout\b"):
            fastpool.max_unpool(
                x, indices, 2, strides=2, out=words[first : first + 96].reshape(2, 3, 4, 4)
            )
    assert not words.any()


@pytest.mark.parametrize("how", ["fortran", "negative", "stepped", "rows", "planes", "unaligned"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_outputs_in_any_arrangement(layout, how, isa):
    """A strided output is filled in place. The memory between its elements stays as it was."""
    x = cases.values(cases.array_shape(layout, 2, 3, (9, 35)), "float32", "ties", 0)
    attributes = {"strides": 2, "pads": 1, "layout": layout, "return_indices": True}
    expected = fastpool.max_pool(x, 3, **attributes)
    y = cases.arranged(np.full(expected[0].shape, 7, np.float32), how)
    indices = cases.arranged(np.full(expected[1].shape, 7, np.int64), how)
    returned = fastpool.max_pool(x, 3, out=y, out_indices=indices, **attributes)
    assert returned[0] is y and returned[1] is indices
    cases.assert_same(y, expected[0])
    cases.assert_same(indices, expected[1])
    for array in (y, indices):
        if how in ("stepped", "planes"):
            owner = array.base
            untouched = owner[..., 1::2] if how == "stepped" else owner[1::2]
            assert (untouched == 7).all(), "elements between the output's were written"
        if how == "rows":
            assert (array.base[..., 0] == 7).all() and (array.base[..., -1] == 7).all()


@pytest.mark.parametrize("how", ["fortran", "negative", "stepped", "rows", "planes", "unaligned"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_outputs_of_unpool_in_any_arrangement(layout, how, isa):
    x = cases.values(cases.array_shape(layout, 2, 3, (4, 5)), "int16", "bits", 0)
    indices = np.random.default_rng(0).integers(0, 2 * 3 * 8 * 10, x.shape)
    expected = fastpool.max_unpool(x, indices, 2, strides=2, layout=layout)
    y = cases.arranged(np.full(expected.shape, 7, np.int16), how)
    assert fastpool.max_unpool(x, indices, 2, strides=2, layout=layout, out=y) is y
    cases.assert_same(y, expected)


def test_indices_out_of_range_write_nothing(isa):
    """A wrong index is refused at any position, and the output keeps its values."""
    for num_threads in (1, 2):
        for wrong in (-1, 384, 2**40, -(2**63), 2**63 - 1):
            for position in (0, 50, 95):
                x, indices = np.ones((2, 3, 4, 4), np.float32), np.zeros((2, 3, 4, 4), np.int64)
                indices.reshape(-1)[position] = wrong
                out = np.full((2, 3, 8, 8), 7, np.float32)
                with pytest.raises(ValueError, match="indices") as raised:
                    fastpool.max_unpool(x, indices, 2, strides=2, out=out, num_threads=num_threads)
                assert str(wrong) in str(raised.value)
                assert (out == 7).all()
    narrow = np.full((2, 3, 4, 4), 384, np.int32)
    with pytest.raises(ValueError, match="indices"):
        fastpool.max_unpool(x, narrow, 2, strides=2)
