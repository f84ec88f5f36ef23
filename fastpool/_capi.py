"""Plans for callers from C and Cython, as include/fastpool.h has them: the side that needs no C.

The compiled side (c_api.pxi) calls these with the address and the size of a C struct, which the
build that runs the plan fills.
"""

import os
import sys

import numpy as np

from . import _arguments, _dispatch
from ._api import plan_max_pool
from ._axes import check_size
from ._plan import MaxPoolPlan
from ._schedule import INDEX_BYTES, ITEMSIZE
from ._unpool_plan import make_unpool_plan


def get_include():
    """Return the folder of fastpool.h, for compilers of callers from C and Cython.

    Returns
    -------
    folder : str

    Examples
    --------
    >>> import os, fastpool
    >>> os.listdir(fastpool.get_include())
    ['fastpool.h']
    """
    return os.path.join(os.path.dirname(__file__), "include")


def from_plan(plan, address, size):
    """Fill the struct of a plan that `plan_max_pool` made."""
    if not isinstance(plan, MaxPoolPlan):
        raise TypeError(f"plan: expected a fastpool.MaxPoolPlan, got {type(plan).__name__}")
    if plan.activation is not None:
        raise ValueError(f"plan: a run from C applies no activation, got {plan.activation!r}")
    runner = _dispatch.Runner(plan, _bits(plan.dtype))
    if runner.pooling is None:
        raise ValueError(
            f"plan: windows so far larger than the input that places exceed 64 bits are for calls "
            f"from Python, got {plan!r}"
        )
    kernels = _dispatch.builds()[runner.build]
    kernels.fill_max_pool(runner.pooling, address, size, _threads(runner))


def max_pool(address, size, input_shape, dtype, kernel_shape, **attributes):
    """Fill the struct of a pooling."""
    from_plan(plan_max_pool(input_shape, _given(dtype), kernel_shape, **attributes), address, size)


def max_unpool(address, size, input_shape, dtype, kernel_shape, index_dtype, **attributes):
    """Fill the struct of an unpooling; `index_dtype` is the type of its indices."""
    shape = _arguments.input_shape(input_shape)
    name = _arguments.dtype_name(_given(dtype))
    index_dtype = _arguments.index_dtype(index_dtype)
    check_size("input_shape", shape, max(ITEMSIZE[name], INDEX_BYTES[index_dtype]))
    plan = make_unpool_plan(shape, kernel_shape, **attributes)
    runner = _dispatch.UnpoolRunner(plan, name, _bits(name))
    if runner.block:
        raise ValueError(
            f'index_space: "inferred" with the output_shape {plan.output_shape} is for calls from '
            f"Python, as it takes a copy"
        )
    kernels = _dispatch.builds()[runner.build]
    sizes = size, _threads(runner), INDEX_BYTES[index_dtype]
    kernels.fill_max_unpool(runner.unpooling, address, *sizes)


def pooled_axes(shape, layout):
    """How many there are, and so how long the lists of attributes."""
    if shape is None:
        raise TypeError("input_shape: expected a sequence of int, got NULL")
    return len(_arguments.layout(layout, shape).spatial)


def _given(dtype):
    if dtype is None:
        raise TypeError("dtype: expected the name of an element type, got NULL")
    return dtype


def _bits(name):
    """A dtype of the size of bfloat16, which needs no further package; any other is itself."""
    return np.dtype("uint16" if name == "bfloat16" else name)


def _threads(runner):
    return 1 if runner.threads is None else runner.threads()


# (of whichever build: a plan runs on the one that fills its struct)
_C_API = _dispatch.builds()["baseline"].c_api(sys.modules[__name__])
