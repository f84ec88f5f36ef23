"""Run OpenVINO's poolings: by attributes, from IR files, and in models.

`max_pool` is MaxPool-1, -8 and -14, `avg_pool` AvgPool-1, -14 and -16. `adaptive_avg_pool` and
`adaptive_max_pool` are AdaptiveAvgPool-8 and AdaptiveMaxPool-8. These functions translate
OpenVINO's attribute names, values and defaults into plans of the native functions. None means that
an attribute is absent. `read_layer` and `read_layers` read attributes from the XML that OpenVINO
writes. None of these imports the openvino package. `MaxPool`, `AvgPool`, `AdaptiveAvgPool`,
`AdaptiveMaxPool` and `replace_pooling` do: they put fastpool into a model that OpenVINO compiles
and runs.
"""

from importlib import import_module as _import

from ._layers import AdaptiveAvgPoolLayer, AdaptiveMaxPoolLayer, AvgPoolLayer, MaxPoolLayer
from ._operator import adaptive_avg_pool, adaptive_max_pool, avg_pool, max_pool
from ._xml import read_layer, read_layers

__all__ = [
    "AdaptiveAvgPoolLayer",
    "AdaptiveMaxPoolLayer",
    "AvgPoolLayer",
    "MaxPoolLayer",
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "avg_pool",
    "max_pool",
    "read_layer",
    "read_layers",
]

# What needs the openvino package, and the module that has it.
_IN_MODELS = {
    **dict.fromkeys(("MaxPool", "AvgPool"), "._windows"),
    **dict.fromkeys(("AdaptiveAvgPool", "AdaptiveMaxPool"), "._adaptive"),
    **dict.fromkeys(("Replaced", "replace_pooling"), "._replace"),
}


def __getattr__(name):
    if name not in _IN_MODELS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(_import(_IN_MODELS[name], __name__), name)
    except ModuleNotFoundError as error:
        if error.name != "openvino":
            raise
        message = f'fastpool.openvino.{name} needs openvino: pip install "fastpool[openvino]"'
        raise ImportError(message) from None


def __dir__():
    return sorted([*__all__, *_IN_MODELS])
