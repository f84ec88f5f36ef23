"""Types of arguments, for annotations of functions that pass them on.

The stubs of fastpool use them. At run time nothing of fastpool imports this module.
"""

import sys
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, SupportsIndex, TypeAlias, TypedDict

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

if sys.version_info >= (3, 12):
    from collections.abc import Buffer
elif TYPE_CHECKING:
    from typing_extensions import Buffer
else:
    Buffer = bytes | bytearray | memoryview  # no class of Python 3.11 stands for all buffers

__all__ = [
    "Activation",
    "Array",
    "AutoPad",
    "AvgPoolAttributes",
    "BatchLayout",
    "Beyond",
    "BlockFunction",
    "Border",
    "Borders",
    "ByDimension",
    "CeilMode",
    "CeilRule",
    "CountIncludePad",
    "Counts",
    "DaskArray",
    "DataArray",
    "Edge",
    "IndexLayout",
    "IndexSpace",
    "Int32",
    "Int64",
    "Ints",
    "KeepDims",
    "Layout",
    "LpPoolAttributes",
    "MaximumAttributes",
    "MeanAttributes",
    "Nan",
    "NormAttributes",
    "Numerics",
    "Output",
    "OutputSize",
    "PadsByDimension",
    "Partial",
    "PoolAttributes",
    "Rounding",
    "StorageOrder",
    "Strides",
    "StridesByDimension",
    "SupportsDLPack",
    "UnpoolAttributes",
    "WindowAttributes",
    "Windows",
]

Counts: TypeAlias = Sequence[SupportsIndex] | NDArray[np.integer[Any]]
Ints: TypeAlias = SupportsIndex | Sequence[SupportsIndex]  # an array has __index__
# "window" is equal to the kernel shape.
Strides: TypeAlias = Ints | Literal["window"]
# Windows along every spatial axis, or along each. None is the extent of the axis.
OutputSize: TypeAlias = SupportsIndex | Sequence[SupportsIndex | None] | None

# Switches. None means the default.
AutoPad: TypeAlias = Literal["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", ""] | None
Border: TypeAlias = Literal["ignore", "reflect", "mirror", "nearest", "wrap", "constant"] | None
CeilRule: TypeAlias = Literal["clip", "keep"] | None
Nan: TypeAlias = Literal["propagate", "ignore"] | None
IndexLayout: TypeAlias = Literal["NCHW", "NHWC"] | None
IndexSpace: TypeAlias = Literal["output", "inferred"] | None
CeilMode: TypeAlias = bool | Literal[0, 1] | None
CountIncludePad: TypeAlias = bool | Literal[0, 1] | None
KeepDims: TypeAlias = bool | Literal[0, 1] | None
BlockFunction: TypeAlias = Literal[
    "max", "min", "mean", "sum", "mode", "median", "std", "var", "count"
]
Edge: TypeAlias = Literal["keep", "trim", "exact"] | None
Beyond: TypeAlias = Literal["drop", "count"] | None
Rounding: TypeAlias = Literal["half_even", "half_away", "trunc", "floor"] | None
Numerics: TypeAlias = Literal["pairwise", "exact", "sequential"] | None
Partial: TypeAlias = Literal["sum", "scale"] | None
StorageOrder: TypeAlias = Literal[0, 1] | None
Activation: TypeAlias = (
    Literal["Relu", "Clip", "LeakyRelu", "HardSigmoid", "Tanh", "Sigmoid", "Silu", ""] | None
)
# Layouts with batch and channels, then all layouts.
BatchLayout: TypeAlias = Literal["NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC"] | None
Layout: TypeAlias = (
    BatchLayout
    | Literal["W", "HW", "DHW", "NW", "NHW", "NDHW", "CW", "CHW", "CDHW", "WC", "HWC", "DHWC"]
)

# Names from which a checker knows the type of indices; DTypeLike has others.
Int64: TypeAlias = Literal["int64"] | type[np.int64] | np.dtype[np.int64]
Int32: TypeAlias = Literal["int32"] | type[np.int32] | np.dtype[np.int32]


class SupportsDLPack(Protocol):
    """An array or tensor of any library that passes its memory on by DLPack."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


# Inputs: NumPy arrays, tensors, and arrays of other libraries.
Array: TypeAlias = ArrayLike | SupportsDLPack | Buffer  # (not every ArrayLike is a Buffer)

# Outputs other than NumPy arrays.
Output: TypeAlias = SupportsDLPack | Buffer


class DataArray(Protocol):
    """An xarray.DataArray, also if the checker does not find that package."""

    @property
    def coords(self) -> Any: ...
    @property
    def dims(self) -> tuple[Hashable, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    def __dask_graph__(self) -> Any: ...


class DaskArray(Protocol):
    """A dask.array.Array, also if the checker does not find dask.

    A DataArray's chunks may be None.
    """

    @property
    def chunks(self) -> tuple[Any, ...]: ...
    @property
    def dtype(self) -> Any: ...
    def __dask_graph__(self) -> Any: ...


# For a DataArray: one value for every pooled dimension, or values by name.
ByDimension: TypeAlias = SupportsIndex | Mapping[Any, SupportsIndex]
StridesByDimension: TypeAlias = ByDimension | Literal["window"]
PadsByDimension: TypeAlias = (
    SupportsIndex | Mapping[Any, SupportsIndex | tuple[SupportsIndex, SupportsIndex]]
)


class Windows(TypedDict, total=False):
    """Attributes of windows of any pooling."""

    strides: Strides | None
    pads: Ints | None
    dilations: Ints | None
    auto_pad: AutoPad
    ceil_mode: CeilMode
    ceil_rule: CeilRule


class Borders(TypedDict, total=False):
    """The values of padding."""

    border: Border
    border_value: float | None


class WindowAttributes(Windows, total=False):
    """Attributes of windows, and what becomes of their results."""

    activation: Activation
    activation_params: Sequence[float] | None


class MaximumAttributes(TypedDict, total=False):
    """Attributes of global and adaptive pooling to maxima and minima."""

    layout: Layout
    nan: Nan
    index_axis: SupportsIndex | None
    index_dtype: DTypeLike | None
    index_layout: IndexLayout


class MeanAttributes(TypedDict, total=False):
    """Attributes of fastpool.global_avg_pool and adaptive_avg_pool, except the type."""

    layout: Layout
    rounding: Rounding
    numerics: Numerics
    nan: Nan


class NormAttributes(TypedDict, total=False):
    """Attributes of fastpool.global_lp_pool, except the order."""

    layout: Layout
    nan: Nan


class LpPoolAttributes(Windows, NormAttributes, total=False):
    """Attributes of fastpool.lp_pool, except the order."""

    partial: Partial


class PoolAttributes(WindowAttributes, Borders, MaximumAttributes, total=False):
    """Attributes of fastpool.max_pool and min_pool."""

    storage_order: StorageOrder


class AvgPoolAttributes(WindowAttributes, Borders, MeanAttributes, total=False):
    """Attributes of fastpool.avg_pool, except the type."""

    count_include_pad: CountIncludePad
    beyond: Beyond
    divisor: SupportsIndex | None


class UnpoolAttributes(TypedDict, total=False):
    """Attributes of fastpool.max_unpool."""

    strides: Strides | None
    pads: Ints | None
    output_shape: Counts | None
    layout: Layout
    index_space: IndexSpace
    index_axis: SupportsIndex | None
    index_layout: IndexLayout
