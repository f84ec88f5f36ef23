"""Every bad argument is refused quickly, by the right exception, with its name in the text.

Attributes of hostile size that are legal are answered, as quickly.
"""

import re
from functools import partial

import numpy as np
import pytest

import cases
import fastpool
import limits
from fastpool import _reference

X = np.arange(2 * 3 * 8 * 8, dtype=np.float32).reshape(2, 3, 8, 8)
LONG = np.arange(4, dtype=np.float32).reshape(1, 1, 4)


@pytest.fixture(autouse=True)
def within_a_second():
    with limits.quick(1):
        yield


def refused(function, exceptions, argument, *args, **attributes):
    with pytest.raises(exceptions) as raised:
        function(*args, **attributes)
    message = str(raised.value)
    assert re.search(rf"\b({argument})\b", message), f"{argument} is not named: {message}"


# (argument named, exception, attributes); kernel_shape is 2 unless given, x is (2, 3, 8, 8)
BAD_POOLS = [
    # lengths
    ("kernel_shape", ValueError, {"kernel_shape": ()}),
    ("kernel_shape", ValueError, {"kernel_shape": (2,)}),
    ("kernel_shape", ValueError, {"kernel_shape": (2, 2, 2)}),
    ("strides", ValueError, {"strides": (1, 1, 1)}),
    ("strides", ValueError, {"strides": ()}),
    ("dilations", ValueError, {"dilations": [1]}),
    ("dilations", ValueError, {"dilations": (1, 1, 1)}),
    ("pads", ValueError, {"pads": (0,)}),
    ("pads", ValueError, {"pads": (0, 0, 0)}),
    ("pads", ValueError, {"pads": (0, 0, 0, 0, 0)}),
    # signs and zero
    ("kernel_shape", ValueError, {"kernel_shape": 0}),
    ("kernel_shape", ValueError, {"kernel_shape": (2, -1)}),
    ("strides", ValueError, {"strides": 0}),
    ("strides", ValueError, {"strides": (1, -2)}),
    ("dilations", ValueError, {"dilations": 0}),
    ("dilations", ValueError, {"dilations": (-1, 1)}),
    ("pads", ValueError, {"pads": -1}),
    ("pads", ValueError, {"pads": (0, 0, 0, -1)}),
    # not integers
    ("kernel_shape", TypeError, {"kernel_shape": 2.0}),
    ("kernel_shape", TypeError, {"kernel_shape": (2, 2.0)}),
    ("kernel_shape", TypeError, {"kernel_shape": np.array([2.0, 2.0])}),
    ("kernel_shape", TypeError, {"kernel_shape": True}),
    ("kernel_shape", TypeError, {"kernel_shape": "22"}),
    ("kernel_shape", TypeError, {"kernel_shape": ((2, 2), (2, 2))}),
    ("kernel_shape", (TypeError, ValueError), {"kernel_shape": None}),
    ("kernel_shape", TypeError, {"kernel_shape": object()}),
    ("kernel_shape", TypeError, {"kernel_shape": b"\2\2"}),
    ("kernel_shape", TypeError, {"kernel_shape": {2, 3}}),
    ("kernel_shape", TypeError, {"kernel_shape": {2: 0, 3: 0}}),
    ("strides", TypeError, {"strides": 1.0}),
    ("strides", TypeError, {"strides": (1, None)}),
    ("strides", TypeError, {"strides": np.float32(1)}),
    ("strides", TypeError, {"strides": True}),
    ("strides", ValueError, {"strides": "1"}),
    ("dilations", TypeError, {"dilations": 1.5}),
    ("dilations", TypeError, {"dilations": (False, 1)}),
    ("pads", TypeError, {"pads": 0.0}),
    ("pads", TypeError, {"pads": "same"}),
    ("pads", TypeError, {"pads": (0, 0, 0, 1.0)}),
    ("pads", TypeError, {"pads": {1: 2}}),
    # names
    ("auto_pad", ValueError, {"auto_pad": "SAME"}),
    ("auto_pad", ValueError, {"auto_pad": "valid"}),
    ("auto_pad", TypeError, {"auto_pad": 1}),
    ("auto_pad|pads", ValueError, {"auto_pad": "VALID", "pads": 1}),
    ("auto_pad|pads", ValueError, {"auto_pad": "SAME_UPPER", "pads": (0, 0, 0, 1)}),
    ("ceil_mode", ValueError, {"ceil_mode": 2}),
    ("ceil_mode", ValueError, {"ceil_mode": -1}),
    ("ceil_mode", TypeError, {"ceil_mode": 1.0}),
    ("ceil_mode", TypeError, {"ceil_mode": "ceil"}),
    ("ceil_rule", ValueError, {"ceil_rule": "torch"}),
    ("ceil_rule", TypeError, {"ceil_rule": 0}),
    ("nan", ValueError, {"nan": "omit"}),
    ("nan", TypeError, {"nan": 0}),
    ("layout", ValueError, {"layout": ""}),
    ("layout", ValueError, {"layout": "nchw"}),
    ("layout", ValueError, {"layout": "NC"}),
    ("layout", ValueError, {"layout": "HCW"}),
    ("layout", ValueError, {"layout": "NCWH"}),
    ("layout", ValueError, {"layout": "CNHW"}),
    ("layout", ValueError, {"layout": "NCHHW"}),
    ("layout|x", ValueError, {"layout": "NCW"}),
    ("layout|x", ValueError, {"layout": "NCDHW"}),
    ("layout|x", ValueError, {"layout": "HW"}),
    ("layout", TypeError, {"layout": 4}),
    # shapes
    ("kernel_shape", ValueError, {"kernel_shape": 9}),
    ("kernel_shape", ValueError, {"kernel_shape": (2, 11), "pads": 1}),
    ("kernel_shape", ValueError, {"kernel_shape": (2, 5), "dilations": 2}),
    ("kernel_shape", ValueError, {"kernel_shape": 9, "ceil_mode": True}),
    (
        "kernel_shape",
        ValueError,
        {"kernel_shape": 12, "ceil_mode": True, "strides": 4, "ceil_rule": "keep"},
    ),
    ("kernel_shape", ValueError, {"kernel_shape": 9, "auto_pad": "VALID"}),
    # indices
    ("return_indices", TypeError, {"return_indices": "yes"}),
    ("return_indices", TypeError, {"return_indices": 1.0}),
    ("storage_order", ValueError, {"storage_order": 2}),
    ("storage_order", ValueError, {"storage_order": -1}),
    ("storage_order", TypeError, {"storage_order": 1.0}),
    ("storage_order", TypeError, {"storage_order": "F"}),
    ("index_axis", ValueError, {"index_axis": 4}),
    ("index_axis", ValueError, {"index_axis": -5}),
    ("index_axis", TypeError, {"index_axis": 0.0}),
    ("index_axis", TypeError, {"index_axis": "C"}),
    ("index_axis|storage_order", ValueError, {"index_axis": 3, "storage_order": 1}),
    ("index_axis|storage_order", ValueError, {"index_axis": -1, "storage_order": 1}),
    ("index_dtype", ValueError, {"index_dtype": "int16"}),
    ("index_dtype", ValueError, {"index_dtype": np.float32}),
    ("index_dtype", ValueError, {"index_dtype": "uint64"}),
    ("index_dtype", (TypeError, ValueError), {"index_dtype": "i65"}),
    ("index_layout", ValueError, {"index_layout": "HWC"}),
    ("index_layout", ValueError, {"index_layout": "NHWC"}),
    ("index_layout", TypeError, {"index_layout": 1}),
    (
        "index_layout|storage_order",
        ValueError,
        {"layout": "NHWC", "index_layout": "NHWC", "storage_order": 1},
    ),
    # activation
    ("activation", ValueError, {"activation": "Gelu"}),
    ("activation", ValueError, {"activation": "relu"}),
    ("activation", TypeError, {"activation": 1}),
    ("activation_params", ValueError, {"activation": "Clip"}),
    ("activation_params", ValueError, {"activation": "Clip", "activation_params": (1.0,)}),
    ("activation_params", ValueError, {"activation": "Relu", "activation_params": (1.0,)}),
    ("activation_params", ValueError, {"activation": "LeakyRelu", "activation_params": (1.0, 2.0)}),
    ("activation_params", ValueError, {"activation": "HardSigmoid", "activation_params": ()}),
    ("activation_params", ValueError, {"activation": "Tanh", "activation_params": (1.0,)}),
    ("activation_params", TypeError, {"activation": "Clip", "activation_params": "ab"}),
    # threads
    ("num_threads", ValueError, {"num_threads": 0}),
    ("num_threads", ValueError, {"num_threads": -1}),
    ("num_threads", TypeError, {"num_threads": 1.5}),
    ("num_threads", TypeError, {"num_threads": True}),
    ("num_threads", TypeError, {"num_threads": "2"}),
    # unknown names
    ("stride", TypeError, {"stride": 2}),
    ("step", TypeError, {"step": 2}),
]


def bad_id(bad):
    return ", ".join(f"{name}={cases.shown(value)}" for name, value in bad[2].items())


@pytest.mark.parametrize("bad", BAD_POOLS, ids=bad_id)
def test_max_pool(bad):
    argument, exceptions, attributes = bad
    attributes = {"kernel_shape": 2, **attributes}
    refused(fastpool.max_pool, exceptions, argument, X, **attributes)
    # The same call once more: a refusal is not remembered as a plan.
    refused(fastpool.max_pool, exceptions, argument, X, **attributes)


@pytest.mark.parametrize("bad", BAD_POOLS, ids=bad_id)
def test_plan_max_pool(bad):
    argument, exceptions, attributes = bad
    argument = re.sub(r"\bx\b", "input_shape", argument)
    attributes = {"kernel_shape": 2, **attributes}
    refused(fastpool.plan_max_pool, exceptions, argument, X.shape, X.dtype, **attributes)


def test_the_message_prints_the_formula_with_its_numbers():
    with pytest.raises(ValueError) as raised:
        fastpool.max_pool(X[..., :3], (2, 5), dilations=(1, 2), pads=(0, 1, 0, 1))
    for part in ("kernel_shape[1]", "9", "5", "W", "(5 - 1) * 2 + 1", "3 + 1 + 1"):
        assert part in str(raised.value)


@pytest.mark.parametrize(
    "x",
    [
        X.astype(np.complex64),
        X.astype(object),
        X.astype(str),
        X.astype(bytes),
        X.astype("datetime64[s]"),
        X.astype("timedelta64[s]"),
        np.zeros((1, 1, 4, 4), [("a", "f4")]),
        np.zeros((1, 1, 4, 4), "V2"),
        X.astype(np.longdouble),
    ],
    ids=lambda x: str(x.dtype),
)
def test_element_types(x):
    if x.dtype == np.float64:
        pytest.skip("long double is double on this platform")
    for call in (
        partial(fastpool.max_pool, x, 2),
        partial(fastpool.avg_pool, x, 2, dtype="float64"),
        partial(fastpool.lp_pool, x, 2),
        partial(fastpool.global_max_pool, x),
        partial(fastpool.global_avg_pool, x),
        partial(fastpool.global_lp_pool, x),
        partial(fastpool.adaptive_max_pool, x, 2),
        partial(fastpool.adaptive_avg_pool, x, 2),
        partial(fastpool.max_unpool, x, np.zeros(x.shape, np.int64), 2),
        partial(fastpool.onnx.average_pool, x, kernel_shape=[2, 2]),
        partial(fastpool.openvino.adaptive_avg_pool, x, [2, 2]),
    ):
        with pytest.raises(TypeError, match="^x: expected one of float16, .*, got "):
            call()
    refused(fastpool.plan_max_pool, TypeError, "dtype", x.shape, x.dtype, 2)


def test_the_type_of_results_by_its_name():
    x = np.zeros((1, 1, 4, 4), np.uint8)
    for planned, given in (
        (fastpool.plan_avg_pool, (x.shape, x.dtype, 2)),
        (fastpool.plan_global_avg_pool, (x.shape, x.dtype)),
        (fastpool.plan_adaptive_avg_pool, (x.shape, x.dtype, 2)),
    ):
        with pytest.raises(TypeError, match="^result_dtype: expected one of uint8, .* uint8, got"):
            planned(*given, result_dtype="float16")
    holds = "uint8 does not hold 0 to 1020"
    with pytest.raises(ValueError, match=f"^result_dtype: {holds}"):
        fastpool.plan_avg_pool(x.shape, x.dtype, 2, divisor=1)
    with pytest.raises(ValueError, match=f"^dtype: {holds}"):
        fastpool.avg_pool(x, 2, divisor=1)
    with pytest.raises(TypeError, match="got 'flaot32'$"):
        fastpool.avg_pool(x, 2, dtype="flaot32")


def test_norms_of_integers():
    x = X.astype(np.int32)
    for call in (partial(fastpool.lp_pool, x, 2), partial(fastpool.global_lp_pool, x)):
        with pytest.raises(TypeError, match="^x: expected one of float16, .*, got dtype int32$"):
            call()
    refused(fastpool.plan_lp_pool, TypeError, "dtype", x.shape, x.dtype, 2)


@pytest.mark.parametrize("shape", [(), (4,), (4, 4), (1, 1), (1, 1, 4), (1, 1, 4, 4, 4)])
def test_ranks(shape):
    x = np.zeros(shape, np.float32)
    refused(fastpool.max_pool, ValueError, "x|kernel_shape|layout", x, (2, 2))
    refused(
        fastpool.plan_max_pool,
        ValueError,
        "input_shape|kernel_shape|layout",
        shape,
        "float32",
        (2, 2),
    )
    refused(
        fastpool.max_unpool,
        ValueError,
        "x|kernel_shape|layout",
        x,
        np.zeros(shape, np.int64),
        (2, 2),
    )


@pytest.mark.parametrize(("shape", "layout"), [((4,), "W"), ((4, 4), "HW")])
def test_few_axes_without_a_layout(shape, layout):
    x = np.zeros(shape, np.float32)
    for call in (
        partial(fastpool.max_pool, x, 2),
        partial(fastpool.global_avg_pool, x),
        partial(fastpool.max_unpool, x, np.zeros(shape, np.int64), 2),
        partial(fastpool.plan_lp_pool, shape, "float32", 2),
        partial(fastpool.adaptive_max_pool, x, 2, layout="NHWC"),
    ):
        with pytest.raises(ValueError, match=rf'^layout: .* write layout="{layout}"$'):
            call()
    for shape in ((), (0,) * 65):
        with pytest.raises(ValueError) as raised:
            fastpool.plan_max_pool(shape, "float32", 2, layout="HW")
        assert "write layout" not in str(raised.value)


def test_none_for_an_array():
    """The argument is named. NumPy would make None an array of one object."""
    indices = np.zeros(X.shape, np.int64)
    for call in (
        partial(fastpool.max_pool, None, 2),
        partial(fastpool.avg_pool, None, 2),
        partial(fastpool.lp_pool, None, 2),
        partial(fastpool.global_max_pool, None),
        partial(fastpool.adaptive_avg_pool, None, 2),
        partial(fastpool.max_unpool, None, indices, 2),
        partial(fastpool.plan_max_pool(X.shape, X.dtype, 2), None),
        partial(fastpool.plan_avg_pool(X.shape, X.dtype, 2), None),
        partial(fastpool.plan_lp_pool(X.shape, X.dtype, 2), None),
        partial(fastpool.plan_max_unpool(X.shape, 2), None, indices),
    ):
        with pytest.raises(TypeError, match="^x: expected an array, got None$"):
            call()
    with pytest.raises(TypeError, match="^indices: expected an array, got None$"):
        fastpool.max_unpool(X, None, 2)
    for name, arguments in {
        "input_shape": (None, "float32", 2),
        "dtype": (X.shape, None, 2),
        "kernel_shape": (X.shape, "float32", None),
    }.items():
        with pytest.raises(TypeError, match=f"^{name}: .*, got None$"):
            fastpool.plan_max_pool(*arguments)


def test_input_shape_and_dtype_of_a_plan():
    for shape in ((1, 1, -4, 4), (-1, 1, 4, 4)):
        refused(fastpool.plan_max_pool, ValueError, "input_shape", shape, "float32", 2)
    for shape in ((1, 1, 4.0, 4), "1144", None, (1, 1, None, 4), (1, 1, True, 4)):
        refused(fastpool.plan_max_pool, TypeError, "input_shape", shape, "float32", 2)
    for dtype in ("complex128", "O", "U4", "nonsense", 7):
        refused(fastpool.plan_max_pool, TypeError, "dtype", (1, 1, 4, 4), dtype, 2)


def test_a_plan_refuses_another_input():
    plan = fastpool.plan_max_pool(X.shape, X.dtype, 2)
    for wrong in (X[:1], X[..., :7], X[0], X.transpose(0, 2, 3, 1)):
        refused(plan, ValueError, "x", wrong)
    for wrong in (X.astype(np.float64), X.astype(np.int32), X.astype(complex)):
        refused(plan, (TypeError, ValueError), "x", wrong)


def test_a_spatial_axis_of_no_elements():
    refused(fastpool.max_pool, ValueError, "kernel_shape", np.zeros((1, 1, 0, 4), np.float32), 2)
    refused(fastpool.max_pool, ValueError, "kernel_shape", np.zeros((1, 1, 0, 4), np.float32), 1)


def test_int32_that_cannot_hold_the_largest_index():
    large = (1, 1, 2**16, 2**16)
    attributes = {"return_indices": True, "index_dtype": "int32"}
    refused(fastpool.plan_max_pool, ValueError, "index_dtype", large, "uint8", 2, **attributes)
    refused(
        fastpool.plan_max_pool,
        ValueError,
        "index_dtype",
        (2, 1, 2**15, 2**15 + 1),
        "uint8",
        2,
        **attributes,
    )
    refused(
        fastpool.plan_max_pool,
        ValueError,
        "index_dtype",
        (1, 1, 2**31 + 1),
        "uint8",
        2,
        **attributes,
    )
    # The largest index of 2**31 elements is 2**31 - 1; of one row of a plane, it is small.
    assert fastpool.plan_max_pool((1, 2, 2**15, 2**15), "uint8", 2, **attributes)
    assert fastpool.plan_max_pool(large, "uint8", 2, index_axis=3, **attributes)
    attributes["return_indices"] = False
    assert fastpool.plan_max_pool(large, "uint8", 2, **attributes)


# ---------------------------------------------------------------------------------- hostile sizes

# Refused: windows, outputs and pads that no memory can hold. Sums must not wrap to a legal value.
IMPOSSIBLE = [
    {"kernel_shape": 2**40},
    {"kernel_shape": 2**63},
    {"kernel_shape": 10**100},
    {"kernel_shape": 2**31 - 1, "pads": 2**29},
    {"kernel_shape": 2**31 - 1, "dilations": 2**31 - 1},
    {"kernel_shape": 2, "dilations": 2**31 - 1},
    {"kernel_shape": 2, "dilations": 2**63},
    {"kernel_shape": 1, "pads": 2**60},
    {"kernel_shape": 1, "pads": 2**63 - 1},
    {"kernel_shape": 2, "pads": (0, 2**62), "strides": 2},
    {"kernel_shape": 1, "pads": 10**100},
]


@pytest.mark.parametrize("attributes", IMPOSSIBLE, ids=str)
def test_impossible_sizes(attributes):
    for return_indices in (False, True):
        with pytest.raises((ValueError, MemoryError)) as raised:
            fastpool.max_pool(LONG, return_indices=return_indices, **attributes)
        if isinstance(raised.value, ValueError):
            assert re.search(r"\b(kernel_shape|dilations|pads|output)\b", str(raised.value)), (
                raised.value
            )


def test_impossible_sizes_without_elements():
    """Found by fuzzing: an OverflowError, as zero elements were thought to fit anywhere."""
    x = np.zeros((1, 0, 1, 4), np.float32)
    with pytest.raises(ValueError, match="^output: .* is more than"):
        fastpool.max_pool(x, 1, pads=MOST)
    for layout in ("NCHW", "NHWC"):
        with pytest.raises(ValueError, match="^output: .* is more than"):
            fastpool.max_unpool(x, x.astype(int), MOST, layout=layout)


# Legal, with few outputs: (attributes, output), of the row 0 1 2 3 and its indices
MOST = 2**31 - 1
EXTREME = [
    ({"kernel_shape": 2**31 - 4, "pads": 2**30 - 2}, [3] * 5, [3] * 5),
    ({"kernel_shape": MOST, "pads": (0, MOST)}, [3, 3, 3, 3, None], [3, 3, 3, 3, -1]),
    ({"kernel_shape": MOST, "pads": (MOST - 1, 0)}, [0, 1, 2, 3], [0, 1, 2, 3]),
    (
        {"kernel_shape": 3, "pads": MOST - 1, "strides": 2**30 - 1},
        [None, None, 2, None, None],
        [-1, -1, 2, -1, -1],
    ),
    ({"kernel_shape": 4, "pads": MOST, "strides": MOST}, [None, 3, None], [-1, 3, -1]),
    ({"kernel_shape": 4, "strides": MOST}, [3], [3]),
    ({"kernel_shape": 2, "strides": MOST}, [1], [1]),
    ({"kernel_shape": 2, "dilations": MOST, "pads": (MOST, 0)}, [0, 1, 2, 3], [0, 1, 2, 3]),
    ({"kernel_shape": 2, "dilations": MOST, "pads": (0, MOST)}, [0, 1, 2, 3], [0, 1, 2, 3]),
    ({"kernel_shape": 3, "dilations": 2**30, "pads": 2**30}, [0, 1, 2, 3], [0, 1, 2, 3]),
    ({"kernel_shape": 1, "dilations": MOST}, [0, 1, 2, 3], [0, 1, 2, 3]),
    ({"kernel_shape": MOST, "auto_pad": "SAME_UPPER"}, [3, 3, 3, 3], [3, 3, 3, 3]),
    (
        {"kernel_shape": MOST - 1, "dilations": MOST, "auto_pad": "SAME_LOWER"},
        [None] * 4,
        [-1] * 4,
    ),
    ({"kernel_shape": 2, "strides": MOST, "ceil_mode": True}, [1], [1]),
]


@pytest.mark.parametrize(("attributes", "values", "places"), EXTREME, ids=str)
@pytest.mark.parametrize("name", ["float32", "uint8", "float16", "int64"])
def test_extreme_sizes_that_are_legal(name, attributes, values, places, isa):
    low = cases.lowest(name)
    expected = np.array([low if value is None else value for value in values], cases.dtype(name))
    for layout, shape in (("W", (4,)), ("NCHW", (1, 1, 4)), ("WC", (4, 1))):
        x = LONG.astype(name).reshape(shape)
        y, indices = fastpool.max_pool(x, layout=layout, return_indices=True, **attributes)
        cases.assert_same(y.reshape(-1), expected)
        assert indices.reshape(-1).tolist() == places
        cases.assert_same(fastpool.max_pool(x, layout=layout, **attributes).reshape(-1), expected)


# ----------------------------------------------------------------------------------------- unpool

INDICES = np.zeros((2, 3, 8, 8), np.int64)

BAD_UNPOOLS = [
    ("kernel_shape", ValueError, {"kernel_shape": 0}),
    ("kernel_shape", ValueError, {"kernel_shape": (2, 2, 2)}),
    ("kernel_shape", TypeError, {"kernel_shape": 2.0}),
    ("kernel_shape", TypeError, {"kernel_shape": True}),
    ("strides", ValueError, {"strides": 0}),
    ("strides", ValueError, {"strides": (1,)}),
    ("strides", TypeError, {"strides": 2.0}),
    ("pads", ValueError, {"pads": -1}),
    ("pads", ValueError, {"pads": (0, 0, 0)}),
    ("pads", TypeError, {"pads": 0.0}),
    ("pads", ValueError, {"pads": 5}),
    ("pads", ValueError, {"pads": (0, 0, 0, 9)}),
    ("pads", ValueError, {"pads": 2**63}),
    ("output_shape", ValueError, {"output_shape": (9, 9)}),
    ("output_shape", ValueError, {"output_shape": (1, 3, 9, 9)}),
    ("output_shape", ValueError, {"output_shape": (2, 4, 9, 9)}),
    ("output_shape", ValueError, {"output_shape": (2, 3, 9, -9)}),
    ("output_shape", ValueError, {"output_shape": (2, 3, 8, 9), "index_space": "inferred"}),
    ("output_shape", (ValueError, MemoryError), {"output_shape": (2, 3, 2**40, 2**40)}),
    ("output_shape", TypeError, {"output_shape": (2.0, 3, 9, 9)}),
    ("output_shape", TypeError, {"output_shape": "2399"}),
    ("output_shape", TypeError, {"output_shape": np.array([2.0, 3, 9, 9])}),
    ("strides|output", (ValueError, MemoryError), {"strides": 2**40}),
    ("layout", ValueError, {"layout": "HWCN"}),
    ("layout", TypeError, {"layout": 1}),
    ("layout|x", ValueError, {"layout": "CHW"}),
    ("index_space", ValueError, {"index_space": "input"}),
    ("index_space", TypeError, {"index_space": 0}),
    ("index_layout", ValueError, {"index_layout": "NHWC"}),
    ("index_layout", ValueError, {"index_layout": "x"}),
    ("num_threads", ValueError, {"num_threads": 0}),
    ("num_threads", TypeError, {"num_threads": 1.5}),
    ("dilations", TypeError, {"dilations": 1}),
    ("auto_pad", TypeError, {"auto_pad": "VALID"}),
]


@pytest.mark.parametrize("bad", BAD_UNPOOLS, ids=bad_id)
def test_max_unpool(bad):
    argument, exceptions, attributes = bad
    attributes = {"kernel_shape": 2, **attributes}
    with pytest.raises(exceptions) as raised:
        fastpool.max_unpool(X, INDICES, **attributes)
    if not isinstance(raised.value, MemoryError):
        assert re.search(rf"\b({argument})\b", str(raised.value)), raised.value


@pytest.mark.parametrize("bad", BAD_UNPOOLS, ids=bad_id)
def test_plan_max_unpool(bad):
    argument, exceptions, attributes = bad
    attributes = {"kernel_shape": 2, **attributes}
    refused(fastpool.plan_max_unpool, exceptions, argument, X.shape, **attributes)


@pytest.mark.parametrize(("shape", "error"), [(4, TypeError), ((1, -1, 4, 4), ValueError)])
def test_shapes_of_unpooling_plans(shape, error):
    refused(fastpool.plan_max_unpool, error, "input_shape", shape, 2)


def test_indices_of_unpool():
    for dtype in (np.float32, np.int16, np.uint64, np.uint32, bool, object, complex):
        refused(fastpool.max_unpool, TypeError, "indices", X, INDICES.astype(dtype), 2)
    for shape in ((2, 3, 8), (2, 3, 8, 9), (384,), (2, 3, 64), (1, 3, 8, 8), ()):
        refused(fastpool.max_unpool, ValueError, "indices", X, np.zeros(shape, np.int64), 2)
    refused(fastpool.max_unpool, ValueError, "indices", X, INDICES - 1, 2)
    refused(fastpool.max_unpool, ValueError, "indices", X, INDICES + 2 * 3 * 9 * 9, 2)
    # In the inferred block the indices must lie in it, whatever the size of the result.
    attributes = {"output_shape": (2, 3, 20, 20), "index_space": "inferred"}
    refused(fastpool.max_unpool, ValueError, "indices", X, INDICES + 2 * 3 * 9 * 9, 2, **attributes)
    fastpool.max_unpool(X, INDICES + 2 * 3 * 9 * 9 - 1, 2, **attributes)


def test_strides_far_larger_than_the_input():
    """Tiles of one output cannot be made smaller: looking for less scratch has to end."""
    x = np.arange(36, dtype=np.float16).reshape(6, 6, 1)
    attributes = {
        "strides": (4097, 4097, 97),
        "pads": (16558, 16558, 682, 12870, 12870, 28),
        "dilations": (85, 85, 1),
        "layout": "DHW",
    }
    y, indices = fastpool.max_pool(x, (68, 68, 4), return_indices=True, **attributes)
    expected, places = _reference.max_pool(x, (68, 68, 4), return_indices=True, **attributes)
    assert np.array_equal(y, expected)
    assert np.array_equal(indices, places)


class Buffer(bytes):
    pass


class Table(dict):
    pass


@pytest.mark.parametrize(
    "value",
    [
        bytearray(10**7),
        Buffer(10**7),
        Table.fromkeys(range(10**6)),
        dict.fromkeys(range(10**6)).keys(),
        set(range(10**6)),
        [set(range(10**6)), 2],
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_show_little_of_large_objects(value):
    def call():
        with pytest.raises(TypeError, match="^kernel_shape") as raised:
            fastpool.max_pool(np.zeros((1, 1, 4, 4), np.float32), value)
        assert len(str(raised.value)) < 300

    assert limits.allocated(call) < 1 << 20
