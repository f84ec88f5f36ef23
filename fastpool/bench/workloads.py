"""The list of max poolings that all benchmarks of fastpool measure.

This file can be imported from the package or by its path, and imports only the standard library.
"""

import math
import zlib
from dataclasses import dataclass

GROUPS = (
    *("float32, channels first", "float32, channels last"),
    *("8 bit, channels first", "8 bit, channels last"),
    *("other types", "indices", "unpool", "tiny"),
)
KINDS = {"": "values", "+idx": "indices", "+unpool": "unpool"}  # by the ending of a name
INDEX_BYTES = 8
# Part of a name -> element type and its size.
DTYPES = {
    "f32": ("float32", 4),
    "f64": ("float64", 8),
    "f16": ("float16", 2),
    "bf16": ("bfloat16", 2),
    "u8": ("uint8", 1),
    "i8": ("int8", 1),
    "i16": ("int16", 2),
    "i32": ("int32", 4),
}


@dataclass(frozen=True)
class Workload:
    """One operation on one array. Attributes are those of `fastpool.max_pool`.

    `shape` is the shape of the pooled array, with axes in the order of `layout` ("NCHW" or "NHWC",
    with any number of spatial axes). For the kind "unpool", which puts the maxima of the pooling
    back, it is the shape of the result.
    """

    name: str
    group: str
    kind: str
    shape: tuple
    layout: str
    dtype: str
    kernel_shape: tuple
    strides: tuple
    pads: tuple
    dilations: tuple
    ceil_mode: bool
    auto_pad: str

    @property
    def window(self):
        """The attributes of the pooling, as keywords."""
        names = ("kernel_shape", "strides", "pads", "dilations", "ceil_mode", "auto_pad")
        return {name: getattr(self, name) for name in names}

    @property
    def channels_last(self):
        return self.layout == "NHWC"

    @property
    def channels(self):
        return self.shape[-1 if self.channels_last else 1]

    @property
    def spatial_axes(self):
        first = 1 if self.channels_last else 2
        return tuple(range(first, first + len(self.kernel_shape)))

    @property
    def sizes(self):
        """Spatial extents of the pooled array."""
        return tuple(self.shape[axis] for axis in self.spatial_axes)

    @property
    def output_sizes(self):
        """Spatial extents of the maxima."""
        return tuple(outputs for outputs, _, _ in self._geometry())

    @property
    def output_shape(self):
        """Shape of the maxima."""
        return self._shape(self.output_sizes)

    @property
    def full_pads(self):
        """(begins, ends) that the windows cover, with `ceil_mode` and `auto_pad` resolved.

        If the last window stops before the end of the array, the end is negative.
        """
        _, begins, ends = zip(*self._geometry(), strict=True)
        return begins, ends

    @property
    def bytes_read(self):
        if self.kind == "unpool":
            return math.prod(self.output_shape) * (self._item_bytes + INDEX_BYTES)
        return math.prod(self.shape) * self._item_bytes

    @property
    def bytes_written(self):
        if self.kind == "unpool":
            return math.prod(self.shape) * self._item_bytes
        item = self._item_bytes + (INDEX_BYTES if self.kind == "indices" else 0)
        return math.prod(self.output_shape) * item

    @property
    def _item_bytes(self):
        return dict(DTYPES.values())[self.dtype]

    def _shape(self, sizes):
        batch, channels = self.shape[0], self.channels
        return (batch, *sizes, channels) if self.channels_last else (batch, channels, *sizes)

    def _geometry(self):
        """Outputs, padding at the beginning and padding at the end of each spatial axis."""
        n = len(self.kernel_shape)
        pads = zip(self.pads[:n], self.pads[n:], strict=True)
        axes = zip(self.sizes, self.kernel_shape, self.strides, self.dilations, pads, strict=True)
        for size, kernel, stride, dilation, (begin, end) in axes:
            span = (kernel - 1) * dilation + 1
            if self.auto_pad == "SAME_UPPER":
                outputs = -(-size // stride)
                begin = max(0, (outputs - 1) * stride + span - size) // 2
            elif self.ceil_mode:
                outputs = -(-(size + begin + end - span) // stride) + 1
                outputs = min(outputs, (size + begin - 1) // stride + 1)
            else:
                outputs = (size + begin + end - span) // stride + 1
            yield outputs, begin, (outputs - 1) * stride + span - size - begin


def make_arrays(workload):
    """Return the operation's input: (x,), or (values, indices) for the kind "unpool".

    Values are random, some of them equal, without NaN, and identical in every process. Indices
    count in the whole channels-first array and have the workload's layout.
    """
    import numpy as np

    if workload.dtype == "bfloat16":
        import ml_dtypes  # noqa: F401  (gives NumPy the type)

    rng = np.random.default_rng(zlib.crc32(workload.name.encode()))
    dtype = np.dtype(workload.dtype)
    unpool = workload.kind == "unpool"
    shape = workload.output_shape if unpool else workload.shape
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low, high = max(limits.min, -1000), min(limits.max, 1000)
        values = rng.integers(low, high, shape, dtype, endpoint=True)
    else:
        values = rng.standard_normal(shape, np.float32)
        values = (np.rint(values * 256) / 256).astype(dtype)
    if not unpool:
        return (values,)

    # Any tap of each window may hold the maximum. (These windows do not overlap.)
    batch, channels, sizes = workload.shape[0], workload.channels, workload.output_sizes
    planes = (batch, channels, *(1 for _ in sizes))
    indices = np.arange(batch * channels).reshape(planes)
    window = zip(workload.sizes, workload.kernel_shape, workload.strides, strict=True)
    for axis, (size, kernel, stride) in enumerate(window):
        taps = rng.integers(kernel, size=(batch, channels, *sizes))
        indices = indices * size + stride * np.indices(sizes)[axis] + taps
    if workload.channels_last:
        indices = np.moveaxis(indices, 1, -1)
    return values, np.ascontiguousarray(indices, np.int64)


def _base(shape, kernel, stride, pad=0, dilation=1, ceil_mode=False, auto_pad="NOTSET"):
    """Return a shape, channels first, and a window with equal attributes along all spatial axes."""
    n = len(shape) - 2
    return shape, {
        "kernel_shape": (kernel,) * n,
        "strides": (stride,) * n,
        "pads": (pad,) * (2 * n),
        "dilations": (dilation,) * n,
        "ceil_mode": ceil_mode,
        "auto_pad": auto_pad,
    }


BASES = {
    # layers of known networks
    "stem-b1": _base((1, 64, 112, 112), 3, 2, pad=1),
    "stem-b32": _base((32, 64, 112, 112), 3, 2, pad=1),
    "stem-same": _base((1, 64, 112, 112), 3, 2, auto_pad="SAME_UPPER"),
    "stem-ceil": _base((1, 64, 112, 112), 3, 2, ceil_mode=True),
    "alex-b32": _base((32, 64, 55, 55), 3, 2),
    "vgg-b1": _base((1, 64, 224, 224), 2, 2),
    "vgg-b8": _base((8, 128, 112, 112), 2, 2),
    "vgg-late": _base((32, 512, 14, 14), 2, 2),
    "incep": _base((1, 192, 28, 28), 3, 1, pad=1),
    "sppf5-256": _base((1, 256, 20, 20), 5, 1, pad=2),
    "sppf5-512": _base((1, 512, 40, 40), 5, 1, pad=2),
    "spp13": _base((1, 256, 20, 20), 13, 1, pad=6),
    "seg": _base((1, 64, 360, 480), 2, 2),
    # large arrays and windows, other numbers of axes, dilation, one small call
    "pt28733": _base((1, 16, 3000, 2000), 3, 2),  # the array of PyTorch's issue 28733
    "big64": _base((1, 8, 512, 512), 64, 1),
    "big1d": _base((16, 16, 40960), 128, 1),
    "vol-k2": _base((1, 16, 64, 64, 64), 2, 2),
    "vol-k3": _base((1, 16, 64, 64, 64), 3, 1, pad=1),
    "audio": _base((8, 64, 16000), 4, 4),
    "global": _base((1, 2048, 7, 7), 7, 7),
    "dil": _base((1, 64, 56, 56), 3, 1, pad=2, dilation=2),
    "dil-p1": _base((1, 64, 56, 56), 3, 1, pad=1, dilation=2),
    "tiny": _base((1, 1, 8, 8), 2, 2),
    # few channels, odd extents, many planes, one large plane
    "odd-c1": _base((32, 1, 55, 55), 2, 2),
    "odd-c3": _base((8, 3, 111, 111), 3, 2, pad=1),
    "odd-c5": _base((4, 5, 37, 37), 5, 1, pad=2),
    "odd-13": _base((1, 256, 13, 13), 3, 2),
    "odd-planes": _base((64, 128, 5, 5), 3, 1, pad=1),
    "odd-plane": _base((1, 1, 2999, 4001), 3, 1, pad=1),
    "odd-vol": _base((1, 8, 37, 55, 55), 3, 1, pad=2, dilation=2),
}

# Workloads made from the bases: element types, ending of the names, bases.
_TABLE = (
    (
        "f32",
        "nchw",
        "stem-b1 stem-b32 stem-same stem-ceil alex-b32 vgg-b1 vgg-b8 vgg-late incep sppf5-256 "
        "sppf5-512 spp13 pt28733 big64 big1d vol-k2 vol-k3 audio global dil dil-p1 tiny",
    ),
    (
        "f32",
        "nhwc",
        "stem-b1 stem-b32 stem-same vgg-b1 vgg-b8 incep sppf5-512 spp13 global dil vol-k2 tiny",
    ),
    ("u8", "nchw", "stem-b1 stem-b32 vgg-b1 incep sppf5-512 spp13 vol-k2 dil audio"),
    ("i8", "nchw", "stem-b1 vgg-b1 sppf5-512 spp13 audio"),
    ("u8 i8", "nhwc", "stem-b1 stem-same vgg-b1 sppf5-512 spp13"),
    ("f64 f16 bf16", "nchw", "stem-b1 vgg-b1 sppf5-512"),
    ("f64 f16 bf16", "nhwc", "stem-b1 vgg-b1"),
    ("i16 i32", "nchw", "stem-b1"),
    ("i16", "nhwc", "stem-b1"),
    (
        "f32",
        "nchw+idx",
        "stem-b1 stem-b32 vgg-b1 vgg-b8 incep sppf5-512 spp13 vol-k2 audio dil-p1 pt28733 tiny",
    ),
    ("u8 bf16", "nchw+idx", "stem-b1"),
    ("f32", "nhwc+idx", "stem-b1 stem-same vgg-b1 vgg-b8"),
    ("f32", "nchw+unpool", "vgg-b1 vgg-b8 seg vol-k2 tiny"),
    ("f32", "nhwc+unpool", "vgg-b1"),
    ("f32 u8", "nchw", "odd-c1 odd-c3 odd-c5 odd-13 odd-planes odd-plane odd-vol"),
    ("f32 u8", "nhwc", "odd-c1 odd-c3 odd-c5"),
)


def _workload(base, dtype, ending):
    shape, window = BASES[base]
    layout, plus, kind = ending.partition("+")
    if layout == "nhwc":
        shape = (shape[0], *shape[2:], shape[1])
    kind = KINDS[plus + kind]
    return Workload(
        name=f"{base}/{dtype}/{ending}",
        group=_group(base, dtype, layout, kind),
        kind=kind,
        shape=shape,
        layout=layout.upper(),
        dtype=DTYPES[dtype][0],
        **window,
    )


def _group(base, dtype, layout, kind):
    if base == "tiny":
        return "tiny"
    if kind != "values":
        return kind
    if dtype not in ("f32", "u8", "i8"):
        return "other types"
    order = "last" if layout == "nhwc" else "first"
    return f"{'float32' if dtype == 'f32' else '8 bit'}, channels {order}"


WORKLOADS = tuple(
    _workload(base, dtype, ending)
    for dtypes, ending, bases in _TABLE
    for dtype in dtypes.split()
    for base in bases.split()
)

# One or two of each group, which together take about a minute.
QUICK = (
    *("stem-b1/f32/nchw", "incep/f32/nchw", "odd-c3/f32/nchw"),
    *("stem-b1/f32/nhwc", "odd-c3/f32/nhwc"),
    *("stem-b1/u8/nchw", "spp13/u8/nchw", "stem-b1/u8/nhwc", "spp13/i8/nhwc"),
    *("stem-b1/f16/nchw", "stem-b1/f32/nchw+idx", "vgg-b1/f32/nchw+unpool", "tiny/f32/nchw"),
)
