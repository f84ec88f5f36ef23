"""The list of poolings that all benchmarks of fastpool measure: of maxima, and of averages.

This file can be imported from the package or by its path, and imports only the standard library.
"""

import math
import random
import zlib
from dataclasses import dataclass

MAXIMUM_GROUPS = (
    *("float32, channels first", "float32, channels last"),
    *("8 bit, channels first", "8 bit, channels last"),
    *("other types", "indices", "unpool", "tiny"),
)
AVERAGE_GROUPS = (
    *("average: float32, channels first", "average: float32, channels last"),
    *("average: windows from 15", "average: 8 bit", "average: other types"),
    *("average: global, channels first", "average: global, channels last"),
    "average: tiny",
    *("exact: float32, channels first", "exact: float32, channels last", "exact: other types"),
    *("sequential: float32, channels first", "sequential: float32, channels last"),
    "sequential: other types",
)
GROUPS = MAXIMUM_GROUPS + AVERAGE_GROUPS
# By the ending of a name.
KINDS = {
    **{"": "values", "+idx": "indices", "+unpool": "unpool"},
    **{"+avg": "average", "+exact": "exact", "+seq": "sequential", "+qlinear": "qlinear"},
}
AVERAGES = ("average", "exact", "sequential", "qlinear")
INDEX_BYTES = 8
LARGE = 15  # from this many taps along an axis on, the windows of an average are large
# Random floats are multiples of UNIT (float64: of UNIT**2) and less than 8. The sum of 2**14 of
# them, in units, is an integer below 2**53.
UNIT = 2.0**-36
# Of the kind "qlinear": scale and zero point of x, scale and zero point of y.
QUANTIZED = {"uint8": (0.02, 121, 0.015, 117), "int8": (0.02, -7, 0.015, -11)}
# Part of a name -> element type and its size.
DTYPES = {
    "f32": ("float32", 4),
    "f64": ("float64", 8),
    "f16": ("float16", 2),
    "bf16": ("bfloat16", 2),
    "u8": ("uint8", 1),
    "i8": ("int8", 1),
    "i16": ("int16", 2),
    "u16": ("uint16", 2),
    "i32": ("int32", 4),
    "u32": ("uint32", 4),
    "i64": ("int64", 8),
}


@dataclass(frozen=True)
class Workload:
    """One operation on one array. Attributes are those of `fastpool.avg_pool`.

    `shape` is the shape of the pooled array, with axes in the order of `layout` ("NCHW" or "NHWC",
    with any number of spatial axes). For the kind "unpool", which puts the maxima of the pooling
    back, it is the shape of the result. If there is an `output_size`, it alone says where the
    windows are, as that of `fastpool.adaptive_avg_pool`. If there is a `row_gap`, the array is a
    part of one whose rows are longer by that many elements, or pixels if channels are last.
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
    count_include_pad: bool = False
    output_size: tuple = ()
    row_gap: int = 0

    @property
    def op(self):
        """ "max" or "avg"."""
        return "avg" if self.kind in AVERAGES else "max"

    @property
    def numerics(self):
        """The argument of averages; None, for the default, unless the kind is one of its names."""
        return self.kind if self.kind in ("exact", "sequential") else None

    @property
    def is_global(self):
        """Whether there is one window, over all elements of a plane."""
        one = math.prod(self.output_sizes) == 1
        return one and (self.kernel_shape == self.sizes or bool(self.output_size))

    @property
    def window(self):
        """The attributes of the pooling, as keywords."""
        names = ("kernel_shape", "strides", "pads", "dilations", "ceil_mode", "auto_pad")
        names += ("count_include_pad",) * (self.op == "avg")
        return {name: getattr(self, name) for name in names}

    @property
    def form(self):
        """The shape and the window, in short: "1x64x56x56, 3x3 s 2x2 p 1x1x1x1"."""
        parts = [f"{'x'.join(map(str, self.shape))},"]
        for name, values, usual in (
            ("to", self.output_size, None),
            ("", self.kernel_shape, None),
            ("s", self.strides, 1),
            ("p", self.pads, 0),
            ("d", self.dilations, 1),
        ):
            if any(value != usual for value in values):
                parts += [*filter(None, [name]), "x".join(map(str, values))]
        flags = "auto_pad" * (self.auto_pad != "NOTSET"), "ceil" * self.ceil_mode
        flags += "include" * self.count_include_pad, "gaps" * bool(self.row_gap)
        return " ".join([*parts, *filter(None, flags)])

    @property
    def channels_last(self):
        return self.layout == "NHWC"

    @property
    def channels(self):
        return self.shape[-1 if self.channels_last else 1]

    @property
    def spatial_axes(self):
        first = 1 if self.channels_last else 2
        return tuple(range(first, first + len(self.shape) - 2))

    @property
    def sizes(self):
        """Spatial extents of the pooled array."""
        return tuple(self.shape[axis] for axis in self.spatial_axes)

    @property
    def output_sizes(self):
        """Spatial extents of the maxima or means."""
        return tuple(outputs for outputs, _, _ in self._geometry())

    @property
    def output_shape(self):
        """Shape of the maxima or means."""
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
        if self.output_size:
            yield from ((outputs, 0, 0) for outputs in self.output_size)
            return
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

    Values are random, without NaN, and identical in every process. Of those whose maxima are
    taken, some are equal; floats whose means are taken have all their digits. Indices count in the
    whole channels-first array and have the workload's layout.
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
    elif workload.op == "avg":
        unit = UNIT**2 if workload.dtype == "float64" else UNIT
        values = rng.standard_normal(shape, np.float64 if dtype.itemsize == 8 else np.float32)
        values = (np.rint(values.astype(dtype).astype(np.float64) / unit) * unit).astype(dtype)
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


def _base(shape, kernel, stride, pad=0, dilation=1, ceil_mode=False, auto_pad="NOTSET", **others):
    """Return a shape, channels first, and a window; numbers stand for all spatial axes."""
    n = len(shape) - 2

    def each(value, count=n):
        return (value,) * count if isinstance(value, int) else value

    return shape, {
        "kernel_shape": each(kernel),
        "strides": each(stride),
        "pads": each(pad, 2 * n),
        "dilations": each(dilation),
        "ceil_mode": ceil_mode,
        "auto_pad": auto_pad,
        **others,
    }


def _adaptive(shape, outputs):
    """Return a shape, channels first, and attributes that name only the number of outputs."""
    n = len(shape) - 2
    return _base(shape, (), (), (), (), output_size=(outputs,) * n)


def _global(*shape):
    """Return a shape, channels first, and one window over each plane."""
    return _base(shape, shape[2:], 1)


def _random_bases(count, seed=20):
    """Yield (name, base) of layers that nobody tuned for, of up to 4 MB of float32."""
    rng = random.Random(seed)
    for number in range(count):
        n = rng.choice((1, 2, 2, 2, 3))
        largest = {1: 30000, 2: 160, 3: 40}[n]
        kernel, stride, sizes = (
            tuple(rng.randint(low, high) for _ in range(n))
            for low, high in ((2, 7), (1, 3), (largest // 8, largest))
        )
        channels = rng.randint(1, max(1, (1 << 20) // math.prod(sizes)))
        pad = tuple(rng.randint(0, taps // 2) for taps in kernel) * 2
        others = {"ceil_mode": rng.random() < 0.3, "count_include_pad": rng.random() < 0.3}
        yield f"any-{number}", _base((1, channels, *sizes), kernel, stride, pad, **others)


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
    "video": _base((1, 64, 16, 28, 28), (3, 1, 1), 1, pad=(1, 0, 0, 1, 0, 0)),
    "short": _base((8, 256, 12), 3, 1, pad=1),
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
    # averages of known networks
    "dense": _base((1, 128, 56, 56), 2, 2),
    "dense-b32": _base((32, 128, 28, 28), 2, 2),
    "resnetd": _base((1, 256, 55, 55), 2, 2, ceil_mode=True),
    "resnetd-in": _base((1, 256, 55, 55), 2, 2, ceil_mode=True, count_include_pad=True),
    "former": _base((1, 96, 56, 56), 3, 1, pad=1),
    "incep-in": _base((1, 192, 28, 28), 3, 1, pad=1, count_include_pad=True),
    "shuffle": _base((1, 240, 28, 28), 3, 2, pad=1),
    "adown": _base((1, 256, 80, 80), 2, 1),
    "aux": _base((1, 768, 17, 17), 5, 3),
    "grid7": _base((1, 256, 56, 56), 7, 7),
    "raster4": _base((1, 1, 2048, 2048), 4, 4),
    # averages over large windows
    "box15": _base((1, 16, 224, 224), 15, 1),
    "box15-p7": _base((1, 16, 224, 224), 15, 1, pad=7),
    "box31-s2": _base((1, 32, 112, 112), 31, 2, pad=15, count_include_pad=True),
    "box65": _base((1, 4, 224, 224), 65, 1),
    "line128": _base((16, 16, 16384), 128, 1),
    "vol15": _base((1, 4, 56, 56, 56), 15, 1),
    # global and adaptive averages: heads, squeeze and excite, pyramids
    "gap-2048": _global(1, 2048, 7, 7),
    "gap-1280": _global(1, 1280, 7, 7),
    "gap-b32": _global(32, 512, 7, 7),
    "se-56": _global(1, 64, 56, 56),
    "se-112": _global(1, 16, 112, 112),
    "gap-audio": _global(8, 256, 1000),
    "gap-vol": _global(1, 512, 4, 7, 7),
    "psp-1": _adaptive((1, 512, 60, 60), 1),
    "psp-2": _adaptive((1, 512, 60, 60), 2),
    "psp-3": _adaptive((1, 512, 60, 60), 3),
    "psp-6": _adaptive((1, 512, 60, 60), 6),
    "adapt-7": _adaptive((1, 256, 10, 10), 7),
    **dict(_random_bases(8)),
}
ANY = "any-0 any-1 any-2 any-3 any-4 any-5 any-6 any-7"

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
    (
        "f32",
        "nchw+avg",
        "dense dense-b32 resnetd resnetd-in former incep incep-in shuffle adown aux grid7 raster4 "
        f"stem-same vol-k2 vol-k3 audio odd-c3 {ANY} tiny",
    ),
    (
        "f32",
        "nhwc+avg",
        f"dense dense-b32 resnetd former incep shuffle adown aux grid7 vol-k2 odd-c3 {ANY} tiny",
    ),
    ("f32", "nchw+avg", "box15 box15-p7 box31-s2 box65 line128 vol15"),
    ("f32", "nhwc+avg", "box15 box15-p7 box65 vol15"),
    (
        "f32",
        "nchw+avg nhwc+avg",
        "gap-2048 gap-1280 gap-b32 se-56 se-112 gap-audio gap-vol psp-1 psp-2 psp-3 psp-6 adapt-7",
    ),
    ("u8 i8", "nchw+avg nhwc+avg", "dense former incep-in aux gap-2048"),
    ("u8", "nchw+avg nhwc+avg", "shuffle adown box15 se-56 psp-3 any-1 any-4"),
    ("u8 i8", "nchw+qlinear nhwc+qlinear", "dense former incep-in gap-2048"),
    ("f64 f16 bf16", "nchw+avg nhwc+avg", "dense former gap-2048"),
    ("f64 f16 bf16", "nchw+avg", "adown any-1"),
    ("i16 i32", "nchw+avg", "dense former gap-2048"),
    ("i16", "nhwc+avg", "dense former gap-2048"),
    (
        "f32",
        "nchw+exact nhwc+exact",
        "dense former incep-in shuffle aux box15 gap-2048 psp-3 any-1 any-4",
    ),
    ("f64 f16 bf16", "nchw+exact", "dense former gap-2048"),
    (
        "f32",
        "nchw+seq",
        "dense resnetd former incep-in shuffle adown aux vol-k3 odd-c3 any-1 any-4",
    ),
    ("f32", "nhwc+seq", "dense former incep shuffle adown aux odd-c3 any-1 any-4"),
    ("f64 f16 bf16", "nchw+seq", "dense former"),
    ("f32 u8", "nchw nhwc nchw+idx nchw+avg nhwc+avg", "video"),
    ("f32 u8", "nchw+avg", "short"),
)


def _workload(base, dtype, ending):
    shape, window = BASES[base]
    layout, plus, kind = ending.partition("+")
    if layout == "nhwc":
        shape = (shape[0], *shape[2:], shape[1])
    kind = KINDS[plus + kind]
    group = _average_group if kind in AVERAGES else _group
    return Workload(
        name=f"{base}/{dtype}/{ending}",
        group=group(base, dtype, layout, kind),
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


def _average_group(base, dtype, layout, kind):
    operation = kind if kind in ("exact", "sequential") else "average"
    order = "last" if layout == "nhwc" else "first"
    shape, window = BASES[base]
    if base == "tiny":
        what = base
    elif dtype != "f32":
        what = "8 bit" if dtype in ("u8", "i8") else "other types"
    elif operation != "average":
        what = f"float32, channels {order}"
    elif "output_size" in window or window["kernel_shape"] == shape[2:]:
        what = f"global, channels {order}"
    elif max(window["kernel_shape"]) >= LARGE:
        what = f"windows from {LARGE}"
    else:
        what = f"float32, channels {order}"
    return f"{operation}: {what}"


WORKLOADS = tuple(
    _workload(base, dtype, ending)
    for dtypes, endings, bases in _TABLE
    for ending in endings.split()
    for dtype in dtypes.split()
    for base in bases.split()
)

# One or two of each group, which together take about a minute.
QUICK = (
    *("stem-b1/f32/nchw", "incep/f32/nchw", "odd-c3/f32/nchw"),
    *("stem-b1/f32/nhwc", "odd-c3/f32/nhwc"),
    *("stem-b1/u8/nchw", "spp13/u8/nchw", "stem-b1/u8/nhwc", "spp13/i8/nhwc"),
    *("stem-b1/f16/nchw", "stem-b1/f32/nchw+idx", "vgg-b1/f32/nchw+unpool", "tiny/f32/nchw"),
    *("former/f32/nchw+avg", "dense/f32/nhwc+avg", "box15/f32/nchw+avg", "gap-2048/f32/nchw+avg"),
    *("gap-2048/f32/nhwc+avg", "former/u8/nchw+avg", "dense/f16/nchw+avg", "tiny/f32/nchw+avg"),
    *("former/f32/nchw+exact", "dense/f32/nhwc+exact", "dense/f16/nchw+exact"),
    *("former/f32/nchw+seq", "dense/f32/nhwc+seq", "dense/f16/nchw+seq"),
)
