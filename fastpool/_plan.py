"""What a pooling computes, resolved to integers: extents, padding, where the axes are.

A plan holds no array and needs no compiled code until it is called. Everything is a Python int, so
that no sum or product wraps, whatever the attributes.
"""

import functools
import importlib
import math
from dataclasses import dataclass, field, fields
from types import GenericAlias
from typing import NamedTuple

from . import _arguments, _tiling
from ._schedule import ITEMSIZE

# No memory holds more elements or bytes; indices and byte offsets below it fit an int64.
LARGEST = 2**62


class Axis(NamedTuple):
    """One pooled axis: output o covers elements ``o * stride - begin + t * dilation``, t < kernel.

    `end` is the padding at the end that a floor rounding needs for the same output.
    """

    size: int
    output: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int


class Given(NamedTuple):
    """The attributes of which a plan's axes hold only what came of them."""

    pads: tuple
    auto_pad: str
    ceil_mode: bool
    ceil_rule: str


@dataclass(frozen=True, repr=False)
class MaxPoolPlan:
    """A max pooling of one geometry, ready to run on any array of its shape and type.

    Made by :func:`fastpool.plan_max_pool`. Plans are immutable, comparable, hashable and picklable;
    threads may share one.

    Attributes
    ----------
    input_shape, output_shape : tuple of int
    dtype : str
        Name of the element type, of input and output.
    layout : str
        Names of the axes ("NCHW" or "NHWC" if there are more than three spatial ones).
    axes : tuple of Axis
        The spatial axes in order, with everything resolved: size, output, kernel, stride, dilation
        and padding.
    batch, channels : int
        1 where the layout lacks the axis.
    channels_last : bool
    nan, activation, activation_params, return_indices, storage_order, index_dtype, index_layout, \
num_threads
        As given to :func:`fastpool.plan_max_pool`, or the default.
    index_axis : int
        Counted from the first axis.
    index_shape, index_origin : tuple of int
        Shape of the array that indices count in, and where the input begins in it: `input_shape`
        and zeros, unless the plan is that of a tile.
    given : Given or None
        `pads`, `auto_pad`, `ceil_mode` and `ceil_rule` as given, for explanations alone: plans that
        compute the same are equal however it was asked for. None for a tile.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> plan = fastpool.plan_max_pool((2, 4), "int32", 2, strides=2, layout="HW")
    >>> plan
    <MaxPoolPlan int32 HW (2, 4) -> (1, 2), kernel_shape=(2, 2), strides=(2, 2)>
    >>> plan(np.array([[1, 5, 2, 2], [3, 4, 0, 7]], dtype=np.int32))
    array([[5, 7]], dtype=int32)
    """

    input_shape: tuple
    dtype: str
    layout: str
    axes: tuple
    batch: int
    channels: int
    channels_last: bool
    output_shape: tuple
    nan: str
    activation: str | None
    activation_params: tuple
    return_indices: bool
    storage_order: int
    index_axis: int
    index_dtype: str
    index_layout: str
    num_threads: int | None
    index_shape: tuple
    index_origin: tuple
    given: Given | None = field(default=None, compare=False)

    # For annotations: MaxPoolPlan[Literal[True]] is one with indices.
    __class_getitem__ = classmethod(GenericAlias)

    def __call__(self, x, out=None, out_indices=None):
        """Pool an array.

        Parameters
        ----------
        x : array_like
            Of shape `input_shape` and type `dtype`.
        out : ndarray, optional
            Takes the maxima: of shape `output_shape` and type `dtype`, writeable, and not
            overlapping `x` or `out_indices`.
        out_indices : ndarray, optional
            Takes the indices: of shape `output_shape` and type `index_dtype`.

        Returns
        -------
        y : ndarray
            The maxima, or ``(y, indices)`` if `return_indices`.

        Raises
        ------
        TypeError, ValueError
            If an array has another shape or type, before anything is written.
        """
        results = self._run(x, out, out_indices)
        if results is None:
            results = dispatcher().execute_max_pool(self, x, out, out_indices)
        return results

    def tile(self, outputs):
        """The part of this pooling that gives some of its outputs.

        Parameters
        ----------
        outputs : tuple of slice
            Which, along the axes of the output; axes that are left out are taken whole.

        Returns
        -------
        tile : Tile
            A tuple of three: the `plan` of the part; `read`, the slices of the input that it takes;
            `write`, the slices of the output that it gives. ``tile.plan(x[tile.read])`` is equal to
            ``plan(x)[tile.write]``, indices included: they count in the whole of `x`.

        Raises
        ------
        TypeError, ValueError
            `outputs` are no slices, too many, or some with steps.

        Examples
        --------
        >>> import numpy as np
        >>> import fastpool
        >>> plan = fastpool.plan_max_pool(
        ...     (8, 100), "float32", 3, strides=2, pads=1, layout="HW", return_indices=True
        ... )
        >>> part, read, write = plan.tile(np.s_[1:3, 20:40])
        >>> read, part.output_shape
        ((slice(1, 6, None), slice(39, 80, None)), (2, 20))
        """
        return _tiling.tile(self, outputs)

    def explain(self):
        """Say in words what this pooling does, and how.

        Returns
        -------
        text : str
            15 to 30 lines: the rules used and what came of them along each axis, windows that hang
            over the edge or are empty, types, indices, and how a call on this machine is made.

        Examples
        --------
        >>> import fastpool
        >>> plan = fastpool.plan_max_pool((6, 6), "uint8", 3, strides=2, layout="HW")
        >>> print(plan.explain())  # doctest: +ELLIPSIS
        MaxPoolPlan: uint8 HW (6, 6) -> (2, 2)
        ...
        """
        return importlib.import_module("._explain", __package__).explain(self)

    def draw(self, *, axes=None, title=None, width=None):
        """Draw where the windows lie over the input and its padding.

        Above and beside the grid stand the windows of each axis with the numbers of their outputs.
        Of long axes only the ends are drawn.

        Parameters
        ----------
        axes : str or sequence of str, optional
            One or two spatial axes by the names that `layout` has for them, as in "HW" (from four
            spatial axes on they are "D1", "D2", ...). All by default.
        title : str, optional
            Shapes and attributes by default; "" for none.
        width : float, optional
            Of the figure, in inches. As wide as the geometry asks for by default.

        Returns
        -------
        figure : matplotlib.figure.Figure
            ``figure.savefig("windows.svg")`` writes the same bytes every time.

        Raises
        ------
        ImportError
            matplotlib is not there: ``pip install "fastpool[plot]"``.
        TypeError, ValueError
            `axes` names others, or more than two, or none where there are more than two.

        Examples
        --------
        >>> import fastpool
        >>> plan = fastpool.plan_max_pool((6, 6), "uint8", 3, strides=2, layout="HW")
        >>> plan.draw().savefig("windows.svg")  # doctest: +SKIP
        """
        return importlib.import_module("._draw", __package__).draw(self, axes, title, width)

    def _repr_html_(self):
        return importlib.import_module("._explain", __package__).as_html(self)

    def _run(self, x, out, out_indices):
        """The results for arrays that need no care, None for others: compiled for this process at
        the first call, which puts it in this one's place."""
        return None

    def __getstate__(self):
        # What was compiled for this process is kept beside the fields and stays here.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self):
        parts = [f"kernel_shape={self.kernel_shape}"]
        usual = {
            "strides": (1,) * len(self.axes),
            "pads": (0, 0) * len(self.axes),
            "dilations": (1,) * len(self.axes),
            "nan": "propagate",
            "activation": None,
            "activation_params": (),
            "return_indices": False,
            "storage_order": 0,
            "index_axis": 0,
            "index_dtype": "int64",
            "index_layout": "NCHW",
            "num_threads": None,
            "index_shape": self.input_shape,
            "index_origin": (0,) * len(self.input_shape),
        }
        for name, value in usual.items():
            if getattr(self, name) != value:
                parts.append(f"{name}={getattr(self, name)!r}")
        return (
            f"<MaxPoolPlan {self.dtype} {self.layout} {self.input_shape} -> {self.output_shape}, "
            f"{', '.join(parts)}>"
        )

    @property
    def kernel_shape(self):
        return tuple(axis.kernel for axis in self.axes)

    @property
    def strides(self):
        return tuple(axis.stride for axis in self.axes)

    @property
    def dilations(self):
        return tuple(axis.dilation for axis in self.axes)

    @property
    def pads(self):
        """All begins and then all ends, as used: with these a floor rounding gives this output."""
        return tuple(axis.begin for axis in self.axes) + tuple(axis.end for axis in self.axes)

    @property
    def batch_axis(self):
        """Position of the batch axis in the array, -1 if there is none."""
        return 0 if self.layout.startswith("N") else -1

    @property
    def channel_axis(self):
        """Position of the channel axis in the array, -1 if there is none."""
        return len(self.input_shape) - 1 if self.channels_last else self.layout.find("C")

    @property
    def spatial(self):
        """Positions of the spatial axes in the array."""
        first = self.layout.startswith("N") + ("C" in self.layout and not self.channels_last)
        return tuple(range(first, first + len(self.axes)))


@functools.cache
def dispatcher():
    # Not at the head of the module: plans are made and tested without compiled code.
    return importlib.import_module("._dispatch", __package__)


def make_plan(
    input_shape,
    dtype,
    kernel_shape,
    strides=None,
    pads=None,
    dilations=None,
    auto_pad=None,
    ceil_mode=None,
    ceil_rule=None,
    layout=None,
    nan=None,
    activation=None,
    activation_params=None,
    return_indices=None,
    storage_order=None,
    index_axis=None,
    index_dtype=None,
    index_layout=None,
    num_threads=None,
):
    """Check attributes as the public functions take them, and resolve them to a `MaxPoolPlan`."""
    shape = _arguments.input_shape(input_shape)
    dtype = _arguments.dtype_name(dtype)
    order = _arguments.layout(layout, shape)
    activation, activation_params = _arguments.activation(activation, activation_params, dtype)
    return_indices = _arguments.return_indices(return_indices)
    index_dtype = _arguments.index_dtype(index_dtype)
    nan = _arguments.nan(nan)
    num_threads = _arguments.num_threads(num_threads)

    axes, given = _pooled_axes(
        shape, order, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule
    )
    output = replaced(shape, order, [axis.output for axis in axes])
    storage_order, index_axis, index_layout = _index_rules(
        shape, order, storage_order, index_axis, index_layout
    )
    itemsize = ITEMSIZE[dtype]
    check_size("input_shape", shape, itemsize)
    check_size("output", output, max(itemsize, 8) if return_indices else itemsize)
    if return_indices and index_dtype == "int32":
        _check_int32(shape, order, index_axis, index_layout)
    return MaxPoolPlan(
        input_shape=shape,
        dtype=dtype,
        layout=order.name,
        axes=axes,
        batch=extent_at(shape, order.batch_axis),
        channels=extent_at(shape, order.channel_axis),
        channels_last=order.channels_last,
        output_shape=output,
        nan=nan,
        activation=activation,
        activation_params=activation_params,
        return_indices=return_indices,
        storage_order=storage_order,
        index_axis=index_axis,
        index_dtype=index_dtype,
        index_layout=index_layout,
        num_threads=num_threads,
        index_shape=shape,
        index_origin=(0,) * len(shape),
        given=given,
    )


def check_fields(plan):
    """Raise unless a plan's axes are those of its shapes, as `make_plan` makes them.

    Anybody can make another: dataclasses.replace changes one field, and kernels believe them all.
    """
    shapes = plan.input_shape, plan.output_shape
    places = (*plan.spatial, plan.batch_axis, plan.channel_axis)
    ranks = {len(plan.axes) + (plan.batch_axis >= 0) + (plan.channel_axis >= 0), *map(len, shapes)}
    axes = [
        *[(axis.size, axis.output) for axis in plan.axes],
        *[(plan.batch, plan.batch), (plan.channels, plan.channels)],
    ]
    if len(ranks) > 1 or axes != [tuple(extent_at(s, place) for s in shapes) for place in places]:
        raise ValueError(f"plan: axes {plan.axes} do not fit the shapes {shapes}")
    for axis in plan.axes:
        if min(axis.kernel, axis.stride, axis.dilation) < 1 or min(axis) < 0:
            raise ValueError(f"plan: {axis} is no window")
    counted = plan.index_shape, plan.index_origin
    if {*map(len, counted)} != ranks or not all(
        0 <= start <= extent - size
        for size, extent, start in zip(plan.input_shape, *counted, strict=True)
    ):
        raise ValueError(f"plan: indices in {counted} do not fit the shape {plan.input_shape}")


def extent_at(shape, axis):
    return 1 if axis < 0 else shape[axis]


def replaced(shape, order, extents):
    """`shape` with other spatial extents."""
    shape = list(shape)
    for axis, extent in zip(order.spatial, extents, strict=True):
        shape[axis] = extent
    return tuple(shape)


def _pooled_axes(
    shape, order, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule
):
    count = len(order.spatial)
    kernels = _arguments.kernel_shape(kernel_shape, count)
    strides = _arguments.strides(strides, count)
    dilations = _arguments.dilations(dilations, count)
    pads = _arguments.pads(pads, count)
    auto_pad = _arguments.auto_pad(auto_pad)
    ceil_mode = _arguments.ceil_mode(ceil_mode)
    ceil_rule = _arguments.ceil_rule(ceil_rule)
    if auto_pad != "NOTSET" and any(pads):
        raise ValueError(f'pads: expected none beside auto_pad "{auto_pad}", got {pads}')
    axes = []
    for i, position in enumerate(order.spatial):
        window = shape[position], kernels[i], strides[i], dilations[i]
        if auto_pad.startswith("SAME"):
            axes.append(_same_axis(*window, lower=auto_pad == "SAME_LOWER"))
        else:
            where = f"kernel_shape[{i}]", order.spatial_names[i]
            begin, end = pads[i], pads[count + i]
            axes.append(_padded_axis(*window, begin, end, ceil_mode, ceil_rule, *where))
    return tuple(axes), Given(pads, auto_pad, ceil_mode, ceil_rule)


def _same_axis(size, kernel, stride, dilation, lower):
    """One output per `stride` elements begun, and the padding for that; an odd unit at one side."""
    output = -(-size // stride)
    extent = (kernel - 1) * dilation + 1
    total = max((output - 1) * stride + extent - size, 0) if output else 0
    begin = (total + 1) // 2 if lower else total // 2
    return Axis(size, output, kernel, stride, dilation, begin, total - begin)


def _padded_axis(
    size, kernel, stride, dilation, begin, end, ceil_mode, ceil_rule, argument, axis_name
):
    extent = (kernel - 1) * dilation + 1
    room = size + begin + end - extent
    if room < 0:
        raise ValueError(
            f"{argument}: window ({kernel} - 1) * {dilation} + 1 = {extent} exceeds the padded "
            f"input {size} + {begin} + {end} = {size + begin + end} of axis {axis_name}"
        )
    output = floor_output = room // stride + 1
    if ceil_mode:
        output = -(-room // stride) + 1
        # A last window that would start in the padding at the end, or past it, is dropped.
        if ceil_rule == "clip" and (output - 1) * stride >= size + begin:
            output -= 1
    if output != floor_output:
        end = max((output - 1) * stride + extent - size - begin, 0)
    return Axis(size, output, kernel, stride, dilation, begin, end)


def _index_rules(shape, order, storage_order, index_axis, index_layout):
    storage_order = _arguments.storage_order(storage_order)
    index_axis = _arguments.index_axis(index_axis, len(shape))
    index_layout = _arguments.index_layout(index_layout, order)
    if storage_order:
        if index_layout == "NHWC":
            raise ValueError(
                'storage_order: 1 counts within planes and cannot go with index_layout "NHWC"'
            )
        # As if channels came first, the plane starts where its first axis is.
        plane = (order.batch_axis >= 0) + (order.channel_axis >= 0)
        if index_axis > plane:
            raise ValueError(
                f"index_axis: {index_axis} is inside the plane, which storage_order 1 numbers "
                f"column by column; expected at most {plane}"
            )
    return storage_order, index_axis, index_layout


def check_size(name, shape, itemsize):
    if math.prod(extent or 1 for extent in shape) * itemsize > LARGEST:  # as NumPy counts
        raise ValueError(f"{name}: {shape} of {itemsize}-byte elements is more than 2**62 bytes")


def _check_int32(shape, order, index_axis, index_layout):
    if index_layout == "NCHW" and order.channels_last:
        shape = list(shape)
        shape.insert(order.spatial[0], shape.pop(order.channel_axis))
    largest = math.prod(shape[index_axis:]) - 1
    if largest >= 2**31:
        raise ValueError(f"index_dtype: int32 cannot hold the largest index, {largest}")
