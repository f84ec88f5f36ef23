"""Draw the attributes that pooling, unpooling and plans share: layouts, and how indices count."""

import math

import cases


def draw_conventions(choices, rank, layout):
    """Draw the attributes of a pooling other than its windows: rounding, NaN, how indices count."""
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
    """Draw how the indices of an unpooling count. They never count from inside a plane."""
    index_layout = choices.pick(["NCHW", "NHWC"] if layout.endswith("C") else ["NCHW"])
    outer = cases.first_spatial_axis(layout) - (index_layout == "NHWC")
    return {
        "index_space": choices.pick(["output", "inferred"]),
        "index_axis": choices.integer(0, outer),
        "index_layout": index_layout,
    }


def planes(layout, batch, channels, index_axis=0):
    """Return the number of planes in one block of the axes from `index_axis` on."""
    outer = [batch] * layout.startswith("N") + [channels] * ("C" in layout)
    return math.prod(outer[index_axis:])


def draw_batch(choices, sizes, channels, most):
    """Return (batch, channels) for at most about `most` elements, now and then for none."""
    room = most // max(1, math.prod(sizes))
    channels = max(1, min(channels, room))
    batch = max(1, min(choices.pick([1, 1, 2, 3, 8]), room // channels))
    if choices.once_in(30):
        return choices.pick([(0, channels), (batch, 0), (0, 0)])
    return batch, channels
