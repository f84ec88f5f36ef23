"""Averages are exactly those of the slow twin, for any build, threads, arrays and attributes.

What averages promise without an oracle is in test_average_exactness.py.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given

import cases
import fastpool
from configurations.strategies import averages, examples
from fastpool import _reference
from fastpool._planning.dtypes import is_float
from fastpool._running import builds as running

THREADS = [1, 3]
# bfloat16 is a type of ml_dtypes, which may be missing.
SOME = [name for name in ("float32", "float64", "bfloat16", "int16") if name in cases.DTYPE_NAMES]


def check(function, x, *windows, what="", expected=None, **attributes):
    """Compare a call with the slow twin or its result, on every build and number of threads.

    Floats are added in pairs and exactly, unless the attributes say how; the means of the latter
    are returned.
    """
    if "numerics" not in attributes and is_float(np.dtype(x.dtype).name):
        for numerics in ("pairwise", "exact"):
            given = {"what": what, "numerics": numerics, **attributes}
            means = check(function, x, *windows, expected=expected, **given)
        return means
    if expected is None:
        expected = getattr(_reference, function)(x, *windows, **attributes)
    call = getattr(fastpool, function)
    for build in cases.BUILDS:
        with running.using(build):
            for threads in THREADS:
                y = call(x, *windows, num_threads=threads, **attributes)
                where = f"{build}, {threads} threads, {x.shape} {x.dtype} {windows} {attributes}"
                cases.assert_same(y, expected, f"{what} {where}")
    return expected


# ---------------------------------------------------------------------------------- random cases


def assert_averages_as_the_reference(case):
    x = case.x()
    before = x.tobytes()
    try:
        check(case.function, x, *case.windows(), **case.attributes)
    except ValueError as refused:  # by the twin: the result type cannot hold every mean
        with pytest.raises(ValueError) as caught:
            getattr(fastpool, case.function)(x, *case.windows(), **case.attributes)
        assert str(caught.value).split(":")[0] == str(refused).split(":")[0] == "dtype"
    assert x.tobytes() == before, "the input was changed"


@examples(300)
@given(case=averages())
def test_random_averages(case):
    assert_averages_as_the_reference(case)


@examples(60)
@given(case=averages(hostile=True))
def test_attributes_of_any_magnitude(case):
    """Windows, strides and pads around and beyond the width of a machine integer."""
    assert_averages_as_the_reference(case)


# -------------------------------------------------------------- every type, rounding and numerics

# Layouts, extents, window, attributes.
WINDOWS = {
    "3 x 3": ("NCHW", (8, 19), (3, 3), {"pads": 1}),
    "channels last": ("NHWC", (7, 9), (3, 2), {"strides": 2, "pads": 1, "ceil_mode": True}),
    "included": ("CHW", (6, 18), (3, 4), {"pads": 2, "strides": 2, "count_include_pad": True}),
    "beyond counted": (
        *("HWC", (6, 8), (3, 3), {"pads": 1, "strides": 2, "ceil_mode": True}),
        {"count_include_pad": True, "beyond": "count"},
    ),
    "long, carried": ("NHW", (30, 33), (12, 13), {"pads": 5, "dilations": (1, 2)}),
    "volume": ("NDHWC", (4, 5, 6), (2, 3, 2), {"strides": (1, 2, 1), "pads": 1}),
    "a row, dilated": ("NCW", (40,), (4,), {"dilations": 3, "pads": 3}),
}
RESULTS = {
    "float16": [None, "float32", "float64"],
    "bfloat16": [None, "float32", "float64"],
    "float32": [None, "float64"],
    "float64": [None],
}
FLOAT_RULES = list(itertools.product(["exact", "sequential", "pairwise"], ["propagate", "ignore"]))
ROUNDINGS = ["half_even", "half_away", "trunc", "floor"]


def rules(name):
    """Yield every combination of the attributes that say how a type is summed and rounded."""
    for result in RESULTS.get(name, [None, "int64", "uint64", "float32", "float64"]):
        if name in cases.FLOAT_NAMES:
            for numerics, nan in FLOAT_RULES:
                yield {"dtype": result, "numerics": numerics, "nan": nan}
        elif result in cases.FLOAT_NAMES:
            yield {"dtype": result}
        elif result != "uint64" or name.startswith("uint"):
            yield from ({"dtype": result, "rounding": rounding} for rounding in ROUNDINGS)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_every_rule(name, window):
    layout, sizes, kernel, *attributes = WINDOWS[window]
    attributes = {key: value for some in attributes for key, value in some.items()}
    shape = cases.array_shape(layout, 1, 3, sizes)
    kinds = itertools.cycle([*cases.SUM_KINDS, "special", "bits"])
    for seed, rule in enumerate(rules(name)):
        x = cases.summands(shape, name, next(kinds), seed)
        check("avg_pool", x, kernel, layout=layout, **attributes, **rule)


@pytest.mark.parametrize("kind", [*cases.SUM_KINDS, "special", "bits", "nans"])
@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_every_kind_of_values(name, kind):
    """With windows of 4 and 9 elements, of long rows, parts and planes; by both numerics."""
    x = cases.summands((1, 3, 7, 35), name, kind, 1)
    last = np.ascontiguousarray(x.swapaxes(1, 3))
    has_nan = name in cases.FLOAT_NAMES and kind in ("rare", "special", "bits", "nans")
    for numerics in ("exact", "sequential", "pairwise")[: 1 + 2 * (name in cases.FLOAT_NAMES)]:
        for function, array, *window, attributes in (
            ("avg_pool", x, 2, {"strides": 2}),
            ("avg_pool", last, 3, {"layout": "NHWC", "pads": 1}),
            ("avg_pool", x, (1, 20), {"strides": (2, 1), "pads": (0, 5)}),
            ("adaptive_avg_pool", x, (3, 4), {}),
            ("global_avg_pool", last, {"layout": "NHWC"}),
        ):
            expected = None
            for nan in ("propagate", "ignore"):
                more = {"numerics": numerics, "nan": nan, **attributes}
                result = check(function, array, *window, expected=expected, **more)
                expected = None if has_nan else result  # without NaN both rules give one result


@pytest.mark.parametrize("divisor", [1, -1, 2, -3, 49, 2**20 + 1, 2**26, 2**31 - 1, 1 - 2**31])
def test_divisors(divisor):
    for seed, name in enumerate([*SOME, "int8", "uint32", "int64"]):
        x = cases.summands((2, 6, 9), name, ("powers", "rare")[seed % 2], seed)
        result = None if name in cases.FLOAT_NAMES else "int64"
        for numerics in ("exact", "sequential", "pairwise"):
            attributes = {"dtype": result, "numerics": numerics, "layout": "CHW"}
            check("avg_pool", x, 3, pads=2, divisor=divisor, **attributes)
            check("avg_pool", x, 3, divisor=divisor, count_include_pad=True, **attributes)


def test_results_that_do_not_fit_saturate():
    ends = np.iinfo(np.int64)
    x = np.array([ends.max, ends.max, ends.min, ends.min], np.int64)
    for divisor in (1, -1):
        y = check("avg_pool", x, 2, divisor=divisor, layout="W")
        assert y.tolist() == [ends.max, -1, ends.min][::divisor] if divisor > 0 else y[1] == 1
    x = np.full(5, 2**64 - 1, np.uint64)
    assert (check("avg_pool", x, 3, divisor=2, layout="W") == 2**64 - 1).all()
    assert (check("avg_pool", x, 3, dtype="int64", layout="W") == 2**63 - 1).all()
    assert (check("avg_pool", x, 3, divisor=-1, layout="W") == 0).all()


# ------------------------------------------------------------------------------ parts and planes


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "uint8", "int64"])
def test_adaptive_and_global_windows(name):
    shapes = [("NCHW", (13, 17)), ("NHWC", (5, 12)), ("NCW", (37,)), ("DHWC", (4, 5, 7))]
    for seed, (layout, sizes) in enumerate(shapes):
        shape = cases.array_shape(layout, 2, 5, sizes)
        x = cases.summands(shape, name, ("finite", "rare", "normal")[seed % 3], seed)
        for outs in (1, 2, 3, sizes, [2 * size + 1 for size in sizes], [1] + [5] * len(sizes[1:])):
            check("adaptive_avg_pool", x, outs, layout=layout)
        for numerics in ("exact", "sequential", "pairwise"):
            check("global_avg_pool", x, layout=layout, numerics=numerics)
            y = check("global_avg_pool", x, layout=layout, numerics=numerics, keepdims=False)
            assert y.ndim == x.ndim - len(sizes)


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("sizes", [(2, 8), (8, 2)], ids=str)
def test_one_padded_window_that_takes_all(sizes, layout):
    """The only count of an axis is fewer than its taps, whichever axis becomes the columns."""
    shape = (*sizes, 3) if layout == "HWC" else (3, *sizes)
    x = cases.summands(shape, "float32", "normal", 1)
    for pads in ((1, 0, 0, 0), (0, 0, 0, 1), (2, 1, 2, 1)):
        window = tuple(n + pads[i] + pads[i + 2] for i, n in enumerate(sizes))
        for include in (False, True):
            check("avg_pool", x, window, pads=pads, layout=layout, count_include_pad=include)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("name", [*SOME, "bool"])
def test_four_spatial_axes(name, layout):
    shape = cases.array_shape(layout, 2, 3, (3, 4, 2, 5))
    for seed, kind in enumerate(["normal", "finite", "rare"]):
        x = cases.summands(shape, name, kind, seed)
        attributes = {"layout": layout, "dilations": (1, 2, 1, 1), "pads": (1, 1, 0, 2) * 2}
        check("avg_pool", x, (2, 2, 1, 3), strides=(1, 2, 1, 2), **attributes)
        check("avg_pool", x, 2, count_include_pad=True, layout=layout)
        check("adaptive_avg_pool", x, (2, 3, 1, 4), layout=layout)
        check("global_avg_pool", x, layout=layout)


# -------------------------------------------------------------------------------- arrays in memory


@pytest.mark.parametrize("how", cases.ARRANGEMENTS)
@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_arrangements(name, how):
    """Inputs anywhere in memory, and outputs where these may be written."""
    for layout, seed in itertools.product(("NCHW", "NHWC"), range(2)):
        shape = cases.array_shape(layout, 2, 3, (6, 11))
        x = cases.arranged(cases.summands(shape, name, ("rare", "finite")[seed], seed), how)
        calls = [("avg_pool", (2, 3)), ("adaptive_avg_pool", (4, 3))]
        for (function, *windows), numerics in itertools.product(calls, ("pairwise", "exact")):
            attributes = {"layout": layout, "numerics": numerics}
            expected = check(function, x, *windows, **attributes)
            out = cases.arranged(np.ones_like(expected), how)
            if how in ("broadcast", "read-only") or not out.dtype.isnative:
                continue
            for build in cases.BUILDS:
                with running.using(build):
                    out[...] = 1
                    y = getattr(fastpool, function)(x, *windows, **attributes, out=out)
                    assert y is out
                    cases.assert_same(out, expected, f"{build} {attributes} {function}")


@pytest.mark.parametrize("result", [None, "float32", "float64"])
def test_outputs_in_larger_arrays(result):
    """What is around an output in memory stays as it is."""
    x = cases.summands((2, 3, 9, 20), "float16", "normal", 0)
    expected = _reference.avg_pool(x, 3, dtype=result)
    owner = np.full((4, 9, 21, 50), 7, expected.dtype)
    views = [np.s_[1:3, 2:5, 4:11, 6:24], np.s_[::3, ::4, ::3, 1:-1], np.s_[1::-1, 5:2:-1, 13:6:-1]]
    for view, build in itertools.product(views, cases.BUILDS):
        out = owner[view][:2, :3, :7, :18]
        with running.using(build):
            fastpool.avg_pool(x, 3, dtype=result, out=out, num_threads=3)
        cases.assert_same(out, expected)
        out[...] = 7
        assert (owner == 7).all()


@pytest.mark.parametrize("name", ["float32", "int8"])
def test_planes_apart_in_an_output(name):
    """Means of whole planes, whose channels are neighbours in memory and whose images are not."""
    x = cases.summands((8, 3, 33), name, "normal", 0)
    expected = _reference.global_avg_pool(x, layout="NCW")
    for build, more in itertools.product(cases.BUILDS, (0, 2)):
        owner = np.full((8, 3 + more, 1), 7, x.dtype)
        out = owner[:, :3]
        with running.using(build):
            fastpool.global_avg_pool(x, layout="NCW", out=out)
        cases.assert_same(out, expected)
        assert (owner[:, 3:] == 7).all(), "written outside the output"


X = cases.summands((1, 2, 6, 8), "float32", "normal", 0)


def bad_outputs():
    """Yield (what, input, an output that is refused, the error, words of it)."""
    y = np.full((1, 2, 5, 7), 7, np.float32)
    locked = y.copy()
    locked.flags.writeable = False
    both = np.zeros(200, np.float32)
    inside = both[: X.size].reshape(X.shape)
    yield "type", X, y.astype(np.float64), TypeError, "out: expected dtype float32"
    swapped = y.astype(y.dtype.newbyteorder())
    yield "byte order", X, swapped, TypeError, "out: expected dtype float32"
    yield "shape", X, y[..., :-1].copy(), ValueError, "out: expected shape"
    yield "no array", X, y.tolist(), TypeError, "out"
    yield "read-only", X, locked, ValueError, "out: expected a writeable array"
    yield "repeats", X, np.lib.stride_tricks.as_strided(y, y.shape, (0,) * 4), ValueError, "share"
    yield "overlaps", inside, both[90:160].reshape(y.shape), ValueError, "out: overlaps x"
    yield "is the input", inside, inside[..., :5, :7], ValueError, "out: overlaps x"


@pytest.mark.parametrize("again", [False, True], ids=["first call", "repeated call"])
@pytest.mark.parametrize("bad", list(bad_outputs()), ids=lambda bad: bad[0])
def test_bad_outputs_are_named_and_not_written(bad, again):
    _, x, out, error, words = bad
    plan = fastpool.plan_avg_pool(X.shape, "float32", 2)
    if again:
        plan(X)
    before = np.array(out)
    for call in (plan, lambda x, out: fastpool.avg_pool(x, 2, out=out)):
        with pytest.raises(error, match=words):
            call(x, out)
        assert np.array_equal(np.array(out), before, equal_nan=True)


def test_outputs_have_the_type_of_the_result():
    x = cases.summands((4, 9), "uint8", "finite", 0)
    for result in ("uint8", "float32", "int64"):
        expected = _reference.avg_pool(x, 2, dtype=result, layout="HW")
        out = np.empty(expected.shape, result)
        assert fastpool.avg_pool(x, 2, dtype=result, layout="HW", out=out) is out
        cases.assert_same(out, expected)
        with pytest.raises(TypeError, match=f"out: expected dtype {result}, got"):
            fastpool.avg_pool(x, 2, dtype=result, layout="HW", out=out.astype("int32"))


# --------------------------------------------------------------------------------- nothing to add


@pytest.mark.parametrize("name", [*SOME, "uint8"])
def test_empty_batches_and_windows(name):
    for shape in ((0, 3, 4, 5), (2, 0, 4, 5), (0, 0, 4, 5)):
        x = np.zeros(shape, cases.dtype(name))
        for layout in ("NCHW", "NHWC"):
            check("avg_pool", x.transpose(0, 2, 3, 1) if layout == "NHWC" else x, 2, layout=layout)
        check("global_avg_pool", x)
        check("adaptive_avg_pool", x, 2)
    for shape in ((2, 1, 0, 3), (2, 1, 3, 0)):  # windows of padding alone
        x = np.zeros(shape, cases.dtype(name))
        for counts in (False, True):
            y = check("avg_pool", x, 2, pads=1, count_include_pad=counts)
            assert y.size and (y == 0).all()
    x = cases.summands((2, 3, 4), name, "constant", 0)
    check("adaptive_avg_pool", x, (0, 2), layout="CHW")
    y = check("avg_pool", x, 2, pads=7, layout="CHW", nan="ignore")
    assert (y[:, 0] == 0).all() and (y[:, :, -1] == 0).all()


@pytest.mark.skipif("bfloat16" not in cases.DTYPE_NAMES, reason="ml_dtypes is missing")
def test_subnormal_means_of_bfloat16_are_rounded_once():
    """Not to a subnormal float32 first."""
    unit = 2.0**-133
    x = np.array([[32768 * unit, unit]]).astype(cases.dtype("bfloat16"))
    check("avg_pool", x, 2, divisor=65537, layout="CW")
    x = np.full((1, 257), 128 * unit).astype(x.dtype)
    x[0, 256] = unit
    check("global_avg_pool", np.pad(x, [(0, 0), (0, 65537 - 257)]), layout="CW")


def test_ties_of_sums_of_two_doubles():
    """Means in the middle of two results, of sums that need more bits than a double has."""
    for dtype, unit in (("float32", 2.0**-24), ("float64", 2.0**-53)):
        for divisor, last in itertools.product((1, 2, 3), (0, 2.0**-60, -(2.0**-60))):
            x = np.array([[1, unit, last, 2.0**40, -(2.0**40), 2.0**-70, 0]] * 9).astype(dtype)
            check("avg_pool", x * x.dtype.type(divisor), (1, 7), layout="HW", divisor=divisor)
