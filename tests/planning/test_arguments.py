"""Each argument accepts its legal spellings, becomes one value, and has a clear error."""

import array
import fractions
import math
import random

import numpy as np
import pytest

import cases
from fastpool._planning import arguments, dtypes, geometry
from fastpool._planning.values import MOST, as_count, as_counts, as_int, shown


class Indexable:
    """Any object may be an integer."""

    def __index__(self):
        return 3


THREE = [3, np.int64(3), np.uint8(3), np.array(3), np.array(3, np.int16), Indexable()]
NOT_INTS = [3.0, np.float32(3), "3", b"3", 3j, True, np.True_, np.array(3.0), np.array([3]), None]
NOT_INTS += [object(), int, fractions.Fraction(3)]


def refused(exception, match, function, *args):
    with pytest.raises(exception, match=match):
        function(*args)


# ------------------------------------------------------------------------------------- integers


@pytest.mark.parametrize("value", THREE, ids=cases.shown)
def test_integers(value):
    for function in (as_int, as_count):
        result = function(value, "k")
        assert result == 3 and type(result) is int


@pytest.mark.parametrize("value", NOT_INTS, ids=cases.shown)
def test_what_is_no_integer(value):
    refused(TypeError, "^k: expected an int, got ", as_int, value, "k")


def test_counts():
    assert as_count(0, "k", 0) == 0
    refused(ValueError, "^k: expected an int of at least 1, got 0$", as_count, 0, "k")
    refused(ValueError, "^k: .* at least 0, got -1$", as_count, -1, "k", 0)


def test_integers_of_any_reasonable_size():
    assert as_int(-(10**300), "k") == -(10**300)
    refused(
        ValueError,
        "^k: an integer of 332193 bits is too large",
        as_int,
        10**100_000,
        "k",
    )


def test_long_values_are_not_printed_in_full():
    with pytest.raises(TypeError) as raised:
        as_int("x" * 10**6, "k")
    assert len(str(raised.value)) < 100


SEQUENCES = [
    (1, 2),
    [1, 2],
    range(1, 3),
    np.array([1, 2]),
    np.array([1, 2], np.uint8),
    np.array([1, 9, 2, 9])[::2],
    array.array("i", [1, 2]),
    (np.int32(1), np.array(2)),
    memoryview(array.array("q", [1, 2])),
]


@pytest.mark.parametrize("value", SEQUENCES, ids=cases.shown)
def test_sequences(value):
    result = as_counts(value, "s", 1)
    assert result == (1, 2) and set(map(type, result)) == {int}


@pytest.mark.parametrize(
    "value", ["12", b"12", bytearray(b"12"), {1: 2}, {1, 2}, iter((1, 2)), 12, None]
)
def test_what_is_no_sequence(value):
    refused(TypeError, "^s: expected a sequence of ints, got ", as_counts, value, "s", 1)


@pytest.mark.parametrize(
    "value",
    [(1, 2.0), [1, None], (1, True), np.ones(2), np.ones((2, 2), int), np.array([True]), [[1]]],
)
def test_sequences_of_something_else(value):
    refused(TypeError, r"^s\[[01]\]: expected an int, got ", as_counts, value, "s", 1)


def test_the_error_names_the_element():
    refused(ValueError, r"^s\[1\]: .* at least 1, got 0", as_counts, (1, 0), "s", 1)


# -------------------------------------------------------------------------------------- windows


def strides(value, count):
    return arguments.strides(value, (2,) * count)


PER_AXIS = [arguments.kernel_shape, strides, arguments.dilations]


@pytest.mark.parametrize("function", PER_AXIS)
def test_one_value_or_one_per_axis(function):
    name = function.__name__
    assert function(3, 2) == (3, 3)
    assert function([3, 4], 2) == (3, 4)
    assert function(np.array([3]), 1) == (3,)
    refused(
        ValueError, rf"^{name}: .* 2 values, one per spatial axis, got 3", function, (1, 2, 3), 2
    )
    refused(ValueError, rf"^{name}: .* 1 value, .* got 0", function, (), 1)
    refused(ValueError, rf"^{name}\[1\]: .* at least 1, got 0", function, (1, 0), 2)
    refused(ValueError, rf"^{name}: .* at least 1, got -2", function, -2, 2)
    refused(
        TypeError, rf"^{name}: expected an int or a sequence of ints, got 2.0", function, 2.0, 2
    )
    refused(TypeError, rf"^{name}\[0\]: expected an int, got True", function, (True, 1), 2)


def test_defaults_per_axis():
    assert strides(None, 3) == arguments.dilations(None, 3) == (1, 1, 1)
    assert arguments.pads(None, 2) == (0, 0, 0, 0)
    refused(TypeError, "^kernel_shape: .* got None", arguments.kernel_shape, None, 2)


def test_strides_of_the_window():
    class Text(str):
        def __eq__(self, other):
            return True

        __hash__ = str.__hash__

    assert arguments.strides("window", (2, 5)) == (2, 5)
    for wrong in ("Window", "kernel_shape", "2", "", Text("2")):
        expected = rf'^strides: expected "window" or ints, got {str.__repr__(wrong)}$'
        refused(ValueError, expected, arguments.strides, wrong, (2, 5))
    refused(TypeError, "^strides: ", arguments.strides, b"window", (2,))


def test_pads():
    assert arguments.pads(2, 1) == (2, 2)
    assert arguments.pads(2, 3) == (2,) * 6
    assert arguments.pads((1, 2), 2) == (1, 2, 1, 2)
    assert arguments.pads((1, 2), 1) == (1, 2)
    assert arguments.pads((1,), 1) == (1, 1)
    assert arguments.pads([1, 2, 3, 4], 2) == (1, 2, 3, 4)
    for wrong in ((), (1,), (1, 2, 3), (1, 2, 3, 4, 5)):
        match = rf"^pads: .* 2 values .* 4 values .* got {len(wrong)}$"
        refused(ValueError, match, arguments.pads, wrong, 2)
    refused(ValueError, "^pads: .* at least 0, got -1", arguments.pads, -1, 2)
    refused(ValueError, r"^pads\[3\]: ", arguments.pads, (0, 0, 0, -1), 2)
    refused(TypeError, "^pads: expected an int or a sequence", arguments.pads, "same", 2)


@pytest.mark.parametrize("kind", [tuple, list, np.array])
def test_nested_pads_are_told_the_flat_order(kind):
    """NumPy and TensorFlow nest the pads of an axis; the error has the caller's own numbers."""
    flat = r"^pads: expected ints, all begins and then all ends: \(1, 3, 2, 4\), got "
    refused(TypeError, flat, arguments.pads, kind([kind([1, 2]), kind([3, 4])]), 2)
    refused(TypeError, r": \(1, 2\), got ", arguments.pads, kind([[1, 2]]), 1)
    # Those of batch and channels too: which are which, the layout says, but not here.
    four = kind([(0, 0), (0, 0), (1, 2), (3, 4)])
    refused(TypeError, "all begins and then all ends, got ", arguments.pads, four, 2)
    ragged = [(1,), (2, 3, 4)]
    refused(TypeError, "all begins and then all ends, got ", arguments.pads, ragged, 2)


# ---------------------------------------------------------------------------------------- names


CHOICES = {
    arguments.auto_pad: ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"),
    arguments.ceil_rule: ("clip", "keep"),
    arguments.nan: ("propagate", "ignore"),
    arguments.index_space: ("output", "inferred"),
    arguments.beyond: ("drop", "count"),
    arguments.rounding: ("half_even", "half_away", "trunc", "floor"),
    arguments.numerics: ("pairwise", "exact", "sequential"),
    arguments.partial: ("sum", "scale"),
}


@pytest.mark.parametrize("function", CHOICES)
def test_choices(function):
    name, names = function.__name__, CHOICES[function]
    assert [function(n) for n in names] == list(names)
    assert function(None) == names[0]
    assert type(function(np.str_(names[1]))) is str
    for wrong in (names[0].swapcase(), names[0] + " ", "x"):
        refused(ValueError, f"^{name}: expected one of .*{names[-1]}.*, got ", function, wrong)
    for wrong in (1, True, names[0].encode(), [names[0]]):
        refused(TypeError, f"^{name}: expected one of ", function, wrong)


def test_an_empty_auto_pad_is_none():
    assert arguments.auto_pad("") == "NOTSET"
    refused(ValueError, "^nan: ", arguments.nan, "")


@pytest.mark.parametrize(
    "function", [arguments.ceil_mode, arguments.count_include_pad, arguments.keepdims]
)
def test_flags(function):
    name = function.__name__
    assert function(None) is (name == "keepdims")
    assert function(True) is function(np.True_) is function(1) is True
    assert function(False) is function(np.int8(0)) is False
    for wrong in (2, -1):
        refused(ValueError, f"^{name}: expected 0 or 1, got {wrong}", function, wrong)
    for wrong in (1.0, "yes"):
        refused(TypeError, f"^{name}: ", function, wrong)


def test_return_indices():
    assert arguments.return_indices(True) is arguments.return_indices(np.True_) is True
    assert arguments.return_indices(None) is False
    for wrong in (1, 0, "yes", 1.0):
        refused(TypeError, "^return_indices: expected a bool", arguments.return_indices, wrong)


def test_storage_order():
    assert [arguments.storage_order(v) for v in (None, 0, 1, np.int32(1))] == [0, 0, 1, 1]
    for wrong in (-1, 2):
        refused(ValueError, "^storage_order: expected 0 or 1", arguments.storage_order, wrong)
    for wrong in (True, "F", 1.0):
        refused(TypeError, "^storage_order: ", arguments.storage_order, wrong)


def test_num_threads():
    assert arguments.num_threads(None) is None and arguments.num_threads(np.int64(7)) == 7
    refused(ValueError, "^num_threads: .* at least 1, got 0", arguments.num_threads, 0)
    refused(TypeError, "^num_threads: ", arguments.num_threads, 1.5)


# ------------------------------------------------------------------------------------- elements


@pytest.mark.parametrize("name", dtypes.DTYPES)
def test_element_types(name):
    assert arguments.dtype_name(name) == name
    if name != "bfloat16":
        dtype = np.dtype(name)
        forms = (dtype, dtype.type, dtype.newbyteorder(), dtype.char)
        assert {arguments.dtype_name(form) for form in forms} == {name}


def test_bfloat16_is_known_by_its_name():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert arguments.dtype_name(ml_dtypes.bfloat16) == "bfloat16"
    assert arguments.dtype_name(np.dtype(ml_dtypes.bfloat16)) == "bfloat16"
    refused(TypeError, "^dtype: .*got dtype float8", arguments.dtype_name, ml_dtypes.float8_e5m2)


@pytest.mark.parametrize(
    "dtype",
    [
        np.complex64,
        "O",
        "S4",
        "U4",
        "V2",
        "datetime64[s]",
        "timedelta64[s]",
        [("a", "f4")],
        ("f4", 2),
        ("f4", [("a", "i2"), ("b", "i2")]),
        (">i4", [("a", "<i2"), ("b", "<i2")]),
        np.dtypes.StringDType(),
    ]
    + [None, 7, "nonsense", object()],
    ids=cases.shown,
)
def test_other_element_types(dtype):
    refused(TypeError, "^dtype: expected one of float16, .*, got ", arguments.dtype_name, dtype)
    refused(TypeError, "^x: ", arguments.dtype_name, dtype, "x")


def test_index_types():
    for form in ("int64", np.int64, np.dtype("int64"), "i8", None):
        assert arguments.index_dtype(form) == "int64"
    for form in ("int32", np.int32, np.intc, "i4"):
        assert arguments.index_dtype(form) == "int32"
    for wrong in ("int16", np.uint64, float, bool, np.dtype("int64").newbyteorder()):
        refused(ValueError, "^index_dtype: expected int64 or int32", arguments.index_dtype, wrong)
    for wrong in ("i65", 64, object()):
        refused(TypeError, "^index_dtype: expected int64 or int32", arguments.index_dtype, wrong)


def test_index_axis():
    assert [arguments.index_axis(v, 3) for v in (None, 0, 2, -1, -3)] == [0, 0, 2, 2, 0]
    for wrong in (3, -4):
        refused(ValueError, r"^index_axis: .*\[-3, 2\] for 3 axes", arguments.index_axis, wrong, 3)
    refused(TypeError, "^index_axis: ", arguments.index_axis, False, 3)


# -------------------------------------------------------------------------------------- layouts


def test_every_string_of_axes():
    """Legal are [N][C] and then W, HW or DHW, or the C last; of all strings of these letters."""
    legal = {
        n + name
        for n in ("", "N")
        for spatial in ("W", "HW", "DHW")
        for name in (spatial, "C" + spatial, spatial + "C")
    }
    rng = random.Random(0)
    tried = {"".join(rng.choices("NCDHW", k=rng.randint(0, 6))) for _ in range(20000)}
    assert legal <= tried
    for name in tried:
        shape = (2,) * len(name)
        if name in legal:
            order = geometry.layout(name, shape)
            assert order.name == name
            assert order.batch_axis == name.find("N") and order.channel_axis == name.find("C")
            assert "".join(name[axis] for axis in order.spatial) == "".join(order.spatial_names)
            assert order.channels_last == name.endswith("C")
        else:
            refused(ValueError, "^layout: ", geometry.layout, name, shape)


def test_layouts_and_ranks():
    assert geometry.layout(None, (1, 1, 2, 2)).name == "NCHW"
    for name in ("NCHW", "NHWC"):
        for rank in range(3, 9):
            order = geometry.layout(name, (2,) * rank)
            assert len(order.spatial) == rank - 2 and order.channels_last == (name == "NHWC")
        for rank in range(3):
            refused(ValueError, f'^layout: "{name}" needs ', geometry.layout, name, (2,) * rank)
    for name in ("NCW", "NCDHW", "HW", "CHW"):
        refused(ValueError, f'^layout: .* got "{name}"$', geometry.layout, name, (2,) * 4)
    refused(ValueError, "^layout: .*'nchw'", geometry.layout, "nchw", (2,) * 4)
    for wrong in (1, b"NCHW", ("N", "C")):
        refused(TypeError, "^layout: expected a str", geometry.layout, wrong, (2,) * 4)


def test_index_layout():
    first, last = geometry.layout("CHW", (2,) * 3), geometry.layout("HWC", (2,) * 3)
    assert arguments.index_layout("NHWC", last) == "NHWC"
    assert arguments.index_layout(None, last) == arguments.index_layout("NCHW", first) == "NCHW"
    refused(ValueError, '^index_layout: .* layout "CHW"', arguments.index_layout, "NHWC", first)
    refused(ValueError, "^index_layout: ", arguments.index_layout, "HWC", last)


# --------------------------------------------------------------------------- averages and norms


def test_output_size():
    sizes = (7, 5)
    assert arguments.output_size(3, sizes) == arguments.output_size(np.int8(3), sizes) == (3, 3)
    assert arguments.output_size(None, sizes) == arguments.output_size((None, None), sizes) == sizes
    assert arguments.output_size([0, None], sizes) == (0, 5)
    assert arguments.output_size(np.array([2, 9]), sizes) == (2, 9)
    assert arguments.output_size((None, 0), (0, 0)) == arguments.output_size(0, (0, 4)) == (0, 0)
    for wrong in (-1, (2, -1)):
        refused(
            ValueError, r"^output_size.*at least 0, got -1", arguments.output_size, wrong, sizes
        )
    for wrong in (True, 2.0, "3", (1, True), (2.0, 1), {2, 3}):
        refused(TypeError, r"^output_size.*an int or None", arguments.output_size, wrong, sizes)
    for wrong in ((), (1,), (1, 2, 3)):
        match = f"^output_size: .* 2 values, .*got {len(wrong)}$"
        refused(ValueError, match, arguments.output_size, wrong, sizes)
    match = r"^output_size\[1\]: expected 0 for an axis without elements, got 2"
    refused(ValueError, match, arguments.output_size, (1, 2), (3, 0))


def test_divisor():
    assert arguments.divisor(None) is None
    most = MOST
    assert [arguments.divisor(v) for v in (1, -3, np.int8(4), most)] == [1, -3, 4, most]
    refused(ValueError, "^divisor: .* other than 0, got 0", arguments.divisor, 0)
    for wrong in (True, 2.0, "2"):
        refused(TypeError, "^divisor: expected an int", arguments.divisor, wrong)


RESULTS = {
    "float16": ("float32", "float64"),
    "bfloat16": ("float32", "float64"),
    "float32": ("float64",),
    "float64": (),
    "bool": ("float32", "float64", *cases.INTEGER_NAMES),
}


@pytest.mark.parametrize("name", dtypes.DTYPES)
def test_result_types(name):
    allowed = {name, *RESULTS.get(name, RESULTS["bool"])}
    assert arguments.result_dtype(None, name) == name
    for other in dtypes.DTYPES:
        if other in allowed:
            assert arguments.result_dtype(other, name) == other
        else:
            match = f"^dtype: expected .*{name}.* for elements of type {name}, got '{other}'"
            refused(TypeError, match, arguments.result_dtype, other, name)
    refused(TypeError, "^result_dtype: ", arguments.result_dtype, "c8", name, "result_dtype")


def test_floats_are_rounded_to_nearest():
    assert arguments.rounding("trunc", "int8") == arguments.rounding("trunc", "bool") == "trunc"
    assert arguments.rounding(None, "float32") == "half_even"
    refused(
        ValueError, "^rounding: .* float16, got 'floor'", arguments.rounding, "floor", "float16"
    )


def test_orders_of_norms():
    values = [arguments.p(v) for v in (None, 1, 2.5, np.float32(0.5), math.inf)]
    assert values == [2, 1, 2.5, 0.5, math.inf] and set(map(type, values)) == {float}
    for wrong in (0, -1, -0.5, math.nan, -math.inf, 10**400):
        refused(ValueError, "^p: ", arguments.p, wrong)
    for wrong in ("2", True, 2j, [2]):
        refused(TypeError, "^p: expected a number", arguments.p, wrong)


def test_scales():
    tenth = float(np.float32(0.1))
    for value in (0.1, np.float32(0.1), np.array(0.1), np.array([[0.1]], np.float32)):
        assert arguments.scale(value, "s") == tenth
    assert arguments.scale(2, "s") == 2
    assert arguments.scale(1e-45, "s") == 2**-149
    for wrong in (0, -1, math.nan, math.inf, 1e-46, 1e60, 2**128, np.ones(2), np.ones(0)):
        refused(ValueError, "^s: ", arguments.scale, wrong, "s")
    for wrong in (None, "1", True, np.array(True), [1.0]):
        refused(TypeError, "^s: expected a number", arguments.scale, wrong, "s")


def test_zero_points():
    assert arguments.zero_point(None, "z", "uint8") == 0
    for value in (7, np.int8(7), np.array(7, np.int8), np.array([7], np.int8)):
        assert arguments.zero_point(value, "z", "int8") == 7
    for wrong in (128, -129, np.zeros(2, np.int8)):
        refused(ValueError, "^z: ", arguments.zero_point, wrong, "z", "int8")
    for wrong in (True, 1.0, "1", np.uint8(1), np.array(1), np.array([1.0])):
        refused(TypeError, "^z: ", arguments.zero_point, wrong, "z", "int8")


# ----------------------------------------------------------------------------------- activation


ACTIVATIONS = {"Relu": (0, 2), "Clip": (2,), "LeakyRelu": (1,), "HardSigmoid": (2,)}
ACTIVATIONS |= {"Tanh": (0,), "Sigmoid": (0,), "Silu": (0,)}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_and_their_parameters(name):
    for count in range(4):
        params = (0.5,) * count
        if count in ACTIVATIONS[name]:
            expected = (0.0, math.inf) if name == "Relu" and not count else params
            assert arguments.activation(name, params) == (name, expected)
        else:
            match = f"^activation_params: {name} takes .*, got {count}"
            refused(ValueError, match, arguments.activation, name, params)
    params = (0.5,) * ACTIVATIONS[name][0]
    refused(TypeError, f"^activation: {name} .* bool", arguments.activation, name, params, "bool")


def test_activations_of_integers():
    for dtype in ("int8", "uint64"):
        for name, counts in ACTIVATIONS.items():
            params = (0.5,) * counts[0]
            if name in ("Relu", "Clip"):
                assert arguments.activation(name, params, dtype)[0] == name
            else:
                match = f"^activation: {name} .* {dtype}"
                refused(TypeError, match, arguments.activation, name, params, dtype)


def test_no_activation():
    for nothing in (None, ""):
        for params in (None, (), [], np.zeros(0)):
            assert arguments.activation(nothing, params, "bool") == (None, ())
        refused(ValueError, "^activation_params: ", arguments.activation, nothing, (1.0,))
    refused(
        ValueError, "^activation: expected one of .*Relu.*Silu", arguments.activation, "relu", ()
    )
    refused(TypeError, "^activation: ", arguments.activation, 1, ())


def test_activation_parameters_are_floats():
    for params in ([1, 2], (np.float32(1), np.int8(2)), np.array([1.0, 2.0])):
        _, values = arguments.activation("Clip", params)
        assert values == (1.0, 2.0) and set(map(type, values)) == {float}
    assert arguments.activation("Clip", (-math.inf, math.inf))[1] == (-math.inf, math.inf)
    for wrong in ("ab", 1.0, {1: 2}):
        refused(TypeError, "^activation_params: ", arguments.activation, "Clip", wrong)
    for wrong in ((1, "2"), (1, None), (1, True), (1, 1j)):
        refused(TypeError, r"^activation_params\[1\]: ", arguments.activation, "Clip", wrong)
    for wrong in ((math.nan, 1), (10**400, 1)):
        refused(ValueError, r"^activation_params\[0\]: ", arguments.activation, "Clip", wrong)


def test_types_that_numpy_cannot_read():
    """What NumPy raises for these is of many kinds, a SyntaxError among them."""
    for value in ("(2,f4", "f4," * 1000, b"f4" * 1000, 10**5000, "f4,(", [("a", "f4")], object()):
        refused(TypeError, "^dtype: expected one of", arguments.dtype_name, value)
        refused((TypeError, ValueError), "^index_dtype: ", arguments.index_dtype, value)


def test_what_is_shown_of_a_value():
    for value in (10**5000, [10**5000], {1: 10**5000}, b"x" * 10**7, "x" * 10**7, [[b"x" * 10**7]]):
        assert len(shown(value)) < 150
    assert shown([1, "a", b"b", 2.5]) == "[1, 'a', b'b', 2.5]"


def test_the_length_is_looked_at_first():
    """Elements of the wrong kind, of which there may be any number, are not."""
    for wrong in ([None] * 3, ["a"] * 10**6, range(2**40), range(2**70)):
        refused(ValueError, "^strides: .* got", arguments.strides, wrong, (2, 2))
        refused(ValueError, "^pads: .* got", arguments.pads, wrong, 2)
        refused(ValueError, "^output_shape: .* got", arguments.output_shape, wrong, 4)
        refused(ValueError, "^activation_params: ", arguments.activation, "Relu", wrong)
    refused(ValueError, "^input_shape: expected at most 64", arguments.input_shape, [1] * 65)
