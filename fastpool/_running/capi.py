"""Make plans for C and Cython callers, as include/fastpool.h declares them: the Python side.

The compiled side (kernels/c_api.pxi) calls these functions with the address and the size of a C
struct. The build that runs the plan fills the struct.
"""

import os
import sys

from .._planning import arguments, geometry
from .._planning import average_pool as averaging
from .._planning import max_pool as pooling
from .._planning import max_unpool as unpooling
from .._planning.dtypes import INDEX_BYTES, ITEMSIZE
from .._planning.plan_checks import resolved
from . import builds
from .prepare import PreparedAverage, PreparedPool, PreparedUnpool

# Attributes of averages that say nothing of windows, in the order of `resolve_adaptive`.
_VALUES = "layout", "result_dtype", "rounding", "numerics", "nan", "num_threads"


def get_include():
    """Return the folder of fastpool.h, the include path for C and Cython extensions.

    Returns
    -------
    folder : str

    Examples
    --------
    >>> import os, fastpool
    >>> os.listdir(fastpool.get_include())
    ['fastpool.h']
    """
    return os.path.join(os.path.dirname(os.path.dirname(__file__)), "include")


def from_plan(plan, address, size, quantization=None):
    """Fill the struct of a plan of maxima, minima or averages.

    `quantization` is that of 8-bit means (`quantized.Quantization`), if these are wanted.
    """
    if isinstance(plan, pooling.MaxPool):
        prepare = PreparedPool
    elif isinstance(plan, averaging.AvgPool):
        prepare = PreparedAverage
    else:
        raise TypeError(
            f"plan: expected a fastpool.MaxPoolPlan, a fastpool.MinPoolPlan or a "
            f"fastpool.AvgPoolPlan, got {type(plan).__name__}"
        )
    if plan.activation is not None:
        raise ValueError(f"plan: a run from C applies no activation, got {plan.activation!r}")
    prepared = prepare(plan, python=False)
    kernels = builds.builds()[prepared.build]
    if quantization is not None:
        prepared.pooling.quantize_in_c(quantization)
    kernels.fill_pool(prepared.pooling, address, size, prepared.threads_now())


def max_pool(address, size, input_shape, dtype, kernel_shape, *, minimum=0, **attributes):
    """Fill the struct of a pooling to maxima or, if `minimum` is 1, to minima."""
    if minimum not in (0, 1):
        raise ValueError(f"minimum: expected 0 or 1, got {minimum}")
    fields = pooling.resolve(input_shape, _given(dtype), kernel_shape, **attributes)
    kind = pooling.MinPool if minimum else pooling.MaxPool
    from_plan(resolved(kind, fields), address, size)


def avg_pool(address, size, input_shape, dtype, output_size, **attributes):
    """Fill the struct of an average pooling, over windows or, given an output size, adaptive."""
    name = "result_dtype"
    if output_size is None:
        fields = averaging.resolve(input_shape, _given(dtype), **attributes, name=name)
    else:
        values = output_size, *[attributes.pop(word) for word in _VALUES]
        for word, value in attributes.items():
            if value:
                raise ValueError(
                    f"output_size: it sets the windows, so {word} must be NULL or 0, got {value!r}"
                )
        fields = averaging.resolve_adaptive(input_shape, _given(dtype), *values, name=name)
    from_plan(resolved(averaging.AvgPool, fields), address, size)


def max_unpool(address, size, input_shape, dtype, kernel_shape, index_dtype, **attributes):
    """Fill the struct of an unpooling; `index_dtype` is the type of its indices."""
    shape = arguments.input_shape(input_shape)
    name = arguments.dtype_name(_given(dtype))
    index_dtype = arguments.index_dtype(index_dtype)
    geometry.check_size("input_shape", shape, max(ITEMSIZE[name], INDEX_BYTES[index_dtype]))
    fields = unpooling.resolve(shape, kernel_shape, **attributes)
    from_unpool(resolved(unpooling.MaxUnpool, fields), name, index_dtype, address, size)


def from_unpool(plan, dtype, index_dtype, address, size):
    """Fill the struct of a plan of an unpooling, of elements and indices of these types."""
    prepared = PreparedUnpool(plan, dtype)
    if prepared.block:
        raise ValueError(
            f'index_space: "inferred" with the output_shape {plan.output_shape} needs a copy, '
            f"which only calls from Python make"
        )
    kernels = builds.builds()[prepared.build]
    sizes = size, prepared.threads_now(), INDEX_BYTES[index_dtype]
    kernels.fill_max_unpool(prepared.unpooling, address, *sizes)


def pooled_axes(shape, layout):
    """Return the number of pooled axes, which is the length of each list of attributes."""
    if shape is None:
        raise TypeError("input_shape: expected a sequence of int, got NULL")
    return len(geometry.layout(layout, shape).spatial)


def _given(dtype):
    if dtype is None:
        raise TypeError("dtype: expected the name of an element type, got NULL")
    return dtype


# Any build's will do: a plan runs on the build that fills its struct.
_C_API = builds.builds()["baseline"].c_api(sys.modules[__name__])
