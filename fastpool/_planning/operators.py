"""Check what the operators of graph formats require and native calls do not.

Their inputs always have batch and channels, and their attributes are complete lists.
"""

from . import geometry
from .values import as_counts, choice


def spatial_rank(shape, layout):
    """Return the number of spatial axes of an input with batch and channels."""
    if len(shape) < 3:
        raise ValueError(
            f"layout: needs batch, channels and at least one spatial axis, got shape {shape}"
        )
    order = geometry.layout(layout, shape)
    if order.batch_axis < 0 or order.channel_axis < 0:
        raise ValueError(
            f'layout: expected one with batch and channels ("N" and "C"), got "{order.name}"'
        )
    return len(order.spatial)


def pads_rule(value):
    """Return what happens to `pads` if there is an `auto_pad` too."""
    return choice(value, "pads_with_auto_pad", ("error", "ignore"))


def counts(value, name, count, least, *, required=False):
    """Return an attribute, a list of `count` integers not below `least`; None if absent."""
    if value is None and not required:
        return None
    return as_counts(value, name, least, (count,), f"{count} ints")
