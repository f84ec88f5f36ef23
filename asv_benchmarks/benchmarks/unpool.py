"""Max unpooling of what a pooling returned, on one thread."""

import numpy as np

import fastpool

from . import common


class MaxUnpool:
    params = (("vgg", "resnet stem"), ("float32", "uint8"), ("NCHW", "NHWC"))
    param_names = ("layer", "dtype", "layout")

    def setup(self, name, dtype, layout):
        x, window = common.layer(name, dtype, layout)
        self.y, self.indices = fastpool.max_pool(x, **window, return_indices=True)
        self.arguments = {**window, "output_shape": x.shape, "num_threads": 1}
        self.out = np.zeros(x.shape, dtype)

    def time_max_unpool(self, name, dtype, layout):
        fastpool.max_unpool(self.y, self.indices, **self.arguments, out=self.out)
