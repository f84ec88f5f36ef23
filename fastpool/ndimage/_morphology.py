"""Grey morphology of SciPy with flat boxes: erosion, dilation, and what is made of these."""

import numpy as np

from ._windows import box, checked_input, result_dtype, run, target, window_of


def grey_erosion(
    input,
    size=None,
    footprint=None,
    structure=None,
    output=None,
    mode="reflect",
    cval=0.0,
    origin=0,
    *,
    axes=None,
):
    """Erode by a box: take the minimum of the box around every element.

    Parameters
    ----------
    input, size, footprint, output, mode, cval, origin, axes
        As in :func:`maximum_filter`.
    structure : array_like, optional
        Zeros in the shape of the box, in place of `size`. Another structure is a
        NotImplementedError: ``scipy.ndimage.grey_erosion`` takes it.

    Returns
    -------
    y : ndarray
        The minima, in the shape of `input`. NaN propagates.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.ndimage as ndi
    >>> ndi.grey_erosion(np.array([1, 9, 2, 3, 7, 5]), 3)
    array([1, 1, 2, 2, 3, 5])
    """
    x, window, into = _prepared(input, size, footprint, structure, output, mode, origin, axes)
    return run("min", x, window, cval, into)


def grey_dilation(
    input,
    size=None,
    footprint=None,
    structure=None,
    output=None,
    mode="reflect",
    cval=0.0,
    origin=0,
    *,
    axes=None,
):
    """Dilate by a box: take the maximum of the box around every element, turned around.

    Parameters
    ----------
    input, size, footprint, structure, output, mode, cval, origin, axes
        As in :func:`grey_erosion`.

    Returns
    -------
    y : ndarray
        The maxima, in the shape of `input`. The box of element i begins at i - ((size - 1) // 2 -
        origin).

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.ndimage as ndi
    >>> ndi.grey_dilation(np.array([1, 9, 2, 3, 7, 5]), 2)
    array([9, 9, 3, 7, 7, 5])
    """
    x, window, into = _prepared(input, size, footprint, structure, output, mode, origin, axes)
    return run("max", x, window.turned(), cval, into)


def grey_opening(
    input,
    size=None,
    footprint=None,
    structure=None,
    output=None,
    mode="reflect",
    cval=0.0,
    origin=0,
    *,
    axes=None,
):
    """Open by a box: dilate what was eroded.

    Parameters
    ----------
    input, size, footprint, structure, output, mode, cval, origin, axes
        As in :func:`grey_erosion`.

    Returns
    -------
    y : ndarray
        The opening, in the shape of `input`.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.ndimage as ndi
    >>> ndi.grey_opening(np.array([1, 9, 2, 7, 7, 7, 5]), 3)
    array([1, 2, 2, 7, 7, 7, 5])
    """
    x, window, into = _prepared(input, size, footprint, structure, output, mode, origin, axes)
    return _opening(x, window, cval, into)


def grey_closing(
    input,
    size=None,
    footprint=None,
    structure=None,
    output=None,
    mode="reflect",
    cval=0.0,
    origin=0,
    *,
    axes=None,
):
    """Close by a box: erode what was dilated.

    Parameters
    ----------
    input, size, footprint, structure, output, mode, cval, origin, axes
        As in :func:`grey_erosion`.

    Returns
    -------
    y : ndarray
        The closing, in the shape of `input`.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.ndimage as ndi
    >>> ndi.grey_closing(np.array([1, 9, 2, 7, 7, 7, 5]), 3)
    array([9, 9, 7, 7, 7, 7, 7])
    """
    x, window, into = _prepared(input, size, footprint, structure, output, mode, origin, axes)
    return _closing(x, window, cval, into)


def white_tophat(
    input,
    size=None,
    footprint=None,
    structure=None,
    output=None,
    mode="reflect",
    cval=0.0,
    origin=0,
    *,
    axes=None,
):
    """Subtract the opening from the array.

    Parameters
    ----------
    input, size, footprint, structure, output, mode, cval, origin, axes
        As in :func:`grey_erosion`.

    Returns
    -------
    y : ndarray
        The differences, in the type of `output`, modulo its range. For bool: exclusive or.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.ndimage as ndi
    >>> ndi.white_tophat(np.array([1, 9, 2, 7, 7, 7, 5]), 3)
    array([0, 7, 0, 0, 0, 0, 0])
    """
    x, window, into = _prepared(input, size, footprint, structure, output, mode, origin, axes)
    return _difference(x, _opening(x, window, cval), into)


def black_tophat(
    input,
    size=None,
    footprint=None,
    structure=None,
    output=None,
    mode="reflect",
    cval=0.0,
    origin=0,
    *,
    axes=None,
):
    """Subtract the array from its closing.

    Parameters
    ----------
    input, size, footprint, structure, output, mode, cval, origin, axes
        As in :func:`grey_erosion`.

    Returns
    -------
    y : ndarray
        The differences, in the type of `output`, modulo its range. For bool: exclusive or.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.ndimage as ndi
    >>> ndi.black_tophat(np.array([5, 5, 1, 5, 8]), 3)
    array([0, 0, 4, 0, 0])
    """
    x, window, into = _prepared(input, size, footprint, structure, output, mode, origin, axes)
    return _difference(_closing(x, window, cval), x, into)


def morphological_gradient(
    input,
    size=None,
    footprint=None,
    structure=None,
    output=None,
    mode="reflect",
    cval=0.0,
    origin=0,
    *,
    axes=None,
):
    """Subtract the erosion from the dilation.

    Parameters
    ----------
    input, size, footprint, structure, output, mode, cval, origin, axes
        As in :func:`grey_erosion`.

    Returns
    -------
    y : ndarray
        The differences, in the type of `output`, modulo its range. For signed integers a wider
        `output` holds all of them. For bool: exclusive or.

    Examples
    --------
    >>> import numpy as np
    >>> import fastpool.ndimage as ndi
    >>> ndi.morphological_gradient(np.array([1, 1, 1, 9, 9, 9]), 3)
    array([0, 0, 8, 8, 0, 0])
    """
    x, window, into = _prepared(input, size, footprint, structure, output, mode, origin, axes)
    dilated = run("max", x, window.turned(), cval)
    return _difference(dilated, run("min", x, window, cval), into)


def _prepared(input, size, footprint, structure, output, mode, origin, axes):
    """Return the array, the window of an erosion, and the array to write results into."""
    x = checked_input(input)
    size = box(size, footprint, structure, axes, x.ndim)
    window = window_of(x, size, origin, mode, axes)
    return x, window, target(x, output, result_dtype(x, output))


def _opening(x, window, cval, into=None):
    return run("max", run("min", x, window, cval), window.turned(), cval, into)


def _closing(x, window, cval, into=None):
    return run("min", run("max", x, window.turned(), cval), window, cval, into)


def _difference(one, other, into):
    """Write a difference into an array, in the arithmetic of its type."""
    if into.dtype == bool:
        return np.logical_xor(one, other, out=into)
    dtype = into.dtype.newbyteorder("=")
    return np.subtract(one, other, out=into, dtype=dtype, casting="unsafe")
