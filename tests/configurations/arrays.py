"""Random arrangements of arrays in memory, and checks of each call: results, memory, time."""

import math
from dataclasses import dataclass

import numpy as np

import cases
import limits

FILL = 1  # every byte next to an output; also a legal bool
FENCE = 1 << 14  # bytes before and after a fenced array

# Processor time of a call. Most take less than a millisecond, on a busy machine up to 0.1 s. The
# rest is for slow machines and for builds with sanitizers.
SECONDS = 0.5
SECONDS_PER_ELEMENT = 1e-6


@dataclass(frozen=True)
class Arrangement:
    """Where an array is in a larger one, and in which order its elements are there."""

    order: tuple  # its axes, from the slowest in memory to the fastest
    steps: tuple  # elements from one to the next, along each axis; negative is backwards
    before: tuple  # elements of the larger one before it, along each axis
    after: tuple
    offset: int  # bytes before the first element: not aligned
    swapped: bool  # the other byte order
    read_only: bool

    def empty(self, shape, dtype):
        """Return (an array to fill, the bytes of the larger array that holds it)."""
        dtype = np.dtype(dtype)
        if self.swapped and dtype.name != "bfloat16":  # which cannot be swapped
            dtype = dtype.newbyteorder()
        parts, extents = [], []
        for n, step, before, after in zip(shape, self.steps, self.before, self.after, strict=True):
            span = (n - 1) * abs(step) + 1 if n else 0
            parts.append(slice(before, before + span, abs(step)))
            extents.append(before + span + after)
        nbytes = math.prod(extents) * dtype.itemsize
        owner = np.full(self.offset + nbytes, FILL, np.uint8)
        array = np.ndarray([extents[axis] for axis in self.order], dtype, owner, self.offset)
        array = array.transpose(np.argsort(self.order))[tuple(parts)]
        return array[tuple(slice(None, None, -1 if step < 0 else 1) for step in self.steps)], owner

    def holding(self, values):
        """Return a copy of the values in this arrangement."""
        array, _ = self.empty(values.shape, values.dtype)
        array[...] = values
        array.flags.writeable = not self.read_only
        return array


def draw_arrangement(choices, rank, output=False):
    if choices.once_in(3):
        order = list(range(rank))
        for i in range(rank - 1):
            j = choices.integer(i, rank - 1)
            order[i], order[j] = order[j], order[i]
    else:
        order = range(rank)
    steps = [choices.pick([1, 1, 1, 2, -1, -2, 3]) for _ in range(rank)]
    if choices.once_in(2):
        steps[-1] = 1  # what kernels take in place
    return Arrangement(
        order=tuple(order),
        steps=tuple(steps),
        before=tuple(choices.pick([0, 0, 1, 3]) for _ in range(rank)),
        after=tuple(choices.pick([0, 0, 1, 2]) for _ in range(rank)),
        offset=choices.pick([0, 0, 0, 0, 0, 1, 2, 4]),
        swapped=not output and choices.once_in(16),
        read_only=not output and choices.once_in(8),
    )


def fenced(shape, dtype, byte=FILL):
    """Return (an array to fill, its bytes together with those of the fences around it)."""
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    owner = np.full(FENCE + nbytes + FENCE, byte, np.uint8)
    return owner[FENCE : FENCE + nbytes].view(dtype).reshape(shape), owner


def same(got, expected, what):
    """Compare as `cases.assert_same` does, faster if nothing is NaN."""
    if got.dtype != expected.dtype or got.shape != expected.shape or not (got == expected).all():
        cases.assert_same(got, expected, what)


def untouched(array, owner, what):
    """Raise if the memory around an array of `Arrangement.empty` was written; fill the array."""
    array[...] = np.full(array.itemsize, FILL, np.uint8).view(array.dtype)[0]
    assert (owner == FILL).all(), f"{what}: written outside the output"


def in_time(elements, what):
    """Raise if the block takes more processor time than calls on this many elements may."""
    most = SECONDS + SECONDS_PER_ELEMENT * elements
    return limits.quick(most, f"{what}: a call on {elements} elements")
