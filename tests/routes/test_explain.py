"""plan.explain() prints the expected text, with numbers that are counted here by window."""

import itertools
import pickle
import random
import re

import numpy as np
import pytest

import cases
from fastpool import (
    plan_adaptive_avg_pool,
    plan_adaptive_max_pool,
    plan_avg_pool,
    plan_global_avg_pool,
    plan_min_pool,
)
from fastpool._planning.windows import AdaptiveWindows, windows_of
from fastpool._plans import make_plan
from fastpool._running import prepare, threads
from fastpool._showing import explain


def what_is_computed(text):
    """Without what depends on the machine."""
    return text[: text.index("\nkernel ")].splitlines()


def in_one_line(text):
    return " ".join(text.split())


def test_same_padding():
    plan = make_plan((1, 64, 224, 112), "float32", 3, strides=2, auto_pad="SAME_LOWER")
    assert what_is_computed(plan.explain()) == [
        "MaxPoolPlan: float32 NCHW (1, 64, 224, 112) -> (1, 64, 112, 56)",
        "window    kernel_shape (3, 3), strides (2, 2)",
        'rule      auto_pad "SAME_LOWER": ceil(size / stride) outputs, and the padding',
        "          for them, an odd unit of it at the beginning",
        "H         output ceil(224 / 2) = 112",
        "          padding max((112 - 1) * 2 + 3 - 224, 0) = 1: 1 at the beginning, 0 at",
        "          the end",
        "          windows 0 to 111; over the beginning: 0",
        "W         output ceil(112 / 2) = 56",
        "          padding max((56 - 1) * 2 + 3 - 112, 0) = 1: 1 at the beginning, 0 at",
        "          the end",
        "          windows 0 to 55; over the beginning: 0",
        "edges     of 6272 windows of a plane, 167 over an edge, 0 empty",
        'values    float32, exactly; padding never wins; nan "propagate": a NaN in a',
        "          window is its result, the first one its index",
        "indices   none (return_indices)",
    ]


def test_rounding_that_adds_and_drops():
    attributes = {"strides": 3, "pads": 1, "ceil_mode": True, "layout": "CW"}
    plan = make_plan((2, 4), "int8", 2, **attributes)
    assert what_is_computed(plan.explain())[2:] == [
        'rule      auto_pad "NOTSET": pads (1, 1), begins and then ends',
        '          ceil_mode, ceil_rule "clip": a last window that does not fit is kept,',
        "          unless it starts in the padding at the end, or past it",
        "W         output ceil((4 + 1 + 1 - 2) / 3) + 1 - 1 = 2",
        "          padding 1 at the beginning, 1 at the end",
        '          dropped, by ceil_rule "clip": window 2, which would start past the',
        "          padding at the end",
        "          windows 0 to 1; over the beginning: 0",
        "          of 4 elements in no window: 1 between one window and the next",
        "edges     of 2 windows of a channel, 1 over an edge, 0 empty",
        "values    int8, exactly; padding never wins",
        "indices   none (return_indices)",
    ]
    attributes |= {"ceil_rule": "keep", "return_indices": True, "index_axis": 1}
    text = in_one_line(make_plan((2, 4), "int8", 2, **attributes).explain())
    for line in (
        'ceil_mode, ceil_rule "keep": a last window that does not fit is kept',
        "W output ceil((4 + 1 + 1 - 2) / 3) + 1 = 3",
        "added by ceil_mode: window 2, which starts past the padding at the end and "
        "ends 2 past the padded input",
        "windows 0 to 2; over the beginning: 0; over the end: 2; empty, past the input: 2",
        "edges of 3 windows of a channel, 2 over an edge, 1 empty, which give -128 and index -1",
        "indices int64, of the first maximum, counted in the last axis of the CW array",
    ):
        assert line in text


def test_a_floor_that_drops():
    text = in_one_line(make_plan((5, 9), "bool", 2, strides=(2, 3), layout="HW").explain())
    assert "dropped, as ceil_mode is off: window 2, which would start at element 4" in text
    assert "of 5 elements in no window: the last 1" in text
    assert "of 9 elements in no window: 1 between one window and the next and the last 1" in text


@pytest.mark.parametrize("rank", (1, 2, 3))
def test_numbers_are_those_of_windows(rank):
    rng = random.Random(rank)
    empty = 0
    for _ in range(200):
        sizes = [rng.randint(1, 7) for _ in range(rank)]
        plan = random_plan(rng, sizes)
        if plan is None:
            continue
        axes = [taps(axis) for axis in plan.axes]
        inside = [[all(0 <= t < a.size for t in o) for o in ts] for a, ts in zip_axes(plan, axes)]
        holds = [[any(0 <= t < a.size for t in o) for o in ts] for a, ts in zip_axes(plan, axes)]
        windows = list(itertools.product(*inside))
        counts = len(windows), sum(not all(w) for w in windows)
        counts += (sum(not all(w) for w in itertools.product(*holds)),)
        text = in_one_line(plan.explain())
        found = re.search(r"of (\d+) windows of a \w+, (\d+) over an edge, (\d+) empty", text)
        assert tuple(map(int, found.groups())) == counts, plan
        empty += counts[2] > 0
    assert empty > 10


def zip_axes(plan, axes):
    return zip(plan.axes, axes, strict=True)


def taps(axis):
    """Places of the taps of every window of an axis."""
    return [
        [o * axis.stride - axis.begin + t * axis.dilation for t in range(axis.kernel)]
        for o in range(axis.output)
    ]


def random_plan(rng, sizes, make=make_plan, **more):
    rank = len(sizes)
    attributes = {
        "strides": [rng.randint(1, 5) for _ in sizes],
        "dilations": [rng.choice((1, 1, 2, 5, 9)) for _ in sizes],
        "ceil_mode": rng.random() < 0.5,
        "ceil_rule": rng.choice(("clip", "keep")),
        "layout": {1: "W", 2: "HW", 3: "DHW"}[rank],
    }
    if rng.random() < 0.2:
        attributes["auto_pad"] = rng.choice(("VALID", "SAME_UPPER", "SAME_LOWER"))
    else:
        attributes["pads"] = [rng.choice((0, 1, 2, 5, 12)) for _ in range(2 * rank)]
    try:
        return make(sizes, "uint8", [rng.randint(1, 4) for _ in sizes], **attributes, **more)
    except ValueError:
        return None


def test_counts_along_an_axis():
    rng = random.Random(7)
    between = 0
    for _ in range(1500):
        plan = random_plan(rng, [rng.randint(0, 9)])
        if plan is None:
            continue
        (axis,), (w,) = plan.axes, windows_of(plan)
        all_taps = taps(axis)
        held = [[t for t in window if 0 <= t < axis.size] for window in all_taps]
        assert w.over_begin == sum(window[0] < 0 for window in all_taps)
        assert w.over_end == sum(window[-1] >= axis.size for window in all_taps)
        assert w.inside == sum(len(h) == axis.kernel for h in held)
        assert w.empty_begin == sum(window[-1] < 0 for window in all_taps)
        assert w.empty_end == sum(window[0] >= axis.size for window in all_taps if window[-1] >= 0)
        assert w.empty == sum(not h for h in held)
        assert [w.is_empty(o) for o in range(axis.output)] == [not h for h in held]
        read = set(itertools.chain(*held))
        assert [w.reads(e) for e in range(axis.size)] == [e in read for e in range(axis.size)]
        last = max([-1, *(window[-1] for window in all_taps)])
        assert w.unread_end == max(0, axis.size - 1 - last)
        between += w.empty_between > 0
    assert between > 20


def test_rounding_changes_what_is_made_and_nothing_else():
    for size, kernel, stride, pad in itertools.product(
        range(1, 7), (1, 2, 3), (1, 2, 3, 5), (0, 1, 3)
    ):
        if size + 2 * pad < kernel:  # `test_the_only_window_reaches_past_the_padding`
            continue
        attributes = {"strides": stride, "pads": pad, "layout": "W"}
        made = {}
        for rounding in ({}, {"ceil_mode": True}, {"ceil_mode": True, "ceil_rule": "keep"}):
            plan = make_plan((size,), "int8", kernel, **attributes, **rounding)
            (w,) = windows_of(plan)
            made[tuple(rounding)] = w
            assert [*w.added, *w.dropped] == list(range(min(w.fitting, w.output), w.reaching))[
                : len(w.added) + len(w.dropped)
            ]
        assert len({(w.fitting, w.reaching) for w in made.values()}) == 1
        floor, clip, keep = made.values()
        assert not floor.added and not keep.dropped
        assert floor.output == floor.fitting and keep.output == keep.reaching
        for output in clip.dropped:
            assert clip.first(output) >= size


@pytest.mark.parametrize("ceil_rule", ["clip", "keep"])
def test_the_only_window_reaches_past_the_padding(ceil_rule):
    """The window exceeds the padded input: rounding up added it, whatever the rule for the last."""
    attributes = {"strides": 4, "pads": (1, 0), "ceil_mode": True, "ceil_rule": ceil_rule}
    attributes |= {"count_include_pad": True, "layout": "W"}
    plan = plan_avg_pool((2,), "float32", 6, **attributes)
    (w,) = windows_of(plan)
    assert (w.fitting, w.reaching, w.output) == (0, 1, 1)
    assert (list(w.added), list(w.dropped), w.end) == ([0], [], 0)
    text = " ".join(plan.explain().split())
    for line in (
        "output ceil((2 + 1 + 0 - 6) / 4) + 1 = 1 padding 1 at the beginning, 0 at the end",
        "added by ceil_mode: window 0, which starts 1 before element 0 and ends 3 past the padded",
        "over the beginning: 0; over the end: 0 taps that count: 3 in window 0",
    ):
        assert line in text


def test_attributes_of_any_magnitude():
    huge = 2**30
    for attributes in (
        {"kernel_shape": huge, "pads": huge, "strides": huge // 8},
        {"kernel_shape": 3, "dilations": huge + 1, "pads": huge + 7, "strides": 10**9},
    ):
        text = make_plan((5,), "float16", **attributes, layout="W").explain()
        assert str(huge)[:9] in text
        assert "over an edge" in text
    (w,) = windows_of(make_plan((2,), "int8", 2, dilations=10**9, pads=10**9 - 1, layout="W"))
    assert w.empty_between == 10**9 - 2


def test_how_a_call_is_made(isa):
    plan = make_plan((1, 1, 20, 20), "float32", 3)
    text = plan.explain()
    assert f"kernel    {isa} build" in text.replace("\n          ", " ")
    assert "threads   1 (a call that moves less than 512 KiB takes no other)" in text
    assert "memory    1.56 KiB read, 1.27 KiB written" in text
    strategy = re.search(r'\("(\w+)"\)', text)[1]
    plan(np.zeros((1, 1, 20, 20), np.float32))
    assert strategy == plan._prepared.pooling.strategy


def test_threads_and_copies_and_pieces(monkeypatch):
    large = (8, 64, 100, 100)
    assert (
        "threads   1 (set by num_threads)" in make_plan(large, "int8", 2, num_threads=1).explain()
    )
    two = "2 (set by num_threads)", "(the default here: see"
    if not cases.OPENMP:
        two = ("1 (this fastpool was built without OpenMP)",) * 2
    assert f"threads   {two[0]}" in make_plan(large, "int8", 2, num_threads=2).explain()
    monkeypatch.setattr(threads, "why_paused", lambda kernels: None)
    assert two[1] in make_plan(large, "float32", 2, strides=2).explain()
    monkeypatch.setattr(threads, "effective_threads", lambda asked, work, limit: asked or 2)
    medium = in_one_line(make_plan((8, 64, 30, 30), "float32", 2, strides=2).explain())
    why = "within 2 ms of another call of 512 KiB or more, else 1: a call that moves less than"
    assert f"threads 2 ({why} 3 MiB does not wake threads)" in medium or not cases.OPENMP
    monkeypatch.setattr(threads, "why_paused", lambda kernels: "for 1 s: a reason")
    medium = in_one_line(make_plan((8, 64, 30, 30), "float32", 2, strides=2).explain())
    assert "threads 1 (for 1 s: a reason)" in medium or not cases.OPENMP
    last = make_plan((2, 9, 9, 8), "int8", 3, layout="NHWC", activation="Relu")
    last = in_one_line(last.explain())
    assert "none, if x is in native byte order and contiguous along C; else one of x" in last
    assert "then Relu(0.0, inf)" in last
    nothing = make_plan((4,), "int8", 1, pads=(3, 9), strides=50, layout="W").explain()
    assert "nothing to pool: no window has an element" in in_one_line(nothing)


def test_every_dtype_layout_and_path_has_words(isa):
    rng = random.Random(3)
    shapes = {"NCHW": (2, 3, 9, 11), "NHWC": (2, 9, 11, 3), "W": (40,), "CDHW": (2, 5, 6, 7)}
    for layout, shape in shapes.items():
        for dtype in ("bool", "int8", "uint16", "float16", "bfloat16", "float32", "float64"):
            attributes = {"return_indices": rng.random() < 0.5, "nan": "ignore", "layout": layout}
            lines = make_plan(shape, dtype, rng.randint(1, 5), **attributes).explain().splitlines()
            assert 13 <= len(lines) <= 31
            assert max(map(len, lines)) <= 79


def test_tiles_say_that_they_are():
    plan = make_plan((1, 1, 9, 9), "float32", 3, strides=2, auto_pad="SAME_UPPER")
    part = plan.tile(np.s_[:, :, 1:3]).plan
    assert part.given is None and "the plan of a tile" in part.explain()
    assert "of 10 windows of a plane, 4 over an edge, 0 empty" in part.explain()
    nothing = plan.tile(np.s_[:, :, 1:1]).plan.explain()
    assert "windows none" in nothing and "of 0 windows" in nothing
    with_indices = make_plan((9, 9), "int8", 2, layout="HW", return_indices=True)
    assert (
        "element 0 of this tile is at (3, 0) of an array (9, 9)"
        in with_indices.tile(np.s_[3:]).plan.explain()
    )


def test_the_way_of_asking_does_not_make_plans_differ():
    asked = make_plan((1, 1, 9, 9), "int8", 3, auto_pad="SAME_UPPER")
    padded = make_plan((1, 1, 9, 9), "int8", 3, pads=1)
    assert asked == padded and hash(asked) == hash(padded)
    assert asked.explain() != padded.explain()
    assert pickle.loads(pickle.dumps(asked)).explain() == asked.explain()


def test_explaining_leaves_a_plan_as_it_was():
    plan = make_plan((1, 1, 9, 9), "int8", 3)
    before = dict(plan.__dict__)
    plan.explain(), plan._repr_html_()
    assert plan.__dict__ == before


def test_explaining_takes_what_a_call_prepared(monkeypatch):
    made = []

    def compiled(*arguments):
        made.append(arguments)
        return original(*arguments)

    original = prepare.compiled
    monkeypatch.setattr(prepare, "compiled", compiled)
    plan = make_plan((1, 1, 9, 9), "int8", 3)
    text = plan.explain()
    assert len(made) == 1
    plan(np.zeros((1, 1, 9, 9), np.int8))
    assert plan.explain() == text and len(made) == 2
    object.__setattr__(plan, "num_threads", 1)  # what was prepared no longer fits
    assert "set by num_threads" in plan.explain() and len(made) == 3


def test_in_a_notebook(monkeypatch):
    plan = make_plan((1, 2, 6, 6), "int8", 3)
    assert "<table>" in plan._repr_html_()
    assert "<script" not in plan._repr_html_()
    solid = make_plan((2, 6, 6, 6, 6), "int8", 3, layout="NCHW")  # three axes: no picture
    assert "<table>" in solid._repr_html_() and "<img" not in solid._repr_html_()
    monkeypatch.setattr(explain, "_sections", None)  # whatever goes wrong
    assert plan._repr_html_() is None


def test_padding_that_does_not_count():
    plan = plan_avg_pool((1, 96, 56, 56), "float32", 3, pads=1)
    assert what_is_computed(plan.explain()) == [
        "AvgPoolPlan: float32 NCHW (1, 96, 56, 56) -> (1, 96, 56, 56)",
        "window    kernel_shape (3, 3), strides (1, 1)",
        'rule      auto_pad "NOTSET": pads (1, 1, 1, 1), begins and then ends',
        "          ceil_mode off: a last window that does not fit into the padded input",
        "          is dropped",
        "H, W      output floor((56 + 1 + 1 - 3) / 1) + 1 = 56",
        "          padding 1 at the beginning, 1 at the end",
        "          windows 0 to 55; over the beginning: 0; over the end: 55",
        "          taps that count: 3; 2 in window 0, 2 in window 55",
        "edges     of 3136 windows of a plane, 220 over an edge, 0 empty",
        "divisor   a sum is divided by the number of taps on elements (count_include_pad",
        "          is off): that along H times that along W",
        'values    float32, numerics "pairwise": taps along H, then along W are added by',
        "          trees, in float32, and the sum is divided once; a mean is off by at",
        "          most 5 * 2**-24 times the sum of magnitudes over the divisor",
        '          nan "propagate": a window with a NaN, or with infinities of both',
        "          signs, gives NaN",
    ]


def test_padding_that_counts_and_places_past_it():
    attributes = {"strides": 2, "pads": 1, "ceil_mode": True, "count_include_pad": True}
    attributes["layout"] = "W"
    text = in_one_line(plan_avg_pool((4,), "float32", 3, **attributes).explain())
    for line in (
        "taps that count: 3; 2 in window 2",
        "a sum is divided by the number of taps on elements and padding (count_include_pad) beyond",
        'beyond "drop": taps past the padding at the end do not count',
    ):
        assert line in text
    text = in_one_line(plan_avg_pool((4,), "float32", 3, **attributes, beyond="count").explain())
    assert "taps that count" not in text
    assert "every sum is divided by 3, as padding counts (count_include_pad)" in text
    assert 'beyond "count": taps past the padding at the end count as well' in text
    text = in_one_line(plan_avg_pool((4,), "int16", 3, **attributes, divisor=-4).explain())
    assert "divisor divisor -4: every sum is divided by it, whatever its window holds" in text
    assert "taps that count" not in text and "beyond" not in text
    assert "every sum is divided by 12 values" in in_one_line(
        plan_avg_pool((9, 9), "int8", (3, 4), layout="HW").explain()
    )


ONE_BY_ONE = (
    'float32, numerics "sequential": elements are added in row-major order, and the sum is divided '
    "once; each step is rounded to float32 nan"
)
MEANS = {
    'float32 to float64, numerics "exact": the true mean, rounded once nan': {
        "result_dtype": "float64",
        "numerics": "exact",
    },
    'numerics "exact": the true quotient, rounded once nan': {"divisor": 3, "numerics": "exact"},
    "by trees, in float32, and the sum is divided once; a mean is off by at most 3 * 2**-24": {},
    "in float64, and the sum is divided once; a mean is off by at most 3 * 2**-53 times": {
        "result_dtype": "float64"
    },
    "2**-24 times the sum of magnitudes over the divisor, and by the rounding to bfloat16 nan": {
        "dtype": "bfloat16"
    },
    'nan "ignore": NaN is not summed; a window': {"divisor": 3, "nan": "ignore"},
    "NaN is neither summed nor counted; a window of nothing else gives NaN": {"nan": "ignore"},
    ONE_BY_ONE: {"numerics": "sequential"},
    "to float32, then to float64 nan": {"numerics": "sequential", "result_dtype": "float64"},
    "to float32, then to bfloat16 nan": {"numerics": "sequential", "dtype": "bfloat16"},
    "is rounded to float64 nan": {"numerics": "sequential", "dtype": "float64"},
    'to the even one ("half_even") kernel': {"numerics": "sequential", "dtype": "int8"},
    'away from zero ("half_away") kernel': {"rounding": "half_away", "dtype": "uint8"},
    'bool: the true mean, rounded toward zero ("trunc")': {"rounding": "trunc", "dtype": "bool"},
    'rounded down ("floor")': {"rounding": "floor", "dtype": "int8", "result_dtype": "int16"},
    "int64 does not hold becomes its least or greatest value": {"dtype": "int64", "divisor": 1},
    "then Relu(0.0, inf) kernel": {"activation": "Relu"},
}


def test_the_bound_of_adaptive_means():
    """A window of 7 elements has a deeper tree than one of 8."""
    text = plan_adaptive_avg_pool((27,), "float32", 4, layout="W").explain()
    assert "a mean is off by at most 5 * 2**-24 times" in in_one_line(text)


@pytest.mark.parametrize("words", MEANS)
def test_values_of_means(words):
    attributes = {"input_shape": (6,), "dtype": "float32", "layout": "W", **MEANS[words]}
    text = plan_avg_pool(kernel_shape=3, **attributes).explain()
    assert words in in_one_line(text)
    assert max(map(len, text.splitlines())) <= 79


def test_taps_that_count_are_those_of_the_divisors():
    """Every listed number is counted here again, from the taps of its window."""
    rng = random.Random(5)
    listed = elided = 0
    for _ in range(400):
        more = {"count_include_pad": rng.random() < 0.6, "beyond": rng.choice(("drop", "count"))}
        plan = random_plan(rng, [rng.randint(1, 9)], plan_avg_pool, **more)
        if plan is None:
            continue
        (axis,), (w,) = plan.axes, windows_of(plan)
        low, stop = (0, axis.size) if plan.counted is None else plan.counted[0]
        counts = [sum(plan.counted is None or low <= t < stop for t in ts) for ts in taps(axis)]
        less = [o for o, number in enumerate(counts) if number < axis.kernel]
        before, after = w.outside(None if plan.counted is None else (low, stop))
        both = {*range(before), *range(axis.output - after, axis.output)}
        assert sorted(both) == less
        text = in_one_line(plan.explain())
        assert ("taps that count" in text) == bool(less)
        if less:
            part = text.split("taps that count: ")[1].split(" edges ")[0]
            assert part.startswith(f"{axis.kernel}; ") == (len(less) < axis.output)
            found = {int(o): int(n) for n, o in re.findall(r"(\d+) in window (\d+)", part)}
            assert found == {o: counts[o] for o in found}
            assert len(found) == (len(less) if len(less) <= 8 else 6)
            listed, elided = listed + 1, elided + ("..." in part)
    assert listed > 100 and elided > 2


def test_windows_of_an_output_size():
    plan = plan_adaptive_avg_pool((1, 2, 60, 60), "float32", (7, 6))
    *lines, _, _, _, _, _ = what_is_computed(plan.explain())
    assert lines == [
        "AvgPoolPlan: float32 NCHW (1, 2, 60, 60) -> (1, 2, 7, 6)",
        "window    of an adaptive pooling, 10 x 10 elements at most",
        "rule      output_size (7, 6): of O windows along an axis of H elements, window",
        "          i begins at element floor(i*H/O) and ends before ceil((i+1)*H/O)",
        "H         output 7; windows of 9 elements: 4, of 10 elements: 3",
        "          windows that share an element with the next one: 6",
        "W         output 6: windows of 60 / 6 = 10 elements",
        "edges     of 42 windows of a plane, 0 over an edge, 0 empty",
        "divisor   a sum is divided by the number of elements of its window: that along",
        "          H times that along W",
    ]
    even = plan_adaptive_max_pool((1, 2, 60, 8), "float32", (6, 0)).explain()
    assert "H         output 6: windows of 60 / 6 = 10 elements" in even
    assert "W         output 0" in even
    assert (
        "every sum is divided by 20"
        in plan_adaptive_avg_pool((1, 2, 60, 8), "float32", (6, 4)).explain()
    )
    whole = plan_global_avg_pool((1, 2, 60, 7), "uint8").explain()
    assert "window    kernel_shape (60, 7)" in whole and "every sum is divided by 420" in whole


def test_adaptive_windows_are_counted_without_a_loop():
    for size, outputs in itertools.product(range(1, 13), range(1, 26)):
        plan = plan_adaptive_avg_pool((size,), "float32", outputs, layout="W")
        for stop in range(1, outputs + 1):
            tile = plan.tile((slice(stop // 2, stop),)).plan
            (w,) = windows_of(tile)
            boxes = [(w.first(o), w.last(o)) for o in range(w.output)]
            assert boxes[0][0] == 0 and boxes[-1][1] == w.axis.size - 1
            assert w.inside == w.output and not w.empty and not w.over_begin and not w.over_end
            for cell in range(w.axis.size):
                starting = [o for o, (first, _) in enumerate(boxes) if first == cell]
                assert [*w.starting_at(cell)] == starting
                assert w.reads(cell)
            if isinstance(w, AdaptiveWindows):
                lengths = [last - first + 1 for first, last in boxes]
                assert w.shorter == lengths.count(size // outputs + 1)
                assert set(lengths) <= {size // outputs + 1, size // outputs + 2}
                assert w.extent >= max(lengths)
                assert w.sharing == sum(a[1] == b[0] for a, b in itertools.pairwise(boxes))
                assert ("windows repeat" in tile.explain()) <= (len({*boxes}) < len(boxes))
                if stop == outputs == w.output:
                    assert ("windows repeat" in tile.explain()) == (len({*boxes}) < len(boxes))


def test_outputs_and_extents_of_any_magnitude():
    plan = plan_adaptive_avg_pool((10**15,), "int8", 3 * 10**14 + 1, layout="W")
    text = in_one_line(plan.explain())
    assert "windows of 4 elements: 200000000000005, of 5 elements: 99999999999996" in text
    tile = plan.tile((slice(10**9, 2 * 10**14),)).plan.explain()
    assert f"windows {10**9} to {2 * 10**14 - 1} of {3 * 10**14 + 1} over {10**15}" in in_one_line(
        tile
    )
    repeated = in_one_line(plan_adaptive_avg_pool((3,), "int8", 2**58, layout="W").explain())
    assert "windows repeat, as there are at least twice as many as elements" in repeated
    huge = plan_avg_pool((5,), "float16", 2**30, pads=2**30, strides=2**27, layout="W").explain()
    assert "0 in window 0, 5 in window 1, 5 in window 2, ..., 5 in window 6" in in_one_line(huge)


def test_tiles_of_means():
    plan = plan_avg_pool((1, 1, 9, 9), "float32", 3, strides=2, pads=1, count_include_pad=True)
    part = in_one_line(plan.tile(np.s_[:, :, 1:3]).plan.explain())
    assert "rule the plan of a tile" in part and "every sum is divided by 9, as padding" in part
    part = in_one_line(
        plan_adaptive_avg_pool((7, 7), "int8", (5, 7), layout="HW").tile(np.s_[1:3]).plan.explain()
    )
    assert "window of an adaptive pooling, 3 x 1 elements at most rule the plan of a tile H" in part
    assert "windows 1 to 2 of 5 over 7 elements" in part


@pytest.mark.parametrize("colours", [1, 3, 4])
def test_a_photograph_without_a_layout(colours):
    """Its last axis is pooled, which nobody means."""
    hint = f"layout the last axis, of {colours}, is W and is pooled; for a photograph"
    for dtype in ("uint8", "float32"):
        text = in_one_line(make_plan((48, 64, colours), dtype, 1).explain())
        assert hint in text and 'layout="HWC"' in text
    means = plan_global_avg_pool((48, 64, colours), "uint8")
    assert hint in in_one_line(means.explain())
    for shape, dtype, layout in (
        ((48, 64, colours), "uint8", "HWC"),
        ((48, 64, colours), "uint8", "CHW"),
        ((48, 64, 5), "uint8", "NCHW"),
        ((1, 48, 64, colours), "uint8", "NCHW"),
    ):
        text = make_plan(shape, dtype, 1, layout=layout).explain()
        assert "\nlayout " not in text


def test_borders_that_kernels_fill():
    """Kernels fill the padding of columns; windows over other edges are pooled apart."""
    for make in (plan_avg_pool, plan_min_pool):
        border = "reflect" if make is plan_avg_pool else "wrap"
        plan = make((1, 1, 64, 64), "uint8", 7, pads=3, border=border)
        text = in_one_line(plan.explain())
        assert "windows over the edges of all axes but the last are pooled apart" in text


def test_verbose_is_a_flag():
    with pytest.raises(TypeError, match="^verbose: expected 0 or 1, got 'yes'$"):
        make_plan((4,), "int8", 2, layout="W").explain(verbose="yes")
