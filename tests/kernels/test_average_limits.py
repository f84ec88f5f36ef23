"""Averages of windows, pads and divisors up to their limits: exact, and at no cost for padding."""

import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import cases
import fastpool
import limits
from fastpool import _reference
from fastpool._planning.dtypes import is_float
from fastpool._planning.values import MOST
from fastpool._running.quantized import QuantizedAverage, quantization

KERNELS = [1, 2, 3, 2**20, MOST - 1, MOST]
DILATIONS = [1, 1, 2, 3, 2**20, MOST]
STRIDES = [1, 1, 2, 2**20, MOST - 1, MOST]
DIVISORS = [2**26, 2**30 + 1, MOST - 1, MOST]
ROUNDINGS = ["half_even", "half_away", "trunc", "floor"]


def drawn_axis(rng, size):
    """The kernel, stride, dilation and pads of an axis of at most a few outputs."""
    small = rng.random() < 0.3
    kernel = rng.randint(1, 4) if small else rng.choice(KERNELS)
    dilation = 1 if kernel > 4 or small else rng.choice(DILATIONS)
    stride = rng.randint(1, 3) if small else rng.choice(STRIDES)
    extent = (kernel - 1) * dilation + 1
    total = (rng.randint(1, 5) - 1) * stride + extent + rng.randint(0, stride - 1)
    pad = min(2 * MOST, max(0, total - size))
    begins = [0, pad, pad // 2, extent - 1, extent // 2, stride, stride + size, extent - size]
    begin = min(pad, max(0, rng.choice(begins) + rng.randint(-2, 2)))
    begin = min(MOST, max(begin, pad - MOST))
    return kernel, stride, dilation, begin, pad - begin


def drawn(rng, dtype):
    """A shape, a kernel and attributes, whose windows fit and have at most 2**53 taps."""
    while True:
        rank = rng.choice([1, 1, 2, 2, 3])
        sizes = [rng.randint(1, 12 // rank) for _ in range(rank)]
        axes = [drawn_axis(rng, size) for size in sizes]
        kernel, strides, dilations, begins, ends = zip(*axes, strict=True)
        extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        padded = map(sum, zip(sizes, begins, ends, strict=True))
        fit = all(extent <= room for extent, room in zip(extents, padded, strict=True))
        if fit and math.prod(kernel) <= 2**53:
            break
    layout = rng.choice(cases.layouts(rank))
    shape = cases.array_shape(layout, rng.randint(1, 2), rng.randint(1, 3), sizes)
    divisor = rng.choice([None, None, rng.choice([-1, 1]) * rng.choice(DIVISORS)])
    # Negative quotients do not fit into an unsigned type; nothing is refused for int64.
    own = is_float(dtype) or divisor is None or divisor > 0
    results = [None] * own + ["float64"] * (dtype != "float64")
    results += [] if is_float(dtype) else ["int64", "float32"]
    result = rng.choice(results)
    attributes = {
        "strides": strides,
        "dilations": dilations,
        "pads": begins + ends,
        "ceil_mode": rng.random() < 0.4,
        "ceil_rule": rng.choice(["clip", "keep"]),
        "count_include_pad": rng.random() < 0.6,
        "beyond": rng.choice(["drop", "count"]),
        "divisor": divisor,
        "rounding": rng.choice(ROUNDINGS) if not is_float(result or dtype) else "half_even",
        "nan": rng.choice(["propagate", "ignore"]),
        "numerics": rng.choice(["exact", "exact", "sequential", "pairwise"]),
        "layout": layout,
    }
    return shape, kernel, result, attributes


@pytest.mark.parametrize("name", cases.DTYPE_NAMES)
def test_random_geometries(name, isa):
    rng = random.Random(name)
    for seed in range(100):
        shape, kernel, result, attributes = drawn(rng, name)
        x = cases.values(shape, name, rng.choice(cases.VALUE_KINDS), seed)
        x = cases.arranged(x, rng.choice(cases.ARRANGEMENTS))
        plan = fastpool.plan_avg_pool(shape, x.dtype, kernel, result_dtype=result, **attributes)
        whole = _reference.avg_pool(x, kernel, dtype=result, **attributes)
        cases.assert_same(plan(x), whole, f"{seed}: {plan}")
        ends = [sorted((rng.randint(0, n), rng.randint(0, n))) for n in whole.shape]
        outputs = tuple(slice(*pair) for pair in ends)
        part, read, write = plan.tile(outputs)
        cases.assert_same(part(x[read]), whole[write], f"{seed}: {plan} {outputs}")


@pytest.mark.parametrize("name", ["int8", "uint8"])
def test_quantised_means_by_any_divisor(name, isa):
    """To 2**53, the padding included: halves are exact, and so is what is close to them."""
    rng = random.Random(name)
    least, most = np.iinfo(name).min, np.iinfo(name).max
    for seed in range(200):
        kernel = [rng.choice([1, 2, 2**13, 2**20 + 1, 2**26, 2**26 + 3]) for _ in range(2)]
        pads = [k - 1 for k in kernel]
        plan = fastpool.plan_avg_pool(
            (2, 3), name, kernel, pads=(*pads, 0, 0), count_include_pad=True, layout="HW"
        )
        x = cases.values((2, 3), name, "bits", seed)
        zero, y_zero = rng.randint(least, most), rng.randint(least, most)
        divisor = math.prod(kernel)
        # Scales that put means near halves, and one that does not.
        x_scale = rng.choice([0.0123, 2.0 ** min(60, divisor.bit_length() - 1)])
        values = quantization(float(np.float32(x_scale)), zero, 1.5, y_zero)
        taps = [[x[max(0, r + 1 - kernel[0]) : r + 1, max(0, c + 1 - kernel[1]) : c + 1]
                 for c in range(3)] for r in range(2)]  # fmt: skip
        step = Fraction(float(np.float32(x_scale))) / Fraction(1.5)
        expected = [
            [
                min(max(round(step * int((t.astype(int) - zero).sum()) / divisor) + y_zero, least),
                    most)
                for t in row
            ]
            for row in taps
        ]  # fmt: skip
        y = QuantizedAverage(plan)(x, values)
        assert y.tolist() == expected, (kernel, x, x_scale, zero, y_zero)


def test_integers_saturate():
    pads = {"pads": (MOST, MOST), "layout": "W", "strides": MOST}
    for name in ("int64", "uint64"):
        info = np.iinfo(name)
        x = np.array([info.max, info.max], name)
        assert fastpool.avg_pool(x, MOST, divisor=1, **pads)[1] == info.max
        assert fastpool.avg_pool(x, MOST, divisor=-1, **pads)[1] == info.min


def test_halves_of_floats():
    def average(x, divisor):
        given = {"divisor": divisor, "layout": "W", "numerics": "exact"}
        return fastpool.avg_pool(np.array(x, np.float32), len(x), **given)[0]

    even = 2.0**-6
    assert average([2**24, 1], 2**30) == even
    assert average([2**24, 1, 2.0**-100], 2**30) > even
    assert average([2**24, 3], -(2**30)) == -(2**24 + 4) / 2**30
    assert average([2.0**-149 * 2**30], 2**31 - 1) == 2.0**-149


@pytest.mark.parametrize("numerics", ["exact", "pairwise"])
def test_counts_of_a_long_axis(numerics):
    """Where few outputs are at the ends, and where all are."""
    x = np.ones((3, 10_000), np.float64)
    for kernel, pads in ((3, 1), (9999, 9998), (20_001, 10_000)):
        for include in (False, True):
            attributes = {"pads": (0, pads) * 2, "count_include_pad": include, "layout": "HW"}
            y = fastpool.avg_pool(x, (1, kernel), **attributes, numerics=numerics)
            taps = np.minimum(np.arange(y.shape[1]) - pads + kernel, 10_000)
            taps -= np.maximum(np.arange(y.shape[1]) - pads, 0)
            expected = taps / kernel if include else np.ones(len(taps))
            cases.assert_same(y, np.broadcast_to(expected, y.shape), f"{kernel} {include}")


@pytest.mark.parametrize("numerics", ["exact", "sequential", "pairwise"])
def test_many_outputs_of_few_elements(numerics, isa):
    """An adaptive axis has no table: each tile computes its windows."""
    for size, outputs in ((3, 100_003), (1000, 2_000), (99_991, 3), (70_000, 69_999)):
        x = np.arange(size, dtype=np.float32)
        y = fastpool.adaptive_avg_pool(x, outputs, layout="W", numerics=numerics)
        z = fastpool.adaptive_max_pool(x, outputs, layout="W")
        for o in [*range(0, outputs, 1 + outputs // 50), outputs - 1]:
            first, stop = o * size // outputs, -(-(o + 1) * size // outputs)
            assert z[o] == stop - 1
            if numerics == "exact" or stop - first <= 2:
                assert y[o] == np.float32(Fraction(first + stop - 1, 2))


def test_time_of_padding_under_additions_in_order():
    """Columns without elements were looked at for every row under a window: 14 s."""
    x = np.ones((1, 1, 4000, 1), np.float32)
    for stride in (2, 2**20):
        pads = (0, 400 * stride) * 2
        with limits.quick(2):
            y = fastpool.avg_pool(
                x, [2000, 1], strides=[1, stride], pads=pads, numerics="sequential", num_threads=1
            )
        assert (y[..., 400] == 1).all() and y.sum() == y.shape[2]


@pytest.mark.parametrize("numerics", ["exact", "pairwise"])
@pytest.mark.parametrize("ones", [1, 2])
def test_time_of_trailing_axes_of_one_element(ones, numerics):
    """Rows of one element were added up anew for each plane of a window: 7 s."""
    x = np.ones((1, 1, 64, 64, 64, *(1,) * ones), np.float32)
    with limits.quick(2):
        y = fastpool.avg_pool(x, (32, 32, 32, *(1,) * ones), num_threads=1, numerics=numerics)
    assert (y == 1).all()
    gaps = np.ones((1, 1, 9, 9, 18, 1), np.float32)[:, :, :, :, ::2]
    pads = (1, 1, 1, 0) * 2
    assert (fastpool.avg_pool(gaps, (3, 3, 3, 1), pads=pads, numerics=numerics) == 1).all()
    plan = fastpool.plan_avg_pool(gaps.shape, gaps.dtype, (3, 3, 3, 1), numerics=numerics)
    assert "contiguous along D3" in plan.explain()


@pytest.mark.parametrize(
    "change",
    [{"counted": ((0, 2**63 - 1),)}, {"counted": ((0, 2**63),)}, {"counted": ((-(2**70), 2**70),)}],
)
def test_forged_places_that_count(change):
    """They are taken for what the windows have of them: all places here."""
    plan = fastpool.plan_avg_pool(
        (40,), "float32", 5, pads=3, strides=2, count_include_pad=True, layout="W"
    ).tile(())
    x = np.arange(1, 41, dtype=np.float32)
    whole = fastpool.avg_pool(
        x, 5, pads=3, strides=2, count_include_pad=True, beyond="count", layout="W"
    )
    y = replace(plan.plan, **change)(x)
    assert y[0] in (whole[0], np.float32(1.5)) and y.tolist()[2:] == whole.tolist()[2:]
    with pytest.raises(ValueError, match="^plan: "):
        axis = plan.plan.axes[0]._replace(dilation=2**31, begin=2**33)
        replace(plan.plan, axes=(axis,))


@pytest.mark.parametrize("name", ["uint8", "int32", "bfloat16", "float32", "float64"])
def test_windows_on_padding_are_pooled_once(name, isa):
    rng = random.Random(name)
    for seed in range(150):
        sizes = [rng.randint(1, 4) for _ in range(rng.choice([1, 2, 2, 3]))]
        kernel = [rng.choice([1, 2, n, n + 1, 9, 40]) for n in sizes]
        tall = rng.randrange(len(sizes))
        pads = [0] * (2 * len(sizes))
        for axis, (n, k) in enumerate(zip(sizes, kernel, strict=True)):
            if axis == tall:
                pads[axis], pads[axis + len(sizes)] = rng.randint(25, 45), rng.randint(25, 45)
            else:
                pads[axis] = max(0, k - n)
        strides = [rng.choice([1, 1, 2, 3]) for _ in sizes]
        dilations = [1] * len(sizes)
        if rng.random() < 0.3:
            dilations[tall] = rng.choice([2, sizes[tall], 5])
            kernel[tall] = min(kernel[tall], 9)
        layout = rng.choice(cases.layouts(len(sizes)))
        attributes = {
            "strides": strides,
            "dilations": dilations,
            "pads": pads,
            "ceil_mode": rng.random() < 0.3,
            "count_include_pad": rng.random() < 0.5,
            "beyond": rng.choice(["drop", "count"]),
            "divisor": rng.choice([None, None, 1600]),
            "nan": rng.choice(["propagate", "ignore"]),
            "numerics": rng.choice(["exact", "exact", "sequential", "pairwise"]),
            "layout": layout,
        }
        shape = cases.array_shape(layout, rng.randint(1, 2), rng.randint(1, 3), sizes)
        x = cases.values(shape, name, rng.choice(cases.VALUE_KINDS), seed)
        expected = _reference.avg_pool(x, kernel, **attributes)
        out = np.empty(expected.shape[::-1], expected.dtype).T
        cases.assert_same(fastpool.avg_pool(x, kernel, out=out, **attributes), expected, attributes)


@pytest.mark.parametrize("name", ["uint8", "int8"])
def test_quantised_windows_on_padding_are_pooled_once(name, isa):
    x = cases.values((3, 5), name, "bits", 1)
    for include in (False, True):
        attributes = {"layout": "HW", "count_include_pad": include, "pads": (90, 2, 90, 2)}
        plan = fastpool.plan_avg_pool(x.shape, name, (7, 5), **attributes)
        assert "pooled once" in plan.explain().replace("\n          ", " ")
        y = QuantizedAverage(plan)(x, quantization(1.0, 0, 1.0, 0))
        cases.assert_same(y, _reference.avg_pool(x, (7, 5), **attributes), attributes)


@pytest.mark.parametrize("numerics", ["exact", "sequential", "pairwise"])
def test_time_of_windows_on_padding(numerics):
    """Of 100,000 rows of windows over one row of elements: 3 s if each took them all."""
    n = 100_000
    x = np.ones((1, 1, 1, n), np.float32)
    with limits.quick(1):
        y = fastpool.avg_pool(x, (2, n), pads=(n // 2, 0, n // 2, 0), numerics=numerics)
        column, pads = x.reshape(1, 1, n, 1, 1), (0, n - 1, 0, 0, n - 1, 0)
        fastpool.avg_pool(column, (n, n, 1), pads=pads, numerics=numerics)
    assert np.count_nonzero(y) == 2
