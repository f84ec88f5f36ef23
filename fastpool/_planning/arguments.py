"""One function per argument: check what the caller wrote and return its canonical form.

Each function is named after its argument. It raises TypeError for the wrong kind of object and
ValueError for a wrong value. None means the argument's default.
"""

import math
from itertools import islice
from numbers import Real

import numpy as np

from .dtypes import DTYPES, INDEX_DTYPES, is_float, is_integer, limits, name_of
from .values import (
    MOST,
    as_count,
    as_counts,
    as_float,
    as_int,
    choice,
    flag,
    is_sequence,
    length,
    plain_text,
    power,
    quoted,
    read,
    shown,
    value_count,
    zero_or_one,
)

# name -> allowed numbers of parameters
_ACTIVATIONS = {
    "Relu": (0, 2),
    "Clip": (2,),
    "LeakyRelu": (1,),
    "HardSigmoid": (2,),
    "Tanh": (0,),
    "Sigmoid": (0,),
    "Silu": (0,),
}
_INTEGER_ACTIVATIONS = ("Relu", "Clip")

# The values of padding. Every name but "ignore" and "constant" continues the array.
BORDERS = ("ignore", "reflect", "mirror", "nearest", "wrap", "constant")

# Rules for integer quotients, in the order of compiled code (kernels/vectors/quotients.h).
ROUNDINGS = "half_even", "half_away", "trunc", "floor"

# The types that averages of floats may have, besides their own.
_WIDER_FLOATS = {
    "float16": ("float32", "float64"),
    "bfloat16": ("float32", "float64"),
    "float32": ("float64",),
    "float64": (),
}


def select(value):
    """Return which poolings of a model fastpool is to run: a word, or a function of one."""
    if callable(value):
        return value
    names = "faster", "all", "none"
    if value is not None and not isinstance(value, str):
        raise TypeError(
            f"select: expected a function or one of {quoted(names)}, got {shown(value)}"
        )
    return choice(value, "select", names)


# --------------------------------------------------------------------------- arrays: what they are


def dtype_name(dtype, name="dtype", allowed=DTYPES, of=""):
    """Return the canonical name of an element type of either byte order, one of those `allowed`.

    `name` is that of the argument: the type or an array. `of` says in errors when these types are
    allowed. bfloat16 is recognised by name, so ml_dtypes need not be installed.
    """
    found = None if dtype is None else _numpy_dtype(dtype)
    known = None if found is None else name_of(found)
    if isinstance(dtype, str) and plain_text(dtype) == "bfloat16":
        known = "bfloat16"
    elif known is None and getattr(found, "name", None) == "bfloat16" and found.isbuiltin == 2:
        known = "bfloat16"  # isbuiltin 2: registered by a package, so not a record of that name
    if known not in allowed:
        what = shown(dtype) if found is None or isinstance(dtype, str) else f"dtype {found}"
        one = "one of " if len(allowed) > 1 else ""
        raise TypeError(f"{name}: expected {one}{', '.join(allowed)}{of}, got {what}")
    return known


def _numpy_dtype(value):
    """Return the dtype that `value` describes, or None if NumPy knows none."""
    if isinstance(value, (str, bytes)) and len(value) > 100:  # NumPy would parse it as a record
        return None
    try:
        return np.dtype(plain_text(value) if isinstance(value, str) else value)
    except (TypeError, ValueError, SyntaxError, OverflowError):
        return None


def input_shape(value):
    return as_counts(value, "input_shape", 0)


# --------------------------------------------------------------------------------------- windows


def _per_axis(value, name, count, default, most=MOST):
    if value is None:
        value = default
    if not is_sequence(value):
        return (as_count(value, name, 1, "an int or a sequence of ints", most),) * count
    expected = f"an int or {value_count(count)}, one per spatial axis"
    return as_counts(value, name, 1, (count,), expected, most)


def kernel_shape(value, count, longest=0):
    """Return the taps of the window along each of `count` spatial axes.

    A window as long as the `longest` axis of an array has no other limit.
    """
    return _per_axis(value, "kernel_shape", count, None, max(MOST, longest))


def strides(value, kernel_shape):
    """Return the strides; "window" stands for the taps of the window: blocks next to each other."""
    if not isinstance(value, str):
        return _per_axis(value, "strides", len(kernel_shape), 1)
    if plain_text(value) != "window":
        raise ValueError(f'strides: expected "window" or ints, got {shown(value)}')
    return _per_axis(kernel_shape, "strides", len(kernel_shape), 1)


def dilations(value, count):
    return _per_axis(value, "dilations", count, 1)


def pads(value, count):
    """Return all begins, then all ends.

    `value` has this form, or is one int per axis (for both sides), or one int for all.
    """
    if value is None:
        value = 0
    if not is_sequence(value):
        return (as_count(value, "pads", 0, "an int or a sequence of ints", MOST),) * (2 * count)
    expected = (
        f"an int, {value_count(count)} (both sides of each spatial axis) "
        f"or {value_count(2 * count)} (all begins, then all ends)"
    )
    try:
        values = as_counts(value, "pads", 0, (count, 2 * count), expected, MOST)
    except TypeError:
        _check_flat(value, count)
        raise
    return values * 2 if len(values) == count else values


def _check_flat(value, count):
    """If pads are nested, as NumPy's and TensorFlow's are, raise TypeError with the flat order."""
    values = tuple(islice(value, 2 * count))
    if not any(map(is_sequence, values)):
        return
    expected = "ints, all begins and then all ends"
    pairs = [tuple(islice(v, 2)) for v in values if is_sequence(v) and length(v) == 2]
    if len(pairs) == len(values) == count:
        ends = (pair[side] for side in (0, 1) for pair in pairs)
        ints = (end.item() if isinstance(end, np.generic) else end for end in ends)
        expected += f": ({', '.join(map(shown, ints))})"
    raise TypeError(f"pads: expected {expected}, got {shown(value)}") from None


def auto_pad(value):
    value = None if isinstance(value, str) and plain_text(value) == "" else value
    return choice(value, "auto_pad", ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"))


def ceil_mode(value):
    return flag(value, "ceil_mode")


def ceil_rule(value):
    return choice(value, "ceil_rule", ("clip", "keep"))


def nan(value):
    return choice(value, "nan", ("propagate", "ignore"))


def output_size(value, sizes):
    """Return the number of outputs along each spatial axis of an adaptive pooling.

    `value` is one int for all axes, or one per axis. None stands for the axis' extent in `sizes`.
    """
    name, count = "output_size", len(sizes)
    if value is None or not is_sequence(value):
        values, names = (value,) * count, (name,) * count
    else:
        expected = f"an int, None or {value_count(count)}, one per spatial axis"
        values = read(value, name, (count,), expected)
        names = [f"{name}[{i}]" for i in range(count)]
    result = []
    for size, value, name in zip(sizes, values, names, strict=True):
        outputs = size if value is None else as_count(value, name, 0, "an int or None")
        if outputs and not size:
            raise ValueError(f"{name}: expected 0 for an axis without elements, got {outputs}")
        result.append(outputs)
    return tuple(result)


def keepdims(value):
    return True if value is None else flag(value, "keepdims")


def num_threads(value):
    return None if value is None else as_count(value, "num_threads")


# --------------------------------------------------------------------------------------- borders


class Borders(tuple):
    """One border per spatial axis, from a caller inside of fastpool."""


def border(value, count):
    """Return the values of the padding of each of `count` spatial axes."""
    if type(value) is Borders:
        return tuple(value)
    if isinstance(value, str) and plain_text(value) not in BORDERS:
        raise ValueError(
            f"border: expected one of {quoted(BORDERS)}, got {shown(value)}; of an array abc, "
            '"reflect" gives cba abc cba (np.pad: symmetric), "mirror" cb abc ba (np.pad: reflect)'
        )
    return (choice(value, "border", BORDERS),) * count


def border_value(value, borders, dtype, name="border_value"):
    """Return the constant in padding, if that is a border, else None.

    An integer type holds it. Floats round it, but not here.
    """
    if "constant" not in borders:
        if value is not None:
            raise ValueError(
                f'{name}: expected None if border is not "constant", got {shown(value)}'
            )
        return None
    value = 0 if value is None else element(value, name)
    if isinstance(value, np.generic):
        value = value.item()  # (NumPy would round integers to compare them)
    if not isinstance(value, Real):
        raise TypeError(f"{name}: expected a number, got {shown(value)}")
    if is_float(dtype):
        # One NaN object: a tuple equals another one with the very same object.
        return math.nan if value != value else as_float(value * 1, name)
    least, most = limits(dtype)
    if not (least <= value <= most and value == int(value)):
        raise ValueError(f"{name}: expected a number that {dtype} holds, got {shown(value)}")
    return bool(value) if dtype == "bool" else int(value)


# --------------------------------------------------------------------------------------- indices


def return_indices(value):
    if value is None:
        return False
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"return_indices: expected a bool, got {shown(value)}")
    return bool(value)


def storage_order(value):
    return zero_or_one(value, "storage_order")


def index_axis(value, rank):
    """Return `index_axis` counted from the first axis."""
    value = 0 if value is None else as_int(value, "index_axis")
    if not -rank <= value < rank:
        raise ValueError(
            f"index_axis: expected an int in [{-rank}, {rank - 1}] for {rank} axes, got {value}"
        )
    return value % rank


def index_dtype(value):
    if value is None:
        return "int64"
    dtype = _numpy_dtype(value)
    if dtype is None:
        raise TypeError(f"index_dtype: expected int64 or int32, got {shown(value)}")
    if dtype not in INDEX_DTYPES:
        raise ValueError(f"index_dtype: expected int64 or int32, got {shown(value)}")
    return INDEX_DTYPES[dtype]


def index_layout(value, order):
    """Return "NCHW" (indices count as if channels came first) or "NHWC" (the array as it is)."""
    value = choice(value, "index_layout", ("NCHW", "NHWC"))
    if value == "NHWC" and not order.channels_last:
        raise ValueError(
            f'index_layout: "NHWC" needs a layout with the channels last, got layout "{order.name}"'
        )
    return value


def index_space(value):
    return choice(value, "index_space", ("output", "inferred"))


def output_shape(value, rank):
    expected = f"{value_count(rank)}, one per axis of x"
    return None if value is None else as_counts(value, "output_shape", 0, (rank,), expected)


# ------------------------------------------------------------------------------ averages and norms


def count_include_pad(value):
    return flag(value, "count_include_pad")


def beyond(value):
    return choice(value, "beyond", ("drop", "count"))


def divisor(value):
    """Return an int that is not 0, or None for the number of taps."""
    value = None if value is None else as_int(value, "divisor")
    if value == 0:
        raise ValueError("divisor: expected an int other than 0, got 0")
    if value is not None and abs(value) > MOST:
        raise ValueError(
            f"divisor: expected an int of a magnitude of at most {power(MOST)}, got {value}"
        )
    return value


def result_dtype(value, dtype, name="dtype"):
    """Return the element type of the averages of elements of type `dtype`.

    Whether an integer type holds the averages of every input depends on the windows. This function
    does not decide it.
    """
    if value is None:
        return dtype
    if is_float(dtype):
        allowed = _WIDER_FLOATS[dtype]
    else:
        allowed = ("float32", "float64", *filter(is_integer, DTYPES))
    allowed = dict.fromkeys((dtype, *allowed))
    return dtype_name(value, name, allowed, f" for elements of type {dtype}")


def rounding(value, dtype=None):
    """Return how integer averages are rounded. Floats of a `dtype` have one way only."""
    value = choice(value, "rounding", ROUNDINGS)
    if value != "half_even" and dtype is not None and is_float(dtype):
        raise ValueError(
            f'rounding: expected "half_even" for results of type {dtype}, got {shown(value)}'
        )
    return value


def numerics(value):
    return choice(value, "numerics", ("pairwise", "exact", "sequential"))


def partial(value):
    return choice(value, "partial", ("sum", "scale"))


def p(value):
    """Return the order of a norm as a float above 0, which may be infinite."""
    order = 2.0 if value is None else as_float(value, "p")
    if order <= 0:
        raise ValueError(f"p: expected a number above 0, got {shown(value)}")
    return order


# --------------------------------------------------------------------------------------- quantised


def element(value, name):
    """Return the element of an array of one, an integer with its dtype; any other value as is."""
    if not isinstance(value, np.ndarray):
        return value
    if value.size != 1:
        raise ValueError(f"{name}: expected one number, got {value.size}")
    return value.ravel()[0] if value.dtype.kind in "iu" else value.item()


def scale(value, name):
    """Return a number, or an array of one float, rounded to float32: a float."""
    value = as_float(element(value, name), name)
    rounded = _as_float32(value) if 0 < value < math.inf else 0
    if not 0 < rounded < 2.0**128:
        raise ValueError(f"{name}: expected a finite float32 above 0, got {value}")
    return rounded


def _as_float32(value):
    """Round a positive float, by integers: the calling thread may take subnormal float32 for 0."""
    significand, exponent = math.frexp(value)
    unit = max(exponent - 24, -149)
    return math.ldexp(round(math.ldexp(significand, exponent - unit)), unit)


def zero_point(value, name, dtype):
    """Return an int, or an array of one element of the type `dtype`, as an int; None means 0."""
    if value is None:
        return 0
    value = element(value, name)
    if isinstance(value, np.generic) and value.dtype != dtype:
        raise TypeError(f"{name}: expected {dtype}, the type of x, got {value.dtype}")
    value = as_int(value, name)
    least, most = limits(dtype)
    if not least <= value <= most:
        raise ValueError(f"{name}: expected a value of {dtype}, got {value}")
    return value


# ------------------------------------------------------------------------------------ activation


def activation(value, params, dtype=None):
    """Return an activation's name and its parameters as floats; (None, ()) for no activation.

    "Relu" without parameters gets (0, inf). If the activation is not defined for `dtype`, raise
    TypeError.
    """
    params = () if params is None else params
    if not is_sequence(params):
        raise TypeError(f"activation_params: expected a sequence of floats, got {shown(params)}")
    given, count = params, length(params)
    if count <= max(map(max, _ACTIVATIONS.values())):
        params = tuple(islice(params, count + 1))  # read once, as in as_counts
        count = len(params)
    if value is None or (isinstance(value, str) and plain_text(value) == ""):
        if count:
            raise ValueError(f"activation_params: given as {shown(given)} without an activation")
        return None, ()
    value = choice(value, "activation", tuple(_ACTIVATIONS))
    counts = _ACTIVATIONS[value]
    if count not in counts:
        expected = " or ".join(map(str, counts))
        raise ValueError(f"activation_params: {value} takes {expected} parameters, got {count}")
    values = tuple(as_float(v, f"activation_params[{i}]") for i, v in enumerate(params))
    integer = dtype is not None and is_integer(dtype)
    if dtype == "bool" or (integer and value not in _INTEGER_ACTIVATIONS):
        raise TypeError(f"activation: {value} is not defined for elements of type {dtype}")
    if value == "Relu" and not values:
        values = (0.0, math.inf)
    return value, values
