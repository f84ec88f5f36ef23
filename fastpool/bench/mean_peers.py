"""How the averages of the libraries in peers.py are called, and two libraries that only average."""

from dataclasses import replace

import numpy as np

from . import answers, peers
from .means import divisors
from .peers import along_axes, fresh, zero_pads
from .workloads import QUANTIZED

EIGHT_BITS = ("uint8", "int8")


def with_window(workload):
    """Return the workload with a window, None if its adaptive windows are not all alike."""
    if not workload.output_size:
        return workload
    ranges = [*zip(workload.sizes, workload.output_size, strict=True)]
    if any(size % outputs for size, outputs in ranges):
        return None
    n, window = len(ranges), tuple(size // outputs for size, outputs in ranges)
    more = {"dilations": (1,) * n, "pads": (0,) * 2 * n, "output_size": ()}
    return replace(workload, kernel_shape=window, strides=window, **more)


def unpadded(workload):
    """Whether no window reaches beyond the array."""
    begins, ends = workload.full_pads
    return max(begins + ends) <= 0


def blocks(workload):
    """Return the window if the array is divided into blocks, without a rest, else None."""
    workload = with_window(workload)
    if workload and workload.kernel_shape == workload.strides and unpadded(workload):
        if not any(map(np.mod, workload.sizes, workload.strides)):
            return workload.strides


def slides(workload):
    """Whether stride 1, and a mean that counts padding, is all that is wanted."""
    one = not workload.output_size and max(workload.strides) == 1
    return one and (workload.count_include_pad or unpadded(workload))


def accumulator(dtype):
    """Return the type in which small numbers of a type are added."""
    if dtype.kind in "iu":
        return np.dtype(np.int32)
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


class NumPy(peers.NumPy):
    """NumPy: sums of shifted slices, divided; and the mean over the axes of blocks."""

    def sliced(self, workload, x):
        workload = with_window(workload)
        if not workload or workload.kind == "qlinear":
            return
        add = answers.Sliced(workload, accumulator(x.dtype), np.add, 0)
        divide = np.floor_divide if x.dtype.kind in "iu" else np.divide
        counts = divisors(workload).astype(accumulator(x.dtype))
        out = fresh(workload.output_shape, x.dtype)
        call = lambda: divide(add(x), counts, out=out, casting="unsafe")  # noqa: E731
        return call, lambda: (out,)

    def mean(self, workload, x):
        window = blocks(workload)
        if not window or workload.dtype not in ("float32", "float64"):
            return
        shape, axes = [*x.shape], []
        for axis, size in reversed([*zip(workload.spatial_axes, window, strict=True)]):
            shape[axis : axis + 1] = shape[axis] // size, size
            axes = [axis + 1, *(other + 1 for other in axes)]
        out, view, axes = fresh(workload.output_shape, x.dtype), x.reshape(shape), tuple(axes)
        return lambda: np.mean(view, axis=axes, out=out), lambda: (out,)

    ways = peers.NumPy.ways | {"avg": {"numpy": sliced, "numpy-mean": mean}}


class SciPy(peers.SciPy):
    """SciPy: the uniform filter, which has stride 1 and counts padding."""

    def averaged(self, workload, x):
        if not slides(workload) or workload.kind == "qlinear":
            return
        from scipy.ndimage import uniform_filter

        begins, _ = workload.full_pads
        middles = [kernel // 2 for kernel in workload.kernel_shape]
        settings = {
            "size": along_axes(workload, workload.kernel_shape, 1),
            "origin": along_axes(workload, np.subtract(begins, middles), 0),
        }
        out = fresh(x.shape, x.dtype)
        here = tuple(slice(extent) for extent in workload.output_shape)
        call = lambda: uniform_filter(x, output=out, mode="constant", **settings)  # noqa: E731
        return call, lambda: (out[here],)

    ways = peers.SciPy.ways | {"avg": {"scipy": averaged}}


class Bottleneck(peers.Peer):
    """bottleneck: the moving mean along one axis."""

    def __init__(self, threads):
        super().__init__(threads)
        import bottleneck

        self.move_mean, self.version = bottleneck.move_mean, bottleneck.__version__

    def moved(self, workload, x):
        if len(workload.sizes) > 1 or not slides(workload) or not unpadded(workload):
            return
        if workload.dtype not in ("float32", "float64"):
            return
        (window,), (axis,) = workload.kernel_shape, workload.spatial_axes
        call = lambda: self.move_mean(x, window, axis=axis)  # noqa: E731
        here = (*[slice(None)] * axis, slice(window - 1, None))
        return call, lambda: (call()[here],)

    ways = {"max": {}, "avg": {"bottleneck": moved}}


class XArray(peers.Peer):
    """xarray: the mean of coarsened dimensions."""

    def __init__(self, threads):
        super().__init__(threads)
        import xarray

        self.xarray, self.version = xarray, xarray.__version__

    def coarsened(self, workload, x):
        window = blocks(workload)
        if not window or workload.dtype not in ("float32", "float64"):
            return
        array = self.xarray.DataArray(x)
        names = [array.dims[axis] for axis in workload.spatial_axes]
        window = dict(zip(names, window, strict=True))
        call = lambda: array.coarsen(window).mean()  # noqa: E731
        return call, lambda: (call().values,)

    ways = {"max": {}, "avg": {"xarray": coarsened}}


class OpenCV(peers.OpenCV):
    """OpenCV: the normalised box filter at stride 1, and resizing by areas where blocks are."""

    def __init__(self, threads):
        super().__init__(threads)
        import cv2

        self.cv2 = cv2

    def box(self, workload, x):
        if not self._takes(workload) or not slides(workload):
            return
        out = fresh(x.shape, x.dtype)
        begins, _ = workload.full_pads
        settings = {
            "ddepth": -1,
            "ksize": (1, *workload.kernel_shape)[-2:][::-1],
            "anchor": (0, *begins)[-2:][::-1],
            "normalize": True,
            "borderType": self.cv2.BORDER_CONSTANT,
        }
        pairs = [*zip(self._images(workload, x), self._images(workload, out), strict=True)]

        def call():
            for image, into in pairs:
                self.cv2.boxFilter(image, dst=into, **settings)

        here = tuple(slice(extent) for extent in workload.output_shape)
        return call, lambda: (out[here],)

    def areas(self, workload, x):
        if not self._takes(workload) or not blocks(workload):
            return
        out = fresh(workload.output_shape, x.dtype)
        if workload.channels_last:
            pairs = [*zip(self._images(workload, x), self._images(workload, out), strict=True)]
        else:  # all planes as one image
            pairs = [(x.reshape(-1, x.shape[-1]), out.reshape(-1, out.shape[-1]))]

        def call():
            for image, into in pairs:
                size = into.shape[1::-1]
                self.cv2.resize(image, size, dst=into, interpolation=self.cv2.INTER_AREA)

        return call, lambda: (out,)

    def _takes(self, workload):
        plain = workload.kind != "qlinear" and workload.dtype in self.dtypes
        return plain and len(workload.sizes) <= 2

    def _images(self, workload, array):
        """Return the images of an array with channels last, otherwise its planes."""
        if workload.channels_last:
            return array.reshape(len(array), -1, *array.shape[-2:])
        return array.reshape(-1, *(1, *array.shape[2:])[-2:])

    ways = peers.OpenCV.ways | {"avg": {"opencv": box, "opencv-areas": areas}}


class OnnxRuntime(peers.OnnxRuntime):
    """onnxruntime: two versions of AveragePool at two levels; for 8 bits QLinearAveragePool."""

    def newest(self, workload, x):
        return self._averaged(workload, x, "ORT_ENABLE_ALL", 22)

    def eleven(self, workload, x):
        if workload.dtype == "float32":
            return self._averaged(workload, x, "ORT_ENABLE_ALL", 11)

    def newest_plain(self, workload, x):
        if workload.dtype == "float32" and not workload.channels_last:
            return self._averaged(workload, x, "ORT_ENABLE_EXTENDED", 22)

    def eleven_plain(self, workload, x):
        if workload.dtype == "float32" and not workload.channels_last:
            return self._averaged(workload, x, "ORT_ENABLE_EXTENDED", 11)

    def _averaged(self, workload, x, level, opset):
        workload = with_window(workload)
        if not workload:
            return
        prefix, window = "Global" if workload.is_global else "", {}
        if not prefix:
            window = workload.window | {"ceil_mode": int(workload.ceil_mode)}
            window["count_include_pad"] = int(workload.count_include_pad)
            del window["dilations"]
            if workload.auto_pad != "NOTSET":
                del window["pads"]
        make, constants = self.onnx.helper.make_node, []
        if workload.dtype in EIGHT_BITS:
            names = ["x", "x_scale", "x_zero", "y_scale", "y_zero"]
            constants = self._scales(workload, names[1:])
            window["channels_last"] = int(workload.channels_last)
            operator = f"QLinear{prefix}AveragePool"
            nodes = [make(operator, names, ["y"], domain="com.microsoft", **window)]
        elif workload.channels_last:
            nodes = self._transposed(f"{prefix}AveragePool", len(workload.shape), window)
        else:
            nodes = [make(f"{prefix}AveragePool", ["x"], ["y"], **window)]
        inputs, outputs = {"x": x}, {"y": fresh(workload.output_shape, x.dtype)}
        model = self._serialized(nodes, inputs, outputs, opset, constants)
        return self._bound(model, inputs, outputs, level)

    def _scales(self, workload, names):
        values = QUANTIZED[workload.dtype] if workload.kind == "qlinear" else (1, 0, 1, 0)
        types = (np.float32, workload.dtype) * 2
        return [
            self.onnx.numpy_helper.from_array(np.array(value, dtype), name)
            for name, value, dtype in zip(names, values, types, strict=True)
        ]

    ways = peers.OnnxRuntime.ways | {
        "avg": {
            "onnxruntime": newest,
            "onnxruntime-11": eleven,
            "onnxruntime-plain": newest_plain,
            "onnxruntime-11-plain": eleven_plain,
        }
    }


class OpenVINO(peers.OpenVINO):
    """OpenVINO: AvgPool or AdaptiveAvgPool, and for global means ReduceMean as well."""

    def averaged(self, workload, x):
        if workload.kind != "qlinear":
            operation = self._adaptive if workload.output_size else self._average
            return self._into_fresh(workload, x, operation)

    def reduced(self, workload, x):
        if workload.kind != "qlinear" and workload.is_global:
            return self._into_fresh(workload, x, self._mean)

    def _into_fresh(self, workload, x, operation):
        return self._requested(workload, x, [fresh(workload.output_shape, x.dtype)], operation)

    def _adaptive(self, workload, x):
        return self.opset.adaptive_avg_pool(x, [*workload.output_size])

    def _average(self, workload, x):
        n = len(workload.sizes)
        pads, rounding = (workload.pads[:n], workload.pads[n:]), "floor"
        if workload.ceil_mode:
            rounding = "ceil_torch"
        elif workload.auto_pad != "NOTSET":
            pads = zero_pads(workload)
        exclude = not workload.count_include_pad
        window = workload.strides, *pads, workload.kernel_shape, exclude, rounding
        return self.opset.avg_pool(x, *window)

    def _mean(self, workload, x):
        return self.opset.reduce_mean(x, [*range(2, len(workload.shape))], keep_dims=True)

    ways = peers.OpenVINO.ways | {"avg": {"openvino": averaged, "openvino-mean": reduced}}
