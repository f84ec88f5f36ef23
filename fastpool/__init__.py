"""fastpool: exact, fast max pooling and max unpooling on CPUs.

The public functions are `max_pool`, `max_unpool` and `plan_max_pool`. `fastpool.onnx` and
`fastpool.openvino` take those operators' attributes by their own names, and run inside their
models. `fastpool.torch`, `fastpool.dask` and `fastpool.xarray` take the arrays of those libraries,
and `fastpool.files` takes arrays in .npy files. `fastpool.conventions` compares what attributes
mean in other libraries.
"""

import importlib

from ._api import max_pool, max_unpool, plan_max_pool
from ._plans import MaxPoolPlan
from ._plans import UnpoolPlan as UnpoolPlan  # what pickles of it name
from ._running.builds import show_config
from ._running.capi import _C_API as _C_API  # what include/fastpool.h imports
from ._running.capi import get_include
from ._version import __version__ as __version__

__all__ = [
    "MaxPoolPlan",
    "get_include",
    "max_pool",
    "max_unpool",
    "plan_max_pool",
    "show_config",
]

# Imported on first use. Most need a package that fastpool itself does not need.
_MODULES = ("conventions", "dask", "files", "onnx", "openvino", "torch", "xarray")


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
