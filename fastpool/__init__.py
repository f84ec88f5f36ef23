"""fastpool: fast pooling on CPUs, with the same bits everywhere.

The public functions are `max_pool`, `min_pool`, `avg_pool`, `lp_pool`, the global forms of these,
the adaptive forms of the first three, `max_unpool`, and `plan_...` of each; `block_reduce` and
`pyramid`; `show_config`, `get_include` and `set_plan_cache_limit`. `fastpool.onnx` and
`fastpool.openvino` take those operators' attributes by their own names, and run inside their
models. `fastpool.torch`, `fastpool.dask` and `fastpool.xarray` take the arrays of those libraries,
and `fastpool.files` takes arrays in .npy files. `fastpool.ndimage` has filters of scipy.ndimage.
`fastpool.conventions` compares what attributes mean in other libraries.
"""

import importlib

from ._api.adaptive import (
    adaptive_avg_pool,
    adaptive_max_pool,
    global_avg_pool,
    global_lp_pool,
    global_max_pool,
    plan_adaptive_avg_pool,
    plan_adaptive_max_pool,
    plan_global_avg_pool,
    plan_global_lp_pool,
    plan_global_max_pool,
)
from ._api.average import avg_pool, plan_avg_pool
from ._api.blocks import block_reduce, pyramid
from ._api.lp import lp_pool, plan_lp_pool
from ._api.maximum import max_pool, max_unpool, plan_max_pool, plan_max_unpool
from ._api.minimum import (
    adaptive_min_pool,
    global_min_pool,
    min_pool,
    plan_adaptive_min_pool,
    plan_global_min_pool,
    plan_min_pool,
)
from ._plans import AvgPoolPlan, LpPoolPlan, MaxPoolPlan, MinPoolPlan, UnpoolPlan
from ._running.builds import show_config
from ._running.capi import _C_API as _C_API  # what include/fastpool.h imports
from ._running.capi import get_include
from ._running.plan_cache import set_plan_cache_limit
from ._version import __version__ as __version__

__all__ = [
    "AvgPoolPlan",
    "LpPoolPlan",
    "MaxPoolPlan",
    "MinPoolPlan",
    "UnpoolPlan",
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "adaptive_min_pool",
    "avg_pool",
    "block_reduce",
    "get_include",
    "global_avg_pool",
    "global_lp_pool",
    "global_max_pool",
    "global_min_pool",
    "lp_pool",
    "max_pool",
    "max_unpool",
    "min_pool",
    "plan_adaptive_avg_pool",
    "plan_adaptive_max_pool",
    "plan_adaptive_min_pool",
    "plan_avg_pool",
    "plan_global_avg_pool",
    "plan_global_lp_pool",
    "plan_global_max_pool",
    "plan_global_min_pool",
    "plan_lp_pool",
    "plan_max_pool",
    "plan_max_unpool",
    "plan_min_pool",
    "pyramid",
    "set_plan_cache_limit",
    "show_config",
]

# Imported on first use. Most need a package that fastpool itself does not need.
_MODULES = ("conventions", "dask", "files", "ndimage", "onnx", "openvino", "torch", "typing")
_MODULES += ("xarray",)


def __getattr__(name):
    if name in _MODULES:
        try:
            return importlib.import_module(f".{name}", __name__)
        except ImportError as error:  # the text says what to install
            # Not an ImportError: help(fastpool) and others get every name of dir(), and only
            # expect that one is no attribute.
            raise AttributeError(str(error)) from error
    from ._planning.words import meant_by

    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{meant_by(name, __all__)}")


def __dir__():
    return sorted({*globals(), *_MODULES})
