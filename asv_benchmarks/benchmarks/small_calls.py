"""Time calls on tiny arrays, which are nearly all overhead."""

from functools import lru_cache

import numpy as np

import fastpool

from . import common


class SmallCalls:
    def __init__(self):
        workload = common.WORKLOADS["tiny/f32/nchw"]
        (self.x,) = common.workloads.make_arrays(workload)
        self.window = {"kernel_shape": workload.kernel_shape, "strides": workload.strides}
        self.plan = fastpool.plan_max_pool(self.x.shape, self.x.dtype, **self.window)
        self.y, self.indices = fastpool.max_pool(self.x, **self.window, return_indices=True)
        self.back = np.zeros_like(self.x)
        self.average_plan = fastpool.plan_avg_pool(self.x.shape, self.x.dtype, **self.window)

    def time_plan_into_out(self):
        self.plan(self.x, out=self.y)

    def time_plan(self):
        self.plan(self.x)

    def time_max_pool(self):
        fastpool.max_pool(self.x, **self.window)

    def time_max_pool_with_indices(self):
        fastpool.max_pool(self.x, **self.window, return_indices=True)

    def time_max_unpool_into_out(self):
        fastpool.max_unpool(self.y, self.indices, **self.window, out=self.back)

    def time_average_plan_into_out(self):
        self.average_plan(self.x, out=self.y)

    def time_avg_pool(self):
        fastpool.avg_pool(self.x, **self.window)

    def time_global_avg_pool(self):
        fastpool.global_avg_pool(self.x)

    def time_onnx_max_pool(self):
        fastpool.onnx.max_pool(self.x, **self.window)

    def time_plan_and_first_call(self):
        fastpool.plan_max_pool(self.x.shape, self.x.dtype, **self.window)(self.x)


@lru_cache(maxsize=1)
def arguments(name):
    workload = common.WORKLOADS[name]
    array = workload.shape, workload.dtype
    return common.planner(workload), array, common.keywords(workload)


class Planning:
    """Planning of the geometry alone. Tiles are chosen at a plan's first call."""

    params = (
        *("tiny/f32/nchw", "vol-k3/f32/nchw", "big64/f32/nchw", "incep/f32/nchw+idx"),
        *("vol-k3/f32/nchw+avg", "box65/f32/nchw+avg", "adapt-7/f32/nchw+avg"),
    )
    param_names = ("workload",)

    def time_plan(self, name):
        plan, array, attributes = arguments(name)
        plan(*array, **attributes)
