"""Run OpenVINO's MaxPool (versions 1, 8 and 14): by attributes, from IR files, and in models.

`max_pool` translates OpenVINO's attribute names, values and defaults into plans of
:func:`fastpool.max_pool`. None means that an attribute is absent. `read_layer` and `read_layers`
read attributes from the XML that OpenVINO writes. None of these imports the openvino package.
`MaxPool` and `replace_pooling` do: they put fastpool into a model that OpenVINO compiles and runs.
"""

import importlib

from ._layers import MaxPoolLayer, read_layer, read_layers
from ._operator import max_pool

__all__ = ["MaxPoolLayer", "max_pool", "read_layer", "read_layers"]


def __getattr__(name):
    if name not in ("MaxPool", "replace_pooling"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module("._extension", __name__), name)
    except ModuleNotFoundError as error:
        if error.name != "openvino":
            raise
        message = f'fastpool.openvino.{name} needs openvino: pip install "fastpool[openvino]"'
        raise ImportError(message) from None
