"""Kinds of values that arguments have: integers, counts, choices, flags, floats.

Each function returns the canonical form. It raises TypeError for the wrong kind of object and
ValueError for a wrong value, with the name of the argument. `shown` shortens any object for errors.
"""

import math
import operator
import reprlib
import sys
from collections.abc import Sequence
from itertools import islice
from numbers import Real

import numpy as np

# Larger integers are refused: none describes an array, and Python refuses to print some of them.
LARGEST_BITS = 1024

# Limit for an extent of a kernel, a stride, a dilation, a pad and the magnitude of a divisor, so
# that compiled code, and the runtimes of these documents, hold every position in the padded input.
MOST = 2**31 - 1 if sys.maxsize > 2**32 else 2**24 - 1

# NumPy's limit for one array.
MOST_AXES = 64

# Types that are shown by their elements or digits, as far as there is room.
_SHOWN = list, tuple, str, bytes, int, np.ndarray


class _Shown(reprlib.Repr):
    """A repr that is short and fast for any object.

    reprlib alone prints unknown types, bytes and integers in full before it cuts them, and it sorts
    sets and dicts.
    """

    def repr1(self, x, level):
        # (`in` would call the metaclass, which may raise anything.)
        if not any(type(x) is kind for kind in _SHOWN):
            try:
                length = len(x)
            except Exception:  # an object's __len__ may raise anything
                length = 0
            if length > 100:
                return f"<{type(x).__name__} of length {length}>"
            if not any(type(x) is kind for kind in (dict, set, frozenset)):
                # (reprlib would take a class for the one whose name it has)
                return self.repr_instance(x, level)
        return super().repr1(x, level)

    def repr_int(self, x, level):
        if x.bit_length() > LARGEST_BITS:  # Python refuses 4300 digits
            return f"<int of {x.bit_length()} bits>"
        return super().repr_int(x, level)

    def repr_bytes(self, x, level):
        return self.repr_instance(x[: self.maxother], level)


shown = _Shown().repr


def quoted(names):
    return ", ".join(f'"{name}"' for name in names)


def value_count(count):
    return f"{count} value" if count == 1 else f"{count} values"


def as_int(value, name, expected="an int"):
    """Return an integer of any type except bool as a Python int."""
    if not isinstance(value, (bool, np.bool_)) and hasattr(type(value), "__index__"):
        try:
            value = operator.index(value)
        except TypeError:  # arrays have `__index__` even if they are no integer scalars
            pass
        else:
            if value.bit_length() > LARGEST_BITS:
                raise ValueError(f"{name}: an integer of {value.bit_length()} bits is too large")
            return value
    raise TypeError(f"{name}: expected {expected}, got {shown(value)}")


def as_count(value, name, least=1, expected="an int", most=math.inf):
    """Return an integer that is at least `least` and at most `most`."""
    value = as_int(value, name, expected)
    if value < least:
        raise ValueError(f"{name}: expected an int of at least {least}, got {value}")
    if value > most:
        raise ValueError(f"{name}: expected an int of at most {power(most)}, got {value}")
    return value


def power(limit):
    """Return a limit as text that says where it comes from: 2**31 - 1 = 2147483647."""
    bits = (limit + 1).bit_length() - 1
    return f"2**{bits} - 1 = {limit}" if limit + 1 == 1 << bits else f"{limit}"


def is_sequence(value):
    """Can `value` list the values of several axes? Text and unordered collections cannot."""
    # Skip abc for exact tuples and lists. Without the GIL, a child made by fork may hang at a lock
    # of abc (CPython 3.13).
    if type(value) is tuple or type(value) is list:
        return True
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def as_counts(
    value, name, least, lengths=range(MOST_AXES + 1), expected="at most 64 ints", most=math.inf
):
    """Return a sequence of integers that are at least `least` and at most `most`, as a tuple."""
    if not is_sequence(value):
        raise TypeError(f"{name}: expected a sequence of ints, got {shown(value)}")
    values = read(value, name, lengths, expected)
    # Most values are exact ints of ordinary size.
    if all(type(v) is int and least <= v <= min(most, MOST) for v in values):
        return values
    return tuple(as_count(v, f"{name}[{i}]", least, most=most) for i, v in enumerate(values))


def read(value, name, lengths, expected):
    """Return a sequence as a tuple of one of the allowed lengths.

    The length is checked first. Then the values are read once, and only as many as are allowed: the
    sequence may be longer than its `__len__` says, and another thread may change it.
    """
    count = length(value)
    if count in lengths:
        values = tuple(islice(value, max(lengths) + 1))
        count = len(values)
        if count in lengths:
            return values
    raise ValueError(f"{name}: expected {expected}, got {count}")


def length(value):
    """Return the length; of a range with more elements than `len` can return, the most it can."""
    try:
        return len(value)
    except OverflowError:
        return sys.maxsize


def choice(value, name, allowed):
    """Return `value`, one of the strings `allowed`; None means the first."""
    if value is None:
        return allowed[0]
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected one of {quoted(allowed)}, got {shown(value)}")
    value = plain_text(value)
    if value not in allowed:
        raise ValueError(f"{name}: expected one of {quoted(allowed)}, got {shown(value)}")
    return value


def plain_text(value):
    """Return a str as an exact str: a subclass may override comparison and conversion."""
    return str.__str__(value)


def zero_or_one(value, name):
    """Return 0 or 1 as an int; None means 0."""
    value = 0 if value is None else as_int(value, name, "0 or 1")
    if value not in (0, 1):
        raise ValueError(f"{name}: expected 0 or 1, got {value}")
    return value


def flag(value, name):
    """Return a bool, 0 or 1 as a bool; None means False."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    return bool(zero_or_one(value, name))


def as_float(number, name):
    """Return a real number as a float that is not NaN."""
    if isinstance(number, bool) or not isinstance(number, Real):
        raise TypeError(f"{name}: expected a number, got {shown(number)}")
    try:
        number = float(number)
    except OverflowError:
        raise ValueError(f"{name}: too large for a float") from None
    if math.isnan(number):
        raise ValueError(f"{name}: expected a number, got nan")
    return number
