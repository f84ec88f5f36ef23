"""Poolings of codes and other small integers, by NumPy: oracles that are faster than the slow twin.

Codes are small integers. A table turns them into values of any type. Tables never decrease, so the
maximum of the codes is the code of the maximum. Code -1 means a window without elements; its value
is the table's last entry.
"""

import functools

import numpy as np

import cases
from fastpool._running import builds as running

CODES = 60
EVERY = ("uint8", "float16", "float32", "int64")  # types that are pooled in every geometry
PLANES = [(1, 1), (1, 2), (3, 1), (5, 13), (10, 13)]


def lanes(isa, name, least_bytes=1):
    """Return the elements of a vector, or of two vectors if one has only two.

    Elements of fewer bytes count as `least_bytes`: kernels with indices widen them.
    """
    size = max(least_bytes, cases.dtype(name).itemsize)
    return max(4, running.builds()[isa].VECTOR_BYTES // size)


def with_planes(windows, most):
    """Yield the windows with a number of images and channels, for at most `most` elements."""
    for i, (sizes, *window) in enumerate(windows):
        fits = [planes for planes in PLANES if np.prod(planes + sizes) < most] or PLANES[:1]
        yield fits[-1 - i % len(fits)] + sizes, *window


def geometry(rows, cols, lead=None):
    """Sizes, kernel and attributes of one window per axis."""
    axes = [rows, cols]
    if lead:
        axes.insert(0, (*lead[:2], (lead[2], lead[2]), 1, 1))
    sizes, kernel, pads, dilations, strides = zip(*axes, strict=True)
    begins, ends = zip(*pads, strict=True)
    return sizes, kernel, {"pads": begins + ends, "dilations": dilations, "strides": strides}


@functools.cache
def tables(name):
    """Values in the order of their codes: any, few, the lowest alone; with NaN as either end."""
    special = cases.values((40,), name, "special", 0)
    numbers = np.concatenate([special, cases.values((400,), name, "bits", 0)])
    low = np.array([cases.lowest(name)], numbers.dtype)
    with np.errstate(invalid="ignore"):  # signalling NaN
        numbers = np.sort(numbers[numbers == numbers])
    numbers = numbers[np.linspace(0, len(numbers) - 1, CODES).astype(int)]
    numbers[0] = low[0]
    few = numbers[np.arange(CODES) * 3 // CODES * (CODES // 3)]
    found = [(values, "propagate") for values in (numbers, few, np.repeat(low, CODES))]
    if name in cases.FLOAT_NAMES:
        nans = np.full(2, np.nan, numbers.dtype)
        found.append((np.concatenate([numbers[:-2], nans]), "propagate"))
        found.append((np.concatenate([nans[:1], numbers[:-1]]), "ignore"))
        found.append(
            (np.concatenate([nans, numbers[[0, -1]].repeat(CODES // 2)])[:CODES], "ignore")
        )
    return [(np.concatenate([values, low]), nan) for values, nan in found]


def oracle(codes, kernel, strides=1, pads=0, dilations=1):
    """The greatest code of every window, -1 without elements."""
    rank = len(kernel)
    strides, dilations = (np.broadcast_to(given, rank) for given in (strides, dilations))
    ends = np.broadcast_to(pads, 2 * rank) if np.size(pads) != rank else np.tile(pads, 2)
    ends = [(0, 0), (0, 0), *zip(ends[:rank], ends[rank:], strict=True)]
    codes = np.pad(codes, ends, constant_values=-1)
    for axis, taps in enumerate(kernel):
        codes, covered = np.moveaxis(codes, axis + 2, -1), 1
        while covered < taps:
            step = min(covered, taps - covered)
            covered, step = covered + step, step * dilations[axis]
            codes = np.maximum(codes[..., :-step], codes[..., step:])
        codes = np.moveaxis(codes[..., :: strides[axis]], -1, axis + 2)
    return codes


def sums(x, kernel, strides=1, pads=0, dilations=1):
    """Return the exact sums of windows over the last axes of small integers."""
    rank = len(kernel)
    strides, dilations = (np.broadcast_to(given, rank) for given in (strides, dilations))
    begins, ends = np.broadcast_to(pads, 2 * rank).reshape(2, rank)
    x = np.asarray(x, np.int64)
    for axis, taps in enumerate(kernel, x.ndim - rank):
        i = axis - x.ndim
        step, around = dilations[i], (begins[i], ends[i])
        x = np.pad(np.moveaxis(x, axis, -1), [*[(0, 0)] * (x.ndim - 1), around])
        outputs = x.shape[-1] - (taps - 1) * step
        if step == 1:
            x = np.cumsum(np.pad(x, [*[(0, 0)] * (x.ndim - 1), (1, 0)]), -1)
            x = x[..., taps:] - x[..., :outputs]
        else:
            x = sum(x[..., tap * step :][..., :outputs] for tap in range(taps))
        x = np.moveaxis(x[..., :: strides[i]], -1, axis)
    return x


def means(x, kernel, **attributes):
    """Return the means of the elements in windows, in the type of x, halves to even."""
    total = sums(x, kernel, **attributes)
    count = np.maximum(sums(np.ones_like(x), kernel, **attributes), 1)
    floor, rest = np.divmod(total, count)
    return (floor + ((2 * rest > count) | ((2 * rest == count) & (floor % 2 == 1)))).astype(x.dtype)


def random_codes(shape, seed):
    return np.random.default_rng(seed).integers(0, CODES, shape).astype(np.int8)


# Arrays as parts of larger ones: (elements that the larger one has more along each axis, None for
# twice as many; where in it the array is).
EMBEDDED = {
    "alone": ((0, 0, 0, 0), np.s_[:]),
    "some channels": ((0, 3, 0, 0), np.s_[:, 1:-2]),
    "every other channel": ((0, None, 0, 0), np.s_[:, ::2]),
    "every other image": ((None, 0, 0, 0), np.s_[::2]),
    "channels backwards": ((0, 0, 0, 0), np.s_[:, ::-1]),
    "images backwards": ((2, 0, 0, 0), np.s_[-2:0:-1]),
    "inner rows": ((0, 0, 3, 0), np.s_[..., 1:-2, :]),
    "inner columns": ((0, 0, 0, 3), np.s_[..., 2:-1]),
    "every other row": ((0, 0, None, 0), np.s_[..., ::2, :]),
    "inside": ((1, 2, 3, 1), np.s_[1:, 1:-1, 2:-1, :-1]),
}


def embedded(how, shape, dtype, fill):
    """(array, owner) of that shape; all that the owner has is `fill`."""
    more, place = EMBEDDED[how]
    larger = [
        2 * size if extra is None else size + extra for size, extra in zip(shape, more, strict=True)
    ]
    owner = np.full(larger, fill, dtype)
    return owner[place], owner
