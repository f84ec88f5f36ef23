"""More peers: libraries with their own array types."""

import numpy as np

from .._planning.dtypes import lowest
from . import answers
from .peers import Peer, along_axes, fresh, zero_pads


class Torch(Peer):
    """torch, in four ways. Channels last is the memory format of that name.

    The ways are the functions that programs call, which take no memory for their results; the
    operators below them, which do and always find indices; oneDNN on an array in its own format;
    and the operator of quantized arrays.
    """

    def __init__(self, threads):
        super().__init__(threads)
        import torch

        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)
        torch.set_grad_enabled(False)
        self.torch, self.version = torch, torch.__version__

    def function(self, workload, x, indices=None):
        torch, n = self.torch, len(workload.sizes)
        if n == 1 and workload.channels_last:
            return
        functions = torch.nn.functional
        tensor = self._tensor(workload, x)
        if workload.kind == "unpool":
            unpool = getattr(functions, f"max_unpool{n}d")
            places = self._tensor(workload, indices - answers.plane_starts(workload))
            window = workload.kernel_shape, workload.strides, workload.pads[:n]
            call = lambda: unpool(tensor, places, *window, output_size=workload.sizes)  # noqa: E731
            return call, lambda: (self._array(workload, call()),)
        pool = getattr(functions, f"max_pool{n}d")
        window = self._window(workload)
        if window:
            call = lambda: pool(tensor, *window, workload.kind == "indices")  # noqa: E731
            return call, lambda: self._results(workload, call())
        if workload.kind == "values":
            pads = [pad for pair in zip(*zero_pads(workload), strict=True) for pad in pair[::-1]]
            window = workload.kernel_shape, workload.strides, 0, workload.dilations
            info = torch.finfo if tensor.is_floating_point() else torch.iinfo
            settings = {"pad": pads[::-1], "value": info(tensor.dtype).min}
            call = lambda: pool(functions.pad(tensor, **settings), *window)  # noqa: E731
            return call, lambda: self._results(workload, call())

    def out(self, workload, x, indices=None):
        nn, n = self.torch._C._nn, len(workload.sizes)
        tensor = self._tensor(workload, x)
        if workload.kind == "unpool":
            if n == 1 or workload.channels_last:
                return
            y = self._tensor(workload, fresh(workload.shape, x.dtype))
            places = self._tensor(workload, indices - answers.plane_starts(workload))
            window = () if n == 2 else (workload.strides, workload.pads[:n])
            unpool = getattr(nn, f"max_unpool{n}d")
            call = lambda: unpool(tensor, places, workload.sizes, *window, out=y)  # noqa: E731
            return call, lambda: (self._array(workload, y),)
        window = self._window(workload)
        if n == 1 or not window:
            return
        shape = workload.output_shape
        both = [self._tensor(workload, fresh(shape, dtype)) for dtype in (x.dtype, np.int64)]
        pool = getattr(nn, f"max_pool{n}d_with_indices")
        return lambda: pool(tensor, *window, out=both), lambda: self._results(workload, both)

    def onednn(self, workload, x, indices=None):
        n, window = len(workload.sizes), self._window(workload)
        if workload.kind != "values" or workload.channels_last or n == 1 or not window:
            return
        if max(workload.dilations) > 1 or workload.dtype not in ("float32", "bfloat16"):
            return
        tensor = self._tensor(workload, x).to_mkldnn()
        pool = getattr(self.torch, f"mkldnn_max_pool{n}d")
        call = lambda: pool(tensor, *window)  # noqa: E731
        dtype = self.torch.bfloat16 if workload.dtype == "bfloat16" else None
        return call, lambda: self._results(workload, call().to_dense(dtype))

    def quantized(self, workload, x, indices=None):
        torch, window = self.torch, self._window(workload)
        if workload.kind != "values" or len(workload.sizes) != 2 or not window:
            return
        if workload.dtype not in ("uint8", "int8"):
            return
        tensor = torch._make_per_tensor_quantized_tensor(self._tensor(workload, x), 1.0, 0)
        if workload.channels_last:
            tensor = tensor.contiguous(memory_format=torch.channels_last)
        call = lambda: torch.quantized_max_pool2d(tensor, *window)  # noqa: E731
        return call, lambda: self._results(workload, call().int_repr())

    def _window(self, workload):
        """Return positional arguments, or None if padding is asymmetric or over half a window."""
        n = len(workload.sizes)
        begins, ends = workload.pads[:n], workload.pads[n:]
        half = all(2 * pad <= k for pad, k in zip(begins, workload.kernel_shape, strict=True))
        if begins == ends and half and workload.auto_pad == "NOTSET":
            window = workload.kernel_shape, workload.strides, begins, workload.dilations
            return *window, workload.ceil_mode

    def _tensor(self, workload, array):
        """Return a tensor over the array's memory, with axes in torch's order."""
        if array.dtype.name == "bfloat16":
            tensor = self.torch.from_numpy(array.view(np.int16)).view(self.torch.bfloat16)
        else:
            tensor = self.torch.from_numpy(array)
        return tensor.movedim(-1, 1) if workload.channels_last else tensor

    def _array(self, workload, tensor):
        tensor = tensor.movedim(1, -1) if workload.channels_last else tensor
        tensor = tensor.contiguous()
        if workload.dtype == "bfloat16" and tensor.dtype == self.torch.bfloat16:
            return tensor.view(self.torch.int16).numpy().view(workload.dtype)
        return tensor.numpy()

    def _results(self, workload, results):
        if workload.kind == "values":
            values = results if isinstance(results, self.torch.Tensor) else results[0]
            return (self._array(workload, values),)
        values, places = (self._array(workload, tensor) for tensor in results)
        return values, answers.whole_indices(workload, places)

    ways = {
        "max": {
            "torch": function,
            "torch-out": out,
            "torch-onednn": onednn,
            "torch-quantized": quantized,
        }
    }


class Jax(Peer):
    """JAX: a compiled reduce_window."""

    def __init__(self, threads):
        super().__init__(threads)
        import jax

        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_x64", True)
        self.jax, self.version = jax, jax.__version__

    def compiled(self, workload, x, indices=None):
        if workload.kind != "values":
            return
        lax = self.jax.lax
        pads = zip(*zero_pads(workload), strict=True)
        settings = {
            "window_dimensions": along_axes(workload, workload.kernel_shape, 1),
            "window_strides": along_axes(workload, workload.strides, 1),
            "padding": along_axes(workload, pads, (0, 0)),
            "window_dilation": along_axes(workload, workload.dilations, 1),
        }
        start = np.asarray(lowest(workload.dtype), x.dtype)
        pool = self.jax.jit(lambda a: lax.reduce_window(a, start, lax.max, **settings))
        tensor = self.jax.numpy.asarray(x)
        call = lambda: pool(tensor).block_until_ready()  # noqa: E731
        return call, lambda: (np.asarray(call()),)

    ways = {"max": {"jax": compiled}}


def named_padding(workload):
    """Return "VALID" or "SAME" if the workload's padding is that, else None."""
    begins, ends = workload.full_pads
    if not any(begins) and max(ends) <= 0:
        return "VALID"
    totals = []
    axes = zip(workload.sizes, workload.kernel_shape, workload.strides, strict=True)
    for size, kernel, stride in axes:
        totals.append(max(0, (-(-size // stride) - 1) * stride + kernel - size))
    halves = tuple(total // 2 for total in totals)
    rest = tuple(total - half for total, half in zip(totals, halves, strict=True))
    return "SAME" if (begins, ends) == (halves, rest) else None


class TensorFlow(Peer):
    """TensorFlow: raw operators, called eagerly. Only channels last has indices."""

    def __init__(self, threads):
        super().__init__(threads)
        import tensorflow

        tensorflow.config.threading.set_intra_op_parallelism_threads(threads)
        tensorflow.config.threading.set_inter_op_parallelism_threads(1)
        self.tensorflow, self.version = tensorflow, tensorflow.__version__

    def raw(self, workload, x, indices=None):
        n, padding = len(workload.sizes), named_padding(workload)
        plain = workload.channels_last and n == 2 and padding
        if n == 1 or max(workload.dilations) > 1 or workload.kind == "unpool":
            return
        if (workload.kind == "indices" and not plain) or (n == 3 and not padding):
            return
        operators = self.tensorflow.raw_ops
        settings = {
            "input": self.tensorflow.constant(x),
            "ksize": along_axes(workload, workload.kernel_shape, 1),
            "strides": along_axes(workload, workload.strides, 1),
            "padding": padding or "EXPLICIT",
        }
        if workload.kind == "indices":
            settings |= {"Targmax": self.tensorflow.int64, "include_batch_in_index": False}
            call = lambda: operators.MaxPoolWithArgmax(**settings)  # noqa: E731

            def results():
                y, places = (tensor.numpy() for tensor in call())
                return y, answers.whole_indices(workload, places // workload.channels)

            return call, results
        spatial = "DHW"[-n:]
        settings["data_format"] = f"N{spatial}C" if workload.channels_last else f"NC{spatial}"
        if not padding:
            pads = along_axes(workload, zip(*zero_pads(workload), strict=True), (0, 0))
            settings["explicit_paddings"] = [pad for pair in pads for pad in pair]
        pool = operators.MaxPool if n == 2 else operators.MaxPool3D
        call = lambda: pool(**settings)  # noqa: E731
        return call, lambda: (call().numpy(),)

    ways = {"max": {"tensorflow": raw}}


class LiteRT(Peer):
    """LiteRT: a model of one operator, and one that pads before it if "SAME" does not fit."""

    dtypes = {"float32": "FLOAT32", "uint8": "UINT8", "int8": "INT8", "int16": "INT16"}

    def __init__(self, threads):
        super().__init__(threads)
        import ai_edge_litert.interpreter
        import ai_edge_litert.schema_py_generated as schema
        import flatbuffers

        self.schema, self.builder = schema, flatbuffers.Builder
        self.interpreter = ai_edge_litert.interpreter.Interpreter
        self.version = ai_edge_litert.__version__

    def invoked(self, workload, x, indices=None):
        if workload.kind != "values" or not workload.channels_last or len(workload.sizes) != 2:
            return
        if workload.dtype not in self.dtypes or max(workload.dilations) > 1:
            return
        return self._interpreted(x, self._maxima(workload, x.dtype))

    def _interpreted(self, x, model):
        interpreter = self.interpreter(model_content=model, num_threads=self.threads)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        output = interpreter.get_output_details()[0]["index"]
        return interpreter.invoke, lambda: (interpreter.get_tensor(output),)

    def _maxima(self, workload, dtype):
        model = LiteModel(self.schema, self.dtypes[workload.dtype])
        x, y = model.tensor(workload.shape), model.tensor(workload.output_shape)
        source, padding = x, named_padding(workload)
        if not padding:
            filling = np.array([lowest(workload.dtype)], dtype)
            source = model.padded(x, zip(*zero_pads(workload), strict=True), filling)
        versions = {"int8": 2, "int16": 3}
        model.pool("MAX_POOL_2D", versions.get(workload.dtype, 1), workload, source, y, padding)
        return model.packed(self.builder, x, y)

    ways = {"max": {"litert": invoked}}


class LiteModel:
    """A model for LiteRT that is being built. Tensors are numbers."""

    def __init__(self, schema, element):
        self.schema, self.element = schema, getattr(schema.TensorType, element)
        self.graph, self.model = schema.SubGraphT(), schema.ModelT()
        self.graph.tensors, self.graph.operators = [], []
        self.model.version, self.model.operatorCodes = 3, []
        self.model.buffers, self.model.subgraphs = [schema.BufferT()], [self.graph]

    def tensor(self, shape, kind=None, values=None):
        schema, new = self.schema, self.schema.TensorT()
        new.shape, new.buffer = [*shape], 0
        new.type = self.element if kind is None else kind
        if values is not None:
            data = schema.BufferT()
            data.data = np.frombuffer(values.tobytes(), np.uint8)
            new.buffer = len(self.model.buffers)
            self.model.buffers.append(data)
        if new.type == self.element != schema.TensorType.FLOAT32:
            new.quantization = schema.QuantizationParametersT()
            new.quantization.scale = np.ones(1, np.float32)
            new.quantization.zeroPoint = np.zeros(1, np.int64)
        self.graph.tensors.append(new)
        return len(self.graph.tensors) - 1

    def integers(self, values):
        """Return a constant tensor of integers."""
        values = np.array(values, np.int32)
        return self.tensor(values.shape, self.schema.TensorType.INT32, values)

    def operator(self, name, version, inputs, output, options):
        schema = self.schema
        code, new = schema.OperatorCodeT(), schema.OperatorT()
        code.builtinCode = code.deprecatedBuiltinCode = getattr(schema.BuiltinOperator, name)
        code.version = version
        new.opcodeIndex, new.inputs, new.outputs = len(self.model.operatorCodes), inputs, [output]
        options_name = type(options).__name__.removesuffix("T")
        new.builtinOptionsType = getattr(schema.BuiltinOptions, options_name)
        new.builtinOptions = options
        self.model.operatorCodes.append(code)
        self.graph.operators.append(new)

    def padded(self, x, pads, filling):
        """Return the tensor `x` of images with padding, (begin, end) for each spatial axis."""
        pads = [(0, 0), *pads, (0, 0)]
        shape = [n + sum(pad) for n, pad in zip(self.graph.tensors[x].shape, pads, strict=True)]
        padded, filling = self.tensor(shape), self.tensor((1,), self.element, filling)
        inputs = [x, self.integers(pads), filling]
        self.operator("PADV2", 2, inputs, padded, self.schema.PadV2OptionsT())
        return padded

    def pool(self, name, version, workload, x, y, padding):
        options = self.schema.Pool2DOptionsT()
        options.padding = getattr(self.schema.Padding, padding or "VALID")
        options.strideH, options.strideW = workload.strides
        options.filterHeight, options.filterWidth = workload.kernel_shape
        self.operator(name, version, [x], y, options)

    def packed(self, builder, x, y):
        self.graph.inputs, self.graph.outputs = [x], [y]
        builder = builder(1024)
        builder.Finish(self.model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())
