"""Plans of tiles read only their input and give their part of the whole, indices included."""

import dataclasses
import pickle
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cases
import fastpool
from configurations.strategies import examples, hostile_pools, pools
from fastpool._planning import parts
from fastpool._planning.geometry import AdaptiveAxis, Axis
from fastpool._plans import make_plan
from fastpool._running import builds as running


def boxes(cuts):
    """The boxes between cuts along each axis."""
    return product(*([slice(*ends) for ends in pairwise(line)] for line in cuts))


def assert_tiles_are_the_whole(plan, x, cuts):
    whole = plan(x)
    for outputs in boxes(cuts):
        part, read, write = plan.tile(outputs)
        assert write == outputs and part.input_shape == x[read].shape
        for got, expected in zip(part(x[read]), whole, strict=True):
            cases.assert_same(got, expected[write], f"{plan} {outputs}")


@st.composite
def cut_pools(draw):
    """A pooling of any geometry, and where to cut each axis of its output."""
    case = draw(st.one_of(pools(), hostile_pools()))
    attributes = {"return_indices": True, **case.attributes}
    plan = make_plan(case.shape, cases.dtype(case.dtype), case.kernel_shape, **attributes)
    cuts = [
        [0, *sorted(draw(st.lists(st.integers(0, extent), max_size=2))), extent]
        for extent in plan.output_shape
    ]
    return case, plan, cuts


@examples(200)
@given(cut_pools(), st.sampled_from(cases.BUILDS))
def test_tiles_of_any_geometry(cut, build):
    case, plan, cuts = cut
    with running.using(build):
        assert_tiles_are_the_whole(plan, case.x(), cuts)


WINDOWS = {
    "halves": {"kernel_shape": 2, "strides": 2},
    "3 x 3": {"kernel_shape": 3, "pads": 1},
    "3 x 3 at stride 2": {"kernel_shape": 3, "strides": 2, "pads": 1},
    "dilated": {"kernel_shape": 3, "dilations": 5, "pads": 6},
    "nine taps": {"kernel_shape": 9, "strides": 4, "ceil_mode": True},
    "long": {"kernel_shape": 40, "strides": 7, "pads": 45},
}


ARRAYS = [
    ("HW", (99, 170), {}),
    ("CHW", (3, 60, 75), {"index_axis": 1, "storage_order": 1, "index_dtype": "int32"}),
    ("HWC", (60, 75, 3), {}),
    ("HWC", (60, 75, 20), {"index_layout": "NHWC"}),
    ("DHW", (9, 30, 40), {}),
]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("layout, shape, convention", ARRAYS)
def test_ways_through_the_kernels(layout, shape, convention, window, isa):
    """Arrays that are large enough for every strategy."""
    attributes = {**WINDOWS[window], **convention, "layout": layout, "return_indices": True}
    for name in ("uint8", "float32", "float16"):
        plan = fastpool.plan_max_pool(shape, name, **attributes)
        cuts = [[0, extent // 3, extent] for extent in plan.output_shape]
        assert_tiles_are_the_whole(plan, cases.values(shape, name, "ties", 3), cuts)


# Means: what padding counts must not change with the place of a tile.
AVERAGES = {
    "exclude": {"pads": 1},
    "include": {"pads": (2, 1, 0, 3), "count_include_pad": True},
    "SAME, include": {"auto_pad": "SAME_LOWER", "count_include_pad": True},
    "beyond dropped": {"pads": 1, "strides": 2, "ceil_mode": True, "count_include_pad": True},
    "beyond counted": {
        **{"pads": 1, "strides": 2, "ceil_mode": True},
        **{"count_include_pad": True, "beyond": "count"},
    },
    "empty windows": {"pads": 7, "strides": 2, "ceil_mode": True, "ceil_rule": "keep"},
    "dilated": {"pads": 4, "dilations": 3, "strides": 3, "count_include_pad": True},
    "sums": {"pads": 1, "divisor": 2},
}


@pytest.mark.parametrize("window", AVERAGES)
@pytest.mark.parametrize("name", ["float32", "int8"])
def test_tiles_of_means(window, name):
    attributes = {**AVERAGES[window], "layout": "HW", "result_dtype": "float64"}
    plan = fastpool.plan_avg_pool((9, 8), name, 3, **attributes)
    x = cases.values(plan.input_shape, name, "bits", 1)
    whole = plan(x)
    cuts = [[slice(a, b) for a, b in pairwise((0, 1, 3, n // 2, n))] for n in whole.shape]
    for outputs in (*product(*cuts), np.s_[:2, 1:], np.s_[1:, :-1], np.s_[2:2]):
        part, read, write = plan.tile(outputs)
        assert pickle.loads(pickle.dumps(part)) == part
        cases.assert_same(part(x[read]), whole[write], f"{plan} {outputs}")


@pytest.mark.parametrize("layout, shape", [("HW", (11, 7)), ("NHWC", (2, 5, 9, 3))])
@pytest.mark.parametrize("size", [1, 3, (5, 2), (13, 10), (4, None), 0])
def test_tiles_of_adaptive_windows(layout, shape, size):
    plan = fastpool.plan_adaptive_avg_pool(shape, "int16", size, layout=layout)
    x = cases.values(shape, "int16", "ties", 2)
    whole = plan(x)
    for outputs in boxes([[0, extent // 3, extent // 2, extent] for extent in whole.shape]):
        part, read, write = plan.tile(outputs)
        assert pickle.loads(pickle.dumps(part)) == part
        cases.assert_same(part(x[read]), whole[write], f"{plan} {outputs}")
        again, inner, _ = part.tile(np.s_[:1, 1:])
        cases.assert_same(again(x[read][inner]), whole[write][:1, 1:])


@pytest.mark.parametrize("layout, shape", [("HW", (11, 7)), ("NHWC", (2, 5, 9, 3))])
@pytest.mark.parametrize("size", [1, 3, (5, 2), (13, 10), (4, None), 0])
def test_tiles_of_adaptive_maxima(layout, shape, size):
    plan = fastpool.plan_adaptive_max_pool(shape, "int16", size, layout=layout, return_indices=True)
    cuts = [[0, extent // 3, extent // 2, extent] for extent in plan.output_shape]
    assert_tiles_are_the_whole(plan, cases.values(shape, "int16", "ties", 2), cuts)


def test_a_tile_of_a_tile():
    plan = fastpool.plan_max_pool(
        (2, 3, 20, 30), "float32", 4, strides=3, pads=5, return_indices=True
    )
    x = cases.values(plan.input_shape, "float32", "ties", 0)
    outer, outer_read, outer_write = plan.tile(np.s_[1:2, :, 2:8, 1:])
    inner, read, write = pickle.loads(pickle.dumps(outer.tile(np.s_[:, 1:3, 0:4, 3:9])))
    for got, expected in zip(inner(x[outer_read][read]), plan(x), strict=True):
        cases.assert_same(got, expected[outer_write][write])


def test_slices_are_those_of_python():
    plan = fastpool.plan_max_pool((10, 12), "uint8", 2, layout="HW")
    for outputs in (np.s_[-3:], np.s_[:, -4:-1], np.s_[5:2], np.s_[3:99, 4:]):
        assert plan.tile(outputs).plan.output_shape == np.zeros(plan.output_shape)[outputs].shape
    assert plan.tile(()).plan == plan


@pytest.mark.parametrize(
    "outputs, error, message",
    [
        (3, TypeError, r"outputs\[0\]: expected a slice, got 3"),
        ((slice(2), None), TypeError, r"outputs\[1\]: expected a slice, got None"),
        (np.s_[:, ::2], ValueError, r"outputs\[1\]: expected a step of 1, got 2"),
        (np.s_[:, :, :], ValueError, r"outputs: expected at most 2 slices, got 3"),
        ((slice(0.5, 2),), TypeError, "slice indices must be integers"),
    ],
)
def test_bad_outputs(outputs, error, message):
    plan = fastpool.plan_max_pool((10, 12), "uint8", 2, layout="HW")
    with pytest.raises(error, match=message):
        plan.tile(outputs)


@pytest.mark.parametrize(
    "changes",
    [
        {"index_origin": (0, 1)},
        {"index_origin": (0, -1)},
        {"index_origin": (0,)},
        {"index_shape": (10, 11)},
        {"index_shape": (10, 12, 1), "index_origin": (0, 0, 0)},
    ],
)
def test_a_place_that_is_outside(changes):
    plan = fastpool.plan_max_pool((10, 12), "uint8", 2, layout="HW")
    with pytest.raises(ValueError, match="^plan: indices in index_shape"):
        dataclasses.replace(plan, **changes)


# ------------------------------------------------------------------------------- along one axis


def axes():
    for size, kernel, stride, dilation, begin in product(
        (0, 1, 5, 8), (1, 3), (1, 2, 7), (1, 3), (0, 2, 9)
    ):
        extent = (kernel - 1) * dilation + 1
        for output in (1, 4):
            end = (output - 1) * stride + extent - size - begin
            if end >= 0 or output == 4:
                yield Axis(size, output, kernel, stride, dilation, begin, max(end, 0))


def adaptive_axes():
    """Axes of adaptive pooling, and parts of them."""
    for size, output in product((1, 2, 5, 8, 11), (1, 2, 3, 7, 13)):
        if size % output:
            whole = AdaptiveAxis(size, output, size, output)
            yield whole
            for first, stop in ((0, 1), (1, output), (output // 2, output)):
                if first < stop:
                    yield parts.part(whole, first, stop)[1]


def test_adaptive_windows_are_those_of_the_formula():
    for axis in adaptive_axes():
        axis.checked()
        starts = [axis.window(o)[0] for o in range(axis.output)]
        stops = [axis.window(o)[1] for o in range(axis.output)]
        assert starts[0] == 0 and stops[-1] == axis.size
        for o in range(axis.output):
            i, at = axis.first + o, axis.first * axis.of_size // axis.of_output
            assert starts[o] + at == i * axis.of_size // axis.of_output
            assert stops[o] + at == -(-(i + 1) * axis.of_size // axis.of_output)
            assert stops[o] - starts[o] <= axis.kernel
            for count in range(1, axis.output - o + 1):
                assert stops[o + count - 1] - starts[o] <= axis.span(count)
        for place in range(axis.size + 1):
            assert axis.starting_before(place) == sum(start < place for start in starts)
            assert axis.ending_by(place) == sum(stop <= place for stop in stops)


@pytest.mark.parametrize(
    "wrong", [{"size": 4}, {"output": 0}, {"first": 1}, {"first": -1}, {"of_output": 0}]
)
def test_adaptive_axes_that_contradict_themselves(wrong):
    with pytest.raises(ValueError, match="is no axis"):
        AdaptiveAxis(5, 3, 5, 3)._replace(**wrong).checked()


def test_what_is_read_is_what_adaptive_windows_cover():
    for axis in adaptive_axes():
        for first in range(axis.output):
            for stop in range(first + 1, axis.output + 1):
                (low, high), part = parts.part(axis, first, stop)
                windows = [axis.window(o) for o in range(first, stop)]
                assert (low, high) == (windows[0][0], windows[-1][1])
                part.checked()
                shifted = [part.window(o) for o in range(part.output)]
                assert [(a + low, b + low) for a, b in shifted] == windows


def test_what_is_read_is_what_windows_cover():
    for axis in axes():
        for first in range(axis.output):
            for stop in range(first + 1, axis.output + 1):
                (low, high), part = parts.part(axis, first, stop)
                start = first * axis.stride - axis.begin
                last = (stop - 1) * axis.stride - axis.begin + (axis.kernel - 1) * axis.dilation
                assert list(range(low, high)) == [i for i in range(axis.size) if start <= i <= last]
                assert min(part) >= 0 and part.size == high - low
                span = (part.output - 1) * part.stride + (part.kernel - 1) * part.dilation + 1
                assert part.begin + part.size + part.end == span


def test_windows_that_end_by_an_element():
    for axis in axes():
        stops = [o * axis.stride - axis.begin + axis.extent for o in range(axis.output)]
        for place in range(axis.size + 1):
            assert axis.ending_by(place) == sum(stop <= place for stop in stops)


def test_chunks_own_the_windows_that_start_in_them():
    for axis in (*axes(), *adaptive_axes()):
        for chunks in ((axis.size,), (1, axis.size - 1), (axis.size // 2, 0, -(-axis.size // 2))):
            if min(chunks) < 0:
                continue
            ends = parts.owned(axis, chunks)
            assert ends == sorted(ends) and ends[-1] == axis.output
            edges = np.cumsum(chunks)
            for o in range(axis.output):
                owner = sum(end <= o for end in ends)
                adaptive = isinstance(axis, AdaptiveAxis)
                start = axis.window(o)[0] if adaptive else o * axis.stride - axis.begin
                assert owner == min(sum(edge <= start for edge in edges), len(chunks) - 1)


# ----------------------------------------------------------------------------- tiles within bytes


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("max_bytes", [1, 100, 3000, 10**9])
def test_a_grid_is_the_output_in_tiles_that_are_small(max_bytes, reverse):
    plan = fastpool.plan_max_pool(
        (2, 3, 20, 30), "int16", 3, strides=2, pads=1, return_indices=True, index_dtype="int32"
    )
    count = np.zeros(plan.output_shape, int)
    places, sizes = [], []
    for outputs in parts.grid(plan, max_bytes, reverse):
        count[outputs] += 1
        places.append([cut.start for cut in outputs][:: -1 if reverse else 1])
        part = plan.tile(outputs).plan
        sizes.append(2 * np.prod(part.input_shape) + 6 * np.prod(part.output_shape))
    assert (count == 1).all()
    assert places == sorted(places)
    # (a window and its result are 24 bytes)
    assert max(sizes) <= max(max_bytes, 24) and sizes[0] * 3 >= min(max_bytes, sum(sizes)) // 2


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("max_bytes", [1, 100, 3000, 10**9])
@pytest.mark.parametrize(
    "plan",
    [
        fastpool.plan_avg_pool((2, 20, 30), "int8", 3, layout="CHW", result_dtype="float64"),
        fastpool.plan_adaptive_avg_pool((2, 20, 30), "uint8", (7, 11), layout="CHW"),
        fastpool.plan_global_avg_pool((20, 4, 5), "uint8", layout="CHW"),
    ],
    ids=["average", "adaptive", "global"],
)
def test_grids_of_means(plan, max_bytes, reverse):
    """A tile with more than one output is within the limit."""
    count = np.zeros(plan.output_shape, int)
    for outputs in parts.grid(plan, max_bytes, reverse):
        count[outputs] += 1
        part = plan.tile(outputs).plan
        size = np.prod(part.input_shape) + plan.output_bytes * np.prod(part.output_shape)
        assert size <= max_bytes or np.prod(part.output_shape) == 1
    assert (count == 1).all()


def test_a_grid_of_nothing():
    plan = fastpool.plan_max_pool((0, 3, 20, 30), "int16", 3)
    assert list(parts.grid(plan, 100)) == []
