"""Every strategy gives the right values: sizes around its limits, a NaN anywhere, guard pages.

The data are the codes and tables of codes.py. Windows with indices are in test_taps.py, and planes
that are interleaved in test_small_planes.py.
"""

from itertools import count

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
    oracle,
    random_codes,
    tables,
    with_planes,
)
from fastpool import _reference
from fastpool._running import builds as running
from fastpool._running import prepare
from fastpool._running.fewer_axes import FewerAxes

LAYOUTS = {2: "NCHW", 3: "NCDHW"}

# Windows along rows: size, kernel, pads, dilation, stride.
ROWS = [(7, 3, (1, 1), 1, 1), (3, 2, (0, 0), 1, 1), (6, 7, (3, 3), 1, 1), (4, 5, (4, 1), 1, 1)]
ROWS += [(5, 3, (3, 3), 3, 1), (3, 3, (4, 5), 1, 1), (1, 2, (0, 1), 1, 1), (5, 4, (0, 2), 1, 1)]
ROWS += [(6, 3, (0, 0), 2, 1), (2, 1, (0, 0), 1, 1), (7, 3, (1, 1), 1, 2), (6, 2, (0, 0), 1, 2)]
ROWS += [(7, 2, (2, 3), 1, 3), (5, 3, (1, 0), 2, 2)]
# The same of squares, which "slide_down" takes.
SQUARES = {
    3: [(7, 3, (1, 1), 1, 1), (5, 3, (3, 3), 3, 1), (6, 3, (0, 0), 2, 1), (8, 3, (2, 0), 1, 1)],
    5: [(4, 5, (4, 1), 1, 1), (9, 5, (2, 2), 1, 1), (6, 5, (0, 0), 1, 1), (9, 5, (6, 2), 2, 1)],
}
LEADS = [(1, 1, 0), (3, 2, 0), (3, 3, 1)]  # size, kernel, pad: one axis more, never "flat_planes"


def around(n):
    return [1, 2, n - 1, n, n + 1, 2 * n - 1, 2 * n, 2 * n + 1, 4 * n + 1, 8 * n]


def slide_down(n, itemsize):
    windows = [(2, (0, 0), 1), (3, (1, 1), 1), (5, (2, 2), 1), (4, (3, 0), 1), (7, (0, 6), 1)]
    windows += [(3, (0, 2), 1), (3, (5, 4), 1), (3, (2, 2), 2), (5, (6, 6), 3), (2, (1, 7), 3)]
    windows += [(1, (0, 0), 1), (5, (4, 1), 1), (7, (3, 3), 1), (3, (0, 0), 3)]
    turn = count()
    for out in around(n):
        for kernel, pads, dilation in windows:
            i = next(turn)
            rows = ROWS[i % 10]
            if kernel in SQUARES:
                rows = SQUARES[kernel][i % len(SQUARES[kernel])]
            size = out + (kernel - 1) * dilation - sum(pads)
            one = out == 1 and rows[0] + sum(rows[2]) == (rows[1] - 1) * rows[3] + 1
            if size > 0 and not one:
                yield geometry(rows, (size, kernel, pads, dilation, 1), LEADS[i % 3])
    yield geometry((30, 3, (1, 1), 1, 1), (n, 3, (1, 1), 1, 1))
    yield geometry((20, 5, (2, 2), 1, 1), (2 * n, 5, (2, 2), 1, 1))
    yield geometry((40, 2, (0, 0), 1, 1), (4 * n + 1, 2, (0, 0), 1, 1))


def stride_two(n, itemsize):
    windows = [(2, (1, 0)), (2, (1, 1)), (3, (0, 0)), (3, (1, 1)), (3, (2, 2)), (3, (1, 0))]
    windows += [(3, (0, 2)), (2, (0, 1)), (2, (0, 0))]
    turn = count()
    for out in [*around(n)[1:], 8 * n + 1]:
        for kernel, pads in windows[: None if out < n else -1]:
            i = next(turn)
            size = 2 * (out - 1) + kernel - sum(pads) + i % 2  # a column that no window has
            size -= i % 2 if pads[1] else 0
            yield geometry(ROWS[i % 14], (size, kernel, pads, 1, 2), LEADS[i % 3])
    yield geometry((41, 3, (1, 1), 1, 2), (8 * n, 3, (1, 1), 1, 2))


def apart(n, itemsize):
    turn = count()
    for out in [*around(n)[3:], 8 * n + 1]:
        for stride in (2, 4):
            for more in range(stride):
                i = next(turn)
                cols = out * stride + more, stride, (0, 0), 1, stride
                yield geometry(ROWS[i % 14], cols, LEADS[i % 3])
    yield geometry((40, 2, (0, 0), 1, 2), (8 * n, 2, (0, 0), 1, 2))


def whole_plane(n, itemsize):
    elements = [2, n - 1, n, n + 1, 2 * n - 1, 2 * n, 2 * n + 1, 3 * n - 1, 3 * n, 4 * n + 1]
    sizes = [(1, e) for e in elements] + [(e, 1) for e in elements]
    sizes += [(7, 7), (2, n), (13, 11), (5, 2 * n + 1), (112, 1), (1, 9 * n), (3, 8 * n + 1)]
    for i, (height, width) in enumerate(sizes):
        windows = [(size, size, (0, 0), 1, 1) for size in (height, width)]
        yield geometry(*windows, (None, *LEADS)[i % 4])
    yield (1, 524288 // itemsize), (1, 524288 // itemsize), {}


def flat_planes(n, itemsize):
    yield (5, 5), (3, 3), {"pads": 1}
    yield (6, 6), (2, 2), {"strides": 2}
    yield (4, 5), (2, 3), {"pads": (0, 1)}
    yield (4, 4), (2, 2), {"strides": 2}
    yield (5, 3), (5, 3), {"pads": (2, 1)}
    yield (6, 7), (3, 3), {"pads": 2, "dilations": 2}
    yield (3, 3), (2, 2), {}
    yield (5, 5), (2, 2), {"strides": 3}
    yield (4, 2), (1, 2), {"strides": (3, 1), "pads": (0, 0, 0, 1)}
    yield (1, 9), (1, 2), {"strides": (1, 3)}
    yield (9, 1), (2, 1), {}
    yield (2, 2), (2, 2), {"pads": (0, 0, 1, 1)}
    yield (7, 5), (4, 2), {"pads": (2, 1, 1, 0)}
    yield (5, 4), (3, 3), {"pads": (2, 1, 0, 1), "strides": (2, 1)}
    if itemsize < 8:
        yield (7, 7), (3, 3), {"pads": 1}
        yield (8, 8), (2, 2), {"strides": 2}
    if itemsize < 4:
        yield (14, 14), (3, 3), {"pads": 1}
        yield (12, 12), (2, 2), {"strides": 2}


def bands(n, itemsize):
    yield (9, 8 * n + 3), (3, 3), {}  # as "slide_down", one column more than it takes
    yield (9, 4 * n + 7), (3, 8), {}
    yield (40, 2 * n + 1), (20, 2), {}
    yield (9, 2 * n), (3, 3), {"strides": 3}
    yield (40, 2 * n), (2, 3), {"strides": 2, "dilations": (1, 2)}
    yield (40, 2 * n), (2, 3), {"strides": 2, "pads": (0, 3, 0, 0)}
    yield (40, 2 * n), (2, 3), {"strides": 2, "pads": (0, 0, 0, 4)}
    yield (40, 4 * n), (2, 4), {"strides": 4, "pads": (0, 1, 0, 0)}
    yield (1, 524288 // itemsize + 1), (1, 524288 // itemsize + 1), {}


STRATEGIES = {
    strategy.__name__: strategy
    for strategy in (
        slide_down,
        stride_two,
        apart,
        whole_plane,
        flat_planes,
        bands,
    )
}


def geometries(strategy, isa, name):
    """Return the geometries of a strategy with numbers of images and channels."""
    windows = STRATEGIES[strategy](lanes(isa, name), cases.dtype(name).itemsize)
    return with_planes(windows, 10_000)


def planned(strategy, shape, name, kernel, isa, **attributes):
    """Return a plan of that strategy, or of the one that replaces it in builds without masks.

    Its axes are taken as they are.
    """
    attributes.setdefault("layout", LAYOUTS.get(len(kernel)))
    plan = fastpool.plan_max_pool(shape, cases.dtype(name), kernel, **attributes)
    with pytest.MonkeyPatch.context() as patch:
        others = ",-slide_down" if strategy == "flat_planes" else ""  # (which may be faster)
        patch.setenv("FASTPOOL_STRATEGY", f"-planes_as_pixels,-composites{others}")
        patch.setattr(prepare, "without_single_axes", lambda plan, _: FewerAxes(plan))
        patch.setattr(prepare, "with_fewer_axes", lambda whole, *_: whole)
        plan(np.zeros(shape, cases.dtype(name)))
    found = {
        "slide_down": ["bands"],
        **dict.fromkeys(("stride_two", "flat_planes"), ["bands", "apart"]),
    }.get(strategy)
    if found is None or running.builds()[isa].VECTOR_BYTES == 64:
        found = [strategy]
        sizes = shape[-len(kernel) :] if attributes["layout"] != "NHWC" else shape[1:-1]
        cut = any(size <= k for size, k in zip(sizes[-2:], kernel[-2:], strict=True))
        if strategy == "slide_down" and (cut or kernel[-2:] not in ((3, 3), (5, 5))):
            found = ["slide_down", "bands"]  # (taps that are never elements do not count)
        if strategy == "apart" and kernel[-1] == 2 and running.builds()[isa].MASKS:
            found = ["stride_two"]
    assert plan._prepared.pooling.strategy in found, (shape, kernel, attributes)
    return plan


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_oracle(strategy):
    for i, (sizes, kernel, attributes) in enumerate(STRATEGIES[strategy](3, 4)):
        if np.prod(kernel) < 1000 and i % 3 == 0:
            codes = random_codes((2, 1, *sizes), i)
            expected = _reference.max_pool(codes, kernel, layout=LAYOUTS[len(sizes)], **attributes)
            np.testing.assert_array_equal(
                oracle(codes, kernel, **attributes).clip(0), expected.clip(0)
            )


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_any_geometry(strategy, name, isa):
    for i, (shape, kernel, attributes) in enumerate(geometries(strategy, isa, name)):
        if i % 3 and name not in EVERY:
            continue
        codes = random_codes(shape, i)
        maximum = oracle(codes, kernel, **attributes)
        plans = {}
        for values, nan in tables(name):
            threads = 3 if i % 16 == 5 else 1
            if nan not in plans:
                more = {"nan": nan, "num_threads": threads, **attributes}
                plans[nan] = planned(strategy, shape, name, kernel, isa, **more)
            got = plans[nan](values[codes])
            cases.assert_same(got, values[maximum], f"{shape}, {kernel}, {attributes}, nan={nan}")


@pytest.mark.parametrize(
    ("strategy", "kernel", "attributes"),
    [
        ("pixels_as_row", 3, {"layout": "NHWC"}),
        ("taps", 3, {"return_indices": True}),
        ("taps", 2, {"layout": "NHWC", "strides": 2, "return_indices": True}),
        ("pairs", 17, {"pads": 8, "return_indices": True}),
        ("pairs", 3, {"strides": 3, "return_indices": True}),
        ("pairs", 9, {"pads": 4, "layout": "NHWC", "return_indices": True}),
    ],
)
def test_channels_last_and_indices(strategy, kernel, attributes, isa):
    planned(strategy, (2, 5, 20, 20), "uint8", (kernel, kernel), isa, **attributes)


# ------------------------------------------------------------------------------ one NaN anywhere


def check_every_nan(plan, planes, sizes, kernel, attributes, name):
    """One NaN at a time, at every element of each of the planes, against the reference."""
    base = tables(name)[0][0][random_codes((planes, *sizes), 0)]
    size = int(np.prod(sizes))
    special = cases.special_floats(name)
    with np.errstate(invalid="ignore"):
        nans = special[special != special]
    # the planes with a NaN, and what they give
    altered = np.repeat(base[:, None], size, 1).reshape(planes, size, size)
    altered[:, np.arange(size), np.arange(size)] = nans[np.arange(size) % len(nans)]
    altered = altered.reshape(planes, size, *sizes)
    more = {"layout": LAYOUTS[len(sizes)], **attributes}
    pooled = _reference.max_pool(altered, kernel, **more)
    expected = _reference.max_pool(base[None], kernel, **more)[0]
    for plane in range(planes):
        got = np.empty((size, *plan.output_shape), base.dtype)
        for place in range(size):
            x = base.copy()[None]
            x[0, plane] = altered[plane, place]
            plan(x, out=got[place])
        answers = np.repeat(expected[None, None], size, 0)
        answers[:, 0, plane] = pooled[plane]
        cases.assert_same(got, answers, f"{sizes}, {kernel}, {attributes}, plane {plane}")


NAN_RULES = [(name, "propagate") for name in cases.FLOAT_NAMES] + [("float32", "ignore")]


@pytest.mark.parametrize(("name", "nan"), NAN_RULES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_nan_at_every_element(strategy, name, nan, isa):
    n = lanes(isa, name)
    small = STRATEGIES[strategy](n, cases.dtype(name).itemsize)
    small = [window for window in small if np.prod(window[0]) < 130 + 4 * n]
    for i, (sizes, kernel, attributes) in enumerate(small[:: len(small) // 12 + 1]):
        planes = 3 if i % 3 == 0 else 1
        more = {"nan": nan, "num_threads": 1, **attributes}
        plan = planned(strategy, (1, planes, *sizes), name, kernel, isa, **more)
        check_every_nan(plan, planes, sizes, kernel, {"nan": nan, **attributes}, name)


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize(
    ("width", "taps", "dilation"),
    [(19, 3, 9), (37, 3, 18), (48, 3, 20), (60, 5, 13), (60, 4, 15), (60, 7, 8)],
)
def test_a_nan_that_only_middle_taps_meet(width, taps, dilation, name, isa):
    """Dilated so far that no first or last tap of any window is where the middle ones are."""
    for pad in (0, 2, dilation):
        attributes = {"dilations": (1, dilation), "pads": (0, pad, 0, pad)}
        shape = (1, 1, 4, width)
        plan = fastpool.plan_max_pool(shape, name, (3, taps), num_threads=1, **attributes)
        check_every_nan(plan, 1, shape[2:], (3, taps), attributes, name)


@pytest.mark.parametrize(("taps", "pad"), [(3, 1), (3, 2), (5, 2), (7, 3), (5, 4)])
def test_a_nan_next_to_a_tile(taps, pad, isa):
    """Rows so far apart that scratch makes tiles of few columns, whose windows overlap."""
    attributes = {"dilations": (1000, 1), "pads": (0, pad, 0, pad)}
    codes = random_codes((1, 1, 2001, 300), 0)
    x = np.arange(CODES, dtype=np.float32)[codes]
    plan = fastpool.plan_max_pool(x.shape, x.dtype, (3, taps), num_threads=1, **attributes)
    for column in range(300):
        codes[0, 0, 1000, column], before = CODES, codes[0, 0, 1000, column]
        x[0, 0, 1000, column] = np.nan
        got = plan(x)
        values = np.append(np.arange(CODES), [np.nan, -np.inf]).astype(np.float32)
        expected = values[oracle(codes, (3, taps), **attributes)]
        cases.assert_same(got, expected, f"column {column}")
        codes[0, 0, 1000, column] = x[0, 0, 1000, column] = before
    assert plan._prepared.pooling.tasks > 1


# -------------------------------------------------------------------- pages and arrangements


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "uint8", "int16"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nothing_beyond_the_pages_is_touched(strategy, name, isa, guarded_memory):
    memories = [guarded_memory(1 << 19) for _ in "xy"]
    for i, (shape, kernel, attributes) in enumerate(geometries(strategy, isa, name)):
        if np.prod(shape) > 10_000:
            continue
        codes = random_codes(shape, i)
        maximum = oracle(codes, kernel, **attributes)
        plan = planned(strategy, shape, name, kernel, isa, num_threads=1, **attributes)
        for values, nan in tables(name)[::3]:  # any; with NaN
            for at in ("end", "start"):
                x, y = (
                    memory.array(array.shape, values.dtype, at)
                    for memory, array in zip(memories, (codes, maximum), strict=True)
                )
                x[...] = values[codes]
                assert nan == "propagate" and plan(x, out=y) is y
                cases.assert_same(y, values[maximum], f"{shape}, {kernel}, {attributes}, {at}")
                if i % 8 == 0:
                    memories[1].check()


ARRANGED = {
    "slide_down": lambda n: [((30, 2 * n), (3, 3), {"pads": 1}), ((20, n), (5, 5), {"pads": 2})],
    "stride_two": lambda n: [((31, 2 * n + 1), (3, 3), {"strides": 2, "pads": 1})],
    "apart": lambda n: [((30, 2 * n + 1), (2, 2), {"strides": 2})],
    "whole_plane": lambda n: [
        ((5, n), (5, n), {}),
        ((1, n + 1), (1, n + 1), {}),
        ((7, 1), (7, 1), {}),
    ],
    "flat_planes": lambda n: list(flat_planes(n, 8)),
    "bands": lambda n: [((9, 2 * n + 1), (3, 3), {"strides": 3})],
}


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("name", ["float16", "float32", "float64", "uint8"])
@pytest.mark.parametrize("strategy", ARRANGED)
def test_parts_of_larger_arrays(strategy, name, num_threads, isa):
    for sizes, kernel, attributes in ARRANGED[strategy](lanes(isa, name)):
        shape = ((10, 13) if np.prod(sizes) < 150 else (2, 3)) + sizes
        codes = random_codes(shape, 0)
        maximum = oracle(codes, kernel, **attributes)
        more = {"num_threads": num_threads, **attributes}
        plan = planned(strategy, shape, name, kernel, isa, **more)
        outputs = [(how, *embedded(how, maximum.shape, plan.dtype, 1)) for how in EMBEDDED]
        for values, _ in tables(name)[: 4 if num_threads == 1 else 1 : 3]:  # any; with NaN
            expected, fill = values[maximum], values[CODES - 1]  # above all of x
            for i, how in enumerate(EMBEDDED):
                x, _ = embedded(how, shape, values.dtype, fill)
                x[...] = values[codes]
                x.flags.writeable = False
                for other, y, owner in outputs if num_threads == 1 else outputs[i : i + 1]:
                    assert plan(x, out=y) is y
                    cases.assert_same(y, expected, f"{shape}, {kernel}, {how}, into {other}")
                    y[...] = 1
                    assert (owner == 1).all(), "written outside the output"
