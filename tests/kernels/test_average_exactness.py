"""What exact averages promise: the mean, rounded once, however the work is arranged.

Most tests need no oracle. Results are compared exactly, except for the sign of a zero and the bits
of a NaN, which are not fixed.
"""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

import cases
import fastpool.onnx
import limits
from codes import sums
from configurations.strategies import averages
from fastpool import _reference
from fastpool._planning.geometry import AdaptiveAxis
from fastpool._running import averages as averaging
from fastpool._running import builds as running
from fastpool._running import pass_sizes

FLOATS = cases.FLOAT_NAMES
EXACT = {"numerics": "exact"}
exact_avg_pool = functools.partial(fastpool.avg_pool, **EXACT)


def on_every_build(call):
    """Yield the build and the result of a call on each of them, on one thread and on three."""
    for build in cases.BUILDS:
        with running.using(build):
            for threads in (1, 3):
                yield build, call(num_threads=threads)


def check_row(x, kernel, expected=None, **attributes):
    """Compare windows over a row with what is expected, or with the slow twin."""
    if expected is None:
        expected = _reference.avg_pool(x, kernel, layout="W", **attributes, **EXACT)
    for build, y in on_every_build(
        lambda **more: exact_avg_pool(x, kernel, layout="W", **attributes, **more)
    ):
        cases.assert_same(y, expected, f"{build}, {x.dtype}, {kernel} {attributes}")


def largest(name):
    return cases.special_floats(name)[6]  # before infinity


# -------------------------------------------------------------------------------- what a mean is


def constants(name):
    """Numbers of every kind, whose sums are rounded in any arithmetic."""
    kind_dtype = cases.dtype(name)
    if name not in FLOATS:
        info = np.iinfo(name)
        return [info.min, info.max, info.max - 1, 1, 101]
    special = cases.special_floats(name)
    finite = special[np.isin(np.arange(len(special)) % 11, [1, 2, 3, 5, 6])]
    return [*finite, *np.array([0.1, -1 / 3, 1e-5], kind_dtype)]


@pytest.mark.parametrize("name", [*FLOATS, *cases.INTEGER_NAMES])
def test_the_mean_of_equal_numbers_is_that_number(name, isa):
    """For every length of a window; planes of several windows and of one."""
    for i, number in enumerate(constants(name)):
        x = np.full((3, 12, 20), number, cases.dtype(name))
        for kernel in range(1 + i % 3, 60 if i else 140, 3 if i else 1):
            row = x.reshape(-1)[: kernel + 9]
            y = exact_avg_pool(row, kernel, layout="W", pads=kernel // 2)
            cases.assert_same(y, np.full_like(y, number), f"{number} x {kernel}")
        for kernel in [(2, 2), (3, 3), (5, 7), (12, 20), (11, 13), (12, 1)]:
            for layout in ("CHW", "HWC"):
                y = exact_avg_pool(
                    x, kernel if layout == "CHW" else 3, layout=layout, auto_pad="SAME_LOWER"
                )
                cases.assert_same(y, np.full_like(y, number), f"{number} x {kernel}, {layout}")
        y = fastpool.adaptive_avg_pool(x, (5, 7), layout="CHW", **EXACT)
        cases.assert_same(y, np.full_like(y, number), f"parts of {number}")


@settings(max_examples=60)
@given(case=averages(dtypes=FLOATS, kinds=["normal", "finite", "powers", "cancelling", "rare"]))
def test_negated_scaled_and_between_the_extremes(case):
    x = np.ascontiguousarray(case.plain())
    attributes = {**case.attributes, "numerics": "exact", "dtype": None}
    if "divisor" in attributes:
        attributes |= {"divisor": None, "count_include_pad": False}

    def pool(x):
        return getattr(fastpool, case.function)(x, *case.windows(), **attributes)

    y = pool(x)
    cases.assert_same(pool(-x), -y, "negated")
    if case.kind == "normal" and case.dtype != "float16":
        for power in (2.0**-70, 2.0**60):  # without underflow and overflow
            factor = x.dtype.type(power)
            cases.assert_same(pool(x * factor), y * factor, f"times {power}")
    finite = x[np.isfinite(x)]
    if finite.size == x.size and x.size and y.size:
        assert min(finite.min(), 0) <= y.min() and y.max() <= max(finite.max(), 0)


@pytest.mark.parametrize("name", FLOATS)
def test_a_mean_lies_between_its_extremes(name, isa):
    """Between the ends of each window, which maxima give."""
    for seed, kind in enumerate(["normal", "finite", "powers", "cancelling"]):
        x = cases.summands((2, 30, 41), name, kind, seed)
        for kernel in (2, 3, (5, 1), (1, 17)):
            mean = exact_avg_pool(x, kernel, layout="CHW")
            assert (mean <= fastpool.max_pool(x, kernel, layout="CHW")).all()
            assert (mean >= -fastpool.max_pool(-x, kernel, layout="CHW")).all()


@pytest.mark.parametrize(("narrow", "wide"), [("float16", "float32"), ("float32", "float64")])
def test_wider_numbers_have_the_same_mean(narrow, wide, isa):
    x = cases.summands((2, 20, 33), narrow, "quarters", 0)
    exact = exact_avg_pool(x.astype(wide), (4, 2), layout="CHW")
    cases.assert_same(exact_avg_pool(x, (4, 2), layout="CHW"), exact.astype(narrow))
    for kind in ("normal", "finite", "cancelling"):
        x = cases.summands((2, 20, 33), narrow, kind, 1)
        direct = exact_avg_pool(x, 3, layout="CHW", dtype=wide)
        cases.assert_same(direct, exact_avg_pool(x.astype(wide), 3, layout="CHW"), kind)


# ------------------------------------------------------------------------------ sums out of range


@pytest.mark.parametrize("name", FLOATS)
def test_no_sum_overflows(name):
    most = largest(name)
    for kernel in (1, 2, 4, 7, 40):
        x = np.full(90, most)
        check_row(x, kernel, np.full(91 - kernel, most))
        x[1::2] = -most
        check_row(x, 2 * kernel, np.zeros(91 - 2 * kernel, x.dtype))
        check_row(x, 2 * kernel, divisor=1)
        check_row(abs(x), kernel, divisor=1)  # infinite from two on, and only here
    x = np.array([3e38] * 4, np.float32)
    check_row(x, 4, x[:1])


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("kernel", [2, 3, 9, 30, 111])
def test_exponents_from_subnormal_to_overflow_in_one_tile(name, kernel):
    least = {"float32": -149, "float64": -1074}[name]
    exponents = np.linspace(least, -least - 26 if name == "float32" else 1023, 128).astype(int)
    exponents = np.minimum(exponents, {"float32": 127, "float64": 1023}[name])
    x = np.ldexp(np.ones(128), exponents).astype(name)
    x[::3] *= -1
    for row in (x, x[::-1].copy(), np.random.default_rng(0).permutation(x)):
        check_row(row, kernel)
        check_row(row, kernel, strides=2, pads=kernel // 2, count_include_pad=True)


@pytest.mark.parametrize("name", FLOATS)
def test_what_is_left_of_cancelled_numbers(name):
    """One least subnormal between the largest numbers decides the mean."""
    most, tiny = largest(name), cases.special_floats(name)[1]
    for order in set(itertools.permutations([most, -most, tiny, tiny])):
        x = np.array(order * 2, cases.dtype(name))
        check_row(x, 4, np.zeros(5, x.dtype))  # a half of the least one is even, 0
        check_row(x, 4, np.full(5, tiny), divisor=2)
        check_row(x, 4, np.full(5, tiny + tiny), divisor=1)


@pytest.mark.parametrize("name", FLOATS)
def test_ties_go_to_even_and_the_least_part_breaks_them(name):
    """Two neighbours, and a number far below that makes their mean more or less than a tie."""
    kind_dtype = cases.dtype(name)
    bits = f"uint{8 * kind_dtype.itemsize}"
    one = int(np.array(1, kind_dtype).view(bits))
    tiny = cases.special_floats(name)[1]
    for low in (one, one + 1, one + 6, one + 7):
        a, b = np.array([low, low + 1], bits).view(kind_dtype)
        even = a if low % 2 == 0 else b
        for sign in (1, -1):
            pair = np.array([a, b], kind_dtype) * kind_dtype.type(sign)
            for more, result in (([], even), ([tiny * sign], b), ([-tiny * sign], a)):
                x = np.concatenate([pair, np.array(more, kind_dtype)])
                expected = np.full(1, result * kind_dtype.type(sign), kind_dtype)
                check_row(x, len(x), expected, divisor=2)
                check_row(np.tile(x, 12), 12 * len(x), expected, divisor=24)


def tied_windows(name, taps, count):
    """Windows, one per row, whose means are halfway between two results, or next to halfway.

    No double holds their sums: there are large numbers that cancel, and least ones.
    """
    rng = np.random.default_rng(taps)
    bits, top = {"bfloat16": (8, 100), "float32": (24, 100), "float64": (53, 900)}[name]
    windows = np.zeros((count, taps), cases.dtype(name))
    for window in windows:
        total = taps * (2 * int(rng.integers(1 << bits - 1, 1 << bits)) + 1)
        unit = 2.0 ** float(rng.integers(-20, 20))
        low, large = total % (1 << bits), 2.0 ** float(rng.integers(40, top))
        least = rng.choice([0, 1, -1]) * cases.special_floats(name)[1]
        parts = [(total - low) * unit, low * unit, large, -large, least]
        window[: len(parts)] = parts
        rng.shuffle(window)
    return windows


@pytest.mark.parametrize("kernel", [(2, 3), (3, 3), (7, 7)])
@pytest.mark.parametrize("name", ["bfloat16", "float32", "float64"])
def test_ties_of_sums_that_are_not_exact(name, kernel):
    """Each window is settled on its own: in whole planes, small windows and over channels."""
    count, (h, w) = 192, kernel
    windows = tied_windows(name, h * w, count).reshape(count, h, w)
    expected = _reference.global_avg_pool(windows, layout="CHW", **EXACT)[:, 0, 0]
    rows = windows.reshape(4, count // 4, h, w).transpose(0, 2, 1, 3).reshape(4, h, count // 4 * w)
    for layout, x, y in (
        ("CHW", windows, expected.reshape(count, 1, 1)),
        ("CHW", rows, expected.reshape(4, 1, count // 4)),
        ("HWC", np.ascontiguousarray(windows.transpose(1, 2, 0)), expected.reshape(1, 1, count)),
    ):
        call = functools.partial(exact_avg_pool, x, kernel, layout=layout, strides=kernel)
        for build, result in on_every_build(call):
            cases.assert_same(result, y, f"{build} {layout}")


def test_least_parts_next_to_an_overflow():
    """The plane is pooled with its numbers divided, which takes the least ones to 0."""
    most = np.finfo(np.float64).max
    x = np.zeros((4, 2))
    x[:, 0] = 1, 2.0**-53, 2.0**-966, -(2.0**-1074)
    x[:2, 1] = most
    for sign in (1, -1):
        expected = np.array([[sign * (1 + 2.0**-52), sign * np.inf]])
        call = functools.partial(exact_avg_pool, sign * x, (4, 1), layout="HW", divisor=1)
        for build, y in on_every_build(call):
            cases.assert_same(y, expected, build)


def test_time_of_subnormal_results():
    """Many windows of a row that two doubles do not decide: each takes its own time only."""
    x = np.full((3, 8194), cases.special_floats("bfloat16")[1])
    x[1, ::64] = largest("bfloat16")
    plan = fastpool.plan_avg_pool(x.shape, x.dtype, 3, layout="HW", num_threads=1, **EXACT)
    plan(x)
    with limits.quick(0.1):  # it takes a millisecond
        plan(x)


@pytest.mark.parametrize("name", ["int64", "uint64"])
def test_sums_beyond_64_bits(name):
    info = np.iinfo(name)
    rng = np.random.default_rng(0)
    for kernel in (2, 3, 40, 600):
        x = rng.choice(np.array([info.max, info.max - 1, info.max - 2], name), 700)
        expected = [round(Fraction(sum(x[i : i + kernel].tolist()), kernel)) for i in range(5)]
        y = fastpool.avg_pool(x, kernel, layout="W")
        assert y[:5].tolist() == expected
        check_row(x[: kernel + 60], kernel)
        check_row(x[: kernel + 60], kernel, dtype="float64")
        for rounding in ("half_away", "trunc", "floor"):
            check_row(info.max - x[: kernel + 20] + info.min, kernel, rounding=rounding)


@pytest.mark.parametrize("name", FLOATS)
def test_a_nan_or_an_infinity_anywhere(name):
    """Those windows alone that hold it have another mean."""
    shape = 6, 11
    plain = cases.summands(shape, name, "normal", 3)
    windows = {"avg_pool": ((3, 4),), "adaptive_avg_pool": ((2, 3),), "global_avg_pool": ()}
    for function, numerics in itertools.product(windows, ("exact", "sequential", "pairwise")):
        for nan, build in itertools.product(("propagate", "ignore"), cases.BUILDS):
            plan = getattr(fastpool, f"plan_{function}")(
                shape, plain.dtype, *windows[function], layout="HW", nan=nan, numerics=numerics
            )
            with running.using(build):
                usual = plan(plain)
                for at, special in itertools.product(range(plain.size), (np.nan, np.inf)):
                    x = plain.copy()
                    x.flat[at] = special
                    y = plan(x)
                    touched = touched_by(plan, at)
                    cases.assert_same(y[~touched], usual[~touched])
                    if math.isinf(special):
                        assert np.isposinf(y[touched].astype(float)).all()
                    elif nan == "propagate":
                        assert np.isnan(y[touched]).all()
                    else:
                        assert np.isfinite(y[touched]).all()
                    if at % 13 == 0:
                        twin = getattr(_reference, function)
                        more = {"nan": nan, "numerics": numerics, "layout": "HW"}
                        cases.assert_same(y, twin(x, *windows[function], **more))


def touched_by(plan, at):
    """Which outputs of a plan, without padding, have this element in their window?"""
    height, width = plan.input_shape
    marks = np.zeros(plan.input_shape, np.float32)
    marks[at // width, at % width] = 1
    axes = []
    for axis, place in zip(plan.axes, divmod(at, width), strict=True):
        windows = [
            axis.window(o)
            if isinstance(axis, AdaptiveAxis)
            else (o * axis.stride, o * axis.stride + axis.kernel)
            for o in range(axis.output)
        ]
        axes.append(np.array([first <= place < stop for first, stop in windows]))
    return axes[0][:, None] & axes[1]


# ------------------------------------------------------------------------ however it is arranged


CUTS = {
    "small tiles": {"ROW_ELEMENTS": 16, "PIXEL_ELEMENTS": 16},
    "many tasks": {"SOME_TASKS": 64, "TASK_BYTES": 8},
    "one task": {"SOME_TASKS": 1},
    "small blocks": {"PASS_BYTES": 1},
    "no lines": {"MOST_LINES": 0},
    "planes one by one": {"WHOLE_PLANES": 1},
}


@settings(max_examples=60)
@given(case=averages())
def test_every_cut_gives_the_same_bits(case):
    """Other sizes of tiles and blocks, of rows that are converted and of planes at once."""
    if case.attributes.get("divisor") not in (None, 2, 3):
        case.attributes["divisor"] = None
    x = case.x()
    try:
        expected = case.plan(x.dtype)(x)
    except ValueError:
        return
    for cut, constants in CUTS.items():
        with pytest.MonkeyPatch.context() as patch:
            for constant, value in constants.items():
                module = averaging if hasattr(averaging, constant) else pass_sizes
                patch.setattr(module, constant, value)
            for build, y in on_every_build(lambda **more: case.plan(x.dtype, **more)(x)):
                cases.assert_same(y, expected, f"{cut}, {build}")


@settings(max_examples=40)
@given(case=averages())
def test_parts_of_a_plan_give_the_same_bits(case):
    x = case.x()
    try:
        plan = case.plan(x.dtype)
    except ValueError:
        return
    whole = plan(x)
    cuts = [sorted({0, extent // 3, extent // 2, extent}) for extent in whole.shape]
    pieces = [list(map(slice, cut, cut[1:])) for cut in cuts]
    for outputs in itertools.islice(itertools.product(*pieces), 40):
        part, read, write = plan.tile(outputs)
        cases.assert_same(part(x[read]), whole[write], f"{outputs}")


@settings(max_examples=40)
@given(case=averages(kinds=["finite", "powers", "rare", "normal"]))
def test_layouts_and_arrangements_give_the_same_bits(case):
    layout, rank = case.attributes["layout"], len(case.shape)
    x = np.ascontiguousarray(case.plain())
    attributes = dict(case.attributes)
    call = getattr(fastpool, case.function)
    try:
        y = call(x, *case.windows(), **attributes)
    except ValueError:
        return
    for how in cases.ARRANGEMENTS:
        if how != "broadcast":
            again = call(cases.arranged(x, how), *case.windows(), **attributes)
            cases.assert_same(again, y, how)
    if layout in ("NCHW", "NHWC"):
        attributes["layout"] = "NHWC" if layout == "NCHW" else "NCHW"
        move = (1, rank - 1) if layout == "NCHW" else (rank - 1, 1)
        moved = call(np.moveaxis(x, *move).copy(), *case.windows(), **attributes)
        cases.assert_same(moved, np.moveaxis(y, *move), attributes["layout"])


# Several tiles of every strategy: shape, window, attributes.
LARGE = {
    "long row": ((2, 20011), (3,), {"strides": 2, "pads": 1}),
    "very long window": ((1, 9001), (4097,), {"pads": 2048, "strides": 2}),
    "long row, dilated": ((1, 9011), (9,), {"dilations": 1000, "pads": 4000}),
    "wide planes": ((1, 21, 3007), (3, 3), {"pads": 1}),
    "square, large window": ((1, 131, 133), (64, 64), {}),
    "square, stride 2": ((2, 131, 137), (2, 2), {"strides": 2}),
    "tall": ((2, 3003, 3), (700, 2), {"pads": (350, 0), "strides": (3, 1)}),
    "tiny planes": ((3001, 3, 3), (2, 2), {}),
    "global, many": ((3001, 7, 7), (7, 7), {}),
    "global, one": ((2, 150, 151), (150, 151), {}),
    "volume": ((2, 11, 20, 31), (3, 3, 3), {"pads": 1}),
    "leading taps": ((1, 70, 7, 9), (66, 3, 1), {"pads": (30, 1, 0)}),
}


@pytest.mark.parametrize("name", ["float32", "float64", "uint8", "int32"])
@pytest.mark.parametrize("large", LARGE)
def test_tiles(large, name, isa):
    """Means of integers below 2**53 are quotients of their exact sums, rounded once.

    The sums of these are exact in any order, in double.
    """
    shape, kernel, attributes = LARGE[large]
    given = {"strides": 1, "dilations": 1, "pads": 0, **attributes}
    spread = {k: (v,) * len(kernel) if isinstance(v, int) else v for k, v in given.items()}
    codes = np.random.default_rng(len(large)).integers(0, 256, shape)
    more = {name: spread[name] for name in ("strides", "dilations")}
    expected = sums(codes, kernel, pads=spread["pads"] * 2, **more) / math.prod(kernel)
    codes = codes.astype(name)[None]
    given = {**spread, "pads": spread["pads"] * 2, "count_include_pad": True, "dtype": "float64"}
    for layout in ("NCHW", "NHWC"):
        x = codes if layout == "NCHW" else np.ascontiguousarray(np.moveaxis(codes, 1, -1))
        for numerics in ("exact", "pairwise"):
            more = {"layout": layout, "num_threads": 2, "numerics": numerics}
            y = fastpool.avg_pool(x, kernel, **given, **more)
            y = y if layout == "NCHW" else np.moveaxis(y, -1, 1)
            cases.assert_same(y[0], expected, f"{layout}, {large}, {numerics}")
