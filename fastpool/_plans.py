"""The plans that users hold: data that can be called, cut into tiles, explained and drawn."""

from dataclasses import FrozenInstanceError
from types import GenericAlias

from ._planning import average_pool, lp_pool, max_pool, max_unpool
from ._planning.average_pool import AvgPool
from ._planning.borders import canonical
from ._planning.geometry import AdaptiveAxis, Axis, Border, Given, GivenSize
from ._planning.lp_pool import LpPool
from ._planning.max_pool import MaxPool, MinPool
from ._planning.max_unpool import MaxUnpool
from ._planning.plan_checks import (
    check_class,
    pickled_state,
    record,
    records,
    resolved,
    restore_fields,
)
from ._running import execute, unpool
from ._running.plan_cache import MOST_PART_PLANS, PLAN_BYTES, keep_within_limit
from ._running.prepare import PreparedAverage, PreparedPool, PreparedUnpool


class _Plan:
    """What plans have in common: a slot for what this process prepared, and their pickles.

    The slot is `_prepared`, and the compiled function is `_run`. `_resolved` are the fields as
    `resolve` returned them. These are stored with the fields, but are no part of a pickle.
    """

    # How many plans it keeps at most, for parts of arrays.
    _most_parts = 1

    def __setattr__(self, name, value):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def _count_tables_in(self, counter):
        """Let a cache count the tables that compiled code will have: ``counter[0]`` are bytes."""
        vars(self)["_counter"] = counter

    def _keep(self, prepared):
        vars(self).update(_prepared=prepared, _run=prepared.run)
        compiled = getattr(prepared.once or prepared, "pooling", None)
        tables, counter = getattr(compiled, "table_bytes", 0), vars(self).get("_counter")
        if tables > PLAN_BYTES and counter is not None:
            counter[0] += tables
            keep_within_limit()
        return prepared

    def __getstate__(self):
        return pickled_state(self)

    def _restore(self, state, **kinds):
        for name in ("_prepared", "_run", "_resolved", "_counter"):  # of other fields
            vars(self).pop(name, None)
        restore_fields(self, state, **kinds)


def _axes(value):
    """Return the axes of a pickle; their lengths tell the kinds apart."""
    return records(Axis)(records(AdaptiveAxis)(value))


def _given(value):
    return record(Given)(record(GivenSize)(value))


def _borders(value):
    value = records(Border)(value)
    return tuple(map(canonical, value)) if type(value) is tuple else value


class _WindowPlan(_Plan):
    """What plans of poolings over windows have in common."""

    # Fields besides `axes` and `given` that hold records: functions that rebuild them.
    _more_records = {"borders": _borders}

    def tile(self, outputs):
        """Return the part of this pooling that gives some of its outputs.

        Parameters
        ----------
        outputs : tuple of slice
            The outputs along each axis. Axes that are left out are taken whole.

        Returns
        -------
        tile : Tile
            A tuple of three: `plan`, the plan of the part; `read`, the slices of the input that it
            takes; `write`, the slices of the output that it gives. ``tile.plan(x[tile.read])``
            equals ``plan(x)[tile.write]``. Indices count in the whole of `x`.

        Raises
        ------
        TypeError, ValueError
            `outputs` holds something other than slices, too many of them, or a slice with a step.

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
        from ._planning import parts  # here, so that importing fastpool stays fast

        return parts.tile(self, outputs)

    def explain(self, *, verbose=False):
        """Describe in words what this pooling does, and how.

        Parameters
        ----------
        verbose : bool
            Add the lines "not by": why this machine takes no better strategy.

        Returns
        -------
        text : str
            The rules used and their result along each axis, windows that hang over the edge or are
            empty, what means are divided by, types, indices, and how this machine runs a call.

        Examples
        --------
        >>> import fastpool
        >>> plan = fastpool.plan_max_pool((6, 6), "uint8", 3, strides=2, layout="HW")
        >>> print(plan.explain())  # doctest: +ELLIPSIS
        MaxPoolPlan: uint8 HW (6, 6) -> (2, 2)
        ...
        """
        from ._showing import explain  # here, so that importing fastpool stays fast

        return explain.explain(self, verbose)

    def draw(self, *, axes=None, title=None, width=None):
        """Draw the windows over the input and its padding.

        The windows of each axis, with the numbers of their outputs, are drawn above and to the left
        of the grid. For averages they also show what a sum is divided by. Of long axes only the
        ends are drawn.

        Parameters
        ----------
        axes : str or sequence of str, optional
            One or two spatial axes by their names in `layout`, as in "HW". From four spatial axes
            on the names are "D1", "D2", ... All by default.
        title : str, optional
            Shapes and attributes by default. "" means no title.
        width : float, optional
            Width of the figure in inches. By default it depends on the geometry.

        Returns
        -------
        figure : matplotlib.figure.Figure
            ``figure.savefig("windows.svg")`` writes the same bytes every time.

        Raises
        ------
        ImportError
            matplotlib is not installed: ``pip install "fastpool[plot]"``.
        TypeError, ValueError
            `axes` names an unknown axis or more than two axes, or is None for a plan with more than
            two spatial axes.

        Examples
        --------
        >>> import fastpool
        >>> plan = fastpool.plan_max_pool((6, 6), "uint8", 3, strides=2, layout="HW")
        >>> plan.draw().savefig("windows.svg")  # doctest: +SKIP
        """
        from ._showing import draw  # needs matplotlib

        return draw.draw(self, axes, title, width)

    def _repr_html_(self):
        from ._showing import explain

        return explain.as_html(self)

    def _prepared_for(self, dtype):
        """Return what this process prepared for the plan; prepare it for `dtype` if there is none.

        `_keep` stores it.
        """
        prepared = getattr(self, "_prepared", None)
        if prepared is None or not prepared.fits(self):
            prepared = self._keep(self._prepare(dtype))
        return prepared

    def __setstate__(self, state):
        self._restore(state, axes=_axes, given=_given, **self._more_records)

    def _shown(self, name, dtype, usual):
        """Return a repr with the fields that differ from `usual`."""
        usual = {
            "strides": (1,) * len(self.axes),
            "pads": (0, 0) * len(self.axes),
            "dilations": (1,) * len(self.axes),
            **usual,
        }
        parts = [f"kernel_shape={self.kernel_shape}"]
        if isinstance(self.given, GivenSize):
            parts = [f"output_size={self.given.output_size}"]
            del usual["strides"]
        for field, value in usual.items():
            if getattr(self, field) != value:
                parts.append(f"{field}={getattr(self, field)!r}")
        return (
            f"<{name} {dtype} {self.layout} {self.input_shape} -> {self.output_shape}, "
            f"{', '.join(parts)}>"
        )


class _SelectingPlan(_WindowPlan):
    """What plans of maxima and minima have in common."""

    # For annotations: MaxPoolPlan[Literal[True]] is one with indices.
    __class_getitem__ = classmethod(GenericAlias)

    def __call__(self, x, out=None, out_indices=None):
        """Pool an array.

        Parameters
        ----------
        x : array_like
            Input of shape `input_shape` and type `dtype`.
        out : ndarray, optional
            Array for the values, of shape `output_shape` and type `dtype`. It is writeable and does
            not overlap `x` or `out_indices`.
        out_indices : ndarray, optional
            Array for the indices, of shape `output_shape` and type `index_dtype`.

        Returns
        -------
        y : ndarray
            The maxima or minima, or ``(y, indices)`` if `return_indices`.

        Raises
        ------
        TypeError, ValueError
            An array has another shape or type. Nothing has been written then.
        """
        results = self._run(x, out, out_indices)
        return execute.max_pool(self, x, out, out_indices) if results is None else results

    def __post_init__(self):
        self._check_class()
        super().__post_init__()

    def _check_class(self):
        check_class(self, MinPoolPlan if isinstance(self, MinPool) else MaxPoolPlan)

    def _run(self, x, out, out_indices):
        """Return the results if compiled code can use the arrays as they are, else None.

        `_keep` puts the compiled function in place of this one.
        """
        return None

    def _prepare(self, dtype):
        self._check_class()
        return PreparedPool(self, dtype)

    def __repr__(self):
        usual = {
            "nan": "propagate",
            "activation": None,
            "activation_params": (),
            "border": "ignore",
            "border_value": None,
            "return_indices": False,
            "storage_order": 0,
            "index_axis": 0,
            "index_dtype": "int64",
            "index_layout": "NCHW",
            "num_threads": None,
            "index_shape": self.input_shape,
            "index_origin": (0,) * len(self.input_shape),
        }
        return self._shown(type(self).__name__, self.dtype, usual)


class MaxPoolPlan(_SelectingPlan, MaxPool):
    """A max pooling of one geometry, ready to run on any array of its shape and type.

    Made by :func:`fastpool.plan_max_pool`. Plans are immutable, comparable, hashable and picklable;
    threads may share one.

    Attributes
    ----------
    input_shape, output_shape : tuple of int
    dtype : str
        Name of the element type, of input and output.
    layout : str
        Names of the axes. With more than three spatial axes it is "NCHW" or "NHWC".
    axes : tuple of Axis
        The spatial axes in order, each with its resolved size, output, kernel, stride, dilation and
        padding.
    batch, channels : int
        Extents of these axes; 1 if the layout lacks the axis.
    channels_last : bool
    nan, activation, activation_params, return_indices, storage_order, index_dtype, index_layout, \
num_threads
        The argument of :func:`fastpool.plan_max_pool`, or its default.
    index_axis : int
        Counted from the first axis.
    index_shape, index_origin : tuple of int
        Shape of the array that indices count in, and the position of the input's first element in
        it. They are `input_shape` and zeros, unless the plan is that of a tile.
    given : Given or None
        `pads`, `auto_pad`, `ceil_mode` and `ceil_rule` as given, for explanations only. Equality
        ignores them. None for a tile.
    borders : tuple of Border
        What stands in the padding of each spatial axis; () if nothing does. `border` and
        `border_value` say it as the arguments do.

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


class MinPoolPlan(_SelectingPlan, MinPool):
    """A min pooling of one geometry, ready to run on any array of its shape and type.

    Made by :func:`fastpool.plan_min_pool` and the plan functions of global and adaptive pooling.
    Its attributes are those of :class:`MaxPoolPlan`.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> plan = fastpool.plan_min_pool((2, 4), "int32", 2, strides=2, layout="HW")
    >>> plan
    <MinPoolPlan int32 HW (2, 4) -> (1, 2), kernel_shape=(2, 2), strides=(2, 2)>
    >>> plan(np.array([[1, 5, 2, 2], [3, 4, 0, 7]], dtype=np.int32))
    array([[1, 0]], dtype=int32)
    """


class AvgPoolPlan(_WindowPlan, AvgPool):
    """An average pooling of one geometry, ready to run on any array of its shape and type.

    Made by :func:`fastpool.plan_avg_pool` and the plan functions of global and adaptive pooling.
    Plans are immutable, comparable, hashable and picklable; threads may share one.

    Attributes
    ----------
    input_shape, output_shape : tuple of int
    dtype, result_dtype : str
        Names of the element types of input and output.
    layout : str
        Names of the axes. With more than three spatial axes it is "NCHW" or "NHWC".
    axes : tuple of Axis or AdaptiveAxis
        The spatial axes in order, each with its resolved size, output, kernel, stride, dilation and
        padding. If windows of an adaptive pooling differ in length, their axis is an AdaptiveAxis.
    batch, channels : int
        Extents of these axes; 1 if the layout lacks the axis.
    channels_last : bool
    count_include_pad, beyond, divisor, rounding, numerics, nan, activation, activation_params, \
num_threads
        The argument of :func:`fastpool.plan_avg_pool`, or its default.
    counted : tuple of (int, int) or None
        Along each spatial axis the places that count for the divisor: (first, stop), where 0 is the
        first element. None if all places count.
    given : Given, GivenSize or None
        `pads`, `auto_pad`, `ceil_mode` and `ceil_rule` as given, or the `output_size` of an
        adaptive pooling, for explanations only. Equality ignores them. None for a tile.
    borders : tuple of Border
        As of :class:`MaxPoolPlan`. Zeros are no border: then `count_include_pad` is True.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> plan = fastpool.plan_avg_pool((2, 4), "float32", 2, strides=2, layout="HW")
    >>> plan
    <AvgPoolPlan float32 HW (2, 4) -> (1, 2), kernel_shape=(2, 2), strides=(2, 2)>
    >>> plan(np.array([[1, 5, 2, 2], [3, 4, 0, 7]], dtype=np.float32))
    array([[3.25, 2.75]], dtype=float32)
    """

    def __call__(self, x, out=None):
        """Pool an array.

        Parameters
        ----------
        x : array_like
            Input of shape `input_shape` and type `dtype`.
        out : ndarray, optional
            Array for the means, of shape `output_shape` and type `result_dtype`. It is writeable
            and does not overlap `x`.

        Returns
        -------
        y : ndarray
            The means.

        Raises
        ------
        TypeError, ValueError
            An array has another shape or type. Nothing has been written then.
        """
        y = self._run(x, out)
        return execute.avg_pool(self, x, out) if y is None else y

    def __post_init__(self):
        check_class(self, AvgPoolPlan)
        super().__post_init__()

    def _run(self, x, out):
        """Return the result if compiled code can use the arrays as they are, else None."""
        return None

    def _prepare(self, dtype):
        check_class(self, AvgPoolPlan)
        return PreparedAverage(self, dtype)

    def __repr__(self):
        usual = {
            "result_dtype": self.dtype,
            "border": "ignore",
            "border_value": None,
            "count_include_pad": False,
            "beyond": "drop",
            "divisor": None,
            "rounding": "half_even",
            "numerics": "pairwise",
            "nan": "propagate",
            "activation": None,
            "activation_params": (),
            "num_threads": None,
        }
        return self._shown("AvgPoolPlan", self.dtype, usual)


class LpPoolPlan(_WindowPlan, LpPool):
    """An Lp pooling of one geometry, ready to run on any array of its shape and type.

    Made by :func:`fastpool.plan_lp_pool` and :func:`fastpool.plan_global_lp_pool`. Plans are
    immutable, comparable, hashable and picklable; threads may share one.

    Attributes
    ----------
    input_shape, output_shape, dtype, layout, axes, batch, channels, channels_last, given
        As of :class:`AvgPoolPlan`. Elements and results have one type.
    p, partial, nan, num_threads
        The argument of :func:`fastpool.plan_lp_pool`, or its default.
    counted : tuple of (int, int) or None
        If `partial` is "scale", the places of elements and padding along each axis: (first, stop).

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> plan = fastpool.plan_lp_pool((2, 4), "float32", 2, strides=2, layout="HW")
    >>> plan
    <LpPoolPlan float32 HW (2, 4) -> (1, 2), kernel_shape=(2, 2), strides=(2, 2), p=2.0>
    >>> plan(np.array([[1, 5, 2, 0], [3, 1, 1, 2]], dtype=np.float32))
    array([[6., 3.]], dtype=float32)
    """

    _most_parts = MOST_PART_PLANS
    _more_records = {}

    def __call__(self, x, out=None):
        """Return the norms of an array of shape `input_shape` and type `dtype`.

        They are written into `out`, if it is given: an array of shape `output_shape` and this type
        that does not overlap `x`. If an array has another shape or type, raise TypeError or
        ValueError with nothing written.
        """
        from ._running import lp  # here, so that importing fastpool stays fast

        return lp.lp_pool(self, x, out)

    def __post_init__(self):
        check_class(self, LpPoolPlan)
        super().__post_init__()

    def _prepare(self, dtype):
        check_class(self, LpPoolPlan)
        from ._running import lp

        return lp.PreparedNorm(self, dtype)

    def __repr__(self):
        usual = {"p": None, "partial": "sum", "nan": "propagate", "num_threads": None}
        return self._shown("LpPoolPlan", self.dtype, usual)


class UnpoolPlan(_Plan, MaxUnpool):
    """A max unpooling of one geometry, ready to run on any arrays of its shape.

    Made by :func:`fastpool.plan_max_unpool`. Plans are immutable, comparable, hashable and
    picklable; threads may share one.

    Attributes
    ----------
    x_shape, output_shape : tuple of int
        Shape of the values and of their indices, and of the result.
    layout : str
        Names of the axes. With more than three spatial axes it is "NCHW" or "NHWC".
    batch, channels : int
        Extents of these axes; 1 if the layout lacks the axis.
    channels_last : bool
    spatial : tuple of int
        Positions of the spatial axes in the array.
    windows : tuple of (int, int, int)
        Kernel, stride and padding at the beginning along each spatial axis. No element depends on
        them.
    sizes, inferred, output : tuple of int
        Extents along the spatial axes: of the values, as inferred from the window, of the result.
    index_space, index_axis, index_layout, num_threads
        The argument of :func:`fastpool.plan_max_unpool`, or its default. `index_axis` is counted
        from the first axis.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool
    >>> plan = fastpool.plan_max_unpool((1, 2), 2, strides=2, layout="HW")
    >>> plan.output_shape
    (2, 4)
    >>> plan(np.array([[6, 8]]), np.array([[5, 6]]))
    array([[0, 0, 0, 0],
           [0, 6, 8, 0]])
    """

    def __call__(self, x, indices, out=None):
        """Place values at their indices; every other element is 0.

        Parameters
        ----------
        x : array_like
            Values of shape `x_shape` and any supported type.
        indices : array_like
            Positions of the values, int64 or int32, of shape `x_shape`.
        out : ndarray, optional
            Array for the result, of shape `output_shape` and the type of `x`. It is writeable and
            does not overlap `x` or `indices`.

        Returns
        -------
        y : ndarray
            The values in their places.

        Raises
        ------
        TypeError, ValueError
            An array has another shape or type, or an index is negative or not below the number of
            elements that it counts in. Nothing has been written then.
        """
        y = self._run(x, indices, out)
        return unpool.max_unpool(self, x, indices, out) if y is None else y

    def __post_init__(self):
        check_class(self, UnpoolPlan)
        super().__post_init__()

    def _run(self, x, indices, out):
        """Return the result if compiled code can use the arrays as they are, else None."""
        return None

    def _prepared_for(self, name, dtype):
        """Return what this process prepared for `dtype`; prepare it if there is none."""
        prepared = getattr(self, "_prepared", None)
        if prepared is None or not prepared.fits(self) or prepared.dtype != dtype:
            check_class(self, UnpoolPlan)
            prepared = self._keep(PreparedUnpool(self, name, dtype))
        return prepared

    def __setstate__(self, state):
        self._restore(state)


# Pickles use these names, so they survive a move of the classes.
for _class in (MaxPoolPlan, MinPoolPlan, AvgPoolPlan, LpPoolPlan, UnpoolPlan):
    _class.__module__ = "fastpool"


def make_plan(*arguments, **attributes):
    """Return the `MaxPoolPlan` for attributes as the public functions take them."""
    return resolved(MaxPoolPlan, max_pool.resolve(*arguments, **attributes))


def make_adaptive_max_plan(*arguments):
    return resolved(MaxPoolPlan, max_pool.resolve_adaptive(*arguments))


def make_global_max_plan(*arguments):
    return resolved(MaxPoolPlan, max_pool.resolve_global(*arguments))


def make_min_plan(*arguments, **attributes):
    """Return the `MinPoolPlan` for attributes as the public functions take them."""
    return resolved(MinPoolPlan, max_pool.resolve(*arguments, **attributes))


def make_adaptive_min_plan(*arguments):
    return resolved(MinPoolPlan, max_pool.resolve_adaptive(*arguments))


def make_global_min_plan(*arguments):
    return resolved(MinPoolPlan, max_pool.resolve_global(*arguments))


def make_avg_plan(*arguments, **attributes):
    """Return the `AvgPoolPlan` for attributes as the public functions take them."""
    return resolved(AvgPoolPlan, average_pool.resolve(*arguments, **attributes))


def make_adaptive_avg_plan(*arguments):
    return resolved(AvgPoolPlan, average_pool.resolve_adaptive(*arguments))


def make_global_avg_plan(*arguments):
    return resolved(AvgPoolPlan, average_pool.resolve_global(*arguments))


def make_lp_plan(*arguments, **attributes):
    """Return the `LpPoolPlan` for attributes as the public functions take them."""
    return resolved(LpPoolPlan, lp_pool.resolve(*arguments, **attributes))


def make_global_lp_plan(*arguments):
    return resolved(LpPoolPlan, lp_pool.resolve_global(*arguments))


def make_unpool_plan(*arguments, **attributes):
    """Return the `UnpoolPlan` for attributes as the public functions take them."""
    return resolved(UnpoolPlan, max_unpool.resolve(*arguments, **attributes))
