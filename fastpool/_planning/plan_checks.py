"""Check that each field of a plan has the right type, and that the fields are consistent.

A caller can give a plan any fields: by its class, dataclasses.replace or a pickle. The kernels
trust every field. Types are compared exactly: a subclass of int may change its value between reads.
"""

from contextlib import contextmanager
from operator import is_

from .values import LARGEST_BITS, MOST_AXES, shown

# Limit for an integer in a plan: extents are products of two attributes.
_MOST_BITS = 4 * LARGEST_BITS


class Kind:
    """A test for the value of a field, and the words that an error message uses for it."""

    def __init__(self, words, test):
        self.words, self.test = words, test


def _is_int(value):
    return type(value) is int and value.bit_length() <= _MOST_BITS


def _is_short(value):
    return type(value) is tuple and len(value) <= 2 * MOST_AXES


def tuple_of(words, kind):
    """Return the kind of tuples whose values have one kind, with at most two values per axis."""
    return Kind(words, lambda value: _is_short(value) and all(map(kind.test, value)))


def record_of(record, *kinds):
    """Return the kind of instances of a NamedTuple, given one kind per field."""
    return Kind(
        record.__name__,
        lambda value: (
            type(value) is record
            and len(value) == len(kinds)
            and all(kind.test(part) for kind, part in zip(kinds, value, strict=True))
        ),
    )


def any_of(*kinds):
    return Kind(
        " or ".join(kind.words for kind in kinds),
        lambda value: any(kind.test(value) for kind in kinds),
    )


def or_none(kind):
    return Kind(f"{kind.words} or None", lambda value: value is None or kind.test(value))


INTEGER = Kind("an int", _is_int)
INTEGERS = tuple_of("a tuple of ints", INTEGER)
TEXT = Kind("a str", lambda value: type(value) is str)
FLAG = Kind("a bool", lambda value: type(value) is bool)
FLOAT = Kind("a float", lambda value: type(value) is float)
FLOATS = tuple_of("a tuple of floats", FLOAT)


def check_class(plan, expected):
    """Raise TypeError unless the class of a plan is exactly `expected`."""
    if type(plan) is not expected:
        raise TypeError(f"plan: expected a {expected.__name__}, got a {type(plan).__name__}")


def check_kinds(plan, kinds):
    """Raise TypeError unless every field of a plan has its kind."""
    for name, kind in kinds.items():
        value = getattr(plan, name)
        if not kind.test(value):
            raise TypeError(f"plan: {name}: expected {kind.words}, got {shown(value)}")


def compare_fields(plan, expected):
    """Raise ValueError unless the fields of a plan have these values; kinds are checked before."""
    for name, value in expected.items():
        if getattr(plan, name) != value:
            name, found, value = _difference(name, getattr(plan, name), value)
            raise ValueError(
                f"plan: {name} is {shown(found)}, but the other fields give {shown(value)}"
            )


def _difference(name, found, expected):
    """Return the name of the first part in which two values differ, and that part of each."""
    if isinstance(found, tuple) and type(found) is type(expected) and len(found) == len(expected):
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            if one != other:
                part = f".{found._fields[i]}" if hasattr(found, "_fields") else f"[{i}]"
                return _difference(name + part, one, other)
    return name, found, expected


@contextmanager
def named_plan():
    """Put "plan: " before the text of a TypeError or ValueError raised inside."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        text = str(error)
        raise kind(text if text.startswith("plan: ") else f"plan: {text}") from None


# ------------------------------------------------------------------------------------- the state


class Data:
    """Equality, hash and repr of plans, by their fields.

    Those that dataclasses make would take 2 ms of the import of fastpool: they are compiled then.
    """

    def _compared(self):
        fields = self.__dataclass_fields__
        return tuple([getattr(self, name) for name in fields if fields[name].compare])

    def __eq__(self, other):
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self._compared() == other._compared()

    def __hash__(self):
        return hash(self._compared())

    def __repr__(self):
        fields = ", ".join(f"{name}={value!r}" for name, value in state_of(self).items())
        return f"{self.__class__.__qualname__}({fields})"


def state_of(plan):
    """Return the fields of a plan as a dict, without the objects prepared for this process."""
    return {name: getattr(plan, name) for name in plan.__dataclass_fields__}


def resolved(kind, state):
    """Return a plan of fields that `resolve` returned, which are not resolved again."""
    plan = object.__new__(kind)
    vars(plan).update(state, _resolved=state)
    return plan


def changed(plan, changes):
    """Return a plan with other values of some fields, which are not resolved again."""
    return resolved(type(plan), {**state_of(plan), **changes})


def checked(kind, plan):
    """Return the fields of a plan as a `kind`, which no caller holds, and as a dict.

    They are resolved again, unless they are the very objects that `resolve` returned.
    """
    state = state_of(plan)
    before = vars(plan).get("_resolved")
    own = resolved(kind, state) if before and _same(state, before) else kind(**state)
    return own, state


def has_state(plan, state):
    """Does a plan hold the very objects of this state?"""
    return _same(state, vars(plan))


def _same(state, values):
    return all(map(is_, state.values(), map(values.get, state)))


def pickled_state(plan):
    """Return the fields of a plan as built-in types, so that pickles survive a move of a class."""
    return {name: _as_tuples(value) for name, value in state_of(plan).items()}


def _as_tuples(value):
    return tuple(map(_as_tuples, value)) if isinstance(value, tuple) else value


def restore_fields(plan, state, **records):
    """Set the fields of a plan from its pickle and check them.

    `records` maps names of fields to functions that rebuild them from built-in types.
    """
    names = [*plan.__dataclass_fields__]
    if type(state) is not dict or state.keys() != set(names):
        raise ValueError(f"plan: expected a pickle of the fields {', '.join(names)}")
    for name in names:
        value = state[name]
        object.__setattr__(plan, name, records[name](value) if name in records else value)
    plan.__post_init__()


def record(kind):
    """Return a function that turns a tuple of the right length into a NamedTuple.

    The function returns any other value unchanged.
    """

    def made(value):
        fits = type(value) is tuple and len(value) == len(kind._fields)
        return kind(*value) if fits else value

    return made


def records(kind):
    """Return a function that turns a tuple of tuples into a tuple of NamedTuples."""

    def made(value):
        return tuple(map(record(kind), value)) if _is_short(value) else value

    return made
