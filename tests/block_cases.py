"""Random blocks, and the comparison with the slow twin that allows variances their tolerance."""

import math

import numpy as np

import cases
import fastpool
from fastpool import _reference
from fastpool._running import builds as running

FUNCS = ["max", "min", "mean", "sum", "mode", "median", "std", "var", "count"]
ROUNDINGS = ["half_even", "half_away", "trunc", "floor"]
WIDER = {"float16": ["float32", "float64"], "float32": ["float64"], "float64": []}
WIDER["bfloat16"] = WIDER["float16"]
FEWEST_BITS = {name: np.iinfo(name).bits for name in cases.INTEGER_NAMES} | {"bool": 1}

# What arrays of labels hold: few numbers, so that several are the most frequent ones of a block.
LABELS = [0, 0, 1, 2, 3]


def is_float(name):
    return name in cases.FLOAT_NAMES


def result_of(func, name, dtype=None):
    """Return the type of a result by the table of the specification."""
    if func == "count":
        return "int64"
    if dtype is not None:
        return dtype
    if func == "sum" and not is_float(name):
        return "uint64" if name.startswith("u") else "int64"
    return "float64" if func in ("std", "var") and not is_float(name) else name


# --------------------------------------------------------------------------------------- comparing


def ulps_of(func, name):
    """Return by how many units in the last place a result may differ from the exact one."""
    if func not in ("std", "var") or FEWEST_BITS.get(name, 64) <= 16:
        return 0
    return 16 if name in ("float64", "int64", "uint64") else 1


def assert_close(got, expected, ulps, what=""):
    """Equal, or at most so many floats apart. NaN equals NaN, and -0.0 equals 0.0."""
    if not ulps:
        cases.assert_same(got, expected, what)
        return
    assert got.dtype == expected.dtype, f"{what}: dtype {got.dtype}, expected {expected.dtype}"
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    for at in np.ndindex(got.shape):
        if expected[at] != expected[at]:
            assert got[at] != got[at], f"{what}: {got[at]!r} at {at}, expected NaN"
        else:
            apart = abs(_rank(got[at]) - _rank(expected[at]))
            assert got[at] == got[at] and apart <= ulps, (
                f"{what}: {got[at]!r} at {at}, expected {expected[at]!r}, {apart} ulp"
            )


def _rank(value):
    """Return the place of a float among all floats of its type."""
    bits = 8 * value.dtype.itemsize
    pattern = int(np.asarray(value).view(f"u{value.dtype.itemsize}"))
    sign, magnitude = pattern >> (bits - 1), pattern & ((1 << (bits - 1)) - 1)
    return -magnitude if sign else magnitude


def assert_reduces_as_the_twin(x, block_size, func, threads=(1,), **attributes):
    """Compare `fastpool.block_reduce` with the slow twin, in every build. Return the result."""
    expected = _reference.block_reduce(x, block_size, func, **attributes)
    what = f"{func} of {x.dtype} {x.shape} by {block_size}, {attributes}"
    ulps = ulps_of(func, x.dtype.newbyteorder("=").name)
    first = None
    for build in cases.BUILDS:
        with running.using(build):
            for num_threads in threads:
                got = fastpool.block_reduce(
                    x, block_size, func, **attributes, num_threads=num_threads
                )
                where = f"{build}, {num_threads} threads: {what}"
                if attributes.get("return_counts"):
                    got, counts = got
                    cases.assert_same(counts, expected[1], f"counts, {where}")
                    assert_close(got, expected[0], ulps, where)
                else:
                    assert_close(got, expected, ulps, where)
                # What has a tolerance has the same bits in every build nevertheless.
                first = got if first is None else first
                cases.assert_same(got, first, f"another build, {where}")
    return first


# ----------------------------------------------------------------------------------------- drawing


def drawn_array(rng, name, most=600):
    """Return an array of rank 1 to 5 and extents 0 to 13, or a few long rows, as it may lie."""
    shape = [rng.randint(1, 13) for _ in range(rng.randint(1, 5))]
    if rng.random() < 0.1:  # (whole vectors of them are reduced at a time)
        shape, most = [*shape[:2], rng.randint(128, 300)], 6 * most
        if rng.random() < 0.2:  # (wide blocks, too)
            shape, most = [rng.randint(1, 3), rng.randint(1000, 4200)], 20 * most
    while math.prod(shape) > most:
        shape[rng.randrange(len(shape))] = rng.randint(1, 3)
    if rng.random() < 0.05:
        shape[rng.randrange(len(shape))] = 0
    kind = rng.choice(["labels", "segments", *cases.SUM_KINDS, *cases.VALUE_KINDS])
    if kind in ("labels", "segments"):
        x = np.random.default_rng(rng.randrange(10**6)).choice(LABELS, shape)
        x = x.astype(cases.dtype(name))
        for axis in range(x.ndim if kind == "segments" else 0):
            x = x.take(np.arange(shape[axis]) // rng.choice([1, 2, 3, 5]), axis)
    else:
        x = cases.summands(shape, name, kind, rng.randrange(10**6))
    x = cases.arranged(x, rng.choice(cases.ARRANGEMENTS))
    if rng.random() < 0.3:
        x = x.transpose(rng.sample(range(x.ndim), x.ndim))
    if rng.random() < 0.2:
        axis = rng.randrange(x.ndim)
        x = np.flip(x, axis)
    return x


def drawn_blocks(rng, shape):
    """Return the taps of a block along each axis."""
    some = [1, 1, 2, 2, 3, 4, 5, 7, 8]
    if shape[-1] >= 128:
        wide = rng.randint(1, max(1, shape[-1] // 64))
        return [*(rng.choice(some) for _ in shape[:-1]), rng.choice([2, 2, 4, 4, 8, 3, wide, wide])]
    return [rng.choice([*some, *([max(n, 1), n + 1, n + 3] * 2), 2**62]) for n in shape]


def drawn_attributes(rng, x, taps, func):
    """Return arguments of `block_reduce` that are valid together."""
    name = x.dtype.newbyteorder("=").name
    dtype = rng.choice([None, *_dtypes(func, name)])
    result = result_of(func, name, dtype)
    attributes = {"dtype": dtype, "return_counts": rng.random() < 0.3}
    attributes["nan"] = rng.choice(["propagate", "ignore"])
    whole = all(n % k == 0 for n, k in zip(x.shape, taps, strict=True))
    attributes["edge"] = rng.choice(["keep", "keep", "trim", *["exact"] * whole])
    if func in ("mean", "median") and not is_float(result):
        attributes["rounding"] = rng.choice(ROUNDINGS)
    if func in ("mean", "sum"):
        attributes["numerics"] = rng.choice(["pairwise", "exact"])
    if func in ("std", "var"):
        attributes["ddof"] = rng.choice([0, 0, 1, 2, 5])
    if func != "count" and rng.random() < 0.4:
        attributes["min_count"] = rng.randint(1, min(math.prod(taps), 9))
    if rng.random() < 0.3:
        attributes["where"] = _mask(rng, x.shape)
    least = attributes.get("min_count", 0 if func == "sum" else 1)
    may_be_missing = least > 1 or (least == 1 and "where" in attributes)
    needed = may_be_missing and func != "count" and not is_float(result)
    if needed or rng.random() < 0.4:
        attributes["nodata"] = _nodata(rng, x, name, result)
    return attributes


def _dtypes(func, name):
    """Return the result types that are allowed for any input, besides the default."""
    if func in ("max", "min", "mode", "count"):
        return []
    if is_float(name):
        return WIDER[name]
    if func in ("std", "var"):
        return ["float32"]
    found = ["float32", "float64", "int64", "uint64"]
    if func != "sum" and name != "bool":
        least, most = cases.lowest(name), cases.highest(name)
        held = (i for i in cases.INTEGER_NAMES if cases.lowest(i) <= least)
        found += [i for i in held if most <= cases.highest(i)]
    return found


def _mask(rng, shape):
    """Return an array of bool that broadcasts to a shape."""
    extents = [n if rng.random() < 0.8 else 1 for n in shape]
    extents = extents[rng.choice([0, 0, 0, 1]) :]
    share = rng.choice([0.1, 0.5, 0.5, 0.9, 1])
    return np.random.default_rng(rng.randrange(10**6)).random(extents) < share


def _nodata(rng, x, name, result):
    """Return a number that the type of the elements holds, and the result if it is an integer."""
    with np.errstate(invalid="ignore"):  # signalling NaN
        elements = x.astype(np.float64 if is_float(name) else object).ravel()[:50].tolist()
    if is_float(name):
        return rng.choice([0, 0.0, -0.0, 1, np.float32(2), math.nan, math.inf, 0.1, *elements[:4]])
    numbers = [0, 0.0, -0.0, 1, np.array(1, name)[()], *elements[:6]]
    if not is_float(result):
        least, most = int(cases.lowest(result)), int(cases.highest(result))
        numbers = [number for number in numbers if least <= int(number) <= most]
    return rng.choice(numbers)
