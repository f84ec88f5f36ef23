"""Resolve the arguments of a max unpooling to integers: extents and positions of axes."""

import math
from dataclasses import dataclass

from . import arguments, geometry
from .dtypes import INDEX_BYTES, ITEMSIZE, name_of
from .geometry import check_size, extent_at, replaced
from .plan_checks import (
    FLAG,
    INTEGER,
    INTEGERS,
    TEXT,
    Data,
    check_kinds,
    compare_fields,
    named_plan,
    or_none,
    tuple_of,
)
from .values import as_counts


@dataclass(frozen=True, eq=False, repr=False)
class MaxUnpool(Data):
    """A max unpooling of one geometry, as data.

    `spatial` holds the positions of the spatial axes in the array. `sizes`, `inferred` and `output`
    hold the extents along them: of x, as inferred from the window, and of the result. `windows`
    holds (kernel, stride, padding at the beginning) per axis; no element depends on it.
    """

    x_shape: tuple
    layout: str
    batch: int
    channels: int
    channels_last: bool
    spatial: tuple
    windows: tuple
    sizes: tuple
    inferred: tuple
    output: tuple
    output_shape: tuple
    index_space: str
    index_axis: int
    index_layout: str
    num_threads: int | None

    def __post_init__(self):
        check_fields(self)

    @property
    def index_planes(self):
        """The number of planes that an index counts through: all, those of one batch, or 1.

        It is 1 also if there are no planes.
        """
        outer = [self.batch] * self.layout.startswith("N") + [self.channels] * ("C" in self.layout)
        return max(1, math.prod(outer[self.index_axis :]))


def resolve(
    x_shape,
    kernel_shape,
    strides=None,
    pads=None,
    output_shape=None,
    layout=None,
    index_space=None,
    index_axis=None,
    index_layout=None,
    num_threads=None,
):
    """Check attributes as the public function takes them; return the fields of a plan as a dict."""
    order = geometry.layout(layout, x_shape)
    count = len(order.spatial)
    kernels = arguments.kernel_shape(kernel_shape, count)
    strides = arguments.strides(strides, kernels)
    pads = arguments.pads(pads, count)
    index_space = arguments.index_space(index_space)
    index_layout = arguments.index_layout(index_layout, order)
    index_axis = _unpool_index_axis(index_axis, x_shape, order, index_layout)
    given = arguments.output_shape(output_shape, len(x_shape))
    num_threads = arguments.num_threads(num_threads)

    sizes = tuple(x_shape[position] for position in order.spatial)
    windows = tuple(zip(sizes, strides, kernels, pads[:count], pads[count:], strict=True))
    inferred = tuple((x - 1) * s + k - begin - end for x, s, k, begin, end in windows)
    if given is None or index_space == "inferred":
        # Otherwise these extents, and so the pads, have no effect.
        for i, (x, s, k, begin, end) in enumerate(windows):
            if inferred[i] <= 0:
                raise ValueError(
                    f"pads: the unpooled extent ({x} - 1) * {s} + {k} - {begin} - {end} = "
                    f"{inferred[i]} of axis {order.spatial_names[i]} is not positive"
                )
    if given is None:
        name, given = "output", replaced(x_shape, order, inferred)
    else:
        name = "output_shape"
        _check_output_shape(given, x_shape, order, inferred, index_space)
    check_size(name, given, max(ITEMSIZE.values()))
    return {
        "x_shape": x_shape,
        "layout": order.name,
        "batch": extent_at(x_shape, order.batch_axis),
        "channels": extent_at(x_shape, order.channel_axis),
        "channels_last": order.channels_last,
        "spatial": order.spatial,
        "windows": tuple(zip(kernels, strides, pads[:count], strict=True)),
        "sizes": sizes,
        "inferred": inferred,
        "output": tuple(given[position] for position in order.spatial),
        "output_shape": given,
        "index_space": index_space,
        "index_axis": index_axis,
        "index_layout": index_layout,
        "num_threads": num_threads,
    }


def check_indices(indices, shape):
    """Raise unless an array of indices has a type of indices and the shape of x."""
    if name_of(indices.dtype) not in INDEX_BYTES:
        raise TypeError(f"indices: expected dtype int64 or int32, got {indices.dtype}")
    if indices.shape != shape:
        raise ValueError(f"indices: expected x's shape {shape}, got {indices.shape}")


# What each field of a `MaxUnpool` may be.
_KINDS = {
    **dict.fromkeys(("x_shape", "spatial", "sizes", "inferred"), INTEGERS),
    **dict.fromkeys(("output", "output_shape"), INTEGERS),
    **dict.fromkeys(("layout", "index_space", "index_layout"), TEXT),
    **dict.fromkeys(("batch", "channels", "index_axis"), INTEGER),
    "channels_last": FLAG,
    "windows": tuple_of("a tuple of tuples of ints", INTEGERS),
    "num_threads": or_none(INTEGER),
}


def check_fields(plan):
    """Raise unless each field of a plan is what `resolve` makes of the others."""
    check_kinds(plan, _KINDS)
    with named_plan():
        as_counts(plan.x_shape, "x_shape", 0)
        lengths = {len(plan.windows), len(plan.inferred), len(plan.sizes)}
        if len(lengths) > 1 or {*map(len, plan.windows)} != {3}:
            raise ValueError(f"windows {plan.windows} do not fit the sizes {plan.sizes}")
        kernels, strides, begins = zip(*plan.windows, strict=True)
        # A plan does not store the padding at the end. It follows from the inferred extents.
        ends = [
            (size - 1) * stride + kernel - begin - extent
            for size, (kernel, stride, begin), extent in zip(
                plan.sizes, plan.windows, plan.inferred, strict=True
            )
        ]
        order = plan.layout, plan.index_space, plan.index_axis, plan.index_layout
        expected = resolve(
            plan.x_shape,
            kernels,
            strides,
            (*begins, *ends),
            plan.output_shape,
            *order,
            plan.num_threads,
        )
        compare_fields(plan, expected)


def _unpool_index_axis(value, shape, order, index_layout):
    """Return `index_axis` counted from the first axis; if it is inside the plane, raise."""
    index_axis = arguments.index_axis(value, len(shape))
    most = (order.batch_axis >= 0) + (order.channel_axis >= 0 and index_layout == "NCHW")
    if index_axis > most:
        raise ValueError(f"index_axis: {index_axis} is inside the plane; expected at most {most}")
    return index_axis


def _check_output_shape(given, x_shape, order, inferred, index_space):
    for axis, name in ((order.batch_axis, "batch"), (order.channel_axis, "channels")):
        if axis >= 0 and given[axis] != x_shape[axis]:
            raise ValueError(
                f"output_shape[{axis}]: {name} {given[axis]} differ from those of x, "
                f"{x_shape[axis]}"
            )
    if index_space == "inferred":
        for axis, least, name in zip(order.spatial, inferred, order.spatial_names, strict=True):
            if given[axis] < least:
                raise ValueError(
                    f"output_shape[{axis}]: {given[axis]} is below the inferred extent {least} of "
                    f'axis {name}, in which index_space "inferred" counts'
                )
