"""The libraries that are measured, and how each is called.

A peer is one library. Its `ways` name its calls: for maxima and unpooling ("max") here, for
averages ("avg") in mean_peers.py. A way is a method that takes a workload and its arrays. It
prepares the call for many repetitions: the result is allocated before if the library allows it,
with no copies and no conversions. It returns the call and a function that returns the results of
the last call, as NumPy arrays in the workload's layout. If the library has no such operation, it
returns None. If the library refuses the arguments, it may raise.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .._planning.dtypes import lowest
from . import answers
from .workloads import QUANTIZED

ALIGNMENT = 64


def fresh(shape, dtype):
    """Return an array that starts at a cache line, so that no library has a better address.

    It is filled, so all pages are resident and no earlier answer is left.
    """
    dtype = np.dtype(dtype)
    count = int(np.prod(shape)) * dtype.itemsize
    memory = np.full(count + ALIGNMENT, 1, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + count].view(dtype).reshape(shape)


def with_gaps(array, workload):
    """Return an equal array whose rows, of elements or pixels, have the workload's gap."""
    axis = workload.spatial_axes[-1]
    shape = list(array.shape)
    shape[axis] += workload.row_gap
    wider = fresh(shape, array.dtype)
    part = wider[(slice(None),) * axis + (slice(array.shape[axis]),)]
    part[...] = array
    return part


def zero_pads(workload):
    """Return (begins, ends) with which rounding down gives the outputs; nothing is cropped."""
    begins, ends = workload.full_pads
    return begins, tuple(max(0, end) for end in ends)


def along_axes(workload, values, otherwise):
    """Return one value per axis of the array, from one per spatial axis."""
    last = 1 if workload.channels_last else 0
    return (*[otherwise] * (2 - last), *values, *[otherwise] * last)


class Peer:
    """A library with a number of threads."""

    version = np.__version__
    exact = False  # whether averages must have the bits of fastpool's rule
    views = False  # whether it takes arrays with gaps; others get contiguous ones, a copy for free
    ways = {"max": {}, "avg": {}}

    def __init__(self, threads):
        self.threads = threads


class Fastpool(Peer):
    """fastpool: a plan, or the function if there is no plan, with memory for the results."""

    exact = True
    views = True

    def __init__(self, threads):
        super().__init__(threads)
        import fastpool

        self.fastpool, self.version = fastpool, fastpool.__version__

    def planned(self, workload, x, indices=None):
        settings = {"layout": workload.layout, "num_threads": self.threads}
        if workload.kind == "unpool":
            window = {"kernel_shape": workload.kernel_shape, "strides": workload.strides}
            settings |= window | {"output_shape": workload.shape}
            plan = self.fastpool.plan_max_unpool(x.shape, **settings)
            out = fresh(workload.shape, x.dtype)
            return lambda: plan(x, indices, out=out), lambda: (out,)
        out = fresh(workload.output_shape, x.dtype)
        if workload.op == "avg":
            call = self._average(workload, x, out, settings)
            return call, lambda: (out,)
        settings |= workload.window
        if workload.kind == "values":
            plan = self.fastpool.plan_max_pool(x.shape, x.dtype, **settings)
            return lambda: plan(x, out=out), lambda: (out,)
        plan = self.fastpool.plan_max_pool(x.shape, x.dtype, **settings, return_indices=True)
        places = fresh(out.shape, np.int64)
        return lambda: plan(x, out=out, out_indices=places), lambda: (out, places)

    def _average(self, workload, x, out, settings):
        if workload.kind == "qlinear":
            window = {
                name: workload.window[name] for name in workload.window if name != "dilations"
            }
            window |= {"channels_last": workload.channels_last, "num_threads": self.threads}
            pool, scales = self.fastpool.onnx.qlinear_average_pool, QUANTIZED[workload.dtype]
            return lambda: pool(x, *scales, **window, out=out)
        if workload.numerics:
            settings["numerics"] = workload.numerics
        make = self.fastpool.plan_avg_pool
        if workload.output_size:
            make = self.fastpool.plan_adaptive_avg_pool
            plan = make(x.shape, x.dtype, workload.output_size, **settings)
        else:
            plan = make(x.shape, x.dtype, **workload.window, **settings)
        return lambda: plan(x, out=out)

    ways = {"max": {"fastpool": planned}, "avg": {"fastpool": planned}}


class Earlier(Fastpool):
    """Another version of fastpool, in a separate environment; ci/perf_report.sh makes one."""

    ways = {"max": {"earlier": Fastpool.planned}, "avg": {"earlier": Fastpool.planned}}


class MemoryLimit(Peer):
    """The limit that memory sets: read the bytes of the input once, write those of the output once.

    NumPy's maximum over bytes reads, and filling with zeros writes. Both run at the speed of the
    memory, or of the cache that holds the arrays. On several threads each takes its share, unless
    one thread alone is faster.
    """

    def alone(self, workload, *_):
        source, target = self._arrays(workload)
        return lambda: _read_and_write((source, target)), None

    def shared(self, workload, *_):
        if self.threads > 1:
            shares = [np.array_split(array, self.threads) for array in self._arrays(workload)]
            shares = [*zip(*shares, strict=True)]
            pool = ThreadPoolExecutor(self.threads)
            return lambda: [*pool.map(_read_and_write, shares)], None

    def _arrays(self, workload):
        return (fresh(count, np.uint8) for count in (workload.bytes_read, workload.bytes_written))

    ways = dict.fromkeys(("max", "avg"), {"limit": alone, "limit-shared": shared})


def _read_and_write(arrays):
    source, target = arrays
    np.maximum.reduce(source)
    target.fill(0)


class NumPy(Peer):
    def slices(self, workload, x, indices=None):
        if workload.kind == "values":
            maxima = answers.Sliced(workload, x.dtype, np.maximum, lowest(workload.dtype))
            return lambda: maxima(x), lambda: (maxima(x),)
        if workload.kind == "unpool":
            out = fresh(workload.shape, x.dtype)
            flat, values = out.reshape(-1), x.ravel()
            offsets = answers.memory_offsets(workload, indices).ravel()

            def scatter():
                flat.fill(0)
                flat[offsets] = values

            return scatter, lambda: (out,)

    ways = {"max": {"numpy": slices}}


class SciPy(Peer):
    """SciPy: the maximum filter of scipy.ndimage, which only has stride 1."""

    def __init__(self, threads):
        super().__init__(threads)
        import scipy.ndimage

        self.maximum_filter, self.version = scipy.ndimage.maximum_filter, scipy.__version__

    def filter(self, workload, x, indices=None):
        if workload.kind != "values" or max(workload.strides + workload.dilations) > 1:
            return
        begins, _ = workload.full_pads
        middles = [kernel // 2 for kernel in workload.kernel_shape]
        settings = {
            "size": along_axes(workload, workload.kernel_shape, 1),
            "origin": along_axes(workload, np.subtract(begins, middles), 0),
            "cval": lowest(workload.dtype),
        }
        out = fresh(x.shape, x.dtype)
        here = tuple(slice(extent) for extent in workload.output_shape)
        call = lambda: self.maximum_filter(x, output=out, mode="constant", **settings)  # noqa: E731
        return call, lambda: (out[here],)

    ways = {"max": {"scipy": filter}}


class OpenCV(Peer):
    """OpenCV: dilation by a box, plane by plane, which only has stride 1."""

    dtypes = ("float32", "float64", "uint8", "int16")

    def __init__(self, threads):
        super().__init__(threads)
        import cv2

        cv2.setNumThreads(threads)
        self.dilate, self.version = cv2.dilate, cv2.__version__

    def dilated(self, workload, x, indices=None):
        one = max(workload.strides + workload.dilations) == 1
        if workload.kind != "values" or workload.channels_last or not one:
            return
        if len(workload.sizes) > 2 or workload.dtype not in self.dtypes:
            return
        box = np.ones((1, *workload.kernel_shape)[-2:], np.uint8)
        begins, _ = workload.full_pads
        anchor = (0, *begins)[-2:][::-1]
        rows = (1, *workload.sizes)[-2:]
        out = fresh(x.shape, x.dtype)
        planes = [*zip(x.reshape(-1, *rows), out.reshape(-1, *rows), strict=True)]

        def call():
            for plane, into in planes:
                self.dilate(plane, box, dst=into, anchor=anchor)

        here = tuple(slice(extent) for extent in workload.output_shape)
        return call, lambda: (out[here],)

    ways = {"max": {"opencv": dilated}}


class OnnxRuntime(Peer):
    """onnxruntime: sessions of one node with bound arrays.

    By default onnxruntime may block the channels of float32 arrays, which costs two reorderings.
    "onnxruntime-plain" disables that. For channels last it has a special operator for 8 bits, and
    transposes other types.
    """

    def __init__(self, threads):
        super().__init__(threads)
        import onnx
        import onnxruntime

        onnxruntime.set_default_logger_severity(4)
        self.onnx, self.runtime, self.version = onnx, onnxruntime, onnxruntime.__version__

    def default(self, workload, x, indices=None):
        return self._session(workload, x, indices, "ORT_ENABLE_ALL")

    def plain(self, workload, x, indices=None):
        if workload.kind == "values" and workload.dtype == "float32" and not workload.channels_last:
            return self._session(workload, x, indices, "ORT_ENABLE_EXTENDED")

    def _session(self, workload, x, indices, level):
        if workload.channels_last and workload.kind != "values":
            return
        inputs = {"x": x}
        if workload.kind == "unpool":
            outputs = {"y": fresh(workload.shape, x.dtype)}
            inputs |= {"indices": indices, "shape": np.array(workload.shape)}
        else:
            outputs = {"y": fresh(workload.output_shape, x.dtype)}
            if workload.kind == "indices":
                outputs["indices"] = fresh(workload.output_shape, np.int64)
        return self._bound(self._model(workload, inputs, outputs), inputs, outputs, level)

    def _bound(self, model, inputs, outputs, level):
        options = self.runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.graph_optimization_level = getattr(self.runtime.GraphOptimizationLevel, level)
        session = self.runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        bound = self.runtime.OrtValue.ortvalue_from_numpy
        for name, array in inputs.items():
            binding.bind_ortvalue_input(name, bound(array))
        for name, array in outputs.items():
            binding.bind_ortvalue_output(name, bound(array))
        return lambda: session.run_with_iobinding(binding), lambda: (*outputs.values(),)

    def _model(self, workload, inputs, outputs):
        helper = self.onnx.helper
        window = dict(workload.window, ceil_mode=int(workload.ceil_mode))
        if workload.auto_pad != "NOTSET":
            del window["pads"]
        if workload.kind == "unpool":
            window = {name: window[name] for name in ("kernel_shape", "strides", "pads")}
            nodes = [helper.make_node("MaxUnpool", [*inputs], [*outputs], **window)]
        elif not workload.channels_last:
            nodes = [helper.make_node("MaxPool", [*inputs], [*outputs], **window)]
        elif workload.dtype in ("uint8", "int8"):
            node = helper.make_node("NhwcMaxPool", ["x"], ["y"], domain="com.microsoft", **window)
            nodes = [node]
        else:
            nodes = self._transposed("MaxPool", len(workload.shape), window)
        return self._serialized(nodes, inputs, outputs)

    def _transposed(self, operator, rank, attributes):
        """Return the nodes of an operator on an array with channels last."""
        make, last = self.onnx.helper.make_node, rank - 1
        forth, back = (0, last, *range(1, last)), (0, *range(2, last + 1), 1)
        return [
            make("Transpose", ["x"], ["first"], perm=forth),
            make(operator, ["first"], ["pooled"], **attributes),
            make("Transpose", ["pooled"], ["y"], perm=back),
        ]

    def _serialized(self, nodes, inputs, outputs, opset=22, constants=()):
        helper = self.onnx.helper

        def infos(arrays):
            for name, array in arrays.items():
                element = helper.np_dtype_to_tensor_dtype(array.dtype)
                yield helper.make_tensor_value_info(name, element, array.shape)

        graph = [*infos(inputs)], [*infos(outputs)], constants
        opsets = {"": opset, "com.microsoft": 1}
        model = helper.make_model(
            helper.make_graph(nodes, "pooling", *graph),
            opset_imports=[helper.make_opsetid(*opset) for opset in opsets.items()],
            ir_version=10,
        )
        return model.SerializeToString()

    ways = {"max": {"onnxruntime": default, "onnxruntime-plain": plain}}


class OpenVINO(Peer):
    """OpenVINO: a compiled model with the arrays as tensors; channels last by its preprocessor."""

    def __init__(self, threads):
        super().__init__(threads)
        import openvino
        import openvino.opset14
        import openvino.preprocess

        self.openvino, self.opset, self.core = openvino, openvino.opset14, openvino.Core()
        self.version = openvino.__version__

    def compiled(self, workload, x, indices=None):
        if workload.kind == "unpool" or (workload.kind == "indices" and workload.channels_last):
            return
        arrays = [fresh(workload.output_shape, x.dtype)]
        if workload.kind == "indices":
            arrays.append(fresh(workload.output_shape, np.int64))
        return self._requested(workload, x, arrays, self._maxima)

    def _requested(self, workload, x, arrays, operation):
        """Return the call of a model of one operation: a function of the workload and its input."""
        ov = self.openvino
        element = ov.Type(x.dtype) if workload.dtype != "bfloat16" else ov.Type.bf16
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": self.threads,
            "INFERENCE_PRECISION_HINT": "bf16" if workload.dtype == "bfloat16" else "f32",
        }
        shape = [workload.shape[0], workload.channels, *workload.sizes]
        parameter = self.opset.parameter(shape, element)
        outputs = operation(workload, parameter).outputs()[: len(arrays)]
        model = self._with_layout(workload, ov.Model(outputs, [parameter]))
        request = self.core.compile_model(model, "CPU", settings).create_infer_request()

        def tensor(array):
            if workload.dtype == "bfloat16":
                return ov.Tensor(array.view(np.uint16), ov.Shape(array.shape), element)
            return ov.Tensor(array, shared_memory=True)

        request.set_input_tensor(tensor(x))
        for number, array in enumerate(arrays):
            request.set_output_tensor(number, tensor(array))
        call = lambda: request.infer(None, share_inputs=True, share_outputs=True)  # noqa: E731
        return call, lambda: (*arrays,)

    def _maxima(self, workload, x):
        begins, ends = zero_pads(workload)
        return self.opset.max_pool(
            x,
            *(workload.strides, workload.dilations, begins, ends, workload.kernel_shape),
            rounding_type="floor",
            index_element_type="i64",
        )

    def _with_layout(self, workload, model):
        if not workload.channels_last:
            return model
        ov = self.openvino
        spatial = "DHW"[-len(workload.sizes) :]
        first, last = ov.Layout(f"NC{spatial}"), ov.Layout(f"N{spatial}C")
        processor = ov.preprocess.PrePostProcessor(model)
        for side in (processor.input(), processor.output()):
            side.tensor().set_layout(last)
            side.model().set_layout(first)
        return processor.build()

    ways = {"max": {"openvino": compiled}}
