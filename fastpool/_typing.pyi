"""Types of arguments, for the other stubs. No such module exists at run time."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias, TypedDict, type_check_only

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from typing_extensions import Buffer

Counts: TypeAlias = Sequence[SupportsIndex] | NDArray[np.integer[Any]]
Ints: TypeAlias = SupportsIndex | Sequence[SupportsIndex]  # an array has __index__
# Windows along every spatial axis, or along each. None is the extent of the axis.
OutputSize: TypeAlias = SupportsIndex | Sequence[SupportsIndex | None] | None

# Switches. None means the default.
AutoPad: TypeAlias = Literal["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", "", None]
CeilRule: TypeAlias = Literal["clip", "keep", None]
Nan: TypeAlias = Literal["propagate", "ignore", None]
IndexLayout: TypeAlias = Literal["NCHW", "NHWC", None]
IndexSpace: TypeAlias = Literal["output", "inferred", None]
CeilMode: TypeAlias = bool | Literal[0, 1] | None
CountIncludePad: TypeAlias = bool | Literal[0, 1] | None
KeepDims: TypeAlias = bool | Literal[0, 1] | None
Beyond: TypeAlias = Literal["drop", "count", None]
Rounding: TypeAlias = Literal["half_even", "half_away", "trunc", "floor", None]
Numerics: TypeAlias = Literal["exact", "sequential", None]
Partial: TypeAlias = Literal["sum", "scale", None]
StorageOrder: TypeAlias = Literal[0, 1, None]
Activation: TypeAlias = Literal[
    "Relu", "Clip", "LeakyRelu", "HardSigmoid", "Tanh", "Sigmoid", "Silu", "", None
]
# Layouts with batch and channels, then all layouts.
BatchLayout: TypeAlias = Literal["NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC", None]
Layout: TypeAlias = (
    BatchLayout
    | Literal["W", "HW", "DHW", "NW", "NHW", "NDHW", "CW", "CHW", "CDHW", "WC", "HWC", "DHWC"]
)

# Names from which a checker knows the type of indices; DTypeLike has others.
Int64: TypeAlias = Literal["int64"] | type[np.int64] | np.dtype[np.int64]
Int32: TypeAlias = Literal["int32"] | type[np.int32] | np.dtype[np.int32]

@type_check_only
class SupportsDLPack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

# Inputs: NumPy arrays, tensors, and arrays of other libraries.
Array: TypeAlias = ArrayLike | SupportsDLPack | Buffer  # (not every ArrayLike is a Buffer)

# Outputs other than NumPy arrays.
Output: TypeAlias = SupportsDLPack | Buffer

@type_check_only
class DataArray(Protocol):
    """An xarray.DataArray, also if the checker does not find that package."""

    @property
    def coords(self) -> Any: ...
    @property
    def dims(self) -> tuple[Hashable, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    def __dask_graph__(self) -> Any: ...

@type_check_only
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
PadsByDimension: TypeAlias = (
    SupportsIndex | Mapping[Any, SupportsIndex | tuple[SupportsIndex, SupportsIndex]]
)

# Attributes of functions, for functions that pass them on.
@type_check_only
class Windows(TypedDict, total=False):
    """Attributes of windows of any pooling."""

    strides: Ints | None
    pads: Ints | None
    dilations: Ints | None
    auto_pad: AutoPad
    ceil_mode: CeilMode
    ceil_rule: CeilRule

@type_check_only
class WindowAttributes(Windows, total=False):
    """Attributes of windows, and what becomes of their results."""

    activation: Activation
    activation_params: Sequence[float] | None

@type_check_only
class MaximumAttributes(TypedDict, total=False):
    """Attributes of fastpool.global_max_pool and adaptive_max_pool."""

    layout: Layout
    nan: Nan
    index_axis: SupportsIndex | None
    index_dtype: DTypeLike | None
    index_layout: IndexLayout

@type_check_only
class MeanAttributes(TypedDict, total=False):
    """Attributes of fastpool.global_avg_pool and adaptive_avg_pool, except the type."""

    layout: Layout
    rounding: Rounding
    numerics: Numerics
    nan: Nan

@type_check_only
class NormAttributes(TypedDict, total=False):
    """Attributes of fastpool.global_lp_pool, except the order."""

    layout: Layout
    nan: Nan

@type_check_only
class LpPoolAttributes(Windows, NormAttributes, total=False):
    """Attributes of fastpool.lp_pool, except the order."""

    partial: Partial

@type_check_only
class PoolAttributes(WindowAttributes, MaximumAttributes, total=False):
    """Attributes of fastpool.max_pool."""

    storage_order: StorageOrder

@type_check_only
class AvgPoolAttributes(WindowAttributes, MeanAttributes, total=False):
    """Attributes of fastpool.avg_pool, except the type."""

    count_include_pad: CountIncludePad
    beyond: Beyond
    divisor: SupportsIndex | None

@type_check_only
class UnpoolAttributes(TypedDict, total=False):
    """Attributes of fastpool.max_unpool."""

    strides: Ints | None
    pads: Ints | None
    output_shape: Counts | None
    layout: Layout
    index_space: IndexSpace
    index_axis: SupportsIndex | None
    index_layout: IndexLayout
