"""Each statistic of blocks, by hand, by NumPy where NumPy is right, and where others go wrong."""

import math
from fractions import Fraction

import numpy as np
import pytest

import block_cases
import cases
import fastpool
from fastpool import _reference

NAN, INF = math.nan, math.inf

LARGE = [  # extents and blocks of thousands of taps
    ((9999,), (4999,)),
    ((4999,), (2**62,)),
    ((5, 3000), (1, 3000)),
    ((3000, 3), (3000, 1)),
    ((70, 90), (64, 80)),
    ((65, 66), (2**62, 33)),
    ((17, 18, 19), (16, 17, 18)),
]


def row(values, name):
    """Return a row of a type."""
    return np.array(values).astype(cases.dtype(name))


def check(values, name, func, expected, block_size=None, **attributes):
    """Reduce a row, by the library and by the twin, and compare with a list."""
    x = row(values, name)
    for library in (fastpool, _reference):
        y = library.block_reduce(x, block_size or len(x), func, **attributes)
        assert y.dtype == cases.dtype(block_cases.result_of(func, name, attributes.get("dtype")))
        found = [None if number != number else number for number in y.tolist()]
        assert found == [None if number != number else number for number in expected]


# ------------------------------------------------------------------------------------------- edges


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
@pytest.mark.parametrize("func", ["max", "min", "mean", "sum", "median"])
def test_the_last_block_is_what_there_is(func, name):
    value = 1 if name == "bool" else 7
    check([0, 0, 0, 0, value], name, func, [0, 0, value], block_size=2)
    check([0, 0, 0, 0, value], name, func, [0, 0], block_size=2, edge="trim")


def test_counts():
    check([1, 2, 3, 4, 5], "uint8", "count", [2, 2, 1], block_size=2)
    check([0, 2, 3, 0, 0], "uint8", "count", [1, 1, 0], block_size=2, nodata=0)
    check([NAN, 2, 3, 0, NAN], "float32", "count", [2, 2, 1], block_size=2)
    check([NAN, 2, 3, 0, NAN], "float32", "count", [1, 2, 0], block_size=2, nan="ignore")
    where = np.array([True, False, False, False, True])
    check([1, 2, 3, 4, 5], "uint8", "count", [1, 0, 1], block_size=2, where=where)


def test_return_counts():
    x = np.array([[1, 0, 0], [2, 0, 3]], np.uint8)
    y, counts = fastpool.block_reduce(x, 2, "max", nodata=0, return_counts=True)
    assert y.tolist() == [[2, 3]] and counts.tolist() == [[2, 1]] and counts.dtype == np.int64


# -------------------------------------------------------------------------------------------- mode


@pytest.mark.parametrize("name", cases.INTEGER_NAMES)
@pytest.mark.parametrize("labels", [(1, 2, 3, 4), (4, 3, 2, 1), (1, 2, 2, 1), (2, 1, 1, 2)])
def test_of_equal_counts_the_smallest_label_wins(labels, name):
    check(labels, name, "mode", [1])
    square = row(labels, name).reshape(2, 2)
    assert fastpool.block_reduce(square, 2, "mode").tolist() == [[1]]
    cube = row(range(8, 0, -1), name).reshape(2, 2, 2)
    assert fastpool.block_reduce(cube, 2, "mode").tolist() == [[[1]]]


def test_modes():
    check([True, False, False, True], "bool", "mode", [False])
    check([True, False, True], "bool", "mode", [True])
    check([0, -1, -1, 0], "int8", "mode", [-1])
    check([127, -128], "int8", "mode", [-128])
    check([5, 3, 5, 3, 5, 4, 3], "int64", "mode", [3])
    big = [2**63 - 1, 2**63 - 2, 2**63 - 2]
    check(big, "int64", "mode", [2**63 - 2])
    check([2**64 - 1, 2**64 - 2, 2**64 - 1], "uint64", "mode", [2**64 - 1])
    check([2**53 + 1, 2**53, 2**53 + 1, 2**53], "uint64", "mode", [2**53])


@pytest.mark.parametrize("name", cases.INTEGER_NAMES)
def test_background_loses_against_any_label(name):
    check([0, 0, 0, 5], name, "mode", [0])
    check([0, 0, 0, 5], name, "mode", [5], nodata=0)
    check([0, 6, 5, 0], name, "mode", [5], nodata=0)
    check([0, 0, 0, 0, 3, 0], name, "mode", [0, 3], nodata=0, block_size=4)
    check([0, 0, 0, 5, 5, 5], name, "mode", [0, 5], nodata=0, block_size=3, min_count=2)


@pytest.mark.parametrize("name", [*cases.INTEGER_NAMES, "bool"])
@pytest.mark.parametrize(
    "sizes, taps", [((8, 12), (2, 2)), ((8, 12), (4, 4)), ((6, 8, 8), (2,) * 3)]
)
def test_modes_of_few_labels(sizes, taps, name):
    """Small blocks are those with code of their own."""
    rng = np.random.default_rng(2)
    for labels in (2, 3, 5, 60):
        x = rng.integers(0, labels, sizes).astype(name)
        special = cases.values(sizes, name, "special", labels)
        for array in (x, special, np.where(rng.random(sizes) < 0.5, x, special)):
            for attributes in ({}, {"nodata": 0}, {"nodata": 0, "min_count": 3}):
                block_cases.assert_reduces_as_the_twin(array, taps, "mode", **attributes)


# ------------------------------------------------------------------------------------------ median


def test_medians():
    check([3, 1, 2], "uint8", "median", [2])
    check([1, 2], "uint8", "median", [2])  # 1.5, to even
    check([2, 3], "uint8", "median", [2])
    check([2, 3], "uint8", "median", [3], rounding="half_away")
    check([2, 3], "uint8", "median", [2.5], dtype="float64")
    for rounding, expected in (("floor", -3), ("trunc", -2), ("half_away", -3), ("half_even", -2)):
        check([-2, -3], "int8", "median", [expected], rounding=rounding)
    check([True, False], "bool", "median", [False])
    check([2**63 - 1, 2**63 - 1], "int64", "median", [2**63 - 1])
    check([2**64 - 1, 2**64 - 3], "uint64", "median", [2**64 - 2])
    check([-(2**63), 2**63 - 1], "int64", "median", [0])  # -0.5, to even
    check([-(2**63), 2**63 - 1], "int64", "median", [-1], rounding="floor")
    largest = float(np.finfo(np.float32).max)
    check([largest, largest], "float32", "median", [largest])
    check([INF, -INF], "float32", "median", [NAN])
    check([INF, 1, -INF], "float32", "median", [1])
    check([INF, 1], "float64", "median", [INF])
    check([1, NAN, 3], "float64", "median", [NAN])
    check([1, NAN, 3], "float64", "median", [2], nan="ignore")
    check([5e-324, 0], "float64", "median", [0])  # half of it, to even
    check([1.5e-323, 5e-324], "float64", "median", [1e-323])


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "int32", "float32", "float64"])
def test_medians_are_numpys(name):
    x = cases.summands((9, 25, 4), name, "quarters", 4)
    blocks = x.reshape(3, 3, 5, 5, 2, 2).transpose(0, 2, 4, 1, 3, 5).reshape(3, 5, 2, -1)
    expected = np.median(blocks.astype(np.float64), axis=-1)
    y = fastpool.block_reduce(x, (3, 5, 2), "median")
    expected = expected if block_cases.is_float(name) else np.rint(expected)
    cases.assert_same(y, expected.astype(name))


# ----------------------------------------------------------------- long rows with missing elements


ROUNDED = [{"rounding": rounding} for rounding in block_cases.ROUNDINGS]


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16"])
def test_sums_in_long_rows_saturate(name, dtype):
    x = np.random.default_rng(5).integers(0, 2**16, (4, 300)).astype(name)
    attributes = {"nodata": 3, "dtype": dtype}
    block_cases.assert_reduces_as_the_twin(x, (2, 2), "sum", (1, 2), **attributes)


@pytest.mark.parametrize("name", [*cases.INTEGER_NAMES, *cases.FLOAT_NAMES])
@pytest.mark.parametrize("func", ["max", "min", "mean", "sum"])
@pytest.mark.parametrize(
    "sizes, taps",
    [
        ((5, 515), (2, 2)),
        ((6, 530), (4, 4)),
        ((2, 600), (3, 8)),
        ((3, 4, 300), (2, 4, 2)),
        ((4, 200), (3, 3)),
        ((11, 325), (6, 5)),
        ((3, 5, 390), (2, 3, 6)),
        ((2, 450), (2, 7)),
        ((7, 70), (5, 1)),
        ((1, 1400), (7, 20)),
        ((2, 720), (4, 11)),
    ],  # fmt: skip
)
def test_long_rows_with_missing_elements(sizes, taps, func, name):
    rng = np.random.default_rng(3)
    x = cases.summands(sizes, name, "finite", 4)
    x[rng.random(sizes) < 0.3] = x.ravel()[0]
    if block_cases.is_float(name):
        x[rng.random(sizes) < 0.2] = np.nan
    nodata = x.ravel()[0].item() if name != "bfloat16" else float(x.ravel()[0])
    choices = ROUNDED if func == "mean" and name in ("int8", "uint16") else [{}]
    for attributes in choices:
        for missing in (
            {"nodata": nodata},
            {"nodata": nodata, "where": rng.random(sizes[-1]) < 0.6, "nan": "ignore"},
            {"nodata": nodata, "min_count": 3, "return_counts": True, "where": x != x.ravel()[1]},
        ):
            block_cases.assert_reduces_as_the_twin(x, taps, func, (1, 2), **attributes, **missing)


# ----------------------------------------------------------------------------------- sums and means


def test_sums_saturate():
    for value, name in ((2**63 - 1, "int64"), (-(2**63), "int64"), (2**64 - 1, "uint64")):
        check([value] * 3, name, "sum", [value])
        check([value] * 3, name, "mean", [value])
        check([value] * 3, name, "median", [value])
    check([2**63 - 1, 1, -1], "int64", "sum", [2**63 - 1])
    check([2**63 - 1, 2**63 - 1, -(2**63)], "int64", "sum", [2**63 - 2])
    check([2**31 - 1] * 4, "int32", "sum", [2**33 - 4])
    check([True] * 5, "bool", "sum", [5])
    check([-1, -2], "int8", "sum", [0], dtype="uint64")
    check([200] * 3, "uint8", "sum", [600], dtype="uint16")
    check([2**24, 1, 1], "int32", "sum", [2**24 + 2], dtype="float32")


def test_means_are_rounded_once():
    for rounding, expected in (("half_even", 2), ("half_away", 3), ("trunc", 2), ("floor", 2)):
        check([2, 3], "uint8", "mean", [expected], rounding=rounding)
    for rounding, expected in (("half_even", -2), ("half_away", -3), ("trunc", -2), ("floor", -3)):
        check([-2, -3], "int16", "mean", [expected], rounding=rounding)
    check([True, False], "bool", "mean", [False])
    check([3e38] * 4, "float32", "mean", [INF])
    check([3e38] * 4, "float32", "mean", [float(np.float32(3e38))], numerics="exact")
    check([INF, -INF], "float64", "mean", [NAN])
    check([1, NAN, 3], "float64", "sum", [4], nan="ignore")
    check([1, 2, 2], "uint8", "mean", [float(np.float32(5 / 3))], dtype="float32")


@pytest.mark.parametrize("name", cases.FLOAT_NAMES)
def test_taps_outside_of_the_array_keep_the_order_of_additions(name):
    """The tree is that of the full block: a part of a block is the block with zeros."""
    x = cases.summands((13, 11), name, "finite", 1)
    padded = np.zeros((16, 16), x.dtype)
    padded[:13, :11] = x
    for taps in ((8, 16), (16, 8), (16, 16), (5, 6), (16, 3)):
        full = -(-13 // taps[0]) * taps[0], -(-11 // taps[1]) * taps[1]
        wide = np.zeros(full, x.dtype)
        wide[:13, :11] = x
        y = fastpool.block_reduce(x, taps, "sum")
        cases.assert_same(y, fastpool.block_reduce(wide, taps, "sum"), f"{taps}")
        where = np.zeros(full, bool)
        where[:13, :11] = True
        y = fastpool.block_reduce(x, taps, "mean")
        cases.assert_same(y, fastpool.block_reduce(wide, taps, "mean", where=where), f"{taps}")


# ------------------------------------------------------------------------- variance and deviation


def test_variances_where_others_go_wrong():
    check(np.float32(1e8) + np.float32([0, 8, 16, 24]), "float32", "var", [80])
    check([100] * 100, "float16", "var", [0])
    check([100] * 100, "float16", "std", [0])
    check([60000, -60000], "float16", "std", [60000])
    check([60000, -60000], "float16", "var", [INF])
    check([60000, -60000], "float16", "var", [3.6e9], dtype="float64")
    check([1, 2, 3, 4], "uint8", "var", [1.25])
    check([1, 2, 3, 4], "uint8", "std", [math.sqrt(1.25)])
    check([True, False], "bool", "std", [0.5])
    check([1, 2, 3, 4], "int16", "var", [float(np.float32(5 / 3))], dtype="float32", ddof=1)


@pytest.mark.parametrize("func", ["std", "var"])
@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_spread_of_what_has_none(name, func):
    for kind in range(5):
        values = np.full((3, 50), cases.summands((1, 1), name, "constant", kind))
        y = fastpool.block_reduce(values, (3, 7), func)
        assert (y == 0).all(), values[0, 0]
    assert np.isnan(fastpool.block_reduce(values, (3, 7), func, ddof=21)).all()
    y = fastpool.block_reduce(values, (3, 7), func, ddof=20)
    assert (y[0, :7] == 0).all() and np.isnan(y[0, 7])
    if block_cases.is_float(name):
        for special in (NAN, INF, -INF):
            values[0, 0] = special
            y = fastpool.block_reduce(values, (3, 7), func)
            assert np.isnan(y[0, 0]) and (y[0, 1:] == 0).all()
        check([1, NAN, 1], name, func, [0], nan="ignore")
        check([NAN, NAN, 1], name, func, [NAN], nan="ignore", ddof=1)
        check([NAN, NAN, 1], name, func, [-1], nan="ignore", min_count=2, nodata=-1)


def spreads(name, taps, rng):
    """Yield rows whose variance the textbook's formula, or one pass of it, gets wrong."""
    if name == "bool":
        yield rng.random(taps) < 0.01
        return
    if not block_cases.is_float(name):
        low, high = int(cases.lowest(name)), int(cases.highest(name))
        yield rng.choice(row([low, high], name), taps)
        yield row([high - int(i) for i in rng.integers(0, 5, taps)], name)
        yield row([low + int(i) for i in rng.integers(0, 5, taps)], name)
        yield np.array([high] * (taps - 1) + [low], name)
        yield cases.values((taps,), name, "bits", 1)
        return
    most = {"float16": 65504.0, "bfloat16": 3.38e38, "float32": 3.4e38}.get(name, 1.79e308)
    noise = rng.standard_normal(taps)
    least = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149}.get(name, 5e-324)
    for scale in (1, most / 8, most / 1e4, math.sqrt(most), least * 3, least * 1e3, least * 2**12):
        yield row(noise * scale, name)
        yield row(scale + noise * scale * 1e-3, name)
    for scale in (1e4, 1e8, 1e15):
        if scale < most:
            yield row(scale + noise, name)
    yield rng.choice(row([most * 0.999, -most * 0.999], name), taps)
    yield np.where(np.arange(taps) == taps // 2, row([most * 0.999], name), row([1], name))
    yield cases.summands((taps,), name, "finite", 1)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
@pytest.mark.parametrize("taps", [2, 3, 4, 16, 100, 1000])
def test_variances_of_extreme_numbers(taps, name):
    rng = np.random.default_rng(taps)
    for number, x in enumerate(spreads(name, taps, rng)):
        for func in ("var", "std"):
            for ddof in (0, 1) if number % 3 == 0 else (0,):
                y = block_cases.assert_reduces_as_the_twin(x, taps, func, ddof=ddof)
                assert y[0] >= 0
        # Blocks of several rows, and elements in another order in memory.
        block = np.resize(x, (3, taps)).T
        block_cases.assert_reduces_as_the_twin(block, (taps, 2), "var")


@pytest.mark.parametrize("name", ["bool", "int8", "uint8", "int16", "uint16"])
def test_deviations_of_small_integers_are_the_roots_of_the_variances(name):
    for kind in ("bits", "special", "ties"):
        x = cases.values((20, 30), name, kind, 0)
        variances = fastpool.block_reduce(x, (3, 4), "var")
        cases.assert_same(fastpool.block_reduce(x, (3, 4), "std"), np.sqrt(variances))
        exact = Fraction(1, 144) * _moments(x[:3, :4])
        assert Fraction(variances[0, 0].item()) == Fraction(float(exact))


def _moments(block):
    values = block.astype(object).ravel() + 0
    return len(values) * (values * values).sum() - values.sum() ** 2


@pytest.mark.parametrize("name", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("ddof", [0, 1])
def test_variances_are_about_numpys(ddof, name):
    x = cases.summands((12, 20), name, "quarters", 9)
    blocks = x.reshape(4, 3, 5, 4).swapaxes(1, 2).astype(np.float64)
    for func in (np.var, np.std):
        y = fastpool.block_reduce(x, (3, 4), func.__name__, ddof=ddof)
        np.testing.assert_allclose(y, func(blocks, axis=(2, 3), ddof=ddof), rtol=1e-6)


# ---------------------------------------------------------------------------------- missing results


def test_missing_results():
    check([0, 0, 5, 0], "uint8", "max", [0, 5], nodata=0, block_size=2)
    check([9, 9, 5, 9], "uint8", "mean", [9, 5], nodata=9, block_size=2)
    check([9, 9, 5, 9], "uint8", "mean", [NAN, 5], nodata=9, block_size=2, dtype="float64")
    check([9, 9, 5, 9], "uint8", "var", [NAN, 0], nodata=9, block_size=2)
    check([9, 9, 5, 9], "uint8", "sum", [0, 5], nodata=9, block_size=2)
    check([9, 9, 5, 9], "uint8", "sum", [9, 5], nodata=9, block_size=2, min_count=1)
    check([9, 9, 5, 9], "float32", "var", [9, 0], nodata=9, block_size=2)
    check([NAN, NAN, 5, NAN], "float32", "max", [NAN, 5], nan="ignore", block_size=2)
    check([NAN, NAN, 5, NAN], "float32", "sum", [0, 5], nan="ignore", block_size=2)
    check([NAN, NAN, 5, NAN], "float32", "min", [-1, 5], nan="ignore", nodata=-1, block_size=2)
    check([NAN, -1, 5, NAN], "float32", "max", [NAN, NAN], nodata=-1, block_size=2)
    check([NAN, 1], "float64", "max", [NAN], min_count=2)
    check([1, 2, 3], "float64", "max", [2, NAN], min_count=2, block_size=2)
    check([1, 2, 3], "int8", "max", [2, -7], min_count=2, nodata=-7, block_size=2)
    for nodata in (0.0, -0.0, np.float32(0), np.uint8(0), False):
        check([0, 8, 6, 0], "uint8", "min", [6], nodata=nodata)
    check([0.1, 1], "float32", "max", [1], nodata=0.1)
    check([0.1, 1], "float32", "min", [1], nodata=0.1)
    check([-0.0, 0.0, 3], "float16", "mean", [3], nodata=0)
    check([1, INF], "float32", "max", [1], nodata=1e300)


def test_where_broadcasts():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for where in ([True, False, True, False], [[True], [False], [True]], True, [[True]]):
        where = np.array(where)
        full = np.broadcast_to(where, x.shape)
        y, counts = fastpool.block_reduce(x, 2, "sum", where=where, return_counts=True)
        expected = fastpool.block_reduce(np.where(full, x, 0), 2, "sum")
        cases.assert_same(y, expected)
        cases.assert_same(counts, fastpool.block_reduce(full, 2, "sum"))


# ------------------------------------------------------------------------------------ large blocks


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
@pytest.mark.parametrize("func", block_cases.FUNCS)
def test_large_blocks(func, name):
    if func == "mode" and block_cases.is_float(name):
        pytest.skip("floats have no mode")
    for number, (shape, taps) in enumerate(LARGE):
        kind = ["normal", "ties", "bits", "quarters"][number % 4]
        x = cases.summands(shape, name, kind, number)
        block_cases.assert_reduces_as_the_twin(x, taps, func, (1, 2))
        if number % 3 == 0:
            attributes = {"nodata": x.ravel()[0], "return_counts": True}
            if block_cases.is_float(name):
                attributes["nan"] = "ignore"
            block_cases.assert_reduces_as_the_twin(x, taps, func, **attributes)
