"""Run ONNX's pooling operators: on arrays, in models, and inside other programs.

`max_pool`, `average_pool` and the other functions take the operators' attributes and need no other
package. `library` and `InferenceSession` put kernels into onnxruntime's own sessions, and `explain`
says which nodes of a model they run. `Backend` runs models of pooling nodes, and `ops` holds
operators for onnx.reference.ReferenceEvaluator. These two need onnx.
"""

import importlib

from ._averages import average_pool, qlinear_average_pool, qlinear_global_average_pool
from ._global import global_average_pool, global_max_pool
from ._lp import global_lp_pool, lp_pool
from ._operators import max_pool, max_unpool

__all__ = [
    "average_pool",
    "global_average_pool",
    "global_lp_pool",
    "global_max_pool",
    "lp_pool",
    "max_pool",
    "max_unpool",
    "qlinear_average_pool",
    "qlinear_global_average_pool",
]

# name -> (module, packages that it needs)
_LAZY = {
    "Backend": ("_backend", ("onnx",)),
    "InferenceSession": ("_session", ("onnxruntime",)),
    "explain": ("_session", ("onnx", "onnxruntime")),
    "library": ("_session", ("onnxruntime",)),
    "ops": ("_evaluator", ("onnx",)),
}


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, packages = _LAZY[name]
    for package in packages:
        try:
            importlib.import_module(package)
        except ModuleNotFoundError as missing:
            if missing.name != package:
                raise
            raise ImportError(
                f'{__name__}.{name} needs {package}: pip install "fastpool[{package}]"'
            ) from None
    return getattr(importlib.import_module(f".{module}", __name__), name)


def __dir__():
    return sorted([*globals(), *_LAZY])
