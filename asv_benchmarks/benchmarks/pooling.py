"""Time the shared workloads: plans called with out=, and unpooling."""

from functools import lru_cache

from . import common


@lru_cache(maxsize=1)
def call(name, num_threads=1):
    return common.prepare(common.WORKLOADS[name], num_threads)


class Values:
    params = common.names("values")
    param_names = ("workload",)
    warmup_time = common.WARMUP_TIME

    def time_call(self, name):
        call(name)()


class Indices(Values):
    params = common.names("indices")


class Unpool(Values):
    params = common.names("unpool")


class Threads:
    params = (
        [
            *("stem-b32/f32/nchw", "vgg-b8/f32/nhwc", "odd-plane/u8/nchw"),
            *("stem-b32/f32/nchw+idx", "vgg-b8/f32/nchw+unpool"),
        ],
        (1, 2),
    )
    param_names = ("workload", "num_threads")
    warmup_time = common.WARMUP_TIME

    def time_call(self, name, num_threads):
        call(name, num_threads)()
