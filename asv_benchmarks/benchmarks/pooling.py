"""Time the shared workloads: plans called with out=, and unpooling."""

from functools import lru_cache

import fastpool

from . import common
from .instructions import counter


@lru_cache(maxsize=1)
def call(name, num_threads=1):
    return common.prepare(common.WORKLOADS[name], num_threads)


@lru_cache(maxsize=1)
def minima(name):
    return common.prepare(common.WORKLOADS[name], plan_of=fastpool.plan_min_pool)


@lru_cache(maxsize=1)
def path(name):
    return dict(counter.paths(fastpool))[name]


class Values:
    params = common.names("values")
    param_names = ("workload",)
    warmup_time = common.WARMUP_TIME

    def time_call(self, name):
        call(name)()


class Indices(Values):
    params = common.names("indices")


class Minima:
    # Two that are taken as they are, a stride, channels last; keys: of int16, and with indices.
    params = (
        *("odd-plane/u8/nchw", "incep/f32/nchw", "vgg-b1/f32/nchw", "incep/f32/nhwc"),
        *("stem-b1/i16/nchw", "incep/f32/nchw+idx"),
    )
    param_names = ("workload",)
    warmup_time = common.WARMUP_TIME

    def time_call(self, name):
        minima(name)()


class Unpool(Values):
    params = common.names("unpool")


class Averages(Values):
    params = (
        *("dense/f32/nchw+avg", "former/f32/nchw+avg", "adown/f32/nchw+avg", "any-1/f32/nchw+avg"),
        *("dense/f32/nhwc+avg", "former/f32/nhwc+avg", "adown/f32/nhwc+avg", "any-1/f32/nhwc+avg"),
        *("box15/f32/nchw+avg", "box65/f32/nchw+avg", "box15/f32/nhwc+avg", "vol15/f32/nchw+avg"),
        *("gap-2048/f32/nchw+avg", "gap-2048/f32/nhwc+avg", "se-56/f32/nchw+avg"),
        *("psp-3/f32/nchw+avg", "adapt-7/f32/nchw+avg", "former/f32/nchw+seq"),
        *("dense/f32/nhwc+seq", "former/u8/nchw+avg", "dense/u8/nhwc+avg", "dense/f64/nchw+avg"),
        *("dense/f16/nchw+avg", "former/f16/nchw+avg", "dense/i16/nchw+avg"),
    )


class Paths:
    """Blocks, pyramids, minima and filters: what no workload of the list is."""

    params = tuple(counter.PATHS)
    param_names = ("path",)
    warmup_time = common.WARMUP_TIME

    def time_call(self, name):
        path(name)()


class Threads:
    params = (
        [
            *("stem-b32/f32/nchw", "vgg-b8/f32/nhwc", "odd-plane/u8/nchw"),
            *("stem-b32/f32/nchw+idx", "vgg-b8/f32/nchw+unpool", "dense-b32/f32/nchw+avg"),
        ],
        (1, 2),
    )
    param_names = ("workload", "num_threads")
    warmup_time = common.WARMUP_TIME

    def time_call(self, name, num_threads):
        call(name, num_threads)()
