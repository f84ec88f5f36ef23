"""Measure the peak memory of pooling one large array: Python, input, results and scratch."""

import numpy as np

import fastpool


class Memory:
    """Pooling of 256 MiB. The size of the results is known, so a change is scratch or a copy."""

    params = (("NCHW", "NHWC"), ("values", "indices"))
    param_names = ("layout", "kind")

    def setup(self, layout, kind):
        shape = (1, 64, 1024, 1024) if layout == "NCHW" else (1, 1024, 1024, 64)
        self.x = np.ones(shape, np.float32)
        self.plan = fastpool.plan_max_pool(
            *(shape, "float32", (3, 3)),
            **{"strides": 2, "pads": 1, "layout": layout, "return_indices": kind == "indices"},
            num_threads=1,
        )
        self.out = np.ones(self.plan.output_shape, np.float32)
        self.out_indices = np.ones(self.plan.output_shape, np.int64) if kind == "indices" else None

    def peakmem_call(self, layout, kind):
        self.plan(self.x, out=self.out, out_indices=self.out_indices)
