"""Attributes that pooling, unpooling and plans draw alike: layouts, indices and their numbering."""

import math

import cases


def draw_conventions(choices, rank, layout):
    """Everything but the windows that decides about results of a pooling, and how it is counted."""
    physical = layout.endswith("C") and choices.once_in(2)
    storage_order = 0 if physical else choices.integer(0, 1)
    first = cases.first_spatial_axis(layout)
    last_axis = first if storage_order else rank + first - 1
    return {
        "ceil_mode": choices.pick([False, True]),
        "ceil_rule": choices.pick(["clip", "keep"]),
        "layout": layout,
        "nan": choices.pick(["propagate", "ignore"]),
        "storage_order": storage_order,
        "index_axis": choices.integer(0, last_axis) - choices.pick([0, rank + first]),
        "index_dtype": choices.pick(["int64", "int32"]),
        "index_layout": "NHWC" if physical else "NCHW",
    }


def draw_numbering(choices, layout):
    """How indices of an unpooling count: never from inside of a plane."""
    index_layout = choices.pick(["NCHW", "NHWC"] if layout.endswith("C") else ["NCHW"])
    outer = cases.first_spatial_axis(layout) - (index_layout == "NHWC")
    return {
        "index_space": choices.pick(["output", "inferred"]),
        "index_axis": choices.integer(0, outer),
        "index_layout": index_layout,
    }


def planes(layout, batch, channels, index_axis=0):
    """How many planes there are from this axis on."""
    outer = [batch] * layout.startswith("N") + [channels] * ("C" in layout)
    return math.prod(outer[index_axis:])


def draw_batch(choices, sizes, channels, most):
    """(batch, channels) for about so many elements, now and then none."""
    room = most // max(1, math.prod(sizes))
    channels = max(1, min(channels, room))
    batch = max(1, min(choices.pick([1, 1, 2, 3, 8]), room // channels))
    if choices.once_in(30):
        return choices.pick([(0, channels), (batch, 0), (0, 0)])
    return batch, channels
