"""Layers and arrays that the benchmarks share."""

from functools import lru_cache

import numpy as np

# name -> (input shape, channels first; kernel; stride; pad): one of each kind that networks have.
LAYERS = {
    "resnet stem": ((1, 64, 112, 112), 3, 2, 1),
    "vgg": ((1, 64, 224, 224), 2, 2, 0),
    "inception": ((1, 192, 28, 28), 3, 1, 1),
    "sppf": ((1, 512, 20, 20), 5, 1, 2),
    "picture": ((1, 3, 1080, 1920), 9, 1, 4),
}


@lru_cache(maxsize=4)
def filled(shape, dtype):
    """An array whose every page was written: pages of an untouched one are read from no memory."""
    values = np.random.default_rng(0).integers(0, 100, shape)
    array = values.astype(dtype)
    array.setflags(write=False)
    return array


def layer(name, dtype, layout="NCHW"):
    """The input of a layer and the window as keyword arguments."""
    shape, kernel, stride, pad = LAYERS[name]
    if layout == "NHWC":
        shape = (shape[0], *shape[2:], shape[1])
    window = {"kernel_shape": (kernel,) * 2, "strides": stride, "pads": pad, "layout": layout}
    return filled(shape, dtype), window
