"""Arrays of several tiles give the same results as one tile, however the work is cut.

The oracle gives each element a unique key: the value first, and then the position, the earlier one
higher. Running maxima of the keys then name the first maximum of every window.
"""

import numpy as np
import pytest

import cases
import fastpool
from fastpool import _reference
from fastpool._running import builds as running

CODES = 40


def oracle(codes, kernel, strides, pads, dilations):
    """Greatest code and its place, -1 without elements, of windows over planes (first axis)."""
    plane = codes[0].size
    keys = codes.astype(np.int64).reshape(len(codes), -1) * plane + np.arange(plane)[::-1]
    keys = keys.reshape(codes.shape)
    rank = len(kernel)
    keys = np.pad(keys, [(0, 0), *zip(pads[:rank], pads[rank:], strict=True)], constant_values=-1)
    for axis, (taps, stride, dilation) in enumerate(
        zip(kernel, strides, dilations, strict=True), 1
    ):
        keys = np.moveaxis(keys, axis, -1)
        covered = 1
        while covered < taps:
            step = min(covered, taps - covered) * dilation
            keys = np.maximum(keys[..., :-step], keys[..., step:])
            covered += step // dilation
        keys = np.moveaxis(keys[..., ::stride], -1, axis)
    planes = np.arange(len(codes)).reshape(-1, *[1] * rank) * plane
    empty = keys < 0
    places = planes + plane - 1 - keys % plane
    return np.where(empty, -1, keys // plane), np.where(empty, -1, places)


def data(shape, seed):
    """Ties, long slopes (maxima at either end of a window), or both; and rare peaks."""
    rng = np.random.default_rng(seed)
    ties = rng.integers(0, 4, shape)
    slope = np.abs(np.arange(shape[-1]) * 30 // shape[-1] - 15) + np.zeros(shape, np.int64)
    peaks = np.where(rng.random(shape) < 0.002, CODES - 1, 0)
    return np.maximum(np.stack([ties, slope, slope[..., ::-1] + ties])[seed % 3], peaks)


def table(name, nan):
    if name not in cases.FLOAT_NAMES:
        low = np.iinfo(name).min
        return np.append(np.arange(CODES) * 3 + low, low).astype(name)
    numbers = np.arange(CODES + 1, dtype=np.float32) - 7
    numbers[[0, -1]] = -np.inf
    if nan == "propagate":  # the rare peaks: most tiles are without, some have one
        numbers[CODES - 1] = np.nan
    if nan == "ignore":
        numbers[:2] = np.nan, -np.inf
    return numbers.astype(cases.dtype(name))


# planes and their shape, window, attributes
GEOMETRIES = {
    "long row": ((2, 30011), (3,), {}),
    "long row, stride 2": ((1, 30011), (3,), {"strides": 2, "pads": 1}),
    "long row, stride 3": ((1, 20011), (5,), {"strides": 3, "pads": 2}),
    "long row, stride 4": ((1, 30011), (4,), {"strides": 4}),
    "long row, long window": ((1, 30011), (129,), {"pads": 64}),
    "long row, very long window": ((1, 20011), (4097,), {"pads": 2048, "strides": 2}),
    "long row, dilated": ((1, 20011), (9,), {"dilations": 1000, "pads": 4000}),
    "window as long as the row": ((3, 9001), (9001,), {"pads": 9000}),
    "wide planes": ((1, 21, 6007), (3, 3), {"pads": 1}),
    "wide planes, stride 2": ((2, 21, 6007), (3, 3), {"pads": 1, "strides": 2}),
    "square": ((2, 301, 307), (3, 3), {"pads": 1}),
    "square, stride 2": ((2, 301, 307), (2, 2), {"strides": 2}),
    "square, large window": ((1, 201, 203), (64, 64), {}),
    "square, larger window": ((1, 201, 203), (129, 65), {"pads": (64, 32), "strides": (1, 2)}),
    "square, dilated": ((1, 201, 203), (5, 9), {"dilations": (17, 11), "pads": (34, 44)}),
    "tall": ((2, 5003, 3), (3, 2), {"pads": (1, 0)}),
    "tall, long window": ((1, 3001, 5), (700, 3), {"pads": (350, 1), "strides": (3, 1)}),
    "tiny planes": ((5003, 3, 3), (2, 2), {}),
    "tiny planes, padded": ((3001, 5, 4), (3, 3), {"pads": 1, "strides": 2}),
    "small planes beyond the caches": ((10009, 13, 17), (3, 3), {"pads": 1, "strides": 2}),
    "short rows beyond the caches": ((20011, 110), (3,), {"pads": 1}),
    "tiny rows": ((9001, 7), (7,), {}),
    "volume": ((2, 21, 30, 41), (3, 3, 3), {"pads": 1}),
    "volume, stride 2": ((3, 20, 30, 40), (2, 2, 2), {"strides": 2}),
    "volume, large window": ((1, 12, 40, 41), (9, 9, 9), {"pads": 4}),
    "volume of more leading taps than one round": (
        (1, 70, 11, 19),
        (66, 3, 3),
        {"pads": (30, 1, 1)},
    ),
    "volume, leading window only": ((1, 70, 11, 19), (66, 1, 1), {"pads": (30, 0, 0)}),
    "window of 75000 elements": ((1, 401, 403), (300, 250), {"pads": 20}),
    "volume window of 73000 elements": ((2, 30, 60, 61), (20, 3, 3), {"pads": (5, 1, 1)}),
    "dilated over 80000 elements": ((1, 410, 200), (3, 2), {"dilations": (200, 99), "pads": 9}),
    "four axes": ((2, 9, 10, 12, 13), (8, 9, 3, 2), {"pads": (4, 4, 1, 0)}),
}


@pytest.mark.parametrize("case", GEOMETRIES)
@pytest.mark.parametrize(
    ("name", "nan"),
    [
        ("uint8", None),
        ("float16", "propagate"),
        ("float32", None),
        ("float32", "propagate"),
        ("float64", "ignore"),
    ],
)
def test_tiles(case, name, nan, isa):
    shape, kernel, attributes = GEOMETRIES[case]
    rank = len(kernel)
    given = {"strides": 1, "dilations": 1, "pads": 0, **attributes}
    spread = {key: (v,) * rank if isinstance(v, int) else v for key, v in given.items()}
    values = table(name, nan)
    codes = data(shape, len(case))
    maximum, places = oracle(
        codes, kernel, spread["strides"], spread["pads"] * 2, spread["dilations"]
    )
    expected = values[maximum]
    for layout in ("NCHW", "NHWC"):
        x = values[codes][None]
        if layout == "NHWC":
            x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
        every = {"layout": layout, "nan": nan, "num_threads": 2, **attributes}
        y, indices = fastpool.max_pool(x, kernel, return_indices=True, **every)
        alone = fastpool.max_pool(x, kernel, **every)
        if layout == "NHWC":
            y, indices, alone = (np.moveaxis(array, -1, 1) for array in (y, indices, alone))
        cases.assert_same(y[0], expected, f"{layout}, {case}")
        cases.assert_same(indices[0], places, f"{layout}, {case}, indices")
        cases.assert_same(alone[0], expected, f"{layout}, {case}, values alone")


@pytest.mark.parametrize("name", ["uint8", "float16", "int16", "float32"])
@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 2**16), (2**8, 2**8), (2**8 - 1, 2**8 + 1), (7, 2**14)]
)
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_positions_of_a_global_window(shape, more, name, isa):
    """Positions are kept in 16 bits where they fit: no tile may have one more."""
    shape = shape[0], max(shape[1] + more, 1)
    size = shape[0] * shape[1]
    x = np.zeros((1, 3, *shape), cases.dtype(name))
    places = [0, size // 2, size - 1]
    for channel, place in enumerate(places):
        x[0, channel].reshape(-1)[place:] = 1
    for layout in ("NCHW", "NHWC"):
        arranged = x if layout == "NCHW" else np.ascontiguousarray(np.moveaxis(x, 1, -1))
        y, indices = fastpool.max_pool(arranged, shape, layout=layout, return_indices=True)
        assert (y == 1).all()
        assert (indices.reshape(3) % size).tolist() == places
    column = np.ascontiguousarray(np.swapaxes(x, 2, 3))
    column_places = [np.flatnonzero(column[0, c].reshape(-1))[0] for c in range(3)]
    _, indices = fastpool.max_pool(column, shape[::-1], return_indices=True, index_axis=2)
    assert indices.reshape(3).tolist() == column_places


# Views of a (48, 24, 12, 14) array: planes evenly spaced or not, touching or not, in any order.
VIEWS = {
    "whole": np.s_[:],
    "some channels": np.s_[:, 3:-2],
    "every other channel": np.s_[:, ::2],
    "every other image": np.s_[::2],
    "one channel": np.s_[:, 5:6],
    "images backwards": np.s_[::-1],
    "channels backwards": np.s_[:, ::-1],
    "inner rows": np.s_[:, :, 2:-1],
    "inner columns": np.s_[:, :, :, 3:-2],
    "rows backwards": np.s_[:, :, ::-1],
    "every other row": np.s_[:, 1:, ::2, 1:],
}


def test_many_volumes_with_one_window(isa):
    # Tiles of several planes once forgot the other slabs of all volumes but the first.
    x = np.random.default_rng(0).integers(0, 100, (2, 70, 6, 2, 5)).astype(np.int8)
    expected = _reference.max_pool(x, (6, 2, 3))
    np.testing.assert_array_equal(fastpool.max_pool(x, (6, 2, 3)), expected)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("swapped", [False, True], ids=["images first", "channels first"])
@pytest.mark.parametrize("name", ["uint8", "float16", "float32"])
def test_many_small_planes(view, swapped, name):
    """Tiles of several planes: in views, into views, and with a NaN in any one plane of a tile."""
    rng = np.random.default_rng(0)
    base = cases.values((48, 24, 12, 14), name, "ties", 0)
    if name in cases.FLOAT_NAMES:
        base.reshape(-1)[rng.integers(0, base.size, 40)] = np.nan
    x = base[VIEWS[view]]
    x = x.transpose(1, 0, 2, 3) if swapped else x
    windows = [(2, {"strides": 2}), (3, {"pads": 1}), ((1, 9), {}), ((9, 2), {"pads": 2})]
    for kernel, attributes in windows:
        expected = _reference.max_pool(x, kernel, return_indices=True, **attributes)
        for build in cases.BUILDS:
            with running.using(build):
                check_small_planes(x, kernel, attributes, expected)


def check_small_planes(x, kernel, attributes, expected):
    plan = fastpool.plan_max_pool(x.shape, x.dtype, kernel, **attributes)
    cases.assert_same(plan(x), expected[0])
    cases.assert_same(plan(np.ascontiguousarray(x)), expected[0])
    images, channels, height, width = plan.output_shape
    wide, high, larger = (
        np.zeros((images + i, channels + i, height + h, width + w), x.dtype)
        for i, h, w in ((0, 0, 5), (0, 3, 0), (50, 3, 5))
    )
    for owner, y in (
        (wide, wide[..., 3:-2]),
        (high, high[:, :, 2:-1]),
        (larger, larger[:images, :channels, :height, :width]),
        (larger, larger[50:, 50:, 1:-2, 2:-3][::-1, ::-1]),
    ):
        owner[...] = 1
        plan(x, out=y)
        cases.assert_same(y, expected[0])
        y[...] = 1
        assert (owner == 1).all(), "written outside the output"
    y, indices = fastpool.max_pool(x, kernel, return_indices=True, **attributes)
    cases.assert_same(y, expected[0])
    cases.assert_same(indices, expected[1])
