"""What a call costs when there is next to nothing to pool."""

import numpy as np

import fastpool


class SmallCalls:
    def setup(self):
        self.x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
        self.plan = fastpool.plan_max_pool(self.x.shape, self.x.dtype, (2, 2), strides=(2, 2))
        self.y, self.indices = fastpool.max_pool(
            self.x, (2, 2), strides=(2, 2), return_indices=True
        )

    def time_plan_into_out(self):
        self.plan(self.x, out=self.y)

    def time_plan(self):
        self.plan(self.x)

    def time_max_pool(self):
        fastpool.max_pool(self.x, (2, 2), strides=(2, 2))

    def time_max_pool_with_indices(self):
        fastpool.max_pool(self.x, (2, 2), strides=(2, 2), return_indices=True)

    def time_max_unpool(self):
        fastpool.max_unpool(self.y, self.indices, (2, 2), strides=(2, 2))

    def time_onnx_max_pool(self):
        fastpool.onnx.max_pool(self.x, kernel_shape=(2, 2), strides=(2, 2))
