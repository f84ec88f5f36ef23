"""Grey morphology of SciPy with flat boxes: erosion, dilation, and what is made of these."""

import functools

import numpy as np

from ._windows import box, checked_input, result_dtype, run, step, target, window_of

# Bytes of a strip: what is between two filters stays in the second-level cache. A strip has at
# least this many times the rows of a window, because neighbouring strips filter shared rows twice.
STRIP_BYTES = 1 << 20
ROWS_PER_WINDOW = 4


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
    return run("min", x, into, window, cval)


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
    return run("max", x, into, window.turned(), cval)


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
    return _chain(("min", "max"), x, window, cval, into)


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
    return _chain(("max", "min"), x, window, cval, into)


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
    return _difference((), ("min", "max"), x, window, cval, into)


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
    return _difference(("max", "min"), (), x, window, cval, into)


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
    return _difference(("max",), ("min",), x, window, cval, into)


def _prepared(input, size, footprint, structure, output, mode, origin, axes):
    """Return the array, the window of an erosion, and the array to write results into."""
    x = checked_input(input)
    size = box(size, footprint, structure, axes, x.ndim)
    window = window_of(x, size, origin, mode, axes)
    return x, window, target(x, output, result_dtype(x, output))


def _strips(x, window, into):
    """Return the first row of each part that is filtered at once, and the one after its last."""
    count = len(x) // max(1, STRIP_BYTES // max(1, x[:1].nbytes), ROWS_PER_WINDOW * window.sizes[0])
    if count == 0 or window.borders[0] == "wrap" or np.may_share_memory(x, into):
        count = 1
    bounds = [len(x) * i // count for i in range(count + 1)]
    return list(zip(bounds, bounds[1:], strict=False))


def _room(x, window, strips):
    """Return an array for what a filter makes of any of these strips, and of the rows around it."""
    rows = min(len(x), max(stop - first for first, stop in strips) + window.sizes[0])
    return np.empty((rows, *x.shape[1:]), np.dtype(x.dtype.type))


def _steps(kinds, x, y, window, cval, first, stop, room):
    """Return the steps that filter by `kinds`, one after the other, into some rows."""
    *before, kind = kinds
    of_rows = window.turned() if kind == "max" else window
    (low, high), of_rows = of_rows.rows(first, stop, len(x))
    source, steps = x[low:high], []
    if before:
        source = room[: high - low]
        steps = _steps(before, x, source, window, cval, low, high, None)
    return [*steps, step(kind, source, y, of_rows, cval)]


def _chain(kinds, x, window, cval, into):
    """Filter by `kinds`, one after the other."""
    strips = _strips(x, window, into)
    room, steps = _room(x, window, strips), []
    for first, stop in strips:
        steps += _steps(kinds, x, into[first:stop], window, cval, first, stop, room)
    return _run(steps, into)


def _difference(one, other, x, window, cval, into):
    """Write the difference of two chains, of which () is the array, in the arithmetic of `into`."""
    strips = _strips(x, window, into)
    room, *rooms = (_room(x, window, strips) for _ in range(3))
    dtype = into.dtype.newbyteorder("=")
    subtract = functools.partial(np.subtract, dtype=dtype, casting="unsafe")
    if dtype.kind == "b":
        subtract = np.logical_xor
    steps = []
    for first, stop in strips:
        arrays = []
        for kinds, place in zip((one, other), rooms, strict=True):
            arrays.append(place[: stop - first] if kinds else x[first:stop])
            if kinds:
                steps += _steps(kinds, x, arrays[-1], window, cval, first, stop, room)
        steps.append((subtract, *arrays, into[first:stop]))
    return _run(steps, into)


def _run(steps, into):
    """Run steps that are ready: between filters, which empty the caches, Python is slow."""
    for function, *arrays in steps:
        function(*arrays)
    return into
