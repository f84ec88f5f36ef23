"""Resolve the arguments of a block reduction: blocks per axis, types, and what is missing."""

import math
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np

from . import arguments
from .average_pool import rounded
from .dtypes import ITEMSIZE, is_float, limits
from .values import LARGEST_BITS, MOST, as_count, as_counts, choice, is_sequence, shown

# In the order of `enum block_function` (kernels/vectors/blocks.h).
FUNCTIONS = "max", "min", "mode", "median", "mean", "sum", "var", "std", "count"

_MOST_LEVELS = 64


@dataclass(frozen=True)
class Blocks:
    """A block reduction of one shape and type, as data.

    `blocks` are the elements of a full block per axis, and `taken` the extents that blocks cover.
    `nodata` is None or a number of `dtype`. `need` is how many elements a result needs, and
    `missing` stands for a result of fewer; it is None if there is no such result.
    """

    input_shape: tuple
    dtype: str
    result_dtype: str
    function: str
    blocks: tuple
    taken: tuple
    output_shape: tuple
    rounding: str
    ddof: int
    numerics: str
    ignores_nan: bool
    nodata: float | int | bool | None
    need: int
    missing: float | int | bool | None
    num_threads: int | None

    def result_dtype_of(self, dtype):
        """Return the dtype object of the result, for an array of `dtype`."""
        if self.result_dtype != self.dtype:
            return np.dtype(self.result_dtype)
        # (That of bfloat16 comes from a package. Kernels take a new object for another type.)
        return dtype if dtype.isnative else dtype.newbyteorder("=")

    @property
    def has_order(self):
        """Does the order of axes decide about the last bit of a result?"""
        adds = ("mean", "sum", "var", "std") if is_float(self.dtype) else ("var", "std")
        return self.function in adds

    def transposed(self):
        """Return the reduction of the transposed array."""
        names = "input_shape", "blocks", "taken", "output_shape"
        return replace(self, **{name: getattr(self, name)[::-1] for name in names})

    @property
    def kept(self):
        """The slices of the input that blocks cover."""
        return tuple(map(slice, self.taken))


def resolve(
    input_shape,
    dtype,
    block_size,
    func,
    *,
    edge="keep",
    result_dtype=None,
    rounding="half_even",
    ddof=0,
    numerics="pairwise",
    nan="propagate",
    nodata=None,
    masked=False,
    min_count=None,
    num_threads=None,
):
    """Check attributes as the public function takes them; `masked` says that there is a `where`."""
    if func is None:
        raise TypeError('func: expected one of "max", "min", "mean" and others, got None')
    func = choice(func, "func", FUNCTIONS)
    blocks = per_axis(block_size, "block_size", len(input_shape))
    taken, outputs = _extents(input_shape, blocks, edge)
    result = _result_dtype(result_dtype, dtype, func)
    rounding = arguments.rounding(rounding)
    if rounding != "half_even" and (func not in ("mean", "median") or is_float(result)):
        raise ValueError(
            f'rounding: expected "half_even", because only means and medians that become integers '
            f"are rounded by another rule, got {shown(rounding)} for {func} as {result}"
        )
    numerics = arguments.numerics(numerics)
    if numerics != "pairwise" and func not in ("mean", "sum"):
        raise ValueError(f'numerics: only "mean" and "sum" have it, got {numerics!r} for "{func}"')
    ddof = as_count(ddof, "ddof", 0, most=MOST)
    if ddof and func not in ("var", "std"):
        raise ValueError(f'ddof: only "var" and "std" have it, got {ddof} for "{func}"')
    ignores_nan = arguments.nan(nan) == "ignore" and is_float(dtype)
    nodata = _nodata(nodata, dtype)
    if nodata is not None and nodata != nodata:  # NaN
        ignores_nan, missing, nodata = True, nodata, None
    else:
        missing = nodata
    need = _need(min_count, func, blocks)
    _check_holds(dtype, result, func, rounding, blocks, input_shape)
    return Blocks(
        input_shape=tuple(input_shape),
        dtype=dtype,
        result_dtype=result,
        function=func,
        blocks=blocks,
        taken=taken,
        output_shape=outputs,
        rounding=rounding,
        ddof=ddof,
        numerics=numerics,
        ignores_nan=ignores_nan,
        nodata=nodata,
        need=need,
        missing=_missing(missing, dtype, result, func, masked, need),
        num_threads=arguments.num_threads(num_threads),
    )


def per_axis(value, name, rank):
    """Return an int for every axis, or one int per axis, as a tuple."""
    if not rank:
        raise ValueError("x: expected an array of at least 1 axis, got one of 0")
    if not is_sequence(value):
        value = (as_count(value, name, expected="an int, or one per axis"),) * rank
    return as_counts(value, name, 1, (rank,), f"one int for each of {rank} axes")


def check_mask(where, shape):
    """Raise an error unless an array of any library is bool and broadcasts to a shape."""
    if where.dtype != np.bool_:
        raise TypeError(f"where: expected bool, got {where.dtype}")
    try:
        fits = np.broadcast_shapes(where.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"where: expected a shape that broadcasts to {shape}, got {where.shape}")


def _extents(shape, blocks, edge):
    """Return the extents that blocks cover, and those of the result."""
    edge = choice(edge, "edge", ("keep", "trim", "exact"))
    if edge == "keep":
        return tuple(shape), tuple(-(-n // k) for n, k in zip(shape, blocks, strict=True))
    for axis, (n, k) in enumerate(zip(shape, blocks, strict=True)):
        if edge == "exact" and n % k:
            raise ValueError(
                f'block_size[{axis}]: expected a divisor of the extent {n} for edge "exact", got '
                f'{shown(k)}; "keep" and "trim" take any'
            )
    counts = tuple(n // k for n, k in zip(shape, blocks, strict=True))
    return tuple(count * k for count, k in zip(counts, blocks, strict=True)), counts


def _result_dtype(value, dtype, func):
    integers = not is_float(dtype)
    if func == "count":
        if value is not None:
            raise ValueError(f'dtype: "count" is always int64, got {shown(value)}')
        return "int64"
    if func == "mode" and not integers:
        raise TypeError(f'x: expected integers or bool for "mode", got {dtype}')
    if func in ("max", "min", "mode"):
        if value is not None and arguments.dtype_name(value) != dtype:
            raise ValueError(f'dtype: "{func}" has the type of x, {dtype}, got {shown(value)}')
        return dtype
    if func in ("var", "std") and integers:
        value = "float64" if value is None else value
        return arguments.dtype_name(value, allowed=("float32", "float64"))
    if func == "sum" and integers and value is None:
        return "uint64" if dtype.startswith("u") else "int64"
    return arguments.result_dtype(value, dtype)


def _check_holds(dtype, result, func, rounding, blocks, shape):
    """Raise ValueError unless an integer result holds every possible value, or has 64 bits."""
    if is_float(result) or ITEMSIZE[result] == 8 or func not in ("sum", "mean", "median"):
        return
    most = math.prod(map(min, blocks, shape)) if func == "sum" else 1
    least, greatest = (rounded(most * value, rounding) for value in limits(dtype))
    low, high = limits(result)
    if least < low or greatest > high:
        raise ValueError(
            f"dtype: {result} does not hold {least} to {greatest}, which the {func} of "
            f"{most if func == 'sum' else math.prod(blocks)} elements of type {dtype} can be"
        )


def _need(min_count, func, blocks):
    """Return how many elements a result needs."""
    if min_count is None:
        return 0 if func in ("sum", "count") else 1
    if func == "count":
        raise ValueError('min_count: given to "count", which is never missing')
    taps = math.prod(blocks)
    min_count = as_count(min_count, "min_count")
    if min_count > taps:
        raise ValueError(
            f"min_count: expected at most the {taps} elements of a block, got {min_count}"
        )
    return min_count


def _nodata(value, dtype):
    """Return the number that stands for missing elements as a number of their type."""
    if value is None:
        return None
    if isinstance(value, np.generic):
        arguments.dtype_name(value.dtype, "nodata")
        value = value.item()  # (NumPy would round integers to compare them)
    elif not isinstance(value, Real):
        raise TypeError(f"nodata: expected a number, got {shown(value)}")
    if is_float(dtype):
        try:
            return _as_float(float(value), dtype)
        except OverflowError:  # an int that float64 does not hold
            return math.inf if value > 0 else -math.inf
    low, high = limits(dtype)
    if value != value or value in (math.inf, -math.inf) or not low <= value <= high or value % 1:
        raise ValueError(f"nodata: expected a value of type {dtype}, got {shown(value)}")
    return int(value)


def _as_float(value, dtype):
    """Round a float to an element type."""
    if dtype == "bfloat16":
        bits = int(np.float32(value).view(np.uint32))
        if value == value:
            bits += 0x7FFF + (bits >> 16 & 1)
        return float(np.uint32(bits >> 16 << 16).view(np.float32))
    with np.errstate(over="ignore"):
        return float(np.dtype(dtype).type(value))


def _missing(nodata, dtype, result, func, masked, need):
    """Return what stands for a missing result, or None if there is none."""
    if func == "count" or not need:
        return None
    if not is_float(result):
        if nodata is None:
            if masked or need > 1:
                raise ValueError(
                    f"nodata: needed, because a result of type {result} may be missing, for which "
                    "only floats have NaN"
                )
            return None
        low, high = limits(result)
        if not low <= nodata <= high:
            raise ValueError(
                f"nodata: {nodata} stands for missing results too, and {result} does not hold it"
            )
        return nodata
    return math.nan if nodata is None or not is_float(dtype) else nodata


# ----------------------------------------------------------------------------------------- pyramids


def levels(levels, factor, shape):
    """Return the blocks of each reduced level of a pyramid."""
    levels = as_count(levels, "levels", most=_MOST_LEVELS)
    factor = per_axis(factor, "factor", len(shape))
    if all(f == 1 for f in factor):
        raise ValueError("factor: expected more than 1 for at least one axis, got 1 for all")
    if max(factor).bit_length() * levels > LARGEST_BITS:
        raise ValueError(f"factor: {shown(max(factor))} is too large for {levels} levels")
    return [tuple(f**level for f in factor) for level in range(1, levels + 1)]
