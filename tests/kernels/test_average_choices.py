"""What decides how means are taken: interleaved planes, windows as rows, sizes kernels repeat."""

import functools
import itertools
import re
from pathlib import Path

import pytest

import cases
import fastpool
from fastpool import _reference
from fastpool._running import averages, interleaving, pass_sizes
from fastpool._running.divisor_counts import MOST_DIVISORS

KERNELS = Path(__file__).parents[2] / "fastpool" / "kernels"

EXACT = {"numerics": "exact"}


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "uint8", "int64"])
def test_irregular_windows_in_several_tiles(name, isa, monkeypatch):
    """Planes of windows of several lengths are interleaved some rows at a time."""
    monkeypatch.setattr(averages, "IRREGULAR_BYTES", 1 << 10)
    for (planes, *sizes), output_size in (((18, 31, 17), (14, 9)), ((20, 2, 40, 5), (2, 33, 4))):
        x = cases.summands((1, planes, *sizes), name, "normal", 0)
        for order, nan in itertools.product(("pairwise", "exact", "sequential"), ("ignore", None)):
            rules = {"numerics": order, "nan": nan or "propagate"}
            plan = fastpool.plan_adaptive_avg_pool(x.shape, name, output_size, **rules)
            expected = _reference.adaptive_avg_pool(x, output_size, **rules)
            cases.assert_same(plan(x), expected, f"{plan}")
            assert 4 <= plan._prepared.work.tile[0] < output_size[-2], plan


def test_what_is_interleaved():
    """Short rows and strides are; long rows, few planes, channels last and whole planes are not."""
    plan = functools.partial(fastpool.plan_avg_pool, **EXACT)
    whole = functools.partial(fastpool.plan_global_avg_pool, **EXACT)
    assert cases.is_interleaved(plan((1, 64, 14, 14), "float32", 3, pads=1))
    assert cases.is_interleaved(plan((1, 64, 56, 56), "uint8", 3, pads=1))
    assert not cases.is_interleaved(plan((1, 64, 56, 56), "float32", 3, pads=1))
    assert not cases.is_interleaved(plan((1, 4, 14, 14), "float32", 3, pads=1))
    assert not cases.is_interleaved(plan((1, 14, 14, 64), "float32", 3, pads=1, layout="NHWC"))
    assert not cases.is_interleaved(whole((1, 64, 7, 7), "float32"))
    # One window: planes of 2 KiB that padding cuts, of 8 without NaN, of 16 whose columns are cut.
    plan, whole = fastpool.plan_avg_pool, fastpool.plan_global_avg_pool
    assert cases.is_interleaved(plan((1, 64, 7, 7), "float32", 9, pads=1))
    assert not cases.is_interleaved(plan((1, 64, 7, 7), "float32", (7, 9), pads=(0, 1)))
    assert cases.is_interleaved(plan((1, 64, 4, 5, 6), "float32", (4, 5, 5)))
    assert not cases.is_interleaved(plan((1, 64, 4, 5, 6), "float32", (4, 5, 6)))
    assert not cases.is_interleaved(plan((1, 64, 33, 16), "float32", (35, 16), pads=(1, 0)))
    for rows, columns, found in ((34, 15, True), (35, 15, False), (20, 16, False)):
        kernel = 8, rows, columns  # (padding cuts slabs' columns)
        made = plan((1, 64, *kernel), "float32", kernel, pads=(0, 0, 1), strides=99)
        assert cases.is_interleaved(made) is found, made
    one = functools.partial(plan, strides=99)
    assert cases.is_interleaved(one((1, 64, 8, 8, 8), "float32", (8, 7, 8)))
    assert not cases.is_interleaved(one((1, 64, 9, 8, 8), "float32", (9, 7, 8)))
    assert cases.is_interleaved(one((1, 64, 8, 32, 16), "float32", (8, 32, 15)))
    assert not cases.is_interleaved(one((1, 64, 8, 33, 16), "float32", (8, 33, 15)))
    for planes, rows, found in ((64, 64, True), (64, 65, False), (17, 64, False)):
        assert cases.is_interleaved(whole((1, planes, rows, 32), "float32", nan="ignore")) is found
    assert not cases.is_interleaved(whole((1, 64, 7, 7), "uint8", nan="ignore"))
    # Tiny planes and volumes of one window are, too, if rows are short.
    for name, size, found in (
        *(("float16", (7, 16), False), ("float16", (9, 12), True), ("float16", (10, 12), False)),
        *(("float32", (6, 4), True), ("float32", (5, 5), False), ("float32", (4, 3, 3), True)),
        *(("float32", (4, 3, 4), False), ("int8", (6, 5), True), ("int8", (8, 4), False)),
    ):
        assert cases.is_interleaved(whole((1, 64, *size), name)) is found, (name, size)
    plan = functools.partial(fastpool.plan_avg_pool, **EXACT)
    assert cases.is_interleaved(plan((1, 64, 24, 24), "float64", 3, strides=2))
    # Pairs of columns are folded, but not of 6 or 256 taps, cut ones, or with another divisor.
    plan = functools.partial(fastpool.plan_avg_pool, (1, 64, 48, 40), "int8", strides=2)
    assert not cases.is_interleaved(plan((4, 2))) and not cases.is_interleaved(plan(2, divisor=4))
    for kernel, more in (
        *(((3, 2), {}), (2, {"divisor": 8}), (2, {"dilations": (1, 2)}), (2, {"pads": (0, 1)})),
        *((2, {"pads": (1, 0)}), (2, {"rounding": "half_away"}), (2, {"result_dtype": "float32"})),
    ):
        assert cases.is_interleaved(plan(kernel, **more)), (kernel, more)
    plan = functools.partial(fastpool.plan_avg_pool, strides=2)
    assert cases.is_interleaved(plan((1, 64, 33, 33), "uint8", 2, ceil_mode=True))
    assert not cases.is_interleaved(plan((1, 64, 40, 40), "uint8", 2, rounding="half_away"))
    assert cases.is_interleaved(plan((1, 64, 256, 32), "uint8", (128, 2)))
    assert not cases.is_interleaved(plan((1, 64, 256, 32), "uint8", (64, 2)))
    plan = functools.partial(fastpool.plan_avg_pool, **EXACT)
    for name, size in (("float32", 25), ("float16", 50)):  # (rows of more than 48 bytes)
        assert not cases.is_interleaved(plan((1, 64, size + 2, size + 2), name, 3, strides=2))


def test_rows_of_windows_of_several_lengths_are_interleaved():
    """Long ones too, of two planes and more, if outputs add few rows, zero planes included."""
    plan = fastpool.plan_adaptive_avg_pool
    for planes, size, outputs, found in (
        *((64, (61, 100), (1, 33), True), (64, (62, 100), (1, 33), False)),
        *((64, (183, 183), 85, True), (64, (100, 100), 60, True)),
        *((64, (40, 2500), (17, 1400), True), (64, (40, 2600), (17, 1400), False)),
        *((2, (100, 100), 60, True), (1, (100, 100), 60, False)),
        *((2, (100, 100), (13, 33), True), (2, (100, 100), (12, 33), False)),
        *((2, (1, 32_768), (1, 32_767), True), (2, (1, 32_769), (1, 32_767), False)),
    ):
        made = plan((1, planes, *size), "float64", outputs)
        assert cases.is_interleaved(made) is found, made
    for planes, found in ((2, False), (64, True)):  # (tiles of long rows of few planes: scratch)
        made = plan((1, planes, 40, 20_000), "uint8", (17, 19_000))
        assert cases.is_interleaved(made) is found, made


def test_planes_whose_outputs_add_many_rows():
    """They are not interleaved, above all if a group lacks planes or taps along rows are many.

    Fewer columns have more rows.
    """
    adaptive, plan = fastpool.plan_adaptive_avg_pool, fastpool.plan_avg_pool
    for planes, size, outputs, found in (
        *((64, (84, 64), (2, 1), True), (64, (86, 64), (2, 1), False)),
        *((64, (70, 63), 2, True), (64, (71, 63), 2, False)),
        *((8, (42, 64), (2, 1), True), (8, (44, 64), (2, 1), False)),
        *((6, (26, 63), 2, True), (6, (27, 63), 2, False)),
        *((64, (6000, 8), (1, 3), True), (64, (6800, 8), (1, 3), False)),
    ):
        made = adaptive((1, planes, *size), "float16", outputs)
        assert cases.is_interleaved(made) is found, made
    assert cases.is_interleaved(adaptive((1, 192, 2827), "float64", 18))
    assert cases.is_interleaved(adaptive((1, 32, 5227), "float16", 2))
    for planes, size, found in (
        *((32, 8501, True), (32, 9001, False)),
        *((7, 429, True), (7, 435, False), (3, 51, True), (3, 53, False)),
    ):
        assert cases.is_interleaved(adaptive((1, planes, size), "float16", 2)) is found, size
    for size, found in ((209, True), (211, False)):
        assert cases.is_interleaved(adaptive((1, 6, size), "int16", 7)) is found, size
    # In order, windows of several lengths are limited only, and so are those without padding.
    in_order = functools.partial(adaptive, dtype="float16", numerics="sequential")
    assert cases.is_interleaved(in_order((1, 64, 86, 64), output_size=(2, 1)))
    assert cases.is_interleaved(in_order((1, 3, 60, 63), output_size=2))
    assert not cases.is_interleaved(in_order((1, 3, 62, 63), output_size=2))
    window = functools.partial(plan, (1, 64, 100, 64), "float16", (100, 32), strides=(100, 32))
    assert cases.is_interleaved(window(pads=(10, 0))) and cases.is_interleaved(window(pads=(0, 16)))
    assert not cases.is_interleaved(window())


def test_the_longest_rows_of_long_signals():
    """Windows of 64 elements have longer rows only if additions are in pairs."""
    plan = functools.partial(fastpool.plan_avg_pool, dtype="float32", strides=3)
    for numerics, kernel, most in (
        *(("pairwise", 65, 512), ("exact", 64, 512), ("exact", 65, 64), ("sequential", 65, 64)),
    ):
        for outputs in (most, most + 1):
            size = (outputs - 1) * 3 + kernel
            made = plan((1, 64, size), kernel_shape=kernel, numerics=numerics)
            assert cases.is_interleaved(made) is (outputs == most), made
    apart = functools.partial(plan, kernel_shape=17, strides=17, numerics="sequential")
    assert cases.is_interleaved(apart((1, 64, 64 * 17)))
    assert not cases.is_interleaved(apart((1, 64, 65 * 17)))
    dilated = functools.partial(plan, kernel_shape=3, dilations=2)  # (the stride is not below 3)
    assert cases.is_interleaved(dilated((1, 64, 127 * 3 + 5)))
    assert not cases.is_interleaved(dilated((1, 64, 128 * 3 + 5)))
    # A group that lacks half of its planes has rows of a quarter of the bytes.
    assert cases.is_interleaved(plan((1, 8, 127 * 3 + 5), kernel_shape=5))
    assert not cases.is_interleaved(plan((1, 8, 128 * 3 + 5), kernel_shape=5))


def test_windows_that_share_little_channels_last():
    """Elements of signals are rows then, and the columns of images are added for each output."""

    def work(shape, dtype, *window, **attributes):
        layout = "NHWC" if len(shape) == 4 else "NWC"
        plan = fastpool.plan_avg_pool(shape, dtype, *window, layout=layout, **attributes)
        return averages.make_sum_work(plan)

    signals = functools.partial(work, (1, 1000, 96), "float32")
    assert signals(12, strides=4).windows[-2].kernel == 12
    assert signals(24, strides=4).windows[-2].kernel == 24
    assert signals(25, strides=4).windows[-1].kernel == 25
    for shape, dtype, window, stride, rows in (
        *(((1, 1000, 48), "float32", 12, 4, True), ((1, 1000, 47), "float32", 12, 4, False)),
        *(((1, 1000, 16), "float32", 3, 5, True), ((1, 1000, 15), "float32", 3, 5, False)),
        *(((1, 1000, 256), "uint8", 8, 1, True), ((1, 1000, 255), "uint8", 8, 1, False)),
        *(((1, 1000, 64), "uint8", 30, 2, True), ((1, 1000, 63), "uint8", 30, 2, False)),
        *(((1, 1000, 2000), "uint8", 7, 1, False), ((1, 1000, 224), "int16", 7, 1, False)),
        *(((1, 1000, 192), "int16", 6, 1, True), ((1, 1000, 191), "int16", 6, 1, False)),
        *(((1, 9000, 64), "float32", 4097, 65, True), ((1, 9000, 64), "float32", 4096, 65, False)),
        *(((1, 9000, 64), "float32", 4160, 65, True), ((1, 9000, 64), "float32", 4161, 65, False)),
        *(((1, 9000, 63), "float32", 4097, 65, False), ((1, 1000, 64), "int16", 49, 2, False)),
        *(((2, 79, 52), "float32", 2, 1, True), ((2, 78, 52), "float32", 2, 1, False)),
    ):
        last = work(shape, dtype, window, strides=stride).windows[-1].kernel
        assert (last == 1) is rows, (shape, dtype, window)
    assert work((1, 1000, 15), "float32", 99, strides=99).windows[-1].kernel == 99
    padded = functools.partial(work, (1, 1000, 64), "float32", 5, strides=5)
    assert padded(pads=500).windows[-2].kernel == 5
    assert padded(pads=505).windows[-1].kernel == 5
    assert signals(12, strides=4, numerics="sequential").windows[-1].kernel == 12
    assert work((1, 1000, 96), "uint8", 12, strides=4, numerics="sequential").windows[-2].kernel > 1
    for size, rows in ((48, True), (47, False)):  # (parts of 8 or, mostly, 7)
        plan = fastpool.plan_adaptive_avg_pool((1, size, 48), "float32", 6, layout="NWC")
        assert (averages.make_sum_work(plan).windows[-2].kernel > 1) is rows
    images = functools.partial(work, (1, 3, 1000, 16), "float32")
    assert images((1, 64), strides=(1, 32)).walks
    assert not images((1, 64), strides=(1, 31)).walks
    assert not images((1, 63), strides=(1, 32)).walks
    assert not work((1, 3, 1000, 15), "float32", (1, 80), strides=(1, 80)).walks
    # Planes that are interleaved are added so only if windows share nothing.
    planes = functools.partial(fastpool.plan_avg_pool, (1, 64, 6, 1000), "float32", (1, 80))
    assert averages.make_sum_work(planes(strides=(1, 80))).walks
    assert not averages.make_sum_work(planes(strides=(1, 79))).walks


@pytest.mark.parametrize(
    ("name", "kernel", "stride", "most"),
    [
        # Squares whose sums slide along rows, at a stride of 1 and of 2, and one whose do not.
        *(("float32", 2, 1, 8), ("float32", 7, 1, 8), ("float64", 5, 1, 4), ("float64", 7, 1, 12)),
        *(("float32", 2, 2, 8), ("float32", 3, 2, 8), ("float64", 2, 2, 4)),
        # Few taps, then more, then a stride of 3.
        *(("float16", 2, 2, 24), ("float16", 2, 1, 24), ("uint8", 3, 2, 24), ("uint8", 2, 1, 96)),
        # Columns that are folded: two, four and eight.
        *(("uint8", 2, 2, 15), ("int16", 2, 2, 7), ("uint8", 4, 4, 63), ("int16", 4, 4, 31)),
        ("int8", 8, 8, 63),
        *(("float32", 4, 2, 24), ("uint8", 4, 2, 96), ("float32", 3, 3, 64)),
    ],
)
def test_the_longest_rows_that_are_interleaved(name, kernel, stride, most, monkeypatch):
    """In outputs, of groups of 16. The numerics are those by default."""
    monkeypatch.setattr(interleaving, "MOST_GROUP", 1)
    for outputs in (most, most + 1):
        size = (outputs - 1) * stride + kernel
        plan = fastpool.plan_avg_pool((1, 64, size, size), name, kernel, strides=stride)
        assert cases.is_interleaved(plan) is (outputs == most)


@pytest.mark.parametrize(
    ("name", "shape", "kernel", "stride", "pads", "most"),
    [
        # Signals: planes of one row. Rows of windows of one row are longer than those of squares.
        ("float32", "L", (3,), 1, (0,), 128),
        ("float64", "L", (5,), 2, (2,), 64),
        ("uint8", "L", (3,), 1, (0,), 256),
        ("uint8", "L", (3,), 1, (1,), 96),
        ("uint8", "L", (3,), 2, (1,), 256),
        ("int16", "L", (3,), 1, (1,), 256),
        ("float32", "1L", (1, 3), 1, (0, 0), 128),
        # Signals at longer strides: windows that share elements, and next to one another.
        *(("float32", "L", (5,), 3, (0,), 512), ("uint8", "L", (4,), 3, (1,), 2048)),
        *(("float32", "L", (4,), 4, (0,), 128), ("float32", "L", (5,), 5, (0,), 64)),
        *(("float32", "L", (16,), 16, (0,), 64), ("float32", "L", (17,), 17, (0,), 24)),
        ("float32", "1L", (3, 3), 1, (1, 0), 8),
        ("float32", "8L", (1, 3), 1, (0, 0), 24),
        ("float32", "2L", (2, 3), 1, (0, 0), 24),
        # Volumes, whose windows have few taps, or are squares if they have none along one axis.
        ("float32", "4LL", (2, 2, 2), 1, (0, 0, 0), 24),
        ("uint8", "4LL", (3, 1, 2), 2, (0, 0, 0), 48),
        ("int16", "4LL", (2, 1, 2), 2, (0, 0, 0), 7),
        ("float32", "4LL", (1, 3, 3), 1, (0, 0, 0), 8),
        # Squares whose columns padding cuts, at a stride of 1, of up to 3x3.
        ("float32", "LL", (2, 2), 1, (1, 1), 12),
        ("float64", "LL", (3, 3), 1, (0, 1), 6),
        ("float32", "LL", (3, 3), 1, (1, 0), 8),
        ("float32", "LL", (5, 5), 1, (2, 2), 8),
        ("float32", "LL", (3, 3), 2, (1, 1), 8),
    ],
)
def test_the_longest_rows_of_signals_volumes_and_cut_squares(
    name, shape, kernel, stride, pads, most, monkeypatch
):
    monkeypatch.setattr(interleaving, "MOST_GROUP", 1)  # (larger groups have longer rows)
    for outputs in (most, most + 1):
        size = (outputs - 1) * stride + kernel[-1] - 2 * pads[-1]
        sizes = [size if extent == "L" else int(extent) for extent in shape]
        plan = fastpool.plan_avg_pool((1, 64, *sizes), name, kernel, strides=stride, pads=pads)
        assert cases.is_interleaved(plan) is (outputs == most), plan


def test_rows_that_are_interleaved_because_one_condition_fails():
    """Of squares, of windows of few taps, and of those that are folded."""
    plan = functools.partial(fastpool.plan_avg_pool, strides=1)
    assert cases.is_interleaved(plan((1, 64, 14, 14), "float32", 3, dilations=(1, 2)))
    assert cases.is_interleaved(plan((1, 64, 12, 12), "float32", 3, nan="ignore"))
    adaptive = fastpool.plan_adaptive_avg_pool
    assert cases.is_interleaved(adaptive((1, 64, 7, 21), "float32", (4, 10)))
    plan = functools.partial(fastpool.plan_avg_pool, strides=2)
    assert cases.is_interleaved(plan((1, 64, 29, 29), "float32", 3, numerics="sequential"))
    assert cases.is_interleaved(plan((1, 64, 11, 57), "float16", 3))
    assert not cases.is_interleaved(plan((1, 64, 13, 57), "float16", 3))
    plan = functools.partial(fastpool.plan_avg_pool, (1, 64, 64, 1024), "uint8")
    assert cases.is_interleaved(plan((1, 16), strides=(1, 16)))
    assert cases.is_interleaved(adaptive((1, 64, 8, 40), "uint8", (3, 20)))


@pytest.mark.parametrize(
    ("source", "name", "value"),
    [
        ("sum/average.pxi", "MOST_DIVISORS", MOST_DIVISORS),
        ("vectors/pairwise.h", "MOST_LEAF", pass_sizes.MOST_LEAF),
        ("vectors/folds.h", "MOST_FOLDED", interleaving.MOST_FOLDED),
    ],
)
def test_sizes_agree_with_the_kernels(source, name, value):
    """Arrays of the kernels have these sizes, and compiled code does not check them."""
    assert re.findall(rf"\b{name} (?:= )?(\d+)", (KERNELS / source).read_text()) == [str(value)]


@pytest.mark.parametrize(("shape", "width"), [((1, 41, 38, 1984), 704), ((1, 41, 20, 1250), 1250)])
def test_parts_of_pixels(shape, width):
    """Parts of channels are whole vectors, but for the last one."""
    plan = fastpool.plan_avg_pool(shape, "float32", 9, layout="NHWC")
    assert averages.make_sum_work(plan).tile[2] == width
