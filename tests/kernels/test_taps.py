"""Every branch of strategy "taps" (small windows with indices) gives the right values and indices.

The data are the codes and tables of codes.py. Codes of equal values are one class, named by the
smallest of them. The greatest class of a window and its first position come from running maxima of
keys.
"""

from itertools import count, product

import numpy as np
import pytest

import cases
import fastpool
from codes import (
    CODES,
    EMBEDDED,
    EVERY,
    embedded,
    geometry,
    lanes,
    random_codes,
    tables,
    with_planes,
)
from codes import oracle as greatest_codes
from fastpool import _reference
from fastpool._planning.geometry import layout as order_of
from fastpool._running import builds as running
from fastpool._running import prepare
from fastpool._running.fewer_axes import FewerAxes
from fastpool._running.work import make_work, problem_of

INDEXING = [
    {},
    {"index_dtype": "int32"},
    {"storage_order": 1},
    {"index_axis": 2},
    {"storage_order": 1, "index_axis": 1, "index_dtype": "int32"},
    {"index_axis": -1, "index_dtype": "int32"},
]
NHWC_INDEXING = [*INDEXING[:4], {"index_layout": "NHWC"}, {"index_layout": "NHWC", "index_axis": 1}]


def meets(size, kernel, pads, dilation, stride):
    """Has every window an element?"""
    starts = np.arange(-pads[0], size + pads[1] - (kernel - 1) * dilation, stride)
    taps = starts[:, None] + np.arange(kernel) * dilation
    return len(starts) > 0 and ((taps >= 0) & (taps < size)).any(1).all()


def turns(rows, cols, leads, n):
    """Every window along columns in every width, each with the next window along rows."""
    turn = count()
    for out, (kernel, *rest) in product([n, 2 * n + 1, 1, n + 1, 3, n - 1, 2], cols):
        pads, dilation, stride = rest
        size = (out - 1) * stride + (kernel - 1) * dilation + 1 - sum(pads)
        if meets(size, kernel, *rest):
            i = next(turn)
            yield geometry(rows[i % len(rows)], (size, kernel, *rest), leads[i % len(leads)])


def few(n):
    """slide_few_rows: three or five rows at stride 1."""
    for kernel in (3, 5):
        far, half = kernel - 1, kernel // 2
        pads = [(0, 0), (half, half), (far, 0), (0, far), (1, far)]
        windows = [
            (kernel, (d * begin + (d > 1 and begin % 2), d * end), d, 1)
            for d in (1, 2, 3)
            for begin, end in pads
            if d * begin + (d > 1 and begin % 2) <= d * far
        ]
        sizes = [7, 12, 5, 1, 2, 3, 30]
        rows = [(size, *window) for size in sizes for window in windows if meets(size, *window)]
        cols = windows[:: 2 if kernel == 3 else 3]
        yield from turns(rows, cols, [None], n)


def slide(n):
    """slide_rows: other windows that share rows."""
    rows = [(8, 2, (0, 0), 1, 1), (9, 4, (3, 1), 2, 1), (20, 7, (3, 3), 1, 1), (6, 5, (2, 2), 1, 2)]
    rows += [(40, 8, (3, 9), 4, 1), (9, 7, (6, 6), 1, 3), (33, 2, (31, 7), 31, 1)]
    rows += [(9, 4, (1, 3), 1, 3), (2, 6, (5, 4), 1, 1), (9, 4, (1, 0), 2, 1), (5, 4, (6, 7), 1, 2)]
    rows += [(20, 16, (15, 9), 1, 1), (3, 2, (4, 4), 3, 1), (12, 4, (7, 8), 3, 1)]
    cols = [(2, (1, 1), 1, 1), (1, (0, 0), 1, 1), (4, (3, 0), 1, 1), (7, (2, 6), 2, 1)]
    cols += [(8, (0, 3), 1, 1), (2, (2, 1), 3, 1), (3, (2, 1), 1, 2), (5, (2, 2), 1, 2)]
    cols += [(2, (0, 0), 1, 2), (8, (7, 3), 1, 2), (16, (8, 7), 1, 1), (4, (0, 1), 1, 1)]
    cols += [(4, (0, 0), 1, 4)]  # (never slide: all rows of every window are compared)
    yield from turns(rows, cols, [None], n)


def column(n):
    """give_column: windows that share no rows, or few, and leading axes."""
    rows = [(6, 2, (0, 0), 1, 2), (9, 3, (1, 1), 1, 2), (4, 1, (0, 0), 1, 1), (1, 1, (0, 0), 1, 1)]
    rows += [(7, 2, (2, 3), 1, 2), (10, 3, (3, 2), 1, 3), (8, 4, (0, 0), 1, 4)]
    rows += [(9, 3, (0, 3), 2, 2), (9, 2, (3, 0), 3, 3), (5, 1, (2, 2), 1, 3)]
    cols = [(2, (0, 0), 1, 2), (3, (1, 1), 1, 2), (4, (0, 0), 1, 4), (3, (2, 0), 1, 2)]
    cols += [(2, (1, 0), 1, 2), (4, (3, 3), 1, 4), (5, (2, 4), 1, 1), (3, (4, 2), 2, 1)]
    cols += [(4, (2, 1), 1, 2), (1, (0, 0), 1, 1), (3, (0, 2), 1, 2), (2, (0, 0), 1, 1)]
    leads = [None, (5, 2, 1), (1, 1, 0), None, (3, 3, 1)]
    yield from turns(rows, cols, leads, n)
    yield (6, 8, 4 * n), (3, 2, 2), {"strides": (3, 2, 2), "dilations": (2, 1, 1)}
    yield (5, 9, n), (2, 3, 3), {"dilations": (3, 2, 1), "pads": (2, 2, 1) * 2}
    yield (5, 9, 4 * n + 4), (2, 3, 4), {"strides": (1, 3, 4), "pads": (1, 1, 0) * 2}
    yield (3, 2, 5, n), (2, 1, 3, 3), {"pads": (1, 0, 1, 1) * 2, "strides": (1, 1, 2, 1)}
    yield (3, 4, 3, 2 * n), (2, 2, 1, 2), {"dilations": (2, 1, 1, 1), "strides": 2}
    yield (3, n), (1, 33), {"pads": (0, 20, 0, 30)}
    yield (2 * n + 1,), (3,), {"pads": 1}
    yield (n,), (2,), {"strides": 2, "pads": (1, 0)}


BRANCHES = {branch.__name__: branch for branch in (few, slide, column)}
# Channels last: sizes, kernel, attributes of windows that are taken at once.
PIXELS = [
    ((6, 7), (2, 2), {"strides": 2}),
    ((7, 6), (3, 3), {"strides": 2, "pads": 1}),
    ((5, 5), (3, 3), {"pads": (2, 0, 1, 2)}),
    ((4, 7), (2, 3), {"pads": (1, 2, 0, 1), "strides": (1, 3)}),
    ((7, 3), (3, 2), {"pads": (3, 2, 5, 2), "strides": 2}),  # windows without elements
    ((5, 6), (3, 3), {"dilations": (2, 3), "pads": (3, 4, 2, 1), "strides": 2}),
    ((1, 9), (1, 3), {"strides": (1, 2), "pads": (0, 1, 0, 1)}),
    ((3, 4, 5), (2, 2, 2), {"strides": 2, "pads": (1, 0, 1, 0, 0, 0)}),
    ((4, 3, 3), (3, 3, 3), {"strides": 2, "pads": 1}),
    ((5, 3, 4), (2, 1, 3), {"dilations": (2, 1, 1), "strides": (2, 1, 2), "pads": (4, 0, 0) * 2}),
]


def geometries(branch, isa, name):
    """Return the geometries of a branch with numbers of images and channels."""
    return with_planes(BRANCHES[branch](lanes(isa, name, 2)), 6000)


def oracle(classes, kernel, **attributes):
    """The greatest class of every window and its place in the plane, row-major; -1 without any."""
    plane = int(np.prod(classes.shape[2:]))
    places = np.arange(plane)[::-1].reshape(classes.shape[2:])  # the greater, the earlier
    keys = greatest_codes(classes.astype(np.int32) * plane + places, kernel, **attributes)
    return keys // plane, np.where(keys < 0, -1, plane - 1 - keys % plane)


def merged(values):
    """The class of every code of a table."""
    before, after = values[:-1], values[1:]
    with np.errstate(invalid="ignore"):  # signalling NaN
        same = (after == before) | ((after != after) & (before != before))
    starts = np.append(0, np.where(same, 0, np.arange(1, len(values))))
    return np.maximum.accumulate(starts)[:CODES]


def indices_of(places, shape, layout, index_dtype="int64", **numbering):
    """Places in planes as attributes ask for them; `shape` is that of x in `layout`."""
    given = {"storage_order": 0, "index_axis": 0, "index_layout": "NCHW", **numbering}
    numbers = _reference.maximum.numbers_of(shape, order_of(layout, shape), **given)
    numbers = numbers.reshape(*places.shape[:2], -1)
    found = np.take_along_axis(numbers, places.reshape(*places.shape[:2], -1).clip(0), -1)
    return np.where(places < 0, -1, found.reshape(places.shape)).astype(index_dtype)


def arranged(array, layout):
    """Channels first as the layout has it."""
    return np.ascontiguousarray(np.moveaxis(array, 1, -1)) if layout.endswith("C") else array


def pooled(codes, table, kernel, layout, indexing, **attributes):
    """x in the layout, and the values and indices that are right."""
    x = arranged(table[codes], layout)
    greatest, places = oracle(merged(table)[codes], kernel, **attributes)
    indices = indices_of(places, x.shape, layout, **indexing)
    return x, arranged(table[greatest], layout), arranged(indices, layout)


def planned(shape, name, kernel, isa, strategy="taps", **attributes):
    """Return a plan of that strategy that has run, with indices."""
    dtype = cases.dtype(name)
    plan = fastpool.plan_max_pool(shape, dtype, kernel, return_indices=True, **attributes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FASTPOOL_STRATEGY", "-one_window,-planes_as_pixels,-composites")
        patch.setattr(prepare, "without_single_axes", lambda plan, _: FewerAxes(plan))
        patch.setattr(prepare, "with_fewer_axes", lambda whole, *_: whole)
        plan(np.zeros(shape, dtype))
    found = [strategy]
    if max(kernel) > 8 and running.builds()[isa].VECTOR_BYTES < 64:
        found.append("pairs")  # too many for 16 registers, where they slide
    assert plan._prepared.pooling.strategy in found, (shape, kernel, attributes)
    return plan


def check(plan, x, y, indices, what, **out):
    got_y, got_indices = plan(x, **out)
    cases.assert_same(got_y, y, f"{what}, values")
    cases.assert_same(got_indices, indices, f"{what}, indices")


@pytest.mark.parametrize("branch", BRANCHES)
def test_the_oracle(branch):
    for i, (sizes, kernel, attributes) in enumerate(BRANCHES[branch](4)):
        codes = random_codes((2, 2, *sizes), i)
        table = tables("float32")[i % 6]
        layout = ("NHWC", "NCHW")[i % 2]
        indexing = (INDEXING if i % 2 else NHWC_INDEXING)[i % 5]
        x, *expected = pooled(codes, table[0], kernel, layout, indexing, **attributes)
        more = {"layout": layout, "nan": table[1], **indexing, **attributes}
        found = _reference.max_pool(x, kernel, return_indices=True, **more)
        for got, answer in zip(found, expected, strict=True):
            cases.assert_same(got, answer, f"{sizes}, {kernel}, {more}")


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
@pytest.mark.parametrize("branch", BRANCHES)
def test_any_geometry(branch, name, isa):
    every = tables(name)
    for i, (shape, kernel, attributes) in enumerate(geometries(branch, isa, name)):
        if name not in EVERY and (i + cases.DTYPE_NAMES.index(name)) % 5:
            continue
        codes, indexing = random_codes(shape, i), INDEXING[i % 6]
        for values, nan in (every[i % len(every)], every[(i + 1) % len(every)]):
            more = {"nan": nan, "num_threads": 3 if i % 8 == 5 else 1, **indexing, **attributes}
            plan = planned(shape, name, kernel, isa, **more)
            x, *expected = pooled(codes, values, kernel, plan.layout, indexing, **attributes)
            check(plan, x, *expected, f"{shape}, {kernel}, {more}")


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_channels_last(name, isa):
    every, n, turn = tables(name), lanes(isa, name, 2), count()
    for channels, (sizes, kernel, attributes) in product(
        [2, 3, n - 1, n, n + 1, 4 * n + 1], PIXELS
    ):
        i = next(turn)
        if name not in EVERY and (i + cases.DTYPE_NAMES.index(name)) % 5:
            continue
        codes = random_codes((1 + i % 2, channels, *sizes), i)
        indexing = NHWC_INDEXING[i // 2 % 6]
        layout, (values, nan) = "NHWC", every[i % len(every)]
        more = {"layout": layout, "nan": nan, "num_threads": 1 + i % 3, **indexing, **attributes}
        x, *expected = pooled(codes, values, kernel, layout, indexing, **attributes)
        check(
            planned(x.shape, name, kernel, isa, **more),
            x,
            *expected,
            f"{x.shape}, {kernel}, {more}",
        )


# Planes of more than a tile, and positions as far apart as 16 bits hold, or one farther.
LARGE = [
    ((2, 1, 150, 300), (3, 3), {"pads": 1}, {}, "taps"),
    ((1, 2, 150, 300), (5, 5), {"pads": 4, "dilations": 2}, {}, "taps"),
    ((1, 1, 300, 301), (2, 2), {"strides": 2}, {}, "taps"),
    ((1, 1, 300, 301), (3, 3), {"strides": 2, "pads": 1}, {"storage_order": 1}, "taps"),
    ((1, 1, 200, 200), (7, 7), {"pads": 3}, {}, "taps"),
    ((1, 2, 4, 10011), (3, 4), {"pads": (2, 3, 0, 1)}, {}, "taps"),
    ((1, 1, 1, 30011), (1, 5), {"pads": (0, 4, 0, 4)}, {}, "taps"),
    ((1, 1, 1, 60011), (1, 4), {"strides": (1, 4)}, {}, "taps"),
    ((2, 1, 9, 40, 41), (3, 2, 2), {"strides": (1, 2, 2), "pads": (1, 0, 0) * 2}, {}, "taps"),
    ((1, 1, 4, 16382), (3, 3), {}, {}, "taps"),
    ((1, 1, 4, 16383), (3, 3), {}, {}, {2: "pairs"}),
    ((1, 1, 16382, 4), (3, 3), {"pads": 2}, {"storage_order": 1}, "taps"),
    ((1, 1, 16383, 4), (3, 3), {"pads": 2}, {"storage_order": 1}, {2: "pairs"}),
]


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("name", ["float16", "int16", "float32", "float64"])
def test_several_tiles(name, num_threads, isa):
    for i, (shape, kernel, attributes, indexing, strategy) in enumerate(LARGE):
        if isinstance(strategy, dict):
            strategy = strategy.get(cases.dtype(name).itemsize, "taps")
        values, nan = tables(name)[i % 2 * 3 % len(tables(name))]
        more = {"nan": nan, "num_threads": num_threads, **indexing, **attributes}
        plan = planned(shape, name, kernel, isa, strategy, **more)
        codes = random_codes(shape, i)
        x, *expected = pooled(codes, values, kernel, "NCHW", indexing, **attributes)
        assert plan._prepared.pooling.tasks > 1 or strategy == "pairs"
        check(plan, x, *expected, f"{shape}, {kernel}, {more}")


@pytest.mark.parametrize("name", ["uint8", "float16", "float32"])
@pytest.mark.parametrize(
    ("sizes", "kernel", "channels", "lane"),
    [
        ((4, 100), (3, 3), 700, 4),
        ((2, 1056), (2, 2), 31, 2),  # 31 * (1056 + 1) = 2 ** 15 - 1
        ((2, 1023), (2, 2), 32, 4),  # 32 * (1023 + 1) = 2 ** 15
    ],
)
def test_lanes_hold_every_position_of_channels_last(sizes, kernel, channels, lane, name, isa):
    attributes, indexing = {"strides": 2}, {"index_layout": "NHWC"}
    values, _ = tables(name)[0]
    codes = random_codes((1, channels, *sizes), 0)
    codes[..., -1, :] = codes.max()  # far from where windows start
    x, *expected = pooled(codes, values, kernel, "NHWC", indexing, **attributes)
    plan = planned(x.shape, name, kernel, isa, layout="NHWC", **indexing, **attributes)
    check(plan, x, *expected, f"{sizes}, {kernel}, {channels} channels")
    work = make_work(problem_of(plan))
    assert work.key_bytes == max(lane, cases.dtype(name).itemsize)


@pytest.mark.parametrize("name", ["float32", "float64", "float16"])
@pytest.mark.parametrize("branch", [*BRANCHES, "pixels"])
def test_a_nan_at_every_element(branch, name, isa):
    n, indexing = lanes(isa, name, 2), {"index_axis": 1}
    layout = "NHWC" if branch == "pixels" else "NCHW"
    small = PIXELS if branch == "pixels" else BRANCHES[branch](n)
    small = [window for window in small if np.prod(window[0]) < 100 + 4 * n]
    values = tables(name)[0][0].copy()
    values[CODES - 1] = np.nan
    for i, (sizes, kernel, attributes) in enumerate(small[:: len(small) // 14 + 1]):
        channels = (3, n + 1)[i % 2] if branch == "pixels" else 1 + i % 3
        size, channel = int(np.prod(sizes)), i % channels
        codes = random_codes((1, channels, *sizes), i).clip(0, CODES - 2).repeat(size, 0)
        codes.reshape(size, channels, size)[range(size), channel, range(size)] = CODES - 1
        every = pooled(codes, values, kernel, layout, indexing, **attributes)
        more = {"layout": layout, "num_threads": 1, **indexing, **attributes}
        plan = planned(every[0][:1].shape, name, kernel, isa, **more)
        for place in range(size):
            one = [array[place : place + 1] for array in every]
            check(plan, *one, f"{sizes}, {kernel}, {attributes}, NaN at {place}")


@pytest.mark.parametrize("name", ["uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("branch", [*BRANCHES, "pixels"])
def test_nothing_beyond_the_pages_is_touched(branch, name, isa, guarded_memory):
    memories = [guarded_memory(1 << 18) for _ in "xyz"]
    n = lanes(isa, name, 2)
    if branch == "pixels":
        found = [((2, (3, n, n + 1)[i % 3], *w[0]), *w[1:]) for i, w in enumerate(PIXELS)]
    else:
        found = geometries(branch, isa, name)
    for i, (shape, kernel, attributes) in enumerate(found):
        layout = "NHWC" if branch == "pixels" else "NCHW"
        indexing = INDEXING[i % 2]
        values, _ = tables(name)[i % 2 * 3 % len(tables(name))]  # any; with NaN
        answers = pooled(random_codes(shape, i), values, kernel, layout, indexing, **attributes)
        more = {"layout": layout, "num_threads": 1, **indexing, **attributes}
        plan = planned(answers[0].shape, name, kernel, isa, **more)
        for at in ("end", "start"):
            x, y, z = (
                memory.array(array.shape, array.dtype, at)
                for memory, array in zip(memories, answers, strict=True)
            )
            x[...] = answers[0]
            check(plan, x, *answers[1:], f"{shape}, {kernel}, {more}, {at}", out=y, out_indices=z)
            if i % 8 == 0:
                memories[1].check()
                memories[2].check()


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("name", ["uint8", "float16", "float32", "float64"])
def test_parts_of_larger_arrays(name, num_threads, isa):
    n = lanes(isa, name, 2)
    windows = [((9, 2 * n), (3, 3), {"pads": 1}), ((9, n), (4, 4), {})]
    windows += [((7, 3), (5, 5), {"pads": 2}), ((6, 2 * n), (2, 2), {"strides": 2})]
    windows += [((5, 4 * n), (2, 4), {"strides": 4})]
    windows = [(window, "NCHW", 13) for window in windows]
    windows += [(window, "NHWC", channels) for window in PIXELS[:3] for channels in (3, n, n + 1)]
    for (sizes, kernel, attributes), layout, channels in windows:
        codes = random_codes((3, channels, *sizes), 0)
        more = {"layout": layout, "num_threads": num_threads, **attributes}
        for values, _ in tables(name)[:4:3]:  # any; with NaN
            answers = pooled(codes, values, kernel, layout, {}, **attributes)
            plan = planned(answers[0].shape, name, kernel, isa, **more)
            fill = values[CODES - 1]
            for i, how in enumerate(EMBEDDED):
                x, _ = embedded(how, answers[0].shape, values.dtype, fill)
                x[...] = answers[0]
                ways = [list(EMBEDDED)[(i + j) % len(EMBEDDED)] for j in (0, 3)]
                (y, owner), (z, owner_z) = (
                    embedded(other, array.shape, array.dtype, 1)
                    for other, array in zip(ways, answers[1:], strict=True)
                )
                what = f"{answers[0].shape}, {kernel}, {how}, {ways}"
                check(plan, x, *answers[1:], what, out=y, out_indices=z)
                y[...] = z[...] = 1
                assert (owner == 1).all() and (owner_z == 1).all(), "written outside the output"


@pytest.mark.parametrize("name", cases.FLOAT_NAMES)
@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 5, 7])
def test_zeros_of_both_signs_are_equal_and_infinities_have_places(kernel, name, isa):
    n = lanes(isa, name, 2)
    low = np.array([-np.inf, -0.0, 0.0], cases.dtype(name))
    for seed, (width, pad) in enumerate(product((3, n, 2 * n + 1), {0, kernel // 2, kernel - 1})):
        x = low[np.random.default_rng(seed).choice(3, (1, 3, 9, width), p=[0.96, 0.02, 0.02])]
        x[0, 0] = -np.inf
        if width + 2 * pad >= kernel:
            expected = _reference.max_pool(x, kernel, pads=pad, return_indices=True)
            plan = planned(x.shape, name, (kernel, kernel), isa, pads=pad)
            check(plan, x, *expected, f"{x.shape}, {kernel}, {pad}")
            assert expected[1].min() >= 0


def test_more_taps_than_arrays_hold_are_refused(isa):
    """The planner makes no such work, and the kernels would write after their arrays."""
    window = {"strides": (64, 2), "layout": "NHWC", "return_indices": True}
    plan = fastpool.plan_max_pool((1, 130, 8, 16), "float32", (64, 2), **window)
    work = plan._prepare(None).work
    assert work.strategy == "taps"
    rows, cols = work.windows
    for windows in ((rows._replace(kernel=65), cols), (rows, cols._replace(kernel=65))):
        with pytest.raises(ValueError, match="taps: 1 slabs of"):
            running.builds()[isa].Pooling(work._replace(windows=windows), np.dtype("float32"))
