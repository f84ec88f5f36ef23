"""Means whose additions have one order, in float arithmetic: a tree along each axis."""

import itertools
import random

import numpy as np
import pytest

import cases
import fastpool
from fastpool import _reference
from fastpool._running import averages, far_borders

FLOATS = ["float32", "float64", "float16", "bfloat16"]


def tree(taps):
    """The definition, for arrays whose first axis is that of the taps."""
    n, half = len(taps), len(taps) // 2
    if n == 1:
        return taps[0]
    both = tree(taps[:half]) + tree(taps[half : 2 * half])
    return both + taps[2 * half] if n % 2 else both


def drawn(rng, name):
    """An array, the function that pools it, and its arguments."""
    rank = rng.choice([1, 2, 2, 2, 3])
    sizes = [rng.randint(1, {1: 150, 2: rng.choice([12, 40]), 3: 8}[rank]) for _ in range(rank)]
    layout = rng.choice(cases.layouts(rank))
    channels = rng.choice([1, 2, 3, 17, 40] if rank < 3 else [1, 2, 9])
    shape = cases.array_shape(layout, rng.randint(1, 2), channels, sizes)
    kind = rng.choice([*cases.SUM_KINDS, *cases.VALUE_KINDS])
    x = cases.summands(shape, name, kind, rng.randrange(1000))
    x = cases.arranged(x, rng.choice(cases.ARRANGEMENTS))
    attributes = {
        "layout": layout,
        "numerics": "pairwise",
        "nan": rng.choice(["propagate", "propagate", "ignore"]),
        "dtype": rng.choice([None, None, "float64"]),
    }
    kind = rng.random()
    if kind < 0.15:
        return x, "global_avg_pool", (), attributes
    if kind < 0.3:
        numbers = [rng.choice([1, 2, 3, n, 2 * n]) for n in sizes]
        return x, "adaptive_avg_pool", (numbers,), attributes
    kernel = [min(40, rng.choice([1, 2, 3, 4, 5, 7, 8, 15, n, n + 3])) for n in sizes]
    attributes |= {
        "strides": [rng.choice([1, 1, 2, 3, 4, 9]) for _ in sizes],
        "dilations": [rng.choice([1, 1, 1, 2, 5]) for _ in sizes],
        "pads": 2 * [rng.choice([0, 1, k // 2, k - 1, k + 5]) for k in kernel],
        "ceil_mode": rng.random() < 0.4,
        "count_include_pad": rng.random() < 0.5,
        "beyond": rng.choice(["drop", "count"]),
        "divisor": rng.choice([None, None, None, 7, -3]),
    }
    return x, "avg_pool", (kernel,), attributes


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("outputs", [1, 5, 4096])
def test_windows_mostly_padding(name, outputs, monkeypatch):
    """NumPy adds them, in blocks of outputs and in parts of the array."""
    for limit, value in (("FEW_TAPS", -1), ("MANY_TAPS", -1), ("MOST_MARGINS", 1)):
        monkeypatch.setattr(averages, limit, value)
    monkeypatch.setattr(far_borders, "OUTPUTS", outputs)
    monkeypatch.setattr(far_borders, "ELEMENTS", 8 * outputs)
    rng, far = random.Random(outputs), 0
    while far < 12:
        rank, nan = rng.choice([1, 1, 2]), rng.choice(["propagate", "ignore"])
        sizes = [rng.randint(1, 24 // rank**2) for _ in range(rank)]
        kernel = [rng.choice([1, rng.randint(n, 20 * n), 2**8]) for n in sizes]
        attributes = {
            "layout": rng.choice(cases.layouts(rank)),
            "dilations": [rng.choice([1, 1, 2, 5]) for _ in sizes],
            "strides": [rng.choice([1, 1, 2, 9, 30]) for _ in sizes],
            "auto_pad": rng.choice(["SAME_UPPER", "SAME_LOWER"]),
            "count_include_pad": rng.random() < 0.5,
            "divisor": rng.choice([None, None, 7, -3]),
            "nan": nan,
        }
        if rng.random() < 0.5:
            extents = zip(kernel, attributes["dilations"], strict=True)
            pads = [(k - 1) * d for k, d in extents]
            attributes |= {"auto_pad": None, "pads": [*pads, *(rng.randint(0, n) for n in pads)]}
        shape = cases.array_shape(attributes["layout"], 2, 3, sizes)
        x = cases.summands(shape, name, rng.choice(cases.VALUE_KINDS), far)
        x = cases.arranged(x, rng.choice(cases.ARRANGEMENTS))
        plan = fastpool.plan_avg_pool(x.shape, x.dtype, kernel, **attributes)
        expected = _reference.avg_pool(x, kernel, **attributes)
        cases.assert_same(plan(x), expected, f"{shape} {kernel} {attributes}")
        far += averages.is_far(plan)


@pytest.mark.parametrize("name", FLOATS)
def test_random_calls(name, isa):
    rng, done = random.Random(name), 0
    while done < 150:
        x, function, arguments, attributes = drawn(rng, name)
        try:
            expected = getattr(_reference, function)(x, *arguments, **attributes)
        except ValueError:  # a window that does not fit
            continue
        threads = rng.choice([1, 1, 3])
        y = getattr(fastpool, function)(x, *arguments, **attributes, num_threads=threads)
        cases.assert_same(y, expected, f"{function} {x.shape} {arguments} {attributes}")
        done += 1


@pytest.mark.parametrize("taps", [1, 2, 3, 6, 7, 8, 13, 15, 31, 64, 65, 100])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_the_order_is_the_one_of_the_definition(name, taps, isa):
    x = cases.summands((taps + 70, 3), name, "finite", taps)
    windows = np.lib.stride_tricks.sliding_window_view(x, taps, 0)
    with np.errstate(all="ignore"):
        expected = tree(np.moveaxis(windows, -1, 0)) / x.dtype.type(taps)
    for layout, image in (("WC", x), ("CW", np.ascontiguousarray(x.T))):
        y = fastpool.avg_pool(image, taps, layout=layout, numerics="pairwise")
        cases.assert_same(y if layout == "WC" else y.T, expected, layout)


@pytest.mark.parametrize("taps", [4, 5, 7, 8, 9, 100, 127, 128, 129, 131, 255, 1000, 1023, 2046])
@pytest.mark.parametrize("name", ["float32", "float64", "float16"])
def test_rows_of_taps(name, taps, isa):
    """Of one window and of windows that share none: fewer rows than lanes, and more by one."""
    x = cases.summands((34, taps + 3), name, "finite", taps)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64 if name == "float64" else np.float32)
        expected = (tree([*wide[:, :taps].T]) / wide.dtype.type(taps)).astype(x.dtype)
    for rows in (1, 3, 17, 33):
        for one in (x[:rows, :taps], x[:rows, :taps].copy()):
            y = fastpool.global_avg_pool(one, layout="CW")
            cases.assert_same(y[:, 0], expected[:rows], rows)
        whole = fastpool.avg_pool(one[:, None], (1, taps), layout="CHW")
        cases.assert_same(whole[:, 0, 0], expected[:rows], rows)
    y = fastpool.avg_pool(x.reshape(1, -1), taps, strides=taps + 3, layout="CW")
    cases.assert_same(y[0], expected)


@pytest.mark.parametrize("width", [127, 128, 256, 511, 512, 515, 528, 700])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_long_rows_begin_anywhere_in_a_cache_line(name, width, isa):
    """Their vectors are aligned (kernels/vectors/pairwise.h)."""
    plan = fastpool.plan_global_avg_pool((1, 5, 2, width), name, layout="NHWC", num_threads=1)
    x = cases.summands((1, 5, 2, width), name, "normal", width)
    expected = _reference.global_avg_pool(x, layout="NHWC")
    room = np.zeros(x.nbytes + 192, np.uint8)
    for at in range(0, 128, x.itemsize):
        moved = room[at : at + x.nbytes].view(name).reshape(x.shape)
        moved[...] = x
        cases.assert_same(plan(moved), expected)


@pytest.mark.parametrize("shape", [(1, 5000), (3, 301), (1, 9, 700), (70, 7, 90), (2, 130, 2300)])
@pytest.mark.parametrize("numerics", ["pairwise", "exact"])
@pytest.mark.parametrize("name", ["float32", "float64", "float16", "int16"])
def test_adaptive_parts_of_many_taps(name, numerics, shape, isa):
    """Those along a row are added together, of rows that have one divisor at once."""
    x = cases.summands(shape, name, "normal", 3)
    for outs in (2, 3, 7):
        attributes = {"layout": "CW" if len(shape) == 2 else "CHW", "numerics": numerics}
        cases.assert_same(
            fastpool.adaptive_avg_pool(x, outs, num_threads=1, **attributes),
            _reference.adaptive_avg_pool(x, outs, **attributes),
        )


def test_rows_are_added_before_columns(isa):
    x = cases.summands((3, 3), "float32", "finite", 1)
    expected = tree([*tree(list(x))]) / np.float32(9)
    assert fastpool.avg_pool(x, 3, layout="HW", numerics="pairwise").item() == expected
    volume = cases.summands((5, 2, 3), "float32", "finite", 1)
    expected = tree([*tree([*tree(list(volume))])]) / np.float32(30)
    assert fastpool.global_avg_pool(volume, layout="DHW", numerics="pairwise").item() == expected


def test_one_result_for_layouts_parts_and_windows(isa):
    x = cases.summands((2, 5, 23, 31), "float32", "finite", 7)
    attributes = {"strides": (2, 1), "pads": (1, 2, 3, 0), "numerics": "pairwise"}
    y = fastpool.avg_pool(x, (4, 9), **attributes)
    last = fastpool.avg_pool(x.transpose(0, 2, 3, 1), (4, 9), **attributes, layout="NHWC")
    cases.assert_same(last.transpose(0, 3, 1, 2), y)
    plan = fastpool.plan_avg_pool(x.shape, x.dtype, (4, 9), **attributes)
    for rows, cols in itertools.product(((0, 5), (5, y.shape[2])), ((0, 11), (11, y.shape[3]))):
        part, read, write = plan.tile((slice(0, 2), slice(0, 5), slice(*rows), slice(*cols)))
        cases.assert_same(part(x[read]), y[write])
    whole = fastpool.global_avg_pool(x, numerics="pairwise")
    cases.assert_same(fastpool.avg_pool(x, x.shape[2:], numerics="pairwise"), whole)
    cases.assert_same(fastpool.adaptive_avg_pool(x, 1, numerics="pairwise"), whole)


@pytest.mark.parametrize("taps", [2**24 + 1, 2**24 + 3, 2**25 + 3])
def test_floats_do_not_count_the_taps_of_huge_windows(taps, isa):
    """Padding counts, and a NaN does not: the divisor is rounded once."""
    x = np.array([np.nan, 2, 3, 5], np.float32)
    attributes = {"pads": taps - 2, "strides": taps, "count_include_pad": True, "nan": "ignore"}
    y = fastpool.avg_pool(x, taps, **attributes, layout="W")
    cases.assert_same(y, _reference.avg_pool(x, taps, **attributes, layout="W"))


def test_all_but_a_few_of_many_elements_are_nan(isa):
    x = np.full(2**24 + 3, np.nan, np.float32)
    x[77:79] = 3
    assert fastpool.global_avg_pool(x, layout="W", nan="ignore").item() == 3
    x[78] = np.nan
    assert fastpool.global_avg_pool(x, layout="W", nan="ignore").item() == 3


@pytest.mark.parametrize("shape", [(2, 64, 6, 3), (1, 1088, 6, 3), (17, 64, 1, 3), (1, 77, 7, 7)])
@pytest.mark.parametrize("name", FLOATS)
def test_planes_of_one_window_next_to_an_infinity(name, shape, isa):
    """A flag has all means of a block made again, and divided once."""
    x = cases.summands(shape, name, "finite", 3)
    x[0, 3, 0, 0] = np.inf
    cases.assert_same(fastpool.global_avg_pool(x), _reference.global_avg_pool(x))
