"""Run the demo on real photographs and pooling layers of known networks, and check every number.

The photographs come from scikit-image's wheel (uint8, channels last). The layers come from the
graphs in the onnx package (its light_* models, which have no weights). Geometry and tensor shapes
come from the graph; the tensors are filled with pieces of a photograph. Nothing is downloaded.
"""

import math
import statistics
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import scipy.ndimage
import skimage.data

import fastpool
from fastpool import _reference
from fastpool.bench.answers import array_difference as difference
from fastpool.bench.means import tree

from . import science
from .sheets import sheet_of

PHOTOGRAPHS = ("astronaut", "chelsea", "coffee", "rocket", "camera")
NETWORKS = (
    *("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet"),
    *("squeezenet", "vgg19", "zfnet512"),
)

KINDS = {"MaxPool": "pool", "AveragePool": "mean", "GlobalAveragePool": "global"}

DEFAULTS = {
    "strides": (1, 1),
    "pads": (0, 0, 0, 0),
    "dilations": (1, 1),
    "ceil_mode": False,
}
HALVE = {"kernel_shape": (2, 2), "strides": (2, 2)}
BLOCKS = {"kernel_shape": (8, 8), "strides": (8, 8), "ceil_mode": True}
LOCAL_MAXIMUM = {"kernel_shape": (9, 9), "pads": (4, 4, 4, 4)}
DILATED = {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (4, 4, 4, 4), "dilations": (4, 4)}
PHOTOGRAPH_WINDOWS = (HALVE, BLOCKS, LOCAL_MAXIMUM, DILATED)
UNPOOLED_WINDOWS = (HALVE, BLOCKS)  # no overlap: pooling the unpooled gives the maxima

NO_DATA = np.finfo(np.float32).min  # marks a pixel without data in many rasters
WITHOUT_DATA = ([60, 150, 150, 300, 420], [250, 90, 330, 60, 380])  # rows, columns
MEAN = {"kernel_shape": (15, 15)}

REFERENCE_WINDOWS = 4096  # the reference visits each; for more, see shifted_slices

OPENVINO_LAYER = """
<layer name="pool" type="{operation}" version="{opset}">
    <data kernel="{kernel}" strides="{strides}" dilations="{dilations}" pads_begin="{begins}"
        pads_end="{ends}" rounding_type="{rounding}" auto_pad="explicit" {rest}/>
</layer>"""

TITLES = f"{'layer':24} {'shape':21} {'window':15}"
HEADER = (
    f"{'on one thread:':>{len(TITLES)}} {'values':^16} {'and indices':^16}\n"
    f"{TITLES} {'us':>9} {'GB/s':>6} {'us':>9} {'GB/s':>6}  check (against)"
)


class Case(NamedTuple):
    """A tensor to pool. `window` has all of ONNX's attributes, by the native call's names."""

    name: str
    x: np.ndarray
    layout: str
    window: dict
    operator: str = "MaxPool"


def photographs():
    """Return name -> (uint8 array, layout)."""
    arrays = {name: getattr(skimage.data, name)() for name in PHOTOGRAPHS}
    return {name: (x, "HWC" if x.ndim == 3 else "HW") for name, x in arrays.items()}


def photograph_cases(photos, windows):
    for name, (x, layout) in photos.items():
        for window in windows:
            yield Case(name, x, layout, DEFAULTS | window)


def network_cases(photo):
    models = Path(onnx.__file__).parent / "backend/test/data/light"
    for network in NETWORKS:
        model = onnx.shape_inference.infer_shapes(onnx.load(models / f"light_{network}.onnx"))
        shapes = {
            info.name: [d.dim_value for d in info.type.tensor_type.shape.dim]
            for info in model.graph.value_info
        }
        layers = [node for node in model.graph.node if "Pool" in node.op_type]
        for number, node in enumerate(layers, 1):
            window = {a.name: tuple(onnx.helper.get_attribute_value(a)) for a in node.attribute}
            x = activations(shapes[node.input[0]], photo)
            window = DEFAULTS | {"kernel_shape": x.shape[2:]} | window
            yield Case(
                f"{network}, {KINDS[node.op_type]} {number}", x, "NCHW", window, node.op_type
            )


def activations(shape, photo):
    """Return a float32 tensor whose channels are pieces of the photograph.

    They hold many equal maxima and, at the borders, negative values, which reveal a wrong tie rule
    or padding with zeros. Sums do not fit float32, which reveals means that are rounded twice.
    """
    batch, channels, height, width = shape
    down, right = photo.shape[0] - height + 1, photo.shape[1] - width + 1
    pieces = [
        photo[top : top + height, left : left + width, c % 3]
        for c in range(batch * channels)
        for top, left in [(7 * c % down, 11 * c % right)]
    ]
    return (np.stack(pieces).reshape(shape).astype(np.float32) - 127.5) / 51


def planes(array, layout):
    """Return the array as (planes, height, width), the form in which all results are compared."""
    if layout.endswith("C"):
        array = np.moveaxis(array, -1, -3)
    return array.reshape(-1, *array.shape[-2:])


def batched(array, layout):
    """Return the array and its layout with batch and channel axes, for ONNX and OpenVINO."""
    if layout == "HWC":
        return array[None], "NHWC"
    return array.reshape((1,) * (4 - array.ndim) + array.shape), "NCHW"


def expected(case):
    """Return (maxima, indices, their source) as planes, from code independent of the kernels."""
    if math.prod(output_extents(case)) > REFERENCE_WINDOWS:
        return *shifted_slices(case), "slices"
    y, indices = _reference.max_pool(case.x, **case.window, layout=case.layout, return_indices=True)
    return planes(y, case.layout), planes(indices, case.layout), "reference"


def axes(case):
    """Return size, kernel, stride, dilation, begin pad and end pad of each spatial axis."""
    window = case.window
    return zip(
        planes(case.x, case.layout).shape[1:],
        *(window[key] for key in ("kernel_shape", "strides", "dilations")),
        window["pads"][:2],
        window["pads"][2:],
        strict=True,
    )


def output_extents(case):
    for size, kernel, stride, dilation, begin, end in axes(case):
        room = size + begin + end - (kernel - 1) * dilation - 1
        if case.window["ceil_mode"]:
            yield min(-(-room // stride), (size + begin - 1) // stride) + 1
        else:
            yield room // stride + 1


def taps(case):
    """For each tap of a window, yield the outputs whose tap is an element, and these elements.

    Both are slices of planes.
    """
    for tap in np.ndindex(*case.window["kernel_shape"]):
        into, taken = [slice(None)], [slice(None)]
        for t, extent, axis in zip(tap, output_extents(case), axes(case), strict=True):
            size, _, stride, dilation, begin, _ = axis
            start = t * dilation - begin
            first = max(0, -(start // stride))  # windows first..last have this tap in the input
            last = min(extent - 1, (size - 1 - start) // stride)
            into.append(slice(first, last + 1))
            taken.append(slice(first * stride + start, last * stride + start + 1, stride))
        yield tuple(into), tuple(taken)


def shifted_slices(case):
    """Pool in NumPy, tap after tap; a later one wins only where it is larger.

    All windows must hold an element, and no NaN.
    """
    x = planes(case.x, case.layout)
    offsets = np.arange(x.size).reshape(x.shape)
    y = np.zeros((len(x), *output_extents(case)), x.dtype)
    indices = np.full(y.shape, -1)
    for into, taken in taps(case):
        better = (indices[into] < 0) | (x[taken] > y[into])
        np.copyto(y[into], x[taken], where=better)
        np.copyto(indices[into], offsets[taken], where=better)
    return y, indices


def shifted_means(case):
    """Average in NumPy: whole numbers tap after tap, floats in pairs, rows first.

    Sums of uint8 are exact in float64. Their quotients by small counts are too far from the middle
    of two integers to be rounded wrong.
    """
    x = planes(case.x, case.layout)
    counts = np.zeros([*output_extents(case)])
    sums = np.zeros((len(x), *counts.shape))
    for into, taken in taps(case):
        sums[into] += x[taken]
        counts[into[1:]] += 1
    if case.x.dtype.kind == "u":
        return np.rint(sums / counts).astype(case.x.dtype)
    for place, (outputs, axis) in enumerate(zip(output_extents(case), axes(case), strict=True), 1):
        _, kernel, stride, _, begin, _ = axis  # (no average of the networks is dilated)
        first = np.arange(outputs) * stride - begin
        x = np.moveaxis(tree(np.moveaxis(x, place, 0), first, kernel), 0, place)
    return x / counts.astype(x.dtype)


def speed(call, *arrays):
    """Return the median time of nine calls, and the bytes read and written per second."""
    samples = []
    for _ in range(9):
        start = time.perf_counter()
        call()
        samples.append(time.perf_counter() - start)
    elapsed = statistics.median(samples)
    return f"{elapsed * 1e6:9.0f} {sum(a.nbytes for a in arrays) / elapsed / 1e9:6.1f}"


def pool_row(case):
    """Pool one case through every interface; return its row of the table, and what differs.

    The native call is timed on one thread, which other processes disturb least. The front ends use
    the default number of threads.
    """
    pool = partial(fastpool.max_pool, case.x, **case.window, layout=case.layout)
    alone, y = np.zeros_like(pool()), np.zeros_like(pool())
    indices = np.zeros(y.shape, np.int64)
    timed = partial(pool, num_threads=1)
    with_indices = partial(timed, return_indices=True, out=y, out_indices=indices)
    times = [
        speed(partial(timed, out=alone), case.x, alone),
        speed(with_indices, case.x, y, indices),
    ]

    x, layout = batched(case.x, case.layout)
    layer = fastpool.openvino.read_layer(openvino_layer(**case.window))
    results = {
        "native": (y, indices, case.layout),
        "onnx": (*fastpool.onnx.max_pool(x, **case.window, layout=layout, n_outputs=2), layout),
        "openvino": (*layer(x, layout=layout), layout),
    }

    want_y, want_indices, source = expected(case)
    problems = [difference("native, maxima alone", planes(alone, case.layout), want_y)]
    for interface, (maxima, where, layout) in results.items():
        problems.append(difference(f"{interface}, maxima", planes(maxima, layout), want_y))
        problems.append(difference(f"{interface}, indices", planes(where, layout), want_indices))
    return row(case.name, case.x, case.window, times, source, problems)


def mean_row(case):
    """Average one case through every interface; return its row of the table, and what differs."""
    x, layout = batched(case.x, case.layout)
    if case.operator == "GlobalAveragePool":
        pool = partial(fastpool.global_avg_pool, case.x, layout=case.layout)
        through_onnx = fastpool.onnx.global_average_pool(x, layout=layout)
        through_openvino = fastpool.openvino.adaptive_avg_pool(x, (1, 1), layout=layout)
    else:
        pool = partial(fastpool.avg_pool, case.x, **case.window, layout=case.layout)
        through_onnx = fastpool.onnx.average_pool(x, **case.window, layout=layout)
        layer = openvino_layer(**case.window, operation="AvgPool")
        through_openvino = fastpool.openvino.read_layer(layer)(x, layout=layout)
    y = np.zeros_like(pool())
    times = [speed(partial(pool, out=y, num_threads=1), case.x, y)]

    want = shifted_means(case)
    problems = [
        difference("native", planes(y, case.layout), want),
        difference("onnx", planes(through_onnx, layout), want),
        difference("openvino", planes(through_openvino, layout), want),
    ]
    return row(case.name, case.x, case.window, times, "sums", problems)


def openvino_layer(kernel_shape, strides, pads, dilations, ceil_mode, operation="MaxPool"):
    """Return the window as XML of OpenVINO's documents; torch's ceil rule came with opset 14."""
    numbers = {
        "kernel": kernel_shape,
        "strides": strides,
        "dilations": dilations,
        "begins": pads[:2],
        "ends": pads[2:],
    }
    return OPENVINO_LAYER.format(
        **{name: ",".join(map(str, values)) for name, values in numbers.items()},
        operation=operation,
        opset="opset16" if operation == "AvgPool" else "opset14" if ceil_mode else "opset8",
        rounding="ceil_torch" if ceil_mode else "floor",
        rest='exclude-pad="true"' if operation == "AvgPool" else 'axis="0"',
    )


def unpool_row(case):
    """Put the maxima of one photograph back in their places, and pool again."""
    pool = partial(fastpool.max_pool, **case.window, layout=case.layout)
    y, indices = pool(case.x, return_indices=True)
    window = {key: case.window[key] for key in ("kernel_shape", "strides")}
    restored = np.ones_like(case.x)
    unpool = partial(fastpool.max_unpool, y, indices, **window, output_shape=case.x.shape)
    timed = partial(unpool, layout=case.layout, num_threads=1, out=restored)
    times = [speed(timed, y, indices, restored)]

    maxima, layout = batched(y, case.layout)
    through_onnx = fastpool.onnx.max_unpool(
        maxima,
        batched(indices, case.layout)[0],
        batched(case.x, case.layout)[0].shape,
        **window,
        layout=layout,
        index_space="output",
    )

    want = np.zeros(planes(case.x, case.layout).shape, case.x.dtype)
    want.reshape(-1)[planes(indices, case.layout)] = planes(y, case.layout)
    problems = [
        difference("native", planes(restored, case.layout), want),
        difference("onnx", planes(through_onnx, layout), want),
        difference("pooled again", pool(restored), y),
    ]
    return row(f"{case.name}, unpooled", y, case.window, times, "scatter", problems)


def row(name, x, window, times, source, problems):
    """Return one line of the table, and the problems with the layer's name in front."""
    shape = f"{'x'.join(map(str, x.shape))} {x.dtype}"
    text = "x".join(map(str, window["kernel_shape"]))
    for key, default in DEFAULTS.items():
        value = window[key]
        if value is True:
            text += " ceil"
        elif value != default:
            text += f" {key[0]}{value[0] if len(set(value)) == 1 else ','.join(map(str, value))}"
    problems = [f"{name} {text}: {problem}" for problem in problems if problem]
    check = f"{'DIFFERS' if problems else 'exact'} ({source})"
    return f"{name:24} {shape:21} {text:15} {' '.join(times):33}  {check}", problems


def montage(photo, layout):
    """Draw the photograph, local maxima, block maxima and an unpooling on one sheet."""
    pool = partial(fastpool.max_pool, photo, layout=layout)
    height, width = photo.shape[:2]
    blocks = pool(**BLOCKS).repeat(8, axis=0).repeat(8, axis=1)[:height, :width]
    restored = fastpool.max_unpool(
        *pool(**HALVE, return_indices=True), **HALVE, output_shape=photo.shape, layout=layout
    )
    panels = {
        f"before: {width} x {height}": photo,
        "9x9 maximum, stride 1": pool(**LOCAL_MAXIMUM),
        "8x8 maximum, stride 8 (each pixel drawn 8x8)": blocks,
        "2x2 maximum, stride 2, put back by max_unpool": restored,
    }
    return sheet_of(panels, width, height)


def without_data(photo):
    """Return a photograph of float32 in which a few pixels have no data."""
    photo = photo.astype(np.float32)
    photo[WITHOUT_DATA] = NO_DATA
    return photo


def lost_means(photo):
    """Draw the means of a photograph with pixels without data, and count those that are lost.

    SciPy's filter adds what enters a window and subtracts what leaves it. A large number that
    enters takes the digits of all others with it, up to the end of the row.

    Returns
    -------
    sheet : Image
    lost : list of int
        For SciPy and fastpool, means of windows with data alone that are off by a grey level.
    """
    pool = partial(fastpool.avg_pool, layout="HW", **MEAN)
    x, begin = without_data(photo), MEAN["kernel_shape"][0] // 2
    filtered = scipy.ndimage.uniform_filter(x, MEAN["kernel_shape"])[begin:-begin, begin:-begin]
    missing = np.where(x == NO_DATA, np.float32(np.nan), x)
    has_data = ~np.isnan(pool(missing))
    right = pool(photo, dtype="float64")
    panels = {
        "before: 5 pixels have no data (-3.4e38)": x,
        "15x15 means by SciPy's uniform_filter": filtered,
        "15x15 means by fastpool: the other windows are right": pool(x),
        'no data as NaN, fastpool with nan="ignore"': pool(missing, nan="ignore"),
    }
    panels = {name: np.clip(panel, 0, 255).astype(np.uint8) for name, panel in panels.items()}
    lost = [int((abs(y - right) > 1)[has_data].sum()) for y in (filtered, pool(x))]
    return sheet_of(panels, *photo.shape[::-1]), lost


def run(output):
    """Run the demo, write the pictures into the folder `output`, and return the exit status."""
    fastpool.show_config()
    print(f"\n{HEADER}")
    photos = photographs()
    work = [(pool_row, case) for case in photograph_cases(photos, PHOTOGRAPH_WINDOWS)]
    work += [(unpool_row, case) for case in photograph_cases(photos, UNPOOLED_WINDOWS)]
    cases = [
        case._replace(name=f"{case.name}, mean", operator="AveragePool")
        for case in photograph_cases(photos, PHOTOGRAPH_WINDOWS)
    ]
    raster = without_data(photos["camera"][0])
    cases.append(Case("camera, no data", raster, "HW", DEFAULTS | MEAN, "AveragePool"))
    cases += network_cases(photos["coffee"][0])
    work += [(pool_row if case.operator == "MaxPool" else mean_row, case) for case in cases]
    problems = []
    for make_row, case in work:
        text, found = make_row(case)
        print(text, flush=True)
        problems += found

    output.mkdir(parents=True, exist_ok=True)
    for name, (photo, layout) in photos.items():
        montage(photo, layout).save(output / f"{name}.png")
    print(f"\nbefore and after: {', '.join(f'{name}.png' for name in photos)} in {output}")
    sheet, (by_scipy, by_fastpool) = lost_means(photos["camera"][0])
    sheet.save(output / "means.png")
    print(
        f"means.png: of the windows without pixels that have no data, {by_scipy} means by SciPy's "
        f"uniform_filter are wrong, and {by_fastpool} by fastpool"
    )

    lines, found = science.run(output)
    print("\nscience.html: labels, a raster and a photograph, next to other tools on one thread")
    print(*lines, sep="\n")
    problems += found

    if problems:
        print(f"{len(problems)} results differ:", *problems, sep="\n  ")
        return 1
    print(f"all {len(work)} rows exact: fastpool, fastpool.onnx and fastpool.openvino")
    return 0
