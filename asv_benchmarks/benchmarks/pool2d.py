"""Maxima alone, over element types and both layouts, on one thread."""

import fastpool

from . import common


class MaxPool:
    params = (tuple(common.LAYERS), ("float32", "float64", "float16", "uint8"), ("NCHW", "NHWC"))
    param_names = ("layer", "dtype", "layout")

    def setup(self, name, dtype, layout):
        self.x, window = common.layer(name, dtype, layout)
        self.plan = fastpool.plan_max_pool(self.x.shape, dtype, **window, num_threads=1)
        self.out = self.plan(self.x)

    def time_max_pool(self, name, dtype, layout):
        self.plan(self.x, out=self.out)


class Threads:
    params = (("vgg", "picture"), (1, 2, 4))
    param_names = ("layer", "num_threads")

    def setup(self, name, num_threads):
        self.x, window = common.layer(name, "float32")
        self.plan = fastpool.plan_max_pool(
            self.x.shape, "float32", **window, num_threads=num_threads
        )
        self.out = self.plan(self.x)

    def time_max_pool(self, name, num_threads):
        self.plan(self.x, out=self.out)
