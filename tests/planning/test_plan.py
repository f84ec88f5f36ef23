"""The planner is right: extents equal counted ones, index rules hold, hostile sizes are refused."""

import functools
import itertools

import pytest

import limits
from fastpool._planning.values import MOST
from fastpool._plans import (
    make_adaptive_avg_plan,
    make_avg_plan,
    make_global_avg_plan,
    make_global_max_plan,
    make_lp_plan,
    make_plan,
    make_unpool_plan,
)

SIZES, KERNELS, STRIDES, DILATIONS, PADS = range(8), range(1, 5), range(1, 5), range(1, 4), range(4)


@functools.lru_cache(maxsize=8)  # callers plan a geometry again with the pads that it has got
def plan_row(size, kernel, stride, dilation, begin=0, end=0, **attributes):
    """The only axis of a planned row, and the plan."""
    plan = make_plan(
        (size,),
        "float32",
        kernel,
        strides=stride,
        dilations=dilation,
        pads=(begin, end),
        layout="W",
        **attributes,
    )
    return plan.axes[0], plan


# ------------------------------------------------------- extents and padding, against counting


def starts_inside(padded, extent, stride):
    """Where windows start that lie in `padded` elements, by trying every place."""
    return [p for p in range(0, padded, stride) if p + extent <= padded]


def starts_covering(padded, extent, stride):
    """Where windows start until one reaches the last of `padded` elements: rounding up.

    There is none if a window would have to start before the padding to end with it.
    """
    starts = [0] if padded + stride > extent else []
    while starts and starts[-1] + extent < padded:
        starts.append(starts[-1] + stride)
    return starts


@pytest.mark.parametrize("stride", STRIDES)
def test_explicit_padding_on_every_small_geometry(stride):
    for size, kernel, dilation, begin, end in itertools.product(
        SIZES, KERNELS, DILATIONS, PADS, PADS
    ):
        geometry = size, kernel, stride, dilation, begin, end
        extent = len(range(0, (kernel - 1) * dilation + 1))
        padded = size + begin + end
        inside = starts_inside(padded, extent, stride)
        check_row(geometry, inside, len(inside))
        starts = starts_covering(padded, extent, stride)
        check_row(geometry, starts, len(inside), ceil_mode=True, ceil_rule="keep")
        if starts and starts[-1] >= begin + size:
            starts.pop()
        check_row(geometry, starts, len(inside), ceil_mode=True)


def check_row(geometry, starts, fitting, **rounding):
    """The plan has windows that start there, or is refused if there are none.

    With the plan's own pads, rounding down gives the same. They differ only if they have to.
    """
    size, kernel, stride, dilation, begin, end = geometry
    if not starts:
        with pytest.raises(ValueError, match=r"^kernel_shape\[0\]"):
            plan_row(*geometry, **rounding)
        return
    axis, plan = plan_row(*geometry, **rounding)
    assert axis[:6] == (size, len(starts), *geometry[1:5])
    assert axis == plan_row(size, kernel, stride, dilation, *plan.pads)[0]
    if len(starts) == fitting:
        assert plan.pads == (begin, end)


@pytest.mark.parametrize("stride", STRIDES)
def test_same_on_every_small_geometry(stride):
    for size, kernel, dilation in itertools.product(range(13), range(1, 7), DILATIONS):
        extent = (kernel - 1) * dilation + 1
        starts = [p for p in range(size) if p % stride == 0]
        total = 0
        while starts and starts[-1] + extent > size + total:
            total += 1
        less, more = sorted((total // 2, total - total // 2))
        for auto_pad, pads in (("SAME_UPPER", (less, more)), ("SAME_LOWER", (more, less))):
            for ceil_mode in (False, True):  # no effect
                axis, plan = plan_row(
                    size, kernel, stride, dilation, auto_pad=auto_pad, ceil_mode=ceil_mode
                )
                assert axis == (size, len(starts), kernel, stride, dilation, *pads)
                assert plan.output_shape == (len(starts),)


def test_valid_is_no_padding_and_follows_the_rounding():
    for size, kernel, stride, dilation in itertools.product(range(4, 12), KERNELS, STRIDES, (1, 2)):
        missing = (kernel - 1) * dilation + 1 - size
        for rounding in ({}, {"ceil_mode": True}, {"ceil_mode": True, "ceil_rule": "keep"}):
            if missing > 0 and (not rounding or missing >= stride):
                continue
            valid = plan_row(size, kernel, stride, dilation, auto_pad="VALID", **rounding)
            assert valid == plan_row(size, kernel, stride, dilation, 0, 0, **rounding)
    # OpenVINO's example 5
    assert plan_row(3, 2, 2, 1, auto_pad="VALID", ceil_mode=True)[0].output == 2


def test_axes_do_not_mix():
    rows = [(7, 3, 2, 1, 1, 0), (9, 2, 3, 4, 0, 2), (5, 5, 1, 1, 3, 3), (6, 1, 4, 2, 0, 0)]
    for count in (1, 2, 3, 4):
        for chosen in itertools.permutations(rows, count):
            sizes, kernels, strides, dilations, begins, ends = zip(*chosen, strict=True)
            attributes = {"strides": strides, "dilations": dilations, "pads": begins + ends}
            plan = make_plan((2, 3, *sizes), "int8", kernels, **attributes)
            assert plan.axes == tuple(plan_row(*row)[0] for row in chosen)
            assert plan.output_shape == (2, 3, *(axis.output for axis in plan.axes))
            assert (plan.kernel_shape, plan.strides, plan.dilations) == (
                kernels,
                strides,
                dilations,
            )
            assert plan.pads == begins + ends
            last = make_plan((2, *sizes, 3), "int8", kernels, layout="NHWC", **attributes)
            assert last.axes == plan.axes
            assert last.output_shape == (2, *plan.output_shape[2:], 3)


# -------------------------------------------------------------------------------------- layouts

# layout, shape: batch axis, channel axis, spatial axes, exact name
LAYOUTS = [
    ("NCHW", (5, 7, 4), 0, 1, (2,), "NCW"),
    ("NCHW", (5, 7, 4, 4), 0, 1, (2, 3), "NCHW"),
    ("NCHW", (5, 7, 4, 4, 4), 0, 1, (2, 3, 4), "NCDHW"),
    ("NCHW", (5, 7, 4, 4, 4, 4), 0, 1, (2, 3, 4, 5), "NCHW"),
    ("NHWC", (5, 4, 7), 0, 2, (1,), "NWC"),
    ("NHWC", (5, 4, 4, 7), 0, 3, (1, 2), "NHWC"),
    ("NHWC", (5, 4, 4, 4, 7), 0, 4, (1, 2, 3), "NDHWC"),
    ("NHWC", (5, 4, 4, 4, 4, 7), 0, 5, (1, 2, 3, 4), "NHWC"),
    ("NCW", (5, 7, 4), 0, 1, (2,), "NCW"),
    ("NCDHW", (5, 7, 4, 4, 4), 0, 1, (2, 3, 4), "NCDHW"),
    ("NWC", (5, 4, 7), 0, 2, (1,), "NWC"),
    ("NDHWC", (5, 4, 4, 4, 7), 0, 4, (1, 2, 3), "NDHWC"),
    ("CW", (7, 4), -1, 0, (1,), "CW"),
    ("CHW", (7, 4, 4), -1, 0, (1, 2), "CHW"),
    ("CDHW", (7, 4, 4, 4), -1, 0, (1, 2, 3), "CDHW"),
    ("WC", (4, 7), -1, 1, (0,), "WC"),
    ("HWC", (4, 4, 7), -1, 2, (0, 1), "HWC"),
    ("DHWC", (4, 4, 4, 7), -1, 3, (0, 1, 2), "DHWC"),
    ("NW", (5, 4), 0, -1, (1,), "NW"),
    ("NHW", (5, 4, 4), 0, -1, (1, 2), "NHW"),
    ("NDHW", (5, 4, 4, 4), 0, -1, (1, 2, 3), "NDHW"),
    ("W", (4,), -1, -1, (0,), "W"),
    ("HW", (4, 4), -1, -1, (0, 1), "HW"),
    ("DHW", (4, 4, 4), -1, -1, (0, 1, 2), "DHW"),
]


@pytest.mark.parametrize("layout, shape, batch, channel, spatial, name", LAYOUTS)
def test_layouts(layout, shape, batch, channel, spatial, name):
    plan = make_plan(shape, "float32", 2, layout=layout)
    assert (plan.batch_axis, plan.channel_axis, plan.spatial) == (batch, channel, spatial)
    assert plan.batch == (1 if batch < 0 else 5)
    assert plan.channels == (1 if channel < 0 else 7)
    assert plan.channels_last == (channel > 0 and channel == len(shape) - 1)
    assert plan.layout == name
    assert plan.output_shape == tuple(3 if i in spatial else n for i, n in enumerate(shape))
    assert make_plan(shape, "float32", 2, layout=name) == plan
    unpool = make_unpool_plan(shape, 2, layout=layout)
    assert (unpool.spatial, unpool.layout) == (spatial, name)
    assert (unpool.batch, unpool.channels) == (plan.batch, plan.channels)


# -------------------------------------------------------------------------------------- indices


def test_index_axis_counts_from_the_first_axis():
    for axis in range(-4, 4):
        assert make_plan((2, 3, 8, 9), "int8", 2, index_axis=axis).index_axis == axis % 4
    assert make_plan((3, 8, 9), "int8", 2, index_axis=-1, layout="HWC").index_axis == 2


@pytest.mark.parametrize(
    "layout, shape, plane",
    [
        ("NCHW", (2, 3, 4, 4), 2),
        ("NHWC", (2, 4, 4, 3), 2),
        ("CHW", (3, 4, 4), 1),
        ("HW", (4, 4), 0),
    ],
)
def test_column_major_planes_cannot_be_cut(layout, shape, plane):
    for axis in range(len(shape)):
        attributes = {"layout": layout, "storage_order": 1, "index_axis": axis}
        if axis <= plane:
            assert make_plan(shape, "int8", 2, **attributes).storage_order == 1
        else:
            with pytest.raises(ValueError, match=f"index_axis: {axis} .* at most {plane}"):
                make_plan(shape, "int8", 2, **attributes)


def test_column_major_numbers_need_planes():
    with pytest.raises(ValueError, match="storage_order.*index_layout"):
        make_plan((2, 4, 4, 3), "int8", 2, layout="NHWC", index_layout="NHWC", storage_order=1)
    for layout in ("NCHW", "HW", "NHW", "CHW"):
        with pytest.raises(ValueError, match="index_layout.*layout"):
            shape = (4,) * (4 if layout == "NCHW" else len(layout))
            make_plan(shape, "int8", 2, layout=layout, index_layout="NHWC")


# shape, layout, index_layout, index_axis: the largest index
LARGEST_INDEX = [
    ((2, 1, 2**15, 2**15), "NCHW", "NCHW", 0, 2**31 - 1),
    ((2, 1, 2**15, 2**15 + 1), "NCHW", "NCHW", 0, 2**31 + 2**16 - 1),
    ((2, 2**15, 1, 2**15 + 1), "NHWC", "NCHW", 0, 2**31 + 2**16 - 1),
    ((2, 1, 2**15, 2**15 + 1), "NCHW", "NCHW", 1, 2**30 + 2**15 - 1),
    ((9, 2**20, 2**20, 7), "NHWC", "NCHW", 3, 2**20 - 1),
    ((9, 2**20, 2**20, 7), "NHWC", "NCHW", 2, 2**40 - 1),
    ((9, 2**20, 2**20, 7), "NHWC", "NHWC", 3, 6),
    ((9, 2**20, 2**20, 7), "NHWC", "NHWC", 2, 7 * 2**20 - 1),
    ((2**31,), "W", "NCHW", 0, 2**31 - 1),
    ((2**31 + 1,), "W", "NCHW", 0, 2**31),
    ((2**40, 0, 2**10, 2), "NCHW", "NCHW", 0, -1),
]


@pytest.mark.parametrize("shape, layout, index_layout, index_axis, largest", LARGEST_INDEX)
def test_int32_holds_the_largest_index(shape, layout, index_layout, index_axis, largest):
    attributes = {"layout": layout, "index_layout": index_layout, "index_axis": index_axis}
    attributes |= {"index_dtype": "int32", "return_indices": True}
    if largest < 2**31:
        assert make_plan(shape, "int8", 1, **attributes).index_dtype == "int32"
    else:
        with pytest.raises(ValueError, match=rf"index_dtype: .* {largest}$"):
            make_plan(shape, "int8", 1, **attributes)
        attributes["return_indices"] = False
        assert make_plan(shape, "int8", 1, **attributes)


# ---------------------------------------------------------------------------------- error texts


def test_a_shape_error_prints_its_formula():
    with pytest.raises(ValueError) as raised:
        make_plan((1, 1, 9, 3), "float32", (2, 5), dilations=(1, 2), pads=(0, 1, 0, 1))
    window, room = "window (5 - 1) * 2 + 1 = 9", "the padded input 3 + 1 + 1 = 5 of axis W"
    assert str(raised.value) == f"kernel_shape[1]: {window} exceeds {room}"
    with pytest.raises(ValueError, match=r"kernel_shape\[2\].*of axis D3$"):
        make_plan((1, 1, 9, 9, 3, 9), "float32", (2, 2, 5, 2))


def test_a_shape_error_says_whether_rounding_up_helps():
    exceeds = r"^kernel_shape\[0\]: window .* = 5 exceeds the padded input .* = 3 of axis W"
    with pytest.raises(ValueError, match=exceeds + "; ceil_mode would make one window of it$"):
        plan_row(2, 5, 3, 1, 1)
    with pytest.raises(ValueError, match=exceeds + "$"):
        plan_row(2, 5, 2, 1, 1)
    for ceil_rule in ("clip", "keep"):
        rounding = {"ceil_mode": True, "ceil_rule": ceil_rule}
        with pytest.raises(ValueError, match=exceeds + " by at least the stride 2$"):
            plan_row(2, 5, 2, 1, 1, **rounding)
        assert plan_row(2, 5, 3, 1, 1, **rounding)[0].output == 1
    # Without elements, and padding before them, "clip" drops the first window too.
    for end, stride in ((5, 1), (3, 3)):
        with pytest.raises(ValueError, match='ceil_rule "clip" drops the only window of axis W'):
            plan_row(0, 5, stride, 1, 0, end, ceil_mode=True)
        keep = {"ceil_mode": True, "ceil_rule": "keep"}
        assert plan_row(0, 5, stride, 1, 0, end, **keep)[0].output == 1
    with pytest.raises(ValueError, match=r"= 3 of axis W$"):
        plan_row(0, 5, 3, 1, 0, 3)


def test_pads_together_with_auto_pad():
    for auto_pad in ("VALID", "SAME_UPPER", "SAME_LOWER"):
        assert make_plan((1, 1, 4, 4), "int8", 2, auto_pad=auto_pad, pads=(0, 0, 0, 0))
        with pytest.raises(ValueError, match=f'pads.*auto_pad "{auto_pad}".*0, 0, 0, 1'):
            make_plan((1, 1, 4, 4), "int8", 2, auto_pad=auto_pad, pads=(0, 0, 0, 1))


# -------------------------------------------------------------------------------- hostile sizes


@pytest.fixture
def at_once():
    with limits.quick(0.5):
        yield


REFUSED = [
    {"kernel_shape": 2**31},
    {"kernel_shape": 2**64 + 1, "pads": 2**31 - 1},
    {"kernel_shape": 1 << 10**6},
    {"kernel_shape": 2**31 - 1, "pads": 2**29},
    {"kernel_shape": 2, "dilations": 2**31},
    {"kernel_shape": 2**31 - 1, "dilations": 2**31 - 1, "pads": 2**31 - 1},
    {"kernel_shape": 1, "pads": 2**31},
    {"kernel_shape": 1, "pads": 2**64},
    {"kernel_shape": 2, "strides": 2**31},
    {"kernel_shape": 2, "pads": (0, 2**62), "strides": 2},
    {"kernel_shape": 2, "pads": (2**63, 2**63), "strides": 3, "ceil_mode": True},
]


@pytest.mark.parametrize("attributes", REFUSED, ids=lambda a: ", ".join(a))
def test_impossible_sizes_are_refused(attributes, at_once):
    with pytest.raises(ValueError, match="^(kernel_shape|strides|dilations|pads)"):
        make_plan((4,), "float32", layout="W", **attributes)


ACCEPTED = [
    ({"kernel_shape": MOST, "pads": MOST // 2}, 4),
    ({"kernel_shape": MOST, "pads": (MOST - 1, 0)}, 4),
    ({"kernel_shape": 3, "pads": MOST, "strides": MOST // 2}, 5),
    ({"kernel_shape": 2, "strides": MOST}, 1),
    ({"kernel_shape": 2, "strides": MOST, "ceil_mode": True, "ceil_rule": "keep"}, 2),
    ({"kernel_shape": 2, "strides": MOST, "ceil_mode": True}, 1),
    ({"kernel_shape": MOST, "dilations": MOST, "auto_pad": "SAME_LOWER"}, 4),
    ({"kernel_shape": 1, "dilations": MOST}, 4),
    ({"kernel_shape": 1, "pads": (0, MOST)}, MOST + 4),
    # float32 rounds these extents
    ({"kernel_shape": 3, "pads": (0, 2**24 - 1), "strides": 2}, 2**23 + 1),
]


@pytest.mark.parametrize("name", ["kernel_shape", "strides", "dilations", "pads"])
def test_the_limit_of_attributes(name):
    attributes = {"kernel_shape": 1, "pads": 0, "layout": "HW"}
    for value, argument in ((MOST + 1, name), ((1, MOST + 1), rf"{name}\[1\]")):
        for make in (make_plan, make_avg_plan, make_lp_plan):
            with pytest.raises(
                ValueError, match=rf"^{argument}: .* at most 2\*\*31 - 1 = {MOST}, "
            ):
                make((4, 4), "float32", **attributes | {name: value})
    for divisor in (MOST + 1, -MOST - 1, 10**30):
        with pytest.raises(ValueError, match=rf"^divisor: .* at most 2\*\*31 - 1 = {MOST}, got "):
            make_avg_plan((4,), "float32", 2, divisor=divisor, layout="W")
    taps = {"pads": MOST // 2, "strides": MOST, "layout": "DHW"}
    assert make_avg_plan((4, 4, 4), "float32", (2**26, 2**27, 1), **taps)
    with pytest.raises(ValueError, match=r"^kernel_shape: .* at most 2\*\*53, got "):
        make_avg_plan((4, 4, 4), "float32", (2**26, 2**27, 2), **taps)


def test_windows_of_whole_axes_have_no_limit():
    """Those of global and adaptive pooling, and the same windows by their taps."""
    shape, unset = (1, 1, 2**40, 3), (None,) * 6
    for plan in (
        make_global_avg_plan(shape, "uint8", *unset),
        make_global_max_plan(shape, "uint8", None, None, *(None,) * 5),
        make_adaptive_avg_plan(shape, "uint8", 1, *unset),
        make_avg_plan(shape, "uint8", (2**40, 3)),
        make_plan(shape, "uint8", (2**40, 3)),
    ):
        assert plan.kernel_shape == (2**40, 3) and plan.output_shape == (1, 1, 1, 1)
    with pytest.raises(ValueError, match="^kernel_shape"):
        make_plan(shape, "uint8", (2**40 + 1, 3), ceil_mode=True)


@pytest.mark.parametrize("attributes, output", ACCEPTED, ids=lambda a: str(a)[:40])
def test_legal_sizes_are_planned(attributes, output, at_once):
    assert make_plan((4,), "float32", layout="W", **attributes).output_shape == (output,)


def test_the_largest_input_and_output():
    assert make_plan((2**31, 2**31), "int8", 1, layout="HW")
    for shape, dtype in (((2**31, 2**31 + 1), "int8"), ((2**31, 2**31), "int16")):
        with pytest.raises(ValueError, match="input_shape"):
            make_plan(shape, dtype, 1, layout="HW")
    # 8 bytes for each index
    pads = {"pads": 2**29, "layout": "HW"}
    assert make_plan((2, 2), "int8", 1, **pads)
    with pytest.raises(ValueError, match="output"):
        make_plan((2, 2), "int8", 1, return_indices=True, **pads)


# ------------------------------------------------------------------------------------ unpooling


def test_inferred_extents_are_the_smallest_that_pool_to_x():
    for kernel, stride, begin, end in itertools.product(KERNELS, STRIDES, PADS, PADS):
        attributes = {"strides": stride, "pads": (begin, end), "layout": "W"}
        smallest = {}  # the extent that gives so many outputs
        for extent in range(max(1, kernel - begin - end), 30):
            plan = make_plan((extent,), "int8", kernel, **attributes)
            smallest.setdefault(plan.output_shape[0], extent)
        for size in range(1, 6):
            inferred = (size - 1) * stride + kernel - begin - end
            if inferred < 1:
                with pytest.raises(ValueError, match=rf"pads: .* = {inferred} of axis W"):
                    make_unpool_plan((size,), kernel, **attributes)
                continue
            plan = make_unpool_plan((size,), kernel, **attributes)
            assert plan.inferred == plan.output == plan.output_shape == (inferred,)
            assert plan.sizes == (size,)
            assert smallest[size] == inferred


def test_output_shape_of_unpooling():
    attributes = {"strides": 2, "index_space": "inferred"}
    plan = make_unpool_plan((2, 3, 4, 5), 2, output_shape=(2, 3, 9, 10), **attributes)
    assert (plan.inferred, plan.output, plan.output_shape) == ((8, 10), (9, 10), (2, 3, 9, 10))
    for shape in ((2, 3, 7, 10), (2, 3, 9, 9)):
        with pytest.raises(ValueError, match="output_shape.*inferred extent"):
            make_unpool_plan((2, 3, 4, 5), 2, output_shape=shape, **attributes)
    # Where the result is what indices count in, any extents will do, and pads mean nothing.
    plan = make_unpool_plan((2, 3, 4, 5), 2, output_shape=(2, 3, 1, 90), pads=70)
    assert plan.output == (1, 90)
    last = make_unpool_plan((2, 4, 5, 3), 2, output_shape=(2, 9, 10, 3), layout="NHWC")
    assert last.output == (9, 10)
    for shape, match in (
        ((2, 3, 9), "expected 4 values"),
        ((1, 3, 9, 9), r"output_shape\[0\]: batch"),
        ((2, 4, 9, 9), r"output_shape\[1\]: channels"),
        ((2, 3, 9, -9), r"output_shape\[3\]"),
    ):
        with pytest.raises(ValueError, match=match):
            make_unpool_plan((2, 3, 4, 5), 2, output_shape=shape)


def test_planes_that_indices_of_unpooling_count_through():
    for shape, layout, index_layout, counted in (
        ((2, 3, 4, 5), "NCHW", "NCHW", [6, 3, 1]),
        ((2, 4, 5, 3), "NHWC", "NCHW", [6, 3, 1]),
        ((2, 4, 5, 3), "NHWC", "NHWC", [6, 3]),
        ((2, 4, 5), "NHW", "NCHW", [2, 1]),
        ((4, 5, 3), "HWC", "NHWC", [3]),
        ((4, 5), "HW", "NCHW", [1]),
    ):
        attributes = {"layout": layout, "index_layout": index_layout}
        for axis, count in enumerate(counted):
            for index_axis in (axis, axis - len(shape)):
                plan = make_unpool_plan(shape, 2, index_axis=index_axis, **attributes)
                assert plan.index_planes == count
        with pytest.raises(ValueError, match="^index_axis: .* is inside the plane"):
            make_unpool_plan(shape, 2, index_axis=len(counted), **attributes)
    assert make_unpool_plan((0, 3, 4, 5), 2).index_planes == 1


def test_impossible_unpooling(at_once):
    for attributes in (
        {"output_shape": (2, 3, 2**40, 2**40)},
        {"strides": 2**40},
        {"kernel_shape": 10**100},
        {"output_shape": (2, 3, 2**29, 2**29)},
    ):
        with pytest.raises(ValueError, match="^(output|strides|kernel_shape)"):
            make_unpool_plan((2, 3, 4, 5), **{"kernel_shape": 2, **attributes})
