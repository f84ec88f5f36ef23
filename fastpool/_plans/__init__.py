"""The plans that users hold: data that can be called, cut into tiles, explained and drawn."""

from types import GenericAlias

from .._planning import average_pool, lp_pool, max_pool, max_unpool
from .._planning.average_pool import AvgPool
from .._planning.lp_pool import LpPool
from .._planning.max_pool import MaxPool, MinPool
from .._planning.max_unpool import MaxUnpool
from .._planning.plan_checks import check_class, resolved
from .._running import execute, unpool
from .._running.plan_cache import MOST_PART_PLANS
from .._running.prepare import PreparedAverage, PreparedPool, PreparedUnpool
from .base import _Plan, _WindowPlan


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
        The values of the padding of each spatial axis; () if there are none. `border` and
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
        from .._running import lp  # here, so that importing fastpool stays fast

        return lp.lp_pool(self, x, out)

    def __post_init__(self):
        check_class(self, LpPoolPlan)
        super().__post_init__()

    def _prepare(self, dtype):
        check_class(self, LpPoolPlan)
        from .._running import lp

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


def make_adaptive_avg_plan(*arguments, **name):
    return resolved(AvgPoolPlan, average_pool.resolve_adaptive(*arguments, **name))


def make_global_avg_plan(*arguments, **name):
    return resolved(AvgPoolPlan, average_pool.resolve_global(*arguments, **name))


def make_lp_plan(*arguments, **attributes):
    """Return the `LpPoolPlan` for attributes as the public functions take them."""
    return resolved(LpPoolPlan, lp_pool.resolve(*arguments, **attributes))


def make_global_lp_plan(*arguments):
    return resolved(LpPoolPlan, lp_pool.resolve_global(*arguments))


def make_unpool_plan(*arguments, **attributes):
    """Return the `UnpoolPlan` for attributes as the public functions take them."""
    return resolved(UnpoolPlan, max_unpool.resolve(*arguments, **attributes))
