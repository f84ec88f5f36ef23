"""Time growing windows: time should grow at most with the logarithm of the window."""

from dataclasses import replace
from functools import lru_cache

from . import common


@lru_cache(maxsize=1)
def call(kernel, dtype, layout, kind):
    base = common.WORKLOADS["big64/f32/nchw"]
    batch, channels, height, width = base.shape
    shape = base.shape if layout == "NCHW" else (batch, height, width, channels)
    window = {"kernel_shape": (kernel, kernel), "dtype": dtype, "layout": layout, "kind": kind}
    return common.prepare(replace(base, shape=shape, **window))


class Windows:
    """Windows of 2 x 2 to 129 x 129 at stride 1, on one picture."""

    params = (
        (2, 3, 4, 5, 7, 8, 15, 31, 63, 129),
        ("float32", "uint8"),
        ("NCHW", "NHWC"),
        ("values", "indices", "average"),
    )
    param_names = ("kernel", "dtype", "layout", "kind")
    warmup_time = common.WARMUP_TIME

    def time_call(self, kernel, dtype, layout, kind):
        call(kernel, dtype, layout, kind)()
