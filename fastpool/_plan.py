"""What a pooling computes, resolved to integers: extents, padding, where the axes are.

A plan holds no array and needs no compiled code until it is called. Everything is a Python int, so
that no sum or product wraps, whatever the attributes.
"""

import functools
import importlib
from dataclasses import dataclass, field
from types import GenericAlias

from . import _arguments, _tiling
from ._axes import (
    Axis,
    Given,
    check_index_size,
    check_size,
    extent_at,
    index_rules,
    padded_axis,
    pooled_axes,
    replaced,
)
from ._plan_checks import (
    FLAG,
    FLOATS,
    INTEGER,
    INTEGERS,
    TEXT,
    check_kinds,
    compare_fields,
    named_plan,
    or_none,
    record_of,
    restore_fields,
    state_of,
    tuple_of,
)
from ._schedule import ITEMSIZE


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

    def __post_init__(self):
        check_fields(self)

    def _run(self, x, out, out_indices):
        """The results for arrays that need no care, None for others: compiled for this process at
        the first call, which puts it in this one's place."""
        return None

    def __getstate__(self):
        return state_of(self)

    def __setstate__(self, state):
        restore_fields(self, state)

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

    axes, given = pooled_axes(
        shape, order, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, ceil_rule
    )
    rules = index_rules(shape, order, storage_order, index_axis, index_layout)
    return MaxPoolPlan(
        **_resolved(shape, dtype, order, axes, rules, index_dtype, return_indices, shape),
        nan=nan,
        activation=activation,
        activation_params=activation_params,
        num_threads=num_threads,
        index_origin=(0,) * len(shape),
        given=given,
    )


def _resolved(shape, dtype, order, axes, rules, index_dtype, return_indices, index_shape):
    """The fields of a plan that its shapes, layout, axes and `index_rules` give.

    ValueError if an array would be larger than any memory, or an index larger than its type holds.
    """
    output = replaced(shape, order, [axis.output for axis in axes])
    storage_order, index_axis, index_layout = rules
    itemsize = ITEMSIZE[dtype]
    check_size("input_shape", shape, itemsize)
    check_size("index_shape", index_shape, 1)
    check_size("output", output, max(itemsize, 8) if return_indices else itemsize)
    if return_indices and index_dtype == "int32":
        check_index_size(index_shape, order, index_axis, index_layout)
    return {
        "input_shape": shape,
        "dtype": dtype,
        "layout": order.name,
        "axes": axes,
        "batch": extent_at(shape, order.batch_axis),
        "channels": extent_at(shape, order.channel_axis),
        "channels_last": order.channels_last,
        "output_shape": output,
        "return_indices": return_indices,
        "storage_order": storage_order,
        "index_axis": index_axis,
        "index_dtype": index_dtype,
        "index_layout": index_layout,
        "index_shape": index_shape,
    }


# Explicit pads and rounding down: ceil_mode, ceil_rule, and names for an error.
_FLOOR = False, "clip", "axes", "(of a plan)"

# What each field of a `MaxPoolPlan` may be.
_KINDS = {
    **dict.fromkeys(("input_shape", "output_shape", "index_shape", "index_origin"), INTEGERS),
    **dict.fromkeys(("dtype", "layout", "nan", "index_dtype", "index_layout"), TEXT),
    **dict.fromkeys(("batch", "channels", "storage_order", "index_axis"), INTEGER),
    **dict.fromkeys(("channels_last", "return_indices"), FLAG),
    "axes": tuple_of("a tuple of Axis", record_of(Axis, *[INTEGER] * len(Axis._fields))),
    "activation": or_none(TEXT),
    "activation_params": FLOATS,
    "num_threads": or_none(INTEGER),
    "given": or_none(record_of(Given, INTEGERS, TEXT, FLAG, TEXT)),
}


def check_fields(plan):
    """Raise unless each field of a plan is what `make_plan` would make of the others.

    What a field follows from is worked out again: no list of contradictions could be complete.
    """
    check_kinds(plan, MaxPoolPlan, _KINDS)
    with named_plan():
        shape = _arguments.input_shape(plan.input_shape)
        order = _arguments.layout(plan.layout, shape)
        dtype = _arguments.dtype_name(plan.dtype)
        activation, params = _arguments.activation(plan.activation, plan.activation_params, dtype)
        index_dtype = _arguments.index_dtype(plan.index_dtype)
        rules = plan.storage_order, plan.index_axis, plan.index_layout
        rules = index_rules(shape, order, *rules)
        more = rules, index_dtype, plan.return_indices, plan.index_shape
        axes = _axes_again(plan, order)
        counted = plan.index_shape, plan.index_origin
        if {*map(len, counted)} != {len(shape)} or not all(
            0 <= start <= extent - size for size, extent, start in zip(shape, *counted, strict=True)
        ):
            raise ValueError(
                f"indices in index_shape {counted[0]} from index_origin {counted[1]} on do not fit "
                f"input_shape {shape}"
            )
        compare_fields(
            plan,
            {
                "nan": _arguments.nan(plan.nan),
                "activation": activation,
                "activation_params": params,
                "num_threads": _arguments.num_threads(plan.num_threads),
                **_resolved(shape, dtype, order, axes, *more),
            },
        )


def _axes_again(plan, order):
    """The axes of a plan, from its shape and the attributes that its axes and `given` hold."""
    sizes = [plan.input_shape[place] for place in order.spatial]
    if [axis.size for axis in plan.axes] != sizes:
        raise ValueError(f"axes {plan.axes} do not fit input_shape {plan.input_shape}")
    attributes = plan.kernel_shape, plan.strides, plan.pads, plan.dilations
    if plan.given is not None:
        attributes = (*attributes[:2], plan.given.pads, attributes[3])
        axes, given = pooled_axes(plan.input_shape, order, *attributes, *plan.given[1:])
        compare_fields(plan, {"given": given})
        return axes
    for axis in plan.axes:
        if min(axis.kernel, axis.stride, axis.dilation) < 1 or min(axis) < 0:
            raise ValueError(f"{axis} is no window")
    # An axis without elements has windows or, in an empty tile, none.
    return tuple(
        axis if axis.output == axis.size == 0 else padded_axis(axis.size, *axis[2:], *_FLOOR)
        for axis in plan.axes
    )
