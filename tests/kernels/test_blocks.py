"""Blocks and pyramids give exactly what the slow twin gives, and refuse bad arguments."""

import random
from itertools import product

import numpy as np
import pytest

import block_cases
import cases
import fastpool
from fastpool import _reference
from fastpool._planning import blocks as planning
from fastpool._running import blocks as running_blocks
from fastpool._running import builds as running

ANY = ValueError, TypeError


# ------------------------------------------------------------------------------------- random calls


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
@pytest.mark.parametrize("func", block_cases.FUNCS)
def test_random_calls(func, name):
    if func == "mode" and block_cases.is_float(name):
        pytest.skip("floats have no mode")
    rng = random.Random(f"{func} {name}")
    for _ in range(40):
        x = block_cases.drawn_array(rng, name)
        before = x.tobytes()
        taps = block_cases.drawn_blocks(rng, x.shape)
        attributes = block_cases.drawn_attributes(rng, x, taps, func)
        block_size = rng.choice([tuple(taps), taps])
        y = block_cases.assert_reduces_as_the_twin(x, block_size, func, (1, 2), **attributes)
        assert x.tobytes() == before, "the input was changed"
        contiguous = np.array(x, x.dtype.newbyteorder("="), order="C")
        again = fastpool.block_reduce(contiguous, block_size, func, **attributes)
        again = again[0] if attributes["return_counts"] else again
        cases.assert_same(again, y, "of a contiguous array")
        if not attributes.pop("return_counts"):
            _check_out(x, block_size, func, y, attributes, rng.choice(cases.ARRANGEMENTS[:4]))


def _check_out(x, block_size, func, expected, attributes, how):
    """The result goes into an array that the caller has."""
    out = cases.arranged(np.ones_like(expected), how)
    y = fastpool.block_reduce(x, block_size, func, **attributes, out=out)
    assert y is out
    cases.assert_same(out, expected, f"out, {how}")


@pytest.mark.parametrize("func", block_cases.FUNCS)
def test_one_number_is_the_block_of_every_axis(func):
    x = np.random.default_rng(0).integers(0, 5, (5, 6, 7)).astype(np.int16)
    y = fastpool.block_reduce(x, 2, func)
    for block_size in ((2, 2, 2), [2, 2, 2], np.array([2, 2, 2]), np.int8(2)):
        cases.assert_same(fastpool.block_reduce(x, block_size, func), y)
    assert y.shape == (3, 3, 4)


@pytest.mark.parametrize("rounding", ["half_even", "half_away", "trunc", "floor"])
@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16"])
def test_means_of_small_integers_in_long_rows(name, rounding):
    rng = np.random.default_rng(0)
    info = np.iinfo(name)
    for block in ((2, 2), (1, 4), (4, 8), (2, 2, 2), (3, 2), (16, 8)):
        for cols in (64, 129, 200, 513):
            shape = (2 * block[0] + 1, *block[1:-1], cols * block[-1] - cols % 2)
            for x in (
                rng.integers(info.min, info.max, shape, name, endpoint=True),
                rng.integers(max(info.min, -2), 3, shape, name),
                np.full(shape, info.min, name),
                np.full(shape, info.max, name),
            ):
                y = fastpool.block_reduce(x, block, "mean", rounding=rounding)
                cases.assert_same(y, _mean_of_blocks(x, block, rounding), f"{block}, {cols}")


def _mean_of_blocks(x, block, rounding):
    sums, counts = (
        fastpool.block_reduce(x, block, func).astype(np.int64) for func in ("sum", "count")
    )
    down, rest = np.divmod(sums, counts)
    up = {
        "floor": 0 * rest,
        "trunc": (rest > 0) & (sums < 0),
        "half_even": (2 * rest > counts) | ((2 * rest == counts) & (down % 2 == 1)),
        "half_away": (2 * rest > counts) | ((2 * rest == counts) & (sums > 0)),
    }[rounding]
    return (down + up).astype(x.dtype)


@pytest.mark.parametrize("labels", [3, 200, 1500, 1 << 40])
@pytest.mark.parametrize("name", ["int16", "uint32", "uint64"])
def test_modes_of_large_blocks(name, labels):
    rng = np.random.default_rng(labels)
    x = rng.integers(0, min(labels, np.iinfo(name).max), (2, 3, 4096)) << (16 * (name == "uint64"))
    for values in (x, np.repeat(x, 5, axis=-1)):
        values = values.astype(name)
        y = fastpool.block_reduce(values, (2, 3, 4096), "mode")
        cases.assert_same(y, _reference.block_reduce(values, (2, 3, 4096), "mode"))


@pytest.mark.parametrize("edge, extents", [("keep", (3, 0, 2)), ("trim", (2, 0, 1))])
def test_no_elements(edge, extents):
    for func in block_cases.FUNCS:
        y = fastpool.block_reduce(np.zeros((5, 0, 3), np.uint8), 2, func, edge=edge)
        assert y.shape == extents
    y = fastpool.block_reduce(np.zeros((6, 0, 4), np.uint8), 2, "max", edge="exact")
    assert y.shape == (3, 0, 2)


@pytest.mark.parametrize("func", block_cases.FUNCS)
def test_blocks_larger_than_the_array_are_quick(func):
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    y = fastpool.block_reduce(x, x.shape, func)
    with cases.bounds():
        for block_size in (2**31, 2**62, (2, 2**62, 4)):
            got = fastpool.block_reduce(x, block_size, func, num_threads=1)
            cases.assert_same(got, y, f"{block_size}")
        assert fastpool.block_reduce(x, 2**62, func, edge="trim").shape == (0, 0, 0)


# ---------------------------------------------------------------------------------------- relations


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
@pytest.mark.parametrize("func", ["max", "min", "mode", "median", "count", "mean", "sum"])
def test_flips_and_transposes(func, name):
    if func == "mode" and block_cases.is_float(name):
        pytest.skip("floats have no mode")
    numerics = {"numerics": "exact"} if func in ("mean", "sum") else {}
    for seed, kind in enumerate(["ties", "bits", "quarters"]):
        x = cases.summands((8, 9, 6), name, kind, seed)
        taps = (4, 3, 2)
        y = fastpool.block_reduce(x, taps, func, **numerics)
        for axis in range(3):
            flipped = fastpool.block_reduce(np.flip(x, axis), taps, func, **numerics)
            cases.assert_same(np.flip(flipped, axis), y, f"axis {axis}")
        turned = fastpool.block_reduce(x.T, taps[::-1], func, **numerics)
        cases.assert_same(turned.T, y, "transposed")


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
@pytest.mark.parametrize("layout", ["W", "HW", "DHW"])
@pytest.mark.parametrize("nan", ["propagate", "ignore"])
def test_poolings_with_windows_side_by_side(nan, layout, name):
    rng = random.Random(f"{layout} {name}")
    for kind in ("ties", "special", "rare", "normal"):
        sizes = [rng.randint(1, 13) for _ in layout]
        taps = [rng.randint(1, 6) for _ in layout]
        x = cases.summands(sizes, name, kind, 1)
        windows = {"strides": taps, "ceil_mode": True, "layout": layout, "nan": nan}
        for func, pool in (("max", fastpool.max_pool), ("min", fastpool.min_pool)):
            y = fastpool.block_reduce(x, taps, func, nan=nan)
            cases.assert_same(y, pool(x, taps, **windows), func)
        for numerics in ("pairwise", "exact"):
            y = fastpool.block_reduce(x, taps, "mean", nan=nan, numerics=numerics)
            expected = fastpool.avg_pool(x, taps, **windows, numerics=numerics)
            cases.assert_same(y, expected, numerics)
        for rounding in block_cases.ROUNDINGS if not block_cases.is_float(name) else []:
            y = fastpool.block_reduce(x, taps, "mean", nan=nan, rounding=rounding)
            cases.assert_same(y, fastpool.avg_pool(x, taps, **windows, rounding=rounding), rounding)


@pytest.mark.parametrize("func", ["max", "mean", "sum", "median", "std", "var", "count"])
@pytest.mark.parametrize("name", ["float32", "float64", "int64", "uint8"])
def test_parts_of_an_array_give_parts_of_the_result(name, func):
    x = cases.summands((23, 31), name, "normal", 3)
    y = fastpool.block_reduce(x, (4, 5), func)
    for rows in (slice(0, 3), slice(3, 6)):
        for cols in (slice(0, 2), slice(2, 7)):
            part = x[4 * rows.start : 4 * rows.stop, 5 * cols.start : 5 * cols.stop]
            cases.assert_same(fastpool.block_reduce(part, (4, 5), func), y[rows, cols])


@pytest.mark.parametrize("func", block_cases.FUNCS)
def test_missing_elements_are_one_thing_by_any_argument(func):
    """`where`, `nodata` and NaN say the same, but for the result of a block without elements."""
    rng = np.random.default_rng(5)
    x = rng.integers(1, 5, (9, 10))
    where = rng.random(x.shape) < 0.5
    where[::3, ::2] = True
    x = np.where(where, x, 0)
    y = fastpool.block_reduce(x, (3, 2), func, where=where, nodata=-1)
    cases.assert_same(fastpool.block_reduce(x, (3, 2), func, nodata=0), y, "nodata")
    if func == "mode":
        return
    floats = x.astype(np.float64)
    y = fastpool.block_reduce(floats, (3, 2), func, where=where)
    cases.assert_same(fastpool.block_reduce(floats, (3, 2), func, nodata=0), y, "nodata of floats")
    floats[~where] = np.nan
    ignoring = fastpool.block_reduce(floats, (3, 2), func, nan="ignore")
    cases.assert_same(ignoring, y, "NaN that is ignored")
    ignoring = fastpool.block_reduce(floats, (3, 2), func, nodata=np.nan)
    cases.assert_same(ignoring, y, "NaN as nodata")


# ----------------------------------------------------------------------------------------- pyramids


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
@pytest.mark.parametrize("func", block_cases.FUNCS)
def test_levels_are_blocks_of_level_0(func, name):
    if func == "mode" and block_cases.is_float(name):
        pytest.skip("floats have no mode")
    rng = random.Random(f"{func} {name}")
    for _ in range(6):
        x = block_cases.drawn_array(rng, name)
        factors = [rng.choice([1, 2, 2, 3, 4]) for _ in x.shape]
        factors[rng.randrange(x.ndim)] = 2
        attributes = block_cases.drawn_attributes(rng, x, factors, func)
        del attributes["return_counts"]
        if attributes["edge"] == "exact":
            attributes["edge"] = "keep"
        levels = rng.randint(1, 4)
        expected = _reference.pyramid(x, levels, factors, func, **attributes)
        for build in cases.BUILDS:
            with running.using(build):
                found = fastpool.pyramid(
                    x, levels, factors, func, **attributes, num_threads=rng.choice([1, 2])
                )
                assert isinstance(found, list) and len(found) == levels
                for level, y in enumerate(found, 1):
                    what = f"level {level} of {x.shape} by {factors}, {attributes}"
                    ulps = block_cases.ulps_of(func, name)
                    block_cases.assert_close(y, expected[level - 1], ulps, what)
                    blocks = [taps**level for taps in factors]
                    y_of_blocks = fastpool.block_reduce(x, blocks, func, **attributes)
                    cases.assert_same(y, y_of_blocks, what)


def _segments(rng, shape, size):
    """Return labels from 0 to 2 of cubes that begin anywhere."""
    starts = rng.integers(0, size, len(shape))
    places = [(np.arange(n) + at) // size for n, at in zip(shape, starts, strict=True)]
    return rng.integers(0, 3, [place[-1] + 1 for place in places])[np.ix_(*places)]


@pytest.mark.parametrize("block", [(1, 2, 2), (2, 2, 2), (2, 1, 2), (1, 1, 2), (1, 2, 4)])
@pytest.mark.parametrize("name", ["int8", "uint16", "int32", "uint64", "bool"])
def test_modes_of_segments(name, block):
    """Vectors hold one label, or blocks of one, or of several. Rows end in parts of vectors."""
    rng = np.random.default_rng(sum(map(ord, name)))
    labels = np.array([cases.lowest(name), 1, cases.highest(name)], name)
    for columns, size in product((128, 202, 391), (1, 2, 7, 40)):
        x = labels[_segments(rng, (4, 6, columns), size)]
        where = rng.random(x.shape) < 0.9
        for missing in ({}, *({"nodata": k} for k in labels), {"nodata": 1, "where": where}):
            for need in (None, 2) if missing else (None,):
                given = {**missing, "min_count": need, "return_counts": True}
                expected = _reference.block_reduce(x, block, "mode", **given)
                turned = {**given, "where": where.T} if "where" in given else given
                for build in cases.BUILDS:
                    with running.using(build):
                        found = fastpool.block_reduce(x, block, "mode", **given)
                        transposed = fastpool.block_reduce(x.T, block[::-1], "mode", **turned)
                        alone = fastpool.block_reduce(
                            x, block, "mode", **{**given, "return_counts": False}
                        )
                    cases.assert_same(alone, expected[0], f"{build}, {given}, without counts")
                    for y, z, of_twin in zip(found, transposed, expected, strict=True):
                        cases.assert_same(y, of_twin, f"{build}, {given}")
                        cases.assert_same(z.T, of_twin, f"{build}, {given}, transposed")


# Extents, factors, levels. In one go: rows of memory with more blocks than lanes, and with parts of
# blocks, that are columns on one, two or three levels; first blocks of 64 elements.
IN_ONE_GO = [
    ((5, 9, 301), (2, 2, 2), 5),
    ((9, 333), (2, 2), 5),
    ((3, 150), (1, 2), 4),
    ((70, 8, 70), (4, 4, 4), 2),
    ((700,), 3, 6),
    ((1, 64, 1), 2, 7),
]


@pytest.mark.parametrize("row", [1, 64])
@pytest.mark.parametrize("shape, factor, levels", IN_ONE_GO)
@pytest.mark.parametrize("name", ["int8", "uint16", "int32", "uint64", "bool"])
def test_levels_of_modes_in_one_go(name, shape, factor, levels, row, monkeypatch):
    rng = np.random.default_rng(levels)
    monkeypatch.setattr(running_blocks, "_ROW", row)  # so that tiles are small
    monkeypatch.setattr(running_blocks, "_FEWEST", row // 2)
    segments = np.kron(rng.integers(0, 5, shape), np.ones((1,) * len(shape[1:]) + (7,), int))
    few, any_number = rng.integers(0, 3, shape), rng.integers(0, 2**62, shape)
    large = _segments(rng, shape, 40)
    for x in (segments[..., 3 : 3 + shape[-1]], large, few, any_number):
        x = x.astype(name)
        where = rng.random(shape) < 0.8
        for missing in ({}, {"nodata": 1}, {"nodata": 0, "where": where, "min_count": 2}):
            for edge in ("keep", "trim"):
                given = {**missing, "edge": edge, "func": "mode"}
                blocks = [np.power(factor, level) for level in range(1, levels + 1)]
                expected = [fastpool.block_reduce(x, k.tolist(), **given) for k in blocks]
                for build in cases.BUILDS:
                    with running.using(build):
                        found = fastpool.pyramid(x, levels, factor, **given)
                    for y, z in zip(found, expected, strict=True):
                        cases.assert_same(y, z, f"{build}, {given}")


@pytest.mark.parametrize(
    "step", [1, 1134903170, 4807526976, 2**32, pow(0x9E3779B97F4A7C15, -1, 2**64)]
)
def test_no_labels_of_a_pyramid_take_long(step):
    """A table of labels by a multiplication would have them all in one place."""
    x = (np.arange(1 << 16, dtype=np.uint64) * np.uint64(step)).reshape(256, 256)
    with cases.bounds():
        levels = fastpool.pyramid(x, 8, 2, "mode")
    assert levels[-1] == x.min()


def test_the_default_pyramid_has_means_by_two():
    x = cases.values((13, 10), "uint8", "bits", 0)
    found = fastpool.pyramid(x, 3)
    assert [y.shape for y in found] == [(7, 5), (4, 3), (2, 2)]
    for level, y in enumerate(found, 1):
        cases.assert_same(y, fastpool.block_reduce(x, 2**level, "mean"))
    trimmed = fastpool.pyramid(x, 4, edge="trim")
    assert [y.shape for y in trimmed] == [(6, 5), (3, 2), (1, 1), (0, 0)]


def test_64_levels():
    x = cases.values((5, 3), "int32", "bits", 0)
    with cases.bounds():
        found = fastpool.pyramid(x, 64, (2, 1), "max", num_threads=1)
    assert [y.shape for y in found] == [(3, 3), (2, 3)] + [(1, 3)] * 62
    cases.assert_same(found[63], x.max(axis=0, keepdims=True))


# ------------------------------------------------------------------------------------ bad arguments

X = np.arange(20, dtype=np.uint8).reshape(4, 5)
FLOATS = X.astype(np.float32)

BAD = [
    # the array, func, arguments, the exception, what its message begins with
    *[(X, "max", {"block_size": size}, ANY, "block_size") for size in (0, -1, 2.0, True, None)],
    *[(X, "max", {"block_size": size}, ANY, "block_size") for size in ("2", (2,), (2, 2, 2))],
    *[(X, "max", {"block_size": size}, ANY, "block_size") for size in ((2, 0), (2, 1.5), ())],
    (X, "max", {"edge": "exact"}, ValueError, "block_size"),
    (X, "average", {}, ValueError, "func"),
    (X, np.mean, {}, TypeError, "func"),
    (X, None, {}, ANY, "func"),
    *[(X, "max", {"edge": edge}, ANY, "edge") for edge in ("drop", 1)],
    *[(X, "var", {"ddof": ddof}, ANY, "ddof") for ddof in (-1, "1", None)],
    (X, "mean", {"ddof": 1}, ValueError, "ddof"),
    (X, "max", {"ddof": 1}, ValueError, "ddof"),
    *[(FLOATS, func, {"numerics": "exact"}, ValueError, "numerics") for func in ("max", "median")],
    *[(FLOATS, func, {"numerics": "exact"}, ValueError, "numerics") for func in ("var", "count")],
    (FLOATS, "mean", {"numerics": "fast"}, ValueError, "numerics"),
    (X, "mean", {"rounding": "up"}, ValueError, "rounding"),
    (X, "mean", {"rounding": "floor", "dtype": "float64"}, ValueError, "rounding"),
    *[(X, func, {"rounding": "floor"}, ValueError, "rounding") for func in ("max", "sum", "std")],
    *[(FLOATS, func, {"rounding": "floor"}, ValueError, "rounding") for func in ("mean", "median")],
    *[(X, func, {"dtype": "float64"}, ANY, "dtype") for func in ("max", "min", "mode", "count")],
    *[(X, func, {"dtype": "float16"}, TypeError, "dtype") for func in ("mean", "median", "sum")],
    *[(FLOATS, func, {"dtype": "int64"}, TypeError, "dtype") for func in ("mean", "sum", "var")],
    *[(FLOATS, func, {"dtype": "float16"}, TypeError, "dtype") for func in ("mean", "sum", "std")],
    (X, "mean", {"dtype": "int8"}, ValueError, "dtype"),
    (X, "sum", {"dtype": "uint8"}, ValueError, "dtype"),
    *[(X, "std", {"dtype": dtype}, TypeError, "dtype") for dtype in ("int64", 0, "", ())],
    (X, "mean", {"dtype": "complex64"}, TypeError, "dtype"),
    *[(X, "max", {"nan": nan}, ANY, "nan") for nan in ("omit", 1)],
    *[(X, "max", {"nodata": number}, ValueError, "nodata") for number in (256, -1, 2.5, 2**70)],
    *[(X, "max", {"nodata": number}, ValueError, "nodata") for number in (np.nan, np.inf)],
    *[(X, "max", {"nodata": value}, ANY, "nodata") for value in ("0", [0, 1], 1j)],
    *[(FLOATS, "max", {"nodata": value}, ANY, "nodata") for value in ("0", [0, 1], 1j)],
    (X > 3, "max", {"nodata": 2}, ValueError, "nodata"),
    (X.astype(np.int8), "mean", {"nodata": -1, "dtype": "uint64"}, ValueError, "nodata"),
    *[(X, func, {"where": X > 3}, ValueError, "nodata") for func in ("max", "mean", "mode")],
    *[(X, func, {"min_count": 2}, ValueError, "nodata") for func in ("max", "sum", "median")],
    *[(FLOATS, "max", {"min_count": n}, ANY, "min_count") for n in (0, -1, 5, 2.0, True)],
    (X, "count", {"min_count": 1}, ValueError, "min_count"),
    *[(FLOATS, "max", {"where": w}, TypeError, "where") for w in (X, FLOATS, "true")],
    *[(FLOATS, "max", {"where": np.ones(s, bool)}, ValueError, "where") for s in (4, (1, 4, 5))],
    (FLOATS, "max", {"where": np.ones((2, 4, 5), bool)}, ValueError, "where"),
    (FLOATS, "mode", {}, TypeError, "x"),
    (X.astype(np.complex64), "max", {}, TypeError, "x"),
    (X.astype(object), "max", {}, TypeError, "x"),
    (np.array(1, np.uint8), "max", {}, ValueError, "x"),
    (np.ma.masked_array(X, X > 3), "max", {}, TypeError, "x"),
    (X, "max", {"num_threads": 0}, ANY, "num_threads"),
    (X, "max", {"layout": "HW"}, TypeError, ".*layout"),
]


@pytest.mark.parametrize("x, func, bad, exception, name", BAD)
def test_errors_name_the_argument_and_write_nothing(x, func, bad, exception, name):
    result = block_cases.result_of(func, x.dtype.name, bad.get("dtype"))
    out = np.full((2, 3), 77).astype(result if result in cases.DTYPE_NAMES else "uint8")
    arguments = {"block_size": 2} | bad
    block_size = arguments.pop("block_size")
    with cases.bounds(), pytest.raises(exception, match=rf"^{name}\b"):
        fastpool.block_reduce(x, block_size, func, **arguments, out=out)
    assert (out == np.full_like(out, 77)).all()
    with pytest.raises(exception, match=rf"^{name}\b"):
        fastpool.block_reduce(x, block_size, func, **arguments)
    if name != "block_size":
        with pytest.raises(exception, match=rf"^{name}\b"):
            fastpool.pyramid(x, 1, 2, func, **arguments)


def test_a_masked_array_is_refused_with_advice():
    with pytest.raises(TypeError, match=r"x\.data.*where=~x\.mask"):
        fastpool.block_reduce(np.ma.masked_array(X, X > 3), 2, "max")


@pytest.mark.parametrize("flag", [2, "no", X])
def test_return_counts_is_a_bool(flag):
    with pytest.raises(ANY, match="^return_counts"):
        fastpool.block_reduce(X, 2, "max", return_counts=flag)


@pytest.mark.parametrize("func", block_cases.FUNCS)
def test_bad_outputs(func):
    result = block_cases.result_of(func, "uint8")
    right = fastpool.block_reduce(X, 2, func)
    wrong_type = "float64" if result == "int64" else "int64"
    for out in (np.zeros((3, 2), result), np.zeros((2, 3), wrong_type), [[0] * 3] * 2):
        with pytest.raises(ANY, match=r"^out\b"):
            fastpool.block_reduce(X, 2, func, out=out)
        assert not np.any(out)
    out = np.zeros_like(right)
    with pytest.raises(ANY, match=r"^(out|return_counts)\b"):
        fastpool.block_reduce(X, 2, func, out=out, return_counts=True)
    assert not out.any()


BAD_PYRAMIDS = [
    *[({"levels": levels}, "levels") for levels in (0, -1, 65, 2.0, True, None, (1,), 2**200)],
    *[({"factor": factor}, "factor") for factor in (1, (1, 1), 0, -2, 2.0, True, None, "2")],
    *[({"factor": factor}, "factor") for factor in ((2,), (2, 2, 2), (2, 0), (2, 2.0))],
    ({"edge": "exact", "levels": 3, "factor": (2, 1)}, "(factor|block_size|edge|levels)"),
    ({"min_count": 5, "nodata": 0}, "min_count"),
    ({"func": "average"}, "func"),
    ({"out": None}, ".*out"),
    ({"return_counts": True}, ".*return_counts"),
]


@pytest.mark.parametrize("bad, name", BAD_PYRAMIDS)
def test_errors_of_pyramids(bad, name):
    arguments = {"levels": 2} | bad
    levels = arguments.pop("levels")
    with cases.bounds(), pytest.raises(ANY, match=rf"^{name}\b"):
        fastpool.pyramid(X, levels, **arguments)


@pytest.mark.parametrize("name", ["uint8", "int16", "float32", "float64", "int64"])
def test_long_rows_of_blocks_of_any_width(name, isa):
    rng, dtype = np.random.default_rng(5), np.dtype(name)
    for width in range(1, 60):
        rows = 1 + width % 2
        x = rng.integers(1, 100, (rows, 66 * width)).astype(dtype)
        blocks = x.reshape(rows, 66, width).swapaxes(0, 1).reshape(66, -1).astype(dtype)
        there = blocks != 3
        count = there.sum(1).clip(1).astype(dtype if dtype.kind == "f" else float)
        sums = np.where(there, blocks, 0).sum(1)
        means = sums / count if dtype.kind == "f" else np.rint(sums / count)
        for func, expected in ("max", np.where(there, blocks, 0).max(1)), ("mean", means):
            expected = np.where(there.any(1), expected, 3).astype(dtype)
            y = fastpool.block_reduce(x, (rows, width), func, nodata=3)
            np.testing.assert_array_equal(y[0], expected, f"{func} {width}")


@pytest.mark.parametrize("func", block_cases.FUNCS)
def test_fortran_order(func):
    """Blocks of a transposed array have the same bits. They need no copy of integers in C order."""
    rng = np.random.default_rng(len(func))
    for name in ("uint8", "int64", "float32"):
        if func == "mode" and name == "float32":
            continue
        x = rng.integers(0, 9, (70, 33, 3)).astype(name)
        if name == "int64":
            x *= 2**59 + 12345  # (variances of large numbers depend on the order of axes)
        turned, where = np.asfortranarray(x), x > 1
        for attributes in ({}, {"where": where}, {"edge": "trim"}):
            attributes = {"nodata": int(x[0, 0, 0]), **attributes}
            y, counts = fastpool.block_reduce(x, (2, 3, 1), func, return_counts=True, **attributes)
            found = fastpool.block_reduce(turned, (2, 3, 1), func, return_counts=True, **attributes)
            for a, b in zip(found, (y, counts), strict=True):
                assert a.flags.f_contiguous
                cases.assert_same(np.ascontiguousarray(a), b, f"{func} {name}")
            into = np.empty(y.shape, y.dtype)
            fastpool.block_reduce(turned, (2, 3, 1), func, out=into, **attributes)
            cases.assert_same(into, y, "out")


def test_a_repeated_call_does_not_plan_again(monkeypatch):
    fastpool._api.blocks._plans.clear()
    planned, per_axis = [], planning.per_axis
    monkeypatch.setattr(planning, "per_axis", lambda *a: planned.append(a) or per_axis(*a))
    x = np.arange(7 * 9, dtype=np.uint8).reshape(7, 9)
    for nodata in (3, np.uint8(4)):
        for _ in range(3):
            fastpool.block_reduce(x, [2, 3], "mean")
            fastpool.block_reduce(x, (2, 3), "max", where=x > 5, nodata=nodata)
    assert len(planned) == 3


def test_axes_of_one_element():
    x = np.full((1,) * 64, 7, np.uint8)
    for func in ("max", "mean", "mode", "sum"):
        assert fastpool.block_reduce(x, 2, func).ravel() == [7]
    y = fastpool.block_reduce(np.arange(6.0).reshape(1, 2, 1, 3, 1), (3, 2, 2, 2, 1), "mean")
    np.testing.assert_array_equal(y, np.array([2.0, 3.5]).reshape(1, 1, 1, 2, 1))


def test_numbers_beyond_all_types():
    x = np.ones((4, 4), np.float32)
    with pytest.raises(ValueError, match="^factor: "):
        fastpool.pyramid(x, 64, 2**1000)
    for nodata in (10**400, -(10**400)):
        np.testing.assert_array_equal(fastpool.block_reduce(x, 2, "mean", nodata=nodata), x[:2, :2])


def test_lists_beyond_any_memory():
    """A broadcast array is small, and the list of its elements is not."""
    for count in (2**60 - 1, 2**64 // 12 + 1):
        x = np.broadcast_to(np.int32(1), (count,))
        with pytest.raises(MemoryError, match="lists"):
            fastpool.block_reduce(x, count, "mode")


def test_unaligned_output():
    x = np.arange(8.0)
    out = np.zeros(33, np.uint8)[1:].view(np.float64)
    assert fastpool.block_reduce(x, 2, "std", out=out) is out
    np.testing.assert_array_equal(out, np.full(4, 0.5))


def test_nodata_is_compared_as_an_integer():
    """NumPy takes the float 2**63 for equal to the greatest int64."""
    with pytest.raises(ValueError, match="^nodata: "):
        fastpool.block_reduce(np.array([2**62]), 1, "std", nodata=np.float64(2**63))
