"""Maxima with their positions, on one thread."""

import numpy as np

import fastpool

from . import common


class MaxPoolWithIndices:
    params = (tuple(common.LAYERS), ("float32", "uint8"), ("NCHW", "NHWC"), ("int64", "int32"))
    param_names = ("layer", "dtype", "layout", "index_dtype")

    def setup(self, name, dtype, layout, index_dtype):
        self.x, window = common.layer(name, dtype, layout)
        self.plan = fastpool.plan_max_pool(
            self.x.shape,
            dtype,
            **window,
            return_indices=True,
            index_dtype=index_dtype,
            num_threads=1,
        )
        self.out = np.zeros(self.plan.output_shape, dtype)
        self.out_indices = np.zeros(self.plan.output_shape, index_dtype)

    def time_max_pool(self, name, dtype, layout, index_dtype):
        self.plan(self.x, out=self.out, out_indices=self.out_indices)
