"""Results are equal however the work is arranged, without any oracle.

Every test draws a case and derives another pooling from it: of the same values elsewhere in memory,
in another order, in parts, or of another type. Results are compared exactly, except for the sign of
a zero and the bits of a NaN, which are not fixed. Builds and numbers of threads are drawn too.
"""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import cases
import fastpool
from configurations.strategies import pools, unpools
from fastpool._running import builds as running

RUNS = st.tuples(st.sampled_from(cases.BUILDS), st.sampled_from([1, 2, 3, 7]))
NUMBERS = ["float16", "float32", "float64", "int8", "uint8", "int16", "int32", "uint64"]


def pool(run, x, kernel_shape, **attributes):
    build, num_threads = run
    with running.using(build):
        return fastpool.max_pool(x, kernel_shape, num_threads=num_threads, **attributes)


def unpool(run, x, indices, kernel_shape, **attributes):
    build, num_threads = run
    with running.using(build):
        return fastpool.max_unpool(x, indices, kernel_shape, num_threads=num_threads, **attributes)


def plain(x):
    """A fresh contiguous array of the native byte order."""
    return np.array(x, dtype=x.dtype.newbyteorder("="), order="C")


def at_address(x, offset):
    """Return a copy of x whose address is a multiple of 64 plus `offset` bytes."""
    room = np.zeros(x.nbytes + 128, np.uint8)
    first = -room.ctypes.data % 64 + offset
    moved = room[first : first + x.nbytes].view(x.dtype).reshape(x.shape)
    moved[...] = x
    return moved


def axes_of(layout, rank):
    """(batch, channel, spatial axes) of an array in this layout; None for one that it lacks."""
    batch = 0 if layout.startswith("N") else None
    last = layout.endswith("C")
    channel = None if "C" not in layout else rank - 1 if last else int(batch is not None)
    return batch, channel, tuple(axis for axis in range(rank) if axis not in (batch, channel))


def explicit(case):
    """A case's attributes with its padding written out, so that the last window ends with it."""
    values = ["strides", "dilations", "layout", "nan"]
    attributes = {name: case.attributes[name] for name in values}
    plan = fastpool.plan_max_pool(case.shape, case.dtype, case.kernel_shape, **case.attributes)
    assume(all(axis.output for axis in plan.axes))  # an axis without windows has no such padding
    begins, ends = [], []
    for axis in plan.axes:
        last = (axis.output - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1
        end = last - axis.begin - axis.size
        if end < 0:  # elements after the last window: one more window is over them
            end += -(end // axis.stride) * axis.stride
        begins.append(axis.begin)
        ends.append(end)
    return attributes | {"pads": (*begins, *ends)}


# -------------------------------------------------------------------------- where the work is done


@settings(max_examples=70)
@given(
    case=pools(),
    runs=st.tuples(RUNS, RUNS, RUNS),
    how=st.sampled_from([how for how in cases.ARRANGEMENTS if how != "broadcast"]),
    offset=st.integers(0, 63),
)
def test_arrangement_alignment_build_threads_and_outputs(case, runs, how, offset):
    x = plain(case.x())
    attributes = case.attributes
    y, indices = pool(runs[0], x, case.kernel_shape, return_indices=True, **attributes)
    for name, other in (("arranged", cases.arranged(x, how)), ("moved", at_address(x, offset))):
        again = pool(runs[1], other, case.kernel_shape, return_indices=True, **attributes)
        cases.assert_same(plain(again[0]), y, name)
        cases.assert_same(again[1], indices, f"{name}, indices")
        alone = pool(runs[2], other, case.kernel_shape, **attributes)
        cases.assert_same(plain(alone), y, f"{name}, values alone")
    out, out_indices = at_address(np.zeros_like(y), offset), at_address(indices, offset // 8 * 8)
    for results in (
        {"out": out, "out_indices": out_indices},
        {"out": cases.arranged(y, how), "out_indices": cases.arranged(indices, how)},
    ):
        if any(not a.flags.writeable or not a.dtype.isnative for a in results.values()):
            continue
        for result in results.values():
            result[...] = 1
        pool(runs[1], x, case.kernel_shape, return_indices=True, **attributes, **results)
        cases.assert_same(results["out"], y, "out")
        cases.assert_same(results["out_indices"], indices, "out_indices")


@settings(max_examples=40)
@given(case=pools(), runs=st.tuples(RUNS, RUNS))
def test_layouts(case, runs):
    """Channels last are the same poolings, and the indices the same numbers."""
    batch, channel, _ = axes_of(case.attributes["layout"], len(case.shape))
    assume(channel is not None)
    attributes = {**case.attributes, "index_layout": "NCHW"}
    last = case.attributes["layout"].endswith("C")
    first = 0 if batch is None else 1
    spatial = case.attributes["layout"].replace("N", "").replace("C", "")
    if case.attributes["layout"] in ("NCHW", "NHWC"):
        other = "NCHW" if last else "NHWC"
    else:
        other = "N" * first + ("C" + spatial if last else spatial + "C")
    move = (-1, first) if last else (first, -1)
    x = plain(case.x())
    y, indices = pool(runs[0], x, case.kernel_shape, return_indices=True, **attributes)
    attributes["layout"] = other
    moved = pool(
        runs[1], np.moveaxis(x, *move).copy(), case.kernel_shape, return_indices=True, **attributes
    )
    cases.assert_same(moved[0], np.moveaxis(y, *move))
    cases.assert_same(moved[1], np.moveaxis(indices, *move), "indices")


# ------------------------------------------------------------------------ in which order, in parts


@settings(max_examples=40)
@given(case=pools(), runs=st.tuples(RUNS, RUNS), data=st.data())
def test_channels_and_images_in_another_order(case, runs, data):
    """Planes do not see each other; counted in its own plane, an index stays what it is."""
    x = plain(case.x())
    batch, channel, spatial = axes_of(case.attributes["layout"], x.ndim)
    attributes = {**case.attributes, "index_layout": "NCHW"}
    attributes["index_axis"] = x.ndim - len(spatial)
    y, indices = pool(runs[0], x, case.kernel_shape, return_indices=True, **attributes)
    for axis in (batch, channel):
        if axis is not None and x.shape[axis]:
            count = x.shape[axis]
            order = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=count))
            taken = pool(
                runs[1],
                np.take(x, order, axis),
                case.kernel_shape,
                return_indices=True,
                **attributes,
            )
            cases.assert_same(taken[0], np.take(y, order, axis))
            cases.assert_same(taken[1], np.take(indices, order, axis), "indices")


@settings(max_examples=40)
@given(case=pools(), runs=st.tuples(RUNS, RUNS, RUNS), part=st.integers(0, 3))
def test_a_batch_in_two_parts(case, runs, part):
    x = plain(case.x())
    batch, *_ = axes_of(case.attributes["layout"], x.ndim)
    assume(batch is not None)
    attributes = {**case.attributes, "index_axis": 0}
    y, indices = pool(runs[0], x, case.kernel_shape, return_indices=True, **attributes)
    part = min(part, len(x))
    pieces = [
        pool(run, piece, case.kernel_shape, return_indices=True, **attributes)
        for run, piece in ((runs[1], x[:part]), (runs[2], x[part:]))
    ]
    cases.assert_same(np.concatenate([piece[0] for piece in pieces]), y)
    moved = np.where(pieces[1][1] < 0, -1, pieces[1][1] + x[:part].size)
    joined = np.concatenate([pieces[0][1], moved])
    cases.assert_same(joined.astype(indices.dtype), indices, "indices")


@settings(max_examples=40)
@given(case=pools(), runs=st.tuples(RUNS, RUNS))
def test_axes_in_another_order(case, runs):
    """Spatial axes change places together with their windows."""
    x = plain(case.x())
    *_, spatial = axes_of(case.attributes["layout"], x.ndim)
    attributes = explicit(case)
    y = pool(runs[0], x, case.kernel_shape, **attributes)
    count = len(spatial)
    order = list(range(x.ndim))
    order[spatial[0] : spatial[-1] + 1] = spatial[::-1]
    attributes["strides"] = attributes["strides"][::-1]
    attributes["dilations"] = attributes["dilations"][::-1]
    begins, ends = attributes["pads"][:count], attributes["pads"][count:]
    attributes["pads"] = begins[::-1] + ends[::-1]
    turned = pool(runs[1], x.transpose(order).copy(), case.kernel_shape[::-1], **attributes)
    cases.assert_same(turned, y.transpose(order))


@settings(max_examples=40)
@given(case=pools(), runs=st.tuples(RUNS, RUNS))
def test_mirrored(case, runs):
    """With the padding at the other sides; where the windows end with it, none is left out."""
    x = plain(case.x())
    *_, spatial = axes_of(case.attributes["layout"], x.ndim)
    attributes = explicit(case)
    y = pool(runs[0], x, case.kernel_shape, **attributes)
    count = len(spatial)
    attributes["pads"] = attributes["pads"][count:] + attributes["pads"][:count]
    mirrored = pool(runs[1], np.flip(x, spatial), case.kernel_shape, **attributes)
    cases.assert_same(mirrored, np.flip(y, spatial))


@settings(max_examples=40)
@given(case=pools(), runs=st.tuples(RUNS, RUNS), data=st.data())
def test_padding_is_the_lowest_value(case, runs, data):
    """Any part of the padding may be elements instead. (Where NaN lose, those would win.)"""
    x = plain(case.x())
    *_, spatial = axes_of(case.attributes["layout"], x.ndim)
    attributes = explicit(case) | {"nan": "propagate"}
    y = pool(runs[0], x, case.kernel_shape, **attributes)
    taken = [data.draw(st.integers(0, pad)) for pad in attributes["pads"]]
    count = len(spatial)
    width = [(0, 0)] * x.ndim
    for place, begin, end in zip(spatial, taken[:count], taken[count:], strict=True):
        width[place] = begin, end
    wider = np.pad(x, width, constant_values=cases.lowest(case.dtype))
    attributes["pads"] = [pad - less for pad, less in zip(attributes["pads"], taken, strict=True)]
    cases.assert_same(pool(runs[1], wider, case.kernel_shape, **attributes), y)


@settings(max_examples=40)
@given(case=pools(), runs=st.tuples(RUNS, RUNS), data=st.data())
def test_some_of_the_windows(case, runs, data):
    """The elements under neighbouring windows, alone, give those outputs."""
    x = plain(case.x())
    *_, spatial = axes_of(case.attributes["layout"], x.ndim)
    attributes = explicit(case) | {"pads": 0}
    sizes = [x.shape[place] for place in spatial]
    extents = [
        (k - 1) * d + 1 for k, d in zip(case.kernel_shape, attributes["dilations"], strict=True)
    ]
    assume(all(size >= extent for size, extent in zip(sizes, extents, strict=True)))
    y = pool(runs[0], x, case.kernel_shape, **attributes)
    under, outputs = [slice(None)] * x.ndim, [slice(None)] * x.ndim
    for place, extent, stride in zip(spatial, extents, attributes["strides"], strict=True):
        first = data.draw(st.integers(0, y.shape[place] - 1))
        last = data.draw(st.integers(first, y.shape[place] - 1))
        outputs[place] = slice(first, last + 1)
        under[place] = slice(first * stride, last * stride + extent)
    part = pool(runs[1], x[tuple(under)], case.kernel_shape, **attributes)
    cases.assert_same(part, y[tuple(outputs)])


# ----------------------------------------------------------------------------------- of which type

# Order-preserving maps into wider types: what is the maximum before is the maximum after.
WIDER = [
    *[("int8", wider) for wider in ("int16", "int32", "int64", "float16", "float32")],
    *[("uint8", wider) for wider in ("uint16", "int16", "uint32", "float32", "uint64")],
    *[("int16", "int32"), ("uint16", "int32"), ("int32", "int64"), ("int32", "float64")],
    *[("uint32", "uint64"), ("float16", "float32"), ("float32", "float64"), ("bool", "uint8")],
    *([("bfloat16", "float32")] if cases.ml_dtypes else []),
]


@pytest.mark.parametrize(("narrow", "wide"), WIDER)
@settings(max_examples=12)
@given(data=st.data(), runs=st.tuples(RUNS, RUNS))
def test_wider_types(narrow, wide, data, runs):
    case = data.draw(pools(dtypes=[narrow]))
    attributes = {**case.attributes, "return_indices": True}
    x = plain(case.x())
    with np.errstate(invalid="ignore"):  # signalling NaN
        wider = x.astype(cases.dtype(wide))
    y, indices = pool(runs[0], x, case.kernel_shape, **attributes)
    wider_y, wider_indices = pool(runs[1], wider, case.kernel_shape, **attributes)
    cases.assert_same(wider_indices, indices, "indices")
    found = indices >= 0  # a window without elements holds the lowest value of its dtype
    with np.errstate(invalid="ignore"):
        cases.assert_same(wider_y[found], y[found].astype(wider.dtype))


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@settings(max_examples=12)
@given(data=st.data(), runs=st.tuples(RUNS, RUNS))
def test_the_other_sign_of_integers(bits, data, runs):
    """Signed and unsigned integers have one order, half of their range apart."""
    case = data.draw(pools(dtypes=[f"int{bits}"]))
    attributes = {**case.attributes, "return_indices": True}
    x = plain(case.x())
    half = np.array(1 << (bits - 1), f"uint{bits}")
    y, indices = pool(runs[0], x, case.kernel_shape, **attributes)
    other = pool(runs[1], x.view(f"uint{bits}") ^ half, case.kernel_shape, **attributes)
    cases.assert_same(other[0], y.view(f"uint{bits}") ^ half)
    cases.assert_same(other[1], indices, "indices")


# ------------------------------------------------------------------------------- what a maximum is


@settings(max_examples=40)
@given(case=pools(), runs=st.tuples(RUNS, RUNS, RUNS))
def test_the_maximum_of_two_arrays(case, runs):
    """Taken before or after."""
    attributes = {**case.attributes, "nan": "propagate"}
    x = plain(case.x())
    other = plain(dataclasses.replace(case, seed=case.seed + 1).x())
    with np.errstate(invalid="ignore"):
        after = np.maximum(
            pool(runs[0], x, case.kernel_shape, **attributes),
            pool(runs[1], other, case.kernel_shape, **attributes),
        )
        before = pool(runs[2], np.maximum(x, other), case.kernel_shape, **attributes)
    cases.assert_same(before, after)


@settings(max_examples=40)
@given(case=pools(), runs=st.tuples(RUNS, RUNS))
def test_a_value_is_where_its_index_says(case, runs):
    """And an index is the first place of its value: those before it in the window are less."""
    attributes = {**case.attributes, "index_axis": 0, "storage_order": 0}
    x = plain(case.x())
    if attributes["layout"].endswith("C"):
        attributes["index_layout"] = "NHWC"
    y, indices = pool(runs[0], x, case.kernel_shape, return_indices=True, **attributes)
    cases.assert_same(x.reshape(-1)[indices[indices >= 0]], y[indices >= 0])
    with np.errstate(invalid="ignore"):
        lowest = y[indices < 0] == cases.lowest(case.dtype)
    assert lowest.all()
    # Lowered, it changes those windows only that it was the first maximum of. (Where NaN lose, the
    # lowest number wins against nothing but NaN.)
    assume(attributes["nan"] == "propagate" and indices.size and indices.max() >= 0)
    place = int(indices.max())
    less = x.copy()
    less.reshape(-1)[place] = cases.lowest(case.dtype)
    again = pool(runs[1], less, case.kernel_shape, return_indices=True, **attributes)
    elsewhere = indices != place
    cases.assert_same(again[0][elsewhere], y[elsewhere])
    cases.assert_same(again[1][elsewhere], indices[elsewhere], "indices")


def rows(name, length, seed):
    return cases.values((3, length), name, "bits", seed)


@settings(max_examples=60)
@given(
    runs=st.tuples(RUNS, RUNS, RUNS),
    name=st.sampled_from(NUMBERS),
    kernels=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    strides=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    more=st.integers(0, 80),
    seed=st.integers(0, 99),
)
def test_windows_of_windows(runs, name, kernels, strides, more, seed):
    """Stride 1: a window of k1 and then one of k2 are one of k1 + k2 - 1; strides multiply."""
    (first, second), (step, next_step) = kernels, strides
    assume(step <= first)  # else some elements are under no window
    whole = first + (second - 1) * step
    x = rows(name, whole + more, seed)
    one = pool(runs[0], x, whole, strides=step * next_step, layout="CW")
    two = pool(runs[1], x, first, strides=step, layout="CW")
    cases.assert_same(pool(runs[2], two, second, strides=next_step, layout="CW"), one)
    # A dilated window over windows as long as its gaps.
    spread = pool(runs[1], x, second, dilations=step, layout="CW")
    filled = pool(runs[2], spread, step, layout="CW") if spread.shape[1] >= step else None
    if filled is not None:
        cases.assert_same(filled, pool(runs[0], x, second * step, layout="CW"))


@settings(max_examples=40)
@given(
    runs=st.tuples(RUNS, RUNS),
    name=st.sampled_from(cases.INTEGER_NAMES),
    radii=st.tuples(st.integers(0, 12), st.integers(0, 12)),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 30), st.integers(1, 70)),
    seed=st.integers(0, 99),
)
def test_closing_twice_is_closing_once(runs, name, radii, shape, seed):
    """Maxima of a centred window, then minima (of the complement the maxima): idempotent."""
    x = cases.values(shape, name, "bits", seed)
    attributes = {"pads": radii, "layout": "CHW"}
    kernel_shape = [2 * radius + 1 for radius in radii]

    def closed(run, x):
        return ~pool(run, ~pool(run, x, kernel_shape, **attributes), kernel_shape, **attributes)

    once = closed(runs[0], x)
    cases.assert_same(closed(runs[1], once), once)
    assert (once >= x).all()
    # No window: the array itself. A window over everything, once or twice: its maximum.
    cases.assert_same(pool(runs[0], x, 1, layout="CHW"), x)
    everywhere = {"pads": [size - 1 for size in shape[1:]], "layout": "CHW"}
    whole = [2 * size - 1 for size in shape[1:]]
    largest = np.broadcast_to(x.max((1, 2), keepdims=True), shape)
    cases.assert_same(pool(runs[1], x, whole, **everywhere), largest)


# --------------------------------------------------------------------------------------- unpooling


@settings(max_examples=60)
@given(
    case=unpools(),
    runs=st.tuples(RUNS, RUNS),
    how=st.sampled_from([how for how in cases.ARRANGEMENTS if how != "broadcast"]),
    offset=st.integers(0, 63),
)
def test_arrangement_alignment_build_and_threads_of_unpooling(case, runs, how, offset):
    x, indices = plain(case.x()), case.indices()
    y = unpool(runs[0], x, indices, case.kernel_shape, **case.attributes)
    for arrays in (
        (cases.arranged(x, how), cases.arranged(indices, how)),
        (at_address(x, offset), at_address(indices, 63 - offset)),
    ):
        again = unpool(runs[1], *arrays, case.kernel_shape, **case.attributes)
        cases.assert_same(plain(again), y)
    out = at_address(np.ones_like(y), offset)
    unpool(runs[1], x, indices, case.kernel_shape, out=out, **case.attributes)
    cases.assert_same(out, y)


@settings(max_examples=40)
@given(case=unpools(), runs=st.tuples(RUNS, RUNS))
def test_layouts_of_unpooling(case, runs):
    attributes = {**case.attributes, "index_layout": "NCHW"}
    layout = attributes["layout"]
    batch, channel, _ = axes_of(layout, len(case.shape))
    assume(channel is not None and layout.endswith("C"))
    first = 0 if batch is None else 1
    x, indices = plain(case.x()), case.indices()
    y = unpool(runs[0], x, indices, case.kernel_shape, **attributes)
    names = layout.replace("N", "").replace("C", "")
    attributes["layout"] = "NCHW" if layout == "NHWC" else "N" * first + "C" + names
    if attributes["output_shape"] is not None:
        shape = list(attributes["output_shape"])
        shape.insert(first, shape.pop())
        attributes["output_shape"] = shape
    moved = [np.moveaxis(a, -1, first).copy() for a in (x, indices)]
    moved = unpool(runs[1], *moved, case.kernel_shape, **attributes)
    cases.assert_same(np.moveaxis(moved, first, -1), y)


@settings(max_examples=40)
@given(
    case=pools(dtypes=["uint8", "float32", "int64", "float16"], kinds=["ties"]),
    runs=st.tuples(RUNS, RUNS, RUNS),
)
def test_maxima_go_back_to_where_they_were(case, runs):
    """And pooling them again finds them, where windows share nothing and none is below zero."""
    x = plain(case.x())
    *_, spatial = axes_of(case.attributes["layout"], x.ndim)
    kernel = [min(k, x.shape[place]) for k, place in zip(case.kernel_shape, spatial, strict=True)]
    assume(x.size and math.prod(kernel))
    x = np.maximum(x, x.dtype.type(0))
    attributes = {"strides": kernel, "layout": case.attributes["layout"]}
    y, indices = pool(runs[0], x, kernel, return_indices=True, **attributes)
    back = unpool(runs[1], y, indices, kernel, output_shape=x.shape, **attributes)
    assert np.isin(back.reshape(-1), [0, *np.unique(y)]).all()
    cases.assert_same(np.maximum(back, x), x)
    cases.assert_same(pool(runs[2], back, kernel, **attributes), y)
