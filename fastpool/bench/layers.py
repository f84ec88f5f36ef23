"""Draw layers at random: the list to tune by, because nobody can know it.

Most layers are like those of networks and pictures; a tail is like nothing. The same seed gives the
same layers on every machine. Never tune by one seed: look at others before saying what was won.
"""

import math
import random

from . import workloads
from .workloads import DTYPES, Workload

# What is measured together. Averages of quantized numbers are among the averages.
GROUPS = ("maxima", "maxima with indices", "unpooling", "averages", "exact averages")
GROUPS += ("sequential averages",)
KINDS = {
    "values": ("maxima", 35),
    "indices": ("maxima with indices", 15),
    "unpool": ("unpooling", 7),
    "average": ("averages", 24),
    "exact": ("exact averages", 6),
    "sequential": ("sequential averages", 8),
    "qlinear": ("averages", 5),
}
ENDINGS = {kind: ending for ending, kind in workloads.KINDS.items()}
TYPES = {"f32": 40, "u8": 14, "i8": 8, "f16": 10, "bf16": 10, "f64": 6, "i16": 6, "i32": 6}
TYPES |= {"u16": 2, "u32": 2, "i64": 2}
AXES = {2: 72, 1: 14, 3: 14}
BATCHES = {1: 60, 2: 8, 4: 6, 8: 10, 32: 10, 64: 6}
# Where the channels come from: of pictures, of odd networks, of wide ones.
CHANNELS = {1: 12, 3: 12, 4: 4, range(5, 64, 2): 12, range(8, 257, 8): 45}
CHANNELS |= {range(256, 2049, 64): 15}
KERNELS = {2: 22, 3: 34, range(5, 8, 2): 18, range(4, 10): 10, range(10, 34): 12, range(34, 66): 4}
# Axes -> the least and the most extents of classes of planes: most, few elements, pictures.
SIDES = {
    1: {(16, 4000): 70, (1, 15): 15, (4000, 60_000): 15},
    2: {(5, 130): 75, (1, 4): 10, (130, 2000): 15},
    3: {(4, 40): 80, (1, 3): 10, (40, 120): 10},
}
MOST_ELEMENTS = 2**22  # in an array
MOST_STEPS = 2**28  # of the right answer's computation: outputs times taps, for indices


def random_layers(seed, count):
    """Return `count` workloads; the first ones do not depend on the count."""
    return [_layer(seed, number) for number in range(count)]


def _layer(seed, number):
    chance = random.Random(f"{seed}/{number}")
    while True:
        workload = _draw(chance, f"random-{seed}-{number}")
        if _fits(workload) and _steps(workload) <= MOST_STEPS:
            return workload


def _fits(workload):
    """Whether a window fits into the padded input, along each axis."""
    if workload.output_size:
        return True
    n = len(workload.sizes)
    pads = map(sum, zip(workload.pads[:n], workload.pads[n:], strict=True))
    axes = zip(workload.sizes, pads, workload.kernel_shape, workload.dilations, strict=True)
    return all((kernel - 1) * dilation < size + pad for size, pad, kernel, dilation in axes)


def _steps(workload):
    taps = math.prod(workload.kernel_shape) if workload.kind == "indices" else 1
    return math.prod(workload.output_shape) * taps


def _weighed(chance, weights):
    """Return one of the keys, as often as its weight says; of a range, one number."""
    (key,) = chance.choices([*weights], [*weights.values()])
    return chance.choice(key) if isinstance(key, range) else key


def _draw(chance, name):
    """Return one layer, whose window may be too large."""
    kind = _weighed(chance, {kind: weight for kind, (_, weight) in KINDS.items()})
    types = ("u8", "i8") if kind == "qlinear" else ("f32", "f16", "bf16", "f64")
    few = kind in ("qlinear", "exact", "sequential")
    some = {name: TYPES[name] for name in (types if few else TYPES)}
    dtype, n = _weighed(chance, some), _weighed(chance, AXES)
    shape = _shape(chance, n)
    window = _window(chance, kind, shape[2:])
    last = chance.random() < 0.45
    layout = "NHWC" if last else "NCHW"
    return Workload(
        name=f"{name}/{dtype}/{layout.lower()}{ENDINGS[kind]}",
        group=KINDS[kind][0],
        kind=kind,
        shape=(shape[0], *shape[2:], shape[1]) if last else shape,
        layout=layout,
        dtype=DTYPES[dtype][0],
        # Every eighth array is a part of a wider one.
        row_gap=chance.randint(1, 64) if chance.random() < 0.125 and kind != "unpool" else 0,
        **window,
    )


def _shape(chance, n):
    """Return a shape, channels first, of up to MOST_ELEMENTS."""
    least, most = _weighed(chance, SIDES[n])
    side = 2 ** chance.uniform(math.log2(least), math.log2(most))
    # Planes are square, or about square; one in ten is long.
    reach = chance.choices((0, 0.4, 3), (50, 40, 10))[0]
    sizes = [max(1, round(side * 2 ** chance.uniform(-reach, reach))) for _ in range(n)]
    planes = max(1, MOST_ELEMENTS // math.prod(sizes))
    channels = min(_weighed(chance, CHANNELS), planes)
    return min(_weighed(chance, BATCHES), planes // channels), channels, *sizes


def _window(chance, kind, sizes):
    """Return the attributes of a window, for these extents."""
    n, average = len(sizes), kind in workloads.AVERAGES
    others = {"ceil_mode": chance.random() < 0.15, "auto_pad": "NOTSET"}
    apart = {"dilations": (1,) * n, "pads": (0,) * 2 * n}
    if average:
        others["count_include_pad"] = chance.random() < 0.3
    if kind not in ("unpool", "qlinear", "sequential") and chance.random() < 0.15:
        if kind in ("average", "exact") and chance.random() < 0.5:
            outs = tuple(chance.choice((1, 2, 3, 6, 7, max(1, size // 2))) for size in sizes)
            outs = tuple(map(min, outs, sizes))
            empty = {"kernel_shape": (), "strides": (), "dilations": (), "pads": ()}
            return {**others, **empty, "output_size": outs}
        return {**others, **apart, "kernel_shape": sizes, "strides": (1,) * n}

    kernel = [_weighed(chance, KERNELS)] * n
    form = chance.random()
    if form < 0.12:  # along one axis
        kernel = [1] * n
        kernel[chance.randrange(n)] = _weighed(chance, KERNELS)
    elif form < 0.2:
        kernel = [_weighed(chance, KERNELS) for _ in range(n)]
    kernel = tuple(map(min, kernel, sizes))
    if kind == "unpool":  # windows that do not overlap, and no padding
        return {**others, **apart, "ceil_mode": False, "kernel_shape": kernel, "strides": kernel}
    strides = {"one": (1,) * n, "two": (2,) * n, "kernel": kernel}
    strides["any"] = tuple(1 if k == 1 else chance.randint(1, 7) for k in kernel)
    strides = strides[_weighed(chance, {"one": 35, "two": 30, "kernel": 20, "any": 15})]
    dilated = not average and chance.random() < 0.08
    # (so that every window has an element)
    dilation = min(chance.choice((2, 3)), *sizes) if dilated else 1
    pads = {"none": (0,) * n, "half": tuple((k - 1) * dilation // 2 for k in kernel)}
    pads["any"] = tuple(chance.randint(0, k // 2) for k in kernel)
    pads = pads[_weighed(chance, {"none": 45, "half": 45, "any": 10})]
    found = {"kernel_shape": kernel, "strides": strides, "pads": pads * 2}
    return {**others, **found, "dilations": (dilation,) * n}
