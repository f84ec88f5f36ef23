"""OpenVINO's MaxPool (versions 1, 8 and 14): by attributes, and layers of its models."""

from ._operator import MaxPoolLayer, max_pool, read_layer

__all__ = ["MaxPoolLayer", "max_pool", "read_layer"]
