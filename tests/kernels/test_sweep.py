"""No window, width or number of threads gives a wrong value or index, in any build.

The oracle uses neither the package nor the element type. It takes running maxima of small integers
("codes"), one tap at a time, and the earlier element wins. A table then turns codes into values of
a type. Code -1 is an element that does not exist.
"""

import itertools

import numpy as np
import pytest

import cases
import fastpool
from fastpool._running import builds as running

LARGEST = 130
# Every width: to four vectors of 16 lanes and two elements, or two of 64.
EVERY = {"float32": range(1, 67), "uint8": range(1, LARGEST + 1)}
# Around the lanes of every vector and element size, and around the doubling steps.
EDGES = [
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    9,
    13,
    15,
    16,
    17,
    31,
    32,
    33,
    47,
    63,
    64,
    65,
    66,
    96,
    127,
    128,
    129,
    130,
]
CODES = 48
THOROUGH = ["uint8", "float16", "float32", "float64"]


def table(name, nan=None):
    """The values of a type that stand for the codes, in increasing order; the last is that of -1.

    A NaN is the greatest of all when it propagates and the least when it is ignored.
    """
    if name in cases.FLOAT_NAMES:
        low = cases.lowest(name)
        numbers = np.linspace(-60, 60, CODES - 2).astype(np.float32)
        numbers = np.concatenate([[-np.inf], numbers, [np.inf]]).astype(cases.dtype(name))
        if nan == "propagate":
            numbers[-1] = np.nan
        if nan == "ignore":
            numbers[:2] = np.nan, -np.inf
    else:
        low = np.iinfo(name).min
        step = (np.iinfo(name).max - low) // (CODES - 1)
        numbers = np.array([low + step * code for code in range(CODES)], name)
    return np.append(numbers, np.array(low, numbers.dtype))


def rows(length, seed):
    """Four rows of codes: few values, rare peaks over the lowest, plateaus going up, and down."""
    rng = np.random.default_rng(seed)
    ties = rng.choice([0, 1, 20, CODES - 1], length, p=[0.4, 0.4, 0.15, 0.05])
    peaks = np.where(rng.random(length) < 0.03, rng.integers(0, CODES, length), 0)
    plateaus = np.sort(rng.integers(0, CODES, length))
    return np.stack([ties, peaks, plateaus, plateaus[::-1]])


def grown_windows(codes, places, margin, dilation, axis):
    """Yield (window, maximum, place) for windows of 1, 2, 3... taps that start anywhere on `axis`.

    Starts count from `margin` absent elements before the first one.
    """
    codes, places = (np.moveaxis(array, axis, -1) for array in (codes, places))
    absent = [(0, 0)] * (codes.ndim - 1) + [(margin, margin)]
    codes = np.pad(codes, absent, constant_values=-1)
    places = np.pad(places, absent, constant_values=-1)
    maximum, place = codes, places
    for window in range(1, codes.shape[-1] + 1):
        yield window, np.moveaxis(maximum, -1, axis), np.moveaxis(place, -1, axis)
        starts = codes.shape[-1] - window * dilation
        if starts < 1:
            return
        tap = slice(window * dilation, window * dilation + starts)
        later = codes[..., tap] > maximum[..., :starts]
        place = np.where(later, places[..., tap], place[..., :starts])
        maximum = np.where(later, codes[..., tap], maximum[..., :starts])


def places_of(codes):
    return np.arange(codes.size).reshape(codes.shape)


def check(arrays, kernel, attributes, maximum, place, kinds=(False, True)):
    """Values alone and values with indices, in every build, are those of the oracle.

    `arrays` are pairs of an array and the table of its values.
    """
    x, _ = arrays[0]
    plans = [
        fastpool.plan_max_pool(
            x.shape, x.dtype, kernel, return_indices=return_indices, **attributes
        )
        for return_indices in kinds
    ]
    for build in cases.BUILDS:
        with running.using(build):
            for plan, (x, values) in itertools.product(plans, arrays):
                expected = values[maximum]
                y, indices = plan(x) if plan.return_indices else (plan(x), place)
                if not np.array_equal(indices, place) or not same_values(y, expected):
                    what = f"{build}: {x.dtype} {x.shape}, window {kernel}, {attributes}"
                    cases.assert_same(y, expected, what)
                    cases.assert_same(indices, place, what)


def same_values(y, expected):
    same = y.shape == expected.shape and y.dtype == expected.dtype
    return same and ((y == expected) | ((y != y) & (expected != expected))).all()


@pytest.mark.parametrize("name", ["uint8", "float32"])
def test_every_window_over_every_width(name):
    """Without padding, and with padding that keeps the width; rows alone, and rows of planes.

    Of the windows that hold the whole row wherever they start, only some are pooled.
    """
    values = table(name)
    margin = LARGEST // 2
    for width in EVERY[name]:
        codes = rows(width, width)
        shape = (4, width) if width % 2 else (2, 2, width)
        x = values[codes].reshape(shape)
        for window, *grown in grown_windows(codes, places_of(codes), margin, 1, 1):
            if window > LARGEST:
                break
            if window > 2 * width + 1 and window not in EDGES:
                continue
            # Every pair of window and width; the two types take padding by turns, and indices.
            padded = window > width or (window + width + len(name)) % 2
            kinds = (False, True)
            if width in EVERY["float32"] and not (width in EDGES and window in EDGES):
                kinds = [bool((window // 2 + width + len(name)) % 2)]
            before, after = ((window - 1) // 2, window // 2) if padded else (0, 0)
            outputs = width + before + after - window + 1
            expected = [
                part[:, margin - before : margin - before + outputs].reshape(*shape[:-1], outputs)
                for part in grown
            ]
            if width % 2:
                attributes = {"layout": "CW", "pads": (before, after)}
                check([(x, values)], window, attributes, *expected, kinds)
            else:
                attributes = {"layout": "CHW", "pads": (0, before, 0, after)}
                check([(x, values)], (1, window), attributes, *expected, kinds)


NAN_RULES = [(name, nan) for name in cases.FLOAT_NAMES for nan in ("propagate", "ignore")]


@pytest.mark.parametrize(
    ("name", "nan"), NAN_RULES + [(name, "propagate") for name in cases.INTEGER_NAMES]
)
def test_windows_and_widths_around_the_vectors(name, nan):
    """Every type and both rules for NaN; a window two rows high."""
    tables = [table(name, nan)]
    if name in cases.FLOAT_NAMES and nan == "propagate":
        tables.append(table(name))  # without NaN
    for width in EDGES:
        codes = np.stack([rows(width, width), rows(width, width + 1)], axis=1)
        arrays = [(values[codes], values) for values in tables]
        for window, maximum, place in grown_windows(codes, places_of(codes), LARGEST // 2, 1, 2):
            if window > LARGEST:
                break
            if window not in EDGES:
                continue
            before, after = (window - 1) // 2, window // 2
            first = LARGEST // 2 - before
            columns = np.s_[..., first : first + width]
            *_, (_, maximum, place) = grown_windows(maximum[columns], place[columns], 0, 1, 1)
            attributes = {"layout": "CHW", "pads": (0, before, 0, after), "nan": nan}
            check(arrays, (2, window), attributes, maximum, place)


@pytest.mark.parametrize("name", THOROUGH)
@pytest.mark.parametrize(("stride", "dilation"), [(2, 1), (3, 1), (4, 1), (1, 2), (1, 3), (2, 2)])
def test_strides_and_dilations_over_widths(name, stride, dilation):
    """Every width for one type, those around the vectors for the others."""
    values = table(name)
    for width in EVERY[name] if name == "float32" else EDGES:
        codes = rows(width, width)
        x = values[codes]
        margin = 3
        for window, maximum, place in grown_windows(codes, places_of(codes), margin, dilation, 1):
            if window not in EDGES:
                continue
            expected = maximum[:, ::stride], place[:, ::stride]
            attributes = {"layout": "CW", "pads": margin, "strides": stride, "dilations": dilation}
            check([(x, values)], window, attributes, *expected)


@pytest.mark.parametrize("name", THOROUGH)
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 3)])
def test_windows_over_heights(name, stride, dilation):
    """Vertical windows over planes a few elements wide and a vector and a bit wide.

    Types take turns if the window is not around a doubling step.
    """
    values, turn = table(name), THOROUGH.index(name)
    for height in EDGES:
        for width in (3, 21):
            codes = np.stack([rows(height, height + column) for column in range(width)], axis=2)
            x = values[codes]
            margin = 2
            grown = grown_windows(codes, places_of(codes), margin, dilation, 1)
            for window, maximum, place in grown:
                if window not in EDGES and (width > 3 or (window + height + turn) % 2):
                    continue
                expected = maximum[:, ::stride], place[:, ::stride]
                attributes = {
                    "layout": "CHW",
                    "pads": (margin, 0, margin, 0),
                    "strides": (stride, 1),
                    "dilations": (dilation, 1),
                }
                check([(x, values)], (window, 1), attributes, *expected)


@pytest.mark.parametrize("name", THOROUGH)
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 3)])
def test_channels_last(name, stride, dilation):
    """Every number of channels with windows around the doubling steps, and the other way round.

    Types take turns if the channels are not around a vector, or the window not around a step.
    """
    values, turn = table(name), THOROUGH.index(name) // 2
    for channels in EVERY.get(name, EDGES):
        every_window = channels in (1, 3, 17)
        length = 140 if every_window else 18
        codes = np.concatenate([rows(length, channels + i) for i in range(-(-channels // 4))])[
            :channels
        ]
        x = np.ascontiguousarray(values[codes].T)
        margin = 4
        for window, maximum, place in grown_windows(codes, places_of(codes), margin, dilation, 1):
            if window > LARGEST:
                break
            if not every_window and window not in EDGES:
                continue
            around = channels in EDGES and window in EDGES
            if not around and channels in EVERY["float32"] and (window + channels + turn) % 2:
                continue
            expected = maximum.T[::stride], place.T[::stride]
            attributes = {"layout": "WC", "pads": margin, "strides": stride, "dilations": dilation}
            check([(x, values)], window, attributes, *expected)
