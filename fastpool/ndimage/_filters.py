"""Filters of SciPy over boxes: maxima, minima and means, in any number of axes."""

import numpy as np

from .._planning import arguments
from ._windows import axis_of, box, checked_input, result_dtype, run, target, window_of


def maximum_filter(
    input,
    size=None,
    footprint=None,
    output=None,
    mode="reflect",
    cval=0.0,
    origin=0,
    *,
    axes=None,
):
    """Take the maximum of a box around every element.

    Parameters
    ----------
    input : array_like
        Array of any type that :func:`fastpool.max_pool` takes, of at least one axis.
    size : int or sequence of int
        Taps of the box along all `axes`, or along each. The box of element i begins at i - (size //
        2 + origin).
    footprint : array_like, optional
        Ones in the shape of the box, in place of `size`.
    output : dtype_like or ndarray, optional
        Type of the result, which holds that of `input`; or an array for the result, which may be
        `input`. It is returned.
    mode : str or sequence of str
        What stands outside, for all `axes` or for each: "reflect" or "grid-mirror", "mirror",
        "nearest", "wrap" or "grid-wrap", "constant" or "grid-constant", as `border` of
        :func:`fastpool.max_pool`.
    cval : number
        The constant of "constant". The type of `input` holds it, or if it is a float, rounds it.
    origin : int or sequence of int
        How far the box moves towards lower positions.
    axes : int or sequence of int, optional
        The axes that are filtered, by default all.

    Returns
    -------
    y : ndarray
        The maxima, in the shape of `input`. NaN propagates.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong kind, or has a wrong value.
    NotImplementedError
        `footprint` is no box. ``scipy.ndimage.maximum_filter`` takes it.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.ndimage as ndi
    >>> ndi.maximum_filter(np.array([1, 9, 2, 3, 0, 1]), 3)
    array([9, 9, 9, 3, 3, 1])
    """
    return _filtered("max", input, size, footprint, output, mode, cval, origin, axes)


def minimum_filter(
    input,
    size=None,
    footprint=None,
    output=None,
    mode="reflect",
    cval=0.0,
    origin=0,
    *,
    axes=None,
):
    """Take the minimum of a box around every element.

    Parameters
    ----------
    input, size, footprint, output, mode, cval, origin, axes
        As in :func:`maximum_filter`.

    Returns
    -------
    y : ndarray
        The minima, in the shape of `input`. NaN propagates.

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        As :func:`maximum_filter`.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.ndimage as ndi
    >>> ndi.minimum_filter(np.array([[5, 8, 7], [6, 9, 4]]), (1, 2), mode="constant", cval=6)
    array([[5, 5, 7],
           [6, 6, 4]])
    """
    return _filtered("min", input, size, footprint, output, mode, cval, origin, axes)


def maximum_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """Take the maximum of a window around every element, along one axis.

    Parameters
    ----------
    input, size, output, mode, cval, origin
        As in :func:`maximum_filter`, one value each.
    axis : int
        The axis.

    Returns
    -------
    y : ndarray
        The maxima, in the shape of `input`.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.ndimage as ndi
    >>> ndi.maximum_filter1d(np.array([[1, 4], [3, 2], [0, 0]]), 2, axis=0, mode="wrap")
    array([[1, 4],
           [3, 4],
           [3, 2]])
    """
    axis = _axis(input, axis)
    return _filtered("max", input, size, None, output, mode, cval, origin, axis)


def minimum_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """Take the minimum of a window around every element, along one axis.

    Parameters
    ----------
    input, size, axis, output, mode, cval, origin
        As in :func:`maximum_filter1d`.

    Returns
    -------
    y : ndarray
        The minima, in the shape of `input`.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.ndimage as ndi
    >>> ndi.minimum_filter1d(np.array([4, 1, 3, 5, 6]), 3, origin=1)
    array([1, 1, 1, 1, 3])
    """
    axis = _axis(input, axis)
    return _filtered("min", input, size, None, output, mode, cval, origin, axis)


def uniform_filter(
    input,
    size=3,
    output=None,
    mode="reflect",
    cval=0.0,
    origin=0,
    *,
    axes=None,
    numerics="pairwise",
):
    """Take the mean of a box around every element.

    Parameters
    ----------
    input, size, mode, cval, origin, axes
        As in :func:`maximum_filter`.
    output : dtype_like or ndarray, optional
        Type of the result, as `dtype` of :func:`fastpool.avg_pool`, or an array for the result,
        which may be `input`. It is returned.
    numerics : {"pairwise", "exact", "sequential"}
        How floats are added, as in :func:`fastpool.avg_pool`. Every window is added for itself, so
        that infinities and NaN do not leave their windows.

    Returns
    -------
    y : ndarray
        The means, in the shape of `input`. Integers are rounded once, toward zero.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong kind, or has a wrong value.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.ndimage as ndi
    >>> ndi.uniform_filter(np.array([2.0, 8.0, 0.0, 4.0]), 3)
    array([4.        , 3.33333333, 4.        , 2.66666667])
    >>> ndi.uniform_filter(np.array([2, 8, 0, 4]), 3, mode="mirror")
    array([6, 3, 4, 1])
    """
    x = checked_input(input)
    window = window_of(x, size, origin, mode, axes)
    numerics = arguments.numerics(numerics)
    name = arguments.dtype_name(x.dtype)
    is_array = isinstance(output, np.ndarray)
    wanted = arguments.result_dtype(output.dtype if is_array else output, name, "output")
    dtype = np.dtype(x.dtype.type) if wanted == name else np.dtype(wanted)
    rounding = "half_even" if dtype.kind not in "iub" else "trunc"
    return run("mean", x, target(x, output, dtype), window, cval, wanted, rounding, numerics)


def uniform_filter1d(
    input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0, *, numerics="pairwise"
):
    """Take the mean of a window around every element, along one axis.

    Parameters
    ----------
    input, size, output, mode, cval, origin, numerics
        As in :func:`uniform_filter`, one value each.
    axis : int
        The axis.

    Returns
    -------
    y : ndarray
        The means, in the shape of `input`.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.ndimage as ndi
    >>> ndi.uniform_filter1d(np.array([2, 8, 0, 4, 1, 9, 9, 0]), 3)
    array([4, 3, 4, 1, 4, 6, 6, 3])
    """
    axes = _axis(input, axis)
    more = {"axes": axes, "numerics": numerics}
    return uniform_filter(input, size, output, mode, cval, origin, **more)


def _axis(input, axis):
    return axis_of(axis, checked_input(input).ndim)


def _filtered(kind, input, size, footprint, output, mode, cval, origin, axes):
    x = checked_input(input)
    size = box(size, footprint, None, axes, x.ndim)
    window = window_of(x, size, origin, mode, axes)
    return run(kind, x, target(x, output, result_dtype(x, output)), window, cval)
