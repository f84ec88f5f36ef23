"""Random changes of a plan's fields: other numbers, words, orders, ranks and types.

Most changes contradict another field. `agree` and `follow` then adapt some of the other fields, so
that the contradictions that remain are hard to detect.
"""

import numpy as np

import cases
from fastpool._planning.geometry import Axis

LAYOUTS = [*dict.fromkeys(name for rank in (1, 2, 3) for name in cases.layouts(rank))]
WORDS = {
    "layout": [*LAYOUTS, "xxxxC", "HWN", "nchw", ""],
    "dtype": [*cases.DTYPE_NAMES, "float128", "complex64", "object"],
    "nan": ["propagate", "ignore", "drop"],
    "activation": [None, "Relu", "Clip", "Tanh", "Elu"],
    "index_dtype": ["int64", "int32", "int16"],
    "index_layout": ["NCHW", "NHWC", "NCWH"],
    "index_space": ["output", "inferred", "input"],
}


class Whole(int):
    """An int of another type."""

    def __repr__(self):
        return f"Whole({int(self)})"


class Agreeing(int):
    """An int that is equal to everything."""

    __hash__ = int.__hash__

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    def __repr__(self):
        return f"Agreeing({int(self)})"


class Renamed(str):
    """A str that says another name than it is."""

    def __str__(self):
        return "NHWC"

    def __repr__(self):
        return f"Renamed({str.__str__(self)!r})"


class Row(tuple):
    """A tuple of another type."""

    def __repr__(self):
        return f"Row({tuple(self)})"


def disguised(value, choices):
    """Return an object of another type, equal to the value if there is one."""
    if isinstance(value, bool):
        return choices.pick([np.bool_(value), int(value), None, str(value)])
    if isinstance(value, int):
        small = np.int64(value) if abs(value) < 2**63 else None
        options = [Whole(value), Agreeing(value), Agreeing(value + 1), small, bool(value)]
        return choices.pick([*options, str(value), None, (value,)])
    if isinstance(value, str):
        return choices.pick([Renamed(value), np.str_(value), value.encode(), None, (value,)])
    if isinstance(value, tuple):
        return choices.pick([list(value), Row(value), tuple(value)[:-1], None, {*value}])
    return choices.pick([0, "", (), Whole(1)])


def draw_path(fields, kinds, choices):
    """Return the path to an object of one of these types, in the fields or in their tuples."""
    found = [((name,), value) for name, value in fields.items() if name != "given"]
    for path, value in found:
        if isinstance(value, tuple):
            found += [((*path, i), item) for i, item in enumerate(value)]
    found = [path for path, value in found if type(value) in kinds]
    if not found:
        raise LookupError
    return choices.pick(found)


def item_at(value, path):
    return item_at(value[path[0]], path[1:]) if path else value


def with_item(value, path, new):
    """Return the tuple, or the dict of fields, with another object at that path."""
    if not path:
        return new
    if isinstance(value, dict):
        return {**value, path[0]: with_item(value[path[0]], path[1:], new)}
    items = list(value)
    items[path[0]] = with_item(items[path[0]], path[1:], new)
    return value._make(items) if hasattr(value, "_make") else tuple(items)


# ------------------------------------------------------------------------------- kinds of changes
# Each takes the fields, the fields of another plan, and a Choices. It returns all fields.


def number(fields, other, choices):
    place = draw_path(fields, [int], choices)
    old, another = item_at(fields, place), item_at(fields, draw_path(fields, [int], choices))
    new = [old + 1, old - 1, 0, 1, 2 * old, another, another]
    new += [choices.integer(-3, 9), 2 ** choices.integer(8, 80), -(2 ** choices.integer(0, 65))]
    return with_item(fields, place, choices.pick(new))


def word(fields, other, choices):
    name = choices.pick([name for name in WORDS if name in fields])
    return {**fields, name: choices.pick(WORDS[name])}


def layout(fields, other, choices):
    """Give the layout another name of equal length."""
    names = [name for name in LAYOUTS if len(name) == len(fields["layout"])]
    return {**fields, "layout": choices.pick(names or LAYOUTS)}


def flag(fields, other, choices):
    place = draw_path(fields, [bool], choices)
    return with_item(fields, place, not item_at(fields, place))


def order(fields, other, choices):
    """Reorder the items of a tuple, or add or remove some."""
    place = draw_path(fields, [tuple], choices)
    old = item_at(fields, place)
    orders = [old[::-1], old[1:] + old[:1], old[1:], old[:-1], old + old[-1:], old * 2, ()]
    return with_item(fields, place, choices.pick(orders))


def kind(fields, other, choices):
    place = draw_path(fields, choices.pick([[int], [int, str, bool, tuple]]), choices)
    return with_item(fields, place, disguised(item_at(fields, place), choices))


def exchange(fields, other, choices):
    """Take one to four fields from the other plan."""
    names = [choices.pick(list(fields)) for _ in range(choices.integer(1, 4))]
    return {**fields, **{name: other[name] for name in names}}


def rank(fields, other, choices):
    """Add spatial axes of one element in every field. Up to 64 axes in all are legal."""
    count = choices.pick([1, 2, 3, *range(58, 66), 80, 200])
    first = fields["layout"].startswith("N") + (
        "C" in fields["layout"] and not fields["channels_last"]
    )
    more = {
        **dict.fromkeys(("input_shape", "output_shape", "x_shape", "index_shape"), 1),
        **dict.fromkeys(("sizes", "inferred", "output"), 1),
        "index_origin": 0,
        "windows": (1, 1, 0),
        "axes": Axis(1, 1, 1, 1, 1, 0, 0),
    }
    per_spatial_axis = ("sizes", "inferred", "output", "windows", "axes")
    longer = dict(fields)
    for name in more.keys() & fields.keys():
        at = 0 if name in per_spatial_axis else first
        longer[name] = (*fields[name][:at], *(more[name],) * count, *fields[name][at:])
    spatial = len(longer["axes" if "axes" in fields else "sizes"])
    if "spatial" in fields:
        longer["spatial"] = tuple(range(first, first + spatial))
    if spatial <= 3:
        old = fields["layout"]
        letters = {1: "W", 2: "HW", 3: "DHW"}[spatial]
        letters = letters + "C" if old.endswith("C") else "C" * ("C" in old) + letters
        longer["layout"] = "N" * old.startswith("N") + letters
    else:
        longer["layout"] = "NHWC" if fields["channels_last"] else "NCHW"
    return longer


def agree(fields):
    """Return the fields with batch, channels and extents of axes taken from the shapes."""
    pool = "axes" in fields
    shape = fields["input_shape" if pool else "x_shape"]
    name, output = fields["layout"], fields["output_shape"]
    last = len(shape) - 1 if fields["channels_last"] else name.find("C")
    agreed = {**fields, "batch": shape[0] if name.startswith("N") else 1}
    agreed["channels"] = shape[last] if last >= 0 else 1
    first = name.startswith("N") + ("C" in name and not fields["channels_last"])
    if pool:
        agreed["axes"] = tuple(
            axis._replace(size=shape[first + i], output=output[first + i])
            for i, axis in enumerate(fields["axes"])
        )
    else:
        agreed["sizes"] = tuple(shape[place] for place in fields["spatial"])
        agreed["output"] = tuple(output[place] for place in fields["spatial"])
    return agreed


def follow(fields):
    """Return the fields with outputs and index fields computed from `axes` and `input_shape`."""
    shape, output = fields["input_shape"], list(fields["input_shape"])
    first = fields["layout"].startswith("N")
    first += "C" in fields["layout"] and not fields["channels_last"]
    axes = []
    for i, axis in enumerate(fields["axes"]):
        room = shape[first + i] + axis.begin + axis.end - (axis.kernel - 1) * axis.dilation - 1
        axes.append(axis._replace(size=shape[first + i], output=room // axis.stride + 1))
        output[first + i] = axes[-1].output
    counted = {"index_shape": shape, "index_origin": (0,) * len(shape), "given": None}
    return agree({**fields, "axes": tuple(axes), "output_shape": tuple(output), **counted})


# Errors of a change whose fields an earlier change has made meaningless.
SENSELESS = (AttributeError, LookupError, TypeError, ValueError, ZeroDivisionError)


def draw_changes(choices, fields, other):
    """Return the fields that differ after up to three changes, with their new values."""
    changes = [number, layout, exchange, kind, order, rank, number, word, flag]
    changed = fields
    for _ in range(choices.pick([1, 1, 1, 2, 2, 3, 0])):
        try:
            changed = choices.pick(changes)(changed, other, choices)
        except SENSELESS:
            break
    if "given" in changed and not choices.once_in(4):
        changed = {**changed, "given": None}
    for settle in [agree] * choices.once_in(3) + [follow] * choices.once_in(3):
        try:
            changed = settle(changed)
        except SENSELESS:
            break
    return {name: value for name, value in changed.items() if value is not fields[name]}
